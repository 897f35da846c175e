"""Tests of calibration by the statistic (18) of the rank series: of datasets, of all classes of a row, and of families.

p-values from B redraws cannot go below 1/(B + 1), and a correction for 60 tests then rejects nothing. A family has one
joint null instead: the largest statistic of all datasets is compared with the largest of redraws of all of them (max-T,
Westfall and Young 1993), and stepping down leaves out those rejected already. Statistics are first scaled by the tail of their
null distribution, because those of rare events have longer tails: the excess over the 90 % quantile of the redraws, divided
by the mean excess beyond it, which is shrunk halfway to that of all datasets.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np

from truecal import options
from truecal.estimators.rank_series.basis import (
    RankCells,
    cell_parts,
    rank_cells,
    smooth_test_statistic,
    stacked_cells,
)
from truecal.estimators.rank_series.clusters import ClusteredSeries
from truecal.lenses.lens import Sample
from truecal.profile.profile import Profile
from truecal.resampling.cells import collapse
from truecal.resampling.draws import (
    LinearRedraws,
    NullDistribution,
    RedrawTest,
    exceedance,
    label_ends,
    redraw_labels,
)
from truecal.resampling.units import Units, draw_signs, incidence
from truecal.special import positive
from truecal.types import Float64s, Indices

_FAMILY_CELLS = 128  # derived: 8 per term at 1000 rows; of neighbouring scores for each dataset of a family
_LABEL_CELLS = 1024  # derived: as many as the rank series has
_TAIL = 0.9  # by choice: quantile of the null statistics above which the tail is taken as exponential
_ROUNDING = 1e-12  # derived: residuals that are zero, and statistics that are equal, but for rounding
_REFUTED = 1e300  # derived: a finite number beyond every statistic: that of an unexpected outcome at a score of 0 or 1

# ---------------------------------------------------------------------- datasets of independent rows


def smooth_tests(cells: RankCells) -> Iterator[tuple[float, NullDistribution]]:
    """Yield the statistic (18) of every dataset of a batch and its distribution under calibration.

    Where all scores are 0 or 1 the statistic is 0, or infinite for an outcome of probability 0, and those of redraws are 0.
    Consecutive datasets with the same scores have the same distribution. The terms are those in the rank of all
    rows, also where the estimate is by side of 1/2: a choice by the outcomes would change the distribution.
    """
    shared: tuple[Float64s, Float64s] = np.zeros(0), np.zeros(0)
    for i in range(len(cells.n)):
        k = i % len(cells.counts)
        terms = int(cells.orders[k])
        end = np.flatnonzero(cells.counts[k])[-1] + 1  # without the empty cells of `stack_cells`
        counts, scores, residuals = cells.counts[k, :end], cells.scores[i, :end], cells.residual_sums[i, :end]
        covariance = cells.null_covariance[i, :terms, :terms]
        if not (covariance.diagonal() > 0).any():
            constant = NullDistribution(lambda redraws, rng: np.zeros(redraws))
            yield np.inf if (np.abs(residuals) > _ROUNDING).any() else 0.0, constant
            continue
        functions = cells.basis[k % len(cells.basis), :terms, :end] / np.sqrt(positive(counts) * cells.n[i])
        if not (np.array_equal(counts, shared[0]) and np.array_equal(scores, shared[1])):
            shared = counts, scores
            redraws = LinearRedraws(counts, scores, counts * cells.null_variances[i, :end], functions)
            null = NullDistribution(redraws.draw, partial(smooth_test_statistic, covariance=covariance))
        yield float(smooth_test_statistic(functions @ residuals, covariance)), null


def test_calibration(profile: Profile, redraws: int, rng: np.random.Generator) -> RedrawTest:
    """Compute statistic (18) and p-value, by up to `redraws` redraws, of every dataset of independent rows, shape (batch,)."""
    statistics, p_values = [], []
    for cells in cell_parts(profile):
        for statistic, null in smooth_tests(cells):
            statistics.append(statistic)
            p_values.append(null.p_value(statistic, redraws, rng))
    return RedrawTest(np.array(statistics), np.array(p_values))


# ---------------------------------------------------------------------- all classes of a row


def label_test(samples: Sequence[Sample], shares: Float64s, redraws: int, rng: np.random.Generator) -> float:
    """Compute the p-value of calibration in all classes, by labels redrawn from the probabilities of their rows.

    The statistic is the sum over classes of (18), weighted by `shares`, shape (classes,); the p-value is (1 + redraws that reach
    it) / (1 + redraws). One label is drawn per row, so that the outcomes of different classes are correlated as in the data. The
    samples are those of a class-wise lens on independent rows, one per class, rows in the same order.
    """
    probs = np.stack([sample.scores.astype(np.float64) for sample in samples])
    labels = redraw_labels(label_ends(probs), redraws, rng)
    order = np.argsort(labels, axis=None, kind="stable")
    draw, row = np.divmod(order, labels.shape[1])
    ends = np.searchsorted(labels.ravel()[order], np.arange(len(samples) + 1))
    statistic, redrawn = 0.0, np.zeros(redraws)
    for k, (sample, share) in enumerate(zip(samples, shares, strict=True)):
        if share > 0:
            part = slice(ends[k], ends[k + 1])
            of_class, of_redraws = _class_statistics(sample, draw[part], row[part], redraws)
            statistic, redrawn = statistic + share * of_class, redrawn + share * of_redraws
    return exceedance(redrawn, statistic)


def _class_statistics(sample: Sample, draw: Indices, row: Indices, redraws: int) -> tuple[float, Float64s]:
    """Compute the statistic (18) of one class: observed, and of redraws, shape (redraws,); 0 where its scores are all 0 or 1.

    In redraw `draw[i]` row `row[i]` has the class as its label, both of shape (ones,); all other rows have not.
    """
    from scipy.sparse import csr_array

    sorted_rows = sample.with_units(np.arange(len(sample))).profile
    distinct, weights = incidence(sorted_rows, sample.order, len(sample), _LABEL_CELLS)
    cells = rank_cells(distinct)
    covariance = cells.null_covariance[0]
    if not (covariance.diagonal() > 0).any():
        return 0.0, np.zeros(redraws)
    counts, scale = cells.counts[0], np.sqrt(positive(cells.counts[0]) * cells.n[0])
    labels = csr_array((np.ones(len(row)), (draw, row)), shape=(redraws, len(sample)))
    ones = (labels @ (weights[: len(counts)] + weights[len(counts) :]).T).toarray()
    residuals = np.concatenate([cells.residual_sums, ones - counts * cells.scores])
    statistics = smooth_test_statistic(residuals / scale @ cells.basis[0].T, covariance)
    return float(statistics[0]), statistics[1:]


# ---------------------------------------------------------------------- families of groups


class Family:
    """Tests of calibration of many datasets, adjusted together.

    Datasets of independent rows are redrawn by themselves. Where rows belong to units, signs of whole units are flipped,
    the same for all datasets, because a unit may have rows in several of them.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(1)
    >>> c, group = rng.random(3000), np.arange(3000) % 3
    >>> outcomes = rng.random(3000) < np.where(group == 2, c**2, c)
    >>> family = Family(199)
    >>> family.add(tc.OneClass().sample(tc.Predictions.from_probs(c, outcomes)), group)
    >>> family.adjusted() <= 0.05
    array([False, False,  True])
    """

    def __init__(self, resamples: int, rng: int | np.random.Generator = 0) -> None:
        self.resamples = resamples
        self._rng = options.generator(rng)
        # of every dataset: the number of its group, the statistic, and those of redraws, shape (resamples,)
        self._tests: list[tuple[int, float, Float64s]] = []

    def add(self, sample: Sample, group: Indices) -> None:
        """Add one dataset for every group of rows; `group`, shape (n,), numbers groups from 0 on, and -1 leaves a row out.

        A group may be added several times, as one dataset per class: its largest statistic counts.
        """
        order = np.argsort(group, kind="stable")
        parts = np.split(order, np.searchsorted(group[order], np.arange(group.max() + 1)))[1:]
        samples = map(sample.take, parts)
        if sample.independent:
            self.add_profiles((part.profile for part in samples), range(len(parts)))
            return
        assert sample.units is not None
        flips = draw_signs(self.resamples, int(sample.units.max()) + 1, self._rng)
        for number, part in enumerate(samples):
            self._tests.append((number, *self._test_units(part, flips)))

    def add_profiles(self, profiles: Iterable[Profile], groups: Iterable[int]) -> None:
        """Add one dataset of independent rows, or of the cells of a sketch, for each of these numbers of groups, in order."""
        cells = (collapse(profile, _FAMILY_CELLS) for profile in profiles)
        tests = (test for _, batch in stacked_cells(cells) for test in smooth_tests(batch))
        for number, (statistic, null) in zip(groups, tests, strict=True):
            redrawn = null.statistic(null.draw(self.resamples, self._rng))
            self._tests.append((number, min(statistic, _REFUTED), redrawn))

    def adjusted(self) -> Float64s:
        """Compute p-values of all groups, shape (groups,), adjusted by Westfall and Young's step-down maxT.

        With groups in descending order of their statistics, that of the i-th is compared with the largest of redraws of the i-th
        and all later groups, (1 + number that reach it) / (1 + redraws), made non-decreasing in i.
        """
        observed, null = self._by_group()
        order = np.argsort(-observed, kind="stable")
        largest = np.maximum.accumulate(null[order][::-1], axis=0)[::-1]
        exceedances = (largest >= observed[order, None] - _ROUNDING).sum(axis=1)
        adjusted = np.empty(len(observed))
        adjusted[order] = np.maximum.accumulate((1 + exceedances) / (1 + self.resamples))
        return adjusted

    def _by_group(self) -> tuple[Float64s, Float64s]:
        """Standardise statistics by their null distributions; return the largest of each group (groups,) and of redraws.

        A statistic becomes (statistic - q) / t, with q the 90 % quantile of its redraws and itself, t the mean excess over q,
        averaged with that of all datasets. Redraws have shape (groups, resamples).
        """
        member, observed, null = map(np.array, zip(*self._tests, strict=True))
        # The data count like one more redraw, but not by more than twice the largest.
        statistics = np.column_stack([null, np.minimum(observed, 2 * null.max(axis=1) + 1)])
        start = np.quantile(statistics, _TAIL, axis=1)
        excess = np.maximum(statistics - start[:, None], 0.0).sum(axis=1) / ((1 - _TAIL) * statistics.shape[1])
        tail = np.maximum((excess + excess.mean()) / 2, _ROUNDING)
        observed, null = (observed - start) / tail, (null - start[:, None]) / tail[:, None]
        groups = int(member.max()) + 1
        largest, largest_null = np.full(groups, -np.inf), np.full((groups, self.resamples), -np.inf)
        np.maximum.at(largest, member, observed)
        np.maximum.at(largest_null, member, null)
        return largest, largest_null

    def _test_units(self, sample: Sample, flips: Float64s) -> tuple[float, Float64s]:
        """Compute the statistic of clustered rows and those of sign flips, shape (resamples,); 0 for a single cluster.

        `flips`, shape (resamples, clusters), has the signs of all clusters of the family, numbered as `sample.units`.
        """
        assert sample.units is not None
        units = Units.of(sample, self._rng)
        if units.count < 2:
            return 0.0, np.zeros(self.resamples)
        sums, codes = ClusteredSeries.of(sample, units).sums, np.unique(sample.units)
        # Above 16,384 units they are joined at random, differently in each dataset, so signs are drawn for this one.
        signs = flips[:, codes] if len(codes) == len(sums) else draw_signs(self.resamples, len(sums), self._rng)
        return flipped_statistics(sums, signs, sums.T @ sums)


# ---------------------------------------------------------------------- datasets on the same clusters


def flipped_statistics(sums: Float64s, signs: Float64s, covariance: Float64s) -> tuple[float, Float64s]:
    """Compute (18) of the total of `sums` by unit, shape (J, K), and of totals with `signs` (flips, J), shape (flips,).

    The statistic is standardised by `covariance` (K, K); where that has no positive variance, all are 0.

    >>> sums, signs = np.array([[1.0], [1.0]]), np.array([[1.0, 1.0], [1.0, -1.0]])
    >>> statistic, flipped = flipped_statistics(sums, signs, np.array([[2.0]]))
    >>> round(statistic, 4), flipped.round(4)  # (2^2 - 2) / sqrt(8) and (0 - 2) / sqrt(8)
    (0.7071, array([ 0.7071, -0.7071]))
    """
    if not (covariance.diagonal() > 0).any():
        return 0.0, np.zeros(len(signs))
    statistic = float(smooth_test_statistic(sums.sum(axis=0), covariance))
    return statistic, smooth_test_statistic(signs @ sums, covariance)


class JointSigns:
    """A sign-flip test of calibration for many datasets on the same units.

    The statistic is the sum over datasets of (18), weighted by their shares; a unit has the same sign in all of them.
    """

    def __init__(self, units: Units, resamples: int, rng: np.random.Generator) -> None:
        self.units = units
        self._signs = draw_signs(resamples, self.units.count, rng)
        self._statistic, self._flipped = 0.0, np.zeros(resamples)

    def add(self, sums: Float64s, share: float, covariance: Float64s | None = None) -> None:
        """Add a dataset by its sums of functions times residuals by unit, shape (J, K), with the weight `share` of its statistic.

        `covariance`, shape (K, K), is that of their total under calibration where it is known (10), else sums' sums. One
        estimated from few ones is correlated with them: tests of many rare calibrated classes would reject too often.
        """
        covariance = sums.T @ sums if covariance is None else covariance
        statistic, flipped = flipped_statistics(sums, self._signs, covariance)
        self._statistic += share * statistic
        self._flipped += share * flipped

    def p_value(self) -> float:
        """Compute the p-value of calibration in all datasets: (1 + flips that reach the statistic) / (1 + flips)."""
        return exceedance(self._flipped, self._statistic)
