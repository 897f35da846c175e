"""The debiased binned error: the plug-in minus what it owes to chance."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from truecal.estimate.binned import Binning
from truecal.estimate.bins import Bins
from truecal.estimate.estimator import Estimator, Findings, check_choice, check_norm
from truecal.profile import Profile
from truecal.types import Float64s


@dataclass(frozen=True)
class DebiasedECE(Estimator):
    r"""Binned error with its sampling bias removed, equal-mass bins.

    norm=2: sum_k n_k/n [ (mean c_k - mean y_k)^2 - v_k ], where v_k is the variance of the gap:

    - correction="kumar" (Kumar et al. 2019, section 5): v_k = mean y_k (1 - mean y_k) / (n_k - 1), exact for a model whose
      output is constant within each bin;
    - correction="exact" (Minderer et al. 2021, eq. 5): v_k = sample variance of (y - c) in the bin / n_k, exact for any model.

    norm=1 (Kumar et al., appendix G.3): plug-in minus (E sum_k n_k/n |mean c_k - R_k| - plug-in) with
    R_k ~ Normal(mean y_k, mean y_k (1 - mean y_k) / n_k). The expectation is that of a folded normal, so nothing is simulated.

    The estimate of the power may be negative: it stays so in `Estimate.power`, and `Estimate.value` shows 0. A bin with fewer
    than two rows cannot be debiased: it is left out and the others count in proportion; at most n/2 bins are used, so with
    equal mass and no ties this needs n < 2.

    >>> import truecal as tc
    >>> profile = tc.Profile.from_arrays([0.6, 0.6, 0.6, 0.6], [1, 0, 1, 0])
    >>> est = tc.DebiasedECE(bins=1)(profile)
    >>> round(est.power, 4), est.value  # (0.6 - 0.5)^2 - 0.25 / 3
    (-0.0733, 0.0)
    """

    bins: int = 15
    norm: float = 2
    correction: Literal["kumar", "exact"] = "kumar"
    scheme: Literal["width", "mass"] = "mass"
    ties: Literal["keep", "split"] = "keep"

    def __post_init__(self) -> None:
        check_norm(self.norm, (1, 2))
        check_choice(self.correction, ("kumar", "exact"), "correction")
        _ = self.binning(self.bins)

    def binning(self, bins: int) -> Binning:
        return Binning(bins, self.scheme, self.ties, "left")

    @property
    def power_norm(self) -> float:
        return self.norm

    def find(self, profile: Profile) -> Findings:
        used = max(1, min(self.bins, int(profile.size.min() // 2)))
        cut = self.binning(used).cut(profile)
        bins = Bins.of(profile, cut)
        rate, n = bins.rate, bins.count
        usable = n >= 2
        several = np.where(usable, n, 2.0)
        if self.norm == 1:
            terms = debiased_absolute(bins.gap, rate * (1 - rate) / several)
        elif self.correction == "kumar":
            terms = bins.gap**2 - rate * (1 - rate) / (several - 1)
        else:
            squares, products = (np.diff(profile.sums(name, cut), axis=1) for name in ("cc", "cy"))
            mean_square = (bins.outcome_sum - 2 * products + squares) / bins.safe  # of y - c; y*y is y
            terms = bins.gap**2 - np.maximum(mean_square - bins.gap**2, 0.0) / (several - 1)
        share = np.where(usable, bins.share, 0.0)
        covered = share.sum(axis=1)
        power = np.where(
            covered > 0,
            (share * terms).sum(axis=1) / np.where(covered > 0, covered, 1.0),
            (bins.share * bins.gap**2).sum(axis=1),
        )
        return Findings(power, bins, _warnings(self.bins, used, covered))


def _warnings(asked: int, used: int, covered: Float64s) -> tuple[str, ...]:
    notes = []
    if used < asked:
        notes.append(f"{used} bins instead of {asked}: a bin needs two rows to be debiased")
    least = float(covered.min())
    if least == 0:
        notes.append("too few rows to remove any bias; this is the plain plug-in")
    elif least < 1 - 1e-12:
        notes.append(f"{1 - least:.1%} of the data fell into bins of fewer than two rows and was left out")
    return tuple(notes)


def debiased_absolute(gap: Float64s, variance: Float64s) -> Float64s:
    """2 |gap| - E|gap + noise| for normal noise of the given variance."""
    return 2 * np.abs(gap) - folded_mean(gap, variance)


def folded_mean(gap: Float64s, variance: Float64s) -> Float64s:
    """E|gap + noise| for normal noise of the given variance."""
    from scipy.special import ndtr

    spread = np.sqrt(variance)
    noisy = spread > 0
    ratio = np.abs(gap) / np.where(noisy, spread, 1.0)
    folded = spread * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2) + np.abs(gap) * (1 - 2 * ndtr(-ratio))
    return np.where(noisy, folded, np.abs(gap))
