"""Two squared errors on the same rows: limits for the difference of their roots.

Each estimate X is a debiased square of coefficients, X = |beta + G|^2 - tr V with normal noise G of covariance V. With e the true
error, L the noise along the curve, R what is left of |G|^2 - tr V, and H what the sample of scores adds,

    X = (e + L)^2 - Var L + R + e^2 H,      4 Var L = b,   2 (Var L)^2 + Var R = a,   Var H = spread     (:class:`Pivot`).

X is not normal where it matters: noise that both models have in common moves both X along the curve of pairs with the same
difference of roots, and nothing is lost by it. So X is drawn from this model at any pair of errors. R of both models comes from
joint draws of G over units, H is correlated as the squared gaps of units are, and L so that the linear part of X_1 - X_2, which is
2 (e_1 L_1 - e_2 L_2), has the variance

    D = 4 Var(beta_1 s_1 - beta_2 s_2),    s the sums over a unit, less what noise in both beta adds to it.

What two models do not know of themselves, how far each is off, cancels in D: on the same outcomes beta_1 - beta_2 is all but the
difference of their scores. So D is known better than either b: by all terms of beta_1 - beta_2, and by those of their mean that
were chosen (:func:`_apart`). The three standard deviations sqrt(b_1) e_1, sqrt(b_2) e_2 and sqrt(D) must be the sides of a
triangle; where they are not, D is believed.

Pairs with e_1 - e_2 = d satisfy theta_1 - theta_2 = d (e_1 + e_2) and (e_1 + e_2)^2 = 2 (theta_1 + theta_2) - d^2. The statistic

    T_d = X_1 - X_2 - d max(sqrt(2 (X_1 + X_2) - d^2), |d|)

falls in d and is zero at the difference of the roots. It is drawn at the pair with the difference d that is nearest to X (by the
covariance of X at that pair), and a difference is kept while neither tail of the draws is too small.
"""

from dataclasses import dataclass

import numpy as np

from truecal.estimators.noise import symmetric_root
from truecal.estimators.pivot import Pivot
from truecal.types import Float64s

_DRAWS = 1000  # of X, each with its mirror image
_SEED = 26  # limits of the same data are the same
_COUNTED = 0.02  # tails are counted down to this; beyond it they fall like the mean excess says, as no log-concave tail exceeds
_POINTS = 16  # differences tried at a time on either side ...
_ROUNDS = 4  # ... and rounds of looking closer between the last that is kept and the next: 1e-6 in the end
_SUMS = 160  # sums of both errors that are tried for the pair nearest to X
_NEAREST = 2  # rounds of looking for it, each with the covariance at the last
_ALIKE = 1 - 1e-6  # estimates are not correlated by more than this
_TINY = 1e-40


@dataclass(frozen=True, eq=False)
class Noise:
    """What every unit (row, cluster, cell) adds to the estimate of one model."""

    beta: Float64s  # (K,) coefficients
    sums: Float64s  # (units, K) noise of every coefficient
    squares: Float64s  # (units,) of the mean squared gap
    chosen: int = 0  # terms of the curve, none where no error is told


@dataclass(frozen=True, eq=False)
class Side:
    """One model of a comparison."""

    value: float
    pivot: Pivot
    noise: Noise
    units: int | None = None  # clusters, whose noise is Student's; None: rows

    def repeats(self, other: "Side") -> bool:
        """Whether it is the same model on the same rows."""
        return self.value == other.value and np.array_equal(self.noise.sums, other.noise.sums)

    def limits(self, other: "Side", level: float, *, paired: bool) -> tuple[float, float, float]:
        """Limits of the difference of both errors, this one less the other, and the p-value of none."""
        if paired and self.repeats(other):
            return 0.0, 0.0, 1.0
        if float(self.pivot.centre[0]) < float(other.pivot.centre[0]):  # the same draws whichever comes first
            low, high, p = other.limits(self, level, paired=paired)
            return -high, -low, p
        pair = _Pair(self, other, paired=paired)
        p = 2 * float(pair.tail(np.zeros(1))[0])
        low, high = (pair.end(far, (1 - level) / 2) for far in (-1.0, 1.0))
        if p >= 1 - level:
            low, high = min(low, 0.0), max(high, 0.0)
        return low, high, min(max(p, float(np.finfo(float).tiny)), 1.0)


