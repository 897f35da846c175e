"""One column or two of a binary model: the same positive class, wherever predictions come in."""

import json

import numpy as np
import polars as pl
import pytest

import truecal as tc
from truecal.cli.main import main

RNG = np.random.default_rng(0)
P = RNG.random(1500)
Y = (RNG.random(1500) < P**1.5).astype(int)
ONE, TWO = tc.Predictions.from_probs(P, Y), tc.Predictions.from_probs(np.c_[1 - P, P], Y)


def _accumulated(preds):
    accumulator = tc.Accumulator()
    accumulator.update(preds.labels, preds.probs)
    return accumulator.compute()


@pytest.mark.parametrize(
    "call",
    [
        lambda preds: tc.measure(preds).value,
        lambda preds: tc.measure(preds).p_value,
        lambda preds: tc.measure(preds, estimator=tc.BinnedECE()).value,
        lambda preds: tc.verify(preds).high,
        lambda preds: tc.inference.rank_series_test(preds).p_value,
        lambda preds: tc.clinical.summary(preds).oe.value,
        lambda preds: tc.likert(preds).frame()["mean_output"][0],
        lambda preds: tc.measure(preds, select=tc.by_output(high=0.4)).value,
        lambda preds: _accumulated(preds).value,
    ],
    ids=["value", "p", "binned", "verify", "test", "clinical", "likert", "select", "accumulator"],
)
def test_python_judges_the_positive_class_of_two_columns(call):
    assert call(TWO) == pytest.approx(call(ONE), abs=1e-9)


def test_arrays_and_pos_label():
    one = tc.calibration_error(Y, P)
    assert tc.calibration_error(Y, np.c_[1 - P, P]).value == pytest.approx(one.value)
    words = np.where(Y == 1, "Yes", "No")
    assert tc.calibration_error(words, np.c_[1 - P, P]).value == pytest.approx(one.value)
    other = tc.calibration_error(words, np.c_[1 - P, P], pos_label="No")
    assert other.value == pytest.approx(tc.calibration_error(1 - Y, 1 - P).value)
    assert tc.calibration_error(Y, np.c_[1 - P, P], lens=tc.TopLabel()).lens == "top label"


def test_scans_and_files_judge_the_same(tmp_path, capsys):
    frame = pl.DataFrame({"y": Y, "p_0": 1 - P, "p_1": P, "p": P})
    scans = [tc.scan(frame, label="y", probs=["p_0", "p_1"]), tc.scan(frame, label="y", score="p")]
    assert scans[0].measure().value == pytest.approx(scans[1].measure().value)
    assert scans[0].lens_name == scans[1].lens_name
    picked = [
        tc.scan(frame, label="y", select=tc.by_output(high=0.4), **which).rows
        for which in ({"probs": ["p_0", "p_1"]}, {"score": "p"})
    ]
    assert picked[0] == picked[1]
    frame.write_csv(tmp_path / "a.csv")
    values = []
    for which in (["--probs", "p_*"], ["--score", "p"], ["--probs", "p_*", "--engine", "polars"]):
        assert main(["measure", str(tmp_path / "a.csv"), "--label", "y", *which, "--json"]) == 0
        values.append(json.loads(capsys.readouterr().out)["results"][0]["value"])
    assert values[1:] == pytest.approx(values[:1] * 2, abs=1e-4)


def test_segment_offsets_move_the_positive_class():
    site = np.repeat(["a", "b"], 750)
    truth = np.where(site == "b", P**3, P)
    y = (RNG.random(1500) < truth).astype(int)
    one = tc.Predictions.from_probs(P, y, columns={"site": site})
    two = tc.Predictions.from_probs(np.c_[1 - P, P], y, columns={"site": site})
    fitted = [tc.recalibration.SegmentOffsets(["site"]).fit_rows(preds).recalibrate(preds) for preds in (one, two)]
    assert np.allclose(fitted[0].probs, fitted[1].probs[:, 1])
    assert np.allclose(fitted[1].probs.sum(1), 1)
    assert not np.allclose(fitted[0].probs, P)


def test_torch_metric_judges_the_positive_class():
    torch = pytest.importorskip("torch")
    pytest.importorskip("torchmetrics")
    from truecal.engines.torch_metric import CalibrationMetric

    metrics = [CalibrationMetric(), CalibrationMetric()]
    metrics[0].update(torch.tensor(P), torch.tensor(Y))
    metrics[1].update(torch.tensor(np.c_[1 - P, P]), torch.tensor(Y))
    assert float(metrics[0].compute()) == pytest.approx(float(metrics[1].compute()))
