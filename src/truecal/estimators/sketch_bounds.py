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

from truecal.estimators.bins import Binning, Bins, absolute_cube, folded_mean
from truecal.profile.binning import Cut
from truecal.profile.cell_profile import CellProfile
from truecal.profile.profile import Profile
from truecal.special import positive
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
        """Return the range of the mean outcome; 0 to 1 if the bin may be empty."""
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
    """Bound the sums of rows in each bin, given the cells of a sketch."""
    cut = binning.cut(profile, bins)
    sums = Bins.of(profile, cut)
    weight, score, outcome = sums.weight[0], sums.score_sum[0], sums.outcome_sum[0]
    squares, products = (np.diff(profile.sums(name, cut), axis=1)[0] for name in ("cc", "cy"))
    total = float(profile.total[0])
    if binning.scheme == "width":
        edge, cell = _cells_on_edges(profile, bins, binning.closed)
        open_ = _any_part_of_cell(profile, cell, np.zeros(len(cell)))
    else:
        inside = profile.mass_cut(bins, "split")
        edge, cell, fraction = _cells_cut_by_mass(profile, inside)
        part = _any_part_of_cell if binning.ties == "keep" else _part_of_cell
        open_ = part(profile, cell, fraction)

    def ranged(centre: Float64s, amount: Float64s, lowest: float | None = 0.0) -> Range:
        open_at = np.zeros(bins + 1)
        open_at[edge] = amount
        spread = open_at[:-1] + open_at[1:]
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
    """Sum one value per bin, as a share of the total weight."""
    return float(values.sum()) / box.total


def select_bins(values: Range, members: NDArray[np.bool_]) -> Range:
    """Select the ranges of the bins in a mask."""
    return Range(values.low[members], values.high[members])


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


def _any_part_of_cell(profile: CellProfile, cell: Indices, fraction: Float64s) -> _Open:
    """Bound the error of sums where ties may move a cut to anywhere in its cell."""
    w, c, y, cc, cy = _sums(profile, cell)
    w0, c0, y0, cc0, cy0 = _sums(profile, cell, fraction)
    residual = np.maximum((y - cy) - (y0 - c0), (y0 - c0) + (c - cy))
    square, square0 = y - 2 * cy + cc, y0 - 2 * cy0 + cc0
    return _Open(np.maximum(w0, w - w0), residual, np.maximum(y0, y - y0), _reach(square, square0))


def _part_of_cell(profile: CellProfile, cell: Indices, fraction: Float64s) -> _Open:
    """Bound the error of sums where the weight of a cell below a cut is known, but not which rows."""
    w, c, y, cc, cy = _sums(profile, cell)
    below, c0, y0, cc0, cy0 = _sums(profile, cell, fraction)
    fewest, most_ones = np.maximum(y - (w - below), 0.0), np.minimum(below, y)
    least_score = np.maximum(below * profile.low[cell], c - (w - below) * profile.high[cell])
    # Below the cut no larger mean than in all
    lower, higher = (
        np.maximum(c0 - least_score, 0.0),
        np.maximum(fraction * c - c0, 0.0),
    )
    residual = np.maximum(most_ones - y0 + lower, y0 - fewest + higher)
    square = _reach(y - 2 * cy + cc, y0 - 2 * cy0 + cc0)
    return _Open(np.zeros(len(cell)), residual, np.maximum(most_ones - y0, y0 - fewest), square)


def _reach(whole: Float64s, part: Float64s) -> Float64s:
    """Bound the distance between any part of a sum of positive terms and the assumed part."""
    return np.maximum(np.abs(whole - part), np.abs(part))


def _cells_on_edges(profile: CellProfile, bins: int, closed: Literal["left", "right"]) -> tuple[Indices, Indices]:
    """Inner edges that run through a cell, and that cell."""
    edge = np.arange(1, bins)
    value = (edge / bins).astype(profile.precision).astype(np.float64)
    side: Literal["left", "right"] = closed
    cell = np.searchsorted(profile.high, value, side)  # the first whose highest score is not below the edge
    there = cell < profile.rows
    edge, value, cell = edge[there], value[there], cell[there]
    through = profile.low[cell] < value if closed == "left" else profile.low[cell] <= value
    return edge[through], cell[through]


def _cells_cut_by_mass(profile: CellProfile, cut: Cut) -> tuple[Indices, Indices, Float64s]:
    """Cuts that run through a cell of several scores, that cell, and how much of it lies below."""
    if cut.fraction is None:
        none = np.zeros(0, np.intp)
        return none, none, np.zeros(0)
    fraction, cell = cut.fraction[0], np.minimum(cut.below[0], profile.rows - 1)
    through = np.flatnonzero((fraction > 0) & (fraction < 1) & (profile.low < profile.high)[cell])
    return through, cell[through], fraction[through]


