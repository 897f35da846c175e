"""Redraws under calibration and sign flips: their distributions, and when they stop."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import ks_2samp, norm

import truecal as tc
from truecal.estimators.rank_series.basis import null_covariance, rank_basis, rank_cells, smooth_test_statistic
from truecal.estimators.rank_series.tests import smooth_tests
from truecal.resampling.draws import (
    NORMAL_VARIANCE,
    LinearRedraws,
    NullDistribution,
    label_ends,
    multinomial,
    redraw_labels,
    redraw_ones,
    redraw_test,
)
from truecal.resampling.units import flip_sums, sign_flip_test
from truecal.special import positive

SHAPES = {
    "single rows": lambda rng: rng.random(300),
    "rare events": lambda rng: rng.random(20_000) * 0.01,
    "near certainty": lambda rng: 1 - rng.random(20_000) ** 6,
    "large cells": lambda rng: rng.random(150_000),
    "ties": lambda rng: np.round(rng.random(500), 1),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_redraws_have_the_distribution_of_binomial_cells(shape):
    rng = np.random.default_rng(0)
    c = SHAPES[shape](rng)
    cells = rank_cells(tc.profile.Profile.from_arrays(c, rng.random(len(c)) < c))
    basis = rank_basis(cells)
    count, score = cells.counts[0], cells.scores[0]
    covariance = null_covariance(cells, basis)[0]
    ((_, null),) = smooth_tests(cells)
    drawn = null.statistic(null.draw(2000, rng))
    functions = basis[0] / np.sqrt(positive(count) * cells.n[0])
    rows = np.rint(count).astype(int)
    ones = rng.binomial(rows, np.clip(score, 0, 1), (2000, len(rows)))
    exact = smooth_test_statistic((ones - rows * score) @ functions.T, covariance)
    assert ks_2samp(drawn, exact).pvalue > 0.005
    assert np.quantile(drawn, 0.95) == pytest.approx(np.quantile(exact, 0.95), rel=0.15)


def test_redrawn_ones_have_binomial_moments():
    rng = np.random.default_rng(1)
    counts = np.array([1.0, 3.0, 40.0, 1000.0, 0.0, 2.5])
    scores = np.array([0.3, 0.999, 0.1, 0.4, 0.5, 0.2])
    variances = counts * scores * (1 - scores)
    assert (variances > NORMAL_VARIANCE).sum() == 1
    surplus = redraw_ones(counts, scores, variances, 20_000, rng)
    se = np.sqrt(variances / 20_000)
    assert (np.abs(surplus.mean(axis=0)) <= 4 * se + 1e-12).all()
    whole = counts == np.rint(counts)
    np.testing.assert_allclose(surplus.var(axis=0)[whole], variances[whole], rtol=0.1, atol=1e-3)
    ones = surplus[:, :3] + (counts * scores)[:3]
    np.testing.assert_allclose(ones, np.rint(ones), atol=1e-9)


@pytest.mark.parametrize("events", [3, 50])
def test_redrawn_labels_follow_their_probabilities(events):
    rng = np.random.default_rng(2)
    columns = rng.dirichlet(np.ones(events), 4).T
    labels = redraw_labels(label_ends(columns), 20_000, rng)
    for row in range(4):
        shares = np.bincount(labels[:, row], minlength=events) / 20_000
        assert np.abs(shares - columns[:, row]).max() < 5 * np.sqrt(0.25 / 20_000)


@pytest.mark.parametrize("events", [2, 3, 30])
def test_labels_are_the_same_by_comparison_and_by_search(events, monkeypatch):
    """Also where an event has no probability, and where one has all of it."""
    probs = np.random.default_rng(0).dirichlet(np.full(events, 0.3), 400)
    probs[:2] = np.eye(events)[[0, -1]]
    probs[2] = np.append(0.0, np.full(events - 1, 1 / (events - 1)))
    ends = label_ends(probs.T)
    compared = redraw_labels(ends, 50, np.random.default_rng(1))
    monkeypatch.setattr("truecal.resampling.draws._COMPARED_EVENTS", 0)
    np.testing.assert_array_equal(compared, redraw_labels(ends, 50, np.random.default_rng(1)))
    assert (compared[:, 0] == 0).all()
    assert (compared[:, 1] == events - 1).all()
    assert (compared[:, 2] > 0).all()


def test_sign_flips_have_the_covariance_of_the_units():
    rng = np.random.default_rng(3)
    sums = rng.normal(size=(40, 3))
    flipped = flip_sums(sums, 20_000, rng)
    np.testing.assert_allclose(np.cov(flipped.T), sums.T @ sums, atol=2.0)
    np.testing.assert_allclose(flipped.mean(axis=0), 0, atol=0.25)


def test_cells_are_in_the_order_of_their_ranks_where_some_are_empty():
    rng = np.random.default_rng(0)
    cells = rank_cells(
        tc.profile.Profile.from_arrays(rng.random(1030), rng.random(1030) < 0.5, rng.integers(1, 4, 1030))
    )
    assert (cells.counts == 0).any()
    assert (np.diff(cells.ranks[0]) >= 0).all()


def test_redraws_stop_where_the_p_value_is_settled():
    rng = np.random.default_rng(1)
    null = NullDistribution(lambda redraws, rng: rng.random(redraws))
    assert null.p_value(-1.0, 999, rng) == 1.0
    assert len(null.drawn) == 199
    assert null.p_value(2.0, 999, rng) == 0.001
    assert len(null.drawn) == 999
    assert null.p_value(2.0, 50, rng) == pytest.approx(1 / 51)


def test_stopping_does_not_change_rejections_below_15_percent():
    """With and without stopping, p-values of 400 datasets agree wherever either is below 0.15."""
    rng = np.random.default_rng(4)
    for statistic in rng.random(400):
        null = NullDistribution(lambda redraws, rng: rng.random(redraws))
        p = null.p_value(statistic, 999, rng)
        null.draw = lambda redraws, rng: rng.random(redraws)
        full = (1 + np.count_nonzero(np.append(null.drawn, rng.random(999 - len(null.drawn))) >= statistic)) / 1000
        assert (p == full) if p < 0.15 else p >= 0.15


@pytest.mark.parametrize("estimator", [tc.RankSeries(), tc.BinnedECE(), tc.SweepECE()], ids=repr)
def test_p_values_of_calibrated_data_are_uniform(estimator):
    """200 datasets of 400 rows: rejections within 3.5 standard errors of the level."""
    rng = np.random.default_rng(2)
    c = rng.random((200, 400)) ** 3
    profile = tc.profile.Profile.from_arrays(c, rng.random(c.shape) < c)
    p = estimator.test(profile, resamples=199, rng=0).p_value
    for level in (0.05, 0.1, 0.5):
        assert abs((p <= level).mean() - level) < 3.5 * np.sqrt(level * (1 - level) / 200)


def test_p_values_of_calibrated_clusters_are_uniform():
    """200 datasets of 40 clusters of 10 rows that share a disturbance of mean zero on the scale of the score."""
    rng = np.random.default_rng(5)
    p = []
    for seed in range(200):
        c = np.repeat(rng.uniform(0.2, 0.8, 40), 10)
        y = rng.random(400) < c + np.repeat(rng.choice([-0.15, 0.15], 40), 10)
        preds = tc.Predictions.from_probs(c, y, clusters=np.repeat(np.arange(40), 10))
        p.append(float(tc.inference.rank_series_test(preds, resamples=199, rng=seed).p_value))
    for level in (0.05, 0.1, 0.5):
        assert abs((np.array(p) <= level).mean() - level) < 3.5 * np.sqrt(level * (1 - level) / 200)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
def test_statistics_that_agree_to_rounding_count_as_equal(scale):
    null = NullDistribution(lambda redraws, rng: np.full(redraws, scale))
    rng = np.random.default_rng(0)
    assert null.p_value(scale * (1 + 1e-14), 199, rng) == 1.0
    assert null.p_value(scale * (1 + 1e-9), 199, rng) == 1 / 200


def surplus(profile):
    """How far the sum of the outcomes of every dataset is from its expectation."""
    whole = profile.whole()
    return np.abs(profile.sums("y", whole) - profile.sums("c", whole))[:, 0]


@pytest.mark.parametrize("weights", [None, [1, 1, 2, 0, 1, 3, 1, 1, 0, 1, 2, 1, 1, 1, 1, 2]])
def test_sign_flips_of_few_units_are_those_of_all_signs(weights):
    rng = np.random.default_rng(0)
    c, units = rng.random(16), np.arange(16) // 2
    y = (rng.random(16) < c).astype(int)
    (sample,) = tc.OneClass().samples(tc.Predictions.from_probs(c, y, clusters=units, weights=weights))
    result = sign_flip_test(sample.profile, surplus, resamples=1999)
    sums = np.bincount(units, (y - c) * (1 if weights is None else np.array(weights)))
    flipped = [abs(sums @ signs) for signs in product((-1, 1), repeat=len(sums))]
    assert result.statistic[0] == pytest.approx(abs(sums.sum()))
    share = np.mean(np.array(flipped) >= abs(sums.sum()) - 1e-12)
    assert result.p_value[0] == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 1999) + 1e-3)


@pytest.mark.parametrize("score", [0.2, 0.7])
def test_redraws_of_a_large_cell_have_its_variance(score):
    n = 5000
    y = np.arange(n) < round(n * score + 1.5 * np.sqrt(n * score * (1 - score)))
    result = redraw_test(tc.profile.Profile.from_arrays(np.full(n, score), y), surplus, resamples=1999)
    assert result.p_value[0] == pytest.approx(2 * norm.sf(1.5), abs=0.035)


def test_every_redraw_of_small_cells_is_drawn():
    counts, scores = np.array([3.0, 4.0]), np.array([0.3, 0.6])
    drawn = LinearRedraws(counts, scores, counts * scores * (1 - scores), np.eye(2)).draw(50, np.random.default_rng(0))
    assert (drawn != 0).all()  # no number of ones is 0.9 or 2.4


def test_a_statistic_of_zero_is_reached_by_zeros():
    null = NullDistribution(lambda redraws, rng: np.zeros(redraws))
    assert null.p_value(0.0, 199, np.random.default_rng(0)) == 1.0


def test_normal_counts_are_cut_off_at_zero():
    drawn = multinomial(np.array([0.03, 0.97]), 320, 20_000, np.random.default_rng(0))
    assert drawn.min() == 0
    assert (drawn[:, 0] < 1).mean() == pytest.approx(norm.cdf((1 - 9.6) / np.sqrt(9.312)), abs=0.0015)
    np.testing.assert_allclose(drawn.mean(axis=0), [9.6, 310.4], atol=0.1)
