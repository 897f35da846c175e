"""The page of a watch, from its state: nothing is computed anew."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import truecal as tc
from truecal.pages.records import Provenance
from truecal.pages.render import render
from truecal.watch.state import WatchedGroup

_LINE = ("at", "rows", "batch_error", "error", "low", "high", "log_e", "restart")


@dataclass(frozen=True)
class WatchPage:
    """Everything on the page; `groups` hold for each group its step, its time line, and its diagrams before and after."""

    title: str
    step: Any
    settings: Any
    judged: str
    batches: int
    groups: Sequence[Mapping[str, Any]]
    provenance: Provenance

    @property
    def off(self) -> bool:
        """Whether any group is alarmed or changed."""
        return bool(self.step.alarm or self.step.changed)

    @property
    def sentence(self) -> str:
        """Say which group is off since when, and what to do."""
        tolerance = f"{self.settings.tolerance:g}"
        if not self.off:
            return f"No sign that calibration is off by more than {tolerance}, after {self.batches} batches."
        affected = [group for group in self.groups if group["step"].alarm or group["step"].changed]
        worst = max(affected or self.groups, key=lambda group: group["step"].log_e)["step"]
        count = len(self.groups)
        subject = f"{len(affected)} of {count} groups, {worst.name} most: " if len(affected) > 1 else f"{worst.name}: "
        prefix = "" if count == 1 else subject
        return f"{prefix}off by more than {tolerance} since about {worst.since}; {worst.worst}. Advice: {worst.advice}."

    def html(self) -> str:
        """Render the page."""
        drawn = ("name", "limit", "line", "before", "after")
        groups = [{name: group[name] for name in drawn} for group in self.groups]
        outcome = "Accuracy" if self.judged == "top label" else "Frequency"
        data = {"groups": groups, "tolerance": self.settings.tolerance, "outcome": outcome}
        return render("watch.html", data, page=self)


def gather_watch(watch: tc.Watch, *, title: str, command: str | None) -> WatchPage:
    """Read the content of the page from the state of a watch."""
    step, shares, settings = watch.step(), watch.shares(), watch.settings
    groups = [_group(watch.group(*key), step.groups[key], -log(settings.alpha * shares[key])) for key in watch.groups]
    used = {"tolerance": settings.tolerance, "alpha": settings.alpha, "run length": settings.run_length}
    batches = max(len(group["line"]["at"]) for group in groups)
    return WatchPage(title, step, settings, watch.judged, batches, groups, Provenance({}, command, used))


def _group(group: WatchedGroup, step: Any, limit: float) -> Mapping[str, Any]:
    """Return a group's step, history and diagrams; at `limit` its log e-value alone raises the alarm."""
    stream = group.streams[group.leader]
    before, after = stream.blocks.split(stream.start)
    return {
        "name": group.name,
        "step": step,
        "limit": limit,
        "line": {name: [getattr(line, name) for line in group.history.lines] for name in _LINE},
        "before": _diagram(before.tolist()),
        "after": _diagram(after.tolist()),
    }


def _diagram(sums: list[list[float]]) -> Mapping[str, Any]:
    filled = [(n, ones, scores) for n, ones, scores in zip(*sums, strict=True) if n > 0]
    return {
        "score": [scores / n for n, _, scores in filled],
        "frequency": [ones / n for n, ones, _ in filled],
        "rows": [round(n) for n, _, _ in filled],
    }
