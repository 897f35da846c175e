"""The profile as the page carries it: prefix sums at every place where any offered binning cuts.

The browser never decides where a bin begins. Python's own edge and tie rules place the cuts of every offered number of bins, and
the page takes differences of the same prefix sums, so its errors equal :class:`truecal.BinnedECE`'s to the last digits.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

import truecal as tc
from truecal.errors import InputError
from truecal.estimators.base import Estimator
from truecal.estimators.estimate import Interval
from truecal.lenses.lens import Lens
from truecal.lenses.one_probability import default_lens
from truecal.pages.parts import (
    Classes,
    ClinicalRecord,
    Groups,
    LikertRow,
    RecalibrationRecord,
    SegmentsRecord,
    clinical_of,
    likert_rows,
    per_class,
    per_group,
    recalibration,
    segments_of,
)
from truecal.pages.records import Absent, fingerprint
from truecal.profile.binning import Cut
from truecal.types import Float64s, Indices

# ----------------------------------------------------------------------------------------------------
# The profile as the page carries it: prefix sums at every place where any offered binning cuts

MOST_BINS = 100  # equal-width edges of 1..100 bins are 3044 places, equal-mass ones as many: a bounded page for any n
_MOST_SWEEP_BINS = 1000


@dataclass(frozen=True)
class Cells:
    """Prefix sums at the cell borders, and for every binning which borders it uses."""

    weight: Float64s  # sum of weights below each border
    score: Float64s  # sum of scores below each border
    outcome: Float64s
    low: Float64s  # lowest score of each cell
    high: Float64s
    width: list[Indices]  # [b - 1]: borders of b bins of equal width
    mass: list[Indices]
    sweep: Indices | None  # borders of the monotone sweep's bins; None where there are too many to show
    scale: float  # sample size per weight, for the intervals of bins

    @property
    def alone(self) -> int:
        """How many cells hold a single row."""
        return int(np.count_nonzero(np.diff(self.weight) == 1))


def cells_of(profile: tc.profile.Profile) -> Cells:
    """The cells of a single dataset.

    >>> import truecal as tc
    >>> cells = cells_of(tc.profile.Profile.from_arrays([0.1, 0.1, 0.6, 0.9], [0, 1, 1, 1]))
    >>> cells.weight, cells.width[1]  # two bins of equal width: two rows each
    (array([0., 2., 3., 4.]), array([0, 1, 3]))
    """
    width = [_places(profile.width_cut(b)) for b in range(1, MOST_BINS + 1)]
    mass = [_places(profile.mass_cut(b)) for b in range(1, MOST_BINS + 1)]
    settled = int(tc.SweepECE().sweep(profile)[0][0])
    sweep = _places(profile.mass_cut(settled)) if settled <= _MOST_SWEEP_BINS else None
    borders = np.unique(np.concatenate([*width, *mass, *([] if sweep is None else [sweep])]))
    row, next_row = np.floor(borders).astype(np.intp), np.ceil(borders).astype(np.intp)
    cut = Cut(row[None, :], next_row[None, :], (borders - row)[None, :])
    weight, score, outcome = (profile.sums(name, cut)[0] for name in ("w", "c", "y"))
    # a row of a sketch is a cell that reaches from its lowest to its highest score
    low, high = (getattr(profile, end, profile.scores[0]) for end in ("low", "high"))
    return Cells(
        weight,
        score,
        outcome,
        low[row[:-1]].astype(np.float64),
        high[next_row[1:] - 1].astype(np.float64),
        [np.searchsorted(borders, rows) for rows in width],
        [np.searchsorted(borders, rows) for rows in mass],
        None if sweep is None else np.searchsorted(borders, sweep),
        float(profile.size[0] / profile.total[0]),
    )


def _places(cut: Cut) -> Float64s:
    """Where a cut lies, counted in rows; between two whole numbers where it splits a cell of a sketch."""
    return cut.below[0] + (0.0 if cut.fraction is None else cut.fraction[0])


# ----------------------------------------------------------------------------------------------------
# What a report is made from. Rows, a profile or a sketch answer the same questions, each as well as it can

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

    profile: tc.profile.Profile
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
        return tc.inference.bootstrap(
            estimator, self.profile, resamples=_RESAMPLES, level=self.level, rng=self.rng
        ).interval()

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
    kept: tc.lenses.Sample

    def samples(self, preds: tc.Predictions) -> Iterator[tc.lenses.Sample]:
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
        drawn = tc.inference.bootstrap(
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

    def __init__(self, profile: tc.profile.Profile, level: float, rng: int) -> None:
        super().__init__(level, rng)
        parts = (profile.scores, profile.outcomes, profile.weights, profile.squares, profile.products)
        self.profile = profile if profile.single else tc.profile.Profile(*parts, single=True)

    def measured(self) -> tuple[tc.Estimate, tc.Estimate]:
        return self._of_profile()

    def fingerprint(self) -> str:
        return fingerprint((self.profile.scores, self.profile.outcomes, self.profile.weights))


class SketchSource(ProfileSource):
    """A sketch, alone or as the answer of a scan."""

    def __init__(self, sketch: tc.Sketch, scan: tc.engines.Scan | None, level: float, rng: int) -> None:
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
    if isinstance(data, tc.engines.Scan | tc.Sketch):
        if lens is not None or by:
            raise InputError(
                "a sketch holds no rows; say lens= and by= where it is made: tc.scan(..., lens=..., by=...)"
            )
        scan = data if isinstance(data, tc.engines.Scan) else None
        if scan is not None and any(len(sketches) > 1 for sketches in scan.sketches.values()):
            raise InputError(
                "the report judges one quantity; scan with TopLabel() or OneClass(name) instead of ClassWise()"
            )
        return SketchSource(data.sketch if isinstance(data, tc.engines.Scan) else data, scan, level, rng)
    if isinstance(data, tc.profile.Profile) and data.batch == 1:
        if by:
            raise InputError("a Profile has no columns to group by; pass Predictions")
        return ProfileSource(data, level, rng)
    raise InputError(
        f"a report is made from Predictions, the Profile of one dataset, a Sketch or a Scan, not {type(data).__name__}"
    )
