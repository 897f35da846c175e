"""Items of the papers, and docs/papers.md: every item with our number, the printed one, the test and the grade."""

import csv
import html
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from papers.experiment import Experiment
from papers.grading import AGREES, NOT_COMPUTABLE, Cells, Clause, Number, Quantities, grade, parse, shown
from truecal.lab import Frame

FILES = {"resnet110_c10": "resnet110_cifar10_logits.npz", "vgg16_c10": "vgg16_cifar10_probs.npz"}
Row = dict[str, Any]
FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Item:
    """One item of a paper: a figure, table, algorithm, definition, theorem or a claim with a number.

    `test` is in the language of :mod:`papers.grading`, `words` says the same in words. `note` says why an item cannot be computed,
    or what else a reader should know.
    """

    item: str
    about: str
    experiment: str = ""
    data: str = ""
    other_command: str = ""
    printed: str = ""
    test: str = ""
    words: str = ""
    note: str = ""

    @property
    def command(self) -> str:
        """What to type; empty where there is nothing to compute."""
        if self.other_command or not self.experiment:
            return self.other_command
        option = f" --data {self.data}={FILES[self.data]}" if self.data else ""
        return f"python -m papers run {self.experiment}{option}"

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        return parse(self.test)

    @property
    def is_suite_test(self) -> bool:
        """Whether the command is a test of the suite, which fails where the numbers differ."""
        return self.other_command.startswith("pytest ")


@dataclass(frozen=True)
class Result:
    """What a run gave for one item."""

    item: Item
    quantities: Quantities
    grade: str
    count: str = ""

    @property
    def ours(self) -> str:
        if not self.quantities:
            return ""
        return shown(self.item.clauses, self.quantities) + (f" ({self.count})" if self.count else "")

    def record(self) -> dict[str, str]:
        """One row of results.csv."""
        stored = {name: _stored(q) for name, q in self.quantities.items()}
        return {
            **{name: getattr(self.item, name) for name in ("item", "about", "command", "printed", "test", "words")},
            "ours": self.ours,
            "grade": self.grade,
            "note": "" if self.grade.startswith(NOT_COMPUTABLE) else self.item.note,
            "quantities": json.dumps(stored) if stored else "",
        }


def _stored(quantity: Number | Cells) -> list[Any]:
    if isinstance(quantity, Number):
        return [_rounded(quantity.value), _rounded(quantity.se)]
    printed = zip(quantity.printed, *([quantity.printed_se] if quantity.printed_se else []), strict=True)
    return [
        [*map(_rounded, (n.value, n.se)), *map(_rounded, cell)] for n, cell in zip(quantity.ours, printed, strict=True)
    ]


def _rounded(value: float) -> float:
    return float(f"{value:.7g}")


def quantities_of(stored: str) -> dict[str, Number | Cells]:
    """The quantities of a row of results.csv."""
    quantities: dict[str, Number | Cells] = {}
    for name, values in (json.loads(stored) if stored else {}).items():
        if values and isinstance(values[0], list):
            cells = [tuple(column) for column in zip(*values, strict=True)]
            quantities[name] = Cells(tuple(map(Number, *cells[:2])), *cells[2:])
        else:
            quantities[name] = Number(*values)
    return quantities


def items_of(paper: str) -> tuple[Item, ...]:
    """The items of a paper, from its items.csv."""
    text = (FOLDER / paper / "items.csv").read_text(encoding="utf-8")
    return tuple(Item(**row) for row in csv.DictReader(text.splitlines()))


