"""Lenses on vectors: the events, their order, ties, and what a grouping must be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.estimators.generalized import naive
from tests.groups.data import simulated
from truecal.errors import InputError
from truecal.estimators import BinnedECE
from truecal.groups.lower_ranks import first_ranks
from truecal.inference import measure
from truecal.lenses import Canonical, ClassWise, Grouping, OneClass, TopK, TopLabel
from truecal.predictions import Predictions, by_output


def one_hot(vector):
    return np.eye(vector.dimension)[vector.labels]


@given(
    arrays(np.int64, (12, 5), elements=st.integers(0, 3)).filter(lambda a: (a.sum(axis=1) > 0).all()),
    st.integers(1, 5),
    st.integers(0, 2**32 - 1),
)
def test_top_k_equals_its_definition_with_many_ties(counts, k, seed):
    probs = counts / counts.sum(axis=1, keepdims=True)
    labels = np.random.default_rng(seed).integers(0, 5, 12)
    preds = TopK(k).sample(Predictions.from_probs(probs, labels))
    outputs, outcomes = naive.top_k(probs, labels, k)
    np.testing.assert_allclose(preds.columns.T, outputs, atol=1e-15)
    assert (one_hot(preds) == outcomes).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_top_one_is_the_top_label(dtype):
    preds = simulated(500, 5)
    preds = Predictions.from_probs(preds.probs.astype(dtype), preds.labels)
    sample, profile = TopK(1).sample(preds), TopLabel()(preds)
    order = np.argsort(sample.probs[:, 0], kind="stable")
    assert (sample.probs[order, 0] == profile.scores[0]).all()
    assert (sample.labels == 0).sum() == profile.outcomes.sum()


def test_top_one_of_binary_predictions_is_the_top_label_also_at_one_half():
    preds = Predictions.from_probs([0.2, 0.5, 0.5, 0.9], [0, 1, 0, 1])
    assert TopK(1).sample(preds).labels.tolist() == [0, 0, 1, 0]
    assert TopK(1).sample(preds).probs[:, 0].tolist() == [0.8, 0.5, 0.5, 0.9]
    assert TopLabel()(preds).outcomes.sum() == 3
    assert TopK(2).sample(preds).probs.tolist() == [[0.8, 0.2], [0.5, 0.5], [0.5, 0.5], [0.9, 1 - 0.9]]


def test_a_narrowed_vector_is_that_of_the_smaller_k():
    preds = simulated(200, 6)
    wide = TopK(5).sample(preds)
    for k in (1, 2, 4, 5):
        part, sample = first_ranks(wide, k), TopK(k).sample(preds)
        assert (part.probs == sample.probs).all()
        assert (part.labels == sample.labels).all()
        assert (part.names, part.implied, part.event) == (sample.names, sample.implied, sample.event)


def test_grouping_adds_up_by_index_and_by_name():
    preds = simulated(300, 5)
    groups = {"a": [3, 0], "b": [1], "c": [2, 4]}
    sample = Grouping(groups).sample(preds)
    outputs, outcomes = naive.grouped(preds.probs, preds.labels, list(groups.values()))
    np.testing.assert_allclose(sample.probs, outputs, atol=1e-15)
    assert (one_hot(sample) == outcomes).all()
    names = ["v", "w", "x", "y", "z"]
    named = Predictions.from_probs(preds.probs, np.array(names)[preds.labels], classes=names)
    by_name = Grouping({"a": ["y", "v"], "b": ["w"], "c": ["x", "z"]}).sample(named)
    assert (by_name.probs == sample.probs).all()
    assert (by_name.labels == sample.labels).all()


def test_grouping_into_singletons_is_canonical():
    preds = simulated(300, 5)
    single, full = Grouping({f"only {i}": [i] for i in range(5)}).sample(preds), Canonical().sample(preds)
    assert (single.columns == full.columns).all()
    assert (single.labels == full.labels).all()


def test_grouping_keeps_weights_clusters_and_columns():
    preds = simulated(50, 4, weights=np.arange(1, 51), clusters=np.arange(50) // 5, columns={"x": np.arange(50)})
    grouped = Grouping({"a": [0, 1], "b": [2, 3]}).predictions(preds)
    assert grouped.classes == ("a", "b")
    assert (grouped.weights == preds.weights).all()
    assert (grouped.clusters == preds.clusters).all()
    assert (grouped.columns["x"] == preds.columns["x"]).all()


def test_grouping_of_binary_predictions_may_swap_the_names():
    preds = Predictions.from_probs([0.25, 0.75], [0, 1])
    grouped = Grouping({"yes": [1], "no": [0]}).predictions(preds)
    assert grouped.probs.tolist() == [[0.25, 0.75], [0.75, 0.25]]
    assert grouped.labels.tolist() == [1, 0]


def test_a_hierarchy_of_groupings_groups_the_groups():
    species = ["tiger", "cat", "wolf", "dog", "fox", "bee"]
    preds = simulated(100, 6)
    preds = Predictions.from_probs(preds.probs, np.array(species)[preds.labels], classes=species)
    genus = Grouping(
        {"Panthera": ["tiger"], "Felis": ["cat"], "Canis": ["wolf", "dog"], "Vulpes": ["fox"], "Apis": ["bee"]}
    )
    family = genus.coarser({"cats": ["Panthera", "Felis"], "dogs": ["Canis", "Vulpes"], "bees": ["Apis"]})
    kind = family.coarser({"mammals": ["cats", "dogs"], "insects": ["bees"]})
    np.testing.assert_allclose(family.sample(preds).probs[:, 1], preds.probs[:, 2:5].sum(axis=1))
    np.testing.assert_allclose(kind.sample(preds).probs[:, 0], preds.probs[:, :5].sum(axis=1))
    chained = genus.then(Grouping({"cats": ["Panthera", "Felis"], "dogs": ["Canis", "Vulpes"], "bees": ["Apis"]}))
    np.testing.assert_allclose(chained.sample(preds).probs, family.sample(preds).probs, atol=1e-15)


def test_a_grouping_then_the_top_label_works_wherever_a_lens_does():
    preds = simulated(400, 5)
    grouping = Grouping({"a": [0, 1], "b": [2], "c": [3, 4]})
    lens = grouping.then(TopLabel())
    outputs, outcomes = naive.grouped(preds.probs, preds.labels, [[0, 1], [2], [3, 4]])
    by_hand = Predictions.from_probs(outputs, outcomes.argmax(axis=1))
    ours = measure(preds, estimator=BinnedECE(10), lens=lens)
    assert ours.value == pytest.approx(measure(by_hand, estimator=BinnedECE(10), lens=TopLabel()).value, abs=1e-12)
    assert ours.lens == "top label of 3 groups"
    class_wise = measure(preds, estimator=BinnedECE(10), lens=grouping.then(ClassWise()))
    assert class_wise.value == pytest.approx(
        measure(by_hand, estimator=BinnedECE(10), lens=ClassWise()).value, abs=1e-12
    )


def test_a_selection_may_follow_the_grouping():
    preds = simulated(400, 5)
    lens = Grouping({"a": [0, 1], "b": [2, 3, 4]}).then(OneClass("a"), select=by_output("a", 0.5, 1))
    mask = preds.probs[:, :2].sum(axis=1) >= 0.5
    assert lens(preds).rows == mask.sum()
    assert "where probability of a in [0.5, 1]" in lens.describe(preds)


def test_every_lens_gives_probabilities_that_sum_to_one():
    preds = simulated(100, 5)
    for lens in (
        TopK(2),
        TopK(5),
        Canonical(),
        Grouping({"a": [0, 2], "b": [1, 3, 4]}),
        TopLabel(),
        OneClass(3),
        ClassWise(),
    ):
        observed, shares = list(lens.samples(preds)), lens.shares(preds)
        assert len(observed) == (1 if shares is None else len(shares))
        assert shares is None or shares.sum() == pytest.approx(1)
        for vector in observed:
            np.testing.assert_allclose(vector.columns.sum(axis=0), 1, atol=1e-12)
            assert vector.columns.min() >= 0
            assert len(vector.names) == vector.dimension == len(vector.columns)
            explicit = np.delete(vector.columns, [] if vector.implied is None else [vector.implied], axis=0)
            np.testing.assert_array_equal(explicit.T, vector.probs)


def test_inputs_are_left_as_they_were():
    probs = simulated(100, 5).probs.copy()
    before = probs.copy()
    probs.setflags(write=False)
    covered = Predictions.from_probs(probs, np.zeros(100, int))
    for lens in (TopK(3), Canonical(), Grouping({"a": [0, 2], "b": [1, 3, 4]})):
        lens.sample(covered)
    assert (probs == before).all()


BAD = [
    (lambda: TopK(6)(simulated(9, 5)), "k is 6, but there are only 5 classes"),
    (lambda: TopK(0), "k must be a whole number of at least 1, not 0"),
    (lambda: TopK(2.0), "k must be a whole number"),
    (lambda: TopK(True), "k must be a whole number"),
    (lambda: Grouping({"a": [0, 1], "b": [1, 2]}), "class 1 is in group 'a' and again in 'b'"),
    (lambda: Grouping({"a": []}), "group 'a' is empty"),
    (lambda: Grouping({"a": "cat"}), "group 'a' must list its classes"),
    (lambda: Grouping([[0], [1]]), "groups must be a mapping"),
    (lambda: Grouping({"a": [0, 1], "b": [2]})(simulated(9, 5)), "classes in no group: 3, 4"),
    (lambda: Grouping({"a": [0, 1], "b": [2, 9]})(simulated(9, 3)), "there is no class 9 among the 3 classes"),
    (lambda: Grouping({"a": [0, 1, 2]})(simulated(9, 3)), "all classes are in one group"),
    (lambda: Grouping({"a": [0], "b": [1]}).coarser({"c": ["a", "x"]}), "there is no group x"),
    (lambda: Grouping({"a": [0], "b": [1]}).coarser({"c": ["a"]}), "groups in no coarser group: b"),
    (lambda: Grouping({"a": [0], "b": [1]}).then("top"), "lens must be one of truecal's"),
    (lambda: measure(simulated(9, 3), lens="top"), "lens must be one of truecal's"),
]


@pytest.mark.parametrize(("wrong", "message"), BAD)
def test_bad_lenses_are_refused_in_one_sentence(wrong, message):
    with pytest.raises(InputError, match=message) as refused:
        wrong()
    assert "\n" not in str(refused.value)


def test_a_class_given_by_name_and_by_index_is_still_an_overlap():
    preds = Predictions.from_probs([[0.5, 0.3, 0.2]], ["x"], classes=["x", "y", "z"])
    with pytest.raises(InputError, match="classes in more than one group: x"):
        Grouping({"a": ["x", "y"], "b": [0, "z"]})(preds)


def test_long_lists_of_missing_classes_are_cut_short():
    with pytest.raises(InputError, match="and 8 more"):
        Grouping({"a": [0], "b": [1]})(simulated(9, 20))
