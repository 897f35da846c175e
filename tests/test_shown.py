"""Results in notebooks, papers and programs: short in a terminal, small and safe as HTML, plain as dictionaries."""

import json
import re

import numpy as np
import pytest

import truecal as tc

RNG = np.random.default_rng(0)
P = RNG.random(3000)
HOSTILE = '<script>alert("x")</script>'
PREDS = tc.Predictions.from_probs(
    P,
    RNG.random(3000) < P**1.5,
    columns={"site": RNG.choice([f"s{i}" for i in range(30)] + [HOSTILE], 3000), "sex": RNG.choice(["f", "m"], 3000)},
)
RESULTS = {
    "Estimate": lambda: tc.measure(PREDS),
    "Estimates": lambda: tc.measure(PREDS, estimator=[tc.BinnedECE(), tc.SweepECE()]),
    "Bins": lambda: tc.measure(PREDS, estimator=tc.BinnedECE()).bins,
    "Comparison": lambda: tc.compare(PREDS.labels, P, P**2, names=(HOSTILE, "b"), resamples=99),
    "Subgroups": lambda: tc.subgroups(PREDS, "site"),
    "Verification": lambda: tc.verify(PREDS, 0.2),
    "Verdict": lambda: tc.inference.below(PREDS, 0.2),
    "Audit": lambda: tc.audit(PREDS, by=["site", "sex"], depth=1),
    "LikertReport": lambda: tc.likert(PREDS, {HOSTILE: (0, 0.5), "high": (0.5, 1)}, replicates=50),
}


@pytest.fixture(scope="module", params=RESULTS)
def result(request):
    return RESULTS[request.param]()


def test_a_terminal_gets_one_short_line(result):
    assert len(repr(result)) <= 200
    assert repr(result).startswith(type(result).__name__)
    assert "\n" not in repr(result)


def test_a_notebook_gets_a_small_table_without_scripts(result):
    drawn = result._repr_html_()
    assert len(drawn) < 40_000
    assert "<table" in drawn
    assert not re.search(r"<script|\bon\w+=|javascript:|https?:", drawn, re.IGNORECASE)


def test_numbers_as_dictionaries_and_in_papers(result):
    json.dumps(result.to_dict(), allow_nan=False)
    frame = result.frame()
    assert len(frame)
    assert result.to_markdown().count("\n") == len(frame) + 1
    assert result.to_latex().startswith("\\begin{tabular}")
    assert frame.to_pandas().shape == frame.to_polars().shape == (len(frame), len(frame.columns))


def test_a_long_table_is_cut_and_says_so():
    groups = tc.subgroups(PREDS, "site")._repr_html_()
    assert groups.count("<tr>") == 21  # a header and twice ten rows
    assert "11 rows in the middle are not shown; .frame() has all 31" in groups


def test_several_estimators_make_a_table():
    table = tc.measure(PREDS, estimator=[tc.BinnedECE(bins=10), tc.BinnedECE(bins=20)])
    assert [float(e) for e in table] == [
        float(tc.measure(PREDS, estimator=tc.BinnedECE(bins=bins))) for bins in (10, 20)
    ]
    assert [row["options"].split(",")[0] for row in table.frame()] == ["bins=10", "bins=20"]
    with pytest.raises(tc.InputError, match="empty list"):
        tc.measure(PREDS, estimator=[])


def test_a_sketch_is_measured_like_the_rows_it_saw():
    sketch = tc.Sketch.from_arrays(P, PREDS.labels)
    assert float(tc.measure(sketch)) == pytest.approx(float(tc.measure(PREDS)), abs=1e-6)
    with pytest.raises(tc.InputError, match="made with its lens"):
        tc.measure(sketch, lens=tc.TopLabel())


PRINTED = {
    **RESULTS,
    "Predictions": lambda: PREDS,
    "Conclusion": lambda: tc.inference.conclude(tc.measure(PREDS), tolerance=0.02),
    "RiskCoverage": lambda: tc.selective.risk_coverage(PREDS),
    "Area": lambda: tc.selective.aurc(PREDS),
    "Summary": lambda: tc.scores.summary(PREDS),
    "DecisionLoss": lambda: tc.decision_loss(PREDS),
    "Clinical": lambda: tc.clinical.summary(PREDS),
    "DecisionCurve": lambda: tc.clinical.net_benefit(PREDS, [0.1, 0.2]),
    "SampleSize": lambda: tc.clinical.sample_size(prevalence=0.1, c_statistic=0.8),
    "EvaluationRow": lambda: tc.evaluate({"platt": tc.recalibration.PlattScaling()}, PREDS)["platt"],
    "Sketch": lambda: tc.Sketch.from_arrays(P, PREDS.labels),
    "Scan": lambda: tc.scan(_frame(), label="y", score="p", by="site"),
    "WorldFit": lambda: tc.lab.fit_world(tc.OneClass()(PREDS)),
    "SamplesNeeded": lambda: tc.lab.samples_needed(tc.RankSeries(), error=0.1, m=5),
}


def _frame():
    import polars as pl

    return pl.DataFrame({"p": P, "y": PREDS.labels.astype(int), "site": PREDS.columns["site"]})


@pytest.mark.parametrize("name", PRINTED)
def test_print_fits_a_screen(name):
    lines = str(PRINTED[name]()).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 250
    assert not re.search(r"array\(|\d\.\d{8}|object at 0x", "\n".join(lines))
