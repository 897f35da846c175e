"""Run the group-by, and turn the few rows that come back into sketches; or say what is wrong with the data."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from truecal.errors import InputError
from truecal.lens import Lens
from truecal.profile.sketch import Sketch
from truecal.profile.sketch_tally import SUMS
from truecal.scan.cell_expression import (
    KEY,
    MISSING,
    NO_LABEL,
    NO_PROBABILITY,
    NO_SUM,
    NO_WEIGHT,
    summed,
    with_cells,
)
from truecal.scan.judged import CLASS, Columns, judged
from truecal.types import Float64s, Indices

Group = tuple[object, ...]


@dataclass(frozen=True)
class Gathered:
    """Sketches of every group (one per class under a class-wise lens, else one), and how many rows had something missing."""

    sketches: dict[Group, tuple[Sketch, ...]]
    dropped: int


def gather(frame: Any, columns: Columns, lens: Lens, *, drop_null: bool) -> Gathered:
    """One pass over the data by the engine that holds them; only cells travel."""
    rows, per_class = judged(frame, columns, lens)
    weighted = columns.weight is not None
    by = [*columns.by, *([CLASS] if per_class else [])]
    table = _collected(summed(with_cells(rows, weighted=weighted), by, weighted=weighted))
    key = np.nan_to_num(_numbers(table, KEY), nan=MISSING)
    count = _numbers(table, "n")
    classes = columns.count if per_class else 1
    _refuse(key, count / classes, table, columns, drop_null=drop_null)
    groups = _groups(table, columns.by)
    which = _numbers(table, CLASS).astype(np.intp) if per_class else np.zeros(len(key), np.intp)
    dropped = round(float(count[key == MISSING].sum()) / classes)
    sketches: dict[Group, tuple[Sketch, ...]] = {}
    for group, mine in _members(groups).items():
        mine = mine[key[mine] >= 0]
        parts = tuple(_sketch(table, key, mine[which[mine] == k], columns.precision) for k in range(classes))
        if any(part.cells for part in parts):
            sketches[group] = parts
    return Gathered(sketches, dropped)


def _collected(lazy: Any) -> Any:
    if lazy.implementation.is_polars():
        return lazy.collect(engine="streaming")
    return lazy.collect()


def _numbers(table: Any, name: str) -> Float64s:
    return np.asarray(table[name].to_numpy(), np.float64)


def _groups(table: Any, by: tuple[str, ...]) -> list[Group]:
    columns = [table[name].to_list() for name in by]
    return list(zip(*columns, strict=True)) if columns else [()] * len(table)


def _members(groups: list[Group]) -> dict[Group, Indices]:
    """Which rows of the answer belong to each group."""
    numbers = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    code = np.array([numbers[group] for group in groups], np.intp)
    order = np.argsort(code, kind="stable")
    ends = np.cumsum(np.bincount(code, minlength=len(numbers)))
    return dict(zip(numbers, np.split(order, ends[:-1]), strict=True)) if numbers else {}


def _sketch(table: Any, key: Float64s, rows: Indices, precision: int) -> Sketch:
    names = set(table.columns)
    sums = {name: _numbers(table, name)[rows] for name in SUMS if name in names}
    fraction = _numbers(table, "fraction")[rows].max(initial=0.0) if "fraction" in names else 0.0
    low, high = _numbers(table, "low")[rows] + 0.0, _numbers(table, "high")[rows] + 0.0  # -0.0 becomes 0.0
    return Sketch.from_cells(key[rows] + 0.0, sums, low, high, fraction, precision)


def _refuse(key: Float64s, count: Float64s, table: Any, columns: Columns, *, drop_null: bool) -> None:
    """Raise for rows that fit into no cell, with their number."""
    found = {
        code: round(float(count[key == code].sum())) for code in (MISSING, NO_PROBABILITY, NO_LABEL, NO_WEIGHT, NO_SUM)
    }
    predictions = columns.probs[0] if len(columns.probs) == 1 else f"{columns.probs[0]} ... {columns.probs[-1]}"
    if found[MISSING] and not drop_null:
        raise InputError(
            f"{found[MISSING]} rows have missing values in {predictions} or {columns.label}"
            f"{'' if columns.weight is None else f' or {columns.weight}'}; fill them, or drop them with drop_null=True"
        )
    if found[NO_PROBABILITY]:
        wrong = key == NO_PROBABILITY
        seen = _numbers(table, "low")[wrong].min(), _numbers(table, "high")[wrong].max()
        values = f"such as {seen[0]:g} and {seen[1]:g}" if seen[0] != seen[1] else f"such as {seen[0]:g}"
        raise InputError(
            f"{found[NO_PROBABILITY]} rows of {predictions} are not in [0, 1] ({values}); repair them, or select them away"
        )
    if found[NO_LABEL]:
        what = f"an index from 0 to {columns.count - 1}" if columns.classes is None else "among the classes"
        raise InputError(
            f"{found[NO_LABEL]} labels in {columns.label!r} are not {what}; pass classes= with their names in order"
        )
    if found[NO_WEIGHT]:
        raise InputError(
            f"{found[NO_WEIGHT]} weights in {columns.weight!r} are negative or not finite; repair them first"
        )
    if found[NO_SUM]:
        raise InputError(
            f"{found[NO_SUM]} rows of {predictions} are not in [0, 1] or do not sum to 1 (tolerance 0.001); normalise them first"
        )
