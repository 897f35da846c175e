"""Trends across models: calibration with error, with a covariate, on logarithmic scales, and with the number of bins.

Minderer et al. (2021), https://arxiv.org/abs/2106.07998: Figures 1, 3, 8, 9, 10 and 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Unpack

import numpy as np

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.estimators.bins import Binning, Bins
from truecal.resampling import cells
from truecal.study.analyses import base
from truecal.study.analyses.base import CONDITION, KEY, METRIC, Analysis, Choice
from truecal.study.metrics import Metric, parse_metric
from truecal.study.store import pl
from truecal.table import Frame

_MIN_RESIDUALS = 4  # models for a line to leave residuals
_MIN_LOG_POINTS = 3  # points for a line with an interval
_UNBIASED = ("debiased-", "exact-", "rank-series-")
MEAN_SQUARE = "brier-top"


def error_against_calibration(
    source: Any, *, metric: str = METRIC, level: float = 0.95, **choice: Unpack[Choice]
) -> Analysis:
    """Relate calibration to accuracy, over all models and within families.

    Parameters
    ----------
    source : Store or data frame
        A store, its results (`store.frame()`), or any frame with their columns.
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
        "models": one row per model and condition: error, value, their limits, relative_size (within the family, the largest is 1).
        "trends": per condition, and per family in it (family null: all models): the slope of the metric on the error with its
        interval, Pearson's, Spearman's and Kendall's coefficient with theirs, and the number of models.

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
    >>> round(trends["slope"].item(), 3), round(trends["kendall"].item(), 3)
    (4.5, 1.0)
    """
    options.level(level)
    points, notes = base.points_with_error(source, metric, **choice)
    largest = pl.col("size").max().over([*CONDITION, "family"])
    points = points.with_columns(relative_size=pl.col("size") / largest)
    keys = [*CONDITION, "family"]
    trends = base.fit_groups(base.with_all_families(points), keys, "error", "value", methods=base.METHODS, level=level)
    trends = trends.filter(pl.col("family").is_null() | (pl.col("models") > 1)).sort(keys)
    notes += [*base.note_overlaps(points, metric), *base.note_few_models(points)]
    return Analysis({"models": points, "trends": trends}, tuple(notes), metric)


def covariate_trend(source: Any, covariate: str, *, metric: str = METRIC, **choice: Unpack[Choice]) -> Analysis:
    """Relate a metric and the error to a covariate of models or datasets: pretraining data, steps, recipe, size.

    Parameters
    ----------
    source : Store or data frame
        A store, its results (`store.frame()`), or any frame with their columns.
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
        "levels": per condition, family (null: all) and value of the covariate the number of models and means of metric and error.
        "trends": per condition and family the slope of metric and error per unit of the covariate, and Kendall's tau, with
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
    >>> round(trend.frame("trends").filter(pl.col("family").is_null())["kendall"].item(), 3)  # the larger, the better
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
    keys, every = [*CONDITION, "family"], base.with_all_families(points)
    levels = every.group_by(*keys, covariate).agg(pl.len().alias("models"), pl.col("value", "error").mean())
    trends = pl.DataFrame()
    if points[covariate].dtype.is_numeric():
        value, error = (base.fit_groups(every, keys, covariate, y, methods=["kendall"]) for y in ("value", "error"))
        trends = value.with_columns(error["kendall"].alias("error_kendall")).filter(pl.col("models") > 1).sort(keys)
        notes += base.note_few_models(points)
    tables = {"models": points, "levels": levels.sort(*keys, covariate), "trends": trends}
    return Analysis(tables, tuple(notes), metric, choice.get("recalibrator", "none"))


