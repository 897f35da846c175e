"""The pivot: an estimate of a squared error with a variance that depends on the truth, turned into intervals and tests.

A debiased estimate X of theta = E[gap^2] has Var(X) = a + b theta + e theta^2: `a` is what is left when the model is calibrated
(there X is like a centred sum of chi-squares), `b theta` is the noise of the labels around a gap that is there, and
`e theta^2` comes from the scores being a sample. Inverting |X - theta| <= z sqrt(Var) at every theta needs no decision which
of the two regimes the data are in.

b depends on theta as well: were the curve twice as far from the diagonal, outcomes would vary more where scores are near 0 and 1.
Where few rows carry the error this decides the upper end, so b(theta) is that of the fitted curve enlarged to theta.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truecal.types import Float64s

_LEAST_LEAD = 0.05  # of the quadratic in theta: below it the set would be unbounded
_LEAST_FITTED = 1e-300  # a power of a gap of 1e-150; less is none
ENLARGED = (1.0, 1.5, 2.0, 3.0, 5.0)  # times the fitted curve, for which b is known; linear between, constant beyond
_STEPS = 50  # of the iteration for the upper end, at most
_SETTLED = 1e-12


@dataclass(frozen=True, eq=False)
class Pivot:
    """X with Var(X) = floor + noise * theta + spread * theta^2, one of each per dataset, shape (batch,)."""

    centre: Float64s
    floor: Float64s
    noise: Float64s
    spread: Float64s
    most: Float64s | None = None  # X for the upper end, where something is known that X leaves out
    fitted: Float64s | None = None  # theta of the fitted curve ...
    enlarged: Float64s | None = None  # (len(ENLARGED), batch) ... and the noise were it so many times as far off

    @classmethod
    def of_all(cls, parts: "Sequence[Pivot]") -> "Pivot":
        """The pivots of the parts of a batch as one."""
        columns = zip(
            *((p.centre, p.floor, p.noise, p.spread, p.most, p.fitted, p.enlarged) for p in parts), strict=True
        )
        return cls(*(np.concatenate(column, axis=-1) for column in columns))

    def noise_at(self, theta: Float64s | float) -> Float64s:
        """b(theta): never less for a larger theta, so that intervals nest."""
        if self.fitted is None or self.enlarged is None:
            return self.noise
        nodes = np.array(ENLARGED)
        times = np.sqrt(theta / np.where(self.fitted > _LEAST_FITTED, self.fitted, np.inf))
        place = np.clip(np.searchsorted(nodes, times) - 1, 0, len(nodes) - 2)
        part = np.clip((times - nodes[place]) / (nodes[place + 1] - nodes[place]), 0.0, 1.0)
        at = np.arange(len(times))
        return self.enlarged[place, at] * (1 - part) + self.enlarged[place + 1, at] * part

    def noise_along(self, theta: Float64s) -> Float64s:
        """The same of a single dataset at many thetas."""
        if self.fitted is None or self.enlarged is None:
            return np.full_like(theta, float(self.noise[0]))
        times = np.sqrt(theta / (self.fitted[0] if self.fitted[0] > _LEAST_FITTED else np.inf))
        return np.interp(times, ENLARGED, self.enlarged[:, 0])

    def interval(self, level: float) -> tuple[Float64s, Float64s]:
        """Roots of the ends of {theta >= 0: (X - theta)^2 <= z^2 (a + b theta + e theta^2)}; X below 0 counts as 0."""
        from statistics import NormalDist

        z2 = NormalDist().inv_cdf(0.5 + level / 2) ** 2
        low, high = self._ends(z2, self.noise, self.centre)[0], self._ends(z2, self.noise, self._upper)[1]
        if self.enlarged is not None:
            for _ in range(_STEPS):  # rises to the end at which b is that of the end itself
                before, high = high, self._ends(z2, self.noise_at(high), self._upper)[1]
                if (high - before <= _SETTLED).all():
                    break
        return np.sqrt(low), np.sqrt(high)

    @property
    def _upper(self) -> Float64s:
        return self.centre if self.most is None else self.most

    def _ends(self, z2: float, noise: Float64s, centre: Float64s) -> tuple[Float64s, Float64s]:
        x = np.maximum(centre, 0.0)
        lead = np.maximum(1 - z2 * self.spread, _LEAST_LEAD)
        half = x + z2 * noise / 2
        root = np.sqrt(np.maximum(half**2 - lead * (x**2 - z2 * self.floor), 0.0))
        return np.maximum(half - root, 0.0) / lead, (half + root) / lead

    def standardised(self, error: float) -> Float64s:
        """How many standard deviations X for the upper end lies above what it would be if the root of theta were `error`."""
        theta = error**2
        deviation = np.sqrt(self.floor + self.noise_at(theta) * theta + self.spread * theta**2)
        return (self._upper - theta) / np.maximum(deviation, np.finfo(float).tiny)

    def chance_below(self, error: float) -> Float64s:
        """Probability of an X this small if the root of theta were `error`; never exactly 0."""
        from scipy.special import ndtr

        return np.maximum(ndtr(self.standardised(error)), np.finfo(float).tiny)
