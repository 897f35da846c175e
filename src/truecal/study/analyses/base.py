"""Points: one number per model and condition, out of the results of a store; lines and correlations through them.

A condition is a dataset at a severity of shift (0 is clean). Seeds of one model are averaged: `value`, `low` and `high` are the
means over its seeds, so that the interval is that of a single run and rather too wide than too narrow for the mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from truecal import options
from truecal.errors import InputError
from truecal.study.store import Store, pl
from truecal.types import Float64s

METRIC = "rank-series-l2"  # by choice: the default metric of analyses, truecal's default estimator
CONDITION = ("dataset", "severity")
_TEXT = ("model", "family", "dataset", "recalibrator", "lens", "selection", "metric")
_NUMBERS = ("size", "severity", "seed", "value", "low", "high", "n")
KEY = ("metric", "lens", *CONDITION, "model")
_LISTED = 12  # by choice: names in a message
Reference = str | Mapping[str, str] | None  # clean dataset of the shifted ones: one for all, or by dataset


class Choice(TypedDict, total=False):
    """Which results are analysed, as keyword arguments of :func:`points`."""

    lens: str | Sequence[str]  # what is judged; scores of whole predictions have the lens "" and are there under any
    selection: str  # which rows, such as "all"
    recalibrator: str  # recalibration method of the predictions, or "none"
    dataset: str | None  # None: all datasets


@dataclass(frozen=True, eq=False)
class Analysis:
    """Hold the tables of an analysis, and notes on what to know before reading them.

    Attributes
    ----------
    tables : mapping of str to polars.DataFrame
        Tables by name; the function that returns the analysis describes them.
    notes : tuple of str
        What to know before reading the tables, such as values that are missing or numbers of rows that differ.
    metric : str, default ""
        Name of the metric, where there is one.

    See Also
    --------
    error_against_calibration : One of the functions that return it.
    """

    tables: Mapping[str, Any]
    notes: tuple[str, ...]
    metric: str = ""

    def frame(self, name: str | None = None) -> Any:
        """Return a table.

        Parameters
        ----------
        name : str, default None
            Name of the table; None: the first.

        Returns
        -------
        polars.DataFrame
            The table.

        Raises
        ------
        InputError
            If there is no table of that name.
        """
        options.choice(name or next(iter(self.tables)), tuple(self.tables), "name")
        return self.tables[name or next(iter(self.tables))]


def read_results(source: Any) -> Any:
    """Return the results of a store, or a polars frame, as a polars frame; refuse other types and missing columns by name.

    Columns needed are those of `_TEXT`, returned as text, and of `_NUMBERS`, returned as float64 with null for NaN.
    """
    table = source.frame() if isinstance(source, Store) else source
    if not isinstance(table, pl.DataFrame):
        raise InputError(f"{type(table).__name__} is not a data frame of polars; pass a store or store.frame()")
    missing = [name for name in (*_TEXT, *_NUMBERS) if name not in table.columns]
    if missing:
        raise InputError(f"the results have no column {missing[0]!r}; pass store.frame(), or a frame with its columns")
    return table.with_columns(pl.col(*_TEXT).cast(pl.String), pl.col(*_NUMBERS).cast(pl.Float64).fill_nan(None))


def only(table: Any, column: str, *names: object) -> Any:
    """Select the rows of a polars frame with one of the values `names` in a column; refuse a value that does not occur.

    Values must be text, except those of the column severity.

    >>> only(pl.DataFrame({"dataset": ["a", "b", "a"]}), "dataset", "a").height
    2
    """
    for name in names:
        if column != "severity" and not isinstance(name, str):
            raise InputError(f"{column} must be the name of one in the results, not {type(name).__name__}")
    rows = table.filter(pl.col(column).is_in(list(names)))
    for name in set(names) - set(rows[column].unique()):
        words = [str(value) for value in table[column].drop_nulls().unique().sort() if value != ""]
        listed = ", ".join(words[:_LISTED]) + (", ..." if len(words) > _LISTED else "")
        raise InputError(f"there is no {column} {name!r} among the results; there are {listed or 'none'}")
    return rows


def as_names(names: Any) -> list[Any]:
    """Return the names of a sequence as a list; any other value (a text, None) as a list of one.

    >>> as_names(["a", "b"]), as_names("a"), as_names(None)
    (['a', 'b'], ['a'], [None])
    """
    return list(names) if isinstance(names, Sequence) and not isinstance(names, str) else [names]


def points(source: Any, metrics: str | Sequence[str], **choice: Unpack[Choice]) -> Analysis:
    """Select one number per metric, model and condition, averaged over seeds.

    Parameters
    ----------
    source : Store or polars.DataFrame
        A store, its results (`store.frame()`), or a polars frame with their columns.
    metrics : str or sequence of str
        Names of metrics. A score of whole predictions (such as nll) has no lens and is there under any.
    **choice : str
        Which results: `lens` (what is judged, default "top-label"; or a sequence), `selection` (which rows, default "all"),
        `recalibrator` (default "none") and `dataset` (default None: all).

    Returns
    -------
    Analysis
        Table "points" with columns metric, lens, dataset, severity, model, family, size, value, low, high, n, seeds, sorted.

    Raises
    ------
    InputError
        If a name is not in the results, or a model has two values under one condition and seed.

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
    >>> tc.study.points(pl.DataFrame(rows), "nll").frame().select("model", "value", "seeds").rows()
    [('a', 0.4, 1), ('b', 0.7, 1), ('c', 1.3, 1)]
    """
    table = read_results(source)
    selected = {"selection": "all", "recalibrator": "none", "lens": "top-label", **choice}
    lenses = as_names(selected.pop("lens"))
    for column, name in selected.items():
        options.choice(column, tuple(Choice.__annotations__), "argument")
        table = table if name is None else only(table, column, name)
    only(table, "lens", *(name for name in lenses if name not in ("top-label", "")))
    table = only(table.filter(pl.col("lens").is_in([*lenses, ""])), "metric", *as_names(metrics))
    is_finite = pl.col("value").is_finite().fill_null(False)
    unusable = table.filter(~is_finite).unique(KEY).sort(KEY)
    state = pl.when(pl.col("value").is_null()).then(pl.lit("missing")).otherwise(pl.lit("infinite"))
    notes = write_notes(unusable.with_columns(state=state), "{metric} is {state} and left out")
    table = table.filter(is_finite)
    if table.is_empty():
        raise InputError("none of these numbers is finite")
    for row in table.filter(table.select(*KEY, "seed").is_duplicated()).head(1).to_dicts():
        raise InputError(
            f"two values of {row['metric']} for {where(row)} (seed {row['seed']:g}): models need names of their own"
        )
    limits = [pl.when(pl.col(name).null_count() == 0).then(pl.col(name).mean()).alias(name) for name in ("low", "high")]
    table = table.group_by(KEY).agg(
        pl.col("family", "size").drop_nulls().first(),
        pl.col("value").mean(),
        *limits,
        pl.col("n").mean(),
        seeds=pl.len().cast(pl.Int64),
        range=pl.col("value").max() - pl.col("value").min(),
    )
    notes += [*_note_unequal_rows(table), *_note_variation_between_seeds(table)]
    return Analysis({"points": table.drop("range").sort(KEY)}, tuple(notes))


def points_with_error(source: Any, metrics: str | Sequence[str], **choice: Unpack[Choice]) -> tuple[Any, list[str]]:
    """Return the points of `metrics` with the columns error, error_low and error_high, and the notes on the points.

    The table is that of `points`, sorted by `KEY`; the added columns are the classification error of the same model and
    condition, with its limits (null without). Points without a classification error are left out.
    """
    results = read_results(source)
    values, errors = points(results, metrics, **choice), points(results, "error", **choice)
    names = {"value": "error", "low": "error_low", "high": "error_high"}
    beside = errors.frame().select(*CONDITION, "model", *(pl.col(name).alias(to) for name, to in names.items()))
    return values.frame().join(beside, on=[*CONDITION, "model"], how="inner").sort(KEY), list(values.notes)


def join_covariate(table: Any, source: Any, name: str) -> Any:
    """Return points with a column of the results, such as a covariate, joined by model, dataset and severity.

    The first value of each is taken; points that have the column already are unchanged. Refuse a column the results lack.
    """
    results = read_results(source)
    if not isinstance(name, str) or name not in results.columns:
        raise InputError(f"there is no covariate {name!r} in the results; there are {', '.join(results.columns)}")
    if name in table.columns:
        return table
    covariate = results.select("model", *CONDITION, name).unique(["model", *CONDITION], keep="first")
    return table.join(covariate, on=["model", *CONDITION], how="left")


def numbers(table: Any, *names: str) -> list[np.ndarray]:
    """Return columns as float64 arrays of shape (rows,), with NaN for null.

    >>> numbers(pl.DataFrame({"n": [1, None]}), "n")
    [array([ 1., nan])]
    """
    return [table[name].cast(pl.Float64).fill_null(float("nan")).to_numpy() for name in names]


# ----------------------------------------------------------------------------------------------------
# Notes


def where(row: Mapping[str, Any]) -> str:
    """Write `model` (if there is one), `dataset` and `severity` (unless 0) as text, such as "mlp on digits at severity 3".

    >>> where({"model": "mlp", "dataset": "digits", "severity": 3.0}), where({"dataset": "digits", "severity": 0.0})
    ('mlp on digits at severity 3', 'on digits')
    """
    model = f"{row['model']} " if row.get("model") else ""
    return f"{model}on {row['dataset']}" + (f" at severity {row['severity']:g}" if row["severity"] else "")


def write_notes(table: Any, text: str, limit: int = 3) -> list[str]:
    """Fill `text` with the columns of every row; return distinct texts, each with the models and conditions of `limit` rows.

    >>> rows = pl.DataFrame({"dataset": ["digits", "wine", "wine"], "severity": [0.0, 0.0, 2.0], "n": [5, 5, 6]})
    >>> write_notes(rows, "{n} models are too few")
    ['5 models are too few (on digits, on wine)', '6 models are too few (on wine at severity 2)']
    """
    by_text: dict[str, list[str]] = {}
    for row in table.to_dicts():
        by_text.setdefault(text.format_map(row), []).append(where(row))
    others = {text: f" and {len(rows) - limit} more" if len(rows) > limit else "" for text, rows in by_text.items()}
    return [f"{text} ({', '.join(rows[:limit])}{others[text]})" for text, rows in by_text.items()]


def _note_unequal_rows(table: Any) -> list[str]:
    """Write notes on datasets and severities of points at which `n` (rows), or `seeds` (their number), differs among rows."""
    n = pl.col("n")
    spread = table.group_by(*CONDITION).agg(low=n.min(), high=n.max(), seeds=pl.col("seeds").n_unique())
    spread = spread.sort(*CONDITION)
    text = "models were judged on different rows ({low:g} to {high:g} of them)"
    text += ", so that part of their difference may be that of the rows"
    notes = write_notes(spread.filter(pl.col("low") != pl.col("high")), text)
    return notes + write_notes(spread.filter(pl.col("seeds") > 1), "models have different numbers of seeds")


def _note_variation_between_seeds(table: Any) -> list[str]:
    """Write one note on how many values have a `range` over seeds wider than high - low, which is about rows only; else [].

    Rows with a single seed (`seeds`), or without an interval, are not counted.

    >>> table = pl.DataFrame({"seeds": [3, 3], "low": [0.0, 0.0], "high": [0.1, 0.1], "range": [0.2, 0.05]})
    >>> _note_variation_between_seeds(table)[0].partition(" differ")[0]
    '1 of 2 numbers'
    """
    width = pl.col("high") - pl.col("low")
    several = table.filter((pl.col("seeds") > 1) & width.is_not_null())
    beyond = several.filter(pl.col("range") > width).height
    text = (
        f"{beyond} of {several.height} numbers differ between seeds by more than the width of their intervals: "
        "intervals do not include the variation between trainings"
    )
    return [text] if beyond else []


def note_overlaps(table: Any, metric: str) -> list[str]:
    """Write one note on how many neighbours have overlapping intervals (low, high); [] if none, another note without intervals.

    Neighbours are models that follow each other by `value` within a dataset and severity; `metric` is named in the text.
    """
    above = pl.col("high").shift().over(CONDITION)  # of the neighbour in the ranking
    overlaps = table.sort(*CONDITION, "value").select(overlap=pl.col("low") <= above)["overlap"].drop_nulls()
    if overlaps.is_empty():
        return [f"there are no intervals of {metric}: which of its ranks are chance is unknown"]
    text = (
        f"{overlaps.sum()} of {len(overlaps)} neighbours in rankings by {metric} have overlapping intervals: "
        "their order is not supported by the data"
    )
    return [text] if overlaps.any() else []


def note_few_models(table: Any) -> list[str]:
    """Write notes on the datasets and severities of a table with fewer than 10 distinct models; [] if there are none.

    A note is "N models say little about a correlation: ... (on DATASET at severity S)" (see `write_notes`).
    """
    counts = table.group_by(*CONDITION).agg(models=pl.col("model").n_unique()).sort(*CONDITION)
    text = f"{{models}} models say little about a correlation: below {FEW} its interval is wide, below {MIN_MODELS} there is none"
    return write_notes(counts.filter(pl.col("models") < FEW), text)


# ----------------------------------------------------------------------------------------------------
# Correlation across models, with an interval, and the line through them

MIN_MODELS = 5  # derived: the variance 0.437 / (models - 4) of Fisher's transformation exists from 5 models on
FEW = 10  # by choice: models below which even a strong correlation is hardly known


class Correlation(NamedTuple):
    """Kendall's tau over models with its limits; NaN where all values are equal, limits NaN below 5 models."""

    value: float = np.nan
    low: float = np.nan
    high: float = np.nan


