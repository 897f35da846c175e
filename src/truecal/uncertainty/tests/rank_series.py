"""The default test of calibration: the rank series, of independent or clustered rows."""

import numpy as np

from truecal.errors import InputError
from truecal.estimate import RankSeries
from truecal.lens import Lens
from truecal.predictions import Predictions
from truecal.profile import Profile
from truecal.uncertainty.bootstrap.rows import Units, default_lens, rows_of
from truecal.uncertainty.clustered import ClusteredSeries
from truecal.uncertainty.tests.verdict import Verdict, check_resamples


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
    check_resamples(resamples)
    generator = np.random.default_rng(rng)
    if isinstance(data, Predictions):
        lens = default_lens(data) if lens is None else lens
        lens.refuse_pooled()
        if data.clusters is not None:
            if lens.shares(data) is not None:
                raise InputError("with clusters, test one class at a time: tc.OneClass(name)")
            (rows,) = rows_of(lens, data)
            units = Units.of(data, blocks=None, rng=generator)
            return ClusteredSeries.of(rows, units).test(resamples=resamples, rng=generator)
        data = lens(data)
    elif lens is not None:
        raise InputError("a lens needs Predictions: a Profile is already one lens's view")
    statistic, p = RankSeries().tested(data, resamples=resamples, rng=generator)
    if data.single:
        return Verdict(float(statistic[0]), float(p[0]), "perfectly calibrated", "rank-series test")
    return Verdict(statistic, p, "perfectly calibrated", "rank-series test")
