"""Interval and test of a binned error of vectors, and a value without most of its upward bias.

The interval is for the error of the bins at hand: mean outputs against mean *true rates* of their rows.

Lower limit. Zero unless the test of calibration rejects; then the larger of two limits: the error along a fitted direction
minus its deviation (`direction.py`), and the value minus the noise of labels (triangle inequality).

Upper limit. The value has a mean of at least the true error, so value + deviation is a limit. For norm 1 it is lowered by
the bias that every truth of this size has at least. With noise of standard deviation s_c in cell c, a gap of x s_c shows
|x + normal| s_c, with mean m(x) s_c, m(x) = sqrt(2/pi) exp(-x^2/2) + x (1 - 2 Phi(-x)), which is convex. So by Jensen's
inequality the mean of the value is at least S m(error / S), where S m(0) is the mean value of a calibrated model. The limit
is the error at which that is value + deviation, and at least the stated value, which an interval has to hold.

Test. Labels are redrawn from the outputs; labels of clusters are not independent, so their residuals get random signs. The
statistics are the error and the gap along over- or underconfidence, the smaller of the two p-values corrected for the choice.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from truecal.estimators.bins import power_mean
from truecal.estimators.generalized.binning import Partition, VectorBins, weighted, write_out
from truecal.estimators.generalized.direction import (
    directed_error,
    error_slopes,
    fitted_outputs,
    log_outputs,
    row_blocks,
    standard_error,
    unit_noise,
)
from truecal.estimators.generalized.distances import Distance
from truecal.lenses.lens import Sample
from truecal.resampling.draws import label_ends, redraw_labels, unit_counts
from truecal.resampling.sign_flips import flip_sums
from truecal.special import root
from truecal.types import Float64s

# Of 1 - level, the share of the lower limit. The value is biased upwards, most of all with many events, so the upper limit
# fails less often. Tuned on five worlds of 2 to 100 classes: with equal shares 0.95 were covered at 90 %.
_LOWER_SHARE = 0.7
_GRID = np.linspace(0.0, 6.0, 601)  # derived: beyond 6, m(x) is x to nine digits
_WORK = 20_000_000  # redrawn labels
_MIN_REDRAWS = 99  # derived: the smallest p-value is 0.01
_DRAWN_AT_ONCE = 1 << 14  # labels drawn at a time
_FLIPPED_AT_ONCE = 1 << 20  # gaps held at a time
_ROUNDING = 1e-12  # derived: errors that agree to rounding count as equal


@dataclass(frozen=True)
class Inference:
    """The stated value, limits of its interval, p-value of calibration, and mean error of a calibrated model."""

    value: float
    low: float
    high: float
    p_value: float | None
    chance: float


@dataclass(frozen=True, eq=False)
class BinnedSample:
    """A sample in bins with the value measured there."""

    sample: Sample
    partition: Partition
    bins: VectorBins
    distance: Distance
    norm: float
    redraws: int
    class_fits: Float64s | None = None  # of pooled pairs of row and class: fitted outputs, class by class, shape (d, n)

    @property
    def value(self) -> float:
        """The error of the bins."""
        return float(self._error(self.bins.gap, self.bins.mean_outcome))

    @cached_property
    def fitted(self) -> Float64s:
        """Outputs that describe the labels better, shape (d, n)."""
        return fitted_outputs(self.sample) if self.class_fits is None else self.class_fits

    def debiased(self) -> float:
        """Compute the error along the fitted direction: not above the value, not below 0."""
        return float(np.clip(self._written_out()._directed()[0], 0.0, self.value))

    def deviation(self) -> float:
        """Compute the standard error of the value, to first order."""
        full = self._written_out()
        distances = self.distance.between(self.bins.gap, self.bins.mean_outcome, self.sample.event)
        return full._deviation(full._slopes() * (distances > 0)[:, None])

    def resample(self, resamples: int, rng: np.random.Generator) -> Float64s:
        """Resample units; the error along the fitted direction, to first order, in each resample."""
        error, slope = self._directed()
        noise = unit_noise(self.sample, self.partition, slope, self.fitted)
        counts = unit_counts(len(noise), resamples, rng)
        return np.maximum(error + noise @ counts - noise.sum(), 0.0)

    def infer(self, level: float, rng: np.random.Generator, *, debiased: bool) -> Inference:
        """Compute interval and test."""
        from scipy.special import ndtri

        full = self._written_out()
        value, chance = full.value, full.calibrated_errors(rng)
        expected = float(chance.errors.mean())
        p_value = chance.p_value(value) if self.distance.zero_at_outputs else None
        below, above = _LOWER_SHARE * (1 - level), (1 - _LOWER_SHARE) * (1 - level)
        directed, slope = full._directed()
        low, noise_level = 0.0, expected
        if p_value is None or p_value <= below:
            low = max(directed + float(ndtri(below)) * full._deviation(slope), 0.0)
        if p_value is not None and p_value <= below:
            noise = np.concatenate([full._error(gap, gap) for gap in full.null_gaps(full.fitted, rng)])
            low = max(low, value - float(np.quantile(noise, 1 - below)))
            noise_level = min(expected, float(noise.mean()))
        reach = -float(ndtri(above)) * full._deviation(full._slopes())
        event = full.sample.event
        high = float(full._mean(self.distance.moved_outward(self.bins.gap, self.bins.mean_outcome, event, reach)))
        if self.norm == 1 and self.distance.zero_at_outputs:
            high = largest_error(high, noise_level)
        high = min(high, self.distance.largest(full.sample.dimension))
        low = min(low, value)
        stated = float(np.clip(directed, low, value)) if debiased else value
        return Inference(stated, low, max(high, stated), p_value, expected)

    def calibrated_errors(self, rng: np.random.Generator) -> "CalibratedErrors":
        """Redraw labels from the outputs of the rows; for a distance from an interval, around the nearest rate inside."""
        columns = self.sample.columns.astype(np.float64, copy=False) if self.distance.zero_at_outputs else self.fitted
        ideal = self.distance.ideal(self.bins.mean_outcome, self.sample.event)
        tempering = self._tempering(columns)
        slope = self.bins.share[:, None] * self.distance.slope(tempering, tempering, self.sample.event)
        errors, tilts = [], []
        for gap in self.null_gaps(columns, rng):
            errors.append(self._error(gap, ideal + gap))
            tilts.append(np.tensordot(gap, slope, axes=2))
        return CalibratedErrors(np.concatenate(errors), np.concatenate(tilts), float((slope * self.bins.gap).sum()))

    def null_gaps(self, columns: Float64s, rng: np.random.Generator) -> Iterator[Float64s]:
        """Draw mean outcome minus mean output of every bin if outputs were `columns`, shape (draws, b, d), in blocks."""
        sample, bin_of, (b, d) = self.sample, self.partition.bin_of, self.bins.output_sum.shape
        redraws = int(np.clip(_WORK // max(len(sample), 1), _MIN_REDRAWS, max(self.redraws, _MIN_REDRAWS)))
        if not sample.independent:
            yield from self._flipped_gaps(columns, redraws, rng)
            return
        sums = np.stack([np.bincount(bin_of, weighted(column, sample.weights), b) for column in columns], axis=1)
        ends = label_ends(columns)
        step = max(1, _DRAWN_AT_ONCE // max(b * d, len(sample)))
        for start in range(0, redraws, step):
            size = min(step, redraws - start)
            code = (np.arange(size)[:, None] * b + bin_of) * d + redraw_labels(ends, size, rng)
            each = None if sample.weights is None else np.broadcast_to(sample.weights, code.shape).ravel()
            counts = np.bincount(code.ravel(), each, size * b * d).reshape(size, b, d)
            yield (counts - sums) / self.bins.safe

    def _flipped_gaps(self, columns: Float64s, redraws: int, rng: np.random.Generator) -> Iterator[Float64s]:
        """Yield gaps of bins, shape (flips, bins, events), with random signs for the residuals of whole units."""
        from scipy.sparse import csr_array

        sample, bin_of, (b, d) = self.sample, self.partition.bin_of, self.bins.output_sum.shape
        assert sample.units is not None
        weight = np.ones(len(sample)) if sample.weights is None else sample.weights
        unit = np.unique(sample.units, return_inverse=True)[1]
        residual = -weight * columns
        residual[sample.labels, np.arange(len(sample))] += weight
        cell = bin_of * d + np.arange(d)[:, None]
        surplus = csr_array((residual.ravel(), (np.tile(unit, d), cell.ravel())), shape=(int(unit.max()) + 1, b * d))
        step = max(1, _FLIPPED_AT_ONCE // (b * d))
        for start in range(0, redraws, step):
            gap = flip_sums(surplus, min(step, redraws - start), rng)
            yield gap.reshape(-1, b, d) / self.bins.safe

    def _tempering(self, columns: Float64s) -> Float64s:
        """Differentiate the mean outputs of every bin by the exponent of outputs raised to a power, shape (b, d)."""
        weights, moves = self.sample.weights, np.empty_like(columns)
        for rows in row_blocks(len(self.sample)):
            outputs, logs = columns[:, rows], log_outputs(columns[:, rows])
            scaled = weighted(outputs, None if weights is None else weights[rows])
            np.multiply(scaled, logs - (outputs * logs).sum(axis=0), out=moves[:, rows])
        return np.stack([np.bincount(self.partition.bin_of, move, self.partition.count) for move in moves], axis=1)

    def _error(self, gap: Float64s, outcome: Float64s) -> Float64s:
        """Compute the error of gaps and mean outcomes, shape (..., bins, events)."""
        return self._mean(self.distance.between(gap, outcome, self.sample.event))

    def _mean(self, distances: Float64s) -> Float64s:
        """Average distances of bins, shape (..., bins), in the norm, weighted by the share of each bin."""
        return root(power_mean(distances, self.bins.share, self.norm), self.norm)

    def _directed(self) -> tuple[float, Float64s]:
        """Return (1) of `direction` along the gaps that the fitted outputs predict, and its slopes, shape (bins, events)."""
        return directed_error(self.sample, self.partition, self.bins, self.distance, self.norm, self.fitted)

    def _slopes(self) -> Float64s:
        """Return the derivative of the error in the gaps, shape (bins, events)."""
        bins = self.bins
        return error_slopes(bins.gap, bins.mean_outcome, bins, self.distance, self.norm, self.sample.event)

    def _deviation(self, slope: Float64s) -> float:
        """Return the standard error for given slopes, shape (bins, events)."""
        return standard_error(self.sample, self.partition, self.bins, slope, self.fitted)

    def _written_out(self) -> "BinnedSample":
        """Take one row for every row that a whole-number weight stands for; in units, weights stay."""
        if self.sample.units is not None:
            return self
        sample, partition = write_out(self.sample, self.partition)
        return replace(self, sample=sample, partition=partition)


@dataclass(frozen=True, eq=False)
class CalibratedErrors:
    """Errors of redrawn datasets, and how over- or underconfident each of them looks."""

    errors: Float64s
    tilts: Float64s
    tilt: float  # of the dataset itself

    def p_value(self, error: float) -> float:
        """Test by the error and by the absolute tilt, whichever is rarer, corrected for the choice.

        Each dataset has one rank by each statistic; the smallest of its ranks is compared with those of the others.
        """
        ranks = []
        for drawn, observed in ((self.errors, error), (np.abs(self.tilts), abs(self.tilt))):
            values = np.append(drawn, observed * (1 - _ROUNDING))
            ranks.append(len(values) - np.searchsorted(np.sort(values), values, "left"))
        smallest = np.min(ranks, axis=0)
        return float(np.count_nonzero(smallest <= smallest[-1]) / len(smallest))


def largest_error(mean: float, chance: float) -> float:
    """Find the largest error whose values can have this mean, where a calibrated model shows `chance`."""
    from scipy.special import ndtr

    if chance <= 0:
        return mean
    size = chance * np.sqrt(np.pi / 2)
    means = np.sqrt(2 / np.pi) * np.exp(-(_GRID**2) / 2) + _GRID * (1 - 2 * ndtr(-_GRID))
    if mean >= size * means[-1]:
        return mean
    return float(size * np.interp(mean / size, means, _GRID))
