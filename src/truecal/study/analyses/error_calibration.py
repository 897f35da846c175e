"""Calibration against classification error, model by model, with families and sizes (Minderer et al. 2021, Figures 1 and 2)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from truecal import options
from truecal.study.analyses.correlation import METHODS, correlate, few_models, fit_line
from truecal.study.analyses.pareto_sets import METRIC
from truecal.study.analyses.points import CONDITION, Analysed, gathered, named, numbers, with_error
from truecal.study.store import polars


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
    pl = polars()
    points, notes = with_error(
        frame, [metric], lens=lens, selection=selection, recalibrator=recalibrator, dataset=dataset
    )
    largest = pl.col("size").max().over([*CONDITION, "family"])
    points = points.with_columns((pl.col("size") / largest).alias("relative_size"))
    rows: list[dict[str, Any]] = []
    remarks, loose, pairs = [], 0, 0
    for condition, part in points.partition_by(list(CONDITION), as_dict=True, maintain_order=True).items():
        rows.append(_trend(condition, None, part, level))
        remarks += few_models(part.height, named(*condition))
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


def _trend(condition: tuple[Any, ...], family: str | None, part: Any, level: float) -> dict[str, Any]:
    error, value = numbers(part, "error", "value")
    line = fit_line(error, value, level=level)
    row: dict[str, Any] = {**dict(zip(CONDITION, condition, strict=True)), "family": family, "models": part.height}
    row |= {"slope": line.slope, "slope_low": line.low, "slope_high": line.high, "intercept": line.intercept}
    for method in METHODS:
        coefficient = correlate(error, value, method, level=level)
        row |= {method: coefficient.value, f"{method}_low": coefficient.low, f"{method}_high": coefficient.high}
    return row


def _overlapping(part: Any) -> list[bool]:
    """Whether neighbours in the ranking by the metric have overlapping intervals, where they have some."""
    low, high = numbers(part.sort("value"), "low", "high")
    known = ~np.isnan(low[1:]) & ~np.isnan(high[:-1])
    return (low[1:] <= high[:-1])[known].tolist()
