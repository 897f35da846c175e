"""Selections pushed down: tc.by_label, tc.by_output and tc.by_column as filters that run where the data are."""

from typing import Any

import narwhals as nw

from truecal.errors import InputError
from truecal.scan.judged import Columns, class_probs, label_index, literal
from truecal.select import ByLabel, ByOutput, ByRange, ByValues, Closed, Combined, Negated, Selection


def as_filter(selection: Selection, columns: Columns, names: list[str]) -> Any:
    """The selection as an expression over the source's own columns; what is null is not selected."""
    if isinstance(selection, Combined):
        first, second = (as_filter(part, columns, names) for part in (selection.first, selection.second))
        return first & second if selection.word == "and" else first | second
    if isinstance(selection, Negated):
        return ~as_filter(selection.selection, columns, names)
    if isinstance(selection, ByLabel):
        label = label_index(columns)
        wanted = [columns.class_index(name) for name in selection.names]
        return nw.any_horizontal(*(label == float(index) for index in wanted), ignore_nulls=False)
    if isinstance(selection, ByOutput):
        each = class_probs(columns)
        if selection.of is not None:
            output = each[columns.class_index(selection.of)]
        else:
            output = each[1] if columns.binary else nw.max_horizontal(*each)
        return _within(output, selection.low, selection.high, selection.closed)
    if isinstance(selection, (ByValues, ByRange)) and selection.column not in names:
        raise InputError(f"there is no column {selection.column!r}; the columns are {', '.join(names)}")
    if isinstance(selection, ByValues):
        column = nw.col(selection.column)
        return nw.any_horizontal(*(column == literal(value) for value in selection.values), ignore_nulls=False)
    if isinstance(selection, ByRange):
        return _within(nw.col(selection.column), selection.low, selection.high, selection.closed)
    raise InputError(
        f"the selection '{selection}' runs Python code on columns, which an engine cannot; give values or a range"
    )


def _within(values: Any, low: float, high: float, closed: Closed) -> Any:
    above = values >= low if closed in ("both", "left") else values > low
    below = values <= high if closed in ("both", "right") else values < high
    return above & below
