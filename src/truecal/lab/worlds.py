"""Simulated worlds whose true calibration error is known, of two and of several classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from types import MappingProxyType
from typing import cast

import numpy as np
import numpy.typing as npt

from truecal import options
from truecal.errors import InputError
from truecal.lab.curves import GLM, Blend, Identity, ScoreCurve, Stretches, as_curve, transform
from truecal.lab.distributions import Array, Beta, Integrand, Scores
from truecal.special import draw_labels

# ----------------------------------------------------------------------------------------------------
# World: a score distribution and a true calibration curve, so that the true calibration error is known exactly

Seed = int | np.random.Generator | np.random.SeedSequence | None
_MAX_DRAWN = 1 << 28  # derived: numbers of one draw: 2 GiB, and as much again for working arrays


def make_generator(rng: Seed | Sequence[int]) -> np.random.Generator:
    """Return the generator of a seed or sequence of seeds, or a generator unchanged; None gives one of fresh entropy.

    >>> bool(make_generator([1, 2]).random() == np.random.default_rng([1, 2]).random())
    True
    """
    if isinstance(rng, list | tuple) and rng:
        for part in rng:
            options.whole(part, "rng", 0)
        return np.random.default_rng([int(part) for part in rng])
    return np.random.default_rng() if rng is None else options.generator(rng)


@dataclass(frozen=True)
class World:
    r"""Combine a distribution of scores and a true calibration curve, so that the true calibration error is known.

    Parameters
    ----------
    scores : Scores
        Distribution of the raw scores c.
    curve : ScoreCurve or callable, default Identity()
        True curve: outcomes are y ~ Bernoulli(curve(c)). A plain function takes an array of scores.
    recalibration : ScoreCurve or callable, default Identity()
        Map from the raw score to the score that the model shows, s = recalibration(c); strictly increasing, or `Steps`.

    Raises
    ------
    InputError
        If a curve leaves [0, 1], or the recalibration is neither strictly increasing nor `Steps`.

    Notes
    -----
    The true calibration error is :math:`E[|s - P(y = 1 \mid s)|^p]^{1/p}` over shown scores s [1]_. A strictly
    increasing recalibration leaves :math:`P(y = 1 \mid s)` = curve(c); `Steps` merge scores, and :math:`P(y = 1 \mid
    s)` is then the mean of the curve over all c that are shown as s.

    References
    ----------
    .. [1] R. Roelofs, N. Cain, J. Shlens, M. C. Mozer (2022). Mitigating Bias in Calibration Error Estimation.
           AISTATS, equation 1.

    Examples
    --------
    >>> from truecal.lab import Power, Uniform, World
    >>> world = World(scores=Uniform(), curve=Power(2))
    >>> round(world.true_error(norm=2), 6)  # sqrt(1/3 - 2/4 + 1/5)
    0.182574
    >>> scores, outcomes = world.draw(n=1000, m=3, rng=0)
    >>> scores.shape, outcomes.shape
    ((3, 1000), (3, 1000))
    """

    scores: Scores
    curve: ScoreCurve | Callable[[Array], Array] = field(default_factory=Identity)
    recalibration: ScoreCurve | Callable[[Array], Array] = field(default_factory=Identity)

    def __post_init__(self) -> None:
        """Refuse curves that leave [0, 1] and a recalibration that merges scores without saying which."""
        if not isinstance(self.scores, Scores):
            raise InputError(f"scores must be a distribution such as Beta(2, 0.5) or Uniform(), not {self.scores!r}")
        for name in ("curve", "recalibration"):
            curve = as_curve(getattr(self, name), name)
            object.__setattr__(self, name, curve)
            self.scores.expectation(_refuse_outside_unit_interval(curve, name))
        self._map.merged()  # refuses a map that merges scores without saying which

    def draw(self, n: int, m: int = 1, *, rng: Seed | Sequence[int] = 0) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Draw independent datasets.

        Parameters
        ----------
        n : int
            Rows of each dataset.
        m : int, default 1
            Number of datasets.
        rng : int, Generator, SeedSequence, sequence of int or None, default 0
            Seed; None gives other draws every time.

        Returns
        -------
        tuple of ndarray
            Shown scores (float) and outcomes (bool), each of shape (m, n).

        Raises
        ------
        InputError
            If n or m is no whole number of at least 1, or n m exceeds 2^28.
        """
        refuse_bad_sizes(n, m)
        generator = make_generator(rng)
        c, rest = self.scores.draw(generator, (m, n))
        outcomes = generator.random((m, n)) < self._curve.at(c, rest)
        return self._map.at(c, rest), outcomes

    def draw_rates(self, n: int, m: int = 1, *, rng: Seed | Sequence[int] = 0) -> tuple[Array, Array]:
        """Draw shown scores with the probability of the outcome of every row.

        Parameters
        ----------
        n : int
            Rows of each dataset.
        m : int, default 1
            Number of datasets.
        rng : int, Generator, SeedSequence, sequence of int or None, default 0
            Seed; None gives other draws every time.

        Returns
        -------
        tuple of ndarray
            Shown scores and P(y = 1) of each row, each of shape (m, n); the caller draws the outcomes.

        Raises
        ------
        InputError
            n or m is no whole number of at least 1, or n m is above 2^28.
        """
        refuse_bad_sizes(n, m)
        c, rest = self.scores.draw(make_generator(rng), (m, n))
        return self._map.at(c, rest), self._curve.at(c, rest)

    def true_error(self, norm: float = 2) -> float:
        """Compute the true calibration error, E[abs(s - P(y = 1 | s))^p]^(1/p), by quadrature.

        Parameters
        ----------
        norm : float, default 2
            The exponent p, at least 1 and finite.

        Returns
        -------
        float
            The error of the shown scores, with an absolute accuracy of about 1e-9.

        Raises
        ------
        InputError
            If the norm is below 1 or infinite.
        """
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
        """Compute P(y = 1), the expectation of the curve over the scores, by quadrature.

        >>> from truecal.lab import Power, Uniform
        >>> round(World(Uniform(), Power(2.0)).accuracy(), 9)  # the integral of c^2
        0.333333333
        """
        return self.scores.expectation(self._curve.at)

    def recalibrated(self, recalibration: ScoreCurve | Callable[[Array], Array]) -> World:
        """Return the world with another recalibration.

        Parameters
        ----------
        recalibration : ScoreCurve or callable
            Map from the raw score to the shown score, strictly increasing or `Steps`; replaces the present one.

        Returns
        -------
        World
            The same raw scores and outcomes, shown through this map.
        """
        return replace(self, recalibration=recalibration)

    def perfectly_recalibrated(self) -> World:
        """Return the world shown through its own true curve, whose true error is 0.

        Returns
        -------
        World
            The same outcomes with other scores.

        Raises
        ------
        InputError
            If the true curve is neither strictly increasing nor `Steps`.

        Examples
        --------
        >>> from truecal.lab import Power, Uniform
        >>> World(Uniform(), Power(2.0)).perfectly_recalibrated().true_error()
        0.0
        """
        return self.recalibrated(self._curve)

    def platt_scaled(self) -> World:
        """Return the world shown through Platt scaling fitted on infinitely many rows.

        Returns
        -------
        World
            The same outcomes, shown as sigmoid(b0 + b1 logit c).

        Raises
        ------
        InputError
            If no coefficients solve the equations, for example where outcomes are perfectly separated.

        Notes
        -----
        The coefficients minimise the expected log loss: they solve E[(fitted - truth) (1, logit c)] = 0.
        """
        from scipy.optimize import root

        def moments(b: Array) -> list[float]:
            """Compute E[f - truth] and E[(f - truth) logit c] over scores c, f = sigmoid(b0 + b1 logit c) with b = (b0, b1)."""
            fitted = GLM("logit", "logit", float(b[0]), float(b[1]))

            def moment(power: int) -> float:
                """Compute E[(fitted - truth) (logit c)^power] over the scores c of the world."""

                def integrand(c: Array, rest: Array) -> Array:
                    """Return (fitted - truth) (logit c)^power at scores c, the logit clipped to +-10,000; `rest` is 1 - c."""
                    x = np.clip(transform("logit", c, rest), -1e4, 1e4)  # 1-c below e^-1e4 is no mass at all
                    return np.asarray((fitted.at(c, rest) - self._curve.at(c, rest)) * x**power)

                return self.scores.expectation(integrand)

            return [moment(0), moment(1)]

        solution = root(moments, [0.0, 1.0], tol=1e-12)
        if not (solution.success and np.abs(solution.fun).max() < 1e-9):
            raise InputError("Platt scaling does not converge in this world: its outcomes may be perfectly separated")
        return self.recalibrated(GLM("logit", "logit", *solution.x.tolist()))

    def partly_recalibrated(self, remaining_error: float, norm: float = 2) -> World:
        """Return the world shown through a recalibration that leaves a given true error.

        Parameters
        ----------
        remaining_error : float
            The true error that remains, from 0 to that of the raw scores.
        norm : float, default 2
            The exponent of the error.

        Returns
        -------
        World
            The same outcomes, shown as T(c) + s (c - T(c)), with T the true curve.

        Raises
        ------
        InputError
            If `remaining_error` is not between 0 and the error of the raw scores, or the map is not strictly increasing.

        Notes
        -----
        The share s is `remaining_error` divided by the error of the raw scores.
        """
        raw_world = replace(self, recalibration=Identity())
        now = raw_world.true_error(norm)
        if not 0 <= remaining_error <= now:
            raise InputError(f"remaining_error must be in [0, {now:.4g}], the error of the raw scores")
        return self.recalibrated(Blend(self._curve, Identity(), remaining_error / now if now else 0.0))

    def with_calibrated_outcomes(self) -> World:
        """Return the world with the same shown scores and calibrated outcomes, y ~ Bernoulli(shown score).

        Returns
        -------
        World
            A world whose true error is 0: the null hypothesis of a test of calibration.

        Examples
        --------
        >>> from truecal.lab import Power, Uniform
        >>> World(Uniform(), Power(2.0)).with_calibrated_outcomes().true_error()
        0.0
        """
        return replace(self, curve=self._map)

    def with_error(self, error: float, norm: float = 2) -> World:
        """Return the world with the same shown scores and a curve scaled to a given true error.

        Parameters
        ----------
        error : float
            True error to reach, in [0, 1).
        norm : float, default 2
            The exponent of the error.

        Returns
        -------
        World
            The world with the curve shown + s (curve - shown), s = error / present error.

        Raises
        ------
        InputError
            If this world is calibrated, or the scaled curve leaves [0, 1].
        """
        now = self.true_error(norm)
        if not (isfinite(error) and 0 <= error < 1):
            raise InputError(f"error must be in [0, 1), not {error!r}")
        if now == 0.0:
            raise InputError(
                "this world is calibrated, so no multiple of its error is larger; give it a miscalibrated curve first"
            )
        return replace(self, curve=Blend(self._map, self._curve, error / now))

    @property
    def _curve(self) -> ScoreCurve:
        """The curve P(y = 1 | score)."""
        return cast(ScoreCurve, self.curve)

    @property
    def _map(self) -> ScoreCurve:
        """The recalibration map of the scores."""
        return cast(ScoreCurve, self.recalibration)

    def _gap(self, c: Array, rest: Array) -> Array:
        """Compute the shown score less the true probability at scores c; `rest` is 1 - c.

        >>> from truecal.lab import Power, Uniform
        >>> World(Uniform(), Power(2.0))._gap(np.array([0.5]), np.array([0.5]))
        array([0.25])
        """
        return self._map.at(c, rest) - self._curve.at(c, rest)

    def _merged_gap(self, stretches: Stretches) -> tuple[float, float]:
        """Compute the probability of these intervals of c, and the mean of shown score less curve in them; 0 if they have none.

        >>> from truecal.lab import Power, Uniform
        >>> mass, gap = World(Uniform(), Power(2.0))._merged_gap(((0.0, 0.5),))
        >>> round(mass, 9), round(gap, 9)  # 1/4 - 1/12
        (0.5, 0.166666667)
        """

        def within(integrand: Integrand) -> Integrand:
            """Return the integrand times 1 where c lies in one of the stretches and 0 elsewhere."""

            def cut(c: Array, rest: Array) -> Array:
                """Return the integrand where c lies in one of the intervals, else 0; `rest` is 1 - c."""
                inside = np.any([(low <= c) & (c < high) for low, high in stretches], axis=0)
                return np.where(inside, integrand(c, rest), 0.0)

            return cut

        mass = self.scores.expectation(within(lambda c, rest: np.ones_like(c)))
        return mass, self.scores.expectation(within(self._gap)) / mass if mass else 0.0


