"""The fitted series of every dataset: coefficients, leave-one-out estimates, number of terms, value.

Arrays have the datasets of a batch first: m datasets, K terms, G cells. Equation numbers are those of
docs/methods/rank-series.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from truecal.estimators.rank_series.basis import MAX_CELLS, RankCells, rank_basis, rank_cells, select_basis
from truecal.profile.profile import Profile
from truecal.special import positive
from truecal.types import Float64s, Indices

SIGNIFICANCE_GATE = 1.645  # derived: the one-sided 5 % quantile of a normal
PENALTY = 2.0  # tuned on the paper worlds: 1 raises the bias of calibrated models by 0.5 points, 3 that of all others
MAX_LEVERAGE = 0.95 + 1e-9  # derived: four distinct scores have 0.95 at both ends, where rounding must not decide
_RISK_TOLERANCE = 1e-12  # derived: a few thousand roundings of numbers below 1
_PART_CELLS = 1 << 15  # cells of a batch fitted at a time: what stays in cache
_BLOCK_CELLS = 1 << 13  # cells of all orders evaluated at a time: what stays in cache
_SINGLE_THREAD_PRODUCTS = 1 << 18  # multiplications below which BLAS stays on one thread
_MIN_VARIANCE, _MIN_SCALE = 1e-280, 1e-20  # derived: their product divides a squared coefficient of 1 without overflow


@dataclass(frozen=True, eq=False)
class SeriesFit:
    """The series of every dataset of a batch, with as many terms as minimise the estimated risk.

    It has more terms where that choice is refuted (9b), and all of them where scores are few (4b).
    """

    cells: RankCells
    basis: Float64s  # (m or 1, K, G) see `rank_basis`; in the rank of all rows or by side of 1/2
    coefficients: Float64s  # (m, K) beta of (5)
    theta: Float64s  # (m, K) estimate (8) of the squared error with 1, ..., K terms
    risk: Float64s  # (m, K) its risk (9)
    order: Indices  # (m,) number of terms chosen

    @cached_property
    def power(self) -> Float64s:
        """The estimate of the squared error with the chosen terms, shape (m,); may be negative."""
        return self.theta[np.arange(len(self.order)), self.order - 1]

    @cached_property
    def gap(self) -> Float64s:
        """Fitted outcome rate minus score, shape (m, G)."""
        return self.gap_of(self.order)

    def gap_of(self, order: Indices) -> Float64s:
        """Evaluate the fit with the given numbers of terms (5), shape (m, G)."""
        coefficients = self.coefficients * _first_terms(order, self.basis)
        fitted = (coefficients[:, None, :] @ self.basis)[:, 0]
        fitted /= np.sqrt(positive(self.cells.counts))
        return fitted * np.sqrt(self.cells.n)[:, None]

    @cached_property
    def leverage(self) -> Float64s:
        """Leverage of a row of each cell, shape (m, G)."""
        return self.leverage_of(self.order)

    def leverage_of(self, order: Indices) -> Float64s:
        """Compute the leverage with the given numbers of terms (6), shape (m, G)."""
        terms = _first_terms(order, self.basis)
        return (terms[:, None, :] @ self.basis**2)[:, 0] / positive(self.cells.counts)

    @cached_property
    def rate(self) -> Float64s:
        """Fitted outcome rate, shape (m, G)."""
        return np.clip(self.cells.scores + self.gap, 0.0, 1.0)

    @cached_property
    def squared_gap(self) -> Float64s:
        """Square of the fitted gap, shape (m, G)."""
        return self.gap**2

    @cached_property
    def mean_square(self) -> Float64s:
        """Mean square of the fitted gap, shape (m,)."""
        return np.vecdot(self.cells.shares, self.squared_gap)

    @cached_property
    def slope(self) -> Float64s:
        """The coefficient b of theta in the variance (11), shape (m,)."""
        shares, variance = self.cells.shares, self.rate * (1 - self.rate)
        weighted = np.vecdot(shares, self.squared_gap * variance) / positive(self.mean_square)
        return 4 * np.where(self.mean_square > 0, weighted, np.vecdot(shares, variance)) / self.cells.n

    @cached_property
    def curvature(self) -> Float64s:
        """The coefficient e of theta^2 in the variance (12), shape (m,)."""
        relative = self.squared_gap / positive(self.mean_square)[:, None]
        excess = np.vecdot(self.cells.shares, relative**2) - 1
        return np.where(self.mean_square > 0, excess / self.cells.n, 0.0)

    @cached_property
    def null_covariance(self) -> Float64s:
        """Covariance of all coefficients under calibration (10), shape (m, K, K)."""
        return coefficient_covariance(self.basis, self.cells.null_variances, self.cells.n)

    @cached_property
    def value(self) -> Float64s:
        """The root-mean-square error, corrected by Jensen's inequality (14), shape (m,)."""
        significant = (self.power > SIGNIFICANCE_GATE * np.sqrt(2 * self._null_square())) & ~self.cells.few_scores
        power = np.maximum(self.power, 0.0)
        power = np.where(significant, jensen_corrected(power, self.slope, self.curvature), power)
        return np.minimum(np.sqrt(power), 1.0)

    def shape_ratio(self, norm: float, order: Indices | None = None) -> Float64s:
        """Compute mean|m| / rms(m) of the fitted curve for norm 1, and 1 for norm 2, shape (m,)."""
        if norm == 2:
            return np.ones(len(self.order))
        gap, shares = self.gap if order is None else self.gap_of(order), self.cells.shares
        rms = np.sqrt(np.vecdot(shares, gap**2))
        return np.where(rms > 0, np.vecdot(shares, np.abs(gap)) / positive(rms), 1.0)

    def _null_square(self) -> Float64s:
        """Compute |V|_F^2 of the chosen terms under calibration, shape (m,), exactly where it decides on significance.

        Elsewhere a bound is enough: the basis has length 1, so |V|_F <= max c (1 - c) sqrt(terms) / n.
        """
        cells = self.cells
        square = (cells.null_variances.max(axis=1) / cells.n) ** 2 * self.order
        undecided = (self.power > 0) & (self.power <= SIGNIFICANCE_GATE * np.sqrt(2 * square))
        for order in np.unique(self.order[undecided]):
            datasets = np.flatnonzero(undecided & (self.order == order))
            basis = select_basis(self.basis, datasets)[:, :order]
            covariance = coefficient_covariance(basis, cells.null_variances[datasets], cells.n[datasets])
            square[datasets] = squared_norm(covariance)
        return square


