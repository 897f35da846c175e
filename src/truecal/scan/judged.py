"""Lenses pushed down: which score and which outcome of a row are judged, as expressions an engine can run."""

from typing import Any

import narwhals as nw

from truecal.lens import Lens
from truecal.predictions import border
from truecal.scan.cell_expression import OK, PRESENT, C, W, Y, number
from truecal.scan.columns import Columns, class_probs, label_index

CLASS = "_tc_class"
_LABEL = "_tc_label"


def judged(frame: Any, columns: Columns, lens: Lens) -> tuple[Any, bool]:
    """The rows with score, outcome, weight and whether they can be used; and whether there is one row per class."""
    kept = [nw.col(name) for name in columns.by]
    if columns.weight is not None:
        kept.append(nw.col(columns.weight).cast(nw.Float64).alias(W))
    label = label_index(columns).alias(_LABEL)
    probabilities = class_probs(columns)
    names = [f"_tc_p{i}" for i in range(len(probabilities))]
    present = _present(columns)
    frame = frame.select(*kept, label, present, *(p.alias(n) for p, n in zip(probabilities, names, strict=True)))
    each = [nw.col(name) for name in names]
    if not columns.binary:
        total = nw.sum_horizontal(*each)
        valid = nw.all_horizontal(*((p >= 0.0) & (p <= 1.0) for p in each), ignore_nulls=False)
        valid = valid & (total >= 1.0 - border.SUM_TOLERANCE) & (total <= 1.0 + border.SUM_TOLERANCE)
        frame = frame.with_columns(valid.alias(OK))
    rest = [*columns.by, *([] if columns.weight is None else [W]), *([] if columns.binary else [OK]), PRESENT]
    asked = lens.pushed_down()
    if asked.kind == "classes":
        long = _row_per_class(frame, names, [*rest, _LABEL])
        own = nw.col(_LABEL) == nw.col(CLASS)
        return long.select(*rest, CLASS, C, _known(own, columns.count).alias(Y)), True
    if asked.kind == "top":
        return _top_label(frame, names, columns, rest), False
    assert asked.index is not None
    index = asked.index(columns.specimen)
    own = nw.col(_LABEL) == float(index)
    # the label of two classes is the outcome of the second
    outcome = nw.col(_LABEL) if columns.count == 2 and index == 1 else _known(own, columns.count)
    return frame.select(*rest, each[index].alias(C), outcome.alias(Y)), False


def _top_label(frame: Any, names: list[str], columns: Columns, rest: list[str]) -> Any:
    """The largest probability, and whether its class was the label.

    Of equal probabilities the first class counts, but at 0.5 exactly binary predictions count as positive.
    """
    each = [nw.col(name) for name in names]
    order = range(len(each))[::-1] if columns.binary else range(len(each))
    frame = frame.with_columns(nw.max_horizontal(*each).alias(C))
    last = float(len(each))
    rank = nw.min_horizontal(*(last - number(each[i] == nw.col(C)) * (last - k) for k, i in enumerate(order)))
    own = nw.col(_LABEL) == ((1.0 - rank) if columns.binary else rank)
    return frame.select(*rest, nw.col(C), _known(own, columns.count).alias(Y))


def _row_per_class(frame: Any, names: list[str], rest: list[str]) -> Any:
    """Every row once per class, with the class index and its probability."""
    # Narwhals unpivots on DuckDB's default connection only, which need not hold the data
    if frame.implementation.is_duckdb():
        parts = [
            frame.select(*rest, nw.lit(float(i)).alias(CLASS), nw.col(name).alias(C)) for i, name in enumerate(names)
        ]
        return nw.concat(parts)
    long = frame.unpivot(on=names, index=rest, variable_name=CLASS, value_name=C)
    return long.with_columns(nw.col(CLASS).cast(nw.String).str.slice(len("_tc_p")).cast(nw.Float64))


def _known(outcome: Any, count: int) -> Any:
    """The outcome as a number, or -1 where the label is not one of the classes."""
    label = nw.col(_LABEL)
    inside = number((label >= 0.0) & (label <= count - 1.0) & (label.cast(nw.Float64).floor() == label))
    return number(outcome) * inside - (1.0 - inside)


def _present(columns: Columns) -> Any:
    """Whether nothing that is needed of a row is missing."""
    needed = [columns.label, *columns.given, *([] if columns.weight is None else [columns.weight])]
    return nw.all_horizontal(*(~nw.col(name).is_null() for name in needed), ignore_nulls=False).alias(PRESENT)
