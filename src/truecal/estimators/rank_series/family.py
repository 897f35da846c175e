"""Rank-series tests of many datasets, judged together.

p-values from B redraws cannot go below 1/(B + 1), and a correction for 60 tests then flags nothing. One joint null needs no finer
p-values: the largest statistic of all datasets is compared with the largest of redraws of all of them (Westfall & Young 1993,
max-T), and stepping down leaves out what is rejected already. So that the largest is not always one of the datasets with rare
events, whose statistic has the longer tail, statistics are first measured in units of their own tail: how far above the 90 %
quantile of its redraws a statistic lies, over the mean excess of the redraws beyond it, which is shrunk halfway to that of all
datasets.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal import options
from truecal.estimators.rank_series.basis import rank_basis, rank_cells
from truecal.estimators.rank_series.clusters import ClusteredSeries
from truecal.estimators.rank_series.fit import coefficient_covariance, smooth_test_statistic
from truecal.estimators.rank_series.null import Null
from truecal.estimators.resampling.cells import Counted, collapse
from truecal.estimators.resampling.units import Units
from truecal.lenses.sample import Sample
from truecal.profile.profile import Profile
from truecal.special import positive
from truecal.types import Float64s, Indices

_CELLS = 128  # of neighbouring scores for each dataset, redrawn together: 8 for every term that 1000 rows pay for
_AT_ONCE = 1 << 21  # redrawn cells held at a time
_TAIL = 0.9
_RELATIVE = 1e-12  # statistics that agree to rounding count as equal


class Family:
    """Tests of calibration of many datasets, adjusted together.

    Datasets of independent rows are redrawn by themselves. Where rows belong to units, signs of whole units are turned, the same
    for all datasets, because a unit may have rows in several of them.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(1)
    >>> c, group = rng.random(3000), np.arange(3000) % 3
    >>> family = Family(199)
    >>> family.add(tc.OneClass().sample(tc.Predictions.from_probs(c, rng.random(3000) < np.where(group == 2, c**2, c))), group)
    >>> family.adjusted() <= 0.05
    array([False, False,  True])
    """

    def __init__(self, resamples: int, rng: int | np.random.Generator = 0) -> None:
        self.resamples = resamples
        self._rng = options.generator(rng)
        self._statistics: list[float] = []
        self._nulls: list[Float64s] = []
        self._groups: list[int] = []

    def add(self, sample: Sample, group: Indices) -> None:
        """Take in one dataset for every group of rows (numbers from 0 on; rows of -1 belong to none).

        A group may be taken in several times, as one dataset per class: it is then judged by the worst of them.
        """
        tests = self._of_rows(sample, group) if sample.independent else self._of_units(sample, group)
        for place, (statistic, null) in enumerate(tests):
            self._groups.append(place)
            self._statistics.append(statistic)
            self._nulls.append(null)

    def add_profile(self, profile: Profile, group: int) -> None:
        """Take in one dataset of independent rows that is sorted already, or the cells of a sketch."""
        cells = collapse(profile, _CELLS)
        assert cells.weights is not None
        scores, outcomes, weights = (_padded(a) for a in (cells.scores, cells.outcomes, cells.weights))
        filled = np.arange(_CELLS) < cells.rows
        (statistic, null), *_ = self._redrawn(Counted(scores, outcomes * filled, weights * filled))
        self._groups.append(group)
        self._statistics.append(statistic)
        self._nulls.append(null)

    def p_values(self) -> Float64s:
        """Of every group by itself, not adjusted."""
        observed, null = self._by_group()
        reached = (null >= observed[:, None] - _RELATIVE).sum(axis=1)
        return np.asarray((1 + reached) / (1 + self.resamples))

    def adjusted(self) -> Float64s:
        """Family-wise p-values of all groups, by stepping down."""
        observed, null = self._by_group()
        order = np.argsort(-observed, kind="stable")
        largest = np.maximum.accumulate(null[order][::-1], axis=0)[::-1]
        reached = (largest >= observed[order, None] - _RELATIVE).sum(axis=1)
        adjusted = np.empty(len(observed))
        adjusted[order] = np.maximum.accumulate((1 + reached) / (1 + self.resamples))
        return adjusted

    def _by_group(self) -> tuple[Float64s, Float64s]:
        """Statistics (groups,) and their redraws (groups, redraws) in units of their tails, the largest of each group."""
        observed, null, member = np.array(self._statistics), np.array(self._nulls), np.array(self._groups)
        # The data count like one more redraw, but not by more than twice the largest.
        every = np.column_stack([null, np.minimum(observed, 2 * null.max(axis=1) + 1)])
        start = np.quantile(every, _TAIL, axis=1)
        excess = np.maximum(every - start[:, None], 0.0).sum(axis=1) / ((1 - _TAIL) * every.shape[1])
        tail = np.maximum((excess + excess.mean()) / 2, 1e-12)
        observed, null = (observed - start) / tail, (null - start[:, None]) / tail[:, None]
        worst, worst_null = np.full(member.max() + 1, -np.inf), np.full((member.max() + 1, self.resamples), -np.inf)
        np.maximum.at(worst, member, observed)
        for place, row in zip(member, null, strict=True):
            np.maximum(worst_null[place], row, out=worst_null[place])
        return worst, worst_null

    def _of_rows(self, sample: Sample, group: Indices) -> Iterator[tuple[float, Float64s]]:
        cells = _cells(sample, group)
        step = max(1, _AT_ONCE // (_CELLS * self.resamples))
        for start in range(0, cells.batch, step):
            yield from self._redrawn(cells.take(slice(start, start + step)))

    def _redrawn(self, profile: Profile) -> Iterator[tuple[float, Float64s]]:
        """Statistic and redraws of every dataset of a batch of cells."""
        cells = rank_cells(profile)
        waves = rank_basis(cells)
        covariance = coefficient_covariance(waves, cells.null_variances, cells.n)
        count = cells.dataset_counts
        unit = np.sqrt(positive(count) * cells.n[:, None])
        beta = np.vecdot(waves, (cells.residual_sums / unit)[:, None, :])
        for i, own in enumerate(covariance):
            if (own.diagonal() > 0).any():
                null = Null(count[i], cells.scores[i], cells.null_variances[i], waves[i] / unit[i], own)
                yield float(smooth_test_statistic(beta[i], own)), null.draw(self.resamples, self._rng)
            else:
                # Scores of 0 and 1 only: any miss refutes them.
                impossible = bool((np.abs(cells.residual_sums[i]) > _RELATIVE).any())
                yield (1e300 if impossible else 0.0), np.zeros(self.resamples)

    def _of_units(self, sample: Sample, group: Indices) -> Iterator[tuple[float, Float64s]]:
        assert sample.units is not None
        signs = self._rng.integers(0, 2, (self.resamples, int(sample.units.max()) + 1), dtype=np.int8)
        order = np.argsort(group, kind="stable")
        for rows in np.split(order, np.searchsorted(group[order], np.arange(group.max() + 1)))[1:]:
            part = sample.take(rows)
            units = Units.of(part, self._rng)
            sums = ClusteredSeries.of(part, units).sums if units.count > 1 else np.zeros((1, 1))
            squares = sums.T @ sums
            if not (squares.diagonal() > 0).any():
                yield 0.0, np.zeros(self.resamples)
                continue
            codes = np.unique(sample.units[rows])
            # Above 16,384 units they are joined at random, and each dataset turns signs of its own.
            own = signs[:, codes] if len(codes) == len(sums) else self._rng.integers(0, 2, (self.resamples, len(sums)))
            yield (
                float(smooth_test_statistic(sums.sum(axis=0), squares)),
                smooth_test_statistic((own * 2.0 - 1) @ sums, squares),
            )


def _cells(sample: Sample, group: Indices) -> Profile:
    """Every group as cells of neighbouring scores, a batch of one dataset per group; small groups end in empty cells."""
    kept = np.flatnonzero(group >= 0)
    if sample.weights is not None:
        kept = kept[sample.weights[kept] > 0]
    kept = kept[np.argsort(narrowed(group[kept]), kind="stable")]
    member, groups = group[kept], int(group.max()) + 1
    rows = np.bincount(member, minlength=groups)
    # Group by group: a sort of all scores at once would take three times as long.
    for members in np.split(kept, np.cumsum(rows)[:-1]):
        members[:] = members[np.argsort(sample.scores[members], kind="stable")]
    rank = np.arange(len(kept)) - np.repeat(np.cumsum(rows) - rows, rows)
    place = member * _CELLS + rank * np.minimum(_CELLS, rows)[member] // rows[member]
    weight = np.ones(len(kept)) if sample.weights is None else sample.weights[kept]
    score, outcome = sample.scores[kept].astype(np.float64), sample.outcomes[kept]

    def summed(values: Float64s) -> Float64s:
        return np.bincount(place, values, groups * _CELLS).reshape(groups, _CELLS).astype(np.float64)

    count, scores, ones = summed(weight), summed(weight * score), summed(weight * outcome)
    counted = bool((weight == np.rint(weight)).all())
    filled = positive(count)
    # Empty cells follow the largest score, so that scores stay sorted.
    mean = np.maximum.accumulate(scores / filled, axis=1)
    if not counted:
        squares = np.bincount(member, weight**2, groups)
        count = count * (count.sum(axis=1) / positive(squares.astype(np.float64)))[:, None]
    return Counted(np.minimum(mean, 1.0), ones / filled, count)


def narrowed(codes: Indices) -> NDArray[Any]:
    """Numbers of groups in 16 bits where they fit, which numpy sorts by radix."""
    return codes.astype(np.uint16) if len(codes) and codes.max() < 1 << 16 else codes


def _padded(values: NDArray[Any]) -> Float64s:
    """A row of cells, its last value repeated up to the full number."""
    return np.pad(values.astype(np.float64), ((0, 0), (0, _CELLS - values.shape[1])), mode="edge")
