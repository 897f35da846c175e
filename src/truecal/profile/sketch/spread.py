"""Full cells of a sketch taken apart into rows that could have been in them.

Most cells hold next to nothing of the data. One that holds more, because scores crowd or because most of them are all but 0, hides
the ranks of its rows; an estimator that goes by ranks sees more in evenly spread rows than in one row for all of them.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from truecal.profile.profile import Profile, Sum
from truecal.types import Float64s

if TYPE_CHECKING:
    from truecal.profile.sketch.profile import CellProfile

_FINER = 4  # pieces of a cell are this much smaller than the cells that an estimator makes of the data


def spread(profile: "CellProfile", cells: int, zeros_first: NDArray[np.bool_] | None = None) -> Profile:
    """Rows of at most a small share of the data: of 1 / (4 `cells`), or one prediction.

    Without `zeros_first` every piece has what :meth:`CellProfile.part` takes for it; else the zeros of a cell come before its ones,
    or after them. Scores are spread evenly; the sums of a cell stay what they were but for rounding of weights to whole numbers.
    """
    assert profile.weights is not None
    weight: Float64s = profile.weights[0]
    several = (profile.low < profile.high) & (weight > 1)
    most = max(1.0, float(profile.total[0]) / (_FINER * cells))
    times = np.where(several, np.minimum(np.ceil(weight / most), weight), 1).astype(np.intp)
    cell = np.repeat(np.arange(profile.rows), times)
    first = np.cumsum(times) - times
    place = np.arange(len(cell)) - first[cell]
    places = [np.rint(weight[cell] * (place + step) / times[cell]) for step in (0, 1)]  # whole rows
    start, end = (rows / weight[cell] for rows in places)
    w = places[1] - places[0]

    def piece(name: Sum) -> Float64s:
        return profile.part(name, cell, end) - profile.part(name, cell, start)

    y, cc, cy = (piece(name) for name in ("y", "cc", "cy"))
    room = np.minimum(profile.high - profile.scores[0], profile.scores[0] - profile.low)[cell]
    score = profile.scores[0, cell] + np.where(several[cell], (start + end - 1) * room, 0.0)  # the mean of a cell stays
    if zeros_first is not None:
        rate = profile.outcomes[0, cell]
        begin = np.where(zeros_first[cell], 1 - rate, 0.0)  # where the ones begin
        ones = weight[cell] * np.maximum(np.minimum(end, begin + rate) - np.maximum(start, begin), 0.0)
        y, cy = np.where(several[cell], ones, y), np.where(several[cell], score * ones, cy)
    rows = (np.maximum.accumulate(score), y / w, w, cc / w, cy / w)
    return Profile(*(row[None] for row in rows), single=True)
