"""The Profile of a sketch: one row per cell, or per prediction where the cell determines them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from truecal.profile.binning import Cut
from truecal.profile.cells import FilledCells, rows_from_cells
from truecal.profile.profile import Profile
from truecal.profile.rows import Sum
from truecal.types import Float64s, Indices

_FINER = 4  # derived: a piece moves the edge of an estimator's cell by at most a quarter of it
_FLOATS: dict[int, np.dtype[Any]] = {2: np.dtype(np.float16), 4: np.dtype(np.float32), 8: np.dtype(np.float64)}


class CellProfile(Profile):
    """Hold the cells of a sketch as rows: weights are sums, scores and outcomes are means.

    `low` and `high` are the extreme scores of each row, shape (rows,); `row_count` is the number of predictions in all of them
    and `precision` the type of their scores.

    Parameters
    ----------
    sketch : Sketch
        Not empty.

    See Also
    --------
    Sketch.to_profile : The method that returns it.

    Examples
    --------
    >>> import truecal as tc
    >>> tc.Sketch.from_arrays([0.1, 0.4, 0.6], [0, 0, 1]).to_profile().rows
    3
    """

    def __init__(self, sketch: FilledCells) -> None:
        """Read means and weights of the cells of a sketch that is not empty."""
        rows = rows_from_cells(sketch)
        w, ww = sketch.sums["w"], sketch.sums["ww"]
        self.cell_rows, self.low, self.high = rows, rows.low, rows.high
        self.row_count = sketch.rows
        self._whole = sketch.fraction == 0
        self._size = np.array([w.sum() if self._whole else w.sum() ** 2 / ww.sum()])
        means = (rows.score, rows.outcome, rows.weight, rows.squares, rows.products)
        super().__init__(*(array[None] for array in means), single=True)
        self.precision = _FLOATS[sketch.precision]

    @property
    def rounding(self) -> float:
        """Bound of the rounding of a sum over all rows in any order, as a share of their total weight: 1e-13 + 1.2e-16 rows.

        >>> import truecal as tc
        >>> tc.Sketch.from_arrays([0.2, 0.8], [0, 1]).to_profile().rounding == 1e-13 + 1.2e-16 * 2
        True
        """
        return 1e-13 + 1.2e-16 * self.row_count

    @property
    def counted(self) -> bool:
        """Whether the weights of all rows of the sketch were whole numbers, so that they count repetitions.

        >>> import truecal as tc
        >>> tc.Sketch.from_arrays([0.2, 0.8], [0, 1], [1.0, 0.5]).to_profile().counted
        False
        """
        return self._whole

    @property
    def size(self) -> Float64s:
        """Sample size of all rows of the sketch, shape (1,): the sum of their weights if `counted`, else Kish's effective size.

        >>> import truecal as tc
        >>> tc.Sketch.from_arrays([0.2, 0.8], [0, 1], [1.0, 2.0]).to_profile().size
        array([3.])
        """
        return self._size

    def sums(self, name: Sum, cut: Cut) -> Float64s:
        """Sum over everything below each cut; a cut through a cell of several scores is interpolated by :meth:`part`.

        Parameters
        ----------
        name : {"w", "c", "y", "cc", "cy"}
            What is summed, with weights: 1, score, outcome, score squared, score times outcome.
        cut : Cut
            Positions, shape (batch or 1, q).

        Returns
        -------
        sums : ndarray of shape (batch, q)
            Weighted sums.
        """
        plain = super().sums(name, cut)
        if cut.fraction is None:
            return plain
        cell = np.minimum(cut.below, self.rows - 1)
        through = (cut.fraction > 0) & (self.low < self.high)[cell]
        if not through.any():
            return plain
        return np.where(
            through, super().sums(name, Cut(cut.below, cut.below)) + self.part(name, cell, cut.fraction), plain
        )

    def part(self, name: Sum, cell: Indices, fraction: Float64s) -> Float64s:
        """Estimate a sum over the lowest part of a cell's weight.

        Parameters
        ----------
        name : {"w", "c", "y", "cc", "cy"}
            What is summed, with weights: 1, score, outcome, score squared, score times outcome.
        cell : ndarray of int
            Rows of the profile.
        fraction : ndarray of the same shape
            Share of the weight of each.

        Returns
        -------
        sums : ndarray of the same shape
            Estimated sums.

        Notes
        -----
        The proportional share, corrected by the covariance of scores and outcomes within the cell: for uniform scores with standard
        deviation s, "below the cut" and the score have the covariance -sqrt(3) s f (1 - f). On average this removes three fifths of
        the variance that the proportional share leaves.
        """
        w = self._cell_sums("w", cell)
        share = fraction * self._cell_sums(name, cell)
        if name == "w":
            return share
        covariance = -np.sqrt(3.0) * fraction * (1 - fraction) * w  # per unit of the standard deviation of scores
        score_correction, mean = covariance * self.cell_rows.spread[cell], self.cell_rows.score[cell]
        if name == "c":
            return share + score_correction
        if name == "cc":
            return share + 2 * mean * score_correction
        ones = self._cell_sums("y", cell)
        proportional = fraction * ones
        min_ones, max_ones = np.maximum(ones - (1 - fraction) * w, 0.0), np.minimum(fraction * w, ones)
        correction = np.clip(proportional + covariance * self.cell_rows.tilt[cell], min_ones, max_ones) - proportional
        return share + (correction if name == "y" else mean * correction)

    def _cell_sums(self, name: Sum, cell: Indices) -> Float64s:
        """Return the weighted sum of "w", "c", "y", "cc" or "cy" over each whole cell, given by its row number, (cells,)."""
        rows = self.cell_rows
        means = {"c": rows.score, "y": rows.outcome, "cc": rows.squares, "cy": rows.products}
        return rows.weight[cell] if name == "w" else rows.weight[cell] * means[name][cell]

    def spread(self, cells: int) -> Profile:
        """Split cells that hold more than 1 / (4 `cells`) of the data into rows of evenly spread scores.

        Parameters
        ----------
        cells : int
            Number of cells that the estimator makes of the data.

        Returns
        -------
        profile : Profile
            The split rows.

        Notes
        -----
        A large cell, where scores are concentrated, has one rank for all its rows; an estimator that uses ranks is more
        precise with evenly spread rows.
        """
        return _Pieces(self, cells).evenly() if self.counted and (self.low < self.high).any() else self

    def ordered(self, cells: int, zeros_first: NDArray[np.bool_]) -> Profile:
        """Order the zeros of each cell before its ones, or after them: the extreme datasets that a sketch allows.

        Parameters
        ----------
        cells : int
            Number of cells that the estimator makes of the data.
        zeros_first : ndarray of shape (m, rows), bool
            The order in every cell, for each of m datasets.

        Returns
        -------
        profile : Profile
            A batch of m datasets.
        """
        return _Pieces(self, cells).ordered(zeros_first)

    def tied(self) -> Profile:
        """Return a plain Profile of the same rows, as if all scores of a cell were equal.

        Returns
        -------
        profile : Profile
            One row per cell, at its mean score.
        """
        return Profile(self.scores, self.outcomes, self.weights, self.squares, self.products, single=True)

    def mass_cut(self, bins: int | Sequence[int] | Indices, ties: Literal["keep", "split"] = "keep") -> Cut:
        """Cut into bins of equal mass; only cells of one score are ties.

        Parameters
        ----------
        bins : int, sequence of int, or array of shape (batch, 1)
            Number of bins; several give the cuts of one after those of the other, a column one number for each dataset.
        ties : {"keep", "split"}, default "keep"
            As in :meth:`Profile.mass_cut`.

        Returns
        -------
        cut : Cut
            b + 1 cuts for each number of bins.
        """
        cut = super().mass_cut(bins, "split")
        if ties == "split" or cut.fraction is None:
            return cut
        unsplit = cut.keep_ties()
        several = (cut.fraction > 0) & (self.low < self.high)[np.minimum(cut.below, self.rows - 1)]
        return Cut(
            np.where(several, cut.below, unsplit.below),
            np.where(several, cut.above, unsplit.above),
            np.where(several, cut.fraction, 0.0),
        )


class _Pieces:
    """The cells of a sketch; those of several scores are divided into pieces of at most 1 / (4 `cells`) of the data.

    A piece has at least the weight of one prediction. Pieces of a cell have evenly spaced scores about the mean of the cell and
    whole weights; the sums of a cell do not change but for the rounding of weights.
    """

    def __init__(self, profile: CellProfile, cells: int) -> None:
        """Divide the cells of a profile, for estimates that need about `cells` cells."""
        self._profile, rows = profile, profile.cell_rows
        weight = rows.weight
        several = (rows.low < rows.high) & (weight > 1)  # cells of several scores and rows
        max_weight = max(1.0, float(profile.total[0]) / (_FINER * cells))
        times = np.where(several, np.minimum(np.ceil(weight / max_weight), weight), 1).astype(np.intp)
        self._cell = cell = np.repeat(np.arange(profile.rows), times)
        self._parted = np.flatnonzero(times[cell] > 1)  # pieces of a cell; other rows are whole ones
        split_cell = cell[self._parted]
        piece = self._parted - (np.cumsum(times) - times)[split_cell]
        row_limits = [np.rint(weight[split_cell] * (piece + step) / times[split_cell]) for step in (0, 1)]  # whole rows
        self._start, self._end = (limit / weight[split_cell] for limit in row_limits)
        self._weight = self._of_cells(weight, row_limits[1] - row_limits[0])
        self._squares = self._of_cells(rows.squares * weight, self._piece("cc"))
        room = np.minimum(rows.high - rows.score, rows.score - rows.low)[split_cell]
        middle = rows.score[split_cell] + (self._start + self._end - 1) * room  # the mean of a cell stays
        self._score = self._of_cells(rows.score, middle)
        self._several = several

    def _of_cells(self, whole: Float64s, pieces: Float64s) -> Float64s:
        """Spread `whole`, one value per cell, over the pieces; return shape (pieces,).

        Pieces of divided cells take the values of `pieces` instead, one each, in order.
        """
        values = whole[self._cell]
        values[self._parted] = pieces
        return values

    def _piece(self, name: Sum) -> Float64s:
        """Estimate the weighted sum of a quantity in each piece of the divided cells, shape (pieces,).

        It is the difference of :meth:`CellProfile.part` between the two ends of the piece.
        """
        cell = self._cell[self._parted]
        return self._profile.part(name, cell, self._end) - self._profile.part(name, cell, self._start)

    def evenly(self) -> Profile:
        """Build the profile of one row per piece, a batch of 1, with sums estimated between the ends of the piece."""
        rows = self._profile.cell_rows
        cell_sums = {"y": rows.weight * rows.outcome, "cy": rows.weight * rows.products}
        y, cy = (self._of_cells(cell_sums[name], self._piece(name)) for name in ("y", "cy"))
        return self._rows(y[None], cy[None], single=True)

    def ordered(self, zeros_first: NDArray[np.bool_]) -> Profile:
        """Build the profile of one row per piece in which the zeros of each cell come before its ones, or after them.

        `zeros_first`, shape (batch, cells), says which; every dataset of the batch has the same scores and weights.
        """
        rows = self._profile.cell_rows
        weight, rate, cell = rows.weight, rows.outcome, self._cell[self._parted]
        several = self._several[self._cell]
        ones, product = weight * rate, weight * rows.products
        begin = np.where(zeros_first, 1 - rate, 0.0)[:, cell]  # where the ones begin
        inside = np.minimum(self._end, begin + rate[cell]) - np.maximum(self._start, begin)
        y = np.repeat(ones[self._cell][None], len(begin), axis=0)
        y[:, self._parted] = weight[cell] * np.maximum(inside, 0.0)
        return self._rows(y, np.where(several, self._score * y, product[self._cell]), single=False)

    def _rows(self, y: Float64s, cy: Float64s, *, single: bool) -> Profile:
        """Build the profile with one row per piece from sums of outcomes `y` and of score times outcome `cy`, (batch, pieces).

        Scores, made to ascend, and weights are those of the pieces; `single` is passed on.
        """
        w = self._weight
        return Profile(
            np.maximum.accumulate(self._score)[None], y / w, w[None], self._squares[None] / w, cy / w, single=single
        )
