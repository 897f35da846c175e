"""Names of metrics in a study, and the grid of paper M.

    ece-width-15-l1     ece-<width|mass>-<bins>-<l1|l2|max>     the binned error (max: the largest gap)
    debiased-15-l2      debiased-<bins>-<l1|l2>                 the same without its sampling bias (Kumar et al.), equal mass
    exact-15-l2         exact-<bins>-l2                         the same by the exact bias of Minderer et al., eq. 5
    sweep-mass-l1       sweep-<width|mass>-<l1|l2|max>          bins as many as monotonicity allows
    rank-series-l2      rank-series-<l1|l2>                     truecal's default
    nearest-l2          nearest-<l1|l2>                         sliding windows
    generalized-l1      generalized-<l1|max>                    of several probabilities: lenses top-K, grouping:NAME, canonical
    package.module:function                                     a metric of one's own: a function of (scores, outcomes)
    nll, brier, error, confidence                               of whole predictions: no lens
    brier-top                                                   the Brier score of the confidence: what the bias of bins hangs on
    aurc                                                        area under the risk-coverage curve
    abstain-0.2-0.1     abstain-<rate>-<cost ratio>             cost per row of not answering the least confident 20 %

Minderer et al. speak of 28 metric variants (schemes, bins, norms, top-label, all-label, class-wise) without listing them. The
grid holds the whole product over bins from 5 to 100, of which any such 28 are a part, with the scores and our estimators.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal import names
from truecal.errors import InputError
from truecal.estimators import bins
from truecal.estimators.base import Estimator
from truecal.estimators.bins import Binning, Bins, combined
from truecal.estimators.bootstrap import fixed_cut, resample_units, sample_sums, sign_flips
from truecal.estimators.estimate import Interval
from truecal.estimators.functions import FunctionEstimator
from truecal.lenses.lens import Lens
from truecal.resampling.units import Units
from truecal.special import positive
from truecal.types import Float64s

# ----------------------------------------------------------------------------------------------------
# Names of metrics in a study, and the grid of paper M

GRID = "paper-grid"
GRID_BINS = (5, 10, 15, 20, 50, 100)
SCORES = ("nll", "brier", "brier-top", "error", "confidence")
_MOST_BINS = 100_000
_PATTERN = re.compile(
    r"(?P<ece>ece)-(?P<ece_scheme>width|mass)-(?P<ece_bins>[0-9]+)-(?P<ece_norm>l1|l2|max)"
    r"|(?P<debiased>debiased)-(?P<debiased_bins>[0-9]+)-(?P<debiased_norm>l1|l2)"
    r"|(?P<exact>exact)-(?P<exact_bins>[0-9]+)-(?P<exact_norm>l2)"
    r"|(?P<sweep>sweep)-(?P<sweep_scheme>width|mass)-(?P<sweep_norm>l1|l2|max)"
    r"|(?P<rank>rank-series)-(?P<rank_norm>l1|l2)"
    r"|(?P<nearest>nearest)-(?P<nearest_norm>l1|l2)"
    r"|(?P<generalized>generalized)-(?P<generalized_norm>l1|max)"
)
_ABSTAIN = re.compile(r"abstain-(0(?:\.[0-9]+)?|1)-(0(?:\.[0-9]+)?|1)")
_KINDS = ("ece", "debiased", "exact", "sweep", "rank", "nearest", "generalized")


@dataclass(frozen=True, eq=False)
class Metric:
    """A metric by its parts, one object per name (see `parse_metric`). `kind` "score" is a mean over whole predictions."""

    name: str
    kind: str
    scheme: str | None = None
    bins: int | None = None
    norm: float | None = None
    rate: float | None = None
    cost: float | None = None

    @property
    def whole(self) -> bool:
        """Whether it judges whole predictions, without a lens."""
        return self.kind in ("score", "abstaining")

    @property
    def several(self) -> bool:
        """Whether it judges several probabilities of a row at once."""
        return self.kind == "generalized"

    @property
    def by_formula(self) -> bool:
        """Whether its interval costs nothing."""
        return self.kind == "rank"

    @cache  # noqa: B019 (metrics are few, and small)
    def estimator(self, level: float = 0.95) -> Estimator:
        """The estimator behind it (not for scores); `level` matters to those with an interval of their own."""
        if self.kind == "function":
            return FunctionEstimator(names.load_object(self.name))
        options: dict[str, Any] = {"norm": self.norm}
        if self.kind == "ece":
            return tc.BinnedECE(bins=self.bins, scheme=self.scheme, **options)  # type: ignore[arg-type]
        if self.kind in ("debiased", "exact"):
            correction: Any = "exact" if self.kind == "exact" else "kumar"
            return tc.DebiasedECE(bins=self.bins, correction=correction, **options)
        if self.kind == "generalized":
            return tc.GeneralizedECE(level=level, **options)
        if self.kind == "sweep":
            return tc.SweepECE(scheme=self.scheme, **options)  # type: ignore[arg-type]
        return tc.RankSeries(level=level, **options) if self.kind == "rank" else tc.NearestECE(**options)


@cache
def parse_metric(name: str) -> Metric:
    """The metric of a name.

    >>> metric = parse_metric("ece-mass-100-l2")
    >>> metric.kind, metric.scheme, metric.bins, metric.norm
    ('ece', 'mass', 100, 2.0)
    """
    if name in SCORES:
        return Metric(name, "score")
    if name == "aurc":
        return Metric(name, "abstaining")
    if abstain := _ABSTAIN.fullmatch(name):
        return Metric(name, "abstaining", rate=float(abstain[1]), cost=float(abstain[2]))
    if ":" in name:
        names.load_object(name)
        return Metric(name, "function", norm=1.0)
    match = _PATTERN.fullmatch(name)
    if match is None:
        raise InputError(
            f"there is no metric {name!r}; use {GRID}, {', '.join(SCORES)}, package.module:function, or a name such as "
            "ece-width-15-l1, debiased-15-l2, exact-15-l2, sweep-mass-l1, rank-series-l2, nearest-l2, generalized-l1, aurc, "
            "abstain-0.2-0.1"
        )
    parts = match.groupdict()
    kind = next(kind for kind in _KINDS if parts[kind])
    bins = parts.get(f"{kind}_bins")
    if bins is not None and not 1 <= int(bins) <= _MOST_BINS:
        raise InputError(f"{name!r} asks for {bins} bins; use from 1 to {_MOST_BINS}")
    scheme = parts.get(f"{kind}_scheme") or ("mass" if kind in ("debiased", "exact") else None)
    return Metric(name, kind, scheme, None if bins is None else int(bins), names.NORMS[str(parts[f"{kind}_norm"])])


def judges_several(lens: str) -> bool:
    """Whether the lens of this word judges several probabilities of a row: top-K, grouping:NAME, canonical."""
    return lens == "canonical" or lens.startswith("grouping:") or re.fullmatch(r"top-[0-9]+", lens) is not None


def metrics_of(names: tuple[str, ...], lens: str) -> tuple[Metric, ...]:
    """What is computed under a lens ("" for whole predictions) when these names are asked for.

    >>> len(metrics_of(("paper-grid",), "top-label")), len(metrics_of(("paper-grid",), "class-wise"))
    (42, 38)
    >>> [m.name for m in metrics_of(("rank-series-l2", "nll"), "")]
    ['nll']
    """
    expanded = [one for name in names for one in (_grid(lens) if name == GRID else (name,))]
    metrics = [parse_metric(name) for name in dict.fromkeys(expanded)]
    return tuple(m for m in metrics if m.whole == (lens == "") and m.several == judges_several(lens))


def _grid(lens: str) -> tuple[str, ...]:
    """The grid under a lens.

    The sweep and the rank series look at a dataset longer than it took to sort it. In the grid they judge the lenses on one
    outcome per row; to have them everywhere, ask for them by name.
    """
    if lens == "":
        return SCORES
    binned = tuple(f"ece-{s}-{b}-{p}" for s in ("width", "mass") for b in GRID_BINS for p in names.NORMS)
    both = (*binned, "debiased-15-l1", "debiased-15-l2")
    if lens == "class-wise":
        return both
    swept = (*both, "sweep-mass-l1", "sweep-mass-l2")
    return swept if lens == "all-label" else (*swept, "exact-15-l2", "rank-series-l2")


# ----------------------------------------------------------------------------------------------------
# All metrics of one lens: its samples are sorted once, and every estimator reads the same profiles

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
    sample: tc.lenses.Sample | None = None,
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
    if lens.several:
        return [_measure(preds, lens, metric, intervals, level) for metric in metrics]
    shares = lens.shares(preds)
    if shares is None:
        only = as_rows(lens.sample(preds)) if sample is None else sample
        if only.unit == "clusters" and intervals:
            return [_clustered(preds, lens, only, metric, intervals, level) for metric in metrics]
        wanted = only.independent and not only.pooled and intervals
        profile = _sorted(only.profile)
        estimators = [metric.estimator(level) for metric in metrics]
        bins.Binning.make_all(profile, [each.binning for each in estimators if isinstance(each, tc.BinnedECE)])
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
        power = combined(np.concatenate(powers[metric]), shares, estimator.norm)
        measured.append(Found(metric, float(bins.root(power, estimator.norm)), n, warnings=tuple(notes[metric])))
    return measured


def as_rows(sample: tc.lenses.Sample) -> tc.lenses.Sample:
    """Pairs of a row and a class as rows of their own: a value does not ask which of them belong together."""
    return replace(sample, units=None) if sample.pooled and sample.unit == "rows" else sample


def _sorted(profile: tc.profile.Profile) -> tc.profile.Profile:
    """The same, sorted now: with many metrics one sort is quicker than a pass for each."""
    profile.scores  # noqa: B018 (the order is made on first need)
    return profile


def _alone(profile: tc.profile.Profile, n: int, metric: Metric, intervals: Intervals, level: float) -> Found:
    """A metric of one dataset of n rows, with its interval."""
    power, interval, notes = _found(profile, metric, level)
    if np.isnan(power[0]):
        return Found(metric, float("nan"), n, warnings=notes)
    low, high = None, None
    if intervals and interval is not None:
        low, high = float(interval.low), float(interval.high)
    elif intervals == "bootstrap":
        low, high = _bootstrapped(profile, metric, level)
    value = float(bins.root(power, metric.estimator(level).norm)[0])
    return Found(metric, value, n, low, high, notes)


def _clustered(
    preds: tc.Predictions, lens: Lens, sample: tc.lenses.Sample, metric: Metric, intervals: Intervals, level: float
) -> Found:
    """A metric of rows in clusters: :func:`truecal.measure` where an interval is wanted or the value itself counts clusters."""
    if intervals != "bootstrap" and not metric.by_formula:
        return _alone(sample.profile, _rows(sample.profile), metric, False, level)
    return _measure(preds, lens, metric, intervals, level)


def _measure(preds: tc.Predictions, lens: Lens, metric: Metric, intervals: Intervals, level: float) -> Found:
    """A metric with its interval by :func:`truecal.measure`; nan with the reason where these rows do not allow it."""
    try:
        estimate = tc.measure(preds, estimator=metric.estimator(level), lens=lens, level=level, rng=_SEED)
    except InputError as error:
        return Found(metric, float("nan"), len(preds), warnings=(str(error),))
    interval = estimate.interval if intervals else None
    low, high = (None, None) if interval is None else (float(interval.low), float(interval.high))
    return Found(metric, float(estimate.value), estimate.n, low, high, estimate.warnings)


def _found(
    profile: tc.profile.Profile, metric: Metric, level: float
) -> tuple[Float64s, Interval | None, tuple[str, ...]]:
    """Powers of all datasets (nan where there are none), the interval where there is a formula, and warnings or the reason."""
    estimator = metric.estimator(level)
    try:
        if metric.by_formula:
            estimate = estimator(profile)
            return np.atleast_1d(estimate.power), estimate.interval, estimate.warnings
        findings = estimator.estimate(profile)
    except InputError as error:
        return np.full(profile.batch, np.nan), None, (str(error),)
    return findings.power, None, findings.warnings


def _rows(profile: tc.profile.Profile) -> int:
    return round(float(profile.total.max())) if profile.counted else profile.rows


def _bootstrapped(profile: tc.profile.Profile, metric: Metric, level: float) -> tuple[float | None, float | None]:
    estimator = metric.estimator()
    resamples = _RESAMPLES if fixed_cut(estimator, profile) is None else _RESAMPLES_OF_BINS
    try:
        interval = tc.inference.bootstrap(estimator, profile, resamples=resamples, level=level, rng=_SEED).interval()
    except InputError:
        return None, None  # too few rows; the value, or its warning, says so
    return float(interval.low), float(interval.high)


def diagram(profile: tc.profile.Profile) -> list[dict[str, Any]]:
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


# ----------------------------------------------------------------------------------------------------
# Resamples that are the same for all models on the same rows, so that two models can be compared in pairs later

RESAMPLES = 200  # the standard error of a difference is known to 5 % from as many
_GROUPS = 256
_SEED_PAIRED = 20210615


@dataclass(frozen=True, eq=False)
class Drawn:
    """A metric on every resample, as where the true number may be; `low` and `high` are its interval."""

    metric: Metric
    values: Float64s
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Draws:
    """The resamples of the rows of one dataset."""

    units: Units
    counts: NDArray[np.uint16]  # (units + 2, resamples)

    @classmethod
    def of(cls, sample: tc.lenses.Sample) -> "Draws":
        """Those of the rows of a sample: the same for all models."""
        return _draws(len(sample), sample.unit, None if sample.units is None else sample.units.tobytes())

    def of_estimator(self, metric: Metric, sample: tc.lenses.Sample, level: float) -> Drawn:
        """A calibration error on every resample, as `tc.inference.bootstrap` has it."""
        estimator, rng = metric.estimator(level), np.random.default_rng(_SEED_PAIRED)
        flips = sign_flips(self.units, 1, rng)
        parts = sample_sums(estimator, [sample], self.units, flips)
        resampled = resample_units(estimator, parts, None, self.units, self.counts, level, rng, flips=flips)
        interval = resampled.interval()
        return Drawn(metric, resampled.errors, float(interval.low), float(interval.high))

    def of_means(self, scores: Mapping[Metric, Float64s], weights: Float64s | None, level: float) -> list[Drawn]:
        """Means over rows: twice the mean less that of every resample. An infinite score cannot be compared."""
        units = self.units
        sizes = np.bincount(units.of_row, weights, units.count)
        values = {metric: float(np.average(rows, weights=weights)) for metric, rows in scores.items()}
        finite = [metric for metric in scores if np.isfinite(values[metric])]
        sums = [
            np.bincount(units.of_row, scores[metric] if weights is None else weights * scores[metric], units.count)
            for metric in finite
        ]
        drawn = self.counts[:-2].T.astype(np.float64) @ np.column_stack([sizes, *sums])
        means = drawn[:, 1:] / positive(drawn[:, :1])
        moved = 2 * np.array([[values[metric]] for metric in finite]).reshape(-1, 1) - means.T
        lows, highs = np.quantile(moved, [(1 - level) / 2, (1 + level) / 2], axis=1)
        ends = zip(finite, moved, lows.tolist(), highs.tolist(), strict=True)
        return [Drawn(metric, drawn, low, high) for metric, drawn, low, high in ends]


@lru_cache(2)  # one file after the other has the same rows
def _draws(rows: int, unit: str, units: bytes | None) -> Draws:
    rng = np.random.default_rng(_SEED_PAIRED)
    of_row = None if units is None else np.frombuffer(units, np.intp)
    if of_row is None and rows > _GROUPS:
        drawn = Units(rng.permutation(rows) % _GROUPS, _GROUPS, unit)
    else:
        drawn = Units.of(tc.lenses.Sample(np.zeros(rows), np.zeros(rows), None, of_row, unit), rng)
    return Draws(drawn, drawn.draws(RESAMPLES, rng))


def can_be_paired(metric: Metric) -> bool:
    """Whether a metric is resampled by default: means over rows, and the errors that rankings are made by."""
    return metric.kind == "score" or metric.name in PAIRED


PAIRED = ("rank-series-l2", "rank-series-l1", "ece-mass-100-l1", "ece-width-15-l1", "debiased-15-l2", "ece-mass-15-l1")


# ----------------------------------------------------------------------------------------------------
# Scores of whole predictions: log loss, Brier scores, error and confidence, and what abstaining costs

_RESAMPLES_SCORES = 200


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


def row_scores(metric: Metric, preds: tc.Predictions, top: tc.lenses.Sample) -> Float64s:
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
    options: dict[str, Any] = {"level": level, "resamples": _RESAMPLES_SCORES}
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
