"""Bins: what a binned estimator saw, kept whole (counts and sums, not only means)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from truecal.profile import Cut, Profile
from truecal.types import Float64s


@dataclass(frozen=True)
class Bins:
    """Counts and sums of each bin, shape (batch, b); empty bins have count 0.

    For a single dataset the properties below are one-dimensional and leave out empty bins.
    """

    weight: Float64s  # sum of weights in each bin
    score_sum: Float64s
    outcome_sum: Float64s
    count: Float64s  # sample size of each bin
    single: bool

    @classmethod
    def of(cls, profile: Profile, cut: Cut) -> "Bins":
        """The bins between consecutive cuts."""
        weight, score, outcome = (np.diff(profile.sums(name, cut), axis=1) for name in ("w", "c", "y"))
        scale = (profile.size / profile.total)[:, None]
        return cls(weight, score, outcome, weight * scale, profile.single)

    @cached_property
    def safe(self) -> Float64s:
        """Weights with 1 in place of 0, to divide by."""
        return np.where(self.weight > 0, self.weight, 1.0)

    @cached_property
    def share(self) -> Float64s:
        """Part of the data in each bin, shape (batch, b)."""
        return self.weight / self.weight.sum(axis=1, keepdims=True)

    @cached_property
    def gap(self) -> Float64s:
        """Mean outcome minus mean score, 0 for empty bins, shape (batch, b)."""
        return np.clip((self.outcome_sum - self.score_sum) / self.safe, -1.0, 1.0)  # sums may round past their bin

    @cached_property
    def rate(self) -> Float64s:
        """Mean outcome, 0 for empty bins, shape (batch, b)."""
        return np.clip(self.outcome_sum / self.safe, 0.0, 1.0)  # a sum of weights may pass its total in the last bit

    @property
    def filled(self) -> int:
        """Number of bins that are not empty (of the first dataset of a batch)."""
        return int(np.count_nonzero(self.weight[0]))

    def _shown(self, values: Float64s) -> Float64s:
        return values[0, self.weight[0] > 0] if self.single else values

    @property
    def counts(self) -> Float64s:
        """How many predictions fell into each bin."""
        return self._shown(self.count)

    @property
    def mean_score(self) -> Float64s:
        """Mean confidence of each bin."""
        return self._shown(np.clip(self.score_sum / self.safe, 0.0, 1.0))

    @property
    def mean_outcome(self) -> Float64s:
        """How often the outcome happened in each bin."""
        return self._shown(self.rate)

    def interval(self, level: float = 0.95) -> tuple[Float64s, Float64s]:
        """Clopper-Pearson interval for the outcome rate of each bin.

        >>> import truecal as tc
        >>> est = tc.BinnedECE(bins=1)(tc.Profile.from_arrays([0.5] * 10, [1] * 5 + [0] * 5))
        >>> low, high = est.bins.interval(0.95)
        >>> round(float(low[0]), 4), round(float(high[0]), 4)
        (0.1871, 0.8129)
        """
        from scipy.special import betaincinv

        n = self._shown(self.count)
        k = self.mean_outcome * n
        alpha = (1 - level) / 2
        empty: NDArray[np.bool_] = n <= 0
        low = np.where((k <= 0) | empty, 0.0, betaincinv(np.maximum(k, 1e-300), n - k + 1, alpha))
        high = np.where((k >= n) | empty, 1.0, betaincinv(k + 1, np.maximum(n - k, 1e-300), 1 - alpha))
        return low, high
