"""Numbers that Roelofs et al. and Kumar et al. print, from the same models' outputs. Skipped where the data is absent."""

import numpy as np
import pytest
from numpy.typing import NDArray

import truecal as tc
from tests.real_data import how_to_get, real_data
from truecal.lab.papers.kumar import real as paper_kumar
from truecal.recalibrate import (
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
    return paper_kumar.load(VGG)


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
@pytest.mark.slow
def test_figure_3a_scaling_binning_beats_histogram_binning(vgg: tc.Predictions) -> None:
    table = paper_kumar.fig3a(vgg, bins=(10, 100), repeats=15)
    below = {(r["bins"], r["method"]): r["below_histogram"] for r in table}
    assert below[100, "scaling-binning"] > 0.2  # the paper: 0.35; over 100 repeats: 0.33
    assert abs(below[10, "scaling-binning"]) < 0.15


@needs_vgg
@pytest.mark.slow
def test_figure_3b_has_better_mean_squared_error_at_many_bins(vgg: tc.Predictions) -> None:
    first, second = paper_kumar.fig3b(vgg, bins=(100,), repeats=10)
    assert second["method"] == "scaling-binning"
    assert second["mse"] < first["mse"]
    assert second["squared_error"] < first["squared_error"]


@needs_vgg
def test_figure_2_binned_error_grows_with_bins(vgg: tc.Predictions) -> None:
    table = paper_kumar.fig2(vgg, bins=(2, 15, 100), repeats=200)
    for name in ("plugin", "debiased"):
        assert table[0][name] < table[1][name]
        assert table[0][f"{name}_high"] < table[2][f"{name}_low"]
    assert table[1]["plugin"] < table[2]["plugin"]
    for record in table:
        assert record["plugin_low"] < record["plugin_high"]


@needs_vgg
@pytest.mark.parametrize(("figure", "bins"), [(paper_kumar.fig4, (10, 100)), (paper_kumar.fig12, (15, 100))])
def test_figures_4_and_12_debiased_estimates_are_closer(
    figure: object, bins: tuple[int, int], vgg: tc.Predictions
) -> None:
    assert callable(figure)
    table = figure(vgg, bins=bins, sizes=(500,), repeats=200)
    deviation = {(r["bins"], r["estimator"]): (r["low"], r["high"]) for r in table}
    few, many = bins
    assert deviation[many, "debiased"][1] < deviation[many, "plugin"][0]
    assert deviation[few, "debiased"][0] < deviation[few, "plugin"][1]


@needs_vgg
def test_figure_17_debiasing_allows_more_bins(vgg: tc.Predictions) -> None:
    table = paper_kumar.fig17(vgg, bins=(10, 60, 90), repeats=50)
    for record in table:
        assert record["debiased_upper"] < record["plugin_upper"]
    (chosen,) = (r for r in table if r["recommended"])
    (by_plugin,) = (r for r in table if r["recommended_by_plugin"])
    assert chosen["bins"] > by_plugin["bins"]
    assert chosen["mean_squared_error"] < by_plugin["mean_squared_error"]


@needs_vgg
def test_one_command_each(vgg: tc.Predictions, capsys: pytest.CaptureFixture[str]) -> None:
    assert paper_kumar.main(["fig12", "--quick", "--data", str(VGG)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split() == ["bins", "n", "estimator", "mean_squared_deviation", "low", "high"]
    assert len(printed) == 21


def test_missing_data_is_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    assert paper_kumar.main(["fig3a", "--data", "nowhere.npz"]) == 2
    assert "nowhere.npz does not exist; pass --data" in capsys.readouterr().err


@needs_vgg
def test_a_recalibrated_model_can_be_promised(vgg: tc.Predictions) -> None:
    from truecal.recalibrate import ScalingBinning
    from truecal.uncertainty.verify.verify import verify

    half = vgg.take(np.arange(5000))
    fixed = ScalingBinning(bins=10, scaling=BetaCalibration(), multiclass="top-label").fit(half.probs, half.labels)
    after = fixed.recalibrate(vgg.take(np.arange(5000, 10_000)))
    result = verify(after, 0.03)
    assert result.outputs == 10
    assert result.verdict == "promised"
