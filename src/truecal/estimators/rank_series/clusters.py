"""The rank series of rows in clusters: products within a cluster are left out, and clusters are counted, not rows.

J clusters, K terms, G cells. Equation numbers are those of docs/methods/rank-series.md.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from truecal import options
from truecal.estimators.estimate import Interval
from truecal.estimators.rank_series.basis import (
    MAX_CELLS,
    RankCells,
    basis_functions,
    max_order,
    rank_basis,
    rank_cells,
)
from truecal.estimators.rank_series.fit import PENALTY, SIGNIFICANCE_GATE, jensen_corrected, shape_ratio
from truecal.estimators.rank_series.interval import (
    WINDOWS_PER_TERM,
    Pivot,
    UnexpectedOutcomes,
    predicted_outcome,
    window_index,
)
from truecal.estimators.rank_series.tests import smooth_test_statistic
from truecal.lenses.lens import Sample
from truecal.profile.profile import Profile
from truecal.resampling.draws import NullDistribution
from truecal.resampling.sign_flips import flip_sums
from truecal.resampling.units import Units, incidence, one_sided
from truecal.special import positive
from truecal.types import Float64s

COMPARISON_TERMS = 6  # tuned on two overconfident models, 40 clusters: three terms are covered 0.8 of the time, six 0.9
CLUSTERS_PER_TERM = 6  # by choice: clusters that a covariance of the terms is estimated from, at least
_MAX_QUANTILE = 8.0  # derived: the level of a normal quantile beyond it is 1 but for rounding


def cluster_order(clusters: int) -> int:
    """Return the largest number of terms for so many clusters, floor(sqrt(clusters) / 2) between 3 and 64.

    >>> cluster_order(20), cluster_order(400)
    (3, 10)
    """
    return int(max_order(np.array(clusters)))


@dataclass(frozen=True, eq=False)
class ClusteredSeries:
    """The rank series of one dataset, estimated from products of residuals of different clusters only (20).

    J clusters, K terms, G cells. The variance is the cluster-robust one, but not below that of independent calibrated rows,
    because outcomes that are all equal have no variance between clusters. Quantiles are Student's with J - 1 degrees of freedom.
    """

    cells: RankCells
    n: float  # sample size
    scores: Float64s  # (G,) of the cells
    weights: Any  # sparse (2 G, J): weights of the zeros, then of the ones of every cell, by cluster
    functions: Float64s  # (K, G) basis functions, at least as many as terms
    terms: int
    one_sided: bool  # whether all outcomes are the same

    @classmethod
    def of(cls, data: Sample | Profile, units: Units | None = None) -> "ClusteredSeries":
        """Fit the series of a sample whose rows belong to `units`, or of a profile that stores the units of its rows.

        Raises InputError for a single unit. Units of a profile without a row of positive weight are not counted.
        """
        if isinstance(data, Sample):
            assert units is not None
            units.refuse_one()
            profile, cluster, clusters = data.profile, units.of_row[data.order], units.count
        else:
            assert data.units is not None
            profile, codes = data, np.unique(data.units if data.weights is None else data.units[data.weights[0] > 0])
            # Rows of weight 0 belong to any cluster.
            cluster, clusters = np.minimum(np.searchsorted(codes, data.units), len(codes) - 1), len(codes)
            Units(cluster, clusters, "clusters").refuse_one()
        distinct, weights = incidence(profile, cluster, clusters, MAX_CELLS)
        cells = replace(rank_cells(distinct), units=np.array([float(clusters)]))
        order = max(cluster_order(clusters), min(COMPARISON_TERMS, clusters // CLUSTERS_PER_TERM))
        functions = basis_functions(rank_basis(cells, order), cells)[0]
        scores, terms = distinct.scores[0].astype(np.float64), min(cluster_order(clusters), len(functions))
        return cls(cells, float(weights.sum()), scores, weights, functions, terms, one_sided(profile))

    @cached_property
    def by_side(self) -> "ClusteredSeries":
        """The same number of terms in functions of the rank within each side of 1/2 (4a) instead of the rank of all rows."""
        basis = rank_basis(self.cells, len(self.functions), by_side=True)
        return replace(self, functions=basis_functions(basis, self.cells)[0])

    @cached_property
    def lower_risk(self) -> "ClusteredSeries":
        """`by_side` if its smallest risk is lower than that of this series by more than one standard error (9a), else this one.

        The standard error is the root of the null variance of `by_side`. With few distinct scores (4b), or without rows on both
        sides of 1/2, it is this series.
        """
        if self.cells.few_scores[0] or not self.cells.sides.small.any():
            return self
        gain = self._risk.min() - self.by_side._risk.min()
        return self.by_side if gain > np.sqrt(self.by_side._null_variance) else self

    # ------------------------------------------------------------------ fit

    @cached_property
    def sums(self) -> Float64s:
        """Contributions of clusters to the coefficients, shape (J, K): s_gk = sum over its rows of phi_k(c) (y - c), over n."""
        products = np.tile(self.functions[: self.terms], 2) * self._residuals
        return self._cluster_sums(products) / self.n

    @cached_property
    def coefficients(self) -> Float64s:
        """Coefficients of the series (5), the sums of `sums` over clusters, shape (K,)."""
        return np.asarray(self.sums.sum(axis=0))

    @cached_property
    def theta(self) -> Float64s:
        """The estimates of the squared error with 1, ..., K terms (20), shape (K,); they may be negative.

        The cumulative sum over terms of coefficient^2 - sum_g s_g^2, over the share of pairs of rows from different clusters.
        """
        return np.cumsum(self.coefficients**2 - (self.sums**2).sum(axis=0)) / self._between_share

    @cached_property
    def _risk(self) -> Float64s:
        """The risk (9) with k = 1, ..., K terms, shape (K,): -theta_k + 2 (sum of the variances of the first k coefficients)."""
        return -self.theta + PENALTY * np.cumsum(self._covariance.diagonal())

    @cached_property
    def order(self) -> int:
        """Number of terms, 1 to K, of the smallest risk; K where there are no more distinct scores than terms (4b)."""
        return len(self.theta) if self.cells.few_scores[0] else int(np.argmin(self._risk)) + 1

    @cached_property
    def gap(self) -> Float64s:
        """Fitted outcome rate minus score of every cell with `order` terms, shape (G,)."""
        return self.coefficients[: self.order] @ self.functions[: self.order]

    @cached_property
    def value(self) -> float:
        """The root-mean-square error, sqrt(max(theta, 0)) with theta of `order` terms, at most 1.

        A theta above 1.645 standard deviations of noise, sqrt(2) |V|_F with V the covariance of the coefficients, is corrected
        first by Jensen's inequality (14), except where scores are few (4b).
        """
        power, chosen = self.theta[self.order - 1], self._covariance[: self.order, : self.order]
        if power > SIGNIFICANCE_GATE * np.sqrt(2 * (chosen**2).sum()) and not self.cells.few_scores[0]:
            power = jensen_corrected(power, self._slope, self._curvature)
        return min(float(np.sqrt(max(power, 0.0))), 1.0)

    @property
    def _clusters(self) -> int:
        """Number of clusters J."""
        return int(self.weights.shape[1])

    @cached_property
    def _rows(self) -> Float64s:
        """Sum of weights of every cluster, shape (J,)."""
        return np.asarray(self.weights.sum(axis=0))

    @cached_property
    def _residuals(self) -> Float64s:
        """Residual -c of a zero in every cell, then residual 1 - c of a one in every cell, shape (2 G,)."""
        return np.concatenate([-self.scores, 1 - self.scores])

    def _cluster_sums(self, values: Float64s) -> Float64s:
        """Sum values of rows by cluster with their weights, shape (J, ...).

        `values`, shape (..., 2 G), are those of a zero in every cell, then those of a one in every cell.
        """
        return np.asarray(self.weights.T @ values.T)

    @cached_property
    def _between_share(self) -> float:
        """Share of ordered pairs of rows in different clusters, 1 - sum_g (n_g / n)^2 with n_g the weight of cluster g."""
        return 1 - float(((self._rows / self.n) ** 2).sum())

    @cached_property
    def _covariance(self) -> Float64s:
        """Cluster-robust covariance of the coefficients, shape (K, K): sum_g d_g d_g' over `_between_share`.

        d_g = s_g - (n_g / n) coefficients, with s_g the row of cluster g in `sums` and n_g its weight.
        """
        centered = self.sums - (self._rows / self.n)[:, None] * self.coefficients
        return centered.T @ centered / self._between_share

    @cached_property
    def _null_covariance(self) -> Float64s:
        """Covariance of the coefficients of independent calibrated rows (10), mean of phi_j phi_k c (1 - c) over n, shape (K, K).

        Where all outcomes are equal, J takes the place of n.
        """
        functions, variances = self.functions[: self.terms], self.scores * (1 - self.scores)
        independent = self._clusters if self.one_sided else self.n
        return (functions * (self.cells.shares[0] * variances / independent)) @ functions.T

    @cached_property
    def _null_variance(self) -> float:
        """The variance a of the estimate with K terms under calibration: 2 |V|_F^2, the larger of both covariances V."""
        return 2 * max(float((v**2).sum()) for v in (self._covariance, self._null_covariance))

    @cached_property
    def _mean_square(self) -> float:
        """Mean of gap^2 over rows."""
        return float((self.cells.shares[0] * self.gap**2).sum())

    @cached_property
    def _slope(self) -> float:
        """The coefficient b of theta in the variance (13): 4 beta' V beta / mean gap^2, the larger of both covariances V.

        beta and V are those of the first `order` terms. Without a gap, 4 times the mean variance of the K coefficients.
        """
        covariances = self._covariance, self._null_covariance
        if self._mean_square <= 0:
            return 4 * float(max(v.diagonal().mean() for v in covariances))
        beta = self.coefficients[: self.order]
        return 4 * max(float(beta @ v[: self.order, : self.order] @ beta) for v in covariances) / self._mean_square

    @cached_property
    def _curvature(self) -> float:
        """The coefficient e of theta^2 in the variance (13); 0 without a gap.

        The sum over clusters of (sum over rows of (gap^2 / mean gap^2 - 1) / n)^2.
        """
        if self._mean_square <= 0:
            return 0.0
        relative = np.tile(self.gap**2 / self._mean_square - 1, 2)
        return float(((self._cluster_sums(relative) / self.n) ** 2).sum())

    # ------------------------------------------------------------------ inference

    @cached_property
    def pivot(self) -> Pivot:
        """The estimate with K terms and its variance a + b theta + e theta^2, from which limits are computed (17).

        The estimate for upper limits is the largest of theta_K and those of windows (16c), with 2 K and 4 K windows.
        """
        center = float(self.theta[-1])
        return Pivot(
            center=np.array([center]),
            null_variance=np.array([self._null_variance]),
            slope=np.array([self._slope]),
            curvature=np.array([self._curvature]),
            upper_center=np.array([max(center, *map(self._window_estimate, WINDOWS_PER_TERM))]),  # (16c)
            unexpected=self._unexpected_outcomes(),
        )

    def estimate(self, level: float, norm: float = 2) -> tuple[float, float, Interval]:
        """Compute (error, signed power, confidence interval) for norm 1 or 2; the interval contains the error.

        The power is error^norm, or theta (at most 0) where the error is 0. Where Student's quantile is 8 or more, as for two
        clusters at 95 %, the limits are 0 and 1.
        """
        from scipy.special import ndtr, stdtrit

        quantile = float(stdtrit(self._clusters - 1, 0.5 + level / 2))
        lower, upper = np.zeros(1), np.ones(1)
        if quantile < _MAX_QUANTILE:
            lower, upper = self.pivot.interval(float(2 * ndtr(quantile) - 1))
        ratio = 1.0 if norm == 2 else float(shape_ratio(self.cells, self.gap[None])[0])
        value = self.value * ratio
        power = value**norm if value > 0 else min(float(self.theta[self.order - 1]), 0.0)
        assert self.pivot.unexpected is not None
        upper = self.pivot.unexpected.raise_limit(upper * ratio, level)
        low, high = min(float(lower[0]) * ratio, value), min(max(float(upper[0]), value), 1.0)
        return value, power, Interval(low, high, level, "clustered rank series")

    def test(self, *, resamples: int = 999, rng: int | np.random.Generator = 0) -> tuple[float, float]:
        """Test calibration with random signs for residuals of whole clusters (wild bootstrap, Liu 1988): (statistic, p-value).

        The statistic is (18), of the coefficients and the sum over clusters of s s'. Without a residual other than 0: (0, 1).
        """
        options.resamples(resamples)
        generator = options.generator(rng)
        squares = self.sums.T @ self.sums
        if not (squares.diagonal() > 0).any():
            return 0.0, 1.0
        statistic = float(smooth_test_statistic(self.coefficients, squares))
        null = NullDistribution(lambda flips, rng: smooth_test_statistic(flip_sums(self.sums, flips, rng), squares))
        return statistic, null.p_value(statistic, resamples, generator)

    # ------------------------------------------------------------------ parts of the pivot

    def _window_estimate(self, windows_per_term: int) -> float:
        """Estimate theta by products of residuals of different clusters within `windows_per_term` K windows of the rank (16b).

        The mean over windows, by their rows, of sum_{g != g'} R_g R_g' / sum_{g != g'} n_g n_g', with R_g the sum of residuals
        and n_g the weight of cluster g in the window; 0 for windows of one cluster.
        """
        rows, residuals = self._window_sums(windows_per_term * self.terms)
        window_rows, window_residuals = _line_sums(rows), _line_sums(residuals)
        pairs = window_rows**2 - _line_sums(rows.power(2))
        weights = np.where(pairs > 0, window_rows / window_rows.sum() / positive(pairs), 0.0)
        return float(weights @ (window_residuals**2 - _line_sums(residuals.power(2))))

    def _window_sums(self, windows: int) -> tuple[Any, Any]:
        """Sum weights and residuals of every cluster in every window: two sparse matrices (weights, residuals), (windows, J).

        There may be more windows than asked for, as the numbers on both sides of 1/2 are rounded, and empty ones.
        """
        from scipy.sparse import csr_array

        window = np.tile(window_index(self.cells, np.array([windows]))[0], 2)
        lines, shape = np.arange(len(window)), (int(window.max()) + 1, len(window))
        values = np.ones(len(window)), self._residuals
        rows, residuals = (csr_array((value, (window, lines)), shape=shape) @ self.weights for value in values)
        return rows, residuals

    def _unexpected_outcomes(self) -> UnexpectedOutcomes:
        """Count outcomes on the other side of 1/2 than their scores, and rows, divided by the design effect of that count.

        The design effect is the variance of the number of a cluster over that of independent rows, and at least 1. One cluster of
        unexpected outcomes is added to both, since none would leave it undefined.
        """
        prediction = predicted_outcome(self.scores)
        by_cluster = self._cluster_sums(np.concatenate([prediction, 1 - prediction]))
        observed = by_cluster.sum()
        expected = (self.cells.counts[0] * np.minimum(self.scores, 1 - self.scores)).sum()
        squares = ((by_cluster - self._rows * (observed / self.n)) ** 2).sum()
        design_effect = max(float((squares + self.n / self._clusters) / (observed + 1)), 1.0)
        return UnexpectedOutcomes(*(np.array([number]) / design_effect for number in (observed, expected, self.n)))


def _line_sums(matrix: Any) -> Float64s:
    """Sum a sparse matrix over its columns, shape (rows,).

    >>> from scipy.sparse import csr_array
    >>> _line_sums(csr_array([[1.0, 2.0], [0.0, 3.0]]))
    array([3., 3.])
    """
    return np.asarray(matrix.sum(axis=1)).ravel()
