"""Gates and files of the command line: NaN fails, a file counts once, names of columns stay inside the folder."""

import json
import shlex
from dataclasses import replace
from math import nan

import numpy as np
import polars as pl
import pytest

import truecal as tc
from tests.cli.conftest import binary_frame
from truecal.estimators.estimate import Interval
from truecal.inference.ranking import conclude_ranking


def test_verbs_are_suggested(truecal):
    assert "did you mean 'measure'" in truecal("mesure", "x.csv").err


def test_nan_fails_every_gate(monkeypatch, truecal, binary_csv):
    """A limit that is not a number never passes, in whatever group it is."""
    measure = tc.measure
    for bad in (0, 1, 2):
        count = iter(range(10))

        def some_nan(*arguments, count=count, bad=bad, **options):
            estimate = measure(*arguments, **options)
            high = nan if next(count) == bad else 0.01
            return estimate.replace(value=0.005, interval=Interval(0.0, high, 0.95, "x"))

        monkeypatch.setattr(tc, "measure", some_nan)
        ran = truecal("measure", binary_csv, "--by", "site", "--max-error", "0.2", "-q")
        assert (ran.code, ran.out.splitlines()[-1][:5]) == (1, "FAIL:")
    pair = tc.compare([0, 1] * 50, [0.3, 0.7] * 50, [0.4, 0.6] * 50, names=("a", "b"), resamples=99)
    for reference in ("a", "b"):
        broken = replace(pair, interval=Interval(nan, nan, 0.95, "x"))
        conclusion = conclude_ranking([broken], reference=reference, max_increase=0.5)
        assert conclusion.passed is False
        assert conclusion.gate.startswith("FAIL: ")


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_nan_in_a_scan_is_refused_before_the_gate(truecal, tmp_path, engine):
    frame = binary_frame(100)
    frame = frame.with_columns(p=pl.when(pl.arange(0, 100) == 7).then(nan).otherwise(pl.col("p")))
    frame.write_parquet(tmp_path / "n.parquet")
    for verb in (["measure", "--by", "site", "--max-error", "0.9"], ["sketch", "save", "--out", tmp_path / "s.npz"]):
        ran = truecal(
            *verb[: 1 + (verb[0] == "sketch")],
            tmp_path / "n.parquet",
            "--engine",
            engine,
            *verb[1 + (verb[0] == "sketch") :],
        )
        assert ran.code == 2
        assert "1 row with missing values" in ran.err
    assert not (tmp_path / "s.npz").exists()


def test_file_named_twice_is_refused(truecal, tmp_path):
    path = tmp_path / "a.parquet"
    binary_frame(100).write_parquet(path)
    assert truecal("sketch", "save", path, "--engine", "polars", "--out", tmp_path / "s.npz").code == 0
    for arguments in (
        ["measure", path, path],
        ["sketch", "merge", tmp_path / "s.npz", tmp_path / "s.npz", "--out", "m"],
    ):
        ran = truecal(*arguments)
        assert ran.code == 2
        assert "rows would count twice" in ran.err


def test_brackets_in_names(truecal, tmp_path):
    binary_frame(100).write_parquet(tmp_path / "day1.parquet")
    binary_frame(50).write_parquet(tmp_path / "day[1].parquet")
    ran = truecal("measure", tmp_path / "day[1].parquet", "--engine", "polars")
    assert "scanned 50 rows in 1 file" in ran.err


def test_columns_named_like_paths_stay_inside_the_folder(truecal, tmp_path):
    binary_frame(100).rename({"site": "../../k"}).write_parquet(tmp_path / "a.parquet")
    out = tmp_path / "deep" / "er" / "out"
    ran = truecal("sketch", "save", tmp_path / "a.parquet", "--engine", "polars", "--by", "../../k", "--out", out)
    assert ran.code == 0, ran.err
    assert len(list(out.rglob("sketch.npz"))) == len(list(tmp_path.rglob("sketch.npz"))) == 2


