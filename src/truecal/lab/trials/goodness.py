"""Does a fitted world look like the data it was fitted to?"""

from dataclasses import dataclass

import numpy as np

import truecal as tc
from truecal.lab.trials.trials import bias
from truecal.lab.worlds.fit_world import WorldFit
from truecal.lab.worlds.world import Seed, World


@dataclass(frozen=True)
class Goodness:
    """Equal-width ECE on the data, and averaged over simulated data of that size."""

    on_data: float
    simulated: float
    simulated_std: float
    m: int

    @property
    def standard_error(self) -> float:
        """Monte-Carlo error of `simulated`."""
        return float(self.simulated_std / np.sqrt(self.m))

    @property
    def z(self) -> float:
        """How many simulated standard deviations the data is away."""
        return (self.on_data - self.simulated) / self.simulated_std if self.simulated_std else float("nan")


def goodness(
    fit: WorldFit, world: World | None = None, *, norm: float = 2, bins: int = 15, m: int = 200, rng: Seed = 0
) -> Goodness:
    """ECE on the data against its average over m datasets of the fitted world, or of `world` (Roelofs et al., Table 3).

    >>> import truecal as tc
    >>> truth = tc.lab.World(tc.lab.Beta(2.0, 0.5), tc.lab.GLM("logit", "logit", -0.5, 0.6))
    >>> scores, outcomes = truth.draw(n=2000, rng=0)
    >>> check = tc.lab.goodness(tc.lab.fit_world(tc.Profile.from_arrays(scores[0], outcomes[0])), m=50)
    >>> abs(check.z) < 3
    True
    """
    estimator = tc.BinnedECE(bins=bins, scheme="width", norm=norm)
    rows = round(float(fit.profile.size[0]))
    trial = bias(estimator, world or fit.world, n=rows, m=m, rng=rng)
    on_data = float(np.ravel(estimator.values(fit.profile))[0])
    return Goodness(on_data, trial.mean, trial.std, m)
