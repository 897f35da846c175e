"""Fits of maps with several parameters: scales and biases, full matrices, mixtures, rising logistic curves and splines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal import special
from truecal.recalibration.likelihood import (
    LabelledLogits,
    affine_loss,
    floor_logits,
    scaled_softmax,
    softmax_residuals,
)
from truecal.types import Float64s, Floats

# ----------------------------------------------------------------------------------------------------
# softmax(scale * z + bias)

# Strengths of the penalty on scales and biases, in units of K / n; tuned ones on 160 splits (`tests.recalibration.peers --choose`).
_PENALTY = 1e-3  # by choice: of parameters that are meant to be free
# Tuned, where rows are separable: with 0.01, 0.1 and 1, the 10 separable splits had mean log losses of 0.133, 0.098 and 0.093, and
# 0, 2 and 4 of them were above a fit without a penalty by more than 0.001.
_PENALTY_SEPARABLE = 0.1
# Tuned, where rows are few, times K / n: with 0, 0.2, 0.7 and 2, vector scaling had mean log losses of 0.480, 0.472, 0.467 and
# 0.464, and was above a fit without a penalty by more than 0.001 in 6, 8, 8 and 9 % of the splits; more than 0.8 shows in a fit to
# 1500 rows.
_PENALTY_FEW_ROWS = 0.7


def fit_scale_and_bias(data: LabelledLogits, start: Float64s) -> tuple[Float64s, Float64s, bool]:
    """Fit scales (one for all classes, or K, as in `start`) and K biases by penalised maximum likelihood.

    Returns scale (of the shape of `start`), bias (K,) with mean 0, and whether the data are separable: some parameters of the
    search gave every label the largest probability of its row, so that the likelihood alone has no optimum. The penalty is
    _PENALTY, or if larger _PENALTY_SEPARABLE for separable data and _PENALTY_FEW_ROWS K / n for others; but _PENALTY where a
    class never occurs, whose bias should become very negative.

    >>> data = LabelledLogits.of(np.array([[0.0, 1.0]] * 400), np.repeat([1, 0], [300, 100]), None)
    >>> scale, bias, separable = fit_scale_and_bias(data, np.ones(1))
    >>> round(float(scale[0] + bias[1] - bias[0]), 2), separable  # log odds ln 3
    (1.1, False)
    """
    classes = data.logits.shape[1]
    scale, bias, separable = _fit_penalised(data, start, _PENALTY)
    penalty = _PENALTY_SEPARABLE if separable else _PENALTY_FEW_ROWS * classes / data.total
    if penalty > _PENALTY and np.bincount(data.labels, minlength=classes).all():
        scale, bias, _ = _fit_penalised(data, start, penalty)
    return scale, bias, separable


def _fit_penalised(data: LabelledLogits, start: Float64s, penalty: float) -> tuple[Float64s, Float64s, bool]:
    """Minimise the mean loss + (K / n) penalty (|scale / start - 1|^2 + |bias|^2) over scales (as `start`) and biases (K,).

    Returns both and whether the data are separable. The problem is convex. Scales are optimised as multiples of `start`, so that
    logits of any size give a well-conditioned problem. The bias is defined up to a constant; its mean is 0.
    """
    from scipy.optimize import Bounds, minimize

    scales, classes = len(start), data.logits.shape[1]
    centre = np.concatenate([np.ones(scales), np.zeros(classes)])
    strength = penalty * classes / data.total
    separable = False

    def loss(theta: Float64s) -> tuple[float, Float64s]:
        """Compute the penalised mean loss and its gradient at theta = (scale / start, bias), shape (scales + K,)."""
        nonlocal separable
        value, by_scale, by_bias, labels_lead = affine_loss(data, start * theta[:scales], theta[scales:])
        separable |= labels_lead
        by_scale = by_scale * start
        gradient = np.concatenate([by_scale if scales > 1 else by_scale.sum(keepdims=True), by_bias])
        deviation = theta - centre
        return value + strength * float(deviation @ deviation), gradient + 2 * strength * deviation

    low = np.full(len(centre), -np.inf)
    if scales == 1:
        low[0] = 1e-6  # a temperature is positive
    options: Any = {"maxiter": 2000, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-9}
    theta = minimize(loss, centre, jac=True, method="L-BFGS-B", bounds=Bounds(low, np.inf), options=options).x
    bias = theta[scales:]
    return start * theta[:scales], bias - bias.mean(), separable


# ----------------------------------------------------------------------------------------------------
# Ridge-penalised matrix scaling: softmax(x + D x + b) of smoothed, temperature-scaled log probabilities x
#
#     x_i = log((1 - e) softmax(max(z_i - max z_i, -c) / T) + e / K),   e = 1 / (n + 1)
#     minimise  mean_i -log softmax(x_i + D x_i + b)[y_i]
#               + (K / n) (diagonal |diag D|^2 + intercept |b|^2) + (K (K - 1) / n) off_diagonal |D off its diagonal|^2
#
# D = 0, b = 0 is temperature scaling, to which the penalty shrinks. The strengths grow with the number of parameters of a kind and
# fall with the number of rows (Berta, Holzmüller, Jordan and Bach 2026); n is the sum of weights. The mixture with e / K keeps
# logarithms finite: one impossible row costs log(K (n + 1)) and no more. The floor c is infinite unless some row's true class has
# a probability of exactly 0.

_BLOCK_VALUES = 1 << 20  # derived: logits of a block of rows; its working arrays take some 30 MB
# by choice: from so many parameters on, products are in the precision of the logits and the search stops earlier
_MANY_PARAMETERS = 100_000
# by choice: strength on a diagonal that is meant to be free: the optimum stays finite for separable data
_MIN_DIAGONAL = 1e-2


@dataclass(frozen=True)
class Penalty:
    """Strengths of the penalties on the three kinds of parameters; `off_diagonal` None leaves those at 0."""

    diagonal: float
    off_diagonal: float | None
    intercept: float


@dataclass(frozen=True)
class SmoothLogs:
    """The map from z to x = log((1 - e) softmax(max(z - max z, -c) / T) + e / K).

    `inverse` is 1 / T, `uniform` the share e of the uniform distribution, `floor` c, which may be infinite.
    """

    inverse: float
    uniform: float
    floor: float

    def __call__(self, logits: Floats, dtype: type[np.floating] = np.float64) -> Floats:
        """Compute x (n, K) of logits z (n, K), in the precision `dtype`.

        >>> x = SmoothLogs(1.0, 0.5, np.inf)(np.array([[0.0, -1e30]]))
        >>> np.exp(x)  # half of (1, 0) and half of (1/2, 1/2)
        array([[0.75, 0.25]])
        """
        value = logits - logits.max(axis=1, keepdims=True)
        value = floor_logits(value, self.floor).astype(dtype, copy=False)
        value *= dtype(self.inverse)
        # without a floor, a class that was ruled out is 1e30 below the others: its exponential is 0
        np.exp(value, out=value)
        value *= dtype(1 - self.uniform) / value.sum(axis=1, keepdims=True)
        value += dtype(self.uniform / value.shape[1])
        return np.log(value, out=value)


def fit_matrix(data: LabelledLogits, smooth: SmoothLogs, penalty: Penalty) -> tuple[Float64s, Float64s]:
    """Fit D and b of softmax(x + D x + b), x = smooth(logits), by penalised maximum likelihood: L-BFGS from 0.

    Returns D of shape (K, K), or its diagonal (K,) where `penalty.off_diagonal` is None, and b (K,). Variables are scaled by the
    expected curvature.
    """
    from scipy.optimize import minimize

    problem = MatrixProblem.of(data, smooth, penalty)
    is_large = problem.strengths.size >= _MANY_PARAMETERS
    # the loss is flat to rounding well before its gradient is 0: only the gradient, or no further descent, ends a small fit
    options: Any = {"maxcor": 4, "ftol": 1e-9, "gtol": 1e-5} if is_large else {"maxcor": 50, "ftol": 0, "gtol": 1e-10}
    options["maxiter"] = 500
    theta = minimize(problem.loss, np.zeros(problem.strengths.size), jac=True, method="L-BFGS-B", options=options).x
    change, bias = problem.unpack(theta)
    return change.astype(np.float64), bias.astype(np.float64)


@dataclass(frozen=True, eq=False)
class MatrixProblem:
    """Penalised mean log loss of softmax(x + D x + b) as a function of scaled variables, D first, then b."""

    data: LabelledLogits
    smooth: SmoothLogs
    strengths: Float64s  # penalty per parameter, in the shape (K, K + 1) or (K, 2)
    scale: Float64s  # variable = parameter / scale
    dtype: type[np.floating]

    @classmethod
    def of(cls, data: LabelledLogits, smooth: SmoothLogs, penalty: Penalty) -> "MatrixProblem":
        """Set up the problem from logits (n, K); variables are parameters times sqrt(2 penalty + curvature).

        Penalties, with n the total weight: K / n on the diagonal and biases, K (K - 1) / n off the diagonal, each times its
        strength (on the diagonal of a full D at least 0.01). From 100,000 parameters on, products have the precision of the
        logits, else float64.

        >>> data = LabelledLogits.of(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([1, 0]), None)
        >>> MatrixProblem.of(data, SmoothLogs(1.0, 0.1, np.inf), Penalty(0.5, 0.25, 0.75)).strengths  # K / n = 1, K (K - 1) / n = 1
        array([[0.5 , 0.25, 0.75],
               [0.25, 0.5 , 0.75]])
        """
        count, total = data.logits.shape[1], data.total
        per_class, per_pair = count / total, count * (count - 1) / total
        if penalty.off_diagonal is None:
            strengths = np.empty((count, 2))
            strengths[:, 0] = penalty.diagonal * per_class
        else:
            strengths = np.full((count, count + 1), penalty.off_diagonal * per_pair)
            np.fill_diagonal(strengths, max(penalty.diagonal, _MIN_DIAGONAL) * per_class)
        strengths[:, -1] = penalty.intercept * per_class
        dtype = data.logits.dtype.type if strengths.size >= _MANY_PARAMETERS else np.float64
        unscaled = cls(data, smooth, strengths, np.ones(()), dtype)
        return cls(data, smooth, strengths, 1 / np.sqrt(2 * strengths + unscaled._curvature()), dtype)

    @property
    def diagonal_only(self) -> bool:
        """Whether the matrix D that is fitted is diagonal, one number per class: `strengths` has 2 columns instead of K + 1.

        >>> data = LabelledLogits.of(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([1, 0]), None)
        >>> MatrixProblem.of(data, SmoothLogs(1.0, 0.1, np.inf), Penalty(1.0, None, 1.0)).diagonal_only
        True
        """
        return self.strengths.shape[1] == 2

    def unpack(self, theta: Float64s) -> tuple[Floats, Floats]:
        """Split theta, ((K + 1) K,) or (2 K,), times `scale` into D, of shape (K, K) or its diagonal (K,), and b (K,).

        A row of theta.reshape(K, -1) belongs to a class: its row of D (or one number), then its entry of b.

        >>> data = LabelledLogits.of(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([1, 0]), None)
        >>> problem = MatrixProblem.of(data, SmoothLogs(1.0, 0.1, np.inf), Penalty(0.5, 0.25, 0.75))
        >>> problem.unpack(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) / problem.scale.ravel())
        (array([[1., 2.],
               [4., 5.]]), array([3., 6.]))
        """
        parameters = (theta.reshape(self.strengths.shape) * self.scale).astype(self.dtype, copy=False)
        return (parameters[:, 0] if self.diagonal_only else parameters[:, :-1]), parameters[:, -1]

    def _blocks(self) -> Iterator[tuple[Floats, NDArray[np.intp], Float64s]]:
        """Yield x (rows, K), labels (rows,), and weights divided by the total of all, by blocks of rows."""
        rows, count = self.data.logits.shape
        step = max(1, _BLOCK_VALUES // count)
        for start in range(0, rows, step):
            block = slice(start, start + step)
            weights = self.data.row_weights[block] / self.data.total
            yield self.smooth(self.data.logits[block], self.dtype), self.data.labels[block], weights

    def _curvature(self) -> Float64s:
        """Approximate the second derivatives of the loss at D = 0, b = 0, by parameter, in the shape of `strengths`, biases last.

        With p = exp(x), that of D_jj is sum_i w_i p_ij (1 - p_ij) x_ij^2 and that of b_j sum_i w_i p_ij (1 - p_ij); off the
        diagonal that of D_jk is sum_i w_i p_ij (1 - p_ij) times sum_i w_i x_ik^2, as if the two were independent.
        """
        count = self.data.logits.shape[1]
        variance, squares, diagonal = np.zeros(count), np.zeros(count), np.zeros(count)
        for x, _, w in self._blocks():
            p = np.exp(x)
            noise = w[:, None] * p * (1 - p)
            variance += noise.sum(axis=0)
            squares += w @ x**2
            diagonal += np.einsum("ij,ij->j", noise, x**2)
        if self.diagonal_only:
            return np.column_stack([diagonal, variance])
        curvature = np.outer(variance, np.append(squares, 1.0))
        np.fill_diagonal(curvature, diagonal)
        return curvature

    def loss(self, theta: Float64s) -> tuple[float, Float64s]:
        """Compute the penalised mean loss and its gradient by the scaled variables at `theta`, shape (K (K + 1),) or (2 K,).

        >>> data = LabelledLogits.of(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([1, 0]), None)
        >>> problem = MatrixProblem.of(data, SmoothLogs(1.0, 0.0, np.inf), Penalty(0.5, 0.25, 0.75))
        >>> round(problem.loss(np.zeros(6))[0], 4)  # log(1 + exp(-1)): nothing is changed
        0.3133
        """
        change, bias = self.unpack(theta)
        total = 0.0
        gradient = np.zeros(self.strengths.shape)
        for x, labels, w in self._blocks():
            value = x * (1 + change) + bias if self.diagonal_only else x + x @ change.T + bias
            loss, residuals = softmax_residuals(value, labels, w)
            total += loss
            gradient[:, -1] += residuals.sum(axis=0)
            if self.diagonal_only:
                gradient[:, 0] += np.einsum("ij,ij->j", residuals, x)
            else:
                gradient[:, :-1] += residuals.T @ x
        parameters = theta.reshape(self.strengths.shape) * self.scale
        total += float((self.strengths * parameters**2).sum())
        return total, ((gradient + 2 * self.strengths * parameters) * self.scale).ravel()


# ----------------------------------------------------------------------------------------------------
# Weights of a mixture of known distributions


def fit_squared_weights(data: LabelledLogits, inverses: Sequence[float], low: Float64s) -> Float64s:
    """Fit shares a >= low, sum 1, of softmax(b_j z) and, last, the uniform distribution, by least squared error.

    `inverses` are the b_j; `low` and the result have one number for each and one for the uniform distribution.

    The error is a' G a - 2 r' a, with the products G of the parts and their values r at the labels. Every choice of parts at
    their lowest share is tried (parts are few); the first with the least error counts.

    >>> data = LabelledLogits.of(np.array([[0.0, np.log(3.0)]] * 4), np.array([1, 1, 1, 0]), None)
    >>> fit_squared_weights(data, (1.0,), np.zeros(2)).round(6)  # softmax(z) is right: 3 of 4
    array([1., 0.])
    """
    parts = len(low)
    products, at_labels = np.zeros((parts, parts)), np.zeros(parts)
    for rows in data.blocks(8):
        z = data.logits[rows]
        p = np.stack([*(scaled_softmax(z, b) for b in inverses), np.full(z.shape, 1 / z.shape[1])])
        weights = data.row_weights[rows] / data.total
        products += np.einsum("ink,jnk,n->ij", p, p, weights)
        at_labels += p[:, np.arange(p.shape[1]), data.labels[rows]] @ weights
    best, best_error = low, np.inf
    for free in map(list, chain.from_iterable(combinations(range(parts), size) for size in range(1, parts + 1))):
        shares = low.copy()
        shares[free] = 0.0
        system = np.ones((len(free) + 1, len(free) + 1))
        system[:-1, :-1], system[-1, -1] = products[np.ix_(free, free)], 0.0
        right_side = np.append((at_labels - products @ shares)[free], 1 - shares.sum())
        shares[free] = np.linalg.lstsq(system, right_side, rcond=None)[0][:-1]
        error = float(shares @ products @ shares - 2 * at_labels @ shares)
        if (shares >= low - 1e-12).all() and error < best_error - 1e-15:
            best, best_error = np.maximum(shares, low), error
    return best / best.sum()


# ----------------------------------------------------------------------------------------------------
# Logistic curves that never fall


def platt_targets(outcomes: Float64s, weights: Float64s) -> Float64s:
    """Replace outcomes 1 and 0, (n,), by Platt's targets (n+ + 1) / (n+ + 2) and 1 / (n- + 2), n+ and n- the sums of weights.

    >>> platt_targets(np.array([1.0, 0.0, 1.0]), np.ones(3))  # 3 / 4 and 1 / 3
    array([0.75      , 0.33333333, 0.75      ])
    """
    ones = float(weights @ outcomes)
    zeros = float(weights.sum()) - ones
    return np.where(outcomes > 0, (ones + 1) / (ones + 2), 1 / (zeros + 2))


def fit_rising_logistic(features: Float64s, targets: Float64s, weights: Float64s, *, squared: bool = False) -> Float64s:
    """Fit sigmoid(features @ slopes + c) with slopes >= 0 by maximum likelihood, or by least squares (`squared`).

    Features are (n, k) with k at most 2, targets in [0, 1] and weights (n,). Returns slopes and c, shape (k + 1,).

    Where the free optimum has a negative slope some slope is 0: every choice of zeros is tried, for one or two features at most
    three more fits.

    >>> features, targets = np.array([[0.0], [1.0]]), np.array([0.25, 0.75])
    >>> fit_rising_logistic(features, targets, np.ones(2)).round(4)  # 2 ln 3 and -ln 3
    array([ 2.1972, -1.0986])
    >>> fit_rising_logistic(-features, targets, np.ones(2)).round(4) + 0.0  # the slope would be negative
    array([0., 0.])
    """
    count = features.shape[1]

    def fit_subset(free: Sequence[int]) -> Float64s:
        """Fit the slopes of the features `free` (indices), with all others at 0; return slopes and c, (k + 1,)."""
        coefficients = np.zeros(count + 1)
        fit = _fit_least_squares if squared else special.fit_curve
        coefficients[[*free, count]] = fit(features[:, list(free)], targets, weights)
        return coefficients

    def loss(coefficients: Float64s) -> float:
        """Compute the criterion of slopes and c, (k + 1,): minus log likelihood, or the weighted sum of squared errors."""
        value = features @ coefficients[:-1] + coefficients[-1]
        if squared:
            return float(weights @ (special.expit(value) - targets) ** 2)
        return special.logistic_loss(value, targets, weights)[0]

    best = fit_subset(range(count))
    if (best[:-1] >= 0).all():
        return best
    candidates = [fit_subset(free) for free in ((), *((k,) for k in range(count) if count > 1))]
    return min((c for c in candidates if (c[:-1] >= 0).all()), key=loss)


def _fit_least_squares(features: Float64s, targets: Float64s, weights: Float64s) -> Float64s:
    """Fit slopes and intercept (k + 1,) of a logistic curve in features (n, k) to targets (n,) by weighted least squares.

    Levenberg-Marquardt, started at maximum likelihood.

    >>> _fit_least_squares(np.array([[0.0], [1.0]]), np.array([0.25, 0.75]), np.ones(2)).round(4)  # 2 ln 3 and -ln 3
    array([ 2.1972, -1.0986])
    """
    from scipy.optimize import least_squares

    design = np.column_stack([features, np.ones(len(features))])
    root = np.sqrt(weights)

    def residuals(coefficients: Float64s) -> Float64s:
        """Compute weighted residuals (n,)."""
        return root * (special.expit(design @ coefficients) - targets)

    def jacobian(coefficients: Float64s) -> Float64s:
        """Compute the derivatives of the residuals (n, k + 1)."""
        p = special.expit(design @ coefficients)
        return (root * p * (1 - p))[:, None] * design

    start = special.fit_curve(features, targets, weights)
    fit = least_squares(residuals, start, jacobian, method="lm", ftol=1e-14, xtol=1e-14, gtol=1e-14)
    coefficients: Float64s = fit.x
    return coefficients


# ----------------------------------------------------------------------------------------------------
# Slopes of a monotone quadratic spline on the logistic scale: penalised likelihood with slopes >= 0

_PENALTIES = 10.0 ** np.arange(-2, 7)  # by choice: strengths tried, for scores of unit spread
_MAX_STEPS = 60  # by choice: steps of Newton's method at most


def integrate_hats(x: Float64s, knots: Float64s) -> Float64s:
    """Integrate the hat functions of the knots, constant beyond the end knots, from the first knot to x; shape (n, knots).

    >>> integrate_hats(np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0]))
    array([[0.  , 0.  ],
           [0.75, 0.25],
           [1.  , 2.  ]])
    """
    gaps = np.diff(knots)
    share = np.clip((x[:, None] - knots[:-1]) / gaps, 0.0, 1.0)
    # over one gap the hat of its first knot falls from 1 to 0 and that of its second knot rises from 0 to 1
    of_second = gaps * share**2 / 2
    value = np.zeros((len(x), len(knots)))
    value[:, :-1] += gaps * share - of_second
    value[:, 1:] += of_second
    value[:, 0] += np.minimum(x - knots[0], 0.0)
    value[:, -1] += np.maximum(x - knots[-1], 0.0)
    return value


@dataclass(frozen=True, eq=False)
class _SplineProblem:
    """Penalised negative log likelihood of sigmoid(theta @ design), with every unknown but the last (the intercept) >= 0.

    The loss is the weighted cross-entropy of `targets` plus theta' penalty theta / 2. With u = knots + 1 unknowns, `design` is
    (u, n), `targets` and `weights` (n,), `penalty` (u, u).
    """

    design: Float64s  # one row per unknown: the slopes, then the intercept
    targets: Float64s
    weights: Float64s
    penalty: Float64s

    def terms(self, theta: Float64s) -> tuple[float, Float64s, Float64s]:
        """Compute the penalised loss at theta (knots + 1,), its gradient, and the Hessian of the loss without the penalty.

        theta are the slopes at the knots, then the intercept.

        >>> one = np.ones((1, 1))
        >>> loss, gradient, hessian = _SplineProblem(one, np.array([0.75]), np.ones(1), np.zeros((1, 1))).terms(np.zeros(1))
        >>> round(loss, 4), gradient, hessian  # ln 2, 1/2 - 3/4, 1/4
        (0.6931, array([-0.25]), array([[0.25]]))
        """
        loss, p = special.logistic_loss(theta @ self.design, self.targets, self.weights)
        penalty_gradient = self.penalty @ theta
        hessian = (self.design * (self.weights * p * (1 - p))) @ self.design.T
        return (
            loss + float(theta @ penalty_gradient) / 2,
            self.design @ (self.weights * (p - self.targets)) + penalty_gradient,
            hessian,
        )

    def solve(self, theta: Float64s) -> Float64s:
        """Minimise the penalised loss from `theta` (knots + 1,) under the bounds, by Newton steps halved until the loss falls.

        Returns the last theta where no step lowers the loss.

        >>> one = np.ones((1, 1))
        >>> problem = _SplineProblem(one, np.array([0.75]), np.ones(1), np.zeros((1, 1)))
        >>> problem.solve(np.zeros(1)).round(4)  # ln 3
        array([1.0986])
        """
        from scipy.optimize import lsq_linear

        size = len(theta)
        bounds = (np.append(np.zeros(size - 1), -np.inf), np.full(size, np.inf))
        loss, gradient, likelihood_hessian = self.terms(theta)
        for _ in range(_MAX_STEPS):
            hessian = likelihood_hessian + self.penalty
            hessian += (1e-11 * np.trace(hessian) + 1e-12) * np.eye(size)
            upper_factor = np.linalg.cholesky(hessian).T
            target = upper_factor @ theta - np.linalg.solve(upper_factor.T, gradient)
            step = lsq_linear(upper_factor, target, bounds, method="bvls", tol=1e-14).x - theta
            decrement = -float(gradient @ step)
            if decrement <= 1e-13 * max(1.0, abs(loss)):
                break
            step_length = 1.0
            while self.terms(theta + step_length * step)[0] > loss - 0.1 * step_length * decrement:
                step_length /= 2
                if step_length <= 1e-9:
                    return theta
            theta = theta + step_length * step
            theta[:-1] = np.maximum(theta[:-1], 0.0)
            loss, gradient, likelihood_hessian = self.terms(theta)
        return theta

    def akaike(self, theta: Float64s) -> float:
        """Compute Akaike's criterion at theta: twice the loss without the penalty plus twice the effective number of
        parameters.

        That is tr((H + penalty)^-1 H), H the Hessian of the loss, over the parameters that are not at their bound 0.

        >>> one = np.ones((1, 1))
        >>> problem = _SplineProblem(one, np.array([0.75]), np.ones(1), np.zeros((1, 1)))
        >>> round(problem.akaike(np.zeros(1)), 4)  # 2 ln 2 + 2
        3.3863
        """
        free = np.append(theta[:-1] > 0, True)
        loss, _ = special.logistic_loss(theta @ self.design, self.targets, self.weights)
        likelihood = self.terms(theta)[2][np.ix_(free, free)]
        ridge = 1e-12 * np.trace(likelihood) * np.eye(int(free.sum()))
        penalised = likelihood + self.penalty[np.ix_(free, free)] + ridge
        return 2 * loss + 2 * float(np.trace(np.linalg.lstsq(penalised, likelihood, rcond=None)[0]))


def fit_slopes(x: Float64s, w: Float64s, ones: Float64s, knots: Float64s) -> tuple[Float64s, float]:
    """Fit slopes at the knots and an intercept to distinct scores x, their weights w and weights of positive outcomes `ones`.

    Returns slopes (knots,) and the log odds at the first knot. The strength of the penalty on differences between neighbouring
    slopes is that of the least Akaike criterion.
    """
    total, positive = float(w.sum()), float(ones.sum())
    centre = float(w @ x) / total
    width = np.sqrt(float(w @ (x - centre) ** 2) / total) or 1.0
    scaled_x, scaled_knots = (x - centre) / width, (knots - centre) / width
    high, low = (positive + 1) / (positive + 2), 1 / (total - positive + 2)  # Platt's targets
    targets = low + (high - low) * ones / w
    count = len(knots)
    design = np.vstack([integrate_hats(scaled_x, scaled_knots).T, np.ones(len(x))])
    roughness = np.zeros((count + 1, count + 1))
    steps = np.diff(np.eye(count), axis=0)
    roughness[:count, :count] = 2 * steps.T @ steps
    mean = float(w @ targets) / total
    theta = np.append(np.zeros(count), special.logit(mean))
    best, best_akaike = theta, np.inf
    # from the strongest penalty to the weakest, each search starting at the result of the one before
    for strength in _PENALTIES[::-1]:
        problem = _SplineProblem(design, targets, w, strength * roughness)
        theta = problem.solve(theta)
        akaike = problem.akaike(theta)
        if akaike < best_akaike - 1e-9:
            best, best_akaike = theta, akaike
    return best[:-1] / width, float(best[-1])
