"""The debiased binned error: the plug-in minus its sampling bias."""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from typing import Literal

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.estimators.base import Bias, Findings, FixedBinsEstimator, SketchBound
from truecal.estimators.bins import Binning, Bins, debiased_gaps, distinct_cut, mean_usable
from truecal.estimators.estimate import Estimate
from truecal.estimators.sketch_bounds import debiased_range
from truecal.profile.binning import Cut
from truecal.profile.cell_profile import CellProfile
from truecal.profile.profile import Profile
from truecal.types import Float64s


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

    def _by_bins(self) -> bool:
        """Return whether sums of bins suffice: correction "kumar", or norm 1 or 3; else the spread of y - c in bins is needed.

        >>> DebiasedECE()._by_bins(), DebiasedECE(correction="exact")._by_bins()
        (True, False)
        """
        return self.correction == "kumar" or self.norm != 2

    def fixed_cut(self, profile: Profile) -> Cut | None:
        """Cut into the bins that are used; None for correction="exact" with norm 2, which needs the spread of y - c in bins."""
        return self._cut(profile) if self._by_bins() else None

    def from_bins(self, bins: Bins) -> Float64s:
        """Average the debiased power of the gap over bins of at least two rows, by their rows, shape (batch,).

        >>> bins = DebiasedECE(1)._bins(Profile.from_arrays([0.5, 0.5], [0, 1]))
        >>> DebiasedECE(1).from_bins(bins)  # 0 - (1/4) / 1
        array([-0.25])
        """
        return mean_usable(bins, self._terms(bins), self.norm)[0]

    def _terms(self, bins: Bins) -> Float64s:
        """Compute the debiased power of the gap of each bin from its rows n, rate and gap ("kumar"), shape (batch, bins).

        gap^2 - rate (1 - rate) / (n - 1) for norm 2, else `debiased_gaps`; n is at least 2.

        >>> bins = DebiasedECE(1)._bins(Profile.from_arrays([0.5, 0.5], [0, 1]))
        >>> DebiasedECE(1)._terms(bins)
        array([[-0.25]])
        """
        if self.norm != 2:
            return debiased_gaps(bins, self.norm)
        several = np.where(bins.count >= 2, bins.count, 2.0)
        return bins.gap**2 - bins.rate * (1 - bins.rate) / (several - 1)

    def _terms_of_rows(self, profile: Profile, bins: Bins) -> Float64s:
        """Compute the debiased power of the gap of each bin by the chosen correction, shape (batch, bins).

        "exact" for norm 2 is gap^2 - Var(y - c) / (n - 1), with the variance over the n rows of the bin, n at least 2; else
        `_terms`.
        """
        if self._by_bins():
            return self._terms(bins)
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
        power, covered = mean_usable(bins, self._terms_of_rows(profile, bins), self.norm)
        used = self.used(profile)
        return Findings(power, bins, _warnings(used if self.bins is None else self.bins, used, covered))

    def sketch_bound(self, cells: CellProfile, estimate: Estimate) -> SketchBound:
        """Bound the power of all rows (proved) by `debiased_range` of the debiased powers of the bins of the cells.

        Raises InputError for bins=None, as a sketch does not know equal outputs.
        """
        if self.bins is None:
            raise InputError("a sketch does not store which rows share an output; give DebiasedECE a number of bins")
        binning, terms = self.binning(self.used(cells)), self._terms_of_rows(cells, self._bins(cells))
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
