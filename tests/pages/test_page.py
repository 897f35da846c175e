"""The page as a file: complete, small, safe, and with the library's own numbers in it."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import truecal as tc
from tests.pages.examples import LINES, LONG, NASTY, binary, multiclass
from truecal.pages import report
from truecal.pages.render import interval, rounded, script_json


class Page(HTMLParser):
    """Elements, texts and scripts of a page."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self.attributes = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]

    def handle_data(self, data):
        self.texts.append(data)


def written(tmp_path, preds, *, fast=True, **options):
    path = report(preds, tmp_path / "report.html", fast=fast, **options)
    text = path.read_text(encoding="utf-8")
    matches = re.search(r'<script type="application/json" id="content">(.*?)</script>', text, re.DOTALL)
    return text, json.loads(matches.group(1))


def test_numbers_are_those_of_the_library(tmp_path, all_estimators):
    preds = binary()
    text, content = written(tmp_path, preds, level=0.9)
    estimate = tc.measure(preds, level=0.9)
    assert content["head"]["value"] == estimate.value
    assert content["head"]["interval"]["low"] == estimate.interval.low
    assert content["head"]["p_value"] == estimate.p_value
    assert interval(estimate.interval.low, estimate.interval.high) in text
    rows = {row[0]: row for row in cells_of_table(text, "estimator-table")}
    for name, estimator in (("Debiased", tc.DebiasedECE()), ("Smooth (smECE)", tc.SmoothECE())):
        each = tc.measure(preds, estimator=estimator, level=0.9)  # what the command line says of the estimator
        limits = each.interval.low, each.interval.high
        assert rows[name][2:4] == [rounded(each.value, *limits), interval(*limits)]
    assert (
        content["absolute"]["interval"]["low"]
        == tc.measure(preds, estimator=tc.RankSeries(norm=1), level=0.9).interval.low
    )


def test_nothing_is_loaded_from_anywhere(tmp_path):
    text, _ = written(tmp_path, binary())
    page = Page(text)
    addresses = [
        (tag, name, value)
        for tag, name, value in page.attributes
        if name in ("src", "href", "srcset", "action", "data")
    ]
    assert all(value.startswith("#") or value == "data:," for _, _, value in addresses), addresses
    policy = next(
        value for tag, name, value in page.attributes if tag == "meta" and name == "content" and "default-src" in value
    )
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy


def test_names_are_text_wherever_they_come_from(tmp_path):
    rng = np.random.default_rng(0)
    preds = multiclass(400, 3, classes=[NASTY, LONG, LINES])
    preds = tc.Predictions.from_probs(
        preds.probs,
        np.array(preds.classes, object)[preds.labels],
        classes=preds.classes,
        columns={NASTY: rng.choice([NASTY, LINES], 400)},
    )
    text, _ = written(tmp_path, preds, by=NASTY, title=NASTY, source=NASTY, command=NASTY)
    page = Page(text)
    assert page.elements.count("script") == 3
    assert text.count("</script") == 3
    assert "<script>alert" not in text
    assert "".join(page.texts).count(NASTY) >= 6  # title twice, source, command, class, column, group
    assert LONG in page.texts
    assert "\x00" not in text


def test_embedded_json_is_inert():
    value = {"</script><!--": ["&", "\u2028", "\u2029", "\ud800"]}
    text = script_json(value)
    assert not set("<>&\u2028\u2029\ud800") & set(text)
    assert json.loads(text) == value


@pytest.mark.parametrize(
    "preds",
    [
        pytest.param(lambda: binary(50), id="50 rows"),
        pytest.param(lambda: binary(2), id="2 rows"),
        pytest.param(lambda: multiclass(300, 2), id="2 classes"),
        pytest.param(lambda: multiclass(2000, 10), id="10 classes"),
        pytest.param(lambda: multiclass(3000, 1000), id="1000 classes"),
    ],
)
def test_every_size_gives_a_small_page(tmp_path, preds):
    text, content = written(tmp_path, preds())
    assert len(text.encode()) < 2_000_000
    assert content["cells"]["weight"][-1] == content["n"]


