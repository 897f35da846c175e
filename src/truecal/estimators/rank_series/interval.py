"""Confidence intervals of calibration errors, by inverting a variance that depends on the error.

`Pivot` turns an estimate X of theta with Var(X) = a + b(theta) theta + e theta^2 into limits and p-values (17). The
rest of the file computes its parts from a fitted series: the slope b of an enlarged curve (16a), the estimates of
windows of neighbouring ranks (16b) and (16c), and the exact limit of unexpected outcomes (16d). The mean absolute error
has its lower limit from leave-one-out signs. Equation numbers are those of docs/methods/rank-series.md.
"""

from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from truecal.estimators.rank_series.basis import RANK_ROUNDING, RankCells, max_order
from truecal.estimators.rank_series.fit import MAX_LEVERAGE, SIGNIFICANCE_GATE, SeriesFit, shape_ratio
from truecal.special import clopper_pearson, positive
from truecal.types import Float64s, Indices

ENLARGEMENTS = (1.0, 1.5, 2.0, 3.0, 5.0)  # by choice: b is smooth in the enlargement, and taken as linear between these
_NODES = np.array(ENLARGEMENTS)[:, None]
_NODE_STEPS = np.diff(_NODES, axis=0)
_MIN_SQUARE = 1e-300  # derived: the square of a gap of 1e-150, below which products underflow
_MAX_ITERATIONS = 50  # by choice: of the fixed-point iteration for an upper limit
_CONVERGED = 1e-12  # by choice: change of a squared error at which the iteration ends, 1e-6 of an error
_HALF_ROUNDING = 1e-9  # derived: rounding of the mean score of a cell

# By choice, all three, and not tuned on the worlds of benchmarks/candidates; effects there.
# Share of the slope that b_2 adds; none: 2 to 5 % shorter, an error among few rows that vary covered 0.70 of the time
OTHER_SHAPE = 0.5
WINDOWS_PER_TERM = (2, 4)  # by choice; none: 0 to 7 % shorter, staircases and waves covered less
MIN_WINDOW_ROWS = 16  # by choice: mean rows of a window; 8: 3 % longer at n = 300, none: 8 % longer at n = 100


# ---------------------------------------------------------------------- unexpected outcomes


class UnexpectedOutcomes(NamedTuple):
    """Numbers of outcomes on the other side of 1/2 than their scores, of every dataset, shape (m,) each.

    `observed` counts ones at scores below 1/2, zeros above, and half of the outcomes at 1/2; `expected` is the sum of min(c, 1 -
    c), the number under calibration; `rows` is the sample size.
    """

    observed: Float64s
    expected: Float64s
    rows: Float64s

    @classmethod
    def of_cells(cls, cells: RankCells) -> "UnexpectedOutcomes":
        """Count them in every dataset of a batch of cells; all rows of a cell are taken to have its mean score."""
        counts, scores = cells.counts, cells.scores
        ones = np.clip(cells.residual_sums + counts * scores, 0.0, counts)
        prediction = predicted_outcome(scores)
        observed = prediction * (counts - ones) + (1 - prediction) * ones
        expected = counts * np.minimum(scores, 1 - scores)
        return cls(np.maximum(observed.sum(axis=1), 0.0), expected.sum(axis=1), cells.n)

    def raise_limit(self, upper: Float64s, level: float) -> Float64s:
        """Return max(upper, q - expected / rows), shape (m,): q is the Clopper-Pearson upper limit of observed / rows (16d).

        q has the one-sided level (1 + level) / 2; `upper` are upper limits of the error, shape (m,).
        """
        # By Hoeffding's inequality the exact limit is seldom the larger one; then scipy need not be loaded.
        bound = (self.observed + 1) / self.rows + np.sqrt(-np.log(0.5 - level / 2) / (2 * self.rows))
        if (bound - self.expected / self.rows <= upper).all():
            return upper
        limit = clopper_pearson(self.observed, self.rows, 0.5 - level / 2)[1]
        return np.maximum(upper, limit - self.expected / self.rows)

    def p_value(self, error: float) -> Float64s:
        """Compute the binomial probability of at most `observed` of `rows` at the rate expected / rows + error, shape (m,)."""
        from scipy.special import betaincc

        not_observed = np.maximum(self.rows - self.observed, 0.0)
        rate = np.minimum(self.expected / self.rows + error, 1.0)
        return np.where(not_observed > 0, betaincc(self.observed + 1, positive(not_observed), rate), 1.0)


