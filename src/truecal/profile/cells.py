"""The cells of a sketch: fine near 0 and near 1, and the same in every engine to the last bit.

A score c is measured from the nearer end: v = c below 1/2, v = c - 1 from there on (exact, because the two are within a factor of
two). With z the power of two nearest to |v|, but at least 2^-52, there are

    q = max(2^14, 2^7 / z)    cells per unit,

and the cell of c starts at floor(v q) / q (plus 1 on the upper side). So cells are 2^-14 wide in the middle; from 0.006 on
outwards they shrink with the distance to the end, to between 1/192 and 1/96 of it. The score 1 has a cell of its own. A cell
holds its left edge and not its right one, everywhere.

Nothing here rounds: z = t - (t - v) with t = (2^52 + 1) v is Dekker's splitting taken to a single bit (a tie goes up), q is a
power of two, and c - edge is exact again. Additions, multiplications, comparisons and a floor are all an engine needs; a
logarithm would cost more and differ in the last bit between engines.

Cells line up with all equal-width bins whose number is a power of two up to 16384.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from truecal.special import positive
from truecal.types import Float64s, Floats, Indices

# ----------------------------------------------------------------------------------------------------
# Edges and numbers of cells. These numbers are the format of a sketch: every engine has to use the same.

SPLIT = 2.0**52 + 1  # derived: v * SPLIT - (v * SPLIT - v) rounds v to a power of two (Veltkamp)
LEAST_ZONE = 2.0**-52  # derived: the precision of a double; power of two of the zones nearest to 0 and 1
MIDDLE_ZONE = 2.0**-7  # by choice: from here on cells are of equal width
MIDDLE_CELLS = 2.0**14  # by choice: cells per unit there
# derived: as wide as those of the middle where both meet; cells per unit in a zone around the power of two z: this over z
ZONE_CELLS = 2.0**7

_FIRST = 96  # derived: a zone reaches from 3/4 to 3/2 of its power of two: cells 96 to 191 of 128 per power
_TAILS = 45  # derived: zones 2^-52 .. 2^-8
_TAIL = _FIRST * (_TAILS + 1)  # derived: cells of one tail: the linear rest below the last zone, then the zones
_MIDDLE = int(MIDDLE_CELLS) // 2 - _FIRST  # derived: cells of the middle on one side
_HALF = _TAIL + _MIDDLE
CELLS = 2 * _HALF + 1  # derived: both sides and the cell of the score 1


def near_end(c: Float64s) -> Float64s:
    """Compute v, the signed distance of every score from the nearer end: c below 1/2, c - 1 (negative) from 1/2 on.

    >>> near_end(np.array([0.25, 0.5, 1.0]))
    array([ 0.25, -0.5 ,  0.  ])
    """
    return np.where(c < 0.5, c, c - 1.0)


def cells_per_unit(v: Float64s) -> Float64s:
    """Compute q = max(2^14, 2^7 / z), the cells per unit; z is the power of two nearest to |v| (a tie goes up), at least 2^-52.

    >>> cells_per_unit(np.array([0.25, 0.01, 0.0])) == np.array([2**14, 2**14, 2**59])
    array([ True,  True,  True])
    """
    t = v * SPLIT
    z = np.maximum(np.abs(t - (t - v)), LEAST_ZONE)
    return np.maximum(MIDDLE_CELLS, ZONE_CELLS / z)


def cell_edge(scores: Floats) -> Float64s:
    """Return the left edge of the cell of every score in [0, 1], floor(v q) / q, plus 1 from 0.5 on.

    >>> cell_edge(np.array([0.0, 0.3, 0.5, 0.7, 1.0])).tolist()
    [0.0, 0.29998779296875, 0.5, 0.699951171875, 1.0]
    """
    c = scores.astype(np.float64)
    v = near_end(c)
    q = cells_per_unit(v)
    return np.floor(v * q) / q + (c >= 0.5)


def cell_number(scores: Floats) -> tuple[Indices, Float64s]:
    """Return every score's cell, 0 to 25,024 ascending, and the score minus the left edge of the cell; both (n,).

    >>> number, offset = cell_number(np.array([0.0, 0.5, 1.0]))
    >>> number, offset
    (array([    0, 12512, 25024]), array([0., 0., 0.]))
    """
    c = scores.astype(np.float64)
    v = near_end(c)
    q = cells_per_unit(v)
    step = np.floor(v * q)
    shift: Any = _shifts()[q.view(np.int64) >> 52]
    number = step.astype(np.intp) + np.where(c < 0.5, shift, CELLS - 1 - shift)
    return number, v - step / q


@lru_cache
def _shifts() -> Indices:
    """Tabulate the offset from floor(v q) to the number of a cell below 1/2, shape (2048,), at the biased exponent of q.

    For q = 2^e, e = 14 to 59, entry 1023 + e is 96 (59 - e); all others are 0.
    """
    shifts = np.zeros(2048, np.intp)
    for k in range(8, 53):  # zones of 2^-k: their first cell is number 96 of q = 2^(7 + k)
        shifts[1023 + 7 + k] = _FIRST * (52 - k)
    shifts[1023 + 14] = _TAIL - _FIRST
    return shifts


@lru_cache
def all_edges() -> Float64s:
    """Return the left edges of all cells, in ascending order.

    Just below 1 some cells are narrower than the spacing of float64: no score can fall into those, and their edge repeats.

    >>> edges = all_edges()
    >>> len(edges), bool((cell_edge(edges) == edges).all())
    (25025, True)
    """
    low = [np.arange(_FIRST) * 2.0**-59]
    low += [np.arange(_FIRST, 2 * _FIRST) * 2.0 ** -(7 + k) for k in range(52, 7, -1)]
    low += [np.arange(_FIRST, int(MIDDLE_CELLS) // 2) / MIDDLE_CELLS]
    below = np.concatenate(low)
    # On the upper side a cell reaches from 1 - (j+1)/q up to 1 - j/q, so its edge mirrors the right edge of one below.
    above = 1.0 - np.concatenate([below[1:], [0.5]])[::-1]
    edges = np.concatenate([below, above, [1.0]])
    edges.flags.writeable = False
    return edges


# ----------------------------------------------------------------------------------------------------
# The tally: every cell of a sketch in one dense array

SUMS = ("n", "y", "r", "rr", "ry", "w", "ww")  # the last two only with weights
_CHUNK = 32_768  # derived: more rows than the 25,025 cells that are cleared for each chunk
_PART = 8192  # derived: rows whose arrays of 64 kB the allocator reuses instead of returning them to the system


class Tally:
    """Count rows into all cells of a sketch, in dense arrays.

    Parameters
    ----------
    sums : ndarray of shape (5 or 7, cells), default None
        Sums to continue, shared with the caller; None starts at 0.
    low : ndarray of shape (cells,), default None
        Smallest scores to continue.
    high : ndarray of shape (cells,), default None
        Largest scores to continue.

    See Also
    --------
    Sketch.from_tally : The filled cells as a sketch.

    Examples
    --------
    >>> import numpy as np
    >>> tally = Tally()
    >>> tally.add(np.array([0.1, 0.1, 0.9]), np.array([0, 1, 1], np.uint8))
    >>> int(tally.sums[0].sum()), int(np.count_nonzero(tally.sums[0]))
    (3, 2)
    """

    def __init__(self, sums: Float64s | None = None, low: Float64s | None = None, high: Float64s | None = None) -> None:
        """Start from given sums, which are changed in place, or from none."""
        self.sums = np.zeros((5, CELLS)) if sums is None else sums
        self.low = np.full(CELLS, np.inf) if low is None else low
        self.high = np.full(CELLS, -np.inf) if high is None else high
        self.fraction = 0.0  # largest distance of a weight from a whole number

    @property
    def weighted(self) -> bool:
        """Whether sums of weights are held: `sums` has 7 rows, not 5.

        >>> Tally().weighted
        False
        """
        return len(self.sums) > 5

    def add(self, scores: Floats, outcomes: NDArray[np.uint8], weights: Float64s | None = None) -> None:
        """Count rows that were validated before.

        Parameters
        ----------
        scores : ndarray of shape (n,)
            Scores in [0, 1].
        outcomes : ndarray of shape (n,), uint8
            0 or 1.
        weights : ndarray of shape (n,), default None
            Non-negative weights.

        Examples
        --------
        >>> tally = Tally()
        >>> tally.add(np.array([0.25, 0.75]), np.array([0, 1], np.uint8))
        >>> tally.sums[:2].sum(axis=1)  # rows and ones
        array([2., 1.])
        """
        if weights is not None and not self.weighted:
            self.sums = np.concatenate([self.sums, self.sums[:1], self.sums[:1]])
        for start in range(0, len(scores), _CHUNK):
            rows = slice(start, start + _CHUNK)
            self._add(scores[rows], outcomes[rows], None if weights is None else weights[rows])

    def _add(self, scores: Floats, outcomes: NDArray[np.uint8], weights: Float64s | None) -> None:
        """Add rows, (n,) each, to `sums`, `low` and `high` of their cells, in place.

        The rows of `sums` are n, y, r, r*r, r*y and, with weights, w and w*w, with r = score - left edge and y to r*y weighted.
        Rows of weight 0 are ignored; `fraction` grows to the largest distance of a weight from a whole number.
        """
        if weights is not None and not weights.all():  # a row of weight zero counts as absent
            positive_weight = weights > 0
            scores, outcomes, weights = scores[positive_weight], outcomes[positive_weight], weights[positive_weight]
        number, r, values = np.empty(len(scores), np.intp), np.empty(len(scores)), np.empty(len(scores))
        for start in range(0, len(scores), _PART):
            part = slice(start, start + _PART)
            number[part], r[part] = cell_number(scores[part])

        def sum_by_cell(values: Any) -> Float64s:
            """Sum `values`, one per row, over the rows of each cell, shape (cells,)."""
            return np.bincount(number, values, CELLS).astype(np.float64, copy=False)

        count = np.bincount(number, minlength=CELLS)
        self.sums[0] += count
        if weights is None:
            np.copyto(values, outcomes)
            self.sums[1] += sum_by_cell(values)
            self.sums[2] += sum_by_cell(r)
            self.sums[4] += sum_by_cell(np.multiply(r, values, out=values))
            self.sums[3] += sum_by_cell(np.multiply(r, r, out=values))
            if self.weighted:
                self.sums[5:] += count
        else:
            w, y = weights, outcomes
            for index, terms in enumerate((w * y, w * r, w * r * r, w * r * y, w, w * w), start=1):  # the order of SUMS
                self.sums[index] += sum_by_cell(terms)
            self.fraction = max(self.fraction, float(np.abs(w - np.rint(w)).max(initial=0.0)))
        np.copyto(values, scores)
        np.abs(values, out=values)  # -0.0 becomes 0.0
        np.minimum.at(self.low, number, values)
        np.maximum.at(self.high, number, values)


# ----------------------------------------------------------------------------------------------------
# Rows from cells: cells of up to three predictions determine them exactly

_TINY = 2.0**-45  # derived: below this edge offsets may differ by more orders of magnitude than a float64 can add


class FilledCells(Protocol):
    """The filled cells of a sketch: attributes of :class:`truecal.Sketch`."""

    edges: Float64s
    sums: dict[str, Float64s]
    low: Float64s
    high: Float64s
    fraction: float
    precision: int

    @property
    def rows(self) -> int:
        """Number of predictions in all cells, a weight of any size counting once."""
        ...


@dataclass(frozen=True, eq=False)
class CellRows:
    """Means, total weight and extreme scores of every row, ascending, shape (rows,); a row is a prediction or a cell."""

    score: Float64s
    outcome: Float64s
    weight: Float64s
    squares: Float64s  # mean of the squared scores
    products: Float64s  # mean of score times outcome
    low: Float64s
    high: Float64s
    spread: Float64s  # standard deviation of the scores within a row; 0 for a single prediction
    tilt: Float64s  # covariance of scores and outcomes within a row over `spread`; 0 where that is 0


def rows_from_cells(sketch: FilledCells) -> CellRows:
    """Return one row per cell, or one per prediction in cells of two or three predictions whose scores differ.

    The latter need weights of 1 and, for three, an edge of at least 2^-45; their scores follow from the extremes and the sum, their
    outcomes from the sum of r*y. All other cells are rows with mean scores and outcomes, weighing the sum of their weights.
    """
    sums, edge = sketch.sums, sketch.edges
    n, w = sums["n"], sums["w"]
    plain = (w == n) & (sums["ww"] == n) & (sketch.low < sketch.high)
    is_exact = plain & ((n == 2) | ((n == 3) & (edge >= _TINY)))
    times = np.where(is_exact, n, 1).astype(np.intp)
    cell = np.repeat(np.arange(len(n)), times)
    rank = np.arange(len(cell)) - np.repeat(np.cumsum(times) - times, times)  # of a row among those of its cell
    is_prediction = is_exact[cell]

    offset = _offsets(sketch)[cell, np.where(rank == times[cell] - 1, 2, rank)]
    outcome = _outcomes(sketch)[cell, np.where(rank == times[cell] - 1, 2, rank)]
    r, rr, ry, y = (sums[name] / w for name in ("r", "rr", "ry", "y"))
    mean = np.clip(edge + r, sketch.low, sketch.high)  # of a cell that holds one score, exactly that score
    score = np.where(is_prediction, edge[cell] + offset, mean[cell])
    spread = np.sqrt(np.maximum(rr - r * r, 0.0))
    tilt = np.where(spread > 0, (ry - r * y) / positive(spread), 0.0)
    return CellRows(
        score=score,
        outcome=np.where(is_prediction, outcome, y[cell]),
        weight=np.where(is_prediction, 1.0, w[cell]),
        squares=np.where(is_prediction, score * score, (edge * edge + 2 * edge * r + rr)[cell]),
        products=np.where(is_prediction, score * outcome, (edge * y + ry)[cell]),
        low=np.where(is_prediction, score, sketch.low[cell]),
        high=np.where(is_prediction, score, sketch.high[cell]),
        spread=np.where(is_prediction, 0.0, spread[cell]),
        tilt=np.where(is_prediction, 0.0, tilt[cell]),
    )


def _offsets(sketch: FilledCells) -> Float64s:
    """Compute three offsets c - edge of every cell, as if it held three rows, shape (cells, 3): lowest, middle, highest.

    The middle one is the sum of r minus the other two, clipped to lie between them.
    """
    low, high = sketch.low - sketch.edges, sketch.high - sketch.edges
    middle = np.clip(sketch.sums["r"] - low - high, low, high)
    return np.stack([low, middle, high], axis=1)


def _outcomes(sketch: FilledCells) -> Float64s:
    """Find the outcomes, 0.0 or 1.0, of the three offsets of `_offsets` from the number of ones and the sum of r*y, (cells, 3).

    Of one or two ones among two or three rows, that whose offset is nearest to the sum is the single one (or the single zero). In
    cells of two rows the middle column has no meaning; in cells of more rows none has.
    """
    n, ones, total, product = (sketch.sums[name][:, None] for name in ("n", "y", "r", "ry"))
    offsets = _offsets(sketch)
    single_zero = (n == 3) & (ones == 2)
    target_sum = np.where(single_zero, total - product, product)  # the offset of the single one, or of the single zero
    distance = np.abs(offsets - target_sum)
    distance[:, 1] = np.where(n[:, 0] == 3, distance[:, 1], np.inf)  # two rows have no middle
    ones_at = np.zeros(offsets.shape)
    ones_at[np.arange(len(ones_at)), distance.argmin(axis=1)] = 1.0
    ones_at = np.where(single_zero, 1.0 - ones_at, ones_at)
    return np.where(ones == 0, 0.0, np.where(ones == n, 1.0, ones_at))
