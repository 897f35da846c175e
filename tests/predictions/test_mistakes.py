"""Mistakes that gave a number: a column named twice, logits that are none, codes in another order, rows in another order."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import truecal as tc
from truecal.engines import scan

RNG = np.random.default_rng(0)
P = RNG.random(200)
Y = (RNG.random(200) < P).astype(int)


@pytest.fixture
def animals(tmp_path):
    """Class-named columns that are not in alphabetical order, with labels as codes in the order of the columns."""
    probs = RNG.dirichlet(np.ones(3), 300)
    labels = (probs.cumsum(axis=1) < RNG.random((300, 1))).sum(axis=1)
    columns = {f"p_{name}": probs[:, k] for k, name in enumerate(("dog", "fox", "cat"))}
    path = tmp_path / "animals.parquet"
    pl.DataFrame({"y": labels, **columns}).write_parquet(path)
    return path, probs, labels


def test_one_column_as_label_and_score_is_refused(tmp_path):
    frame = pl.DataFrame({"y": Y, "p": P})
    frame.write_csv(tmp_path / "a.csv")
    np.savez(tmp_path / "a.npz", y=Y, p=P)
    for call in (
        lambda: tc.Predictions.from_frame(frame, label="y", probs="y"),
        lambda: tc.Predictions.from_frame(frame, label="y", probs="p", weights="p"),
        lambda: tc.Predictions.from_frame(frame, label="y", probs="p", weights="y"),
        lambda: tc.read(tmp_path / "a.csv", label="y", score="y"),
        lambda: tc.read(tmp_path / "a.npz", label="y", probs="y"),
        lambda: scan(frame, label="y", score="y"),
        lambda: scan(tmp_path / "a.csv", label="y", score="p", weights="y"),
    ):
        with pytest.raises(tc.InputError, match=r"is named as the (label|weights) and as the"):
            call()


def test_probabilities_declared_as_logits_or_percent_warn(tmp_path):
    both = np.stack([1 - P, P], axis=1)
    frame = pl.DataFrame({"y": Y, "p": P, "q_0": both[:, 0], "q_1": both[:, 1]})
    frame.write_csv(tmp_path / "a.csv")
    for call in (
        lambda: tc.Predictions.from_logits(P, Y),
        lambda: tc.Predictions.from_logits(both, Y),
        lambda: tc.read(tmp_path / "a.csv", label="y", logits="p"),
        lambda: scan(frame, label="y", logits="p"),
        lambda: scan(frame, label="y", logits="q_*"),
    ):
        with pytest.warns(tc.TruecalWarning, match="look like probabilities"):
            call()
    with pytest.warns(tc.TruecalWarning, match="declared percent and has no value above 1"):
        tc.read(tmp_path / "a.csv", label="y", score="p", percent=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tc.Predictions.from_logits(RNG.normal(size=200), Y)
        tc.Predictions.from_logits(RNG.random((200, 3)), Y)
        scan(pl.DataFrame({"y": Y, "z": RNG.normal(size=200)}), label="y", logits="z")


def test_codes_of_named_columns_out_of_order_are_refused_and_mapped_when_told(animals):
    path, probs, labels = animals
    for call in (lambda: tc.read(path), lambda: scan(path, label="y", probs="p_*")):
        with pytest.raises(tc.InputError, match=r"label 0 may mean 'dog' .*or 'cat'.*dog,fox,cat, or cat,dog,fox"):
            call()
    said = []
    preds = tc.read(path, classes=["dog", "fox", "cat"], progress=said.append)
    np.testing.assert_array_equal(preds.probs, probs)
    assert "labels 0 = 'p_dog', 1 = 'p_fox', 2 = 'p_cat'" in said[0]
    alphabetical = tc.read(path, classes=["cat", "dog", "fox"])
    np.testing.assert_array_equal(alphabetical.probs, probs[:, [2, 0, 1]])
    np.testing.assert_array_equal(alphabetical.labels, labels)


def test_pandas_index_in_another_order_is_refused():
    y = pd.Series(Y)
    p = pd.Series(P).sample(frac=1, random_state=0)
    for call in (
        lambda: tc.calibration_error(y, p),
        lambda: tc.Predictions.from_probs(p, y),
        lambda: tc.Predictions.from_logits(p, y),
        lambda: tc.calibration_error(y, p.sort_index(), sample_weight=p),
        lambda: tc.compare(y, p, p),
    ):
        with pytest.raises(tc.InputError, match="same index in another order, and rows are paired by position"):
            call()
    assert float(tc.calibration_error(y, p.loc[y.index])) == float(tc.calibration_error(Y, P))
    assert float(tc.calibration_error(y, pd.Series(P, index=range(200, 400)))) == float(tc.calibration_error(Y, P))


def test_comparison_of_rows_in_another_order_is_refused():
    order = RNG.permutation(200)
    one, other = tc.Predictions.from_probs(P, Y), tc.Predictions.from_probs(P[order], Y[order])
    with pytest.raises(tc.InputError, match="same labels in another order"):
        tc.compare(one, other)
    assert tc.compare(one, other, paired=False).difference == pytest.approx(0, abs=1e-12)
    tc.compare(tc.Predictions.from_answers(P, Y), tc.Predictions.from_answers(P[order], Y[order]))


@pytest.mark.parametrize("value", [1 + 1e-9, -1e-17])
def test_rounding_is_named_as_such(value):
    with pytest.raises(tc.InputError, match=r"row 1 is .*this is rounding: clip"):
        tc.Predictions.from_probs([0.5, value], [0, 1])
    with pytest.raises(tc.InputError, match="this is rounding: clip"):
        scan(pl.DataFrame({"p": [0.5, value], "y": [0, 1]}), label="y", score="p")


def test_softmax_in_bfloat16_is_accepted():
    torch = pytest.importorskip("torch")
    logits = torch.randn(500, 10, generator=torch.Generator().manual_seed(0))
    probs = torch.softmax(logits.to(torch.bfloat16), dim=1)
    assert len(tc.Predictions.from_probs(probs, torch.zeros(500, dtype=torch.int64))) == 500
    with pytest.raises(tc.InputError, match="sum to"):
        tc.Predictions.from_probs(probs.float() * 1.0037, torch.zeros(500, dtype=torch.int64))


def test_object_labels():
    np.testing.assert_array_equal(tc.Predictions.from_probs(P, Y.astype(object)).labels, Y)
    for missing in (None, float("nan")):
        labels = Y.astype(object)
        labels[3] = missing
        with pytest.raises(tc.InputError, match=r"labels: row 3 is .*every row needs a label"):
            tc.Predictions.from_probs(P, labels)
    with pytest.raises(tc.InputError, match="labels: row 0 is nan; every row needs a label"):
        tc.Predictions.from_probs(P, np.where(np.arange(200) == 0, np.nan, Y))


def test_frame_with_two_columns_of_one_name_is_refused():
    frame = pd.DataFrame(np.stack([Y, P, P], axis=1), columns=["y", "p", "p"])
    with pytest.raises(tc.InputError, match="two columns of the frame have the same name"):
        tc.Predictions.from_frame(frame, label="y", probs="p")
