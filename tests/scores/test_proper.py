"""Scores against scikit-learn and hand calculation."""

import numpy as np
import pytest
from sklearn import metrics

import truecal as tc
from tests import oracles

RNG = np.random.default_rng(12)
PROBS = RNG.dirichlet(np.full(5, 0.5), 300)
LABELS = np.array([RNG.choice(5, p=row) for row in PROBS])
WEIGHTS = RNG.random(300)
P = RNG.random(400)
Y = (RNG.random(400) < P**1.5).astype(int)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_proper_scores_equal_scikit_learn(weights):
    preds = tc.Predictions.from_probs(PROBS, LABELS, weights=weights)
    assert tc.scores.log_loss(preds) == pytest.approx(metrics.log_loss(LABELS, PROBS, sample_weight=weights))
    one_hot = np.eye(5)[LABELS]
    expected = np.average(((PROBS - one_hot) ** 2).sum(axis=1), weights=weights)
    assert tc.scores.brier(preds) == pytest.approx(expected)
    right = metrics.accuracy_score(LABELS, PROBS.argmax(axis=1), sample_weight=weights)
    assert tc.scores.accuracy(preds) == pytest.approx(right)
    assert tc.scores.mean_confidence(preds) == pytest.approx(np.average(PROBS.max(axis=1), weights=weights))
    result = tc.scores.summary(preds)
    assert result.overconfidence == pytest.approx(tc.scores.mean_confidence(preds) - right)


def test_binary_scores():
    preds = tc.Predictions.from_probs(P, Y)
    assert tc.scores.log_loss(preds) == pytest.approx(metrics.log_loss(Y, P))
    assert tc.scores.brier(preds) == pytest.approx(metrics.brier_score_loss(Y, P))
    two = tc.Predictions.from_probs(np.stack([1 - P, P], axis=1), Y)
    assert tc.scores.brier(two) == pytest.approx(2 * tc.scores.brier(preds))


def test_an_impossible_label_costs_infinity():
    assert tc.scores.log_loss(tc.Predictions.from_probs([1.0, 0.5], [0, 1])) == np.inf


def test_the_decomposition_adds_up():
    profile = tc.profile.Profile.from_arrays(P, Y)
    d = tc.scores.decompose(profile)
    assert d.brier == pytest.approx(metrics.brier_score_loss(Y, P))
    assert d.miscalibration - d.discrimination + d.uncertainty == pytest.approx(d.brier)
    assert d.miscalibration == pytest.approx(oracles.isotonic(P, Y))
    assert d.uncertainty == pytest.approx(Y.mean() * (1 - Y.mean()))


def test_batches_are_refused_by_one_dataset_summaries():
    batch = tc.profile.Profile.from_arrays([[0.1, 0.2], [0.3, 0.4]], [[0, 1], [1, 0]])
    with pytest.raises(tc.InputError, match="one dataset"):
        tc.scores.decompose(batch)
