"""The Sketch: counts and sums of scores and outcomes in fixed cells, and its file."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecal import options
from truecal.errors import FileError, InputError
from truecal.predictions import files, validation
from truecal.profile.cell_profile import CellProfile
from truecal.profile.cells import SUMS, Tally, all_edges, cell_edge
from truecal.types import Float64s
from truecal.writing import write_whole

# ----------------------------------------------------------------------------------------------------
# Sketches on disk: a versioned npz file, written whole or not at all, read without pickle and checked on the way in

_VERSION = 1  # by choice: counts the changes of the format
_ALWAYS = ("edges", "low", "high", *(name for name in SUMS if name not in ("w", "ww")))


def _refuse_damaged(name: str, arrays: dict[str, NDArray[Any]]) -> None:
    """Raise FileError, which names the file, if arrays (by key, those of :meth:`Sketch.save`) cannot be those of a sketch.

    Required: finite float64 arrays of one shape; precision 2, 4 or 8; fraction in [0, 0.5]; ascending edges of cells that contain
    low <= high; whole n >= 1, w > 0, 0 <= y <= w, w^2 / n <= ww <= w^2; and `_possible_moments`.
    """
    edges, low, high, n = (arrays[key] for key in ("edges", "low", "high", "n"))
    tables = [arrays[key] for key in (*_ALWAYS, "w", "ww") if key in arrays]
    if any(a.dtype != np.float64 or a.shape != edges.shape or not np.isfinite(a).all() for a in tables):
        raise FileError(f"{name} is damaged: its arrays do not match")
    if int(arrays["precision"]) not in (2, 4, 8) or not 0 <= float(arrays["fraction"]) <= 0.5:
        raise FileError(f"{name} is damaged: its precision or its weights are invalid")
    inside = (edges >= 0) & (low <= high) & (high <= 1)
    in_cells = all(np.array_equal(cell_edge(scores), edges) for scores in (low, high)) if inside.all() else False
    if not in_cells or not (np.diff(edges) > 0).all():
        raise FileError(f"{name} is damaged: its cells are not those of a sketch")
    w = arrays.get("w", n)
    ww = arrays.get("ww", n)
    counted = (n >= 1) & (n == np.floor(n)) & (w > 0) & _between(w * w, ww * n, w * w * n) & _between(0, arrays["y"], w)
    if not counted.all():
        raise FileError(f"{name} is damaged: its counts are invalid")
    if not _possible_moments(arrays, w).all():
        raise FileError(f"{name} is damaged: its sums of scores are invalid")


def _possible_moments(arrays: dict[str, NDArray[Any]], w: Float64s) -> NDArray[np.bool_]:
    """Decide for every cell whether its r, r*r and r*y can be sums over rows with r between low - edge and high - edge.

    `w`, shape (cells,), are the sums of weights; `arrays` holds edges, low, high, y, r, rr and ry of the same shape.
    """
    lowest, highest = (arrays[key] - arrays["edges"] for key in ("low", "high"))
    y, r, rr, ry = (arrays[key] for key in ("y", "r", "rr", "ry"))
    return (
        _between(lowest * w, r, highest * w)
        & _between(lowest * y, ry, highest * y)
        & _between(lowest * (w - y), r - ry, highest * (w - y), highest * w)
        & _between(r * r, rr * w, highest * r * w)
    )


def _between(low: Any, value: Float64s, high: Any, size: Any = None) -> NDArray[np.bool_]:
    """Decide low <= value <= high, elementwise, up to 1e-9 max(value, size) for rounding; `size` is `high` by default.

    >>> _between(0.0, np.array([-1.0, 0.5, 1.0 + 1e-12]), 1.0)
    array([False,  True,  True])
    """
    slack = 1e-9 * np.maximum(high if size is None else size, value) + 1e-300
    return np.asarray((value >= low - slack) & (value <= high + slack))


# ----------------------------------------------------------------------------------------------------
# The Sketch


class Sketch:
    """Summarise any number of scores and outcomes in bounded memory: sums in cells that are fine near 0 and near 1.

    Every estimator accepts one; `sketch_error` of its Estimate bounds the difference from the value of all rows. Threads may
    `update` and `merge` one sketch at the same time.

    Attributes
    ----------
    edges : ndarray of shape (cells,)
        Left edges of the filled cells, ascending.
    sums : dict of str to ndarray
        Sums in each cell: n (rows), w, ww (weights and their squares), and the weighted sums of y, r, r*r and r*y, with the score
        c, the outcome y and r = c - edge.
    low : ndarray of shape (cells,)
        Smallest score in each cell.
    high : ndarray of shape (cells,)
        Largest score in each cell.
    fraction : float
        Largest distance of a weight from a whole number; 0 where weights count repetitions or there are none.
    precision : int
        Bytes per score of the coarsest batch (2, 4 or 8): edges of equal-width bins are rounded to it.

    See Also
    --------
    truecal.profile.Profile : All rows, sorted.
    truecal.Accumulator : A sketch with a lens, for batches of probabilities.

    Examples
    --------

    >>> import numpy as np, truecal as tc
    >>> from truecal.profile import Sketch
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(100_000)
    >>> y = rng.random(100_000) < c**1.2
    >>> parts = [Sketch.from_arrays(c[i::4], y[i::4]) for i in range(4)]
    >>> sketch = sum(parts[1:], parts[0])
    >>> sketch
    Sketch(100000 rows in 16721 cells)
    >>> est, exact = (tc.BinnedECE(scheme="mass")(p) for p in (sketch, tc.profile.Profile.from_arrays(c, y)))
    >>> abs(est.value - exact.value) < est.sketch_error < 0.002
    True
    """

    SUMS: ClassVar[tuple[str, ...]] = SUMS

    def __init__(self) -> None:
        """Make an empty sketch.

        >>> Sketch()
        Sketch(0 rows in 0 cells)
        """
        self._lock = Lock()  # held while the arrays are replaced, and while all of them are read
        self.edges: Float64s = np.zeros(0)
        self.sums: dict[str, Float64s] = {name: np.zeros(0) for name in SUMS}
        self.low: Float64s = np.zeros(0)
        self.high: Float64s = np.zeros(0)
        self.fraction = 0.0
        self.precision = 8

    # ------------------------------------------------------------------ making one

    @classmethod
    def from_arrays(cls, scores: ArrayLike, outcomes: ArrayLike, weights: ArrayLike | None = None) -> Sketch:
        """Make the sketch of scores with their outcomes.

        Parameters
        ----------
        scores : array-like of shape (n,)
            Scores in [0, 1].
        outcomes : array-like of shape (n,)
            0 or 1.
        weights : array-like of shape (n,), default None
            Non-negative weights.

        Returns
        -------
        sketch : Sketch
            A new sketch.
        """
        sketch = cls()
        sketch.update(scores, outcomes, weights)
        return sketch

    @classmethod
    def from_tally(cls, tally: Tally, precision: int = 8) -> Sketch:
        """Make a sketch of the filled cells of a tally.

        Parameters
        ----------
        tally : Tally
            Counted rows.
        precision : int, default 8
            Bytes per score: 2, 4 or 8.

        Returns
        -------
        sketch : Sketch
            A new sketch.
        """
        filled = np.flatnonzero(tally.sums[0])
        sums = {name: tally.sums[i, filled] for i, name in enumerate(SUMS[: len(tally.sums)])}
        return cls.from_cells(
            all_edges()[filled], sums, tally.low[filled], tally.high[filled], tally.fraction, precision
        )

    @classmethod
    def from_cells(
        cls,
        edges: Float64s,
        sums: dict[str, Float64s],
        low: Float64s,
        high: Float64s,
        fraction: float = 0.0,
        precision: int = 8,
    ) -> Sketch:
        """Make a sketch of sums per cell, in any order; a cell may occur more than once.

        Parameters
        ----------
        edges : ndarray of shape (k,)
            Left edges of cells.
        sums : dict of str to ndarray
            Sums by name; without "w" every row has weight 1.
        low : ndarray of shape (k,)
            Smallest scores.
        high : ndarray of shape (k,)
            Largest scores.
        fraction : float, default 0.0
            Largest distance of a weight from a whole number.
        precision : int, default 8
            Bytes per score: 2, 4 or 8.

        Returns
        -------
        sketch : Sketch
            A new sketch.
        """
        sketch = cls()
        if "w" not in sums:
            sums = {**sums, "w": sums["n"], "ww": sums["n"]}
        sketch.fraction, sketch.precision = float(fraction), int(precision)
        if (edges[1:] > edges[:-1]).all():
            # in order, each once, as in the many small groups of a scan: nothing to add up
            sketch.edges, sketch.low, sketch.high = (np.array(a, np.float64) for a in (edges, low, high))
            sketch.sums = {name: np.array(sums[name], np.float64) for name in SUMS}
            return sketch
        sketch.edges, cell = np.unique(edges, return_inverse=True)
        count = len(sketch.edges)
        sketch.sums = {name: np.bincount(cell, sums[name], count).astype(np.float64) for name in SUMS}
        sketch.low, sketch.high = np.full(count, np.inf), np.full(count, -np.inf)
        np.minimum.at(sketch.low, cell, low)
        np.maximum.at(sketch.high, cell, high)
        return sketch

    def update(self, scores: ArrayLike, outcomes: ArrayLike, weights: ArrayLike | None = None) -> Sketch:
        """Count a batch, which may be empty.

        Parameters
        ----------
        scores : array-like of shape (n,)
            Scores in [0, 1].
        outcomes : array-like of shape (n,)
            0 or 1.
        weights : array-like of shape (n,), default None
            Non-negative weights.

        Returns
        -------
        self : Sketch
            The sketch itself.

        Raises
        ------
        InputError
            A score lies outside [0, 1], an outcome is not 0 or 1, a weight is invalid, or there are several datasets.
        """
        shapes = [np.shape(validation.as_floats(scores, "scores")), np.shape(validation.as_array(outcomes, "outcomes"))]
        if all(shape[:1] == (0,) for shape in shapes):
            return self
        c = validation.check_scores(scores)
        if c.ndim != 1:
            raise InputError(f"a sketch holds one dataset, but scores have shape {c.shape}; make one per dataset")
        y = validation.check_outcomes(outcomes, c.shape)
        w = None if weights is None else validation.check_weights(weights, c.shape)
        precision = min(8, c.dtype.itemsize)
        tally = Tally()
        tally.add(c, y, w)
        return self.merge(Sketch.from_tally(tally, precision))

    def merge(self, *others: Sketch) -> Sketch:
        """Add all rows of other sketches.

        Sums of the same cell are added; the precision is the lowest of all. Others are not changed.

        Parameters
        ----------
        *others : Sketch
            Any number of them.

        Returns
        -------
        self : Sketch
            The sketch itself.

        Raises
        ------
        InputError
            One of the others is no Sketch.
        """
        for other in others:
            if not isinstance(other, Sketch):
                raise InputError(f"what is merged into a sketch must be a Sketch, not {type(other).__name__}")
        added = [state for state in (other.__getstate__() for other in others) if len(state["edges"])]
        if not added:
            return self
        with self._lock:
            states = [vars(self), *added] if self.cells else added
            merged = Sketch.from_cells(
                np.concatenate([s["edges"] for s in states]),
                {name: np.concatenate([s["sums"][name] for s in states]) for name in SUMS},
                np.concatenate([s["low"] for s in states]),
                np.concatenate([s["high"] for s in states]),
                max(s["fraction"] for s in states),
                min(s["precision"] for s in states),
            )
            vars(self).update(merged.__getstate__())
        return self

    def __add__(self, other: Sketch) -> Sketch:
        """Return a new sketch of the rows of both.

        >>> Sketch.from_arrays([0.5], [1]) + Sketch.from_arrays([0.2, 0.5], [0, 1])
        Sketch(3 rows in 2 cells)
        """
        if not isinstance(other, Sketch):
            return NotImplemented
        return Sketch().merge(self, other)

    def __radd__(self, other: object) -> Sketch:
        """Return the sketch itself for 0, so that sum(parts) works.

        >>> sum([Sketch.from_arrays([0.5], [1]), Sketch.from_arrays([0.2, 0.5], [0, 1])])
        Sketch(3 rows in 2 cells)
        """
        return self if other == 0 else NotImplemented

    def __getstate__(self) -> dict[str, Any]:
        """Return a consistent state without the lock: the arrays are replaced, never changed."""
        with self._lock:
            return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes returned by `__getstate__`, with a new lock."""
        self.__init__()  # type: ignore[misc]  # a lock of its own
        vars(self).update(state)

    # ------------------------------------------------------------------ reading it

    @property
    def cells(self) -> int:
        """Number of filled cells.

        >>> Sketch.from_arrays([0.2, 0.5, 0.5], [0, 1, 1]).cells
        2
        """
        return len(self.edges)

    @property
    def rows(self) -> int:
        """Number of rows counted in.

        >>> Sketch.from_arrays([0.2, 0.5, 0.5], [0, 1, 1]).rows
        3
        """
        return round(float(self.sums["n"].sum()))

    @property
    def nbytes(self) -> int:
        """Memory of the arrays, in bytes.

        >>> Sketch.from_arrays([0.5], [1]).nbytes  # ten numbers per cell
        80
        """
        return sum(a.nbytes for a in (self.edges, self.low, self.high, *self.sums.values()))

    def to_profile(self) -> CellProfile:
        """Return one row per filled cell, or per prediction in cells of up to three, for every estimator.

        Returns
        -------
        profile : CellProfile
            A copy of the present state.

        Raises
        ------
        InputError
            The sketch is empty.
        """
        copy = Sketch()
        copy.__setstate__(self.__getstate__())
        if not copy.cells:
            raise InputError("the sketch is empty; at least one row is needed")
        return CellProfile(copy)

    def save(self, path: str | Path) -> None:
        """Write to a versioned npz file, atomically.

        Parameters
        ----------
        path : str or Path
            The file.
        """
        arrays = {"edges": self.edges, "low": self.low, "high": self.high, **self.sums}
        if all(np.array_equal(self.sums["n"], self.sums[name]) for name in ("w", "ww")):
            del arrays["w"], arrays["ww"]  # every row counts once
        header = {
            "format": np.array("truecal.sketch"),
            "version": np.array(_VERSION),
            "fraction": np.array(self.fraction),
            "precision": np.array(self.precision),
        }
        write_whole(path, lambda file: np.savez_compressed(file, **header, **arrays))  # type: ignore[arg-type]

    @staticmethod
    def load(path: str | Path) -> Sketch:
        """Read a file written by :meth:`save`.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        sketch : Sketch
            The sketch.

        Raises
        ------
        FileError
            The file is missing, damaged, of a newer version, or no sketch.
        """
        options.path(path)
        arrays = files.read_saved(path, "sketch", _VERSION, (*_ALWAYS, "fraction", "precision"))
        with np.errstate(all="ignore"):  # what overflows is refused
            _refuse_damaged(Path(path).name, arrays)
        sums = {name: arrays[name] for name in SUMS if name in arrays}
        scalars = float(arrays["fraction"]), int(arrays["precision"])
        return Sketch.from_cells(arrays["edges"], sums, arrays["low"], arrays["high"], *scalars)

    def __repr__(self) -> str:
        """Return such as "Sketch(3 rows in 2 cells)"."""
        return f"Sketch({self.rows} rows in {self.cells} cells)"
