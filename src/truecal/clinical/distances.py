"""Distances of the flexible curve from the diagonal (ICI, E50, E90, Emax), with intervals by test inversion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from truecal.clinical.cohort import Cohort, Quantity, weighted_quantiles
from truecal.clinical.curves import SplineCurve
from truecal.special import expit, symmetric_root
from truecal.types import Float64s, Indices

# by choice: scores, one for each equal share of the rows, at which drawn curves are compared with the diagonal
_POINTS = 60
_DRAWS = 600  # derived: a tail of 2.5 % is known to 0.6 points; curves drawn around each hypothesis
_CANDIDATES = 4000  # by choice: parameters from which the hypotheses are selected
_HYPOTHESES = 17  # by choice: hypotheses off the diagonal
# derived: standard errors between the fitted parameters and the farthest hypothesis; a normal passes 4 once in 16,000
_MAX_DISTANCE = 4.0


ArrayMap = Callable[[Float64s], Float64s]


def _percentile(share: float) -> ArrayMap:
    """Return the function from gaps (draws, 62) to the quantile (draws,) of |gap| over the first 60 points.

    >>> gap = np.concatenate([np.arange(60.0), [99.0, 99.0]])[None]
    >>> _percentile(0.5)(gap), _percentile(0.9)(gap)
    (array([29.]), array([53.]))
    """
    rank = int(_POINTS * share) - 1
    return lambda gap: np.partition(np.abs(gap[:, :_POINTS]), rank, axis=1)[:, rank]


@dataclass(frozen=True)
class _Distance:
    """One of the four distances and the settings of its test.

    Attributes
    ----------
    compute : function from gaps (r, 62) at the points to distances (r,).
    size_share : size of the test far from the diagonal, as a share of 1 - level. Tuned on four simulated worlds of 250 cohorts:
        with 1, 0.937 of true means were covered and 0.962 of quantiles, which are no smooth functions of the curve.
    student : whether it depends on a few events, whose variance is uncertain (Student errors).
    """

    compute: ArrayMap
    size_share: float
    student: bool


_NAMES = ("ici", "e50", "e90", "emax")
_DISTANCES = (
    _Distance(lambda gap: np.abs(gap[:, :_POINTS]).mean(axis=1), 0.8, student=False),
    _Distance(_percentile(0.5), 1.2, student=False),
    _Distance(_percentile(0.9), 1.2, student=True),
    _Distance(lambda gap: np.abs(gap).max(axis=1), 1.2, student=True),
)


def distances(gap: Float64s, weights: Float64s) -> Float64s:
    """Compute ICI, E50, E90 and Emax of gaps (..., n) between curve and diagonal with weights (n,): shape (4, ...).

    Weighted mean, 50 % and 90 % quantile (the smallest with at least that share of weight), and maximum of |gap| over rows of
    positive weight.

    >>> distances(np.array([0.1, -0.2, 0.4, 9.0]), np.array([2.0, 1.0, 1.0, 0.0]))
    array([0.2, 0.1, 0.4, 0.4])
    """
    positive = weights > 0
    size, weight = np.abs(gap[..., positive]), weights[positive] / weights[positive].sum()
    order = np.argsort(size, axis=-1)
    ranked = np.take_along_axis(size, order, axis=-1)
    cumulative = np.cumsum(weight[order], axis=-1)
    measures = [size @ weight]
    for share in (0.5, 0.9):
        rank = np.minimum((cumulative < share * (1 - 1e-12)).sum(axis=-1), size.shape[-1] - 1)
        measures.append(np.take_along_axis(ranked, rank[..., None], axis=-1)[..., 0])
    return np.stack([*measures, ranked[..., -1]])


def curve_distances(cohort: Cohort, curve: SplineCurve, level: float, rng: np.random.Generator) -> dict[str, Quantity]:
    r"""Compute ICI, E50, E90 and Emax (Austin and Steyerberg 2019), with intervals by test inversion.

    They are mean, median, 90th percentile and maximum of |curve - diagonal| over the rows of the cohort.

    An estimated curve is off the diagonal even where the true one is not, so an interval centred at the value never covers a
    calibrated model. Hypotheses are tested instead: the diagonal, and for growing distances the parameters nearest to the fitted
    ones that have that distance (the constrained estimate, selected from many candidates). Around each, curves are drawn with the
    covariance that the fit would have there, and the hypothesis is rejected if the value is too low or too high among the
    distances drawn, at size 1 - level. At the diagonal a distance can only be too large, so the test is one-sided there; with
    growing distance it becomes two-sided. The interval is the range of the distances that are not rejected, and contains the value.
    """
    value = distances(curve.evaluate(cohort.scores) - cohort.scores, cohort.weights)
    covariance = parameter_covariance(cohort, curve)
    if not curve.converged or not covariance.any():
        reason = "the rows determine no variance of the curve" if curve.converged else "the outcomes are separated"
        method = f"{reason}: no interval"
        return dict(zip(_NAMES, (Quantity(float(v), 0.0, 1.0, level, None, method) for v in value), strict=True))
    points = _points(cohort)
    noise = _draw_errors(covariance, rng)
    errors = _errors_at(curve, points, noise)
    candidates, mahalanobis = _draw_candidates(curve, covariance, rng)
    curves_at = curve.evaluator(points)
    gaps, gap = curves_at(candidates) - points, curves_at(curve.parameters[None]) - points
    probabilities = _stratified_probabilities(len(noise), rng)
    intervals = []
    for v, distance in zip(value, _DISTANCES, strict=True):
        true_distances, nearest = _select_hypotheses(distance.compute(gaps), mahalanobis)
        hypotheses = np.vstack([curve.calibrated, candidates[nearest]])

        @cache
        def draw(i: int, near: float, distance: _Distance = distance, hypotheses: Float64s = hypotheses) -> Float64s:
            """Draw distances (draws,) of estimated curves where hypothesis i is true; `near` is its closeness to the diagonal."""
            factor = _student_factors(probabilities, curve, near) if distance.student else 1.0
            return distance.compute(curves_at(hypotheses[i] + factor * errors(hypotheses[i])) - points)

        observed, size = float(distance.compute(gap)[0]), distance.size_share * (1 - level)
        intervals.append(_invert(float(v), observed, true_distances, draw, size, level))
    ici, e50, e90, emax = intervals
    # a mean is at least half of the median and a tenth of the 90th percentile, which is not above the largest distance
    e50, e90 = replace(e50, low=min(e50.low, 2 * ici.low)), replace(e90, low=min(e90.low, 10 * ici.low))
    emax = replace(emax, low=min(max(emax.low, e90.low), emax.value))
    return dict(zip(_NAMES, (ici, e50, e90, emax), strict=True))


def _draw_candidates(curve: SplineCurve, covariance: Float64s, rng: np.random.Generator) -> tuple[Float64s, Float64s]:
    """Draw 4000 parameter vectors (4000, k) at most 4 standard errors from the line through calibrated and fitted parameters.

    Returns them and their squared Mahalanobis distances (4000,) from the fitted parameters by `covariance` (k, k). Positions on
    the line are uniform, at most 4 standard errors from the fit, not beyond the calibrated parameters; from there, in nine of
    ten, a uniform distance in a uniform direction. Directions without variance stay on the line.
    """
    step = curve.parameters - curve.calibrated
    root = symmetric_root(covariance)
    standard = np.linalg.pinv(root, rcond=1e-6, hermitian=True)
    # within the span of the covariance: directions without variance are left out
    direction = rng.standard_normal((_CANDIDATES, len(root))) @ (root @ standard)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    size = rng.uniform(0, _MAX_DISTANCE, _CANDIDATES) * (rng.random(_CANDIDATES) < 0.9)
    reach = _MAX_DISTANCE / max(float(np.linalg.norm(step @ standard)), 1e-9)
    along = rng.uniform(max(1 - reach, 0.0), 1 + reach, _CANDIDATES)
    candidates = curve.calibrated + along[:, None] * step + (size[:, None] * direction) @ root
    deviations = (candidates - curve.parameters) @ standard
    return candidates, np.einsum("ij,ij->i", deviations, deviations)


def _select_hypotheses(distance: Float64s, mahalanobis: Float64s) -> tuple[Float64s, Indices]:
    """Select, in 17 bins of the distance (r,) of candidates, the one of least squared Mahalanobis distance (r,) from the fit.

    Bins are equal on the square-root scale and span the candidates within 4 standard errors. Returns the true distances,
    ascending, from 0 (the diagonal) on, and the indices of the candidates, which have no entry for the diagonal.
    """
    plausible = distance[mahalanobis <= _MAX_DISTANCE**2]
    edges = np.linspace(plausible.min() ** 0.5, plausible.max() ** 0.5, _HYPOTHESES + 1) ** 2
    edges[0], edges[-1] = plausible.min(), plausible.max()  # exact: a root squared may round to either side
    bins = np.searchsorted(edges, distance, side="right")
    best = [
        np.flatnonzero(bins == j)[np.argmin(mahalanobis[bins == j])]
        for j in range(1, _HYPOTHESES + 2)
        if (bins == j).any()
    ]
    nearest = np.array(sorted(best, key=lambda i: distance[i]), np.intp)
    return np.concatenate([[0.0], distance[nearest]]), nearest


def _points(cohort: Cohort) -> Float64s:
    """Return 62 scores: the weighted quantiles at 1/120, 3/120, ..., 119/120, then the lowest and the highest score.

    >>> import truecal as tc
    >>> points = _points(Cohort.of(tc.Predictions.from_probs([0.2, 0.9], [0, 1])))
    >>> len(points), points[[0, 29, 30, 59, 60, 61]]
    (62, array([0.2, 0.2, 0.9, 0.9, 0.2, 0.9]))
    """
    shares = np.append((np.arange(_POINTS) + 0.5) / _POINTS, [0.0, 1.0])
    return weighted_quantiles(cohort.scores, cohort.weights, shares)


def parameter_covariance(cohort: Cohort, curve: SplineCurve) -> Float64s:
    """Return the covariance (k, k) of the parameters (coefficients, then rates of cells) from which curves are drawn.

    That of the coefficients is `curve.binomial` for independent rows; for clusters `curve.covariance`, raised to the binomial one
    in the directions where it is smaller: the variance of a few events is estimated poorly, and mostly too low.
    """
    covariance, count = curve.covariance.copy(), len(curve.coefficients)
    if cohort.units is None or not count:
        covariance[:count, :count] = curve.binomial[:count, :count]
        return covariance
    values, vectors = np.linalg.eigh(curve.binomial[:count, :count])
    positive = values > values.max() * 1e-12
    root = vectors[:, positive] * np.sqrt(values[positive])
    inverse = vectors[:, positive] / np.sqrt(values[positive])
    effects, directions = np.linalg.eigh(inverse.T @ covariance[:count, :count] @ inverse)
    root = root @ directions
    covariance[:count, :count] += root * np.maximum(1 - effects, 0.0) @ root.T
    return covariance


def _draw_errors(covariance: Float64s, rng: np.random.Generator) -> Float64s:
    """Draw at least 600 normal errors (draws, k) with a covariance (k, k), with variance reduction.

    Directions come in orthogonal sets (of the QR decomposition of normal matrices), each with its opposite; squared lengths are
    chi-squared with k degrees of freedom at equal steps of their distribution. The seed is the same by default, so Monte Carlo
    error would bias all intervals in one direction.

    >>> draws = _draw_errors(np.eye(2), np.random.default_rng(0))
    >>> draws.shape, round(float((draws**2).sum(axis=1).mean()), 2)  # two variances of 1
    ((600, 2), 2.0)
    """
    from scipy.special import gammaincinv

    k = len(covariance)
    sets = -(-_DRAWS // (2 * k))
    turned = np.linalg.qr(rng.standard_normal((sets, k, k)))[0]
    direction = np.concatenate([turned, -turned]).reshape(-1, k)
    length = np.sqrt(2 * gammaincinv(k / 2, _stratified_probabilities(len(direction), rng)))
    return np.asarray(length[:, None] * direction @ symmetric_root(covariance))


def _stratified_probabilities(count: int, rng: np.random.Generator) -> Float64s:
    """Return (i + 1/2) / count, i = 0, ..., count - 1, in random order.

    >>> sorted(_stratified_probabilities(4, np.random.default_rng(0)).tolist())
    [0.125, 0.375, 0.625, 0.875]
    """
    return np.asarray((rng.permutation(count) + 0.5) / count)


def _student_factors(probabilities: Float64s, curve: SplineCurve, near: float) -> Float64s:
    """Return factors (draws, 1) that turn normal errors into Student's, from uniform `probabilities` (draws,).

    Far from the diagonal a distance depends on one direction of the parameters; on it (`near` is 1) on all k of them, whose
    joint variance has k times the degrees of freedom.
    """
    from scipy.special import chdtri

    df = curve.effective_df * (1 + (len(curve.parameters) - 1) * near)
    # interpolated: its error is negligible beside that of the draws
    nodes = np.linspace(0, 1, len(probabilities) // 5 + 1)[1:-1]
    return np.sqrt(df / np.exp(np.interp(probabilities, nodes, np.log(chdtri(df, nodes)))))[:, None]


def _errors_at(curve: SplineCurve, points: Float64s, noise: Float64s) -> ArrayMap:
    """Return the function from true parameters (k,) to errors (draws, k) that a fit would have if they were true.

    `noise` (draws, k) are errors at the fitted parameters; without a spline they are returned unchanged. The covariance of the
    coefficients is A^-1 M A^-1 with A = L L' the information of independent rows. L^-1 M L^-T, the effect of clusters and
    weights, is taken from the fit; A is evaluated at the true parameters.
    """
    count = len(curve.coefficients)
    inside = points[:_POINTS][(curve.cell_of(points) < 0)[:_POINTS]]
    inside = inside[(inside > 0) & (inside < 1)]
    if not count or not len(inside):
        return lambda truth: noise
    design = curve.design(inside)

    def root(parameters: Float64s) -> Float64s:
        """Compute the Cholesky root L, for the coefficients alone, of the information at parameters (k,)."""
        rate = expit(design @ parameters[:count])
        information = (design * np.maximum(rate * (1 - rate), 1e-12)[:, None]).T @ design
        return np.asarray(np.linalg.cholesky(information + 1e-9 * np.diag(information.diagonal())))

    standardised = noise[:, :count] @ root(curve.parameters)

    def errors(truth: Float64s) -> Float64s:
        """Scale the standardised errors by the information at the true parameters (k,): shape (draws, k)."""
        return np.hstack([np.linalg.solve(root(truth).T, standardised.T).T, noise[:, count:]])

    return errors


def _invert(
    value: float,
    observed: float,
    true_distances: Float64s,
    draw: Callable[[int, float], Float64s],
    size: float,
    level: float,
) -> Quantity:
    """Compute the range of true distances (ascending) that the observed one does not reject, as the interval of `value`.

    `draw(i, near)` are the distances of curves drawn about hypothesis i, whose closeness to the diagonal is `near` (1: on it);
    `size` is that of the tests far from it.
    """
    scale = max(float(np.median(draw(0, 1.0))), 1e-300)  # median distance under calibration
    near = [float(np.exp(-distance / scale)) for distance in true_distances]

    def upper_excess(i: int) -> float:
        """Compute the quantile 1 - tail of distances drawn about hypothesis i, less the observed one.

        The tail probability is (1 - near) size / 2 + near (1 - level), near the closeness of the hypothesis to the diagonal (1:
        on it).
        """
        tail = (1 - near[i]) * size / 2 + near[i] * (1 - level)
        return float(np.quantile(draw(i, near[i]), 1 - tail)) - observed

    def lower_excess(i: int) -> float:
        """Compute the quantile (1 - near) size / 2 of distances drawn about hypothesis i, less the observed one.

        It is minus the observed distance for i = 0, the diagonal; near is the closeness of the hypothesis to it.
        """
        return float(np.quantile(draw(i, near[i]), (1 - near[i]) * size / 2)) - observed if i else -observed

    middle = int(np.searchsorted(true_distances, observed))
    low, high = (_solve_crossing(true_distances, excess, middle) for excess in (upper_excess, lower_excess))
    ratio = value / observed if observed > 0 else 1.0
    return Quantity(value, min(low * ratio, value), min(max(high * ratio, value), 1.0), level, None, "test inversion")


def _solve_crossing(true_distances: Float64s, excess: Callable[[int], float], middle: int) -> float:
    """Solve by bisection, starting at index `middle`, for the true distance at which an increasing excess is 0.

    Interpolated between neighbouring hypotheses; the smallest distance if its excess is already 0 or above, the largest if no
    excess reaches 0.

    >>> _solve_crossing(np.array([0.0, 0.1, 0.2]), [-2.0, -1.0, 3.0].__getitem__, 1)  # a quarter of the way from 0.1 to 0.2
    0.125
    """
    if excess(0) >= -1e-12:
        return float(true_distances[0])
    first, last = 0, len(true_distances)
    while last - first > 1:
        middle = middle if first < middle < last else (first + last) // 2
        first, last = (first, middle) if excess(middle) >= 0 else (middle, last)
    if last == len(true_distances):
        return float(true_distances[first])
    share = -excess(first) / (excess(last) - excess(first))
    return float(true_distances[first] + share * (true_distances[last] - true_distances[first]))
