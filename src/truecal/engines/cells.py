"""Judged scores and outcomes as engine expressions, and their sums gathered into sketches."""

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

import truecal as tc
from truecal.digits import count_of
from truecal.engines.columns import (
    KEY,
    OK,
    PRESENT,
    SELECTED,
    UNFIT,
    C,
    SourceColumns,
    W,
    Y,
    class_probs,
    count_failures,
    edges_of,
    label_index,
    number,
    sum_cells,
    with_cells,
)
from truecal.errors import InputError
from truecal.lenses.lens import Lens
from truecal.predictions import validation
from truecal.predictions.selection import group_value
from truecal.types import Float64s, Indices

# ----------------------------------------------------------------------------------------------------
# Lenses pushed down: which score and which outcome of a row are judged, as expressions an engine can run

CLASS = "_tc_class"
_LABEL = "_tc_label"


def judge_rows(frame: Any, columns: SourceColumns, lens: Lens, *, selected: bool) -> tuple[Any, bool]:
    """Select score (C), outcome (Y) and weight (W) of each row that a lens judges, with the marks whether it is valid.

    `frame` has PRESENT and, if `selected`, SELECTED; groups keep the names of `group_names`. Under a class-wise lens each row
    gives one row per class, with its position in CLASS; the second value returned says whether that is so.
    """
    groups = group_names(columns)
    carried = [nw.col(name).alias(alias) for name, alias in zip(columns.by, groups, strict=True)]
    if columns.weight is not None:
        carried.append(nw.col(columns.weight).cast(nw.Float64).alias(W))
    label = label_index(columns).alias(_LABEL)
    probabilities = class_probs(columns)
    names = [f"_tc_p{i}" for i in range(len(probabilities))]
    marks = [PRESENT, SELECTED] if selected else [PRESENT]
    frame = frame.select(*carried, label, *marks, *(p.alias(n) for p, n in zip(probabilities, names, strict=True)))
    probs = [nw.col(name) for name in names]
    if not columns.binary:
        total = nw.sum_horizontal(*probs)
        valid = nw.all_horizontal(*((p >= 0.0) & (p <= 1.0) for p in probs), ignore_nulls=False)
        sums_to_one = _near_one(total, validation.SUM_TOLERANCE)
        if columns.precision == 4:
            half = nw.all_horizontal(*map(_is_half_precision, probs), ignore_nulls=False)
            sums_to_one = sums_to_one | (half & _near_one(total, validation.HALF_TOLERANCE))
        frame = frame.with_columns((valid & sums_to_one).alias(OK))
    carried_names = [*groups, *([] if columns.weight is None else [W]), *([] if columns.binary else [OK]), *marks]
    condition = lens.pushed_down()
    if condition.kind == "classes":
        long = _row_per_class(frame, names, [*carried_names, _LABEL])
        is_class = nw.col(_LABEL) == nw.col(CLASS)
        return long.select(*carried_names, CLASS, C, _outcome_or_invalid(is_class, columns.count).alias(Y)), True
    if condition.kind == "top":
        return _top_label(frame, names, columns, carried_names), False
    assert condition.index is not None
    index = condition.index(columns.specimen)
    is_class = nw.col(_LABEL) == float(index)
    # the label of two classes is the outcome of the second
    outcome = nw.col(_LABEL) if columns.count == 2 and index == 1 else _outcome_or_invalid(is_class, columns.count)
    return frame.select(*carried_names, probs[index].alias(C), outcome.alias(Y)), False


def _near_one(total: Any, tolerance: float) -> Any:
    """Return an expression: whether a sum differs from 1 by at most the tolerance.

    >>> _near_one(np.array([1.01, 0.99, 1.2]), 0.02)
    array([ True,  True, False])
    """
    return (total >= 1.0 - tolerance) & (total <= 1.0 + tolerance)


