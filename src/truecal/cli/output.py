"""How a verb answers: text for people or one JSON document, to the terminal or whole into a file; and the --max-error gate."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click

from truecal.writing import write_whole


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--json and --out."""
    command = click.option("--out", metavar="FILE", help="Write the answer to a file (whole or not at all).")(command)
    return click.option("--json", "as_json", is_flag=True, help="Answer as one JSON document.")(command)


def answer(document: Mapping[str, object], text: str, *, as_json: bool, out: str | None) -> None:
    """Print the answer, or write it to `out`."""
    said = json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) if as_json else text
    if out is None:
        click.echo(said)
    else:
        write_whole(out, said + "\n")


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
        shown.add_column(name, justify="left" if i == 0 else "right", no_wrap=True, overflow="ellipsis", max_width=48)
    for row in rows:
        shown.add_row(*(Text(cell) for cell in row))
    console = Console(width=max(160, Console().width), color_system=None)
    with console.capture() as captured:
        console.print(shown)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()).strip("\n")
