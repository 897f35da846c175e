"""The bootstrap of any data: rows, whole clusters or runs in time, for one dataset or all datasets of a lens together."""

from dataclasses import replace
from itertools import chain

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.estimate import Estimator, check_estimator, jointly, resampling
from truecal.lens import Lens, check_lens, default_lens
from truecal.predictions import Predictions, check_predictions
from truecal.profile import Profile


def bootstrap(
    estimator: Estimator,
    data: Profile | Predictions,
    *,
    lens: Lens | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    method: resampling.Method = "percentile",
    blocks: int | None = None,
    rng: int | np.random.Generator = 0,
) -> resampling.Bootstrap:
    """Resample one dataset and judge every resample.

    Parameters
    ----------
    data : a Profile of independent rows; or Predictions, whose clusters are then drawn as whole.
    lens : what of Predictions is judged; default as in `calibration_error`.
    blocks : for Predictions in the order of time, the length of runs to draw.

    Rows are never sorted again: a resample is a set of counts on the distinct scores (more than 128: on cells of neighbouring
    scores), and for estimators of fixed bins a set of counts of zeros and ones in each bin, whose edges stay.
    Importance weights: a resample has Kish's effective number of rows.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(1000)
    >>> profile = tc.Profile.from_arrays(c, rng.random(1000) < c**1.5)  # true mean absolute error 0.1
    >>> found = bootstrap(tc.BinnedECE(bins=15, norm=1), profile)
    >>> 0.1 in found.interval(), found.value in found.interval(0.5)
    (True, True)
    """
    check_estimator(estimator)
    check_predictions(data, Profile, name="data")
    check_lens(lens)
    options.resamples(resamples)
    options.level(level)
    options.choice(method, resampling.METHODS, "method")
    generator = options.generator(rng)
    if isinstance(data, Predictions):
        lens = default_lens(data) if lens is None else lens
        shares = lens.shares(data)
        if shares is None and blocks is None:
            sample = lens.sample(data)
            if sample.independent:
                return estimator.resampled(
                    sample.profile, resamples=resamples, level=level, rng=generator, method=method
                )
        return resampled_units(estimator, lens, data, resamples, level, method, generator, blocks)
    if lens is not None or blocks is not None:
        raise InputError("lens and blocks need Predictions: a Profile has forgotten which row is which")
    resampling.refuse_batch(data)
    data.refuse_dependent("pass the Predictions, whose clusters are drawn as whole")
    return estimator.resampled(data, resamples=resamples, level=level, rng=generator, method=method)


def resampled_units(
    estimator: Estimator,
    lens: Lens,
    preds: Predictions,
    resamples: int,
    level: float,
    method: resampling.Method,
    rng: np.random.Generator,
    blocks: int | None = None,
) -> resampling.Bootstrap:
    """Resamples of whole units, the same for all datasets of a lens."""
    if method == "bca":
        raise InputError("bca needs independent rows and one dataset; use method='basic'")
    samples = lens.samples(preds)
    first = next(samples)
    units = resampling.Units.of(first, rng, blocks=blocks)
    counts = units.draws(resamples, rng)
    joint = jointly.resampled_jointly(estimator, chain([first], samples), lens.shares(preds), units, counts, rng)
    return replace(resampling.Bootstrap.of(estimator, joint, level, units.kind), method=method)
