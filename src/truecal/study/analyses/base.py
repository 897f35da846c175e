"""Points: one number per model and condition, out of the long frame of a store; lines and correlations through them.

A condition is a dataset at a severity of shift (0 is clean). Seeds of one model are averaged: `value`, `low` and `high` are the
means over its seeds, so that the interval is that of a single run and rather too wide than too narrow for the mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from truecal import options
from truecal.errors import InputError
from truecal.study.store import pl
from truecal.types import Float64s

METRIC = "rank-series-l2"
CONDITION = ("dataset", "severity")
_TEXT = ("model", "family", "dataset", "recalibrator", "lens", "selection", "metric")
_NUMBERS = ("size", "severity", "seed", "value", "low", "high", "n")
_KEY = ("metric", "lens", *CONDITION, "model")
_LISTED = 12  # names in a message


@dataclass(frozen=True, eq=False)
class Analysis:
    """The result of an analysis: a table, and notes on what to know before reading it."""

    notes: tuple[str, ...]
    _frame: Any

    def frame(self) -> Any:
        """Return the table (polars); rows and columns are described by the class."""
        return self._frame


def read_results(frame: Any) -> Any:
    """Any frame that narwhals can read as a polars frame with the columns of a store, checked by name."""
    import narwhals as nw

    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise InputError(f"{type(frame).__name__} is not a data frame; pass store.frame()") from error
    missing = [name for name in (*_TEXT, *_NUMBERS) if name not in table.columns]
    if missing:
        raise InputError(f"the results have no column {missing[0]!r}; pass store.frame(), or a frame with its columns")
    casts = [pl.col(name).cast(pl.String) for name in _TEXT]
    return table.to_polars().with_columns(*casts, *(pl.col(n).cast(pl.Float64).fill_nan(None) for n in _NUMBERS))


def lens_words(lens: str | Sequence[str]) -> list[str]:
    """Words of one lens or of several, as a store has them."""
    words = list(lens) if isinstance(lens, Sequence) and not isinstance(lens, str) else [lens]
    for word in words:
        require_name(word, "lens")
    return words


def require_name(name: object, what: str) -> None:
    """Refuse what is not the text of a name."""
    if not isinstance(name, str):
        raise InputError(f"{what} must be the name of one in the results, not {type(name).__name__}")


def only(table: Any, column: str, *names: object) -> Any:
    """Select the rows with one of these values in a column; refuse a value that does not occur, or a name that is no text."""
    present = table[column].drop_nulls().unique().sort().to_list()
    for name in names:
        if column != "severity":
            require_name(name, column)
        if name not in present:
            words = [str(value) for value in present if value != ""]
            listed = ", ".join(words[:_LISTED]) + (", ..." if len(words) > _LISTED else "")
            raise InputError(f"there is no {column} {name!r} among the results; there are {listed or 'none'}")
    return table.filter(pl.col(column).is_in(list(names)))


def points(
    frame: Any,
    metrics: Sequence[str],
    *,
    lens: str | Sequence[str] = "top-label",
    selection: str = "all",
    recalibrator: str = "none",
    dataset: str | None = None,
) -> tuple[Any, list[str]]:
    """Select one number per metric, model and condition, and write notes about them.

    Parameters
    ----------
    frame : data frame
        Results of a store (`store.frame()`), or any frame with its columns.
    metrics : sequence of str
        Names of metrics. A score of whole predictions (such as nll) has no lens and is there under any.
    lens : str or sequence of str, default "top-label"
        What is judged.
    selection : str, default "all"
        Which rows are judged.
    recalibrator : str, default "none"
        Recalibration method.
    dataset : str, default None
        One dataset; None: all.

    Returns
    -------
    tuple of polars.DataFrame and list of str
        Columns metric, lens, dataset, severity, model, family, size, value, low, high, n, seeds, sorted; and notes.

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
    >>> table, notes = tc.study.points(pl.DataFrame(rows), ["nll"])
    >>> table.select("model", "value", "seeds").rows()
    [('a', 0.4, 1), ('b', 0.7, 1), ('c', 1.3, 1)]
    """
    table = read_results(frame)
    lenses = lens_words(lens)
    for column, name in (("selection", selection), ("recalibrator", recalibrator), ("dataset", dataset)):
        if name is not None:
            table = only(table, column, name)
    table = table.filter(pl.col("lens").is_in([*lenses, ""]))
    names = table["metric"].unique().sort().to_list()
    for name in metrics:
        require_name(name, "metric")
        if name not in names:
            words = " or ".join(map(repr, lenses))
            raise InputError(
                f"there is no metric {name!r} with the lens {words}; there are {', '.join(names) or 'none'}"
            )
    table = table.filter(pl.col("metric").is_in(list(metrics)))
    remarks = []
    infinite = table.filter(~pl.col("value").is_finite().fill_null(False)).unique(_KEY).sort(_KEY)
    for row in infinite.iter_rows(named=True):
        what = "missing" if row["value"] is None else "infinite"
        remarks.append((f"{row['metric']} is {what} and left out", f"{row['model']} {where(row)}"))
    table = table.filter(pl.col("value").is_finite())
    if table.is_empty():
        raise InputError("none of these numbers is finite")
    for row in table.filter(table.select(*_KEY, "seed").is_duplicated()).iter_rows(named=True):
        raise InputError(
            f"two values of {row['metric']} for {row['model']} {where(row)} (seed {row['seed']:g}): models need names of their own"
        )
    ends = [pl.when(pl.col(n).null_count() == 0).then(pl.col(n).mean()).alias(n) for n in ("low", "high")]
    table = table.group_by(_KEY).agg(
        pl.col("family", "size").drop_nulls().first(),
        pl.col("value").mean(),
        *ends,
        pl.col("n").mean(),
        pl.len().cast(pl.Int64).alias("seeds"),
        (pl.col("value").max() - pl.col("value").min()).alias("apart"),
    )
    notes = [*gather(remarks), *_unequal_rows(table), *_variation_between_seeds(table)]
    return table.drop("apart").sort(_KEY), notes


def with_error(frame: Any, metrics: Sequence[str], **choice: Any) -> tuple[Any, list[str]]:
    """Points with the classification error of the same model beside them: error, error_low, error_high."""
    values, notes = points(frame, metrics, **choice)
    errors, _ = points(frame, ["error"], **choice)
    names = {"value": "error", "low": "error_low", "high": "error_high"}
    errors = errors.select(*CONDITION, "model", *(pl.col(name).alias(to) for name, to in names.items()))
    return values.join(errors, on=[*CONDITION, "model"], how="inner").sort(_KEY), notes


def join_covariate(table: Any, frame: Any, name: str) -> Any:
    """Points with a further column of the results."""
    if name in table.columns:
        return table
    covariate = read_results(frame).select("model", *CONDITION, name).unique(["model", *CONDITION], keep="first")
    return table.join(covariate, on=["model", *CONDITION], how="left")


def conditions(table: Any) -> list[tuple[str, float]]:
    """Return the distinct (dataset, severity) pairs of a table, sorted."""
    return [(str(d), float(s)) for d, s in table.select(*CONDITION).unique().sort(*CONDITION).iter_rows()]


def of_condition(table: Any, dataset: str, severity: float) -> Any:
    """Select the rows of one dataset at one severity."""
    return table.filter((pl.col("dataset") == dataset) & (pl.col("severity") == severity))


def by_condition(table: Any, *further: str) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield the parts of a table by dataset, severity and further columns, each with its values by name."""
    names = [*further, *CONDITION]
    for key, part in table.partition_by(names, as_dict=True, maintain_order=True).items():
        yield dict(zip(names, key, strict=True)), part


