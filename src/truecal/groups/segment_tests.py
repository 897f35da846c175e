"""One joint null for all segments and regions of scores.

Tests. For segment s and contrast a over the four regions of scores (all; halves; quarters; slope) the sum S = sum_q a_q R_sq of
residuals y - c over its null standard deviation, taken to a normal score z (Wilson & Hilferty 1931: a skewed sum is close to a
shifted gamma variable). Contrasts of regions see errors that cancel in the mean.

Price of the search. u = z^2/2 + log|z| - log(N / w) is minus the logarithm of N / w times the tail of a normal variable, N the
number of tests of the same class (depth of the segment, kind of contrast): Bonferroni within a class, so that the 40 segments of
single columns are not corrected for the 7000 intersections of three. w is the share of the false finds that a class may take: 0.6
for segments as a whole, 0.3 for their regions of scores, 0.1 for slopes, each doubled with every column, because segments of more
columns have fewer rows and their errors stand out less. Weights fixed in advance leave the family-wise error as it is.

Family-wise p. The largest u is compared with the largest u of datasets in which outcomes are redrawn from the scores, one redraw
for all segments (Westfall & Young 1993, max-T). If the rows of a segment are calibrated, all tests within it are distributed as in
the redraws whatever happens elsewhere, so the step-down form, which leaves out what is rejected already, keeps the family-wise
error as well. Data and redraws are exchangeable if the scores are right, and go through the same sums in the same precision, so
p = (1 + redraws that reach u) / (1 + redraws) is exact with any number of redraws: 9 of 199 may reach a find at level 0.95. Once
more of them reach the largest u of the data, nothing can be found and no more are drawn; the answer is the one that all of them
would give. The seed of the redraws is a checksum of the outcomes: with a fixed one, all datasets of the same scores and columns
would be judged by the same limit, which is that of 5 % only on average over seeds (with 199 redraws: 5 % +- 1.5 %).

Rows that share a unit. Residuals of whole units get random signs (the wild bootstrap of Liu 1988); every sum is expressed in units
of the standard deviation that it has with them.
A segment in which nothing happened has next to no residuals and would make a deviation of its own far too small. So that of the
data is not taken below the model's: with v the variance of a row, and rho the correlation within units (the largest of that of
all rows and of each region of scores), sum v + rho (sum_g (sum_{i in g} sqrt v_i)^2 - sum v). The skewness of independent rows
grows by the root of the same factor.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from truecal import parallel
from truecal.groups.segments import Records, Tables
from truecal.resampling.draws import redraw_ones
from truecal.resampling.sign_flips import draw_signs
from truecal.special import expit, logit
from truecal.types import Float64s, Indices

# ----------------------------------------------------------------------------------------------------
# One joint null for all segments and regions of scores

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
SLOPE = 7
_KIND = np.array([0, 1, 1, 1, 1, 1, 1, 2])
_SHARE = np.array([0.6, 0.3, 0.1])  # of the false finds, for segments as a whole, regions of scores and slopes
_LEAST_VARIANCE = 0.25  # of a sum: scores of exactly 0 and 1 have none, and a miss among them must be seen all the same
_ROUNDING = 1e-4  # sums are made in single precision; a u this close to another one is a tie
_TOGETHER = 32  # redraws summed together
_STORED_MAXIMA = 64  # largest tests of a redraw that are kept for the step down


@dataclass(frozen=True, eq=False)
class Pairs:
    """Which (segment, contrast) pairs are tested: `index` into segments x contrasts, and the price log(N / w) of each."""

    index: Indices
    price: Float64s

    @classmethod
    def of(cls, tables: Tables) -> "Pairs":
        """Pairs with enough rows, each contrast once: one that has the rows of a coarser one is left out."""
        filled = tables.rows > 0
        inside = CONTRASTS != 0
        rows = tables.rows @ inside.T
        fresh = np.stack([(filled & ~region).any(axis=1) for region in inside], axis=1)
        fresh[:, 0] = True
        # A half with one filled quarter is that quarter.
        for half, quarters in ((1, (0, 1)), (2, (2, 3))):
            fresh[:, half] &= filled[:, quarters].all(axis=1)
        fresh[:, SLOPE] = filled.sum(axis=1) > 1
        enough = rows >= np.where(np.arange(len(CONTRASTS)) == 0, tables.smallest, tables.smallest / 2)
        index = np.flatnonzero(enough & fresh)
        depth, kind = tables.depth[index // len(CONTRASTS)], _KIND[index % len(CONTRASTS)]
        sizes = np.bincount(depth * len(_SHARE) + kind, minlength=1)
        shares = 2.0 ** np.arange(tables.max_depth + 1)
        return cls(index, np.log(sizes[depth * len(_SHARE) + kind] / (_SHARE[kind] * (shares / shares.sum())[depth])))

    @property
    def segment(self) -> Indices:
        return self.index // len(CONTRASTS)

    @property
    def contrast(self) -> Indices:
        return self.index % len(CONTRASTS)


def contrasted(sums: NDArray[Any], tests: Pairs) -> NDArray[Any]:
    """Contrasts of sums (segments, regions, d) for every test, shape (tests, d)."""
    every = CONTRASTS.astype(sums.dtype) @ sums
    return every.reshape(-1, sums.shape[2])[tests.index]


def normal_score(z: NDArray[Any], skewness: NDArray[Any]) -> NDArray[Any]:
    """Of a standardised sum with this skewness, as if it were a shifted gamma variable; rising in z.

    >>> normal_score(np.array([-1.0, 0.0, 3.0]), np.array([0.5, 0.5, 0.5])).round(2)
    array([-1.01,  0.08,  2.54])
    """
    g = np.where(np.abs(skewness) < 1e-4, 1e-4, skewness).astype(z.dtype)
    # c - 1 = (c^3 - 1) / (c^2 + c + 1) keeps the digits that the difference of two numbers close to 1 loses.
    shifted = np.maximum(g * z / 2, -1)
    c = np.cbrt(1 + shifted)
    return 6 * shifted / (g * (c * c + c + 1)) + g / 6


def surprise(z: NDArray[Any], price: NDArray[Any]) -> NDArray[Any]:
    """u of the module's opening; log|z| only where |z| > 1, so that u rises with |z|."""
    size = np.abs(z)
    return size * size / 2 + np.log(np.maximum(size, 1)) - price


