"""The calibration error of a model with few outputs: debiased, with a lower and an upper confidence limit.

For outputs s_j seen n_j times with k_j ones, and shares w_j = n_j / n, the debiased squared error (Kumar et al. 2019,
5.2) is

    U = sum_j w_j [ (s_j - k_j / n_j)^2 - y_j (1 - y_j) / (n_j - 1) ],      y_j = k_j / n_j

An output seen once cannot be debiased; its term stays as it is, which can only raise U.

The lower limit inverts a test. If the true squared error were t, then U has mean t, and its variance and skewness follow
from where the error sits: spread evenly over the outputs, or where it was observed. Whichever makes the observed U more
likely counts. The upper limit inverts a test of T below, over nulls that put the error on the outputs
observed, on rare ones and on outputs that were not observed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from truecal.lenses.lens import Sample
from truecal.profile.profile import Profile
from truecal.special import clopper_pearson
from truecal.types import Float64s, Indices

_MAX_PAIRED_CLASSES = 60  # classes up to which the covariance of labels is computed; beyond, its bound is taken


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
    def counted(cls, outputs: Float64s, counts: Float64s, ones: Float64s) -> "OutputCells":
        """Take the outputs of one dataset that were observed."""
        filled = counts > 0
        return cls(outputs[filled], counts[filled], ones[filled], np.ones(int(filled.sum())), float(counts.sum()))

    @classmethod
    def of(cls, profile: Profile) -> "OutputCells":
        """Count the outputs of one dataset whose weights, if any, are counts."""
        scores = profile.scores[0].astype(np.float64)
        starts = np.flatnonzero(np.concatenate([[True], scores[1:] != scores[:-1]]))
        ends = np.append(starts, len(scores))
        counts, ones = (np.diff(profile.prefix(name)[0][ends].astype(np.float64)) for name in ("w", "y"))
        return cls.counted(scores[starts], counts, ones)

    @classmethod
    def class_wise(cls, samples: Sequence[Sample], shares: Float64s) -> "OutputCells":
        """Count rows and events at each distinct output of each class; samples are of the same rows, one per class."""
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
        spread = 2.0 if len(samples) > _MAX_PAIRED_CLASSES else _spread(np.stack(codes), s, n, k, a, w)
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

    @property
    def shares(self) -> Float64s:
        """Shares w_j of the outputs of one dataset."""
        return self.counts / self.counts.sum()

    @property
    def squared(self) -> float:
        """The debiased squared error U of one dataset; may be negative."""
        return float(squared_errors(self.outputs, self.counts, self.ones)[1])

    @property
    def balance(self) -> float:
        """The smallest alpha for which the outputs are alpha-well-balanced: 1/(alpha B) <= w_j <= alpha/B (definition 4.2)."""
        relative = self.shares * len(self.outputs)
        return float(max(relative.max(), 1 / relative.min()))

    def lower(self, level: float) -> float:
        """Compute the one-sided lower limit of the squared error: the smallest t under which U is not improbably large."""
        low, high = 0.0, self.squared
        if self._chance(low) >= 1 - level:
            return low
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if self._chance(middle) < 1 - level else (low, middle)
        return high

    def _chance(self, t: float) -> float:
        """Compute the probability of a U at least as large as observed when the true squared error is t."""
        shares = self.shares
        rate = (self.ones + 2 * self.outputs) / (self.counts + 2)  # drawn towards the output where little was seen
        noise = rate * (1 - rate) / self.counts
        squares = np.maximum(_terms(self.outputs, self.counts, self.ones)[1], 0.0)
        total = float(shares @ squares)
        chances = []
        for shape in [np.ones_like(squares), squares / total] if total > 0 else [np.ones_like(squares)]:
            square = t * shape  # e_j^2: the weighted sum is t
            variance = float(shares**2 @ (4 * square * noise + 2 * noise**2))
            variance += max(float(shares @ square**2) - t**2, 0.0) / self.rows  # from the frequencies of the outputs
            third = float(shares**3 @ (24 * square * noise**2 + 8 * noise**3))
            chances.append(_upper_tail(self.squared - t, variance, third))
        return max(chances)


def squared_errors(outputs: Float64s, counts: Float64s, ones: Float64s) -> tuple[Float64s, Float64s]:
    """Compute the plug-in and the debiased squared error over the last axis; unseen outputs count 0."""
    shares = counts / counts.sum(axis=-1, keepdims=True)
    plugin, debiased = _terms(outputs, counts, ones)
    return (shares * plugin).sum(axis=-1), (shares * debiased).sum(axis=-1)


def _terms(outputs: Float64s, counts: Float64s, ones: Float64s) -> tuple[Float64s, Float64s]:
    """Return the squared gap of each output and the same debiased, each of the shape of `outputs`."""
    rate = ones / np.maximum(counts, 1.0)
    gap = (outputs - rate) ** 2
    return gap, gap - rate * (1 - rate) / np.maximum(counts - 1, 1.0)


def _upper_tail(distance: float, variance: float, third: float) -> float:
    """Approximate P(X >= distance) for X of mean 0 with the given second and third cumulants.

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

