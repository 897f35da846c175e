"""Weights of a mixture of known distributions, by maximum likelihood."""

from collections.abc import Callable

import numpy as np

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
