"""The sections of the page of a watch as HTML."""

from truecal.report.html import chart, element, escaped, page_body, paragraph, section, terms, verdict_of
from truecal.report.table import Cell, number, p_cell, span, table
from truecal.report.watch.content import GroupContent, WatchContent

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
        ("Command", content.command or "truecal.report.report_watch(...) from Python"),
        ("Settings", options),
        ("Versions", ", ".join(f"{name} {number}" for name, number in content.versions.items())),
    ]
    return terms(rows, "box")