@dataclass(frozen=True, eq=False)
class SegmentNull:
    """The joint null of all tests.

    Attributes
    ----------
    deviation, skewness : of every test's sum, shape (tests,). Skewness is that of independent rows.
    observed : u of every test on the data.
    largest, which : the largest u of every redraw, falling, and the tests they belong to, shape (redraws, remembered).
    """

    tests: Pairs
    deviation: Float64s
    skewness: Float64s
    observed: Float64s
    largest: Float64s
    which: Indices

    @property
    def maxima(self) -> Float64s:
        return self.largest[:, 0]

    def limit(self, level: float) -> float:
        """The u that calibrated data reach with a chance of at most 1 - level."""
        return _limit(self.maxima, level)

    def largest_without(self, without: NDArray[np.bool_]) -> Float64s:
        """The largest u of every redraw among the tests not left out; where all remembered ones are, the least of them."""
        included = ~without[self.which]
        first = np.where(included.any(axis=1), included.argmax(axis=1), self.largest.shape[1] - 1)
        return self.largest[np.arange(len(first)), first]

    def p_values(self, level: float) -> Float64s:
        """Family-wise p-values by stepping down: tests rejected at one step are left out of the maxima of the next."""
        u = self.observed
        p = np.full(len(u), np.nan)
        rejected = np.zeros(len(u), bool)
        smallest = 0.0
        while True:
            maxima = np.sort(self.largest_without(rejected))
            reached = (1 + len(maxima) - np.searchsorted(maxima, u - _ROUNDING)) / (1 + len(maxima))
            fresh = ~rejected & (u >= _limit(maxima, level))
            if not fresh.any():
                p[~rejected] = np.maximum(reached[~rejected], smallest)
                return p
            p[fresh] = np.maximum(reached[fresh], smallest)
            smallest = float(p[fresh].max())
            rejected |= fresh


def _allowed(draws: int, level: float) -> int:
    """How many of the redraws may reach a find.

    >>> _allowed(199, 0.95), _allowed(18, 0.95)
    (9, -1)
    """
    return int(np.floor((1 - level) * (1 + draws) + 1e-9)) - 1


def _limit(maxima: Float64s, level: float) -> float:
    """The least u whose p-value is at most 1 - level."""
    allowed = _allowed(len(maxima), level)
    return float(np.sort(maxima)[-1 - allowed]) + _ROUNDING if allowed >= 0 else np.inf