def predicted_outcome(scores: Float64s) -> Float64s:
    """Round scores to 0.0 or 1.0, and those within 1e-9 of 1/2 to 0.5.

    >>> predicted_outcome(np.array([0.2, 0.5, 0.9]))
    array([0. , 0.5, 1. ])
    """
    return np.where(np.abs(scores - 0.5) <= _HALF_ROUNDING, 0.5, np.where(scores > 0.5, 1.0, 0.0))


def one_score_limits(cells: RankCells, level: float) -> tuple[Float64s, Float64s]:
    """Compute the lower and upper limit of |outcome rate - mean score| of every dataset (16e), shape (m,) each.

    The limits q_1, q_2 of the rate are Clopper and Pearson's: max(q_1 - c, c - q_2, 0) and max(q_2 - c, c - q_1), c the mean
    score.
    """
    score = np.vecdot(cells.shares, cells.scores)
    ones = np.clip(cells.residual_sums.sum(axis=1) + cells.n * score, 0.0, cells.n)
    low, high = clopper_pearson(ones, cells.n, 0.5 - level / 2)
    return np.maximum(np.maximum(low - score, score - high), 0.0), np.maximum(high - score, score - low)


# ---------------------------------------------------------------------- pivot


@dataclass(frozen=True, eq=False)
class Pivot:
    """An estimate X of theta, the squared error, with Var(X) = a + b(theta) theta + e theta^2, one per dataset, shape (m,)."""

    center: Float64s  # X of the lower limit
    null_variance: Float64s  # a
    slope: Float64s  # b at the fitted curve
    curvature: Float64s  # e
    upper_center: Float64s  # X of the upper limit
    fitted_square: Float64s | None = None  # theta of the fitted curve
    slope_steps: Float64s | None = None  # (len(ENLARGEMENTS) - 1, m) increase of b_1 from one enlargement to the next
    variable_slope: Float64s | None = None  # b_2, of a squared error in proportion to c (1 - c)
    unexpected: UnexpectedOutcomes | None = None

    def slope_at(self, theta: Float64s | float) -> Float64s:
        """Compute b(theta) of (16a), shape (m,): the slope of the fitted curve enlarged to a mean square of theta.

        Where an error proportional to sqrt(c (1 - c)) beyond the fitted one has a larger slope, half of the difference is added.
        It does not decrease with theta, so that intervals of different levels nest. Without `slope_steps` it is `slope`.
        """
        if self.fitted_square is None or self.slope_steps is None:
            return self.slope + 0 * theta
        enlargement = np.sqrt(theta / np.where(self.fitted_square > _MIN_SQUARE, self.fitted_square, np.inf))
        fraction = np.minimum(np.maximum((enlargement - _NODES[:-1]) / _NODE_STEPS, 0.0), 1.0)
        enlarged = self.slope + np.add.reduce(fraction * self.slope_steps, axis=0)
        if self.variable_slope is None:
            return enlarged
        fitted_share = np.minimum(self.fitted_square / np.maximum(theta, _MIN_SQUARE), 1.0)
        other_shape = fitted_share * self.slope + (1 - fitted_share) * self.variable_slope
        return enlarged + OTHER_SHAPE * np.maximum(other_shape - enlarged, 0.0)

    def interval(self, level: float) -> tuple[Float64s, Float64s]:
        """Compute the lower and the upper limit of the error, not of its square, shape (m,) each, in [0, 1].

        They are the roots of the ends of the set of theta with (X - theta)^2 <= z^2 Var(X) (17), z the two-sided normal quantile.
        The upper one is raised to that of `unexpected` (16d).
        """
        z_squared = NormalDist().inv_cdf(0.5 + level / 2) ** 2
        lower = self._solve(self.center, self.slope, z_squared)[0]
        upper = self._solve(self.upper_center, self.slope, z_squared)[1]
        if self.slope_steps is not None:
            for _ in range(_MAX_ITERATIONS):  # rises to the theta whose slope is that at theta
                previous, upper = upper, self._solve(self.upper_center, self.slope_at(upper), z_squared)[1]
                if (upper - previous <= _CONVERGED).all():
                    break
        upper = np.sqrt(upper)
        return np.sqrt(lower), upper if self.unexpected is None else self.unexpected.raise_limit(upper, level)

    def _solve(self, center: Float64s, slope: Float64s, z_squared: float) -> tuple[Float64s, Float64s]:
        """Solve (x - theta)^2 = z^2 (a + b theta + e theta^2) for the lower and the upper theta, in [0, 1], shape (m,) each.

        x = max(`center`, 0), b = `slope` at every theta, a and e those of the pivot.
        """
        x = np.maximum(center, 0.0)
        leading = np.maximum(1 - z_squared * self.curvature, 0.0)
        half, product = x + z_squared * slope / 2, x**2 - z_squared * self.null_variance
        top = half + np.sqrt(np.maximum(half**2 - leading * product, 0.0))
        return np.maximum(product, 0.0) / positive(top), np.where(top < leading, top / positive(leading), 1.0)

    def z_score(self, error: float) -> Float64s:
        """Standardise X of the upper limit at theta = error^2: (X - theta) / sqrt(Var(X)), shape (m,)."""
        theta = error**2
        variance = self.null_variance + self.slope_at(theta) * theta + self.curvature * theta**2
        return (self.upper_center - theta) / np.maximum(np.sqrt(variance), np.finfo(float).tiny)

    def p_value(self, error: float) -> Float64s:
        """Compute the one-sided p-value of the hypothesis that the error, sqrt(theta), is at least `error`, shape (m,); above 0.

        Phi(`z_score(error)`), or the p-value of `unexpected` if that is larger.
        """
        from scipy.special import ndtr

        p = np.maximum(ndtr(self.z_score(error)), np.finfo(float).tiny)
        return p if self.unexpected is None else np.maximum(p, self.unexpected.p_value(error))


