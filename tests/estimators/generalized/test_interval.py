"""The interval of a generalized error: it holds the value, it holds the truth, and its deviation is that of resampled rows."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from tests.groups.data import drawn, simulated
from tests.simulations import datasets
from truecal.estimators import (
    ClassWeighted,
    EqualMass,
    EqualWidth,
    GeneralizedECE,
    InterInterval,
    KDTree,
    TotalVariation,
)
from truecal.estimators.generalized.binning import Partition, VectorBins
from truecal.lenses import Canonical, OneClass, TopK, TopLabel
from truecal.predictions import Predictions


@given(st.integers(1, 80), st.integers(0, 2**32 - 1), st.sampled_from([1, 2, np.inf]), st.booleans())
def test_the_interval_holds_the_value(n, seed, norm, weighted):
    weights = np.random.default_rng(seed).random(n) + 0.1 if weighted else None
    preds = simulated(n, 4, seed=seed, weights=weights)
    for lens, binning in ((TopK(2), KDTree(0.2)), (TopLabel(), EqualWidth(10)), (OneClass(1), EqualMass(5))):
        estimate = GeneralizedECE(lens=lens, binning=binning, norm=norm, replicates=40)(preds)
        assert 0 <= estimate.interval.low <= estimate.value <= estimate.interval.high
        assert np.isfinite(estimate.interval.high)


def test_the_same_seed_gives_the_same_interval_and_another_seed_another():
    preds = simulated(500, 4)
    first, again, other = (GeneralizedECE(rng=seed)(preds).interval for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert GeneralizedECE(level=None)(preds).interval is None


def test_a_higher_level_gives_a_wider_interval():
    preds = simulated(2000, 4)
    narrow, wide = (GeneralizedECE(level=level)(preds).interval for level in (0.8, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.parametrize(
    ("lens", "binning", "distance"),
    [
        (Canonical(), KDTree(1.0), TotalVariation()),  # bins so coarse that the outputs inside them vary much
        (TopK(2), KDTree(0.3), ClassWeighted([1, 2, 0])),
        (TopK(1), EqualWidth(4), InterInterval(0.2, 0.4)),
    ],
)
def test_the_deviation_is_that_of_rows_drawn_with_replacement(lens, binning, distance):
    vector = lens.sample(simulated(1500, 4))
    partition = binning.partition(vector)
    rng = np.random.default_rng(0)
    ours = GeneralizedECE(binning=binning, distance=distance).binned(vector).deviation()
    naive = []
    for _ in range(600):
        rows = rng.integers(0, len(vector), len(vector))
        again = VectorBins.of(vector.take(rows), Partition(partition.bin_of[rows], partition.count))
        naive.append(again.share @ distance.between(again.gap, again.mean_outcome, vector.event))
    assert ours == pytest.approx(np.std(naive), rel=0.12)


def binned(estimator, preds):
    return estimator.binned(estimator.own_lens(None).sample(preds))


def test_resamples_of_a_comparison_scatter_as_the_deviation_says():
    preds = simulated(600, 4)
    one = binned(GeneralizedECE(lens=TopK(2)), replace(preds, clusters=np.arange(600)))
    assert one.resample(2000, np.random.default_rng(0)).std() == pytest.approx(one.deviation(), rel=0.15)


def test_rows_that_repeat_in_a_cluster_widen_the_interval_as_fewer_rows_would():
    preds = simulated(300, 4)
    copies = preds.take(np.repeat(np.arange(300), 4))
    clustered = replace(copies, clusters=np.repeat(np.arange(300), 4))
    estimator = GeneralizedECE(lens=TopK(2), replicates=1500)
    single, blind, with_clusters = (binned(estimator, p).deviation() for p in (preds, copies, clustered))
    assert with_clusters == pytest.approx(single, rel=0.1)
    assert blind < 0.7 * single
    single, blind, with_clusters = (estimator(p) for p in (preds, copies, clustered))
    assert with_clusters.chance == pytest.approx(single.chance, rel=0.1)
    assert blind.chance == pytest.approx(single.chance / 2, rel=0.1)
    assert with_clusters.interval.high == pytest.approx(single.interval.high, rel=0.02)
    assert blind.interval.high < single.interval.high - 0.01
    assert with_clusters.p_value > blind.p_value


def test_clusters_that_a_selection_left_out_are_not_drawn():
    preds = simulated(300, 4, clusters=np.arange(300) // 3)
    part = preds.take(np.arange(150, 300))
    renamed = replace(part, clusters=part.clusters - 50)
    estimator = GeneralizedECE(lens=TopK(2), replicates=100)
    assert estimator(part).interval == estimator(renamed).interval


def test_equal_importance_weights_draw_like_no_weights():
    preds = simulated(500, 4)
    estimator = GeneralizedECE(lens=TopK(2), replicates=3000)
    plain, weighted = (replace(preds, weights=w) for w in (None, np.full(500, 0.5)))
    assert binned(estimator, weighted).deviation() == pytest.approx(binned(estimator, plain).deviation(), rel=1e-9)
    assert estimator(weighted).chance == pytest.approx(estimator(plain).chance, rel=0.03)


def test_chance_shrinks_with_the_square_root_of_the_rows():
    few, many = (GeneralizedECE(lens=TopK(2))(simulated(n, 4, calibrated=True)).chance for n in (500, 8000))
    assert few / many == pytest.approx(4, rel=0.15)


def truth_of(vector, partition, outcome_probs, distance=None):
    """The error of the bins' means when outcomes are replaced by their probabilities."""
    distance = TotalVariation() if distance is None else distance
    count = np.maximum(np.bincount(partition.bin_of, minlength=partition.count), 1)[:, None]
    outputs, outcomes = (
        np.stack([np.bincount(partition.bin_of, column, partition.count) for column in columns], axis=1) / count
        for columns in (vector.columns, outcome_probs)
    )
    share = np.bincount(partition.bin_of, minlength=partition.count) / len(vector)
    return float(share @ distance.between(outcomes - outputs, outcomes, vector.event))


