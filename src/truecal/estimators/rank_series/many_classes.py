"""The class-wise rank series of very many probabilities: interval and test without a bootstrap of rows for every class.

Rows are put in 256 groups at random (see `resampling.wide`). Every class leaves, for every group, rows, scores and ones in
32 cells of equal mass. Drawing groups with replacement gives resamples of all classes together; each is estimated on the cells,
those of several classes as one batch. Turning the signs of whole groups, in all classes at once, gives the test.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from truecal.estimators.base import Estimator
from truecal.estimators.bins import combined
from truecal.estimators.rank_series.basis import basis_functions, rank_basis, rank_cells
from truecal.estimators.rank_series.clusters import JointSigns, cluster_order
from truecal.estimators.resampling import wide
from truecal.estimators.resampling.cells import Counted
from truecal.estimators.resampling.draws import unit_counts
from truecal.estimators.resampling.equal_mass import mass_bins
from truecal.estimators.resampling.redraw import REDRAWS
from truecal.estimators.resampling.units import Units
from truecal.lenses.lens import Lens
from truecal.predictions.predictions import Predictions
from truecal.profile.profile import Profile
from truecal.special import positive
from truecal.types import Float64s

_CELLS = 32
_WORK = 20_000  # resamples x classes
_FEWEST = 50  # resamples
_TOGETHER = 16  # classes in a batch


def of_many_classes(
    estimator: Estimator, preds: Predictions, lens: Lens, shares: Float64s, rng: np.random.Generator
) -> wide.Wide:
    """Value, parts, resamples and test of an unbiased estimator of one power per class."""
    found = [estimator.report(part, estimator.find(part)) for part in lens.profiles(preds)]
    parts, direction = (
        np.concatenate([np.atleast_1d(getattr(e, name)) for e in found]) for name in ("power", "direction")
    )
    resamples = int(np.clip(_WORK // len(shares), _FEWEST, wide.RESAMPLES))
    times = unit_counts(wide.GROUPS + 2, resamples, rng).T.astype(np.float64)
    units = Units(wide.group_of_row(len(preds)), wide.GROUPS, "rows")
    signs = JointSigns(units, REDRAWS, rng)
    powers = []
    for start, held in _batches(preds):
        powers.append(estimator.find(_drawn(held, times)).power.reshape(-1, resamples))
        _turn(held, shares[start:], signs)
    drawn = combined(np.concatenate(powers), shares, estimator.power_norm)
    power = float(combined(parts, shares, estimator.power_norm))
    notes = tuple(dict.fromkeys(note for estimate in found for note in estimate.warnings))
    overconfident = float(shares @ direction)
    return wide.Wide(power, drawn, drawn - drawn.mean(), 0.0, parts, None, signs.p_value(), overconfident, notes)


def _batches(preds: Predictions) -> Iterator[tuple[int, Float64s]]:
    """Rows, sums of scores and ones of every group in the cells of some classes, shape (3, classes, groups, cells)."""
    first = wide.group_of_row(len(preds)) * _CELLS
    size, shape = wide.GROUPS * _CELLS, (wide.GROUPS, _CELLS)
    held: list[Float64s] = []
    for k, column, rows in wide.class_columns(preds.probs, preds.labels):
        place = mass_bins(column, _CELLS) + first
        sums = np.bincount(place, None, size), np.bincount(place, column, size), np.bincount(place[rows], None, size)
        held.append(np.stack([a.reshape(shape) for a in sums]).astype(np.float64))
        if len(held) == _TOGETHER or k == preds.class_count - 1:
            yield k + 1 - len(held), np.stack(held, axis=1)
            held = []


def _drawn(held: Float64s, times: Float64s) -> Profile:
    """Resamples of all classes of a batch, softened by a zero and a one that are shared out like the rows."""
    count, score, ones = held
    whole = count.sum(axis=1)
    share = (whole / whole.sum(axis=1, keepdims=True))[:, None]
    groups = times[:, : wide.GROUPS]
    hits = groups @ ones + times[:, -1:] * share
    rows = groups @ count + (times[:, -1:] + times[:, -2:-1]) * share
    mean = np.repeat(_means(whole, score.sum(axis=1)), len(times), axis=0)
    rows, hits = rows.reshape(-1, _CELLS), hits.reshape(-1, _CELLS)
    return Counted(mean, hits / positive(rows), rows)


def _means(count: Float64s, score: Float64s) -> Float64s:
    """Mean scores of cells, ascending; an empty cell stands where the one before it does."""
    mean = np.where(count > 0, score / positive(count), 0.0)
    return np.minimum(np.maximum.accumulate(mean, axis=1), 1.0)


def _turn(held: Float64s, shares: Float64s, signs: JointSigns) -> None:
    """Add the classes of a batch to the joint test."""
    count, score, ones = held
    whole = count.sum(axis=1)
    rate = ones.sum(axis=1) / positive(whole)
    ranks = replace(rank_cells(Counted(_means(whole, score.sum(axis=1)), rate, whole)), clusters=wide.GROUPS)
    functions = basis_functions(rank_basis(ranks), ranks)[:, : cluster_order(wide.GROUPS)]
    sums = (ones - score) @ functions.transpose(0, 2, 1) / ranks.n[:, None, None]
    for own, share in zip(sums, shares, strict=False):
        signs.add(own, float(share))
