r"""The test statistic of the rank series when outcomes follow the scores, drawn quickly.

Coefficients are linear in the numbers of ones of the cells. Under calibration a cell of n rows of score c has Binomial(n, c) ones:

- Cells whose number has a variance above 9 are taken together: what they add to the coefficients is normal with their covariance.
  So many rows stand behind every one of them that third moments (at most a third of the variance to the power 3/2 in a cell, less
  in their sum) move the tail of a sum of squares by far less than 999 draws can show.
- All others are drawn one by one, exactly but for 2^-32: one 32-bit whole number per cell, compared with the distribution function.

Redraws stop after the first 199 where 30 of them reach the statistic. Any p-value below 0.15 rests on all redraws, so a test at a
level below that rejects no more often than it would without stopping.
"""

import numpy as np
from numpy.typing import NDArray

from truecal.estimate.noise import symmetric_root
from truecal.estimate.rank_series.basis import largest_sum
from truecal.types import Float64s

_NORMAL_FROM = 9.0
_WORDS = 2.0**32
_TAIL = 2.0**-33  # a number of ones less probable than this is not drawn
_AT_ONCE = 1 << 16  # numbers of ones drawn at a time: what stays in cache
_FIRST, _SETTLED = 199, 30
_RELATIVE = 1e-12  # statistics that agree to rounding count as equal


class Null:
    """Redraws of the statistic for one dataset: `count` rows of mean `score` in each cell, whose outcomes have the mean variance
    `chance`; `waves` (terms, cells) turn a surplus of ones into coefficients, which have the given covariance.
    """

    def __init__(
        self, count: Float64s, score: Float64s, chance: Float64s, waves: Float64s, covariance: Float64s
    ) -> None:
        self._covariance = covariance
        self._statistics: list[Float64s] = []
        rows = np.rint(count)
        together = count * chance > _NORMAL_FROM
        own = np.flatnonzero(~together & (rows > 0) & (score > 0) & (score < 1))
        common = waves[:, together] * np.sqrt((count * chance)[together])
        self._normal = symmetric_root(common @ common.T) if together.any() else np.zeros((len(waves), 0))
        rare = np.minimum(score, 1 - score)  # of ones where they are few, else of zeros
        tables = _distributions(rows[own], rare[own])
        # Cells with the longest tables first, so that every step compares a leading part of them.
        order = np.argsort(-(tables < _WORDS).sum(axis=0), kind="stable")
        own, tables = own[order], tables[:, order]
        self._steps = [np.minimum(row[row < _WORDS], _WORDS - 1).astype(np.uint32) for row in tables]
        # Under importance weights a cell of fractional size stands for whole rows, scaled.
        turned = np.where(score[own] <= 0.5, 1.0, -1.0) * count[own] / rows[own]
        self._waves = (waves[:, own] * turned).T.copy()
        self._mean = (rows * rare)[own] @ self._waves

    def p_value(self, statistic: float, resamples: int, rng: np.random.Generator) -> float:
        """(1 + redraws that reach the statistic) / (1 + redraws)."""
        least = statistic - _RELATIVE * abs(statistic)
        for total in (min(_FIRST, resamples), resamples):
            drawn = np.concatenate([*self._statistics, np.zeros(0)])
            if len(drawn) < total:
                self._statistics.append(self.draw(total - len(drawn), rng))
                drawn = np.concatenate(self._statistics)
            reached = int(np.count_nonzero(drawn[:total] >= least))
            if reached >= _SETTLED:
                break
        return (1 + reached) / (1 + total)

    def draw(self, redraws: int, rng: np.random.Generator) -> Float64s:
        """Statistics of redrawn datasets."""
        beta = np.empty((redraws, len(self._covariance)))
        step = max(1, _AT_ONCE // max(1, len(self._waves)))
        numbers = np.empty((min(step, redraws), len(self._waves)))
        for start in range(0, redraws, step):
            part = beta[start : start + step]
            np.copyto(numbers[: len(part)], self._ones(len(part), rng))
            np.matmul(numbers[: len(part)], self._waves, out=part)
        beta -= self._mean
        if self._normal.shape[1]:
            beta += rng.standard_normal((redraws, self._normal.shape[1])) @ self._normal.T
        return largest_sum(beta, self._covariance)

    def _ones(self, redraws: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        """Numbers of ones (or of zeros, where those are fewer) of the cells drawn one by one, shape (redraws, cells)."""
        cells = len(self._waves)
        both = rng.integers(
            0, 2**64 - 1, (redraws * cells + 1) // 2, np.uint64, endpoint=True
        )  # two words at the price of one
        words = both.view(np.uint32)[: redraws * cells].reshape(redraws, cells)
        if not self._steps or len(self._steps[0]) < cells:
            ones, steps = np.zeros(words.shape, np.uint8), self._steps
        else:  # often all there is to compare: every cell is a single row
            ones, steps = (words >= self._steps[0]).view(np.uint8), self._steps[1:]
        for step in steps:
            ones[:, : len(step)] += words[:, : len(step)] >= step
        return ones


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
