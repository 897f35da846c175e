"""What the page of a study says, as values: computed by the files beside, drawn by `sections` and the scripts.

`StudyContent.record()` is the one way from these to JSON, `StudyContent.of_record` the way back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any, get_args, get_type_hints

from truecal.report.records import document

Number = float | int | None
Columns = dict[str, list[list[Number] | None]]  # place -> values, lows, highs; each by model
Drawn = dict[str, list[list[float]]]  # "place/model" -> confidences, outcomes, counts


@dataclass(frozen=True)
class Model:
    """A model of the study. `groups` are what it can be coloured by beside its family: covariates with few values, in words."""

    name: str
    family: str
    size: float | None
    groups: Mapping[str, str]


@dataclass(frozen=True)
class Place:
    """Where a number was found: rows of a dataset, shifted or not, recalibrated or not."""

    dataset: str
    severity: float
    recalibrator: str
    selection: str
    n: float | None  # unknown for numbers that were measured elsewhere
    seeds: int


@dataclass(frozen=True)
class Measure:
    """A metric seen through a lens. `plain`: a binned error without correction of its bias."""

    lens: str
    metric: str
    label: str
    bins: int | None
    plain: bool


@dataclass(frozen=True)
class Kind:
    """A kind of reliability diagram."""

    lens: str
    scheme: str


@dataclass(frozen=True)
class Diagrams:
    """Reliability diagrams as whole numbers of 1 / unit, one mapping per kind; and whether none is missing."""

    kinds: Sequence[Kind] = ()
    drawn: Sequence[Drawn] = ()
    unit: int = 10_000
    complete: bool = True


@dataclass(frozen=True)
class Units:
    """Numbers of the page are whole multiples of 1 / these: values, and ends of intervals."""

    value: int = 1_000_000
    end: int = 10_000


@dataclass(frozen=True)
class Start:
    """Index of the measure and of the place that are shown first."""

    measure: int
    place: int


@dataclass(frozen=True)
class Numbers:
    """Every number that the explorer holds. `error` is the index of the error rate among the measures."""

    models: Sequence[Model]
    places: Sequence[Place]
    measures: Sequence[Measure]
    columns: Sequence[Columns]
    error: int
    units: Units = Units()


@dataclass(frozen=True)
class Explorer:
    """What the scripts of the page work with."""

    numbers: Numbers
    diagrams: Diagrams
    level: float
    start: Start


@dataclass(frozen=True)
class Analysis:
    """A section of the page: what it asks, its notes, and a table of shown values with what each sorts by."""

    id: str
    heading: str
    intro: str
    notes: Sequence[str] = ()
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    sorts: Sequence[Sequence[float | str]] = ()
    more: str = ""


@dataclass(frozen=True)
class Provenance:
    made: str
    versions: Mapping[str, str]
    command: str | None
    study: str
    evaluated: str


@dataclass(frozen=True)
class StudyContent:
    """The whole page."""

    title: str
    facts: list[str]
    explorer: Explorer
    left_out: Sequence[str]
    warnings: Sequence[str]
    analyses: Sequence[Analysis]
    reproduce: Provenance

    def record(self) -> dict[str, object]:
        """The same as JSON can hold it."""
        return document("study-page", **asdict(self))

    @classmethod
    def of_record(cls, record: Mapping[str, object]) -> "StudyContent":
        """The content whose `record()` this is, perhaps read back from a file."""
        content: StudyContent = _revived(cls, record)
        return content


def _revived(kind: Any, value: Any) -> Any:
    """A value of JSON as the dataclass, or the list of dataclasses, that it was made from."""
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        parts = [_revived(hints[field.name], value[field.name]) for field in fields(kind)]
        return kind(*parts)  # type: ignore[operator]
    inner = get_args(kind)
    if inner and is_dataclass(inner[0]):
        return [_revived(inner[0], one) for one in value]
    return value
