"""`truecal measure` of a pattern, a folder, several files, or any file with --engine."""

import json
from importlib import import_module

import numpy as np
import polars as pl
import pytest

import truecal as tc
from tests.cli.conftest import binary_frame, class_frame
from tests.engines.engines import need

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
WRITE = {"csv": "write_csv", "jsonl": "write_ndjson", "parquet": "write_parquet"}


def split(frame, folder, kind="parquet", parts=3):
    """The rows of a frame in several files."""
    folder.mkdir(exist_ok=True)
    step = -(-len(frame) // parts)
    for i in range(parts):
        getattr(frame.slice(i * step, step), WRITE[kind])(folder / f"part-{i}.{kind}")
    return folder


@pytest.fixture
def logs(tmp_path):
    return split(binary_frame(), tmp_path / "logs")


def results(ran):
    assert ran.code == 0, ran.err
    return json.loads(ran.out)["results"]


@pytest.mark.parametrize("kind", WRITE)
@pytest.mark.parametrize("engine", [None, "polars", "duckdb", "dask"])
def test_the_answer_is_that_of_one_file_in_memory(truecal, tmp_path, kind, engine):
    if engine is not None:
        need(engine)
    binary_frame().write_parquet(tmp_path / "whole.parquet")
    split(binary_frame(), tmp_path / "logs", kind)
    options = [] if engine is None else ["--engine", engine]
    ran = truecal("measure", f"{tmp_path}/logs/*.{kind}", "--by", "site", "--json", *options)
    exact = results(truecal("measure", tmp_path / "whole.parquet", "--by", "site", "--json"))
    result = results(ran)
    assert [part["group"] for part in result] == ["north", "south"]
    for part, other in zip(result, exact, strict=True):
        assert abs(part["value"] - other["value"]) <= part["sketch_error"] < 1e-3
        assert part["interval"]["high"] == pytest.approx(other["interval"]["high"], abs=1e-6)
        assert part.keys() - other.keys() == {"sketch_error", "sketch_bound"}
        assert (part["n"], part["p_value"]) == (other["n"], other["p_value"])
    assert json.loads(ran.out)["scan"] == {"engine": engine or "polars", "rows": 400, "dropped": 0}
    assert f"scanned 400 rows in 3 files with {engine or 'polars'}: label 'y' [detected]" in ran.err


def test_a_folder_several_files_and_a_pattern_are_the_same(truecal, logs):
    ways = [[logs], sorted(logs.iterdir()), [f"{logs}/*.parquet"], [f"{logs}/part-?.parquet"]]
    answers = [results(truecal("measure", *way, "--json", "--quiet")) for way in ways]
    assert all(answer == answers[0] for answer in answers)
    text = truecal("measure", logs, "--quiet")
    assert "from a sketch" in text.out
    assert text.err == ""


def test_files_of_several_models_are_not_pooled_without_a_word(truecal, tmp_path):
    for model, seed in (("gpt-4", 0), ("claude-5", 1)):
        frame = binary_frame(seed=seed).rename({"p": "confidence", "y": "correct"}).drop("site", "patient", "w")
        frame.write_ndjson(tmp_path / f"{model}.jsonl")
        frame.with_columns(model=pl.lit(model)).write_ndjson(tmp_path / f"named-{model}.jsonl")
    bare = [tmp_path / f"{model}.jsonl" for model in ("gpt-4", "claude-5")]
    named = [tmp_path / f"named-{model}.jsonl" for model in ("gpt-4", "claude-5")]
    assert (
        "the rows of 2 files are judged together, as those of one model; truecal compare"
        in truecal("measure", *bare).out
    )
    assert "the rows of 2 models are judged together; --by model" in truecal("measure", *named).out
    assert "judged together" not in truecal("measure", *named, "--by", "model").out
    assert "judged together" in truecal("measure", f"{tmp_path}/named-*.jsonl").out


def test_a_single_file_is_scanned_only_when_asked(truecal, logs):
    file = logs / "part-0.parquet"
    assert "sketch_error" not in results(truecal("measure", file, "--json"))[0]
    assert "sketch_error" in results(truecal("measure", file, "--json", "--engine", "polars"))[0]


def test_every_estimator_has_an_interval_and_a_bound(truecal, logs):
    for part in results(truecal("measure", logs, "--estimator", "all", "--json")):
        assert part["interval"]["low"] <= part["value"] <= part["interval"]["high"]
        assert 0 <= part["sketch_error"] <= 1
    by_site = ["--estimator", "binned", "--by", "site"]
    assert "sketch error" in truecal("measure", logs, *by_site).out
    assert "sketch error" not in truecal("measure", logs / "part-0.parquet", *by_site).out


def test_the_gate(truecal, logs):
    assert truecal("measure", logs, "--max-error", "0.5").code == 0
    failed = truecal("measure", logs, "--max-error", "0.001", "--by", "site")
    assert failed.code == 1
    assert "FAIL" in failed.out
    assert truecal("measure", logs, "--max-error", "0.5", "--estimator", "binned").code == 0


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_lenses_names_weights_and_logits(truecal, tmp_path, engine):
    need(engine)
    frame = class_frame()
    split(frame, tmp_path / "classes")
    frame.write_parquet(tmp_path / "whole.parquet")
    numbered = frame.with_columns(label=pl.col("label").replace_strict({"cat": 0, "dog": 1, "fox": 2}))
    split(numbered, tmp_path / "numbers")
    for folder, options in (
        ("classes", ["--lens", "class=dog", "--probs", "p_*"]),
        ("numbers", ["--lens", "class=dog", "--probs", "p_*", "--class-names", "cat,dog,fox"]),
        ("classes", ["--logits", "z_*", "--class-names", "cat,dog,fox"]),
        ("classes", ["--lens", "class-wise", "--estimator", "debiased", "--probs", "p_*"]),
        ("numbers", ["--lens", "class-wise", "--estimator", "binned", "--logits", "z_*"]),
    ):
        (result,) = results(truecal("measure", tmp_path / folder, "--engine", engine, "--json", *options))
        (exact,) = results(
            truecal("measure", tmp_path / "whole.parquet", "--json", *options, "--class-names", "cat,dog,fox")
        )
        assert result["value"] == pytest.approx(exact["value"], abs=1e-9)
        assert result["lens"] == exact["lens"]
    signs = binary_frame().with_columns(y=2 * pl.col("y") - 1)
    split(signs, tmp_path / "signs")
    (result,) = results(
        truecal("measure", tmp_path / "signs", "--engine", engine, "--json", "--class-names", "-1,1", "--weight", "w")
    )
    exact = tc.calibration_error(binary_frame()["y"], signs["p"], sample_weight=signs["w"])
    assert abs(result["value"] - exact.value) <= result["sketch_error"]


@pytest.mark.parametrize("engine", [None, "polars", "duckdb"])
def test_missing_values_are_dropped_when_asked_and_counted(truecal, tmp_path, engine):
    rows = pl.arange(0, 400)
    frame = binary_frame().with_columns(p=pl.when(rows % 100 == 3).then(None).otherwise(pl.col("p")))
    frame.write_parquet(tmp_path / "gaps.parquet")
    options = [] if engine is None else ["--engine", engine]
    refused = truecal("measure", tmp_path / "gaps.parquet", *options)
    assert refused.code == 2
    assert "4" in refused.err
    ran = truecal("measure", tmp_path / "gaps.parquet", *options, "--drop-null", "--json")
    (result,) = results(ran)
    selected = binary_frame().filter(rows % 100 != 3)
    assert result["n"] == 396
    assert result["value"] == pytest.approx(tc.calibration_error(selected["y"], selected["p"]).value, abs=1e-4)
    assert "4 rows with missing values were left out" in result["warnings"]
    assert "4 rows with missing values left out" in ran.err


def test_what_a_scan_cannot_do_is_refused(truecal, tmp_path, logs):
    np.savez(tmp_path / "arrays.npz", y=[0, 1], p=[0.25, 0.75])
    (tmp_path / "empty").mkdir()
    split(binary_frame(), tmp_path / "both")
    split(binary_frame().rename({"p": "q"}), tmp_path / "odd")
    (tmp_path / "odd" / "part-0.parquet").rename(tmp_path / "both" / "part-9.parquet")
    cases = {
        "no file matches": [f"{tmp_path}/*.csv"],
        "holds no .csv": [tmp_path / "empty"],
        "there is no file": [logs, tmp_path / "missing.parquet"],
        "--clusters needs the rows": [logs, "--cluster", "patient"],
        "npz files hold arrays": [tmp_path / "arrays.npz", "--engine", "polars"],
        "standard input cannot be scanned": ["-", "--engine", "polars"],
        "'excel' is not one of": [logs, "--engine", "excel"],
        "there is no column 'week'": [logs, "--by", "week"],
        "part-9.parquet: there is no column 'p'": [tmp_path / "both"],
        "class-wise scan does not have": [logs, "--lens", "class-wise", "--estimator", "binned", "--max-error", "0.5"],
    }
    for words, arguments in cases.items():
        ran = truecal("measure", *arguments)
        assert ran.code == 2, arguments
        assert words in ran.err, arguments
        assert ran.out == ""


def test_an_engine_that_is_not_installed_is_named_with_its_extra(truecal, logs, monkeypatch):
    monkeypatch.setattr(import_module("truecal.engines.sources"), "installed", lambda package: package == "polars")
    ran = truecal("measure", logs, "--engine", "duckdb")
    assert ran.code == 2
    assert "pip install 'truecal[duckdb]'" in ran.err


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_columns_of_a_folder_are_detected_by_their_values_as_those_of_a_file(truecal, tmp_path, engine):
    rng = np.random.default_rng(0)
    p = rng.random(300)
    left = np.where(rng.random(300) < p, "Yes", "No")
    frame = pl.DataFrame({"left": left, "churn_x": p, "age": rng.integers(18, 80, 300)})
    (tmp_path / "days").mkdir()
    frame.write_csv(tmp_path / "days" / "1.csv")
    frame.write_csv(tmp_path / "one.csv")
    scanned = truecal("measure", tmp_path / "days", "--engine", engine)
    assert "label 'left' [detected], probabilities 'churn_x' [detected]" in scanned.err
    assert "label 'left' [detected], probabilities 'churn_x' [detected]" in truecal("measure", tmp_path / "one.csv").err
    frame.with_columns(other=1 - p).write_csv(tmp_path / "days" / "1.csv")
    refused = truecal("measure", tmp_path / "days")
    assert refused.code == 2
    assert f"try: truecal measure {tmp_path / 'days'} --score churn_x" in refused.err


@pytest.mark.parametrize("engine", [None, "polars", "duckdb", "dask"])
def test_groups_of_scans_are_named_as_in_memory(truecal, tmp_path, engine):
    sites = [1.0, 2.5, None, -0.0] * 100
    binary_frame().with_columns(site=pl.Series(sites)).write_parquet(tmp_path / "x.parquet")
    options = [] if engine is None else ["--engine", engine]
    ran = truecal("measure", tmp_path / "x.parquet", "--by", "site", "--json", *options)
    assert [part["group"] for part in results(ran)] == ["0", "1", "2.5", "missing"]


def test_sketches_of_rows_without_a_group_are_named_as_the_rows_are(truecal, tmp_path):
    frame = binary_frame().with_columns(site=pl.Series(["a", None] * 200))
    frame.write_parquet(tmp_path / "x.parquet")
    assert truecal("sketch", "save", tmp_path / "x.parquet", "--by", "site", "--out", tmp_path / "s").code == 0
    names = []
    for source in (tmp_path / "x.parquet", tmp_path / "s"):
        ran = truecal(
            "watch", "update", tmp_path / f"{source.name}.json", source, "--by", "site", "--at", "1", "--json"
        )
        names.append([group["group"] for group in json.loads(ran.out)["steps"][0]["groups"]])
    assert names[0] == names[1]


def test_copies_of_a_sketch_are_named_when_sketches_are_added(truecal, tmp_path, logs):
    copy, other = tmp_path / "copy.npz", tmp_path / "other.npz"
    truecal("sketch", "save", logs / "part-0.parquet", "--out", tmp_path / "a.npz")
    truecal("sketch", "save", logs / "part-1.parquet", "--out", other)
    copy.write_bytes((tmp_path / "a.npz").read_bytes())
    ran = truecal("sketch", "merge", tmp_path / "a.npz", other, copy, "--out", tmp_path / "sum.npz")
    assert ran.code == 0
    assert f"{copy} and {tmp_path / 'a.npz'} hold the same sketch" in ran.err
    assert "hold the same sketch" not in truecal("sketch", "show", other).err


@pytest.mark.parametrize("engine", [None, "polars"])
def test_rows_of_weight_zero_are_no_group_and_no_selection(truecal, tmp_path, engine):
    frame = binary_frame().with_columns(site=pl.Series(["a", "b"] * 200), w=pl.Series([1.0, 0.0] * 200))
    frame.write_parquet(tmp_path / "x.parquet")
    options = ["--weights", "w", *([] if engine is None else ["--engine", engine])]
    ran = truecal("measure", tmp_path / "x.parquet", "--by", "site", "--json", *options)
    assert [part["group"] for part in results(ran)] == ["a"]
    ran = truecal("measure", tmp_path / "x.parquet", "--select", "site=b", *options)
    assert (ran.code, "no row is left" in ran.err) == (2, True)


@pytest.mark.parametrize("engine", [None, "polars", "duckdb"])
def test_labels_without_names_are_selected_and_counted_against_class_names(truecal, tmp_path, engine):
    binary_frame().write_parquet(tmp_path / "x.parquet")
    options = [] if engine is None else ["--engine", engine]
    (part,) = results(truecal("measure", tmp_path / "x.parquet", "--select", "label=1", "--json", *options))
    assert part["n"] == binary_frame()["y"].sum()
    ran = truecal("measure", tmp_path / "x.parquet", "--class-names", "a,b,c", *options)
    assert (ran.code, "3 class names were given for 2 classes" in ran.err) == (2, True)
