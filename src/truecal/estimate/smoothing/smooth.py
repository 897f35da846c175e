"""The smooth calibration error (smECE)."""

from dataclasses import dataclass

import numpy as np

from truecal import checks
from truecal.estimate.estimator import Estimator, Findings
from truecal.estimate.smoothing.grid import cell_sums, gaussian_response
from truecal.profile import Profile
from truecal.types import Float64s

_CELLS = 8192
_STEPS = 60  # of the search for the bandwidth, at most
_PRECISION = 1e-9  # of the bandwidth


@checks.checked
@dataclass(frozen=True)
class SmoothECE(Estimator):
    r"""smECE = sigma* with sigma* = int_0^1 | 1/n sum_i (y_i - c_i) K_sigma*(t, c_i) | dt, K the Gaussian reflected at 0 and 1.

    Blasiok and Nakkiran (2023): residuals smoothed at the scale of the error itself, a consistent measure within a factor of the
    distance to calibration. The right side falls as sigma grows, so the fixed point is unique and found between bounds.
    Computed on 8192 cells of equal width; errors below 1/8192 are reported as the smoothed residual at that scale.

    An absolute (norm 1) error, and a lower one than a binned error of the same data: residuals of opposite sign within sigma of
    each other cancel.

    >>> import truecal as tc
    >>> round(tc.SmoothECE()(tc.Profile.from_arrays([0.9] * 1000, [1] * 500 + [0] * 500)).value, 3)
    0.4
    """

    @property
    def power_norm(self) -> float:
        return 1.0

    def find(self, profile: Profile) -> Findings:
        _, score, outcome = cell_sums(profile, _CELLS)
        value, sigma = _fixed_point(outcome - score)
        return Findings(value, settings={"bandwidth": sigma})


def _fixed_point(residual: Float64s) -> tuple[Float64s, Float64s]:
    from scipy.fft import dct, idct

    cosines = dct(residual, type=2, axis=1)

    def smoothed(sigma: Float64s) -> Float64s:
        return np.abs(idct(cosines * gaussian_response(_CELLS, sigma), type=2, axis=1)).sum(axis=1)

    # The excess over sigma falls from low to high; false position with halving (Illinois) keeps the root between them.
    low, high = np.full(len(residual), 1 / _CELLS), np.ones(len(residual))
    at_low, at_high = smoothed(low) - low, smoothed(high) - high
    inside = at_low > 0  # otherwise the error is below what the cells can tell
    for _ in range(_STEPS):
        if not (inside & (high - low > _PRECISION * high)).any():
            break
        sigma = np.where(inside, (low * at_high - high * at_low) / np.where(inside, at_high - at_low, 1.0), low)
        sigma = np.clip(sigma, low, high)
        excess = smoothed(sigma) - sigma
        rising = excess > 0
        low, at_low, at_high = (
            np.where(rising, sigma, low),
            np.where(rising, excess, at_low / 2),
            np.where(rising, at_high / 2, excess),
        )
        high = np.where(rising | ~inside, high, sigma)
        done = inside & (np.abs(excess) <= _PRECISION * sigma)
        low, high = np.where(done, sigma, low), np.where(done, sigma, high)
    return smoothed(low), low
