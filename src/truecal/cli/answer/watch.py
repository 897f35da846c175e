"""How a watch answers on the command line: a line per batch and group, one JSON document, or metrics for Prometheus."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import truecal as tc
from truecal.cli.answer.formats import json_text, label_text

if TYPE_CHECKING:
    from truecal.watch import step as steps_of

FORMATS = ("line", "json", "prometheus")
_METRICS = {
    "alarm": "1 where calibration was shown to be off by more than the tolerance",
    "changed": "1 where calibration was shown to have changed",
    "log_e": "log of the evidence that calibration was ever off",
    "p_value": "p-value that may be read at any time",
    "error": "mean score minus frequency since the last restart",
    "low": "lower end of its confidence sequence",
    "high": "upper end of its confidence sequence",
    "rows_seen": "labelled rows counted in",
}


def rendered(form: str, watch: "tc.Watch", steps: "Sequence[steps_of.WatchStep]") -> str:
    """The answer after one or several batches."""
    if form == "prometheus":
        return _prometheus(watch)
    if form == "line":
        return "\n".join(f"{step}{' (counted before)' if step.repeated else ''}" for step in steps)
    from truecal.report import records

    settings = watch.settings
    content = records.document(
        "watch",
        tolerance=settings.tolerance,
        alpha=settings.alpha,
        run_length=settings.run_length,
        by=list(settings.by),
        judged=watch.judged,
        alarm=steps[-1].alarm,
        changed=steps[-1].changed,
        steps=[step.to_dict() for step in steps],
    )
    return json_text(content)


def _prometheus(watch: "tc.Watch") -> str:
    """The text format of Prometheus: one gauge per number, one line per group."""
    step = watch.step()
    lines = []
    for name, help_ in _METRICS.items():
        lines += [f"# HELP truecal_watch_{name} {help_}", f"# TYPE truecal_watch_{name} gauge"]
        lines += [
            f"truecal_watch_{name}{_labels(watch.settings.by, group)} {float(getattr(group, name)):.10g}"
            for group in step.groups.values()
        ]
    lines += [
        "# HELP truecal_watch_any_alarm 1 where any group raises the alarm",
        "# TYPE truecal_watch_any_alarm gauge",
    ]
    lines.append(f"truecal_watch_any_alarm {float(step.alarm or step.changed):.10g}")
    return "\n".join(lines)


def _labels(by: tuple[str, ...], step: "steps_of.GroupStep") -> str:
    pairs = [f'{_name(name)}="{label_text(value)}"' for name, value in zip(by, step.group, strict=True)]
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _name(column: str) -> str:
    """A label name: letters, digits and underscores."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in column)
    return f"_{plain}" if plain[:1].isdigit() else plain
