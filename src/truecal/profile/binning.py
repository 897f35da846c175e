"""Cuts of sorted rows into bins, and sums over bins of equal width without a sort."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from truecal.types import Float64s, Floats, Indices

# ----------------------------------------------------------------------------------------------------
# Cuts of sorted rows


class SumsBelow(Protocol):
    """Sums below q cuts of a quantity ("w", "c", "y", "cc" or "cy"), shape (batch, q).

    `fraction`, shape (batch or 1, q), is the share of the rows from `below` to `above` that count as below; None takes the cut's.
    """

    def __call__(self, name: str, fraction: Float64s | None = None) -> Float64s: ...


@dataclass(frozen=True, eq=False)
class Cut:
    """Positions in sorted rows: `fraction` of the way from prefix index `below` to `above`.

    Parameters
    ----------
    below : ndarray of shape (batch or 1, q)
        Rows below each cut; for a cut inside a group of equal scores, or inside a weighted row, those below the group.
    above : ndarray of the same shape
        The same, or the rows up to the end of the group.
    fraction : ndarray of the same shape, default None
        Share of the group below the cut; None where all cuts fall between rows.
    sums : callable, default None
        Sums below the cuts by name, where they were computed together with the positions.

    See Also
    --------
    Profile.width_cut : Bins of equal width.
    Profile.mass_cut : Bins of equal mass.

    Examples
    --------
    >>> import truecal as tc
    >>> tc.profile.Profile.from_arrays([0.1, 0.4, 0.6, 0.9], [0, 0, 1, 1]).width_cut(2).below
    array([[0, 2, 4]])
    """

    below: Indices
    above: Indices
    fraction: Float64s | None = None
    sums: SumsBelow | None = None

    def keep_ties(self) -> Cut:
        """Move every cut that splits a group of equal scores to the nearer end of the group (up when halfway).

        Returns
        -------
        Cut
            Without a fraction; the cut itself where none splits a group.

        Examples
        --------
        >>> cut = Cut(np.array([[2, 2]]), np.array([[6, 6]]), np.array([[0.25, 0.5]])).keep_ties()
        >>> cut.below, cut.fraction
        (array([[2, 6]]), None)
        """
        if self.fraction is None:
            return self
        up = self.fraction >= 0.5
        position = np.where(up, self.above, self.below)
        nearest = up.astype(np.float64)
        return Cut(position, position, sums=None if self.sums is None else partial(self.sums, fraction=nearest))


def width_edges(bins: int | Sequence[int] | Indices, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the edges j/b, j = 0..b, of bins of equal width, rounded to the precision of the scores.

    Parameters
    ----------
    bins : int, sequence of int, or array of shape (batch, 1)
        Numbers of bins b.
    dtype : numpy dtype
        Type of the scores.

    Returns
    -------
    edges : ndarray
        Edges of one number of bins after those of the other.

    Examples
    --------
    >>> import numpy as np
    >>> width_edges(4, np.dtype(np.float64))
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    k, b = every_edge(bins)
    return (k / b).astype(dtype)


def every_edge(bins: int | Sequence[int] | Indices) -> tuple[Indices, Indices]:
    """Return k = 0..b and b itself, for each number of bins b in turn, as two integer arrays of one shape.

    A column of numbers, shape (batch, 1), gives every dataset a row of its own: k stays at b once it is reached, so that all rows
    have the length of the largest number plus 1.

    >>> every_edge([1, 2])
    (array([0, 1, 0, 1, 2]), array([1, 1, 2, 2, 2]))
    >>> every_edge(np.array([[1], [2]]))[0]
    array([[0, 1, 1],
           [0, 1, 2]])
    """
    if np.ndim(bins) == 2:
        counts_by_dataset = np.asarray(bins, np.intp)
        k = np.minimum(np.arange(counts_by_dataset.max() + 1), counts_by_dataset)
        return k, np.broadcast_to(counts_by_dataset, k.shape)
    counts = np.atleast_1d(np.asarray(bins, np.intp))
    b = np.repeat(counts, counts + 1)
    starts = np.cumsum(counts + 1) - (counts + 1)
    return np.arange(len(b)) - np.repeat(starts, counts + 1), b


# ----------------------------------------------------------------------------------------------------
# Sums over bins of equal width in one pass over unsorted rows

_MAX_BINS = 1024  # derived: beyond, tables no longer stay in cache and a sort is no slower
_MAX_BINS_HALF = 63  # derived: edges of float16 are at most 2^-12 off, a bin is then 32 times as wide
_ROUNDINGS = 4  # derived: factor, product and edge are each off by half a unit in the last place, to first order
_BLOCK = 1 << 16  # tuned on AMD EPYC, 1e7 rows: 7 % less time than 2^15, 20 % less than 2^14
_SPARSE_FROM = 1 << 22  # derived: on fewer rows a sparse product saves less time than loading scipy takes
_LANES = 4  # tables in turn; tuned on equal scores: half the time of one table, whose address is written row by row


@dataclass(frozen=True, eq=False)
class WidthBins:
    """Rows and sums by bin of equal width and outcome, shape (batch, bins, 2): last axis zeros, ones.

    `count` are rows, `score` sums of scores, `square` sums of squared scores (None if not asked for).
    """

    count: Float64s
    score: Float64s
    square: Float64s | None


def one_pass(bins: object, dtype: np.dtype[Any]) -> bool:
    """Return whether rows of so many bins of equal width are counted in one pass, without a sort: one number, at most 1024.

    For float16 scores at most 63, because their edges are rounded by more.

    >>> one_pass(15, np.dtype(np.float64)), one_pass(64, np.dtype(np.float16)), one_pass([5, 10], np.dtype(np.float64))
    (True, False, False)
    """
    return isinstance(bins, int) and bins <= (_MAX_BINS_HALF if dtype == np.float16 else _MAX_BINS)


def width_bins(
    scores: Floats, outcomes: NDArray[np.uint8], bins: int, closed: Literal["left", "right"], *, squares: bool
) -> WidthBins:
    """Count rows and sum scores by bin and outcome: tables of shape (batch, bins, 2); empty bins are 0.

    Scores and outcomes have shape (batch, rows), in any order. Bins are those of `Profile.width_cut`. Without `squares`,
    `square` is None.

    >>> bins = width_bins(np.array([[0.1, 0.5, 0.9]]), np.array([[0, 1, 1]], np.uint8), 2, "left", squares=False)
    >>> bins.count, bins.score
    (array([[[1., 0.],
            [0., 2.]]]), array([[[0.1, 0. ],
            [0. , 1.4]]]))
    """
    counter = _BinCounter(scores.dtype, bins, closed, scores.shape[1])
    count, score, square = (np.empty((len(scores), bins, 2)) for _ in range(3))
    for i in range(len(scores)):
        count[i], score[i], square[i] = counter.tables(scores[i], outcomes[i], squares=squares)
    return WidthBins(count, score, square if squares else None)


class Edges:
    """Assign scores in [0, 1] to bins of equal width, with the edges of `width_edges` and the closed side of `Profile.width_cut`.

    Working memory for `max_rows` scores at a time is allocated once; bins are integers of type `kind`.
    """

    def __init__(
        self,
        dtype: np.dtype[Any],
        bins: int,
        closed: Literal["left", "right"],
        max_rows: int,
        kind: type[np.generic] = np.int32,
    ) -> None:
        """Set up `bins` bins of scores of a dtype; `closed` is the side on which a bin includes its edge."""
        work = np.dtype(np.float32) if dtype == np.float16 else dtype  # arithmetic in half precision is slow
        self._is_below = np.less if closed == "left" else np.less_equal
        self._factor = work.type(bins) if closed == "left" else np.nextafter(work.type(bins), work.type(0))
        edges = width_edges(bins, dtype)
        self._lower_edges: Floats | None = None
        if not _products_are_exact(edges, self._factor, closed):
            # Every product is rounded up, by less than a bin, so that only the lower edge is to be compared with.
            self._factor = work.type(bins * (1 + _ROUNDINGS * float(np.finfo(dtype).eps)))
            self._lower_edges = np.append(edges[:-1], [np.inf]).astype(work)
            self._lower_edges[0] = -1.0  # below every score
        self._scaled, self._bin = np.empty(max_rows, work), np.empty(max_rows, kind)
        self._last = np.full(max_rows, bins - 1, kind)  # numpy takes ten times as long to compare bytes with one number

    def of(self, scores: Floats) -> NDArray[Any]:
        """Return the bin, 0 to bins - 1, of each of n <= max_rows scores, shape (n,), in memory that the next call overwrites.

        Bin j is [j/b, (j+1)/b), or (j/b, (j+1)/b] if closed on the right; the end bins include 0 and 1.

        >>> left, right = (Edges(np.dtype(float), 2, closed, 3) for closed in ("left", "right"))
        >>> left.of(np.array([0.2, 0.5, 1.0])), right.of(np.array([0.2, 0.5]))
        (array([0, 1, 1], dtype=int32), array([0, 0], dtype=int32))
        """
        scaled, bins = self._scaled[: len(scores)], self._bin[: len(scores)]
        np.multiply(scores, self._factor, out=scaled)
        np.copyto(bins, scaled, casting="unsafe")
        if self._lower_edges is not None:
            bins -= self._is_below(scores, self._lower_edges.take(bins))
        return np.minimum(bins, self._last[: len(scores)], out=bins)  # a score of 1


def _products_are_exact(edges: Floats, factor: np.floating[Any], closed: Literal["left", "right"]) -> bool:
    """Return whether floor(score * factor) is the bin of every score in [0, 1); `edges`, shape (bins + 1,), ascend from 0 to 1.

    Scores at the inner edges and next to them decide it.
    """
    edge, bin_number = edges[1:-1], np.arange(1, len(edges) - 1)
    beside = np.nextafter(edge, edge.dtype.type(closed == "right"))
    below, above = (beside, edge) if closed == "left" else (edge, beside)
    return bool(np.all(below * factor < bin_number) and np.all(above * factor >= bin_number))


class _BinCounter:
    """Count rows and sum scores by bin of equal width and outcome, in blocks, with working memory that is allocated once.

    A row has the code 2 * bin + outcome. Sums alternate between four tables ("lanes"), so that consecutive rows of one bin do not
    wait for each other.
    """

    def __init__(self, dtype: np.dtype[Any], bins: int, closed: Literal["left", "right"], rows: int) -> None:
        """Set up tables for datasets of `rows` rows in `bins` bins closed on one side, of scores of a dtype."""
        self._cells = 2 * bins
        fits_byte = _LANES * self._cells <= 256
        kind: type[np.generic] = np.uint8 if fits_byte else np.uint16  # small integers are faster
        self._edges = Edges(dtype, bins, closed, min(_BLOCK, rows), kind)
        self._lane = np.tile((np.arange(_LANES) * self._cells).astype(kind), _BLOCK // _LANES)
        self._side = 1 << (self._cells - 1).bit_length()  # so that a table of pairs stays in the level-1 cache
        self._upper_codes = np.empty(_BLOCK // 2, np.uint16)
        self._sums: Callable[[NDArray[Any], Floats], Float64s]
        self._count_pairs: Callable[[NDArray[Any]], NDArray[Any]]
        if fits_byte and rows >= _SPARSE_FROM:
            self._sums = _SparseSums(256, np.zeros(_BLOCK))
            self._count_pairs = _SparseSums(self._side**2, np.ones(_BLOCK // 2, np.int32))
        else:
            self._sums = _PlainSums(_LANES * self._cells)
            self._count_pairs = partial(np.bincount, minlength=self._side**2)

    def tables(self, scores: Floats, outcomes: NDArray[np.uint8], *, squares: bool) -> Float64s:
        """Return rows, sums of scores and of squares in every bin of one dataset, of zeros and of ones: shape (3, bins, 2).

        Without `squares` the third table is 0.
        """
        size = _LANES * self._cells
        tables = np.zeros((3, size))
        by_pairs = self._lane.itemsize == 1 and len(scores) >= _BLOCK
        side = self._side if by_pairs else 0
        pairs = np.zeros((side, side), np.intp)
        for start in range(0, len(scores), _BLOCK):
            c, y = scores[start : start + _BLOCK], outcomes[start : start + _BLOCK]
            code = self._edges.of(c)
            code += code
            code |= y
            if by_pairs and len(c) == _BLOCK:  # two rows are counted as one number: half as many
                two_codes = code.view(np.uint16)  # 256 * upper + lower, wanted is side * upper + lower
                np.right_shift(two_codes, 8, out=self._upper_codes)
                self._upper_codes *= 256 - side
                pair = np.subtract(two_codes, self._upper_codes, out=self._upper_codes)
                pairs += self._count_pairs(pair).reshape(pairs.shape)
            else:
                tables[0, : self._cells] += np.bincount(code, None, self._cells)
            code += self._lane[: len(c)]
            tables[1] += self._sums(code, c)[:size]
            if squares:
                tables[2] += self._sums(code, np.square(c, dtype=np.float64))[:size]
        if by_pairs:
            tables[0, : self._cells] += (pairs.sum(axis=1) + pairs.sum(axis=0))[: self._cells]
        return tables.reshape(3, _LANES, -1).sum(axis=1).reshape(3, -1, 2)


class _PlainSums:
    """Sum values by their codes, 0 to size - 1, for up to one block of rows."""

    def __init__(self, size: int) -> None:
        """Set up `size` codes."""
        self._size, self._index = size, np.empty(_BLOCK, np.intp)

    def __call__(self, code: NDArray[Any], values: Floats) -> Float64s:
        """Sum values by code; both have shape (rows,), the sums shape (size,).

        >>> _PlainSums(3)(np.array([0, 2, 2], np.uint8), np.array([0.1, 0.2, 0.3]))
        array([0.1, 0. , 0.5])
        """
        index = self._index[: len(code)]
        np.copyto(index, code)
        return np.bincount(index, values, self._size).astype(np.float64, copy=False)


class _SparseSums:
    """Sum values by their codes, 0 to size - 1, as the product of a sparse column with 1, which is faster than bincount.

    scipy does not check the codes. `values`, as many as are summed at a time, are what is summed where a call gives none, and of
    the type in which others are summed.
    """

    def __init__(self, size: int, values: NDArray[Any]) -> None:
        """Set up `size` codes, for as many rows at a time as there are `values`."""
        from scipy.sparse import csc_array

        codes, ends = np.zeros(len(values), np.int32), np.array([0, len(values)], np.int32)
        self._values, self._one = values, np.ones(1, values.dtype)
        self._column: Any = csc_array((values, codes, ends), shape=(size, 1))

    def __call__(self, code: NDArray[Any], values: Floats | None = None) -> NDArray[Any]:
        """Sum values by code; both have shape (rows,), the sums shape (size,).

        >>> _SparseSums(3, np.ones(3))(np.array([0, 2, 2], np.uint8))
        array([1., 0., 2.])
        """
        rows, column = len(code), self._column
        if values is not None and values.dtype != self._values.dtype:
            np.copyto(self._values[:rows], values)
            values = None
        column.data = self._values if values is None else values
        column.indptr[1] = rows
        np.copyto(column.indices[:rows], code)
        sums: NDArray[Any] = column @ self._one
        return sums
