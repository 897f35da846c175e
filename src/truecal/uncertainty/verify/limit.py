r"""The finite-sample upper limit of a model with few outputs, by inverting a test.

Outputs s_k are known, shares w_k and rates p_k are not; wanted is an upper limit of E = sqrt(sum_k a_k w_k (p_k - s_k)^2). The
statistic is T = sum_k a_k [N_k (y_k - s_k)^2 - noise_k], with the noise of a rate drawn towards the output by two rows, so that no
output is free of noise by chance alone. "E is below t" is promised at level 1 - alpha when T is improbably small under every way in
which E could be exactly t, given the data: p(t) = max P(T <= observed) <= alpha. The limit is the smallest such t.

The ways tried ("nulls") put a part f of t^2 on the outputs that were seen, in three shapes:

- where it gives T the largest variance, within Clopper-Pearson limits of every rate (greedy);
- along the gaps that were seen;
- along the direction in which every output has most room;

and the rest, (1 - f) t^2, on one output that was rare or never seen. The number of rows of a rare output is then Poisson. An output
that was never seen, with an error of at most 1, has at least the share (1 - f) t^2, and stays unseen with probability at most
exp(-n (1 - f) t^2).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from truecal.types import Float64s, Indices
from truecal.uncertainty.verify.cells import OutputCells
from truecal.uncertainty.verify.tails import Null, terms

_BOX = 0.005  # each one-sided Clopper-Pearson limit of a plausible rate: together far below the 5 % of a promise
_RARE = 50  # outputs with fewer rows vary in how often they are seen, too
_PARTS = (1.0, 0.75, 0.5, 0.25, 0.0)  # of t^2 on the outputs seen
_PRECISION = 0.01  # of the limit
_LEAST_ERROR = 1e-6  # limits below this are not told apart


@dataclass(frozen=True, eq=False)
class _Plausible:
    """How far every rate may be from its output, and to which side."""

    cap: Float64s  # largest plausible |p - s| to the chosen side
    side: Float64s  # +1 or -1
    room: Float64s  # the side on which an output has more room


def upper_limit(cells: OutputCells, threshold: float, level: float, *, closed: bool = False) -> tuple[bool, float]:
    """Whether "the error is at least `threshold`" is rejected at 1 - level, and the smallest t of which that can be said.

    The limit is found to one part in a hundred, on the side of the threshold on which it lies. `closed`: the outputs listed are
    all there are.
    """
    below = rejects(cells, threshold, level, closed=closed)
    low, high = (0.0, threshold) if below else (threshold, 1.0)
    while high - low > max(_PRECISION * high, _LEAST_ERROR):
        middle = (low + high) / 2
        if not below and high == 1:  # a limit is nearer to the threshold than to 1, as a rule
            middle = min(middle, 2 * max(low, _LEAST_ERROR))
        if rejects(cells, middle, level, closed=closed):
            high = middle
        else:
            low = middle
    return below, high


def promised(outputs: Float64s, counts: Float64s, ones: Float64s, threshold: float, level: float) -> bool:
    """Whether an error below `threshold` is promised of outputs seen so often, with so many ones; others may exist."""
    seen = counts > 0
    cells = OutputCells(outputs[seen], counts[seen], ones[seen], np.ones(int(seen.sum())), float(counts.sum()))
    return rejects(cells, threshold, level)


def rejects(cells: OutputCells, error: float, level: float, *, closed: bool = False) -> bool:
    """Whether a T as small as observed has probability 1 - level or less under every null of this error."""
    return error > 0 and all(p <= 1 - level for p in _tails(cells, error**2, closed, 1 - level))


def _tails(cells: OutputCells, squared: float, closed: bool, stop: float) -> Iterator[float]:
    """P(T <= observed) under one null after the other, without some that are at most `stop`."""
    s, n_k, a, n = cells.outputs, cells.counts, cells.weight, cells.rows
    seen = a * terms(s, n_k, cells.ones)
    plausible = _plausible(cells)
    shapes = _shapes(cells, plausible)
    least, most = _clopper_pearson(n_k, np.full(len(s), n))
    rare = np.flatnonzero(n_k < _RARE)
    for part in _PARTS:
        for shape in shapes if part > 0 else shapes[:1]:
            gaps = shape(part * squared)
            if gaps is None:
                continue
            rest = (1 - part) * squared
            null = Null(s, n_k, np.clip(s + gaps, 0, 1), a, seen, cells.spread, n * rest)
            if part == 1:
                yield null.tail()
                continue
            unseen = 0.0 if closed else float(np.exp(-n * rest / a.max()))
            if unseen > stop:
                yield unseen * null.tail()
            for j in rare:
                left = (rest + a[j] * n_k[j] / n * gaps[j] ** 2) / a[j]  # what output j takes over
                needed = left / plausible.cap[j] ** 2
                if needed > most[j]:
                    continue
                for share in {max(float(least[j]), needed), max(float(n_k[j] / n), needed)}:
                    rate = float(np.clip(s[j] + plausible.side[j] * np.sqrt(left / share), 0, 1))
                    yield null.tail_with(int(j), n * share, rate)


def _plausible(cells: OutputCells) -> _Plausible:
    s = cells.outputs
    upwards = s < 0.5
    room = np.where(upwards, 1.0, -1.0)
    low, high = _clopper_pearson(cells.ones, cells.counts)
    cap, other = np.where(upwards, high - s, s - low), np.where(upwards, s - low, high - s)
    turned = cap <= 0  # even the far limit of the rate lies on the other side; then the near one does, too
    return _Plausible(np.where(turned, other, cap), np.where(turned, -room, room), room)


def _clopper_pearson(k: Float64s, n: Float64s) -> tuple[Float64s, Float64s]:
    from scipy.special import betaincinv

    low = np.where(k > 0, betaincinv(np.maximum(k, 1), n - k + 1, _BOX), 0.0)
    return low, np.where(k < n, betaincinv(k + 1, np.maximum(n - k, 1), 1 - _BOX), 1.0)


def _shapes(cells: OutputCells, plausible: _Plausible) -> list[Callable[[float], Float64s | None]]:
    """Functions from a squared error to gaps that have it; None where gaps so large are not plausible."""
    s, n_k = cells.outputs, cells.counts
    w = cells.weight * n_k / cells.rows
    rate = cells.ones / np.maximum(n_k, 1)
    excess = np.maximum((rate - s) ** 2 - s * (1 - s) / np.maximum(n_k, 1), 0.0)
    seen = np.sign(rate - s) * np.sqrt(excess) * (n_k > 0)
    p = s + plausible.side * plausible.cap
    order = np.argsort(-cells.weight * (4 * p * (1 - p) + plausible.cap**2), kind="stable")
    return [
        lambda z: _filled(w, plausible, order, z),
        lambda z: _along(s, w, seen, z),
        lambda z: _along(s, w, plausible.room, z),
    ]


def _filled(w: Float64s, plausible: _Plausible, order: Indices, squared: float) -> Float64s | None:
    """Outputs filled up to their caps, those first that give T the largest variance per unit of squared error."""
    gaps, left = np.zeros_like(w), squared
    for j in order:
        if w[j] > 0:
            size = min(float(plausible.cap[j]), float(np.sqrt(left / w[j])))
            gaps[j] = plausible.side[j] * size
            left -= float(w[j]) * size**2
            if left <= 1e-15:
                return gaps
    return None


def _along(s: Float64s, w: Float64s, direction: Float64s, squared: float) -> Float64s | None:
    """Gaps c * direction, cut where a rate would leave [0, 1], with the wanted squared error."""
    most = np.where(direction > 0, 1 - s, s) * (direction != 0)
    if w @ most**2 < squared:
        return None
    size = np.abs(direction)
    high = float(np.sqrt(squared / (w @ size**2)))
    if (high * size <= most).all():
        return high * direction
    low = 0.0
    while w @ np.minimum(high * size, most) ** 2 < squared:
        high *= 4
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if w @ np.minimum(middle * size, most) ** 2 < squared else (low, middle)
    return np.sign(direction) * np.minimum(high * size, most)
