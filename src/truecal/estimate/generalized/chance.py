"""What a calibrated model would show: labels redrawn from the outputs of their rows, bins kept."""

import numpy as np
from numpy.typing import NDArray

from truecal.estimate.combine import power_mean
from truecal.estimate.generalized.bins import Partition, VectorBins
from truecal.estimate.generalized.distances import Distance
from truecal.lens import Sample
from truecal.types import Float64s

_WORK = 20_000_000  # redrawn labels
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
    ends = np.cumsum(columns, axis=0)  # (d, n)
    ends /= ends[-1]
    weight = np.ones(len(sample)) if sample.weights is None else sample.weights
    d, b = sample.dimension, partition.count
    sums = [np.bincount(partition.bin_of, weight * column, b) for column in columns]
    output = np.stack(sums, axis=1) / bins.safe
    draws = redraws_of(len(sample))
    step = max(1, min(_AT_ONCE // max(b * d, 1), _AT_ONCE // len(sample)))
    powers = []
    for start in range(0, draws, step):
        some = min(step, draws - start)
        code = (np.arange(some)[:, None] * b + partition.bin_of) * d + _labels(ends, some, rng)
        counts = np.bincount(code.ravel(), np.broadcast_to(weight, code.shape).ravel(), some * b * d).reshape(
            some, b, d
        )
        outcome = counts / bins.safe
        powers.append(power_mean(distance.between(outcome - output, outcome, sample.judged), bins.share, norm))
    return np.concatenate(powers)


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
