"""The tally: every cell of a sketch in one dense array, so that rows can be counted in at full speed.

What is summed in a cell, besides the number of rows n: y, r, r*r and r*y, where r is how far the score is above the cell's edge.
The sums of c, c*c and c*y follow from these, and r is exact and small: for float32 scores its sums are exact for billions of
rows, in any order. With weights all of these are weighted, and w and w*w are summed as well. `low` and `high` are the smallest
and largest score seen in a cell; where they are equal the cell is one exact score, not a range.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal.profile.sketch.cells import CELLS, cell_number
from truecal.types import Float64s, Floats, Indices

SUMS = ("n", "y", "r", "rr", "ry", "w", "ww")  # the last two only with weights
_CHUNK = 32_768  # rows counted together: enough to make up for clearing the tables
_PART = 8192  # rows whose cells are found together: memory of more is given back to the system after every step


def row_sums(
    scores: Floats, outcomes: NDArray[np.uint8], weights: Float64s | None
) -> tuple[Indices, dict[str, Float64s]]:
    """The cell of every row and what the row adds to each of its sums, for rows so few that a table of all cells is a waste."""
    number, r = cell_number(scores)
    n, y = np.ones(len(scores)), outcomes.astype(np.float64)
    if weights is None:
        return number, {"n": n, "y": y, "r": r, "rr": r * r, "ry": r * y}
    w = weights
    parts = (n, w * y, w * r, w * r * r, w * r * y, w, w * w)
    return number, dict(zip(SUMS, parts, strict=True))


class Tally:
    """Sums of all cells, shape (5 or 7, CELLS), with the extremes of the scores; arrays may be shared with their owner."""

    def __init__(self, sums: Float64s | None = None, low: Float64s | None = None, high: Float64s | None = None) -> None:
        self.sums = np.zeros((5, CELLS)) if sums is None else sums
        self.low = np.full(CELLS, np.inf) if low is None else low
        self.high = np.full(CELLS, -np.inf) if high is None else high
        self.fraction = 0.0  # largest distance of a weight from a whole number

    @property
    def weighted(self) -> bool:
        return len(self.sums) > 5

    def add(self, scores: Floats, outcomes: NDArray[np.uint8], weights: Float64s | None = None) -> None:
        """Count in rows that were checked at the border."""
        if weights is not None and not self.weighted:
            self.sums = np.concatenate([self.sums, self.sums[:1], self.sums[:1]])
        for start in range(0, len(scores), _CHUNK):
            rows = slice(start, start + _CHUNK)
            self._add(scores[rows], outcomes[rows], None if weights is None else weights[rows])

    def _add(self, scores: Floats, outcomes: NDArray[np.uint8], weights: Float64s | None) -> None:
        if weights is not None and not weights.all():  # a row of weight zero counts as absent
            there = weights > 0
            scores, outcomes, weights = scores[there], outcomes[there], weights[there]
        number, r, values = np.empty(len(scores), np.intp), np.empty(len(scores)), np.empty(len(scores))
        for start in range(0, len(scores), _PART):
            part = slice(start, start + _PART)
            number[part], r[part] = cell_number(scores[part])

        def summed(values: Any) -> Float64s:
            return np.bincount(number, values, CELLS).astype(np.float64, copy=False)

        count = np.bincount(number, minlength=CELLS)
        self.sums[0] += count
        if weights is None:
            np.copyto(values, outcomes)
            self.sums[1] += summed(values)
            self.sums[2] += summed(r)
            self.sums[4] += summed(np.multiply(r, values, out=values))
            self.sums[3] += summed(np.multiply(r, r, out=values))
            if self.weighted:
                self.sums[5:] += count
        else:
            w, y = weights, outcomes
            for name, each in enumerate((w * y, w * r, w * r * r, w * r * y, w, w * w), start=1):
                self.sums[name] += summed(each)
            self.fraction = max(self.fraction, float(np.abs(w - np.rint(w)).max(initial=0.0)))
        np.copyto(values, scores)
        np.abs(values, out=values)  # -0.0 becomes 0.0
        np.minimum.at(self.low, number, values)
        np.maximum.at(self.high, number, values)
