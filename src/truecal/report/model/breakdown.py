"""Rows of the page per class, per group and per category of a Likert scale."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

import truecal as tc
from truecal import breakdown
from truecal.report.records import picked
from truecal.types import Float64s

MOST_CLASSES = 1000  # rows in the table; beyond, those with the largest errors
MOST_GROUPS = 200
_CLUSTERED_CLASSES = 50


@dataclass(frozen=True)
class ClassRow:
    """A class: how often it was the label, the mean probability it was given, their difference and the error with intervals."""

    name: str
    labels: float
    rate: float
    mean: float
    difference: float
    low: float
    high: float
    error: float
    error_low: float
    error_high: float


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


def per_class(preds: tc.Predictions, *, level: float) -> Classes:
    """For every class: how often it was the label, the mean probability it was given, their difference, and the error.

    The difference has the normal interval of a mean of n values of p - y, or of as many clusters. The error is that of
    ``tc.measure(preds, lens=tc.OneClass(name))``: the rank series, root mean square, with its interval.
    """
    from scipy.special import ndtri

    z = float(ndtri(0.5 + level / 2))
    means = np.stack([_means(sample, z) for sample in tc.ClassWise().samples(preds)])
    order = np.arange(preds.class_count)
    if preds.clusters is None:
        parts = [tc.RankSeries(level=level)(part) for part in tc.ClassWise().profiles(preds)]
        errors = np.concatenate([np.stack(_ends(part), axis=1) for part in parts])
    else:
        # the classes most off on average, as many as can be judged cluster by cluster in bounded time
        order = np.argsort(-np.abs(means[:, 3]), kind="stable")[:_CLUSTERED_CLASSES]
        estimates = [tc.measure(preds, lens=tc.OneClass(_class(preds, int(k))), level=level) for k in order]
        errors = np.stack([np.ravel(_ends(estimate)) for estimate in estimates])
    first = np.argsort(-errors[:, 0], kind="stable")[:MOST_CLASSES]
    rows = tuple(
        ClassRow(preds.class_name(int(order[i])), *means[order[i]].tolist(), *errors[i].tolist()) for i in first
    )
    return Classes(rows, preds.class_count - len(rows))


def _class(preds: tc.Predictions, index: int) -> object:
    return index if preds.classes is None else preds.classes[index]


def _ends(estimate: tc.Estimate) -> tuple[Float64s, Float64s, Float64s]:
    assert estimate.interval is not None
    value, low, high = (np.atleast_1d(x) for x in (estimate.value, estimate.interval.low, estimate.interval.high))
    return value, low, high


def _means(sample: tc.Sample, z: float) -> Float64s:
    """Labels, frequency, mean probability, their difference and the ends of its interval."""
    weight = np.ones(len(sample)) if sample.weights is None else sample.weights
    total, outcome = weight.sum(), sample.outcomes.astype(np.float64)
    rate, mean = float(weight @ outcome / total), float(weight @ sample.scores / total)
    gap = weight * (sample.scores - outcome - (mean - rate))
    size = total if bool((weight == np.rint(weight)).all()) else total**2 / float(weight @ weight)
    if sample.units is None:
        variance = float(gap @ (gap / np.maximum(weight, 1e-300))) / total / max(size - 1, 1.0)
    else:
        together = np.bincount(np.unique(sample.units, return_inverse=True)[1], gap)
        variance = float(together @ together) / total**2 * len(together) / max(len(together) - 1, 1)
    half = z * float(np.sqrt(variance))
    return np.array([rate * total, rate, mean, mean - rate, mean - rate - half, mean - rate + half])


def per_group(subgroups: breakdown.Subgroups) -> Groups:
    """One row per group."""
    rows = [picked(GroupRow, row) for row in subgroups.frame()]
    return Groups(", ".join(subgroups.by), tuple(rows[:MOST_GROUPS]), max(0, len(rows) - MOST_GROUPS))


def likert_rows(
    preds: tc.Predictions, scale: Mapping[str, tuple[float, float]] | None, *, level: float, rng: int
) -> tuple[LikertRow, ...]:
    """Words for confidence, by default low, medium and high, and what happened in each."""
    answers = tc.likert(preds, breakdown.SCALE if scale is None else scale, level=level, rng=rng)
    return tuple(picked(LikertRow, row) for row in answers.frame())
