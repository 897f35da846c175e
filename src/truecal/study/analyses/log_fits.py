"""Calibration error as a power of classification error, by family, pooled over datasets (Minderer et al. 2021, Figure 11)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.study.analyses.correlation import fit_line
from truecal.study.analyses.pareto_sets import METRIC
from truecal.study.analyses.points import Analysed, gathered, numbers, with_error
from truecal.study.store import polars

_FEWEST = 3  # points for a line with an interval


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
    pl = polars()
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
        row = {by: group, "slope": line.slope, "slope_low": line.low, "slope_high": line.high}
        row |= {"intercept": line.intercept, "explained": line.explained}
        rows.append({**row, "points": part.height, "models": part["model"].n_unique()})
        if part.height < _FEWEST:
            remarks.append((f"fewer than {_FEWEST} points leave no interval", str(group)))
    if not rows:
        raise InputError("no point has a logarithm: all estimates or errors are 0")
    lines = pl.DataFrame(rows, infer_schema_length=None).sort(by, nulls_last=True)
    return LogFits((*notes, *gathered(remarks)), usable, metric, recalibrator, by, lines)
