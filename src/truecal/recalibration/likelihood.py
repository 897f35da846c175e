"""The log likelihood of scaled logits, computed in blocks of rows, and the temperature that maximises it.

Rows come validated from the contract. Blocks keep the working memory at a few megabytes whatever the size of the logits, and one
pass costs about one row-wise logsumexp. Sums over rows are float64; the sums within a row keep the precision of the logits.

A probability of exactly 0 has no logarithm; it is written as LOG_ZERO, so far below every other logit that its softmax is exactly
0 under every positive scale, and it is not part of a row's support.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import copysign, exp, inf, log

import numpy as np
from numpy.typing import NDArray

from truecal.recalibration.export import softmax
from truecal.types import Float64s, Floats, Indices

LOG_ZERO = -1e30  # derived: a finite log of 0, far below every other
_BLOCK_BYTES = 1 << 19  # derived: two such blocks fit in a level-2 cache
_SAMPLE_ROWS = 2000  # by choice: rows of the first, cheap search for a temperature, at most ...
# by choice: ... and one in so many, after a search in a tenth of those that gives the order of magnitude
_SAMPLE_SHARE = 10
_MIN_VALUES_SAMPLED = (
    8 * _SAMPLE_ROWS
)  # derived: logits from which one more pass over all costs more than the search in a sample
_LOG_STEP = 1e-6  # derived: Newton's error is the square of its last step, 1e-12 in log T
_SAMPLE_STEP = 0.03  # derived: step that ends a search in a sample, whose sampling error in log T is larger
_FLOAT32_STEP = (
    1e-3  # derived: step below which logits of single precision, whose rounding moves log T by 1e-8, are read in double
)
_MAX_LOG_RATIO = 700.0  # derived: largest log ratio of inverse temperatures: exp of more overflows
# by choice: smallest (inverse temperature) x (spread of logits): probabilities uniform to 0.1 %
_MIN_SCALED_SPREAD = 1e-3


@dataclass(frozen=True)
class LabelledLogits:
    """Logits (n, K) with labels (n,), weights (n,) or None, the maximum of each row (n,), and whether any logit is LOG_ZERO."""

    logits: Floats
    labels: Indices
    weights: Float64s | None
    row_max: Floats
    has_zeros: bool

    @classmethod
    def of(cls, logits: Floats, labels: Indices, weights: Float64s | None) -> "LabelledLogits":
        """Hold logits (n, K), labels (n,) and weights (n,), and compute the maximum of each row.

        >>> data = LabelledLogits.of(np.array([[0.0, 2.0], [1.0, LOG_ZERO]]), np.array([1, 0]), None)
        >>> data.row_max, data.has_zeros
        (array([2., 1.]), True)
        """
        return cls(logits, labels, weights, logits.max(axis=1), bool(logits.min() <= LOG_ZERO))

    @property
    def total(self) -> float:
        """Sum of the weights; the number of rows where there are none.

        >>> LabelledLogits.of(np.zeros((2, 2)), np.array([1, 0]), np.array([1.0, 3.0])).total
        4.0
        """
        return float(len(self.labels) if self.weights is None else self.weights.sum())

    @property
    def row_weights(self) -> Float64s:
        """Weight of each row, 1 where none were given.

        >>> LabelledLogits.of(np.zeros((2, 2)), np.array([1, 0]), None).row_weights
        array([1., 1.])
        """
        return np.ones(len(self.labels)) if self.weights is None else self.weights

    def take(self, rows: slice | NDArray[np.bool_]) -> "LabelledLogits":
        """Return the selected rows with their labels, weights and maxima.

        >>> LabelledLogits.of(np.zeros((2, 2)), np.array([1, 0]), None).take(slice(1)).labels
        array([1])
        """
        weights = None if self.weights is None else self.weights[rows]
        parts = {"logits": self.logits[rows], "labels": self.labels[rows], "row_max": self.row_max[rows]}
        return replace(self, weights=weights, **parts)  # type: ignore[arg-type]

    def blocks(self, itemsize: int) -> Iterator[slice]:
        """Yield slices of consecutive rows whose values (rows, K), of `itemsize` bytes each, take about 512 KiB.

        >>> list(LabelledLogits.of(np.zeros((3, 2)), np.array([1, 0, 0]), None).blocks(8))
        [slice(0, 32768, None)]
        """
        step = max(1, _BLOCK_BYTES // (itemsize * self.logits.shape[1]))
        return (slice(i, i + step) for i in range(0, len(self.labels), step))

    def weighted_sum(self, rows: slice, values: Float64s) -> float:
        """Sum `values`, one per row of the slice, each times the weight of its row.

        >>> data = LabelledLogits.of(np.zeros((2, 2)), np.array([1, 0]), np.array([1.0, 3.0]))
        >>> data.weighted_sum(slice(None), np.array([5.0, 2.0]))
        11.0
        """
        return float(values.sum() if self.weights is None else values @ self.weights[rows])

    def of_labels(self, values: Floats) -> Floats:
        """Return the value of each row's label, shape (n,), from values (n, K).

        >>> LabelledLogits.of(np.zeros((2, 2)), np.array([1, 0]), None).of_labels(np.array([[1.0, 2.0], [3.0, 4.0]]))
        array([2., 3.])
        """
        return np.take_along_axis(values, self.labels[:, None], axis=1)[:, 0]

    def label_gap(self) -> Float64s:
        """Return each label's logit less its row's largest, shape (n,); at most 0.

        >>> LabelledLogits.of(np.array([[0.0, 2.0], [1.0, 4.0]]), np.array([1, 0]), None).label_gap()
        array([ 0., -3.])
        """
        return self.of_labels(self.logits).astype(np.float64) - self.row_max

    def impossible(self) -> NDArray[np.bool_]:
        """Return which rows (n,) give their label a probability of exactly 0, a logit of at most LOG_ZERO = -1e30.

        >>> LabelledLogits.of(np.array([[0.0, LOG_ZERO], [1.0, LOG_ZERO]]), np.array([1, 0]), None).impossible()
        array([ True, False])
        """
        ruled_out: NDArray[np.bool_] = self.of_labels(self.logits) <= LOG_ZERO
        return ruled_out

    def raise_to_floor(self, floor: float) -> "LabelledLogits":
        """Return a copy with every logit raised to at least its row's largest minus `floor`.

        >>> LabelledLogits.of(np.array([[0.0, -9.0]]), np.array([0]), None).raise_to_floor(5.0).logits
        array([[ 0., -5.]])
        """
        return LabelledLogits.of(floor_logits(self.logits, floor), self.labels, self.weights)

    def label_sum(self) -> float:
        """Sum each label's logit less its row's largest, times the weight of the row: the linear term of the log likelihood.

        >>> LabelledLogits.of(np.array([[0.0, 2.0], [1.0, 4.0]]), np.array([1, 0]), np.array([1.0, 2.0])).label_sum()
        -6.0
        """
        return self.weighted_sum(slice(None), self.label_gap())

    def spread(self) -> float:
        """Return the largest difference between two logits of one row; logits of LOG_ZERO (probability 0) are left out.

        >>> LabelledLogits.of(np.array([[0.0, 2.0, LOG_ZERO], [1.0, 4.0, 2.0]]), np.array([1, 0]), None).spread()
        3.0
        """
        widest = 0.0
        for rows in self.blocks(self.logits.itemsize):
            block = self.logits[rows]
            low = block.min(axis=1, where=block > LOG_ZERO, initial=np.inf) if self.has_zeros else block.min(axis=1)
            widest = max(widest, float((self.row_max[rows].astype(np.float64) - low).max()))
        return widest


def floor_logits(logits: Floats, floor: float) -> Floats:
    """Raise logits (n, K) to at least their row's largest minus `floor`; an infinite floor leaves them as they are.

    >>> floor_logits(np.array([[0.0, -1.0, -9.0]]), 5.0)
    array([[ 0., -1., -5.]])
    """
    return np.maximum(logits, logits.max(axis=1, keepdims=True) - floor) if np.isfinite(floor) else logits


def scaled_softmax(logits: Floats, scale: float | Float64s, bias: float | Float64s = 0.0) -> Float64s:
    """Compute softmax(scale * z + bias) of each row (n, K) in float64; logits of LOG_ZERO = -1e30 give exactly 0.

    >>> scaled_softmax(np.array([[0.0, LOG_ZERO, 0.0]]), 2.0)
    array([[0.5, 0. , 0.5]])
    """
    scaled = logits.astype(np.float64) * scale + bias
    probs: Float64s = softmax(np.where(logits <= LOG_ZERO, -np.inf, scaled))
    return probs


def temperature_terms(
    data: LabelledLogits, inverse: float, dtype: type[np.floating] = np.float64
) -> tuple[float, float, float]:
    """Sum weights times log Z over rows, Z_i = sum_k exp(b (z_ik - max_k z_ik)); return also both derivatives by b = `inverse`.

    The derivatives are weighted sums over rows of the mean and the variance of the shifted logits under the softmax at
    inverse temperature b.

    >>> data = LabelledLogits.of(np.array([[0.0, 2.0]]), np.array([1]), None)
    >>> log_z, slope, curvature = temperature_terms(data, 0.0)
    >>> round(log_z, 4), slope, curvature  # log 2; mean and variance of -2 and 0 under equal probabilities
    (0.6931, -1.0, 1.0)
    """
    log_z = slope = curvature = 0.0
    for rows in data.blocks(np.dtype(dtype).itemsize):
        shifted = data.logits[rows].astype(dtype, copy=False) - data.row_max[rows, None].astype(dtype, copy=False)
        mass = shifted * dtype(inverse)
        np.exp(mass, out=mass)
        z = mass.sum(axis=1).astype(np.float64)
        mass *= shifted
        first = mass.sum(axis=1).astype(np.float64) / z
        second = np.einsum("ij,ij->i", mass, shifted).astype(np.float64) / z
        log_z += data.weighted_sum(rows, np.log(z))
        slope += data.weighted_sum(rows, first)
        curvature += data.weighted_sum(rows, np.maximum(second - first * first, 0.0))
    return log_z, slope, curvature


def softmax_residuals(logits: Floats, labels: Indices, weights: Float64s) -> tuple[float, Floats]:
    """Compute the weighted sum over rows of -log softmax(logits)[label], and its gradient by the logits (n, K).

    The gradient replaces the logits in their array. `labels` and `weights` have shape (n,).

    >>> loss, gradient = softmax_residuals(np.zeros((1, 2)), np.array([0]), np.array([2.0]))
    >>> round(loss, 4), gradient  # 2 ln 2
    (1.3863, array([[-1.,  1.]]))
    """
    rows = np.arange(len(labels))
    logits -= logits.max(axis=1, keepdims=True)
    of_label = logits[rows, labels].astype(np.float64)
    np.exp(logits, out=logits)
    mass = logits.sum(axis=1, keepdims=True)
    loss = float(weights @ (np.log(mass[:, 0]) - of_label))
    logits /= mass
    logits[rows, labels] -= 1
    logits *= weights[:, None].astype(logits.dtype)
    return loss, logits


def affine_loss(data: LabelledLogits, scale: Float64s, bias: Float64s) -> tuple[float, Float64s, Float64s, bool]:
    """Compute the weighted mean of -log softmax(scale * z + bias)[label], gradients by scale and bias (K,), and separability.

    `scale` has one number or K. The last value is True where every row gives its label a strictly larger probability than any
    other class: then scaling all parameters up increases the likelihood without end, and no finite optimum exists.

    >>> data = LabelledLogits.of(np.array([[0.0, 2.0]]), np.array([1]), None)
    >>> loss, by_scale, by_bias, separable = affine_loss(data, np.zeros(1), np.zeros(2))
    >>> round(loss, 4), by_bias, separable
    (0.6931, array([ 0.5, -0.5]), False)
    """
    classes = data.logits.shape[1]
    loss, separated = 0.0, True
    by_scale, by_bias = np.zeros(classes), np.zeros(classes)
    for rows in data.blocks(8):
        raw, labels = data.logits[rows].astype(np.float64), data.labels[rows]
        value = raw * scale + bias
        if separated:
            of_label = np.take_along_axis(value, labels[:, None], axis=1)
            separated = bool((np.count_nonzero(value >= of_label, axis=1) == 1).all())
        block_loss, residuals = softmax_residuals(value, labels, data.row_weights[rows] / data.total)
        loss += block_loss
        by_bias += residuals.sum(axis=0)
        by_scale += np.einsum("ij,ij->j", residuals, raw)
    return loss, by_scale, by_bias, separated


# ----------------------------------------------------------------------------------------------------
# The inverse temperature of maximum likelihood


@dataclass(frozen=True)
class InverseTemperature:
    """Inverse temperature b, and how its search ended.

    "optimum"; "flat": the optimum is at or beyond uniform probabilities, or all logits of a row are equal (b = 1); "separable":
    every label has its row's largest logit, so b is that of `laplace_inverse_temperature`.
    """

    value: float
    ending: str


def fit_inverse_temperature(data: LabelledLogits) -> InverseTemperature:
    """Maximise the likelihood over the inverse temperature b > 0, in which minus log likelihood is convex.

    Searches in samples of rows give the start, so the full data is read three or four times. There is no finite optimum when
    every label has its row's largest logit (b grows without end): see `laplace_inverse_temperature`. And none above zero when
    the logits carry no information: b stops where the probabilities are uniform to 0.1 %.

    >>> data = LabelledLogits.of(np.array([[0.0, 1.0]] * 4), np.array([1, 1, 1, 0]), None)
    >>> round(fit_inverse_temperature(data).value, 4)  # ln 3: three of four are right
    1.0986
    """
    spread = data.spread()
    if spread == 0.0:
        return InverseTemperature(1.0, "flat")
    lowest = _MIN_SCALED_SPREAD / spread
    if not data.label_gap().any():
        return InverseTemperature(laplace_inverse_temperature(data), "separable")
    start = max(1.0 / spread, lowest)
    if data.logits.size > _MIN_VALUES_SAMPLED:
        rows = min(_SAMPLE_ROWS, -(-len(data.labels) // _SAMPLE_SHARE))
        for count, last_step in ((-(-rows // _SAMPLE_SHARE), 3 * _SAMPLE_STEP), (rows, _SAMPLE_STEP)):
            sample = data.take(slice(None, None, max(1, len(data.labels) // count)))  # evenly spaced rows
            if sample.label_gap().any():
                start = _solve_inverse(sample, lowest, start, last_step)
    value = _solve_inverse(data, lowest, start)
    return InverseTemperature(value, "flat" if value == lowest else "optimum")


def fit_possible_inverse(data: LabelledLogits) -> float:
    """Fit 1 / T by maximum likelihood to the rows whose label has a probability above 0; 1 where there are none.

    >>> data = LabelledLogits.of(np.array([[0.0, LOG_ZERO]]), np.array([1]), None)
    >>> fit_possible_inverse(data)
    1.0
    """
    possible = ~data.impossible()
    return fit_inverse_temperature(data if possible.all() else data.take(possible)).value if possible.any() else 1.0


def laplace_inverse_temperature(data: LabelledLogits) -> float:
    """Solve for the inverse temperature b at which the mean probability of the leading class is (n + 1) / (n + 2) of its limit.

    Laplace's estimate of the accuracy after n rows without an error. The limit is 1, or less where classes tie for the lead.
    Unlike smoothed targets, whose loss is linear in the logits of classes that did not occur, this does not depend on how
    improbable the improbable classes are. Infinite where no row prefers a class.

    >>> data = LabelledLogits.of(np.array([[0.0, 1.0]] * 3), np.array([1, 1, 1]), None)
    >>> round(laplace_inverse_temperature(data), 4)  # confidence 4 / 5: ln 4
    1.3863
    """
    from scipy.optimize import brentq

    spread = data.spread()
    if spread == 0.0:
        return inf

    def confidence(log_b: float) -> float:
        """Compute the weighted mean probability of the leading class at inverse temperature e^log_b."""
        total = 0.0
        for rows in data.blocks(8):
            shifted = data.logits[rows].astype(np.float64) - data.row_max[rows, None]
            with np.errstate(over="ignore"):  # b grows until every other class is at probability 0
                total += data.weighted_sum(rows, 1 / np.exp(shifted * exp(log_b)).sum(axis=1))
        return total / data.total

    low = log(_MIN_SCALED_SPREAD / spread)
    high = low + 1
    while confidence(high + 1) > confidence(high) and high < low + _MAX_LOG_RATIO:
        high += 1
    goal = confidence(high) * (data.total + 1) / (data.total + 2)
    return exp(low) if confidence(low) >= goal else exp(brentq(lambda u: confidence(u) - goal, low, high, xtol=1e-10))


def _solve_inverse(data: LabelledLogits, lowest: float, start: float, last_step: float = _LOG_STEP) -> float:
    """Solve for the inverse temperature b >= `lowest` of least -log likelihood, where its derivative is 0; else return
    `lowest`.

    Newton steps in log b from `start`, replaced by bisection where they leave the bracket, until one is below `last_step`.

    >>> data = LabelledLogits.of(np.array([[0.0, 1.0]] * 4), np.array([1, 1, 1, 0]), None)
    >>> round(_solve_inverse(data, 1e-3, 1.0), 4), _solve_inverse(data, 2.0, 3.0)  # ln 3, or the lower limit
    (1.0986, 2.0)
    """
    label_sum = data.label_sum()
    low, high = -np.inf, np.inf  # u where the derivative is negative, positive
    floor = log(lowest)
    u = max(log(start), floor)
    dtype = data.logits.dtype.type
    for _ in range(200):
        b = exp(u)
        _, slope, curvature = temperature_terms(data, b, dtype)
        derivative = slope - label_sum
        if derivative == 0:
            return b
        if derivative < 0:
            low = u
        elif u <= floor:
            return lowest
        else:
            high = u
        step = -derivative / (b * curvature) if curvature > 0 else -copysign(inf, derivative)
        target = u + min(max(step, -2.0), 2.0)
        if not low < target < high:
            target = (low + high) / 2
        step = abs(target - u)
        u = max(target, floor)
        is_exact = dtype is np.float64 or last_step >= _FLOAT32_STEP
        if is_exact and (step < last_step or u in (low, high)):
            break
        if not is_exact and (step < _FLOAT32_STEP or u in (low, high)):
            # signs computed in single precision may be wrong this near to the root
            dtype, low, high = np.float64, -np.inf, np.inf
    return exp(u)


# ----------------------------------------------------------------------------------------------------
# Other temperatures: with a floor, of least squared error, of the binary loss of the predicted class

_FLOOR_GRID = 25  # by choice: first guesses of the floor; neighbours differ by a factor of 1.5
# Largest |log T| between the temperatures of squared error and of likelihood. Tuned on the 160 splits of
# `tests.recalibration.peers --choose`: with 1, 1.5 and 2 the ensemble had mean log losses of 0.4447, 0.4453 and 0.4460, and was
# above one that searches T from 0.05 to 5 by more than 0.001 in 2, 1 and 0 % of them.
_SQUARED_REACH = 1.5


def fit_floored_temperature(data: LabelledLogits) -> tuple[float, float]:
    """Fit (1 / T, floor c) of softmax(max(z - max z, -c) / T), for rows whose true class may have probability 0.

    How improbable "0" is depends on where it came from: one vote among ten in a nearest-neighbour model, the smallest float in a
    naive Bayes model. So c is a parameter of the likelihood as T is. For every c the likelihood is concave in 1 / T; c is
    searched on a grid scaled by the largest difference between two possible logits of a row, then between the neighbours of the
    best point.
    """
    scale = data.spread() or 1.0

    def loss(log_floor: float) -> float:
        """Compute minus the log likelihood at the best inverse temperature for the floor e^log_floor."""
        floored = data.raise_to_floor(exp(log_floor))
        inverse = fit_inverse_temperature(floored).value
        return temperature_terms(floored, inverse)[0] - inverse * floored.label_sum()

    grid = np.log(np.geomspace(1e-3 * scale, 10 * scale, _FLOOR_GRID))
    best = _minimise_near(loss, float(min(grid, key=loss)), float(grid[1] - grid[0]), 1e-4)
    return fit_inverse_temperature(data.raise_to_floor(exp(best))).value, exp(best)


def fit_squared_inverse(data: LabelledLogits) -> float:
    """Fit 1 / T of the softmax(z / T) of least squared error, within a factor e^1.5 of the likelihood's.

    Without that limit T would go to 0 where every label leads its row, and to a second minimum near 0 where nearly all do.

    >>> data = LabelledLogits.of(np.array([[0.0, 1.0]] * 4), np.array([1, 1, 1, 0]), None)
    >>> round(fit_squared_inverse(data), 3)  # ln 3
    1.099
    """

    def loss(log_inverse: float) -> float:
        """Compute the weighted sum over rows of |p|^2 - 2 p_label, p = softmax(z / T) with 1 / T = e^log_inverse."""
        total = 0.0
        for rows in data.blocks(8):
            p = scaled_softmax(data.logits[rows], exp(log_inverse))
            of_label = np.take_along_axis(p, data.labels[rows, None], axis=1)[:, 0]
            total += data.weighted_sum(rows, np.einsum("ij,ij->i", p, p) - 2 * of_label)
        return total

    return exp(_minimise_near(loss, log(fit_possible_inverse(data)), _SQUARED_REACH, 1e-8))


def _minimise_near(loss: Callable[[float], float], start: float, reach: float, tolerance: float) -> float:
    """Minimise a loss of one number within `reach` of `start`, to `tolerance`; return `start` where the result is no better.

    >>> round(_minimise_near(lambda x: (x - 1) ** 2, 0.0, 3.0, 1e-9), 6)
    1.0
    """
    from scipy.optimize import minimize_scalar

    bounds = (start - reach, start + reach)
    best = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": tolerance})
    return float(best.x) if best.fun < loss(start) else start
