"""The verdict: one sentence a manager can read, which says how sure it is."""

from dataclasses import dataclass

import numpy as np

import truecal as tc
from truecal import names
from truecal.estimate import Curve

_TENTHS = 10


@dataclass(frozen=True)
class Verdict:
    """`kind` is "within", "outside", "off" or "open"; `badge` its few words; `sentence` the finding; `reading` what it means."""

    kind: str
    badge: str
    sentence: str
    reading: str


def judge(estimate: tc.Estimate, *, tolerance: float, judged: str = "top label") -> Verdict:
    """Judge an estimate that has an interval and a p-value against the largest error that would be acceptable.

    `judged` says in words what the probabilities are of.
    """
    interval = estimate.interval
    assert interval is not None
    assert estimate.p_value is not None
    low, high, value = float(interval.low), float(interval.high), float(estimate.value)
    sure, most = f"{interval.level:.0%}", f"{100 * tolerance:g} points"
    subject = "Confidence is" if names.tendency(judged, 1.0) == "too confident" else "Probabilities are"
    shown = float(estimate.p_value) < 1 - interval.level
    span = f"between {span_of(low, high, 'and')}" if low > 0 else f"at most {points(high)}"
    if high <= tolerance:
        words = f"The root-mean-square error is {span} ({sure} confidence), within the tolerance of {most}."
        return Verdict("within", "Within tolerance", words, _reading(estimate, shown, judged))
    if low > tolerance:
        size = f"{points(value)}, root mean square ({sure} confidence: {span})"
        words = f"{subject} off by {size}, more than the tolerance of {most}."
        return Verdict("outside", "Outside tolerance", words, _reading(estimate, shown, judged))
    if shown:
        words = (
            f"{subject} off by about {points(value)}, root mean square ({sure} confidence: {span}). That is shown; whether it is "
            f"more than the tolerance of {most} is not."
        )
        return Verdict("off", "Miscalibrated, size uncertain", words, _reading(estimate, shown, judged))
    words = (
        f"No miscalibration could be shown, but {estimate.n:,} predictions are too few to promise that the error is within "
        f"{most}: it is {span} (root mean square, {sure} confidence)."
    )
    return Verdict("open", "Undecided: too little data", words, _reading(estimate, shown, judged))


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


def _reading(estimate: tc.Estimate, shown: bool, judged: str) -> str:
    """What the number means for someone who uses the predictions."""
    if not shown:
        return "The test of perfect calibration finds nothing against it in these data."
    direction, worst = float(estimate.direction), _worst(estimate.curve)
    if worst is None:
        return ""
    high, low = names.tendency(judged, 1.0), names.tendency(judged, -1.0)
    score, happens = worst
    example = f"Where it matters most, predictions of about {percent(score)} come true {percent(happens)} of the time."
    if abs(direction) < 0.25 * float(estimate.value):
        return f"The model is {high} in places and {low} in others. {example}"
    return f"On average the model is {names.tendency(judged, direction)} by {points(abs(direction))}. {example}"


def _worst(curve: Curve | None) -> tuple[float, float] | None:
    """Mean score and mean fitted outcome rate of the tenth of the predictions that adds most to the squared error.

    Tenths follow the order of the scores; one that the data fill with a single score is that score.
    """
    if curve is None or not len(curve.score):
        return None
    passed = np.cumsum(curve.weight)
    tenth = np.minimum(((passed - curve.weight / 2) * (_TENTHS / passed[-1])).astype(int), _TENTHS - 1)
    share = np.bincount(tenth, curve.weight * (curve.score - curve.outcome) ** 2, _TENTHS)
    chosen = tenth == int(share.argmax())
    score, outcome = (
        np.average(values[chosen], weights=curve.weight[chosen]) for values in (curve.score, curve.outcome)
    )
    return float(score), float(outcome)
