"""Distances of the flexible curve from the diagonal (ICI, E50, E90, Emax), with intervals that allow for noise in the curve."""

from dataclasses import dataclass, replace

import numpy as np

from truecal.clinical.cohort import Cohort
from truecal.clinical.curve.spline import SplineCurve, sigmoid
from truecal.clinical.quantity import Quantity, student
from truecal.types import Float64s

_POINTS = 100  # scores, each standing for 1 % of the rows, at which drawn curves are compared with the diagonal
_DRAWS = 600  # curves drawn around each assumed truth
_DENIED = 0.1  # p-value below which a simpler gap is not a truth to be tried
_TRUTHS = 17  # assumed truths off the diagonal, in one direction
_SHORTEST, _LONGEST = 0.08, 6.0  # the nearest and the farthest, as multiples of the fitted gap
_FARTHER = 6.0  # standard errors by which the farthest is at least beyond the fitted gap, however small that is


@dataclass(frozen=True)
class CurveDistance:
    """Mean (ICI), median, 90th percentile and maximum of |curve - diagonal| over the rows of the cohort."""

    ici: Quantity
    e50: Quantity
    e90: Quantity
    emax: Quantity


def distances(gap: Float64s, weights: Float64s) -> Float64s:
    """ICI, E50, E90 and Emax of gaps (..., n) with weights (n,): (4, ...). Quantiles are the smallest gap that reaches them."""
    heavy = weights > 0
    size, weight = np.abs(gap[..., heavy]), weights[heavy] / weights[heavy].sum()
    order = np.argsort(size, axis=-1)
    ranked = np.take_along_axis(size, order, axis=-1)
    reached = np.cumsum(weight[order], axis=-1)
    found = [size @ weight]
    for share in (0.5, 0.9):
        place = np.minimum((reached < share * (1 - 1e-12)).sum(axis=-1), size.shape[-1] - 1)
        found.append(np.take_along_axis(ranked, place[..., None], axis=-1)[..., 0])
    return np.stack([*found, ranked[..., -1]])


def curve_distance(cohort: Cohort, curve: SplineCurve, level: float, rng: np.random.Generator) -> CurveDistance:
    r"""ICI, E50, E90 and Emax (Austin and Steyerberg 2019), with intervals by test inversion.

    A noisy curve lies off the diagonal even where the true one does not, so an interval that scatters about the value misses
    a calibrated model always. Here the truths theta_0 + lambda (theta - theta_0), lambda >= 0, are tried: theta the fitted
    parameters, theta_0 those of the diagonal. Around each, curves are drawn with the covariance of the fit, and a truth is kept
    unless the value lies in the lower (1 - level) / 2 of the distances drawn from it, or in their upper
    part. At the diagonal itself the distance can only be too large, so the whole 1 - level is spent there; with growing distance
    the upper part falls to (1 - level) / 2. The interval is the range of the distances of the truths kept, and holds the value.
    The upper end of Emax is not below that of a straight line on the log odds, see :func:`_reach_of_line`.
    """
    value = distances(curve.at(cohort.scores) - cohort.scores, cohort.weights)
    if not curve.converged:
        method = "the outcomes are separated: the curve has no standard error"
        return CurveDistance(*(Quantity(float(v), 0.0, 1.0, level, None, method) for v in value))
    points = _points(cohort)
    noise = _noise(curve, rng)
    observed = _quick((curve.at(points) - points)[None])[:, 0]
    rays = [_along(curve, step, noise, points) for step in _shapes(curve)]
    ici, e50, e90, emax = (
        _invert(float(value[i]), float(observed[i]), [ray[:, i] for ray in rays], level) for i in range(4)
    )
    # the largest distance is not below their mean or 90th percentile; where it may be 0 it stays, or 0 would be missed too often
    least = max(emax.low, ici.low, e90.low) if emax.low > 0 else 0.0
    most = max(emax.high, _reach_of_line(curve, points, level))
    return CurveDistance(ici, e50, e90, replace(emax, low=least, high=most))


def _shapes(curve: SplineCurve) -> list[Float64s]:
    """Gaps that may be the true ones, as parameters less those of the diagonal: the fitted one, and the simpler ones nearest to it
    (a straight line on the log odds, a shift, a change of slope) that the data do not deny."""
    found = [curve.parameters - curve.calibrated]
    for directions in curve.simpler:
        if directions.shape[1] < len(found[0]):
            plain, _, denied = _nearest(curve, directions)
            found += [] if denied else [plain]
    return found


def _nearest(curve: SplineCurve, directions: Float64s) -> tuple[Float64s, Float64s, bool]:
    """The gap along some directions that is nearest to the fitted one, its covariance, and whether the data deny it."""
    from scipy.special import chdtrc

    step = curve.parameters - curve.calibrated
    precision = np.linalg.pinv(curve.covariance, hermitian=True)
    weighted = directions.T @ precision
    inverse = np.linalg.pinv(weighted @ directions, hermitian=True)
    plain = directions @ inverse @ weighted @ step
    extra = len(step) - directions.shape[1]
    excess = float((step - plain) @ precision @ (step - plain))
    denied = extra > 0 and chdtrc(extra, excess) <= _DENIED
    return plain, directions @ inverse @ directions.T, bool(denied)


