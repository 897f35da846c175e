"""The log likelihood of scaled logits, in blocks of rows: what temperature, bias-corrected and vector scaling maximise.

Rows come validated from the contract. Blocks keep the working memory at a few megabytes whatever the size of the
logits, and one pass costs about one row-wise logsumexp. Sums over rows are float64; a row's own sums keep the precision
of the logits.

A probability of exactly 0 has no logarithm; it is written as LOG_ZERO, so far below every other logit that its softmax
is exactly 0 under every positive scale, and it takes no part in a row's support.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import exp, inf, log

import numpy as np
from numpy.typing import NDArray

from truecal import special
from truecal.special import expit, softmax
from truecal.types import Float64s, Floats, Indices

# ----------------------------------------------------------------------------------------------------
# The log likelihood of scaled logits, in blocks of rows: what temperature, bias-corrected and vector scaling maximise

LOG_ZERO = -1e30
_BLOCK_BYTES = 1 << 19  # two such blocks fit in a level-2 cache


@dataclass(frozen=True)
class LabelledLogits:
    """Logits (n, K) with row maxima, labels and weights."""

    logits: Floats
    labels: Indices
    weights: Float64s | None
    peak: Floats
    has_zeros: bool

    @classmethod
    def of(cls, logits: Floats, labels: Indices, weights: Float64s | None) -> "LabelledLogits":
        return cls(logits, labels, weights, logits.max(axis=1), bool(logits.min() <= LOG_ZERO))

    @property
    def total(self) -> float:
        """Sum of weights."""
        return float(len(self.labels) if self.weights is None else self.weights.sum())

    def take(self, rows: slice | NDArray[np.bool_]) -> "LabelledLogits":
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, logits=self.logits[rows], labels=self.labels[rows], weights=weights, peak=self.peak[rows])

    def sample(self, rows: int) -> "LabelledLogits":
        """About `rows` evenly spaced rows, to find where a search should start."""
        return self.take(slice(None, None, max(1, len(self.labels) // rows)))

    def blocks(self, itemsize: int) -> Iterator[slice]:
        """Slices of rows small enough to stay in the cache."""
        step = max(1, _BLOCK_BYTES // (itemsize * self.logits.shape[1]))
        return (slice(i, i + step) for i in range(0, len(self.labels), step))

    def add(self, rows: slice, values: Float64s) -> float:
        """Weighted sum of one value per row."""
        return float(values.sum() if self.weights is None else values @ self.weights[rows])

    def support(self, rows: slice) -> NDArray[np.bool_]:
        """Which classes of each row have a probability above 0."""
        return self.logits[rows] > LOG_ZERO

    def label_gap(self) -> Float64s:
        """How far each label's logit lies below the row's largest; at most 0."""
        own = np.take_along_axis(self.logits, self.labels[:, None], axis=1)[:, 0]
        gap: Float64s = own.astype(np.float64) - self.peak
        return gap

    def impossible(self) -> NDArray[np.bool_]:
        """Which rows give their true class a probability of exactly 0."""
        own = np.take_along_axis(self.logits, self.labels[:, None], axis=1)[:, 0]
        ruled_out: NDArray[np.bool_] = own <= LOG_ZERO
        return ruled_out

    def floored(self, floor: float) -> "LabelledLogits":
        """The same rows with every logit at most `floor` below its row's largest."""
        return LabelledLogits.of(floored_logits(self.logits, floor), self.labels, self.weights)

    def reward(self) -> float:
        """Weighted sum over rows of the label's shifted logit, the linear term of the log likelihood."""
        return self.add(slice(None), self.label_gap())

    def spread(self) -> float:
        """Largest difference between two logits of one row, probabilities of 0 aside."""
        widest = 0.0
        for rows in self.blocks(self.logits.itemsize):
            block = self.logits[rows]
            low = block.min(axis=1, where=self.support(rows), initial=np.inf) if self.has_zeros else block.min(axis=1)
            widest = max(widest, float((self.peak[rows].astype(np.float64) - low).max()))
        return widest


def floored_logits(logits: Floats, floor: float) -> Floats:
    """Logits, none of them more than `floor` below its row's largest."""
    return np.maximum(logits, logits.max(axis=1, keepdims=True) - floor) if np.isfinite(floor) else logits


