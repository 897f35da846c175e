"""What the series leaves out, seen in runs of neighbouring ranks.

K smooth terms leave out |m - P m|^2 of a curve that jumps or waves (equation 8a), and no estimate with K terms can tell. Runs
of rows with neighbouring ranks can: the products of different residuals within a run have the mean m^2 of a curve that hardly
changes within it, however fast it changes from run to run. They are noisier than the series, the more so the more runs there
are, and so they speak for the interval alone, above all for its upper end. Equations (16b) to (16e) of
docs/methods/rank-series.md.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from truecal.estimators.rank_series.basis import MOST_CELLS, Cells, terms_paid
from truecal.types import Float64s, Indices

_FREE = (2, 4)  # runs for every term of the series that always speak for the upper end
_GATED = (8, 16)  # ... and that do if they stand out: their noise would make every interval longer
_STANDS_OUT = 1.5  # standard errors by which ...
_CLUSTERS_STAND_OUT = 2.0  # ... and by which those of clusters do
_CERTAIN = 4.0  # standard errors from which on the lower end believes them too
_LEAST_ROWS = 8  # in a run, on average ...
_FREE_ROWS = 16  # ... in one of the longest, in one that need not stand out, and in those of clusters
_LEAST_PAIRED = 1.5  # rows: a run of one has no pairs
_PHASES = 0.75  # variance of the mean over two rows of runs, one half a run further, relative to one of them


class Beyond:
    """The centres for both ends of the interval: the series' own, or larger where runs of neighbours show more, shape (m,)."""

    def __init__(self, cells: Cells, spread: Float64s, centre: Float64s, floor: Float64s) -> None:
        """`spread` is the variance of an outcome in every cell, for the noise of runs; `centre` and `floor` are the series' own."""
        self.most, self.low, self.low_floor = centre.copy(), centre.copy(), floor.copy()
        believed = np.zeros(len(centre), bool)
        terms = terms_paid(cells.n)
        for each in sorted(set(terms.tolist())):  # nearly always one: datasets of a batch have as many rows
            at = np.flatnonzero(terms == each)
            some = cells if len(at) == len(terms) else cells.take(at)
            for gate, found, variance in _seen(some, spread[at], int(each)):
                beyond, error = found - centre[at], np.sqrt(variance)
                speaks = beyond > gate * error
                self.most[at] = np.where(speaks, np.maximum(self.most[at], found), self.most[at])
                # The longest runs that are certain: the least noisy ones
                first = (beyond > _CERTAIN * error) & ~believed[at]
                self.low[at] = np.where(first, found, self.low[at])
                self.low_floor[at] = np.where(first, np.maximum(floor[at], variance), self.low_floor[at])
                believed[at] |= first


def _seen(cells: Cells, spread: Float64s, terms: int) -> Iterator[tuple[Float64s, Float64s, Float64s]]:
    """Standard errors to stand out by, the squared error that runs show (nothing where they would be too short), its variance."""
    known = [(times, min(times * terms, MOST_CELLS)) for times in (*_FREE, *_GATED)]
    longest = float(cells.n.max())
    known = [(times, runs) for times, runs in known if runs * _LEAST_ROWS <= longest]
    enough = known[0][1] * _FREE_ROWS <= cells.n if known else np.zeros(1, bool)
    if not enough.any():
        return
    edges, ends = _all_edges(tuple(runs for _, runs in known))
    sums = np.zeros((4, len(cells.n), cells.rank.shape[1] + 1))
    for held, values in zip(sums, (cells.count, cells.residual, cells.square, spread * cells.count), strict=True):
        held[:, 1:] = values
    rows, residual, square, noise = _between(sums.cumsum(axis=2), _places(cells.rank, edges))
    rows[:, ends[:-1] - 1] = 0.0  # from the last edge of one row of runs to the first of the next there is none
    paired = rows > _LEAST_PAIRED
    others = np.where(paired, rows - 1, np.inf)
    starts = np.concatenate([[0], ends[1:-1:2]])
    found = np.add.reduceat((residual * residual - square) / others, starts, axis=1) / 2
    variance = _PHASES * np.add.reduceat(noise * noise / others / np.where(paired, rows, 1.0), starts, axis=1)
    for j, (times, runs) in enumerate(known):
        long = enough & (runs * _LEAST_ROWS <= cells.n)
        gate = np.where((runs * _FREE_ROWS <= cells.n) & (times in _FREE), 0.0, _STANDS_OUT)
        yield gate, np.where(long, found[:, j] / cells.n, -np.inf), variance[:, j] / cells.n**2