def _is_half_precision(p: Any) -> Any:
    """Return an expression: whether a float64 probability has at most 11 significant bits, as a float16 has.

    It is split by s = p HALF_SPLIT: the upper part s - (s - p) is p itself where the lower bits are all 0 (Dekker 1971).

    >>> [_is_half_precision(p) for p in (0.25, 0.1, float(np.float16(0.1)))]
    [True, False, True]
    """
    split = p * validation.HALF_SPLIT
    return split - (split - p) == p


def _top_label(frame: Any, names: list[str], columns: SourceColumns, carried_names: list[str]) -> Any:
    """Return the frame with the largest probability as C, and whether its class is the label as Y (-1: the label is no class).

    Of equal probabilities the first class counts, but at 0.5 exactly binary predictions count as positive. `names` are columns of
    probabilities, `carried_names` those kept.
    """
    probs = [nw.col(name) for name in names]
    order = range(len(probs))[::-1] if columns.binary else range(len(probs))
    frame = frame.with_columns(nw.max_horizontal(*probs).alias(C))
    class_count = float(len(probs))
    # position of the first class with the largest probability: the least k of those equal to it, class_count for others
    rank = nw.min_horizontal(
        *(class_count - number(probs[i] == nw.col(C)) * (class_count - k) for k, i in enumerate(order))
    )
    is_class = nw.col(_LABEL) == ((1.0 - rank) if columns.binary else rank)
    return frame.select(*carried_names, nw.col(C), _outcome_or_invalid(is_class, columns.count).alias(Y))


def _row_per_class(frame: Any, names: list[str], carried_names: list[str]) -> Any:
    """Return k rows for each row, one per column of `names`: its position as CLASS, its value as C, and `carried_names`."""
    # Narwhals unpivots on DuckDB's default connection only, which need not hold the data
    if frame.implementation.is_duckdb():
        parts = [
            frame.select(*carried_names, nw.lit(float(i)).alias(CLASS), nw.col(name).alias(C))
            for i, name in enumerate(names)
        ]
        return nw.concat(parts)
    long = frame.unpivot(on=names, index=carried_names, variable_name=CLASS, value_name=C)
    return long.with_columns(nw.col(CLASS).cast(nw.String).str.slice(len("_tc_p")).cast(nw.Float64))


def _outcome_or_invalid(outcome: Any, count: int) -> Any:
    """Return an expression: the outcome as 1.0 or 0.0, or -1 if the label (a class index) is not among the `count` classes."""
    label = nw.col(_LABEL)
    inside = number((label >= 0.0) & (label <= count - 1.0))
    return number(outcome) * inside - (1.0 - inside)


def group_names(columns: SourceColumns) -> list[str]:
    """Return the names of the `by` columns in a frame of judged rows, "_tc_by0", "_tc_by1", ..., which clash with no sum."""
    return [f"_tc_by{i}" for i in range(len(columns.by))]


# ----------------------------------------------------------------------------------------------------
# Run the group-by, and turn the few rows that come back into sketches; or say what is wrong with the data

Group = tuple[object, ...]


@dataclass(frozen=True)
class Gathered:
    """Sketches of every group (one per class under a class-wise lens, else one), by the tuple of its values in the `by` columns.

    `unfit` counts rows that fell into no cell by the name of the first check they fail, such as "missing" (each of the k rows of
    a row under a class-wise lens counts 1/k). `extremes` are the lowest and highest score out of range, (inf, -inf) if none.
    `weights` are smallest, largest and sum of all weights, None if unweighted.
    """

    sketches: dict[Group, tuple[tc.Sketch, ...]]
    unfit: dict[str, float]
    extremes: tuple[float, float]
    weights: tuple[float, float, float] | None = None

    def __add__(self, other: "Gathered") -> "Gathered":
        """Add the sketches of equal groups, class by class, and the counts of `unfit`.

        Extremes are the lowest and highest of both; weights the smallest, the largest and the sum, those of one where the other
        has none.
        """
        sketches = dict(self.sketches)
        for group, parts in other.sketches.items():
            own_parts = sketches.get(group)
            sketches[group] = (
                parts if own_parts is None else tuple(a + b for a, b in zip(own_parts, parts, strict=True))
            )
        unfit = {name: self.unfit.get(name, 0) + other.unfit.get(name, 0) for name in {**self.unfit, **other.unfit}}
        low, high = zip(self.extremes, other.extremes, strict=True)
        weights = self.weights or other.weights
        if self.weights is not None and other.weights is not None:
            lightest, heaviest, totals = zip(self.weights, other.weights, strict=True)
            weights = min(lightest), max(heaviest), sum(totals)
        return Gathered(sketches, unfit, (min(low), max(high)), weights)


