"""The rank series of rows in clusters: products within a cluster are left out, and clusters are counted, not rows.

J clusters, K terms, G cells. Equation numbers are those of docs/methods/rank-series.md.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from truecal.estimators.estimate import Interval
from truecal.estimators.rank_series.basis import (
    MAX_CELLS,
    RankCells,
    basis_functions,
    null_covariance,
    rank_basis,
    rank_cells,
    smooth_test_statistic,
)
from truecal.estimators.rank_series.fit import PENALTY, CurveMoments, SeriesFit, block_squares, shape_ratio
from truecal.estimators.rank_series.interval import (
    WINDOWS_PER_TERM,
    Pivot,
    UnexpectedOutcomes,
    predicted_outcome,
    window_index,
)
from truecal.lenses.lens import Sample
from truecal.profile.profile import Profile
from truecal.resampling.units import Units, flip_test, incidence, one_sided
from truecal.special import positive
from truecal.types import Float64s

_MAX_QUANTILE = 8.0  # derived: the level of a normal quantile beyond it is 1 but for rounding


@dataclass(frozen=True, eq=False)
class ClusteredSeries(SeriesFit):
    """The rank series of one dataset, estimated from products of residuals of different clusters only (20).

    J clusters, K terms, G cells. The variance is the cluster-robust one, but not below that of independent calibrated rows,
    because outcomes that are all equal have no variance between clusters. Quantiles are Student's with J - 1 degrees of freedom.
    """

    scores: Float64s  # (G,) of the cells
    weights: Any  # sparse (2 G, J): weights of the zeros, then of the ones of every cell, by cluster
    sums: Float64s  # (J, K) contributions of clusters to the coefficients: sums over rows of phi_k(c) (y - c), over n
    covariances: tuple[Float64s, Float64s]  # (K, K) of the coefficients: cluster-robust; of independent calibrated rows
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
        scores = distinct.scores[0].astype(np.float64)
        return cls._fit(cells, cells.basis, scores, weights, all_equal=one_sided(profile))

    def by_side(self, order: int | None = None) -> "ClusteredSeries":
        """Fit the series in functions of the rank within each side of 1/2 (4a), of up to `order` terms; None: of as many."""
        basis = rank_basis(self.cells, order, by_side=True)
        return self._fit(self.cells, basis, self.scores, self.weights, all_equal=self.one_sided)

    @classmethod
    def _fit(
        cls, cells: RankCells, basis: Float64s, scores: Float64s, weights: Any, *, all_equal: bool
    ) -> "ClusteredSeries":
        """Fit the series in given functions (1, K, G), with the number of terms of the smallest risk, or all (4b).

        theta_k is the cumulative sum over terms of coefficient^2 - sum_g s_g^2, over the share of pairs of rows from different
        clusters (20), and the risk (9) is -theta_k + 2 (sum of the variances of the first k coefficients). The cluster-robust
        covariance is the sum of d_g d_g' over that share, d_g = s_g - (n_g / n) coefficients, with s_g the row of cluster g in
        `sums` and n_g its weight. Where all outcomes are equal, J takes the place of n in that of independent rows.
        """
        shares = np.asarray(weights.sum(axis=0)) / cells.n  # n_g / n
        residuals = np.concatenate([-scores, 1 - scores])
        sums = weights.T @ (np.tile(basis_functions(basis, cells)[0], 2) * residuals).T / cells.n
        coefficients, between = sums.sum(axis=0), 1 - float((shares**2).sum())
        centered = sums - shares[:, None] * coefficients
        covariance = centered.T @ centered / between
        independent = null_covariance(cells, basis)[0] * (cells.n / len(sums) if all_equal else 1.0)
        theta = np.cumsum(coefficients**2 - (sums**2).sum(axis=0)) / between
        risk = PENALTY * np.cumsum(covariance.diagonal()) - theta
        order = len(theta) if cells.few_scores[0] else int(np.argmin(risk)) + 1
        series = coefficients[None], theta[None], risk[None], np.array([order])
        return cls(cells, basis, *series, scores, weights, sums, (covariance, independent), all_equal)

    @cached_property
    def lower_risk(self) -> "ClusteredSeries":
        """`by_side` if its smallest risk is lower than that of this series by more than one standard error (9a), else this one.

        The standard error is the root of the null variance of `by_side`. With few distinct scores (4b), or without rows on both
        sides of 1/2, it is this series.
        """
        if self.cells.few_scores[0] or not self.cells.sides.small.any():
            return self
        by_side = self.by_side()
        return by_side if self.risk.min() - by_side.risk.min() > np.sqrt(by_side.null_variance) else self

    @cached_property
    def null_squares(self) -> Float64s:
        """|V|_F^2 of the cluster-robust covariance V of the first 1, ..., K coefficients, shape (1, K)."""
        return block_squares(self.covariances[0])[None]

    @property
    def null_variance(self) -> float:
        """The variance a of the estimate with K terms under calibration: 2 |V|_F^2, the larger of both covariances V."""
        return 2 * max(float((v**2).sum()) for v in self.covariances)

    @cached_property
    def moments(self) -> CurveMoments:
        """Mean of gap^2, and the coefficients b of theta and e of theta^2 in the variance (13), shape (1,) each.

        b is 4 beta' V beta / mean gap^2 with the larger of both covariances V, beta and V those of the chosen terms, and e the
        sum over clusters of (sum over rows of (gap^2 / mean gap^2 - 1) / n)^2. Without a gap b is 4 times the mean variance of
        the K coefficients, and e is 0.
        """
        order, square = int(self.order[0]), self.gap[0] ** 2
        mean_square, beta = float(self.cells.shares[0] @ square), self.coefficients[0, :order]
        slope, curvature = 4 * max(float(v.diagonal().mean()) for v in self.covariances), 0.0
        if mean_square > 0:
            slope = 4 * max(float(beta @ v[:order, :order] @ beta) for v in self.covariances) / mean_square
            deviations = self.weights.T @ np.tile(square / mean_square - 1, 2) / self.cells.n
            curvature = float((deviations**2).sum())
        return CurveMoments(*(np.array([number]) for number in (mean_square, slope, curvature)))

    # ------------------------------------------------------------------ inference

    @cached_property
    def pivot(self) -> Pivot:
        """The estimate with K terms and its variance a + b theta + e theta^2, from which limits are computed (17).

        The estimate for upper limits is the largest of theta_K and those of windows (16c), with 2 K and 4 K windows.
        """
        center = self.theta[:, -1]
        return Pivot(
            center=center,
            null_variance=np.array([self.null_variance]),
            slope=self.moments.slope,
            curvature=self.moments.curvature,
            upper_center=np.maximum(center, max(map(self._window_estimate, WINDOWS_PER_TERM))),  # (16c)
            unexpected=self._unexpected_outcomes(),
        )

    def estimate(self, level: float, norm: float = 2) -> tuple[float, float, Interval]:
        """Compute (error, signed power, confidence interval) for norm 1 or 2; the interval contains the error.

        The power is error^norm, or theta (at most 0) where the error is 0. Where Student's quantile is 8 or more, as for two
        clusters at 95 %, the limits are 0 and 1.
        """
        from scipy.special import ndtr, stdtrit

        quantile = float(stdtrit(len(self.sums) - 1, 0.5 + level / 2))
        lower, upper = np.zeros(1), np.ones(1)
        if quantile < _MAX_QUANTILE:
            lower, upper = self.pivot.interval(float(2 * ndtr(quantile) - 1))
        ratio = 1.0 if norm == 2 else shape_ratio(self.cells, self.gap)
        value = float(self.error(norm)[0])
        assert self.pivot.unexpected is not None
        upper = self.pivot.unexpected.raise_limit(upper * ratio, level)
        low, high = min(float((lower * ratio)[0]), value), min(max(float(upper[0]), value), 1.0)
        return value, float(self.signed_power(norm)[0]), Interval(low, high, level, "clustered rank series")

    def test(self, *, resamples: int = 999, rng: int | np.random.Generator = 0) -> tuple[float, float]:
        """Test calibration with random signs for residuals of whole clusters (wild bootstrap, Liu 1988): (statistic, p-value).

        The statistic is (18), of the coefficients and the sum over clusters of s s'. Without a residual other than 0: (0, 1).
        """
        squares = self.sums.T @ self.sums
        if not (squares.diagonal() > 0).any():
            return 0.0, 1.0
        return flip_test(self.sums, lambda totals: smooth_test_statistic(totals, squares), resamples, rng)

    # ------------------------------------------------------------------ parts of the pivot

    def _window_estimate(self, windows_per_term: int) -> float:
        """Estimate theta by products of residuals of different clusters within `windows_per_term` K windows of the rank (16b).

        The mean over windows, by their rows, of sum_{g != g'} R_g R_g' / sum_{g != g'} n_g n_g', with R_g the sum of residuals
        and n_g the weight of cluster g in the window; 0 for windows of one cluster.
        """
        from scipy.sparse import csr_array

        window = np.tile(window_index(self.cells, np.array([windows_per_term * self.theta.shape[1]]))[0], 2)
        members, shape = (window, np.arange(len(window))), (int(window.max()) + 1, len(window))
        values = np.ones(len(window)), np.concatenate([-self.scores, 1 - self.scores])
        by_cluster = [csr_array((value, members), shape=shape) @ self.weights for value in values]
        rows, residuals = (np.asarray(sums.sum(axis=1)).ravel() for sums in by_cluster)
        row_squares, residual_squares = (np.asarray(sums.power(2).sum(axis=1)).ravel() for sums in by_cluster)
        pairs = rows**2 - row_squares
        shares = np.where(pairs > 0, rows / rows.sum() / positive(pairs), 0.0)
        return float(shares @ (residuals**2 - residual_squares))

    def _unexpected_outcomes(self) -> UnexpectedOutcomes:
        """Count outcomes on the other side of 1/2 than their scores, and rows, divided by the design effect of that count.

        The design effect is the variance of the number of a cluster over that of independent rows, and at least 1. One cluster of
        unexpected outcomes is added to both, since none would leave it undefined.
        """
        n, clusters = float(self.cells.n[0]), len(self.sums)
        prediction = predicted_outcome(self.scores)
        by_cluster = self.weights.T @ np.concatenate([prediction, 1 - prediction])
        observed = by_cluster.sum()
        squares = ((by_cluster - np.asarray(self.weights.sum(axis=0)) * (observed / n)) ** 2).sum()
        design_effect = max(float((squares + n / clusters) / (observed + 1)), 1.0)
        return UnexpectedOutcomes(*(number / design_effect for number in UnexpectedOutcomes.of_cells(self.cells)))
