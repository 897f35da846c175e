"""The logistic regression against its likelihood equations, scikit-learn and separated data."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from truecal.errors import InputError
from truecal.special import fit_logistic

RNG = np.random.default_rng(7)
Z = RNG.normal(size=(500, 2)) * [1.0, 300.0] + [0.0, 1000.0]  # columns of very different sizes
DESIGN = np.column_stack([np.ones(500), Z])
Y = (RNG.random(500) < 1 / (1 + np.exp(-Z[:, 0]))).astype(float)
WEIGHTS = RNG.random(500) * 3


def test_the_likelihood_equations_hold():
    offset = RNG.normal(size=500)
    fit = fit_logistic(DESIGN, Y, WEIGHTS, offset)
    assert fit.converged
    assert np.abs(DESIGN.T @ (WEIGHTS * (fit.probs - Y)) / np.abs(DESIGN).sum(axis=0)).max() < 1e-13
    again = 1 / (1 + np.exp(-(offset + DESIGN @ fit.coefficients)))
    assert fit.probs == pytest.approx(again, abs=1e-13)
    assert fit.information == pytest.approx((DESIGN.T * (WEIGHTS * again * (1 - again))) @ DESIGN, rel=1e-10)


def test_it_is_the_fit_of_scikit_learn():
    small = Z / Z.std(axis=0)
    peer = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000).fit(small, Y, sample_weight=WEIGHTS)
    fit = fit_logistic(np.column_stack([np.ones(500), small]), Y, WEIGHTS)
    assert fit.coefficients == pytest.approx([peer.intercept_[0], *peer.coef_[0]], abs=1e-4)


def test_whole_weights_are_repetitions_and_fractions_are_shares():
    counts = RNG.integers(0, 4, 500)
    rows = np.repeat(np.arange(500), counts)
    weighted = fit_logistic(DESIGN, Y, counts.astype(float)).coefficients
    assert weighted == pytest.approx(fit_logistic(DESIGN[rows], Y[rows]).coefficients, rel=1e-9)
    halves = fit_logistic(np.ones((1, 1)), np.array([0.25]))
    assert halves.probs == pytest.approx([0.25])


def test_separated_outcomes_have_no_optimum():
    assert not fit_logistic(DESIGN, (Z[:, 0] > 0).astype(float)).converged
    nearly = (Z[:, 0] > 0).astype(float)
    nearly[np.argsort(Z[:, 0])[[240, 260]]] = [1, 0]
    assert fit_logistic(DESIGN, nearly).converged


def test_columns_that_depend_on_each_other_are_shared_out():
    doubled = np.column_stack([DESIGN, DESIGN[:, 1]])
    fit, one = fit_logistic(doubled, Y), fit_logistic(DESIGN, Y)
    assert fit.converged
    assert fit.probs == pytest.approx(one.probs, abs=1e-10)


def test_shapes_must_match():
    with pytest.raises(InputError, match="500"):
        fit_logistic(DESIGN[:3], Y)
