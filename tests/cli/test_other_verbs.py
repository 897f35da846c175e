"""`truecal report`, `verify`, `compare` and `recalibrate`: happy paths and their JSON."""

import json

import numpy as np
import polars as pl
import pytest

import truecal as tc
from tests.cli.conftest import binary_frame, class_frame


def test_report(truecal, binary_csv, tmp_path):
    out = tmp_path / "page.html"
    ran = truecal("report", binary_csv, "--by", "site", "--out", out, "--fast", "--title", "My <model>")
    assert ran.code == 0
    assert f"wrote {out}" in ran.out
    text = out.read_text()
    assert "<h1>My &lt;model&gt;</h1>" in text
    assert 'id="group-table"' in text
    content = json.loads(truecal("report", binary_csv, "--out", out, "--fast", "--json").out)
    assert content == {
        "schema": "truecal.report-written",
        "version": 1,
        "source": "binary.csv",
        "path": str(out),
        "bytes": out.stat().st_size,
    }


def test_verify(truecal, binary_csv):
    frame = binary_frame()
    expected = tc.verify(tc.Predictions.from_probs(frame["p"], frame["y"]), threshold=0.3)
    ran = truecal("verify", binary_csv, "--max-error", "0.3", "--assume-smooth", "--json")
    content = json.loads(ran.out)
    assert ran.code == 0
    assert (content["schema"], content["version"], content["passed"]) == ("truecal.verify", 1, True)
    assert (content["high"], content["verdict"]) == (expected.high, "supported")
    assert truecal("verify", binary_csv, "--max-error", "0.3").code == 1  # continuous outputs cannot be promised
    assert truecal("verify", binary_csv, "--threshold", "0.3", "--assume-smooth", "--json").out == ran.out
    ran = truecal("verify", binary_csv, "--max-error", "0.001")
    assert ran.code == 1
    assert "0.001" in ran.out


def test_compare_files(truecal, binary_csv, tmp_path):
    better = tmp_path / "better.csv"
    frame = binary_frame()
    frame.with_columns(p=pl.col("p") ** 1.6).write_csv(better)
    content = json.loads(truecal("compare", binary_csv, better, "--json", "--resamples", "200").out)
    expected = tc.compare(frame["y"], frame["p"], frame["p"] ** 1.6, resamples=200)
    (pair,) = content["pairs"]
    assert (content["schema"], content["version"], content["n"]) == ("truecal.compare", 1, 400)
    assert (pair["a"], pair["b"]) == ("binary", "better")
    assert pair["difference"] == pytest.approx(expected.difference, abs=1e-12)
    assert pair["low"] == pytest.approx(expected.interval.low, abs=1e-12)
    text = truecal("compare", binary_csv, better, "--resamples", "200").out
    assert "binary - better" in text


def test_compare_writes_a_page(truecal, tmp_path):
    path, page = tmp_path / "models.parquet", tmp_path / "compare.html"
    binary_frame().with_columns(q=pl.col("p") ** 1.6).write_parquet(path)
    ran = truecal("compare", path, "--model", "a=p", "--model", "b=q", "--resamples", "99", "--report", page)
    assert ran.code == 0
    assert f"wrote {page}" in ran.err
    assert 'id="pair-table"' in page.read_text()


def test_compare_columns_of_one_file(truecal, tmp_path):
    path = tmp_path / "models.parquet"
    binary_frame().with_columns(q=pl.col("p") ** 1.6, r=pl.col("p") ** 2).write_parquet(path)
    models = [part for name, column in (("a", "p"), ("b", "q"), ("c", "r")) for part in ("--model", f"{name}={column}")]
    content = json.loads(truecal("compare", path, *models, "--json", "--resamples", "99").out)
    assert [(pair["a"], pair["b"]) for pair in content["pairs"]] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert all(pair["adjusted_p"] >= pair["p_value"] for pair in content["pairs"])
    only = json.loads(truecal("compare", path, *models, "--reference", "b", "--json", "--resamples", "99").out)
    assert [(pair["a"], pair["b"]) for pair in only["pairs"]] == [("a", "b"), ("c", "b")]


def test_recalibrate_fit_and_apply(truecal, binary_csv, tmp_path):
    model, out = tmp_path / "model.json", tmp_path / "after.parquet"
    ran = truecal("recalibrate", "fit", binary_csv, "--method", "beta", "--out", model, "--json")
    content = json.loads(ran.out)
    assert ran.code == 0
    assert (content["schema"], content["version"], content["method"]) == ("truecal.recalibrate-fit", 1, "beta")
    assert [row["recalibrator"] for row in content["results"]] == ["uncalibrated", "beta"]
    applied = truecal("recalibrate", "apply", binary_csv, "--model", model, "--out", out, "--json")
    assert json.loads(applied.out) == {
        "schema": "truecal.recalibrate-apply",
        "version": 1,
        "rows": 400,
        "path": str(out),
        "replaced": ["p"],
    }
    frame, after = binary_frame(), pl.read_parquet(out)
    expected = (
        tc.recalibration.BetaCalibration()
        .fit(frame["p"].to_numpy(), frame["y"].to_numpy())
        .predict_proba(frame["p"].to_numpy())
    )
    assert after["p"].to_numpy() == pytest.approx(expected[:, 1], abs=1e-12)
    assert after.columns == frame.columns
    assert after["site"].to_list() == frame["site"].to_list()


