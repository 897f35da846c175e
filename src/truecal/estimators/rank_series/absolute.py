"""The interval of the mean absolute error of a rank series: left-out signs of the series, and what may speak against them.

Lower limit. Left-out signs (`estimators/signs.py`) never flatter if the row left out had no part in choosing the fit. Here
it had: the number of terms is the best of many by left-out fits, so V of that series is too large, most of all where an error in
few places needs many terms. With twice as many terms as were chosen V is free of that, and loses little.

Upper limit. Signs are missed where the curve jumps or waves, so it is not below what means of neighbours find, nor below the upper
limit of the root-mean-square error times mean|m| / rms(m) of the fitted curve, a ratio that hardly depends on such places. Each of
these is too large by chance as often as too small, and the largest of them is taken: the means, of which there are four, have half
the quantile, and so has the root-mean-square error where it may be 0 and is mostly noise. The largest of several misses less often
than one of them, so the lower limit has more of the misses that a level allows, unless all signs are known: then there is one upper
limit, and both have half. docs/methods/rank-series.md says what was measured.
"""

from dataclasses import replace
from statistics import NormalDist

import numpy as np

from truecal.estimators.pivot import at_least
from truecal.estimators.rank_series.basis import Cells
from truecal.estimators.rank_series.fit import GATE, Fit, misses_of, pivot_of, safe, shape_of
from truecal.estimators.signs import Signs
from truecal.types import Float64s

_RUNS = (8, 16, 32, 64)  # numbers of runs of cells whose means are tried beside the series
_SEVERAL = 0.5  # of the quantile, for a limit that is one of several
_LOWER = 0.2  # of the misses allowed, what the lower limit has beyond half of them ...
_DOUBT = 0.1  # ... where missed signs are expected to cost so many standard errors or more; less in proportion
_LONGER = 2  # times as many terms as were chosen ...
_FADES = 1.0  # ... and the standard deviations within which their sign is not taken as known


def absolute_interval(fit: Fit, level: float) -> tuple[Float64s, Float64s]:
    """Lower and upper limit of E|m| for every dataset of a fit, without regard to the point estimate."""
    from scipy.special import ndtri

    cells, pivot, normal = fit.cells, pivot_of(fit), NormalDist()
    z = normal.inv_cdf(0.5 + level / 2)
    noise = np.sqrt(pivot.floor)
    own = _signs(cells, fit.gap, fit.leverage()).sums()
    doubt = own.missed / (_DOUBT * np.sqrt(np.maximum(own.best_variance, np.finfo(float).tiny)))
    z_low = -ndtri((0.5 + _LOWER * np.minimum(doubt, 1.0)) * (1 - level))
    found, variance = _signs(cells, *_longer(fit), _FADES).left_out(fades=True)
    # Near calibration V is less certain than its standard error says: there the test inside the pivot decides.
    low = np.where(pivot.centre > z_low * noise, np.maximum(found - z_low * np.sqrt(variance), 0.0), 0.0)
    high = own.best + z * np.sqrt(own.best_variance) + own.missed
    for runs in _RUNS:
        found, variance = _signs(cells, *_means(cells, runs)).left_out(fades=False)
        high = np.maximum(high, found + _SEVERAL * z * np.sqrt(variance))
    whole, half = (pivot.interval(part)[1] for part in (level, 2 * normal.cdf(_SEVERAL * z) - 1))
    high = np.maximum(high, shape_of(fit, 1) * np.where(pivot.centre > GATE * noise, whole, half))
    return low, at_least(high, misses_of(cells), level)


def _signs(cells: Cells, gap: Float64s, leverage: Float64s, fades: float = 2.0) -> Signs:
    shape = cells.score.shape
    count = np.broadcast_to(cells.count, shape)
    ones = np.clip(cells.residual + count * cells.score, 0.0, count)
    return Signs(count, ones, cells.score, gap, np.broadcast_to(leverage, shape), fades)


def _longer(fit: Fit) -> tuple[Float64s, Float64s]:
    """Gap and leverage of the series with twice as many terms, cell by cell."""
    kept = (np.arange(fit.beta.shape[1]) < _LONGER * fit.chosen.sum(axis=1)[:, None]).astype(float)
    longer = replace(fit, chosen=kept)
    fitted = ((fit.beta * kept)[:, None, :] @ fit.basis.by_dataset())[:, 0]
    return fitted * np.sqrt(fit.cells.n[:, None] / safe(fit.cells.count)), longer.leverage()


def _means(cells: Cells, runs: int) -> tuple[Float64s, Float64s]:
    """Mean residual of runs of neighbouring cells of about equal mass, and the leverage of a row in it, cell by cell."""
    count = np.broadcast_to(cells.count, cells.score.shape)
    rank = np.broadcast_to(cells.rank, cells.score.shape)  # ties share theirs, so no run depends on their order
    run = np.clip((rank * runs).astype(np.intp), 0, runs - 1)
    code = run + runs * np.arange(len(count))[:, None]
    rows, residual = (
        np.bincount(code.ravel(), values.ravel(), runs * len(count)) for values in (count, cells.residual)
    )
    held = np.where(rows > 0, rows, 1.0)
    return (residual / held)[code], (1.0 / held)[code]