def temperature_terms(
    data: LabelledLogits, inverse: float, kind: type[np.floating] = np.float64
) -> tuple[float, float, float]:
    """Sums over rows of log Z and its two derivatives by the inverse temperature b; Z_i = sum_k exp(b (z_ik - max_k
    z_ik)).

    The derivatives are the mean and the variance of the shifted logits under the softmax at inverse temperature b. Rows are
    worked through in the precision `kind`.
    """
    logits = data.logits
    log_z = slope = curvature = 0.0
    for rows in data.blocks(np.dtype(kind).itemsize):
        shifted = logits[rows].astype(kind, copy=False) - data.peak[rows, None].astype(kind, copy=False)
        mass = shifted * kind(inverse)
        np.exp(mass, out=mass)
        z = mass.sum(axis=1).astype(np.float64)
        mass *= shifted
        first = mass.sum(axis=1).astype(np.float64) / z
        second = np.einsum("ij,ij->i", mass, shifted).astype(np.float64) / z
        log_z += data.add(rows, np.log(z))
        slope += data.add(rows, first)
        curvature += data.add(rows, np.maximum(second - first * first, 0.0))
    return log_z, slope, curvature


def affine_loss(data: LabelledLogits, scale: Float64s, bias: Float64s) -> tuple[float, Float64s, Float64s, bool]:
    """Mean negative log likelihood of softmax(scale * z + bias), its gradients by scale and by bias, and "all labels
    lead".

    The last value says whether every row gives its label a strictly larger probability than any other class: then
    scaling all parameters up increases the likelihood without end, and no finite optimum exists.
    """
    total, classes = data.total, data.logits.shape[1]
    loss, separated = 0.0, True
    by_scale, by_bias = np.zeros(classes), np.zeros(classes)
    for rows in data.blocks(8):
        raw = data.logits[rows].astype(np.float64)
        value = raw * scale + bias
        label = data.labels[rows]
        index = np.arange(len(label))
        own = value[index, label]
        if separated:
            separated = bool((np.count_nonzero(value >= own[:, None], axis=1) == 1).all())
        top = value.max(axis=1, keepdims=True)
        excess = np.exp(value - top)
        z = excess.sum(axis=1, keepdims=True)
        excess /= z
        excess[index, label] -= 1
        loss += data.add(rows, (top + np.log(z))[:, 0] - own)
        if data.weights is not None:
            excess *= data.weights[rows, None]
        by_bias += excess.sum(axis=0)
        by_scale += np.einsum("ij,ij->j", excess, raw)
    return loss / total, by_scale / total, by_bias / total, separated


def scaled_softmax(logits: Floats, scale: float | Float64s, bias: float | Float64s = 0.0) -> Float64s:
    """softmax(scale * z + bias) by rows, in float64; a probability of exactly 0 stays 0."""
    value = np.asarray(logits, np.float64) * scale + bias
    if logits.min() <= LOG_ZERO:
        value[logits <= LOG_ZERO] = -np.inf
    return softmax(value)


# ----------------------------------------------------------------------------------------------------
# Safeguarded Newton's method: for the inverse temperature, and for a logistic curve that never falls

_SAMPLE = 2000  # rows of the first, cheap search, at most ...
_TENTH = 10  # ... and one in so many, after a search in a tenth of those that finds the order of magnitude
_MANY = 8 * _SAMPLE  # numbers from which reading them all once more costs more than the search
_STEP = 1e-6  # Newton's error is the square of its last step: 1e-12 in log T, about what rounding leaves of the sums
_ROUGH = 0.03  # step that ends a search in a sample, whose rows move log T by more
_COARSE = 1e-3  # step below which logits of single precision, whose rounding moves log T by 1e-8, are read in double
_WIDEST = 700.0  # log of the largest ratio of inverse temperatures that is tried
_FLATTEST = 1e-3  # smallest (inverse temperature) x (spread of logits): probabilities within 0.1 % of uniform


@dataclass(frozen=True)
class InverseTemperature:
    """Where the search ended, and why: "optimum", "flat" (the optimum is at or beyond uniform) or "separable"."""

    value: float
    ending: str


