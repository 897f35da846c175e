"""Two Newton solvers that cannot run away: for the inverse temperature, and for a logistic curve."""

from dataclasses import dataclass
from math import exp, log

import numpy as np

from truecal.errors import InputError
from truecal.recalibrate.solvers.likelihood import LabelledLogits, temperature_terms
from truecal.types import Float64s

_SAMPLE = 2000  # rows of the first, cheap search
_STEP = 1e-4  # Newton's error is the square of its last step: 1e-8 in log T
_FLATTEST = 1e-3  # smallest (inverse temperature) x (spread of logits): probabilities within 0.1 % of uniform


@dataclass(frozen=True)
class InverseTemperature:
    """Where the search ended, and why: "optimum", "flat" (the optimum is at or beyond uniform) or "separable"."""

    value: float
    ending: str


def fit_inverse_temperature(data: LabelledLogits) -> InverseTemperature:
    """Maximise the likelihood over the inverse temperature b > 0, in which minus log likelihood is convex.

    Newton's step is taken in log b on the derivative, which increases with b, and is replaced by bisection when it
    leaves the bracket. A search over a sample of rows gives the start, so the full data is read two or three times.

    There is no finite optimum when every label has its row's largest logit (b grows for ever): Laplace's targets make
    one. And none above zero when the logits carry no information: b stops where the probabilities are uniform to 0.1 %.
    """
    spread = data.spread()
    if spread == 0.0:
        return InverseTemperature(1.0, "flat")
    separable = not data.label_gap().any()
    if separable:
        data = data.smoothed()
    lowest = _FLATTEST / spread
    start = max(1.0 / spread, lowest)
    if len(data.labels) > 4 * _SAMPLE:
        sample = data.sample(_SAMPLE)
        if sample.label_gap().any() or sample.smoothing:
            start = _root(sample, lowest, start)
    value = _root(data, lowest, start)
    if value == lowest:
        return InverseTemperature(value, "flat")
    return InverseTemperature(value, "separable" if separable else "optimum")


def _root(data: LabelledLogits, lowest: float, start: float) -> float:
    """The b where the derivative of minus log likelihood is 0, or `lowest` when it is already positive there."""
    reward = data.reward()
    low, high = -np.inf, np.inf  # log b where the derivative is known to be negative, positive
    floor = log(lowest)
    u = max(log(start), floor)
    for _ in range(200):
        b = exp(u)
        _, slope, curvature = temperature_terms(data, b)
        derivative = slope - reward
        if derivative < 0:
            low = u
        else:
            high = u
            if u <= floor:
                return lowest
        if derivative == 0:
            return b
        step = -derivative / (b * curvature) if curvature > 0 else -np.inf if derivative > 0 else np.inf
        step = min(max(step, -2.0), 2.0)
        after = u + step
        if not low < after < high:
            after = (low + high) / 2
            step = after - u
        u = max(after, floor)
        if abs(step) < _STEP or u in (low, high):
            break
    return exp(u)


def fit_logistic(features: Float64s, targets: Float64s, weights: Float64s) -> Float64s:
    """Coefficients of sigmoid(features @ coefficients + intercept), intercept last, that maximise the weighted
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
    loss, prob = _logistic(design, targets, weights, theta)
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
            tried, prob = _logistic(design, targets, weights, theta - length * step)
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


def _logistic(design: Float64s, targets: Float64s, weights: Float64s, theta: Float64s) -> tuple[float, Float64s]:
    """Minus the weighted log likelihood, and the probabilities, of a logistic curve."""
    value = theta @ design
    small = np.exp(-np.abs(value))
    loss = float(weights @ (np.maximum(value, 0.0) + np.log1p(small) - targets * value))
    return loss, np.where(value >= 0, 1.0, small) / (1.0 + small)


def fit_rising_logistic(features: Float64s, targets: Float64s, weights: Float64s) -> Float64s:
    """Like `fit_logistic`, with no coefficient (the intercept aside) below 0: the curve never falls as features grow.

    The problem is convex, so when the free optimum has a negative coefficient the best one lies where some coefficient
    is 0: every choice of zeros is tried, which for one or two features is at most three more fits.
    """
    count = features.shape[1]
    free = fit_logistic(features, targets, weights)
    if (free[:-1] >= 0).all():
        return free
    best, least = free, np.inf
    for kept in ((), *((k,) for k in range(count) if count > 1)):
        tried = np.zeros(count + 1)
        part = fit_logistic(features[:, list(kept)], targets, weights)
        tried[[*kept, count]] = part
        loss = _logistic(np.column_stack([features, np.ones(len(targets))]).T, targets, weights, tried)[0]
        if (tried[:-1] >= 0).all() and loss < least:
            best, least = tried, loss
    return best