_BOX = 0.005  # of each one-sided Clopper-Pearson limit of a plausible rate; derived: a tenth of the 5 % of a promise
_RARE = 50  # rows below which nulls vary how often an output occurs, too
_PARTS = (1.0, 0.75, 0.5, 0.25, 0.0)  # shares of t^2 on the outputs observed
_PRECISION = 0.01  # of the limit
_MIN_ERROR = 1e-6  # limits below this are not resolved


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
    while high - low > max(_PRECISION * high, _MIN_ERROR):
        middle = (low + high) / 2
        if not below and high == 1:  # a limit is nearer to the threshold than to 1, as a rule
            middle = min(middle, 2 * max(low, _MIN_ERROR))
        if rejects(cells, middle, level, closed=closed):
            high = middle
        else:
            low = middle
    return below, high


def promised(outputs: Float64s, counts: Float64s, ones: Float64s, threshold: float, level: float) -> bool:
    """Whether an error below `threshold` is promised of outputs seen so often, with so many ones; others may exist."""
    return rejects(OutputCells.counted(outputs, counts, ones), threshold, level)


def rejects(cells: OutputCells, error: float, level: float, *, closed: bool = False) -> bool:
    """Whether a T as small as observed has probability 1 - level or less under every null of this error."""
    return error > 0 and all(p <= 1 - level for p in _tails(cells, error**2, closed, 1 - level))


def _tails(cells: OutputCells, squared: float, closed: bool, stop: float) -> Iterator[float]:
    """Compute P(T <= observed) under each null; those that are at most `stop` may be left out."""
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
    """Find how far, and to which side, the rate of each output may lie from it by Clopper-Pearson limits."""
    s = cells.outputs
    upwards = s < 0.5
    room = np.where(upwards, 1.0, -1.0)
    low, high = clopper_pearson(cells.ones, cells.counts, _BOX)
    cap, other = np.where(upwards, high - s, s - low), np.where(upwards, s - low, high - s)
    is_opposite = cap <= 0  # even the far limit of the rate lies on the other side; then the near one does, too
    return _Plausible(np.where(is_opposite, other, cap), np.where(is_opposite, -room, room), room)


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


# ----------------------------------------------------------------------------------------------------
# How probable a T as small as the one observed is, without simulation.
#
# T = sum_k a_k t(N_k, K_k), where t(N, K) = N (K/N - s)^2 - r (1 - r) and r = (K + 2s) / (N + 2) is the rate drawn towards the
# output. The terms are independent, so the distribution of T is their convolution: a product of Fourier transforms on a grid that
# reaches from the least T to the largest of interest. Masses above the grid would wrap around; they are multiplied by rho^cell
# before and divided by it afterwards, which leaves 1e-7 of them (Gruebel & Hermesmeier, ASTIN Bulletin 29, 1999). Terms are
# rounded to the nearest cell; the counts observed count as at most the observed T wherever rounding puts them.
#
# With many outputs T is taken as normal, with its exact mean and variance. Its own lower tail is lighter, because T is skewed to
# the right, so this errs on the safe side.

PULL = 2.0  # rows of the output itself in the noise of a rate; derived: two pseudo-rows, as elsewhere
_MIN_TERM = -0.25  # derived: r (1 - r) <= 1/4
_CELLS = 2048  # of the grid; rounding moves T by at most half a cell per term
_WRAPPED = 1e-7  # share of masses beyond the grid that wraps around
_DAMPING = _WRAPPED ** (np.arange(_CELLS) / _CELLS)  # rho^cell
_REACH = 6.0  # derived: a billionth of a normal count lies beyond so many standard deviations
_STEPS = 16  # values of a count per standard deviation; of larger counts every m-th
_MANY = 200  # outputs beyond which T is taken as normal, which is on the safe side


