"""The page of a study, in words and in a real browser."""

import json
import re
from html import unescape

import numpy as np
import polars as pl
import pytest

import truecal as tc
from tests.pages.examples import LONG, NASTY
from tests.pages.study_stores import FakeStore, fake_store
from tests.pages.test_page import cells_of_table
from truecal.errors import InputError
from truecal.pages import report_study
from truecal.pages.study import StudyPage, explorer_diagrams, explorer_models, explorer_numbers, gather_study


@pytest.fixture(scope="module")
def store():
    return fake_store()


@pytest.fixture(scope="module")
def page(store, tmp_path_factory):
    return report_study(store, tmp_path_factory.mktemp("page") / "study.html")


def means(store, metric, *, dataset="digits", severity=0.0, recalibrator="none", lens=None):
    """The naive mean over seeds: {model: (error, value, low, high)}."""
    found = {}
    rows = store.frame().rows(named=True)
    subset = [
        row
        for row in rows
        if (row["dataset"], row["severity"], row["recalibrator"]) == (dataset, severity, recalibrator)
    ]
    for model in {row["model"] for row in subset}:

        def mean(name, column, model=model):
            values = [row[column] for row in subset if row["model"] == model and row["metric"] == name]
            return None if None in values else sum(values) / len(values)

        found[model] = (mean("error", "value"), *(mean(metric, column) for column in ("value", "low", "high")))
    return found


def beaten(point, others):
    """The naive rule of the Pareto front."""
    return any(
        other[0] <= point[0] and other[1] <= point[1] and (other[0] < point[0] or other[1] < point[1])
        for other in others
    )


def before(text, table):
    """The rows of a table that are about predictions as they are."""
    return [row for row in cells_of_table(text, table) if row[-1] == "before"]


# ------------------------------------------------------------------ what the page holds


def test_the_packed_numbers_are_the_means_over_seeds(store):
    record, left_out = explorer_numbers(store.frame(), room=10**7)
    assert left_out == []
    names = [model["name"] for model in record["models"]]
    for measure, columns in zip(record["measures"], record["columns"], strict=True):
        for points, (values, lows, highs) in columns.items():
            position = record["places"][int(points)]
            choice = {name: position[name] for name in ("dataset", "severity", "recalibrator")}
            expected = means(store, measure["metric"], **choice)
            for i, name in enumerate(names):
                assert values[i] / 1e6 == pytest.approx(expected[name][1], abs=6e-7)
                if measure["metric"] == "nll":
                    assert lows is None
                    assert highs is None
                else:
                    assert lows[i] / 1e4 == pytest.approx(expected[name][2], abs=6e-5)
                    assert highs[i] / 1e4 == pytest.approx(expected[name][3], abs=6e-5)


def test_what_does_not_fit_is_left_out_by_name_and_error_never_is(store):
    numbers, left_out = explorer_numbers(store.frame(), room=6000)
    selected = [measure["metric"] for measure in numbers["measures"]]
    assert selected[:2] == ["error", "rank-series-l2"]
    assert len(selected) + len(left_out) == 5
    assert "Binned error, 15 bins, equal width, maximum, class-wise" in left_out
    assert len(json.dumps(numbers["columns"], separators=(",", ":"))) < 6100


def test_diagrams_of_clean_data_come_first(store):
    numbers, _ = explorer_numbers(store.frame(), room=10**7)
    everything = explorer_diagrams(store.frame(), store.diagrams(), numbers, room=10**7)
    assert everything["complete"]
    assert len(everything["kinds"]) == 4
    few = explorer_diagrams(store.frame(), store.diagrams(), numbers, room=10_000)
    assert not few["complete"]
    assert few["kinds"][0] == {"lens": "top-label", "scheme": "mass"}
    severities = {numbers["places"][int(key.split("/")[0])]["severity"] for key in few["drawn"][0]}
    assert severities == {0.0}


def test_names_that_look_like_html_are_text(page):
    text = page.read_text()
    assert "<script>alert" not in text
    assert NASTY in {unescape(row[0]) for row in cells_of_table(text, "pareto-table")}
    assert LONG in {unescape(row[0]) for row in cells_of_table(text, "pareto-table")}


