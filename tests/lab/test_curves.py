"""Calibration curves: their formulas, their ends, and blends of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit

from truecal.errors import InputError
from truecal.lab import GLM, Blend, Identity, Logistic, Power, Uniform, World

inner = st.floats(0.001, 0.999)

INVERSE = {"log": np.exp, "logflip": lambda eta: 1 - np.exp(eta), "logit": expit}
FORWARD = {"log": np.log, "logflip": lambda c: np.log(1 - c), "logit": logit}


@given(inner, st.sampled_from(sorted(INVERSE)), st.sampled_from(sorted(FORWARD)), st.floats(-2, 0), st.floats(-1, 1))
def test_a_glm_is_its_formula(c, link, transform, b0, b1):
    expected = INVERSE[link](b0 + b1 * FORWARD[transform](c))
    assert GLM(link, transform, b0, b1)(c) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("curve", "at_zero", "at_one"),
    [
        (GLM("logflip", "logflip", -0.24, 0.3), 1 - np.exp(-0.24), 1.0),
        (GLM("logit", "logflip", -0.27, -0.35), expit(-0.27), 1.0),
        (GLM("logit", "logit", 0.5, 0.26), 0.0, 1.0),
        (GLM("log", "log", -0.03, 1.27), 0.0, np.exp(-0.03)),
        (GLM("logit", "logit", 0.5, 0.0), expit(0.5), expit(0.5)),
        (Power(2.0), 0.0, 1.0),
        (Logistic(10, -5), expit(-5), expit(5)),
        (Identity(), 0.0, 1.0),
    ],
)
def test_the_ends_are_limits_not_nans(curve, at_zero, at_one):
    np.testing.assert_allclose(curve(np.array([0.0, 1.0])), [at_zero, at_one], atol=1e-12)


def test_saturated_scores_keep_their_truth():
    rest = np.array([1e-20, 1e-30])
    truth = GLM("logflip", "logflip", -0.24, 0.3).at(1.0 - rest, rest)
    assert np.all(1.0 - truth > 0)  # 1 - T = exp(-0.24) rest^0.3, 8e-10 at 1e-30: c alone would say 0
    slope = GLM("log", "log", -0.5, 2.0).at(np.array([1.0]), np.array([1e-20]))
    assert slope[0] == pytest.approx(np.exp(-0.5), rel=1e-15)


@given(st.floats(0.0, 1.0), st.floats(1.0, 4.0))
def test_the_error_of_a_blend_is_its_share(share, d):
    whole = World(Uniform(), Power(d)).true_error()
    assert World(Uniform(), Blend(Identity(), Power(d), share)).true_error() == pytest.approx(share * whole, abs=1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GLM("probit", "log", 0, 1), "unknown link 'probit': use one of log, logflip, logit"),
        (lambda: GLM("log", "square", 0, 1), "unknown transform 'square': use one of log, logflip, logit"),
        (lambda: GLM("log", "log", float("inf"), 1), "finite"),
        (lambda: Power(0.0), "> 0"),
    ],
)
def test_impossible_curves_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
