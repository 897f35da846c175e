"""The calibration error of a model with few outputs: debiased, with a lower confidence limit.

For outputs s_j seen n_j times with k_j ones, and shares w_j = n_j / n, the debiased squared error (Kumar et al. 2019,
5.2) is

    U = sum_j w_j [ (s_j - k_j / n_j)^2 - y_j (1 - y_j) / (n_j - 1) ],      y_j = k_j / n_j

An output seen once cannot be debiased; its term stays as it is, which can only raise U.

The limit comes from inverting a test. If the true squared error were t, then U has mean t, and its variance and skewness
follow from where the error sits: spread evenly over the outputs, or where it was seen. Whichever makes the observed U
more likely counts.
"""

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
    def squared(self) -> float:
        """The debiased squared error U; may be negative."""
        return float(squared_errors(self.outputs, self.counts, self.ones)[1])

    @property
    def balance(self) -> float:
        """The smallest alpha for which the outputs are alpha-well-balanced: 1/(alpha B) <= w_j <= alpha/B (definition 4.2)."""
        relative = self.shares * len(self.outputs)
        return float(max(relative.max(), 1 / relative.min()))

    def lower(self, level: float) -> float:
        """One-sided lower confidence limit of the squared error: the smallest t under which U is not improbably large."""
        low, high = 0.0, self.squared
        if self._chance(low) >= 1 - level:
            return low
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if self._chance(middle) < 1 - level else (low, middle)
        return high

    def _chance(self, t: float) -> float:
        """The probability of a U at least as large as the one found when the true squared error is t."""
        shares = self.shares
        rate = (self.ones + 2 * self.outputs) / (self.counts + 2)  # drawn towards the output where little was seen
        noise = rate * (1 - rate) / self.counts
        seen = np.maximum(_terms(self.outputs, self.counts, self.ones)[1], 0.0)
        total = float(shares @ seen)
        chances = []
        for shape in [np.ones_like(seen), seen / total] if total > 0 else [np.ones_like(seen)]:
            square = t * shape  # e_j^2: the weighted sum is t
            variance = float(shares**2 @ (4 * square * noise + 2 * noise**2))
            variance += max(float(shares @ square**2) - t**2, 0.0) / self.n  # from the frequencies of the outputs
            third = float(shares**3 @ (24 * square * noise**2 + 8 * noise**3))
            chances.append(_upper_tail(self.squared - t, variance, third))
        return max(chances)


def squared_errors(outputs: Float64s, counts: Float64s, ones: Float64s) -> tuple[Float64s, Float64s]:
    """The plug-in and the debiased squared error over the last axis; outputs that were not seen count nothing."""
    shares = counts / counts.sum(axis=-1, keepdims=True)
    plugin, debiased = _terms(outputs, counts, ones)
    return (shares * plugin).sum(axis=-1), (shares * debiased).sum(axis=-1)


def _terms(outputs: Float64s, counts: Float64s, ones: Float64s) -> tuple[Float64s, Float64s]:
    rate = ones / np.maximum(counts, 1.0)
    gap = (outputs - rate) ** 2
    return gap, gap - rate * (1 - rate) / np.maximum(counts - 1, 1.0)


def _upper_tail(distance: float, variance: float, third: float) -> float:
    """P(X >= distance) for X of mean 0 with the given second and third cumulants.

    Of a shifted gamma variable, whose upper tail is as heavy as that of a sum of squares.
    """
    from scipy.special import gammaincc, ndtr

    if variance <= 0:
        return float(distance <= 0)
    standard = distance / np.sqrt(variance)
    skewness = third / variance**1.5
    if skewness < 1e-4:
        return 1 - float(ndtr(standard))
    shape = 4 / skewness**2
    return float(gammaincc(shape, max(shape + np.sqrt(shape) * standard, 0.0)))
