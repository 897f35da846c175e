"""Served maps give what `predict_proba` gives: through onnxruntime, in torch, scripted, also for saturated outputs."""

import sys
from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy.special import softmax

import truecal.recalibration
from truecal.errors import InputError, MissingExtraError, TruecalWarning
from truecal.recalibration import (
    BetaCalibration,
    BiasCorrectedTemperature,
    CenteredIsotonic,
    DirichletCalibration,
    EnsembleTemperature,
    HistogramBinning,
    IsotonicCalibration,
    MatrixScaling,
    PlattScaling,
    PriorShift,
    Recalibrator,
    ScalingBinning,
    SegmentOffsets,
    SharedBinning,
    SplineCalibration,
    StructuredMatrixScaling,
    TemperatureScaling,
    TopVersusAll,
    VectorScaling,
    VennAbers,
)
from truecal.recalibration.export import Graph

Array = NDArray[np.float64]
MAKERS: dict[str, Callable[[str], Recalibrator]] = {
    "temperature": lambda kind: TemperatureScaling(input=kind),
    "bias-corrected": lambda kind: BiasCorrectedTemperature(input=kind),
    "vector": lambda kind: VectorScaling(input=kind),
    "structured matrix": lambda kind: StructuredMatrixScaling(input=kind),
    "structured vector": lambda kind: StructuredMatrixScaling(off_diagonal=None, input=kind),
    "matrix": lambda kind: MatrixScaling(input=kind),
    "dirichlet": lambda kind: DirichletCalibration(input=kind),
    "ensemble": lambda kind: EnsembleTemperature(input=kind),
    "platt": lambda kind: PlattScaling(input=kind),
    "beta": lambda kind: BetaCalibration(input=kind),
    "beta, clipped": lambda kind: BetaCalibration(input=kind, clip=1e-3),
    "beta, top label": lambda kind: BetaCalibration(input=kind, multiclass="top-label"),
    "isotonic": lambda kind: IsotonicCalibration(input=kind, normalize=False),
    "isotonic, shared": lambda kind: IsotonicCalibration(input=kind, multiclass="shared"),
    "centred": lambda kind: CenteredIsotonic(input=kind),
    "spline": lambda kind: SplineCalibration(input=kind),
    "venn-abers": lambda kind: VennAbers(input=kind),
    "histogram": lambda kind: HistogramBinning(input=kind),
    "guaranteed": lambda kind: HistogramBinning(input=kind, scheme="guaranteed"),
    "scaling-binning": lambda kind: ScalingBinning(input=kind),
    "shared binning": lambda kind: SharedBinning(input=kind),
    "top-versus-all": lambda kind: TopVersusAll(input=kind),
    "top label": lambda kind: VennAbers(input=kind, multiclass="top-label"),
    "prior shift": lambda kind: PriorShift(BetaCalibration(input=kind), input=kind, prevalence=[0.3, 0.3, 0.4]),
}


