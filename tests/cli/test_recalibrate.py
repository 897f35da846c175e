"""`truecal recalibrate`: columns by name, rows that a method cannot take, and models to serve."""

import json

import numpy as np
import polars as pl
import pytest

from tests.cli.conftest import class_frame


@pytest.fixture
def abc(tmp_path):
    rng = np.random.default_rng(0)
    logits = 3 * rng.normal(size=(400, 3)) + [0, 1, 2]
    labels = np.array(["cat", "dog", "fox"])[(0.4 * logits + rng.gumbel(size=logits.shape)).argmax(axis=1)]
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    frame = pl.DataFrame({"label": labels, **{f"p_{n}": probs[:, k] for k, n in enumerate(("cat", "dog", "fox"))}})
    frame.write_csv(tmp_path / "abc.csv")
    frame.select("label", "p_fox", "p_dog", "p_cat").write_csv(tmp_path / "cba.csv")
    return tmp_path


def test_names_decide_not_the_order_of_columns(truecal, abc):
    model = abc / "model.json"
    assert truecal("recalibrate", "fit", abc / "abc.csv", "--method", "vector", "--out", model).code == 0
    for name in ("abc", "cba"):
        ran = truecal("recalibrate", "apply", abc / f"{name}.csv", "--model", model, "--out", abc / f"{name}-after.csv")
        assert ran.code == 0
    one, other = pl.read_csv(abc / "abc-after.csv"), pl.read_csv(abc / "cba-after.csv")
    assert other.columns == ["label", "p_fox", "p_dog", "p_cat"]
    for column in ("p_cat", "p_dog", "p_fox"):
        assert one[column].to_numpy() == pytest.approx(other[column].to_numpy(), abs=1e-12)
    pl.read_csv(abc / "abc.csv").rename({"p_fox": "p_owl"}).write_csv(abc / "owl.csv")
    wrong = truecal("recalibrate", "apply", abc / "owl.csv", "--model", model, "--out", abc / "x.csv")
    assert wrong.code == 2
    assert "'owl' is not in both" in wrong.err


def test_export(truecal, abc):
    model = abc / "model.json"
    assert truecal("recalibrate", "fit", abc / "abc.csv", "--method", "structured-matrix", "--out", model).code == 0
    ran = truecal("recalibrate", "export", "--model", model, "--out", abc / "m.onnx", "--json")
    content = json.loads(ran.out)
    assert (ran.code, content["recalibrator"], content["input"]) == (0, "StructuredMatrixScaling", "probs")
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(str(abc / "m.onnx"), providers=["CPUExecutionProvider"])
    probs = pl.read_csv(abc / "abc.csv").select("p_cat", "p_dog", "p_fox").to_numpy()
    served = session.run(None, {"probs": probs.astype(np.float32)})[0]
    truecal("recalibrate", "apply", abc / "abc.csv", "--model", model, "--out", abc / "after.csv")
    after = pl.read_csv(abc / "after.csv").select("p_cat", "p_dog", "p_fox").to_numpy()
    assert served == pytest.approx(after, abs=1e-5)
    assert truecal("recalibrate", "export", "--model", model, "--out", abc / "m.zip").code == 2


def test_an_impossible_row_does_not_stop_the_comparison(truecal, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, 300)
    y = (rng.random(300) < p**2).astype(int)
    p[145], y[145] = 1.0, 0
    pl.DataFrame({"y": y, "p": p}).write_csv(tmp_path / "x.csv")
    ran = truecal("recalibrate", "fit", tmp_path / "x.csv", "--out", tmp_path / "m.json", "--json")
    content = json.loads(ran.out)
    assert ran.code == 0
    assert content["refused"]["beta"].startswith("row 145 has a probability of exactly 1")
    assert content["method"] in {row["recalibrator"] for row in content["results"]}


def test_fit_says_when_no_map_is_recommended(truecal, tmp_path):
    rng = np.random.default_rng(2)
    p = rng.uniform(0.02, 0.98, 400)
    pl.DataFrame({"y": (rng.random(400) < p).astype(int), "p": p}).write_csv(tmp_path / "x.csv")
    ran = truecal("recalibrate", "fit", tmp_path / "x.csv", "--out", tmp_path / "m.json")
    assert ran.code == 0
    assert "recommended: uncalibrated (no map lowers the log loss significantly at 95%)" in ran.out
    assert ran.out.rstrip().endswith("none is recommended, and this one comes closest")


def test_a_promise_for_all_classes_from_the_shell(truecal, tmp_path):
    class_frame(6000, seed=1).write_parquet(tmp_path / "fit.parquet")
    class_frame(6000, seed=2).write_parquet(tmp_path / "new.parquet")
    path, binned = tmp_path / "map.json", tmp_path / "binned.parquet"
    probs = ("--probs", "p_*")

    def fitted(*form):
        words = ("--method", "scaling-binning", "--bins", 5, *form, "--out", path)
        assert truecal("recalibrate", "fit", tmp_path / "fit.parquet", *probs, *words).code == 0
        applied = truecal("recalibrate", "apply", tmp_path / "new.parquet", *probs, "--model", path, "--out", binned)
        assert applied.code == 0

    fitted("--per-class", "--no-renormalise")
    refused = truecal("verify", binned, *probs)
    assert (refused.code, "--unnormalised" in refused.err) == (2, True)
    ran = truecal("verify", binned, *probs, "--unnormalised", "--lens", "class-wise", "--max-error", 0.05)
    assert (ran.code, ran.out.startswith("promised")) == (0, True)
    fitted("--top-label")
    assert truecal("verify", binned, *probs, "--max-error", 0.06).out.startswith("promised")
    wrong = ("recalibrate", "fit", tmp_path / "fit.parquet", *probs)
    assert "does not map each score by itself" in truecal(*wrong, "--method", "temperature", "--no-renormalise").err
    assert "are for one --method" in truecal(*wrong, "--top-label").err
