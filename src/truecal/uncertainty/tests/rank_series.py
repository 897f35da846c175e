"""The default test of calibration: the rank series, of independent or clustered rows."""

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.estimate import RankSeries, rank_series, resampling
from truecal.lens import Lens, check_lens, default_lens
from truecal.predictions import Predictions, check_predictions
from truecal.profile import Profile
from truecal.uncertainty.tests.verdict import CALIBRATED, Verdict, verdict_of


def rank_series_test(
    data: Profile | Predictions,
    *,
    lens: Lens | None = None,
    resamples: int = 999,
    rng: int | np.random.Generator = 0,
) -> Verdict:
    r"""Is the model perfectly calibrated? Max over k of the k-term rank series, standardised.

    S = max_k sum_{j<=k} (beta_j^2 - V_jj) / sqrt(2 ||V_{1..k}||_F^2), with beta and V as in :class:`RankSeries`: a Neyman smooth
    test that adapts to how rough the miscalibration is. p-value by redrawing outcomes from the scores; for clustered
    Predictions by turning the signs of whole clusters.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(1000)
    >>> rank_series_test(tc.Profile.from_arrays(c, rng.random(1000) < c**1.3)).p_value
    0.001
    """
    check_predictions(data, Profile, name="data")
    if isinstance(data, Predictions):
        check_lens(lens)
        lens = default_lens(data) if lens is None else lens
        if lens.shares(data) is None:
            sample = lens.sample(data)
            sample.refuse_pooled()
            if not sample.independent:
                generator = options.generator(rng)
                series = rank_series.ClusteredSeries.of(sample, resampling.Units.of(sample, generator))
                return Verdict(
                    *series.test(resamples=resamples, rng=generator), CALIBRATED, "rank-series test, clustered"
                )
            data = sample.profile
        elif data.clusters is not None:
            raise InputError("with clusters, test one class at a time: tc.OneClass(name)")
        else:
            data = lens(data)
    elif lens is not None:
        raise InputError("a lens needs Predictions: a Profile is already one lens's view")
    if data.units is not None:
        tested = rank_series.ClusteredSeries.of_profile(data).test(resamples=resamples, rng=rng)
        return Verdict(*tested, CALIBRATED, "rank-series test, clustered")
    redrawn = RankSeries().test(data, resamples=resamples, rng=rng)
    return verdict_of(data, redrawn.statistic, redrawn.p_value, "rank-series test")
