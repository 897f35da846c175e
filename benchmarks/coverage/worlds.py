"""The worlds of the atlas: one score in five groups, many classes in two, and a few distinct outputs in one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

import truecal as tc
from truecal.lab import GLM, PAPER_WORLDS, Beta, Discrete, Mixture, Power, Scores, Uniform, World

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Decades(Scores):
    """1 - c spread evenly over so many powers of ten: the scores of a model that is nearly always sure."""

    decades: float = 6.0

    def describe(self) -> str:
        return f"1 - c spread over {self.decades:g} powers of ten"

    def from_uniforms(self, u: Array) -> tuple[Array, Array]:
        rest = 10.0 ** (-self.decades * u[0])
        return 1.0 - rest, rest

    def expectation(self, integrand: Callable[[Array, Array], Array]) -> float:
        nodes, weights = _quadrature()
        rest = 10.0 ** (-self.decades * (nodes + 1) / 2)
        return float(np.dot(integrand(1.0 - rest, rest), weights) / 2)


@cache
def _quadrature() -> tuple[Array, Array]:
    """Nodes and weights of Gauss-Legendre quadrature on [-1, 1]."""
    return np.polynomial.legendre.leggauss(400)


_VERBAL = Discrete([0.5, 0.7, 0.8, 0.9, 0.95, 1.0], [0.05, 0.1, 0.2, 0.35, 0.2, 0.1])
_EXTREME = Discrete([0.001, 0.01, 0.5, 0.99, 0.999], [0.3, 0.2, 0.1, 0.2, 0.2])

OTHER_WORLDS: Mapping[str, World] = MappingProxyType(
    {
        "five tied scores": World(Discrete([0.1, 0.3, 0.5, 0.7, 0.9]), Power(1.3)),
        "verbal confidences": World(_VERBAL, lambda c: 0.6 * c + 0.2),
        "rare events": World(Beta(0.5, 20), lambda c: 0.6 * c),
        "underconfident": World(Uniform(), GLM("logit", "logit", 0.0, 2.0)),
        "mixture": World(Mixture((Beta(8, 2), Beta(2, 8)), (0.5, 0.5)), Power(1.3)),
        "kink": World(Uniform(), lambda c: np.where(c < 0.6, c, 0.6 + 0.6 * (c - 0.6))),
        "wave": World(Uniform(), lambda c: c + 0.07 * np.sin(4 * np.pi * c)),
        "small step": World(Uniform(0.1, 0.9), lambda c: c + np.where(c < 0.5, -0.05, 0.05)),
        "spike at one": World(Mixture((Uniform(), Discrete([1.0])), (0.7, 0.3)), lambda c: 0.92 * c),
        "not monotone": World(Uniform(), lambda c: 2 * c * (1 - c) + 0.25),
    }
)

HARD_WORLDS: Mapping[str, World] = MappingProxyType(
    {
        "jump of one half": World(Uniform(), lambda c: np.where(c < 0.5, 0.25, 0.75)),
        "jump of a fifth": World(Uniform(), lambda c: 0.8 * c + np.where(c < 0.7, 0.0, 0.2)),
        "staircase": World(Uniform(), lambda c: np.floor(5 * np.minimum(c, 0.999)) / 5 + 0.1),
        "eight waves": World(Uniform(0.1, 0.9), lambda c: c + 0.08 * np.sin(16 * np.pi * c)),
        "six decades": World(Decades(), GLM("logflip", "logflip", -0.3, 0.5)),
        "six decades, mild": World(Decades(), GLM("logflip", "logflip", -0.1, 0.8)),
        "six decades, misses": World(Decades(), lambda c: 0.97 * c),
        "extreme outputs": World(_EXTREME, lambda c: 0.96 * c + 0.02),
        "one output": World(Discrete([0.8]), lambda c: c - 0.05),
        "mostly certain": World(Mixture((Beta(2, 2), Discrete([0.0, 1.0])), (0.2, 0.8)), lambda c: 0.99 * c + 0.005),
    }
)


@cache
def atlas_worlds() -> dict[str, dict[str, World]]:
    """Worlds of one score: the papers' as they are, calibrated and nearly calibrated; ten others; ten hard ones."""
    return {
        "papers": dict(PAPER_WORLDS),
        "papers, recalibrated": {name: w.perfectly_recalibrated() for name, w in PAPER_WORLDS.items()},
        "papers, nearly calibrated": {name: w.partly_recalibrated(0.02) for name, w in PAPER_WORLDS.items()},
        "others": dict(OTHER_WORLDS),
        "hard": dict(HARD_WORLDS),
    }


