"""Where the sweep of all rows may stop, given the cells, and between which errors it then lies.

The sweep goes on while outcome rates rise from bin to bin. A cut through a cell leaves them open a little, so from a sketch it may
be uncertain whether they still rise; then all rows may stop at another number of bins than the sketch does.
"""

from dataclasses import dataclass

import numpy as np

from truecal.estimate.binning import Binning
from truecal.estimate.sketched.boxes import Range, binned_range, boxes, picked
from truecal.profile import CellProfile

_ROUNDING = 1e-12  # of a rate
_MOST_BINS = 1024  # after so many the sweep is not followed any further


@dataclass(frozen=True)
class Stops:
    """The sweep of all rows stops at one of the numbers of bins from `first` to `last` (None: no end is known), and the p-th power
    of its error lies within `power`."""

    first: int
    last: int | None
    power: tuple[float, float]

    def __str__(self) -> str:
        if self.last is None:
            return f"{self.first} bins or more"
        return f"{self.first} bins" if self.first == self.last else f"{self.first} to {self.last} bins"


def sweep_stops(profile: CellProfile, binning: Binning, norm: float) -> Stops:
    """All numbers of bins at which the sweep of all rows may stop, and the range of the error over them."""
    fewest, most = _most(profile)
    first, low, high = 0, np.inf, -np.inf
    here = boxes(profile, binning, 1)
    for b in range(1, _MOST_BINS):
        after = boxes(profile, binning, b + 1)
        rising, falling = _rises(picked(after.rate(), after.weight.high > 0))
        if not rising or b >= fewest:  # the sweep may end here
            first = first or b
            ends = binned_range(here, norm)
            low, high = min(low, ends[0]), max(high, ends[1])
        if falling or b >= most:
            return Stops(first, b, (low, high))
        here = after
    return Stops(first or _MOST_BINS, None, _any_bins(norm, profile))


def _most(profile: CellProfile) -> tuple[int, float]:
    """The sweep does not go beyond the number of rows."""
    rows = float(profile.total[0]) if profile.counted else float(profile.row_count)
    return int(rows), rows


def _any_bins(norm: float, profile: CellProfile) -> tuple[float, float]:
    """Range of a binned error whatever the bins: by Jensen's inequality, from that of one bin to that of every row by itself."""
    whole = boxes(profile, Binning(1, "width", "keep", "left"), 1)
    lowest = float(whole.gap().low[0])
    squared = float(whole.square.high[0]) / whole.total
    if norm == np.inf:
        return lowest, 1.0
    return lowest**norm, squared ** (norm / 2) if norm <= 2 else squared


def _rises(rate: Range) -> tuple[bool, bool]:
    """Whether rates surely do not fall, and whether they surely do."""
    so_far = np.maximum.accumulate(rate.high)
    surely = bool((so_far[:-1] <= rate.low[1:] + _ROUNDING).all())
    least = np.maximum.accumulate(rate.low)
    return surely, bool((least[:-1] > rate.high[1:] + 2 * _ROUNDING).any())
