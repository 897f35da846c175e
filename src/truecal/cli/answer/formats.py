"""One answer for many readers: text, one line, Markdown, GitHub annotations, JUnit, Prometheus, JSON.

A verb gives findings, one per thing judged; every format is made from them, so that no two formats can disagree.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from truecal.errors import printable

FORMATS = ("text", "line", "markdown", "github", "junit", "json", "prometheus")


@dataclass(frozen=True)
class Finding:
    """Something judged: what it is called, its numbers by name, a sentence, and whether a gate let it pass (None: no gate)."""

    name: str
    sentence: str
    numbers: Mapping[str, float | None]
    passed: bool | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """What a verb answers: the JSON document, the text for people, the findings, and what to mind."""

    verb: str
    document: Mapping[str, object]
    text: str
    findings: Sequence[Finding]
    verdict: str = ""
    warnings: Sequence[str] = ()


def rendered(answer: Answer, form: str) -> str:
    """The answer in a format."""
    return _RENDERERS[form](answer)


def json_text(document: Mapping[str, object]) -> str:
    """A JSON document for people and programs."""
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False)


def _line(answer: Answer) -> str:
    return "\n".join(f"{_word(f.passed)}{printable(f.name)}: {printable(f.sentence)}" for f in answer.findings)


def _word(passed: bool | None) -> str:
    return "" if passed is None else "PASS " if passed else "FAIL "


def _markdown(answer: Answer) -> str:
    names = list(dict.fromkeys(name for finding in answer.findings for name in finding.numbers))
    gated = any(finding.passed is not None for finding in answer.findings)
    header = ["", *names, *(["gate"] if gated else [])]
    lines = [_row(header), _row(["---", *("---:" for _ in names), *(["---"] if gated else [])])]
    for finding in answer.findings:
        numbers = [_number(finding.numbers.get(name)) for name in names]
        lines.append(_row([finding.name, *numbers, *([_word(finding.passed).strip()] if gated else [])]))
    notes = [f"- {printable(note)}" for note in answer.warnings]
    verdict = ["", f"**{printable(answer.verdict)}**"] if answer.verdict else []
    return "\n".join([*lines, *verdict, *([""] if notes else []), *notes])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(printable(cell).replace("|", "\\|") for cell in cells) + " |"


def _number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return ""
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) > 1 else f"{value:.4f}"


def _github(answer: Answer) -> str:
    """Workflow commands: what fails becomes an error of the run, what is doubtful a warning."""
    lines = []
    for finding in answer.findings:
        kind = "notice" if finding.passed is not False else "error"
        title = _property(f"truecal {answer.verb}: {finding.name}")
        lines.append(f"::{kind} title={title}::{_command(_word(finding.passed) + finding.sentence)}")
    title = _property(f"truecal {answer.verb}")
    return "\n".join([*lines, *(f"::warning title={title}::{_command(note)}" for note in answer.warnings)])


def _command(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _command(text).replace(":", "%3A").replace(",", "%2C")


def _junit(answer: Answer) -> str:
    """A test suite with one case per finding."""
    suite = quoteattr(f"truecal {answer.verb}")
    cases = []
    for finding in answer.findings:
        sentence = _xml(finding.sentence)
        inside = f"<system-out>{escape(sentence)}</system-out>"
        if finding.passed is False:
            inside = f'<failure message={quoteattr(sentence)} type="calibration"/>' + inside
        name = quoteattr(_xml(finding.name))
        cases.append(f'  <testcase classname="truecal.{answer.verb}" name={name}>{inside}</testcase>')
    failed = sum(finding.passed is False for finding in answer.findings)
    head = f'<testsuite name={suite} tests="{len(cases)}" failures="{failed}" errors="0" skipped="0">'
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *cases, "</testsuite>"])


def _xml(text: str) -> str:
    """Text without the characters that XML forbids."""
    return re.sub("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)


def _prometheus(answer: Answer) -> str:
    """The text exposition format: one gauge per number, labelled by what was judged."""
    lines = []
    numbers = dict.fromkeys(name for finding in answer.findings for name in finding.numbers)
    gauges = [*numbers, *(["gate_passed"] if any(f.passed is not None for f in answer.findings) else [])]
    for gauge in gauges:
        metric = f"truecal_{answer.verb}_{re.sub('[^a-z0-9_]', '_', gauge.lower())}"
        lines.append(f"# TYPE {metric} gauge")
        for finding in answer.findings:
            passed = None if finding.passed is None else float(finding.passed)
            value = passed if gauge == "gate_passed" else finding.numbers.get(gauge)
            if value is not None:
                labels = ",".join(f'{key}="{label_text(text)}"' for key, text in finding.labels.items())
                lines.append(f"{metric}{{{labels}}} {value!r}" if labels else f"{metric} {value!r}")
    return "\n".join(lines)


def label_text(text: str) -> str:
    """Text as a label of Prometheus holds it."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


_RENDERERS: dict[str, Callable[[Answer], str]] = {
    "text": lambda answer: answer.text,
    "line": _line,
    "markdown": _markdown,
    "github": _github,
    "junit": _junit,
    "json": lambda answer: json_text(answer.document),
    "prometheus": _prometheus,
}
