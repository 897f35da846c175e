r"""What is bet on: a fixed mixture of experts, each of which wins if calibration is off in a way of its own.

Null hypothesis of a batch: given the past and the scores of the batch, the outcome of a row with score c is 1 with a probability
within tau of c. An expert has a tilt t for every cell of scores and plays a row with the factor

    exp(t y) / (1 + e (exp(t) - 1)),    e = min(c + tau, 1) for t > 0,  max(c - tau, 0) for t < 0.

For an outcome probability p the mean of the factor is (1 + p (exp(t) - 1)) / (1 + e (exp(t) - 1)), which is at most 1 for every p
within tau of c, because p <= e where exp(t) - 1 is positive and p >= e where it is negative. Products over independent rows and
over batches are therefore supermartingales that start at 1. log(1 + e(c) (exp(t) - 1)) is concave in c, so n rows of a cell played
at their mean score win at most what the rows would have won one by one (Jensen): a cell may stand for its rows.

A tilt is the difference of log odds between where the expert expects the outcome to be and the edge of the band it is beyond;
within the band it is 0, for there is nothing to win. Experts expect shifts in probability, offsets in log odds, slopes of the log
odds (around even odds, as a temperature, and around the mean), and shifts on the arcsine scale (where every row carries the same
information) in one of sixteen bins of the scores or in runs of two, four and eight of them.

Opposite experts. No outcome probability is at both edges of its band, so an expert and its mirror image (every tilt in the other
direction) cannot both break even. Let K = exp(t) - 1 of a row. At the wrong edge w of its band instead of the right one r an expert
loses l = log(1 + r K) - log(1 + w K). Mean winnings of both are multilinear in the probabilities, hence largest where every row is
at an edge: with m the smaller l of the two experts and A the rows at the edge that suits the first, they are together at most

    exp(-sum of m outside A) + exp(-sum of m in A) <= 1 + exp(-M),    M = sum of m over all rows,

the sum of two exponentials being convex in how M is divided. So on a batch with which a product begins, each of the two may enter
with its share times 2 / (1 + exp(-M)); both together still win at most their two shares on average. M is 0 at tolerance 0. A row
of a cell is played at the mean score; Jensen's inequality above holds for the right edges, and l at the row's own score is at least
its smaller value at the ends of the cell (l rises, then falls in c). For units with the mean of their rows' factors the same holds
with 1 - exp(-m), averaged over the rows of a unit, in place of m, because 1 - x <= exp(-x).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truecal.types import Float64s, Indices
from truecal.watch.cells import Batch, UnitRows, edges

_BINS = 16  # of local experts and of the diagrams
_LARGEST_TILT = 7.0  # log odds; larger bets lose almost everything on one row
_LEAST = 1e-6  # of a probability whose log odds are taken
_ROWS = 4096  # rows of units worked on together


def _both(values: list[float]) -> Float64s:
    held = np.array(values)
    return np.concatenate([-held[::-1], held])


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
        wanted = total[-1] * np.arange(1, _BINS) / _BINS
        # at edges of cells, so that no rounding of a mean score moves a cell into another bin
        place = np.searchsorted(edges(), mean[order][np.searchsorted(total, wanted)], side="right") - 1
        cuts = np.unique(edges()[place[place > 0]])
        centre = float((n * log_odds(mean)).sum() / n.sum())
        return cls(tolerance, tuple(cuts.tolist()), centre)

    # ------------------------------------------------------------------ the mixture

    @cached_property
    def spans(self) -> Float64s:
        """Single bins and runs of two, four and eight of them, one row each: 1 where a bin belongs to the run."""
        last = len(self.cuts) + 1
        runs = {(i, min(i + width, last)) for width in (1, 2, 4, 8) for i in range(0, last, width)} - {(0, last)}
        held = np.zeros((len(runs), last))
        for row, (first, end) in enumerate(sorted(runs)):
            held[row, first:end] = 1
        return held

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
        place = np.searchsorted(edges(), mean, side="right") - 1
        tilt, cost = self._tilts(mean)
        apart = self._apart(tilt, edges()[place], np.append(edges(), 1.0)[place + 1])
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
            gained, lost = self.play_rows(part)
            won += np.log1p(gained / size).sum(axis=0)
            apart += (lost / size).sum(axis=0)
        return self.played(won, apart)

    def play_rows(self, rows: UnitRows) -> tuple[Float64s, Float64s]:
        """Sums of factor - 1 and of 1 - exp(-m) over the rows of every unit, (units, experts)."""
        tilt, cost = self._tilts(rows.scores)
        gained = np.expm1(rows.outcomes[:, None] * tilt - cost)
        lost = -np.expm1(-self._apart(tilt, rows.scores, rows.scores))
        return self._summed(gained, rows.scores, rows.starts), self._summed(lost, rows.scores, rows.starts)

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
            _probability(odds + offsets),
            _probability(odds + (odds - self.centre) * slopes),
            _probability(odds + odds * slopes),
            np.sin(np.clip(angle, 0, np.pi / 2)) ** 2,
        ]
        there = np.clip(np.concatenate(expected, axis=1), 0.0, 1.0)
        edge = np.where(there > up, up, np.where(there < down, down, there))
        tilt = np.clip(log_odds(there) - log_odds(edge), -_LARGEST_TILT, _LARGEST_TILT)
        return tilt, np.log1p(edge * np.expm1(tilt))


def _probability(odds: Float64s) -> Float64s:
    """Of log odds."""
    return np.asarray(1 / (1 + np.exp(-odds)))


def log_sum(values: Float64s) -> Float64s:
    """log of the sum of exp over the last axis; -inf where every term is 0."""
    top = np.maximum(values.max(axis=-1, keepdims=True), -1e300)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(values - top).sum(axis=-1)) + top[..., 0])


def log_odds(p: Float64s) -> Float64s:
    """Log odds, of at most about 14 on either side."""
    return np.asarray(np.log(np.maximum(p, _LEAST)) - np.log(np.maximum(1 - p, _LEAST)))
