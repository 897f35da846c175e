"""The analyses of a study as tables: one function each, which gives its notes, the names of its columns, and its rows.

A cell is what is shown and what it sorts by. A column is its name and the cell that it makes of a row.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from truecal.errors import InputError

Shown = tuple[str, float | str]
Row = list[Shown]
Table = tuple[Sequence[str], list[str], list[Row]]
Column = tuple[str, Callable[[Mapping[str, Any]], Shown]]


def trends(result: Any) -> Table:
    rows = [row for row in result.trends().rows(named=True) if row["family"] is None]
    slope, tau = _with_ends("Slope", "slope"), _with_ends("Kendall's tau", "kendall", "Interval of tau")
    return _table(result.notes, rows, *_PLACE, _whole("Models", "models"), *slope, *tau)


def fronts(result: Any) -> Table:
    always = result.always
    first = f"on every front: {', '.join(always)}" if always else "no model is on every front"
    share: Column = ("Share", lambda row: (f"{row['share']:.0%}", row["share"]))
    counts = (_whole("On the front", "fronts"), _whole("Of", "of"), share)
    return _table([first, *result.notes], result.counts().rows(named=True), *_MODEL, *counts)


def slopes(result: Any) -> Table:
    return _table(
        result.notes,
        result.slopes().sort("dataset", "slope").rows(named=True),
        *(*_MODEL, _PLACE[0]),
        *_with_ends("Metric per step", "slope"),
        *_with_ends("Error per step", "error_slope", "Interval of error", ("error_low", "error_high")),
    )


def correlations(result: Any) -> Table:
    rows = [row for row in result.correlations().rows(named=True) if row["method"] == "kendall"]
    tau = _with_ends("Kendall's tau", "value", ends=_ENDS)
    return _table(result.notes, rows, *_PLACE, _text("Pair", "pair"), _whole("Models", "models"), *tau)


def standing_out(result: Any) -> Table:
    import polars as pl

    table = result.frame().filter(pl.col("standardized").abs() > 2).sort(pl.col("standardized").abs(), descending=True)
    numbers = (_number("Value", "value"), _number("By the line", "expected"))
    who = (_text("Model", "model"), _text("Score", "metric"), *_PLACE)
    return _table(result.notes, table.rows(named=True), *who, *numbers, _number("Standard errors", "standardized", 1))


def bins(result: Any) -> Table:
    return _table(
        result.notes,
        result.frame().sort("severity", "dataset", maintain_order=True).rows(named=True),
        *_PLACE,
        _text("Metric", "metric"),
        ("Bins", lambda row: ("" if row["bins"] is None else str(row["bins"]), float(row["bins"] or 0))),
        ("Biased", lambda row: _plain("no" if row["debiased"] else "yes")),
        *_with_ends("Slope", "slope", ends=_ENDS),
    )


def ranks(result: Any) -> Table:
    return _table(
        result.notes,
        result.frame().sort("severity", "tau").rows(named=True),
        *_PLACE,
        ("Metrics", lambda row: _plain(f"{row['metric_a']} and {row['metric_b']}")),
        *_with_ends("Kendall's tau", "tau", ends=_ENDS),
        *(_whole("Pairs of models", "pairs"), _whole("Flips", "flips")),
        _whole("Supported flips", "supported_flips", _UNKNOWN),
    )


def effect(result: Any) -> Table:
    return _table(
        result.notes,
        result.summary().rows(named=True),
        *(*_PLACE, _number("Before", "before"), _number("After", "after")),
        ("Improved", lambda row: (f"{row['improved']} of {row['models']}", float(row["improved"]))),
        _whole("Beyond intervals", "improved_supported", _UNKNOWN),
        *_with_ends("Kendall's tau", "tau"),
    )


def temperatures(fits: Any, frame: Any) -> Table:
    """Per family and recalibrator: models, and the least, middle and largest temperature."""
    import polars as pl

    about = frame.select("model", "family").unique("model", keep="first")
    known = fits.filter(pl.col("temperature").is_not_null()).join(about, on="model", how="left")
    if not known.height:
        raise InputError("it holds no fitted temperatures")
    groups = known.group_by("dataset", "family").agg(
        pl.col("model").n_unique().alias("models"),
        *(getattr(pl.col("temperature"), name)().alias(name) for name in ("min", "median", "max")),
        (pl.col("temperature") > 1).sum().alias("over"),
        pl.len().alias("fits"),
        pl.col("rows").max(),
    )
    return _table(
        [],
        groups.sort("dataset", "median").rows(named=True),
        *(_text("Family", "family"), _text("Fitted on", "dataset"), _whole("Models", "models")),
        *(_number("Lowest", "min", 3), _number("Median", "median", 3), _number("Highest", "max", 3)),
        ("Overconfident", lambda row: (f"{row['over']} of {row['fits']}", float(row["over"]))),
        _whole("Rows fitted on", "rows"),
    )


def dominated(result: Any) -> Table:
    pairs = result.always
    first = [f"always dominated: {'; '.join(f'{a} by {b}' for a, b in pairs)}"] if pairs else []
    table = result.frame().sort("dominated", "share", descending=True)
    return _table(
        [*first, *result.notes],
        [row for row in table.rows(named=True) if row["beaten"]],
        *(_text("Family", "family"), _text("Beaten by", "by"), *_PLACE),
        ("Models beaten", lambda row: (f"{row['beaten']} of {row['models']}", row["share"])),
        ("Dominated", lambda row: _plain("yes" if row["dominated"] else "")),
    )


def log_lines(result: Any) -> Table:
    counts = (_text("Family", "family"), _whole("Models", "models"), _whole("Points", "points"))
    fitted = (_number("Intercept", "intercept", 3), _number("R squared", "explained", 3))
    return _table(result.notes, result.lines().rows(named=True), *counts, *_with_ends("Slope", "slope"), *fitted)


def _table(notes: Sequence[str], rows: Iterable[Mapping[str, Any]], *columns: Column) -> Table:
    return notes, [name for name, _ in columns], [[cell(row) for _, cell in columns] for row in rows]


def _plain(value: object) -> Shown:
    return str(value), str(value)


def _text(title: str, name: str) -> Column:
    return title, lambda row: _plain("" if row[name] is None else row[name])


def _whole(title: str, name: str, missing: Shown = ("", -1.0)) -> Column:
    """A count, and what stands for one that is not there."""
    return title, lambda row: missing if row[name] is None else (f"{row[name]:,}", float(row[name]))


def _number(title: str, name: str, digits: int = 4) -> Column:
    def cell(row: Mapping[str, Any]) -> Shown:
        value = row[name]
        return (f"{value:.{digits}f}", float(value)) if value is not None and isfinite(value) else ("", -1e9)

    return title, cell


def _with_ends(
    title: str, name: str, interval: str = "Interval", ends: tuple[str, str] | None = None
) -> tuple[Column, Column]:
    """A number, and its interval in a column of its own."""
    low, high = ends or (f"{name}_low", f"{name}_high")

    def cell(row: Mapping[str, Any]) -> Shown:
        known = all(row[end] is not None and isfinite(row[end]) for end in (low, high))
        return (f"{row[low]:.3f} to {row[high]:.3f}", float(row[low])) if known else ("", -1e9)

    return _number(title, name, 3), (interval, cell)


_UNKNOWN = ("unknown", -1.0)  # a count that is unknown without intervals
_ENDS = ("low", "high")
_MODEL = (_text("Model", "model"), _text("Family", "family"))
_PLACE: tuple[Column, Column] = (
    _text("Dataset", "dataset"),
    ("Severity", lambda row: (f"{row['severity']:g}", float(row["severity"]))),
)