def result_of(item: Item, experiment: Experiment | None) -> Result:
    """The numbers and the grade of one item."""
    if not item.experiment:
        if item.is_suite_test:
            return Result(item, {}, f"{AGREES} {item.clauses[0].tolerance:g} (the command is a test)")
        return Result(item, {}, f"{NOT_COMPUTABLE} {item.note}")
    if experiment is None:
        return Result(item, {}, f"{NOT_COMPUTABLE} its data was not given")
    if not item.clauses:
        return Result(item, {}, f"{NOT_COMPUTABLE} {item.note}")
    names = {name for clause in item.clauses for name in clause.names}
    quantities = {name: q for name, q in experiment.quantities.items() if name in names}
    if missing := sorted(names - set(quantities)):
        return Result(item, {}, f"{NOT_COMPUTABLE} this run has no case of {', '.join(missing)}")
    return Result(item, quantities, grade(item.clauses, quantities), _count(experiment.table))


def _count(table: Frame) -> str:
    """How many simulated datasets or resamples the numbers rest on, where the table says so."""
    for column in ("m", "repeats", "resamples"):
        if column in table:
            return f"m = {table[column][0]}"
    return ""


COLUMNS = ("item", "what it shows", "command", "printed", "test", "ours", "grade")
_SHOWN_ROWS = 45  # longer tables are left to the command


def markdown(table: Frame) -> str:
    """Write a table as Markdown; its texts are our own, and tests stand in it as code, so nothing is escaped."""
    return html.unescape(table.to_markdown())


def index(results: Iterable[Result]) -> Frame:
    """One row for every item."""
    rows = []
    for result in results:
        item = result.item
        test = f"{item.words}: `{item.test}`" if item.test else item.words
        note = "" if result.grade.startswith(NOT_COMPUTABLE) or not item.note else f"; {item.note}"
        command = f"`{item.command}`" if item.command else ""
        fields = (item.item, item.about, command, item.printed, test, result.ours, result.grade + note)
        rows.append(dict(zip(COLUMNS, fields, strict=True)))
    return Frame.from_records(rows, COLUMNS)


def counts(results: Mapping[str, tuple[Result, ...]]) -> Frame:
    """How many items of each paper have which grade."""
    rows = []
    for name, paper in results.items():
        short = [_short(result.grade) for result in paper]
        rows.append({"paper": name[-2], "items": len(paper), **{g: short.count(g) for g in _GRADES}})
    return Frame.from_records(rows)


_GRADES = ("number agrees", "direction only", "does not hold", "not decided", "not computable")


def _short(words: str) -> str:
    return next(name for name in _GRADES if words.startswith(name))


def page(
    results: Mapping[str, tuple[Result, ...]],
    experiments: Mapping[tuple[str, str], Experiment],
    effort: str,
    others: Iterable[str] = (),
) -> str:
    """The whole page in Markdown.

    Parameters
    ----------
    results : the results of each paper, by its title.
    made : the experiments, by name and data.
    effort : the options that say how many simulations there are.
    others : further experiments that belong to no item.
    """
    files = " --data ".join(f"{name}={file}" for name, file in FILES.items())
    opening = (FOLDER / "opening.md").read_text(encoding="utf-8")
    parts = [opening.replace("{data}", files).replace("{effort}", effort), markdown(counts(results)), ""]
    for name, paper in results.items():
        parts += [f"## {name}\n", markdown(index(paper)), ""]
    parts.append("## Tables\n")
    for (name, file), experiment in experiments.items():
        if 1 < len(experiment.table) <= _SHOWN_ROWS:
            option = f" --data {file}={FILES[file]}" if file else ""
            parts += [f"### {name}{option}\n", f"{experiment.title}.\n", markdown(experiment.table), ""]
    commands = ", ".join(f"`python -m papers run {name}`" for name in others)
    if commands:
        parts.append(f"Further experiments, of our own: {commands}.")
    return "\n".join(parts) + "\n"


def write_results(paper: str, results: Iterable[Result], folder: Path) -> Path:
    """Write one table per paper: items, tests, our numbers and grades."""
    target = folder / f"{paper}.csv"
    target.parent.mkdir(parents=True, exist_ok=True)
    records = [result.record() for result in results]
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
    return target
