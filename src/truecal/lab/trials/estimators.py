"""The estimators that trials compare by default. All in norm 2 where there is a choice."""

import truecal as tc
from truecal.estimate import Estimator


def all_estimators() -> dict[str, Estimator]:
    """Every estimator of truecal, as a user would call it."""
    return {
        "RankSeries": tc.RankSeries(norm=2),
        "DebiasedECE": tc.DebiasedECE(bins=15, norm=2),
        "SweepECE": tc.SweepECE(norm=2),
        "NearestECE": tc.NearestECE(norm=2),
        "BinnedECE equal mass": tc.BinnedECE(bins=15, scheme="mass", norm=2),
        "BinnedECE equal width": tc.BinnedECE(bins=15, scheme="width", norm=2),
        "LabelBinnedECE": tc.LabelBinnedECE(bins=15, norm=2),
        "KernelDensityECE": tc.KernelDensityECE(norm=2),
        "IsotonicError": tc.IsotonicError(),
        "SmoothECE": tc.SmoothECE(),
    }
