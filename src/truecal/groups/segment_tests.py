"""Tests of all segments and regions of scores by one joint null distribution.

Tests. For segment s and contrast a over the four quarters q of the scores (all; halves; quarters; slope) the statistic is
S = sum_q a_q R_sq, with R_sq the sum of residuals y - c, over its null standard deviation. It is taken to a normal score z
(Wilson and Hilferty 1931: a skewed sum is close to a shifted gamma variable).

Multiplicity. The evidence u = z^2/2 + log|z| - log(N / w) is minus the logarithm of N / w times the normal tail beyond z: a
Bonferroni correction within a class of N tests (depth of the segment, kind of contrast), so that the 40 segments of single
columns are not corrected for the 7,000 intersections of three. w is the share of the family-wise error of a class: 0.6 for
whole segments, 0.3 for regions of scores, 0.1 for slopes, doubled with every column, because deeper segments have fewer rows.
Weights fixed in advance leave the family-wise error as it is.

Family-wise p-values. The largest u is compared with the largest u of redraws of all outcomes from the scores (max-T, Westfall
and Young 1993). If the rows of a segment are calibrated, all tests within it are distributed as in the redraws, so the
step-down form, which leaves out rejected tests, keeps the family-wise error too. Data and redraws go through the same sums in
the same precision and are exchangeable under calibration: p = (1 + redraws that reach u) / (1 + redraws) is exact with any
number of redraws. Once too many redraws reach the largest u of the data, nothing can be rejected and no more are drawn. The
seed is a checksum of the outcomes: with a fixed one, all datasets of the same scores and columns would have the same critical
value, which is that of 5 % only on average over seeds (with 199 redraws: 5 % +- 1.5 %).

Clusters. Signs of the residuals of whole clusters are flipped (Liu 1988), and sums are divided by the standard deviation that
they have under the flips. Where nothing happened residuals are nearly 0, so the deviation of the data is at least that of a
model: with v the variance of a row and rho the correlation within clusters (the largest of that of all rows and of each
quarter), sum v + rho (sum_g (sum_{i in g} sqrt v_i)^2 - sum v). Skewness grows by the root of the same factor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from truecal import parallel
from truecal.groups.segments import REGIONS, Records, SegmentSums
from truecal.resampling.draws import redraw_ones
from truecal.resampling.units import draw_signs
from truecal.special import expit, logit, positive
from truecal.types import Float64s, Indices

# by choice: factors of the four quarters of the scores: all, halves, quarters, and the slope, which rises evenly from -1 to 1
CONTRASTS = np.array(
    [
        [1, 1, 1, 1],
        [1, 1, 0, 0],
        [0, 0, 1, 1],
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
        [-1, -1 / 3, 1 / 3, 1],
    ]
)
SLOPE = 7  # derived: position of the contrast of the slope among those above
_KIND = np.array([0, 1, 1, 1, 1, 1, 1, 2])  # derived: of each contrast: whole segment, region of scores, slope
# Share of the family-wise error for each kind; tuned on 40 datasets with planted pairs. Others that find 1 to 5 points more
# pairs (150 further datasets) find fewer single values, regions or slopes.
_SHARE = np.array([0.6, 0.3, 0.1])
# derived: of one fair outcome; scores of exactly 0 and 1 have none, and a contrary outcome must still count
_MIN_VARIANCE = 0.25
_ROUNDING = 1e-4  # derived: sums are in single precision, and u this close to each other are ties
_REDRAWS_AT_ONCE = 32  # by choice: redraws held together in memory
_STORED_MAXIMA = 64  # by choice: largest tests of a redraw that are stored for the step down


@dataclass(frozen=True, eq=False)
class SegmentTests:
    """Pairs of a segment and a contrast that are tested, in the order of segments.

    `index` (tests,) is 8 segment + contrast, contrasts by their row in CONTRASTS; `log_multiplicity` (tests,) is log(N / w), N
    the number of tests in the class of a test and w its share of the family-wise error.
    """

    sums: SegmentSums
    index: Indices
    log_multiplicity: Float64s

    @classmethod
    def of(cls, sums: SegmentSums) -> SegmentTests:
        """Choose the pairs of segment and contrast with enough rows: `sums.smallest` for a whole segment, half of it for a part.

        A contrast is skipped if it has the same rows as a wider one; the slope needs rows in at least two quarters.
        """
        filled = sums.rows > 0
        inside = CONTRASTS != 0
        distinct = np.stack([(filled & ~region).any(axis=1) for region in inside], axis=1)
        distinct[:, 0] = True
        # A half with one filled quarter is that quarter.
        for half, quarters in ((1, (0, 1)), (2, (2, 3))):
            distinct[:, half] &= filled[:, quarters].all(axis=1)
        distinct[:, SLOPE] = filled.sum(axis=1) > 1
        enough = sums.rows @ inside.T >= np.where(_KIND == 0, sums.smallest, sums.smallest / 2)
        index = np.flatnonzero(enough & distinct)
        depth, kind = sums.depth[index // len(CONTRASTS)], _KIND[index % len(CONTRASTS)]
        test_class = depth * len(_SHARE) + kind
        sizes = np.bincount(test_class, minlength=1)
        depth_shares = 2.0 ** np.arange(sums.max_depth + 1)
        shares = _SHARE[kind] * (depth_shares / depth_shares.sum())[depth]
        return cls(sums, index, np.log(sizes[test_class] / shares))

    @property
    def records(self) -> Records:
        """Records that are tested: those of `sums`."""
        return self.sums.records

    @property
    def segment(self) -> Indices:
        """Index of the segment of every test, shape (tests,)."""
        return self.index // len(CONTRASTS)

    @property
    def contrast(self) -> Indices:
        """Index of the contrast of every test, shape (tests,)."""
        return self.index % len(CONTRASTS)

    def contrast_sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum values of records (records, d) over the segment of every test with the factors of its contrast: (tests, d)."""
        contrasts = CONTRASTS.astype(values.dtype) @ self.sums(values)
        return contrasts.reshape(-1, values.shape[1])[self.index]

    def null_moments(self, score: Float64s) -> tuple[Float64s, Float64s]:
        """Compute the second and third cumulant (tests,) of every test's sum if `score` (records,) is true and rows independent.

        The second one is at least 0.25.
        """
        moments = self.sums(self.records.moments(score))
        second, third = (
            ((CONTRASTS**power) @ moments[:, :, i, None]).reshape(-1)[self.index] for i, power in ((0, 2), (1, 3))
        )
        return np.maximum(second, _MIN_VARIANCE), third


