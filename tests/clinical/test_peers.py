"""The same numbers from statsmodels, dcurves and lifelines; skipped where they are not installed."""

import numpy as np
import pytest

import truecal as tc
from tests.clinical.worlds import WORLDS

RNG = np.random.default_rng(11)
PREDS = WORLDS[1].preds(RNG, 400)
TIED = tc.Predictions.from_probs(np.round(PREDS.probs, 1).clip(0.1, 0.9), PREDS.labels)
ENDS = tc.Predictions.from_probs(np.append(PREDS.probs, [0.0, 1.0]), np.append(PREDS.labels, [0, 1]))


def left_out(z, y, fitted, groups):
    """The standard error of the slope by one Newton step without each patient in turn."""
    design = np.column_stack([np.ones(len(z)), z])
    information = (design.T * fitted * (1 - fitted)) @ design
    steps = []
    for group in np.unique(groups):
        rows = groups == group
        own_values = (design[rows].T * fitted[rows] * (1 - fitted[rows])) @ design[rows]
        steps.append(np.linalg.solve(information - own_values, design[rows].T @ (y - fitted)[rows])[1])
    return np.sqrt(np.sum(np.square(steps)))


@pytest.mark.parametrize("preds", [PREDS, TIED, ENDS], ids=["random", "tied", "saturated"])
def test_statsmodels_gives_line_and_spline_curve(preds):
    api = pytest.importorskip("statsmodels.api")
    inner = (preds.probs > 0) & (preds.probs < 1)
    z, y = np.log(preds.probs[inner] / (1 - preds.probs[inner])), preds.labels[inner].astype(float)
    summary = tc.clinical.summary(preds)
    binomial = api.families.Binomial()
    shifted = api.GLM(y, np.ones(len(z)), family=binomial, offset=z).fit(tol=1e-14, maxiter=200)
    robust = api.GLM(y, api.add_constant(z), family=binomial).fit(tol=1e-14, maxiter=200, cov_type="HC0")
    assert summary.intercept.value == pytest.approx(shifted.params[0], abs=1e-8)
    assert summary.slope.value == pytest.approx(robust.params[1], abs=1e-8)
    assert summary.slope.se == pytest.approx(left_out(z, y, robust.fittedvalues, np.arange(len(z))), rel=1e-6)
    assert summary.slope.se == pytest.approx(robust.bse[1], rel=0.05)  # which leaves nobody out
    design = summary.fit.design(preds.probs[inner])
    curve = api.GLM(y, design, family=binomial).fit(tol=1e-14, maxiter=200).fittedvalues
    gap = np.zeros(len(preds))
    gap[inner] = np.abs(curve - preds.probs[inner])  # both ends are right, so their gap is 0
    assert summary.ici.value == pytest.approx(gap.mean(), abs=1e-8)


def test_statsmodels_gives_clustered_standard_errors():
    api = pytest.importorskip("statsmodels.api")
    preds = WORLDS[1].preds(RNG, 400, 8)
    z = np.log(preds.probs / (1 - preds.probs))
    groups = np.asarray(preds.clusters)
    fit = api.GLM(preds.labels.astype(float), api.add_constant(z), family=api.families.Binomial()).fit(
        tol=1e-14, cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False}
    )
    slope = tc.clinical.summary(preds).slope
    assert slope.se == pytest.approx(left_out(z, preds.labels, fit.fittedvalues, groups), rel=1e-6)
    assert slope.se == pytest.approx(fit.bse[1], rel=0.1)  # which leaves nobody out


@pytest.mark.parametrize("preds", [PREDS, TIED, ENDS], ids=["random", "tied", "saturated"])
def test_dcurves_gives_net_benefit(preds):
    dcurves = pytest.importorskip("dcurves")
    import pandas as pd

    thresholds = [0.05, 0.1, 0.3, 0.5, 0.7]
    data = pd.DataFrame({"y": preds.labels, "model": preds.probs})
    theirs = dcurves.dca(data=data, outcome="y", modelnames=["model"], thresholds=thresholds)
    curves = tc.clinical.net_benefit(preds, thresholds)
    for name, ours in (("model", curves.net_benefit), ("all", curves.treat_all)):
        expected = theirs[theirs["model"] == name].sort_values("threshold")["net_benefit"].to_numpy(float)
        assert ours == pytest.approx(expected, abs=1e-8)


def test_lifelines_gives_the_kaplan_meier_of_censoring():
    lifelines = pytest.importorskip("lifelines")
    time, event = RNG.exponential(1.0, 200), RNG.random(200) < 0.6
    weighted = tc.clinical.censoring_weights(time, event, 0.8)
    fit = lifelines.KaplanMeierFitter().fit(time, ~event)
    for i in np.flatnonzero(weighted.observed)[:50]:
        before = np.nextafter(min(time[i], 0.8), 0)
        assert 1 / weighted.weights[i] == pytest.approx(
            float(fit.survival_function_at_times(before).iloc[0]), abs=1e-10
        )
