"""Redraws: outcomes of a perfectly calibrated model with the scores at hand, and p-values from them.

One rule for all: the number of ones of a cell is drawn exactly while its variance is at most `NORMAL_VARIANCE`, and as a
normal above.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from truecal import options
from truecal.profile.profile import Profile
from truecal.resampling.cells import collapse, profile_of, share_scores
from truecal.special import symmetric_root
from truecal.types import Float64s, Indices

# Measured on six worlds by 20,000 redraws each: a test at 5 % (1 %) by a null with this variance rejects 4.6 to 5.0 %
# (0.9 to 1.1 %) of exact redraws. From 1 to 100 the variance made no difference beyond the noise of that measurement.
NORMAL_VARIANCE = 9.0
REDRAWS = 199  # to compare an estimate with calibration, and before the number of redraws adapts
_SETTLED = 30  # of the first redraws; then p > 0.15, beyond every level that is used
_CELLS_AT_ONCE = 1 << 20  # redrawn cells held at a time (a few arrays of 8 MiB)
_ROUNDING = 1e-12  # derived: statistics that agree to rounding count as equal
_COMPARED_EVENTS = 32  # up to so many events, comparing with each is quicker than a search
Statistic = Callable[[Profile], Float64s]


def redraw_ones(
    counts: Float64s, scores: Float64s, variances: Float64s, redraws: int, rng: np.random.Generator
) -> Float64s:
    """Draw the surplus of ones over their expected number in every cell, shape (redraws, cells).

    `counts` rows of mean `scores` in each cell, whose number of ones has the `variances` sum c (1 - c). Under importance
    weights a cell of fractional size stands for whole rows, scaled.
    """
    if (counts == 1).all():
        return (rng.random((redraws, len(counts))) < scores) - scores
    surplus = np.empty((len(counts), redraws))
    large = variances > NORMAL_VARIANCE
    surplus[large] = rng.standard_normal((int(large.sum()), redraws)) * np.sqrt(variances[large])[:, None]
    rows = np.rint(counts[~large])[:, None]
    chances = np.clip(scores[~large], 0.0, 1.0)[:, None]  # a mean of scores may round past 1
    scale = np.divide(counts[~large][:, None], rows, out=np.zeros_like(rows), where=rows > 0)
    # Draws of one cell are consecutive, so that numpy sets its sampler up once per cell.
    ones = rng.binomial(rows.astype(np.int64), chances, (len(rows), redraws))
    surplus[~large] = scale * (ones - rows * chances)
    return surplus.T


class LinearRedraws:
    """Redraws of linear functions of the ones of cells, shape (functions, cells).

    Cells of large variance are not drawn one by one: what they add to the functions is normal with their covariance.
    """

    def __init__(self, counts: Float64s, scores: Float64s, variances: Float64s, functions: Float64s) -> None:
        large = variances > NORMAL_VARIANCE
        self._counts, self._scores, self._variances = counts[~large], scores[~large], variances[~large]
        self._functions = np.ascontiguousarray(functions[:, ~large].T)
        common = functions[:, large] * np.sqrt(variances[large])
        self._root = symmetric_root(common @ common.T) if large.any() else None

    def draw(self, redraws: int, rng: np.random.Generator) -> Float64s:
        """Draw values of the functions, less their means, shape (redraws, functions)."""
        values = np.zeros((redraws, self._functions.shape[1]))
        for part in _blocks(redraws, len(self._counts)):
            size = part.stop - part.start
            values[part] = redraw_ones(self._counts, self._scores, self._variances, size, rng) @ self._functions
        if self._root is not None:
            values += rng.standard_normal(values.shape) @ self._root
        return values


def label_ends(columns: Float64s) -> Float64s:
    """Add up the probabilities of every row, shape (events, n), to ends of intervals of the unit interval."""
    ends = np.cumsum(columns, axis=0)
    ends /= ends[-1]
    return ends


def redraw_labels(ends: Float64s, redraws: int, rng: np.random.Generator) -> Indices:
    """Draw one label per row, shape (redraws, n), from the `label_ends` of its probabilities."""
    events, n = ends.shape
    u = rng.random((redraws, n))
    if events <= _COMPARED_EVENTS:
        labels = np.zeros(u.shape, np.intp)
        for end in ends[:-1]:
            labels += u >= end
        return labels
    # Rows are searched side by side, each in its own unit interval.
    position = np.searchsorted((ends + np.arange(n)).T.ravel(), u + np.arange(n), side="right")
    return np.clip(position - np.arange(n) * events, 0, events - 1)


class NullDistribution:
    """Statistics of redraws (or sign flips), drawn as they are needed and kept for further datasets.

    199 are drawn first. Where 30 of them reach the statistic, p is settled above 0.15; otherwise it rests on all redraws,
    so a test at a level below 0.15 rejects as often as without stopping.
    """

    def __init__(self, draw: Callable[[int, np.random.Generator], Float64s]) -> None:
        self.draw = draw
        self.drawn = np.zeros(0)

    def p_value(self, statistic: float, redraws: int, rng: np.random.Generator) -> float:
        """Compute (1 + redraws that reach the statistic) / (1 + redraws)."""
        limit = statistic - _ROUNDING * min(abs(statistic), np.finfo(float).max)
        first, exceedances, number = min(REDRAWS, redraws), 0, 0
        for number in dict.fromkeys((first, redraws)):
            if len(self.drawn) < number:
                self.drawn = np.append(self.drawn, self.draw(number - len(self.drawn), rng))
            exceedances = int(np.count_nonzero(self.drawn[:number] >= limit))
            if exceedances >= _SETTLED:
                break
        return (1 + exceedances) / (1 + number)


@dataclass(frozen=True, eq=False)
class Redrawn:
    """Statistics of every dataset and their p-values under calibration, shape (batch,)."""

    statistic: Float64s
    p_value: Float64s


def against_redraws(
    profile: Profile, statistic: Statistic, *, resamples: int = 999, rng: int | np.random.Generator = 0
) -> Redrawn:
    """Compare a statistic with its distribution when outcomes are redrawn from the scores: y* ~ Bernoulli(c).

    The p-value is valid at any n, with ties or without. Datasets of a batch that share their scores share the redraws. A
    statistic is a function of a Profile, large when calibration fails; it is given one row per distinct score (above
    4096 of them: per cell of neighbouring scores).
    """
    options.resamples(resamples)
    generator = options.generator(rng)
    statistics, p = np.empty(profile.batch), np.empty(profile.batch)
    for datasets, part in share_scores(profile):
        cells = collapse(part)
        statistics[datasets] = statistic(cells)
        null = NullDistribution(partial(_redrawn_statistics, cells, statistic))
        p[datasets] = [null.p_value(float(value), resamples, generator) for value in statistics[datasets]]
    return Redrawn(statistics, p)


def _redrawn_statistics(cells: Profile, statistic: Statistic, redraws: int, rng: np.random.Generator) -> Float64s:
    assert cells.weights is not None
    count, score = cells.weights[0], cells.scores[0].astype(np.float64)
    values = []
    for part in _blocks(redraws, len(count)):
        surplus = redraw_ones(count, score, count * score * (1 - score), part.stop - part.start, rng)
        # Only the normal that replaces large cells can leave the range.
        ones = np.clip(surplus + count * score, 0.0, count)
        values.append(statistic(profile_of(cells, count - ones, ones)))
    return np.concatenate(values)


def _blocks(redraws: int, cells: int) -> Iterator[slice]:
    """Split redraws into blocks of bounded memory."""
    step = max(1, _CELLS_AT_ONCE // max(cells, 1))
    return (slice(start, min(start + step, redraws)) for start in range(0, redraws, step))
