"""Trials: the arithmetic of a trial."""

import numpy as np
import pytest

from truecal.errors import InputError
from truecal.estimators import BinnedECE, DebiasedECE, RankSeries, SweepECE
from truecal.lab import PAPER_WORLDS, Beta, Identity, Power, Trial, Uniform, World, bias, table_of, trials


def test_a_trial_does_its_sums():
    values = np.array([0.1, 0.2, 0.4, 0.5])
    trial = Trial("e", "w", 100, 0.25, values)
    assert trial.m == 4
    assert trial.bias == pytest.approx(0.05)
    assert trial.std == pytest.approx(np.std(values, ddof=1))
    assert trial.variance == pytest.approx(np.var(values, ddof=1))
    assert trial.rmse == pytest.approx(np.sqrt(np.mean((values - 0.25) ** 2)))
    assert trial.standard_error == pytest.approx(np.std(values, ddof=1) / 2)


def test_standard_errors_are_the_spread_of_repeated_trials():
    world, estimator = World(Beta(2, 0.3), Power(1.2)), BinnedECE(norm=2)
    repeats = [bias(estimator, world, n=200, m=60, rng=seed) for seed in range(60)]
    for quantity, error in (("bias", "standard_error"), ("std", "std_standard_error"), ("rmse", "rmse_standard_error")):
        spread = np.std([getattr(t, quantity) for t in repeats], ddof=1)
        claimed = np.mean([getattr(t, error) for t in repeats])
        assert 0.7 < spread / claimed < 1.35  # 60 repeats know a standard deviation to about 9 %


def test_rmse_squared_is_bias_squared_plus_variance():
    trial = bias(SweepECE(), PAPER_WORLDS["resnet110_c100"], n=300, m=100)
    assert trial.rmse**2 == pytest.approx(trial.bias**2 + trial.variance * (trial.m - 1) / trial.m)


def test_every_estimator_is_compared_with_the_truth_in_its_own_norm():
    world = PAPER_WORLDS["resnet110_c10"]
    one, two = trials({"l1": BinnedECE(norm=1), "l2": BinnedECE(norm=2)}, {"w": world}, n=[100], m=10)
    assert one.truth == pytest.approx(world.true_error(1))
    assert two.truth == pytest.approx(world.true_error(2))


def test_estimators_may_depend_on_the_world():
    simulated = trials(
        lambda name: {name.upper(): BinnedECE(bins=len(name))},
        {"a": World(Uniform()), "bb": World(Uniform())},
        n=[50],
        m=5,
    )
    assert [t.estimator_name for t in simulated] == ["A", "BB"]


def test_a_table_of_trials_is_tidy():
    simulated = trials({"EW": BinnedECE(), "EM": BinnedECE(scheme="mass")}, {"w": World(Uniform())}, n=[50, 60], m=5)
    table = table_of(simulated)
    assert len(table) == 4
    assert table["n"].tolist() == [50, 50, 60, 60]
    assert table[1]["bias"] == simulated[1].bias


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: trials({"x": 3}, {"w": World(Uniform())}, n=[10]), "'x' is 3, not an estimator"),
        (lambda: trials({"x": BinnedECE()}, {"w": Uniform()}, n=[10]), "not a World"),
        (lambda: trials({"x": BinnedECE()}, {}, n=[10]), "at least one world"),
        (lambda: trials({"x": BinnedECE()}, {"w": World(Uniform())}, n=[]), "one n"),
        (lambda: bias(BinnedECE(), World(Uniform()), n=0), "n >= 1"),
        (lambda: bias(BinnedECE(norm=np.inf), World(Uniform()), n=10), "norm must be"),
    ],
)
def test_bad_requests_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.slow
def test_the_bias_near_zero_is_worst_as_in_roelofs_figure_7():
    calibrated = bias(BinnedECE(norm=2), World(Uniform(), Identity()), n=200, m=300)
    wrong = bias(BinnedECE(norm=2), World(Uniform(), Power(4)), n=200, m=300)
    assert calibrated.bias > 0.08
    assert abs(wrong.bias) < 0.02
    debiased = bias(DebiasedECE(norm=2), World(Uniform(), Identity()), n=200, m=300)
    ours = bias(RankSeries(), World(Uniform(), Identity()), n=200, m=300)
    assert ours.bias < debiased.bias < calibrated.bias
