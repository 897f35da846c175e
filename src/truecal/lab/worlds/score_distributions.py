"""Where simulated scores come from: Beta, Uniform, Discrete (tied scores), Empirical (like given ones), and mixtures.

Each distribution draws c together with 1-c, and integrates a function of both: near 1 the float64 c has lost what 1-c
still knows (a Beta(2.8, 0.05) puts 17 % of its mass where c rounds to exactly 1.0).

Scores are functions of uniform random numbers that are continuous in the parameters of the distribution. So two runs with
the same seed, one on a machine whose fitted parameters differ in the last bit, draw the same data to within rounding.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from truecal import options
from truecal.errors import InputError
from truecal.lab.worlds.beta_quantiles import beta_from_uniforms
from truecal.lab.worlds.quadrature import Array, Integrand, Piece, integrate
from truecal.predictions import border

if TYPE_CHECKING:
    import truecal as tc

_SLOTS = 8  # of a table of places, for every score: then few numbers are left to be searched for


class Scores(ABC):
    """A distribution of scores on [0, 1]."""

    @property
    def uniforms(self) -> int:
        """Uniform random numbers behind one score."""
        return 1

    @abstractmethod
    def from_uniforms(self, u: Array) -> tuple[Array, Array]:
        """Scores c and their complements 1-c, from numbers in [0, 1) of shape (uniforms, ...): one score for each column."""

    @abstractmethod
    def expectation(self, integrand: Integrand) -> float:
        """E[integrand(c, 1-c)], to about 1e-12."""

    @abstractmethod
    def describe(self) -> str:
        """The distribution in words."""

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Array, Array]:
        """Independent scores c and their complements 1-c, both of this shape."""
        return self.from_uniforms(rng.random((self.uniforms, *shape)))


@dataclass(frozen=True)
class Beta(Scores):
    """Beta(alpha, beta): density proportional to c^(alpha-1) (1-c)^(beta-1).

    >>> round(Beta(2.7752, 0.0478).expectation(lambda c, rest: c), 6)  # alpha / (alpha + beta)
    0.983068
    """

    alpha: float
    beta: float

    def __post_init__(self) -> None:
        for name, value in (("alpha", self.alpha), ("beta", self.beta)):
            if not (isfinite(value) and value > 0):
                raise InputError(f"Beta needs {name} > 0, not {value!r}")

    def describe(self) -> str:
        return f"Beta({self.alpha:.3g}, {self.beta:.3g})"

    def from_uniforms(self, u: Array) -> tuple[Array, Array]:
        return beta_from_uniforms(self.alpha, self.beta, u[0])

    def expectation(self, integrand: Integrand) -> float:
        return integrate((self._half(near_one=False), self._half(near_one=True)), integrand)

    def _half(self, *, near_one: bool) -> Piece:
        """One half, in v = d^s with d the distance to the end and s = min(exponent, 1): no pole is left."""
        from scipy.special import betaln

        near, far = (self.beta, self.alpha) if near_one else (self.alpha, self.beta)
        power = min(near, 1.0)
        log_scale = float(betaln(self.alpha, self.beta)) + np.log(power)

        def place(v: Array) -> tuple[Array, Array, Array]:
            log_distance = np.log(v) / power
            distance = np.exp(log_distance)
            mass = np.exp((near - power) * log_distance + (far - 1.0) * np.log1p(-distance) - log_scale)
            return (1.0 - distance, distance, mass) if near_one else (distance, 1.0 - distance, mass)

        return Piece(0.0, 0.5**power, place)


@dataclass(frozen=True)
class Uniform(Scores):
    """Uniform scores between low and high.

    >>> round(Uniform(0.25, 0.75).expectation(lambda c, rest: c * rest), 10)
    0.2291666667
    """

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.low < self.high <= 1.0:
            raise InputError(f"Uniform needs 0 <= low < high <= 1, not low={self.low!r}, high={self.high!r}")

    def describe(self) -> str:
        return f"uniform on [{self.low:g}, {self.high:g}]"

    def from_uniforms(self, u: Array) -> tuple[Array, Array]:
        c = u[0] * (self.high - self.low)
        c += self.low
        return c, 1.0 - c

    def expectation(self, integrand: Integrand) -> float:
        density = 1.0 / (self.high - self.low)
        piece = Piece(self.low, self.high, lambda t: (t, 1.0 - t, np.full_like(t, density)))
        return integrate((piece,), integrand)


@dataclass(frozen=True, eq=False)
class Discrete(Scores):
    """Finitely many scores with their probabilities: verbal confidences, rounded scores, the scores of a real model.

    >>> Discrete([0.5, 0.9, 1.0], [0.2, 0.3, 0.5]).expectation(lambda c, rest: c)
    0.87
    """

    values: npt.ArrayLike
    probabilities: npt.ArrayLike | None = None

    def __post_init__(self) -> None:
        values = np.array(border.as_floats(self.values, "values"), dtype=np.float64, ndmin=1)
        if values.ndim != 1 or values.size == 0 or not np.all((values >= 0) & (values <= 1)):
            raise InputError("Discrete needs a one-dimensional, non-empty list of scores in [0, 1]")
        if self.probabilities is None:
            chances = np.full(values.size, 1.0 / values.size)
        else:
            chances = np.array(border.as_floats(self.probabilities, "probabilities"), dtype=np.float64, ndmin=1)
            if chances.shape != values.shape or not np.all(chances >= 0) or abs(chances.sum() - 1.0) > 1e-9:
                raise InputError("Discrete needs one probability >= 0 for each score, summing to 1 (to within 1e-9)")
        values.setflags(write=False)
        chances.setflags(write=False)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "probabilities", chances)

    @classmethod
    def of(cls, profile: "tc.Profile") -> "Discrete":
        """The empirical distribution of a profile's scores."""
        if profile.batch != 1:
            raise InputError(f"one dataset is needed, not a batch of {profile.batch}")
        scores = profile.scores[0].astype(np.float64)
        return cls(scores, None if profile.weights is None else profile.weights[0] / profile.weights[0].sum())

    @property
    def _arrays(self) -> tuple[Array, Array]:
        return np.asarray(self.values), np.asarray(self.probabilities)

    def describe(self) -> str:
        return f"as {self._arrays[0].size} given ones, with repeats"

    def from_uniforms(self, u: Array) -> tuple[Array, Array]:
        values, chances = self._arrays
        cuts = np.cumsum(chances)
        # places over u * total never lie past the end, nor on a score of probability zero
        c = values[_places(cuts, u[0] * cuts[-1])]
        return c, 1.0 - c

    def expectation(self, integrand: Integrand) -> float:
        values, chances = self._arrays
        return float(np.dot(integrand(values, 1.0 - values), chances))