def test_scan_says_which_column_a_label_means(truecal, tmp_path):
    frame = pl.DataFrame({"y": [0, 1, 2] * 20, "p_a": [0.5] * 60, "p_b": [0.25] * 60, "p_c": [0.25] * 60})
    frame.write_parquet(tmp_path / "a.parquet")
    for engine in ([], ["--engine", "polars"]):
        ran = truecal("measure", tmp_path / "a.parquet", *engine)
        assert "labels 0 = 'p_a', 1 = 'p_b', 2 = 'p_c'" in ran.err
    shifted = frame.select("y", "p_c", "p_a", "p_b")
    shifted.write_parquet(tmp_path / "b.parquet")
    assert "label 0 may mean 'c'" in truecal("measure", tmp_path / "b.parquet", "--engine", "polars").err
    answers = [
        truecal("measure", tmp_path / f"{name}.parquet", "--engine", "polars", "--class-names", "a,b,c", "--json").out
        for name in "ab"
    ]
    assert answers[0].replace("a.parquet", "") == answers[1].replace("b.parquet", "")
    assert (
        "--percent needs the rows" in truecal("measure", tmp_path / "a.parquet", "--engine", "polars", "--percent").err
    )


@pytest.mark.parametrize(("labels", "remedy"), [((1, 2), "--classes 1,2"), ((-1, 1), "--classes=-1,1")])
def test_labels_that_do_not_start_at_0_are_mended_by_the_printed_command(truecal, tmp_path, labels, remedy):
    path, rng = tmp_path / "x.csv", np.random.default_rng(0)
    p = rng.random(200)
    pl.DataFrame({"y": np.where(rng.random(200) < p, labels[1], labels[0]), "p": p}).write_csv(path)
    ran = truecal("measure", path)
    assert ran.code == 2
    command = ran.err.strip().splitlines()[-1].strip().removeprefix("try: truecal ")
    assert command.endswith(remedy)
    assert f"class {labels[1]}" in truecal(*shlex.split(command)).out


def test_decimal_commas_in_quotes_are_no_words(truecal, tmp_path):
    (tmp_path / "x.csv").write_text('y,p\n1,"0,8"\n0,"0,3"\n')
    ran = truecal("measure", tmp_path / "x.csv")
    assert (ran.code, "write it with a decimal point" in ran.err, "--words" in ran.err) == (2, True, False)


def test_columns_of_two_models_are_told_from_classes(truecal, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(200)
    pl.DataFrame({"y": (rng.random(200) < p).astype(int), "p_old": p, "p_new": p**2}).write_csv(tmp_path / "x.csv")
    ran = truecal("measure", tmp_path / "x.csv")
    assert (ran.code, "scores of several models are judged one by one (--score p_old)" in ran.err) == (2, True)
    assert truecal("measure", tmp_path / "x.csv", "--score", "p_old").code == 0


def test_groups_of_a_state_need_no_repetition(truecal, binary_csv, tmp_path):
    state = tmp_path / "state.json"
    assert truecal("watch", "update", state, binary_csv, "--at", 1, "--by", "site", "-q").code in (0, 1)
    ran = truecal("watch", "update", state, binary_csv, "--at", 2, "--json", "-q")
    assert ran.code in (0, 1)
    assert json.loads(ran.out)["by"] == ["site"]


def test_thresholds_ask_for_net_benefit(truecal, binary_csv):
    rows = json.loads(truecal("measure", binary_csv, "--thresholds", "0.2,0.4", "--json").out)["thresholds"]
    assert [row["threshold"] for row in rows] == [0.2, 0.4]


def test_a_comparison_scans_files_with_an_engine(truecal, binary_csv, tmp_path):
    other = tmp_path / "other.csv"
    other.write_bytes(binary_csv.read_bytes())
    ran = truecal("compare", binary_csv, other, "--engine", "polars", "--label", "y", "--score", "p", "--json", "-q")
    assert ran.code == 0
    assert json.loads(ran.out)["pairs"][0]["difference"] == 0
