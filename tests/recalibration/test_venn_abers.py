"""Venn-Abers: equal to two isotonic fits per row, valid, and merged over folds as the paper does."""

from importlib.metadata import version

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from truecal.errors import InputError
from truecal.recalibration import RecalibratedClassifier, VennAbers

Array = NDArray[np.float64]


def with_row(s: Array, y: Array, w: Array, score: float, outcome: int) -> float:
    """The isotonic fit at `score` with one row added, by the definition."""
    _, points = np.unique(np.append(s, score), return_inverse=True)
    weight = np.bincount(points, np.append(w, 1.0))
    ones = np.bincount(points, np.append(w * y, outcome))
    return float(isotonic_regression(ones / weight, weights=weight).x[points[-1]])


@pytest.mark.parametrize("digits", [1, 2, 15])
@pytest.mark.parametrize("weighted", [False, True])
def test_both_fits_by_definition(digits: int, weighted: bool) -> None:
    rng = np.random.default_rng(digits)
    for n in (2, 5, 30):
        s = np.round(rng.random(n), digits)
        y = (rng.random(n) < s).astype(float)
        y[:2] = 0, 1
        w = rng.integers(1, 4, n).astype(float) if weighted else np.ones(n)
        points = np.r_[s, rng.random(10), 0.0, 1.0]
        p0, p1 = VennAbers().fit(s, y, w).predict_interval(points)
        assert_allclose(p0, [with_row(s, y, w, float(x), 0) for x in points], atol=1e-12)
        assert_allclose(p1, [with_row(s, y, w, float(x), 1) for x in points], atol=1e-12)
        assert (p0 <= p1).all()


def test_the_package() -> None:
    peer = pytest.importorskip("venn_abers")
    rng = np.random.default_rng(0)
    s = rng.random(1000)
    y = (rng.random(1000) < s**2).astype(int)
    points = rng.random(500)
    theirs = peer.VennAbers()
    theirs.fit(np.column_stack([1 - s, s]), y)
    probs, both = theirs.predict_proba(np.column_stack([1 - points, points]))
    fitted = VennAbers().fit(s, y)
    # Version 1.4 of the package is itself off by 3e-8 in places; the exact answer is tested above.
    slack = 1e-7 if version("venn-abers").startswith("1.4") else 1e-8
    assert_allclose(np.column_stack(fitted.predict_interval(points)), both, rtol=0, atol=slack)
    assert_allclose(fitted.predict_proba(points), probs, rtol=0, atol=slack)


def test_the_probability_of_the_true_outcome_is_calibrated() -> None:
    """Of 500 datasets of 50 rows and one new row each: the selected p_y has the mean of the outcomes, in any half."""
    rng = np.random.default_rng(0)
    selected, outcomes = [], []
    for _ in range(500):
        s = rng.random(51)
        y = (rng.random(51) < s**3).astype(int)
        y[:2] = 0, 1
        p0, p1 = VennAbers().fit(s[:50], y[:50]).predict_interval(s[50:])
        selected.append(float(p1[0] if y[50] else p0[0]))
        outcomes.append(int(y[50]))
    p, y = np.array(selected), np.array(outcomes)
    for part in (p >= 0, p < np.median(p), p >= np.median(p)):
        count = int(part.sum())
        assert binomtest(int(y[part].sum()), count, float(p[part].mean())).pvalue > 0.01


def test_cross_venn_abers_is_the_geometric_mean_of_folds() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    crossed = RecalibratedClassifier(LogisticRegression(), VennAbers(), cv=4).fit(X, y)
    against, favour = np.ones(300), np.ones(300)
    for train, test in StratifiedKFold(4).split(X, y):
        model = LogisticRegression().fit(X[train], y[train])
        fitted = VennAbers().fit(model.predict_proba(X[test]), y[test])
        p0, p1 = fitted.predict_interval(model.predict_proba(X))
        against *= (1 - p0) ** 0.25
        favour *= p1**0.25
    assert_allclose(crossed.predict_proba(X)[:, 1], favour / (favour + against), atol=1e-12)


def test_an_interval_per_class() -> None:
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 200)
    labels = (rng.random((200, 1)) > probs.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    p0, p1 = VennAbers().fit(probs, labels).predict_interval(probs)
    one0, one1 = VennAbers().fit(probs[:, 1], labels == 1).predict_interval(probs[:, 1])
    assert p0.shape == p1.shape == (200, 3)
    assert_allclose([p0[:, 1], p1[:, 1]], [one0, one1])
    with pytest.raises(InputError, match='needs multiclass="one-vs-rest" or "shared"'):
        VennAbers(multiclass="top-label").fit(probs, labels).predict_interval(probs)