def correlate(x: ArrayLike, y: ArrayLike, *, level: float = 0.95) -> Correlation:
    """Compute Kendall's tau-b with its interval; NaN for fewer than two models or a constant column.

    >>> result = correlate([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 6, 5])
    >>> round(result.value, 3), round(result.low, 3), round(result.high, 3)
    (0.867, 0.383, 0.977)
    """
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return Correlation()
    p, q = np.sign(np.subtract.outer(a, a)), np.sign(np.subtract.outer(b, b))
    value = float((p * q).sum() / np.sqrt((p**2).sum() * (q**2).sum()))
    low, high = tau_bounds(np.array([value]), len(a), level)
    return Correlation(value, float(low[0]), float(high[0]))


def tau_bounds(value: Float64s, models: int, level: float) -> tuple[Float64s, Float64s]:
    """Compute lower and upper limits of Kendall's tau (any shape) over `models` models by Fisher's transformation.

    The variance is that of Fieller, Hartley & Pearson (1957). Limits are NaN for fewer than 5 models, and contain the coefficient
    also where it is 1 or -1.

    >>> low, high = tau_bounds(np.array([0.0]), 8, 0.95)
    >>> low.round(4), high.round(4), tau_bounds(np.array([0.0]), 4, 0.95)[0]  # tanh(1.96 sqrt(0.437 / 4))
    (array([-0.5702]), array([0.5702]), array([nan]))
    """
    from scipy.special import ndtri

    if models < MIN_MODELS:
        return np.full_like(value, np.nan), np.full_like(value, np.nan)
    largest = 1 - 2 / (models * (models - 1))
    centre = np.arctanh(np.clip(value, -largest, largest))
    half_width = float(ndtri((1 + level) / 2)) * np.sqrt(0.437 / (models - 4))
    return np.minimum(np.tanh(centre - half_width), value), np.maximum(np.tanh(centre + half_width), value)


