"""How models behave as data shift away from what they were trained on (Minderer et al. 2021, Figures 4, 5, 6 and 11)."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.study.analyses import base
from truecal.study.analyses.base import CONDITION, METRIC, Analysis, Choice, Reference, numbers
from truecal.study.store import pl

_NAMES = ("value", "error")
_INSIDE_OUTSIDE = {  # columns of models on clean and on shifted data
    "inside": "clean_value",
    "inside_low": "clean_low",
    "inside_high": "clean_high",
    "outside": "value",
    "outside_low": "low",
    "outside_high": "high",
    "error_inside": "clean_error",
    "error_outside": "error",
}
PAIRS = {
    "metric in, metric out": ("inside", "outside"),
    "error in, error out": ("error_inside", "error_outside"),
    "error out, metric out": ("error_outside", "outside"),
}


def shift(
    source: Any, *, metric: str = METRIC, reference: Reference = None, level: float = 0.95, **choice: Unpack[Choice]
) -> Analysis:
    """Follow a metric and the error of every model over severities of shift, as means over the types of shift.

    Types (of corruption) are the shifted datasets that share a clean one; a dataset with severities of its own is a single type.

    Parameters
    ----------
    source : Store or polars.DataFrame
        A store, its results (`store.frame()`), or a polars frame with their columns.
    metric : str, default "rank-series-l2"
        Name of the metric.
    reference : str or mapping, default None
        Clean dataset of the shifted ones, one for all or by dataset; None: the severity 0 of each.
    level : float, default 0.95
        Level of the intervals.
    **choice : str
        Which results: lens, selection, recalibrator, as in :func:`points`.

    Returns
    -------
    Analysis
        Tables:
        "models": one row per clean dataset, severity (0: the clean dataset) and model: dataset (the clean one), severity, model,
        family, size, types (how many), value and error, each with the limits of the mean over types (Student's, types being the
        sample; null for fewer than three), value_beside_largest and error_beside_largest (minus those of the largest model of the
        family at the same severity) and relative_size (within the family, the largest is 1).
        "slopes": per clean dataset and model the least-squares slopes of value and error on severity, with intervals.

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
    >>> shifted = tc.study.shift(pl.DataFrame(rows), metric="nll")
    >>> shifted.frame().filter(pl.col("model") == "a").select("severity", "types", pl.col("value").round(3)).rows()
    [(0.0, 1, 0.4), (1.0, 1, 0.5), (2.0, 1, 0.6)]
    >>> shifted.frame("slopes").select("model", pl.col("slope", "error_slope").round(3)).rows()
    [('a', 0.1, 0.1), ('b', 0.1, 0.1)]
    """
    from scipy.special import stdtrit

    options.level(level)
    points, notes = base.points_with_error(source, metric, **choice)
    clean_of, clean_notes = base.find_clean(points, reference)
    shifted = points.join(clean_of, on=list(CONDITION), how="inner").filter(pl.col("severity") > 0)
    if shifted.is_empty():
        raise InputError(
            "the results hold no severity above 0 with a clean version; name the clean dataset as reference, and see in_and_out "
            "for shifted data without severities"
        )
    clean = points.filter((pl.col("severity") == 0) & pl.col("dataset").is_in(shifted["clean"].unique().to_list()))
    means = pl.concat([clean.with_columns(clean="dataset"), shifted]).group_by("clean", "severity", "model")
    means = means.agg(
        pl.col("family", "size").first(),
        pl.col("dataset").n_unique().cast(pl.Int64).alias("types"),
        pl.col(*_NAMES).mean(),
        pl.col(*_NAMES).std().name.suffix("_sd"),
    )
    (types,) = numbers(means, "types")
    factor = pl.Series(stdtrit(np.maximum(types - 1, 1), (1 + level) / 2) / np.sqrt(types))
    size, is_sized = pl.col("size"), pl.col("size").is_not_null() & pl.col("family").is_not_null()
    for name in _NAMES:
        half_width = pl.when(pl.col("types") >= 3).then(pl.col(f"{name}_sd") * factor)
        of_largest = pl.col(name).filter(size == size.max()).first().over("clean", "severity", "family")
        columns = {
            f"{name}_low": pl.col(name) - half_width,
            f"{name}_high": pl.col(name) + half_width,
            f"{name}_beside_largest": pl.when(is_sized).then(pl.col(name) - of_largest),
        }
        means = means.with_columns(**columns).drop(f"{name}_sd")
    means = means.with_columns(relative_size=pl.when(is_sized).then(size / size.max().over("family")))
    means = means.rename({"clean": "dataset"}).sort("dataset", "severity", "model")
    keys = ["dataset", "model", "family", "size"]
    value, error = (base.fit_groups(means, keys, "severity", y, level=level) for y in _NAMES)
    names = {"slope": "error_slope", "slope_low": "error_low", "slope_high": "error_high"}
    slopes = value.rename({"models": "severities"}).with_columns(error[name].alias(to) for name, to in names.items())
    slopes = slopes.select(*keys, "severities", "slope", "slope_low", "slope_high", *names.values())
    tables = {"models": means, "slopes": slopes.filter(pl.col("severities") > 1)}
    return Analysis(tables, (*notes, *clean_notes), metric)


def in_and_out(
    source: Any, *, metric: str = METRIC, reference: Reference = None, level: float = 0.95, **choice: Unpack[Choice]
) -> Analysis:
    """Correlate calibration on clean and on shifted data over models, by Kendall's tau.

    Parameters
    ----------
    source : Store or polars.DataFrame
        A store, its results (`store.frame()`), or a polars frame with their columns.
    metric : str, default "rank-series-l2"
        Name of the metric.
    reference : str or mapping, default None
        Clean dataset of the shifted ones, one for all or by dataset; None: the severity 0 of each.
    level : float, default 0.95
        Level of the intervals.
    **choice : str
        Which results: lens, selection, recalibrator, as in :func:`points`.

    Returns
    -------
    Analysis
        Tables:
        "models": one row per shifted condition and model: dataset, severity (of the shifted data), clean (dataset), model,
        family, size, inside, outside (the metric on clean and on shifted data), their limits, error_inside, error_outside.
        "correlations": per shifted condition and pair of numbers (the metric in and out; the error in and out; on the shifted
        data, the error with the metric) Kendall's tau: models, tau, tau_low, tau_high.

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
    points, notes = base.points_with_error(source, metric, **choice)
    joined, clean_notes = base.join_clean(points, reference)
    if joined.is_empty():
        raise InputError(
            "the results hold no shifted data with a clean version that a model was judged on: give severities above 0, or name "
            "the clean dataset as reference"
        )
    keys = [*CONDITION, "clean"]
    table = joined.select(*keys, "model", "family", "size", **_INSIDE_OUTSIDE)
    taus = [
        base.fit_groups(table, keys, *xy, correlated=True, level=level).select(
            *keys, "models", "tau", "tau_low", "tau_high", pair=pl.lit(pair)
        )
        for pair, xy in PAIRS.items()
    ]
    correlations = pl.concat(taus).sort(CONDITION, maintain_order=True)
    is_main = pl.col("pair") == next(iter(PAIRS))
    unclear = correlations.filter(is_main & (pl.col("tau_low") <= 0) & (pl.col("tau_high") >= 0))
    text = f"{metric} on clean data does not predict that on shifted data: the interval of tau holds 0"
    notes += [*clean_notes, *base.note_few_models(table), *base.write_notes(unclear, text)]
    return Analysis({"models": table, "correlations": correlations}, tuple(notes), metric)
