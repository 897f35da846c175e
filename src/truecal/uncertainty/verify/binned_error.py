"""The calibration error of a model with few outputs: debiased, with one-sided confidence limits.

For outputs s_j seen n_j times with k_j ones, and shares w_j = n_j / n, the debiased squared error (Kumar et al. 2019,
5.2) is

    U = sum_j w_j [ (s_j - k_j / n_j)^2 - y_j (1 - y_j) / (n_j - 1) ],      y_j = k_j / n_j

An output seen once cannot be debiased; its term stays as it is, which can only raise U.

Limits come from inverting a test. If the true squared error were t, then U has mean t, and its variance and skewness
follow from where the error sits: spread evenly over the outputs, or where it was seen. Whichever makes the observed U
more likely counts.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from truecal.profile import Profile
from truecal.types import Float64s


@dataclass(frozen=True, eq=False)
class BinnedError:
    """Distinct outputs of a model with the rows and ones seen at each."""

    outputs: Float64s
    counts: Float64s
    ones: Float64s

    @classmethod
    def of(cls, profile: Profile) -> "BinnedError":
        """From a profile of one dataset whose weights, if any, are counts."""
        scores = profile.scores[0].astype(np.float64)
        starts = np.flatnonzero(np.concatenate([[True], scores[1:] != scores[:-1]]))
        ends = np.append(starts[1:], len(scores))
        counts, ones = (profile.prefix(name)[0].astype(np.float64) for name in ("w", "y"))
        return cls(scores[starts], counts[ends] - counts[starts], ones[ends] - ones[starts])

    @property
    def n(self) -> float:
        return float(self.counts.sum())

    @property
    def shares(self) -> Float64s:
        return self.counts / self.counts.sum()

    @property
    def plugin(self) -> float:
        """sum_j w_j (s_j - y_j)^2 (Kumar et al., definition 5.1)."""
        return float(squared_errors(self.outputs, self.counts, self.ones)[0])

    @property
    def squared(self) -> float:
        """The debiased squared error U; may be negative."""
        return float(squared_errors(self.outputs, self.counts, self.ones)[1])

    @property
    def balance(self) -> float:
        """The smallest alpha for which the outputs are alpha-well-balanced: 1/(alpha B) <= w_j <= alpha/B (definition 4.2)."""
        relative = self.shares * len(self.outputs)
        return float(max(relative.max(), 1 / relative.min()))

    def lower(self, level: float, more: float = 1.0) -> float:
        """One-sided lower confidence limit of the squared error; or what it would be with `more` times as many rows."""
        found, chance = self.squared, self._chance(more)
        if chance(0.0, found)[1] >= 1 - level:
            return 0.0
        return _crossing(lambda t: chance(t, found)[1] < 1 - level, 0.0, found)

    def upper(self, level: float, more: float = 1.0) -> float:
        """One-sided upper confidence limit of the squared error; or what it would be with `more` times as many rows."""
        found, chance = max(self.squared, 0.0), self._chance(more)  # luck below 0 is no evidence of more than 0
        if chance(1.0, found)[0] >= 1 - level:
            return 1.0
        return _crossing(lambda t: chance(t, found)[0] >= 1 - level, found, 1.0)

    def _chance(self, more: float) -> Callable[[float, float], tuple[float, float]]:
        """A function of (t, u): the probabilities of U <= u and of U >= u when the true squared error is t."""
        shares, n = self.shares, self.n * more
        rate = (self.ones + 2 * self.outputs) / (self.counts + 2)  # drawn towards the output where little was seen
        noise = rate * (1 - rate) / (self.counts * more)
        seen = np.maximum(_terms(self.outputs, self.counts, self.ones)[1], 0.0)
        total = float(shares @ seen)
        shapes = [np.ones_like(seen), seen / total] if total > 0 else [np.ones_like(seen)]

        def chance(t: float, u: float) -> tuple[float, float]:
            tails = []
            for shape in shapes:
                square = t * shape  # e_j^2: the weighted sum is t
                variance = float(shares**2 @ (4 * square * noise + 2 * noise**2))
                variance += max(float(shares @ square**2) - t**2, 0.0) / n  # from the frequencies of the outputs
                third = float(shares**3 @ (24 * square * noise**2 + 8 * noise**3))
                tails.append(_tails(u - t, variance, third))
            return max(low for low, _ in tails), max(high for _, high in tails)

        return chance


def squared_errors(outputs: Float64s, counts: Float64s, ones: Float64s) -> tuple[Float64s, Float64s]:
    """The plug-in and the debiased squared error over the last axis; outputs that were not seen count nothing."""
    shares = counts / counts.sum(axis=-1, keepdims=True)
    plugin, debiased = _terms(outputs, counts, ones)
    return (shares * plugin).sum(axis=-1), (shares * debiased).sum(axis=-1)


def _terms(outputs: Float64s, counts: Float64s, ones: Float64s) -> tuple[Float64s, Float64s]:
    rate = ones / np.maximum(counts, 1.0)
    gap = (outputs - rate) ** 2
    return gap, gap - np.where(counts > 1, rate * (1 - rate) / np.maximum(counts - 1, 1.0), 0.0)


def _tails(distance: float, variance: float, third: float) -> tuple[float, float]:
    """P(X <= distance), P(X >= distance) for X of mean 0 with the given second and third cumulants.

    Above the mean: of a shifted gamma variable, whose upper tail is as heavy as that of a sum of squares. Below it: of
    a normal variable, whose lower tail is heavier, so that what is promised errs on the safe side.
    """
    from scipy.special import gammaincc, ndtr

    if variance <= 0:
        return float(distance >= 0), float(distance <= 0)
    standard = distance / np.sqrt(variance)
    skewness = third / variance**1.5
    below = float(ndtr(standard))
    if skewness < 1e-4:
        return below, 1 - below
    shape = 4 / skewness**2
    return below, float(gammaincc(shape, max(shape + np.sqrt(shape) * standard, 0.0)))


def _crossing(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Where a condition that holds at `low` ceases to hold before `high`, by bisection."""
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high
