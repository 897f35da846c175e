"""Fitted recalibrators as JSON documents: versioned, readable by people, exact, and no pickle.

Python writes a float as the shortest decimal that reads back as the same float, so nothing is lost. The functions here
know nothing of particular recalibrators: the contract passes the classes that may be read.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from truecal.errors import FileError, InputError
from truecal.predictions import border
from truecal.recalibrate.export.fields import field

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
        border.check_classes(names, len(names))
    except InputError as error:
        raise FileError(f'"classes": {error}') from error
    return names
