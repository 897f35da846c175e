"""Two squared errors on the same rows: limits for the difference of their roots.

Each estimate X has the mean theta and the variance a + b theta + e theta^2 (:class:`Pivot`). On the same units they have in common

    Cov(X_1, X_2) = rho_a sqrt(a_1 a_2) + (b_1 theta_1 + b_2 theta_2 - D) / 2 + rho_e sqrt(e_1 e_2) theta_1 theta_2.

With V the covariance of the coefficients over units, rho_a = |V_12|^2 / (|V_11| |V_22|) (Frobenius), and D is the variance of the
linear part of X_1 - X_2: 4 times that of sum(beta_1 s_1 - beta_2 s_2), s the sums over a unit. What two models do not know of
themselves, how far each is off, cancels in D: on the same outcomes beta_1 - beta_2 is all but the difference of their scores.
So D is known better than b: where sqrt(b_1 theta_1) + sqrt(b_2 theta_2) is below sqrt(D), both b are enlarged until it is not.

A difference d of the errors is kept if some (theta_1, theta_2) with this difference is about as likely as the likeliest pair:
the least (X - theta)' Cov^-1 (X - theta) on sqrt(theta_1) - sqrt(theta_2) = d may exceed the least of all by z^2. So nothing has
to be decided about how far either model is off, which a difference of roots depends on near zero. Where runs of neighbours show
more than the estimates (`Pivot.most`), X may lie anywhere on the line between what both estimates say and what the runs say of
both: two curves of the same rows have their jumps in common.
"""

from dataclasses import dataclass

import numpy as np

from truecal.estimate.pivot import Pivot
from truecal.types import Float64s

_GRID = 96  # differences that are tried at a time
_ROUNDS = 6  # of looking closer at them, each at what is left of the last
_ERRORS = 48  # errors of the second model that are tried at a time for every difference
_CLOSER = (
    4  # rounds of looking closer at these: each a step to either side of the best, so 1e-6 of the range in the end
)
_WIDE = 6.0  # standard errors that the search begins with
_SKEWED = 1.05  # X is not quite normal where an error hardly stands out: so many quantiles, or 0.86 is covered at 90 % and n = 1000
_ALIKE = 1e-9  # estimates cannot be correlated by more than 1 less this
_LEAST_VARIANCE = 1e-40
_Two = tuple[Float64s | float, Float64s | float]


@dataclass(frozen=True)
class Noise:
    """What every unit (row, cluster) adds to the estimate of one model."""

    beta: Float64s  # (K,) coefficients
    sums: Float64s  # (units, K) noise of every coefficient
    squares: Float64s  # (units,) of the mean squared gap


@dataclass(frozen=True)
class Side:
    """One model of a comparison."""

    value: float
    pivot: Pivot
    units: int | None = None  # clusters, whose quantiles are Student's; None: rows
    noise: Noise | None = None  # None: nothing to pair

    def repeats(self, other: "Side") -> bool:
        """Whether it is the same model on the same rows."""
        own, its = self.noise, other.noise
        return own is not None and its is not None and self.value == other.value and np.array_equal(own.sums, its.sums)

    def limits(self, other: "Side", level: float, *, paired: bool) -> tuple[float, float, float]:
        """Limits of the difference of both errors, this one less the other, and the p-value of none."""
        from scipy.special import ndtr, ndtri, stdtr, stdtrit

        if paired and self.repeats(other):
            return 0.0, 0.0, 1.0
        free = min((side.units - 1 for side in (self, other) if side.units is not None), default=None)
        z = _SKEWED * float(ndtri(0.5 + level / 2) if free is None else stdtrit(free, 0.5 + level / 2))
        pair = _Pair(self, other, paired=paired)
        (low, high), (its_low, its_high) = pair.ranges()
        tried, least = np.linspace(low - its_high, high - its_low, _GRID), np.inf
        for _ in range(_ROUNDS):
            found = pair.least(tried)
            least = min(least, float(found.min()))
            ahead = np.sqrt(np.maximum(found - least, 0.0))
            kept = np.flatnonzero(ahead <= z)
            if len(kept) > _GRID // 2:
                break
            tried = np.linspace(tried[max(kept[0] - 1, 0)], tried[min(kept[-1] + 1, _GRID - 1)], _GRID)
        ends = [_crossing(tried, ahead, int(kept[0]), -1, z), _crossing(tried, ahead, int(kept[-1]), 1, z)]
        at_none = float(np.sqrt(max(float(pair.least(np.zeros(1))[0]) - least, 0.0))) / _SKEWED
        p = float(2 * (ndtr(-at_none) if free is None else stdtr(free, -at_none)))
        return ends[0], ends[1], min(max(p, float(np.finfo(float).tiny)), 1.0)


