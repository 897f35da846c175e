"""The interval of the mean absolute calibration error of a rank series.

The lower limit comes from leave-one-out signs, the upper one from the root-mean-square error. Both use the series with
all its terms: leave-one-out signs give a lower bound only if row i is also excluded from the choice of the terms. See
"The interval of norm 1" in docs/methods/rank-series.md.
"""

from statistics import NormalDist

import numpy as np

from truecal.estimators.rank_series.fit import MAX_LEVERAGE, SeriesFit
from truecal.estimators.rank_series.interval import series_pivot
from truecal.types import Float64s, Indices


def absolute_interval(fit: SeriesFit, level: float) -> tuple[Float64s, Float64s]:
    """Compute the limits of E|m| for every dataset, without regard to the point estimate."""
    pivot = series_pivot(fit)
    assert pivot.unexpected is not None
    lower, upper = pivot.interval(level)
    order = np.full(len(fit.order), fit.basis.shape[1])
    mean, variance = _signed_mean(fit, order)
    signed = np.maximum(mean - NormalDist().inv_cdf(0.5 + level / 2) * np.sqrt(variance), 0.0)
    ratio = fit.shape_ratio(1, order)
    return np.where(lower > 0, signed, 0.0), pivot.unexpected.raise_limit(ratio * upper, level)  # (24), (25)


def _signed_mean(fit: SeriesFit, order: Indices) -> tuple[Float64s, Float64s]:
    """Compute V of (23), the mean of residuals times expected signs of the leave-one-out gap, and its variance."""
    from scipy.special import ndtr

    cells, counts = fit.cells, fit.cells.dataset_counts
    gap, leverage = fit.gap_of(order), fit.leverage_of(order)
    rate = np.clip(cells.scores + gap, 0.0, 1.0)
    shrunk = (rate + leverage / 2) / (1 + leverage)  # (15)
    deviation = np.sqrt(leverage * shrunk * (1 - shrunk))
    usable = leverage <= MAX_LEVERAGE
    ones = np.clip(cells.residual_sums + counts * cells.scores, 0.0, counts)
    total, square = np.zeros(len(cells.n)), np.zeros(len(cells.n))
    for rows, residual in ((ones, 1 - cells.scores), (counts - ones, -cells.scores)):
        others = np.where(usable, (gap - leverage * residual) / np.where(usable, 1 - leverage, 1.0), 0.0)  # (7)
        sign = 2 * ndtr(others / np.where(deviation > 0, deviation, np.finfo(float).tiny)) - 1
        product = sign * residual
        total += np.vecdot(rows, product)
        square += np.vecdot(rows, product**2)
    mean = total / cells.n
    return mean, np.maximum(square / cells.n - mean**2, 0.0) / cells.n
