"""The calibration error of a model with few outputs: debiased, with a lower confidence limit.

For outputs s_j seen n_j times with k_j ones, and shares w_j = n_j / n, the debiased squared error (Kumar et al. 2019,
5.2) is

    U = sum_j w_j [ (s_j - k_j / n_j)^2 - y_j (1 - y_j) / (n_j - 1) ],      y_j = k_j / n_j

An output seen once cannot be debiased; its term stays as it is, which can only raise U.

The limit comes from inverting a test. If the true squared error were t, then U has mean t, and its variance and skewness
follow from where the error sits: spread evenly over the outputs, or where it was seen. Whichever makes the observed U
more likely counts.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from truecal.inference.exact_tails import NullTerms, terms
from truecal.lenses.lens import Sample
from truecal.profile.profile import Profile
from truecal.special import clopper_pearson
from truecal.types import Float64s, Indices

# ----------------------------------------------------------------------------------------------------
# The calibration error of a model with few outputs: debiased, with a lower confidence limit


@dataclass(frozen=True, eq=False)
class BinnedError:
    """Distinct outputs of a model with the rows and ones seen at each."""

    outputs: Float64s
    counts: Float64s
    ones: Float64s

    @classmethod
    def of(cls, profile: Profile) -> "BinnedError":
        """From a profile of one dataset whose weights, if any, are counts."""
        scores = profile.scores[0].astype(np.float64)
        starts = np.flatnonzero(np.concatenate([[True], scores[1:] != scores[:-1]]))
        ends = np.append(starts[1:], len(scores))
        counts, ones = (profile.prefix(name)[0].astype(np.float64) for name in ("w", "y"))
        return cls(scores[starts], counts[ends] - counts[starts], ones[ends] - ones[starts])

    @property
    def n(self) -> float:
        return float(self.counts.sum())

    @property
    def shares(self) -> Float64s:
        return self.counts / self.counts.sum()

    @property
    def squared(self) -> float:
        """The debiased squared error U; may be negative."""
        return float(squared_errors(self.outputs, self.counts, self.ones)[1])

    @property
    def balance(self) -> float:
        """The smallest alpha for which the outputs are alpha-well-balanced: 1/(alpha B) <= w_j <= alpha/B (definition 4.2)."""
        relative = self.shares * len(self.outputs)
        return float(max(relative.max(), 1 / relative.min()))

    def lower(self, level: float) -> float:
        """One-sided lower confidence limit of the squared error: the smallest t under which U is not improbably large."""
        low, high = 0.0, self.squared
        if self._chance(low) >= 1 - level:
            return low
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if self._chance(middle) < 1 - level else (low, middle)
        return high

    def _chance(self, t: float) -> float:
        """The probability of a U at least as large as the one found when the true squared error is t."""
        shares = self.shares
        rate = (self.ones + 2 * self.outputs) / (self.counts + 2)  # drawn towards the output where little was seen
        noise = rate * (1 - rate) / self.counts
        squares = np.maximum(_terms(self.outputs, self.counts, self.ones)[1], 0.0)
        total = float(shares @ squares)
        chances = []
        for shape in [np.ones_like(squares), squares / total] if total > 0 else [np.ones_like(squares)]:
            square = t * shape  # e_j^2: the weighted sum is t
            variance = float(shares**2 @ (4 * square * noise + 2 * noise**2))
            variance += max(float(shares @ square**2) - t**2, 0.0) / self.n  # from the frequencies of the outputs
            third = float(shares**3 @ (24 * square * noise**2 + 8 * noise**3))
            chances.append(_upper_tail(self.squared - t, variance, third))
        return max(chances)


def squared_errors(outputs: Float64s, counts: Float64s, ones: Float64s) -> tuple[Float64s, Float64s]:
    """The plug-in and the debiased squared error over the last axis; outputs that were not seen count nothing."""
    shares = counts / counts.sum(axis=-1, keepdims=True)
    plugin, debiased = _terms(outputs, counts, ones)
    return (shares * plugin).sum(axis=-1), (shares * debiased).sum(axis=-1)


def _terms(outputs: Float64s, counts: Float64s, ones: Float64s) -> tuple[Float64s, Float64s]:
    rate = ones / np.maximum(counts, 1.0)
    gap = (outputs - rate) ** 2
    return gap, gap - rate * (1 - rate) / np.maximum(counts - 1, 1.0)


def _upper_tail(distance: float, variance: float, third: float) -> float:
    """P(X >= distance) for X of mean 0 with the given second and third cumulants.

    Of a shifted gamma variable, whose upper tail is as heavy as that of a sum of squares.
    """
    from scipy.special import gammaincc, ndtr

    if variance <= 0:
        return float(distance <= 0)
    standard = distance / np.sqrt(variance)
    skewness = third / variance**1.5
    if skewness < 1e-4:
        return 1 - float(ndtr(standard))
    shape = 4 / skewness**2
    return float(gammaincc(shape, max(shape + np.sqrt(shape) * standard, 0.0)))


# ----------------------------------------------------------------------------------------------------
# What a model with few outputs showed: for every output its rows, its ones, and its share in the error

_MOST_PAIRS = 60  # classes up to which the covariance of labels is computed; beyond, its bound is taken


@dataclass(frozen=True, eq=False)
class OutputCells:
    """Distinct outputs s with N rows, K of them ones; `weight` the share of the output's class in the squared error."""

    outputs: Float64s
    counts: Float64s
    ones: Float64s
    weight: Float64s
    rows: float  # n: each row counts once in every class
    spread: float = 1.0  # variance of sum_k of squared gaps over that of independent outputs

    @classmethod
    def of(cls, profile: Profile) -> "OutputCells":
        """From one dataset whose weights, if any, are counts."""
        error = BinnedError.of(profile)
        return cls(error.outputs, error.counts, error.ones, np.ones(len(error.outputs)), error.n)

    @classmethod
    def class_wise(cls, samples: Sequence[Sample], shares: Float64s) -> "OutputCells":
        """From the samples of a class-wise lens, which see the same rows."""
        weights = samples[0].weights
        w = np.ones(len(samples[0])) if weights is None else weights
        outputs, counts, ones, weight, codes, first = [], [], [], [], [], 0
        for sample, share in zip(samples, shares, strict=True):
            values, code = np.unique(sample.scores.astype(np.float64), return_inverse=True)
            outputs.append(values)
            counts.append(np.bincount(code, w, len(values)))
            ones.append(np.bincount(code, w * sample.outcomes, len(values)))
            weight.append(np.full(len(values), share))
            codes.append(code + first)
            first += len(values)
        s, n, k, a = (np.concatenate(parts) for parts in (outputs, counts, ones, weight))
        filled = n > 0
        spread = 2.0 if len(samples) > _MOST_PAIRS else _spread(np.stack(codes), s, n, k, a, w)
        return cls(s[filled], n[filled], k[filled], a[filled], float(w.sum()), spread)

    def with_outputs(self, possible: Float64s) -> "OutputCells":
        """With the outputs that are possible but were not seen, as outputs of no rows."""
        missing = np.setdiff1d(possible, self.outputs)
        none, one = np.zeros(len(missing)), np.ones(len(missing))
        return OutputCells(
            np.concatenate([self.outputs, missing]),
            np.concatenate([self.counts, none]),
            np.concatenate([self.ones, none]),
            np.concatenate([self.weight, one * self.weight[0]]),
            self.rows,
            self.spread,
        )