@dataclass(frozen=True)
class ClassWorld:
    """K classes: outputs are the softmax of `spread` times normal logits, labels are drawn from outputs to the power `exponent`.

    exponent 1 is a calibrated model, below 1 an overconfident one. True rates of every row are known, so that any binned error is.
    """

    classes: int
    exponent: float = 1.0
    spread: float = 2.0

    def __post_init__(self) -> None:
        if self.classes < 2 or self.exponent <= 0 or self.spread <= 0:
            raise tc.InputError(f"a ClassWorld needs 2 classes or more, exponent > 0 and spread > 0, not {self!r}")

    def draw(self, n: int, rng: np.random.Generator) -> "tuple[Array, npt.NDArray[np.int64], Array]":
        """Outputs (n, K), labels (n,) and the true rates (n, K)."""
        logits = self.spread * rng.standard_normal((n, self.classes))
        outputs, rates = _softmax(logits), _softmax(self.exponent * logits)
        labels = (rng.random((n, 1)) > np.cumsum(rates, axis=1)).sum(axis=1)
        return outputs, np.minimum(labels, self.classes - 1), rates


def _softmax(logits: Array) -> Array:
    power = np.exp(logits - logits.max(axis=1, keepdims=True))
    return power / power.sum(axis=1, keepdims=True)


def class_worlds() -> dict[str, dict[str, ClassWorld]]:
    """Worlds of 2, 10, 50 and 100 classes, calibrated and overconfident."""
    numbers = (2, 10, 50, 100)
    return {
        "classes, calibrated": {f"{k} classes": ClassWorld(k) for k in numbers},
        "classes, tempered": {f"{k} classes": ClassWorld(k, exponent=0.5) for k in numbers},
    }


@dataclass(frozen=True)
class FewOutputs:
    """Outputs with their shares of the rows, and how far their true rates are off."""

    outputs: tuple[float, ...]
    shares: tuple[float, ...]
    off: tuple[float, ...]
    misses: tuple[float, ...] | None = None  # rows expected to be off besides, whatever the size of the dataset

    def at(self, n: int) -> tuple[Array, Array, Array]:
        """Outputs, shares and true rates for datasets of n rows."""
        s, shares, rates = np.array(self.outputs), np.array(self.shares), np.add(self.outputs, self.off)
        if self.misses is not None:
            rates = rates + np.array(self.misses) / (n * shares)
        return s, shares, rates


_RARE = ((0.2, 0.4, 0.6, 0.8, 0.95), (0.3, 0.25, 0.25, 0.1995, 0.0005))
_FIVE, _EVEN = (0.1, 0.3, 0.5, 0.7, 0.9), (0.2,) * 5
FEW_OUTPUTS: Mapping[str, FewOutputs] = MappingProxyType(
    {
        "spread": FewOutputs(_FIVE, _EVEN, (0.05, -0.05, 0.05, -0.05, 0.05)),
        "spread, one off": FewOutputs(_FIVE, (0.4, 0.3, 0.15, 0.1, 0.05), (0.0, 0.0, 0.0, 0.0, -0.2)),
        "confident": FewOutputs((0.5, 0.9, 0.99, 0.999, 0.9999), _EVEN, (-0.02,) * 5),
        "confident, last off": FewOutputs((0.5, 0.9, 0.99, 0.999, 0.9999), _EVEN, (0.0, 0.0, 0.0, 0.0, -0.01)),
        "rare output, off by 0.5": FewOutputs(*_RARE, (0.0, 0.0, 0.0, 0.0, -0.5)),
        "rare output, off by 0.9": FewOutputs(*_RARE, (0.0, 0.0, 0.0, 0.0, -0.9)),
        "all outputs 1, 1.5 misses": FewOutputs((1.0,), (1.0,), (0.0,), (-1.5,)),
        "hard 0 and 1, one miss": FewOutputs((0.0, 1.0), (0.5, 0.5), (0.0, 0.0), (0.5, -0.5)),
    }
)


def few_outputs() -> dict[str, dict[str, FewOutputs]]:
    """Worlds of one to five outputs: spread, near 1, rare, and certain ones."""
    return {"few outputs": dict(FEW_OUTPUTS)}
