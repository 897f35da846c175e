"""What new users ran into, with a test each; `ELSEWHERE` names those that stand in other files."""

import hashlib
import json
import re
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
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


def test_1_sixty_groups_can_be_flagged():
    p = RNG.random(6000)
    groups = np.array([f"site {i % 60}" for i in range(6000)])
    found = tc.subgroups(tc.Predictions.from_probs(p, RNG.random(6000) < p**4, columns={"site": groups}), "site")
    assert found.flagged.sum() >= 55


def test_2_clusters_reach_profiles_tests_bands_and_bins():
    p = np.repeat(RNG.random(100), 20)
    y = np.repeat(RNG.random(100) < p[::20], 20)  # twenty copies of a hundred calibrated rows
    rows = tc.Predictions.from_probs(p, y)
    patients = tc.Predictions.from_probs(p, y, clusters=np.arange(2000) // 20)
    naive, honest = tc.OneClass()(rows), tc.OneClass()(patients)
    assert float(tc.uncertainty.rank_series_test(naive).p_value) < 0.01
    assert float(tc.uncertainty.rank_series_test(honest).p_value) > 0.05
    width = [np.mean(b.high - b.low) for b in (tc.band(naive), tc.band(honest))]
    assert width[1] > 1.5 * width[0]
    bins = [tc.BinnedECE(bins=5)(profile).bins.frame() for profile in (naive, honest)]
    assert np.mean(bins[1]["high"] - bins[1]["low"]) > 2 * np.mean(bins[0]["high"] - bins[0]["low"])


def test_7_one_impossible_row_is_named_and_stops_only_what_it_must(run, tmp_path):
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
    assert "Every log loss is infinite" in page


def test_8_a_page_of_a_scan_by_groups_says_what_it_does(tmp_path):
    p = RNG.random(4000)
    rows = pl.DataFrame({"p": p, "y": RNG.random(4000) < p, "model": RNG.choice([f"m{i}" for i in range(20)], 4000)})
    scan = tc.scan(rows, label="y", score="p", by="model")
    told = []
    tc.report(scan, tmp_path / "page.html", progress=told.append)
    assert any("group" in words for words in told)


def test_10_and_11_clinical_numbers_in_the_shell_and_on_the_page(run):
    p = RNG.beta(1, 5, 800)
    rows = {"risk": p, "died": (RNG.random(800) < p).astype(int), "patient": np.arange(800) // 2}
    pl.DataFrame(rows).write_csv("cohort.csv")
    columns = ("--label", "died", "--score", "risk", "--cluster", "patient")
    code, out, _ = run("measure", "cohort.csv", *columns, "--clinical", "--json")
    found = json.loads(out)
    assert code == 0
    for name in ("oe", "intercept", "slope", "ici", "c_statistic"):
        numbers = json.dumps(found)
        assert f'"{name}"' in numbers
    assert '"patients": 400' in out
    preds = tc.read("cohort.csv", label="died", score="risk")
    assert len(tc.net_benefit(preds).frame())
    assert len(tc.calibration_belt(preds).frame())
    assert callable(tc.sample_size)
    tc.report(preds, "page.html", fast=True, scale={"low risk": (0, 0.1), "high risk": (0.1, 1)})
    assert "high risk" in Path("page.html").read_text()


def test_17_results_are_short_and_tables_can_be_taken_along():
    p = RNG.random(3000)
    preds = tc.Predictions.from_probs(p, RNG.random(3000) < p, columns={"site": RNG.choice(list("abcdefgh"), 3000)})
    for result in (tc.measure(preds), tc.subgroups(preds, "site"), tc.compare(preds.labels, p, p**2, resamples=99)):
        assert len(repr(result)) <= 200
        assert result._repr_html_()
        assert result.to_latex()


def test_24_columns_names_and_holes(run):
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


def test_25_selections_hashes_and_how_to_cite(run):
    p = RNG.random(400)
    frame = pl.DataFrame({"y": (RNG.random(400) < p).astype(int), "p": p, "site": ["a", "b"] * 200})
    frame.write_csv("a.csv")
    assert tc.measure(tc.read("a.csv"), select=tc.by_column("site", "a")).n == 200
    run("report", "a.csv", "--fast", "--out", "page.html")
    assert hashlib.sha256(Path("a.csv").read_bytes()).hexdigest() in Path("page.html").read_text()
    assert (Path(__file__).parents[1] / "CITATION.cff").is_file()


# the tests of every finding; those of this file have its number in their names
ELSEWHERE = {
    3: [
        "cli/test_compare.py::test_models_with_labels_of_their_own",
        "cli/test_compare.py::test_the_page_of_models_with_their_own_labels",
    ],
    4: ["report/test_page.py::test_per_class_rows", "plot/test_displays.py::test_class_wise"],
    5: ["selective/test_selective.py::test_answers_are_judged_by_the_confidence_in_them"],
    6: [
        "cli/test_report.py::test_several_columns_are_all_grouped_by",
        "report/test_page.py::test_several_columns_group_by_every_combination",
    ],
    9: [
        "report/test_verdict.py::test_the_example_is_taken_where_the_error_is",
        "report/test_verdict.py::test_a_risk_is_too_high_or_too_low_and_not_confident",
    ],
    10: ["cli/test_report.py::test_bands"],
    12: [
        "cli/test_formats.py::test_every_format_agrees_with_the_json",
        "cli/test_formats.py::test_the_worst_group_is_named_on_fail",
        "cli/test_config.py::test_truecal_toml_has_no_prefix",
    ],
    13: ["cli/test_compare.py::test_a_gate_between_old_and_new", "cli/test_compare.py::test_a_key_finds_the_rows"],
    14: [
        "predictions/readers/test_read.py::test_every_kind_of_file_gives_the_same_predictions",
        "predictions/readers/test_read.py::test_lists_and_objects_by_class",
    ],
    15: [
        "predictions/readers/test_read.py::test_usual_names_are_recognised_and_said",
        "predictions/readers/test_read.py::test_percent_is_read_when_asked_for_and_never_guessed",
        "predictions/readers/test_evals.py::test_lm_eval_options",
        "predictions/readers/test_evals.py::test_inspect_logs",
        "cli/test_scan.py::test_files_of_several_models_are_not_pooled_without_a_word",
    ],
    16: ["report/test_ticks.py::test_ticks_differ"],
    17: [
        "test_shown.py::test_a_notebook_gets_a_small_table_without_scripts",
        "test_shown.py::test_numbers_as_dictionaries_and_in_papers",
    ],
    18: ["cli/test_minimal_install.py::test_every_public_name_works_or_names_its_extra"],
    19: ["cli/test_formats.py::test_the_gate_adds_the_sketch_error"],
    20: [
        "cli/test_compare.py::test_folders_and_sketches_are_compared_day_against_day",
        "cli/test_compare.py::test_day_against_day",
        "cli/test_formats.py::test_prometheus_gauges",
        "test_shown.py::test_a_sketch_is_measured_like_the_rows_it_saw",
        "personas/test_personas.py::test_a_platform_engineer_runs_a_daily_job",
    ],
    21: ["report/test_page.py::test_findings_of_groups_know_the_tolerance"],
    22: ["report/test_page.py::test_a_pdf_is_printed_or_refused", "cli/test_report.py::test_a_dash_is_standard_output"],
    23: [
        "tools/test_documents.py::test_the_documentation_works_from_files",
        "tools/test_documents.py::test_the_reference_is_split_by_topic_and_leaves_nothing_large_out",
    ],
    25: [
        "plot/test_small_figures.py::test_nothing_leaves_the_canvas_of_a_column",
        "test_shown.py::test_several_estimators_make_a_table",
        "cli/test_report.py::test_the_file_hash_is_that_of_sha256sum",
    ],
}


def test_every_finding_has_a_test():
    own = {int(n) for name in globals() if name.startswith("test_") for n in re.findall(r"(?<=_)\d+(?=_)", name)}
    assert own | set(ELSEWHERE) == set(range(1, 26))
    for names in ELSEWHERE.values():
        for name in names:
            file, function = name.split("::")
            assert f"def {function}(" in (Path(__file__).parent / file).read_text(), name
