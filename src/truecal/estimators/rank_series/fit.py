"""The fit behind the rank series: a series in the rank of the score for every dataset, its length chosen by estimated risk.

Equation numbers are those of the derivation in docs/methods/rank-series.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from truecal.estimators.pivot import ENLARGED, Pivot, count_misses
from truecal.estimators.rank_series.basis import Basis, Cells, most_cells, rank_basis, rank_cells
from truecal.estimators.rank_series.runs import Beyond
from truecal.profile.profile import Profile
from truecal.types import Float64s, Indices

_PART = 1 << 15  # cells worked on together: what is touched again and again stays in cache
_LENGTHS = (
    1 << 13
)  # cells of series of several lengths at a time: numbers of more would come from the system, page by page
_ALONE = 1 << 18  # multiplications of a product that stays on one thread: waking another costs more
_LARGEST_LEVERAGE = 0.95 + 1e-9  # four different scores have 0.95 at both ends, where rounding must not decide
_FEW = 16  # terms: most datasets keep fewer
_EVEN = 1e-12  # risks this close are equal
GATE = 1.645  # an error beyond so many standard deviations of noise stands out: only there is it corrected by Jensen's inequality


@dataclass(frozen=True, eq=False)
class Fit:
    """The selected series of every dataset of a part of a batch."""

    cells: Cells
    basis: Basis
    beta: Float64s  # (m, K) coefficients
    chosen: Float64s  # (m, K) 1 for the terms kept
    theta: Float64s  # (K, m) the estimate of the squared error with every number of terms ...
    risk: Float64s  # (K, m) ... and what choosing that number is estimated to cost
    power: Float64s  # (m,) theta at the chosen number of terms
    gap: Float64s  # (m, G) fitted outcome rate minus score
    noise: Float64s  # (m,) b: the variance of theta grows by b * theta ...
    spread: Float64s  # (m,) e: ... + e * theta^2
    value: Float64s  # (m,) root, Jensen-corrected

    @cached_property
    def covariance(self) -> Float64s:
        """That of the coefficients if the model is calibrated, shape (m, K, K): the interval and the test rest on it."""
        return covariance_of(self.basis.by_dataset(), self.cells.chance, self.cells.n)

    def leverage(self) -> Float64s:
        """How much every row of a cell weighs in its own fit with the chosen terms, shape (m, G)."""
        return (self.chosen[:, None, :] @ self.basis.by_dataset() ** 2)[:, 0] / safe(self.cells.count)


def fits(profile: Profile) -> Iterator[Fit]:
    """The fits of a batch, in parts that bound the memory; that of a single dataset is made once and kept with its profile."""
    if profile.batch == 1:
        yield profile.once("rank series", fit_series)
        return
    step = max(1, _PART // most_cells(profile))
    if step >= profile.batch:
        yield fit_series(profile)
        return
    for start in range(0, profile.batch, step):
        yield fit_series(profile.take(slice(start, start + step)))


def fit_series(profile: Profile) -> Fit:
    """All in units in which a cell counts by the root of its rows: residuals r, fits and waves are plain vectors then.

    With e = r - fit, v the spread of residuals within a cell and h the leverage, the rows of a cell contribute
    (e r + v) / (1 - h) to the sum of r_i (r_i - m_{-i}), and (e^2 + v) / (1 - h)^2 to that of (r_i - m_{-i})^2.
    """
    return fit_cells(rank_cells(profile))


def fit_cells(cells: Cells) -> Fit:
    """The same for cells of ranks that are made already."""
    basis = rank_basis(cells)
    waves, n = basis.waves, cells.n
    mass = safe(cells.count)
    r = cells.residual / np.sqrt(mass)
    beta = np.vecdot(waves, r)  # (5) times sqrt(n), shape (K, m)
    theta, risk = _of_lengths(cells, waves, r, beta)
    best = (risk <= risk.min(axis=0) + _EVEN).argmax(axis=0)  # of equally good series the shortest, however sums round
    chosen = (np.arange(len(waves)) <= best[:, None]).astype(float)
    gap = ((beta.T * chosen)[:, None, :] @ basis.by_dataset())[:, 0] / np.sqrt(mass)
    power = theta[best, np.arange(len(best))]

    share = cells.share
    rate = np.clip(cells.score + gap, 0.0, 1.0)
    variance = rate * (1 - rate)
    square = gap * gap
    second = np.vecdot(share, square)
    flat = second <= 0
    positive = np.where(flat, 1.0, second)
    fourth = np.vecdot(share, (square / positive[:, None]) ** 2)
    # Equation (11)
    noise = np.where(flat, 4 * np.vecdot(share, variance), 4 * np.vecdot(share, square * variance) / positive) / n
    spread = np.where(flat, 0.0, (fourth - 1) / n)  # (12)

    stands_out = power > GATE * np.sqrt(2 * _least_span(cells, basis, best, power))
    jensen = 1 + np.minimum((noise / np.where(stands_out, power, 1.0) + spread) / 8, 0.25)  # (14)
    value = np.sqrt(np.maximum(power, 0.0))
    value = np.minimum(np.where(stands_out, value * jensen, value), 1.0)
    return Fit(cells, basis, beta.T / np.sqrt(n)[:, None], chosen, theta, risk, power, gap, noise, spread, value)


def _of_lengths(cells: Cells, waves: Float64s, r: Float64s, beta: Float64s) -> tuple[Float64s, Float64s]:
    """The estimate with every number of terms and its risk, shape (K, m): as many numbers at a time as stay in cache."""
    mass, n = safe(cells.count), cells.n
    within, squares = cells.square - r * r, cells.square.sum(axis=1)
    theta, risk = np.empty_like(beta), np.empty_like(beta)
    step = min(max(1, _LENGTHS // r.size), len(waves))
    lefts, scratch, frees = (np.empty((step, *like.shape)) for like in (r, r, mass))
    left, free = r, mass
    for start in range(0, len(waves), step):
        some = slice(start, start + step)
        terms = len(theta[some])
        e, product, inverse = lefts[:terms], scratch[:terms], frees[:terms]
        np.multiply(waves[some], beta[some, :, None], out=product)
        np.multiply(waves[some], waves[some], out=inverse)
        for k in range(terms):
            left = np.subtract(left, product[k], out=e[k])
            free = np.subtract(free, inverse[k], out=inverse[k])  # 1 less (6), times the rows of the cell
        free, total = free.copy(), squares
        if (heavy := inverse < (1 - _LARGEST_LEVERAGE) * mass).any():
            inverse[heavy] = np.inf  # cells that all but fit themselves say nothing
            total = np.vecdot(cells.square, ~heavy)
        np.divide(mass, inverse, out=inverse)
        np.multiply(e, r, out=product)
        product += within
        theta[some] = (total - np.vecdot(product, inverse)) / n  # (8), by (7) and (19)
        np.multiply(e, e, out=product)
        product += within
        inverse *= inverse
        length = (np.vecdot(product, inverse) - total) / n + 2 * theta[some]  # mean of m_{-i}^2, by (19)
        risk[some] = -theta[some] + 2 * np.maximum(length - theta[some], 0.0)  # (9)
    return theta, risk


def safe(count: Float64s) -> Float64s:
    """Counts to divide by."""
    return np.where(count > 0, count, 1.0)


def _least_span(cells: Cells, basis: Basis, best: Indices, power: Float64s) -> Float64s:
    """||V||_F^2 of the chosen terms under calibration, shape (m,): exact where it decides whether the error stands out.

    The waves have unit length, so ||V||_F is at most the largest chance of a cell times the root of their number, over n; an error
    beyond the gate at that bound needs no more, nor does one that is not positive.
    """
    span = (cells.chance.max(axis=1) / cells.n) ** 2 * (best + 1)
    open_ = (power > 0) & (power <= GATE * np.sqrt(2 * span))
    for some in (open_ & (best < _FEW), open_ & (best >= _FEW)):  # two groups: one long series would make all as long
        if some.any():
            at = np.flatnonzero(some)
            most = int(best[at].max()) + 1
            kept = (np.arange(most) <= best[at, None])[:, :, None]
            waves = basis.by_dataset(at)[:, :most] * kept
            span[at] = (covariance_of(waves, cells.chance[at], cells.n[at]) ** 2).sum(axis=(1, 2))
    return span


def covariance_of(waves: Float64s, variance: Float64s, n: Float64s) -> Float64s:
    """Covariance of beta (10) when the outcomes of a row of each cell have the given variance, shape (m, K, K)."""
    total = np.zeros((len(variance), waves.shape[1], waves.shape[1]))
    step = max(128, _ALONE // waves.shape[1] ** 2)
    for start in range(0, waves.shape[2], step):
        part = waves[:, :, start : start + step]
        total += (part * variance[:, None, start : start + step]) @ part.transpose(0, 2, 1)
    return total / n[:, None, None]


def shape_of(fit: Fit, norm: float) -> Float64s:
    """mean|m| / rms(m) for norm 1."""
    if norm == 2:
        return np.ones(len(fit.value))
    rms = np.sqrt((fit.cells.share * fit.gap**2).sum(axis=1))
    return np.where(rms > 0, (fit.cells.share * np.abs(fit.gap)).sum(axis=1) / np.where(rms > 0, rms, 1.0), 1.0)


def value_of(fit: Fit, norm: float) -> Float64s:
    """The error of every dataset of a fit."""
    return fit.value * shape_of(fit, norm)


def pivot_of(fit: Fit) -> Pivot:
    """The estimate with all terms, without selection, what runs of neighbours show beyond it, and its variance at any truth."""
    rate = np.clip(fit.cells.score + fit.gap, 0.0, 1.0)
    leverage = fit.leverage()
    shrunk = (rate + leverage / 2) / (1 + leverage)  # (15)
    fitted = covariance_of(fit.basis.by_dataset(), shrunk * (1 - shrunk), fit.cells.n)
    spans = [(covariance**2).sum(axis=(1, 2)) for covariance in (fit.covariance, fitted)]  # (16)
    beyond = Beyond(
        fit.cells, np.maximum(fit.cells.chance, shrunk * (1 - shrunk)), fit.theta[-1], 2 * np.maximum(*spans)
    )
    return Pivot(
        beyond.low,
        beyond.low_floor,
        fit.noise,
        fit.spread,
        beyond.most,
        *enlarged(fit.cells, fit.gap, fit.noise),
        unknown=_of_any_shape(fit.cells),
        misses=misses_of(fit.cells),
    )


def _of_any_shape(cells: Cells) -> Float64s:
    """The noise b of an error that is everywhere as large as an outcome varies, b_2 in (16a)."""
    share, chance = cells.share, cells.chance
    mean = np.vecdot(share, chance)
    return 4 * np.vecdot(share, chance * chance) / np.where(mean > 0, mean, 1.0) / cells.n


def misses_of(cells: Cells) -> Float64s:
    """Outcomes on the other side of 1/2 than their scores (16f)."""
    count = np.broadcast_to(cells.count, cells.score.shape)
    return count_misses(cells.score, count, np.clip(cells.residual + count * cells.score, 0.0, count))


def enlarged(cells: Cells, gap: Float64s, noise: Float64s) -> tuple[Float64s, Float64s]:
    """The squared error of a fitted curve, and its b were its gaps so many times as large (16a); rising, shape (nodes, m).

    Clusters make the noise of the curve as it is some times as large as that of rows, and so that of any other.
    """
    share, score, square = cells.share, cells.score, gap * gap
    fitted = np.vecdot(share, square)
    safe_fitted = np.where(fitted > 0, fitted, 1.0)
    rate = np.clip(score + np.array(ENLARGED)[:, None, None] * gap, 0.0, 1.0)
    of_rows = 4 * np.vecdot(share, square * rate * (1 - rate)) / safe_fitted / cells.n
    larger = np.maximum(noise / np.where(of_rows[0] > 0, of_rows[0], np.inf), 1.0)
    return fitted, np.maximum.accumulate([noise, *(larger * of_rows[1:])], axis=0)
