"""Results of verbs, rendered for people and programs: text, one line, Markdown, GitHub, JUnit, JSON, Prometheus.

A verb returns a Result; one renderer per format turns it into text, so that no two formats can disagree.
"""

import json
import math
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import click

from truecal import digits
from truecal.errors import printable
from truecal.inference.conclusion import Conclusion
from truecal.table import markdown_text, plain
from truecal.writing import check_not_input, check_output, write_whole

Command = Callable[..., Any]
FORMATS = ("text", "line", "markdown", "github", "junit", "json", "prometheus")

# ----------------------------------------------------------------------------------------------------
# What a verb returns


@dataclass(frozen=True)
class Finding:
    """One thing judged: its name, a sentence, its numbers, and whether a gate passes (None without a gate)."""

    name: str
    sentence: str
    numbers: Mapping[str, float | None]
    passed: bool | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, conclusion: Conclusion, facts: str = "", **labels: str) -> "Finding":
        """Render a conclusion."""
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
class Result:
    """The answer of a verb: name and content of its JSON document, text for people, findings, gate and exit code."""

    kind: str
    content: object
    text: str
    findings: Sequence[Finding] = ()
    gate: str = ""
    warnings: Sequence[str] = ()
    failed: bool = False
    others: Mapping[str, str] = field(default_factory=dict)  # what other formats show, where findings do not say it


def document(kind: str, content: object) -> dict[str, Any]:
    """Put name and version of a schema before the content of a JSON document."""
    return {"schema": f"truecal.{kind}", "version": 1, **plain(content)}


# ----------------------------------------------------------------------------------------------------
# One renderer per format


def render(result: Result, form: str) -> str:
    """Render a result in a format."""
    return result.others[form] if form in result.others else _RENDERERS[form](result)


def _text(result: Result) -> str:
    text = f"{result.text}\n{result.gate}" if result.gate else result.text
    return "\n".join(map(printable, text.split("\n")))  # names of files and groups cannot steer a terminal


def _json(result: Result) -> str:
    return json.dumps(document(result.kind, result.content), indent=2, allow_nan=False, ensure_ascii=False)


def _line(result: Result) -> str:
    return "\n".join(f"{_word(f.passed)}{printable(f.name)}: {printable(f.sentence)}" for f in result.findings)


def _word(passed: bool | None) -> str:
    return "" if passed is None else "PASS " if passed else "FAIL "


def _markdown(result: Result) -> str:
    names = list(dict.fromkeys(name for finding in result.findings for name in finding.numbers))
    gated = any(finding.passed is not None for finding in result.findings)
    header = ["", *names, *(["gate"] if gated else [])]
    lines = [_row(header), _row(["---", *("---:" for _ in names), *(["---"] if gated else [])])]
    for finding in result.findings:
        numbers = [_number(finding.numbers.get(name)) for name in names]
        lines.append(_row([finding.name, *numbers, *([_word(finding.passed).strip()] if gated else [])]))
    notes = [f"- {markdown_text(note)}" for note in result.warnings]
    gate = ["", f"**{markdown_text(result.gate)}**"] if result.gate else []
    return "\n".join([*lines, *gate, *([""] if notes else []), *notes])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(markdown_text(cell).replace("|", "\\|") for cell in cells) + " |"


def _number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return ""
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) > 1 else f"{value:.4f}"


def _github(result: Result) -> str:
    """Write workflow commands: what fails becomes an error of the run, what is doubtful a warning."""
    lines = []
    for finding in result.findings:
        kind = "notice" if finding.passed is not False else "error"
        title = _property(f"truecal {result.kind}: {finding.name}")
        lines.append(f"::{kind} title={title}::{_command(_word(finding.passed) + finding.sentence)}")
    title = _property(f"truecal {result.kind}")
    return "\n".join([*lines, *(f"::warning title={title}::{_command(note)}" for note in result.warnings)])