def test_the_size_is_bounded_for_many_distinct_scores(tmp_path):
    rng = np.random.default_rng(1)
    c = rng.beta(2, 0.2, 300_000)
    text, _ = written(tmp_path, tc.Predictions.from_probs(c, rng.random(300_000) < c))
    assert len(text.encode()) < 2_000_000


def test_most_classes_are_shown_with_their_numbers(tmp_path):
    preds = multiclass(500, 1200)
    text, _ = written(tmp_path, preds)
    assert "The 1,000 classes with smaller errors are not listed." in text
    table = text[text.index('id="class-table"') :]
    table = table[: table.index("</table>")]
    assert table.count("<tr>") == 201


def test_per_class_rows(tmp_path):
    from truecal.pages.model import per_class

    preds = multiclass(1000, 4)
    rows = {row["name"]: row for row in per_class(preds, level=0.95)}
    for k in range(4):
        row, gap = rows[str(k)], preds.probs[:, k] - (preds.labels == k)
        assert row["labels"] == (preds.labels == k).sum()
        assert row["rate"] == pytest.approx((preds.labels == k).mean())
        assert row["estimate"].direction == pytest.approx(gap.mean(), abs=1e-12)
        estimate = tc.measure(preds, lens=tc.OneClass(k))  # what the command line says of the class
        assert row["estimate"].value == estimate.value
        assert row["estimate"].interval == estimate.interval


def test_clustered_rows_per_class_are_judged_by_cluster():
    from truecal.pages.model import per_class

    base = multiclass(300, 3)
    preds = tc.Predictions.from_probs(
        base.probs.repeat(4, axis=0), base.labels.repeat(4), clusters=np.arange(1200) // 4
    )
    for row in per_class(preds, level=0.95):
        estimate = tc.measure(preds, lens=tc.OneClass(int(row["name"])))
        assert (row["estimate"].value, row["estimate"].interval) == (estimate.value, estimate.interval)


def test_a_clustered_page_counts_clusters(tmp_path):
    base = binary(500)
    preds = tc.Predictions.from_probs(base.probs.repeat(4), base.labels.repeat(4), clusters=np.arange(2000) // 4)
    text, content = written(tmp_path, preds)
    _, alone = written(tmp_path, base)
    assert "2,000 predictions in 500 clusters" in text
    width = [
        np.mean(np.subtract(c["curves"]["smooth"]["high"], c["curves"]["smooth"]["low"])) for c in (content, alone)
    ]
    assert width[0] == pytest.approx(width[1], rel=0.1)  # four copies of a row do not narrow the band
    assert content["cells"]["scale"] == pytest.approx(1 / 4, rel=1e-9)  # intervals of bins as wide as for 500 rows
    assert alone["cells"]["scale"] == 1


def test_groups(tmp_path):
    preds = binary()
    text, _ = written(tmp_path, preds, by="site")
    for name in "ab":
        estimate = tc.measure(preds.take(preds.columns["site"] == name))
        assert interval(estimate.interval.low, estimate.interval.high) in text
    with pytest.raises(tc.InputError, match="nope"):
        report(preds, tmp_path / "x.html", by="nope")


def cells_of_table(text, name):
    table = text[text.index(f'id="{name}"') :]
    rows = re.findall(r"<tr>(.*?)</tr>", table[: table.index("</table>")], re.DOTALL)[1:]
    return [[re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)] for row in rows]


def test_groups_too_small_to_judge_are_listed(tmp_path):
    rng = np.random.default_rng(0)
    site = np.array(["large"] * 100 + ["small"] * 3)
    preds = tc.Predictions.from_probs(rng.random(103), rng.integers(0, 2, 103), columns={"site": site})
    rows = cells_of_table(written(tmp_path, preds, by="site")[0], "group-table")
    assert rows[1] == ["small", "3", "", "too few rows", "", "-", "-", ""]
    assert rows[0][:2] == ["large", "100"]
    assert rows[0][-1] == "outside tolerance"  # the outcomes are coins


def test_findings_of_groups_know_the_tolerance(tmp_path):
    preds = binary(4000)
    findings = [
        {row[0]: row[-1] for row in cells_of_table(written(tmp_path, preds, by="site", tolerance=t)[0], "group-table")}
        for t in (0.001, 0.9)
    ]
    assert findings[0]["a"] == "outside tolerance"
    assert findings[1]["a"] == "miscalibrated, within tolerance"


