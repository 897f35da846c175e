"""What a calibrated model would show: labels redrawn from the outputs of their rows, bins kept."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truecal.estimate.combine import power_mean
from truecal.estimate.generalized.bins import Partition, VectorBins
from truecal.estimate.generalized.distances import Distance
from truecal.lens import Sample
from truecal.types import Float64s

_WORK = 20_000_000  # redrawn labels
_NORMAL_FROM = 100.0  # variance of the number of each event, in rows, from which it is drawn as a normal
_MOST_EVENTS = 8  # beyond, covariances cost more than draws
_AT_ONCE = 1 << 22  # numbers held at a time: draws x bins x events


def redraws_of(rows: int) -> int:
    """How many redraws so many rows are worth: fewer where there are many, because little varies then."""
    return int(np.clip(_WORK // max(rows, 1), 99, 499))


def calibrated_errors(
    sample: Sample, partition: Partition, bins: VectorBins, distance: Distance, norm: float, rng: np.random.Generator
) -> Float64s:
    """The p-th powers of the error in the same bins when every label is drawn from its row's own outputs."""
    return _errors(sample, sample.columns.astype(np.float64), partition, bins, distance, norm, rng)


def noise_errors(
    sample: Sample, partition: Partition, bins: VectorBins, distance: Distance, norm: float, rng: np.random.Generator
) -> Float64s:
    """The same when labels are as noisy as they really are: drawn from, and compared with, outputs to the power of a.

    a is the exponent of largest likelihood. The distance is a metric for every bin, so an error is at least the value seen minus
    this noise.
    """
    return _errors(sample, _tempered(sample), partition, bins, distance, norm, rng)


def _errors(
    sample: Sample,
    columns: Float64s,
    partition: Partition,
    bins: VectorBins,
    distance: Distance,
    norm: float,
    rng: np.random.Generator,
) -> Float64s:
    weight = np.ones(len(sample)) if sample.weights is None else sample.weights
    d, b = sample.dimension, partition.count
    sums = np.stack([np.bincount(partition.bin_of, weight * column, b) for column in columns], axis=1)
    output = sums / bins.safe
    draws = redraws_of(len(sample))
    large = _LargeBins.of(columns, weight, partition, draws)
    rows = slice(None) if large is None else np.flatnonzero(~large.member[partition.bin_of])
    bin_of, weight = partition.bin_of[rows], weight[rows]
    ends = np.cumsum(columns[:, rows], axis=0)  # (d, n)
    ends /= ends[-1]
    step = max(1, min(_AT_ONCE // max(b * d, 1), _AT_ONCE // max(len(bin_of), 1)))
    powers = []
    for start in range(0, draws, step):
        some = min(step, draws - start)
        code = (np.arange(some)[:, None] * b + bin_of) * d + _labels(ends, some, rng)
        flat = np.bincount(code.ravel(), np.broadcast_to(weight, code.shape).ravel(), some * b * d)
        counts = flat.reshape(some, b, d).astype(np.float64)
        if large is not None:
            counts[:, large.member] = sums[large.member] + large.surplus(some, rng)
        outcome = counts / bins.safe
        powers.append(power_mean(distance.between(outcome - output, outcome, sample.judged), bins.share, norm))
    return np.concatenate(powers)


@dataclass(frozen=True)
class _LargeBins:
    """Bins of so many rows that their redrawn numbers of events are normal: rows need not be drawn one by one."""

    member: NDArray[np.bool_]  # (b,)
    root: Float64s  # (large bins, d, d), whose square is the covariance of the numbers

    @classmethod
    def of(cls, columns: Float64s, weight: Float64s, partition: Partition, draws: int) -> "_LargeBins | None":
        """Sought only where drawing all rows would take long."""
        d, b = len(columns), partition.count
        if len(weight) * draws <= _WORK or d > _MOST_EVENTS:
            return None
        covariance = np.empty((b, d, d))
        squares = weight**2
        for k in range(d):
            for m in range(k + 1):
                values = squares * columns[k] * ((k == m) - columns[m])
                covariance[:, k, m] = covariance[:, m, k] = np.bincount(partition.bin_of, values, b)
        alike = bool((squares == squares[0]).all())
        heaviest = np.full(b, float(squares[0])) if alike else np.zeros(b)
        if not alike:
            np.maximum.at(heaviest, partition.bin_of, squares)
        variance = covariance.diagonal(axis1=1, axis2=2)
        member = np.asarray((variance > _NORMAL_FROM * heaviest[:, None]).all(axis=1))
        size, direction = np.linalg.eigh(covariance[member])
        return cls(member, direction * np.sqrt(np.maximum(size, 0.0))[:, None, :])

    def surplus(self, draws: int, rng: np.random.Generator) -> Float64s:
        """What the numbers are beyond their means, shape (draws, large bins, d)."""
        normal = rng.standard_normal((draws, *self.root.shape[:2]))
        return np.asarray((self.root @ normal[..., None])[..., 0])


def _tempered(sample: Sample) -> Float64s:
    """Outputs to the power a, renormalised, with the a of largest likelihood, shape (d, n)."""
    logs = np.log(np.maximum(sample.columns.astype(np.float64), 1e-12))
    own = logs[sample.labels, np.arange(len(sample))]
    weight = np.ones(len(sample)) if sample.weights is None else sample.weights
    exponent = 1.0
    for _ in range(30):
        scaled = _softmax(exponent * logs)
        mean = (scaled * logs).sum(axis=0)
        slope = float(weight @ (own - mean))
        curvature = float(weight @ ((scaled * logs * logs).sum(axis=0) - mean**2))
        step = float(np.clip(slope / (curvature + 1e-9), -0.3 * exponent, 0.3 * exponent))
        exponent = float(np.clip(exponent + step, 0.05, 5.0))
        if abs(step) < 1e-4:
            break
    return _softmax(exponent * logs)


def _softmax(logits: Float64s) -> Float64s:
    """Over the first axis."""
    power = np.exp(logits - logits.max(axis=0))
    return power / power.sum(axis=0)


def _labels(ends: Float64s, draws: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """One label per row and draw, shape (draws, n): rows are searched side by side, each in its own unit interval."""
    d, n = ends.shape
    table = (ends + np.arange(n)).T.ravel()
    u = rng.random((draws, n)) + np.arange(n)
    return np.clip(np.searchsorted(table, u, side="right") - np.arange(n) * d, 0, d - 1)
