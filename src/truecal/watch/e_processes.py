"""E-processes: evidence that calibration is off by more than a tolerance, valid after every batch.

Derivation: docs/watch.md. Every expert bets on the outcomes of a batch; its capital is a nonnegative supermartingale while the
model is within the tolerance. Scores are counted in cells that are 1/64 wide in the middle, with four per halving of the
distance towards 0 and 1. Their edges are edges of sketch cells, so rows, parts and sketches of the same rows give the same
counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal.special import expit, logsumexp
from truecal.types import Float64s, Indices

# ----------------------------------------------------------------------------------------------------
# Batches: rows or sketches, counted in cells of scores

# Derived: a power of two, so that cells end where sketch cells do. An expert bets on the mean score of a cell, which is then less
# than 1/64 from each of its scores.
_CELLS_PER_UNIT = 64
_SMALLEST_CELL = (
    2.0**-20
)  # derived: scores nearer to 0 or 1 than _MIN_PROBABILITY have the same log odds, hence the same bets


@lru_cache
def edges() -> Float64s:
    """Return the left edges of the cells, ascending from 0 to 1 (the score 1 has a cell of its own), shape (177,).

    Up to 1/2 they are 0, 2^-20 2^k (1 + j/4) for k = 0..13 and j = 0..3, and 1/64, 2/64, ..., 32/64; above 1/2 one minus these.

    >>> len(edges()), edges()[:3].tolist() == [0.0, 2.0**-20, 1.25 * 2.0**-20]
    (177, True)
    """
    halvings = range(round(np.log2(1 / _CELLS_PER_UNIT / _SMALLEST_CELL)))
    tail = [_SMALLEST_CELL * 2.0**k * (1 + j / 4) for k in halvings for j in range(4)]
    low = np.unique(np.concatenate([tail, np.arange(1, _CELLS_PER_UNIT // 2 + 1) / _CELLS_PER_UNIT]))
    return np.unique(np.concatenate([[0.0], low, 1 - low, [1.0]]))


@dataclass(frozen=True)
class Batch:
    """One dataset of one batch: counts of the filled cells, and sums of the residuals x = score - outcome.

    Where rows come in clusters, `units` holds the rows for bets on whole clusters, and the sums of residuals are over
    clusters, each with the mean of its rows.
    """

    n: Float64s  # rows in each cell
    ones: Float64s  # positive outcomes in each cell
    mean: Float64s  # mean score of each cell
    size: float  # independent observations: rows or clusters
    total: float  # sum of x
    squares: float  # sum of x * x
    units: UnitRows | None = None

    @property
    def rows(self) -> int:
        """Number of rows, the sum of `n`.

        >>> Batch.from_sketch(tc.Sketch.from_arrays([0.2, 0.5, 0.5], [0, 1, 1])).rows
        3
        """
        return round(float(self.n.sum()))

    def __add__(self, other: Batch) -> Batch:
        """Add the counts and sums of another batch, cell by cell; the result has no `units`.

        >>> a = Batch.from_sketch(tc.Sketch.from_arrays([0.5], [1]))
        >>> (a + a).n, (a + a).total
        (array([2.]), -1.0)
        """
        mean = np.concatenate([self.mean, other.mean])
        n, ones = np.concatenate([self.n, other.n]), np.concatenate([self.ones, other.ones])
        sums = (self.size + other.size, self.total + other.total, self.squares + other.squares)
        return Batch(*_filled_cells(mean, n, ones, n * mean), *sums)

    @property
    def fingerprint(self) -> str:
        """First 16 hex digits of the SHA-256 of cells and counts, the same for rows, parts and sketches of the same rows."""
        counts = np.rint(np.stack([cell_of(self.mean), self.n, self.ones])).astype("<i8")
        return hashlib.sha256(counts.tobytes()).hexdigest()[:16]

    @classmethod
    def from_sketch(cls, sketch: tc.Sketch) -> Batch:
        """Count the rows of a sketch by cell, exactly: rows, ones and mean score of filled cells, sums of x = score - outcome.

        `size` is the number of rows. The weights of the sketch are not used.

        >>> batch = Batch.from_sketch(tc.Sketch.from_arrays([0.25, 0.5, 0.5], [0, 1, 1]))
        >>> batch.n, batch.ones, batch.mean, batch.total, batch.squares  # x = 0.25, -0.5, -0.5
        (array([1., 2.]), array([0., 2.]), array([0.25, 0.5 ]), -0.75, 0.5625)
        """
        sums, edge = sketch.sums, sketch.edges
        n, y, r = sums["n"], sums["y"], sums["r"]
        scores, products = edge * n + r, edge * y + sums["ry"]
        squares = edge * edge * n + 2 * edge * r + sums["rr"] - 2 * products + y
        cells = _filled_cells(edge, n, y, scores)
        return cls(*cells, size=float(n.sum()), total=float(scores.sum() - y.sum()), squares=float(squares.sum()))

    @classmethod
    def from_units(cls, scores: Float64s, outcomes: Float64s, units: Indices) -> Batch:
        """Count rows in clusters `units` (n,): rows, ones and mean score by cell; number, sum and squares of cluster means of
        x.

        x is score - outcome; `units` of the batch holds the rows.

        >>> batch = Batch.from_units(np.array([0.25, 0.5, 0.5]), np.array([0.0, 1.0, 1.0]), np.array([7, 3, 7]))
        >>> batch.size, batch.total, batch.units.starts  # mean x of cluster 3: -0.5, of cluster 7: -0.125
        (2.0, -0.625, array([0, 1]))
        """
        plain = cls.from_sketch(tc.Sketch.from_arrays(scores, outcomes))
        code = np.unique(units, return_inverse=True)[1]
        size = np.bincount(code)
        mean = np.bincount(code, scores - outcomes) / size
        order = np.argsort(code, kind="stable")
        rows = UnitRows(scores[order].astype(np.float64), outcomes[order].astype(np.float64), np.cumsum(size) - size)
        sums = (float(len(size)), float(mean.sum()), float((mean * mean).sum()))
        return cls(plain.n, plain.ones, plain.mean, *sums, rows)


def cell_of(scores: Float64s) -> Indices:
    """Return the position in :func:`edges` of the cell that holds each score in [0, 1].

    >>> bool((edges()[cell_of(np.array([0.0, 0.3, 1.0]))] <= np.array([0.0, 0.3, 1.0])).all())
    True
    """
    return np.searchsorted(edges(), scores, side="right") - 1


def _filled_cells(scores: Float64s, n: Any, ones: Any, score_sums: Any) -> tuple[Float64s, Float64s, Float64s]:
    """Sum rows, positive outcomes and scores by the cell of `scores`; return rows, ones and mean score of cells with rows.

    The arguments have one entry per row or finer cell, the results one per filled cell, ascending.

    >>> scores = np.array([0.25, 0.25, 0.75])
    >>> _filled_cells(scores, np.ones(3), np.array([0.0, 1.0, 1.0]), scores)
    (array([2., 1.]), array([1., 1.]), array([0.25, 0.75]))
    """
    cells, count = cell_of(scores), len(edges())
    rows, ones, sums = (np.bincount(cells, values, count) for values in (n, ones, score_sums))
    filled = np.flatnonzero(rows)
    last = np.append(np.nextafter(edges()[1:], 0.0), 1.0)  # rounding must not carry a mean into the next cell
    mean = np.clip(sums[filled] / rows[filled], edges()[filled], last[filled])
    return rows[filled].astype(np.float64), ones[filled].astype(np.float64), mean


@dataclass(frozen=True)
class UnitRows:
    """Scores and 0/1 outcomes (n,) of rows in the order of their clusters; `starts` (clusters,) is the first row of each."""

    scores: Float64s
    outcomes: Float64s
    starts: Indices

    def parts(self, rows: int) -> Sequence[UnitRows]:
        """Split into parts of about `rows` rows each, without dividing a cluster; a larger cluster makes a larger part.

        >>> rows = UnitRows(np.array([0.1, 0.2, 0.3]), np.zeros(3), np.array([0, 2]))
        >>> [part.scores for part in rows.parts(2)]
        [array([0.1, 0.2]), array([0.3])]
        """
        cuts = np.flatnonzero(np.diff(self.starts // rows)) + 1  # the first unit of every further part
        bounds = self.starts[cuts]
        split = (np.split(values, bounds) for values in (self.scores, self.outcomes))
        starts = np.split(self.starts, cuts)
        return [
            UnitRows(scores, outcomes, units - units[0]) for scores, outcomes, units in zip(*split, starts, strict=True)
        ]


# ----------------------------------------------------------------------------------------------------
# Bets: a fixed mixture of experts, each of which gains if calibration is off in a certain way

# Of local experts and of the diagrams. Tuned on 300 uniform scores a day that fall by 5 points above 0.9: 8 bins take 12.5 days in
# the median, 16 and 32 take 10.5.
_BIN_COUNT = 16
# Log odds; by choice: one row multiplies the capital of an expert by at most exp(7) = 1100, however near to 0 or 1 its score is.
# Tuned: limits of 4 and 14 have the same delays.
_MAX_TILT = 7.0
_MIN_PROBABILITY = (
    1e-6  # log odds are those of a probability at least this far from 0 and 1; derived: they stay below 14
)
_ROWS_AT_ONCE = 4096  # rows of clusters in working memory; derived: with 50 tilts each about 2 MB an array


def _with_both_signs(values: list[float]) -> Float64s:
    """Return -v reversed, then v, of ascending positive values: symmetric and ascending.

    >>> _with_both_signs([1.0, 2.0])
    array([-2., -1.,  1.,  2.])
    """
    return np.array([*(-value for value in reversed(values)), *values])


# Distances beyond the tolerance band; of offsets and slopes beyond about the smallest that leaves the band. Tuned on 48
# combinations of scores, changes and tolerances, 100 streams each (docs/watch.md).
SHIFTS = _with_both_signs([0.01, 0.02, 0.04, 0.08, 0.16, 0.32])
OFFSETS = _with_both_signs([0.06, 0.12, 0.25, 0.5, 1.0])
SLOPES = _with_both_signs([0.05, 0.1, 0.2, 0.4])
LOCAL = _with_both_signs([0.02, 0.04, 0.08, 0.16, 0.32])
# derived: largest change of a probability p: p (1 - p), and that times the log odds of p
_PER_OFFSET, _PER_SLOPE = 0.25, 0.224
# Distances beyond these have a share that falls as 1 / distance; by choice: 300 uniform scores show them within two batches.
_LARGE_SHIFT, _LARGE_OFFSET, _LARGE_LOCAL = 0.1, 0.5, 0.16
_SIZES = {"shift": len(SHIFTS), "offset": len(OFFSETS), "slope": len(SLOPES), "temperature": len(SLOPES)}
_GLOBAL = sum(_SIZES.values())
_TILTS = [*_SIZES.values(), len(LOCAL)]
_MIRROR = np.concatenate([sum(_TILTS[:i]) + np.arange(size)[::-1] for i, size in enumerate(_TILTS)])


class BatchGrowth(NamedTuple):
    """Log growth (experts,) of every expert's capital in a batch, and its log share in a product that begins with the batch."""

    log_growth: Float64s
    log_entry: Float64s


