"""Numbers that Roelofs et al. and Kumar et al. print, from the same models' outputs. Skipped where the data is absent."""

import numpy as np
import pytest
from numpy.typing import NDArray

import truecal as tc
from tests.real_data import how_to_get, real_data
from truecal.recalibration import (
    BetaCalibration,
    BiasCorrectedTemperature,
    HistogramBinning,
    IsotonicCalibration,
    TemperatureScaling,
    VectorScaling,
    evaluate,
)

RESNET, VGG = real_data("resnet110_cifar10_logits.npz"), real_data("vgg16_cifar10_probs.npz")
needs_resnet = pytest.mark.skipif(not RESNET.exists(), reason=how_to_get(RESNET.name))
needs_vgg = pytest.mark.skipif(not VGG.exists(), reason=how_to_get(VGG.name))


@pytest.fixture(scope="module")
def resnet() -> dict[str, NDArray[np.float32]]:
    with np.load(RESNET) as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def vgg() -> tc.Predictions:
    with np.load(VGG) as arrays:
        return tc.Predictions.from_probs(arrays["probs"], arrays["labels"])


def top_label_percent(probs: NDArray[np.float64], labels: NDArray[np.int16]) -> tuple[float, float]:
    profile = tc.TopLabel()(tc.Predictions.from_probs(probs, labels))
    width = tc.BinnedECE(bins=15, scheme="width", norm=1)(profile).value
    sweep = tc.SweepECE(scheme="mass", norm=1)(profile).value
    return 100 * float(width), 100 * float(sweep)


@needs_resnet
def test_temperature_and_isotonic_give_roelofs_printed_digits(resnet: dict[str, NDArray[np.float32]]) -> None:
    fixed = TemperatureScaling().fit(resnet["val_logits"], resnet["val_labels"])
    assert round(fixed.temperature_, 3) == 2.395
    width, sweep = top_label_percent(fixed.predict_proba(resnet["test_logits"]), resnet["test_labels"])
    assert (round(width, 2), round(sweep, 2)) == (1.13, 0.91)
    probs = tc.Predictions.from_logits(resnet["test_logits"], resnet["test_labels"]).probs
    fitted = tc.Predictions.from_logits(resnet["val_logits"], resnet["val_labels"])
    isotonic = IsotonicCalibration().fit(fitted.probs, fitted.labels)
    width, sweep = top_label_percent(isotonic.predict_proba(probs), resnet["test_labels"])
    assert (round(width, 2), round(sweep, 2)) == (1.47, 0.93)
    histogram = HistogramBinning(bins=15).fit(fitted.probs, fitted.labels)
    width, sweep = top_label_percent(histogram.predict_proba(probs), resnet["test_labels"])
    assert abs(width - 0.84) < 0.1
    assert abs(sweep - 0.67) < 0.1


@needs_resnet
def test_richer_maps_fit_better_and_evaluation_prefers_them(resnet: dict[str, NDArray[np.float32]]) -> None:
    logits, labels = resnet["val_logits"], resnet["val_labels"]

    def loss(maker: type[TemperatureScaling]) -> float:
        probs = maker().fit(logits, labels).predict_proba(logits)
        return float(-np.log(probs[np.arange(len(labels)), labels]).mean())

    assert loss(VectorScaling) < loss(BiasCorrectedTemperature) < loss(TemperatureScaling)
    preds = tc.Predictions.from_logits(logits, labels)
    makers = {"temperature": TemperatureScaling(), "vector": VectorScaling(), "isotonic": IsotonicCalibration()}
    result = evaluate(makers, preds, logits=logits)
    assert result.winner in ("temperature", "vector")
    assert "uncalibrated" not in result.tied
    assert result["temperature"].log_loss_change.high < -0.03


@needs_vgg
def test_a_recalibrated_model_can_be_promised(vgg: tc.Predictions) -> None:
    from truecal.inference import verify
    from truecal.recalibration import ScalingBinning

    half = vgg.take(np.arange(5000))
    fixed = ScalingBinning(bins=10, scaling=BetaCalibration(), multiclass="top-label").fit(half.probs, half.labels)
    after = fixed.recalibrate(vgg.take(np.arange(5000, 10_000)))
    result = verify(after, 0.03)
    assert result.outputs == 10
    assert result.verdict == "promised"
