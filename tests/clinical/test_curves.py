"""Flexible curves and their bands."""

import numpy as np
import pytest

import truecal as tc
from tests.clinical.worlds import WORLDS
from truecal.clinical.cohort import Cohort
from truecal.clinical.curves import fit_spline
from truecal.clinical.distances import parameter_covariance

RNG = np.random.default_rng(2)
PREDS = WORLDS[1].preds(RNG, 300)


def test_the_spline_has_as_many_knots_as_events_pay_for():
    counts = []
    for rows in (60, 150, 250, 2000):
        rng = np.random.default_rng(3)
        counts.append(len(fit_spline(Cohort.of(WORLDS[0].preds(rng, rows))).knots))
    assert counts == [0, 3, 4, 5]


def test_few_scores_have_their_own_rates_and_a_binomial_band():
    p, y = np.repeat([0.2, 0.5, 0.9], 50), np.tile([0, 1], 75)
    y[100:] = 1
    curve = tc.clinical.flexible_curve(tc.Predictions.from_probs(p, y))
    assert curve.score.tolist() == [0.2, 0.5, 0.9]
    assert curve.outcome.tolist() == [0.5, 0.5, 1.0]
    assert curve.high[2] == 1
    assert 0.9 < curve.low[2] < 1
    assert (curve.lowest <= curve.low).all()
    assert (curve.highest >= curve.high).all()


def test_bands_widen_with_clusters():
    p, y, _ = WORLDS[1].draw(np.random.default_rng(0), 400)
    rows = np.repeat(np.arange(400), 4)
    one = tc.clinical.flexible_curve(tc.Predictions.from_probs(p, y))
    counted = tc.clinical.flexible_curve(tc.Predictions.from_probs(p[rows], y[rows], clusters=rows), scores=one.score)
    naive_rows = tc.clinical.flexible_curve(tc.Predictions.from_probs(p[rows], y[rows]), scores=one.score)
    width = [(c.highest - c.lowest).mean() for c in (one, counted, naive_rows)]
    assert width[1] == pytest.approx(width[0], rel=0.1)
    assert width[2] < 0.65 * width[0]
    assert len(one.frame()) == len(one.score)
    assert ((one.lowest <= one.low) & (one.low <= one.outcome) & (one.outcome <= one.high)).all()


def test_a_band_at_one_score_is_that_of_the_whole_curve_there():
    whole = tc.clinical.flexible_curve(PREDS)
    one = tc.clinical.flexible_curve(PREDS, scores=whole.score[[90]])
    assert (one.outcome[0], one.low[0], one.high[0]) == pytest.approx(
        (whole.outcome[90], whole.low[90], whole.high[90])
    )
    assert whole.lowest[90] < one.lowest[0] <= one.low[0] < one.high[0] <= one.highest[0] < whole.highest[90]


def test_curve_refuses_scores_out_of_range():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 400)
    preds = tc.Predictions.from_probs(p, rng.random(400) < p)
    assert tc.clinical.flexible_curve(preds, scores=[0.3, 0.2]).score.tolist() == [0.2, 0.3]
    for scores in (np.array(3), [0.5, 1.1], [], ["a"]):
        with pytest.raises(tc.InputError, match="scores must"):
            tc.clinical.flexible_curve(preds, scores=scores)


def test_scores_whose_outcomes_are_all_ones_have_a_band():
    """Their rate, a mean of weights, may round past 1."""
    risks, died = np.repeat([0.3, 0.9], [5, 6]), np.r_[0, 1, 0, 1, 0, np.ones(6, int)]
    weights = np.array([0.1, 0.7, 0.3, 0.9, 0.2, 0.1, 0.2, 0.3, 0.1, 0.7, 0.3])
    curve = tc.clinical.flexible_curve(tc.Predictions.from_probs(risks, died, weights=weights))
    assert all(np.isfinite(getattr(curve, name)).all() for name in ("outcome", "low", "high", "lowest", "highest"))
    assert curve.outcome.max() <= 1.0


def test_distances_of_clusters_scatter_at_least_as_independent_rows_do():
    for world in (WORLDS[0], WORLDS[4]):
        cohort = Cohort.of(world.preds(np.random.default_rng(3), 800, 8))
        curve = fit_spline(cohort)
        lifted = parameter_covariance(cohort, curve)
        assert np.linalg.eigvalsh(lifted - curve.binomial).min() > -1e-9 * np.abs(curve.binomial).max()
        assert np.linalg.eigvalsh(lifted - curve.covariance).min() > -1e-9 * np.abs(curve.covariance).max()
