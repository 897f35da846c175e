"""The study file as values: which prediction files are evaluated, and how. `read_spec` makes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from truecal.study.metrics import GRID

FORMATS = (".npz", ".csv", ".jsonl", ".ndjson", ".parquet", ".pq")
FIELDS = ("model", "family", "size", "dataset", "severity", "seed")  # of a prediction file
LENSES = ("top-label", "all-label", "class-wise", "canonical")


@dataclass(frozen=True)
class PredictionFile:
    """One prediction file: its path, its line in the study file, the model that made it and the data that it predicts."""

    path: Path
    line: int  # from 1
    model: str
    dataset: str
    family: str | None = None
    size: float | None = None  # of the model
    severity: float = 0.0  # of the shift; 0: none
    seed: int = 0  # of the model
    covariates: Mapping[str, object] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, float, int]:
        """Model, dataset, severity and seed, which together are unique in a study."""
        return self.model, self.dataset, self.severity, self.seed

    @property
    def rows_key(self) -> tuple[str, float, int]:
        """Dataset, severity and seed: files with the same key hold predictions of the same rows."""
        return self.dataset, self.severity, self.seed

    def __str__(self) -> str:
        """Write model and dataset, and severity and seed unless 0.

        >>> str(PredictionFile(Path("a.npz"), 3, "svm", "digits", severity=2.0, seed=1))
        "'svm' on 'digits', severity 2, seed 1"
        """
        seed = f", seed {self.seed}" if self.seed else ""
        severity = f", severity {self.severity:g}" if self.severity else ""
        return f"{self.model!r} on {self.dataset!r}{severity}{seed}"


@dataclass(frozen=True)
class FileColumns:
    """Columns of a table, or arrays of an npz file, by what they hold."""

    label: str
    outputs: str | Sequence[str]  # a column, a pattern such as p_*, or a list of columns
    kind: Literal["logits", "probs"]  # of the outputs
    classes: Sequence[object] | None = None  # names in the order of the outputs
    weight: str | None = None
    cluster: str | None = None

    @property
    def others(self) -> list[str]:
        """Columns beside those of the outputs: label, then weight and cluster if there are any.

        >>> FileColumns("label", "p", "probs", weight="w").others
        ['label', 'w']
        """
        return [self.label, *(name for name in (self.weight, self.cluster) if name is not None)]


@dataclass(frozen=True)
class Dataset:
    """How a dataset relates to the clean data that recalibrators are fitted on.

    `clean` names the dataset whose rows it shares, shifted or not, in the same order: the rows of the fit are left out.
    `by` names the dataset that recalibrates one that shares no row with any other, and is judged whole.
    """

    clean: str | None = None
    by: str | None = None
    covariates: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Split:
    """The rows recalibrators are fitted on: a fraction of every class, the same for all models.

    They are those of the file of severity 0 of the same model and seed, of the clean dataset.
    """

    fraction: float = 0.2
    seed: int = 0


@dataclass(frozen=True)
class Options:
    """All that the numbers depend on beside the prediction files."""

    columns: FileColumns
    lenses: Sequence[str] = ("top-label",)
    groupings: Mapping[str, Mapping[str, Sequence[object]]] = field(default_factory=dict)  # name -> group -> classes
    metrics: Sequence[str] = (GRID,)
    recalibrators: Sequence[str] = ()
    split: Split = Split()
    datasets: Mapping[str, Dataset] = field(default_factory=dict)  # by name or pattern; the first that fits counts
    intervals: bool | Literal["bootstrap"] = True
    level: float = 0.95

    def dataset(self, name: str) -> Dataset:
        """Return the settings of a dataset: those of the first pattern that its name matches, or the defaults."""
        return next((dataset for pattern, dataset in self.datasets.items() if fnmatchcase(name, pattern)), Dataset())

    def clean_of(self, name: str) -> str:
        """Return the dataset whose clean rows the recalibrators of a dataset are fitted on: its `clean` or `by`, else itself."""
        dataset = self.dataset(name)
        return dataset.clean or dataset.by or name

    def shares_rows(self, name: str) -> bool:
        """Return whether a dataset has the same rows, in the same order, as its clean one; True for a clean dataset."""
        return self.dataset(name).by is None

    def fit_source(self, source: PredictionFile) -> tuple[str, str, float, int]:
        """Return the key (model, dataset, severity, seed) of the file that the recalibrators of a file are fitted on."""
        return source.model, self.clean_of(source.dataset), 0.0, source.seed


@dataclass(frozen=True)
class Spec:
    """A study file that was read without a problem, with its text as plain values."""

    name: str
    sources: tuple[PredictionFile, ...]
    options: Options
    workers: int | None
    written: dict[str, Any]
    covariates: tuple[str, ...] = ()

    def covariates_of(self, source: PredictionFile) -> dict[str, object]:
        """Return the covariates of a file by name: its values, else those of its dataset, else None."""
        values = {**self.options.dataset(source.dataset).covariates, **source.covariates}
        return {name: values.get(name) for name in self.covariates}
