"""Temperature scaling against a naive search, and on data where other solvers fail."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

import truecal as tc
from truecal.errors import InputError, TruecalWarning
from truecal.recalibration import TemperatureScaling, likelihood


def draw(
    n: int, classes: int, temperature: float, seed: int = 0, sharpness: float = 3.0
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Logits that are right once divided by `temperature`."""
    rng = np.random.default_rng(seed)
    true = sharpness * rng.normal(size=(n, classes))
    gumbel = rng.gumbel(size=true.shape)
    return true * temperature, (true + gumbel).argmax(axis=1)


def loss(logits: NDArray[np.float64], labels: NDArray[np.int64], temperature: float) -> float:
    return float(-log_softmax(logits / temperature, axis=1)[np.arange(len(labels)), labels].mean())


@given(st.integers(0, 10_000), st.floats(-3, 3), st.integers(2, 6), st.integers(20, 200))
@settings(max_examples=60, deadline=None)
def test_finds_the_minimum_of_the_log_loss(seed: int, exponent: float, classes: int, n: int) -> None:
    logits, labels = draw(n, classes, 10**exponent, seed, sharpness=1.0)
    if (logits.argmax(axis=1) == labels).all() or len(np.unique(labels)) < 2:
        return

    def naive(log_t: float) -> float:
        return loss(logits, labels, np.exp(log_t))

    centre = exponent * np.log(10)
    best = minimize_scalar(naive, bounds=(centre - 7, centre + 7), method="bounded", options={"xatol": 1e-10})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruecalWarning)  # uninformative draws: compared by their loss all the same
        fitted = TemperatureScaling().fit(logits, labels).temperature_
    assert loss(logits, labels, fitted) <= best.fun + 1e-6


