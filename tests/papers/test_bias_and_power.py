"""Bias and power in worlds, beside the numbers that Roelofs et al. and Peng et al. print."""

import numpy as np
import pytest

import truecal as tc
from papers.experiment import Setting
from papers.peng import benchmark as peng
from papers.roelofs import bias as roelofs


@pytest.mark.slow
def test_roelofs_figure_4():
    table = roelofs.figure_4(Setting(1000)).table
    differences = np.abs(table["difference"].astype(float))
    assert len(differences) == 36
    assert differences.max() < 0.4
    assert differences.mean() < 0.15


@pytest.mark.slow
def test_roelofs_figure_1_a_calibrated_model_looks_bad():
    rows = [row for row in roelofs.figure_1(Setting(5000)).table if row["panel"] != "one sample"]
    shares, low = (np.array([row[name] for row in rows], float) for name in ("share", "low"))
    assert shares.sum() == pytest.approx(1.0)
    assert low[np.cumsum(shares) > 0.05][0] > 1.5  # 95 % of samples claim an error above 1.5 % where there is none


@pytest.mark.slow
@pytest.mark.full
def test_peng_uncalibrated_means():
    # The paper: mean bias KNN -0.115, SWEEP -0.281, DEBIASED -0.521, EW -1.210; mean |bias| KNN 0.183, SWEEP 0.364.
    result = peng.benchmark("uncalibrated", Setting(100))
    percent = {name: np.array([100 * t.bias for t in result if t.estimator_name == name]) for name in peng.ESTIMATORS}
    mean = {name: abs(values.mean()) for name, values in percent.items()}
    absolute = {name: np.abs(values).mean() for name, values in percent.items()}
    assert mean["KNN"] < mean["SWEEP"] < mean["DEBIASED"] < mean["EW"]
    assert absolute["KNN"] <= 0.25
    assert absolute["SWEEP"] <= 0.40
    assert absolute["RankSeries"] <= 0.15
    assert mean["KNN"] == pytest.approx(0.115, abs=0.1)
    assert mean["EW"] == pytest.approx(1.21, abs=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("group", ["recalibrated", "calibrated"])
def test_rank_series_is_the_least_biased_on_recalibrated_worlds(group):
    worlds = peng.world_groups(Setting(60))[group]
    simulated = tc.lab.trials(peng.peng_estimators, worlds, n=(200, 800, 3200), m=60)
    absolute = {name: np.mean([abs(t.bias) for t in simulated if t.estimator_name == name]) for name in peng.ESTIMATORS}
    assert min(absolute, key=absolute.get) == "RankSeries"


@pytest.mark.slow
def test_roelofs_figure_8_rank_series_above_sweep_above_equal_width():
    table = roelofs.figure_8(Setting(200), n=(10_000,), errors=(0.0125,)).table
    values = {r["estimator"]: r["power"] for r in table}
    assert values["RankSeries"] > values["EMsweep"] > values["EW"]
