"""Draws: resamples of rows (counts of a cell and an outcome), of whole units, and outcomes redrawn under calibration.

One rule for all draws: the number of rows of a kind, or of ones of a cell, is drawn exactly while its variance is at most
`NORMAL_VARIANCE`, and as a normal above. For linear functions of cells the variance is that of a window of neighbouring cells.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from truecal import options
from truecal.errors import InputError
from truecal.profile.binning import Cut
from truecal.profile.profile import Profile
from truecal.profile.rows import Sum
from truecal.resampling.cells import collapse, profile_of, share_scores
from truecal.special import symmetric_root
from truecal.types import Float64s, Indices

_ROWS_PER_KIND = 8  # by choice: up to so many it is quicker to draw rows one by one than to draw each kind's count
_AT_ONCE = 1 << 16  # derived: resampled cells evaluated at a time, which fit in cache
# By choice. Measured on six worlds by 20,000 redraws each: a test at 5 % (1 %) by a null with this variance rejects 4.6 to 5.0 %
# (0.9 to 1.1 %) of exact redraws. From 1 to 100 the variance made no difference beyond the noise of that measurement.
NORMAL_VARIANCE = 9.0
# A linear function takes neighbouring cells together, so their variance is that of a window of so large a share of the cells; by
# choice. Measured on eight worlds (rare, saturated, skewed, tied scores; n = 300 to 12,000) by 20,000 redraws each: a test at 5 %
# (1 %) rejects 4.4 to 5.4 % (0.8 to 1.2 %) of exact redraws, and 4.5 to 5.5 % (0.9 to 1.3 %) with windows of 16 cells.
_WINDOW_SHARE = 1 / 16
# derived: p-values in steps of 0.005; to compare an estimate with calibration, and before the number of redraws adapts
REDRAWS = 199
_SETTLED = 30  # derived: of the first redraws; then p > 0.15, beyond every level that is used
# tuned on run time: cells of 1000 redraws whose arrays stay in cache take three quarters of the time of 1024
_BINOMIAL_CELLS = 64
_REDRAWN_AT_ONCE = 1 << 20  # derived: redrawn cells held at a time (a few arrays of 8 MiB)
_ROUNDING = 1e-12  # derived: statistics that agree to rounding count as equal
_COMPARED_EVENTS = 32  # by choice: up to so many events, comparing with each is quicker than a search
Statistic = Callable[[Profile], Float64s]


# ----------------------------------------------------------------------------------------------------
# Resamples of rows and of units


@dataclass(frozen=True, eq=False)
class CellBatch:
    """Rows, outcomes of 1 and sums of scores in each cell of several datasets, shape (datasets, cells) each."""

    rows: Float64s
    ones: Float64s
    score_sums: Float64s


class RowSums:
    """Zeros and ones of the independent rows of one dataset in the cells between consecutive cuts, with their sums of scores.

    Cells without weight are left out; no row in any cell raises InputError. Importance weights are scaled to `n`, the effective
    number of rows. `rows`, `zeros`, `ones` and the mean `scores` have shape (cells,). A zero and a one are added to what
    resamples are drawn from, spread over the cells like the rows: without them, resamples of a model without errors would all be
    equal.
    """

    def __init__(self, profile: Profile, cut: Cut) -> None:
        """Sum rows, ones and scores of the cells of a cut that have weight, scaled to the sample size; refuse a cut without any.

        Each kind, a cell and an outcome, gets a pseudo-row of the weight rows / n at the mean score of the cell, so that
        resamples can hold outcomes that were not seen.
        """
        sums = np.empty((5, cut.below.shape[1] - 1))
        names: tuple[Sum, ...] = ("w", "c", "y", "cc", "cy")
        for name, cell_sums in zip(names, sums, strict=True):
            cell_sums[:] = np.diff(profile.sums(name, cut))[0]
        sums = sums[:, sums[0] > 0]
        if not sums.size:
            raise InputError("no row lies in any bin of the estimator: nothing is judged; lower its threshold")
        self.n = max(1, round(float(profile.size[0])))
        self.rows, score_sums, self.ones, self._squares, products = sums * (self.n / sums[0].sum())
        self.zeros = np.maximum(self.rows - self.ones, 0.0)
        self.rows = self.zeros + self.ones
        self.observed = CellBatch(self.rows[None], self.ones[None], score_sums[None])
        self.scores = np.clip(score_sums / self.rows, 0.0, 1.0)  # a difference of prefix sums may round past 1
        pseudo = self.rows / self.n
        self._counts = np.concatenate([self.zeros + pseudo, self.ones + pseudo])  # of the zeros, then of the ones
        kind_sums = np.concatenate([score_sums - products, products])
        self._means = (kind_sums + np.tile(pseudo * self.scores, 2)) / self._counts

    def drawn_from(self) -> CellBatch:
        """Return what resamples are drawn from, (1, cells): the cells with both pseudo-rows, scaled to the rows of each cell."""
        scale = np.tile(self.rows / self._counts.reshape(2, -1).sum(axis=0), 2)
        return self._batch((self._counts * scale)[None])

    def draw(self, resamples: int, rng: np.random.Generator) -> Iterator[CellBatch]:
        """Draw resamples of `n` rows with replacement; yield them in blocks of bounded memory, shape (block, cells).

        A kind is a cell and an outcome; how many rows each gets is drawn by `multinomial`, and all have its mean score. The
        variance of scores within the kinds of a cell, which moves its mean score a little, is added to the sum of scores of the
        cell as a normal of this variance times the rows drawn.
        """
        kinds = np.concatenate([self.zeros, self.ones]) * self._means**2
        within = np.maximum(self._squares - kinds.reshape(2, -1).sum(axis=0), 0.0) / self.rows
        for block in blocks(resamples, len(self.rows)):
            batch = self._batch(multinomial(self._counts, self.n, block.stop - block.start, rng))
            noise = rng.standard_normal(batch.rows.shape) * np.sqrt(within * batch.rows) if within.any() else 0.0
            yield CellBatch(batch.rows, batch.ones, batch.score_sums + noise)

    def redraw(self, redraws: int, rng: np.random.Generator) -> CellBatch:
        """Draw outcomes of a calibrated model with these scores: `ones` (redraws, cells); rows and score sums stay (1, cells)."""
        sums = self.observed.score_sums
        surplus = redraw_ones(self.rows, self.scores, np.maximum(sums[0] - self._squares, 0.0), redraws, rng)
        return CellBatch(self.rows[None], np.clip(sums + surplus, 0.0, self.rows), sums)

    def _batch(self, counts: Float64s) -> CellBatch:
        """Sum cells for counts of kinds, shape (resamples, 2 x cells): zeros of every cell first, then ones.

        Every row of a kind has the mean score of that kind.
        """
        zeros, ones = np.split(counts, 2, axis=1)
        zero_score, one_score = np.split(self._means, 2)
        return CellBatch(zeros + ones, ones, zeros * zero_score + ones * one_score)


def blocks(count: int, size: int, at_once: int = _AT_ONCE) -> Iterator[slice]:
    """Yield consecutive slices of `count` draws of `size` numbers each: of at most `at_once` numbers, and at least one draw.

    >>> list(blocks(5, 10, at_once=20))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, at_once // max(size, 1))
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def block_sizes(resamples: int, cells: int, at_once: int = _AT_ONCE) -> Iterator[int]:
    """Yield the sizes of `blocks` of resamples of at most `at_once` resampled cells, at least one resample each."""
    for block in blocks(resamples, cells, at_once):
        yield block.stop - block.start


