"""Worlds with K classes whose top-label and class-wise calibration errors are both known."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
import numpy.typing as npt

from truecal import options
from truecal.errors import InputError
from truecal.lab.worlds.quadrature import Array
from truecal.lab.worlds.score_distributions import Beta
from truecal.lab.worlds.world import Seed, World, generator_of, refuse_bad_sizes

Labels = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TopLabelWorld:
    """A top class, uniform over K, with score c from `top`; the other classes share 1-c, and the errors, equally.

    A class probability above 1/K can only be a top score, and one below only a share (1-c)/(K-1), so both errors follow
    from the one-dimensional world: top-label error e = `top.true_error(p)`, class-wise error (mean over the classes)
    e (1/K + (K-1)^(1-p) / K)^(1/p).

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
        options.whole(self.classes, "classes", 2, 1_000_000)
        below = self.top.scores.expectation(lambda c, rest: (c <= 1.0 / self.classes).astype(np.float64))
        if below > 0:
            raise InputError(f"{below:.1%} of the top scores are not above 1/{self.classes}: they cannot be top scores")

    def draw(self, n: int, *, rng: Seed | Sequence[int] = 0) -> tuple[Array, Labels]:
        """n rows of class probabilities and their true labels."""
        refuse_bad_sizes(n, classes=self.classes)
        generator = generator_of(rng)
        scores, right = (part[0] for part in self.top.draw(n, 1, rng=generator))
        predicted = generator.integers(self.classes, size=n)
        probs = np.repeat(((1.0 - scores) / (self.classes - 1))[:, None], self.classes, axis=1)
        probs[np.arange(n), predicted] = scores
        other = (predicted + generator.integers(1, self.classes, size=n)) % self.classes
        return probs, np.where(right, predicted, other)

    def true_top_label_error(self, norm: float = 2) -> float:
        """Error of the highest probability as a confidence."""
        return self.top.true_error(norm)

    def true_class_wise_error(self, norm: float = 2) -> float:
        """(mean over the classes of E|z_k - P(y = k | z_k)|^p)^(1/p)."""
        options.norm(norm)
        k = self.classes
        return float(self.true_top_label_error(norm) * (1 / k + (k - 1) ** (1 - norm) / k) ** (1 / norm))


@dataclass(frozen=True)
class DirichletWorld:
    """Class probabilities z ~ Dirichlet(alpha), labels y ~ (1-s) z + s/K: a model too sure of itself by the share s.

    E[y_k | z_k] = (1-s) z_k + s/K, so the class-wise error is s E|z_k - 1/K|^p averaged over the classes, with z_k ~
    Beta(alpha_k, sum alpha - alpha_k): exact. The top-label error s E[(max z - 1/K)^p]^(1/p) has no closed form and is
    the mean over 400,000 fixed draws, good to about 0.1 % of its value.

    >>> world = DirichletWorld((0.5, 0.5, 1.0), overconfidence=0.2)
    >>> round(world.true_class_wise_error(), 5)
    0.05774
    """

    alpha: tuple[float, ...]
    overconfidence: float

    def __post_init__(self) -> None:
        if len(self.alpha) < 2 or not all(isfinite(a) and a > 0 for a in self.alpha):
            raise InputError(f"a DirichletWorld needs at least two alphas, all > 0, not {self.alpha}")
        if not 0 <= self.overconfidence <= 1:
            raise InputError(f"overconfidence must be in [0, 1], not {self.overconfidence!r}")

    def draw(self, n: int, *, rng: Seed | Sequence[int] = 0) -> tuple[Array, Labels]:
        """n rows of class probabilities and their true labels."""
        refuse_bad_sizes(n, classes=len(self.alpha))
        generator = generator_of(rng)
        probs = generator.dirichlet(self.alpha, n)
        truth = (1.0 - self.overconfidence) * probs + self.overconfidence / len(self.alpha)
        below = np.cumsum(truth, axis=1)[:, :-1] < generator.random((n, 1))
        return probs, below.sum(axis=1)

    def true_class_wise_error(self, norm: float = 2) -> float:
        """(mean over the classes of E|z_k - P(y = k | z_k)|^p)^(1/p)."""
        options.norm(norm)
        k, total = len(self.alpha), sum(self.alpha)
        if norm == np.inf:  # every z_k comes arbitrarily close to 1
            return self.overconfidence * (1 - 1 / k)
        moments = [Beta(a, total - a).expectation(lambda c, rest: np.abs(c - 1 / k) ** norm) for a in self.alpha]
        return float(self.overconfidence * np.mean(moments) ** (1 / norm))

    def true_top_label_error(self, norm: float = 2) -> float:
        """Error of the highest probability as a confidence, by simulation."""
        options.norm(norm)
        if norm == np.inf:
            return self.true_class_wise_error(norm)
        tops = np.random.default_rng(0).dirichlet(self.alpha, 400_000).max(axis=1)
        return float(self.overconfidence * np.mean((tops - 1 / len(self.alpha)) ** norm) ** (1 / norm))
