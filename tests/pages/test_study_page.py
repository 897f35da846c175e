"""The page of a study, in words and in a real browser."""

import re
from html import unescape

import polars as pl
import pytest

import truecal as tc
from tests.pages.examples import LONG, NASTY
from tests.pages.study_stores import FakeStore, fake_store
from tests.pages.test_page import cells_of_table
from truecal.errors import InputError
from truecal.pages import report
from truecal.pages.study import gather_study

FEW = {"datasets": ("digits",), "severities": (0.0,), "seeds": (0,)}  # of a page whose other analyses do not matter


@pytest.fixture(scope="module")
def store():
    return fake_store()


@pytest.fixture(scope="module")
def page(store, tmp_path_factory):
    return report(store, tmp_path_factory.mktemp("page") / "study.html")


@pytest.fixture
def without_figures(monkeypatch):
    """Pages of words and tables: drawing takes most of the time."""
    monkeypatch.setattr("truecal.pages.study._draw_figure", lambda *_: None)


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


def before(text, table):
    """The rows of a table that are about predictions as they are."""
    return [row for row in cells_of_table(text, table) if row[-1] == "before"]


# ------------------------------------------------------------------ what the page holds


def test_the_table_of_models_holds_means_over_seeds(page, store):
    rows = cells_of_table(page.read_text(), "models-table")
    for when, recalibrator in (("before", "none"), ("after temperature", "temperature")):
        for dataset in ("digits", "wine"):
            expected = means(store, "rank-series-l2", dataset=dataset, recalibrator=recalibrator)
            shown = {unescape(row[0]): row for row in rows if (row[2], row[-1]) == (dataset, when)}
            assert set(shown) == set(expected)
            for name, (error, value, low, high) in expected.items():
                assert shown[name][4:7] == [f"{error:.4f}", f"{value:.4f}", f"{low:.3f} to {high:.3f}"]


def test_the_finding_says_whether_the_intervals_support_it(page, store):
    expected = means(store, "rank-series-l2")
    best = min(expected, key=lambda name: expected[name][1])
    overlaps = sum(points[2] <= expected[best][3] for name, points in expected.items() if name != best)
    assert overlaps > 0
    verdict = unescape(page.read_text().partition('<section id="verdict"')[2].partition("</section>")[0])
    assert f"{best} has the lowest calibration error (rank series, root mean square) on digits" in verdict
    assert f"{expected[best][1]:.4f} [" in verdict
    assert f"The intervals of {overlaps} of the 8 other models overlap with it" in verdict


@pytest.mark.usefixtures("without_figures")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"low": pl.lit(None, pl.Float64)}, "Without intervals it is unknown"),
        ({"low": pl.col("value"), "high": pl.col("value")}, "Its interval lies below those of all 8 other models"),
    ],
)
def test_the_finding_without_intervals_and_with_narrow_ones(store, change, words):
    clean = (pl.col("severity") == 0) & (pl.col("recalibrator") == "none")
    frame = store.frame().filter(clean).with_columns(**change)
    assert words in gather_study(FakeStore(frame, store.diagrams())).finding[1]


def test_without_clean_data_no_model_is_named(store):
    frame = store.frame().filter(pl.col("severity") > 0)
    words = gather_study(FakeStore(frame, store.diagrams())).finding
    assert words == ("The models cannot be ranked.", "The results hold no dataset of severity 0.")


@pytest.mark.usefixtures("without_figures")
def test_a_single_model_has_no_rival():
    assert "no other model" in gather_study(fake_store(["only"])).finding[1]


def test_figures_stand_in_their_sections_and_cannot_run_a_script(page):
    text = page.read_text()
    sections = dict(re.findall(r'<section id="([^"]+)"[^>]*>(.*?)</section>', text, flags=re.DOTALL))
    drawn = {name for name, section in sections.items() if '<img src="data:image/svg+xml;base64,' in section}
    assert drawn >= {"models", "after-1", "temperatures", "shifting", "log-fits", "bins", "ranks"}
    assert "<svg" not in text


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
    taus = tc.study.in_and_out(frame).frame("correlations")["tau"]
    assert [row[4] for row in before(text, "in-out-table")] == [f"{tau:.3f}" for tau in taus]
    flips = tc.study.rank_agreement(frame, metrics=several).frame()
    ranks = before(text, "ranks-table")
    assert sorted((row[6], row[7]) for row in ranks) == sorted(
        (str(row["flips"]), str(row["supported_flips"])) for row in flips.rows(named=True)
    )
    for section in (
        "models",
        "temperatures",
        "log-fits",
        "shifting",
        "bins",
        "residuals",
        "reading",
        "reproduce",
    ):
        assert f'<section id="{section}"' in text