def multinomial(chances: Float64s, n: int, resamples: int, rng: np.random.Generator) -> Float64s:
    """Draw how many of `n` rows are of each kind, shape (resamples, kinds), with `chances` of shape (kinds,) in any scale.

    Kinds whose number has a large variance (above 9) are drawn as normals with the covariance of the multinomial, given the
    others: their counts are fractions, and are cut off at 0.

    >>> multinomial(np.array([0.5, 0.5]), 10, 3, np.random.default_rng(0)).sum(axis=1)
    array([10., 10., 10.])
    """
    chances = chances / chances.sum()
    if n <= _ROWS_PER_KIND * len(chances):
        ends = np.cumsum(chances)
        kind = np.searchsorted(ends, rng.random((resamples, n)) * ends[-1], side="right")
        return _tabulate(kind, len(chances))
    large = n * chances * (1 - chances) > NORMAL_VARIANCE
    if large.sum() < 2:
        return rng.multinomial(n, chances, resamples).astype(np.float64)
    counts = np.empty((resamples, len(chances)))
    rare = chances[~large]
    drawn = rng.multinomial(n, np.append(rare, max(1 - rare.sum(), 0.0)), resamples).astype(np.float64)
    counts[:, ~large], rows = drawn[:, :-1], drawn[:, -1:]
    shares = chances[large] / chances[large].sum()
    noise = rng.standard_normal((resamples, len(shares))) * np.sqrt(shares)
    noise -= shares * noise.sum(axis=1, keepdims=True)
    counts[:, large] = np.maximum(rows * shares + np.sqrt(rows) * noise, 0.0)
    return counts


