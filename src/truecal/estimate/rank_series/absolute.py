"""The interval of the mean absolute error of a rank series: signs of the series, and of means of neighbours that follow jumps."""

import numpy as np

from truecal.estimate.rank_series.basis import Cells
from truecal.estimate.rank_series.fit import Fit
from truecal.estimate.signs import Signs
from truecal.types import Float64s

_RUNS = (8, 16, 32, 64)  # numbers of runs of cells whose means are tried beside the series


def absolute_interval(fit: Fit, level: float) -> tuple[Float64s, Float64s]:
    """Lower and upper limit of E|m| for every dataset of a fit, without regard to the point estimate."""
    cells = fit.cells
    sums = _signs(cells, fit.gap, np.broadcast_to(fit.leverage(), cells.score.shape)).sums()
    for runs in _RUNS:
        sums = sums.or_better(_signs(cells, *_means(cells, runs)).sums())
    return sums.limits(level)


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
