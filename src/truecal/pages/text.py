"""Numbers as cells of a table: the filters of the templates. The rules for digits stand in `truecal.digits`."""

from math import inf, isfinite
from typing import Any

from truecal.digits import decimals


def rounded(value: float | None, low: float | None = None, high: float | None = None, sign: str = "") -> str:
    """Write a number with the decimals that its interval allows.

    >>> rounded(0.03217, 0.021, 0.043), rounded(0.1), rounded(float("inf")), rounded(None)
    ('0.032', '0.1000', 'infinite', '')
    """
    return formatted(value, f"{sign}.{decimals(low, high)}f")


def interval(low: float | None, high: float | None, sign: str = "", missing: str = "") -> str:
    """Write two limits with the decimals that their distance allows.

    >>> interval(0.0211, 0.0434), interval(0.2, float("inf")), interval(None, None, missing="too few rows")
    ('0.021 to 0.043', '0.2000 to infinite', 'too few rows')
    """
    if low is None or high is None or low != low or high != high:
        return missing
    return f"{rounded(low, low, high, sign)} to {rounded(high, low, high, sign)}"


def formatted(value: Any, spec: str) -> str:
    """Write a number by a format; nothing where there is none, a word where it is infinite."""
    if value is None or value != value:
        return ""
    return format(value, spec) if isfinite(value) else "infinite"


def sort_key(value: Any) -> str:
    """Write what a cell sorts by, as JavaScript reads it; what is missing comes first.

    >>> sort_key(float("inf")), sort_key(None), sort_key(0.5), sort_key("a")
    ('Infinity', '-1', '0.5', 'a')
    """
    if value is None or value != value:
        return "-1"
    if isinstance(value, str):
        return value
    return "Infinity" if value == inf else "-Infinity" if value == -inf else repr(float(value))
