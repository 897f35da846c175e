"""The test statistic of the rank series when outcomes follow the scores, drawn quickly.

Coefficients are linear in the numbers of ones of the cells. Under calibration a cell of n rows of score c has Binomial(n, c) ones:

- Cells whose number has a variance above 9 are taken together: what they add to the coefficients is normal with their covariance.
  So many rows stand behind every one of them that third moments (at most a third of the variance to the power 3/2 in a cell, less
  in their sum) move the tail of a sum of squares by far less than 999 draws can show.
- All others are drawn one by one, exactly but for 2^-32: one 32-bit whole number per cell, compared with the distribution function.

Redraws stop after the first 199 where 30 of them reach the statistic. Any p-value below 0.15 rests on all redraws, so a test at a
level below that rejects no more often than it would without stopping. Few of the later ones can reach the statistic, and few of all
where it is large. Coefficients of those are sums in single precision, and taken in double where these, with all that they can be
off, reach it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal.estimators.noise import symmetric_root
from truecal.estimators.rank_series.fit import SmoothTestStatistic
from truecal.types import Float64s

_NORMAL_FROM = 9.0
_WORDS = 2.0**32
_TAIL = 2.0**-33  # a number of ones less probable than this is not drawn
_AT_ONCE = 1 << 16  # numbers of ones drawn at a time: what stays in cache
# Numbers of ones multiplied at a time. The C library gives memory back to the system, to ask for it again page by page in the next
# call, once more is free than twice the largest block it has seen: one large block spares all the others that.
_MULTIPLIED = 1 << 19
_FIRST, _SETTLED = 199, 30
_FAR = 5.0  # standard deviations of a sum of squares: a redraw hardly ever reaches a statistic beyond
_SINGLE = 2.0**-24  # half the distance of single-precision numbers near 1
_RELATIVE = 1e-12  # statistics that agree to rounding count as equal


@dataclass(frozen=True, eq=False)
class _Redraws:
    """Numbers of ones of the cells drawn one by one, what all others add to the coefficients, and what statistics are at most."""

    ones: NDArray[np.uint8]
    others: Float64s
    at_most: Float64s
    exact: bool  # whether statistics are just that


class Null:
    """Redraws of the statistic for one dataset: `count` rows of mean `score` in each cell, whose outcomes have the mean variance
    `chance`; `waves` (terms, cells) turn a surplus of ones into coefficients, which have the given covariance.
    """

    def __init__(
        self, count: Float64s, score: Float64s, chance: Float64s, waves: Float64s, covariance: Float64s
    ) -> None:
        self._largest = SmoothTestStatistic(covariance)
        self._kept: list[_Redraws] = []  # the first redraws, then all others
        rows = np.rint(count)
        together = count * chance > _NORMAL_FROM
        own = np.flatnonzero(~together & (rows > 0) & (score > 0) & (score < 1))
        self._normal = np.zeros((len(waves), 0))
        if together.any():
            common = waves[:, together] * np.sqrt((count * chance)[together])
            self._normal = symmetric_root(common @ common.T)
        rare = np.minimum(score, 1 - score)  # of ones where they are few, else of zeros
        tables = _distributions(rows[own], rare[own])
        lengths = (tables < _WORDS).sum(axis=0)
        if (lengths[1:] > lengths[:-1]).any():
            # Cells with the longest tables first, so that every step compares a leading part of them.
            order = np.argsort(-lengths, kind="stable")
            own, tables = own[order], tables[:, order]
        inner = (row[row < _WORDS] for row in tables)
        self._steps = [np.minimum(row, _WORDS - 1).astype(np.uint32) for row in inner if len(row)]
        # Under importance weights a cell of fractional size stands for whole rows, scaled.
        turned = np.where(score[own] <= 0.5, 1.0, -1.0) * count[own] / rows[own]
        self._waves = np.take(waves.T, own, axis=0) * turned[:, None]
        self._mean = (rows * rare)[own] @ self._waves

    def p_value(self, statistic: float, resamples: int, rng: np.random.Generator) -> float:
        """(1 + redraws that reach the statistic) / (1 + redraws)."""
        least = statistic - _RELATIVE * abs(statistic)
        first = min(_FIRST, resamples)
        reached = self._reached(0, first, least, rng)
        if reached >= _SETTLED or first == resamples:
            return (1 + reached) / (1 + first)
        return (1 + reached + self._reached(1, resamples - first, least, rng)) / (1 + resamples)

    def _reached(self, part: int, redraws: int, least: float, rng: np.random.Generator) -> int:
        """How many of the first (or of the other) redraws have a statistic of at least so much."""
        if len(self._kept) <= part or len(self._kept[part].at_most) < redraws:
            ones, others = self._redraw(redraws, rng)
            near = part == 0 and least < _FAR
            at_most = self._statistics(ones, others) if near else self._at_most(ones, others)
            self._kept[part:] = [_Redraws(ones, others, at_most, near)]
        kept = self._kept[part]
        able = np.flatnonzero(kept.at_most[:redraws] >= least)
        if kept.exact or not len(able):
            return len(able)
        return int(np.count_nonzero(self._statistics(kept.ones[able], kept.others[able]) >= least))

    def draw(self, redraws: int, rng: np.random.Generator) -> Float64s:
        """Statistics of redrawn datasets."""
        return self._statistics(*self._redraw(redraws, rng))

    def _redraw(self, redraws: int, rng: np.random.Generator) -> tuple[NDArray[np.uint8], Float64s]:
        """Numbers of ones of the cells drawn one by one, and what all others add to the coefficients, less the mean."""
        ones = np.empty((redraws, len(self._waves)), np.uint8)
        step = max(1, _AT_ONCE // max(1, len(self._waves)))
        for start in range(0, redraws, step):
            self._draw_ones(ones[start : start + step], rng)
        others = np.broadcast_to(-self._mean, (redraws, len(self._mean)))
        if self._normal.shape[1]:
            others = others + rng.standard_normal((redraws, self._normal.shape[1])) @ self._normal.T
        return ones, others

    def _statistics(self, ones: NDArray[np.uint8], others: Float64s) -> Float64s:
        return self._largest(others + _product(ones, self._waves))

    def _at_most(self, ones: NDArray[np.uint8], others: Float64s) -> Float64s:
        """What the statistics are at most, by sums in single precision: the statistic grows with the size of every coefficient."""
        waves, off = self._single
        beta = others + _product(ones, waves)[:, : len(off)]
        return self._largest(np.abs(beta, out=beta) + off)

    @cached_property
    def _single(self) -> tuple[NDArray[np.float32], Float64s]:
        """The waves in single precision, and by how much sums of them can be off."""
        cells, terms = self._waves.shape
        waves = np.zeros((cells, terms + -terms % 8), np.float32)  # products of whole vectors are quicker
        waves[:, :terms] = self._waves
        most = np.zeros(cells)
        for step in self._steps:
            most[: len(step)] += 1
        return waves, (cells + 2) * _SINGLE * (most @ np.abs(self._waves))

    def _draw_ones(self, ones: NDArray[np.uint8], rng: np.random.Generator) -> None:
        """Fill in the numbers of ones (or of zeros, where those are fewer) of the cells drawn one by one."""
        # two words at the price of one
        both = rng.integers(0, 2**64 - 1, (ones.size + 1) // 2, np.uint64, endpoint=True)
        words = both.view(np.uint32)[: ones.size].reshape(ones.shape)
        steps = self._steps
        if steps and len(steps[0]) == ones.shape[1]:  # often all there is to compare: every cell is a single row
            np.greater_equal(words, steps[0], out=ones.view(np.bool_))
            steps = steps[1:]
        else:
            ones[:] = 0
        for step in steps:
            ones[:, : len(step)] += words[:, : len(step)] >= step


def _product(ones: NDArray[np.uint8], waves: NDArray[Any]) -> NDArray[Any]:
    """Sums of waves, in their precision."""
    found = np.empty((len(ones), waves.shape[1]), waves.dtype)
    step = max(1, _MULTIPLIED // max(1, len(waves)))
    numbers = np.empty((min(step, len(ones)), len(waves)), waves.dtype)
    for start in range(0, len(ones), step):
        part = found[start : start + step]
        np.copyto(numbers[: len(part)], ones[start : start + step])
        np.matmul(numbers[: len(part)], waves, out=part)
    return found


def _distributions(rows: Float64s, chance: Float64s) -> Float64s:
    """2^32 times the binomial distribution function at 0, 1, ... of every cell, shape (steps, cells), until all but reached."""
    odds = chance / (1 - chance)
    point = np.exp(rows * np.log1p(-chance))
    total, tables = point.copy(), [point]
    ones = 0
    while (left := (1 - total > _TAIL) & (ones < rows)).any():
        point = np.where(left, point * (rows - ones) / (ones + 1) * odds, 0.0)
        ones += 1
        total = np.where(left, total + point, 1.0)
        tables.append(total)
    ends = np.stack(tables)
    return np.where((1 - ends > _TAIL) & (np.arange(len(ends))[:, None] < rows), np.floor(ends * _WORDS), _WORDS)
