"""Options refused in one place and in one wording: levels, whole numbers, choices, norms, seeds."""

from typing import Any

import numpy as np

from truecal.errors import InputError

_LARGEST_NORM = 20  # the power of a gap of 1e-15 is still a number


def level(level: object) -> None:
    """Refuse a confidence level that is not a number strictly between 0 and 1."""
    between(level, "level", 0, 1)


def between(value: object, name: str, low: float, high: float) -> None:
    """Refuse what is not a number strictly between `low` and `high`."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not low < value < high:  # type: ignore[operator]
        raise InputError(f"{name} must lie strictly between {low:g} and {high:g}, not {value!r}")


def whole(value: object, name: str, least: int = 1, most: int | None = None) -> None:
    """Refuse what is not a whole number of at least `least` (and at most `most`)."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < least:  # type: ignore[operator]
        raise InputError(f"{name} must be a whole number of at least {least}, not {value!r}")
    if most is not None and value > most:  # type: ignore[operator]
        raise InputError(f"{name} must be at most {most:,}, not {value:,}")


def choice(value: object, choices: tuple[object, ...], name: str) -> None:
    """Refuse an option that is not among its choices."""
    if value not in choices:
        raise InputError(f"{name} must be {' or '.join(map(repr, choices))}, not {value!r}")


def norm(norm: object, allowed: tuple[float, ...] | None = None) -> None:
    """Refuse a norm that is not a number from 1 to 20 or inf, or not among the allowed."""
    number = isinstance(norm, (int, float, np.integer, np.floating)) and not isinstance(norm, bool)
    if not number or not norm >= 1:  # type: ignore[operator]
        raise InputError(f"norm must be a number of at least 1, or inf, not {norm!r}")
    if _LARGEST_NORM < norm < np.inf:  # type: ignore[operator]
        raise InputError(f"norm must be at most {_LARGEST_NORM}, or inf for the largest gap, not {norm!r}")
    if allowed is not None and norm not in allowed:
        raise InputError(f"norm must be {' or '.join(f'{p:g}' for p in allowed)} here, not {norm:g}")


def generator(rng: Any) -> np.random.Generator:
    """The generator behind `rng`: a seed (a whole number of at least 0), or a numpy Generator that goes on where it is."""
    if isinstance(rng, (np.random.Generator, np.random.SeedSequence)):
        return np.random.default_rng(rng)
    whole(rng, "rng", 0)
    return np.random.default_rng(int(rng))
