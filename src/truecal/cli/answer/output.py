"""How a verb answers: in the format asked for, to the terminal or whole into a file."""

import math
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import Any

import click

from truecal.cli.answer.formats import FORMATS, Answer, json_text, rendered
from truecal.errors import FileError, printable
from truecal.writing import write_whole

Command = Callable[..., Any]


class Share(click.FloatRange):
    """A number from 0 to 1; the word nan, which compares as neither too small nor too large, is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a number from {self.min} to {self.max}.", param, ctx)
        return number


@dataclass(frozen=True)
class Output:
    """Where the answer goes, and in which format."""

    form: str
    file: str | None

    def write(self, answer: Answer) -> None:
        say(rendered(answer, self.form), self.file)


def format_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--format, --json and --out; the command receives one `output`."""

    @wraps(command)
    def received(*, form: str | None, as_json: bool, out: str | None, **options: Any) -> Any:
        if as_json and form not in (None, "json"):
            raise click.UsageError(f"--json and --format {form} exclude each other; give one")
        return command(output=Output("json" if as_json else form or "text", out), **options)

    option = click.option("--format", "form", type=click.Choice(FORMATS), help="How to answer.  [default: text]")
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
        from truecal.report import records

        say(json_text(records.document(kind, record, **content)) if self.as_json else _harmless(text), self.out)


@dataclass(frozen=True)
class Reply(JsonReply):
    """The same, or written to a file."""

    out: str | None = None


JSON = click.option("--json", "as_json", is_flag=True, help="Answer as one JSON document.")
_WRITTEN = click.option("--json", "as_json", is_flag=True, help="Say what was written as one JSON document.")
OUT = click.option(
    "--out",
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


def draw(figure: Any, file: str) -> None:
    """Write a figure; the ending of the file says in which format."""
    try:
        figure.savefig(file, dpi=130)
    except (OSError, ValueError) as error:
        raise FileError(f"cannot draw {file}: {error}") from error


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
