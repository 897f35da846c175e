"""Severities of shift averaged over types of corruption (Minderer et al. 2021, Figures 4 and 5)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.study.analyses.pareto_sets import METRIC
from truecal.study.analyses.points import Analysed, at, conditions, numbers, with_error
from truecal.study.analyses.shifts.reference import references
from truecal.study.store import polars

_MODEL = ["model", "family", "size"]


@dataclass(frozen=True, eq=False)
class ShiftOverTypes(Analysed):
    """Every model at every severity, mean over the shifted datasets (types of corruption) of one clean dataset.

    `frame()` has one row per clean dataset, severity and model; severity 0 is the clean dataset. Columns: clean, severity, model,
    family, size, types (how many), value and error, each with the bounds of the mean over types (Student's, types being the
    sample; null for fewer than three), value_beside_largest (minus the value of the largest model of the family at the same
    severity) and relative_size (within the family, the largest is 1).
    """

    metric: str
    recalibrator: str


def shift_over_types(
    frame: Any,
    *,
    metric: str = METRIC,
    lens: str = "top-label",
    selection: str = "all",
    recalibrator: str = "none",
    reference: str | Mapping[str, str] | None = None,
    level: float = 0.95,
) -> ShiftOverTypes:
    """Means over the shifted datasets that share a clean one. `reference` is as in :func:`shift`."""
    options.level(level)
    pl = polars()
    points, notes = with_error(frame, [metric], lens=lens, selection=selection, recalibrator=recalibrator)
    pairs, more = references(conditions(points), reference)
    shifted = {out: clean for out, clean in pairs.items() if out[1] > 0}
    if not shifted:
        raise InputError(
            "the results hold no severity above 0 with a clean version; name the clean dataset as reference"
        )
    parts = []
    for clean in dict.fromkeys(shifted.values()):
        corrupted = pl.concat([at(points, *out) for out, of in shifted.items() if of == clean])
        parts.append(pl.concat([at(points, *clean), corrupted]).with_columns(clean=pl.lit(clean[0])))
    table = pl.concat(parts)
    rows = [
        {"clean": clean, "severity": severity, "model": model, **_means(part, level)}
        for (clean, severity, model), part in table.partition_by(
            ["clean", "severity", "model"], as_dict=True, maintain_order=True
        ).items()
    ]
    about = table.select(*_MODEL).unique("model", keep="first")
    means = pl.DataFrame(rows, infer_schema_length=None).join(about, on="model", how="left")
    largest = pl.col("size").max().over("family")
    top = pl.col("value").filter(pl.col("size") == largest).first().over("clean", "severity", "family")
    known = pl.col("size").is_not_null() & pl.col("family").is_not_null()
    means = means.with_columns(
        pl.when(known).then(pl.col("value") - top).alias("value_beside_largest"),
        pl.when(known).then(pl.col("size") / largest).alias("relative_size"),
    ).sort("clean", "severity", "model")
    return ShiftOverTypes(tuple(dict.fromkeys([*notes, *more])), means, metric, recalibrator)


def _means(part: Any, level: float) -> dict[str, float | int | None]:
    """Means of metric and error over types, with Student's intervals."""
    from scipy.special import stdtrit

    row: dict[str, float | int | None] = {"types": part["dataset"].n_unique()}
    for name, values in zip(("value", "error"), numbers(part, "value", "error"), strict=True):
        mean, count = float(values.mean()), len(values)
        reach = None
        if count >= 3:
            reach = float(stdtrit(count - 1, (1 + level) / 2)) * float(values.std(ddof=1)) / np.sqrt(count)
        row |= {name: mean}
        row |= {f"{name}_low": None if reach is None else mean - reach}
        row |= {f"{name}_high": None if reach is None else mean + reach}
    return row
