"""Ridge-penalised matrix scaling: softmax(x + D x + b) of smoothed, temperature-scaled log probabilities x.

    x_i = log((1 - e) softmax(max(z_i - max z_i, -c) / T) + e / K),   e = 1 / (n + 1)
    minimise  mean_i -log softmax(x_i + D x_i + b)[y_i]
              + (K / n) (diagonal |diag D|^2 + intercept |b|^2) + (K (K - 1) / n) off_diagonal |D off its diagonal|^2

D = 0, b = 0 is temperature scaling, so what the penalty shrinks to is a good map and not a bad one. The strengths grow
with the number of parameters of a kind and fall with the number of rows (Berta, Holzmüller, Jordan and Bach 2026); n is
the sum of weights. The mixture with e / K, the weight of one row among n + 1, keeps logarithms finite: a probability of
0 is read as e / K, and one impossible row costs log(K (n + 1)) and no more. The floor c is infinite unless some row's
true class has a probability of exactly 0; then T and c are fitted together (see `family.floored_temperature`).

The problem is convex. It is solved by L-BFGS in variables scaled by the expected curvature, in blocks of rows, so that
beside the logits only a few matrices of K x K are held.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from truecal import special
from truecal.recalibration.likelihood import LabelledLogits, floored_logits, minimise, scaled_softmax
from truecal.special import logit
from truecal.types import Float64s, Floats

# ----------------------------------------------------------------------------------------------------
# Ridge-penalised matrix scaling: softmax(x + D x + b) of smoothed, temperature-scaled log probabilities x

_BLOCK_VALUES = 1 << 20  # logits of a block of rows; its working arrays take some 30 MB
_LARGE = 100_000  # from so many parameters on, matrix products are made in the precision of the logits

_WEAK = 1e-2  # strength on a diagonal that is meant to be free: the optimum stays finite for separable data


@dataclass(frozen=True)
class Penalty:
    """Strengths of the penalties on the three kinds of parameters; `off_diagonal` None leaves those at 0."""

    diagonal: float
    off_diagonal: float | None
    intercept: float


@dataclass(frozen=True)
class SmoothLogs:
    """x of z: the inverse temperature, the share e of the uniform distribution and the floor c."""

    inverse: float
    uniform: float
    floor: float

    def __call__(self, logits: Floats, kind: type[np.floating] = np.float64) -> Floats:
        """By rows, in the precision asked for."""
        value = logits - logits.max(axis=1, keepdims=True)
        value = floored_logits(value, self.floor).astype(kind, copy=False)
        value *= kind(self.inverse)
        # without a floor, a class that was ruled out lies 1e30 below the others: its exponential is 0
        np.exp(value, out=value)
        value *= kind(1 - self.uniform) / value.sum(axis=1, keepdims=True)
        value += kind(self.uniform / value.shape[1])
        return np.log(value, out=value)


def fit_matrix(data: LabelledLogits, smooth: SmoothLogs, penalty: Penalty) -> tuple[Float64s, Float64s]:
    """D (K, K) or its diagonal (K,), and b, at the minimum; the search starts from 0."""
    problem = _Problem.of(data, smooth, penalty)
    theta = minimise(problem.loss, np.zeros(problem.size, problem.kind))
    change, bias = problem.unpacked(theta)
    return change.astype(np.float64), bias.astype(np.float64)


@dataclass(frozen=True, eq=False)
class _Problem:
    """The loss in scaled variables; D comes first, then b."""

    data: LabelledLogits
    smooth: SmoothLogs
    strengths: Float64s  # penalty per parameter, in the shape (K, K + 1) or (K, 2)
    scale: Floats  # variable = parameter / scale
    kind: type[np.floating]

    @classmethod
    def of(cls, data: LabelledLogits, smooth: SmoothLogs, penalty: Penalty) -> "_Problem":
        count, total = data.logits.shape[1], data.total
        per_class, per_pair = count / total, count * (count - 1) / total
        if penalty.off_diagonal is None:
            strengths = np.empty((count, 2))
            strengths[:, 0] = penalty.diagonal * per_class
        else:
            strengths = np.full((count, count + 1), penalty.off_diagonal * per_pair)
            np.fill_diagonal(strengths, max(penalty.diagonal, _WEAK) * per_class)
        strengths[:, -1] = penalty.intercept * per_class
        large = strengths.size >= _LARGE
        kind = data.logits.dtype.type if large else np.float64
        problem = cls(data, smooth, strengths, np.ones(()), kind)
        curvature = 2 * strengths + problem._curvature()
        return cls(data, smooth, strengths, (1 / np.sqrt(curvature)).astype(kind), kind)

    @property
    def size(self) -> int:
        return self.strengths.size

    @property
    def diagonal_only(self) -> bool:
        return self.strengths.shape[1] == 2

    def unpacked(self, theta: Floats) -> tuple[Floats, Floats]:
        parameters = theta.reshape(self.strengths.shape) * self.scale
        return (parameters[:, 0] if self.diagonal_only else parameters[:, :-1]), parameters[:, -1]

    def _blocks(self) -> Iterator[tuple[slice, Floats, NDArray[np.intp], Float64s]]:
        """Rows, features, labels, and weights that sum to 1."""
        data = self.data
        rows, count = data.logits.shape
        step = max(1, _BLOCK_VALUES // count)
        for start in range(0, rows, step):
            part = slice(start, start + step)
            features = self.smooth(data.logits[part], self.kind)
            labels = data.labels[part]
            weights = np.ones(len(labels)) if data.weights is None else data.weights[part]
            yield part, features, labels, weights / data.total

    def _curvature(self) -> Float64s:
        """About the second derivatives at D = 0: the means of p_j (1 - p_j) x_l^2, with the factors taken apart."""
        count = self.data.logits.shape[1]
        spread, squares, own = np.zeros(count), np.zeros(count), np.zeros(count)
        for _, x, _, w in self._blocks():
            p = np.exp(x)
            noise = w[:, None] * p * (1 - p)
            spread += noise.sum(axis=0)
            squares += w @ x**2
            own += np.einsum("ij,ij->j", noise, x**2)
        curvature = np.outer(spread, np.append(squares, 1.0))
        if self.diagonal_only:
            return np.column_stack([own, spread])
        np.fill_diagonal(curvature, own)
        return curvature

    def loss(self, theta: Floats) -> tuple[float, Floats]:
        """The penalised mean loss and its gradient by the scaled variables."""
        change, bias = self.unpacked(theta)
        total = 0.0
        gradient = np.zeros(self.strengths.shape, self.kind)
        for _, x, labels, w in self._blocks():
            value = x * (1 + change) + bias if self.diagonal_only else x + x @ change.T + bias
            rows = np.arange(len(labels))
            value -= value.max(axis=1, keepdims=True)
            own = value[rows, labels].astype(np.float64)
            np.exp(value, out=value)
            mass = value.sum(axis=1, keepdims=True)
            total += float(w @ (np.log(mass[:, 0]) - own))
            value /= mass
            value[rows, labels] -= 1
            value *= w[:, None].astype(self.kind)
            gradient[:, -1] += value.sum(axis=0)
            if self.diagonal_only:
                gradient[:, 0] += np.einsum("ij,ij->j", value, x)
            else:
                gradient[:, :-1] += value.T @ x
        parameters = theta.reshape(self.strengths.shape) * self.scale
        total += float((self.strengths * parameters**2).sum())
        gradient += (2 * self.strengths * parameters).astype(self.kind)
        gradient *= self.scale
        return total, gradient.ravel()


# ----------------------------------------------------------------------------------------------------
# Weights of a mixture of known distributions, by maximum likelihood or least squares

_STEPS = 200


def mixture_weights(likelihoods: Float64s, weights: Float64s) -> Float64s:
    """Shares a >= 0, sum 1, that maximise sum_i w_i log(likelihoods_i @ a); likelihoods (n, m), m small.

    Active-set Newton: the log likelihood is concave, and at its maximum the gradient of a part is n where a > 0 and at
    most n where a = 0. Rows in which no part has any likelihood say nothing and are left out.
    """
    kept = likelihoods.max(axis=1) > 0
    q, w = likelihoods[kept], weights[kept]
    parts = q.shape[1]
    share = np.full(parts, 1.0 / parts)
    if not len(q):
        return share
    total = w.sum()

    def loss(a: Float64s) -> float:
        mixed = q @ a
        return float(-(w @ np.log(mixed))) if (mixed > 0).all() else np.inf

    value = loss(share)
    for _ in range(_STEPS):
        ratio = q / (q @ share)[:, None]
        gradient = ratio.T @ w / total
        # free parts: those with a share, and those that would gain one
        free = (share > 0) | (gradient > 1 + 1e-12)
        if np.abs((gradient - 1)[share > 0]).max() < 1e-12 and not (free & (share == 0)).any():
            break
        step = _newton(ratio[:, free], w / total, gradient[free])
        direction = np.zeros(parts)
        direction[free] = step
        share, value, moved = _moved(share, direction, value, loss)
        if not moved:
            # one step of expectation-maximisation never makes it worse
            share = share * gradient / (share @ gradient)
            after = loss(share)
            if not after < value - 1e-14 * abs(value):
                break
            value = after
    return share / share.sum()


def squared_weights(data: LabelledLogits, inverses: Sequence[float], low: Float64s) -> Float64s:
    """Shares a >= low, sum 1, of softmax(b_j z) and, last, the uniform distribution, with the least squared error to the labels.

    The error is a' G a - 2 r' a, with the products G of the parts and their values r at the labels. Every choice of parts at
    their lowest share is tried (parts are few); the first with the least error counts.
    """
    parts = len(low)
    products, rewards = np.zeros((parts, parts)), np.zeros(parts)
    for rows in data.blocks(8):
        z = data.logits[rows]
        p = np.stack([*(scaled_softmax(z, b) for b in inverses), np.full(z.shape, 1 / z.shape[1])])
        weights = np.ones(p.shape[1]) if data.weights is None else data.weights[rows]
        products += np.einsum("ink,jnk,n->ij", p, p, weights) / data.total
        rewards += p[:, np.arange(p.shape[1]), data.labels[rows]] @ weights / data.total
    best, least = low, np.inf
    for free in map(list, chain.from_iterable(combinations(range(parts), size) for size in range(1, parts + 1))):
        tried = low.copy()
        tried[free] = 0.0
        system = np.ones((len(free) + 1, len(free) + 1))
        system[:-1, :-1], system[-1, -1] = products[np.ix_(free, free)], 0.0
        goal = np.append((rewards - products @ tried)[free], 1 - tried.sum())
        tried[free] = np.linalg.lstsq(system, goal, rcond=None)[0][:-1]
        error = float(tried @ products @ tried - 2 * rewards @ tried)
        if (tried >= low - 1e-12).all() and error < least - 1e-15:
            best, least = np.maximum(tried, low), error
    return best / best.sum()


def _newton(ratio: Float64s, w: Float64s, gradient: Float64s) -> Float64s:
    """The Newton step of the free shares that keeps their sum."""
    count = len(gradient)
    system = np.ones((count + 1, count + 1))
    system[:count, :count] = (ratio * w[:, None]).T @ ratio + 1e-12 * np.eye(count)
    system[count, count] = 0.0
    solution: Float64s = np.linalg.lstsq(system, np.append(gradient, 0.0), rcond=None)[0]
    return solution[:count]


def _moved(
    share: Float64s, direction: Float64s, value: float, loss: Callable[[Float64s], float]
) -> tuple[Float64s, float, bool]:
    """The longest of the halved steps that stays in the simplex and improves."""
    falling = direction < 0
    most = float((share[falling] / -direction[falling]).min()) if falling.any() else 1.0
    length = min(1.0, most)
    while length > 1e-8:
        tried = np.maximum(share + length * direction, 0.0)
        tried[tried < 1e-15] = 0.0
        tried /= tried.sum()
        after = loss(tried)
        if after < value - 1e-15 * abs(value):
            return tried, after, True
        length /= 2
    return share, value, False


# ----------------------------------------------------------------------------------------------------
# Slopes of a monotone quadratic spline on the logistic scale: penalised likelihood with slopes that are never negative

_STRENGTHS = 10.0 ** np.arange(-2, 7)  # of the penalty, for scores of unit spread
_STEPS_SPLINE = 60


def integrals(x: Float64s, knots: Float64s) -> Float64s:
    """The integrals of the hat functions from the first knot to x, shape (n, knots)."""
    gaps = np.diff(knots)
    share = np.clip((x[:, None] - knots[:-1]) / gaps, 0.0, 1.0)
    # over one gap the hat on its left falls from 1 to 0 and the one on its right rises from 0 to 1
    right = gaps * share**2 / 2
    left = gaps * share - right
    value = np.zeros((len(x), len(knots)))
    value[:, :-1] += left
    value[:, 1:] += right
    value[:, 0] += np.minimum(x - knots[0], 0.0)
    value[:, -1] += np.maximum(x - knots[-1], 0.0)
    return value


@dataclass(frozen=True, eq=False)
class _Data:
    design: Float64s  # one row per unknown: the slopes, then the intercept
    targets: Float64s
    weights: Float64s
    penalty: Float64s

    def terms(self, theta: Float64s) -> tuple[float, Float64s, Float64s]:
        """Penalised loss, gradient, and the Hessian of the likelihood alone."""
        loss, p = special.logistic_loss(theta @ self.design, self.targets, self.weights)
        pull = self.penalty @ theta
        hessian = (self.design * (self.weights * p * (1 - p))) @ self.design.T
        return loss + float(theta @ pull) / 2, self.design @ (self.weights * (p - self.targets)) + pull, hessian


def fit_slopes(x: Float64s, w: Float64s, ones: Float64s, knots: Float64s) -> tuple[Float64s, float]:
    """Slopes at the knots and the intercept, for distinct scores with weights and weights of positive outcomes."""
    total, positive = float(w.sum()), float(ones.sum())
    centre = float(w @ x) / total
    width = np.sqrt(float(w @ (x - centre) ** 2) / total) or 1.0
    u, grid = (x - centre) / width, (knots - centre) / width
    # Platt's targets
    high, low = (positive + 1) / (positive + 2), 1 / (total - positive + 2)
    targets = low + (high - low) * ones / w
    count = len(grid)
    design = np.vstack([integrals(u, grid).T, np.ones(len(u))])
    rough = np.zeros((count + 1, count + 1))
    steps = np.diff(np.eye(count), axis=0)
    rough[:count, :count] = 2 * steps.T @ steps
    mean = float(w @ targets) / total
    theta = np.append(np.zeros(count), logit(mean))
    best, least = theta, np.inf
    # from the stiffest curve to the freest, each starting where the last ended
    for strength in _STRENGTHS[::-1]:
        data = _Data(design, targets, w, strength * rough)
        theta = _newton_spline(data, theta)
        score = _akaike(data, theta)
        if score < least - 1e-9:
            best, least = theta, score
    return best[:-1] / width, float(best[-1])


def _newton_spline(data: _Data, theta: Float64s) -> Float64s:
    from scipy.optimize import lsq_linear

    size = len(theta)
    loss, gradient, likelihood = data.terms(theta)
    for _ in range(_STEPS_SPLINE):
        hessian = likelihood + data.penalty
        hessian += (1e-11 * np.trace(hessian) + 1e-12) * np.eye(size)
        root = np.linalg.cholesky(hessian).T
        goal = root @ theta - np.linalg.solve(root.T, gradient)
        bounds = (np.append(np.zeros(size - 1), -np.inf), np.full(size, np.inf))
        # "lsq_linear" wants an inner point to start from; it does without one by the method of active sets
        after = lsq_linear(root, goal, bounds, method="bvls", tol=1e-14).x
        step = after - theta
        decrement = -float(gradient @ step)
        if decrement <= 1e-13 * max(1.0, abs(loss)):
            break
        length = 1.0
        while length > 1e-9:
            tried = data.terms(theta + length * step)
            if tried[0] <= loss - 0.1 * length * decrement:
                break
            length /= 2
        else:
            break
        theta = np.append(np.maximum((theta + length * step)[:-1], 0.0), (theta + length * step)[-1])
        loss, gradient, likelihood = data.terms(theta)
    return theta


def _akaike(data: _Data, theta: Float64s) -> float:
    """Twice minus log likelihood, plus twice the effective number of parameters that are not at their bound."""
    free = np.append(theta[:-1] > 0, True)
    loss, _ = special.logistic_loss(theta @ data.design, data.targets, data.weights)
    _, _, likelihood = data.terms(theta)
    inner = likelihood[np.ix_(free, free)]
    whole = inner + data.penalty[np.ix_(free, free)] + 1e-12 * np.trace(inner) * np.eye(int(free.sum()))
    return 2 * loss + 2 * float(np.trace(np.linalg.lstsq(whole, inner, rcond=None)[0]))
