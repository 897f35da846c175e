"""Rows by ascending score: the sort, selection of a few ranks without it, and sorted rows with prefix sums."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from truecal.errors import InputError
from truecal.profile.binning import Cut, WidthBins, one_pass, width_bins
from truecal.special import kish
from truecal.types import Float64s, Floats, Indices

# ----------------------------------------------------------------------------------------------------
# Sort scores together with their 0/1 outcomes at the cost of sorting the scores alone
#
# Non-negative IEEE floats order like their bit patterns, and a score in [0, 1] never uses the top two bits (the pattern of 1.0
# is 0x3FF0... in float64, 0x3F80... in float32, 0x3C00 in float16). So the pattern shifted left by one leaves the lowest bit
# free for the outcome, no bit of the score is lost, ties stay exact ties, and one plain unsigned sort replaces an argsort.

_UNSIGNED: dict[np.dtype[Any], type[Any]] = {
    np.dtype(np.float16): np.uint16,
    np.dtype(np.float32): np.uint32,
    np.dtype(np.float64): np.uint64,
}
_PACKED = 1 << 15  # derived: rows whose 256 kB stay in cache while they are packed and unpacked
_MIN_ROWS_PER_THREAD = 1 << 19  # derived: sorting fewer takes under 5 ms, near to the cost of a partition
_MAX_THREADS = 4  # derived: more threads would wait for the partition before the sorts, which is not parallel


def packed_sort(scores: Floats, outcomes: NDArray[np.uint8]) -> tuple[Floats, NDArray[np.uint8]]:
    """Sort scores in [0, 1] along the last axis, with their outcomes; among equal scores zeros come first.

    Returned are scores and outcomes of the same shape and type, -0.0 as 0.0; the inputs are not changed. A dataset of a million
    rows or more is sorted by a few threads: one partition separates their rows (a tenth of the cost of the sort), then each
    thread sorts its part. Integers are sorted, so the result is the same, bit by bit, for any number of threads.
    OMP_NUM_THREADS limits them.

    >>> packed_sort(np.array([0.5, 0.2, 0.5]), np.array([1, 1, 0], np.uint8))
    (array([0.2, 0.5, 0.5]), array([1, 0, 1], dtype=uint8))
    """
    unsigned = _UNSIGNED[scores.dtype]
    shape, one = scores.shape, unsigned(1)
    bits = np.ascontiguousarray(scores).view(unsigned).reshape(-1)
    ones = np.ascontiguousarray(outcomes).reshape(-1)
    packed, sorted_outcomes = np.empty_like(bits), np.empty_like(ones)
    for start in range(0, len(bits), _PACKED):
        part = slice(start, start + _PACKED)
        np.left_shift(bits[part], one, out=packed[part])  # drops the sign of -0.0 as well
        np.bitwise_or(packed[part], ones[part], out=packed[part])
    threads = 1
    if len(bits) == shape[-1] and len(bits) >= 2 * _MIN_ROWS_PER_THREAD:  # the sorts of a batch are short
        threads = _count_threads(len(bits))
    if threads == 1:
        packed.reshape(shape).sort(axis=-1)
    else:
        _sort_parallel(packed, threads)
    for start in range(0, len(bits), _PACKED):
        part = slice(start, start + _PACKED)
        np.bitwise_and(packed[part], one, out=sorted_outcomes[part], casting="unsafe")
        np.right_shift(packed[part], one, out=packed[part])
    return packed.view(scores.dtype).reshape(shape), sorted_outcomes.reshape(shape)


def _sort_parallel(numbers: NDArray[Any], threads: int) -> None:
    """Sort whole numbers in place by several threads; numpy releases the interpreter lock while it sorts.

    >>> numbers = np.array([3, 1, 2, 0])
    >>> _sort_parallel(numbers, 2)
    >>> numbers
    array([0, 1, 2, 3])
    """
    from concurrent.futures import ThreadPoolExecutor

    ends = [len(numbers) * i // threads for i in range(threads + 1)]
    numbers.partition(ends[1:-1])
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda pair: numbers[slice(*pair)].sort(), pairwise(ends)))


def _count_threads(rows: int) -> int:
    """Choose the number of threads for a dataset: one per 2^19 rows, at most 4, the cores and OMP_NUM_THREADS, and at least 1.

    >>> _count_threads(1000)
    1
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    setting = os.environ.get("OMP_NUM_THREADS", "")
    allowed = max(int(setting), 1) if setting.isdecimal() else cores
    return max(1, min(cores, allowed, rows // _MIN_ROWS_PER_THREAD, _MAX_THREADS))


# ----------------------------------------------------------------------------------------------------
# Sums over the lowest r rows, for a few r, by selection instead of a sort
#
# One pass counts rows, ones and scores in cells of width 2^-14. Only cells that contain one of the ranks are opened: their rows
# are sorted or, where they hold much of the data, divided into 2^14 cells again. Widths are powers of two, so that no score is
# rounded on its way into a cell and equal scores share one. The ranks are exactly those of a sort.

MAX_RANKS = 2048  # derived: beyond, most cells contain a rank
_BITS = 14  # derived: the counts and sums of 2^14 cells fit into a cache of 1 MiB
_COUNTED_ROWS = 1 << 17  # rows counted together; derived: eight times the cells that are cleared for each block
_SORTED_ROWS = 1 << 16  # fewer rows are sorted; derived: four times the cells, which a selection would clear
_LARGE_SHARE = 1 / 8  # derived: sorting fewer rows takes less time than counting all of them again
_MAX_BITS = 3 * _BITS  # derived: float64 has 53 bits, so that further divisions find ties


@dataclass(frozen=True, eq=False)
class RankSums:
    """The group of equal scores that each of q ranks splits, as row numbers, and sums of c, y, c*c and c*y below both its ends.

    A rank between two groups splits none: `first` and `last` are the rank itself.
    """

    first: Indices  # (q,)
    last: Indices  # (q,)
    below: Float64s  # (q, 4) over the rows before `first`
    above: Float64s  # (q, 4) over the rows before `last`


def select_sums(scores: Floats, outcomes: NDArray[np.uint8], ranks: Indices) -> RankSums:
    """Return for each rank the group of equal scores that it splits, and sums of c, y, c*c and c*y below both its ends,
    unsorted.

    Rows come in any order. `ranks`, shape (q,), are ascending in 0..n; rank r cuts above the r lowest scores, and where that
    splits no group `first` and `last` are r.

    >>> sums = select_sums(np.array([0.5, 0.25, 0.5]), np.array([0, 1, 1], np.uint8), np.array([1, 2]))
    >>> sums.first, sums.last, sums.above  # rank 2 splits the group of the score 0.5, rows 1 to 3
    (array([1, 1]), array([1, 3]), array([[0.25  , 1.    , 0.0625, 0.25  ],
           [1.25  , 2.    , 0.5625, 0.75  ]]))
    """
    if scores.dtype == np.float16:
        scores = scores.astype(np.float32)  # arithmetic in half precision is slow
    return _select(scores, outcomes, ranks, 0.0, _BITS)


def _select(scores: Floats, outcomes: NDArray[np.uint8], ranks: Indices, start: float, bits: int) -> RankSums:
    """Return the `RankSums` of `ranks` (q,), ascending, of rows with scores in [start, start + 2^(14 - bits)].

    Rows are counted in cells of width 2^-bits. Cells that contain a rank are sorted together, or divided in turn if they are
    large.
    """
    if len(scores) <= _SORTED_ROWS or bits > _MAX_BITS:
        return _select_sorted(scores, outcomes, ranks)
    if scores.min() == scores.max():
        return _select_tied(scores, outcomes, ranks)
    counts, sums = _cell_sums(scores, outcomes, start, bits)
    first_row = np.concatenate([[0], np.cumsum(counts)])
    sums_before = np.concatenate([np.zeros((1, 4)), np.cumsum(sums, axis=0)])
    cell = np.searchsorted(first_row, ranks, "right") - 1
    selected = RankSums(ranks.copy(), ranks.copy(), sums_before[cell], sums_before[cell])
    inside = ranks > first_row[cell]  # else the rank lies between two cells
    opened = np.unique(cell[inside])
    is_large = counts[opened] > max(_SORTED_ROWS, _LARGE_SHARE * len(scores))
    parts = [opened[~is_large], *opened[is_large, None]]
    for cells in parts:
        chosen = inside & np.isin(cell, cells)
        if not chosen.any():
            continue
        rows = _rows_in(scores, outcomes, cells, start, bits, len(counts))
        # The rows of all opened cells stand together: rank r of the data is rank r - shift there.
        rows_before, sums_skipped = _preceding(cells, counts, sums, cell[chosen])
        shift = first_row[cell[chosen]] - rows_before
        if len(cells) == 1:
            part = _select(*rows, ranks[chosen] - shift, start + float(cells[0]) * 2.0**-bits, bits + _BITS)
        else:
            part = _select_sorted(*rows, ranks[chosen] - shift)
        added = sums_before[cell[chosen]] - sums_skipped
        selected.first[chosen], selected.last[chosen] = part.first + shift, part.last + shift
        selected.below[chosen], selected.above[chosen] = part.below + added, part.above + added
    return selected


def _preceding(cells: Indices, counts: Indices, sums: Float64s, cell: Indices) -> tuple[Indices, Float64s]:
    """Count and sum the rows of those of `cells` that lie below each `cell`, shapes (q,) and (q, 4).

    `cells` are ascending numbers of opened cells, `cell`, shape (q,), are among them; `counts` and `sums` are tables of all
    cells.

    >>> counts, sums = np.array([5, 2, 3]), np.arange(12.0).reshape(3, 4)
    >>> _preceding(np.array([0, 2]), counts, sums, np.array([0, 2]))  # cell 1 is not opened
    (array([0, 5]), array([[0., 0., 0., 0.],
           [0., 1., 2., 3.]]))
    """
    position = np.searchsorted(cells, cell)
    before = np.concatenate([[0], np.cumsum(counts[cells])])
    sums_before = np.concatenate([np.zeros((1, 4)), np.cumsum(sums[cells], axis=0)])
    return before[position], sums_before[position]


def _select_sorted(scores: Floats, outcomes: NDArray[np.uint8], ranks: Indices) -> RankSums:
    """Return the `RankSums` of `ranks` (q,), in 0..n and in any order, by sorting the n rows.

    >>> sums = _select_sorted(np.array([0.5, 0.25, 0.5]), np.array([0, 1, 1], np.uint8), np.array([0, 2]))
    >>> sums.first, sums.last
    (array([0, 1]), array([0, 3]))
    """
    sorted_scores, y = packed_sort(scores, outcomes)
    c = sorted_scores.astype(np.float64)
    sums = np.zeros((len(c) + 1, 4))
    np.cumsum(np.stack([c, y, c * c, c * y], axis=1), axis=0, out=sums[1:])
    inner = np.clip(ranks, 1, max(len(c) - 1, 1))
    score = c[np.minimum(inner, len(c) - 1)]
    is_tied = (ranks == inner) & (inner < len(c)) & (c[inner - 1] == score)
    first = np.where(is_tied, np.searchsorted(c, score, "left"), ranks)
    last = np.where(is_tied, np.searchsorted(c, score, "right"), ranks)
    return RankSums(first, last, sums[first], sums[last])


def _select_tied(scores: Floats, outcomes: NDArray[np.uint8], ranks: Indices) -> RankSums:
    """Return the `RankSums` of `ranks` (q,) for n rows of one score.

    (first, last) is (0, 0) for rank 0, (n, n) for rank n, else (0, n).

    >>> sums = _select_tied(np.array([0.5, 0.5]), np.array([0, 1], np.uint8), np.array([0, 1, 2]))
    >>> sums.first, sums.last, sums.above
    (array([0, 0, 2]), array([0, 2, 2]), array([[0. , 0. , 0. , 0. ],
           [1. , 1. , 0.5, 0.5],
           [1. , 1. , 0.5, 0.5]]))
    """
    n, c, ones = len(scores), float(scores[0]), float(np.count_nonzero(outcomes))
    total = np.array([n * c, ones, n * c * c, ones * c])
    first, last = np.where(ranks == n, n, 0), np.where(ranks == 0, 0, n)
    return RankSums(first, last, (first > 0)[:, None] * total, (last > 0)[:, None] * total)


def _cell_sums(
    scores: Floats, outcomes: NDArray[np.uint8], start: float, bits: int
) -> tuple[NDArray[np.intp], Float64s]:
    """Count rows and sum c, y, c*c and c*y in 2^14 + 1 cells of width 2^-bits from `start`, shapes (cells,) and (cells, 4).

    The last cell holds the upper end of the interval.
    """
    cells = 2**_BITS + 1  # the last one holds the upper end of the interval
    counts, score_sums, square_sums = np.zeros(2 * cells, np.intp), np.zeros(2 * cells), np.zeros(2 * cells)
    for begin in range(0, len(scores), _COUNTED_ROWS):
        c = scores[begin : begin + _COUNTED_ROWS]
        code = _cells_of(c, start, bits) * 2 + outcomes[begin : begin + _COUNTED_ROWS]
        code = code.astype(np.intp)
        counts += np.bincount(code, None, 2 * cells)
        score_sums += np.bincount(code, c, 2 * cells)
        square_sums += np.bincount(code, np.square(c, dtype=np.float64), 2 * cells)
    zeros, ones = counts.reshape(cells, 2).T
    score_of_outcome, square_of_outcome = score_sums.reshape(cells, 2), square_sums.reshape(cells, 2)
    sums = [score_of_outcome.sum(axis=1), ones, square_of_outcome.sum(axis=1), score_of_outcome[:, 1]]
    return zeros + ones, np.stack(sums, axis=1)


def _cells_of(scores: Floats, start: float, bits: int) -> NDArray[np.int32]:
    """Return floor((score - start) 2^bits) of every score, int32 (n,): the number of its cell of width 2^-bits, exactly.

    >>> _cells_of(np.array([0.5, 0.74, 0.75]), 0.5, 2)
    array([0, 0, 1], dtype=int32)
    """
    offsets = scores if start == 0 else scores - scores.dtype.type(start)
    return (offsets * scores.dtype.type(2.0**bits)).astype(np.int32)


def _rows_in(
    scores: Floats, outcomes: NDArray[np.uint8], cells: Indices, start: float, bits: int, count: int
) -> tuple[Floats, NDArray[np.uint8]]:
    """Return scores and outcomes, in the order of the data, of the rows whose cell floor((score - start) 2^bits) is in `cells`.

    There are `count` cells in all.
    """
    is_chosen = np.zeros(count, bool)
    is_chosen[cells] = True
    parts = []
    for begin in range(0, len(scores), _COUNTED_ROWS):
        c, y = scores[begin : begin + _COUNTED_ROWS], outcomes[begin : begin + _COUNTED_ROWS]
        rows = np.flatnonzero(is_chosen[_cells_of(c, start, bits)])
        parts.append((c[rows], y[rows]))
    return np.concatenate([c for c, _ in parts]), np.concatenate([y for _, y in parts])


# ----------------------------------------------------------------------------------------------------
# Look up positions and values in tables of a batch


def gather(table: NDArray[Any], index: Indices) -> NDArray[Any]:
    """Return table[i, index[i, j]], shape (batch, q); a table or an index of length 1 is shared by the whole batch.

    Entries of the table may be arrays; their axes come last.

    >>> gather(np.array([[1, 2], [3, 4]]), np.array([[0], [1]])), gather(np.array([[1, 2]]), np.array([[0, 1], [1, 1]]))
    (array([[1],
           [4]]), array([[1, 2],
           [2, 2]]))
    """
    if index.shape[0] == 1:
        return table[:, index[0]]
    if table.shape[0] == 1:
        return table[0][index]
    return table[np.arange(len(table))[:, None], index]


def search(table: NDArray[Any], values: NDArray[Any], side: Literal["left", "right"]) -> Indices:
    """Return the positions (as `numpy.searchsorted`) of values[i] in the ascending table[i], shape (batch or 1, q).

    A table or values of length 1 are shared by the whole batch.

    >>> search(np.array([[0.1, 0.2], [0.3, 0.4]]), np.array([[0.2, 0.35]]), "left")
    array([[1, 2],
           [0, 1]])
    """
    count = max(len(table), len(values))
    positions = np.empty((count, values.shape[1]), np.intp)
    for i in range(count):
        positions[i] = table[i % len(table)].searchsorted(values[i % len(values)], side)
    return positions


# ----------------------------------------------------------------------------------------------------
# Rows of a large dataset that are sorted only when needed

MIN_ROWS_UNSORTED = 1 << 17  # derived: fewer rows (of all datasets) are sorted in 1 ms
_MIN_ROWS_SELECTED = 1 << 18  # derived: sixteen times the cells that a selection clears
# Sets of ranks selected before the rows are sorted; tuned on two CPUs: a selection takes a tenth (slow vector instructions) to
# the whole (float32, fast ones) of the time of a sort.
_MAX_SELECTIONS = 2
_PROBES = 1024  # derived: evenly spaced scores whose comparison, to detect changed arrays, takes 10 microseconds


class Unsorted:
    """Hold scores and outcomes of shape (batch, rows) without a copy, and cache sums over bins and below ranks."""

    def __init__(self, scores: Floats, outcomes: NDArray[np.uint8]) -> None:
        """Hold the arrays themselves; 1024 of their values are stored to detect a later change."""
        self.scores, self.outcomes = scores, outcomes
        self._step = max(1, scores.size // _PROBES)
        self._probe = self._probe_arrays()
        self._width: dict[tuple[int, str], WidthBins] = {}
        self._selected: dict[bytes, RankSums] = {}

    def sorted(self) -> tuple[Floats, NDArray[np.uint8]]:
        """Return scores and outcomes, (batch, rows), sorted by score within each dataset; refuse arrays changed meanwhile.

        >>> Unsorted(np.array([[0.5, 0.2]]), np.array([[0, 1]], np.uint8)).sorted()
        (array([[0.2, 0.5]]), array([[1, 0]], dtype=uint8))
        """
        self._refuse_changed()
        return packed_sort(self.scores, self.outcomes)

    def width_cut(self, bins: object, closed: Literal["left", "right"]) -> Cut | None:
        """Cut at j/bins, positions of shape (batch, bins + 1), with the sums below, from one pass over the rows.

        None where a sort is better: several numbers of bins, or more than `one_pass` allows.

        >>> Unsorted(np.array([[0.5, 0.2, 0.7]]), np.array([[0, 1, 1]], np.uint8)).width_cut(2, "left").below
        array([[0, 1, 3]])
        """
        if not isinstance(bins, int) or not one_pass(bins, self.scores.dtype):
            return None
        width_bins = self._width_bins(bins, closed, squares=False)
        position = _below(width_bins.count.sum(axis=2)).astype(np.intp)

        def sums(name: str, fraction: Float64s | None = None) -> Float64s:
            """Return the sums of "w", "c", "y", "cc" or "cy" below the edges, shape (batch, bins + 1); `fraction` is not used."""
            return _width_sums(name, self._width_bins(bins, closed, squares=name == "cc"))

        return Cut(position, position, sums=sums)

    def _width_bins(self, bins: int, closed: Literal["left", "right"], *, squares: bool) -> WidthBins:
        """Return the `WidthBins` of the rows, (batch, bins, 2), cached by `bins` and `closed`; squares are summed if asked for."""
        bins_of_width = self._width.get((bins, closed))
        if bins_of_width is None or (squares and bins_of_width.square is None):
            self._refuse_changed()
            bins_of_width = width_bins(self.scores, self.outcomes, bins, closed, squares=squares)
            self._width[bins, closed] = bins_of_width
        return bins_of_width

    def cut_at(self, ranks: Indices) -> Cut | None:
        """Cut above given numbers of rows, shape (1, q), with the sums below, by selection; None where a sort is better.

        It is for a batch, for fewer than 2^18 rows, more than 2048 ranks, and from the third set of ranks on.
        """
        batch, rows = self.scores.shape
        if batch > 1 or rows < _MIN_ROWS_SELECTED or ranks.shape[1] > MAX_RANKS:
            return None
        key = ranks.tobytes()
        if key not in self._selected:
            if len(self._selected) >= _MAX_SELECTIONS:
                return None
            self._refuse_changed()
            self._selected[key] = select_sums(self.scores[0], self.outcomes[0], ranks[0])
        selected = self._selected[key]
        first, last = selected.first[None], selected.last[None]
        tie_fraction = (ranks - first) / np.maximum(last - first, 1)

        def sums(name: str, fraction: Float64s | None = None) -> Float64s:
            """Return the sums of "w", "c", "y", "cc" or "cy" below the cuts, shape (1, q).

            Of a group of equal scores that a cut splits, `fraction` lies below (None: the proportional share of its rows).
            """
            if name == "w":
                below, above = first.astype(np.float64), last.astype(np.float64)
            else:
                column = ("c", "y", "cc", "cy").index(name)
                below, above = selected.below[None, :, column], selected.above[None, :, column]
            return below + (tie_fraction if fraction is None else fraction) * (above - below)

        return Cut(first, last, tie_fraction if tie_fraction.any() else None, sums)

    def count_below(self, value: float, *, inclusive: bool) -> Indices:
        """Count the rows below a score (`inclusive`: or equal to it, in the precision of the scores), shape (batch, 1).

        >>> Unsorted(np.array([[0.5, 0.2]]), np.array([[0, 1]], np.uint8)).count_below(0.5, inclusive=True)
        array([[2]])
        """
        self._refuse_changed()
        is_below = np.less_equal if inclusive else np.less
        return np.array([[np.count_nonzero(is_below(c, c.dtype.type(value)))] for c in self.scores])

    def whole(self) -> Cut:
        """Cut above all rows, shape (batch, 1), with sums over all of them.

        >>> Unsorted(np.array([[0.5, 0.2]]), np.array([[0, 1]], np.uint8)).whole().sums("c")
        array([[0.7]])
        """
        ends = np.full((len(self.scores), 1), self.scores.shape[1])
        counted = next(iter(self._width.values()), None)

        def sums(name: str, fraction: Float64s | None = None) -> Float64s:
            """Return the sums of "w", "c", "y", "cc" or "cy" over all rows, shape (batch, 1); `fraction` is not used."""
            if name == "w":
                return ends.astype(np.float64)
            if counted is not None and (name != "cc" or counted.square is not None):
                return _width_sums(name, counted)[:, -1:]
            self._refuse_changed()
            factors: Any = [self.scores if letter == "c" else self.outcomes for letter in name]
            product = "ij->i" if len(factors) == 1 else "ij,ij->i"
            return np.einsum(product, *factors, dtype=np.float64)[:, None]

        return Cut(ends, ends, sums=sums)

    def _probe_arrays(self) -> tuple[bytes, bytes]:
        """Return every s-th score and outcome as bytes, s = max(1, size // 1024), to detect a change."""
        return self.scores.ravel()[:: self._step].tobytes(), self.outcomes.ravel()[:: self._step].tobytes()

    def _refuse_changed(self) -> None:
        """Raise InputError if a probed score or outcome has changed since the arrays were passed.

        >>> scores = np.array([[0.5, 0.2]])
        >>> rows = Unsorted(scores, np.array([[0, 1]], np.uint8))
        >>> scores[0, 0] = 0.6
        >>> rows._refuse_changed()
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: the arrays passed to a Profile were changed afterwards; pass copies
        """
        if self._probe_arrays() != self._probe:
            raise InputError("the arrays passed to a Profile were changed afterwards; pass copies")


def _below(values: Float64s) -> Float64s:
    """Sum over all bins below each edge, along the last axis: shape (..., bins) becomes (..., bins + 1), from 0 on.

    >>> _below(np.array([[1.0, 2.0]]))
    array([[0., 1., 3.]])
    """
    return np.concatenate([np.zeros((*values.shape[:-1], 1)), np.cumsum(values, axis=-1)], axis=-1)


def _width_sums(name: str, width_bins: WidthBins) -> Float64s:
    """Return the sums of a quantity ("w", "c", "y", "cc" or "cy") below the edges of bins, shape (batch, bins + 1).

    >>> bins = width_bins(np.array([[0.25, 0.5, 0.75]]), np.array([[0, 1, 1]], np.uint8), 2, "left", squares=False)
    >>> _width_sums("c", bins)
    array([[0.  , 0.25, 1.5 ]])
    """
    if name == "cc":
        assert width_bins.square is not None
        return _below(width_bins.square.sum(axis=2))
    tables = {"w": width_bins.count.sum(axis=2), "c": width_bins.score.sum(axis=2)}
    tables |= {"y": width_bins.count[:, :, 1], "cy": width_bins.score[:, :, 1]}
    return _below(tables[name])


# ----------------------------------------------------------------------------------------------------
# Sorted rows with prefix sums: the base class of Profile

Sum = Literal["w", "c", "y", "cc", "cy"]
_SUMMED = 1 << 14  # derived: rows summed from 0, so that rounding grows with the number of blocks and not of rows
_ROWS_PER_SUM = 16  # tuned: sums of so many neighbouring rows of a batch take a third of the time of its prefix sums


class SortedRows:
    """Scores, outcomes and weights of shape (batch, rows), ascending, with prefix sums; the base class of `Profile`."""

    def __init__(
        self,
        scores: Floats,
        outcomes: NDArray[np.uint8] | Float64s,
        weights: Float64s | None = None,
        squares: Float64s | None = None,
        products: Float64s | None = None,
        *,
        single: bool = False,
        units: Indices | None = None,
    ) -> None:
        """Wrap rows that are already sorted and checked, all of shape (batch, rows); see `Profile`.

        `units`: the unit (cluster) that every sorted row of a single dataset belongs to; None where rows are independent.
        """
        self._unsorted: Unsorted | None = None  # rows without weights that are sorted on first use
        self._scores = scores
        self._outcomes = outcomes
        self.weights = weights
        self.squares = squares
        self.products = products
        self.single = single
        self.units = units
        self.independent = units is None  # False also for a batch of clustered datasets, which has no units
        self.precision = scores.dtype  # of the scores as they came: edges are rounded to it
        self.rows = scores.shape[1]
        self.batch = max(len(scores), len(outcomes), 1 if weights is None else len(weights))
        self._prefix: dict[str, NDArray[Any]] = {}
        self.cache: dict[object, Any] = {}  # values computed from these rows

    @property
    def scores(self) -> Floats:
        """Ascending scores, shape (batch or 1, rows).

        >>> SortedRows(np.array([[0.25, 0.5]]), np.array([[0, 1]])).scores
        array([[0.25, 0.5 ]])
        """
        if self._unsorted is not None:
            self._sort()
        return self._scores

    @property
    def outcomes(self) -> NDArray[np.uint8] | Float64s:
        """Outcomes of the rows by ascending score, shape (batch, rows)."""
        if self._unsorted is not None:
            self._sort()
        return self._outcomes

    def _sort(self) -> None:
        """Replace `_scores` and `_outcomes` as passed by the sorted ones of `_unsorted`, which becomes None."""
        assert self._unsorted is not None
        self._scores, self._outcomes = self._unsorted.sorted()
        self._unsorted = None

    # ------------------------------------------------------------------ how much there is

    @cached_property
    def total(self) -> Float64s:
        """Sum of weights of each dataset, shape (batch,).

        >>> SortedRows(np.array([[0.2, 0.5]]), np.array([[0, 1]]), np.array([[1.0, 2.5]])).total
        array([3.5])
        """
        if self.weights is None:
            return np.full(self.batch, float(self.rows))
        return np.broadcast_to(self.weights.sum(axis=1), (self.batch,))

    @cached_property
    def counted(self) -> bool:
        """Whether weights are repetition counts (all whole numbers), or there are none.

        >>> SortedRows(np.array([[0.2, 0.5]]), np.array([[0, 1]]), np.array([[1.0, 2.5]])).counted
        False
        """
        return self.weights is None or bool((self.weights == np.rint(self.weights)).all())

    @cached_property
    def size(self) -> Float64s:
        """Sample size of each dataset, shape (batch,): rows, the sum of whole-number weights, or Kish's (sum w)^2 / sum w^2.

        >>> SortedRows(np.array([[0.2, 0.5]]), np.array([[0, 1]]), np.array([[0.5, 1.5]])).size  # 2^2 / 2.5
        array([1.6])
        """
        if self.counted or self.weights is None:
            return self.total
        return np.broadcast_to(kish(self.weights), (self.batch,))

    @property
    def alike(self) -> bool:
        """Whether all datasets share scores and weights: a batch of one, or arrays that are stored once, with a first axis of
        1.

        >>> scores = np.array([[0.2, 0.5], [0.1, 0.3]])
        >>> SortedRows(scores, np.zeros((2, 2))).alike, SortedRows(scores[:1], np.zeros((2, 2))).alike
        (False, True)
        """
        return self.batch == 1 or (len(self.scores) == 1 and (self.weights is None or len(self.weights) == 1))

    # ------------------------------------------------------------------ prefix sums

    def prefix(self, name: Sum) -> NDArray[Any]:
        """Return the sums over the first 0, 1, ..., all rows.

        Parameters
        ----------
        name : {"w", "c", "y", "cc", "cy"}
            What is summed, with weights: 1, score, outcome, score squared, score times outcome.

        Returns
        -------
        prefix : ndarray of shape (batch or 1, rows + 1)
            Prefix sums, computed on first use.
        """
        if name not in self._prefix:
            values = self._values(name)
            counting = values.dtype == np.uint8
            dtype = (np.int32 if self.rows < 2**31 else np.int64) if counting else np.float64
            prefix = np.empty((len(values), self.rows + 1), dtype)
            prefix[:, 0] = 0
            for start in range(0, self.rows, _SUMMED):
                part = prefix[:, start + 1 : start + 1 + _SUMMED]
                np.cumsum(values[:, start : start + _SUMMED], axis=1, dtype=dtype, out=part)
                part += prefix[:, start, None]
            self._prefix[name] = prefix
        return self._prefix[name]

    def _values(self, name: Sum, datasets: slice = slice(None)) -> NDArray[Any]:
        """Compute the terms of a prefix sum, (batch or 1, rows): the weight times 1 ("w"), c, y, c*c ("cc") or c*y ("cy").

        `datasets` selects those to compute, all by default; an array that is stored once serves each of them.

        >>> SortedRows(np.array([[0.25, 0.5]]), np.array([[0, 1]]), np.array([[2.0, 1.0]]))._values("cc")
        array([[0.125, 0.25 ]])
        """

        def part(a: NDArray[Any]) -> NDArray[Any]:
            """Select the datasets of an array, shape (batch or 1, rows)."""
            return a if len(a) == 1 else a[datasets]

        if name == "w":
            return np.ones((1, self.rows)) if self.weights is None else part(self.weights)
        values: Any = {"c": self.scores, "y": self.outcomes, "cc": self.squares, "cy": self.products}[name]
        if values is None:
            scores = part(self.scores)
            values = scores.astype(np.float64, copy=False) * (scores if name == "cc" else part(self.outcomes))
        else:
            values = part(values)
        return np.asarray(values if self.weights is None else part(self.weights) * values)

    def _sums_at(self, name: Sum, index: Indices) -> Float64s:
        """Sum a quantity over the first index[i, j] rows of dataset i, shape of `index`; one row of indices serves all
        datasets.

        >>> SortedRows(np.array([[0.25, 0.5]]), np.array([[0, 1]]))._sums_at("c", np.array([[0, 1, 2]]))
        array([[0.  , 0.25, 0.75]])
        """
        if name == "w" and self.weights is None:
            return index.astype(np.float64)
        # Each dataset of a large batch is often asked for one set of cuts only.
        by_runs = len(self.scores) > 1 and name not in self._prefix and index.shape[1] * _ROWS_PER_SUM <= self.rows
        if by_runs and (index[:, 1:] >= index[:, :-1]).all():
            return self._sum_runs(name, index)
        return gather(self.prefix(name), index).astype(np.float64)

    def _sum_runs(self, name: Sum, index: Indices) -> Float64s:
        """Compute `_sums_at` for an ascending index without prefix sums, by summing the rows between neighbouring positions.

        >>> SortedRows(np.array([[0.25, 0.5]]), np.array([[0, 1]]))._sum_runs("c", np.array([[0, 1, 2]]))
        array([[0.  , 0.25, 0.75]])
        """
        sums = np.zeros((self.batch, index.shape[1]))
        for i in range(self.batch):
            ends = index[i % len(index)]
            starts = np.append(0, ends[:-1])
            filled = starts < ends
            values = self._values(name, slice(i, i + 1))[0, : ends[-1]]
            if filled.any():
                sums[i, filled] = np.add.reduceat(values, starts[filled], dtype=np.float64)
        np.cumsum(sums, axis=1, out=sums)
        return sums

    # ------------------------------------------------------------------ equal scores

    def count_below(self, values: Floats, side: Literal["left", "right"]) -> Indices:
        """Count the rows below each value.

        Parameters
        ----------
        values : ndarray of shape (q,) or (batch, q)
            Scores.
        side : {"left", "right"}
            Whether rows equal to a value are above it ("left") or below ("right").

        Returns
        -------
        positions : ndarray of shape (batch or 1, q)
            Numbers of rows.
        """
        if self._unsorted is not None and np.size(values) == 1:
            return self._unsorted.count_below(float(np.ravel(values)[0]), inclusive=side == "right")
        return search(self.scores, np.atleast_2d(values), side)

    @cached_property
    def has_ties(self) -> bool:
        """Whether any two rows of one dataset have the same score.

        >>> SortedRows(np.array([[0.2, 0.2, 0.5]]), np.zeros((1, 3))).has_ties
        True
        """
        return bool((self.distinct < self.rows).any())

    def _group(self, row: Indices) -> tuple[Indices, Indices]:
        """Find the first row, and one past the last row, of the group of equal scores of each given row, shape (batch or 1, q).

        >>> SortedRows(np.array([[0.2, 0.2, 0.5]]), np.zeros((1, 3)))._group(np.array([[1, 2]]))
        (array([[0, 2]]), array([[2, 3]]))
        """
        if not self.has_ties:
            return row, row + 1
        row = np.broadcast_to(row, (max(row.shape[0], self.scores.shape[0]), row.shape[1]))
        scores = gather(self.scores, row)
        return self.count_below(scores, "left"), self.count_below(scores, "right")

    @cached_property
    def groups(self) -> tuple[Indices, Indices]:
        """First row, and one past the last row, of the group of equal scores of every row, shape (batch or 1, rows).

        >>> SortedRows(np.array([[0.2, 0.2, 0.5]]), np.zeros((1, 3))).groups
        (array([[0, 0, 2]]), array([[2, 2, 3]]))
        """
        return self._group(np.arange(self.rows)[None])

    @cached_property
    def distinct(self) -> NDArray[np.intp]:
        """Number of distinct scores in each dataset, shape (batch,).

        >>> SortedRows(np.array([[0.2, 0.2, 0.5]]), np.zeros((1, 3))).distinct
        array([2])
        """
        count = np.empty(len(self.scores), np.intp)
        for i, scores in enumerate(self.scores):
            count[i] = 1 + np.count_nonzero(scores[1:] != scores[:-1])
        return np.broadcast_to(count, (self.batch,))