def joint_null(
    records: Records, tables: Tables, tests: Pairs, draws: int, level: float, progress: parallel.Progress
) -> SegmentNull:
    """Redraws (or sign changes of units) of all tests, until nothing can be found; memory does not grow with their number."""
    second, third = contrasted_moments(records, tables, tests, records.score)
    redrawn = _Counter(draws * (1 if records.unit is None else 2), progress)
    deviation = scale = np.sqrt(second)
    skewness = third / second**1.5
    if records.unit is not None:
        scale, modelled = _unit_deviations(records, tables, tests, draws, redrawn)
        skewness = skewness * np.sqrt(modelled / deviation)
        deviation = np.maximum(scale, modelled)
    skew, price = (a.astype(np.float32)[:, None] for a in (skewness, tests.price))

    def standardised(values: NDArray[np.float32], divisor: Float64s) -> NDArray[np.float32]:
        return np.asarray(contrasted(tables(values), tests) / divisor.astype(np.float32)[:, None])

    z = standardised(_residuals(records, records.ones[:, None]), deviation)
    observed = surprise(normal_score(z, skew), price)[:, 0].astype(np.float64)
    largest, which, reached = [], [], 0
    for values in _null_draws(records, draws):
        z = standardised(values, scale)
        u = surprise(normal_score(z, skew) if records.unit is None else z, price).T
        size = min(_STORED_MAXIMA, u.shape[1])
        top = np.argpartition(-u, size - 1, axis=1)[:, :size]
        value = np.take_along_axis(u, top, axis=1)
        order = np.argsort(-value, axis=1)
        largest.append(np.take_along_axis(value, order, axis=1).astype(np.float64))
        which.append(np.take_along_axis(top, order, axis=1))
        redrawn.add(values.shape[1])
        reached += int((largest[-1][:, 0] >= observed.max() - _ROUNDING).sum())
        if reached > _allowed(draws, level):
            redrawn.finish()
            break
    return SegmentNull(tests, deviation, skewness, observed, np.concatenate(largest), np.concatenate(which))


class _Counter:
    """Tells how many redraws are done."""

    def __init__(self, total: int, progress: parallel.Progress) -> None:
        self.done, self.total, self.progress = 0, total, progress

    def add(self, count: int) -> None:
        self.done += count
        self.progress(parallel.Step("redrawing outcomes", self.done, self.total))

    def finish(self) -> None:
        if self.done < self.total:
            self.add(self.total - self.done)


def _unit_deviations(
    records: Records, tables: Tables, tests: Pairs, draws: int, redrawn: _Counter
) -> tuple[Float64s, Float64s]:
    """Standard deviation of every test's sum: of its multiples, and by the model with one correlation within units."""
    assert records.unit is not None
    variance = records.moments(records.score)[:, 0]
    squares = np.zeros(len(tests.index))
    together = np.zeros(len(tests.index))
    roots = np.sqrt(variance).astype(np.float32)[:, None]
    for multiples, residuals in zip(_multipliers(records, draws), _null_draws(records, draws), strict=True):
        squares += (contrasted(tables(residuals), tests).astype(np.float64) ** 2).sum(axis=1)
        together += (contrasted(tables(multiples * roots), tests).astype(np.float64) ** 2).sum(axis=1)
        redrawn.add(residuals.shape[1])
    apart, _ = contrasted_moments(records, tables, tests, records.score)
    modelled = apart + _correlation(records, variance) * np.maximum(together / draws - apart, 0.0)
    return np.sqrt(np.maximum(squares / draws, 1e-12)), np.sqrt(modelled)


def _correlation(records: Records, variance: Float64s) -> float:
    """Correlation of residuals within units, from products of all pairs; the largest of that of all rows and of each region."""
    assert records.unit is not None
    residual = records.residual(records.score)
    estimates = [0.0]
    for rows in (slice(None), *(records.region == q for q in range(CONTRASTS.shape[1]))):
        unit, r, v = records.unit[rows], residual[rows], variance[rows]
        if not len(unit):
            continue
        pairs = float((np.bincount(unit, np.sqrt(v)) ** 2).sum() - v.sum())
        if pairs > 0:
            estimates.append(float((np.bincount(unit, r) ** 2).sum() - (r**2).sum()) / pairs)
    return min(max(estimates), 1.0)


def contrasted_moments(records: Records, tables: Tables, tests: Pairs, score: Float64s) -> tuple[Float64s, Float64s]:
    """Second and third cumulant of every test's sum if `score` is the truth."""
    moments = tables(records.moments(score))
    second, third = (
        ((CONTRASTS**power) @ moments[:, :, i, None]).reshape(-1)[tests.index] for i, power in ((0, 2), (1, 3))
    )
    return np.maximum(second, _LEAST_VARIANCE), third


