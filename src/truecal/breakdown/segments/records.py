"""What an audit judges, one record per row (or per cell of a sketch): score, number of rows, ones, weight and unit.

A record of `count` rows has `ones` outcomes of 1. Under calibration these are Binomial(count, score), records being independent of
each other, or, where rows share a unit (a cluster; one row under a lens that judges all its classes), of mean count x score.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal.breakdown.groups import Grouped
from truecal.errors import InputError
from truecal.lens import Lens
from truecal.types import Float64s, Indices

REGIONS = 4  # quarters of the scores
_SCORE_CELLS = 32  # of every group of a scan: neighbouring scores, 8 in every region


@dataclass(frozen=True, eq=False)
class Records:
    """Arrays of one length; None where all counts or weights are 1 and rows are independent.

    `columns` are the values to segment by, `own` the one of them that a lens on many classes adds; `edges` of the scores part
    them into regions of equal mass.
    """

    score: Float64s
    ones: Float64s
    columns: Mapping[str, NDArray[Any]]
    count: Float64s | None = None
    weight: Float64s | None = None
    unit: Indices | None = None
    own: str | None = None

    def __len__(self) -> int:
        return len(self.score)

    @cached_property
    def counts(self) -> Float64s:
        return np.ones(len(self)) if self.count is None else self.count

    @cached_property
    def mass(self) -> Float64s:
        """Count times weight."""
        return self.counts if self.weight is None else self.counts * self.weight

    @cached_property
    def edges(self) -> Float64s:
        """Three scores that part the rows into quarters; a group of equal scores is never parted."""
        order = np.argsort(self.score, kind="stable")
        reached = np.cumsum(self.counts[order])
        place = np.searchsorted(reached, reached[-1] * np.arange(1, REGIONS) / REGIONS, "right")
        return self.score[order][np.minimum(place, len(order) - 1)]

    @cached_property
    def region(self) -> NDArray[np.intp]:
        return np.searchsorted(self.edges, self.score, "right")

    def residual(self, score: Float64s) -> Float64s:
        """Weighted ones minus what the scores expect."""
        surplus = self.ones - self.counts * score
        return surplus if self.weight is None else self.weight * surplus

    def moments(self, score: Float64s) -> Float64s:
        """Second and third cumulant of every residual if `score` is the truth and rows are independent, shape (n, 2)."""
        weight = 1.0 if self.weight is None else self.weight
        second = weight**2 * self.counts * score * (1 - score)
        return np.stack([second, weight * second * (1 - 2 * score)], axis=1)


def records_of(preds: tc.Predictions, lens: Lens) -> Records:
    """Every row as a record; a lens on many classes gives one record per row and class, with the class as a column."""
    if lens.several:
        raise InputError(
            f"an audit judges one probability at a time, not {lens!r}; use tc.TopLabel() or tc.OneClass(name)"
        )
    samples = list(lens.samples(preds))
    score, ones = (
        np.concatenate([getattr(sample, name) for sample in samples]).astype(np.float64)
        for name in ("scores", "outcomes")
    )
    count, weight = _counts_and_weights(preds.weights)
    columns, unit = dict(preds.columns), preds.clusters
    if len(score) > len(preds):
        # Several records of a row: pairs that a lens pools stand side by side, classes one after the other.
        rows = np.concatenate([np.repeat(np.arange(len(preds)), len(sample) // len(preds)) for sample in samples])
        columns = {name: values[rows] for name, values in columns.items()}
        count, weight = (None if a is None else a[rows] for a in (count, weight))
        unit = rows if unit is None else unit[rows]
    own = None
    if len(samples) > 1:
        own = "class" if "class" not in columns else "class judged"
        columns[own] = np.repeat([sample.names[0] for sample in samples], [len(sample) for sample in samples])
    return Records(score, ones if count is None else ones * count, columns, count, weight, unit, own)


def _counts_and_weights(weights: Float64s | None) -> tuple[Float64s | None, Float64s | None]:
    """Whole-number weights count repetitions; others are importance weights, scaled to Kish's effective size."""
    if weights is None:
        return None, None
    if (weights == np.rint(weights)).all():
        return weights, None
    return None, weights * (weights.sum() / (weights**2).sum())


def records_of_groups(groups: Grouped) -> Records:
    """The cells of a scan: for every combination of values, neighbouring scores taken together."""
    if not groups.by:
        raise InputError("the scan was not grouped; say which columns to audit: tc.scan(..., by=[...])")
    if any(len(parts) > 1 for parts in groups.sketches.values()):
        raise InputError(
            "a scan of all classes keeps no rows that tie them together; audit tc.OneClass(name) or TopLabel()"
        )
    keys = sorted(groups.sketches, key=repr)  # engines list groups in orders of their own, and redraws go by the order
    sketches = [groups.sketches[key][0] for key in keys]
    if any(sketch.fraction > 0 for sketch in sketches):
        raise InputError("a scan with weights that are not whole numbers cannot be audited; audit the rows in memory")
    w, y, c = (np.concatenate(parts) for parts in zip(*map(_sums, sketches), strict=True))
    group = np.repeat(np.arange(len(keys)), [len(sketch.edges) for sketch in sketches])
    order = np.argsort(c / w, kind="stable")
    cell = np.empty(len(c), np.intp)
    reached = np.cumsum(w[order])
    cell[order] = np.minimum((reached - w[order] / 2) * _SCORE_CELLS / reached[-1], _SCORE_CELLS - 1).astype(np.intp)
    joined, place = np.unique(group * _SCORE_CELLS + cell, return_inverse=True)
    count, ones, total = (np.bincount(place, a, len(joined)).astype(np.float64) for a in (w, y, c))
    columns = {}
    for i, name in enumerate(groups.by):
        values = np.empty(len(keys), object)
        values[:] = [key[i] for key in keys]
        columns[name] = _narrowed(values)[joined // _SCORE_CELLS]
    return Records(np.clip(total / count, 0.0, 1.0), ones, columns, count)


def _sums(sketch: tc.Sketch) -> tuple[Float64s, Float64s, Float64s]:
    """Weight, ones and sum of scores in every cell of a sketch."""
    w, y, r = (sketch.sums[name] for name in ("w", "y", "r"))
    return w, y, w * sketch.edges + r


def _narrowed(values: NDArray[Any]) -> NDArray[Any]:
    """Values of a column as numbers where all (but missing ones) are numbers."""
    kinds = {type(v) for v in values.tolist() if v is not None}
    if kinds <= {int, float}:
        return np.array([np.nan if v is None else v for v in values.tolist()], np.float64)
    if kinds == {bool} and not any(v is None for v in values.tolist()):
        return values.astype(bool)
    return values
