"""Parts of the page of a model: curves, groups, segments, forest plots, recalibration."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, exp, floor, isfinite, log, log10
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

import truecal as tc
from truecal.clinical.summaries import Sites
from truecal.errors import InputError, MissingExtraError, TruecalWarning
from truecal.estimators.estimate import Curve
from truecal.groups import answer_scales, group_tables
from truecal.lenses.lens import Lens
from truecal.pages.html import element, escaped
from truecal.pages.records import OPTIONAL, Absent, picked
from truecal.predictions.selection import column
from truecal.special import kish
from truecal.types import Float64s

if TYPE_CHECKING:
    from truecal.recalibration.contract import Recalibrator


# ----------------------------------------------------------------------------------------------------
# Curves as the page carries them

_CURVE_POINTS = 400


@dataclass(frozen=True)
class CurveRecord:
    """Points of a calibration curve, and where there is one, the ends of the simultaneous band at them."""

    score: list[float]
    outcome: list[float]
    low: list[float] | None = field(default=None, metadata=OPTIONAL)
    high: list[float] | None = field(default=None, metadata=OPTIONAL)

    def banded(self, profile: tc.profile.Profile, level: float) -> "CurveRecord":
        """The curve with the band of the profile."""
        low, high = tc.inference.band(profile, level=level).at(self.score)
        return replace(self, low=low.tolist(), high=high.tolist())


def thinned(curve: Curve | None, *, steps: bool = False) -> CurveRecord | None:
    """At most a few hundred points of a curve, spread over its ranks and its scores, ends included; steps keep both their ends."""
    if curve is None:
        return None
    count = len(curve.score)
    index = np.arange(count)
    if count > _CURVE_POINTS:
        by_rank = np.searchsorted(np.cumsum(curve.weight), np.linspace(0, curve.weight.sum(), _CURVE_POINTS // 2))
        by_score = np.searchsorted(curve.score, np.linspace(curve.score[0], curve.score[-1], _CURVE_POINTS // 2))
        index = np.unique(np.clip(np.concatenate([by_rank, by_score, [0, count - 1]]), 0, count - 1))
    if steps:
        index = np.unique(np.concatenate([index // 2 * 2, index // 2 * 2 + 1]))
    return CurveRecord(curve.score[index].tolist(), curve.outcome[index].tolist())


# ----------------------------------------------------------------------------------------------------
# Rows of the page per class, per group and per category of a Likert scale

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


def _means(sample: tc.lenses.Sample, z: float) -> Float64s:
    """Labels, frequency, mean probability, their difference and the ends of its interval."""
    weight = np.ones(len(sample)) if sample.weights is None else sample.weights
    total, outcome = weight.sum(), sample.outcomes.astype(np.float64)
    rate, mean = float(weight @ outcome / total), float(weight @ sample.scores / total)
    gap = weight * (sample.scores - outcome - (mean - rate))
    size = total if bool((weight == np.rint(weight)).all()) else float(kish(weight))
    if sample.units is None:
        variance = float(gap @ (gap / np.maximum(weight, 1e-300))) / total / max(size - 1, 1.0)
    else:
        together = np.bincount(np.unique(sample.units, return_inverse=True)[1], gap)
        variance = float(together @ together) / total**2 * len(together) / max(len(together) - 1, 1)
    half = z * float(np.sqrt(variance))
    return np.array([rate * total, rate, mean, mean - rate, mean - rate - half, mean - rate + half])


def per_group(subgroups: group_tables.Subgroups) -> Groups:
    """One row per group."""
    rows = [picked(GroupRow, row) for row in subgroups.frame()]
    return Groups(", ".join(subgroups.by), tuple(rows[:MOST_GROUPS]), max(0, len(rows) - MOST_GROUPS))


def likert_rows(
    preds: tc.Predictions, scale: Mapping[str, tuple[float, float]] | None, *, level: float, rng: int
) -> tuple[LikertRow, ...]:
    """Words for confidence, by default low, medium and high, and what happened in each."""
    answers = tc.likert(preds, answer_scales.SCALE if scale is None else scale, level=level, rng=rng)
    return tuple(picked(LikertRow, row) for row in answers.frame())


# ----------------------------------------------------------------------------------------------------
# The forest plots of a page: one clinical number per group with its interval, the mean over groups, and a new group

_WIDE, _LEFT, _RIGHT = 440, 150, 310  # pixels of the picture; between left and right lies the axis
_TOP, _LINE, _FOOT = 8, 24, 40  # pixels above the first line, of a line, and of the axis below the last
_LETTERS = 22  # of a name; the whole one is its tooltip
_REACH = 3  # median intervals beyond the outermost value at which longer ones are cut
_RATIOS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.4, 2, 3, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class ForestRow:
    """A group ("site"), the mean over groups ("mean") or what a new group may have ("new site")."""

    name: str
    kind: str
    counts: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Forest:
    """One number of every group; `ideal` is that of a calibrated model, `ratio` says that its axis is logarithmic."""

    title: str
    ideal: float
    ratio: bool
    rows: tuple[ForestRow, ...]


def forests_of(sites: Sites) -> tuple[Forest, ...]:
    """O/E ratio and slope, as `tc.plot.ForestDisplay` has them."""
    return (
        Forest("O/E ratio", 1.0, True, _rows(sites, "oe")),
        Forest("Calibration slope", 1.0, False, _rows(sites, "slope")),
    )


def _rows(sites: Sites, number: str) -> tuple[ForestRow, ...]:
    names = {"mean": "mean over groups", "new site": "a new group"}
    return tuple(
        ForestRow(
            names.get(row["kind"], str(row["site"])),
            row["kind"],
            f"{row['events']:,} of {row['rows']:,}" if row["kind"] == "site" else "",
            *(float(row[end]) for end in ("value", "low", "high")),
        )
        for row in tc.plot.ForestDisplay.from_sites(sites, number, plot=False).frame()
    )


def forest_figure(forest: Forest, level: float) -> str:
    """The picture as HTML, with its caption."""
    axis = _Axis.of(forest)
    bottom = _TOP + _LINE * len(forest.rows)
    parts = [_ticks(axis, bottom), _upright(axis.place(forest.ideal), bottom, "ideal")]
    parts += [_line(row, axis, _TOP + _LINE * (i + 0.5)) for i, row in enumerate(forest.rows)]
    parts.append(_text((_LEFT + _RIGHT) / 2, bottom + 34, forest.title, "middle"))
    words = "; ".join(f"{row.name}: {_number(row)}" for row in forest.rows)
    box = f"0 0 {_WIDE} {bottom + _FOOT}"
    picture = element("svg", *parts, viewBox=box, role="img", aria_label=f"{forest.title}. {words}", class_="forest")
    caption = f"{forest.title} by group with {level:.0%} intervals; an arrow marks one that is longer. Dashed: a calibrated model."
    return element("figure", picture, element("figcaption", escaped(caption)))


@dataclass(frozen=True)
class _Axis:
    """From `low` to `high` on the scale of the picture, which is log(value) for ratios."""

    low: float
    high: float
    ratio: bool

    @classmethod
    def of(cls, forest: Forest) -> "_Axis":
        """Holds all finite values and the ideal one; intervals as far as `_REACH` of the median length."""

        def scaled(value: float) -> float | None:
            if forest.ratio:
                return log(value) if value > 0 and isfinite(value) else None
            return value if isfinite(value) else None

        triples = [[scaled(x) for x in (row.value, row.low, row.high)] for row in forest.rows]
        whole = [(v, a, b) for v, a, b in triples if v is not None and a is not None and b is not None]
        values = [v for v, _, _ in triples if v is not None]
        ideal = log(forest.ideal) if forest.ratio else forest.ideal
        usual = median([b - a for _, a, b in whole]) if whole else 0.1
        low, high = min([ideal, *values]), max([ideal, *values])
        low = max(min([low, *(a for _, a, _ in whole)]), low - _REACH * usual)
        high = min(max([high, *(b for _, _, b in whole)]), high + _REACH * usual)
        edge = 0.04 * (high - low) or 0.1
        return cls(low - edge, high + edge, forest.ratio)

    def place(self, value: float) -> float:
        """The pixel of a value; those beyond the axis, and infinite ones, lie outside it."""
        if self.ratio:
            value = -1e9 if value <= 0 else log(value) if isfinite(value) else 1e9
        share = (min(max(value, -1e9), 1e9) - self.low) / (self.high - self.low)
        return _LEFT + (_RIGHT - _LEFT) * share

    def ticks(self) -> Sequence[float]:
        """At most five round values."""
        if self.ratio:
            inside = [x for x in _RATIOS if self.low <= log(x) <= self.high]
            inside = inside or [float(f"{exp((self.low + self.high) / 2):.2g}")]
            return inside[:: ceil(len(inside) / 5)] if 1 not in inside else _around_one(inside)
        step = 10 ** floor(log10((self.high - self.low) / 5))
        step *= next(m for m in (1, 2, 5, 10) if (self.high - self.low) / (step * m) <= 5)
        first = ceil(self.low / step)
        return [round(step * k, 10) for k in range(first, floor(self.high / step) + 1)]


def _around_one(values: Sequence[float]) -> Sequence[float]:
    """Every so many of the values that at most five are left, 1 among them."""
    every = ceil(len(values) / 5)
    return [x for i, x in enumerate(values) if (i - values.index(1)) % every == 0]


def _ticks(axis: _Axis, bottom: float) -> str:
    base = element("path", d=f"M{_LEFT} {bottom}H{_RIGHT}", class_="axis")
    marks = [
        _upright(axis.place(x), bottom, "grid") + _text(axis.place(x), bottom + 16, f"{x:g}", "middle")
        for x in axis.ticks()
    ]
    return "".join([*marks, base])


def _line(row: ForestRow, axis: _Axis, y: float) -> str:
    """Name, interval with its value, and the numbers in words."""
    tip = element("title", escaped(": ".join(part for part in (row.name, row.counts) if part)))
    parts = [
        element("text", tip, escaped(tc.plot.ForestDisplay.shortened(row.name, _LETTERS)), x=0, y=f"{y + 4:.1f}"),
        _text(_RIGHT + 8, y + 4, _number(row)),
    ]
    kind = row.kind.replace(" ", "-")
    low, high = (min(max(axis.place(x), _LEFT), _RIGHT) for x in (row.low, row.high))
    parts.append(element("path", d=f"M{low:.1f} {y:.1f}H{high:.1f}", class_=f"interval {kind}"))
    for end, place, side in ((low, axis.place(row.low), 5), (high, axis.place(row.high), -5)):
        if not _LEFT <= place <= _RIGHT:
            arrow = f"M{end:.1f} {y:.1f}l{side} -4v8z"
            parts.append(element("path", d=arrow, class_=f"mark {kind}"))
    middle = axis.place(row.value)
    if row.kind != "new site" and _LEFT <= middle <= _RIGHT:
        shape = "m0 -6l6 6l-6 6l-6 -6z" if row.kind == "mean" else "m-4 -4h8v8h-8z"
        parts.append(element("path", d=f"M{middle:.1f} {y:.1f}{shape}", class_=f"mark {kind}"))
    return "".join(parts)


def _number(row: ForestRow) -> str:
    ends = f"{row.low:.2f} to {row.high:.2f}"
    return ends if row.kind == "new site" else f"{row.value:.2f} ({ends})"


def _upright(x: float, bottom: float, kind: str) -> str:
    return element("path", d=f"M{x:.1f} {_TOP}V{bottom:.1f}", class_=kind)


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return element("text", escaped(words), x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor)


# ----------------------------------------------------------------------------------------------------
# Where it is wrong, and the clinical numbers: what `tc.audit` and `tc.clinical` say of the rows of a page, as records

_MOST_CLINICAL = 1_000_000
_MOST_GROUPS = 40  # in a forest plot; each takes a tenth of a second


@dataclass(frozen=True)
class SegmentRow:
    """A segment that an audit listed, `depth` levels below the one that contains it; `curve` is its score, outcome and rows."""

    name: str
    depth: int
    region: str
    rows: int
    share: float
    difference: float
    low: float
    high: float
    p_value: float
    beyond: bool | None
    contribution: float
    explains: int
    curve: tuple[tuple[float, float, int], ...]


@dataclass(frozen=True)
class SegmentsRecord:
    """The segments in the order of their tree, what was searched in words, and notes."""

    rows: tuple[SegmentRow, ...]
    summary: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class ClinicalRow:
    """A clinical number with its interval, its value for a calibrated model, and how to read it."""

    title: str
    value: float
    low: float
    high: float
    calibrated: float | None
    reading: str


@dataclass(frozen=True)
class ClinicalRecord:
    """The clinical numbers of a page, and of its groups; `apart` says why there are none by group."""

    rows: tuple[ClinicalRow, ...]
    counts: str
    warnings: tuple[str, ...]
    forests: tuple[Forest, ...] = ()
    apart: str = ""


def segments_of(
    data: tc.Predictions | tc.engines.Scan, by: Sequence[str], *, lens: Lens | None, level: float, tolerance: float
) -> SegmentsRecord | Absent:
    """What `tc.audit` finds in the columns of a page; absent where it cannot search."""
    try:
        audit = tc.audit(data, by=list(by), lens=lens, level=level, tolerance=tolerance)
    except InputError as error:
        return Absent(f"Not searched: {error}.")
    rows = tuple(
        picked(
            SegmentRow,
            {**vars(one), "name": one.name, "depth": depth, "contribution": one.contribution},
        )
        for depth, one in audit.tree()
    )
    return SegmentsRecord(rows, audit.summary(), audit.notes)


def clinical_of(
    preds: tc.Predictions, by: Sequence[str], *, lens: Lens, level: float, rng: int
) -> ClinicalRecord | Absent:
    """The numbers of `tc.clinical`; absent where the cohort has none, or is so large that they take longer than the page."""
    if len(preds) > _MOST_CLINICAL:
        return Absent(
            f"Curves and lines of {len(preds):,} rows take longer than all else on this page, which has them for up to "
            f"{_MOST_CLINICAL:,}; tc.clinical and `truecal clinical` give them for any number."
        )
    try:
        numbers = tc.clinical.summary(preds, lens=lens, level=level, rng=rng)
    except InputError as error:
        return Absent(f"Not possible on these data: {error}.")
    rows = tuple(picked(ClinicalRow, row) for row in numbers.frame())
    units = f" of {numbers.patients:,} clusters" if preds.clusters is not None else ""
    counts = f"{numbers.rows:,} rows{units}, {numbers.events:,} events ({numbers.prevalence:.1%})"
    return ClinicalRecord(rows, counts, numbers.warnings, *_by_group(preds, by, lens, level, rng))


def _by_group(
    preds: tc.Predictions, by: Sequence[str], lens: Lens, level: float, rng: int
) -> tuple[tuple[Forest, ...], str]:
    """The forest plots of the groups of a page, or why there are none."""
    if not by:
        return (), ""
    groups = len({tuple(map(str, row)) for row in zip(*(column(preds, name) for name in by), strict=True)})
    if groups > _MOST_GROUPS:
        return (), f"The forest plot is drawn for up to {_MOST_GROUPS} groups, not for {groups:,}."
    try:
        sites = tc.clinical.summary(preds, lens=lens, level=level, by=list(by), rng=rng).sites
    except InputError as error:
        return (), f"No forest plot of the groups: {error}."
    return (() if sites is None else forests_of(sites)), ""


def small_diagram(curve: Sequence[tuple[float, float, int]]) -> str:
    """A reliability diagram of the quarters of a segment's scores, as a picture of 48 pixels."""
    words = "; ".join(f"score {score:.2f}, outcome {outcome:.2f}" for score, outcome, _ in curve)
    points = "".join(
        element("circle", cx=f"{4 + 40 * score:.1f}", cy=f"{44 - 40 * outcome:.1f}", r="2.5", class_="dot")
        for score, outcome, _ in curve
    )
    line = element("path", d="M4 44L44 4", class_="diagonal")
    return element("svg", line, points, width=48, height=48, role="img", aria_label=words, class_="small")


