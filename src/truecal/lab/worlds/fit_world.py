"""fit_world: the simulated world most like a user's data (Roelofs et al., section 5.1 and appendix A)."""

from dataclasses import dataclass

import numpy as np

import truecal as tc
from truecal.errors import InputError
from truecal.lab.worlds.fit_beta import BetaFit, fit_beta
from truecal.lab.worlds.fit_curve import CurveFit, fit_curves
from truecal.lab.worlds.quadrature import Array
from truecal.lab.worlds.score_distributions import Discrete, Empirical
from truecal.lab.worlds.world import World
from truecal.profile import check_profile


@dataclass(frozen=True)
class WorldFit:
    """The fitted score distribution, every candidate curve (best AIC first) and the world made of the best of both."""

    beta: BetaFit
    curves: tuple[CurveFit, ...]
    profile: tc.Profile

    @property
    def best(self) -> CurveFit:
        return self.curves[0]

    @property
    def world(self) -> World:
        return World(self.beta.scores, self.best.curve)

    @property
    def empirical_world(self) -> World:
        """The best curve on the scores as they are: no Beta comes between, only the curve is a model."""
        scores = self.profile.scores[0].astype(np.float64)
        smooth = self.profile.weights is None and self.profile.distinct[0] >= 0.9 * scores.size
        return World(Empirical(scores) if smooth else Discrete.of(self.profile), self.best.curve)

    def curve(self, name: str) -> CurveFit:
        """The candidate of this name, for example "logflip_logflip_b0_b1"."""
        for fit in self.curves:
            if fit.name == name:
                return fit
        raise InputError(f"unknown curve {name!r}: use one of {', '.join(fit.name for fit in self.curves)}")


def fit_world(profile: tc.Profile, *, resolution: float | None = None) -> WorldFit:
    """Fit Beta scores and the best of the GLM curves to one dataset: "simulate data like mine".

    Scores of exactly 1 or 0 are taken as rounded. For the Beta they count as P(1-c < resolution); for the curves they
    are placed where that Beta expects them, at the mean of log(1-c) below the resolution, log(resolution) - 1/beta.
    `resolution` is that of the coarsest floating-point type that holds the scores, unless given.

    >>> import truecal as tc
    >>> world = tc.lab.World(tc.lab.Beta(2.0, 0.5), tc.lab.GLM("logit", "logit", -0.5, 0.6))
    >>> scores, outcomes = world.draw(n=20_000, rng=0)
    >>> fit = tc.lab.fit_world(tc.Profile.from_arrays(scores[0], outcomes[0]))
    >>> fit.best.name
    'logit_logit_b0_b1'
    >>> abs(fit.world.true_error() - world.true_error()) < 0.01
    True
    """
    check_profile(profile)
    if profile.batch != 1:
        raise InputError(f"fit_world takes one dataset, not a batch of {profile.batch}: fit them one by one")
    scores = profile.scores[0].astype(np.float64)
    outcomes = np.asarray(profile.outcomes[0], dtype=np.float64)
    weights = np.ones_like(scores) if profile.weights is None else profile.weights[0].astype(np.float64)
    weights = weights * (float(profile.size[0]) / weights.sum())
    right = float(weights @ outcomes / weights.sum())
    if right in (0.0, 1.0):
        raise InputError(f"every outcome is {right:.0f}: no calibration curve can be fitted to that")
    try:
        beta = fit_beta(scores, weights, resolution=resolution)
        c, rest = _place_ends(scores, beta)
        return WorldFit(beta, tuple(fit_curves(c, rest, outcomes, weights)), profile)
    except np.linalg.LinAlgError as error:
        raise InputError(f"{len(scores)} rows do not determine a curve; give more, with different scores") from error


def _place_ends(scores: Array, beta: BetaFit) -> tuple[Array, Array]:
    """c and 1-c with scores of exactly 0 and 1 at the geometric mean of what the Beta holds within the resolution."""
    c, rest = scores.copy(), 1.0 - scores
    near_zero, near_one = (
        np.exp(np.log(beta.resolution) - 1.0 / exponent) for exponent in (beta.scores.alpha, beta.scores.beta)
    )
    c[scores == 0], rest[scores == 1] = near_zero, near_one
    return c, rest
