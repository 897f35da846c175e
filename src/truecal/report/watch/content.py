"""What the page of a watch says, as one typed record taken from its state: nothing is computed anew."""

from dataclasses import dataclass
from math import log

import truecal as tc
from truecal.report.provenance import now, versions
from truecal.watch import WatchedGroup
from truecal.watch import step as steps_of


@dataclass(frozen=True)
class TimeLine:
    """Columns of a group's history: one value per batch that is kept."""

    at: list[str]
    rows: list[int]
    batch_error: list[float]
    error: list[float]
    low: list[float]
    high: list[float]
    log_e: list[float]
    restart: list[bool]


@dataclass(frozen=True)
class Diagram:
    """A reliability diagram: bins with at least one row."""

    score: list[float]
    frequency: list[float]
    rows: list[int]


@dataclass(frozen=True)
class GroupContent:
    """One group: what it says now, its time line, and its diagrams before and after the estimated start of a change."""

    name: str
    step: steps_of.GroupStep
    limit: float  # log of the e-value with which this group alone raises the alarm
    line: TimeLine
    before: Diagram
    after: Diagram


@dataclass(frozen=True)
class WatchContent:
    """Everything on the page."""

    title: str
    step: steps_of.WatchStep
    tolerance: float
    alpha: float
    run_length: int
    by: tuple[str, ...]
    judged: str
    outcome: str
    batches: int
    groups: list[GroupContent]
    made: str
    versions: dict[str, str]
    command: str | None

    @property
    def sentence(self) -> str:
        """What was found, in one sentence."""
        step, many = self.step, len(self.groups)
        if not (step.alarm or step.changed):
            return f"No sign that calibration is off by more than {self.tolerance:g}, after {self.batches} batches."
        off = [group for group in self.groups if group.step.alarm or group.step.changed]
        worst = max(off or self.groups, key=lambda group: group.step.log_e).step
        who = (
            ""
            if many == 1
            else f"{worst.name}: "
            if len(off) <= 1
            else f"{len(off)} of {many} groups, {worst.name} most: "
        )
        return f"{who}off by more than {self.tolerance:g} since about {worst.since}; {worst.worst}. Advice: {worst.advice}."


def gather_watch(watch: tc.Watch, *, title: str, command: str | None) -> WatchContent:
    """The content of the page of a watch."""
    step = watch.step()
    shares = watch.shares()
    settings = watch.settings
    groups = [_group(watch.group(*key), step.groups[key], -log(settings.alpha * shares[key])) for key in watch.groups]
    return WatchContent(
        title=title,
        step=step,
        tolerance=settings.tolerance,
        alpha=settings.alpha,
        run_length=settings.run_length,
        by=settings.by,
        judged=watch.judged,
        outcome="Accuracy" if watch.judged == "top label" else "Frequency",
        batches=max(len(group.line.at) for group in groups),
        groups=groups,
        made=now(),
        versions=versions(),
        command=command,
    )


def _group(group: WatchedGroup, step: steps_of.GroupStep, limit: float) -> GroupContent:
    lines = group.history.lines
    stream = group.streams[group.leader]
    before, after = stream.blocks.split(stream.start)
    return GroupContent(
        name=group.name,
        step=step,
        limit=limit,
        line=TimeLine(
            at=[line.at for line in lines],
            rows=[line.rows for line in lines],
            batch_error=[line.batch_error for line in lines],
            error=[line.error for line in lines],
            low=[line.low for line in lines],
            high=[line.high for line in lines],
            log_e=[line.log_e for line in lines],
            restart=[line.restart for line in lines],
        ),
        before=_diagram(before.tolist()),
        after=_diagram(after.tolist()),
    )


def _diagram(sums: list[list[float]]) -> Diagram:
    filled = [(n, ones, scores) for n, ones, scores in zip(*sums, strict=True) if n > 0]
    return Diagram(
        score=[scores / n for n, _, scores in filled],
        frequency=[ones / n for n, ones, _ in filled],
        rows=[round(n) for n, _, _ in filled],
    )
