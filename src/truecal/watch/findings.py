"""Results of a watch after a batch: evidence, the scores that are off most, and whether an offset would correct them.

The region of scores, the start and the advice describe the rows since the estimated start of the change. They are not tests:
the alarm itself is the test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log
from typing import Any, Literal

import numpy as np

from truecal import digits, names
from truecal.special import expit, fit_logistic
from truecal.table import Frame
from truecal.types import Float64s
from truecal.watch.e_processes import Experts, log_odds

Advice = Literal["wait", "offset suffices", "refit"]
Group = tuple[str, ...]

_REFIT_LEVEL = 0.01  # by choice: of models that an offset corrects, one in a hundred is advised to be refitted
_MAX_LOG = 700.0  # derived: exp(709) is the largest float


@dataclass(frozen=True)
class ScoreRegion:
    """Mean score and observed frequency of the `rows` rows with scores from `low` to `high`."""

    low: float
    high: float
    rows: int
    mean_score: float
    frequency: float
    lens: str  # what the scores are of, in words

    @property
    def error(self) -> float:
        """Mean score minus frequency.

        >>> ScoreRegion(0.5, 1.0, 100, 0.75, 0.5, "top label").error
        0.25
        """
        return self.mean_score - self.frequency

    @property
    def direction(self) -> str:
        """Whether the scores are too high or too low, in the words of the lens, such as "predicted too high".

        >>> ScoreRegion(0.5, 1.0, 100, 0.75, 0.5, "top label").direction
        'overconfident'
        """
        return names.tendency(self.lens, self.error)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: low, high, rows, mean_score, frequency, "difference" (the error) and "direction".

        >>> ScoreRegion(0.5, 1.0, 100, 0.75, 0.5, "class dog").to_dict()
        {'low': 0.5, 'high': 1.0, 'rows': 100, 'mean_score': 0.75, 'frequency': 0.5, 'difference': 0.25, 'direction':
        'predicted too high'}
        """
        numbers = {name: value for name, value in vars(self).items() if name != "lens"}
        return {**numbers, "difference": self.error, "direction": self.direction}

    def __str__(self) -> str:
        """Write the range of scores, the direction, and mean score and frequency in percent.

        >>> print(ScoreRegion(0.5, 1.0, 100, 0.75, 0.5, "class dog"))
        scores 0.5 to 1: predicted too high by 25 points (75% predicted, 50% observed)
        """
        where = "all scores" if (self.low, self.high) == (0.0, 1.0) else f"scores {self.low:.4g} to {self.high:.4g}"
        rates = f"{digits.percent(self.mean_score)} predicted, {digits.percent(self.frequency)} observed"
        return f"{where}: {self.direction} by {digits.points(abs(self.error))} ({rates})"


def worst_region(sums: Float64s, experts: Experts, lens: str) -> ScoreRegion:
    """Find the run of bins whose error beyond the tolerance is largest relative to its standard error.

    `sums` are rows, ones and sums of scores by bin, shape (3, bins), with at least one row; `lens` is kept for the words of the
    result. The strength of a run is (|sum of score - outcome| - tolerance n) / sqrt(sum of c (1 - c) + 1), c a bin's mean score.
    """
    n, ones, scores = np.concatenate([np.zeros((3, 1)), np.cumsum(sums, axis=1)], axis=1)
    rate = np.where(sums[0] > 0, sums[2] / np.maximum(sums[0], 1), 0.5)
    noise = np.concatenate([[0.0], np.cumsum(np.maximum(sums[0] * rate * (1 - rate), 0.0))])
    first, last = np.triu_indices(sums.shape[1] + 1, k=1)
    rows = n[last] - n[first]
    beyond = np.abs(scores[last] - scores[first] - ones[last] + ones[first]) - experts.tolerance * rows
    strength = np.where(rows > 0, beyond / np.sqrt(noise[last] - noise[first] + 1.0), -np.inf)
    best = int(np.argmax(strength))
    i, j = int(first[best]), int(last[best])
    ends = (0.0, *experts.cuts, 1.0)
    return ScoreRegion(
        low=ends[i],
        high=ends[j],
        rows=round(float(rows[best])),
        mean_score=float((scores[j] - scores[i]) / rows[best]),
        frequency=float((ones[j] - ones[i]) / rows[best]),
        lens=lens,
    )


def fit_offset(sums: Float64s) -> float:
    """Fit the offset in log odds that makes the mean score equal to the frequency (maximum likelihood).

    `sums` are rows, ones and sums of scores by bin, shape (3, bins). Half a row of either outcome is added, so that the offset
    is finite where all outcomes are equal.

    >>> round(fit_offset(np.array([[99.0], [74.5], [49.5]])), 4)  # 75 of 100 rows at score 1/2: ln 3
    1.0986
    """
    n, ones, scores = (part[sums[0] > 0] for part in sums)
    rate = (ones.sum() + 0.5) / (n.sum() + 1.0)
    fit = fit_logistic(np.ones((len(n), 1)), np.full(len(n), rate), n, log_odds(scores / n))
    return float(fit.coefficients[0])


