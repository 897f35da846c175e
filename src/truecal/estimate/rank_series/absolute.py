r"""The interval of the mean absolute error, from the sign of the gap with every row left out.

E|m| is the largest E[s(c) (y - c)] over functions s with values in [-1, 1], reached at s = sign m. With s_i from a fit that did
not see row i, V = mean s_i (y_i - c_i) has an expectation of at most E|m|, and exactly 0 for a calibrated model, whatever the fit.
The sign itself would make V skewed where the gap is nothing but noise: mostly a little positive, rarely far below 0. The lower
limit therefore takes a sign that fades: the gap over two standard deviations of the fit, cut at -1 and 1. There V is a quadratic
form of the noise, whose variance is twice that of a sum. The upper limit takes the sign, which a fit may miss where the gap is
small or jumps. What that is expected to cost, the mean of 2 |m| Phi(-|m| / sd), is added, and the best of several fits is taken:
the series itself and the means of neighbouring cells, which follow jumps.

Leaving out row i needs no second fit: m_{-i}(c_i) = (m - h r_i) / (1 - h), with h the leverage of the row and r_i = y_i - c_i; so a
cell has one sign for its ones and one for its zeros.
"""

from statistics import NormalDist

import numpy as np

from truecal.estimate.rank_series.basis import Cells
from truecal.estimate.rank_series.fit import LARGEST_LEVERAGE, Fit
from truecal.types import Float64s

_ROUNDING = 1e-9  # of a gap
_FADES = 2.0  # standard deviations of the fit within which a sign is not taken as known
_RUNS = (8, 16, 32, 64)  # numbers of runs of cells whose means are tried beside the series


def absolute_interval(fit: Fit, level: float) -> tuple[Float64s, Float64s]:
    """Lower and upper limit of E|m| for every dataset of a fit, without regard to the point estimate."""
    z = NormalDist().inv_cdf(0.5 + level / 2)
    cells = fit.cells
    leverage = np.broadcast_to(fit.leverage(), cells.score.shape)
    low = _lower(fit, leverage, z)
    best = _left_out(cells, fit.gap, leverage)
    for runs in _RUNS:
        best = np.maximum(best, _left_out(cells, *_means(cells, runs)))
    mean_square = cells.square.sum(axis=1) / cells.n
    error = np.sqrt(np.maximum(mean_square - best * best, 0.0) / cells.n)
    return low, best + z * error + _missed_signs(fit, leverage)


def _lower(fit: Fit, leverage: Float64s, z: float) -> Float64s:
    """V - z se with signs that fade towards a gap of 0."""
    cells, score = fit.cells, fit.cells.score
    rate = np.clip(score + fit.gap, 0.0, 1.0)
    shrunk = (rate + leverage / 2) / (1 + leverage)  # (15)
    reach = _FADES * np.sqrt(leverage * shrunk * (1 - shrunk))
    count, ones = _ones(cells)
    others = np.maximum(1 - leverage, 1 - LARGEST_LEVERAGE)
    value, square = np.zeros(len(cells.n)), np.zeros(len(cells.n))
    for rows, residual in ((ones, 1 - score), (count - ones, -score)):
        left_out = (fit.gap - leverage * residual) / others
        sign = np.where(reach > 0, np.clip(left_out / np.where(reach > 0, reach, 1.0), -1.0, 1.0), _sign(left_out))
        value += np.vecdot(rows, sign * residual)
        square += np.vecdot(rows, (sign * residual) ** 2 * np.where(np.abs(sign) < 1, 2.0, 1.0))
    value, square = value / cells.n, square / cells.n
    return np.maximum(value - z * np.sqrt(np.maximum(square - value * value, 0.0) / cells.n), 0.0)


def _ones(cells: Cells) -> tuple[Float64s, Float64s]:
    """Rows and rows with outcome 1 of every cell."""
    count = np.broadcast_to(cells.count, cells.score.shape)
    return count, np.clip(cells.residual + count * cells.score, 0.0, count)


def _left_out(cells: Cells, gap: Float64s, leverage: Float64s) -> Float64s:
    """V: mean of sign(m_{-i}) r_i over all rows."""
    count, ones = _ones(cells)
    score = cells.score
    gain = _sign(gap - leverage * (1 - score)) * ones * (1 - score)
    loss = _sign(gap + leverage * score) * (count - ones) * score
    return (gain - loss).sum(axis=1) / cells.n


def _sign(gap: Float64s) -> Float64s:
    """The sign, 0 where a gap is nothing but rounding."""
    return np.where(np.abs(gap) > _ROUNDING, np.sign(gap), 0.0)


def _means(cells: Cells, runs: int) -> tuple[Float64s, Float64s]:
    """Mean residual of runs of neighbouring cells of about equal mass, and the leverage of a row in it, cell by cell."""
    count = np.broadcast_to(cells.count, cells.score.shape)
    rank = np.broadcast_to(cells.rank, cells.score.shape)  # ties share theirs, so no run depends on their order
    run = np.clip((rank * runs).astype(np.intp), 0, runs - 1)
    code = run + runs * np.arange(len(count))[:, None]
    rows, residual = (
        np.bincount(code.ravel(), values.ravel(), runs * len(count)) for values in (count, cells.residual)
    )
    safe = np.where(rows > 0, rows, 1.0)
    return (residual / safe)[code], (1.0 / safe)[code]


def _missed_signs(fit: Fit, leverage: Float64s) -> Float64s:
    """What wrong signs are expected to cost: mean of 2 |m| Phi(-|m| / sd), sd that of the fit in every cell."""
    from scipy.special import ndtr

    rate = np.clip(fit.cells.score + fit.gap, 0.0, 1.0)
    deviation = np.sqrt(leverage * rate * (1 - rate))
    size = np.abs(fit.gap)
    ratio = size / np.where(deviation > 0, deviation, 1.0)
    missed = np.where(deviation > 0, 2 * size * ndtr(-ratio), 0.0)
    return (fit.cells.share * missed).sum(axis=1)
