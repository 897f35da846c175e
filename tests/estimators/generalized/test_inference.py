"""The interval, test and debiased value of a binned error of vectors, with few and with many events."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

from tests.groups.data import drawn, simulated
from tests.simulations import datasets
from truecal.estimators import ClassWeighted, EqualMass, GeneralizedECE, InterInterval, KDTree, Lp, TotalVariation
from truecal.estimators.generalized.binning import VectorBins
from truecal.estimators.generalized.direction import fitted_outputs
from truecal.estimators.generalized.inference import BinnedSample, joint_p_value, largest_error
from truecal.lenses import Canonical, OneClass, TopK
from truecal.predictions import Predictions


def world(classes, exponent, n, rng, spread=2.0):
    """Softmax outputs, labels of outputs to a power, and the true rates."""
    logits = spread * rng.standard_normal((n, classes))
    outputs, rates = softmax(logits), softmax(exponent * logits)
    return Predictions.from_probs(outputs, drawn(rates, rng)), rates


def softmax(logits):
    power = np.exp(logits - logits.max(axis=1, keepdims=True))
    return power / power.sum(axis=1, keepdims=True)


def bin_error(preds, rates, binning=None):
    """Total variation of mean outputs and mean true rates over the bins of the canonical lens."""
    sample = Canonical().sample(preds)
    partition = (binning or KDTree()).partition(sample)
    bins = VectorBins.of(sample, partition)
    truth = np.stack([np.bincount(partition.bin_of, rate, partition.count) for rate in rates.T], axis=1)
    return float(np.abs(truth - bins.output_sum).sum() / 2 / len(preds))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("classes", "exponent", "n"), [(2, 0.6, 300), (10, 1.0, 150), (10, 0.5, 300), (50, 1.4, 300), (100, 0.5, 200)]
)
def test_the_interval_holds_the_error_of_its_bins_and_is_not_too_long(classes, exponent, n):
    """60 datasets at 90 %: misses compatible with 5 to 12 %, debiased values within 0.03 of the truth on average."""
    misses, off, trials = 0, [], datasets(60)
    for seed in range(trials):
        preds, rates = world(classes, exponent, n, np.random.default_rng([seed, 31]))
        truth = bin_error(preds, rates)
        interval = GeneralizedECE(level=0.9, rng=seed)(preds).interval
        misses += not interval.low <= truth + 1e-12 <= interval.high + 1e-12
        off.append(GeneralizedECE(level=None, debiased=True)(preds).value - truth)
    assert binomtest(misses, trials, 0.12, alternative="greater").pvalue > 0.005, misses
    assert binomtest(misses, trials, 0.05, alternative="less").pvalue > 0.005, misses
    assert abs(np.mean(off)) < 0.03


@pytest.mark.parametrize("exponent", [0.5, 1.6])
def test_over_and_underconfidence_are_found_among_many_events(exponent):
    """A model of 50 classes that is too modest shows less than chance; the test is two-sided."""
    for seed in range(5):
        preds, rates = world(50, exponent, 400, np.random.default_rng(seed))
        estimate = GeneralizedECE(rng=seed)(preds)
        assert estimate.p_value <= 0.02
        assert 0 < estimate.interval.low < bin_error(preds, rates) < estimate.value
        if exponent > 1:
            assert estimate.value < estimate.chance


@pytest.mark.slow
def test_the_test_keeps_its_level():
    """400 calibrated datasets of 12 classes: rejections at 5 % between 3 and 7 %, within chance."""
    rejected, trials = 0, datasets(400)
    for seed in range(trials):
        preds, _ = world(12, 1.0, 150, np.random.default_rng([seed, 5]))
        rejected += GeneralizedECE(rng=seed)(preds).p_value <= 0.05
    assert binomtest(rejected, trials, 0.07, alternative="greater").pvalue > 0.01, rejected
    assert binomtest(rejected, trials, 0.03, alternative="less").pvalue > 0.01, rejected


@pytest.mark.slow
def test_clusters_keep_level_and_coverage():
    """120 datasets of 100 clusters of 6 alike rows, four classes: calibrated ones are rejected in 3 to 8 %, within chance."""
    rejected, blind, trials = 0, 0, datasets(120)
    for seed in range(trials):
        rng = np.random.default_rng([seed, 8])
        logits = np.repeat(1.5 * rng.standard_normal((100, 4)), 6, axis=0) + 0.2 * rng.standard_normal((600, 4))
        rates = softmax(logits)
        uniform = np.where(rng.random(600) < 0.8, np.repeat(rng.random(100), 6), rng.random(600))
        labels = np.minimum((uniform[:, None] > rates.cumsum(axis=1)).sum(axis=1), 3)
        preds = Predictions.from_probs(rates, labels, clusters=np.repeat(np.arange(100), 6))
        rejected += GeneralizedECE(rng=seed)(preds).p_value <= 0.05
        if seed < 20:
            blind += GeneralizedECE(rng=seed)(replace(preds, clusters=None)).p_value <= 0.05
    assert binomtest(rejected, trials, 0.08, alternative="greater").pvalue > 0.01, rejected
    assert binomtest(rejected, trials, 0.03, alternative="less").pvalue > 0.01, rejected
    assert blind > 10


def test_counts_are_repeated_rows():
    preds = simulated(200, 4)
    counts = np.random.default_rng(0).integers(1, 4, 200).astype(float)
    estimator = GeneralizedECE(lens=TopK(2), binning=KDTree(0.1))
    counted = estimator(replace(preds, weights=counts))
    repeated = estimator(preds.take(np.repeat(np.arange(200), counts.astype(int))))
    assert counted.value == pytest.approx(repeated.value, abs=1e-12)
    assert counted.chance == pytest.approx(repeated.chance, rel=0.05)
    assert counted.interval.low == pytest.approx(repeated.interval.low, abs=0.01)
    assert counted.interval.high == pytest.approx(repeated.interval.high, abs=0.01)


def test_fitted_outputs_find_exponent_and_offsets_and_leave_a_calibrated_model_alone():
    rng = np.random.default_rng(3)
    logits = rng.standard_normal((20_000, 6)) * 2
    outputs = softmax(logits)
    right = Predictions.from_probs(outputs, drawn(outputs, rng))
    np.testing.assert_allclose(fitted_outputs(Canonical().sample(right)).T, outputs, atol=0.02)
    rates = softmax(0.6 * logits + np.array([0, 0, 0, 0, 0.8, -0.5]))
    wrong = Predictions.from_probs(outputs, drawn(rates, rng))
    np.testing.assert_allclose(fitted_outputs(Canonical().sample(wrong)).T, rates, atol=0.03)


def test_an_event_never_seen_gets_no_infinite_offset():
    rng = np.random.default_rng(4)
    outputs = rng.dirichlet([1, 1, 1], 500)
    labels = np.where(outputs[:, 0] > outputs[:, 1], 0, 1)
    fitted = fitted_outputs(Canonical().sample(Predictions.from_probs(outputs, labels)))
    assert np.isfinite(fitted).all()
    assert fitted[2].mean() < 0.1


@pytest.mark.parametrize("norm", [1, 2, np.inf])
@pytest.mark.parametrize("distance", [TotalVariation(), Lp(2), ClassWeighted([1, 2, 3, 1])], ids=str)
def test_along_the_true_direction_the_error_is_found_without_bias(norm, distance):
    """With the true rates as fitted outputs the mean over redrawn labels is the true error, however small the bins."""
    rng = np.random.default_rng(6)
    preds, rates = world(4, 0.5, 400, rng)
    sample = Canonical().sample(preds)
    partition = KDTree(0.05).partition(sample)
    results, spread = [], []
    for _ in range(150):
        again = replace(sample, outcomes=drawn(rates, rng))
        bins = VectorBins.of(again, partition)
        binned = BinnedSample(again, partition, bins, distance, norm, 99)
        vars(binned)["fitted"] = rates.T
        error, slopes = binned.directed
        results.append(error)
        spread.append(binned._standard_error(slopes))
    truth = np.stack([np.bincount(partition.bin_of, rate, partition.count) for rate in rates.T], axis=1) / bins.safe
    far = distance.between(truth - bins.mean_output, truth, 0)
    error = far.max() if norm == np.inf else (bins.share @ far**norm) ** (1 / norm)
    assert np.mean(results) == pytest.approx(error, abs=4 * np.std(results) / np.sqrt(150))
    assert np.mean(spread) == pytest.approx(np.std(results), rel=0.2)


def test_credit_for_bias_is_that_of_evenly_spread_gaps():
    """Gaps of x standard errors in every cell show chance * m(x) / m(0); the other way round gives x back."""
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(400_000)
    for x in (0.5, 1.5, 4.0):
        drawn = np.abs(noise + x).mean()
        assert largest_error(drawn, float(np.sqrt(2 / np.pi))) == pytest.approx(x, abs=0.02)
    assert largest_error(0.3, 0.0) == 0.3
    assert largest_error(0.1, 0.2) == 0.0


def test_an_interval_of_a_debiased_value_need_not_reach_the_biased_one():
    preds, rates = world(60, 0.7, 300, np.random.default_rng(1))
    plain, freed = GeneralizedECE()(preds), GeneralizedECE(debiased=True)(preds)
    truth = bin_error(preds, rates)
    assert freed.interval.low == plain.interval.low
    assert freed.interval.low < truth < freed.interval.high < plain.interval.high
    assert abs(freed.value - truth) < 0.1 < plain.value - truth


def test_the_p_value_is_the_rank_of_the_rarer_statistic():
    redrawn = np.arange(99.0), np.arange(99) / 1000
    assert joint_p_value(redrawn, (200.0, 0.0)) == pytest.approx(1 / 100, abs=0.011)
    assert joint_p_value(redrawn, (-1.0, 5.0)) <= 0.03
    assert joint_p_value(redrawn, (-1.0, 0.0)) == 1.0


def test_one_row_one_bin_and_outputs_of_0_and_1_have_an_interval():
    for probs, labels in (([[0.2, 0.3, 0.5]], [2]), ([[1.0, 0.0, 0.0]] * 20, [0] * 20), ([[1.0, 0, 0]] * 20, [1] * 20)):
        estimate = GeneralizedECE(level=0.9)(Predictions.from_probs(np.array(probs), labels))
        assert 0 <= estimate.interval.low <= estimate.value <= estimate.interval.high <= 1
        assert np.isfinite(estimate.chance)
    assert estimate.value == 1
    assert estimate.p_value <= 0.01
    assert 0.85 < estimate.interval.low < 0.96  # 20 misses of 20


def test_binnings_along_one_probability_agree_with_two_events():
    rng = np.random.default_rng(2)
    p = rng.random(500)
    preds = Predictions.from_probs(p, (rng.random(500) < p**2).astype(int))
    estimate = GeneralizedECE(lens=OneClass(1), binning=EqualMass(10), level=0.9)(preds)
    assert estimate.interval.low > 0.1
    assert estimate.interval.high - estimate.interval.low < 0.1


@pytest.mark.parametrize(("rate", "n", "truth"), [(0.30, 60, 0.30), (0.45, 200, 0.45), (0.33, 100, 0.33)])
def test_the_interval_distance_holds_its_truth(rate, n, truth):
    """200 datasets at 90 %, outputs of 0.2 and outcomes of another rate: misses compatible with at most 10 %."""
    misses = 0
    for seed in range(200):
        outcomes = np.random.default_rng([seed, n]).random(n) < rate
        preds = Predictions.from_probs(np.full(n, 0.2), outcomes.astype(int))
        estimator = GeneralizedECE(lens=OneClass(1), distance=InterInterval(0, 0.33), level=0.9)
        interval = estimator(preds).interval
        misses += not interval.low <= max(truth - 0.33, 0.0) + 1e-12 <= interval.high + 1e-12
    assert binomtest(misses, 200, 0.1, alternative="greater").pvalue > 0.001, misses
