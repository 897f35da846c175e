"""The Profile of a sketch: one row per cell, which knows that its rows are cells."""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from truecal.profile.cut import Cut, every_edge
from truecal.profile.profile import Profile
from truecal.types import Float64s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truecal.profile.sketch import Sketch

_FLOATS: dict[int, type[np.floating[Any]]] = {2: np.float16, 4: np.float32, 8: np.float64}


class CellProfile(Profile):
    """Rows are cells: weight the sum of weights, score and outcome the means, squares and products kept.

    `low` and `high` are the extreme scores of each cell, shape (rows,); `row_count` is the number of predictions behind all of them
    and `precision` the type of their scores.
    """

    def __init__(self, sketch: "Sketch") -> None:
        sums, edge = sketch.sums, sketch.edges
        w = sums["w"]
        r, rr, ry, y = (sums[name] / w for name in ("r", "rr", "ry", "y"))
        self.low, self.high = sketch.low, sketch.high
        score = np.clip(edge + r, self.low, self.high)  # of a cell that holds one score, exactly that score
        squares = edge * edge + 2 * edge * r + rr
        products = edge * y + ry
        self.row_count = sketch.rows
        self._whole = sketch.fraction == 0
        self._size = np.array([w.sum() if self._whole else w.sum() ** 2 / sums["ww"].sum()])
        self.precision = _FLOATS[sketch.precision]
        super().__init__(score[None], y[None], w[None], squares[None], products[None], single=True)

    @property
    def rounding(self) -> float:
        """How far a sum over all rows, as a share of their total weight, can be off by the rounding of additions in any order."""
        return 1e-13 + 1.2e-16 * self.row_count

    @property
    def counted(self) -> bool:
        """Whether weights count repetitions: of the rows, not of the cells."""
        return self._whole

    @property
    def size(self) -> Float64s:
        """Sample size of the rows behind the cells."""
        return self._size

    def width_cut(self, bins: "int | Sequence[int]", closed: Literal["left", "right"] = "left") -> Cut:
        """As for any Profile, with edges in the precision of the scores that were counted in, not of their means."""
        k, b = every_edge(bins)
        place = self.places((k / b).astype(self.precision), closed)
        place[:, k == 0], place[:, k == b] = 0, self.rows
        return Cut(place, place)
