"""Distances: how far the mean output of a bin is from its mean outcome.

Outputs and outcomes are distributions over the same events, on the last axis. All but the interval distance of an answer scale,
which looks at the outcome alone, are norms of their difference.
"""

from __future__ import annotations

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

_PAIRED_EVENTS = 64  # derived: the distances of all pairs of so many events take 2 MB


@dataclass(frozen=True)
class Distance(ABC):
    """Call it with mean outputs and mean outcomes, shape (..., events): one number for each."""

    @abstractmethod
    def between(self, gap: Float64s, outcome: Float64s, event: int) -> Float64s:
        """Measure the distance.

        Parameters
        ----------
        gap : array of shape (..., events)
            Mean outcome minus mean output.
        outcome : array of shape (..., events)
            Mean outcome.
        event : int
            The event of interest, where there are two.

        Returns
        -------
        array of shape (...)
        """

    @abstractmethod
    def slope(self, gap: Float64s, outcome: Float64s, event: int) -> Float64s:
        """Differentiate the distance by the gap of every event, by a subgradient where it is not smooth.

        Parameters
        ----------
        gap : array of shape (..., events)
            Mean outcome minus mean output.
        outcome : array of shape (..., events)
            Mean outcome.
        event : int
            The event of interest, where there are two.

        Returns
        -------
        array of shape (..., events)
            0 for a gap of 0; for a distance from an interval, -1 or 1 by the nearer end, also inside.
        """

    def __str__(self) -> str:
        """Name the distance."""
        return type(self).__name__

    def check(self, events: int) -> None:  # noqa: B027 (most distances are made for any number)
        """Refuse a number of events that this distance is not made for.

        Parameters
        ----------
        events : int
            Number of events.

        Raises
        ------
        InputError
            If the distance is made for another number.
        """

    @property
    def zero_at_outputs(self) -> bool:
        """Whether the distance is 0 exactly if mean outcome and mean output are equal.

        >>> TotalVariation().zero_at_outputs
        True
        """
        return True

    def along(self, slope: Float64s, gap: Float64s, outcome: Float64s, event: int) -> Float64s:
        """Evaluate the linear function of the gap with slopes of :meth:`slope`, which is at most the distance.

        Parameters
        ----------
        slope : array of shape (..., events)
            Slopes of the function.
        gap : array of shape (..., events)
            Mean outcome minus mean output.
        outcome : array of shape (..., events)
            Mean outcome.
        event : int
            The event of interest, where there are two.

        Returns
        -------
        array of shape (...)
        """
        return (slope * gap).sum(axis=-1)

    def moved_outward(self, gap: Float64s, outcome: Float64s, event: int, reach: float) -> Float64s:
        """Bound the distance of outcomes whose distance may be larger by `reach`.

        Parameters
        ----------
        gap : array of shape (..., events)
            Mean outcome minus mean output.
        outcome : array of shape (..., events)
            Mean outcome.
        event : int
            The event of interest, where there are two.
        reach : float
            Increase of the distance.

        Returns
        -------
        array of shape (...)
            Distance plus reach; for a distance from an interval, 0 for outcomes farther than reach inside it.
        """
        return self.between(gap, outcome, event) + reach

    def ideal(self, outcome: Float64s, event: int) -> Float64s:
        """Find the outcome nearest to the observed one at distance 0, where that does not depend on the output.

        Parameters
        ----------
        outcome : array of shape (..., events)
            Mean outcome.
        event : int
            The event of interest, where there are two.

        Returns
        -------
        array of shape (..., events)
        """
        return outcome

    def largest(self, events: int) -> float:
        """Find the largest possible distance.

        Parameters
        ----------
        events : int
            Number of events.

        Returns
        -------
        float
            The largest distance between two certain events, which is the largest of all because distances are convex;
            infinity for more than 64 events, where it is not searched.
        """
        options.whole(events, "events")
        self.check(events)
        if events > _PAIRED_EVENTS:
            return np.inf
        certain = np.eye(events)
        gap = certain[:, None] - certain[None, :]
        return float(self.between(gap, np.broadcast_to(certain[:, None], gap.shape), min(1, events - 1)).max())

    def __call__(self, output: ArrayLike, outcome: ArrayLike) -> Float64s:
        """Compute the distance between outputs and outcomes of one shape (..., events), shape (...).

        >>> TotalVariation()([0.5, 0.3, 0.2], [1, 0, 0])
        np.float64(0.5)
        """
        g, y = _numbers(output, "outputs"), _numbers(outcome, "outcomes")
        if g.shape != y.shape or g.ndim == 0:
            raise InputError(
                f"outputs of shape {g.shape} and outcomes of shape {y.shape} must match, events on the last axis"
            )
        self.check(g.shape[-1])
        return self.between(y - g, y, min(1, g.shape[-1] - 1))


