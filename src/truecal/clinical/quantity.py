"""A number with its interval: what every clinical summary is made of."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

Scale = Literal["plain", "log", "logit"]


@dataclass(frozen=True)
class Quantity:
    """A value, and `low` to `high`, which hold the true one with probability `level`; `se` is the standard error, None where the
    interval is not built from one."""

    value: float
    low: float
    high: float
    level: float
    se: float | None
    method: str

    def __float__(self) -> float:
        return self.value

    def __contains__(self, value: object) -> bool:
        return bool(self.low <= value <= self.high)  # type: ignore[operator]

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def student(df: float, level: float) -> float:
    """The quantile of Student's distribution that leaves (1 - level) / 2 above it."""
    from scipy.special import stdtrit

    return float(stdtrit(df, 0.5 + level / 2))


def quantity(value: float, se: float, df: float, *, level: float, scale: Scale = "plain", method: str) -> Quantity:
    """value with the interval value -+ t se, built on a scale on which the value is nearly normal.

    "log" keeps positive numbers positive, "logit" keeps shares in (0, 1); the standard error is carried over by the derivative
    of the scale. A value at the end of its scale has no such interval: the caller treats it.

    >>> str(quantity(1.0, 0.1, 99, level=0.95, scale="log", method="example"))
    '1.000 [0.820, 1.219]'
    """
    reach = student(df, level) * se
    if scale == "plain":
        low, high = value - reach, value + reach
    elif scale == "log":
        low, high = value * np.exp(-reach / value), value * np.exp(reach / value)
    else:
        odds, factor = value / (1 - value), np.exp(reach / (value * (1 - value)))
        low, high = odds / factor / (1 + odds / factor), odds * factor / (1 + odds * factor)
    return Quantity(float(value), float(low), float(high), level, float(se), method)
