"""Quick redraws of the rank series' statistic: their distribution, and when they stop."""

import numpy as np
import pytest
from scipy.stats import binom, ks_2samp

import truecal as tc
from truecal.estimators.rank_series.basis import positive, rank_cells
from truecal.estimators.rank_series.fit import fits, smooth_test_statistic
from truecal.estimators.rank_series.null import _WORDS, Null, _distributions

SHAPES = {
    "single rows": lambda rng: rng.random(300),
    "rare events": lambda rng: rng.random(20_000) * 0.01,
    "near certainty": lambda rng: 1 - rng.random(20_000) ** 6,
    "large cells": lambda rng: rng.random(150_000),
    "ties": lambda rng: np.round(rng.random(500), 1),
}


def null_of(c, y):
    (fit,) = fits(tc.profile.Profile.from_arrays(c, y))
    cells, count, covariance = fit.cells, fit.cells.dataset_counts[0], fit.null_covariance[0]
    waves = fit.basis[0] / np.sqrt(positive(count) * cells.n[0])
    return (
        Null(count, cells.scores[0], cells.null_variances[0], waves, covariance),
        count,
        cells.scores[0],
        waves,
        covariance,
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_redraws_have_the_distribution_of_binomial_cells(shape):
    rng = np.random.default_rng(0)
    c = SHAPES[shape](rng)
    null, count, score, waves, covariance = null_of(c, rng.random(len(c)) < c)
    quick = null.draw(2000, rng)
    rows = np.rint(count).astype(int)
    ones = rng.binomial(rows, np.clip(score, 0, 1), (2000, len(rows)))
    exact = smooth_test_statistic((ones - rows * score) @ waves.T, covariance)
    assert ks_2samp(quick, exact).pvalue > 0.005
    assert np.quantile(quick, 0.95) == pytest.approx(np.quantile(exact, 0.95), rel=0.15)


def test_cells_are_in_the_order_of_their_ranks_where_some_are_empty():
    rng = np.random.default_rng(0)
    cells = rank_cells(
        tc.profile.Profile.from_arrays(rng.random(1030), rng.random(1030) < 0.5, rng.integers(1, 4, 1030))
    )
    assert (cells.counts == 0).any()
    assert (np.diff(cells.ranks[0]) >= 0).all()


def test_distribution_functions_are_binomial():
    rows, chance = np.array([1.0, 3.0, 40.0, 1000.0]), np.array([0.3, 1e-6, 0.4, 0.01])
    tables = _distributions(rows, chance)
    for column, n, p in zip(tables.T, rows, chance, strict=True):
        inner = column < _WORDS
        np.testing.assert_allclose(column[inner] / _WORDS, binom(n, p).cdf(np.flatnonzero(inner)), atol=1e-9)
        assert binom(n, p).sf(inner.sum()) < 1e-8


def test_redraws_stop_where_the_p_value_is_settled():
    rng = np.random.default_rng(1)
    c = rng.random(300)
    null = null_of(c, rng.random(300) < c)[0]
    large = null.p_value(-1.0, 999, rng)
    assert large == 1.0
    assert [len(kept.at_most) for kept in null._kept] == [199]
    assert null.p_value(1e9, 999, rng) == 0.001
    assert [len(kept.at_most) for kept in null._kept] == [199, 800]
    assert null.p_value(1e9, 50, rng) == pytest.approx(1 / 51)


@pytest.mark.parametrize("shape", SHAPES)
def test_single_precision_never_decides(shape):
    rng = np.random.default_rng(3)
    c = SHAPES[shape](rng)
    y = rng.random(len(c)) < c
    every = null_of(c, y)[0]
    exact = np.concatenate([every.draw(199, later := np.random.default_rng(4)), every.draw(800, later)])
    null, again = null_of(c, y)[0], np.random.default_rng(4)
    null.p_value(1e9, 999, again)
    at_most = np.concatenate([kept.at_most for kept in null._kept])
    assert (at_most >= exact).all()
    assert np.quantile(at_most - exact, 0.5) < 0.2
    # at a redraw itself, where the two could differ most, and between two of them
    for statistic in (*np.sort(exact)[-100::9], *np.quantile(exact, (0.9, 0.95, 0.99))):
        assert null.p_value(statistic, 999, again) == (1 + np.count_nonzero(exact >= statistic * (1 - 1e-12))) / 1000


def test_p_values_of_calibrated_data_are_uniform_enough():
    rng = np.random.default_rng(2)
    c = rng.random((200, 400)) ** 3
    p = tc.RankSeries().test(tc.profile.Profile.from_arrays(c, rng.random(c.shape) < c), rng=0).p_value
    for level in (0.05, 0.1, 0.5):
        assert abs((p <= level).mean() - level) < 3.5 * np.sqrt(level * (1 - level) / 200)
