"""How far an answer from a sketch can be from the answer of all rows.

Bins, debiased bins, label bins, the sweep, the nearest neighbours and the isotonic error have proved bounds: whatever the order of
rows inside the cells was, the exact value is no further away. The smooth and the kernel-density error work on a grid that cells
never cross, so they are exact. So is the rank series where every cell holds one score.

Where cells hold several, the bound of the rank series is probed, not proved, because which of its terms it keeps can change with
any row: rows inside every cell are put into the orders that move the value most, apart and tied, and four times the largest
move is stated, and at least what every number of terms gives that may be the chosen one (never less than 2e-5).
`details["sketch_bound"]` says which of the two a bound is.
"""

import numpy as np

from truecal.estimate.binned import BinnedECE
from truecal.estimate.debiased import DebiasedECE, debiased_absolute
from truecal.estimate.estimate import Estimate
from truecal.estimate.estimator import Estimator
from truecal.estimate.isotonic import IsotonicError, isotonic_blocks
from truecal.estimate.label_binned import LabelBinnedECE
from truecal.estimate.nearest import NearestECE
from truecal.estimate.rank_series.series import RankSeries
from truecal.estimate.sketched.boxes import Range, binned_range, boxes, over, picked
from truecal.estimate.sketched.nearest import nearest_range
from truecal.estimate.sketched.probe import arranged, largest_move
from truecal.estimate.sketched.sweep import sweep_stops
from truecal.estimate.sweep import SweepECE
from truecal.profile.sketch.profile import CellProfile

_GRID_ROUNDING = 1e-8  # of estimators that iterate or transform on a grid
_LEAST_PROBED = 2e-5  # a probed bound is never less than this


def stated(estimate: Estimate, profile: CellProfile) -> Estimate:
    """The estimate from the cells of a sketch, with its distance to the estimate from all rows."""
    estimator = estimate.estimator
    assert isinstance(estimator, Estimator)
    stops = sweep_stops(estimator, profile) if isinstance(estimator, SweepECE) else None
    low, high = power_range(estimator, profile, estimate) if stops is None else stops.power
    value = float(estimate.value)
    ends = estimator.root(np.array([low, high]))
    error = max(float(ends[1]) - value, value - float(ends[0]), 0.0)
    n = estimate.n if profile.counted else profile.row_count
    probed = isinstance(estimator, RankSeries) and bool((profile.low < profile.high).any())
    details = {**estimate.details, "sketch_bound": "probed" if probed else "proved"}
    warnings = estimate.warnings
    if stops is not None:
        details["stops"] = (stops.first, stops.last)
        if stops.first != stops.last:
            settled = int(details["bins"][0])
            warnings = (
                *warnings,
                f"the sweep of the sketch stopped at {settled} bins; that of all rows stops at {stops}",
            )
    return estimate.but(details=details, warnings=warnings, sketch_error=min(error + profile.rounding, 1.0), n=n)


def power_range(estimator: Estimator, profile: CellProfile, estimate: Estimate) -> tuple[float, float]:
    """Between which numbers the p-th power of the error of all rows lies."""
    if isinstance(estimator, BinnedECE):
        return binned_range(boxes(profile, estimator.binning, estimator.bins), estimator.norm)
    if isinstance(estimator, DebiasedECE):
        return _debiased(estimator, profile)
    if isinstance(estimator, LabelBinnedECE):
        return _label_binned(estimator, profile)
    if isinstance(estimator, SweepECE):
        return sweep_stops(estimator, profile).power
    if isinstance(estimator, NearestECE):
        return nearest_range(estimator, profile)
    power = float(estimate.power)
    if isinstance(estimator, IsotonicError):
        return power - profile.rounding, power + _isotonic_excess(profile) + profile.rounding
    value = float(estimate.value)
    move = _GRID_ROUNDING + profile.rounding
    if isinstance(estimator, RankSeries) and (profile.low < profile.high).any():
        move += largest_move(estimator, profile, estimate) + _LEAST_PROBED
    p = estimator.power_norm
    low, high = max(value - move, 0.0), min(value + move, 1.0)
    return (low, high) if p in (1, np.inf) else (low**p, high**p)


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
    rate = picked(box.rate(), usable)
    chance = _chance(rate)
    gap = picked(box.gap(), usable)
    if estimator.norm == 1:
        low = debiased_absolute(gap.low, chance.high / count.low)
        high = debiased_absolute(gap.high, chance.low / count.high)
        terms = Range(
            np.minimum(weight.low * low, weight.high * low), np.maximum(weight.low * high, weight.high * high)
        )
    else:
        size = picked(box.residual.absolute(), usable)
        plain = Range(size.low * gap.low, size.high * gap.high)
        if estimator.correction == "kumar":
            owed = Range(
                chance.low * weight.high / (count.high - 1),
                chance.high * weight.low / (count.low - 1),
            )
        else:
            square = picked(box.square, usable)
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
        taken = [over(corners.max(axis=0)[filled], box), over(corners.min(axis=0)[filled], box)]
        return squares - taken[0] - profile.rounding, squares - taken[1] + profile.rounding
    value = float(estimator.values(profile)[0])
    if p == np.inf:
        reach = float(shift[box.weight.high > 0].max() + (profile.high - profile.low).max())
        return max(value - reach, 0.0), value + reach
    moved = float((box.weight.high - box.weight.low).sum()) / 2 / box.total
    reach = over(box.weight.high * shift, box) + moved + profile.rounding
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