def between_clusters(
    cells: Cells, incidence: Any, residual: Float64s, centre: float, floor: float, terms: int
) -> float:
    """The centre for the upper end of the interval of one dataset when only products of different clusters are taken.

    `incidence` holds the weights of zeros, then of ones, of every cell (lines) and cluster (columns), `residual` theirs. `centre`
    is the estimate of the series and `floor` its variance if there is no error. The smooth terms are all but sums over runs, so
    what runs add to them has the variance of their products less `floor`: what clusters have in common everywhere cancels.
    """
    from scipy.sparse import csr_array

    most, places = centre, np.arange(len(residual))
    for times in (*_FREE, *_GATED):
        runs = times * terms
        if times in _GATED and runs * _FREE_ROWS > float(cells.n[0]):
            break
        place = _places(cells.rank, _edges(runs))[0]
        run = np.tile(np.repeat(np.arange(runs), np.diff(place)), 2)
        rows, sums = (
            csr_array((values, (run, places)), shape=(runs, len(places))) @ incidence
            for values in (np.ones(len(residual)), residual)
        )
        total, both = (np.asarray(each.sum(axis=1)).ravel() for each in (rows, sums))
        pairs = total**2 - np.asarray(rows.power(2).sum(axis=1)).ravel()
        weight = np.where(pairs > 0, total / total.sum() / np.where(pairs > 0, pairs, 1.0), 0.0)
        shown = float(weight @ (both**2 - np.asarray(sums.power(2).sum(axis=1)).ravel()))
        if times in _GATED:
            mean = both / np.where(total > 0, total, 1.0)
            about = sums - csr_array((mean, (np.arange(runs), np.arange(runs))), shape=(runs, runs)) @ rows
            alike = (about @ about.T).power(2)  # squared covariances of runs over clusters
            variance = 2 * float(weight @ (alike @ weight))
            if shown - centre <= _CLUSTERS_STAND_OUT * np.sqrt(max(variance - floor, 0.0)):
                continue
        most = max(most, shown)
    return most


@lru_cache(maxsize=8)
def _all_edges(numbers: tuple[int, ...]) -> tuple[Float64s, Indices]:
    """The edges of all runs in one row, for every number of them once as they are and once half a run further; where each ends."""
    parts = [_edges(runs, further) for runs in numbers for further in (0.0, 0.5)]
    return np.concatenate(parts), np.cumsum([len(part) for part in parts])


def _edges(runs: int, further: float = 0.0) -> Float64s:
    """Ranks between which runs lie, those of the first and last run beyond all ranks."""
    edges = (np.arange(runs + 1 + (further > 0)) - further) / runs
    edges[0], edges[-1] = -0.5, 1.5
    return edges


def _places(rank: Float64s, edges: Float64s) -> Indices:
    """How many cells of every dataset lie below each edge; equal ranks stay together."""
    datasets, cells = rank.shape
    if datasets == 1:
        return np.searchsorted(rank[0], edges)[None]
    apart = 2.0 * np.arange(datasets)[:, None]  # ranks lie between 0 and 1
    return np.searchsorted((rank + apart).ravel(), edges + apart) - cells * np.arange(datasets)[:, None]


def _between(sums: Float64s, place: Indices) -> Float64s:
    """Differences of running sums, shape (kinds, m, cells + 1), between neighbouring places."""
    at = sums[:, :, place[0]] if len(place) == 1 else np.take_along_axis(sums, place[None], 2)
    return np.diff(at, axis=2)
