"""What was seen when: sums in bins of scores over blocks of batches, short ones for the recent past and long ones for the distant.

The number of blocks grows with the logarithm of the number of batches (the exponential histogram of Datar et al. 2002), so the
state of a watch stays small, and a diagram of "before" and "after" can be drawn for any day of the recent past.
"""

from dataclasses import dataclass, replace

import numpy as np

from truecal.types import Float64s
from truecal.watch.cells import Batch
from truecal.watch.experts import Experts

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
        place, count = experts.bin_of(batch.mean), len(experts.cuts) + 1
        values = (batch.n, batch.ones, batch.n * batch.mean)
        fresh = np.array([np.bincount(place, value, count) for value in values])
        made = Blocks((*self.first, number), (*self.lengths, 1), np.concatenate([self.sums, fresh[None]]))._joined()
        # for pictures and advice: counts up to 16 million are exact, and the state is a third smaller
        return replace(made, sums=made.sums.astype(np.float32).astype(np.float64))

    def _joined(self) -> "Blocks":
        length = 1
        held = self
        while held.lengths.count(length) > _OF_ONE_LENGTH:
            i = held.lengths.index(length)
            sums = np.concatenate([held.sums[:i], held.sums[i : i + 2].sum(axis=0)[None], held.sums[i + 2 :]])
            lengths = (*held.lengths[:i], 2 * length, *held.lengths[i + 2 :])
            held = Blocks((*held.first[: i + 1], *held.first[i + 2 :]), lengths, sums)
            length *= 2
        return held

    def split(self, start: int) -> tuple[Float64s, Float64s]:
        """Sums over the blocks that begin before a batch, and over those that begin with it or later."""
        later = np.array(self.first) >= start
        if not later.any():  # the start lies within the last block
            later[-1] = True
        return self.sums[~later].sum(axis=0), self.sums[later].sum(axis=0)
