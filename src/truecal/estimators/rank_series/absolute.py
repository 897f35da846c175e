"""The interval of the mean absolute calibration error of a rank series, from leave-one-out signs.

Leave-one-out signs (`truecal.estimators.signs`) give a lower bound only if row i is also excluded from model selection. The
series with twice the chosen number of terms is used there, whose further terms were not selected. Signs are wrong where
the curve jumps or waves, so the upper limit is the largest of those from signs of the series, from signs of window
means, and from the root-mean-square error times mean|m| / rms(m). See "The interval of norm 1" in
docs/methods/rank-series.md.
"""

from statistics import NormalDist

import numpy as np

from truecal.estimators.rank_series.basis import RankCells
from truecal.estimators.rank_series.fit import SIGNIFICANCE_GATE, SeriesFit
from truecal.estimators.rank_series.interval import Pivot, UnexpectedOutcomes, series_pivot
from truecal.estimators.signs import SignBounds, SignCells
from truecal.special import positive
from truecal.types import Float64s

# All tuned on 88 worlds of the kinds of tests/estimators/random_worlds.py; effects in docs/methods/rank-series.md.
_WINDOWS = (8, 16, 32, 64)  # numbers of windows whose means give signs
_COMPETING_QUANTILE = 0.5  # share of z in a limit that is one of several
_LOWER_EXTRA_SHARE = 0.2  # share of alpha in the lower tail beyond one half ...
_FULL_SHARE_COST = 0.1  # ... where wrong signs cost so many standard errors or more; less in proportion
_ORDER_FACTOR = 2  # terms of the lower bound's series for every chosen one ...
_LOWER_FADE = 1.0  # ... and the standard deviations within which its signs fade


def absolute_interval(fit: SeriesFit, level: float) -> tuple[Float64s, Float64s]:
    """Compute the limits of E|m| for every dataset, without regard to the point estimate."""
    pivot = series_pivot(fit)
    bounds = _sign_cells(fit.cells, fit.gap, fit.leverage).bounds()
    lower, upper = _lower_limit(fit, pivot, bounds, level), _upper_limit(fit, pivot, bounds, level)
    return lower, UnexpectedOutcomes.of_cells(fit.cells).raise_limit(upper, level)


def _lower_limit(fit: SeriesFit, pivot: Pivot, bounds: SignBounds, level: float) -> Float64s:
    """Compute V - z se of the longer series, 0 unless the pivot excludes calibration."""
    from scipy.special import ndtri

    standard_error = np.sqrt(np.maximum(bounds.plain_variance, np.finfo(float).tiny))
    doubt = np.minimum(bounds.cost / (_FULL_SHARE_COST * standard_error), 1.0)
    z = -ndtri((0.5 + _LOWER_EXTRA_SHARE * doubt) * (1 - level))
    order = _ORDER_FACTOR * fit.order
    cells = _sign_cells(fit.cells, fit.gap_of(order), fit.leverage_of(order), _LOWER_FADE)
    mean, variance = cells.mean_product(fading=True)
    rejected = pivot.center > z * np.sqrt(pivot.null_variance)
    return np.where(rejected, np.maximum(mean - z * np.sqrt(variance), 0.0), 0.0)


def _upper_limit(fit: SeriesFit, pivot: Pivot, bounds: SignBounds, level: float) -> Float64s:
    """Compute the largest of the limits by signs of the series, by signs of windows and by the pivot."""
    normal = NormalDist()
    z = normal.inv_cdf(0.5 + level / 2)
    upper = bounds.plain + z * np.sqrt(bounds.plain_variance) + bounds.cost
    for windows in _WINDOWS:
        mean, variance = _sign_cells(fit.cells, *_window_means(fit.cells, windows)).mean_product(fading=False)
        upper = np.maximum(upper, mean + _COMPETING_QUANTILE * z * np.sqrt(variance))
    lower_level = 2 * normal.cdf(_COMPETING_QUANTILE * z) - 1
    significant = pivot.center > SIGNIFICANCE_GATE * np.sqrt(pivot.null_variance)
    rms_limit = np.where(significant, pivot.interval(level)[1], pivot.interval(lower_level)[1])
    return np.maximum(upper, fit.shape_ratio(1) * rms_limit)


def _sign_cells(cells: RankCells, gap: Float64s, leverage: Float64s, fade: float = 2.0) -> SignCells:
    counts = cells.dataset_counts
    ones = np.clip(cells.residual_sums + counts * cells.scores, 0.0, counts)
    return SignCells(counts, ones, cells.scores, gap, np.broadcast_to(leverage, counts.shape), fade)


def _window_means(cells: RankCells, windows: int) -> tuple[Float64s, Float64s]:
    """Compute the mean residual of the window of every cell, and the leverage of a row in it, shape (m, G) each."""
    counts = cells.dataset_counts
    # Ties share their rank, so that no window depends on their order.
    window = np.clip((cells.dataset_ranks * windows).astype(np.intp), 0, windows - 1)
    code = window + windows * np.arange(len(counts))[:, None]
    rows, residuals = (
        np.bincount(code.ravel(), values.ravel(), windows * len(counts)).astype(float)
        for values in (counts, cells.residual_sums)
    )
    divisors = positive(rows)
    return (residuals / divisors)[code], (1.0 / divisors)[code]
