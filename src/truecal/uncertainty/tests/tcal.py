"""T-Cal: the debiased binned error at many scales at once."""

import numpy as np

from truecal.profile import Profile
from truecal.types import Float64s
from truecal.uncertainty.tests.verdict import Verdict, redraw_test

_MOST_BINS = 4096


def tcal_test(profile: Profile, *, resamples: int = 999, rng: int | np.random.Generator = 0) -> Verdict:
    r"""Multi-scale test of calibration in the manner of T-Cal (Lee, Huang, Hassani and Dobriban 2023).

    With R_k = sum of (y - c) in bin k, the debiased statistic at b bins is T_b = sum_k (R_k^2 - V_k) / n_k, where
    V_k = sum c (1 - c) is the variance of R_k under calibration; its deviation is sigma_b = sqrt(2 sum_k V_k^2 / n_k^2). The
    statistic is max over b = 1, 2, 4, ..., up to sqrt(n) bins of T_b / sigma_b. Deviations from the paper: equal-mass bins, V_k
    known instead of estimated, and the critical value of the maximum by resampling instead of a Bonferroni correction.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(2000)
    >>> tcal_test(tc.Profile.from_arrays(c, rng.random(2000) < c)).p_value > 0.05
    True
    >>> tcal_test(tc.Profile.from_arrays(c, rng.random(2000) < c**1.5)).p_value
    0.001
    """
    return redraw_test(profile, _largest, method="T-Cal multi-scale test", resamples=resamples, rng=rng)


def scales(n: float) -> list[int]:
    """Numbers of bins: the powers of two up to sqrt(n), and to the number of cells that redraws keep apart."""
    return [2**j for j in range(int(np.log2(np.clip(np.sqrt(n), 1.0, _MOST_BINS))) + 1)]


def _largest(cells: Profile) -> Float64s:
    assert cells.weights is not None
    count, score = cells.weights[0], cells.scores[0].astype(np.float64)
    residual = (cells.outcomes - cells.scores) * cells.weights
    chance = count * score * (1 - score)
    ruler = Profile(cells.scores, cells.outcomes[:1], cells.weights)
    best = np.full(len(residual), -np.inf)
    for bins in scales(float(count.sum())):
        start = np.unique(ruler.mass_cut(bins).below[0])[:-1]
        size, variance = np.add.reduceat(count, start), np.add.reduceat(chance, start)
        deviation = np.sqrt(2 * np.sum((variance / size) ** 2))
        excess = ((np.add.reduceat(residual, start, axis=1) ** 2 - variance) / size).sum(axis=1)
        # no variance at all: scores are 0 and 1 only, and any miss refutes them
        best = np.maximum(best, excess / deviation if deviation > 0 else np.where(excess > 0, np.inf, 0.0))
    return best
