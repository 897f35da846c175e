"""What a page of one model is made from: rows, a profile or a sketch, and the sums over cells that the page carries.

Bin edges are not computed in the browser: Python's edge and tie rules set the cuts of every offered number of bins, and
the page takes differences of the same prefix sums, so its errors equal those of `truecal.BinnedECE` to the last digits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import truecal as tc
from truecal.errors import InputError
from truecal.estimators.base import Estimator
from truecal.estimators.bins import distinct_cut
from truecal.lenses.lens import Lens
from truecal.lenses.one_probability import default_lens
from truecal.pages.records import fingerprint
from truecal.profile.binning import Cut
from truecal.types import Float64s, Indices

MAX_BINS = 100  # equal-width edges of 1..100 bins are 3044 edges, equal-mass ones as many: a bounded page for any n
_MAX_SWEEP_BINS = 1000


@dataclass(frozen=True)
class Cells:
    """Sums of weights, scores and outcomes below each of e edges (e,), extremes of the e - 1 cells, and the edges by binning.

    Lists of edges hold positions among all edges.
    """

    weight: Float64s  # sum of weights below each edge
    score: Float64s  # sum of scores below each edge
    outcome: Float64s
    low: Float64s  # lowest score of each cell
    high: Float64s
    width: list[Indices]  # [b - 1]: edges of b bins of equal width
    mass: list[Indices]
    sweep: Indices | None  # edges of the monotone sweep's bins; None where there are too many to show
    values: Indices | None  # edges between distinct scores; None where these are many
    scale: float  # sample size per weight, for the intervals of bins

    @property
    def single_rows(self) -> int:
        """Number of cells of weight 1: a single row."""
        return int(np.count_nonzero(np.diff(self.weight) == 1))


def cells_of(profile: tc.profile.Profile) -> Cells:
    """Return the prefix sums of a single dataset at all edges that any offered binning uses.

    >>> import truecal as tc
    >>> cells = cells_of(tc.profile.Profile.from_arrays([0.1, 0.1, 0.6, 0.9], [0, 1, 1, 1]))
    >>> cells.weight, cells.width[1]  # two bins of equal width: two rows each
    (array([0., 2., 3., 4.]), array([0, 1, 3]))
    """
    width = [_cut_positions(profile.width_cut(b)) for b in range(1, MAX_BINS + 1)]
    mass = [_cut_positions(profile.mass_cut(b)) for b in range(1, MAX_BINS + 1)]
    sweep_bins = int(tc.SweepECE().sweep(profile)[0][0])
    sweep = _cut_positions(profile.mass_cut(sweep_bins)) if sweep_bins <= _MAX_SWEEP_BINS else None
    values = _cut_positions(distinct_cut(profile)) if tc.inference.stated_values(profile) else None
    edges = np.unique(np.concatenate([*width, *mass, *(part for part in (sweep, values) if part is not None)]))
    # an edge inside a cell of a sketch lies between two rows: its fraction says how much of the cell is below
    row, next_row = np.floor(edges).astype(np.intp), np.ceil(edges).astype(np.intp)
    cut = Cut(row[None, :], next_row[None, :], (edges - row)[None, :])
    weight, score, outcome = (profile.sums(name, cut)[0] for name in ("w", "c", "y"))
    # a row of a sketch is a cell that reaches from its lowest to its highest score
    low, high = (getattr(profile, end, profile.scores[0]) for end in ("low", "high"))
    return Cells(
        weight,
        score,
        outcome,
        low[row[:-1]].astype(np.float64),
        high[next_row[1:] - 1].astype(np.float64),
        [np.searchsorted(edges, rows) for rows in width],
        [np.searchsorted(edges, rows) for rows in mass],
        None if sweep is None else np.searchsorted(edges, sweep),
        None if values is None else np.searchsorted(edges, values),
        float(profile.size[0] / profile.total[0]),
    )


def _cut_positions(cut: Cut) -> Float64s:
    """Return the positions of a cut in sorted rows, shape (cuts,); fractional where it splits a cell of a sketch."""
    return cut.below[0] + (0.0 if cut.fraction is None else cut.fraction[0])


@dataclass(frozen=True)
class CachedLens(Lens):
    """A lens with the sample of one set of predictions, computed and sorted once; other predictions give the same sample."""

    lens: Lens
    sample_: tc.lenses.Sample

    def samples(self, preds: tc.Predictions) -> Iterator[tc.lenses.Sample]:
        """Yield the stored sample."""
        yield self.sample_

    def describe(self, preds: tc.Predictions) -> str:
        """Return the description that the lens gives of itself."""
        return self.lens.describe(preds)

    @property
    def outcome_name(self) -> str:
        """What the lens calls an outcome of 1: accuracy or frequency."""
        return self.lens.outcome_name


@dataclass(frozen=True, eq=False)
class PageSource:
    """Data of a page at one level and seed, with one interface for rows in memory, sketches and scans."""

    data: tc.Predictions | tc.Sketch | tc.engines.Scan
    profile: tc.profile.Profile
    level: float
    rng: int
    lens: Lens | None = None  # of rows; a sketch and a scan were made with theirs
    lens_name: str = "scores"
    by: tuple[str, ...] = ()
    top_label: bool = False
    class_count: int | None = None
    cached: CachedLens | None = None

    @property
    def preds(self) -> tc.Predictions | None:
        """The rows, None for a sketch or a scan."""
        return self.data if isinstance(self.data, tc.Predictions) else None

    @property
    def multilabel(self) -> bool:
        """Whether rows have several labels, which are judged together."""
        return self.preds is not None and self.preds.multilabel

    @property
    def scan(self) -> tc.engines.Scan | None:
        """The scan, None for rows or a sketch."""
        return self.data if isinstance(self.data, tc.engines.Scan) else None

    @property
    def clusters(self) -> int:
        """Number of clusters; 0 without clusters and for sketches and scans."""
        return 0 if self.preds is None or self.preds.clusters is None else len(np.unique(self.preds.clusters))

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments `lens`, `level` and `rng` of every call that judges the rows."""
        return {"lens": self.lens, "level": self.level, "rng": self.rng}

    def measure(self, estimator: Estimator | None = None) -> tc.Estimate:
        """Measure the error with interval and test; by rank series unless an estimator is given.

        Of rows the stored sample of the lens is measured, so that they are not sorted again; a scan measures itself.
        """
        if isinstance(self.data, tc.engines.Scan):
            return self.data.measure(estimator=estimator, level=self.level, rng=self.rng)
        return tc.measure(self.data, estimator=estimator, **{**self.options, "lens": self.cached})

    def subgroups(self) -> list[tc.groups.Subgroups]:
        """Measure the groups of every column in `by`, a table each; those of a scan in one table, by all columns together."""
        data: Any = self.data
        if self.scan is not None and self.by:
            return [tc.subgroups(data, level=self.level, rng=self.rng)]
        return [tc.subgroups(data, name, **self.options) for name in self.by]

    def audit(self, tolerance: float) -> Any:
        """Search the columns in `by` for segments with an error above the tolerance (`tc.audit`); None without columns."""
        if not self.by:
            return None
        data: Any = self.data
        return tc.audit(data, by=list(self.by), lens=self.lens, level=self.level, tolerance=tolerance)

    def design_effect(self) -> float:
        """Return the variance of the mean residual with clusters over that of independent rows, at least 1; 1 without clusters.

        It is sum_g (sum_(i in g) r_i)^2 / sum_i r_i^2 with r_i = w_i (y_i - p_i - mean residual).
        """
        if self.preds is None or self.lens is None or self.preds.clusters is None:
            return 1.0
        sample = self.lens.sample(self.preds)
        if sample.units is None:
            return 1.0
        residual = sample.outcomes.astype(np.float64) - sample.scores
        weight = np.ones(len(residual)) if sample.weights is None else sample.weights
        residual = weight * (residual - np.average(residual, weights=weight))
        cluster_sums = np.bincount(sample.units, residual)
        return max(1.0, float(cluster_sums @ cluster_sums) / max(float(residual @ residual), 1e-300))

    def fingerprint(self) -> str:
        """Return the SHA-256 of the judged arrays: probabilities, labels and weights of rows, or scores, outcomes and weights of
        cells.
        """
        if self.preds is not None:
            return fingerprint((self.preds.probs, self.preds.labels, self.preds.weights))
        return fingerprint((self.profile.scores, self.profile.outcomes, self.profile.weights))


