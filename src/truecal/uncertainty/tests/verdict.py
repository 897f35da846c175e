"""Verdict: the answer of a test; and what tests of calibration judge."""

from dataclasses import dataclass

import numpy as np

from truecal.estimate import resampling
from truecal.frame import Frame, Tabular
from truecal.profile import Profile, check_profile
from truecal.types import Float64s

CALIBRATED = "perfectly calibrated"


@dataclass(frozen=True, repr=False)
class Verdict(Tabular):
    """A test of a hypothesis: `statistic`, `p_value` (never 0), what was tested and how. Arrays for a batch.

    `hypothesis` is what a small p-value speaks against.
    """

    statistic: float | Float64s
    p_value: float | Float64s
    hypothesis: str
    method: str

    def frame(self) -> Frame:
        """One row per dataset."""
        p = np.atleast_1d(self.p_value)
        words = {"method": [self.method] * len(p), "hypothesis": [self.hypothesis] * len(p)}
        return Frame({**words, "statistic": np.atleast_1d(self.statistic), "p_value": p})

    def __str__(self) -> str:
        if np.ndim(self.p_value):
            return f"{self.method}: {np.size(self.p_value)} datasets"
        return f"{self.method}: statistic {float(self.statistic):.4g}, p = {float(self.p_value):.3g} (if {self.hypothesis})"


def verdict_of(
    profile: Profile, statistic: Float64s, p: Float64s, method: str, hypothesis: str = CALIBRATED
) -> Verdict:
    """Plain numbers for a single dataset, arrays for a batch."""
    if profile.single:
        return Verdict(float(statistic[0]), float(p[0]), hypothesis, method)
    return Verdict(statistic, p, hypothesis, method)


def redraw_test(
    profile: Profile, statistic: resampling.Statistic, *, method: str, resamples: int, rng: int | np.random.Generator
) -> Verdict:
    """A statistic compared with its distribution when outcomes are redrawn from the scores, or, where rows belong together, when
    the residuals of whole units change sign."""
    check_profile(profile)
    if profile.units is None:
        profile.refuse_dependent("test one class at a time, with tc.OneClass(name)")
        redrawn = resampling.against_redraws(profile, statistic, resamples=resamples, rng=rng)
    else:
        redrawn = resampling.against_signs(profile, statistic, resamples=resamples, rng=rng)
    return verdict_of(profile, redrawn.statistic, redrawn.p_value, method)
