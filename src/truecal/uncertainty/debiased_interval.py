"""The analytic interval of the debiased binned error, valid near zero and away from it."""

import numpy as np

from truecal import estimate as estimators
from truecal import options
from truecal.errors import InputError
from truecal.estimate import Interval
from truecal.profile import Profile, check_profile


def debiased_interval(profile: Profile, *, bins: int = 15, level: float = 0.95) -> Interval:
    r"""Confidence interval for the binned root-mean-square error, equal-mass bins, without resampling.

    Sun, Chaudhari, Barnett and Dobriban (2024) show that the debiased square is asymptotically normal, but at different rates for
    a calibrated and a miscalibrated model. Here both regimes are one formula, derived as follows. In bin k let r = y - c have
    mean g_k and variance v_k, p_k = n_k / n, and X = sum_k p_k (mean(r)_k^2 - s_k^2 / n_k), which is unbiased for
    theta = sum_k p_k g_k^2 given the bins. With mean(r)_k = g_k + e_k, Var(e_k) = v_k / n_k,

        mean(r)_k^2 - s_k^2 / n_k = g_k^2 + 2 g_k e_k + (e_k^2 - s_k^2 / n_k),

    whose last two terms are uncorrelated for symmetric noise: Var(X) = 2 sum_k p_k^2 (v_k / n_k)^2 + 4 sum_k p_k^2 g_k^2 v_k / n_k,
    plus (sum_k p_k g_k^4 - theta^2) / n because the scores are a sample. The first sum is what is left at theta = 0 (a centred
    chi-square per bin); the others grow with theta. Writing them as b theta + e theta^2 at the observed shape of the gaps and
    inverting (X - theta)^2 <= z^2 (a + b theta + e theta^2) covers both regimes. In `a`, v_k is the larger of the observed
    variance and that under calibration, mean c (1 - c), so that a bin without a miss is not taken for noiseless.

    The target is the error of these *bins*, where they were cut: differences within a bin are averaged out, so it is at most the
    true error.
    A batch gives arrays.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(2000)
    >>> found = debiased_interval(tc.Profile.from_arrays(c, rng.random(2000) < c**1.5))  # true error 0.1155
    >>> round(found.low, 3), round(found.high, 3)
    (0.096, 0.135)
    """
    options.bins(bins)
    options.level(level)
    check_profile(profile)
    profile.refuse_dependent("use tc.measure(preds), which counts clusters")
    low, high = debiased_pivot(profile, bins).interval(level)
    high = np.minimum(high, 1.0)
    if profile.single:
        return Interval(float(low[0]), float(high[0]), level, f"debiased, {bins} bins")
    return Interval(low, high, level, f"debiased, {bins} bins")


def debiased_pivot(profile: Profile, bins: int) -> estimators.Pivot:
    """X, and its variance at any theta, of every dataset."""
    cut = profile.mass_cut(max(1, min(bins, int(profile.size.min() // 2))))
    weight, score, one, square, product = (
        np.diff(profile.sums(name, cut), axis=1) for name in ("w", "c", "y", "cc", "cy")
    )
    n = profile.size[:, None]
    count = weight * n / profile.total[:, None]
    usable = count >= 2
    safe, several = np.where(weight > 0, weight, 1.0), np.where(usable, count, 2.0)
    gap = np.where(usable, (one - score) / safe, 0.0)
    spread = np.maximum((one - 2 * product + square) / safe - gap**2, 0.0) / (several - 1)  # of mean(r)
    chance = np.maximum(score - square, 0.0) / safe / several
    p = np.where(usable, count, 0.0)
    total = p.sum(axis=1, keepdims=True)
    if not (total > 0).all():
        raise InputError("every bin holds a single row: use fewer bins, or more rows")
    p = p / total
    power, fourth = (p * gap**2).sum(axis=1), (p * gap**4).sum(axis=1)
    floor = 2 * (p**2 * np.maximum(spread, chance) ** 2).sum(axis=1)
    flat = power <= 0
    here = np.where(flat, 1.0, power)
    noise = 4 * np.where(flat, (p**2 * chance).sum(axis=1), (p**2 * gap**2 * spread).sum(axis=1) / here)
    sampled = np.where(flat, 0.0, np.maximum(fourth / here**2 - 1, 0.0) / n[:, 0])
    return estimators.Pivot((p * (gap**2 - spread)).sum(axis=1), floor, noise, sampled)