def _refuse_outside_unit_interval(curve: ScoreCurve, name: str) -> Callable[[Array, Array], Array]:
    """Wrap a curve as a function of (c, 1 - c) that refuses values outside [0, 1] by more than 1e-12, calling the curve `name`.

    The error is an InputError that names the first such value and its score.
    """

    def checked(c: Array, rest: Array) -> Array:
        """Evaluate the curve at scores c; refuse the first value outside [0, 1]."""
        values = curve.at(c, rest)
        bad = ~((values >= -1e-12) & (values <= 1.0 + 1e-12))
        if bad.any():
            where = tuple(int(i) for i in np.argwhere(bad)[0])
            raise InputError(f"the {name} leaves [0, 1]: it is {values[where]:.6g} at score {c[where]:.6g}")
        return values

    return checked


def refuse_bad_sizes(n: int, m: int = 1, classes: int = 1) -> None:
    """Refuse n or m that is no whole number of at least 1, and draws of more than 2^28 numbers (n x m x classes).

    >>> refuse_bad_sizes(1000, 0)
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: a draw needs n >= 1 rows and m >= 1 datasets, whole numbers, not n=1000, m=0
    """
    if not (options.is_whole(n) and options.is_whole(m)) or n < 1 or m < 1:
        raise InputError(f"a draw needs n >= 1 rows and m >= 1 datasets, whole numbers, not n={n!r}, m={m!r}")
    count = int(n) * int(m) * int(classes)
    if count > _MAX_DRAWN:
        raise InputError(
            f"a draw of {count:,} numbers (n={n}, m={m}, {classes} a row) is too large for memory; "
            f"draw at most {_MAX_DRAWN:,} at a time"
        )


