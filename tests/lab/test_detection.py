"""Coverage, type I error and power, judged by binomial tests over simulated worlds."""

import numpy as np
import pytest
from scipy.stats import binomtest

from tests.simulations import datasets
from tests.study.own_metrics import mean_gap
from truecal.errors import InputError
from truecal.estimators import BinnedECE, RankSeries, SweepECE
from truecal.lab import (
    PAPER_WORLDS,
    Beta,
    Power,
    Run,
    Uniform,
    World,
    coverage,
    detection,
    power,
    power_curve,
    power_of_test,
    samples_needed,
    type_one,
)
from truecal.lab.detection import Rate, detect


def test_a_rate_knows_its_error():
    rate = Rate(95, 100)
    assert rate.rate == float(rate) == 0.95
    assert 0.018 < rate.standard_error < 0.03
    assert Rate(100, 100).standard_error > 0


def test_detection_is_the_share_above_the_null_quantile():
    rng = np.random.default_rng(0)
    null, real = rng.normal(size=4000), rng.normal(1.0, 1.0, size=1000)
    result = detect(null, real, 0.05)
    assert result.critical == pytest.approx(1.645, abs=0.08)
    assert abs(result.rate - 0.2595) < 3 * result.standard_error  # P(N(1,1) > 1.645)
    assert result.standard_error > Rate(result.hits, result.m).standard_error  # the critical value is uncertain too


def test_a_discrete_statistic_never_exceeds_its_level():
    null = np.repeat([0.0, 1.0], [930, 70])  # 7 % of ties at the top: the threshold must be the tie itself
    assert detect(null, null, 0.05).rate == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet110_c10", "resnet110_c100", "resnet152_imgnet"])
def test_rank_series_covers_the_truth(name):
    # Printed for the estimator: 0.87-0.90 at nominal 90 % on these worlds, 0.82 in the worst; calibrated 0.94-0.97.
    world = PAPER_WORLDS[name]
    raw = coverage(RankSeries(), world, n=1000, m=datasets(400))
    assert binomtest(raw.hits, raw.m, 0.84, alternative="less").pvalue > 0.01
    fixed = coverage(RankSeries(), world.perfectly_recalibrated(), n=1000, m=datasets(400))
    assert binomtest(fixed.hits, fixed.m, 0.9, alternative="less").pvalue > 0.01
    assert fixed.truth == 0.0
    assert 0 < fixed.width < 0.2


def test_a_wider_level_covers_more():
    world = PAPER_WORLDS["resnet110_c100"]
    narrow, wide = (coverage(RankSeries(), world, n=500, m=100, level=level) for level in (0.5, 0.99))
    assert narrow.rate < wide.rate
    assert narrow.width < wide.width


def test_coverage_resamples_estimators_without_a_closed_form():
    world = PAPER_WORLDS["resnet110_c100"]
    plug_in = coverage(BinnedECE(norm=2), world, n=100, m=10, rng=3)
    assert (plug_in.m, plug_in.level, plug_in.truth) == (10, 0.9, world.true_error(2))
    assert 0 < plug_in.width < 0.5
    assert coverage(BinnedECE(norm=2), world, n=100, m=10, rng=3) == plug_in


@pytest.mark.slow
@pytest.mark.parametrize("world", [World(Uniform()), World(Beta(2.0, 0.3)), PAPER_WORLDS["resnet110_c10"]])
def test_the_test_of_rank_series_keeps_its_level(world):
    result = type_one(RankSeries(), world, n=300, m=datasets(600))
    assert binomtest(result.hits, result.m, 0.05).pvalue > 0.001
    assert result.critical is None


@pytest.mark.slow
def test_simulated_critical_values_keep_their_level_on_fresh_data():
    world = World(Uniform(), Power(1.0))
    result = power(SweepECE(), world, n=300, m=datasets(1000))
    assert abs(result.rate - 0.05) < 3.5 * result.standard_error


