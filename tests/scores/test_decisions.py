"""What miscalibration costs decisions: naive oracles, properties, band and test."""

import numpy as np
import pytest

import truecal as tc
from truecal.resampling.units import Units
from truecal.scores.decisions import DecisionCells


def naive_cost(y, c, t):
    return sum((1 - t) * a if s < t else t * (1 - a) for a, s in zip(y, c, strict=True)) / len(y)


def naive_loss(y, c, t):
    """The cost of acting from t on, less the least cost of acting from any score on."""
    best = min(
        sum(t * (1 - a) if s >= cut else (1 - t) * a for a, s in zip(y, c, strict=True)) / len(y) for cut in [*c, 2.0]
    )
    return naive_cost(y, c, t) - best


def plug_in_losses(preds, thresholds):
    """Largest gains over all cuts, without correction of their bias."""
    sample = tc.OneClass().sample(preds)
    units = Units.of(sample, np.random.default_rng(0))
    cells = DecisionCells.of(sample, units, np.zeros((units.count, 2)), np.asarray(thresholds))
    return np.array([cells.gains(j, t, cells.rows, cells.events).max() for j, t in enumerate(thresholds)])


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_losses_and_costs_match_naive_loops(seed, ties):
    rng = np.random.default_rng(seed)
    c = rng.random(90)
    c = np.round(c, 1) if ties else c
    y = (rng.random(90) < c**1.5).astype(int)
    thresholds = np.array([0.1, 0.25, 0.5, 0.9])
    plug_in, loss = plug_in_losses(tc.Predictions.from_probs(c, y), thresholds), tc.decision_loss(y, c, thresholds)
    for i, t in enumerate(thresholds):
        assert plug_in[i] == pytest.approx(naive_loss(y, c, t), abs=1e-12)
        assert loss.cost[i] == pytest.approx(naive_cost(y, c, t), abs=1e-12)


def test_integer_weights_count_as_repetitions():
    rng = np.random.default_rng(5)
    c, weights = rng.random(60), rng.integers(1, 4, 60)
    y = (rng.random(60) < c).astype(int)
    weighted = tc.Predictions.from_probs(c, y, weights=weights)
    repeated = tc.Predictions.from_probs(np.repeat(c, weights), np.repeat(y, weights))
    one, other = (plug_in_losses(preds, [0.2, 0.5]) for preds in (weighted, repeated))
    np.testing.assert_allclose(one, other, atol=1e-12)


def test_brier_score_is_twice_the_area_under_the_murphy_diagram():
    rng = np.random.default_rng(2)
    c = rng.random(300)
    y = rng.random(300) < c**2
    grid = (np.arange(4000) + 0.5) / 4000
    loss = tc.decision_loss(y, c, grid[::8])
    assert 2 * loss.cost.mean() == pytest.approx(float(np.mean((c - y) ** 2)), abs=1e-3)
    isotonic = tc.scores.decompose(tc.profile.Profile.from_arrays(c, y))
    assert 2 * plug_in_losses(tc.Predictions.from_probs(c, y), grid).mean() == pytest.approx(
        isotonic.miscalibration, abs=1e-3
    )


def test_a_bent_curve_is_found_and_the_loss_is_right():
    rng = np.random.default_rng(0)
    c = rng.random(20_000)
    loss = tc.decision_loss(rng.random(20_000) < c**2, c)
    assert loss.p_value < 0.01
    i = int(np.argmin(abs(loss.thresholds - 0.36)))
    assert loss.low[i] <= 0.02995 <= loss.high[i]  # 0.36 * 0.24 - (0.6^3 - 0.36^3) / 3
    assert (loss.low <= loss.loss).all()
    assert (loss.loss <= loss.high).all()
    assert (loss.point_high <= loss.high + 1e-12).all()


def test_a_calibrated_model_costs_nothing():
    rng = np.random.default_rng(3)
    c = rng.random(3000)
    loss = tc.decision_loss(rng.random(3000) < c, c)
    assert loss.p_value > 0.05
    assert (loss.low == 0).all()


def test_costs_imply_the_threshold_and_the_unit():
    rng = np.random.default_rng(0)
    c = rng.random(2000)
    y = rng.random(2000) < c**2
    by_costs, by_threshold = tc.decision_loss(y, c, costs=(2, 8)), tc.decision_loss(y, c, [0.2])
    np.testing.assert_allclose(by_costs.loss, 10 * by_threshold.loss, rtol=1e-12)
    assert "a false alarm costs 2, a missed event 8" in str(by_costs.at(0.2))


def test_the_upper_limit_of_one_threshold_is_above_zero_where_no_other_cut_is_better():
    c = np.repeat([0.2, 0.8], 50)
    y = np.repeat([0, 1], 50)
    loss = tc.decision_loss(y, c, [0.5])
    assert loss.loss[0] == loss.point_low[0] == 0
    # one row of 100 moves a gain by at least its share, times the quantile 1.645
    assert loss.point_high[0] >= 0.016


def test_clusters_widen_the_interval():
    rng = np.random.default_rng(1)
    clusters = np.repeat(np.arange(100), 20)
    c = np.clip(rng.random(100)[clusters] * 0.8 + 0.1, 0, 1)
    y = rng.random(100)[clusters] < c**1.5  # one draw per cluster
    alone, together = (tc.decision_loss(y, c, [0.3], clusters=k) for k in (None, clusters))
    assert together.high[0] - together.low[0] > 1.5 * (alone.high[0] - alone.low[0])
    assert together.units == 100


