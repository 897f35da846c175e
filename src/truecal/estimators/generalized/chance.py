"""What a calibrated model would show: labels redrawn from the outputs of their rows, bins kept.

Labels of a cluster are not independent of each other, so they cannot be redrawn; there what each cluster shows beyond its
outputs gets a random sign instead.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truecal.estimators.bins import power_mean
from truecal.estimators.generalized.binning import Partition, VectorBins, weighted
from truecal.estimators.generalized.distances import Distance
from truecal.estimators.generalized.fitted import blocks, logs_of
from truecal.lenses.lens import Sample
from truecal.resampling.draws import NORMAL_VARIANCE, label_ends, redraw_labels
from truecal.resampling.sign_flips import draw_signs
from truecal.special import symmetric_root
from truecal.types import Float64s, Indices

_WORK = 20_000_000  # redrawn labels
_MOST_EVENTS = 8  # beyond, covariances cost more than draws
_TURNED = 1 << 16  # numbers whose signs are turned at a time: they stay in the cache
_DRAWN = 1 << 14  # labels drawn at a time: larger arrays would be given back to the system after every step
_AT_ONCE = 1 << 22  # numbers held at a time: draws x bins x events


def redraws_of(rows: int) -> int:
    """How many redraws so many rows are worth: fewer where there are many, because little varies then."""
    return int(np.clip(_WORK // max(rows, 1), 99, 499))


@dataclass(frozen=True, eq=False)
class Chance:
    """Errors of redrawn datasets (p-th powers), and how over- or underconfident each of them looks."""

    powers: Float64s
    tilts: Float64s
    tilt: float  # of the dataset itself

    @classmethod
    def of(
        cls,
        sample: Sample,
        partition: Partition,
        bins: VectorBins,
        distance: Distance,
        norm: float,
        rng: np.random.Generator,
    ) -> "Chance":
        """When the outputs of the rows are right."""
        columns = sample.columns.astype(np.float64, copy=False)
        slope = bins.share[:, None] * distance.slope(_tempering(sample, columns, partition))
        powers, tilts = [], []
        for gap in _gaps(sample, columns, partition, bins, rng):
            powers.append(power_mean(distance.between(gap, gap, sample.event), bins.share, norm))
            tilts.append(np.tensordot(gap, slope, axes=2))
        return cls(np.concatenate(powers), np.concatenate(tilts), float((slope * bins.gap).sum()))

    def p_value(self, power: float) -> float:
        """Of a power this large, or a tilt this far from 0 to either side, whichever is rarer; corrected for the choice."""
        return _smallest_of(
            np.append(self.powers, power * (1 - 1e-12)), np.append(np.abs(self.tilts), abs(self.tilt) * (1 - 1e-12))
        )


def noise_powers(
    sample: Sample,
    columns: Float64s,
    partition: Partition,
    bins: VectorBins,
    distance: Distance,
    norm: float,
    rng: np.random.Generator,
) -> Float64s:
    """p-th powers of the error when labels are drawn from, and compared with, other outputs than the model's.

    The distance is a metric for every bin, so an error is at least the value seen minus the noise of labels.
    """
    return np.concatenate(
        [
            power_mean(distance.between(gap, gap, sample.event), bins.share, norm)
            for gap in _gaps(sample, columns, partition, bins, rng)
        ]
    )


def _smallest_of(*statistics: Float64s) -> float:
    """The p-value of the last of several datasets, where each statistic is large when something is wrong.

    Each dataset has one rank by each statistic; the smallest of its ranks is compared with those of the others.
    """
    ranks = []
    for values in statistics:
        rising = np.sort(values)
        ranks.append(len(values) - np.searchsorted(rising, values, "left"))  # how many are at least as large
    smallest = np.min(ranks, axis=0)
    return float(np.count_nonzero(smallest <= smallest[-1]) / len(smallest))


def _tempering(sample: Sample, columns: Float64s, partition: Partition) -> Float64s:
    """Where the mean outputs of every bin move when outputs are raised to a power, shape (b, d)."""
    weights, moves = sample.weights, np.empty_like(columns)
    for rows in blocks(len(sample)):
        outputs, logs = columns[:, rows], logs_of(columns[:, rows])
        heavy = weighted(outputs, None if weights is None else weights[rows])
        np.multiply(heavy, logs - (outputs * logs).sum(axis=0), out=moves[:, rows])
    return np.stack([np.bincount(partition.bin_of, move, partition.count) for move in moves], axis=1)


def _gaps(
    sample: Sample, columns: Float64s, partition: Partition, bins: VectorBins, rng: np.random.Generator
) -> Iterator[Float64s]:
    """Mean outcome minus mean output of every bin, shape (some draws, b, d), block after block."""
    if not sample.independent:
        yield from _flipped(sample, columns, partition, bins, rng)
        return
    weight = sample.weights
    d, b = sample.dimension, partition.count
    sums = np.stack([np.bincount(partition.bin_of, weighted(column, weight), b) for column in columns], axis=1)
    draws = redraws_of(len(sample))
    large = _LargeBins.of(columns, weight, partition, draws)
    rows = slice(None) if large is None else large.others(partition)
    bin_of, weight = partition.bin_of[rows], None if weight is None else weight[rows]
    ends = label_ends(columns[:, rows])
    # with large bins uniform and normal numbers are drawn in turns, so how many at a time decides which
    at_once = _DRAWN if large is None else _AT_ONCE
    step = max(1, at_once // max(b * d, len(bin_of), 1))
    for start in range(0, draws, step):
        size = min(step, draws - start)
        code = (np.arange(size)[:, None] * b + bin_of) * d + redraw_labels(ends, size, rng)
        each = None if weight is None else np.broadcast_to(weight, code.shape).ravel()
        flat = np.bincount(code.ravel(), each, size * b * d)
        counts = flat.reshape(size, b, d).astype(np.float64)
        if large is not None:
            counts[:, large.member] = sums[large.member] + large.surplus(size, rng)
        yield (counts - sums) / bins.safe


def _flipped(
    sample: Sample, columns: Float64s, partition: Partition, bins: VectorBins, rng: np.random.Generator
) -> Iterator[Float64s]:
    """What each unit shows in each bin beyond its outputs, with a random sign for the unit."""
    assert sample.units is not None
    b, d = partition.count, sample.dimension
    weight = np.ones(len(sample)) if sample.weights is None else sample.weights
    present, units = np.unique(sample.units, return_inverse=True)
    pair, row_pair = np.unique(partition.bin_of * len(present) + units, return_inverse=True)
    bin_of, unit = np.divmod(pair, len(present))
    surplus = -np.stack([np.bincount(row_pair, weight * column, len(pair)) for column in columns], axis=1)
    surplus += np.bincount(row_pair * d + sample.labels, weight, len(pair) * d).reshape(-1, d)
    filled, first = np.unique(bin_of, return_index=True)  # pairs are in the order of their bins
    draws = redraws_of(len(pair) * d)
    step = max(1, _TURNED // (len(pair) * d))
    for start in range(0, draws, step):
        size = min(step, draws - start)
        signs = draw_signs(size, len(present), rng)
        gap = np.zeros((size, b, d))
        gap[:, filled] = np.add.reduceat(signs[:, unit, None] * surplus, first, axis=1)
        yield gap / bins.safe


@dataclass(frozen=True)
class _LargeBins:
    """Bins of so many rows that their redrawn numbers of events are normal: rows need not be drawn one by one."""

    member: NDArray[np.bool_]  # (b,)
    root: Float64s  # (large bins, d, d), whose square is the covariance of the numbers

    @classmethod
    def of(cls, columns: Float64s, weight: Float64s | None, partition: Partition, draws: int) -> "_LargeBins | None":
        """Sought only where drawing all rows would take long."""
        (d, n), b = columns.shape, partition.count
        if n * draws <= _WORK or d > _MOST_EVENTS:
            return None
        covariance, values = np.empty((b, d, d)), np.empty(n)
        squares = None if weight is None else weight**2
        for k in range(d):
            for m in range(k + 1):
                for rows in blocks(n):
                    heavy = weighted(columns[k, rows], None if squares is None else squares[rows])
                    np.multiply(heavy, (k == m) - columns[m, rows], out=values[rows])
                covariance[:, k, m] = covariance[:, m, k] = np.bincount(partition.bin_of, values, b)
        heaviest = np.zeros(b)
        if squares is None or bool((squares == squares[0]).all()):
            heaviest[:] = 1.0 if squares is None else squares[0]
        else:
            np.maximum.at(heaviest, partition.bin_of, squares)
        variance = covariance.diagonal(axis1=1, axis2=2)
        member = np.asarray((variance > NORMAL_VARIANCE * heaviest[:, None]).all(axis=1))
        return cls(member, symmetric_root(covariance[member]))

    def others(self, partition: Partition) -> Indices:
        """The rows of all other bins."""
        return np.zeros(0, np.intp) if self.member.all() else np.flatnonzero(~self.member[partition.bin_of])

    def surplus(self, draws: int, rng: np.random.Generator) -> Float64s:
        """What the numbers are beyond their means, shape (draws, large bins, d)."""
        normal = rng.standard_normal((draws, *self.root.shape[:2]))
        return np.asarray((self.root @ normal[..., None])[..., 0])
