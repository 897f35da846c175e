"""Score distributions of simulated worlds, and expectations over them.

A continuous distribution gives its pieces, each in a coordinate in which its mass is smooth (a Beta(2.8, 0.05) is
unbounded in c and nearly flat in (1-c)^0.05). The integrand gets c and 1-c separately, because 1-c is often far below
the spacing of floating-point numbers near 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from truecal import options
from truecal.errors import InputError
from truecal.predictions import validation
from truecal.special import expit

if TYPE_CHECKING:
    import truecal as tc


# ----------------------------------------------------------------------------------------------------
# Expectations over a score distribution by adaptive Gauss-Legendre quadrature

Array = npt.NDArray[np.float64]
Integrand = Callable[[Array, Array], Array]

_ORDER = 16  # by choice: of the Gauss-Legendre rule
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(_ORDER)
_ENDS = np.array([-1.0, 1.0])  # derived: of the interval of the rule
# Lagrange interpolation
_TO_ENDS = np.stack([[np.prod([(e - b) / (a - b) for b in _NODES if b != a]) for a in _NODES] for e in _ENDS])
_UNSEEN = 0.5 * (1 - _NODES[-1])  # derived: part of a panel beyond its last node
_NUDGE = 2.0**-40  # derived: relative distance from the ends, which may be poles, at which they are evaluated
_FIRST_PANELS = 16  # by choice: panels before any is halved
_MAX_HALVINGS = 48  # derived: a jump of the integrand ends in a panel of width 2^-48
_TOLERANCE = 1e-13  # derived: a few roundings of an integral of size 1


@dataclass(frozen=True)
class Piece:
    """A part of a distribution, in a coordinate t from `low` to `high`.

    `position` takes t of any shape and returns c, 1 - c and the mass of the distribution per unit of t, each of that shape.
    """

    low: float
    high: float
    position: Callable[[Array], tuple[Array, Array, Array]]


def integrate(pieces: Iterable[Piece], integrand: Integrand) -> float:
    """Integrate `integrand(c, 1-c)` over all pieces; panels are halved until two halves agree with the whole.

    A jump beyond the last node of a panel is seen by no node, so the ends of a panel must also agree with the polynomial of its
    nodes, or the part between be negligible. Kinks (|c - T| where T crosses the diagonal) and jumps (step curves) cost more
    panels, not accuracy.

    >>> flat = Piece(0.0, 1.0, lambda t: (t, 1 - t, np.ones_like(t)))
    >>> round(integrate([flat], lambda c, rest: np.abs(c - 0.3)), 12)  # (0.3^2 + 0.7^2) / 2
    0.29
    """
    return float(sum(_integrate_piece(piece, integrand) for piece in pieces))


def _integrate_piece(piece: Piece, integrand: Integrand) -> float:
    """Integrate integrand(c, 1 - c) over one piece by Gauss-Legendre panels, halved until halves and whole agree to 1e-13.

    >>> flat = Piece(0.0, 1.0, lambda t: (t, 1 - t, np.ones_like(t)))
    >>> round(_integrate_piece(flat, lambda c, rest: c**2), 12)
    0.333333333333
    """
    edges = np.linspace(piece.low, piece.high, _FIRST_PANELS + 1)
    low, high = edges[:-1], edges[1:]
    whole, _ = _panel_sums(piece, integrand, low, high)
    total = 0.0
    for _ in range(_MAX_HALVINGS):
        middle = 0.5 * (low + high)
        left, left_unseen = _panel_sums(piece, integrand, low, middle)
        right, right_unseen = _panel_sums(piece, integrand, middle, high)
        rough = np.abs(left + right - whole) + left_unseen + right_unseen > _TOLERANCE
        total += float(np.sum((left + right)[~rough]))
        if not rough.any():
            return total
        low, high = np.concatenate([low[rough], middle[rough]]), np.concatenate([middle[rough], high[rough]])
        whole = np.concatenate([left[rough], right[rough]])
    return total + float(np.sum(whole))


def _panel_sums(piece: Piece, integrand: Integrand, low: Array, high: Array) -> tuple[Array, Array]:
    """Integrate over each panel [low, high], (panels,); return also bounds (panels,) for a jump that the nodes do not see.

    The bound is the mismatch between the ends and the polynomial through the nodes, times the width beyond the outer nodes.

    >>> flat = Piece(0.0, 1.0, lambda t: (t, 1 - t, np.ones_like(t)))
    >>> sums, unseen = _panel_sums(flat, lambda c, rest: c, np.array([0.0, 0.5]), np.array([0.5, 1.0]))
    >>> sums.round(12), unseen.round(12)
    (array([0.125, 0.375]), array([0., 0.]))
    """
    half = 0.5 * (high - low)[:, None]
    t = 0.5 * (high + low)[:, None] + half * np.concatenate([_NODES, (1 - _NUDGE) * _ENDS])
    c, rest, mass = piece.position(t)
    height = integrand(c, rest) * mass
    inner, ends = height[:, :_ORDER], height[:, _ORDER:]
    unseen = np.abs(ends - inner @ _TO_ENDS.T).sum(axis=1) * 2 * half[:, 0] * _UNSEEN
    return np.sum(inner * half * _WEIGHTS, axis=1), unseen


# ----------------------------------------------------------------------------------------------------
# Draws from a Beta distribution that move continuously with its parameters: its quantile function at uniform numbers

_MIN_UNIFORM = 2.0**-54  # derived: half of the smallest uniform number above 0, and taken for 0
_MAX_LOGIT = 38.0  # derived: logits of all uniform numbers lie within +-38
_CUBICS = 2048  # tuned: error in c below 1e-9 for exponents >= 0.1, below 1e-6 for exponents >= 0.02
_BLOCK = 2**14  # derived: numbers at a time: the intermediate arrays stay in the processor's cache
_UNDERFLOW = 1e-250  # derived: quantiles below this are taken from the power law of the tail, equal to within rounding


def beta_from_uniforms(alpha: float, beta: float, u: Array) -> tuple[Array, Array]:
    """Compute c and 1 - c, of the shape of u, where c is the u-quantile of Beta(alpha, beta), for u in [0, 1).

    >>> c, rest = beta_from_uniforms(2.0, 1.0, np.array([0.25, 0.81]))  # P(score <= c) = c^2
    >>> c.round(8), (c + rest).round(12)
    (array([0.5, 0.9]), array([1., 1.]))
    """
    table = _tabulate_quantiles(float(alpha), float(beta))
    flat = np.ravel(u)
    c, rest = np.empty(flat.size), np.empty(flat.size)
    for low in range(0, flat.size, _BLOCK):
        part = slice(low, low + _BLOCK)
        x = _interpolate_logits(table, flat[part])
        c[part], rest[part] = expit(x), expit(-x)
    return c.reshape(np.shape(u)), rest.reshape(np.shape(u))


def _interpolate_logits(table: Array, u: Array) -> Array:
    """Interpolate logit c, the u-quantile of the scores, at u (n,) in [0, 1), shape (n,); u below 2^-54 counts as 2^-54.

    `table` (4, panels) holds the coefficients of `_tabulate_quantiles`.

    >>> _interpolate_logits(_tabulate_quantiles(1.0, 1.0), np.array([0.5, 0.75])).round(6)  # uniform: logit u itself
    array([0.      , 1.098612])
    """
    position = np.maximum(u, _MIN_UNIFORM)
    position /= 1.0 - position
    np.log(position, out=position)
    position += _MAX_LOGIT
    position *= _CUBICS / (2 * _MAX_LOGIT)
    panel = position.astype(np.intp)
    position -= panel
    x = table[3].take(panel)
    for coefficients in (table[2], table[1], table[0]):
        x *= position
        x += coefficients.take(panel)
    return x


@lru_cache(maxsize=64)
def _tabulate_quantiles(alpha: float, beta: float) -> Array:
    """Tabulate logit c as a cubic function of logit u in 2048 equal panels from -38 to 38, c the u-quantile of Beta(alpha,
    beta).

    Returned are the coefficients of t^0 to t^3, t in [0, 1] across each panel, shape (4, panels).

    >>> _tabulate_quantiles(1.0, 1.0).shape
    (4, 2048)
    """
    s = np.linspace(-_MAX_LOGIT, _MAX_LOGIT, _CUBICS + 1)
    x, slope = exact_logits(alpha, beta, s)
    slope *= s[1] - s[0]
    rise, slope_before, slope_after = np.diff(x), slope[:-1], slope[1:]
    return np.stack(
        [x[:-1], slope_before, 3 * rise - 2 * slope_before - slope_after, slope_before + slope_after - 2 * rise]
    )


def exact_logits(alpha: float, beta: float, s: Array) -> tuple[Array, Array]:
    """Compute logit c and its derivative by s, of the shape of s, where c is the quantile of Beta(alpha, beta) at u = expit(s).

    The incomplete Beta function is inverted at the smaller of u and 1 - u, for c and for 1 - c.

    >>> logits, slope = exact_logits(1.0, 1.0, np.array([0.0, 2.0]))  # uniform: c is u
    >>> logits.round(9), slope.round(9)
    (array([0., 2.]), array([1., 1.]))
    """
    from scipy.special import betainccinv, betaincinv, betaln

    log_scale = float(betaln(alpha, beta))
    below_half = s < 0
    log_large = -np.log1p(np.exp(-np.abs(s)))
    log_small = log_large - np.abs(s)
    small = np.exp(log_small)
    c = np.where(below_half, betaincinv(alpha, beta, small), betainccinv(alpha, beta, small))
    rest = np.where(below_half, betainccinv(beta, alpha, small), betaincinv(beta, alpha, small))
    with np.errstate(divide="ignore"):
        log_c = np.where(below_half & (c < _UNDERFLOW), (log_small + np.log(alpha) + log_scale) / alpha, np.log(c))
        log_rest = np.where(
            ~below_half & (rest < _UNDERFLOW), (log_small + np.log(beta) + log_scale) / beta, np.log(rest)
        )
    slope = np.exp(log_small + log_large - alpha * log_c - beta * log_rest + log_scale)
    return log_c - log_rest, slope


# ----------------------------------------------------------------------------------------------------
# Distributions of scores: Beta, Uniform, Discrete (tied scores), Empirical (like given ones), and mixtures


class Scores(ABC):
    """Base class of the distributions of scores on [0, 1].

    Notes
    -----
    A subclass gives scores from uniform numbers (:meth:`from_uniforms`), expectations (:meth:`expectation`) and a
    description. Scores come in pairs of c and 1 - c, because 1 - c is often far below the spacing of floating-point
    numbers near 1.

    See Also
    --------
    World : Scores and outcomes drawn together.
    """

    @property
    def uniforms(self) -> int:
        """Number of uniform random numbers that one score needs: 1 unless a subclass says otherwise.

        >>> Uniform().uniforms
        1
        """
        return 1

    @abstractmethod
    def from_uniforms(self, u: Array) -> tuple[Array, Array]:
        """Transform uniform numbers to scores.

        Parameters
        ----------
        u : ndarray of shape (uniforms, ...)
            Numbers in [0, 1); each column gives one score.

        Returns
        -------
        tuple of ndarray
            Scores c and their complements 1 - c, each of the shape of `u` without its first axis.
        """

    @abstractmethod
    def expectation(self, integrand: Integrand) -> float:
        """Compute the expectation of a function of the score.

        Parameters
        ----------
        integrand : callable
            Function of the arrays c and 1 - c that returns an array of their shape.

        Returns
        -------
        float
            E[integrand(c, 1 - c)], by quadrature for continuous distributions (to about 1e-12 for Beta and Uniform)
            and by a sum for discrete ones.
        """

    @abstractmethod
    def describe(self) -> str:
        """Describe the distribution in one phrase."""

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Array, Array]:
        """Draw independent scores.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of the random numbers.
        shape : tuple of int
            Shape of the draw.

        Returns
        -------
        tuple of ndarray
            Scores c and their complements 1 - c, each of this shape.
        """
        return self.from_uniforms(rng.random((self.uniforms, *shape)))


@dataclass(frozen=True)
class Beta(Scores):
    r"""Distribute scores as Beta(alpha, beta).

    Parameters
    ----------
    alpha : float
        Exponent at 0, above 0.
    beta : float
        Exponent at 1, above 0.

    Raises
    ------
    InputError
        If an exponent is not a finite number above 0.

    Notes
    -----
    The density is proportional to :math:`c^{\alpha - 1} (1 - c)^{\beta - 1}`.

    Examples
    --------
    >>> import truecal as tc
    >>> scores = tc.lab.Beta(2.7752, 0.0478)
    >>> round(scores.expectation(lambda c, rest: c), 6)  # alpha / (alpha + beta)
    0.983068
    """

    alpha: float
    beta: float

    def __post_init__(self) -> None:
        """Refuse exponents that are not finite numbers above 0.

        >>> Beta(0.0, 1.0)
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: Beta needs alpha > 0, not 0.0
        """
        for name, value in (("alpha", self.alpha), ("beta", self.beta)):
            if not (isfinite(value) and value > 0):
                raise InputError(f"Beta needs {name} > 0, not {value!r}")

    def describe(self) -> str:
        """Describe the distribution, such as "Beta(2.78, 0.0478)": three significant digits.

        >>> Beta(2.78321, 0.0478).describe()
        'Beta(2.78, 0.0478)'
        """
        return f"Beta({self.alpha:.3g}, {self.beta:.3g})"

    def from_uniforms(self, u: Array) -> tuple[Array, Array]:
        """Return the quantiles of Beta(alpha, beta) at uniform numbers.

        Parameters
        ----------
        u : ndarray of shape (1, ...)
            Numbers in [0, 1).

        Returns
        -------
        tuple of ndarray
            Scores c and 1 - c, each computed without the other, of shape (...).
        """
        return beta_from_uniforms(self.alpha, self.beta, u[0])

    def expectation(self, integrand: Integrand) -> float:
        """Compute the expectation over both halves of [0, 1] by adaptive quadrature.

        Parameters
        ----------
        integrand : callable
            Function of the arrays c and 1 - c that returns an array of their shape.

        Returns
        -------
        float
            E[integrand(c, 1 - c)].
        """
        return integrate((self._half(near_one=False), self._half(near_one=True)), integrand)

    def _half(self, *, near_one: bool) -> Piece:
        """Return the half near 0 or 1 as a Piece in v = d^min(exponent, 1), d the distance to the end: the mass has no pole.

        The exponent is beta near 1, else alpha; v goes from 0 to the value at d = 1/2.
        """
        from scipy.special import betaln

        near, far = (self.beta, self.alpha) if near_one else (self.alpha, self.beta)
        power = min(near, 1.0)
        log_scale = float(betaln(self.alpha, self.beta)) + np.log(power)

        def position(v: Array) -> tuple[Array, Array, Array]:
            """Compute c, 1 - c and the mass per unit of v at coordinates v = d^power, d the distance to this end."""
            log_distance = np.log(v) / power
            distance = np.exp(log_distance)
            mass = np.exp((near - power) * log_distance + (far - 1.0) * np.log1p(-distance) - log_scale)
            return (1.0 - distance, distance, mass) if near_one else (distance, 1.0 - distance, mass)

        return Piece(0.0, 0.5**power, position)


@dataclass(frozen=True)
class Uniform(Scores):
    """Distribute scores uniformly between two limits.

    Parameters
    ----------
    low : float, default 0.0
        Lower limit, at least 0.
    high : float, default 1.0
        Upper limit, above `low` and at most 1.

    Raises
    ------
    InputError
        Unless 0 <= low < high <= 1.

    Examples
    --------
    >>> import truecal as tc
    >>> round(tc.lab.Uniform(0.25, 0.75).expectation(lambda c, rest: c * rest), 10)
    0.2291666667
    """

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        """Refuse limits other than 0 <= low < high <= 1.

        >>> Uniform(0.5, 0.5)
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: Uniform needs 0 <= low < high <= 1, not low=0.5, high=0.5
        """
        if not 0.0 <= self.low < self.high <= 1.0:
            raise InputError(f"Uniform needs 0 <= low < high <= 1, not low={self.low!r}, high={self.high!r}")

    def describe(self) -> str:
        """Describe the distribution, such as "uniform on [0, 1]".

        >>> Uniform(0.2, 1.0).describe()
        'uniform on [0.2, 1]'
        """
        return f"uniform on [{self.low:g}, {self.high:g}]"

    def from_uniforms(self, u: Array) -> tuple[Array, Array]:
        """Return low + (high - low) u and its complement.

        Parameters
        ----------
        u : ndarray of shape (1, ...)
            Numbers in [0, 1).

        Returns
        -------
        tuple of ndarray
            Scores c and their complements 1 - c, of shape (...).
        """
        c = u[0] * (self.high - self.low)
        c += self.low
        return c, 1.0 - c

    def expectation(self, integrand: Integrand) -> float:
        """Compute the mean over [low, high] by adaptive quadrature.

        Parameters
        ----------
        integrand : callable
            Function of the arrays c and 1 - c that returns an array of their shape.

        Returns
        -------
        float
            E[integrand(c, 1 - c)].
        """
        density = 1.0 / (self.high - self.low)
        piece = Piece(self.low, self.high, lambda t: (t, 1.0 - t, np.full_like(t, density)))
        return integrate((piece,), integrand)


@dataclass(frozen=True, eq=False)
class Discrete(Scores):
    """Distribute scores over finitely many values: verbal confidences, rounded scores, the scores of a real model.

    Parameters
    ----------
    values : array_like of shape (k,)
        The scores, in [0, 1].
    probabilities : array_like of shape (k,), default None
        Probability of each score; None gives all of them the same.

    Raises
    ------
    InputError
        If a score lies outside [0, 1], or the probabilities are negative, of another number than the scores, or do
        not sum to 1 (to within 1e-9).

    Examples
    --------
    >>> import truecal as tc
    >>> tc.lab.Discrete([0.5, 0.9, 1.0], [0.2, 0.3, 0.5]).expectation(lambda c, rest: c)
    0.87
    """

    values: npt.ArrayLike
    probabilities: npt.ArrayLike | None = None

    def __post_init__(self) -> None:
        """Refuse scores outside [0, 1] and values that are no probabilities; store both as read-only arrays.

        >>> Discrete([0.5, 1.0]).probabilities
        array([0.5, 0.5])
        """
        values = np.array(validation.as_floats(self.values, "values"), dtype=np.float64, ndmin=1)
        if values.ndim != 1 or values.size == 0 or not np.all((values >= 0) & (values <= 1)):
            raise InputError("Discrete needs a one-dimensional, non-empty list of scores in [0, 1]")
        if self.probabilities is None:
            chances = np.full(values.size, 1.0 / values.size)
        else:
            chances = np.array(validation.as_floats(self.probabilities, "probabilities"), dtype=np.float64, ndmin=1)
            if chances.shape != values.shape or not np.all(chances >= 0) or abs(chances.sum() - 1.0) > 1e-9:
                raise InputError("Discrete needs one probability >= 0 for each score, summing to 1 (to within 1e-9)")
        values.setflags(write=False)
        chances.setflags(write=False)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "probabilities", chances)

    @classmethod
    def of(cls, profile: tc.profile.Profile) -> Discrete:
        """Return the empirical distribution of the scores of a profile.

        Parameters
        ----------
        profile : Profile
            One dataset; its weights become the probabilities.

        Returns
        -------
        Discrete
            The distribution of its scores.

        Raises
        ------
        InputError
            If the profile is a batch of several datasets.
        """
        if profile.batch != 1:
            raise InputError(f"one dataset is needed, not a batch of {profile.batch}")
        scores = profile.scores[0].astype(np.float64)
        return cls(scores, None if profile.weights is None else profile.weights[0] / profile.weights[0].sum())

    @property
    def _arrays(self) -> tuple[Array, Array]:
        """Values and their probabilities as arrays, each of shape (k,)."""
        return np.asarray(self.values), np.asarray(self.probabilities)

    def describe(self) -> str:
        """Describe the distribution, such as "with 1,000 given values".

        >>> Discrete([0.5, 1.0]).describe()
        'with 2 given values'
        """
        return f"with {self._arrays[0].size:,} given values"

    def from_uniforms(self, u: Array) -> tuple[Array, Array]:
        """Return the values at which the cumulated probabilities first exceed uniform numbers.

        Parameters
        ----------
        u : ndarray of shape (1, ...)
            Numbers in [0, 1).

        Returns
        -------
        tuple of ndarray
            Scores c and their complements 1 - c, of shape (...).
        """
        values, chances = self._arrays
        cuts = np.cumsum(chances)
        # by u * total no position lies past the end, nor on a score of probability zero
        c = values[np.searchsorted(cuts, u[0] * cuts[-1], side="right")]
        return c, 1.0 - c

    def expectation(self, integrand: Integrand) -> float:
        """Compute the sum over the values, weighted by their probabilities.

        Parameters
        ----------
        integrand : callable
            Function of the arrays c and 1 - c that returns an array of their shape.

        Returns
        -------
        float
            E[integrand(c, 1 - c)].
        """
        values, chances = self._arrays
        return float(np.dot(integrand(values, 1.0 - values), chances))


@dataclass(frozen=True, eq=False)
class Empirical(Scores):
    """Distribute scores like given ones, interpolated between neighbours.

    Parameters
    ----------
    values : array_like of shape (k,)
        At least two scores in [0, 1].

    Raises
    ------
    InputError
        If there are fewer than two scores, or one outside [0, 1].

    Notes
    -----
    The quantile function is linear between the k sorted scores at the levels 0, 1/(k - 1), ..., 1. Draws do not
    repeat the given scores, unless these are tied. Expectations use three Gauss-Legendre nodes between neighbours.

    See Also
    --------
    Discrete : Draws that repeat the given scores.

    Examples
    --------
    >>> import truecal as tc
    >>> scores = tc.lab.Empirical([0.2, 0.4, 0.9])
    >>> round(scores.expectation(lambda c, rest: c), 10)  # half in [0.2, 0.4], half in [0.4, 0.9]
    0.475
    """

    values: npt.ArrayLike

    def __post_init__(self) -> None:
        """Refuse fewer than two scores and scores outside [0, 1]; store them sorted, as a read-only array.

        >>> Empirical([0.5, 0.2]).values
        array([0.2, 0.5])
        """
        values = np.sort(np.array(validation.as_floats(self.values, "values"), dtype=np.float64, ndmin=1))
        if values.ndim != 1 or values.size < 2 or not np.all((values >= 0) & (values <= 1)):
            raise InputError("Empirical needs a one-dimensional list of at least two scores in [0, 1]")
        values.setflags(write=False)
        object.__setattr__(self, "values", values)

    def describe(self) -> str:
        """Describe the distribution, such as "distributed like 1,000 given ones".

        >>> Empirical([0.5, 0.2]).describe()
        'distributed like 2 given ones'
        """
        return f"distributed like {np.size(self.values):,} given ones"

    def from_uniforms(self, u: Array) -> tuple[Array, Array]:
        """Interpolate the sorted scores linearly at position u (k - 1).

        Parameters
        ----------
        u : ndarray of shape (1, ...)
            Numbers in [0, 1).

        Returns
        -------
        tuple of ndarray
            Scores c and their complements 1 - c, of shape (...).
        """
        values = np.asarray(self.values)
        position = u[0] * (values.size - 1)
        below = position.astype(np.intp)
        c = values[below]
        c += (position - below) * (values[below + 1] - c)
        return c, 1.0 - c

    def expectation(self, integrand: Integrand) -> float:
        """Compute the mean over the intervals between neighbouring scores, by three Gauss-Legendre nodes in each.

        Parameters
        ----------
        integrand : callable
            Function of the arrays c and 1 - c that returns an array of their shape.

        Returns
        -------
        float
            E[integrand(c, 1 - c)].
        """
        values = np.asarray(self.values)
        nodes, weights = np.polynomial.legendre.leggauss(3)
        c = values[:-1, None] + np.diff(values)[:, None] * (nodes + 1) / 2
        return float(np.mean(integrand(c, 1.0 - c) @ weights)) / 2


@dataclass(frozen=True)
class Mixture(Scores):
    """Mix several distributions of scores.

    Parameters
    ----------
    parts : tuple of Scores
        The distributions.
    shares : tuple of float
        Probability of each, at least 0, summing to 1.

    Raises
    ------
    InputError
        If parts and shares differ in number, or the shares are no probabilities.

    Examples
    --------
    >>> import truecal as tc
    >>> spiked = tc.lab.Mixture((tc.lab.Uniform(), tc.lab.Discrete([1.0])), (0.75, 0.25))
    >>> round(spiked.expectation(lambda c, rest: c), 10)
    0.625
    """

    parts: tuple[Scores, ...]
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse parts that are no distributions, and shares that are no probabilities of them.

        >>> Mixture((Uniform(), Beta(2.0, 1.0)), (0.5, 0.6))
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: the shares of a Mixture must be >= 0 and sum to 1, not (0.5, 0.6)
        """
        for part in self.parts:
            options.instance(part, Scores, "a part of a Mixture", "a distribution, such as tc.lab.Uniform()")
        if len(self.parts) != len(self.shares) or len(self.parts) == 0:
            raise InputError(f"Mixture has {len(self.parts)} parts but {len(self.shares)} shares")
        if not (min(self.shares) >= 0 and abs(sum(self.shares) - 1.0) <= 1e-9):
            raise InputError(f"the shares of a Mixture must be >= 0 and sum to 1, not {self.shares}")

    @property
    def uniforms(self) -> int:
        """Number of uniform numbers that one score needs: one to choose the part, and the most that any part needs.

        >>> Mixture((Uniform(), Beta(2.0, 1.0)), (0.5, 0.5)).uniforms
        2
        """
        return 1 + max(part.uniforms for part in self.parts)

    def describe(self) -> str:
        """Describe the parts with their shares, such as "uniform on [0, 1] (75%) or Beta(2, 0.5) (25%)".

        >>> Mixture((Uniform(), Beta(2.0, 0.5)), (0.75, 0.25)).describe()
        'uniform on [0, 1] (75%) or Beta(2, 0.5) (25%)'
        """
        return " or ".join(
            f"{part.describe()} ({share:.0%})" for part, share in zip(self.parts, self.shares, strict=True)
        )

    def from_uniforms(self, u: Array) -> tuple[Array, Array]:
        """Choose a part by the first number, and draw the score from it by the others.

        The part is the first whose cumulated share is above the first number; its `from_uniforms` gets as many of the others as
        it needs.

        Parameters
        ----------
        u : ndarray of shape (uniforms, ...)
            Numbers in [0, 1).

        Returns
        -------
        tuple of ndarray
            Scores c and their complements 1 - c, of shape (...).
        """
        part = np.searchsorted(np.cumsum(self.shares)[:-1], u[0], side="right")
        c, rest = np.empty(part.shape), np.empty(part.shape)
        for k, scores in enumerate(self.parts):
            chosen = part == k
            c[chosen], rest[chosen] = scores.from_uniforms(u[1 : 1 + scores.uniforms, chosen])
        return c, rest

    def expectation(self, integrand: Integrand) -> float:
        """Compute the sum of the expectations over the parts, weighted by their shares.

        Parameters
        ----------
        integrand : callable
            Function of the arrays c and 1 - c that returns an array of their shape.

        Returns
        -------
        float
            E[integrand(c, 1 - c)].
        """
        return float(sum(s * part.expectation(integrand) for s, part in zip(self.shares, self.parts, strict=True)))
