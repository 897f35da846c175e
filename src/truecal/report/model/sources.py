"""What a report is made from. Rows, a profile or a sketch answer the same questions, each as well as it can."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

import truecal as tc
from truecal.errors import InputError
from truecal.estimate import Estimator, Interval
from truecal.lens import Lens, default_lens
from truecal.report.model.breakdown import Classes, Groups, LikertRow, likert_rows, per_class, per_group
from truecal.report.model.recalibration import RecalibrationRecord, recalibration
from truecal.report.model.segments import ClinicalRecord, SegmentsRecord, clinical_of, segments_of
from truecal.report.provenance import fingerprint
from truecal.report.records import Absent

_RESAMPLES = 200


@dataclass(frozen=True)
class SketchRecord:
    """How far a page made from a sketch is from one made of all rows."""

    cells: int
    error: float
    bound: str | None
    engine: str | None


class Source(ABC):
    """The data of a page at one level and seed. What a kind of data cannot answer is None."""

    profile: tc.Profile
    judged: str
    top_label = False
    class_count: int | None = None
    by: str | None = None
    engine: str | None = None
    units: int | None = None  # number of clusters, where rows are not independent

    def __init__(self, level: float, rng: int) -> None:
        self.level, self.rng = level, rng

    @abstractmethod
    def measured(self) -> tuple[tc.Estimate, tc.Estimate]:
        """The rank-series estimates of the root-mean-square and of the mean absolute error, with interval and test."""

    @abstractmethod
    def fingerprint(self) -> str:
        """SHA-256 of the data."""

    def resampled(self, estimator: Estimator) -> Interval | None:
        """The bootstrap interval of another estimator."""
        if self.profile.rows < 2:
            return None
        return tc.bootstrap(estimator, self.profile, resamples=_RESAMPLES, level=self.level, rng=self.rng).interval()

    def design_effect(self) -> float:
        """By how much clusters enlarge the variance of a rate, against as many independent rows."""
        return 1.0

    def groups(self) -> Groups | None:
        """One row per group, where groups were asked for."""
        return None

    def classes(self) -> Classes | None:
        """One row per class, where there are more than two."""
        return None

    def likert(self, scale: Mapping[str, tuple[float, float]] | None) -> tuple[LikertRow, ...] | None:
        """Confidence in words; by default low, medium and high."""
        return None

    def remedies(self) -> RecalibrationRecord | Absent | None:
        """Recalibrators on held-out folds."""
        return None

    def segments(self, tolerance: float) -> SegmentsRecord | Absent | None:
        """Segments in which it is wrong, where columns were asked for."""
        return None

    def clinical(self) -> ClinicalRecord | Absent | None:
        """The numbers of a clinical validation, where a risk is judged."""
        return None

    def sketch(self, head: tc.Estimate) -> SketchRecord | None:
        """How far the page is from one made of all rows; None where it is that one."""
        if head.sketch_error is None:
            return None
        return SketchRecord(self.profile.rows, head.sketch_error, head.sketch_bound, self.engine)

    def _of_profile(self) -> tuple[tc.Estimate, tc.Estimate]:
        squared, absolute = (self._estimate(tc.RankSeries(norm=norm, level=self.level)) for norm in (2, 1))
        return squared, absolute

    def _estimate(self, estimator: tc.RankSeries) -> tc.Estimate:
        return estimator(self.profile).but(p_value=float(estimator.test(self.profile, rng=self.rng).p_value[0]))


@dataclass(frozen=True)
class Kept(Lens):
    """A lens that has looked already: it gives the one sample it saw, which is sorted once for the whole page."""

    lens: Lens
    kept: tc.Sample

    def samples(self, preds: tc.Predictions) -> Iterator[tc.Sample]:
        yield self.kept

    def describe(self, preds: tc.Predictions) -> str:
        return self.lens.describe(preds)

    @property
    def outcome_name(self) -> str:
        return self.lens.outcome_name


class RowsSource(Source):
    """Predictions, row by row, under a lens."""

    def __init__(self, preds: tc.Predictions, lens: Lens | None, by: Sequence[str], level: float, rng: int) -> None:
        super().__init__(level, rng)
        self.preds, self.columns = preds, by
        self.by = ", ".join(by) or None
        lens = default_lens(preds) if lens is None else lens
        if lens.shares(preds) is not None:
            raise InputError(
                "the report judges one quantity; its per-class table is always there, so leave out ClassWise()"
            )
        self.judged = lens.describe(preds)
        self.lens = Kept(lens, lens.sample(preds))
        self.profile = self.lens.kept.profile
        self.top_label = lens.outcome_name == "accuracy"
        self.class_count = preds.class_count
        if preds.clusters is not None:
            self.units = len(np.unique(preds.clusters))

    def measured(self) -> tuple[tc.Estimate, tc.Estimate]:
        head = tc.measure(self.preds, lens=self.lens, level=self.level, rng=self.rng)
        estimator = tc.RankSeries(norm=1, level=self.level)
        if self.preds.clusters is None:  # the test is the same for both norms: once is enough
            return head, estimator(self.profile).but(p_value=head.p_value)
        return head, tc.measure(self.preds, estimator=estimator, lens=self.lens, level=self.level, rng=self.rng)

    def resampled(self, estimator: Estimator) -> Interval | None:
        if self.preds.clusters is None:
            return super().resampled(estimator)
        drawn = tc.bootstrap(
            estimator, self.preds, lens=self.lens, resamples=_RESAMPLES, level=self.level, rng=self.rng
        )
        return drawn.interval()

    def design_effect(self) -> float:
        sample = self.lens.kept
        if self.preds.clusters is None or sample.units is None:
            return 1.0
        gap = sample.outcomes.astype(np.float64) - sample.scores
        weight = np.ones(len(gap)) if sample.weights is None else sample.weights
        gap = weight * (gap - np.average(gap, weights=weight))
        together = np.bincount(sample.units, gap)
        return max(1.0, float(together @ together) / max(float(gap @ gap), 1e-300))

    def fingerprint(self) -> str:
        return fingerprint((self.preds.probs, self.preds.labels, self.preds.weights))

    def groups(self) -> Groups | None:
        if not self.columns:
            return None
        return per_group(tc.subgroups(self.preds, self.columns, lens=self.lens.lens, level=self.level, rng=self.rng))

    def classes(self) -> Classes | None:
        return per_class(self.preds, level=self.level) if self.preds.class_count > 2 else None

    def likert(self, scale: Mapping[str, tuple[float, float]] | None) -> tuple[LikertRow, ...] | None:
        if not (self.preds.binary or self.top_label):
            return None
        return likert_rows(self.preds, scale, level=self.level, rng=self.rng)

    def remedies(self) -> RecalibrationRecord | Absent | None:
        return recalibration(self.preds, lens=self.lens.lens, level=self.level, rng=self.rng)

    def segments(self, tolerance: float) -> SegmentsRecord | Absent | None:
        if not self.columns:
            return None
        return segments_of(self.preds, self.columns, lens=self.lens.lens, level=self.level, tolerance=tolerance)

    def clinical(self) -> ClinicalRecord | Absent | None:
        if self.top_label or self.lens.kept.pooled:
            return None
        return clinical_of(self.preds, self.columns, lens=self.lens.lens, level=self.level, rng=self.rng)


class ProfileSource(Source):
    """The profile of one dataset: scores and outcomes without classes, columns or rows to regroup."""

    judged = "scores"

    def __init__(self, profile: tc.Profile, level: float, rng: int) -> None:
        super().__init__(level, rng)
        parts = (profile.scores, profile.outcomes, profile.weights, profile.squares, profile.products)
        self.profile = profile if profile.single else tc.Profile(*parts, single=True)

    def measured(self) -> tuple[tc.Estimate, tc.Estimate]:
        return self._of_profile()

    def fingerprint(self) -> str:
        return fingerprint((self.profile.scores, self.profile.outcomes, self.profile.weights))


class SketchSource(ProfileSource):
    """A sketch, alone or as the answer of a scan."""

    def __init__(self, sketch: tc.Sketch, scan: tc.Scan | None, level: float, rng: int) -> None:
        super().__init__(sketch.to_profile(), level, rng)
        self.scan = scan
        if scan is not None:
            self.judged, self.class_count = scan.judged, scan.classes
            self.top_label = scan.lens.outcome_name == "accuracy"
            self.by, self.engine = ", ".join(scan.by) or None, scan.engine

    def measured(self) -> tuple[tc.Estimate, tc.Estimate]:
        head, absolute = self._of_profile()
        return (head if self.scan is None else self.scan.noted(head)), absolute

    def groups(self) -> Groups | None:
        if self.scan is None or not self.scan.by:
            return None
        return per_group(tc.subgroups(self.scan, level=self.level, rng=self.rng))

    def segments(self, tolerance: float) -> SegmentsRecord | Absent | None:
        if self.scan is None or not self.scan.by:
            return None
        return segments_of(self.scan, self.scan.by, lens=None, level=self.level, tolerance=tolerance)


def source_of(data: object, *, lens: Lens | None, by: Sequence[str], level: float, rng: int) -> Source:
    """The source of a page; what cannot be one is refused."""
    if isinstance(data, tc.Predictions):
        return RowsSource(data, lens, by, level, rng)
    if isinstance(data, tc.Scan | tc.Sketch):
        if lens is not None or by:
            raise InputError(
                "a sketch holds no rows; say lens= and by= where it is made: tc.scan(..., lens=..., by=...)"
            )
        scan = data if isinstance(data, tc.Scan) else None
        if scan is not None and any(len(sketches) > 1 for sketches in scan.sketches.values()):
            raise InputError(
                "the report judges one quantity; scan with TopLabel() or OneClass(name) instead of ClassWise()"
            )
        return SketchSource(data.sketch if isinstance(data, tc.Scan) else data, scan, level, rng)
    if isinstance(data, tc.Profile) and data.batch == 1:
        if by:
            raise InputError("a Profile has no columns to group by; pass Predictions")
        return ProfileSource(data, level, rng)
    raise InputError(
        f"a report is made from Predictions, the Profile of one dataset, a Sketch or a Scan, not {type(data).__name__}"
    )
