"""What a sketch leaves open about the debiased binned error."""

import numpy as np

from truecal.estimate.binning import Binning
from truecal.estimate.noise import absolute_cube, debiased_absolute
from truecal.estimate.sketched.boxes import Range, boxes, picked
from truecal.profile import CellProfile


def debiased_range(
    profile: CellProfile, binning: Binning, *, norm: float, correction: str
) -> tuple[float, float] | None:
    """Between which powers the debiased error of all rows lies; None where no bin has two rows and all bins are known."""
    box = boxes(profile, binning, binning.bins)
    scale = float(profile.size[0] / profile.total[0])
    fewest, most = box.weight.low * scale, box.weight.high * scale
    usable = fewest >= 2
    if (~usable & (fewest != most)).any() or not usable.any():  # a bin that may or may not be left out
        return None if box.settled else (-1.0, 1.0)
    weight = Range(box.weight.low[usable], box.weight.high[usable])
    count = Range(fewest[usable], most[usable])
    rate = picked(box.rate(), usable)
    chance = _chance(rate)
    gap = picked(box.gap(), usable)
    if norm == 1:
        low = debiased_absolute(gap.low, chance.high / count.low)
        high = debiased_absolute(gap.high, chance.low / count.high)
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
        size = picked(box.residual.absolute(), usable)
        plain = Range(size.low * gap.low, size.high * gap.high)
        if correction == "kumar":
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
