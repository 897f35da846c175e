"""The estimator protocol: a small frozen value that you call on sorted scores and outcomes.

The base class has a default for everything but the norm and the estimate: the interval is a bootstrap of rows, the test
compares with redrawn outcomes, a sketch leaves the value open by rounding only. docs/add-an-estimator.md shows how to add one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.estimators.bins import Bins, SignBounds, debiased_gaps, mean_usable, sign_bounds
from truecal.estimators.estimate import Curve, Estimate, Interval
from truecal.lenses.lens import Lens, Sample
from truecal.predictions.predictions import Predictions
from truecal.predictions.selection import Selection
from truecal.profile.binning import Cut
from truecal.profile.cell_profile import CellProfile
from truecal.profile.profile import Profile
from truecal.profile.sketch import Sketch
from truecal.resampling.cells import CELLS, Counted, cell_starts, collapse_at
from truecal.resampling.draws import (
    REDRAWS,
    CellBatch,
    RedrawTest,
    RowSums,
    block_sizes,
    exceedance,
    redraw_test,
)
from truecal.special import positive, root
from truecal.types import Float64s

_GRID_ROUNDING = 1e-8  # derived: ten times the precision of a bandwidth found by iteration
Bias = Literal["plug-in", "reduced", "none"]
Method = Literal["percentile", "basic", "bca"]
METHODS = ("percentile", "basic", "bca")
FEW_RESAMPLES = 200  # by choice: the quantile of a tail of 2.5 % varies by a tenth of the half-width
_NORMAL_TAILS = 100  # derived: of fewer resamples, two or less lie beyond a quantile of 2.5 %


@dataclass(frozen=True, eq=False)
class Findings:
    """The estimated power (error^norm) of every dataset of a batch, and what else the estimator computed."""

    power: Float64s  # (batch,) the error to the power of the norm; negative values are possible where it is debiased
    bins: Bins | None = None
    warnings: tuple[str, ...] = ()
    curve: Curve | None = None
    interval: Interval | None = None
    settings: Mapping[str, Float64s] = field(default_factory=dict)  # what the estimator chose by itself, by dataset
    unselected: Float64s | None = None  # (batch,) the power before anything is chosen from the data


@dataclass(frozen=True)
class SketchBound:
    """Bounds of the power (error^norm) that all rows have, given the cells of a sketch.

    "proved": they hold for any rows in the cells; "probed": as far as orders of rows that were tried show.
    """

    low: float
    high: float
    bound: Literal["proved", "probed"] = "proved"


@dataclass(frozen=True)
class Estimator(ABC):
    """Estimate a calibration error of a given norm.

    The base class of all estimators of truecal: a small frozen value with options that is called with sorted scores.
    A subclass defines `norm` and `estimate`; everything else has a default. The interval is a bootstrap of rows, the test
    compares with outcomes redrawn from the scores, and a sketch leaves the value open by rounding only.

    See Also
    --------
    truecal.measure : Measure Predictions, with clusters, lenses and selections.

    Examples
    --------
    >>> import truecal as tc
    >>> profile = tc.profile.Profile.from_arrays([0.1, 0.2, 0.7, 0.8], [0, 1, 1, 0])
    >>> isinstance(tc.BinnedECE(), tc.estimators.Estimator), tc.BinnedECE(bins=2)(profile).value
    (True, 0.3)
    """

    max_cells: ClassVar[int] = CELLS  # distinct scores of a resample; more are joined

    @property
    @abstractmethod
    def norm(self) -> float:
        """The p of the error (E |gap|^p)^(1/p)."""

    @property
    def name(self) -> str:
        """Name of the error in words; empty for "mean absolute calibration error" and the like, which follow from the norm.

        >>> import truecal as tc
        >>> tc.BinnedECE().name, tc.estimators.KSError().name
        ('', 'Kolmogorov-Smirnov calibration error')
        """
        return ""

    @property
    def estimand(self) -> str:
        """The error that the interval is for, where that is not the true error; empty where it is.

        >>> import truecal as tc
        >>> tc.RankSeries().estimand, tc.BinnedECE().estimand
        ('', 'the error of 15 bins of equal width, at most the true one')
        """
        return ""

    @property
    def bias(self) -> Bias:
        """Whether the estimate of the power is a plug-in, has its bias reduced, or has none.

        Resamples of a plug-in scatter about the plug-in of the distribution they are drawn from, others about their own
        mean. An interval of an unbiased estimate needs no test to reach down to zero.

        >>> import truecal as tc
        >>> tc.BinnedECE().bias, tc.DebiasedECE(norm=2).bias, tc.DebiasedECE(norm=1).bias
        ('plug-in', 'none', 'reduced')
        """
        return "plug-in"

    @abstractmethod
    def estimate(self, profile: Profile) -> Findings:
        """Estimate E |gap|^p of every dataset.

        Parameters
        ----------
        profile : Profile
            Sorted scores and outcomes of one dataset or of a batch.

        Returns
        -------
        Findings
            The power of the error, shape (batch,), which may be negative if it is debiased, and what belongs to it.
        """

    def values(self, profile: Profile) -> Float64s:
        """Compute the error of every dataset of a batch and nothing else.

        Parameters
        ----------
        profile : Profile
            Sorted scores and outcomes of one dataset or of a batch.

        Returns
        -------
        ndarray of shape (batch,)
            Errors on the scale of probabilities.
        """
        return root(self.estimate(profile).power, self.norm)

    def from_bins(self, bins: Bins) -> Float64s:
        """Compute the power of the error from bins.

        Parameters
        ----------
        bins : Bins
            Counts, sums of scores and sums of outcomes.

        Returns
        -------
        ndarray of shape (batch,)
            The power of the error.

        Raises
        ------
        InputError
            Counts, mean scores and rates in bins are not all that this estimator needs.
        """
        raise InputError(f"{type(self).__name__} cannot be computed from bins alone")

    def interval(self, profile: Profile, *, level: float = 0.95, rng: int | np.random.Generator = 0) -> Interval:
        """Compute a confidence interval of one dataset of independent rows.

        Parameters
        ----------
        profile : Profile
            Sorted scores and outcomes of one dataset.
        level : float, default 0.95
            Level of the interval.
        rng : int or numpy.random.Generator, default 0
            Seed or generator of the resamples.

        Returns
        -------
        Interval
            By formula if the estimator has one, else by a bootstrap of rows.
        """
        if hasattr(self, "level"):
            by_formula = with_level(self, level)._complete(profile).interval
            if by_formula is not None:
                return by_formula
        options.level(level)
        return self._resampled_interval(profile, level, options.generator(rng), None)

    def test(self, profile: Profile, *, resamples: int = 999, rng: int | np.random.Generator = 0) -> RedrawTest:
        """Test every dataset for calibration, with outcomes redrawn from the scores.

        Parameters
        ----------
        profile : Profile
            Independent rows of one dataset or of a batch.
        resamples : int, default 999
            Largest number of redraws.
        rng : int or numpy.random.Generator, default 0
            Seed or generator of the redraws.

        Returns
        -------
        RedrawTest
            Statistics and p-values, shape (batch,).
        """
        return redraw_test(profile, self.values, resamples=resamples, rng=rng)

    def sketch_bound(self, cells: CellProfile, estimate: Estimate) -> SketchBound:
        """Bound the power of all rows from the cells of a sketch; by default by rounding alone.

        Parameters
        ----------
        cells : CellProfile
            The cells of the sketch.
        estimate : Estimate
            The estimate from these cells.

        Returns
        -------
        SketchBound
            Bounds of the power, and whether they are proved or probed.
        """
        change = _GRID_ROUNDING + cells.rounding
        value, p = float(estimate.value), self.norm
        low, high = max(value - change, 0.0), min(value + change, 1.0)
        return SketchBound(low, high) if p in (1, np.inf) else SketchBound(low**p, high**p)

    def __call__(self, data: Profile | Sketch | Sample) -> Estimate:
        """Measure a profile, a sample of independent rows, or a sketch; a batch gives arrays.

        Of a sketch, and of a profile of its cells, the estimate has `sketch_error`. Raises InputError for a sample of clustered
        rows, and for other data.
        """
        if isinstance(data, Sketch):
            data = data.to_profile()
        elif isinstance(data, Sample):
            if not data.independent:
                raise InputError("rows of this sample are clustered; use tc.measure, which resamples clusters")
            data = data.profile
        if not isinstance(data, Profile):
            raise InputError(
                f"{type(self).__name__} measures a Profile, not {type(data).__name__}; "
                "use tc.calibration_error(y_true, y_prob), or a lens such as tc.TopLabel()(predictions)"
            )
        estimate = self._complete(data)
        return _bound_by_sketch(self, estimate, data) if isinstance(data, CellProfile) else estimate

    def _resampled_interval(
        self, profile: Profile, level: float, rng: np.random.Generator, p_value: float | None
    ) -> Interval:
        """Compute the interval of a bootstrap of rows, which reaches 0 unless `p_value` rejects calibration at 1 - level.

        `p_value` None: of redrawn outcomes.
        """
        return resample_rows(self, profile, level=level, rng=rng, p_value=p_value).interval()

    def _complete(self, profile: Profile) -> Estimate:
        """Estimate every dataset, with an interval and a curve where this estimator has formulas for them; by default neither."""
        return report(self, profile, self.estimate(profile))


class FixedBinsEstimator(Estimator):
    """An estimator that needs only counts, mean scores and rates of bins that do not depend on the outcomes."""

    @property
    def averages_absolute_gaps(self) -> bool:
        """Whether the error is a plain mean of absolute gaps over bins, weighted by rows.

        >>> import truecal as tc
        >>> tc.BinnedECE(norm=1).averages_absolute_gaps, tc.BinnedECE(norm=2).averages_absolute_gaps
        (True, False)
        """
        return False

    @abstractmethod
    def fixed_cut(self, profile: Profile) -> Cut | None:
        """Cut the sorted rows into the bins.

        Parameters
        ----------
        profile : Profile
            Sorted scores and outcomes.

        Returns
        -------
        Cut or None
            The edges of the bins; None where an option needs more than counts, mean scores and rates in them.
        """


class VectorEstimator(Estimator):
    """An estimator of samples with several probabilities per row; it refuses sorted scores."""

    def estimate(self, profile: Profile) -> Findings:
        """Raise InputError: sorted scores of one probability are not what this estimator judges.

        >>> import truecal as tc
        >>> tc.GeneralizedECE().estimate(Profile.from_arrays([0.25, 0.75], [1, 1]))
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: GeneralizedECE judges rows, not sorted scores; use tc.measure(preds, estimator=...)
        """
        raise InputError(f"{type(self).__name__} judges rows, not sorted scores; use tc.measure(preds, estimator=...)")

    @abstractmethod
    def of_samples(self, samples: Iterable[Sample], shares: Float64s | None, rng: np.random.Generator) -> Estimate:
        """Measure the samples of a lens.

        Parameters
        ----------
        samples : iterable of Sample
            The datasets of the lens.
        shares : array or None
            Weight of each dataset where there are several; None for one.
        rng : numpy.random.Generator
            Generator of redraws, where the estimator makes any.

        Returns
        -------
        Estimate
            Of one dataset, or of all by their shares.
        """

    def own_lens(self, lens: Lens | None) -> Lens | None:
        """Choose the lens: the one asked for, or the estimator's own.

        Parameters
        ----------
        lens : Lens or None
            The lens asked for.

        Returns
        -------
        Lens or None
            None for the default of the data.
        """
        return lens

    def chosen(self, preds: Predictions, select: Selection | None) -> tuple[Predictions, Selection | None]:
        """Select the rows to judge.

        Parameters
        ----------
        preds : Predictions
            All rows.
        select : Selection or None
            The selection asked for; None for that of the estimator, if it has one.

        Returns
        -------
        tuple of Predictions and Selection or None
            The selected rows, and the selection that was applied (None: all rows).
        """
        return (preds if select is None else select(preds)), select


def sample_estimate(estimator: Estimator, sample: Sample, findings: Findings) -> Estimate:
    """Build the Estimate of one or several probabilities of the rows of a sample from findings, as `report`.

    The direction is mean score minus frequency: of all explicit events together, or of the most probable event of each row where
    no event is implied by the others.
    """
    if sample.implied is not None:
        scores, outcomes = sample.probs.sum(axis=1, dtype=np.float64), sample.labels != sample.implied
    else:
        top = sample.probs.argmax(axis=1)
        scores, outcomes = sample.probs[np.arange(len(sample)), top].astype(np.float64), top == sample.labels
    weights = None if sample.weights is None else sample.weights[None]
    return report(estimator, Profile(scores[None], outcomes[None].view(np.uint8), weights, single=True), findings)


AnyEstimator = TypeVar("AnyEstimator", bound=Estimator)


def with_level(estimator: AnyEstimator, level: float | None, rng: int | np.random.Generator = 0) -> AnyEstimator:
    """Copy an estimator with another level of its interval, and seed where it has one; one without a level stays as it is.

    >>> import truecal as tc
    >>> with_level(tc.RankSeries(), 0.9).level
    0.9
    """
    if not hasattr(estimator, "level"):
        return estimator
    changes: dict[str, Any] = {"level": level, "rng": rng} if hasattr(estimator, "rng") else {"level": level}
    return replace(estimator, **changes)


def report(estimator: Estimator, profile: Profile, findings: Findings) -> Estimate:
    """Build the Estimate of a profile from findings: numbers for a single dataset, arrays of shape (batch,) for a batch.

    value = max(power, 0)^(1/norm), direction = mean score - mean outcome, n = rows or the sum of whole-number weights,
    effective_n = the sample size of the profile; bins, curve, interval, warnings and settings are those of the findings.
    """
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
    """Add `sketch_error` to an estimate from the cells of a sketch: how far the value of all rows may be from it, at most 1.

    It is the larger distance of the value from both roots of `Estimator.sketch_bound`, plus the rounding of the sums of the
    sketch.
    """
    bound = estimator.sketch_bound(cells, estimate)
    value = float(estimate.value)
    low, high = root(np.array([bound.low, bound.high]), estimator.norm).tolist()
    return replace(
        estimate,
        sketch_error=min(max(high - value, value - low, 0.0) + cells.rounding, 1.0),
        sketch_bound=bound.bound,
        n=estimate.n if cells.counted else cells.row_count,
    )


# ----------------------------------------------------------------------------------------------------
# The bootstrap, and the intervals that follow from it


@dataclass(frozen=True)
class Bootstrap:
    """The resampled distribution of an estimate. Level and method can change without resampling.

    All is kept on the scale of the error to the power of its norm, where bias adds up: `powers` are the resampled estimates,
    `deviations`, shape (resamples,), are distributed as the estimate minus the truth: powers minus the power of the distribution
    they were drawn from, for mean absolute gaps after a correction bin by bin. The mean of the deviations is the bias, their
    quantiles give the interval. `p_value` is that of perfect calibration (0: not tested).
    """

    estimator: Estimator
    power: float
    powers: Float64s
    deviations: Float64s
    level: float
    method: Method
    drawn: str  # what was drawn: rows or clusters
    p_value: float
    acceleration: float = 0.0
    parts: Float64s | None = None  # the power of each dataset where a lens has many
    signs: SignBounds | None = None  # bounds of a mean absolute gap, where that is estimated
    unselected: Float64s | None = None  # powers of the resamples before anything is chosen from the data
    joint_p_value: float | None = None  # of calibration in all datasets, by sign flips

    @property
    def value(self) -> float:
        """The estimate itself, max(power, 0)^(1/norm)."""
        return float(root(self.power, self.estimator.norm))

    @property
    def values(self) -> Float64s:
        """The resampled estimates, max(powers, 0)^(1/norm), shape (resamples,)."""
        return root(self.powers, self.estimator.norm)

    @property
    def bias(self) -> float:
        """Bias of `power`, the mean of `deviations`."""
        return float(self.deviations.mean())

    @property
    def debiased(self) -> float:
        """The estimate with that bias removed, max(power - bias, 0)^(1/norm)."""
        return float(root(self.power - self.bias, self.estimator.norm))

    @property
    def errors(self) -> Float64s:
        """True errors compatible with the estimate, max(power - deviations, 0)^(1/norm), at most 1, shape (resamples,)."""
        return np.minimum(root(self.power - self.deviations, self.estimator.norm), 1.0)

    def interval(self, level: float | None = None, method: Method | None = None) -> Interval:
        """Compute a confidence interval of the true error.

        It contains the estimate, and the interval of a higher level contains that of a lower one. With d the deviations
        and P the estimate, both as powers:

        - "percentile": quantiles of d about the debiased estimate P - mean(d).
        - "basic": P - quantiles of d: the same centre, skewness turned around.
        - "bca": quantiles of P + d, shifted for the share of d below 0 and for skewness (Efron 1987). Meant for errors
          well away from 0; for a plug-in near 0, where almost all d are positive, it cannot reach far enough down.

        Each is extended to contain the estimate, and down to 0 unless calibration is rejected at 1 - level: resamples
        repeat the noise of the sample, so they show only part of the bias of a mean absolute error near zero. A mean
        absolute error is also widened to the leave-one-out sign bounds (:class:`truecal.estimators.bins.SignBounds`).

        Parameters
        ----------
        level : float, optional
            Level of the interval; by default that of the bootstrap.
        method : {"percentile", "basic", "bca"}, optional
            By default that of the bootstrap.

        Returns
        -------
        Interval
            Limits on the scale of the error.
        """
        level = self.level if level is None else level
        method = self.method if method is None else method
        options.level(level)
        options.choice(method, METHODS, "method")
        tails = np.array([(1 - level) / 2, (1 + level) / 2])
        d = self.deviations
        quantiles = np.quantile(d, tails)
        if len(d) < _NORMAL_TAILS:
            from scipy.special import stdtrit

            quantiles = d.mean() + (d.std(ddof=1) if len(d) > 1 else 0.0) * stdtrit(max(len(d) - 1, 1), tails)
        if method == "basic":
            low, high = (self.power - quantiles)[::-1]
        elif method == "percentile":
            low, high = self.power - 2 * d.mean() + quantiles
        else:
            low, high = self.power + np.quantile(d, _bca_levels(tails, d, self.acceleration))
        if self.signs is not None:
            lower, upper = self.signs.limits(level)
            low, high = min(low, float(lower[0])), max(high, float(upper[0]))
        low, value, high = root(np.array([low, self.power, high]), self.estimator.norm).tolist()
        bottom = 0.0 if self.p_value > 1 - level else min(low, value)
        estimand = self.estimator.estimand
        how = f"{method} bootstrap of {self.drawn}" + (f", for {estimand}" if estimand else "")
        return Interval(bottom, min(max(high, value), 1.0), level, how)


def _bca_levels(tails: Float64s, d: Float64s, acceleration: float) -> Float64s:
    """Compute the levels of the quantiles of BCa, Phi(z0 + (z0 + z) / (1 - a (z0 + z))), for the tails Phi(z), shape (2,).

    z0 is the normal quantile of (number of deviations `d` below 0, half of those at 0, + 1/2) / (len(d) + 1); a is the
    acceleration.

    >>> d = np.array([-1.0, 0.0, 1.0])
    >>> _bca_levels(np.array([0.025, 0.975]), d, 0.0).round(3)  # symmetric deviations, no acceleration
    array([0.025, 0.975])
    """
    from scipy.special import ndtr, ndtri

    below = (np.count_nonzero(d < 0) + np.count_nonzero(d == 0) / 2 + 0.5) / (len(d) + 1)
    z = ndtri(below) + ndtri(tails)
    stretch = 1 - acceleration * z
    levels = ndtr(ndtri(below) + z / positive(stretch))
    return np.where(stretch > 0, levels, np.where(acceleration * z > 0, acceleration > 0, 0.5)).astype(np.float64)


# ----------------------------------------------------------------------------------------------------
# One dataset of independent rows


def cell_cut(estimator: Estimator, profile: Profile) -> Cut:
    """Cut one dataset into at most `estimator.max_cells` cells of neighbouring scores; no cell has rows of weight 0 only.

    >>> import truecal as tc
    >>> cell_cut(tc.RankSeries(), Profile.from_arrays([0.25, 0.5, 0.5], [0, 1, 1])).below
    array([[0, 1, 3]])
    """
    starts = cell_starts(profile, estimator.max_cells)
    if profile.weights is not None:
        filled = np.diff(profile.prefix("w")[0, starts]) > 0
        starts = starts[np.append(filled, True)]
    return Cut(starts[None], starts[None])


def evaluate(estimator: Estimator, batch: CellBatch, cells: Profile | None) -> Findings:
    """Estimate every dataset of a batch of cells: from bins if `cells` is None, for which the cells are taken.

    Else each cell is a score of `cells`, a profile of one dataset or one for every dataset, with the rows and ones of the batch.
    """
    if cells is None:
        bins = Bins.of_cells(batch)
        return Findings(estimator.from_bins(bins), bins)
    scores = cells.scores
    if len(scores) > 1:
        scores = np.repeat(scores, len(batch.rows) // len(scores), axis=0)
    return estimator.estimate(Counted(scores, batch.ones / positive(batch.rows), batch.rows))


def resample_rows(
    estimator: Estimator,
    profile: Profile,
    *,
    resamples: int = FEW_RESAMPLES,
    level: float,
    rng: np.random.Generator,
    method: Method = "percentile",
    p_value: float | None = None,
) -> Bootstrap:
    """Resample the rows of one dataset, in the bins of the estimator or in up to 128 cells of neighbouring scores.

    A mean absolute error in bins is corrected bin by bin (Kumar et al. 2019, as in :class:`DebiasedECE`): one correction
    for all bins would vary less than the bias it removes, because the bias near gaps of zero moves against the estimate.
    `p_value` is that of a test of calibration; None computes it from 199 datasets with redrawn outcomes.
    """
    binned_estimator = estimator if isinstance(estimator, FixedBinsEstimator) and method != "bca" else None
    bin_cut = None if binned_estimator is None else binned_estimator.fixed_cut(profile)
    absolute_gaps = binned_estimator is not None and bin_cut is not None and binned_estimator.averages_absolute_gaps
    cut = cell_cut(estimator, profile) if bin_cut is None else bin_cut
    cells = collapse_at(profile, cut.below[0]) if bin_cut is None else None
    rows = RowSums(profile, cut)
    blocks, corrected_blocks = [], []
    for batch in rows.draw(resamples, rng):
        drawn = evaluate(estimator, batch, cells)
        blocks.append(drawn.power)
        if absolute_gaps and drawn.bins is not None:
            corrected_blocks.append(mean_usable(drawn.bins, debiased_gaps(drawn.bins, 1), 1)[0])
    power, powers, signs = float(estimator.estimate(profile).power[0]), np.concatenate(blocks), None
    observed = evaluate(estimator, rows.observed, cells)
    if absolute_gaps and observed.bins is not None:
        corrected = np.concatenate(corrected_blocks)
        debiased = mean_usable(observed.bins, debiased_gaps(observed.bins, 1), 1)[0]
        deviations = corrected - corrected.mean() + power - debiased[0]
        signs = sign_bounds(observed.bins)
    elif estimator.bias != "plug-in":
        deviations = powers - powers.mean()
    else:
        deviations = powers - evaluate(estimator, rows.drawn_from(), cells).power[0]
    if p_value is None:
        redrawn = evaluate(estimator, rows.redraw(REDRAWS, rng), cells).power
        p_value = exceedance(redrawn, power if cells is None else float(observed.power[0]))
    skewness = _acceleration(estimator, rows, cells) if method == "bca" else 0.0
    return Bootstrap(estimator, power, powers, deviations, level, method, "rows", p_value, skewness, signs=signs)


def _acceleration(estimator: Estimator, rows: RowSums, cells: Profile | None) -> float:
    """Compute the acceleration of BCa from the jackknife: sum d^3 / (6 (sum d^2)^1.5).

    d is the mean power without one row minus that without the row, taken for one row of every kind, a cell and an outcome, and
    counted by the rows of the kind. 0 for a single row and where no d differs from 0.
    """
    counts, number = np.concatenate([rows.zeros, rows.ones]), len(rows.rows)
    if counts.sum() <= 1:
        return 0.0
    powers = []
    kinds = np.flatnonzero(counts > 0)
    for size in block_sizes(len(kinds), 2 * number):
        part, kinds = kinds[:size], kinds[size:]
        without = np.tile(counts, (len(part), 1))
        without[np.arange(len(part)), part] -= np.minimum(counts[part], 1.0)
        total = without[:, :number] + without[:, number:]
        batch = CellBatch(total, without[:, number:], total * rows.scores)
        powers.append(evaluate(estimator, batch, cells).power)
    times, values = counts[counts > 0], np.concatenate(powers)
    d = np.average(values, weights=times) - values
    square = float((times * d**2).sum())
    return float((times * d**3).sum()) / (6 * square**1.5) if square > 0 else 0.0


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
        """Raise InputError unless `function` is callable and no class."""
        if not callable(self.function) or isinstance(self.function, type):
            raise InputError(f"function must be a function of scores and outcomes, not {self.function!r}")

    norm = 1.0  # the number of the function is taken as the error itself, not as a power of it

    @property
    def name(self) -> str:
        """Name of the function, or of its class where it has none.

        >>> FunctionEstimator(np.mean).name
        'mean'
        """
        return getattr(self.function, "__name__", type(self.function).__name__)

    def estimate(self, profile: Profile) -> Findings:
        """Call the function with the scores and outcomes of every dataset; `power` has its results, shape (batch,).

        Raises InputError for sketches, weights and clusters, and for a result that is negative, infinite or no number.

        >>> gap = FunctionEstimator(lambda scores, outcomes: abs(scores.mean() - outcomes.mean()))
        >>> gap.estimate(Profile.from_arrays([0.25, 0.75], [1, 1])).power
        array([0.5])
        """
        is_weighted = profile.weights is not None and not isinstance(profile, Counted)
        is_clustered = profile.units is not None and len(np.unique(profile.units)) < profile.rows
        if isinstance(profile, CellProfile):
            raise InputError(
                f"{self.name} is a function of rows, which a sketch does not have; use one of tc.estimators"
            )
        if is_weighted or is_clustered:
            remedy = "weights; drop sample_weight" if is_weighted else "clusters; use one of tc.estimators"
            raise InputError(f"{self.name} is a function of scores and outcomes and takes no {remedy}")
        datasets = range(profile.batch)
        return Findings(np.array([self._call(*_rows(profile, dataset)) for dataset in datasets]))

    def _call(self, scores: Float64s, outcomes: Float64s) -> float:
        """Evaluate the function and check that it returned a finite number that is not negative.

        >>> FunctionEstimator(lambda scores, outcomes: 0.1)._call(np.zeros(2), np.ones(2))
        0.1
        """
        value = self.function(scores, outcomes)
        if not options.is_number(value) or not 0 <= value < np.inf:
            raise InputError(f"{self.name} returned {value!r}; an error is a finite number that is not negative")
        return float(value)


def _rows(profile: Profile, dataset: int) -> tuple[Float64s, Float64s]:
    """Take scores and outcomes, shape (n,) each, of the dataset with this number; counted cells are written out, zeros first.

    >>> _rows(Profile.from_arrays([0.75, 0.25], [1, 0]), 0)
    (array([0.25, 0.75]), array([0., 1.]))
    """
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
    """Return an estimator as it is and a plain function as a `FunctionEstimator`; raise InputError for anything else.

    >>> as_estimator(np.mean).name
    'mean'
    >>> as_estimator("ece")
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: estimator must be one of truecal's, such as tc.SweepECE(), or a function of scores and
    outcomes, not 'ece'
    """
    if not isinstance(estimator, Estimator) and callable(estimator) and not isinstance(estimator, type):
        return FunctionEstimator(estimator)
    options.instance(
        estimator,
        Estimator,
        "estimator",
        "one of truecal's, such as tc.SweepECE(), or a function of scores and outcomes",
    )
    return estimator  # type: ignore[return-value]
