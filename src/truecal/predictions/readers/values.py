"""The values of prediction columns: numbers, lists of numbers, or one number per named class."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from truecal.errors import InputError

if TYPE_CHECKING:
    import narwhals as nw


def outputs_of(table: "nw.DataFrame[Any]", names: Sequence[str]) -> tuple[NDArray[Any], list[str] | None]:
    """The predictions in these columns as an array, and the classes where one column names them row by row."""
    if len(names) > 1:
        return table.select(names).to_numpy(), None
    column, name = table[names[0]], names[0]
    first = next(iter(column.head(1).to_list()), None)
    if isinstance(first, Mapping):
        return _from_mappings(column.to_list(), name)
    if isinstance(first, list | tuple | np.ndarray):
        return _from_lists(column.to_list(), name), None
    if isinstance(first, str):
        row, value = _first_odd(column.to_list())
        hint = "; if they are percent, say percent=True (--percent)" if value.strip().endswith("%") else ""
        raise InputError(f"column {name!r} must be numbers: row {row} is {value!r}{hint}")
    return column.to_numpy(), None


def _first_odd(values: Sequence[Any]) -> tuple[int, str]:
    """The first value of a column of text that made it one: not a finite number; the first of all where every one is."""
    for row, value in enumerate(values):
        try:
            odd = not np.isfinite(float(value))
        except (TypeError, ValueError):
            odd = True
        if odd:
            return row, str(value)
    return 0, str(values[0])


def as_shares(column: "nw.Series[Any]", name: str, words: Mapping[str, float] | None) -> NDArray[np.float64]:
    """Percent as probabilities, from numbers or from text such as "90%"; or words as the probabilities given for them.

    Missing values stay missing (NaN). What is neither is refused with its row.
    """
    known = {word.strip().lower(): value for word, value in (words or {}).items()}
    shares = np.empty(len(column))
    for row, value in enumerate(column.to_list()):
        if value is None:
            shares[row] = np.nan
            continue
        text = str(value).strip().lower()
        if text in known:
            shares[row] = known[text]
            continue
        try:
            if words is not None and not text.endswith("%"):
                raise ValueError
            shares[row] = float(text.removesuffix("%").strip()) / 100
        except ValueError as error:
            wanted = "percent" if words is None else f"percent nor one of the words {', '.join(words)}"
            raise InputError(f"column {name!r}: row {row} is {value!r}, which is not {wanted}") from error
    return shares


def _from_lists(rows: list[Any], name: str) -> NDArray[Any]:
    width = len(rows[0])
    for i, row in enumerate(rows):
        if not isinstance(row, list | tuple | np.ndarray):
            raise InputError(f"column {name!r} holds lists, but row {i} is {row!r}")
        if len(row) != width:
            raise InputError(
                f"column {name!r} holds lists of different lengths: row 0 has {width} values and row {i} has {len(row)}"
            )
    return np.array(rows)


def _from_mappings(rows: list[Any], name: str) -> tuple[NDArray[Any], list[str]]:
    classes = list(rows[0])
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(f"column {name!r} holds mappings, but row {i} is {row!r}")
        if set(row) != set(classes):
            odd = sorted(set(row) ^ set(classes))
            raise InputError(f"column {name!r}: row {i} differs from row 0 in the class {odd[0]!r}")
    return np.array([[row[key] for key in classes] for row in rows]), classes
