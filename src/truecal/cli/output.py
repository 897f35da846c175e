"""Answers of commands, rendered for people and programs: text, one line, Markdown, GitHub, JUnit, JSON, Prometheus.

A command returns a Reply; one renderer per format turns it into text, so that no two formats can disagree.
"""

import json
import math
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import click

from truecal import digits
from truecal.errors import printable
from truecal.inference.conclusion import Conclusion
from truecal.parallel import Step, progress_bar
from truecal.table import Frame, markdown_text, plain

# ----------------------------------------------------------------------------------------------------
# What a command returns


@dataclass(frozen=True)
class Statement:
    """One thing judged: its name, a sentence, its numbers, and whether a gate passes (None without a gate)."""

    name: str
    sentence: str
    numbers: Mapping[str, float | None]
    passed: bool | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, conclusion: Conclusion, facts: str = "", **labels: str) -> "Statement":
        """Return the statement of a conclusion: error, interval, n, p-value, `facts` in parentheses, and the reason of the gate.

        Its numbers are error, low, high, p_value, direction, rows and, with one, tolerance; `labels` name it in metrics.
        """
        c = conclusion
        size = digits.with_interval(c.value, c.low, c.high)
        parts = [f"{c.metric} {size}{'' if c.low is None else f' at {c.level:.0%}'}", f"n = {c.n}"]
        parts += [] if c.p_value is None else [digits.p_equation(c.p_value)]
        gate = c.gate.partition(": ")[2]
        sentence = f"{', '.join(parts)}{facts and f' ({facts})'}{gate and f'; {gate}'}"
        numbers = {"error": c.value, "low": c.low, "high": c.high, "p_value": c.p_value, "direction": c.direction}
        limit = {} if c.tolerance is None else {"tolerance": c.tolerance}
        return cls(name, sentence, {**numbers, "rows": float(c.n), **limit}, c.passed, labels)


@dataclass(frozen=True)
class Reply:
    """What a command answers: name and content of its JSON document, text for people, and statements.

    The conclusion, where there is one, is the last line of every format and decides the exit code.
    """

    kind: str
    content: Mapping[str, object]
    text: str
    statements: Sequence[Statement] = ()
    conclusion: Any = None  # of a dataset, of a comparison or of a watch: `gate`, `passed`, `to_dict()`
    warnings: Sequence[str] = ()
    failed: bool = False
    totals: Mapping[str, float] = field(default_factory=dict)  # numbers of all statements together

    @property
    def gate(self) -> str:
        """PASS or FAIL and why; empty without a gate.

        >>> Reply("measure", {}, "").gate
        ''
        """
        return "" if self.conclusion is None else str(self.conclusion.gate)

    @property
    def exit_code(self) -> int:
        """1 if a gate failed, else 0.

        >>> Reply("measure", {}, "").exit_code, Reply("measure", {}, "", failed=True).exit_code
        (0, 1)
        """
        return int(self.failed or (self.conclusion is not None and self.conclusion.passed is False))

    @property
    def verdicts(self) -> Sequence[Statement]:
        """The statements; where there are several and a gate, followed by one on "all together".

        Its sentence is the gate without the word before its colon, its numbers are `totals`.
        """
        if len(self.statements) < 2 or not self.gate or self.conclusion is None:
            return self.statements
        return [
            *self.statements,
            Statement("all together", self.gate.partition(": ")[2], self.totals, self.conclusion.passed),
        ]


# ----------------------------------------------------------------------------------------------------
# One renderer per format


def _text(answer: Reply) -> str:
    """Return the text of a reply with its gate as the last line, control characters escaped.

    >>> _text(Reply("measure", {}, "error 0.1"))
    'error 0.1'
    """
    text = f"{answer.text}\n{answer.gate}" if answer.gate else answer.text
    return "\n".join(map(printable, text.split("\n")))  # names of files and groups cannot steer a terminal


