"""Lifting maps of one score to many classes, and the scores they read."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy.special import logsumexp

from truecal.errors import InputError, TruecalWarning
from truecal.recalibration import HistogramBinning, IsotonicCalibration, PlattScaling, ScalingBinning
from truecal.recalibration.contract import class_scores
from truecal.recalibration.score_maps import renormalize, set_confidence

Array = NDArray[np.float64]


def draw(n: int = 500, classes: int = 4, seed: int = 0) -> tuple[Array, NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(classes, 0.5), n)
    return probs, (rng.random((n, 1)) > probs.cumsum(axis=1)).sum(axis=1).clip(0, classes - 1)


def test_one_vs_rest_is_a_binary_fit_per_class() -> None:
    probs, labels = draw()
    raw = np.column_stack(
        [IsotonicCalibration().fit(probs[:, k], labels == k).predict_proba(probs[:, k])[:, 1] for k in range(4)]
    )
    assert_array_equal(IsotonicCalibration(normalize=False).fit(probs, labels).predict_proba(probs), raw)
    assert_allclose(
        IsotonicCalibration().fit(probs, labels).predict_proba(probs), raw / raw.sum(axis=1, keepdims=True), atol=1e-15
    )


def test_a_row_of_zeros_becomes_uniform() -> None:
    assert_allclose(
        renormalize(np.array([[0.0, 0.0, 0.0, 0.0], [0.2, 0.2, 0.0, 0.4]]), 4), [[0.25] * 4, [0.25, 0.25, 0, 0.5]]
    )


def test_top_label_is_a_binary_fit_of_being_right() -> None:
    probs, labels = draw()
    top = probs.argmax(axis=1)
    confidence = PlattScaling().fit(probs.max(axis=1), labels == top).predict_proba(probs.max(axis=1))[:, 1]
    fixed = PlattScaling(multiclass="top-label").fit(probs, labels).predict_proba(probs)
    assert_allclose(fixed[np.arange(500), top], confidence, rtol=1e-12)
    assert_array_equal(fixed.argmax(axis=1)[confidence > 0.25], top[confidence > 0.25])
    logits = np.log(probs) + np.random.default_rng(1).normal(size=(500, 1))
    odds = np.log(probs.max(axis=1) / (1 - probs.max(axis=1)))
    confidence = PlattScaling(input="logits").fit(odds, labels == top).predict_proba(odds)[:, 1]
    fixed = PlattScaling(input="logits", multiclass="top-label").fit(logits, labels).predict_proba(logits)
    assert_allclose(fixed[np.arange(500), top], confidence, atol=1e-9)


@pytest.mark.parametrize("maker", [HistogramBinning, ScalingBinning])
def test_binned_top_labels_take_few_values(maker: type[HistogramBinning]) -> None:
    probs, labels = draw()
    fixed = maker(bins=6, multiclass="top-label").fit(probs, labels).predict_proba(probs)
    assert len(np.unique(fixed.max(axis=1))) <= 6


@given(
    st.integers(3, 8),
    st.integers(0, 10_000),
    st.sampled_from([0.05, 1.0]),
    st.lists(st.floats(0, 1), min_size=1, max_size=10),
)
@settings(max_examples=200, deadline=None)
def test_confidence_is_exact_and_top_stays_on_top(classes: int, seed: int, spread: float, values: list[float]) -> None:
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(classes, spread), len(values))
    probs[rng.random(probs.shape) < 0.2] = 0.0
    probs[:, 0] += probs.sum(axis=1) == 0
    probs /= probs.sum(axis=1, keepdims=True)
    top, confidence = probs.argmax(axis=1), np.array(values)
    after = set_confidence(probs, top[:, None] == np.arange(classes), confidence[:, None], classes)
    rows = np.arange(len(values))
    assert_array_equal(after[rows, top], confidence)
    assert (after >= 0).all()
    assert_allclose(after.sum(axis=1), 1, atol=1e-12)
    possible = confidence > 1 / classes + 1e-12
    assert_array_equal(after.argmax(axis=1)[possible], top[possible])
    others = np.arange(classes) != top[:, None]
    for row in rows:  # the order of the other classes is kept
        before, now = probs[row][others[row]], after[row][others[row]]
        assert (np.diff(now[np.argsort(before, kind="stable")]) >= -1e-15).all()


def test_when_nothing_stands_in_the_way_the_rest_is_shared_in_proportion() -> None:
    first = np.array([[True, False, False]])
    after = set_confidence(np.array([[0.5, 0.3, 0.2]]), first, np.array([[0.8]]), 3)
    assert_allclose(after, [[0.8, 0.12, 0.08]])
    evened = set_confidence(np.array([[0.5, 0.45, 0.05]]), first, np.array([[0.4]]), 3)
    assert_allclose(evened, [[0.4, 0.4, 0.2]])
    assert evened[0, 0] > evened[0, 1]


def test_an_answer_that_is_always_right_is_warned_of() -> None:
    probs, _ = draw()
    with pytest.warns(TruecalWarning, match="the largest output is always right"):
        fixed = PlattScaling(multiclass="top-label").fit(probs, probs.argmax(axis=1))
    assert_allclose(fixed.predict_proba(probs).max(axis=1), 501 / 502)


@given(st.integers(0, 1000), st.integers(3, 6), st.sampled_from([1.0, 30.0, 500.0]))
@settings(max_examples=60, deadline=None)
def test_log_odds_are_exact_at_any_size(seed: int, classes: int, size: float) -> None:
    logits = np.random.default_rng(seed).normal(size=(20, classes)) * size
    naive = np.column_stack([logits[:, k] - logsumexp(np.delete(logits, k, axis=1), axis=1) for k in range(classes)])
    assert_allclose(class_scores(logits, "logits", classes), naive, rtol=1e-9, atol=1e-9)


def test_choices_are_checked() -> None:
    probs, labels = draw(50)
    with pytest.raises(InputError, match="multiclass must be 'one-vs-rest' or 'top-label' or 'shared', not 'ovr'"):
        PlattScaling(multiclass="ovr").fit(probs, labels)
    with pytest.raises(InputError, match="normalize must be True or False"):
        PlattScaling(normalize="yes").fit(probs, labels)
