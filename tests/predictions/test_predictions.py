"""Predictions from arrays, tensors, frames and files."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import truecal as tc
from truecal.special import expit, softmax

PROBS = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]


def test_lists_arrays_and_series_are_one():
    for probs in (PROBS, np.array(PROBS), tuple(map(tuple, PROBS)), pd.DataFrame(PROBS)):
        preds = tc.Predictions.from_probs(probs, pd.Series([0, 1]))
        np.testing.assert_array_equal(preds.probs, PROBS)
        np.testing.assert_array_equal(preds.labels, [0, 1])


def test_torch_tensors_of_every_precision():
    torch = pytest.importorskip("torch", reason="the torch extra is not installed")
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        tensor = torch.tensor([0.25, 0.75], dtype=dtype, requires_grad=True)
        preds = tc.Predictions.from_probs(tensor, torch.tensor([0, 1]))
        np.testing.assert_array_equal(preds.probs, [0.25, 0.75])


def test_softmax_is_stable_in_double_precision_and_never_leaves_the_simplex():
    logits = np.array([[1e4, 0, -1e4], [3e38, 3e38, 0], [-1e-8, 0, 1e-8]], np.float32)
    p = softmax(logits)
    assert p.dtype == np.float64
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-15)
    np.testing.assert_allclose(p[0], [1, 0, 0])
    np.testing.assert_allclose(p[1], [0.5, 0.5, 0])
    z = np.linspace(-800, 800, 101)
    # numbers below the least normal one, 2.2e-308, are 0 in scipy's expit
    np.testing.assert_allclose(expit(z), softmax(np.stack([np.zeros(101), z], axis=1))[:, 1], rtol=1e-12, atol=2.3e-308)


def test_softmax_in_blocks_equals_the_textbook():
    z = np.random.default_rng(0).normal(size=(700, 900))
    np.testing.assert_allclose(softmax(z), np.exp(z) / np.exp(z).sum(axis=1, keepdims=True), rtol=1e-12)


def test_class_names_and_indices():
    preds = tc.Predictions.from_probs(PROBS, ["b", "a"], classes=["a", "b", "c"])
    np.testing.assert_array_equal(preds.labels, [1, 0])
    assert preds.class_index("c") == 2
    assert preds.class_index(1) == 1
    assert preds.class_name(2) == "c"
    with pytest.raises(tc.InputError, match="no class 'x'"):
        preds.class_index("x")
    named = tc.Predictions.from_probs([0.2, 0.9], ["sick", "well"], classes=["well", "sick"])
    np.testing.assert_array_equal(named.labels, [1, 0])
    shifted = tc.Predictions.from_probs([0.2, 0.9], [-1, 1], classes=[-1, 1])
    np.testing.assert_array_equal(shifted.labels, [0, 1])
    objects = tc.Predictions.from_probs([0.2, 0.9], np.array(["n", "y"], object), classes=["n", "y"])
    np.testing.assert_array_equal(objects.labels, [0, 1])


def test_taking_rows_takes_everything_along():
    preds = tc.Predictions.from_probs(
        [0.1, 0.2, 0.3], [0, 1, 0], weights=[1, 2, 3], clusters=["a", "b", "a"], columns={"age": [30, 40, 50]}
    )
    subset = preds.take(np.array([2, 0]))
    np.testing.assert_array_equal(subset.probs, [0.3, 0.1])
    np.testing.assert_array_equal(subset.weights, [3, 1])
    np.testing.assert_array_equal(subset.clusters, [0, 0])
    np.testing.assert_array_equal(subset.columns["age"], [50, 30])
    assert repr(preds) == "Predictions(3 rows, binary, weighted, clustered)"


COLUMNS = {
    "y": ["cat", "dog", "cat"],
    "p_cat": [0.9, 0.3, 0.6],
    "p_dog": [0.1, 0.7, 0.4],
    "w": [1.0, 2.0, 1.5],
    "patient": ["u", "u", "v"],
    "site": ["n", "s", "n"],
}


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_of_any_library(library):
    preds = tc.Predictions.from_frame(library(COLUMNS), label="y", probs="p_*", weights="w", clusters="patient")
    assert preds.classes == ("cat", "dog")
    np.testing.assert_array_equal(preds.labels, [0, 1, 0])
    np.testing.assert_array_equal(preds.weights, [1, 2, 1.5])
    np.testing.assert_array_equal(preds.clusters, [0, 0, 1])
    assert list(preds.columns) == ["site"]


def test_numbered_columns_come_in_the_order_of_their_numbers():
    frame = pl.DataFrame(
        {f"p_{i}": [1.0 if i == 10 else 0.0] for i in (10, 2, 1, 0, 3, 4, 5, 6, 7, 8, 9)} | {"y": [10]}
    )
    preds = tc.Predictions.from_frame(frame, label="y", probs="p_*")
    assert preds.probs[0].argmax() == 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "z", "probs": "p_*"}, "no column 'z'; the columns are y, p_cat"),
        ({"label": "y", "probs": "q_*"}, "no column matches 'q_\\*'"),
        ({"label": "y", "probs": ["p_cat", "p_fox"]}, "no column 'p_fox'"),
        ({"label": "y"}, "probs= or logits="),
        ({"label": "y", "probs": "p_*", "logits": "p_*"}, "probs= or logits="),
    ],
)
def test_missing_columns_are_named(options, message):
    with pytest.raises(tc.InputError, match=message):
        tc.Predictions.from_frame(pl.DataFrame(COLUMNS), **options)


def test_missing_values_are_counted_and_located():
    frame = pl.DataFrame({"y": [0, 1, 1], "p": [0.2, None, None]})
    with pytest.raises(tc.InputError, match="'p' has 2 missing values, the first in row 1"):
        tc.Predictions.from_frame(frame, label="y", probs="p")
    with pytest.raises(tc.InputError, match="not a data frame"):
        tc.Predictions.from_frame([1, 2], label="y", probs="p")


def test_files_of_every_kind_give_the_same_predictions(tmp_path):
    frame = pl.DataFrame(COLUMNS)
    for name in ("p", "p[1]*"):  # the second is a name, not a pattern
        frame.write_csv(tmp_path / f"{name}.csv")
        frame.write_ndjson(tmp_path / f"{name}.jsonl")
        frame.write_parquet(tmp_path / f"{name}.parquet")
    for name in (f"{stem}.{kind}" for stem in ("p", "p[1]*") for kind in ("csv", "jsonl", "parquet")):
        preds = tc.read(tmp_path / name, label="y", probs="p_*", weights="w")
        np.testing.assert_array_equal(preds.probs, frame.select("p_cat", "p_dog").to_numpy())
        assert preds.classes == ("cat", "dog")
    np.savez(tmp_path / "p.npz", logits=np.log(PROBS), y=[0, 1])
    preds = tc.read(tmp_path / "p.npz", label="y", logits="logits")
    np.testing.assert_allclose(preds.probs, PROBS)


def test_unreadable_files_say_so(tmp_path):
    with pytest.raises(tc.errors.FileError, match="no file"):
        tc.read(tmp_path / "none.csv", label="y", probs="p")
    (tmp_path / "p.txt").write_text("y,p")
    with pytest.raises(tc.errors.FileError, match="unknown kind"):
        tc.read(tmp_path / "p.txt", label="y", probs="p")
    for name in ("p.parquet", "p.npz", "p.csv"):
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(tc.errors.FileError, match=name):
            tc.read(tmp_path / name, label="y", probs="p")
    np.savez(tmp_path / "p.npz", a=[1])
    with pytest.raises(tc.InputError, match="no array 'p'; it has a"):
        tc.read(tmp_path / "p.npz", label="y", probs="p")


def test_a_frame_without_a_named_prediction_is_refused():
    frame = pd.DataFrame({"y": [0, 1], "p": [0.2, 0.7]})
    with pytest.raises(tc.errors.InputError, match=r"no column is named for predictions; the columns are"):
        tc.Predictions.from_frame(frame, label="y", logits=[])
