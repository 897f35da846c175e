"""Fitted recalibrators as JSON: versioned, exact, readable by people; a file edited by hand is valid or refused by field."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import numpy as np

from truecal import options
from truecal.errors import FileError, InputError
from truecal.predictions import validation
from truecal.types import Float64s

_FORMAT = "truecal recalibrator"
_VERSION = 1  # by choice: counts the changes of the format


@dataclass(frozen=True)
class Learned:
    """Shape and range of a learned attribute: a number (`axes` 0), one per class (1) or a matrix of K x K (2).

    A number that is missing in a file has the value `missing`; without one it is required.
    """

    axes: int = 0
    low: float = -inf
    high: float = inf
    missing: float | None = None

    def read(self, state: Mapping[str, Any], name: str, classes: int) -> float | Float64s:
        """Read a number, (classes,) or (classes, classes) numbers by `axes`; refuse a number or vector outside [low, high].

        >>> Learned(axes=1).read({"bias": [0.5, -0.5]}, "bias", 2), Learned(missing=1.0).read({}, "floor", 2)
        (array([ 0.5, -0.5]), 1.0)
        """
        if self.missing is not None and name not in state:
            return self.missing
        if self.axes == 0:
            return read_number(state, name, low=self.low, high=self.high)
        if self.axes == 1:
            return read_numbers(state, name, classes, low=self.low, high=self.high)
        return read_matrix(state, name, classes)


def read_field(state: Mapping[str, Any], name: str, kind: type | None = None) -> Any:
    """Return a required field; refuse its absence, and one that is no list (`kind` list) or no object (`kind` dict).

    >>> read_field({"x": [1]}, "x", list)
    [1]
    >>> read_field({}, "x")
    Traceback (most recent call last):
        ...
    truecal.errors.FileError: the field "x" is missing
    """
    if name not in state:
        raise FileError(f'the field "{name}" is missing')
    if kind is not None and not isinstance(state[name], kind):
        raise FileError(f'"{name}" must be {"an object" if kind is dict else "a list"}')
    return state[name]


def read_number(state: Mapping[str, Any], name: str, *, low: float = -inf, high: float = inf) -> float:
    """Read a finite number in [low, high] from a field as a float; refuse all else, booleans too.

    >>> read_number({"slope": 2}, "slope", low=0)
    2.0
    """
    value = read_field(state, name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or not low <= value <= high:
        limits = f" in [{low:g}, {high:g}]" if low > -inf or high < inf else ""
        raise FileError(f'"{name}" is {value!r}; it must be a finite number{limits}')
    return float(value)


def read_whole(state: Mapping[str, Any], name: str, *, low: int) -> int:
    """Read a whole number of at least `low` from a field; refuse all else, booleans too.

    >>> read_whole({"bins": 2.5}, "bins", low=1)
    Traceback (most recent call last):
        ...
    truecal.errors.FileError: "bins" is 2.5; it must be a whole number of at least 1
    """
    value = read_field(state, name)
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise FileError(f'"{name}" is {value!r}; it must be a whole number of at least {low}')
    return value


def read_numbers(
    state: Mapping[str, Any],
    name: str,
    length: int | None = None,
    *,
    low: float = -inf,
    high: float = inf,
    rising: bool = False,
) -> Float64s:
    """Read a list of finite numbers in [low, high] from a field, shape (length,), strictly increasing when `rising`.

    Refuse other values, and another length than `length` (None: any).

    >>> read_numbers({"edges": [0, 1]}, "edges", 2, rising=True)
    array([0., 1.])
    """
    values = read_field(state, name)
    if not isinstance(values, list):
        raise FileError(f'"{name}" must be a list of numbers')
    if length is not None and len(values) != length:
        raise FileError(f'"{name}" has {len(values)} numbers; {length} are needed')
    array = np.array([read_number({name: value}, name, low=low, high=high) for value in values], np.float64)
    if rising and not (np.diff(array) > 0).all():
        raise FileError(f'"{name}" must increase from each number to the next')
    return array


def read_matrix(state: Mapping[str, Any], name: str, size: int) -> Float64s:
    """Read a list of `size` lists of `size` finite numbers from a field, shape (size, size).

    >>> read_matrix({"weights": [[1, 0], [0, 1]]}, "weights", 2)
    array([[1., 0.],
           [0., 1.]])
    """
    rows = read_field(state, name)
    if not isinstance(rows, list) or len(rows) != size:
        raise FileError(f'"{name}" must be a list of {size} lists of numbers')
    return np.stack([read_numbers({name: row}, name, size) for row in rows])


def write_document(content: Mapping[str, Any]) -> str:
    """Write the JSON text of a fitted recalibrator: its content, with format and version; refuse NaN and infinity.

    >>> read_document(write_document({"kind": "PlattScaling"}))["kind"]
    'PlattScaling'
    """
    return json.dumps({"format": _FORMAT, "version": _VERSION, **content}, indent=1, allow_nan=False)


def read_document(text: str) -> dict[str, Any]:
    """Return the object in the JSON text of a fitted recalibrator; refuse other text, formats and versions.

    >>> read_document("{}")
    Traceback (most recent call last):
        ...
    truecal.errors.FileError: this JSON is no recalibrator: "format" must be "truecal recalibrator"
    """
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
    """Return {"kind": class name, "params": constructor arguments}; an argument that is a recalibrator is written the same way.

    >>> from truecal.recalibration import TopVersusAll
    >>> settings(TopVersusAll())
    {'kind': 'TopVersusAll', 'params': {'classes': None, 'input': 'logits'}}
    """
    params = recalibrator.get_params(deep=False)
    return {"kind": type(recalibrator).__name__, "params": {name: to_json(value) for name, value in params.items()}}


def to_json(value: Any) -> Any:
    """Convert a value to the types of JSON: numpy numbers, arrays, tuples and ranges to numbers and lists.

    A recalibrator becomes its `settings`; other values are returned unchanged.

    >>> to_json((np.float64(0.5), np.arange(2), "a"))
    [0.5, [0, 1], 'a']
    """
    if hasattr(value, "get_params"):
        return settings(value)
    if isinstance(value, np.ndarray | np.generic):
        return to_json(value.tolist())
    if isinstance(value, list | tuple | range):
        return [to_json(item) for item in value]
    return value


def make_unfitted(content: Mapping[str, Any], constructors: Mapping[str, Callable[..., Any]]) -> Any:
    """Make an unfitted recalibrator from {"kind": name, "params": arguments}, `constructors` by name; refuse unknown ones.

    An argument that is an object is read in the same way.

    >>> from truecal.recalibration import PlattScaling
    >>> make_unfitted(settings(PlattScaling()), {"PlattScaling": PlattScaling})
    PlattScaling()
    """
    kind, params = read_field(content, "kind"), read_field(content, "params", dict)
    constructor = constructors.get(kind) if isinstance(kind, str) else None
    if constructor is None:
        raise FileError(f'"kind" is {options.short_repr(kind)}, which is no recalibrator of this release')
    arguments = {
        name: make_unfitted(value, constructors) if isinstance(value, dict) else value for name, value in params.items()
    }
    try:
        recalibrator = constructor(**arguments)
        recalibrator._check_params()
    except TypeError as error:
        raise FileError(f'"params" do not fit {kind}: {error}') from error
    except InputError as error:
        raise FileError(f'"params": {error}') from error
    return recalibrator


def read_class_names(content: Mapping[str, Any], columns: int) -> list[Any]:
    """Read "classes", the names of the columns; refuse equal names and a number that does not fit `columns`.

    One column has two classes; otherwise there is a name for every column.

    >>> read_class_names({"classes": ["cat", "dog"]}, 1)
    ['cat', 'dog']
    """
    names = read_field(content, "classes")
    if not isinstance(names, list) or len(names) < 2 or len(set(map(repr, names))) != len(names):
        raise FileError('"classes" must be a list of at least two different names')
    if columns not in (1, len(names)) or (columns == 1 and len(names) != 2):
        raise FileError(f'"columns" is {columns} but there are {len(names)} "classes"')
    try:
        validation.check_classes(names, len(names))
    except InputError as error:
        raise FileError(f'"classes": {error}') from error
    return names
