"""The Profile: sorted scores with prefix sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecal import options
from truecal.errors import InputError
from truecal.predictions import validation
from truecal.profile.binning import Cut, every_edge, width_edges
from truecal.profile.rows import (
    MIN_ROWS_UNSORTED,
    SortedRows,
    Sum,
    Unsorted,
    gather,
    packed_sort,
    search,
)
from truecal.types import Float64s, Floats, Indices

# ----------------------------------------------------------------------------------------------------
# The Profile: ascending scores, their outcomes and weights, and prefix sums over them, with a leading batch axis


_ROWS_PER_CUT = 16  # derived: comparing so many neighbouring rows in order takes as long as looking up one cut


class Profile(SortedRows):
    """Sort scores with their outcomes and weights, and answer sums over any bins from prefix sums.

    Build one with :meth:`from_arrays` or a lens; the constructor takes rows that are sorted and checked already.

    Parameters
    ----------
    scores : ndarray of shape (batch or 1, rows)
        Ascending scores in [0, 1].
    outcomes : ndarray of shape (batch, rows)
        Outcomes 0 or 1, or means of outcomes.
    weights : ndarray of shape (batch or 1, rows), default None
        Non-negative weights; None weighs every row by 1.
    squares : ndarray of shape (batch, rows), default None
        Means of squared scores, where a row stands for several predictions.
    products : ndarray of shape (batch, rows), default None
        Means of score times outcome, likewise.
    single : bool, default False
        Whether results are plain numbers rather than arrays over the batch.
    units : ndarray of shape (rows,), default None
        Cluster of every row of a single dataset; None where rows are independent.

    See Also
    --------
    Sketch : The same in bounded memory.

    Examples
    --------
    >>> import truecal as tc
    >>> profile = tc.profile.Profile.from_arrays([0.9, 0.2, 0.9, 0.6], [1, 0, 0, 1])
    >>> profile.scores
    array([[0.2, 0.6, 0.9, 0.9]])
    >>> profile.rows, profile.batch, profile.size
    (4, 1, array([4.]))
    """

    # ------------------------------------------------------------------ making one

    @classmethod
    def from_arrays(cls, scores: ArrayLike, outcomes: ArrayLike, weights: ArrayLike | None = None) -> Profile:
        """Check and sort scores with their outcomes.

        Parameters
        ----------
        scores : array-like of shape (n,) or (m, n)
            Scores in [0, 1]; two dimensions are a batch of m datasets.
        outcomes : array-like of the same shape
            0 or 1.
        weights : array-like of the same shape, default None
            Whole numbers count repetitions; others are importance weights, of which only ratios matter.

        Returns
        -------
        profile : Profile
            The sorted rows.

        Raises
        ------
        InputError
            Scores, outcomes or weights are invalid; the message names the row.

        Notes
        -----
        With importance weights the sample size is Kish's effective size (sum w)^2 / sum w^2. A row of weight 0 is ignored.
        """
        c = validation.check_scores(scores)
        y = validation.check_outcomes(outcomes, c.shape)
        return cls.of_rows(c, y, None if weights is None else validation.check_weights(weights, c.shape))

    @classmethod
    def of_rows(cls, scores: Floats, outcomes: NDArray[np.uint8], weights: Float64s | None = None) -> Profile:
        """Sort independent rows that were checked before.

        Parameters
        ----------
        scores : ndarray of shape (n,) or (m, n)
            Scores in [0, 1].
        outcomes : ndarray of the same shape, uint8
            0 or 1.
        weights : ndarray of the same shape, default None
            Non-negative weights.

        Returns
        -------
        profile : Profile
            The sorted rows.
        """
        single = scores.ndim == 1
        c, y = np.atleast_2d(scores), np.atleast_2d(outcomes)
        if weights is None:
            if c.size >= MIN_ROWS_UNSORTED:
                profile = cls(c, y, single=single)
                profile._unsorted = Unsorted(c, y)
                return profile
            return cls(*packed_sort(c, y), single=single)
        w = np.atleast_2d(weights)
        if single and not w.all():
            c, y, w = c[w > 0][None], y[w > 0][None], w[w > 0][None]
        order = np.argsort(c, axis=-1)

        def sorted_(a: NDArray[Any]) -> NDArray[Any]:
            """Sort the rows of every dataset, shape (m, n), by ascending score."""
            return np.take_along_axis(a, order, axis=-1)

        return cls(np.abs(sorted_(c)), sorted_(y), sorted_(w), single=single)  # abs: -0.0 becomes 0.0

    def take(self, datasets: ArrayLike | slice) -> Profile:
        """Select datasets of a batch.

        Parameters
        ----------
        datasets : array-like or slice
            Positions in the batch; a slice copies nothing.

        Returns
        -------
        profile : Profile
            The selected datasets, in the order given; `counted` stays that of the whole batch.

        Raises
        ------
        InputError
            A position is not one of the batch.
        """
        chosen = datasets if isinstance(datasets, slice) else validation.check_rows(datasets, self.batch, "datasets")
        tables: Any = (self.scores, self.outcomes, self.weights, self.squares, self.products)
        part = Profile(*(a if a is None or len(a) != self.batch else a[chosen] for a in tables))
        part.counted = self.counted  # of the whole batch: weights have one meaning in all its datasets
        return part

    def coarsen(self, cells: int, *, moments: bool = True) -> Profile:
        """Merge rows into at most `cells` rows of about equal mass; equal scores stay together.

        Cells are cut by `mass_cut`.

        Parameters
        ----------
        cells : int
            Largest number of rows.
        moments : bool, default True
            Whether sums of squares and products stay exact; without, they are those of the mean of a row.

        Returns
        -------
        profile : Profile
            One row per cell, at mean score and mean outcome, with the sum of weights; itself where it has no more rows. An empty
            cell of a batch has weight 0.

        Raises
        ------
        InputError
            `cells` is no whole number of at least 1.

        Examples
        --------
        >>> profile = Profile.from_arrays([0.25, 0.25, 0.5, 1.0], [0, 1, 1, 1]).coarsen(2)
        >>> profile.scores, profile.outcomes, profile.weights
        (array([[0.25, 0.75]]), array([[0.5, 1. ]]), array([[2., 2.]]))
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

    def spread(self, cells: int) -> Profile:
        """Return the same data with rows small enough for estimators that use ranks.

        Parameters
        ----------
        cells : int
            Number of cells that the estimator makes of the data.

        Returns
        -------
        profile : Profile
            The profile itself, unless rows stand for many predictions.
        """
        return self

    def refuse_dependent(self, remedy: str) -> None:
        """Refuse clustered rows, for methods that assume independent ones.

        Parameters
        ----------
        remedy : str
            End of the message.

        Raises
        ------
        InputError
            Rows belong to clusters.

        Examples
        --------
        >>> Profile.from_arrays([0.5, 0.2], [0, 1]).refuse_dependent("pass single rows")
        """
        if not self.independent:
            raise InputError(f"the rows of this profile are clustered; {remedy}")

    def sums(self, name: Sum, cut: Cut) -> Float64s:
        """Sum over everything below each cut.

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
        if cut.sums is not None:
            return cut.sums(name)
        below = self._sums_at(name, cut.below)
        if cut.fraction is not None:
            below = below + cut.fraction * (self._sums_at(name, cut.above) - below)
        return below if below.shape[0] == self.batch else np.broadcast_to(below, (self.batch, below.shape[1]))

    # ------------------------------------------------------------------ cuts: the one edge rule, the one tie rule

    def width_cut(self, bins: int | Sequence[int] | Indices, closed: Literal["left", "right"] = "left") -> Cut:
        """Cut at 0, 1/b, ..., 1: bins of equal width.

        Parameters
        ----------
        bins : int, sequence of int, or array of shape (batch, 1)
            Number of bins; several give the cuts of one after those of the other, a column one number for each dataset.
        closed : {"left", "right"}, default "left"
            Bin j is [j/b, (j+1)/b) with the last one closed, or (j/b, (j+1)/b] with the first one closed.

        Returns
        -------
        cut : Cut
            b + 1 cuts for each number of bins.

        Notes
        -----
        Edges are j/b rounded to the precision of the scores, so that 0.7 falls into the same bin in every precision.
        """
        if self._unsorted is not None and (quick := self._unsorted.width_cut(bins, closed)) is not None:
            return quick
        k, b = every_edge(bins)
        position = self.count_below(width_edges(bins, self.precision), closed)
        position = np.where(k == b, self.rows, np.where(k == 0, 0, position))
        return Cut(position, position)

    def mass_cut(self, bins: int | Sequence[int] | Indices, ties: Literal["keep", "split"] = "keep") -> Cut:
        """Cut at ceil(k n / b) rows, k = 0..b, or at k/b of the total weight: bins of equal mass.

        Parameters
        ----------
        bins : int, sequence of int, or array of shape (batch, 1)
            Number of bins; several give the cuts of one after those of the other, a column one number for each dataset.
        ties : {"keep", "split"}, default "keep"
            "keep": a group of equal scores that a cut would split goes whole to the side of its larger part. "split": its
            rows and ones are shared in proportion.

        Returns
        -------
        cut : Cut
            b + 1 cuts for each number of bins.
        """
        k, b = every_edge(bins)
        if self.weights is None:
            cut = self.at_count(np.atleast_2d(-(-k * self.rows // b)))
        else:
            mass = k * self.total[: 1 if self.alike else None, None] / b
            mass = np.ceil(mass) if self.counted else mass
            cut = self.at_mass(mass)
        return cut.keep_ties() if ties == "keep" else cut

    def at_count(self, rows: Indices) -> Cut:
        """Cut after given numbers of rows.

        Parameters
        ----------
        rows : ndarray of shape (batch or 1, q)
            Numbers of rows below each cut.

        Returns
        -------
        cut : Cut
            Cuts inside a group of equal scores have a fraction.
        """
        if self._unsorted is not None and (selected := self._unsorted.cut_at(rows)) is not None:
            return selected
        if rows.shape[1] * _ROWS_PER_CUT > self.rows and not self.has_ties:
            return Cut(rows, rows)
        rows = np.broadcast_to(rows, (self.scores.shape[0], rows.shape[1]))
        inner = np.clip(rows, 1, self.rows - 1)
        inside = (gather(self.scores, inner - 1) == gather(self.scores, inner)) & (rows == inner)
        if not inside.any():
            return Cut(rows, rows)
        first, last = self._group(inner)
        below, above = np.where(inside, first, rows), np.where(inside, last, rows)
        return Cut(below, above, np.where(inside, (rows - below) / np.maximum(above - below, 1), 0.0))

    def whole(self) -> Cut:
        """Cut above all rows, for sums of scores and outcomes over all of them.

        Returns
        -------
        cut : Cut
            One cut, shape (batch or 1, 1).

        Examples
        --------
        >>> profile = Profile.from_arrays([0.5, 0.25], [0, 1])
        >>> profile.sums("c", profile.whole())
        array([[0.75]])
        """
        end = np.array([[self.rows]])
        return Cut(end, end) if self._unsorted is None else self._unsorted.whole()

    def at_mass(self, mass: Float64s) -> Cut:
        """Cut where the weights below sum to given values; a value inside a weighted row, or a group of equal scores, splits it.

        Parameters
        ----------
        mass : ndarray of shape (batch, q)
            Sums of weights below each cut.

        Returns
        -------
        cut : Cut
            One cut for each value; `fraction` is the share of the split group's weight that lies below.
        """
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

    def __repr__(self) -> str:
        """Return such as "Profile(1000 rows)", "Profile(3 datasets of 1000 rows, weighted)".

        >>> Profile.from_arrays([0.5, 0.2], [0, 1])
        Profile(2 rows)
        """
        many = "" if self.batch == 1 else f"{self.batch} datasets of "
        weighted = "" if self.weights is None else ", weighted"
        return f"Profile({many}{self.rows} rows{weighted})"


def check_profile(profile: object, name: str = "profile") -> None:
    """Raise InputError, calling it `name`, if `profile` is not a Profile.

    >>> check_profile([0.5])
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: profile must be a Profile, not [0.5]; a lens such as tc.TopLabel() makes one of Predictions
    """
    options.instance(profile, Profile, name, "a Profile", "a lens such as tc.TopLabel() makes one of Predictions")
