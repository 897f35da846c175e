"""Sort scores together with their 0/1 outcomes at the price of sorting the scores alone.

Non-negative IEEE floats order like their bit patterns, and a score in [0, 1] never uses the top two bits (the pattern of 1.0
is 0x3FF0... in float64, 0x3F80... in float32, 0x3C00 in float16). So the pattern shifted left by one leaves the lowest bit
free for the outcome, no bit of the score is lost, ties stay exact ties, and one plain unsigned sort replaces an argsort.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal.types import Floats

_UNSIGNED: dict[np.dtype[Any], type[Any]] = {
    np.dtype(np.float16): np.uint16,
    np.dtype(np.float32): np.uint32,
    np.dtype(np.float64): np.uint64,
}


def packed_sort(scores: Floats, outcomes: NDArray[np.uint8]) -> tuple[Floats, NDArray[np.uint8]]:
    """Ascending scores along the last axis, with their outcomes; equal scores come with their zeros first.

    The inputs are left as they are. Scores must lie in [0, 1].
    """
    unsigned = _UNSIGNED[scores.dtype]
    packed: NDArray[Any] = np.left_shift(
        np.ascontiguousarray(scores).view(unsigned), unsigned(1)
    )  # drops the sign of -0.0 as well
    np.bitwise_or(packed, outcomes, out=packed)
    packed.sort(axis=-1)
    sorted_outcomes = np.bitwise_and(packed, unsigned(1)).astype(np.uint8)
    np.right_shift(packed, unsigned(1), out=packed)
    return packed.view(scores.dtype), sorted_outcomes
