"""The bootstrap: estimates on resamples of rows or of whole units, and the intervals that follow from them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from truecal import options
from truecal.estimators.bins import Binning, Bins, combined
from truecal.estimators.estimate import Interval
from truecal.estimators.noise import SignBounds, debiased_gaps, folded_mean, over_usable, sign_bounds
from truecal.estimators.rank_series.basis import basis_functions, rank_basis, rank_cells
from truecal.estimators.rank_series.clusters import ClusteredSeries, cluster_order
from truecal.estimators.rank_series.families import JointSigns
from truecal.lenses.lens import Sample
from truecal.predictions.predictions import Predictions
from truecal.profile.binning import Cut, Edges
from truecal.profile.profile import Profile
from truecal.resampling.cells import Counted, cell_starts, collapse_at
from truecal.resampling.columns import assign_bins, cell_edges, column_sums, pooled_sums
from truecal.resampling.draws import REDRAWS, CellBatch, RowSums, block_sizes
from truecal.resampling.units import Units, UnitSums
from truecal.special import positive, root
from truecal.types import Float64s

Method = Literal["percentile", "basic", "bca"]
METHODS = ("percentile", "basic", "bca")
FEW_RESAMPLES = 200  # where every resample is a fit of its own
BIN_RESAMPLES = 500
_NORMAL_TAILS = 100  # resamples below which tails are those of Student's distribution
_FLIPPED_GROUPS = 2048  # random groups of independent rows whose signs are flipped
_FEW_DATASETS, _FINE_FLIPS = 20, 999  # up to so many datasets, so many sign flips
_LABEL_CORRELATION = np.sqrt(2.0)  # derived: see `_p_value_of_redraws`
_ROUNDING = 1e-12  # derived: powers that agree to rounding count as equal


@runtime_checkable
class HasClusteredForm(Protocol):
    """An estimator with a closed form for rows in clusters."""

    def of_clusters(self, series: ClusteredSeries, level: float) -> tuple[float, float, Interval]: ...


class _Powers(Protocol):
    @property
    def power(self) -> Float64s: ...
    @property
    def bins(self) -> Bins | None: ...
    @property
    def unselected(self) -> Float64s | None: ...


class Resampling(Protocol):
    """What resampling asks of an estimator; see :class:`truecal.estimators.Estimator`."""

    max_cells: ClassVar[int]

    @property
    def norm(self) -> float: ...
    @property
    def bias(self) -> str: ...
    @property
    def estimand(self) -> str: ...
    def estimate(self, profile: Profile) -> _Powers: ...
    def from_bins(self, bins: Bins) -> Float64s: ...


@runtime_checkable
class HasFixedBins(Protocol):
    """An estimator for which counts, mean scores and rates in bins are all it needs.

    `folds`: it is a plain mean of absolute gaps over bins, weighted by rows.
    """

    @property
    def folds(self) -> bool: ...
    def fixed_cut(self, profile: Profile) -> Cut | None: ...


@runtime_checkable
class ChoosesOnce(Protocol):
    """An estimator with a setting that is chosen from the data once, not in every resample."""

    def fixed_to(self, profile: Profile) -> Resampling: ...


@dataclass(frozen=True)
class Bootstrap:
    """The resampled distribution of an estimate. Level and method can change without resampling.

    All is kept on the scale of the error to the power of its norm, where bias adds up: `powers` are the resampled
    estimates, `deviations` the powers minus the error of the distribution they were drawn from. The mean of the
    deviations is the bias, their quantiles give the interval. `p_value` is that of perfect calibration (0: not tested).
    """

    estimator: Resampling
    power: float
    powers: Float64s
    deviations: Float64s
    level: float
    method: Method
    drawn: str  # what was drawn: rows, clusters or blocks
    p_value: float
    acceleration: float = 0.0
    parts: Float64s | None = None  # the power of each dataset where a lens has many
    signs: SignBounds | None = None  # bounds of a mean absolute gap, where that is estimated
    unselected: Float64s | None = None  # powers of the resamples before anything is chosen from the data
    joint_p_value: float | None = None  # of calibration in all datasets, by sign flips

    @property
    def value(self) -> float:
        """The estimate itself."""
        return self._root(self.power)

    @property
    def values(self) -> Float64s:
        """The resampled estimates on the scale of the error."""
        return root(self.powers, self.estimator.norm)

    @property
    def bias(self) -> float:
        """Bias of the estimate of the error's power."""
        return float(self.deviations.mean())

    @property
    def debiased(self) -> float:
        """The estimate with that bias removed, on the scale of the error."""
        return self._root(self.power - self.bias)

    @property
    def errors(self) -> Float64s:
        """True errors compatible with the estimate, one per resample."""
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
        absolute error is also widened to the leave-one-out sign bounds (:mod:`truecal.estimators.noise`).

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
        if method == "basic":
            low, high = (self.power - _quantiles(d, tails))[::-1]
        elif method == "percentile":
            low, high = self.power - 2 * d.mean() + _quantiles(d, tails)
        else:
            low, high = self.power + np.quantile(d, _bca_levels(tails, d, self.acceleration))
        if self.signs is not None:
            lower, upper = self.signs.limits(level)
            low, high = min(low, float(lower[0])), max(high, float(upper[0]))
        value = self.value
        bottom = 0.0 if self.p_value > 1 - level else min(self._root(low), value)
        top = max(self._root(high), value)
        estimand = f", for {self.estimator.estimand}" if self.estimator.estimand else ""
        return Interval(bottom, min(top, 1.0), level, f"{method} bootstrap of {self.drawn}{estimand}")

    def _root(self, power: float) -> float:
        return float(root(np.array([power]), self.estimator.norm)[0])


