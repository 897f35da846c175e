"""How much of a binned calibration error is chance: the exact bias of the squared gap of a bin (Minderer et al. 2021, eq. 5)."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.estimators.bins import Binning, Bins
from truecal.resampling import cells
from truecal.study.analyses.points import (
    CONDITION,
    Analysed,
    by_condition,
    correlate,
    few_models,
    fit_line,
    gathered,
    numbers,
    points,
    results,
    where,
    with_error,
)
from truecal.study.metrics import Metric, parse_metric
from truecal.study.store import pl
from truecal.table import Frame
from truecal.types import Float64s

# ----------------------------------------------------------------------------------------------------
# How much of a binned calibration error is chance: the exact bias of the squared gap of a bin (Minderer et al. 2021, eq. 5)


@dataclass(frozen=True, eq=False)
class BinBias:
    """The bias of every bin with at least two rows, and of the squared error they add up to.

    bias = (V[A] + V[C] - 2 Cov[C, A]) / count, with A the outcome and C the confidence within the bin, as unbiased sample moments.
    """

    count: Float64s
    share: Float64s  # of all rows, in each bin
    outcome_variance: Float64s
    confidence_variance: Float64s
    covariance: Float64s

    @property
    def bias(self) -> Float64s:
        """By how much the squared gap of each bin is too large on average."""
        return (self.outcome_variance + self.confidence_variance - 2 * self.covariance) / self.count

    def frame(self) -> Frame:
        """One row per bin: count, share, outcome_variance, confidence_variance, covariance, bias."""
        return Frame({**{name: getattr(self, name) for name in self.__dataclass_fields__}, "bias": self.bias})

    @property
    def total(self) -> float:
        """By how much the squared (norm 2) binned error is too large on average."""
        return float((self.share * self.bias).sum())


def bin_bias(profile: tc.profile.Profile, *, bins: int = 100, scheme: Literal["width", "mass"] = "mass") -> BinBias:
    """The bias of the plug-in squared gap, bin by bin, from the prefix sums of a profile.

    It depends on accuracy twice over: outcomes of an accurate model vary less, and go with its confidence more. Hence models of
    different accuracy differ in their many-bin error even where their calibration is the same.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(10_000)
    >>> found = tc.study.bin_bias(tc.profile.Profile.from_arrays(c, rng.random(10_000) < c), bins=100)
    >>> round(found.total, 4)  # a calibrated model: 100 bins / 10,000 rows * E[C (1 - C)] = 0.01 / 6
    0.0017
    """
    options.bins(bins)
    cells.refuse_batch(profile)
    binning = Binning(bins, scheme, "keep", "left")
    binning.check()
    cut = binning.cut(profile)
    contents = Bins.of(profile, cut)
    squares, products = (np.diff(profile.sums(name, cut), axis=1)[0] for name in ("cc", "cy"))
    weight, outcome, score = (
        contents.safe[0],
        contents.outcome_sum[0] / contents.safe[0],
        contents.score_sum[0] / contents.safe[0],
    )
    count = contents.count[0]
    usable = count >= 2
    stretch = count[usable] / (count[usable] - 1)  # sample moments, not those of the rows at hand

    def moment(mean_product: Float64s, a: Float64s, b: Float64s) -> Float64s:
        return stretch * (mean_product - a * b)[usable]

    return BinBias(
        count[usable],
        contents.share[0][usable],
        np.maximum(moment(outcome, outcome, outcome), 0.0),
        np.maximum(moment(squares / weight, score, score), 0.0),
        moment(products / weight, score, outcome),
    )


def squared_bias(power: Float64s, mean_square: Float64s, n: Float64s, bins: Float64s) -> Float64s:
    """The same total for equal-mass bins, from numbers that a store keeps.

    `power` is the squared binned error, `mean_square` the mean of (A - C)^2 over all rows (the Brier score of the confidence).
    Every bin holds n / bins rows, and within bins (A - C)^2 has what the gaps leave of its mean, so that the total is
    (mean_square - power) / (n / bins - 1).

    >>> float(squared_bias(np.array(0.002), np.array(0.152), np.array(1000.0), np.array(100.0)).round(6))
    0.016667
    """
    return (mean_square - power) / (n / bins - 1)


# ----------------------------------------------------------------------------------------------------
# Whether calibration seems to go up or down with error depends on the number of bins (Minderer et al. 2021, Figure 9)

_BINNED = "ece-"
_UNBIASED = ("debiased-", "exact-", "rank-series-")
MEAN_SQUARE = "brier-top"


@dataclass(frozen=True, eq=False)
class BinTrend(Analysed):
    """Slope of each estimator on the classification error, across models.

    `frame()` has one row per condition and estimator. Columns: dataset, severity, metric, scheme, norm, bins (null for estimators
    without a fixed number), debiased (whether the estimator removes its bias), models, slope, low, high, pearson, pearson_low,
    pearson_high; and, for equal-mass bins of norm 2, the slopes of the squared error, of its exact bias, and of what remains:
    slope_squared = slope_bias + slope_rest, rest_low, rest_high.
    """

    _points: Any

    def points(self) -> Any:
        """One row per condition, estimator and model: error, value, and for equal-mass bins of norm 2 the bias of its square."""
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
    """The trend of calibration with error for every number of bins in the results, beside that of debiased estimators.

    Norm 2 and equal mass have an exact bias (eq. 5), found from the store's numbers if the metric brier-top is among them. Other
    binned errors are judged by whether the debiased estimators (debiased, exact, rank-series) show the same trend.
    """
    options.level(level)
    known = results(frame).filter(pl.col("lens") == lens)["metric"].unique().sort().to_list()
    wanted = [parse_metric(name) for name in known if name.startswith((_BINNED, *_UNBIASED))]
    wanted = [metric for metric in wanted if metric.norm != np.inf]
    if not any(metric.kind == "ece" for metric in wanted):
        raise InputError(f"the results hold no binned error such as ece-mass-100-l1 with the lens {lens!r}")
    choice = {"lens": lens, "selection": selection, "recalibrator": recalibrator, "dataset": dataset}
    values, notes = with_error(frame, [metric.name for metric in wanted], **choice)
    values = _with_bias(frame, values, wanted, choice, notes)
    remarks, rows = [], []
    for condition, part in by_condition(values):
        remarks += few_models(part["model"].n_unique(), where(condition))
        trends = [_trend(metric, part.filter(pl.col("metric") == metric.name), level) for metric in wanted]
        trends = [row for row in trends if row["models"] >= 2]
        remarks += [(text, where(condition)) for text in _verdicts(trends)]
        rows += [{**condition, **row} for row in trends]
    if not rows:
        raise InputError("a trend needs at least two models under one condition")
    notes += gathered(remarks)
    names = ("slope_squared", "slope_bias", "slope_rest", "rest_low", "rest_high", "norm")
    table = pl.DataFrame(
        rows, schema_overrides={**dict.fromkeys(names, pl.Float64), "bins": pl.Int64, "scheme": pl.String}
    )
    order = ["debiased", "scheme", "norm", "bins", "metric"]
    return BinTrend(tuple(dict.fromkeys(notes)), table.sort(*CONDITION, *order, nulls_last=True), values)


def _with_bias(frame: Any, values: Any, wanted: list[Metric], choice: dict[str, Any], notes: list[str]) -> Any:
    """Columns squared (mean over seeds of the squared error) and bias, for equal-mass bins of norm 2; null elsewhere."""
    exact = {m.name: float(m.bins or 0) for m in wanted if (m.kind, m.scheme, m.norm) == ("ece", "mass", 2.0)}
    empty = [pl.lit(None, pl.Float64).alias(name) for name in ("squared", "bias")]
    if not exact:
        return values.with_columns(*empty)
    table = results(frame)
    if MEAN_SQUARE not in table["metric"]:
        notes.append(
            f"the exact bias of binned errors needs the metric {MEAN_SQUARE} in the study; without it only trends are shown"
        )
        return values.with_columns(*empty)
    key = [*CONDITION, "model"]
    squared, _ = points(table.with_columns(pl.col("value") ** 2), list(exact), **choice)
    means, _ = points(table, [MEAN_SQUARE], **choice)
    squared = squared.join(means.select(*key, pl.col("value").alias("mean_square")), on=key, how="inner")
    squared = squared.with_columns(pl.col("metric").replace_strict(exact, return_dtype=pl.Float64).alias("bins"))
    power, mean, n, bins = numbers(squared, "value", "mean_square", "n", "bins")
    roomy = n > bins
    bias = np.where(roomy, squared_bias(power, mean, np.where(roomy, n, 2 * bins), bins), np.nan)
    squared = squared.with_columns(pl.col("value").alias("squared"), pl.Series("bias", bias).fill_nan(None))
    return values.join(
        squared.select("metric", "lens", *key, "squared", "bias"), on=["metric", "lens", *key], how="left"
    )


def _trend(metric: Metric, part: Any, level: float) -> dict[str, Any]:
    error, value, squared, bias = numbers(part, "error", "value", "squared", "bias")
    line, pearson = fit_line(error, value, level=level), correlate(error, value, "pearson", level=level)
    row: dict[str, Any] = {"metric": metric.name, "scheme": metric.scheme, "norm": metric.norm, "bins": metric.bins}
    row |= {"debiased": metric.kind != "ece", "models": part.height, "slope": line.slope}
    row |= {"low": line.low, "high": line.high, **pearson.columns("pearson")}
    names = ("slope_squared", "slope_bias", "slope_rest", "rest_low", "rest_high")
    if not len(bias) or np.isnan(bias).any():
        return row | dict.fromkeys(names)
    rest = fit_line(error, squared - bias, level=level)
    slopes = (fit_line(error, squared).slope, fit_line(error, bias).slope, rest.slope, rest.low, rest.high)
    return row | dict(zip(names, slopes, strict=True))


def _verdicts(rows: list[dict[str, Any]]) -> list[str]:
    """What the trends of one condition say about each other."""
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
