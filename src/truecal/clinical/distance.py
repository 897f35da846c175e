"""Distances of the smooth calibration curve from the diagonal."""

from dataclasses import dataclass

import numpy as np

from truecal.errors import InputError
from truecal.estimate import RankSeries
from truecal.profile import Profile


@dataclass(frozen=True)
class CurveDistance:
    """Distances of the smooth calibration curve from the diagonal, over the data: mean (ICI), median, 90th percentile, maximum."""

    ici: float
    e50: float
    e90: float
    emax: float


def curve_distance(profile: Profile) -> CurveDistance:
    """ICI, E50, E90 and Emax (Austin and Steyerberg 2019), with the rank-series curve in place of loess.

    >>> import truecal as tc
    >>> round(curve_distance(tc.Profile.from_arrays([0.5] * 100, [1] * 70 + [0] * 30)).ici, 6)
    0.2
    """
    if profile.batch != 1:
        raise InputError(f"curve_distance takes one dataset, not a batch of {profile.batch}; use profile.take([i])")
    curve = RankSeries()(profile).curve
    if curve is None:
        raise InputError("curve_distance takes one dataset made from one-dimensional arrays")
    gap = np.abs(curve.outcome - curve.score)
    order = np.argsort(gap)
    reached = np.cumsum(curve.weight[order])
    e50, e90 = (float(gap[order[min(np.searchsorted(reached, q * reached[-1]), len(gap) - 1)]]) for q in (0.5, 0.9))
    return CurveDistance(float((curve.weight * gap).sum() / reached[-1]), e50, e90, float(gap[curve.weight > 0].max()))