class _Pair:
    """How X of two models is distributed at any pair of true errors."""

    def __init__(self, one: Side, other: Side, *, paired: bool) -> None:
        self._pivots = one.pivot, other.pivot
        self._floors = [float(p.floor[0]) for p in self._pivots]
        self._spreads = [max(float(p.spread[0]), 0.0) for p in self._pivots]
        self._seen = [(float(one.pivot.centre[0]), float(other.pivot.centre[0]))]
        most = tuple(float((p.centre if p.most is None else p.most)[0]) for p in self._pivots)
        # What runs of neighbours show of both: curves on the same rows jump at the same places
        if most != self._seen[0]:
            self._seen.append((most[0], most[1]))
        free = min((side.units - 1 for side in (one, other) if side.units is not None), default=None)
        noises = one.noise, other.noise
        own = [noise.sums.T @ noise.sums for noise in noises]
        both = noises[0].sums.T @ noises[1].sums if paired else np.zeros((len(own[0]), len(own[1])))
        common: tuple[float, float | None, float] = (0.0, None, 0.0)
        self._floor, self._apart, self._alike = _in_common(*noises, own, both) if paired else common
        self._draw(own, both, free)

    def _draw(self, own: list[Float64s], both: Float64s, free: int | None) -> None:
        """Standard L and H, and R of variance 1, for all pairs of errors; Student's noise has one scale for all of a draw."""
        rng = np.random.default_rng(_SEED)
        mirrored = np.repeat([1.0, -1.0], _DRAWS)
        self._along, self._spread = (mirrored * np.tile(rng.standard_normal((2, _DRAWS)), 2) for _ in range(2))
        self._scale = 1.0 if free is None else np.tile(np.sqrt(free / rng.chisquare(free, _DRAWS)), 2)
        root = symmetric_root(np.block([[own[0], both], [both.T, own[1]]]))
        parts = np.split(rng.standard_normal((_DRAWS, len(root))) @ root, [len(own[0])], axis=1)
        self._rest = []
        for part, variance in zip(parts, own, strict=True):
            length = np.sqrt(2 * float((variance**2).sum()))
            rest = ((part**2).sum(axis=1) - variance.trace()) / length if length > 0 else rng.standard_normal(_DRAWS)
            self._rest.append(np.tile(rest, 2))

    def tail(self, differences: Float64s) -> Float64s:
        """The smaller tail of what is seen among what is drawn at every difference; that of what runs show may be the larger."""
        tails = [self._tails(differences, seen) for seen in self._seen]
        return np.max(tails, axis=0).min(axis=0)

    def _tails(self, differences: Float64s, seen: tuple[float, float]) -> Float64s:
        errors = self._nearest(differences, seen)
        drawn = _contrast(differences[:, None], *self._drawn(errors))
        found = _contrast(differences, *seen)
        return np.array([_beyond(drawn, found), _beyond(-drawn, -found)])

    def end(self, far: float, tail: float) -> float:
        """The last difference on the way from that of the estimates to `far` before one that is not kept."""
        kept, lost = _zero(*self._seen[0]), far
        spacing = np.linspace(0.0, 1.0, _POINTS) ** 3
        for _ in range(_ROUNDS):
            tried = kept + (lost - kept) * spacing
            outside = np.flatnonzero(self.tail(tried[1:]) < tail)
            if len(outside) == 0:
                return float(tried[-1])
            kept, lost = tried[outside[0]], tried[outside[0] + 1]
            spacing = np.linspace(0.0, 1.0, _POINTS)
        return float(kept)

    def _nearest(self, differences: Float64s, seen: tuple[float, float]) -> tuple[Float64s, Float64s]:
        """The pair of errors with every difference that is nearest to what is seen; shape (differences,) each."""
        least = np.abs(differences)
        most = 2.0 - least
        total = np.clip(np.sqrt(np.maximum(2 * sum(seen) - differences**2, 0.0)), least, most)
        for _ in range(_NEAREST):
            one, other, shared = self._covariance((total + differences) / 2, (total - differences) / 2)
            reach = least + np.sqrt(2 * max(sum(seen), 0.0) + 8 * np.sqrt(one + other))
            tried = least + (np.minimum(reach, most) - least) * (np.linspace(0.0, 1.0, _SUMS)[:, None] ** 2)
            off = seen[0] - ((tried + differences) / 2) ** 2, seen[1] - ((tried - differences) / 2) ** 2
            distance = off[0] ** 2 * other + off[1] ** 2 * one - 2 * off[0] * off[1] * shared
            total = tried[distance.argmin(axis=0), np.arange(len(differences))]
        return (total + differences) / 2, (total - differences) / 2

    def _linear(self, errors: tuple[Float64s, Float64s]) -> tuple[list[Float64s], Float64s]:
        """Standard deviations of 2 e L of both models, made to agree with D, and the correlation of L."""
        deviation = [np.sqrt(p.noise_along(e * e)) for p, e in zip(self._pivots, errors, strict=True)]
        sides = [e * d for e, d in zip(errors, deviation, strict=True)]
        if self._apart is None:
            return sides, np.zeros_like(sides[0])
        known = np.sqrt(self._apart)
        # The shorter side is too short: as noisy as the other model's at most, or as much as D asks for.
        raised = [
            np.maximum(own, np.minimum(its - known, e * noise))
            for own, its, e, noise in zip(sides, sides[::-1], errors, deviation[::-1], strict=True)
        ]
        reach = np.maximum(raised[0] + raised[1], _TINY)
        sides = [side * np.maximum(known / reach, 1.0) for side in raised]
        product = 2 * sides[0] * sides[1]
        cosine = (sides[0] ** 2 + sides[1] ** 2 - known**2) / np.where(product > 0, product, 1.0)
        # Without an error there is no triangle: L is correlated so that its square is as all of X is there.
        return sides, np.where(product > 0, np.clip(cosine, -1.0, 1.0), np.sqrt(self._floor))

    def _covariance(self, *errors: Float64s) -> tuple[Float64s, Float64s, Float64s]:
        """Variances of X of both models and their covariance."""
        (one, other), correlation = self._linear((errors[0], errors[1]))
        spread = [np.sqrt(s) * e**2 for s, e in zip(self._spreads, errors, strict=True)]
        first = self._floors[0] + one**2 + spread[0] ** 2 + _TINY
        second = self._floors[1] + other**2 + spread[1] ** 2 + _TINY
        shared = self._floor * np.sqrt(self._floors[0] * self._floors[1])
        shared = shared + correlation * one * other + self._alike * spread[0] * spread[1]
        most = _ALIKE * np.sqrt(first * second)
        return first, second, np.clip(shared, -most, most)

    def _drawn(self, errors: tuple[Float64s, Float64s]) -> tuple[Float64s, Float64s]:
        """X of both models at every pair of errors, shape (pairs, draws)."""
        sides, correlation = self._linear(errors)
        first, second = self._along
        other = np.sqrt(1 - self._alike**2)
        spread = self._spread[0], self._alike * self._spread[0] + other * self._spread[1]
        along = first[None], correlation[:, None] * first + np.sqrt(1 - correlation**2)[:, None] * second
        x = []
        for k in range(2):
            e = errors[k][:, None]
            deviation = np.sqrt(self._pivots[k].noise_along(errors[k] ** 2)) / 2
            deviation = np.where(errors[k] > 0, sides[k] / np.where(errors[k] > 0, 2 * errors[k], 1.0), deviation)[
                :, None
            ]
            own = 2 * deviation**4  # of the variance of the floor, as far as there is so much
            part = np.minimum(1.0, np.sqrt(self._floors[k] / np.maximum(own, _TINY)))
            rest = np.sqrt(np.maximum(self._floors[k] - own, 0.0))
            noise = part * deviation**2 * (along[k] ** 2 - 1) + rest * self._rest[k]
            linear = 2 * e * deviation * along[k] + np.sqrt(self._spreads[k]) * e**2 * spread[k]
            x.append(e**2 + linear * self._scale + noise * self._scale**2)
        return x[0], x[1]


