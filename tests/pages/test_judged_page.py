"""Pages of rows with a judge, of several labels per row, and of thresholds that the user acts at."""

import re
from dataclasses import replace

import numpy as np
import pytest

import truecal as tc


@pytest.fixture
def judged():
    rng = np.random.default_rng(0)
    c = rng.beta(4, 1, 2000)
    y = rng.random(2000) < 0.85 * c
    verdicts = np.where(rng.random(2000) < 0.9, y, ~y)
    labels = np.where(np.arange(2000) % 8 == 0, y, np.nan)
    return tc.Predictions.from_probs(c, labels, judge=verdicts)


@pytest.fixture
def several():
    rng = np.random.default_rng(0)
    p = rng.random((600, 3))
    return tc.Predictions.from_multilabel(p, rng.random((600, 3)) < p ** [1, 1.5, 2], ["cat", "indoor", "night"])


def text_of(path):
    text = re.sub(r"<script.*?</script>|<style.*?</style>", "", path.read_text(), flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))


def test_the_headline_is_that_of_the_judge_and_a_section_says_what_it_is_worth(judged, tmp_path):
    text = text_of(tc.report(judged, tmp_path / "page.html", fast=True))
    estimate = tc.measure(judged)
    assert tc.inference.conclude(estimate, tolerance=0.02).sentence in text
    assert "2,000 predictions, 250 with a trusted label" in text
    assert f"worth as much as {estimate.worth:,.0f} trusted labels" in text
    assert "Verdicts against trusted labels" in text
    assert "random sample" in text


def test_rows_with_trusted_labels_have_no_judge(judged):
    trusted = judged.take(judged.labels >= 0)
    assert trusted.judge is None
    assert tc.scores.brier(trusted) > 0


def test_a_page_of_several_labels_pools_them_and_lists_each(several, tmp_path):
    text = text_of(tc.report(several, tmp_path / "page.html", fast=True))
    assert "1,800 predictions in 600 rows · 3 classes · judged: all labels of 3 classes" in text
    assert "Class by class" in text
    assert "night" in text
    pooled = tc.measure(several, lens=tc.AllLabels())
    labels = {name: tc.measure(several, lens=tc.OneClass(name)) for name in several.classes}
    groups = [
        replace(tc.inference.GroupError.of(f"label {name}", e), p_value=min(1, 3 * float(e.p_value)))
        for name, e in labels.items()
    ]
    assert tc.inference.conclude(pooled, tolerance=0.02, groups=groups).sentence in text
    with pytest.raises(tc.InputError, match="one label per row"):
        tc.evaluate([tc.recalibration.BetaCalibration()], several)


def test_labels_whose_errors_cancel_are_in_the_headline(tmp_path):
    rng = np.random.default_rng(1)
    p = rng.random((2000, 2))
    preds = tc.Predictions.from_multilabel(p, rng.random((2000, 2)) < p ** [1.5, 0.67], ["spam", "toxic"])
    text = text_of(tc.report(preds, tmp_path / "page.html", fast=True))
    assert "2 of 2 groups outside tolerance" in text or "2 of 2 groups are outside it" in text
    assert "in label " in text


def test_the_verdict_says_what_miscalibration_costs_at_the_thresholds(several, tmp_path):
    preds = several.one_label("night")
    text = text_of(tc.report(preds, tmp_path / "page.html", fast=True, thresholds=[0.2]))
    loss = tc.decision_loss(preds, [0.2]).at(0.2)
    assert f"A{str(loss)[1:]}." in text
    conclusion = tc.inference.conclude(tc.measure(preds), losses=[loss])
    assert conclusion.additions == (f"A{str(loss)[1:]}.",)
    assert conclusion.to_dict()["losses"][0]["threshold"] == 0.2
    with pytest.raises(tc.InputError, match="needs rows"):
        tc.report(tc.Sketch.from_arrays(preds.probs, preds.labels), tmp_path / "page.html", fast=True, thresholds=[0.2])
