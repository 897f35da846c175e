"""Weights of a mixture of known distributions, by maximum likelihood or least squares."""

from collections.abc import Callable, Sequence
from itertools import chain, combinations

import numpy as np

from truecal.recalibrate.solvers.likelihood import LabelledLogits, scaled_softmax
from truecal.types import Float64s

_STEPS = 200


def mixture_weights(likelihoods: Float64s, weights: Float64s) -> Float64s:
    """Shares a >= 0, sum 1, that maximise sum_i w_i log(likelihoods_i @ a); likelihoods (n, m), m small.

    Active-set Newton: the log likelihood is concave, and at its maximum the gradient of a part is n where a > 0 and at
    most n where a = 0. Rows in which no part has any likelihood say nothing and are left out.
    """
    kept = likelihoods.max(axis=1) > 0
    q, w = likelihoods[kept], weights[kept]
    parts = q.shape[1]
    share = np.full(parts, 1.0 / parts)
    if not len(q):
        return share
    total = w.sum()

    def loss(a: Float64s) -> float:
        mixed = q @ a
        return float(-(w @ np.log(mixed))) if (mixed > 0).all() else np.inf

    value = loss(share)
    for _ in range(_STEPS):
        ratio = q / (q @ share)[:, None]
        gradient = ratio.T @ w / total
        # free parts: those with a share, and those that would gain one
        free = (share > 0) | (gradient > 1 + 1e-12)
        if np.abs((gradient - 1)[share > 0]).max() < 1e-12 and not (free & (share == 0)).any():
            break
        step = _newton(ratio[:, free], w / total, gradient[free])
        direction = np.zeros(parts)
        direction[free] = step
        share, value, moved = _moved(share, direction, value, loss)
        if not moved:
            # one step of expectation-maximisation never makes it worse
            share = share * gradient / (share @ gradient)
            after = loss(share)
            if not after < value - 1e-14 * abs(value):
                break
            value = after
    return share / share.sum()


def squared_weights(data: LabelledLogits, inverses: Sequence[float], low: Float64s) -> Float64s:
    """Shares a >= low, sum 1, of softmax(b_j z) and, last, the uniform distribution, with the least squared error to the labels.

    The error is a' G a - 2 r' a, with the products G of the parts and their values r at the labels. Every choice of parts at
    their lowest share is tried (parts are few); the first with the least error counts.
    """
    parts = len(low)
    products, rewards = np.zeros((parts, parts)), np.zeros(parts)
    for rows in data.blocks(8):
        z = data.logits[rows]
        p = np.stack([*(scaled_softmax(z, b) for b in inverses), np.full(z.shape, 1 / z.shape[1])])
        weights = np.ones(p.shape[1]) if data.weights is None else data.weights[rows]
        products += np.einsum("ink,jnk,n->ij", p, p, weights) / data.total
        rewards += p[:, np.arange(p.shape[1]), data.labels[rows]] @ weights / data.total
    best, least = low, np.inf
    for free in map(list, chain.from_iterable(combinations(range(parts), size) for size in range(1, parts + 1))):
        tried = low.copy()
        tried[free] = 0.0
        system = np.ones((len(free) + 1, len(free) + 1))
        system[:-1, :-1], system[-1, -1] = products[np.ix_(free, free)], 0.0
        goal = np.append((rewards - products @ tried)[free], 1 - tried.sum())
        tried[free] = np.linalg.lstsq(system, goal, rcond=None)[0][:-1]
        error = float(tried @ products @ tried - 2 * rewards @ tried)
        if (tried >= low - 1e-12).all() and error < least - 1e-15:
            best, least = np.maximum(tried, low), error
    return best / best.sum()


def _newton(ratio: Float64s, w: Float64s, gradient: Float64s) -> Float64s:
    """The Newton step of the free shares that keeps their sum."""
    count = len(gradient)
    system = np.ones((count + 1, count + 1))
    system[:count, :count] = (ratio * w[:, None]).T @ ratio + 1e-12 * np.eye(count)
    system[count, count] = 0.0
    solution: Float64s = np.linalg.lstsq(system, np.append(gradient, 0.0), rcond=None)[0]
    return solution[:count]


def _moved(
    share: Float64s, direction: Float64s, value: float, loss: Callable[[Float64s], float]
) -> tuple[Float64s, float, bool]:
    """The longest of the halved steps that stays in the simplex and improves."""
    falling = direction < 0
    most = float((share[falling] / -direction[falling]).min()) if falling.any() else 1.0
    length = min(1.0, most)
    while length > 1e-8:
        tried = np.maximum(share + length * direction, 0.0)
        tried[tried < 1e-15] = 0.0
        tried /= tried.sum()
        after = loss(tried)
        if after < value - 1e-15 * abs(value):
            return tried, after, True
        length /= 2
    return share, value, False
