"""All metrics of one lens from one sorted profile.

Binned errors of one scheme share their cuts and sums: every number of bins is read from the prefix sums in one go, and each
norm is a sum over the same gaps. The numbers are those of the estimators called one by one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from truecal.errors import InputError
from truecal.estimate import Binning, Bins, Estimate, Interval, power_mean
from truecal.lens import Lens
from truecal.predictions import Predictions
from truecal.profile import Profile
from truecal.study.run.grid_names import Metric
from truecal.types import Float64s
from truecal.uncertainty import bootstrap

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
    preds: Predictions,
    lens: Lens,
    metrics: Sequence[Metric],
    *,
    profile: Profile | None = None,
    intervals: Intervals = True,
    level: float = 0.95,
) -> list[Found]:
    """Every metric under a lens; `profile` is the lens's own where it is there already.

    Intervals are those of lenses on one outcome per row: by formula for the rank series, by the bootstrap for others if asked
    for. A metric that cannot be had from these rows is nan, with the reason as its warning.
    """
    if not metrics:
        return []
    shares = lens.shares(preds)
    parts: Iterator[Profile] | list[Profile] = lens.profiles(preds) if profile is None else [profile]
    powers: dict[Metric, list[Float64s]] = {metric: [] for metric in metrics}
    notes: dict[Metric, list[str]] = {metric: [] for metric in metrics}
    spans: dict[Metric, tuple[float, float]] = {}
    n = 0
    for part in parts:
        n = round(float(part.total.max())) if part.counted else part.rows
        for metric, power, warned, span in _powers(part, metrics, level):
            powers[metric].append(power)
            notes[metric] += [text for text in warned if text not in notes[metric]]
            if shares is None and intervals and span is not None:
                spans[metric] = float(span.low), float(span.high)
        if shares is None and intervals == "bootstrap":
            spans |= dict(_bootstrapped(part, [metric for metric in metrics if metric not in spans], level))
    wholes = _overall([np.concatenate(powers[metric]) for metric in metrics], metrics, shares)
    found = []
    for metric, whole in zip(metrics, wholes, strict=True):
        low, high = spans.get(metric, (None, None))
        value = float(metric.estimator().root(whole))
        found.append(Found(metric, value, n, low, high, tuple(notes[metric])))
    return found


def _powers(
    profile: Profile, metrics: Sequence[Metric], level: float
) -> Iterator[tuple[Metric, Float64s, tuple[str, ...], Interval | None]]:
    """The signed power of every dataset of a profile, by metric, with warnings and an interval where that comes for free."""
    for scheme in ("width", "mass"):
        binned = [metric for metric in metrics if metric.kind == "ece" and metric.scheme == scheme]
        bins = shared_bins(profile, scheme, sorted({metric.bins or 1 for metric in binned})) if binned else {}
        for metric in binned:
            of_metric = bins[metric.bins or 1]
            yield metric, power_mean(of_metric.gap, of_metric.share, metric.norm or 1), (), None
    swept: dict[str | None, Estimate] = {}  # the bins a sweep settles on are the same for every norm
    for metric in metrics:
        if metric.kind == "ece":
            continue
        settled = swept.get(metric.scheme) if metric.kind == "sweep" else None
        if settled is not None and settled.bins is not None:
            yield metric, power_mean(settled.bins.gap, settled.bins.share, metric.norm or 1), settled.warnings, None
            continue
        try:
            found = metric.estimator(level).complete(profile)
        except InputError as error:
            yield metric, np.full(profile.batch, np.nan), (str(error),), None
            continue
        if metric.kind == "sweep":
            swept[metric.scheme] = found
        yield metric, np.atleast_1d(found.power), found.warnings, found.interval


def shared_bins(profile: Profile, scheme: Literal["width", "mass"], counts: Sequence[int]) -> dict[int, Bins]:
    """The bins of several numbers of bins, from one look at the prefix sums."""
    cut = Binning(1, scheme, "keep", "left").cuts(profile, counts)
    sums = [np.diff(profile.sums(name, cut), axis=1) for name in ("w", "c", "y")]
    scale = (profile.size / profile.total)[:, None]
    found, start = {}, 0
    for count in counts:  # between the bins of one number and those of the next is an entry that means nothing
        weight, score, outcome = (each[:, start : start + count] for each in sums)
        found[count] = Bins(weight, score, outcome, weight * scale, profile.single)
        start += count + 1
    return found


def _overall(powers: Sequence[Float64s], metrics: Sequence[Metric], shares: Float64s | None) -> Float64s:
    """One power per metric over all datasets of a lens, as :func:`truecal.measure` has it."""
    table = np.array(powers).reshape(len(metrics), -1)  # metrics x datasets
    if shares is None:
        return table[:, 0]
    largest = np.array([metric.norm == np.inf for metric in metrics])
    return np.where(largest, table[:, shares > 0].max(axis=1), (shares * table).sum(axis=1))


def _bootstrapped(
    profile: Profile, metrics: Sequence[Metric], level: float
) -> Iterator[tuple[Metric, tuple[float, float]]]:
    for metric in metrics:
        estimator = metric.estimator()
        resamples = _RESAMPLES_OF_BINS if estimator.fixed_cut(profile) is not None else _RESAMPLES
        try:
            span = bootstrap(estimator, profile, resamples=resamples, level=level, rng=_SEED).interval()
        except InputError:
            continue  # too few rows; the value, or its warning, says so
        yield metric, (float(span.low), float(span.high))


def diagram(profile: Profile) -> list[dict[str, Any]]:
    """The bins of the reliability diagrams of one dataset that hold data, equal mass and equal width."""
    rows: list[dict[str, Any]] = []
    for scheme in ("mass", "width"):
        cut = Binning(_DIAGRAM_BINS, scheme, "keep", "left").cut(profile)
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
