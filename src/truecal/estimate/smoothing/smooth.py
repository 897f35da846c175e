"""The smooth calibration error (smECE)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.estimate.estimate import Estimate
from truecal.estimate.estimator import Estimator, Findings, SketchRange
from truecal.estimate.smoothing import relplot
from truecal.estimate.smoothing.grid import cell_sums, gaussian_response
from truecal.profile import CellProfile, Profile
from truecal.types import Float64s, Indices

_CELLS = 8192
_STEPS = 60  # of the search for the bandwidth, at most
_PRECISION = 1e-9  # of the bandwidth


@dataclass(frozen=True)
class SmoothECE(Estimator):
    r"""smECE = sigma* with sigma* = int_0^1 | 1/n sum_i (y_i - c_i) K_sigma*(t, c_i) | dt, K the Gaussian reflected at 0 and 1.

    Blasiok and Nakkiran (2023): residuals smoothed at the scale of the error itself, a consistent measure within a factor of the
    distance to calibration. The right side falls as sigma grows, so the fixed point is unique and found between bounds.
    Computed on 8192 cells of equal width; errors below 1/8192 are reported as the smoothed residual at that scale.

    rule="relplot" gives the number of that package, which searches and smooths on grids of its own (see `tc.like`); from rows only.

    An absolute (norm 1) error, and a lower one than a binned error of the same data: residuals of opposite sign within sigma of
    each other cancel.

    >>> import truecal as tc
    >>> round(tc.SmoothECE()(tc.Profile.from_arrays([0.9] * 1000, [1] * 500 + [0] * 500)).value, 3)
    0.4
    """

    rule: Literal["exact", "relplot"] = "exact"

    def __post_init__(self) -> None:
        options.choice(self.rule, ("exact", "relplot"), "rule")

    @property
    def power_norm(self) -> float:
        return 1.0

    def find(self, profile: Profile) -> Findings:
        if self.rule == "relplot":
            value, sigma = np.array([relplot.fixed_point(*rows) for rows in _rows(profile)]).T
            return Findings(value, settings={"bandwidth": sigma})
        _, score, outcome = cell_sums(profile, _CELLS)
        value, sigma = _fixed_point(outcome - score)
        return Findings(value, settings={"bandwidth": sigma})

    def sketch_range(self, cells: CellProfile, estimate: Estimate) -> SketchRange:
        if self.rule == "relplot":
            raise InputError("another tool's grids need rows, not a sketch; use tc.SmoothECE()")
        return super().sketch_range(cells, estimate)


def _rows(profile: Profile) -> Iterator[tuple[Float64s, Float64s, Float64s]]:
    """Scores, residuals times weights, and weights of each dataset."""
    weights = np.ones((1, profile.rows)) if profile.weights is None else profile.weights
    for c, y, w in zip(
        *(np.broadcast_to(a, (profile.batch, profile.rows)) for a in (profile.scores, profile.outcomes, weights)),
        strict=True,
    ):
        score = c.astype(np.float64)
        yield score, (score - y) * w, w


def _fixed_point(residual: Float64s) -> tuple[Float64s, Float64s]:
    from scipy.fft import dct, idct

    cosines = dct(residual, type=2, axis=1)

    def smoothed(sigma: Float64s, rows: Indices | slice = slice(None)) -> Float64s:
        return np.abs(idct(cosines[rows] * gaussian_response(_CELLS, sigma), type=2, axis=1)).sum(axis=1)

    # The excess over sigma falls from low to high; false position with halving (Illinois) keeps the root between them.
    low, high = np.full(len(residual), 1 / _CELLS), np.ones(len(residual))
    at_low, at_high = smoothed(low) - low, smoothed(high) - high
    inside = at_low > 0  # otherwise the error is below what the cells can tell
    for _ in range(_STEPS):
        rows = np.flatnonzero(inside & (high - low > _PRECISION * high))  # those whose root is not known yet
        if not rows.size:
            break
        a, b, at_a, at_b = low[rows], high[rows], at_low[rows], at_high[rows]
        sigma = np.clip((a * at_b - b * at_a) / (at_b - at_a), a, b)
        excess = smoothed(sigma, rows) - sigma
        rising, done = excess > 0, np.abs(excess) <= _PRECISION * sigma
        low[rows], high[rows] = np.where(rising | done, sigma, a), np.where(rising & ~done, b, sigma)
        at_low[rows], at_high[rows] = np.where(rising, excess, at_a / 2), np.where(rising, at_b / 2, excess)
    return smoothed(low), low
