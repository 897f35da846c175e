"""What new users ran into, as far as it has no other home."""

import hashlib
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import truecal as tc
from truecal.cli.main import main

RNG = np.random.default_rng(0)


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def command(*words):
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


def test_sixty_groups_can_be_flagged():
    p = RNG.random(6000)
    groups = np.array([f"site {i % 60}" for i in range(6000)])
    found = tc.subgroups(tc.Predictions.from_probs(p, RNG.random(6000) < p**4, columns={"site": groups}), "site")
    assert found.flagged.sum() >= 55


def test_clusters_reach_profiles_tests_bands_and_bins():
    p = np.repeat(RNG.random(100), 20)
    y = np.repeat(RNG.random(100) < p[::20], 20)  # twenty copies of a hundred calibrated rows
    rows = tc.Predictions.from_probs(p, y)
    patients = tc.Predictions.from_probs(p, y, clusters=np.arange(2000) // 20)
    naive, honest = tc.OneClass()(rows), tc.OneClass()(patients)
    assert float(tc.inference.rank_series_test(naive).p_value) < 0.01
    assert float(tc.inference.rank_series_test(honest).p_value) > 0.05
    width = [np.mean(b.high - b.low) for b in (tc.inference.band(naive), tc.inference.band(honest))]
    assert width[1] > 1.5 * width[0]
    bins = [tc.BinnedECE(bins=5)(profile).bins.frame() for profile in (naive, honest)]
    assert np.mean(bins[1]["high"] - bins[1]["low"]) > 2 * np.mean(bins[0]["high"] - bins[0]["low"])


def test_one_impossible_row_is_named_and_stops_only_what_it_must(run, tmp_path):
    logits = RNG.normal(size=(600, 3))
    probs = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    labels = (probs.cumsum(1) < RNG.random((600, 1))).sum(1)
    probs[145], labels[145] = [1, 0, 0], 2
    pl.DataFrame({"label": labels, **{f"p_{k}": probs[:, k] for k in range(3)}}).write_csv("rows.csv")
    code, out, _ = run("recalibrate", "fit", "rows.csv", "--out", "map.json")
    assert code == 0
    assert "temperature could not be fitted: row 145 " in out
    code, _, err = run("recalibrate", "fit", "rows.csv", "--method", "temperature", "--out", "map.json")
    assert (code, "row 145 " in err) == (2, True)
    tc.report(tc.read("rows.csv"), "page.html")
    page = Path("page.html").read_text()
    assert 'id="recalibration-table"' in page
    assert "Temperature scaling could not be fitted: row 145 " in page
    assert "Log losses are infinite, because a probability of exactly 0 was given" in page


def test_a_page_of_a_scan_by_groups_says_what_it_does(tmp_path):
    p = RNG.random(4000)
    rows = pl.DataFrame({"p": p, "y": RNG.random(4000) < p, "model": RNG.choice([f"m{i}" for i in range(20)], 4000)})
    scan = tc.scan(rows, label="y", score="p", by="model")
    messages = []
    tc.report(scan, tmp_path / "page.html", progress=messages.append)
    assert any("group" in words for words in messages)


def test_clinical_numbers_in_the_shell_and_on_the_page(run):
    p = RNG.beta(1, 5, 800)
    rows = {"risk": p, "died": (RNG.random(800) < p).astype(int), "patient": np.arange(800) // 2}
    pl.DataFrame(rows).write_csv("cohort.csv")
    columns = ("--label", "died", "--score", "risk", "--cluster", "patient")
    code, out, _ = run("measure", "cohort.csv", *columns, "--clinical", "--json")
    record = json.loads(out)
    assert code == 0
    for name in ("oe", "intercept", "slope", "ici", "c_statistic"):
        numbers = json.dumps(record)
        assert f'"{name}"' in numbers
    assert '"patients": 400' in out
    preds = tc.read("cohort.csv", label="died", score="risk")
    assert len(tc.clinical.net_benefit(preds).frame())
    assert callable(tc.clinical.sample_size)
    tc.report(preds, "page.html", fast=True, scale={"low risk": (0, 0.1), "high risk": (0.1, 1)})
    assert "high risk" in Path("page.html").read_text()


def test_results_are_short_and_tables_can_be_taken_along():
    p = RNG.random(3000)
    preds = tc.Predictions.from_probs(p, RNG.random(3000) < p, columns={"site": RNG.choice(list("abcdefgh"), 3000)})
    for result in (tc.measure(preds), tc.subgroups(preds, "site"), tc.compare(preds.labels, p, p**2, resamples=99)):
        assert len(repr(result)) <= 200
        assert result._repr_html_()
        assert result.to_latex()


def test_columns_names_and_holes(run):
    p = RNG.random(200)
    pl.DataFrame({"label": (RNG.random(200) < p).astype(int), "p": p}).write_csv("a.csv")
    code, out, _ = run("measure", "a.csv", "--by", "label")
    assert (code, "label" in out) == (0, True)
    assert "did you mean 'measure'" in run("mesure", "a.csv")[2]
    assert "did you mean 'label'" in run("measure", "a.csv", "--label", "labl")[2]
    pl.DataFrame({"y": [1, 0, 1] * 20, "p": [0.5, float("nan"), None] * 20}).write_parquet("holes.parquet")
    code, _, err = run("measure", "holes.parquet")
    assert (code, "--drop-null" in err) == (2, True)
    assert "n = 20" in run("measure", "holes.parquet", "--drop-null")[1]


def test_selections_hashes_and_how_to_cite(run):
    p = RNG.random(400)
    frame = pl.DataFrame({"y": (RNG.random(400) < p).astype(int), "p": p, "site": ["a", "b"] * 200})
    frame.write_csv("a.csv")
    assert tc.measure(tc.read("a.csv"), select=tc.by_column("site", "a")).n == 200
    run("report", "a.csv", "--fast", "--out", "page.html")
    assert hashlib.sha256(Path("a.csv").read_bytes()).hexdigest() in Path("page.html").read_text()
    assert (Path(__file__).parents[1] / "CITATION.cff").is_file()


def test_limits_of_distances_agree_with_each_other():
    """Finding 7: a mean distance is at least half of the median and a tenth of the 90th percentile."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        p = rng.beta(1, 4, 300)
        cohort = tc.clinical.summary(tc.Predictions.from_probs(p, rng.random(300) < p**1.1))
        assert cohort.ici.low >= cohort.e50.low / 2
        assert cohort.ici.low >= cohort.e90.low / 10


def test_one_day_before_the_last_counted_is_not_skipped_silently(run):
    """Finding 8: exit code 2 and the reason, by file name as by --at."""
    p = RNG.random(100)
    frame = pl.DataFrame({"y": (RNG.random(100) < p).astype(int), "p": p})
    for day in ("2026-05-01", "2026-05-02"):
        frame.write_parquet(f"{day}.parquet")
    assert run("watch", "update", "state.json", "2026-05-02.parquet")[0] == 0
    code, _, err = run("watch", "update", "state.json", "2026-05-01.parquet")
    assert (code, "skipped 2026-05-01: before the last counted batch, 2026-05-02" in err) == (2, True)
    code, _, err = run("watch", "update", "state.json", "2026-05-01.parquet", "--at", "2026-05-01")
    assert (code, "2026-05-02" in err) == (2, True)


def test_digits_tell_value_and_limits_apart(run):
    """Finding 9: limits that differ are written differently, however narrow the interval is."""
    assert tc.digits.with_interval(0.005812, 0.005791, 0.00583) == "0.005812 [0.005791, 0.005830]"


def test_swapped_columns_are_named_by_their_options(run):
    """Finding 11: the command line names its options, Python its arguments in their order."""
    p = RNG.random(100)
    y = (RNG.random(100) < p).astype(int)
    pl.DataFrame({"y": y, "p": p}).write_csv("a.csv")
    code, _, err = run("measure", "a.csv", "--label", "p", "--score", "y")
    assert (code, "swap --label and --score" in err, "y_true" in err) == (2, True, False)
    with pytest.raises(tc.InputError, match=r"probabilities come first in from_probs\(probs, labels\)"):
        tc.Predictions.from_probs(y, p)
    with pytest.raises(tc.InputError, match="y_true comes first"):
        tc.calibration_error(p, y)


def test_broken_files_are_named_with_line_and_remedy(run):
    """Finding 13: a truncated jsonl file, and a file that is no recalibrator."""
    Path("cut.jsonl").write_text('{"y": 1, "p": 0.5}\n{"y": 0, "p"')
    code, _, err = run("measure", "cut.jsonl")
    assert (code, "cut.jsonl" in err, "line 2" in err, "repair or delete the line" in err) == (2, True, True, True)
    pl.DataFrame({"p": [0.2, 0.8]}).write_csv("a.csv")
    for text in ('{"a": 1}', "no JSON"):
        Path("map.json").write_text(text)
        code, _, err = run("recalibrate", "apply", "a.csv", "--model", "map.json", "--score", "p", "--out", "b.csv")
        assert (code, err.startswith("truecal: map.json: ")) == (2, True)


def test_p_values_have_one_text():
    """Finding 15: the same words in Python and on the command line."""
    p = RNG.random(2000)
    y = RNG.random(2000) < p
    texts = [
        str(tc.compare(y, p**3, p, resamples=99)),
        str(tc.decision_loss(y, p**3)),
        str(tc.calibration_error(y, p**3)),
    ]
    assert all("p < 0.001" in text or "p = 0.0" in text for text in texts), texts
