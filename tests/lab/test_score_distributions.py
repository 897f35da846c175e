"""Draws follow the distribution they claim, and keep 1-c where c has lost it."""

import numpy as np
import pytest
from scipy import stats

from truecal.errors import InputError
from truecal.lab import Beta, Discrete, Empirical, Mixture, Uniform
from truecal.profile import Profile

DISTRIBUTIONS = {
    "skewed to 1": Beta(2.7752, 0.0478),
    "skewed to 0": Beta(0.05, 1.5),
    "both ends": Beta(0.4, 0.3),
    "bell": Beta(5.0, 3.0),
    "uniform": Uniform(0.25, 0.75),
    "discrete": Discrete([0.1, 0.5, 0.9], [0.2, 0.0, 0.8]),
    "empirical": Empirical(np.random.default_rng(1).beta(2, 0.4, 300)),
    "mixture": Mixture((Uniform(), Discrete([1.0])), (0.6, 0.4)),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_draws_have_the_moments_of_the_quadrature(name):
    scores = DISTRIBUTIONS[name]
    c, rest = scores.draw(np.random.default_rng(0), (200, 1000))
    assert c.shape == rest.shape == (200, 1000)
    assert np.all((c >= 0) & (c <= 1))
    np.testing.assert_allclose(c + rest, 1.0, atol=1e-15)
    for function in (lambda c, rest: c, lambda c, rest: c**2, lambda c, rest: np.sqrt(rest)):
        observed = function(c, rest)
        error = observed.std() / np.sqrt(observed.size)
        assert abs(observed.mean() - scores.expectation(function)) < 4 * error


@pytest.mark.parametrize(("alpha", "beta"), [(2.7752, 0.0478), (1.1, 0.1), (0.06, 0.9), (3.0, 4.0)])
def test_beta_draws_pass_a_kolmogorov_smirnov_test(alpha, beta):
    # In log(1-c) or log c, whichever end is crowded: there the draws are far from each other.
    c, rest = Beta(alpha, beta).draw(np.random.default_rng(2), (20_000,))
    tail, mask, there = (rest, beta, alpha) if alpha >= beta else (c, alpha, beta)
    assert stats.kstest(tail, stats.beta(mask, there).cdf).pvalue > 0.001


def test_a_sixth_of_a_saturated_world_rounds_to_one_but_keeps_its_rest():
    c, rest = Beta(2.7752, 0.0478).draw(np.random.default_rng(3), (100_000,))
    assert 0.165 < np.mean(c == 1.0) < 0.19
    assert np.unique(rest[c == 1.0]).size > 10_000


def test_discrete_draws_only_scores_that_have_probability():
    c, _ = DISTRIBUTIONS["discrete"].draw(np.random.default_rng(4), (10_000,))
    assert set(np.unique(c)) == {0.1, 0.9}
    assert abs(np.mean(c == 0.9) - 0.8) < 0.016


def test_discrete_of_a_profile_weighs_its_rows():
    profile = Profile.from_arrays([0.2, 0.6, 0.6], [0, 1, 0], weights=[1, 2, 1])
    scores = Discrete.of(profile)
    assert scores.expectation(lambda c, rest: c) == pytest.approx((0.2 + 3 * 0.6) / 4)


def test_empirical_scores_stay_between_their_neighbours_and_do_not_repeat():
    values = np.random.default_rng(5).random(500)
    c, _ = Empirical(values).draw(np.random.default_rng(6), (20_000,))
    assert values.min() <= c.min()
    assert c.max() <= values.max()
    assert np.unique(c).size == c.size
    assert stats.ks_2samp(c, values).pvalue > 0.001


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Beta(0.0, 1.0), "alpha > 0"),
        (lambda: Beta(1.0, -2.0), "beta > 0"),
        (lambda: Beta(float("nan"), 1.0), "alpha > 0"),
        (lambda: Uniform(0.7, 0.2), "low < high"),
        (lambda: Uniform(-0.1, 0.2), "0 <= low"),
        (lambda: Discrete([]), "non-empty"),
        (lambda: Discrete([0.5, 1.2]), "in \\[0, 1\\]"),
        (lambda: Discrete([0.5, 0.6], [0.5, 0.6]), "summing to 1"),
        (lambda: Empirical([0.5]), "at least two"),
        (lambda: Mixture((Uniform(),), (0.5, 0.5)), "1 parts but 2 shares"),
        (lambda: Mixture((Uniform(), Uniform()), (0.5, 0.6)), "sum to 1"),
    ],
)
def test_impossible_distributions_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
