"""Expectations against closed forms and scipy's own quadrature."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate as scipy_integrate
from scipy.special import digamma

from truecal.lab import Beta, Mixture, Uniform
from truecal.lab.distributions import Piece, integrate

exponents = st.floats(0.02, 30.0)


@given(exponents, exponents)
def test_beta_moments_are_exact(alpha, beta):
    scores = Beta(alpha, beta)
    total = alpha + beta
    assert scores.expectation(lambda c, rest: np.ones_like(c)) == pytest.approx(1.0, abs=1e-10)
    assert scores.expectation(lambda c, rest: c) == pytest.approx(alpha / total, abs=1e-10)
    square = alpha * (alpha + 1) / (total * (total + 1))
    assert scores.expectation(lambda c, rest: c**2) == pytest.approx(square, abs=1e-10)


def test_the_tail_below_the_spacing_of_floats_is_seen():
    # E[log(1-c)] = digamma(beta) - digamma(alpha+beta), about -21: most of it where c rounds to 1. log c alone cannot know.
    alpha, beta = 2.7752, 0.0478
    observed = Beta(alpha, beta).expectation(lambda c, rest: np.log(np.maximum(rest, 1e-308)))
    assert observed == pytest.approx(digamma(beta) - digamma(alpha + beta), rel=1e-4)


@given(st.floats(0.01, 0.99), st.floats(0.05, 5.0), st.floats(0.05, 5.0))
def test_jumps_and_kinks_cost_no_accuracy(place, alpha, beta):
    from scipy.special import betainc

    scores = Beta(alpha, beta)
    assert scores.expectation(lambda c, rest: (c < place).astype(float)) == pytest.approx(
        betainc(alpha, beta, place), abs=1e-9
    )
    uniform = Uniform().expectation(lambda c, rest: np.abs(c - place))
    assert uniform == pytest.approx((place**2 + (1 - place) ** 2) / 2, abs=1e-12)


def test_a_smooth_integrand_agrees_with_scipy():
    piece = Piece(0.0, 2.0, lambda t: (t / 2, 1 - t / 2, np.exp(-t)))
    expected, _ = scipy_integrate.quad(lambda t: np.cos(t / 2) * np.exp(-t), 0, 2)
    assert integrate([piece], lambda c, rest: np.cos(c)) == pytest.approx(expected, abs=1e-13)


def test_a_mixture_is_the_weighted_sum_of_its_parts():
    parts = (Beta(2.0, 0.3), Uniform(0.2, 0.4))
    mixed = Mixture(parts, (0.3, 0.7)).expectation(lambda c, rest: c * rest)
    alone = [part.expectation(lambda c, rest: c * rest) for part in parts]
    assert mixed == pytest.approx(0.3 * alone[0] + 0.7 * alone[1], abs=1e-14)


@pytest.mark.parametrize("beyond", [1e-3, 1e-5, 1e-8, 1e-11])
@pytest.mark.parametrize("edge", [0.0, 1 / 32, 0.25, 0.5, 1.0])
def test_a_jump_beside_the_edge_of_a_panel_is_seen(edge, beyond):
    for position in (edge + beyond, edge - beyond):
        if 0 < position < 1:
            mask = Uniform().expectation(lambda c, rest, position=position: (c < position).astype(float))
            assert mask == pytest.approx(position, abs=1e-12)
