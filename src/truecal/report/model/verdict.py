"""The verdict: one sentence a manager can read, which says how sure it is."""

from dataclasses import dataclass

import numpy as np

from truecal.estimate import Curve, Estimate


@dataclass(frozen=True)
class Verdict:
    """`kind` is "within", "outside", "off" or "open"; `badge` its few words; `sentence` the finding; `reading` what it means."""

    kind: str
    badge: str
    sentence: str
    reading: str


def judge(estimate: Estimate, *, tolerance: float) -> Verdict:
    """Judge an estimate that has an interval and a p-value against the largest error that would be acceptable."""
    interval = estimate.interval
    assert interval is not None
    assert estimate.p_value is not None
    low, high, value = float(interval.low), float(interval.high), float(estimate.value)
    sure, most = f"{interval.level:.0%}", f"{100 * tolerance:g} points"
    shown = float(estimate.p_value) < 1 - interval.level
    span = f"between {span_of(low, high, 'and')}" if low > 0 else f"at most {points(high)}"
    if high <= tolerance:
        found = f"The error is {span} ({sure} confidence), within the tolerance of {most}."
        return Verdict("within", "Within tolerance", found, _reading(estimate, shown))
    if low > tolerance:
        found = f"Confidence is off by {points(value)} ({sure} confidence: {span}), more than the tolerance of {most}."
        return Verdict("outside", "Outside tolerance", found, _reading(estimate, shown))
    if shown:
        found = (
            f"Confidence is off by about {points(value)} ({sure} confidence: {span}). That it is off is shown; whether by more "
            f"than the tolerance of {most} is not."
        )
        return Verdict("off", "Miscalibrated, size uncertain", found, _reading(estimate, shown))
    found = (
        f"No miscalibration could be shown, but {estimate.n:,} predictions are too few to promise that the error is within "
        f"{most}: it is {span} ({sure} confidence)."
    )
    return Verdict("open", "Undecided: too little data", found, _reading(estimate, shown))


def points(value: float) -> str:
    """An error in percentage points, with two significant digits.

    >>> points(0.0312), points(0.00041), points(0)
    ('3.1 points', '0.041 points', '0 points')
    """
    percent = 100 * value
    if percent == 0:
        return "0 points"
    digits = max(0, 1 - int(np.floor(np.log10(percent))))
    shown = f"{percent:.{digits}f}"
    return f"{shown} point{'' if shown == '1' else 's'}"


def span_of(low: float, high: float, word: str) -> str:
    """Two errors with one unit.

    >>> span_of(0.021, 0.043, "to")
    '2.1 to 4.3 points'
    """
    return f"{points(low).split()[0]} {word} {points(high)}"


def percent(value: float) -> str:
    """A probability in percent that never rounds to a certainty it is not.

    >>> percent(0.934), percent(0.99953), percent(1.0), percent(1 - 1e-12)
    ('93%', '99.95%', '100%', 'over 99.9999%')
    """
    for digits in range(7):
        shown = f"{100 * value:.{digits}f}"
        gap = min(value, 1 - value)
        if gap == 0 or (float(shown) not in (0.0, 100.0) and abs(float(shown) / 100 - value) <= gap / 10):
            return f"{shown}%"
    return "over 99.9999%" if value > 0.5 else "under 0.0001%"


def _reading(estimate: Estimate, shown: bool) -> str:
    """What the number means for someone who uses the predictions."""
    direction = float(estimate.direction)
    typical = _typical(estimate.curve)
    if not shown or typical is None:
        return "" if shown else "The test of perfect calibration finds nothing against it in these data."
    said, happens = typical
    tendency = "too confident" if direction > 0 else "too cautious"
    example = (
        f"a typical prediction says {percent(said)}, and such predictions come true {percent(happens)} of the time"
    )
    if abs(direction) < 0.25 * float(estimate.value):
        return f"The model is too confident in places and too cautious in others; for example, {example}."
    return f"On average the model is {tendency} by {points(abs(direction))}: {example}."


def _typical(curve: Curve | None) -> tuple[float, float] | None:
    """Score and fitted outcome rate at the median prediction."""
    if curve is None or not len(curve.score):
        return None
    middle = int(np.searchsorted(np.cumsum(curve.weight), 0.5 * curve.weight.sum()))
    middle = min(middle, len(curve.score) - 1)
    return float(curve.score[middle]), float(curve.outcome[middle])