class FittedLine(NamedTuple):
    """Least squares y = intercept + slope * x, the slope with Student's interval; NaN for fewer than two points or one x."""

    slope: float = np.nan
    slope_low: float = np.nan
    slope_high: float = np.nan
    intercept: float = np.nan
    explained: float = np.nan  # share of the variance of y (R squared)


def fit_line(x: ArrayLike, y: ArrayLike, *, level: float = 0.95) -> FittedLine:
    """Fit a line by least squares, with a t-interval of the slope; the interval and R^2 are NaN for fewer than three points.

    >>> line = fit_line([0, 1, 2, 3], [1, 3, 5, 7])
    >>> round(line.slope, 12), round(line.intercept, 12), round(line.explained, 12)
    (2.0, 1.0, 1.0)
    """
    from scipy.special import stdtrit

    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    n = len(a)
    if n < 2 or np.ptp(a) == 0:
        return FittedLine()
    (variance, covariance), (_, total_variance) = np.cov(a, b, bias=True)
    slope = float(covariance / variance)
    intercept = float(b.mean() - slope * a.mean())
    if n < 3:
        return FittedLine(slope, intercept=intercept)
    residual_variance = float(np.mean((b - intercept - slope * a) ** 2))
    half_width = float(stdtrit(n - 2, (1 + level) / 2)) * np.sqrt(residual_variance / variance / (n - 2))
    explained = float(covariance**2 / variance / total_variance) if np.ptp(b) > 0 else np.nan
    return FittedLine(slope, slope - half_width, slope + half_width, intercept, explained)


