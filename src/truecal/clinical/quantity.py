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
    centre, slope = onto(value, scale)
    reach = student(df, level) * se * slope
    return Quantity(float(value), back(centre - reach, scale), back(centre + reach, scale), level, float(se), method)


def onto(value: float, scale: Scale) -> tuple[float, float]:
    """A value on a scale, and the derivative of the scale there."""
    if scale == "plain":
        return value, 1.0
    return (np.log(value), 1 / value) if scale == "log" else (np.log(value / (1 - value)), 1 / (value * (1 - value)))


def back(place: float, scale: Scale) -> float:
    """The value that stands at a place of a scale."""
    from scipy.special import expit

    return float(place if scale == "plain" else np.exp(place) if scale == "log" else expit(place))


def skewed(value: float, se: float, df: float, skewness: float, *, level: float, method: str) -> Quantity:
    """value with an interval that allows for the skewness of its error (Hall 1992, JRSS B 54:221-228).

    T = (value - truth) / se of a skewed mean is not symmetric: g(T) = T + c T^2 / 3 + c^2 T^3 / 27 + c / 6 nearly is, c the
    skewness of the value. Its inverse puts the two ends at different distances.

    >>> str(skewed(1.0, 0.1, 99, 0.3, level=0.95, method="example"))
    '1.000 [0.835, 1.270]'
    """
    reach = student(df, level)
    ends = [reach, -reach]
    if abs(skewness) > 1e-9:
        ends = [3 / skewness * (np.cbrt(1 + skewness * (x - skewness / 6)) - 1) for x in ends]
    return Quantity(float(value), float(value - se * ends[0]), float(value - se * ends[1]), level, float(se), method)
