"""Sums over every segment and region of scores at once.

A segment is a level of each of up to `depth` columns. Few blocks of columns cover all subsets of so many columns (greedy
covering); records are summed into the cells of each block by one sparse product, and the tables of the subsets follow by summing
out columns.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal.breakdown.segments.levels import Column
from truecal.breakdown.segments.records import REGIONS, Records
from truecal.types import Float64s, Indices

_LEAST_CELLS = 4000  # a block may have so many cells however few the records
_RECORDS_PER_CELL = 8  # beyond, tables would cost more than the product that fills them
Subset = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Block:
    """Columns summed together, the product that does it, and the subsets of columns that are read from it."""

    columns: Subset
    product: Any
    subsets: tuple[Subset, ...]


class Tables:
    """All segments of at least `smallest` rows; one that has the same rows as a coarser one is left out.

    Attributes
    ----------
    subset, cell : for every segment the columns (place in `subsets`) and the combination of their levels.
    depth : how many columns it has; at most `most`. rows : number of rows, shape (segments, regions).
    """

    def __init__(self, records: Records, columns: Sequence[Column], depth: int, smallest: int) -> None:
        self.columns, self.most, self.smallest = columns, depth, smallest
        self.sizes = [len(column.levels) for column in columns]
        budget = max(len(records) // _RECORDS_PER_CELL, _LEAST_CELLS)
        self.blocks = [self._block(records, *part) for part in covering(self.sizes, depth, budget)]
        self.subsets: list[Subset] = [subset for block in self.blocks for subset in block.subsets]
        counts = {subset: table[..., 0] for subset, table in self._tables(records.counts[:, None])}
        self._kept: dict[Subset, Indices] = {
            subset: np.flatnonzero(self._wanted(subset, counts, smallest)) for subset in self.subsets
        }
        kept = [self._kept[subset] for subset in self.subsets]
        self.subset = np.repeat(np.arange(len(kept)), [len(cells) for cells in kept])
        self.cell = np.concatenate(kept)
        self.depth = np.array([len(subset) for subset in self.subsets])[self.subset]
        self.rows: Float64s = np.concatenate(
            [counts[s].reshape(-1, REGIONS)[self._kept[s]] for s in self.subsets]
        ).astype(np.float64)

    def __len__(self) -> int:
        return len(self.cell)

    def __call__(self, values: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
        """Sums of values (records, d) over every segment and region, shape (segments, regions, d)."""
        parts = {
            subset: table.reshape(-1, REGIONS, values.shape[1])[self._kept[subset]]
            for subset, table in self._tables(values)
        }
        return np.concatenate([parts[subset] for subset in self.subsets])

    def levels(self, segment: int) -> tuple[tuple[int, int], ...]:
        """The columns of a segment and its level of each."""
        subset = self.subsets[int(self.subset[segment])]
        codes = np.unravel_index(int(self.cell[segment]), [self.sizes[j] for j in subset]) if subset else ()
        return tuple((j, int(code)) for j, code in zip(subset, codes, strict=True))

    def mask(self, segment: int) -> NDArray[np.bool_]:
        """The records of a segment."""
        inside = np.ones(len(self.columns[0].codes), bool)
        for j, code in self.levels(segment):
            inside &= self.columns[j].codes == code
        return inside

    def _block(self, records: Records, columns: Subset, subsets: tuple[Subset, ...]) -> _Block:
        from scipy.sparse import csr_array

        code = np.zeros(len(records), np.int64)
        for j in columns:
            code = code * self.sizes[j] + self.columns[j].codes
        code = code * REGIONS + records.region
        cells = prod(self.sizes[j] for j in columns) * REGIONS
        order = np.argsort(code.astype(np.uint16) if cells <= 1 << 16 else code, kind="stable").astype(np.int32)
        ends = np.concatenate([[0], np.cumsum(np.bincount(code, minlength=cells))]).astype(np.int32)
        ones = np.ones(len(records), np.float32)
        return _Block(columns, csr_array((ones, order, ends), shape=(cells, len(records))), subsets)

    def _tables(self, values: NDArray[Any]) -> Iterator[tuple[Subset, NDArray[Any]]]:
        """The table of every subset: one axis per column, then regions, then the columns of `values`."""
        values = np.ascontiguousarray(values)
        for block in self.blocks:
            shape = [*(self.sizes[j] for j in block.columns), REGIONS, values.shape[1]]
            made = {block.columns: (block.product @ values).reshape(shape)}
            for subset in block.subsets:
                nearest = min((have for have in made if set(subset) <= set(have)), key=len)
                away = tuple(i for i, j in enumerate(nearest) if j not in subset)
                made[subset] = made[nearest].sum(axis=away) if away else made[nearest]
                yield subset, made[subset]

    def _wanted(self, subset: Subset, counts: dict[Subset, NDArray[Any]], smallest: float) -> NDArray[np.bool_]:
        """Segments with enough rows, and fewer than each segment that leaves one of their columns open."""
        rows = counts[subset].sum(axis=-1)
        wanted = rows >= smallest
        for axis in range(len(subset)):
            coarser = counts[subset[:axis] + subset[axis + 1 :]].sum(axis=-1)
            wanted &= rows < np.expand_dims(coarser, axis)
        return wanted.ravel()


def covering(sizes: Sequence[int], depth: int, budget: float) -> list[tuple[Subset, tuple[Subset, ...]]]:
    """Blocks of columns with at most `budget` cells that cover every subset of `depth` columns, each with the subsets it is for.

    >>> [columns for columns, _ in covering([5] * 6, 3, 4 * 5**4)]
    [(0, 1, 2, 3), (0, 1, 4, 5), (0, 2, 3, 4), (0, 2, 3, 5), (1, 2, 4, 5), (1, 3, 4, 5)]
    """
    depth = min(depth, len(sizes))
    left = set(combinations(range(len(sizes)), depth))
    done: set[Subset] = set()
    blocks = []
    while left:
        block = set(min(left))
        covered = 1
        while True:
            gains = {}
            for j in sorted(set(range(len(sizes))) - block):
                wider = block | {j}
                if prod(sizes[i] for i in wider) * REGIONS <= budget:
                    gains[j] = sum(wider.issuperset(subset) for subset in left)
            best = max(gains, key=lambda j: gains[j], default=None)
            if best is None or gains[best] <= covered:
                break
            block.add(best)
            covered = gains[best]
        columns = tuple(sorted(block))
        subsets = tuple(s for d in range(depth, -1, -1) for s in combinations(columns, d) if s not in done)
        done.update(subsets)
        left = {subset for subset in left if not block.issuperset(subset)}
        blocks.append((columns, subsets))
    return blocks
