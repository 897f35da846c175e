"""Pareto sets of error and calibration, and which of their members stay when the metric or the data change.

Minderer et al. (2021), sections 4.2, 4.3 and 5, https://arxiv.org/abs/2106.07998: the ranking by calibration alone changes with
the estimator; the Pareto set of accuracy and calibration changes rarely.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecal.errors import InputError
from truecal.predictions import validation
from truecal.study.analyses import base
from truecal.study.analyses.base import CONDITION, METRIC, Analysis, numbers, of_condition, where
from truecal.study.store import pl


def on_front(x: ArrayLike, y: ArrayLike) -> NDArray[np.bool_]:
    """Tell which points no other dominates: none is at most as large in both and smaller in one.

    Parameters
    ----------
    x : array-like of float of shape (n,)
        First coordinate of every point; smaller is better.
    y : array-like of float of shape (n,)
        Second coordinate of every point; smaller is better.

    Returns
    -------
    array of bool
        True on the front. Equal points are on it or off it together.

    Raises
    ------
    InputError
        If lengths differ, or a value is not a number.

    Examples
    --------
    >>> on_front([0.1, 0.2, 0.3, 0.1], [0.05, 0.01, 0.03, 0.06]).tolist()
    [True, True, False, False]
    """
    a, b = (validation.as_floats(values, name).astype(np.float64) for name, values in (("x", x), ("y", y)))
    if a.shape != b.shape or a.ndim != 1:
        raise InputError(f"points need as many x as y, not arrays of shapes {a.shape} and {b.shape}")
    for name, values in (("x", a), ("y", b)):
        if np.isnan(values).any():
            point = int(np.flatnonzero(np.isnan(values))[0])
            raise InputError(f"{name} of point {point} is not a number; leave it out")
    if not len(a):
        return np.zeros(0, bool)
    # From left to right, a point is on the front if it is the lowest at its x and lower than all before.
    order = np.lexsort((b, a))
    sorted_x, sorted_y = a[order], b[order]
    first = np.concatenate([[True], sorted_x[1:] != sorted_x[:-1]])
    group = np.cumsum(first) - 1
    lowest = sorted_y[first]
    before = np.concatenate([[np.inf], np.minimum.accumulate(lowest)[:-1]])
    is_lower = lowest < before
    is_lower[0] = True  # nothing is before the first, even where it is infinite
    front = np.empty(len(a), bool)
    front[order] = is_lower[group] & (sorted_y == lowest[group])
    return front


@dataclass(frozen=True, eq=False)
class ParetoSets(Analysis):
    """Hold front membership for every metric, condition and model.

    `frame()` has one row per metric, condition and model. Columns: metric, lens, dataset, severity, model, family, size, error,
    value, their bounds, front, supported. `supported` says whether the membership holds wherever in their intervals the true
    numbers lie (null without intervals).

    Attributes
    ----------
    notes : tuple of str
        What to know before reading the table, such as values that are missing or numbers of rows that differ.

    See Also
    --------
    pareto : Return this result.
    """

    def counts(self) -> Any:
        """Count the fronts of every model.

        Returns
        -------
        polars.DataFrame
            One row per model. Columns: model, family, size, fronts (it is on), of (fronts it was compared on), share (fronts / of),
            always (it was compared on every front and is on all).
        """
        fronts = self._frame.select("metric", "lens", *CONDITION).unique().height
        counts = self._frame.group_by("model").agg(
            pl.col("family", "size").first(),
            pl.col("front").sum().cast(pl.Int64).alias("fronts"),
            pl.len().cast(pl.Int64).alias("of"),
        )
        always = (pl.col("fronts") == pl.col("of")) & (pl.col("of") == fronts)
        counts = counts.with_columns((pl.col("fronts") / pl.col("of")).alias("share"), always.alias("always"))
        return counts.sort("share", "model", descending=[True, False])

    @property
    def always(self) -> tuple[str, ...]:
        """The models on every front: under every metric, on every dataset, at every severity."""
        return tuple(sorted(self.counts().filter(pl.col("always"))["model"].to_list()))

    def count_retained(self, reference: str | Mapping[str, str] | None = None) -> Any:
        """Count the models on the front of clean data that are on that of shifted data.

        Parameters
        ----------
        reference : str or mapping, default None
            Clean dataset of the shifted ones, one for all or by dataset; None: the severity 0 of each.

        Returns
        -------
        polars.DataFrame
            Columns metric, lens, dataset, severity, clean (models on the front of clean data), retained (those also on
            that of shifted data), share (retained / clean).
        """
        rows = []
        for key, part in self._frame.partition_by(["metric", "lens"], as_dict=True, maintain_order=True).items():
            for out, clean in base.references(base.conditions(part), reference)[0].items():
                outside = of_condition(part, *out)
                inside = set(of_condition(part, *clean).filter(pl.col("front"))["model"]) & set(outside["model"])
                both = inside & set(outside.filter(pl.col("front"))["model"])
                rows.append((*key, *out, len(inside), len(both), len(both) / len(inside) if inside else None))
        types = dict.fromkeys(("metric", "lens", "dataset"), pl.String) | {"severity": pl.Float64}
        return pl.DataFrame(
            rows, schema=types | {"clean": pl.Int64, "retained": pl.Int64, "share": pl.Float64}, orient="row"
        )


def pareto(
    frame: Any,
    *,
    metrics: Sequence[str] = (METRIC,),
    lens: str = "top-label",
    selection: str = "all",
    recalibrator: str = "none",
    dataset: str | None = None,
) -> ParetoSets:
    """Find the Pareto sets of classification error and each metric, under every condition of the results of a store.

    Parameters
    ----------
    frame : data frame
        Results of a store (`store.frame()`), or any frame with its columns.
    metrics : sequence of str, default ("rank-series-l2",)
        Names of metrics.
    lens : str, default "top-label"
        What is judged.
    selection : str, default "all"
        Which rows are judged.
    recalibrator : str, default "none"
        Recalibration method.
    dataset : str, default None
        One dataset; None: all.

    Returns
    -------
    ParetoSets
        Memberships and notes.

    Raises
    ------
    InputError
        If a name is not in the results.

    Examples
    --------
    >>> import polars as pl
    >>> rows = [("a", "error", 0.1), ("b", "error", 0.2), ("c", "error", 0.3)]
    >>> rows += [("a", "nll", 0.5), ("b", "nll", 0.4), ("c", "nll", 0.6)]
    >>> frame = pl.DataFrame(rows, schema=["model", "metric", "value"], orient="row").with_columns(
    ...     family=None, size=None, dataset=pl.lit("digits"), severity=0.0, seed=0, recalibrator=pl.lit("none"),
    ...     lens=pl.lit(""), selection=pl.lit("all"), low=None, high=None, n=500)
    >>> pareto(frame, metrics=["nll"]).always
    ('a', 'b')
    """
    names = (metrics,) if isinstance(metrics, str) else metrics
    choice = {"lens": lens, "selection": selection, "recalibrator": recalibrator, "dataset": dataset}
    points, notes = base.with_error(frame, names, **choice)
    parts, remarks = [], []
    for condition, part in base.by_condition(points, "metric", "lens"):
        front = on_front(*numbers(part, "error", "value"))
        supported = pl.Series("supported", _supported(part, front), dtype=pl.Boolean)
        parts.append(part.with_columns(pl.Series("front", front), supported))
        if part.height < 3:
            remarks.append((f"a front among {part.height} models carries little information", where(condition)))
    table = pl.concat(parts).sort("metric", "lens", *CONDITION, "error", "model")
    tested = table["supported"].drop_nulls()
    if tested.is_empty():
        notes.append("there are no intervals of these metrics: which memberships are chance is unknown")
    elif not tested.all():
        notes.append(
            f"{len(tested) - tested.sum()} of {len(tested)} memberships of a front are not supported by the intervals: "
            "other values inside them put the model on the other side"
        )
    notes += base.gather(list(dict.fromkeys(remarks)))
    if table["model"].n_unique() * len(parts) != table.height:
        notes.append("some models lack some conditions: a front is only among the models that are there")
    return ParetoSets(tuple(notes), table)


def _supported(part: Any, front: NDArray[np.bool_]) -> list[bool | None]:
    """Decide whether each membership of the front holds for all values in the intervals of error and metric.

    Null for all models where one has no interval. A member is supported if no model could dominate it, another model if one
    dominates it for all values.
    """
    low, high, error_low, error_high = numbers(part, "low", "high", "error_low", "error_high")
    if np.isnan([low, high, error_low, error_high]).any():
        return [None] * len(front)
    other = ~np.eye(len(front), dtype=bool)  # [i, j]: j dominates i
    could = ((error_low[None] <= error_high[:, None]) & (low[None] <= high[:, None]) & other).any(axis=1)
    must = ((error_high[None] < error_low[:, None]) & (high[None] < low[:, None]) & other).any(axis=1)
    return np.where(front, ~could, must).tolist()


@dataclass(frozen=True, eq=False)
class Dominance(Analysis):
    """Hold, for every condition and ordered pair of families, how many models of one some model of the other dominates.

    A model is dominated by one that is at least as good in error and metric and better in one of them. `frame()` has one row per
    condition and ordered pair of families. Columns: dataset, severity, family, by, models (of the family), beaten, share,
    dominated (all are, and no model of `by` is by the family).

    Attributes
    ----------
    notes : tuple of str
        What to know before reading the table, such as values that are missing or numbers of rows that differ.
    metric : str
        Name of the metric.
    recalibrator : str
        Recalibration method of the predictions.

    See Also
    --------
    dominance : Return this result.
    """

    metric: str
    recalibrator: str

    @property
    def always(self) -> tuple[tuple[str, str], ...]:
        """Pairs (family, by) of which the first is dominated under every condition in which both occur."""
        pairs = self._frame.group_by("family", "by", maintain_order=True).agg(pl.col("dominated").all())
        return tuple((family, by) for family, by, dominated in pairs.iter_rows() if dominated)


def dominance(
    frame: Any,
    *,
    metric: str = METRIC,
    lens: str = "top-label",
    selection: str = "all",
    recalibrator: str = "none",
    dataset: str | None = None,
) -> Dominance:
    """Compare families of models: which is Pareto-dominated by which, under every condition of the results.

    Parameters
    ----------
    frame : data frame
        Results of a store (`store.frame()`), or any frame with its columns.
    metric : str, default "rank-series-l2"
        Name of the metric.
    lens : str, default "top-label"
        What is judged.
    selection : str, default "all"
        Which rows are judged.
    recalibrator : str, default "none"
        Recalibration method.
    dataset : str, default None
        One dataset; None: all.

    Returns
    -------
    Dominance
        Counts of dominated models, and notes.

    Raises
    ------
    InputError
        If no condition has two families.

    References
    ----------
    Minderer et al. (2021), section 4.2 ("BiT always remains Pareto-dominated by ViT"), https://arxiv.org/abs/2106.07998

    Examples
    --------
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
    choice = {"lens": lens, "selection": selection, "recalibrator": recalibrator, "dataset": dataset}
    points, notes = base.with_error(frame, [metric], **choice)
    rows = []
    for condition, part in base.by_condition(points.filter(pl.col("family").is_not_null())):
        error, value = numbers(part, "error", "value")
        as_good = (error[None] <= error[:, None]) & (value[None] <= value[:, None])  # [i, j]: j is as good as i in both
        dominated = as_good & ((error[None] < error[:, None]) | (value[None] < value[:, None]))
        families = part["family"].to_numpy()
        names = sorted(set(families))
        pairs = [(a, b) for a in names for b in names if a != b]
        counts = {(a, b): int(dominated[families == a][:, families == b].any(axis=1).sum()) for a, b in pairs}
        for a, b in pairs:
            models, beaten = int(np.count_nonzero(families == a)), counts[a, b]
            row = {**condition, "family": a, "by": b, "models": models, "beaten": beaten, "share": beaten / models}
            rows.append({**row, "dominated": beaten == models and counts[b, a] == 0})
    if not rows:
        raise InputError("no condition has two families to compare")
    return Dominance(tuple(notes), pl.DataFrame(rows), metric, recalibrator)
