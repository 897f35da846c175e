"""The error of bins along a fitted direction: a lower limit that the number of events does not bias.

A distance of mean output and mean outcome is the largest of linear functions of the gap: for total variation
TV(g) = max of sum_k s_k g_k over |s_k| <= 1/2. So for any slopes s_B that do not depend on the labels

    D = sum_B |B|/n s_B . (mean outcome - mean output)                                                                 (1)

has a mean of at most the true error, and exactly the true error where the slopes point along the true gaps. D is a mean of
one number per row, s_B(i)[y_i] - sum_k s_Bk p_ik, so it has no bias however many events there are, and its standard error is
known. With p-th powers over bins the slopes are multiplied by the dual weights (d_B / (sum |B|/n d_B^p)^(1/p))^(p-1).

The slopes are those of the gaps that better outputs q_k proportional to p_k^a exp(b_k) predict, plus surpluses of single
cells beyond chance. The exponent a is for over- and underconfidence. An offset b_k is fitted for the event that stands for
all others (the rest of a top-k lens, the complement of one probability), and for events whose surplus is beyond chance. So
the slopes depend on the labels by one or two numbers; truth 0 is left to the test of calibration.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from truecal.estimators.bins import power_mean
from truecal.estimators.generalized.binning import Partition, VectorBins, weighted
from truecal.estimators.generalized.distances import Distance
from truecal.lenses.lens import Sample
from truecal.special import kish, positive, root
from truecal.types import Float64s, Floats, Indices

_MIN_OUTPUT = 1e-12  # derived: the logarithm of a smaller output is that of rounding
_FITTED = 2_000_000  # probabilities that are fitted; of larger samples every m-th row, whose fit is as sharp as needed
_BLOCK = 1 << 14  # rows whose outputs are worked on together, in cache
_STEPS = 25  # of Newton's method
_CONVERGED = 1e-4  # largest change of a parameter at which the iteration ends
_MAX_STEP = 0.5  # of a parameter
_PRIOR = 1.0  # rows of a normal prior on offsets: an event that was never observed has no finite one
_FALSE_SURPLUS = 0.05  # derived: probability that any event or cell of a calibrated model is taken to have a surplus
_PSEUDO_UNITS = 2  # derived: as in the Wilson and Agresti-Coull intervals, so that equal labels have a variance


def directed_error(
    sample: Sample, partition: Partition, bins: VectorBins, distance: Distance, norm: float, fitted: Float64s
) -> tuple[float, Float64s]:
    """Compute (1) along the gaps that the outputs `fitted`, shape (d, n), predict; with the slopes, shape (b, d)."""
    bin_of, weight = partition.bin_of, sample.weights
    expected = np.stack([np.bincount(bin_of, weighted(q, weight), partition.count) for q in fitted], axis=1)
    surplus = bins.outcome_sum - expected
    surplus = np.where(beyond_chance(surplus, fitted, weight, bin_of, sample.units), surplus, 0.0)
    outcome = (expected + surplus) / bins.safe
    gap, event = outcome - bins.mean_output, sample.event
    slope = error_slopes(gap, outcome, bins, distance, norm, event)
    slope[distance.between(gap, outcome, event) == 0] = 0.0
    parts = distance.along(slope, bins.gap, bins.mean_outcome, event)
    return float(bins.share @ parts), slope


def error_slopes(
    gap: Float64s, outcome: Float64s, bins: VectorBins, distance: Distance, norm: float, event: int
) -> Float64s:
    """Differentiate the error by the gap of every event in every bin, shape (b, d)."""
    dual = _dual(distance.between(gap, outcome, event), bins.share, norm)
    return distance.slope(gap, outcome, event) * dual[:, None]


def _dual(distances: Float64s, share: Float64s, norm: float) -> Float64s:
    """Weigh bins by u with sum share u d = (sum share d^p)^(1/p), and at most that for other d of the same p-mean."""
    if norm == 1:
        return np.ones_like(distances)
    if norm == np.inf:
        largest = int(np.argmax(np.where(share > 0, distances, -1.0)))
        return np.where(np.arange(len(share)) == largest, 1.0, 0.0) / positive(share)
    size = float(root(power_mean(distances, share, norm), norm))
    return (distances / size) ** (norm - 1) if size > 0 else np.zeros_like(distances)


def unit_noise(sample: Sample, partition: Partition, slope: Float64s, fitted: Float64s) -> Float64s:
    """Compute the contribution of each row, or unit if rows have units, to the noise of (1), shape (rows or units,)."""
    labels, noise = sample.labels, np.empty(len(sample))
    by_event = np.ascontiguousarray(slope.T)
    for rows in row_blocks(len(sample)):
        bin_of = partition.bin_of[rows]
        mean = np.zeros(len(bin_of))
        for each, q in zip(by_event, fitted, strict=True):
            mean += each.take(bin_of) * q[rows]
        np.subtract(slope.take(bin_of * slope.shape[1] + labels[rows]), mean, out=noise[rows])
    if sample.weights is not None:
        noise *= sample.weights
    total = len(sample) if sample.weights is None else float(sample.weights.sum())
    return (noise if sample.units is None else np.bincount(sample.units, noise)) / total


def standard_error(sample: Sample, partition: Partition, bins: VectorBins, slope: Float64s, fitted: Float64s) -> float:
    """Compute the standard error of (1), with two pseudo-units of even odds and of the largest weight there is."""
    noise = unit_noise(sample, partition, slope, fitted)
    largest = 1.0 if sample.weights is None else float(sample.weights.max())
    if sample.units is not None:
        largest = float(np.bincount(sample.units, sample.weights).max())
    even = largest / float(bins.weight.sum()) * float(np.ptp(slope, axis=1) @ bins.share) / 2
    return float(np.sqrt(noise @ noise + _PSEUDO_UNITS * even**2))


# ----------------------------------------------------------------------------------------------------
# Better outputs: exponent and offsets of largest likelihood


def fitted_outputs(sample: Sample) -> Float64s:
    """Recalibrate all outputs by one exponent and an offset per event, fitted by maximum likelihood, shape (d, n)."""
    columns = sample.columns
    weight = np.ones(len(sample)) if sample.weights is None else sample.weights
    weight = weight * float(kish(weight) / weight.sum())  # as many as the rows they are worth
    every = slice(None, None, max(1, -(-columns.size // _FITTED)))
    free = np.zeros(len(columns), bool)
    if sample.implied is not None:
        free[sample.implied] = True
    logs, weight = log_outputs(columns[:, every]), weight[every]
    counts = np.bincount(sample.labels[every], weight, len(logs)).astype(np.float64)
    likelihood = float(weight @ logs[sample.labels[every], np.arange(len(weight))])
    exponent, offset = _newton(logs, weight, counts, likelihood, free, 1.0, np.zeros(len(logs)))
    outputs = _softmax(exponent * logs + offset[:, None])
    units = None if sample.units is None else sample.units[every]
    one_bin = np.zeros(len(weight), np.intp)
    surplus = beyond_chance((counts - outputs @ weight)[None], outputs, weight, one_bin, units)[0] & ~free
    if surplus.any():
        exponent, offset = _newton(logs, weight, counts, likelihood, free | surplus, exponent, offset)
    outputs = np.empty(columns.shape)
    for rows in row_blocks(columns.shape[1]):
        outputs[:, rows] = _softmax(exponent * log_outputs(columns[:, rows]) + offset[:, None])
    return outputs


def row_blocks(rows: int) -> Iterator[slice]:
    """Split rows into slices of `_BLOCK` rows, which stay in cache."""
    return (slice(start, start + _BLOCK) for start in range(0, rows, _BLOCK))


def log_outputs(columns: Floats) -> Float64s:
    """Take logarithms in double precision, of outputs of at least 1e-12."""
    return np.log(np.maximum(columns.astype(np.float64, copy=False), _MIN_OUTPUT))


def _newton(
    logs: Float64s,
    weight: Float64s,
    counts: Float64s,
    likelihood: float,
    free: NDArray[np.bool_],
    exponent: float,
    offset: Float64s,
) -> tuple[float, Float64s]:
    """Maximise the likelihood over the exponent and the free offsets, from a start.

    `counts` of the events and the log-likelihood of the outputs themselves are the sufficient statistics.
    """
    offset = offset.copy()
    squares, of_free = logs**2, logs[free]
    for _ in range(_STEPS):
        q = _softmax(exponent * logs + offset[:, None])
        mean = (q * logs).sum(axis=0)
        of_events = q[free]
        gradient = np.concatenate([[likelihood - weight @ mean], (counts - q @ weight)[free] - _PRIOR * offset[free]])
        hessian = np.empty((len(gradient), len(gradient)))
        hessian[0, 0] = weight @ ((q * squares).sum(axis=0) - mean**2) + 1e-9
        hessian[0, 1:] = hessian[1:, 0] = (of_events * (of_free - mean)) @ weight
        hessian[1:, 1:] = np.diag(of_events @ weight + _PRIOR) - (of_events * weight) @ of_events.T
        step = np.clip(np.linalg.lstsq(hessian, gradient, rcond=None)[0], -_MAX_STEP, _MAX_STEP)
        exponent = float(np.clip(exponent + max(step[0], -0.5 * exponent), 0.02, 10.0))
        offset[free] += step[1:]
        if np.abs(step).max() < _CONVERGED:
            break
    return exponent, offset


def beyond_chance(
    surplus: Float64s, outputs: Float64s, weight: Float64s | None, bin_of: Indices, units: Indices | None
) -> NDArray[np.bool_]:
    """Decide which surpluses (b, d) of labels over outputs (d, n) chance does not explain, for rows in bins `bin_of`.

    By Bernstein's inequality with normal quantiles, P(any) <= 5 %. Labels of one unit are taken as fully correlated.
    """
    from scipy.special import ndtri

    b, largest = len(surplus), 1.0 if weight is None else float(weight.max())
    pair, bin_of_pair = bin_of, bin_of
    if units is not None:
        present, unit = np.unique(units, return_inverse=True)
        pairs, pair = np.unique(bin_of * len(present) + unit, return_inverse=True)
        bin_of_pair = pairs // len(present)
        largest = float(np.bincount(pair, weight).max())
    variance = np.empty_like(surplus)
    for k, q in enumerate(outputs):
        deviation = weighted(np.sqrt(q * (1 - q)), weight)
        each = deviation if units is None else np.bincount(pair, deviation)
        variance[:, k] = np.bincount(bin_of_pair, each**2, b)
    z = float(-ndtri(_FALSE_SURPLUS / 2 / max(surplus.size, 1)))
    return np.abs(surplus) > z * np.sqrt(variance) + z * z / 3 * largest


def _softmax(logits: Float64s) -> Float64s:
    """Normalise over the first axis."""
    logits -= logits.max(axis=0)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=0)
    return logits
