"""The Profile: ascending scores, their outcomes and weights, and prefix sums over them, with a leading batch axis.

Its rows come from a lens (or straight from arrays); every one-dimensional estimator reads nothing else. Sorting is paid once,
here; whatever an estimator asks for afterwards is a difference of two prefix sums.

Shapes: a profile holds `batch` datasets of `rows` rows each. Scores may be shared by the whole batch (shape (1, rows)) while
weights differ, which is how a bootstrap resamples without sorting again.

A row usually is one prediction. It may also stand for many (a cell of a sketch, a group of tied scores): then its weight is
their number, its score and outcome are their means, and `squares` / `products` keep the means of c*c and c*y.

Ties have no order. A place that falls inside a group of equal scores takes the same share of the group's ones as of its rows,
so no answer depends on the order in which rows arrived, and a row of weight 3 equals three rows.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from truecal.errors import InputError
from truecal.predictions import border
from truecal.profile.cut import Cut, every_edge, gather, search, width_edges
from truecal.profile.file import ARRAYS, load_arrays, save_arrays
from truecal.profile.ones import Ones
from truecal.profile.sort import packed_sort
from truecal.profile.unsorted import LEAST_ROWS, Unsorted
from truecal.types import Float64s, Floats, Indices

Sum = Literal["w", "c", "y", "cc", "cy"]
T = TypeVar("T")
_DENSE_ROWS = (
    65_536  # up to here tie groups and sums of c, c*c and c*y are tabulated row by row; beyond, where asked for
)
_BLOCK = 64  # rows summed together in the sparse tables of a large profile
_COMPARED = 1 << 20  # neighbouring scores compared at a time
_FEW = 128  # a sparse table pays while there are this many times more rows than cuts ...
_FEW_OF_BITS = 16  # ... and one of ones for longer


class Profile:
    """Sorted scores with prefix sums. Build one with :meth:`from_arrays` or a lens.

    >>> import truecal as tc
    >>> profile = tc.Profile.from_arrays([0.9, 0.2, 0.9, 0.6], [1, 0, 0, 1])
    >>> profile.scores
    array([[0.2, 0.6, 0.9, 0.9]])
    >>> profile.rows, profile.batch, profile.size
    (4, 1, array([4.]))
    """

    def __init__(
        self,
        scores: Floats,
        outcomes: NDArray[np.uint8] | Float64s,
        weights: Float64s | None = None,
        squares: Float64s | None = None,
        products: Float64s | None = None,
        *,
        single: bool = False,
        prefix: dict[str, NDArray[Any]] | None = None,
        units: Indices | None = None,
        unsorted: bool = False,
    ) -> None:
        """Wrap rows that are already sorted and checked, all of shape (batch, rows). `single`: answers are plain numbers.

        `unsorted`: rows without weights that are to be sorted when something asks for it.

        `units`: the unit (cluster) that every sorted row of a single dataset belongs to; None where rows are independent.
        """
        self._unsorted = Unsorted(scores, outcomes.astype(np.uint8, copy=False)) if unsorted else None
        self._scores = scores
        self._outcomes = outcomes
        self.weights = weights
        self.squares = squares
        self.products = products
        self.single = single
        self.units = units
        self.independent = units is None  # a batch of datasets whose rows belong together knows only that they do
        self.precision = scores.dtype  # of the scores as they came: edges are rounded to it
        self.rows = scores.shape[1]
        self.batch = max(a.shape[0] for a in (scores, outcomes, weights) if a is not None)
        self._prefix = {} if prefix is None else prefix
        self._once: dict[str, Any] = {}

    @property
    def scores(self) -> Floats:
        """Ascending scores, shape (batch or 1, rows)."""
        self._sort()
        return self._scores

    @property
    def outcomes(self) -> NDArray[np.uint8] | Float64s:
        """Their outcomes, shape (batch, rows)."""
        self._sort()
        return self._outcomes

    def _sort(self) -> None:
        if self._unsorted is not None:
            self._scores, self._outcomes = self._unsorted.sorted()
            self._unsorted = None

    # ------------------------------------------------------------------ making one

    @classmethod
    def from_arrays(cls, scores: ArrayLike, outcomes: ArrayLike, weights: ArrayLike | None = None) -> "Profile":
        """Sort scores in [0, 1] with their 0/1 outcomes; (m, n) arrays give a batch of m datasets.

        Whole-number weights count repetitions. Other weights are importance weights: only their ratios matter, and the sample
        size is Kish's effective size (sum w)^2 / sum w^2. A row of weight zero counts as absent.
        """
        c = border.check_scores(scores)
        y = border.check_outcomes(outcomes, c.shape)
        return cls.of_rows(c, y, None if weights is None else border.check_weights(weights, c.shape))

    @classmethod
    def of_rows(cls, scores: Floats, outcomes: NDArray[np.uint8], weights: Float64s | None = None) -> "Profile":
        """The same for independent rows that were checked before: one dataset, or (m, n) arrays for a batch."""
        single = scores.ndim == 1
        c, y = np.atleast_2d(scores), np.atleast_2d(outcomes)
        if weights is None:
            if c.size >= LEAST_ROWS:
                return cls(c, y, single=single, unsorted=True)
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

    def take(self, datasets: Indices | NDArray[np.bool_] | slice) -> "Profile":
        """Some of the datasets of a batch, with their prefix sums (a slice copies nothing)."""
        if self.rows <= _DENSE_ROWS:
            self.prefix("c"), self.prefix("y")  # here once rather than in every part

        def some(a: Any) -> Any:
            return a if a is None or a.shape[0] != self.batch else a[datasets]

        rows = map(some, (self.scores, self.outcomes, self.weights, self.squares, self.products))
        return Profile(*rows, prefix={name: some(table) for name, table in self._prefix.items()})

    def coarsen(self, cells: int, *, moments: bool = True) -> "Profile":
        """At most `cells` rows of about equal mass; equal scores stay together and the sums of every cell stay exact.

        Without `moments` the cells forget the sums of c*c and c*y, which are then those of the cell's mean.
        """
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
            at = np.minimum(np.broadcast_to(cut.below, (self.batch, cells + 1))[:, :-1], self.rows - 1)
            score = np.where(filled, score, gather(self.scores, at))
        score = np.clip(
            np.maximum.accumulate(score, axis=1), 0.0, 1.0
        )  # means of equal scores may differ in the last bit
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
        kept: T = self._once[name]
        return kept

    # ------------------------------------------------------------------ how much there is

    @cached_property
    def total(self) -> Float64s:
        """Sum of weights of each dataset, shape (batch,)."""
        if self.weights is None:
            return np.full(self.batch, float(self.rows))
        return np.broadcast_to(self.weights.sum(axis=1), (self.batch,))

    @cached_property
    def counted(self) -> bool:
        """Whether weights are repetition counts (all whole numbers), or there are none."""
        return self.weights is None or bool((self.weights == np.rint(self.weights)).all())

    @cached_property
    def size(self) -> Float64s:
        """Sample size of each dataset: the number of rows, the sum of counts, or Kish's effective size."""
        if self.counted or self.weights is None:
            return self.total
        return np.broadcast_to(self.weights.sum(axis=1) ** 2 / (self.weights**2).sum(axis=1), (self.batch,))

    # ------------------------------------------------------------------ prefix sums

    def _accumulate(self, name: Sum) -> NDArray[Any]:
        if name in ("cc", "cy"):
            values: NDArray[Any] = self._values(name, lambda a: a)
        else:
            values = self.scores if name == "c" else self.outcomes
            if self.weights is not None:
                values = self.weights * values
        counting = values.dtype == np.uint8
        dtype = (np.int32 if self.rows < 2**31 else np.int64) if counting else np.float64
        prefix = np.empty((values.shape[0], self.rows + 1), dtype)
        prefix[:, 0] = 0
        np.cumsum(values, axis=1, dtype=dtype, out=prefix[:, 1:])
        return prefix

    def prefix(self, name: Sum) -> NDArray[Any]:
        """Sums over the first i rows of w, w*c, w*y, w*c*c or w*c*y, shape (batch or 1, rows + 1)."""
        if name not in self._prefix:
            if name == "w":
                w = np.ones((1, self.rows)) if self.weights is None else self.weights
                prefix = np.zeros((w.shape[0], self.rows + 1))
                np.cumsum(w, axis=1, out=prefix[:, 1:])
                self._prefix[name] = prefix
            else:
                self._prefix[name] = self._accumulate(name)
        return self._prefix[name]

    def sums(self, name: Sum, cut: Cut) -> Float64s:
        """Sum over everything below each cut, shape (batch, q)."""
        if cut.known is not None:
            return cut.known(name)
        below = self._sums_at(name, cut.below)
        if cut.fraction is not None:
            below = below + cut.fraction * (self._sums_at(name, cut.above) - below)
        return below if below.shape[0] == self.batch else np.broadcast_to(below, (self.batch, below.shape[1]))

    def shared_ones(self) -> Float64s:
        """Ones among the first 0, 1, ..., all rows when a group of equal scores gives each of its rows the same part of them.

        Shape (batch, rows + 1); for rows that are single predictions without weights.
        """
        ones = self.prefix("y").astype(np.float64)
        if self.has_ties:
            first, last = self.groups
            dataset, row = np.nonzero(first < np.arange(self.rows))  # rows that are not the first of their group
            low, high = first[dataset, row], last[dataset, row]
            begin, end = ones[dataset, low], ones[dataset, high]
            ones[dataset, row] = begin + (row - low) / (high - low) * (end - begin)
        return ones

    def _sums_at(self, name: Sum, index: Indices) -> Float64s:
        """Sum over the first index[i, j] rows."""
        if name == "w" and self.weights is None:
            return index.astype(np.float64)
        bits = name == "y" and self.weights is None and self.outcomes.dtype == np.uint8
        few = self.rows > _DENSE_ROWS and index.shape[1] * (_FEW_OF_BITS if bits else _FEW) <= self.rows
        if name == "w" or not few:
            return gather(self.prefix(name), index).astype(np.float64)
        if bits:
            return self._ones.below(index).astype(np.float64)
        block = index // _BLOCK
        window = np.minimum(
            block * _BLOCK, self.rows - _BLOCK
        )  # its rows, or for an unfinished block the last there are
        values = self._values(name, lambda a: gather(sliding_window_view(a, _BLOCK, axis=1), window))
        begin, end = block * _BLOCK - window, index - window
        place = np.arange(_BLOCK)
        inside = (place >= begin[:, :, None]) & (place < end[:, :, None])
        return gather(self._block_sums(name), block) + np.where(inside, values, 0.0).sum(axis=2)

    @cached_property
    def _ones(self) -> Ones:
        return Ones(self.outcomes.astype(np.uint8, copy=False))

    def _block_sums(self, name: Sum) -> Float64s:
        """Sums of w*c, w*y, w*c*c or w*c*y over the first i blocks of rows: a prefix sum at a small part of the cost."""
        key = f"{name} of blocks"
        if key not in self._prefix:
            shape = self._values(name, lambda a: a[:, :1]).shape[0]
            blocks = -(-self.rows // _BLOCK)
            table = np.zeros((shape, blocks + 1))
            step = _BLOCK * 1024  # what stays in cache
            for start in range(0, self.rows, step):
                rows = slice(start, start + step)
                values = self._values(name, lambda a: a[:, rows])  # noqa: B023 (used at once)
                at = np.arange(0, values.shape[1], _BLOCK)
                table[:, start // _BLOCK + 1 :][:, : len(at)] = np.add.reduceat(values, at, axis=1)
            self._prefix[key] = np.cumsum(table, axis=1, out=table)
        return self._prefix[key]

    def _means(self, name: Sum) -> Float64s:
        """Mean of c*c or c*y of every row."""
        unweighted = Profile(self.scores, self.outcomes, None, self.squares, self.products)
        return unweighted._values(name, lambda a: a)

    def _values(self, name: Sum, part: Callable[[NDArray[Any]], NDArray[Any]]) -> Float64s:
        """w*c, w*y, w*c*c or w*c*y of a part of the rows."""
        held = {"c": self.scores, "y": self.outcomes, "cc": self.squares, "cy": self.products}[name]
        if held is not None:
            values = part(held).astype(np.float64, copy=False)
        else:
            c = part(self.scores).astype(np.float64, copy=False)
            values = c * (c if name == "cc" else part(self.outcomes))
        return values if self.weights is None else part(self.weights) * values

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
        place = self.places(width_edges(bins, self.precision), closed)
        place = np.where(k == b, self.rows, np.where(k == 0, 0, place))
        return Cut(place, place)

    def places(self, values: Floats, side: Literal["left", "right"]) -> Indices:
        """How many rows lie below each value (side "right": at or below), shape (batch or 1, q)."""
        return search(self.scores, np.atleast_2d(values), side)

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
            mass = k * self.total[:, None] / b
            mass = np.ceil(mass) if self.counted else mass
            if ties == "keep" and not self.has_ties:  # the nearer end of the row is known by its middle
                place = search(self._middles, mass, "right")
                return Cut(place, place)
            cut = self.at_mass(mass)
        return cut.keep_ties() if ties == "keep" else cut

    @cached_property
    def _middles(self) -> Float64s:
        """The mass in the middle of every row, shape (batch, rows)."""
        prefix = self.prefix("w")
        return (prefix[:, 1:] + prefix[:, :-1]) / 2

    def fills(self, cells: int) -> bool:
        """Whether each of so many cells of equal mass is known, without a sort, to hold scores of its own."""
        if self._unsorted is None or self.rows <= cells:
            return False
        cut = self._unsorted.cut_at(-(-np.arange(cells + 1)[None] * self.rows // cells))
        return cut is not None and bool((np.diff(cut.keep_ties().below) > 0).all())

    @property
    def constant(self) -> NDArray[np.bool_]:
        """Whether all scores of a dataset are equal, shape (batch or 1,)."""
        if self._unsorted is not None:
            return self._scores.min(axis=1) == self._scores.max(axis=1)
        return np.asarray(self._scores[:, 0] == self._scores[:, -1])

    @cached_property
    def has_ties(self) -> bool:
        """Whether any two rows of one dataset have the same score."""
        return bool((self.distinct < self.rows).any())

    def at_count(self, rows: Indices) -> Cut:
        """Cuts after the given numbers of rows, shape (batch or 1, q)."""
        if self._unsorted is not None and (quick := self._unsorted.cut_at(rows)) is not None:
            return quick
        here_only = rows.shape[1] * _FEW <= self.rows and "distinct" not in vars(
            self
        )  # cheaper than to look everywhere
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
        prefix = self.prefix("w")
        row = np.clip(search(prefix, mass, "right") - 1, 0, self.rows - 1)
        first, last = self._group(row)
        low = gather(prefix, first)
        part, whole = mass - low, gather(prefix, last) - low
        before = part <= 0
        after = (part >= whole) & ~before
        inside = ~(before | after)
        fraction = np.divide(part, whole, out=np.zeros_like(part), where=inside)
        return Cut(np.where(after, last, first), np.where(before, first, last), fraction)

    def _group(self, row: Indices) -> tuple[Indices, Indices]:
        """First row, and one past the last row, of the group of equal scores that each given row belongs to."""
        if not self.has_ties:
            return row, row + 1
        if self.rows <= _DENSE_ROWS:
            first, last = self.groups
            return gather(first, row), gather(last, row)
        row = np.broadcast_to(row, (max(row.shape[0], self.scores.shape[0]), row.shape[1]))
        scores = gather(self.scores, row)
        return self.places(scores, "left"), self.places(scores, "right")

    @cached_property
    def groups(self) -> tuple[Indices, Indices]:
        """First row, and one past the last row, of the group of equal scores of every row, shape (batch or 1, rows)."""
        fresh = self.scores[:, 1:] != self.scores[:, :-1]
        edge = np.ones((fresh.shape[0], 1), bool)
        index = np.arange(self.rows)
        first = np.maximum.accumulate(np.where(np.hstack([edge, fresh]), index, 0), axis=1)
        ends = np.where(np.hstack([fresh, edge]), index + 1, self.rows)
        last = np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]
        return first, last

    @cached_property
    def distinct(self) -> NDArray[np.intp]:
        """Number of distinct scores in each dataset, shape (batch,)."""
        count = np.zeros(len(self.scores), np.intp)
        for start in range(0, self.rows, _COMPARED):
            part = self.scores[:, start : start + _COMPARED + 1]
            fresh = part[:, 1:] != part[:, :-1]
            # one whole array is counted at once, far faster
            count += np.count_nonzero(fresh, axis=1 if len(fresh) > 1 else None)
        return np.broadcast_to(count + 1, (self.batch,))

    def __repr__(self) -> str:
        many = "" if self.batch == 1 else f"{self.batch} datasets of "
        weighted = "" if self.weights is None else ", weighted"
        return f"Profile({many}{self.rows} rows{weighted})"
