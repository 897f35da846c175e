"""The displays, the dossier and the commands: the numbers that they show are the library's."""

import csv
import json
from html.parser import HTMLParser

import numpy as np
import pytest

import truecal as tc
from tests.clinical.worlds import WORLDS
from truecal.cli.main import main
from truecal.pages.dossier import write_dossier
from truecal.plot import DecisionDisplay, FlexibleDisplay, ForestDisplay

P, Y, CLUSTERS = WORLDS[1].draw(np.random.default_rng(6), 600, 2)
SITE = np.array(["north <b>", "south", "west"])[np.arange(600) // 200]
PREDS = tc.Predictions.from_probs(P, Y, clusters=CLUSTERS, columns={"site": SITE})


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("clinical") / "cohort.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["ill", "risk", "patient", "site"])
        rows.writerows(zip(Y.tolist(), P.tolist(), CLUSTERS.tolist(), SITE.tolist(), strict=True))
    return str(path)


def test_displays_draw_what_was_computed():
    from matplotlib import pyplot

    before = dict(pyplot.rcParams)
    summary = tc.clinical.summary(PREDS, by="site")
    forest = ForestDisplay.from_sites(summary.sites, "slope")
    assert forest.frame()["value"][1] == summary.sites["south"].slope.value
    assert forest.frame()["kind"].tolist() == ["site", "site", "site", "mean", "new site"]
    assert len(ForestDisplay.from_sites(summary.sites, "ici", plot=False).frame()) == 3
    decision = DecisionDisplay.from_curve(tc.clinical.net_benefit({"a": PREDS, "b": PREDS}, [0.1, 0.3]))
    assert len(decision.frame()) == 4
    flexible = FlexibleDisplay.from_curves({"all": summary.curve}, scores=P)
    assert flexible.frame()["outcome"] == pytest.approx(summary.curve.outcome)
    assert dict(pyplot.rcParams) == before
    with pytest.raises(tc.InputError, match=r"number must be .*, not 'auc'"):
        ForestDisplay.from_sites(summary.sites, "auc")
    pyplot.close("all")


def test_long_names_of_groups_stay_in_their_column():
    hospital = "Hospital of the Holy Ghost"
    site = np.array([f"{hospital}, north", f"{hospital}, south"])[np.arange(600) // 300]
    summary = tc.clinical.summary(tc.Predictions.from_probs(P, Y, columns={"site": site}), by="site")
    lines = str(summary.sites).splitlines()
    assert {line.index("[") for line in lines[1:3]} == {lines[0].index("O/E") + 6}


class _Balance(HTMLParser):
    """Collects text and counts the elements left open."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "link", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_the_dossier_holds_the_numbers_and_nothing_that_runs(tmp_path):
    page = write_dossier(PREDS, tmp_path / "dossier.html", by="site", source="cohort.csv").read_text()
    summary = tc.clinical.summary(PREDS, by="site")
    reader = _Balance()
    reader.feed(page)
    words = " ".join(reader.text).replace("\xa0", " ")
    assert not reader.open
    assert str(summary.slope) in words
    assert str(summary.sites["south"].oe) in words
    assert "300 patients with 600 rows" in words
    assert "north <b>" in words
    assert "<b>" not in page
    assert "<script" not in page
    assert "http-equiv" in page
    for number in range(1, 5):
        assert f"Table {number}." in words
    again = write_dossier(PREDS, tmp_path / "again.html", by="site", source="cohort.csv").read_text()
    assert page.rpartition("Made")[0] == again.rpartition("Made")[0]


def test_the_commands_say_what_python_says(table, tmp_path, capsys):
    options = [table, "--label", "ill", "--score", "risk", "--cluster", "patient", "--by", "site"]
    assert main(["measure", *options, "--clinical", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    summary = tc.clinical.summary(PREDS, by="site")
    assert record["slope"]["low"] == pytest.approx(summary.slope.low)
    assert record["ici"]["high"] == pytest.approx(summary.ici.high)
    assert record["patients"] == 300
    assert list(record["sites"]["each"]) == ["north <b>", "south", "west"]
    assert main(["measure", *options, "--clinical"]) == 0
    assert "calibration slope" in capsys.readouterr().out
    assert main(["measure", *options, "--clinical", "--max-error", "0.1"]) == 2
    assert "--clinical cannot be combined" in capsys.readouterr().err
    out = tmp_path / "dossier.html"
    assert main(["report", *options, "--dossier", "tripod-ai", "--out", str(out)]) == 0
    assert "TRIPOD+AI" in out.read_text()


def test_a_dossier_named_pdf_is_refused(tmp_path):
    with pytest.raises(tc.errors.FileError, match="print it from any browser"):
        write_dossier(PREDS, tmp_path / "dossier.pdf")
    assert not (tmp_path / "dossier.pdf").exists()


def test_the_dossier_says_how_many_rows_were_dropped(table, tmp_path):
    rows = tc.inference.RowCounts(read=665, analysed=600, dropped=65)
    page = write_dossier(PREDS, tmp_path / "dossier.html", rows=rows).read_text()
    assert page.count("65 of 665 rows were dropped because of missing values") == 2  # in the conclusion and in item 11
    whole = write_dossier(PREDS, tmp_path / "all.html", rows=tc.inference.RowCounts(read=600, analysed=600)).read_text()
    assert "every one of 600 rows read was judged" in whole
    unknown = write_dossier(PREDS, tmp_path / "unknown.html").read_text()
    assert "how many rows were left out before is not known here" in unknown


def test_the_headline_of_the_dossier_counts_the_slope_as_evidence(tmp_path):
    page = write_dossier(PREDS, tmp_path / "dossier.html").read_text()
    slope = tc.clinical.summary(PREDS).slope
    assert f"Calibration slope {slope.value:.2f} [{slope.low:.2f}, {slope.high:.2f}]" in page
