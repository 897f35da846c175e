"""Pareto sets of error and calibration, and which of their members stay when the metric or the data change.

Minderer et al. (2021), sections 4.2, 4.3 and 5, https://arxiv.org/abs/2106.07998: the ranking by calibration alone changes with
the estimator; the Pareto set of accuracy and calibration changes rarely.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from truecal.study.analyses import base
from truecal.study.analyses.base import CONDITION, METRIC, Analysis, Choice, numbers
from truecal.study.store import pl
from truecal.types import Float64s


def on_front(x: Float64s, y: Float64s) -> NDArray[np.bool_]:
    """Return which points (n,) no other dominates: none is at most as large in both and smaller in one.

    Equal points are on the front or off it together.

    >>> on_front(np.array([0.1, 0.2, 0.3, 0.1]), np.array([0.05, 0.01, 0.03, 0.06])).tolist()
    [True, True, False, False]
    """
    at_most = (x[:, None] <= x) & (y[:, None] <= y)  # [i, j]: point i beside point j
    dominates = at_most & ((x[:, None] < x) | (y[:, None] < y))
    front: NDArray[np.bool_] = np.logical_not(np.any(dominates, axis=0))
    return front


def pareto(source: Any, *, metrics: str | Sequence[str] = METRIC, **choice: Unpack[Choice]) -> Analysis:
    """Find the Pareto sets of classification error and each metric, under every condition of the results of a store.

    Parameters
    ----------
    source : Store or polars.DataFrame
        A store, its results (`store.frame()`), or a polars frame with their columns.
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
        parts.append(part.with_columns(pl.Series("front", front), supported))
    table = pl.concat(parts).sort("metric", "lens", *CONDITION, "error", "model")
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
    return Analysis({"fronts": table, "counts": counts}, tuple(notes))


def _support(part: Any, front: NDArray[np.bool_]) -> list[bool | None]:
    """Decide for each model whether it is on (or off) the front for all values in the intervals of error and metric.

    `part` has a row per model with low, high, error_low and error_high; `front` (models,) says which are on the front. True for
    a member that no model could dominate, and for another model that some model dominates for all values; else False. All are
    None where one model has no interval.

    >>> limits = {"low": [0.0, 0.5], "high": [0.1, 0.6], "error_low": [0.0, 0.5], "error_high": [0.1, 0.6]}
    >>> _support(pl.DataFrame(limits), np.array([True, False]))
    [True, True]
    """
    low, high, error_low, error_high = numbers(part, "low", "high", "error_low", "error_high")
    if np.isnan([low, high, error_low, error_high]).any():
        return [None] * len(front)
    other = ~np.eye(len(front), dtype=bool)  # [i, j]: j dominates i
    could = ((error_low[None] <= error_high[:, None]) & (low[None] <= high[:, None]) & other).any(axis=1)
    must = ((error_high[None] < error_low[:, None]) & (high[None] < low[:, None]) & other).any(axis=1)
    return np.where(front, ~could, must).tolist()
