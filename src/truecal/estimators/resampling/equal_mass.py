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
    at = np.minimum(np.sort(_key(edges)), _KEYS)
    # For every key, how many edges have it or a smaller one
    ends = np.repeat(np.arange(len(at) + 1), np.diff(at, prepend=0, append=_KEYS))
    ends[at[at < _KEYS]] = -1
    place = ends.take(key)
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
    opened, of_rank = np.unique(np.searchsorted(end, ranks, side="right"), return_inverse=True)
    held[opened] = True
    some = np.sort(scores[np.flatnonzero(held.take(key))])
    skipped = (end[opened] - np.cumsum(count[opened]))[of_rank]  # rows of smaller keys that are not among `some`
    lower, upper = some[ranks - skipped].reshape(2, -1)
    shift = skipped[: len(cut)]
    first, last = (np.searchsorted(some, lower, side=side) + shift for side in ("left", "right"))
    most_below = (cut - first) * 2 >= last - first  # a group of ties goes to the side that has more of it
    tied = np.where(most_below, np.nextafter(lower, scores.dtype.type(2)), lower)
    return np.where(lower == upper, tied, upper)
