"""Scores of whole predictions: log loss, Brier scores, error and confidence, and what abstaining costs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import truecal as tc
from truecal.errors import InputError
from truecal.study.metrics.measured import Found
from truecal.study.metrics.names import Metric
from truecal.types import Float64s

_RESAMPLES = 200


def measure_scores(
    preds: tc.Predictions,
    rows: Mapping[Metric, Float64s],
    metrics: Sequence[Metric],
    *,
    intervals: bool,
    level: float,
) -> list[Found]:
    """The scores asked for. `rows` are those of :func:`row_scores` for the means among them.

    Intervals: normal for means of unbounded or real values, Wilson's for the error, resampled for the costs of abstaining. Where
    rows come in clusters, means of clusters scatter, not rows.
    """
    from scipy.special import ndtri

    z = float(ndtri((1 + level) / 2)) if intervals else None
    values = []
    for metric in metrics:
        if metric.kind == "abstaining":
            values.append(_abstaining(metric, preds, level, intervals=intervals))
        else:
            values.append(_mean(metric, rows[metric], preds, z))
    return values


def row_scores(metric: Metric, preds: tc.Predictions, top: tc.Sample) -> Float64s:
    """The score of every row, of which the metric is the mean. `top` is what the top-label lens sees."""
    if metric.name == "nll":
        return tc.scores.log_losses(preds)
    if metric.name == "brier":
        return tc.scores.briers(preds)
    confidence, right = top.scores.astype(np.float64), top.outcomes.astype(np.float64)
    return {"error": 1 - right, "confidence": confidence, "brier-top": (right - confidence) ** 2}[metric.name]


def _mean(metric: Metric, rows: Float64s, preds: tc.Predictions, z: float | None) -> Found:
    n = len(preds)
    value = float(np.average(rows, weights=preds.weights))
    if not np.isfinite(value):
        return Found(metric, value, n, warnings=("a label was given probability 0",))
    if z is None:
        return Found(metric, value, n)
    spread = _standard_error(rows, value, preds)
    if metric.name == "error":
        plain = preds.weights is None and preds.clusters is None
        worth = n if plain or not spread else value * (1 - value) / spread**2
        return _share(metric, value, n, worth, z)
    top_value = 1.0 if metric.name == "confidence" else np.inf
    return Found(metric, value, n, max(value - z * spread, 0.0), min(value + z * spread, top_value))


def _standard_error(rows: Float64s, value: float, preds: tc.Predictions) -> float:
    """Of a weighted mean of rows, or of clusters of them."""
    weights = np.ones(len(rows)) if preds.weights is None else preds.weights
    off = weights * (rows - value)
    if preds.clusters is not None:
        off = np.bincount(preds.clusters, weights=off).astype(np.float64)
    units = max(len(off) - 1, 1)
    return float(np.sqrt(float(off @ off) * len(off) / units) / weights.sum())


def _share(metric: Metric, value: float, n: int, worth: float, z: float) -> Found:
    """A share of rows, worth so many independent ones, with the interval of Wilson (1927), which stays sensible at 0 and 1."""
    centre = (value + z**2 / (2 * worth)) / (1 + z**2 / worth)
    margin = z / (1 + z**2 / worth) * np.sqrt(value * (1 - value) / worth + z**2 / (4 * worth**2))
    low, high = max(min(centre - margin, value), 0.0), min(max(centre + margin, value), 1.0)
    return Found(metric, value, n, float(low), float(high))


def _abstaining(metric: Metric, preds: tc.Predictions, level: float, *, intervals: bool) -> Found:
    """Area under the risk-coverage curve, or the cost of abstaining at a rate."""
    options: dict[str, Any] = {"level": level, "resamples": _RESAMPLES}
    try:
        if metric.rate is None or metric.cost is None:
            area = tc.selective.aurc(preds, **options)
            value, interval = area.value, area.interval
        else:
            cost = tc.selective.abstention_cost(preds, rate=metric.rate, cost_ratio=metric.cost, **options)
            value, interval = cost.value, cost.interval
    except InputError as error:
        return Found(metric, float("nan"), len(preds), warnings=(str(error),))
    low, high = (float(interval.low), float(interval.high)) if intervals else (None, None)
    return Found(metric, float(value), len(preds), low, high)
