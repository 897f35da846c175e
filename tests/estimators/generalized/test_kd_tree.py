"""The k-d tree: equal to recursion, and indifferent to the order of rows and classes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.estimators.generalized import naive
from tests.groups.data import simulated
from truecal.errors import InputError
from truecal.estimators import KDTree
from truecal.estimators.generalized.binning import grow
from truecal.lenses import Canonical, TopK
from truecal.predictions import Predictions


def bins_of(vector, fraction):
    return KDTree(fraction).partition(vector).bin_of


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("fraction", [0.01, 0.1, 0.37, 1.0])
def test_leaves_equal_the_recursive_definition(classes, fraction):
    vector = Canonical().sample(simulated(211, classes, seed=classes))
    assert naive.same_sets(bins_of(vector, fraction), naive.kd_tree(vector.columns.T, fraction))


@given(
    arrays(np.int64, st.tuples(st.integers(1, 40), st.integers(2, 4)), elements=st.integers(0, 3)).filter(
        lambda a: (a.sum(axis=1) > 0).all()
    ),
    st.sampled_from([0.02, 0.1, 0.5, 1.0]),
)
def test_leaves_equal_the_definition_on_duplicates_and_constant_columns(counts, fraction):
    probs = counts / counts.sum(axis=1, keepdims=True)
    vector = Canonical().sample(Predictions.from_probs(probs, np.zeros(len(probs), int)))
    assert naive.same_sets(bins_of(vector, fraction), naive.kd_tree(probs, fraction))


def sets(bin_of, names):
    return {frozenset(names[bin_of == b].tolist()) for b in np.unique(bin_of)}


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.03, 0.1, 0.4]))
def test_the_order_of_rows_and_of_classes_does_not_matter(seed, fraction):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(4) * 0.5, 150)
    expected = sets(
        bins_of(Canonical().sample(Predictions.from_probs(probs, np.zeros(150, int))), fraction), np.arange(150)
    )
    rows, classes = rng.permutation(150), rng.permutation(4)
    shuffled = Canonical().sample(Predictions.from_probs(probs[rows][:, classes], np.zeros(150, int)))
    assert sets(bins_of(shuffled, fraction), rows) == expected


def test_the_order_of_rows_does_not_matter_when_a_value_equals_the_mean():
    probs = np.repeat([0.1, 0.2, 0.3], 33)
    for seed in range(20):
        rows = np.random.default_rng(seed).permutation(99)
        shuffled = TopK(1).sample(Predictions.from_probs(1 - probs[rows], np.ones(99, int)))
        result = sets(bins_of(shuffled, 1.0), probs[rows])
        assert result == {frozenset({0.3}), frozenset({0.1, 0.2})}


def test_equal_rows_stay_together_and_nothing_is_split_without_end():
    same = Canonical().sample(Predictions.from_probs(np.full((500, 3), 1 / 3), np.zeros(500, int)))
    assert KDTree(0.001).partition(same).count == 1
    one = Canonical().sample(Predictions.from_probs([[0.2, 0.8]], [1]))
    assert KDTree(0.5).partition(one).count == 1


def test_a_tree_deeper_than_the_call_stack():
    steps = np.arange(1800.0)
    weights = 10.0 ** (
        0.322 * steps - 290
    )  # the largest value outweighs all others, so that every split takes off one row
    tree = grow(steps[None] / 1800, weights, 0)
    assert tree.depth > 1700
    assert len(np.unique(tree.leaf_of)) == 1800


def test_a_pruned_tree_is_the_tree_of_the_larger_minimum():
    vector = Canonical().sample(simulated(1000, 5))
    fine = KDTree(0.005).tree(vector)
    for fraction in (0.01, 0.03, 0.1, 0.5, 1.0):
        whole = KDTree(fraction)
        pruned, grown = fine.pruned(whole.minimum(vector)), whole.partition(vector)
        assert pruned.count == grown.count
        assert sets(pruned.bin_of, np.arange(1000)) == sets(grown.bin_of, np.arange(1000))


def test_no_leaf_that_could_be_split_reaches_the_minimum():
    vector = Canonical().sample(simulated(2000, 5))
    sizes = np.bincount(bins_of(vector, 0.05))
    assert sizes.max() < 100
    assert sizes.sum() == 2000


@pytest.mark.parametrize("fraction", [0.02, 0.2])
def test_a_row_of_weight_three_is_three_rows(fraction):
    preds = simulated(200, 4)
    weights = np.random.default_rng(1).integers(1, 4, 200)
    light = Canonical().sample(replace(preds, weights=weights.astype(float)))
    repeated = Canonical().sample(preds.take(np.repeat(np.arange(200), weights)))
    ours = bins_of(light, fraction)
    assert naive.same_sets(bins_of(repeated, fraction), naive.kd_tree(repeated.columns.T, fraction))
    assert sets(bins_of(repeated, fraction), np.repeat(np.arange(200), weights)) == sets(ours, np.arange(200))


def test_importance_weights_matter_only_in_ratio():
    preds = simulated(300, 4)
    weights = np.random.default_rng(1).random(300)
    first, second = (Canonical().sample(replace(preds, weights=w)) for w in (weights, weights * 7.3))
    assert (bins_of(first, 0.1) == bins_of(second, 0.1)).all()


def test_single_precision_gives_the_bins_of_the_same_numbers():
    preds = simulated(500, 4)
    single = preds.probs.astype(np.float32)
    narrow = Canonical().sample(Predictions.from_probs(single, preds.labels))
    wide = Canonical().sample(Predictions.from_probs(single.astype(np.float64), preds.labels))
    assert (bins_of(narrow, 0.05) == bins_of(wide, 0.05)).all()


@pytest.mark.parametrize("fraction", [0, -0.1, 1.5, float("nan"), "a", True])
def test_bad_fractions_are_refused(fraction):
    with pytest.raises(InputError, match="fraction must be a number above 0 and at most 1"):
        KDTree(fraction)
