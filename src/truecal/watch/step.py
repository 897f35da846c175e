"""What a watch says after a batch."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp
from typing import Any

from truecal.frame import Frame
from truecal.watch.findings import Advice, Region

Group = tuple[str, ...]


def group_name(group: Group) -> str:
    """A group in words."""
    return ", ".join(part or "''" for part in group) if group else "all rows"


_LARGEST = 700.0  # exp of more is no float


def e_value(log_e: float) -> float:
    return exp(min(log_e, _LARGEST))


@dataclass(frozen=True)
class GroupStep:
    """One group (or all rows) after a batch.

    Attributes
    ----------
    rows, of : rows with a label in this batch, and how many were predicted, where that was said. rows_seen : since the start.
    e_value, p_value : evidence that calibration of this group was ever off by more than the tolerance since the last restart; the
        p-value may be read after every batch. log_e : log of the e-value, for evidence beyond the range of floats.
    alarm : the e-value is large enough; among groups as `truecal.watch.family` says, as long as it is. changed : the evidence for
        a change is large enough for the run length asked for.
    evidence_of_change : log of the sum over starting times.
    since : the batch with which the change most likely began. worst : the region of scores that is off the most since then, and
        worst_class the class it belongs to where classes are watched.
    error, low, high : mean score - frequency of all rows since the last restart (positive: overconfident), and its confidence
        sequence, which holds at all times together.
    advice : "wait", "offset suffices" or "refit"; offset : the offset in log odds that fits the rows since `since`.
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
    worst: Region
    worst_class: str | None
    error: float
    low: float
    high: float
    advice: Advice
    offset: float

    @property
    def e_value(self) -> float:
        return e_value(self.log_e)

    @property
    def name(self) -> str:
        return group_name(self.group)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        names = [name for name in self.__dataclass_fields__ if name not in ("group", "worst")]
        worst = {**vars(self.worst), "error": self.worst.error, "direction": self.worst.direction}
        return {
            "group": list(self.group),
            **{name: getattr(self, name) for name in names},
            "e_value": self.e_value,
            "worst": worst,
        }

    def __str__(self) -> str:
        state = "ALARM" if self.alarm else "CHANGED" if self.changed else "ok"
        labelled = f"{self.rows} rows" if self.of is None else f"{self.rows} labelled of {self.of}"
        line = f"{self.name}: {state}, e = {self.e_value:.3g}, p = {self.p_value:.3g}, {labelled} (in all {self.rows_seen})"
        line += f", error {self.error:+.4f} [{self.low:+.4f}, {self.high:+.4f}]"
        if not (self.alarm or self.changed):
            return line
        of = "" if self.worst_class is None else f"class {self.worst_class}, "
        return f"{line}; since {self.since}; {of}{self.worst}; {self.advice} ({self.offset:+.3f} in log odds)"


@dataclass(frozen=True)
class WatchStep:
    """What the batch `at` says of all groups together; `groups` has one GroupStep per group, `called` those that raise the alarm.

    Without groups every attribute of the one GroupStep can be asked of the step itself. `repeated`: the batch had been seen before
    and changed nothing.
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
        """The weighted mean of the groups' e-values."""
        return e_value(self.log_e)

    def __getattr__(self, name: str) -> Any:
        """What one group says, where there is one; of several, what the group with most evidence says."""
        if name not in GroupStep.__dataclass_fields__ and name not in ("name",):
            raise AttributeError(name)
        worst = max(self.groups.values(), key=lambda step: step.log_e)
        return getattr(worst, name)

    def frame(self) -> Frame:
        """One row per group."""
        names = ("at", "rows", "of", "rows_seen", "log_e", "p_value", "alarm", "changed", "since")
        numbers = ("error", "low", "high", "advice", "offset")
        return Frame.from_records(
            {
                "group": step.name,
                **{name: getattr(step, name) for name in (*names, *numbers)},
                "worst_low": step.worst.low,
                "worst_high": step.worst.high,
                "worst_error": step.worst.error,
            }
            for step in self.groups.values()
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
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
        lines = [f"{self.at}: {step}" for step in self.groups.values()]
        if len(lines) > 1:
            state = "ALARM" if self.alarm else "CHANGED" if self.changed else "ok"
            lines.insert(0, f"{self.at}: {len(lines)} groups: {state}, e = {self.e_value:.3g}, p = {self.p_value:.3g}")
        return "\n".join(lines)
