"""True calibration curves T(c) = P(y = 1 | score c), from c and 1-c, so that saturated scores keep their meaning."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from truecal.errors import InputError
from truecal.lab.distributions import Array
from truecal.predictions import validation
from truecal.special import expit

Function = Literal["log", "logflip", "logit"]


class ScoreCurve(ABC):
    """Base class of the maps from scores to probabilities.

    Notes
    -----
    A subclass defines :meth:`at`. Calling a curve with scores alone uses 1 - c as computed; scores outside [0, 1] are
    refused.

    See Also
    --------
    World : Scores and outcomes with a true calibration curve.
    """

    @abstractmethod
    def at(self, c: Array, rest: Array) -> Array:
        """Evaluate the curve.

        Parameters
        ----------
        c : ndarray
            Scores.
        rest : ndarray of the same shape
            Their complements 1 - c, exact where c rounds to 1.

        Returns
        -------
        ndarray
            Probability at each score.
        """

    def __call__(self, c: npt.ArrayLike) -> Array:
        """Evaluate the curve at scores; refuse scores outside [0, 1].

        >>> Power(2.0)([0.5, 1.0])
        array([0.25, 1.  ])
        """
        scores = validation.as_floats(c, "scores").astype(np.float64)
        validation.refuse_outside_unit(scores, "scores")
        return self.at(scores, 1.0 - scores)

    def merged(self) -> list[Stretches]:
        """List the intervals of scores that share one value of the curve.

        Returns
        -------
        list of tuple
            For each value, its half-open intervals (low, high); empty for a strictly increasing curve.

        Raises
        ------
        InputError
            If the curve is not strictly increasing and does not define its intervals, as `Steps` does.

        Examples
        --------
        >>> Power(2.0).merged()
        []
        """
        # checked on a grid within [0.001, 0.999]: nearer to the ends float64 may round a rising map to equal values
        if np.any(np.diff(self(np.linspace(0.001, 0.999, 999))) <= 0):
            raise InputError(
                "the recalibration is not strictly increasing: a map that merges scores must be given as Steps, which says "
                "which of them share an output"
            )
        return []


# Intervals [low, high) of c, the last one closed at 1.
Stretches = tuple[tuple[float, float], ...]


def as_curve(curve: ScoreCurve | Callable[[Array], Array], name: str) -> ScoreCurve:
    """Return a curve unchanged and a function of scores as `AnyCurve`; refuse others, by the name of the argument.

    >>> as_curve(lambda c: c**2, "curve")([0.5])
    array([0.25])
    """
    if isinstance(curve, ScoreCurve):
        return curve
    if not callable(curve):
        raise InputError(f"{name} must be a ScoreCurve or a function of an array of scores, not {curve!r}")
    return AnyCurve(curve)


@dataclass(frozen=True)
class Identity(ScoreCurve):
    """Represent perfect calibration, T(c) = c.

    Examples
    --------
    >>> import truecal as tc
    >>> tc.lab.Identity()([0.1, 0.9])
    array([0.1, 0.9])
    """

    def at(self, c: Array, rest: Array) -> Array:
        """Return the scores themselves.

        Parameters
        ----------
        c : ndarray
            Scores.
        rest : ndarray of the same shape
            Their complements 1 - c.

        Returns
        -------
        ndarray
            T(c) = c, not copied.
        """
        return c


def transform(name: Function, c: Array, rest: Array) -> Array:
    """Compute log c, logflip c = log(1 - c) or logit c = log c - log(1 - c), from c and rest = 1 - c; infinite at the ends.

    >>> c = np.array([0.25, 1.0])
    >>> transform("logit", c, 1 - c).round(4), transform("logflip", c, 1 - c).round(4)
    (array([-1.0986,     inf]), array([-0.2877,    -inf]))
    """
    with np.errstate(divide="ignore"):
        if name == "logflip":
            return np.log(rest)
        if name == "logit":
            return np.log(c) - np.log(rest)
        return np.where(rest < 0.5, np.log1p(-rest), np.log(c))  # near 1, c is rounded and 1 - c is exact


def inverse_link(name: Function, eta: Array) -> Array:
    """Invert a transform, elementwise: exp(eta) of log, 1 - exp(eta) of logflip, 1 / (1 + exp(-eta)) of logit.

    >>> inverse_link("log", np.log([0.25])), inverse_link("logflip", np.log([0.25])), inverse_link("logit", np.array([0.0]))
    (array([0.25]), array([0.75]), array([0.5]))
    """
    if name == "log":
        return np.exp(eta)
    if name == "logflip":
        return -np.expm1(eta)
    return np.asarray(expit(eta), dtype=np.float64)


@dataclass(frozen=True)
class GLM(ScoreCurve):
    """Represent the calibration curve of a generalised linear model, g(T) = b0 + b1 t(c).

    Parameters
    ----------
    link : {"log", "logflip", "logit"}
        Function g of the probability; logflip x = log(1 - x).
    transform : {"log", "logflip", "logit"}
        Function t of the score.
    b0 : float
        Intercept.
    b1 : float
        Slope.

    Raises
    ------
    InputError
        If a function is unknown, or a coefficient is not finite or beyond 1e100.

    References
    ----------
    .. [1] R. Roelofs, N. Cain, J. Shlens, M. C. Mozer (2022). Mitigating Bias in Calibration Error Estimation.
           AISTATS, section 5.1.

    Examples
    --------
    >>> import truecal as tc
    >>> tc.lab.GLM("logflip", "logflip", -0.24, 0.30)([0.5, 0.99, 1.0]).round(4)
    array([0.3611, 0.8024, 1.    ])
    """

    link: Function
    transform: Function
    b0: float
    b1: float

    def __post_init__(self) -> None:
        """Refuse an unknown link or transform, and coefficients beyond 1e100.

        >>> GLM("probit", "log", 0.0, 1.0)
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: unknown link 'probit': use one of log, logflip, logit
        """
        for kind, name in (("link", self.link), ("transform", self.transform)):
            if name not in get_args(Function):
                raise InputError(f"unknown {kind} {name!r}: use one of {', '.join(get_args(Function))}")
        for parameter, value in (("b0", self.b0), ("b1", self.b1)):
            if not abs(float(value)) <= 1e100:  # products with transformed scores stay finite
                raise InputError(f"{parameter} must be a finite number from -1e+100 to 1e+100, not {value!r}")

    def at(self, c: Array, rest: Array) -> Array:
        """Evaluate T(c) = g^-1(b0 + b1 t(c)).

        Parameters
        ----------
        c : ndarray
            Scores.
        rest : ndarray of the same shape
            Their complements 1 - c.

        Returns
        -------
        ndarray
            Probability at each score; g^-1(b0) everywhere if b1 is 0.
        """
        if self.b1 == 0.0:  # 0 * infinity would be nan
            return np.full(np.shape(c), float(inverse_link(self.link, np.asarray(self.b0))))
        eta = transform(self.transform, c, rest)
        eta *= self.b1
        eta += self.b0
        return inverse_link(self.link, eta)


@dataclass(frozen=True)
class Power(ScoreCurve):
    """Represent the calibration curve T(c) = c^d.

    Parameters
    ----------
    d : float
        Exponent, above 0; above 1 all scores are too high.

    Raises
    ------
    InputError
        If the exponent is not a finite number above 0.

    References
    ----------
    .. [1] R. Roelofs, N. Cain, J. Shlens, M. C. Mozer (2022). Mitigating Bias in Calibration Error Estimation.
           AISTATS, sections 5.3 and 5.4.

    Examples
    --------
    >>> import truecal as tc
    >>> tc.lab.Power(2)([0.5, 1.0])
    array([0.25, 1.  ])
    """

    d: float

    def __post_init__(self) -> None:
        """Refuse an exponent that is not a finite number above 0.

        >>> Power(0.0)
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: the exponent of a Power curve must be > 0, not 0.0
        """
        if not (isfinite(self.d) and self.d > 0):
            raise InputError(f"the exponent of a Power curve must be > 0, not {self.d!r}")

    def at(self, c: Array, rest: Array) -> Array:
        """Evaluate T(c) = c^d.

        Parameters
        ----------
        c : ndarray
            Scores.
        rest : ndarray of the same shape
            Their complements 1 - c.

        Returns
        -------
        ndarray
            Probability at each score.
        """
        return np.asarray(c**self.d)


@dataclass(frozen=True)
class Logistic(ScoreCurve):
    """Represent the calibration curve T(c) = 1 / (1 + exp(-(slope c + intercept))).

    Parameters
    ----------
    slope : float
        Slope in the score.
    intercept : float
        Log odds at score 0.

    Examples
    --------
    >>> import truecal as tc
    >>> tc.lab.Logistic(4.0, -2.0)([0.0, 0.5, 1.0]).round(4)
    array([0.1192, 0.5   , 0.8808])
    """

    slope: float
    intercept: float

    def at(self, c: Array, rest: Array) -> Array:
        """Evaluate T(c) = 1 / (1 + exp(-(slope c + intercept))).

        Parameters
        ----------
        c : ndarray
            Scores.
        rest : ndarray of the same shape
            Their complements 1 - c.

        Returns
        -------
        ndarray
            Probability at each score.
        """
        return inverse_link("logit", self.slope * c + self.intercept)


@dataclass(frozen=True)
class Blend(ScoreCurve):
    """Interpolate between two curves, T(c) = start(c) + share (end(c) - start(c)).

    Parameters
    ----------
    start : ScoreCurve
        Curve at share 0.
    end : ScoreCurve
        Curve at share 1.
    share : float
        Position between the two; above 1 extrapolates.

    Notes
    -----
    With the identity as `start`, the calibration error is `share` times that of `end`.

    Examples
    --------
    >>> import truecal as tc
    >>> half = tc.lab.Blend(tc.lab.Identity(), tc.lab.Power(2), 0.5)
    >>> half([0.5, 0.8])
    array([0.375, 0.72 ])
    """

    start: ScoreCurve
    end: ScoreCurve
    share: float

    def at(self, c: Array, rest: Array) -> Array:
        """Evaluate start(c) + share (end(c) - start(c)).

        Parameters
        ----------
        c : ndarray
            Scores.
        rest : ndarray of the same shape
            Their complements 1 - c.

        Returns
        -------
        ndarray
            Probability at each score; not limited to [0, 1].
        """
        start = self.start.at(c, rest)
        return start + self.share * (self.end.at(c, rest) - start)


@dataclass(frozen=True)
class AnyCurve(ScoreCurve):
    """Use a plain function as a calibration curve.

    Parameters
    ----------
    function : callable
        Maps an array of scores to an array of probabilities of the same shape.

    Notes
    -----
    A plain function has no content to cache by, so simulations of it need ``cache=None``; a lambda cannot be sent to
    worker processes.

    Examples
    --------
    >>> import truecal as tc
    >>> tc.lab.AnyCurve(lambda c: c**2)([0.5, 1.0])
    array([0.25, 1.  ])
    """

    function: Callable[[Array], Array]

    def at(self, c: Array, rest: Array) -> Array:
        """Evaluate the function at the scores; refuse a result that is no array of numbers of their shape.

        Parameters
        ----------
        c : ndarray
            Scores.
        rest : ndarray of the same shape
            Their complements 1 - c.

        Returns
        -------
        ndarray
            Its values as float64.

        Raises
        ------
        InputError
            The result is no array of numbers of the shape of the scores.
        """
        try:
            values = np.asarray(self.function(c), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"the curve must turn an array of scores into one of probabilities: {error}") from error
        if values.shape != np.shape(c):
            raise InputError(f"the curve turned scores of shape {np.shape(c)} into shape {values.shape}")
        return values


@dataclass(frozen=True)
class Steps(ScoreCurve):
    """Represent a step function, the map of histogram binning or of isotonic regression.

    Parameters
    ----------
    edges : tuple of float
        Inner edges, rising, strictly between 0 and 1; a score on an edge belongs to the interval above it.
    values : tuple of float
        Value of each interval, one more than edges.

    Raises
    ------
    InputError
        If the edges do not rise inside (0, 1), or are not one fewer than the values.

    Notes
    -----
    As a recalibration, scores with the same value are one output, and its true rate is the mean of the curve over all
    of them.

    Examples
    --------
    >>> import truecal as tc
    >>> tc.lab.Steps((0.5,), (0.2, 0.7))([0.1, 0.5, 0.9])
    array([0.2, 0.7, 0.7])
    """

    edges: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse edges that do not rise inside (0, 1), or are not one fewer than the values.

        >>> Steps((0.5, 0.3), (0.1, 0.2, 0.3))
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: the edges of Steps must rise and lie strictly between 0 and 1, not (0.5, 0.3)
        """
        if len(self.values) != len(self.edges) + 1:
            raise InputError(f"Steps need one value more than edges, not {len(self.values)} and {len(self.edges)}")
        ends = np.array([0.0, *self.edges, 1.0])
        if not np.all(np.diff(ends) > 0):
            raise InputError(f"the edges of Steps must rise and lie strictly between 0 and 1, not {self.edges}")

    def at(self, c: Array, rest: Array) -> Array:
        """Return the value of the interval that each score lies in; an edge belongs to the interval above it.

        Parameters
        ----------
        c : ndarray
            Scores.
        rest : ndarray of the same shape
            Their complements 1 - c.

        Returns
        -------
        ndarray
            Probability at each score.
        """
        return np.asarray(self.values)[np.searchsorted(self.edges, c, side="right")]

    def merged(self) -> list[Stretches]:
        """List the intervals of scores that share one value, in the order in which the values first occur.

        Returns
        -------
        list of tuple
            For each distinct value, its half-open intervals (low, high), from 0.0 to infinity.

        Examples
        --------
        >>> Steps((0.3, 0.6), (0.1, 0.5, 0.1)).merged()
        [((0.0, 0.3), (0.6, inf)), ((0.3, 0.6),)]
        """
        ends = (0.0, *self.edges, np.inf)
        groups: dict[float, Stretches] = {}
        for value, low, high in zip(self.values, ends[:-1], ends[1:], strict=True):
            groups[value] = (*groups.get(value, ()), (low, high))
        return list(groups.values())
