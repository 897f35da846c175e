"""Bounds of binned errors given the cells of a sketch, and orders of the rows inside cells that probe other errors.

Sums over a bin are exact but for cells that a cut of the bins runs through: any part of such a cell may lie on either side.
A cell of one score is a group of ties, which a Profile of all rows keeps together as well, so that it is never cut.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truecal.estimators.bins import Binning, Bins, absolute_cube, folded_mean
from truecal.profile.cell_profile import CellProfile
from truecal.profile.profile import Profile
from truecal.special import positive, root
from truecal.types import Float64s, Indices


@dataclass(frozen=True)
class BinRanges:
    """Bounds of the sums over the rows of each bin, shape (bins,) each; `total` is the weight of all rows.

    `weight_low` and `weight_high` bound the weight, `residual_low` and `residual_high` |sum of y - c|, of the rows of the bin.
    """

    weight_low: Float64s
    weight_high: Float64s
    residual_low: Float64s  # of the absolute sum of y - c
    residual_high: Float64s
    total: float

    @property
    def settled(self) -> bool:
        """Whether no cut runs through a cell, so that every bin holds the same rows as without a sketch."""
        return bool((self.weight_low == self.weight_high).all())

    @property
    def gap_low(self) -> Float64s:
        """Lowest absolute gap of each bin, residual_low / weight_high; 0 where it may be empty."""
        return np.where(self.weight_low > 0, self.residual_low / positive(self.weight_high), 0.0)

    @property
    def gap_high(self) -> Float64s:
        """Highest absolute gap of each bin, residual_high / weight_low, at most 1; 1 where it may be empty."""
        gap = np.where(self.weight_low > 0, self.residual_high / positive(self.weight_low), 1.0)
        return np.minimum(gap, 1.0)


def bin_ranges(cells: CellProfile, binning: Binning) -> BinRanges:
    """Bound the weight and |sum of y - c| of each bin, given the cells of a sketch.

    The rows of a cell that a cut runs through may lie on either side of it.
    """
    assert cells.weights is not None
    assert cells.products is not None
    bins, total = Bins.of(cells, binning.cut(cells)), float(cells.total[0])
    edge, cell = _cells_on_edges(cells, binning) if binning.scheme == "width" else _cells_at_cuts(cells, binning)
    weights, scores, rates = cells.weights[0, cell], cells.scores[0, cell].astype(np.float64), cells.outcomes[0, cell]

    def sum_open(amounts: Float64s) -> Float64s:
        """Add up the amounts of the open cells at both ends of each bin, shape (bins,)."""
        at_edges = np.zeros(binning.bins + 1)
        at_edges[edge] = amounts
        return at_edges[:-1] + at_edges[1:]

    weight, open_weight = bins.weight[0], sum_open(weights)
    residual = np.abs(bins.outcome_sum[0] - bins.score_sum[0])
    absolute_residuals = weights * (rates + scores - 2 * cells.products[0, cell])  # sum of |y - c| over the cell
    open_residual = sum_open(absolute_residuals) + cells.rounding * total
    return BinRanges(
        np.maximum(weight - open_weight, 0.0),
        np.minimum(weight + open_weight, total),
        np.maximum(residual - open_residual, 0.0),
        np.minimum(residual + open_residual, total),
        total,
    )


def _cells_on_edges(cells: CellProfile, binning: Binning) -> tuple[Indices, Indices]:
    """Find inner edges j / bins that run through a cell: (numbers j, cell of each as its row in the profile), (edges,) each."""
    edge = np.arange(1, binning.bins)
    value = (edge / binning.bins).astype(cells.precision).astype(np.float64)
    cell = np.searchsorted(cells.high, value, binning.closed)  # the first whose highest score is not below the edge
    inside = cell < cells.rows
    edge, value, cell = edge[inside], value[inside], cell[inside]
    through = cells.low[cell] < value if binning.closed == "left" else cells.low[cell] <= value
    return edge[through], cell[through]


def _cells_at_cuts(cells: CellProfile, binning: Binning) -> tuple[Indices, Indices]:
    """Find cuts of equal mass that run through a cell of several scores: their numbers, and the cell of each, (cuts,)."""
    cut = cells.mass_cut(binning.bins, "split")
    if cut.fraction is None:
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    fraction, cell = cut.fraction[0], np.minimum(cut.below[0], cells.rows - 1)
    edge = np.flatnonzero((fraction > 0) & (fraction < 1) & (cells.low < cells.high)[cell])
    return edge, cell[edge]


# ----------------------------------------------------------------------------------------------------
# Bounds of the powers of binned errors


def binned_range(ranges: BinRanges, norm: float) -> tuple[float, float]:
    """Bound the sum of |gap|^norm over bins, weighted by rows, or the largest gap for norm inf; return (low, high)."""
    if norm == np.inf:
        sure, possible = ranges.weight_low > 0, ranges.weight_high > 0
        return float(ranges.gap_low[sure].max(initial=0.0)), float(ranges.gap_high[possible].max(initial=0.0))
    low = ranges.residual_low * ranges.gap_low ** (norm - 1)
    high = np.minimum(ranges.residual_high * ranges.gap_high ** (norm - 1), ranges.weight_high)
    return float(low.sum()) / ranges.total, float(high.sum()) / ranges.total


def debiased_range(cells: CellProfile, binning: Binning, norm: float, terms: Float64s) -> tuple[float, float]:
    """Bound the debiased power of norm 1, 2 or 3, (low, high), given debiased `terms` of the bins of the cells, shape (bins,).

    With gap g and any noise, g^p <= E|g + noise|^p, which grows with the variance of the noise, and that is at most 1 / (n - 1)
    in a bin of n rows: the term of a bin that a cut leaves open lies between 2 g^p - E|g + noise|^p and g^p. Where a bin may have
    fewer than two rows or not, the bounds are -1 and 1.
    """
    ranges, scale = bin_ranges(cells, binning), float(cells.size[0] / cells.total[0])
    weights = np.stack([ranges.weight_low, ranges.weight_high])
    min_count, max_count = weights * scale
    if ((min_count < 2) & (max_count >= 2)).any():
        return -1.0, 1.0  # a bin that may or may not be left out
    usable = min_count >= 2
    if not usable.any():
        return binned_range(ranges, norm)
    variance = np.where(usable, 1 / np.maximum(min_count - 1, 1.0), 0.0)
    noisy = {1: folded_mean, 2: lambda gap, variance: gap**2 + variance, 3: absolute_cube}[int(norm)]
    settled = min_count == max_count
    low = np.where(settled, terms, 2 * ranges.gap_low**norm - noisy(ranges.gap_high, variance))
    high = np.where(settled, terms, ranges.gap_high**norm)
    covered = ranges.total - float(ranges.weight_low[~usable].sum())
    return (
        float((weights * low).min(axis=0)[usable].sum()) / covered - cells.rounding,
        float((weights * high).max(axis=0)[usable].sum()) / covered + cells.rounding,
    )


def label_binned_range(cells: CellProfile, binning: Binning, norm: float, value: float) -> tuple[float, float]:
    """Bound the label-binned power, (low, high), by the triangle inequality, given the error `value` of the cells.

    A score differs from the mean of its cell by the width of the cell at most; a rate changes by twice the open share of its
    bin at most, and by 1 for rows that may lie in another bin.
    """
    ranges = bin_ranges(cells, binning)
    open_weight = (ranges.weight_high - ranges.weight_low) / 2
    shift = np.minimum(2 * open_weight / positive(ranges.weight_low), 1.0)
    if norm == np.inf:
        change = 0.0 if ranges.settled else 1.0
    else:
        changed_power = (ranges.weight_high * shift**norm + open_weight).sum() / ranges.total
        change = float(root(changed_power, norm))
    max_change = float((cells.high - cells.low).max()) + change + cells.rounding
    low, high = max(value - max_change, 0.0), min(value + max_change, 1.0)
    return (low, high) if norm == np.inf else (low**norm, high**norm)


# ----------------------------------------------------------------------------------------------------
# Rows that the cells of a sketch may stand for, in extreme orders, to probe how far an estimate can change


def split_mixed_cells(profile: CellProfile, zeros_first: NDArray[np.bool_]) -> Profile:
    """Split every cell into its zeros and its ones, as two rows in a given order with unchanged sums.

    A cell of zeros only, or of ones only, is halved; both rows of a cell of one score have that score. `zeros_first`, bool
    (m, cells), gives the order in every cell for each of m datasets; the result is a batch of m.
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
    before_score, after_score = score - room * (1 - first), score + room * first
    # scores of a cell that differ in the last digit only have no room between them, and are no tie
    one_digit = ranged & (before_score == after_score)
    before_score, after_score = (
        np.where(one_digit, profile.low, before_score),
        np.where(one_digit, profile.high, after_score),
    )
    first_weight = weight * first
    if profile.counted:
        first_weight = np.rint(first_weight)

    def rows(before: Float64s, after: Float64s) -> Float64s:
        """Interleave both rows of every cell, shape (m or 1, 2 x cells)."""
        pairs = np.stack(np.broadcast_arrays(np.atleast_2d(before), after), axis=-1)
        return pairs.reshape(len(pairs), -1)

    ones = profile.products[0] / positive(rate)  # mean c of the ones, which zeros do not have
    before = np.where(mixed, np.where(zeros_first, 0.0, 1.0), rate)
    after = np.where(mixed, 1.0 - before, rate)
    return Profile(
        np.maximum.accumulate(rows(before_score, after_score), axis=1),
        rows(before, after),
        rows(first_weight, weight - first_weight),
        rows(profile.squares, profile.squares),
        rows(ones * before, ones * after),
    )
