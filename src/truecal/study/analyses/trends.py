"""Trends across models: calibration with error, with a covariate, on logarithmic scales, and with the number of bins.

Minderer et al. (2021), https://arxiv.org/abs/2106.07998: Figures 1, 3, 8, 9, 10 and 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.estimators.bins import Binning, Bins
from truecal.resampling import cells
from truecal.special import positive
from truecal.study.analyses import base
from truecal.study.analyses.base import CONDITION, METRIC, Analysis, numbers, where
from truecal.study.metrics import Metric, parse_metric
from truecal.study.store import RESULTS, pl
from truecal.table import Frame
from truecal.types import Float64s

_MIN_RESIDUALS = 4  # models for a line to leave residuals
_MIN_LOG_POINTS = 3  # points for a line with an interval
# Columns of a store that models can be compared by, beside the covariates of the study.
_COLUMNS = ("model", "family", "size", "dataset", "severity", "seed", "recalibrator", "fit_on", "fit_rows")


@dataclass(frozen=True, eq=False)
class ErrorAgainstCalibration(Analysis):
    """Hold the points of models, and the trends through them.

    `frame()` has one row per model and condition. Columns: metric, lens, dataset, severity, model, family, size, relative_size
    (within the family, the largest is 1), error, value, and the bounds of both.

    Attributes
    ----------
    notes : tuple of str
        What to know before reading the table, such as values that are missing or numbers of rows that differ.
    metric : str
        Name of the metric.

    See Also
    --------
    error_against_calibration : Return this result.
    """

    metric: str
    _trends: Any

    def trends(self) -> Any:
        """Return the trend of the metric with the error.

        Returns
        -------
        polars.DataFrame
            Per condition, and per family in it (family null: all models): the slope with its interval, Pearson's, Spearman's and
            Kendall's coefficient with theirs, and the number of models.
        """
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
    """Relate calibration to accuracy, over all models and within families.

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
    dataset : str, default None
        One dataset; None: all.
    level : float, default 0.95
        Level of the intervals.

    Returns
    -------
    ErrorAgainstCalibration
        Points, trends and notes.

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
    >>> trends = tc.study.error_against_calibration(pl.DataFrame(rows), metric="nll").trends()
    >>> round(trends["slope"].item(), 3), round(trends["kendall"].item(), 3)
    (4.5, 1.0)
    """
    options.level(level)
    choice = {"lens": lens, "selection": selection, "recalibrator": recalibrator, "dataset": dataset}
    points, notes = base.with_error(frame, [metric], **choice)
    largest = pl.col("size").max().over([*CONDITION, "family"])
    points = points.with_columns((pl.col("size") / largest).alias("relative_size"))
    coefficients: dict[str, base.Method] = {method: method for method in base.METHODS}
    trends = base.fit_groups(
        base.with_all_families(points), [*CONDITION, "family"], "error", "value", methods=coefficients, level=level
    )
    trends = trends.filter(pl.col("family").is_null() | (pl.col("models") > 1)).sort(*CONDITION, "family")
    above = pl.col("high").shift().over(CONDITION)  # of the neighbour in the ranking
    overlaps = (
        points.sort(*CONDITION, "value").select((pl.col("low") <= above).alias("overlap"))["overlap"].drop_nulls()
    )
    if overlaps.is_empty():
        notes.append(f"there are no intervals of {metric}: which of its ranks are chance is unknown")
    elif overlaps.any():
        notes.append(
            f"{overlaps.sum()} of {len(overlaps)} neighbours in rankings by {metric} have overlapping intervals: "
            "their order is not supported by the data"
        )
    return ErrorAgainstCalibration((*notes, *base.few_models(points)), points, metric, trends)


@dataclass(frozen=True, eq=False)
class CovariateTrend(Analysis):
    """Hold every model with its covariate, and how metric and error go with it.

    `frame()` has one row per model and condition. Columns: metric, lens, dataset, severity, model, family, size, error, value,
    bounds, and the covariate.

    Attributes
    ----------
    notes : tuple of str
        What to know before reading the table, such as values that are missing or numbers of rows that differ.
    metric : str
        Name of the metric.
    covariate : str
        Name of the covariate.
    recalibrator : str
        Recalibration method of the predictions.

    See Also
    --------
    covariate_trend : Return this result.
    """

    metric: str
    covariate: str
    recalibrator: str
    _levels: Any
    _trends: Any

    def levels(self) -> Any:
        """Return means by value of the covariate.

        Returns
        -------
        polars.DataFrame
            Per condition, family (null: all) and value of the covariate the number of models and the means of metric and error.
        """
        return self._levels

    def trends(self) -> Any:
        """Return the trend with a covariate of numbers; no rows for a covariate of texts.

        Returns
        -------
        polars.DataFrame
            Per condition and family the slope per unit, and Kendall's tau, with intervals.
        """
        return self._trends


def covariate_trend(
    frame: Any,
    covariate: str,
    *,
    metric: str = METRIC,
    lens: str = "top-label",
    selection: str = "all",
    recalibrator: str = "none",
    dataset: str | None = None,
) -> CovariateTrend:
    """Relate a metric and the error to a covariate of models or datasets: pretraining data, steps, recipe, size.

    Parameters
    ----------
    frame : data frame
        Results of a store (`store.frame()`), or any frame with its columns.
    covariate : str
        A column of the results, such as size, or a covariate of the study.
    metric : str, default "rank-series-l2"
        Name of the metric.
    lens : str, default "top-label"
        What is judged.
    selection : str, default "all"
        Which rows are judged.
    recalibrator : str, default "none"
        Recalibration method.
    dataset : str, default None
        One dataset; None: all.

    Returns
    -------
    CovariateTrend
        Points, means, trends and notes.

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
    >>> round(trend.trends().filter(pl.col("family").is_null())["tau"].item(), 3)  # the larger, the better
    -0.333
    """
    base.require_name(covariate, "covariate")
    names = [name for name in base.read_results(frame).columns if name in _COLUMNS or name not in RESULTS]
    if covariate not in names:
        raise InputError(f"there is no covariate {covariate!r} in the results; there are {', '.join(names)}")
    choice = {"lens": lens, "selection": selection, "recalibrator": recalibrator, "dataset": dataset}
    points, notes = base.with_error(frame, [metric], **choice)
    points = base.join_covariate(points, frame, covariate)
    lacking = points.filter(pl.col(covariate).is_null())["model"].n_unique()
    if lacking:
        notes.append(f"{lacking} models have no {covariate} and are left out")
    points = points.filter(pl.col(covariate).is_not_null()).sort(*CONDITION, covariate, "model")
    if points.is_empty():
        raise InputError(f"no model has a value of {covariate}")
    every = base.with_all_families(points)
    levels = every.group_by(*CONDITION, "family", covariate).agg(
        pl.len().alias("models"), pl.col("value").mean(), pl.col("error").mean()
    )
    levels = levels.sort(*CONDITION, "family", covariate)
    trends = pl.DataFrame()
    if points[covariate].dtype.is_numeric():
        keys = [*CONDITION, "family"]
        tau: dict[str, base.Method] = {"tau": "kendall"}
        value, error = (base.fit_groups(every, keys, covariate, y, methods=tau) for y in ("value", "error"))
        trends = value.with_columns(error["tau"].alias("error_tau")).filter(pl.col("models") > 1).sort(keys)
        notes += base.few_models(points)
    return CovariateTrend(tuple(notes), points, metric, covariate, recalibrator, levels, trends)


@dataclass(frozen=True, eq=False)
class Residuals(Analysis):
    """Hold the residuals of every score after a line on the classification error.

    `frame()` has one row per score, condition and model. Columns: metric, lens, dataset, severity, model, family, size, error,
    value, expected (by the line), residual, standardized (the residual over its standard error: beyond 2 or -2 a model stands
    out).

    Attributes
    ----------
    notes : tuple of str
        What to know before reading the table, such as values that are missing or numbers of rows that differ.

    See Also
    --------
    residuals : Return this result.
    """

    _lines: Any

    def lines(self) -> Any:
        """Return the lines.

        Returns
        -------
        polars.DataFrame
            Per score and condition: slope with its interval, intercept, share of the variance explained, models.
        """
        return self._lines


def residuals(
    frame: Any,
    *,
    metrics: str | Sequence[str] = ("nll", "brier"),
    lens: str = "top-label",
    selection: str = "all",
    recalibrator: str = "none",
    dataset: str | None = None,
) -> Residuals:
    """Compute residuals of scores after a least-squares line on the classification error, under every condition.

    Parameters
    ----------
    frame : data frame
        Results of a store (`store.frame()`), or any frame with its columns.
    metrics : str or sequence of str, default ("nll", "brier")
        Names of scores.
    lens : str, default "top-label"
        What is judged.
    selection : str, default "all"
        Which rows are judged.
    recalibrator : str, default "none"
        Recalibration method.
    dataset : str, default None
        One dataset; None: all.

    Returns
    -------
    Residuals
        Residuals, lines and notes.

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
    names = (metrics,) if isinstance(metrics, str) else metrics
    choice = {"lens": lens, "selection": selection, "recalibrator": recalibrator, "dataset": dataset}
    points, notes = base.with_error(frame, names, **choice)
    keys = ["metric", "lens", *CONDITION]
    lines = base.fit_groups(points, keys, "error", "value")
    expected = pl.col("intercept") + pl.col("slope") * pl.col("error")
    table = points.join(lines, on=keys, how="left", maintain_order="left").with_columns(expected.alias("expected"))
    table = table.with_columns((pl.col("value") - pl.col("expected")).alias("residual"))
    parts = [
        part.with_columns(pl.Series("standardized", _standardize(*numbers(part, "error", "residual"))))
        for part in table.partition_by(keys, maintain_order=True)
    ]
    remarks = []
    for line in lines.iter_rows(named=True):
        words, n = f"{line['metric']} {where(line)}", line["models"]
        if n < _MIN_RESIDUALS or np.isnan(line["slope"]):
            why = f"{n} models are too few" if n < _MIN_RESIDUALS else "models of one and the same error do not suffice"
            remarks.append((f"{why} for residuals", words))
        elif n < base.FEW:
            remarks.append((f"a line through {n} models follows each of them; read residuals with care", words))
        if line["explained"] > 0.99 and n >= _MIN_RESIDUALS:
            text = "error explains more than 99 % of the variance; the score ranks models almost as error does"
            remarks.append((text, words))
    columns = (*keys, "model", "family", "size", "error", "value", "expected", "residual", "standardized")
    return Residuals((*notes, *base.gather(remarks)), pl.concat(parts).select(columns), lines)


