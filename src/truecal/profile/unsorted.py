"""Rows of a large dataset before they are sorted, which may never be needed: see `width`."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from truecal.errors import InputError
from truecal.profile.cut import Cut
from truecal.profile.sort import packed_sort
from truecal.profile.width import WidthBins, one_pass, width_bins
from truecal.types import Float64s, Floats

LEAST_ROWS = 1 << 17  # fewer rows (of all datasets) are sorted at once
_PROBED = 1024  # scores by which a change of the arrays is noticed


class Unsorted:
    """Scores and outcomes of shape (batch, rows), as they came and not copied; equal questions are answered once."""

    def __init__(self, scores: Floats, outcomes: NDArray[np.uint8]) -> None:
        self.scores, self.outcomes = scores, outcomes
        self._step = max(1, scores.size // _PROBED)
        self._probe = self._probed()
        self._width: dict[tuple[int, str], WidthBins] = {}

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
