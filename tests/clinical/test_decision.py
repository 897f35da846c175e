"""Net benefit against naive code, its comparison of models, and what it refuses."""

import numpy as np
import pytest

import truecal as tc
from tests.clinical import naive
from tests.clinical.worlds import WORLDS

RNG = np.random.default_rng(4)
P, Y, CLUSTERS = WORLDS[1].draw(RNG, 400, 4)
WEIGHTS = RNG.random(400)
AT = [0.05, 0.2, 0.5, 0.8]


@pytest.mark.parametrize("p", [P, np.round(P, 1), np.where(P > 0.5, 1.0, P)], ids=["random", "tied", "saturated"])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_values_equal_naive_code(p, weights):
    curves = tc.clinical.net_benefit(tc.Predictions.from_probs(p, Y, weights=weights), AT)
    w = np.ones(400) if weights is None else weights
    assert curves.net_benefit == pytest.approx([naive.benefit(p, Y, w, t) for t in AT], abs=1e-10)
    assert curves.treat_all == pytest.approx([naive.benefit(np.ones(400), Y, w, t) for t in AT], abs=1e-10)
    assert curves.gain == pytest.approx(curves.net_benefit - np.maximum(curves.treat_all, 0))
    assert curves.treated == pytest.approx([np.average(p >= t, weights=w) for t in AT])


def test_intervals_count_patients():
    rows = np.repeat(np.arange(400), 3)
    one = tc.clinical.net_benefit(tc.Predictions.from_probs(P, Y), AT)
    copied = tc.clinical.net_benefit(tc.Predictions.from_probs(P[rows], Y[rows], clusters=rows), AT)
    assert copied.low == pytest.approx(one.low)
    assert copied.high == pytest.approx(one.high)
    clustered = tc.clinical.net_benefit(tc.Predictions.from_probs(P, Y, clusters=CLUSTERS), AT)
    assert clustered.high[0] - clustered.low[0] > one.high[0] - one.low[0]


def test_cost_of_a_decision_is_that_of_decision_loss():
    preds, t = tc.Predictions.from_probs(P, Y), 0.2
    benefit = tc.clinical.net_benefit(preds, [t]).net_benefit[0]
    cost = tc.decision_loss(preds, costs=(1, 4)).cost[0]  # 4 (missed events) + 1 (people treated without need)
    assert cost == pytest.approx(4 * (Y.mean() - benefit))


def test_models_are_compared_row_by_row():
    a, b = tc.Predictions.from_probs(P, Y), tc.Predictions.from_probs(P**2, Y)
    both = tc.clinical.net_benefit({"a": a, "b": b}, AT)
    difference = both.difference("a", "b")
    assert difference["difference"] == pytest.approx(both["a"].net_benefit - both["b"].net_benefit)
    assert (difference["high"] - difference["low"] < both["a"].high - both["a"].low).all()
    assert set(both.frame()["model"]) == {"a", "b"}
    assert "a is better than b" in str(both)
    with pytest.raises(tc.InputError, match="row 0 has outcome"):
        tc.clinical.net_benefit({"a": a, "c": tc.Predictions.from_probs(P, 1 - Y)}, AT)
    with pytest.raises(tc.InputError, match="400 rows and 'c' 399"):
        tc.clinical.net_benefit({"a": a, "c": a.take(np.arange(399))}, AT)
    with pytest.raises(tc.InputError, match="no model 'x'"):
        both["x"]


@pytest.mark.parametrize("wrong", [0, 1, 1.5, np.nan])
def test_thresholds_are_refused_by_name(wrong):
    with pytest.raises(tc.InputError, match=r"strictly between 0 and 1.*: number 1 is"):
        tc.clinical.net_benefit(tc.Predictions.from_probs(P, Y), [0.1, wrong])
    with pytest.raises(tc.InputError, match="list of numbers"):
        tc.clinical.net_benefit(tc.Predictions.from_probs(P, Y), [])


def test_treating_everyone_has_wilsons_interval():
    from truecal.clinical.cohort import student_quantile

    curve = tc.clinical.net_benefit(tc.Predictions.from_probs(np.full(len(Y), 0.6), Y), [0.2, 0.5])
    share, n, z = Y.mean(), len(Y), student_quantile(len(Y) - 1, 0.95)
    centre, spread = share + z**2 / 2 / n, z * np.sqrt(share * (1 - share) / n + z**2 / 4 / n**2)
    for i, odds in enumerate((0.25, 1.0)):
        low, high = ((centre + side * spread) / (1 + z**2 / n) * (1 + odds) - odds for side in (-1, 1))
        assert (curve.low[i], curve.high[i]) == pytest.approx((low, high))


def test_a_threshold_that_nobody_reaches_is_not_certain():
    p = np.linspace(0.05, 0.3, 200)
    y = (np.arange(200) % 5 == 0).astype(int)
    curves = tc.clinical.net_benefit(tc.Predictions.from_probs(p, y), [0.4])
    assert curves.net_benefit == 0
    assert -0.02 < curves.low < 0 < curves.high < 0.03
    twice = tc.Predictions.from_probs(np.tile(p, 2), np.tile(y, 2), clusters=np.tile(np.arange(200), 2))
    again = tc.clinical.net_benefit(twice, [0.4])
    assert (again.low[0], again.high[0]) == pytest.approx((curves.low[0], curves.high[0]))