@pytest.mark.slow
def test_roelofs_section_5_4_small_samples_see_only_large_errors():
    # "if one has under 500 samples, the miscalibration must be greater than 10% to be detected reliably" (EW)
    values = {
        error: power(BinnedECE(norm=2), World(Uniform(), power_curve(error)), n=500, m=300) for error in (0.03, 0.1)
    }
    assert values[0.03].rate < 0.5 < 0.8 < values[0.1].rate


def test_the_own_test_and_the_estimate_agree_roughly():
    world = World(Uniform(), Power(1.25))
    by_estimate = power(RankSeries(), world, n=500, m=200)
    by_test = power_of_test(RankSeries(), world, n=500, m=200)
    assert abs(by_estimate.rate - by_test.rate) < 0.2


def test_power_curve_has_the_error_asked_for():
    for error in (0.0, 0.01, 0.1, 0.3):
        for norm in (1, 2):
            assert World(Uniform(), power_curve(error, norm=norm)).true_error(norm) == pytest.approx(error, abs=1e-8)


@pytest.mark.slow
def test_needed_rows_have_an_interval_and_powers_do_not_fall():
    needed = samples_needed(RankSeries(), error=0.12, m=100, target=0.8)
    powers = list(needed.curve.values())
    assert powers == sorted(powers)
    assert needed.curve.keys() == needed.tried.keys()
    assert needed.low <= needed.n <= needed.high
    assert needed.low < needed.high < 2 * needed.low  # the noise of 100 datasets per n


def test_samples_needed_brackets_the_power():
    needed = samples_needed(RankSeries(), error=0.12, m=200, target=0.8)
    assert min(needed.tried) < needed.low <= needed.n <= max(needed.tried)
    again = power(RankSeries(), World(Uniform(), power_curve(0.12)), n=needed.n, m=300, rng=9)
    assert abs(again.rate - 0.8) < 0.13
    harder = samples_needed(RankSeries(), error=0.08, m=200, target=0.8)
    assert 1.4 < harder.n / needed.n < 4.0  # about (0.12 / 0.08)^2


def test_a_world_keeps_its_scores_when_its_error_is_scaled():
    needed = samples_needed(RankSeries(), error=0.15, world=PAPER_WORLDS["resnet110_c100"], m=50)
    assert needed.n <= 1000


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: coverage(RankSeries(), World(Uniform()), level=1.0), "level must lie"),
        (lambda: power(RankSeries(), World(Uniform()), alpha=0.0), "alpha must lie"),
        (lambda: power(RankSeries(), World(Uniform()), alpha=-0.1), "alpha must lie"),
        (lambda: type_one(RankSeries(), World(Uniform()), alpha=0.001, resamples=99), "use more"),
        (lambda: samples_needed(RankSeries(), error=0.0), "error must lie"),
        (lambda: samples_needed(RankSeries(), error=0.1, target=1.0), "target must lie"),
        (lambda: samples_needed(RankSeries(), error=0.9), "from 0 to 0.576"),
    ],
)
def test_bad_requests_are_refused_before_any_work(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_an_error_too_small_to_be_found_is_said(monkeypatch):
    monkeypatch.setattr(detection, "MAX_ROWS", 200)
    with pytest.raises(InputError, match="needs more than 256 rows"):
        samples_needed(RankSeries(), error=0.005, m=20)


def test_a_function_is_an_estimator_in_power_and_coverage():
    world = World(Uniform(), Power(1.5))
    assert power(mean_gap, world, n=400, m=50).rate > 0.9
    assert power_of_test(mean_gap, world, n=400, m=20, resamples=39).rate > 0.8
    assert type_one(mean_gap, world, n=200, m=40, resamples=39).rate < 0.25
    assert coverage(mean_gap, world, n=200, m=20).rate > 0.5  # its interval is that of the mean gap, not of the error
    needed = samples_needed(mean_gap, error=0.1, m=50)
    assert 20 < needed.low <= needed.n <= needed.high < 1000


def test_the_power_of_a_function_is_cached(tmp_path):
    needed = samples_needed(mean_gap, error=0.1, m=20, run=Run(1, str(tmp_path)))
    assert needed.low <= needed.n <= needed.high
    assert list(tmp_path.rglob("*.npz"))  # a function of a module can be cached
