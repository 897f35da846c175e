"""Recalibrated outputs, along which a binned error is measured without bias: one exponent, and offsets of events.

Outputs q_k proportional to p_k^a exp(b_k) are fitted by maximum likelihood. The exponent a is for over- and
underconfidence. An offset b_k is fitted for the event that stands for all others (the rest of a top-k lens, the complement
of one probability), and for events whose surplus is beyond chance. So the direction depends on the labels by one or two
numbers. It has no meaning for a calibrated model, which the test of calibration is for.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from truecal.estimators.generalized.binning import weighted
from truecal.lenses.lens import Sample
from truecal.special import kish
from truecal.types import Float64s, Floats, Indices

_MIN_OUTPUT = 1e-12  # derived: the logarithm of a smaller output is that of rounding
_FITTED = 2_000_000  # by choice: a million rows of two events give the exponent to 0.2 %; of more every m-th row
_BLOCK = 1 << 14  # derived: rows whose outputs stay in a cache of 1 MiB
_STEPS = 25  # derived: Newton steps; 18 of 0.5 lead from an exponent of 1 to its limit of 10
_CONVERGED = 1e-4  # by choice: a change of a parameter far below its standard error of 0.02 at 2500 rows
_MAX_STEP = 0.5  # by choice: log-likelihoods are near to quadratic over so small a change of a parameter
_PRIOR = 1.0  # derived: one row, so that the offset of an event that was never observed is finite
_FALSE_SURPLUS = 0.05  # by choice: probability that any event or cell of a calibrated model is taken to have a surplus


def fitted_outputs(sample: Sample) -> Float64s:
    """Recalibrate all outputs p to q_k proportional to p_k^a exp(b_k), by maximum likelihood of a and b, shape (d, n).

    Offsets b other than 0 are those of the implied event and of events whose surplus is beyond chance, with a normal prior of
    variance 1. Above two million probabilities every m-th row is fitted.
    """
    columns = sample.columns
    weight = np.ones(len(sample)) if sample.weights is None else sample.weights
    weight = weight * float(kish(weight) / weight.sum())  # the sum is the effective number of rows
    every_mth = slice(None, None, max(1, -(-columns.size // _FITTED)))
    free = np.zeros(len(columns), bool)
    if sample.implied is not None:
        free[sample.implied] = True
    logs, weight = log_outputs(columns[:, every_mth]), weight[every_mth]
    counts = np.bincount(sample.labels[every_mth], weight, len(logs)).astype(np.float64)
    likelihood = float(weight @ logs[sample.labels[every_mth], np.arange(len(weight))])
    exponent, offset = _newton(logs, weight, counts, likelihood, free, 1.0, np.zeros(len(logs)))
    outputs = _softmax(exponent * logs + offset[:, None])
    units = None if sample.units is None else sample.units[every_mth]
    one_bin = np.zeros(len(weight), np.intp)
    surplus = beyond_chance((counts - outputs @ weight)[None], outputs, weight, one_bin, units)[0] & ~free
    if surplus.any():
        exponent, offset = _newton(logs, weight, counts, likelihood, free | surplus, exponent, offset)
    outputs = np.empty(columns.shape)
    for rows in row_blocks(columns.shape[1]):
        outputs[:, rows] = _softmax(exponent * log_outputs(columns[:, rows]) + offset[:, None])
    return outputs


def row_blocks(rows: int) -> Iterator[slice]:
    """Yield consecutive slices of up to 16,384 rows, which stay in cache; together they are all `rows` rows.

    >>> list(row_blocks(20_000))
    [slice(0, 16384, None), slice(16384, 32768, None)]
    """
    return (slice(start, start + _BLOCK) for start in range(0, rows, _BLOCK))


def log_outputs(columns: Floats) -> Float64s:
    """Take natural logarithms in double precision, of outputs raised to at least 1e-12.

    >>> log_outputs(np.array([[1.0, 0.0]])).round(2)
    array([[  0.  , -27.63]])
    """
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
    """Maximise the penalised log-likelihood of q_k proportional to p_k^a exp(b_k) over a and the `free` b; return (a, b).

    `logs` of the outputs p have shape (d, n), `weight` (n,), `free`, bool, and `offset` (d,). The sufficient statistics are the
    `counts` of labels, shape (d,), and the log-`likelihood` of the outputs themselves. The start is `exponent` and `offset`; the
    exponent stays between 0.02 and 10, and sum b^2 / 2 is the penalty of the free offsets.
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
    """Decide which surpluses of labels over outputs are too large for chance, bool (b, d), in bins `bin_of`, shape (n,).

    `surplus` is the weighted number of labels minus the sum of `outputs` (d, n) of every bin and event. With V its variance, sum
    w^2 q (1 - q), and w the largest weight, the bound is z sqrt(V) + z^2 w / 3 (Bernstein's inequality with normal quantiles): a
    calibrated model has any with probability 5 % at most. Labels of one unit are taken as fully correlated.
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
        pair_deviation = deviation if units is None else np.bincount(pair, deviation)
        variance[:, k] = np.bincount(bin_of_pair, pair_deviation**2, b)
    z = float(-ndtri(_FALSE_SURPLUS / 2 / max(surplus.size, 1)))
    return np.abs(surplus) > z * np.sqrt(variance) + z * z / 3 * largest


def _softmax(logits: Float64s) -> Float64s:
    """Compute the softmax of logits (d, n) over the first axis, in place.

    >>> _softmax(np.array([[0.0], [np.log(3.0)]])).round(6)
    array([[0.25],
           [0.75]])
    """
    logits -= logits.max(axis=0)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=0)
    return logits