def _first_terms(order: Indices, basis: Float64s) -> Float64s:
    """Mark the first terms of every dataset by ones, shape (m, K)."""
    return (np.arange(basis.shape[1]) < order[:, None]).astype(float)


def jensen_corrected(power: Float64s, slope: Float64s | float, curvature: Float64s | float) -> Float64s:
    """Correct an estimate of theta whose root is taken (14)."""
    return power + (slope + curvature * power) / 4


# ---------------------------------------------------------------------- fitting


def fits(profile: Profile) -> Iterator[SeriesFit]:
    """Fit a batch in parts of bounded memory; the fit of a single dataset is stored with its profile."""
    if profile.batch == 1:
        yield profile.once("rank series", fit_series)
    else:
        yield from map(fit_cells, cell_parts(profile))


def cell_parts(profile: Profile) -> Iterator[RankCells]:
    """Join the rows of a batch in rank cells, in parts of bounded memory; those of a single dataset are stored."""
    step = max(1, _PART_CELLS // min(profile.rows, MAX_CELLS))
    if step >= profile.batch:
        yield profile.once("rank cells", rank_cells) if profile.batch == 1 else rank_cells(profile)
        return
    for start in range(0, profile.batch, step):
        yield rank_cells(profile.take(slice(start, start + step)))


def fit_series(profile: Profile) -> SeriesFit:
    """Fit the series of one dataset."""
    return fit_cells(profile.once("rank cells", rank_cells))


def fit_cells(cells: RankCells) -> SeriesFit:
    """Fit the series of every dataset of a batch of rank cells, by side of 1/2 where that has a clearly lower risk."""
    fit = fit_basis(cells, rank_basis(cells))
    if cells.sides.small.any():
        fit = _one_standard_error_rule(fit, fit_basis(cells, rank_basis(cells, by_side=True)))
    return unrefuted(fit)


def fit_basis(cells: RankCells, basis: Float64s) -> SeriesFit:
    """Fit the series in given functions, with the number of terms that minimises the risk."""
    residuals = cells.residual_sums / np.sqrt(positive(cells.counts))
    projections = np.vecdot(basis, residuals[:, None, :])  # sqrt(n) times (5)
    theta, risk = _leave_one_out(cells, basis, residuals, projections)
    # Of equal risks the smallest order, so that rounding decides nothing.
    order = (risk <= risk.min(axis=1, keepdims=True) + _RISK_TOLERANCE).argmax(axis=1) + 1
    order = np.where(cells.few_scores, basis.shape[1], order)
    return SeriesFit(cells, basis, projections / np.sqrt(cells.n)[:, None], theta, risk, order)


def _one_standard_error_rule(fit: SeriesFit, by_side: SeriesFit) -> SeriesFit:
    """Take the series by side of 1/2 where its risk is lower by more than one standard error (9a).

    The standard error is that of the estimate with all terms under calibration.
    """
    gain = fit.risk.min(axis=1) - by_side.risk.min(axis=1)
    better = (gain > 0) & ~fit.cells.few_scores
    better &= gain**2 > 2 * np.where(better, squared_norm(by_side.null_covariance), 0.0)
    if not better.any():
        return fit
    if better.all():
        return by_side
    columns = better[:, None]
    return SeriesFit(
        fit.cells,
        np.where(columns[:, :, None], by_side.basis, fit.basis),
        np.where(columns, by_side.coefficients, fit.coefficients),
        np.where(columns, by_side.theta, fit.theta),
        np.where(columns, by_side.risk, fit.risk),
        np.where(better, by_side.order, fit.order),
    )


def unrefuted(fit: SeriesFit) -> SeriesFit:
    """Take the smallest number of terms that is not refuted where the chosen one is.

    A number is refuted if the estimate with all terms is significantly above that with so many (9b).
    """
    theta = np.maximum(fit.power, 0.0)
    excess = fit.theta[:, -1] - theta
    squares = (excess / SIGNIFICANCE_GATE) ** 2 - (fit.slope + fit.curvature * theta) * theta
    datasets = np.flatnonzero((excess > 0) & (squares > 0) & (fit.order < fit.basis.shape[1]))
    if len(datasets):
        # By Cauchy and Schwarz |V|_F^2 is at least (tr V)^2 / K: few datasets need the covariance itself.
        leverage = (select_basis(fit.basis, datasets) ** 2).sum(axis=1)
        trace = np.vecdot(fit.cells.null_variances[datasets], leverage) / fit.cells.n[datasets]
        datasets = datasets[squares[datasets] > 2 * trace**2 / fit.basis.shape[1]]
    if not len(datasets):
        return fit
    basis, variances = select_basis(fit.basis, datasets), fit.cells.null_variances[datasets]
    null_variance = 2 * squared_norm(coefficient_covariance(basis, variances, fit.cells.n[datasets]))
    all_terms, start = fit.theta[datasets, -1], theta[datasets]
    error = np.sqrt(null_variance + (fit.slope[datasets] + fit.curvature[datasets] * start) * start)
    lowest = all_terms - SIGNIFICANCE_GATE * error
    smallest = (fit.theta[datasets] > lowest[:, None]).argmax(axis=1) + 1
    order = fit.order.copy()
    order[datasets] = np.where(start < lowest, smallest, order[datasets])
    return replace(fit, order=order)


def _leave_one_out(
    cells: RankCells, basis: Float64s, residuals: Float64s, projections: Float64s
) -> tuple[Float64s, Float64s]:
    """Estimate theta (8) and its risk (9) for every number of terms, shape (m, K) each.

    `residuals` are sums over cells divided by the root of the count, so that a cell contributes (e r + v) / (1 - h) and
    (e^2 + v) / (1 - h)^2 to the two sums of (19), with e = r - fit and v the variation of residuals within the cell.
    """
    counts, n = positive(cells.counts)[:, None], cells.n[:, None]
    r, within = residuals[:, None], (cells.square_sums - residuals**2)[:, None]
    theta, risk = np.empty_like(projections), np.empty_like(projections)
    all_squares = cells.square_sums.sum(axis=1, keepdims=True)
    error, free = residuals, counts[:, 0]
    step = min(max(1, _BLOCK_CELLS // residuals.size), basis.shape[1])
    buffers = [np.empty((step, *like.shape)).transpose(1, 0, 2) for like in (error, error, free)]
    for start in range(0, basis.shape[1], step):
        terms = slice(start, start + step)
        vectors = basis[:, terms]
        errors, products, inverse = (buffer[:, : vectors.shape[1]] for buffer in buffers)
        np.multiply(vectors, projections[:, terms, None], out=products)
        error = _subtract_in_turn(error, products, errors)  # r - m_k
        np.multiply(vectors, vectors, out=inverse)
        free = _subtract_in_turn(free, inverse, inverse).copy()  # N (1 - h), by (6)
        total = all_squares
        excluded = inverse < (1 - MAX_LEVERAGE) * counts
        if excluded.any():
            inverse[excluded] = np.inf
            total = np.vecdot(cells.square_sums[:, None], ~excluded)
        np.divide(counts, inverse, out=inverse)  # 1 / (1 - h)
        np.multiply(errors, r, out=products)
        products += within
        theta[:, terms] = (total - np.vecdot(products, inverse)) / n  # (8), by (7) and (19)
        np.multiply(errors, errors, out=products)
        products += within
        inverse *= inverse
        mean_square = (np.vecdot(products, inverse) - total) / n + 2 * theta[:, terms]  # of m_{-i}, by (19)
        risk[:, terms] = -theta[:, terms] + PENALTY * np.maximum(mean_square - theta[:, terms], 0.0)  # (9)
    return theta, risk


def _subtract_in_turn(start: Float64s, steps: Float64s, out: Float64s) -> Float64s:
    """Fill `out` with the start (m, G) minus cumulative sums of the steps (m, b, G), and return the last of them."""
    for k in range(steps.shape[1]):
        start = np.subtract(start, steps[:, k], out=out[:, k])
    return start


def coefficient_covariance(basis: Float64s, variances: Float64s, n: Float64s) -> Float64s:
    """Compute the covariance (10) of the coefficients for given outcome variances of the cells, shape (m, K, K)."""
    terms = basis.shape[1]
    total = np.zeros((len(variances), terms, terms))
    step = max(128, _SINGLE_THREAD_PRODUCTS // terms**2)
    for start in range(0, basis.shape[2], step):
        part = basis[:, :, start : start + step]
        total += (part * variances[:, None, start : start + step]) @ part.transpose(0, 2, 1)
    return total / n[:, None, None]


def squared_norm(covariance: Float64s) -> Float64s:
    """Compute the squared Frobenius norm, shape (m,)."""
    return (covariance**2).sum(axis=(1, 2))


# ---------------------------------------------------------------------- statistic of the test


class SmoothTestStatistic:
    """The statistic (18): the largest standardised sum of excess squares of the first coefficients."""

    def __init__(self, covariance: Float64s) -> None:
        # Relative to the largest variance, squares of tiny scores do not underflow.
        variances = covariance.diagonal()
        unit = max(float(variances.max()), _MIN_VARIANCE)
        scale = np.sqrt(2 * np.cumsum(np.cumsum((covariance / unit) ** 2, axis=0), axis=1).diagonal())
        first = int(np.argmax(scale > 0))  # sums of squares: once positive they stay positive
        self._unit = np.sqrt(unit)
        self._sums = np.tri(len(scale))[first:] / np.maximum(scale[first:], _MIN_SCALE)[:, None]
        self._expected = self._sums @ variances / unit

    def __call__(self, coefficients: Float64s) -> Float64s:
        """Evaluate it at coefficients of shape (..., K)."""
        squares = coefficients / self._unit
        squares *= squares
        return np.asarray(((self._sums @ squares.T).T - self._expected).max(axis=-1))


def smooth_test_statistic(coefficients: Float64s, covariance: Float64s) -> Float64s:
    """Evaluate the statistic (18) at coefficients of shape (..., K) with the given covariance under calibration."""
    return SmoothTestStatistic(covariance)(coefficients)
