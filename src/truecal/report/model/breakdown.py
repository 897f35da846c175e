"""Rows of the page per class, per group and per category of a Likert scale."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from truecal.breakdown import Subgroups, subgroups
from truecal.breakdown.likert import likert
from truecal.estimate import DebiasedECE, Estimate
from truecal.lens import ClassWise, Lens
from truecal.predictions import Predictions
from truecal.scan import Scan

MOST_CLASSES = 1000  # rows in the table; beyond, those with the largest errors
MOST_GROUPS = 200


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


def per_group(preds: Predictions, by: str, *, lens: Lens, level: float, rng: int) -> Breakdown:
    """One row per value of a column, p-values adjusted for their number."""
    return _listed(subgroups(preds, by, lens=lens, level=level, rng=rng))


def per_scanned_group(scan: Scan, overall: Estimate, *, level: float, rng: int) -> Breakdown:
    """The same from the sketches of a scan."""
    return _listed(subgroups(scan, level=level, rng=rng))


def _listed(found: Subgroups) -> Breakdown:
    frame = found.frame()
    rows = [dict(zip(frame, values, strict=True)) for values in zip(*frame.values(), strict=True)]
    return Breakdown(rows[:MOST_GROUPS], max(0, len(rows) - MOST_GROUPS))


def likert_rows(preds: Predictions, *, level: float, rng: int) -> list[dict[str, Any]]:
    """Low, medium and high confidence as people would be told them, and what happened in each."""
    frame = likert(preds, level=level, rng=rng).frame()
    return [dict(zip(frame, values, strict=True)) for values in zip(*frame.values(), strict=True)]
