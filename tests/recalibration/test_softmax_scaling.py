"""Bias-corrected temperature and vector scaling against a plain optimiser; their torch modules."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy.optimize import approx_fprime, minimize
from scipy.special import log_softmax

from truecal.errors import InputError, MissingExtraError, TruecalWarning
from truecal.recalibration import BiasCorrectedTemperature, TemperatureScaling, VectorScaling
from truecal.recalibration.likelihood import LabelledLogits, affine_loss


def draw(n: int = 1500, classes: int = 4, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    logits = 3 * rng.normal(size=(n, classes))
    true = logits * np.linspace(0.3, 0.9, classes) + np.linspace(-0.5, 0.5, classes)
    return logits, (true + rng.gumbel(size=true.shape)).argmax(axis=1)


def loss(values: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    return float(-log_softmax(values, axis=1)[np.arange(len(labels)), labels].mean())


def test_the_gradient_is_the_derivative_of_the_loss() -> None:
    logits, labels = draw(50)
    weights = np.random.default_rng(1).random(50)
    for data in (LabelledLogits.of(logits, labels, weights), LabelledLogits.of(logits, labels, None)):
        theta = np.random.default_rng(2).normal(size=8)

        def value(x: NDArray[np.float64], data: LabelledLogits = data) -> float:
            return affine_loss(data, x[:4], x[4:])[0]

        _, by_scale, by_bias, _ = affine_loss(data, theta[:4], theta[4:])
        assert_allclose(np.concatenate([by_scale, by_bias]), approx_fprime(theta, value, 1e-7), atol=1e-5)


def test_vector_scaling_reaches_the_optimum() -> None:
    logits, labels = draw()
    naive = minimize(lambda x: loss(logits * x[:4] + x[4:], labels), np.r_[np.ones(4), np.zeros(4)], method="BFGS")
    fixed = VectorScaling().fit(logits, labels)
    assert loss(logits * fixed.scale_ + fixed.bias_, labels) <= naive.fun + 1e-9
    assert_allclose(fixed.scale_, naive.x[:4], atol=1e-3)
    assert_allclose(fixed.bias_, naive.x[4:] - naive.x[4:].mean(), atol=1e-3)


def test_bias_corrected_temperature_reaches_the_optimum() -> None:
    logits, labels = draw()
    naive = minimize(lambda x: loss(logits * x[0] + x[1:], labels), np.r_[1.0, np.zeros(4)], method="BFGS")
    fixed = BiasCorrectedTemperature().fit(logits, labels)
    assert loss(logits / fixed.temperature_ + fixed.bias_, labels) <= naive.fun + 1e-9
    assert_allclose(1 / fixed.temperature_, naive.x[0], atol=1e-4)
    assert_allclose(fixed.bias_, naive.x[1:] - naive.x[1:].mean(), atol=1e-3)


@pytest.mark.parametrize(("rows", "pull"), [(60, 0.7 * 3 / 60), (3000, 1e-3)])
def test_few_rows_are_held_more_firmly_to_the_best_temperature(rows: int, pull: float) -> None:
    logits, labels = draw(rows, 3)
    inverse = 1 / TemperatureScaling().fit(logits, labels).temperature_

    def penalised(x: NDArray[np.float64]) -> float:
        apart = np.r_[x[:3] - 1, x[3:]]
        return loss(logits * x[:3] * inverse + x[3:], labels) + pull * 3 / rows * float(apart @ apart)

    naive = minimize(penalised, np.r_[np.ones(3), np.zeros(3)], method="BFGS").x
    fixed = VectorScaling().fit(logits, labels)
    assert_allclose(fixed.scale_, naive[:3] * inverse, atol=1e-4)
    assert_allclose(fixed.bias_, naive[3:] - naive[3:].mean(), atol=1e-4)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("maker", [VectorScaling, BiasCorrectedTemperature])
def test_the_size_of_the_logits_does_not_matter(maker: type[VectorScaling], size: float) -> None:
    logits, labels = draw()
    plain = maker().fit(logits, labels).predict_proba(logits)
    assert_allclose(maker().fit(logits * size, labels).predict_proba(logits * size), plain, atol=2e-5)


@pytest.mark.parametrize("maker", [VectorScaling, BiasCorrectedTemperature])
def test_without_a_finite_optimum_a_penalty_decides(maker: type[VectorScaling]) -> None:
    logits, labels = draw(200, 3)
    with pytest.warns(TruecalWarning, match=r"class .*2.* never occurs in y, so .* no finite optimum"):
        fixed = maker().fit(logits[labels < 2], labels[labels < 2])
    rare = fixed.predict_proba(logits)[:, 2]
    assert 0 < rare.mean() < 0.05
    with pytest.warns(TruecalWarning, match=r"separated perfectly, so .* no finite optimum"):
        fixed = maker().fit(logits, logits.argmax(axis=1))
    mean = np.log(fixed.predict_proba(logits)[np.arange(200), logits.argmax(axis=1)]).mean()
    assert -0.2 < mean < 0
    shifted = (logits + np.array([5.0, 0.0, 0.0])).argmax(axis=1)  # separable only with a bias
    with pytest.warns(TruecalWarning, match="separated perfectly"):
        maker().fit(logits, shifted)


@pytest.mark.parametrize("maker", [VectorScaling, BiasCorrectedTemperature])
def test_one_class_that_can_be_told_from_all_others_does_not_run_away(maker: type[VectorScaling]) -> None:
    # the likelihood has no optimum here either, though not every label can be put first
    logits, labels = draw(60, 3)
    logits[:, 0] = np.where(labels == 0, 2.0, -2.0)
    fixed = maker().fit(logits, labels)
    scale, bias = fixed._scale_and_bias()
    assert np.abs(np.concatenate([np.atleast_1d(scale), bias])).max() < 12
    fresh, truth = logits.copy(), labels.copy()
    truth[0] = (truth[0] + 1) % 3  # a surprise costs something, not everything
    assert loss(fresh * scale + bias, truth) < 2


def test_a_class_ruled_out_stays_so() -> None:
    logits, labels = draw(400, 3)
    padded = np.column_stack([logits, np.where(np.arange(400) % 2 == 0, -np.inf, -3.0)])
    labels[1::40] = 3
    for maker in (VectorScaling, BiasCorrectedTemperature):
        probs = maker().fit(padded, labels).predict_proba(padded)
        assert (probs[::2, 3] == 0).all()
        assert (probs[1::2, 3] > 0).all()
    with pytest.raises(InputError, match=r"row 0 gives its true class .*3.* probability of exactly 0"):
        VectorScaling().fit(padded, np.r_[3, labels[1:]])


@pytest.mark.parametrize("kind", ["logits", "probs"])
@pytest.mark.parametrize("maker", [TemperatureScaling, BiasCorrectedTemperature, VectorScaling])
def test_a_class_that_was_never_voted_for_can_be_read_as_improbable(maker: type[TemperatureScaling], kind: str) -> None:
    """Rows whose true class was ruled out are taken; the map is the plain one on logits cut at the floor, wherever it is served."""
    torch = pytest.importorskip("torch")
    logits, labels = draw(600, 3)
    logits[:60] = np.where(np.eye(3)[labels[:60]] > 0, 0.0, -np.inf)
    labels[:6] = (labels[:6] + 1) % 3
    X = logits if kind == "logits" else np.exp(log_softmax(logits, axis=1))
    fixed = maker(input=kind, zeros="floor").fit(X, labels)
    z = X if kind == "logits" else np.log(np.maximum(X, 1e-300))
    cut = np.maximum(z, z.max(axis=1, keepdims=True) - fixed.floor_)
    plain = maker().fit(cut, labels)
    assert_allclose(fixed.predict_proba(X), plain.predict_proba(cut), atol=1e-9)
    assert (fixed.predict_proba(X)[np.arange(600), labels] > 0).all()
    assert_allclose(fixed.to_torch()(torch.as_tensor(X)).numpy(), fixed.predict_proba(X), atol=1e-12)
    assert (maker.from_json(fixed.to_json()).predict_proba(X) == fixed.predict_proba(X)).all()
    shifted = maker(zeros="floor").fit(logits, labels)
    if maker is not VectorScaling:
        assert_allclose(
            shifted.predict_proba(logits), maker(zeros="floor").fit(logits + 3, labels).predict_proba(logits + 3)
        )


def test_vector_scaling_of_binary_logits_is_a_logistic_curve() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=2000)
    y = (rng.random(2000) < 1 / (1 + np.exp(-(0.5 * z + 1)))).astype(int)
    naive = minimize(lambda x: loss(np.column_stack([np.zeros(2000), x[0] * z + x[1]]), y), [1.0, 0.0], method="BFGS")
    fixed = VectorScaling().fit(z, y).predict_proba(z)[:, 1]
    assert_allclose(fixed, 1 / (1 + np.exp(-(naive.x[0] * z + naive.x[1]))), atol=1e-5)


@pytest.mark.parametrize("kind", ["logits", "probs"])
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("maker", [TemperatureScaling, BiasCorrectedTemperature, VectorScaling])
def test_the_torch_module_gives_the_same_probabilities(
    maker: type[TemperatureScaling], kind: str, binary: bool
) -> None:
    torch = pytest.importorskip("torch")
    logits, labels = draw(500, 2 if binary else 4)
    X = logits if kind == "logits" else np.exp(log_softmax(logits, axis=1))
    if binary:
        X = X[:, 1] - X[:, 0] if kind == "logits" else X[:, 1]
    fixed = maker(input=kind).fit(X, labels)
    module = fixed.to_torch()
    assert isinstance(module, torch.nn.Module)
    with torch.no_grad():
        assert_allclose(module(torch.as_tensor(X)).numpy(), fixed.predict_proba(X), atol=1e-12)
        single = module(torch.as_tensor(X, dtype=torch.float32))
    assert single.dtype == torch.float32
    assert_allclose(single.numpy(), fixed.predict_proba(X), atol=1e-4)
    assert not list(module.parameters())
    again = maker(input=kind).fit(X, labels).to_torch()
    again.load_state_dict(module.state_dict())


def test_the_torch_module_keeps_zeros() -> None:
    torch = pytest.importorskip("torch")
    X = np.array([[0.8, 0.2, 0.0], [0.3, 0.3, 0.4], [0.1, 0.6, 0.3], [0.5, 0.4, 0.1]])
    fixed = TemperatureScaling(input="probs").fit(X, [0, 1, 1, 0])
    assert_allclose(fixed.to_torch()(torch.as_tensor(X)).numpy(), fixed.predict_proba(X), atol=1e-12)


def test_without_torch_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    logits, labels = draw(100)
    fixed = TemperatureScaling().fit(logits, labels)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match="torch"):
        fixed.to_torch()
