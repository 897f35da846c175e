"""Sample sizes: the published example, what the formulas promise, and simulation beside them."""

import numpy as np
import pytest
from scipy.special import expit, ndtri

import truecal as tc
from tests.clinical.worlds import WORLDS
from truecal.clinical.planning import _newcombe


def test_the_published_example():
    # Riley et al. 2021 (and the manual of pmvalsampsize): prevalence 0.018, c 0.8, log odds normal(-5, 2.5), O/E width 1
    z = ndtri((np.arange(200_000) + 0.5) / 200_000)
    plan = tc.clinical.sample_size(expit(-5 + 2.5 * z), widths={"slope": 0.2})
    assert plan.rows == pytest.approx(4544, abs=15)
    assert _newcombe(0.8, 0.018, 0.1 / (2 * 1.959964)) == 4252
    rare = tc.clinical.sample_size(np.full(10, 0.018), widths={"oe": 1.0})
    assert rare.rows == pytest.approx(905, abs=1)


def test_an_interval_of_that_many_rows_is_as_wide_as_asked():
    z = ndtri((np.arange(100_000) + 0.5) / 100_000)
    risks = expit(-1 + z)
    plan = tc.clinical.sample_size(risks, widths={"oe": 0.2, "slope": 0.3, "intercept": 0.3, "c_statistic": 0.08})
    for row in plan.frame():
        cohort = tc.clinical.summary(WORLDS[0].preds(np.random.default_rng(1), int(row["rows"])))
        number = getattr(cohort, row["number"])
        assert number.high - number.low == pytest.approx(row["width"], rel=0.2), row["number"]
    assert plan.rows == plan.frame()["rows"].max()
    assert f"{plan.rows:,} rows" in str(plan)


def test_assumed_population_has_its_prevalence_and_c_statistic():
    plan = tc.clinical.sample_size(prevalence=0.1, c_statistic=0.8, thresholds=[0.1, 0.2])
    assert plan.prevalence == pytest.approx(0.1, abs=1e-6)
    assert plan.frame()["number"].tolist() == [
        "oe", "slope", "c_statistic", "net_benefit at 0.1", "net_benefit at 0.2",
    ]  # fmt: skip


def test_simulation_agrees_with_the_formula():
    risks = WORLDS[0].draw(np.random.default_rng(0), 5000)[0]
    expected = {"oe": 0.3}
    formula = tc.clinical.sample_size(risks, widths=expected).rows
    simulated = tc.clinical.sample_size_by_simulation(risks, widths=expected, cohorts=6).rows
    assert simulated == pytest.approx(formula, rel=0.35)  # the formula takes the risks as fixed, we count their scatter


def test_the_error_of_measure_can_be_planned_for():
    risks = WORLDS[0].draw(np.random.default_rng(0), 5000)[0]
    plan = tc.clinical.sample_size_by_simulation(risks, widths={"error": 0.2}, cohorts=3)
    assert 60 <= plan.rows < 2000


def test_bad_input_is_refused_by_name():
    for options, message in (
        ({}, "give risks="),
        ({"risks": [0.2], "prevalence": 0.1}, "not both"),
        ({"risks": [0.2, 1.0]}, "row 1 is 1.0"),
        ({"prevalence": 0.1, "c_statistic": 0.4}, "c_statistic"),
        ({"risks": [0.2, 0.4], "widths": {"ici": 0.1}}, "no formula for 'ici'"),
        ({"risks": [0.2, 0.4], "widths": {"net_benefit": 0.1}}, "needs thresholds"),
        ({"risks": [0.2, 0.4], "thresholds": [1.0]}, "threshold"),
    ):
        with pytest.raises(tc.InputError, match=message):
            tc.clinical.sample_size(**options)
    with pytest.raises(tc.InputError, match="'auc'"):
        tc.clinical.sample_size_by_simulation([0.2, 0.4], widths={"auc": 0.1})
