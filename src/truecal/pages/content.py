"""What the page of a model says: verdict, bias, context and the numbers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

import truecal as tc
from truecal import names, options
from truecal.errors import InputError
from truecal.estimators.base import Estimator
from truecal.estimators.estimate import Curve
from truecal.lenses.lens import Lens, check_lens
from truecal.lenses.one_probability import default_lens
from truecal.pages.html import Cell, p_words, paragraph, table
from truecal.pages.parts import (
    Classes,
    ClinicalRecord,
    CurveRecord,
    Groups,
    LikertRow,
    RecalibrationRecord,
    SegmentsRecord,
    thinned,
)
from truecal.pages.records import OPTIONAL, Absent, EstimateRecord, Provenance
from truecal.pages.sources import MOST_BINS, Cells, SketchRecord, Source, cells_of, source_of
from truecal.predictions.selection import Selection

# ----------------------------------------------------------------------------------------------------
# The verdict: one sentence a manager can read, which says how sure it is

_TENTHS = 10


@dataclass(frozen=True)
class Verdict:
    """`kind` is "within", "outside", "off" or "open"; `badge` its few words; `sentence` the finding; `reading` what it means."""

    kind: str
    badge: str
    sentence: str
    reading: str


def judge(estimate: tc.Estimate, *, tolerance: float, judged: str = "top label") -> Verdict:
    """Judge an estimate that has an interval and a p-value against the largest error that would be acceptable.

    `judged` says in words what the probabilities are of.
    """
    interval = estimate.interval
    assert interval is not None
    assert estimate.p_value is not None
    low, high, value = float(interval.low), float(interval.high), float(estimate.value)
    sure, most = f"{interval.level:.0%}", f"{100 * tolerance:g} points"
    subject = "Confidence is" if names.tendency(judged, 1.0) == "overconfident" else "Probabilities are"
    shown = float(estimate.p_value) < 1 - interval.level
    span = f"between {span_of(low, high, 'and')}" if low > 0 else f"at most {points(high)}"
    if high <= tolerance:
        words = f"The root-mean-square error is {span} ({sure} confidence), within the tolerance of {most}."
        return Verdict("within", "Within tolerance", words, _reading(estimate, shown, judged))
    if low > tolerance:
        size = f"{points(value)}, root mean square ({sure} confidence: {span})"
        words = f"{subject} off by {size}, more than the tolerance of {most}."
        return Verdict("outside", "Outside tolerance", words, _reading(estimate, shown, judged))
    if shown:
        words = (
            f"{subject} off by about {points(value)}, root mean square ({sure} confidence: {span}). That is shown; whether it is "
            f"more than the tolerance of {most} is not."
        )
        return Verdict("off", "Miscalibrated, size uncertain", words, _reading(estimate, shown, judged))
    words = (
        f"No miscalibration could be shown, but {estimate.n:,} predictions are too few to promise that the error is within "
        f"{most}: it is {span} (root mean square, {sure} confidence)."
    )
    return Verdict("open", "Undecided: too little data", words, _reading(estimate, shown, judged))


def points(value: float) -> str:
    """An error in percentage points, with two significant digits.

    >>> points(0.0312), points(0.00041), points(0)
    ('3.1 points', '0.041 points', '0 points')
    """
    percent = 100 * value
    if percent == 0:
        return "0 points"
    digits = max(0, 1 - int(np.floor(np.log10(percent))))
    shown = f"{percent:.{digits}f}"
    return f"{shown} point{'' if shown == '1' else 's'}"


def span_of(low: float, high: float, word: str) -> str:
    """Two errors with one unit.

    >>> span_of(0.021, 0.043, "to")
    '2.1 to 4.3 points'
    """
    return f"{points(low).split()[0]} {word} {points(high)}"


def percent(value: float) -> str:
    """A probability in percent that never rounds to a certainty it is not.

    >>> percent(0.934), percent(0.99953), percent(1.0), percent(1 - 1e-12)
    ('93%', '99.95%', '100%', 'over 99.9999%')
    """
    for digits in range(7):
        shown = f"{100 * value:.{digits}f}"
        gap = min(value, 1 - value)
        if gap == 0 or (float(shown) not in (0.0, 100.0) and abs(float(shown) / 100 - value) <= gap / 10):
            return f"{shown}%"
    return "over 99.9999%" if value > 0.5 else "under 0.0001%"


def _reading(estimate: tc.Estimate, shown: bool, judged: str) -> str:
    """What the number means for someone who uses the predictions."""
    if not shown:
        return "The test of perfect calibration finds nothing against it in these data."
    direction, worst = float(estimate.direction), _worst(estimate.curve)
    if worst is None:
        return ""
    high, low = names.tendency(judged, 1.0), names.tendency(judged, -1.0)
    score, happens = worst
    example = f"Where it matters most, predictions of about {percent(score)} come true {percent(happens)} of the time."
    if abs(direction) < 0.25 * float(estimate.value):
        return f"The model is {high} in places and {low} in others. {example}"
    return f"On average the model is {names.tendency(judged, direction)} by {points(abs(direction))}. {example}"


def _worst(curve: Curve | None) -> tuple[float, float] | None:
    """Mean score and mean fitted outcome rate of the tenth of the predictions that adds most to the squared error.

    Tenths follow the order of the scores; one that the data fill with a single score is that score.
    """
    if curve is None or not len(curve.score):
        return None
    passed = np.cumsum(curve.weight)
    tenth = np.minimum(((passed - curve.weight / 2) * (_TENTHS / passed[-1])).astype(int), _TENTHS - 1)
    share = np.bincount(tenth, curve.weight * (curve.score - curve.outcome) ** 2, _TENTHS)
    chosen = tenth == int(share.argmax())
    score, outcome = (
        np.average(values[chosen], weights=curve.weight[chosen]) for values in (curve.score, curve.outcome)
    )
    return float(score), float(outcome)


# ----------------------------------------------------------------------------------------------------
# How biased each estimator is on data like these, from datasets simulated in a world fitted to them

_DATASETS = 100
_MOST_ROWS = 10_000
_FEWEST_ROWS = 100
# Beyond as many rows a world is fitted to cells of neighbouring scores, whose sums are those of the rows.
_MOST_CELLS = 50_000
# How well a world fits is judged on datasets of the data's own size, which takes minutes beyond.
_MOST_FITTED = 1_000_000
_ESTIMATORS: dict[str, Estimator] = {
    "Rank series": tc.RankSeries(),
    "Debiased": tc.DebiasedECE(),
    "Monotone sweep": tc.SweepECE(),
    "Nearest neighbours": tc.NearestECE(),
    "Binned, 15 of equal width": tc.BinnedECE(norm=2),
    "Isotonic (CORP)": tc.estimators.IsotonicError(),
}


@dataclass(frozen=True)
class BiasRow:
    """One estimator over the simulated datasets."""

    name: str
    mean: float
    bias: float
    std: float
    rmse: float


@dataclass(frozen=True)
class BiasRecord:
    """Every estimator against the known truth; `unlike` where the simulated data differ from the given ones."""

    rows: tuple[BiasRow, ...]
    truth: float
    n: int
    datasets: int
    unlike: bool


def bias(profile: tc.profile.Profile, *, rng: int) -> BiasRecord | Absent:
    """Bias and spread of the root-mean-square estimators; absent where no world can be fitted."""
    rows = round(float(profile.size[0]))
    if rows < _FEWEST_ROWS:
        return Absent(f"{rows} rows are too few to simulate data like them; {_FEWEST_ROWS} are needed.")
    if rows > _MOST_FITTED:
        return Absent(
            f"With {rows:,} predictions the bias of an estimator is far below its interval; it is simulated for up to "
            f"{_MOST_FITTED:,}."
        )
    size = min(rows, _MOST_ROWS)
    try:
        simulated = tc.lab.how_biased(
            profile.coarsen(_MOST_CELLS), estimators=_ESTIMATORS, n=size, m=_DATASETS, rng=rng
        )
    except InputError as error:
        return Absent(f"No world could be fitted to these data: {error}.")
    return BiasRecord(
        rows=tuple(
            BiasRow(t.estimator_name, float(t.values.mean()), float(t.bias), float(t.std), float(t.rmse))
            for t in simulated.trials
        ),
        truth=float(simulated.trials[0].truth),
        n=size,
        datasets=_DATASETS,
        unlike=abs(float(simulated.goodness.z)) > 3,
    )


# ----------------------------------------------------------------------------------------------------
# The page in context: errors of several probabilities at once, of groups of classes, and among rows of chosen labels


@dataclass(frozen=True)
class ContextRow:
    """One error: what was judged, on which rows, and what a calibrated model would show."""

    judged: str
    where: str
    metric: str
    n: int
    error: float
    low: float | None
    high: float | None
    if_calibrated: float | None
    p_value: float | None

    @classmethod
    def of(cls, estimate: tc.Estimate) -> "ContextRow":
        low, high = (None, None) if estimate.interval is None else (estimate.interval.low, estimate.interval.high)
        return cls(
            estimate.lens,
            estimate.selection,
            estimate.metric,
            estimate.n,
            float(estimate.value),
            None if low is None else float(low),
            None if high is None else float(high),
            estimate.chance,
            None if estimate.p_value is None else float(estimate.p_value),
        )


@dataclass(frozen=True)
class Context:
    """The errors in context, and which rows the whole page is about (empty: all)."""

    rows: tuple[ContextRow, ...]
    where: str


@dataclass(frozen=True)
class Asked:
    """What was asked for beside the one probability that a page judges."""

    lens: Lens | None
    select: Selection | None

    @property
    def page_lens(self) -> Lens | None:
        """The lens of the page itself, which judges one probability."""
        return None if self.lens is None or self.lens.several else self.lens

    def page_rows(self, data: object) -> object:
        """The rows of the page: those selected, unless by their label, which even a calibrated model would fail."""
        chosen = isinstance(data, tc.Predictions) and self.select is not None and not self.select.uses_labels
        return self.select(data) if chosen and self.select is not None else data  # type: ignore[arg-type]

    def measured(self, data: object, level: float, rng: int) -> Context | None:
        """The errors asked for; None where nothing was."""
        if not isinstance(data, tc.Predictions) or (self.select is None and self.page_lens is self.lens):
            return None
        by_label = self.select is not None and self.select.uses_labels
        where = "" if by_label or self.select is None else f"{self.select}"
        errors = [
            tc.measure(data, lens=lens, select=self.select, level=level, rng=rng)
            for lens in self._lenses(data, by_label)
        ]
        return Context(tuple(ContextRow.of(estimate) for estimate in errors), where)

    def _lenses(self, preds: tc.Predictions, by_label: bool) -> Iterator[Lens]:
        if self.lens is not None and self.lens.several:
            yield from self.lens.parts(preds)
            yield self.lens
        elif by_label:
            yield self.lens or default_lens(preds)


def context_table(context: Context | None, level: float) -> str:
    """The errors in context as a table; nothing where none were asked for."""
    if context is None or not context.rows:
        return ""
    rows = [
        [
            Cell(row.judged),
            Cell(row.where.partition(" (")[0] or "all rows"),
            Cell(f"{row.n:,}", float(row.n)),
            Cell(f"{row.error:.4f}", row.error),
            Cell("" if row.low is None else f"{row.low:.4f} to {row.high:.4f}", row.high or 0.0),
            Cell("" if row.if_calibrated is None else f"{row.if_calibrated:.4f}", row.if_calibrated or 0.0),
            Cell(p_words(row.p_value)),
            Cell(row.metric),
        ]
        for row in context.rows
    ]
    intro = paragraph(
        "What the same predictions are worth to someone who reads several suggestions, acts on groups of classes, or meets "
        "the rows of some labels only. A binned error is never 0, and among the rows of one label even a calibrated model "
        "errs: compare with what a calibrated model with these outputs would show."
    )
    header = ["Judged", "Where", "Predictions", "Error", f"{level:.0%} interval", "If calibrated", "p-value", "Measure"]
    return intro + table("Errors in context", header, rows, id_="context-table")


# ----------------------------------------------------------------------------------------------------
# Everything a page says, as one record: computed here, drawn elsewhere

_ISOTONIC = tc.estimators.IsotonicError()
_SMOOTH = tc.SmoothECE()
# Rows beyond which an estimator is not resampled: every resample of smECE searches its bandwidth anew, a third of a second
# each for 20,000 rows.
_MOST_RESAMPLED: dict[Estimator, int] = {_SMOOTH: 5_000}
OTHERS: tuple[Estimator, ...] = (
    tc.DebiasedECE(),
    tc.SweepECE(),
    tc.NearestECE(),
    tc.estimators.KernelDensityECE(),
    tc.BinnedECE(scheme="width"),
    tc.BinnedECE(scheme="mass"),
    tc.BinnedECE(scheme="width", norm=np.inf),
    tc.estimators.LabelBinnedECE(),
    _SMOOTH,
    _ISOTONIC,
)


@dataclass(frozen=True)
class Setting:
    """What a page is asked for besides its data; see :func:`truecal.pages`."""

    tolerance: float = 0.02
    level: float = 0.95
    title: str = "Calibration report"
    source: str | None = None
    command: str | None = None
    fast: bool = False
    rng: int = 0
    scale: Mapping[str, tuple[float, float]] | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    select: Selection | None = None


@dataclass(frozen=True)
class Curves:
    """The calibration curves to draw."""

    smooth: CurveRecord | None
    isotonic: CurveRecord | None


@dataclass(frozen=True)
class Content:
    """All numbers and words of the page. Parts that were not asked for, or that the data cannot give, are None."""

    title: str
    source: str | None
    judged: str
    top_label: bool
    n: int
    class_count: int | None
    units: int | None
    sketch: SketchRecord | None
    level: float
    tolerance: float
    verdict: Verdict
    head: EstimateRecord
    absolute: EstimateRecord
    mean_score: float
    mean_outcome: float
    estimates: tuple[EstimateRecord, ...]
    classes: Classes | None
    groups: Groups | None
    likert: tuple[LikertRow, ...] | None
    segments: SegmentsRecord | Absent | None
    clinical: ClinicalRecord | Absent | None
    recalibration: RecalibrationRecord | Absent | None
    bias: BiasRecord | Absent | None
    cells: Cells
    most_bins: int
    curves: Curves
    reproduce: Provenance
    context: Context | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True)
class _Slow:
    """The parts of the page that take seconds; none of them on a fast page."""

    segments: SegmentsRecord | Absent | None = None
    clinical: ClinicalRecord | Absent | None = None
    recalibration: RecalibrationRecord | Absent | None = None
    bias: BiasRecord | Absent | None = None

    @classmethod
    def of(cls, source: Source, setting: Setting, progress: Callable[[str], object]) -> "_Slow":
        progress("searching for segments")
        segments, clinical = source.segments(setting.tolerance), source.clinical()
        progress("recalibrating on held-out folds")
        remedies = source.remedies()
        progress("simulating data like these")
        return cls(segments, clinical, remedies, bias(source.profile, rng=setting.rng))


def gather(
    data: object,
    setting: Setting,
    *,
    lens: Lens | None = None,
    by: str | Sequence[str] | None = None,
    progress: Callable[[str], object] = str,
) -> Content:
    """Compute the page. `progress` is told what is being computed."""
    progress("measuring")
    level, rng = setting.level, setting.rng
    columns = () if by is None else (by,) if isinstance(by, str) else tuple(by)
    options.between(setting.tolerance, "tolerance", 0, 1)
    check_lens(lens)
    asked = Asked(lens, setting.select)
    source = source_of(asked.page_rows(data), lens=asked.page_lens, by=columns, level=level, rng=rng)
    profile = source.profile
    head, absolute = source.measured()
    progress("asking every estimator")
    others = {estimator: _other(estimator, source, fast=setting.fast) for estimator in OTHERS}
    progress("judging groups")
    groups = source.groups()
    progress("going through classes")
    classes = source.classes()
    progress("judging low, medium and high confidence")
    likert = source.likert(setting.scale)
    slow = _Slow() if setting.fast else _Slow.of(source, setting, progress)
    smooth, steps, cells = thinned(head.curve), thinned(others[_ISOTONIC].curve, steps=True), cells_of(profile)
    confidence, rate = (float(profile.sums(name, profile.whole())[0, 0] / profile.total[0]) for name in ("c", "y"))
    settings = {"level": level, "tolerance": setting.tolerance, "lens": source.judged, "by": source.by, "rng": rng}
    progress("measuring in context")
    return Content(
        title=setting.title,
        source=setting.source,
        judged=source.judged,
        top_label=source.top_label,
        n=head.n,
        class_count=source.class_count,
        units=source.units,
        sketch=source.sketch(head),
        level=level,
        tolerance=setting.tolerance,
        verdict=judge(head, tolerance=setting.tolerance, judged=source.judged),
        head=EstimateRecord.of(head, level=level),
        absolute=EstimateRecord.of(absolute, level=level),
        mean_score=confidence,
        mean_outcome=rate,
        estimates=tuple(EstimateRecord.of(e, level=level) for e in (head, absolute, *others.values())),
        classes=classes,
        groups=groups,
        likert=likert,
        segments=slow.segments,
        clinical=slow.clinical,
        recalibration=slow.recalibration,
        bias=slow.bias,
        cells=replace(cells, scale=cells.scale / source.design_effect()),
        most_bins=MOST_BINS,
        curves=Curves(None if smooth is None else smooth.banded(profile, level), steps),
        reproduce=Provenance({"": source.fingerprint()}, setting.command, settings, setting.files),
        context=asked.measured(data, level, rng),
    )


def _other(estimator: Estimator, source: Source, *, fast: bool) -> tc.Estimate:
    """Another estimator on the same data, with a bootstrap interval where there is something to resample."""
    estimate = estimator(source.profile)
    slow = source.profile.rows > _MOST_RESAMPLED.get(estimator, source.profile.rows)
    interval = None if fast or slow else source.resampled(estimator)
    return estimate if interval is None else estimate.but(interval=interval)