def series_pivot(fit: SeriesFit) -> Pivot:
    """Compute the pivot of the estimate with all K terms; slope and curvature are those of the curve of the chosen terms."""
    cells, (mean_square, slope, curvature) = fit.cells, fit.moments
    shares, variance = cells.shares, cells.null_variances
    return Pivot(
        center=fit.theta[:, -1],
        null_variance=2 * fit.null_squares[:, -1],  # (16)
        slope=slope,
        curvature=curvature,
        upper_center=upper_center(cells, fit.theta[:, -1]),
        fitted_square=mean_square,
        slope_steps=slope_steps(cells, fit.gap, slope),
        variable_slope=4 * np.vecdot(shares, variance**2) / positive(np.vecdot(shares, variance)) / cells.n,
        unexpected=UnexpectedOutcomes.of_cells(cells),
    )


def slope_steps(cells: RankCells, gap: Float64s, slope: Float64s) -> Float64s:
    """Compute the increase of b from one enlargement t of a fitted gap to the next, shape (len(ENLARGEMENTS) - 1, m) (16a).

    At t, b is 4 E[gap^2 T (1 - T)] / (n E[gap^2]) with T = clip(c + t gap, 0, 1), or the largest b of a smaller t. `gap` has
    shape (m, G). A `slope`, shape (m,), above that at t = 1, as clusters have, enlarges all of them in proportion.
    """
    shares, square = cells.shares, gap * gap
    rates = np.clip(cells.scores + _NODES[:, :, None] * gap, 0.0, 1.0)
    row_slopes = 4 * np.vecdot(shares, square * rates * (1 - rates)) / positive(np.vecdot(shares, square)) / cells.n
    design_effect = np.maximum(slope / np.where(row_slopes[0] > 0, row_slopes[0], np.inf), 1.0)
    slopes = np.maximum.accumulate([slope, *(design_effect * row_slopes[1:])], axis=0)
    return np.diff(slopes, axis=0)


# ---------------------------------------------------------------------- windows of neighbouring ranks


def upper_center(cells: RankCells, center: Float64s) -> Float64s:
    """Compute the largest of the estimate `center`, shape (m,), and those of 2 K and 4 K windows (16c), shape (m,).

    Windows are used where they have at least 16 rows on average, and not where scores are few (4b).
    """
    order = np.broadcast_to(max_order(cells.units), cells.n.shape).astype(np.intp)
    for multiple in WINDOWS_PER_TERM:
        windows = multiple * order
        usable = (windows * MIN_WINDOW_ROWS <= cells.n) & ~cells.few_scores
        if usable.any():
            center = np.where(usable, np.maximum(center, _window_estimate(cells, windows)), center)
    return center