def fit_inverse_temperature(data: LabelledLogits) -> InverseTemperature:
    """Maximise the likelihood over the inverse temperature b > 0, in which minus log likelihood is convex.

    Newton's step is taken in log b on the derivative, which increases with b, and is replaced by bisection when it
    leaves the bracket. A search over a sample of rows gives the start, so the full data is read three or four times.

    There is no finite optimum when every label has its row's largest logit (b grows without end): then the mean confidence
    is made Laplace's estimate of the accuracy after n rows without an error, (n + 1) / (n + 2). And none above zero when the
    logits carry no information: b stops where the probabilities are uniform to 0.1 %.
    """
    spread = data.spread()
    if spread == 0.0:
        return InverseTemperature(1.0, "flat")
    lowest = _FLATTEST / spread
    if not data.label_gap().any():
        return InverseTemperature(earned_inverse(data), "separable")
    start = max(1.0 / spread, lowest)
    if data.logits.size > _MANY:
        rows = min(_SAMPLE, -(-len(data.labels) // _TENTH))
        for count, enough in ((-(-rows // _TENTH), 3 * _ROUGH), (rows, _ROUGH)):
            sample = data.sample(count)
            if sample.label_gap().any():
                start = _root(sample, lowest, start, enough)
    value = _root(data, lowest, start)
    if value == lowest:
        return InverseTemperature(value, "flat")
    return InverseTemperature(value, "optimum")


def earned_inverse(data: LabelledLogits) -> float:
    """The b at which the mean probability of the leading class is (n + 1) / (n + 2) of what it can become.

    More than that no n rows have earned, even if every label leads. It can become 1, or less where classes tie for the lead.
    Unlike smoothed targets, whose loss is linear in the logits of classes that did not occur, this does not depend on how
    improbable the improbable classes are. Infinite where no row prefers a class.
    """
    from scipy.optimize import brentq

    spread = data.spread()
    if spread == 0.0:
        return inf
    lowest = _FLATTEST / spread

    def confidence(log_b: float) -> float:
        total = 0.0
        for rows in data.blocks(8):
            shifted = data.logits[rows].astype(np.float64) - data.peak[rows, None]
            with np.errstate(over="ignore"):  # b grows until every other class is at probability 0
                total += data.add(rows, 1 / np.exp(shifted * exp(log_b)).sum(axis=1))
        return total / data.total

    low = log(lowest)
    high = low + 1
    while confidence(high + 1) > confidence(high) and high < log(lowest) + _WIDEST:
        high += 1
    goal = confidence(high) * (data.total + 1) / (data.total + 2)
    return exp(low) if confidence(low) >= goal else exp(brentq(lambda u: confidence(u) - goal, low, high, xtol=1e-10))


def _root(data: LabelledLogits, lowest: float, start: float, enough: float = 0.0) -> float:
    """The b where the derivative of minus log likelihood is 0, or `lowest` when it is already positive there; a step below
    `enough` ends the search early."""
    reward = data.reward()
    low, high = -np.inf, np.inf  # log b where the derivative is known to be negative, positive
    floor = log(lowest)
    u = max(log(start), floor)
    kind = data.logits.dtype.type
    before: tuple[float, float, float] | None = None
    for _ in range(200):
        b = exp(u)
        _, slope, curvature = temperature_terms(data, b, kind)
        derivative = slope - reward
        if derivative < 0:
            low = u
        else:
            high = u
            if u <= floor:
                return lowest
        if derivative == 0 and kind is np.float64:
            return b
        step = -derivative / (b * curvature) if curvature > 0 else -np.inf if derivative > 0 else np.inf
        step = min(max(step, -2.0), 2.0)
        point = (u, derivative, b * curvature)
        # Between two places of different signs, or a little beyond the nearer one
        if (
            before is not None
            and curvature > 0
            and (derivative * before[1] < 0 or abs(derivative) < abs(before[1]) / 4)
        ):
            step = _interpolated(before, point) - u
        before = point if curvature > 0 else None
        after = u + step
        if not low < after < high:
            after = (low + high) / 2
            step = after - u
        u = max(after, floor)
        if abs(step) < enough or (kind is np.float64 and (abs(step) < _STEP or u in (low, high))):
            break
        if kind is not np.float64 and (abs(step) < _COARSE or u in (low, high)):
            kind, low, high = np.float64, -np.inf, np.inf  # signs found in single precision may be wrong this near
            before = None
    return exp(u)


def _interpolated(first: tuple[float, float, float], second: tuple[float, float, float]) -> float:
    """Where a rising function is 0, from two places near there: place, value and slope of both.

    The place is taken as the cubic of the value that has these places and slopes (Hermite's), whose error is the product of the
    squares of theirs: a pass over the data less than Newton's step takes from the same two.
    """
    (u0, d0, r0), (u1, d1, r1) = first, second
    width = d1 - d0
    t = -d0 / width
    ends = (1 + 2 * t) * (1 - t) ** 2 * u0 + t**2 * (3 - 2 * t) * u1
    return ends + t * (1 - t) ** 2 * width / r0 - t**2 * (1 - t) * width / r1


def fit_rising_logistic(features: Float64s, targets: Float64s, weights: Float64s) -> Float64s:
    """Like `fit_curve`, with no coefficient (the intercept aside) below 0: the curve never falls as features grow.

    The problem is convex, so when the free optimum has a negative coefficient the best one lies where some coefficient
    is 0: every choice of zeros is tried, which for one or two features is at most three more fits.
    """
    count = features.shape[1]
    free = special.fit_curve(features, targets, weights)
    if (free[:-1] >= 0).all():
        return free
    best, least = free, np.inf
    for kept in ((), *((k,) for k in range(count) if count > 1)):
        tried = np.zeros(count + 1)
        part = special.fit_curve(features[:, list(kept)], targets, weights)
        tried[[*kept, count]] = part
        loss = special.logistic_loss(features @ tried[:-1] + tried[-1], targets, weights)[0]
        if (tried[:-1] >= 0).all() and loss < least:
            best, least = tried, loss
    return best


# ----------------------------------------------------------------------------------------------------
# A logistic curve of least squares: the difference of curve and outcomes, not the likelihood

_STEPS = 200
_CLOSE = 1e-12  # relative fall of the loss at which a minimum counts as reached


def least_squares(features: Float64s, targets: Float64s, weights: Float64s, start: Float64s) -> Float64s:
    """Coefficients (the intercept last) of sigmoid(features @ slopes + c) with the least sum of weighted squared differences.

    Gauss-Newton steps of Levenberg and Marquardt: with residuals r and Jacobian J, the step solves
    (J'WJ + d diag(J'WJ)) s = J'W r; the damping d falls by 3 after a step that lowers the loss and rises by 4 after one that does
    not. Slopes stay at 0 or above, so that the curve never falls.

    >>> x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> y = expit(1.5 * x[:, 0] + 0.5)
    >>> least_squares(x, y, np.ones(4), np.array([1.0, 0.0])).round(6)
    array([1.5, 0.5])
    """
    rows = np.column_stack([features, np.ones(len(features))])
    found, damping = start.astype(np.float64), 1e-3
    curve = expit(rows @ found)
    loss = float(weights @ (targets - curve) ** 2)
    for _ in range(_STEPS):
        jacobian = (curve * (1 - curve))[:, None] * rows
        squares = jacobian.T @ (weights[:, None] * jacobian)
        size = np.maximum(np.diag(squares), 1e-300)
        step = np.linalg.solve(squares + damping * np.diag(size), jacobian.T @ (weights * (targets - curve)))
        tried = found + step
        tried[:-1] = np.maximum(tried[:-1], 0.0)
        there = expit(rows @ tried)
        lower = float(weights @ (targets - there) ** 2)
        if not lower < loss:
            damping *= 4
            if damping > 1e12:
                break
            continue
        done = loss - lower <= _CLOSE * loss
        found, curve, loss, damping = tried, there, lower, damping / 3
        if done:
            break
    return found


# ----------------------------------------------------------------------------------------------------
# L-BFGS for smooth convex functions of many variables, in the precision of the start, with few vectors of memory

_LONG = 100_000  # a vector of more numbers is long: fewer are kept, and the search stops earlier
_STOP = 1e-15  # half the squared gradient, in variables of unit curvature: how far the loss is above its minimum
_STOP_LONG = 1e-9


def minimise(function: Callable[[Floats], tuple[float, Floats]], start: Floats, most: int = 500) -> Floats:
    """Where `function`, which returns its value and gradient, is smallest. Variables should have a curvature of about 1.

    Steps along the quasi-Newton direction, halved until the value falls by a tenth of what the slope promises.
    """
    long = start.size >= _LONG
    kept, stop = (4, _STOP_LONG) if long else (20, _STOP)
    x = start
    value, gradient = function(x)
    steps: list[Floats] = []
    changes: list[Floats] = []
    for _ in range(most):
        if 0.5 * float(gradient @ gradient) <= stop * max(1.0, abs(value)):
            break
        direction = _direction(gradient, steps, changes)
        slope = float(direction @ gradient)
        if slope >= 0:
            steps, changes = [], []
            direction = -gradient
            slope = -float(gradient @ gradient)
        length, tried, after = 1.0, value, gradient
        while length > 1e-10:
            tried, after = function(x + x.dtype.type(length) * direction)
            if tried <= value + 0.1 * length * slope:
                break
            length /= 2
        # no step is short enough to improve: rounding is all that is left
        if not tried < value:
            break
        step = x.dtype.type(length) * direction
        change = after - gradient
        if float(step @ change) > 1e-10 * float(change @ change):
            steps, changes = [*steps[1 - kept :], step], [*changes[1 - kept :], change]
        x, value, gradient = x + step, tried, after
    return x


def _direction(gradient: Floats, steps: list[Floats], changes: list[Floats]) -> Floats:
    """Minus the inverse curvature times the gradient, from the last steps (the two loops of Nocedal 1980)."""
    q = -gradient
    shares = []
    for step, change in zip(reversed(steps), reversed(changes), strict=True):
        share = float(step @ q) / float(step @ change)
        q = q - gradient.dtype.type(share) * change
        shares.append(share)
    if steps:
        q = q * gradient.dtype.type(float(steps[-1] @ changes[-1]) / float(changes[-1] @ changes[-1]))
    for (step, change), share in zip(zip(steps, changes, strict=True), reversed(shares), strict=True):
        other = float(change @ q) / float(step @ change)
        q = q + gradient.dtype.type(share - other) * step
    return q