def advise(sums: Float64s, experts: Experts, *, alarmed: bool) -> tuple[Advice, float]:
    """Choose what to do, and fit the offset in log odds to the rows since the change (`fit_offset`); return both.

    Without an alarm: "wait". Otherwise a chi-squared test of the bins, of residuals beyond the tolerance, at level 0.01 decides
    between "refit" (the shape of the curve has changed) and "offset suffices". `sums` (3, bins) are rows, ones and sums of
    scores.
    """
    offset = fit_offset(sums)
    if not alarmed:
        return "wait", offset
    from scipy.stats import chi2

    n, ones, scores = (part[sums[0] > 0] for part in sums)
    expected = expit(log_odds(scores / n) + offset)
    residual = np.maximum(np.abs(ones - n * expected) - experts.tolerance * n, 0.0)
    statistic = float(np.sum(residual**2 / np.maximum(n * expected * (1 - expected), 1.0)))
    misfit = len(n) > 1 and float(chi2.sf(statistic, len(n) - 1)) < _REFIT_LEVEL
    return ("refit" if misfit else "offset suffices"), offset


# ----------------------------------------------------------------------------------------------------
# Results after a batch


def group_name(group: Group) -> str:
    """Join the values of a group by commas, an empty value as ''; "all rows" for a group without values.

    >>> group_name(("BR", "")), group_name(())
    ("BR, ''", 'all rows')
    """
    return ", ".join(part or "''" for part in group) if group else "all rows"


def e_value(log_e: float) -> float:
    """Return exp(log_e), at most about 1e304.

    >>> round(e_value(0.0), 6), e_value(1e9) < float("inf")
    (1.0, True)
    """
    return exp(min(log_e, _MAX_LOG))


def evidence_text(log_e: float, p_value: float) -> str:
    """Write e-value and p-value: "e-value 25.1, p = 0.040", from log(25.1) and 0.04.

    The e-value has 3 significant digits, or is "over a million"; the p-value has 3 decimals, or is "p < 0.001".

    >>> evidence_text(log(25.1), 0.04)
    'e-value 25.1, p = 0.040'
    """
    e = "over a million" if log_e > log(1e6) else f"{exp(log_e):.3g}"
    return f"e-value {e}, {digits.p_equation(p_value)}"


@dataclass(frozen=True)
class GroupStep:
    """The state of one group (or of all rows) after a batch.

    Attributes
    ----------
    group : tuple of str
        Its values of the columns `by`; empty for all rows.
    at : str
        Time of the batch.
    rows : int
        Rows with a label in this batch.
    of : int or None
        How many rows were predicted, where that is known.
    rows_seen : int
        Rows with a label since the start.
    log_e : float
        Log of the e-value: evidence that calibration was ever off by more than the tolerance since the last restart.
    p_value : float
        The same as a p-value, which may be read after every batch.
    alarm : bool
        Whether the e-value is large enough; among several groups, as long as it is.
    changed : bool
        Whether the evidence for a change is large enough for the run length.
    evidence_of_change : float
        Log of the evidence for a change, summed over starting times.
    since : str
        Time of the batch with which the change most likely began.
    worst : ScoreRegion
        The scores with the strongest evidence of an error since then: `low`, `high`, `rows`, `mean_score`, `frequency`, `error`
        and `direction`.
    worst_class : str or None
        The class that `worst` is about, where classes are watched.
    error : float
        Mean difference, predicted - observed, of all rows since the last restart; positive: predicted too high. It is signed, so
        that opposite errors cancel: an alarm may stand beside a small one. In JSON `difference`.
    low, high : float
        Its confidence sequence, which holds at all times together. In JSON `difference_low` and `difference_high`.
    advice : "wait", "offset suffices" or "refit"
        What to do.
    offset : float
        The offset in log odds that fits the rows since `since`.
    """

    group: Group
    at: str
    rows: int
    of: int | None
    rows_seen: int
    log_e: float
    p_value: float
    alarm: bool
    changed: bool
    evidence_of_change: float
    since: str
    worst: ScoreRegion
    worst_class: str | None
    error: float
    low: float
    high: float
    advice: Advice
    offset: float

    @property
    def e_value(self) -> float:
        """The e-value, exp(`log_e`), at most about 1e304."""
        return e_value(self.log_e)

    @property
    def name(self) -> str:
        """The group in words, its values joined by commas; "all rows" without any."""
        return group_name(self.group)

    @property
    def state(self) -> str:
        """State in a word: "alarm", else "changed", else "ok"."""
        return "alarm" if self.alarm else "changed" if self.changed else "ok"

    @property
    def remedy(self) -> str:
        """Text of the advice: "wait", "refit", or such as "an offset of +0.25 in log odds suffices"."""
        offset = f"an offset of {self.offset:+.2f} in log odds suffices"
        return offset if self.advice == "offset suffices" else self.advice

    @property
    def where(self) -> str:
        """Text of `worst`, such as "scores 0.8 to 1: predicted too high by 4 points (...)"; after "class cat, " if of a class."""
        return f"{self.worst}" if self.worst_class is None else f"class {self.worst_class}, {self.worst}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: the attributes with "difference" for the error, "e_value", and `worst` as a dict."""
        renamed = {"error": "difference", "low": "difference_low", "high": "difference_high"}
        numbers = [name for name in self.__dataclass_fields__ if name not in ("group", "worst")]
        return {
            "group": list(self.group),
            **{renamed.get(name, name): getattr(self, name) for name in numbers},
            "e_value": self.e_value,
            "worst": self.worst.to_dict(),
        }

    def __str__(self) -> str:
        """Write name, state, e-value and p-value, rows, and the mean difference; with an alarm or change also since when,
        where, and the advice.
        """
        state = self.state.upper() if self.state != "ok" else "ok"
        labelled = f"{self.rows:,} rows" if self.of is None else f"{self.rows:,} labelled of {self.of:,} rows"
        line = (
            f"{self.name}: {state}, {evidence_text(self.log_e, self.p_value)}, {labelled} ({self.rows_seen:,} in all)"
        )
        size = digits.with_interval(self.error, self.low, self.high, sign=True)
        line += f", mean difference (predicted - observed) {size}"
        if not (self.alarm or self.changed):
            return line
        return f"{line}; since about {self.since}; {self.where}; {self.remedy}"


