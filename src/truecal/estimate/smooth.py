"""The smooth calibration error (smECE)."""

from dataclasses import dataclass

import numpy as np

from truecal.estimate.estimator import Estimator, Findings
from truecal.estimate.grid import cell_sums, gaussian_response
from truecal.profile import Profile
from truecal.types import Float64s

_CELLS = 8192
_STEPS = 40  # halvings of the bandwidth interval


@dataclass(frozen=True)
class SmoothECE(Estimator):
    r"""smECE = sigma* with sigma* = int_0^1 | 1/n sum_i (y_i - c_i) K_sigma*(t, c_i) | dt, K the Gaussian reflected at 0 and 1.

    Blasiok and Nakkiran (2023): residuals smoothed at the scale of the error itself, a consistent measure within a factor of the
    distance to calibration. The right side falls as sigma grows, so the fixed point is unique and found by bisection.
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
        return Findings(value, extra={"details": {"bandwidth": sigma}})


def _fixed_point(residual: Float64s) -> tuple[Float64s, Float64s]:
    from scipy.fft import dct, idct

    cosines = dct(residual, type=2, axis=1)

    def smoothed(sigma: Float64s) -> Float64s:
        return np.abs(idct(cosines * gaussian_response(_CELLS, sigma), type=2, axis=1)).sum(axis=1)

    low, high = np.full(len(residual), 1 / _CELLS), np.ones(len(residual))
    for _ in range(_STEPS):
        sigma = np.sqrt(low * high)
        rising = smoothed(sigma) > sigma
        low, high = np.where(rising, sigma, low), np.where(rising, high, sigma)
        if (high <= low * (1 + 1e-9)).all():
            break
    return smoothed(low), low
