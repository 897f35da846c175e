"""Sums over bins of equal width in one pass over the rows as they came: no sort.

A score times the number of bins is cut to a whole number of small steps, 2^m of them in a bin. Both the product and the edges j/b
are rounded to the precision of the scores, which moves them by less than two steps: the bin is certain unless the score lies
within two steps of an edge, and the few that do are compared with it.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from truecal.profile.cut import width_edges
from truecal.types import Float64s, Floats

_MOST_BINS = 1024  # beyond, tables no longer stay in cache and a sort is no slower
_UNSURE = 2  # steps
_STEPS = {
    2: 10,
    4: 23,
    8: 29,
}  # bits of the number of steps from 0 to 1, by the bytes of a score: exact, and below 2^31
_FEWEST = 4  # bits of the number of steps in a bin, at least
_BLOCK = 1 << 15  # rows counted at a time: what stays in cache
_LANES = 4  # neighbouring rows are counted in tables of their own, so that equal scores do not wait for each other


@dataclass(frozen=True)
class WidthBins:
    """Rows, sums of scores and of their squares, in every bin, of zeros and of ones: shape (batch, bins, 2)."""

    count: Float64s
    score: Float64s
    square: Float64s | None


def one_pass(bins: object, dtype: np.dtype[Any]) -> bool:
    """Whether bins are few enough, and wide enough for the precision of the scores."""
    return isinstance(bins, int) and bins <= _MOST_BINS and _STEPS[dtype.itemsize] - bins.bit_length() >= _FEWEST


def width_bins(
    scores: Floats, outcomes: NDArray[np.uint8], bins: int, closed: Literal["left", "right"], *, squares: bool
) -> WidthBins:
    """What falls into every bin; rows of shape (batch, rows), in any order."""
    tables = np.zeros((3, len(scores), bins, 2))
    counter = _Counter(Edges(scores.dtype, bins, closed, _BLOCK))
    for i in range(len(scores)):
        for start in range(0, scores.shape[1], _BLOCK):
            block = slice(start, start + _BLOCK)
            counter.add(tables[:, i], scores[i, block], outcomes[i, block], squares=squares)
    return WidthBins(tables[0], tables[1], tables[2] if squares else None)


class Edges:
    """Which bin a score falls into; scratch memory for so many scores at a time is made once."""

    def __init__(self, dtype: np.dtype[Any], bins: int, closed: Literal["left", "right"], most: int) -> None:
        work = np.dtype(np.float32) if dtype == np.float16 else dtype  # arithmetic in half precision is slow
        self.bins, self.closed = bins, closed
        self._edges = width_edges(bins, dtype).astype(work)
        self._bits = _STEPS[dtype.itemsize] - bins.bit_length()
        self._factor = work.type(bins * 2.0**self._bits)
        self._scaled = np.empty(most, work)
        self._step, self._near = np.empty(most, np.int32), np.empty(most, np.int32)

    def of(self, scores: Floats) -> NDArray[np.int32]:
        """The bins of some scores, in memory that the next call writes over."""
        rows = len(scores)
        scaled, step = self._scaled[:rows], self._step[:rows]
        np.multiply(scores, self._factor, out=scaled)
        np.copyto(step, scaled, casting="unsafe")
        unsure = self._unsure(step)
        if unsure is not None:  # seldom: finding none of them would take longer than all the rest
            np.clip(step, _UNSURE, (self.bins << self._bits) - _UNSURE - 1, out=step)  # scores of 0 and 1 are certain
            unsure = self._unsure(step)
        if unsure is None:
            step >>= self._bits
            return step
        some = np.flatnonzero(unsure < 2 * _UNSURE)
        edge = (step[some] + _UNSURE) >> self._bits
        own, at = scores[some], self._edges[edge]
        step >>= self._bits
        step[some] = edge - 1 + (own >= at if self.closed == "left" else own > at)
        return step

    def _unsure(self, step: NDArray[np.int32]) -> NDArray[np.int32] | None:
        """Steps from the nearest lower edge, less than 2 * _UNSURE where the bin is not certain; None if all are."""
        near = np.add(step, np.int32(_UNSURE), out=self._near[: len(step)])
        np.bitwise_and(near, np.int32((1 << self._bits) - 1), out=near)
        return near if near.min() < 2 * _UNSURE else None


class _Counter:
    """Counts blocks of rows; scratch memory is made once."""

    def __init__(self, edges: Edges) -> None:
        self._edges = edges
        # small numbers are quick to work on
        small = np.dtype(np.uint8 if _LANES * 2 * edges.bins <= 256 else np.uint16)
        self._lane = ((np.arange(_BLOCK) % _LANES) * 2 * edges.bins).astype(small)
        self._code, self._place = np.empty(_BLOCK, small), np.empty(_BLOCK, np.intp)

    def add(self, tables: Float64s, scores: Floats, outcomes: NDArray[np.uint8], *, squares: bool) -> None:
        """Add some rows of one dataset to its tables."""
        rows, bins = len(scores), self._edges.bins
        code, place = self._code[:rows], self._place[:rows]
        np.copyto(code, self._edges.of(scores), casting="unsafe")
        code += code
        code |= outcomes
        code += self._lane[:rows]
        np.copyto(place, code)
        size = _LANES * 2 * bins
        sums = [np.bincount(place, None, size), np.bincount(place, scores, size)]
        if squares:
            sums.append(np.bincount(place, np.square(scores, dtype=np.float64), size))
        for table, cells in zip(tables, sums, strict=False):
            table += cells.reshape(_LANES, bins, 2).sum(axis=0)
