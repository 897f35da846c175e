"""False alarms and delays over simulated streams: a small part of `tests.watch.simulate`; full counts are in docs/watch.md."""

import numpy as np
import pytest

import truecal as tc
from tests.watch.simulate import CHANGES, SCORES, simulate

pytestmark = pytest.mark.slow


def most(level: float, trials: int) -> float:
    """A rate that exceeds `level` by chance in one of about 700 simulations."""
    return level + 3 * np.sqrt(level * (1 - level) / trials)


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("rows", [50, 5000])
def test_calibrated_models_are_left_alone(scores, rows):
    run = simulate(scores, rows, 0.0, lambda c, _: c, streams=60, looks=120, seed=1)
    assert (run.ever <= 120).mean() <= most(0.05, 60)
    assert (run.changed <= 120).mean() <= most(0.12, 60)  # 120 batches of a run length of 1000


@pytest.mark.parametrize("side", [-1, 1])
def test_models_at_the_edge_of_the_tolerance_are_left_alone(side):
    run = simulate("skewed", 300, 0.02, lambda c, _: np.clip(c + side * 0.02, 0, 1), streams=60, looks=120, seed=2)
    assert (run.ever <= 120).mean() <= most(0.05, 60)


def test_fifty_groups_are_left_alone():
    run = simulate("uniform", 50, 0.0, lambda c, _: c, streams=20, looks=40, groups=50, seed=3)
    assert (run.ever <= 40).mean() <= most(0.05, 20)


@pytest.mark.parametrize(("scores", "tolerance"), [("skewed", 0.02), ("uniform", 0.01)])
def test_a_shift_of_five_points_is_found_within_five_days(scores, tolerance):
    curve = CHANGES["5 points down"]
    run = simulate(
        scores,
        300,
        tolerance,
        lambda c, t: c if t <= 10 else curve(c, t),
        streams=60,
        looks=50,
        seed=4,
        run_length=1000,
    )
    assert np.median(run.changed[run.changed > 10] - 10) <= 5
    if scores == "uniform":  # where a test of every day at 5 % in all (Bonferroni) holds its level
        assert np.median(run.changed) < np.median(run.daily)


def test_a_local_shift_is_found_where_a_daily_test_is_blind():
    curve = CHANGES["above 0.9 down by 5 points"]
    run = simulate("uniform", 300, 0.0, lambda c, t: c if t <= 10 else curve(c, t), streams=40, looks=70, seed=5)
    assert np.median(run.changed[run.changed > 10] - 10) <= 25
    assert np.median(run.daily) > 70  # never


def test_clusters_of_ten_are_left_alone():
    """Rows of a cluster have the same outcome: taken as independent they raise the alarm, as units they do not."""
    rng = np.random.default_rng(6)
    alarms = {"units": 0, "rows": 0}
    for _ in range(8):
        watches = {"units": tc.Watch(tolerance=0.0), "rows": tc.Watch(tolerance=0.0)}
        for _ in range(15):
            p = np.repeat(rng.beta(2, 2, 30), 10)
            y = np.repeat(rng.random(30), 10) < p
            ids = np.repeat(np.arange(30), 10)
            watches["units"].update(tc.Predictions.from_probs(p, y, clusters=ids))
            watches["rows"].update(tc.Predictions.from_probs(p, y))
        for name, watch in watches.items():
            alarms[name] += watch.step().alarm
    assert alarms["units"] <= 1
    assert alarms["rows"] == 8