def _command(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _command(text).replace(":", "%3A").replace(",", "%2C")


def _junit(result: Result) -> str:
    """Write a test suite with one case per finding."""
    cases = []
    for finding in result.findings:
        sentence = _xml(finding.sentence)
        inside = f"<system-out>{escape(sentence)}</system-out>"
        if finding.passed is False:
            inside = f'<failure message={quoteattr(sentence)} type="calibration"/>' + inside
        name = quoteattr(_xml(finding.name))
        cases.append(f'  <testcase classname="truecal.{result.kind}" name={name}>{inside}</testcase>')
    failed = sum(finding.passed is False for finding in result.findings)
    suite = f'name={quoteattr(f"truecal {result.kind}")} tests="{len(cases)}" failures="{failed}"'
    head = f'<testsuite {suite} errors="0" skipped="0">'
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *cases, "</testsuite>"])


def _xml(text: str) -> str:
    """Replace the characters that XML forbids."""
    return re.sub("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)


def _prometheus(result: Result) -> str:
    """Write the text exposition format: one gauge per number, labelled by what was judged."""
    lines = []
    gauges = [*dict.fromkeys(name for finding in result.findings for name in finding.numbers)]
    gauges += ["gate_passed"] if any(finding.passed is not None for finding in result.findings) else []
    for gauge in gauges:
        metric = f"truecal_{result.kind}_{re.sub('[^a-z0-9_]', '_', gauge.lower())}"
        lines.append(f"# TYPE {metric} gauge")
        for finding in result.findings:
            passed = None if finding.passed is None else float(finding.passed)
            value = passed if gauge == "gate_passed" else finding.numbers.get(gauge)
            if value is not None:
                labels = ",".join(f'{key}="{label_text(text)}"' for key, text in finding.labels.items())
                lines.append(f"{metric}{{{labels}}} {value!r}" if labels else f"{metric} {value!r}")
    return "\n".join(lines)


def label_text(text: str) -> str:
    """Escape a label of Prometheus."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


_RENDERERS: dict[str, Callable[[Result], str]] = {
    "text": _text,
    "line": _line,
    "markdown": _markdown,
    "github": _github,
    "junit": _junit,
    "json": _json,
    "prometheus": _prometheus,
}

# ----------------------------------------------------------------------------------------------------
# Commands that return results, and their options


def answers(command: Command | None = None, *, formats: Sequence[str] = FORMATS) -> Command:
    """Let a command return a Result and print it as --format, --json and --out say; the exit code is 1 where it failed."""
    if command is None:
        return lambda inner: answers(inner, formats=formats)

    @wraps(command)
    def run(*, form: str | None, as_json: bool, out: str | None, **options: Any) -> int:
        if as_json and form not in (None, "json"):
            raise click.UsageError(f"--json and --format {form} exclude each other; give one")
        result = command(**options)
        text = render(result, "json" if as_json else form or formats[0])
        if out is None or out == "-":
            click.echo(text)
        else:
            write_whole(out, text + "\n")
        return int(result.failed)

    if len(formats) == 2:  # text and --json
        return _JSON(_OUT(wraps(run)(partial(run, form=None))))
    words = f"How to answer.  [default: {formats[0]}]"
    return _JSON(_OUT(click.option("--format", "form", type=click.Choice(formats), help=words)(run)))


def writes(command: Command) -> Command:
    """Let a command that writes files return a Result that says what was written, as text or --json."""

    @wraps(command)
    def run(*, as_json: bool, **options: Any) -> int:
        result: Result | None = command(**options)
        if result is not None:  # None where the product itself went to standard output
            click.echo(render(result, "json" if as_json else "text"))
        return int(result is not None and result.failed)

    return click.option("--json", "as_json", is_flag=True, help="Say what was written as one JSON document.")(run)


class Share(click.FloatRange):
    """A number from 0 to 1; nan, which compares as neither too small nor too large, is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a number from {self.min} to {self.max}.", param, ctx)
        return number


class OutputFile(click.Option):
    """An option that names what is written; refused before anything is computed where it cannot be written or is read."""

    def __init__(self, *arguments: Any, folder: bool = False, **options: Any) -> None:
        super().__init__(*arguments, **{"metavar": "FILE", "type": click.Path(), **options})
        self.folder = folder  # may be one: then the verb tests whether it can be written

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        value, remaining = super().handle_parse_result(ctx, opts, args)
        if isinstance(value, str) and value != "-" and not ctx.resilient_parsing:
            (check_not_input if self.folder else check_output)(value, _inputs(ctx.command, opts))
        return value, remaining


def _inputs(command: click.Command, opts: Mapping[str, Any]) -> list[str]:
    """List the files that a command line names to be read: arguments, options whose value is a file, and @FILE."""
    names: list[str] = []
    for param in command.params:
        value = opts.get(param.name or "")
        values = [str(v) for v in value if v is not None] if isinstance(value, list | tuple) else [str(value or "")]
        file = isinstance(param, click.Argument) or str(param.metavar).partition(".")[0] in ("FILE", "TABLE", "STORE")
        if file and not isinstance(param, OutputFile):
            names += values
        names += [v.removeprefix("@") for v in values if v.startswith("@")]
    return names


def out_option(help_: str, default: str | None = None, *, required: bool = False, folder: bool = False) -> Command:
    """Make the option --out of a verb that writes files."""
    shown = {"default": default, "show_default": True} if default else {"required": required}
    return click.option("--out", cls=OutputFile, folder=folder, help=help_, **shown)


_JSON = click.option("--json", "as_json", is_flag=True, help="Answer as one JSON document.")
_OUT = out_option("Write the answer to a file (whole or not at all); - is standard output.")


def bundled(kind: type[Any], name: str, *options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Add options, and pass those that are fields of a dataclass to the command as one value of it."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def called(*arguments: Any, **given: Any) -> Any:
            parts = {field.name: given.pop(field.name) for field in fields(kind) if field.init}
            return command(*arguments, **{name: kind(**parts)}, **given)

        wrapped: Command = called
        for option in reversed(options):
            wrapped = option(wrapped)
        return wrapped

    assert is_dataclass(kind)
    return decorate


def numbers_in(given: str, option: str) -> list[float]:
    """Read numbers with commas between them."""
    try:
        return [float(word) for word in given.split(",")]
    except ValueError as error:
        raise click.UsageError(f"{option} is a list of numbers, such as 0.05,0.1, not {given!r}") from error


def written(kind: str, path: Path, **content: object) -> Result:
    """Say which page was written, and how large it is."""
    size = path.stat().st_size
    return Result(kind, {**content, "path": str(path), "bytes": size}, f"wrote {path} ({size / 1e6:.1f} MB)")


def as_typed() -> str:
    """Return the command as it was typed, for the page that it writes."""
    return shlex.join(["truecal", *sys.argv[1:]])


def note(text: str) -> None:
    """Say on stderr what was read or written."""
    click.echo("\n".join(map(printable, text.split("\n"))), err=True)


def draw(figure: Any, file: str | Path) -> None:
    """Write a figure; the ending of the file says in which format."""
    form = Path(file).suffix.lstrip(".") or None
    write_whole(file, lambda opened: figure.savefig(opened, dpi=130, format=form))


@contextmanager
def working(first: str = "working") -> Iterator[Callable[[str], object]]:
    """Show on a terminal what is being computed, and for how long; nothing into pipes and files."""
    if not sys.stderr.isatty():
        yield str
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(first)
        yield lambda words: progress.update(task, description=words)


_LONGEST_CELL = 48


def number(value: float | None, places: int = 4) -> str:
    """Write a probability-sized number, or a dash where there is none."""
    return "-" if value is None else f"{value:.{places}f}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "") -> str:
    """Align a table; the first column is words, the others are numbers."""
    cells = [[_cell(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = [
        "   ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]
    rule = "─" * (sum(widths) + 3 * (len(widths) - 1))
    return "\n".join(line.rstrip() for line in [*([title] if title else []), lines[0], rule, *lines[1:]])


def _cell(text: str) -> str:
    text = printable(text)
    return text if len(text) <= _LONGEST_CELL else f"{text[: _LONGEST_CELL - 1]}…"
