"""All metrics of one lens: its samples are sorted once, and every estimator reads the same profiles.

The numbers are those of the estimators called one by one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

import truecal as tc
from truecal import estimate as estimators
from truecal.errors import InputError
from truecal.estimate import Bins, Interval, combined
from truecal.lens import Lens
from truecal.study.metrics.names import Metric
from truecal.types import Float64s

Intervals = bool | Literal["bootstrap"]
_DIAGRAM_BINS = 15
_RESAMPLES, _RESAMPLES_OF_BINS = 200, 1000
_SEED = 0  # of every bootstrap


@dataclass(frozen=True)
class Found:
    """One number with what the store keeps beside it."""

    metric: Metric
    value: float
    n: int
    low: float | None = None
    high: float | None = None
    warnings: tuple[str, ...] = ()


def measure_lens(
    preds: tc.Predictions,
    lens: Lens,
    metrics: Sequence[Metric],
    *,
    sample: tc.Sample | None = None,
    intervals: Intervals = True,
    level: float = 0.95,
) -> list[Found]:
    """Every metric under a lens; `sample` is what the lens sees where that is there already.

    Intervals are those of independent rows: by formula for the rank series, by the bootstrap for others if asked for. Where rows
    come in clusters :func:`truecal.measure` counts those. A metric that cannot be had from these rows is nan, with the reason as
    its warning.
    """
    if not metrics:
        return []
    shares = lens.shares(preds)
    if shares is None:
        only = as_rows(lens.sample(preds)) if sample is None else sample
        if only.unit == "clusters" and intervals:
            return [_clustered(preds, lens, only, metric, intervals, level) for metric in metrics]
        wanted = only.independent and not only.pooled and intervals
        profile = _sorted(only.profile)
        binnings = [metric.estimator(level).fixed_binning for metric in metrics]
        estimators.Binning.make_all(profile, [binning for binning in binnings if binning is not None])
        n = _rows(profile)
        return [_alone(profile, n, metric, wanted, level) for metric in metrics]
    powers: dict[Metric, list[Float64s]] = {metric: [] for metric in metrics}
    notes: dict[Metric, list[str]] = {metric: [] for metric in metrics}
    n = 0
    for part in lens.profiles(preds):
        n = _rows(_sorted(part))
        for metric in metrics:
            power, _, reasons = _found(part, metric, level)
            powers[metric].append(power)
            notes[metric] += [text for text in reasons if text not in notes[metric]]
    measured = []
    for metric in metrics:
        estimator = metric.estimator()
        power = combined(np.concatenate(powers[metric]), shares, estimator.power_norm)
        measured.append(Found(metric, float(estimator.root(power)), n, warnings=tuple(notes[metric])))
    return measured


def as_rows(sample: tc.Sample) -> tc.Sample:
    """Pairs of a row and a class as rows of their own: a value does not ask which of them belong together."""
    return replace(sample, units=None) if sample.pooled and sample.unit == "rows" else sample


def _sorted(profile: tc.Profile) -> tc.Profile:
    """The same, sorted now: with many metrics one sort is quicker than a pass for each."""
    profile.scores  # noqa: B018 (the order is made on first need)
    return profile


def _alone(profile: tc.Profile, n: int, metric: Metric, intervals: Intervals, level: float) -> Found:
    """A metric of one dataset of n rows, with its interval."""
    power, interval, notes = _found(profile, metric, level)
    if np.isnan(power[0]):
        return Found(metric, float("nan"), n, warnings=notes)
    low, high = None, None
    if intervals and interval is not None:
        low, high = float(interval.low), float(interval.high)
    elif intervals == "bootstrap":
        low, high = _bootstrapped(profile, metric, level)
    value = float(metric.estimator(level).root(power)[0])
    return Found(metric, value, n, low, high, notes)


def _clustered(
    preds: tc.Predictions, lens: Lens, sample: tc.Sample, metric: Metric, intervals: Intervals, level: float
) -> Found:
    """A metric of rows in clusters: :func:`truecal.measure` where an interval is wanted or the value itself counts clusters."""
    if intervals != "bootstrap" and not metric.by_formula:
        return _alone(sample.profile, _rows(sample.profile), metric, False, level)
    try:
        estimate = tc.measure(preds, estimator=metric.estimator(level), lens=lens, level=level, rng=_SEED)
    except InputError as error:
        return Found(metric, float("nan"), len(preds), warnings=(str(error),))
    interval = estimate.interval
    low, high = (None, None) if interval is None else (float(interval.low), float(interval.high))
    return Found(metric, float(estimate.value), estimate.n, low, high, estimate.warnings)


def _found(profile: tc.Profile, metric: Metric, level: float) -> tuple[Float64s, Interval | None, tuple[str, ...]]:
    """Powers of all datasets (nan where there are none), the interval where there is a formula, and warnings or the reason."""
    estimator = metric.estimator(level)
    try:
        if metric.by_formula:
            estimate = estimator.complete(profile)
            return np.atleast_1d(estimate.power), estimate.interval, estimate.warnings
        findings = estimator.found(profile)
    except InputError as error:
        return np.full(profile.batch, np.nan), None, (str(error),)
    return findings.power, None, findings.warnings


def _rows(profile: tc.Profile) -> int:
    return round(float(profile.total.max())) if profile.counted else profile.rows


def _bootstrapped(profile: tc.Profile, metric: Metric, level: float) -> tuple[float | None, float | None]:
    estimator = metric.estimator()
    resamples = _RESAMPLES_OF_BINS if estimator.fixed_cut(profile) is not None else _RESAMPLES
    try:
        interval = tc.bootstrap(estimator, profile, resamples=resamples, level=level, rng=_SEED).interval()
    except InputError:
        return None, None  # too few rows; the value, or its warning, says so
    return float(interval.low), float(interval.high)


def diagram(profile: tc.Profile) -> list[dict[str, Any]]:
    """The bins of the reliability diagrams of one dataset that hold data, equal mass and equal width."""
    rows: list[dict[str, Any]] = []
    for scheme in ("mass", "width"):
        cut = estimators.Binning(_DIAGRAM_BINS, scheme, "keep", "left").cut(profile)
        bins = Bins.of(profile, cut)
        k = np.flatnonzero(bins.weight[0] > 0)
        place = cut.below[0]
        if scheme == "mass":
            low, high = profile.scores[0, place[k]], profile.scores[0, place[k + 1] - 1]
        else:
            low, high = k / _DIAGRAM_BINS, (k + 1) / _DIAGRAM_BINS
        columns = [a.tolist() for a in (k, low, high, bins.counts, bins.mean_score, bins.mean_outcome)]
        names = ("bin", "low", "high", "count", "confidence", "outcome")
        rows += [{"scheme": scheme, **dict(zip(names, row, strict=True))} for row in zip(*columns, strict=True)]
    return rows
