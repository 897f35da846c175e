"""Units: what is drawn as a whole (rows, clusters, runs in time), and how often each unit meets each cell of scores.

Drawing units is what clusters, blocks in time, pooled pairs and paired comparisons need: rows of one unit are correlated, and what
several datasets on the same rows have in common must stay.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal.errors import InputError
from truecal.estimators.resampling.cells import cell_places, collapse
from truecal.estimators.resampling.draws import check_block, unit_counts
from truecal.lenses.sample import Sample
from truecal.profile.profile import Profile
from truecal.types import Indices

_MOST_UNITS = 1 << 14  # units drawn one by one; the spread is known to 1 % from as many


@dataclass(frozen=True, eq=False)
class Units:
    """What is drawn as a whole: `of_row` tells the unit of every row of a sample."""

    of_row: Indices
    count: int
    kind: str  # "rows", "clusters" or "blocks"
    block: int = 1  # units are drawn in runs of this length

    @classmethod
    def of(cls, sample: Sample, rng: np.random.Generator, *, blocks: int | None = None) -> "Units":
        """Runs of `blocks` rows if asked for, else the units of the sample, else its rows.

        Above 16,384 independent rows or clusters, random groups of them are drawn, which leaves the distribution of sums as it
        is; above as many rows in order, neighbours are.
        """
        if blocks is not None:
            return cls._runs(sample, blocks)
        of_row = np.arange(len(sample)) if sample.units is None else sample.units
        count = int(of_row.max()) + 1
        counts = np.ones(len(of_row), bool) if sample.weights is None else sample.weights > 0
        if (np.bincount(of_row[counts], minlength=count) == 0).any():
            # units of which no row was selected or weighs anything are not drawn; such rows may then go with any unit
            of_row = np.where(counts, of_row, of_row[counts][0])
            of_row = np.unique(of_row, return_inverse=True)[1].astype(np.intp)
            count = int(of_row.max()) + 1
        if count > _MOST_UNITS:
            of_row, count = (rng.permutation(count) % _MOST_UNITS)[of_row], _MOST_UNITS
        return cls(of_row, count, sample.unit)

    @classmethod
    def _runs(cls, sample: Sample, blocks: int) -> "Units":
        if sample.unit == "clusters":
            raise InputError("give clusters or blocks, not both: each says which rows belong together")
        of_row = np.arange(len(sample)) if sample.units is None else sample.units
        n = int(of_row.max()) + 1
        check_block(blocks, n)
        together = -(-n // _MOST_UNITS)
        return cls(of_row // together, -(-n // together), "blocks", max(1, round(blocks / together)))

    def refuse_one(self) -> None:
        """Raise where there is a single unit, which cannot show how much units differ."""
        if self.count < 2:
            what = "cluster" if self.kind == "clusters" else "row"
            raise InputError(
                f"all rows belong to one {what}: it cannot tell how much another would differ; give at least two"
            )

    def draws(self, resamples: int, rng: np.random.Generator) -> NDArray[np.uint16]:
        """How often each unit is drawn in each resample, shape (units + 2, resamples).

        The last two are for the two made-up rows of :func:`softened_incidence`.
        """
        self.refuse_one()
        return unit_counts(self.count + 2, resamples, rng, block=self.block)

    def grouped(self, most: int) -> "Units":
        """At most so many units: later ones join earlier ones (independent units stay independent that way)."""
        return self if self.count <= most else Units(self.of_row % most, most, self.kind)

    def whole(self) -> "Units":
        """Runs in time as units of their own, for tests that turn the signs of whole units."""
        return Units(self.of_row // self.block, -(-self.count // self.block), self.kind)


def incidence(profile: Profile, unit: Indices, count: int, most: int) -> tuple[Profile, Any]:
    """Cells of the scores, and the sparse matrix (2 x cells, units) of weights of zeros, then of ones.

    `unit` is that of every sorted row, one of `count`. Multiplied by how often each unit is drawn the matrix gives the resampled
    cells: no row is touched again.
    """
    from scipy.sparse import csr_array

    cells = collapse(profile, most)
    cell, kept = _cell(profile, most)
    outcome = profile.outcomes[0, kept].astype(np.intp)
    by_line = np.concatenate([np.flatnonzero(outcome == 0), np.flatnonzero(outcome)])  # cells ascend in both already
    kept = kept[by_line]
    weight = np.ones(len(kept)) if profile.weights is None else profile.weights[0, kept]
    weight = weight * (profile.size[0] / profile.total[0])
    lengths = np.bincount(outcome * cells.rows + cell, minlength=2 * cells.rows)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    return cells, csr_array((weight, unit[kept], ends), shape=(2 * cells.rows, count))


def softened_incidence(sample: Sample, units: Units, most: int) -> tuple[Profile, Any]:
    """The same with two more units: a row that is zero and a row that is one, shared out over the cells like the rows.

    They keep resamples of a model that is always right (or always wrong) from being all alike. Where outcomes are in fact
    all alike, nothing tells how rows of a unit are correlated, and the two weigh as much as a unit.
    """
    from scipy.sparse import csr_array, hstack

    cells, matrix = incidence(sample.profile, units.of_row[sample.order], units.count, most)
    assert cells.weights is not None
    n = float(cells.weights.sum())
    share = cells.weights[0] / n * (n / units.count if one_sided(sample.profile) else 1.0)
    blank = np.zeros_like(share)
    extra = np.stack([np.concatenate([share, blank]), np.concatenate([blank, share])], axis=1)
    return cells, csr_array(hstack([matrix, csr_array(extra)]))


def one_sided(profile: Profile) -> bool:
    """Whether all outcomes are the same."""
    return bool((profile.outcomes == profile.outcomes[0, 0]).all())


def _cell(profile: Profile, most: int) -> tuple[Indices, Indices]:
    """Cell of every sorted row of positive weight, and those rows."""
    places = cell_places(profile, most)
    cell = np.repeat(np.arange(len(places) - 1), np.diff(places))
    if profile.weights is None:
        return cell, np.arange(profile.rows)
    kept = np.flatnonzero(profile.weights[0] > 0)
    return np.unique(cell[kept], return_inverse=True)[1].astype(np.intp), kept
