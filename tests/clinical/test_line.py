"""The calibration line and the distances of the curve against logistic fits and hand calculation."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import truecal as tc
from truecal.clinical import calibration_line, curve_distance

RNG = np.random.default_rng(12)
P = RNG.random(400)
Y = (RNG.random(400) < P**1.5).astype(int)


def test_the_line_is_the_logistic_fit():
    z = np.log(P / (1 - P))
    fit = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(z[:, None], Y)
    line = calibration_line(tc.Profile.from_arrays(P, Y))
    assert line.slope == pytest.approx(fit.coef_[0, 0], abs=1e-4)
    shifted = 1 / (1 + np.exp(-(z + line.intercept)))
    assert shifted.mean() == pytest.approx(Y.mean(), abs=1e-8)  # the offset model's likelihood equation
    assert line.left_out == 0


def test_the_line_says_what_it_left_out_and_when_it_does_not_exist():
    c, y = np.append(P, [0.0, 1.0, 1.0, 1.0]), np.append(Y, [0, 1, 1, 1])
    assert calibration_line(tc.Profile.from_arrays(c, y)).left_out == pytest.approx(4 / 404)
    separable = tc.Profile.from_arrays([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
    assert calibration_line(separable).slope == np.inf
    assert calibration_line(tc.Profile.from_arrays([0.1, 0.2, 0.8, 0.9], [1, 1, 0, 0])).slope == -np.inf
    with pytest.raises(tc.InputError, match="both outcomes"):
        calibration_line(tc.Profile.from_arrays([0.1, 0.2], [1, 1]))
    with pytest.raises(tc.InputError, match="two different scores"):
        calibration_line(tc.Profile.from_arrays([0.3, 0.3], [1, 0]))


def test_distances_of_the_curve():
    distance = curve_distance(tc.Profile.from_arrays(P, Y))
    curve = tc.RankSeries()(tc.Profile.from_arrays(P, Y)).curve
    gap = np.abs(curve.outcome - curve.score)
    assert distance.ici == pytest.approx(gap.mean())
    assert distance.e50 == pytest.approx(np.quantile(gap, 0.5, method="inverted_cdf"))
    assert distance.e90 == pytest.approx(np.quantile(gap, 0.9, method="inverted_cdf"))
    assert distance.emax == pytest.approx(gap.max())
    true_gap = np.abs(P**1.5 - P).mean()
    assert distance.ici == pytest.approx(true_gap, abs=0.04)


def test_batches_are_refused_by_one_dataset_summaries():
    batch = tc.Profile.from_arrays([[0.1, 0.2], [0.3, 0.4]], [[0, 1], [1, 0]])
    for summary in (calibration_line, curve_distance):
        with pytest.raises(tc.InputError, match="one dataset"):
            summary(batch)
