"""How resamples are drawn: rows over cells, and units (rows, clusters, blocks) as whole."""

import numpy as np
from numpy.typing import NDArray

from truecal import options
from truecal.errors import InputError
from truecal.types import Float64s

_BY_ONE = 8  # up to so many rows per cell it is quicker to draw rows one by one than to draw each cell's count


def multinomial(chances: Float64s, n: int, resamples: int, rng: np.random.Generator) -> Float64s:
    """Numbers of `n` draws that fall into each cell of the given chances, shape (resamples, cells).

    >>> multinomial(np.array([0.5, 0.5]), 10, 3, np.random.default_rng(0)).sum(axis=1)
    array([10., 10., 10.])
    """
    chances = chances / chances.sum()
    if n > _BY_ONE * len(chances):
        return rng.multinomial(n, chances, resamples).astype(np.float64)
    ends = np.cumsum(chances)
    cell = np.searchsorted(ends, rng.random((resamples, n)) * ends[-1], side="right")
    return _tabulate(cell, len(chances))


def unit_counts(units: int, resamples: int, rng: np.random.Generator, *, block: int = 1) -> NDArray[np.uint16]:
    """How often each unit is drawn when as many are drawn as there are, with replacement, shape (units, resamples).

    `block`: units come in an order and are drawn in runs of this length, which may wrap from the last to the first (the
    circular block bootstrap of Politis and Romano 1992), so that dependence over time survives within runs.
    """
    drawn = np.empty((units, resamples), np.uint16)
    step = max(1, (1 << 20) // units)
    for start in range(0, resamples, step):
        some = min(step, resamples - start)
        counts = (
            _tabulate(rng.integers(units, size=(some, units)), units) if block == 1 else _runs(units, block, some, rng)
        )
        drawn[:, start : start + some] = counts.T
    return drawn


def check_block(block: int, units: int) -> None:
    """Refuse a length of runs that is not between 1 and half the rows."""
    options.whole(block, "blocks")
    if block > units // 2:
        raise InputError(f"blocks must be a length between 1 and half the {units} rows, not {block!r}")


def _runs(units: int, block: int, resamples: int, rng: np.random.Generator) -> Float64s:
    begins = _tabulate(rng.integers(units, size=(resamples, round(units / block))), units)
    around = np.concatenate([begins[:, units - block + 1 :], begins], axis=1)  # runs that began before the first unit
    total = np.cumsum(np.concatenate([np.zeros((resamples, 1)), around], axis=1), axis=1)
    return np.asarray(total[:, block:] - total[:, :-block])


def _tabulate(cell: NDArray[np.intp], cells: int) -> Float64s:
    """Histogram of every row."""
    flat = (cell + np.arange(len(cell))[:, None] * cells).ravel()
    return np.bincount(flat, minlength=len(cell) * cells).reshape(len(cell), cells).astype(np.float64)
