"""The fitted series of every dataset: coefficients, leave-one-out estimates, number of terms, value.

Arrays have the datasets of a batch first: m datasets, K terms, G cells. Equation numbers are those of
docs/methods/rank-series.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from truecal.estimators.rank_series.basis import (
    RankCells,
    cell_parts,
    null_covariance,
    rank_basis,
    rank_groups,
    stack_cells,
)
from truecal.profile.profile import Profile
from truecal.special import positive
from truecal.types import Float64s, Indices

SIGNIFICANCE_GATE = 1.645  # derived: the one-sided 5 % quantile of a normal
PENALTY = 2.0  # tuned on the paper worlds: 1 raises the bias of calibrated models by 0.5 points, 3 that of all others
MAX_LEVERAGE = 0.95 + 1e-9  # derived: four distinct scores have 0.95 at both ends, where rounding must not decide
_RISK_TOLERANCE = 1e-12  # derived: a few thousand roundings of numbers below 1
_BLOCK_CELLS = 1 << 13  # derived: cells of all orders evaluated at a time: what stays in cache


class CurveMoments(NamedTuple):
    """Moments over rows of a fitted gap m, with s^2 the variance of an outcome at the fitted rate, shape (m,) each."""

    mean_square: Float64s  # E[m^2]
    slope: Float64s  # b of (11): 4 E[m^2 s^2] / (n E[m^2])
    curvature: Float64s  # e of (12): (E[m^4] / E[m^2]^2 - 1) / n


@dataclass(frozen=True, eq=False)
class SeriesFit:
    """The series of m datasets, each with as many terms as minimise the estimated risk.

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
        """The estimate of the squared error with the chosen terms, `theta[i, order[i] - 1]`, shape (m,); may be negative."""
        return self.theta[np.arange(len(self.order)), self.order - 1]

    @cached_property
    def gap(self) -> Float64s:
        """Fitted outcome rate minus score with the chosen terms, shape (m, G)."""
        return self.gap_of(self.order)

    def gap_of(self, order: Indices) -> Float64s:
        """Evaluate the fit with the first `order` terms, shape (m,), from 1 to K: sum_k beta_k phi_k (5), shape (m, G)."""
        coefficients = np.where(np.arange(self.basis.shape[1]) < order[:, None], self.coefficients, 0.0)
        fitted = (coefficients[:, None, :] @ self.basis)[:, 0]
        fitted /= np.sqrt(positive(self.cells.counts))
        return fitted * np.sqrt(self.cells.n)[:, None]

    @cached_property
    def rate(self) -> Float64s:
        """Fitted outcome rate of every cell, its mean score plus `gap`, cut off at 0 and 1, shape (m, G)."""
        return np.clip(self.cells.scores + self.gap, 0.0, 1.0)

    @cached_property
    def moments(self) -> CurveMoments:
        """Moments of the fitted gap m (see `CurveMoments`); s^2 is rate (1 - rate), all means are over rows.

        Without a gap the mean square and the curvature are 0, and the slope is 4 E[s^2] / n.
        """
        shares, n, square = self.cells.shares, self.cells.n, self.gap * self.gap
        variance = self.rate * (1 - self.rate)
        mean_square = np.vecdot(shares, square)
        divisor, miscalibrated = positive(mean_square), mean_square > 0
        weighted = np.vecdot(shares, square * variance) / divisor
        slope = 4 * np.where(miscalibrated, weighted, np.vecdot(shares, variance)) / n
        excess = np.vecdot(shares, (square / divisor[:, None]) ** 2) - 1
        return CurveMoments(mean_square, slope, np.where(miscalibrated, excess / n, 0.0))

    @cached_property
    def null_squares(self) -> Float64s:
        """|V|_F^2 of the null covariance V (10) of the first 1, ..., K coefficients, shape (m, K)."""
        is_of_cells = self.basis is self.cells.basis
        return block_squares(self.cells.null_covariance if is_of_cells else null_covariance(self.cells, self.basis))

    @cached_property
    def value(self) -> Float64s:
        """The root-mean-square error, sqrt(max(power, 0)), at most 1, shape (m,).

        A power above 1.645 sqrt(2) |V|_F, V the null covariance of the chosen terms, is corrected first by `jensen_corrected`
        (14), as the root of an unbiased square is too small on average, except where scores are few (4b).
        """
        power = np.maximum(self.power, 0.0)
        square = self.null_squares[np.arange(len(self.order)), self.order - 1]
        significant = (power > SIGNIFICANCE_GATE * np.sqrt(2 * square)) & ~self.cells.few_scores
        corrected = power + (self.moments.slope + self.moments.curvature * power) / 4  # (14)
        return np.minimum(np.sqrt(np.where(significant, corrected, power)), 1.0)

    def error(self, norm: float) -> Float64s:
        """Compute the error, shape (m,): for norm 2 `value`, for norm 1 `value` mean|gap| / rms(gap) (26)."""
        return self.value if norm == 2 else self.value * shape_ratio(self.cells, self.gap)

    def signed_power(self, norm: float) -> Float64s:
        """Compute error^norm, shape (m,); where the value is 0, the estimate (8) of the squared error, at most 0."""
        return np.where(self.value > 0, self.error(norm) ** norm, np.minimum(self.power, 0.0))

    def errors_by_order(self, norm: float) -> Float64s:
        """Compute what `error(norm)` would be if the number of terms were 1, ..., K, shape (m, K); norm 1 or 2."""
        cells, errors = self.cells, np.empty_like(self.theta)
        scale = np.sqrt(cells.n)[:, None] / np.sqrt(positive(cells.counts))
        gap = np.zeros_like(cells.scores)
        for k in range(errors.shape[1]):
            gap = gap + self.coefficients[:, k, None] * self.basis[:, k] * scale
            fit = replace(self, order=np.full_like(self.order, k + 1))
            vars(fit)["gap"] = gap  # otherwise summed over all terms for every k
            errors[:, k] = fit.error(norm)
        return errors


