"""The numbers that the explorer of a study holds: one mean over seeds per model, place and measure, packed as whole numbers.

A place is a dataset at a severity, after a recalibrator, on a selection of rows; a measure is a metric seen through a lens. Values
keep six decimals and the ends of intervals four. What does not fit into the room given is left out by measure, the least asked for
first, and is named.
"""

import json
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import truecal as tc
from truecal.errors import InputError
from truecal.report.study.record import Columns, Measure, Model, Numbers, Place, Units
from truecal.study import store as stores

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

    more = [name for name in frame.columns if name not in stores.RESULTS]
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