def fit_groups(table: Any, by: Sequence[str], x: str, y: str, *, correlated: bool = False, level: float = 0.95) -> Any:
    """Fit the line of y on x in every group of a table; with `correlated` also Kendall's tau of the two.

    Columns: `by`, models (rows of the group), the fields of `FittedLine`, and with `correlated` tau, tau_low and tau_high.
    """
    rows = []
    for part in table.partition_by(by, maintain_order=True):
        values = numbers(part, x, y)
        tau = correlate(*values, level=level) if correlated else ()
        rows.append((*part.select(by).row(0), part.height, *fit_line(*values, level=level), *tau))
    names = [*FittedLine._fields, *(("tau", "tau_low", "tau_high") if correlated else ())]
    schema = {name: table.schema[name] for name in by} | {"models": pl.Int64} | dict.fromkeys(names, pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row")


def with_all_families(table: Any) -> Any:
    """Return all rows with family null, which stands for all models, followed by the rows that have a family, unchanged.

    >>> with_all_families(pl.DataFrame({"family": ["vit", None]}))["family"].to_list()
    [None, None, 'vit']
    """
    whole = table.with_columns(pl.lit(None, pl.String).alias("family"))
    return pl.concat([whole, table.filter(pl.col("family").is_not_null())])


# ----------------------------------------------------------------------------------------------------
# Shifted data beside their clean version


def find_clean(table: Any, reference: Reference) -> tuple[Any, list[str]]:
    """Find the clean dataset of every shifted condition of a table: columns dataset, severity, clean; and notes on those without.

    Without a reference a dataset's severity 0 is its clean version. A name makes that dataset, at severity 0, the clean version
    of all others; a mapping {shifted dataset: clean dataset} does so one by one.
    """
    datasets = table["dataset"].unique().sort().to_list()
    named = dict(reference) if isinstance(reference, Mapping) else dict.fromkeys(datasets, reference)
    clean_of = {name: named.get(name) or name for name in datasets}
    only(table, "dataset", *clean_of.values())
    conditions = table.select(*CONDITION).unique().sort(*CONDITION)
    clean = conditions.filter(pl.col("severity") == 0)["dataset"].to_list()
    shifted = conditions.with_columns(clean=pl.col("dataset").replace_strict(clean_of, return_dtype=pl.String))
    shifted = shifted.filter((pl.col("clean") != pl.col("dataset")) | (pl.col("severity") > 0))
    lacking = shifted.filter(~pl.col("clean").is_in(clean))["dataset"].unique().sort().to_list()
    text = "{} has no results at severity 0 to compare with; name its clean dataset as reference"
    return shifted.filter(pl.col("clean").is_in(clean)), [text.format(name) for name in lacking]


def join_clean(table: Any, reference: Reference) -> tuple[Any, list[str]]:
    """Join to every shifted point that of the same model, metric and lens on its clean dataset (see `find_clean`).

    Returns the shifted points that have a clean one, with further columns clean (dataset), clean_value, clean_low, clean_high
    and clean_error; and notes on the others, which are left out. `table` is that of `points_with_error`.
    """
    clean_of, notes = find_clean(table, reference)
    names = ("value", "low", "high", "error")
    clean = table.filter(pl.col("severity") == 0).select(
        "metric", "lens", "model", pl.col("dataset").alias("clean"), pl.col(*names).name.prefix("clean_")
    )
    shifted = table.join(clean_of, on=list(CONDITION), how="inner", maintain_order="left")
    joined = shifted.join(clean, on=["metric", "lens", "clean", "model"], how="left", maintain_order="left")
    is_judged = pl.col("clean_value").is_not_null()
    lacking = joined.filter(~is_judged).group_by("dataset").agg(pl.col("model").unique().sort()).sort("dataset")
    text = "not judged on the clean version of {}, so left out: {}"
    notes += [text.format(dataset, ", ".join(models)) for dataset, models in lacking.iter_rows()]
    return joined.filter(is_judged), notes