class Bets(NamedTuple):
    """Bets of the experts at given scores, shape (scores, experts): tilt t, log cost log(1 + e (exp(t) - 1)), mirror loss m.

    e is the nearest probability in the tolerance band; m is that of docs/watch.md.
    """

    tilt: Float64s
    cost: Float64s
    mirror_loss: Float64s


@dataclass(frozen=True)
class Experts:
    """The experts of one stream of batches: tolerance, cuts between bins of scores, and log odds that slopes turn around.

    Cuts and centre come from the scores of the first batch alone, so that bets do not depend on their outcomes.
    """

    tolerance: float
    cuts: tuple[float, ...]
    centre: float

    SHARES: ClassVar[dict[str, float]] = {
        "shift": 0.4,
        "offset": 0.15,
        "slope": 0.05,
        "temperature": 0.08,
        "local": 0.32,
    }

    @classmethod
    def of(cls, tolerance: float, n: Float64s, mean: Float64s) -> Experts:
        """Set up the experts from a first batch with `n` rows in cells of mean score `mean`, both (cells,).

        Cuts are the distinct left edges of the cells that hold the 15 inner 16-quantiles; the centre is the mean log odds of
        the rows.

        >>> experts = Experts.of(0.02, np.ones(2), np.array([0.25, 0.75]))
        >>> experts.centre, len(experts.cuts)
        (0.0, 2)
        """
        order = np.argsort(mean)
        total = np.cumsum(n[order])
        quantiles = mean[order][np.searchsorted(total, total[-1] * np.arange(1, _BIN_COUNT) / _BIN_COUNT)]
        # cuts are edges of cells: rounding of a mean score moves no cell into another bin
        cells = cell_of(quantiles)
        cuts = np.unique(edges()[cells[cells > 0]])
        centre = float((n * log_odds(mean)).sum() / n.sum())
        return cls(tolerance, tuple(cuts.tolist()), centre)

    @cached_property
    def spans(self) -> Float64s:
        """Membership (0 or 1) of bins in runs of 1, 2, 4 and 8 bins that divide all bins from the first on, shape (runs, bins).

        The run of all bins is left out, and so are repeated ones; the last run of a width may be shorter. Sorted by first and
        last bin.

        >>> Experts(0.02, (0.25, 0.5), 0.0).spans
        array([[1., 0., 0.],
               [1., 1., 0.],
               [0., 1., 0.],
               [0., 0., 1.]])
        """
        last = len(self.cuts) + 1
        runs = {(i, min(i + width, last)) for width in (1, 2, 4, 8) for i in range(0, last, width)} - {(0, last)}
        members = np.zeros((len(runs), last))
        for row, (first, end) in enumerate(sorted(runs)):
            members[row, first:end] = 1
        return members

    def bin_of(self, scores: Float64s) -> Indices:
        """Return the number of the bin of each score, from 0; a score on a cut belongs to the bin above.

        >>> Experts(0.02, (0.25, 0.5), 0.0).bin_of(np.array([0.1, 0.25, 0.9]))
        array([0, 1, 2])
        """
        return np.searchsorted(np.array(self.cuts), scores, side="right")

    @cached_property
    def kinds(self) -> NDArray[np.str_]:
        """Kind of every expert, "shift", "offset", "slope", "temperature" or "local", in the order of their bets, (experts,).

        >>> kinds = Experts(0.02, (0.25, 0.5), 0.0).kinds
        >>> len(kinds), kinds[0], kinds[-1]
        (78, np.str_('shift'), np.str_('local'))
        """
        sizes = {**_SIZES, "local": len(self.spans) * len(LOCAL)}
        return np.repeat(list(sizes), list(sizes.values()))

    @cached_property
    def prior(self) -> Float64s:
        """Log share of every expert in the mixture, shape (experts,); kinds without experts (one bin) leave their share unused.

        The share of a kind (0.4, 0.15, 0.05, 0.08 and 0.32 in the order of :attr:`kinds`) is divided equally among its experts,
        but falls as 1 / distance beyond shifts of 0.1, offsets of 0.5 and local distances of 0.16.

        >>> round(float(np.exp(Experts(0.02, (0.25, 0.5), 0.0).prior).sum()), 6)
        1.0
        """
        weights = np.ones(len(self.kinds))
        weights[self.kinds == "shift"] = np.minimum(_LARGE_SHIFT / np.abs(SHIFTS), 1.0)
        weights[self.kinds == "offset"] = np.minimum(_LARGE_OFFSET / np.abs(OFFSETS), 1.0)
        weights[self.kinds == "local"] = np.tile(np.minimum(_LARGE_LOCAL / np.abs(LOCAL), 1.0), len(self.spans))
        for kind in np.unique(self.kinds):
            weights[self.kinds == kind] *= self.SHARES[kind] / weights[self.kinds == kind].sum()
        return np.log(weights)

    def play(self, batch: Batch) -> BatchGrowth:
        """Return the log growth (experts,) of every expert's capital by its bets on a batch, and the log share of its entry.

        The growth is the sum over rows of y t - cost, t the tilt at the mean score of the row's cell. Rows in clusters are bet on
        cluster by cluster instead.
        """
        if batch.units is not None:
            return self._play_units(batch.units)
        bets = self.bets(batch.mean)
        return self.enter(batch.ones @ bets.tilt - batch.n @ bets.cost, batch.n @ bets.mirror_loss)

    def enter(self, log_growth: Float64s, mirror_loss: Float64s) -> BatchGrowth:
        """Return `log_growth` with the log share log(2 p / (1 + exp(-M))) of an entry, M = `mirror_loss`, p the prior.

        All arrays are (experts,); log p is :attr:`prior`.
        """
        return BatchGrowth(log_growth, self.prior + np.log(2.0) - np.log1p(np.exp(-mirror_loss)))

    def bets(self, mean: Float64s) -> Bets:
        """Return tilt, log cost and mirror loss of every expert at rows of the scores `mean` (n,), each (n, experts).

        All three are 0 for a local expert where the score is outside its bins.
        """
        cells = cell_of(mean)
        tilt, cost = self._tilts(mean)
        mirror_loss = self._mirror_loss(tilt, edges()[cells], np.append(edges(), 1.0)[cells + 1])
        inside = self.spans.T[self.bin_of(mean), :, None]  # (scores, runs of bins, 1)

        def of_experts(values: Float64s) -> Float64s:
            """Expand values (scores, tilts) to (scores, experts): the local ones once for every run of bins, 0 outside the run."""
            local = inside * values[:, None, _GLOBAL:]
            return np.concatenate([values[:, :_GLOBAL], local.reshape(len(mean), -1)], axis=1)

        return Bets(of_experts(tilt), of_experts(cost), of_experts(mirror_loss))

    def _play_units(self, rows: UnitRows) -> BatchGrowth:
        """Compute the growth by one bet per cluster, the mean of its rows' factors, whose mean is at most 1 under any dependence.

        A row outside an expert's bins has the factor 1. The log growth sums the logs of these means, the mirror loss the means of
        1 - exp(-m).
        """
        growth, mirror_loss = np.zeros(len(self.prior)), np.zeros(len(self.prior))
        for part in rows.parts(_ROWS_AT_ONCE):
            size = np.diff(np.append(part.starts, len(part.scores)))[:, None]
            gains, losses = self.play_rows(part)
            growth += np.log1p(gains / size).sum(axis=0)
            mirror_loss += (losses / size).sum(axis=0)
        return self.enter(growth, mirror_loss)

    def play_rows(self, rows: UnitRows) -> tuple[Float64s, Float64s]:
        """Sum exp(t y) / (1 + e (exp(t) - 1)) - 1, and 1 - exp(-m), over rows of every cluster: both (clusters, experts).

        t, e and m are tilt, nearest probability in the band and mirror loss of :meth:`_tilts` and :meth:`_mirror_loss`.
        """
        tilt, cost = self._tilts(rows.scores)
        gains = np.expm1(rows.outcomes[:, None] * tilt - cost)
        losses = -np.expm1(-self._mirror_loss(tilt, rows.scores, rows.scores))
        return self._sum_clusters(gains, rows), self._sum_clusters(losses, rows)

    def _sum_clusters(self, values: Float64s, rows: UnitRows) -> Float64s:
        """Sum values (rows, tilts) over clusters for every expert, (clusters, experts); rows outside an expert's bins count 0."""
        bins, clusters = len(self.cuts) + 1, len(rows.starts)
        sizes = np.diff(np.append(rows.starts, len(rows.scores)))
        code = np.repeat(np.arange(clusters), sizes) * bins + self.bin_of(rows.scores)
        order = np.argsort(code, kind="stable")
        codes, first = np.unique(code[order], return_index=True)
        local = np.zeros((clusters * bins, len(LOCAL)))
        local[codes] = np.add.reduceat(values[order, _GLOBAL:], first)
        by_span = (self.spans @ local.reshape(clusters, bins, -1)).reshape(clusters, -1)
        return np.concatenate([np.add.reduceat(values[:, :_GLOBAL], rows.starts), by_span], axis=1)

    def _mirror_loss(self, tilt: Float64s, low: Float64s, high: Float64s) -> Float64s:
        """Compute the mirror losses m of tilts t, both (rows, tilts), for rows with scores from `low` to `high`, (rows,) each.

        m is log((1 + e (exp(t) - 1)) / (1 + o (exp(t) - 1))), e and o the edges of the tolerance band on the side of the tilt and
        opposite: the smallest for both ends of the score, and for the tilt and its mirror. Zero without a tolerance.
        """
        if self.tolerance == 0:
            return np.zeros_like(tilt)
        losses, upwards, factor = [], tilt > 0, np.expm1(tilt)
        for score in (low, high):
            down, up = self._band(score)
            near_edge, opposite_edge = np.where(upwards, up, down), np.where(upwards, down, up)
            losses.append(np.log1p(near_edge * factor) - np.log1p(opposite_edge * factor))
        loss = np.minimum(*losses)
        return np.minimum(loss, loss[:, _MIRROR])

    def _band(self, scores: Float64s) -> tuple[Float64s, Float64s]:
        """Return scores (n,) - tolerance and scores + tolerance, within [0, 1], both (n, 1).

        >>> low, high = Experts(0.25, (0.5,), 0.0)._band(np.array([0.125, 0.5]))
        >>> low.ravel(), high.ravel()
        (array([0.  , 0.25]), array([0.375, 0.75 ]))
        """
        return np.maximum(scores - self.tolerance, 0.0)[:, None], np.minimum(scores + self.tolerance, 1.0)[:, None]

    def _tilts(self, scores: Float64s) -> tuple[Float64s, Float64s]:
        """Compute tilts t of global and local experts, (scores, tilts), and the log costs log(1 + e (exp(t) - 1)).

        t is the log odds of an expert's alternative less those of e, the nearest probability in the tolerance band, within [-7,
        7]; 0 where the alternative lies in the band. Alternatives move scores by a shift, an offset or slope in log odds (about
        the centre; temperature: about 0), the local ones by a step in arcsin(sqrt(score)).
        """
        down, up = self._band(scores)
        odds = log_odds(scores)[:, None]
        offsets = OFFSETS + np.sign(OFFSETS) * self.tolerance / _PER_OFFSET
        slopes = SLOPES + np.sign(SLOPES) * self.tolerance / _PER_SLOPE
        angle = np.arcsin(np.sqrt(np.where(LOCAL > 0, up, down))) + LOCAL
        expected = [
            np.where(SHIFTS > 0, up, down) + SHIFTS,
            expit(odds + offsets),
            expit(odds + (odds - self.centre) * slopes),
            expit(odds + odds * slopes),
            np.sin(np.clip(angle, 0, np.pi / 2)) ** 2,
        ]
        alternative = np.clip(np.concatenate(expected, axis=1), 0.0, 1.0)
        edge = np.clip(alternative, down, up)
        tilt = np.clip(log_odds(alternative) - log_odds(edge), -_MAX_TILT, _MAX_TILT)
        return tilt, np.log1p(edge * np.expm1(tilt))