def test_the_best_method_is_found(truecal, binary_csv, tmp_path):
    model = tmp_path / "model.json"
    ran = truecal("recalibrate", "fit", binary_csv, "--out", model)
    assert ran.code == 0
    assert "lowest log loss" in ran.out
    assert all(name in ran.out for name in ("uncalibrated", "temperature", "beta", "isotonic", "scaling-binning"))
    assert json.loads(model.read_text())["format"] == "truecal recalibrator"


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_class_names_and_logits_survive_recalibration(truecal, class_parquet, tmp_path, kind):
    model, out = tmp_path / "model.json", tmp_path / f"after.{kind}"
    names = ("--class-names", "cat,dog,fox")
    assert (
        truecal(
            "recalibrate", "fit", class_parquet, "--logits", "z_*", *names, "--method", "temperature", "--out", model
        ).code
        == 0
    )
    assert json.loads(model.read_text())["classes"] == ["cat", "dog", "fox"]
    assert truecal("recalibrate", "apply", class_parquet, "--logits", "z_*", "--model", model, "--out", out).code == 0
    reader = {"csv": pl.read_csv, "jsonl": pl.read_ndjson, "parquet": pl.read_parquet}[kind]
    after = reader(out)
    probs = after.select("p_cat", "p_dog", "p_fox").to_numpy()
    assert probs.sum(axis=1) == pytest.approx(1, abs=1e-12)
    before = class_frame().select("p_cat", "p_dog", "p_fox").to_numpy()
    assert (probs.argmax(axis=1) == before.argmax(axis=1)).all()
    assert probs.max(axis=1).mean() < before.max(axis=1).mean() - 0.05  # the model was overconfident
    wrong = truecal("recalibrate", "apply", class_parquet, "--probs", "p_*", "--model", model, "--out", out)
    assert wrong.code == 2
    assert "was fitted on logits" in wrong.err


def test_npz_in_and_out(truecal, tmp_path):
    frame, source, model, out = class_frame(), tmp_path / "in.npz", tmp_path / "model.json", tmp_path / "out.npz"
    labels = frame["label"].replace_strict({"cat": 0, "dog": 1, "fox": 2}).to_numpy()
    np.savez(source, labels=labels, logits=frame.select("z_0", "z_1", "z_2").to_numpy())
    assert truecal("recalibrate", "fit", source, "--method", "vector", "--out", model).code == 0
    assert truecal("recalibrate", "apply", source, "--model", model, "--out", out).code == 0
    with np.load(out) as arrays:
        assert sorted(arrays.files) == ["labels", "logits", "probs"]
        assert arrays["probs"].shape == (400, 3)
    assert truecal("recalibrate", "apply", source, "--model", model, "--out", tmp_path / "out.csv").code == 2
    assert truecal("measure", out).code == 0


def test_decision_says_what_miscalibration_costs(truecal, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    file = tmp_path / "preds.csv"
    pl.DataFrame({"score": p, "label": (rng.random(2000) < p**2).astype(int)}).write_csv(file)
    content = json.loads(truecal("decision", file, "--threshold", "0.2", "--json").out)
    assert (content["schema"], content["thresholds"]) == ("truecal.decision", [0.2])
    assert content["low"][0] > 0
    assert "a false alarm costs 1, a missed event 4" in truecal("decision", file, "--costs", "1", "4").out
    assert truecal("decision", file, "--threshold", "0.2", "--costs", "1", "4").code == 2


def test_measure_takes_a_column_of_a_judge(truecal, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    right = rng.random(2000) < p**1.5
    judge = np.where(rng.random(2000) < 0.9, right, ~right).astype(int)
    label = [int(y) if checked else None for y, checked in zip(right, rng.random(2000) < 0.2, strict=True)]
    file = tmp_path / "judged.csv"
    pl.DataFrame({"label": label, "score": p, "verdict": judge}).write_csv(file)
    content = json.loads(truecal("measure", file, "--judge", "verdict", "--json").out)
    expected = tc.calibration_error(np.array(label, float), p, judge=judge)
    assert content["results"][0]["value"] == pytest.approx(float(expected))
    assert "trusted labels" in truecal("measure", file, "--judge", "verdict").out
    assert truecal("measure", file).code == 2