def residuals(source: Any, *, metrics: str | Sequence[str] = ("nll", "brier"), **choice: Unpack[Choice]) -> Analysis:
    """Compute residuals of scores after a least-squares line on the classification error, under every condition.

    Parameters
    ----------
    source : Store or data frame
        A store, its results (`store.frame()`), or any frame with their columns.
    metrics : str or sequence of str, default ("nll", "brier")
        Names of scores.
    **choice : str
        Which results: lens, selection, recalibrator, dataset, as in :func:`points`.

    Returns
    -------
    Analysis
        Tables:
        "models": one row per score, condition and model: error, value, expected (by the line), residual, standardized (the residual
        over its standard error, null for fewer than 4 models: beyond 2 or -2 a model stands out).
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
    few, flat = pl.col("models") < _MIN_RESIDUALS, pl.col("slope").is_nan()
    remarks = {
        "{models} models are too few for residuals of {metric}": few,
        "models of one and the same error do not suffice for residuals of {metric}": ~few & flat,
        "a line of {metric} through {models} models follows each of them; read residuals with care": (
            ~few & ~flat & (pl.col("models") < base.FEW)
        ),
        "error explains more than 99 % of the variance of {metric}, which ranks models almost as error does": (
            ~few & ~flat & (pl.col("explained").fill_nan(0) > 0.99)
        ),
    }
    notes += [note for text, rows in remarks.items() for note in base.write_notes(lines.filter(rows), text)]
    columns = (*KEY, "family", "size", "error", "value", "expected", "residual", "standardized")
    return Analysis({"models": table.select(columns), "lines": lines}, tuple(notes))


def log_fits(
    source: Any, *, metric: str = METRIC, by: str = "family", level: float = 0.95, **choice: Unpack[Choice]
) -> Analysis:
    """Fit calibration error as a power of classification error, by group of models, pooled over all conditions.

    Parameters
    ----------
    source : Store or data frame
        A store, its results (`store.frame()`), or any frame with their columns.
    metric : str, default "rank-series-l2"
        Name of the metric.
    by : str, default "family"
        Column that groups models: family, or any covariate.
    level : float, default 0.95
        Level of the intervals.
    **choice : str
        Which results: lens, selection, recalibrator, as in :func:`points`.

    Returns
    -------
    Analysis
        Tables:
        "models": one row per model and condition: error, value, and the group.
        "lines": log10(metric) = intercept + slope log10(error), one row per group: the group, slope, slope_low, slope_high,
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
    points = base.join_covariate(points, source, by)
    usable = points.filter((pl.col("value") > 0) & (pl.col("error") > 0))
    if usable.is_empty():
        raise InputError("no point has a logarithm: all estimates or errors are 0")
    if zeros := points.height - usable.height:
        notes.append(
            f"{zeros} of {points.height} points have an estimate or an error of 0 and no logarithm; they are left out"
        )
    logarithms = usable.with_columns(pl.col("error", "value").log10())
    models = usable.group_by(by).agg(pl.col("model").n_unique().alias("models"))
    lines = base.fit_groups(logarithms, [by], "error", "value", level=level).rename({"models": "points"})
    lines = lines.join(models, on=by, how="left", nulls_equal=True).sort(by, nulls_last=True)
    few = ", ".join(map(str, lines.filter(pl.col("points") < _MIN_LOG_POINTS)[by]))
    notes += [f"fewer than {_MIN_LOG_POINTS} points leave no interval ({few})"] if few else []
    return Analysis({"models": usable, "lines": lines}, tuple(notes), metric, choice.get("recalibrator", "none"))


# ----------------------------------------------------------------------------------------------------
# How much of a binned calibration error is bias, and which trends it makes (Minderer et al. 2021, eq. 5 and Figure 9)


def bin_bias(profile: tc.profile.Profile, *, bins: int = 100, scheme: Literal["width", "mass"] = "mass") -> Frame:
    """Compute the bias of the plug-in squared gap, bin by bin, from the prefix sums of a profile.

    Parameters
    ----------
    profile : Profile
        Sorted scores and outcomes of one dataset.
    bins : int, default 100
        Number of bins.
    scheme : {"width", "mass"}, default "mass"
        Bins of equal width or equal mass.

    Returns
    -------
    Frame
        One row per bin with at least two rows: count, share (of all rows), outcome_variance (unbiased sample variance V[A] of the
        outcome within the bin), confidence_variance (V[C]), covariance (Cov[C, A]) and bias, by how much the squared gap of the
        bin is too large on average.

    Raises
    ------
    InputError
        If the profile holds several datasets, or the number of bins is no positive whole number.

    Notes
    -----
    bias = (V[A] + V[C] - 2 Cov[C, A]) / count; the squared binned error (norm 2) is too large by the sum of share times bias.
    The bias depends on accuracy twice over: outcomes of an accurate model vary less, and go with its confidence more. Hence models
    of different accuracy differ in their many-bin error even where their calibration is the same.

    References
    ----------
    Minderer et al. (2021), eq. 5, https://arxiv.org/abs/2106.07998

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(10_000)
    >>> bias = tc.study.bin_bias(tc.profile.Profile.from_arrays(c, rng.random(10_000) < c), bins=100)
    >>> round(float((bias["share"] * bias["bias"]).sum()), 4)  # calibrated: 100 bins / 10,000 rows * E[C (1 - C)] = 0.01 / 6
    0.0017
    """
    options.bins(bins)
    cells.refuse_batch(profile)
    binning = Binning(bins, scheme, "keep", "left")
    binning.check()
    cut = binning.cut(profile)
    contents = Bins.of(profile, cut)
    usable = contents.count[0] >= 2
    squares, products = (np.diff(profile.sums(name, cut), axis=1) for name in ("cc", "cy"))
    sums = (contents.outcome_sum, contents.score_sum, squares, products)
    outcome, score, square, product = (part[0][usable] / contents.safe[0][usable] for part in sums)
    count = contents.count[0][usable]
    unbiased = count / (count - 1)
    frame = Frame(
        {
            "count": count,
            "share": contents.share[0][usable],
            "outcome_variance": np.maximum(unbiased * (outcome - outcome**2), 0.0),
            "confidence_variance": np.maximum(unbiased * (square - score**2), 0.0),
            "covariance": unbiased * (product - score * outcome),
        }
    )
    variances = frame["outcome_variance"] + frame["confidence_variance"] - 2 * frame["covariance"]
    return frame.with_columns(bias=variances / count)


