"""Objects and values given by mistake at the entry points: refused, with what to write instead."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import truecal as tc
from truecal import options

Y, P = np.arange(200) % 2, np.linspace(0.1, 0.9, 200)
PREDS = tc.Predictions.from_probs(P, Y, columns={"site": np.array(["a", "b"])[Y]})
PROFILE = tc.profile.Profile.from_arrays(P, Y)

TAKES_PREDICTIONS = {
    "measure": tc.measure,
    "verify": tc.verify,
    "subgroups": lambda preds: tc.subgroups(preds, "site"),
    "audit": tc.audit,
    "report": lambda preds: tc.report(preds, "page.html", fast=True),
    "evaluate": lambda preds: tc.evaluate([tc.recalibration.PlattScaling()], preds),
    "clinical": tc.clinical.summary,
    "net_benefit": tc.clinical.net_benefit,
    "flexible_curve": tc.clinical.flexible_curve,
    "likert": tc.likert,
    "below": lambda preds: tc.inference.below(preds, 0.1),
    "bootstrap": lambda preds: tc.inference.bootstrap(tc.BinnedECE(), preds),
    "choose_bins": lambda preds: tc.recalibration.choose_bins(preds, 0.1),
    "sweep_granularity": tc.estimators.sweep_granularity,
    "risk_coverage": tc.selective.risk_coverage,
    "how_biased": tc.lab.how_biased,
    "recalibrate": lambda preds: tc.recalibration.PlattScaling().fit(P, Y).recalibrate(preds),
    "fit_rows": lambda preds: tc.recalibration.PlattScaling().fit_rows(preds, P),
    "a selection": tc.by_label(0),
    "a lens": tc.TopLabel(),
}


@pytest.mark.parametrize("function", TAKES_PREDICTIONS)
def test_arrays_and_files_are_not_predictions(function, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call = TAKES_PREDICTIONS[function]
    for inputs in (P, list(P), None, pd.DataFrame({"y": Y, "p": P})):
        with pytest.raises(tc.InputError, match=r"must be Predictions.*tc\.Predictions\.from_probs\(probs, labels\)"):
            call(inputs)
    for path in ("scores.csv", Path("scores.csv")):
        with pytest.raises(tc.InputError, match=r"must be Predictions.*tc\.read\('scores\.csv'\)"):
            call(path)
    with pytest.raises(tc.InputError, match=r"not the class Predictions"):
        call(tc.Predictions)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "test",
    [
        tc.inference.hosmer_lemeshow,
        tc.inference.spiegelhalter,
        tc.inference.kuiper,
        tc.inference.consistency_test,
        tc.lab.fit_world,
        tc.plot.ReliabilityDisplay.from_profile,
    ],
)
@pytest.mark.parametrize("given", [PREDS, P, None])
def test_a_profile_comes_from_a_lens(test, given):
    with pytest.raises(tc.InputError, match=r"profile must be a Profile.*a lens such as tc\.TopLabel\(\) makes one"):
        test(given)


TAKES_A_LENS = {
    "calibration_error": lambda lens: tc.calibration_error(Y, P, lens=lens),
    "measure": lambda lens: tc.measure(PREDS, lens=lens),
    "compare": lambda lens: tc.compare(Y, P, P**2, lens=lens),
    "verify": lambda lens: tc.verify(PREDS, lens=lens),
    "subgroups": lambda lens: tc.subgroups(PREDS, "site", lens=lens),
    "audit": lambda lens: tc.audit(PREDS, lens=lens),
    "evaluate": lambda lens: tc.evaluate([tc.recalibration.PlattScaling()], PREDS, lens=lens),
    "clinical": lambda lens: tc.clinical.summary(PREDS, lens=lens),
    "Watch": lambda lens: tc.Watch(lens=lens),
    "Accumulator": lambda lens: tc.Accumulator(lens=lens),
    "scorer": lambda lens: tc.scorer(lens=lens),
    "Grouping.then": tc.Grouping({"a": [0], "b": [1]}).then,
    "GeneralizedECE": lambda lens: tc.GeneralizedECE(lens=lens),
    "scan": lambda lens: tc.scan(pd.DataFrame({"y": Y, "p": P}), label="y", score="p", lens=lens),
    "ReliabilityDisplay": lambda lens: tc.plot.ReliabilityDisplay.from_predictions(Y, P, lens=lens),
}


@pytest.mark.parametrize("function", TAKES_A_LENS)
def test_a_lens_is_an_object_not_its_name_or_class(function):
    with pytest.raises(tc.InputError, match=r"lens must be one of truecal's, such as tc\.TopLabel\(\).*not 'top'"):
        TAKES_A_LENS[function]("top")
    with pytest.raises(tc.InputError, match=r"not the class TopLabel; write TopLabel\(\.\.\.\)"):
        TAKES_A_LENS[function](tc.TopLabel)


TAKES_AN_ESTIMATOR = {
    "calibration_error": lambda estimator: tc.calibration_error(Y, P, estimator=estimator),
    "measure": lambda estimator: tc.measure(PREDS, estimator=estimator),
    "measure, several": lambda estimator: tc.measure(PREDS, estimator=[tc.BinnedECE(), estimator]),
    "compare": lambda estimator: tc.compare(Y, P, P**2, estimator=estimator),
    "subgroups": lambda estimator: tc.subgroups(PREDS, "site", estimator=estimator),
    "bootstrap": lambda estimator: tc.inference.bootstrap(estimator, PREDS),
    "consistency_test": lambda estimator: tc.inference.consistency_test(PROFILE, estimator),
    "scorer": tc.scorer,
}


@pytest.mark.parametrize("function", TAKES_AN_ESTIMATOR)
def test_an_estimator_is_an_object_not_its_name_or_class(function):
    message = (
        r"estimator must be one of truecal's, such as tc\.SweepECE\(\), or a function of scores and outcomes, not 'ece'"
    )
    with pytest.raises(tc.InputError, match=message):
        TAKES_AN_ESTIMATOR[function]("ece")
    with pytest.raises(tc.InputError, match=r"not the class SweepECE; write SweepECE\(\.\.\.\)"):
        TAKES_AN_ESTIMATOR[function](tc.SweepECE)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: tc.evaluate(tc.recalibration.PlattScaling(), PREDS),
            r"a list, or a mapping by name.*write \[tc\.recalibration\.BetaCalibration",
        ),
        (
            lambda: tc.evaluate([tc.recalibration.PlattScaling], PREDS),
            r"a recalibrator must be one of truecal's.*not the class",
        ),
        (lambda: tc.evaluate({"platt": "platt"}, PREDS), "a recalibrator must be one of truecal's.*not 'platt'"),
        (lambda: tc.measure(PREDS, select="site"), r"select must be a selection, such as tc\.by_label\(0\)"),
        (lambda: tc.clinical.summary(PREDS, select=Y == 1), "select must be a selection.*not ndarray"),
        (lambda: tc.report(PREDS, None), "path must be text or a Path, not None"),
        (lambda: tc.report(PREDS, "page.html", level=95), "level must lie strictly between 0 and 1, not 95"),
        (lambda: tc.read(P), "path must be text or a Path, not ndarray"),
        (lambda: tc.report([PREDS, PREDS], path="page.html"), "must be Predictions or a Sketch"),
        (lambda: tc.report("state.json", path="page.html"), "must be Predictions or a Sketch"),
        (lambda: tc.inference.compare_many(Y, [P, P]), "probs must be a mapping of models by name, not .*; write"),
        (lambda: tc.likert(PREDS, binning=5), "binning must be one of truecal's"),
        (lambda: tc.Accumulator(classes=3), "classes must be a list of class names, not 3"),
        (
            lambda: tc.groups.beyond_top({"a": PREDS}, ks=2),
            r"give a list with at least one k, such as ks=\[1, 5\], not 2",
        ),
    ],
)
def test_what_to_write_instead(call, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(tc.InputError, match=words):
        call()
    assert list(tmp_path.iterdir()) == []


def test_subclasses_and_their_classes():
    options.instance(True, int, "x", "a number")
    with pytest.raises(tc.InputError, match="x must be a number, not the class bool; write bool"):
        options.instance(bool, int, "x", "a number")
