"""Interval and test of a binned error of vectors, and a value without most of its upward bias.

The interval is for the error of the bins at hand: mean outputs against mean *true rates* of their rows.

A distance of mean output and mean outcome is the largest of linear functions of the gap: for total variation
TV(g) = max of sum_k s_k g_k over |s_k| <= 1/2. So for any slopes s_B that do not depend on the labels

    D = sum_B |B|/n s_B . (mean outcome - mean output)                                                                 (1)

has a mean of at most the true error, and exactly the true error where the slopes point along the true gaps. D is a mean of
one number per row, s_B(i)[y_i] - sum_k s_Bk p_ik, so it has no bias however many events there are, and its standard error is
known. With p-th powers over bins the slopes are multiplied by the dual weights (d_B / (sum |B|/n d_B^p)^(1/p))^(p-1). The
slopes are those of the gaps that fitted outputs predict (`direction.py`), plus surpluses of single cells beyond chance.

Lower limit. Zero unless the test of calibration rejects; then the larger of two limits: D minus its deviation, and the value
minus the noise of labels (triangle inequality).

Upper limit. The value has a mean of at least the true error, so value + deviation is a limit. For norm 1 it is lowered by
the bias that every truth of this size has at least. With noise of standard deviation s_c in cell c, a gap of x s_c shows
|x + normal| s_c, with mean m(x) s_c, m(x) = sqrt(2/pi) exp(-x^2/2) + x (1 - 2 Phi(-x)), which is convex. So by Jensen's
inequality the mean of the value is at least S m(error / S), where S m(0) is the mean value of a calibrated model. The limit
is the error at which that is value + deviation, and at least the stated value, which an interval has to hold.

Test. Labels are redrawn from the outputs; labels of clusters are not independent, so their residuals get random signs. The
statistics are the error and the gap along over- or underconfidence, the smaller of the two p-values corrected for the choice.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from truecal.estimators.bins import folded_mean, power_mean
from truecal.estimators.estimate import Interval
from truecal.estimators.generalized.binning import Partition, VectorBins, weighted
from truecal.estimators.generalized.direction import beyond_chance, fitted_outputs, log_outputs, row_blocks
from truecal.estimators.generalized.distances import Distance
from truecal.lenses.lens import Sample
from truecal.resampling.draws import block_sizes, label_ends, redraw_labels, unit_counts
from truecal.resampling.units import flip_sums
from truecal.special import positive, root
from truecal.types import Float64s

# Share of alpha in the lower tail, since the value is biased upwards. Tuned on five worlds of 2 to 100 classes, 90 %: equal
# shares covered 0.95.
_LOWER_SHARE = 0.7
_GRID = np.linspace(0.0, 6.0, 601)  # derived: beyond 6, m(x) is x to nine digits
_LABELS = 20_000_000  # by choice: labels redrawn in all, in about a second
_MIN_REDRAWS = 99  # derived: the smallest p-value is 0.01
_DRAWN_AT_ONCE = 1 << 14  # derived: labels whose arrays stay in a cache of 1 MiB
_FLIPPED_AT_ONCE = 1 << 20  # derived: gaps in an array of 8 MiB
_ROUNDING = 1e-12  # derived: errors that agree to rounding count as equal
_PSEUDO_UNITS = 2  # derived: as in the Wilson and Agresti-Coull intervals, so that equal labels have a variance


@dataclass(frozen=True, eq=False)
class BinnedSample:
    """A sample of n rows over d events in b bins of `partition`, whose sums are `bins`; with the error of the bins.

    `redraws` is the number of redraws of the test, where time allows.
    """

    sample: Sample
    partition: Partition
    bins: VectorBins
    distance: Distance
    norm: float
    redraws: int

    @property
    def value(self) -> float:
        """The error of the bins: (sum over bins of share distance(mean output, mean outcome)^norm)^(1/norm)."""
        return float(self._error(self.bins.gap, self.bins.mean_outcome))

    @cached_property
    def fitted(self) -> Float64s:
        """Recalibrated outputs of `fitted_outputs`, shape (d, n)."""
        return fitted_outputs(self.sample)

    @cached_property
    def directed(self) -> tuple[float, Float64s]:
        """The error D of (1), and its slopes s, shape (b, d), which are those of the distance at the gaps of fitted outputs.

        The gap of a bin is there the mean of its fitted outputs, plus surpluses of labels beyond chance, minus the mean output.
        """
        sample, bin_of, bins, event = self.sample, self.partition.bin_of, self.bins, self.sample.event
        sums = [np.bincount(bin_of, weighted(q, sample.weights), self.partition.count) for q in self.fitted]
        expected = np.stack(sums, axis=1)
        surplus = bins.outcome_sum - expected
        surplus *= beyond_chance(surplus, self.fitted, sample.weights, bin_of, sample.units)
        outcome = (expected + surplus) / bins.safe
        slopes = self._slopes(outcome - bins.mean_output, outcome)
        parts = self.distance.along(slopes, bins.gap, bins.mean_outcome, event)
        return float(bins.share @ parts), slopes

    def debiased(self) -> float:
        """Compute the error D of (1) as `directed`, limited to the range from 0 to `value`."""
        return float(np.clip(self.directed[0], 0.0, self.value))

    def deviation(self) -> float:
        """Compute the standard error of the value, `_standard_error` with the slopes of the distance at the observed gaps.

        Bins at distance 0 have slope 0.
        """
        return self._standard_error(self._slopes(self.bins.gap, self.bins.mean_outcome))

    def resample(self, resamples: int, rng: np.random.Generator) -> Float64s:
        """Resample rows, or units, and compute max(D, 0) of (1) with the slopes of `directed`, shape (resamples,)."""
        error, slopes = self.directed
        noise = self._unit_noise(slopes)
        counts = unit_counts(len(noise), resamples, rng)
        return np.maximum(error + noise @ counts - noise.sum(), 0.0)

    def infer(
        self, level: float, rng: np.random.Generator, *, debiased: bool
    ) -> tuple[float, Interval, float | None, float]:
        """Compute (error, interval, p-value or None without a test, mean error of a calibrated model).

        The error is `value`, or D of (1) within the interval and at most `value` if `debiased`. There is no test for a distance
        that is 0 elsewhere than at the outputs. The limits are derived in the docstring of the module.
        """
        from scipy.special import ndtri

        value, distance = self.value, self.distance
        errors, p_value = self.calibrated_errors(rng)
        chance = noise_level = float(errors.mean())
        below, above = _LOWER_SHARE * (1 - level), (1 - _LOWER_SHARE) * (1 - level)
        low = 0.0
        if not distance.zero_at_outputs or p_value <= below:
            error, slopes = self.directed
            low = max(error + float(ndtri(below)) * self._standard_error(slopes), 0.0)
        if distance.zero_at_outputs and p_value <= below:
            noise = np.concatenate([self._error(gap, gap) for gap in self._null_gaps(self.fitted, rng)])
            low = max(low, value - float(np.quantile(noise, 1 - below)))
            noise_level = min(chance, float(noise.mean()))
        gap, outcome, event = self.bins.gap, self.bins.mean_outcome, self.sample.event
        reach = -float(ndtri(above)) * self._standard_error(self._slopes(gap, outcome, boundary=True))
        high = float(self._mean(distance.moved_outward(gap, outcome, event, reach)))
        if self.norm == 1 and distance.zero_at_outputs:
            high = largest_error(high, noise_level)
        low, high = min(low, value), min(high, distance.largest(self.sample.dimension))
        stated = float(np.clip(self.directed[0], low, value)) if debiased else value
        interval = Interval(low, max(high, stated), level, "in fixed bins, along the fitted direction")
        return stated, interval, p_value if distance.zero_at_outputs else None, chance

    def calibrated_errors(self, rng: np.random.Generator) -> tuple[Float64s, float]:
        """Compute the errors of redraws under calibration, shape (redraws,), and the p-value of calibration.

        Statistics of the test are the error and the absolute gap along over- and underconfidence, by `joint_p_value`. For a
        distance from an interval, labels are redrawn around the nearest rate inside.
        """
        columns = self.sample.columns.astype(np.float64, copy=False) if self.distance.zero_at_outputs else self.fitted
        ideal = self.distance.ideal(self.bins.mean_outcome, self.sample.event)
        sharpened = self._sharpening(columns)
        slopes = self.bins.share[:, None] * self.distance.slope(sharpened, sharpened, self.sample.event)
        drawn = [(self._error(g, ideal + g), np.tensordot(g, slopes, axes=2)) for g in self._null_gaps(columns, rng)]
        errors, overconfidences = (np.concatenate(part) for part in zip(*drawn, strict=True))
        overconfidence = float((slopes * self.bins.gap).sum())
        return errors, joint_p_value((errors, np.abs(overconfidences)), (self.value, abs(overconfidence)))

    def _null_gaps(self, columns: Float64s, rng: np.random.Generator) -> Iterator[Float64s]:
        """Draw mean outcome minus mean output of every bin under calibration of the outputs `columns`, shape (d, n).

        Yields blocks of shape (redraws, b, d). Labels are redrawn from `columns`; with units, their residuals get random signs.
        """
        sample, bin_of, (b, d) = self.sample, self.partition.bin_of, self.bins.output_sum.shape
        redraws = int(np.clip(_LABELS // max(len(sample), 1), _MIN_REDRAWS, max(self.redraws, _MIN_REDRAWS)))
        if sample.units is not None:
            yield from self._flipped_gaps(columns, redraws, rng)
            return
        sums = np.stack([np.bincount(bin_of, weighted(column, sample.weights), b) for column in columns], axis=1)
        ends = label_ends(columns)
        for size in block_sizes(redraws, max(b * d, len(sample)), _DRAWN_AT_ONCE):
            code = (np.arange(size)[:, None] * b + bin_of) * d + redraw_labels(ends, size, rng)
            weights = None if sample.weights is None else np.broadcast_to(sample.weights, code.shape).ravel()
            counts = np.bincount(code.ravel(), weights, size * b * d).reshape(size, b, d)
            yield (counts - sums) / self.bins.safe

    def _flipped_gaps(self, columns: Float64s, redraws: int, rng: np.random.Generator) -> Iterator[Float64s]:
        """Draw gaps of bins with one random sign for all residuals label - `columns` of a unit; yield blocks (flips, b, d).

        A gap is the sum of sign times weight times residual over the rows of a bin, over the weight of the bin.
        """
        from scipy.sparse import csr_array

        sample, bin_of, (b, d) = self.sample, self.partition.bin_of, self.bins.output_sum.shape
        assert sample.units is not None
        weight = np.ones(len(sample)) if sample.weights is None else sample.weights
        unit = np.unique(sample.units, return_inverse=True)[1]
        residual = -weight * columns
        residual[sample.labels, np.arange(len(sample))] += weight
        cell = bin_of * d + np.arange(d)[:, None]
        surplus = csr_array((residual.ravel(), (np.tile(unit, d), cell.ravel())), shape=(int(unit.max()) + 1, b * d))
        for size in block_sizes(redraws, b * d, _FLIPPED_AT_ONCE):
            yield flip_sums(surplus, size, rng).reshape(-1, b, d) / self.bins.safe

    def _sharpening(self, columns: Float64s) -> Float64s:
        """Differentiate summed outputs of every bin, shape (b, d), by the exponent a of q_k proportional to p_k^a, at a = 1.

        It is the sum over rows of w p_k (log p_k - sum_l p_l log p_l); p are `columns`, shape (d, n).
        """
        weights, changes = self.sample.weights, np.empty_like(columns)
        for rows in row_blocks(len(self.sample)):
            outputs, logs = columns[:, rows], log_outputs(columns[:, rows])
            scaled = weighted(outputs, None if weights is None else weights[rows])
            np.multiply(scaled, logs - (outputs * logs).sum(axis=0), out=changes[:, rows])
        return np.stack(
            [np.bincount(self.partition.bin_of, change, self.partition.count) for change in changes], axis=1
        )

    def _error(self, gap: Float64s, outcome: Float64s) -> Float64s:
        """Compute the error of gaps and mean outcomes of bins, shape (..., b, d) each; the result has shape (...)."""
        return self._mean(self.distance.between(gap, outcome, self.sample.event))

    def _mean(self, distances: Float64s) -> Float64s:
        """Combine distances of bins (..., b): (sum share distance^norm)^(1/norm), for norm inf the largest; shape (...)."""
        return root(power_mean(distances, self.bins.share, self.norm), self.norm)

    def _slopes(self, gap: Float64s, outcome: Float64s, *, boundary: bool = False) -> Float64s:
        """Compute the slopes s of (1), shape (b, d): derivatives of the error by the gaps of bins, over the shares of the bins.

        `gap` and `outcome` have shape (b, d). Bins at distance 0 have slopes of 0, unless `boundary`.
        """
        distances, share = self.distance.between(gap, outcome, self.sample.event), self.bins.share
        dual = np.ones_like(distances)
        if self.norm == np.inf:
            largest = int(np.argmax(np.where(share > 0, distances, -1.0)))
            dual = np.where(np.arange(len(share)) == largest, 1.0, 0.0) / positive(share)
        elif self.norm > 1:
            dual = (distances / positive(self._mean(distances))) ** (self.norm - 1)
        if not boundary:
            dual = np.where(distances > 0, dual, 0.0)
        return self.distance.slope(gap, outcome, self.sample.event) * dual[:, None]

    def _unit_noise(self, slopes: Float64s) -> Float64s:
        """Compute the noise of (1) by row, shape (n,), or summed by unit if rows have units, shape (units,).

        For a row of weight w with the label y in bin B it is w (s_B[y] - sum_k s_Bk q_k) over the sum of weights, q the fitted
        outputs.
        """
        sample, noise = self.sample, np.empty(len(self.sample))
        by_event = np.ascontiguousarray(slopes.T)
        for rows in row_blocks(len(sample)):
            bin_of = self.partition.bin_of[rows]
            mean = np.zeros(len(bin_of))
            for event_slopes, q in zip(by_event, self.fitted, strict=True):
                mean += event_slopes.take(bin_of) * q[rows]
            np.subtract(slopes.take(bin_of * slopes.shape[1] + sample.labels[rows]), mean, out=noise[rows])
        shares = noise * (1.0 if sample.weights is None else sample.weights) / float(self.bins.weight.sum())
        return shares if sample.units is None else np.bincount(sample.units, shares).astype(np.float64, copy=False)

    def _standard_error(self, slopes: Float64s) -> float:
        """Compute the standard error of (1) with slopes (b, d): the root of the sum of squares of `_unit_noise`.

        Two pseudo-units are added, of the largest weight of a unit, with labels at the largest or smallest slope by even odds.
        """
        noise, weights, units = self._unit_noise(slopes), self.sample.weights, self.sample.units
        largest = 1.0 if weights is None else float(weights.max())
        if units is not None:
            largest = float(np.bincount(units, weights).max())
        even = largest / float(self.bins.weight.sum()) * float(np.ptp(slopes, axis=1) @ self.bins.share) / 2
        return float(np.sqrt(noise @ noise + _PSEUDO_UNITS * even**2))


def joint_p_value(redrawn: Sequence[Float64s], observed: Sequence[float]) -> float:
    """Compute the p-value of the most significant of several statistics, corrected for the choice.

    `redrawn` are the statistics of redraws, shape (redraws,) each, `observed` those of the data, large when calibration fails.
    Each dataset has a rank by each statistic, 1 for the largest; the p-value is the share of datasets, the data among them, whose
    smallest rank is at most that of the data.

    >>> joint_p_value([np.array([0.1, 0.2, 0.3]), np.array([0.5, 0.1, 0.2])], [0.4, 0.0])
    0.5
    """
    ranks = []
    for statistics, value in zip(redrawn, observed, strict=True):
        values = np.append(statistics, value * (1 - _ROUNDING))
        ranks.append(len(values) - np.searchsorted(np.sort(values), values, "left"))
    smallest = np.min(ranks, axis=0)
    return float(np.count_nonzero(smallest <= smallest[-1]) / len(smallest))


def largest_error(mean: float, chance: float) -> float:
    """Find the error e at which S m(e / S) is `mean`, with S m(0) = `chance`, the mean value of a calibrated model.

    m(x) = E|x + standard normal|. 0 for a mean of at most `chance`; never above `mean`, which it is for a mean above 6 S.

    >>> largest_error(0.5, 1.0), largest_error(10.0, 1.0)
    (0.0, 10.0)
    """
    size = chance * np.sqrt(np.pi / 2)
    means = size * folded_mean(_GRID, np.ones_like(_GRID))
    return mean if mean >= means[-1] else float(np.interp(mean, means, size * _GRID))