def normal_score(z: NDArray[Any], skewness: NDArray[Any]) -> NDArray[Any]:
    """Transform a standardised sum to a normal score, elementwise, as if it were a shifted gamma variable; rising in z.

    >>> normal_score(np.array([-1.0, 0.0, 3.0]), np.array([0.5, 0.5, 0.5])).round(2)
    array([-1.01,  0.08,  2.54])
    """
    g = np.where(np.abs(skewness) < 1e-4, 1e-4, skewness).astype(z.dtype)
    # c - 1 = (c^3 - 1) / (c^2 + c + 1) keeps the digits that the difference of two numbers close to 1 loses.
    shifted = np.maximum(g * z / 2, -1)
    c = np.cbrt(1 + shifted)
    return 6 * shifted / (g * (c * c + c + 1)) + g / 6


def log_evidence(z: NDArray[Any], log_multiplicity: NDArray[Any]) -> NDArray[Any]:
    """Compute u = z^2/2 + max(log|z|, 0) - log_multiplicity, elementwise, which increases with |z|.

    >>> log_evidence(np.array([-2.0, 0.5]), np.array([1.0, 1.0])).round(4)
    array([ 1.6931, -0.875 ])
    """
    size = np.abs(z)
    return size * size / 2 + np.log(np.maximum(size, 1)) - log_multiplicity


