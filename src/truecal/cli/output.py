"""One answer for many readers: text, one line, Markdown, GitHub annotations, JUnit, Prometheus, JSON.

A verb gives findings, one per thing judged; every format is made from them, so that no two formats can disagree.
"""

import json
import math
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

import click

import truecal as tc
from truecal.errors import printable
from truecal.table import markdown_text
from truecal.writing import check_not_input, check_output, write_whole

if TYPE_CHECKING:
    from truecal.watch.findings import GroupStep, WatchStep


# ----------------------------------------------------------------------------------------------------
# One answer for many readers: text, one line, Markdown, GitHub annotations, JUnit, Prometheus, JSON

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
    notes = [f"- {markdown_text(note)}" for note in answer.warnings]
    verdict = ["", f"**{markdown_text(answer.verdict)}**"] if answer.verdict else []
    return "\n".join([*lines, *verdict, *([""] if notes else []), *notes])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(markdown_text(cell).replace("|", "\\|") for cell in cells) + " |"


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


# ----------------------------------------------------------------------------------------------------
# How a verb answers: in the format asked for, to the terminal or whole into a file

Command = Callable[..., Any]


class Share(click.FloatRange):
    """A number from 0 to 1; the word nan, which compares as neither too small nor too large, is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a number from {self.min} to {self.max}.", param, ctx)
        return number


class OutputFile(click.Option):
    """An option that names what is written. It is refused where it cannot be written or is read, before anything is computed."""

    def __init__(self, *arguments: Any, folder: bool = False, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.folder = folder  # may be one: then the verb tests whether it can be written

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        value, rest = super().handle_parse_result(ctx, opts, args)
        if isinstance(value, str) and value != "-" and not ctx.resilient_parsing:
            (check_not_input if self.folder else check_output)(value, _inputs(ctx.command, opts))
        return value, rest


def _inputs(command: click.Command, opts: Mapping[str, Any]) -> list[str]:
    """The files that a command line names to be read: arguments, options whose value is a file, and @FILE."""
    names: list[str] = []
    for param in command.params:
        value = opts.get(param.name or "")
        values = [str(v) for v in value if v is not None] if isinstance(value, list | tuple) else [str(value or "")]
        file = isinstance(param, click.Argument) or str(param.metavar).partition(".")[0] in ("FILE", "TABLE", "STORE")
        if file and not isinstance(param, OutputFile):
            names += values
        names += [v.removeprefix("@") for v in values if v.startswith("@")]
    return names


@dataclass(frozen=True)
class Output:
    """Where the answer goes, and in which format."""

    form: str
    file: str | None

    def write(self, answer: Answer) -> None:
        say(rendered(answer, self.form), self.file)


def format_options(command: Command, formats: Sequence[str] = FORMATS) -> Command:
    """--format (the first is the default), --json and --out; the command receives one `output`."""

    @wraps(command)
    def received(*, form: str | None, as_json: bool, out: str | None, **options: Any) -> Any:
        if as_json and form not in (None, "json"):
            raise click.UsageError(f"--json and --format {form} exclude each other; give one")
        return command(output=Output("json" if as_json else form or formats[0], out), **options)

    words = f"How to answer.  [default: {formats[0]}]"
    option = click.option("--format", "form", type=click.Choice(formats), help=words)
    return option(JSON(OUT(received)))


def bundled(kind: type[Any], name: str, *options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """A decorator that adds options and passes those that are fields of a dataclass to the command as one value of it."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def called(*arguments: Any, **given: Any) -> Any:
            parts = {field.name: given.pop(field.name) for field in fields(kind) if field.init}
            return command(*arguments, **{name: kind(**parts)}, **given)

        wrapped: Command = called
        for option in reversed(options):
            wrapped = option(wrapped)
        return wrapped

    return decorate


@dataclass(frozen=True)
class JsonReply:
    """How the answer of a verb is printed."""

    as_json: bool
    out: str | None = field(default=None, init=False)

    def give(self, kind: str, text: str, record: object = None, **content: object) -> None:
        """Print the text, or as JSON the record or content, under the name of its kind."""
        from truecal.pages import records

        say(json_text(records.document(kind, record, **content)) if self.as_json else _harmless(text), self.out)


@dataclass(frozen=True)
class Reply(JsonReply):
    """The same, or written to a file."""

    out: str | None = None


JSON = click.option("--json", "as_json", is_flag=True, help="Answer as one JSON document.")
_WRITTEN = click.option("--json", "as_json", is_flag=True, help="Say what was written as one JSON document.")
OUT = click.option(
    "--out",
    cls=OutputFile,
    metavar="FILE",
    type=click.Path(),
    help="Write the answer to a file (whole or not at all); - is standard output.",
)
json_option = bundled(JsonReply, "reply", JSON)
written_option = bundled(JsonReply, "reply", _WRITTEN)
reply_options = bundled(Reply, "reply", JSON, OUT)


