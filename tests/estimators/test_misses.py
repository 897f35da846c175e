"""Intervals and promises where hardly an outcome contradicts scores of 0 and 1: coverage added up exactly over all datasets."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest

import truecal as tc
from truecal.estimators.rank_series.interval import UnexpectedOutcomes


@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
def test_the_limit_is_the_exact_one_wherever_it_is_larger(level):
    rng = np.random.default_rng(3)
    for _ in range(60):
        rows = int(rng.integers(1, 400))
        observed, expected = int(rng.integers(0, rows + 1)), rng.uniform(0, min(5, 0.1 * rows))
        high = np.array([rng.uniform(0, 0.3) ** 2])
        exact = binomtest(observed, rows).proportion_ci(level, method="exact").high - expected / rows
        result = UnexpectedOutcomes(*np.array([[observed], [expected], [rows]], float)).raise_limit(high, level)
        np.testing.assert_allclose(result, np.maximum(high, exact), atol=1e-12)


def test_a_score_of_a_half_is_one_whatever_the_rounding_of_its_cell():
    """The mean score of a cell may round past 1/2, and a zero there would be a miss of the weighted rows alone."""
    c, y, w = np.array([0.15, 0.0, 0.15, 0.5]), np.zeros(4, int), np.array([3, 1, 1, 1])
    weighted, repeated = (
        tc.profile.Profile.from_arrays(c, y, w),
        tc.profile.Profile.from_arrays(np.repeat(c, w), np.repeat(y, w)),
    )
    for norm in (1, 2):
        ends = [tc.RankSeries(norm=norm)(profile).interval.high for profile in (weighted, repeated)]
        assert ends[0] == pytest.approx(ends[1], abs=1e-12)


def test_the_chance_is_that_of_a_binomial_count():
    misses = np.array([[0.0, 3.0, 50.0], [0.5, 1.0, 2.0], [20.0, 70.0, 50.0]])
    rate = np.minimum(misses[1] / misses[2] + 0.05, 1)
    np.testing.assert_allclose(
        UnexpectedOutcomes(*misses).p_value(0.05), binom.cdf(misses[0], misses[2], rate), atol=1e-12
    )


def _datasets(n: int, rate: float, two_outputs: bool):
    """Every dataset that is likely enough, with its probability: outputs of 1 alone, or of 0 and 1 in halves."""
    half = n // 2 if two_outputs else 0
    for low in np.flatnonzero(binom.pmf(np.arange(half + 1), half, rate) > 1e-4):
        for high in np.flatnonzero(binom.pmf(np.arange(n - half + 1), n - half, rate) > 1e-4):
            scores = np.repeat([0.0, 1.0], [half, n - half])
            outcomes = scores.copy()
            outcomes[:low], outcomes[half : half + high] = 1.0, 0.0
            yield scores, outcomes, binom.pmf(low, half, rate) * binom.pmf(high, n - half, rate)


@pytest.mark.parametrize("two_outputs", [False, True])
@pytest.mark.parametrize("n", [20, 3000])
def test_certain_outputs_with_hardly_a_miss_are_covered(n, two_outputs):
    for rate in (1.5 / n, 3.0 / n):
        covered, promised = {1: 0.0, 2: 0.0}, 0.0
        for scores, outcomes, chance in _datasets(n, rate, two_outputs):
            profile = tc.profile.Profile.from_arrays(scores, outcomes)
            for norm in covered:
                interval = tc.RankSeries(norm=norm, level=0.9)(profile).interval
                covered[norm] += chance * (interval.low <= rate <= interval.high)
            promised += chance * (tc.inference.below(profile, 0.999 * rate).p_value <= 0.05)
        assert min(covered.values()) >= 0.88
        assert promised <= 0.05


def test_clusters_that_miss_as_a_whole_are_covered():
    clusters, size = 60, 8
    scores = np.ones(clusters * size)
    for rate in (1.5 / clusters, 3.0 / clusters):
        covered = 0.0
        for missed in np.flatnonzero(binom.pmf(np.arange(clusters + 1), clusters, rate) > 1e-4):
            outcomes = (np.arange(clusters * size) >= missed * size).astype(int)
            preds = tc.Predictions.from_probs(scores, outcomes, clusters=np.arange(clusters * size) // size)
            interval = tc.measure(preds, level=0.9).interval
            covered += binom.pmf(missed, clusters, rate) * (interval.low <= rate <= interval.high)
        assert covered >= 0.88
