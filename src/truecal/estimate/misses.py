"""Outcomes on the other side of 1/2 than their scores, and how many of them the rows at hand still allow.

Variances are taken from rates that were seen. Where scores are at 0 and 1 and no outcome, or hardly one, contradicts them, nothing
varies, and an interval made of variances ends below errors that would show no miss in one dataset out of five. The
root-mean-square error and the mean absolute one are at least |mean error|, so their upper limits are not below the exact one
(Clopper & Pearson 1934, doi:10.1093/biomet/26.4.404) of the rate of misses, less the rate that the scores expect.
"""

from statistics import NormalDist

import numpy as np

from truecal.types import Float64s

_GENEROUS = 1.02  # times the limit by Wilson and Hilferty, which is short of the exact one by less than this


def count_misses(scores: Float64s, counts: Float64s, ones: Float64s) -> Float64s:
    """Seen, expected, and rows, shape (3, m), of cells of neighbouring scores, shape (m, G)."""
    seen = np.where(scores > 0.5, counts - ones, ones)
    expected = counts * np.minimum(scores, 1 - scores)
    return np.stack([np.maximum(seen.sum(axis=1), 0.0), expected.sum(axis=1), counts.sum(axis=1)])


def at_least(high: Float64s, misses: Float64s, level: float) -> Float64s:
    """Upper limits that are not below those of the misses at a two-sided level."""
    seen, expected, rows = misses
    z = NormalDist().inv_cdf(0.5 + level / 2)
    # An approximation that needs no special function tells where the exact limit may matter.
    about = (seen + 1) * (1 - 1 / (9 * (seen + 1)) + z / (3 * np.sqrt(seen + 1))) ** 3
    open_ = _GENEROUS * about - expected > high * rows
    if not open_.any():
        return high
    from scipy.special import betaincinv

    left = np.maximum(rows - seen, 0.0)
    limit = np.where(left > 0, betaincinv(seen + 1, np.where(left > 0, left, 1.0), 0.5 + level / 2), 1.0)
    return np.where(open_, np.maximum(high, limit - expected / rows), high)


def chance_of_so_few(misses: Float64s, error: float) -> Float64s:
    """Probability of so few misses if they exceeded what the scores expect by `error` on average."""
    from scipy.special import betaincc

    seen, expected, rows = misses
    left = np.maximum(rows - seen, 0.0)
    rate = np.minimum(expected / rows + error, 1.0)
    return np.where(left > 0, betaincc(seen + 1, np.where(left > 0, left, 1.0), rate), 1.0)