def terms(s: Float64s | float, n: Float64s, k: Float64s) -> Float64s:
    """Compute t(N, K) of every output; 0 for an output not seen."""
    rate = (k + PULL * s) / (n + PULL)
    return np.where(n > 0, n * (k / np.maximum(n, 1) - s) ** 2 - rate * (1 - rate), 0.0)


@dataclass(frozen=True, eq=False)
class NullTerms:
    """Outputs s with n rows and true rate p each; `weight` of every term.

    observed_terms : the terms observed. spread : variance of T over that of independent terms.
    more : how much larger the mean of T may become when one output is given Poisson counts.
    """

    s: Float64s
    n: Float64s
    p: Float64s
    weight: Float64s
    observed_terms: Float64s
    spread: float = 1.0
    more: float = 0.0

    @cached_property
    def observed(self) -> float:
        """Observed T, at least 0: a smaller one is no evidence of a smaller error; plus 1e-9 for rounding."""
        return max(float(self.observed_terms.sum()), 0.0) + 1e-9

    def tail(self) -> float:
        """Compute P(T <= observed)."""
        mean, variance = (float(each.sum()) for each in self._moments)
        if self._uses_normal:
            return self._normal_tail(mean, variance)
        return self._grid_tail(self._transforms.prod(axis=0), mean)

    def tail_with(self, j: int, share: float, rate: float) -> float:
        """Compute P(T <= observed) if output j has Poisson counts: `share` rows expected, a part `rate` of them ones."""
        if self._uses_normal:
            own_mean, own_variance = self._poisson_moments(j, share, rate)
            mean, variance = (float(each.sum() - each[j]) for each in self._moments)
            return self._normal_tail(mean + own_mean, variance + own_variance)
        (ones, p_ones), (zeros, p_zeros) = _poisson(share * rate), _poisson(share * (1 - rate))
        values = self.weight[j] * terms(
            self.s[j], ones[:, None] + zeros, np.broadcast_to(ones[:, None], (len(ones), len(zeros)))
        )
        mass = p_ones[:, None] * p_zeros
        others = self._before[j] * self._after[j]
        mean = float(self._moments[0].sum() - self._moments[0][j] + (values * mass).sum())
        transform = self._transform_masses(values.ravel()[None], mass.ravel()[None], self.weight[j : j + 1])
        return self._grid_tail(others * transform[0], mean)

    @property
    def _uses_normal(self) -> bool:
        """Whether there are so many outputs that T is taken as normal."""
        return len(self.s) > _MANY

    @cached_property
    def _moments(self) -> tuple[Float64s, Float64s]:
        """Mean and variance of every term under binomial counts."""
        mean, variance = _binomial_moments(self.s, self.n, self.p)
        return self.weight * mean, self.weight**2 * variance

    def _normal_tail(self, mean: float, variance: float) -> float:
        """Return P(T <= observed) by the normal distribution of this mean and variance."""
        from scipy.special import ndtr

        if variance <= 0:
            return float(mean <= self.observed)
        return float(ndtr((self.observed - mean) / np.sqrt(self.spread * variance)))

    @cached_property
    def _step(self) -> float:
        """Width of a cell; T is stretched around its mean by sqrt(spread), so the grid reaches up to the mean."""
        top = self.observed
        if self.spread > 1:
            top = max(top, float(self._moments[0].sum()) + self.more)
        return (top - _MIN_TERM * float(self.weight.sum())) / (_CELLS - 2)

    @cached_property
    def _transforms(self) -> NDArray[np.complex128]:
        """Fourier transform of the distribution of every term, shape (B, frequencies)."""
        counts, mass = _binomial(self.n, self.p)
        each = self.weight[:, None] * terms(self.s[:, None], self.n[:, None], counts)
        return self._transform_masses(each, mass, self.weight)

    def _transform_masses(self, each: Float64s, mass: Float64s, weight: Float64s) -> NDArray[np.complex128]:
        """Transform the masses of terms on the grid: values and masses (b, m), weights (b,); shape (b, frequencies)."""
        cell = self._cell(each, weight[:, None])
        code = np.arange(len(each))[:, None] * (_CELLS + 1) + cell  # the last cell holds what is beyond the grid
        table = np.bincount(code.ravel(), mass.ravel(), len(each) * (_CELLS + 1)).reshape(len(each), -1)
        return np.fft.rfft(table[:, :_CELLS] * _DAMPING, axis=1)

    def _cell(self, value: Float64s, weight: Float64s) -> NDArray[np.intp]:
        """Return the cell of the grid of each value of a term with this weight; `_CELLS` is beyond the grid."""
        return np.rint((value - _MIN_TERM * weight) / self._step).clip(0, _CELLS).astype(np.intp)

    @cached_property
    def _before(self) -> NDArray[np.complex128]:
        """Products of the transforms of all outputs before each."""
        return np.cumprod(np.concatenate([np.ones_like(self._transforms[:1]), self._transforms[:-1]]), axis=0)

    @cached_property
    def _after(self) -> NDArray[np.complex128]:
        """Product of the transforms of all later terms, for each term."""
        back = self._transforms[::-1]
        return np.cumprod(np.concatenate([np.ones_like(back[:1]), back[:-1]]), axis=0)[::-1]

    def _grid_tail(self, transform: NDArray[np.complex128], mean: float) -> float:
        """Return P(T <= observed) from the transform of the masses of T on the grid."""
        end = mean + (self.observed - mean) / np.sqrt(self.spread)
        last = int(np.rint((end - _MIN_TERM * float(self.weight.sum())) / self._step))
        if self.spread == 1:
            last = max(last, int(self._cell(self.observed_terms, self.weight).sum()))
        upto = int(np.clip(last + 1, 0, _CELLS))
        masses = np.fft.irfft(transform, _CELLS)[:upto] / _DAMPING[:upto]
        return float(np.clip(masses.sum(), 0.0, 1.0))

    def _poisson_moments(self, j: int, share: float, rate: float) -> tuple[float, float]:
        """Return mean and variance of term j if its count is Poisson with mean `share` and its rate is `rate`."""
        rows, mass = _poisson(share)
        mean, variance = _binomial_moments(self.s[j], np.maximum(rows, 1.0), np.full(len(rows), rate))
        mean, variance = mean * (rows > 0), variance * (rows > 0)
        overall = float(mass @ mean)
        second = float(mass @ (variance + mean**2)) - overall**2
        return float(self.weight[j]) * overall, float(self.weight[j]) ** 2 * second


