"""The rows behind the cells of a sketch, made up: put into extreme orders to see how far an estimate can move."""

import numpy as np
from numpy.typing import NDArray

from truecal.profile import CellProfile, Profile
from truecal.types import Float64s


def arranged(profile: CellProfile, zeros_first: NDArray[np.bool_]) -> Profile:
    """Every cell of several scores as two rows, its zeros and its ones, in the order asked for; all sums stay what they were.

    A cell of zeros only, or of ones only, is halved. `zeros_first` says it for every cell, shape (m, cells): m datasets.
    """
    assert profile.weights is not None
    assert profile.squares is not None
    assert profile.products is not None
    weight, score, rate = profile.weights[0], profile.scores[0].astype(np.float64), profile.outcomes[0]
    ranged = profile.low < profile.high
    mixed = (rate > 0) & (rate < 1)
    first = np.where(mixed, np.where(zeros_first, 1 - rate, rate), 0.5)  # share of the cell's weight that comes first
    down, up = (score - profile.low) / np.maximum(1 - first, 1e-300), (profile.high - score) / np.maximum(first, 1e-300)
    room = np.where(ranged, np.maximum(np.minimum(down, up), 0.0) / 2, 0.0)
    some = weight * first
    if profile.counted:
        some = np.rint(some)
    kept = np.flatnonzero(np.stack([np.ones(len(ranged), bool), ranged], axis=1))

    def rows(whole: Float64s, before: Float64s, after: Float64s) -> Float64s:
        pairs = np.empty((len(before), profile.rows, 2))
        pairs[..., 0], pairs[..., 1] = np.where(ranged, before, whole), after
        return pairs.reshape(len(before), -1).take(kept, axis=1)

    ones = profile.products[0] / np.where(rate > 0, rate, 1.0)  # mean c of the ones, which zeros do not have
    before = np.where(mixed, np.where(zeros_first, 0.0, 1.0), rate)
    after = np.where(mixed, 1.0 - before, rate)
    return Profile(
        np.maximum.accumulate(rows(score, score - room * (1 - first), score + room * first), axis=1),
        rows(rate, before, after),
        rows(weight, some, weight - some),
        rows(profile.squares[0], profile.squares, profile.squares),
        rows(profile.products[0], ones * before, ones * after),
    )