def _window_estimate(cells: RankCells, windows: Indices) -> Float64s:
    """Estimate theta by products within windows, the mean of two partitions half a window apart (16b), shape (m,).

    With R = sum r and Q = sum r^2 over the N rows of a window it is sum (R^2 - Q) / (N - 1) / n; windows of one row add 0.
    `windows`, shape (m,), is their number.
    """
    datasets, shape = len(cells.n), cells.scores.shape
    total = np.zeros(datasets)
    for shift in (0.0, 0.5):
        index = window_index(cells, windows, shift)
        number = int(index.max()) + 1
        code = (index + number * np.arange(datasets)[:, None]).ravel()
        rows, residuals, squares = (
            np.bincount(code, np.broadcast_to(values, shape).ravel(), number * datasets).reshape(datasets, number)
            for values in (cells.counts, cells.residual_sums, cells.square_sums)
        )
        pairs = rows > 1.5  # a window of one row has none
        total += np.sum(np.divide(residuals**2 - squares, rows - 1, out=np.zeros_like(rows), where=pairs), axis=1)
    return total / (2 * cells.n)


def window_index(cells: RankCells, windows: Indices, shift: float = 0.0) -> Indices:
    """Number the windows of equal width in rank for every cell, shape (m, G), within each side of 1/2.

    `windows` (m,) is their number in each dataset, divided between the sides of 1/2 in proportion to their rows; they are moved
    towards 1/2 by `shift` times their width. Equal ranks stay together, and a rank on an edge belongs to the window farther from
    1/2. Numbers on one side do not occur on the other, and need not be consecutive.
    """
    small, small_share, _, ranks = cells.sides
    side_share = np.where(small, small_share[:, None], 1 - small_share[:, None])
    number = np.maximum(np.floor(windows[:, None] * side_share + (0.5 + RANK_ROUNDING)), 1.0)
    index = (number * ranks + (shift + RANK_ROUNDING)).astype(np.intp)
    return index + small * (windows[:, None] + 2)


# ---------------------------------------------------------------------- the mean absolute error


def absolute_interval(fit: SeriesFit, level: float) -> tuple[Float64s, Float64s]:
    """Compute the lower (24) and upper (25) limits of the mean absolute error, shape (m,) each; the estimate may lie outside.

    The lower one is that of leave-one-out signs, 0 where that of the root-mean-square error is 0. It has all K terms: such signs
    give a bound only if row i is also excluded from the choice of terms. The upper one is that of the root-mean-square error
    times mean|gap| / rms(gap) of K terms or, if that is larger and theta_K is significant, of the chosen ones.
    """
    pivot = series_pivot(fit)
    assert pivot.unexpected is not None
    lower, upper = pivot.interval(level)
    gap = fit.gap_of(np.full(len(fit.order), fit.basis.shape[1]))
    mean, variance = _signed_mean(fit, gap)
    signed = np.maximum(mean - NormalDist().inv_cdf(0.5 + level / 2) * np.sqrt(variance), 0.0)
    ratio = shape_ratio(fit.cells, gap)
    significant = pivot.center > SIGNIFICANCE_GATE * np.sqrt(pivot.null_variance)
    ratio = np.where(significant, np.maximum(ratio, shape_ratio(fit.cells, fit.gap)), ratio)
    upper = pivot.unexpected.raise_limit(ratio * upper, level)
    return np.where(lower > 0, signed, 0.0), upper  # (24), (25)


def _signed_mean(fit: SeriesFit, gap: Float64s) -> tuple[Float64s, Float64s]:
    """Compute V of (23), the mean of residuals times expected signs of the leave-one-out gap, and its variance, (m,) each.

    `gap`, shape (m, G), is the fit with all terms. Cells of a leverage above 0.95 count 0. The sign of row i is 2 Phi(m_{-i} /
    sigma) - 1.
    """
    from scipy.special import ndtr

    cells, counts = fit.cells, fit.cells.counts
    leverage = (fit.basis**2).sum(axis=1) / positive(cells.counts)  # (6)
    rate = np.clip(cells.scores + gap, 0.0, 1.0)
    shrunk = (rate + leverage / 2) / (1 + leverage)  # (15)
    deviation = np.sqrt(leverage * shrunk * (1 - shrunk))
    usable = leverage <= MAX_LEVERAGE
    ones = np.clip(cells.residual_sums + counts * cells.scores, 0.0, counts)
    total, square = np.zeros(len(cells.n)), np.zeros(len(cells.n))
    for rows, residual in ((ones, 1 - cells.scores), (counts - ones, -cells.scores)):
        gap_without_row = np.where(
            usable, (gap - leverage * residual) / np.where(usable, 1 - leverage, 1.0), 0.0
        )  # (7)
        sign = 2 * ndtr(gap_without_row / np.where(deviation > 0, deviation, np.finfo(float).tiny)) - 1
        product = sign * residual
        total += np.vecdot(rows, product)
        square += np.vecdot(rows, product**2)
    mean = total / cells.n
    return mean, np.maximum(square / cells.n - mean**2, 0.0) / cells.n
