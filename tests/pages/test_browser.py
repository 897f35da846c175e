"""The page in a real browser."""

import itertools

import pytest

import truecal as tc
from tests.pages.examples import LINES, LONG, NASTY, binary, multiclass
from truecal.pages import report

BINS = (1, 2, 3, 7, 10, 15, 23, 50, 99, 100)


@pytest.fixture(scope="module")
def binary_page(tmp_path_factory):
    return report(binary(), tmp_path_factory.mktemp("page") / "binary.html", by="site", fast=True)


@pytest.fixture(scope="module")
def class_page(tmp_path_factory):
    names = [NASTY, LONG, LINES, *(f"class {k}" for k in range(57))]
    return report(multiclass(3000, 60, classes=names), tmp_path_factory.mktemp("page") / "classes.html", fast=True)


def test_opens_from_disk_without_a_word_in_the_console_or_a_request(browser, binary_page):
    browser.open(binary_page)
    for chart in ("reliability", "histogram", "movement"):
        assert len(browser.all(f"#{chart} svg path")) > 3
    for zoom in ("low", "high", "linear"):
        browser.choose("zoom", zoom)
    for name in ("isotonic", "band", "smooth", "bins"):
        browser.one(f"#show-{name}").click()
        browser.settle()
    assert browser.complaints() == []
    assert browser.requests() == [binary_page.as_uri()]


def test_the_slider_gives_the_library_s_binned_error(browser, binary_page):
    profile = tc.OneClass()(binary())
    browser.open(binary_page)
    for scheme, norm in itertools.product(("width", "mass"), (1, 2)):
        browser.choose("scheme", scheme)
        browser.choose("norm", str(norm))
        observed = set()
        for bins in BINS:
            browser.move(bins)
            expected = tc.BinnedECE(bins=bins, scheme=scheme, norm=norm)(profile).value
            assert abs(browser.error - expected) < 1e-9, (scheme, norm, bins)
            assert browser.one("#error").text == f"{expected:.3f}"
            assert browser.one("#bins-shown").text == str(bins)
            observed.add(browser.error)
        assert len(observed) == len(BINS)  # the error moves


def test_float32_scores_and_ties_fall_into_the_same_bins(browser, tmp_path):
    import numpy as np

    preds = binary(dtype=np.float32)
    browser.open(report(preds, tmp_path / "single.html", fast=True))
    for bins in (10, 30, 70):
        browser.move(bins)
        assert abs(browser.error - tc.BinnedECE(bins=bins)(tc.OneClass()(preds)).value) < 1e-9


def test_sweep_and_maximum(browser, binary_page):
    profile = tc.OneClass()(binary())
    browser.open(binary_page)
    browser.choose("norm", "inf")
    assert abs(browser.error - tc.BinnedECE(bins=15, norm=float("inf"))(profile).value) < 1e-9
    browser.choose("norm", "2")
    browser.choose("scheme", "sweep")
    sweep = tc.SweepECE(norm=2)(profile)
    assert abs(browser.error - sweep.value) < 1e-9
    assert browser.one("#bins-shown").text == str(sweep.bins.filled)
    assert not browser.one("#bins").is_enabled()
    assert browser.complaints() == []


def test_the_arrow_keys_move_the_slider(browser, binary_page):
    from selenium.webdriver.common.keys import Keys

    browser.open(binary_page)
    browser.one("#bins").send_keys(Keys.ARROW_RIGHT)
    browser.settle()
    assert browser.one("#bins-shown").text == "16"
    assert abs(browser.error - tc.BinnedECE(bins=16)(tc.OneClass()(binary())).value) < 1e-9


