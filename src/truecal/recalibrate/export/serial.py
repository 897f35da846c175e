"""Recalibrators as JSON: versioned, readable by people, exact, and no pickle.

Python writes a float as the shortest decimal that reads back as the same float, so nothing is lost. Reading checks
everything that `predict_proba` relies on: a file edited by hand either is a valid recalibrator or is refused with the
field named.
"""

import json
from collections.abc import Mapping
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from truecal.errors import FileError, InputError
from truecal.types import Float64s

if TYPE_CHECKING:
    from truecal.recalibrate.contract import Recalibrator

_FORMAT = "truecal recalibrator"
_VERSION = 1


def write(recalibrator: "Recalibrator") -> str:
    """The JSON text of a fitted recalibrator."""
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        **_settings(recalibrator),
        "columns": int(recalibrator.n_features_in_),
        "classes": recalibrator.classes_.tolist(),
        "learned": recalibrator._state(),
    }
    return json.dumps(content, indent=1, allow_nan=False)


def read(text: str) -> "Recalibrator":
    """The fitted recalibrator of a JSON text."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise FileError(f"not JSON: {error}") from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise FileError(f'this JSON is no recalibrator: "format" must be "{_FORMAT}"')
    if content.get("version") != _VERSION:
        raise FileError(f'"version" is {content.get("version")!r}; this release reads version {_VERSION}')
    made = _blank(content)
    made.n_features_in_ = whole(content, "columns", low=1)
    classes = field(content, "classes")
    if not isinstance(classes, list) or len(classes) < 2 or len(set(map(repr, classes))) != len(classes):
        raise FileError('"classes" must be a list of at least two different names')
    if made.n_features_in_ not in (1, len(classes)) or (made.n_features_in_ == 1 and len(classes) != 2):
        raise FileError(f'"columns" is {made.n_features_in_} but there are {len(classes)} "classes"')
    made.classes_ = np.array(classes)
    learned = field(content, "learned")
    if not isinstance(learned, dict):
        raise FileError('"learned" must be an object')
    made._restore(learned)
    return made


def _settings(recalibrator: "Recalibrator") -> dict[str, Any]:
    params = recalibrator.get_params(deep=False)
    return {"kind": type(recalibrator).__name__, "params": {name: _plain(value) for name, value in params.items()}}


def _plain(value: Any) -> Any:
    if hasattr(value, "get_params"):
        return _settings(value)
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return list(value) if isinstance(value, tuple | range) else value


def _blank(content: Mapping[str, Any]) -> "Recalibrator":
    """An unfitted recalibrator from its kind and settings."""
    from truecal import recalibrate
    from truecal.recalibrate.contract import Recalibrator

    kind, params = field(content, "kind"), field(content, "params")
    maker = getattr(recalibrate, kind, None) if isinstance(kind, str) and kind in recalibrate.__all__ else None
    if not (isinstance(maker, type) and issubclass(maker, Recalibrator)):
        raise FileError(f'"kind" is {kind!r}, which is no recalibrator of this release')
    if not isinstance(params, dict):
        raise FileError('"params" must be an object')
    made = {name: _blank(value) if isinstance(value, dict) else value for name, value in params.items()}
    try:
        blank: Recalibrator = maker(**made)
    except TypeError as error:
        raise FileError(f'"params" do not fit {kind}: {error}') from error
    try:
        blank.check_params()
    except InputError as error:
        raise FileError(f'"params": {error}') from error
    return blank


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


def _between(low: float, high: float) -> str:
    return f" in [{low:g}, {high:g}]" if low > -inf or high < inf else ""
