"""The analyses of a study as tables: one function each, which gives its notes, the names of its columns, and its rows.

A cell is what is shown and what it sorts by.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from truecal.errors import InputError

Row = list[tuple[str, float | str]]
Table = tuple[Sequence[str], list[str], list[Row]]


def trends(found: Any) -> Table:
    rows = [
        [*_place(row), _whole(row["models"]), *_with_ends(row, "slope"), *_with_ends(row, "kendall")]
        for row in found.trends().rows(named=True)
        if row["family"] is None
    ]
    return found.notes, ["Dataset", "Severity", "Models", "Slope", "Interval", "Kendall's tau", "Interval of tau"], rows


def fronts(found: Any) -> Table:
    always = found.always
    first = f"on every front: {', '.join(always)}" if always else "no model is on every front"
    rows = [
        [
            _text(row["model"]),
            _text(row["family"] or ""),
            _whole(row["fronts"]),
            _whole(row["of"]),
            (f"{row['share']:.0%}", row["share"]),
        ]
        for row in found.counts().rows(named=True)
    ]
    return [first, *found.notes], ["Model", "Family", "On the front", "Of", "Share"], rows


def slopes(found: Any) -> Table:
    rows = [
        [
            _text(row["model"]),
            _text(row["family"] or ""),
            _text(row["dataset"]),
            *_with_ends(row, "slope", "slope_low", "slope_high"),
            *_with_ends(row, "error_slope", "error_low", "error_high"),
        ]
        for row in found.slopes().sort("dataset", "slope").rows(named=True)
    ]
    header = ["Model", "Family", "Dataset", "Metric per step", "Interval", "Error per step", "Interval of error"]
    return found.notes, header, rows


def correlations(found: Any) -> Table:
    rows = [
        [*_place(row), _text(row["pair"]), _whole(row["models"]), *_with_ends(row, "value", "low", "high")]
        for row in found.correlations().rows(named=True)
        if row["method"] == "kendall"
    ]
    return found.notes, ["Dataset", "Severity", "Pair", "Models", "Kendall's tau", "Interval"], rows


def standing_out(found: Any) -> Table:
    import polars as pl

    table = found.frame().filter(pl.col("standardized").abs() > 2).sort(pl.col("standardized").abs(), descending=True)
    rows = [
        [
            _text(row["model"]),
            _text(row["metric"]),
            *_place(row),
            _number(row["value"]),
            _number(row["expected"]),
            _number(row["standardized"], 1),
        ]
        for row in table.rows(named=True)
    ]
    return found.notes, ["Model", "Score", "Dataset", "Severity", "Value", "By the line", "Standard errors"], rows


def bins(found: Any) -> Table:
    rows = [
        [
            *_place(row),
            _text(row["metric"]),
            ("" if row["bins"] is None else str(row["bins"]), float(row["bins"] or 0)),
            _text("no" if row["debiased"] else "yes"),
            *_with_ends(row, "slope", "low", "high"),
        ]
        for row in found.frame().sort("severity", "dataset", maintain_order=True).rows(named=True)
    ]
    return found.notes, ["Dataset", "Severity", "Metric", "Bins", "Biased", "Slope", "Interval"], rows


def ranks(found: Any) -> Table:
    rows = [
        [
            *_place(row),
            _text(f"{row['metric_a']} and {row['metric_b']}"),
            *_with_ends(row, "tau", "low", "high"),
            _whole(row["pairs"]),
            _whole(row["flips"]),
            _known(row["supported_flips"]),
        ]
        for row in found.frame().sort("severity", "tau").rows(named=True)
    ]
    header = [
        "Dataset",
        "Severity",
        "Metrics",
        "Kendall's tau",
        "Interval",
        "Pairs of models",
        "Flips",
        "Supported flips",
    ]
    return found.notes, header, rows


def effect(found: Any) -> Table:
    rows = [
        [
            *_place(row),
            _number(row["before"]),
            _number(row["after"]),
            (f"{row['improved']} of {row['models']}", float(row["improved"])),
            _known(row["improved_supported"]),
            *_with_ends(row, "tau"),
        ]
        for row in found.summary().rows(named=True)
    ]
    header = ["Dataset", "Severity", "Before", "After", "Improved", "Beyond intervals", "Kendall's tau", "Interval"]
    return found.notes, header, rows


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
    rows = [
        [
            _text(row["family"] or ""),
            _text(row["dataset"]),
            _whole(row["models"]),
            *(_number(row[name], 3) for name in ("min", "median", "max")),
            (f"{row['over']} of {row['fits']}", float(row["over"])),
            _whole(row["rows"]),
        ]
        for row in groups.sort("dataset", "median").rows(named=True)
    ]
    header = ["Family", "Fitted on", "Models", "Lowest", "Median", "Highest", "Overconfident", "Rows fitted on"]
    return [], header, rows


def dominated(found: Any) -> Table:
    pairs = found.always
    first = [f"always dominated: {'; '.join(f'{a} by {b}' for a, b in pairs)}"] if pairs else []
    rows = [
        [
            _text(row["family"]),
            _text(row["by"]),
            *_place(row),
            (f"{row['beaten']} of {row['models']}", row["share"]),
            _text("yes" if row["dominated"] else ""),
        ]
        for row in found.frame().sort("dominated", "share", descending=True).rows(named=True)
        if row["beaten"]
    ]
    return [*first, *found.notes], ["Family", "Beaten by", "Dataset", "Severity", "Models beaten", "Dominated"], rows


def log_lines(found: Any) -> Table:
    rows = [
        [
            _text(row["family"] or ""),
            _whole(row["models"]),
            _whole(row["points"]),
            *_with_ends(row, "slope"),
            _number(row["intercept"], 3),
            _number(row["explained"], 3),
        ]
        for row in found.lines().rows(named=True)
    ]
    header = ["Family", "Models", "Points", "Slope", "Interval", "Intercept", "R squared"]
    return found.notes, header, rows


def _text(value: object) -> tuple[str, str]:
    return str(value), str(value)


def _place(row: Mapping[str, Any]) -> Row:
    return [_text(row["dataset"]), (f"{row['severity']:g}", float(row["severity"]))]


def _whole(value: Any) -> tuple[str, float | str]:
    return ("", -1.0) if value is None else (f"{value:,}", float(value))


def _known(value: Any) -> tuple[str, float | str]:
    """A count that is unknown without intervals."""
    return ("unknown", -1.0) if value is None else _whole(value)


def _number(value: float | None, digits: int = 4) -> tuple[str, float | str]:
    return (f"{value:.{digits}f}", float(value)) if value is not None and isfinite(value) else ("", -1e9)


def _with_ends(row: Mapping[str, Any], name: str, low: str | None = None, high: str | None = None) -> Row:
    """A number, and its interval in a cell of its own."""
    ends = [row[low or f"{name}_low"], row[high or f"{name}_high"]]
    known = all(end is not None and isfinite(end) for end in ends)
    value = _number(row[name], 3)
    return [value, (f"{ends[0]:.3f} to {ends[1]:.3f}", float(ends[0])) if known else ("", -1e9)]
