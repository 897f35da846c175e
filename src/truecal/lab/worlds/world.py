"""World: a score distribution and a true calibration curve, so that the true calibration error is known exactly."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import cast

import numpy as np
import numpy.typing as npt

from truecal import options
from truecal.errors import InputError
from truecal.lab.worlds.curves import GLM, Blend, Curve, Identity, Stretches, as_curve, transform
from truecal.lab.worlds.quadrature import Array, Integrand
from truecal.lab.worlds.score_distributions import Scores

Seed = int | np.random.Generator | np.random.SeedSequence | None
_MOST_DRAWN = 1 << 28  # numbers of one draw: 2 GiB, and as much again while it is made


def generator_of(rng: Seed | Sequence[int]) -> np.random.Generator:
    """The generator behind a seed, or several whole numbers as numpy takes them; None is another one every time."""
    if isinstance(rng, list | tuple) and rng:
        for part in rng:
            options.whole(part, "rng", 0)
        return np.random.default_rng([int(part) for part in rng])
    return np.random.default_rng() if rng is None else options.generator(rng)


@dataclass(frozen=True)
class World:
    """Raw scores c ~ `scores`, outcomes y ~ Bernoulli(`curve`(c)), and the model shows the score `recalibration`(c).

    The true calibration error is E[|s - P(y = 1 | s)|^p]^(1/p) over shown scores s (Roelofs et al., equation 1). A strictly
    increasing recalibration keeps P(y = 1 | s) = curve(c); `Steps` merge scores, and P(y = 1 | s) is then the mean of the curve
    over all c shown as s. `curve` and `recalibration` may be plain functions of an array; a curve that leaves [0, 1] is refused
    here.

    >>> from truecal.lab import Power, Uniform, World
    >>> world = World(scores=Uniform(), curve=Power(2))
    >>> round(world.true_error(norm=2), 6)  # sqrt(1/3 - 2/4 + 1/5)
    0.182574
    >>> scores, outcomes = world.draw(n=1000, m=3, rng=0)
    >>> scores.shape, outcomes.shape
    ((3, 1000), (3, 1000))
    """

    scores: Scores
    curve: Curve | Callable[[Array], Array] = field(default_factory=Identity)
    recalibration: Curve | Callable[[Array], Array] = field(default_factory=Identity)

    def __post_init__(self) -> None:
        if not isinstance(self.scores, Scores):
            raise InputError(f"scores must be a distribution such as Beta(2, 0.5) or Uniform(), not {self.scores!r}")
        for name in ("curve", "recalibration"):
            curve = as_curve(getattr(self, name), name)
            object.__setattr__(self, name, curve)
            self.scores.expectation(_refuse_outside_unit_interval(curve, name))
        self._map.merged()  # refuses a map that merges scores without saying which

    def draw(self, n: int, m: int = 1, *, rng: Seed | Sequence[int] = 0) -> tuple[Array, npt.NDArray[np.bool_]]:
        """m independent datasets of n rows: shown scores and outcomes, each of shape (m, n)."""
        refuse_bad_sizes(n, m)
        generator = generator_of(rng)
        c, rest = self.scores.draw(generator, (m, n))
        outcomes = generator.random((m, n)) < self._curve.at(c, rest)
        return self._map.at(c, rest), outcomes

    def draw_rates(self, n: int, m: int = 1, *, rng: Seed | Sequence[int] = 0) -> tuple[Array, Array]:
        """m datasets of n shown scores, and the probability of the outcome of every row: outcomes to be drawn by the caller."""
        refuse_bad_sizes(n, m)
        c, rest = self.scores.draw(generator_of(rng), (m, n))
        return self._map.at(c, rest), self._curve.at(c, rest)

    def true_error(self, norm: float = 2) -> float:
        """E[|shown score - P(y = 1 | shown score)|^norm]^(1/norm), by quadrature (absolute accuracy about 1e-9)."""
        if not options.is_number(norm) or not 1 <= norm < np.inf:
            raise InputError(f"norm must be a finite number of at least 1, not {norm!r}")
        merged = self._map.merged()
        if merged:
            parts = [self._merged_gap(stretches) for stretches in merged]
            moment = sum(mass * abs(gap) ** norm for mass, gap in parts)
        else:
            moment = self.scores.expectation(lambda c, rest: np.abs(self._gap(c, rest)) ** norm)
        return float(moment ** (1.0 / norm))

    def accuracy(self) -> float:
        """P(y = 1)."""
        return self.scores.expectation(self._curve.at)

    def recalibrated(self, recalibration: Curve | Callable[[Array], Array]) -> "World":
        """The same raw scores and outcomes, shown through a map: strictly increasing, or `Steps` (a push-forward of the world)."""
        return replace(self, recalibration=recalibration)

    def perfectly_recalibrated(self) -> "World":
        """Shown through its own true curve: the score distribution changes and the true error is 0."""
        return self.recalibrated(self._curve)

    def platt_scaled(self) -> "World":
        """Shown through sigmoid(b0 + b1 logit c) of least expected log loss: Platt scaling fitted on endless data.

        The minimum is where no residual is left, E[(shown - truth) (1, logit c)] = 0; found by Newton steps.
        """
        b = np.zeros(2)
        for _ in range(100):
            shown = GLM("logit", "logit", float(b[0]), float(b[1]))
            gradient = np.array([self._mean_against_logit(k, shown, variance=False) for k in (0, 1)])
            curvature = [self._mean_against_logit(k, shown, variance=True) for k in (0, 1, 2)]
            step = np.linalg.solve([curvature[:2], curvature[1:]], gradient)
            b = b - step
            if np.max(np.abs(step)) < 1e-10:
                return self.recalibrated(GLM("logit", "logit", float(b[0]), float(b[1])))
        raise InputError("Platt scaling does not settle in this world: its outcomes may be perfectly separated")

    def partly_recalibrated(self, remaining_error: float, norm: float = 2) -> "World":
        """Shown through truth + s (c - truth), s chosen so that this true error remains: a nearly calibrated world."""
        raw = replace(self, recalibration=Identity())
        now = raw.true_error(norm)
        if not 0 <= remaining_error <= now:
            raise InputError(f"remaining_error must be in [0, {now:.4g}], the error of the raw scores")
        return self.recalibrated(Blend(self._curve, Identity(), remaining_error / now if now else 0.0))

    def with_calibrated_outcomes(self) -> "World":
        """The same shown scores with calibrated outcomes, y ~ Bernoulli(shown score): the null of every test."""
        return replace(self, curve=self._map)

    def with_error(self, error: float, norm: float = 2) -> "World":
        """The same shown scores, the curve moved along its own direction until the true error is `error`.

        The curve becomes shown + s (curve - shown), s = error / true error; s > 1 may leave [0, 1] and is then refused.
        """
        now = self.true_error(norm)
        if not (isfinite(error) and 0 <= error < 1):
            raise InputError(f"error must be in [0, 1), not {error!r}")
        if now == 0.0:
            raise InputError("this world is calibrated: it has no direction to move in; give it a curve first")
        return replace(self, curve=Blend(self._map, self._curve, error / now))

    @property
    def _curve(self) -> Curve:
        return cast(Curve, self.curve)

    @property
    def _map(self) -> Curve:
        return cast(Curve, self.recalibration)

    def _gap(self, c: Array, rest: Array) -> Array:
        return self._map.at(c, rest) - self._curve.at(c, rest)

    def _mean_against_logit(self, power: int, shown: Curve, *, variance: bool) -> float:
        """E[(shown - truth) x^power], or E[shown (1 - shown) x^power], with x = logit c."""

        def integrand(c: Array, rest: Array) -> Array:
            p = shown.at(c, rest)
            factor = p * (1.0 - p) if variance else p - self._curve.at(c, rest)
            x = np.maximum(np.minimum(transform("logit", c, rest), 1e4), -1e4)  # 1-c below e^-1e4 is no mass at all
            return np.asarray(factor * x**power)

        return self.scores.expectation(integrand)

    def _merged_gap(self, stretches: Stretches) -> tuple[float, float]:
        """P(c in these stretches), and the mean of shown score - curve there."""

        def within(integrand: Integrand) -> Integrand:
            def cut(c: Array, rest: Array) -> Array:
                inside = np.any([(low <= c) & (c < high) for low, high in stretches], axis=0)
                return np.where(inside, integrand(c, rest), 0.0)

            return cut

        mass = self.scores.expectation(within(lambda c, rest: np.ones_like(c)))
        return mass, self.scores.expectation(within(self._gap)) / mass if mass else 0.0


def _refuse_outside_unit_interval(curve: Curve, name: str) -> Callable[[Array, Array], Array]:
    def checked(c: Array, rest: Array) -> Array:
        values = curve.at(c, rest)
        bad = ~((values >= -1e-12) & (values <= 1.0 + 1e-12))
        if bad.any():
            where = tuple(int(i) for i in np.argwhere(bad)[0])
            raise InputError(f"the {name} leaves [0, 1]: it is {values[where]:.6g} at score {c[where]:.6g}")
        return values

    return checked


def refuse_bad_sizes(n: int, m: int = 1, classes: int = 1) -> None:
    """Raise where a draw would be empty, or larger than memory."""
    if not (options.is_whole(n) and options.is_whole(m)) or n < 1 or m < 1:
        raise InputError(f"a draw needs n >= 1 rows and m >= 1 datasets, whole numbers, not n={n!r}, m={m!r}")
    count = int(n) * int(m) * int(classes)
    if count > _MOST_DRAWN:
        raise InputError(
            f"a draw of {count:,} numbers (n={n}, m={m}, {classes} a row) is too large for memory; "
            f"draw at most {_MOST_DRAWN:,} at a time"
        )
