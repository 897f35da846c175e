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

_BLOCK = 1 << 15  # rows packed and unpacked together: what stays in cache


def packed_sort(scores: Floats, outcomes: NDArray[np.uint8]) -> tuple[Floats, NDArray[np.uint8]]:
    """Ascending scores along the last axis, with their outcomes; equal scores come with their zeros first.

    The inputs are left as they are. Scores must lie in [0, 1].
    """
    unsigned = _UNSIGNED[scores.dtype]
    shape, one = scores.shape, unsigned(1)
    bits = np.ascontiguousarray(scores).view(unsigned).reshape(-1)
    ones = np.ascontiguousarray(outcomes).reshape(-1)
    packed, sorted_outcomes = np.empty_like(bits), np.empty_like(ones)
    blocks = [slice(start, start + _BLOCK) for start in range(0, len(bits), _BLOCK)]
    for part in blocks:
        np.left_shift(bits[part], one, out=packed[part])  # drops the sign of -0.0 as well
        np.bitwise_or(packed[part], ones[part], out=packed[part])
    packed.reshape(shape).sort(axis=-1)
    for part in blocks:
        sorted_outcomes[part] = packed[part] & one
        np.right_shift(packed[part], one, out=packed[part])
    return packed.view(scores.dtype).reshape(shape), sorted_outcomes.reshape(shape)
