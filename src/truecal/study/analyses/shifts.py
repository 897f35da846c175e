"""How models behave as data shift further and further from what they were trained on (Minderer et al. 2021, Figures 4 and 5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.study.analyses.pareto import METRIC
from truecal.study.analyses.points import (
    CONDITION,
    METHODS,
    Analysed,
    at,
    by_condition,
    conditions,
    correlate,
    few_models,
    fit_line,
    gathered,
    numbers,
    references,
    where,
    with_error,
)
from truecal.study.store import pl

# ----------------------------------------------------------------------------------------------------
# How models behave as data shift further and further from what they were trained on (Minderer et al. 2021, Figures 4 and 5)

_FEWEST = 3  # severities for a slope


@dataclass(frozen=True, eq=False)
class Shift(Analysed):
    """Every model at every severity, beside its clean self and beside the largest model of its family.

    `frame()` has one row per model and condition; a shifted dataset starts with its clean one at severity 0. Columns: metric,
    lens, dataset, severity, model, family, size, error, value and their bounds; value_increase and error_increase over the clean
    data; supported (the interval lies wholly above or below that of the clean data); value_beside_largest and error_beside_largest
    (minus those of the largest model of the family, Figure 5).
    """

    metric: str

    def slopes(self) -> Any:
        """Per dataset and model: rise of the metric and of the error per step of severity (least squares), with intervals."""
        rows = []
        for part in self._frame.partition_by("dataset", "model", maintain_order=True):
            if part.height < 2:
                continue
            severity, value, error = numbers(part, "severity", "value", "error")
            lost = fit_line(severity, error)
            row = part.select("dataset", "model", "family", "size").row(0, named=True)
            row |= {"severities": part.height, **fit_line(severity, value).columns()}
            rows.append({**row, "error_slope": lost.slope, "error_low": lost.low, "error_high": lost.high})
        return pl.DataFrame(rows, infer_schema_length=None)

    def by_size(self) -> Any:
        """Per condition and family: Kendall's tau between size and the metric, and between size and error.

        Minderer et al. find it positive on clean data and negative on shifted data: larger models hold out better.
        """
        sized = self._frame.filter(pl.col("size").is_not_null() & pl.col("family").is_not_null())
        rows = []
        for place, part in by_condition(sized, "family"):
            if part.height < 2:
                continue
            size, value, error = numbers(part, "size", "value", "error")
            tau = correlate(size, value)
            row = {**place, "models": part.height, "tau": tau.value, "low": tau.low, "high": tau.high}
            rows.append({**row, "error_tau": correlate(size, error).value})
        return pl.DataFrame(rows, infer_schema_length=None)


def shift(
    frame: Any,
    *,
    metric: str = METRIC,
    lens: str = "top-label",
    selection: str = "all",
    recalibrator: str = "none",
    reference: str | Mapping[str, str] | None = None,
) -> Shift:
    """A metric and the error of every model over the severities of each shifted dataset.

    `reference` names the clean dataset of shifted ones that have no severity 0 of their own (one for all, or one for each); its
    numbers then open their rows.
    """
    points, notes = with_error(frame, [metric], lens=lens, selection=selection, recalibrator=recalibrator)
    there = conditions(points)
    shifted = sorted({dataset for dataset, severity in there if severity > 0})
    if not shifted:
        raise InputError("the results hold no severity above 0; for shifted data without severities see in_and_out")
    own = {dataset: dataset for dataset, severity in there if severity == 0}
    named_clean = reference if isinstance(reference, Mapping) else dict.fromkeys(shifted, reference)
    parts = []
    for dataset in shifted:
        clean = own.get(dataset) or named_clean.get(dataset)
        if clean is None or clean not in own:
            notes.append(f"{dataset} has no results at severity 0 to compare with; name its clean dataset as reference")
            continue
        start = at(points, clean, 0.0).with_columns(pl.lit(dataset).alias("dataset"))
        rest = points.filter((pl.col("dataset") == dataset) & (pl.col("severity") > 0))
        base = start.select("model", *(pl.col(name).alias(f"_{name}") for name in ("value", "error", "low", "high")))
        lost = sorted(set(rest["model"]) - set(start["model"]))
        if lost:
            notes.append(f"not judged on the clean version of {dataset}, so left out: {', '.join(lost)}")
        parts.append(pl.concat([start, rest]).join(base, on="model", how="inner"))
    if not parts:
        raise InputError(f"no shifted dataset has a clean version: {'; '.join(notes)}")
    table = pl.concat(parts)
    table = table.with_columns(
        (pl.col("value") - pl.col("_value")).alias("value_increase"),
        (pl.col("error") - pl.col("_error")).alias("error_increase"),
        pl.when(pl.col("severity") > 0)
        .then((pl.col("low") > pl.col("_high")) | (pl.col("high") < pl.col("_low")))
        .alias("supported"),
        *(_beside_largest(name, [*CONDITION, "family"]) for name in ("value", "error")),
    ).drop("_value", "_error", "_low", "_high")
    table = table.sort("dataset", "model", "severity")
    return Shift(tuple(dict.fromkeys([*notes, *_notes(table, metric)])), table, metric)


def _beside_largest(name: str, group: list[str]) -> Any:
    """The number minus that of the largest model of its group."""
    largest = pl.col(name).filter(pl.col("size") == pl.col("size").max()).first().over(group)
    sized = pl.col("size").is_not_null() & pl.col("family").is_not_null()
    return pl.when(sized).then(pl.col(name) - largest).alias(f"{name}_beside_largest")


def _notes(table: Any, metric: str) -> list[str]:
    remarks, loose, models = [], 0, 0
    for (dataset,), part in table.partition_by(["dataset"], as_dict=True, maintain_order=True).items():
        count = part["severity"].n_unique()
        if count < _FEWEST:
            remarks.append(
                (f"{count} severities, the clean one included, are too few to speak of a trend", str(dataset))
            )
        worst = part.filter((pl.col("severity") == part["severity"].max()) & pl.col("supported").is_not_null())
        loose, models = loose + worst.filter(~pl.col("supported")).height, models + worst.height
    notes = gathered(remarks)
    if loose:
        notes.append(
            f"{metric} of {loose} of {models} models at the highest severities does not differ from clean data beyond the intervals"
        )
    return notes


# ----------------------------------------------------------------------------------------------------
# Severities of shift averaged over types of corruption (Minderer et al. 2021, Figures 4 and 5)


@dataclass(frozen=True, eq=False)
class ShiftOverTypes(Analysed):
    """Every model at every severity, mean over the shifted datasets (types of corruption) of one clean dataset.

    `frame()` has one row per clean dataset, severity and model; severity 0 is the clean dataset. Columns: clean, severity, model,
    family, size, types (how many), value and error, each with the bounds of the mean over types (Student's, types being the
    sample; null for fewer than three), value_beside_largest and error_beside_largest (minus those of the largest model of the
    family at the same severity) and relative_size (within the family, the largest is 1).
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
    names = ("value", "error")
    means = table.group_by("clean", "severity", "model").agg(
        pl.col("family", "size").first(),
        pl.col("dataset").n_unique().cast(pl.Int64).alias("types"),
        pl.col(*names).mean(),
        pl.col(*names).std().name.suffix("_sd"),
    )
    means = _with_bounds(means, names, level)
    largest = pl.col("size").max().over("family")
    sized = pl.col("size").is_not_null() & pl.col("family").is_not_null()
    means = means.with_columns(
        *(_beside_largest(name, ["clean", "severity", "family"]) for name in ("value", "error")),
        pl.when(sized).then(pl.col("size") / largest).alias("relative_size"),
    ).sort("clean", "severity", "model")
    return ShiftOverTypes(tuple(dict.fromkeys([*notes, *more])), means, metric, recalibrator)


