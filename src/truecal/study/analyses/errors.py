"""Calibration against classification error, model by model, with families and sizes (Minderer et al. 2021, Figures 1 and 2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.special import positive
from truecal.study.analyses.pareto import METRIC
from truecal.study.analyses.points import (
    CONDITION,
    FEW,
    METHODS,
    Analysed,
    by_condition,
    correlate,
    few_models,
    fit_line,
    gathered,
    numbers,
    where,
    with_error,
)
from truecal.study.store import pl

# ----------------------------------------------------------------------------------------------------
# Calibration against classification error, model by model, with families and sizes (Minderer et al. 2021, Figures 1 and 2)


@dataclass(frozen=True, eq=False)
class ErrorAgainstCalibration(Analysed):
    """Points of models, and the trends through them.

    `frame()` has one row per model and condition. Columns: metric, lens, dataset, severity, model, family, size, relative_size
    (within the family, the largest is 1), error, value, and the bounds of both.
    """

    metric: str
    _trends: Any

    def trends(self) -> Any:
        """Per condition, and per family in it (family null: all models): the slope of the metric on the error with its interval,
        Pearson's, Spearman's and Kendall's coefficient with theirs, and the number of models."""
        return self._trends


def error_against_calibration(
    frame: Any,
    *,
    metric: str = METRIC,
    lens: str = "top-label",
    selection: str = "all",
    recalibrator: str = "none",
    dataset: str | None = None,
    level: float = 0.95,
) -> ErrorAgainstCalibration:
    """How calibration goes with accuracy, over all models and within families."""
    options.level(level)
    points, notes = with_error(
        frame, [metric], lens=lens, selection=selection, recalibrator=recalibrator, dataset=dataset
    )
    largest = pl.col("size").max().over([*CONDITION, "family"])
    points = points.with_columns((pl.col("size") / largest).alias("relative_size"))
    rows: list[dict[str, Any]] = []
    remarks, loose, pairs = [], 0, 0
    for condition, part in by_condition(points):
        rows.append(_trend(condition, None, part, level))
        remarks += few_models(part.height, where(condition))
        for family in part["family"].drop_nulls().unique().sort():
            members = part.filter(pl.col("family") == family)
            if members.height >= 2:
                rows.append(_trend(condition, family, members, level))
        overlapping = _overlapping(part)
        loose, pairs = loose + sum(overlapping), pairs + len(overlapping)
    if not pairs:
        notes.append(f"there are no intervals of {metric}: which of its ranks are chance is unknown")
    elif loose:
        notes.append(
            f"{loose} of {pairs} neighbours in rankings by {metric} have overlapping intervals: "
            "their order is not supported by the data"
        )
    notes += gathered(remarks)
    return ErrorAgainstCalibration(tuple(notes), points, metric, pl.DataFrame(rows, infer_schema_length=None))


def _trend(condition: dict[str, Any], family: str | None, part: Any, level: float) -> dict[str, Any]:
    error, value = numbers(part, "error", "value")
    line = fit_line(error, value, level=level)
    row = {**condition, "family": family, "models": part.height, **line.columns(), "intercept": line.intercept}
    for method in METHODS:
        row |= correlate(error, value, method, level=level).columns(method)
    return row


def _overlapping(part: Any) -> list[bool]:
    """Whether neighbours in the ranking by the metric have overlapping intervals, where they have some."""
    low, high = numbers(part.sort("value"), "low", "high")
    known = ~np.isnan(low[1:]) & ~np.isnan(high[:-1])
    return (low[1:] <= high[:-1])[known].tolist()


# ----------------------------------------------------------------------------------------------------
# What is left of NLL and Brier score once error is taken out (Minderer et al. 2021, Figure 8)

_FEWEST = 4  # models for a line to leave residuals


@dataclass(frozen=True, eq=False)
class Residuals(Analysed):
    """Residuals of every score.

    `frame()` has one row per score, condition and model. Columns: metric, lens, dataset, severity, model, family, size, error,
    value, expected (by the line), residual, standardized (the residual over its own standard error: beyond 2 or -2 a model stands
    out).
    """

    _lines: Any

    def lines(self) -> Any:
        """Per score and condition: slope with its interval, intercept, share of the variance explained, models."""
        return self._lines


