"""What an estimator is: a small frozen value that you call, and that owns all that is particular to it.

The base class has a default for everything but the estimate itself: the interval is a bootstrap of rows, the test is consistency
resampling, a sketch leaves the value open by rounding only. An estimator that knows better overrides that one method.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Self

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.estimators.bins import Binning, Bins, root
from truecal.estimators.estimate import Curve, Estimate, Interval
from truecal.estimators.rank_series.clusters import ClusteredSeries
from truecal.estimators.rank_series.compare import Side
from truecal.estimators.resampling.bootstrap import FEW_RESAMPLES, Bootstrap, Method, bootstrap_cells
from truecal.estimators.resampling.fixed_bins import in_fixed_bins
from truecal.estimators.resampling.grouped import GroupDraws, in_grouped_bins
from truecal.estimators.resampling.redraw import Redrawn, against_redraws
from truecal.estimators.resampling.units import Units
from truecal.lenses.lens import Lens
from truecal.lenses.sample import Sample
from truecal.predictions.predictions import Predictions
from truecal.predictions.selection import Selection
from truecal.profile.binning import Cut
from truecal.profile.cell_profile import CellProfile
from truecal.profile.profile import Profile
from truecal.profile.sketch import Sketch
from truecal.types import Float64s, Indices

_GRID_ROUNDING = 1e-8  # of estimators that iterate or transform on a grid


@dataclass(frozen=True, eq=False)
class Findings:
    """What an estimator found beyond its number, for the Estimate."""

    power: Float64s
    bins: Bins | None = None
    warnings: tuple[str, ...] = ()
    curve: Curve | None = None
    interval: Interval | None = None
    settings: Mapping[str, Float64s] = field(default_factory=dict)  # what the estimator chose by itself, by dataset
    unselected: Float64s | None = None  # the power before anything was chosen from the data, where something is


@dataclass(frozen=True)
class SketchRange:
    """Between which powers the estimate of all rows lies, given the cells of a sketch."""

    low: float
    high: float
    bound: Literal["proved", "probed"] = "proved"
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Compared:
    """One of the models of a comparison: its error, its true error as each resample has it, and the p-value of calibration."""

    value: float
    drawn: Float64s
    p_value: float


@dataclass(frozen=True)
class Estimator(ABC):
    """A calibration-error estimator of a given norm."""

    # ------------------------------------------------------------------ what it is

    @property
    @abstractmethod
    def power_norm(self) -> float:
        """The p of the error (E |gap|^p)^(1/p)."""

    @property
    def metric(self) -> str:
        """What the number is called, where it is not the mean of gaps to the power p."""
        return ""

    @abstractmethod
    def find(self, profile: Profile) -> Findings:
        """The signed estimate of E |gap|^p of every dataset, with what lies behind it."""

    @property
    def unbiased(self) -> bool:
        """Whether the estimate of the power has no bias, so that an interval needs no test to reach down to zero."""
        return False

    @property
    def corrected(self) -> bool:
        """Whether bias is removed from the estimate, so that resamples scatter about their own mean, not about the plug-in."""
        return self.unbiased

    @property
    def target(self) -> str:
        """Which error its interval is for, where that is not the true error; empty where it is."""
        return ""

    @property
    def several(self) -> bool:
        """Whether it judges several probabilities of a row at once."""
        return False

    @property
    def folds(self) -> bool:
        """Whether it is a plain mean of absolute gaps over bins, to which noise adds what a folded normal has."""
        return False

    @property
    def by_rank(self) -> bool:
        """Whether it is unbiased and smooth in the rank of the score, so that resamples show its spread in few cells."""
        return False

    def fixed_cut(self, profile: Profile) -> Cut | None:
        """The cuts of its bins where the estimate depends on counts, mean scores and rates of fixed bins alone."""
        return None

    @property
    def fixed_binning(self) -> Binning | None:
        """Its bins where the estimate depends on counts, mean scores and rates in them alone."""
        return None

    def of_bins(self, bins: Bins) -> Float64s:
        """The power from such bins, shape (batch,)."""
        raise InputError(f"{type(self).__name__} cannot be computed from bins alone")

    def at_level(self, level: float, rng: int | np.random.Generator = 0) -> Self:
        """The same estimator with the level of its own interval, where it has one."""
        options.level(level)
        return self

    def without_interval(self) -> Self:
        """The same estimator for its value alone."""
        return self

    def own_lens(self, lens: Lens | None) -> Lens | None:
        """The lens to judge by: the one asked for, or the estimator's own where it has one."""
        return lens

    def chosen(self, preds: Predictions, select: Selection | None) -> tuple[Predictions, Selection | None]:
        """The rows to judge, and the selection that chose them."""
        return (preds if select is None else select(preds)), select

    def of_samples(self, samples: Iterable[Sample], shares: Float64s | None, rng: np.random.Generator) -> Estimate:
        """The Estimate of samples of several probabilities, for estimators that judge those."""
        raise InputError(f"{type(self).__name__} judges one probability; for several use tc.GeneralizedECE")

    def compared(
        self,
        samples: Iterable[Sample],
        shares: Float64s | None,
        units: Indices,
        resamples: int,
        rng: np.random.Generator,
    ) -> Compared:
        """What a comparison of models needs, for estimators that judge several probabilities."""
        raise InputError(f"{type(self).__name__} has no paired comparison; use tc.GeneralizedECE, or one probability")

    # ------------------------------------------------------------------ asking it

    def root(self, power: Float64s) -> Float64s:
        """From the signed p-th power to an error: negative estimates show as 0."""
        return root(power, self.power_norm)

    def values(self, profile: Profile) -> Float64s:
        """The error of every dataset of a batch and nothing else, shape (batch,)."""
        return self.root(self.find(profile).power)

    def __call__(self, data: Profile | Sketch | Sample) -> Estimate:
        """The full Estimate; for a batch its numbers are arrays. From a sketch it says how far it can be from that of all rows."""
        if isinstance(data, Sketch):
            data = data.to_profile()
        elif isinstance(data, Sample):
            if not data.independent:
                raise InputError("rows of this sample belong together; use tc.measure, which knows how to judge units")
            data = data.profile
        if not isinstance(data, Profile):
            raise InputError(
                f"{type(self).__name__} measures a Profile, not {type(data).__name__}; "
                "use tc.calibration_error(y_true, y_prob), or a lens such as tc.TopLabel()(predictions)"
            )
        estimate = self.complete(data)
        cells = CellProfile.of(data)
        return estimate if cells is None else self._from_sketch(estimate, cells)

    def complete(self, profile: Profile) -> Estimate:
        """The Estimate with all that this estimator offers (an interval by formula, a curve)."""
        return self.report(profile, self.found(profile))

    def found(self, profile: Profile) -> Findings:
        """:meth:`find`, asked once of a single dataset: its interval rests on the same findings."""
        if not profile.single:
            return self.find(profile)
        # the estimator is kept with its findings, so that no other can have its id
        return profile.once(f"found {id(self)}", lambda rows: (self, self.find(rows)))[1]

    def report(self, profile: Profile, findings: Findings) -> Estimate:
        """The Estimate built from findings."""

        def shown(values: Float64s) -> float | Float64s:
            return float(values[0]) if profile.single else values

        whole = profile.whole()
        direction = (profile.sums("c", whole) - profile.sums("y", whole))[:, 0] / profile.total
        return Estimate(
            value=shown(self.root(findings.power)),
            power=shown(findings.power),
            n=round(float(profile.total.max())) if profile.counted else profile.rows,
            effective_n=shown(profile.size),
            estimator=self,
            norm=self.power_norm,
            direction=shown(direction),
            bins=findings.bins,
            curve=findings.curve,
            interval=findings.interval,
            warnings=findings.warnings,
            settings=findings.settings,
        )

    # ------------------------------------------------------------------ how sure it is

    def resampled(
        self, profile: Profile, *, resamples: int, level: float, rng: np.random.Generator, method: Method = "percentile"
    ) -> Bootstrap:
        """The distribution of the estimate over resamples of one dataset of independent rows."""
        cut = self.fixed_cut(profile) if method != "bca" else None
        if cut is None:
            return bootstrap_cells(self, profile, resamples=resamples, level=level, method=method, rng=rng)
        return in_fixed_bins(self, profile, cut, resamples=resamples, level=level, method=method, rng=rng)

    def interval(self, profile: Profile, *, level: float = 0.95, rng: int | np.random.Generator = 0) -> Interval:
        """Confidence interval of one dataset of independent rows: by formula where there is one, else by resampling."""
        options.level(level)
        by_formula = self.at_level(level).complete(profile).interval
        if by_formula is not None:
            return by_formula
        resamples = 1000 if self.fixed_cut(profile) is not None else FEW_RESAMPLES
        return self.resampled(profile, resamples=resamples, level=level, rng=options.generator(rng)).interval()

    def in_groups(self, sample: Sample, draws: GroupDraws, level: float) -> Bootstrap | None:
        """The distribution over given draws of groups of independent rows; None: only :meth:`resampled` knows it."""
        cut = self.fixed_cut(sample.profile)
        return None if cut is None else in_grouped_bins(self, sample, cut, draws, level)

    def test(self, profile: Profile, *, resamples: int = 999, rng: int | np.random.Generator = 0) -> Redrawn:
        """Is the estimate larger than for a calibrated model with these scores? (Consistency resampling.)"""
        return against_redraws(profile, self.values, resamples=resamples, rng=rng)

    def of_clusters(self, series: ClusteredSeries, level: float) -> tuple[float, float, Interval] | None:
        """Value, power and interval that count clusters, from the rank series of them; None: clusters are resampled."""
        return None

    def side(self, data: Sample | Profile, units: Units | None = None) -> Side | None:
        """What a comparison of two models needs of one, on rows drawn as `units` say; None: they are resampled."""
        return None

    # ------------------------------------------------------------------ sketches

    def sketch_range(self, cells: CellProfile, estimate: Estimate) -> SketchRange:
        """What the cells of a sketch leave open; by default rounding alone, for estimators on a grid that cells never cross."""
        move = _GRID_ROUNDING + cells.rounding
        value, p = float(estimate.value), self.power_norm
        low, high = max(value - move, 0.0), min(value + move, 1.0)
        return SketchRange(low, high) if p in (1, np.inf) else SketchRange(low**p, high**p)

    def _from_sketch(self, estimate: Estimate, cells: CellProfile) -> Estimate:
        """The estimate from the cells of a sketch, with its distance to the estimate from all rows."""
        range_ = self.sketch_range(cells, estimate)
        value = float(estimate.value)
        ends = self.root(np.array([range_.low, range_.high]))
        error = max(float(ends[1]) - value, value - float(ends[0]), 0.0)
        return estimate.but(
            warnings=(*estimate.warnings, *range_.warnings),
            sketch_error=min(error + cells.rounding, 1.0),
            sketch_bound=range_.bound,
            n=estimate.n if cells.counted else cells.row_count,
        )


def check_estimator(estimator: object) -> None:
    """Refuse what is not an estimator."""
    options.instance(estimator, Estimator, "estimator", "one of truecal's, such as tc.SweepECE()")
