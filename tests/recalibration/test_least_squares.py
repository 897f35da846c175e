"""Step 1 of Kumar et al. by least squares, and the promise for many classes."""

import numpy as np
import pytest

import truecal as tc


def world(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    s = rng.random(n)
    truth = 1 / (1 + np.exp(-(2 * np.log(s / (1 - s)) + 1)))
    return s, (rng.random(n) < truth).astype(int)


def test_the_curve_of_least_squares_is_the_one_a_search_finds():
    from scipy.optimize import minimize

    s, y = world()
    level = np.log(s / (1 - s))

    def loss(ab):
        return float(((y - 1 / (1 + np.exp(-(ab[0] * level + ab[1])))) ** 2).sum())

    result = minimize(loss, [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 4000})
    curve = tc.recalibration.BetaCalibration(parameters=2, loss="squared").fit(s, y).maps_[0]
    assert (curve.a, curve.c) == pytest.approx(tuple(result.x), abs=1e-5)
    likely = tc.recalibration.BetaCalibration(parameters=2).fit(s, y).maps_[0]
    assert loss([curve.a, curve.c]) < loss([likely.a, likely.c])


def test_scaling_binning_by_least_squares():
    s, y = world()
    curve = tc.recalibration.BetaCalibration(parameters=2, loss="squared")
    plain, squared = (tc.recalibration.ScalingBinning(bins=5, scaling=g).fit(s, y) for g in (None, curve))
    assert not np.array_equal(plain.predict_proba(s), squared.predict_proba(s))
    again = type(squared).from_json(squared.to_json())
    assert np.array_equal(again.predict_proba(s), squared.predict_proba(s))
    with pytest.raises(tc.InputError, match="loss"):
        tc.recalibration.BetaCalibration(loss="absolute").fit(s, y)


def test_least_squares_never_falls():
    s, y = world()
    with pytest.warns(tc.TruecalWarning, match="do not rise"):
        curve = tc.recalibration.BetaCalibration(parameters=2, loss="squared").fit(s, 1 - y).maps_[0]
    assert curve.a == 0.0


def test_rows_that_need_not_sum_to_one():
    rng = np.random.default_rng(0)
    probs = rng.random((300, 3))
    labels = rng.integers(0, 3, 300)
    with pytest.raises(tc.InputError, match="normalized=False"):
        tc.Predictions.from_probs(probs, labels)
    preds = tc.Predictions.from_probs(probs, labels, normalized=False)
    assert (
        tc.measure(preds, lens=tc.OneClass(1)).value
        == tc.measure(tc.Predictions.from_probs(probs[:, 1], labels == 1)).value
    )
    assert not preds.take(np.arange(5)).normalized
    for lens in (tc.TopK(2), tc.Canonical(), tc.Grouping({"a": [0, 1], "b": [2]})):
        with pytest.raises(tc.InputError, match="need not sum to 1"):
            tc.measure(preds, lens=lens)
    with pytest.raises(tc.InputError, match="probabilities"):
        tc.Predictions.from_probs(probs + 1, labels, normalized=False)
