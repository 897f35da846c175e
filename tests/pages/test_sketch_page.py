"""The page built from a sketch: it says so, states the sketch error, and its slider gives the library's numbers for the sketch."""

import numpy as np
import polars as pl
import pytest

import truecal as tc
from tests.engines.worlds import KINDS, draw
from tests.pages.examples import binary
from tests.pages.test_cells import error
from truecal.cli.main import main
from truecal.engines import scan
from truecal.estimators.rank_series import basis, fit
from truecal.pages import report
from truecal.pages.model import gather_model
from truecal.pages.sources import MAX_BINS, cells_of
from truecal.profile import Sketch
from truecal.table import plain

pytestmark = pytest.mark.usefixtures("all_estimators")


def crowded(n=40_000):
    """So many rows that most cells hold several and equal-mass cuts run through them."""
    rng = np.random.default_rng(3)
    c = rng.beta(2.0, 0.6, n)
    return c, rng.random(n) < c**1.4


def content_of(data, **options):
    """Numbers of a page of these data."""
    page = gather_model(data, fast=True, **options)
    return plain({**page.pick("head", "estimates", "cells"), "lens_name": page.source.lens_name})


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return report(Sketch.from_arrays(*crowded()), tmp_path_factory.mktemp("page") / "sketch.html", fast=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheme", ["width", "mass"])
def test_cells_give_the_binned_error_of_the_sketch(kind, scheme):
    profile = Sketch.from_arrays(*draw(kind, 20_000, 1)).to_profile()
    cells = cells_of(profile)
    assert (cells.low <= cells.high).all()
    for bins in (1, 2, 3, 7, 15, 50, 99, MAX_BINS):
        expected = tc.BinnedECE(bins=bins, scheme=scheme)(profile).value
        assert error(cells, getattr(cells, scheme)[bins - 1], 1) == pytest.approx(expected, abs=1e-12)


def test_the_page_says_what_it_was_built_from(page):
    content, text = content_of(Sketch.from_arrays(*crowded())), page.read_text()
    exact = tc.RankSeries()(tc.profile.Profile.from_arrays(*crowded()))
    assert content["head"]["n"] == 40_000
    assert abs(content["head"]["value"] - exact.value) <= content["head"]["sketch_error"]
    assert content["head"]["interval"] == plain(
        tc.measure(Sketch.from_arrays(*crowded())).interval
    )  # as measured alone
    assert "Built from a sketch: 40,000 predictions in" in text
    assert "Sketch error" in text
    assert all(estimate["sketch_error"] is not None for _, estimate in content["estimates"])


def test_a_page_of_rows_says_nothing_of_sketches(tmp_path):
    path = report(binary(300), tmp_path / "rows.html", fast=True)
    assert content_of(binary(300))["head"]["sketch_error"] is None
    assert "from a sketch" not in path.read_text()
    assert "Sketch error" not in path.read_text()


def test_sketch_and_scan_give_the_same_numbers():
    c, y = crowded(2000)
    sketch = Sketch.from_arrays(c, y)
    counted = scan(pl.LazyFrame({"p": c, "y": y}), label="y", score="p")
    expected, content = content_of(sketch), content_of(counted)
    assert content["cells"] == expected["cells"]
    assert content["head"] == {**expected["head"], "lens": "positive class"}
    assert content["lens_name"] == "positive class"


def test_groups_of_a_scan_are_a_table():
    c, y = crowded(3000)
    site = np.repeat(["a", "b", None], [1500, 1480, 20])
    frame = pl.LazyFrame({"p": c, "y": y, "site": site.tolist()})
    (table,) = gather_model(scan(frame, label="y", score="p", by="site"), fast=True).groups
    groups = list(table.frame())
    assert table.by == ("site",)
    preds = tc.Predictions.from_probs(c, y, columns={"site": site})
    expected = tc.subgroups(preds, "site").frame()
    assert [row["group"] for row in groups] == expected["group"].tolist()
    # Both are redrawn, from cells and from rows: the p-values agree to the noise of 999 redraws.
    assert [row["adjusted"] for row in groups[:2]] == pytest.approx(expected["adjusted"][:2].tolist(), abs=0.06)
    assert groups[-1]["adjusted"] is None
    assert groups[-1]["error"] is None  # twenty rows are too few to judge


def test_what_needs_rows_is_refused(tmp_path):
    sketch = Sketch.from_arrays(*crowded(100))
    for options in ({"by": "site"}, {"lens": tc.TopLabel()}):
        with pytest.raises(tc.InputError, match="a sketch holds no rows"):
            report(sketch, tmp_path / "no.html", **options)
    probs = pl.LazyFrame({"p_0": [0.5, 0.25], "p_1": [0.5, 0.75], "y": [0, 1]})
    with pytest.raises(tc.InputError, match="judges one quantity"):
        report(scan(probs, label="y", probs="p_*", lens=tc.ClassWise()), tmp_path / "no.html")
    with pytest.raises(tc.InputError, match="a Sketch or a Scan, not"):
        report([0.5], tmp_path / "no.html")
    assert list(tmp_path.iterdir()) == []


def test_from_the_command_line(tmp_path, capsys):
    c, y = crowded(3000)
    for i in range(3):
        rows = slice(1000 * i, 1000 * i + 1000)
        pl.DataFrame({"p": c[rows], "y": y[rows].astype(int), "day": i}).write_parquet(tmp_path / f"{i}.parquet")
    out = tmp_path / "page.html"
    options = ["report", f"{tmp_path}/*.parquet", "--engine", "duckdb", "--by", "day", "--fast", "--out", str(out)]
    assert main(options) == 0
    assert "scanned 3000 rows in 3 files with duckdb" in capsys.readouterr().err
    text = out.read_text()
    assert "read by duckdb" in text
    assert "Calibration by day" in text
    assert main(["report", str(tmp_path), "--lens", "class-wise", "--out", str(out)]) == 2


def test_opens_without_a_word_in_the_console(browser, page):
    browser.open(page)
    for chart in ("reliability", "histogram", "movement"):
        assert len(browser.all(f"#{chart} svg path")) > 3
    browser.choose("zoom", "high")
    assert browser.one("#sketch").is_displayed()
    assert browser.complaints() == []
    assert browser.requests() == [page.as_uri()]


def test_the_slider_gives_the_library_s_error_of_the_sketch(browser, page):
    profile = Sketch.from_arrays(*crowded()).to_profile()
    browser.open(page)
    for scheme in ("width", "mass"):
        browser.choose("scheme", scheme)
        for bins in (1, 7, 15, 50, 100):
            browser.move(bins)
            expected = tc.BinnedECE(bins=bins, scheme=scheme)(profile).value
            assert abs(browser.error - expected) < 1e-9, (scheme, bins)
    browser.choose("scheme", "sweep")
    browser.choose("norm", "2")
    assert abs(browser.error - tc.SweepECE()(profile).value) < 1e-9
    assert browser.complaints() == []


def test_a_page_of_many_rows_takes_bounded_work(tmp_path, monkeypatch):
    """Two million predictions in three groups: the series is fitted a few times per group."""
    fitted, rank_basis = [], basis.rank_basis
    monkeypatch.setattr(
        fit, "rank_basis", lambda cells, **options: fitted.append(len(cells.n)) or rank_basis(cells, **options)
    )
    rng = np.random.default_rng(0)
    p = rng.beta(2, 0.5, 2_000_000)
    frame = pl.LazyFrame({"y": rng.random(len(p)) < p**1.1, "p": p, "site": rng.integers(0, 3, len(p))})
    counted = scan(frame, label="y", score="p", by="site")
    messages = []
    text = report(counted, tmp_path / "page.html", progress=messages.append).read_text()
    # ten orders of rows for every group, the whole twice, and for norm 1; two bases each
    assert sum(fitted) <= 2 * 10 * (3 + 4)
    assert "Recalibration and single classes need rows" in text
    assert messages[0] == "measuring"
