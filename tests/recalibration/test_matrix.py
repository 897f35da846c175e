"""Matrix, structured and Dirichlet maps, and the ensemble temperature, against plain optimisers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy.optimize import approx_fprime, minimize
from scipy.special import log_softmax, softmax

from tests.real_data import how_to_get, real_data
from truecal.errors import InputError, TruecalWarning
from truecal.recalibration import (
    DirichletCalibration,
    EnsembleTemperature,
    MatrixScaling,
    StructuredMatrixScaling,
    TemperatureScaling,
)
from truecal.recalibration.likelihood import LabelledLogits
from truecal.recalibration.solvers import (
    MatrixProblem,
    Penalty,
    SmoothLogs,
    fit_matrix,
    fit_squared_weights,
)

Array = NDArray[np.float64]
RESNET = real_data("resnet110_cifar10_logits.npz")


def draw(n: int = 400, classes: int = 3, seed: int = 0) -> tuple[Array, NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    logits = 3 * rng.normal(size=(n, classes))
    mixed = logits @ (0.5 * np.eye(classes) + 0.1 * rng.normal(size=(classes, classes))).T
    return logits, (mixed + rng.gumbel(size=mixed.shape)).argmax(axis=1)


def loss(probs: Array, labels: NDArray[np.int64]) -> float:
    return float(-np.log(probs[np.arange(len(labels)), labels]).mean())


@pytest.mark.parametrize("off_diagonal", [0.7, None])
def test_the_gradient_is_the_derivative_of_the_loss(off_diagonal: float | None) -> None:
    logits, labels = draw(40)
    data = LabelledLogits.of(logits, labels, np.random.default_rng(1).random(40))
    smooth = SmoothLogs(0.6, 0.01, 3.0)
    problem = MatrixProblem.of(data, smooth, Penalty(1.0, off_diagonal, 2.0))
    theta = np.random.default_rng(2).normal(size=problem.strengths.size)
    numeric = approx_fprime(theta, lambda t: problem.loss(t)[0], 1e-7)
    assert_allclose(problem.loss(theta)[1], numeric, atol=1e-5)


@pytest.mark.parametrize("off_diagonal", [0.3, None])
def test_matrix_fit_has_a_gradient_of_zero(off_diagonal: float | None) -> None:
    # The loss alone is flat to rounding while predictions still move by 1e-8.
    logits, labels = draw(700, 6)
    data, smooth = LabelledLogits.of(logits, labels, None), SmoothLogs(0.6, 1 / 701, np.inf)
    penalty = Penalty(0.09, off_diagonal, 0.3)
    change, bias = fit_matrix(data, smooth, penalty)
    problem = MatrixProblem.of(data, smooth, penalty)
    theta = (np.column_stack([change, bias]) / problem.scale).ravel()
    assert np.abs(problem.loss(theta)[1]).max() < 5e-9


def test_structured_matrix_scaling_is_the_optimum_of_its_objective() -> None:
    logits, labels = draw()
    fitted = StructuredMatrixScaling().fit(logits, labels)
    n, k = logits.shape
    e = 1 / (n + 1)
    x = np.log((1 - e) * softmax(logits / fitted.temperature_, axis=1) + e / k)
    strength = np.full((k, k + 1), k * (k - 1) / n)
    strength[np.arange(k), np.arange(k)] = strength[:, -1] = k / n

    def objective(theta: Array) -> float:
        w = theta.reshape(k, k + 1)
        value = log_softmax(x + x @ w[:, :-1].T + w[:, -1], axis=1)
        return float(-value[np.arange(n), labels].mean() + (strength * w**2).sum())

    ours = np.column_stack([fitted.change_, fitted.bias_]).ravel()
    best = minimize(objective, np.zeros(k * (k + 1)), tol=1e-12)
    assert objective(ours) <= best.fun + 1e-9
    assert_allclose(ours, best.x, atol=1e-4)


def test_strong_penalties_leave_temperature_scaling() -> None:
    logits, labels = draw()
    stiff = StructuredMatrixScaling(diagonal=1e9, off_diagonal=1e9, intercept=1e9).fit(logits, labels)
    plain = TemperatureScaling().fit(logits, labels)
    assert_allclose(stiff.predict_proba(logits), plain.predict_proba(logits), atol=0.003)
    vector = StructuredMatrixScaling(off_diagonal=None).fit(logits, labels)
    assert vector.change_.shape == (3,)
    assert vector.parameter_count == 8


def test_dirichlet_and_matrix_scaling_are_one_family() -> None:
    logits, labels = draw()
    probs = softmax(logits, axis=1)
    by_matrix = MatrixScaling().fit(logits, labels).predict_proba(logits)
    assert_allclose(DirichletCalibration().fit(probs, labels).predict_proba(probs), by_matrix, atol=1e-6)
    free = MatrixScaling(off_diagonal=0.0, intercept=0.0).fit(logits, labels)
    assert loss(free.predict_proba(logits), labels) < loss(by_matrix, labels)
    with pytest.raises(InputError, match=r"off_diagonal must be a number from 0 to 1e[+]100, not -1"):
        MatrixScaling(off_diagonal=-1).fit(logits, labels)


def test_an_impossible_row_and_a_class_never_seen_are_taken() -> None:
    logits, labels = draw()
    probs = softmax(logits, axis=1)
    probs[0] = np.roll(np.eye(3)[labels[0]], 1)
    selected = labels != 2
    for maker in (StructuredMatrixScaling, MatrixScaling, DirichletCalibration, EnsembleTemperature):
        fixed = maker(input="probs").fit(probs, labels).predict_proba(probs)
        assert np.isfinite(np.log(fixed[np.arange(400), labels])).all()
        rare = maker(input="probs").fit(probs[selected], labels[selected]).predict_proba(probs)
        assert np.isfinite(rare).all()


def test_the_floor_of_impossible_rows_is_where_the_likelihood_is_largest() -> None:
    logits, labels = draw(300)
    probs = softmax(logits, axis=1)
    probs[:40] = np.eye(3)[(labels[:40] + (np.arange(40) % 4 == 0)) % 3]
    fitted = StructuredMatrixScaling(input="probs").fit(probs, labels)
    with np.errstate(divide="ignore"):
        below = np.log(probs / probs.max(axis=1, keepdims=True))

    def naive(floor: float, temperature: float) -> float:
        return -log_softmax(np.maximum(below, -floor) / temperature, axis=1)[np.arange(300), labels].sum()

    best = naive(fitted.floor_, fitted.temperature_)
    for floor in np.geomspace(0.1, 50, 40):
        for temperature in np.geomspace(0.2, 20, 40):
            assert best <= naive(floor, temperature) + 1e-6
    again = StructuredMatrixScaling.from_json(fitted.to_json())
    assert (again.predict_proba(probs) == fitted.predict_proba(probs)).all()
    torch = pytest.importorskip("torch")
    assert_allclose(fitted.to_torch()(torch.as_tensor(probs)).numpy(), fitted.predict_proba(probs), atol=1e-12)


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0])
def test_squared_weights_are_the_optimum(scale: float) -> None:
    """No step from the shares along an edge of the simplex makes the squared error smaller."""
    logits, labels = draw(300)
    low = np.array([0.0, 0.0, 0.01])
    w = np.random.default_rng(0).random(300)
    parts = [softmax(b * scale * logits, axis=1) for b in (0.5, 1.0, 0.0)]

    def error(shares: np.ndarray) -> float:
        mixed = sum(share * part for share, part in zip(shares, parts, strict=True))
        return float(w @ ((mixed - np.eye(3)[labels]) ** 2).sum(axis=1))

    ours = fit_squared_weights(LabelledLogits.of(scale * logits, labels, w), (0.5, 1.0), low)
    assert_allclose(ours.sum(), 1)
    assert (ours >= low).all()
    for giver, taker in ((0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)):
        shifted = ours.copy()
        amount = min(1e-3, ours[giver] - low[giver])
        shifted[giver] -= amount
        shifted[taker] += amount
        assert error(ours) <= error(shifted) + 1e-12


def test_the_temperature_of_an_ensemble_has_the_least_squared_error() -> None:
    logits, labels = draw(300)
    fitted = EnsembleTemperature().fit(logits, labels)

    def error(temperature: float) -> float:
        return float(((softmax(logits / temperature, axis=1) - np.eye(3)[labels]) ** 2).sum())

    assert all(error(fitted.temperature_) <= error(t) + 1e-9 for t in np.geomspace(0.05, 50, 200))


def test_ensemble_temperature_stays_near_the_likelihoods_where_every_label_leads() -> None:
    logits, _ = draw(60)
    labels = logits.argmax(axis=1)  # squared errors alone ask for T = 0
    with pytest.warns(TruecalWarning, match="largest logit"):
        likely = TemperatureScaling().fit(logits, labels).temperature_
    assert_allclose(EnsembleTemperature().fit(logits, labels).temperature_, likely * np.exp(-1.5), rtol=1e-4)


def test_ensemble_temperature_keeps_the_predicted_class() -> None:
    logits, labels = draw(800, 5)
    fitted = EnsembleTemperature().fit(logits, labels)
    assert (fitted.predict(logits) == logits.argmax(axis=1)).all()
    plain = TemperatureScaling().fit(logits, labels)
    assert loss(fitted.predict_proba(logits), labels) <= loss(plain.predict_proba(logits), labels) + 2e-3


@pytest.mark.skipif(not RESNET.exists(), reason=how_to_get(RESNET.name))
def test_resnet110_as_good_as_the_reference_implementation() -> None:
    with np.load(RESNET) as arrays:
        fitted = StructuredMatrixScaling().fit(arrays["val_logits"], arrays["val_labels"])
        assert loss(fitted.predict_proba(arrays["test_logits"]), arrays["test_labels"]) <= 0.20312 + 1e-4
