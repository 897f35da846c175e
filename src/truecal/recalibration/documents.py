"""Fields of a JSON object, read with care: a file edited by hand is either valid or refused with the field named."""

import json
from collections.abc import Callable, Mapping
from math import inf, isfinite
from typing import Any

import numpy as np

from truecal.errors import FileError, InputError
from truecal.predictions import validation
from truecal.types import Float64s

# ----------------------------------------------------------------------------------------------------
# Fields of a JSON object, read with care: a file edited by hand is either valid or refused with the field named


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


# ----------------------------------------------------------------------------------------------------
# Fitted recalibrators as JSON documents: versioned, readable by people, exact, and no pickle

_FORMAT = "truecal recalibrator"
_VERSION = 1


def write(content: Mapping[str, Any]) -> str:
    """The JSON text of a document."""
    return json.dumps({"format": _FORMAT, "version": _VERSION, **content}, indent=1, allow_nan=False)


def read(text: str) -> dict[str, Any]:
    """The document of a JSON text, its format and version checked."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError(f"not JSON: {error}") from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise FileError(f'this JSON is no recalibrator: "format" must be "{_FORMAT}"')
    if content.get("version") != _VERSION:
        raise FileError(f'"version" is {content.get("version")!r}; this release reads version {_VERSION}')
    return content


def settings(recalibrator: Any) -> dict[str, Any]:
    """The class name and the constructor's arguments, also of recalibrators within."""
    params = recalibrator.get_params(deep=False)
    return {"kind": type(recalibrator).__name__, "params": {name: plain(value) for name, value in params.items()}}


def plain(value: Any) -> Any:
    """A setting in the types JSON knows: numpy numbers, tuples and ranges become numbers and lists."""
    if hasattr(value, "get_params"):
        return settings(value)
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple | range):
        return [plain(item) for item in value]
    return value


def blank(content: Mapping[str, Any], makers: Mapping[str, Callable[..., Any]]) -> Any:
    """An unfitted recalibrator from its kind and settings."""
    kind, params = field(content, "kind"), field(content, "params")
    maker = makers.get(kind) if isinstance(kind, str) else None
    if maker is None:
        raise FileError(f'"kind" is {kind!r}, which is no recalibrator of this release')
    if not isinstance(params, dict):
        raise FileError('"params" must be an object')
    arguments = {name: blank(value, makers) if isinstance(value, dict) else value for name, value in params.items()}
    try:
        recalibrator = maker(**arguments)
    except TypeError as error:
        raise FileError(f'"params" do not fit {kind}: {error}') from error
    try:
        recalibrator.check_params()
    except InputError as error:
        raise FileError(f'"params": {error}') from error
    return recalibrator


def class_names(content: Mapping[str, Any], columns: int) -> list[Any]:
    """The names of the classes in the order of the columns."""
    names = field(content, "classes")
    if not isinstance(names, list) or len(names) < 2 or len(set(map(repr, names))) != len(names):
        raise FileError('"classes" must be a list of at least two different names')
    if columns not in (1, len(names)) or (columns == 1 and len(names) != 2):
        raise FileError(f'"columns" is {columns} but there are {len(names)} "classes"')
    try:
        validation.check_classes(names, len(names))
    except InputError as error:
        raise FileError(f'"classes": {error}') from error
    return names
