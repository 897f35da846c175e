"""Units: what is drawn as a whole (rows or clusters), the sums of every unit in every cell of scores, and sign flips.

Clusters, pooled pairs and paired models draw units: rows of one unit are correlated, and the resamples of
several datasets on the same rows must be the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal import options
from truecal.errors import InputError
from truecal.lenses.lens import Sample
from truecal.profile.binning import Cut
from truecal.profile.profile import Profile
from truecal.resampling.cells import Counted, cell_starts, collapse_at
from truecal.resampling.draws import (
    CellBatch,
    NullDistribution,
    RedrawTest,
    Statistic,
    block_sizes,
    redraw_ones,
    unit_counts,
)
from truecal.special import positive
from truecal.types import Float64s, Indices

_CELLS = 4096  # by choice: distinct scores of a redraw; more are joined
_SIGNS_AT_ONCE = 1 << 20  # derived: signs drawn at a time: 8 MiB
_MAX_UNITS = 1 << 14  # by choice: units drawn one by one; as many give a standard deviation to 0.6 %


@dataclass(frozen=True, eq=False)
class Units:
    """What is drawn as a whole: `of_row`, shape (n,), is the number, 0 to count - 1, of the unit of every row of a sample.

    Rows are in their own order, not sorted by score.
    """

    of_row: Indices
    count: int
    kind: str  # "rows" or "clusters"

    @classmethod
    def of(cls, sample: Sample, rng: np.random.Generator) -> "Units":
        """Take the units of the sample (its clusters), else every row as a unit, numbered from 0.

        Above 16,384 independent rows or clusters, `rng` puts them into 16,384 random groups, which leaves the distribution of
        sums unchanged. Units of weight 0 are not counted.
        """
        of_row = np.arange(len(sample)) if sample.units is None else sample.units
        count = int(of_row.max()) + 1
        weighed = np.ones(len(of_row), bool) if sample.weights is None else sample.weights > 0
        if (np.bincount(of_row[weighed], minlength=count) == 0).any():
            # Units without a row of positive weight are not drawn; their rows may then belong to any unit.
            of_row = np.where(weighed, of_row, of_row[weighed][0])
            of_row = np.unique(of_row, return_inverse=True)[1].astype(np.intp)
            count = int(of_row.max()) + 1
        if count > _MAX_UNITS:
            of_row, count = (rng.permutation(count) % _MAX_UNITS)[of_row], _MAX_UNITS
        return cls(of_row, count, sample.unit)

    def refuse_one(self) -> None:
        """Raise InputError where there is a single unit: it gives no variance between units.

        >>> Units(np.zeros(3, int), 1, "clusters").refuse_one()
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: one cluster gives no variance between clusters; give at least two
        """
        if self.count < 2:
            noun = "cluster" if self.kind == "clusters" else "row"
            raise InputError(f"one {noun} gives no variance between {noun}s; give at least two")

    def draws(self, resamples: int, rng: np.random.Generator) -> NDArray[np.uint16]:
        """Draw units and both pseudo-rows of `UnitSums` with replacement, as many as there are: counts (units + 2, resamples).

        Pseudo-rows are the last two; every column sums to units + 2.
        """
        self.refuse_one()
        return unit_counts(self.count + 2, resamples, rng)

    def grouped(self, limit: int) -> "Units":
        """Join units by their number modulo `limit`, to at most `limit` units; independent units stay independent.

        >>> Units(np.arange(5), 5, "rows").grouped(2).of_row
        array([0, 1, 0, 1, 0])
        """
        return self if self.count <= limit else Units(self.of_row % limit, limit, self.kind)


@dataclass(frozen=True, eq=False)
class UnitSums:
    """Rows, ones and sums of scores of every unit in every cell, matrices (datasets x cells, units), full or sparse.

    Two pseudo-rows, a zero and a one, are spread over the cells like the rows and drawn like units: without them, resamples of a
    model without errors would all be equal. A pseudo-row has the weight of one row; where all outcomes are equal, so that the
    correlation within units cannot be estimated, it has the weight of an average unit.
    """

    rows: Any
    ones: Any
    score_sums: Any
    variances: Float64s  # (datasets x cells,) of the number of ones under calibration
    datasets: int = 1

    @classmethod
    def of(cls, sample: Sample, units: Units, cut: Cut) -> "UnitSums":
        """Sum over the units of a sample, in the cells between consecutive cuts of its sorted rows.

        Importance weights are scaled to sum to the effective number of rows; rows outside the cuts or of weight 0 are left out.
        """
        from scipy.sparse import csr_array

        profile, starts = sample.profile, cut.below[0]
        cells = len(starts) - 1
        cell = np.searchsorted(starts, np.arange(profile.rows), side="right") - 1
        weights = np.ones(profile.rows) if profile.weights is None else profile.weights[0]
        weights = weights * float(profile.size[0] / profile.total[0])
        counted = np.flatnonzero((cell >= 0) & (cell < cells) & (weights > 0))
        unit, cell, weights = units.of_row[sample.order[counted]], cell[counted], weights[counted]
        scores, outcomes = profile.scores[0, counted].astype(np.float64), profile.outcomes[0, counted]
        variances = np.bincount(cell, weights * scores * (1 - scores), cells).astype(np.float64)
        values, ends = (weights, weights * outcomes, weights * scores), np.searchsorted(cell, np.arange(cells + 1))
        rows, ones, score_sums = (csr_array((v, unit, ends), shape=(cells, units.count)) for v in values)
        return cls(rows, ones, score_sums, variances)

    @cached_property
    def observed(self) -> CellBatch:
        """The cells as observed, summed over units, shape (datasets, cells)."""
        matrices = self.rows, self.ones, self.score_sums
        return CellBatch(*(np.asarray(sums.sum(axis=1)).reshape(self.datasets, -1) for sums in matrices))

    @cached_property
    def drawn_from(self) -> CellBatch:
        """The cells with both pseudo-rows: the distribution that resamples are drawn from, shape (datasets, cells)."""
        return self.draw(np.ones((self.rows.shape[1] + 2, 1), np.uint16))

    def draw(self, counts: NDArray[np.uint16]) -> CellBatch:
        """Sum the cells of resamples in which units occur `counts` times, shape (units + 2, resamples), pseudo-rows last.

        The sums have shape (datasets x resamples, cells): all resamples of the first dataset, then those of the next.
        """
        times, observed = counts[:-2].astype(np.float64), self.observed
        zeros, ones = counts[-2:, :, None].astype(np.float64)  # pseudo-rows
        share = self._pseudo_row[:, None]
        mean = (observed.score_sums / positive(observed.rows))[:, None]
        added = (zeros + ones) * share, ones * share, (zeros + ones) * share * mean
        tables = (
            np.asarray(matrix @ times).reshape(*observed.rows.shape, -1).swapaxes(1, 2) + pseudo_rows
            for matrix, pseudo_rows in zip((self.rows, self.ones, self.score_sums), added, strict=True)
        )
        return CellBatch(*(np.ascontiguousarray(table).reshape(-1, observed.rows.shape[1]) for table in tables))

    def redraw(self, redraws: int, rng: np.random.Generator) -> CellBatch:
        """Draw outcomes of a calibrated model, rows taken as independent, shape (datasets x redraws, cells).

        All redraws of the first dataset come first, then those of the next; rows and sums of scores are those observed.
        """
        rows, scores = self.observed.rows, self.observed.score_sums
        surplus = redraw_ones(rows.ravel(), (scores / positive(rows)).ravel(), self.variances, redraws, rng)
        ones = np.clip(scores + surplus.reshape(redraws, *rows.shape), 0.0, rows).swapaxes(0, 1)
        fixed = (np.repeat(sums, redraws, axis=0) for sums in (rows, scores))
        return CellBatch(next(fixed), ones.reshape(-1, rows.shape[1]), next(fixed))

    @cached_property
    def _pseudo_row(self) -> Float64s:
        """Weight of a pseudo-row in every cell, shape (datasets, cells), in proportion to the rows of the cell.

        It sums to 1 over cells, or to the rows per unit where all outcomes of the dataset are equal.
        """
        rows, ones = self.observed.rows, self.observed.ones
        n = rows.sum(axis=1, keepdims=True)
        one_sided = ~ones.any(axis=1) | (ones == rows).all(axis=1)
        return rows / positive(n) * np.where(one_sided[:, None], n / self.rows.shape[1], 1.0)


def incidence(profile: Profile, unit: Indices, count: int, max_cells: int) -> tuple[Profile, Any]:
    """Collapse one dataset to at most `max_cells` cells of scores, and sum weights by cell, outcome and unit.

    `unit`, shape (rows,), is that of every sorted row, 0 to count - 1. Returns the collapsed profile and a sparse matrix of shape
    (2 x cells, count): the zeros of every cell first, then the ones. Weights are scaled to the effective number of rows; rows of
    weight 0 are left out.
    """
    from scipy.sparse import csr_array

    starts = cell_starts(profile, max_cells)
    cells = collapse_at(profile, starts)
    weight = np.ones(profile.rows) if profile.weights is None else profile.weights[0]
    rows = np.flatnonzero(weight > 0)
    cell = np.repeat(np.arange(len(starts) - 1), np.diff(starts))[rows]
    cell = (np.cumsum(np.bincount(cell) > 0) - 1)[cell]  # cells of weight 0 are left out
    line = cell + profile.outcomes[0, rows].astype(np.intp) * cells.rows
    weight = weight[rows] * (profile.size[0] / profile.total[0])
    return cells, csr_array((weight, (line, unit[rows])), shape=(2 * cells.rows, count))


def one_sided(profile: Profile) -> bool:
    """Return whether all outcomes of a profile are the same.

    >>> from truecal.profile import Profile
    >>> one_sided(Profile.from_arrays([0.2, 0.5], [1, 1])), one_sided(Profile.from_arrays([0.2, 0.5], [0, 1]))
    (True, False)
    """
    return bool((profile.outcomes == profile.outcomes[0, 0]).all())


# ----------------------------------------------------------------------------------------------------
# Sign flips: residuals of whole units with random signs, which have the distribution of a calibrated model. Under calibration
# the residuals y - c of a unit (a cluster, a random group of rows) have mean zero however they are correlated (wild bootstrap,
# Liu 1988): exact for symmetric sums, else for many units.


def draw_signs(flips: int, units: int, rng: np.random.Generator) -> Float64s:
    """Draw -1.0 or 1.0 for every unit with equal chances, shape (flips, units).

    >>> np.unique(draw_signs(10, 3, np.random.default_rng(0)))
    array([-1.,  1.])
    """
    return np.asarray(rng.integers(0, 2, (flips, units)) * 2.0 - 1, np.float64)


def flip_sums(sums: Any, flips: int, rng: np.random.Generator) -> Float64s:
    """Sum the rows of `sums` (units, ...), each times a random sign, `flips` times, shape (flips, ...); `sums` may be sparse.

    >>> flip_sums(np.array([[1.0], [2.0]]), 3, np.random.default_rng(0)).shape
    (3, 1)
    """
    sizes = block_sizes(flips, sums.shape[0], _SIGNS_AT_ONCE)
    return np.concatenate([np.asarray(draw_signs(size, sums.shape[0], rng) @ sums) for size in sizes])


def flip_test(
    sums: Any, statistic: Callable[[Float64s], Float64s], resamples: int, rng: int | np.random.Generator
) -> tuple[float, float]:
    """Test that sums by unit (units, ...), sparse or full, have mean zero: (statistic, p-value) by random signs of whole units.

    The statistic is a function of totals over units, shape (flips, ...), large where the test should reject.
    """
    options.resamples(resamples)
    null = NullDistribution(lambda flips, rng: statistic(flip_sums(sums, flips, rng)))
    observed = float(statistic(np.asarray(sums.sum(axis=0))[None])[0])
    return observed, null.p_value(observed, resamples, options.generator(rng))


def sign_flip_test(
    profile: Profile, statistic: Statistic, *, resamples: int = 999, rng: int | np.random.Generator = 0
) -> RedrawTest:
    """Test one clustered dataset for calibration by random signs of the residuals y - c of whole units.

    The statistic is a function of a Profile, large when calibration fails; it is evaluated on up to 4096 cells of scores whose
    rates are c plus the flipped residuals. Returned are the statistic and its p-value, shape (1,). Rows of weight 0 are ignored.
    """
    assert profile.units is not None
    units, unit = np.unique(profile.units, return_inverse=True)
    cells, by_unit = incidence(profile, unit, len(units), _CELLS)
    scores, weights = cells.scores.astype(np.float64), cells.weights
    assert weights is not None
    zeros, ones = by_unit[: cells.rows], by_unit[cells.rows :]
    residuals = (ones - (zeros + ones).multiply(scores.T)).T.tocsr()

    def statistic_of(totals: Float64s) -> Float64s:
        """Compute the statistic where residuals add up to `totals`, shape (flips, cells)."""
        return statistic(Counted(cells.scores, scores + totals / weights, weights))

    tested = flip_test(residuals, statistic_of, resamples, rng)
    return RedrawTest(*(np.array([number]) for number in tested))
