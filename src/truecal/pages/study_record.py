"""What the page of a study says, as values: computed by the files beside, drawn by `sections` and the scripts.

`StudyContent.record()` is the one way from these to JSON, `StudyContent.of_record` the way back.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from math import inf, isfinite
from typing import Any, get_args, get_type_hints

import truecal as tc
from truecal.errors import InputError
from truecal.pages.records import document
from truecal.study import store

# ----------------------------------------------------------------------------------------------------
# What the page of a study says, as values: computed by the files beside, drawn by `sections` and the scripts

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


# ----------------------------------------------------------------------------------------------------
# The numbers that the explorer of a study holds: one mean over seeds per model, place and measure, packed as whole numbers

_UNITS = Units()
_MOST_GROUPS = 12  # values of a covariate that models are coloured by
NO_FAMILY = "(no family)"
_PLACE = ["dataset", "severity", "recalibrator", "selection"]
_MEASURE = ["lens", "metric"]
_LENSES = ("top-label", "", "class-wise", "all-label")
_METRICS = (
    "error",
    "rank-series-l2",
    "ece-mass-100-l1",
    "nll",
    "brier",
    "ece-width-15-l1",
    "debiased-15-l2",
    "ece-mass-15-l1",
    "sweep-mass-l1",
    "rank-series-l1",
    "nearest-l2",
    "ece-width-15-max",
)
_NAMES = {
    "error": "Error rate",
    "confidence": "Mean confidence",
    "nll": "Log loss (NLL)",
    "brier": "Brier score",
    "brier-top": "Brier score of the confidence",
    "exact": "Debiased error (exact bias)",
    "ece": "Binned error",
    "label": "Label-binned error",
    "debiased": "Debiased error",
    "sweep": "Monotone sweep",
    "rank": "Rank series",
    "nearest": "Nearest neighbours",
    "aurc": "Area under the risk-coverage curve",
    "abstain": "Cost of abstaining",
    "best-temperature": "Best temperature on the judged rows",
}


@dataclass(frozen=True)
class Packed:
    """What the page embeds, about how many bytes that takes, and what was left out of it, in words."""

    numbers: Numbers
    size: int
    left_out: list[str]


def refuse_undrawable(frame: Any) -> None:
    """Results that a page cannot show are refused before anything is computed."""
    if frame.height == 0:
        raise InputError("the store holds no finished result yet; run the study first")
    metrics = set(frame["metric"])
    if "error" not in metrics or metrics <= {"error", "confidence"}:
        raise InputError(
            "the page draws calibration against error: the study must hold the metric error and another one"
        )


def explorer_numbers(frame: Any, *, room: int) -> Packed:
    """Pack the results of a store into about `room` bytes of JSON."""
    import polars as pl

    models = _models(frame)
    index = {model.name: i for i, model in enumerate(models)}
    means = _means(frame)
    counted = means.group_by(_PLACE).agg(pl.col("n").max(), pl.col("seeds").max()).sort(_PLACE)
    places = [Place(**row) for row in counted.iter_rows(named=True)]
    place_of = {tuple(row): i for i, row in enumerate(counted.select(_PLACE).iter_rows())}
    measures: list[Measure] = []
    packed: list[Columns] = []
    left_out: list[str] = []
    used = 0
    groups = means.partition_by(_MEASURE, as_dict=True)
    for lens, metric in sorted(groups, key=_priority):
        rows = groups[lens, metric]
        if metric == "confidence":
            continue
        columns = _columns(rows, index, place_of)
        size = len(json.dumps(columns, separators=(",", ":")))
        about = rows.row(0, named=True)
        label = measure_label(metric, about["bins"], about["norm"], about["scheme"])
        others = any(kept.metric != "error" for kept in measures)
        if used + size > room and metric != "error" and others:  # there is always something to draw
            left_out.append(f"{label}, {lens or 'whole prediction'}")
            continue
        used += size
        measures.append(Measure(lens, metric, label, about["bins"], metric.startswith("ece-")))
        packed.append(columns)
    error = next(i for i, measure in enumerate(measures) if measure.metric == "error")
    numbers = Numbers(models, places, measures, packed, error)
    rest = json.dumps([models, places, measures], default=vars, separators=(",", ":"))
    return Packed(numbers, used + len(rest), left_out)


def wanted_first(frame: Any) -> list[tuple[str, str]]:
    """Lens and metric of everything but error rates and confidences, those asked for most first."""
    known = frame.select(_MEASURE).unique().rows()
    return sorted((m for m in known if m[1] not in ("error", "confidence")), key=_priority)


def headline(frame: Any) -> tuple[str, str]:
    """Lens and metric that the page opens with."""
    return wanted_first(frame)[0]


def _means(frame: Any) -> Any:
    """Means over seeds, as the analyses take them, with what the metrics are made of."""
    import polars as pl

    parts = []
    for (recalibrator, selection), part in frame.partition_by("recalibrator", "selection", as_dict=True).items():
        if not part["value"].is_finite().any():  # a selection of no rows
            continue
        metrics, lenses = (part[name].unique().to_list() for name in ("metric", "lens"))
        means, _ = tc.study.points(part, metrics, lens=lenses, recalibrator=recalibrator, selection=selection)
        parts.append(means.with_columns(recalibrator=pl.lit(recalibrator), selection=pl.lit(selection)))
    made_of = frame.group_by("metric").agg(*(pl.col(name).first() for name in ("scheme", "bins", "norm")))
    return pl.concat(parts).join(made_of, on="metric", how="left").sort([*_PLACE, *_MEASURE, "model"])


def measure_label(metric: str, bins: int | None, norm: float | None, scheme: str | None) -> str:
    """A metric's name in words.

    >>> measure_label("ece-width-15-l1", 15, 1.0, "width"), measure_label("nll", None, None, None)
    ('Binned error, 15 bins, equal width, mean absolute', 'Log loss (NLL)')
    """
    name = _NAMES.get(metric, _NAMES.get(metric.partition("-")[0], metric))
    words = [name]
    if bins is not None:
        words.append(f"{bins} bins")
    if scheme in ("width", "mass"):
        words.append(f"equal {scheme}")
    if norm is not None:
        words.append({1.0: "mean absolute", 2.0: "root mean square", inf: "maximum"}.get(norm, f"norm {norm:g}"))
    return ", ".join(words)


def _models(frame: Any) -> list[Model]:
    import polars as pl

    more = [name for name in frame.columns if name not in store.RESULTS]
    firsts = [pl.col(name).first() for name in ("family", "size", *more)]
    changing = [pl.col(name).drop_nulls().n_unique().alias(f"{name} count") for name in more]
    models = frame.group_by("model").agg(*firsts, *changing).sort("model")
    # covariates of models, not of datasets, with values that colours can tell apart
    grouped = [n for n in more if models[f"{n} count"].max() == 1 and 2 <= models[n].n_unique() <= _MOST_GROUPS]
    return [
        Model(
            row["model"],
            NO_FAMILY if row["family"] is None else row["family"],
            row["size"],
            {
                name: f"{row[name]:g}" if isinstance(row[name], float) else str(row[name])
                for name in grouped
                if row[name] is not None
            },
        )
        for row in models.iter_rows(named=True)
    ]


def _priority(measure: tuple[str, str]) -> tuple[int, int, int, str, str]:
    """Errors first, then the lenses and metrics that are asked for most; lenses of single classes last."""
    lens, metric = measure
    lens_rank = _LENSES.index(lens) if lens in _LENSES else len(_LENSES)
    known = metric in _METRICS
    metric_rank = _METRICS.index(metric) if known else len(_METRICS)
    return (metric != "error", lens_rank if known else lens_rank + len(_LENSES), metric_rank, lens, metric)


def _columns(rows: Any, index: dict[str, int], place_of: dict[tuple[Any, ...], int]) -> Columns:
    """{place: [values, lows, highs]}, each by model, as whole numbers of their units; null where there is none."""
    columns: dict[str, list[Any]] = {}
    for row in rows.select(*_PLACE, "model", "value", "low", "high").rows():
        place = str(place_of[row[:4]])
        lists = columns.setdefault(place, [[None] * len(index) for _ in range(3)])
        for values, number, unit in zip(lists, row[5:], (_UNITS.value, _UNITS.end, _UNITS.end), strict=True):
            values[index[row[4]]] = round(number * unit) if number is not None and isfinite(number) else None
    return {place: [None if set(values) == {None} else values for values in lists] for place, lists in columns.items()}


# ----------------------------------------------------------------------------------------------------
# The reliability diagrams that the explorer of a study can open, packed as whole numbers

_UNIT = Diagrams().unit
_LENSES_DIAGRAMS = ("top-label", "class-wise", "all-label")
_SCHEMES = ("mass", "width")


def explorer_diagrams(frame: Any, diagrams: Any, numbers: Numbers, *, room: int) -> Diagrams:
    """As many kinds of diagrams as fit into `room` bytes."""
    import polars as pl

    jobs = frame.group_by("job").agg(
        *(pl.col(name).first() for name in ("model", "dataset", "severity", "seed")),
    )
    first = jobs.filter(pl.col("seed") == pl.col("seed").min().over("model", "dataset", "severity"))
    known = (
        diagrams.filter((pl.col("count") > 0) & ~pl.col("lens").str.starts_with("class:"))
        .join(first, on="job")
        .sort("lens", "scheme", "severity", "bin")
    )
    model_of = {model.name: i for i, model in enumerate(numbers.models)}
    place_of = {(p.dataset, p.severity, p.recalibrator, p.selection): i for i, p in enumerate(numbers.places)}
    groups = known.partition_by("lens", "scheme", "severity", as_dict=True)
    kinds: list[Kind] = []
    drawn: list[Drawn] = []
    used, complete = 0, True
    for lens, scheme, severity in sorted(groups, key=_priority_diagrams):
        packed = _packed(groups[lens, scheme, severity], model_of, place_of)
        size = len(json.dumps(packed, separators=(",", ":")))
        if used + size > room:
            complete = False
            break
        used += size
        kind = Kind(lens, scheme)
        if kind not in kinds:
            kinds.append(kind)
            drawn.append({})
        drawn[kinds.index(kind)].update(packed)
    return Diagrams(kinds, drawn, complete=complete)


def _priority_diagrams(group: tuple[str, str, float]) -> tuple[int, int, float, str]:
    lens, scheme, severity = group
    lens_rank = _LENSES_DIAGRAMS.index(lens) if lens in _LENSES_DIAGRAMS else len(_LENSES_DIAGRAMS)
    scheme_rank = _SCHEMES.index(scheme) if scheme in _SCHEMES else len(_SCHEMES)
    return (lens_rank, scheme_rank, severity, lens)


def _packed(rows: Any, model_of: dict[str, int], place_of: dict[tuple[Any, ...], int]) -> Drawn:
    names = ("dataset", "severity", "recalibrator", "selection", "model", "confidence", "outcome", "count")
    drawn: Drawn = {}
    for *place, model, confidence, outcome, count in rows.select(names).rows():
        if tuple(place) not in place_of:  # nothing was judged there
            continue
        key = f"{place_of[tuple(place)]}/{model_of[model]}"
        lists = drawn.setdefault(key, [[], [], []])
        whole = (round(confidence * _UNIT), round(outcome * _UNIT), round(count, 2))
        for values, number in zip(lists, whole, strict=True):
            values.append(int(number) if float(number).is_integer() else number)
    for lists in drawn.values():  # bins of equal mass mostly hold equal counts: one number says it
        if len(set(lists[2])) == 1:
            del lists[2][1:]
    return drawn
