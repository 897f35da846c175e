"""The page of the coverage atlas: worlds by doors, coloured by how far each statement is from what it states."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import truecal as tc
from truecal.report.html import element, escaped
from truecal.writing import write_whole

_STYLE = """
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
_ROUNDING = 1e-9
_WORDS = {
    "good": "as stated, or off by less than two standard errors of the simulation",
    "over": "holds more often than stated",
    "near": "5 to 10 points below an interval's level; a false alarm or promise up to 5 points too often",
    "bad": "further off",
}


def write_atlas(cells: Sequence[tc.lab.AtlasCell], path: str | PathLike[str]) -> Path:
    """Write the page: one file that needs nothing else."""
    return write_whole(Path(path), atlas_page(cells))


def atlas_page(cells: Sequence[tc.lab.AtlasCell]) -> str:
    """The HTML text: a coloured table of worlds by doors for every n."""
    sizes = sorted({cell.n for cell in cells})
    key = "".join(element("span", escaped(words), class_=name) for name, words in _WORDS.items())
    links = "".join(element("a", f"n = {n:,}", href=f"#n{n}") for n in sizes)
    intro = (
        f"{len({(c.group, c.world) for c in cells})} worlds whose truth is known, {len({c.door for c in cells})} doors, "
        f"{sum(c.m for c in cells):,} simulated datasets. Every number is a percentage: of intervals (stated at "
        "90 %) that held the truth; of calibrated datasets that a test at 5 % rejected; of promises at 95 % that were false. "
        "Point at a number for its count, its Monte-Carlo standard error and the length of the interval."
    )
    body = [
        element("h1", "Where statements hold, and where they do not"),
        element("p", escaped(intro)),
        element("p", key, class_="key"),
        element("nav", links, aria_label="sizes"),
    ]
    for n in sizes:
        body.append(element("h2", f"n = {n:,} rows", id=f"n{n}"))
        body.append(_table([cell for cell in cells if cell.n == n], f"n = {n:,}"))
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Coverage atlas</title><style>{_STYLE}</style>"
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{"".join(body)}</body></html>\n'


def _table(cells: Sequence[tc.lab.AtlasCell], label: str) -> str:
    doors = list(dict.fromkeys(cell.door for cell in cells))
    by_place = {(cell.group, cell.world, cell.door): cell for cell in cells}
    heads = "".join(element("th", element("span", escaped(door)), scope="col") for door in doors)
    rows = []
    worlds = list(dict.fromkeys((cell.group, cell.world) for cell in cells))
    for group in dict.fromkeys(group for group, _ in worlds):
        rows.append(
            element("tr", element("th", escaped(group), scope="rowgroup"), "<td></td>" * len(doors), class_="group")
        )
        for world in (name for place, name in worlds if place == group):
            tds = "".join(_entry(by_place.get((group, world, door))) for door in doors)
            rows.append(element("tr", element("th", escaped(world), scope="row", title=world), tds))
    inner = element("thead", element("tr", element("th", "world", scope="col"), heads)) + element("tbody", *rows)
    return element("div", element("table", inner), class_="scroll", tabindex=0, role="region", aria_label=label)


def _entry(cell: tc.lab.AtlasCell | None) -> str:
    if cell is None:
        return "<td></td>"
    words = f"{cell.door}: {cell.rate:.3f} of {cell.m} datasets, standard error {cell.standard_error:.3f}"
    if cell.kind == "interval":
        words += f"; {cell.above:.3f} above the truth, {cell.below:.3f} below it, mean length {cell.length:.4f}"
    return element("td", f"{100 * cell.rate:.0f}", class_=_colour(cell), title=words)


def _colour(cell: tc.lab.AtlasCell) -> str:
    """How far a cell is off, beyond two Monte-Carlo standard errors: a few datasets prove nothing."""
    away = cell.stated - cell.rate if cell.kind == "interval" else cell.rate - cell.stated
    far, near = (0.10, 0.05) if cell.kind == "interval" else (0.05, 0.02)
    if away > near + _ROUNDING and away > 2 * cell.standard_error:
        return "bad" if away > far + _ROUNDING else "near"
    return "over" if cell.kind == "interval" and cell.rate > 0.985 else "good"
