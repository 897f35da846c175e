"""The two classical tests of calibration: Spiegelhalter's z and Hosmer and Lemeshow's chi-square."""

import numpy as np

from truecal import estimate as estimators
from truecal.estimate import resampling
from truecal.profile import Profile, check_profile
from truecal.types import Float64s
from truecal.uncertainty.tests.verdict import Verdict, redraw_test, verdict_of


def spiegelhalter(profile: Profile, *, resamples: int | None = 999, rng: int | np.random.Generator = 0) -> Verdict:
    r"""Spiegelhalter's test (1986), two-sided: is the Brier score what it should be for a calibrated model?

    z = sum (y - c)(1 - 2c) / sqrt(sum (1 - 2c)^2 c (1 - c)). Positive: the Brier score is worse than the scores promise. Blind to
    errors at scores near 1/2, and to errors that cancel in the sum.

    p-values by redrawing outcomes from the scores, which is right for the skewed scores of a good classifier as well;
    resamples=None uses the normal distribution.

    >>> import truecal as tc
    >>> profile = tc.Profile.from_arrays([0.9] * 50, [1] * 35 + [0] * 15)  # 15 misses where 5 are expected
    >>> round(spiegelhalter(profile).statistic, 3), spiegelhalter(profile).p_value
    (4.714, 0.001)
    """
    check_profile(profile)
    method = "Spiegelhalter's test"
    verdict = _signed(profile, _z)
    if resamples is None:
        profile.refuse_dependent("the textbook distribution is wrong for them: leave out resamples=None")
        from scipy.special import ndtr

        p = np.maximum(2 * ndtr(-np.abs(verdict)), np.finfo(float).tiny)
    else:

        def size(cells: Profile) -> Float64s:
            return np.abs(_z(cells))

        p = np.atleast_1d(redraw_test(profile, size, method=method, resamples=resamples, rng=rng).p_value)
    return verdict_of(profile, verdict, p, method)


def hosmer_lemeshow(
    profile: Profile, *, bins: int = 10, resamples: int | None = 999, rng: int | np.random.Generator = 0
) -> Verdict:
    r"""Hosmer and Lemeshow's test (1980) on bins of equal mass: H = sum_k (O_k - E_k)^2 / (E_k (1 - E_k / n_k)).

    O_k ones and E_k = sum of scores in bin k. The scores were not fitted to these outcomes, so under calibration H is close to
    chi-square with as many degrees of freedom as there are bins (not bins - 2, which is right only for a logistic regression
    judged on its own training rows). p-values by redrawing outcomes from the scores; resamples=None uses the chi-square.

    >>> import truecal as tc
    >>> profile = tc.Profile.from_arrays([0.2] * 20 + [0.7] * 20, [1] * 8 + [0] * 12 + [1] * 14 + [0] * 6)
    >>> verdict = hosmer_lemeshow(profile, bins=2, resamples=None)  # (8 - 4)^2 / 3.2 + 0
    >>> round(verdict.statistic, 6), round(verdict.p_value, 4)
    (5.0, 0.0821)
    """
    check_profile(profile)
    estimators.Binning(bins, "mass").check()
    method = f"Hosmer-Lemeshow test, {bins} bins"
    if resamples is not None:
        return redraw_test(profile, _chi_square(bins), method=method, resamples=resamples, rng=rng)
    profile.refuse_dependent("the textbook distribution is wrong for them: leave out resamples=None")
    from scipy.special import chdtrc

    found = _signed(profile, _chi_square(bins))
    freedom = np.empty(profile.batch)
    for place, part in resampling.alike(profile):
        freedom[place] = len(_starts(resampling.collapse(part), bins))
    p = np.maximum(chdtrc(freedom, found), np.finfo(float).tiny)
    return verdict_of(profile, found, p, method)


def _signed(profile: Profile, statistic: resampling.Statistic) -> Float64s:
    return np.concatenate([statistic(resampling.collapse(part)) for _, part in resampling.alike(profile)])


def _z(cells: Profile) -> Float64s:
    assert cells.weights is not None
    count, score = cells.weights[0], cells.scores[0].astype(np.float64)
    slope = 1 - 2 * score
    deviation = float(np.sqrt((count * slope**2 * score * (1 - score)).sum()))
    sums = ((cells.outcomes - score) * count * slope).sum(axis=1)
    if deviation > 0:
        return sums / deviation
    # scores of 0, 1/2 and 1 only: a miss at 0 or 1 refutes them, and at 1/2 the test sees nothing
    return np.where(np.abs(sums) > 1e-12, np.inf, 0.0)


def _starts(cells: Profile, bins: int) -> np.ndarray:
    """First cell of every bin that holds data."""
    ruler = Profile(cells.scores, cells.outcomes[:1], cells.weights)
    return np.unique(ruler.mass_cut(bins).below[0])[:-1]


def _chi_square(bins: int) -> resampling.Statistic:
    def statistic(cells: Profile) -> Float64s:
        assert cells.weights is not None
        start = _starts(cells, bins)
        count = np.add.reduceat(cells.weights[0], start)
        expected = np.add.reduceat(cells.weights[0] * cells.scores[0], start)
        miss = np.add.reduceat((cells.outcomes - cells.scores) * cells.weights, start, axis=1)
        variance = expected * (1 - expected / count)
        certain = variance <= 1e-12 * count
        terms = miss**2 / np.where(certain, 1.0, variance)
        # a bin of scores 0 or 1 allows no miss at all
        return np.where(certain, np.where(np.abs(miss) > 1e-9, np.inf, 0.0), terms).sum(axis=1)

    return statistic