def test_several_columns_have_a_table_each(tmp_path):
    preds = binary(2000)
    both = {**preds.columns, "sex": np.array(["f", "m"] * 1000)}
    preds = tc.Predictions.from_probs(preds.probs, preds.labels, columns=both)
    text = written(tmp_path, preds, by=["site", "sex"], tolerance=0.001)[0]
    first, second = (cells_of_table(text, name) for name in ("group-table", "group-table-2"))
    assert [{row[0] for row in rows} for rows in (first, second)] == [{"a", "b"}, {"f", "m"}]
    assert {row[0]: row[-1] for row in first}["a"] == "outside tolerance"
    assert "most in site = a" in text  # the headline says of which column the group is


def test_low_medium_high(tmp_path):
    from truecal.groups import likert
    from truecal.groups.answer_scales import SCALE

    preds = binary()
    assert "likert-table" not in written(tmp_path, preds)[0]
    rows = cells_of_table(written(tmp_path, preds, scale=SCALE)[0], "likert-table")
    assert [row[0] for row in rows] == ["low", "medium", "high"]
    frame = likert(preds).frame()
    assert [row[2] for row in rows] == [f"{count:,}" for count in frame["count"]]
    limits = zip(frame["mean_outcome"], frame["outcome_low"], frame["outcome_high"], strict=True)
    assert [row[4] for row in rows] == [rounded(*row) for row in limits]


def test_recalibration(tmp_path):
    from truecal.recalibration import BetaCalibration, evaluate

    preds = binary()
    messages = []
    text, _ = written(tmp_path, preds, fast=False, progress=messages.append)
    rows = {row[0]: row for row in cells_of_table(text, "recalibration-table")}
    evaluation = evaluate({"Beta calibration": BetaCalibration()}, preds)
    before = tc.measure(preds)
    assert rows["uncalibrated"][1] == rounded(before.value, before.interval.low, before.interval.high)
    assert rows["Beta calibration"][3] == f"{evaluation['Beta calibration'].log_loss:.4f}"
    assert float(rows["Beta calibration"][1]) < float(rows["uncalibrated"][1])
    assert "recalibrating on held-out folds" in messages


def test_too_few_rows_for_recalibration_is_said(tmp_path):
    text, _ = written(tmp_path, binary(60), fast=False)
    assert (
        "Not possible on these data: at least 100 rows are needed to fit and judge a recalibration method, not 60."
        in text
    )


def test_recalibration_of_many_rows_uses_a_sample():
    from truecal.pages.model import recalibrate
    from truecal.pages.sources import source_of

    result = recalibrate(source_of(multiclass(700, 3000), lens=tc.TopLabel(), by=(), level=0.95, rng=0))
    assert result.rows[0].error.n == 333
    assert result.rows[0].name == "uncalibrated"


def test_the_fingerprint_names_the_data(tmp_path):
    texts = [written(tmp_path, binary(seed=seed))[0] for seed in (0, 0, 1)]
    prints = [re.search(r"SHA-256 ([0-9a-f]{64})", text).group(1) for text in texts]
    assert prints[0] == prints[1] != prints[2]


def test_what_cannot_be_reported_is_refused_and_nothing_is_written(tmp_path):
    target = tmp_path / "report.html"
    for data, options, words in [
        ([0.5], {}, "must be Predictions or a Sketch or a Scan, not"),
        (binary(), {"lens": tc.ClassWise()}, "leave out ClassWise"),
        (binary(), {"tolerance": 0.0}, "tolerance must lie"),
        (tc.Sketch.from_arrays([0.5] * 9, [1] * 9), {"by": "site"}, "a sketch holds no rows"),
        (tc.Sketch.from_arrays([0.5] * 9, [1] * 9), {"select": tc.by_output(low=0.5)}, "select= needs rows"),
    ]:
        with pytest.raises(tc.InputError, match=words):
            report(data, target, fast=True, **options)
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_place_is_named_and_the_old_file_stays(tmp_path, monkeypatch):
    with pytest.raises(tc.errors.FileError, match=r"cannot write .*no/such"):
        report(binary(50), tmp_path / "no/such/report.html", fast=True)
    with pytest.raises(tc.errors.FileError, match="directory"):
        report(binary(50), tmp_path, fast=True)
    old = tmp_path / "report.html"
    old.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(tc.errors.FileError, match="No space left"):
        report(binary(50), old, fast=True)
    assert old.read_text() == "old"
    assert list(tmp_path.iterdir()) == [old]