@pytest.mark.usefixtures("without_figures")
def test_warnings_and_selections_of_no_rows(tmp_path):
    store = fake_store(**FEW)
    frame = store.frame()
    empty = frame.with_columns(selection=pl.lit("without a row"), value=pl.lit(float("nan")))
    warned = frame.with_columns(warnings=pl.lit("<b>few rows</b>"))
    bins = store.diagrams()
    odd = FakeStore(pl.concat([warned, empty]), pl.concat([bins, bins.with_columns(selection=pl.lit("without a row"))]))
    text = report(odd, tmp_path / "page.html").read_text()
    assert f"{frame.height:,} results: <b>few rows</b>" in unescape(text)
    assert "<b>" not in text
    assert "without a row" not in text


@pytest.mark.usefixtures("without_figures")
def test_an_analysis_that_the_study_does_not_allow_says_why(tmp_path):
    one = fake_store(**FEW, recalibrators=("none",))
    text = report(one, tmp_path / "page.html").read_text()
    assert "Not possible for this study: the results hold no severity above 0" in unescape(text)
    assert "Before and after temperature" not in text


@pytest.mark.full
def test_two_hundred_models_stay_below_three_megabytes(tmp_path):
    many = fake_store([f"model {k}" for k in range(200)], seeds=(0,), severities=(0.0, 1.0))
    assert report(many, tmp_path / "page.html").stat().st_size < 3_000_000


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
        report(FakeStore(change(store.frame()), store.diagrams()), tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


# ------------------------------------------------------------------ in a browser


def test_opens_from_disk_without_a_word_in_the_console_or_a_request(browser, page):
    browser.open(page)
    assert browser.run("return [...document.images].every((image) => image.complete && image.naturalWidth > 100)")
    assert len(browser.all("nav a")) == len(browser.all("main > section[aria-labelledby]"))
    assert browser.complaints() == []
    assert browser.requests() == [page.as_uri()]


@pytest.mark.parametrize("width", [1400, 800, 390])
def test_nothing_sticks_out(browser, page, width):
    browser.narrow(width)
    browser.open(page)
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.complaints() == []


def test_a_table_is_sorted_by_a_click(browser, page):
    browser.open(page)
    browser.all("#models-table thead button")[4].click()
    errors = browser.run(
        "return [...document.querySelectorAll('#models-table tbody tr')].map(r => Number(r.cells[4].textContent))"
    )
    assert errors == sorted(errors)
    assert browser.all("#models-table thead th")[4].get_attribute("aria-sort") == "ascending"


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
    assert not browser.one("nav").is_displayed()
    assert browser.one("#verdict").is_displayed()
    assert len(browser.driver.execute_cdp_cmd("Page.printToPDF", {})["data"]) > 10_000
    assert browser.complaints() == []


def test_every_control_has_a_name_and_every_figure_a_description(browser, page):
    browser.open(page)
    unnamed = browser.run(
        "return [...document.querySelectorAll('input, button, select')].filter(e => !(e.labels?.length || "
        "e.textContent.trim() && e.tagName !== 'SELECT' || e.getAttribute('aria-label'))).map(e => e.outerHTML)"
    )
    assert unnamed == []
    assert all(len(image.get_attribute("alt")) > 10 for image in browser.all("img"))
    headings = [h.tag_name for h in browser.all("h1, h2, h3")]
    assert headings[0] == "h1"
    assert headings.count("h1") == 1
    ids = re.findall(r' id="([^"]+)"', page.read_text())
    assert len(set(ids)) == len(ids)


@pytest.mark.usefixtures("without_figures")
def test_selections_lenses_of_classes_and_models_without_a_family(tmp_path):
    frame = fake_store(**FEW, recalibrators=("none", "temperature", "vector")).frame()
    rare = frame.with_columns(selection=pl.lit(NASTY), value=pl.col("value") * 0.5, low=None, high=None)
    odd = frame.filter(pl.col("metric") == "rank-series-l2").with_columns(lens=pl.lit(f"class:{NASTY}"))
    subset = pl.concat([frame, rare.cast(frame.schema), odd]).with_columns(family=None, size=None).cast(frame.schema)
    store = FakeStore(subset, fake_store(**FEW).diagrams())
    text = report(store, tmp_path / "page.html").read_text()
    assert text.index("Before and after temperature") < text.index("Before and after vector")
    expected = means(fake_store(**FEW, recalibrators=("none", "temperature", "vector")), "rank-series-l2")
    shown = {unescape(row[0]): row[5] for row in before(text, "models-table") if row[2] == "digits"}
    assert shown == {name: f"{points[1]:.4f}" for name, points in expected.items()}


@pytest.mark.parametrize("count", [1, 2, 60])
def test_every_size_draws(browser, tmp_path, count):
    families = [f"family {k}" for k in range(20)] if count == 60 else ["only"]
    subset = fake_store([f"m{k}" for k in range(count)], families=families, severities=(0.0,), seeds=(0,))
    path = report(subset, tmp_path / "page.html")
    assert len({row[0] for row in cells_of_table(path.read_text(), "models-table")}) == count
    browser.open(path)
    assert browser.complaints() == []
