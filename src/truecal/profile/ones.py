"""How many ones there are among the first i rows, from one bit per row.

A word holds the outcomes of 64 rows, a second table the ones before every word; the rest is the number of bits set below the place
asked for. This takes a quarter of a byte per row and is made in a tenth of the time of a running sum.
"""

import numpy as np
from numpy.typing import NDArray

from truecal.profile.cut import gather
from truecal.types import Indices

_WORD = 64  # 2 ** 6
# Words whose lowest 0, 1, ... 63 bits are set.
_LOWEST = (np.uint64(1) << np.arange(_WORD, dtype=np.uint64)) - np.uint64(1)


class Ones:
    """Counts of ones in 0/1 rows, shape (batch, rows).

    >>> Ones(np.array([[1, 0, 1, 1]], np.uint8)).below(np.array([[0, 1, 2, 4]]))
    array([[0, 1, 1, 3]])
    """

    def __init__(self, outcomes: NDArray[np.uint8]) -> None:
        batch, rows = outcomes.shape
        words = rows // _WORD + 1  # a place after the last row has a word too
        packed = np.zeros((batch, words * (_WORD // 8)), np.uint8)
        bits = np.packbits(outcomes, axis=1, bitorder="little")
        packed[:, : bits.shape[1]] = bits
        self._words = packed.view("<u8")
        self._before = np.zeros(self._words.shape, np.int64)
        np.cumsum(np.bitwise_count(self._words[:, :-1]), axis=1, out=self._before[:, 1:])

    def below(self, index: Indices) -> NDArray[np.int64]:
        """Ones among the first index[i, j] rows of every dataset."""
        word = index >> 6
        bits = gather(self._words, word) & _LOWEST[index & (_WORD - 1)]
        count: NDArray[np.int64] = gather(self._before, word) + np.bitwise_count(bits)
        return count
