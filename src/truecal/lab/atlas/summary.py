"""The atlas in tables: every cell, one line per door and size, and the table of docs/coverage.md."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from itertools import groupby
from os import PathLike
from pathlib import Path

import numpy as np

from truecal.errors import FileError
from truecal.frame import Frame
from truecal.lab.atlas.door import AtlasCell
from truecal.lab.trials.trials import tidy
from truecal.writing import write_whole

_START, _END = "<!-- atlas: written by truecal lab coverage -->", "<!-- end of atlas -->"
_TITLES = {
    "interval": "Intervals: mean coverage over worlds (the worst), mean length",
    "test": "Tests of calibration at 5 %: mean rate of false alarms over worlds (the worst)",
    "promise": "Promises at 95 %: mean rate of false ones over worlds (the worst)",
}
# Datasets from which on the worst world is given; with fewer the worst of the groups of worlds, taken together.
_OF_A_WORLD = 30


@dataclass(frozen=True)
class Line:
    """One door at one n over all worlds."""

    door: str
    kind: str
    stated: float
    n: int
    worlds: int
    datasets: int  # of every world, at least
    mean: float
    worst: float
    where: str
    length: float


def lines(cells: Sequence[AtlasCell]) -> Iterator[Line]:
    """Doors in the order they were asked for, sizes ascending."""
    order = {cell.door: i for i, cell in reversed(list(enumerate(cells)))}
    ranked = sorted(cells, key=lambda cell: (order[cell.door], cell.n))
    for (door, n), part in groupby(ranked, key=lambda cell: (cell.door, cell.n)):
        of_line = list(part)
        worst, where = _worst(of_line)
        rates, lengths = [cell.rate for cell in of_line], [cell.length for cell in of_line]
        yield Line(
            door,
            of_line[0].kind,
            of_line[0].stated,
            n,
            len(of_line),
            min(cell.m for cell in of_line),
            float(np.mean(rates)),
            worst,
            where,
            float(np.mean(lengths)),
        )


def _worst(cells: Sequence[AtlasCell]) -> tuple[float, str]:
    """The worst rate and where it is: a world, or a group of worlds where a world has too few datasets to be judged by."""
    rates = {f"{cell.group}: {cell.world}": cell.rate for cell in cells}
    if min(cell.m for cell in cells) < _OF_A_WORLD:
        rates = {}
        for group in dict.fromkeys(cell.group for cell in cells):
            inside = [cell for cell in cells if cell.group == group]
            rates[group] = sum(cell.rate * cell.m for cell in inside) / sum(cell.m for cell in inside)
    where = (min if cells[0].kind == "interval" else max)(rates, key=lambda name: rates[name])
    return rates[where], where


def summary(cells: Sequence[AtlasCell]) -> Frame:
    """One row per door and n: mean over the worlds, the worst of them, mean length, and how many datasets stand behind it."""
    return tidy(tuple(field.name for field in fields(Line)), [astuple(line) for line in lines(cells)])


def cell_table(cells: Sequence[AtlasCell]) -> Frame:
    """Every cell as a row, with the Monte-Carlo standard error of its rate."""
    columns = (*(field.name for field in fields(AtlasCell)), "rate_se")
    return tidy(columns, [(*astuple(cell), cell.standard_error) for cell in cells])


def markdown(cells: Sequence[AtlasCell]) -> str:
    """One table for intervals, tests and promises each; a line per door, a column per n, the datasets per world in brackets."""
    sizes = sorted({cell.n for cell in cells})
    by_door: dict[str, dict[int, Line]] = {}
    for line in lines(cells):
        by_door.setdefault(line.door, {})[line.n] = line
    text = []
    for kind, title in _TITLES.items():
        shown = [by_n for by_n in by_door.values() if next(iter(by_n.values())).kind == kind]
        if not shown:
            continue
        text += [f"**{title}; [datasets per world].**", ""]
        text += ["| door | " + " | ".join(f"n = {n:,}" for n in sizes) + " |", "|---|" + "---|" * len(sizes)]
        for by_n in shown:
            name = next(iter(by_n.values())).door
            text.append(f"| {name} | " + " | ".join(_entry(by_n.get(n)) for n in sizes) + " |")
        text.append("")
    worlds = len({(cell.group, cell.world) for cell in cells})
    return "\n".join([f"{worlds} worlds, {len(cells):,} cells, {sum(cell.m for cell in cells):,} datasets.", "", *text])


def _entry(line: Line | None) -> str:
    if line is None:
        return "-"
    length = f", {line.length:.3f}" if line.kind == "interval" else ""
    return f"{line.mean:.2f} ({line.worst:.2f} {line.where.split(': ')[-1]}){length} [{line.datasets}]"


def write_into(path: str | PathLike[str], cells: Sequence[AtlasCell], command: str) -> Path:
    """Put the tables between the two marks of a document, with the command that made them."""
    place = Path(path)
    text = place.read_text(encoding="utf-8")
    if _START not in text or _END not in text:
        raise FileError(f"{place} has no lines {_START!r} and {_END!r} between which the tables could go; add them")
    inside = f"{_START}\n\nMade by `{command}`.\n\n{markdown(cells)}\n{_END}"
    return write_whole(place, re.sub(re.escape(_START) + ".*" + re.escape(_END), lambda _: inside, text, flags=re.S))