def gather(frame: Any, columns: SourceColumns, lens: Lens, *, selected: bool) -> Gathered:
    """Reduce a frame of rows to sketches in one pass by the engine that holds it (two if rows are invalid).

    `selected` says whether the frame has a column of selected rows, which alone enter the sketches; invalid rows are counted in
    `unfit` whether selected or not, as they are refused in memory.
    """
    rows, per_class = judge_rows(frame, columns, lens, selected=selected)
    kind = {"weighted": columns.weight is not None, "checked": not columns.binary}
    by = [*group_names(columns), *([CLASS] if per_class else [])]
    cells = with_cells(rows, **kind)
    if selected:
        cells = cells.filter(nw.col(SELECTED) | (nw.col(KEY) == UNFIT))
    table = _collect(sum_cells(cells, by, weighted=kind["weighted"]))
    key = _numbers(table, KEY)
    classes = columns.count if per_class else 1
    unfit, extremes = {}, (np.inf, -np.inf)
    if (key == UNFIT).any():
        counts = _collect(count_failures(rows, **kind))
        unfit = {name: float(counts[name][0]) / classes for name in counts.columns if name not in ("low", "high")}
        if unfit["score"] and not counts["low"].is_null()[0]:  # Dask has no score for an infinite logit
            extremes = (float(counts["low"][0]), float(counts["high"][0]))
    keys = [
        [group_value(value, name) for value in table[alias].to_list()]
        for name, alias in zip(columns.by, group_names(columns), strict=True)
    ]
    groups: list[Group] = list(zip(*keys, strict=True)) if keys else [()] * len(table)
    class_index = _numbers(table, CLASS).astype(np.intp) if per_class else np.zeros(len(key), np.intp)
    sketches: dict[Group, tuple[tc.Sketch, ...]] = {}
    sums = {*tc.Sketch.SUMS, "fraction", "low", "high", "lightest", "heaviest"} & set(table.columns)
    totals = {name: _numbers(table, name) + 0.0 for name in sums}  # -0.0 becomes 0.0
    _refuse_not_finite(totals, key != UNFIT, columns)
    for group, members in _rows_by_group(groups).items():
        valid_members = members[key[members] != UNFIT]
        parts = tuple(
            _build_sketch(totals, key, valid_members[class_index[valid_members] == k], columns.precision)
            for k in range(classes)
        )
        if any(part.cells for part in parts):
            sketches[group] = parts
    weights, fit = None, key != UNFIT
    if kind["weighted"] and fit.any():
        total = float(totals["w"][fit].sum()) / classes
        weights = float(totals["lightest"][fit].min()), float(totals["heaviest"][fit].max()), total
    return Gathered(sketches, unfit, extremes, weights)


def _refuse_not_finite(cells: dict[str, Float64s], fits: Any, columns: SourceColumns) -> None:
    """Refuse sums (cells,), by name, that are not finite where the mask `fits` is True: a score or weight was NaN or infinite."""
    if not all(np.isfinite(values[fits]).all() for values in cells.values()):
        raise InputError(
            f"the sums of {columns.outputs_text} are not finite: a score or weight is NaN or infinite; repair or drop such rows"
        )


def _collect(lazy: Any) -> Any:
    """Run a lazy frame and return its rows, in polars by the streaming engine (bounded memory)."""
    return lazy.collect(engine="streaming") if lazy.implementation.is_polars() else lazy.collect()


def _numbers(table: Any, name: str) -> Float64s:
    """Return a column as float64, shape (n,), null as NaN."""
    return np.asarray(table[name].to_numpy(), np.float64)