def _standardize(error: Float64s, residual: Float64s) -> Float64s:
    """Residuals over s * sqrt(1 - leverage); NaN where the leverage is 1."""
    n = len(error)
    centred = error - error.mean()
    square = float(centred @ centred)
    if n < _MIN_RESIDUALS or square == 0:
        return np.full(n, np.nan)
    leverage = 1 / n + centred**2 / square
    scale = np.sqrt(np.maximum(1 - leverage, 0.0) * float(residual @ residual) / (n - 2))
    return np.where(scale > 0, residual / positive(scale), np.nan)


@dataclass(frozen=True, eq=False)
class LogFits(Analysis):
    """Hold points of models on datasets, and lines log10(metric) = intercept + slope log10(error) through those of a group.

    `frame()` has one row per model and condition. Columns: metric, lens, dataset, severity, model, family, size, error, value, and
    the group.

    Attributes
    ----------
    notes : tuple of str
        What to know before reading the table, such as values that are missing or numbers of rows that differ.
    metric : str
        Name of the metric.
    recalibrator : str
        Recalibration method of the predictions.
    by : str
        Column that groups the models.

    See Also
    --------
    log_fits : Return this result.
    """

    metric: str
    recalibrator: str
    by: str
    _lines: Any

    def lines(self) -> Any:
        """Return one line per group.

        Returns
        -------
        polars.DataFrame
            The group, slope, slope_low, slope_high, intercept, explained (R squared), points, models.
        """
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
    """Fit calibration error as a power of classification error, by group of models, pooled over all conditions.

    Parameters
    ----------
    frame : data frame
        Results of a store (`store.frame()`), or any frame with its columns.
    metric : str, default "rank-series-l2"
        Name of the metric.
    by : str, default "family"
        Column that groups models: family, or any covariate.
    lens : str, default "top-label"
        What is judged.
    selection : str, default "all"
        Which rows are judged.
    recalibrator : str, default "none"
        Recalibration method.
    level : float, default 0.95
        Level of the intervals.

    Returns
    -------
    LogFits
        Points, lines and notes.

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
    >>> [(family, round(slope, 6)) for family, slope in log_fits(frame, metric="nll").lines().select("family", "slope").rows()]
    [('new', 1.0), ('old', 1.0)]
    """
    options.level(level)
    points, notes = base.with_error(frame, [metric], lens=lens, selection=selection, recalibrator=recalibrator)
    columns = base.read_results(frame).columns
    if by not in columns:
        raise InputError(f"the results have no column {by!r} to group by; there are {', '.join(columns)}")
    points = base.join_covariate(points, frame, by)
    usable = points.filter((pl.col("value") > 0) & (pl.col("error") > 0))
    zeros = points.height - usable.height
    if zeros:
        notes.append(
            f"{zeros} of {points.height} points have an estimate or an error of 0 and no logarithm; they are left out"
        )
    if usable.is_empty():
        raise InputError("no point has a logarithm: all estimates or errors are 0")
    logarithms = usable.with_columns(pl.col("error", "value").log10())
    models = usable.group_by(by).agg(pl.col("model").n_unique().alias("models"))
    lines = base.fit_groups(logarithms, [by], "error", "value", level=level).rename({"models": "points"})
    lines = lines.join(models, on=by, how="left", nulls_equal=True).sort(by, nulls_last=True)
    few = lines.filter(pl.col("points") < _MIN_LOG_POINTS)[by]
    remarks = [(f"fewer than {_MIN_LOG_POINTS} points leave no interval", str(group)) for group in few]
    return LogFits((*notes, *base.gather(remarks)), usable, metric, recalibrator, by, lines)


