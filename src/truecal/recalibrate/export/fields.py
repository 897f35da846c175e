"""Fields of a JSON object, read with care: a file edited by hand is either valid or refused with the field named."""

from collections.abc import Mapping
from math import inf, isfinite
from typing import Any

import numpy as np

from truecal.errors import FileError
from truecal.types import Float64s


def field(state: Mapping[str, Any], name: str) -> Any:
    """A field that must be there."""
    if name not in state:
        raise FileError(f'the field "{name}" is missing')
    return state[name]


def number(state: Mapping[str, Any], name: str, *, low: float = -inf, high: float = inf) -> float:
    """A finite number in [low, high]."""
    value = field(state, name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or not low <= value <= high:
        raise FileError(f'"{name}" is {value!r}; it must be a finite number{_between(low, high)}')
    return float(value)


def whole(state: Mapping[str, Any], name: str, *, low: int) -> int:
    """A whole number of at least `low`."""
    value = field(state, name)
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise FileError(f'"{name}" is {value!r}; it must be a whole number of at least {low}')
    return value


def numbers(
    state: Mapping[str, Any],
    name: str,
    length: int | None = None,
    *,
    low: float = -inf,
    high: float = inf,
    rising: bool = False,
) -> Float64s:
    """A list of finite numbers in [low, high], of the given length, strictly increasing when `rising`."""
    values = field(state, name)
    if not isinstance(values, list):
        raise FileError(f'"{name}" must be a list of numbers')
    if length is not None and len(values) != length:
        raise FileError(f'"{name}" has {len(values)} numbers; {length} are needed')
    array = np.array([number({name: value}, name, low=low, high=high) for value in values], np.float64)
    if rising and not (np.diff(array) > 0).all():
        raise FileError(f'"{name}" must increase from each number to the next')
    return array


def matrix(state: Mapping[str, Any], name: str, size: int) -> Float64s:
    """A square list of lists of finite numbers."""
    rows = field(state, name)
    if not isinstance(rows, list) or len(rows) != size:
        raise FileError(f'"{name}" must be a list of {size} lists of numbers')
    return np.stack([numbers({name: row}, name, size) for row in rows])


def _between(low: float, high: float) -> str:
    return f" in [{low:g}, {high:g}]" if low > -inf or high < inf else ""
