"""Curves as the page carries them."""

import numpy as np

from truecal.estimate.estimate import Curve

_CURVE_POINTS = 400


def thinned(curve: Curve | None, *, steps: bool = False) -> dict[str, list[float]] | None:
    """At most a few hundred points of a curve, spread over its ranks and its scores, ends included; steps keep both their ends."""
    if curve is None:
        return None
    count = len(curve.score)
    index = np.arange(count)
    if count > _CURVE_POINTS:
        by_rank = np.searchsorted(np.cumsum(curve.weight), np.linspace(0, curve.weight.sum(), _CURVE_POINTS // 2))
        by_score = np.searchsorted(curve.score, np.linspace(curve.score[0], curve.score[-1], _CURVE_POINTS // 2))
        index = np.unique(np.clip(np.concatenate([by_rank, by_score, [0, count - 1]]), 0, count - 1))
    if steps:
        index = np.unique(np.concatenate([index // 2 * 2, index // 2 * 2 + 1]))
    return {"score": curve.score[index].tolist(), "outcome": curve.outcome[index].tolist()}