def log_odds(p: Float64s) -> Float64s:
    """Compute log odds with p and 1 - p at least 1e-6, so that they lie within -+ 13.9.

    >>> log_odds(np.array([0.0, 0.5, 0.75])).round(4)
    array([-13.8155,   0.    ,   1.0986])
    """
    return np.asarray(np.log(np.maximum(p, _MIN_PROBABILITY)) - np.log(np.maximum(1 - p, _MIN_PROBABILITY)))


# ----------------------------------------------------------------------------------------------------
# Evidence over time: for "has it ever been off?" and for "has it changed?"

# By choice: a start at batch t costs log(1 / weight), at most log(1000 / 0.85) = 7.1 in the first 1000 batches.
_HORIZON = 1000  # batches over which the weight of starting times is spread evenly
# by choice: weight of a start at the first batch, within the horizon and after it
_FIRST, _EVENLY, _LATER = 0.1, 0.85, 0.05


def starting_weight(batch: int) -> float:
    """Return the weight of a change that begins with this batch (counted from 1); all weights sum to 1.

    0.85 / 1000 up to batch 1000, 0.1 more at the first, and 0.05 / (k (k + 1)) at the k-th after.

    >>> round(sum(starting_weight(t) for t in range(1, 100_001)), 3)
    1.0
    """
    after = batch - _HORIZON
    if after > 0:
        return _LATER / (after * (after + 1))
    return _EVENLY / _HORIZON + (_FIRST if batch == 1 else 0.0)