def _quantiles(d: Float64s, tails: Float64s) -> Float64s:
    """Compute quantiles of the resamples, or of Student's distribution with their spread where they are few."""
    if len(d) >= _NORMAL_TAILS:
        return np.quantile(d, tails)
    from scipy.special import stdtrit

    return np.asarray(d.mean() + (d.std(ddof=1) if len(d) > 1 else 0.0) * stdtrit(max(len(d) - 1, 1), tails))


def _bca_levels(tails: Float64s, d: Float64s, acceleration: float) -> Float64s:
    """Find the levels of the quantiles of the deviations that BCa puts in place of the tails."""
    from scipy.special import ndtr, ndtri

    below = (np.count_nonzero(d < 0) + np.count_nonzero(d == 0) / 2 + 0.5) / (len(d) + 1)
    z = ndtri(below) + ndtri(tails)
    stretch = 1 - acceleration * z
    levels = ndtr(ndtri(below) + z / positive(stretch))
    return np.where(stretch > 0, levels, np.where(acceleration * z > 0, acceleration > 0, 0.5)).astype(np.float64)


# ----------------------------------------------------------------------------------------------------
# Estimates on resampled cells


@dataclass(frozen=True, eq=False)
class _Evaluation:
    """Estimates on batches of cells: from bins where the cells are the bins of the estimator, else from profiles."""

    estimator: Resampling
    cells: Profile | None  # None: the cells are the bins

    def __call__(self, batch: CellBatch) -> _Powers:
        if self.cells is None:
            bins = _bins(batch)
            return _BinPowers(self.estimator.from_bins(bins), bins)
        scores = self.cells.scores
        if len(scores) > 1:
            scores = np.repeat(scores, len(batch.rows) // len(scores), axis=0)
        return self.estimator.estimate(Counted(scores, batch.ones / positive(batch.rows), batch.rows))


@dataclass(frozen=True, eq=False)
class _BinPowers:
    power: Float64s
    bins: Bins
    unselected: Float64s | None = None


def _bins(batch: CellBatch) -> Bins:
    shape = np.broadcast_shapes(batch.rows.shape, batch.ones.shape)
    rows, ones, scores = (np.broadcast_to(a, shape) for a in (batch.rows, batch.ones, batch.score_sums))
    return Bins(rows, scores, ones, rows, single=False)


def _cells(estimator: Resampling, profile: Profile) -> Cut:
    starts = cell_starts(profile, estimator.max_cells)
    if profile.weights is not None:  # rows of weight 0 make no cell: they are outside, or in the cell below them
        filled = np.diff(profile.prefix("w")[0, starts]) > 0
        starts = starts[np.append(filled, True)]
    return Cut(starts[None], starts[None])


def fixed_cut(estimator: Resampling, profile: Profile) -> Cut | None:
    """Cut the fixed bins of an estimator that needs nothing else."""
    return estimator.fixed_cut(profile) if isinstance(estimator, HasFixedBins) else None


def _folds(estimator: Resampling) -> bool:
    return isinstance(estimator, HasFixedBins) and estimator.folds


def _exceedance(drawn: Float64s, power: float) -> float:
    return float(1 + np.count_nonzero(drawn >= power * (1 - _ROUNDING))) / (1 + len(drawn))


# ----------------------------------------------------------------------------------------------------
# One dataset of independent rows


def resample_rows(
    estimator: Resampling,
    profile: Profile,
    *,
    resamples: int | None = None,
    level: float,
    rng: np.random.Generator,
    method: Method = "percentile",
) -> Bootstrap:
    """Resample the rows of one dataset, in the bins of the estimator or in up to 128 cells of neighbouring scores.

    A mean absolute error in bins is corrected bin by bin (Kumar et al. 2019, as in :class:`DebiasedECE`): one correction
    for all bins scatters less than the bias it removes, because the bias near gaps of zero moves against the estimate.
    """
    if isinstance(estimator, ChoosesOnce):
        estimator = estimator.fixed_to(profile)
    cut = None if method == "bca" else fixed_cut(estimator, profile)
    cells = _cells(estimator, profile) if cut is None else cut
    rows = RowSums(profile, cells)
    evaluate = _Evaluation(estimator, collapse_at(profile, cells.below[0]) if cut is None else None)
    if resamples is None:
        resamples = FEW_RESAMPLES if cut is None else BIN_RESAMPLES
    parts = [evaluate(batch) for batch in rows.draw(resamples, rng)]
    powers, power = np.concatenate([part.power for part in parts]), float(estimator.estimate(profile).power[0])
    signs = None
    if cut is not None and _folds(estimator):
        observed = _bins(rows.observed)
        debiased, *drawn = (
            over_usable(bins, debiased_gaps(bins, 1), 1)[0]
            for bins in (observed, *(part.bins for part in parts if part.bins is not None))
        )
        corrected = np.concatenate(drawn)
        deviations = corrected - corrected.mean() + power - debiased[0]
        signs = sign_bounds(observed)
    elif estimator.bias != "plug-in":
        deviations = powers - powers.mean()
    else:
        deviations = powers - evaluate(rows.drawn_from()).power[0]
    observed_power = power if cut is not None else float(evaluate(rows.observed).power[0])
    p = _exceedance(evaluate(rows.redraw(REDRAWS, rng)).power, observed_power)
    bend = _acceleration(rows, evaluate) if method == "bca" else 0.0
    return Bootstrap(estimator, power, powers, deviations, level, method, "rows", p, bend, signs=signs)


def _acceleration(rows: RowSums, evaluate: _Evaluation) -> float:
    """Compute the skewness of the jackknife, sum d^3 / (6 (sum d^2)^1.5), leaving out one row of every kind."""
    counts, cells = np.concatenate([rows.zeros, rows.ones]), len(rows.rows)
    if counts.sum() <= 1:
        return 0.0
    powers = []
    kinds = np.flatnonzero(counts > 0)
    for size in block_sizes(len(kinds), 2 * cells):
        part, kinds = kinds[:size], kinds[size:]
        without = np.tile(counts, (len(part), 1))
        without[np.arange(len(part)), part] -= np.minimum(counts[part], 1.0)
        total = without[:, :cells] + without[:, cells:]
        powers.append(evaluate(CellBatch(total, without[:, cells:], total * rows.scores)).power)
    times, values = counts[counts > 0], np.concatenate(powers)
    d = np.average(values, weights=times) - values
    square = float((times * d**2).sum())
    return float((times * d**3).sum()) / (6 * square**1.5) if square > 0 else 0.0


# ----------------------------------------------------------------------------------------------------
# Whole units, the same for all datasets of a lens and for all models on the same rows


@dataclass(frozen=True, eq=False)
class DatasetSums:
    """Datasets of a lens: their sums over units, their estimates, and the sums of the series for sign flips."""

    sums: UnitSums
    cells: Profile | None  # None: the sums are in the bins of the estimator
    powers: Float64s  # (datasets,)
    bins: Bins | None = None
    flips: Sequence[tuple[Float64s, Float64s | None]] = ()  # of every dataset, with their covariance if it is known


def sample_sums(
    estimator: Resampling, samples: Iterable[Sample], units: Units, flips: JointSigns | None = None
) -> Iterator[DatasetSums]:
    """Sum samples over units, in the bins of the estimator or in up to 128 cells."""
    for sample in samples:
        drawn = sample if sample.units is units.of_row else sample.with_units(units.of_row)
        cut = fixed_cut(estimator, drawn.profile)
        in_bins = cut is not None and cut.fraction is None
        cells = cut if cut is not None and in_bins else _cells(estimator, drawn.profile)
        sums = UnitSums.of(drawn, units, cells)
        observed = estimator.estimate(drawn.profile)
        series = None if flips is None else ClusteredSeries.of(drawn, flips.units)
        powers = observed.power
        if series is not None and units.kind == "clusters" and isinstance(estimator, HasClusteredForm):
            powers = np.array([estimator.of_clusters(series, 0.5)[1]])
        collapsed = None if in_bins else collapse_at(drawn.profile, cells.below[0])
        flipped = [] if series is None else [(series.sums, _null_covariance(series) if units.kind == "rows" else None)]
        yield DatasetSums(sums, collapsed, powers, observed.bins, flipped)


def class_sums(
    estimator: Resampling, preds: Predictions, binning: Binning, units: Units, powers: Float64s | None = None
) -> Iterator[DatasetSums]:
    """Sum all classes of a matrix of probabilities over groups of rows, in bins.

    Without `powers` of the classes, the estimate is that of the bins, else the bins serve as cells.
    """
    first = 0
    for sums in column_sums(preds.probs, preds.labels, units, binning.bins, binning.scheme, binning.closed):
        cells = _mean_cells(sums)
        flips = list(_series_sums(sums, cells))
        if powers is None:
            bins = _bins(sums.observed)
            yield DatasetSums(sums, None, estimator.from_bins(bins), bins, flips)
        else:
            yield DatasetSums(sums, cells, powers[first : first + sums.datasets], None, flips)
        first += sums.datasets


def all_label_sums(
    estimator: Resampling, preds: Predictions, profile: Profile, binning: Binning | None, units: Units
) -> DatasetSums:
    """Sum all probabilities of a matrix over groups of rows, in bins or in up to 128 cells; `profile` has all pooled."""
    probs, labels, power = preds.probs, preds.labels, estimator.estimate(profile).power
    edges = cell_edges(probs, estimator.max_cells)
    in_cells = pooled_sums(probs, labels, units, len(edges) + 1, lambda block: assign_bins(block, edges))
    cells = _mean_cells(in_cells)
    flips = list(_series_sums(in_cells, cells))
    if binning is None:
        return DatasetSums(in_cells, cells, power, None, flips)
    if binning.scheme == "width":
        width = Edges(probs.dtype, binning.bins, binning.closed, probs.size)
        in_bins = pooled_sums(probs, labels, units, binning.bins, width.of)
    else:
        starts = binning.cut(profile).below[0, 1:-1]
        first = np.where(starts < profile.rows, profile.scores[0, np.minimum(starts, profile.rows - 1)], np.inf)
        in_bins = pooled_sums(probs, labels, units, binning.bins, lambda block: assign_bins(block, first))
    return DatasetSums(in_bins, None, power, _bins(in_bins.observed), flips)


def _mean_cells(sums: UnitSums) -> Profile:
    """Take the mean score and outcome of every cell; an empty cell has the score of the one before it."""
    rows = sums.observed.rows
    means = np.minimum(np.maximum.accumulate(sums.observed.score_sums / positive(rows), axis=1), 1.0)
    return Counted(means, sums.observed.ones / positive(rows), rows)


def _series_sums(sums: UnitSums, cells: Profile) -> Iterator[tuple[Float64s, Float64s]]:
    """Sum residuals times basis functions over units, shape (units, terms), for every dataset of a batch of cells.

    With their covariance under calibration, rows taken as independent.
    """
    units = sums.rows.shape[1]
    ranks = rank_cells(cells)
    ranks = replace(ranks, units=np.full(len(ranks.counts), float(units)))
    functions = basis_functions(rank_basis(ranks), ranks)[:, : cluster_order(units)]
    functions = functions / ranks.n[:, None, None]
    residuals = (sums.ones - sums.score_sums).reshape(sums.datasets, -1, units)
    variances = sums.variances.reshape(sums.datasets, -1)
    for of_units, terms, variance in zip(residuals, functions, variances, strict=True):
        yield np.asarray(of_units.T @ terms.T), (terms * variance) @ terms.T


def _null_covariance(series: ClusteredSeries) -> Float64s:
    """Compute the covariance of the coefficients of independent calibrated rows (10), shape (K, K)."""
    functions, variances = series.functions[: series.terms], series.scores * (1 - series.scores)
    return (functions * (series.cells.shares[0] * variances / series.n)) @ functions.T


def resample_units(
    estimator: Resampling,
    parts: Iterable[DatasetSums],
    shares: Float64s | None,
    units: Units,
    counts: NDArray[np.uint16],
    level: float,
    rng: np.random.Generator,
    *,
    test: bool = False,
    flips: JointSigns | None = None,
    method: Method = "percentile",
) -> Bootstrap:
    """Resample whole units for all datasets of a lens; `counts` are those of :meth:`Units.draws`.

    Calibration is tested where the interval needs it near zero, or always if `test`: of clusters and blocks by `flips`.
    """
    weights = np.ones(1) if shares is None else shares
    redraw = units.kind == "rows" and (test or estimator.bias != "none")
    bias = _FoldedBias(counts.shape[1]) if _folds(estimator) else None
    powers, unselected, centres, redrawn, observed, values = [], [], [], [], [], []
    first = 0
    for part in parts:
        datasets = part.sums.datasets
        evaluate = _Evaluation(estimator, part.cells)
        drawn = [evaluate(batch) for batch in _draw_blocks(part.sums, counts)]
        powers.append(np.hstack([each.power.reshape(datasets, -1) for each in drawn]))
        before = [each.power if each.unselected is None else each.unselected for each in drawn]
        unselected.append(np.hstack([each.reshape(datasets, -1) for each in before]))
        plug_in = estimator.bias == "plug-in"
        centres.append(evaluate(part.sums.drawn_from).power if plug_in else powers[-1].mean(axis=1))
        values.append(part.powers)
        if redraw:
            redrawn.append(evaluate(part.sums.redraw(REDRAWS, rng)).power.reshape(datasets, -1))
            observed.append(evaluate(part.sums.observed).power)
        share = weights[first : first + datasets]
        first += datasets
        if flips is not None:
            for each, (sums, covariance) in zip(share, part.flips, strict=True):
                flips.add(sums, float(each), covariance)
        if bias is not None:
            assert part.bins is not None
            bias.add(share, part.bins, [e.bins for e in drawn if e.bins is not None], correlated=units.kind != "rows")

    def mean(numbers: list[Float64s]) -> Float64s:
        return combined(np.concatenate(numbers), weights, estimator.norm)

    drawn_powers = mean(powers)
    p = 0.0
    if flips is not None and units.kind != "rows":
        p = flips.p_value()
    elif redraw:
        p = _p_value_of_redraws(mean(redrawn), float(mean(observed)))
    return Bootstrap(
        estimator,
        float(mean(values)),
        drawn_powers,
        drawn_powers - mean(centres) if bias is None else bias.deviations(drawn_powers),
        level,
        method,
        units.kind,
        p,
        parts=np.concatenate(values),
        signs=None if bias is None else bias.sign_bounds(),
        unselected=mean(unselected),
        joint_p_value=None if flips is None else flips.p_value(),
    )


def sign_flips(units: Units, datasets: int, rng: np.random.Generator, *, rows: bool = False) -> JointSigns | None:
    """Draw sign flips of clusters and blocks; of independent rows, in groups, only if `rows`."""
    if units.kind != "rows":
        return JointSigns(units, REDRAWS, rng)
    flips = _FINE_FLIPS if datasets <= _FEW_DATASETS else REDRAWS
    return JointSigns(units.grouped(_FLIPPED_GROUPS), flips, rng.spawn(1)[0]) if rows else None


def _draw_blocks(sums: UnitSums, counts: NDArray[np.uint16]) -> Iterator[CellBatch]:
    start = 0
    for size in block_sizes(counts.shape[1], sums.rows.shape[0]):
        yield sums.draw(counts[:, start : start + size])
        start += size


def _p_value_of_redraws(redrawn: Float64s, power: float) -> float:
    """Compute how often calibrated datasets reach the estimate.

    Outcomes of each dataset are redrawn by themselves, those of one row belong together. With one label per row their
    covariance is diag(p) - pp', at most twice its diagonal (exactly twice for two classes), so a sum of squares over the
    datasets has at most sqrt(2) times the standard deviation of the redraws, which are spread about their mean by it.
    """
    return _exceedance(redrawn.mean() + _LABEL_CORRELATION * (redrawn - redrawn.mean()), power)


class _FoldedBias:
    """Bias of a mean absolute error over the bins of many datasets, in the estimate and in its resamples.

    |gap + noise| is larger than |gap| on average, the more so the smaller the gap. Bins of few rows do not show the size
    of their own gaps, but the mean square over all bins has an unbiased estimate: every bin is taken to have a gap of
    that size.
    """

    _AT_ONCE = 1 << 15  # bins of resamples corrected at a time, which fit in cache

    def __init__(self, resamples: int) -> None:
        self._weights: list[Float64s] = []
        self._variances: list[Float64s] = []
        self._shares: list[Float64s] = []
        self._signs: list[SignBounds] = []
        self._square = 0.0  # mean square of the observed gaps
        self._squares = np.zeros(resamples)  # the same in every resample

    def add(self, share: Float64s, bins: Bins, drawn: list[Bins], *, correlated: bool) -> None:
        """Add datasets by their bins and those of their resamples, which show how correlated outcomes of a unit are."""
        filled = bins.weight > 0
        n = positive(bins.count)
        rate = (n * bins.rate + bins.score_sum / bins.safe) / (n + 1)  # with one pseudo-row of the mean score
        variance = rate * (1 - rate) / (1 - n / (n + 1) ** 2) / n  # derived: the former is too small by this factor
        design_effect = 1.0
        if correlated:
            gaps = np.concatenate([part.gap for part in drawn])
            independent = float((bins.share**2 * variance)[filled].sum())
            ratio = float((bins.share[0] ** 2) @ gaps.var(axis=0)) / independent if independent > 0 else 1.0
            design_effect = max(1.0, ratio)
        self._shares.append(share)
        self._signs.append(sign_bounds(bins, design_effect).scale_variance(design_effect))
        self._weights.append((share[:, None] * bins.share)[filled])
        self._variances.append(variance[filled] * design_effect)
        self._square += float(share @ (bins.share * bins.gap**2).sum(axis=1))
        squares = [(part.share * part.gap**2).sum(axis=1).reshape(len(share), -1) for part in drawn]
        self._squares += share @ np.hstack(squares)

    def sign_bounds(self) -> SignBounds:
        """Combine the leave-one-out sign bounds of all datasets."""
        return SignBounds.combine(self._signs, np.concatenate(self._shares))

    def deviations(self, powers: Float64s) -> Float64s:
        """Compute the deviations of resamples from the truth, given their plain estimates."""
        weight, variance = np.concatenate(self._weights), np.concatenate(self._variances)
        size = self._square - float(weight @ variance)  # mean square of the true gaps
        squares = np.concatenate([[size], size + self._squares - self._squares.mean()])
        step = max(1, self._AT_ONCE // len(weight))
        biases = []
        for start in range(0, len(squares), step):
            gap = np.sqrt(np.maximum(squares[start : start + step], 0.0) / weight.sum())[:, None]
            biases.append(np.vecdot(folded_mean(gap, variance) - gap, weight))
        bias = np.concatenate(biases)
        corrected = powers - bias[1:]
        return np.asarray(corrected - corrected.mean() + bias[0])
