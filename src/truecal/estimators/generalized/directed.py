"""The error of the bins along a direction: a lower limit that the number of events does not bias.

A distance of mean output and mean outcome is the largest of linear functions of the gap: for total variation
TV(g) = max of sum_k s_k g_k over |s_k| <= 1/2. So for any slopes s_B that do not depend on the labels

    D = sum_B |B|/n s_B . (mean outcome - mean output)

has a mean of at most the true error; it is exactly the true error where the slopes point along the true gaps. D is a mean of one
number per row, s_B(i)[y_i] - sum_k s_Bk p_ik, so it has no bias however many events there are, and its standard error is known.
With p-th powers over bins the slopes are multiplied by the dual weights (d_B / (sum |B|/n d_B^p)^(1/p))^(p-1).

The slopes are those of the gaps that fitted outputs (`fitted.py`) predict, plus what single cells show beyond chance. They use
the labels for one or two numbers, and for what is no chance; a calibrated model's sign is one of them, so truth 0 is left to
its test.
"""

from dataclasses import dataclass

import numpy as np

from truecal.estimators.bins import power_mean
from truecal.estimators.generalized.binning import Partition, VectorBins, weighted
from truecal.estimators.generalized.distances import Distance
from truecal.estimators.generalized.fitted import beyond_chance, blocks
from truecal.lenses.lens import Sample
from truecal.special import positive, root
from truecal.types import Float64s

_MORE = 2  # units


@dataclass(frozen=True)
class Directed:
    """The error along a direction, and its standard error."""

    value: float
    deviation: float

    @classmethod
    def of(
        cls, sample: Sample, partition: Partition, bins: VectorBins, distance: Distance, norm: float, fitted: Float64s
    ) -> "Directed":
        """`fitted` : better outputs, shape (d, n); the noise of labels is theirs."""
        bin_of, weight = partition.bin_of, sample.weights
        expected = np.stack([np.bincount(bin_of, weighted(q, weight), partition.count) for q in fitted], axis=1)
        surplus = bins.outcome_sum - expected
        beyond = beyond_chance(surplus, fitted, weight, bin_of, sample.units)
        gap = (expected - bins.output_sum + np.where(beyond, surplus, 0.0)) / bins.safe
        slope = slopes(gap, bins, distance, norm, sample.event)
        value = float(bins.share @ (slope * bins.gap).sum(axis=1))
        return cls(value, deviation(sample, partition, bins, slope, fitted))


def slopes(gap: Float64s, bins: VectorBins, distance: Distance, norm: float, event: int) -> Float64s:
    """How fast the error grows with the gap of every event in every bin, shape (b, d)."""
    return distance.slope(gap) * _dual(distance.between(gap, gap, event), bins.share, norm)[:, None]


def deviation(sample: Sample, partition: Partition, bins: VectorBins, slope: Float64s, fitted: Float64s) -> float:
    """Standard error of sum_B |B|/n slope_B . gap_B over labels: of whole units, where rows belong together.

    Two units more of even odds are added, the heaviest there are, so that labels which are all alike are not taken for certain.
    """
    labels, noise = sample.labels, np.empty(len(sample))
    by_event = np.ascontiguousarray(slope.T)
    for rows in blocks(len(sample)):
        bin_of = partition.bin_of[rows]
        mean = np.zeros(len(bin_of))
        for each, q in zip(by_event, fitted, strict=True):
            mean += each.take(bin_of) * q[rows]
        np.subtract(slope.take(bin_of * slope.shape[1] + labels[rows]), mean, out=noise[rows])
    weight = sample.weights
    if weight is not None:
        noise *= weight
    heaviest = 1.0 if weight is None else float(weight.max())
    if sample.units is not None:
        noise = np.bincount(sample.units, noise).astype(np.float64)
        heaviest = float(np.bincount(sample.units, weight).max())
    even = heaviest * float(np.ptp(slope, axis=1) @ bins.share) / 2
    return float(np.sqrt(noise @ noise + _MORE * even**2)) / float(bins.weight.sum())


def _dual(distances: Float64s, share: Float64s, norm: float) -> Float64s:
    """Weights u of bins with sum share u d = (sum share d^p)^(1/p), and at most that for any other d of the same size."""
    if norm == 1:
        return np.ones_like(distances)
    if norm == np.inf:
        largest = int(np.argmax(np.where(share > 0, distances, -1.0)))
        return np.where(np.arange(len(share)) == largest, 1.0, 0.0) / positive(share)
    size = float(root(power_mean(distances, share, norm), norm))
    return (distances / size) ** (norm - 1) if size > 0 else np.zeros_like(distances)
