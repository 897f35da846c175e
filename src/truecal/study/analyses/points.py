"""Points: one number per model and condition, out of the long frame of a store.

A condition is a dataset at a severity of shift (0 is clean). Seeds of one model are averaged: `value`, `low` and `high` are the
means over its seeds, so that the interval is that of a single run and rather too wide than too narrow for the mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from truecal.errors import InputError
from truecal.study.store import polars

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

    pl = polars()
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


def points(
    frame: Any,
    metrics: Sequence[str],
    *,
    lens: str | Sequence[str] = "top-label",
    selection: str = "all",
    recalibrator: str = "none",
    dataset: str | None = None,
) -> tuple[Any, list[str]]:
    """The wanted numbers, sorted, with what to know about them.

    Columns: metric, lens, dataset, severity, model, family, size, value, low, high, n, seeds. A score of whole predictions (such
    as nll) has no lens and is found under any.
    """
    pl = polars()
    table = results(frame)
    lenses = [lens] if isinstance(lens, str) else list(lens)
    for name, wanted in (("selection", selection), ("recalibrator", recalibrator), ("dataset", dataset)):
        if wanted is not None:
            table = _only(table, name, wanted)
    for wanted in dict.fromkeys(metrics):
        there = table.filter((pl.col("metric") == wanted) & pl.col("lens").is_in([*lenses, ""]))
        if there.is_empty():
            known = table.filter(pl.col("lens").is_in([*lenses, ""]))["metric"].unique().sort().to_list()
            raise InputError(
                f"there is no metric {wanted!r} with the lens {' or '.join(map(repr, lenses))}; "
                f"there are {', '.join(known) or 'none'}"
            )
    table = table.filter(pl.col("metric").is_in(list(metrics)) & pl.col("lens").is_in([*lenses, ""]))
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
    pl = polars()
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
    pl = polars()
    return table.filter((pl.col("dataset") == dataset) & (pl.col("severity") == severity))


def where(row: dict[str, Any]) -> str:
    """A condition in words."""
    return f"on {row['dataset']}" + (f" at severity {row['severity']:g}" if row["severity"] else "")


def named(dataset: str, severity: float) -> str:
    return where({"dataset": dataset, "severity": severity})


def _only(table: Any, column: str, wanted: str) -> Any:
    kept = table.filter(polars().col(column) == wanted)
    if kept.is_empty():
        known = ", ".join(map(repr, table[column].drop_nulls().unique().sort().to_list()))
        raise InputError(f"there is no {column} {wanted!r} in the results; there is {known or 'nothing'}")
    return kept


def _unequal(table: Any) -> list[str]:
    """Conditions under which models were judged on different numbers of rows, or of seeds."""
    pl = polars()
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
    pl = polars()
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
    pl = polars()
    return [table[name].cast(pl.Float64).fill_null(float("nan")).to_numpy() for name in names]
