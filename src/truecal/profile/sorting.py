"""Sort rows by their scores, or sum over the lowest of them without a sort."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
_PACKED = 1 << 15  # rows packed and unpacked together: what stays in cache
_MIN_ROWS_PER_THREAD = 1 << 19  # a thread with fewer rows costs more than it saves
_MAX_THREADS = 4  # the partition before the sorts is not parallel


def packed_sort(scores: Floats, outcomes: NDArray[np.uint8]) -> tuple[Floats, NDArray[np.uint8]]:
    """Sort scores in [0, 1] along the last axis, with their outcomes; among equal scores zeros come first.

    The inputs are not changed. A dataset of a million rows or more is sorted by a few threads: one partition separates
    their rows (a tenth of the cost of the sort), then each thread sorts its part. Integers are sorted, so the result is
    the same, bit by bit, for any number of threads. OMP_NUM_THREADS limits them.
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
    """Sort whole numbers in place by several threads; numpy releases the interpreter lock while it sorts."""
    from concurrent.futures import ThreadPoolExecutor

    ends = [len(numbers) * i // threads for i in range(threads + 1)]
    numbers.partition(ends[1:-1])
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda pair: numbers[slice(*pair)].sort(), pairwise(ends)))


def _count_threads(rows: int) -> int:
    """Choose the number of threads for a dataset, OMP_NUM_THREADS at most."""
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
_BITS = 14
_BLOCK = 1 << 17  # rows counted together; derived: eight times the cells that are cleared for each block
_SORTED_ROWS = 1 << 16  # fewer rows are sorted
_LARGE_SHARE = 1 / 8  # a cell with more of the rows is divided again
_MAX_BITS = 3 * _BITS  # derived: float64 has 53 bits, so that further divisions find ties


@dataclass(frozen=True, eq=False)
class RankSums:
    """The group of equal scores that each of q ranks falls into, and sums of c, y, c*c and c*y below its two ends.

    Between two groups both ends are the rank itself.
    """

    first: Indices  # (q,)
    last: Indices  # (q,)
    below: Float64s  # (q, 4) over the rows before `first`
    above: Float64s  # (q, 4) over the rows before `last`


def select_sums(scores: Floats, outcomes: NDArray[np.uint8], ranks: Indices) -> RankSums:
    """Sum c, y, c*c and c*y over the lowest `ranks` rows, ascending in 0..n, of rows in any order."""
    if scores.dtype == np.float16:
        scores = scores.astype(np.float32)  # arithmetic in half precision is slow
    return _select(scores, outcomes, ranks, 0.0, _BITS)


def _select(scores: Floats, outcomes: NDArray[np.uint8], ranks: Indices, start: float, bits: int) -> RankSums:
    """Select among rows whose scores lie in one interval that begins at `start`, by cells of width 2^-bits."""
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
    """Count and sum the rows of those of `cells` that lie below each `cell`, shapes (q,) and (q, 4)."""
    position = np.searchsorted(cells, cell)
    before = np.concatenate([[0], np.cumsum(counts[cells])])
    sums_before = np.concatenate([np.zeros((1, 4)), np.cumsum(sums[cells], axis=0)])
    return before[position], sums_before[position]


def _select_sorted(scores: Floats, outcomes: NDArray[np.uint8], ranks: Indices) -> RankSums:
    """Select by a sort."""
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
    """Select among rows of one score: every rank but 0 and n falls into the group of all of them."""
    n, c, ones = len(scores), float(scores[0]), float(np.count_nonzero(outcomes))
    total = np.array([n * c, ones, n * c * c, ones * c])
    first, last = np.where(ranks == n, n, 0), np.where(ranks == 0, 0, n)
    return RankSums(first, last, (first > 0)[:, None] * total, (last > 0)[:, None] * total)


def _cell_sums(
    scores: Floats, outcomes: NDArray[np.uint8], start: float, bits: int
) -> tuple[NDArray[np.intp], Float64s]:
    """Count rows and sum c, y, c*c and c*y in cells of width 2^-bits, shapes (cells,) and (cells, 4)."""
    cells = 2**_BITS + 1  # the last one holds the upper end of the interval
    counts, score_sums, square_sums = np.zeros(2 * cells, np.intp), np.zeros(2 * cells), np.zeros(2 * cells)
    for begin in range(0, len(scores), _BLOCK):
        c = scores[begin : begin + _BLOCK]
        code = _cells_of(c, start, bits) * 2 + outcomes[begin : begin + _BLOCK]
        code = code.astype(np.intp)
        counts += np.bincount(code, None, 2 * cells)
        score_sums += np.bincount(code, c, 2 * cells)
        square_sums += np.bincount(code, np.square(c, dtype=np.float64), 2 * cells)
    zeros, ones = counts.reshape(cells, 2).T
    score_of_outcome, square_of_outcome = score_sums.reshape(cells, 2), square_sums.reshape(cells, 2)
    sums = [score_of_outcome.sum(axis=1), ones, square_of_outcome.sum(axis=1), score_of_outcome[:, 1]]
    return zeros + ones, np.stack(sums, axis=1)


def _cells_of(scores: Floats, start: float, bits: int) -> NDArray[np.int32]:
    """Return the cell of every score; the difference and the power of two are exact."""
    offsets = scores if start == 0 else scores - scores.dtype.type(start)
    return (offsets * scores.dtype.type(2.0**bits)).astype(np.int32)


def _rows_in(
    scores: Floats, outcomes: NDArray[np.uint8], cells: Indices, start: float, bits: int, count: int
) -> tuple[Floats, NDArray[np.uint8]]:
    """Return scores and outcomes of the rows in the given cells, in the order of the data."""
    is_chosen = np.zeros(count, bool)
    is_chosen[cells] = True
    parts = []
    for begin in range(0, len(scores), _BLOCK):
        c, y = scores[begin : begin + _BLOCK], outcomes[begin : begin + _BLOCK]
        rows = np.flatnonzero(is_chosen[_cells_of(c, start, bits)])
        parts.append((c[rows], y[rows]))
    return np.concatenate([c for c, _ in parts]), np.concatenate([y for _, y in parts])
