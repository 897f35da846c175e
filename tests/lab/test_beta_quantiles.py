"""The tabulated quantile function of the Beta: close to the exact one, monotone, continuous in its parameters."""

import numpy as np
import pytest
from scipy.special import betainc, betaincinv

from truecal.lab import Beta
from truecal.lab.distributions import beta_from_uniforms, exact_logits

CASES = [(2.7752, 0.0478), (1.1823, 0.1081), (1.1928, 0.2206), (0.5, 20.0), (0.4, 0.3), (1, 1), (300, 500), (5e3, 5e3)]
UNIFORMS = np.random.default_rng(0).random(20_000)


@pytest.mark.parametrize(("alpha", "beta"), CASES)
def test_the_table_agrees_with_the_exact_quantile_between_its_nodes(alpha, beta):
    c, rest = beta_from_uniforms(alpha, beta, UNIFORMS)
    np.testing.assert_allclose(c, betaincinv(alpha, beta, UNIFORMS), atol=2e-9)
    np.testing.assert_allclose(rest, betaincinv(beta, alpha, 1 - UNIFORMS), atol=2e-9)
    exact, _ = exact_logits(alpha, beta, np.log(UNIFORMS / (1 - UNIFORMS)))
    with np.errstate(divide="ignore"):
        ours = np.log(c) - np.log(rest)
    visible = np.isfinite(ours)
    # In logits, so that 1 - c keeps its relative precision where c rounds to 1.
    np.testing.assert_allclose(ours[visible], exact[visible], atol=5e-8)


@pytest.mark.parametrize(("alpha", "beta"), [(0.02, 0.03), (0.001, 50.0), (1e5, 0.01)])
def test_exponents_near_zero_cost_accuracy_that_no_simulation_sees(alpha, beta):
    c, _ = beta_from_uniforms(alpha, beta, UNIFORMS)
    np.testing.assert_allclose(c, betaincinv(alpha, beta, UNIFORMS), atol=1e-6)


@pytest.mark.parametrize(("alpha", "beta"), CASES)
def test_scores_rise_with_the_uniform_number(alpha, beta):
    u = np.sort(np.concatenate([UNIFORMS, [0.0, 2.0**-53, 0.5, 1 - 2.0**-53]]))
    c, rest = beta_from_uniforms(alpha, beta, u)
    assert np.all(np.diff(c) >= 0)
    assert np.all(np.diff(rest) <= 0)
    assert c[0] >= 0
    assert rest[-1] >= 0


def test_probabilities_come_back_from_the_scores():
    c, _ = beta_from_uniforms(3.0, 7.0, UNIFORMS)
    np.testing.assert_allclose(betainc(3.0, 7.0, c), UNIFORMS, atol=1e-9)


@pytest.mark.parametrize(("alpha", "beta"), CASES)
def test_draws_move_with_the_parameters_and_not_elsewhere(alpha, beta):
    """A rejection sampler gives other numbers for the next floating-point parameter; these are the same to 1e-10."""
    before, _ = Beta(alpha, beta).draw(np.random.default_rng(3), (5, 2000))
    after, _ = Beta(np.nextafter(alpha, 9e9), np.nextafter(beta, 0)).draw(np.random.default_rng(3), (5, 2000))
    np.testing.assert_allclose(after, before, atol=1e-10)
