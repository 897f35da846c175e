"""The inverted test: can we promise that the error is below a threshold?"""

import numpy as np

from truecal import estimate as estimators
from truecal import options
from truecal.errors import InputError
from truecal.estimate import RankSeries, rank_series, resampling
from truecal.lens import Lens, check_lens, default_lens
from truecal.predictions import Predictions, check_predictions
from truecal.profile import Profile
from truecal.uncertainty.tests.verdict import Verdict


def below(data: Profile | Predictions, threshold: float, *, lens: Lens | None = None) -> Verdict:
    r"""Test of "the root-mean-square calibration error is at least `threshold`": a small p-value is evidence that it is below.

    A test that finds no miscalibration proves nothing; this one does (an equivalence test). With X the rank-series estimate of the
    squared error using all its terms, and Var(X) = a + b t + e t^2 at a true t (see :class:`Pivot`),
    p = Phi((X - t) / sqrt(Var(X))) at t = threshold^2. p <= alpha exactly when the one-sided upper bound at 1 - alpha is below the
    threshold. The statistic shown is that standardised difference. Clusters of Predictions are respected.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(20_000)
    >>> profile = tc.Profile.from_arrays(c, rng.random(20_000) < c)
    >>> below(profile, 0.05).p_value < 0.001, below(profile, 0.002).p_value > 0.05
    (True, True)
    """
    options.between(threshold, "threshold", 0, 1)
    threshold = float(threshold)  # of 80 bits: special functions know no such numbers
    pivot, single = _pivot(data, lens)
    p, z = pivot.chance_below(threshold), pivot.standardised(threshold)
    hypothesis = f"the error is at least {threshold:g}"
    method = "rank-series test of equivalence"
    if single:
        return Verdict(float(z[0]), float(p[0]), hypothesis, method)
    return Verdict(z, p, hypothesis, method)


def _pivot(data: Profile | Predictions, lens: Lens | None) -> tuple[estimators.Pivot, bool]:
    """The pivot of one dataset or of every dataset of a lens, and whether answers are plain numbers."""
    if isinstance(data, Profile):
        if lens is not None:
            raise InputError("a lens needs Predictions: a Profile is already one lens's view")
        return (
            RankSeries().pivot(data) if data.units is None else rank_series.ClusteredSeries.of_profile(data).pivot
        ), data.single
    check_predictions(data, Profile, name="data")
    check_lens(lens)
    lens = default_lens(data) if lens is None else lens
    if lens.shares(data) is None:
        sample = lens.sample(data)
        sample.refuse_pooled()
        if sample.independent:
            return RankSeries().pivot(sample.profile), True
        return rank_series.ClusteredSeries.of(sample, resampling.Units.of(sample, np.random.default_rng(0))).pivot, True
    if data.clusters is not None:
        raise InputError("with clusters, judge one class at a time: tc.OneClass(name)")
    return RankSeries().pivot(lens(data)), False
