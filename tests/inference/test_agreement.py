"""The interval of the default and the test of calibration agree; see docs/uncertainty.md."""

from math import sqrt
from statistics import NormalDist

import numpy as np
import pytest
from scipy.special import expit

import truecal as tc


def saturated(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes drawn from scores that pile up at 0 and 1."""
    rng = np.random.default_rng([seed, n])
    scores = expit(rng.normal(0, 8, n))
    return (rng.random(n) < scores).astype(int), scores


@pytest.mark.parametrize("norm", [1, 2])
def test_interval_starts_at_zero_unless_the_test_rejects(norm):
    raised = 0
    for seed in range(60):
        y, p = saturated(100, seed)
        by_formula = tc.RankSeries(norm=norm, level=0.9)(tc.profile.Profile.from_arrays(p, y)).interval
        estimate = tc.calibration_error(y, p, estimator=tc.RankSeries(norm=norm), level=0.9)
        if estimate.p_value > 0.1:
            assert estimate.interval.low == 0.0
            raised += by_formula.low > 0
        assert estimate.interval.low <= estimate.value <= estimate.interval.high == by_formula.high
    assert raised  # the formula alone claims errors that the test does not


@pytest.mark.parametrize("norm", [1, 2])
def test_lower_limit_is_not_below_that_of_the_mean_difference(norm):
    rng = np.random.default_rng(3)
    p = rng.beta(2, 2, 3000)
    y = (rng.random(3000) < p - 0.03).astype(int)
    estimate = tc.calibration_error(y, p, estimator=tc.RankSeries(norm=norm))
    residuals = y - p
    limit = abs(residuals.mean()) - NormalDist().inv_cdf(0.975) * sqrt(residuals.var() / 3000)
    assert limit > 0
    assert estimate.interval.low >= limit - 1e-12


def test_weighted_rows_have_the_mean_difference_of_repeated_rows():
    rng = np.random.default_rng(4)
    p = np.round(rng.beta(2, 2, 800), 3)
    y = (rng.random(800) < np.clip(p - 0.06, 0, 1)).astype(int)
    weights = rng.integers(1, 4, 800)
    weighted = tc.calibration_error(y, p, sample_weight=weights)
    repeated = tc.calibration_error(np.repeat(y, weights), np.repeat(p, weights))
    assert weighted.interval.low == pytest.approx(repeated.interval.low, abs=1e-9)
    assert weighted.interval.low > 0


def test_clustered_interval_starts_at_zero_unless_the_test_rejects():
    rng = np.random.default_rng(5)
    clusters = np.repeat(np.arange(30), 20)
    for _ in range(20):
        p = np.clip(rng.beta(2, 2, 600) + rng.normal(0, 0.02, 30)[clusters], 0, 1)
        y = (rng.random(600) < p).astype(int)
        estimate = tc.calibration_error(y, p, clusters=clusters, level=0.8)
        assert estimate.p_value <= 0.2 or estimate.interval.low == 0.0


def test_verify_claims_no_excess_that_the_test_does_not_show():
    verdicts = []
    for seed in range(80):
        y, p = saturated(100, seed)
        verdict = tc.verify(y, p, threshold=0.005)
        p_value = tc.calibration_error(y, p).p_value
        assert verdict.verdict != "exceeded" or p_value <= 0.05
        verdicts.append(verdict.verdict == "exceeded")
    assert sum(verdicts) <= 9  # the 99 % quantile of Binomial(80, 0.05)


def test_interval_of_a_high_level_excludes_zero_for_a_large_error():
    rng = np.random.default_rng(6)
    p = rng.random(2000)
    y = (rng.random(2000) < p**2).astype(int)
    assert tc.calibration_error(y, p, level=0.9999).interval.low > 0.05
