"""Fits recover the worlds that made the data, and what they find on a real network is what the paper found."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import chdtri
from scipy.stats import beta as scipy_beta

from tests.simulations import datasets
from truecal.errors import InputError
from truecal.lab import GLM, PAPER_WORLDS, Beta, Discrete, Empirical, Power, Uniform, World, fit_world, goodness
from truecal.lab.fit import candidates, find_resolution, fit_beta, fit_curve, fit_curves
from truecal.lenses import TopLabel
from truecal.predictions import Predictions
from truecal.profile import Profile


def drawn(world, n, seed):
    scores, outcomes = world.draw(n, rng=seed)
    return Profile.from_arrays(scores[0], outcomes[0])


def test_without_saturated_scores_the_beta_fit_is_scipys():
    scores = np.random.default_rng(0).beta(2.0, 0.8, 3000)
    ours = fit_beta(scores, np.ones(3000))
    alpha, beta, _, _ = scipy_beta.fit(scores, floc=0, fscale=1)
    assert ours.scores.alpha == pytest.approx(alpha, rel=1e-3)
    assert ours.scores.beta == pytest.approx(beta, rel=1e-3)
    assert ours.log_likelihood == pytest.approx(scipy_beta.logpdf(scores, alpha, beta).sum(), rel=1e-6)


def test_a_row_of_weight_three_is_three_rows():
    scores = np.random.default_rng(1).beta(1.5, 0.6, 400)
    weights = np.where(np.arange(400) % 2, 3.0, 1.0)
    once, repeated = fit_beta(scores, weights), fit_beta(np.repeat(scores, weights.astype(int)), np.ones(800))
    assert once.scores.alpha == pytest.approx(repeated.scores.alpha, rel=1e-6)
    assert once.beta_standard_error == pytest.approx(repeated.beta_standard_error, rel=1e-5)


def test_saturated_scores_are_counted_not_moved():
    # With 18 % of the scores at exactly 1, dropping or flooring them misses beta by many standard errors.
    world = PAPER_WORLDS["resnet110_c10"]
    scores = world.draw(20_000, rng=2)[0][0]
    fit = fit_beta(scores, np.ones(20_000))
    assert fit.ones == np.sum(scores == 1.0) > 3000
    assert abs(fit.scores.beta - 0.0478) < 3 * fit.beta_standard_error
    dropped = fit_beta(scores[scores < 1], np.ones(np.sum(scores < 1)))
    assert abs(dropped.scores.beta - 0.0478) > 20 * fit.beta_standard_error


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_precision_of_the_scores_is_recognised(dtype):
    scores = PAPER_WORLDS["resnet110_c100"].draw(5000, rng=3)[0][0].astype(dtype).astype(np.float64)
    eps = find_resolution(scores)
    assert eps == np.finfo(dtype).epsneg / 2
    assert dtype(1.0 - 0.9 * eps) == 1.0
    assert dtype(1.0 - 1.1 * eps) < 1.0 or dtype is np.float16  # float16 is reached through float64 rounding


def test_float32_scores_still_recover_the_beta():
    world = PAPER_WORLDS["resnet110_c10"]
    scores = world.draw(20_000, rng=4)[0][0].astype(np.float32).astype(np.float64)
    fit = fit_beta(scores, np.ones(20_000))
    assert np.mean(scores == 1.0) > 0.35
    assert abs(fit.scores.alpha - 2.7752) < 3 * fit.alpha_standard_error
    assert abs(fit.scores.beta - 0.0478) < 3 * fit.beta_standard_error


@pytest.mark.parametrize("name", PAPER_WORLDS)
def test_fits_recover_a_known_world_within_three_standard_errors(name):
    world = PAPER_WORLDS[name]
    fit = fit_world(drawn(world, 10_000, seed=5))
    terms = "b1" if world.curve.b0 == 0 else "b0_b1"
    curve = fit.curve(f"{world.curve.link}_{world.curve.transform}_{terms}")
    assert abs(fit.beta.scores.alpha - world.scores.alpha) < 3 * fit.beta.alpha_standard_error
    assert abs(fit.beta.scores.beta - world.scores.beta) < 3 * fit.beta.beta_standard_error
    assert abs(curve.curve.b1 - world.curve.b1) < 3 * curve.b1_standard_error
    if terms == "b0_b1":
        assert abs(curve.curve.b0 - world.curve.b0) < 3 * curve.b0_standard_error


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet110_c10", "resnet110_SD_c100"])
def test_aic_picks_the_right_family_in_most_repeats(name):
    world = PAPER_WORLDS[name]
    right = 0
    for seed in range(24):
        best = fit_world(drawn(world, 10_000, seed=seed)).best.curve
        right += (best.link, best.transform) == (world.curve.link, world.curve.transform)
    assert right > 12


@pytest.mark.slow
def test_standard_errors_are_honest():
    # z-values of 100 fits must have spread 1: their sum of squares is chi-square (false alarms in one of 500 for each parameter).
    world = World(Beta(1.2, 0.3), GLM("logit", "logit", -0.5, 0.6))
    z, fits = [], datasets(100)
    for seed in range(fits):
        fit = fit_world(drawn(world, 1000, seed=seed))
        curve = fit.curve("logit_logit_b0_b1")
        z.append(
            (
                (fit.beta.scores.alpha - 1.2) / fit.beta.alpha_standard_error,
                (fit.beta.scores.beta - 0.3) / fit.beta.beta_standard_error,
                (curve.curve.b0 + 0.5) / curve.b0_standard_error,
                (curve.curve.b1 - 0.6) / curve.b1_standard_error,
            )
        )
    low, high = np.sqrt(chdtri(fits - 1, [0.999, 0.001]) / fits)
    spread = np.std(z, axis=0)
    assert np.all((spread > low) & (spread < high)), spread


@pytest.mark.parametrize(("link", "inner", "terms"), candidates())
def test_every_candidate_is_the_maximum_of_its_likelihood(link, inner, terms):
    rng = np.random.default_rng(6)
    c = rng.beta(1.5, 0.5, 600)
    y = (rng.random(600) < 0.95 * c**1.2).astype(float)
    fit = fit_curve(link, inner, terms, c, 1 - c, y, np.ones(600))

    def loss(b):
        try:
            T = np.clip(GLM(link, inner, *b)(c), 1e-300, 1 - 1e-16)
        except InputError:
            return np.inf
        return -np.sum(y * np.log(T) + (1 - y) * np.log1p(-T))

    def embed(x):
        return {"b0": (x[0], 0.0), "b1": (0.0, x[0]), "b0_b1": tuple(x)}[terms]

    start = np.array({"b0": [fit.curve.b0], "b1": [fit.curve.b1], "b0_b1": [fit.curve.b0, fit.curve.b1]}[terms])
    assert loss(embed(start)) == pytest.approx(-fit.log_likelihood, rel=1e-9)
    limit = 0.0 if link != "logit" else np.inf  # log and logflip links need b0 <= 0 <= b1

    def bounded(x):
        b0, b1 = embed(x)
        return np.inf if (limit == 0.0 and (b0 > 0 or b1 < 0)) else loss((b0, b1))

    for scale in (0.9, 1.1):
        better = minimize(bounded, start * scale - 0.01 * (limit == 0.0) * (terms == "b0"), method="Nelder-Mead")
        assert better.fun >= -fit.log_likelihood - 1e-5


def test_aic_counts_the_terms_and_orders_the_candidates():
    c = np.random.default_rng(7).random(500)
    y = (np.random.default_rng(8).random(500) < c).astype(float)
    fits = fit_curves(c, 1 - c, y, np.ones(500))
    assert [fit.aic for fit in fits] == sorted(fit.aic for fit in fits)
    by_name = {fit.name: fit for fit in fits}
    assert len(by_name) == len(fits) == len(candidates())
    both, one = by_name["logit_logit_b0_b1"], by_name["logit_logit_b1"]
    assert both.log_likelihood >= one.log_likelihood
    assert both.aic == pytest.approx(4 - 2 * both.log_likelihood)
    assert one.aic == pytest.approx(2 - 2 * one.log_likelihood)
    rate = y.mean()
    constants = [by_name[f"{link}_{link}_b0"] for link in ("log", "logflip", "logit")]
    for fit in constants:
        assert fit.curve(0.3) == pytest.approx(rate, abs=1e-6)


@given(st.integers(0, 10_000))
def test_a_fit_is_a_world_that_can_be_drawn_from(seed):
    profile = drawn(World(Beta(1.5, 0.5), Power(1.3)), 300, seed)
    fit = fit_world(profile)
    scores, outcomes = fit.world.draw(50, 2, rng=seed)
    assert scores.shape == outcomes.shape == (2, 50)
    assert 0 <= fit.world.true_error() <= 1
    assert 0 <= fit.empirical_world.true_error() <= 1


@pytest.fixture(scope="module")
def fit(resnet110):
    preds = Predictions.from_logits(resnet110["test_logits"].astype(np.float64), resnet110["test_labels"])
    return fit_world(TopLabel()(preds))


class TestRealNetwork:
    """ResNet-110 on CIFAR-10, test split, top label: Roelofs et al. print logflip_logflip (-0.24, 0.30)."""

    def test_the_coefficients_of_table_2(self, fit):
        curve = fit.curve("logflip_logflip_b0_b1").curve
        assert abs(curve.b0 + 0.24) < 0.03
        assert abs(curve.b1 - 0.30) < 0.03

    def test_which_family_wins_depends_on_the_scores_at_one(self, resnet110, fit):
        # In float64 no score is exactly 1 and logit_logflip wins; with float32 scores floored at 1e-30, as a fit without
        # care for them would do, the paper's logflip_logflip wins.
        assert fit.beta.ones == 0
        assert fit.best.name == "logit_logflip_b0_b1"
        logits = resnet110["test_logits"]
        shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
        c = (1 / shifted.sum(axis=1)).astype(np.float64)
        y = (logits.argmax(axis=1) == resnet110["test_labels"]).astype(float)
        rest = np.where(c == 1.0, 1e-30, 1 - c)
        assert np.mean(c == 1.0) > 0.2
        assert fit_curves(c, rest, y, np.ones(c.size))[0].name == "logflip_logflip_b0_b1"

    def test_the_empirical_world_looks_like_the_data(self, fit):
        assert abs(goodness(fit, fit.empirical_world, m=60).z) < 3
        assert abs(goodness(fit, fit.empirical_world, norm=1, m=60).z) < 3
        assert goodness(fit, m=60).z < -5  # the Beta world does not: it must be said


def test_goodness_of_a_true_fit():
    fit = fit_world(drawn(PAPER_WORLDS["resnet110_c100"], 5000, seed=9))
    good = goodness(fit, m=50)
    assert abs(good.z) < 3.5
    assert good.standard_error == pytest.approx(good.simulated_std / np.sqrt(50))


def test_tied_scores_stay_tied_in_the_empirical_world():
    rng = np.random.default_rng(10)
    c = rng.choice([0.3, 0.6, 0.8, 0.95], 1000)
    fit = fit_world(Profile.from_arrays(c, rng.random(1000) < c))
    assert isinstance(fit.empirical_world.scores, Discrete)
    assert set(np.unique(fit.empirical_world.draw(500, rng=0)[0])) == {0.3, 0.6, 0.8, 0.95}
    smooth = fit_world(drawn(World(Uniform()), 500, seed=0))
    assert isinstance(smooth.empirical_world.scores, Empirical)


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        (lambda: Profile.from_arrays(np.full((2, 5), 0.5), np.ones((2, 5), int)), "not a batch of 2"),
        (lambda: Profile.from_arrays([0.5, 0.6, 0.7], [1, 1, 1]), "every outcome is 1"),
        (lambda: Profile.from_arrays([0.5, 0.6, 0.7], [0, 0, 0]), "every outcome is 0"),
        (lambda: Profile.from_arrays([0.0, 1.0, 1.0, 0.5], [0, 1, 0, 1]), "two different scores"),
    ],
)
def test_data_that_cannot_be_fitted_is_refused(profile, message):
    with pytest.raises(InputError, match=message):
        fit_world(profile())


def test_unknown_names_are_answered_with_the_known_ones():
    fit = fit_world(drawn(World(Uniform()), 200, seed=1))
    with pytest.raises(InputError, match="unknown curve 'probit': use one of"):
        fit.curve("probit")
    with pytest.raises(InputError, match="resolution must be"):
        fit_world(fit.profile, resolution=0.0)


def test_a_flat_likelihood_has_no_standard_error():
    """Two scores, one outcome each way: along one direction nothing is known, which is said by NaN and not by a warning.

    Whether rounding leaves the matrix an inverse differs by processor; where it does not, `fit_world` refuses the rows.
    """
    c = np.repeat([0.5, 0.5 + 1e-12], 20)
    y = np.tile([0.0, 1.0], 20)
    for link, inner, terms in candidates():
        try:
            fit = fit_curve(link, inner, terms, c, 1 - c, y, np.ones(40))
        except np.linalg.LinAlgError:
            with pytest.raises(InputError, match=r"40 rows do not determine a curve|the Beta fit did not converge"):
                fit_world(Profile.from_arrays(c, y))
            continue
        errors = np.array([fit.b0_standard_error, fit.b1_standard_error])
        assert np.all(np.isnan(errors) | (errors >= 0))