@dataclass(frozen=True)
class TotalVariation(Distance):
    r"""Measure the largest difference in the probability of any set of events.

    Notes
    -----
    :math:`d(g, y) = \frac12 \sum_i |g_i - y_i|`. For two events this is :math:`|g - y|`, so a binned error of one
    probability under it is the ordinary ECE.

    See Also
    --------
    GeneralizedECE : Averages the distance over bins.

    Examples
    --------
    >>> TotalVariation()([0.7, 0.2, 0.1], [0.5, 0.3, 0.2]).round(12)
    np.float64(0.2)
    """

    def __str__(self) -> str:
        """Return "total variation".

        >>> str(TotalVariation())
        'total variation'
        """
        return "total variation"

    def between(self, gap: Float64s, outcome: Float64s, event: int) -> Float64s:
        """Compute half the sum of |gap| over the last axis.

        >>> TotalVariation().between(np.array([0.2, -0.2]), np.array([0.7, 0.3]), 0)
        np.float64(0.2)
        """
        return 0.5 * np.abs(gap).sum(axis=-1)

    def slope(self, gap: Float64s, outcome: Float64s, event: int) -> Float64s:
        """Return sign(gap) / 2.

        >>> TotalVariation().slope(np.array([0.2, -0.2]), np.array([0.7, 0.3]), 0)
        array([ 0.5, -0.5])
        """
        return 0.5 * np.sign(gap)

    def largest(self, events: int) -> float:
        """Return 1.0.

        >>> TotalVariation().largest(3)
        1.0
        """
        return 1.0


@dataclass(frozen=True)
class Lp(Distance):
    r"""Measure the p-norm of the difference.

    Parameters
    ----------
    p : float
        At least 1; infinity for the largest difference.

    Raises
    ------
    InputError
        If p is below 1.

    Notes
    -----
    :math:`d(g, y) = (\sum_i |g_i - y_i|^p)^{1/p}`. One probability is seen as the pair (p, 1 - p), so under Lp(2) its error
    is :math:`\sqrt 2` times the difference.

    See Also
    --------
    GeneralizedECE : Averages the distance over bins.

    Examples
    --------
    >>> float(Lp(2)([1.0, 0.0], [0.5, 0.5])), float(Lp(np.inf)([0.75, 0.25], [0.5, 0.5]))
    (0.7071067811865476, 0.25)
    """

    p: float

    def __post_init__(self) -> None:
        """Raise InputError unless p is a number of at least 1, or inf."""
        if not options.is_number(self.p) or not self.p >= 1:
            raise InputError(f"p must be a number of at least 1, or inf, not {self.p!r}")

    def __str__(self) -> str:
        """Write the norm.

        >>> print(Lp(2))
        L2 distance
        """
        return f"L{self.p:g} distance"

    def between(self, gap: Float64s, outcome: Float64s, event: int) -> Float64s:
        """Compute (sum |gap|^p)^(1/p) over the last axis; the largest |gap| for p = inf.

        >>> Lp(2).between(np.array([0.3, -0.4]), np.array([0.5, 0.5]), 0).round(6)
        np.float64(0.5)
        """
        return np.linalg.norm(gap, self.p, axis=-1)

    def slope(self, gap: Float64s, outcome: Float64s, event: int) -> Float64s:
        """Return sign(gap) (|gap| / d)^(p - 1), d the distance; for p = inf the sign at the first largest gap, else 0.

        >>> Lp(2).slope(np.array([0.3, -0.4]), np.array([0.5, 0.5]), 0).round(6)
        array([ 0.6, -0.8])
        """
        if self.p == np.inf:
            largest = np.arange(gap.shape[-1]) == np.abs(gap).argmax(axis=-1)[..., None]
            return np.where(largest, np.sign(gap), 0.0)
        size = self.between(gap, outcome, event)[..., None]
        return np.sign(gap) * (np.abs(gap) / positive(size)) ** (self.p - 1)