def test_the_sections_hold_the_analyses(page, store):
    text = page.read_text()
    frame = store.frame()
    several = ["rank-series-l2", "ece-mass-100-l1"]
    counts = {row["model"]: row for row in tc.study.pareto(frame, metrics=several).frame("counts").rows(named=True)}
    drawn = before(text, "pareto-table")
    assert len(drawn) == len(counts) == 9
    assert len(cells_of_table(text, "pareto-table")) == 18
    for row in drawn:
        expected = counts[unescape(row[0])]
        assert row[2:4] == [str(expected["fronts"]), str(expected["of"])]
    later = tc.study.error_against_calibration(frame, recalibrator="temperature").frame("trends")
    after = [row[3] for row in cells_of_table(text, "error-calibration-table") if row[-1] == "after temperature"]
    assert after == [f"{s:.3f}" for s in later.filter(pl.col("family").is_null())["slope"]]
    trends = tc.study.error_against_calibration(frame).frame("trends").filter(pl.col("family").is_null())
    assert [row[3] for row in before(text, "error-calibration-table")] == [f"{s:.3f}" for s in trends["slope"]]
    kendall = tc.study.in_and_out(frame).frame("correlations").filter(pl.col("method") == "kendall")
    assert [row[4] for row in before(text, "in-out-table")] == [f"{v:.3f}" for v in kendall["value"]]
    flips = tc.study.rank_agreement(frame, metrics=several).frame()
    ranks = before(text, "ranks-table")
    assert sorted((row[6], row[7]) for row in ranks) == sorted(
        (str(row["flips"]), str(row["supported_flips"])) for row in flips.rows(named=True)
    )
    for section in ("temperatures", "dominance", "log-fits", "shifting", "bins", "residuals", "reading", "reproduce"):
        assert f'<section id="{section}"' in text


def test_the_content_survives_json(store):
    content = gather_study(store, title=None, megabytes=2.0, command=None)
    record = json.loads(json.dumps(content.record()))
    again = StudyPage.from_record(record)
    assert again.record() == record
    assert again.explorer["numbers"]["places"] == content.explorer["numbers"]["places"]
    assert again.html() == content.html()


def test_warnings_and_selections_of_no_rows(store, tmp_path):
    frame = store.frame()
    empty = frame.with_columns(selection=pl.lit("none of them"), value=pl.lit(float("nan")))
    warned = frame.with_columns(warnings=pl.lit("<b>few rows</b>"))
    bins = store.diagrams()
    odd = FakeStore(pl.concat([warned, empty]), pl.concat([bins, bins.with_columns(selection=pl.lit("none of them"))]))
    text = report_study(odd, tmp_path / "page.html").read_text()
    assert f"{frame.height:,} numbers: <b>few rows</b>" in unescape(text)
    assert "<b>" not in text
    assert '"selection":"none of them"' not in text


def test_an_analysis_that_the_study_does_not_allow_says_why(tmp_path):
    one = fake_store(severities=(0.0,), recalibrators=("none",))
    text = report_study(one, tmp_path / "page.html").read_text()
    assert "Not for this study: the results hold no severity above 0" in unescape(text)
    assert "What temperature does" not in text