def _with_bounds(means: Any, names: Sequence[str], level: float) -> Any:
    """Student's intervals of means over types; null for fewer than three types."""
    from scipy.special import stdtrit

    (types,) = numbers(means, "types")
    factor = pl.Series(stdtrit(np.maximum(types - 1, 1), (1 + level) / 2) / np.sqrt(types))
    for name in names:
        reach = pl.when(pl.col("types") >= 3).then(pl.col(f"{name}_sd") * factor)
        low, high = pl.col(name) - reach, pl.col(name) + reach
        means = means.with_columns(low.alias(f"{name}_low"), high.alias(f"{name}_high")).drop(f"{name}_sd")
    return means


# ----------------------------------------------------------------------------------------------------
# Does good calibration on clean data predict good calibration on shifted data? (Minderer et al. 2021, Figures 6 and 11)

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
        bounds = ("", "_low", "_high")
        names = dict(zip(("value", "low", "high"), (f"outside{bound}" for bound in bounds), strict=True))
        outside = at(points, *out).rename({**names, "error": "error_outside"}).drop("error_low", "error_high")
        inside = at(points, *clean).select(
            "model",
            pl.lit(clean[0]).alias("clean"),
            *(pl.col(name).alias(to.replace("outside", "inside")) for name, to in names.items()),
            pl.col("error").alias("error_inside"),
        )
        part = outside.join(inside, on="model", how="inner")
        condition = dict(zip(CONDITION, out, strict=True))
        if part.is_empty():
            remarks.append((f"no model was judged on {clean[0]} as well", where(condition)))
            continue
        remarks += few_models(part.height, where(condition))
        for what, inside_name, outside_name in PAIRS:
            x, y = numbers(part, inside_name, outside_name)
            for method in METHODS:
                c = correlate(x, y, method, level=level)
                row = {**condition, "clean": clean[0], "pair": what, "method": method}
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
    unknown = correlations.filter(
        (pl.col("pair") == PAIRS[0][0]) & (pl.col("method") == "kendall") & (pl.col("low") <= 0) & (pl.col("high") >= 0)
    )
    text = f"{metric} on clean data does not predict that on shifted data (the interval of tau holds 0)"
    return [(text, f"{where(row)} (tau {row['value']:.2f})") for row in unknown.iter_rows(named=True)]
