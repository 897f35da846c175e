"""Slopes of a monotone quadratic spline on the logistic scale: penalised likelihood with slopes that are never negative.

The value at x is intercept + sum_j a_j I_j(x), where I_j is the integral from the first knot to x of the hat function of
knot j (constant beyond the outer knots). Newton's method: each step is a small least-squares problem with bounds. The
penalty lambda sum (a_{j+1} - a_j)^2 is chosen by Akaike's criterion, with the trace of the hat matrix as the number of
parameters.
"""

from dataclasses import dataclass

import numpy as np

from truecal import logistic
from truecal.types import Float64s

_STRENGTHS = 10.0 ** np.arange(-2, 7)  # of the penalty, for scores of unit spread
_STEPS = 60


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
        loss, p = logistic.logistic_loss(theta @ self.design, self.targets, self.weights)
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
    theta = np.append(np.zeros(count), np.log(mean / (1 - mean)))
    best, least = theta, np.inf
    # from the stiffest curve to the freest, each starting where the last ended
    for strength in _STRENGTHS[::-1]:
        data = _Data(design, targets, w, strength * rough)
        theta = _newton(data, theta)
        score = _akaike(data, theta)
        if score < least - 1e-9:
            best, least = theta, score
    return best[:-1] / width, float(best[-1])


def _newton(data: _Data, theta: Float64s) -> Float64s:
    from scipy.optimize import lsq_linear

    size = len(theta)
    loss, gradient, likelihood = data.terms(theta)
    for _ in range(_STEPS):
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
    loss, _ = logistic.logistic_loss(theta @ data.design, data.targets, data.weights)
    _, _, likelihood = data.terms(theta)
    inner = likelihood[np.ix_(free, free)]
    whole = inner + data.penalty[np.ix_(free, free)] + 1e-12 * np.trace(inner) * np.eye(int(free.sum()))
    return 2 * loss + 2 * float(np.trace(np.linalg.lstsq(whole, inner, rcond=None)[0]))
