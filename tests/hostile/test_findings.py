"""What hostile input found first, as far as it has no other home."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import truecal as tc
from tools.lowest import pins
from truecal.cli.main import main
from truecal.errors import TruecalError

TESTS = Path(__file__).parents[1]
RNG = np.random.default_rng(0)
P = RNG.random(40)
Y = (RNG.random(40) < P).astype(int)
PROBS = RNG.dirichlet(np.ones(3), 60)
LABELS = (PROBS.cumsum(axis=1) < RNG.random((60, 1))).sum(axis=1)
NAMES = np.array(["cat", "dog", "fox"])


def test_a_map_finds_the_classes_by_name():
    fitted = tc.recalibration.VectorScaling(input="probs", classes=NAMES.tolist()).fit(PROBS, NAMES[LABELS])
    plain = fitted.recalibrate(tc.Predictions.from_probs(PROBS, NAMES[LABELS], classes=NAMES.tolist()))
    turned = fitted.recalibrate(tc.Predictions.from_probs(PROBS[:, ::-1], NAMES[LABELS], classes=NAMES[::-1].tolist()))
    assert turned.classes == ("fox", "dog", "cat")
    np.testing.assert_array_equal(turned.probs[:, ::-1], plain.probs)
    with pytest.raises(tc.InputError, match="'a' is not in both"):
        fitted.recalibrate(tc.Predictions.from_probs(PROBS, np.array(list("abc"))[LABELS], classes=list("abc")))


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table])
def test_a_scan_refuses_columns_numbered_from_one(kind):
    columns = {"y": [1, 2, 1, 2], "p_1": [0.8, 0.2, 0.7, 0.1], "p_2": [0.1, 0.7, 0.2, 0.2], "p_3": [0.1, 0.1, 0.1, 0.7]}
    with pytest.raises(tc.InputError, match=r"numbered 1, 2, 3, not from 0"):
        tc.scan(kind(columns), label="y", probs="p_*")
    probs = np.column_stack([columns[f"p_{k}"] for k in (1, 2, 3)])
    expected = tc.measure(tc.Predictions.from_probs(probs, [0, 1, 0, 1]), estimator=tc.BinnedECE())
    counted = tc.scan(kind(columns), label="y", probs="p_*", classes=[1, 2, 3]).measure(estimator=tc.BinnedECE())
    assert counted.value == pytest.approx(expected.value, abs=1e-9)
    with pytest.raises(tc.InputError, match="contradict the columns"):
        tc.scan(kind(columns), label="y", probs="p_*", classes=[3, 2, 1])


@pytest.mark.parametrize("engine", [[], ["--engine", "polars"]])
def test_columns_follow_the_order_of_the_class_names(tmp_path, capsys, engine):
    """Numeric labels are positions among the names given; columns are found by their names."""
    path = tmp_path / "a.csv"
    pl.DataFrame({"y": LABELS, **{f"p_{name}": PROBS[:, k] for k, name in enumerate(NAMES)}}).write_csv(path)
    words = ["--estimator", "binned", "--lens", "class=fox", "--json", "-q", *engine]
    assert main(["measure", str(path), "--class-names", "cat,dog,fox", *words]) == 0
    expected = tc.calibration_error(LABELS, PROBS, lens=tc.OneClass(2), estimator=tc.BinnedECE())
    assert json.loads(capsys.readouterr().out)["results"][0]["value"] == pytest.approx(expected.value)
    assert main(["measure", str(path), "--class-names", "fox,dog,cat", *words]) == 0
    turned = tc.calibration_error(LABELS == 0, PROBS[:, 2], estimator=tc.BinnedECE())
    assert json.loads(capsys.readouterr().out)["results"][0]["value"] == pytest.approx(turned.value)


def test_a_nul_at_the_end_of_a_class_name_is_kept():
    preds = tc.Predictions.from_probs([0.2, 0.6], ["a", "a\0"], classes=["a", "a\0"])
    assert preds.labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("high", 0.05),
        ("low", -0.05),
        ("r", 1e-5),
        ("r", -1e-5),
        ("rr", 1e-7),
        ("rr", -1e-9),
        ("ry", 1e-5),
        ("ry", -1e-5),
        ("rr", 1e308),
        ("n", 0.5),
        ("n", -1),
        ("y", 2),
        ("y", -1),
    ],
)
def test_impossible_numbers_in_saved_sketches(tmp_path, name, change):
    path = tmp_path / "s.npz"
    tc.Sketch.from_arrays([0.3, 0.1, 0.9], [1, 0, 1]).save(path)
    with np.load(path) as arrays:
        good = dict(arrays)
    np.savez(path, **{**good, name: good[name] + change})
    with pytest.raises(tc.errors.FileError, match=r"s\.npz"):
        tc.Sketch.load(path)


SCORES = {
    "uniform": lambda rng, n: rng.random(n),
    "ties": lambda rng, n: np.round(rng.random(n), 1),
    "sharp": lambda rng, n: rng.beta(0.1, 0.1, n),
    "constant": lambda rng, n: np.full(n, 0.3),
    "zeros and ones": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "tiny": lambda rng, n: rng.random(n) * 1e-200,
    "single": lambda rng, n: rng.random(n).astype(np.float32).astype(float),
}


@pytest.mark.parametrize("scale", [None, 1e-6, 1.0, 1e9])
def test_sketches_of_any_scores_are_read_again(tmp_path, scale):
    for kind, draw in SCORES.items():
        rng = np.random.default_rng(1)
        scores = draw(rng, 3000)
        weights = None if scale is None else scale * (rng.random(3000) + 1e-6)
        sketch = tc.Sketch.from_arrays(scores, rng.random(3000) < scores, weights)
        sketch.save(tmp_path / "s.npz")
        again = tc.Sketch.load(tmp_path / "s.npz")
        assert tc.BinnedECE()(again).value == tc.BinnedECE()(sketch).value, kind


def test_groups_of_one_cluster_have_no_numbers():
    groups = np.repeat(["a", "b"], 20)
    found = tc.subgroups(tc.Predictions.from_probs(P, Y, clusters=np.repeat([0, 1], 20), columns={"g": groups}), "g")
    assert str(found).count("too few rows to test") == 2
    assert not found.flagged.any()


@pytest.mark.parametrize("seed", range(5))
def test_an_interval_ends_where_the_distance_does(seed):
    probs = np.random.default_rng(seed).dirichlet(np.full(3, 0.2), 20)
    est = tc.measure(tc.Predictions.from_probs(probs, probs.argmin(axis=1)), lens=tc.Canonical())
    assert 0 <= est.interval.low <= est.value <= est.interval.high <= 1


def test_arrays_of_the_other_byte_order_in_a_file(tmp_path):
    np.savez(tmp_path / "a.npz", probs=P.astype(">f8"), labels=Y.astype(">i4"))
    estimate = tc.measure(tc.read(tmp_path / "a.npz"), estimator=tc.BinnedECE())
    assert estimate.value == tc.calibration_error(Y, P, estimator=tc.BinnedECE()).value


def test_a_pandas_frame_is_scanned():
    frame = pd.DataFrame({"y": LABELS, **{f"p_{k}": PROBS[:, k] for k in range(3)}})
    counted = tc.scan(frame, label="y", probs="p_*").measure(estimator=tc.BinnedECE())
    assert counted.value == pytest.approx(tc.calibration_error(LABELS, PROBS, estimator=tc.BinnedECE()).value, abs=1e-9)


@pytest.mark.parametrize(
    "make",
    [
        lambda bins: tc.BinnedECE(bins=bins),
        lambda bins: tc.DebiasedECE(bins=bins),
        lambda bins: tc.estimators.LabelBinnedECE(bins=bins),
        lambda bins: tc.estimators.AdaptiveECE(bins=bins),
        lambda bins: tc.estimators.EqualWidth(bins),
        lambda bins: tc.estimators.EqualMass(bins),
        lambda bins: tc.recalibration.HistogramBinning(bins=bins).fit(PROBS, LABELS),
    ],
)
def test_bins_are_bounded(make):
    with pytest.raises(TruecalError, match="at most"):
        make(50_000_000)


def test_tensors_without_rows_are_refused_by_what_they_are():
    torch = pytest.importorskip("torch")
    with pytest.raises(tc.InputError, match=r"sparse tensor; convert them by .to_dense\(\)"):
        tc.calibration_error(Y, torch.tensor(P).to_sparse())
    with pytest.raises(tc.InputError, match="meta device"):
        tc.calibration_error(Y, torch.empty(40, device="meta"))


def test_class_names_out_of_a_program(tmp_path, capsys):
    program, path = tmp_path / "program", tmp_path / "a.csv"
    program.write_bytes(b"\x7fELF\x02\x01\x01\x00\xff\xfe")
    path.write_text("y,p\n1,0.5\n0,0.25\n")
    assert main(["measure", str(path), "--class-names", f"@{program}"]) == 2
    assert "not a text file" in capsys.readouterr().err


@pytest.mark.parametrize("content", ['{"columns": 2, "p": [0.5], "y": [1]}', '{"p": [{}, []], "y": [0, 1]}'])
def test_json_whose_columns_are_no_lists(tmp_path, capsys, content):
    path = tmp_path / "a.json"
    path.write_text(content)
    assert main(["measure", str(path)]) == 2
    assert "unexpected" not in capsys.readouterr().err


def test_class_names_do_not_steer_the_terminal(tmp_path, capsys):
    path = tmp_path / "a.csv"
    names = ["\x1b[31mcat", "dog", "fox"]
    pl.DataFrame({"y": LABELS, **{f"p_{k}": PROBS[:, k] for k in range(3)}}).write_csv(path)
    for words in (["--lens", f"class={names[0]}"], ["--lens", "class-wise"], ["--lens", "class=\x1b[31mowl"]):
        main(["measure", str(path), "--class-names", ",".join(names), *words])
        captured = capsys.readouterr()
        assert "\x1b" not in captured.out + captured.err


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/a.csv", "s3://bucket/a.parquet", "file:///etc/hostname"])
def test_read_takes_an_address_for_a_file(address, monkeypatch):
    monkeypatch.setattr("socket.socket", None)  # never made
    with pytest.raises(tc.errors.FileError, match="there is no file"):
        tc.read(address)


def test_the_lowest_versions_are_those_of_the_project():
    """`make test-lowest` installs them and runs the quick tests."""
    data = dict(pin.split("==") for pin in pins(TESTS.parent / "pyproject.toml"))
    assert {"numpy", "scipy", "narwhals", "polars", "scikit-learn", "pytest"} <= set(data)
