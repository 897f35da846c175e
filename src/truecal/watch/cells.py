"""The cells of a watch: batches of rows or sketches, added up in a few hundred cells of scores.

Cells are 1/64 wide in the middle and have four per halving of the distance towards 0 and 1. Their edges are edges of sketch
cells, so a sketch adds up to them exactly: rows, parts and sketches of the same rows give the same cells.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

import truecal as tc
from truecal.types import Float64s, Indices

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
        place, count = np.searchsorted(edges(), mean, side="right") - 1, len(edges())
        rows, score = np.bincount(place, n, count), np.bincount(place, n * mean, count)
        filled = np.flatnonzero(rows)
        return Batch(
            n=rows[filled].astype(np.float64),
            ones=np.bincount(place, ones, count)[filled].astype(np.float64),
            mean=_means(score, rows, filled),
            size=self.size + other.size,
            total=self.total + other.total,
            squares=self.squares + other.squares,
        )

    @property
    def fingerprint(self) -> str:
        """Of the counts in the cells: the same for rows, parts and sketches of the same rows."""
        place = np.searchsorted(edges(), self.mean, side="right") - 1
        counts = np.rint(np.stack([place, self.n, self.ones])).astype("<i8")
        return hashlib.sha256(counts.tobytes()).hexdigest()[:16]

    @classmethod
    def from_sketch(cls, sketch: tc.Sketch) -> "Batch":
        """The cells of a watch from those of a sketch: nothing is approximated, every sum is known."""
        sums, edge = sketch.sums, sketch.edges
        n, y, r = sums["n"], sums["y"], sums["r"]
        place = np.searchsorted(edges(), edge, side="right") - 1
        count = len(edges())
        rows, ones = np.bincount(place, n, count), np.bincount(place, y, count)
        score = np.bincount(place, edge * n + r, count)
        filled = np.flatnonzero(rows)
        product = edge * y + sums["ry"]
        square = edge * edge * n + 2 * edge * r + sums["rr"]
        return cls(
            n=rows[filled].astype(np.float64),
            ones=ones[filled].astype(np.float64),
            mean=_means(score, rows, filled),
            size=float(n.sum()),
            total=float(score.sum() - y.sum()),
            squares=float(np.sum(square - 2 * product + y)),
        )

    @classmethod
    def from_units(cls, scores: Float64s, outcomes: Float64s, units: Indices) -> "Batch":
        """Rows that belong to units: the cells of the rows for display, the residuals of the units' means."""
        plain = cls.from_sketch(tc.Sketch.from_arrays(scores, outcomes))
        code = np.unique(units, return_inverse=True)[1]
        size = np.bincount(code)
        mean = np.bincount(code, scores - outcomes) / size
        order = np.argsort(code, kind="stable")
        held = UnitRows(scores[order].astype(np.float64), outcomes[order].astype(np.float64), np.cumsum(size) - size)
        return cls(
            plain.n, plain.ones, plain.mean, float(len(size)), float(mean.sum()), float((mean * mean).sum()), held
        )


def _means(scores: Any, rows: Any, filled: Indices) -> Float64s:
    """Mean scores of the filled cells; rounding must not carry one into the next cell."""
    last = np.append(np.nextafter(edges()[1:], 0.0), 1.0)
    return np.clip(scores[filled] / rows[filled], edges()[filled], last[filled])


@dataclass(frozen=True)
class UnitRows:
    """Rows in the order of their units; `starts` is the first row of every unit."""

    scores: Float64s
    outcomes: Float64s
    starts: Indices

    def parts(self, rows: int) -> "Sequence[UnitRows]":
        """The same in parts of whole units of about so many rows."""
        cuts = [0]
        for unit, start in enumerate(self.starts):
            if start - self.starts[cuts[-1]] >= rows:
                cuts.append(unit)
        bounds = [*self.starts[cuts], len(self.scores)]
        parts_of = []
        for i, first in enumerate(cuts):
            last = cuts[i + 1] if i + 1 < len(cuts) else len(self.starts)
            rows_of = slice(bounds[i], bounds[i + 1])
            parts_of.append(UnitRows(self.scores[rows_of], self.outcomes[rows_of], self.starts[first:last] - bounds[i]))
        return parts_of
