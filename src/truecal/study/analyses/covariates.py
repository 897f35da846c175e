"""What goes with a covariate of models or datasets: pretraining data, steps, recipe (Minderer et al. 2021, Figures 3 and 10)."""

from dataclasses import dataclass
from typing import Any

from truecal.errors import InputError
from truecal.study.analyses.correlation import correlate, few_models, fit_line
from truecal.study.analyses.pareto_sets import METRIC
from truecal.study.analyses.points import CONDITION, Analysed, gathered, named, numbers, results, with_error
from truecal.study.store import polars

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

    pl = polars()
    results(frame)  # refuses what holds no results
    frame = nw.from_native(frame, eager_only=True).to_polars()
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
    for (*condition, family), part in every.partition_by([*CONDITION, "family"], as_dict=True).items():
        if part.height < 2:
            continue
        level, value, error = numbers(part, covariate, "value", "error")
        line, tau, other = fit_line(level, value), correlate(level, value), correlate(level, error)
        row = {**dict(zip(CONDITION, condition, strict=True)), "family": family, "models": part.height}
        row |= {"slope": line.slope, "slope_low": line.low, "slope_high": line.high}
        row |= {"tau": tau.value, "tau_low": tau.low, "tau_high": tau.high, "error_tau": other.value}
        rows.append(row)
        if family is None:
            remarks += few_models(part.height, named(str(condition[0]), float(condition[1])))
    return rows, remarks
