"""Safeguarded Newton's method: for the inverse temperature, and for a logistic curve that never falls."""

from dataclasses import dataclass
from math import exp, inf, log

import numpy as np

from truecal import logistic
from truecal.recalibrate.solvers.likelihood import LabelledLogits, temperature_terms
from truecal.types import Float64s

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
    free = logistic.fit_curve(features, targets, weights)
    if (free[:-1] >= 0).all():
        return free
    best, least = free, np.inf
    for kept in ((), *((k,) for k in range(count) if count > 1)):
        tried = np.zeros(count + 1)
        part = logistic.fit_curve(features[:, list(kept)], targets, weights)
        tried[[*kept, count]] = part
        loss = logistic.logistic_loss(features @ tried[:-1] + tried[-1], targets, weights)[0]
        if (tried[:-1] >= 0).all() and loss < least:
            best, least = tried, loss
    return best
