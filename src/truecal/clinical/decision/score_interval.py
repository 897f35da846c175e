"""Intervals of means of values that can be few different numbers, such as what a decision is worth."""

import numpy as np

from truecal.clinical.cohort import Cohort
from truecal.clinical.quantity import student
from truecal.types import Float64s

_HALVINGS = 50


def score_interval(
    cohort: Cohort, values: Float64s, support: Float64s, level: float
) -> tuple[Float64s, Float64s, Float64s]:
    """Weighted means of columns (n, k) and both ends of their intervals; `support` (k, m) are the values that each column can take.

    Where few people are treated a mean +- t se says nothing: with none of them its standard error is 0. Here a mean d is kept
    unless the observed one is more than t standard errors from it, with the variance of the likeliest distribution on the support
    whose mean is d (the score test of a multinomial; Wilson's interval for two values, Tango's for differences). Weights and
    clusters count by the number of independent rows that would give the variance over patients.
    """
    share = cohort.weights / cohort.weights.sum()
    mean = share @ values
    seen = np.stack([share @ (values == column) for column in support.T], axis=1)
    for j in range(1, support.shape[1]):  # a value that is listed twice (odds of 1) is counted once
        seen[(support[:, :j] == support[:, j : j + 1]).any(axis=1), j] = 0.0
    rows = _independent(cohort, values - mean, (seen * (support - mean[:, None]) ** 2).sum(axis=1))
    reach = student(cohort.df, level) / np.sqrt(rows)
    beyond = support - mean[:, None]
    below, above = np.split(_farthest(np.tile(seen, (2, 1)), np.concatenate([-beyond, beyond]), np.tile(reach, 2)), 2)
    return mean, mean - below, mean + above


def values_of(odds: Float64s, *values: float | Float64s) -> Float64s:
    """The values that what is done for a row can be worth at each threshold, (k, m)."""
    return np.stack([np.broadcast_to(np.asarray(value, np.float64), odds.shape) for value in values], axis=1)


def _independent(cohort: Cohort, deviations: Float64s, variance: Float64s) -> Float64s:
    """How many independent rows would give each mean the variance it has over patients; not more than there are rows, unless the
    prevalence is known."""
    size = (cohort.reactions(deviations) ** 2).sum(axis=0)
    if cohort.stratified:
        return np.divide(variance, size, out=np.full(len(size), np.inf), where=size > 1e-30)
    most = cohort.rows if cohort.counted else cohort.weights.sum() ** 2 / (cohort.weights**2).sum()
    known = np.divide(variance, size, out=np.full(len(size), float(min(cohort.patients, most))), where=size > 1e-30)
    return np.minimum(known, most)


def _farthest(seen: Float64s, support: Float64s, reach: Float64s) -> Float64s:
    """How far above the observed mean (0) the true one can be. The likeliest distributions with larger means are proportional to
    seen / (1 - s value), s from 0 to 1 / largest value; then, if that value was not seen, a growing part of the mass is on it."""
    largest = np.maximum(support.max(axis=1), 1e-300)
    spare = np.where(support == largest[:, None], seen, 0.0).sum(axis=1) == 0

    powers = np.stack([np.ones_like(support), support, support**2])
    weighted, scaled = seen * powers, support / largest[:, None]

    def tilted(step: Float64s) -> tuple[Float64s, Float64s]:
        """Mean and variance at steps from 0 to 1 (tilting) and on to 2 (mass moved to the largest value)."""
        room = 1 - np.minimum(step, 1.0)[:, None] * scaled
        room[room <= 0] = np.inf
        mass, first, second = (weighted / room).sum(axis=2)
        moved = np.maximum(step - 1, 0.0)
        first = (1 - moved) * first / mass + moved * largest
        second = (1 - moved) * second / mass + moved * largest**2
        return first, np.maximum(second - first**2, 0.0)

    low, high = np.zeros(len(reach)), np.where(spare, 2.0, 1.0 - 1e-12)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        mean, variance = tilted(middle)
        kept = mean <= reach * np.sqrt(variance)
        low, high = np.where(kept, middle, low), np.where(kept, high, middle)
    return np.maximum(tilted(low)[0], 0.0)
