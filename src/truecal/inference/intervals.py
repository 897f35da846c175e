"""The bootstrap of rows or whole clusters, for one dataset or all datasets of a lens together."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from truecal import options
from truecal.errors import InputError
from truecal.estimators.base import METHODS, Bootstrap, ErrorFunction, Estimator, Method, as_estimator, resample_rows
from truecal.estimators.bootstrap import resample_units, sample_sums, sign_flips
from truecal.lenses.lens import Lens, Sample, check_lens
from truecal.lenses.one_probability import default_lens
from truecal.predictions.arrays import takes_arrays_second
from truecal.predictions.predictions import Predictions, check_predictions
from truecal.profile.profile import Profile
from truecal.resampling import cells
from truecal.resampling.units import Units
from truecal.types import Float64s


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
    shares, sample = lens.shares(data), next(lens.samples(data))
    if shares is None and sample.independent:
        return resample_rows(estimator, sample.profile, resamples=resamples, level=level, rng=generator, method=method)
    if method == "bca":
        raise InputError("bca needs independent rows and one dataset; use method='basic'")
    units = Units.of(sample, generator)
    counts, samples = units.draws(resamples, generator), lens.samples(data)
    return resample_samples(estimator, samples, shares, units, counts, level, generator, method=method)


def resample_samples(
    estimator: Estimator,
    samples: Iterable[Sample],
    shares: Float64s | None,
    units: Units,
    counts: NDArray[np.uint16],
    level: float,
    rng: np.random.Generator,
    *,
    test: bool = False,
    flip_rows: bool = False,
    method: Method = "percentile",
) -> Bootstrap:
    """Resample whole units (rows or clusters), the same for all samples, whose errors are combined by `shares` (None: one sample).

    `counts`, shape (units + 2, resamples), are those of :meth:`Units.draws`. `test` redraws outcomes of rows for a test of any
    estimator; `flip_rows` flips the signs of whole rows for the joint test.
    """
    flips = sign_flips(units, 1 if shares is None else len(shares), rng, rows=flip_rows)
    sums = sample_sums(estimator, samples, units, flips)
    return resample_units(estimator, sums, shares, units, counts, level, rng, test=test, flips=flips, method=method)
