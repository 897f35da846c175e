"""What goes with a covariate of models or datasets: pretraining data, steps, recipe (Minderer et al. 2021, Figures 3 and 10)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import truecal as tc
from truecal.errors import InputError
from truecal.study.analyses.pareto import METRIC
from truecal.study.analyses.points import (
    CONDITION,
    Analysed,
    by_condition,
    correlate,
    few_models,
    fit_line,
    gathered,
    numbers,
    require_name,
    results,
    where,
    with_error,
)
from truecal.study.analyses.rankings import PairedDraws
from truecal.study.store import pl
from truecal.types import Float64s

# ----------------------------------------------------------------------------------------------------
# What goes with a covariate of models or datasets: pretraining data, steps, recipe (Minderer et al. 2021, Figures 3 and 10)

_NOT = (
    "job",
    "metric",
    "lens",
    "value",
    "low",
    "high",
    "level",
    "n",
    "warnings",
    "scheme",
    "bins",
    "norm",
    "selection",
)


@dataclass(frozen=True, eq=False)
class CovariateTrend(Analysed):
    """Every model with its covariate, and how metric and error go with it.

    `frame()` has one row per model and condition. Columns: metric, lens, dataset, severity, model, family, size, error, value,
    bounds, and the covariate. `levels()`: per condition, family (null: all) and value of the covariate the number of models and
    the means of metric and error. `trends()`, for a covariate of numbers: per condition and family the slope per unit, and
    Kendall's tau, with intervals.
    """

    metric: str
    covariate: str
    recalibrator: str
    _levels: Any
    _trends: Any

    def levels(self) -> Any:
        """One row per condition, family and value of the covariate."""
        return self._levels

    def trends(self) -> Any:
        """One row per condition and family; no rows for a covariate of texts."""
        return self._trends


def covariate_trend(
    frame: Any,
    covariate: str,
    *,
    metric: str = METRIC,
    lens: str = "top-label",
    selection: str = "all",
    recalibrator: str = "none",
    dataset: str | None = None,
) -> CovariateTrend:
    """How a metric and the error go with a covariate: a column of the results such as size, or one of the study's own.

    >>> import polars as pl
    >>> names, families = ["a", "b", "c", "d"], ["old", "old", "new", "new"]
    >>> values = {"error": [0.3, 0.4, 0.1, 0.2], "nll": [0.6, 0.8, 0.2, 0.4]}
    >>> rows = [(*who, metric, value) for metric, all_ in values.items() for *who, value in zip(names, families, all_)]
    >>> frame = pl.DataFrame(rows, schema=["model", "family", "metric", "value"], orient="row").with_columns(
    ...     size=pl.Series([1.0, 2.0, 3.0, 4.0] * 2), dataset=pl.lit("digits"), severity=0.0, seed=0,
    ...     recalibrator=pl.lit("none"), lens=pl.lit(""), selection=pl.lit("all"), low=None, high=None, n=500)
    >>> found = covariate_trend(frame, "size", metric="nll")
    >>> round(found.trends().filter(pl.col("family").is_null())["tau"].item(), 3)  # the larger, the better
    -0.333
    """
    import narwhals as nw

    results(frame)  # refuses what holds no results
    frame = nw.from_native(frame, eager_only=True).to_polars()
    require_name(covariate, "covariate")
    if covariate not in frame.columns or covariate in _NOT:
        known = ", ".join(name for name in frame.columns if name not in _NOT)
        raise InputError(f"there is no covariate {covariate!r} in the results; there are {known}")
    points, notes = with_error(
        frame, [metric], lens=lens, selection=selection, recalibrator=recalibrator, dataset=dataset
    )
    if covariate not in points.columns:
        about = frame.select("model", *CONDITION, covariate).unique(["model", *CONDITION], keep="first")
        points = points.join(about, on=["model", *CONDITION], how="left")
    lacking = points.filter(pl.col(covariate).is_null())["model"].n_unique()
    if lacking:
        notes.append(f"{lacking} models have no {covariate} and are left out")
    points = points.filter(pl.col(covariate).is_not_null()).sort(*CONDITION, covariate, "model")
    if points.is_empty():
        raise InputError(f"no model has a value of {covariate}")
    every = pl.concat([points, points.with_columns(pl.lit(None, pl.String).alias("family"))])
    levels = (
        every.group_by(*CONDITION, "family", covariate)
        .agg(pl.len().alias("models"), pl.col("value").mean(), pl.col("error").mean())
        .sort(*CONDITION, "family", covariate)
    )
    rows, remarks = _rows(every, covariate) if points[covariate].dtype.is_numeric() else ([], [])
    trends = pl.DataFrame(rows, infer_schema_length=None)
    trends = trends.sort(*CONDITION, "family") if rows else trends
    return CovariateTrend((*notes, *gathered(remarks)), points, metric, covariate, recalibrator, levels, trends)


def _rows(every: Any, covariate: str) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    """Trends of every condition and family, and what to know about them."""
    rows, remarks = [], []
    for place, part in by_condition(every, "family"):
        if part.height < 2:
            continue
        level, value, error = numbers(part, covariate, "value", "error")
        row = {**place, "models": part.height, **fit_line(level, value).columns()}
        row |= correlate(level, value).columns("tau") | {"error_tau": correlate(level, error).value}
        rows.append(row)
        if place["family"] is None:
            remarks += few_models(part.height, where(place))
    return rows, remarks


# ----------------------------------------------------------------------------------------------------
# What recalibration does to every model: the same rows before and after (Minderer et al. 2021, Figure 2)

_ALPHA = 0.05
_WHO = ("metric", "lens", *CONDITION, "model", "family", "size")


@dataclass(frozen=True, eq=False)
class RecalibrationEffect(Analysed):
    """Every model before and after recalibration.

    `frame()` has one row per model and condition. Columns: metric, lens, dataset, severity, model, family, size, error,
    error_after, before, before_low, before_high, after, after_low, after_high, change (after - before; negative is better),
    supported (from a store: the change is not 0 by a paired comparison on the same rows, with Holm's correction over the models of
    a condition; from a frame: the two intervals do not overlap; null where that is unknown), n.
    """

    metric: str
    before: str
    after: str

    def summary(self) -> Any:
        """Per condition: models, mean before, mean after, how many improved, how many beyond their intervals, and Kendall's
        tau of the two rankings (1: recalibration left the ranking as it was)."""
        rows = []
        for condition, part in by_condition(self._frame):
            better = part.filter(pl.col("change") < 0)
            row = {**condition, "models": part.height, "before": part["before"].mean(), "after": part["after"].mean()}
            row |= {"improved": better.height, "improved_supported": _counted(better["supported"], part["supported"])}
            before, after = numbers(part, "before", "after")
            rows.append({**row, "n": part["n"].max(), **correlate(before, after).columns("tau")})
        return pl.DataFrame(rows, schema_overrides={"improved_supported": pl.Int64})


def _counted(supported: Any, of_all: Any) -> int | None:
    """How many are supported; None where for some model that is unknown."""
    return None if of_all.null_count() else int(supported.sum())


def effect_of_recalibration(
    source: Any,
    *,
    metric: str = METRIC,
    before: str = "none",
    after: str = "temperature",
    lens: str = "top-label",
    selection: str = "all",
    dataset: str | None = None,
) -> RecalibrationEffect:
    """A metric of every model under two recalibrators, on the same rows; `source` is a store, or its frame.

    Fit on some rows, judge on others: a store keeps the numbers of the rows that the recalibrator has not seen. Where numbers of
    rows differ before and after, a note says so, because then the difference is not that of recalibration alone.
    """
    frame = source.frame() if hasattr(source, "draws") else source
    choice: dict[str, Any] = {"lens": lens, "selection": selection, "dataset": dataset}
    first, notes = with_error(frame, [metric], recalibrator=before, **choice)
    second, more = with_error(frame, [metric], recalibrator=after, **choice)
    second = second.select(
        *_WHO[:5],
        pl.col("value").alias("after"),
        pl.col("low").alias("after_low"),
        pl.col("high").alias("after_high"),
        pl.col("error").alias("error_after"),
        pl.col("n").alias("n_after"),
    )
    both = first.join(second, on=list(_WHO[:5]), how="inner")
    if both.is_empty():
        raise InputError(f"no model has {metric} both with {before!r} and with {after!r}")
    apart = (pl.col("after_high") < pl.col("low")) | (pl.col("after_low") > pl.col("high"))
    both = both.with_columns((pl.col("after") - pl.col("value")).alias("change"), apart.alias("supported"))
    both = _paired(both, source, metric, (before, after), lens) if selection == "all" else both
    remarks = []
    for condition, part in by_condition(both):
        place = where(condition)
        if not part["n"].equals(part["n_after"], check_names=False):
            remarks.append((f"{before!r} and {after!r} were judged on different rows: not the effect alone", place))
        moved = part.filter((pl.col("error") - pl.col("error_after")).abs() > 1e-12)["model"].to_list()
        remarks += [(f"{after!r} changed the classification error", f"{model} {place}") for model in moved]
        worse = part.filter((pl.col("change") > 0) & pl.col("supported"))["model"].to_list()
        remarks += [(f"{after!r} made {metric} worse beyond the intervals", f"{model} {place}") for model in worse]
    notes += gathered(remarks)
    both = both.rename({"value": "before", "low": "before_low", "high": "before_high"})
    names = ("error", "error_after", "before", "before_low", "before_high", "after", "after_low", "after_high")
    table = both.select(*_WHO, *names, "change", "supported", "n").sort(*_WHO[:5])
    return RecalibrationEffect(tuple(dict.fromkeys([*notes, *more])), table, metric, before, after)


def _paired(both: Any, source: Any, metric: str, recalibrators: tuple[str, str], lens: str) -> Any:
    """The table with `supported` from the resamples of a store, where it has them."""
    draws = PairedDraws.of(source)
    if draws is None:
        return both
    parts = []
    for condition, part in by_condition(both):
        first, second = (draws.values(metric, **condition, recalibrator=name, lens=lens) for name in recalibrators)
        models = [model for model in part["model"] if model in first and model in second]
        change = dict(part.select("model", "change").iter_rows())
        p = tc.inference.holm(np.array([_p_value(change[model], second[model] - first[model]) for model in models]))
        known = {model: bool(value <= _ALPHA) for model, value in zip(models, p, strict=True)}
        parts.append(part.with_columns(pl.Series("supported", [known.get(m) for m in part["model"]], pl.Boolean)))
    return pl.concat(parts)


def _p_value(change: float, drawn: Float64s) -> float:
    """Student's, for a change whose resamples are these."""
    from scipy.special import stdtr

    error = float(np.std(drawn, ddof=1))
    return 2 * float(stdtr(len(drawn) - 1, -abs(change) / error)) if error > 0 else float(change == 0)
