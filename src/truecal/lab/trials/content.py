"""What a world, an estimator or a measure is, as a digest: equal content has the same place in the cache.

Random streams are not taken from content, whose last bits may differ between machines, but from names.
"""

import dataclasses
import hashlib
import json
import sys
from functools import cache
from pathlib import Path

import numpy as np


class _NamelessError(Exception):
    """Something whose content cannot be written down, such as a lambda."""


def digest(thing: object) -> str | None:
    """SHA-256 of the content of a (nested) dataclass of numbers, strings and arrays; None if it holds a plain function.

    >>> from truecal.lab import Power, Uniform, World
    >>> digest(World(Uniform(), Power(2))) == digest(World(Uniform(), Power(2.0)))
    True
    >>> digest(World(Uniform(), lambda c: c**2)) is None
    True
    """
    try:
        text = json.dumps(_plain(thing), sort_keys=True)
    except _NamelessError:
        return None
    return hashlib.sha256(text.encode()).hexdigest()


def name_words(name: str) -> tuple[int, ...]:
    """Four 32-bit words from a name, to give it random streams of its own."""
    words = hashlib.sha256(name.encode()).digest()
    return tuple(int.from_bytes(words[4 * i : 4 * i + 4], "big") for i in range(4))


# Layers above the lab make no numbers for it.
_ABOVE = ("adapters", "cli", "plot", "report", "study")


@cache
def code_digest() -> str:
    """Digest of the source that turns a seed into numbers, so that no cached number outlives the code that made it."""
    package = Path(__file__).parents[2]
    sources = sorted(path for path in package.rglob("*.py") if path.relative_to(package).parts[0] not in _ABOVE)
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()


@cache
def _module_digest(module: str) -> str:
    """Digest of the source of a module outside truecal; empty for truecal, whose code_digest is part of every key."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if module.partition(".")[0] == "truecal" or file is None:
        return ""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _plain(thing: object) -> object:
    if thing is None or isinstance(thing, bool | str):
        return thing
    if isinstance(thing, int | float | np.integer | np.floating):
        return float(thing).hex()
    if isinstance(thing, np.ndarray):
        array = np.ascontiguousarray(thing)
        return ["array", str(array.dtype), list(array.shape), hashlib.sha256(array.tobytes()).hexdigest()]
    if isinstance(thing, tuple | list):
        return [_plain(item) for item in thing]
    if isinstance(thing, dict):
        return {str(key): _plain(value) for key, value in thing.items()}
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        module = type(thing).__module__
        kind = f"{module}.{type(thing).__qualname__}"
        return [
            kind,
            _module_digest(module),
            {field.name: _plain(getattr(thing, field.name)) for field in dataclasses.fields(thing)},
        ]
    raise _NamelessError
