"""The one logistic regression: Newton's method with step halving, for curves of one or a few features.

Used for recalibration curves (Platt, beta), for the calibration line (intercept and slope) and whatever else is a
logistic fit. Larger problems (one column per class) have solvers of their own in `recalibrate`.
"""

from math import log

import numpy as np

from truecal.errors import InputError
from truecal.types import Float64s


def fit_logistic(features: Float64s, targets: Float64s, weights: Float64s, offset: float | Float64s = 0.0) -> Float64s:
    """Coefficients of sigmoid(offset + features @ coefficients + intercept), intercept last, that maximise the weighted
    likelihood.

    Newton with step halving on standardised features. A feature that is constant gets coefficient 0. The caller makes
    sure that a finite optimum exists: targets strictly between 0 and 1, or data that no straight line separates.
    """
    total = weights.sum()
    centre = weights @ features / total
    width = np.sqrt(weights @ (features - centre) ** 2 / total)
    varies = width > 1e-13 * np.maximum(np.abs(centre), 1e-300)
    design = np.ones((int(varies.sum()) + 1, len(targets)))  # one row per unknown, the intercept last
    design[:-1] = ((features - centre)[:, varies] / width[varies]).T
    mean = float(weights @ targets / total)
    theta = np.zeros(len(design))
    theta[-1] = log(mean / (1 - mean))
    loss, prob = logistic_loss(design, targets, weights, theta, offset)
    for _ in range(200):
        gradient = design @ (weights * (prob - targets))
        hessian = (design * (weights * prob * (1 - prob))) @ design.T
        hessian += (1e-12 * np.trace(hessian) + 1e-300) * np.eye(len(theta))
        step = np.linalg.solve(hessian, gradient)
        decrement = float(gradient @ step)
        if decrement < 1e-10 * total:  # so near that the error after one more step is that of rounding
            theta = theta - step
            break
        length = 1.0
        while True:
            tried, prob = logistic_loss(design, targets, weights, theta - length * step, offset)
            if tried <= loss - 0.25 * length * decrement:
                break
            length /= 2
            if length < 1e-10:
                raise InputError("the logistic fit did not converge; are the scores of wildly different sizes?")
        theta, loss = theta - length * step, tried
    coefficients = np.zeros(features.shape[1] + 1)
    coefficients[:-1][varies] = theta[:-1] / width[varies]
    coefficients[-1] = theta[-1] - coefficients[:-1] @ centre
    return coefficients


def logistic_loss(
    design: Float64s, targets: Float64s, weights: Float64s, theta: Float64s, offset: float | Float64s = 0.0
) -> tuple[float, Float64s]:
    """Minus the weighted log likelihood, and the probabilities, of a logistic curve; one row of `design` per unknown."""
    value = theta @ design + offset
    small = np.exp(-np.abs(value))
    loss = float(weights @ (np.maximum(value, 0.0) + np.log1p(small) - targets * value))
    return loss, np.where(value >= 0, 1.0, small) / (1.0 + small)
