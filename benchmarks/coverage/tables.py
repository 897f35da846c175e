"""The atlas as tables, as Markdown for docs/coverage.md, and as a page of worlds by statements."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from itertools import groupby
from os import PathLike
from pathlib import Path

import numpy as np
from jinja2 import Environment

import truecal as tc
from benchmarks.coverage.atlas import AtlasCell
from truecal.table import Frame
from truecal.writing import write_whole

START, END = "<!-- atlas: written by python -m benchmarks.coverage -->", "<!-- end of atlas -->"
TITLES = {
    "interval": "Intervals: mean coverage over worlds (the worst), mean length",
    "test": "Tests of calibration at 5 %: mean rate of false alarms over worlds (the worst)",
    "promise": "Promises at 95 %: mean rate of false ones over worlds (the worst)",
}
WORLD_DATASETS = 30  # with fewer datasets per world the worst group of worlds is given: the worst world would be chance


@dataclass(frozen=True)
class Line:
    """One statement at one n over all worlds: the mean rate, the worst rate and its world, the mean length of intervals."""

    statement: str
    kind: str
    stated: float
    n: int
    worlds: int
    datasets: int  # per world, at least
    mean: float
    worst: float
    where: str
    length: float


def lines(cells: Sequence[AtlasCell]) -> Iterator[Line]:
    """Summarize cells by statement and n: statements in the order of the cells, sizes ascending."""
    order = {cell.statement: i for i, cell in reversed(list(enumerate(cells)))}
    ordered = sorted(cells, key=lambda cell: (order[cell.statement], cell.n))
    for (statement, n), group in groupby(ordered, key=lambda cell: (cell.statement, cell.n)):
        in_line = list(group)
        worst, where = _worst(in_line)
        yield Line(
            statement=statement,
            kind=in_line[0].kind,
            stated=in_line[0].stated,
            n=n,
            worlds=len(in_line),
            datasets=min(cell.m for cell in in_line),
            mean=float(np.mean([cell.rate for cell in in_line])),
            worst=worst,
            where=where,
            length=float(np.mean([cell.length for cell in in_line])),
        )


def _worst(cells: Sequence[AtlasCell]) -> tuple[float, str]:
    """The worst rate, and the world (or group of worlds, with few datasets) that has it."""
    rates = {f"{cell.group}: {cell.world}": cell.rate for cell in cells}
    if min(cell.m for cell in cells) < WORLD_DATASETS:
        rates = {}
        for group in dict.fromkeys(cell.group for cell in cells):
            inside = [cell for cell in cells if cell.group == group]
            rates[group] = sum(cell.rate * cell.m for cell in inside) / sum(cell.m for cell in inside)
    where = (min if cells[0].kind == "interval" else max)(rates, key=lambda name: rates[name])
    return rates[where], where


def summary(cells: Sequence[AtlasCell]) -> Frame:
    """One row per statement and n."""
    return _frame(tuple(field.name for field in fields(Line)), [astuple(line) for line in lines(cells)])


def cell_table(cells: Sequence[AtlasCell]) -> Frame:
    """Every cell as a row, with the Monte-Carlo standard error of its rate."""
    columns = (*(field.name for field in fields(AtlasCell)), "rate_se")
    return _frame(columns, [(*astuple(cell), cell.standard_error) for cell in cells])


def _frame(columns: Sequence[str], rows: Sequence[Sequence[str | float]]) -> Frame:
    return Frame.from_records([dict(zip(columns, row, strict=True)) for row in rows], columns)


def markdown(cells: Sequence[AtlasCell]) -> str:
    """One table for intervals, tests and promises each; a line per statement, a column per n, datasets per world in brackets."""
    sizes = sorted({cell.n for cell in cells})
    by_statement: dict[str, dict[int, Line]] = {}
    for line in lines(cells):
        by_statement.setdefault(line.statement, {})[line.n] = line
    text = []
    for kind, title in TITLES.items():
        statements = [by_n for by_n in by_statement.values() if next(iter(by_n.values())).kind == kind]
        if not statements:
            continue
        text += [f"**{title}; [datasets per world].**", ""]
        text += ["| statement | " + " | ".join(f"n = {n:,}" for n in sizes) + " |", "|---|" + "---|" * len(sizes)]
        for by_n in statements:
            name = next(iter(by_n.values())).statement
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
    """Write the tables, and the command that made them, between the two marks of a document."""
    text = Path(path).read_text(encoding="utf-8")
    if START not in text or END not in text:
        raise tc.errors.FileError(
            f"{path} has no lines {START!r} and {END!r} between which the tables could go; add them"
        )
    tables = f"{START}\n\nMade by `{command}`.\n\n{markdown(cells)}\n{END}"
    return write_whole(path, re.sub(re.escape(START) + ".*" + re.escape(END), lambda _: tables, text, flags=re.S))


# ------------------------------------------------------------------------------------------------ the page

COLOURS = {
    "good": "as stated, or off by less than two standard errors of the simulation",
    "over": "holds more often than stated",
    "near": "5 to 10 points below an interval's level; a false alarm or promise up to 5 points too often",
    "bad": "further off",
}
ROUNDING = 1e-9
STYLE = """
:root { color-scheme: light dark; --ink: #1c1f23; --paper: #fff; --line: #d7dbe0; --soft: #f4f6f8;
  --good: #cfe9d6; --over: #d6e4f7; --near: #fbe9b7; --bad: #f6b9a8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --paper: #16181b; --line: #3a3f45; --soft: #202429;
  --good: #1f4d2f; --over: #23426b; --near: #66521a; --bad: #7a2f20; } }
* { box-sizing: border-box } body { margin: 0 auto; padding: 1rem; max-width: 90rem; color: var(--ink);
  background: var(--paper); font: 15px/1.45 system-ui, sans-serif }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px }
