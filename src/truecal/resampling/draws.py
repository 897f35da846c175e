"""Draws of resamples: independent rows as counts of kinds (a cell and an outcome), and units as whole."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from truecal import options
from truecal.errors import InputError
from truecal.profile.binning import Cut
from truecal.profile.profile import Profile
from truecal.resampling.redraws import redraw_ones
from truecal.types import Float64s

_ROWS_PER_KIND = 8  # up to so many it is quicker to draw rows one by one than to draw each kind's count
_AT_ONCE = 1 << 16  # resampled cells evaluated at a time, which fit in cache


@dataclass(frozen=True, eq=False)
class CellBatch:
    """Rows, ones and sums of scores of cells in several datasets, shape (datasets, cells)."""

    rows: Float64s
    ones: Float64s
    score_sums: Float64s


@dataclass(frozen=True, eq=False)
class RowSums:
    """Zeros and ones of independent rows in every cell, with the sums of their scores; arrays (cells,).

    A zero and a one are added, spread over the cells like the rows: they keep resamples of a model without errors from
    being all equal.
    """

    zeros: Float64s
    ones: Float64s
    scores_of_zeros: Float64s  # sums
    scores_of_ones: Float64s
    squares: Float64s  # sums of squared scores
    n: int

    @classmethod
    def of(cls, profile: Profile, cut: Cut) -> "RowSums":
        """Sum over the rows of one dataset between consecutive cuts."""
        weight, score, one, square, product = (
            np.diff(profile.sums(name, cut), axis=1)[0] for name in ("w", "c", "y", "cc", "cy")
        )
        filled = weight > 0
        if not filled.any():
            raise InputError("no row lies in any bin of the estimator: nothing is judged; lower its threshold")
        n = max(1, round(float(profile.size[0])))
        scale = n / weight[filled].sum()
        sums = np.maximum(weight - one, 0.0), one, score - product, product, square
        zeros, ones, of_zeros, of_ones, squares = (values[filled] * scale for values in sums)
        return cls(zeros, ones, of_zeros, of_ones, squares, n)

    @cached_property
    def rows(self) -> Float64s:
        return self.zeros + self.ones

    @cached_property
    def observed(self) -> CellBatch:
        """The cells as observed, one dataset."""
        return CellBatch(self.rows[None], self.ones[None], (self.scores_of_zeros + self.scores_of_ones)[None])

    @cached_property
    def scores(self) -> Float64s:
        """Mean score of every cell; a difference of prefix sums may round past 1."""
        return np.clip(self.observed.score_sums[0] / self.rows, 0.0, 1.0)

    @cached_property
    def _kinds(self) -> tuple[Float64s, Float64s]:
        """Zeros, then ones of every cell with the pseudo-rows, and their mean scores, shape (2 x cells,)."""
        share = self.rows / self.n
        counts = np.concatenate([self.zeros + share, self.ones + share])
        sums = np.concatenate([self.scores_of_zeros, self.scores_of_ones])
        return counts, (sums + np.tile(share * self.scores, 2)) / counts

    @cached_property
    def drawn_from(self) -> CellBatch:
        """The cells with both pseudo-rows: the distribution that resamples are drawn from."""
        counts, _ = self._kinds
        zeros, ones = counts[: len(self.rows)], counts[len(self.rows) :]
        scale = self.rows / (zeros + ones)
        return self._batch(np.concatenate([zeros * scale, ones * scale])[None])

    def _batch(self, counts: Float64s) -> CellBatch:
        zeros, ones = counts[:, : len(self.rows)], counts[:, len(self.rows) :]
        means = self._kinds[1]
        return CellBatch(zeros + ones, ones, zeros * means[: len(self.rows)] + ones * means[len(self.rows) :])

    def draw(self, resamples: int, rng: np.random.Generator) -> Iterator[CellBatch]:
        """Draw resamples of as many rows, in blocks of bounded memory.

        The spread of scores within a kind, which moves the mean score of a cell a little, is added as a normal.
        """
        counts, means = self._kinds
        zeros, ones = self.zeros, self.ones
        within = self.squares - zeros * means[: len(zeros)] ** 2 - ones * means[len(zeros) :] ** 2
        within = np.maximum(within, 0.0) / self.rows
        for size in block_sizes(resamples, len(self.rows)):
            batch = self._batch(multinomial(counts, self.n, size, rng))
            noise = rng.standard_normal(batch.rows.shape) * np.sqrt(within * batch.rows) if within.any() else 0.0
            yield CellBatch(batch.rows, batch.ones, batch.score_sums + noise)

    def redraw(self, redraws: int, rng: np.random.Generator) -> CellBatch:
        """Draw outcomes of a calibrated model with these scores."""
        sums = self.observed.score_sums
        surplus = redraw_ones(self.rows, self.scores, np.maximum(sums[0] - self.squares, 0.0), redraws, rng)
        return CellBatch(self.rows[None], np.clip(sums + surplus, 0.0, self.rows), sums)


def block_sizes(resamples: int, cells: int) -> Iterator[int]:
    """Split resamples into blocks of bounded memory."""
    step = max(1, _AT_ONCE // max(cells, 1))
    for start in range(0, resamples, step):
        yield min(step, resamples - start)


def multinomial(chances: Float64s, n: int, resamples: int, rng: np.random.Generator) -> Float64s:
    """Draw how many of `n` rows are of each kind, shape (resamples, kinds).

    >>> multinomial(np.array([0.5, 0.5]), 10, 3, np.random.default_rng(0)).sum(axis=1)
    array([10., 10., 10.])
    """
    chances = chances / chances.sum()
    if n > _ROWS_PER_KIND * len(chances):
        return rng.multinomial(n, chances, resamples).astype(np.float64)
    ends = np.cumsum(chances)
    kind = np.searchsorted(ends, rng.random((resamples, n)) * ends[-1], side="right")
    return _tabulate(kind, len(chances))


def unit_counts(units: int, resamples: int, rng: np.random.Generator, *, block: int = 1) -> NDArray[np.uint16]:
    """Draw with replacement as many units as there are, and count each, shape (units, resamples).

    With `block`, units are in the order of time and drawn in runs of this length, which may wrap from the last to the
    first (circular block bootstrap, Politis and Romano 1992), so that dependence within runs stays.
    """
    counts = np.empty((units, resamples), np.uint16)
    step = max(1, (1 << 20) // units)
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        starts = _tabulate(rng.integers(units, size=(size, round(units / block))), units)
        counts[:, start : start + size] = _extend_runs(starts, block).T
    return counts


def check_block(block: int, units: int) -> None:
    """Refuse a length of runs that is not between 1 and half the rows."""
    options.whole(block, "blocks")
    if block > units // 2:
        raise InputError(f"blocks must be a length between 1 and half the {units} rows, not {block!r}")


def _extend_runs(starts: Float64s, block: int) -> Float64s:
    """Count units from how often a run starts at each of them."""
    if block == 1:
        return starts
    circular = np.concatenate([starts[:, 1 - block :], starts], axis=1)  # runs that wrap to the first unit
    total = np.cumsum(np.concatenate([np.zeros((len(starts), 1)), circular], axis=1), axis=1)
    return np.asarray(total[:, block:] - total[:, :-block])


def _tabulate(kind: NDArray[np.intp], kinds: int) -> Float64s:
    """Count every kind in every row."""
    flat = (kind + np.arange(len(kind))[:, None] * kinds).ravel()
    return np.bincount(flat, minlength=len(kind) * kinds).reshape(len(kind), kinds).astype(np.float64)
