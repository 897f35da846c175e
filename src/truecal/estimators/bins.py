"""Bins with their counts and sums, binning schemes, p-means over bins and datasets, and what noise does to a mean absolute gap.

E|m| is the largest E[s (y - c)] over functions s of the score with values in [-1, 1], reached at s = sign(m). With s_i
from the gap of a bin without row i, V = mean s_i (y_i - c_i) has a mean of at most E|m|, and 0 for a calibrated model. The
lower bound uses signs that fade linearly within some standard deviations of the gap, which makes V a quadratic form of the
noise there, of twice the variance. The upper bound uses plain signs and adds the expected loss by wrong ones,
2 |m| Phi(-|m| / sd).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from statistics import NormalDist
from typing import Literal

import numpy as np

from truecal import options
from truecal.profile.binning import Cut
from truecal.profile.profile import Profile
from truecal.resampling.draws import CellBatch
from truecal.resampling.units import UnitSums
from truecal.special import clopper_pearson, positive
from truecal.table import Frame, Tabular
from truecal.types import Float64s, Indices

_GAP_ROUNDING = 1e-9  # derived: rounding of a gap; smaller ones have no sign
_CLASS_DESIGN_EFFECT = 2.0  # derived: diag(p) - pp' is at most twice its diagonal
# Standard deviations of a gap within which its sign fades. Tuned on five worlds of 200 to 10,000 rows, two schemes, 90 %: limits
# cover 0.955 (least 0.92), with plain signs 0.933 (least 0.89) and 7 % shorter.
_FADE = 2.0
_MIN_OTHERS = 0.05  # derived: 1 less the largest leverage of the rank series

# ----------------------------------------------------------------------------------------------------
# Bins: counts and sums, from which means, gaps and intervals follow


@dataclass(frozen=True, repr=False)
class Bins(Tabular):
    """Counts and sums of each of b bins, shape (batch, b); empty bins have count 0.

    For a single dataset `counts`, `mean_score`, `mean_outcome` and `interval` are one-dimensional and leave out empty bins.
    """

    weight: Float64s  # sum of weights in each bin
    score_sum: Float64s
    outcome_sum: Float64s
    count: Float64s  # sample size of each bin
    single: bool
    effective: Float64s | None = None  # sample size where rows belong together: what an interval may count on

    @classmethod
    def of(cls, profile: Profile, cut: Cut) -> Bins:
        """Sum the rows between consecutive cuts, shape (batch, cuts - 1); with clusters also their effective sample sizes.

        >>> profile = Profile.from_arrays([0.25, 0.75, 0.75], [0, 1, 0])
        >>> bins = Bins.of(profile, profile.width_cut(2))
        >>> bins.weight, bins.score_sum, bins.outcome_sum
        (array([[1., 2.]]), array([[0.25, 1.5 ]]), array([[0., 1.]]))
        """
        if profile.weights is None or profile.batch > 1 or cut.fraction is not None:
            weight = np.diff(profile.sums("w", cut), axis=1)
            score, outcome = np.diff(profile.sums("c", cut), axis=1), np.diff(profile.sums("y", cut), axis=1)
        else:
            weight, score, outcome = _sum_bins(profile, cut.below[0])
        scale = (profile.size / positive(profile.total))[:, None]
        effective = None
        if profile.units is not None and cut.fraction is None:
            effective = effective_counts(profile, cut.below[0])[None]
        return cls(weight, score, outcome, weight * scale, profile.single, effective)

    @classmethod
    def of_cells(cls, batch: CellBatch) -> Bins:
        """Make a bin of every cell of a batch of resamples, shape (datasets, cells)."""
        rows, ones, scores = np.broadcast_arrays(batch.rows, batch.ones, batch.score_sums)
        return cls(rows, scores, ones, rows, single=False)

    def _take(self, bins: slice) -> Bins:
        """Select the bins `bins` of every dataset."""
        sums = self.weight[:, bins], self.score_sum[:, bins], self.outcome_sum[:, bins], self.count[:, bins]
        return Bins(*sums, self.single, None if self.effective is None else self.effective[:, bins])

    @cached_property
    def safe(self) -> Float64s:
        """Weights with 1 in place of 0, to divide by, shape (batch, b).

        >>> profile = Profile.from_arrays([0.75, 0.75], [1, 0])
        >>> Bins.of(profile, profile.width_cut(2)).safe
        array([[1., 2.]])
        """
        return positive(self.weight)

    @cached_property
    def share(self) -> Float64s:
        """Part of the data in each bin, shape (batch, b).

        >>> profile = Profile.from_arrays([0.25, 0.75, 0.75, 0.75], [0, 1, 0, 1])
        >>> Bins.of(profile, profile.width_cut(2)).share
        array([[0.25, 0.75]])
        """
        total = self.weight.sum(axis=1, keepdims=True)
        return self.weight / positive(total)

    @cached_property
    def gap(self) -> Float64s:
        """Mean outcome minus mean score, 0 for empty bins, shape (batch, b).

        >>> profile = Profile.from_arrays([0.25, 0.75, 0.75], [0, 1, 0])
        >>> Bins.of(profile, profile.width_cut(2)).gap
        array([[-0.25, -0.25]])
        """
        return np.clip((self.outcome_sum - self.score_sum) / self.safe, -1.0, 1.0)  # sums may round past their bin

    @cached_property
    def rate(self) -> Float64s:
        """Mean outcome, 0 for empty bins, shape (batch, b).

        >>> profile = Profile.from_arrays([0.25, 0.75, 0.75], [0, 1, 0])
        >>> Bins.of(profile, profile.width_cut(2)).rate
        array([[0. , 0.5]])
        """
        return np.clip(self.outcome_sum / self.safe, 0.0, 1.0)  # a sum of weights may pass its total in the last bit

    @property
    def filled(self) -> int:
        """Number of bins that are not empty (of the first dataset of a batch).

        >>> profile = Profile.from_arrays([0.75, 0.75], [1, 0])
        >>> Bins.of(profile, profile.width_cut(2)).filled
        1
        """
        return int(np.count_nonzero(self.weight[0]))

    def _shown(self, values: Float64s) -> Float64s:
        """Return bins that hold rows, shape (bins,), for a single dataset, and all, shape (batch, bins), for a batch.

        >>> profile = Profile.from_arrays([0.75, 0.75], [1, 0])
        >>> Bins.of(profile, profile.width_cut(2))._shown(np.array([[5.0, 6.0]]))  # the first bin is empty
        array([6.])
        """
        return values[0, self.weight[0] > 0] if self.single else values

    @property
    def counts(self) -> Float64s:
        """Sample size of each bin: its predictions, or with importance weights its part of the effective sample size.

        >>> profile = Profile.from_arrays([0.75, 0.75], [1, 0])
        >>> Bins.of(profile, profile.width_cut(2)).counts
        array([2.])
        """
        return self._shown(self.count)

    @property
    def mean_score(self) -> Float64s:
        """Mean score of each bin, weighted; shaped as `counts`.

        >>> profile = Profile.from_arrays([0.25, 0.5, 0.75], [0, 1, 0])
        >>> Bins.of(profile, profile.width_cut(2)).mean_score
        array([0.25 , 0.625])
        """
        return self._shown(np.clip(self.score_sum / self.safe, 0.0, 1.0))

    @property
    def mean_outcome(self) -> Float64s:
        """Share of rows of each bin whose outcome happened, weighted; shaped as `counts`.

        >>> profile = Profile.from_arrays([0.25, 0.5, 0.75], [0, 1, 0])
        >>> Bins.of(profile, profile.width_cut(2)).mean_outcome
        array([0. , 0.5])
        """
        return self._shown(self.rate)

    def frame(self) -> Frame:
        """Return one row per bin (filled bin of a single dataset): count, mean score, mean outcome and its 95 % interval.

        >>> profile = Profile.from_arrays([0.25, 0.5, 0.75], [0, 1, 0])
        >>> Bins.of(profile, profile.width_cut(2)).frame().columns
        ('count', 'mean_score', 'mean_outcome', 'low', 'high')
        """
        low, high = self.interval()
        columns = {"count": self.counts, "mean_score": self.mean_score, "mean_outcome": self.mean_outcome}
        flat = {name: np.ravel(values) for name, values in {**columns, "low": low, "high": high}.items()}
        return Frame(flat if self.single else {"dataset": np.repeat(np.arange(len(low)), low.shape[1]), **flat})

    def __str__(self) -> str:
        """Write the number of filled bins and rows, then the table of bins."""
        return f"{self._headline()}\n{self.frame()!r}"

    def _headline(self) -> str:
        """Write the number of bins and of predictions, or of datasets of a batch, in one line.

        >>> profile = Profile.from_arrays([0.25, 0.5, 0.75], [0, 1, 0])
        >>> Bins.of(profile, profile.width_cut(2))._headline()
        '2 bins of 3 predictions'
        """
        if not self.single:
            return f"the bins of {len(self.weight)} datasets"
        return f"{self.filled} bins of {self.count.sum():g} predictions"

    def interval(self, level: float = 0.95) -> tuple[Float64s, Float64s]:
        """Clopper-Pearson limits (low, high) for the outcome rate of each bin; with clusters on their effective number of rows.

        >>> import truecal as tc
        >>> est = tc.BinnedECE(bins=1)(tc.profile.Profile.from_arrays([0.5] * 10, [1] * 5 + [0] * 5))
        >>> low, high = est.bins.interval(0.95)
        >>> round(float(low[0]), 4), round(float(high[0]), 4)
        (0.1871, 0.8129)
        """
        n = self._shown(self.count if self.effective is None else self.effective)
        return clopper_pearson(self.mean_outcome * n, n, (1 - level) / 2)


def _sum_bins(profile: Profile, starts: Indices) -> tuple[Float64s, Float64s, Float64s]:
    """Sum w, w*c and w*y of one dataset between consecutive `starts`, shape (1, bins) each; 0 for empty bins.

    Summed bin by bin, because a difference of prefix sums loses the digits of a bin of small weight after one of large weight.

    >>> _sum_bins(Profile.from_arrays([0.25, 0.5, 0.75], [0, 1, 0]), np.array([0, 1, 3]))
    (array([[1., 2.]]), array([[0.25, 1.25]]), array([[0., 1.]]))
    """
    weights = np.ones(profile.rows) if profile.weights is None else profile.weights[0]
    filled, sums = np.diff(starts) > 0, []
    for values in (weights, weights * profile.scores[0], weights * profile.outcomes[0]):
        bins = np.add.reduceat(np.append(values, 0.0), starts)[:-1]
        sums.append(np.where(filled, bins, 0.0)[None])
    return sums[0], sums[1], sums[2]


def effective_counts(profile: Profile, starts: Indices) -> Float64s:
    """Compute the effective sample size of each bin between consecutive `starts`, shape (bins,) (Korn and Graubard 1998).

    n_eff = p (1 - p) / v (1.96 / t)^2 with v the variance of the rate p between clusters and t Student's 97.5 % quantile with
    (clusters of the bin - 1) degrees of freedom; never more than the rows. Where v is 0, as for outcomes that are all equal, and
    in a bin of one cluster it is the number of clusters.
    """
    unit, of_row = np.unique(np.zeros(0) if profile.units is None else profile.units, return_inverse=True)
    weight = np.ones(profile.rows) if profile.weights is None else profile.weights[0]
    weight = weight * (profile.size[0] / profile.total[0])
    starts = np.concatenate([[0], starts[1:-1], [profile.rows]])  # rows of weight zero at either end as well
    code = np.repeat(np.arange(len(starts) - 1), np.diff(starts)) * len(unit) + of_row
    pairs, pair = np.unique(code, return_inverse=True)
    rows, ones = (np.bincount(pair, w).astype(np.float64) for w in (weight, weight * profile.outcomes[0]))
    return effective_size(pairs // len(unit), rows, ones, len(starts) - 1)


def effective_size(group: Indices, rows: Float64s, ones: Float64s, groups: int) -> Float64s:
    """Compute the effective sample size of each group as in `effective_counts`, shape (groups,).

    `group`, `rows` and `ones`, shape (pairs,), are the group (0 to groups - 1), the rows and the ones of every pair of a unit and
    a group that has rows.

    >>> effective_size(np.array([0, 0]), np.array([5.0, 5.0]), np.array([5.0, 5.0]), 1)  # two units, equal outcomes
    array([2.])
    """
    from scipy.special import stdtrit

    total, total_ones = np.bincount(group, rows, groups), np.bincount(group, ones, groups)
    units = np.bincount(group, rows > 0, groups)
    safe = positive(total)
    rate = np.clip(total_ones / safe, 0.0, 1.0)
    square = np.bincount(group, (ones - rate[group] * rows) ** 2, groups)
    several = units > 1
    variance = np.where(several, square * units / np.maximum(units - 1, 1) / safe**2, 0.0)
    varies = (variance > 0) & several
    student = np.where(several, stdtrit(np.maximum(units - 1, 1), 0.975), 12.7)
    effective = np.where(varies, rate * (1 - rate) / np.where(varies, variance, 1.0) * (1.96 / student) ** 2, units)
    return np.minimum(effective, total)


def effective_rows(sums: UnitSums) -> Float64s:
    """Compute the effective sample size of each bin of one dataset, shape (1, bins), as `effective_counts`.

    `sums` are those of its units in the bins, with full (not sparse) matrices.
    """
    bins, units = sums.rows.shape
    return effective_size(np.repeat(np.arange(bins), units), sums.rows.ravel(), sums.ones.ravel(), bins)[None]


# ----------------------------------------------------------------------------------------------------
# Which rows share a bin


def distinct_cut(profile: Profile) -> Cut:
    """Cut every dataset into one bin per distinct score; datasets with fewer than others have empty bins at the end.

    >>> distinct_cut(Profile.from_arrays([0.25, 0.5, 0.5], [0, 1, 0])).below
    array([[0, 1, 3]])
    """
    scores = profile.scores
    dataset, row = np.nonzero(scores[:, 1:] != scores[:, :-1])
    changes = np.bincount(dataset, minlength=len(scores))
    number = np.arange(len(row)) - np.repeat(np.cumsum(changes) - changes, changes)
    starts = np.full((len(scores), int(changes.max()) + 2), profile.rows)
    starts[:, 0] = 0
    starts[dataset, number + 1] = row + 1
    return Cut(starts, starts)


@dataclass(frozen=True)
class Binning:
    """A rule that assigns rows to `bins` bins of equal width or equal mass.

    A score on an edge of equal width is in the upper bin if `closed` is "left", else in the lower one; cuts of equal mass either
    keep equal scores together or split them between bins.
    """

    bins: int
    scheme: Literal["width", "mass"]
    ties: Literal["keep", "split"] = "keep"
    closed: Literal["left", "right"] = "left"

    def check(self) -> None:
        """Raise InputError for options that are out of range.

        >>> Binning(0, "width").check()
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: bins must be a whole number of at least 1, not 0
        """
        options.bins(self.bins)
        options.choice(self.scheme, ("width", "mass"), "scheme")
        options.choice(self.ties, ("keep", "split"), "ties")
        options.choice(self.closed, ("left", "right"), "closed")

    def bins_of(self, profile: Profile) -> Bins:
        """Sum the bins of a profile; the sums are stored with it, for other estimators on the same bins.

        >>> Binning(2, "mass").bins_of(Profile.from_arrays([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1])).counts
        array([2., 2.])
        """
        if self not in profile.cache:
            profile.cache[self] = Bins.of(profile, self.cut(profile))
        bins: Bins = profile.cache[self]
        return bins

    @staticmethod
    def make_all(profile: Profile, binnings: Iterable[Binning]) -> None:
        """Sum the bins of several binnings of one dataset together, and store them with the profile for :meth:`bins_of`.

        With units nothing is stored: effective sample sizes are computed binning by binning.
        """
        if profile.units is not None:
            return
        rules: dict[Binning, list[int]] = {}
        for binning in dict.fromkeys(binnings):
            rules.setdefault(replace(binning, bins=1), []).append(binning.bins)
        for rule, numbers in rules.items():
            bins = Bins.of(profile, rule.cut(profile, numbers))
            end = 0
            for number in numbers:
                start, end = end, end + number
                profile.cache.setdefault(replace(rule, bins=number), bins._take(slice(start, end)))
                end += 1  # the difference of the last cut of one number and the first of the next is no bin

    def cut(self, profile: Profile, bins: int | Sequence[int] | Indices | None = None) -> Cut:
        """Cut a profile by this rule, into `self.bins` bins or into other numbers of `bins`.

        A sequence of numbers gives all positions (bins + 1) of the first number, then those of the next, in one Cut. An array of
        shape (batch, 1) gives one number for each dataset.

        >>> Binning(2, "mass").cut(Profile.from_arrays([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1])).below
        array([[0, 2, 4]])
        """
        bins = self.bins if bins is None else bins
        if self.scheme == "width":
            return profile.width_cut(bins, self.closed)
        return profile.mass_cut(bins, self.ties)


# ----------------------------------------------------------------------------------------------------
# Many numbers as one: means of powers over bins and over datasets


def power_mean(gaps: Float64s, share: Float64s, norm: float) -> Float64s:
    """Compute sum_k share_k |gap_k|^p over the last axis; for p = inf the maximum of |gap_k| over bins of positive share.

    >>> power_mean(np.array([0.1, -0.5]), np.array([0.75, 0.25]), 1).round(12)
    np.float64(0.2)
    """
    absolute = np.abs(gaps)
    if norm == np.inf:
        return np.where(share > 0, absolute, 0.0).max(axis=-1, initial=0.0)
    return (share * (absolute if norm == 1 else absolute**norm)).sum(axis=-1)


def combine_powers(powers: Float64s, shares: Float64s | None, norm: float) -> Float64s:
    """Combine powers of the datasets of a lens, along the first axis: weighted mean, or maximum of positive shares for p = inf.

    Without shares there is one dataset, whose powers are returned.

    >>> combine_powers(np.array([0.1, 0.3]), np.array([0.5, 0.5]), 1)
    array(0.2)
    """
    if shares is None:
        return np.asarray(powers[0])
    if norm == np.inf:
        return np.asarray(powers[shares > 0].max(axis=0))
    return np.asarray(np.tensordot(shares, powers, axes=1))


# ----------------------------------------------------------------------------------------------------
# What noise does to a mean absolute gap


def folded_mean(gap: Float64s, variance: Float64s) -> Float64s:
    """Compute E|gap + noise|, noise normal of mean 0 and the given variance; |gap| where the variance is 0. Arrays broadcast.

    >>> folded_mean(np.array([0.0, -0.5]), np.array([1.0, 0.0])).round(4)
    array([0.7979, 0.5   ])
    """
    from scipy.special import ndtr

    deviation, size = np.sqrt(variance), np.abs(gap)
    noisy = deviation > 0
    ratio = size / np.where(noisy, deviation, 1.0)
    mean = deviation * np.sqrt(2 / np.pi) * np.exp(ratio * ratio / -2) + size * (1 - 2 * ndtr(-ratio))
    return np.where(noisy, mean, size)


def absolute_cube(gap: Float64s, variance: Float64s) -> Float64s:
    """Compute E|gap + noise|^3 for normal noise of variance s^2, with m = |gap|.

    s (2 s^2 + m^2) sqrt(2/pi) exp(-m^2 / 2 s^2) + (m^3 + 3 m s^2) (1 - 2 Phi(-m/s))

    >>> absolute_cube(np.array([2.0, 0.0]), np.array([0.0, 1.0])).round(4)  # 2^3, and 2 sqrt(2 / pi)
    array([8.    , 1.5958])
    """
    from scipy.special import ndtr

    m, s = np.abs(gap), np.sqrt(variance)
    noisy = s > 0
    ratio = m / np.where(noisy, s, 1.0)
    normal = s * (2 * s**2 + m**2) * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2)
    return np.where(noisy, normal + (m**3 + 3 * m * s**2) * (1 - 2 * ndtr(-ratio)), m**3)


def debiased_gaps(bins: Bins, norm: float) -> Float64s:
    """Compute |gap|^norm of every bin with the bias of its noise removed, norm 1, 2 or 3, shape (batch, b).

    With n rows, at least 2: gap^2 - rate (1 - rate) / (n - 1) (Kumar et al. 2019, section 5), else 2 |gap|^norm - E|gap +
    noise|^norm for normal noise of variance rate (1 - rate) / n (appendix G.3).

    >>> profile = Profile.from_arrays([0.25, 0.25], [0, 0])
    >>> debiased_gaps(Bins.of(profile, profile.width_cut(1)), 1)  # a rate of 0 has no noise
    array([[0.25]])
    """
    several = np.where(bins.count >= 2, bins.count, 2.0)
    if norm == 2:
        return bins.gap**2 - bins.rate * (1 - bins.rate) / (several - 1)
    expected = folded_mean if norm == 1 else absolute_cube
    return 2 * np.abs(bins.gap) ** norm - expected(bins.gap, bins.rate * (1 - bins.rate) / several)


def mean_usable(bins: Bins, terms: Float64s, norm: float) -> tuple[Float64s, Float64s]:
    """Average terms (batch, b) over bins of at least two rows by their rows, and sum the share of the data in these bins.

    Both have shape (batch,). Where no bin has two rows, the mean is the plain one of |gap|^norm and the share 0.

    >>> profile = Profile.from_arrays([0.25, 0.75, 0.75, 0.75], [0, 1, 0, 1])
    >>> mean_usable(Bins.of(profile, profile.width_cut(2)), np.array([[0.5, 0.1]]), 1)  # the first bin has one row
    (array([0.1]), array([0.75]))
    """
    share = np.where(bins.count >= 2, bins.share, 0.0)
    covered = share.sum(axis=1)
    mean = (share * terms).sum(axis=1) / positive(covered)
    return np.where(covered > 0, mean, (bins.share * np.abs(bins.gap) ** norm).sum(axis=1)), covered


# ----------------------------------------------------------------------------------------------------
# Bounds of a mean absolute gap from leave-one-out signs


def sign_bounds(bins: Bins, design_effect: float = 1.0) -> SignBounds:
    """Compute the parts of the limits of E|m| of every dataset (batch,), m the true gap of a bin; see `SignBounds`.

    A row has the sign of the gap of its bin without that row: one sign for the ones of a bin and one for its zeros.
    `design_effect` rows count as one independent row.
    """
    from scipy.special import ndtr

    counts, gap, n = bins.count, bins.gap, bins.count.sum(axis=1)
    scores = np.clip(bins.score_sum / bins.safe, 0.0, 1.0)
    rate = np.clip(scores + gap, 0.0, 1.0)
    leverage = np.minimum(design_effect / positive(counts), 1.0)
    shrunk = (rate + leverage / 2) / (1 + leverage)  # (15) of docs/methods/rank-series.md
    width = _FADE * np.sqrt(leverage * shrunk * (1 - shrunk))
    ones = counts * bins.rate
    total = np.zeros((4, len(counts)))
    for number, residual in ((ones, 1 - scores), (counts - ones, -scores)):
        gap_without_row = (gap - leverage * residual) / np.maximum(1 - leverage, _MIN_OTHERS)  # (7)
        plain = np.where(np.abs(gap_without_row) > _GAP_ROUNDING, np.sign(gap_without_row), 0.0)
        fading = np.where(width > 0, np.clip(gap_without_row / positive(width), -1.0, 1.0), plain)
        squares = np.where(np.abs(fading) < 1, 2.0, 1.0) * residual**2 * fading**2
        total += np.vecdot(number, np.stack([fading * residual, squares, plain * residual, residual**2]))
    fading, fading_square, plain, plain_square = total / n
    deviation, size = np.sqrt(leverage * rate * (1 - rate)), np.abs(gap)
    cost = np.where(deviation > 0, 2 * size * ndtr(-size / positive(deviation)), 0.0)
    variances = np.maximum(np.stack([fading_square - fading**2, plain_square - plain**2]), 0.0) * design_effect / n
    return SignBounds(fading, plain, np.vecdot(counts, cost) / n, *variances)


@dataclass(frozen=True, eq=False)
class SignBounds:
    """Parts of the limits of E|m|, m the true gap of the bin of a row, for every dataset, shape (m,) each.

    `plain` is the mean over rows of sign(gap without the row) times y - mean score of the bin; `fading` is that with signs that
    fall linearly to 0 for gaps within two standard deviations; both have a mean of at most E|m|, and the variances given. `cost`
    is what wrong signs take from `plain` on average, the mean of 2 |gap| Phi(-|gap| / deviation).
    """

    fading: Float64s
    plain: Float64s
    cost: Float64s
    fading_variance: Float64s
    plain_variance: Float64s

    @classmethod
    def combine(cls, parts: Sequence[SignBounds], shares: Float64s) -> SignBounds:
        """Average datasets of `parts` by their shares, shape (datasets,), to one, shape (1,).

        Variances add up as of independent datasets, times shares^2, doubled where there are several: labels of one row in several
        classes have at most twice that variance.
        """
        together = _CLASS_DESIGN_EFFECT if len(shares) > 1 else 1.0
        sums = []
        for field in fields(cls):
            values = np.concatenate([getattr(part, field.name) for part in parts])
            weights = together * shares**2 if "variance" in field.name else shares
            sums.append(np.array([float(weights @ values)]))
        return cls(*sums)

    def limits(self, level: float) -> tuple[Float64s, Float64s]:
        """Compute the lower and the upper limit of E|m|, shape (m,) each; they need not contain a point estimate.

        With z the two-sided normal quantile: max(fading - z sd(fading), 0) and max(plain, fading) + z sd(plain) + cost.
        """
        z = NormalDist().inv_cdf(0.5 + level / 2)
        lower = np.maximum(self.fading - z * np.sqrt(self.fading_variance), 0.0)
        return lower, np.maximum(self.plain, self.fading) + z * np.sqrt(self.plain_variance) + self.cost