@pytest.mark.parametrize("temperature", [1.1e-3, 0.02, 0.5, 1.0, 2.0, 40.0, 900.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_recovers_any_temperature(temperature: float, dtype: type) -> None:
    logits, labels = draw(20_000, 5, temperature)
    fitted = TemperatureScaling().fit(logits.astype(dtype), labels).temperature_
    assert_allclose(fitted, temperature, rtol=0.03)
    exact = TemperatureScaling().fit(logits.astype(dtype).astype(np.float64), labels).temperature_
    assert_allclose(fitted, exact, rtol=1e-5)


def test_float32_logits_of_size_ten_thousand() -> None:
    logits, labels = draw(5000, 10, 2500.0)
    assert np.abs(logits).max() > 1e4
    shifted = (logits + 3e4).astype(np.float32)
    fitted = TemperatureScaling().fit(shifted, labels).temperature_
    assert_allclose(fitted, TemperatureScaling().fit(shifted.astype(np.float64), labels).temperature_, rtol=1e-5)
    assert_allclose(fitted, 2500.0, rtol=0.05)


def test_separable_data_gets_laplaces_accuracy_as_mean_confidence_and_a_warning() -> None:
    logits = np.array([[3.0, 0, 0], [0, 2, 0], [0, 0, 4], [1, 0, 0]])
    labels = np.array([0, 1, 2, 0])
    with pytest.warns(TruecalWarning, match="no finite optimum .T goes to 0."):
        fixed = TemperatureScaling().fit(logits, labels)
    assert_allclose(fixed.predict_proba(logits).max(axis=1).mean(), 5 / 6, rtol=1e-8)
    with pytest.warns(TruecalWarning, match="no finite optimum"):
        weighted = TemperatureScaling().fit(logits, labels, np.array([1.0, 2.0, 1.0, 1.0]))
    assert_allclose(np.average(weighted.predict_proba(logits).max(axis=1), weights=[1, 2, 1, 1]), 6 / 7, rtol=1e-8)


def test_how_improbable_the_improbable_is_does_not_flatten_a_perfect_model() -> None:
    logits = np.array([[3.0, 0, -900], [0, 2, -800], [4, 0, -900], [1, 0, -700]])
    with pytest.warns(TruecalWarning, match="no finite optimum"):
        far = TemperatureScaling().fit(logits, [0, 1, 0, 0])
    with pytest.warns(TruecalWarning, match="no finite optimum"):
        near = TemperatureScaling().fit(np.maximum(logits, -30), [0, 1, 0, 0])
    assert_allclose(far.temperature_, near.temperature_, rtol=1e-6)


def test_a_label_that_ties_with_others_leads_and_the_rest_is_finite() -> None:
    with pytest.warns(TruecalWarning, match="no finite optimum"):
        fixed = TemperatureScaling().fit([[1.0, 1.0, 0.0], [0.0, 2.0, 0.0]], [0, 1])
    assert_allclose(fixed.predict_proba([[1.0, 1.0, 0.0], [0.0, 2.0, 0.0]])[[0, 1], [0, 1]].mean(), 0.75 * 3 / 4)


def test_zeros_read_as_very_improbable() -> None:
    """Of ten votes, ruled-out classes come true one time in twenty: the floor is where their probability is that."""
    rng = np.random.default_rng(0)
    votes = rng.multinomial(10, [0.9, 0.1], 4000) / 10
    sure = votes[:, 0] == 1
    labels = np.where(sure, rng.random(4000) < 0.05, rng.random(4000) < 0.4).astype(int)
    with pytest.raises(InputError, match="zeros="):
        TemperatureScaling(input="probs").fit(votes, labels)
    fixed = TemperatureScaling(input="probs", zeros="floor").fit(votes, labels)
    assert_allclose(fixed.predict_proba([[1.0, 0.0]])[0, 1], labels[sure].mean(), atol=0.01)
    again = TemperatureScaling.from_json(fixed.to_json())
    assert (again.predict_proba(votes) == fixed.predict_proba(votes)).all()
    # without a contradiction the floor is there for rows to come, and changes nothing that can be seen
    mask = ~((votes[:, 0] == 1) & (labels == 1)) & ~((votes[:, 1] == 1) & (labels == 0))
    plain = TemperatureScaling(input="probs").fit(votes[mask], labels[mask])
    floored = TemperatureScaling(input="probs", zeros="floor").fit(votes[mask], labels[mask])
    assert_allclose(floored.temperature_, plain.temperature_, rtol=1e-4)
    assert_allclose(floored.predict_proba(votes), plain.predict_proba(votes), atol=1e-4)
    assert floored.predict_proba([[1.0, 0.0]])[0, 1] > 0
    with pytest.raises(InputError, match="zeros must be"):
        TemperatureScaling(zeros="drop").fit(votes, labels)


def test_uninformative_and_constant_logits_say_so() -> None:
    logits = np.array([[3.0, 0.0], [0.0, 3.0], [3.0, 0.0]])
    with pytest.warns(TruecalWarning, match="T goes to infinity"):
        fixed = TemperatureScaling().fit(logits, [1, 0, 1])
    assert fixed.temperature_ == 3000.0
    assert_allclose(fixed.predict_proba(logits), 0.5, atol=5e-4)
    with pytest.warns(TruecalWarning, match="T was set to 1$"):
        TemperatureScaling().fit(np.ones((4, 3)), [0, 1, 2, 0])


def test_probabilities_of_zero_stay_zero_and_take_no_part() -> None:
    logits, labels = draw(300, 3, 2.0)
    probs = np.exp(log_softmax(logits, axis=1))
    padded = np.column_stack([probs, np.zeros(len(probs))])
    plain = TemperatureScaling(input="probs").fit(probs, labels)
    fixed = TemperatureScaling(input="probs").fit(padded, labels)
    assert_allclose(fixed.temperature_, plain.temperature_, rtol=1e-9)
    assert_allclose(fixed.predict_proba(padded)[:, :3], plain.predict_proba(probs), rtol=1e-9)
    assert (fixed.predict_proba(padded)[:, 3] == 0).all()
    ruled_out = np.column_stack([logits, np.full(len(logits), -np.inf)])
    assert_allclose(TemperatureScaling().fit(ruled_out, labels).temperature_, plain.temperature_, rtol=1e-9)
    labels[7] = 3
    with pytest.raises(InputError, match=r"row 7 gives its true class .*3.* a probability of exactly 0"):
        TemperatureScaling(input="probs").fit(padded, labels)


def test_separable_with_zeros_still_finite() -> None:
    probs = np.array([[0.7, 0.3, 0.0], [0.2, 0.8, 0.0], [0.6, 0.4, 0.0]])
    with pytest.warns(TruecalWarning, match="no finite optimum"):
        fixed = TemperatureScaling(input="probs").fit(probs, [0, 1, 0])
    assert 0 < fixed.temperature_ < 1


def test_logits_and_their_probabilities_agree() -> None:
    logits, labels = draw(1000, 4, 1.5)
    from_logits = TemperatureScaling().fit(logits, labels)
    probs = np.exp(log_softmax(logits, axis=1))
    from_probs = TemperatureScaling(input="probs").fit(probs, labels)
    assert_allclose(from_logits.temperature_, from_probs.temperature_, rtol=1e-8)
    assert_allclose(from_logits.predict_proba(logits), from_probs.predict_proba(probs), rtol=1e-7)


@pytest.mark.parametrize("temperature", [0.3, 1.0, 5.0])
def test_agrees_with_scikit_learn(temperature: float) -> None:
    logits, labels = draw(3000, 6, temperature)
    newer = pytest.importorskip("sklearn.calibration")
    if not hasattr(newer, "_TemperatureScaling"):
        pytest.skip("this scikit-learn has no temperature scaling")
    theirs = newer._TemperatureScaling().fit(logits, labels.astype(float))
    ours = TemperatureScaling().fit(logits, labels)
    assert_allclose(1 / ours.temperature_, theirs.beta_, rtol=1e-4)
    assert_allclose(ours.predict_proba(logits), theirs.predict(logits), atol=1e-5)
    assert loss(logits, labels, ours.temperature_) <= loss(logits, labels, 1 / float(theirs.beta_)) + 1e-12


@given(st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_never_changes_the_predicted_class(seed: int) -> None:
    logits, labels = draw(60, 4, 3.0, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruecalWarning)
        fixed = TemperatureScaling().fit(logits, labels)
    assert (fixed.predict(logits) == logits.argmax(axis=1)).all()


def test_a_large_fit_reads_few_rows_more_than_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[int] = []
    terms = likelihood.temperature_terms

    def counted(data: likelihood.LabelledLogits, inverse: float, kind: type) -> tuple[float, float, float]:
        rows.append(len(data.labels))
        return terms(data, inverse, kind)

    monkeypatch.setattr(likelihood, "temperature_terms", counted)
    logits, labels = draw(40_000, 3, 2.0)
    TemperatureScaling().fit(logits, labels)
    assert rows.count(40_000) <= 3


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_the_optimum_is_found_to_ten_digits_whatever_the_precision_of_the_logits(precision: type) -> None:
    from scipy.optimize import brentq

    logits, labels = draw(5000, 4, 2.5)
    logits = logits.astype(precision)
    exact = logits.astype(np.float64)
    own_values = exact[np.arange(len(labels)), labels]

    def slope(inverse: float) -> float:
        mass = np.exp(inverse * (exact - exact.max(axis=1, keepdims=True)))
        return float(((mass * exact).sum(axis=1) / mass.sum(axis=1) - own_values).sum())

    expected = 1 / brentq(slope, 1e-2, 1e2, xtol=1e-15, rtol=1e-15)
    assert TemperatureScaling().fit(logits, labels).temperature_ == pytest.approx(expected, rel=1e-10)


def test_a_start_far_off_costs_five_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four in single precision and one in double."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2000, 300)).astype(np.float32)
    labels = rng.integers(0, 300, len(logits))
    logits[np.arange(len(logits)), labels] += 5
    readings = []
    terms = likelihood.temperature_terms
    monkeypatch.setattr(
        likelihood, "temperature_terms", lambda data, *how: readings.append(len(data.labels)) or terms(data, *how)
    )
    TemperatureScaling(input="logits").fit(logits, labels)
    assert readings.count(len(logits)) <= 5


@pytest.mark.parametrize("classes", [2, 4])
def test_predictions_from_logits_need_no_logits_again(classes: int) -> None:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, classes, 200)
    logits = 3 * rng.normal(size=(200, classes)) + 2 * np.eye(classes)[labels]
    fitted = TemperatureScaling(input="logits").fit(logits, labels)
    probs = fitted.recalibrate(tc.Predictions.from_logits(logits, labels)).probs
    expected = fitted.predict_proba(logits)
    assert_allclose(probs, expected[:, 1] if probs.ndim == 1 else expected, atol=1e-9)
