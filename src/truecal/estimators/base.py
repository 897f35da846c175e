"""The estimator protocol: a small frozen value that you call on sorted scores and outcomes.

The base class has a default for everything but the norm and the estimate: the interval is a bootstrap of rows, the test
compares with redrawn outcomes, a sketch leaves the value open by rounding only. docs/add-an-estimator.md shows how to add one.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar, Literal, TypeVar

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.estimators.bins import Bins, root
from truecal.estimators.bootstrap import resample_rows
from truecal.estimators.estimate import Curve, Estimate, Interval
from truecal.lenses.lens import Lens
from truecal.lenses.sample import Sample
from truecal.predictions.predictions import Predictions
from truecal.predictions.selection import Selection
from truecal.profile.cell_profile import CellProfile
from truecal.profile.profile import Profile
from truecal.profile.sketch import Sketch
from truecal.resampling.cells import CELLS
from truecal.resampling.redraws import Redrawn, against_redraws
from truecal.types import Float64s

_GRID_ROUNDING = 1e-8  # of estimators that iterate or transform on a grid
Bias = Literal["plug-in", "reduced", "none"]


@dataclass(frozen=True, eq=False)
class Findings:
    """The estimate of every dataset of a batch, and what belongs to it."""

    power: Float64s
    bins: Bins | None = None
    warnings: tuple[str, ...] = ()
    curve: Curve | None = None
    interval: Interval | None = None
    settings: Mapping[str, Float64s] = field(default_factory=dict)  # what the estimator chose by itself, by dataset
    unselected: Float64s | None = None  # the power before anything is chosen from the data


@dataclass(frozen=True)
class SketchBound:
    """Bounds of the power of all rows, given the cells of a sketch."""

    low: float
    high: float
    bound: Literal["proved", "probed"] = "proved"
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Estimator(ABC):
    """A calibration-error estimator of a given norm."""

    max_cells: ClassVar[int] = CELLS  # distinct scores of a resample; more are joined

    @property
    @abstractmethod
    def norm(self) -> float:
        """The p of the error (E |gap|^p)^(1/p)."""

    @property
    def name(self) -> str:
        """What the number is called, where it is not the mean of gaps to the power p."""
        return ""

    @property
    def estimand(self) -> str:
        """The error that the interval is for, where that is not the true error; empty where it is."""
        return ""

    @property
    def bias(self) -> Bias:
        """Whether the estimate of the power is a plug-in, has its bias reduced, or has none.

        Resamples of a plug-in scatter about the plug-in of the distribution they are drawn from, others about their own
        mean. An interval of an unbiased estimate needs no test to reach down to zero.
        """
        return "plug-in"

    @abstractmethod
    def estimate(self, profile: Profile) -> Findings:
        """Estimate E |gap|^p of every dataset; a debiased estimate may be negative."""

    def values(self, profile: Profile) -> Float64s:
        """Compute the error of every dataset of a batch and nothing else, shape (batch,)."""
        return root(self.estimate(profile).power, self.norm)

    def from_bins(self, bins: Bins) -> Float64s:
        """Compute the power from bins, shape (batch,), where counts, mean scores and rates in bins are all it needs."""
        raise InputError(f"{type(self).__name__} cannot be computed from bins alone")

    def interval(self, profile: Profile, *, level: float = 0.95, rng: int | np.random.Generator = 0) -> Interval:
        """Compute a confidence interval of one dataset of independent rows: by formula if there is one, else resampled."""
        options.level(level)
        by_formula = with_level(self, level)._complete(profile).interval
        if by_formula is not None:
            return by_formula
        return resample_rows(self, profile, level=level, rng=options.generator(rng)).interval()

    def test(self, profile: Profile, *, resamples: int = 999, rng: int | np.random.Generator = 0) -> Redrawn:
        """Test every dataset for calibration, with outcomes redrawn from the scores."""
        return against_redraws(profile, self.values, resamples=resamples, rng=rng)

    def sketch_bound(self, cells: CellProfile, estimate: Estimate) -> SketchBound:
        """Bound the power of all rows from the cells of a sketch; by default by rounding alone."""
        change = _GRID_ROUNDING + cells.rounding
        value, p = float(estimate.value), self.norm
        low, high = max(value - change, 0.0), min(value + change, 1.0)
        return SketchBound(low, high) if p in (1, np.inf) else SketchBound(low**p, high**p)

    def __call__(self, data: Profile | Sketch | Sample) -> Estimate:
        """Measure a profile, a sample of independent rows, or a sketch; a batch gives arrays."""
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
        estimate = self._complete(data)
        cells = CellProfile.of(data)
        return estimate if cells is None else _bound_by_sketch(self, estimate, cells)

    def _complete(self, profile: Profile) -> Estimate:
        """Estimate with all that this estimator offers by formula (an interval, a curve)."""
        return report(self, profile, self.estimate(profile))


class VectorEstimator(Estimator):
    """An estimator that judges several probabilities of a row at once: samples, not sorted scores."""

    def estimate(self, profile: Profile) -> Findings:
        raise InputError(f"{type(self).__name__} judges rows, not sorted scores; use tc.measure(preds, estimator=...)")

    @abstractmethod
    def of_samples(self, samples: Iterable[Sample], shares: Float64s | None, rng: np.random.Generator) -> Estimate:
        """Measure the samples of a lens, weighted by `shares` where there are several."""

    def own_lens(self, lens: Lens | None) -> Lens | None:
        """Choose the lens: the one asked for, or the estimator's own."""
        return lens

    def chosen(self, preds: Predictions, select: Selection | None) -> tuple[Predictions, Selection | None]:
        """Choose the rows, and the selection that chose them."""
        return (preds if select is None else select(preds)), select


