"""How far an answer from a sketch can be from the answer of all rows.

Bins, debiased bins, label bins, the sweep, the nearest neighbours and the isotonic error have proved bounds: whatever the order of
rows inside the cells was, the exact value is no further away. The smooth and the kernel-density error work on a grid that cells
never cross, so they are exact. For the rank series the bound is probed, not proved: rows inside every cell are put into the
orders that move the value most, and four times the largest move is stated (never less than 2e-5);
`details["sketch_bound"]` says which of the two it is.
"""

import numpy as np

from truecal.estimate.binned import BinnedECE
from truecal.estimate.debiased import DebiasedECE, debiased_absolute
from truecal.estimate.estimate import Estimate
from truecal.estimate.estimator import Estimator
from truecal.estimate.isotonic import IsotonicError, isotonic_blocks
from truecal.estimate.label_binned import LabelBinnedECE
from truecal.estimate.nearest import NearestECE
from truecal.estimate.rank_series import RankSeries
from truecal.estimate.sketch_boxes import Boxes, Range, boxes
from truecal.estimate.sketch_nearest import nearest_range
from truecal.estimate.sketch_probe import arranged, largest_move
from truecal.estimate.sweep import SweepECE
from truecal.profile.sketch_profile import CellProfile
from truecal.types import Float64s

_ROUNDING = 1e-12  # of a rate
_GRID_ROUNDING = 1e-8  # of estimators that iterate or transform on a grid
_MARGIN = 4.0  # times the largest move that was probed ...
_LEAST_PROBED = 2e-5  # ... and never less than this
_MOST_BINS = 1024  # after so many the sweep is not followed any further


def stated(estimate: Estimate, profile: CellProfile) -> Estimate:
    """The estimate from the cells of a sketch, with its distance to the estimate from all rows."""
    estimator = estimate.estimator
    assert isinstance(estimator, Estimator)
    low, high = power_range(estimator, profile, estimate)
    value = float(estimate.value)
    ends = estimator.root(np.array([low, high]))
    error = max(float(ends[1]) - value, value - float(ends[0]), 0.0)
    n = estimate.n if profile.counted else profile.row_count
    details = {**estimate.details, "sketch_bound": "probed" if isinstance(estimator, RankSeries) else "proved"}
    return estimate.but(details=details, sketch_error=min(error + profile.rounding, 1.0), n=n)


def power_range(estimator: Estimator, profile: CellProfile, estimate: Estimate) -> tuple[float, float]:
    """Between which numbers the p-th power of the error of all rows lies."""
    if isinstance(estimator, BinnedECE):
        return _binned(boxes(profile, estimator.binning, estimator.bins), estimator.norm)
    if isinstance(estimator, DebiasedECE):
        return _debiased(estimator, profile)
    if isinstance(estimator, LabelBinnedECE):
        return _label_binned(estimator, profile)
    if isinstance(estimator, SweepECE):
        return _swept(estimator, profile)
    if isinstance(estimator, NearestECE):
        return nearest_range(estimator, profile)
    power = float(estimate.power)
    if isinstance(estimator, IsotonicError):
        return power - profile.rounding, power + _isotonic_excess(profile) + profile.rounding
    value = float(estimate.value)
    move = _GRID_ROUNDING + profile.rounding
    if isinstance(estimator, RankSeries):
        move += _MARGIN * largest_move(estimator, profile, estimate) + _LEAST_PROBED
    p = estimator.power_norm
    low, high = max(value - move, 0.0), min(value + move, 1.0)
    return (low, high) if p in (1, np.inf) else (low**p, high**p)


def _binned(box: Boxes, norm: float) -> tuple[float, float]:
    """Sum of W |R/W|^p over bins that hold anything, or the largest |R/W|."""
    gap = box.gap()
    if norm == np.inf:
        sure = box.weight.low > 0
        possible = box.weight.high > 0
        return float(gap.low[sure].max(initial=0.0)), float(gap.high[possible].max(initial=0.0))
    size, weight = box.residual.absolute(), box.weight
    if norm == 1:  # what one bin loses another gains, so the sum of |R| moves by no more than the sum of what may move
        return _over(size.low, box), _over(np.minimum(size.high, weight.high), box)
    low = np.where(weight.high > 0, size.low * gap.low ** (norm - 1), 0.0)
    return _over(low, box), _over(np.minimum(size.high * gap.high ** (norm - 1), weight.high), box)


def _over(values: Float64s, box: Boxes) -> float:
    return float(values.sum()) / box.total