def critical_value(limit: float, log_multiplicity: float) -> float:
    """Solve log_evidence(z, log_multiplicity) = limit for |z|: with w = z^2, w + log w = 2 (limit + log_multiplicity).

    >>> round(critical_value(3.0, np.log(1000)), 3)
    4.121
    """
    from scipy.special import wrightomega

    goal = 2 * (limit + log_multiplicity)
    return float(np.sqrt(wrightomega(goal) if goal > 1 else max(goal, 0.25)))


# ----------------------------------------------------------------------------------------------------
# The joint null distribution


@dataclass(frozen=True, eq=False)
class SegmentNull:
    """The joint null distribution of all tests.

    Attributes
    ----------
    tests : SegmentTests
        The tests.
    deviation : ndarray of shape (tests,)
        Null standard deviation of every test's sum.
    observed : ndarray of shape (tests,)
        u of every test on the data.
    largest : ndarray of shape (redraws, stored)
        The largest u of every redraw, falling.
    which : ndarray of shape (redraws, stored)
        The tests they belong to.
    """

    tests: SegmentTests
    deviation: Float64s
    observed: Float64s
    largest: Float64s
    which: Indices

    def limit(self, level: float) -> float:
        """Return the critical u, which calibrated data reach with probability at most 1 - level; infinite with too few redraws."""
        return _quantile(self.largest[:, 0], level)

    def p_values(self, level: float) -> Float64s:
        """Compute family-wise p-values (tests,) by stepping down: tests rejected at `level` are left out of the next maxima.

        In a step p is (1 + redraws whose largest u reaches that of the test) / (1 + redraws), and those with u at or above the
        quantile of the largest at `level` are rejected. Values do not decrease from step to step.
        """
        u = self.observed
        p = np.full(len(u), np.nan)
        rejected = np.zeros(len(u), bool)
        smallest = 0.0
        while True:
            maxima = np.sort(self._largest_without(rejected))
            p_step = (1 + len(maxima) - np.searchsorted(maxima, u - _ROUNDING)) / (1 + len(maxima))
            newly = ~rejected & (u >= _quantile(maxima, level))
            if not newly.any():
                p[~rejected] = np.maximum(p_step[~rejected], smallest)
                return p
            p[newly] = np.maximum(p_step[newly], smallest)
            smallest = float(p[newly].max())
            rejected |= newly

    def _largest_without(self, rejected: NDArray[np.bool_]) -> Float64s:
        """Return the largest u of every redraw among tests not rejected (a mask); where all stored ones are, the smallest stored.

        That is at least the largest of the tests that are left, so p-values can only be too large.
        """
        included = ~rejected[self.which]
        first = np.where(included.any(axis=1), included.argmax(axis=1), self.largest.shape[1] - 1)
        return np.take_along_axis(self.largest, first[:, None], axis=1)[:, 0]


def _max_exceedances(draws: int, level: float) -> int:
    """Return the largest number of redraws that may reach a rejected test at `level`; -1 if no test can be rejected.

    >>> _max_exceedances(199, 0.95), _max_exceedances(18, 0.95)
    (9, -1)
    """
    return int(np.floor((1 - level) * (1 + draws) + 1e-9)) - 1


def _quantile(maxima: Float64s, level: float) -> float:
    """Return the smallest u with (1 + number of maxima >= u) / (1 + redraws) <= 1 - level; infinite if there is none.

    `maxima` is (redraws,), in any order; u is above the next smaller one by the rounding error.

    >>> round(_quantile(np.arange(1.0, 20.0), 0.9), 4), _quantile(np.arange(3.0), 0.95)  # (1 + 1) / 20 from just above 18 on
    (18.0001, inf)
    """
    exceedances = _max_exceedances(len(maxima), level)
    return float(np.sort(maxima)[-1 - exceedances]) + _ROUNDING if exceedances >= 0 else np.inf


