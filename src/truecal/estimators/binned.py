"""Binned calibration errors: the plug-in ECE and the label-binned error."""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from typing import ClassVar, Literal

import numpy as np

from truecal import options
from truecal.estimators.base import Estimator, Findings, FixedBinsEstimator, SketchBound
from truecal.estimators.bins import Binning, Bins, power_mean
from truecal.estimators.estimate import Estimate
from truecal.estimators.sketch_bounds import bin_ranges, binned_range, label_binned_range
from truecal.profile.binning import Cut
from truecal.profile.cell_profile import CellProfile
from truecal.profile.profile import Profile
from truecal.types import Float64s

# ----------------------------------------------------------------------------------------------------
# The binned calibration error: the classical plug-in


@dataclass(frozen=True)
class BinnedEstimator(Estimator):
    """Options of the estimators on a fixed number of bins; invalid ones are refused."""

    bins: int = 15
    scheme: Literal["width", "mass"] = "width"
    norm: float = 1
    ties: Literal["keep", "split"] = "keep"
    closed: Literal["left", "right"] = "left"
    n_bins: InitVar[int | None] = None  # scikit-learn's word for bins

    norms: ClassVar[tuple[float, ...] | None] = None  # None: any from 1 up

    def __post_init__(self, n_bins: int | None) -> None:
        """Take `n_bins` for `bins` if given; raise InputError for an invalid norm, number of bins or scheme."""
        if n_bins is not None:
            options.second_spelling(self, n_bins)
        options.norm(self.norm, self.norms)
        self.binning.check()

    @property
    def binning(self) -> Binning:
        """The rule that assigns rows to bins.

        >>> BinnedECE(10).binning
        Binning(bins=10, scheme='width', ties='keep', closed='left')
        """
        return Binning(self.bins, self.scheme, self.ties, self.closed)

    @property
    def estimand(self) -> str:
        """ "the error of 15 bins of equal width, at most the true one", with the number of bins and the scheme.

        >>> BinnedECE(10, scheme="mass").estimand
        'the error of 10 bins of equal mass, at most the true one'
        """
        return f"the error of {self.bins} bins of equal {self.scheme}, at most the true one"


@dataclass(frozen=True)
class BinnedECE(BinnedEstimator, FixedBinsEstimator):
    r"""Estimate the calibration error in bins: the classical plug-in.

    Parameters
    ----------
    bins : int, default 15
        Number of bins.
    scheme : {"width", "mass"}, default "width"
        "width": edges j/bins. "mass": every bin has the same number of rows.
    norm : float, default 1
        The p >= 1 of the error; inf gives the maximum calibration error.
    ties : {"keep", "split"}, default "keep"
        For equal mass, whether rows of equal score stay in one bin ("keep") or are shared between bins ("split", as in
        Roelofs et al. 2022). Has no effect without ties.
    closed : {"left", "right"}, default "left"
        For equal width, "left" means [a, b) with the last bin closed, "right" means (a, b] with the first bin closed, as
        in Guo et al. (2017).
    n_bins : int, default None
        A second spelling of `bins`, scikit-learn's.

    Raises
    ------
    InputError
        An option is out of range, or `bins` and `n_bins` are both given.

    Notes
    -----
    With n_k rows in bin k,

    .. math:: ECE = \Big( \sum_k \frac{n_k}{n} \, | \bar c_k - \bar y_k |^p \Big)^{1/p}

    It is biased upwards near zero, and more so with more bins: quote :class:`RankSeries` or :class:`DebiasedECE` instead,
    or together with it. The interval is for the error of these bins in the population, in which differences within a bin
    are averaged out; `interval.method` says so. It resamples rows; for norm 1 each bin is corrected for the bias of its
    absolute gap (Kumar et al. 2019).

    References
    ----------
    Naeini, M. P., Cooper, G. F. and Hauskrecht, M. (2015). Obtaining well calibrated probabilities using Bayesian binning.
    AAAI 2015.

    Guo, C., Pleiss, G., Sun, Y. and Weinberger, K. Q. (2017). On calibration of modern neural networks. ICML 2017.
    arXiv:1706.04599

    See Also
    --------
    DebiasedECE : The same error with its sampling bias removed.
    SweepECE : As many bins as monotonicity allows.

    Examples
    --------
    >>> import truecal as tc
    >>> profile = tc.profile.Profile.from_arrays([0.1, 0.2, 0.7, 0.8], [0, 1, 1, 0])
    >>> tc.BinnedECE(bins=2, norm=1)(profile).value
    0.3
    """

    @property
    def averages_absolute_gaps(self) -> bool:
        """True for norm 1.

        >>> BinnedECE(norm=1).averages_absolute_gaps, BinnedECE(norm=2).averages_absolute_gaps
        (True, False)
        """
        return self.norm == 1

    def fixed_cut(self, profile: Profile) -> Cut:
        """Cut the sorted rows into the bins of the options.

        >>> BinnedECE(2).fixed_cut(Profile.from_arrays([0.25, 0.75], [0, 1])).below
        array([[0, 1, 2]])
        """
        return self.binning.cut(profile)

    def from_bins(self, bins: Bins) -> Float64s:
        """Compute sum_k n_k / n |mean outcome - mean score|^norm, for norm inf the largest gap, shape (batch,).

        >>> bins = BinnedECE(2).binning.bins_of(Profile.from_arrays([0.25, 0.75], [0, 1]))
        >>> BinnedECE(2).from_bins(bins), BinnedECE(2, norm=2).from_bins(bins)
        (array([0.25]), array([0.0625]))
        """
        return power_mean(bins.gap, bins.share, self.norm)

    def estimate(self, profile: Profile) -> Findings:
        """Compute the plug-in power of every dataset, shape (batch,), with its bins.

        >>> BinnedECE(2).estimate(Profile.from_arrays([0.25, 0.75], [0, 1])).power
        array([0.25])
        """
        bins = self.binning.bins_of(profile)
        return Findings(self.from_bins(bins), bins)

    def sketch_bound(self, cells: CellProfile, estimate: Estimate) -> SketchBound:
        """Bound the power of all rows (proved), as cells of the sketch that a cut runs through may lie on either side.

        >>> import truecal as tc
        >>> cells = tc.Sketch.from_arrays([0.25, 0.75], [0, 1]).to_profile()
        >>> bound = BinnedECE(2).sketch_bound(cells, BinnedECE(2)(cells))
        >>> round(bound.low, 6), round(bound.high, 6)  # no cut runs through a cell
        (0.25, 0.25)
        """
        return SketchBound(*binned_range(bin_ranges(cells, self.binning), self.norm))