def bin_trend(source: Any, *, level: float = 0.95, **choice: Unpack[Choice]) -> Analysis:
    """Fit the trend of calibration with error for every number of bins in the results, beside that of debiased estimators.

    Parameters
    ----------
    source : Store or data frame
        A store, its results (`store.frame()`), or any frame with their columns.
    level : float, default 0.95
        Level of the intervals.
    **choice : str
        Which results: lens, selection, recalibrator, dataset, as in :func:`points`.

    Returns
    -------
    Analysis
        Tables:
        "slopes": one row per condition and estimator: dataset, severity, metric, scheme, norm, bins (null for estimators without a
        fixed number), debiased (whether the estimator removes its bias), models, slope, low, high, and Pearson's coefficient
        with limits; and, for equal-mass bins of norm 2, the slopes of the squared error, of its exact bias, and of the
        difference: slope_squared = slope_bias + slope_rest, rest_low, rest_high.
        "models": the points behind the slopes: error, value, and for equal-mass bins of norm 2 squared and the bias of it.

    Raises
    ------
    InputError
        If the results hold no binned error, or no condition has two models.

    Notes
    -----
    Norm 2 and equal mass have an exact bias (eq. 5), computed from the store's numbers if the metric brier-top is among them. Other
    binned errors are judged by whether the debiased estimators (debiased, exact, rank-series) show the same trend.

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
    points, bias_notes = _join_bias(results, points, metrics, choice)
    table = _fit_trends(points, level)
    if table.is_empty():
        raise InputError("a trend needs at least two models under one condition")
    kinds = [(m.name, m.scheme, m.norm, m.bins, m.kind != "ece") for m in metrics]
    types = {"metric": pl.String, "scheme": pl.String, "norm": pl.Float64, "bins": pl.Int64, "debiased": pl.Boolean}
    table = table.join(pl.DataFrame(kinds, schema=types, orient="row"), on="metric")
    table = table.sort(*CONDITION, "debiased", "scheme", "norm", "bins", "metric", nulls_last=True)
    notes += [*bias_notes, *base.note_few_models(points), *_note_contradictions(table)]
    return Analysis({"slopes": table, "models": points}, tuple(notes))


def _join_bias(results: Any, points: Any, metrics: list[Metric], choice: Choice) -> tuple[Any, list[str]]:
    """Join `squared`, the mean over seeds of the squared error, and its `bias` to points, for equal-mass bins of norm 2; else null.

    For equal-mass bins the bias of the squared error is (mean square - squared error) / (n / bins - 1), where the mean square is
    that of (A - C) over all rows (the Brier score of the confidence); mean square - squared error is the mean within bins of the
    variance of (A - C). Returns the points, and a note where the Brier scores are missing.
    """
    exact = {m.name: float(m.bins or 0) for m in metrics if (m.kind, m.scheme, m.norm) == ("ece", "mass", 2.0)}
    if not exact or MEAN_SQUARE not in results["metric"]:
        text = f"the exact bias of binned errors needs the metric {MEAN_SQUARE} in the study; without it only trends are shown"
        empty = points.with_columns(pl.lit(None, pl.Float64).alias(name) for name in ("squared", "bias"))
        return empty, [text] if exact else []
    squares = base.points(results.with_columns(pl.col("value") ** 2), list(exact), **choice).frame()
    means = base.points(results, MEAN_SQUARE, **choice).frame()
    means = means.select(*CONDITION, "model", pl.col("value").alias("mean_square"))
    rows_per_bin = pl.col("n") / pl.col("metric").replace_strict(exact, return_dtype=pl.Float64)
    bias = (pl.col("mean_square") - pl.col("value")) / (rows_per_bin - 1)
    squares = squares.join(means, on=[*CONDITION, "model"]).select(
        *KEY, squared="value", bias=pl.when(rows_per_bin > 1).then(bias)
    )
    return points.join(squares, on=KEY, how="left", maintain_order="left"), []


def _fit_trends(points: Any, level: float) -> Any:
    """Fit slopes on the error by condition and estimator; where the bias is known also slope_squared, slope_bias, slope_rest."""
    keys = [*CONDITION, "metric"]
    trends = base.fit_groups(points, keys, "error", "value", methods=["pearson"], level=level)
    exact = points.filter(pl.col("bias").is_not_null().all().over(keys))
    exact = exact.with_columns(rest=pl.col("squared") - pl.col("bias"))
    squared, bias, rest = (base.fit_groups(exact, keys, "error", y, level=level) for y in ("squared", "bias", "rest"))
    names = {"slope": "slope_rest", "slope_low": "rest_low", "slope_high": "rest_high"}
    slopes = rest.select(*keys, *names).rename(names)
    slopes = slopes.with_columns(slope_squared=squared["slope"], slope_bias=bias["slope"])
    trends = trends.filter(pl.col("models") > 1).drop("intercept", "explained")
    trends = trends.rename({"slope_low": "low", "slope_high": "high"})
    return trends.join(slopes, on=keys, how="left", maintain_order="left")


def _note_contradictions(slopes: Any) -> list[str]:
    """Write notes on trends with error that contradict each other, as their intervals exclude 0 on one side.

    Compared are numbers of bins; the trend of the most bins with that of its square without the exact bias; and, where that is
    unknown, with the trends of the debiased estimators.
    """

    def sign(low: str, high: str) -> Any:
        """Return 1 where an interval is above 0, -1 where it is below, else 0."""
        return (pl.col(low).fill_nan(0) > 0).cast(pl.Int8) - (pl.col(high).fill_nan(0) < 0).cast(pl.Int8)

    table = slopes.with_columns(sign=sign("low", "high"), sign_rest=sign("rest_low", "rest_high"))
    binned = table.filter(~pl.col("debiased")).group_by(*CONDITION, "scheme", "norm", maintain_order=True)
    trends = binned.agg(
        pl.col("metric", "sign", "sign_rest").last(),  # of the most bins
        rising=pl.col("metric").filter(pl.col("sign") > 0).first(),
        falling=pl.col("metric").filter(pl.col("sign") < 0).first(),
    )
    unbiased = table.filter("debiased").group_by(CONDITION, maintain_order=True)
    unbiased = unbiased.agg(pl.col("sign").alias("signs"), unbiased=pl.col("metric").str.join(" nor "))
    trends = trends.join(unbiased, on=CONDITION, how="left", maintain_order="left")
    rises = pl.when(pl.col("sign") > 0).then(pl.lit("rises")).otherwise(pl.lit("falls"))
    trends = trends.with_columns(trend=pl.format("{} {} with error", "metric", rises))
    contradict = pl.col("rising").is_not_null() & pl.col("falling").is_not_null()
    is_trend, no_rest = pl.col("sign") != 0, pl.col("sign_rest").is_null()
    remarks = {
        "calibration rises with error by {rising} and falls by {falling}: the number of bins decides": contradict,
        "{trend}, but its square without the exact bias does not: the trend is that of the bias": (
            is_trend & ~no_rest & (pl.col("sign_rest") != pl.col("sign"))
        ),
        "{trend}, but not {unbiased}: the trend may be that of its bias": (
            is_trend & no_rest & ~pl.col("signs").list.contains(pl.col("sign"))
        ),
    }
    return [note for text, rows in remarks.items() for note in base.write_notes(trends.filter(rows), text)]