# ----------------------------------------------------------------------------------------------------
# Worlds with K classes whose top-label and class-wise calibration errors are both known

Labels = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TopLabelWorld:
    r"""Simulate K classes whose top-label and class-wise calibration errors are both known.

    Parameters
    ----------
    top : World
        Scores of the top label, all above 1/K, and the curve of its accuracy.
    classes : int
        Number K of classes, at least 2.

    Raises
    ------
    InputError
        If top scores of 1/K or less have a positive probability.

    Notes
    -----
    The top class is uniform over the K classes; the other classes share 1 - c, and the wrong labels, equally. A class
    probability above 1/K can only be a top score, and one below only a share (1 - c)/(K - 1), so both errors follow
    from the world of the top label. With its error e in norm p, the class-wise error (mean over the classes) is
    :math:`e \, (1/K + (K - 1)^{1 - p} / K)^{1/p}`.

    Examples
    --------
    >>> from truecal.lab import Power, TopLabelWorld, Uniform, World
    >>> world = TopLabelWorld(World(Uniform(0.3, 1.0), Power(2)), classes=4)
    >>> probs, labels = world.draw(n=5, rng=0)
    >>> probs.shape, labels.shape
    ((5, 4), (5,))
    >>> round(world.true_top_label_error(), 4), round(world.true_class_wise_error(), 4)
    (0.1996, 0.1153)
    """

    top: World
    classes: int

    def __post_init__(self) -> None:
        """Refuse top scores of 1/K or less.

        >>> from truecal.lab import Uniform
        >>> TopLabelWorld(World(Uniform()), 2)
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: 50.0% of the top scores are not above 1/2: they cannot be top scores
        """
        options.whole(self.classes, "classes", 2, 1_000_000)
        below = self.top.scores.expectation(lambda c, rest: (c <= 1.0 / self.classes).astype(np.float64))
        if below > 0:
            raise InputError(f"{below:.1%} of the top scores are not above 1/{self.classes}: they cannot be top scores")

    def draw(self, n: int, *, rng: Seed | Sequence[int] = 0) -> tuple[Array, Labels]:
        """Draw rows of class probabilities and labels.

        Parameters
        ----------
        n : int
            Number of rows.
        rng : int, Generator, SeedSequence, sequence of int or None, default 0
            Seed; None gives other draws every time.

        Returns
        -------
        tuple of ndarray
            Probabilities of shape (n, K) and true labels 0, ..., K - 1 of shape (n,).

        Raises
        ------
        InputError
            n is no whole number of at least 1, or n K is above 2^28.
        """
        refuse_bad_sizes(n, classes=self.classes)
        generator = make_generator(rng)
        scores, right = (part[0] for part in self.top.draw(n, 1, rng=generator))
        predicted = generator.integers(self.classes, size=n)
        probs = np.repeat(((1.0 - scores) / (self.classes - 1))[:, None], self.classes, axis=1)
        probs[np.arange(n), predicted] = scores
        wrong_class = (predicted + generator.integers(1, self.classes, size=n)) % self.classes
        return probs, np.where(right, predicted, wrong_class)

    def true_top_label_error(self, norm: float = 2) -> float:
        """Compute the true calibration error of the highest probability.

        Parameters
        ----------
        norm : float, default 2
            The exponent of the error.

        Returns
        -------
        float
            The error of the world of the top label.
        """
        return self.top.true_error(norm)

    def true_class_wise_error(self, norm: float = 2) -> float:
        """Compute the true class-wise calibration error, (mean over k of E[abs(z_k - P(y = k | z_k))^p])^(1/p).

        Parameters
        ----------
        norm : float, default 2
            The exponent p.

        Returns
        -------
        float
            e (1/K + (K - 1)^(1 - p) / K)^(1/p), with e the error of the top label.

        Raises
        ------
        InputError
            `norm` is no number from 1 to 20, or inf.
        """
        options.norm(norm)
        k = self.classes
        return float(self.true_top_label_error(norm) * (1 / k + (k - 1) ** (1 - norm) / k) ** (1 / norm))


