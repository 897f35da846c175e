"""A classifier and its recalibrator, cross-fitted: no output comes from a model that saw the row."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from truecal.errors import InputError
from truecal.recalibration import BetaCalibration, PlattScaling, RecalibratedClassifier, TemperatureScaling


def draw(n: int = 600, classes: int = 2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 8))
    X[:, 4:] = X[:, :4] + 0.1 * rng.normal(size=(n, 4))  # redundant features make naive Bayes overconfident
    value = X[:, :classes] + rng.gumbel(size=(n, classes))
    return X, np.array(["b", "a", "c"])[value.argmax(axis=1)]


def test_an_ensemble_is_the_mean_over_folds() -> None:
    X, y = draw()
    fitted = RecalibratedClassifier(GaussianNB(), BetaCalibration(clip=1e-9), cv=3).fit(X, y)
    each = []
    for train, test in StratifiedKFold(3).split(X, y):
        model = GaussianNB().fit(X[train], y[train])
        curve = BetaCalibration(clip=1e-9, classes=["a", "b"]).fit(model.predict_proba(X[test]), y[test])
        each.append(curve.predict_proba(model.predict_proba(X)))
    assert_allclose(fitted.predict_proba(X), np.mean(each, axis=0))
    assert fitted.classes_.tolist() == ["a", "b"]
    assert set(fitted.predict(X)) == {"a", "b"}
    assert_allclose(clone(fitted).fit(X, y).predict_proba(X), fitted.predict_proba(X))


def test_a_single_map_for_a_model_of_all_rows() -> None:
    X, y = draw(600, 3)
    fitted = RecalibratedClassifier(GaussianNB(), TemperatureScaling(input="probs"), cv=4, ensemble=False).fit(X, y)
    outputs = np.empty((600, 3))
    for train, test in StratifiedKFold(4).split(X, y):
        outputs[test] = GaussianNB().fit(X[train], y[train]).predict_proba(X[test])
    by_hand = TemperatureScaling(input="probs", classes=["a", "b", "c"]).fit(outputs, y)
    assert_allclose(fitted.recalibrator_.temperature_, by_hand.temperature_)
    whole = GaussianNB().fit(X, y)
    assert_array_equal(fitted.predict_proba(X), fitted.recalibrator_.predict_proba(whole.predict_proba(X)))


def test_it_helps_on_new_rows() -> None:
    X, y = draw(1500)
    plain = log_loss(y[900:], GaussianNB().fit(X[:900], y[:900]).predict_proba(X[900:]))
    fixed = RecalibratedClassifier(GaussianNB(), BetaCalibration(clip=1e-9), cv=5).fit(X[:900], y[:900])
    assert log_loss(y[900:], fixed.predict_proba(X[900:])) < plain - 0.05
    scores = cross_val_score(fixed, X, y, scoring="neg_log_loss", cv=2)
    assert (scores > -0.7).all()


def test_groups_stay_on_one_side() -> None:
    """Four copies of every row: a nearest neighbour remembers them unless they stay together."""
    X, y = draw(150)
    rows = np.repeat(np.arange(150), 4)
    memory = RecalibratedClassifier(KNeighborsClassifier(1), PlattScaling(), cv=3, ensemble=False)
    leaky = memory.fit(X[rows], y[rows]).recalibrator_.maps_[0].slope
    honest = clone(memory).fit(X[rows], y[rows], groups=rows).recalibrator_.maps_[0].slope
    assert honest < 0.5 * leaky
    split = RecalibratedClassifier(GaussianNB(), PlattScaling(), cv=GroupKFold(3)).fit(X[rows], y[rows], groups=rows)
    assert len(split.folds_) == 3


def test_refusals() -> None:
    X, y = draw(60)
    with pytest.raises(InputError, match="there are no folds; pass cv=5"):
        RecalibratedClassifier(GaussianNB().fit(X, y), PlattScaling()).fit(X, y, groups=np.arange(60))
    with pytest.raises(InputError, match="2 groups cannot fill cv=5 folds"):
        RecalibratedClassifier(GaussianNB(), PlattScaling(), cv=5).fit(X, y, groups=np.arange(60) % 2)
    with pytest.raises(InputError, match="'a' has fewer than cv=5 rows"):
        RecalibratedClassifier(GaussianNB(), PlattScaling(), cv=5).fit(X[:5], ["b", "b", "b", "b", "a"])
    with pytest.raises(InputError, match="reads predict_proba, which LinearSVC does not have"):
        RecalibratedClassifier(LinearSVC(), PlattScaling(), cv=3).fit(X, y)
    with pytest.raises(InputError, match="KNeighborsClassifier takes no sample_weight"):
        RecalibratedClassifier(KNeighborsClassifier(), PlattScaling(), cv=3).fit(X, y, np.ones(60))


def test_equal_weights_change_nothing() -> None:
    X, y = draw()
    weighted = RecalibratedClassifier(LogisticRegression(), PlattScaling(input="logits"), cv=3).fit(X, y, np.ones(600))
    plain = RecalibratedClassifier(LogisticRegression(), PlattScaling(input="logits"), cv=3).fit(X, y)
    assert_allclose(weighted.predict_proba(X), plain.predict_proba(X), atol=1e-9)
