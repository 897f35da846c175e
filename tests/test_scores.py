"""Scores against scikit-learn, statsmodels-free logistic fits and hand calculation."""

import numpy as np
import pytest
from sklearn import metrics
from sklearn.linear_model import LogisticRegression

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
    found = tc.scores.summary(preds)
    assert found.overconfidence == pytest.approx(tc.scores.mean_confidence(preds) - right)


def test_binary_scores():
    preds = tc.Predictions.from_probs(P, Y)
    assert tc.scores.log_loss(preds) == pytest.approx(metrics.log_loss(Y, P))
    assert tc.scores.brier(preds) == pytest.approx(metrics.brier_score_loss(Y, P))
    two = tc.Predictions.from_probs(np.stack([1 - P, P], axis=1), Y)
    assert tc.scores.brier(two) == pytest.approx(2 * tc.scores.brier(preds))


def test_an_impossible_label_costs_infinity():
    assert tc.scores.log_loss(tc.Predictions.from_probs([1.0, 0.5], [0, 1])) == np.inf


def test_the_decomposition_adds_up():
    profile = tc.Profile.from_arrays(P, Y)
    d = tc.scores.decompose(profile)
    assert d.brier == pytest.approx(metrics.brier_score_loss(Y, P))
    assert d.miscalibration - d.discrimination + d.uncertainty == pytest.approx(d.brier)
    assert d.miscalibration == pytest.approx(oracles.isotonic(P, Y))
    assert d.uncertainty == pytest.approx(Y.mean() * (1 - Y.mean()))


def test_the_line_is_the_logistic_fit():
    z = np.log(P / (1 - P))
    fit = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(z[:, None], Y)
    line = tc.scores.calibration_line(tc.Profile.from_arrays(P, Y))
    assert line.slope == pytest.approx(fit.coef_[0, 0], abs=1e-4)
    shifted = 1 / (1 + np.exp(-(z + line.intercept)))
    assert shifted.mean() == pytest.approx(Y.mean(), abs=1e-8)  # the offset model's likelihood equation
    assert line.left_out == 0


def test_the_line_says_what_it_left_out_and_when_it_does_not_exist():
    c, y = np.append(P, [0.0, 1.0, 1.0, 1.0]), np.append(Y, [0, 1, 1, 1])
    assert tc.scores.calibration_line(tc.Profile.from_arrays(c, y)).left_out == pytest.approx(4 / 404)
    separable = tc.Profile.from_arrays([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
    assert tc.scores.calibration_line(separable).slope == np.inf
    assert tc.scores.calibration_line(tc.Profile.from_arrays([0.1, 0.2, 0.8, 0.9], [1, 1, 0, 0])).slope == -np.inf
    with pytest.raises(tc.InputError, match="both outcomes"):
        tc.scores.calibration_line(tc.Profile.from_arrays([0.1, 0.2], [1, 1]))
    with pytest.raises(tc.InputError, match="two different scores"):
        tc.scores.calibration_line(tc.Profile.from_arrays([0.3, 0.3], [1, 0]))


def test_distances_of_the_curve():
    distance = tc.scores.curve_distance(tc.Profile.from_arrays(P, Y))
    curve = tc.RankSeries()(tc.Profile.from_arrays(P, Y)).curve
    gap = np.abs(curve.outcome - curve.score)
    assert distance.ici == pytest.approx(gap.mean())
    assert distance.e50 == pytest.approx(np.quantile(gap, 0.5, method="inverted_cdf"))
    assert distance.e90 == pytest.approx(np.quantile(gap, 0.9, method="inverted_cdf"))
    assert distance.emax == pytest.approx(gap.max())
    true_gap = np.abs(P**1.5 - P).mean()
    assert distance.ici == pytest.approx(true_gap, abs=0.04)


def test_batches_are_refused_by_one_dataset_summaries():
    batch = tc.Profile.from_arrays([[0.1, 0.2], [0.3, 0.4]], [[0, 1], [1, 0]])
    for summary in (tc.scores.decompose, tc.scores.calibration_line, tc.scores.curve_distance):
        with pytest.raises(tc.InputError, match="one dataset"):
            summary(batch)