@dataclass(frozen=True)
class ClassWeighted(Distance):
    r"""Measure the Euclidean distance with a cost for each event.

    Parameters
    ----------
    weights : sequence of float
        Cost of each event, not negative and not all zero.

    Raises
    ------
    InputError
        If the costs are no such numbers, or not one for each event.

    Notes
    -----
    :math:`d(g, y) = (\sum_i w_i (g_i - y_i)^2)^{1/2}`.

    References
    ----------
    Kumar, A., Liang, P. and Ma, T. (2019). Verified uncertainty calibration. NeurIPS 32. arXiv:1909.10155

    Kirchenbauer, J., Oaks, J. and Heim, E. (2022). What is your metric telling you? Evaluating classifier calibration under
    context-specific definitions of reliability. arXiv:2205.11454, equation 9.

    See Also
    --------
    Mahalanobis : Costs of confusions, too.

    Examples
    --------
    >>> float(ClassWeighted([4, 0])([1.0, 0.0], [0.5, 0.5]))
    1.0
    """

    weights: tuple[float, ...]

    def __init__(self, weights: Sequence[float]) -> None:
        """Store the weights as a tuple of floats; refuse negative ones, and none above 0.

        >>> ClassWeighted([1, 2]).weights
        (1.0, 2.0)
        """
        w = _numbers(weights, "class weights")
        if w.ndim != 1 or (w < 0).any() or not w.any():
            raise InputError(f"class weights must be a list of numbers, not negative and not all zero, not {weights!r}")
        object.__setattr__(self, "weights", tuple(w.tolist()))

    def check(self, events: int) -> None:
        """Raise InputError unless there is one weight for each of the `events`.

        >>> ClassWeighted([1, 2]).check(3)
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: 2 class weights were given, but the lens has 3 events; give one for each
        """
        if len(self.weights) != events:
            raise InputError(
                f"{len(self.weights)} class weights were given, but the lens has {events} events; give one for each"
            )

    def __str__(self) -> str:
        """Return "class-weighted distance"."""
        return "class-weighted distance"

    def between(self, gap: Float64s, outcome: Float64s, event: int) -> Float64s:
        """Compute the root of sum_i weights_i gap_i^2 over the last axis.

        >>> ClassWeighted([4, 1]).between(np.array([0.5, 0.0]), np.array([0.5, 0.5]), 0)
        np.float64(1.0)
        """
        return np.sqrt((gap * gap) @ np.array(self.weights))

    def slope(self, gap: Float64s, outcome: Float64s, event: int) -> Float64s:
        """Return weights * gap / d, d the distance; 0 where the gap is 0.

        >>> ClassWeighted([4, 1]).slope(np.array([0.5, 0.0]), np.array([0.5, 0.5]), 0)
        array([2., 0.])
        """
        size = self.between(gap, outcome, event)[..., None]
        return gap * np.array(self.weights) / positive(size)


