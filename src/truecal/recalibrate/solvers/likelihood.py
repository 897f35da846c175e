"""The log likelihood of scaled logits, in blocks of rows: what temperature, bias-corrected and vector scaling maximise.

Rows come validated from the contract. Blocks keep the working memory at a few megabytes whatever the size of the
logits, and one pass costs about one row-wise logsumexp. Sums over rows are float64; a row's own sums keep the precision
of the logits.

A probability of exactly 0 has no logarithm; it is written as LOG_ZERO, so far below every other logit that its softmax
is exactly 0 under every positive scale, and it takes no part in a row's support.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from truecal.predictions import softmax
from truecal.types import Float64s, Floats, Indices

LOG_ZERO = -1e30
_BLOCK_BYTES = 1 << 19  # two such blocks fit in a level-2 cache


@dataclass(frozen=True)
class LabelledLogits:
    """Logits (n, K) with row maxima, labels and weights."""

    logits: Floats
    labels: Indices
    weights: Float64s | None
    peak: Floats
    has_zeros: bool

    @classmethod
    def of(cls, logits: Floats, labels: Indices, weights: Float64s | None) -> "LabelledLogits":
        return cls(logits, labels, weights, logits.max(axis=1), bool(logits.min() <= LOG_ZERO))

    @property
    def total(self) -> float:
        """Sum of weights."""
        return float(len(self.labels) if self.weights is None else self.weights.sum())

    def take(self, rows: slice | NDArray[np.bool_]) -> "LabelledLogits":
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, logits=self.logits[rows], labels=self.labels[rows], weights=weights, peak=self.peak[rows])

    def sample(self, rows: int) -> "LabelledLogits":
        """About `rows` evenly spaced rows, to find where a search should start."""
        return self.take(slice(None, None, max(1, len(self.labels) // rows)))

    def blocks(self, itemsize: int) -> Iterator[slice]:
        """Slices of rows small enough to stay in the cache."""
        step = max(1, _BLOCK_BYTES // (itemsize * self.logits.shape[1]))
        return (slice(i, i + step) for i in range(0, len(self.labels), step))

    def add(self, rows: slice, values: Float64s) -> float:
        """Weighted sum of one value per row."""
        return float(values.sum() if self.weights is None else values @ self.weights[rows])

    def support(self, rows: slice) -> NDArray[np.bool_]:
        """Which classes of each row have a probability above 0."""
        return self.logits[rows] > LOG_ZERO

    def label_gap(self) -> Float64s:
        """How far each label's logit lies below the row's largest; at most 0."""
        own = np.take_along_axis(self.logits, self.labels[:, None], axis=1)[:, 0]
        gap: Float64s = own.astype(np.float64) - self.peak
        return gap

    def impossible(self) -> NDArray[np.bool_]:
        """Which rows give their true class a probability of exactly 0."""
        own = np.take_along_axis(self.logits, self.labels[:, None], axis=1)[:, 0]
        ruled_out: NDArray[np.bool_] = own <= LOG_ZERO
        return ruled_out

    def floored(self, floor: float) -> "LabelledLogits":
        """The same rows with every logit at most `floor` below its row's largest."""
        return LabelledLogits.of(floored_logits(self.logits, floor), self.labels, self.weights)

    def reward(self) -> float:
        """Weighted sum over rows of the label's shifted logit, the linear term of the log likelihood."""
        return self.add(slice(None), self.label_gap())

    def spread(self) -> float:
        """Largest difference between two logits of one row, probabilities of 0 aside."""
        widest = 0.0
        for rows in self.blocks(self.logits.itemsize):
            block = self.logits[rows]
            low = block.min(axis=1, where=self.support(rows), initial=np.inf) if self.has_zeros else block.min(axis=1)
            widest = max(widest, float((self.peak[rows].astype(np.float64) - low).max()))
        return widest


def floored_logits(logits: Floats, floor: float) -> Floats:
    """Logits, none of them more than `floor` below its row's largest."""
    return np.maximum(logits, logits.max(axis=1, keepdims=True) - floor) if np.isfinite(floor) else logits


def temperature_terms(
    data: LabelledLogits, inverse: float, kind: type[np.floating] = np.float64
) -> tuple[float, float, float]:
    """Sums over rows of log Z and its two derivatives by the inverse temperature b; Z_i = sum_k exp(b (z_ik - max_k
    z_ik)).

    The derivatives are the mean and the variance of the shifted logits under the softmax at inverse temperature b. Rows are
    worked through in the precision `kind`.
    """
    logits = data.logits
    log_z = slope = curvature = 0.0
    for rows in data.blocks(np.dtype(kind).itemsize):
        shifted = logits[rows].astype(kind, copy=False) - data.peak[rows, None].astype(kind, copy=False)
        mass = shifted * kind(inverse)
        np.exp(mass, out=mass)
        z = mass.sum(axis=1).astype(np.float64)
        mass *= shifted
        first = mass.sum(axis=1).astype(np.float64) / z
        second = np.einsum("ij,ij->i", mass, shifted).astype(np.float64) / z
        log_z += data.add(rows, np.log(z))
        slope += data.add(rows, first)
        curvature += data.add(rows, np.maximum(second - first * first, 0.0))
    return log_z, slope, curvature


def affine_loss(data: LabelledLogits, scale: Float64s, bias: Float64s) -> tuple[float, Float64s, Float64s, bool]:
    """Mean negative log likelihood of softmax(scale * z + bias), its gradients by scale and by bias, and "all labels
    lead".

    The last value says whether every row gives its label a strictly larger probability than any other class: then
    scaling all parameters up increases the likelihood without end, and no finite optimum exists.
    """
    total, classes = data.total, data.logits.shape[1]
    loss, separated = 0.0, True
    by_scale, by_bias = np.zeros(classes), np.zeros(classes)
    for rows in data.blocks(8):
        raw = data.logits[rows].astype(np.float64)
        value = raw * scale + bias
        label = data.labels[rows]
        index = np.arange(len(label))
        own = value[index, label]
        if separated:
            separated = bool((np.count_nonzero(value >= own[:, None], axis=1) == 1).all())
        top = value.max(axis=1, keepdims=True)
        excess = np.exp(value - top)
        z = excess.sum(axis=1, keepdims=True)
        excess /= z
        excess[index, label] -= 1
        loss += data.add(rows, (top + np.log(z))[:, 0] - own)
        if data.weights is not None:
            excess *= data.weights[rows, None]
        by_bias += excess.sum(axis=0)
        by_scale += np.einsum("ij,ij->j", excess, raw)
    return loss / total, by_scale / total, by_bias / total, separated


def scaled_softmax(logits: Floats, scale: float | Float64s, bias: float | Float64s = 0.0) -> Float64s:
    """softmax(scale * z + bias) by rows, in float64; a probability of exactly 0 stays 0."""
    value = np.asarray(logits, np.float64) * scale + bias
    if logits.min() <= LOG_ZERO:
        value[logits <= LOG_ZERO] = -np.inf
    return softmax(value)
