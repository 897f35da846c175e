"""Bounds of a mean absolute gap E|m| from leave-one-out signs of the fitted gap.

E|m| is the largest E[s (y - c)] over functions s of the score with values in [-1, 1], reached at s = sign(m). With s_i
from a fit without row i, V = mean s_i (y_i - c_i) has a mean of at most E|m|, and 0 for a calibrated model. The lower
bound uses signs that fade linearly within some standard deviations of the fit, which makes V a quadratic form of the
noise there, of twice the variance. The upper bound uses plain signs and adds the expected cost of wrong ones,
2 |m| Phi(-|m| / sd). Fits without row i come from (7) of docs/methods/rank-series.md, so the rows of a cell have one sign
for its ones and one for its zeros.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist

import numpy as np

from truecal.estimators.bins import Bins
from truecal.special import positive
from truecal.types import Float64s

_GAP_ROUNDING = 1e-9  # derived: rounding of a gap; smaller ones have no sign
_CLASS_DESIGN_EFFECT = 2.0  # derived: diag(p) - pp' is at most twice its diagonal
_MIN_OTHERS = 0.05  # derived: 1 less the largest leverage of the rank series


@dataclass(frozen=True, eq=False)
class SignCells:
    """Cells (or bins) of rows that share a score and a fitted gap, shape (m, G)."""

    counts: Float64s
    ones: Float64s
    scores: Float64s
    gap: Float64s
    leverage: Float64s  # of a row in the fit of its own cell
    fade: float = 2.0  # standard deviations of the fit within which signs fade

    @classmethod
    def of_bins(cls, bins: Bins, design_effect: float = 1.0) -> "SignCells":
        """Take the bins of a histogram, whose rows count as so many times fewer independent ones."""
        counts = bins.count
        scores = np.clip(bins.score_sum / bins.safe, 0.0, 1.0)
        leverage = np.minimum(design_effect / positive(counts), 1.0)
        return cls(counts, counts * bins.rate, scores, bins.gap, leverage)

    def bounds(self) -> "SignBounds":
        """Compute what limits of E|m| are made of, for every dataset."""
        cost = np.vecdot(self.counts, self._wrong_sign_cost()) / self.counts.sum(axis=1)
        return SignBounds(*self.mean_product(fading=True), *self.mean_product(fading=False), cost)

    def mean_product(self, *, fading: bool) -> tuple[Float64s, Float64s]:
        """Compute V, with signs that fade or do not, and its variance."""
        n = self.counts.sum(axis=1)
        total, square = np.zeros(len(self.counts)), np.zeros(len(self.counts))
        for counts, residual, gap in self._leave_one_out:
            sign = np.where(np.abs(gap) > _GAP_ROUNDING, np.sign(gap), 0.0)
            squares = residual**2
            if fading:
                sign = self._fade(gap, sign)
                squares = np.where(np.abs(sign) < 1, 2.0, 1.0) * squares * sign**2
            total += np.vecdot(counts, sign * residual)
            square += np.vecdot(counts, squares)
        return total / n, np.maximum(square / n - (total / n) ** 2, 0.0) / n

    @cached_property
    def _leave_one_out(self) -> tuple[tuple[Float64s, Float64s, Float64s], ...]:
        """Counts, residual and leave-one-out gap (7) of the ones and of the zeros of every cell."""
        others = np.maximum(1 - self.leverage, _MIN_OTHERS)
        outcomes = (self.ones, 1 - self.scores), (self.counts - self.ones, -self.scores)
        return tuple(
            (counts, residual, (self.gap - self.leverage * residual) / others) for counts, residual in outcomes
        )

    def _fade(self, gap: Float64s, sign: Float64s) -> Float64s:
        """Replace signs by the gap over `fade` standard deviations of the fit, clipped to [-1, 1]."""
        uncertain = self._fade_width > 0
        return np.where(uncertain, np.clip(gap / np.where(uncertain, self._fade_width, 1.0), -1.0, 1.0), sign)

    @cached_property
    def _fade_width(self) -> Float64s:
        rate = self._rate()
        shrunk = (rate + self.leverage / 2) / (1 + self.leverage)  # (15)
        return self.fade * np.sqrt(self.leverage * shrunk * (1 - shrunk))

    def _wrong_sign_cost(self) -> Float64s:
        """Compute the expected cost of a wrong sign in every cell."""
        from scipy.special import ndtr

        rate = self._rate()
        deviation = np.sqrt(self.leverage * (rate * (1 - rate)))
        size = np.abs(self.gap)
        ratio = size / positive(deviation)
        return np.where(deviation > 0, 2 * size * ndtr(-ratio), 0.0)

    def _rate(self) -> Float64s:
        return np.clip(self.scores + self.gap, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class SignBounds:
    """V with fading and with plain signs, their variances, and the expected cost of wrong signs, shape (m,)."""

    fading: Float64s
    fading_variance: Float64s
    plain: Float64s
    plain_variance: Float64s
    cost: Float64s

    def scale_variance(self, design_effect: float) -> "SignBounds":
        """Multiply the variances by a design effect."""
        return replace(
            self,
            fading_variance=design_effect * self.fading_variance,
            plain_variance=design_effect * self.plain_variance,
        )

    @classmethod
    def combine(cls, parts: "Sequence[SignBounds]", shares: Float64s) -> "SignBounds":
        """Average datasets by their shares; classes of one label per row vary together at most twice as much."""
        variance_shares = (_CLASS_DESIGN_EFFECT if len(shares) > 1 else 1.0) * shares**2

        def total(name: str, weights: Float64s) -> Float64s:
            return np.array([float(weights @ np.concatenate([getattr(part, name) for part in parts]))])

        return cls(
            total("fading", shares),
            total("fading_variance", variance_shares),
            total("plain", shares),
            total("plain_variance", variance_shares),
            total("cost", shares),
        )

    def limits(self, level: float) -> tuple[Float64s, Float64s]:
        """Compute the lower and the upper limit of E|m|, without regard to a point estimate."""
        z = NormalDist().inv_cdf(0.5 + level / 2)
        lower = np.maximum(self.fading - z * np.sqrt(self.fading_variance), 0.0)
        return lower, np.maximum(self.plain, self.fading) + z * np.sqrt(self.plain_variance) + self.cost