# ----------------------------------------------------------------------------------------------------
# How much of a binned calibration error is bias, and which trends it makes (Minderer et al. 2021, eq. 5 and Figure 9)

_UNBIASED = ("debiased-", "exact-", "rank-series-")
MEAN_SQUARE = "brier-top"


@dataclass(frozen=True, eq=False)
class BinBias:
    """Hold the bias of every bin with at least two rows, and of the squared error they add up to.

    Attributes
    ----------
    count : array of float
        Rows in each bin.
    share : array of float
        Share of all rows in each bin.
    outcome_variance : array of float
        Unbiased sample variance V[A] of the outcome within the bin.
    confidence_variance : array of float
        V[C] of the confidence within the bin.
    covariance : array of float
        Cov[C, A] within the bin.

    Notes
    -----
    bias = (V[A] + V[C] - 2 Cov[C, A]) / count.

    See Also
    --------
    bin_bias : Return this result.
    """

    count: Float64s
    share: Float64s
    outcome_variance: Float64s
    confidence_variance: Float64s
    covariance: Float64s

    @property
    def bias(self) -> Float64s:
        """By how much the squared gap of each bin is too large on average."""
        return (self.outcome_variance + self.confidence_variance - 2 * self.covariance) / self.count

    def frame(self) -> Frame:
        """Return a table of all bins.

        Returns
        -------
        Frame
            One row per bin: count, share, outcome_variance, confidence_variance, covariance, bias.
        """
        return Frame({**{name: getattr(self, name) for name in self.__dataclass_fields__}, "bias": self.bias})

    @property
    def total(self) -> float:
        """By how much the squared (norm 2) binned error is too large on average."""
        return float((self.share * self.bias).sum())


