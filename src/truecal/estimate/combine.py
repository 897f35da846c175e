"""Many numbers as one: means of powers over bins and over datasets."""

import numpy as np

from truecal.types import Float64s


def power_mean(gaps: Float64s, share: Float64s, norm: float) -> Float64s:
    """sum_k share_k |gap_k|^p, or the maximum of |gap_k| over bins that hold data for p = inf; over the last axis."""
    absolute = np.abs(gaps)
    if norm == np.inf:
        return np.where(share > 0, absolute, 0.0).max(axis=-1)
    return (share * (absolute if norm == 1 else absolute**norm)).sum(axis=-1)


def combined(powers: Float64s, shares: Float64s | None, norm: float) -> Float64s:
    """One power over the datasets of a lens, along the first axis: their weighted mean, or the largest for p = inf.

    >>> combined(np.array([0.1, 0.3]), np.array([0.5, 0.5]), 1)
    array(0.2)
    """
    if shares is None:
        return np.asarray(powers[0])
    if norm == np.inf:
        return np.asarray(powers[shares > 0].max(axis=0))
    return np.asarray(np.tensordot(shares, powers, axes=1))


def root(power: Float64s, norm: float) -> Float64s:
    """From the signed p-th power to an error: negative estimates show as 0."""
    positive = np.maximum(power, 0.0)
    return positive if norm in (1, np.inf) else positive ** (1 / norm)
