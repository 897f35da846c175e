"""Platt scaling and beta calibration against scikit-learn and a bounded optimiser; what happens without an optimum."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.calibration import _SigmoidCalibration
from sklearn.linear_model import LogisticRegression

from truecal.errors import InputError, TruecalWarning
from truecal.recalibration import BetaCalibration, PlattScaling
from truecal.recalibration.solvers import fit_rising_logistic
from truecal.special import fit_curve

Array = NDArray[np.float64]


def draw(n: int = 2000, seed: int = 0, a: float = 2.0, b: float = 0.5, c: float = 0.3) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    s = rng.uniform(0.01, 0.99, n)
    p = 1 / (1 + np.exp(-(a * np.log(s) - b * np.log(1 - s) + c)))
    return s, (rng.random(n) < p).astype(float)


def logistic_loss(features: Array, targets: Array, weights: Array, theta: Array) -> float:
    value = features @ theta[:-1] + theta[-1]
    return float(weights @ (np.logaddexp(0, value) - targets * value))


@given(st.integers(0, 10_000), st.integers(1, 3), st.floats(-4, 4))
@settings(max_examples=60, deadline=None)
def test_newton_ends_where_the_gradient_is_zero(seed: int, count: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(40, count)) * 10**size + rng.normal()
    targets, weights = rng.uniform(0.001, 0.999, 40), rng.random(40) + 0.01
    theta = fit_curve(features, targets, weights)
    residual = weights * (1 / (1 + np.exp(-(features @ theta[:-1] + theta[-1]))) - targets)
    assert abs(residual.sum()) < 1e-7
    assert_allclose(residual @ features / 10**size, 0, atol=1e-6)


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_rising_curves_are_the_best_with_no_negative_slope(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 2))
    targets, weights = rng.uniform(0.05, 0.95, 60), np.ones(60)
    ours = fit_rising_logistic(features, targets, weights)
    assert (ours[:-1] >= 0).all()
    bounded = minimize(
        lambda t: logistic_loss(features, targets, weights, t), np.zeros(3), bounds=[(0, None), (0, None), (None, None)]
    )
    assert logistic_loss(features, targets, weights, ours) <= bounded.fun + 1e-6


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [1.0, 1e4])
def test_platt_agrees_with_scikit_learn(weighted: bool, size: float) -> None:
    s, y = draw()
    z = size * np.log(s / (1 - s))
    weights = np.random.default_rng(3).random(len(y)) if weighted else None
    theirs = _SigmoidCalibration().fit(z, y, weights)
    ours = PlattScaling(input="logits").fit(z, y, weights)
    assert_allclose(ours.predict_proba(z)[:, 1], theirs.predict(z), atol=1e-4)
    assert_allclose(ours.maps_[0].slope, -theirs.a_, rtol=2e-4)
    ours = PlattScaling().fit(s, y, weights)  # on probabilities the curve is in the probability itself
    assert_allclose(ours.predict_proba(s)[:, 1], _SigmoidCalibration().fit(s, y, weights).predict(s), atol=1e-4)


@pytest.mark.parametrize("parameters", [2, 3])
def test_beta_is_a_logistic_regression_on_logarithms(parameters: int) -> None:
    s, y = draw()
    features = np.column_stack([np.log(s), -np.log1p(-s)])
    if parameters == 2:
        features = features.sum(axis=1, keepdims=True)
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(features, y)
    ours = BetaCalibration(parameters=parameters).fit(s, y)
    curve = ours.maps_[0]
    assert_allclose([curve.a, curve.b], np.broadcast_to(theirs.coef_[0], 2), rtol=1e-4)
    assert_allclose(curve.c, theirs.intercept_[0], atol=1e-4)
    assert_allclose(ours.predict_proba(s), theirs.predict_proba(features), atol=1e-5)
    through_logits = BetaCalibration(parameters=parameters, input="logits").fit(np.log(s / (1 - s)), y)
    assert_allclose(through_logits.predict_proba(np.log(s / (1 - s))), ours.predict_proba(s), atol=1e-9)


def test_beta_with_one_negative_coefficient_drops_it() -> None:
    s, y = draw(a=3.0, b=-0.8)
    curve = BetaCalibration().fit(s, y).maps_[0]
    assert curve.b == 0
    only = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(np.log(s)[:, None], y)
    assert_allclose([curve.a, curve.c], [only.coef_[0, 0], only.intercept_[0]], rtol=1e-4)


@pytest.mark.parametrize("maker", [PlattScaling, BetaCalibration])
def test_scores_that_fall_with_the_outcome_give_a_constant(maker: type[PlattScaling]) -> None:
    s, y = draw()
    with pytest.warns(TruecalWarning, match="do not rise with the outcomes; the map is constant"):
        fixed = maker().fit(s, 1 - y)
    assert_allclose(fixed.predict_proba([0.1, 0.9])[:, 1], (1 - y).mean(), atol=1e-3)


def test_separable_data() -> None:
    s, y = np.linspace(0.1, 0.9, 9), np.array([0, 0, 0, 0, 0, 1, 1, 1, 1])
    platt = PlattScaling().fit(s, y)  # Platt's targets are always in use
    assert_allclose(platt.predict_proba(s)[:, 1], _SigmoidCalibration().fit(s, y).predict(s), atol=1e-4)
    with pytest.warns(TruecalWarning, match="separates the outcomes perfectly"):
        beta = BetaCalibration(parameters=2).fit(s, y)
    z = np.log(s / (1 - s))
    assert_allclose(beta.predict_proba(s)[:, 1], _SigmoidCalibration().fit(z, y).predict(z), atol=1e-4)
    with pytest.warns(TruecalWarning, match="separates the outcomes perfectly"):  # a tie at the threshold is no overlap
        BetaCalibration().fit([0.2, 0.5, 0.5, 0.8], [0, 0, 1, 1])
    BetaCalibration().fit([0.2, 0.6, 0.5, 0.8], [0, 0, 1, 1])  # overlapping: a finite optimum, no warning


def test_constant_scores_give_the_base_rate() -> None:
    s, y = np.full(10, 0.7), np.array([0, 1] * 4 + [1, 1])
    assert_allclose(BetaCalibration(clip=1e-9).fit(np.r_[s, 0.7], np.r_[y, 0]).predict_proba([0.2])[0, 1], 6 / 11)
    platt = PlattScaling().fit(s, y)
    targets = np.where(y == 1, 7 / 8, 1 / 6)
    assert platt.maps_[0].slope == 0
    assert_allclose(platt.predict_proba([0.2, 0.9])[:, 1], targets.mean())


def test_probabilities_of_zero_and_one_in_beta() -> None:
    s, y = draw(500)
    plain = BetaCalibration().fit(s, y)
    certain = BetaCalibration().fit(np.r_[s, 0.0, 1.0], np.r_[y, 0, 1])
    curves = certain.maps_[0], plain.maps_[0]
    assert_array_equal(*[(c.a, c.b, c.c) for c in curves])  # a certainty that came true says nothing
    assert certain.predict_proba([0.0, 1.0])[:, 1].tolist() == [0.0, 1.0]
    with pytest.raises(InputError, match=r"row 500 has a probability of exactly 1 and the opposite outcome.*clip"):
        BetaCalibration().fit(np.r_[s, 1.0], np.r_[y, 0])
    clipped = BetaCalibration(clip=1e-3).fit(np.r_[s, 1.0], np.r_[y, 0])
    by_hand = BetaCalibration().fit(np.r_[np.clip(s, 1e-3, 1 - 1e-3), 1 - 1e-3], np.r_[y, 0])
    assert_allclose(clipped.predict_proba(s), by_hand.predict_proba(s), rtol=1e-6)
    assert_allclose(clipped.predict_proba([1.0]), by_hand.predict_proba([1 - 1e-3]), rtol=1e-6)
    with pytest.warns(TruecalWarning, match="every probability is exactly 0 or 1"):
        sure = BetaCalibration().fit([0.0, 1.0, 0.0], [0, 1, 0])
    assert sure.predict_proba([0.0, 0.3, 1.0])[:, 1].tolist() == pytest.approx([0.0, 0.3, 1.0])
    flat = BetaCalibration().fit(*draw(a=3.0, b=-0.8))
    assert flat.predict_proba([1.0])[0, 1] < 1  # b is 0: nothing forces certainty at 1


def test_certainties_that_come_true_survive_a_constant_curve() -> None:
    """Nine rows in ten are exactly 0 or 1 and right; the others are noise, whose best curve is constant."""
    rng = np.random.default_rng(0)
    sure = rng.integers(0, 2, 900).astype(float)
    noise = rng.uniform(0.2, 0.8, 100)
    y = np.r_[sure, noise < 0.5]
    with pytest.warns(TruecalWarning, match="do not rise"):
        fixed = BetaCalibration(parameters=2).fit(np.r_[sure, noise], y)
    assert fixed.predict_proba([0.0, 0.5, 1.0])[[0, 2], 1].tolist() == [0.0, 1.0]
    assert 0.3 < fixed.predict_proba([0.5])[0, 1] < 0.7
    again = BetaCalibration.from_json(fixed.to_json())
    assert_array_equal(again.predict_proba([0.0, 0.5, 1.0]), fixed.predict_proba([0.0, 0.5, 1.0]))


def test_platt_refuses_infinite_log_odds() -> None:
    with pytest.raises(InputError, match="row 1 rules a class out"):
        PlattScaling(input="logits").fit([[0.0, 1.0], [0.0, -np.inf], [0.0, 2.0]], [0, 0, 1])


def test_log_odds_far_beyond_rounding_still_count() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(0, 200, 4000)  # almost all probabilities round to 0 or 1
    y = (rng.random(4000) < 1 / (1 + np.exp(-z / 100))).astype(int)
    curve = BetaCalibration(parameters=2, input="logits").fit(z, y).maps_[0]
    assert_allclose(curve.a, 0.01, rtol=0.1)
