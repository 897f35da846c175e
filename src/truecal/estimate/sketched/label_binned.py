"""What a sketch leaves open about the label-binned error."""

import numpy as np

from truecal.estimate.binning import Binning
from truecal.estimate.sketched.boxes import Range, boxes, over
from truecal.profile import CellProfile


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
        taken = [over(corners.max(axis=0)[filled], box), over(corners.min(axis=0)[filled], box)]
        return squares - taken[0] - profile.rounding, squares - taken[1] + profile.rounding
    if p == np.inf:
        reach = float(shift[box.weight.high > 0].max() + (profile.high - profile.low).max())
        return max(value - reach, 0.0), value + reach
    moved = float((box.weight.high - box.weight.low).sum()) / 2 / box.total
    reach = over(box.weight.high * shift, box) + moved + profile.rounding
    spread = np.sqrt(np.maximum(profile.squares - profile.scores**2, 0.0))  # a cell's rows count with their mean
    some = profile.low < profile.high
    reach += float((profile.weights * spread)[0, some].sum()) / box.total
    return max(value - reach, 0.0), value + reach
