"""Curves as the page carries them."""

from dataclasses import dataclass, field, replace

import numpy as np

import truecal as tc
from truecal.estimate import Curve
from truecal.report.records import OPTIONAL

_CURVE_POINTS = 400


@dataclass(frozen=True)
class CurveRecord:
    """Points of a calibration curve, and where there is one, the ends of the simultaneous band at them."""

    score: list[float]
    outcome: list[float]
    low: list[float] | None = field(default=None, metadata=OPTIONAL)
    high: list[float] | None = field(default=None, metadata=OPTIONAL)

    def banded(self, profile: tc.Profile, level: float) -> "CurveRecord":
        """The curve with the band of the profile."""
        low, high = tc.band(profile, level=level).at(self.score)
        return replace(self, low=low.tolist(), high=high.tolist())


def thinned(curve: Curve | None, *, steps: bool = False) -> CurveRecord | None:
    """At most a few hundred points of a curve, spread over its ranks and its scores, ends included; steps keep both their ends."""
    if curve is None:
        return None
    count = len(curve.score)
    index = np.arange(count)
    if count > _CURVE_POINTS:
        by_rank = np.searchsorted(np.cumsum(curve.weight), np.linspace(0, curve.weight.sum(), _CURVE_POINTS // 2))
        by_score = np.searchsorted(curve.score, np.linspace(curve.score[0], curve.score[-1], _CURVE_POINTS // 2))
        index = np.unique(np.clip(np.concatenate([by_rank, by_score, [0, count - 1]]), 0, count - 1))
    if steps:
        index = np.unique(np.concatenate([index // 2 * 2, index // 2 * 2 + 1]))
    return CurveRecord(curve.score[index].tolist(), curve.outcome[index].tolist())
