"""What noise adds to a mean absolute gap: |gap + noise| is larger than |gap| on average."""

import numpy as np

from truecal.estimators.bins import Bins
from truecal.special import positive
from truecal.types import Float64s


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