# ----------------------------------------------------------------------------------------------------
# The label-binned calibration error: bin the outcomes, keep every score


@dataclass(frozen=True)
class LabelBinnedECE(BinnedEstimator):
    r"""Estimate the calibration error with binned outcomes and every score for itself.

    Parameters
    ----------
    bins : int, default 15
        Number of bins.
    scheme : {"width", "mass"}, default "width"
        "width": edges j/bins. "mass": every bin has the same number of rows.
    norm : float, default 1
        The p >= 1 of the error, or inf.
    ties : {"keep", "split"}, default "keep"
        For equal mass, whether rows of equal score stay in one bin or are shared between bins.
    closed : {"left", "right"}, default "left"
        For equal width, the side of a bin that belongs to it.
    n_bins : int, default None
        A second spelling of `bins`, scikit-learn's.

    Notes
    -----
    .. math:: ECE_{LB} = \Big( \frac1n \sum_k \sum_{i \in k} | c_i - \bar y_k |^p \Big)^{1/p}

    Equation 2 of Roelofs et al. (ECE_NEIGH) with the rows of its bin as neighbours. By Jensen's inequality never below
    :class:`BinnedECE` on the same bins.

    References
    ----------
    Roelofs, R., Cain, N., Shlens, J. and Mozer, M. C. (2022). Mitigating bias in calibration error estimation. AISTATS 2022.
    arXiv:2012.08668

    See Also
    --------
    BinnedECE : Mean scores of bins instead of every score.

    Examples
    --------
    >>> import truecal as tc
    >>> profile = tc.profile.Profile.from_arrays([0.1, 0.2, 0.7, 0.8], [0, 1, 1, 0])
    >>> tc.estimators.LabelBinnedECE(bins=2, norm=1)(profile).value
    0.3
    """

    @property
    def estimand(self) -> str:
        """ "the error against the rates of 15 bins of equal width", with the number of bins and the scheme.

        >>> LabelBinnedECE(10).estimand
        'the error against the rates of 10 bins of equal width'
        """
        return f"the error against the rates of {self.bins} bins of equal {self.scheme}"

    def estimate(self, profile: Profile) -> Findings:
        """Compute mean |c - rate of its bin|^norm of every dataset, shape (batch,), the largest for norm inf; with the bins.

        A row on a cut of equal mass counts in both bins by the part of it that lies there.

        >>> LabelBinnedECE(1).estimate(Profile.from_arrays([0.25, 0.75], [0, 1])).power  # both are 0.25 from the rate 0.5
        array([0.25])
        """
        cut = self.binning.cut(profile)
        bins = Bins.of(profile, cut)
        ends = profile.sums("w", cut)
        below = np.broadcast_to(profile.prefix("w"), (profile.batch, profile.rows + 1))
        power = np.zeros(profile.batch)
        for k in range(bins.weight.shape[1]):
            first, last = int(cut.below[:, k].min()), int(cut.above[:, k + 1].max())
            row_low, row_high = below[:, first:last], below[:, first + 1 : last + 1]
            inside = np.minimum(ends[:, k + 1, None], row_high) - np.maximum(ends[:, k, None], row_low)
            share = np.maximum(inside, 0.0) / profile.total[:, None]  # a row on a cut lies in two bins
            part = power_mean(profile.scores[:, first:last] - bins.rate[:, k, None], share, self.norm)
            power = np.maximum(power, part) if self.norm == np.inf else power + part
        return Findings(power, bins)

    def sketch_bound(self, cells: CellProfile, estimate: Estimate) -> SketchBound:
        """Bound the power of all rows (proved): a score differs from the mean of its cell by the width of the cell at most."""
        return SketchBound(*label_binned_range(cells, self.binning, self.norm, float(estimate.value)))