def _rows_by_group(groups: list[Group]) -> dict[Group, Indices]:
    """Return the positions of the rows of each group, ascending, by group in the order of first occurrence.

    >>> _rows_by_group([("b",), ("a",), ("b",)])
    {('b',): array([0, 2]), ('a',): array([1])}
    """
    numbers = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    code = np.array([numbers[group] for group in groups], np.intp)
    order = np.argsort(code, kind="stable")
    ends = np.cumsum(np.bincount(code, minlength=len(numbers)))
    return dict(zip(numbers, np.split(order, ends[:-1]), strict=True)) if numbers else {}


def _build_sketch(cells: dict[str, Float64s], key: Float64s, rows: Indices, precision: int) -> tc.Sketch:
    """Build the sketch of the cells at `rows` (indices) of a table of sums by name ("n", "y", ..., "low", "high"), (cells,) each.

    `key` (cells,) are the left edges, minus 1 for cells from 1/2 on (1 is the cell of the score 1); `precision` is the number of
    bytes of a score in the source.

    >>> cells = {name: np.array([1.0]) for name in ("n", "y", "w", "ww")} | {name: np.zeros(1) for name in ("r", "rr", "ry")}
    >>> cells |= {"low": np.array([0.5]), "high": np.array([0.5])}
    >>> _build_sketch(cells, np.array([-0.5]), np.array([0]), 8).edges
    array([0.5])
    """
    sums = {name: values[rows] for name, values in cells.items()}
    fraction = sums["fraction"].max(initial=0.0) if "fraction" in sums else 0.0
    return tc.Sketch.from_cells(edges_of(key[rows]) + 0.0, sums, sums["low"], sums["high"], fraction, precision)


def refuse_unfit(gathered: Gathered, columns: SourceColumns, *, drop_null: bool) -> int:
    """Refuse rows that fall into no cell, with their number by cause, and weights too far apart.

    Rows with missing values are refused unless `drop_null`; return their number.
    """
    # Rounded here, not part by part, so that the number does not depend on how an engine divides the rows.
    unfit = {"missing": 0} | {name: max(round(n), int(n > 0)) for name, n in gathered.unfit.items()}
    predictions, low, high = columns.outputs_text, *gathered.extremes
    if unfit["missing"] and not drop_null:
        needed = [predictions, columns.label, *([] if columns.weight is None else [columns.weight])]
        raise InputError(
            f"{count_of(unfit['missing'], 'row')} with missing values in {' or '.join(needed)}; "
            "fill them, or leave them out with drop_null=True (--drop-null)",
            options="--drop-null",
        )
    if columns.logits and (unfit.get("score") or unfit.get("sum")):
        not_finite = unfit.get("score", 0) + unfit.get("sum", 0)
        raise InputError(
            f"{count_of(not_finite, 'row')} of {predictions} with a number that is not finite; "
            "repair them, or filter them out of the source"
        )
    if unfit.get("score"):
        raise InputError(
            f"{count_of(unfit['score'], 'row')} of {predictions} not in [0, 1] (values from {low:g} to {high:g}); "
            f"{validation.outside_unit_remedy(low, high)}"
        )
    if unfit.get("label"):
        what = f"an index from 0 to {columns.count - 1}" if columns.by_position else "among the classes"
        raise InputError(
            f"{count_of(unfit['label'], 'label')} in {columns.label!r} not {what}; "
            "list their names in classes=[...] (--class-names)"
        )
    if unfit.get("weight"):
        raise InputError(
            f"{count_of(unfit['weight'], 'weight')} in {columns.weight!r} negative or not finite; repair them first"
        )
    if unfit.get("sum"):
        raise InputError(
            f"{count_of(unfit['sum'], 'row')} of {predictions} with a sum other than 1 (tolerance {validation.SUM_TOLERANCE:g}), "
            "or with values outside [0, 1]; normalise them"
        )
    if gathered.weights is not None:
        validation.refuse_weight_range(*gathered.weights)
    return unfit["missing"]
