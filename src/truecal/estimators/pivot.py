"""The pivot: an estimate of a squared error with a variance that depends on the truth, turned into intervals and tests.

A debiased estimate X of theta = E[gap^2] has Var(X) = a + b theta + e theta^2: `a` is what is left when the model is calibrated
(there X is like a centred sum of chi-squares), `b theta` is the noise of the labels around a gap that is there, and
`e theta^2` comes from the scores being a sample. Inverting |X - theta| <= z sqrt(Var) at every theta needs no decision which
of the two regimes the data are in.

b depends on theta as well: were the curve twice as far from the diagonal, outcomes would vary more where scores are near 0 and 1.
Where few rows carry the error this decides the upper end, so b(theta) is that of the fitted curve enlarged to theta. What theta is
beyond the fitted curve may have any shape, and where most rows hardly vary an error is likely among those that do.

Variances are taken from rates that were seen. Where scores are at 0 and 1 and no outcome, or hardly one, contradicts them, nothing
varies, and an interval made of variances ends below errors that would show no miss in one dataset out of five. The
root-mean-square error and the mean absolute one are at least |mean error|, so their upper limits are not below the exact one
(Clopper & Pearson 1934, doi:10.1093/biomet/26.4.404) of the rate of *misses* (outcomes on the other side of 1/2 than their scores),
less the rate of misses that the scores expect, if they expect few.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from truecal.types import Float64s

_LEAST_LEAD = 0.05  # of the quadratic in theta: below it the set would be unbounded
_LEAST_FITTED = 1e-300  # a power of a gap of 1e-150; less is none
ENLARGED = (1.0, 1.5, 2.0, 3.0, 5.0)  # times the fitted curve, for which b is known; linear between, constant beyond
_NODES = np.array(ENLARGED)[:, None]
_BETWEEN = np.diff(_NODES, axis=0)
_STEPS = 50  # of the iteration for the upper end, at most
_SETTLED = 1e-12
_FEW = 5.0  # misses that the scores expect: from there on variances tell how many may come, and the limit would only be longer
_ROUNDING = 1e-9  # of the mean score of a cell
_GENEROUS = 1.02  # times the limit by Wilson and Hilferty, which is short of the exact one by less than this


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
    unknown: Float64s | None = None  # the noise of an error of unknown shape
    misses: Float64s | None = None  # (3, batch) as of `count_misses`

    @classmethod
    def of_all(cls, parts: "Sequence[Pivot]") -> "Pivot":
        """The pivots of the parts of a batch as one."""
        columns = zip(
            *((p.centre, p.floor, p.noise, p.spread, p.most, p.fitted, p.enlarged, p.unknown, p.misses) for p in parts),
            strict=True,
        )
        return cls(*(np.concatenate(column, axis=-1) for column in columns))

    def noise_at(self, theta: Float64s | float) -> Float64s:
        """b(theta): never less for a larger theta, so that intervals nest."""
        if self.fitted is None or self.enlarged is None:
            return self.noise
        fitted, steps = self._steps
        part = np.minimum(np.maximum((np.sqrt(theta / fitted) - _NODES[:-1]) / _BETWEEN, 0.0), 1.0)
        larger = self.enlarged[0] + np.add.reduce(part * steps, axis=0)
        if self.unknown is None:
            return larger
        seen = np.minimum(self.fitted / np.maximum(theta, _LEAST_FITTED), 1.0)
        any_shape = seen * self.noise + (1 - seen) * self.unknown
        return (larger + np.maximum(larger, any_shape)) / 2

    @cached_property
    def _steps(self) -> tuple[Float64s, Float64s]:
        """The theta of the fitted curve to divide by, and what b gains from one enlargement to the next."""
        assert self.fitted is not None
        assert self.enlarged is not None
        return np.where(self.fitted > _LEAST_FITTED, self.fitted, np.inf), np.diff(self.enlarged, axis=0)

    def noise_along(self, theta: Float64s) -> Float64s:
        """That of the enlarged curve of a single dataset at many thetas, for comparisons."""
        if self.fitted is None or self.enlarged is None:
            return np.full_like(theta, float(self.noise[0]))
        times = np.sqrt(theta / (self.fitted[0] if self.fitted[0] > _LEAST_FITTED else np.inf))
        return np.interp(times, ENLARGED, self.enlarged[:, 0])

    def interval(self, level: float) -> tuple[Float64s, Float64s]:
        """Roots of the ends of {theta >= 0: (X - theta)^2 <= z^2 (a + b theta + e theta^2)}; X below 0 counts as 0."""
        z2 = NormalDist().inv_cdf(0.5 + level / 2) ** 2
        low, high = self._ends(z2, self.noise, self.centre)[0], self._ends(z2, self.noise, self._upper)[1]
        if self.enlarged is not None:
            for _ in range(_STEPS):  # rises to the end at which b is that of the end itself
                before, high = high, self._ends(z2, self.noise_at(high), self._upper)[1]
                if (high - before <= _SETTLED).all():
                    break
        return np.sqrt(low), np.sqrt(high) if self.misses is None else at_least(np.sqrt(high), self.misses, level)

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

        chance = np.maximum(ndtr(self.standardised(error)), np.finfo(float).tiny)
        return chance if self.misses is None else np.maximum(chance, chance_of_so_few(self.misses, error))


def expects_one(scores: Float64s) -> NDArray[np.bool_]:
    """Whether scores lie above 1/2, by more than the mean of equal scores is rounded."""
    return scores > 0.5 + _ROUNDING


def count_misses(scores: Float64s, counts: Float64s, ones: Float64s) -> Float64s:
    """Seen, expected, and rows, shape (3, m), of cells of neighbouring scores, shape (m, G)."""
    seen = np.where(expects_one(scores), counts - ones, ones)
    expected = counts * np.minimum(scores, 1 - scores)
    return np.stack([np.maximum(seen.sum(axis=1), 0.0), expected.sum(axis=1), counts.sum(axis=1)])


def at_least(high: Float64s, misses: Float64s, level: float) -> Float64s:
    """Upper limits that are not below those of the misses at a two-sided level."""
    seen, expected, rows = misses
    z = NormalDist().inv_cdf(0.5 + level / 2)
    # An approximation that needs no special function tells where the exact limit may matter.
    about = (seen + 1) * (1 - 1 / (9 * (seen + 1)) + z / (3 * np.sqrt(seen + 1))) ** 3
    open_ = (expected < _FEW) & (_GENEROUS * about - expected > high * rows)
    if not open_.any():
        return high
    from scipy.special import betaincinv

    left = np.maximum(rows - seen, 0.0)
    limit = np.where(left > 0, betaincinv(seen + 1, np.where(left > 0, left, 1.0), 0.5 + level / 2), 1.0)
    return np.where(open_, np.maximum(high, limit - expected / rows), high)


def chance_of_so_few(misses: Float64s, error: float) -> Float64s:
    """Probability of so few misses if they exceeded what the scores expect by `error` on average; 0 where many are expected."""
    from scipy.special import betaincc

    seen, expected, rows = misses
    left = np.maximum(rows - seen, 0.0)
    rate = np.minimum(expected / rows + error, 1.0)
    chance = np.where(left > 0, betaincc(seen + 1, np.where(left > 0, left, 1.0), rate), 1.0)
    return np.where(expected < _FEW, chance, 0.0)
