"""The rank series of rows that come in clusters: estimate, interval and test that count clusters, not rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.estimators.estimate import Interval
from truecal.estimators.pivot import Pivot, at_least, expects_one
from truecal.estimators.rank_series.basis import largest_sum, rank_basis, rank_cells
from truecal.estimators.rank_series.fit import GATE
from truecal.estimators.rank_series.runs import between_clusters
from truecal.estimators.resampling.units import Units, incidence, one_sided
from truecal.lenses.sample import Sample
from truecal.profile.profile import Profile
from truecal.types import Float64s, Indices

_MOST_TERMS = 64
_CELLS = 1024  # not more than the rank series joins by itself, so that its cells are these
_MOST_JENSEN = 0.25  # as in the rank series of independent rows


@dataclass(frozen=True, eq=False)
class ClusteredSeries:
    r"""Root-mean-square calibration error with whole clusters left out.

    As in :class:`RankSeries`, beta_j = sum of phi_j(c) (y - c) / n on polynomials orthonormal in the rank of c. Outcomes of
    one cluster are correlated, so their products do not have mean zero noise: with s_g the sum of phi (y - c) over cluster g,

        theta_k = sum_{j<=k} sum_{g != h} s_gj s_hj / n^2 / (1 - sum_g (n_g / n)^2)

    leaves out all products within a cluster. Its variance is that of :class:`Pivot`, with V = sum_g s_g s_g' / n^2 about the
    cluster means in the place of the covariance under independence, but not less than the latter: outcomes that are all alike
    say nothing about how clusters differ. J clusters pay for max(3, sqrt(J)/2) terms, and quantiles are Student's with J - 1
    degrees of freedom.
    """

    sums: Float64s  # (J, K) s_g
    share: Float64s  # (J,) n_g / n
    chosen: int  # number of terms of least risk
    theta: Float64s  # (K,)
    noise: float
    spread: float
    value: float  # norm 2
    shape: float  # mean|m| / rms(m) of the fitted curve
    covariance: Float64s  # (K, K) of beta
    least: Float64s  # (K, K) the same if rows were independent and calibrated
    most: float  # theta for the upper end: what runs of neighbouring scores show beyond the series
    misses: Float64s  # (3, 1) outcomes on the other side of 1/2 than their scores, in units of independent ones

    @classmethod
    def of(cls, sample: Sample, units: Units) -> "ClusteredSeries":
        """The series of a sample whose rows belong together as `units` say."""
        units.refuse_one()
        return cls.of_places(sample.profile, units.of_row[sample.order], units.count)

    @classmethod
    def of_profile(cls, profile: Profile) -> "ClusteredSeries":
        """The series of a profile that knows its units."""
        assert profile.units is not None
        codes, unit = np.unique(profile.units, return_inverse=True)
        if len(codes) < 2:
            raise InputError(
                "all rows belong to one unit: it cannot tell how much another would differ; give at least two"
            )
        return cls.of_places(profile, unit.astype(np.intp), len(codes))

    @classmethod
    def of_places(cls, profile: Profile, unit: Indices, count: int, terms: int | None = None) -> "ClusteredSeries":
        """The series of sorted rows, each of one of `count` units; of as many terms as these pay for unless told."""
        cells, matrix = incidence(profile, unit, count, _CELLS)
        ranks = rank_cells(cells)
        phi = rank_basis(ranks).functions(ranks)[0]
        phi = phi[: terms_of(count) if terms is None else terms]
        score = cells.scores[0].astype(np.float64)
        residual = np.concatenate([-score, 1 - score])  # of a zero and of a one in every cell
        both = np.concatenate([phi, phi], axis=1)
        n = float(matrix.sum())
        sums = np.asarray(matrix.T @ (both * residual).T) / n
        share = np.asarray(matrix.sum(axis=0)) / n
        beta = sums.sum(axis=0)
        distinct = 1 - float((share**2).sum())
        about = sums - share[:, None] * beta
        covariance = about.T @ about / distinct
        theta = np.cumsum(beta**2 - (sums**2).sum(axis=0)) / distinct
        best = int(np.argmin(-theta + 2 * np.cumsum(covariance.diagonal())))
        kept = slice(0, best + 1)
        gap = beta[kept] @ phi[kept]
        weight = cells.weights[0] / n if cells.weights is not None else np.full(cells.rows, 1 / n)
        second = float((weight * gap**2).sum())
        chance = weight * score * (1 - score) / (count if one_sided(profile) else n)
        least = (phi * chance) @ phi.T
        noise, spread, shape = 4 * float(max(covariance.diagonal().mean(), least.diagonal().mean())), 0.0, 1.0
        if second > 0:
            noise = 4 * max(float(beta[kept] @ v[kept, kept] @ beta[kept]) for v in (covariance, least)) / second
            surplus = np.concatenate([gap**2 - second] * 2)
            spread = float(((matrix.T @ surplus / n) ** 2).sum()) / second**2
            shape = float((weight * np.abs(gap)).sum() / np.sqrt(second))
        power = float(theta[best])
        value = np.sqrt(max(power, 0.0))
        if power > GATE * np.sqrt(2 * (covariance[kept, kept] ** 2).sum()):
            value *= 1 + min((noise / power + spread) / 8, _MOST_JENSEN)
        most = between_clusters(ranks, matrix, residual, float(theta[-1]), 2 * float((covariance**2).sum()), len(phi))
        value, misses = min(float(value), 1.0), _independent_misses(score, matrix)
        return cls(sums, share, best, theta, noise, spread, value, shape, covariance, least, most, misses)

    @property
    def clusters(self) -> int:
        return len(self.share)

    @property
    def power(self) -> float:
        return float(self.theta[self.chosen])

    def estimate(self, norm: float) -> tuple[float, float]:
        """The error and its signed power, as :class:`RankSeries` would state them."""
        value = self.value * (self.shape if norm == 1 else 1.0)
        return value, value**norm if value > 0 else min(self.power, 0.0)

    @property
    def pivot(self) -> Pivot:
        floor = 2 * max(float((v**2).sum()) for v in (self.covariance, self.least))
        numbers = np.array([[float(self.theta[-1])], [floor], [self.noise], [self.spread], [self.most]])
        centre, floors, noise, spread, most = numbers
        return Pivot(centre, floors, noise, spread, most, misses=self.misses)

    def interval(self, level: float, norm: float = 2) -> Interval:
        """Confidence interval for the true error; contains the value."""
        from scipy.special import ndtr, stdtrit

        student = float(stdtrit(self.clusters - 1, 0.5 + level / 2))
        low, high = self.pivot.interval(float(2 * ndtr(student) - 1)) if student < 8 else (np.zeros(1), np.ones(1))
        scale = self.shape if norm == 1 else 1.0
        value, _ = self.estimate(norm)
        high = at_least(high * scale, self.misses, level)
        return Interval(
            min(float(low[0]) * scale, value),
            min(max(float(high[0]), value), 1.0),
            level,
            "clustered rank series",
        )

    def test(self, *, resamples: int = 999, rng: int | np.random.Generator = 0) -> tuple[float, float]:
        """Statistic and p-value: are all clusters consistent with calibration?

        The statistic is that of :class:`RankSeries`. Under calibration s_g has mean zero, so a whole cluster's sign may be turned
        (the wild bootstrap of Liu 1988).
        """
        options.resamples(resamples)
        generator = options.generator(rng)
        squares = self.sums.T @ self.sums
        if not (squares.diagonal() > 0).any():
            return 0.0, 1.0
        statistic = float(largest_sum(self.sums.sum(axis=0), squares))
        reached = 0
        step = max(1, (1 << 22) // self.clusters)
        for start in range(0, resamples, step):
            signs = generator.integers(0, 2, (min(step, resamples - start), self.clusters)) * 2.0 - 1
            turned = largest_sum(signs @ self.sums, squares)
            reached += int(np.count_nonzero(turned >= statistic - 1e-12 * abs(statistic)))
        return statistic, (1 + reached) / (1 + resamples)


def terms_of(clusters: int) -> int:
    """How many terms so many clusters pay for."""
    return int(min(_MOST_TERMS, max(3, np.sqrt(clusters) // 2)))


def _independent_misses(score: Float64s, matrix: Any) -> Float64s:
    """Misses seen, expected, and rows, each divided by how many misses come together in a cluster.

    That is the variance of the misses of a cluster over that of independent ones. One more miss counts as if its whole cluster had
    missed: as long as none is seen, nothing tells how many come together.
    """
    places = len(score)
    one = expects_one(score)
    missed = np.concatenate([one, ~one]).astype(float)
    of_cluster, rows = matrix.T @ missed, np.asarray(matrix.sum(axis=0))
    n, seen = rows.sum(), of_cluster.sum()
    counts = np.asarray(matrix.sum(axis=1))
    expected = ((counts[:places] + counts[places:]) * np.minimum(score, 1 - score)).sum()
    together = (((of_cluster - rows * (seen / n)) ** 2).sum() + n / len(rows)) / (seen + 1)
    return np.array([[seen], [expected], [n]]) / max(float(together), 1.0)


class JointSigns:
    """One test of calibration for many datasets on the same clusters (or runs of rows in time).

    The statistic is the weighted sum of :meth:`ClusteredSeries.test`'s; a cluster's sign is turned in all datasets at once.
    """

    def __init__(self, units: Units, resamples: int, rng: np.random.Generator) -> None:
        self.units = units.whole()
        self._signs = rng.integers(0, 2, (resamples, self.units.count)) * 2.0 - 1
        self._found, self._turned = 0.0, np.zeros(resamples)

    def add(self, sums: Float64s, share: float) -> None:
        """One more dataset by its sums over `units`, shape (units, terms)."""
        squares = sums.T @ sums
        if (squares.diagonal() > 0).any():
            self._found += share * float(largest_sum(sums.sum(axis=0), squares))
            self._turned += share * largest_sum(self._signs @ sums, squares)

    def p_value(self) -> float:
        reached = np.count_nonzero(self._turned >= self._found - 1e-12 * abs(self._found))
        return float(1 + reached) / (1 + len(self._turned))
