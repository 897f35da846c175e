"""Distances: how far the mean output of a bin is from its mean outcome.

Outputs and outcomes are distributions over the same events, on the last axis. Most distances see only their difference; the
interval distance of a Likert scale sees only the outcome.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from truecal import options
from truecal.errors import InputError
from truecal.predictions import validation
from truecal.special import positive
from truecal.types import Float64s

_MOST_EVENTS = 64  # up to so many the largest distance is looked for among all pairs of events


@dataclass(frozen=True)
class Distance(ABC):
    """Call it with mean outputs and mean outcomes, shape (..., events): one number for each."""

    @abstractmethod
    def between(self, gap: Float64s, outcome: Float64s, event: int) -> Float64s:
        """The distance, from gap = outcome - output, the outcome itself, and the one event looked at where there are two."""

    def __str__(self) -> str:
        """The distance in words."""
        return type(self).__name__

    def check(self, events: int) -> None:  # noqa: B027 (most distances are made for any number)
        """Refuse a number of events that this distance is not made for."""

    @property
    def at_outputs(self) -> bool:
        """Whether a model is perfect under this distance just where outcomes are as frequent as the outputs say."""
        return True

    def slope(self, gap: Float64s) -> Float64s:
        """Slopes s with sum_i s_i gap_i = d(gap), and at most d for any other gap; none where that is not known."""
        return np.zeros_like(gap)

    def largest(self, events: int) -> float:
        """The largest possible distance: between two events that are certain (distances are convex); inf where not known."""
        options.whole(events, "events")
        self.check(events)
        if events > _MOST_EVENTS:
            return np.inf
        certain = np.eye(events)
        gap = certain[:, None] - certain[None, :]
        return float(self.between(gap, np.broadcast_to(certain[:, None], gap.shape), min(1, events - 1)).max())

    def ideal(self, outcome: Float64s, event: int) -> Float64s:
        """The outcome nearest to the one seen that would cost nothing, where that does not depend on the output alone."""
        return outcome

    def __call__(self, output: ArrayLike, outcome: ArrayLike) -> Float64s:
        g, y = (
            validation.as_floats(output, "outputs").astype(np.float64),
            validation.as_floats(outcome, "outcomes").astype(np.float64),
        )
        if g.shape != y.shape or g.ndim == 0:
            raise InputError(
                f"outputs of shape {g.shape} and outcomes of shape {y.shape} must match, events on the last axis"
            )
        if not (np.isfinite(g).all() and np.isfinite(y).all()):
            raise InputError("outputs and outcomes must be finite numbers")
        self.check(g.shape[-1])
        return self.between(y - g, y, min(1, g.shape[-1] - 1))


@dataclass(frozen=True)
class TotalVariation(Distance):
    """d(g, y) = 1/2 sum_i |g_i - y_i|: the largest difference in the probability of any set of events.

    For two events this is |g - y|, so a binned error of one probability under it is the ordinary ECE.

    >>> TotalVariation()([0.7, 0.2, 0.1], [0.5, 0.3, 0.2]).round(12)
    np.float64(0.2)
    """

    def __str__(self) -> str:
        return "total variation"

    def between(self, gap: Float64s, outcome: Float64s, event: int) -> Float64s:
        return 0.5 * np.abs(gap).sum(axis=-1)

    def slope(self, gap: Float64s) -> Float64s:
        return 0.5 * np.sign(gap)

    def largest(self, events: int) -> float:
        return 1.0


@dataclass(frozen=True)
class Lp(Distance):
    """d(g, y) = (sum_i |g_i - y_i|^p)^(1/p), p >= 1; p = inf is the largest difference.

    One probability is judged as the pair (p, 1 - p), so under Lp(2) its error is sqrt(2) times the difference.

    >>> float(Lp(2)([1.0, 0.0], [0.5, 0.5])), float(Lp(np.inf)([0.75, 0.25], [0.5, 0.5]))
    (0.7071067811865476, 0.25)
    """

    p: float

    def __post_init__(self) -> None:
        if not options.is_number(self.p) or not self.p >= 1:
            raise InputError(f"p must be a number of at least 1, or inf, not {self.p!r}")

    def __str__(self) -> str:
        return f"L{self.p:g} distance"

    def between(self, gap: Float64s, outcome: Float64s, event: int) -> Float64s:
        absolute = np.abs(gap)
        if self.p == np.inf:
            return absolute.max(axis=-1)
        if self.p == 1:
            return absolute.sum(axis=-1)
        return (absolute**self.p).sum(axis=-1) ** (1 / self.p)

    def slope(self, gap: Float64s) -> Float64s:
        if self.p == np.inf:
            largest = np.arange(gap.shape[-1]) == np.abs(gap).argmax(axis=-1)[..., None]
            return np.where(largest, np.sign(gap), 0.0)
        size = self.between(gap, gap, 0)[..., None]
        return np.sign(gap) * (np.abs(gap) / positive(size)) ** (self.p - 1)


@dataclass(frozen=True)
class ClassWeighted(Distance):
    """d(g, y) = sqrt(sum_i w_i (g_i - y_i)^2) with a cost w_i >= 0 for each event.

    Kumar et al. (2019); eq. 9 of Kirchenbauer, Oaks & Heim (2022).

    >>> float(ClassWeighted([4, 0])([1.0, 0.0], [0.5, 0.5]))
    1.0
    """

    weights: tuple[float, ...]

    def __init__(self, weights: Sequence[float]) -> None:
        w = _numbers(weights, "class weights")
        if w.ndim != 1 or (w < 0).any() or not w.any():
            raise InputError(f"class weights must be a list of numbers, not negative and not all zero, not {weights!r}")
        object.__setattr__(self, "weights", tuple(w.tolist()))

    def check(self, events: int) -> None:
        if len(self.weights) != events:
            raise InputError(
                f"{len(self.weights)} class weights were given, but the lens sees {events} events; give one for each"
            )

    def __str__(self) -> str:
        return "class-weighted distance"

    def between(self, gap: Float64s, outcome: Float64s, event: int) -> Float64s:
        return np.sqrt((gap * gap) @ np.array(self.weights))

    def slope(self, gap: Float64s) -> Float64s:
        size = self.between(gap, gap, 0)[..., None]
        return gap * np.array(self.weights) / positive(size)


@dataclass(frozen=True)
class Mahalanobis(Distance):
    """d(g, y) = sqrt((g - y) M (g - y)^T) for a symmetric positive semidefinite M: off the diagonal stand costs of confusions.

    Eq. 11 of Kirchenbauer, Oaks & Heim (2022). A diagonal M is :class:`ClassWeighted`.

    >>> float(Mahalanobis([[2, -2], [-2, 2]])([1.0, 0.0], [0.5, 0.5]).round(12))
    1.414213562373
    """

    matrix: tuple[tuple[float, ...], ...]

    def __init__(self, matrix: Sequence[Sequence[float]] | np.ndarray) -> None:
        m = _numbers(matrix, "rows of the matrix")
        if m.ndim != 2 or m.shape[0] != m.shape[1]:
            raise InputError(f"the matrix must be square, not of shape {m.shape}")
        size = float(np.abs(m).max(initial=0.0))
        skew = np.abs(m - m.T)
        if skew.max(initial=0.0) > 1e-9 * size:
            i, j = (int(k) for k in np.unravel_index(int(skew.argmax()), m.shape))
            raise InputError(f"the matrix must be symmetric: M[{i}, {j}] is {m[i, j]:g} but M[{j}, {i}] is {m[j, i]:g}")
        smallest = float(np.linalg.eigvalsh((m + m.T) / 2).min(initial=0.0))
        if smallest < -1e-9 * size:
            raise InputError(
                f"the matrix must be positive semidefinite, but has the eigenvalue {smallest:.4g}; otherwise errors could cancel"
            )
        object.__setattr__(self, "matrix", tuple(map(tuple, m.tolist())))

    def check(self, events: int) -> None:
        if len(self.matrix) != events:
            size = len(self.matrix)
            raise InputError(
                f"the matrix is {size} x {size}, but the lens sees {events} events; it must be {events} x {events}"
            )

    def __str__(self) -> str:
        return "Mahalanobis distance"

    def between(self, gap: Float64s, outcome: Float64s, event: int) -> Float64s:
        square = ((gap @ np.array(self.matrix)) * gap).sum(axis=-1)
        return np.sqrt(np.maximum(square, 0.0))  # a semidefinite form is below 0 by rounding only

    def slope(self, gap: Float64s) -> Float64s:
        size = self.between(gap, gap, 0)[..., None]
        return gap @ np.array(self.matrix) / positive(size)


@dataclass(frozen=True)
class InterInterval(Distance):
    """d(g, y) = max(0, low - y, y - high): an outcome costs nothing while it stays inside the interval people were shown.

    Eq. 7 of Kirchenbauer, Oaks & Heim (2022), for one probability. Select the outputs inside the interval with :func:`by_output`,
    or use :func:`likert` for a whole scale. It is not a metric: it is zero for different arguments.

    >>> low = InterInterval(0, 0.33)
    >>> [round(float(low(0.2, mean_outcome)), 12) for mean_outcome in (0.30, 0.40)]
    [0.0, 0.07]
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        options.limits(self.low, self.high, "the interval")
        if self.low < 0 or self.high > 1:
            raise InputError(
                f"the interval [{self.low:g}, {self.high:g}] must lie in [0, 1]; give probabilities, not percentages"
            )

    def check(self, events: int) -> None:
        if events > 2:
            raise InputError(
                f"InterInterval judges one probability, not {events} events; use OneClass, TopLabel or TopK(1)"
            )

    def __call__(self, output: ArrayLike, outcome: ArrayLike) -> Float64s:
        """For single probabilities, or arrays of them; the output does not matter."""
        y = validation.as_floats(outcome, "outcomes").astype(np.float64)
        if not np.isfinite(y).all():
            raise InputError("outcomes must be finite numbers")
        return self._cost(y)

    def _cost(self, y: Float64s) -> Float64s:
        return np.maximum(0.0, np.maximum(self.low - y, y - self.high))

    @property
    def at_outputs(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"distance from [{self.low:g}, {self.high:g}]"

    def between(self, gap: Float64s, outcome: Float64s, event: int) -> Float64s:
        return self._cost(outcome[..., event])

    def ideal(self, outcome: Float64s, event: int) -> Float64s:
        inside = np.clip(outcome[..., event : event + 1], self.low, self.high)
        return np.concatenate([1 - inside, inside] if event else [inside, 1 - inside], axis=-1)


def _numbers(values: ArrayLike, what: str) -> Float64s:
    array = validation.as_floats(values, what).astype(np.float64)
    if not np.isfinite(array).all():
        raise InputError(f"{what} must be finite numbers, but contain {array[~np.isfinite(array)][0]}")
    return array
