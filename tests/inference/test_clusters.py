"""Clustered rows: intervals, tests and values that count clusters."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binomtest

import truecal as tc
from tests.inference.worlds import clustered
from tests.simulations import datasets, within
from truecal.errors import InputError
from truecal.estimators.rank_series.clusters import ClusteredSeries
from truecal.inference import below, hosmer_lemeshow, kuiper, rank_series_test, spiegelhalter
from truecal.lenses import default_lens
from truecal.resampling.units import Units


def series(c, y, g, **options):
    preds = tc.Predictions.from_probs(c, y, clusters=g, **options)
    sample = default_lens(preds).sample(preds)
    return ClusteredSeries.of(sample, Units.of(sample, np.random.default_rng(0)))


def true_error(exponent):
    c = clustered(50_000, 20, lambda c: c, np.random.default_rng(99))[0]
    return float(np.sqrt(np.mean((c**exponent - c) ** 2)))


@pytest.mark.slow
@pytest.mark.parametrize("exponent", [1.0, 1.5, 2.5])
def test_clusters_keep_the_level_that_independent_rows_would_miss(exponent):
    """200 datasets of 50 clusters of 20 alike rows, 90 %: clustered compatible with 0.87 or more, independent below 0.6."""
    rng = np.random.default_rng(7)
    truth = true_error(exponent)
    ours, theirs, trials = 0, 0, datasets(200)
    for _ in range(trials):
        c, y, g = clustered(50, 20, lambda c: c**exponent, rng)
        result = series(c, y, g).estimate(0.9)[2]
        ours += result.low <= truth <= result.high
        naive = tc.RankSeries(level=0.9)(tc.profile.Profile.from_arrays(c, y)).interval
        theirs += naive.low <= truth <= naive.high
    assert binomtest(ours, trials, 0.87, alternative="less").pvalue > 0.01, ours / trials
    assert within(theirs, trials, 0.0, 0.6)


@pytest.mark.slow
def test_the_clustered_test_keeps_its_type_one_error():
    """800 calibrated datasets of 60 clusters: rejections at 5 % between 0.03 and 0.07."""
    rng = np.random.default_rng(17)
    hits, trials = 0, datasets(800)
    for i in range(trials):
        c, y, g = clustered(60, 5, lambda c: c, rng)
        hits += series(c, y, g).test(resamples=99, rng=i)[1] <= 0.05
    assert within(hits, trials, 0.03, 0.07), hits / trials


def test_theta_leaves_out_products_within_a_cluster():
    rng = np.random.default_rng(0)
    c, y, g = clustered(12, 4, lambda c: c**2, rng)
    c = 0.5 + c / 2
    result = series(c, y, g)
    # first term: phi = 1 where all scores are on one side, so s_g is the sum of residuals of a cluster
    s = np.array([(y - c)[g == k].sum() for k in range(12)]) / len(c)
    expected = sum(s[i] * s[j] for i in range(12) for j in range(12) if i != j) / (1 - 1 / 12)
    assert result.theta[0, 0] == pytest.approx(expected)
    assert result.covariances[0][0, 0] == pytest.approx(((s - s.mean()) ** 2).sum() * 12 / 11)


def test_clusters_of_one_row_are_independent_rows():
    rng = np.random.default_rng(3)
    c = rng.random(4000)
    y = (rng.random(4000) < c**1.5).astype(int)
    ours = tc.calibration_error(y, c, clusters=np.arange(4000))
    theirs = tc.calibration_error(y, c)
    assert ours.value == pytest.approx(theirs.value, rel=0.02)
    assert ours.interval.low == pytest.approx(theirs.interval.low, rel=0.05)
    assert ours.interval.high == pytest.approx(theirs.interval.high, rel=0.05)


def test_calibration_error_with_clusters_is_wider_and_less_sure():
    c, y, g = clustered(60, 20, lambda c: c, np.random.default_rng(5))
    for estimator in (None, tc.BinnedECE(), tc.SweepECE()):
        alone = tc.calibration_error(y, c, estimator=estimator)
        together = tc.calibration_error(y, c, estimator=estimator, clusters=g)
        width = [e.interval.high - e.interval.low for e in (alone, together)]
        assert width[1] > 1.3 * width[0]
        assert together.p_value > alone.p_value
        assert together.value in together.interval


def test_labels_of_clusters_do_not_matter():
    c, y, g = clustered(30, 5, lambda c: c**2, np.random.default_rng(5))
    names = np.array([f"patient {k}" for k in np.random.default_rng(1).permutation(30)])[g]
    a, b = (tc.calibration_error(y, c, clusters=labels) for labels in (g, names))
    assert a.interval.low == pytest.approx(b.interval.low)
    assert a.interval.high == pytest.approx(b.interval.high)


def test_weights_that_repeat_rows_within_clusters_equal_repeated_rows():
    rng = np.random.default_rng(2)
    c, y, g = clustered(30, 5, lambda c: c**2, rng)
    w = rng.integers(1, 4, len(c))
    a = series(c, y, g, weights=w)
    b = series(np.repeat(c, w), np.repeat(y, w), np.repeat(g, w))
    assert a.value == pytest.approx(b.value)
    np.testing.assert_allclose(a.theta, b.theta, atol=1e-12)


def test_outcomes_that_are_all_alike_leave_room_for_clusters_that_differ():
    c, g = np.full(100, 0.9), np.repeat(np.arange(10), 10)
    result = series(c, np.ones(100, int), g).estimate(0.95)[2]
    assert result.low <= 0.1 <= result.high
    assert result.high - result.low > 0.1  # ten clusters cannot exclude that one in ten is bad


def test_levels_nest_and_two_clusters_say_next_to_nothing():
    c, y, g = clustered(15, 10, lambda c: c**2, np.random.default_rng(2))
    ends = [series(c, y, g).estimate(level)[2] for level in (0.5, 0.8, 0.95, 0.99)]
    assert all(a.low >= b.low and a.high <= b.high for a, b in pairwise(ends))
    two = series(c, y, (g > 7).astype(int))
    assert two.estimate(0.95)[2].high > 0.9
    assert two.test()[1] > 0.2


def test_tests_of_predictions_respect_their_clusters():
    c, y, g = clustered(40, 20, lambda c: c, np.random.default_rng(1))
    alone, together = (tc.Predictions.from_probs(c, y, clusters=k) for k in (None, g))
    assert rank_series_test(alone).p_value < 0.01 < rank_series_test(together).p_value
    assert below(together, 0.3).p_value > below(alone, 0.3).p_value
    with pytest.raises(InputError, match="one class at a time"):
        rank_series_test(together, lens=tc.ClassWise())


def correlated(seed, clusters=200, rows=10):
    """Calibrated scores whose outcomes are correlated within clusters (a shared latent normal)."""
    rng = np.random.default_rng(seed)
    g = np.repeat(np.arange(clusters), rows)
    c = rng.beta(1.2, 1.2, len(g))
    latent = np.sqrt(0.5) * rng.standard_normal(clusters)[g] + np.sqrt(0.5) * rng.standard_normal(len(g))
    return tc.Predictions.from_probs(c, (ndtr(latent) < c).astype(int), clusters=g)


@pytest.mark.slow
def test_tests_and_bands_of_clustered_rows_keep_their_level():
    """120 calibrated datasets of 200 clusters x 10: every test rejects about 5 % at 5 %, the 90 % band misses at most 10 %."""
    tests = (
        lambda p: hosmer_lemeshow(p, resamples=199),
        lambda p: spiegelhalter(p, resamples=199),
        lambda p: kuiper(p, resamples=199),
        lambda p: rank_series_test(p, resamples=199),
    )
    rejected, missed, grid = np.zeros(len(tests), int), 0, np.linspace(0.01, 0.99, 99)
    trials = datasets(120)
    for seed in range(trials):
        profile = tc.OneClass()(correlated(seed))
        rejected += [test(profile).p_value <= 0.05 for test in tests]
        missed += not tc.inference.band(profile, level=0.9).contains(grid, grid)
    for count in rejected:
        assert binomtest(int(count), trials, 0.05).pvalue > 0.01
    assert binomtest(missed, trials, 0.1, alternative="greater").pvalue > 0.01
