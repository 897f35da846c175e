"""The bootstrap of any data, and the test whether the error is below a threshold."""

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
from truecal.estimators.rank_series.clusters import ClusteredSeries
from truecal.estimators.rank_series.fit import fit_series
from truecal.estimators.rank_series.interval import series_pivot
from truecal.inference.tests import Verdict, tested_profile, verdict_of
from truecal.lenses.lens import Lens, check_lens
from truecal.lenses.one_probability import default_lens
from truecal.predictions.arrays import takes_arrays, takes_arrays_second
from truecal.predictions.predictions import Predictions, check_predictions
from truecal.profile.profile import Profile
from truecal.resampling import cells
from truecal.resampling.units import Units

# ----------------------------------------------------------------------------------------------------
# The bootstrap of any data: rows or whole clusters, for one dataset or all datasets of a lens together


@takes_arrays_second
def bootstrap(
    estimator: Estimator | ErrorFunction,
    data: Profile | Predictions,
    *,
    lens: Lens | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    method: Method = "percentile",
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
    rng : int or numpy.random.Generator, default 0
        Seed or generator of the resamples.

    Returns
    -------
    Bootstrap
        The resampled distribution, whose `interval(level, method)` can be asked for without resampling again.

    Raises
    ------
    InputError
        A lens is given with a Profile, or "bca" with units.

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
        if lens is not None:
            raise InputError("a lens needs Predictions: a Profile holds the scores that a lens selected")
        cells.refuse_batch(data)
        data.refuse_dependent("pass the Predictions, whose clusters are drawn as whole")
        return resample_rows(estimator, data, resamples=resamples, level=level, rng=generator, method=method)
    lens = default_lens(data) if lens is None else lens
    shares = lens.shares(data)
    if shares is None:
        sample = lens.sample(data)
        if sample.independent:
            return resample_rows(
                estimator, sample.profile, resamples=resamples, level=level, rng=generator, method=method
            )
    if method == "bca":
        raise InputError("bca needs independent rows and one dataset; use method='basic'")
    units = Units.of(next(lens.samples(data)), generator)
    counts = units.draws(resamples, generator)
    flips = sign_flips(units, 1 if shares is None else len(shares), generator)
    parts = sample_sums(estimator, lens.samples(data), units, flips)
    return resample_units(estimator, parts, shares, units, counts, level, generator, flips=flips, method=method)


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