table { border-collapse: separate; border-spacing: 0; font-variant-numeric: tabular-nums; font-size: 13px }
th, td { padding: .25rem .4rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap }
td { min-width: 2.4rem } thead th { vertical-align: bottom; text-align: left; font-weight: 600 }
thead th span { writing-mode: vertical-rl; transform: rotate(180deg); max-height: 15rem }
tbody th { position: sticky; left: 0; background: var(--paper); text-align: left; font-weight: 400; max-width: 16rem;
  overflow: hidden; text-overflow: ellipsis }
tr.group th { background: var(--soft); font-weight: 600; position: sticky; left: 0 }
tr.group td { background: var(--soft) }
.good { background: var(--good) } .over { background: var(--over) } .near { background: var(--near) }
.bad { background: var(--bad); font-weight: 700 }
.key span { display: inline-block; padding: .1rem .5rem; margin: 0 .4rem .4rem 0; border-radius: 4px }
nav a { display: inline-block; padding: .2rem .6rem; margin: 0 .3rem .3rem 0; border: 1px solid var(--line);
  border-radius: 4px; color: inherit; text-decoration: none }
@media (max-width: 600px) { body { padding: .6rem } th, td { padding: .2rem .3rem } tbody th { max-width: 8.5rem } }
"""
TEMPLATE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Coverage atlas</title><style>{{ style | safe }}</style></head><body>
<h1>Where statements hold, and where they do not</h1>
<p>{{ worlds }} worlds whose truth is known, {{ statements }} statements, {{ "{:,}".format(datasets) }} simulated datasets.
Every number is a
percentage: of intervals (stated at 90 %) that held the truth; of calibrated datasets that a test at 5 % rejected; of promises at
95 % that were false. Point at a number for its count, its Monte-Carlo standard error and the length of the interval.</p>
<p class="key">{% for name, words in colours.items() %}<span class="{{ name }}">{{ words }}</span>{% endfor %}</p>
<nav aria-label="sizes">{% for table in tables %}<a href="#n{{ table.n }}">n = {{ "{:,}".format(table.n) }}</a>{% endfor %}</nav>
{% for table in tables %}
<h2 id="n{{ table.n }}">n = {{ "{:,}".format(table.n) }} rows</h2>
<div class="scroll" tabindex="0" role="region" aria-label="n = {{ "{:,}".format(table.n) }}"><table>
<thead><tr><th scope="col">world</th>
{%- for statement in table.statements %}<th scope="col"><span>{{ statement }}</span></th>{% endfor %}</tr></thead><tbody>
{% for group, rows in table.groups.items() %}
<tr class="group"><th scope="rowgroup">{{ group }}</th>{% for statement in table.statements %}<td></td>{% endfor %}</tr>
{% for world, entries in rows.items() %}
<tr><th scope="row" title="{{ world }}">{{ world }}</th>
{%- for statement in table.statements %}{% set entry = entries.get(statement) %}
{%- if entry %}<td class="{{ entry.colour }}" title="{{ entry.title }}">{{ entry.percent }}</td>{% else %}<td></td>{% endif %}
{%- endfor %}</tr>
{% endfor %}{% endfor %}
</tbody></table></div>
{% endfor %}
</body></html>
"""


def write_page(cells: Sequence[AtlasCell], path: str | PathLike[str]) -> Path:
    """Write the page as one file that loads nothing."""
    return write_whole(path, atlas_page(cells))


def atlas_page(cells: Sequence[AtlasCell]) -> str:
    """The HTML text: for every n a table of worlds by statements, coloured by how far each rate is from what is stated."""
    tables = []
    for n in sorted({cell.n for cell in cells}):
        of_size = [cell for cell in cells if cell.n == n]
        groups: dict[str, dict[str, dict[str, dict[str, str]]]] = {}
        for cell in of_size:
            groups.setdefault(cell.group, {}).setdefault(cell.world, {})[cell.statement] = _page_entry(cell)
        tables.append({"n": n, "statements": list(dict.fromkeys(cell.statement for cell in of_size)), "groups": groups})
    return (
        Environment(autoescape=True, trim_blocks=True)
        .from_string(TEMPLATE)
        .render(
            style=STYLE,
            colours=COLOURS,
            tables=tables,
            worlds=len({(cell.group, cell.world) for cell in cells}),
            statements=len({cell.statement for cell in cells}),
            datasets=sum(cell.m for cell in cells),
        )
    )


def _page_entry(cell: AtlasCell) -> dict[str, str]:
    title = f"{cell.statement}: {cell.rate:.3f} of {cell.m} datasets, standard error {cell.standard_error:.3f}"
    if cell.kind == "interval":
        title += f"; {cell.above:.3f} above the truth, {cell.below:.3f} below it, mean length {cell.length:.4f}"
    return {"percent": f"{100 * cell.rate:.0f}", "colour": _colour(cell), "title": title}


def _colour(cell: AtlasCell) -> str:
    """How far a rate is from what is stated, where that exceeds two Monte-Carlo standard errors."""
    shortfall = cell.stated - cell.rate if cell.kind == "interval" else cell.rate - cell.stated
    far, near = (0.10, 0.05) if cell.kind == "interval" else (0.05, 0.02)
    if shortfall > near + ROUNDING and shortfall > 2 * cell.standard_error:
        return "bad" if shortfall > far + ROUNDING else "near"
    return "over" if cell.kind == "interval" and cell.rate > 0.985 else "good"
