"""The estimators that trials compare, under the names the papers give them. All in norm 2 where there is a choice."""

import truecal as tc
from truecal.estimate import Estimator
from truecal.lab.worlds.paper_worlds import KNN_REGIONS, dataset_of

# The papers split ties by position. Saturated scores are ties too: one in six scores of a CIFAR-10 world is exactly 1.
EW = tc.BinnedECE(bins=15, scheme="width", norm=2)
EM = tc.BinnedECE(bins=15, scheme="mass", norm=2, ties="split")
DEBIASED = tc.DebiasedECE(bins=15, norm=2, ties="split")
EM_SWEEP = tc.SweepECE(scheme="mass", norm=2, ties="split")
EW_SWEEP = tc.SweepECE(scheme="width", norm=2)
KDE = tc.KernelDensityECE(norm=2)
RANK_SERIES = tc.RankSeries(norm=2)


def roelofs_estimators() -> dict[str, Estimator]:
    """The six of Roelofs et al., section 5.2."""
    return {"EW": EW, "EM": EM, "EMdebias": DEBIASED, "KDE": KDE, "EWsweep": EW_SWEEP, "EMsweep": EM_SWEEP}


def peng_estimators(world_name: str) -> dict[str, Estimator]:
    """The four of Peng et al., with their hand-picked region for this world's dataset, and our two."""
    region = KNN_REGIONS[dataset_of(world_name)]
    return {
        "EW": EW,
        "EM": EM,
        "DEBIASED": DEBIASED,
        "SWEEP": EM_SWEEP,
        "KNN": tc.NearestECE(norm=2, region=region),
        "RankSeries": RANK_SERIES,
    }


def all_estimators() -> dict[str, Estimator]:
    """Every estimator of truecal, as a user would call it."""
    return {
        "RankSeries": RANK_SERIES,
        "DebiasedECE": tc.DebiasedECE(bins=15, norm=2),
        "SweepECE": tc.SweepECE(norm=2),
        "NearestECE": tc.NearestECE(norm=2),
        "BinnedECE equal mass": tc.BinnedECE(bins=15, scheme="mass", norm=2),
        "BinnedECE equal width": EW,
        "LabelBinnedECE": tc.LabelBinnedECE(bins=15, norm=2),
        "KernelDensityECE": KDE,
        "IsotonicError": tc.IsotonicError(),
        "SmoothECE": tc.SmoothECE(),
    }