def unit_counts(units: int, resamples: int, rng: np.random.Generator) -> NDArray[np.uint16]:
    """Draw with replacement as many units as there are, and count each, shape (units, resamples); columns sum to `units`.

    >>> counts = unit_counts(5, 3, np.random.default_rng(0))
    >>> counts.shape, counts.sum(axis=0).tolist()
    ((5, 3), [5, 5, 5])
    """
    counts = np.empty((units, resamples), np.uint16)
    for block in blocks(resamples, units, _REDRAWN_AT_ONCE):
        kind = rng.integers(units, size=(block.stop - block.start, units))
        counts[:, block] = _tabulate(kind, units).T
    return counts


def _tabulate(kind: NDArray[np.intp], kinds: int) -> Float64s:
    """Count how often each of the kinds 0 to kinds - 1 occurs in every row of `kind`, shape (resamples, kinds).

    >>> _tabulate(np.array([[0, 2, 2]]), 3)
    array([[1., 0., 2.]])
    """
    flat = (kind + np.arange(len(kind))[:, None] * kinds).ravel()
    return np.bincount(flat, minlength=len(kind) * kinds).reshape(len(kind), kinds).astype(np.float64)


# ----------------------------------------------------------------------------------------------------
# Redraws: outcomes of a calibrated model with the scores at hand, and p-values from them


def redraw_ones(
    counts: Float64s, scores: Float64s, variances: Float64s, redraws: int, rng: np.random.Generator
) -> Float64s:
    """Draw the number of ones of every cell under calibration, less its expectation, shape (redraws, cells).

    A cell has `counts` rows of mean score `scores`; its number of ones has the variance `variances`, the sum of c (1 - c); all
    three have shape (cells,). Up to a variance of 9 the number is binomial, above it is normal and may leave the range from 0 to
    the count. Under importance weights a fractional count is rounded to draw, and the result scaled back.

    >>> surplus = redraw_ones(np.ones(2), np.array([0.25, 0.75]), np.full(2, 0.1875), 4, np.random.default_rng(0))
    >>> surplus.shape, np.unique(surplus[:, 0])  # 0 or 1, less 0.25
    ((4, 2), array([-0.25,  0.75]))
    """
    if (counts == 1).all():
        single_rows = rng.random((redraws, len(counts)))
        np.less(single_rows, scores, out=single_rows)
        single_rows -= scores
        return single_rows
    surplus = np.empty((len(counts), redraws))
    large = variances > NORMAL_VARIANCE
    surplus[large] = rng.standard_normal((int(large.sum()), redraws)) * np.sqrt(variances[large])[:, None]
    small = np.flatnonzero(~large)
    for start in range(0, len(small), _BINOMIAL_CELLS):
        cells = small[start : start + _BINOMIAL_CELLS]
        rows = np.rint(counts[cells])[:, None]
        chances = np.clip(scores[cells], 0.0, 1.0)[:, None]  # a mean of scores may round past 1
        scale = np.divide(counts[cells][:, None], rows, out=np.zeros_like(rows), where=rows > 0)
        # Draws of one cell are consecutive, so that numpy sets its sampler up once per cell.
        ones = rng.binomial(rows.astype(np.int64), chances, (len(rows), redraws))
        surplus[cells] = scale * (ones - rows * chances)
    return surplus.T


