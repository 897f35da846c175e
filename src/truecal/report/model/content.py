"""Everything a page says, as one record: computed here, drawn elsewhere."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

import truecal as tc
from truecal import options
from truecal.estimate import Estimator
from truecal.lens import Lens, check_lens
from truecal.report.model.bias import BiasRecord, bias
from truecal.report.model.breakdown import Classes, Groups, LikertRow
from truecal.report.model.cells import MOST_BINS, Cells, cells_of
from truecal.report.model.context import Asked, Context
from truecal.report.model.curves import CurveRecord, thinned
from truecal.report.model.recalibration import RecalibrationRecord
from truecal.report.model.segments import ClinicalRecord, SegmentsRecord
from truecal.report.model.sources import SketchRecord, Source, source_of
from truecal.report.model.verdict import Verdict, judge
from truecal.report.provenance import Provenance
from truecal.report.records import OPTIONAL, Absent, EstimateRecord
from truecal.select import Selection

_ISOTONIC = tc.IsotonicError()
_SMOOTH = tc.SmoothECE()
# Rows beyond which an estimator is not resampled: every resample of smECE searches its bandwidth anew, a third of a second
# each for 20,000 rows.
_MOST_RESAMPLED: dict[Estimator, int] = {_SMOOTH: 5_000}
OTHERS: tuple[Estimator, ...] = (
    tc.DebiasedECE(),
    tc.SweepECE(),
    tc.NearestECE(),
    tc.KernelDensityECE(),
    tc.BinnedECE(scheme="width"),
    tc.BinnedECE(scheme="mass"),
    tc.BinnedECE(scheme="width", norm=np.inf),
    tc.LabelBinnedECE(),
    _SMOOTH,
    _ISOTONIC,
)


@dataclass(frozen=True)
class Setting:
    """What a page is asked for besides its data; see :func:`truecal.report`."""

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
