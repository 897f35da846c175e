"""The pivot: an estimate of a squared error with a variance that depends on the truth, turned into intervals and tests.

A debiased estimate X of theta = E[gap^2] has Var(X) = a + b theta + e theta^2: `a` is what is left when the model is calibrated
(there X is like a centred sum of chi-squares), `b theta` is the noise of the labels around a gap that is there, and
`e theta^2` comes from the scores being a sample. Inverting |X - theta| <= z sqrt(Var) at every theta needs no decision which
of the two regimes the data are in.
"""

from dataclasses import dataclass

import numpy as np

from truecal.types import Float64s

_LEAST_LEAD = 0.05  # of the quadratic in theta: below it the set would be unbounded


@dataclass(frozen=True)
class Pivot:
    """X with Var(X) = floor + noise * theta + spread * theta^2, one of each per dataset, shape (batch,)."""

    centre: Float64s
    floor: Float64s
    noise: Float64s
    spread: Float64s

    def interval(self, level: float) -> tuple[Float64s, Float64s]:
        """Roots of the ends of {theta >= 0: (X - theta)^2 <= z^2 (a + b theta + e theta^2)}; X below 0 counts as 0."""
        from statistics import NormalDist

        z2 = NormalDist().inv_cdf(0.5 + level / 2) ** 2
        x = np.maximum(self.centre, 0.0)
        lead = np.maximum(1 - z2 * self.spread, _LEAST_LEAD)
        half = x + z2 * self.noise / 2
        root = np.sqrt(np.maximum(half**2 - lead * (x**2 - z2 * self.floor), 0.0))
        return np.sqrt(np.maximum(half - root, 0.0) / lead), np.sqrt((half + root) / lead)

    def chance_below(self, error: float) -> Float64s:
        """Probability of an X this small if the root of theta were `error`; never exactly 0."""
        from scipy.special import ndtr

        theta = error**2
        deviation = np.sqrt(self.floor + self.noise * theta + self.spread * theta**2)
        away = self.centre - theta
        z = np.where(deviation > 0, away / np.where(deviation > 0, deviation, 1.0), np.copysign(np.inf, away))
        return np.maximum(ndtr(z), np.finfo(float).tiny)
