"""Intervals and tests of any data: bootstrap, the debiased interval, and `below`."""

from __future__ import annotations

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.estimators.base import METHODS, Bootstrap, ErrorFunction, Estimator, Method, as_estimator, resample_rows
from truecal.estimators.bootstrap import (
    resample_units,
    sample_sums,
    sign_flips,
)
from truecal.estimators.estimate import Interval
from truecal.estimators.rank_series.clusters import ClusteredSeries
from truecal.estimators.rank_series.fit import fit_series
from truecal.estimators.rank_series.interval import Pivot, series_pivot
from truecal.inference.tests import Verdict, tested_profile, verdict_of
from truecal.lenses.lens import Lens, check_lens
from truecal.lenses.one_probability import default_lens
from truecal.predictions.arrays import takes_arrays, takes_arrays_second
from truecal.predictions.predictions import Predictions, check_predictions
from truecal.profile.profile import Profile, check_profile
from truecal.resampling import cells
from truecal.resampling.units import Units
from truecal.special import positive

# ----------------------------------------------------------------------------------------------------
# The bootstrap of any data: rows, whole clusters or runs in time, for one dataset or all datasets of a lens together


@takes_arrays_second
def bootstrap(
    estimator: Estimator | ErrorFunction,
    data: Profile | Predictions,
    *,
    lens: Lens | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    method: Method = "percentile",
    blocks: int | None = None,
    rng: int | np.random.Generator = 0,
) -> Bootstrap:
    """Resample a dataset and estimate the error of every resample.

    Parameters
    ----------
    estimator : Estimator or callable
        The estimator.
    data : Profile or Predictions
        Independent rows; or Predictions, whose clusters are drawn as whole; also labels and probabilities,
        `bootstrap(estimator, y_true, y_prob)`.
    lens : Lens, default None
        What of Predictions is judged, as in :func:`calibration_error`.
    resamples : int, default 1000
        Number of resamples.
    level : float, default 0.95
        Level of the interval.
    method : {"percentile", "basic", "bca"}, default "percentile"
        How the interval follows from the resamples; "bca" needs independent rows and one dataset.
    blocks : int, default None
        For Predictions in the order of time, the length of runs to draw.
    rng : int or numpy.random.Generator, default 0
        Seed or generator of the resamples.

    Returns
    -------
    Bootstrap
        The resampled distribution, whose `interval(level, method)` can be asked for without resampling again.

    Raises
    ------
    InputError
        A lens or blocks are given with a Profile, or "bca" with units.

    Notes
    -----
    Rows are never sorted again: a resample is a set of counts on the distinct scores (more than 128: on cells of neighbouring
    scores), and for estimators of fixed bins a set of counts of zeros and ones in each bin, whose edges stay. With importance
    weights a resample has Kish's effective number of rows.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(1000)
    >>> profile = tc.profile.Profile.from_arrays(c, rng.random(1000) < c**1.5)  # true mean absolute error 0.1
    >>> resampled = tc.inference.bootstrap(tc.BinnedECE(bins=15, norm=1), profile)
    >>> 0.1 in resampled.interval(), resampled.value in resampled.interval(0.5)
    (True, True)
    """
    estimator = as_estimator(estimator)
    check_predictions(data, Profile, name="data")
    check_lens(lens)
    options.resamples(resamples)
    options.level(level)
    options.choice(method, METHODS, "method")
    generator = options.generator(rng)
    if isinstance(data, Profile):
        if lens is not None or blocks is not None:
            raise InputError("lens and blocks need Predictions: a Profile does not record which row is which")
        cells.refuse_batch(data)
        data.refuse_dependent("pass the Predictions, whose clusters are drawn as whole")
        return resample_rows(estimator, data, resamples=resamples, level=level, rng=generator, method=method)
    lens = default_lens(data) if lens is None else lens
    shares = lens.shares(data)
    if shares is None and blocks is None:
        sample = lens.sample(data)
        if sample.independent:
            return resample_rows(
                estimator, sample.profile, resamples=resamples, level=level, rng=generator, method=method
            )
    if method == "bca":
        raise InputError("bca needs independent rows and one dataset; use method='basic'")
    units = Units.of(next(lens.samples(data)), generator, blocks=blocks)
    counts = units.draws(resamples, generator)
    flips = sign_flips(units, 1 if shares is None else len(shares), generator)
    parts = sample_sums(estimator, lens.samples(data), units, flips)
    return resample_units(estimator, parts, shares, units, counts, level, generator, flips=flips, method=method)


# ----------------------------------------------------------------------------------------------------
# The analytic interval of the debiased binned error, valid near zero and away from it


