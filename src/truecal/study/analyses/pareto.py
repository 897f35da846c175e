"""Pareto sets of error and calibration, and which of their members stay when the metric or the data change.

Minderer et al. (2021), sections 4.2, 4.3 and 5, https://arxiv.org/abs/2106.07998: the ranking by calibration alone changes with
the estimator; the Pareto set of accuracy and calibration changes rarely.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecal.errors import InputError
from truecal.predictions import validation
from truecal.study.analyses import base
from truecal.study.analyses.base import CONDITION, KEY, METRIC, Analysis, Choice, numbers
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
    at_most = (a[:, None] <= a) & (b[:, None] <= b)  # [i, j]: point i beside point j
    dominates = at_most & ((a[:, None] < a) | (b[:, None] < b))
    front: NDArray[np.bool_] = np.logical_not(np.any(dominates, axis=0))
    return front


def pareto(source: Any, *, metrics: str | Sequence[str] = METRIC, **choice: Unpack[Choice]) -> Analysis:
    """Find the Pareto sets of classification error and each metric, under every condition of the results of a store.

    Parameters
    ----------
    source : Store or data frame
        A store, its results (`store.frame()`), or any frame with their columns.
    metrics : str or sequence of str, default "rank-series-l2"
        Names of metrics.
    **choice : str
        Which results: lens, selection, recalibrator, dataset, as in :func:`points`.

    Returns
    -------
    Analysis
        Tables:
        "fronts": one row per metric, condition and model, with error, value, their limits, front (whether no model dominates it)
        and supported (whether that holds wherever in their intervals the true numbers lie; null without intervals).
        "counts": one row per model: fronts (it is on), of (fronts it was compared on), share, always (on every front there is).

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
    >>> pareto(frame, metrics="nll").notes[0]
    'on every front: a, b'
    """
    points, notes = base.points_with_error(source, metrics, **choice)
    parts = []
    for part in points.partition_by("metric", "lens", *CONDITION, maintain_order=True):
        front = on_front(*numbers(part, "error", "value"))
        supported = pl.Series("supported", _support(part, front), dtype=pl.Boolean)
        parts.append(part.with_columns(pl.Series("front", front), supported, models=pl.len()))
    table = pl.concat(parts).sort("metric", "lens", *CONDITION, "error", "model")
    few = table.filter(pl.col("models") < 3).unique(KEY[:4], maintain_order=True)
    table = table.drop("models")
    fronts, of = pl.col("front").sum().cast(pl.Int64), pl.len().cast(pl.Int64)
    counts = table.group_by("model").agg(
        pl.col("family", "size").first(),
        fronts=fronts,
        of=of,
        share=fronts / of,
        always=(fronts == of) & (of == len(parts)),
    )
    counts = counts.sort("share", "model", descending=[True, False])
    always = ", ".join(counts.filter("always")["model"].sort())
    notes = [f"on every front: {always}" if always else "no model is on every front", *notes]
    tested = table["supported"].drop_nulls()
    if tested.is_empty():
        notes.append("there are no intervals of these metrics: which memberships are chance is unknown")
    elif not tested.all():
        notes.append(
            f"{len(tested) - tested.sum()} of {len(tested)} memberships of a front are not supported by the intervals: "
            "other values inside them put the model on the other side"
        )
    notes += base.write_notes(few.drop("model"), "a front among {models} models carries little information")
    if table["model"].n_unique() * len(parts) != table.height:
        notes.append("some models lack some conditions: a front is only among the models that are there")
    return Analysis({"fronts": table, "counts": counts}, tuple(notes))


def _support(part: Any, front: NDArray[np.bool_]) -> list[bool | None]:
    """Decide whether each membership of the front holds for all values in the intervals of error and metric.

    None for all models where one has no interval. A member of the front is supported if no model could dominate it, any other
    model if some model dominates it for all values.
    """
    low, high, error_low, error_high = numbers(part, "low", "high", "error_low", "error_high")
    if np.isnan([low, high, error_low, error_high]).any():
        return [None] * len(front)
    other = ~np.eye(len(front), dtype=bool)  # [i, j]: j dominates i
    could = ((error_low[None] <= error_high[:, None]) & (low[None] <= high[:, None]) & other).any(axis=1)
    must = ((error_high[None] < error_low[:, None]) & (high[None] < low[:, None]) & other).any(axis=1)
    return np.where(front, ~could, must).tolist()


def dominance(source: Any, *, metric: str = METRIC, **choice: Unpack[Choice]) -> Analysis:
    """Compare families of models: which is Pareto-dominated by which, under every condition of the results.

    Parameters
    ----------
    source : Store or data frame
        A store, its results (`store.frame()`), or any frame with their columns.
    metric : str, default "rank-series-l2"
        Name of the metric.
    **choice : str
        Which results: lens, selection, recalibrator, dataset, as in :func:`points`.

    Returns
    -------
    Analysis
        Table "families" with one row per condition and ordered pair of families: dataset, severity, family, by, models (of the
        family), beaten (dominated by some model of `by`), share, dominated (all are, and no model of `by` is by the family).

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
    >>> dominance(frame, metric="nll").notes[0]
    'always dominated: old by new'
    """
    points, notes = base.points_with_error(source, metric, **choice)
    models = points.filter(pl.col("family").is_not_null()).select(*CONDITION, "family", "model", "error", "value")
    pairs = models.join(models, on=list(CONDITION), suffix="_by").filter(pl.col("family") != pl.col("family_by"))
    if pairs.is_empty():
        raise InputError("no condition has two families to compare")
    at_most = (pl.col("error_by") <= pl.col("error")) & (pl.col("value_by") <= pl.col("value"))
    is_less = (pl.col("error_by") < pl.col("error")) | (pl.col("value_by") < pl.col("value"))
    keys = [*CONDITION, "family", "by"]
    beaten = pairs.group_by(*CONDITION, "family", "model", by="family_by").agg(beaten=(at_most & is_less).any())
    table = beaten.group_by(keys).agg(models=pl.len().cast(pl.Int64), beaten=pl.col("beaten").sum().cast(pl.Int64))
    reverse = table.select(*CONDITION, family="by", by="family", beats="beaten")
    table = table.join(reverse, on=keys).sort(keys)
    all_beaten = (pl.col("beaten") == pl.col("models")) & (pl.col("beats") == 0)
    table = table.with_columns(share=pl.col("beaten") / pl.col("models"), dominated=all_beaten).drop("beats")
    always = table.group_by("family", "by").agg(pl.col("dominated").all()).filter("dominated").sort("family", "by")
    listed = "; ".join(f"{family} by {by}" for family, by, _ in always.iter_rows())
    notes = [f"always dominated: {listed}", *notes] if listed else notes
    return Analysis({"families": table}, tuple(notes), metric, choice.get("recalibrator", "none"))
