"""Rows of the page per class, per group and per category of a Likert scale."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import truecal as tc
from truecal.breakdown import Subgroups
from truecal.breakdown.likert import Category
from truecal.estimate import Estimate
from truecal.lens import Lens
from truecal.predictions import Predictions
from truecal.scan import Scan

MOST_CLASSES = 1000  # rows in the table; beyond, those with the largest errors
MOST_GROUPS = 200


@dataclass(frozen=True)
class ClassRow:
    """A class: how often it was the label, the mean probability it was given, their difference with its interval, the error."""

    name: str
    labels: float
    rate: float
    mean: float
    difference: float
    low: float
    high: float
    error: float


@dataclass(frozen=True)
class Classes:
    """The classes with the largest errors, and how many were left out."""

    rows: tuple[ClassRow, ...]
    left_out: int


@dataclass(frozen=True)
class GroupRow:
    """A value of a column; None where it has too few rows to be judged."""

    group: str
    n: int
    error: float | None
    low: float | None
    high: float | None
    direction: float | None
    p_value: float | None
    adjusted: float | None
    flagged: bool


@dataclass(frozen=True)
class Groups:
    """The groups with the largest errors, what they are values of, and how many were left out."""

    by: str
    rows: tuple[GroupRow, ...]
    left_out: int


@dataclass(frozen=True)
class LikertRow:
    """A word for an interval of confidences, and what happened to the predictions in it."""

    name: str
    low: float
    high: float
    count: int
    share: float
    mean_output: float | None
    mean_outcome: float | None
    outcome_low: float | None
    outcome_high: float | None
    kept: bool | None
    inter_interval: float | None
    inter_interval_low: float | None
    inter_interval_high: float | None
    within: float | None
    within_low: float | None
    within_high: float | None


def per_class(preds: Predictions, *, level: float) -> Classes:
    """For every class: how often it was the label, the mean probability it was given, their difference, and the error.

    The difference has the normal interval of a mean of n values of p - y. The error is root mean square, from 15 bins of equal
    mass, with the bias of that plug-in removed exactly (DebiasedECE).
    """
    from scipy.special import ndtri

    z = float(ndtri(0.5 + level / 2))
    estimator = tc.DebiasedECE(bins=15, norm=2, correction="exact")
    parts: list[np.ndarray] = []
    for part in tc.ClassWise().profiles(preds):
        whole = part.at_count(np.array([[part.rows]]))
        c, y, cc, cy = (part.sums(name, whole)[:, 0] / part.total for name in ("c", "y", "cc", "cy"))
        variance = np.maximum(y - 2 * cy + cc - (c - y) ** 2, 0.0)
        half = z * np.sqrt(variance / np.maximum(part.size - 1, 1.0))
        parts.append(np.stack([y * part.total, y, c, c - y, c - y - half, c - y + half, estimator.values(part)]))
    table = np.concatenate(parts, axis=1)
    order = np.argsort(-table[-1], kind="stable")
    rows = tuple(ClassRow(preds.class_name(int(i)), *table[:, i].tolist()) for i in order[:MOST_CLASSES])
    return Classes(rows, len(order) - len(rows))


def per_group(preds: Predictions, by: Sequence[str], *, lens: Lens, level: float, rng: int) -> Groups:
    """One row per value of a column, p-values adjusted for their number."""
    return _listed(", ".join(by), tc.subgroups(preds, by, lens=lens, level=level, rng=rng))


def per_scanned_group(scan: Scan, overall: Estimate, *, level: float, rng: int) -> Groups:
    """The same from the sketches of a scan."""
    return _listed(", ".join(scan.by), tc.subgroups(scan, level=level, rng=rng))


def _listed(by: str, table: Subgroups) -> Groups:
    columns = zip(table.names, table.counts, table.estimates, table.adjusted, table.flagged, strict=True)
    rows = [_group_row(*row) for row in columns]
    return Groups(by, tuple(rows[:MOST_GROUPS]), max(0, len(rows) - MOST_GROUPS))


def _group_row(name: str, count: int, estimate: Estimate | None, adjusted: float, flagged: bool) -> GroupRow:
    interval = None if estimate is None else estimate.interval
    return GroupRow(
        group=name,
        n=int(count),
        error=None if estimate is None else float(estimate.value),
        low=None if interval is None else float(interval.low),
        high=None if interval is None else float(interval.high),
        direction=None if estimate is None else float(estimate.direction),
        p_value=None if estimate is None or estimate.p_value is None else float(estimate.p_value),
        adjusted=None if np.isnan(adjusted) else float(adjusted),
        flagged=bool(flagged),
    )


def likert_rows(preds: Predictions, *, level: float, rng: int) -> tuple[LikertRow, ...]:
    """Low, medium and high confidence as people would be told them, and what happened in each."""
    return tuple(_likert_row(category) for category in tc.likert(preds, level=level, rng=rng).categories)


def _likert_row(category: Category) -> LikertRow:
    def ends(estimate: Estimate | None) -> tuple[float | None, float | None, float | None]:
        if estimate is None:
            return None, None, None
        interval = estimate.interval
        return (
            float(estimate.value),
            None if interval is None else float(interval.low),
            None if interval is None else float(interval.high),
        )

    return LikertRow(
        category.name,
        category.low,
        category.high,
        category.count,
        category.share,
        category.mean_output,
        category.mean_outcome,
        category.outcome_low,
        category.outcome_high,
        category.kept,
        *ends(category.inter_interval),
        *ends(category.within),
    )
