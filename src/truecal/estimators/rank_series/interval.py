"""Confidence intervals of a root-mean-square calibration error, by inverting a variance that depends on the error.

`Pivot` turns an estimate X of theta with Var(X) = a + b(theta) theta + e theta^2 into limits and p-values (17). The
rest of the file computes its parts from a fitted series: the variance a under calibration (16), the slope b of an
enlarged curve and of an error of unknown shape (16a), the estimates of windows of neighbouring ranks (16b) to (16e),
and the exact limit of unexpected outcomes (16f). Equation numbers are those of docs/methods/rank-series.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truecal.estimators.rank_series.basis import MAX_CELLS, RankCells, max_order
from truecal.estimators.rank_series.fit import SeriesFit, coefficient_covariance, squared_norm
from truecal.special import clopper_pearson, positive
from truecal.types import Float64s, Indices

ENLARGEMENTS = (1.0, 1.5, 2.0, 3.0, 5.0)  # tuned on the paper worlds: linear between them is right to a few percent
_NODES = np.array(ENLARGEMENTS)[:, None]
_NODE_STEPS = np.diff(_NODES, axis=0)
_MIN_LEADING = 0.05  # derived: keeps the quadratic in theta bounded where z^2 e nears 1
_MIN_SQUARE = 1e-300  # derived: the square of a gap of 1e-150, below which products underflow
_MAX_ITERATIONS = 50
_CONVERGED = 1e-12
_MAX_EXPECTED = 5.0  # tuned on the paper worlds: no limit makes intervals of norm 1 4 % longer at n = 100
_HALF_ROUNDING = 1e-9  # derived: rounding of the mean score of a cell

WINDOWS_PER_TERM = (2, 4, 8, 16)  # tuned on 15 worlds of jumps and waves: 5 to 8 % longer for calibrated models
UNGATED_WINDOWS_PER_TERM = (2, 4)  # the others count only where they are significant
WINDOW_GATE = 1.5  # standard errors; tuned on 75 worlds at n = 5000
LOWER_GATE = 4.0  # standard errors for the lower limit; derived: chance does not reach it in five looks
MIN_WINDOW_ROWS = 8  # mean rows of a window; tuned on skewed teeth at n = 5000
UNGATED_WINDOW_ROWS = 16  # mean rows of the widest windows and of those without a gate
_PHASE_FACTOR = 0.75  # derived: variance of the mean of two partitions half a window apart, relative to one


# ---------------------------------------------------------------------- unexpected outcomes


class UnexpectedOutcomes(NamedTuple):
    """Numbers of outcomes on the other side of 1/2 than their scores, shape (m,)."""

    observed: Float64s
    expected: Float64s
    rows: Float64s

    @classmethod
    def of_cells(cls, cells: RankCells) -> "UnexpectedOutcomes":
        """Count them in every dataset of a batch of cells."""
        counts, scores = cells.dataset_counts, cells.scores
        ones = np.clip(cells.residual_sums + counts * scores, 0.0, counts)
        observed = np.where(predicts_one(scores), counts - ones, ones)
        expected = counts * np.minimum(scores, 1 - scores)
        return cls(np.maximum(observed.sum(axis=1), 0.0), expected.sum(axis=1), counts.sum(axis=1))

    def raise_limit(self, upper: Float64s, level: float) -> Float64s:
        """Raise upper limits to the exact one of Clopper and Pearson (16f) where few are expected."""
        few = self.expected < _MAX_EXPECTED
        if not few.any():
            return upper
        limit = clopper_pearson(self.observed, self.rows, 0.5 - level / 2)[1]
        return np.where(few, np.maximum(upper, limit - self.expected / self.rows), upper)

    def p_value(self, error: float) -> Float64s:
        """Compute the probability of so few if `error` more of all rows are expected; 0 where many are expected."""
        from scipy.special import betaincc

        others = np.maximum(self.rows - self.observed, 0.0)
        rate = np.minimum(self.expected / self.rows + error, 1.0)
        probability = np.where(others > 0, betaincc(self.observed + 1, positive(others), rate), 1.0)
        return np.where(self.expected < _MAX_EXPECTED, probability, 0.0)


def predicts_one(scores: Float64s) -> NDArray[np.bool_]:
    """Decide whether scores lie above 1/2, by more than the mean of equal scores is rounded."""
    return scores > 0.5 + _HALF_ROUNDING


# ---------------------------------------------------------------------- pivot


@dataclass(frozen=True, eq=False)
class Pivot:
    """An estimate X of theta with Var(X) = a + b(theta) theta + e theta^2, one of each per dataset, shape (m,)."""

    center: Float64s  # X of the lower limit
    null_variance: Float64s  # a
    slope: Float64s  # b at the fitted curve
    curvature: Float64s  # e
    upper_center: Float64s | None = None  # X of the upper limit, where it differs
    fitted_square: Float64s | None = None  # theta of the fitted curve
    slope_steps: Float64s | None = None  # (len(ENLARGEMENTS) - 1, m) increase of b_1 from one enlargement to the next
    any_shape_slope: Float64s | None = None  # b_2
    unexpected: UnexpectedOutcomes | None = None

    @classmethod
    def concatenate(cls, parts: "Sequence[Pivot]") -> "Pivot":
        """Join the pivots of the parts of a batch, which have all their fields."""
        columns: dict[str, Any] = {
            f.name: np.concatenate([getattr(part, f.name) for part in parts], axis=-1) for f in fields(cls)
        }
        columns["unexpected"] = UnexpectedOutcomes(*columns["unexpected"])
        return cls(**columns)

    @property
    def upper_estimate(self) -> Float64s:
        """X of the upper limit."""
        return self.center if self.upper_center is None else self.upper_center

    def enlarged_slope(self, theta: Float64s | float) -> Float64s:
        """Interpolate b_1 of (16a), the slope of the fitted curve enlarged to theta."""
        if self.fitted_square is None or self.slope_steps is None:
            return self.slope + 0 * theta
        enlargement = np.sqrt(theta / np.where(self.fitted_square > _MIN_SQUARE, self.fitted_square, np.inf))
        fraction = np.minimum(np.maximum((enlargement - _NODES[:-1]) / _NODE_STEPS, 0.0), 1.0)
        return self.slope + np.add.reduce(fraction * self.slope_steps, axis=0)

    def slope_at(self, theta: Float64s | float) -> Float64s:
        """Compute b(theta) of (16a); it never falls, so that intervals of different levels nest."""
        enlarged = self.enlarged_slope(theta)
        if self.any_shape_slope is None or self.fitted_square is None:
            return enlarged
        fitted_share = np.minimum(self.fitted_square / np.maximum(theta, _MIN_SQUARE), 1.0)
        any_shape = fitted_share * self.slope + (1 - fitted_share) * self.any_shape_slope
        return (enlarged + np.maximum(enlarged, any_shape)) / 2

    def interval(self, level: float) -> tuple[Float64s, Float64s]:
        """Compute the roots of both ends of the set (17)."""
        z_squared = NormalDist().inv_cdf(0.5 + level / 2) ** 2
        lower = self._solve(self.center, self.slope, z_squared)[0]
        upper = self._solve(self.upper_estimate, self.slope, z_squared)[1]
        if self.slope_steps is not None:
            for _ in range(_MAX_ITERATIONS):  # rises to the theta whose slope is that at theta
                previous, upper = upper, self._solve(self.upper_estimate, self.slope_at(upper), z_squared)[1]
                if (upper - previous <= _CONVERGED).all():
                    break
        upper = np.sqrt(upper)
        return np.sqrt(lower), upper if self.unexpected is None else self.unexpected.raise_limit(upper, level)

    def _solve(self, center: Float64s, slope: Float64s, z_squared: float) -> tuple[Float64s, Float64s]:
        """Solve the quadratic of (17) for both values of theta."""
        x = np.maximum(center, 0.0)
        leading = np.maximum(1 - z_squared * self.curvature, _MIN_LEADING)
        half = x + z_squared * slope / 2
        root = np.sqrt(np.maximum(half**2 - leading * (x**2 - z_squared * self.null_variance), 0.0))
        return np.maximum(half - root, 0.0) / leading, (half + root) / leading

    def z_score(self, error: float) -> Float64s:
        """Standardise X of the upper limit at theta = error^2."""
        theta = error**2
        variance = self.null_variance + self.slope_at(theta) * theta + self.curvature * theta**2
        return (self.upper_estimate - theta) / np.maximum(np.sqrt(variance), np.finfo(float).tiny)

    def p_value(self, error: float) -> Float64s:
        """Test the hypothesis that the root of theta is at least `error`; never exactly 0."""
        from scipy.special import ndtr

        p = np.maximum(ndtr(self.z_score(error)), np.finfo(float).tiny)
        return p if self.unexpected is None else np.maximum(p, self.unexpected.p_value(error))


def series_pivot(fit: SeriesFit) -> Pivot:
    """Compute the pivot of the series with all its terms, which no selection has touched."""
    cells = fit.cells
    shrunk = (fit.rate + fit.leverage / 2) / (1 + fit.leverage)  # (15)
    fitted_variances = shrunk * (1 - shrunk)
    fitted_covariance = coefficient_covariance(fit.basis, fitted_variances, cells.n)
    null_variance = 2 * np.maximum(squared_norm(fit.null_covariance), squared_norm(fitted_covariance))  # (16)
    outcome_variances = np.maximum(cells.null_variances, fitted_variances)
    bounds = local_bounds(cells, outcome_variances, fit.theta[:, -1], null_variance)
    return Pivot(
        center=bounds.lower_center,
        null_variance=bounds.lower_variance,
        slope=fit.slope,
        curvature=fit.curvature,
        upper_center=bounds.upper_center,
        fitted_square=fit.mean_square,
        slope_steps=slope_steps(cells, fit.gap, fit.slope),
        any_shape_slope=_any_shape_slope(cells),
        unexpected=UnexpectedOutcomes.of_cells(cells),
    )


# ---------------------------------------------------------------------- slopes


def slope_steps(cells: RankCells, gap: Float64s, slope: Float64s) -> Float64s:
    """Compute the increase of b_1 of (16a) between enlargements of a fitted gap, shape (len(ENLARGEMENTS) - 1, m).

    A slope above that of independent rows, as clusters have, enlarges all of them in proportion.
    """
    shares, square = cells.shares, gap * gap
    rates = np.clip(cells.scores + _NODES[:, :, None] * gap, 0.0, 1.0)
    row_slopes = 4 * np.vecdot(shares, square * rates * (1 - rates)) / positive(np.vecdot(shares, square)) / cells.n
    design_effect = np.maximum(slope / np.where(row_slopes[0] > 0, row_slopes[0], np.inf), 1.0)
    slopes = np.maximum.accumulate([slope, *(design_effect * row_slopes[1:])], axis=0)
    return np.diff(slopes, axis=0)


def _any_shape_slope(cells: RankCells) -> Float64s:
    """Compute b_2 of (16a), the slope of a squared error in proportion to c (1 - c), shape (m,)."""
    shares, variances = cells.shares, cells.null_variances
    return 4 * np.vecdot(shares, variances**2) / positive(np.vecdot(shares, variances)) / cells.n


# ---------------------------------------------------------------------- windows of neighbouring ranks


class LocalBounds(NamedTuple):
    """Estimates of theta for both limits, the larger of the series' and of windows', shape (m,)."""

    upper_center: Float64s
    lower_center: Float64s
    lower_variance: Float64s  # a of the lower center


def local_bounds(
    cells: RankCells, outcome_variances: Float64s, center: Float64s, null_variance: Float64s
) -> LocalBounds:
    """Compare the estimates of windows with the series' center and its variance under calibration, (16b) to (16e)."""
    order = max_order(cells.n[: len(cells.ranks)])
    upper, lower, lower_variance = center, center, null_variance
    replaced = np.zeros(len(center), bool)
    long_enough = WINDOWS_PER_TERM[0] * order * UNGATED_WINDOW_ROWS <= cells.n
    sums = _cumulative_sums(cells, outcome_variances) if long_enough.any() else None
    for multiple in WINDOWS_PER_TERM:
        windows = np.minimum(multiple * order, MAX_CELLS)
        usable = long_enough & (windows * MIN_WINDOW_ROWS <= cells.n)
        if sums is None or not usable.any():
            break
        estimate, variance = _window_estimate(cells, sums, windows)
        excess, deviation = estimate - center, np.sqrt(variance)
        ungated = (multiple in UNGATED_WINDOWS_PER_TERM) & (windows * UNGATED_WINDOW_ROWS <= cells.n)
        significant = usable & (excess > np.where(ungated, 0.0, WINDOW_GATE) * deviation)
        upper = np.where(significant, np.maximum(upper, estimate), upper)  # (16d)
        certain = usable & (excess > LOWER_GATE * deviation) & ~replaced
        lower = np.where(certain, estimate, lower)  # (16e), with the widest windows: the least noisy ones
        lower_variance = np.where(certain, np.maximum(null_variance, variance), lower_variance)
        replaced |= certain
    return LocalBounds(upper, lower, lower_variance)


