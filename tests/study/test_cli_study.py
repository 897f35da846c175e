"""`truecal study run | show | export` as a newcomer meets them."""

import json

import polars as pl
import pytest

from tests.study.studies import write_files, write_study

MORE = "metrics: [rank-series-l2, ece-width-15-l1, error]\nrecalibrators: [temperature]\nworkers: 1\n"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    write_files(folder, models=("mlp", "tree", "twin"), severities=(0, 1), seeds=(0, 1))
    for severity in (0, 1):
        for seed in (0, 1):  # the twin is the tree again: no interval can tell them apart
            source = folder / f"runs/digits/tree-{severity}-{seed}.npz"
            (folder / f"runs/digits/twin-{severity}-{seed}.npz").write_bytes(source.read_bytes())
    return write_study(folder, MORE)


@pytest.fixture(scope="module")
def store(study):
    from truecal.cli.main import main

    folder = study.with_name("results")
    assert main(["study", "run", str(study), "--store", str(folder)]) == 0
    return folder


def test_run_says_what_it_did_and_skips_what_is_done(truecal, study, store):
    ran = truecal("study", "run", study, "--store", store)
    assert ran.code == 0
    assert ran.err == ""  # no progress bar into a pipe
    assert ran.out.startswith("a small study: 3 models, 12 prediction files, 72 numbers in ")
    assert f"truecal study show {store}" in ran.out
    record = json.loads(truecal("study", "run", study, "--store", store, "--json").out)
    assert (record["files"], record["numbers"]) == (12, 72)


def test_check_evaluates_nothing(truecal, study):
    ran = truecal("study", "run", study, "--check", "--store", study.with_name("never"))
    assert ran.out == "a small study: 3 models, 12 prediction files, no problems\n"
    assert not study.with_name("never").exists()


def test_problems_come_one_per_line_and_exit_2(truecal, tmp_path):
    path = write_study(tmp_path, "lenss: [top-label]\nlevel: 95\n")
    ran = truecal("study", "run", path)
    assert ran.code == 2
    lines = ran.err.splitlines()
    assert lines[0] == "truecal: study.yaml has 2 problems"
    assert [line.split()[0] for line in lines[1:]] == ["study.yaml:5:", "study.yaml:6:"]
    assert not path.with_suffix(".store").exists()


def test_broken_files_are_listed(truecal, study):
    broken = study.parent / "runs/digits/zzz-0-0.npz"
    broken.write_bytes(b"no")
    try:
        ran = truecal("study", "run", study, "--check")
        assert ran.code == 2
        assert "zzz-0-0.npz: it is damaged or not an npz file" in ran.err
    finally:
        broken.unlink()


def test_show_ranks_and_warns(truecal, store):
    ran = truecal("study", "show", store)
    assert ran.code == 0
    header = next(line for line in ran.out.splitlines() if "rank-series-l2" in line and "model" in line)
    assert header.split() == ["model", "dataset", "group", "rank-series-l2", "ece-width-15-l1", "error"]
    assert "pairs of models differ by rank-series-l2 on digits (paired on the same rows, Holm, 5 %)" in ran.out
    assert "not significantly different" in ran.out
    record = json.loads(truecal("study", "show", store, "--json").out)
    group = {row["model"]: row["groups"] for row in record["results"]}
    assert group["tree"] == group["twin"]


def test_show_in_json_sorted_and_filtered(truecal, store):
    from truecal.study import Store

    ran = truecal("study", "show", store, "--sort", "error", "--severity", 1, "--recalibrator", "temperature", "--json")
    record = json.loads(ran.out)
    values = [row["error"]["value"] for row in record["results"]]
    assert values == sorted(values)
    assert record["results"][0]["seeds"] == 2
    frame = Store(store).frame()
    expected = frame.filter(
        (pl.col("model") == record["results"][0]["model"])
        & (pl.col("metric") == "error")
        & (pl.col("severity") == 1)
        & (pl.col("recalibrator") == "temperature")
    )["value"].mean()
    assert values[0] == pytest.approx(expected, abs=1e-15)


def test_show_says_when_a_ranking_cannot_be_tested(truecal, study, tmp_path):
    path = study.with_name("bare.yaml")
    path.write_text(study.read_text().replace("ece-width-15-l1", "ece-width-20-l1"))
    assert truecal("study", "run", path, "--store", tmp_path).code == 0
    answer = truecal("study", "show", tmp_path, "--metric", "ece-width-20-l1").out
    assert "there are no intervals of ece-width-20-l1" in answer


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--metric", "nope"), "there is no metric 'nope' among the results; there are ece-width-15-l1, error"),
        (("--dataset", "mnist"), "there is no dataset 'mnist' among the results; there are digits"),
        (("--lens", "class-wise"), "there is no lens 'class-wise'"),
        (("--severity", "9"), "there is no severity 9.0"),
    ],
)
def test_show_refuses_by_name(truecal, store, options, words):
    ran = truecal("study", "show", store, *options)
    assert ran.code == 2
    assert words in ran.err


def test_a_store_without_results_yet(truecal, tmp_path):
    from truecal.study import Store

    Store(tmp_path).begin({"name": "s", "study": {}, "jobs": ["a"]})
    ran = truecal("study", "show", tmp_path)
    assert ran.code == 2
    assert "no file of this study is evaluated yet" in ran.err


@pytest.mark.parametrize(
    ("suffix", "read"), [("csv", pl.read_csv), ("parquet", pl.read_parquet), ("jsonl", pl.read_ndjson)]
)
def test_export(truecal, store, tmp_path, suffix, read):
    out = tmp_path / f"all.{suffix}"
    ran = truecal("study", "export", store, "--out", out)
    assert ran.code == 0
    assert ran.out == f"wrote 72 rows to {out}\n"
    from truecal.study import Store

    assert read(out)["value"].to_list() == pytest.approx(Store(store).frame()["value"].to_list(), abs=1e-15)


def test_export_refuses_unknown_kinds(truecal, store, tmp_path):
    ran = truecal("study", "export", store, "--out", tmp_path / "all.xlsx")
    assert ran.code == 2
    assert "write to .csv, .parquet or .jsonl" in ran.err


def test_help_loads_no_other_module(processes):
    code = (
        "import sys; from truecal.cli.main import main; code = main(['study', '--help']); "
        "print(code, 'polars' in sys.modules, 'truecal.study' in sys.modules)"
    )
    answer = processes.python(code).stdout
    assert answer.splitlines()[-1] == "0 False False"
    for verb in ("run", "show", "export", "page", "import", "figure", "example", "interventions"):
        assert f"\n  {verb} " in answer


def test_figure(truecal, store, tmp_path):
    out, numbers = tmp_path / "f.png", tmp_path / "f.csv"
    ran = truecal("study", "figure", "recalibration", store, "--out", out, "--numbers", numbers, "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["written"] == {"recalibration": str(out)}
    assert out.stat().st_size > 5000
    assert pl.read_csv(numbers).height == 6
    assert truecal("study", "figure", "families", store, "--out", out).code == 0
    assert truecal("study", "figure", "recalibration", store, "--colour", "model", "--out", out).code == 0
    assert "there is no covariate 'mood'" in truecal("study", "figure", "families", store, "--colour", "mood").err
    ran = truecal("study", "figure", "families", store, "--metric", "nope", "--out", out)
    assert ran.code == 2
    assert "there is no metric 'nope'" in ran.err
    assert truecal("study", "figure", "families", store, "--out", tmp_path / "f.xyz").code == 2