def shape_ratio(cells: RankCells, gap: Float64s) -> Float64s:
    """Compute mean|gap| / rms(gap) over rows, shape (m,), of gaps of cells, shape (m, G); 1 where all are 0."""
    rms = np.sqrt(np.vecdot(cells.shares, gap**2))
    return np.where(rms > 0, np.vecdot(cells.shares, np.abs(gap)) / positive(rms), 1.0)


# ---------------------------------------------------------------------- fitting


def fit_series(profile: Profile) -> Iterator[SeriesFit]:
    """Fit the series of a batch of datasets of independent rows; yield fits of consecutive datasets, in parts of bounded memory.

    A single dataset gives one fit, which is stored in the cache of its profile.
    """
    if profile.batch > 1:
        yield from map(fit_cells, cell_parts(profile))
        return
    if "rank series" not in profile.cache:
        profile.cache["rank series"] = fit_cells(stack_cells([profile]))
    yield profile.cache["rank series"]


def distinct_score_estimate(cells: RankCells) -> Float64s:
    """Estimate theta with a term for every distinct score (4b), shape (m,): sums of (R^2 - S) / (N - 1) over them, over n.

    R and S are the sums of residuals and of their squares over the N rows of one score; N = 1, a leverage above 0.95, adds 0.
    """
    datasets = len(cells.n)
    score = np.broadcast_to(rank_groups(cells.shares, cells.ranks), cells.scores.shape)
    number = score.shape[1]
    code = (score + number * np.arange(datasets)[:, None]).ravel()
    rows, residuals, squares = (
        np.bincount(code, np.broadcast_to(values, score.shape).ravel(), number * datasets).reshape(datasets, number)
        for values in (cells.counts, cells.residual_sums, cells.square_sums)
    )
    usable = rows * MAX_LEVERAGE >= 1
    pairs = np.divide(residuals**2 - squares, rows - 1, out=np.zeros_like(rows), where=usable)
    return pairs.sum(axis=1) / cells.n


def fit_cells(cells: RankCells) -> SeriesFit:
    """Fit the series of every dataset of a batch of rank cells, by side of 1/2 where that has a clearly lower risk."""
    fit = fit_basis(cells, cells.basis)
    if cells.sides.small.any():
        fit = _one_standard_error_rule(fit, fit_basis(cells, rank_basis(cells, by_side=True)))
    return unrefuted(fit)


def fit_basis(cells: RankCells, basis: Float64s) -> SeriesFit:
    """Fit the series in given functions (m or 1, K, G), each with the number of terms, 1 to K, of the smallest risk (9).

    Of risks that agree to 1e-12 the fewest terms are taken; where scores are few (4b), all K.
    """
    residuals = cells.residual_sums / np.sqrt(positive(cells.counts))
    projections = np.vecdot(basis, residuals[:, None, :])  # sqrt(n) times (5)
    theta, risk = _leave_one_out(cells, basis, residuals, projections)
    # Of equal risks the smallest order, so that rounding decides nothing.
    order = (risk <= risk.min(axis=1, keepdims=True) + _RISK_TOLERANCE).argmax(axis=1) + 1
    order = np.where(cells.few_scores, basis.shape[1], order)
    return SeriesFit(cells, basis, projections / np.sqrt(cells.n)[:, None], theta, risk, order)