@dataclass(frozen=True)
class WatchStep:
    """The state of all groups after a batch.

    It also has every attribute of a GroupStep: that of the only group, or of the group with the strongest evidence.

    Attributes
    ----------
    at : str
        Time of the batch.
    groups : mapping of tuple of str to GroupStep
        One per group of the batch.
    called : tuple of tuple of str
        The groups that raise the alarm.
    log_e : float
        Log of the weighted mean of the groups' e-values.
    p_value : float
        The same as a p-value, which may be read after every batch.
    alarm : bool
        Whether calibration was shown to be off by more than the tolerance, in any group.
    changed : bool
        Whether it was shown to have changed, in any group.
    repeated : bool
        Whether the batch was counted before, and changed nothing.

    See Also
    --------
    truecal.Watch : Its `update` returns it.
    """

    at: str
    groups: Mapping[Group, GroupStep]
    called: tuple[Group, ...]
    log_e: float
    p_value: float
    alarm: bool
    changed: bool
    repeated: bool = False

    @property
    def e_value(self) -> float:
        """The weighted mean of the groups' e-values, exp(`log_e`), at most about 1e304."""
        return e_value(self.log_e)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the group with the strongest evidence."""
        if name not in GroupStep.__dataclass_fields__ and name != "name":
            raise AttributeError(name)
        return getattr(max(self.groups.values(), key=lambda step: step.log_e), name)

    def frame(self) -> Frame:
        """Return one row per group: its name, time, rows, evidence, alarm, change, error with limits, advice and offset.

        Columns have the names of :class:`GroupStep`; worst_low, worst_high and worst_error are those of its `worst`.
        """
        state = ("at", "rows", "of", "rows_seen", "log_e", "p_value", "alarm", "changed", "since")
        numbers = ("error", "low", "high", "advice", "offset")
        return Frame.from_records(
            {
                "group": step.name,
                **{name: getattr(step, name) for name in (*state, *numbers)},
                "worst_low": step.worst.low,
                "worst_high": step.worst.high,
                "worst_error": step.worst.error,
            }
            for step in self.groups.values()
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: at, alarm, changed, log_e, e_value, p_value, called, repeated, groups (a dict for each)."""
        return {
            "at": self.at,
            "alarm": self.alarm,
            "changed": self.changed,
            "log_e": self.log_e,
            "e_value": self.e_value,
            "p_value": self.p_value,
            "called": [list(group) for group in self.called],
            "repeated": self.repeated,
            "groups": [step.to_dict() for step in self.groups.values()],
        }

    def __str__(self) -> str:
        """Write a line per group, after the time of the batch; above several groups one with the state of all."""
        lines = [f"{self.at}: {step}" for step in self.groups.values()]
        if len(lines) > 1:
            state = "ALARM" if self.alarm else "CHANGED" if self.changed else "ok"
            if self.called:
                state += f" in {', '.join(map(group_name, self.called))}"
            lines.insert(0, f"{self.at}: {len(lines)} groups: {state}, {evidence_text(self.log_e, self.p_value)}")
        return "\n".join(lines)
