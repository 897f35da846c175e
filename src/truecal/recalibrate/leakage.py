"""Which rows a recalibrator has been fitted on, so that nobody measures it on them by accident.

Rows are remembered as 64-bit hashes of their outputs and label, never as data. Outputs of real models are practically
never repeated, so rows seen again are the same rows. Scores from a coarse scale (0.1, 0.2, ...) do repeat: there only a
set that holds the same rows altogether, in any order, can be recognised.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truecal.types import Floats, Indices

_COLUMNS = 16  # columns hashed: enough to tell rows apart, cheap for a thousand classes
_COARSE = 0.9  # below this share of distinct rows, equal rows are taken for chance


@dataclass(frozen=True, eq=False)
class RowsSeen:
    """Hashes of the rows of one fit."""

    hashes: NDArray[np.uint64]  # sorted

    @classmethod
    def of(cls, outputs: Floats, labels: Indices) -> "RowsSeen":
        count = outputs.shape[1]
        columns = np.unique(np.linspace(0, count - 1, min(count, _COLUMNS)).astype(np.intp))
        bits = np.ascontiguousarray(outputs[:, columns], np.float64).view(np.uint64)
        state = labels.astype(np.uint64)
        for column in bits.T:
            state = _mix(state ^ column)
        return cls(np.sort(state))

    def shared_with(self, other: "RowsSeen") -> int:
        """How many rows of `other` were in this fit."""
        if len(self.hashes) == len(other.hashes) and np.array_equal(self.hashes, other.hashes):
            return len(other.hashes)
        if len(np.unique(self.hashes)) < _COARSE * len(self.hashes):
            return 0
        return int(np.isin(other.hashes, self.hashes).sum())


def _mix(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of splitmix64: every input bit changes every output bit."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))
