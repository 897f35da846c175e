"""What jumps of the curve add to the squared error beyond the reach of the series.

K smooth terms leave out |m - P m|^2 of a curve that jumps (equation 8a), which is small but, from some ten thousand rows on, larger
than the standard error. A jump stands at one place, so one more term finds it: after the K terms, the step function at every
boundary between cells is fitted to what is left. The largest step counts when it lies more than four standard errors from
nothing, then the next one is looked for, which needs only three. Equations (16b) and (16c) of docs/methods/rank-series.md.
"""

import numpy as np

from truecal.estimate.rank_series.basis import Basis, Cells
from truecal.types import Float64s

_LEAST_ROWS = 1000  # below, series of sqrt(n) / 2 terms are too short for a step to stand out beside them
# Standard errors: of 1,023 steps the largest chance one reaches 3.3 to 3.8. Where there is one jump there are often more.
_FIRST, _FURTHER = 4.0, 3.0
_MOST_JUMPS = 8
_LEAST_PART = 5.0  # rows' worth of a step that the series does not show already
_SAME_RANK = 1e-9
_NEIGHBOURS = 8  # cells to each side over which the noise near a boundary is averaged, for the search alone


def jump_energy(cells: Cells, basis: Basis) -> Float64s:
    """The squared error of the jumps that stand out beside the whole series, of every dataset, shape (m,)."""
    energy = np.zeros(len(cells.n))
    shared = len(cells.count) == 1
    steps: _Steps | None = None
    for i in np.flatnonzero(cells.n >= _LEAST_ROWS):
        if steps is None or not shared:
            at = 0 if shared else int(i)
            steps = _Steps(cells.count[at], cells.rank[at], basis.of(int(i)))
        energy[i] = steps.energy(cells.residual[i], cells.square[i]) / cells.n[i]
    return energy


class _Steps:
    """The steps at all boundaries between different ranks of one dataset, made orthogonal to the series."""

    def __init__(self, count: Float64s, rank: Float64s, waves: Float64s) -> None:
        # Equal scores are one place: their order within a tie says nothing.
        filled = np.flatnonzero(count > 0)
        self.starts = filled[np.flatnonzero(np.diff(rank[filled], prepend=-1.0) > _SAME_RANK)]
        self.count = np.add.reduceat(count, self.starts)
        self.root = np.sqrt(self.count)
        self.waves = np.add.reduceat(waves * np.sqrt(count), self.starts, axis=1) / self.root
        # |s_j - P s_j|^2 of the step over the places up to j, in rows
        self.part = np.cumsum(self.count)[:-1] - (np.cumsum(self.waves * self.root, axis=1)[:, :-1] ** 2).sum(axis=0)

    def energy(self, residual: Float64s, square: Float64s) -> float:
        """n times the squared error of the jumps found in these residuals."""
        left = np.add.reduceat(residual, self.starts) / self.root
        left = left - (self.waves @ left) @ self.waves
        squares = np.add.reduceat(square, self.starts)
        variance, nearby = squares / self.count, self._nearby(squares)
        part, total = self.part.copy(), 0.0
        found: list[Float64s] = []
        while len(found) < _MOST_JUMPS and (usable := part > _LEAST_PART).any():
            gain = np.where(usable, np.cumsum(left * self.root)[:-1] ** 2 / np.where(usable, part, 1.0), 0.0)
            step = self._orthogonal(int(np.argmax(gain / nearby)), found)
            height = float(step @ left)
            noise = float(step**2 @ variance)
            if height**2 <= (_FURTHER if found else _FIRST) ** 2 * noise:
                break
            total += height**2 - noise
            left = left - height * step
            part -= np.cumsum(step * self.root)[:-1] ** 2
            found.append(step)
        return total

    def _nearby(self, squares: Float64s) -> Float64s:
        """Mean squared residual of the rows within reach of every boundary: which steps are large for their noise."""
        places = len(squares)
        right = np.arange(1, places)
        low, high = np.maximum(right - _NEIGHBOURS, 0), np.minimum(right + _NEIGHBOURS, places)
        sums, rows = (np.concatenate([[0.0], np.cumsum(values)]) for values in (squares, self.count))
        mean = (sums[high] - sums[low]) / (rows[high] - rows[low])
        return np.where(mean > 0, mean, np.inf)

    def _orthogonal(self, last: int, found: list[Float64s]) -> Float64s:
        """The step over the cells up to `last`, orthogonal to the series and to earlier steps, of unit length."""
        step = np.where(np.arange(len(self.root)) <= last, self.root, 0.0)
        step = step - (self.waves @ step) @ self.waves
        for other in found:
            step = step - (other @ step) * other
        length = float(np.sqrt(step @ step))
        return step / length if length > 0 else step
