"""Numbered items of the papers, and docs/papers.md: every item with our number, the printed one and a verdict."""

import csv
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from papers.experiment import Experiment
from truecal.lab import Frame

RESNET = "resnet110_c10=resnet110_cifar10_logits.npz"
Row = dict[str, Any]


@dataclass(frozen=True)
class Item:
    """One numbered item. `ours` and `holds` read the experiment's table; without an experiment there is a reason."""

    number: str
    about: str
    experiment: str = ""
    data: str = ""
    printed: str = ""
    ours: Callable[[Frame], str] | None = None
    holds: Callable[[Frame], bool] | None = None
    reason: str = ""

    @property
    def command(self) -> str:
        """What to type; empty where there is nothing to compute."""
        if not self.experiment:
            return ""
        return f"python -m papers run {self.experiment}" + (f" --data {self.data}" if self.data else "")


Read = tuple[Callable[[Frame], str], Callable[[Frame], bool] | None]


def items_of(paper: str, read: Mapping[str, Read], reasons: Mapping[str, str] | None = None) -> tuple[Item, ...]:
    """The items of a paper: their words from its items.csv, and, by number, how ours is read and whether the statement holds.

    `reasons` are texts that several items share, by the word that stands for them in the file.
    """
    words = (Path(__file__).parent / paper / "items.csv").read_text(encoding="utf-8")
    items = []
    for row in csv.DictReader(words.splitlines()):
        ours, holds = read.get(row["number"], (None, None))
        reason = row.pop("reason")
        items.append(Item(**row, reason=(reasons or {}).get(reason, reason), ours=ours, holds=holds))
    unknown = read.keys() - {item.number for item in items}
    assert not unknown, f"{paper} has no item {unknown}"
    return tuple(items)


def only(table: Frame, **wanted: object) -> list[Row]:
    return [row for row in table if all(row[key] == value for key, value in wanted.items())]


def mean(rows: Iterable[Row], column: str) -> float:
    return float(np.mean([float(row[column]) for row in rows]))


def mean_abs(rows: Iterable[Row], column: str) -> float:
    return float(np.mean([abs(float(row[column])) for row in rows]))


def with_se(value: float, error: float, digits: int = 2) -> str:
    """A simulated number with its standard error."""
    return f"{value:.{digits}f} +- {error:.{digits}f}"


def mean_abs_with_se(rows: Iterable[Row], column: str, error: str, scale: float = 1.0) -> str:
    """The mean of absolute values, each with a standard error of its own."""
    rows = list(rows)
    spread = float(np.sqrt(sum(float(row[error]) ** 2 for row in rows))) / len(rows)
    return with_se(scale * mean_abs(rows, column), scale * spread)


def se_of(row: Row) -> float:
    """The standard error behind 90 % limits of a mean or of resamples."""
    return float(row["high_90"] - row["low_90"]) / (2 * NormalDist().inv_cdf(0.95))


COLUMNS = ("item", "about", "command", "ours", "printed", "verdict")
_SHOWN_ROWS = 45  # longer tables are left to the command
_OPENING = """# The papers' experiments, done again

Each numbered item of four papers is one command in a clone of the repository, `python -m papers run NAME`; it writes a tidy table
and a figure, `--full` with as many simulations as the paper. This page is written by

    python -m papers page {effort} --out docs/papers --cache FOLDER --data {data}

Simulations are kept in FOLDER, so that a run that was interrupted need not do them again. Numbers are percent unless said
otherwise, seed 0; `+-` is the Monte-Carlo standard error and m the number of simulated datasets or resamples. Without `--part`,
`--full` takes as many as the papers (1000 in most figures of R and K, 250 in P; 200 for 1000 in G's Figures 7 to 9), which is about
half an hour of one core. The worlds are those printed in the papers, with the parameters as rounded there. "holds" means that
what the paper states of the item is true of our numbers.

Two readings are given where the papers' own numbers come from a detail of their code. The top scores behind Table 1 of R were
computed in float32, where 48 % of them are exactly 1: the printed Beta is that of this rounding. Table 2 drops those rows and
averages AICs over bootstraps whose noise is larger than the difference between the first two curves. Table 3 takes its data column
and its curve from the validation split and simulates 1000 rows; its printed mean, 8.42, is that of the first 100 datasets of the
published code's seeds, while 10,000 datasets of the same world give 8.30 +- 0.01. "as printed" repeats all this. "as it should be"
computes the scores in float64, fits the test split and simulates as many rows as there are. A Beta then describes these scores
badly, and the simulated ECE is 11.3 where the data has 6.65: that Figure 5c lies near the diagonal is owed to the rounding. The
kernel-density estimator of R takes its bandwidth from the spread of the correctly predicted scores,
`KernelDensityECE(bandwidth="correct")`, ours from all; Figure 6 has both. The networks of G are not public here: its figures are
drawn for the interventions after training from the outputs of another network, and those made while training are `truecal study
interventions` ([interventions](interventions.md)).
"""


def index(items: tuple[Item, ...], made: Mapping[tuple[str, str], Experiment]) -> Frame:
    """One row for every item."""
    rows = [dict(zip(COLUMNS, _row(item, made.get((item.experiment, item.data))), strict=True)) for item in items]
    return Frame.from_records(rows, COLUMNS)


def _row(item: Item, experiment: Experiment | None) -> tuple[str, ...]:
    command = f"`{item.command}`" if item.command else ""
    if experiment is None:
        verdict = item.reason if not item.experiment else "not run: its data was not given"
        return item.number, item.about, command, "", item.printed, verdict
    ours = (
        "" if item.ours is None else item.ours(experiment.table) + _count(item.ours(experiment.table), experiment.table)
    )
    verdict = "" if item.holds is None else ("holds" if item.holds(experiment.table) else "does not hold")
    return (
        item.number,
        item.about,
        command,
        ours,
        item.printed,
        "; ".join(part for part in (verdict, item.reason) if part),
    )


def _count(words: str, table: Frame) -> str:
    """How many simulated datasets or resamples a number rests on, where the table says so and the words do not."""
    for column in ("m", "repeats", "resamples"):
        if column in table and "m = " not in words:
            return f" (m = {table[column][0]})"
    return ""


def page(
    by_paper: Mapping[str, tuple[Item, ...]],
    made: Mapping[tuple[str, str], Experiment],
    effort: str,
    others: Iterable[str] = (),
) -> str:
    """The whole page in Markdown.

    Parameters
    ----------
    by_paper : the items of each paper, by its title.
    made : the experiments, by name and data.
    effort : the options that say how many simulations there are.
    others : further experiments that belong to no item.
    """
    files = " --data ".join(dict.fromkeys(item.data for items in by_paper.values() for item in items if item.data))
    parts = [_OPENING.format(data=files, effort=effort)]
    for name, items in by_paper.items():
        parts += [f"## {name}\n", index(items, made).to_markdown(), ""]
    parts.append("## Tables\n")
    for (name, file), experiment in made.items():
        if 1 < len(experiment.table) <= _SHOWN_ROWS:
            given = f" --data {file}" if file else ""
            parts += [f"### {name}{given}\n", f"{experiment.title}.\n", experiment.table.to_markdown(), ""]
    commands = ", ".join(f"`python -m papers run {name}`" for name in others)
    if commands:
        parts.append(f"Further experiments, of our own: {commands}.")
    return "\n".join(parts) + "\n"
