r"""Exact confidence limits of the calibration error of a model with few distinct outputs.

Outputs s_j were seen n_j times, k_j of them with the event, in shares w_j = n_j / n of all rows. The debiased squared error
(Kumar et al. 2019, 5.2) is

    U = sum_j w_j [ (s_j - y_j)^2 - y_j (1 - y_j) / (n_j - 1) ],      y_j = k_j / n_j                                    (1)

An output seen once is not debiased, which can only raise U.

Lower limit. If the true squared error is t, U has mean t; its variance and skewness depend on how t is divided among the
outputs. Evenly, or as observed: the more probable of the two counts, so that the limit is the smallest t under which U has
probability 1 - level or more.

Upper limit. "The error is t" is rejected if the statistic

    T = sum_j a_j t(n_j, k_j),   t(n, k) = n (k/n - s)^2 - r (1 - r),   r = (k + 2 s) / (n + 2)                          (2)

is improbably small under every null: every division of t^2 among the outputs observed (`_divisions`), one output that is
more or less frequent than observed, and an output that was never observed (`_null_probabilities`). a_j is the share of the
output's class (1 for a single class).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal.estimators.bins import distinct_cut
from truecal.lenses.lens import Sample
from truecal.profile.profile import Profile
from truecal.special import clopper_pearson, positive
from truecal.types import Float64s, Indices

# by choice: classes up to which the covariance of labels is computed; beyond, its bound is taken
_MAX_PAIRED_CLASSES = 60


@dataclass(frozen=True, eq=False)
class OutputCells:
    """Counts of rows and events at every distinct output, of one dataset or of all classes together.

    Attributes
    ----------
    outputs : ndarray of shape (m,)
        Scores s_j, distinct within a class.
    counts : ndarray of shape (m,)
        Rows n_j.
    ones : ndarray of shape (m,)
        Rows k_j with the event.
    weight : ndarray of shape (m,)
        Share a_j of the output's class in the squared error.
    rows : float
        Rows n of the data; each counts once in every class.
    spread : float
        Variance of T over what it would be if the labels of different classes were independent.
    """

    outputs: Float64s
    counts: Float64s
    ones: Float64s
    weight: Float64s
    rows: float
    spread: float = 1.0

    @classmethod
    def counted(cls, outputs: Float64s, counts: Float64s, ones: Float64s) -> "OutputCells":
        """Make cells of one dataset from its counts, shape (m,) each; outputs without rows are left out, every weight is 1.

        >>> OutputCells.counted(np.array([0.2, 0.5]), np.array([4.0, 0.0]), np.array([1.0, 0.0])).outputs
        array([0.2])
        """
        filled = counts > 0
        return cls(outputs[filled], counts[filled], ones[filled], np.ones(int(filled.sum())), float(counts.sum()))

    @classmethod
    def of(cls, profile: Profile) -> "OutputCells":
        """Count the rows and events of one dataset at each distinct score; weights, if any, are counts.

        >>> cells = OutputCells.of(Profile.from_arrays([0.25, 0.25, 0.75], [0, 1, 1]))
        >>> cells.outputs, cells.counts, cells.ones
        (array([0.25, 0.75]), array([2., 1.]), array([1., 1.]))
        """
        cut = distinct_cut(profile)
        counts, ones = (np.diff(profile.sums(name, cut)[0].astype(np.float64)) for name in ("w", "y"))
        return cls.counted(profile.scores[0, cut.below[0, :-1]].astype(np.float64), counts, ones)

    @classmethod
    def class_wise(cls, samples: Sequence[Sample], shares: Float64s) -> "OutputCells":
        """Count rows and events at each distinct output of each class; samples are of the same rows, one per class.

        `shares`, shape (classes,), are the weights of the outputs of each class. Outputs of different classes are not joined.
        """
        weights = samples[0].weights
        w = np.ones(len(samples[0])) if weights is None else weights
        pairs = [np.unique(sample.scores.astype(np.float64), return_inverse=True) for sample in samples]
        sizes = [len(values) for values, _ in pairs]
        first = np.cumsum([0, *sizes])
        codes = np.stack([code + start for (_, code), start in zip(pairs, first[:-1], strict=True)])  # (classes, rows)
        outcomes = np.stack([sample.outcomes for sample in samples])  # shape (classes, rows)
        s, a = np.concatenate([values for values, _ in pairs]), np.repeat(shares, sizes)
        sums: list[Any] = [
            np.bincount(codes.ravel(), (w * counted).ravel(), len(s)) for counted in (outcomes >= 0, outcomes)
        ]
        n, k = sums
        filled = n > 0
        spread = 2.0 if len(samples) > _MAX_PAIRED_CLASSES else _spread(codes, s, n, k, a, w)
        return cls(s[filled], n[filled], k[filled], a[filled], float(w.sum()), spread)

    def with_outputs(self, possible: Float64s) -> "OutputCells":
        """Append the outputs of `possible` that were not observed, with no rows.

        >>> cells = OutputCells.of(Profile.from_arrays([0.25, 0.25, 0.75], [0, 1, 1]))
        >>> cells.with_outputs(np.array([0.25, 0.5])).counts
        array([2., 1., 0.])
        """
        missing = np.setdiff1d(possible, self.outputs)
        none = np.zeros(len(missing))
        return OutputCells(
            np.append(self.outputs, missing),
            np.append(self.counts, none),
            np.append(self.ones, none),
            np.append(self.weight, none + self.weight[0]),
            self.rows,
            self.spread,
        )

    @property
    def shares(self) -> Float64s:
        """Shares w_j = counts / sum(counts) of one dataset, shape (m,).

        >>> OutputCells.of(Profile.from_arrays([0.25, 0.25, 0.75, 0.75], [0, 1, 1, 1])).shares
        array([0.5, 0.5])
        """
        return self.counts / self.counts.sum()

    @property
    def squared(self) -> float:
        """The debiased squared error U (1) of one dataset, as `squared_errors` has it; may be negative.

        >>> OutputCells.of(Profile.from_arrays([0.5, 0.5], [1, 1])).squared  # (1/2)^2, without noise at a rate of 1
        0.25
        """
        return float(squared_errors(self.outputs, self.counts, self.ones)[1])

    @property
    def balance(self) -> float:
        """The smallest alpha with 1/(alpha B) <= w_j <= alpha/B for the shares w_j of all B outputs (definition 4.2).

        >>> OutputCells.of(Profile.from_arrays([0.25, 0.75, 0.75, 0.75], [0, 1, 1, 1])).balance  # 1/4 = 1 / (2 B)
        2.0
        """
        relative = self.shares * len(self.outputs)
        return float(max(relative.max(), 1 / relative.min()))

    def lower(self, level: float) -> float:
        """Compute the one-sided lower limit of the squared error: the smallest t with P(U >= observed U) of 1 - level or more.

        0 where that holds at t = 0.

        >>> OutputCells.counted(np.array([0.5]), np.array([1000.0]), np.array([500.0])).lower(0.95)
        0.0
        """
        from scipy.optimize import brentq

        if self._exceedance(0.0) >= 1 - level:
            return 0.0
        return float(brentq(lambda t: self._exceedance(t) - (1 - level), 0.0, self.squared, xtol=1e-16))

    def _exceedance(self, t: float) -> float:
        """Approximate P(U >= observed U) if the true squared error is t, by a shifted gamma variable with three moments of U.

        The larger of two: with t divided evenly among the outputs, and in proportion to the debiased squared gaps observed.
        """
        shares = self.shares
        rate = (self.ones + 2 * self.outputs) / (self.counts + 2)  # as in (2)
        noise = rate * (1 - rate) / self.counts
        observed = np.maximum(_gap_squares(self.outputs, self.counts, self.ones)[1], 0.0)
        total = float(shares @ observed)
        probabilities = []
        for shape in (np.ones_like(observed), observed / total) if total > 0 else (np.ones_like(observed),):
            square = t * shape  # their weighted sum is t
            variance = float(shares**2 @ (4 * square * noise + 2 * noise**2))
            variance += max(float(shares @ square**2) - t**2, 0.0) / self.rows  # shares of the outputs are random
            third = float(shares**3 @ (24 * square * noise**2 + 8 * noise**3))
            probabilities.append(_upper_tail(self.squared - t, variance, third))
        return max(probabilities)


def squared_errors(outputs: Float64s, counts: Float64s, ones: Float64s) -> tuple[Float64s, Float64s]:
    """Compute the plug-in and the debiased squared error (1) over the last axis; outputs without rows count 0.

    sum_j n_j / n (s_j - y_j)^2 with y = ones / counts, and the same less y (1 - y) / (n_j - 1) in each term, except where n_j is
    1.

    >>> plugin, debiased = squared_errors(np.array([0.5]), np.array([5.0]), np.array([4.0]))
    >>> plugin.round(12), debiased.round(12)
    (np.float64(0.09), np.float64(0.05))
    """
    shares = counts / counts.sum(axis=-1, keepdims=True)
    plugin, debiased = _gap_squares(outputs, counts, ones)
    return (shares * plugin).sum(axis=-1), (shares * debiased).sum(axis=-1)


def _gap_squares(outputs: Float64s, counts: Float64s, ones: Float64s) -> tuple[Float64s, Float64s]:
    """Compute (s - y)^2 of each output, y = ones / counts, and the same less y (1 - y) / max(counts - 1, 1).

    >>> _gap_squares(np.array([0.5]), np.array([4.0]), np.array([1.0]))  # 1/16, and 1/16 - (3/16) / 3
    (array([0.0625]), array([0.]))
    """
    rate = ones / np.maximum(counts, 1.0)
    square = (outputs - rate) ** 2
    return square, square - rate * (1 - rate) / np.maximum(counts - 1, 1.0)


def _upper_tail(distance: float, variance: float, third: float) -> float:
    """Approximate P(X >= distance) for X of mean 0 by a shifted gamma variable with this variance and third cumulant.

    Normal where the skewness is below 1e-4; without variance 1 for distances up to 0, else 0.

    >>> _upper_tail(0.0, 1.0, 0.0), _upper_tail(1.0, 0.0, 0.0)
    (0.5, 0.0)
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
    """Compute the variance of T over what it would be if the labels of different classes were independent, from 1 to 2.

    `codes` is the number of the output of every row in every class, shape (classes, rows); s, n, k, a are the fields of all
    outputs, `w` the counts of the rows. With one label per row Cov(y_c, y_d) = -q_c q_d, q the outputs scaled to sum to 1. The
    quadratic part of T has these covariances squared, the linear part (where gaps g are real) sum q g^2 - (sum q g)^2 per row;
    the larger ratio is returned. diag(q) - qq' has a trace of its square of at most twice that of its diagonal, exactly twice for
    two classes.
    """
    probs = s[codes]
    q = probs / np.maximum(probs.sum(axis=0), 1e-12)
    root = a / np.maximum(n, 1)
    variances = np.bincount(codes.ravel(), (w * q * (1 - q)).ravel(), len(s))
    covariances = 0.0
    for c in range(len(codes)):
        for d in range(c):
            sums = np.bincount(codes[c] * len(s) + codes[d], w * q[c] * q[d])
            pairs = np.flatnonzero(sums)
            covariances += 2 * float((root[pairs // len(s)] * root[pairs % len(s)] * sums[pairs] ** 2).sum())
    quadratic = 1 + covariances / max(float(((root * variances) ** 2).sum()), 1e-300)
    gap = ((k / np.maximum(n, 1) - s) * a)[codes]
    linear = ((q * gap**2).sum(axis=0) - (q * gap).sum(axis=0) ** 2) @ w
    independent = (q * (1 - q) * gap**2).sum(axis=0) @ w
    return max(quadratic, float(linear) / max(float(independent), 1e-300))


# ----------------------------------------------------------------------------------------------------
# The upper limit, by inverting a test of T

_TAIL = 0.005  # by choice: of each Clopper-Pearson limit of a plausible rate; a tenth of 1 - level at 95 %
_RARE = 50  # by choice: rows below which nulls vary how often an output occurs, too
_PARTS = (1.0, 0.75, 0.5, 0.25, 0.0)  # by choice: shares of t^2 on the outputs observed
_PRECISION = 0.01  # by choice: relative precision of the limit
_MIN_ERROR = 1e-6  # by choice: limits below this are not resolved


def upper_limit(cells: OutputCells, threshold: float, level: float, *, closed: bool = False) -> tuple[bool, float]:
    """Test "the error is at least `threshold`" at 1 - level, and find the upper limit: (whether it is rejected, limit).

    The limit is the smallest root-mean-square error that `rejects` rejects, to one part in a hundred, on the side of the
    threshold on which it lies; 1 where nothing is rejected. `closed`: the model has no outputs but those listed.

    >>> cells = OutputCells.counted(np.array([0.5]), np.array([1000.0]), np.array([500.0]))
    >>> below, limit = upper_limit(cells, 0.2, 0.95)
    >>> below, limit < 0.1
    (True, True)
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


def rejects(cells: OutputCells, error: float, level: float, *, closed: bool = False) -> bool:
    """Decide whether P(T <= observed T) is at most 1 - level under every null of this root-mean-square error; False for 0.

    >>> cells = OutputCells.counted(np.array([0.5]), np.array([1000.0]), np.array([500.0]))
    >>> rejects(cells, 0.2, 0.95), rejects(cells, 0.0, 0.95)
    (True, False)
    """
    return error > 0 and all(p <= 1 - level for p in _null_probabilities(cells, error**2, closed, 1 - level))


def _null_probabilities(cells: OutputCells, squared: float, closed: bool, stop: float) -> Iterator[float]:
    """Yield P(T <= observed T) under each null of this squared error.

    A part of the squared error lies on the outputs observed; the rest on an output never observed, or on one rare output, which
    then has Poisson counts of the least and the observed frequency that can hold it. An output never observed is left out where
    the probability that it stays unseen is `stop` or less, or if the list is `closed`.
    """
    s, n_k, a, n = cells.outputs, cells.counts, cells.weight, cells.rows
    observed = a * terms(s, n_k, cells.ones)
    limits = _gap_limits(cells)
    lowest, highest = clopper_pearson(n_k, np.full(len(s), n), _TAIL)
    rare = np.flatnonzero(n_k < _RARE)
    for part in _PARTS:
        rest = (1 - part) * squared
        unseen = 0.0 if closed else float(np.exp(-n * rest / a.max()))
        for gaps in _divisions(cells, limits, part * squared):
            null = NullTerms(s, n_k, np.clip(s + gaps, 0, 1), a, observed, cells.spread, n * rest)
            if part == 1:
                yield null.tail()
                continue
            if unseen > stop:
                yield unseen * null.tail()
            for j in rare:
                excess = (rest + a[j] * n_k[j] / n * gaps[j] ** 2) / a[j]  # squared error that output j takes over
                needed = excess / limits.largest[j] ** 2
                if needed > highest[j]:
                    continue
                for share in {max(float(lowest[j]), needed), max(float(n_k[j] / n), needed)}:
                    rate = float(np.clip(s[j] + limits.side[j] * np.sqrt(excess / share), 0, 1))
                    yield null.tail_with(int(j), n * share, rate)


@dataclass(frozen=True, eq=False)
class GapLimits:
    """Largest plausible |rate - output| of every output, by Clopper-Pearson limits, shape (m,) each.

    `wide` is the side (+1 or -1) on which the output has more room: up below 1/2, else down. `side` is that too unless the limits
    exclude rates there, and `largest` is the distance from the output to the limit on `side`.
    """

    largest: Float64s
    side: Float64s
    wide: Float64s


def _gap_limits(cells: OutputCells) -> GapLimits:
    """Compute the largest gap of each output on its wider side, by limits of the rate with tail probability 0.005 each."""
    s = cells.outputs
    low, high = clopper_pearson(cells.ones, cells.counts, _TAIL)
    upwards = s < 0.5
    wide = np.where(upwards, 1.0, -1.0)
    wide_gap, narrow_gap = np.where(upwards, high - s, s - low), np.where(upwards, s - low, high - s)
    return GapLimits(np.where(wide_gap > 0, wide_gap, narrow_gap), np.where(wide_gap > 0, wide, -wide), wide)


def _divisions(cells: OutputCells, limits: GapLimits, squared: float) -> Iterator[Float64s]:
    """Yield up to three arrays of gaps rate - output (m,) whose weighted mean square is `squared`.

    Outputs filled one by one up to their limits, in the order of the variance they add; gaps in proportion to those observed
    beyond noise; and all of one size. A division that would need rates outside of [0, 1], or gaps beyond the limits in the first,
    is left out. The weights are a_j n_j / n.
    """
    s, n_k = cells.outputs, cells.counts
    w = cells.weight * n_k / cells.rows
    if squared == 0:
        yield np.zeros_like(s)
        return
    rate = cells.ones / np.maximum(n_k, 1)
    excess = np.maximum((rate - s) ** 2 - s * (1 - s) / np.maximum(n_k, 1), 0.0)
    observed = np.sign(rate - s) * np.sqrt(excess) * (n_k > 0)
    farthest = s + limits.side * limits.largest
    variance_gain = cells.weight * (4 * farthest * (1 - farthest) + limits.largest**2)
    filled = _fill(w, limits, np.argsort(-variance_gain, kind="stable"), squared)
    for gaps in (filled, _scale(s, w, observed, squared), _scale(s, w, limits.wide, squared)):
        if gaps is not None:
            yield gaps


def _fill(w: Float64s, limits: GapLimits, order: Indices, squared: float) -> Float64s | None:
    """Return gaps (m,) with sum w gap^2 = `squared`: outputs get their largest gap one after the other in this order.

    The last one gets what remains, further ones 0. None if the largest gaps of all outputs together have less.
    """
    max_parts = (w * limits.largest**2)[order]
    if max_parts.sum() < squared - 1e-15:
        return None
    parts = np.empty_like(w)
    parts[order] = np.clip(squared - (np.cumsum(max_parts) - max_parts), 0.0, max_parts)
    return limits.side * np.sqrt(np.where(parts > 1e-15, parts, 0.0) / positive(w))


def _scale(s: Float64s, w: Float64s, direction: Float64s, squared: float) -> Float64s | None:
    """Scale gaps `direction` (m,) so that sum w gap^2 is `squared`, each cut where its rate s + gap would leave [0, 1].

    None where even the cut gaps have less.

    >>> _scale(np.array([0.5, 0.9]), np.array([0.5, 0.5]), np.array([1.0, 1.0]), 0.01)
    array([0.1, 0.1])
    >>> _scale(np.array([0.5]), np.array([1.0]), np.array([1.0]), 0.5) is None  # 0.5^2 is the most
    True
    """
    from scipy.optimize import brentq

    room = np.where(direction > 0, 1 - s, s) * (direction != 0)
    if w @ room**2 < squared:
        return None

    def sizes(factor: float) -> Float64s:
        """Return |gap| of every output for a factor."""
        return np.minimum(factor * np.abs(direction), room)

    factor = float(np.sqrt(squared / (w @ direction**2)))
    if (sizes(factor) < factor * np.abs(direction)).any():
        largest = factor
        while w @ sizes(largest) ** 2 < squared:
            largest *= 4
        factor = float(brentq(lambda multiple: float(w @ sizes(multiple) ** 2) - squared, 0.0, largest, xtol=1e-15))
    return np.sign(direction) * sizes(factor)


# ----------------------------------------------------------------------------------------------------
# P(T <= observed), without simulation.
#
# The terms of T are independent, so the distribution of T is their convolution: a product of Fourier transforms on a grid that
# reaches from the least T to the largest of interest. Masses above the grid would wrap around; they are multiplied by rho^cell
# before and divided by it afterwards, which leaves 1e-7 of them (Gruebel & Hermesmeier, ASTIN Bulletin 29, 1999). Terms are
# rounded to the nearest cell; the counts observed count as at most the observed T wherever rounding puts them.
#
# With many outputs T is taken as normal, with its exact mean and variance. Its own lower tail is lighter, because T is skewed to
# the right, so this errs on the safe side.

PULL = 2.0  # rows of the output itself in the noise of a rate; derived: two pseudo-rows, as elsewhere
_MIN_TERM = -0.25  # derived: r (1 - r) <= 1/4
_CELLS = 2048  # by choice: of the grid; rounding moves T by at most half a cell per term
_WRAPPED = 1e-7  # by choice: share of masses beyond the grid that wraps around
_DAMPING = _WRAPPED ** (np.arange(_CELLS) / _CELLS)  # rho^cell
_REACH = 6.0  # derived: a billionth of a normal count lies beyond so many standard deviations
_STEPS = 16  # by choice: values of a count per standard deviation; of larger counts every m-th
_MANY = 200  # by choice: outputs beyond which T is taken as normal, which is on the safe side


def terms(s: Float64s | float, n: Float64s, k: Float64s) -> Float64s:
    """Compute n (k/n - s)^2 - r (1 - r), r = (k + 2 s) / (n + 2), of every output (2); 0 for an output without rows.

    >>> terms(0.5, np.array([2.0, 0.0]), np.array([1.0, 0.0]))
    array([-0.25,  0.  ])
    """
    rate = (k + PULL * s) / (n + PULL)
    return np.where(n > 0, n * (k / np.maximum(n, 1) - s) ** 2 - rate * (1 - rate), 0.0)


@dataclass(frozen=True, eq=False)
class NullTerms:
    """The distribution of T if outputs s with n rows each have true rates p.

    Attributes
    ----------
    s, n, p : ndarray of shape (m,)
        Outputs, rows and true rates.
    weight : ndarray of shape (m,)
        Factor a_j of every term.
    observed_terms : ndarray of shape (m,)
        The terms of the data, a_j t(n_j, k_j).
    spread : float
        Variance of T over that of independent terms.
    more : float
        How much larger the mean of T may become when one output is given Poisson counts.
    """

    s: Float64s
    n: Float64s
    p: Float64s
    weight: Float64s
    observed_terms: Float64s
    spread: float = 1.0
    more: float = 0.0

    def tail(self) -> float:
        """Compute P(T <= observed T), with K_j binomial of n_j rows at the rate p_j."""
        mean, variance = (float(moment.sum()) for moment in self._moments)
        if self._is_normal:
            return self._normal_tail(mean, variance)
        return self._grid_tail(self._transforms.prod(axis=0), mean)

    def tail_with(self, j: int, rows: float, rate: float) -> float:
        """Compute P(T <= observed T) if output j has a Poisson number of rows of mean `rows`, with events at this rate."""
        s, weight = float(self.s[j]), float(self.weight[j])
        mean, variance = (float(moment.sum() - moment[j]) for moment in self._moments)
        if self._is_normal:
            term_mean, term_variance = _poisson_moments(s, rows, rate)
            return self._normal_tail(mean + weight * term_mean, variance + weight**2 * term_variance)
        (ones, p_ones), (zeros, p_zeros) = _poisson(rows * rate), _poisson(rows * (1 - rate))
        values = weight * terms(s, ones[:, None] + zeros, ones[:, None])
        mass = p_ones[:, None] * p_zeros
        transform = self._transform(values.ravel()[None], mass.ravel()[None], self.weight[j : j + 1])[0]
        return self._grid_tail(self._others[j] * transform, mean + float((values * mass).sum()))

    @cached_property
    def _observed(self) -> float:
        """Observed T, the sum of `observed_terms`, plus 1e-9 for rounding.

        Where it is negative, 0: a smaller T is no evidence of a smaller error.
        """
        return max(float(self.observed_terms.sum()), 0.0) + 1e-9

    @property
    def _is_normal(self) -> bool:
        """Whether there are more than 200 outputs (_MANY), so that T is taken as normal."""
        return len(self.s) > _MANY

    @cached_property
    def _moments(self) -> tuple[Float64s, Float64s]:
        """Mean and variance of every term a_j t(n_j, K_j), shape (m,) each."""
        mean, variance = _binomial_moments(self.s, self.n, self.p)
        return self.weight * mean, self.weight**2 * variance

    def _normal_tail(self, mean: float, variance: float) -> float:
        """Return P(T <= observed) by the normal distribution of this mean and `spread` times this variance.

        With variance 0 it is 1 if the mean is at most the observed T, else 0.
        """
        from scipy.special import ndtr

        if variance <= 0:
            return float(mean <= self._observed)
        return float(ndtr((self._observed - mean) / np.sqrt(self.spread * variance)))

    def _grid_tail(self, transform: NDArray[np.complex128], mean: float) -> float:
        """Return P(T <= observed T) from the Fourier transform of the damped masses of T on the grid, and the mean of T.

        T is stretched around its mean by sqrt(spread).
        """
        end = mean + (self._observed - mean) / np.sqrt(self.spread)
        last = int(np.rint((end - _MIN_TERM * float(self.weight.sum())) / self._step))
        if self.spread == 1:
            last = max(last, int(self._cell(self.observed_terms, self.weight).sum()))
        upto = int(np.clip(last + 1, 0, _CELLS))
        masses = np.fft.irfft(transform, _CELLS)[:upto] / _DAMPING[:upto]
        return float(np.clip(masses.sum(), 0.0, 1.0))

    @cached_property
    def _step(self) -> float:
        """Width of a cell of the grid, which spans the least to the observed T; if spread > 1, also the mean of T."""
        top = self._observed
        if self.spread > 1:
            top = max(top, float(self._moments[0].sum()) + self.more)
        return (top - _MIN_TERM * float(self.weight.sum())) / (_CELLS - 2)

    def _cell(self, value: Float64s, weight: Float64s) -> NDArray[np.intp]:
        """Return the cell, from 0, of values of terms; cell 0 is the least value -weight / 4, `_CELLS` is beyond the grid."""
        return np.rint((value - _MIN_TERM * weight) / self._step).clip(0, _CELLS).astype(np.intp)

    def _transform(self, values: Float64s, mass: Float64s, weight: Float64s) -> NDArray[np.complex128]:
        """Transform the masses of terms on the grid: values and masses (m, v), weights (m,); shape (m, frequencies).

        Masses of cells are multiplied by `_DAMPING` before.
        """
        code = np.arange(len(values))[:, None] * (_CELLS + 1) + self._cell(values, weight[:, None])
        table = np.bincount(code.ravel(), mass.ravel(), len(values) * (_CELLS + 1)).reshape(len(values), -1)
        return np.fft.rfft(table[:, :_CELLS] * _DAMPING, axis=1)

    @cached_property
    def _transforms(self) -> NDArray[np.complex128]:
        """Fourier transform of the damped distribution of every term, shape (m, frequencies)."""
        ones, mass = _binomial(self.n, self.p)
        values = self.weight[:, None] * terms(self.s[:, None], self.n[:, None], ones)
        return self._transform(values, mass, self.weight)

    @cached_property
    def _others(self) -> NDArray[np.complex128]:
        """Product, for each term, of the transforms of all other terms, shape (m, frequencies)."""
        unit = np.ones_like(self._transforms[:1])
        before = np.cumprod(np.concatenate([unit, self._transforms[:-1]]), axis=0)
        after = np.cumprod(np.concatenate([unit, self._transforms[:0:-1]]), axis=0)[::-1]
        return before * after


def _binomial(n: Float64s, p: Float64s) -> tuple[Float64s, Float64s]:
    """Return counts around n p and their binomial probabilities, shape (m, values); counts outside 0..n have mass 0.

    They reach six standard deviations; where the deviation is above 16 only every m-th count is taken. Rows sum to 1.

    >>> counts, mass = _binomial(np.array([2.0]), np.array([0.5]))
    >>> [round(float(mass[counts == k].sum()), 6) for k in (0, 1, 2)]
    [0.25, 0.5, 0.25]
    """
    from scipy.special import betaln, xlog1py, xlogy

    deviation = np.sqrt(n * p * (1 - p))
    stride = np.maximum(np.floor(deviation / _STEPS), 1.0)
    steps = float(np.minimum(np.ceil((_REACH * deviation + _REACH) / stride), np.ceil(n / stride)).max())
    k = np.rint(n * p)[:, None] + stride[:, None] * np.arange(-steps, steps + 1)
    n, p = n[:, None], p[:, None]
    inside = (k >= 0) & (k <= n)
    k = np.where(inside, k, 0.0)
    log_mass = -betaln(n - k + 1, k + 1) - np.log1p(n) + xlogy(k, p) + xlog1py(n - k, -p)
    mass = np.where(inside, np.exp(log_mass), 0.0)
    return k, mass / mass.sum(axis=1, keepdims=True)


def _poisson(mean: float) -> tuple[Float64s, Float64s]:
    """Return consecutive counts within six standard deviations (plus 6) of the mean, and their Poisson masses, sum 1.

    >>> counts, mass = _poisson(1.0)
    >>> counts[:2], mass[:2].round(4)  # exp(-1) twice
    (array([0., 1.]), array([0.3679, 0.3679]))
    """
    from scipy.special import gammaln, xlogy

    reach = _REACH * np.sqrt(mean) + _REACH
    k = np.arange(max(0.0, np.floor(mean - reach)), np.ceil(mean + reach) + 1)
    mass = np.exp(xlogy(k, mean) - mean - gammaln(k + 1))
    return k, mass / mass.sum()


def _binomial_moments(s: Float64s | float, n: Float64s, p: Float64s) -> tuple[Float64s, Float64s]:
    """Compute mean and variance of t(n, K) of (2), K binomial of n rows at the rate p: shape (m,) each, 0 where n is 0.

    t = square K^2 + linear K + constant, so both follow from the first four central moments of K.

    >>> mean, variance = _binomial_moments(0.5, np.array([0.0, 4.0]), np.array([0.5, 0.5]))
    >>> mean[0], variance[0], bool(variance[1] > 0)
    (np.float64(0.0), np.float64(0.0), True)
    """
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


def _poisson_moments(s: float, rows: float, rate: float) -> tuple[float, float]:
    """Compute mean and variance of t(N, K) of (2), N Poisson of mean `rows`, and K of N rows with the event at `rate`.

    >>> mean, variance = _poisson_moments(0.5, 1e-9, 0.5)
    >>> round(mean, 6), round(variance, 6)  # no rows
    (0.0, 0.0)
    """
    n, mass = _poisson(rows)
    mean, variance = _binomial_moments(s, n, np.full(len(n), rate))
    overall = float(mass @ mean)
    return overall, float(mass @ (variance + mean**2)) - overall**2
