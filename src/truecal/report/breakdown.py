"""Per-class and per-group rows of the page."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from truecal.errors import InputError
from truecal.estimate import DebiasedECE, RankSeries
from truecal.lens import ClassWise, Lens
from truecal.measure import measure
from truecal.predictions import Predictions

MOST_CLASSES = 1000  # rows in the table; beyond, those with the largest errors
MOST_GROUPS = 200
FEWEST_ROWS = 2


@dataclass(frozen=True)
class Breakdown:
    """Rows of a table, and how many were left out of it."""

    rows: list[dict[str, Any]]
    left_out: int


def per_class(preds: Predictions, *, level: float) -> Breakdown:
    """For every class: how often it was the label, the mean probability it was given, their difference, and the error.

    The difference has the normal interval of a mean of n values of p - y. The error is root mean square, from 15 bins of equal
    mass, with the bias of that plug-in removed exactly (DebiasedECE).
    """
    from scipy.special import ndtri

    z = float(ndtri(0.5 + level / 2))
    estimator = DebiasedECE(bins=15, norm=2, correction="exact")
    columns: dict[str, list[np.ndarray]] = {"labels": [], "mean": [], "rate": [], "half": [], "error": []}
    for part in ClassWise().profiles(preds):
        whole = part.at_count(np.array([[part.rows]]))
        c, y, cc, cy = (part.sums(name, whole)[:, 0] / part.total for name in ("c", "y", "cc", "cy"))
        variance = np.maximum(y - 2 * cy + cc - (c - y) ** 2, 0.0)
        found = {
            "labels": y * part.total,
            "mean": c,
            "rate": y,
            "half": z * np.sqrt(variance / np.maximum(part.size - 1, 1.0)),
            "error": estimator.values(part),
        }
        for name, values in found.items():
            columns[name].append(values)
    table = {name: np.concatenate(parts) for name, parts in columns.items()}
    order = np.argsort(-table["error"], kind="stable")
    kept = order[:MOST_CLASSES]
    rows = [
        {
            "name": preds.class_name(int(i)),
            "labels": float(table["labels"][i]),
            "rate": float(table["rate"][i]),
            "mean": float(table["mean"][i]),
            "difference": float(table["mean"][i] - table["rate"][i]),
            "low": float(table["mean"][i] - table["rate"][i] - table["half"][i]),
            "high": float(table["mean"][i] - table["rate"][i] + table["half"][i]),
            "error": float(table["error"][i]),
        }
        for i in kept
    ]
    return Breakdown(rows, len(order) - len(kept))


def per_group(preds: Predictions, by: str, *, lens: Lens, level: float, rng: int | np.random.Generator) -> Breakdown:
    """One row per value of a column, the largest groups first."""
    if by not in preds.columns:
        known = ", ".join(preds.columns) or "none"
        raise InputError(f"there is no column {by!r} to group by; further columns of these predictions: {known}")
    words = np.asarray(preds.columns[by]).astype(str)
    values, inverse, counts = np.unique(words, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    large = [i for i in order if counts[i] >= FEWEST_ROWS]
    rows = []
    for i in large[:MOST_GROUPS]:
        estimate = measure(preds.take(inverse == i), estimator=RankSeries(), lens=lens, level=level, rng=rng)
        interval = estimate.interval
        rows.append(
            {
                "name": str(values[i]),
                "n": estimate.n,
                "error": float(estimate.value),
                "low": None if interval is None else float(interval.low),
                "high": None if interval is None else float(interval.high),
                "p_value": None if estimate.p_value is None else float(estimate.p_value),
                "direction": float(estimate.direction),
            }
        )
    return Breakdown(rows, len(order) - len(rows))
