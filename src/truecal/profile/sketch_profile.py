"""The Profile of a sketch: one row per cell (or per prediction, where the cell gives them back), which knows that it is one."""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from truecal.profile.cut import Cut
from truecal.profile.profile import Profile
from truecal.profile.sketch_rows import rows_of
from truecal.types import Float64s, Indices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truecal.profile.sketch import Sketch

_FLOATS: dict[int, np.dtype[Any]] = {2: np.dtype(np.float16), 4: np.dtype(np.float32), 8: np.dtype(np.float64)}


class CellProfile(Profile):
    """Rows are cells: weight the sum of weights, score and outcome the means, squares and products kept. See `sketch_rows`.

    `low` and `high` are the extreme scores of each row, shape (rows,); `row_count` is the number of predictions behind all of them
    and `precision` the type of their scores.
    """

    def __init__(self, sketch: "Sketch") -> None:
        rows = rows_of(sketch)
        w, ww = sketch.sums["w"], sketch.sums["ww"]
        self.low, self.high = rows.low, rows.high
        self.row_count = sketch.rows
        self._whole = sketch.fraction == 0
        self._size = np.array([w.sum() if self._whole else w.sum() ** 2 / ww.sum()])
        held = (rows.score, rows.outcome, rows.weight, rows.squares, rows.products)
        super().__init__(*(array[None] for array in held), single=True)
        self.precision = _FLOATS[sketch.precision]

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

    def mass_cut(self, bins: "int | Sequence[int] | Indices", ties: Literal["keep", "split"] = "keep") -> Cut:
        """As for any Profile, except that only cells of one score are ties to be kept: other cells are cut where the mass says."""
        cut = super().mass_cut(bins, "split")
        if ties == "split" or cut.fraction is None:
            return cut
        kept = cut.keep_ties()
        several = (cut.fraction > 0) & (self.low < self.high)[np.minimum(cut.below, self.rows - 1)]
        return Cut(
            np.where(several, cut.below, kept.below),
            np.where(several, cut.above, kept.above),
            np.where(several, cut.fraction, 0.0),
        )