def test_two_models_are_compared_on_the_same_rows():
    rng = np.random.default_rng(0)
    c = rng.random(4000)
    y = rng.random(4000) < c**2
    both = tc.decision_loss(
        {"raw": tc.Predictions.from_probs(c, y), "mended": tc.Predictions.from_probs(c**2, y)}, [0.2, 0.5]
    )
    (difference,) = both.differences
    assert (difference.low > 0).all()
    assert difference.p_value < 0.01
    same = tc.decision_loss({"a": tc.Predictions.from_probs(c, y), "b": tc.Predictions.from_probs(c, y)}, [0.2, 0.5])
    assert not same.differences[0].loss.any()
    assert same.differences[0].p_value == 1
    with pytest.raises(tc.InputError, match="same rows"):
        tc.decision_loss({"a": tc.Predictions.from_probs(c, y), "b": tc.Predictions.from_probs(c, ~y)})


@pytest.mark.parametrize("score", ["brier", "log"])
def test_parts_of_a_score_add_up_and_hold_the_truth(score):
    rng = np.random.default_rng(4)
    c = rng.random(5000)
    parts = tc.scores.decompose_score(rng.random(5000) < c**2, c, score)
    total = parts.miscalibration[0] - parts.discrimination[0] + parts.uncertainty[0]
    assert parts.score[0] == pytest.approx(total, abs=1e-12)
    big = (np.arange(10**6) + 0.5) / 10**6
    rate = big**2
    kl = rate * np.log(rate / big) + (1 - rate) * np.log((1 - rate) / (1 - big))
    true = np.mean((rate - big) ** 2) if score == "brier" else np.mean(kl)
    assert parts.miscalibration[1] <= true <= parts.miscalibration[2]


def test_refusals_name_the_remedy():
    y, c = np.array([0, 1] * 20), np.linspace(0.1, 0.9, 40)
    with pytest.raises(tc.InputError, match=r"strictly between 0 and 1.*number 1 is 1"):
        tc.decision_loss(y, c, [0.5, 1.0])
    with pytest.raises(tc.InputError, match="not both"):
        tc.decision_loss(y, c, [0.5], costs=(1, 2))
    with pytest.raises(tc.InputError, match="two numbers above 0"):
        tc.decision_loss(y, c, costs=(1, -2))
    with pytest.raises(tc.InputError, match="is not among those computed"):
        tc.decision_loss(y, c, [0.5]).at(0.4)
    with pytest.raises(tc.InputError, match="infinite"):
        tc.scores.decompose_score([1, 0] * 20, [0.0, 0.4] * 20, "log")


def simulate_coverage(datasets: int, n: int, power: float) -> tuple[float, float]:
    """Share of datasets whose band holds the whole true curve, and whose test rejects calibration."""
    thresholds = np.arange(5, 100, 5) / 100
    big = (np.arange(200_000) + 0.5) / 200_000
    rate = big**power
    true = np.array([(np.maximum(rate - t, 0) - (rate - t) * (big >= t)).mean() for t in thresholds])
    rng, inside, rejected = np.random.default_rng(1), 0, 0
    for seed in range(datasets):
        c = rng.random(n)
        loss = tc.decision_loss(rng.random(n) < c**power, c, thresholds, rng=seed)
        inside += bool(((loss.low <= true + 1e-6) & (true - 1e-6 <= loss.high)).all())
        rejected += loss.p_value <= 0.05
    return inside / datasets, rejected / datasets


def test_band_and_test_hold_in_a_few_datasets():
    inside, _ = simulate_coverage(30, 500, 1.5)
    assert inside >= 0.86
    inside, rejected = simulate_coverage(30, 500, 1.0)
    assert inside >= 0.86
    assert rejected <= 0.17


@pytest.mark.parametrize("seed", range(6))
def test_the_test_rejects_exactly_where_the_band_leaves_zero(seed):
    rng = np.random.default_rng(seed)
    c = rng.random(400)
    clusters = np.arange(400) // 4 if seed % 2 else None
    for thresholds in ([0.4], [0.1, 0.3, 0.6]):
        loss = tc.decision_loss(rng.random(400) < c**1.25, c, thresholds, clusters=clusters)
        assert (loss.p_value <= 0.05) == (loss.low > 0).any()
        if len(thresholds) == 1:
            assert (loss.low[0], loss.high[0]) == (loss.point_low[0], loss.point_high[0])


def test_models_on_different_clusters_are_refused():
    c, y = np.linspace(0.01, 0.99, 60), np.arange(60) % 2
    a, b = (tc.Predictions.from_probs(c, y, clusters=np.arange(60) // size) for size in (2, 3))
    with pytest.raises(tc.InputError, match="same rows and clusters"):
        tc.decision_loss({"a": a, "b": b})


@pytest.mark.full
@pytest.mark.parametrize("power", [1.0, 1.5])
def test_band_and_test_hold(power):
    inside, rejected = simulate_coverage(400, 1000, power)
    assert 0.92 <= inside <= 0.99
    assert rejected <= 0.07 or power > 1


def test_the_band_of_a_difference_holds_where_one_model_loses_nothing():
    grid, inside = np.array([0.05, 0.2, 0.5, 0.8]), 0
    big = (np.arange(200_000) + 0.5) / 200_000
    rate = 0.15 + 0.7 * big
    true = np.array([(np.maximum(rate - t, 0) - (rate - t) * (big >= t)).mean() for t in grid])
    for seed in range(30):
        rng = np.random.default_rng(seed)
        c = rng.random(500)
        y = rng.random(500) < 0.15 + 0.7 * c
        models = {name: tc.Predictions.from_probs(p, y) for name, p in (("raw", c), ("true", 0.15 + 0.7 * c))}
        (difference,) = tc.decision_loss(models, grid, rng=seed).differences
        inside += bool(((difference.low <= true + 1e-6) & (true - 1e-6 <= difference.high)).all())
    assert inside >= 27