@dataclass(frozen=True)
class _Common:
    """What the estimates of two models have in common; see above."""

    floor: float  # rho_a
    linear: float | None  # D; None where nothing is
    spread: float  # rho_e

    @classmethod
    def of(cls, one: Noise | None, other: Noise | None) -> "_Common":
        if one is None or other is None:
            return cls(0.0, None, 0.0)
        own, its, both = one.sums.T @ one.sums, other.sums.T @ other.sums, one.sums.T @ other.sums
        lengths = [float((v**2).sum()) for v in (own, its, both)]
        floor = lengths[2] / np.sqrt(lengths[0] * lengths[1]) if min(lengths[:2]) > 0 else 0.0
        raw = one.beta @ own @ one.beta + other.beta @ its @ other.beta - 2 * one.beta @ both @ other.beta
        chance = lengths[0] + lengths[1] - 2 * lengths[2]  # what raw would be of coefficients that are all noise
        length = np.sqrt(float((one.squares**2).sum() * (other.squares**2).sum()))
        spread = float((one.squares * other.squares).sum()) / length if length > 0 else 0.0
        return cls(float(floor), max(4 * float(raw - chance), 0.0), spread)


class _Pair:
    """How unlikely pairs of true errors are."""

    def __init__(self, one: Side, other: Side, *, paired: bool) -> None:
        self._pivots = one.pivot, other.pivot
        self._common = _Common.of(one.noise, other.noise) if paired else _Common(0.0, None, 0.0)
        centres = [float(p.centre[0]) for p in self._pivots]
        self._centre = centres
        self._beyond = [
            0.0 if p.most is None else float(p.most[0]) - c for p, c in zip(self._pivots, centres, strict=True)
        ]

    def distance(self, one: Float64s, other: Float64s) -> Float64s:
        """(X - theta)' Cov^-1 (X - theta) at true errors `one` and `other`, X as near as the runs allow."""
        theta = one * one, other * other
        noise = [pivot.noise_along(t) * t for pivot, t in zip(self._pivots, theta, strict=True)]
        if self._common.linear is not None:
            # D is known better than what fitted curves say of either model: both together vary at least so much.
            reach = (np.sqrt(noise[0]) + np.sqrt(noise[1])) ** 2
            noise = [each * np.maximum(self._common.linear / np.maximum(reach, _LEAST_VARIANCE), 1.0) for each in noise]
        variance = [
            np.maximum(pivot.floor[0] + each + max(float(pivot.spread[0]), 0.0) * t * t, _LEAST_VARIANCE)
            for pivot, each, t in zip(self._pivots, noise, theta, strict=True)
        ]
        first, second = self._pivots
        shared = self._common.floor * np.sqrt(float(first.floor[0] * second.floor[0]))
        if self._common.linear is not None:
            most = np.sqrt(noise[0] * noise[1])
            shared = shared + np.clip((noise[0] + noise[1] - self._common.linear) / 2, -most, most)
            spreads = np.sqrt(max(float(first.spread[0]), 0.0) * max(float(second.spread[0]), 0.0))
            shared = shared + self._common.spread * spreads * theta[0] * theta[1]
        most = (1 - _ALIKE) * np.sqrt(variance[0] * variance[1])
        shared = np.clip(shared, -most, most)

        def product(a: _Two, b: _Two) -> Float64s:
            return a[0] * b[0] * variance[1] + a[1] * b[1] * variance[0] - (a[0] * b[1] + a[1] * b[0]) * shared

        off = theta[0] - self._centre[0], theta[1] - self._centre[1]
        ahead = self._beyond[0], self._beyond[1]
        determinant = variance[0] * variance[1] - shared * shared
        length = product(ahead, ahead)
        part = np.clip(product(off, ahead) / np.where(length > 0, length, np.inf), 0.0, 1.0)
        left = off[0] - part * ahead[0], off[1] - part * ahead[1]
        return product(left, left) / determinant

    def ranges(self) -> list[tuple[float, float]]:
        """Where either error may be at all."""
        from scipy.special import ndtr

        level = float(2 * ndtr(_WIDE) - 1)
        ends = [pivot.interval(level) for pivot in self._pivots]
        return [(float(low[0]), min(float(high[0]), 1.0)) for low, high in ends]

    def least(self, differences: Float64s) -> Float64s:
        """The least distance at every difference of the errors."""
        (_, _), (low, high) = self.ranges()
        start, step = np.full(len(differences), low), (high - low) / (_ERRORS - 1)
        found = np.full(len(differences), np.inf)
        for _ in range(_CLOSER):
            other = start[:, None] + step * np.arange(_ERRORS)
            one = other + differences[:, None]
            outside = (one < 0) | (one > 1) | (other < 0) | (other > 1)
            distance = np.where(outside, np.inf, self.distance(np.clip(one, 0.0, 1.0), np.clip(other, 0.0, 1.0)))
            best = distance.argmin(axis=1)
            found = np.minimum(found, distance[np.arange(len(best)), best])
            start, step = np.maximum(start + step * (best - 1), 0.0), 2 * step / (_ERRORS - 1)
        return found


def _crossing(tried: Float64s, ahead: Float64s, last: int, way: int, z: float) -> float:
    """Where the distance becomes z, between the last difference that is kept and the next."""
    if not 0 <= last + way < len(tried):
        return float(tried[last])
    part = (z - ahead[last]) / (ahead[last + way] - ahead[last]) if np.isfinite(ahead[last + way]) else 0.0
    return float(tried[last] + part * (tried[last + way] - tried[last]))