def bin_bias(profile: tc.profile.Profile, *, bins: int = 100, scheme: Literal["width", "mass"] = "mass") -> BinBias:
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
    BinBias
        Bias and its parts, for every bin with at least two rows.

    Raises
    ------
    InputError
        If the profile holds several datasets, or the number of bins is no positive whole number.

    Notes
    -----
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
    >>> round(bias.total, 4)  # a calibrated model: 100 bins / 10,000 rows * E[C (1 - C)] = 0.01 / 6
    0.0017
    """
    options.bins(bins)
    cells.refuse_batch(profile)
    binning = Binning(bins, scheme, "keep", "left")
    binning.check()
    cut = binning.cut(profile)
    contents = Bins.of(profile, cut)
    weight, count = contents.safe[0], contents.count[0]
    squares, products = (np.diff(profile.sums(name, cut), axis=1)[0] / weight for name in ("cc", "cy"))
    outcome, score = contents.outcome_sum[0] / weight, contents.score_sum[0] / weight
    usable = count >= 2
    unbiased = count[usable] / (count[usable] - 1)

    def moment(mean_product: Float64s, a: Float64s, b: Float64s) -> Float64s:
        return unbiased * (mean_product - a * b)[usable]

    return BinBias(
        count[usable],
        contents.share[0][usable],
        np.maximum(moment(outcome, outcome, outcome), 0.0),
        np.maximum(moment(squares, score, score), 0.0),
        moment(products, score, outcome),
    )


def squared_bias(power: Float64s, mean_square: Float64s, n: Float64s, bins: Float64s) -> Float64s:
    """Compute the bias of the squared binned error for equal-mass bins, from numbers of a store.

    `power` is the squared binned error, `mean_square` the mean of (A - C)^2 over all rows (the Brier score of the confidence).
    Every bin holds n / bins rows, and within bins (A - C)^2 has mean_square - power on average, so that the total is
    (mean_square - power) / (n / bins - 1).

    >>> float(squared_bias(np.array(0.002), np.array(0.152), np.array(1000.0), np.array(100.0)).round(6))
    0.016667
    """
    return (mean_square - power) / (n / bins - 1)


@dataclass(frozen=True, eq=False)
class BinTrend(Analysis):
    """Hold the slope of each estimator on the classification error, across models.

    `frame()` has one row per condition and estimator. Columns: dataset, severity, metric, scheme, norm, bins (null for estimators
    without a fixed number), debiased (whether the estimator removes its bias), models, slope, low, high, pearson, pearson_low,
    pearson_high; and, for equal-mass bins of norm 2, the slopes of the squared error, of its exact bias, and of the difference:
    slope_squared = slope_bias + slope_rest, rest_low, rest_high.

    Attributes
    ----------
    notes : tuple of str
        What to know before reading the table, such as values that are missing or numbers of rows that differ.

    See Also
    --------
    bin_trend : Return this result.
    """

    _points: Any

    def points(self) -> Any:
        """Return the points behind the slopes.

        Returns
        -------
        polars.DataFrame
            One row per condition, estimator and model: error, value, and for equal-mass bins of norm 2 the bias of its square.
        """
        return self._points


def bin_trend(
    frame: Any,
    *,
    lens: str = "top-label",
    selection: str = "all",
    recalibrator: str = "none",
    dataset: str | None = None,
    level: float = 0.95,
) -> BinTrend:
    """Fit the trend of calibration with error for every number of bins in the results, beside that of debiased estimators.

    Parameters
    ----------
    frame : data frame
        Results of a store (`store.frame()`), or any frame with its columns.
    lens : str, default "top-label"
        What is judged.
    selection : str, default "all"
        Which rows are judged.
    recalibrator : str, default "none"
        Recalibration method.
    dataset : str, default None
        One dataset; None: all.
    level : float, default 0.95
        Level of the intervals.

    Returns
    -------
    BinTrend
        Slopes, points and notes.

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
    names = base.read_results(frame).filter(pl.col("lens") == lens)["metric"].unique().sort().to_list()
    metrics = [parse_metric(name) for name in names if name.startswith(("ece-", *_UNBIASED))]
    metrics = [metric for metric in metrics if metric.norm != np.inf]
    if not any(metric.kind == "ece" for metric in metrics):
        raise InputError(f"the results hold no binned error such as ece-mass-100-l1 with the lens {lens!r}")
    choice = {"lens": lens, "selection": selection, "recalibrator": recalibrator, "dataset": dataset}
    values, notes = base.with_error(frame, [metric.name for metric in metrics], **choice)
    values = _join_bias(frame, values, metrics, choice, notes)
    table = _fit_trends(values, level)
    if table.is_empty():
        raise InputError("a trend needs at least two models under one condition")
    kinds = [(m.name, m.scheme, m.norm, m.bins, m.kind != "ece") for m in metrics]
    types = {"metric": pl.String, "scheme": pl.String, "norm": pl.Float64, "bins": pl.Int64, "debiased": pl.Boolean}
    table = table.join(pl.DataFrame(kinds, schema=types, orient="row"), on="metric")
    table = table.sort(*CONDITION, "debiased", "scheme", "norm", "bins", "metric", nulls_last=True)
    remarks = [
        (text, where(condition))
        for condition, part in base.by_condition(table)
        for text in _contradictions(part.rows(named=True))
    ]
    notes += [*base.few_models(values), *base.gather(remarks)]
    return BinTrend(tuple(dict.fromkeys(notes)), table, values)