def _reach_of_line(curve: SplineCurve, points: Float64s, level: float) -> float:
    """An upper end of Emax where the curve may be a straight line on the log odds; 0 where the data deny that.

    The true largest gap is at one score, and its pointwise interval there fails on that side with probability (1 - level) / 2; the
    farthest end of all pointwise intervals is therefore an upper end for Emax. With few events the slope of a line is hardly known,
    and truths along the fitted gap alone do not reach far enough into the tail.
    """
    count = len(curve.coefficients)
    inner = (points > 0) & (points < 1) & (curve.cell_of(points) < 0)
    if not count or not inner.any():
        return 0.0
    plain, covariance, denied = _nearest(curve, curve.simpler[0])
    if denied:
        return 0.0
    x = curve.design(points[inner])
    centre = x @ (curve.calibrated + plain)[:count]
    reach = student(curve.df, level) * np.sqrt(np.einsum("ij,jk,ik->i", x, covariance[:count, :count], x))
    above, below = sigmoid(centre + reach) - points[inner], points[inner] - sigmoid(centre - reach)
    return float(max(above.max(), below.max()))


def _along(curve: SplineCurve, step: Float64s, noise: Float64s, points: Float64s) -> Float64s:
    """Distances of the truths on a ray (first column) and of curves drawn about each: (truths, 4, 1 + draws)."""
    found = []
    squared = float(step @ np.linalg.pinv(curve.covariance, hermitian=True) @ step)
    errors = max(squared, 1e-12) ** 0.5
    longest = max(_LONGEST, 1 + _FARTHER / errors)
    for factor in (0.0, *np.geomspace(_SHORTEST, longest, _TRUTHS).tolist()):
        truth = curve.calibrated + factor * step
        found.append(_quick(curve.drawn(points, np.vstack([truth, truth + noise])) - points))
    return np.stack(found)


def _points(cohort: Cohort) -> Float64s:
    """100 scores that stand for equal shares of the rows (equal ones where scores are tied), then the lowest and the highest."""
    order = np.argsort(cohort.scores)
    order = order[cohort.weights[order] > 0]
    reached = np.cumsum(cohort.weights[order])
    middle = (np.arange(_POINTS) + 0.5) / _POINTS * reached[-1]
    places = np.minimum(np.searchsorted(reached, middle), len(order) - 1)
    return cohort.scores[order[np.concatenate([places, [0, len(order) - 1]])]]


def _quick(gap: Float64s) -> Float64s:
    """:func:`distances` of gaps (r, 102) at the points that stand for all rows: (4, r)."""
    size = np.abs(gap)
    ranked = np.sort(size[:, :_POINTS], axis=1)
    return np.stack(
        [ranked.mean(axis=1), ranked[:, _POINTS // 2 - 1], ranked[:, _POINTS * 9 // 10 - 1], size.max(axis=1)]
    )


def _noise(curve: SplineCurve, rng: np.random.Generator) -> Float64s:
    """Errors of the parameters, drawn from Student's distribution with the curve's covariance and degrees of freedom."""
    values, vectors = np.linalg.eigh(curve.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    normal = rng.standard_normal((_DRAWS, len(values))) @ root.T
    return normal / np.sqrt(rng.chisquare(curve.df, _DRAWS) / curve.df)[:, None]


def _invert(value: float, observed: float, rays: list[Float64s], level: float) -> Quantity:
    """The range of the true distances, on any of the rays, that the observed one does not contradict."""
    half = (1 - level) / 2
    low, high = 1.0, 0.0
    for ray in rays:
        exact, drawn = np.where(ray[:, 0] < 1e-12, 0.0, ray[:, 0]), ray[:, 1:]  # the diagonal is exactly 0 off
        scale = float(np.median(drawn[0]))  # what noise alone looks like
        spent = half * (1 + np.exp(-exact / max(scale, 1e-300)))
        largest = np.array([np.quantile(row, 1 - share) for row, share in zip(drawn, spent, strict=True)])
        smallest = np.quantile(drawn, half, axis=1)
        low = min(low, _crossing(exact, largest - observed, first=True))
        high = max(high, _crossing(exact, observed - smallest, first=False))
    ratio = value / observed if observed > 0 else 1.0
    return Quantity(value, min(low * ratio, value), min(max(high * ratio, value), 1.0), level, None, "test inversion")


def _crossing(exact: Float64s, excess: Float64s, *, first: bool) -> float:
    """The distance at which `excess` changes sign: the first where it is not negative, or the last."""
    kept = np.flatnonzero(excess >= -1e-12)
    if not len(kept):
        return float(exact[-1] if first else exact[0])
    i = int(kept[0] if first else kept[-1])
    j = i - 1 if first else i + 1
    if j < 0 or j >= len(exact):
        return float(exact[i])
    share = max(excess[i], 0.0) / (max(excess[i], 0.0) - excess[j])
    return float(exact[i] + share * (exact[j] - exact[i]))