@dataclass(frozen=True)
class DirichletWorld:
    r"""Simulate an overconfident model of K classes with Dirichlet-distributed probabilities.

    Parameters
    ----------
    alpha : tuple of float
        Parameters of the Dirichlet distribution, one per class, above 0.
    overconfidence : float
        Share s, in [0, 1], by which the label probabilities are drawn towards 1/K.

    Raises
    ------
    InputError
        If there are fewer than two classes, a parameter is not above 0, or the share is outside [0, 1].

    Notes
    -----
    Probabilities are z ~ Dirichlet(alpha) and labels y ~ (1 - s) z + s/K. So :math:`E[y_k \mid z_k] = (1 - s) z_k +
    s/K`, and the class-wise error is :math:`s \, E|z_k - 1/K|^p` averaged over the classes, with :math:`z_k`
    Beta-distributed: exact. The top-label error :math:`s \, E[(\max z - 1/K)^p]^{1/p}` has no closed form; it is the
    mean over 400,000 fixed draws, with a relative error of about 0.1 %.

    Examples
    --------
    >>> import truecal as tc
    >>> world = tc.lab.DirichletWorld((0.5, 0.5, 1.0), overconfidence=0.2)
    >>> round(world.true_class_wise_error(), 5)
    0.05774
    """

    alpha: tuple[float, ...]
    overconfidence: float

    def __post_init__(self) -> None:
        """Refuse fewer than two classes, parameters that are not above 0, and a share outside [0, 1].

        >>> DirichletWorld((1.0,), 0.2)
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: a DirichletWorld needs at least two alphas, all > 0, not (1.0,)
        """
        if len(self.alpha) < 2 or not all(isfinite(a) and a > 0 for a in self.alpha):
            raise InputError(f"a DirichletWorld needs at least two alphas, all > 0, not {self.alpha}")
        if not 0 <= self.overconfidence <= 1:
            raise InputError(f"overconfidence must be in [0, 1], not {self.overconfidence!r}")

    def draw(self, n: int, *, rng: Seed | Sequence[int] = 0) -> tuple[Array, Labels]:
        """Draw rows of class probabilities and labels.

        Parameters
        ----------
        n : int
            Number of rows.
        rng : int, Generator, SeedSequence, sequence of int or None, default 0
            Seed; None gives other draws every time.

        Returns
        -------
        tuple of ndarray
            Probabilities of shape (n, K) and true labels 0, ..., K - 1 of shape (n,).

        Raises
        ------
        InputError
            n is no whole number of at least 1, or n K is above 2^28.
        """
        refuse_bad_sizes(n, classes=len(self.alpha))
        generator = make_generator(rng)
        probs = generator.dirichlet(self.alpha, n)
        truth = (1.0 - self.overconfidence) * probs + self.overconfidence / len(self.alpha)
        return probs, draw_labels(truth, generator)

    def true_class_wise_error(self, norm: float = 2) -> float:
        """Compute the true class-wise calibration error, (mean over k of E[abs(z_k - P(y = k | z_k))^p])^(1/p).

        Parameters
        ----------
        norm : float, default 2
            The exponent p, at least 1; infinity is the largest difference.

        Returns
        -------
        float
            s (mean over k of E[abs(z_k - 1/K)^p])^(1/p); s (1 - 1/K) for p = infinity.

        Raises
        ------
        InputError
            `norm` is no number from 1 to 20, or inf.
        """
        options.norm(norm)
        k, total = len(self.alpha), sum(self.alpha)
        if norm == np.inf:  # every z_k comes arbitrarily close to 1
            return self.overconfidence * (1 - 1 / k)
        moments = [Beta(a, total - a).expectation(lambda c, rest: np.abs(c - 1 / k) ** norm) for a in self.alpha]
        return float(self.overconfidence * np.mean(moments) ** (1 / norm))

    def true_top_label_error(self, norm: float = 2) -> float:
        """Compute the true calibration error of the highest probability, s E[(max z - 1/K)^p]^(1/p), by simulation.

        Parameters
        ----------
        norm : float, default 2
            The exponent p, at least 1; infinity is the largest difference.

        Returns
        -------
        float
            The error, with the expectation over 400,000 fixed draws; s (1 - 1/K) for p = infinity.

        Raises
        ------
        InputError
            `norm` is no number from 1 to 20, or inf.
        """
        options.norm(norm)
        if norm == np.inf:
            return self.true_class_wise_error(norm)
        tops = np.random.default_rng(0).dirichlet(self.alpha, 400_000).max(axis=1)
        return float(self.overconfidence * np.mean((tops - 1 / len(self.alpha)) ** norm) ** (1 / norm))