def _residuals(records: Records, ones: NDArray[Any]) -> NDArray[np.float32]:
    """Of outcomes, those of the data or redrawn ones, shape (records, d)."""
    if records.count is None:
        values = ones.astype(np.float32)
        values -= records.score.astype(np.float32)[:, None]
    else:
        # A large count has more digits than single precision.
        values = (ones - (records.count * records.score)[:, None]).astype(np.float32)
    if records.weight is not None:
        values *= records.weight.astype(np.float32)[:, None]
    return values


def _null_draws(records: Records, draws: int) -> Iterator[NDArray[np.float32]]:
    """Residuals of redrawn outcomes, or multiples of those of units, some redraws at a time, shape (records, d)."""
    if records.unit is not None:
        residuals = _residuals(records, records.ones[:, None])
        yield from (residuals * multiples for multiples in _multipliers(records, draws))
        return
    rng, score, counts = _generator(records), records.score, records.counts
    expected, variances = counts * score, counts * score * (1 - score)
    for start in range(0, draws, _TOGETHER):
        # Double precision: scores closer to 0 or 1 than 6e-8 have their own chance too. Whole numbers, as in the data.
        surplus = redraw_ones(counts, score, variances, min(_TOGETHER, draws - start), rng)
        yield _residuals(records, np.clip(np.rint(surplus + expected), 0, counts).T)


def _multipliers(records: Records, draws: int) -> Iterator[NDArray[np.float32]]:
    """One sign per unit and redraw, for every record, shape (records, d)."""
    assert records.unit is not None
    rng = _generator(records)
    for start in range(0, draws, _TOGETHER):
        signs = draw_signs(min(_TOGETHER, draws - start), int(records.unit.max()) + 1, rng)
        yield signs.T.astype(np.float32)[records.unit]


def _generator(records: Records) -> np.random.Generator:
    """The same for the same outcomes, another one for others."""
    return np.random.default_rng(crc32(records.ones.astype(np.int64).tobytes()))


# ----------------------------------------------------------------------------------------------------
# Mean difference between score and outcome in the rows of a test, with limits that hold whichever test is looked at


def critical_value(limit: float, price: float) -> float:
    """The |z| at which u = z^2/2 + log max(|z|, 1) - price reaches the limit.

    >>> round(critical_value(3.0, np.log(1000)), 3)
    4.121
    """
    goal, z = limit + price, 4.0
    for _ in range(50):
        z = float(np.sqrt(max(2 * (goal - np.log(max(z, 1.0))), 0.25)))
    return z


def difference(
    records: Records, inside: NDArray[np.bool_], contrast: int, critical: float, deviation: float
) -> tuple[float, float, float]:
    """Mean score minus mean outcome, and its limits, over the records inside the segment and the regions of the contrast.

    Independent rows: all shifts d of the log odds with 2 (l(best) - l(d)) <= critical^2 (profile likelihood), as differences of
    means. Where no shift does it (scores of exactly 0 or 1, importance weights, rows in units): the normal interval, its deviation
    not below that at the observed frequency. For the slope: the contrast of the four regions over the rows they hold, positive
    where confidence is too extreme.
    """
    factor = CONTRASTS[contrast][records.region]
    rows = np.flatnonzero(inside & (factor != 0))
    factor, mass, score = factor[rows], records.mass[rows], records.score[rows]
    residual = records.residual(records.score)[rows]
    total = float((np.abs(factor) * mass).sum())
    value = -float((factor * residual).sum()) / total
    certain = bool(((score == 0) | (score == 1)).any())
    if contrast == SLOPE or certain or records.weight is not None or records.unit is not None:
        half = critical * max(deviation, _observed_deviation(records, rows, factor)) / total
        return value, max(value - half, -1.0), min(value + half, 1.0)
    low, high = _likelihood_limits(score, mass, float(records.ones[rows].sum()), critical)
    return value, min(-high, value), max(-low, value)


def _observed_deviation(records: Records, rows: NDArray[np.intp], factor: Float64s) -> float:
    """Of the contrast, if the outcomes of each region scatter about their own frequency."""
    weight = factor if records.weight is None else factor * records.weight[rows]
    region, mass = records.region[rows], records.mass[rows]
    ones = records.ones[rows] if records.weight is None else records.ones[rows] * records.weight[rows]
    filled = np.maximum(np.bincount(region, mass, len(CONTRASTS[0])), 1e-300)
    rate = (np.bincount(region, ones, len(filled)) / filled)[region]
    return float(np.sqrt((weight**2 * records.counts[rows] * rate * (1 - rate)).sum()))