AnyEstimator = TypeVar("AnyEstimator", bound=Estimator)


def with_level(estimator: AnyEstimator, level: float | None, rng: int | np.random.Generator = 0) -> AnyEstimator:
    """Give an estimator the level (and the seed) of its interval, where it has these options."""
    if level is not None:
        options.level(level)
    changes = {"level": level, "rng": rng}
    names = {option.name for option in fields(estimator)}
    return (
        replace(estimator, **{key: value for key, value in changes.items() if key in names})
        if "level" in names
        else estimator
    )


def report(estimator: Estimator, profile: Profile, findings: Findings) -> Estimate:
    """Build the Estimate from findings."""

    def numbers(values: Float64s) -> float | Float64s:
        return float(values[0]) if profile.single else values

    whole = profile.whole()
    direction = (profile.sums("c", whole) - profile.sums("y", whole))[:, 0] / profile.total
    return Estimate(
        value=numbers(root(findings.power, estimator.norm)),
        power=numbers(findings.power),
        n=round(float(profile.total.max())) if profile.counted else profile.rows,
        effective_n=numbers(profile.size),
        estimator=estimator,
        norm=estimator.norm,
        direction=numbers(direction),
        bins=findings.bins,
        curve=findings.curve,
        interval=findings.interval,
        warnings=findings.warnings,
        settings=findings.settings,
    )


def _bound_by_sketch(estimator: Estimator, estimate: Estimate, cells: CellProfile) -> Estimate:
    """Add to an estimate from the cells of a sketch its distance to the estimate from all rows."""
    bound = estimator.sketch_bound(cells, estimate)
    value = float(estimate.value)
    low, high = root(np.array([bound.low, bound.high]), estimator.norm).tolist()
    return estimate.but(
        warnings=(*estimate.warnings, *bound.warnings),
        sketch_error=min(max(high - value, value - low, 0.0) + cells.rounding, 1.0),
        sketch_bound=bound.bound,
        n=estimate.n if cells.counted else cells.row_count,
    )
