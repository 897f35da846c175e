"""The interval of the mean absolute error of a rank series: left-out signs of the series, and what may speak against them.

The sign of the series with every row left out (:mod:`truecal.estimate.signs`) has limits of its own. It is missed where the curve
jumps or waves, so the upper limit is not below what means of neighbours find, nor below the upper limit of the root-mean-square
error times mean|m| / rms(m) of the fitted curve. Each of these is too large by chance as often as too small, and the largest of
them is taken: with the whole quantile each, 0.97 is covered at 90 % and n = 300 (68 worlds, 200 datasets each), with half of it
0.95, and intervals are a fifth shorter.
"""

from statistics import NormalDist

import numpy as np

from truecal.estimate.rank_series.basis import Cells
from truecal.estimate.rank_series.fit import Fit, pivot_of, shape_of
from truecal.estimate.signs import Signs
from truecal.types import Float64s

_RUNS = (8, 16, 32, 64)  # numbers of runs of cells whose means are tried beside the series
_OTHERS = 0.5  # of the quantile, for limits that are not those of the series' own signs


def absolute_interval(fit: Fit, level: float) -> tuple[Float64s, Float64s]:
    """Lower and upper limit of E|m| for every dataset of a fit, without regard to the point estimate."""
    cells, pivot, normal = fit.cells, pivot_of(fit), NormalDist()
    low, high = _signs(cells, fit.gap, np.broadcast_to(fit.leverage(), cells.score.shape)).sums().limits(level)
    z = _OTHERS * normal.inv_cdf(0.5 + level / 2)
    for runs in _RUNS:
        found, variance = _signs(cells, *_means(cells, runs)).plain()
        high = np.maximum(high, found + z * np.sqrt(variance))
    high = np.maximum(high, shape_of(fit, 1) * pivot.interval(2 * normal.cdf(z) - 1)[1])
    # Near calibration V is less certain than its standard error says: there the test inside the pivot decides.
    return np.where(pivot.interval(level)[0] > 0, low, 0.0), high


def _signs(cells: Cells, gap: Float64s, leverage: Float64s) -> Signs:
    count = np.broadcast_to(cells.count, cells.score.shape)
    return Signs(count, np.clip(cells.residual + count * cells.score, 0.0, count), cells.score, gap, leverage)


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
