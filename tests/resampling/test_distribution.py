"""Deviations of resamples beside recorded quantiles of the resamplers that the one of today replaced.

The quantiles rest on 4,000 resamples each (20 seeds of 200). Rows, clusters, classes and pooled pairs.
"""

import numpy as np
import pytest

import truecal as tc

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
RECORDED = {
    "rows ece": (-0.007746, 0.002052, 0.008979, 0.015719, 0.025721),
    "rows debiased": (-0.002670, -0.001234, -0.000146, 0.001105, 0.003126),
    "rows sweep": (-0.001536, -0.000492, 0.000303, 0.001252, 0.002845),
    "rows series": (-0.002848, -0.001581, -0.000207, 0.001361, 0.003423),
    "clusters ece": (-0.028915, -0.002289, 0.007452, 0.014911, 0.025727),
    "clusters sweep": (-0.001493, -0.000496, 0.000307, 0.001210, 0.002749),
    "class-wise ece": (-0.006239, 0.004438, 0.009995, 0.015421, 0.022073),
    "class-wise sweep": (-0.001000, -0.000291, 0.000270, 0.000932, 0.001972),
    "class-wise series": (-0.001921, -0.000861, -0.000069, 0.000790, 0.002126),
    "pooled sweep": (-0.000739, -0.000178, 0.000299, 0.000844, 0.001732),
}
ESTIMATORS = {
    "ece": tc.BinnedECE(),
    "debiased": tc.DebiasedECE(),
    "sweep": tc.SweepECE(),
    "series": tc.RankSeries(),
}


def binary():
    rng = np.random.default_rng(3)
    c = rng.beta(1.2, 0.8, 1500)
    y = (rng.random(1500) < c**1.25).astype(int)
    return c, y, rng.integers(0, 150, 1500)


def classes():
    rng = np.random.default_rng(4)
    p = rng.dirichlet([1.0, 1, 2, 0.5], 800)
    truth = p**1.3
    truth /= truth.sum(axis=1, keepdims=True)
    return tc.Predictions.from_probs(p, (truth.cumsum(axis=1)[:, :-1] < rng.random((800, 1))).sum(axis=1))


def resample(unit, estimator):
    c, y, clusters = binary()
    if unit in ("class-wise", "pooled"):
        lens = tc.ClassWise() if unit == "class-wise" else tc.AllLabels()
        return tc.inference.bootstrap(estimator, classes(), lens=lens, resamples=400, rng=1)
    preds = tc.Predictions.from_probs(c, y, clusters=clusters if unit == "clusters" else None)
    return tc.inference.bootstrap(estimator, preds, resamples=400, rng=1)


@pytest.mark.parametrize("case", RECORDED)
def test_deviations_have_the_recorded_quantiles(case):
    unit, name = case.split(" ")
    deviations = resample(unit, ESTIMATORS[name]).deviations
    shares = (deviations[:, None] <= RECORDED[case]).mean(axis=0)
    # derived: 3.5 standard errors of both shares, 400 and 4,000 resamples in runs of 200 that share a mean
    assert (np.abs(shares - LEVELS) < 3.5 * np.sqrt(LEVELS * (1 - LEVELS) * (1 / 400 + 1 / 4000)) + 0.01).all(), shares
