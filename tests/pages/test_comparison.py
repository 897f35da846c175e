"""The page that compares models."""

import numpy as np
import pytest

import truecal as tc
from tests.pages.examples import LONG, NASTY, binary, multiclass
from tests.pages.test_page import cells_of_table
from truecal.pages import report
from truecal.pages.render import interval, rounded


def three():
    first = binary()
    flat = tc.Predictions.from_probs(np.clip(first.probs**1.4, 0, 1), first.labels)
    return {NASTY: first, LONG: flat, "coin": tc.Predictions.from_probs(np.full(2000, 0.9), first.labels)}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return report(three(), tmp_path_factory.mktemp("page") / "compare.html", resamples=200)


def test_the_numbers_are_the_library_s(page):
    from html import unescape

    text = page.read_text()
    assert len(text.encode()) < 2_000_000
    assert "<script>alert" not in text
    models = {unescape(row[0]): row for row in cells_of_table(text, "model-table")}
    for name, preds in three().items():
        estimate = tc.measure(preds)
        limits = estimate.interval.low, estimate.interval.high
        assert models[name][1:3] == [rounded(estimate.value, *limits), interval(*limits)]
        assert models[name][6] == f"{tc.scores.brier(preds):.4f}"
    comparisons = tc.inference.compare_many(
        binary().labels, {name: p.probs for name, p in three().items()}, resamples=200
    )
    for row, pair in zip(cells_of_table(text, "pair-table"), comparisons, strict=True):
        limits = float(pair.interval.low), float(pair.interval.high)
        assert row[1:3] == [rounded(pair.difference, *limits, "+"), interval(*limits, "+")]


def test_the_best_model_is_named_and_the_worse_ones(page):
    text = page.read_text()
    best = min(three(), key=lambda name: tc.measure(three()[name]).value)
    assert best == LONG
    assert f'class="finding">{LONG} has the smallest calibration error. Significantly worse (95%' in text


def test_equal_models_are_not_told_apart():
    from truecal.inference.ranking import conclude_ranking

    models = {str(k): binary(300, seed=0) for k in range(4)}
    conclusion = conclude_ranking(tc.inference.compare_many(models, resamples=99))
    assert len(conclusion.comparisons) == 6
    assert "no other model is significantly worse" in conclusion.sentence
    assert {conclusion.finding(pair) for pair in conclusion.comparisons} == {"not distinguishable"}


@pytest.mark.parametrize(
    ("models", "options", "words"),
    [
        ({"a": binary(50)}, {}, "two to 8 models"),
        ({"a": binary(50), "b": binary(60)}, {}, "a has 50 rows and b has 60"),
        ({"a": multiclass(50, 3), "b": multiclass(50, 3, seed=1)}, {}, "same rows"),
        ({"a": binary(50), "b": binary(50)}, {"reference": "c"}, "not among the models"),
        ({"a": binary(50), "b": binary(50)}, {"lens": tc.ClassWise()}, "one probability per row"),
    ],
)
def test_refusals(tmp_path, models, options, words):
    with pytest.raises(tc.InputError, match=words):
        report(models, tmp_path / "x.html", **options)
    assert list(tmp_path.iterdir()) == []


def test_in_the_browser(browser, page):
    browser.open(page)
    assert len(browser.all("#reliability .mark-symbol path")) >= 20  # bins of every model
    assert len(browser.all("#reliability .mark-area path")) == 3  # bands
    for chart in ("reliability", "scatter"):
        assert len(browser.all(f"#{chart} svg path")) > 3
    assert NASTY in [cell.text for cell in browser.all("#model-table tbody th")]
    browser.all("#model-table thead button")[1].click()
    errors = [float(cell.text) for cell in browser.all("#model-table tbody td:nth-child(2)")]
    assert errors == sorted(errors)
    browser.one("#theme").click()
    browser.settle()
    browser.driver.set_window_size(600, 1000)
    assert browser.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert browser.complaints() == []
    assert browser.requests() == [page.as_uri()]


def answers():
    """Three models with answers of their own to the questions of four tasks."""
    rng = np.random.default_rng(0)
    task = np.array(["law", "medicine", "maths", "small"])[np.minimum(np.arange(400) // 130, 3)]
    confidence = rng.beta(4, 1.2, (3, 400))
    return {
        name: tc.Predictions.from_answers(c, rng.random(400) < c**power, columns={"task": task})
        for name, c, power in zip(("gpt", "claude", "local"), confidence, (1.1, 1.5, 2.2), strict=True)
    }


@pytest.fixture(scope="module")
def answers_page(tmp_path_factory):
    return report(answers(), tmp_path_factory.mktemp("page") / "answers.html", resamples=99)


def test_tasks_and_abstention_are_the_library_s(answers_page):
    text = answers_page.read_text()
    models = answers()
    rows = cells_of_table(text, "task-table")
    assert [row[:2] for row in rows] == [
        [t, m] for t in ("law", "maths", "medicine") for m in models
    ]  # ten rows are too few
    for task, name, _, error, _ in rows:
        preds = models[name]
        estimate = tc.measure(preds.take(preds.columns["task"] == task))
        assert error == rounded(estimate.value, estimate.interval.low, estimate.interval.high)
    rows = cells_of_table(text, "model-table")
    assert [float(row[1]) for row in rows] == sorted(float(row[1]) for row in rows)  # the best calibrated first
    for row in rows:
        preds = models[row[0]]
        assert row[4] == f"{preds.labels.mean():.4f}"  # the share of right answers, whatever the confidence
        assert row[7] == f"{tc.selective.aurc(preds).value:.4f}"


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_answers_of_models_in_the_browser(browser, answers_page, width, scheme):
    browser.media(prefers_color_scheme=scheme)
    browser.narrow(width)
    browser.open(answers_page)
    for chart in ("reliability", "scatter", "abstention"):
        assert len(browser.all(f"#{chart} svg path")) > 3
    assert browser.crowded() == []
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.complaints() == []


def test_sketches_are_compared_on_a_page(tmp_path):
    sketches = {name: tc.Sketch.from_arrays(preds.probs, preds.labels) for name, preds in answers().items()}
    text = report(sketches, tmp_path / "days.html", resamples=99).read_text()
    rows = {row[0]: row for row in cells_of_table(text, "model-table")}
    estimate = tc.measure(sketches["gpt"])
    assert rows["gpt"][1] == rounded(estimate.value, estimate.interval.low, estimate.interval.high)
    assert rows["gpt"][4] == "unknown"
    assert "are not paired" in text


def test_an_infinite_log_loss_is_explained(tmp_path):
    preds = binary(500)
    certain = tc.Predictions.from_probs(preds.probs.round(), preds.labels)
    text = report({"a": preds, "b": certain}, tmp_path / "x.html", resamples=99).read_text()
    rows = {row[0]: row for row in cells_of_table(text, "model-table")}
    assert rows["b"][5] == "infinite"
    assert "compare those models by the Brier score" in text