# ----------------------------------------------------------------------------------------------------
# The ten worlds that Roelofs et al. fitted to real networks, as printed (rounded) in their Tables 1 and 2


class _Worlds(dict[str, World]):
    """Worlds by name; the refusal of an unknown name lists them."""

    def __missing__(self, name: str) -> World:
        """Refuse an unknown name, with the list of those known.

        >>> _Worlds(flat=None)["moon"]
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: unknown world 'moon': use one of flat
        """
        raise InputError(f"unknown world {name!r}: use one of {', '.join(self)}")


# a Beta as in Table 1, and the row of Table 2 with the lowest AIC
PAPER_WORLDS: Mapping[str, World] = MappingProxyType(
    _Worlds(
        {
            "resnet110_c10": World(Beta(2.7752, 0.0478), GLM("logflip", "logflip", -0.24, 0.30)),
            "resnet110_SD_c10": World(Beta(2.1714, 0.0394), GLM("logit", "logflip", -0.27, -0.35)),
            "resnet_wide32_c10": World(Beta(2.3806, 0.0379), GLM("logit", "logit", 0.00, 0.26)),
            "densenet40_c10": World(Beta(1.9824, 0.0397), GLM("logit", "logflip", 0.00, -0.26)),
            "resnet110_c100": World(Beta(1.1823, 0.1081), GLM("logflip", "logflip", -0.11, 0.28)),
            "resnet110_SD_c100": World(Beta(1.1233, 0.1147), GLM("logit", "logit", -0.88, 0.49)),
            "resnet_wide32_c100": World(Beta(1.0611, 0.0650), GLM("logflip", "logflip", -0.13, 0.21)),
            "densenet40_c100": World(Beta(1.0805, 0.0808), GLM("logit", "logit", -0.97, 0.34)),
            "resnet152_imgnet": World(Beta(1.1359, 0.2069), GLM("logflip", "logflip", -0.12, 0.58)),
            "densenet161_imgnet": World(Beta(1.1928, 0.2206), GLM("log", "log", -0.03, 1.27)),
        }
    )
)

DATASETS = MappingProxyType({"c10": "CIFAR-10", "c100": "CIFAR-100", "imgnet": "ImageNet"})


def dataset_of(world_name: str) -> str:
    """Return the dataset of a world of the papers.

    Parameters
    ----------
    world_name : str
        Name of a world, a key of `PAPER_WORLDS`; its last part decides.

    Returns
    -------
    str
        "CIFAR-10", "CIFAR-100" or "ImageNet".

    Raises
    ------
    InputError
        If the name does not end with the abbreviation of one of these datasets.

    Examples
    --------
    >>> import truecal as tc
    >>> tc.lab.dataset_of("resnet110_SD_c100")
    'CIFAR-100'
    """
    name = world_name.rsplit("_", 1)[-1]
    if name not in DATASETS:
        raise InputError(f"{world_name!r} is not the name of a world of the papers, such as 'resnet110_SD_c100'")
    return DATASETS[name]
