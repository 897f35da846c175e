"""A numbered item of a paper: where it is done again, what is printed, and how our number is read from the experiment's table."""

import csv
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from statistics import NormalDist
from typing import Any

import numpy as np

from truecal.frame import Frame

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
        return f"truecal lab paper {self.experiment}" + (f" --data {self.data}" if self.data else "")


Read = tuple[Callable[[Frame], str], Callable[[Frame], bool] | None]


def items_of(paper: str, read: Mapping[str, Read], reasons: Mapping[str, str] | None = None) -> tuple[Item, ...]:
    """The items of a paper: their words from its items.csv, and, by number, how ours is read and whether the statement holds.

    `reasons` are texts that several items share, by the word that stands for them in the file.
    """
    words = resources.files(f"truecal.lab.papers.{paper}").joinpath("items.csv").read_text(encoding="utf-8")
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
