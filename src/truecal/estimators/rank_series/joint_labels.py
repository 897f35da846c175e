"""One test of calibration for all classes at once: labels redrawn from the probabilities of their rows.

The statistic is the weighted sum over classes of that of :meth:`RankSeries.test`. Redrawing one label per row keeps the outcomes of
different classes tied together as they are, so the p-value is right however many classes there are and however rare.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from truecal.estimators.rank_series.basis import rank_basis, rank_cells
from truecal.estimators.rank_series.fit import coefficient_covariance, smooth_test_statistic
from truecal.estimators.resampling.cells import cell_places, collapse
from truecal.lenses.sample import Sample
from truecal.special import positive
from truecal.types import Float64s, Indices

_CELLS = 1024  # as many as the rank series makes of a dataset
_ROUNDING = 1e-12


def label_test(samples: Sequence[Sample], shares: Float64s, resamples: int, rng: np.random.Generator) -> float:
    """p-value of calibration in all classes; the samples are those of a class-wise lens on independent rows."""
    labels = _redrawn(np.stack([sample.scores.astype(np.float64) for sample in samples], axis=1), resamples, rng)
    order = np.argsort(labels, axis=None, kind="stable")
    draw, row = np.divmod(order, labels.shape[1])
    ends = np.searchsorted(labels.ravel()[order], np.arange(len(samples) + 1))
    seen, drawn = 0.0, np.zeros(resamples)
    for k, (sample, share) in enumerate(zip(samples, shares, strict=True)):
        if share > 0:
            here = slice(ends[k], ends[k + 1])
            own, redrawn = _statistics(sample, draw[here], row[here], resamples)
            seen, drawn = seen + share * own, drawn + share * redrawn
    return float(1 + np.count_nonzero(drawn >= seen - _ROUNDING * abs(seen))) / (1 + resamples)


def _redrawn(probs: Float64s, resamples: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Labels drawn from the probabilities of every row, shape (resamples, n)."""
    n, classes = probs.shape
    ends = np.cumsum(probs, axis=1)
    ends = ends / ends[:, -1:] + np.arange(n)[:, None]  # row i searches between i and i + 1
    u = rng.random((resamples, n)) + np.arange(n)
    place = np.searchsorted(ends.ravel(), u, side="right")
    return np.clip(place - np.arange(n) * classes, 0, classes - 1)


def _statistics(sample: Sample, draw: Indices, row: Indices, resamples: int) -> tuple[float, Float64s]:
    """The statistic of one class, as seen and in every redraw (`row` has the class as its label in redraw `draw`)."""
    profile = sample.with_units(np.arange(len(sample))).profile
    order = sample.order
    cells = collapse(profile, _CELLS)
    assert cells.weights is not None
    places = cell_places(profile, _CELLS)
    weight = np.ones(len(sample)) if sample.weights is None else sample.weights
    weight = weight * float(profile.size[0] / profile.total[0])
    cell = np.repeat(np.arange(len(places) - 1), np.diff(places))
    if sample.weights is not None:
        kept = np.unique(cell[profile.weights[0] > 0])  # type: ignore[index]  # cells of positive weight
        cell = np.searchsorted(kept, cell)
    of_row = np.empty(len(sample), np.intp)
    of_row[order] = cell
    ranks = rank_cells(cells)
    waves = rank_basis(ranks)[0]  # (K, G)
    covariance = coefficient_covariance(waves[None], ranks.null_variances, ranks.n)[0]
    if not (covariance.diagonal() > 0).any():
        return 0.0, np.zeros(resamples)
    count, score = ranks.counts[0], ranks.scores[0]
    inside = weight[row] > 0
    code = draw[inside] * len(count) + of_row[row[inside]]
    ones = np.bincount(code, weight[row[inside]], resamples * len(count)).reshape(resamples, -1)
    scale = np.sqrt(positive(count) * ranks.n[0])
    seen = ranks.residual_sums[0] / scale @ waves.T
    drawn = (ones - count * score) / scale @ waves.T
    return float(smooth_test_statistic(seen, covariance)), smooth_test_statistic(drawn, covariance)