@pytest.mark.slow
@pytest.mark.parametrize("strength", [0.0, 0.4])
@pytest.mark.parametrize(
    ("lens", "binning"), [(TopK(1), EqualWidth(15)), (TopK(2), KDTree(0.1)), (Canonical(), KDTree(0.1))]
)
def test_the_interval_holds_the_true_error_of_its_bins_as_often_as_it_says(strength, lens, binning):
    """60 datasets of 1000 rows; the number of misses must not contradict the level of 90 %."""
    missed, trials, n = 0, datasets(60), 1000
    for seed in range(trials):
        rng = np.random.default_rng([seed, 7])
        probs = rng.dirichlet(np.full(4, 0.5), n)
        truth = probs ** (1 - strength)
        truth /= truth.sum(axis=1, keepdims=True)
        preds = Predictions.from_probs(probs, drawn(truth, rng))
        estimate = GeneralizedECE(lens=lens, binning=binning, level=0.9, replicates=200, rng=seed)(preds)
        vector = lens.sample(preds)
        if isinstance(lens, TopK):
            order = np.argsort(-probs, axis=1, kind="stable")[:, : lens.k]
            top = np.take_along_axis(truth, order, axis=1)
            truth = np.column_stack([top, 1 - top.sum(axis=1)])
        actual = truth_of(vector, binning.partition(vector), truth.T)
        missed += not estimate.interval.low <= actual + 1e-12 <= estimate.interval.high + 1e-12
    assert binomtest(missed, trials, 0.1, alternative="greater").pvalue > 0.001
    if strength == 0.4:  # and it is not wide for nothing
        assert estimate.interval.low > 0.03


@pytest.mark.slow
def test_bins_of_a_dozen_rows_do_not_make_a_calibrated_model_look_bad():
    """100 calibrated datasets of 300 rows in some 40 bins; 0 must be in the 90 % interval as often as it says."""
    missed, trials = 0, datasets(100)
    for seed in range(trials):
        preds = simulated(300, 4, seed=seed, calibrated=True)
        estimate = GeneralizedECE(binning=KDTree(0.06), level=0.9, replicates=100, rng=seed)(preds)
        assert estimate.value > 0.08  # chance alone
        missed += estimate.interval.low > 0
    assert binomtest(missed, trials, 0.1, alternative="greater").pvalue > 0.001


@pytest.mark.parametrize("lens", [Canonical(), TopK(2)], ids=repr)
def test_a_debiased_value_is_nearer_to_the_truth_and_inside_its_interval(lens):
    """Eight calibrated datasets of 300 rows and six classes: the truth is 0."""
    values = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        probs = rng.dirichlet(np.ones(6), 300)
        labels = (rng.random((300, 1)) > probs.cumsum(axis=1)).sum(axis=1)
        preds = Predictions.from_probs(probs, labels)
        plain, freed = (GeneralizedECE(lens=lens, replicates=100, debiased=request)(preds) for request in (False, True))
        assert freed.value in freed.interval
        assert freed.p_value == plain.p_value
        values.append((plain.value, freed.value))
    plain, freed = np.mean(values, axis=0)
    assert freed < plain / 2
    alone = GeneralizedECE(lens=lens, replicates=100, debiased=True, level=None)(preds)
    assert alone.interval is None
    assert alone.value == pytest.approx(values[-1][1])