class LinearRedraws:
    """Redraws of linear functions of the ones of cells: `functions` of shape (functions, cells), the rest as in `redraw_ones`.

    Cells are in the order of their scores. A cell is not drawn by itself where the sixteenth of all cells around it has a
    variance above 9 together: the part of such cells in the functions is normal with its covariance.
    """

    def __init__(self, counts: Float64s, scores: Float64s, variances: Float64s, functions: Float64s) -> None:
        """Set up redraws of sums of `functions` (k, cells) over cells of `counts`, mean `scores` and `variances`, (cells,) each."""
        width = max(1, round(_WINDOW_SHARE * len(variances)))
        windows = np.convolve(variances, np.ones(width))[width // 2 :][: len(variances)]
        large = windows > NORMAL_VARIANCE
        self._counts, self._scores, self._variances = counts[~large], scores[~large], variances[~large]
        self._functions = np.ascontiguousarray(functions[:, ~large].T)
        common = functions[:, large] * np.sqrt(variances[large])
        self._root = symmetric_root(common @ common.T) if large.any() else None

    def draw(self, redraws: int, rng: np.random.Generator) -> Float64s:
        """Draw the functions at the ones of redrawn outcomes, less their expectations, shape (redraws, functions)."""
        values = np.zeros((redraws, self._functions.shape[1]))
        if (self._counts == 1).all():
            self._draw_single_rows(values, rng)
        else:
            for block in blocks(redraws, len(self._counts), _REDRAWN_AT_ONCE):
                size = block.stop - block.start
                drawn = redraw_ones(self._counts, self._scores, self._variances, size, rng)
                np.matmul(drawn, self._functions, out=values[block])
        if self._root is not None:
            values += rng.standard_normal(values.shape) @ self._root
        return values

    def _draw_single_rows(self, values: Float64s, rng: np.random.Generator) -> None:
        """Fill `values`, shape (redraws, functions), where every cell is one row, in blocks that fit in cache."""
        step = max(1, min(_AT_ONCE // max(len(self._scores), 1), len(values)))
        ones = np.empty((step, len(self._scores)))
        for start in range(0, len(values), step):
            block = values[start : start + step]
            drawn = ones[: len(block)]
            rng.random(out=drawn)
            np.less(drawn, self._scores, out=drawn)
            np.matmul(drawn, self._functions, out=block)
        values -= self._scores @ self._functions


def label_ends(columns: Float64s) -> Float64s:
    """Compute cumulative probabilities of every row over the events, scaled so that the last is 1, (events, n) as `columns`.

    >>> label_ends(np.array([[0.25], [0.25], [0.5]])).ravel()
    array([0.25, 0.5 , 1.  ])
    """
    ends = np.cumsum(columns, axis=0)
    ends /= ends[-1]
    return ends


def redraw_labels(ends: Float64s, redraws: int, rng: np.random.Generator) -> Indices:
    """Draw one event per row, (redraws, n) integers, from the cumulative probabilities of `label_ends`, (events, n).

    >>> redraw_labels(np.array([[0.0, 1.0], [1.0, 1.0]]), 2, np.random.default_rng(0))  # row 0 is always 1, row 1 always 0
    array([[1, 0],
           [1, 0]])
    """
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


def exceedance(drawn: Float64s, statistic: float) -> float:
    """Compute the p-value (1 + number of `drawn` statistics, of calibrated datasets, that reach the observed) / (1 + their number).

    Statistics that agree to rounding count as equal.

    >>> exceedance(np.array([1.0, 2.0, 3.0]), 2.0)
    0.75
    """
    limit = statistic - _ROUNDING * min(abs(statistic), np.finfo(float).max)
    return float(1 + np.count_nonzero(drawn >= limit)) / (1 + len(drawn))


@dataclass
class NullDistribution:
    """Statistics of redraws (or sign flips), drawn as they are needed and stored for further datasets.

    `draw(number, rng)` returns statistics of shape (number,). 199 are drawn first. Where 30 of them reach the statistic, p is (1
    + their number) / 200, above 0.15; otherwise it is computed from all redraws, so a test at a level below 0.15 rejects as often
    as without stopping.
    """

    draw: Callable[[int, np.random.Generator], Float64s]  # values of so many redraws
    statistic: Callable[[Float64s], Float64s] = np.asarray  # of these values, shape (redraws,)
    drawn: Float64s = field(default_factory=partial(np.zeros, 0))

    def p_value(self, statistic: float, redraws: int, rng: np.random.Generator) -> float:
        """Compute (1 + redraws of at least `statistic`) / (1 + redraws); stop early if the first redraws show a large p-value.

        Values that agree to rounding count as equal. New redraws are stored in `drawn`, and used again by the next call.
        """
        p = 1.0
        for number in dict.fromkeys((min(REDRAWS, redraws), redraws)):
            if len(self.drawn) < number:
                self.drawn = np.append(self.drawn, self.statistic(self.draw(number - len(self.drawn), rng)))
            p = exceedance(self.drawn[:number], statistic)
            if p * (1 + number) > _SETTLED:
                break
        return p


@dataclass(frozen=True, eq=False)
class RedrawTest:
    """Statistics of every dataset and their p-values under calibration, shape (batch,)."""

    statistic: Float64s
    p_value: Float64s


def redraw_test(
    profile: Profile, statistic: Statistic, *, resamples: int = 999, rng: int | np.random.Generator = 0
) -> RedrawTest:
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
    return RedrawTest(statistics, p)


def _redrawn_statistics(cells: Profile, statistic: Statistic, redraws: int, rng: np.random.Generator) -> Float64s:
    """Evaluate a statistic on outcomes redrawn from the scores of `cells`, whose weights are counts of rows, shape (redraws,)."""
    assert cells.weights is not None
    count, score = cells.weights[0], cells.scores[0].astype(np.float64)
    values = []
    for size in block_sizes(redraws, len(count), _REDRAWN_AT_ONCE):
        surplus = redraw_ones(count, score, count * score * (1 - score), size, rng)
        # Only the normal that replaces large cells can leave the range.
        ones = np.clip(surplus + count * score, 0.0, count)
        values.append(statistic(profile_of(cells, count - ones, ones)))
    return np.concatenate(values)
