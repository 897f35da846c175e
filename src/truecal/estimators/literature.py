"""Errors that papers and other tools report: ACE, KS, kernel, Dirichlet, and other tools' binned errors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import InitVar, dataclass
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from truecal import options
from truecal.errors import InputError
from truecal.estimators.base import (
    Bias,
    Estimator,
    Findings,
    FixedBinsEstimator,
    SketchBound,
    VectorEstimator,
    sample_estimate,
)
from truecal.estimators.bins import Bins, debiased_gaps, power_mean
from truecal.estimators.estimate import Estimate, Interval
from truecal.lenses.lens import Lens, Sample
from truecal.lenses.several_probabilities import Canonical
from truecal.predictions.predictions import Predictions
from truecal.profile.binning import Cut
from truecal.profile.cell_profile import CellProfile
from truecal.profile.profile import Profile
from truecal.profile.sketch import Sketch
from truecal.resampling.draws import exceedance
from truecal.special import draw_labels, logsumexp
from truecal.types import Float64s, Indices

# ----------------------------------------------------------------------------------------------------
# What errors on pairs of rows have in common: several probabilities at once, blocks that bound the cost, no bins

_BLOCK = 2000  # by choice: rows whose pairs take 32 MB of kernel values


@dataclass(frozen=True)
class PairEstimator(VectorEstimator):
    """An error computed from all pairs of at least two independent rows of equal weight, of one or several probabilities."""

    def __call__(self, data: Predictions | Profile | Sketch | Sample) -> Estimate:
        """Measure a sample of predictions; anything else is refused."""
        if not isinstance(data, Sample):
            raise InputError(
                f"{type(self).__name__} judges rows; use tc.measure(preds, estimator={type(self).__name__}())"
            )
        return self.of_samples([data], None, np.random.default_rng(0))

    def of_samples(self, samples: Iterable[Sample], shares: Float64s | None, rng: np.random.Generator) -> Estimate:
        """Measure the one sample; raise InputError for shares, pooled pairs, clusters, weights and fewer than two rows."""
        if shares is not None:
            raise InputError(
                f"{type(self).__name__} judges one dataset; use lens=tc.Canonical() for all classes at once"
            )
        (sample,) = samples
        sample.refuse_pooled()
        if not sample.independent:
            raise InputError(f"{type(self).__name__} needs independent rows, not clusters; use tc.RankSeries")
        if sample.weights is not None:
            raise InputError(f"{type(self).__name__} takes no weights; use tc.GeneralizedECE")
        if len(sample) < 2:
            raise InputError(f"{type(self).__name__} needs two rows or more, not {len(sample)}")
        return self.measure_rows(sample, rng)

    @abstractmethod
    def measure_rows(self, sample: Sample, rng: np.random.Generator) -> Estimate:
        """Measure one dataset of independent rows.

        Parameters
        ----------
        sample : Sample
            At least two rows.
        rng : numpy.random.Generator
            Generator of the blocks of rows and of redrawn outcomes.

        Returns
        -------
        Estimate
            Without selection and lens, which the caller adds.
        """

    def _report(self, sample: Sample, power: float, interval: Interval | None, bandwidth: float) -> Estimate:
        """Build the Estimate of a sample from its power, which may be negative, the interval, and the bandwidth as a setting."""
        settings = {"bandwidth": np.array([bandwidth])}
        return sample_estimate(
            self, sample, Findings(np.array([min(power, 1.0)]), interval=interval, settings=settings)
        )


def blocks(sample: Sample, rng: np.random.Generator) -> Iterator[tuple[Float64s, Float64s]]:
    """Yield probabilities p and residuals e - p, shape (rows, events), of blocks of at most 2000 rows and about equal size.

    Up to 2000 rows are one block in their order; more are put into blocks at random.
    """
    n = len(sample)
    parts = -(-n // _BLOCK)
    order = rng.permutation(n) if parts > 1 else np.arange(n)
    for rows in np.array_split(order, parts):
        probs = sample.columns[:, rows].T.astype(np.float64)
        residual = -probs
        residual[np.arange(len(rows)), sample.labels[rows]] += 1
        yield probs, residual


# ----------------------------------------------------------------------------------------------------
# Adaptive calibration errors (ACE, TACE): bins of equal mass that count alike, optionally above a threshold


@dataclass(frozen=True)
class AdaptiveECE(FixedBinsEstimator):
    r"""Estimate the adaptive calibration error (ACE): bins of equal mass with equal weights, optionally above a threshold (TACE).

    Parameters
    ----------
    bins : int, default 15
        Number R of bins.
    norm : float, default 1
        The p of the error.
    threshold : float, default 0.0
        Scores below it are left out: TACE.
    ties : {"keep", "split"}, default "keep"
        Whether equal scores stay in one bin.
    n_bins : int, default None
        Second spelling of `bins`.

    Raises
    ------
    InputError
        For options out of range; from a sketch, which has no rows to cut.

    Notes
    -----
    :math:`(\frac1R \sum_r |\bar y_r - \bar c_r|^p)^{1/p}` over R bins of equal mass. Nixon et al. take every class
    (``lens=ClassWise()``), R = 15, p = 1, and for TACE a threshold of 0.01. Without ties this is :class:`BinnedECE` of equal
    mass, except that bins do not count by their rows; with ties the bins that stay filled are averaged.

    Use it to compare with published numbers. Not as an estimate: the plug-in bias grows with R, and the value of TACE depends on
    a threshold that hides most of the probabilities of a model with many classes. Its interval is a bootstrap of rows.

    References
    ----------
    Nixon, J., Dusenberry, M. W., Zhang, L., Jerfel, G. and Tran, D. (2019). Measuring calibration in deep learning. CVPR
    Workshops. arXiv:1904.01685

    Examples
    --------
    >>> import truecal as tc
    >>> profile = tc.profile.Profile.from_arrays([0.0, 0.001, 0.2, 0.4, 0.7, 0.8], [0, 0, 1, 0, 1, 0])
    >>> [round(tc.estimators.AdaptiveECE(bins=2, threshold=t)(profile).value, 6) for t in (0, 0.01)]
    [0.283167, 0.225]
    """

    bins: int = 15
    norm: float = 1
    threshold: float = 0.0
    ties: Literal["keep", "split"] = "keep"
    n_bins: InitVar[int | None] = None  # scikit-learn's word for bins

    def __post_init__(self, n_bins: int | None) -> None:
        """Take `n_bins` for `bins` if given; raise InputError for invalid bins, norm or ties, and a threshold outside [0, 1)."""
        if n_bins is not None:
            options.second_spelling(self, n_bins)
        options.bins(self.bins)
        options.norm(self.norm)
        options.choice(self.ties, ("keep", "split"), "ties")
        if not 0 <= self.threshold < 1:
            raise InputError(f"threshold must be at least 0 and below 1, not {self.threshold!r}")

    def fixed_cut(self, profile: Profile) -> Cut:
        """Cut the rows of scores of at least `threshold` into bins of equal mass; rows below it are in no bin.

        >>> AdaptiveECE(2, threshold=0.2).fixed_cut(Profile.from_arrays([0.1, 0.3, 0.5], [0, 1, 1])).below
        array([[1, 2, 3]])
        """
        start = profile.count_below(np.array([self.threshold]), "left")
        below = profile.sums("w", Cut(start, start))
        mass = np.arange(self.bins + 1) * (profile.total[:, None] - below) / self.bins
        cut = profile.at_mass(below + (np.ceil(mass) if profile.counted else mass))
        return cut.keep_ties() if self.ties == "keep" else cut

    def from_bins(self, bins: Bins) -> Float64s:
        """Average |gap|^norm over bins that hold rows, with equal weights, shape (batch,); 0 without any.

        >>> profile = Profile.from_arrays([0.25, 0.75], [0, 1])
        >>> AdaptiveECE(2).from_bins(Bins.of(profile, AdaptiveECE(2).fixed_cut(profile)))
        array([0.25])
        """
        filled = np.count_nonzero(bins.weight, axis=1)
        share = (bins.weight > 0) / np.maximum(filled, 1)[:, None]
        return power_mean(bins.gap, share, self.norm)

    def estimate(self, profile: Profile) -> Findings:
        """Compute the power of every dataset with its bins; warn where no score reaches the threshold.

        >>> AdaptiveECE(2).estimate(Profile.from_arrays([0.25, 0.75], [0, 1])).power
        array([0.25])
        """
        bins = Bins.of(profile, self.fixed_cut(profile))
        empty = not bins.weight.any(axis=1).all()
        notes = (f"no score reaches the threshold {self.threshold:g}: nothing was judged",) if empty else ()
        return Findings(self.from_bins(bins), bins, notes)

    def sketch_bound(self, cells: CellProfile, estimate: Estimate) -> SketchBound:
        """Raise InputError: a sketch has no rows to cut."""
        raise InputError("AdaptiveECE needs rows, not a sketch; use tc.BinnedECE(scheme='mass')")


# ----------------------------------------------------------------------------------------------------
# The KS error (ECCE-MAD), of cumulative differences: no bins, no bandwidth


def walks(profile: Profile) -> Float64s:
    """Compute F_k of `KSError`: the sum of y - c over the k lowest scores, k = 0..rows, over n, shape (batch, rows + 1).

    NaN inside groups of equal scores. With weights, weighted sums over the total weight.

    >>> walks(Profile.from_arrays([0.25, 0.75], [0, 1]))  # -0.25 / 2, then (-0.25 + 0.25) / 2
    array([[ 0.   , -0.125,  0.   ]])
    """
    shape = (profile.batch, profile.rows + 1)
    surplus = np.broadcast_to(profile.prefix("y") - profile.prefix("c"), shape) / profile.total[:, None]
    scores = np.broadcast_to(profile.scores, (profile.batch, profile.rows))
    surplus[:, 1:-1][scores[:, 1:] == scores[:, :-1]] = np.nan
    return surplus


@dataclass(frozen=True)
class KSError(Estimator):
    r"""Estimate the largest distance between cumulative outcomes and cumulative scores (KS error, ECCE-MAD).

    Notes
    -----
    :math:`\max_k |F_k|` with :math:`F_k = \frac1n \sum_{i \le k} (y_{(i)} - c_{(i)})` over the k lowest scores. It needs no
    bins and no bandwidth, is small when errors alternate in sign over short ranges, and is biased upwards for calibrated
    models; the interval resamples rows.

    References
    ----------
    Gupta, K. et al. (2021). Calibration of neural networks using splines. ICLR. arXiv:2006.12800

    Arrieta-Ibarra, I., Gujral, P., Tannen, J., Tygert, M. and Xu, C. (2022). Metrics of calibration for probabilistic
    predictions. JMLR 23. arXiv:2205.09680

    See Also
    --------
    truecal.inference.kuiper : The test.

    Examples
    --------
    >>> import truecal as tc
    >>> profile = tc.profile.Profile.from_arrays([0.2, 0.6, 0.9], [0, 1, 1])  # F = -0.2/3, 0.2/3, 0.3/3
    >>> round(tc.estimators.KSError()(profile).value, 6)
    0.1
    """

    norm = 1.0  # the largest distance itself
    name = "Kolmogorov-Smirnov calibration error"

    def estimate(self, profile: Profile) -> Findings:
        """Compute the largest |F_k| of every dataset, shape (batch,), at ends of groups of equal scores.

        >>> KSError().estimate(Profile.from_arrays([0.25, 0.75], [0, 1])).power
        array([0.125])
        """
        return Findings(np.nanmax(np.abs(walks(profile)), axis=1))

    def sketch_bound(self, cells: CellProfile, estimate: Estimate) -> SketchBound:
        """Bound the value of all rows (proved): at most that of the cells plus twice the largest share of a cell."""
        # F is exact at the ends of cells; inside one it can leave the line between them by the cell's share, up or down.
        mass = cells.sums("w", cells.at_count(np.arange(cells.rows + 1)[None, :]))
        largest = float(np.diff(mass, axis=1).max() / cells.total[0])
        value = float(estimate.value)
        return SketchBound(max(value - cells.rounding, 0.0), min(value + 2 * largest + cells.rounding, 1.0))


# ----------------------------------------------------------------------------------------------------
# The canonical kernel-density error (ECE-KDE): all classes at once, with Dirichlet kernels on the simplex

_BANDWIDTHS = np.logspace(-3, 0, 13)  # by choice: from next to no smoothing to all, in steps of 1.8


@dataclass(frozen=True)
class DirichletECE(PairEstimator):
    r"""Estimate the canonical calibration error by Dirichlet kernels on the simplex (ECE-KDE).

    Parameters
    ----------
    norm : {1, 2}, default 1
        The p of the error.
    bandwidth : float or None, default None
        Of the kernel; None for the largest leave-one-out likelihood of the predictions.

    Raises
    ------
    InputError
        For clusters, weights, class-wise lenses and fewer than two rows.

    Notes
    -----
    .. math:: \Bigl(\frac1n \sum_j \frac12 \sum_k |T_k(p_j) - p_{jk}|^p\Bigr)^{1/p}, \quad
              T(p_j) = \frac{\sum_{i \ne j} K(p_j; p_i) e_i}{\sum_{i \ne j} K(p_j; p_i)},

    with K(.; p_i) the Dirichlet density with parameters p_i / h + 1, so that no mass leaves the simplex. Half the sum, so that
    two classes give the error of one probability (the paper's value for p = 1 is twice this).

    A plug-in without debiasing: for a calibrated model it falls only as slowly as kernel regression converges, and with ten
    classes and a thousand rows it is mostly noise. Use it to compare with that paper; to test canonical calibration use
    :class:`KernelError`. It has no interval: resampled rows repeat, and a repeated row is its own nearest neighbour. More than
    2000 rows are measured in blocks.

    References
    ----------
    Popordanoska, T., Sayer, R. and Blaschko, M. B. (2022). A consistent and differentiable Lp canonical calibration error
    estimator. NeurIPS 35. arXiv:2210.07810

    See Also
    --------
    KernelError : Tests canonical calibration.

    Examples
    --------
    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([[0.7, 0.2, 0.1], [0.7, 0.2, 0.1], [0.1, 0.2, 0.7], [0.1, 0.2, 0.7]], [0, 0, 2, 1])
    >>> round(tc.measure(preds, estimator=tc.estimators.DirichletECE(bandwidth=0.01)).value, 4)
    0.425
    """

    norm: float = 1
    bandwidth: float | None = None

    def __post_init__(self) -> None:
        """Raise InputError for a norm other than 1 and 2, and a bandwidth that is not a positive number."""
        options.norm(self.norm, (1, 2))
        if self.bandwidth is not None and not 0 < self.bandwidth < np.inf:
            raise InputError(f"bandwidth must be a positive number, not {self.bandwidth!r}")

    def own_lens(self, lens: Lens | None) -> Lens:
        """Return the lens asked for, else Canonical()."""
        return lens or Canonical()

    def measure_rows(self, sample: Sample, rng: np.random.Generator) -> Estimate:
        """Measure the sample in blocks of at most 2000 rows with the bandwidth of the first one; warn of the missing interval.

        In each row the outcome rates are estimated as means of the outcomes of the other rows of its block, weighted by a
        Dirichlet kernel; the power is the mean over rows of sum |rate - probability|^norm / 2.
        """
        parts = list(blocks(sample, rng))
        bandwidth = self.bandwidth or _likeliest_bandwidth(parts[0][0])
        total = 0.0
        for probs, residual in parts:
            kernel = _normalised_kernel(_log_kernel(probs, bandwidth))
            gaps = np.abs(kernel @ (residual + probs) - probs)
            total += float((gaps**self.norm).sum()) / 2
        estimate = self._report(sample, total / len(sample), None, bandwidth)
        return estimate.replace(
            warnings=("no interval: resampling rows would make this estimate smaller, not more variable",)
        )


def _log_kernel(probs: Float64s, bandwidth: float) -> Float64s:
    """Compute the log Dirichlet kernels log K(p_j; p_i) of `DirichletECE`, shape (n, n), in row j, column i.

    The diagonal is -inf. K(.; p) is the density of a Dirichlet distribution of parameters p / bandwidth + 1.

    >>> _log_kernel(np.array([[0.5, 0.5], [0.5, 0.5]]), 0.5).round(4)  # Dirichlet(2, 2) at its mean: 6 / 4
    array([[  -inf, 0.4055],
           [0.4055,   -inf]])
    """
    from scipy.special import gammaln, xlogy

    alpha = probs / bandwidth
    constant = gammaln(alpha.sum(axis=1) + probs.shape[1]) - gammaln(alpha + 1).sum(axis=1)
    log = np.broadcast_to(constant, (len(probs), len(probs))).copy()
    for k in range(probs.shape[1]):
        log += xlogy(alpha[None, :, k], probs[:, None, k])
    np.fill_diagonal(log, -np.inf)
    return log


def _normalised_kernel(log: Float64s) -> Float64s:
    """Exponentiate log kernels (n, n), whose diagonal is -inf, and scale rows to sum to 1 with a diagonal of 0.

    A row whose kernels are all 0 (every other row has a positive probability where this one has 0) gets equal weights.

    >>> _normalised_kernel(np.array([[-np.inf, 0.0, 0.0], [0.0, -np.inf, -np.inf], [-np.inf] * 3]))
    array([[0. , 0.5, 0.5],
           [1. , 0. , 0. ],
           [0.5, 0.5, 0. ]])
    """
    highest = log.max(axis=1, keepdims=True)
    weights = np.exp(log - np.where(np.isfinite(highest), highest, 0.0))
    isolated = ~np.isfinite(highest[:, 0])
    weights[isolated] = 1.0
    np.fill_diagonal(weights, 0.0)
    return weights / weights.sum(axis=1, keepdims=True)


def _likeliest_bandwidth(probs: Float64s) -> float:
    """Choose, of 13 bandwidths from 0.001 to 1, that of the highest leave-one-out likelihood of the predictions (n, events).

    >>> probs = np.linspace(0.2, 0.8, 50)
    >>> round(_likeliest_bandwidth(np.column_stack([1 - probs, probs])), 4)
    0.0178
    """
    likelihoods = []
    for h in _BANDWIDTHS:
        log_density = logsumexp(_log_kernel(probs, float(h)), axis=1)
        likelihoods.append(float(np.maximum(log_density, -1e6).sum()))
    return float(_BANDWIDTHS[int(np.argmax(likelihoods))])


# ----------------------------------------------------------------------------------------------------
# Binned errors with the bins of other tools, edge by edge as they compute them. A rule takes scores of shape (n,) and a number
# of bins, and returns the number of the bin of every score, ascending with the score; numbers need not begin at 0 nor be
# consecutive.

Scores = NDArray[Any]


@cache
def _torch_linspace(bins: int, kind: type[np.floating[Any]]) -> Scores:
    """Compute torch.linspace(0, 1, bins + 1): up from 0 in the lower half, down from 1 in the upper.

    >>> _torch_linspace(4, np.float32)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    step = kind(1) / kind(bins)
    lower = step * np.arange((bins + 1) // 2).astype(kind)
    upper = [kind(float(1 - Fraction(float(step)) * (bins - k))) for k in range((bins + 1) // 2, bins + 1)]
    return np.append(lower, np.array(upper, kind))


def _split_middles(c: Scores, parts: int) -> Float64s:
    """Compute the distinct middles between neighbouring parts of ascending scores by numpy.array_split."""
    size, longer = divmod(len(c), parts)
    ends = np.cumsum([size + 1] * longer + [size] * (parts - longer))[:-1]
    return np.unique((c[ends - 1].astype(np.float64) + c[ends]) / 2)


RULES: dict[str, Callable[[Scores, int], Indices]] = {
    # parts by numpy.array_split of ascending scores; equal scores go to the lower part
    "array_split": lambda c, bins: np.searchsorted(_split_middles(c, min(bins, len(c))), c, "left"),
    # int(c / (1 / bins)); 1.0 has a separate bin
    "floor(c / width)": lambda c, bins: (c.astype(np.float64) / (1.0 / bins)).astype(np.intp),
    # int(c * bins) in single precision; 1.0 is in the last one
    "floor(c * bins)": lambda c, bins: np.minimum((c.astype(np.float32) * np.float32(bins)).astype(np.intp), bins - 1),
    # edges i * 1.0 / bins, the first bin closed
    "fractions (a, b]": lambda c, bins: np.searchsorted(np.arange(1, bins + 1) * 1.0 / bins, c, "left"),
    # numpy.linspace edges, the first bin closed
    "linspace (a, b]": lambda c, bins: np.searchsorted(np.linspace(0, 1, bins + 1)[1:-1], c, "left"),
    # numpy.linspace edges; 1.0 is in the last bin
    "linspace [a, b)": lambda c, bins: np.searchsorted(np.linspace(0, 1, bins + 1)[1:-1], c, "right"),
    # numpy.percentile edges, the first bin closed
    "percentiles (a, b]": lambda c, bins: np.searchsorted(
        np.percentile(c, np.linspace(0, 1, bins + 1) * 100)[1:-1], c, "left"
    ),
    # torch.linspace edges in single precision
    "torch (a, b]": lambda c, bins: np.searchsorted(_torch_linspace(bins, np.float32), c.astype(np.float32), "left"),
    # torch.linspace edges of the scores' precision; 1.0 has a separate bin
    "torch [a, b) and {1}": lambda c, bins: np.searchsorted(
        _torch_linspace(bins, np.float32 if c.dtype == np.float32 else np.float64), c, "right"
    ),
    # the same after rounding scores to float32
    "torch single [a, b) and {1}": lambda c, bins: np.searchsorted(
        _torch_linspace(bins, np.float32), c.astype(np.float32), "right"
    ),
}
_BY_ROWS = ("array_split", "percentiles (a, b]")  # rules that count rows


@dataclass(frozen=True)
class ConventionECE(FixedBinsEstimator):
    r"""Compute the binned error on the bins of another tool, for numbers that must match.

    Parameters
    ----------
    rule : str
        How the other tool assigns scores to bins, one of the names in `truecal.estimators.literature.RULES`.
    bins : int, default 15
        Number of bins.
    norm : float, default 1
        The p of the error.
    average : {"rows", "bins"}, default "rows"
        Whether bins count by their rows or equally.
    debias : bool, default False
        Whether a bin loses the variance of its rate (norm 2 only).

    Raises
    ------
    InputError
        For options out of range, importance weights with bins by rows, and sketches.

    Notes
    -----
    :math:`(\sum_k s_k |\bar c_k - \bar y_k|^p)^{1/p}`, with :math:`s_k` the share of rows in the bin or one over the number of
    bins that hold rows. With `debias` a bin loses :math:`\bar y_k (1 - \bar y_k) / (n_k - 1)` from its square, and one of fewer
    than two rows counts 0; a negative sum is 0.

    See Also
    --------
    truecal.like : Makes it, with the lens of the tool.

    Examples
    --------
    >>> import truecal as tc
    >>> profile = tc.profile.Profile.from_arrays([0.9, 1.0], [1, 0])
    >>> estimator, _ = tc.like("torchmetrics", bins=2)  # which has a bin for 1.0 alone
    >>> round(estimator(profile).value, 6), round(tc.BinnedECE(bins=2)(profile).value, 6)
    (0.55, 0.45)
    """

    rule: str
    bins: int = 15
    norm: float = 1
    average: Literal["rows", "bins"] = "rows"
    debias: bool = False

    def __post_init__(self) -> None:
        """Raise InputError for an unknown rule or average, invalid bins or norm, and a norm other than 2 with `debias`."""
        options.choice(self.rule, tuple(RULES), "rule")
        options.bins(self.bins)
        options.choice(self.average, ("rows", "bins"), "average")
        options.norm(self.norm, (2,) if self.debias else None)

    @property
    def averages_absolute_gaps(self) -> bool:
        """True for norm 1 with bins that count by their rows.

        >>> ConventionECE("array_split", 10).averages_absolute_gaps, ConventionECE("array_split", 10, 2).averages_absolute_gaps
        (True, False)
        """
        return self.norm == 1 and self.average == "rows"

    def fixed_cut(self, profile: Profile) -> Cut:
        """Cut where the number of the bin by the rule changes, bins + 2 positions per dataset; unused ones are at the end.

        Raises InputError for importance weights with a rule that counts rows.
        """
        by_rows = self.rule in _BY_ROWS and profile.weights is not None
        if by_rows and not profile.counted:
            raise InputError(f"bins by {self.rule} take no importance weights; use whole numbers, or tc.BinnedECE")
        counts = profile.weights if by_rows and profile.weights is not None else np.ones((1, profile.rows))
        ends = np.full((profile.batch if by_rows else len(profile.scores), self.bins + 2), profile.rows)
        ends[:, 0] = 0
        for i, row_ends in enumerate(ends):
            repeats = counts[i % len(counts)].astype(np.intp)
            number = RULES[self.rule](np.repeat(profile.scores[i % len(profile.scores)], repeats), self.bins)
            number = number[np.minimum(np.cumsum(repeats) - repeats, len(number) - 1)]
            starts = np.flatnonzero(np.diff(number)) + 1
            row_ends[1 : len(starts) + 1] = starts
        return Cut(ends, ends)

    def from_bins(self, bins: Bins) -> Float64s:
        """Average |gap|^norm over bins that hold rows, by their rows or with equal weights (`average`), shape (batch,).

        With `debias` squares lose rate (1 - rate) / (n - 1), bins of one row count 0, and a negative sum is 0.
        """
        if self.debias:
            square = np.where(bins.count >= 2, debiased_gaps(bins, 2), 0.0)
            return np.maximum((bins.share * square).sum(axis=1), 0.0)
        share = bins.share
        if self.average == "bins":
            share = (bins.weight > 0) / np.count_nonzero(bins.weight, axis=1)[:, None]
        return power_mean(bins.gap, share, self.norm)

    def estimate(self, profile: Profile) -> Findings:
        """Compute the power of every dataset, shape (batch,), with its bins.

        >>> ConventionECE("array_split", 2).estimate(Profile.from_arrays([0.25, 0.75], [0, 1])).power
        array([0.25])
        """
        bins = Bins.of(profile, self.fixed_cut(profile))
        return Findings(self.from_bins(bins), bins)

    def sketch_bound(self, cells: CellProfile, estimate: Estimate) -> SketchBound:
        """Raise InputError: the bins of another tool need rows."""
        raise InputError("another tool's bins need rows, not a sketch; use tc.BinnedECE")


# ----------------------------------------------------------------------------------------------------
# The squared kernel calibration error (SKCE): unbiased, with an interval and a test, for one or all classes

_PAIRS = 500  # derived: rows among which the median distance has a standard error of 2 %


@dataclass(frozen=True)
class KernelError(PairEstimator):
    r"""Estimate the root of the squared kernel calibration error (SKCE), of one probability or of all classes at once.

    Parameters
    ----------
    bandwidth : float or None, default None
        Of the kernel; None for the median distance of predictions.
    level : float, default 0.95
        Level of the interval.
    resamples : int, default 199
        Outcomes redrawn for the p-value.

    Raises
    ------
    InputError
        For clusters, weights, class-wise lenses and fewer than two rows.

    Notes
    -----
    The root of :math:`\frac{1}{n(n-1)} \sum_{i \ne j} k(p_i, p_j) \langle e_i - p_i, e_j - p_j \rangle / 2`, with e the one-hot
    outcome and :math:`k = \exp(-|p_i - p_j| / h)`: an unbiased estimate of half the squared error; half, so that for one
    probability the product is that of y - c. It is zero in expectation for a calibrated model and positive for any other, of
    one probability or, with ``lens=tc.Canonical()``, of all classes at once, where bins would hold a row each.

    Use it to test calibration of all classes together. Its size is no distance in probability: it depends on the kernel, so
    compare models with the same bandwidth only. More than 2000 rows are measured in random blocks of about that size, whose
    mean is unbiased as well.

    The interval takes the variance of a U-statistic, 4 Var(h_1) / n + 2 E[h^2] / (n (n-1)), h the summand and h_1 its mean over
    the second row. The p-value redraws outcomes from the probabilities, which is valid at any n: in six worlds of 1000 calibrated
    datasets each (3, 10 and 100 classes, one probability spread out, near 0 and on tenths; 30 to 200 rows) it was at most 0.05 in
    3.9 to 5.3 % of them.

    References
    ----------
    Widmann, D., Lindsten, F. and Zachariah, D. (2019). Calibration tests in multi-class classification: a unifying framework.
    NeurIPS 32. arXiv:1910.11385

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([1, 1, 1], size=400)
    >>> sharper = probs**3 / (probs**3).sum(axis=1, keepdims=True)
    >>> labels = (rng.random((400, 1)) > sharper.cumsum(axis=1)).sum(axis=1)  # the model is underconfident
    >>> est = tc.measure(tc.Predictions.from_probs(probs, labels), estimator=tc.estimators.KernelError(), lens=tc.Canonical())
    >>> est.p_value, 0 in est.interval
    (0.005, False)
    """

    bandwidth: float | None = None
    level: float = 0.95
    resamples: int = 199

    def __post_init__(self) -> None:
        """Raise InputError for an invalid level, under 19 resamples, and a bandwidth that is not a positive number."""
        options.level(self.level)
        options.whole(self.resamples, "resamples", 19)
        if self.bandwidth is not None and not 0 < self.bandwidth < np.inf:
            raise InputError(f"bandwidth must be a positive number, not {self.bandwidth!r}")

    norm = 2.0  # the power is a mean of products of two residuals
    name = "root of the kernel calibration error"
    bias: ClassVar[Bias] = "none"  # pairs are of different rows

    def measure_rows(self, sample: Sample, rng: np.random.Generator) -> Estimate:
        """Average the U-statistics of blocks of at most 2000 rows; with interval, p-value by redraws, and bandwidth.

        The kernel of two rows is exp(-distance / bandwidth). The variance is that of the mean of the blocks, sum of their
        variances over blocks^2; the p-value is (1 + redraws whose mean reaches the power) / (1 + redraws).
        """
        bandwidth = self.bandwidth or median_distance(sample, rng)
        powers, variances, redrawn = [], [], []
        for probs, residual in blocks(sample, rng):
            kernel = np.exp(-distances(probs) / bandwidth)
            np.fill_diagonal(kernel, 0.0)
            power, variance = _u_statistic(kernel, residual)
            powers.append(power)
            variances.append(variance)
            redrawn.append(self._redrawn(kernel, probs, rng))
        power = float(np.mean(powers))
        deviation = float(np.sqrt(np.sum(variances))) / len(powers)
        p = exceedance(np.mean(redrawn, axis=0), power)
        return self._report(sample, power, self._interval(power, deviation), bandwidth).replace(p_value=p)

    def _interval(self, power: float, deviation: float) -> Interval:
        """Compute the normal interval of the squared error `power` with this standard error, and return its root, in [0, 1].

        >>> KernelError(level=0.95)._interval(0.04, 0.0).high
        0.2
        """
        from statistics import NormalDist

        half_width = NormalDist().inv_cdf(0.5 + self.level / 2) * deviation
        low, high = (float(np.sqrt(max(end, 0.0))) for end in (power - half_width, power + half_width))
        return Interval(low, min(high, 1.0), self.level, "U-statistic")

    def _redrawn(self, kernel: Float64s, probs: Float64s, rng: np.random.Generator) -> Float64s:
        """Compute the mean of `_u_statistic` for outcomes drawn from `probs` (n, events), `resamples` times: (resamples,)."""
        n = len(probs)
        estimates = np.empty(self.resamples)
        for i in range(self.resamples):
            residual = -probs
            residual[np.arange(n), draw_labels(probs, rng)] += 1
            estimates[i] = np.vdot(residual, kernel @ residual) / 2
        return estimates / (n * (n - 1))


def _u_statistic(kernel: Float64s, residual: Float64s) -> tuple[float, float]:
    """Compute the mean of h = k(p_i, p_j) <r_i, r_j> / 2 over pairs, and its variance as in the notes of `KernelError`.

    `kernel` has shape (n, n) and a zero diagonal, `residual` shape (n, events).

    >>> _u_statistic(1 - np.eye(2), np.array([[1.0], [1.0]]))
    (0.5, 0.25)
    """
    n = len(residual)
    h = kernel * (residual @ residual.T) / 2
    first = h.sum(axis=1) / (n - 1)
    square = float((h * h).sum() / (n * (n - 1)))
    noise = float(first.var()) - square / (n - 1)
    return float(first.mean()), 4 * max(noise, 0.0) / n + 2 * square / (n * (n - 1))


def distances(probs: Float64s) -> Float64s:
    """Compute Euclidean distances of all pairs of rows of probabilities (n, events), shape (n, n).

    >>> distances(np.array([[0.0, 1.0], [1.0, 0.0]])).round(4)
    array([[0.    , 1.4142],
           [1.4142, 0.    ]])
    """
    square = (probs * probs).sum(axis=1)
    return np.sqrt(np.maximum(square[:, None] + square - 2 * probs @ probs.T, 0.0))


def median_distance(sample: Sample, rng: np.random.Generator) -> float:
    """Return the median Euclidean distance between distinct predictions of at most 500 random rows; 1 if there are none.

    >>> sample = Sample(np.array([0.0, 1.0]), np.array([0, 1]))
    >>> round(median_distance(sample, np.random.default_rng(0)), 4)  # of (0, 1) and (1, 0)
    1.4142
    """
    rows = rng.permutation(len(sample))[:_PAIRS] if len(sample) > _PAIRS else np.arange(len(sample))
    lengths = distances(sample.columns[:, rows].T.astype(np.float64))
    lengths = lengths[lengths > 1e-7]
    return float(np.median(lengths)) if len(lengths) else 1.0
