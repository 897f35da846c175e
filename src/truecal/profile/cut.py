"""Cuts: places that divide sorted rows, and how tables are read at them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from truecal.types import Float64s, Indices


class Known(Protocol):
    """Sums below cuts, by name: as far between `below` and `above` as asked for, or as the cuts say."""

    def __call__(self, name: str, fraction: Float64s | None = None) -> Float64s: ...


@dataclass(frozen=True, eq=False)
class Cut:
    """Places in the sorted rows, shape (batch or 1, q): `fraction` of the way from prefix index `below` to `above`.

    Most cuts fall between two rows and have `below == above` (then `fraction` is None). One that falls inside a group of
    equal scores, or inside a row of weight above 1, keeps the ends of that group. `known` tells the sums below the cuts, by
    name, where they were found together with the places.
    """

    below: Indices
    above: Indices
    fraction: Float64s | None = None
    known: Known | None = None

    def keep_ties(self) -> "Cut":
        """Move every cut that splits a group of equal scores to the nearer end of the group (up when halfway)."""
        if self.fraction is None:
            return self
        up = self.fraction >= 0.5
        place = np.where(up, self.above, self.below)
        nearest = up.astype(np.float64)
        return Cut(place, place, known=None if self.known is None else partial(self.known, fraction=nearest))


def width_edges(bins: int | Sequence[int] | Indices, dtype: np.dtype[Any]) -> NDArray[Any]:
    """j/b, j = 0..b, rounded to the precision of the scores: the one edge rule."""
    k, b = every_edge(bins)
    return (k / b).astype(dtype)


def every_edge(bins: int | Sequence[int] | Indices) -> tuple[Indices, Indices]:
    """k = 0..b and b itself, for each number of bins b in turn.

    A column of numbers, shape (batch, 1), gives every dataset its own: k stops at b, so that rows of the table have equal lengths.

    >>> every_edge([1, 2])
    (array([0, 1, 0, 1, 2]), array([1, 1, 2, 2, 2]))
    >>> every_edge(np.array([[1], [2]]))[0]
    array([[0, 1, 1],
           [0, 1, 2]])
    """
    if np.ndim(bins) == 2:
        own = np.asarray(bins, np.intp)
        k = np.minimum(np.arange(own.max() + 1), own)
        return k, np.broadcast_to(own, k.shape)
    counts = np.atleast_1d(np.asarray(bins, np.intp))
    b = np.repeat(counts, counts + 1)
    starts = np.cumsum(counts + 1) - (counts + 1)
    return np.arange(len(b)) - np.repeat(starts, counts + 1), b


def gather(table: NDArray[Any], index: Indices) -> NDArray[Any]:
    """table[i, index[i, j]] (a row of the table may hold arrays), where either may be shared by the whole batch."""
    if index.shape[0] == 1:
        return table[:, index[0]]
    if table.shape[0] == 1:
        return table[0][index]
    return table[np.arange(len(table))[:, None], index]


def last_of_equal(table: NDArray[Any]) -> Indices:
    """The last place of the value of every place of an ascending table, shape (batch, q).

    >>> last_of_equal(np.array([[0.0, 1.0, 1.0, 3.0]]))
    array([[0, 2, 2, 3]])
    """
    last = np.ones(table.shape, bool)
    np.not_equal(table[:, 1:], table[:, :-1], out=last[:, :-1])
    places = np.where(last, np.arange(table.shape[1]), table.shape[1])
    return np.minimum.accumulate(places[:, ::-1], axis=1)[:, ::-1]


def search(table: NDArray[Any], values: NDArray[Any], side: Literal["left", "right"]) -> Indices:
    """Where values[i] belong in the ascending table[i], shape (batch or 1, q); either may be shared by the whole batch."""
    count = max(len(table), len(values))
    found = np.empty((count, values.shape[1]), np.intp)
    for i in range(count):
        found[i] = table[i % len(table)].searchsorted(values[i % len(values)], side)
    return found
