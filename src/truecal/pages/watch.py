"""What the page of a watch says, as one typed record taken from its state: nothing is computed anew."""

from dataclasses import dataclass
from math import log

import truecal as tc
from truecal.pages.html import (
    Cell,
    chart,
    element,
    escaped,
    number,
    p_cell,
    page_body,
    paragraph,
    section,
    span,
    table,
    terms,
    verdict_of,
)
from truecal.pages.records import now, versions
from truecal.watch import findings
from truecal.watch.state import WatchedGroup

# ----------------------------------------------------------------------------------------------------
# What the page of a watch says, as one typed record taken from its state: nothing is computed anew


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
    step: findings.GroupStep
    limit: float  # log of the e-value with which this group alone raises the alarm
    line: TimeLine
    before: Diagram
    after: Diagram


@dataclass(frozen=True)
class WatchContent:
    """Everything on the page."""

    title: str
    step: findings.WatchStep
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


def _group(group: WatchedGroup, step: findings.GroupStep, limit: float) -> GroupContent:
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


# ----------------------------------------------------------------------------------------------------
# The sections of the page of a watch as HTML

_HEAT = "Mean score minus frequency of every batch: orange is overconfident, blue underconfident, white within the tolerance."


def watch_body(content: WatchContent) -> str:
    """Everything inside the body element except the scripts."""
    off = content.step.alarm or content.step.changed
    badge = "Alarm" if content.step.alarm else "Changed" if content.step.changed else "No alarm"
    verdict = verdict_of("outside" if off else "open", badge, content.sentence, _promise(content))
    facts = [f"{content.batches} batches, the last at {content.step.at}", f"judged: {content.judged}"]
    facts += [f"{len(content.groups)} groups by {', '.join(content.by)}"] if content.by else []
    heat = [section("days", "Groups and days", chart("heat", _HEAT))] if len(content.groups) > 1 else []
    return page_body(
        content.title,
        facts,
        verdict,
        section("groups", "What is known now", _groups(content)),
        *heat,
        section("time", "Over time", _time(content)),
        section("reproduce", "Reproducibility", _reproduce(content)),
    )


def _promise(content: WatchContent) -> str:
    return (
        f"For a model within the tolerance of {content.tolerance:g} the chance of ever raising the alarm is at most "
        f"{content.alpha:.3g}, however often one looks; a false sign of a change comes once in {content.run_length} batches on "
        "average, at most."
    )


def _groups(content: WatchContent) -> str:
    head = ["Group", "State", "e-value", "p-value", "Rows", "Mean error", f"{1 - content.alpha:.0%} sequence", "Since"]
    rows = [_row(group) for group in content.groups]
    note = paragraph(
        "Mean error is mean score minus frequency: above 0 the model is overconfident. Its confidence sequence holds at all times "
        "together. The start and the region are estimates.",
    )
    return note + table("Groups", [*head, "Advice", "Where"], rows, page=50, id_="group-table")


def _row(group: GroupContent) -> list[Cell]:
    step = group.step
    off = step.alarm or step.changed
    state = "alarm" if step.alarm else "changed" if step.changed else "ok"
    labelled = f"{step.rows_seen:,}" if step.of is None else f"{step.rows_seen:,} (last: {step.rows:,} of {step.of:,})"
    where = str(step.worst) if step.worst_class is None else f"class {step.worst_class}, {step.worst}"
    to_do = f"{step.advice} ({step.offset:+.3f} in log odds)" if step.advice == "offset suffices" else step.advice
    return [
        Cell(group.name),
        Cell(state),
        Cell(f"{step.e_value:.3g}", step.log_e),
        p_cell(step.p_value),
        Cell(labelled, float(step.rows_seen)),
        number(step.error, "+.4f"),
        span(step.low, step.high, "+.4f"),
        Cell(step.since if off else "-"),
        Cell(to_do),
        Cell(where if off else "-"),
    ]


def _time(content: WatchContent) -> str:
    worst = max(range(len(content.groups)), key=lambda i: content.groups[i].step.log_e)
    options = [
        element("option", escaped(group.name), value=i, **({"selected": ""} if i == worst else {}))
        for i, group in enumerate(content.groups)
    ]
    chooser = element(
        "p", element("label", "Group ", for_="group"), element("select", *options, id="group"), class_="control"
    )
    without = element("noscript", element("p", "The charts need JavaScript; every number is in the table above."))
    charts = [
        (
            "errors",
            "Error of every batch (dots), and of all rows so far with its confidence sequence; tolerance dashed.",
        ),
        ("evidence", "Evidence that calibration was ever off, on a log scale; the alarm is raised at the dashed line."),
        ("reliability", "Confidence and reality before and after the estimated start of the change."),
    ]
    figures = [chart(*one) for one in charts]
    return without + (chooser if len(content.groups) > 1 else "") + element("div", *figures, class_="charts")


def _reproduce(content: WatchContent) -> str:
    options = f"tolerance = {content.tolerance:g}, alpha = {content.alpha:g}, run length = {content.run_length}"
    rows = [
        ("Made", content.made),
        ("Command", content.command or "tc.report(watch, ...) from Python"),
        ("Settings", options),
        ("Versions", ", ".join(f"{name} {number}" for name, number in content.versions.items())),
    ]
    return terms(rows, "box")
