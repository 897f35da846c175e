r"""The cells of a sketch: fine near 0 and near 1, and the same in every engine to the last bit.

A score c is looked at from the nearer end: v = c below 1/2, v = c - 1 from there on (exact, because the two are within a factor of
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

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from truecal.types import Float64s, Floats, Indices

SPLIT = 2.0**52 + 1
LEAST_ZONE = 2.0**-52
MIDDLE_ZONE = 2.0**-7  # from here on cells are of equal width
MIDDLE_CELLS = 2.0**14  # per unit
ZONE_CELLS = 2.0**7  # cells per unit in a zone around the power of two z: this over z

_FIRST = 96  # a zone reaches from 3/4 to 3/2 of its power of two: cells 96 to 191 of 128 per power
_TAILS = 45  # zones 2^-52 .. 2^-8
_TAIL = _FIRST * (_TAILS + 1)  # cells of one tail: the linear rest below the last zone, then the zones
_MIDDLE = int(MIDDLE_CELLS) // 2 - _FIRST  # cells of the middle on one side
_MIDDLE_FROM = 0.75 * MIDDLE_ZONE  # the distance to the nearer end from which the middle reaches
_HALF = _TAIL + _MIDDLE
CELLS = 2 * _HALF + 1  # both sides and the cell of the score 1


@dataclass(frozen=True)
class CellRule:
    """The numbers of the formula above, for whoever writes it in another language: an engine's expressions, a tensor."""

    split: float = SPLIT
    least_zone: float = LEAST_ZONE
    middle_zone: float = MIDDLE_ZONE
    middle_cells: float = MIDDLE_CELLS
    zone_cells: float = ZONE_CELLS
    count: int = CELLS  # of all cells


CELL_RULE = CellRule()


def near_end(c: Float64s) -> Float64s:
    """v: the score below 1/2, the score minus 1 from there on."""
    return np.where(c < 0.5, c, c - 1.0)


def cells_per_unit(v: Float64s) -> Float64s:
    """q: a power of two, 2^14 in the middle and more towards the ends."""
    t = v * SPLIT
    z = np.maximum(np.abs(t - (t - v)), LEAST_ZONE)
    return np.maximum(MIDDLE_CELLS, ZONE_CELLS / z)


def cell_edge(scores: Floats) -> Float64s:
    """Left edge of the cell of every score in [0, 1].

    >>> cell_edge(np.array([0.0, 0.3, 0.5, 0.7, 1.0])).tolist()
    [0.0, 0.29998779296875, 0.5, 0.699951171875, 1.0]
    """
    c = scores.astype(np.float64)
    v = near_end(c)
    q = cells_per_unit(v)
    return np.floor(v * q) / q + (c >= 0.5)


def cell_number(scores: Floats) -> tuple[Indices, Float64s]:
    """Number of the cell of every score, 0 to CELLS - 1 in ascending order, and how far the score is above its edge."""
    c = scores.astype(np.float64)
    tails = np.flatnonzero((c < _MIDDLE_FROM) | (c > 1 - _MIDDLE_FROM))
    if 4 * len(tails) > len(c):
        return _by_zones(c)
    step = c * MIDDLE_CELLS  # of the middle, where v = c and v = c - 1 lead to the same
    np.floor(step, out=step)
    number = step.astype(np.intp)
    number += _TAIL - _FIRST
    step *= 1 / MIDDLE_CELLS
    r = np.subtract(c, step, out=step)
    number[tails], r[tails] = _by_zones(c[tails])
    return number, r


def _by_zones(c: Float64s) -> tuple[Indices, Float64s]:
    """The same by the formula for all scores."""
    v = near_end(c)
    q = cells_per_unit(v)
    step = np.floor(v * q)
    shift: Any = _shifts()[q.view(np.int64) >> 52]
    number = step.astype(np.intp) + np.where(c < 0.5, shift, CELLS - 1 - shift)
    return number, v - step / q


@lru_cache
def _shifts() -> Indices:
    """By the exponent bits of q: what to add to floor(v q) to get the number of a cell on the lower side."""
    shifts = np.zeros(2048, np.intp)
    for k in range(8, 53):  # zones of 2^-k: their first cell is number 96 of q = 2^(7 + k)
        shifts[1023 + 7 + k] = _FIRST * (52 - k)
    shifts[1023 + 14] = _TAIL - _FIRST
    return shifts


@lru_cache
def all_edges() -> Float64s:
    """Left edges of all cells, in ascending order.

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