def debiased_interval(profile: Profile, *, bins: int = 15, level: float = 0.95) -> Interval:
    """Compute a confidence interval of the binned root-mean-square error by formula, bins of equal mass.

    Parameters
    ----------
    profile : Profile
        Independent rows of one dataset or of a batch.
    bins : int, default 15
        Number of bins; fewer where a bin would have less than two rows.
    level : float, default 0.95
        Level of the interval.

    Returns
    -------
    Interval
        Limits, arrays for a batch.

    Raises
    ------
    InputError
        Rows belong to clusters, or every bin has a single row.

    Notes
    -----
    Sun et al. show that the debiased square is asymptotically normal, but at different rates for a calibrated and a
    miscalibrated model. Here both regimes are one formula. In bin k let r = y - c have mean g_k and variance v_k,
    p_k = n_k / n, and X = sum_k p_k (mean(r)_k^2 - s_k^2 / n_k), which is unbiased for theta = sum_k p_k g_k^2 given the bins.
    With mean(r)_k = g_k + e_k, Var(e_k) = v_k / n_k,

        mean(r)_k^2 - s_k^2 / n_k = g_k^2 + 2 g_k e_k + (e_k^2 - s_k^2 / n_k),

    whose last two terms are uncorrelated for symmetric noise:
    Var(X) = 2 sum_k p_k^2 (v_k / n_k)^2 + 4 sum_k p_k^2 g_k^2 v_k / n_k, plus (sum_k p_k g_k^4 - theta^2) / n because the scores
    are a sample. The first sum remains at theta = 0 (a centred chi-square per bin); the others grow with theta. Writing them as
    b theta + e theta^2 at the observed shape of the gaps and inverting (X - theta)^2 <= z^2 (a + b theta + e theta^2) covers
    both regimes. In `a`, v_k is the larger of the observed variance and that under calibration, mean c (1 - c), so that a bin
    without an unexpected outcome is not taken for noiseless.

    The target is the error of these bins, where they were cut: differences within a bin are averaged out, so it is at most the
    true error.

    References
    ----------
    Sun, Y., Chaudhari, P., Barnett, I. J. and Dobriban, E. (2024). A confidence interval for the l2 expected calibration error.
    arXiv:2408.08998

    See Also
    --------
    DebiasedECE : The estimate.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(2000)
    >>> profile = tc.profile.Profile.from_arrays(c, rng.random(2000) < c**1.5)  # true error 0.1155
    >>> interval = tc.inference.debiased_interval(profile)
    >>> round(interval.low, 3), round(interval.high, 3)
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


def debiased_pivot(profile: Profile, bins: int) -> Pivot:
    """Compute X of :func:`debiased_interval` for every dataset, and a, b and e of its variance a + b theta + e theta^2.

    Bins are of equal mass, at most as many as give two rows each; bins with fewer are left out. Where all observed gaps are 0, b
    is 4 sum_k p_k^2 v_k / n_k under calibration and e is 0. Refuses datasets whose bins all hold a single row.
    """
    cut = profile.mass_cut(max(1, min(bins, int(profile.size.min() // 2))))
    weight, score, outcome, square, product = (
        np.diff(profile.sums(name, cut), axis=1) for name in ("w", "c", "y", "cc", "cy")
    )
    n = profile.size[:, None]
    count = weight * n / profile.total[:, None]
    usable = count >= 2
    divisor, bin_rows = positive(weight), np.where(usable, count, 2.0)
    gap = np.where(usable, (outcome - score) / divisor, 0.0)
    # variance of mean(r) in each bin: observed, and under calibration
    spread = np.maximum((outcome - 2 * product + square) / divisor - gap**2, 0.0) / (bin_rows - 1)
    chance = np.maximum(score - square, 0.0) / divisor / bin_rows
    p = np.where(usable, count, 0.0)
    total = p.sum(axis=1, keepdims=True)
    if not (total > 0).all():
        raise InputError("every bin holds a single row: use fewer bins, or more rows")
    p = p / total
    power, fourth = (p * gap**2).sum(axis=1), (p * gap**4).sum(axis=1)
    floor = 2 * (p**2 * np.maximum(spread, chance) ** 2).sum(axis=1)
    flat = power <= 0
    shape_scale = np.where(flat, 1.0, power)
    noise = 4 * np.where(flat, (p**2 * chance).sum(axis=1), (p**2 * gap**2 * spread).sum(axis=1) / shape_scale)
    sampled = np.where(flat, 0.0, np.maximum(fourth / shape_scale**2 - 1, 0.0) / n[:, 0])
    center = (p * (gap**2 - spread)).sum(axis=1)
    return Pivot(center, floor, noise, sampled, center)


# ----------------------------------------------------------------------------------------------------
# The test of equivalence: whether the error is below a threshold


@takes_arrays
def below(data: Profile | Predictions, threshold: float, *, lens: Lens | None = None) -> Verdict:
    r"""Test whether the root-mean-square calibration error is at least a threshold.

    Parameters
    ----------
    data : Profile or Predictions
        What is tested; also labels and probabilities, `below(y_true, y_prob, threshold=0.05)`. Clusters of Predictions are
        taken into account.
    threshold : float
        The error that the hypothesis states, strictly between 0 and 1.
    lens : Lens, default None
        What of Predictions is judged, as in :func:`calibration_error`.

    Returns
    -------
    Verdict
        A small p-value is evidence that the error is below the threshold.

    Raises
    ------
    InputError
        The threshold is out of range, a lens is given with a Profile, or several classes with clusters.

    Notes
    -----
    A test that finds no miscalibration proves nothing; this one does (an equivalence test). With X the rank-series estimate
    of the squared error with all its terms, and Var(X) = a + b t + e t^2 at a true t,

    .. math:: p = \Phi\big( (X - t) / \sqrt{Var(X)} \big), \quad t = \mathrm{threshold}^2.

    p <= alpha exactly when the one-sided upper limit at 1 - alpha is below the threshold. The statistic is the standardised
    difference.

    See Also
    --------
    verify : A verdict about a tolerance, with exact limits where rows are few.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(20_000)
    >>> profile = tc.profile.Profile.from_arrays(c, rng.random(20_000) < c)
    >>> tc.inference.below(profile, 0.05).p_value < 0.001, tc.inference.below(profile, 0.002).p_value > 0.05
    (True, True)
    """
    options.between(threshold, "threshold", 0, 1)
    threshold = float(threshold)  # a longdouble has 80 bits, which special functions do not accept
    profile = tested_profile(data, lens)
    pivot = series_pivot(next(fit_series(profile))) if profile.units is None else ClusteredSeries.of(profile).pivot
    p, z = pivot.p_value(threshold), pivot.z_score(threshold)
    hypothesis = f"the error is at least {threshold:g}"
    return verdict_of(profile, z, p, "rank-series test of equivalence", hypothesis)
