"""Ridge-penalised matrix scaling: softmax(x + D x + b) of smoothed, temperature-scaled log probabilities x.

    x_i = log((1 - e) softmax(max(z_i - max z_i, -c) / T) + e / K),   e = 1 / (n + 1)
    minimise  mean_i -log softmax(x_i + D x_i + b)[y_i]
              + (K / n) (diagonal |diag D|^2 + intercept |b|^2) + (K (K - 1) / n) off_diagonal |D off its diagonal|^2

D = 0, b = 0 is temperature scaling, so what the penalty shrinks to is a good map and not a bad one. The strengths grow
with the number of parameters of a kind and fall with the number of rows (Berta, Holzmüller, Jordan and Bach 2026); n is
the sum of weights. The mixture with e / K, the weight of one row among n + 1, keeps logarithms finite: a probability of
0 is read as e / K, and one impossible row costs log(K (n + 1)) and no more. The floor c is infinite unless some row's
true class has a probability of exactly 0; then T and c are fitted together (see `family.floored_temperature`).

The problem is convex. It is solved by L-BFGS in variables scaled by the expected curvature, in blocks of rows, so that
beside the logits only a few matrices of K x K are held.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truecal.recalibrate.solvers.lbfgs import minimise
from truecal.recalibrate.solvers.likelihood import LabelledLogits, floored_logits
from truecal.types import Float64s, Floats

_BLOCK_VALUES = 1 << 20  # logits of a block of rows; its working arrays take some 30 MB
_LARGE = 100_000  # from so many parameters on, matrix products are made in the precision of the logits

_WEAK = 1e-2  # strength on a diagonal that is meant to be free: the optimum stays finite for separable data


@dataclass(frozen=True)
class Penalty:
    """Strengths of the penalties on the three kinds of parameters; `off_diagonal` None leaves those at 0."""

    diagonal: float
    off_diagonal: float | None
    intercept: float


@dataclass(frozen=True)
class SmoothLogs:
    """x of z: the inverse temperature, the share e of the uniform distribution and the floor c."""

    inverse: float
    uniform: float
    floor: float

    def __call__(self, logits: Floats, kind: type[np.floating] = np.float64) -> Floats:
        """By rows, in the precision asked for."""
        value = logits - logits.max(axis=1, keepdims=True)
        value = floored_logits(value, self.floor).astype(kind, copy=False)
        value *= kind(self.inverse)
        # without a floor, a class that was ruled out lies 1e30 below the others: its exponential is 0
        np.exp(value, out=value)
        value *= kind(1 - self.uniform) / value.sum(axis=1, keepdims=True)
        value += kind(self.uniform / value.shape[1])
        return np.log(value, out=value)


def fit_matrix(data: LabelledLogits, smooth: SmoothLogs, penalty: Penalty) -> tuple[Float64s, Float64s]:
    """D (K, K) or its diagonal (K,), and b, at the minimum; the search starts from 0."""
    problem = _Problem.of(data, smooth, penalty)
    theta = minimise(problem.loss, np.zeros(problem.size, problem.kind))
    change, bias = problem.unpacked(theta)
    return change.astype(np.float64), bias.astype(np.float64)


@dataclass(frozen=True, eq=False)
class _Problem:
    """The loss in scaled variables; D comes first, then b."""

    data: LabelledLogits
    smooth: SmoothLogs
    strengths: Float64s  # penalty per parameter, in the shape (K, K + 1) or (K, 2)
    scale: Floats  # variable = parameter / scale
    kind: type[np.floating]

    @classmethod
    def of(cls, data: LabelledLogits, smooth: SmoothLogs, penalty: Penalty) -> "_Problem":
        count, total = data.logits.shape[1], data.total
        per_class, per_pair = count / total, count * (count - 1) / total
        if penalty.off_diagonal is None:
            strengths = np.empty((count, 2))
            strengths[:, 0] = penalty.diagonal * per_class
        else:
            strengths = np.full((count, count + 1), penalty.off_diagonal * per_pair)
            np.fill_diagonal(strengths, max(penalty.diagonal, _WEAK) * per_class)
        strengths[:, -1] = penalty.intercept * per_class
        large = strengths.size >= _LARGE
        kind = data.logits.dtype.type if large else np.float64
        problem = cls(data, smooth, strengths, np.ones(()), kind)
        curvature = 2 * strengths + problem._curvature()
        return cls(data, smooth, strengths, (1 / np.sqrt(curvature)).astype(kind), kind)

    @property
    def size(self) -> int:
        return self.strengths.size

    @property
    def diagonal_only(self) -> bool:
        return self.strengths.shape[1] == 2

    def unpacked(self, theta: Floats) -> tuple[Floats, Floats]:
        parameters = theta.reshape(self.strengths.shape) * self.scale
        return (parameters[:, 0] if self.diagonal_only else parameters[:, :-1]), parameters[:, -1]

    def _blocks(self) -> Iterator[tuple[slice, Floats, NDArray[np.intp], Float64s]]:
        """Rows, features, labels, and weights that sum to 1."""
        data = self.data
        rows, count = data.logits.shape
        step = max(1, _BLOCK_VALUES // count)
        for start in range(0, rows, step):
            part = slice(start, start + step)
            features = self.smooth(data.logits[part], self.kind)
            labels = data.labels[part]
            weights = np.ones(len(labels)) if data.weights is None else data.weights[part]
            yield part, features, labels, weights / data.total

    def _curvature(self) -> Float64s:
        """About the second derivatives at D = 0: the means of p_j (1 - p_j) x_l^2, with the factors taken apart."""
        count = self.data.logits.shape[1]
        spread, squares, own = np.zeros(count), np.zeros(count), np.zeros(count)
        for _, x, _, w in self._blocks():
            p = np.exp(x)
            noise = w[:, None] * p * (1 - p)
            spread += noise.sum(axis=0)
            squares += w @ x**2
            own += np.einsum("ij,ij->j", noise, x**2)
        curvature = np.outer(spread, np.append(squares, 1.0))
        if self.diagonal_only:
            return np.column_stack([own, spread])
        np.fill_diagonal(curvature, own)
        return curvature

    def loss(self, theta: Floats) -> tuple[float, Floats]:
        """The penalised mean loss and its gradient by the scaled variables."""
        change, bias = self.unpacked(theta)
        total = 0.0
        gradient = np.zeros(self.strengths.shape, self.kind)
        for _, x, labels, w in self._blocks():
            value = x * (1 + change) + bias if self.diagonal_only else x + x @ change.T + bias
            rows = np.arange(len(labels))
            value -= value.max(axis=1, keepdims=True)
            own = value[rows, labels].astype(np.float64)
            np.exp(value, out=value)
            mass = value.sum(axis=1, keepdims=True)
            total += float(w @ (np.log(mass[:, 0]) - own))
            value /= mass
            value[rows, labels] -= 1
            value *= w[:, None].astype(self.kind)
            gradient[:, -1] += value.sum(axis=0)
            if self.diagonal_only:
                gradient[:, 0] += np.einsum("ij,ij->j", value, x)
            else:
                gradient[:, :-1] += value.T @ x
        parameters = theta.reshape(self.strengths.shape) * self.scale
        total += float((self.strengths * parameters**2).sum())
        gradient += (2 * self.strengths * parameters).astype(self.kind)
        gradient *= self.scale
        return total, gradient.ravel()