# ----------------------------------------------------------------------------------------------------
# What recalibration would bring, on rows the recalibrator was not fitted on

_FOLDS = 5
# Rows and probabilities used; beyond, a sample of the rows says enough and saves minutes.
_MOST_ROWS, _MOST_VALUES = 200_000, 1_000_000
_FEWEST_ROWS = 100


@dataclass(frozen=True)
class RemedyRow:
    """A recalibrator on held-out rows; changes are those from the model as it is."""

    recalibrator: str
    log_loss: float
    log_loss_change_low: float
    log_loss_change_high: float
    brier: float
    brier_change_low: float
    brier_change_high: float
    accuracy: float
    error: float
    error_low: float | None
    error_high: float | None
    equal_width: float
    sweep: float


@dataclass(frozen=True)
class RecalibrationRecord:
    """The cross-fitted comparison. `sampled` is the number of rows used where not all were; `refused` says which methods could not
    be fitted, and why; `recommended` names the map to take, with the reason."""

    rows: tuple[RemedyRow, ...]
    curves: Mapping[str, CurveRecord]
    winner: str
    tied: tuple[str, ...]
    folds: int
    sampled: int | None
    refused: tuple[str, ...] = ()
    recommended: str = ""


def recalibration(preds: tc.Predictions, *, lens: Lens, level: float, rng: int) -> RecalibrationRecord | Absent:
    """The cross-fitted comparison; absent where it cannot be made."""
    if len(preds) < _FEWEST_ROWS:
        return Absent(f"{len(preds)} rows are too few to fit and judge a recalibrator; {_FEWEST_ROWS} are needed.")
    try:
        methods: dict[str, Recalibrator] = {"Temperature scaling": tc.recalibration.TemperatureScaling(input="probs")}
    except MissingExtraError as error:
        return Absent(f"{error}.".capitalize())
    if preds.class_count <= 100:
        methods["Beta calibration"] = tc.recalibration.BetaCalibration()
        methods["Isotonic regression"] = tc.recalibration.IsotonicCalibration()
    most = max(2 * _FEWEST_ROWS, min(_MOST_ROWS, _MOST_VALUES // preds.class_count))
    sampled = len(preds) > most
    if sampled:
        preds = preds.take(np.sort(np.random.default_rng(rng).choice(len(preds), most, replace=False)))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TruecalWarning)  # of single folds; the table shows what came of them
            evaluation = tc.evaluate(methods, preds, folds=_FOLDS, lens=lens, level=level, rng=rng)
    except InputError as error:
        return Absent(f"Not possible on these data: {error}.")
    curves = {row.name: thinned(row.error.curve) for row in evaluation.rows}
    return RecalibrationRecord(
        rows=tuple(picked(RemedyRow, row.record()) for row in evaluation.rows),
        curves={name: curve for name, curve in curves.items() if curve is not None},
        winner=evaluation.winner,
        tied=tuple(evaluation.tied),
        folds=_FOLDS,
        sampled=len(preds) if sampled else None,
        refused=tuple(f"{name} could not be fitted: {why}" for name, why in evaluation.refused),
        recommended=f"{evaluation.recommended} ({evaluation.reason})",
    )
