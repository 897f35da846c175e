"""Scores of whole predictions: log loss, Brier scores, error and confidence, each with a plain interval of a mean."""

from collections.abc import Sequence

import numpy as np

from truecal.predictions import Predictions
from truecal.profile import Profile
from truecal.scores import briers, log_losses
from truecal.study.metrics.measured import Found
from truecal.study.metrics.names import Metric


def measure_scores(
    preds: Predictions, top: Profile, metrics: Sequence[Metric], *, intervals: bool, level: float
) -> list[Found]:
    """The scores asked for. `top` is the top-label profile: error and confidence are read from its sums.

    Intervals: normal for means of unbounded or real values, Wilson's for the error.
    """
    from scipy.special import ndtri

    z = float(ndtri((1 + level) / 2)) if intervals else None
    return [_score(metric, preds, top, z) for metric in metrics]


def _score(metric: Metric, preds: Predictions, top: Profile, z: float | None) -> Found:
    n = len(preds)
    if metric.name in ("nll", "brier", "brier-top"):
        if metric.name == "brier-top":
            rows = (top.outcomes[0] - top.scores[0].astype(np.float64)) ** 2
        else:
            rows = log_losses(preds) if metric.name == "nll" else briers(preds)
        value = float(np.average(rows))
        if not np.isfinite(value):
            return Found(metric, value, n, warnings=("a label was given probability 0",))
        spread = float(rows.std())
    else:
        confidence, right, square = (float(top.prefix(name)[0, -1]) / n for name in ("c", "y", "cc"))
        if metric.name == "error":
            return _share(metric, 1 - right, n, z)
        value, spread = confidence, float(np.sqrt(max(square - confidence**2, 0.0)))
    if z is None:
        return Found(metric, value, n)
    margin = z * spread / np.sqrt(max(n - 1, 1))
    top_value = 1.0 if metric.name == "confidence" else np.inf
    return Found(metric, value, n, max(value - margin, 0.0), min(value + margin, top_value))


def _share(metric: Metric, value: float, n: int, z: float | None) -> Found:
    """A share of n rows with the interval of Wilson (1927), which stays sensible at 0 and 1."""
    if z is None:
        return Found(metric, value, n)
    centre = (value + z**2 / (2 * n)) / (1 + z**2 / n)
    margin = z / (1 + z**2 / n) * np.sqrt(value * (1 - value) / n + z**2 / (4 * n**2))
    return Found(
        metric, value, n, float(max(min(centre - margin, value), 0.0)), float(min(max(centre + margin, value), 1.0))
    )
