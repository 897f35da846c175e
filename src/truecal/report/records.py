"""Results as records: frozen dataclasses that `--json` prints and pages are drawn from, so that both show the same numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np

import truecal as tc
from truecal import frame
from truecal.estimate import Bins

SCHEMA_VERSION = 1
OPTIONAL, plain = frame.OPTIONAL, frame.plain
Document: TypeAlias = dict[str, Any]  # what JSON calls an object


def document(kind: str, record: object = None, **content: object) -> Document:
    """A record with its name and version in front: {"schema": "truecal.<kind>", "version": 1, ...}."""
    inside = {} if record is None else plain(record)
    return {"schema": f"truecal.{kind}", "version": SCHEMA_VERSION, **inside, **plain(content)}


Record = TypeVar("Record")


def picked(kind: type[Record], row: Mapping[str, Any]) -> Record:
    """A record from a row of a frame that has its fields, perhaps among others."""
    return kind(**{f.name: row[f.name] for f in fields(kind)})  # type: ignore[arg-type]


@dataclass(frozen=True)
class IntervalRecord:
    """A confidence interval: its ends, its level and how it was made."""

    low: float
    high: float
    level: float
    method: str


@dataclass(frozen=True)
class EstimatorRecord:
    """Name and options of an estimator."""

    name: str
    options: Mapping[str, object]

    @classmethod
    def of(cls, estimator: object) -> "EstimatorRecord":
        """
        >>> import truecal as tc
        >>> EstimatorRecord.of(tc.SweepECE(norm=1))
        EstimatorRecord(name='SweepECE', options={'scheme': 'mass', 'norm': 1, 'ties': 'keep'})
        """
        options = (
            {f.name: getattr(estimator, f.name) for f in fields(estimator)}
            if is_dataclass(estimator) and not isinstance(estimator, type)
            else {}
        )
        return cls(type(estimator).__name__, options)


@dataclass(frozen=True)
class BinRecord:
    """A filled bin, with the interval of its outcome rate."""

    count: float
    mean_score: float
    mean_outcome: float
    low: float
    high: float


def bin_records(bins: Bins, level: float) -> tuple[BinRecord, ...]:
    """The filled bins of a single dataset."""
    low, high = bins.interval(level)
    rows = zip(bins.counts, bins.mean_score, bins.mean_outcome, low, high, strict=True)
    return tuple(BinRecord(*map(float, row)) for row in rows)


@dataclass(frozen=True)
class EstimateRecord:
    """Everything an Estimate of a single dataset says."""

    metric: str
    value: float
    norm: float
    power: float
    interval: IntervalRecord | None
    p_value: float | None
    n: int
    effective_n: float
    direction: float
    estimator: EstimatorRecord
    lens: str
    bins: tuple[BinRecord, ...] | None
    parts: object
    warnings: tuple[str, ...]
    sketch_error: float | None = field(default=None, metadata=OPTIONAL)
    sketch_bound: str | None = field(default=None, metadata=OPTIONAL)
    group: str | None = field(default=None, metadata=OPTIONAL)
    selection: str | None = field(default=None, metadata=OPTIONAL)
    chance: float | None = field(default=None, metadata=OPTIONAL)

    @classmethod
    def of(cls, estimate: tc.Estimate, *, level: float = 0.95, group: str | None = None) -> "EstimateRecord":
        interval = estimate.interval
        return cls(
            metric=estimate.metric,
            value=float(estimate.value),
            norm=float(estimate.norm),
            power=float(estimate.power),
            interval=None
            if interval is None
            else IntervalRecord(float(interval.low), float(interval.high), interval.level, interval.method),
            p_value=None if estimate.p_value is None else float(estimate.p_value),
            n=estimate.n,
            effective_n=float(np.max(estimate.effective_n)),
            direction=float(estimate.direction),
            estimator=EstimatorRecord.of(estimate.estimator),
            lens=estimate.lens,
            bins=None if estimate.bins is None else bin_records(estimate.bins, level),
            parts=estimate.parts,
            warnings=tuple(estimate.warnings),
            sketch_error=estimate.sketch_error,
            sketch_bound=estimate.sketch_bound,
            group=group,
            selection=estimate.selection or None,
            chance=estimate.chance,
        )


@dataclass(frozen=True)
class Absent:
    """A part of a page that could not be computed, and why."""

    absent: str