def _cumulative_sums(cells: RankCells, outcome_variances: Float64s) -> Float64s:
    """Cumulate counts, residuals, squares and outcome variances over the cells, shape (4, m, G + 1)."""
    parts = (cells.counts, cells.residual_sums, cells.square_sums, outcome_variances * cells.counts)
    sums = np.zeros((len(parts), len(cells.n), cells.ranks.shape[1] + 1))
    for cumulative, values in zip(sums, parts, strict=True):
        cumulative[:, 1:] = values
    return sums.cumsum(axis=2, out=sums)


def _window_estimate(cells: RankCells, sums: Float64s, windows: Float64s) -> tuple[Float64s, Float64s]:
    """Estimate theta by products within windows (16b), and its variance were there no more than the fit (16c)."""
    starts = window_starts(cells.ranks, windows, (0.0, 0.5))
    bounds = sums[:, :, starts[0]] if len(starts) == 1 else np.take_along_axis(sums, starts[None], 2)
    rows, residuals, squares, variances = np.diff(bounds, axis=2)
    # A window of one row has no pairs; between the two partitions the difference is negative.
    inverse_pairs = np.divide(1.0, rows - 1, out=np.zeros_like(rows), where=rows > 1.5)
    estimate = np.vecdot(residuals**2 - squares, inverse_pairs) / 2
    variance = _PHASE_FACTOR * np.vecdot(variances**2, inverse_pairs / positive(rows))
    return estimate / cells.n, variance / cells.n**2


