"""The rows behind the cells of a sketch, made up: put into extreme orders to see how far an estimate can move."""

import numpy as np
from numpy.typing import NDArray

from truecal.profile import CellProfile, Profile
from truecal.types import Float64s


def arranged(profile: CellProfile, zeros_first: NDArray[np.bool_]) -> Profile:
    """Every cell of several scores as two rows, its zeros and its ones, in the order asked for; all sums stay what they were.

    A cell of zeros only, or of ones only, is halved.
    """
    assert profile.weights is not None
    assert profile.squares is not None
    assert profile.products is not None
    weight, score, rate = profile.weights[0], profile.scores[0].astype(np.float64), profile.outcomes[0]
    ranged = profile.low < profile.high
    mixed = (rate > 0) & (rate < 1)
    first = np.where(mixed, np.where(zeros_first, 1 - rate, rate), 0.5)  # share of the cell's weight that comes first
    down, up = (score - profile.low) / np.maximum(1 - first, 1e-300), (profile.high - score) / np.maximum(first, 1e-300)
    room = np.minimum(down, up)
    room = np.where(ranged, np.maximum(room, 0.0) / 2, 0.0)
    lower, upper = score - room * (1 - first), score + room * first
    some = np.rint(weight * first) if profile.counted else weight * first
    cell = np.repeat(np.arange(profile.rows), np.where(ranged, 2, 1))
    second = np.zeros(len(cell), bool)
    second[1:] = cell[1:] == cell[:-1]
    split = ranged[cell]

    def rows(whole: Float64s, before: Float64s, after: Float64s) -> Float64s:
        return np.where(split, np.where(second, after[cell], before[cell]), whole[cell])[None]

    ones = profile.products[0] / np.where(rate > 0, rate, 1.0)  # mean c of the ones, which zeros do not have
    before = np.where(mixed, np.where(zeros_first, 0.0, 1.0), rate)
    after = np.where(mixed, 1.0 - before, rate)
    return Profile(
        np.maximum.accumulate(rows(score, lower, upper), axis=1),
        rows(rate, before, after),
        rows(weight, some, weight - some),
        rows(profile.squares[0], profile.squares[0], profile.squares[0]),
        rows(profile.products[0], ones * before, ones * after),
        single=True,
    )