@dataclass(frozen=True)
class Mahalanobis(Distance):
    r"""Measure a quadratic distance, with costs of confusions off the diagonal.

    Parameters
    ----------
    matrix : array of shape (events, events)
        Symmetric and positive semidefinite.

    Raises
    ------
    InputError
        If the matrix is not, or not of the size of the events.

    Notes
    -----
    :math:`d(g, y) = ((g - y) M (g - y)^T)^{1/2}`. A diagonal M is :class:`ClassWeighted`.

    References
    ----------
    Kirchenbauer, J., Oaks, J. and Heim, E. (2022). What is your metric telling you? Evaluating classifier calibration under
    context-specific definitions of reliability. arXiv:2205.11454, equation 11.

    Examples
    --------
    >>> float(Mahalanobis([[2, -2], [-2, 2]])([1.0, 0.0], [0.5, 0.5]).round(12))
    1.414213562373
    """

    matrix: tuple[tuple[float, ...], ...]

    def __init__(self, matrix: Sequence[Sequence[float]] | np.ndarray) -> None:
        """Store the matrix; refuse one that is not square, symmetric and positive semidefinite, to 1e-9 of its largest entry.

        >>> Mahalanobis([[1, 2], [2, 1]])
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: the matrix must be positive semidefinite, but has the eigenvalue -1; otherwise
        errors could cancel
        """
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
        """Raise InputError unless the matrix has one row for each of the `events`.

        >>> Mahalanobis([[1, 0], [0, 1]]).check(3)
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: the matrix is 2 x 2, but the lens has 3 events; it must be 3 x 3
        """
        if len(self.matrix) != events:
            size = len(self.matrix)
            raise InputError(
                f"the matrix is {size} x {size}, but the lens has {events} events; it must be {events} x {events}"
            )

    def __str__(self) -> str:
        """Return "Mahalanobis distance"."""
        return "Mahalanobis distance"

    def between(self, gap: Float64s, outcome: Float64s, event: int) -> Float64s:
        """Compute the root of gap M gap' over the last axis; a form that rounds below 0 counts 0.

        >>> Mahalanobis([[4, 0], [0, 1]]).between(np.array([0.5, 0.0]), np.array([0.5, 0.5]), 0)
        np.float64(1.0)
        """
        square = ((gap @ np.array(self.matrix)) * gap).sum(axis=-1)
        return np.sqrt(np.maximum(square, 0.0))  # a semidefinite form is below 0 by rounding only

    def slope(self, gap: Float64s, outcome: Float64s, event: int) -> Float64s:
        """Return gap M / d, d the distance; 0 where the gap is 0.

        >>> Mahalanobis([[4, 0], [0, 1]]).slope(np.array([0.5, 0.0]), np.array([0.5, 0.5]), 0)
        array([2., 0.])
        """
        size = self.between(gap, outcome, event)[..., None]
        return gap @ np.array(self.matrix) / positive(size)