def _json(answer: Reply) -> str:
    """Return a reply as a JSON document: schema, version, content, and the conclusion if there is one.

    >>> print(_json(Reply("measure", {"n": 3}, "")))
    {
      "schema": "truecal.measure",
      "version": 1,
      "n": 3
    }
    """
    conclusion = {} if answer.conclusion is None else {"conclusion": answer.conclusion.to_dict()}
    document = {"schema": f"truecal.{answer.kind}", "version": 1, **plain({**answer.content, **conclusion})}
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False)


def _line(answer: Reply) -> str:
    """Return one line per verdict: "PASS name: sentence".

    >>> print(_line(Reply("measure", {}, "", [Statement("day", "error 0.1", {}, True)])))
    PASS day: error 0.1
    """
    return "\n".join(f"{_verdict_word(s.passed)}{printable(s.name)}: {printable(s.sentence)}" for s in answer.verdicts)


def _verdict_word(passed: bool | None) -> str:
    """Return the word that precedes the name of a statement, with a space: "PASS ", "FAIL " or, for None, "".

    >>> _verdict_word(True), _verdict_word(False), _verdict_word(None)
    ('PASS ', 'FAIL ', '')
    """
    return "" if passed is None else "PASS " if passed else "FAIL "


def _markdown(answer: Reply) -> str:
    """Return a Markdown table of the numbers of every statement, then the gate and a list of warnings.

    >>> print(_markdown(Reply("measure", {}, "", statements=[Statement("a.csv", "", {"error": 0.12345}, None, {})])))
    |  | error |
    | --- | --- |
    | a.csv | 0.1235 |
    """
    records = []
    for statement in answer.statements:
        numbers = {name: x for name, x in statement.numbers.items() if x is not None and not math.isnan(x)}
        cells = {name: int(x) if float(x).is_integer() else round(x, 4) for name, x in numbers.items()}
        gate = {} if statement.passed is None else {"gate": _verdict_word(statement.passed).strip()}
        records.append({"": statement.name, **dict.fromkeys(statement.numbers), **cells, **gate})
    gate_line = ["", f"**{markdown_text(answer.gate)}**"] if answer.gate else []
    notes = ["", *(f"- {markdown_text(note)}" for note in answer.warnings)] if answer.warnings else []
    return "\n".join([Frame.from_records(records).to_markdown(), *gate_line, *notes])


def _github(answer: Reply) -> str:
    """Return workflow commands: an error per failed verdict, a notice per other verdict, a warning per warning.

    >>> print(_github(Reply("measure", {}, "", statements=[Statement("a.csv", "error 0.1", {}, False, {})])))
    ::error title=truecal measure%3A a.csv::FAIL error 0.1
    """
    lines = []
    for statement in answer.verdicts:
        kind = "notice" if statement.passed is not False else "error"
        title = _escape_property(f"truecal {answer.kind}: {statement.name}")
        lines.append(f"::{kind} title={title}::{_escape_message(_verdict_word(statement.passed) + statement.sentence)}")
    title = _escape_property(f"truecal {answer.kind}")
    return "\n".join([*lines, *(f"::warning title={title}::{_escape_message(note)}" for note in answer.warnings)])


def _escape_message(text: str) -> str:
    r"""Escape the message of a GitHub workflow command.

    >>> _escape_message("50%\nof")
    '50%25%0Aof'
    """
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    """Escape a property of a GitHub workflow command.

    >>> _escape_property("a:b,c")
    'a%3Ab%2Cc'
    """
    return _escape_message(text).replace(":", "%3A").replace(",", "%2C")