def source_of(
    data: tc.Predictions | tc.Sketch | tc.engines.Scan, *, lens: Lens | None, by: Sequence[str], level: float, rng: int
) -> PageSource:
    """Return the source of a page, with the default lens (all labels pooled, if multilabel) unless one is given.

    Refuses a lens on several datasets such as ClassWise, and a lens or columns for sketches and scans.
    """
    if not isinstance(data, tc.Predictions) and (lens is not None or by):
        raise InputError(
            "a sketch holds no rows; give lens= and by= to the scan that makes it: tc.scan(..., lens=..., by=...)"
        )
    if isinstance(data, tc.Sketch):
        return PageSource(data, data.to_profile(), level, rng)
    if isinstance(data, tc.engines.Scan):
        if data.shares is not None:
            raise InputError(
                "the report judges one quantity; scan with TopLabel() or OneClass(name) instead of ClassWise()"
            )
        top_label = data.lens.outcome_name == "accuracy"
        cells, columns = data.sketch.to_profile(), tuple(data.by)
        return PageSource(data, cells, level, rng, None, data.lens_name, columns, top_label, data.classes)
    lens = (tc.AllLabels() if data.multilabel else default_lens(data)) if lens is None else lens
    if lens.shares(data) is not None:
        raise InputError(
            "the report judges one quantity; its per-class table is always there, so leave out ClassWise()"
        )
    cached, top_label = CachedLens(lens, lens.sample(data)), lens.outcome_name == "accuracy"
    words, count, profile = lens.describe(data), data.class_count, cached.sample_.profile
    return PageSource(data, profile, level, rng, lens, words, tuple(by), top_label, count, cached)
