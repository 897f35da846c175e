"""Metrics of a study by name, and their values for one lens, with intervals, reliability diagrams and resamples.

    ece-width-15-l1     ece-<width|mass>-<bins>-<l1|l2|max>     the binned error (max: the largest gap)
    debiased-15-l2      debiased-<bins>-<l1|l2>                 the same without its sampling bias (Kumar et al.), equal mass
    exact-15-l2         exact-<bins>-l2                         the same by the exact bias of Minderer et al., eq. 5
    sweep-mass-l1       sweep-<width|mass>-<l1|l2|max>          bins as many as monotonicity allows
    rank-series-l2      rank-series-<l1|l2>                     truecal's default
    nearest-l2          nearest-<l1|l2>                         sliding windows
    generalized-l1      generalized-<l1|max>                    of several probabilities: lenses top-K, grouping:NAME, canonical
    package.module:function                                     a metric of one's own: a function of (scores, outcomes)
    nll, brier, error, confidence                               of whole predictions: no lens

Minderer et al. mention 28 metric variants (schemes, bins, norms, top-label, all-label, class-wise) without listing them. The
grid holds the whole product over bins from 5 to 100, of which any such 28 are a part, with the scores and our estimators.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal import names
from truecal.errors import InputError
from truecal.estimators import bins
from truecal.estimators.base import Estimator, FunctionEstimator
from truecal.estimators.bins import Binning, Bins, combine_powers
from truecal.estimators.bootstrap import resample_units, sample_sums, sign_flips
from truecal.estimators.estimate import Interval
from truecal.estimators.rank_series import fit as rank_series
from truecal.inference.measurement import measure_profiles
from truecal.lenses.lens import Lens
from truecal.resampling.units import Units
from truecal.special import positive, root
from truecal.types import Float64s

GRID = "paper-grid"
GRID_BINS = (5, 10, 15, 20, 50, 100)  # by choice: numbers of bins of the grid
SCORES = ("nll", "brier", "error", "confidence")
MAX_BINS = 100_000  # by choice: more are refused
# form of the names of a kind of metric, and its estimator (None: the mean of a score)
_FORMS: dict[str, tuple[str, Any]] = {
    "score": ("|".join(SCORES), None),
    "ece": (r"ece-(?P<scheme>width|mass)-(?P<bins>[0-9]+)-(?P<norm>l1|l2|max)", tc.BinnedECE),
    "debiased": (r"debiased-(?P<bins>[0-9]+)-(?P<norm>l1|l2)", tc.DebiasedECE),
    "exact": (r"exact-(?P<bins>[0-9]+)-(?P<norm>l2)", tc.DebiasedECE),
    "sweep": (r"sweep-(?P<scheme>width|mass)-(?P<norm>l1|l2|max)", tc.SweepECE),
    "rank": (r"rank-series-(?P<norm>l1|l2)", tc.RankSeries),
    "nearest": (r"nearest-(?P<norm>l1|l2)", tc.NearestECE),
    "generalized": (r"generalized-(?P<norm>l1|max)", tc.GeneralizedECE),
}


@dataclass(frozen=True, eq=False)
class Metric:
    """A metric by its parts, one object per name (see `parse_metric`)."""

    name: str
    kind: str  # a key of _FORMS, or "function"; "score" is a mean over whole predictions
    scheme: str | None = None  # "width" or "mass"; None without bins
    bins: int | None = None  # None where it is not fixed
    norm: float | None = None  # 1, 2 or inf; None for scores

    @property
    def whole(self) -> bool:
        """Whether the metric is a mean score of whole predictions, which has no lens."""
        return self.kind == "score"

    @property
    def several(self) -> bool:
        """Whether the metric judges several probabilities of a row at once."""
        return self.kind == "generalized"

    @property
    def is_resampled(self) -> bool:
        """Whether the metric is resampled by default: means over rows, and the errors in RESAMPLED."""
        return self.kind == "score" or self.name in RESAMPLED

    @cache  # noqa: B019 (metrics are few, and small)
    def estimator(self, level: float = 0.95) -> Estimator:
        """Make the estimator of the metric (not for scores); `level` is that of intervals in closed form."""
        if self.kind == "function":
            return FunctionEstimator(names.load_object(self.name))
        _, make = _FORMS[self.kind]
        settings = {"bins": self.bins, "scheme": self.scheme, "norm": self.norm, "level": level}
        settings["correction"] = "exact" if self.kind == "exact" else "kumar"
        estimator: Estimator = make(**{f.name: settings[f.name] for f in fields(make) if f.name in settings})
        return estimator


@cache
def parse_metric(name: str) -> Metric:
    """Parse the name of a metric, in one of the forms listed at the top of this module; refuse an unknown one.

    >>> metric = parse_metric("ece-mass-100-l2")
    >>> metric.kind, metric.scheme, metric.bins, metric.norm
    ('ece', 'mass', 100, 2.0)
    """
    if ":" in name:
        names.load_object(name)
        return Metric(name, "function", norm=1.0)
    matches = ((kind, re.fullmatch(form, name)) for kind, (form, _) in _FORMS.items())
    kind, match = next(((kind, match) for kind, match in matches if match), ("", None))
    if match is None:
        raise InputError(
            f"there is no metric {name!r}; use {GRID}, {', '.join(SCORES)}, package.module:function, or a name such as "
            "ece-width-15-l1, debiased-15-l2, exact-15-l2, sweep-mass-l1, rank-series-l2, nearest-l2, generalized-l1"
        )
    parts: dict[str, Any] = {part: text for part, text in match.groupdict().items() if text is not None}
    if "bins" in parts and not 1 <= int(parts["bins"]) <= MAX_BINS:
        raise InputError(f"{name!r} asks for {parts['bins']} bins; use from 1 to {MAX_BINS}")
    read: dict[str, Any] = {"bins": int, "norm": names.NORMS.__getitem__, "scheme": str}
    parts = {part: read[part](text) for part, text in parts.items()}
    return Metric(name, kind, **{"scheme": "mass" if kind in ("debiased", "exact") else None, **parts})


def judges_several(lens: str) -> bool:
    """Return whether a lens judges several probabilities of a row: top-K, grouping:NAME, canonical.

    >>> judges_several("top-5"), judges_several("top-label"), judges_several("canonical")
    (True, False, True)
    """
    return lens == "canonical" or lens.startswith("grouping:") or re.fullmatch(r"top-[0-9]+", lens) is not None


def metrics_of(names: Sequence[str], lens: str) -> tuple[Metric, ...]:
    """Return the metrics with these names that are computed under a lens ("" for whole predictions).

    >>> len(metrics_of(("paper-grid",), "top-label")), len(metrics_of(("paper-grid",), "class-wise"))
    (42, 38)
    >>> [m.name for m in metrics_of(("rank-series-l2", "nll"), "")]
    ['nll']
    """
    expanded = [metric_name for name in names for metric_name in (_grid_names(lens) if name == GRID else (name,))]
    metrics = [parse_metric(name) for name in dict.fromkeys(expanded)]
    return tuple(m for m in metrics if m.whole == (lens == "") and m.several == judges_several(lens))


def _grid_names(lens: str) -> tuple[str, ...]:
    """Return the names of the grid metrics under a lens: the scores for "", else binned and debiased errors.

    The sweep is not defined class-wise; the exact bias and the rank series need one outcome per row (not "all-label").

    >>> _grid_names("top-label")[-2:], len(_grid_names("class-wise"))
    (('exact-15-l2', 'rank-series-l2'), 38)
    """
    if lens == "":
        return SCORES
    binned = tuple(f"ece-{s}-{b}-{p}" for s in ("width", "mass") for b in GRID_BINS for p in names.NORMS)
    binned_or_debiased = (*binned, "debiased-15-l1", "debiased-15-l2")
    if lens == "class-wise":
        return binned_or_debiased
    swept = (*binned_or_debiased, "sweep-mass-l1", "sweep-mass-l2")
    return swept if lens == "all-label" else (*swept, "exact-15-l2", "rank-series-l2")


# ----------------------------------------------------------------------------------------------------
# All metrics of one lens: its samples are sorted once, and every estimator reads the same profiles

Intervals = bool | Literal["bootstrap"]
_DIAGRAM_BINS = 15  # by choice: as in Guo et al. (2017)
_SEED = 0  # by choice: as in tc.measure


@dataclass(frozen=True)
class Measurement:
    """The value of a metric on n rows, with limits (None without an interval); NaN where `warnings` give the reason."""

    metric: Metric
    value: float
    n: int
    low: float | None = None
    high: float | None = None
    warnings: tuple[str, ...] = ()
    draws: Float64s | None = None  # (resamples,): on the resamples that all models share, centred near the true value


def measure_lens(
    preds: tc.Predictions,
    lens: Lens,
    metrics: Sequence[Metric],
    *,
    sample: tc.lenses.Sample | None = None,
    intervals: Intervals = True,
    level: float = 0.95,
) -> list[Measurement]:
    """Measure every metric under a lens, in the order of `metrics`; `sample` is that of the lens, if it was computed before.

    The rank series, errors of several probabilities and, with "bootstrap", all metrics have the interval of
    :func:`truecal.measure` where a row has one outcome; metrics in RESAMPLED have `draws` too. No metric has an interval or draws
    with `intervals` False. A metric that these rows do not allow is NaN, with the reason as its warning.
    """
    if lens.several:
        return [_measure_directly(preds, lens, metric, intervals, level) for metric in metrics]
    shares = lens.shares(preds)
    if shares is not None:
        return _measure_classes(preds, lens, metrics, shares)
    sample = as_rows(lens.sample(preds)) if sample is None else sample
    if sample.pooled:
        intervals = False
    profile = sample.profile
    profile.scores  # noqa: B018 (sorts now: with many metrics one sort is quicker than a pass for each)
    estimators = [metric.estimator(level) for metric in metrics]
    bins.Binning.make_all(
        profile, [estimator.binning for estimator in estimators if isinstance(estimator, tc.BinnedECE)]
    )
    measured = []
    for metric in metrics:
        has_interval = intervals == "bootstrap" or (bool(intervals) and metric.kind == "rank")
        if has_interval and sample.unit == "clusters":
            measurement = _measure_directly(preds, lens, metric, intervals, level)
        else:
            measurement = _measure_profile(profile, metric, level if has_interval else None)
        if intervals and metric.is_resampled:
            measurement = _add_resamples(measurement, sample, level)
        measured.append(measurement)
    return measured


def as_rows(sample: tc.lenses.Sample) -> tc.lenses.Sample:
    """Return a pooled sample of pairs (row, class) without units, so that each pair counts as a row; others unchanged.

    Values are the same. Samples whose units are clusters are unchanged too.
    """
    return replace(sample, units=None) if sample.pooled and sample.unit == "rows" else sample


def _measure_directly(
    preds: tc.Predictions, lens: Lens, metric: Metric, intervals: Intervals, level: float
) -> Measurement:
    """Measure a metric with its interval by :func:`truecal.measure`; where that refuses the rows, NaN and the reason."""
    try:
        estimate = tc.measure(preds, estimator=metric.estimator(level), lens=lens, level=level, rng=_SEED)
    except InputError as error:
        return Measurement(metric, float("nan"), len(preds), warnings=(str(error),))
    limits = _limits(estimate.interval if intervals else None)
    return Measurement(metric, float(estimate.value), estimate.n, *limits, estimate.warnings)


def _measure_classes(
    preds: tc.Predictions, lens: Lens, metrics: Sequence[Metric], shares: Float64s
) -> list[Measurement]:
    """Measure metrics of a lens with one dataset per class: (sum_k share_k |error_k|^norm)^(1 / norm), shares of shape (k,).

    A class on which a metric is not defined makes its value NaN, with the reason among the warnings. There are no intervals.
    """
    powers: dict[Metric, list[Float64s]] = {metric: [] for metric in metrics}
    notes: dict[Metric, list[str]] = {metric: [] for metric in metrics}
    n = 0
    for profile in lens.profiles(preds):
        profile.scores  # noqa: B018 (sorts now)
        n = _count_rows(profile)
        for metric in metrics:
            try:
                estimate = metric.estimator().estimate(profile)
                powers[metric].append(estimate.power)
                notes[metric] += estimate.warnings
            except InputError as error:
                powers[metric].append(np.full(profile.batch, np.nan))
                notes[metric].append(str(error))
    measurements = []
    for metric in metrics:
        norm = metric.estimator().norm
        value = root(combine_powers(np.concatenate(powers[metric]), shares, norm), norm)
        measurements.append(Measurement(metric, float(value), n, warnings=tuple(dict.fromkeys(notes[metric]))))
    return measurements


def _measure_profile(profile: tc.profile.Profile, metric: Metric, level: float | None) -> Measurement:
    """Estimate a metric of one profile, with its interval unless `level` is None; NaN and the reason where rows are refused.

    >>> profile = tc.profile.Profile.from_arrays([0.2, 0.7], [0, 1])
    >>> measured = _measure_profile(profile, parse_metric("ece-width-15-l1"), None)
    >>> measured.value, measured.n, measured.low
    (0.25, 2, None)
    """
    n = _count_rows(profile)
    estimator = metric.estimator(level or 0.95)
    try:
        if level is not None:
            estimate = next(measure_profiles([profile], estimator, level, np.random.default_rng(_SEED)))
            return Measurement(metric, float(estimate.value), n, *_limits(estimate.interval), estimate.warnings)
        powers = estimator.estimate(profile)
    except InputError as error:
        return Measurement(metric, float("nan"), n, warnings=(str(error),))
    return Measurement(metric, float(root(powers.power, estimator.norm)[0]), n, warnings=powers.warnings)


def _limits(interval: Interval | None) -> tuple[float | None, float | None]:
    """Return lower and upper limit of an interval; (None, None) for None.

    >>> _limits(Interval(0.1, 0.2, 0.95, "")), _limits(None)
    ((0.1, 0.2), (None, None))
    """
    return (None, None) if interval is None else (float(interval.low), float(interval.high))


def _count_rows(profile: tc.profile.Profile) -> int:
    """Return the number of rows of a profile: the sum of weights that are counts, else its length.

    >>> _count_rows(tc.profile.Profile.from_arrays([0.2, 0.7], [0, 1]))
    2
    """
    return round(float(profile.total.max())) if profile.counted else profile.rows


def diagram(profile: tc.profile.Profile) -> list[dict[str, Any]]:
    """Return the filled bins of two reliability diagrams with 15 bins as records, first of equal mass, then of equal width.

    Each has scheme, bin (from 0), low and high (least and largest score for equal mass, else the edges), count, confidence (mean
    score) and outcome (mean outcome).
    """
    rows: list[dict[str, Any]] = []
    for scheme in ("mass", "width"):
        cut = Binning(_DIAGRAM_BINS, scheme, "keep", "left").cut(profile)
        bins = Bins.of(profile, cut)
        k = np.flatnonzero(bins.weight[0] > 0)
        low, high = k / _DIAGRAM_BINS, (k + 1) / _DIAGRAM_BINS
        if scheme == "mass":
            starts = cut.below[0]
            low, high = profile.scores[0, starts[k]], profile.scores[0, starts[k + 1] - 1]
        columns = {"bin": k, "low": low, "high": high, "count": bins.counts}
        columns |= {"confidence": bins.mean_score, "outcome": bins.mean_outcome}
        cells = zip(*(column.tolist() for column in columns.values()), strict=True)
        rows += [{"scheme": scheme, **dict(zip(columns, row, strict=True))} for row in cells]
    return rows


# ----------------------------------------------------------------------------------------------------
# Resamples that are the same for all models on the same rows, so that two models can be compared in pairs later

RESAMPLES = 200  # derived: 1 / sqrt(2 * 200), so that the standard error of a difference is known to 5 %
RESAMPLED = (
    *("rank-series-l2", "rank-series-l1", "debiased-15-l2"),
    *("ece-mass-100-l1", "ece-mass-15-l1", "ece-width-15-l1"),
)
_GROUPS = 256  # by choice: groups that more rows are resampled in
_SEED_PAIRED = 20210615  # by choice: any number, the same for all models


@dataclass(frozen=True, eq=False)
class SharedDraws:
    """Resamples of the rows of one dataset: how often each unit, and each of the two pseudo-rows of `UnitSums`, is drawn."""

    units: Units
    counts: NDArray[np.uint16]  # (units + 2, resamples)

    @classmethod
    def of(cls, sample: tc.lenses.Sample) -> "SharedDraws":
        """Draw the resamples of the units of a sample; they depend on the units alone, so all models share them."""
        return _draw_shared(len(sample), sample.unit, None if sample.units is None else sample.units.tobytes())

    def resample_error(
        self, metric: Metric, sample: tc.lenses.Sample, level: float
    ) -> tuple[Float64s, Interval | None]:
        """Compute a calibration error on every resample, shape (resamples,), as `tc.inference.bootstrap` does, and its interval.

        The rank series of independent rows without weights gives no interval (None).
        """
        if metric.name == "rank-series-l2" and self.units.kind == "rows" and sample.weights is None:
            return self._resample_series(sample), None
        estimator, rng = metric.estimator(level), np.random.default_rng(_SEED_PAIRED)
        flips = sign_flips(self.units, 1, rng)
        parts = sample_sums(estimator, [sample], self.units, flips)
        resampled = resample_units(estimator, parts, None, self.units, self.counts, level, rng, flips=flips)
        return resampled.errors, resampled.interval()

    def _resample_series(self, sample: tc.lenses.Sample) -> Float64s:
        """Compute the rank series of independent rows on every resample, (resamples,), with basis functions fitted to all rows.

        Coefficients of a resample are sums over its units; the number of terms is chosen in each by the risk (9), because that
        choice is most of the variation of a model near calibration.
        """
        from scipy.sparse import csr_array

        profile = sample.profile
        fit = next(rank_series.fit_series(profile))
        counts, n = fit.cells.counts[0], float(fit.cells.n[0])
        functions = fit.basis[0] * np.sqrt(n / positive(counts))  # (terms, cells)
        cell = np.repeat(np.arange(len(counts)), np.rint(counts).astype(np.intp))
        residuals = profile.outcomes[0] - profile.scores[0].astype(np.float64)
        variances = (functions**2 @ np.bincount(cell, residuals**2, len(counts)) / n - fit.coefficients[0] ** 2) / n
        ends = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=len(counts)))])
        sums = csr_array((residuals, self.units.of_row[sample.order], ends), shape=(len(counts), self.units.count))
        unit_counts = self.counts[:-2].astype(np.float64)
        row_counts = np.bincount(self.units.of_row, minlength=self.units.count) @ unit_counts
        coefficients = (sums.T @ functions.T).T @ unit_counts / row_counts  # (terms, resamples)
        theta = np.cumsum(coefficients**2 - variances[:, None], axis=0)
        order = (rank_series.PENALTY * np.cumsum(variances)[:, None] - theta).argmin(axis=0)
        if fit.cells.few_scores[0]:  # a term for each score
            order[:] = len(theta) - 1
        powers = np.take_along_axis(theta, order[None], axis=0)[0]
        return np.minimum(root(float(fit.power[0]) - powers + powers.mean(), 2.0), 1.0)

    def resample_means(self, scores: Mapping[Metric, Float64s], weights: Float64s | None) -> dict[Metric, Float64s]:
        """Compute 2 m - m*, shape (resamples,), by metric, with the mean m of its scores (n,) and the mean m* of each resample.

        Metrics whose mean is infinite are left out.
        """
        units = self.units
        means = {metric: float(np.average(row_values, weights=weights)) for metric, row_values in scores.items()}
        finite = [metric for metric in scores if np.isfinite(means[metric])]
        weighted = [scores[metric] if weights is None else weights * scores[metric] for metric in finite]
        sums = [np.bincount(units.of_row, row_values, units.count) for row_values in (weights, *weighted)]
        drawn = self.counts[:-2].T.astype(np.float64) @ np.column_stack(sums)
        resampled = 2 * np.array([means[metric] for metric in finite]) - drawn[:, 1:] / positive(drawn[:, :1])
        return dict(zip(finite, resampled.T, strict=True))


@lru_cache(2)  # one file after the other has the same rows
def _draw_shared(rows: int, unit: str, units: bytes | None) -> SharedDraws:
    """Draw the shared resamples of a dataset, cached: of its clusters, or of its rows (more than 256 as random groups).

    `unit` is the kind of the units, `units` the bytes of the unit of each row (intp), None where rows are independent.
    """
    rng = np.random.default_rng(_SEED_PAIRED)
    of_row = None if units is None else np.frombuffer(units, np.intp)
    if of_row is None and rows > _GROUPS:
        drawn = Units(rng.permutation(rows) % _GROUPS, _GROUPS, unit)
    else:
        drawn = Units.of(tc.lenses.Sample(np.zeros(rows), np.zeros(rows), None, of_row, unit), rng)
    return SharedDraws(drawn, drawn.draws(RESAMPLES, rng))


def _add_resamples(measurement: Measurement, sample: tc.lenses.Sample, level: float) -> Measurement:
    """Return a measurement with its `draws` on the shared resamples, and with their limits where it has none.

    It is returned unchanged where these rows cannot be resampled (a single unit, or too few rows for the metric).
    """
    try:
        values, interval = SharedDraws.of(sample).resample_error(measurement.metric, sample, level)
    except InputError:  # a single unit, or too few rows for this metric
        return measurement
    if measurement.low is None and np.isfinite(measurement.value):
        low, high = _limits(interval)
        measurement = replace(measurement, low=low, high=high)
    return replace(measurement, draws=values)


# ----------------------------------------------------------------------------------------------------
# Scores of whole predictions: log loss, Brier scores, error and confidence


def measure_scores(
    preds: tc.Predictions,
    top: tc.lenses.Sample,
    metrics: Sequence[Metric],
    *,
    intervals: bool,
    level: float,
) -> list[Measurement]:
    """Measure the mean of every score, in the order of `metrics`; with intervals also on the resamples that all models share.

    `top` is the sample of the top-label lens. Intervals are normal, and Wilson's (1927) for the error. Where rows come in
    clusters, the variance is that between clusters.
    """
    rows = {metric: row_scores(metric, preds, top) for metric in metrics}
    measured = [_average_scores(metric, scores, preds, level if intervals else None) for metric, scores in rows.items()]
    try:
        draws = SharedDraws.of(top).resample_means(rows, top.weights) if intervals else {}
    except InputError:  # a single unit
        draws = {}
    return [replace(measurement, draws=draws.get(measurement.metric)) for measurement in measured]


def row_scores(metric: Metric, preds: tc.Predictions, top: tc.lenses.Sample) -> Float64s:
    """Compute the score of every row, shape (n,), whose mean is the metric "nll", "brier", "error" or "confidence".

    They are log loss, Brier score, 1 if the top label is wrong else 0, and probability of the top label; `top` is the sample of
    the top-label lens.
    """
    if metric.name == "nll":
        return tc.scores.log_losses(preds)
    if metric.name == "brier":
        return tc.scores.briers(preds)
    confidence, right = top.scores.astype(np.float64), top.outcomes.astype(np.float64)
    return 1 - right if metric.name == "error" else confidence


def _average_scores(metric: Metric, rows: Float64s, preds: tc.Predictions, level: float | None) -> Measurement:
    """Average the scores of rows (n,) by the weights of `preds`, with a normal interval, or Wilson's for the error.

    Limits lie in [0, 1], or from 0 up for log loss and Brier score. With clusters, the variance is that of cluster sums. There is
    no interval for `level` None, nor for an infinite mean, which has a warning.
    """
    from scipy.special import ndtri

    n = len(preds)
    value = float(np.average(rows, weights=preds.weights))
    if not np.isfinite(value):
        return Measurement(metric, value, n, warnings=("a label was given probability 0",))
    if level is None:
        return Measurement(metric, value, n)
    z = float(ndtri((1 + level) / 2))
    weights = np.ones(n) if preds.weights is None else preds.weights
    deviations = weights * (rows - value)
    if preds.clusters is not None:
        deviations = np.bincount(preds.clusters, weights=deviations).astype(np.float64)
    units = len(deviations)
    error = float(np.sqrt(float(deviations @ deviations) * units / max(units - 1, 1)) / weights.sum())
    centre, margin, largest = value, z * error, np.inf if metric.name in ("nll", "brier") else 1.0
    if metric.name == "error":
        plain = preds.weights is None and preds.clusters is None
        effective = n if plain or not error else value * (1 - value) / error**2
        centre = (value + z**2 / (2 * effective)) / (1 + z**2 / effective)
        margin = z / (1 + z**2 / effective) * np.sqrt(value * (1 - value) / effective + z**2 / (4 * effective**2))
    low, high = max(min(centre - margin, value), 0.0), min(max(centre + margin, value), largest)
    return Measurement(metric, value, n, float(low), float(high))
