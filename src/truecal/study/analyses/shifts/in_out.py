"""Does good calibration on clean data predict good calibration on shifted data? (Minderer et al. 2021, Figures 6 and 11)"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from truecal import options
from truecal.errors import InputError
from truecal.study.analyses.correlation import METHODS, correlate, few_models
from truecal.study.analyses.pareto_sets import METRIC
from truecal.study.analyses.points import CONDITION, Analysed, at, conditions, gathered, named, numbers, with_error
from truecal.study.analyses.shifts.reference import references
from truecal.study.store import polars

_PAIRS = (("metric in, metric out", "inside", "outside"), ("error in, error out", "error_inside", "error_outside"))
PAIRS = (*_PAIRS, ("error out, metric out", "error_outside", "outside"))


@dataclass(frozen=True, eq=False)
class InAndOut(Analysed):
    """Every model on clean (inside) and on shifted data (outside).

    `frame()` has one row per shifted condition and model. Columns: dataset, severity (of the shifted data), clean (dataset),
    model, family, size, inside, outside (the metric), their bounds, error_inside, error_outside.
    """

    metric: str
    _correlations: Any

    def correlations(self) -> Any:
        """Per shifted condition, pair of numbers and coefficient: value, low, high, models.

        Pairs: the metric in and out; the error in and out; and, on the shifted data, the error with the metric.
        """
        return self._correlations


def in_and_out(
    frame: Any,
    *,
    metric: str = METRIC,
    lens: str = "top-label",
    selection: str = "all",
    recalibrator: str = "none",
    reference: str | Mapping[str, str] | None = None,
    level: float = 0.95,
) -> InAndOut:
    """Correlations over models between clean and shifted data: Pearson, Spearman and Kendall, with intervals.

    `reference` names the clean dataset of shifted ones (one for all, or one for each); without it a dataset's own severity 0.
    """
    options.level(level)
    pl = polars()
    points, notes = with_error(frame, [metric], lens=lens, selection=selection, recalibrator=recalibrator)
    pairs, more = references(conditions(points), reference)
    if not pairs:
        raise InputError(
            "the results hold no shifted data with a clean version: give severities above 0, or name the clean dataset as reference"
        )
    notes += more
    remarks: list[tuple[str, str]] = []
    parts, rows = [], []
    for out, clean in pairs.items():
        inside = at(points, *clean).select(
            "model",
            pl.lit(clean[0]).alias("clean"),
            pl.col("value").alias("inside"),
            pl.col("low").alias("inside_low"),
            pl.col("high").alias("inside_high"),
            pl.col("error").alias("error_inside"),
        )
        names = {"value": "outside", "low": "outside_low", "high": "outside_high", "error": "error_outside"}
        part = at(points, *out).rename(names).join(inside, on="model", how="inner")
        if part.is_empty():
            remarks.append((f"no model was judged on {clean[0]} as well", named(*out)))
            continue
        remarks += few_models(part.height, named(*out))
        for what, x, y in PAIRS:
            first, second = numbers(part, x, y)
            for method in METHODS:
                c = correlate(first, second, method, level=level)
                row = {**dict(zip(CONDITION, out, strict=True)), "clean": clean[0], "pair": what, "method": method}
                rows.append({**row, "value": c.value, "low": c.low, "high": c.high, "models": c.models})
        parts.append(part)
    if not parts:
        raise InputError("no model was judged on both clean and shifted data")
    table = pl.concat(parts).select(
        *CONDITION,
        "clean",
        "model",
        "family",
        "size",
        *(f"{side}{bound}" for side in ("inside", "outside") for bound in ("", "_low", "_high")),
        "error_inside",
        "error_outside",
    )
    correlations = pl.DataFrame(rows, infer_schema_length=None)
    remarks += _open(correlations, metric)
    notes += gathered(remarks)
    return InAndOut(tuple(dict.fromkeys(notes)), table, metric, correlations)


def _open(correlations: Any, metric: str) -> list[tuple[str, str]]:
    """Where calibration on clean data says nothing about that on shifted data."""
    pl = polars()
    unknown = correlations.filter(
        (pl.col("pair") == PAIRS[0][0]) & (pl.col("method") == "kendall") & (pl.col("low") <= 0) & (pl.col("high") >= 0)
    )
    text = f"{metric} on clean data does not predict that on shifted data (the interval of tau holds 0)"
    return [
        (text, f"{named(row['dataset'], row['severity'])} (tau {row['value']:.2f})")
        for row in unknown.iter_rows(named=True)
    ]
