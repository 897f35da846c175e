"""False alarms and delays over simulated streams: a small part of `tests.watch.simulate`; full counts are in docs/watch.md."""

import numpy as np
import pytest

import truecal as tc
from tests.simulations import at_most, datasets
from tests.watch.simulate import CHANGES, SCORES, Table, _drawn, simulate, support
from truecal.watch.e_processes import Batch, Evidence, Experts, starting_weight, unspent_weight

pytestmark = pytest.mark.slow
MANY, FEW = datasets(60), datasets(40)


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("tolerance", [0.0, 0.02])
def test_simulated_streams_have_the_evidence_of_watched_ones(scores, tolerance):
    share, mean = support(scores)
    experts, rng = Experts.of(tolerance, share * 300, mean), np.random.default_rng(1)
    table, watched = Table(experts, mean), [Evidence.none(experts)] * 3
    ever, change = np.zeros((table.experts, 3)), np.zeros((table.experts, 3))
    for look in range(1, 6):
        n, ones = _drawn(rng, 300, share, mean, 3)
        won, entry = table.play(n, ones)
        e_values = table.after(ever, won, entry * starting_weight(look)) + unspent_weight(look)
        changes = table.after(change, won, entry)
        for i, filled in enumerate(n > 0):
            batch = Batch(n[i, filled], ones[i, filled], mean[filled], 300, 0, 0)
            watched[i] = watched[i].after(experts.play(batch))
    assert np.log(e_values) == pytest.approx([evidence.log_e for evidence in watched], abs=1e-4)
    assert np.log(changes) == pytest.approx([evidence.log_change for evidence in watched], abs=1e-4)


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("rows", [50, 5000])
def test_calibrated_models_are_left_alone(scores, rows):
    run = simulate(scores, rows, 0.0, lambda c, _: c, streams=MANY, looks=120, seed=1)
    assert at_most((run.ever <= 120).sum(), MANY, 0.05)
    assert at_most((run.changed <= 120).sum(), MANY, 0.12)  # 120 batches of a run length of 1000


@pytest.mark.parametrize("side", [-1, 1])
def test_models_at_the_edge_of_the_tolerance_are_left_alone(side):
    run = simulate("skewed", 300, 0.02, lambda c, _: np.clip(c + side * 0.02, 0, 1), streams=MANY, looks=120, seed=2)
    assert at_most((run.ever <= 120).sum(), MANY, 0.05)


def test_fifty_groups_are_left_alone():
    run = simulate("uniform", 50, 0.0, lambda c, _: c, streams=20, looks=40, groups=50, seed=3)
    assert at_most((run.ever <= 40).sum(), 20, 0.05)


@pytest.mark.parametrize(("scores", "tolerance"), [("skewed", 0.02), ("uniform", 0.01)])
def test_a_shift_of_five_points_is_found_within_five_days(scores, tolerance):
    curve = CHANGES["5 points down"]
    run = simulate(
        scores,
        300,
        tolerance,
        lambda c, t: c if t <= 10 else curve(c, t),
        streams=MANY,
        looks=50,
        seed=4,
        run_length=1000,
    )
    assert np.median(run.changed[run.changed > 10] - 10) <= 5
    if scores == "uniform":  # where a test of every day at 5 % in all (Bonferroni) holds its level
        assert np.median(run.changed) < np.median(run.daily)


def test_a_local_shift_is_found_where_a_daily_test_is_blind():
    curve = CHANGES["above 0.9 down by 5 points"]
    run = simulate("uniform", 300, 0.0, lambda c, t: c if t <= 10 else curve(c, t), streams=FEW, looks=70, seed=5)
    assert np.median(run.changed[run.changed > 10] - 10) <= 18
    assert np.median(run.daily) > 70  # never


@pytest.mark.parametrize(
    ("scores", "change", "days"),
    [("uniform", "above 0.9 down by 5 points", 70), ("skewed", "slope 0.7 in log odds", 30)],
)
def test_what_lies_beyond_a_tolerance_in_some_places_only_is_found(scores, change, days):
    """Before experts kept to where they expect more than the tolerance it took 113 and 39 days."""
    truth = lambda c, t: c if t <= 10 else CHANGES[change](c, t)  # noqa: E731
    run = simulate(scores, 300, 0.02, truth, streams=FEW, looks=100, seed=5)
    assert np.median(run.changed[run.changed > 10] - 10) <= days


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