def draw(kind: str, classes: int = 3, n: int = 300) -> tuple[Array, NDArray[np.int64], Array]:
    """Outputs to fit on, labels, and outputs to serve: the same, and saturated ones."""
    rng = np.random.default_rng(0)
    logits = 3 * rng.normal(size=(n, classes))
    labels = (0.5 * logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    corners = np.eye(classes)[rng.integers(0, classes, 10)]
    if kind == "logits":
        ruled_out = np.where(corners > 0, -np.inf, 1.0)
        return logits, labels, np.concatenate([logits, 1e4 * rng.normal(size=(10, classes)), ruled_out])
    probs = softmax(logits, axis=1)
    return probs, labels, np.concatenate([probs, corners])


def served(fitted: Recalibrator, X: Array, dtype: str) -> Array:
    onnxruntime = pytest.importorskip("onnxruntime")
    model = fitted.to_onnx(dtype=dtype)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(["probabilities"], {fitted.input: X.astype(dtype).reshape(len(X), -1)})[0]


def test_no_map_is_missing_from_the_table() -> None:
    public = {getattr(truecal.recalibration, name) for name in truecal.recalibration.__all__}
    public = {kind for kind in public if isinstance(kind, type) and issubclass(kind, Recalibrator)}
    assert {type(maker("probs")) for maker in MAKERS.values()} == public - {
        Recalibrator,
        SegmentOffsets,
    }  # which needs columns


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:The TorchScript type system:UserWarning")  # of scripting any traced module
@pytest.mark.parametrize("kind", ["logits", "probs"])
@pytest.mark.parametrize("name", MAKERS)
def test_onnx_and_torch_give_predict_proba(name: str, kind: str) -> None:
    torch = pytest.importorskip("torch")
    X, labels, wild = draw(kind)
    fitted = MAKERS[name](kind).fit(X, labels)
    for dtype in ("float64", "float32"):
        single = wild.astype(dtype)
        expected = fitted.predict_proba(single)
        assert_allclose(served(fitted, wild, dtype), expected, atol=1e-6)
        module = fitted.to_torch()
        for served_by in (module, torch.jit.script(module)):
            answer = served_by(torch.as_tensor(single))
            assert str(answer.dtype) == f"torch.{dtype}"
            assert_allclose(answer.numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["logits", "probs"])
@pytest.mark.parametrize("name", ["temperature", "platt", "beta", "venn-abers", "structured matrix", "spline"])
def test_one_column(name: str, kind: str) -> None:
    torch = pytest.importorskip("torch")
    X, labels, _ = draw(kind, 2)
    one = X[:, 1] - X[:, 0] if kind == "logits" else X[:, 1]
    fitted = MAKERS[name](kind).fit(one, labels)
    assert_allclose(served(fitted, one, "float64"), fitted.predict_proba(one), atol=1e-9)
    assert_allclose(fitted.to_torch()(torch.as_tensor(one)).numpy(), fitted.predict_proba(one), atol=1e-9)


def test_classes_in_another_order_are_served_in_the_order_of_predict_proba() -> None:
    X, labels, _ = draw("logits")
    names = np.array(["fox", "cat", "dog"])
    fitted = VectorScaling(classes=names.tolist()).fit(X, names[labels])
    model = fitted.to_onnx(dtype="float64")
    assert_allclose(served(fitted, X, "float64"), fitted.predict_proba(X), atol=1e-12)
    assert {p.key: p.value for p in model.metadata_props}["classes"] == "['cat', 'dog', 'fox']"


def test_tracer_records_numpy_operations_and_refuses_others() -> None:
    graph = Graph()
    np.log(graph.input() + 1.0)
    assert [type(entry).__name__ for entry in graph.entries] == ["NoneType", "ndarray", "Node", "Node"]
    with pytest.raises(NotImplementedError, match="arctan cannot be exported"):
        np.arctan(graph.input())


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    X, labels, _ = draw("logits")
    fitted = TemperatureScaling().fit(X, labels)
    with pytest.raises(InputError, match="dtype must be 'float32' or 'float64', not 'int8'"):
        fitted.to_onnx(dtype="int8")
    with pytest.raises(ValueError, match="not fitted yet"):
        TemperatureScaling().to_onnx()
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match="onnx"):
        fitted.to_onnx()


def test_half_precision_and_gradients() -> None:
    torch = pytest.importorskip("torch")
    X, labels, _ = draw("logits")
    tensor = torch.tensor(X, requires_grad=True)
    fitted = TemperatureScaling().fit(tensor, labels)
    assert fitted.temperature_ == TemperatureScaling().fit(X, labels).temperature_
    module = fitted.to_torch()
    module(tensor)[:, 0].sum().backward()
    assert bool(tensor.grad.abs().sum() > 0)
    half = torch.as_tensor(X, dtype=torch.bfloat16)
    assert_allclose(fitted.predict_proba(half), fitted.predict_proba(half.float().numpy()))
    assert module(half).dtype == torch.bfloat16
    with pytest.warns(TruecalWarning, match="as probabilities do"):
        TemperatureScaling().fit(torch.softmax(tensor, 1), labels)