def make_frame(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Make a table of records, with the type of a column inferred from all rows."""
    return pl.DataFrame(rows, infer_schema_length=None)


def where(row: Mapping[str, Any]) -> str:
    """Write a condition as text, such as "on digits at severity 3"; severity 0 is not mentioned."""
    return f"on {row['dataset']}" + (f" at severity {row['severity']:g}" if row["severity"] else "")


def _unequal_rows(table: Any) -> list[str]:
    """Write notes on conditions under which models were judged on different numbers of rows, or of seeds."""
    remarks = []
    n = pl.col("n")
    spread = table.group_by(*CONDITION).agg(n.min().alias("low"), n.max().alias("high"), pl.col("seeds").n_unique())
    for row in spread.sort(*CONDITION).iter_rows(named=True):
        if row["low"] != row["high"]:
            text = f"models were judged on different rows ({row['low']:g} to {row['high']:g} of them)"
            remarks.append((f"{text}, so that part of their difference may be that of the rows", where(row)))
        if row["seeds"] > 1:
            remarks.append(("models have different numbers of seeds", where(row)))
    return gather(remarks)


def _variation_between_seeds(table: Any) -> list[str]:
    """Write a note on values whose range over seeds exceeds the width of their interval, which is about rows only."""
    several = table.filter((pl.col("seeds") > 1) & pl.col("low").is_not_null() & pl.col("high").is_not_null())
    beyond = several.filter(pl.col("apart") > pl.col("high") - pl.col("low")).height
    text = (
        f"{beyond} of {several.height} numbers differ between seeds by more than the width of their intervals: "
        "intervals do not include the variation between trainings"
    )
    return [text] if beyond else []


def gather(remarks: Sequence[tuple[str, str]], limit: int = 3) -> list[str]:
    """Join remarks (text, condition) to one note per text, with its conditions; name at most `limit` of them.

    >>> gather([("too few models", "on digits"), ("too few models", "on wine"), ("no intervals", "on wine")])
    ['too few models (on digits, on wine)', 'no intervals (on wine)']
    """
    by_text: dict[str, list[str]] = {}
    for text, condition in remarks:
        by_text.setdefault(text, []).append(condition)
    more = {text: f" and {len(all_) - limit} more" if len(all_) > limit else "" for text, all_ in by_text.items()}
    return [f"{text} ({', '.join(all_[:limit])}{more[text]})" for text, all_ in by_text.items()]


def numbers(table: Any, *names: str) -> list[np.ndarray]:
    """Return columns as float64 arrays, with NaN for null."""
    return [table[name].cast(pl.Float64).fill_null(float("nan")).to_numpy() for name in names]


# ----------------------------------------------------------------------------------------------------
# Correlation across models, with an interval, and the line through them

Method = Literal["pearson", "spearman", "kendall"]
METHODS: tuple[Method, ...] = ("pearson", "spearman", "kendall")
MIN_MODELS = 5  # models below which no interval exists
FEW = 10  # models below which even a strong correlation is hardly known


class Correlation(NamedTuple):
    """A coefficient over models with its interval; NaN where all values are equal, limits NaN below 5 models."""

    value: float
    low: float
    high: float


def correlate(x: ArrayLike, y: ArrayLike, method: Method = "kendall", *, level: float = 0.95) -> Correlation:
    """Compute a correlation coefficient with its interval; NaN for fewer than two models or a constant column.

    >>> result = correlate([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 6, 5])
    >>> round(result.value, 3), round(result.low, 3), round(result.high, 3)
    (0.867, 0.383, 0.977)
    """
    from scipy import stats

    options.choice(method, METHODS, "method")
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise InputError(f"a correlation needs two columns of one length, not of shapes {a.shape} and {b.shape}")
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return Correlation(np.nan, np.nan, np.nan)
    coefficient: Any = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}[method]
    value = float(coefficient(a, b)[0])
    low, high = correlation_bounds(np.array([value]), len(a), method, level)
    return Correlation(value, float(low[0]), float(high[0]))


def correlation_bounds(value: Float64s, models: int, method: Method, level: float) -> tuple[Float64s, Float64s]:
    """Interval of each coefficient by Fisher's transformation; NaN where there are too few models."""
    from scipy.special import ndtri

    if models < MIN_MODELS:
        return np.full_like(value, np.nan), np.full_like(value, np.nan)
    largest = 1 - 2 / (models * (models - 1))
    inside = np.clip(value, -largest, largest)
    variance = {
        "pearson": np.full_like(value, 1 / (models - 3)),
        "spearman": (1 + inside**2 / 2) / (models - 3),
        "kendall": np.full_like(value, 0.437 / (models - 4)),
    }[method]
    half_width = float(ndtri((1 + level) / 2)) * np.sqrt(variance)
    centre = np.arctanh(inside)
    return np.minimum(np.tanh(centre - half_width), value), np.maximum(np.tanh(centre + half_width), value)


class FittedLine(NamedTuple):
    """Least squares y = intercept + slope * x, the slope with Student's interval; NaN where the points do not tell."""

    slope: float = np.nan
    low: float = np.nan
    high: float = np.nan
    intercept: float = np.nan
    explained: float = np.nan  # share of the variance of y (R squared)


def fit_line(x: ArrayLike, y: ArrayLike, *, level: float = 0.95) -> FittedLine:
    """Fit a line by least squares, with a t-interval of the slope; the interval and R^2 are NaN for fewer than three points.

    >>> line = fit_line([0, 1, 2, 3], [1, 3, 5, 7])
    >>> round(line.slope, 12), round(line.intercept, 12), round(line.explained, 12)
    (2.0, 1.0, 1.0)
    """
    from scipy import stats

    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if len(a) < 2 or np.ptp(a) == 0:
        return FittedLine()
    fit = stats.linregress(a, b)
    if len(a) < 3:
        return FittedLine(float(fit.slope), intercept=float(fit.intercept))
    half_width = float(stats.t.ppf((1 + level) / 2, len(a) - 2) * fit.stderr)
    explained = float(fit.rvalue**2) if np.ptp(b) > 0 else np.nan
    return FittedLine(float(fit.slope), fit.slope - half_width, fit.slope + half_width, float(fit.intercept), explained)


def fit_groups(
    table: Any, by: Sequence[str], x: str, y: str, *, methods: Mapping[str, Method] | None = None, level: float = 0.95
) -> Any:
    """Fit the line of y on x in every group of a table, and correlate the two by `methods` (column -> coefficient)."""
    rows = []
    for part in table.partition_by(by, maintain_order=True):
        across, up = numbers(part, x, y)
        row = [*part.select(by).row(0), part.height, *fit_line(across, up, level=level)]
        for method in (methods or {}).values():
            row += correlate(across, up, method, level=level)
        rows.append(row)
    names = ["slope", "slope_low", "slope_high", "intercept", "explained"]
    names += [f"{name}{end}" for name in methods or () for end in ("", "_low", "_high")]
    schema = {name: table.schema[name] for name in by} | {"models": pl.Int64} | dict.fromkeys(names, pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row")


def with_all_families(table: Any) -> Any:
    """Append to the rows that have a family a copy of all rows with family null, which stands for all models."""
    whole = table.with_columns(pl.lit(None, pl.String).alias("family"))
    return pl.concat([whole, table.filter(pl.col("family").is_not_null())])


def few_models(table: Any) -> list[str]:
    """Write notes on conditions with too few models for a correlation."""
    remarks = []
    for condition, part in by_condition(table):
        count = part["model"].n_unique()
        if count < MIN_MODELS:
            text = f"{count} models are too few for a correlation with an interval; at least {MIN_MODELS} are needed"
            remarks.append((text, where(condition)))
        elif count < FEW:
            text = f"with {count} models even a strong correlation is hardly known; read its interval"
            remarks.append((text, where(condition)))
    return gather(remarks)


def references(
    conditions: Sequence[tuple[str, float]], reference: str | Mapping[str, str] | None
) -> tuple[dict[tuple[str, float], tuple[str, float]], list[str]]:
    """Map every shifted condition to its clean one, and write notes on those that have none.

    Without a reference a dataset's severity 0 is its clean version. A name makes that dataset, at severity 0, the clean version
    of all others; a mapping {shifted dataset: clean dataset} does so one by one.

    >>> references([("digits", 0.0), ("digits", 3.0), ("street", 0.0)], None)[0]
    {('digits', 3.0): ('digits', 0.0)}
    >>> references([("digits", 0.0), ("digits", 3.0), ("street", 0.0)], "digits")[0]
    {('digits', 3.0): ('digits', 0.0), ('street', 0.0): ('digits', 0.0)}
    """
    datasets = sorted({dataset for dataset, _ in conditions})
    if isinstance(reference, Mapping):
        named = {**{name: name for name in datasets}, **reference}
    else:
        named = {name: reference or name for name in datasets}
    for clean in sorted(set(named.values())):
        if clean not in datasets:
            raise InputError(
                f"the reference {clean!r} is not a dataset of the results; there are {', '.join(datasets)}"
            )
    clean_of, notes = {}, []
    for dataset, severity in conditions:
        clean_condition = (named[dataset], 0.0)
        if clean_condition == (dataset, severity):
            continue
        if clean_condition in conditions:
            clean_of[dataset, severity] = clean_condition
        else:
            notes.append(f"{dataset} has no results at severity 0 to compare with; name its clean dataset as reference")
    return clean_of, list(dict.fromkeys(notes))