def residuals(
    frame: Any,
    *,
    metrics: str | Sequence[str] = ("nll", "brier"),
    lens: str = "top-label",
    selection: str = "all",
    recalibrator: str = "none",
    dataset: str | None = None,
) -> Residuals:
    """Residuals of scores after a least-squares line on the classification error, under every condition."""
    if isinstance(metrics, str):
        metrics = (metrics,)
    points, notes = with_error(
        frame, metrics, lens=lens, selection=selection, recalibrator=recalibrator, dataset=dataset
    )
    remarks, parts, rows = [], [], []
    for condition, part in by_condition(points, "metric", "lens"):
        place = f"{condition['metric']} {where(condition)}"
        error, value = numbers(part, "error", "value")
        line = fit_line(error, value)
        expected = line.intercept + line.slope * error
        rest = value - expected
        if len(error) < _FEWEST or np.isnan(line.slope):
            why = f"{len(error)} models" if len(error) < _FEWEST else "models of one and the same error"
            remarks.append((f"{why} leave no residuals to speak of", place))
        elif len(error) < FEW:
            remarks.append(
                (f"a line through {len(error)} models follows each of them; read residuals with care", place)
            )
        if line.explained > 0.99 and len(error) >= _FEWEST:
            remarks.append(
                ("error explains more than 99 % of the variance; the score ranks models almost as error does", place)
            )
        parts.append(
            part.with_columns(
                pl.Series("expected", expected),
                pl.Series("residual", rest),
                pl.Series("standardized", _standardized(error, rest)),
            )
        )
        row = {**condition, **line.columns(), "intercept": line.intercept}
        rows.append({**row, "explained": line.explained, "models": line.models})
    columns = ("metric", "lens", *CONDITION, "model", "family", "size", "error", "value")
    table = pl.concat(parts).select(*columns, "expected", "residual", "standardized")
    return Residuals((*notes, *gathered(remarks)), table, pl.DataFrame(rows, infer_schema_length=None))


def _standardized(error: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Residuals over s * sqrt(1 - leverage); NaN where a point holds the line by itself."""
    n = len(error)
    centred = error - error.mean()
    square = float(centred @ centred)
    if n < _FEWEST or square == 0:
        return np.full(n, np.nan)
    free = 1 - 1 / n - centred**2 / square
    scale = np.sqrt(np.maximum(free, 0.0) * float(rest @ rest) / (n - 2))
    return np.where(scale > 0, rest / positive(scale), np.nan)


# ----------------------------------------------------------------------------------------------------
# Calibration error as a power of classification error, by family, pooled over datasets (Minderer et al. 2021, Figure 11)

_FEWEST_LOG_FITS = 3  # points for a line with an interval


@dataclass(frozen=True, eq=False)
class LogFits(Analysed):
    """Points of models on datasets, and lines log10(metric) = intercept + slope log10(error) through those of a group.

    `frame()` has one row per model and condition. Columns: metric, lens, dataset, severity, model, family, size, error, value, and
    the group. `lines()` columns: the group, slope, slope_low, slope_high, intercept, explained (R squared), points, models.
    """

    metric: str
    recalibrator: str
    by: str
    _lines: Any

    def lines(self) -> Any:
        """One row per group."""
        return self._lines


def log_fits(
    frame: Any,
    *,
    metric: str = METRIC,
    by: str = "family",
    lens: str = "top-label",
    selection: str = "all",
    recalibrator: str = "none",
    level: float = 0.95,
) -> LogFits:
    """A line through all conditions of every group of models (`by`: family, or any covariate), on logarithmic scales.

    Intervals take points as independent; those of one model on several datasets are not, so they are rather narrow.

    >>> import polars as pl
    >>> names, families = ["a", "b", "c", "d"], ["old", "old", "new", "new"]
    >>> values = {"error": [0.3, 0.4, 0.1, 0.2], "nll": [0.6, 0.8, 0.2, 0.4]}
    >>> rows = [(*who, metric, value) for metric, all_ in values.items() for *who, value in zip(names, families, all_)]
    >>> frame = pl.DataFrame(rows, schema=["model", "family", "metric", "value"], orient="row").with_columns(
    ...     size=pl.lit(1.0), dataset=pl.lit("digits"), severity=0.0, seed=0, recalibrator=pl.lit("none"), lens=pl.lit(""),
    ...     selection=pl.lit("all"), low=None, high=None, n=500)
    >>> [(family, round(slope, 6)) for family, slope in log_fits(frame, metric="nll").lines().select("family", "slope").rows()]
    [('new', 1.0), ('old', 1.0)]
    """
    options.level(level)
    points, notes = with_error(frame, [metric], lens=lens, selection=selection, recalibrator=recalibrator)
    if by not in points.columns:
        if by not in frame.columns:
            raise InputError(f"the results have no column {by!r} to group by; there are {', '.join(frame.columns)}")
        about = frame.select("model", "dataset", "severity", by).unique(["model", "dataset", "severity"], keep="first")
        points = points.join(about, on=["model", "dataset", "severity"], how="left")
    usable = points.filter((pl.col("value") > 0) & (pl.col("error") > 0))
    zeros = points.height - usable.height
    if zeros:
        notes.append(
            f"{zeros} of {points.height} points have an estimate or an error of 0 and no logarithm; they are left out"
        )
    rows, remarks = [], []
    for (group,), part in usable.partition_by([by], as_dict=True, maintain_order=True).items():
        error, value = numbers(part, "error", "value")
        line = fit_line(np.log10(error), np.log10(value), level=level)
        row = {by: group, **line.columns(), "intercept": line.intercept, "explained": line.explained}
        rows.append({**row, "points": part.height, "models": part["model"].n_unique()})
        if part.height < _FEWEST_LOG_FITS:
            remarks.append((f"fewer than {_FEWEST_LOG_FITS} points leave no interval", str(group)))
    if not rows:
        raise InputError("no point has a logarithm: all estimates or errors are 0")
    lines = pl.DataFrame(rows, infer_schema_length=None).sort(by, nulls_last=True)
    return LogFits((*notes, *gathered(remarks)), usable, metric, recalibrator, by, lines)