def joint_null(tests: SegmentTests, draws: int, level: float, progress: parallel.Progress) -> SegmentNull:
    """Compute the log evidence u of all tests, and its largest values in every redraw (or sign flip of clusters).

    u is the log evidence of the normal score of z, the sum of residuals of a test over its deviation under calibration. Of each
    redraw the 64 largest values are stored. Redraws, at most `draws`, stop early once too many exceed the data for any
    rejection at `level` (`_max_exceedances`); `progress` is called after every block of them.
    """
    records = tests.records
    second, third = tests.null_moments(records.score)
    deviation = scale = np.sqrt(second)
    skewness = third / second**1.5
    if records.unit is not None:
        scale, modelled = _cluster_deviations(tests, draws)
        skewness = skewness * np.sqrt(modelled / deviation)
        deviation = np.maximum(scale, modelled)
    skew, log_multiplicity = (a.astype(np.float32)[:, None] for a in (skewness, tests.log_multiplicity))

    def standardise(residuals: NDArray[np.float32], divisor: Float64s) -> NDArray[np.float32]:
        """Divide the sum of residuals (records, d) of every test by its deviation (tests,): shape (tests, d)."""
        return np.asarray(tests.contrast_sums(residuals) / divisor.astype(np.float32)[:, None])

    z = standardise(_residuals(records, records.ones[:, None]), deviation)
    observed = log_evidence(normal_score(z, skew), log_multiplicity)[:, 0].astype(np.float64)
    largest, which, exceedances, done = [], [], 0, 0
    for residuals in _null_draws(records, draws):
        z = standardise(residuals, scale)
        u = log_evidence(normal_score(z, skew) if records.unit is None else z, log_multiplicity).T
        size = min(_STORED_MAXIMA, u.shape[1])
        top = np.argpartition(-u, size - 1, axis=1)[:, :size]
        top = np.take_along_axis(top, np.argsort(-np.take_along_axis(u, top, axis=1), axis=1), axis=1)
        largest.append(np.take_along_axis(u, top, axis=1).astype(np.float64))
        which.append(top)
        exceedances += int((largest[-1][:, 0] >= observed.max() - _ROUNDING).sum())
        is_settled = exceedances > _max_exceedances(draws, level)
        done = draws if is_settled else done + residuals.shape[1]
        progress(parallel.Step("redrawing outcomes", done, draws))
        if is_settled:
            break
    return SegmentNull(tests, deviation, observed, np.concatenate(largest), np.concatenate(which))


def _cluster_deviations(tests: SegmentTests, draws: int) -> tuple[Float64s, Float64s]:
    """Compute the standard deviation (tests,) of every test's sum: under sign flips of clusters, and by a model of them.

    The model is sqrt(sum v + rho (sum_g (sum_{i in g} sqrt v_i)^2 - sum v)), v the variance of a row and rho the correlation
    within clusters; its sums of sqrt(v) are estimated from the same flips.
    """
    records = tests.records
    variance = records.moments(records.score)[:, 0]
    roots = np.sqrt(variance).astype(np.float32)[:, None]
    residuals = _residuals(records, records.ones[:, None])
    squares, correlated = np.zeros(len(tests.index)), np.zeros(len(tests.index))
    for signs in _cluster_signs(records, draws):
        squares += (tests.contrast_sums(residuals * signs).astype(np.float64) ** 2).sum(axis=1)
        correlated += (tests.contrast_sums(roots * signs).astype(np.float64) ** 2).sum(axis=1)
    independent, _ = tests.null_moments(records.score)
    excess = np.maximum(correlated / draws - independent, 0.0)
    modelled = independent + _cluster_correlation(records, variance) * excess
    return np.sqrt(np.maximum(squares / draws, 1e-12)), np.sqrt(modelled)