# ----------------------------------------------------------------------------------------------------
# The rows behind the cells of a sketch, made up: put into extreme orders to see how far an estimate can move


def split_mixed_cells(profile: CellProfile, zeros_first: NDArray[np.bool_]) -> Profile:
    """Split every cell of several scores into its zeros and its ones, as two rows in a given order with unchanged sums.

    A cell of zeros only, or of ones only, is halved. `zeros_first` says it for every cell, shape (m, cells): m datasets.
    """
    assert profile.weights is not None
    assert profile.squares is not None
    assert profile.products is not None
    weight, score, rate = profile.weights[0], profile.scores[0].astype(np.float64), profile.outcomes[0]
    ranged = profile.low < profile.high
    mixed = (rate > 0) & (rate < 1)
    first = np.where(mixed, np.where(zeros_first, 1 - rate, rate), 0.5)  # share of the cell's weight that comes first
    down, up = (score - profile.low) / np.maximum(1 - first, 1e-300), (profile.high - score) / np.maximum(first, 1e-300)
    room = np.where(ranged, np.maximum(np.minimum(down, up), 0.0) / 2, 0.0)
    first_weight = weight * first
    if profile.counted:
        first_weight = np.rint(first_weight)
    filled = np.flatnonzero(np.stack([np.ones(len(ranged), bool), ranged], axis=1))

    def rows(whole: Float64s, before: Float64s, after: Float64s) -> Float64s:
        pairs = np.empty((len(before), profile.rows, 2))
        pairs[..., 0], pairs[..., 1] = np.where(ranged, before, whole), after
        return pairs.reshape(len(before), -1).take(filled, axis=1)

    ones = profile.products[0] / positive(rate)  # mean c of the ones, which zeros do not have
    before = np.where(mixed, np.where(zeros_first, 0.0, 1.0), rate)
    after = np.where(mixed, 1.0 - before, rate)
    return Profile(
        np.maximum.accumulate(rows(score, score - room * (1 - first), score + room * first), axis=1),
        rows(rate, before, after),
        rows(weight, first_weight, weight - first_weight),
        rows(profile.squares[0], profile.squares, profile.squares),
        rows(profile.products[0], ones * before, ones * after),
    )


# ----------------------------------------------------------------------------------------------------
# What a sketch leaves open about the debiased binned error


def debiased_range(
    profile: CellProfile, binning: Binning, *, norm: float, correction: str
) -> tuple[float, float] | None:
    """Between which powers the debiased error of all rows lies; None where no bin has two rows and all bins are known."""
    box = boxes(profile, binning, binning.bins)
    scale = float(profile.size[0] / profile.total[0])
    fewest, largest = box.weight.low * scale, box.weight.high * scale
    usable = fewest >= 2
    if (~usable & (fewest != largest)).any() or not usable.any():  # a bin that may or may not be left out
        return None if box.settled else (-1.0, 1.0)
    weight = Range(box.weight.low[usable], box.weight.high[usable])
    count = Range(fewest[usable], largest[usable])
    rate = select_bins(box.rate(), usable)
    chance = _chance(rate)
    gap = select_bins(box.gap(), usable)
    if norm == 1:
        low = 2 * np.abs(gap.low) - folded_mean(gap.low, chance.high / count.low)
        high = 2 * np.abs(gap.high) - folded_mean(gap.high, chance.low / count.high)
        terms = Range(
            np.minimum(weight.low * low, weight.high * low), np.maximum(weight.low * high, weight.high * high)
        )
    elif norm == 3:
        # E|gap + noise|^3 rises with the gap and with the noise
        low = 2 * gap.low**3 - absolute_cube(gap.high, chance.high / count.low)
        high = 2 * gap.high**3 - absolute_cube(gap.low, chance.low / count.high)
        terms = Range(
            np.minimum(weight.low * low, weight.high * low), np.maximum(weight.low * high, weight.high * high)
        )
    else:
        size = select_bins(box.residual.absolute(), usable)
        plain = Range(size.low * gap.low, size.high * gap.high)
        if correction == "kumar":
            owed = Range(
                chance.low * weight.high / (count.high - 1),
                chance.high * weight.low / (count.low - 1),
            )
        else:
            square = select_bins(box.square, usable)
            owed = Range(
                np.maximum(square.low - plain.high, 0.0) / (count.high - 1),
                np.maximum(square.high - plain.low, 0.0) / (count.low - 1),
            )
        terms = Range(plain.low - owed.high, plain.high - owed.low)
    covered = float(weight.low.sum()) if box.settled else box.total - float(box.weight.low[~usable].sum())
    return float(terms.low.sum()) / covered - profile.rounding, float(terms.high.sum()) / covered + profile.rounding