@pytest.mark.full
def test_two_hundred_models_and_forty_metrics_stay_below_three_megabytes(tmp_path):
    bins = (5, 10, 15, 20, 50, 100)
    grid = {
        f"ece-{scheme}-{b}-{word}": ("top-label", scheme, b, norm)
        for scheme in ("width", "mass")
        for b in bins
        for word, norm in (("l1", 1.0), ("l2", 2.0), ("max", np.inf))
    }
    metrics = grid | {"error": ("", None, None, None), "nll": ("", None, None, None)}
    metrics |= {"brier": ("", None, None, None), "rank-series-l2": ("top-label", None, None, 2.0)}
    assert len(metrics) == 40
    many = fake_store(
        [f"model {k}" for k in range(200)], seeds=(0,), severities=(0.0, 1.0), datasets=("a",), metrics=metrics
    )
    path = report_study(many, tmp_path / "page.html")
    assert path.stat().st_size < 3_000_000
    small = report_study(many, tmp_path / "small.html", megabytes=1.5)
    assert small.stat().st_size < 1_500_000
    assert "Left out to keep the page small" in small.read_text()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frame: frame.clear(), "no finished result"),
        (lambda frame: frame.filter(pl.col("metric") != "error"), "must hold the metric error"),
        (lambda frame: frame.filter(pl.col("metric") == "error"), "must hold the metric error"),
    ],
)
def test_a_store_that_cannot_be_drawn_is_refused(store, tmp_path, change, words):
    with pytest.raises(InputError, match=words):
        report_study(FakeStore(change(store.frame()), store.diagrams()), tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_too_small_a_page_is_refused(store, tmp_path):
    with pytest.raises(InputError, match=r"ask for 1\.5 or more"):
        report_study(store, tmp_path / "page.html", megabytes=1.0)


# ------------------------------------------------------------------ in a browser


def pick(browser, control, words):
    """Choose an option of a select element by its text, as a hand would."""
    from selenium.webdriver.support.select import Select

    Select(browser.one(f"#{control}")).select_by_visible_text(words)
    browser.settle()


def slide(browser, step):
    browser.run(
        "const s = document.getElementById('severity'); s.value = arguments[0];"
        "s.dispatchEvent(new Event('input', {bubbles: true}));",
        step,
    )
    browser.settle()


def shown(browser):
    """The table of models: {model: cells}."""
    rows = browser.run(
        "return [...document.querySelectorAll('#model-table tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
    )
    return {row[0]: row for row in rows}


def agrees(browser, wanted):
    """The table shows these numbers, and the front of the naive rule."""
    rows = shown(browser)
    assert set(rows) == set(wanted)
    points = {name: (round(point[0], 6), round(point[1], 6)) for name, point in wanted.items()}
    for name, cells in rows.items():
        assert float(cells[3]) == pytest.approx(wanted[name][0], abs=6e-5)
        assert float(cells[4]) == pytest.approx(wanted[name][1], abs=6e-5)
        assert (cells[6] == "yes") == (not beaten(points[name], points.values()))
    front = tc.study.on_front(*np.array(list(points.values())).T)
    assert [rows[name][6] == "yes" for name in points] == front.tolist()


def test_opens_from_disk_without_a_word_in_the_console_or_a_request(browser, page):
    browser.open(page)
    for chart in ("scatter", "reliability", "shift"):
        assert len(browser.all(f"#{chart} svg path")) > 3
    pick(browser, "metric", "Binned error, 100 bins, equal mass, mean absolute")
    pick(browser, "kind", "top label, equal width")
    slide(browser, 2)
    assert browser.complaints() == []
    assert browser.requests() == [page.as_uri()]


def test_models_are_coloured_filtered_and_put_into_panels_by_any_covariate(browser, store, tmp_path):
    from dataclasses import replace

    content = gather_study(store, title=None, megabytes=3.0, command=None)
    numbers = content.explorer["numbers"]
    data = {model["name"]: f"data {i % 2}" for i, model in enumerate(numbers["models"])}
    grouped = [{**model, "groups": {"pretraining": data[model["name"]]}} for model in numbers["models"]]
    explorer = {**content.explorer, "numbers": {**numbers, "models": grouped}}
    path = tmp_path / "grouped.html"
    path.write_text(replace(content, explorer=explorer).html())
    browser.open(path)
    pick(browser, "grouping", "pretraining")
    assert [box.text.split()[-2:] for box in browser.all("#families label")] == [["data", "0"], ["data", "1"]]
    assert browser.one("#families-title").text == "pretraining"
    browser.all("#families label")[0].click()
    browser.settle()
    assert set(shown(browser)) == {name for name, value in data.items() if value == "data 1"}
    pick(browser, "grouping", "family")
    assert set(shown(browser)) == set(data)
    assert browser.complaints() == []


def test_a_dataset_of_one_severity_has_no_chart_over_severities(browser, tmp_path):
    one = fake_store(severities=(0.0,))
    browser.open(report_study(one, tmp_path / "one.html"))
    assert not browser.one("#shift").is_displayed()
    assert browser.complaints() == []
    several = report_study(fake_store(), tmp_path / "several.html")
    browser.open(several)
    assert browser.one("#shift").is_displayed()
    titles = browser.run("return [...document.querySelectorAll('.chart svg text')].map(t => t.textContent)")
    assert not [title for title in titles if title.endswith("…") and len(title) > 20]


def test_covariates_with_few_values_are_groups():
    frame = pl.DataFrame(
        {
            "model": ["a", "a", "b", "b"],
            "family": ["x", "x", "y", "y"],
            "size": [1.0, 1.0, 2.0, 2.0],
            "pretraining": ["big", "big", "small", "small"],
            "epochs": [90.0, 90.0, 300.0, 300.0],
            "corruption": ["blur", "fog", "blur", "fog"],
            "same": ["s"] * 4,
        }
    )
    groups = [model["groups"] for model in explorer_models(frame)]
    assert groups == [{"pretraining": "big", "epochs": "90"}, {"pretraining": "small", "epochs": "300"}]


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_words_are_cut_or_meet(browser, page, width, scheme):
    browser.media(prefers_color_scheme=scheme)
    browser.narrow(width)
    browser.open(page)
    assert browser.crowded() == []
    pick(browser, "dataset", "wine")
    slide(browser, 2)
    assert browser.crowded() == []
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_small_multiples_before_and_after(browser, page, width, scheme):
    from selenium.webdriver.support.wait import WebDriverWait

    browser.media(prefers_color_scheme=scheme)
    browser.narrow(width)
    browser.open(page)
    browser.run("document.getElementById('glance').scrollIntoView()")
    WebDriverWait(browser.driver, 30, 0.05).until(lambda _: browser.one("#glance-families-words").text != "")
    browser.settle()
    titles = browser.run("return [...document.querySelectorAll('#glance-before text')].map(t => t.textContent)")
    assert {"before recalibration", "after temperature"} <= set(titles)
    for chart in ("glance-before", "glance-datasets", "glance-families"):
        assert len(browser.all(f"#{chart} svg path")) > 9
        assert "(up) against error rate (across)" in browser.one(f"#{chart}-words").text
    assert browser.run("return document.documentElement.scrollWidth") <= width  # nothing sticks out
    assert browser.complaints() == []


def test_every_selector_shows_the_numbers_of_the_store_and_their_front(browser, page, store):
    browser.open(page)
    agrees(browser, means(store, "rank-series-l2"))
    pick(browser, "dataset", "wine")
    agrees(browser, means(store, "rank-series-l2", dataset="wine"))
    slide(browser, 2)
    assert browser.one("#severity-shown").text == "2"
    agrees(browser, means(store, "rank-series-l2", dataset="wine", severity=2.0))
    pick(browser, "recalibrator", "temperature")
    choice = {"dataset": "wine", "severity": 2.0, "recalibrator": "temperature"}
    agrees(browser, means(store, "rank-series-l2", **choice))
    pick(browser, "metric", "Binned error, 100 bins, equal mass, mean absolute")
    agrees(browser, means(store, "ece-mass-100-l1", **choice))
    pick(browser, "lens", "Class-wise")
    agrees(browser, means(store, "ece-width-15-max", **choice))
    pick(browser, "lens", "Whole prediction")
    agrees(browser, means(store, "nll", **choice))
    assert "Support unknown" in browser.one("#verdict").text
    assert "no intervals" in browser.one("#support").text
    assert browser.complaints() == []


def test_the_arrow_keys_move_the_severity(browser, page, store):
    from selenium.webdriver.common.keys import Keys

    browser.open(page)
    browser.one("#severity").send_keys(Keys.ARROW_RIGHT)
    browser.settle()
    agrees(browser, means(store, "rank-series-l2", severity=1.0))
    assert browser.one("#severity").get_attribute("aria-valuetext") == "severity 1"


def test_families_are_a_filter_and_the_front_is_that_of_those_shown(browser, page, store):
    browser.open(page)
    boxes = browser.all("#families label")
    assert [box.text.split()[-1] for box in boxes] == ["linear", "mlp", "trees"]
    boxes[1].click()
    browser.settle()
    family = dict(store.frame().select("model", "family").unique().rows())
    agrees(browser, {name: points for name, points in means(store, "rank-series-l2").items() if family[name] != "mlp"})
    for box in (boxes[0], boxes[2]):
        box.click()
        browser.settle()
    assert shown(browser) == {}
    assert "No model" in browser.one("#finding").text
    assert browser.complaints() == []


def test_the_finding_says_whether_the_intervals_support_it(browser, page, store):
    browser.open(page)
    expected = means(store, "rank-series-l2")
    best = min(expected, key=lambda name: expected[name][1])
    rivals = sum(points[2] <= expected[best][3] for name, points in expected.items() if name != best)
    finding = browser.one("#finding").text
    assert best in finding
    assert f"{expected[best][1]:.4f}" in finding
    support = browser.one("#support").text
    pairs = [(a, b) for a in expected for b in expected if a < b]
    apart = sum(expected[a][3] < expected[b][2] or expected[b][3] < expected[a][2] for a, b in pairs)
    assert f"{apart} of {len(pairs)} orders" in support
    assert (f"overlaps those of {rivals} of the 8" in support) == (rivals > 0)
    pick(browser, "metric", "Binned error, 100 bins, equal mass, mean absolute")
    assert "9 rows in a bin" in browser.one("#cautions").text


def test_a_model_opens_its_diagram(browser, page, store):
    browser.open(page)
    slide(browser, 1)
    pick(browser, "model", "model 3")
    assert "model 3 on digits, severity 1" in browser.one("#reliability-words").text
    job = store.frame().filter(
        (pl.col("model") == "model 3")
        & (pl.col("dataset") == "digits")
        & (pl.col("severity") == 1)
        & (pl.col("seed") == 0)
    )["job"][0]
    bins = store.diagrams().filter(
        (pl.col("job") == job)
        & (pl.col("recalibrator") == "none")
        & (pl.col("lens") == "top-label")
        & (pl.col("scheme") == "mass")
    )
    rows = browser.run(
        "return [...document.querySelectorAll('#bin-table tbody tr')].map(r => [...r.cells].map(c => Number(c.dataset.sort)))"
    )
    assert [row[1] for row in rows] == bins["count"].to_list()
    assert [row[2] for row in rows] == pytest.approx(bins["confidence"].to_list(), abs=6e-5)
    assert [row[3] for row in rows] == pytest.approx(bins["outcome"].to_list(), abs=6e-5)
    hits = round(rows[0][3] * 60)
    low, high = tc.BinnedECE(bins=1)(
        tc.profile.Profile.from_arrays([0.5] * 60, [1] * hits + [0] * (60 - hits))
    ).bins.interval()
    assert rows[0][4:] == pytest.approx([float(low[0]), float(high[0])], abs=2e-4)
    button = next(b for b in browser.all("#model-table tbody button") if b.text == NASTY)
    button.click()
    browser.settle()
    assert button.get_attribute("aria-pressed") == "true"
    assert NASTY in browser.one("#reliability-words").text
    assert browser.run("return document.querySelectorAll('main script').length") == 0
    assert browser.complaints() == []


def test_a_brush_keeps_the_models_under_it(browser, page, store):
    from selenium.webdriver.common.action_chains import ActionChains

    browser.open(page)
    everyone = means(store, "rank-series-l2")
    area = browser.one("#scatter svg .mark-rect.role-frame .background, #scatter svg .background")
    browser.run("arguments[0].scrollIntoView({block: 'center'})", area)
    box = browser.run("const b = arguments[0].getBoundingClientRect(); return [b.width, b.height]", area)
    reach = [round(box[0] / 2) - 3, round(box[1] / 2) - 3]
    ActionChains(browser.driver, duration=50).move_to_element_with_offset(
        area, -reach[0], -reach[1]
    ).click_and_hold().move_by_offset(reach[0], 2 * reach[1]).release().perform()
    browser.settle()
    selected = shown(browser)
    assert 0 < len(selected) < len(everyone)
    largest = max(everyone[name][0] for name in selected)
    lowest = min(everyone[name][0] for name in everyone if name not in selected)
    assert largest <= lowest  # the left half was brushed: the smaller errors
    assert f"{len(selected)} models under the brush" in browser.one("#models-heading").text
    browser.one("#release").click()
    browser.settle()
    assert len(shown(browser)) == len(everyone)
    assert browser.complaints() == []


def test_the_table_keeps_its_order_when_the_selection_changes(browser, page):
    browser.open(page)
    browser.all("#model-table thead button")[3].click()
    slide(browser, 1)
    errors = [float(row[3]) for row in shown(browser).values()]
    assert errors == sorted(errors)
    assert browser.all("#model-table thead th")[3].get_attribute("aria-sort") == "ascending"


def test_dark_and_print(browser, page):
    looks = "const look = getComputedStyle(document.body); return [look.backgroundColor, look.color]"
    browser.media(prefers_color_scheme="dark")
    browser.open(page)
    assert browser.run(looks) == ["rgb(18, 23, 30)", "rgb(231, 236, 242)"]
    browser.one("#theme").click()
    browser.settle()
    assert browser.run(looks)[0] == "rgb(255, 255, 255)"
    browser.media(media="print", prefers_color_scheme="dark")
    assert browser.run(looks) == ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]
    assert not browser.one("#controls").is_displayed()
    assert browser.one("#finding").is_displayed()
    assert len(browser.driver.execute_cdp_cmd("Page.printToPDF", {})["data"]) > 10_000
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [1400, 800, 500])
def test_nothing_sticks_out(browser, page, width):
    browser.driver.set_window_size(width, 1000)
    browser.open(page)
    assert browser.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_every_control_has_a_name_and_every_chart_a_description(browser, page):
    browser.open(page)
    unnamed = browser.run(
        "return [...document.querySelectorAll('input, button, select')].filter(e => !(e.labels?.length || "
        "e.textContent.trim() && e.tagName !== 'SELECT' || e.getAttribute('aria-label'))).map(e => e.outerHTML)"
    )
    assert unnamed == []
    for chart in ("scatter", "reliability", "shift"):
        assert len(browser.one(f"#{chart} [aria-label]").get_attribute("aria-label")) > 10
    headings = [h.tag_name for h in browser.all("h1, h2, h3")]
    assert headings[0] == "h1"
    assert headings.count("h1") == 1
    assert len(set(re.findall(r' id="([^"]+)"', page.read_text()))) == len(
        re.findall(r' id="([^"]+)"', page.read_text())
    )


