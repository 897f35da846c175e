"""The test-based calibration error (TCE): the share of predictions that the outcomes of their bin refute."""

from dataclasses import dataclass

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.estimate.bins import Bins
from truecal.estimate.estimate import Estimate
from truecal.estimate.estimator import Estimator, Findings, SketchRange
from truecal.profile import CellProfile, Cut, Profile


@dataclass(frozen=True)
class RejectedShare(Estimator):
    r"""TCE = 1/n sum_k sum_{i in k} 1(a test at level alpha rejects that outcomes of bin k have probability c_i).

    Matsubara, Tax, Mudd and Guy (2023), "TCE: a test-based approach to measuring calibration error". Bins of equal mass, and the
    exact (Clopper-Pearson) test: a score counts when it lies outside the interval of its bin's rate. The authors choose bins by a
    constrained isotonic fit and use the likelihood-ordered binomial test; the number is theirs in kind, not digit by digit.

    It reads as a percentage of predictions, whatever the class frequency. It is no distance: with more rows every small deviation
    is refuted, and within a wide bin scores differ from the bin's rate also for a calibrated model; so compare models on the same
    n and bins only. The interval resamples rows.

    >>> import truecal as tc
    >>> scores = [0.1] * 20 + [0.5] * 20
    >>> tc.RejectedShare(bins=2)(tc.Profile.from_arrays(scores, [0] * 18 + [1] * 2 + [1] * 20)).value
    0.5
    """

    bins: int = 10
    alpha: float = 0.05

    def __post_init__(self) -> None:
        options.bins(self.bins)
        options.between(self.alpha, "alpha", 0, 1)

    @property
    def power_norm(self) -> float:
        return 1.0

    @property
    def metric(self) -> str:
        return "share of refuted predictions"

    def find(self, profile: Profile) -> Findings:
        from scipy.special import betaincinv

        cut = profile.mass_cut(self.bins)
        bins = Bins.of(profile, cut)
        n, ones = bins.count, np.minimum(bins.rate * bins.count, bins.count)
        low = np.where(ones > 0, betaincinv(np.maximum(ones, 1e-300), n - ones + 1, self.alpha / 2), 0.0)
        high = np.where(ones < n, betaincinv(ones + 1, np.maximum(n - ones, 1e-300), 1 - self.alpha / 2), 1.0)
        filled = bins.weight > 0
        edges = profile.sums("w", cut)
        from_ = self._mass_below(profile, np.where(filled, low, 0.0), "left")
        to = self._mass_below(profile, np.where(filled, high, 0.0), "right")
        kept = np.clip(to, edges[:, :-1], edges[:, 1:]) - np.clip(from_, edges[:, :-1], edges[:, 1:])
        inside = np.where(filled, np.maximum(kept, 0.0), 0.0).sum(axis=1)
        return Findings(np.clip(1 - inside / profile.total, 0.0, 1.0), bins)

    @staticmethod
    def _mass_below(profile: Profile, values: np.ndarray, side: str) -> np.ndarray:
        place = profile.places(values, side)  # type: ignore[arg-type]
        return profile.sums("w", Cut(place, place))

    def sketch_range(self, cells: CellProfile, estimate: Estimate) -> SketchRange:
        raise InputError("RejectedShare needs rows, not a sketch; use tc.BinnedECE(scheme='mass')")
