"""Tests of calibration whose statistic is an estimate of the calibration error."""

import numpy as np

from truecal import estimate as estimators
from truecal.estimate import Estimator, check_estimator
from truecal.profile import Profile
from truecal.uncertainty.tests.verdict import Verdict, redraw_test


def consistency_test(
    profile: Profile,
    estimator: Estimator | None = None,
    *,
    resamples: int = 999,
    rng: int | np.random.Generator = 0,
) -> Verdict:
    """Is the estimate larger than it would be for a calibrated model with these scores?

    Consistency resampling (Bröcker and Smith 2007; Vaicenavicius et al. 2019): any estimator of the calibration error is the
    statistic, and its bias does not matter, because redrawn outcomes have it too. Default: :class:`SweepECE`.

    >>> import numpy as np, truecal as tc
    >>> c = np.random.default_rng(0).random(500)
    >>> sharp = tc.Profile.from_arrays(c, c > 0.5)  # outcomes far surer than the scores
    >>> consistency_test(sharp, tc.BinnedECE(bins=10)).p_value
    0.001
    """
    estimator = estimators.SweepECE() if estimator is None else estimator
    check_estimator(estimator)
    method = f"consistency resampling of {type(estimator).__name__}"
    return redraw_test(profile, estimator.values, method=method, resamples=resamples, rng=rng)
