"""Sums over bins of equal width in one pass over the rows as they came: no sort.

floor(c b) may miss the bin of a score next to an edge, because edges j/b are rounded to the precision of the scores. It is
therefore taken twice, with b a few units in the last place too small and too large: where both agree the bin is certain, and the
few scores on which they do not are compared with the edge between them.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from truecal.profile.cut import width_edges
from truecal.types import Float64s, Floats

_MOST_BINS = 1024  # beyond, tables no longer stay in cache and a sort is no slower
_UNSURE = 4  # units in the last place
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
    return isinstance(bins, int) and bins <= min(_MOST_BINS, 1 / (4 * _UNSURE * float(np.finfo(dtype).eps)))


def width_bins(
    scores: Floats, outcomes: NDArray[np.uint8], bins: int, closed: Literal["left", "right"], *, squares: bool
) -> WidthBins:
    """What falls into every bin; rows of shape (batch, rows), in any order."""
    batch = len(scores)
    tables = np.zeros((3, batch, bins, 2))
    edges = Edges(scores.dtype, bins, closed, _BLOCK)
    lane = (np.arange(_BLOCK, dtype=np.int32) % _LANES) * np.int32(2 * bins)
    for i in range(batch):
        for start in range(0, scores.shape[1], _BLOCK):
            block = slice(start, start + _BLOCK)
            _add(tables[:, i], edges, lane, scores[i, block], outcomes[i, block], squares=squares)
    return WidthBins(tables[0], tables[1], tables[2] if squares else None)


class Edges:
    """Which bin a score falls into; scratch memory for so many scores at a time is made once."""

    def __init__(self, dtype: np.dtype[Any], bins: int, closed: Literal["left", "right"], most: int) -> None:
        work = np.dtype(np.float32) if dtype == np.float16 else dtype  # arithmetic in half precision is slow
        unsure = _UNSURE * float(np.finfo(dtype).eps)
        self.bins, self.closed = bins, closed
        self._edges = width_edges(bins, dtype)
        self._factors = work.type(bins * (1 - unsure)), work.type(bins * (1 + unsure))
        self._scaled = np.empty(most, work)
        self._low, self._high = np.empty(most, np.int32), np.empty(most, np.int32)
        self._differ = np.empty(most, np.bool_)

    def of(self, scores: Floats) -> NDArray[np.int32]:
        """The bins of some scores, in memory that the next call writes over."""
        rows = len(scores)
        low, high, scaled = self._low[:rows], self._high[:rows], self._scaled[:rows]
        for factor, out in zip(self._factors, (low, high), strict=True):
            np.multiply(scores, factor, out=scaled)
            np.copyto(out, scaled, casting="unsafe")
        np.minimum(high, self.bins - 1, out=high)  # 1 lies in the last bin
        differ = np.not_equal(low, high, out=self._differ[:rows])
        if differ.any():  # nearly never: finding none of them would take longer than all the rest
            unsure = np.flatnonzero(differ)
            edge = self._edges[high[unsure]]
            low[unsure] += scores[unsure] >= edge if self.closed == "left" else scores[unsure] > edge
        return low


def _add(
    tables: Float64s,
    edges: Edges,
    lane: NDArray[np.int32],
    scores: Floats,
    outcomes: NDArray[np.uint8],
    *,
    squares: bool,
) -> None:
    """Count some rows of one dataset."""
    code = edges.of(scores)
    np.left_shift(code, 1, out=code)
    np.add(code, outcomes, out=code, casting="unsafe")
    np.add(code, lane[: len(code)], out=code)
    place, size = code.astype(np.intp), _LANES * 2 * edges.bins
    sums = [np.bincount(place, None, size), np.bincount(place, scores, size)]
    if squares:
        sums.append(np.bincount(place, np.square(scores, dtype=np.float64), size))
    for table, cells in zip(tables, sums, strict=False):
        table += cells.reshape(_LANES, edges.bins, 2).sum(axis=0)
