"""Records that pages are drawn from, and where a page came from."""

import hashlib
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal import table
from truecal.estimators.bins import Bins

# ----------------------------------------------------------------------------------------------------
# Where a page came from: versions, options, the command, and a fingerprint of the data

_PACKAGES = ("truecal", "numpy", "scipy", "scikit-learn", "polars", "jinja2", "vl-convert-python")


def versions() -> dict[str, str]:
    """Python and the packages that had a part in the numbers or the page, where installed."""
    installed = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            continue
    return installed


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


@dataclass(frozen=True)
class Provenance:
    """When a page was made, from which data and files, by which command and options, with which versions.

    `fingerprints` are of the arrays that were judged, `files` SHA-256 of whole files, as sha256sum gives them.
    """

    fingerprints: Mapping[str, str]
    command: str | None
    options: Mapping[str, object]
    files: Mapping[str, str] = field(default_factory=dict)
    made: str = field(default_factory=now)
    versions: Mapping[str, str] = field(default_factory=versions)

    def lines(self, otherwise: str) -> list[tuple[str, str]]:
        """The last lines of a page's reproducibility box; `otherwise` stands for the command where none is known."""
        return [
            *((f"File {name}", f"SHA-256 {digest}") for name, digest in self.files.items()),
            ("Command", self.command or otherwise),
            ("Options", ", ".join(f"{key} = {value}" for key, value in self.options.items() if value is not None)),
            ("Versions", ", ".join(f"{name} {number}" for name, number in self.versions.items())),
        ]


def fingerprint(arrays: Sequence[NDArray[np.generic] | None]) -> str:
    """SHA-256 of what was judged: the same rows in the same order and precision give the same fingerprint.

    >>> a, b = ((np.array([0.5, p]), np.array([0, 1]), None) for p in (0.25, 0.26))
    >>> fingerprint(a) == fingerprint(a), fingerprint(a) == fingerprint(b)
    (True, False)
    """
    digest = hashlib.sha256()
    for array in arrays:
        if array is None:
            digest.update(b"none")
            continue
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


# ----------------------------------------------------------------------------------------------------
# Results as records: frozen dataclasses that `--json` prints and pages are drawn from, so that both show the same numbers

SCHEMA_VERSION = 1
OPTIONAL, plain = table.OPTIONAL, table.plain
Document: TypeAlias = dict[str, Any]  # what JSON calls an object


def document(kind: str, record: object = None, **content: object) -> Document:
    """A record with its name and version in front: {"schema": "truecal.<kind>", "version": 1, ...}."""
    inside = {} if record is None else plain(record)
    return {"schema": f"truecal.{kind}", "version": SCHEMA_VERSION, **inside, **plain(content)}


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