@dataclass(frozen=True)
class InterInterval(Distance):
    r"""Measure how far an outcome rate lies outside the interval of probabilities that people were shown.

    Parameters
    ----------
    low : float
        Lower end of the interval, in [0, 1].
    high : float
        Upper end of the interval, in [0, 1].

    Raises
    ------
    InputError
        If the ends are no interval of probabilities, or there are more than two events.

    Notes
    -----
    :math:`d(g, y) = \max(0, low - y, y - high)`, for one probability: the output does not matter. It is not a metric, because
    it is zero for different arguments. Select the outputs inside the interval with :func:`truecal.by_output`.

    References
    ----------
    Kirchenbauer, J., Oaks, J. and Heim, E. (2022). What is your metric telling you? Evaluating classifier calibration under
    context-specific definitions of reliability. arXiv:2205.11454, equation 7.

    See Also
    --------
    truecal.likert : Judges a whole answer scale.

    Examples
    --------
    >>> low = InterInterval(0, 0.33)
    >>> [round(float(low(0.2, mean_outcome)), 12) for mean_outcome in (0.30, 0.40)]
    [0.0, 0.07]
    """

    low: float
    high: float
    zero_at_outputs = False  # the distance is 0 for every rate inside the interval, whatever the output

    def __post_init__(self) -> None:
        """Raise InputError unless 0 <= low <= high <= 1."""
        options.limits(self.low, self.high, "the interval")
        if self.low < 0 or self.high > 1:
            raise InputError(
                f"the interval [{self.low:g}, {self.high:g}] must lie in [0, 1]; give probabilities, not percentages"
            )

    def check(self, events: int) -> None:
        """Raise InputError for more than two events.

        >>> InterInterval(0.6, 1.0).check(3)
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: InterInterval judges one probability, not 3 events; use OneClass, TopLabel or TopK(1)
        """
        if events > 2:
            raise InputError(
                f"InterInterval judges one probability, not {events} events; use OneClass, TopLabel or TopK(1)"
            )

    def __call__(self, output: ArrayLike, outcome: ArrayLike) -> Float64s:
        """Measure single probabilities, or arrays of them."""
        return np.maximum(self._excess(_numbers(outcome, "outcomes")), 0.0)

    def _excess(self, rate: Float64s) -> Float64s:
        """Return max(low - rate, rate - high): the distance of rates to the interval, negative inside it.

        >>> InterInterval(0.5, 1.0)._excess(np.array([0.25, 0.75]))
        array([ 0.25, -0.25])
        """
        return np.maximum(self.low - rate, rate - self.high)

    def __str__(self) -> str:
        """Write the interval.

        >>> print(InterInterval(0.6, 1.0))
        distance from [0.6, 1]
        """
        return f"distance from [{self.low:g}, {self.high:g}]"

    def between(self, gap: Float64s, outcome: Float64s, event: int) -> Float64s:
        """Compute max(0, low - rate, rate - high), with the rate outcome[..., event].

        >>> InterInterval(0.5, 1.0).between(np.zeros(2), np.array([0.25, 0.75]), 0)
        np.float64(0.25)
        """
        return np.maximum(self._excess(outcome[..., event]), 0.0)

    def ideal(self, outcome: Float64s, event: int) -> Float64s:
        """Return the pair of rates whose entry `event` is that of `outcome`, limited to [low, high]; both sum to 1.

        >>> InterInterval(0.5, 1.0).ideal(np.array([0.25, 0.75]), 0)
        array([0.5, 0.5])
        """
        inside = np.clip(outcome[..., event : event + 1], self.low, self.high)
        return np.concatenate([1 - inside, inside] if event else [inside, 1 - inside], axis=-1)

    def slope(self, gap: Float64s, outcome: Float64s, event: int) -> Float64s:
        """Return 1 at `event` where the rate is above the middle of the interval, else -1; 0 for the other event.

        >>> InterInterval(0.5, 1.0).slope(np.zeros(2), np.array([0.25, 0.75]), 0)
        array([-1.,  0.])
        """
        slope = np.zeros_like(outcome)
        slope[..., event] = np.where(outcome[..., event] > (self.low + self.high) / 2, 1.0, -1.0)
        return slope

    def along(self, slope: Float64s, gap: Float64s, outcome: Float64s, event: int) -> Float64s:
        """Compute rate - high where the slope at `event` is positive, else low - rate; negative inside the interval.

        >>> distance, rates = InterInterval(0.5, 1.0), np.array([0.25, 0.75])
        >>> distance.along(distance.slope(np.zeros(2), rates, 0), np.zeros(2), rates, 0)
        array(0.25)
        """
        side, rate = slope[..., event], outcome[..., event]
        return np.where(side > 0, side * (rate - self.high), side * (rate - self.low))

    def moved_outward(self, gap: Float64s, outcome: Float64s, event: int, reach: float) -> Float64s:
        """Compute max(0, excess + reach), with the excess max(low - rate, rate - high), negative inside the interval.

        >>> InterInterval(0.5, 1.0).moved_outward(np.zeros(2), np.array([0.25, 0.75]), 0, 0.125)
        np.float64(0.375)
        """
        return np.maximum(self._excess(outcome[..., event]) + reach, 0.0)


def _numbers(values: ArrayLike, what: str) -> Float64s:
    """Convert to float64 and refuse values that are not finite; `what` names them in the message.

    >>> _numbers([1, 2], "class weights")
    array([1., 2.])
    """
    array = validation.as_floats(values, what).astype(np.float64)
    if not np.isfinite(array).all():
        raise InputError(f"{what} must be finite numbers, but contain {array[~np.isfinite(array)][0]}")
    return array