def _junit(answer: Reply) -> str:
    """Return a JUnit test suite with one case per verdict; failed gates are failures.

    >>> print(_junit(Reply("measure", {}, "", statements=[Statement("a.csv", "error 0.1", {}, None, {})])))
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuite name="truecal measure" tests="1" failures="0" errors="0" skipped="0">
      <testcase classname="truecal.measure" name="a.csv"><system-out>error 0.1</system-out></testcase>
    </testsuite>
    """
    cases = []
    for statement in answer.verdicts:
        sentence = _xml_characters(statement.sentence)
        inside = f"<system-out>{escape(sentence)}</system-out>"
        if statement.passed is False:
            inside = f'<failure message={quoteattr(sentence)} type="calibration"/>' + inside
        name = quoteattr(_xml_characters(statement.name))
        cases.append(f'  <testcase classname="truecal.{answer.kind}" name={name}>{inside}</testcase>')
    failed = sum(statement.passed is False for statement in answer.verdicts)
    suite = f'name={quoteattr(f"truecal {answer.kind}")} tests="{len(cases)}" failures="{failed}"'
    head = f'<testsuite {suite} errors="0" skipped="0">'
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *cases, "</testsuite>"])


def _xml_characters(text: str) -> str:
    """Replace the characters that XML forbids, such as most control characters, by U+FFFD.

    >>> _xml_characters("a" + chr(0)) == "a" + chr(0xFFFD)
    True
    """
    return re.sub("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)


def _prometheus(answer: Reply) -> str:
    """Return the text exposition format: one gauge per number of the verdicts, with the labels of their statements.

    Numbers that are None are left out; `gate_passed` is 1 or 0.
    """
    lines = []
    gauges = [*dict.fromkeys(name for statement in answer.verdicts for name in statement.numbers)]
    gauges += ["gate_passed"] if any(statement.passed is not None for statement in answer.verdicts) else []
    for gauge in gauges:
        metric = f"truecal_{answer.kind}_{re.sub('[^a-z0-9_]', '_', gauge.lower())}"
        lines.append(f"# TYPE {metric} gauge")
        for statement in answer.verdicts:
            passed = None if statement.passed is None else float(statement.passed)
            value = passed if gauge == "gate_passed" else statement.numbers.get(gauge)
            if value is not None:
                labels = ",".join(
                    f'{_label_name(key)}="{_escape_label(label)}"' for key, label in statement.labels.items()
                )
                text = str(int(value)) if float(value).is_integer() else repr(value)
                lines.append(f"{metric}{{{labels}}} {text}" if labels else f"{metric} {text}")
    return "\n".join(lines)


def _label_name(column: str) -> str:
    """Return a label name of ASCII letters, digits and underscores that begins with no digit.

    >>> _label_name("3rd site"), _label_name("site")
    ('_3rd_site', 'site')
    """
    return re.sub(r"^(?=\d)", "_", re.sub(r"\W", "_", column, flags=re.ASCII))


def _escape_label(text: str) -> str:
    """Escape the value of a Prometheus label.

    >>> _escape_label('"') == chr(92) + '"'  # a backslash before it
    True
    """
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


RENDERERS: dict[str, Callable[[Reply], str]] = {
    "text": _text,
    "line": _line,
    "markdown": _markdown,
    "github": _github,
    "junit": _junit,
    "json": _json,
    "prometheus": _prometheus,
}

# ----------------------------------------------------------------------------------------------------
# Words and tables


def page_written(kind: str, path: Path, **content: object) -> Reply:
    """Return the reply that a page was written: `content`, `path` and `bytes`, and the text "wrote PATH (0.1 MB)"."""
    size = path.stat().st_size
    return Reply(kind, {**content, "path": str(path), "bytes": size}, f"wrote {path} ({size / 1e6:.1f} MB)")


def command_line() -> str:
    """Return the command as it was typed, for the page that it writes."""
    return shlex.join(["truecal", *sys.argv[1:]])


def note(text: str) -> None:
    """Print text on stderr, control characters escaped."""
    click.echo("\n".join(map(printable, text.split("\n"))), err=True)


@contextmanager
def working(first: str = "working") -> Iterator[Callable[[str], object]]:
    """Show on a terminal what is being computed, and for how long; yield a function that changes the words."""
    with progress_bar(first) as progress:
        yield lambda words: progress(Step(words))
