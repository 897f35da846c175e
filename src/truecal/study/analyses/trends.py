"""Trends across models: calibration with error, with a covariate, on logarithmic scales, and with the number of bins.

Minderer et al. (2021), https://arxiv.org/abs/2106.07998: Figures 1, 3, 8, 9, 10 and 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.study.analyses import base
from truecal.study.analyses.base import CONDITION, KEY, METRIC, Analysis, Choice
from truecal.study.metrics import parse_metric
from truecal.study.store import pl

_MIN_RESIDUALS = 4  # by choice: models for a line to leave residuals
_UNBIASED = ("debiased-", "exact-", "rank-series-")


def error_against_calibration(
    source: Any, *, metric: str = METRIC, level: float = 0.95, **choice: Unpack[Choice]
) -> Analysis:
    """Relate calibration to accuracy, over all models and within families.

    Parameters
    ----------
    source : Store or polars.DataFrame
        A store, its results (`store.frame()`), or a polars frame with their columns.
    metric : str, default "rank-series-l2"
        Name of the metric.
    level : float, default 0.95
        Level of the intervals.
    **choice : str
        Which results: lens, selection, recalibrator, dataset, as in :func:`points`.

    Returns
    -------
    Analysis
        Tables:
        "models": one row per model and condition: error, value, their limits, relative_size (within the family, the largest is
        1).
        "trends": per condition, and per family in it (family null: all models): the slope of the metric on the error with its
        interval, Kendall's tau with its own, and the number of models.

    Raises
    ------
    InputError
        If a name is not in the results.

    References
    ----------
    Minderer et al. (2021), Figure 1, https://arxiv.org/abs/2106.07998

    Examples
    --------
    >>> import polars as pl
    >>> import truecal as tc
    >>> same = {"seed": 0, "recalibrator": "none", "lens": "", "selection": "all", "low": None, "high": None, "n": 500}
    >>> same |= {"dataset": "digits", "severity": 0.0, "family": None, "size": None}
    >>> numbers = {"error": [0.1, 0.2, 0.3], "nll": [0.4, 0.7, 1.3]}
    >>> rows = [
    ...     {"model": model, "metric": metric, "value": value, **same}
    ...     for metric, values in numbers.items()
    ...     for model, value in zip("abc", values)
    ... ]
    >>> trends = tc.study.error_against_calibration(pl.DataFrame(rows), metric="nll").frame("trends")
    >>> round(trends["slope"].item(), 3), round(trends["tau"].item(), 3)
    (4.5, 1.0)
    """
    options.level(level)
    points, notes = base.points_with_error(source, metric, **choice)
    largest = pl.col("size").max().over([*CONDITION, "family"])
    points = points.with_columns(relative_size=pl.col("size") / largest)
    keys = [*CONDITION, "family"]
    trends = base.fit_groups(base.with_all_families(points), keys, "error", "value", correlated=True, level=level)
    trends = trends.filter(pl.col("family").is_null() | (pl.col("models") > 1)).sort(keys)
    notes += [*base.note_overlaps(points, metric), *base.note_few_models(points)]
    return Analysis({"models": points, "trends": trends}, tuple(notes), metric)


def covariate_trend(source: Any, covariate: str, *, metric: str = METRIC, **choice: Unpack[Choice]) -> Analysis:
    """Relate a metric and the error to a covariate of models or datasets: pretraining data, steps, recipe, size.

    Parameters
    ----------
    source : Store or polars.DataFrame
        A store, its results (`store.frame()`), or a polars frame with their columns.
    covariate : str
        A column of the results, such as size, or a covariate of the study.
    metric : str, default "rank-series-l2"
        Name of the metric.
    **choice : str
        Which results: lens, selection, recalibrator, dataset, as in :func:`points`.

    Returns
    -------
    Analysis
        Tables:
        "models": one row per model and condition: error, value, their limits, and the covariate.
        "trends": per condition and family (null: all) the slope of the metric per unit of the covariate, and Kendall's tau, with
        intervals; no rows for a covariate of texts.

    Raises
    ------
    InputError
        If there is no such covariate, or no model has one.

    References
    ----------
    Minderer et al. (2021), Figures 3 and 10, https://arxiv.org/abs/2106.07998

    Examples
    --------
    >>> import polars as pl
    >>> names, families = ["a", "b", "c", "d"], ["old", "old", "new", "new"]
    >>> values = {"error": [0.3, 0.4, 0.1, 0.2], "nll": [0.6, 0.8, 0.2, 0.4]}
    >>> rows = [(*who, metric, value) for metric, all_ in values.items() for *who, value in zip(names, families, all_)]
    >>> frame = pl.DataFrame(rows, schema=["model", "family", "metric", "value"], orient="row").with_columns(
    ...     size=pl.Series([1.0, 2.0, 3.0, 4.0] * 2), dataset=pl.lit("digits"), severity=0.0, seed=0,
    ...     recalibrator=pl.lit("none"), lens=pl.lit(""), selection=pl.lit("all"), low=None, high=None, n=500)
    >>> trend = covariate_trend(frame, "size", metric="nll")
    >>> round(trend.frame("trends").filter(pl.col("family").is_null())["tau"].item(), 3)  # the larger, the better
    -0.333
    """
    points, notes = base.points_with_error(source, metric, **choice)
    points = base.join_covariate(points, source, covariate)
    lacking = points.filter(pl.col(covariate).is_null())["model"].n_unique()
    if lacking:
        notes.append(f"{lacking} models have no {covariate} and are left out")
    points = points.filter(pl.col(covariate).is_not_null()).sort(*CONDITION, covariate, "model")
    if points.is_empty():
        raise InputError(f"no model has a value of {covariate}")
    trends = pl.DataFrame()
    if points[covariate].dtype.is_numeric():
        keys = [*CONDITION, "family"]
        trends = base.fit_groups(base.with_all_families(points), keys, covariate, "value", correlated=True)
        trends = trends.filter(pl.col("models") > 1).sort(keys)
        notes += base.note_few_models(points)
    tables = {"models": points, "trends": trends}
    return Analysis(tables, tuple(notes), metric)


def residuals(source: Any, *, metrics: str | Sequence[str] = ("nll", "brier"), **choice: Unpack[Choice]) -> Analysis:
    """Compute residuals of scores after a least-squares line on the classification error, under every condition.

    Parameters
    ----------
    source : Store or polars.DataFrame
        A store, its results (`store.frame()`), or a polars frame with their columns.
    metrics : str or sequence of str, default ("nll", "brier")
        Names of scores.
    **choice : str
        Which results: lens, selection, recalibrator, dataset, as in :func:`points`.

    Returns
    -------
    Analysis
        Tables:
        "models": one row per score, condition and model: error, value, expected (by the line), residual, standardized (the
        residual over its standard error, null for fewer than 4 models: beyond 2 or -2 a model stands out).
        "lines": per score and condition the slope with its interval, intercept, share of the variance explained, and models.

    Raises
    ------
    InputError
        If a name is not in the results.

    References
    ----------
    Minderer et al. (2021), Figure 8, https://arxiv.org/abs/2106.07998

    Examples
    --------
    >>> import polars as pl
    >>> import truecal as tc
    >>> same = {"seed": 0, "recalibrator": "none", "lens": "", "selection": "all", "low": None, "high": None, "n": 500}
    >>> same |= {"dataset": "digits", "severity": 0.0, "family": None, "size": None}
    >>> numbers = {"error": [0.1, 0.2, 0.3], "nll": [0.4, 0.7, 1.3]}
    >>> rows = [
    ...     {"model": model, "metric": metric, "value": value, **same}
    ...     for metric, values in numbers.items()
    ...     for model, value in zip("abc", values)
    ... ]
    >>> residuals = tc.study.residuals(pl.DataFrame(rows), metrics="nll")
    >>> residuals.frame()["residual"].round(3).to_list()
    [0.05, -0.1, 0.05]
    """
    points, notes = base.points_with_error(source, metrics, **choice)
    keys = ["metric", "lens", *CONDITION]
    lines = base.fit_groups(points, keys, "error", "value")
    expected = pl.col("intercept") + pl.col("slope") * pl.col("error")
    table = points.join(lines, on=keys, how="left", maintain_order="left").with_columns(expected=expected)
    residual, error = pl.col("value") - pl.col("expected"), pl.col("error")
    table = table.with_columns(residual=residual, centred=error - error.mean().over(keys))
    leverage = 1 / pl.col("models") + pl.col("centred") ** 2 / (pl.col("centred") ** 2).sum().over(keys)
    variance = (pl.col("residual") ** 2).sum().over(keys) / (pl.col("models") - 2) * (1 - leverage)
    usable = (pl.col("models") >= _MIN_RESIDUALS) & (variance > 0)
    table = table.with_columns(standardized=pl.when(usable).then(pl.col("residual") / variance.sqrt()))
    few = lines.filter(pl.col("models") < _MIN_RESIDUALS)
    notes += base.write_notes(few, "{models} models are too few for residuals of {metric}")
    columns = (*KEY, "family", "size", "error", "value", "expected", "residual", "standardized")
    return Analysis({"models": table.select(columns), "lines": lines}, tuple(notes))


def log_fits(source: Any, *, metric: str = METRIC, level: float = 0.95, **choice: Unpack[Choice]) -> Analysis:
    """Fit calibration error as a power of classification error, by family of models, pooled over all conditions.

    Parameters
    ----------
    source : Store or polars.DataFrame
        A store, its results (`store.frame()`), or a polars frame with their columns.
    metric : str, default "rank-series-l2"
        Name of the metric.
    level : float, default 0.95
        Level of the intervals.
    **choice : str
        Which results: lens, selection, recalibrator, as in :func:`points`.

    Returns
    -------
    Analysis
        Tables:
        "models": one row per model and condition: error and value.
        "lines": log10(metric) = intercept + slope log10(error), one row per family: family, slope, slope_low, slope_high,
        intercept, explained (R squared), points, models.

    Raises
    ------
    InputError
        If a name is not in the results, or all estimates or errors are 0.

    Notes
    -----
    Intervals take points as independent; those of one model on several datasets are not, so they are rather narrow.

    References
    ----------
    Minderer et al. (2021), Figure 11, https://arxiv.org/abs/2106.07998

    Examples
    --------
    >>> import polars as pl
    >>> names, families = ["a", "b", "c", "d"], ["old", "old", "new", "new"]
    >>> values = {"error": [0.3, 0.4, 0.1, 0.2], "nll": [0.6, 0.8, 0.2, 0.4]}
    >>> rows = [(*who, metric, value) for metric, all_ in values.items() for *who, value in zip(names, families, all_)]
    >>> frame = pl.DataFrame(rows, schema=["model", "family", "metric", "value"], orient="row").with_columns(
    ...     size=pl.lit(1.0), dataset=pl.lit("digits"), severity=0.0, seed=0, recalibrator=pl.lit("none"), lens=pl.lit(""),
    ...     selection=pl.lit("all"), low=None, high=None, n=500)
    >>> lines = log_fits(frame, metric="nll").frame("lines")
    >>> lines.select("family", pl.col("slope").round(6)).rows()
    [('new', 1.0), ('old', 1.0)]
    """
    options.level(level)
    points, notes = base.points_with_error(source, metric, **choice)
    usable = points.filter((pl.col("value") > 0) & (pl.col("error") > 0))
    if usable.is_empty():
        raise InputError("no point has a logarithm: all estimates or errors are 0")
    if zeros := points.height - usable.height:
        notes.append(
            f"{zeros} of {points.height} points have an estimate or an error of 0 and no logarithm; they are left out"
        )
    logarithms = usable.with_columns(pl.col("error", "value").log10())
    models = usable.group_by("family").agg(pl.col("model").n_unique().alias("models"))
    lines = base.fit_groups(logarithms, ["family"], "error", "value", level=level).rename({"models": "points"})
    lines = lines.join(models, on="family", how="left", nulls_equal=True).sort("family", nulls_last=True)
    return Analysis({"models": usable, "lines": lines}, tuple(notes), metric)


# ----------------------------------------------------------------------------------------------------
# Which trends the number of bins makes (Minderer et al. 2021, Figure 9)


def bin_trend(source: Any, *, level: float = 0.95, **choice: Unpack[Choice]) -> Analysis:
    """Fit the trend of calibration with error for every number of bins in the results, beside that of debiased estimators.

    Parameters
    ----------
    source : Store or polars.DataFrame
        A store, its results (`store.frame()`), or a polars frame with their columns.
    level : float, default 0.95
        Level of the intervals.
    **choice : str
        Which results: lens, selection, recalibrator, dataset, as in :func:`points`.

    Returns
    -------
    Analysis
        Tables:
        "slopes": one row per condition and estimator: dataset, severity, metric, scheme, norm, bins (null for estimators without
        a fixed number), debiased (whether the estimator removes its bias), models, slope, low, high.
        "models": the points behind the slopes: error and value.

    Raises
    ------
    InputError
        If the results hold no binned error, or no condition has two models.

    Notes
    -----
    The bias of a bin's squared gap, (V[A] + V[C] - 2 Cov[C, A]) / n with A whether the answer was right and C the confidence
    (Minderer et al., eq. 5), is smaller for accurate models. Hence a trend of many bins is one of the models only if the debiased
    estimators (debiased, exact by eq. 5, rank-series) show it too.

    References
    ----------
    Minderer et al. (2021), Figure 9, https://arxiv.org/abs/2106.07998

    Examples
    --------
    >>> import polars as pl
    >>> import truecal as tc
    >>> same = {"seed": 0, "recalibrator": "none", "lens": "", "selection": "all", "low": None, "high": None, "n": 500}
    >>> same |= {"dataset": "digits", "severity": 0.0, "family": None, "size": None, "lens": "top-label"}
    >>> numbers = {"error": [0.1, 0.2, 0.3], "ece-mass-15-l1": [0.02, 0.03, 0.05], "debiased-15-l2": [0.01, 0.01, 0.02]}
    >>> rows = [
    ...     {"model": model, "metric": metric, "value": value, **same}
    ...     for metric, values in numbers.items()
    ...     for model, value in zip("abc", values)
    ... ]
    >>> tc.study.bin_trend(pl.DataFrame(rows)).frame().select("metric", pl.col("slope").round(3)).rows()
    [('ece-mass-15-l1', 0.15), ('debiased-15-l2', 0.05)]
    """
    options.level(level)
    results, lens = base.read_results(source), choice.get("lens", "top-label")
    names = results.filter(pl.col("lens") == lens)["metric"].unique().sort().to_list()
    metrics = [parse_metric(name) for name in names if name.startswith(("ece-", *_UNBIASED))]
    metrics = [metric for metric in metrics if metric.norm != np.inf]
    if not any(metric.kind == "ece" for metric in metrics):
        raise InputError(f"the results hold no binned error such as ece-mass-100-l1 with the lens {lens!r}")
    points, notes = base.points_with_error(results, [metric.name for metric in metrics], **choice)
    keys = [*CONDITION, "metric"]
    table = base.fit_groups(points, keys, "error", "value", level=level).filter(pl.col("models") > 1)
    table = table.drop("intercept", "explained").rename({"slope_low": "low", "slope_high": "high"})
    if table.is_empty():
        raise InputError("a trend needs at least two models under one condition")
    kinds = [(m.name, m.scheme, m.norm, m.bins, m.kind != "ece") for m in metrics]
    types = {"metric": pl.String, "scheme": pl.String, "norm": pl.Float64, "bins": pl.Int64, "debiased": pl.Boolean}
    table = table.join(pl.DataFrame(kinds, schema=types, orient="row"), on="metric")
    table = table.sort(*CONDITION, "debiased", "scheme", "norm", "bins", "metric", nulls_last=True)
    notes += [*base.note_few_models(points), *_note_contradictions(table)]
    return Analysis({"slopes": table, "models": points}, tuple(notes))


def _note_contradictions(slopes: Any) -> list[str]:
    """Write notes on slopes that contradict each other; a slope rises if its low is above 0, and falls if its high is below 0.

    `slopes` is the table "slopes" of `bin_trend`. Noted are binned errors of one scheme and norm that rise by one number of
    bins and fall by another, and those whose most bins rise or fall while no debiased estimator does likewise.
    """
    low, high = (pl.col(name).fill_nan(0) for name in ("low", "high"))
    table = slopes.with_columns(sign=(low > 0).cast(pl.Int8) - (high < 0).cast(pl.Int8))
    binned = table.filter(~pl.col("debiased")).group_by(*CONDITION, "scheme", "norm", maintain_order=True)
    trends = binned.agg(
        pl.col("metric", "sign").last(),  # of the most bins
        rising=pl.col("metric").filter(pl.col("sign") > 0).first(),
        falling=pl.col("metric").filter(pl.col("sign") < 0).first(),
    )
    unbiased = table.filter("debiased").group_by(CONDITION, maintain_order=True)
    unbiased = unbiased.agg(pl.col("sign").alias("signs"), unbiased=pl.col("metric").str.join(" nor "))
    trends = trends.join(unbiased, on=CONDITION, how="left", maintain_order="left")
    rises = pl.when(pl.col("sign") > 0).then(pl.lit("rises")).otherwise(pl.lit("falls"))
    trends = trends.with_columns(trend=pl.format("{} {} with error", "metric", rises))
    remarks = {
        "calibration rises with error by {rising} and falls by {falling}: the number of bins decides": (
            pl.col("rising").is_not_null() & pl.col("falling").is_not_null()
        ),
        "{trend}, but not {unbiased}: the trend may be due to the bias of the estimator": (
            (pl.col("sign") != 0) & ~pl.col("signs").list.contains(pl.col("sign"))
        ),
    }
    return [note for text, rows in remarks.items() for note in base.write_notes(trends.filter(rows), text)]