def as_typed() -> str:
    """The command as it was typed, for the page that it writes."""
    return shlex.join(["truecal", *sys.argv[1:]])


def say(text: str, out: str | None) -> None:
    """Print a text, or write it to a file."""
    if out is None or out == "-":
        click.echo(text)
    else:
        write_whole(out, text + "\n")


def note(text: str, *, err: bool = False) -> None:
    """Say what was read or written, to people alone."""
    click.echo(_harmless(text), err=err)


def _harmless(text: str) -> str:
    """Lines none of which can steer a terminal: names of files are as free as data."""
    return "\n".join(map(printable, text.split("\n")))


def draw(figure: Any, file: str | Path) -> None:
    """Write a figure; the ending of the file says in which format."""
    form = Path(file).suffix.lstrip(".") or None
    write_whole(file, lambda opened: figure.savefig(opened, dpi=130, format=form))


@contextmanager
def working(first: str = "working") -> Iterator[Callable[[str], object]]:
    """Show on a terminal what is being computed, and for how long; say nothing into pipes and files."""
    if not sys.stderr.isatty():
        yield str
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(first)
        yield lambda words: shown.update(task, description=words)


def number(value: float | None, digits: int = 4) -> str:
    """A probability-sized number, or a dash where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def p_shown(p: float | None) -> str:
    """A p-value in words a table can hold."""
    if p is None:
        return "-"
    return "< 0.001" if p <= 0.001 else f"{p:.3f}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "") -> str:
    """A text table; the first column is words, the others are numbers."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
    for i, name in enumerate(header):
        shown.add_column(
            Text(printable(name)),
            justify="left" if i == 0 else "right",
            no_wrap=True,
            overflow="ellipsis",
            max_width=48,
        )
    for row in rows:
        shown.add_row(*(Text(printable(cell)) for cell in row))
    console = Console(width=max(160, Console().width), color_system=None)
    with console.capture() as captured:
        console.print(shown)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()).strip("\n")


# ----------------------------------------------------------------------------------------------------
# How a watch answers on the command line: a line per batch and group, one JSON document, or metrics for Prometheus

FORMATS_WATCH = ("line", "json", "prometheus")
_METRICS = {
    "alarm": "1 where calibration was shown to be off by more than the tolerance",
    "changed": "1 where calibration was shown to have changed",
    "log_e": "log of the evidence that calibration was ever off",
    "p_value": "p-value that may be read at any time",
    "difference": "mean difference (predicted - observed) since the last restart",
    "difference_low": "lower end of its confidence sequence",
    "difference_high": "upper end of its confidence sequence",
    "rows_seen": "labelled rows counted in",
    "last_batch": "time of the last batch in seconds since 1970, or its number",
}


def render_watch(
    form: str, watch: "tc.Watch", steps: "Sequence[WatchStep]", skipped: Mapping[str, str] | None = None
) -> str:
    """The answer after one or several batches; `skipped` says why others were not counted, by their time."""
    if form == "prometheus":
        return _prometheus_watch(watch)
    if form == "line":
        return "\n".join(map(str, steps))
    from truecal.pages import records

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
        skipped=[{"at": time, "reason": reason} for time, reason in (skipped or {}).items()],
    )
    return json_text(content)


def _prometheus_watch(watch: "tc.Watch") -> str:
    """The text format of Prometheus: one gauge per number, one line per group."""
    from truecal.watch.state import time_number

    step = watch.step()
    lines = []
    for name, help_ in _METRICS.items():
        lines += [f"# HELP truecal_watch_{name} {help_}", f"# TYPE truecal_watch_{name} gauge"]
        for group in step.groups.values():
            numbers = {**group.to_dict(), "last_batch": time_number(watch.group(*group.group).history.latest)}
            lines.append(f"truecal_watch_{name}{_labels(watch.settings.by, group)} {float(numbers[name]):.10g}")
    lines += [
        "# HELP truecal_watch_any_alarm 1 where any group raises the alarm",
        "# TYPE truecal_watch_any_alarm gauge",
    ]
    lines.append(f"truecal_watch_any_alarm {float(step.alarm or step.changed):.10g}")
    return "\n".join(lines)


def _labels(by: tuple[str, ...], step: "GroupStep") -> str:
    pairs = [f'{_name(name)}="{label_text(value)}"' for name, value in zip(by, step.group, strict=True)]
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _name(column: str) -> str:
    """A label name: letters, digits and underscores."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in column)
    return f"_{plain}" if plain[:1].isdigit() else plain
