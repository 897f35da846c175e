"""Limits of a mean absolute gap, from the sign of the gap with every row left out.

E|m| is the largest E[s (y - c)] over functions s with values in [-1, 1], reached at s = sign m. With s_i from a fit that did
not see row i, V = mean s_i (y_i - c_i) has an expectation of at most E|m|, and exactly 0 for a calibrated model, whatever the
fit. The sign itself would make V skewed where the gap is nothing but noise: mostly a little positive, rarely far below 0. The lower
limit therefore takes a sign that fades: the gap over two standard deviations of the fit (one, of a series with more terms than it
needs), cut at -1 and 1. There V is a quadratic form of the noise, whose variance is twice that of a sum. The upper limit takes the
sign, which a fit may miss where the gap is small. What that is expected to cost, the mean of 2 |m| Phi(-|m| / sd), is added.

Leaving out row i needs no second fit: m_{-i}(c_i) = (m - h r_i) / (1 - h), with h the leverage of the row and r_i = y_i - c_i; so
the rows of a cell have one sign for its ones and one for its zeros.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist

import numpy as np

from truecal.estimators.bins import Bins
from truecal.types import Float64s

_ROUNDING = 1e-9  # of a gap
_TOGETHER = 2.0  # diag(p) - pp' is at most twice its diagonal
_LEAST_OTHERS = 0.05  # share of a fit that other rows make up, at least


@dataclass(frozen=True, eq=False)
class Signs:
    """Cells (or bins) of rows that share a score and a fitted gap, shape (m, G)."""

    rows: Float64s
    ones: Float64s
    score: Float64s
    gap: Float64s
    leverage: Float64s  # how much a row weighs in the fit of its own cell
    fades: float = 2.0  # standard deviations of the fit within which a sign is not taken as known

    @classmethod
    def of_bins(cls, bins: Bins, alike: float = 1.0) -> "Signs":
        """The bins of a histogram; outcomes that are `alike` count as so many times fewer rows."""
        rows = bins.count
        score = np.clip(bins.score_sum / bins.safe, 0.0, 1.0)
        leverage = np.minimum(alike / np.where(rows > 0, rows, 1.0), 1.0)
        return cls(rows, rows * bins.rate, score, bins.gap, leverage)

    def sums(self) -> "SignSums":
        """What limits are made of, for every dataset."""
        missed = np.vecdot(self.rows, self._missed()) / self.rows.sum(axis=1)
        return SignSums(*self.left_out(fades=True), *self.left_out(fades=False), missed)

    def left_out(self, *, fades: bool) -> tuple[Float64s, Float64s]:
        """V, the mean of s_i r_i over all rows, with signs that fade or do not, and its variance."""
        n = self.rows.sum(axis=1)
        total, square = np.zeros(len(self.rows)), np.zeros(len(self.rows))
        for rows, residual, gap in self._without_own_row:
            sign = np.where(np.abs(gap) > _ROUNDING, np.sign(gap), 0.0)
            squares = residual**2
            if fades:
                sign = self._faded(gap, sign)
                squares = np.where(np.abs(sign) < 1, 2.0, 1.0) * squares * sign**2
            total += np.vecdot(rows, sign * residual)
            square += np.vecdot(rows, squares)
        return total / n, np.maximum(square / n - (total / n) ** 2, 0.0) / n

    @cached_property
    def _without_own_row(self) -> tuple[tuple[Float64s, Float64s, Float64s], ...]:
        """Rows, residual and the gap that the others find, for the ones and for the zeros of every cell."""
        others = np.maximum(1 - self.leverage, _LEAST_OTHERS)
        kinds = (self.ones, 1 - self.score), (self.rows - self.ones, -self.score)
        return tuple((rows, residual, (self.gap - self.leverage * residual) / others) for rows, residual in kinds)

    def _faded(self, gap: Float64s, sign: Float64s) -> Float64s:
        """Signs that grow from -1 to 1 where the gap is within reach of the noise of the fit."""
        known = self._reach > 0
        return np.where(known, np.clip(gap / np.where(known, self._reach, 1.0), -1.0, 1.0), sign)

    @cached_property
    def _reach(self) -> Float64s:
        return self.fades * np.sqrt(self.leverage * self._variance(shrunk=True))

    def _missed(self) -> Float64s:
        """What a wrong sign is expected to cost in every cell: 2 |m| Phi(-|m| / sd)."""
        from scipy.special import ndtr

        deviation = np.sqrt(self.leverage * self._variance(shrunk=False))
        size = np.abs(self.gap)
        ratio = size / np.where(deviation > 0, deviation, 1.0)
        return np.where(deviation > 0, 2 * size * ndtr(-ratio), 0.0)

    def _variance(self, *, shrunk: bool) -> Float64s:
        """Of an outcome in every cell; shrunk to that of half a one and half a zero more, for each row's worth of the fit."""
        rate = np.clip(self.score + self.gap, 0.0, 1.0)
        if shrunk:
            rate = (rate + self.leverage / 2) / (1 + self.leverage)
        return rate * (1 - rate)


@dataclass(frozen=True, eq=False)
class SignSums:
    """V with fading signs and with signs, their variances, and what missed signs cost; one of each per dataset."""

    low: Float64s
    low_variance: Float64s
    best: Float64s
    best_variance: Float64s
    missed: Float64s

    def times(self, alike: float) -> "SignSums":
        """The same with variances so many times as large."""
        return replace(self, low_variance=alike * self.low_variance, best_variance=alike * self.best_variance)

    @classmethod
    def together(cls, parts: "Sequence[SignSums]", shares: Float64s) -> "SignSums":
        """Of several datasets by their shares. With one label per row classes vary together at most twice as much."""
        alike = _TOGETHER if len(shares) > 1 else 1.0

        def summed(name: str, weight: Float64s) -> Float64s:
            return np.array([float(weight @ np.concatenate([getattr(part, name) for part in parts]))])

        return cls(
            summed("low", shares),
            summed("low_variance", alike * shares**2),
            summed("best", shares),
            summed("best_variance", alike * shares**2),
            summed("missed", shares),
        )

    def limits(self, level: float) -> tuple[Float64s, Float64s]:
        """Lower and upper limit of E|m|, without regard to a point estimate."""
        z = NormalDist().inv_cdf(0.5 + level / 2)
        low = np.maximum(self.low - z * np.sqrt(self.low_variance), 0.0)
        return low, np.maximum(self.best, self.low) + z * np.sqrt(self.best_variance) + self.missed
