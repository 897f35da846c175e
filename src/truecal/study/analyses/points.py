"""Points: one number per model and condition, out of the long frame of a store.

A condition is a dataset at a severity of shift (0 is clean). Seeds of one model are averaged: `value`, `low` and `high` are the
means over its seeds, so that the interval is that of a single run and rather too wide than too narrow for the mean.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from truecal import options
from truecal.errors import InputError
from truecal.study.store import pl
from truecal.types import Float64s

# ----------------------------------------------------------------------------------------------------
# Points: one number per model and condition, out of the long frame of a store

_TEXT = ("model", "family", "dataset", "recalibrator", "lens", "selection", "metric")
_NUMBERS = ("size", "severity", "seed", "value", "low", "high", "n")
CONDITION = ("dataset", "severity")
_KEY = ("metric", "lens", *CONDITION, "model")


@dataclass(frozen=True, eq=False)
class Analysed:
    """What an analysis found: a table, and notes on what to know before reading it."""

    notes: tuple[str, ...]
    _frame: Any

    def frame(self) -> Any:
        """The table (polars); the class says what a row is and which columns there are."""
        return self._frame


def results(frame: Any) -> Any:
    """Any frame that narwhals can read as a polars frame with the columns of a store, checked by name."""
    import narwhals as nw

    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise InputError(f"{type(frame).__name__} is not a data frame; pass store.frame()") from error
    missing = [name for name in (*_TEXT, *_NUMBERS) if name not in table.columns]
    if missing:
        raise InputError(f"the results have no column {missing[0]!r}; pass store.frame(), or a frame with its columns")
    table = table.select(*_TEXT, *_NUMBERS).to_polars()
    casts = [pl.col(name).cast(pl.String) for name in _TEXT]
    return table.with_columns(*casts, *(pl.col(name).cast(pl.Float64).fill_nan(None) for name in _NUMBERS))


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


def only(table: Any, column: str, name: str) -> Any:
    """The rows with this name in a column; a name that is not text, or not there, is refused."""
    require_name(name, column)
    part = table.filter(pl.col(column) == name)
    if part.is_empty():
        known = ", ".join(map(repr, table[column].drop_nulls().unique().sort().to_list()))
        raise InputError(f"there is no {column} {name!r} in the results; there is {known or 'nothing'}")
    return part


def points(
    frame: Any,
    metrics: Sequence[str],
    *,
    lens: str | Sequence[str] = "top-label",
    selection: str = "all",
    recalibrator: str = "none",
    dataset: str | None = None,
) -> tuple[Any, list[str]]:
    """Select one number per metric, model and condition, and say what to know about them.

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
    dataset : str, optional
        One dataset; default all.

    Returns
    -------
    tuple of polars.DataFrame and list of str
        Columns metric, lens, dataset, severity, model, family, size, value, low, high, n, seeds, sorted; and notes.

    Raises
    ------
    InputError
        If a name is not in the results, or a model has two values under one condition and seed.
    """
    table = results(frame)
    lenses = lens_words(lens)
    for column, name in (("selection", selection), ("recalibrator", recalibrator), ("dataset", dataset)):
        if name is not None:
            table = only(table, column, name)
    table = table.filter(pl.col("lens").is_in([*lenses, ""]))
    known = table["metric"].unique().sort().to_list()
    for name in metrics:
        require_name(name, "metric")
        if name not in known:
            raise InputError(
                f"there is no metric {name!r} with the lens {' or '.join(map(repr, lenses))}; "
                f"there are {', '.join(known) or 'none'}"
            )
    table = table.filter(pl.col("metric").is_in(list(metrics)))
    remarks = []
    for row in (
        table.filter(~pl.col("value").is_finite().fill_null(False)).unique(_KEY).sort(_KEY).iter_rows(named=True)
    ):
        what = "missing" if row["value"] is None else "infinite"
        remarks.append((f"{row['metric']} is {what} and left out", f"{row['model']} {where(row)}"))
    table = table.filter(pl.col("value").is_finite())
    if table.is_empty():
        raise InputError("none of the wanted numbers is finite")
    twice = table.filter(table.select(*_KEY, "seed").is_duplicated())
    if not twice.is_empty():
        row = twice.row(0, named=True)
        raise InputError(
            f"two values of {row['metric']} for {row['model']} {where(row)} (seed {row['seed']:g}): models need names of their own"
        )

    def whole(name: str) -> Any:
        return pl.when(pl.col(name).null_count() == 0).then(pl.col(name).mean()).alias(name)

    table = table.group_by(_KEY).agg(
        pl.col("family").drop_nulls().first(),
        pl.col("size").drop_nulls().first(),
        pl.col("value").mean(),
        whole("low"),
        whole("high"),
        pl.col("n").mean(),
        pl.len().cast(pl.Int64).alias("seeds"),
        (pl.col("value").max() - pl.col("value").min()).alias("apart"),
    )
    notes = [*gathered(remarks), *_unequal(table), *_between_seeds(table)]
    return table.drop("apart").sort(_KEY), notes


def with_error(frame: Any, metrics: Sequence[str], **choice: Any) -> tuple[Any, list[str]]:
    """Points with the classification error of the same model beside them: error, error_low, error_high."""
    values, notes = points(frame, metrics, **choice)
    errors, _ = points(frame, ["error"], **choice)
    sides = {"value": "error", "low": "error_low", "high": "error_high"}
    errors = errors.select(*CONDITION, "model", *(pl.col(name).alias(to) for name, to in sides.items()))
    return values.join(errors, on=[*CONDITION, "model"], how="inner").sort(_KEY), notes


def conditions(table: Any) -> list[tuple[str, float]]:
    """The datasets and severities there are, sorted."""
    return [(str(d), float(s)) for d, s in table.select(*CONDITION).unique().sort(*CONDITION).iter_rows()]


def at(table: Any, dataset: str, severity: float) -> Any:
    """The points of one condition."""
    return table.filter((pl.col("dataset") == dataset) & (pl.col("severity") == severity))


def by_condition(table: Any, *further: str) -> Iterator[tuple[dict[str, Any], Any]]:
    """Parts of a table by dataset, severity and further columns, each with its values by name."""
    names = [*further, *CONDITION]
    for key, part in table.partition_by(names, as_dict=True, maintain_order=True).items():
        yield dict(zip(names, key, strict=True)), part


def where(row: Mapping[str, Any]) -> str:
    """A condition in words."""
    return f"on {row['dataset']}" + (f" at severity {row['severity']:g}" if row["severity"] else "")


def _unequal(table: Any) -> list[str]:
    """Conditions under which models were judged on different numbers of rows, or of seeds."""
    remarks = []
    spread = table.group_by(*CONDITION).agg(
        pl.col("n").min().alias("least"), pl.col("n").max().alias("most"), pl.col("seeds").n_unique().alias("kinds")
    )
    for row in spread.sort(*CONDITION).iter_rows(named=True):
        if row["least"] != row["most"]:
            text = f"models were judged on different rows ({row['least']:g} to {row['most']:g} of them)"
            remarks.append((f"{text}, so that part of their difference may be that of the rows", where(row)))
        if row["kinds"] > 1:
            remarks.append(("models have different numbers of seeds", where(row)))
    return gathered(remarks)


def _between_seeds(table: Any) -> list[str]:
    """Intervals are about the rows; seeds that differ by more than their width show what another training would change."""
    several = table.filter((pl.col("seeds") > 1) & pl.col("low").is_not_null() & pl.col("high").is_not_null())
    beyond = several.filter(pl.col("apart") > pl.col("high") - pl.col("low")).height
    if not beyond:
        return []
    return [
        f"{beyond} of {several.height} numbers differ between seeds by more than the width of their intervals: "
        "intervals do not include the variation between trainings"
    ]


def gathered(remarks: Sequence[tuple[str, str]], most: int = 3) -> list[str]:
    """Notes with the places they hold for: one for each text, however many places it was remarks of.

    >>> gathered([("too few models", "on digits"), ("too few models", "on wine"), ("no intervals", "on wine")])
    ['too few models (on digits, on wine)', 'no intervals (on wine)']
    """
    places: dict[str, list[str]] = {}
    for text, place in remarks:
        places.setdefault(text, []).append(place)
    more = {text: f" and {len(at) - most} more" if len(at) > most else "" for text, at in places.items()}
    return [f"{text} ({', '.join(at[:most])}{more[text]})" for text, at in places.items()]


def numbers(table: Any, *names: str) -> list[np.ndarray]:
    """Columns as float64 arrays; NaN where there is none."""
    return [table[name].cast(pl.Float64).fill_null(float("nan")).to_numpy() for name in names]


# ----------------------------------------------------------------------------------------------------
# Correlation across models, with an interval, and the line through them

Method = Literal["pearson", "spearman", "kendall"]
METHODS: tuple[Method, ...] = ("pearson", "spearman", "kendall")
FEWEST = 5  # models below which no interval exists
FEW = 10  # models below which even a strong correlation is hardly known


@dataclass(frozen=True)
class Correlation:
    """A coefficient over `models` models; NaN where all values are alike, bounds NaN below 5 models."""

    method: Method
    value: float
    low: float
    high: float
    models: int

    def columns(self, name: str) -> dict[str, float]:
        """The coefficient and its bounds as columns of a table."""
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}


def correlate(x: ArrayLike, y: ArrayLike, method: Method = "kendall", *, level: float = 0.95) -> Correlation:
    """The coefficient of two columns of numbers, one row per model.

    >>> found = correlate([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 6, 5])
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (0.867, 0.383, 0.977)
    """
    from scipy import stats

    options.choice(method, METHODS, "method")
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise InputError(f"a correlation needs two columns of one length, not of shapes {a.shape} and {b.shape}")
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return Correlation(method, np.nan, np.nan, np.nan, len(a))
    find: Any = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}[method]
    value = float(find(a, b)[0])
    low, high = correlation_bounds(np.array([value]), len(a), method, level)
    return Correlation(method, value, float(low[0]), float(high[0]), len(a))


def correlation_bounds(value: Float64s, models: int, method: Method, level: float) -> tuple[Float64s, Float64s]:
    """Interval of each coefficient; NaN where there are too few models."""
    from scipy.special import ndtri

    if models < FEWEST:
        return np.full_like(value, np.nan), np.full_like(value, np.nan)
    most = 1 - 2 / (models * (models - 1))
    held = np.clip(value, -most, most)
    spread = {
        "pearson": np.full_like(value, 1 / (models - 3)),
        "spearman": (1 + held**2 / 2) / (models - 3),
        "kendall": np.full_like(value, 0.437 / (models - 4)),
    }[method]
    reach = float(ndtri((1 + level) / 2)) * np.sqrt(spread)
    centre = np.arctanh(held)
    return np.minimum(np.tanh(centre - reach), value), np.maximum(np.tanh(centre + reach), value)


@dataclass(frozen=True)
class Line:
    """Least squares y = intercept + slope * x, the slope with Student's interval; NaN where the points do not tell."""

    slope: float
    intercept: float
    low: float
    high: float
    explained: float  # share of the variance of y (R squared)
    models: int

    def columns(self, name: str = "slope") -> dict[str, float]:
        """The slope and its bounds as columns of a table."""
        return {name: self.slope, f"{name}_low": self.low, f"{name}_high": self.high}