def test_the_bins_and_their_intervals_are_the_library_s(browser, binary_page):
    browser.open(binary_page)
    browser.move(12)
    bins = tc.BinnedECE(bins=12)(tc.OneClass()(binary())).bins
    low, high = bins.interval(0.95)
    answer = browser.run(
        "return [...document.querySelectorAll('#bin-table tbody tr')].map(r => [...r.cells].map(c => Number(c.dataset.sort)))"
    )
    expected = zip(bins.counts, bins.mean_score, bins.mean_outcome, low, high, strict=True)
    for row, wanted in zip(answer, expected, strict=True):
        assert row[1:] == pytest.approx([float(w) for w in wanted], abs=1e-7)


def test_tables_sort(browser, class_page):
    browser.open(class_page)

    def order(column):
        return browser.run(
            "return [...document.querySelectorAll('#class-table tbody tr')].map(r => r.cells[arguments[0]]).map(c => "
            "c.dataset.sort === undefined ? c.textContent : Number(c.dataset.sort))",
            column,
        )

    for column, head in enumerate(browser.all("#class-table thead button")):
        head.click()
        rising = order(column)
        assert browser.all("#class-table thead th")[column].get_attribute("aria-sort") == "ascending"
        head.click()
        falling = order(column)
        assert browser.all("#class-table thead th")[column].get_attribute("aria-sort") == "descending"
        if column:
            assert rising == sorted(rising)
            assert falling == sorted(falling, reverse=True)
        else:
            assert [name for name in rising if name.startswith("class ")] == [f"class {k}" for k in range(57)]
            assert sorted(rising) == sorted(falling)
        assert rising != falling


def test_long_tables_are_paged(browser, class_page):
    browser.open(class_page)

    def visible():
        return browser.run(
            "return [...document.querySelectorAll('#class-table tbody tr')].filter(r => !r.hidden).length"
        )

    assert visible() == 20
    more, everything = browser.all("#classes .paging button")
    more.click()
    assert visible() == 40
    everything.click()
    assert visible() == 60
    assert not more.is_displayed()


def test_class_names_show_as_text(browser, class_page):
    browser.open(class_page)
    browser.all("#classes .paging button")[1].click()
    names = [cell.text for cell in browser.all("#class-table tbody th")]
    assert NASTY in names
    assert LONG in names
    assert any(name.startswith("line") and "<!--" in name for name in names)
    assert browser.run("return document.querySelectorAll('#class-table script').length") == 0
    assert browser.complaints() == []


def test_dark_mode(browser, binary_page):
    def looks():
        return browser.run(
            "const axis = document.querySelector('#reliability svg .role-axis-label text');"
            "return [getComputedStyle(document.body).backgroundColor, axis.getAttribute('fill')]"
        )

    browser.media(prefers_color_scheme="light")
    browser.open(binary_page)
    light = looks()
    browser.media(prefers_color_scheme="dark")
    browser.open(binary_page)
    dark = looks()
    assert light[0] == "rgb(255, 255, 255)"
    assert dark[0] == "rgb(18, 23, 30)"
    assert light[1] != dark[1]
    browser.one("#theme").click()
    browser.settle()
    assert looks() == light
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [1400, 800, 500])
def test_nothing_sticks_out(browser, class_page, width):
    browser.driver.set_window_size(width, 1000)
    browser.open(class_page)
    assert browser.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    chart, page = browser.run(
        "return ['#reliability svg', 'body'].map(s => document.querySelector(s).getBoundingClientRect().right)"
    )
    assert chart <= page


def test_print_leaves_the_controls_out(browser, binary_page):
    browser.open(binary_page)
    browser.media(media="print")
    assert not browser.one("#controls").is_displayed()
    assert browser.one(".finding").is_displayed()
    assert len(browser.driver.execute_cdp_cmd("Page.printToPDF", {})["data"]) > 10_000


@pytest.mark.parametrize("switched", [False, True])
def test_print_is_black_on_white_in_the_dark_too(browser, binary_page, switched):
    browser.media(prefers_color_scheme="light" if switched else "dark")
    browser.open(binary_page)
    if switched:
        browser.one("#theme").click()
        browser.settle()
    looks = "const look = getComputedStyle(document.body); return [look.backgroundColor, look.color]"
    assert browser.run(looks) == ["rgb(18, 23, 30)", "rgb(231, 236, 242)"]
    browser.media(media="print", prefers_color_scheme="light" if switched else "dark")
    assert browser.run(looks) == ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]


