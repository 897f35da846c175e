"""Distances of the flexible curve from the diagonal (ICI, E50, E90, Emax), with intervals that allow for noise in the curve."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from truecal.clinical.cohort import Cohort
from truecal.clinical.curve.spline import SplineCurve
from truecal.clinical.quantity import Quantity
from truecal.types import Float64s

_POINTS = 100  # scores, each standing for 1 % of the rows, at which drawn curves are compared with the diagonal
_DRAWS = 600  # curves drawn around each assumed truth
_TRIED = 4000  # parameters among which the nearest truths are found
_TRUTHS = 17  # assumed truths off the diagonal
_FARTHEST = 4.0  # standard errors between the fitted parameters and the farthest of them


Quick = Callable[[Float64s], Float64s]


def _percentile(share: float) -> Quick:
    place = int(_POINTS * share) - 1
    return lambda gap: np.partition(np.abs(gap[:, :_POINTS]), place, axis=1)[:, place]


# :func:`distances` of gaps (r, 102) at the points that stand for all rows
_QUICK: tuple[Quick, ...] = (
    lambda gap: np.abs(gap[:, :_POINTS]).mean(axis=1),
    _percentile(0.5),
    _percentile(0.9),
    lambda gap: np.abs(gap).max(axis=1),
)


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
    a calibrated model always. Here truths are tried: the diagonal, and for growing distances the parameters nearest to the fitted
    ones that have that distance (the constrained estimate, found among many tried). Around each, curves are drawn with the
    covariance of the fit, and a truth is kept unless the value lies in the lower (1 - level) / 2 of the distances drawn from it,
    or in their upper part. At the diagonal itself the distance can only be too large, so the whole 1 - level is spent there; with
    growing distance the upper part falls to (1 - level) / 2. The interval is the range of the distances of the truths kept, and
    holds the value.
    """
    value = distances(curve.at(cohort.scores) - cohort.scores, cohort.weights)
    if not curve.converged:
        method = "the outcomes are separated: the curve has no standard error"
        return CurveDistance(*(Quantity(float(v), 0.0, 1.0, level, None, method) for v in value))
    points = _points(cohort)
    noise = _noise(curve, rng)
    gap = (curve.at(points) - points)[None]
    ici, e50, e90, emax = (
        _invert(float(v), float(quick(gap)[0]), _drawn(curve, truths, noise, points, quick), level)
        for v, quick, truths in zip(value, _QUICK, _nearest_truths(curve, points, rng), strict=True)
    )
    # the largest distance is not below the 90th percentile
    return CurveDistance(ici, e50, e90, replace(emax, low=max(emax.low, e90.low)))


def _nearest_truths(curve: SplineCurve, points: Float64s, rng: np.random.Generator) -> list[Float64s]:
    """For each of the four distances, the diagonal and parameters with growing distances, each the nearest to the fitted ones (by
    the covariance) among many tried with about that distance."""
    step = curve.parameters - curve.calibrated
    values, vectors = np.linalg.eigh(curve.covariance)
    kept = values > values.max() * 1e-12
    root = vectors[:, kept] * np.sqrt(values[kept])
    direction = rng.standard_normal((_TRIED, root.shape[1]))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    size = rng.uniform(0, _FARTHEST, _TRIED) * (rng.random(_TRIED) < 0.9)
    along = rng.uniform(0, 1.5, _TRIED)
    tried = curve.calibrated + along[:, None] * step + (size[:, None] * direction) @ root.T
    off = (tried - curve.parameters) @ (vectors[:, kept] / np.sqrt(values[kept]))
    far = np.einsum("ij,ij->i", off, off)
    found = []
    gaps = curve.drawn(points, tried) - points
    for distance in (quick(gaps) for quick in _QUICK):
        near = far <= _FARTHEST**2
        top = max(distance[near].max(), 1e-12) if near.any() else 1e-12
        bins = np.minimum((np.sqrt(distance / top) * _TRUTHS).astype(int), _TRUTHS)
        best = [np.flatnonzero(bins == j)[np.argmin(far[bins == j])] for j in range(_TRUTHS) if (bins == j).any()]
        best.sort(key=lambda i: distance[i])
        found.append(np.vstack([curve.calibrated, tried[best]]))
    return found


def _drawn(curve: SplineCurve, truths: Float64s, noise: Float64s, points: Float64s, quick: Quick) -> Float64s:
    """One distance of truths (first column) and of curves drawn about each: (truths, 1 + draws)."""
    return np.stack([quick(curve.drawn(points, np.vstack([t, t + noise])) - points) for t in truths])


def _points(cohort: Cohort) -> Float64s:
    """100 scores that stand for equal shares of the rows (equal ones where scores are tied), then the lowest and the highest."""
    order = np.argsort(cohort.scores)
    order = order[cohort.weights[order] > 0]
    reached = np.cumsum(cohort.weights[order])
    middle = (np.arange(_POINTS) + 0.5) / _POINTS * reached[-1]
    places = np.minimum(np.searchsorted(reached, middle), len(order) - 1)
    return cohort.scores[order[np.concatenate([places, [0, len(order) - 1]])]]


def _noise(curve: SplineCurve, rng: np.random.Generator) -> Float64s:
    """Errors of the parameters, drawn from Student's distribution with the curve's covariance and degrees of freedom."""
    values, vectors = np.linalg.eigh(curve.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    normal = rng.standard_normal((_DRAWS, len(values))) @ root.T
    return normal / np.sqrt(rng.chisquare(curve.effective_df, _DRAWS) / curve.effective_df)[:, None]


def _invert(value: float, observed: float, path: Float64s, level: float) -> Quantity:
    """The range of the true distances that the observed one does not contradict; `path` is what :func:`_drawn` gives."""
    half = (1 - level) / 2
    exact, drawn = np.where(path[:, 0] < 1e-12, 0.0, path[:, 0]), path[:, 1:]  # the diagonal is exactly 0 off
    scale = float(np.median(drawn[0]))  # what noise alone looks like
    spent = half * (1 + np.exp(-exact / max(scale, 1e-300)))
    largest = np.array([np.quantile(row, 1 - share) for row, share in zip(drawn, spent, strict=True)])
    smallest = np.quantile(drawn, half, axis=1)
    low = _crossing(exact, largest - observed, first=True)
    high = _crossing(exact, observed - smallest, first=False)
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