def _cluster_correlation(records: Records, variance: Float64s) -> float:
    """Estimate the correlation of residuals within clusters, as the largest of all rows and of each quarter of the scores.

    Moment estimate: sum of r_i r_j over pairs within clusters / sum of sqrt(v_i v_j), between 0 and 1 (0 without pairs), v the
    `variance` (records,).
    """
    assert records.unit is not None
    residual = records.residual(records.score)
    largest = 0.0
    for rows in (np.arange(len(records)), *(np.flatnonzero(records.region == q) for q in range(REGIONS))):
        unit, r, v = records.unit[rows], residual[rows], variance[rows]
        pairs = float((np.bincount(unit, np.sqrt(v), minlength=1) ** 2).sum() - v.sum())
        if pairs > 0:
            largest = max(largest, float((np.bincount(unit, r) ** 2).sum() - (r**2).sum()) / pairs)
    return min(largest, 1.0)


def _residuals(records: Records, ones: NDArray[Any]) -> NDArray[np.float32]:
    """Compute weighted residuals w (ones - n c) of observed or redrawn `ones` (records, d), in single precision: (records, d).

    w, n and c are weight, count and score of the records.
    """
    # subtracted in double precision: a large count has more digits than single precision
    return (records.weight[:, None] * (ones - (records.count * records.score)[:, None])).astype(np.float32)


def _null_draws(records: Records, draws: int) -> Iterator[NDArray[np.float32]]:
    """Yield residuals w (ones - n c) of redrawn outcomes, or those of the data with flipped signs of clusters, (records, d) each.

    The blocks have `draws` columns together; w, n and c are weight, count and score of the records.
    """
    if records.unit is not None:
        residuals = _residuals(records, records.ones[:, None])
        yield from (residuals * signs for signs in _cluster_signs(records, draws))
        return
    rng, score, counts = _generator(records), records.score, records.count
    expected, variances = counts * score, counts * score * (1 - score)
    for start in range(0, draws, _REDRAWS_AT_ONCE):
        # Double precision, for scores closer to 0 or 1 than 6e-8; whole numbers, as in the data.
        surplus = redraw_ones(counts, score, variances, min(_REDRAWS_AT_ONCE, draws - start), rng)
        yield _residuals(records, np.clip(np.rint(surplus + expected), 0, counts).T)


def _cluster_signs(records: Records, draws: int) -> Iterator[NDArray[np.float32]]:
    """Yield signs, -1 or 1, one per cluster and redraw, for every record, in blocks (records, d) of `draws` columns together."""
    assert records.unit is not None
    rng = _generator(records)
    for start in range(0, draws, _REDRAWS_AT_ONCE):
        signs = draw_signs(min(_REDRAWS_AT_ONCE, draws - start), int(records.unit.max()) + 1, rng)
        yield signs.T.astype(np.float32)[records.unit]


def _generator(records: Records) -> np.random.Generator:
    """Return a generator seeded by the CRC-32 of the outcomes, as 64-bit whole numbers (reason: the module's docstring)."""
    return np.random.default_rng(crc32(records.ones.astype(np.int64).tobytes()))


# ----------------------------------------------------------------------------------------------------
# Mean score minus mean outcome, with limits that hold for all tests at once

_MAX_LOG_ODDS = 30.0  # derived: a probability of 1e-13, beyond which log odds are rounding