def block_squares(covariance: Float64s) -> Float64s:
    """Compute |V|_F^2 of the covariance V of the first 1, ..., K coefficients, (..., K), from that of all, (..., K, K).

    >>> block_squares(np.array([[1.0, 2.0], [2.0, 1.0]]))
    array([ 1., 10.])
    """
    squares = covariance**2
    return np.cumsum(2 * np.tril(squares).sum(axis=-1) - squares.diagonal(axis1=-2, axis2=-1), axis=-1)


def _one_standard_error_rule(fit: SeriesFit, by_side: SeriesFit) -> SeriesFit:
    """Take, of every dataset, `by_side` where its smallest risk is lower by more than one standard error, else `fit` (9a).

    The standard error is sqrt(2) |V|_F, V the null covariance of all terms of `by_side`. Where scores are few (4b) it is `fit`.
    """
    gain = fit.risk.min(axis=1) - by_side.risk.min(axis=1)
    better = (gain > 0) & ~fit.cells.few_scores
    if better.any():
        better &= gain > np.sqrt(2 * by_side.null_squares[:, -1])
    if not better.any():
        return fit
    pairs = [(getattr(by_side, field.name), getattr(fit, field.name)) for field in fields(fit)[1:]]
    chosen = (np.where(better.reshape(-1, *(1,) * (new.ndim - 1)), new, old) for new, old in pairs)
    return SeriesFit(fit.cells, *chosen)


def unrefuted(fit: SeriesFit) -> SeriesFit:
    """Replace a refuted number of terms by the smallest one that is not refuted (9b); return the fit itself if none is refuted.

    A number k is refuted if t = max(theta_k, 0) is below theta_K - 1.645 sqrt(a + b t + e t^2). It is replaced by the smallest j
    with theta_j above that limit.
    """
    theta, all_terms = np.maximum(fit.power, 0.0), fit.theta[:, -1]
    _, slope, curvature = fit.moments
    variance = 2 * fit.null_squares[:, -1] + (slope + curvature * theta) * theta
    lowest = all_terms - SIGNIFICANCE_GATE * np.sqrt(np.maximum(variance, 0.0))
    refuted = theta < lowest
    if not refuted.any():
        return fit
    smallest = (fit.theta > lowest[:, None]).argmax(axis=1) + 1
    return replace(fit, order=np.where(refuted, smallest, fit.order))


def _leave_one_out(
    cells: RankCells, basis: Float64s, residuals: Float64s, projections: Float64s
) -> tuple[Float64s, Float64s]:
    """Estimate theta (8) and its risk (9) with 1, ..., K terms, both of shape (m, K), from leave-one-out fits.

    theta_k is the mean of r_i m_{-i}, with r = y - c and m_{-i} the fit without row i; the risk is -theta_k + 2 max(L_k -
    theta_k, 0), with L_k the mean of m_{-i}^2. Cells of a leverage above 0.95 are left out of all sums.

    `residuals` (m, G) are sums over cells divided by the root of the count, so that a cell contributes (e r + v) / (1 - h) and
    (e^2 + v) / (1 - h)^2 to the two sums of (19), with e = r - fit and v the variation of residuals within the cell.
    `projections`, shape (m, K), are their products with the basis.
    """
    counts, n = positive(cells.counts)[:, None], cells.n[:, None]
    r, within = residuals[:, None], (cells.square_sums - residuals**2)[:, None]
    theta, risk = np.empty_like(projections), np.empty_like(projections)
    all_squares = cells.square_sums.sum(axis=1, keepdims=True)
    error, free = residuals, np.broadcast_to(counts[:, 0], (len(basis), basis.shape[2]))
    step = max(1, _BLOCK_CELLS // residuals.size)
    for start in range(0, basis.shape[1], step):
        terms = slice(start, start + step)
        vectors = basis[:, terms]
        errors, inverse = vectors * projections[:, terms, None], vectors * vectors
        for k in range(vectors.shape[1]):
            error = np.subtract(error, errors[:, k], out=errors[:, k])  # r - m_k
            free = np.subtract(free, inverse[:, k], out=inverse[:, k])  # N (1 - h), by (6)
        free = free.copy()
        total = all_squares
        excluded = inverse < (1 - MAX_LEVERAGE) * counts
        if excluded.any():
            inverse[excluded] = np.inf
            total = np.vecdot(cells.square_sums[:, None], ~excluded)
        np.divide(counts, inverse, out=inverse)  # 1 / (1 - h)
        theta[:, terms] = (total - np.vecdot(errors * r + within, inverse)) / n  # (8), by (7) and (19)
        squares = np.vecdot(errors * errors + within, inverse * inverse)
        mean_square = (squares - total) / n + 2 * theta[:, terms]  # of m_{-i}, by (19)
        risk[:, terms] = -theta[:, terms] + PENALTY * np.maximum(mean_square - theta[:, terms], 0.0)  # (9)
    return theta, risk
