"""Pareto sets: models that no other beats in error and calibration at once, and which of them stay when the metric or data change.

Minderer et al. 2021, sections 4.2, 4.3 and 5: the ranking by calibration alone changes with the estimator; the Pareto set of
accuracy and calibration changes rarely.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecal.errors import InputError
from truecal.predictions import validation
from truecal.study.analyses.points import (
    CONDITION,
    Analysed,
    at,
    by_condition,
    conditions,
    gathered,
    numbers,
    references,
    where,
    with_error,
)
from truecal.study.store import pl

# ----------------------------------------------------------------------------------------------------
# Pareto sets: models that no other beats in error and calibration at once, and which of them stay when the metric or data change

METRIC = "rank-series-l2"


def on_front(x: ArrayLike, y: ArrayLike) -> NDArray[np.bool_]:
    """Which points no other beats: none is at least as low in both and lower in one. Equal points stand or fall together.

    One sort: points are met from left to right, and stay if they are the lowest at their x and lower than all before.

    >>> on_front([0.1, 0.2, 0.3, 0.1], [0.05, 0.01, 0.03, 0.06]).tolist()
    [True, True, False, False]
    """
    a, b = (validation.as_floats(values, name).astype(np.float64) for name, values in (("x", x), ("y", y)))
    if a.shape != b.shape or a.ndim != 1:
        raise InputError(f"points need as many x as y, not arrays of shapes {a.shape} and {b.shape}")
    for name, values in (("x", a), ("y", b)):
        if np.isnan(values).any():
            raise InputError(
                f"{name} of point {int(np.flatnonzero(np.isnan(values))[0])} is not a number; leave it out"
            )
    if not len(a):
        return np.zeros(0, bool)
    order = np.lexsort((b, a))
    sorted_x, sorted_y = a[order], b[order]
    first = np.concatenate([[True], sorted_x[1:] != sorted_x[:-1]])
    group = np.cumsum(first) - 1
    lowest = sorted_y[first]
    before = np.concatenate([[np.inf], np.minimum.accumulate(lowest)[:-1]])
    keeps = lowest < before
    keeps[0] = True  # nothing is before the first, even where it is infinite
    front = np.empty(len(a), bool)
    front[order] = keeps[group] & (sorted_y == lowest[group])
    return front


@dataclass(frozen=True, eq=False)
class ParetoSets(Analysed):
    """Front membership for every metric, condition and model.

    `frame()` has one row per metric, condition and model. Columns: metric, lens, dataset, severity, model, family, size, error,
    value, their bounds, front, supported. `supported` says whether the membership holds wherever in their intervals the true
    numbers lie (null without intervals).
    """

    def counts(self) -> Any:
        """One row per model: on how many of the fronts it could be on it was, and whether on all of them."""
        counted = self._frame.group_by("model").agg(
            pl.col("family").first(),
            pl.col("size").first(),
            pl.col("front").sum().cast(pl.Int64).alias("fronts"),
            pl.len().cast(pl.Int64).alias("of"),
        )
        return counted.with_columns(
            (pl.col("fronts") / pl.col("of")).alias("share"), self._always.alias("always")
        ).sort("share", "model", descending=[True, False])

    @property
    def _always(self) -> Any:
        whole = self._frame.select("metric", "lens", *CONDITION).unique().height
        return (pl.col("fronts") == pl.col("of")) & (pl.col("of") == whole)

    @property
    def always(self) -> tuple[str, ...]:
        """The models on every front: under every metric, on every dataset, at every severity."""
        counts = self.counts()
        return tuple(sorted(counts.filter(pl.col("always"))["model"].to_list()))

    def kept(self, reference: str | Mapping[str, str] | None = None) -> Any:
        """How many models on the front of clean data are on that of shifted data: metric, dataset, severity, clean, kept, share.

        `reference` names the clean dataset of shifted ones (one for all, or one for each); without it a dataset's own severity 0.
        """
        rows = []
        for key, part in self._frame.partition_by(["metric", "lens"], as_dict=True, maintain_order=True).items():
            for out, clean in references(conditions(part), reference)[0].items():
                of = set(at(part, *clean).filter(pl.col("front"))["model"])
                outside = at(part, *out)
                of &= set(outside["model"])
                kept = of & set(outside.filter(pl.col("front"))["model"])
                rows.append((*key, *out, len(of), len(kept), len(kept) / len(of) if of else None))
        names = ("metric", "lens", "dataset", "severity", "clean", "kept")
        types = dict.fromkeys(names[:3], pl.String) | {"severity": pl.Float64, "clean": pl.Int64, "kept": pl.Int64}
        return pl.DataFrame(rows, schema=types | {"share": pl.Float64}, orient="row")


def pareto(
    frame: Any,
    *,
    metrics: Sequence[str] = (METRIC,),
    lens: str = "top-label",
    selection: str = "all",
    recalibrator: str = "none",
    dataset: str | None = None,
) -> ParetoSets:
    """Pareto sets of classification error and each metric, under every condition of the results of a store.

    >>> import polars as pl
    >>> rows = [("a", "error", 0.1), ("b", "error", 0.2), ("c", "error", 0.3)]
    >>> rows += [("a", "nll", 0.5), ("b", "nll", 0.4), ("c", "nll", 0.6)]
    >>> frame = pl.DataFrame(rows, schema=["model", "metric", "value"], orient="row").with_columns(
    ...     family=None, size=None, dataset=pl.lit("digits"), severity=0.0, seed=0, recalibrator=pl.lit("none"),
    ...     lens=pl.lit(""), selection=pl.lit("all"), low=None, high=None, n=500)
    >>> pareto(frame, metrics=["nll"]).always
    ('a', 'b')
    """
    if isinstance(metrics, str):
        metrics = (metrics,)
    points, notes = with_error(
        frame, metrics, lens=lens, selection=selection, recalibrator=recalibrator, dataset=dataset
    )
    parts = []
    for part in points.partition_by(["metric", "lens", *CONDITION], maintain_order=True):
        front = on_front(*numbers(part, "error", "value"))
        supported = pl.Series("supported", _supported(part, front), dtype=pl.Boolean)
        parts.append(part.with_columns(pl.Series("front", front), supported))
    table = pl.concat(parts).sort("metric", "lens", *CONDITION, "error", "model")
    judged = table.filter(pl.col("supported").is_not_null())
    if judged.is_empty():
        notes.append("there are no intervals of these metrics: which memberships are chance is unknown")
    elif loose := judged.filter(~pl.col("supported")).height:
        notes.append(
            f"{loose} of {judged.height} memberships of a front are not supported by the intervals: "
            "other values inside them put the model on the other side"
        )
    counts = table.group_by(*CONDITION).agg(pl.col("model").n_unique()).sort(*CONDITION)
    few = [row for row in counts.iter_rows(named=True) if row["model"] < 3]
    notes += gathered([(f"a front among {row['model']} models says little", where(row)) for row in few])
    if (missing := _missing(table)) is not None:
        notes.append(missing)
    return ParetoSets(tuple(notes), table)


def _supported(part: Any, front: NDArray[np.bool_]) -> list[bool | None]:
    """Whether each membership holds for all values inside the boxes of error and metric intervals."""
    low, high, least, most = numbers(part, "low", "high", "error_low", "error_high")
    if np.isnan([low, high, least, most]).any():
        return [None] * len(front)
    other = ~np.eye(len(front), dtype=bool)
    could = ((least[None] <= most[:, None]) & (low[None] <= high[:, None]) & other).any(axis=1)  # [i, j]: j beats i
    must = ((most[None] < least[:, None]) & (high[None] < low[:, None]) & other).any(axis=1)
    return np.where(front, ~could, must).tolist()


def _missing(table: Any) -> str | None:
    models, whole = table["model"].n_unique(), table.select("metric", "lens", *CONDITION).unique().height
    if models * whole == table.height:
        return None
    return "some models lack some conditions: a front is only among the models that are there"


# ----------------------------------------------------------------------------------------------------
# Which family of models is beaten by which: "BiT always remains Pareto-dominated by ViT" (Minderer et al. 2021, section 4.2)


@dataclass(frozen=True, eq=False)
class Dominance(Analysed):
    """For every condition and ordered pair of families, how many models of one are beaten by some model of the other.

    A model is beaten by one that is at least as good in error and metric and better in one of them. `frame()` has one row per
    condition and ordered pair of families. Columns: dataset, severity, family, by, models (of the family), beaten, share,
    dominated (all are beaten, and no model of `by` is by the family).
    """

    metric: str
    recalibrator: str

    @property
    def always(self) -> tuple[tuple[str, str], ...]:
        """Pairs (family, by) of which the first is dominated under every condition in which both occur."""
        whole = self._frame.group_by("family", "by", maintain_order=True).agg(pl.col("dominated").all())
        return tuple((family, by) for family, by, dominated in whole.iter_rows() if dominated)


def dominance(
    frame: Any,
    *,
    metric: str = METRIC,
    lens: str = "top-label",
    selection: str = "all",
    recalibrator: str = "none",
    dataset: str | None = None,
) -> Dominance:
    """Family against family, under every condition of the results.

    >>> import polars as pl
    >>> names, families = ["a", "b", "c", "d"], ["old", "old", "new", "new"]
    >>> values = {"error": [0.3, 0.4, 0.1, 0.2], "nll": [0.6, 0.8, 0.2, 0.4]}
    >>> rows = [(*who, metric, value) for metric, all_ in values.items() for *who, value in zip(names, families, all_)]
    >>> frame = pl.DataFrame(rows, schema=["model", "family", "metric", "value"], orient="row").with_columns(
    ...     size=pl.lit(1.0), dataset=pl.lit("digits"), severity=0.0, seed=0, recalibrator=pl.lit("none"), lens=pl.lit(""),
    ...     selection=pl.lit("all"), low=None, high=None, n=500)
    >>> dominance(frame, metric="nll").always
    (('old', 'new'),)
    """
    points, notes = with_error(
        frame, [metric], lens=lens, selection=selection, recalibrator=recalibrator, dataset=dataset
    )
    points = points.filter(pl.col("family").is_not_null())
    rows = []
    for condition, part in by_condition(points):
        error, value = numbers(part, "error", "value")
        worse = (error[None] <= error[:, None]) & (value[None] <= value[:, None])  # [i, j]: j is as good as i in both
        beaten = worse & ((error[None] < error[:, None]) | (value[None] < value[:, None]))
        families = part["family"].to_numpy()
        names = sorted(set(families))
        lost = {(a, b): int(beaten[families == a][:, families == b].any(axis=1).sum()) for a in names for b in names}
        for a in names:
            for b in names:
                if a == b:
                    continue
                count = int(np.count_nonzero(families == a))
                row = {**condition, "family": a, "by": b, "models": count}
                row |= {"beaten": lost[a, b], "share": lost[a, b] / count}
                rows.append({**row, "dominated": lost[a, b] == count and lost[b, a] == 0})
    if not rows:
        raise InputError("no condition has two families to compare")
    return Dominance(tuple(notes), pl.DataFrame(rows), metric, recalibrator)