def difference(
    records: Records, inside: NDArray[np.bool_], contrast: int, critical: float, deviation: float
) -> tuple[float, float, float]:
    """Compute mean score minus mean outcome of a segment in the quarters of a contrast, and its lower and upper limit.

    `inside`, (records,), marks the segment, `contrast` is an index into CONTRASTS, `deviation` that of the sum of residuals under
    calibration. Independent rows: all shifts d of the log odds with 2 (l(best) - l(d)) <= critical^2 (profile likelihood), as
    differences of means. Where no shift explains the outcomes (scores of exactly 0 or 1, importance weights, clusters): the
    normal interval, its deviation not below that at the observed frequency. For the slope: the contrast over the rows of the
    four quarters, positive where scores are too extreme.
    """
    factor = CONTRASTS[contrast][records.region]
    rows = np.flatnonzero(inside & (factor != 0))
    factor, mass, score = factor[rows], records.mass[rows], records.score[rows]
    residual = records.residual(records.score)[rows]
    total = float((np.abs(factor) * mass).sum())
    value = -float((factor * residual).sum()) / total
    certain = bool(((score == 0) | (score == 1)).any())
    if contrast == SLOPE or certain or records.weighted or records.unit is not None:
        half = critical * max(deviation, _observed_deviation(records, rows, factor)) / total
        return value, max(value - half, -1.0), min(value + half, 1.0)
    low, high = _likelihood_limits(score, mass, float(records.ones[rows].sum()), critical)
    return value, min(-high, value), max(-low, value)


def _observed_deviation(records: Records, rows: Indices, factor: Float64s) -> float:
    """Compute the standard deviation of sum factor w (ones - n p) over `rows`, p the observed frequency in the row's quarter.

    `rows` are indices of records, `factor`, shape (rows,), the contrast of each.
    """
    region, weight = records.region[rows], records.weight[rows]
    mass = np.bincount(region, records.mass[rows], REGIONS)
    rate = (np.bincount(region, weight * records.ones[rows], REGIONS) / positive(mass))[region]
    return float(np.sqrt(((factor * weight) ** 2 * records.count[rows] * rate * (1 - rate)).sum()))


def _likelihood_limits(score: Float64s, mass: Float64s, ones: float, critical: float) -> tuple[float, float]:
    """Compute profile-likelihood limits of mean outcome minus mean score, for scores in (0, 1) of `mass` rows each.

    `ones` is the number of positive outcomes. A limit that the likelihood does not reach lies 30 log odds from the maximum.

    >>> low, high = _likelihood_limits(np.array([0.5]), np.array([100.0]), 60.0, 1.96)
    >>> round(low, 4), round(high, 4)  # around 0.6 - 0.5
    (0.0023, 0.1926)
    """

    def expected_ones(shift: float) -> float:
        """Return the expected number of positive outcomes of the rows if all log odds are shifted by this much."""
        odds = score * np.exp(shift)
        return float((mass * odds / (1 - score + odds)).sum())

    def deviance(shift: float) -> float:
        """Return -2 times the log likelihood of the observed number of ones at shifted log odds, less that at shift 0."""
        return 2 * float((mass * np.log1p(score * np.expm1(shift))).sum() - shift * ones)

    best = _root(lambda shift: expected_ones(shift) - ones, -_MAX_LOG_ODDS, _MAX_LOG_ODDS)
    limit = deviance(best) + critical**2
    low, high = (
        _root(lambda shift: deviance(shift) - limit, best, best + reach) for reach in (-_MAX_LOG_ODDS, _MAX_LOG_ODDS)
    )
    base, count = float((mass * score).sum()), float(mass.sum())
    return (expected_ones(low) - base) / count, (expected_ones(high) - base) / count


def _root(function: Callable[[float], float], start: float, end: float) -> float:
    """Find the root of a monotone function between two points; without one, the point at which it is nearer to 0.

    >>> round(_root(lambda x: x**2 - 2, 0.0, 2.0), 6), _root(lambda x: x + 1, 0.0, 2.0)
    (1.414214, 0.0)
    """
    from scipy.optimize import brentq

    first, last = function(start), function(end)
    if first * last > 0:
        return end if abs(last) < abs(first) else start
    return float(brentq(function, start, end, xtol=1e-15))


# ----------------------------------------------------------------------------------------------------
# From all significant tests to the segments that explain them

MAX_SEGMENTS = 20  # by choice: segments listed
_PIECES = (4, 64)  # by choice: fewest and most pieces of the scores of a segment that are corrected one by one ...
_ROWS_PER_PIECE = 250  # derived: ... each of about so many rows, whose rate has a standard error of 0.03
_NEWTON_STEPS = 30  # by choice: steps of Newton's method at most