def _join_bias(frame: Any, values: Any, metrics: list[Metric], choice: dict[str, Any], notes: list[str]) -> Any:
    """Columns squared (mean over seeds of the squared error) and bias, for equal-mass bins of norm 2; null elsewhere."""
    exact = {m.name: float(m.bins or 0) for m in metrics if (m.kind, m.scheme, m.norm) == ("ece", "mass", 2.0)}
    table = base.read_results(frame)
    if exact and MEAN_SQUARE not in table["metric"]:
        notes.append(
            f"the exact bias of binned errors needs the metric {MEAN_SQUARE} in the study; without it only trends are shown"
        )
    if not exact or MEAN_SQUARE not in table["metric"]:
        return values.with_columns(pl.lit(None, pl.Float64).alias(name) for name in ("squared", "bias"))
    key = [*CONDITION, "model"]
    squared, _ = base.points(table.with_columns(pl.col("value") ** 2), list(exact), **choice)
    means, _ = base.points(table, [MEAN_SQUARE], **choice)
    squared = squared.join(means.select(*key, pl.col("value").alias("mean_square")), on=key, how="inner")
    squared = squared.with_columns(pl.col("metric").replace_strict(exact, return_dtype=pl.Float64).alias("bins"))
    power, mean, n, bins = numbers(squared, "value", "mean_square", "n", "bins")
    bias = np.where(n > bins, squared_bias(power, mean, np.where(n > bins, n, 2 * bins), bins), np.nan)
    squared = squared.with_columns(pl.col("value").alias("squared"), pl.Series("bias", bias).fill_nan(None))
    key = ["metric", "lens", *key]
    return values.join(squared.select(*key, "squared", "bias"), on=key, how="left")