def _spread(codes: Indices, s: Float64s, n: Float64s, k: Float64s, a: Float64s, w: Float64s) -> float:
    """Variance of T = sum_k a_k N_k (gap_k)^2 over what it would be if the labels of different classes were independent.

    One label per row: Cov(y_c, y_d) = -q_c q_d, with q the outputs scaled to sum to 1. The quadratic part of T has the covariances
    squared, the linear part (where gaps are real) the form sum q g^2 - (sum q g)^2 per row. The ratio lies between 1 and 2: the
    covariance matrix diag(q) - qq' has trace of its square at most twice that of its diagonal (exactly twice for two classes).
    """
    probs = s[codes]
    q = probs / np.maximum(probs.sum(axis=0), 1e-12)
    root = a / np.maximum(n, 1)
    variances = np.bincount(codes.ravel(), (w * q * (1 - q)).ravel(), len(s))
    together = 0.0
    for c in range(len(codes)):
        for d in range(c):
            pair = np.bincount(codes[c] * len(s) + codes[d], w * q[c] * q[d])
            pairs = np.flatnonzero(pair)
            together += 2 * float((root[pairs // len(s)] * root[pairs % len(s)] * pair[pairs] ** 2).sum())
    quadratic = 1 + together / max(float(((root * variances) ** 2).sum()), 1e-300)
    gap = ((k / np.maximum(n, 1) - s) * a)[codes]
    linear = ((q * gap**2).sum(axis=0) - (q * gap).sum(axis=0) ** 2) @ w
    alone = (q * (1 - q) * gap**2).sum(axis=0) @ w
    return max(quadratic, float(linear) / max(float(alone), 1e-300))


# ----------------------------------------------------------------------------------------------------
# The finite-sample upper limit of a model with few outputs, by inverting a test

_BOX = 0.005  # each one-sided Clopper-Pearson limit of a plausible rate: together far below the 5 % of a promise
_RARE = 50  # outputs with fewer rows vary in how often they are seen, too
_PARTS = (1.0, 0.75, 0.5, 0.25, 0.0)  # of t^2 on the outputs seen
_PRECISION = 0.01  # of the limit
_LEAST_ERROR = 1e-6  # limits below this are not told apart


@dataclass(frozen=True, eq=False)
class _Plausible:
    """How far every rate may be from its output, and to which side."""

    cap: Float64s  # largest plausible |p - s| to the chosen side
    side: Float64s  # +1 or -1
    room: Float64s  # the side on which an output has more room


def upper_limit(cells: OutputCells, threshold: float, level: float, *, closed: bool = False) -> tuple[bool, float]:
    """Whether "the error is at least `threshold`" is rejected at 1 - level, and the smallest t of which that can be said.

    The limit is found to one part in a hundred, on the side of the threshold on which it lies. `closed`: the outputs listed are
    all there are.
    """
    below = rejects(cells, threshold, level, closed=closed)
    low, high = (0.0, threshold) if below else (threshold, 1.0)
    while high - low > max(_PRECISION * high, _LEAST_ERROR):
        middle = (low + high) / 2
        if not below and high == 1:  # a limit is nearer to the threshold than to 1, as a rule
            middle = min(middle, 2 * max(low, _LEAST_ERROR))
        if rejects(cells, middle, level, closed=closed):
            high = middle
        else:
            low = middle
    return below, high


def promised(outputs: Float64s, counts: Float64s, ones: Float64s, threshold: float, level: float) -> bool:
    """Whether an error below `threshold` is promised of outputs seen so often, with so many ones; others may exist."""
    filled = counts > 0
    cells = OutputCells(outputs[filled], counts[filled], ones[filled], np.ones(int(filled.sum())), float(counts.sum()))
    return rejects(cells, threshold, level)


def rejects(cells: OutputCells, error: float, level: float, *, closed: bool = False) -> bool:
    """Whether a T as small as observed has probability 1 - level or less under every null of this error."""
    return error > 0 and all(p <= 1 - level for p in _tails(cells, error**2, closed, 1 - level))


def _tails(cells: OutputCells, squared: float, closed: bool, stop: float) -> Iterator[float]:
    """P(T <= observed) under one null after the other, without some that are at most `stop`."""
    s, n_k, a, n = cells.outputs, cells.counts, cells.weight, cells.rows
    observed = a * terms(s, n_k, cells.ones)
    plausible = _plausible(cells)
    shapes = _shapes(cells, plausible)
    lowest, highest = clopper_pearson(n_k, np.full(len(s), n), _BOX)
    rare = np.flatnonzero(n_k < _RARE)
    for part in _PARTS:
        for shape in shapes if part > 0 else shapes[:1]:
            gaps = shape(part * squared)
            if gaps is None:
                continue
            rest = (1 - part) * squared
            null = NullTerms(s, n_k, np.clip(s + gaps, 0, 1), a, observed, cells.spread, n * rest)
            if part == 1:
                yield null.tail()
                continue
            unseen = 0.0 if closed else float(np.exp(-n * rest / a.max()))
            if unseen > stop:
                yield unseen * null.tail()
            for j in rare:
                excess = (rest + a[j] * n_k[j] / n * gaps[j] ** 2) / a[j]  # what output j takes over
                needed = excess / plausible.cap[j] ** 2
                if needed > highest[j]:
                    continue
                for share in {max(float(lowest[j]), needed), max(float(n_k[j] / n), needed)}:
                    rate = float(np.clip(s[j] + plausible.side[j] * np.sqrt(excess / share), 0, 1))
                    yield null.tail_with(int(j), n * share, rate)


def _plausible(cells: OutputCells) -> _Plausible:
    s = cells.outputs
    upwards = s < 0.5
    room = np.where(upwards, 1.0, -1.0)
    low, high = clopper_pearson(cells.ones, cells.counts, _BOX)
    cap, other = np.where(upwards, high - s, s - low), np.where(upwards, s - low, high - s)
    turned = cap <= 0  # even the far limit of the rate lies on the other side; then the near one does, too
    return _Plausible(np.where(turned, other, cap), np.where(turned, -room, room), room)


def _shapes(cells: OutputCells, plausible: _Plausible) -> list[Callable[[float], Float64s | None]]:
    """Functions from a squared error to gaps that have it; None where gaps so large are not plausible."""
    s, n_k = cells.outputs, cells.counts
    w = cells.weight * n_k / cells.rows
    rate = cells.ones / np.maximum(n_k, 1)
    excess = np.maximum((rate - s) ** 2 - s * (1 - s) / np.maximum(n_k, 1), 0.0)
    observed = np.sign(rate - s) * np.sqrt(excess) * (n_k > 0)
    p = s + plausible.side * plausible.cap
    order = np.argsort(-cells.weight * (4 * p * (1 - p) + plausible.cap**2), kind="stable")
    return [
        lambda z: _filled(w, plausible, order, z),
        lambda z: _along(s, w, observed, z),
        lambda z: _along(s, w, plausible.room, z),
    ]


def _filled(w: Float64s, plausible: _Plausible, order: Indices, squared: float) -> Float64s | None:
    """Outputs filled up to their caps, those first that give T the largest variance per unit of squared error."""
    gaps, remaining = np.zeros_like(w), squared
    for j in order:
        if w[j] > 0:
            size = min(float(plausible.cap[j]), float(np.sqrt(remaining / w[j])))
            gaps[j] = plausible.side[j] * size
            remaining -= float(w[j]) * size**2
            if remaining <= 1e-15:
                return gaps
    return None


def _along(s: Float64s, w: Float64s, direction: Float64s, squared: float) -> Float64s | None:
    """Gaps c * direction, cut where a rate would leave [0, 1], with the wanted squared error."""
    room = np.where(direction > 0, 1 - s, s) * (direction != 0)
    if w @ room**2 < squared:
        return None
    size = np.abs(direction)
    high = float(np.sqrt(squared / (w @ size**2)))
    if (high * size <= room).all():
        return high * direction
    low = 0.0
    while w @ np.minimum(high * size, room) ** 2 < squared:
        high *= 4
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if w @ np.minimum(middle * size, room) ** 2 < squared else (low, middle)
    return np.sign(direction) * np.minimum(high * size, room)
