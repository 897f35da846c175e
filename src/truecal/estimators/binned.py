"""Binned calibration errors: the plug-in ECE, the label-binned error, and the debiased error."""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from typing import ClassVar, Literal

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.estimators.base import Bias, Estimator, Findings, FixedBinsEstimator, SketchBound
from truecal.estimators.bins import Binning, Bins, debiased_gaps, distinct_cut, mean_usable, power_mean
from truecal.estimators.estimate import Estimate
from truecal.estimators.sketch_bounds import bin_ranges, binned_range, debiased_range, label_binned_range
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


# ----------------------------------------------------------------------------------------------------
# The debiased binned error: the plug-in minus its sampling bias


@dataclass(frozen=True)
class DebiasedECE(FixedBinsEstimator):
    r"""Estimate the calibration error in bins with its sampling bias removed.

    Parameters
    ----------
    bins : int or None, default 15
        Number of bins. None takes every distinct output as a bin: the estimator of Kumar et al. for a model of few outputs,
        such as one recalibrated by :class:`ScalingBinning`, whose true error it estimates without the bias of bins.
    norm : {1, 2, 3}, default 2
        The p of the error.
    correction : {"kumar", "exact"}, default "kumar"
        For norm 2, the variance of a gap that is removed; see Notes.
    scheme : {"width", "mass"}, default "mass"
        Bins of equal width, or of equal numbers of rows.
    ties : {"keep", "split"}, default "keep"
        For equal mass, whether rows of equal score stay in one bin or are shared between bins.
    n_bins : int, default None
        A second spelling of `bins`, scikit-learn's.

    Raises
    ------
    InputError
        An option is out of range, or `bins` and `n_bins` are both given.

    Notes
    -----
    Norm 2: with n_k rows in bin k and v_k the variance of its gap,

    .. math:: \hat\theta = \sum_k \frac{n_k}{n} \big[ (\bar c_k - \bar y_k)^2 - v_k \big]

    - correction="kumar" (Kumar et al. 2019, section 5): v_k = mean y_k (1 - mean y_k) / (n_k - 1), exact for a model whose
      output is constant within each bin;
    - correction="exact" (Minderer et al. 2021, equation 5): v_k = sample variance of (y - c) in the bin / n_k, exact for
      any model.

    Norms 1 and 3 (Kumar et al. 2019, appendix G.3): plug-in minus (E sum_k n_k/n |mean c_k - R_k|^p - plug-in) with
    R_k ~ Normal(mean y_k, mean y_k (1 - mean y_k) / n_k). The expectation is that of a folded normal, so nothing is simulated.

    The estimate of the power may be negative: it stays so in `Estimate.power`, and `Estimate.value` shows 0. A bin with fewer
    than two rows cannot be debiased: it is left out and the others count in proportion; at most n/2 bins are used, so with
    equal mass and no ties this needs n < 2.

    References
    ----------
    Kumar, A., Liang, P. and Ma, T. (2019). Verified uncertainty calibration. NeurIPS 2019. arXiv:1909.10155

    Minderer, M. et al. (2021). Revisiting the calibration of modern neural networks. NeurIPS 2021. arXiv:2106.07998

    See Also
    --------
    BinnedECE : The plug-in.

    Examples
    --------
    >>> import truecal as tc
    >>> profile = tc.profile.Profile.from_arrays([0.6, 0.6, 0.6, 0.6], [1, 0, 1, 0])
    >>> est = tc.DebiasedECE(bins=1)(profile)
    >>> round(est.power, 4), est.value  # (0.6 - 0.5)^2 - 0.25 / 3
    (-0.0733, 0.0)
    >>> outputs = tc.profile.Profile.from_arrays([0.25] * 40 + [0.75] * 40, [1] * 20 + [0] * 20 + [1] * 30 + [0] * 10)
    >>> round(tc.DebiasedECE(bins=None)(outputs).power, 4)  # (0.25^2 - 0.25 / 39 - 0.1875 / 39) / 2
    0.0256
    """

    bins: int | None = 15
    norm: float = 2
    correction: Literal["kumar", "exact"] = "kumar"
    scheme: Literal["width", "mass"] = "mass"
    ties: Literal["keep", "split"] = "keep"
    n_bins: InitVar[int | None] = None  # scikit-learn's word for bins

    def __post_init__(self, n_bins: int | None) -> None:
        """Take `n_bins` for `bins` if given; raise InputError for a norm other than 1, 2 and 3, and an unknown correction."""
        if n_bins is not None:
            options.second_spelling(self, n_bins)
        options.norm(self.norm, (1, 2, 3))
        options.choice(self.correction, ("kumar", "exact"), "correction")
        self.binning(1 if self.bins is None else self.bins).check()

    def binning(self, bins: int) -> Binning:
        """Choose which rows share a bin.

        Parameters
        ----------
        bins : int
            Number of bins.

        Returns
        -------
        Binning
            The rule for so many bins.
        """
        return Binning(bins, self.scheme, self.ties)

    @property
    def estimand(self) -> str:
        """ "the error of 15 bins of equal mass, at most the true one", with the number of bins.

        >>> DebiasedECE(10).estimand
        'the error of 10 bins of equal mass, at most the true one'
        """
        return f"the error of {self.bins} bins of equal mass, at most the true one"

    @property
    def bias(self) -> Bias:
        """ "none" for norm 2, else "reduced".

        >>> DebiasedECE(norm=2).bias, DebiasedECE(norm=1).bias
        ('none', 'reduced')
        """
        return "none" if self.norm == 2 else "reduced"

    def used(self, profile: Profile) -> int:
        """Count the bins that are used: a bin needs two rows to be debiased.

        Parameters
        ----------
        profile : Profile
            Sorted scores and outcomes.

        Returns
        -------
        int
            Number of bins.
        """
        if self.bins is None:
            return int(profile.distinct.max())
        return max(1, min(self.bins, int(profile.size.min() // 2)))

    def _cut(self, profile: Profile) -> Cut:
        """Cut into the bins that are used, or into one bin per distinct score where `bins` is None."""
        return distinct_cut(profile) if self.bins is None else self.binning(self.used(profile)).cut(profile)

    def _bins(self, profile: Profile) -> Bins:
        """Sum the bins that are used, or one bin per distinct score where `bins` is None.

        >>> DebiasedECE(2)._bins(Profile.from_arrays([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1])).counts
        array([2., 2.])
        """
        if self.bins is None:
            return Bins.of(profile, distinct_cut(profile))
        return self.binning(self.used(profile)).bins_of(profile)

    @property
    def _by_bins(self) -> bool:
        """Whether sums of bins suffice: correction "kumar", or norm 1 or 3; else the spread of y - c in bins is needed.

        >>> DebiasedECE()._by_bins, DebiasedECE(correction="exact")._by_bins
        (True, False)
        """
        return self.correction == "kumar" or self.norm != 2

    def fixed_cut(self, profile: Profile) -> Cut | None:
        """Cut into the bins that are used; None for correction="exact" with norm 2, which needs the spread of y - c in bins."""
        return self._cut(profile) if self._by_bins else None

    def from_bins(self, bins: Bins) -> Float64s:
        """Average the debiased power of the gap over bins of at least two rows, by their rows, shape (batch,).

        >>> bins = DebiasedECE(1)._bins(Profile.from_arrays([0.5, 0.5], [0, 1]))
        >>> DebiasedECE(1).from_bins(bins)  # 0 - (1/4) / 1
        array([-0.25])
        """
        return mean_usable(bins, debiased_gaps(bins, self.norm), self.norm)[0]

    def _terms(self, profile: Profile, bins: Bins) -> Float64s:
        """Compute the debiased power of the gap of each bin by the chosen correction, shape (batch, bins).

        "exact" for norm 2 is gap^2 - Var(y - c) / (n - 1), with the variance over the n rows of the bin, n at least 2; else
        `debiased_gaps`.
        """
        if self._by_bins:
            return debiased_gaps(bins, self.norm)
        cut = self._cut(profile)
        squares, products = (np.diff(profile.sums(name, cut), axis=1) for name in ("cc", "cy"))
        mean_square = (bins.outcome_sum - 2 * products + squares) / bins.safe  # of y - c; y*y is y
        several = np.where(bins.count >= 2, bins.count, 2.0)
        return bins.gap**2 - np.maximum(mean_square - bins.gap**2, 0.0) / (several - 1)

    def estimate(self, profile: Profile) -> Findings:
        """Compute the debiased power of every dataset, shape (batch,), with its bins; it may be negative.

        Warns where fewer bins than asked for are used, and where bins of one row are left out.

        >>> DebiasedECE(1).estimate(Profile.from_arrays([0.5, 0.5], [0, 1])).power  # 0 - (1/4) / 1
        array([-0.25])
        """
        bins = self._bins(profile)
        power, covered = mean_usable(bins, self._terms(profile, bins), self.norm)
        used = self.used(profile)
        return Findings(power, bins, _warnings(used if self.bins is None else self.bins, used, covered))

    def sketch_bound(self, cells: CellProfile, estimate: Estimate) -> SketchBound:
        """Bound the power of all rows (proved) by `debiased_range` of the debiased powers of the bins of the cells.

        Raises InputError for bins=None, as a sketch does not know equal outputs.
        """
        if self.bins is None:
            raise InputError("a sketch does not store which rows share an output; give DebiasedECE a number of bins")
        binning, terms = self.binning(self.used(cells)), self._terms(cells, self._bins(cells))
        return SketchBound(*debiased_range(cells, binning, self.norm, terms[0]))


def _warnings(requested: int, used: int, covered: Float64s) -> tuple[str, ...]:
    """Return warnings for fewer bins `used` than `requested`, and for a share of the data outside of bins of two rows.

    `covered`, shape (batch,), is the share of the data in bins of at least two rows; the smallest counts.

    >>> _warnings(15, 10, np.array([0.75]))
    ('10 bins instead of 15: a bin needs two rows to be debiased', '25.0% of the data fell into bins of fewer than two
    rows and was left out')
    """
    notes = []
    if used < requested:
        notes.append(f"{used} bins instead of {requested}: a bin needs two rows to be debiased")
    covered_share = float(covered.min())
    if covered_share == 0:
        notes.append("too few rows to correct any bias; this is the plug-in estimate")
    elif covered_share < 1 - 1e-12:
        notes.append(f"{1 - covered_share:.1%} of the data fell into bins of fewer than two rows and was left out")
    return tuple(notes)
