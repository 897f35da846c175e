"""Limits of the difference of two calibration errors, of two models on the same or on different rows.

Both estimates X are drawn from the model (21) at pairs of errors, and a difference lies in the interval while neither
tail of the statistic (22) is too small. Equation numbers are those of docs/methods/rank-series.md; b, a and e are the
slope, the variance under calibration and the curvature of `Pivot`.
"""

from dataclasses import dataclass, replace

import numpy as np

from truecal.estimators.rank_series.basis import MAX_CELLS, basis_functions, max_order, rank_basis, rank_cells
from truecal.estimators.rank_series.clusters import ClusteredSeries
from truecal.estimators.rank_series.fit import SeriesFit, fit_basis, fit_series, unrefuted
from truecal.estimators.rank_series.interval import Pivot, series_pivot, slope_steps
from truecal.lenses.lens import Sample
from truecal.profile.profile import Profile
from truecal.resampling.units import Units, incidence
from truecal.special import positive, symmetric_root
from truecal.types import Float64s

_CLUSTERED_TERMS = 6  # tuned on two overconfident models, 40 clusters: three terms are covered 0.8 of the time, six 0.9
_CLUSTERS_PER_TERM = 6  # by choice: clusters that a covariance of the terms is estimated from, at least
_DRAWS = 1000  # by choice: draws of X, each with its mirror image; a tail of 2.5 % of 2000 is known to 0.35 points
_SEED = 26  # by choice: fixed, so that limits of the same data are the same
# by choice: 40 of 2000 draws; smaller tails are exponential with the mean excess, which no log-concave tail exceeds
_COUNTED_TAIL = 0.02
# by choice: differences tried at a time, and refinements between the last one inside and the next
_GRID, _ROUNDS = 16, 4
# by choice: sums of both errors tried for the nearest pair, and rounds with its covariance
_ERROR_SUMS, _NEAREST_ROUNDS = 160, 2
_MAX_CORRELATION = 1 - 1e-6  # derived: rounding; of the two estimates, so that their covariance is not singular
_MIN_VARIANCE = 1e-40  # derived: an estimate of 1e-20 squared; so that no division is by 0


@dataclass(frozen=True, eq=False)
class UnitNoise:
    """Contributions of every unit (row, cluster or cell) to the noise of a model's coefficients and mean squared gap."""

    coefficients: Float64s  # (K,)
    sums: Float64s  # (units, K) noise of every coefficient: its covariance is sums' sums
    squares: Float64s  # (units,) squared gaps of the unit minus their expectation, over n
    order: int = 0  # terms of the fitted curve, 0 where the error is 0


@dataclass(frozen=True, eq=False)
class Side:
    """One model of a comparison: its root-mean-square error, the pivot of its estimate, and its noise by units."""

    value: float
    pivot: Pivot
    noise: UnitNoise
    clusters: int | None = None  # whose noise is Student's; None: independent rows

    def limits(self, other: "Side", level: float, *, paired: bool) -> tuple[float, float, float]:
        """Compare two models: (lower, upper) limits of this error minus the other's, and the two-sided p-value of no difference.

        `paired` says that both models have the same units in the same order. Limits contain 0 if p is at least 1 - level; of the
        same model twice they are 0, with p = 1. Exchanging the models exchanges the limits and their signs.
        """
        if paired and self.value == other.value and np.array_equal(self.noise.sums, other.noise.sums):
            return 0.0, 0.0, 1.0  # the same model twice
        if float(self.pivot.center[0]) < float(other.pivot.center[0]):  # the same draws whichever comes first
            lower, upper, p = other.limits(self, level, paired=paired)
            return -upper, -lower, p
        joint = JointDistribution(self, other, paired=paired)
        p = 2 * float(joint.tail(np.zeros(1))[0])
        lower, upper = (joint.limit(end, (1 - level) / 2) for end in (-1.0, 1.0))
        if p >= 1 - level:
            lower, upper = min(lower, 0.0), max(upper, 0.0)
        return lower, upper, min(max(p, float(np.finfo(float).tiny)), 1.0)


# ---------------------------------------------------------------------- one model


