"""E-processes: bets on the outcomes of batches, whose winnings are evidence that calibration is off. Theory: docs/watch.md.

Cells are 1/64 wide in the middle and have four per halving of the distance towards 0 and 1. Their edges are edges of sketch
cells, so a sketch adds up to them exactly: rows, parts and sketches of the same rows give the same cells.
"""

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
# The cells of a watch: batches of rows or sketches, added up in a few hundred cells of scores

_MIDDLE = 64  # cells per unit in the middle
_LEAST = 2.0**-20  # distance from 0 and from 1 below which all scores share a cell


@lru_cache
def edges() -> Float64s:
    """Left edges of the cells, ascending from 0 to 1 (the score 1 has a cell of its own).

    >>> len(edges()), edges()[:3].tolist() == [0.0, 2.0**-20, 1.25 * 2.0**-20]
    (177, True)
    """
    halvings = range(round(np.log2(1 / _MIDDLE / _LEAST)))
    tail = [_LEAST * 2.0**k * (1 + j / 4) for k in halvings for j in range(4)]
    low = np.unique(np.concatenate([tail, np.arange(1, _MIDDLE // 2 + 1) / _MIDDLE]))
    return np.unique(np.concatenate([[0.0], low, 1 - low, [1.0]]))


@dataclass(frozen=True)
class Batch:
    """One dataset of one batch: sums of the filled cells, and of the residuals x = score - outcome of all rows.

    `units` holds, where rows belong together, the rows themselves (score, outcome, unit), for bets on whole units; n and the
    sums of residuals then count units, each with the mean of its rows.
    """

    n: Float64s  # rows in each cell
    ones: Float64s  # outcomes 1 in each
    mean: Float64s  # mean score of each
    size: float  # independent observations: rows, or units
    total: float  # sum of x
    squares: float  # sum of x * x
    units: "UnitRows | None" = None

    @property
    def rows(self) -> int:
        return round(float(self.n.sum()))

    def __add__(self, other: "Batch") -> "Batch":
        """Rows of both, without units."""
        mean = np.concatenate([self.mean, other.mean])
        n, ones = np.concatenate([self.n, other.n]), np.concatenate([self.ones, other.ones])
        sums = (self.size + other.size, self.total + other.total, self.squares + other.squares)
        return Batch(*_filled_cells(mean, n, ones, n * mean), *sums)

    @property
    def fingerprint(self) -> str:
        """Of the counts in the cells: the same for rows, parts and sketches of the same rows."""
        counts = np.rint(np.stack([cell_of(self.mean), self.n, self.ones])).astype("<i8")
        return hashlib.sha256(counts.tobytes()).hexdigest()[:16]

    @classmethod
    def from_sketch(cls, sketch: tc.Sketch) -> "Batch":
        """The cells of a watch from those of a sketch: nothing is approximated, every sum is known."""
        sums, edge = sketch.sums, sketch.edges
        n, y, r = sums["n"], sums["y"], sums["r"]
        scores, products = edge * n + r, edge * y + sums["ry"]
        squares = edge * edge * n + 2 * edge * r + sums["rr"] - 2 * products + y
        cells = _filled_cells(edge, n, y, scores)
        return cls(*cells, size=float(n.sum()), total=float(scores.sum() - y.sum()), squares=float(squares.sum()))

    @classmethod
    def from_units(cls, scores: Float64s, outcomes: Float64s, units: Indices) -> "Batch":
        """Rows that belong to units: the cells of the rows for display, the residuals of the units' means."""
        plain = cls.from_sketch(tc.Sketch.from_arrays(scores, outcomes))
        code = np.unique(units, return_inverse=True)[1]
        size = np.bincount(code)
        mean = np.bincount(code, scores - outcomes) / size
        order = np.argsort(code, kind="stable")
        rows = UnitRows(scores[order].astype(np.float64), outcomes[order].astype(np.float64), np.cumsum(size) - size)
        sums = (float(len(size)), float(mean.sum()), float((mean * mean).sum()))
        return cls(plain.n, plain.ones, plain.mean, *sums, rows)


def cell_of(scores: Float64s) -> Indices:
    """Number of the cell of every score."""
    return np.searchsorted(edges(), scores, side="right") - 1


def _filled_cells(scores: Float64s, n: Any, ones: Any, score_sums: Any) -> tuple[Float64s, Float64s, Float64s]:
    """Rows, outcomes 1 and mean score of the cells with rows, from sums at given scores."""
    cells, count = cell_of(scores), len(edges())
    rows, ones, sums = (np.bincount(cells, values, count) for values in (n, ones, score_sums))
    filled = np.flatnonzero(rows)
    last = np.append(np.nextafter(edges()[1:], 0.0), 1.0)  # rounding must not carry a mean into the next cell
    mean = np.clip(sums[filled] / rows[filled], edges()[filled], last[filled])
    return rows[filled].astype(np.float64), ones[filled].astype(np.float64), mean


@dataclass(frozen=True)
class UnitRows:
    """Rows in the order of their units; `starts` is the first row of every unit."""

    scores: Float64s
    outcomes: Float64s
    starts: Indices

    def parts(self, rows: int) -> "Sequence[UnitRows]":
        """The same in parts of whole units of about so many rows."""
        cuts = np.flatnonzero(np.diff(self.starts // rows)) + 1  # the first unit of every further part
        bounds = self.starts[cuts]
        split = (np.split(values, bounds) for values in (self.scores, self.outcomes))
        starts = np.split(self.starts, cuts)
        return [
            UnitRows(scores, outcomes, units - units[0]) for scores, outcomes, units in zip(*split, starts, strict=True)
        ]


# ----------------------------------------------------------------------------------------------------
# What is bet on: a fixed mixture of experts, each of which wins if calibration is off in a way of its own

_BINS = 16  # of local experts and of the diagrams
_LARGEST_TILT = 7.0  # log odds; larger bets lose almost everything on one row
_LEAST_EXPERTS = 1e-6  # of a probability whose log odds are taken
_ROWS = 4096  # rows of units worked on together


def _both(values: list[float]) -> Float64s:
    """The values in both directions, mirrored."""
    return np.array([*(-value for value in reversed(values)), *values])


# how far beyond the edge of the band; of offsets and slopes: beyond about the smallest that leaves the band
SHIFTS = _both([0.01, 0.02, 0.04, 0.08, 0.16, 0.32])
OFFSETS = _both([0.06, 0.12, 0.25, 0.5, 1.0])
SLOPES = _both([0.05, 0.1, 0.2, 0.4])
LOCAL = _both([0.02, 0.04, 0.08, 0.16, 0.32])
_PER_OFFSET, _PER_SLOPE = 0.25, 0.224  # largest change of a probability p: p (1 - p), and that times the log odds of p
# What 300 uniform scores show within a batch or two (9 of evidence, log 1000 is 7) is found with a small share too
_LARGE_SHIFT, _LARGE_OFFSET, _LARGE_LOCAL = 0.1, 0.5, 0.16
_SIZES = {"shift": len(SHIFTS), "offset": len(OFFSETS), "slope": len(SLOPES), "temperature": len(SLOPES)}
_GLOBAL = sum(_SIZES.values())
_TILTS = [*_SIZES.values(), len(LOCAL)]
_MIRROR = np.concatenate([sum(_TILTS[:i]) + np.arange(size)[::-1] for i, size in enumerate(_TILTS)])


class Played(NamedTuple):
    """A batch as the experts played it, logs: what each won, and the share with which each enters a product that begins with it."""

    won: Float64s
    entry: Float64s


class Bets(NamedTuple):
    """What the experts do at given scores, (scores, experts): tilt, what a row costs, and m of the module's opening."""

    tilt: Float64s
    cost: Float64s
    apart: Float64s


@dataclass(frozen=True)
class Experts:
    """The experts of one stream of batches. `cuts` part the scores into bins, `centre` is the log odds that slopes turn around.

    Both are set from the scores of the first batch alone, so every bet is made before its outcome is known.
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
    def of(cls, tolerance: float, n: Float64s, mean: Float64s) -> "Experts":
        """For a stream whose first batch has n rows at these mean scores."""
        order = np.argsort(mean)
        total = np.cumsum(n[order])
        quantiles = mean[order][np.searchsorted(total, total[-1] * np.arange(1, _BINS) / _BINS)]
        cells = cell_of(
            quantiles
        )  # cuts are edges of cells, so that no rounding of a mean score moves a cell into another bin
        cuts = np.unique(edges()[cells[cells > 0]])
        centre = float((n * log_odds(mean)).sum() / n.sum())
        return cls(tolerance, tuple(cuts.tolist()), centre)

    # ------------------------------------------------------------------ the mixture

    @cached_property
    def spans(self) -> Float64s:
        """Single bins and runs of two, four and eight of them, one row each: 1 where a bin belongs to the run."""
        last = len(self.cuts) + 1
        runs = {(i, min(i + width, last)) for width in (1, 2, 4, 8) for i in range(0, last, width)} - {(0, last)}
        members = np.zeros((len(runs), last))
        for row, (first, end) in enumerate(sorted(runs)):
            members[row, first:end] = 1
        return members

    def bin_of(self, scores: Float64s) -> Indices:
        return np.searchsorted(np.array(self.cuts), scores, side="right")

    @cached_property
    def kinds(self) -> NDArray[np.str_]:
        """Kind of every expert, in the order of the increments."""
        sizes = {**_SIZES, "local": len(self.spans) * len(LOCAL)}
        return np.repeat(list(sizes), list(sizes.values()))

    @cached_property
    def prior(self) -> Float64s:
        """Log share of every expert in the mixture; kinds that cannot play (one bin) leave their share unused."""
        weights = np.ones(len(self.kinds))
        weights[self.kinds == "shift"] = np.minimum(_LARGE_SHIFT / np.abs(SHIFTS), 1.0)
        weights[self.kinds == "offset"] = np.minimum(_LARGE_OFFSET / np.abs(OFFSETS), 1.0)
        weights[self.kinds == "local"] = np.tile(np.minimum(_LARGE_LOCAL / np.abs(LOCAL), 1.0), len(self.spans))
        for kind in np.unique(self.kinds):
            weights[self.kinds == kind] *= self.SHARES[kind] / weights[self.kinds == kind].sum()
        return np.log(weights)

    # ------------------------------------------------------------------ playing

    def play(self, batch: Batch) -> Played:
        """A batch of one stream."""
        if batch.units is not None:
            return self._play_units(batch.units)
        bets = self.bets(batch.mean)
        return self.played(batch.ones @ bets.tilt - batch.n @ bets.cost, batch.n @ bets.apart)

    def played(self, won: Float64s, apart: Float64s) -> Played:
        """From what every expert won and M of the module's opening."""
        return Played(won, self.prior + np.log(2.0) - np.log1p(np.exp(-apart)))

    def bets(self, mean: Float64s) -> Bets:
        """Of rows in cells with these mean scores."""
        cells = cell_of(mean)
        tilt, cost = self._tilts(mean)
        apart = self._apart(tilt, edges()[cells], np.append(edges(), 1.0)[cells + 1])
        inside = self.spans.T[self.bin_of(mean), :, None]  # (scores, runs of bins, 1)

        def of_experts(values: Float64s) -> Float64s:
            local = inside * values[:, None, _GLOBAL:]
            return np.concatenate([values[:, :_GLOBAL], local.reshape(len(mean), -1)], axis=1)

        return Bets(of_experts(tilt), of_experts(cost), of_experts(apart))

    def _play_units(self, rows: UnitRows) -> Played:
        """One bet per unit, the mean of its rows' factors: at most 1 on average however its outcomes depend on each other. A row
        outside an expert's bins counts as 1."""
        won, apart = np.zeros(len(self.prior)), np.zeros(len(self.prior))
        for part in rows.parts(_ROWS):
            size = np.diff(np.append(part.starts, len(part.scores)))[:, None]
            gains, losses = self.play_rows(part)
            won += np.log1p(gains / size).sum(axis=0)
            apart += (losses / size).sum(axis=0)
        return self.played(won, apart)

    def play_rows(self, rows: UnitRows) -> tuple[Float64s, Float64s]:
        """Sums of factor - 1 and of 1 - exp(-m) over the rows of every unit, (units, experts)."""
        tilt, cost = self._tilts(rows.scores)
        gains = np.expm1(rows.outcomes[:, None] * tilt - cost)
        losses = -np.expm1(-self._apart(tilt, rows.scores, rows.scores))
        return self._summed(gains, rows.scores, rows.starts), self._summed(losses, rows.scores, rows.starts)

    def _summed(self, values: Float64s, scores: Float64s, starts: Indices) -> Float64s:
        """Values of the global experts and of the local tilts, (scores, tilts), summed over runs of rows for every expert, which
        has 0 outside of its bins."""
        bins = len(self.cuts) + 1
        code = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(scores)))) * bins + self.bin_of(scores)
        order = np.argsort(code, kind="stable")
        codes, first = np.unique(code[order], return_index=True)
        local = np.zeros((len(starts) * bins, len(LOCAL)))
        local[codes] = np.add.reduceat(values[order, _GLOBAL:], first)
        by_span = (self.spans @ local.reshape(len(starts), bins, -1)).reshape(len(starts), -1)
        return np.concatenate([np.add.reduceat(values[:, :_GLOBAL], starts), by_span], axis=1)

    def _apart(self, tilt: Float64s, low: Float64s, high: Float64s) -> Float64s:
        """m of the module's opening for a row whose score is between low and high."""
        if self.tolerance == 0:
            return np.zeros_like(tilt)
        losses, upwards, factor = [], tilt > 0, np.expm1(tilt)
        for score in (low, high):
            down, up = self._band(score)
            right, wrong = np.where(upwards, up, down), np.where(upwards, down, up)
            losses.append(np.log1p(right * factor) - np.log1p(wrong * factor))
        loss = np.minimum(*losses)
        return np.minimum(loss, loss[:, _MIRROR])

    def _band(self, scores: Float64s) -> tuple[Float64s, Float64s]:
        """Lower and upper edge, with an axis for experts."""
        return np.maximum(scores - self.tolerance, 0.0)[:, None], np.minimum(scores + self.tolerance, 1.0)[:, None]

    def _tilts(self, scores: Float64s) -> tuple[Float64s, Float64s]:
        """Tilts of the global experts and of the local ones at every score, and log(1 + e (exp(t) - 1)), what a row costs; both 0
        where nothing can be won."""
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
        there = np.clip(np.concatenate(expected, axis=1), 0.0, 1.0)
        edge = np.where(there > up, up, np.where(there < down, down, there))
        tilt = np.clip(log_odds(there) - log_odds(edge), -_LARGEST_TILT, _LARGEST_TILT)
        return tilt, np.log1p(edge * np.expm1(tilt))


def log_odds(p: Float64s) -> Float64s:
    """Log odds, of at most about 14 on either side."""
    return np.asarray(np.log(np.maximum(p, _LEAST_EXPERTS)) - np.log(np.maximum(1 - p, _LEAST_EXPERTS)))


# ----------------------------------------------------------------------------------------------------
# Evidence over time: for "has it ever been off?" and for "has it changed?", from what the experts won batch by batch

_HORIZON = 1000  # batches over which most of the weight of starting times is spread
_FIRST, _EVENLY, _LATER = 0.1, 0.85, 0.05  # weight of a start at the first batch, within the horizon and after it


def starting_weight(batch: int) -> float:
    """Share of the evidence that is put on a change which begins with this batch (counted from 1); all together at most 1.

    >>> round(sum(starting_weight(t) for t in range(1, 100_001)), 3)
    1.0
    """
    after = batch - _HORIZON
    if after > 0:
        return _LATER / (after * (after + 1))
    return _EVENLY / _HORIZON + (_FIRST if batch == 1 else 0.0)


def unspent_weight(batch: int) -> float:
    """What starting times after this batch are still to have."""
    if batch == 0:
        return 1.0
    after = batch - _HORIZON
    return _LATER / (after + 1) if after >= 0 else _EVENLY * -after / _HORIZON + _LATER


@dataclass(frozen=True)
class Evidence:
    """Log evidence of every expert; `since` is the batch where the best product of each began."""

    batches: int
    ever: Float64s
    change: Float64s
    best: Float64s
    since: NDArray[np.int64]

    @classmethod
    def none(cls, experts: Experts) -> "Evidence":
        nothing = np.full(len(experts.prior), -np.inf)
        return cls(0, nothing, nothing, nothing, np.zeros(len(nothing), np.int64))

    def after(self, played: Played) -> "Evidence":
        """With one more batch."""
        batch, (won, entry) = self.batches + 1, played
        ever = np.logaddexp(self.ever, np.log(starting_weight(batch)) + entry) + won
        change = np.logaddexp(self.change, entry) + won
        best = np.maximum(self.best, entry) + won
        since = np.where(entry > self.best, batch, self.since)
        return Evidence(batch, rounded_down(ever), rounded_down(change), rounded_down(best), since)

    @cached_property
    def log_e(self) -> float:
        """Log of the evidence that calibration was ever off by more than the tolerance; 0 at the start."""
        return float(np.logaddexp(logsumexp(self.ever), np.log(unspent_weight(self.batches))))

    @cached_property
    def log_change(self) -> float:
        """Log of the evidence for a change, summed over starting times; reaches log N once in N batches by chance, at most."""
        return float(logsumexp(self.change))

    @property
    def start(self) -> int:
        """The batch (counted from 1) where the best product of all experts began: an estimate of when the change did."""
        return int(self.since[int(np.argmax(self.best))])


def rounded_down(values: Float64s) -> Float64s:
    """To the next float32."""
    near = values.astype(np.float32)
    return np.where(near > values, np.nextafter(near, np.float32(-np.inf)), near).astype(np.float64)


# ----------------------------------------------------------------------------------------------------
# A confidence sequence for the mean signed error: an interval that may be looked at after every batch

_LAMBDAS = 0.9 * 2.0 ** -np.arange(0.0, 15, 0.5)
_PSI = -np.log1p(-_LAMBDAS) - _LAMBDAS
_HALVINGS = 60


@dataclass(frozen=True)
class MeanError:
    """Rows (or units) so far, and the sums of their residuals x = score - outcome and of x * x."""

    size: float = 0.0
    total: float = 0.0
    squares: float = 0.0

    def plus(self, size: float, total: float, squares: float) -> "MeanError":
        return MeanError(self.size + size, self.total + total, self.squares + squares)

    @property
    def mean(self) -> float:
        """0 before the first row."""
        return self.total / self.size if self.size else 0.0

    def interval(self, alpha: float) -> tuple[float, float]:
        """Ends of the interval, at every time valid together with probability 1 - alpha.

        >>> [round(end, 4) for end in MeanError(3000, 60.0, 500.0).interval(0.05)]
        [-0.0079, 0.0479]
        """
        cost = _PSI * self.squares
        limit = np.log(2 / alpha) + np.log(len(_LAMBDAS))
        low, high = 0.0, 2.0
        for _ in range(_HALVINGS):  # the smallest distance from the mean that is ruled out
            distance = (low + high) / 2
            if np.logaddexp.reduce(_LAMBDAS * self.size * distance - cost) >= limit:
                high = distance
            else:
                low = distance
        return max(-1.0, self.mean - high), min(1.0, self.mean + high)


# ----------------------------------------------------------------------------------------------------
# What was seen when: sums in bins of scores over blocks of batches, short ones for the recent past and long ones for the distant

_OF_ONE_LENGTH = 5  # blocks of one length; with one more, the two oldest are joined


@dataclass(frozen=True)
class Blocks:
    """`first` is the number of the first batch of each block, `sums` holds rows, ones and sums of scores: (blocks, 3, bins)."""

    first: tuple[int, ...]
    lengths: tuple[int, ...]
    sums: Float64s

    @classmethod
    def none(cls, experts: Experts) -> "Blocks":
        return cls((), (), np.zeros((0, 3, len(experts.cuts) + 1)))

    def plus(self, number: int, batch: Batch, experts: Experts) -> "Blocks":
        """With one more batch, of this number."""
        bins, count = experts.bin_of(batch.mean), len(experts.cuts) + 1
        new = [np.bincount(bins, values, count) for values in (batch.n, batch.ones, batch.n * batch.mean)]
        first, lengths, sums = [*self.first, number], [*self.lengths, 1], [*self.sums, np.array(new)]
        length = 1
        while lengths.count(length) > _OF_ONE_LENGTH:  # join the two oldest blocks of this length
            i = lengths.index(length)
            first[i : i + 2], lengths[i : i + 2], sums[i : i + 2] = [first[i]], [2 * length], [sums[i] + sums[i + 1]]
            length *= 2
        # for pictures and advice: counts up to 16 million are exact, and the state is a third smaller
        return Blocks(tuple(first), tuple(lengths), np.array(sums).astype(np.float32).astype(np.float64))

    def without(self, other: "Blocks") -> "Blocks":
        """The same blocks, with the sums of those only that the other blocks lack."""
        shared = set(zip(other.first, other.lengths, strict=True))
        rows = [i for i, block in enumerate(zip(self.first, self.lengths, strict=True)) if block not in shared]
        return replace(self, sums=self.sums[rows])

    def completed(self, other: "Blocks") -> "Blocks":
        """The blocks that :meth:`without` was called on."""
        sums_of = dict(zip(zip(other.first, other.lengths, strict=True), other.sums, strict=True))
        blocks = list(zip(self.first, self.lengths, strict=True))
        sums_of.update(zip([block for block in blocks if block not in sums_of], self.sums, strict=True))
        return replace(self, sums=np.array([sums_of[block] for block in blocks]))

    def split(self, start: int) -> tuple[Float64s, Float64s]:
        """Sums over the blocks that begin before a batch, and over those that begin with it or later."""
        later = np.array(self.first) >= start
        if not later.any():  # the start lies within the last block
            later[-1] = True
        return self.sums[~later].sum(axis=0), self.sums[later].sum(axis=0)


# ----------------------------------------------------------------------------------------------------
# One dataset watched over time: a group, or one class of it


@dataclass(frozen=True)
class Stream:
    """Experts, the evidence they gathered since the last restart, and sums for what is shown. Never changed, only replaced."""

    experts: Experts
    evidence: Evidence
    errors: MeanError
    blocks: Blocks
    batches: int = 0  # in all, restarts included
    rows: int = 0

    @classmethod
    def beginning(cls, tolerance: float, batch: Batch) -> "Stream":
        """With experts for the scores of a first batch, none of whose outcomes is used."""
        experts = Experts.of(tolerance, batch.n, batch.mean)
        return cls(experts, Evidence.none(experts), MeanError(), Blocks.none(experts))

    def after(self, batch: Batch) -> "Stream":
        """With one more batch."""
        number = self.batches + 1
        return replace(
            self,
            evidence=self.evidence.after(self.experts.play(batch)),
            errors=self.errors.plus(batch.size, batch.total, batch.squares),
            blocks=self.blocks.plus(number, batch, self.experts),
            batches=number,
            rows=self.rows + batch.rows,
        )

    def restarted(self) -> "Stream":
        """With all evidence forgotten (a repair was made); what was seen before is still shown."""
        return replace(self, evidence=Evidence.none(self.experts), errors=MeanError())

    @property
    def start(self) -> int:
        """The batch (of all, from 1) with which a change most likely began."""
        return self.batches - self.evidence.batches + self.evidence.start


def mixed(logs: list[float], shares: list[float], idle: float = 0.0) -> float:
    """Log of a weighted mean of evidence; `idle` is weight on nothing, whose evidence is 1."""
    terms = [value + np.log(share) for value, share in zip(logs, shares, strict=True) if share > 0]
    return float(np.logaddexp.reduce([*terms, np.log(idle)] if idle > 0 else terms))