def _likelihood_limits(score: Float64s, mass: Float64s, ones: float, critical: float) -> tuple[float, float]:
    """Limits of mean outcome minus mean score."""
    count = float(mass.sum())

    def moved(d: float) -> float:
        odds = score * np.exp(d)
        return float((mass * odds / (1 - score + odds)).sum())

    def fit(d: float) -> float:
        return d * ones - float((mass * np.log1p(score * np.expm1(d))).sum())

    base = float((mass * score).sum())
    best = _last(lambda d: moved(d) < ones, -30.0, 30.0)
    top = fit(best)
    low, high = (_last(lambda d: 2 * (top - fit(d)) <= critical**2, best, best + side) for side in (-30.0, 30.0))
    return (moved(low) - base) / count, (moved(high) - base) / count


def _last(holds: Callable[[float], bool], inside: float, outside: float) -> float:
    """Where a condition that holds at one end stops holding on the way to the other, by bisection."""
    for _ in range(60):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return inside


# ----------------------------------------------------------------------------------------------------
# From all significant tests to one row per cause

MAX_CAUSES = 20  # causes listed
_PIECES = (4, 64)  # of the scores of a segment, corrected one by one ...
_ROWS_OF_PIECE = 250  # ... each of about so many rows
_STEPS = 30
_LARGEST = 30.0  # log odds that a shift starts from


@dataclass(frozen=True, eq=False)
class Cause:
    """One segment to be listed: its test, how many other segments it explains, and the scores once it is corrected."""

    test: int
    segment: int
    explains: int
    corrected_score: Float64s


def find_causes(
    records: Records, tables: Tables, null: SegmentNull, significant: Float64s, limit: float
) -> list[Cause]:
    """Causes, strongest first. `significant` holds the u of every test on the scores as they are, -inf where not significant;
    at the `limit` it is so at the first step."""
    tests, score = null.tests, records.score
    causes: list[Cause] = []
    open_tests = np.isfinite(significant)
    threshold = min(limit, float(significant[open_tests].min())) if open_tests.any() else np.inf
    now = significant
    while open_tests.any() and len(causes) < MAX_CAUSES:
        test = int(np.argmax(np.where(open_tests, now, -np.inf)))
        segment = int(tests.segment[test])
        before = np.unique(tests.segment[open_tests])
        score = correct_scores(records, np.flatnonzero(tables.mask(segment)), score)
        now = _surprises(records, tables, null, score)
        # Pieces are corrected on average only: what is left of a segment is no new cause.
        open_tests &= (now >= threshold) & (tests.segment != segment)
        explains = len(before) - 1 - len(np.intersect1d(before, np.unique(tests.segment[open_tests])))
        causes.append(Cause(test, segment, explains, score))
    return causes


def _surprises(records: Records, tables: Tables, null: SegmentNull, score: Float64s) -> Float64s:
    """u of every test on other scores; its deviation grows or shrinks as that of independent rows does."""
    sums = contrasted(tables(records.residual(score)[:, None]), null.tests)[:, 0]
    before, _ = contrasted_moments(records, tables, null.tests, records.score)
    second, third = contrasted_moments(records, tables, null.tests, score)
    z = sums / (null.deviation * np.sqrt(second / before))
    return np.asarray(surprise(normal_score(z, third / second**1.5), null.tests.price))


def correct_scores(records: Records, rows: Indices, score: Float64s) -> Float64s:
    """The scores with those of `rows` shifted in log odds so that they agree with the outcomes, neighbouring scores together.

    Equal scores are one piece: parted by the order of rows, those of a sorted column would be corrected value by value.
    """
    _, tied = np.unique(records.score[rows], return_inverse=True)
    size = np.bincount(tied, records.counts[rows])
    reached = np.cumsum(size)
    pieces = int(np.clip(reached[-1] // _ROWS_OF_PIECE, *_PIECES))
    piece = np.minimum((reached - size / 2) * pieces / reached[-1], pieces - 1).astype(np.intp)[tied]
    odds, mass = logit(np.clip(score[rows], 1e-12, 1 - 1e-12)), records.mass[rows]
    weight = 1.0 if records.weight is None else records.weight[rows]
    ones = np.bincount(piece, weight * records.ones[rows], pieces)
    shift = np.zeros(pieces)
    for _ in range(_STEPS):
        rate = expit(np.clip(odds + shift[piece], -_LARGEST, _LARGEST))
        surplus = ones - np.bincount(piece, mass * rate, pieces)
        # One more row of variance 1 keeps the shift of a piece without ones (or zeros) finite.
        shift += np.clip(surplus / (np.bincount(piece, mass * rate * (1 - rate), pieces) + 1), -1, 1)
    result = score.copy()
    result[rows] = expit(np.clip(odds + shift[piece], -_LARGEST, _LARGEST))
    return result
