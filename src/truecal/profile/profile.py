"""The Profile: sorted scores with prefix sums, and its file."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecal import options
from truecal.errors import FileError, InputError
from truecal.predictions import files, validation
from truecal.profile.binning import Cut, every_edge, gather, last_of_equal, search, width_edges
from truecal.profile.rows import DENSE_ROWS, FEW, LEAST_ROWS, Rows, Sum, Unsorted
from truecal.profile.sort import packed_sort
from truecal.types import Float64s, Floats, Indices
from truecal.writing import write_whole

# ----------------------------------------------------------------------------------------------------
# Profiles on disk: a versioned npz file, written whole or not at all, read without pickle

_FORMAT, _VERSION = "truecal.profile", 1
ARRAYS = ("scores", "outcomes", "weights", "squares", "products")


def save_arrays(path: str | Path, arrays: dict[str, NDArray[Any]], *, single: bool) -> None:
    """Write the arrays of a profile; the file at `path` is replaced in one step."""
    header = {"format": np.array(_FORMAT), "version": np.array(_VERSION), "single": np.array(single)}
    write_whole(path, lambda file: np.savez(file, **header, **arrays))  # type: ignore[arg-type]


def load_arrays(path: str | Path) -> tuple[list[NDArray[Any] | None], bool]:
    """What :func:`save_arrays` wrote: one array or None for each of ARRAYS, and whether answers are plain numbers."""
    file = Path(path)
    arrays = files.read_arrays(file)
    if str(arrays.get("format")) != _FORMAT or not {"version", "single", "scores", "outcomes"} <= arrays.keys():
        raise FileError(f"{file.name} is not a saved profile")
    if int(arrays["version"]) > _VERSION:
        raise FileError(f"{file.name} was written by a newer truecal (version {int(arrays['version'])} of the format)")
    parts = {name: arrays.get(name) for name in ARRAYS}
    scores = arrays["scores"]
    if scores.ndim != 2 or not scores.size or not (np.diff(scores, axis=1) >= 0).all():
        raise FileError(f"{file.name} is damaged: its scores are not sorted")
    if any(a is not None and (a.ndim != 2 or a.shape[1] != scores.shape[1]) for a in parts.values()):
        raise FileError(f"{file.name} is damaged: its arrays do not match")
    _refuse_nonsense(file.name, parts)
    return list(parts.values()), bool(arrays["single"])


def _refuse_nonsense(name: str, parts: dict[str, NDArray[Any] | None]) -> None:
    """Raise where numbers cannot be those of a profile."""
    for what, array in parts.items():
        if array is None:
            continue
        if array.dtype.kind not in "fu" or not np.isfinite(array).all():
            raise FileError(f"{name} is damaged: its {what} are not numbers")
        upper_limit = np.inf if what == "weights" else 1.0
        wrong = (array < 0) | (array > upper_limit)
        if wrong.any():
            row, value = int(np.argwhere(wrong)[0, 1]), array[wrong][0]
            raise FileError(f"{name} is damaged: its {what} cannot hold {value:g} (row {row})")


# ----------------------------------------------------------------------------------------------------
# The Profile: ascending scores, their outcomes and weights, and prefix sums over them, with a leading batch axis

T = TypeVar("T")


class Profile(Rows):
    """Sorted scores with prefix sums. Build one with :meth:`from_arrays` or a lens.

    >>> import truecal as tc
    >>> profile = tc.profile.Profile.from_arrays([0.9, 0.2, 0.9, 0.6], [1, 0, 0, 1])
    >>> profile.scores
    array([[0.2, 0.6, 0.9, 0.9]])
    >>> profile.rows, profile.batch, profile.size
    (4, 1, array([4.]))
    """

    # ------------------------------------------------------------------ making one

    @classmethod
    def from_arrays(cls, scores: ArrayLike, outcomes: ArrayLike, weights: ArrayLike | None = None) -> "Profile":
        """Sort scores in [0, 1] with their 0/1 outcomes; (m, n) arrays give a batch of m datasets.

        Whole-number weights count repetitions. Other weights are importance weights: only their ratios matter, and the sample
        size is Kish's effective size (sum w)^2 / sum w^2. A row of weight zero counts as absent.
        """
        c = validation.check_scores(scores)
        y = validation.check_outcomes(outcomes, c.shape)
        return cls.of_rows(c, y, None if weights is None else validation.check_weights(weights, c.shape))

    @classmethod
    def of_rows(cls, scores: Floats, outcomes: NDArray[np.uint8], weights: Float64s | None = None) -> "Profile":
        """The same for independent rows that were checked before: one dataset, or (m, n) arrays for a batch."""
        single = scores.ndim == 1
        c, y = np.atleast_2d(scores), np.atleast_2d(outcomes)
        if weights is None:
            if c.size >= LEAST_ROWS:
                profile = cls(c, y, single=single)
                profile._unsorted = Unsorted(c, y)
                return profile
            return cls(*packed_sort(c, y), single=single)
        w = np.atleast_2d(weights)
        if single and not w.all():
            c, y, w = c[w > 0][None], y[w > 0][None], w[w > 0][None]
        order = np.argsort(c, axis=-1)

        def sorted_(a: NDArray[Any]) -> NDArray[Any]:
            return np.take_along_axis(a, order, axis=-1)

        return cls(np.abs(sorted_(c)), sorted_(y), sorted_(w), single=single)  # abs: -0.0 becomes 0.0

    def __add__(self, other: "Profile") -> "Profile":
        """All rows of both: exactly the profile of the joined data."""
        if not isinstance(other, Profile):
            return NotImplemented
        if self.batch != other.batch or self.single != other.single:
            raise InputError(f"profiles of {self.batch} and {other.batch} datasets cannot be added; add like to like")
        plain = all(p.weights is None and p.outcomes.dtype == np.uint8 for p in (self, other))
        shape = (self.batch, -1)

        def both(mine: NDArray[Any], others: NDArray[Any]) -> NDArray[Any]:
            spread = [np.broadcast_to(a, (self.batch, a.shape[1])) for a in (mine, others)]
            return np.concatenate(spread, axis=1)

        scores = both(self.scores, other.scores)
        outcomes = both(self.outcomes, other.outcomes)
        if plain:
            return Profile(*packed_sort(scores, outcomes), single=self.single)
        order = np.argsort(scores, axis=-1)

        def sorted_(a: NDArray[Any]) -> NDArray[Any]:
            return np.take_along_axis(a, order, axis=-1)

        weights = both(*(np.ones(p.scores.shape) if p.weights is None else p.weights for p in (self, other)))
        aggregated = any(p.squares is not None for p in (self, other))
        squares = sorted_(both(self._means("cc"), other._means("cc"))) if aggregated else None
        products = sorted_(both(self._means("cy"), other._means("cy"))) if aggregated else None
        return Profile(
            sorted_(scores).reshape(shape),
            sorted_(outcomes),
            sorted_(weights),
            squares,
            products,
            single=self.single,
        )

    def __radd__(self, other: object) -> "Profile":
        """So that sum(parts) works."""
        if other == 0:
            return self
        return NotImplemented

    def take(self, datasets: ArrayLike | slice) -> "Profile":
        """Some of the datasets of a batch, with their prefix sums (a slice copies nothing)."""
        chosen = datasets if isinstance(datasets, slice) else validation.check_rows(datasets, self.batch, "datasets")
        if self.rows <= DENSE_ROWS:
            self.prefix("c"), self.prefix("y")  # here once rather than in every part

        def some(a: Any) -> Any:
            return a if a is None or a.shape[0] != self.batch else a[chosen]

        rows = map(some, (self.scores, self.outcomes, self.weights, self.squares, self.products))
        part = Profile(*rows, prefix={name: some(table) for name, table in self._prefix.items()})
        part.counted = self.counted  # what weights mean does not depend on which datasets are looked at
        return part

    def coarsen(self, cells: int, *, moments: bool = True) -> "Profile":
        """At most `cells` rows of about equal mass; equal scores stay together and the sums of every cell stay exact.

        Without `moments` the cells forget the sums of c*c and c*y, which are then those of the cell's mean.
        """
        options.whole(cells, "cells")
        if self.rows <= cells:
            return self
        cut = self.mass_cut(cells)
        names: tuple[Sum, ...] = ("w", "c", "y", "cc", "cy") if moments else ("w", "c", "y")
        sums = [np.diff(self.sums(name, cut), axis=1) for name in names]
        if self.batch == 1:
            sums = [a[:, sums[0][0] > 0] for a in sums]
        weight = sums[0]
        filled = weight > 0
        score, outcome, *second = (a / np.where(filled, weight, 1.0) for a in sums[1:])
        if not filled.all():  # an empty cell of a batch stands at the score where it would be
            position = np.minimum(np.broadcast_to(cut.below, (self.batch, cells + 1))[:, :-1], self.rows - 1)
            score = np.where(filled, score, gather(self.scores, position))
        # Means of equal scores may differ in the last bit
        score = np.clip(np.maximum.accumulate(score, axis=1), 0.0, 1.0)
        return Profile(score, outcome, weight, *second, single=self.single)

    def save(self, path: str | Path) -> None:
        """Write to a versioned npz file, atomically."""
        arrays = {name: array for name in ARRAYS if (array := getattr(self, name)) is not None}
        save_arrays(path, arrays, single=self.single)

    @staticmethod
    def load(path: str | Path) -> "Profile":
        """Read a file written by :meth:`save`; a damaged or newer file is refused by name."""
        parts, single = load_arrays(path)
        return Profile(*parts, single=single)  # type: ignore[arg-type]

    def spread(self, cells: int) -> "Profile":
        """The same data for estimators that go by ranks and make `cells` cells of it: nothing hides a rank here."""
        return self

    def refuse_dependent(self, remedy: str) -> None:
        """Raise where rows belong together, for what takes them as independent."""
        if not self.independent:
            raise InputError(f"rows of this profile belong together; {remedy}")

    def once(self, name: str, make: "Callable[[Profile], T]") -> T:
        """What `make` makes of these rows; made on first need and kept, so that nothing is fitted twice."""
        if name not in self._once:
            self._once[name] = make(self)
        value: T = self._once[name]
        return value

    def sums(self, name: Sum, cut: Cut) -> Float64s:
        """Sum over everything below each cut, shape (batch, q)."""
        if cut.known is not None:
            return cut.known(name)
        below = self._sums_at(name, cut.below)
        if cut.fraction is not None:
            below = below + cut.fraction * (self._sums_at(name, cut.above) - below)
        return below if below.shape[0] == self.batch else np.broadcast_to(below, (self.batch, below.shape[1]))

    # ------------------------------------------------------------------ cuts: the one edge rule, the one tie rule

    def width_cut(self, bins: int | Sequence[int] | Indices, closed: Literal["left", "right"] = "left") -> Cut:
        """Cuts at 0, 1/b, ..., 1: bin j is [j/b, (j+1)/b) with the last one closed, or (j/b, (j+1)/b] with the first one closed.

        Edges are j/b rounded to the precision of the scores, so that 0.7 falls into the same bin in every precision. Several
        numbers of bins give the cuts of one after those of the other; a column of them, shape (batch, 1), gives every dataset
        its own number.
        """
        if self._unsorted is not None and (quick := self._unsorted.width_cut(bins, closed)) is not None:
            return quick
        k, b = every_edge(bins)
        position = self.places(width_edges(bins, self.precision), closed)
        position = np.where(k == b, self.rows, np.where(k == 0, 0, position))
        return Cut(position, position)

    def mass_cut(self, bins: int | Sequence[int] | Indices, ties: Literal["keep", "split"] = "keep") -> Cut:
        """Cuts at ceil(k n / b) rows, k = 0..b; with importance weights at k/b of the total weight.

        "keep": a group of equal scores that a cut would split goes whole to the side that holds the larger part of it.
        "split": the cut stays where it is and the group's rows and ones are shared in proportion. Several numbers of bins, or a
        column of them, as in :meth:`width_cut`.
        """
        k, b = every_edge(bins)
        if self.weights is None:
            cut = self.at_count(np.atleast_2d(-(-k * self.rows // b)))
        else:
            mass = k * self.total[: 1 if self.alike else None, None] / b
            mass = np.ceil(mass) if self.counted else mass
            if ties == "keep" and not self.has_ties:  # the nearer end of the row is known by its middle
                position = search(self._middles, mass, "right")
                return Cut(position, position)
            cut = self.at_mass(mass)
        return cut.keep_ties() if ties == "keep" else cut

    @cached_property
    def _middles(self) -> Float64s:
        """The mass in the middle of every row, shape (batch, rows)."""
        prefix = self.prefix("w")
        return (prefix[:, 1:] + prefix[:, :-1]) / 2

    def at_count(self, rows: Indices) -> Cut:
        """Cuts after the given numbers of rows, shape (batch or 1, q)."""
        here_only = rows.shape[1] * FEW <= self.rows and "distinct" not in vars(self)  # cheaper than to look everywhere
        if not here_only and not self.has_ties:
            return Cut(rows, rows)
        rows = np.broadcast_to(rows, (self.scores.shape[0], rows.shape[1]))
        inner = np.clip(rows, 1, self.rows - 1)
        inside = (gather(self.scores, inner - 1) == gather(self.scores, inner)) & (rows == inner)
        if here_only and not inside.any():
            return Cut(rows, rows)
        first, last = self._group(inner)
        below, above = np.where(inside, first, rows), np.where(inside, last, rows)
        return Cut(below, above, np.where(inside, (rows - below) / np.maximum(above - below, 1), 0.0))

    def whole(self) -> Cut:
        """The cut above all rows, for sums of c and y over all of them."""
        end = np.array([[self.rows]])
        return Cut(end, end) if self._unsorted is None else self._unsorted.whole()

    def at_mass(self, mass: Float64s) -> Cut:
        """Cuts below which the weights sum to the given values, shape (batch, q). Rows of a weighted profile can be split."""
        return self._cut_in(search(self.prefix("w"), mass, "right") - 1, mass)

    def at_rows(self) -> Cut:
        """The same below every row and above the last, each at the mass of all rows before it: nothing is searched for."""
        prefix = np.broadcast_to(self.prefix("w"), (self.batch, self.rows + 1))
        return self._cut_in(last_of_equal(prefix), prefix)

    def _cut_in(self, row: Indices, mass: Float64s) -> Cut:
        """Cuts at the given masses, each of which lies in, or at the beginning of, the given row."""
        prefix, row = self.prefix("w"), np.clip(row, 0, self.rows - 1)
        first, last = self._group(row)
        low = gather(prefix, first)
        part, whole = mass - low, gather(prefix, last) - low
        before = part <= 0
        after = (part >= whole) & ~before
        inside = ~(before | after)
        fraction = np.divide(part, whole, out=np.zeros_like(part), where=inside)
        return Cut(np.where(after, last, first), np.where(before, first, last), fraction)

    def __repr__(self) -> str:
        many = "" if self.batch == 1 else f"{self.batch} datasets of "
        weighted = "" if self.weights is None else ", weighted"
        return f"Profile({many}{self.rows} rows{weighted})"


def check_profile(profile: object, name: str = "profile") -> None:
    """Refuse what is not a Profile."""
    options.instance(profile, Profile, name, "a Profile", "a lens such as tc.TopLabel() makes one of Predictions")
