"""The bootstrap of whole units (rows or clusters), the same for all datasets of a lens and all models on its rows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from truecal.estimators.base import (
    Bootstrap,
    Estimator,
    Findings,
    FixedBinsEstimator,
    Method,
    cell_cut,
    evaluate,
)
from truecal.estimators.bins import Binning, Bins, SignBounds, combine_powers, folded_mean, sign_bounds
from truecal.estimators.rank_series.basis import basis_functions, rank_basis, rank_cells
from truecal.estimators.rank_series.clusters import ClusteredSeries
from truecal.estimators.rank_series.estimator import RankSeries
from truecal.estimators.rank_series.tests import JointSigns
from truecal.lenses.lens import Sample
from truecal.predictions.predictions import Predictions
from truecal.profile.binning import Edges
from truecal.profile.profile import Profile
from truecal.resampling.cells import Counted, collapse_at
from truecal.resampling.columns import assign_bins, cell_edges, column_sums, pooled_sums
from truecal.resampling.draws import REDRAWS, blocks, exceedance
from truecal.resampling.units import Units, UnitSums
from truecal.special import positive
from truecal.types import Float64s

_FLIPPED_GROUPS = 2048  # by choice: sums of so many groups of rows have a standard deviation to 2 %
_FEW_DATASETS, _FINE_FLIPS = 20, 999  # by choice: of up to so many datasets the smallest p-value is 0.001
_BINS_AT_ONCE = 1 << 15  # derived: bins of resamples whose arrays stay in a cache of 1 MiB
_LABEL_CORRELATION = np.sqrt(2.0)  # derived: see `_p_value_of_redraws`


@dataclass(frozen=True, eq=False)
class DatasetSums:
    """One or several datasets of a lens: sums by cell and unit, from which they are resampled, and their estimates.

    `flips` are the sums of basis functions of the rank series times residuals, for a test by sign flips.
    """

    sums: UnitSums
    cells: Profile | None  # None: the sums are in the bins of the estimator
    powers: Float64s  # (datasets,)
    bins: Bins | None = None
    flips: Sequence[tuple[Float64s, Float64s | None]] = ()  # per dataset: sums (units, K); covariance (K, K) if known


def sample_sums(
    estimator: Estimator, samples: Iterable[Sample], units: Units, flips: JointSigns | None = None
) -> Iterator[DatasetSums]:
    """Sum every sample by unit, in the bins of the estimator where bins suffice for it, else in cells; yield one per sample.

    `powers` are the estimates from all rows, not from cells. Sums for sign flips are computed only if `flips` are given.
    """
    for sample in samples:
        drawn = sample.with_units(units.of_row)
        cut = estimator.fixed_cut(drawn.profile) if isinstance(estimator, FixedBinsEstimator) else None
        in_bins = cut is not None and cut.fraction is None
        cells = cut if cut is not None and in_bins else cell_cut(estimator, drawn.profile)
        sums = UnitSums.of(drawn, units, cells)
        independent = sample.units is None and sample.weights is None
        observed = estimator.estimate((sample if independent else drawn).profile)  # bins without effective sample sizes
        series = None if flips is None else ClusteredSeries.of(drawn, flips.units)
        powers = observed.power
        if series is not None and units.kind == "clusters" and isinstance(estimator, RankSeries):
            powers = series.lower_risk.signed_power(estimator.norm)
        collapsed = None if in_bins else collapse_at(drawn.profile, cells.below[0])
        covariance = None if series is None or units.kind != "rows" else series.cells.null_covariance[0]
        flipped = [] if series is None else [(series.sums, covariance)]
        yield DatasetSums(sums, collapsed, powers, observed.bins, flipped)


def class_sums(
    estimator: Estimator, preds: Predictions, binning: Binning, units: Units, powers: Float64s | None = None
) -> Iterator[DatasetSums]:
    """Sum all classes of a matrix of probabilities by bin and group of rows; yield batches of up to 32 classes.

    `units` are the groups of rows. `powers`, shape (classes,), are the estimates, and the bins serve as cells; None estimates
    from the bins.
    """
    first = 0
    for sums in column_sums(preds.probs, preds.labels, units, binning.bins, binning.scheme, binning.closed):
        cells = _mean_cells(sums)
        flips = list(_series_sums(sums, cells))
        if powers is None:
            bins = Bins.of_cells(sums.observed)
            yield DatasetSums(sums, None, estimator.from_bins(bins), bins, flips)
        else:
            yield DatasetSums(sums, cells, powers[first : first + sums.datasets], None, flips)
        first += sums.datasets


def all_label_sums(
    estimator: Estimator, preds: Predictions, profile: Profile, binning: Binning | None, units: Units
) -> DatasetSums:
    """Sum all probabilities of a matrix, pooled as one dataset, by group of rows and by bin, or by cell if `binning` is None.

    `profile` holds the same probabilities sorted, from which the estimate is.
    """
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
    return DatasetSums(in_bins, None, power, Bins.of_cells(in_bins.observed), flips)


def _mean_cells(sums: UnitSums) -> Profile:
    """Build a batch from the mean score and outcome of every cell; an empty cell has the score of the one before it."""
    rows = sums.observed.rows
    means = np.minimum(np.maximum.accumulate(sums.observed.score_sums / positive(rows), axis=1), 1.0)
    return Counted(means, sums.observed.ones / positive(rows), rows)


def _series_sums(sums: UnitSums, cells: Profile) -> Iterator[tuple[Float64s, Float64s]]:
    """Yield, for every dataset of a batch, the sums of residuals times basis functions / n by unit, shape (units, terms).

    With them comes the covariance of their total under calibration, rows taken as independent, shape (terms, terms).
    """
    units = sums.rows.shape[1]
    ranks = rank_cells(cells)
    ranks = replace(ranks, units=np.full(len(ranks.counts), float(units)))
    functions = basis_functions(rank_basis(ranks), ranks) / ranks.n[:, None, None]
    residuals = (sums.ones - sums.score_sums).reshape(sums.datasets, -1, units)
    variances = sums.variances.reshape(sums.datasets, -1)
    for residual, terms, variance in zip(residuals, functions, variances, strict=True):
        yield np.asarray(residual.T @ terms.T), (terms * variance) @ terms.T


def resample_units(
    estimator: Estimator,
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
    """Resample whole units for all datasets of a lens, combined by their `shares` (None: one dataset).

    `counts`, shape (units + 2, resamples), are those of :meth:`Units.draws`; one column gives one resample of all datasets. The
    p-value of the bootstrap is by redrawn outcomes for rows, where the estimator is biased or if `test`, and by `flips` for
    clusters; else 0. `flips` also give the joint p-value of all datasets.
    """
    weights = np.ones(1) if shares is None else shares
    redraw = units.kind == "rows" and (test or estimator.bias != "none")
    absolute_gaps = isinstance(estimator, FixedBinsEstimator) and estimator.averages_absolute_gaps
    bias = _FoldedBias(counts.shape[1]) if absolute_gaps else None
    powers, first = [], 0
    for part in parts:
        draws = blocks(counts.shape[1], part.sums.rows.shape[0])
        resampled = [evaluate(estimator, part.sums.draw(counts[:, block]), part.cells) for block in draws]
        powers.append(_resampled_powers(estimator, part, resampled, rng if redraw else None))
        share = weights[first : first + part.sums.datasets]
        first += part.sums.datasets
        if flips is not None:
            for dataset_share, (sums, covariance) in zip(share, part.flips, strict=True):
                flips.add(sums, float(dataset_share), covariance)
        if bias is not None:
            assert part.bins is not None
            bins = [findings.bins for findings in resampled if findings.bins is not None]
            bias.add(share, part.bins, bins, correlated=units.kind != "rows")
    of_datasets = [np.concatenate(numbers) for numbers in zip(*powers, strict=True)]
    value, drawn, unselected, centre, *redrawn = (
        combine_powers(numbers, weights, estimator.norm) for numbers in of_datasets
    )
    joint_p_value = None if flips is None else flips.p_value()
    p = 0.0
    if joint_p_value is not None and units.kind != "rows":
        p = joint_p_value
    elif redraw:
        p = _p_value_of_redraws(redrawn[0], float(redrawn[1]))
    return Bootstrap(
        estimator,
        float(value),
        drawn,
        drawn - centre if bias is None else bias.deviations(drawn),
        level,
        method,
        units.kind,
        p,
        parts=of_datasets[0],
        signs=None if bias is None else bias.sign_bounds(),
        unselected=unselected,
        joint_p_value=joint_p_value,
    )


def _resampled_powers(
    estimator: Estimator, part: DatasetSums, resampled: list[Findings], rng: np.random.Generator | None
) -> tuple[Float64s, ...]:
    """Gather powers as estimated, (datasets,), of resamples, and before any selection, (datasets, resamples), and their centre.

    The centre is the power of the distribution that is resampled for a plug-in, else the mean of the resamples. With `rng` follow
    the powers of redrawn outcomes, (datasets, redraws), and that of the same cells as observed.
    """
    sums, cells, datasets = part.sums, part.cells, part.sums.datasets
    powers = np.hstack([block.power.reshape(datasets, -1) for block in resampled])
    unselected_blocks = [block.power if block.unselected is None else block.unselected for block in resampled]
    unselected = np.hstack([block.reshape(datasets, -1) for block in unselected_blocks])
    centre = powers.mean(axis=1)
    if estimator.bias == "plug-in":
        centre = evaluate(estimator, sums.drawn_from, cells).power
    if rng is None:
        return part.powers, powers, unselected, centre
    redrawn = evaluate(estimator, sums.redraw(REDRAWS, rng), cells).power.reshape(datasets, -1)
    return part.powers, powers, unselected, centre, redrawn, evaluate(estimator, sums.observed, cells).power


def sign_flips(units: Units, datasets: int, rng: np.random.Generator, *, rows: bool = False) -> JointSigns | None:
    """Draw random signs for clusters, 199 of each; for independent rows only if `rows`, else return None.

    Rows are joined in at most 2048 groups, with 999 signs of each for up to 20 datasets, else 199.
    """
    if units.kind != "rows":
        return JointSigns(units, REDRAWS, rng)
    flips = _FINE_FLIPS if datasets <= _FEW_DATASETS else REDRAWS
    return JointSigns(units.grouped(_FLIPPED_GROUPS), flips, rng.spawn(1)[0]) if rows else None


def _p_value_of_redraws(redrawn: Float64s, power: float) -> float:
    """Compute (1 + number of redraws that reach `power`) / (1 + redraws) after their deviations from their mean times sqrt(2).

    Outcomes of each dataset are redrawn independently, but those of one row are correlated. With one label per row their
    covariance is diag(p) - pp', at most twice its diagonal (exactly twice for two classes), so a sum of squares over the datasets
    has at most sqrt(2) times the standard deviation of the redraws.

    >>> _p_value_of_redraws(np.array([1.0, 2.0, 3.0]), 2.5)  # 0.59, 2 and 3.41: one of three
    0.5
    """
    return exceedance(redrawn.mean() + _LABEL_CORRELATION * (redrawn - redrawn.mean()), power)


class _FoldedBias:
    """Bias of a mean absolute error over the bins of many datasets, in the estimate and in its resamples.

    |gap + noise| is larger than |gap| on average, the more so the smaller the gap. The gap of a bin of few rows cannot be
    estimated, but the mean square over all bins has an unbiased estimate, the mean square of observed gaps less the mean variance
    of their noise: every bin is taken to have a gap of that size.
    """

    def __init__(self, resamples: int) -> None:
        """Start without datasets, for so many resamples."""
        self._weights: list[Float64s] = []
        self._variances: list[Float64s] = []
        self._shares: list[Float64s] = []
        self._signs: list[SignBounds] = []
        self._square = 0.0  # mean square of the observed gaps
        self._squares = np.zeros(resamples)  # the same in every resample

    def add(self, share: Float64s, bins: Bins, drawn: list[Bins], *, correlated: bool) -> None:
        """Add m datasets by their shares (m,), their bins and blocks of those of their resamples.

        The noise of a gap has the variance p (1 - p) / n, with p the rate after adding a row of the mean score. If `correlated`,
        it is multiplied by the design effect: the variance of the gaps over resamples, over that of independent rows; at least 1.
        """
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
        self._signs.append(sign_bounds(bins, design_effect))
        self._weights.append((share[:, None] * bins.share)[filled])
        self._variances.append(variance[filled] * design_effect)
        self._square += float(share @ (bins.share * bins.gap**2).sum(axis=1))
        squares = [(part.share * part.gap**2).sum(axis=1).reshape(len(share), -1) for part in drawn]
        self._squares += share @ np.hstack(squares)

    def sign_bounds(self) -> SignBounds:
        """Combine the leave-one-out sign bounds of all datasets by their shares to one; see :meth:`SignBounds.combine`."""
        return SignBounds.combine(self._signs, np.concatenate(self._shares))

    def deviations(self, powers: Float64s) -> Float64s:
        """Compute the deviations of resamples from the true error, given their mean absolute gaps `powers`, shape (resamples,).

        With B(s) the mean of E|g + noise| - g over bins with g the root of a mean square s, a resample is powers - B(its s); the
        deviations are these less their mean, plus B(s of the estimate).
        """
        weight, variance = np.concatenate(self._weights), np.concatenate(self._variances)
        size = self._square - float(weight @ variance)  # mean square of the true gaps
        squares = np.concatenate([[size], size + self._squares - self._squares.mean()])
        biases = []
        for block in blocks(len(squares), len(weight), _BINS_AT_ONCE):
            gap = np.sqrt(np.maximum(squares[block], 0.0) / weight.sum())[:, None]
            biases.append(np.vecdot(folded_mean(gap, variance) - gap, weight))
        bias = np.concatenate(biases)
        corrected = powers - bias[1:]
        return np.asarray(corrected - corrected.mean() + bias[0])
