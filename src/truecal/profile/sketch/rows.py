"""Cells turned back into rows: those that hold up to three predictions give every one of them back, exactly.

Two scores are the lowest and the highest of the cell; a third is what the sum leaves over, and the sum of three offsets
r = c - edge is exact in float64 (an offset has at most 46 significant bits). Which of them had the outcome 1 shows in the sum
of r*y. So a sketch of few rows is no sketch at all: only cells of four rows or more, or with weights, blur anything.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from truecal.types import Float64s

_TINY = 2.0**-45  # below this edge offsets may differ by more orders of magnitude than a float64 can add


class HeldCells(Protocol):
    """The filled cells of a sketch: see :class:`truecal.Sketch`."""

    edges: Float64s
    sums: dict[str, Float64s]
    low: Float64s
    high: Float64s
    fraction: float
    precision: int

    @property
    def rows(self) -> int: ...


@dataclass(frozen=True, eq=False)
class Rows:
    """Means, total weight and extreme scores of every row, ascending; a row is a prediction or a cell."""

    score: Float64s
    outcome: Float64s
    weight: Float64s
    squares: Float64s
    products: Float64s
    low: Float64s
    high: Float64s
    spread: Float64s  # standard deviation of the scores within a row; 0 for a single prediction
    tilt: Float64s  # covariance of scores and outcomes within a row, over that


def rows_of(sketch: HeldCells) -> Rows:
    """One row per cell, or per prediction in cells that hold two or three."""
    sums, edge = sketch.sums, sketch.edges
    n, w = sums["n"], sums["w"]
    plain = (w == n) & (sums["ww"] == n) & (sketch.low < sketch.high)
    known = plain & ((n == 2) | ((n == 3) & (edge >= _TINY)))
    times = np.where(known, n, 1).astype(np.intp)
    cell = np.repeat(np.arange(len(n)), times)
    place = np.arange(len(cell)) - np.repeat(np.cumsum(times) - times, times)  # of a row among those of its cell
    alone = known[cell]

    offset = _offsets(sketch)[cell, np.where(place == times[cell] - 1, 2, place)]
    single = _outcomes(sketch)[cell, np.where(place == times[cell] - 1, 2, place)]
    r, rr, ry, y = (sums[name] / w for name in ("r", "rr", "ry", "y"))
    mean = np.clip(edge + r, sketch.low, sketch.high)  # of a cell that holds one score, exactly that score
    score = np.where(alone, edge[cell] + offset, mean[cell])
    spread = np.sqrt(np.maximum(rr - r * r, 0.0))
    tilt = np.where(spread > 0, (ry - r * y) / np.where(spread > 0, spread, 1.0), 0.0)
    return Rows(
        score=score,
        outcome=np.where(alone, single, y[cell]),
        weight=np.where(alone, 1.0, w[cell]),
        squares=np.where(alone, score * score, (edge * edge + 2 * edge * r + rr)[cell]),
        products=np.where(alone, score * single, (edge * y + ry)[cell]),
        low=np.where(alone, score, sketch.low[cell]),
        high=np.where(alone, score, sketch.high[cell]),
        spread=np.where(alone, 0.0, spread[cell]),
        tilt=np.where(alone, 0.0, tilt[cell]),
    )


def _offsets(sketch: HeldCells) -> Float64s:
    """Lowest, middle and highest offset of every cell, as if it held three rows, shape (cells, 3)."""
    low, high = sketch.low - sketch.edges, sketch.high - sketch.edges
    middle = np.clip(sketch.sums["r"] - low - high, low, high)
    return np.stack([low, middle, high], axis=1)


def _outcomes(sketch: HeldCells) -> Float64s:
    """Which of three offsets had the outcome 1, shape (cells, 3): the one at sum r*y, or all but the one at the rest."""
    n, ones, total, product = (sketch.sums[name][:, None] for name in ("n", "y", "r", "ry"))
    offsets = _offsets(sketch)
    one_left = (n == 3) & (ones == 2)  # then a single zero is looked for
    wanted = np.where(one_left, total - product, product)
    distance = np.abs(offsets - wanted)
    distance[:, 1] = np.where(n[:, 0] == 3, distance[:, 1], np.inf)  # two rows have no middle
    found = np.zeros(offsets.shape)
    found[np.arange(len(found)), distance.argmin(axis=1)] = 1.0
    found = np.where(one_left, 1.0 - found, found)
    return np.where(ones == 0, 0.0, np.where(ones == n, 1.0, found))