def comparison_side(data: Sample | Profile, units: Units | None = None) -> Side:
    """Build one model of a comparison from its rows by `units`: rows, rows of one key, or clusters; one unit raises InputError.

    Without units it can only be compared unpaired: a profile, as of a sketch, or a sample of other rows than those of the other
    model.
    """
    if units is None:
        return _unpaired_side(data.profile if isinstance(data, Sample) else data)
    assert isinstance(data, Sample)
    units.refuse_one()
    return _cluster_side(data, units) if units.kind == "clusters" else _row_side(data, units)


def _series_by_side(profile: Profile) -> SeriesFit:
    """Fit the series in functions of the rank within each side of 1/2 (4a), without comparing its risk with the other series.

    So two models have the same functions also where the value of one is by the rank of all rows.
    """
    cells = rank_cells(profile)
    return unrefuted(fit_basis(cells, rank_basis(cells, by_side=True)))


def _unpaired_side(profile: Profile) -> Side:
    """Build one model of independent rows with rank cells as units, whose squared gaps have no noise here.

    The noise has the covariance of the fitted coefficients with outcomes at the fitted rates T: mean of phi_j phi_k T (1 - T),
    over n.
    """
    value, fit = float(next(fit_series(profile)).value[0]), _series_by_side(profile)
    deviations = np.sqrt(fit.rate * (1 - fit.rate) / fit.cells.n[0])
    sums = (fit.basis[0] * deviations).T
    return Side(value, series_pivot(fit), UnitNoise(fit.coefficients[0], sums, np.zeros(len(sums))))


def _row_side(sample: Sample, units: Units) -> Side:
    """Build one model with rows, or groups of rows of the same key, as units; its value is that of all rows as independent."""
    value = float(next(fit_series(sample.profile)).value[0])
    grouped = sample.with_units(units.of_row)
    cells, weights = incidence(grouped.profile, units.of_row[grouped.order], units.count, MAX_CELLS)
    fit = _series_by_side(cells)
    functions, scores = basis_functions(fit.basis, fit.cells)[0], cells.scores[0].astype(np.float64)
    noise = _unit_noise(fit.coefficients[0], functions, int(fit.order[0]), scores, weights)
    pivot = series_pivot(_series_by_side(sample.profile))
    return Side(value, pivot, noise if value > 0 else replace(noise, order=0))


