"""The test of calibration by the statistic (18) of the rank series, with outcomes redrawn from the scores."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from truecal.estimators.rank_series.basis import RankCells, cell_parts
from truecal.profile.profile import Profile
from truecal.resampling.draws import LinearRedraws, NullDistribution, RedrawTest
from truecal.special import positive
from truecal.types import Float64s

_ROUNDING = 1e-12  # derived: residuals that are zero but for rounding
_MIN_VARIANCE, _MIN_SCALE = 1e-280, 1e-20  # derived: their product divides a squared coefficient of 1 without overflow


def smooth_test_statistic(coefficients: Float64s, covariance: Float64s) -> Float64s:
    """Compute the largest standardised sum of excess squares of the first coefficients (18), shape (...).

    max_k sum_{j <= k} (b_j^2 - V_jj) / sqrt(2 sum_{i, j <= k} V_ij^2), with the coefficients b of shape (..., K) and their
    covariance V under calibration, shape (K, K), of which a diagonal entry is positive.

    >>> float(smooth_test_statistic(np.array([2.0]), np.array([[2.0]])).round(4))  # (4 - 2) / sqrt(8)
    0.7071
    """
    # Relative to the largest variance, squares of tiny scores do not underflow.
    variances = covariance.diagonal()
    unit = max(float(variances.max()), _MIN_VARIANCE)
    scale = np.sqrt(2 * np.cumsum(np.cumsum((covariance / unit) ** 2, axis=0), axis=1).diagonal())
    first = int(np.argmax(scale > 0))  # sums of squares: once positive they stay positive
    sums = np.tri(len(scale))[first:] / np.maximum(scale[first:], _MIN_SCALE)[:, None]
    squares = (coefficients / np.sqrt(unit)) ** 2
    return np.asarray(((sums @ squares.T).T - sums @ variances / unit).max(axis=-1))


def smooth_tests(cells: RankCells, *, share_redraws: bool = False) -> Iterator[tuple[float, NullDistribution]]:
    """Yield the statistic (18) of every dataset of a batch and its distribution under calibration.

    Where all scores are 0 or 1 the statistic is 0, or infinite for an outcome of probability 0, and those of redraws are 0. With
    `share_redraws` consecutive datasets with the same scores have the same distribution. The terms are those in the rank of all
    rows, also where the estimate is by side of 1/2: a choice by the outcomes would change the distribution.
    """
    previous = -1
    for i in range(len(cells.n)):
        k = i % len(cells.counts)
        end, terms = (
            np.flatnonzero(cells.counts[k])[-1] + 1,
            int(cells.orders[k]),
        )  # without the empty cells of `stack_cells`
        counts, scores, residuals = cells.counts[k, :end], cells.scores[i, :end], cells.residual_sums[i, :end]
        covariance = cells.null_covariance[i, :terms, :terms]
        if not (covariance.diagonal() > 0).any():
            constant = NullDistribution(lambda redraws, rng: np.zeros(redraws))
            yield np.inf if (np.abs(residuals) > _ROUNDING).any() else 0.0, constant
            continue
        functions = cells.basis[k % len(cells.basis), :terms, :end] / np.sqrt(positive(counts) * cells.n[i])
        if not (share_redraws and previous >= 0 and _same_scores(cells, previous, i)):
            previous = i
            redraws = LinearRedraws(counts, scores, counts * cells.null_variances[i, :end], functions)
            null = NullDistribution(partial(_redrawn_statistics, redraws, covariance))
        yield float(smooth_test_statistic(functions @ residuals, covariance)), null


def _same_scores(cells: RankCells, i: int, j: int) -> bool:
    """Decide whether two datasets of a batch have the same scores and counts."""
    counts = cells.counts[[i % len(cells.counts), j % len(cells.counts)]]
    return np.array_equal(cells.scores[i], cells.scores[j]) and np.array_equal(*counts)


def _redrawn_statistics(
    redraws: LinearRedraws, covariance: Float64s, number: int, rng: np.random.Generator
) -> Float64s:
    """Compute the smooth test statistic of `number` redraws, shape (number,)."""
    return smooth_test_statistic(redraws.draw(number, rng), covariance)


def test_calibration(profile: Profile, redraws: int, rng: np.random.Generator) -> RedrawTest:
    """Compute statistic (18) and p-value, by up to `redraws` redraws, of every dataset of independent rows, shape (batch,)."""
    statistics, p_values = [], []
    for cells in cell_parts(profile):
        for statistic, null in smooth_tests(cells, share_redraws=True):
            statistics.append(statistic)
            p_values.append(null.p_value(statistic, redraws, rng))
    return RedrawTest(np.array(statistics), np.array(p_values))
