"""Checks of option values, each with one message: levels, whole numbers, choices, norms, seeds, objects of truecal.

To refuse is to raise InputError with a message that names the option (`name`) and the value; valid values return None.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from truecal.errors import InputError

MAX_BINS = 1_000_000  # by choice: largest number of bins that is accepted
_MAX_NORM = 20  # derived: 1e-15 to this power is still a float


def is_whole(value: object) -> bool:
    """Return whether a value is a whole number of Python or numpy, and not a boolean.

    >>> is_whole(3), is_whole(np.int64(3)), is_whole(3.0), is_whole(True)
    (True, True, False, False)
    """
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def is_number(value: object) -> bool:
    """Return whether a value is a real number of Python or numpy: nan and inf are, booleans are not.

    >>> is_number(0.5), is_number(float("nan")), is_number(True), is_number("1")
    (True, True, False, False)
    """
    return isinstance(value, (float, np.floating)) or is_whole(value)


def level(level: float) -> float:
    """Refuse a confidence level that is not strictly between 0 and 1; return it as a Python float.

    >>> level(np.float64(0.95))
    0.95
    >>> level(95)
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: level must lie strictly between 0 and 1, not 95
    """
    if not is_number(level) or not 0 < level < 1:
        raise InputError(f"level must lie strictly between 0 and 1, not {short_repr(level)}")
    return float(level)


def between(value: object, name: str, low: float, high: float) -> None:
    """Refuse what is not a number strictly between `low` and `high`.

    >>> between(0.5, "alpha", 0, 1)
    >>> between(1, "alpha", 0, 1)
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: alpha must lie strictly between 0 and 1, not 1
    """
    if not is_number(value) or not low < value < high:  # type: ignore[operator]
        raise InputError(f"{name} must lie strictly between {low:g} and {high:g}, not {short_repr(value)}")


def limits(low: float, high: float, what: str) -> None:
    """Refuse limits that are not numbers (nan) or of which `low` is above `high`; equal and infinite ones are valid.

    `what` names the interval in the message.

    >>> limits(0.2, 0.1, "the region")
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: the region [0.2, 0.1] has low above high; swap them
    """
    for end in (low, high):
        if not is_number(end) or end != end:
            raise InputError(f"{what} must be an interval of two numbers, not [{low!r}, {high!r}]")
    if low > high:
        raise InputError(f"{what} [{low:g}, {high:g}] has low above high; swap them")


def whole(value: object, name: str, low: int = 1, high: int | None = None) -> None:
    """Refuse what is not a whole number of at least `low` (and at most `high`).

    >>> whole(2.5, "k")
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: k must be a whole number of at least 1, not 2.5
    >>> whole(2000, "k", high=1000)
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: k must be at most 1,000, not 2,000
    """
    if not is_whole(value) or value < low:  # type: ignore[operator]
        raise InputError(f"{name} must be a whole number of at least {low}, not {short_repr(value)}")
    if high is not None and value > high:  # type: ignore[operator]
        raise InputError(f"{name} must be at most {high:,}, not {value:,}")


def bins(value: object) -> None:
    """Refuse a number of bins that is no whole number from 1 to a million.

    >>> bins(0)
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: bins must be a whole number of at least 1, not 0
    """
    whole(value, "bins", 1, MAX_BINS)


def second_spelling(owner: object, n_bins: int) -> None:
    """Set the field `bins` of a frozen dataclass to `n_bins`, scikit-learn's name for it.

    Refuse `n_bins` beside a value of `bins` that is not its default.

    >>> from truecal.estimators.binned import BinnedECE
    >>> estimator = BinnedECE()
    >>> second_spelling(estimator, 20)
    >>> estimator.bins
    20
    """
    if owner.bins != type(owner).bins:  # type: ignore[attr-defined]
        raise InputError("bins and n_bins are two spellings of one option; give one of them")
    object.__setattr__(owner, "bins", n_bins)


def resamples(value: object, name: str = "resamples", low: int = 1) -> None:
    """Refuse a number of resamples, redraws or datasets that is no whole number from `low` to 10 million.

    >>> resamples(0)
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: resamples must be a whole number of at least 1, not 0
    """
    whole(value, name, low, 10_000_000)


def choice(value: object, choices: tuple[object, ...], name: str) -> None:
    """Refuse an option that is not among its choices by type and value: True is not 1.

    >>> choice("max", ("mean", "sum"), "reduce")
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: reduce must be 'mean' or 'sum', not 'max'
    """
    for allowed in choices:
        if value is allowed:  # the usual case, and the fastest
            return
    if not any(type(value) is type(allowed) and value == allowed for allowed in choices):
        raise InputError(f"{name} must be {' or '.join(map(repr, choices))}, not {short_repr(value)}")


def texts(values: Sequence[object], name: str) -> None:
    """Refuse a list of names of which one is not a string; `name` is what they name, such as "columns".

    >>> texts(["a", 3], "columns")
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: columns must be named by text, not by 3
    """
    for value in values:
        if not isinstance(value, str):
            raise InputError(f"{name} must be named by text, not by {short_repr(value)}")


def norm(norm: object, allowed: tuple[float, ...] | None = None) -> None:
    """Refuse a norm that is not a number from 1 to 20 or inf, or not among the allowed (None: all of these).

    >>> norm(2, allowed=(1, 2))
    >>> norm(0.5)
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: norm must be a number of at least 1, or inf, not 0.5
    """
    if not is_number(norm) or not norm >= 1:  # type: ignore[operator]
        raise InputError(f"norm must be a number of at least 1, or inf, not {short_repr(norm)}")
    if _MAX_NORM < norm < np.inf:  # type: ignore[operator]
        raise InputError(f"norm must be at most {_MAX_NORM}, or inf for the largest gap, not {short_repr(norm)}")
    if allowed is not None and norm not in allowed:
        raise InputError(f"norm must be {' or '.join(f'{p:g}' for p in allowed)} here, not {norm:g}")


def generator(rng: Any) -> np.random.Generator:
    """Return a generator from a seed (a whole number of at least 0) or SeedSequence; a Generator is returned as it is.

    A seed gives `np.random.default_rng(seed)`.

    >>> bool(generator(3).random() == np.random.default_rng(3).random())
    True
    """
    if isinstance(rng, (np.random.Generator, np.random.SeedSequence)):
        return np.random.default_rng(rng)
    whole(rng, "rng", 0)
    return np.random.default_rng(int(rng))


def instance(value: object, kind: type | tuple[type, ...], name: str, expected: str, remedy: str = "") -> None:
    """Refuse an object of another class; passing the class instead of an instance is a common mistake.

    >>> instance("ece", dict, "metrics", "a mapping of metrics by name", "write {'ece': 'ece'}")
    Traceback (most recent call last):
    truecal.errors.InputError: metrics must be a mapping of metrics by name, not 'ece'; write {'ece': 'ece'}
    """
    if isinstance(value, kind):
        return
    if isinstance(value, type) and issubclass(value, kind):
        raise InputError(f"{name} must be {expected}, not the class {value.__name__}; write {value.__name__}(...)")
    raise InputError(f"{name} must be {expected}, not {short_repr(value)}{remedy and '; ' + remedy}")


def path(value: object, name: str = "path") -> None:
    """Refuse what is neither a string nor a path object; the file need not exist.

    >>> path(3)
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: path must be text or a Path, not 3
    """
    instance(value, (str, os.PathLike), name, "text or a Path")


def short_repr(value: object) -> str:
    """Format a value for a message in at most 60 characters: numbers, text, lists by `repr`, other objects by their class.

    >>> short_repr("a"), short_repr(np.float64(0.5)), short_repr({"a": 1}), short_repr("a" * 70)[-5:]
    ("'a'", '0.5', 'dict', 'aa...')
    """
    plain = isinstance(value, (str, int, float, bool, type(None), type, np.generic, list, tuple))
    text = (str(value) if isinstance(value, np.generic) else repr(value)) if plain else type(value).__name__
    return text if len(text) <= 60 else f"{text[:57]}..."