def _cluster_side(sample: Sample, units: Units) -> Side:
    """Build one model with clusters as units; its noise has up to six terms, a sixth of the clusters, its value fewer.

    Noise that both models share cancels in a difference, so that more terms are affordable; the bias of too few does not cancel.
    """
    series = ClusteredSeries.of(sample.with_units(units.of_row), units)
    terms = min(_CLUSTERED_TERMS, units.count // _CLUSTERS_PER_TERM)
    longer = series.by_side(max(int(max_order(series.cells.units)[0]), terms))
    value, order = float(series.lower_risk.value[0]), int(longer.order[0])
    steps = slope_steps(longer.cells, longer.gap, longer.moments.slope)
    pivot = replace(longer.pivot, fitted_square=longer.moments.mean_square, slope_steps=steps)
    functions = basis_functions(longer.basis, longer.cells)[0]
    noise = _unit_noise(longer.coefficients[0], functions, order, longer.scores, longer.weights)
    # Residuals of a fit are shorter than the noise it was fitted to.
    inflation = np.sqrt(units.count / max(units.count - order, 1))
    noise = replace(noise, sums=noise.sums * inflation, order=order if value > 0 else 0)
    return Side(value, pivot, noise, units.count)


def _unit_noise(
    coefficients: Float64s, functions: Float64s, order: int, scores: Float64s, weights: object
) -> UnitNoise:
    """Sum by unit: functions times residuals of the fit, over n, and squared gaps less their mean, over n.

    `coefficients` (K,) and `functions` (K, G): the first `order` of them make the fit; `scores` (G,). `weights` (2 G, units) are
    those of `incidence`: zeros, then ones of every cell.
    """
    zeros, ones = weights[: len(scores)], weights[len(scores) :]  # type: ignore[index]
    rows = zeros + ones
    n = float(rows.sum())
    gap = coefficients[:order] @ functions[:order]
    sums = (functions * (1 - scores)) @ ones - (functions * scores) @ zeros - (functions * gap) @ rows
    squares = gap**2 @ rows
    squares = squares - np.asarray(rows.sum(axis=0)) * (squares.sum() / n)
    return UnitNoise(coefficients, sums.T / n, squares / n, order)


# ---------------------------------------------------------------------- both models


@dataclass(frozen=True, eq=False)
class CommonNoise:
    """Correlations of the estimates of two models on the same units; by default none, as on different rows."""

    null_correlation: float = 0.0  # of both X without an error
    linear_variance: float | None = None  # D: variance of the linear part of X_1 - X_2
    curvature_correlation: float = 0.0  # of H in (21)

    @classmethod
    def of_pair(cls, first: UnitNoise, second: UnitNoise) -> "CommonNoise":
        """Compute the correlations from the noise of the same units in both models.

        With V the covariance of all coefficients: |V_12|^2 / (|V_11| |V_22|) in Frobenius norms, `_linear_variance`, and the
        cosine of both vectors of squared gaps. 0 where a norm is 0.
        """
        joint, terms = _joint_covariance(first, second, paired=True), len(first.coefficients)
        blocks = joint[:terms, :terms], joint[terms:, terms:], joint[:terms, terms:]
        squares = [float((block**2).sum()) for block in blocks]
        null = squares[2] / np.sqrt(squares[0] * squares[1]) if min(squares[:2]) > 0 else 0.0
        length = np.sqrt(float((first.squares**2).sum() * (second.squares**2).sum()))
        curvature = float((first.squares * second.squares).sum()) / length if length > 0 else 0.0
        return cls(float(null), _linear_variance(first, second, joint), min(max(curvature, -1.0), 1.0))


def _joint_covariance(first: UnitNoise, second: UnitNoise, *, paired: bool) -> Float64s:
    """Compute the covariance of the coefficients of both models, shape (K_1 + K_2, K_1 + K_2), from sums by unit.

    Its blocks are sums_a' sums_b; those of different models are 0 unless `paired`.
    """
    cross = first.sums.T @ second.sums if paired else np.zeros((len(first.coefficients), len(second.coefficients)))
    return np.block([[first.sums.T @ first.sums, cross], [cross.T, second.sums.T @ second.sums]])


def _linear_variance(first: UnitNoise, second: UnitNoise, joint: Float64s) -> float:
    """Estimate the variance D of the linear part of X_1 - X_2: 4 max(f - w^2 / f, 0), or 0 where f is not positive.

    With beta the coefficients of both models and C their covariance `joint` with the sign of the cross blocks turned, f is beta'
    C beta less its mean if beta were noise only, and w its standard deviation then. beta has all terms of the difference of both
    models, and of their mean those that either curve uses.
    """
    counts = len(first.coefficients), len(second.coefficients)
    signs = np.repeat([1.0, -1.0], counts)
    contrast = joint * np.outer(signs, signs)
    # The mean of both coefficients is removed from terms that both models have and neither curve uses.
    unused = np.arange(max(first.order, second.order), min(counts))
    pairs = np.zeros((len(unused), len(joint)))
    pairs[np.arange(len(unused)), unused] = pairs[np.arange(len(unused)), counts[0] + unused] = 1.0
    projection = np.eye(len(joint)) - pairs.T @ pairs / 2
    coefficients = projection @ np.concatenate([first.coefficients, second.coefficients])
    null = contrast @ projection @ joint @ projection
    form = float(coefficients @ contrast @ coefficients - null.trace())
    null_variance = 2 * max(float((null * null.T).sum()), 0.0)
    return 4 * max(form - null_variance / form, 0.0) if form > 0 else 0.0


class JointDistribution:
    """The distribution (21) of the estimates X = (X_1, X_2) of two squared errors, at any pair of true errors.

    By 2000 draws with a fixed seed: 1000 and their mirror images.
    """

    def __init__(self, first: Side, second: Side, *, paired: bool) -> None:
        self._pivots = first.pivot, second.pivot
        self._null_variances = [float(p.null_variance[0]) for p in self._pivots]
        self._curvatures = [max(float(p.curvature[0]), 0.0) for p in self._pivots]
        centers = float(first.pivot.center[0]), float(second.pivot.center[0])
        upper_centers = float(first.pivot.upper_center[0]), float(second.pivot.upper_center[0])
        # Estimates of windows are used for both models: curves on the same rows jump at the same scores.
        self._observed = [centers] if upper_centers == centers else [centers, upper_centers]
        self._common = CommonNoise.of_pair(first.noise, second.noise) if paired else CommonNoise()
        # Standard L and H, R of variance 1, and one Student scale for all noise of a draw
        rng = np.random.default_rng(_SEED)
        mirrored = np.repeat([1.0, -1.0], _DRAWS)
        self._linear = mirrored * np.tile(rng.standard_normal((2, _DRAWS)), 2)
        self._curved = mirrored * np.tile(rng.standard_normal((2, _DRAWS)), 2)
        clusters = [side.clusters for side in (first, second) if side.clusters is not None]
        self._scale: Float64s | float = 1.0
        if clusters:
            degrees = min(clusters) - 1
            self._scale = np.tile(np.sqrt(degrees / rng.chisquare(degrees, _DRAWS)), 2)
        joint, terms = _joint_covariance(first.noise, second.noise, paired=paired), len(first.noise.coefficients)
        draws = rng.standard_normal((_DRAWS, len(joint))) @ symmetric_root(joint)
        self._remainders = []
        for model in (slice(0, terms), slice(terms, None)):
            part, covariance = draws[:, model], joint[model, model]
            deviation = np.sqrt(2 * float((covariance**2).sum()))
            excess = (part**2).sum(axis=1) - covariance.trace()
            remainder = excess / deviation if deviation > 0 else rng.standard_normal(_DRAWS)
            self._remainders.append(np.tile(remainder, 2))

    # ------------------------------------------------------------------ tails and limits

    def tail(self, differences: Float64s) -> Float64s:
        """Compute the smaller tail probability of T_d (22) for every difference d of the errors, shape (differences,).

        The share of draws of X, at the pair of errors with the difference d nearest to the observed X, whose T_d reaches the
        observed one, from above or from below. Where windows give other estimates than the series, each tail is the larger one of
        both.
        """
        tails = np.zeros((2, len(differences)))
        for observed in self._observed:
            drawn = _statistic(differences[:, None], *self.draw(self.nearest_errors(differences, observed)))
            statistic = _statistic(differences, *observed)
            np.maximum(tails, [_upper_tail(drawn, statistic), _upper_tail(-drawn, -statistic)], out=tails)
        return tails.min(axis=0)

    def limit(self, end: float, tail: float) -> float:
        """Find the end of the differences of errors whose `tail` is at least the given one, from the estimate towards `end`.

        `end` is -1.0 or 1.0. The search is on a grid that is refined to 1e-6; `end` where all differences have such a tail.
        """
        # Start where T_d of (22) is zero
        first, second = self._observed[0]
        accepted = float(np.sqrt(max(first, 0.0)) - np.sqrt(max(second, 0.0)))
        if min(first, second) < 0:
            accepted = float(np.copysign(np.sqrt(abs(first - second)), first - second))
        bound = end
        spacing = np.linspace(0.0, 1.0, _GRID) ** 3
        for _ in range(_ROUNDS):
            differences = accepted + (bound - accepted) * spacing
            rejected = np.flatnonzero(self.tail(differences[1:]) < tail)
            if len(rejected) == 0:
                return float(differences[-1])
            accepted, bound = differences[rejected[0]], differences[rejected[0] + 1]
            spacing = np.linspace(0.0, 1.0, _GRID)
        return float(accepted)

    def nearest_errors(self, differences: Float64s, observed: tuple[float, float]) -> tuple[Float64s, Float64s]:
        """Find, for every difference d, the errors (e_1, e_2) with e_1 - e_2 = d whose squares are nearest to `observed` X.

        Two arrays of shape (differences,). Nearest in the Mahalanobis distance by the covariance of X, which is computed at the
        pair found so far, in two rounds; the sum of the errors is between |d| and 2 - |d|.
        """
        smallest = np.abs(differences)
        largest = 2.0 - smallest
        total = sum(observed)
        error_sum = np.clip(np.sqrt(np.maximum(2 * total - differences**2, 0.0)), smallest, largest)
        grid = np.linspace(0.0, 1.0, _ERROR_SUMS)[:, None] ** 2
        for _ in range(_NEAREST_ROUNDS):
            first, second, cross = self.covariance(((error_sum + differences) / 2, (error_sum - differences) / 2))
            largest_sum = smallest + np.sqrt(2 * max(total, 0.0) + 8 * np.sqrt(first + second))
            error_sums = smallest + (np.minimum(largest_sum, largest) - smallest) * grid
            offset = [
                x - ((error_sums + sign * differences) / 2) ** 2 for x, sign in zip(observed, (1, -1), strict=True)
            ]
            distance = offset[0] ** 2 * second + offset[1] ** 2 * first - 2 * offset[0] * offset[1] * cross
            error_sum = error_sums[distance.argmin(axis=0), np.arange(len(differences))]
        return (error_sum + differences) / 2, (error_sum - differences) / 2

    # ------------------------------------------------------------------ moments and draws

    def linear_deviations(self, errors: tuple[Float64s, Float64s]) -> tuple[list[Float64s], Float64s]:
        """Compute the standard deviations [of model 1, of model 2] of 2 e L (21) and the correlation of both L, (pairs,) each.

        A deviation is e sqrt(b(e^2)). With D known, deviations are raised where they are too short for a triangle with sqrt(D),
        and the angle between them gives the correlation (where an error is 0, the root of that without errors); else it is 0.
        """
        slopes = [np.sqrt(p.slope_at(e * e)) for p, e in zip(self._pivots, errors, strict=True)]
        deviations = [e * slope for e, slope in zip(errors, slopes, strict=True)]
        if self._common.linear_variance is None:
            return deviations, np.zeros_like(deviations[0])
        difference = np.sqrt(self._common.linear_variance)
        # Triangle inequality: raise the shorter one, not beyond the noise of the other model, then both.
        raised = [
            np.maximum(deviation, np.minimum(longer - difference, e * slope))
            for deviation, longer, e, slope in zip(deviations, deviations[::-1], errors, slopes[::-1], strict=True)
        ]
        deviation_sum = np.maximum(raised[0] + raised[1], _MIN_VARIANCE)
        deviations = [deviation * np.maximum(difference / deviation_sum, 1.0) for deviation in raised]
        product = 2 * deviations[0] * deviations[1]
        cosine = (deviations[0] ** 2 + deviations[1] ** 2 - difference**2) / positive(product)
        # Without an error there is no triangle, and the squares of L are correlated as X is.
        without_error = np.sqrt(self._common.null_correlation)
        return deviations, np.where(product > 0, np.clip(cosine, -1.0, 1.0), without_error)

    def covariance(self, errors: tuple[Float64s, Float64s]) -> tuple[Float64s, Float64s, Float64s]:
        """Compute (Var X_1, Var X_2, Cov(X_1, X_2)) at each pair of true errors (e_1, e_2), shape (pairs,) each."""
        linear, correlation = self.linear_deviations(errors)
        curved = [np.sqrt(s) * e**2 for s, e in zip(self._curvatures, errors, strict=True)]
        variances = [
            a + deviation**2 + curve**2 + _MIN_VARIANCE
            for a, deviation, curve in zip(self._null_variances, linear, curved, strict=True)
        ]
        null = self._common.null_correlation * np.sqrt(self._null_variances[0] * self._null_variances[1])
        cross = null + correlation * linear[0] * linear[1] + self._common.curvature_correlation * curved[0] * curved[1]
        bound = _MAX_CORRELATION * np.sqrt(variances[0] * variances[1])
        return variances[0], variances[1], np.clip(cross, -bound, bound)

    def draw(self, errors: tuple[Float64s, Float64s]) -> tuple[Float64s, Float64s]:
        """Draw X_1 and X_2 (21) at every pair of true errors (e_1, e_2), (pairs, 2000) each, with the same noise each time.

        X is e^2 + (2 e d l + sqrt(curvature) e^2 c) u + N u^2, with l and c standard normals, each correlated between the
        models, d the deviation of `linear_deviations` over 2 e, and u the scale of few clusters (1 without). N = s d^2 (l^2 -
        1) + sqrt(max(a - 2 d^4, 0)) R has the variance a of the null, with s = min(1, sqrt(a / (2 d^4))) and R a remainder of
        variance 1.
        """
        deviations, correlation = self.linear_deviations(errors)
        linear = _correlate(self._linear, correlation[:, None])
        curved = _correlate(self._curved, np.full((1, 1), self._common.curvature_correlation))
        estimates = []
        for k, pivot in enumerate(self._pivots):
            e, a = errors[k][:, None], self._null_variances[k]
            without_error = np.sqrt(pivot.slope_at(errors[k] ** 2)) / 2
            deviation = np.where(
                errors[k] > 0, deviations[k] / np.where(errors[k] > 0, 2 * errors[k], 1.0), without_error
            )
            deviation = deviation[:, None]  # of L
            square_variance = 2 * deviation**4  # of L^2, at most a
            share = np.minimum(1.0, np.sqrt(a / np.maximum(square_variance, _MIN_VARIANCE)))
            remainder = np.sqrt(np.maximum(a - square_variance, 0.0)) * self._remainders[k]
            noise = share * deviation**2 * (linear[k] ** 2 - 1) + remainder
            with_error = 2 * e * deviation * linear[k] + np.sqrt(self._curvatures[k]) * e**2 * curved[k]
            estimates.append(e**2 + with_error * self._scale + noise * self._scale**2)
        return estimates[0], estimates[1]


def _correlate(standard: Float64s, correlation: Float64s) -> tuple[Float64s, Float64s]:
    """Combine two standard normals a and b, the rows of `standard` (2, draws): (a, r a + sqrt(1 - r^2) b), r the correlation.

    `correlation` has shape (pairs, 1); the first result has shape (1, draws), the second (pairs, draws).

    >>> first, second = _correlate(np.array([[1.0], [1.0]]), np.array([[0.6]]))
    >>> first, second.round(6)  # 0.6 + 0.8
    (array([[1.]]), array([[1.4]]))
    """
    return standard[:1], correlation * standard[0] + np.sqrt(1 - correlation**2) * standard[1]


def _statistic(difference: Float64s, first: Float64s | float, second: Float64s | float) -> Float64s:
    """Compute T_d of (22), X_1 - X_2 - d max(sqrt(max(2 (X_1 + X_2) - d^2, 0)), |d|), with d the difference of two errors.

    Arguments broadcast. It falls in d, and is 0 where X_1 and X_2 are positive and their roots differ by d.

    >>> _statistic(np.float64(0.0), 0.09, 0.04).round(12), abs(_statistic(np.float64(0.1), 0.09, 0.04)).round(12)
    (np.float64(0.05), np.float64(0.0))
    """
    error_sum = np.sqrt(np.maximum(2 * (first + second) - difference**2, 0.0))
    return np.asarray(first - second - difference * np.maximum(error_sum, np.abs(difference)))


def _upper_tail(drawn: Float64s, statistic: Float64s) -> Float64s:
    """Estimate the share of draws, shape (m, draws), at or above the statistic, shape (m,); exponential below a share of 2 %.

    Beyond the quantile q of 98 % it is 0.02 exp(-(statistic - q) / (mean of the top 2 % - q)).

    >>> drawn = np.arange(1000.0)[None]
    >>> _upper_tail(drawn, np.array([900.0])), bool(0 < _upper_tail(drawn, np.array([1100.0]))[0] < 0.001)
    (array([0.1]), True)
    """
    draws = drawn.shape[1]
    counted = int(_COUNTED_TAIL * draws)
    top = np.partition(drawn, draws - counted, axis=1)[:, draws - counted :]
    start = top.min(axis=1)
    mean_excess = np.maximum(top.mean(axis=1) - start, np.finfo(float).tiny)
    exponential = _COUNTED_TAIL * np.exp(-np.maximum(statistic - start, 0.0) / mean_excess)
    return np.where(statistic > start, exponential, (drawn >= statistic[:, None]).mean(axis=1))
