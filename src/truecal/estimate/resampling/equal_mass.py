"""Which bin of equal mass every row belongs to, without sorting all of them: counts over the score's leading bits, then a look at
the few rows whose bits are those of a cut. The rule of cuts and ties is that of :meth:`truecal.profile.Profile.mass_cut`.
"""

import numpy as np

from truecal.types import Floats, Indices

_SHIFT = 15  # of a float32: eight bits of the mantissa stay, 256 keys between powers of two
_KEYS = (0x3F800000 >> _SHIFT) + 1  # of scores up to 1


def mass_bins(scores: Floats, bins: int) -> Indices:
    """The bin of every score, ties kept together; scores of shape (n,) in any order, n at least `bins`."""
    scores = np.abs(scores)  # -0.0 becomes 0.0
    key = _key(scores)
    edges = _edges(scores, key, bins)
    at = _key(edges)
    ends = np.cumsum(np.bincount(at, minlength=_KEYS)[:_KEYS])  # edges with this key or a smaller one
    ends[at[at < _KEYS]] = -1
    place = ends[key]
    open_ = np.flatnonzero(place < 0)
    place[open_] = np.searchsorted(edges, scores[open_], side="right")
    return place


def _key(scores: Floats) -> Indices:
    """Leading bits, which never fall as scores rise."""
    return (scores.astype(np.float32, copy=False).view(np.uint32) >> _SHIFT).astype(np.intp)


def _edges(scores: Floats, key: Indices, bins: int) -> Floats:
    """The least score of every bin but the first; where a bin is empty, that of the next."""
    n = len(scores)
    cut = -(-np.arange(1, bins) * n // bins)
    count = np.bincount(key, minlength=_KEYS)
    end = np.cumsum(count)
    held = np.zeros(_KEYS, bool)
    ranks = np.concatenate([cut - 1, np.minimum(cut, n - 1)])
    of_rank = np.searchsorted(end, ranks, side="right")
    held[of_rank] = True
    some = np.sort(scores[held[key]])
    skipped = np.cumsum(np.where(held, 0, count))  # rows of smaller keys that are not among `some`
    lower, upper = some[ranks - skipped[of_rank]].reshape(2, -1)
    shift = skipped[of_rank[: len(cut)]]
    first, last = (np.searchsorted(some, lower, side=side) + shift for side in ("left", "right"))
    most_below = (cut - first) * 2 >= last - first  # a group of ties goes to the side that has more of it
    tied = np.where(most_below, np.nextafter(lower, scores.dtype.type(2)), lower)
    return np.where(lower == upper, tied, upper)
