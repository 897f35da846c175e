"""Adaptive calibration errors (ACE, TACE): bins of equal mass that count alike, optionally above a threshold."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.estimate.bins import Bins
from truecal.estimate.combine import power_mean
from truecal.estimate.estimate import Estimate
from truecal.estimate.estimator import Estimator, Findings, SketchRange
from truecal.profile import CellProfile, Cut, Profile
from truecal.types import Float64s


@dataclass(frozen=True)
class AdaptiveECE(Estimator):
    r"""ACE = (1/R sum_r |mean y_r - mean c_r|^p)^(1/p) over R bins of equal mass. TACE: of scores at or above `threshold`.

    Nixon et al. (2019), "Measuring calibration in deep learning", judge every class (``lens=ClassWise()``), R = 15, p = 1, and for
    TACE a threshold of 0.01. Without ties this is :class:`BinnedECE` of equal mass, except that bins count alike and not by their
    rows; with ties the bins that stay filled are averaged.

    Use it to compare with published numbers. Not as an estimate: the plug-in bias grows with R, and the value of TACE depends on a
    threshold that hides most of the probabilities of a model with many classes. Its interval is a bootstrap of rows.

    >>> import truecal as tc
    >>> profile = tc.Profile.from_arrays([0.0, 0.001, 0.2, 0.4, 0.7, 0.8], [0, 0, 1, 0, 1, 0])
    >>> round(tc.AdaptiveECE(bins=2)(profile).value, 6), round(tc.AdaptiveECE(bins=2, threshold=0.01)(profile).value, 6)
    (0.283167, 0.225)
    """

    bins: int = 15
    norm: float = 1
    threshold: float = 0.0
    ties: Literal["keep", "split"] = "keep"

    def __post_init__(self) -> None:
        options.bins(self.bins)
        options.norm(self.norm)
        options.choice(self.ties, ("keep", "split"), "ties")
        if not 0 <= self.threshold < 1:
            raise InputError(f"threshold must be at least 0 and below 1, not {self.threshold!r}")

    @property
    def power_norm(self) -> float:
        return self.norm

    def fixed_cut(self, profile: Profile) -> Cut:
        start = profile.places(np.array([self.threshold]), "left")
        k = np.arange(self.bins + 1)
        if profile.weights is None:
            rows = start + -(-k * (profile.rows - start) // self.bins)
            cut = profile.at_count(rows)
        else:
            below = profile.sums("w", Cut(start, start))
            mass = k * (profile.total[:, None] - below) / self.bins
            mass = np.ceil(mass) if profile.counted else mass
            cut = profile.at_mass(below + mass)
        return cut.keep_ties() if self.ties == "keep" else cut

    def of_bins(self, bins: Bins) -> Float64s:
        filled = np.count_nonzero(bins.weight, axis=1)
        share = (bins.weight > 0) / np.maximum(filled, 1)[:, None]
        return power_mean(bins.gap, share, self.norm)

    def find(self, profile: Profile) -> Findings:
        bins = Bins.of(profile, self.fixed_cut(profile))
        empty = not bins.weight.any(axis=1).all()
        notes = (f"no score reaches the threshold {self.threshold:g}: nothing was judged",) if empty else ()
        return Findings(self.of_bins(bins), bins, notes)

    def sketch_range(self, cells: CellProfile, estimate: Estimate) -> SketchRange:
        raise InputError("AdaptiveECE needs rows, not a sketch; use tc.BinnedECE(scheme='mass')")
