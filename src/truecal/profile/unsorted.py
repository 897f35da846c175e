"""Rows of a large dataset before they are sorted, which may never be needed: see `width` and `selection`."""

from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from truecal.errors import InputError
from truecal.profile.cut import Cut
from truecal.profile.selection import MOST_RANKS, Selected, select
from truecal.profile.sort import packed_sort, sorts_slowly
from truecal.profile.width import WidthBins, one_pass, width_bins
from truecal.types import Float64s, Floats, Indices

LEAST_ROWS = 1 << 17  # fewer rows (of all datasets) are sorted at once
# Rows from which a selection is quicker than a sort, and selections after which a sort would have paid: where numpy sorts
# slowly, and where it does not (a selection of float64 takes 0.55 to 0.7 of the time then, that of float32 as long as a sort).
_SLOW_FROM, _SLOW_PASSES = 1 << 18, 3
_QUICK_FROM, _QUICK_PASSES = 1 << 20, 1
_PROBED = 1024  # scores by which a change of the arrays is noticed


class Unsorted:
    """Scores and outcomes of shape (batch, rows), as they came and not copied; equal questions are answered once."""

    def __init__(self, scores: Floats, outcomes: NDArray[np.uint8]) -> None:
        self.scores, self.outcomes = scores, outcomes
        self._step = max(1, scores.size // _PROBED)
        self._probe = self._probed()
        self._width: dict[tuple[int, str], WidthBins] = {}
        self._ranks: dict[bytes, Selected] = {}

    def sorted(self) -> tuple[Floats, NDArray[np.uint8]]:
        self._refuse_changed()
        return packed_sort(self.scores, self.outcomes)

    def width_cut(self, bins: object, closed: Literal["left", "right"]) -> Cut | None:
        """Cuts at j/bins with the sums below them, from one pass; None where a sort is better."""
        if not isinstance(bins, int) or not one_pass(bins, self.scores.dtype):
            return None
        found = self._width_bins(bins, closed, squares=False)
        place = _below(found.count.sum(axis=2)).astype(np.intp)

        def known(name: str, fraction: Float64s | None = None) -> Float64s:
            return _width_sums(name, self._width_bins(bins, closed, squares=name == "cc"))

        return Cut(place, place, known=known)

    def _width_bins(self, bins: int, closed: Literal["left", "right"], *, squares: bool) -> WidthBins:
        found = self._width.get((bins, closed))
        if found is None or (squares and found.square is None):
            self._refuse_changed()
            found = width_bins(self.scores, self.outcomes, bins, closed, squares=squares)
            self._width[bins, closed] = found
        return found

    def cut_at(self, ranks: Indices) -> Cut | None:
        """Cuts after the given numbers of rows with the sums below them; None where a sort is better."""
        most_passes = self._passes()
        if not most_passes or ranks.shape[1] > MOST_RANKS:
            return None
        wanted = np.unique(ranks[0])
        key = wanted.tobytes()
        if key not in self._ranks:
            if len(self._ranks) >= most_passes:
                return None
            self._refuse_changed()
            self._ranks[key] = select(self.scores[0], self.outcomes[0], wanted)
        found, at = self._ranks[key], np.searchsorted(wanted, ranks[0])
        first, last = found.first[at][None], found.last[at][None]
        fraction = (ranks - first) / np.maximum(last - first, 1)
        known = partial(_selected_sums, found, at, fraction)
        return Cut(first, last, fraction if fraction.any() else None, known)

    def _passes(self) -> int:
        """How many different questions are answered by selection before the rows are sorted."""
        batch, rows = self.scores.shape
        if batch > 1 or rows < _SLOW_FROM:
            return 0
        if sorts_slowly():
            return _SLOW_PASSES
        return _QUICK_PASSES if rows >= _QUICK_FROM and self.scores.itemsize == 8 else 0

    def whole(self) -> Cut:
        """The cut above all rows, with sums of c and y."""
        ends = np.full((len(self.scores), 1), self.scores.shape[1])
        counted = next(iter(self._width.values()), None)

        def known(name: str, fraction: Float64s | None = None) -> Float64s:
            if name == "w":
                return ends.astype(np.float64)
            if counted is not None:
                return _width_sums(name, counted)[:, -1:]
            self._refuse_changed()
            return (self.scores if name == "c" else self.outcomes).sum(axis=1, dtype=np.float64)[:, None]

        return Cut(ends, ends, known=known)

    def _probed(self) -> tuple[bytes, bytes]:
        return self.scores.ravel()[:: self._step].tobytes(), self.outcomes.ravel()[:: self._step].tobytes()

    def _refuse_changed(self) -> None:
        if self._probed() != self._probe:
            raise InputError("the arrays behind a Profile were changed after it was made of them; give it copies")


def _below(values: Float64s) -> Float64s:
    """Sums over all bins below each edge, along the last axis."""
    return np.concatenate([np.zeros((*values.shape[:-1], 1)), np.cumsum(values, axis=-1)], axis=-1)


def _width_sums(name: str, found: WidthBins) -> Float64s:
    if name == "cc":
        assert found.square is not None
        return _below(found.square.sum(axis=2))
    tables = {"w": found.count.sum(axis=2), "c": found.score.sum(axis=2)}
    tables |= {"y": found.count[:, :, 1], "cy": found.score[:, :, 1]}
    return _below(tables[name])


def _selected_sums(
    found: Selected, at: Indices, own: Float64s, name: str, fraction: Float64s | None = None
) -> Float64s:
    if name == "w":
        below, above = found.first[at].astype(np.float64), found.last[at].astype(np.float64)
    else:
        column = ("c", "y", "cc", "cy").index(name)
        below, above = found.below[at, column], found.above[at, column]
    return below[None] + (own if fraction is None else fraction) * (above - below)