def _binomial(n: Float64s, p: Float64s) -> tuple[Float64s, Float64s]:
    """Return counts around n p and their binomial probabilities, shape (b, values); counts outside 0..n have mass 0."""
    from scipy.special import betaln, xlog1py, xlogy

    deviation = np.sqrt(n * p * (1 - p))
    stride = np.maximum(np.floor(deviation / _STEPS), 1.0)
    reach = np.minimum(np.ceil((_REACH * deviation + _REACH) / stride), np.ceil(n / stride))
    away = np.arange(-float(reach.max()), float(reach.max()) + 1)
    k = np.rint(n * p)[:, None] + stride[:, None] * away
    inside = (k >= 0) & (k <= n[:, None])
    k, n, p = np.where(inside, k, 0.0), n[:, None], p[:, None]
    log = -betaln(n - k + 1, k + 1) - np.log1p(n) + xlogy(k, p) + xlog1py(n - k, -p)
    mass = np.where(inside, np.exp(log), 0.0)
    return k, mass / mass.sum(axis=1, keepdims=True)


def _poisson(mean: float) -> tuple[Float64s, Float64s]:
    """Return counts and their Poisson probabilities, within `_REACH` standard deviations of the mean."""
    from scipy.special import gammaln, xlogy

    reach = _REACH * np.sqrt(mean) + _REACH
    k = np.arange(max(0.0, np.floor(mean - reach)), np.ceil(mean + reach) + 1)
    mass = np.exp(xlogy(k, mean) - mean - gammaln(k + 1))
    return k, mass / mass.sum()


def _binomial_moments(s: Float64s | float, n: Float64s, p: Float64s) -> tuple[Float64s, Float64s]:
    """Compute mean and variance of t = square K^2 + linear K + constant from the central moments of K; 0 where n is 0."""
    safe = np.maximum(n, 1.0)
    square = 1 / safe + 1 / (safe + PULL) ** 2
    linear = -2 * s - 1 / (safe + PULL) + 2 * PULL * s / (safe + PULL) ** 2
    constant = safe * s**2 - PULL * s / (safe + PULL) + (PULL * s / (safe + PULL)) ** 2
    mean, second = safe * p, safe * p * (1 - p)
    third = second * (1 - 2 * p)
    fourth = second * (1 + 3 * (safe - 2) * p * (1 - p))
    slope = 2 * square * mean + linear
    variance = square**2 * (fourth - second**2) + slope**2 * second + 2 * square * slope * third
    expected = square * (second + mean**2) + linear * mean + constant
    return np.where(n > 0, expected, 0.0), np.where(n > 0, np.maximum(variance, 0.0), 0.0)