def _fit_trends(values: Any, level: float) -> Any:
    """Slopes of every estimator on the error; of the squared error, its bias and the rest, where the bias is known."""
    keys = [*CONDITION, "metric"]
    trends = base.fit_groups(values, keys, "error", "value", methods={"pearson": "pearson"}, level=level)
    trends = trends.filter(pl.col("models") > 1).rename({"slope_low": "low", "slope_high": "high"})
    exact = values.filter(pl.col("bias").is_not_null().all().over(keys))
    exact = exact.with_columns((pl.col("squared") - pl.col("bias")).alias("rest"))
    squared, bias, rest = (base.fit_groups(exact, keys, "error", y, level=level) for y in ("squared", "bias", "rest"))
    slopes = rest.select(
        *keys,
        squared["slope"].alias("slope_squared"),
        bias["slope"].alias("slope_bias"),
        pl.col("slope").alias("slope_rest"),
        pl.col("slope_low").alias("rest_low"),
        pl.col("slope_high").alias("rest_high"),
    )
    return trends.drop("intercept", "explained").join(slopes, on=keys, how="left", maintain_order="left")


def _contradictions(rows: list[dict[str, Any]]) -> list[str]:
    """Trends of one condition that contradict each other."""
    notes = []

    def sign(row: dict[str, Any], low: str = "low", high: str = "high") -> int:
        return int(row[low] > 0) - int(row[high] < 0)

    unbiased = [row for row in rows if row["debiased"]]
    binned = [row for row in rows if not row["debiased"]]
    for scheme, norm in sorted({(row["scheme"], row["norm"]) for row in binned}):
        group = sorted((r for r in binned if (r["scheme"], r["norm"]) == (scheme, norm)), key=lambda r: r["bins"])
        signs: dict[int, str] = {}
        for row in group:
            signs.setdefault(sign(row), row["metric"])
        if 1 in signs and -1 in signs:
            notes.append(
                f"calibration rises with error by {signs[1]} and falls by {signs[-1]}: the number of bins decides"
            )
        last = group[-1]
        if not sign(last):
            continue
        trend = f"{last['metric']} {'rises' if sign(last) > 0 else 'falls'} with error"
        if last["slope_rest"] is not None:
            if sign(last, "rest_low", "rest_high") != sign(last):
                notes.append(f"{trend}, but its square without the exact bias does not: the trend is that of the bias")
        elif unbiased and all(sign(row) != sign(last) for row in unbiased):
            others = " nor ".join(row["metric"] for row in unbiased)
            notes.append(f"{trend}, but not {others}: the trend may be that of its bias")
    return notes
