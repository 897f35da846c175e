"""How far the nearest-neighbour error of a sketch can be from that of all rows.

A row's window starts where the middle between its first score and the one k rows on passes the row's own score. Replacing the
scores of every cell by its highest or its lowest gives the earliest and the latest start any row of a cell can have; between
the two the surplus of a window moves by no more than the surplus of the cells it may gain and lose, and inside a cell cut by
a window's end by no more than what the cell's zeros and ones can add.
"""

from math import log

import numpy as np

from truecal.estimate.binning import Binning
from truecal.estimate.sketched.boxes import Range, boxes
from truecal.profile import CellProfile
from truecal.types import Float64s

MOST_ROWS = 65_536  # more rows than this are first joined into so many cells of equal mass
STRIPES = 500  # resolution with which the dense region is looked for
DENSE = 8.0  # a stripe is dense when it holds so many times the mass it would hold if scores were uniform


def nearest_range(
    profile: CellProfile, *, neighbors: int | None, alpha: float, region: tuple[float, float] | None, norm: float
) -> tuple[float, float]:
    """Between which numbers the p-th power of the error of all rows lies; neighbors=None: chosen from the data."""
    k = _neighbours(profile, neighbors, alpha, region)
    if k is None or not profile.counted:
        return 0.0, 1.0
    gap = _gaps(profile, *k)
    assert profile.weights is not None
    share = profile.weights[0] / profile.total[0]
    p = norm
    if p == np.inf:
        low, high = float(gap.low.max()), float(gap.high.max())
    else:
        low, high = float(share @ gap.low**p), float(share @ gap.high**p)
    # Beyond so many rows the estimator itself joins rows, which it states to be worth this much
    if profile.row_count > MOST_ROWS:
        low, high = low * (1 - 2e-4), high * (1 + 2e-4)
    return low - profile.rounding, high + profile.rounding


def _gaps(profile: CellProfile, fewest: float, most: float) -> Range:
    """Range of |mean c - mean y| over the windows of the rows of every cell, for windows of `fewest` to `most` rows."""
    weight = profile.prefix("w")[0]
    n = float(weight[-1])
    fewest, most = min(fewest, n), min(most, n)
    score, outcome, product = (profile.prefix(name)[0] for name in ("c", "y", "cy"))
    surplus = score - outcome
    # Zeros' c and ones' 1 - c
    loose = np.where(profile.low < profile.high, np.diff(score + outcome - 2 * product), 0.0)
    walk = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(surplus)) + loose)])  # how much can be gained up to here
    begin, end = weight[:-1], weight[1:]
    first = _start(profile.high, weight, most, profile.low)
    last = _start(profile.low, weight, fewest, profile.high) + 1
    first = np.clip(np.clip(first, begin - most + 1, begin), 0, n - fewest)
    last = np.clip(np.clip(last, end - fewest, end), 0, n - fewest)
    first, last = np.minimum(first, last), np.maximum(first, last)

    def at(place: Float64s, table: Float64s) -> Float64s:
        return np.interp(place, weight, table)

    def cut(place: Float64s) -> Float64s:
        """What a cell cut at a place leaves open."""
        cell = np.clip(np.searchsorted(weight, place, "right") - 1, 0, len(loose) - 1)
        return np.where(place < n, loose[cell], 0.0)

    inside = at(first + fewest, surplus) - at(first, surplus)
    moved = at(last, walk) - at(first, walk) + at(np.minimum(last + most, n), walk) - at(first + fewest, walk)
    moved = moved + cut(first) + cut(last) + cut(first + fewest) + cut(last + most)
    size = Range(inside - moved, inside + moved).absolute()
    return Range(np.minimum(size.low / most, 1.0), np.minimum(size.high / fewest, 1.0))


def _start(ends: Float64s, weight: Float64s, k: float, score: Float64s) -> Float64s:
    """How many windows have their middle below each score, when all rows of a cell have the score in `ends`."""
    starts = np.sort(np.concatenate([weight[:-1], weight[1:] - k]))
    starts = starts[(starts >= 0) & (starts <= weight[-1] - k)]
    last = len(ends) - 1
    left, right = (np.clip(np.searchsorted(weight, s, "right") - 1, 0, last) for s in (starts, starts + k))
    middle = (ends[left] + ends[right]) / 2
    return np.append(starts, weight[-1] - k)[np.searchsorted(middle, score)]


def _neighbours(
    profile: CellProfile, neighbors: int | None, alpha: float, region: tuple[float, float] | None
) -> tuple[float, float] | None:
    """Smallest and largest k that all rows may ask for; None when even the dense region is not certain."""
    n = float(profile.size[0])
    if neighbors is not None:
        k = float(min(neighbors, max(n, 1.0)))
        return k, k
    if region is not None:
        share = _share_in(profile, region)
    else:
        found = _dense(profile)
        if found is None:
            return None
        share = found
    spread = max(1 + np.log(n) - log(alpha), 1.0)
    ends = [float(np.clip(np.rint(n * (1 - s) / spread), 1.0, max(n, 1.0))) for s in (share[1], share[0])]
    return ends[0], ends[1]


def _share_in(profile: CellProfile, region: tuple[float, float]) -> tuple[float, float]:
    """Range of the share of rows in a region: cells surely inside, and cells that reach into it."""
    assert profile.weights is not None
    low, high = region
    sure = (profile.low >= low) & (profile.high <= high)
    possible = (profile.high >= low) & (profile.low <= high)
    total = float(profile.total[0])
    return tuple(float(profile.weights[0, some].sum()) / total for some in (sure, possible))  # type: ignore[return-value]


def _dense(profile: CellProfile) -> tuple[float, float] | None:
    """Range of the share in the dense run of stripes, or None when another run may be the one."""
    box = boxes(profile, Binning(STRIPES, "width", "keep", "left"), STRIPES)
    least, most = box.weight.low / box.total, box.weight.high / box.total
    dense = least * STRIPES >= DENSE
    if (dense != (most * STRIPES >= DENSE)).any():
        return None
    peak = int(least.argmax())
    rivals = np.flatnonzero(most >= least[peak])
    gaps = np.flatnonzero(~dense)
    at = int(np.searchsorted(gaps, peak))
    first = int(gaps[at - 1]) + 1 if at else 0
    last = int(gaps[at]) if at < len(gaps) else STRIPES
    if not dense[peak]:
        return None if dense[rivals].any() else (0.0, 0.0)
    if ((rivals < first) | (rivals >= last)).any():
        return None
    centre = (least + most)[first:last].sum() / 2
    open_ends = ((most - least)[first] + (most - least)[last - 1]) / 2
    return max(float(centre - open_ends), 0.0), min(float(centre + open_ends), 1.0)