def unspent_weight(batch: int) -> float:
    """Return the sum of :func:`starting_weight` over all batches after this one (0: before the first batch, 1).

    >>> unspent_weight(0), unspent_weight(1000)
    (1.0, 0.05)
    """
    if batch == 0:
        return 1.0
    after = batch - _HORIZON
    return _LATER / (after + 1) if after >= 0 else _EVENLY * -after / _HORIZON + _LATER


@dataclass(frozen=True)
class Evidence:
    """Log capital (experts,) of every expert over all starting times (`ever`, `change`), and from the best one (`best`).

    `since` (experts,) is the number of the best starting batch, from 1; `batches` how many were counted.
    """

    batches: int
    ever: Float64s
    change: Float64s
    best: Float64s
    since: NDArray[np.int64]

    @classmethod
    def none(cls, experts: Experts) -> Evidence:
        """Return the evidence before the first batch: zero batches, and log capital -inf of every expert.

        >>> nothing = Evidence.none(Experts(0.02, (0.5,), 0.0))
        >>> nothing.batches, nothing.log_e, nothing.log_change
        (0, 0.0, -inf)
        """
        nothing = np.full(len(experts.prior), -np.inf)
        return cls(0, nothing, nothing, nothing, np.zeros(len(nothing), np.int64))

    def after(self, growth: BatchGrowth) -> Evidence:
        """Return the evidence after one more batch: capital so far plus a new start at this batch, times the growth.

        ever' = log(exp(ever) + w exp(log_entry)) + log_growth with w the `starting_weight`, change' the same with w = 1, and best'
        = max(best, log_entry) + log_growth, `since` being this batch where log_entry is larger. Logs are rounded down to float32,
        so that a stored state never overstates the evidence.
        """
        batch, (log_growth, log_entry) = self.batches + 1, growth
        ever = np.logaddexp(self.ever, np.log(starting_weight(batch)) + log_entry) + log_growth
        change = np.logaddexp(self.change, log_entry) + log_growth
        best = np.maximum(self.best, log_entry) + log_growth
        since = np.where(log_entry > self.best, batch, self.since)
        return Evidence(batch, _round_down(ever), _round_down(change), _round_down(best), since)

    @cached_property
    def log_e(self) -> float:
        """Log e-value that calibration was ever off by more than the tolerance: log(sum exp(ever) + unspent weight); 0 at first."""
        return float(np.logaddexp(logsumexp(self.ever), np.log(unspent_weight(self.batches))))

    @cached_property
    def log_change(self) -> float:
        """Log of the Shiryaev-Roberts statistic, log(sum exp(change)).

        Within the tolerance it reaches log N at most once in N batches on average.
        """
        return float(logsumexp(self.change))

    @property
    def start(self) -> int:
        """Batch (counted from 1), `since` of the expert with the largest `best`: the estimated start of the change."""
        return int(self.since[int(np.argmax(self.best))])


