"""The profile as the page carries it: prefix sums at every place where any offered binning cuts.

The browser never decides where a bin begins. Python's own edge and tie rules place the cuts of every offered number of bins, and
the page takes differences of the same prefix sums, so its errors equal :class:`truecal.BinnedECE`'s to the last digits.
"""

from dataclasses import dataclass

import numpy as np

import truecal as tc
from truecal.profile import Cut
from truecal.types import Float64s, Indices

MOST_BINS = 100  # equal-width edges of 1..100 bins are 3044 places, equal-mass ones as many: a bounded page for any n
_MOST_SWEEP_BINS = 1000


@dataclass(frozen=True)
class Cells:
    """Prefix sums at the cell borders, and for every binning which borders it uses."""

    weight: Float64s  # sum of weights below each border
    score: Float64s  # sum of scores below each border
    outcome: Float64s
    low: Float64s  # lowest score of each cell
    high: Float64s
    width: list[Indices]  # [b - 1]: borders of b bins of equal width
    mass: list[Indices]
    sweep: Indices | None  # borders of the monotone sweep's bins; None where there are too many to show
    scale: float  # sample size per weight, for the intervals of bins

    @property
    def alone(self) -> int:
        """How many cells hold a single row."""
        return int(np.count_nonzero(np.diff(self.weight) == 1))


def cells_of(profile: tc.Profile) -> Cells:
    """The cells of a single dataset.

    >>> import truecal as tc
    >>> cells = cells_of(tc.Profile.from_arrays([0.1, 0.1, 0.6, 0.9], [0, 1, 1, 1]))
    >>> cells.weight, cells.width[1]  # two bins of equal width: two rows each
    (array([0., 2., 3., 4.]), array([0, 1, 3]))
    """
    width = [_places(profile.width_cut(b)) for b in range(1, MOST_BINS + 1)]
    mass = [_places(profile.mass_cut(b)) for b in range(1, MOST_BINS + 1)]
    settled = int(tc.SweepECE().sweep(profile)[0][0])
    sweep = _places(profile.mass_cut(settled)) if settled <= _MOST_SWEEP_BINS else None
    borders = np.unique(np.concatenate([*width, *mass, *([] if sweep is None else [sweep])]))
    row, next_row = np.floor(borders).astype(np.intp), np.ceil(borders).astype(np.intp)
    cut = Cut(row[None, :], next_row[None, :], (borders - row)[None, :])
    weight, score, outcome = (profile.sums(name, cut)[0] for name in ("w", "c", "y"))
    # a row of a sketch is a cell that reaches from its lowest to its highest score
    low, high = (getattr(profile, end, profile.scores[0]) for end in ("low", "high"))
    return Cells(
        weight,
        score,
        outcome,
        low[row[:-1]].astype(np.float64),
        high[next_row[1:] - 1].astype(np.float64),
        [np.searchsorted(borders, rows) for rows in width],
        [np.searchsorted(borders, rows) for rows in mass],
        None if sweep is None else np.searchsorted(borders, sweep),
        float(profile.size[0] / profile.total[0]),
    )


def _places(cut: Cut) -> Float64s:
    """Where a cut lies, counted in rows; between two whole numbers where it splits a cell of a sketch."""
    return cut.below[0] + (0.0 if cut.fraction is None else cut.fraction[0])
