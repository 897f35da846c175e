"""The study file as values: what is evaluated, and how. `read` makes them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from truecal.study.metrics.names import GRID
from truecal.study.spec.files import Source

RECALIBRATORS = {
    "temperature": "TemperatureScaling",
    "bias-corrected-temperature": "BiasCorrectedTemperature",
    "vector": "VectorScaling",
    "platt": "PlattScaling",
    "beta": "BetaCalibration",
    "isotonic": "IsotonicCalibration",
    "histogram": "HistogramBinning",
    "scaling-binning": "ScalingBinning",
}
LENSES = ("top-label", "all-label", "class-wise")


@dataclass(frozen=True)
class Columns:
    """Where a file keeps what: columns of a table or arrays of an npz file. `kind` is "logits" or "probs"."""

    label: str
    outputs: str | tuple[str, ...]
    kind: Literal["logits", "probs"]
    classes: tuple[object, ...] | None = None


@dataclass(frozen=True)
class Split:
    """The rows recalibrators learn from: a fraction of every class, the same for all models.

    fit="clean": learnt on the file of severity 0 of the same model, dataset and seed; "same": on the file that is judged. With
    `dataset`, learnt on that dataset's clean file of the same model and seed, whatever dataset is judged.
    """

    fraction: float = 0.2
    seed: int = 0
    fit: Literal["clean", "same"] = "clean"
    dataset: str | None = None

    def teacher(self, source: Source, known: Mapping[tuple[str, str, float, int], Source]) -> Source:
        """The file that recalibrators of a file learn from: where there is none that is clean, the file itself."""
        if self.fit == "same":
            return source
        return known.get((source.model, self.dataset or source.dataset, 0.0, source.seed), source)


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
    intervals: bool | Literal["bootstrap"] = True
    level: float = 0.95

    def plain(self) -> dict[str, Any]:
        """The same as a dict that JSON can hold."""
        return asdict(self)


@dataclass(frozen=True)
class Spec:
    """A study file that was read without a problem, with what it says word for word."""

    name: str
    sources: tuple[Source, ...]
    options: Options
    workers: int | None
    written: dict[str, Any]
