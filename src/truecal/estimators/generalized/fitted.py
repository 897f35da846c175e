"""What outputs would describe the labels better: q_k proportional to p_k^a exp(b_k).

The exponent a says that a model is over- or underconfident. An offset b_k is fitted for the one event that stands for all
others (the rest of a top-k lens, the complement of one probability), and for events that are seen so much more or less often
than expected that chance does not explain it: beyond the two-sided 5 % point of a normal variable, corrected for the number of
events, and Bernstein's allowance for small counts. So a calibrated model keeps its outputs but for one or two numbers.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from truecal.estimators.generalized.binning import weighted
from truecal.lenses.lens import Sample
from truecal.special import kish
from truecal.types import Float64s, Floats, Indices

_LEAST_OUTPUT = 1e-12  # smaller ones have no logarithm to speak of
_NUMBERS = 2_000_000  # probabilities that are fitted; of larger samples every m-th row
_BLOCK = 1 << 14  # rows whose outputs are worked on together
_STEPS = 25  # of Newton's method
_CLOSE = 1e-4
_LONGEST = 0.5  # step of a parameter
_PRIOR = 1.0  # rows' worth of a normal prior on offsets: an event that was never seen has none that is finite
_FALSE = 0.05  # chance that any event or cell stands out though nothing is wrong


def fitted_outputs(sample: Sample) -> Float64s:
    """Outputs with exponent and offsets of largest likelihood, shape (d, n)."""
    columns = sample.columns
    weight = np.ones(len(sample)) if sample.weights is None else sample.weights
    weight = weight * float(kish(weight) / weight.sum())  # as many as the rows they are worth
    every = slice(None, None, max(1, -(-columns.size // _NUMBERS)))
    logs = logs_of(columns[:, every])
    free = np.zeros(len(logs), bool)
    if sample.implied is not None:
        free[sample.implied] = True
    units = None if sample.units is None else sample.units[every]
    fit = _Fit(logs, sample.labels[every], weight[every], units)
    exponent, offset = fit.newton(free, 1.0, np.zeros(len(logs)))
    standing = fit.standing(exponent, offset) & ~free
    if standing.any():
        exponent, offset = fit.newton(free | standing, exponent, offset)
    outputs = np.empty(columns.shape)
    for rows in blocks(columns.shape[1]):
        outputs[:, rows] = _softmax(exponent * logs_of(columns[:, rows]) + offset[:, None])
    return outputs


def blocks(rows: int) -> Iterator[slice]:
    """Rows a few at a time: what is made of them on the way stays in cache."""
    return (slice(start, start + _BLOCK) for start in range(0, rows, _BLOCK))


def logs_of(columns: Floats) -> Float64s:
    """Logarithms of outputs in double precision, those of the smallest cut off."""
    return np.log(np.maximum(columns.astype(np.float64, copy=False), _LEAST_OUTPUT))


class _Fit:
    def __init__(self, logs: Float64s, labels: Indices, weight: Float64s, units: Indices | None) -> None:
        self.logs, self.weight, self.units = logs, weight, units
        self.own = float(weight @ logs[labels, np.arange(len(labels))])
        self.seen = np.bincount(labels, weight, len(logs))

    def newton(self, free: NDArray[np.bool_], exponent: float, offset: Float64s) -> tuple[float, Float64s]:
        """The exponent and the free offsets of largest likelihood, from a start."""
        w, offset = self.weight, offset.copy()
        logs, squares, of_free = self.logs, self.logs**2, self.logs[free]
        # Memory for all steps: what is new comes from the system, page by page
        q, product = np.empty_like(logs), np.empty_like(logs)
        for _ in range(_STEPS):
            np.multiply(exponent, logs, out=q)
            q += offset[:, None]
            _softmax(q, out=q)
            mean = np.multiply(q, logs, out=product).sum(axis=0)
            of_events = q[free]
            slope = np.concatenate([[self.own - w @ mean], (self.seen - q @ w)[free] - _PRIOR * offset[free]])
            curve = np.empty((len(slope), len(slope)))
            curve[0, 0] = w @ (np.multiply(q, squares, out=product).sum(axis=0) - mean**2) + 1e-9
            curve[0, 1:] = curve[1:, 0] = (of_events * (of_free - mean)) @ w
            curve[1:, 1:] = np.diag(of_events @ w + _PRIOR) - (of_events * w) @ of_events.T
            step = np.clip(np.linalg.lstsq(curve, slope, rcond=None)[0], -_LONGEST, _LONGEST)
            exponent = float(np.clip(exponent + max(step[0], -0.5 * exponent), 0.02, 10.0))
            offset[free] += step[1:]
            if np.abs(step).max() < _CLOSE:
                break
        return exponent, offset

    def standing(self, exponent: float, offset: Float64s) -> NDArray[np.bool_]:
        """Events seen so often or so rarely that chance does not explain it."""
        q = _softmax(exponent * self.logs + offset[:, None])
        surplus = (self.seen - q @ self.weight)[None]
        return beyond_chance(surplus, q, self.weight, np.zeros(q.shape[1], np.intp), self.units)[0]


def beyond_chance(
    surplus: Float64s, outputs: Float64s, weight: Float64s | None, bin_of: Indices, units: Indices | None
) -> NDArray[np.bool_]:
    """Which surpluses (b, d) of labels over outputs (d, n) chance does not explain, for rows in the bins `at`.

    By Bernstein's inequality with normal quantiles, P(any) <= 5 %. Labels of one unit are taken to be as correlated as they can be.
    """
    from scipy.special import ndtri

    b, heaviest = len(surplus), 1.0 if weight is None else float(weight.max())
    pair, first = bin_of, None
    if units is not None:
        present, unit = np.unique(units, return_inverse=True)
        pairs, pair = np.unique(bin_of * len(present) + unit, return_inverse=True)
        first = pairs // len(present)
        heaviest = float(np.bincount(pair, weight).max())
    variance = np.empty_like(surplus)
    squares = None if weight is None else weight**2
    for k, q in enumerate(outputs):
        if first is None:
            variance[:, k] = np.bincount(bin_of, weighted(q, squares) * (1 - q), b)
        else:
            variance[:, k] = np.bincount(first, np.bincount(pair, weighted(np.sqrt(q * (1 - q)), weight)) ** 2, b)
    z = float(-ndtri(_FALSE / 2 / max(surplus.size, 1)))
    return np.abs(surplus) > z * np.sqrt(variance) + z * z / 3 * heaviest


def _softmax(logits: Float64s, out: Float64s | None = None) -> Float64s:
    """Over the first axis."""
    power = np.subtract(logits, logits.max(axis=0), out=out)
    np.exp(power, out=power)
    power /= power.sum(axis=0)
    return power