def test_without_the_charting_package_the_remedy_is_named(tmp_path, monkeypatch):
    import sys

    from truecal.pages.render import charting_bundle

    charting_bundle.cache_clear()
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(tc.errors.MissingExtraError, match=r"pip install 'truecal\[report\]'"):
        report(binary(50), tmp_path / "x.html", fast=True)
    charting_bundle.cache_clear()


def test_words_for_confidence_can_be_chosen(tmp_path):
    scale = {"low risk": (0.0, 0.1), "high risk": (0.1, 1.0)}
    text, _ = written(tmp_path, binary(), scale=scale)
    assert [row[0] for row in cells_of_table(text, "likert-table")] == ["low risk", "high risk"]
    assert "Confidence in words</h2>" in text


def test_a_pdf_is_refused(tmp_path):
    with pytest.raises(tc.errors.FileError, match="print it from any browser"):
        report(binary(200), tmp_path / "report.pdf", fast=True)
    assert not (tmp_path / "report.pdf").exists()


def test_a_lens_on_several_probabilities_has_a_section_of_its_own(tmp_path):
    preds = multiclass(60, 4)
    page = tc.report(preds, tmp_path / "page.html", lens=tc.TopK(2), fast=True).read_text()
    section = page.partition('id="context"')[2].partition("</section>")[0]
    for lens in (tc.TopK(1), tc.TopK(2)):
        estimate = tc.measure(preds, lens=lens)
        limits = () if estimate.interval is None else (estimate.interval.low, estimate.interval.high)
        assert rounded(estimate.value, *limits) in section


def test_segments_are_those_of_the_call(tmp_path):
    rng = np.random.default_rng(3)
    n = 6000
    columns = {"site": rng.choice(["<b>B</b>", "C"], n), "device": rng.choice(["mobile", "desktop"], n)}
    p = rng.beta(2, 3, n)
    bad = (columns["site"] == "<b>B</b>") & (columns["device"] == "mobile")
    preds = tc.Predictions.from_probs(p, (rng.random(n) < np.clip(p - 0.2 * bad, 0, 1)).astype(int), columns=columns)
    text = tc.report(preds, tmp_path / "page.html", by=["site", "device"]).read_text()
    search = tc.audit(preds, by=["site", "device"], tolerance=0.02)
    part = text[text.index('id="segments"') : text.index('id="recalibration"')]
    (segment,) = search.segments
    assert "site is &lt;b&gt;B&lt;/b&gt;, device is mobile" in part
    assert rounded(segment.difference, segment.low, segment.high, "+") in part
    assert interval(segment.low, segment.high, "+") in part
    assert part.count("<svg") == 1
    assert 'id="segments"' not in tc.report(preds, tmp_path / "fast.html", fast=True).read_text()


