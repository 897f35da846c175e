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
_MAX_QUANTILE = 8.0  # derived: the level of a normal quantile beyond it rounds to 1


def cluster_order(clusters: int) -> int:
    """Return the largest number of terms for so many clusters: `max_order` as an integer."""
    return int(max_order(np.array(clusters)))


@dataclass(frozen=True, eq=False)
class ClusteredSeries:
    """The rank series of one dataset with products within clusters left out (20).

    Its variance is the cluster-robust one, but not below that of independent calibrated rows, because outcomes that are all
    equal have no variance between clusters. Quantiles are Student's with J - 1 degrees of freedom.
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

        A single unit is refused. A profile counts only units with a row of positive weight.
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
        """The series in functions of the rank within each side of 1/2 (4a)."""
        basis = rank_basis(self.cells, len(self.functions), by_side=True)
        return replace(self, functions=basis_functions(basis, self.cells)[0])

    @cached_property
    def lower_risk(self) -> "ClusteredSeries":
        """The series by side of 1/2 if its risk is lower by more than one standard error (9a), else this one."""
        if self.cells.few_scores[0] or not self.cells.sides.small.any():
            return self
        gain = self._risk.min() - self.by_side._risk.min()
        return self.by_side if gain > np.sqrt(self.by_side._null_variance) else self

    # ------------------------------------------------------------------ fit

    @cached_property
    def sums(self) -> Float64s:
        """Contribution of every cluster to the coefficients, s of (20), shape (J, K)."""
        products = np.tile(self.functions[: self.terms], 2) * self._residuals
        return self._cluster_sums(products) / self.n

    @cached_property
    def coefficients(self) -> Float64s:
        """Coefficients of the series (5), shape (K,)."""
        return np.asarray(self.sums.sum(axis=0))

    @cached_property
    def theta(self) -> Float64s:
        """The estimate of the squared error with 1, ..., K terms (20), shape (K,)."""
        return np.cumsum(self.coefficients**2 - (self.sums**2).sum(axis=0)) / self._between_share

    @cached_property
    def _risk(self) -> Float64s:
        """The risk (9) with 1, ..., K terms, shape (K,)."""
        return -self.theta + PENALTY * np.cumsum(self._covariance.diagonal())

    @cached_property
    def order(self) -> int:
        """Number of terms that minimises the risk; all of them where scores are few (4b)."""
        return len(self.theta) if self.cells.few_scores[0] else int(np.argmin(self._risk)) + 1

    @cached_property
    def gap(self) -> Float64s:
        """Fitted outcome rate minus score, shape (G,)."""
        return self.coefficients[: self.order] @ self.functions[: self.order]

    @cached_property
    def value(self) -> float:
        """The root-mean-square error, corrected by Jensen's inequality (14) where it is significant; between 0 and 1."""
        power, chosen = self.theta[self.order - 1], self._covariance[: self.order, : self.order]
        if power > SIGNIFICANCE_GATE * np.sqrt(2 * (chosen**2).sum()) and not self.cells.few_scores[0]:
            power = jensen_corrected(power, self._slope, self._curvature)
        return min(float(np.sqrt(max(power, 0.0))), 1.0)

    @property
    def _clusters(self) -> int:
        """Number of clusters."""
        return int(self.weights.shape[1])

    @cached_property
    def _rows(self) -> Float64s:
        """Sum of weights of every cluster, shape (J,)."""
        return np.asarray(self.weights.sum(axis=0))

    @cached_property
    def _residuals(self) -> Float64s:
        """Residual of a zero, then of a one in every cell, shape (2 G,)."""
        return np.concatenate([-self.scores, 1 - self.scores])

    def _cluster_sums(self, values: Float64s) -> Float64s:
        """Sum values of the zeros, then of the ones of every cell, shape (..., 2 G), over clusters, shape (J, ...)."""
        return np.asarray(self.weights.T @ values.T)

    @cached_property
    def _between_share(self) -> float:
        """Share of pairs of rows that belong to different clusters."""
        return 1 - float(((self._rows / self.n) ** 2).sum())

    @cached_property
    def _covariance(self) -> Float64s:
        """Cluster-robust covariance of the coefficients, shape (K, K)."""
        centered = self.sums - (self._rows / self.n)[:, None] * self.coefficients
        return centered.T @ centered / self._between_share

    @cached_property
    def _null_covariance(self) -> Float64s:
        """Covariance of the coefficients of independent calibrated rows (10), shape (K, K)."""
        functions, variances = self.functions[: self.terms], self.scores * (1 - self.scores)
        independent = self._clusters if self.one_sided else self.n
        return (functions * (self.cells.shares[0] * variances / independent)) @ functions.T

    @cached_property
    def _null_variance(self) -> float:
        """The variance a of the estimate with all terms under calibration, by the larger of both covariances."""
        return 2 * max(float((v**2).sum()) for v in (self._covariance, self._null_covariance))

    @cached_property
    def _mean_square(self) -> float:
        """Mean squared gap of the fitted curve over rows."""
        return float((self.cells.shares[0] * self.gap**2).sum())

    @cached_property
    def _slope(self) -> float:
        """The coefficient b of theta in the variance (13)."""
        covariances = self._covariance, self._null_covariance
        if self._mean_square <= 0:
            return 4 * float(max(v.diagonal().mean() for v in covariances))
        beta = self.coefficients[: self.order]
        return 4 * max(float(beta @ v[: self.order, : self.order] @ beta) for v in covariances) / self._mean_square

    @cached_property
    def _curvature(self) -> float:
        """The coefficient e of theta^2 in the variance (13)."""
        if self._mean_square <= 0:
            return 0.0
        relative = np.tile(self.gap**2 / self._mean_square - 1, 2)
        return float(((self._cluster_sums(relative) / self.n) ** 2).sum())

    # ------------------------------------------------------------------ inference

    @cached_property
    def pivot(self) -> Pivot:
        """The estimate of the series with all its terms and its variance, for (17)."""
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
        """Compute the error of norm 1 or 2, its signed power, and its confidence interval, which contains the error.

        Where Student's quantile is above 8, as for two clusters at 95 %, the limits are 0 and 1.
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
        """Test calibration by the statistic (18) with signs of whole clusters flipped (wild bootstrap, Liu 1988).

        Returns the statistic and its p-value; 0 and 1 where no cluster has a residual.
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
        """Estimate theta by products of different clusters within windows (16b)."""
        rows, residuals = self._window_sums(windows_per_term * self.terms)
        window_rows, window_residuals = _line_sums(rows), _line_sums(residuals)
        pairs = window_rows**2 - _line_sums(rows.power(2))
        weights = np.where(pairs > 0, window_rows / window_rows.sum() / positive(pairs), 0.0)
        return float(weights @ (window_residuals**2 - _line_sums(residuals.power(2))))

    def _window_sums(self, windows: int) -> tuple[Any, Any]:
        """Sum the weights and the residuals of every cluster in every window, sparse matrices of shape (windows or more, J)."""
        from scipy.sparse import csr_array

        window = np.tile(window_index(self.cells, np.array([windows]))[0], 2)
        lines, shape = np.arange(len(window)), (int(window.max()) + 1, len(window))
        values = np.ones(len(window)), self._residuals
        rows, residuals = (csr_array((value, (window, lines)), shape=shape) @ self.weights for value in values)
        return rows, residuals

    def _unexpected_outcomes(self) -> UnexpectedOutcomes:
        """Count unexpected outcomes, divided by their design effect.

        The design effect is the variance of the number of a cluster over that of independent rows, and at least 1. One cluster
        of unexpected outcomes is added to both, since none would leave it undefined.
        """
        prediction = predicted_outcome(self.scores)
        by_cluster = self._cluster_sums(np.concatenate([prediction, 1 - prediction]))
        observed = by_cluster.sum()
        expected = (self.cells.counts[0] * np.minimum(self.scores, 1 - self.scores)).sum()
        squares = ((by_cluster - self._rows * (observed / self.n)) ** 2).sum()
        design_effect = max(float((squares + self.n / self._clusters) / (observed + 1)), 1.0)
        return UnexpectedOutcomes(*(np.array([number]) / design_effect for number in (observed, expected, self.n)))


def _line_sums(matrix: Any) -> Float64s:
    """Sum a sparse matrix over its columns, shape (rows,)."""
    return np.asarray(matrix.sum(axis=1)).ravel()
