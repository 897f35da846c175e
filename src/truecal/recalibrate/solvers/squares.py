"""A logistic curve of least squares: the difference of curve and outcomes, not the likelihood."""

import numpy as np

from truecal.predictions import sigmoid
from truecal.types import Float64s

_STEPS = 200
_CLOSE = 1e-12  # relative fall of the loss at which a minimum counts as reached


def least_squares(features: Float64s, targets: Float64s, weights: Float64s, start: Float64s) -> Float64s:
    """Coefficients (the intercept last) of sigmoid(features @ slopes + c) with the least sum of weighted squared differences.

    Gauss-Newton steps of Levenberg and Marquardt: with residuals r and Jacobian J, the step solves
    (J'WJ + d diag(J'WJ)) s = J'W r; the damping d falls by 3 after a step that lowers the loss and rises by 4 after one that does
    not. Slopes stay at 0 or above, so that the curve never falls.

    >>> x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> y = sigmoid(1.5 * x[:, 0] + 0.5)
    >>> least_squares(x, y, np.ones(4), np.array([1.0, 0.0])).round(6)
    array([1.5, 0.5])
    """
    rows = np.column_stack([features, np.ones(len(features))])
    found, damping = start.astype(np.float64), 1e-3
    curve = sigmoid(rows @ found)
    loss = float(weights @ (targets - curve) ** 2)
    for _ in range(_STEPS):
        jacobian = (curve * (1 - curve))[:, None] * rows
        squares = jacobian.T @ (weights[:, None] * jacobian)
        size = np.maximum(np.diag(squares), 1e-300)
        step = np.linalg.solve(squares + damping * np.diag(size), jacobian.T @ (weights * (targets - curve)))
        tried = found + step
        tried[:-1] = np.maximum(tried[:-1], 0.0)
        there = sigmoid(rows @ tried)
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
