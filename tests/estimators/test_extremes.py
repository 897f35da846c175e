"""Weights and scores at the ends of what a float holds: the right answer, or a refusal."""

import numpy as np
import pytest

import truecal as tc

P = np.random.default_rng(0).random(200)
Y = (np.random.default_rng(1).random(200) < P).astype(int)
MAX = tc.BinnedECE(bins=15, norm=np.inf)


@pytest.mark.parametrize("apart", [1.0, 1e6, 1e12])
def test_the_largest_gap_does_not_drown_in_heavier_bins(apart):
    weights = np.where(P < 0.5, 1.0, apart)
    cell = np.minimum((P * 15).astype(int), 14)
    gaps = [
        abs(np.average(Y[cell == k], weights=weights[cell == k]) - np.average(P[cell == k], weights=weights[cell == k]))
        for k in range(15)
    ]
    profile = tc.profile.Profile.from_arrays(P, Y, weights)
    assert MAX(profile).value == pytest.approx(max(gaps), abs=1e-12)


@pytest.mark.parametrize("norm", [21, 700, 1e5])
def test_norms_whose_powers_vanish_are_refused(norm):
    with pytest.raises(tc.InputError, match="at most 20, or inf for the largest gap"):
        tc.BinnedECE(norm=norm)


def test_the_largest_norm_approaches_the_largest_gap():
    profile = tc.profile.Profile.from_arrays(P, Y)
    assert 0.8 * MAX(profile).value < tc.BinnedECE(bins=15, norm=20)(profile).value <= MAX(profile).value


@pytest.mark.parametrize("scale", [1e-160, 1e-200, 1e-310])
def test_scores_whose_squares_vanish(scale):
    off = tc.calibration_error(Y, P * scale)
    assert off.value == pytest.approx(np.sqrt(Y.mean()), abs=0.2)
    assert off.p_value < 0.01
    right = tc.calibration_error(np.zeros(200, int), P * scale)
    assert right.value == pytest.approx(0, abs=1e-12)
    assert right.p_value > 0.5


def test_counts_of_a_thousand_million_million_are_resampled():
    est = tc.calibration_error(Y, P, sample_weight=np.full(200, 1e13), estimator=tc.BinnedECE())
    assert est.interval.low <= est.value <= est.interval.high
    assert est.value == pytest.approx(tc.calibration_error(Y, P, estimator=tc.BinnedECE()).value)


@pytest.mark.parametrize("estimator", [None, tc.BinnedECE(), tc.SweepECE()])
@pytest.mark.parametrize("lens", [tc.ClassWise(), tc.AllLabels(), tc.TopLabel()])
def test_rows_of_weight_zero_are_absent(estimator, lens):
    rng = np.random.default_rng(2)
    probs, labels = rng.dirichlet([1, 1, 1], 40), rng.integers(0, 3, 40)
    weights = np.repeat([0, 1], [35, 5])
    est = tc.calibration_error(labels, probs, lens=lens, estimator=estimator, sample_weight=weights)
    alone = tc.calibration_error(labels[35:], probs[35:], lens=lens, estimator=estimator)
    assert est.value == pytest.approx(alone.value, abs=1e-12)
    assert 0 <= est.interval.low <= est.interval.high <= 1


def test_the_note_on_equal_scores_is_true():
    est = tc.calibration_error([1] * 33 + [0] * 67, [0.3] * 100)
    assert est.value == 0  # a deviation of 0.03 is what chance brings
    assert "all scores are equal, so only the mean score is judged, against the mean outcome" in est.warnings
