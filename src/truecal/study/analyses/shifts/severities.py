"""How models behave as data shift further and further from what they were trained on (Minderer et al. 2021, Figures 4 and 5)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from truecal.errors import InputError
from truecal.study.analyses.correlation import correlate, fit_line
from truecal.study.analyses.pareto_sets import METRIC
from truecal.study.analyses.points import CONDITION, Analysed, at, conditions, gathered, numbers, with_error
from truecal.study.store import polars

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
        for (dataset, model), part in self._frame.partition_by(
            ["dataset", "model"], as_dict=True, maintain_order=True
        ).items():
            if part.height < 2:
                continue
            severity, value, error = numbers(part, "severity", "value", "error")
            up, lost = fit_line(severity, value), fit_line(severity, error)
            row = {"dataset": dataset, "model": model, "family": part["family"][0], "size": part["size"][0]}
            row |= {"severities": part.height, "slope": up.slope, "slope_low": up.low, "slope_high": up.high}
            rows.append({**row, "error_slope": lost.slope, "error_low": lost.low, "error_high": lost.high})
        return polars().DataFrame(rows, infer_schema_length=None)

    def by_size(self) -> Any:
        """Per condition and family: Kendall's tau between size and the metric, and between size and error.

        Minderer et al. find it positive on clean data and negative on shifted data: larger models hold out better.
        """
        pl = polars()
        sized = self._frame.filter(pl.col("size").is_not_null() & pl.col("family").is_not_null())
        rows = []
        for (*condition, family), part in sized.partition_by(
            [*CONDITION, "family"], as_dict=True, maintain_order=True
        ).items():
            if part.height < 2:
                continue
            size, value, error = numbers(part, "size", "value", "error")
            tau, other = correlate(size, value), correlate(size, error)
            row = {**dict(zip(CONDITION, condition, strict=True)), "family": family, "models": part.height}
            row |= {"tau": tau.value, "low": tau.low, "high": tau.high, "error_tau": other.value}
            rows.append(row)
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
    pl = polars()
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
        *(_beside_largest(name) for name in ("value", "error")),
    ).drop("_value", "_error", "_low", "_high")
    table = table.sort("dataset", "model", "severity")
    return Shift(tuple(dict.fromkeys([*notes, *_notes(table, metric)])), table, metric)


def _beside_largest(name: str) -> Any:
    """The number minus that of the largest model of the family under the same condition."""
    pl = polars()
    group = [*CONDITION, "family"]
    top = pl.col(name).filter(pl.col("size") == pl.col("size").max()).first().over(group)
    known = pl.col("size").is_not_null() & pl.col("family").is_not_null()
    return pl.when(known).then(pl.col(name) - top).alias(f"{name}_beside_largest")


def _notes(table: Any, metric: str) -> list[str]:
    pl = polars()
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
