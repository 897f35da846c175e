"""How models behave as data shift away from what they were trained on (Minderer et al. 2021, Figures 4, 5, 6 and 11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.study.analyses import base
from truecal.study.analyses.base import CONDITION, METRIC, Analysis, correlate, numbers, where
from truecal.study.store import pl

_MIN_SEVERITIES = 3  # for a slope
PAIRS = {
    "metric in, metric out": ("inside", "outside"),
    "error in, error out": ("error_inside", "error_outside"),
    "error out, metric out": ("error_outside", "outside"),
}


@dataclass(frozen=True, eq=False)
class Shift(Analysis):
    """Hold every model at every severity, beside its clean version and beside the largest model of its family.

    `frame()` has one row per model and condition; a shifted dataset starts with its clean one at severity 0. Columns: metric,
    lens, dataset, severity, model, family, size, error, value and their bounds; value_increase and error_increase over the clean
    data; supported (the interval lies wholly above or below that of the clean data); value_beside_largest and error_beside_largest
    (minus those of the largest model of the family, Figure 5).

    Attributes
    ----------
    notes : tuple of str
        What to know before reading the table, such as values that are missing or numbers of rows that differ.
    metric : str
        Name of the metric.

    See Also
    --------
    shift : Return this result.
    """

    metric: str

    def slopes(self) -> Any:
        """Fit the rise of the metric and of the error per step of severity.

        Returns
        -------
        polars.DataFrame
            Per dataset and model the least-squares slopes with intervals.
        """
        keys = ["dataset", "model", "family", "size"]
        value, error = (base.fit_groups(self._frame, keys, "severity", y) for y in ("value", "error"))
        names = {"slope": "error_slope", "slope_low": "error_low", "slope_high": "error_high"}
        slopes = value.rename({"models": "severities"}).with_columns(
            error[name].alias(to) for name, to in names.items()
        )
        return slopes.filter(pl.col("severities") > 1).drop("intercept", "explained")

    def by_size(self) -> Any:
        """Correlate size with the metric, and with the error.

        Returns
        -------
        polars.DataFrame
            Per condition and family Kendall's tau. Minderer et al. find it positive on clean data and negative on shifted data:
            larger models are better calibrated under shift.
        """
        keys, sized = ["family", *CONDITION], self._frame.filter(_is_sized())
        tau: dict[str, base.Method] = {"tau": "kendall"}
        value, error = (base.fit_groups(sized, keys, "size", y, methods=tau) for y in ("value", "error"))
        columns = (*keys, "models", "tau", pl.col("tau_low").alias("low"), pl.col("tau_high").alias("high"))
        return value.select(*columns, error["tau"].alias("error_tau")).filter(pl.col("models") > 1)


def shift(
    frame: Any,
    *,
    metric: str = METRIC,
    lens: str = "top-label",
    selection: str = "all",
    recalibrator: str = "none",
    reference: str | Mapping[str, str] | None = None,
) -> Shift:
    """Follow a metric and the error of every model over the severities of each shifted dataset.

    Parameters
    ----------
    frame : data frame
        Results of a store (`store.frame()`), or any frame with its columns.
    metric : str, default "rank-series-l2"
        Name of the metric.
    lens : str, default "top-label"
        What is judged.
    selection : str, default "all"
        Which rows are judged.
    recalibrator : str, default "none"
        Recalibration method.
    reference : str or mapping, default None
        Clean dataset of the shifted ones, one for all or by dataset; a dataset with results at
        severity 0 is compared with those.

    Returns
    -------
    Shift
        Every model at every severity, and notes.

    Raises
    ------
    InputError
        If the results hold no severity above 0, or no shifted dataset has a clean version.

    References
    ----------
    Minderer et al. (2021), Figures 4 and 5, https://arxiv.org/abs/2106.07998

    Examples
    --------
    >>> import polars as pl
    >>> import truecal as tc
    >>> same = {"seed": 0, "recalibrator": "none", "lens": "", "selection": "all", "low": None, "high": None, "n": 500}
    >>> same |= {"dataset": "digits", "family": None, "size": None}
    >>> rows = [
    ...     {"model": model, "metric": metric, "severity": severity, "value": value + 0.1 * severity, **same}
    ...     for metric, values in {"error": [0.1, 0.2], "nll": [0.4, 0.7]}.items()
    ...     for model, value in zip("ab", values)
    ...     for severity in (0.0, 1.0, 2.0)
    ... ]
    >>> slopes = tc.study.shift(pl.DataFrame(rows), metric="nll").slopes()
    >>> slopes.select("model", pl.col("slope", "error_slope").round(3)).rows()
    [('a', 0.1, 0.1), ('b', 0.1, 0.1)]
    """
    points, notes = base.with_error(frame, [metric], lens=lens, selection=selection, recalibrator=recalibrator)
    present = base.conditions(points)
    shifted = sorted({dataset for dataset, severity in present if severity > 0})
    if not shifted:
        raise InputError("the results hold no severity above 0; for shifted data without severities see in_and_out")
    clean_of = dict(reference) if isinstance(reference, Mapping) else dict.fromkeys(shifted, reference)
    clean_of |= {dataset: dataset for dataset, severity in present if severity == 0}
    parts = []
    for dataset in shifted:
        clean = clean_of.get(dataset)
        if clean is None or (clean, 0.0) not in present:
            notes.append(f"{dataset} has no results at severity 0 to compare with; name its clean dataset as reference")
            continue
        start = base.of_condition(points, clean, 0.0).with_columns(pl.lit(dataset).alias("dataset"))
        rest = points.filter((pl.col("dataset") == dataset) & (pl.col("severity") > 0))
        clean_values = start.select("model", pl.col("value", "error", "low", "high").name.prefix("clean_"))
        missing = sorted(set(rest["model"]) - set(start["model"]))
        if missing:
            notes.append(f"not judged on the clean version of {dataset}, so left out: {', '.join(missing)}")
        parts.append(pl.concat([start, rest]).join(clean_values, on="model", how="inner"))
    if not parts:
        raise InputError(f"no shifted dataset has a clean version: {'; '.join(notes)}")
    apart = (pl.col("low") > pl.col("clean_high")) | (pl.col("high") < pl.col("clean_low"))
    table = pl.concat(parts).with_columns(
        *((pl.col(name) - pl.col(f"clean_{name}")).alias(f"{name}_increase") for name in ("value", "error")),
        pl.when(pl.col("severity") > 0).then(apart).alias("supported"),
        *(_beside_largest(name, [*CONDITION, "family"]) for name in ("value", "error")),
    )
    table = table.select(pl.exclude("^clean_.*$")).sort("dataset", "model", "severity")
    return Shift(tuple(dict.fromkeys([*notes, *_describe_shift(table, metric)])), table, metric)


def _is_sized() -> Any:
    """Return the expression for rows with a size and a family."""
    return pl.col("size").is_not_null() & pl.col("family").is_not_null()


def _beside_largest(name: str, group: list[str]) -> Any:
    """Return the column `<name>_beside_largest`: its value minus that of the largest model of the group."""
    largest = pl.col(name).filter(pl.col("size") == pl.col("size").max()).first().over(group)
    return pl.when(_is_sized()).then(pl.col(name) - largest).alias(f"{name}_beside_largest")


def _describe_shift(table: Any, metric: str) -> list[str]:
    """Write notes on too few severities, and on models whose change is within the intervals."""
    remarks, worst = [], []
    for (dataset,), part in table.partition_by(["dataset"], as_dict=True, maintain_order=True).items():
        count = part["severity"].n_unique()
        if count < _MIN_SEVERITIES:
            text = f"{count} severities, the clean one included, are too few for a trend"
            remarks.append((text, str(dataset)))
        worst += part.filter(pl.col("severity") == part["severity"].max())["supported"].drop_nulls().to_list()
    notes = base.gather(remarks)
    if not all(worst):
        notes.append(
            f"{metric} of {worst.count(False)} of {len(worst)} models at the highest severities does not differ from clean "
            "data beyond the intervals"
        )
    return notes


@dataclass(frozen=True, eq=False)
class ShiftOverTypes(Analysis):
    """Hold every model at every severity, mean over the shifted datasets (types of corruption) of one clean dataset.

    `frame()` has one row per clean dataset, severity and model; severity 0 is the clean dataset. Columns: clean, severity, model,
    family, size, types (how many), value and error, each with the bounds of the mean over types (Student's, types being the
    sample; null for fewer than three), value_beside_largest and error_beside_largest (minus those of the largest model of the
    family at the same severity) and relative_size (within the family, the largest is 1).

    Attributes
    ----------
    notes : tuple of str
        What to know before reading the table, such as values that are missing or numbers of rows that differ.
    metric : str
        Name of the metric.
    recalibrator : str
        Recalibration method of the predictions.

    See Also
    --------
    shift_over_types : Return this result.
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
    """Average severities of shift over the shifted datasets (types of corruption) that share a clean one.

    Parameters
    ----------
    frame : data frame
        Results of a store (`store.frame()`), or any frame with its columns.
    metric : str, default "rank-series-l2"
        Name of the metric.
    lens : str, default "top-label"
        What is judged.
    selection : str, default "all"
        Which rows are judged.
    recalibrator : str, default "none"
        Recalibration method.
    reference : str or mapping, default None
        Clean dataset of the shifted ones, one for all or by dataset; None: the severity 0 of each.
    level : float, default 0.95
        Level of the intervals.

    Returns
    -------
    ShiftOverTypes
        Means with bounds, and notes.

    Raises
    ------
    InputError
        If the results hold no severity above 0 with a clean version.

    References
    ----------
    Minderer et al. (2021), Figures 4 and 5, https://arxiv.org/abs/2106.07998

    Examples
    --------
    >>> import polars as pl
    >>> import truecal as tc
    >>> same = {"seed": 0, "recalibrator": "none", "lens": "", "selection": "all", "low": None, "high": None, "n": 500}
    >>> same |= {"dataset": "digits", "family": None, "size": None}
    >>> rows = [
    ...     {"model": model, "metric": metric, "severity": severity, "value": value + 0.1 * severity, **same}
    ...     for metric, values in {"error": [0.1, 0.2], "nll": [0.4, 0.7]}.items()
    ...     for model, value in zip("ab", values)
    ...     for severity in (0.0, 1.0, 2.0)
    ... ]
    >>> means = tc.study.shift_over_types(pl.DataFrame(rows), metric="nll").frame()
    >>> means.filter(pl.col("model") == "a").select("severity", "types", pl.col("value").round(3)).rows()
    [(0.0, 1, 0.4), (1.0, 1, 0.5), (2.0, 1, 0.6)]
    """
    from scipy.special import stdtrit

    options.level(level)
    points, notes = base.with_error(frame, [metric], lens=lens, selection=selection, recalibrator=recalibrator)
    pairs, more = base.references(base.conditions(points), reference)
    shifted = {out: clean for out, clean in pairs.items() if out[1] > 0}
    if not shifted:
        raise InputError(
            "the results hold no severity above 0 with a clean version; name the clean dataset as reference"
        )
    parts = []
    for clean in dict.fromkeys(shifted.values()):
        members = [clean, *(out for out in shifted if shifted[out] == clean)]
        table = pl.concat([base.of_condition(points, *member) for member in members])
        parts.append(table.with_columns(clean=pl.lit(clean[0])))
    names = ("value", "error")
    means = (
        pl.concat(parts)
        .group_by("clean", "severity", "model")
        .agg(
            pl.col("family", "size").first(),
            pl.col("dataset").n_unique().cast(pl.Int64).alias("types"),
            pl.col(*names).mean(),
            pl.col(*names).std().name.suffix("_sd"),
        )
    )
    (types,) = numbers(means, "types")
    factor = pl.Series(stdtrit(np.maximum(types - 1, 1), (1 + level) / 2) / np.sqrt(types))
    for name in names:
        half_width = pl.when(pl.col("types") >= 3).then(pl.col(f"{name}_sd") * factor)
        low, high = pl.col(name) - half_width, pl.col(name) + half_width
        means = means.with_columns(low.alias(f"{name}_low"), high.alias(f"{name}_high")).drop(f"{name}_sd")
    largest = pl.col("size").max().over("family")
    means = means.with_columns(
        *(_beside_largest(name, ["clean", "severity", "family"]) for name in names),
        pl.when(_is_sized()).then(pl.col("size") / largest).alias("relative_size"),
    ).sort("clean", "severity", "model")
    return ShiftOverTypes(tuple(dict.fromkeys([*notes, *more])), means, metric, recalibrator)


