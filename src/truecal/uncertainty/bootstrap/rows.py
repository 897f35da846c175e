"""Rows that remember where they came from: what clusters, blocks and paired comparisons need and a Profile forgets."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from truecal.errors import InputError
from truecal.lens import Lens, OneClass, TopLabel
from truecal.predictions import Predictions
from truecal.profile import Profile
from truecal.types import Indices
from truecal.uncertainty.bootstrap.cells import cell_places, collapse
from truecal.uncertainty.bootstrap.draws import check_block

_MOST_UNITS = 1 << 14  # units drawn one by one; the spread is known to 1 % from as many


@dataclass(frozen=True)
class Units:
    """What is drawn as a whole: `of_row` tells the unit of every row."""

    of_row: Indices
    count: int
    kind: str  # "rows", "clusters" or "blocks"
    block: int = 1  # units are drawn in runs of this length

    @classmethod
    def of(cls, preds: Predictions, *, blocks: int | None, rng: np.random.Generator) -> "Units":
        """Runs of `blocks` rows if asked for, else the clusters of the predictions, else their rows.

        Above 16,384 independent rows or clusters, random groups of them are drawn, which leaves the distribution of sums as it
        is; above as many rows in order, neighbours are.
        """
        n = len(preds)
        if blocks is not None:
            if preds.clusters is not None:
                raise InputError("give clusters or blocks, not both: each says which rows belong together")
            check_block(blocks, n)
            together = -(-n // _MOST_UNITS)
            return cls(np.arange(n) // together, -(-n // together), "blocks", max(1, round(blocks / together)))
        clustered = preds.clusters is not None
        of_row = preds.clusters if preds.clusters is not None else np.arange(n)
        count = int(of_row.max()) + 1
        if count > _MOST_UNITS:
            of_row, count = (rng.permutation(count) % _MOST_UNITS)[of_row], _MOST_UNITS
        return cls(of_row, count, "clusters" if clustered else "rows")


@dataclass(frozen=True)
class Rows:
    """One dataset of a lens: its sorted profile, and the row of the predictions behind every sorted row."""

    profile: Profile
    order: Indices

    def incidence(self, units: Units, most: int) -> tuple[Profile, Any]:
        """Cells of the scores, and the sparse matrix (2 x cells, units) of weights of zeros, then of ones.

        Multiplied by how often each unit is drawn it gives the resampled cells: no row is touched again.
        """
        from scipy.sparse import csr_array

        cells = collapse(self.profile, most)
        cell, kept = self._cell(most)
        outcome = self.profile.outcomes[0, kept].astype(np.intp)
        by_line = np.concatenate(
            [np.flatnonzero(outcome == 0), np.flatnonzero(outcome)]
        )  # cells ascend in both already
        kept = kept[by_line]
        weight = np.ones(len(kept)) if self.profile.weights is None else self.profile.weights[0, kept]
        weight = weight * (self.profile.size[0] / self.profile.total[0])
        lengths = np.bincount(outcome * cells.rows + cell, minlength=2 * cells.rows)
        ends = np.concatenate([[0], np.cumsum(lengths)])
        return cells, csr_array((weight, units.of_row[self.order[kept]], ends), shape=(2 * cells.rows, units.count))

    def softened_incidence(self, units: Units, most: int) -> tuple[Profile, Any]:
        """The same with two more units: a row that is zero and a row that is one, shared out over the cells like the rows.

        They keep resamples of a model that is always right (or always wrong) from being all alike. Where outcomes are in fact
        all alike, nothing tells how rows of a unit hang together, and the two weigh as much as a unit.
        """
        from scipy.sparse import csr_array, hstack

        cells, incidence = self.incidence(units, most)
        assert cells.weights is not None
        n = float(cells.weights.sum())
        share = cells.weights[0] / n * (n / units.count if self.one_sided else 1.0)
        blank = np.zeros_like(share)
        extra = np.stack([np.concatenate([share, blank]), np.concatenate([blank, share])], axis=1)
        return cells, csr_array(hstack([incidence, csr_array(extra)]))

    @property
    def one_sided(self) -> bool:
        """Whether all outcomes are the same."""
        return bool((self.profile.outcomes == self.profile.outcomes[0, 0]).all())

    def _cell(self, most: int) -> tuple[Indices, Indices]:
        """Cell of every sorted row of positive weight, and those rows."""
        places = cell_places(self.profile, most)
        cell = np.repeat(np.arange(len(places) - 1), np.diff(places))
        if self.profile.weights is None:
            return cell, np.arange(self.profile.rows)
        kept = np.flatnonzero(self.profile.weights[0] > 0)
        return np.unique(cell[kept], return_inverse=True)[1].astype(np.intp), kept


def default_lens(preds: Predictions) -> Lens:
    """What is judged unless a lens says otherwise: the positive class of binary predictions, else the top label."""
    return OneClass() if preds.binary else TopLabel()


def rows_of(lens: Lens, preds: Predictions) -> Iterator[Rows]:
    """The datasets of a lens one by one, each row with its number.

    A lens sorts and forgets the order. Row numbers sent through it in the place of weights come out sorted as the rows were.
    """
    numbered = replace(preds, weights=np.arange(1.0, len(preds) + 1))
    for batch in lens.profiles(numbered):
        assert batch.weights is not None
        order = batch.weights.astype(np.intp) - 1
        for i in range(batch.batch):
            weights = None if preds.weights is None else preds.weights[order[i]][None]
            scores, outcomes = batch.scores[i : i + 1], batch.outcomes[i : i + 1]
            yield Rows(Profile(scores, outcomes, weights, single=True), order[i])
