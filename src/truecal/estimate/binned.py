"""The binned calibration error: the classical plug-in."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from truecal.estimate.bins import Bins
from truecal.estimate.estimator import Estimator, Findings, check_bins, check_choice, check_norm, power_mean
from truecal.profile import Cut, Profile
from truecal.types import Indices


@dataclass(frozen=True)
class Binning:
    """Which rows share a bin: `bins` of equal width or equal mass."""

    bins: int
    scheme: Literal["width", "mass"]
    ties: Literal["keep", "split"]
    closed: Literal["left", "right"]

    def __post_init__(self) -> None:
        check_bins(self.bins)
        check_choice(self.scheme, ("width", "mass"), "scheme")
        check_choice(self.ties, ("keep", "split"), "ties")
        check_choice(self.closed, ("left", "right"), "closed")

    def cut(self, profile: Profile) -> Cut:
        return self.cuts(profile, self.bins)

    def cuts(self, profile: Profile, bins: int | Sequence[int] | Indices) -> Cut:
        """The cuts for other numbers of bins by the same rule: one after the other, or a column of one for each dataset."""
        if self.scheme == "width":
            return profile.width_cut(bins, self.closed)
        return profile.mass_cut(bins, self.ties)


@dataclass(frozen=True)
class BinnedEstimator(Estimator):
    """What the estimators on a fixed number of bins have in common: their options."""

    bins: int = 15
    scheme: Literal["width", "mass"] = "width"
    norm: float = 1
    ties: Literal["keep", "split"] = "keep"
    closed: Literal["left", "right"] = "left"

    norms: ClassVar[tuple[float, ...] | None] = None  # None: any from 1 up

    def __post_init__(self) -> None:
        check_norm(self.norm, self.norms)
        _ = self.binning

    @property
    def binning(self) -> Binning:
        return Binning(self.bins, self.scheme, self.ties, self.closed)

    @property
    def power_norm(self) -> float:
        return self.norm


@dataclass(frozen=True)
class BinnedECE(BinnedEstimator):
    r"""ECE_BIN = (sum_k n_k/n |mean c_k - mean y_k|^p)^(1/p); p = inf gives the maximum calibration error.

    The plug-in of Naeini et al. (2015) and Guo et al. (2017). Biased upwards near zero and more so with more bins: quote
    :class:`RankSeries` or :class:`DebiasedECE` instead, or together with their values.

    Parameters
    ----------
    bins : number of bins.
    scheme : "width": edges j/bins. "mass": every bin holds the same number of rows.
    norm : p >= 1 or inf.
    ties : for equal mass, whether rows of equal score stay in one bin ("keep") or are shared between bins ("split", as in
        Roelofs et al.). Has no effect without ties.
    closed : for equal width, "left" means [a, b) (last bin closed), "right" means (a, b] (first bin closed) as in Guo et al.

    >>> import truecal as tc
    >>> profile = tc.Profile.from_arrays([0.1, 0.2, 0.7, 0.8], [0, 1, 1, 0])
    >>> tc.BinnedECE(bins=2, norm=1)(profile).value
    0.3
    """

    def find(self, profile: Profile) -> Findings:
        bins = Bins.of(profile, self.binning.cut(profile))
        return Findings(power_mean(bins.gap, bins.share, self.norm), bins)
