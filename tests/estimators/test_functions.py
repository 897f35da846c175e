"""A plain function as an estimator: the same numbers as the estimator it computes, everywhere an estimator is taken."""

import numpy as np
import pytest

import truecal as tc
from truecal.errors import InputError
from truecal.estimators.base import FunctionEstimator, as_estimator
from truecal.study.metrics import measure_lens, parse_metric


def ten_bins(scores, outcomes):
    """The plug-in error of ten bins of equal width."""
    bin_of = np.minimum((scores * 10).astype(int), 9)
    return float(np.abs(np.bincount(bin_of, outcomes - scores, 10)).sum() / len(scores))


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    return (rng.random(400) < p**1.6).astype(int), p


def test_value_interval_and_test_agree_with_the_estimator(data):
    y, p = data
    by_function = tc.calibration_error(y, p, estimator=ten_bins)
    by_estimator = tc.calibration_error(y, p, estimator=tc.BinnedECE(bins=10))
    assert by_function.value == pytest.approx(by_estimator.value, abs=1e-12)
    assert by_function.metric == "ten_bins"
    assert by_function.value in by_function.interval
    assert by_function.interval.low == pytest.approx(by_estimator.interval.low, abs=0.03)
    assert by_function.interval.high == pytest.approx(by_estimator.interval.high, abs=0.03)
    assert by_function.p_value == by_estimator.p_value


def test_redraw_test_of_a_function_agrees_with_the_estimator(data):
    y, p = data
    profile = tc.profile.Profile.from_arrays(p, y)
    ours, theirs = (
        tc.inference.consistency_test(profile, estimator, resamples=199).p_value
        for estimator in (ten_bins, tc.BinnedECE(bins=10))
    )
    assert ours == pytest.approx(theirs, abs=0.03)


def test_p_values_of_a_function_are_uniform_under_calibration():
    """100 calibrated datasets of 100 rows."""
    rng = np.random.default_rng(1)
    c = rng.random((100, 100))
    p = (
        FunctionEstimator(ten_bins)
        .test(tc.profile.Profile.from_arrays(c, rng.random(c.shape) < c), resamples=99)
        .p_value
    )
    for level in (0.1, 0.5):
        assert abs((p <= level).mean() - level) < 3.5 * np.sqrt(level * (1 - level) / 100)


def test_two_models_are_compared_by_a_function(data):
    y, p = data
    ours, theirs = (
        tc.compare(y, p, p**1.6, estimator=estimator, resamples=200) for estimator in (ten_bins, tc.BinnedECE(bins=10))
    )
    assert ours.difference == pytest.approx(theirs.difference, abs=1e-12)
    assert ours.interval.low <= ours.difference <= ours.interval.high


def test_class_wise_error_by_a_function():
    rng = np.random.default_rng(2)
    probs = rng.dirichlet([1, 1, 1], 200)
    labels = rng.integers(0, 3, 200)
    ours, theirs = (
        tc.calibration_error(labels, probs, estimator=estimator, lens=tc.ClassWise())
        for estimator in (ten_bins, tc.BinnedECE(bins=10))
    )
    assert ours.value == pytest.approx(theirs.value, abs=1e-12)
    np.testing.assert_allclose(ours.parts, theirs.parts)


def test_bias_of_a_function_is_simulated():
    world = tc.lab.PAPER_WORLDS["resnet110_c10"]
    ours, theirs = (tc.lab.bias(estimator, world, n=200, m=20) for estimator in (ten_bins, tc.BinnedECE(bins=10)))
    np.testing.assert_allclose(ours.values, theirs.values, atol=1e-9)
    assert ours.estimator_name == "ten_bins"


def test_how_biased_takes_a_function(data):
    y, p = data
    answer = tc.lab.how_biased(tc.Predictions.from_probs(p, y), estimators={"mine": ten_bins}, m=20)
    assert [trial.estimator_name for trial in answer.trials] == ["mine"]


def test_a_study_imports_a_function_by_name(data):
    y, p = data
    metric = parse_metric(f"{__name__}:ten_bins")
    (preds,) = measure_lens(tc.Predictions.from_probs(p, y), tc.OneClass(), [metric], intervals="bootstrap")
    assert preds.value == pytest.approx(float(tc.calibration_error(y, p, estimator=tc.BinnedECE(bins=10))), abs=1e-12)
    assert preds.low <= preds.value <= preds.high
    with pytest.raises(InputError, match="cannot load"):
        parse_metric("no_such_module:error")


def test_weights_clusters_and_sketches_are_refused_by_name(data):
    y, p = data
    with pytest.raises(InputError, match=r"ten_bins .* takes no weights"):
        tc.calibration_error(y, p, estimator=ten_bins, sample_weight=np.full(400, 2))
    with pytest.raises(InputError, match=r"ten_bins .* takes no clusters"):
        tc.calibration_error(y, p, estimator=ten_bins, clusters=np.arange(400) // 4)
    with pytest.raises(InputError, match=r"ten_bins .* a sketch does not have"):
        tc.measure(tc.Sketch.from_arrays(p, y), estimator=ten_bins)


@pytest.mark.parametrize("value", [np.nan, -0.1, None, "0.1"])
def test_results_that_are_no_errors_are_refused(data, value):
    y, p = data
    with pytest.raises(InputError, match="finite number that is not negative"):
        tc.calibration_error(y, p, estimator=lambda scores, outcomes: value)


@pytest.mark.parametrize("wrong", [tc.BinnedECE, "ece", 3])
def test_what_is_no_estimator_is_refused(wrong):
    with pytest.raises(InputError):
        as_estimator(wrong)
