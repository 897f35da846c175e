"""The estimator protocol: a small frozen value that you call on sorted scores and outcomes.

The base class has a default for everything but the norm and the estimate: the interval is a bootstrap of rows, the test
compares with redrawn outcomes, a sketch leaves the value open by rounding only. docs/add-an-estimator.md shows how to add one.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.estimators.bins import Bins
from truecal.estimators.bootstrap import resample_rows
from truecal.estimators.estimate import Curve, Estimate, Interval
from truecal.lenses.lens import Lens, Sample
from truecal.predictions.predictions import Predictions
from truecal.predictions.selection import Selection
from truecal.profile.cell_profile import CellProfile
from truecal.profile.profile import Profile
from truecal.profile.sketch import Sketch
from truecal.resampling.cells import CELLS, Counted
from truecal.resampling.draws import Redrawn, against_redraws
from truecal.special import root
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
        if hasattr(self, "level"):
            by_formula = with_level(self, level)._complete(profile).interval
            if by_formula is not None:
                return by_formula
        options.level(level)
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
        return _bound_by_sketch(self, estimate, data) if isinstance(data, CellProfile) else estimate

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


def mean_direction(sample: Sample) -> float:
    """Compute mean score minus frequency: of all explicit events, or of the most probable one where all are explicit."""
    if sample.implied is not None:
        scores, outcomes = sample.probs.sum(axis=1, dtype=np.float64), sample.labels != sample.implied
    else:
        top = sample.probs.argmax(axis=1)
        scores, outcomes = sample.probs[np.arange(len(sample)), top].astype(np.float64), top == sample.labels
    return float(np.average(scores, weights=sample.weights) - np.average(outcomes, weights=sample.weights))


AnyEstimator = TypeVar("AnyEstimator", bound=Estimator)


def with_level(estimator: AnyEstimator, level: float | None, rng: int | np.random.Generator = 0) -> AnyEstimator:
    """Give an estimator the level (and the seed) of its interval, where it has these options."""
    if not hasattr(estimator, "level"):
        return estimator
    changes: dict[str, Any] = {"level": level, "rng": rng} if hasattr(estimator, "rng") else {"level": level}
    return replace(estimator, **changes)


def report(estimator: Estimator, profile: Profile, findings: Findings) -> Estimate:
    """Build the Estimate from findings."""
    whole = profile.whole()
    direction = (profile.sums("c", whole) - profile.sums("y", whole))[:, 0] / profile.total
    value = root(findings.power, estimator.norm)
    numbers: Any = np.stack(np.broadcast_arrays(value, findings.power, profile.size, direction))
    value, power, size, direction = numbers[:, 0].tolist() if profile.single else numbers
    return Estimate(
        value=value,
        power=power,
        n=round(float(profile.total.max())) if profile.counted else profile.rows,
        effective_n=size,
        estimator=estimator,
        norm=estimator.norm,
        direction=direction,
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
    return replace(
        estimate,
        warnings=(*estimate.warnings, *bound.warnings),
        sketch_error=min(max(high - value, value - low, 0.0) + cells.rounding, 1.0),
        sketch_bound=bound.bound,
        n=estimate.n if cells.counted else cells.row_count,
    )


# ----------------------------------------------------------------------------------------------------
# Plain functions as estimators: f(scores, outcomes) -> float

ErrorFunction = Callable[[Float64s, Float64s], float]


@dataclass(frozen=True)
class FunctionEstimator(Estimator):
    """A calibration error by a function of scores and outcomes.

    `tc.measure`, `tc.calibration_error`, `tc.compare`, `tc.lab.bias` and others take the function itself. The interval
    resamples rows, the test redraws outcomes from the scores.

    Parameters
    ----------
    function : callable
        Takes scores, sorted and of shape (n,), and outcomes 0.0 or 1.0 of the same shape; returns an error, a finite
        number that is not negative.

    Raises
    ------
    InputError
        For rows with weights or in clusters and for sketches, which a function of scores and outcomes cannot take into
        account, and for a result that is not an error.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> def largest_excess(scores, outcomes):
    ...     return np.abs(np.cumsum(scores - outcomes)).max() / len(scores)
    >>> p = np.linspace(0.01, 0.99, 200)
    >>> y = np.random.default_rng(0).random(200) < p**2
    >>> est = tc.calibration_error(y, p, estimator=largest_excess)
    >>> round(est.value, 4), est.metric, est.value in est.interval
    (0.195, 'largest_excess', True)
    """

    function: ErrorFunction

    max_cells: ClassVar[int] = 4096

    def __post_init__(self) -> None:
        if not callable(self.function) or isinstance(self.function, type):
            raise InputError(f"function must be a function of scores and outcomes, not {self.function!r}")

    @property
    def norm(self) -> float:
        return 1.0

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def estimate(self, profile: Profile) -> Findings:
        self._refuse(profile)
        datasets = range(profile.batch)
        return Findings(np.array([self._call(*_rows(profile, dataset)) for dataset in datasets]))

    def sketch_bound(self, cells: CellProfile, estimate: Estimate) -> SketchBound:
        raise InputError(f"{self.name} is a function of rows, which a sketch does not have; use one of tc.estimators")

    def _refuse(self, profile: Profile) -> None:
        if isinstance(profile, CellProfile):
            raise InputError(
                f"{self.name} is a function of rows, which a sketch does not have; use one of tc.estimators"
            )
        if profile.weights is not None and not isinstance(profile, Counted):
            raise InputError(
                f"{self.name} is a function of scores and outcomes and takes no weights; drop sample_weight"
            )
        if profile.units is not None and len(np.unique(profile.units)) < profile.rows:
            raise InputError(
                f"{self.name} is a function of scores and outcomes and takes no clusters; use one of tc.estimators"
            )

    def _call(self, scores: Float64s, outcomes: Float64s) -> float:
        value = self.function(scores, outcomes)
        if not options.is_number(value) or not 0 <= value < np.inf:
            raise InputError(f"{self.name} returned {value!r}; an error is a finite number that is not negative")
        return float(value)


def _rows(profile: Profile, dataset: int) -> tuple[Float64s, Float64s]:
    """Take scores and outcomes of one dataset; counted cells are written out as rows."""
    scores = profile.scores[dataset % len(profile.scores)].astype(np.float64)
    outcomes = profile.outcomes[dataset % len(profile.outcomes)].astype(np.float64)
    if profile.weights is None:
        return scores, outcomes
    counts = profile.weights[dataset % len(profile.weights)]
    ones = np.rint(counts * outcomes).astype(np.int64)
    zeros = np.maximum(np.rint(counts).astype(np.int64) - ones, 0)
    numbers = np.stack([zeros, ones], axis=1).ravel()
    return np.repeat(np.repeat(scores, 2), numbers), np.repeat(np.tile([0.0, 1.0], len(scores)), numbers)


def as_estimator(estimator: Estimator | ErrorFunction) -> Estimator:
    """Take an estimator, or a plain function as one; refuse anything else."""
    if not isinstance(estimator, Estimator) and callable(estimator) and not isinstance(estimator, type):
        return FunctionEstimator(estimator)
    options.instance(
        estimator,
        Estimator,
        "estimator",
        "one of truecal's, such as tc.SweepECE(), or a function of scores and outcomes",
    )
    return estimator  # type: ignore[return-value]
