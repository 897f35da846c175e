"""The page of a watch, from its state: nothing is computed anew."""

from collections.abc import Mapping
from typing import Any

import truecal as tc
from truecal.pages.records import Provenance
from truecal.pages.render import Page
from truecal.watch.conclusion import conclude_watch
from truecal.watch.state import WatchedGroup

_LINE = ("at", "rows", "batch_error", "error", "low", "high", "log_e", "restart")


class WatchPage(Page):
    """The page of a watch; `groups` hold for each group its step, its time line, and its diagrams before and after."""

    template = "watch.html"

    def drawn(self) -> dict[str, object]:
        """Return groups, tolerance and name of the outcome, which scripts draw."""
        groups = [{name: group[name] for name in group if name != "step"} for group in self.groups]
        outcome = "Accuracy" if self.lens_name == "top label" else "Frequency"
        return {"groups": groups, "tolerance": self.settings.tolerance, "outcome": outcome}


def gather_watch(watch: tc.Watch, *, title: str = "Calibration over time", command: str | None = None) -> WatchPage:
    """Read the content of the page from the state of a watch."""
    conclusion, settings = conclude_watch(watch), watch.settings
    steps = conclusion.step.groups
    used = {"tolerance": settings.tolerance, "alpha": settings.alpha, "run length": settings.run_length}
    return WatchPage(
        title=title,
        conclusion=conclusion,
        settings=settings,
        lens_name=watch.lens_name,
        groups=[_group(watch.group(*key), steps[key], conclusion.limits[key]) for key in watch.groups],
        provenance=Provenance({}, command, used),
    )


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
    """Return mean score, frequency and rows of the filled bins, from sums (rows, ones, scores) by bin."""
    filled = [(n, ones, scores) for n, ones, scores in zip(*sums, strict=True) if n > 0]
    return {
        "score": [scores / n for n, _, scores in filled],
        "frequency": [ones / n for n, ones, _ in filled],
        "rows": [round(n) for n, _, _ in filled],
    }
