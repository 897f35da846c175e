"""The default estimator's promises on the ten worlds fitted by Roelofs et al., where the true error is known.

300 datasets of n = 1000 rows a world, seed 2026.
"""

import numpy as np
import pytest

import truecal as tc
from tests.simulations import FULL, datasets, within

N, M, SEED, LEVEL = 1000, datasets(300), 2026, 0.9
pytestmark = pytest.mark.slow


def estimates(world):
    estimator = tc.RankSeries(level=LEVEL)
    return estimator(tc.profile.Profile.from_arrays(*world.draw(N, M, rng=SEED)))


def covered(est, truth):
    return np.sum((est.interval.low <= truth) & (truth <= est.interval.high))


def test_bias_and_coverage_on_the_uncalibrated_worlds():
    bias, noise, coverage = [], [], []
    for world in tc.lab.PAPER_WORLDS.values():
        est, truth = estimates(world), world.true_error(norm=2)
        bias.append(est.value.mean() - truth)
        noise.append(est.value.std() / np.sqrt(M))
        coverage.append(covered(est, truth))
    assert np.mean(np.abs(bias)) <= 0.0015 + (0 if FULL else np.mean(noise))
    assert within(sum(coverage), M * len(coverage), 0.86, 0.95)
    assert all(within(count, M, 0.80, 1) for count in coverage)


def test_coverage_when_the_same_worlds_are_calibrated():
    """Outcomes drawn from recalibrated scores: the truth is 0, which intervals of other packages hardly ever hold."""
    coverage = [covered(estimates(world.perfectly_recalibrated()), 0.0) for world in tc.lab.PAPER_WORLDS.values()]
    assert within(sum(coverage), M * len(coverage), 0.90, 1)


def test_the_test_of_calibration_keeps_its_level():
    """2000 datasets of each n: 5 % +- three standard errors of a simulated frequency (0.0146)."""
    for n in (100, 1000):
        rejected, each = [], datasets(500)
        for i, world in enumerate(list(tc.lab.PAPER_WORLDS.values())[::3]):
            profile = tc.profile.Profile.from_arrays(*world.perfectly_recalibrated().draw(n, each, rng=SEED + i))
            rejected.append(np.sum(tc.RankSeries().test(profile, resamples=199, rng=i).p_value <= 0.05))
        assert within(sum(rejected), each * len(rejected), 0.03, 0.07)