@dataclass(frozen=True, eq=False)
class Empirical(Scores):
    """Scores like these, without repeating them: a rank is drawn and the score interpolated between its neighbours.

    >>> round(Empirical([0.2, 0.4, 0.9]).expectation(lambda c, rest: c), 10)  # half in [0.2, 0.4], half in [0.4, 0.9]
    0.475
    """

    values: npt.ArrayLike

    def __post_init__(self) -> None:
        values = np.sort(np.array(border.as_floats(self.values, "values"), dtype=np.float64, ndmin=1))
        if values.ndim != 1 or values.size < 2 or not np.all((values >= 0) & (values <= 1)):
            raise InputError("Empirical needs a one-dimensional list of at least two scores in [0, 1]")
        values.setflags(write=False)
        object.__setattr__(self, "values", values)

    def describe(self) -> str:
        return f"spread like {np.size(self.values)} given ones"

    def from_uniforms(self, u: Array) -> tuple[Array, Array]:
        values = np.asarray(self.values)
        place = u[0] * (values.size - 1)
        below = place.astype(np.intp)
        c = values[below]
        c += (place - below) * (values[below + 1] - c)
        return c, 1.0 - c

    def expectation(self, integrand: Integrand) -> float:
        values = np.asarray(self.values)
        nodes, weights = np.polynomial.legendre.leggauss(3)
        c = values[:-1, None] + np.diff(values)[:, None] * (nodes + 1) / 2
        return float(np.mean(integrand(c, 1.0 - c) @ weights)) / 2


@dataclass(frozen=True)
class Mixture(Scores):
    """A score comes from parts[k] with probability shares[k].

    >>> spiked = Mixture((Uniform(), Discrete([1.0])), (0.75, 0.25))
    >>> round(spiked.expectation(lambda c, rest: c), 10)
    0.625
    """

    parts: tuple[Scores, ...]
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        for part in self.parts:
            options.instance(part, Scores, "a part of a Mixture", "a distribution, such as tc.lab.Uniform()")
        if len(self.parts) != len(self.shares) or len(self.parts) == 0:
            raise InputError(f"Mixture has {len(self.parts)} parts but {len(self.shares)} shares")
        if not (min(self.shares) >= 0 and abs(sum(self.shares) - 1.0) <= 1e-9):
            raise InputError(f"the shares of a Mixture must be >= 0 and sum to 1, not {self.shares}")

    @property
    def uniforms(self) -> int:
        return 1 + max(part.uniforms for part in self.parts)

    def describe(self) -> str:
        return " or ".join(
            f"{part.describe()} ({share:.0%})" for part, share in zip(self.parts, self.shares, strict=True)
        )

    def from_uniforms(self, u: Array) -> tuple[Array, Array]:
        # The first number chooses the part, the others place the score in it.
        part = np.searchsorted(np.cumsum(self.shares)[:-1], u[0], side="right")
        c, rest = np.empty(part.shape), np.empty(part.shape)
        for k, scores in enumerate(self.parts):
            chosen = part == k
            c[chosen], rest[chosen] = scores.from_uniforms(u[1 : 1 + scores.uniforms, chosen])
        return c, rest

    def expectation(self, integrand: Integrand) -> float:
        return float(sum(s * part.expectation(integrand) for s, part in zip(self.shares, self.parts, strict=True)))


def _places(cuts: Array, x: Array) -> npt.NDArray[np.intp]:
    """searchsorted(cuts, x, "right") of many numbers in no order, looked up in a table and searched only where that is open.

    Cuts and numbers fall into slots by the same rising rule, so a cut in an earlier slot is smaller, however products round.
    """
    if x.size < _SLOTS * len(cuts):
        return np.searchsorted(cuts, x, side="right")
    slots = _SLOTS * len(cuts)
    scale = slots / cuts[-1]
    held = np.bincount((cuts * scale).astype(np.intp), minlength=slots + 1)
    table = np.where(held > 0, -1, np.cumsum(held))
    place = table[(x * scale).astype(np.intp)]
    open_ = place < 0
    place[open_] = np.searchsorted(cuts, x[open_], side="right")
    return place