def _round_down(values: Float64s) -> Float64s:
    """Return each value as the largest float32 number that is not above it (as float64).

    >>> _round_down(np.array([0.5])), bool(_round_down(np.array([0.1]))[0] < 0.1)
    (array([0.5]), True)
    """
    nearest = values.astype(np.float32)
    return np.where(nearest > values, np.nextafter(nearest, np.float32(-np.inf)), nearest).astype(np.float64)


# ----------------------------------------------------------------------------------------------------
# A confidence sequence for the mean signed error

# Bets of the mixture, and their costs per squared residual (docs/watch.md). Derived: the best bet falls as 1 / sqrt(rows), so half
# octaves from 0.9 down to 0.9 / 2**14.5 serve up to 1e9 rows.
_LAMBDAS = 0.9 * 2.0 ** -np.arange(0.0, 15, 0.5)
_PSI = -np.log1p(-_LAMBDAS) - _LAMBDAS
_BISECTIONS = 60  # derived: 2 / 2**60 is below the spacing of floats near 0.01


@dataclass(frozen=True)
class MeanError:
    """Rows (or clusters) so far, and the sums of their residuals x = score - outcome and of x * x."""

    size: float = 0.0
    total: float = 0.0
    squares: float = 0.0

    def plus(self, size: float, total: float, squares: float) -> MeanError:
        """Return the sums with `size` more rows, the sum `total` of their residuals and `squares` of the squares.

        >>> MeanError(2.0, 0.5, 0.25).plus(2.0, 0.5, 0.25)
        MeanError(size=4.0, total=1.0, squares=0.5)
        """
        return MeanError(self.size + size, self.total + total, self.squares + squares)

    @property
    def mean(self) -> float:
        """Mean residual; 0 before the first row.

        >>> MeanError(4.0, 1.0, 0.5).mean, MeanError().mean
        (0.25, 0.0)
        """
        return self.total / self.size if self.size else 0.0

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return lower and upper limit of the confidence sequence, which hold at all times together with probability 1 - alpha.

        They are mean -+ d within [-1, 1], d the smallest at which the mean of exp(b size d - psi(b) squares) over 30 bets b
        reaches 2 / alpha, with psi(b) = -log(1 - b) - b and b = 0.9 2^(-k/2), k = 0..29.

        >>> [round(end, 4) for end in MeanError(3000, 60.0, 500.0).interval(0.05)]
        [-0.0079, 0.0479]
        """
        cost = _PSI * self.squares
        limit = np.log(2 / alpha) + np.log(len(_LAMBDAS))
        low, high = 0.0, 2.0
        for _ in range(_BISECTIONS):  # bisect for the smallest distance from the mean that is excluded
            distance = (low + high) / 2
            if np.logaddexp.reduce(_LAMBDAS * self.size * distance - cost) >= limit:
                high = distance
            else:
                low = distance
        return max(-1.0, self.mean - high), min(1.0, self.mean + high)


# ----------------------------------------------------------------------------------------------------
# Sums in bins of scores over blocks of batches, short ones for the recent past and long ones for the distant

_BLOCKS_PER_LENGTH = (
    5  # with one more, the two oldest of a length are joined; by choice: a start is known to a fifth of its age
)


@dataclass(frozen=True)
class Blocks:
    """Number of the first batch (from 1) and number of batches of each block; sums of rows, ones and scores, (blocks, 3, bins)."""

    first: tuple[int, ...]
    lengths: tuple[int, ...]
    sums: Float64s

    @classmethod
    def none(cls, experts: Experts) -> Blocks:
        """Return an empty sequence of blocks, with sums of shape (0, 3, bins).

        >>> Blocks.none(Experts(0.02, (0.5,), 0.0)).sums.shape
        (0, 3, 2)
        """
        return cls((), (), np.zeros((0, 3, len(experts.cuts) + 1)))

    def plus(self, number: int, batch: Batch, experts: Experts) -> Blocks:
        """Return the blocks with the batch of this number added as one of length 1; its scores are counted by the experts'
        bins.

        Where more than five blocks have one length, the two oldest of them become one of twice the length. Sums are rounded to
        float32.

        >>> experts, batch = Experts(0.02, (0.5,), 0.0), Batch.from_sketch(tc.Sketch.from_arrays([0.25, 0.75], [0, 1]))
        >>> blocks = Blocks.none(experts)
        >>> for number in range(1, 8):
        ...     blocks = blocks.plus(number, batch, experts)
        >>> blocks.first, blocks.lengths, blocks.sums[0]
        ((1, 3, 4, 5, 6, 7), (2, 1, 1, 1, 1, 1), array([[2. , 2. ],
               [0. , 2. ],
               [0.5, 1.5]]))
        """
        bins, count = experts.bin_of(batch.mean), len(experts.cuts) + 1
        new = [np.bincount(bins, values, count) for values in (batch.n, batch.ones, batch.n * batch.mean)]
        first, lengths, sums = [*self.first, number], [*self.lengths, 1], [*self.sums, np.array(new)]
        length = 1
        while lengths.count(length) > _BLOCKS_PER_LENGTH:  # join the two oldest blocks of this length
            i = lengths.index(length)
            first[i : i + 2], lengths[i : i + 2], sums[i : i + 2] = [first[i]], [2 * length], [sums[i] + sums[i + 1]]
            length *= 2
        # float32 suffices for pictures and advice: counts up to 16 million are exact, and the state is a third smaller
        return Blocks(tuple(first), tuple(lengths), np.array(sums).astype(np.float32).astype(np.float64))

    def split(self, start: int) -> tuple[Float64s, Float64s]:
        """Sum the blocks that begin before batch `start`, and those that begin with it or later: both (3, bins).

        If no block begins that late, the last one counts as later.

        >>> before, later = Blocks((1, 3, 4), (2, 1, 1), np.ones((3, 3, 1))).split(3)
        >>> before.ravel(), later.ravel()
        (array([1., 1., 1.]), array([2., 2., 2.]))
        """
        later = np.array(self.first) >= start
        if not later.any():  # the start lies within the last block
            later[-1] = True
        return self.sums[~later].sum(axis=0), self.sums[later].sum(axis=0)


# ----------------------------------------------------------------------------------------------------
# One dataset watched over time: a group, or one class of it


@dataclass(frozen=True)
class Stream:
    """Experts, their evidence and the mean error since the last restart, and sums in bins for display.

    `batches` and `rows` count all, also those before a restart.
    """

    experts: Experts
    evidence: Evidence
    errors: MeanError
    blocks: Blocks
    batches: int = 0  # in all, restarts included
    rows: int = 0

    @classmethod
    def beginning(cls, tolerance: float, batch: Batch) -> Stream:
        """Set up experts by the scores of a first batch; its outcomes are not used, and its rows not yet counted."""
        experts = Experts.of(tolerance, batch.n, batch.mean)
        return cls(experts, Evidence.none(experts), MeanError(), Blocks.none(experts))

    def after(self, batch: Batch) -> Stream:
        """Return the stream after one more batch: evidence, mean error, sums in bins, and numbers of batches and rows."""
        number = self.batches + 1
        return replace(
            self,
            evidence=self.evidence.after(self.experts.play(batch)),
            errors=self.errors.plus(batch.size, batch.total, batch.squares),
            blocks=self.blocks.plus(number, batch, self.experts),
            batches=number,
            rows=self.rows + batch.rows,
        )

    def restarted(self) -> Stream:
        """Return a copy with no evidence and no mean error, after a repair; experts and the sums for display stay."""
        return replace(self, evidence=Evidence.none(self.experts), errors=MeanError())

    @property
    def start(self) -> int:
        """Batch (of all, from 1) with which a change most likely began: `evidence.start` plus the batches before a restart.

        >>> batch = Batch.from_sketch(tc.Sketch.from_arrays([0.25] * 200, [1] * 200))
        >>> stream = Stream.beginning(0.02, batch).after(batch).after(batch)
        >>> stream.batches, stream.start, stream.rows
        (2, 1, 400)
        """
        return self.batches - self.evidence.batches + self.evidence.start


def log_mean_evidence(logs: list[float], shares: list[float], idle: float = 0.0) -> float:
    """Compute log(sum of share_k e_k + idle) from logs of e-values; shares of 0 are left out, `idle` weighs an e-value of 1.

    -inf without any positive share.

    >>> round(log_mean_evidence([np.log(2.0), np.log(4.0), 99.0], [0.25, 0.25, 0.0], idle=0.5), 6)  # log(0.5 + 1 + 0.5)
    0.693147
    """
    terms = [value + np.log(share) for value, share in zip(logs, shares, strict=True) if share > 0]
    return float(np.logaddexp.reduce([*terms, np.log(idle)] if idle > 0 else terms))
