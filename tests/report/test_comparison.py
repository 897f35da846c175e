"""The page that compares models."""

import numpy as np
import pytest

import truecal as tc
from tests.report.examples import LONG, NASTY, binary, multiclass
from tests.report.test_page import cells_of_table
from truecal.report import report_comparison


def three():
    first = binary()
    flat = tc.Predictions.from_probs(np.clip(first.probs**1.4, 0, 1), first.labels)
    return {NASTY: first, LONG: flat, "coin": tc.Predictions.from_probs(np.full(2000, 0.9), first.labels)}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return report_comparison(three(), tmp_path_factory.mktemp("page") / "compare.html", resamples=200)


def test_the_numbers_are_the_library_s(page):
    from html import unescape

    text = page.read_text()
    assert len(text.encode()) < 2_000_000
    assert "<script>alert" not in text
    models = {unescape(row[0]): row for row in cells_of_table(text, "model-table")}
    for name, preds in three().items():
        estimate = tc.measure(preds)
        assert models[name][1] == f"{estimate.value:.4f}"
        assert models[name][2] == f"{estimate.interval.low:.4f} to {estimate.interval.high:.4f}"
        assert models[name][6] == f"{tc.scores.brier(preds):.4f}"
    found = tc.compare_many(binary().labels, {name: p.probs for name, p in three().items()}, resamples=200)
    for row, pair in zip(cells_of_table(text, "pair-table"), found, strict=True):
        assert row[1] == f"{pair.difference:+.4f}"
        assert row[2] == f"{float(pair.interval.low):+.4f} to {float(pair.interval.high):+.4f}"


def test_the_best_model_is_named_and_the_worse_ones(page):
    text = page.read_text()
    best = min(three(), key=lambda name: tc.measure(three()[name]).value)
    assert best == LONG
    assert f'class="finding">{LONG} has the smallest calibration error. Shown to be worse' in text


def test_many_pairs_get_enough_resamples():
    from truecal.report.comparison.content import ComparisonSetting, gather_comparison
    from truecal.report.comparison.pairs import Pairing

    models = {str(k): binary(300, seed=0) for k in range(4)}
    found = gather_comparison(models, ComparisonSetting(Pairing(resamples=99)))
    assert found.reproduce.options["resamples"] == 240
    assert "no other model is shown to be worse" in found.sentence


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
        report_comparison(models, tmp_path / "x.html", **options)
    assert list(tmp_path.iterdir()) == []


def test_in_the_browser(browser, page):
    browser.open(page)
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
