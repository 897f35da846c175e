"""The page of a watch, as text and in a real browser."""

import numpy as np
import pytest

import truecal as tc
from tests.pages.examples import NASTY
from truecal.pages import report
from truecal.pages.render import rounded


def month(by=None, names=("a", "b", "c")):
    rng = np.random.default_rng(3)
    watch = tc.Watch(by=by)
    for day in range(1, 21):
        p, which = rng.beta(4, 1, 900), rng.integers(0, len(names), 900)
        true = np.where((which == 1) & (day >= 12), p / (p + 3 * (1 - p)), p)
        columns = {"model": np.array(names, object)[which]}
        watch.update(
            tc.Predictions.from_probs(p, rng.random(900) < true, columns=columns if by else None),
            at=f"2026-05-{day:02}",
        )
    return watch


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return report(month("model", ("a", NASTY, "c")), tmp_path_factory.mktemp("page") / "watch.html")


def test_the_page_says_what_the_watch_says(tmp_path):
    watch = month("model")
    text = report(watch, tmp_path / "watch.html", title="A <month>").read_text()
    step = watch.step().groups["b",]
    assert step.alarm
    assert "A &lt;month&gt;" in text
    assert f"since about {step.since}" in text
    assert rounded(step.error, step.low, step.high, "+") in text
    assert step.remedy in text


def test_in_a_browser_without_a_word_in_the_console_or_a_request(browser, page):
    browser.open(page)
    for chart in ("heat", "errors", "evidence", "reliability"):
        assert len(browser.all(f"#{chart} svg path")) > 3, chart
    assert len(browser.all("#group-table tbody tr")) == 3
    assert browser.one("#group").get_property("value") != ""
    browser.run("const g = document.getElementById('group'); g.value = 2; g.dispatchEvent(new Event('change'));")
    browser.settle()
    browser.one("#theme").click()
    browser.settle()
    assert browser.complaints() == []
    assert browser.requests() == [page.as_uri()]
    assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth")


def test_no_column_is_cut_off_at_the_width_of_a_screen(browser, page):
    browser.narrow(1280)
    browser.open(page)
    wide, visible = browser.run(
        "const box = document.querySelector('#group-table').closest('.scroll'); return [box.scrollWidth, box.clientWidth]"
    )
    assert wide <= visible + 1


def test_axes_of_the_diagram_fit_the_scores(browser, tmp_path):
    rng = np.random.default_rng(0)
    watch = tc.Watch()
    for day in range(1, 4):
        p = 0.35 * rng.random(2000)
        watch.update(tc.Predictions.from_probs(p, rng.random(2000) < p), at=f"2026-05-{day:02}")
    browser.open(report(watch, tmp_path / "low.html"))
    labels = [label.text for label in browser.all("#reliability .role-axis-label text")]
    assert {"0", "0.2"} <= set(labels)
    assert max(map(float, filter(None, labels))) <= 0.4
    assert [entry.text for entry in browser.all("#reliability .role-legend-label text")] == ["before", "after"]


def test_one_group_needs_no_chooser(browser, tmp_path):
    browser.open(report(month(), tmp_path / "one.html"))
    assert browser.all("#group") == []
    assert browser.all("#heat") == []
    assert len(browser.all("#evidence svg path")) > 3
    assert browser.complaints() == []
