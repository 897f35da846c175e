"""Selections pushed down: the rows of an engine as a selection sees them, in expressions that run where the data are."""

from dataclasses import dataclass
from typing import Any

import narwhals as nw

from truecal.errors import InputError
from truecal.scan.columns import Columns, class_probs, label_index, literal
from truecal.select import Selection


@dataclass(frozen=True)
class _Rows:
    """What `truecal.select.EngineRows` asks for."""

    columns: Columns
    names: list[str]  # all columns of the source

    def labelled(self, names: tuple[object, ...]) -> Any:
        label = label_index(self.columns)
        return _any(label == float(self.columns.specimen.class_index(name)) for name in names)

    def output(self, of: object) -> Any:
        each = class_probs(self.columns)
        if of is not None:
            return each[self.columns.specimen.class_index(of)]
        return each[1] if self.columns.binary else nw.max_horizontal(*each)

    def column(self, name: str) -> Any:
        if name not in self.names:
            raise InputError(f"there is no column {name!r}; the columns are {', '.join(self.names)}")
        return nw.col(name)

    def among(self, values: Any, wanted: tuple[object, ...]) -> Any:
        return _any(values == literal(value) for value in wanted)


def as_filter(selection: Selection, columns: Columns, names: list[str]) -> Any:
    """The selection as an expression over the source's own columns; what is null is not selected."""
    return selection.expression(_Rows(columns, names))


def _any(conditions: Any) -> Any:
    return nw.any_horizontal(*conditions, ignore_nulls=False)