def test_selections_lenses_of_classes_and_models_without_a_family(browser, tmp_path):
    frame = fake_store(severities=(0.0,), recalibrators=("none", "temperature", "vector")).frame()
    rare = frame.with_columns(selection=pl.lit(NASTY), value=pl.col("value") * 0.5, low=None, high=None)
    odd = frame.filter(pl.col("metric") == "rank-series-l2").with_columns(lens=pl.lit(f"class:{NASTY}"))
    subset = pl.concat([frame, rare.cast(frame.schema), odd]).with_columns(family=None, size=None).cast(frame.schema)
    store = FakeStore(subset, fake_store(severities=(0.0,)).diagrams())
    path = report_study(store, tmp_path / "page.html")
    text = path.read_text()
    assert text.index("What temperature does") < text.index("What vector does")
    browser.open(path)
    before = {name: float(row[4]) for name, row in shown(browser).items()}
    pick(browser, "selection", NASTY)
    after = {name: float(row[4]) for name, row in shown(browser).items()}
    assert after == pytest.approx({name: value / 2 for name, value in before.items()}, abs=1e-4)
    pick(browser, "selection", "all")
    pick(browser, "lens", f"Class {NASTY}")
    assert {name: float(row[4]) for name, row in shown(browser).items()} == before
    assert not browser.one("#families").is_displayed()
    assert browser.complaints() == []


@pytest.mark.parametrize("count", [1, 2, 60])
def test_every_size_draws(browser, tmp_path, count):
    families = [f"family {k}" for k in range(20)] if count == 60 else ["only"]
    subset = fake_store([f"m{k}" for k in range(count)], families=families, severities=(0.0,), seeds=(0,))
    browser.open(report_study(subset, tmp_path / "page.html"))
    assert len(shown(browser)) == count
    assert browser.complaints() == []
