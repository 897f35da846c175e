"""Sums over the lowest r rows for a few r, by selection instead of a sort.

One pass counts rows, ones and scores in cells of equal width 2^-14; only the cells that a wanted rank runs through are looked into:
their rows are collected in a second pass and sorted, or, where they hold much of the data, divided into 2^14 cells again. Widths
are powers of two, so that no score is rounded on its way into a cell, and equal scores always share one. Ranks found this way are
those of a sort, exactly.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truecal.profile.sort import packed_sort
from truecal.types import Float64s, Floats, Indices

MOST_RANKS = 2048  # beyond, too many cells would have to be looked into
_BITS = 14
_BLOCK = 1 << 17  # rows counted at a time: enough to make up for clearing the tables
_SORTED = 1 << 16  # so few rows are sorted at once
_LARGE = 8  # a cell that holds more than this part of the rows is divided again ...
_FINEST = 3 * _BITS  # ... but not for ever


@dataclass(frozen=True, eq=False)
class Selected:
    """For every rank: the ends of the group of equal scores it falls into (both the rank itself between two groups), shape (q,),
    and the sums of c, y, c*c and c*y over all rows below each end, shape (q, 4).
    """

    first: Indices
    last: Indices
    below: Float64s
    above: Float64s

    def put(self, some: NDArray[np.bool_], part: "Selected", start: Indices, before: Float64s) -> None:
        """Fill in some of the ranks from a part of the rows, with what lies before it."""
        self.first[some], self.last[some] = part.first + start, part.last + start
        self.below[some], self.above[some] = part.below + before, part.above + before


def select(scores: Floats, outcomes: NDArray[np.uint8], ranks: Indices) -> Selected:
    """The sums below ranks 0..n, ascending, of rows in any order."""
    if scores.dtype == np.float16:
        scores = scores.astype(np.float32)  # arithmetic in half precision is slow; nothing is rounded
    return _select(scores, outcomes, ranks, 0.0, _BITS)


def _select(scores: Floats, outcomes: NDArray[np.uint8], ranks: Indices, low: float, bits: int) -> Selected:
    """The same for the rows of one cell, which begins at `low`: its own cells have the width 2^-bits."""
    if len(scores) <= _SORTED or bits > _FINEST:
        return _by_sort(*packed_sort(scores, outcomes), ranks, np.zeros_like(ranks))
    if scores.min() == scores.max():
        return _of_ties(scores, outcomes, ranks)
    count, sums = _tables(scores, outcomes, low, bits)
    start, before = (np.concatenate([np.zeros_like(a[:1]), np.cumsum(a, axis=0)]) for a in (count, sums))
    cell = np.searchsorted(start, ranks, "right") - 1
    found = Selected(ranks.copy(), ranks.copy(), before[cell], before[cell])
    inside = ranks > start[cell]  # else the rank lies between two cells, and so between two scores
    opened = np.unique(cell[inside])
    large = opened[count[opened] > max(_SORTED, len(scores) // _LARGE)]
    small = np.setdiff1d(opened, large)
    for one in large:
        mine = inside & (cell == one)
        rows = _rows(scores, outcomes, [one], low, bits, len(count))
        part = _select(*rows, ranks[mine] - start[one], low + float(one) * 2.0**-bits, bits + _BITS)
        found.put(mine, part, start[one], before[one])
    if len(small):
        mine = inside & np.isin(cell, small)
        at = cell[mine]
        ends = np.cumsum(count[small]) - count[small]
        origin = ends[np.searchsorted(small, at)]
        rows = packed_sort(*_rows(scores, outcomes, small, low, bits, len(count)))
        found.put(mine, _by_sort(*rows, ranks[mine] - start[at] + origin, origin), start[at], before[at])
    return found


def _by_sort(scores: Floats, outcomes: NDArray[np.uint8], ranks: Indices, origin: Indices) -> Selected:
    """From sorted rows, counted from the row `origin` on."""
    c = scores.astype(np.float64)
    sums = np.zeros((len(c) + 1, 4))
    np.cumsum(np.stack([c, outcomes, c * c, c * outcomes], axis=1), axis=0, out=sums[1:])
    at = np.clip(ranks, 1, max(len(c) - 1, 1))
    tied = (ranks == at) & (at < len(c)) & (scores[at - 1] == scores[np.minimum(at, len(c) - 1)])
    value = scores[np.minimum(at, len(c) - 1)]
    first = np.where(tied, np.searchsorted(scores, value, "left"), ranks)
    last = np.where(tied, np.searchsorted(scores, value, "right"), ranks)
    return Selected(first - origin, last - origin, sums[first] - sums[origin], sums[last] - sums[origin])


def _of_ties(scores: Floats, outcomes: NDArray[np.uint8], ranks: Indices) -> Selected:
    """Rows of one score: every rank but the ends falls into the group of all of them."""
    n, c, ones = len(scores), float(scores[0]), float(np.count_nonzero(outcomes))
    whole = np.array([n * c, ones, n * c * c, ones * c])
    first, last = np.where(ranks == n, n, 0), np.where(ranks == 0, 0, n)
    return Selected(first, last, (first > 0)[:, None] * whole, (last > 0)[:, None] * whole)


def _tables(scores: Floats, outcomes: NDArray[np.uint8], low: float, bits: int) -> tuple[Indices, Float64s]:
    """Rows in every cell, and the sums of c, y, c*c and c*y."""
    cells = 2**_BITS + 1
    count, score, square = np.zeros(2 * cells, np.intp), np.zeros(2 * cells), np.zeros(2 * cells)
    for start in range(0, len(scores), _BLOCK):
        c = scores[start : start + _BLOCK]
        code = _cell(c, low, bits)
        np.left_shift(code, 1, out=code)
        np.add(code, outcomes[start : start + _BLOCK], out=code, casting="unsafe")
        place = code.astype(np.intp)
        count += np.bincount(place, None, 2 * cells)
        score += np.bincount(place, c, 2 * cells)
        square += np.bincount(place, np.square(c, dtype=np.float64), 2 * cells)
    count, score, square = (a.reshape(cells, 2) for a in (count, score, square))
    sums = np.stack([score.sum(axis=1), count[:, 1], square.sum(axis=1), score[:, 1]], axis=1)
    return count.sum(axis=1), sums


def _cell(scores: Floats, low: float, bits: int) -> NDArray[np.int32]:
    """The cell of every score; the difference and the power of two are exact."""
    moved = scores if low == 0 else scores - scores.dtype.type(low)
    return (moved * scores.dtype.type(2.0**bits)).astype(np.int32)


def _rows(
    scores: Floats, outcomes: NDArray[np.uint8], wanted: Indices | list[int], low: float, bits: int, cells: int
) -> tuple[Floats, NDArray[np.uint8]]:
    """The rows of some of the cells."""
    flag = np.zeros(cells, bool)
    flag[wanted] = True
    kept: list[tuple[Floats, NDArray[np.uint8]]] = []
    for start in range(0, len(scores), _BLOCK):
        c, y = scores[start : start + _BLOCK], outcomes[start : start + _BLOCK]
        at = np.flatnonzero(flag.take(_cell(c, low, bits), mode="clip"))
        kept.append((c[at], y[at]))
    return np.concatenate([c for c, _ in kept]), np.concatenate([y for _, y in kept])