def select_explaining_segments(null: SegmentNull, significant: Float64s, limit: float) -> list[tuple[int, int]]:
    """Choose segments, strongest first, until shifting the log odds of their rows (`correct_scores`) leaves no other significant.

    `significant` (tests,) holds u, -inf where it is not significant; `limit` is the critical value of the first step. Returned
    are the strongest test of each segment, and how many other segments its correction makes insignificant; at most 20 segments.
    """
    tests, score = null.tests, null.tests.records.score
    explanations: list[tuple[int, int]] = []
    is_open = np.isfinite(significant)
    threshold = min(limit, float(significant[is_open].min())) if is_open.any() else np.inf
    u = significant
    while is_open.any() and len(explanations) < MAX_SEGMENTS:
        test = int(np.argmax(np.where(is_open, u, -np.inf)))
        segment = int(tests.segment[test])
        before = np.unique(tests.segment[is_open])
        score = correct_scores(tests.records, np.flatnonzero(tests.sums.mask(segment)), score)
        u = _evidence_after(null, score)
        # pieces are corrected on average only, so a segment may stay significant: it is not listed twice
        is_open &= (u >= threshold) & (tests.segment != segment)
        after = np.intersect1d(before, np.unique(tests.segment[is_open]))
        explanations.append((test, len(before) - 1 - len(after)))
    return explanations


def _evidence_after(null: SegmentNull, score: Float64s) -> Float64s:
    """Compute the `log_evidence` u of every test, (tests,), from residuals of the corrected scores `score` (records,).

    The deviation of a sum is that of `null` times the root of its binomial variance at `score` over that at the original scores.
    """
    tests, records = null.tests, null.tests.records
    sums = tests.contrast_sums(records.residual(score)[:, None])[:, 0]
    before, _ = tests.null_moments(records.score)
    second, third = tests.null_moments(score)
    z = sums / (null.deviation * np.sqrt(second / before))
    return np.asarray(log_evidence(normal_score(z, third / second**1.5), tests.log_multiplicity))


def correct_scores(records: Records, rows: Indices, score: Float64s) -> Float64s:
    """Return scores (records,) with the log odds of `rows` (indices) shifted to the outcomes, piece by piece of the score.

    Pieces are neighbouring scores of about 250 rows, 4 to 64 of them; in each, expected and observed ones agree up to one added
    row of variance 1. Equal scores are in one piece: divided by the order of rows, those of a sorted column would be corrected
    value by value. Other rows stay as they are.
    """
    _, tied = np.unique(records.score[rows], return_inverse=True)
    size = np.bincount(tied, records.count[rows])
    cumulative = np.cumsum(size)
    pieces = int(np.clip(cumulative[-1] // _ROWS_PER_PIECE, *_PIECES))
    piece = np.minimum((cumulative - size / 2) * pieces / cumulative[-1], pieces - 1).astype(np.intp)[tied]
    odds, mass = logit(np.clip(score[rows], 1e-12, 1 - 1e-12)), records.mass[rows]
    ones = np.bincount(piece, records.weight[rows] * records.ones[rows], pieces)
    shift = np.zeros(pieces)

    def shifted() -> Float64s:
        """Return sigmoid(log odds of the score + shift of its piece) of the rows, (rows,)."""
        return expit(np.clip(odds + shift[piece], -_MAX_LOG_ODDS, _MAX_LOG_ODDS))

    for _ in range(_NEWTON_STEPS):
        rate = shifted()
        surplus = ones - np.bincount(piece, mass * rate, pieces)
        # One more row of variance 1 keeps the shift of a piece without ones (or zeros) finite.
        shift += np.clip(surplus / (np.bincount(piece, mass * rate * (1 - rate), pieces) + 1), -1, 1)
    corrected = score.copy()
    corrected[rows] = shifted()
    return corrected