def test_every_control_has_a_name_and_every_chart_a_description(browser, binary_page):
    browser.open(binary_page)
    unnamed = browser.run(
        "return [...document.querySelectorAll('input, button')].filter(e => !(e.labels?.length || e.textContent.trim() || "
        "e.getAttribute('aria-label'))).map(e => e.outerHTML)"
    )
    assert unnamed == []
    for chart in ("reliability", "histogram", "movement"):
        assert (
            len(
                browser.one(f"#{chart} svg").get_attribute("aria-label")
                or browser.one(f"#{chart} [aria-label]").get_attribute("aria-label")
            )
            > 10
        )
    headings = [h.tag_name for h in browser.all("h1, h2, h3")]
    assert headings[0] == "h1"
    assert headings.count("h1") == 1


@pytest.mark.parametrize(("rows", "classes"), [(50, 0), (2, 0), (400, 2), (600, 1000)])
def test_every_size_draws(browser, tmp_path, rows, classes):
    preds = multiclass(rows, classes) if classes else binary(rows)
    browser.open(report(preds, tmp_path / "page.html", fast=rows != 400))
    lens = tc.TopLabel() if classes > 2 else tc.OneClass()
    browser.choose("scheme", "width")
    assert abs(browser.error - tc.BinnedECE()(lens(preds)).value) < 1e-9
    browser.choose("zoom", "high")
    assert browser.complaints() == []


def test_the_curves_before_and_after_recalibration_are_drawn(browser, tmp_path):
    browser.open(report(binary(400), tmp_path / "page.html"))
    names = ["uncalibrated", "Temperature scaling", "Beta calibration", "Isotonic regression"]
    legend = [label.text for label in browser.all("#remedies .role-legend-label text")]
    assert legend == names
    lines = browser.run("return document.querySelectorAll('#remedies .mark-line path').length")
    assert lines >= len(names) + 1  # and the diagonal
    assert browser.complaints() == []


def test_the_legend_names_what_is_drawn(browser, binary_page):
    browser.open(binary_page)

    def legend():
        return {label.text for label in browser.all("#reliability .role-legend-label text")}

    assert legend() == {"Bins with intervals", "Smooth curve", "Band of the curve"}
    browser.one("#show-isotonic").click()
    browser.one("#show-band").click()
    browser.settle()
    assert legend() == {"Bins with intervals", "Smooth curve", "Isotonic steps"}


def test_bins_are_the_distinct_scores_where_these_are_few(browser, tmp_path):
    import numpy as np

    rng = np.random.default_rng(0)
    p = rng.choice([0.5, 0.7, 0.9, 0.95, 1.0], 400)
    preds = tc.Predictions.from_probs(p, rng.random(400) < p**2)
    browser.open(report(preds, tmp_path / "page.html", fast=True))
    assert browser.one("#bins-shown").text == "5"
    assert browser.all("#movement") == []  # the number of bins is that of the scores
    browser.choose("norm", "2")
    browser.choose("norm", "1")
    assert browser.complaints() == []
    regions = tc.inference.stated_values(tc.OneClass()(preds))
    expected = sum(r.rows / 400 * abs(r.frequency - r.mean_score) for r in regions)
    assert abs(browser.error - expected) < 1e-9


HOSTILE = (NASTY, "<img src=x onerror=alert(1)>", "javascript:alert(1)", "{{7*7}}", "'\"><svg onload=alert(1)>")
WIDE = (
    "\u0645\u0633\u062a\u0634\u0641\u0649 \u0627\u0644\u0642\u0627\u0647\u0631\u0629",
    "\U0001f600 smile",
    "x" * 150,
)  # right to left, emoji, no place to break


