"""Correlation across models, with an interval, and the line through them.

Intervals are analytic: the coefficient is taken through Fisher's atanh, where it is about normal, with the variances

- Pearson: 1 / (n - 3) (Fisher 1921; exact for normal values),
- Spearman: (1 + r^2 / 2) / (n - 3) (Bonett and Wright 2000),
- Kendall's tau-b: 0.437 / (n - 4) (Fieller, Hartley and Pearson 1957).

The models are the sample: an interval says what other models of the same kind might show. A coefficient of exactly 1 (or -1) is
treated as if half a pair of models stood the other way round, because otherwise its interval would be a single point.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from truecal import options
from truecal.errors import InputError
from truecal.types import Float64s

Method = Literal["pearson", "spearman", "kendall"]
METHODS: tuple[Method, ...] = ("pearson", "spearman", "kendall")
FEWEST = 5  # models below which no interval exists
FEW = 10  # models below which even a strong correlation is hardly known


@dataclass(frozen=True)
class Correlation:
    """A coefficient over `models` models; NaN where all values are alike, bounds NaN below 5 models."""

    method: Method
    value: float
    low: float
    high: float
    models: int


def correlate(x: ArrayLike, y: ArrayLike, method: Method = "kendall", *, level: float = 0.95) -> Correlation:
    """The coefficient of two columns of numbers, one row per model.

    >>> found = correlate([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 6, 5])
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (0.867, 0.383, 0.977)
    """
    from scipy import stats

    options.choice(method, METHODS, "method")
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise InputError(f"a correlation needs two columns of one length, not of shapes {a.shape} and {b.shape}")
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return Correlation(method, np.nan, np.nan, np.nan, len(a))
    find: Any = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}[method]
    value = float(find(a, b)[0])
    low, high = correlation_bounds(np.array([value]), len(a), method, level)
    return Correlation(method, value, float(low[0]), float(high[0]), len(a))


def correlation_bounds(value: Float64s, models: int, method: Method, level: float) -> tuple[Float64s, Float64s]:
    """Interval of each coefficient; NaN where there are too few models."""
    from scipy.special import ndtri

    if models < FEWEST:
        return np.full_like(value, np.nan), np.full_like(value, np.nan)
    most = 1 - 2 / (models * (models - 1))
    held = np.clip(value, -most, most)
    spread = {
        "pearson": np.full_like(value, 1 / (models - 3)),
        "spearman": (1 + held**2 / 2) / (models - 3),
        "kendall": np.full_like(value, 0.437 / (models - 4)),
    }[method]
    reach = float(ndtri((1 + level) / 2)) * np.sqrt(spread)
    centre = np.arctanh(held)
    return np.minimum(np.tanh(centre - reach), value), np.maximum(np.tanh(centre + reach), value)


@dataclass(frozen=True)
class Line:
    """Least squares y = intercept + slope * x, the slope with Student's interval; NaN where the points do not tell."""

    slope: float
    intercept: float
    low: float
    high: float
    explained: float  # share of the variance of y (R squared)
    models: int


def fit_line(x: ArrayLike, y: ArrayLike, *, level: float = 0.95) -> Line:
    """The line through the models.

    >>> line = fit_line([0, 1, 2, 3], [1, 3, 5, 7])
    >>> round(line.slope, 12), round(line.intercept, 12), round(line.explained, 12)
    (2.0, 1.0, 1.0)
    """
    from scipy.special import stdtrit

    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    n = len(a)
    centred = a - a.mean()
    square = float(centred @ centred)
    if n < 2 or np.ptp(a) == 0:
        return Line(np.nan, np.nan, np.nan, np.nan, np.nan, n)
    slope = float(centred @ b) / square
    intercept = float(b.mean()) - slope * float(a.mean())
    rest = b - intercept - slope * a
    total = float(((b - b.mean()) ** 2).sum())
    explained = 1 - float(rest @ rest) / total if total > 0 else np.nan
    if n < 3:
        return Line(slope, intercept, np.nan, np.nan, np.nan, n)
    error = np.sqrt(float(rest @ rest) / (n - 2) / square)
    reach = float(stdtrit(n - 2, (1 + level) / 2)) * error
    return Line(slope, intercept, slope - reach, slope + reach, explained, n)


def few_models(count: int, place: str) -> list[tuple[str, str]]:
    """What to say about a coefficient of so many models, and where."""
    if count < FEWEST:
        return [(f"{count} models are too few for a correlation with an interval; at least {FEWEST} are needed", place)]
    if count < FEW:
        return [(f"with {count} models even a strong correlation is hardly known; read its interval", place)]
    return []
