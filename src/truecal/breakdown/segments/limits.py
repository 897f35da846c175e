"""Mean difference between score and outcome in the rows of a test, with limits that hold whichever test is looked at.

The critical value of a test is the |z| at which its u reaches that of the joint null: with the chance of the level, no test of
calibrated data goes beyond it. Limits at that value cover all tests at once, so that those of the worst segment hold too.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from truecal.breakdown.segments.null import CONTRASTS, SLOPE
from truecal.breakdown.segments.records import Records
from truecal.types import Float64s


def critical_value(limit: float, price: float) -> float:
    """The |z| at which u = z^2/2 + log max(|z|, 1) - price reaches the limit.

    >>> round(critical_value(3.0, np.log(1000)), 3)
    4.121
    """
    goal, z = limit + price, 4.0
    for _ in range(50):
        z = float(np.sqrt(max(2 * (goal - np.log(max(z, 1.0))), 0.25)))
    return z


def difference(
    records: Records, inside: NDArray[np.bool_], contrast: int, critical: float, deviation: float
) -> tuple[float, float, float]:
    """Mean score minus mean outcome, and its limits, over the records inside the segment and the regions of the contrast.

    Independent rows: all shifts d of the log odds with 2 (l(best) - l(d)) <= critical^2 (profile likelihood), as differences of
    means. Where no shift does it (scores of exactly 0 or 1, importance weights, rows in units): the normal interval, its deviation
    not below that at the observed frequency. For the slope: the contrast of the four regions over the rows they hold, positive
    where confidence is too extreme.
    """
    factor = CONTRASTS[contrast][records.region]
    rows = np.flatnonzero(inside & (factor != 0))
    factor, mass, score = factor[rows], records.mass[rows], records.score[rows]
    residual = records.residual(records.score)[rows]
    total = float((np.abs(factor) * mass).sum())
    value = -float((factor * residual).sum()) / total
    certain = bool(((score == 0) | (score == 1)).any())
    if contrast == SLOPE or certain or records.weight is not None or records.unit is not None:
        half = critical * max(deviation, _observed_deviation(records, rows, factor)) / total
        return value, max(value - half, -1.0), min(value + half, 1.0)
    low, high = _likelihood_limits(score, mass, float(records.ones[rows].sum()), critical)
    return value, min(-high, value), max(-low, value)


def _observed_deviation(records: Records, rows: NDArray[np.intp], factor: Float64s) -> float:
    """Of the contrast, if the outcomes of each region scatter about their own frequency."""
    weight = factor if records.weight is None else factor * records.weight[rows]
    region, mass = records.region[rows], records.mass[rows]
    ones = records.ones[rows] if records.weight is None else records.ones[rows] * records.weight[rows]
    filled = np.maximum(np.bincount(region, mass, len(CONTRASTS[0])), 1e-300)
    rate = (np.bincount(region, ones, len(filled)) / filled)[region]
    return float(np.sqrt((weight**2 * records.counts[rows] * rate * (1 - rate)).sum()))


def _likelihood_limits(score: Float64s, mass: Float64s, ones: float, critical: float) -> tuple[float, float]:
    """Limits of mean outcome minus mean score."""
    count = float(mass.sum())

    def moved(d: float) -> float:
        odds = score * np.exp(d)
        return float((mass * odds / (1 - score + odds)).sum())

    def fit(d: float) -> float:
        return d * ones - float((mass * np.log1p(score * np.expm1(d))).sum())

    base = float((mass * score).sum())
    best = _last(lambda d: moved(d) < ones, -30.0, 30.0)
    top = fit(best)
    low, high = (_last(lambda d: 2 * (top - fit(d)) <= critical**2, best, best + side) for side in (-30.0, 30.0))
    return (moved(low) - base) / count, (moved(high) - base) / count


def _last(holds: Callable[[float], bool], inside: float, outside: float) -> float:
    """Where a condition that holds at one end stops holding on the way to the other, by bisection."""
    for _ in range(60):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return inside
