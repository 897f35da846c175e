"""Names of classes decide which column is which: when a map is applied, in scikit-learn's scorers, in JSON."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.metrics import get_scorer, log_loss, roc_auc_score

from truecal.errors import InputError, TruecalWarning
from truecal.predictions import Predictions
from truecal.recalibration import (
    BetaCalibration,
    PlattScaling,
    Recalibrator,
    TemperatureScaling,
    VectorScaling,
    VennAbers,
)

NAMES = np.array(["cat", "dog", "fox"])


def draw(n: int = 400, classes: int = 3):
    rng = np.random.default_rng(0)
    logits = 3 * rng.normal(size=(n, classes)) + np.arange(classes)
    return logits, (0.4 * logits + rng.gumbel(size=logits.shape)).argmax(axis=1)


def test_predictions_with_columns_in_another_order() -> None:
    logits, labels = draw()
    fitted = VectorScaling(input="probs", classes=NAMES.tolist()).fit(softmax(logits, axis=1), NAMES[labels])
    probs = softmax(logits, axis=1)
    plain = Predictions.from_probs(probs, NAMES[labels], classes=NAMES.tolist())
    turned = Predictions.from_probs(probs[:, [2, 0, 1]], NAMES[labels], classes=["fox", "cat", "dog"])
    assert_allclose(fitted.recalibrate(turned).probs, fitted.recalibrate(plain).probs[:, [2, 0, 1]], atol=1e-15)
    other = Predictions.from_probs(probs, np.array(["cat", "dog", "owl"])[labels], classes=["cat", "dog", "owl"])
    with pytest.raises(InputError, match=r"fitted on the classes 'cat', 'dog', 'fox', but .* 'owl' is not in both"):
        fitted.recalibrate(other)
    unnamed = Predictions.from_probs(probs, labels)
    assert_array_equal(fitted.recalibrate(unnamed).probs, fitted.recalibrate(plain).probs)


@pytest.mark.parametrize("kind", ["probs", "logits"])
def test_one_column_of_the_other_class(kind: str) -> None:
    logits, labels = draw(400, 2)
    difference = logits[:, 1] - logits[:, 0]
    names = np.array(["no", "yes"])
    p = 1 / (1 + np.exp(-difference))
    X = p if kind == "probs" else difference
    fitted = BetaCalibration(input=kind, classes=["no", "yes"]).fit(X, names[labels])
    plain = Predictions.from_probs(p, names[labels], classes=["no", "yes"])
    turned = Predictions.from_probs(1 - p, names[labels], classes=["yes", "no"])
    expected = fitted.recalibrate(plain, X).probs
    assert_allclose(
        fitted.recalibrate(turned, 1 - p if kind == "probs" else -difference).probs, 1 - expected, atol=1e-12
    )


def test_scorers_of_scikit_learn_with_classes_in_any_order() -> None:
    logits, labels = draw(400, 2)
    names = np.array(["yes", "no"])  # not in alphabetical order
    y = names[labels]
    fitted = TemperatureScaling(classes=["yes", "no"]).fit(logits, y)
    right = roc_auc_score(labels, logits[:, 1] - logits[:, 0])
    assert right > 0.6
    assert_allclose(get_scorer("roc_auc")(fitted, logits, y), right)
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert_allclose(fitted.predict_proba(logits)[:, 1], softmax(logits / fitted.temperature_, axis=1)[:, 0])
    many, labels = draw()
    order = np.array(["fox", "cat", "dog"])
    fixed = VectorScaling(classes=order.tolist()).fit(many, order[labels])
    plain = VectorScaling().fit(many, labels)
    assert_allclose(
        get_scorer("neg_log_loss")(fixed, many, order[labels]), -log_loss(labels, plain.predict_proba(many))
    )
    assert_array_equal(fixed.predict(many), order[plain.predict(many)])


def test_intervals_follow_the_classes() -> None:
    logits, labels = draw(400, 2)
    names = np.array(["yes", "no"])
    p0, p1 = VennAbers(input="logits").fit(logits, labels).predict_interval(logits)
    q0, q1 = VennAbers(input="logits", classes=["yes", "no"]).fit(logits, names[labels]).predict_interval(logits)
    assert_allclose([q0, q1], [1 - p1, 1 - p0])


def test_numpy_whole_numbers_in_json() -> None:
    logits, labels = draw()
    kinds = np.array([30, 10, 20])
    fitted = TemperatureScaling(classes=list(kinds)).fit(logits, kinds[labels])
    content = json.loads(fitted.to_json())
    assert content["classes"] == content["params"]["classes"] == [30, 10, 20]
    again = Recalibrator.from_json(fitted.to_json())
    assert again.classes_.tolist() == [10, 20, 30]
    assert_array_equal(again.predict_proba(logits), fitted.predict_proba(logits))


def test_probabilities_declared_as_logits_are_noticed() -> None:
    logits, labels = draw()
    with pytest.warns(TruecalWarning, match='sums to 1, as probabilities do; declare input="probs"'):
        fitted = TemperatureScaling().fit(softmax(logits, axis=1), labels)
    with pytest.warns(TruecalWarning, match="as probabilities do"):
        fitted.predict_proba(softmax(logits[:5], axis=1))
    with pytest.warns(TruecalWarning, match="every value lies in"):
        PlattScaling(input="logits").fit(softmax(logits, axis=1)[:, 0], labels == 0)
    fitted.predict_proba(logits)
    fitted.predict_proba(np.zeros((3, 3)))
