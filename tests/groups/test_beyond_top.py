"""Tables of what a method did beyond the top class."""

import math

import numpy as np
import pytest

from tests.groups.data import simulated
from truecal.errors import InputError
from truecal.estimators import EqualWidth, GeneralizedECE, KDTree
from truecal.groups import beyond_top
from truecal.groups.lower_ranks import entropy
from truecal.lenses import Canonical, TopK
from truecal.predictions import Predictions


def methods():
    raw = simulated(800, 6)
    logits = np.log(raw.probs + 1e-12)
    return {"raw": raw, "half": Predictions.from_logits(logits / 2, raw.labels)}


def rows(frame, **where):
    keep = [all(frame[c][i] == v for c, v in where.items()) for i in range(len(frame["method"]))]
    return {
        name: [value for value, k in zip(column, keep, strict=True) if k]
        for name, column in ((n, frame[n].tolist()) for n in frame.columns)
    }


def test_top_k_rows_are_the_errors_accuracies_and_confidences_they_name():
    outputs = methods()
    table = beyond_top(outputs, ks=[1, 3, 6])
    assert table.baseline == "raw"
    for name, preds in outputs.items():
        ordered = np.sort(preds.probs, axis=1)[:, ::-1]
        order = np.argsort(-preds.probs, axis=1, kind="stable")
        base = np.sort(outputs["raw"].probs, axis=1)[:, ::-1]
        for k in (1, 3, 6):
            row = rows(table.frame(), method=name, k=k)
            direct = GeneralizedECE(lens=TopK(k), binning=KDTree(0.1), replicates=200)(preds)
            assert row["error"] == [direct.value]
            assert (row["low"], row["high"]) == ([direct.interval.low], [direct.interval.high])
            assert row["accuracy"] == [pytest.approx((order[:, :k] == preds.labels[:, None]).any(axis=1).mean())]
            assert row["confidence"] == [pytest.approx(ordered[:, k - 1].mean())]
            assert row["difference"] == [pytest.approx(ordered[:, k - 1].mean() - base[:, k - 1].mean(), abs=1e-12)]
            assert row["ratio"] == [pytest.approx(ordered[:, k - 1].mean() / base[:, k - 1].mean())]
    assert rows(table.frame(), method="raw")["accuracy"][-1] == 1


def test_method_rows_hold_traditional_and_full_errors_and_entropy():
    outputs = methods()
    table = beyond_top(outputs, ks=[1], baseline="half").by_method
    for i, (name, preds) in enumerate(outputs.items()):
        assert table["method"][i] == name
        assert table["traditional"][i] == GeneralizedECE(lens=TopK(1), binning=EqualWidth(15), level=None)(preds).value
        assert table["full"][i] == GeneralizedECE(lens=Canonical(), level=None)(preds).value
        assert table["full_low"][i] <= table["full"][i] <= table["full_high"][i]
        by_hand = [-math.fsum(p * math.log(p) for p in row if p > 0) for row in preds.probs]
        assert table["entropy"][i] == pytest.approx(np.mean(by_hand))
        assert table["accuracy"][i] == pytest.approx((preds.probs.argmax(axis=1) == preds.labels).mean())
    assert table["entropy"][1] > table["entropy"][0]  # flatter logits


def test_a_temperature_leaves_every_top_k_accuracy_alone():
    frame = beyond_top(methods(), ks=[1, 2, 4]).frame()
    assert rows(frame, method="raw")["accuracy"] == rows(frame, method="half")["accuracy"]


def test_entropy_of_certain_uniform_and_binary_predictions():
    preds = Predictions.from_probs([[1.0, 0, 0, 0], [0.25] * 4], [0, 0])
    assert entropy(preds) == pytest.approx([0, math.log(4)])
    assert entropy(Predictions.from_probs([0.0, 0.5, 0.9], [0, 1, 1])) == pytest.approx(
        [0, math.log(2), -0.9 * math.log(0.9) - 0.1 * math.log(0.1)]
    )


def test_weights_count_in_every_column():
    preds = simulated(200, 4, weights=np.r_[np.ones(100), np.zeros(100)])
    half = preds.take(np.arange(100))
    weighted, plain = beyond_top({"m": preds}, ks=[1, 2]), beyond_top({"m": half}, ks=[1, 2])
    for name in ("accuracy", "confidence", "error"):
        assert weighted.by_k[name] == pytest.approx(plain.by_k[name])
    assert weighted.by_method["entropy"] == pytest.approx(plain.by_method["entropy"])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: beyond_top(methods(), ks=[7]), "k is 7, but there are only 6 classes"),
        (lambda: beyond_top(methods(), ks=[]), "at least one k"),
        (lambda: beyond_top(methods(), ks=[0]), "k must be a whole number of at least 1"),
        (lambda: beyond_top({}), "methods must be a mapping"),
        (lambda: beyond_top(methods(), baseline="base"), "there is no method 'base' to compare with"),
        (lambda: beyond_top({"a": simulated(50, 3), "b": simulated(50, 3, seed=1)}), "have different labels"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(wrong, message):
    with pytest.raises(InputError, match=message):
        wrong()
