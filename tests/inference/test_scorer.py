"""tc.scorer in scikit-learn's own tools."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import LinearSVC

import truecal as tc


def data(n=400, classes=2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = np.array(["cat", "dog", "fox"])[:classes][
        (X[:, 0] + rng.logistic(size=n) > 0).astype(int) + (classes > 2) * (X[:, 1] > 1)
    ]
    return X, y


@pytest.mark.parametrize("classes", [2, 3])
def test_cross_validation_scores_by_minus_the_error(classes):
    X, y = data(classes=classes)
    model = LogisticRegression()
    scores = cross_val_score(model, X, y, cv=[(np.arange(200), np.arange(200, 400))], scoring=tc.scorer(tc.BinnedECE()))
    probs = model.fit(X[:200], y[:200]).predict_proba(X[200:])
    mask = probs[:, 1] if classes == 2 else probs
    expected = tc.calibration_error(y[200:], mask, classes=list(model.classes_), estimator=tc.BinnedECE())
    assert scores.tolist() == [-float(expected)]
    assert scores[0] < 0


def test_a_grid_search_takes_the_better_calibrated_model():
    X, y = data(n=800)
    search = GridSearchCV(LogisticRegression(), {"C": [1e-4, 1.0]}, scoring=tc.scorer(), cv=3, n_jobs=2).fit(X, y)
    assert search.best_params_ == {"C": 1.0}


def test_the_metric_fits_make_scorer():
    X, y = data()
    result = make_scorer(tc.scorer().metric, response_method="predict_proba", greater_is_better=False)
    model = LogisticRegression().fit(X, y == "dog")
    assert result(model, X, y == "dog") == tc.scorer()(model, X, y == "dog") <= 0


def test_a_model_without_probabilities_is_refused_by_name():
    X, y = data()
    with pytest.raises(tc.InputError, match="LinearSVC has no probabilities"):
        tc.scorer()(LinearSVC().fit(X, y), X, y)