@dataclass(frozen=True, eq=False)
class InAndOut(Analysis):
    """Hold every model on clean (inside) and on shifted data (outside).

    `frame()` has one row per shifted condition and model. Columns: dataset, severity (of the shifted data), clean (dataset),
    model, family, size, inside, outside (the metric), their bounds, error_inside, error_outside.

    Attributes
    ----------
    notes : tuple of str
        What to know before reading the table, such as values that are missing or numbers of rows that differ.
    metric : str
        Name of the metric.

    See Also
    --------
    in_and_out : Return this result.
    """

    metric: str
    _correlations: Any

    def correlations(self) -> Any:
        """Return the correlations over models.

        Returns
        -------
        polars.DataFrame
            Per shifted condition, pair of numbers (the metric in and out; the error in and out; on the shifted data, the error
            with the metric) and coefficient: value, low, high, models.
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
    """Correlate calibration on clean and on shifted data over models, by Pearson, Spearman and Kendall.

    Parameters
    ----------
    frame : data frame
        Results of a store (`store.frame()`), or any frame with its columns.
    metric : str, default "rank-series-l2"
        Name of the metric.
    lens : str, default "top-label"
        What is judged.
    selection : str, default "all"
        Which rows are judged.
    recalibrator : str, default "none"
        Recalibration method.
    reference : str or mapping, default None
        Clean dataset of the shifted ones, one for all or by dataset; None: the severity 0 of each.
    level : float, default 0.95
        Level of the intervals.

    Returns
    -------
    InAndOut
        Every model inside and outside, correlations and notes.

    Raises
    ------
    InputError
        If the results hold no shifted data with a clean version, or no model was judged on both.

    References
    ----------
    Minderer et al. (2021), Figures 6 and 11, https://arxiv.org/abs/2106.07998

    Examples
    --------
    >>> import polars as pl
    >>> import truecal as tc
    >>> same = {"seed": 0, "recalibrator": "none", "lens": "", "selection": "all", "low": None, "high": None, "n": 500}
    >>> same |= {"dataset": "digits", "family": None, "size": None}
    >>> rows = [
    ...     {"model": model, "metric": metric, "severity": severity, "value": value + 0.1 * severity, **same}
    ...     for metric, values in {"error": [0.1, 0.2], "nll": [0.4, 0.7]}.items()
    ...     for model, value in zip("ab", values)
    ...     for severity in (0.0, 1.0, 2.0)
    ... ]
    >>> both = tc.study.in_and_out(pl.DataFrame(rows), metric="nll").frame()
    >>> both.select("model", "severity", "inside", pl.col("outside").round(3)).rows()
    [('a', 1.0, 0.4, 0.5), ('b', 1.0, 0.7, 0.8), ('a', 2.0, 0.4, 0.6), ('b', 2.0, 0.7, 0.9)]
    """
    options.level(level)
    points, notes = base.with_error(frame, [metric], lens=lens, selection=selection, recalibrator=recalibrator)
    pairs, more = base.references(base.conditions(points), reference)
    if not pairs:
        raise InputError(
            "the results hold no shifted data with a clean version: give severities above 0, or name the clean dataset as reference"
        )
    remarks: list[tuple[str, str]] = []
    rows: list[dict[str, Any]] = []
    parts = []
    names = {"value": "{}", "low": "{}_low", "high": "{}_high", "error": "error_{}"}
    for out, clean in pairs.items():
        inside, outside = (
            base.of_condition(points, *condition).rename({name: to.format(side) for name, to in names.items()})
            for condition, side in ((clean, "inside"), (out, "outside"))
        )
        inside = inside.select(
            "model", pl.lit(clean[0]).alias("clean"), *(to.format("inside") for to in names.values())
        )
        part = outside.join(inside, on="model", how="inner")
        condition = dict(zip(CONDITION, out, strict=True))
        if part.is_empty():
            remarks.append((f"no model was judged on {clean[0]} as well", where(condition)))
            continue
        for pair, columns in PAIRS.items():
            x, y = numbers(part, *columns)
            for method in base.METHODS:
                keys = {**condition, "clean": clean[0], "pair": pair, "method": method}
                coefficient = correlate(x, y, method, level=level)
                rows.append({**keys, **coefficient._asdict(), "models": part.height})
        parts.append(part)
    if not parts:
        raise InputError("no model was judged on both clean and shifted data")
    bounds = [f"{side}{bound}" for side in ("inside", "outside") for bound in ("", "_low", "_high")]
    table = pl.concat(parts).select(
        *CONDITION, "clean", "model", "family", "size", *bounds, "error_inside", "error_outside"
    )
    text = f"{metric} on clean data does not predict that on shifted data (the interval of tau holds 0)"
    between = [row for row in rows if (row["pair"], row["method"]) == (next(iter(PAIRS)), "kendall")]
    remarks += [(text, f"{where(r)} (tau {r['value']:.2f})") for r in between if r["low"] <= 0 <= r["high"]]
    notes = list(dict.fromkeys([*notes, *more, *base.few_models(table), *base.gather(remarks)]))
    return InAndOut(tuple(notes), table, metric, base.make_frame(rows))