def hostile_pages(folder):
    """Every kind of page, with names of classes, columns, groups, models and files that try to run."""
    import numpy as np

    from tests.pages.study_stores import fake_store
    from tests.pages.test_watch_page import month
    from truecal.pages.dossier import write_dossier

    rng = np.random.default_rng(0)
    base = multiclass(400, 3, classes=list(HOSTILE[:3]))
    labels = np.array(base.classes, object)[base.labels]
    columns = {HOSTILE[3]: rng.choice([HOSTILE[1], HOSTILE[4]], 400)}
    preds = tc.Predictions.from_probs(base.probs, labels, classes=base.classes, columns=columns)
    about = {"title": NASTY, "source": HOSTILE[1], "command": HOSTILE[4], "files": {HOSTILE[4]: "0" * 64}}
    yield report(preds, folder / "classes.html", by=HOSTILE[3], scale={HOSTILE[1]: (0, 0.5), "b": (0.5, 1)}, **about)
    risks = tc.Predictions.from_probs(base.probs[:, 0], base.labels == 0, columns={"site": columns[HOSTILE[3]]})
    yield report(risks, folder / "risks.html", by="site", fast=False)
    yield write_dossier(risks, folder / "dossier.html", by="site", title=NASTY, source=HOSTILE[1], command=HOSTILE[4])
    yield report(dict.fromkeys(HOSTILE, preds), folder / "compare.html", resamples=99, title=NASTY)
    yield report(month("model", HOSTILE[:3]), folder / "watch.html", title=NASTY)
    yield report(fake_store([f"{name} {i}" for i, name in enumerate(HOSTILE)]), folder / "study.html")


def test_names_of_any_shape_stay_inside_the_page(browser, tmp_path):
    import numpy as np

    from tests.pages.test_watch_page import month
    from truecal.pages.dossier import write_dossier

    rng = np.random.default_rng(0)
    base = multiclass(400, 3, classes=list(WIDE))
    preds = tc.Predictions.from_probs(
        base.probs, np.array(WIDE, object)[base.labels], classes=base.classes, columns={WIDE[2]: rng.choice(WIDE, 400)}
    )
    risks = tc.Predictions.from_probs(base.probs[:, 0], base.labels == 0, columns=preds.columns)
    about = {"title": WIDE[2], "source": WIDE[2], "command": WIDE[2]}
    pages = [
        report(preds, tmp_path / "a.html", by=WIDE[2], scale={WIDE[0]: (0, 0.5), WIDE[2]: (0.5, 1)}, **about),
        report(dict.fromkeys(WIDE, preds), tmp_path / "b.html", resamples=99, title=WIDE[2]),
        report(month("model", WIDE), tmp_path / "c.html", title=WIDE[2]),
        write_dossier(risks, tmp_path / "d.html", by=WIDE[2], **about),
    ]
    for page in pages:
        for width in (1280, 390):
            browser.narrow(width)
            browser.driver.get(page.as_uri())
            if "<script" in page.read_text():
                browser.settle()
            assert browser.run("return document.documentElement.scrollWidth") <= width, (page.name, width)


def test_no_name_runs_with_or_without_the_content_policy(browser, tmp_path):
    import re

    for page in hostile_pages(tmp_path):
        text = page.read_text()
        bare = page.with_name(f"bare-{page.name}")
        bare.write_text(re.sub(r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>", "", text))
        for path in (page, bare):
            browser.driver.execute_cdp_cmd(
                "Page.addScriptToEvaluateOnNewDocument", {"source": "window.alert = () => { window.ran = true; };"}
            )
            if "<script" in text:
                browser.open(path)
            else:
                browser.driver.get(path.as_uri())
            assert browser.run("return window.ran ?? null") is None, path.name
            assert (
                browser.run("return document.querySelectorAll('img[src=x], svg[onload], a[href^=javascript]').length")
                == 0
            )
            assert browser.complaints() == [], path.name