def fit_line(x: ArrayLike, y: ArrayLike, *, level: float = 0.95) -> Line:
    """The line through the models.

    >>> line = fit_line([0, 1, 2, 3], [1, 3, 5, 7])
    >>> round(line.slope, 12), round(line.intercept, 12), round(line.explained, 12)
    (2.0, 1.0, 1.0)
    """
    from scipy import stats

    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    n = len(a)
    if n < 2 or np.ptp(a) == 0:
        return Line(np.nan, np.nan, np.nan, np.nan, np.nan, n)
    fit = stats.linregress(a, b)
    if n < 3:
        return Line(float(fit.slope), float(fit.intercept), np.nan, np.nan, np.nan, n)
    reach = float(stats.t.ppf((1 + level) / 2, n - 2) * fit.stderr)
    explained = float(fit.rvalue**2) if np.ptp(b) > 0 else np.nan
    return Line(float(fit.slope), float(fit.intercept), fit.slope - reach, fit.slope + reach, explained, n)


def few_models(count: int, place: str) -> list[tuple[str, str]]:
    """What to say about a coefficient of so many models, and where."""
    if count < FEWEST:
        return [(f"{count} models are too few for a correlation with an interval; at least {FEWEST} are needed", place)]
    if count < FEW:
        return [(f"with {count} models even a strong correlation is hardly known; read its interval", place)]
    return []


# ----------------------------------------------------------------------------------------------------
# Which clean data a shifted dataset is compared with

Condition = tuple[str, float]


def references(
    conditions: Sequence[Condition], reference: str | Mapping[str, str] | None
) -> tuple[dict[Condition, Condition], list[str]]:
    """For every shifted condition its clean one, and notes on those that have none.

    Without a reference a dataset's own severity 0 is its clean version. A name makes that dataset, at severity 0, the clean version
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
