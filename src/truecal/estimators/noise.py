"""What noise does to a mean absolute gap: the bias of |gap + noise|, and bounds from leave-one-out signs.

E|m| is the largest E[s (y - c)] over functions s of the score with values in [-1, 1], reached at s = sign(m). With s_i
from the gap of a bin without row i, V = mean s_i (y_i - c_i) has a mean of at most E|m|, and 0 for a calibrated model. The
lower bound uses signs that fade linearly within some standard deviations of the gap, which makes V a quadratic form of the
noise there, of twice the variance. The upper bound uses plain signs and adds the expected cost of wrong ones,
2 |m| Phi(-|m| / sd).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from truecal.estimators.bins import Bins
from truecal.special import positive
from truecal.types import Float64s

_GAP_ROUNDING = 1e-9  # derived: rounding of a gap; smaller ones have no sign
_CLASS_DESIGN_EFFECT = 2.0  # derived: diag(p) - pp' is at most twice its diagonal
_MIN_OTHERS = 0.05  # derived: 1 less the largest leverage of the rank series
_FADE = 2.0  # standard deviations of a gap within which its sign fades


def folded_mean(gap: Float64s, variance: Float64s) -> Float64s:
    """E|gap + noise| for normal noise of the given variance: the mean of a folded normal."""
    from scipy.special import ndtr

    spread, size = np.sqrt(variance), np.abs(gap)
    noisy = spread > 0
    ratio = size / np.where(noisy, spread, 1.0)
    chance = ndtr(-ratio)
    chance *= -2
    chance += 1
    density = np.square(ratio, out=ratio)
    density /= -2
    np.exp(density, out=density)
    density *= spread * np.sqrt(2 / np.pi)
    density += size * chance
    return np.where(noisy, density, size)


def debiased_absolute(gap: Float64s, variance: Float64s) -> Float64s:
    """2 |gap| - E|gap + noise| for normal noise of the given variance."""
    return 2 * np.abs(gap) - folded_mean(gap, variance)


def absolute_cube(gap: Float64s, variance: Float64s) -> Float64s:
    """E|gap + noise|^3 for normal noise of variance s^2, with m = |gap|.

    s (2 s^2 + m^2) sqrt(2/pi) exp(-m^2 / 2 s^2) + (m^3 + 3 m s^2) (1 - 2 Phi(-m/s))
    """
    from scipy.special import ndtr

    m, s = np.abs(gap), np.sqrt(variance)
    noisy = s > 0
    ratio = m / np.where(noisy, s, 1.0)
    normal = s * (2 * s**2 + m**2) * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2)
    return np.where(noisy, normal + (m**3 + 3 * m * s**2) * (1 - 2 * ndtr(-ratio)), m**3)


def debiased_cube(gap: Float64s, variance: Float64s) -> Float64s:
    """2 |gap|^3 - E|gap + noise|^3 for normal noise of the given variance."""
    return 2 * np.abs(gap) ** 3 - absolute_cube(gap, variance)


def debiased_gaps(bins: Bins, norm: float) -> Float64s:
    """|gap|^norm of every bin with the bias of its own noise removed, norm 1 or 3 (Kumar et al. 2019, appendix G.3)."""
    several = np.where(bins.count >= 2, bins.count, 2.0)
    debiased = debiased_absolute if norm == 1 else debiased_cube
    return debiased(bins.gap, bins.rate * (1 - bins.rate) / several)


def over_usable(bins: Bins, terms: Float64s, norm: float) -> tuple[Float64s, Float64s]:
    """Mean of the terms over bins of at least two rows, which can be debiased, and the share of the data in them.

    Where no bin has two rows, the plain mean of |gap|^norm.
    """
    share = np.where(bins.count >= 2, bins.share, 0.0)
    covered = share.sum(axis=1)
    mean = (share * terms).sum(axis=1) / positive(covered)
    return np.where(covered > 0, mean, (bins.share * np.abs(bins.gap) ** norm).sum(axis=1)), covered


# ----------------------------------------------------------------------------------------------------
# Bounds of a mean absolute gap from leave-one-out signs


def sign_bounds(bins: Bins, design_effect: float = 1.0) -> "SignBounds":
    """Compute what limits of E|m| are made of, for the bins of every dataset.

    Rows count as so many times fewer independent ones; they have one sign for the ones of a bin and one for its zeros.
    """
    from scipy.special import ndtr

    counts, gap = bins.count, bins.gap
    scores = np.clip(bins.score_sum / bins.safe, 0.0, 1.0)
    rate = np.clip(scores + gap, 0.0, 1.0)
    leverage = np.minimum(design_effect / positive(counts), 1.0)
    shrunk = (rate + leverage / 2) / (1 + leverage)  # (15) of docs/methods/rank-series.md
    width = _FADE * np.sqrt(leverage * shrunk * (1 - shrunk))
    ones = counts * bins.rate
    total = np.zeros((4, len(counts)))
    for number, residual in ((ones, 1 - scores), (counts - ones, -scores)):
        others = (gap - leverage * residual) / np.maximum(1 - leverage, _MIN_OTHERS)  # (7), the gap without a row
        plain = np.where(np.abs(others) > _GAP_ROUNDING, np.sign(others), 0.0)
        fading = np.where(width > 0, np.clip(others / positive(width), -1.0, 1.0), plain)
        squares = np.where(np.abs(fading) < 1, 2.0, 1.0) * residual**2 * fading**2
        total += np.vecdot(number, np.stack([fading * residual, squares, plain * residual, residual**2]))
    fading, fading_square, plain, plain_square = total / counts.sum(axis=1)
    deviation, size = np.sqrt(leverage * rate * (1 - rate)), np.abs(gap)
    cost = np.where(deviation > 0, 2 * size * ndtr(-size / positive(deviation)), 0.0)
    return SignBounds(
        fading,
        np.maximum(fading_square - fading**2, 0.0) / counts.sum(axis=1),
        plain,
        np.maximum(plain_square - plain**2, 0.0) / counts.sum(axis=1),
        np.vecdot(counts, cost) / counts.sum(axis=1),
    )


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