def _debiased(estimator: DebiasedECE, profile: CellProfile) -> tuple[float, float]:
    used = max(1, min(estimator.bins, int(profile.size.min() // 2)))
    box = boxes(profile, estimator.binning(used), used)
    scale = float(profile.size[0] / profile.total[0])
    fewest, most = box.weight.low * scale, box.weight.high * scale
    usable = fewest >= 2
    if (~usable & (fewest != most)).any() or not usable.any():  # a bin that may or may not be left out
        return (-1.0, 1.0) if not box.settled else (lambda p: (p, p))(float(estimator.find(profile).power[0]))
    weight = Range(box.weight.low[usable], box.weight.high[usable])
    count = Range(fewest[usable], most[usable])
    rate = _pick(box.rate(), usable)
    chance = _chance(rate)
    gap = _pick(box.gap(), usable)
    if estimator.norm == 1:
        low = debiased_absolute(gap.low, chance.high / count.low)
        high = debiased_absolute(gap.high, chance.low / count.high)
        terms = Range(
            np.minimum(weight.low * low, weight.high * low), np.maximum(weight.low * high, weight.high * high)
        )
    else:
        size = _pick(box.residual.absolute(), usable)
        plain = Range(size.low * gap.low, size.high * gap.high)
        if estimator.correction == "kumar":
            owed = Range(
                chance.low * weight.high / (count.high - 1),
                chance.high * weight.low / (count.low - 1),
            )
        else:
            square = _pick(box.square, usable)
            owed = Range(
                np.maximum(square.low - plain.high, 0.0) / (count.high - 1),
                np.maximum(square.high - plain.low, 0.0) / (count.low - 1),
            )
        terms = Range(plain.low - owed.high, plain.high - owed.low)
    covered = float(weight.low.sum()) if box.settled else box.total - float(box.weight.low[~usable].sum())
    return float(terms.low.sum()) / covered - profile.rounding, float(terms.high.sum()) / covered + profile.rounding


def _pick(values: Range, some: np.ndarray) -> Range:
    return Range(values.low[some], values.high[some])


def _chance(rate: Range) -> Range:
    """Range of r (1 - r)."""
    ends = rate.low * (1 - rate.low), rate.high * (1 - rate.high)
    middle = (rate.low <= 0.5) & (rate.high >= 0.5)
    return Range(np.minimum(*ends), np.where(middle, 0.25, np.maximum(*ends)))


def _label_binned(estimator: LabelBinnedECE, profile: CellProfile) -> tuple[float, float]:
    """norm 2 from the sums of every bin; norms 1 and inf by the triangle inequality, rate and scores moving by what is open."""
    assert profile.squares is not None
    assert profile.weights is not None
    box = boxes(profile, estimator.binning, estimator.bins)
    rate = box.rate()
    shift, p = rate.high - rate.low, estimator.norm
    if p == 2:  # sum (c - rate)^2 = sum c*c - sum over bins of rate (Y - 2 R)
        squares = float((profile.weights * profile.squares).sum()) / box.total
        rest = Range(box.outcome.low - 2 * box.residual.high, box.outcome.high - 2 * box.residual.low)
        corners = np.stack([r * x for r in (rate.low, rate.high) for x in (rest.low, rest.high)])
        filled = box.weight.high > 0
        taken = [_over(corners.max(axis=0)[filled], box), _over(corners.min(axis=0)[filled], box)]
        return squares - taken[0] - profile.rounding, squares - taken[1] + profile.rounding
    value = float(estimator.values(profile)[0])
    if p == np.inf:
        reach = float(shift[box.weight.high > 0].max() + (profile.high - profile.low).max())
        return max(value - reach, 0.0), value + reach
    moved = float((box.weight.high - box.weight.low).sum()) / 2 / box.total
    reach = _over(box.weight.high * shift, box) + moved + profile.rounding
    spread = np.sqrt(np.maximum(profile.squares - profile.scores**2, 0.0))  # a cell's rows count with their mean
    some = profile.low < profile.high
    reach += float((profile.weights * spread)[0, some].sum()) / box.total
    return max(value - reach, 0.0), value + reach


def _isotonic_excess(profile: CellProfile) -> float:
    """How much more the isotonic fit can explain when it sees all rows: at most as if zeros came first in every cell."""
    ordered = arranged(profile, np.ones(profile.rows, bool))
    fitted = []
    for rows in (profile, ordered):
        _, weight, outcome = isotonic_blocks(rows)
        heavy = weight > 0
        fitted.append(float((outcome[heavy] ** 2 / weight[heavy]).sum()))
    return max(fitted[1] - fitted[0], 0.0) / float(profile.total[0])


def _swept(estimator: SweepECE, profile: CellProfile) -> tuple[float, float]:
    """All numbers of bins at which the sweep of all rows may stop, and the range of the error over them."""
    ties_only = bool((profile.low == profile.high).all())
    low, high = np.inf, -np.inf
    here = boxes(profile, estimator.binning(1), 1)
    for b in range(1, _MOST_BINS):
        after = boxes(profile, estimator.binning(b + 1), b + 1)
        last = ties_only and b >= int(profile.distinct[0])
        rising, falling = _rises(_pick(after.rate(), after.weight.high > 0))
        if not rising or last:  # the sweep may end here
            ends = _binned(here, estimator.norm)
            low, high = min(low, ends[0]), max(high, ends[1])
        if falling or last:
            return low, high
        here = after
    return _any_bins(estimator.norm, profile)


def _any_bins(norm: float, profile: CellProfile) -> tuple[float, float]:
    """Range of a binned error whatever the bins: by Jensen's inequality, from that of one bin to that of every row by itself."""
    whole = boxes(profile, BinnedECE(bins=1).binning, 1)
    lowest = float(whole.gap().low[0])
    squared = float(whole.square.high[0]) / whole.total
    if norm == np.inf:
        return lowest, 1.0
    return lowest**norm, squared ** (norm / 2) if norm <= 2 else squared


def _rises(rate: Range) -> tuple[bool, bool]:
    """Whether rates surely do not fall, and whether they surely do."""
    so_far = np.maximum.accumulate(rate.high)
    surely = bool((so_far[:-1] <= rate.low[1:] + _ROUNDING).all())
    least = np.maximum.accumulate(rate.low)
    return surely, bool((least[:-1] > rate.high[1:] + 2 * _ROUNDING).any())
