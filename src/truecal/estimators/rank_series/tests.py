"""The test of calibration by the statistic (18) of the rank series, with outcomes redrawn from the scores."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from truecal.estimators.rank_series.basis import RankCells, cell_parts, coefficient_covariance, rank_basis
from truecal.profile.profile import Profile
from truecal.resampling.draws import LinearRedraws, NullDistribution, RedrawTest
from truecal.special import positive
from truecal.types import Float64s

_ROUNDING = 1e-12  # derived: residuals that are zero but for rounding
_MIN_VARIANCE, _MIN_SCALE = 1e-280, 1e-20  # derived: their product divides a squared coefficient of 1 without overflow


def smooth_test_statistic(coefficients: Float64s, covariance: Float64s) -> Float64s:
    """Compute the largest standardised sum of excess squares of the first coefficients (18).

    `coefficients` have the shape (..., K), `covariance` is theirs under calibration.
    """
    # Relative to the largest variance, squares of tiny scores do not underflow.
    variances = covariance.diagonal()
    unit = max(float(variances.max()), _MIN_VARIANCE)
    scale = np.sqrt(2 * np.cumsum(np.cumsum((covariance / unit) ** 2, axis=0), axis=1).diagonal())
    first = int(np.argmax(scale > 0))  # sums of squares: once positive they stay positive
    sums = np.tri(len(scale))[first:] / np.maximum(scale[first:], _MIN_SCALE)[:, None]
    squares = (coefficients / np.sqrt(unit)) ** 2
    return np.asarray(((sums @ squares.T).T - sums @ variances / unit).max(axis=-1))


def smooth_tests(cells: RankCells) -> Iterator[tuple[float, NullDistribution | None]]:
    """Yield the statistic of every dataset of a batch and its distribution under calibration.

    The distribution is None where no outcome can vary. Neighbouring datasets with the same scores share it. Tests have the
    terms in the rank of all rows whatever series the value has: no outcome has chosen them.
    """
    basis = rank_basis(cells)
    covariances = coefficient_covariance(basis, cells.null_variances, cells.n)
    null, null_scores = None, (np.zeros(0), np.zeros(0))
    for i, covariance in enumerate(covariances):
        counts, scores, residuals = cells.counts[i % len(cells.counts)], cells.scores[i], cells.residual_sums[i]
        if not (covariance.diagonal() > 0).any():
            # Scores are 0 and 1 only: an unexpected outcome refutes them.
            yield np.inf if (np.abs(residuals) > _ROUNDING).any() else 0.0, None
            continue
        functions = basis[i % len(basis)] / np.sqrt(positive(counts) * cells.n[i])
        if not (np.array_equal(scores, null_scores[0]) and np.array_equal(counts, null_scores[1])):
            null_scores = scores, counts
            redraws = LinearRedraws(counts, scores, counts * cells.null_variances[i], functions)
            null = NullDistribution(partial(_redrawn_statistics, redraws, covariance))
        yield float(smooth_test_statistic(functions @ residuals, covariance)), null


def _redrawn_statistics(
    redraws: LinearRedraws, covariance: Float64s, number: int, rng: np.random.Generator
) -> Float64s:
    """Compute the smooth test statistic of `number` redraws, shape (number,)."""
    return smooth_test_statistic(redraws.draw(number, rng), covariance)


def test_calibration(profile: Profile, redraws: int, rng: np.random.Generator) -> RedrawTest:
    """Compute statistic and p-value of every dataset of independent rows."""
    statistics, p_values = [], []
    for cells in cell_parts(profile):
        for statistic, null in smooth_tests(cells):
            smallest = 1 / (1 + redraws)
            without_redraws = smallest if statistic > 0 else 1.0
            p_values.append(without_redraws if null is None else null.p_value(statistic, redraws, rng))
            statistics.append(statistic)
    return RedrawTest(np.array(statistics), np.array(p_values))