def _in_common(one: Noise, other: Noise, own: list[Float64s], both: Float64s) -> tuple[float, float, float]:
    """Of X of two models: the correlation of what is there without an error, D, and the correlation of H."""
    lengths = [float((v**2).sum()) for v in (*own, both)]
    floor = lengths[2] / np.sqrt(lengths[0] * lengths[1]) if min(lengths[:2]) > 0 else 0.0
    length = np.sqrt(float((one.squares**2).sum() * (other.squares**2).sum()))
    alike = float((one.squares * other.squares).sum()) / length if length > 0 else 0.0
    return float(floor), _apart(one, other, own, both), min(max(alike, -1.0), 1.0)


def _apart(one: Noise, other: Noise, own: list[Float64s], both: Float64s) -> float:
    """D: found - noise^2 / found, and 0 where that is negative.

    `found` has no bias; `noise`, its standard deviation were both models calibrated, would make every other D of such models
    positive, and the interval of their difference too long.
    """
    counts = [len(v) for v in own]
    terms = max(counts)
    beta, covariance = np.zeros((2, terms)), np.zeros((2, terms, 2, terms))
    for i, noise in enumerate((one, other)):
        beta[i, : counts[i]] = noise.beta
        covariance[i, : counts[i], i, : counts[i]] = own[i]
    covariance[0, : counts[0], 1, : counts[1]] = both
    covariance[1, : counts[1], 0, : counts[0]] = both.T
    joint = covariance.reshape(2 * terms, 2 * terms)
    # The mean of both coefficients is left out in terms that both models have and neither needs.
    place = np.arange(terms)
    idle = (place >= max(one.chosen, other.chosen)) & (place < min(counts))
    kept = np.eye(2 * terms) - np.kron(np.full((2, 2), 0.5), np.diag(idle.astype(float)))
    contrast = joint * np.kron([[1.0, -1.0], [-1.0, 1.0]], np.ones((terms, terms)))
    coefficients = kept @ beta.ravel()
    chance = contrast @ kept @ joint @ kept
    found = float(coefficients @ contrast @ coefficients - chance.trace())
    squared_noise = 2 * max(float((chance * chance.T).sum()), 0.0)
    return 4 * max(found - squared_noise / found, 0.0) if found > 0 else 0.0


def _contrast(d: Float64s, one: Float64s | float, other: Float64s | float) -> Float64s:
    """T_d: what is left of the difference of squares when the errors differ by d."""
    total = np.sqrt(np.maximum(2 * (one + other) - d**2, 0.0))
    return np.asarray(one - other - d * np.maximum(total, np.abs(d)))


def _zero(one: float, other: float) -> float:
    """The difference at which T is zero."""
    if min(one, other) >= 0:
        return float(np.sqrt(one) - np.sqrt(other))
    return float(np.copysign(np.sqrt(abs(one - other)), one - other))


def _beyond(drawn: Float64s, found: Float64s) -> Float64s:
    """The share of draws at or above what is found, one line each."""
    count = drawn.shape[1]
    outer = int(_COUNTED * count)
    top = np.partition(drawn, count - outer, axis=1)[:, count - outer :]
    start = top.min(axis=1)
    excess = np.maximum(top.mean(axis=1) - start, np.finfo(float).tiny)
    counted = (drawn >= found[:, None]).mean(axis=1)
    return np.where(found > start, _COUNTED * np.exp(-np.maximum(found - start, 0.0) / excess), counted)
