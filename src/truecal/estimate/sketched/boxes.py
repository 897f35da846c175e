"""What a sketch leaves open about bins: how much of a cell may lie on the other side of a cut.

A cut through a cell is the only thing a sketch does not know. For the rows that may be on the wrong side of it there are bounds
from the cell's own sums: any part of a cell has a residual sum (of y - c) between -(sum of c where y = 0) and (sum of 1 - c where
y = 1). A cell whose lowest and highest score are equal is a group of ties, which a Profile of all rows treats in the same way:
nothing is open there.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from truecal.estimate.binning import Binning
from truecal.estimate.bins import Bins
from truecal.profile import CellProfile, Cut
from truecal.types import Float64s, Indices


@dataclass(frozen=True)
class Range:
    """Between `low` and `high`, element by element."""

    low: Float64s
    high: Float64s

    def absolute(self) -> "Range":
        """Range of the absolute value."""
        crosses = (self.low <= 0) & (self.high >= 0)
        ends = np.abs(self.low), np.abs(self.high)
        return Range(np.where(crosses, 0.0, np.minimum(*ends)), np.maximum(*ends))


@dataclass(frozen=True)
class Boxes:
    """Ranges of weight, residual (y - c), outcomes and squared residual summed over each bin, all of shape (b,)."""

    weight: Range
    residual: Range
    outcome: Range
    square: Range
    total: float

    @property
    def settled(self) -> bool:
        """Whether every bin surely holds the same rows as without a sketch."""
        return bool((self.weight.low == self.weight.high).all())

    def rate(self) -> Range:
        """Mean outcome; 0 to 1 where the bin may be empty."""
        filled = self.weight.low > 0
        low = self.outcome.low / np.where(filled, self.weight.high, 1.0)
        high = self.outcome.high / np.where(filled, self.weight.low, 1.0)
        return Range(np.where(filled, np.clip(low, 0, 1), 0.0), np.where(filled, np.clip(high, 0, 1), 1.0))

    def gap(self) -> Range:
        """|mean outcome - mean score|; from 0 to 1 where the bin may be empty."""
        size = self.residual.absolute()
        filled = self.weight.low > 0
        low = np.where(filled, size.low / np.where(filled, self.weight.high, 1.0), 0.0)
        high = np.where(filled, size.high / np.where(filled, self.weight.low, 1.0), 1.0)
        return Range(low, np.minimum(high, 1.0))


def boxes(profile: CellProfile, binning: Binning, bins: int) -> Boxes:
    """What the bins of all rows may hold, given the cells."""
    cut = binning.cuts(profile, bins)
    found = Bins.of(profile, cut)
    weight, score, outcome = found.weight[0], found.score_sum[0], found.outcome_sum[0]
    squares, products = (np.diff(profile.sums(name, cut), axis=1)[0] for name in ("cc", "cy"))
    total = float(profile.total[0])
    if binning.scheme == "width":
        edge, cell = _cells_on_edges(profile, bins, binning.closed)
        open_ = _whole_cell(profile, cell)
    else:
        inside = profile.mass_cut(bins, "split")
        edge, cell, fraction = _cells_cut_by_mass(profile, inside)
        part = _any_part_of_cell if binning.ties == "keep" else _part_of_cell
        open_ = part(profile, cell, fraction)

    def ranged(centre: Float64s, amount: Float64s, lowest: float | None = 0.0) -> Range:
        at = np.zeros(bins + 1)
        at[edge] = amount
        spread = at[:-1] + at[1:]
        low, high = centre - spread, centre + spread
        return Range(low if lowest is None else np.maximum(low, lowest), np.minimum(high, total))

    slack = profile.rounding * total
    residual = ranged(outcome - score, open_.residual, None)
    return Boxes(
        ranged(weight, open_.weight),
        Range(residual.low - slack, residual.high + slack),
        ranged(outcome, open_.outcome),
        ranged(outcome - 2 * products + squares, open_.square),
        total,
    )


def binned_range(box: Boxes, norm: float) -> tuple[float, float]:
    """Sum of W |R/W|^p over bins that hold anything, or the largest |R/W|."""
    gap = box.gap()
    if norm == np.inf:
        sure = box.weight.low > 0
        possible = box.weight.high > 0
        return float(gap.low[sure].max(initial=0.0)), float(gap.high[possible].max(initial=0.0))
    size, weight = box.residual.absolute(), box.weight
    if norm == 1:  # what one bin loses another gains, so the sum of |R| moves by no more than the sum of what may move
        return over(size.low, box), over(np.minimum(size.high, weight.high), box)
    low = np.where(weight.high > 0, size.low * gap.low ** (norm - 1), 0.0)
    return over(low, box), over(np.minimum(size.high * gap.high ** (norm - 1), weight.high), box)


def over(values: Float64s, box: Boxes) -> float:
    """The sum of one value per bin as a share of the total weight."""
    return float(values.sum()) / box.total


def picked(values: Range, some: NDArray[np.bool_]) -> Range:
    """The ranges of some bins."""
    return Range(values.low[some], values.high[some])


@dataclass(frozen=True)
class _Open:
    """How much of each sum may be on the other side of a cut."""

    weight: Float64s
    residual: Float64s
    outcome: Float64s
    square: Float64s


def _sums(profile: CellProfile, cell: Indices, fraction: Float64s | float = 1.0) -> tuple[Float64s, ...]:
    """Weight, and sums of c, y, c*c and c*y, of some cells, or what the profile takes to be below a cut through them."""
    return tuple(
        profile.part(name, cell, np.broadcast_to(fraction, cell.shape)) for name in ("w", "c", "y", "cc", "cy")
    )


def _whole_cell(profile: CellProfile, cell: Indices) -> _Open:
    """Any part of the cell may be on the other side."""
    w, c, y, cc, cy = _sums(profile, cell)
    return _Open(w, np.maximum(y - cy, c - cy), y, np.maximum(y - 2 * cy + cc, 0.0))


def _any_part_of_cell(profile: CellProfile, cell: Indices, fraction: Float64s) -> _Open:
    """The sketch takes a part of the cell, but ties inside the cell may have moved the cut to anywhere in it."""
    w, c, y, cc, cy = _sums(profile, cell)
    w0, c0, y0, cc0, cy0 = _sums(profile, cell, fraction)
    residual = np.maximum((y - cy) - (y0 - c0), (y0 - c0) + (c - cy))
    square, square0 = y - 2 * cy + cc, y0 - 2 * cy0 + cc0
    return _Open(np.maximum(w0, w - w0), residual, np.maximum(y0, y - y0), _reach(square, square0))


def _part_of_cell(profile: CellProfile, cell: Indices, fraction: Float64s) -> _Open:
    """A known weight of the cell is below the cut, but which of its rows is not known; the sketch takes its best guess."""
    w, c, y, cc, cy = _sums(profile, cell)
    below, c0, y0, cc0, cy0 = _sums(profile, cell, fraction)
    fewest, most = np.maximum(y - (w - below), 0.0), np.minimum(below, y)
    least = np.maximum(below * profile.low[cell], c - (w - below) * profile.high[cell])
    # Below the cut no larger mean than in all
    lower, higher = (
        np.maximum(c0 - least, 0.0),
        np.maximum(fraction * c - c0, 0.0),
    )
    residual = np.maximum(most - y0 + lower, y0 - fewest + higher)
    square = _reach(y - 2 * cy + cc, y0 - 2 * cy0 + cc0)
    return _Open(np.zeros(len(cell)), residual, np.maximum(most - y0, y0 - fewest), square)


def _reach(whole: Float64s, taken: Float64s) -> Float64s:
    """How far any part of a positive sum can be from what was taken for it."""
    return np.maximum(np.abs(whole - taken), np.abs(taken))


def _cells_on_edges(profile: CellProfile, bins: int, closed: Literal["left", "right"]) -> tuple[Indices, Indices]:
    """Inner edges that run through a cell, and that cell."""
    edge = np.arange(1, bins)
    at = (edge / bins).astype(profile.precision).astype(np.float64)
    side: Literal["left", "right"] = closed
    cell = np.searchsorted(profile.high, at, side)  # the first whose highest score is not below the edge
    there = cell < profile.rows
    edge, at, cell = edge[there], at[there], cell[there]
    through = profile.low[cell] < at if closed == "left" else profile.low[cell] <= at
    return edge[through], cell[through]


def _cells_cut_by_mass(profile: CellProfile, cut: Cut) -> tuple[Indices, Indices, Float64s]:
    """Cuts that run through a cell of several scores, that cell, and how much of it lies below."""
    if cut.fraction is None:
        none = np.zeros(0, np.intp)
        return none, none, np.zeros(0)
    fraction, cell = cut.fraction[0], np.minimum(cut.below[0], profile.rows - 1)
    through = np.flatnonzero((fraction > 0) & (fraction < 1) & (profile.low < profile.high)[cell])
    return through, cell[through], fraction[through]