def window_starts(ranks: Float64s, windows: Float64s, shifts: tuple[float, ...] = (0.0,)) -> Indices:
    """Find the first cell of each window of equal width, and the end of the last one, shape (m or 1, edges).

    Every dataset has its own number of windows, shape (m or 1,). One partition follows another, each moved down by a
    share of the width. Equal ranks stay together.
    """
    edges = _window_edges(tuple(windows.tolist()), shifts)
    if len(ranks) == 1:
        return np.searchsorted(ranks[0], edges)
    datasets = np.arange(len(ranks))[:, None]  # ranks lie between 0 and 1, so those of datasets 2 apart never meet
    return np.searchsorted((ranks + 2.0 * datasets).ravel(), edges + 2.0 * datasets) - ranks.shape[1] * datasets


@lru_cache(maxsize=16)
def _window_edges(windows: tuple[float, ...], shifts: tuple[float, ...]) -> Float64s:
    """Compute the ranks between windows, shape (m or 1, edges); datasets with fewer windows end in empty ones."""
    index, number = np.arange(int(max(windows)) + 1 + (max(shifts) > 0)), np.array(windows)[:, None]
    edges = np.concatenate([(index - shift) / number for shift in shifts], axis=1)
    last = np.concatenate([index - (shift > 0) >= number for shift in shifts], axis=1)
    edges[last] = 1.5
    edges[:, :: len(index)] = -0.5
    return edges