def test_few_distinct_scores_are_bins_and_rows_of_a_table(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.choice([0.5, 0.7, 0.9, 0.95, 1.0], 400)
    preds = tc.Predictions.from_probs(p, rng.random(400) < p**2)
    text, content = written(tmp_path, preds)
    rows = cells_of_table(text, "value-table")
    assert [row[0] for row in rows] == ["50%", "70%", "90%", "95%", "100%"]
    for row, region in zip(rows, tc.inference.stated_values(tc.OneClass()(preds)), strict=True):
        assert row[1:3] == [str(region.rows), str(region.outcomes)]
    assert len(content["cells"]["values"]) == 6
    assert 'name="scheme" value="values" checked' in text


def test_axes_fit_scores_that_lie_in_a_part_of_them(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.beta(1.2, 18, 2000)
    text, content = written(tmp_path, tc.Predictions.from_probs(p, rng.random(2000) < p))
    assert content["limits"][0] == 0
    assert np.quantile(p, 0.99) < content["limits"][1] < 0.5
    assert 'name="zoom" value="fit" checked' in text
    assert 'name="scheme" value="mass" checked' in text  # of bins of equal width, one would hold nearly all rows
    assert written(tmp_path, binary())[1]["limits"] == [0, 1]


def test_maps_are_ranked_by_the_brier_score_where_log_losses_are_infinite(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.beta(0.4, 0.4, 2000).round(2)
    preds = tc.Predictions.from_probs(p, rng.random(2000) < np.clip(0.1 + 0.8 * p, 0, 1))
    text = tc.report(preds, tmp_path / "page.html").read_text()
    part = text[text.index('id="recalibration"') :].partition("</section>")[0]
    assert "methods are ranked by the Brier score" in part
    assert "Recommended: uncalibrated" not in part
    assert "inf<" not in part


def test_a_group_outside_the_tolerance_is_in_the_headline(tmp_path):
    rng = np.random.default_rng(0)
    n = 20_000
    country = np.where(np.arange(n) < 1000, "LU", "FR")
    p = rng.random(n)
    y = rng.random(n) < np.where(country == "LU", p**2.5, p)
    preds = tc.Predictions.from_probs(p, y, columns={"country": country})
    text, _ = written(tmp_path, preds, by="country", tolerance=0.06)
    badge = re.search(r'class="badge">([^<]*)<', text).group(1)
    assert badge == "Groups differ: 1 of 2 groups outside tolerance"
    assert "most in LU" in re.search(r'class="finding">([^<]*)<', text).group(1)


def test_a_group_that_the_search_does_not_list_is_explained(tmp_path):
    """Finding 7: the search of segments needs more evidence than the table of groups, and the page says so."""
    rng = np.random.default_rng(3)
    site = rng.choice(list("abcdef"), 2400)
    logits = rng.normal(-2.3, 1, 2400)
    y = rng.random(2400) < 1 / (1 + np.exp(-(logits + 0.5 * (site == "b"))))
    columns = {"site": site, "sex": rng.choice(["f", "m"], 2400)}
    preds = tc.Predictions.from_probs(1 / (1 + np.exp(-logits)), y, columns=columns)
    text = tc.report(preds, tmp_path / "page.html", by=["site", "sex"]).read_text()
    part = text[text.index('id="segments"') :].partition("</section>")[0]
    assert "No segment is miscalibrated beyond chance" in part
    assert "The tables above show site = b to be miscalibrated" in part


def test_parts_of_the_page_agree_that_calibration_is_not_rejected(all_estimators, tmp_path):
    """Where the test does not reject, every interval of the page starts at 0, from rows and from a sketch."""
    rng = np.random.default_rng(5)
    p = rng.random(3000)
    y = rng.random(3000) < p
    for data in (tc.Predictions.from_probs(p, y), tc.Sketch.from_arrays(p, y)):
        text, content = written(tmp_path, data)
        assert content["head"]["p_value"] > 0.05
        assert content["head"]["interval"]["low"] == content["absolute"]["interval"]["low"] == 0
        assert all(row[3].startswith("0.000") for row in cells_of_table(text, "estimator-table"))


def test_dropped_rows_are_in_the_headline(tmp_path):
    rows = tc.inference.RowCounts(read=2065, analysed=2000, dropped=65)
    text, _ = written(tmp_path, binary(), rows=rows)
    assert "65 of 2,065 rows were dropped because of missing values" in text.partition("</section>")[0]


def test_what_stands_between_backticks_is_code(tmp_path):
    from truecal.pages.render import _prose

    assert str(_prose("run `a <b>` now")) == "run <code>a &lt;b&gt;</code> now"
    text, _ = written(tmp_path, multiclass(200, 3))
    body = text.partition("<main>")[2].partition("</main>")[0]
    assert "`" not in body


def test_the_output_is_tested_before_anything_is_computed(tmp_path):
    steps = []
    with pytest.raises(tc.errors.FileError, match=r"cannot write .*no/such"):
        report(binary(50), tmp_path / "no/such/report.html", progress=steps.append)
    assert steps == []


def test_without_the_template_package_the_remedy_is_named(tmp_path, monkeypatch):
    import sys

    from truecal.pages import render

    render._environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(tc.errors.MissingExtraError, match=r"pip install 'truecal\[report\]'"):
        report(binary(50), tmp_path / "x.html", fast=True)
    render._environment.cache_clear()