def _chance(rate: Range) -> Range:
    """Range of r (1 - r)."""
    ends = rate.low * (1 - rate.low), rate.high * (1 - rate.high)
    middle = (rate.low <= 0.5) & (rate.high >= 0.5)
    return Range(np.minimum(*ends), np.where(middle, 0.25, np.maximum(*ends)))


# ----------------------------------------------------------------------------------------------------
# What a sketch leaves open about the label-binned error


def label_binned_range(profile: CellProfile, binning: Binning, *, norm: float, value: float) -> tuple[float, float]:
    """Between which powers the label-binned error of all rows lies.

    norm 2 from the sums of every bin; norms 1 and inf by the triangle inequality, rate and scores moving by what is open.
    """
    assert profile.squares is not None
    assert profile.weights is not None
    box = boxes(profile, binning, binning.bins)
    rate = box.rate()
    shift, p = rate.high - rate.low, norm
    if p == 2:  # sum (c - rate)^2 = sum c*c - sum over bins of rate (Y - 2 R)
        squares = float((profile.weights * profile.squares).sum()) / box.total
        rest = Range(box.outcome.low - 2 * box.residual.high, box.outcome.high - 2 * box.residual.low)
        corners = np.stack([r * x for r in (rate.low, rate.high) for x in (rest.low, rest.high)])
        filled = box.weight.high > 0
        corner_sums = [over(corners.max(axis=0)[filled], box), over(corners.min(axis=0)[filled], box)]
        return squares - corner_sums[0] - profile.rounding, squares - corner_sums[1] + profile.rounding
    if p == np.inf:
        reach = float(shift[box.weight.high > 0].max() + (profile.high - profile.low).max())
        return max(value - reach, 0.0), value + reach
    open_share = float((box.weight.high - box.weight.low).sum()) / 2 / box.total
    reach = over(box.weight.high * shift, box) + open_share + profile.rounding
    spread = np.sqrt(np.maximum(profile.squares - profile.scores**2, 0.0))  # a cell's rows count with their mean
    ranged = profile.low < profile.high
    reach += float((profile.weights * spread)[0, ranged].sum()) / box.total
    return max(value - reach, 0.0), value + reach


# ----------------------------------------------------------------------------------------------------
# Where the sweep of all rows may stop, given the cells, and between which errors it then lies

_ROUNDING = 1e-12  # derived: of a rate
_MAX_BINS = 1024  # after so many the sweep is not followed any further


@dataclass(frozen=True)
class Stops:
    """The sweep of all rows stops at one of the numbers of bins from `first` to `last` (None: no end is known), and the p-th power
    of its error lies within `power`."""

    first: int
    last: int | None
    power: tuple[float, float]

    def __str__(self) -> str:
        if self.last is None:
            return f"{self.first} bins or more"
        return f"{self.first} bins" if self.first == self.last else f"{self.first} to {self.last} bins"


def sweep_stops(profile: CellProfile, binning: Binning, norm: float) -> Stops:
    """Return all numbers of bins at which the sweep of all rows may stop, and the range of the error over them."""
    rows = float(profile.total[0]) if profile.counted else float(profile.row_count)
    first, low, high = 0, np.inf, -np.inf
    box = boxes(profile, binning, 1)
    for b in range(1, _MAX_BINS):
        after = boxes(profile, binning, b + 1)
        rising, falling = _rises(select_bins(after.rate(), after.weight.high > 0))
        if not rising or b >= int(rows):  # the sweep may end here
            first = first or b
            ends = binned_range(box, norm)
            low, high = min(low, ends[0]), max(high, ends[1])
        if falling or b >= rows:
            return Stops(first, b, (low, high))
        box = after
    return Stops(first or _MAX_BINS, None, _any_bins(norm, profile))


def _any_bins(norm: float, profile: CellProfile) -> tuple[float, float]:
    """Range of a binned error whatever the bins: by Jensen's inequality, from that of one bin to that of every row by itself."""
    whole = boxes(profile, Binning(1, "width", "keep", "left"), 1)
    lowest = float(whole.gap().low[0])
    squared = float(whole.square.high[0]) / whole.total
    if norm == np.inf:
        return lowest, 1.0
    return lowest**norm, squared ** (norm / 2) if norm <= 2 else squared


def _rises(rate: Range) -> tuple[bool, bool]:
    """Whether rates surely do not fall, and whether they surely do."""
    so_far = np.maximum.accumulate(rate.high)
    surely = bool((so_far[:-1] <= rate.low[1:] + _ROUNDING).all())
    lower = np.maximum.accumulate(rate.low)
    return surely, bool((lower[:-1] > rate.high[1:] + 2 * _ROUNDING).any())
