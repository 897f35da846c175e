"""The study file as values: what is evaluated, and how. `read` makes them."""

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from truecal.study.metrics.names import GRID
from truecal.study.spec.files import Source

LENSES = ("top-label", "all-label", "class-wise")


@dataclass(frozen=True)
class Columns:
    """Where a file keeps what: columns of a table or arrays of an npz file. `kind` is "logits" or "probs"."""

    label: str
    outputs: str | tuple[str, ...]
    kind: Literal["logits", "probs"]
    classes: tuple[object, ...] | None = None
    weight: str | None = None
    cluster: str | None = None

    @classmethod
    def of(cls, held: Mapping[str, Any]) -> "Columns":
        """What JSON kept of it."""
        lists: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in held.items()
        }
        return cls(**lists)

    @property
    def others(self) -> tuple[str, ...]:
        """Names of columns that must be there beside label and outputs."""
        return tuple(name for name in (self.weight, self.cluster) if name is not None)


@dataclass(frozen=True)
class Dataset:
    """What a dataset has to do with the clean data that recalibrators learn from.

    `clean` names the dataset whose rows it shares, shifted or not, in the same order: the rows learnt from are left out.
    `independent`: it shares no row with any other; it is judged whole, recalibrated by the map of the clean dataset `by`.
    """

    clean: str | None = None
    independent: bool = False
    by: str | None = None
    covariates: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True)
class Split:
    """The rows recalibrators learn from: a fraction of every class, the same for all models.

    fit="clean": learnt on the file of severity 0 of the same model and seed, of the clean dataset; "same": on the file that is
    judged. `dataset` names the clean dataset of all datasets that do not name their own.
    """

    fraction: float = 0.2
    seed: int = 0
    fit: Literal["clean", "same"] = "clean"
    dataset: str | None = None


@dataclass(frozen=True)
class Selected:
    """A named selection of rows: one of truecal.select's, with its arguments."""

    name: str
    kind: str
    arguments: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Options:
    """All that the numbers depend on beside the prediction files."""

    columns: Columns
    lenses: tuple[str, ...] = ("top-label",)
    selections: tuple[Selected, ...] = ()
    class_subsets: tuple[tuple[str, tuple[object, ...]], ...] = ()
    metrics: tuple[str, ...] = (GRID,)
    recalibrators: tuple[str, ...] = ()
    split: Split = Split()
    datasets: tuple[tuple[str, Dataset], ...] = ()  # name or pattern -> what it is; the first that fits counts
    intervals: bool | Literal["bootstrap"] = True
    level: float = 0.95

    def about(self, dataset: str) -> Dataset:
        """What the study says of a dataset."""
        return next((one for pattern, one in self.datasets if fnmatchcase(dataset, pattern)), Dataset())

    def clean_of(self, dataset: str) -> str:
        """The dataset whose clean rows the recalibrators of a dataset learn from."""
        about = self.about(dataset)
        return about.clean or about.by or self.split.dataset or dataset

    def shares_rows(self, dataset: str) -> bool:
        """Whether the rows of a dataset are those of its clean one."""
        about = self.about(dataset)
        return not about.independent and (about.clean is not None or self.clean_of(dataset) == dataset)

    def teacher(self, source: Source) -> tuple[str, str, float, int]:
        """Who the recalibrators of a file learn from: model, dataset, severity, seed."""
        if self.split.fit == "same":
            return source.who
        return source.model, self.clean_of(source.dataset), 0.0, source.seed


@dataclass(frozen=True)
class Spec:
    """A study file that was read without a problem, with what it says word for word."""

    name: str
    sources: tuple[Source, ...]
    options: Options
    workers: int | None
    written: dict[str, Any]
    covariates: tuple[str, ...] = ()
    by_content: bool = False  # files are told apart by their content, not by size and time
    broken: tuple[tuple[str, str], ...] = ()  # files that were skipped, and why

    def covariates_of(self, source: Source) -> dict[str, object]:
        """All covariates of a file: its own, its dataset's."""
        held = {**dict(self.options.about(source.dataset).covariates), **dict(source.covariates)}
        return {name: held.get(name) for name in self.covariates}
