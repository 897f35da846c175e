"""The binned calibration error: the classical plug-in."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from truecal import options
from truecal.estimate.binning import Binning
from truecal.estimate.bins import Bins
from truecal.estimate.combine import power_mean
from truecal.estimate.estimate import Estimate
from truecal.estimate.estimator import Estimator, Findings, SketchRange
from truecal.estimate.sketched.boxes import binned_range, boxes
from truecal.profile import CellProfile, Cut, Profile
from truecal.types import Float64s


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
        options.norm(self.norm, self.norms)
        self.binning.check()

    @property
    def binning(self) -> Binning:
        """Which rows share a bin."""
        return Binning(self.bins, self.scheme, self.ties, self.closed)

    @property
    def power_norm(self) -> float:
        return self.norm

    @property
    def target(self) -> str:
        return f"the error of {self.bins} bins of equal {self.scheme}, at most the true one"


@dataclass(frozen=True)
class BinnedECE(BinnedEstimator):
    r"""ECE_BIN = (sum_k n_k/n |mean c_k - mean y_k|^p)^(1/p); p = inf gives the maximum calibration error.

    The plug-in of Naeini et al. (2015) and Guo et al. (2017). Biased upwards near zero and more so with more bins: quote
    :class:`RankSeries` or :class:`DebiasedECE` instead, or together with their values. Its interval is for the error of these
    bins in the population, in which differences within a bin are averaged out; `interval.method` says so.

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

    @property
    def folds(self) -> bool:
        return self.norm == 1

    def fixed_cut(self, profile: Profile) -> Cut:
        return self.binning.cut(profile)

    @property
    def fixed_binning(self) -> Binning | None:
        return self.binning

    def of_bins(self, bins: Bins) -> Float64s:
        return power_mean(bins.gap, bins.share, self.norm)

    def find(self, profile: Profile) -> Findings:
        bins = self.binning.bins_of(profile)
        return Findings(self.of_bins(bins), bins)

    def sketch_range(self, cells: CellProfile, estimate: Estimate) -> SketchRange:
        return SketchRange(*binned_range(boxes(cells, self.binning, self.bins), self.norm))
