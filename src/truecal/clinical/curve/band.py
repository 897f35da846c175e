"""Pointwise and simultaneous bands of a flexible calibration curve."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

import truecal as tc
from truecal import estimate, options
from truecal.clinical.cohort import Cohort
from truecal.clinical.curve.loess import LoessCurve, fit_loess
from truecal.clinical.curve.spline import SplineCurve, fit_spline, sigmoid
from truecal.clinical.line import logit
from truecal.clinical.quantity import student
from truecal.errors import InputError
from truecal.frame import Frame
from truecal.lens import Lens
from truecal.predictions import border
from truecal.types import Float64s, Indices

Kind = Literal["spline", "loess"]
_DRAWS = 5000  # of the largest standardised error of a spline
_RESAMPLES, _TOGETHER = 1000, 100  # of the patients of a loess curve, and how many at a time
_PARTS = 2000  # in which patients are drawn again; a variance from so many is known to 3 %


@dataclass(frozen=True, eq=False)
class FlexibleCurve:
    """A calibration curve with two bands, at the scores `score`.

    `low` to `high` holds the true curve at any one score with probability `level`; `lowest` to `highest` holds it at all of them
    at once. `kind` and `method` say how it was made.
    """

    score: Float64s
    outcome: Float64s
    low: Float64s
    high: Float64s
    lowest: Float64s
    highest: Float64s
    level: float
    kind: str
    method: str

    def contains(self, scores: ArrayLike, rates: ArrayLike) -> bool:
        """Whether a curve lies within the simultaneous band at all the given scores (inside the range of the band)."""
        s = border.check_points(scores, "scores")
        r = border.check_points(rates, "rates", s.shape)
        low, high = (np.interp(s, self.score, edge) for edge in (self.lowest, self.highest))
        return bool(((low <= r + 1e-12) & (r <= high + 1e-12)).all())

    def frame(self) -> Frame:
        """One row per score."""
        names = ("score", "outcome", "low", "high", "lowest", "highest")
        return Frame({name: getattr(self, name) for name in names})


def flexible_curve(
    preds: tc.Predictions,
    kind: Kind = "spline",
    *,
    lens: Lens | None = None,
    at: ArrayLike | None = None,
    span: float = 0.75,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> FlexibleCurve:
    """The flexible calibration curve of a clinical validation, with pointwise and simultaneous bands that count patients.

    Parameters
    ----------
    kind : "spline", logistic regression on a restricted cubic spline of the log odds (Harrell 2015); or "loess", local quadratic
        regression of the outcome (Austin and Steyerberg 2014), as R's `val.prob.ci.2` draws them.
    lens : what is judged; default the positive class.
    at : the scores at which to give the curve; default 101 from their 1st to their 99th percentile.
    span : of loess, the share of the rows used at each score.
    level, rng : of both bands; seed of the draws behind the simultaneous one.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> curve = tc.flexible_curve(tc.Predictions.from_probs(p, rng.random(2000) < p**2))
    >>> grid = np.linspace(0.05, 0.95, 19)
    >>> curve.contains(grid, grid**2), curve.contains(grid, grid)
    (True, False)
    """
    options.level(level)
    options.choice(kind, ("spline", "loess"), "kind")
    if not 0 < span <= 1:
        raise InputError(f"span must be a share of the rows, above 0 and at most 1, not {span:g}")
    cohort = Cohort.of(preds, lens)
    points = grid_of(cohort) if at is None else scores_asked(at)
    if kind == "spline":
        return spline_band(fit_spline(cohort), points, level, options.generator(rng))
    return _loess_band(cohort, points, span, level, options.generator(rng))


def scores_asked(at: ArrayLike) -> Float64s:
    """The scores asked for, in order."""
    points = np.unique(border.as_floats(at, "at").astype(np.float64))
    if not points.size or not ((points >= 0) & (points <= 1)).all():
        raise InputError("at must hold scores in [0, 1], at least one")
    return points


def grid_of(cohort: Cohort) -> Float64s:
    """101 scores from the 1st to the 99th percentile of a cohort: beyond them a curve rests on a handful of rows."""
    order = np.argsort(cohort.scores)
    order = order[cohort.weights[order] > 0]
    reached = np.cumsum(cohort.weights[order])
    ends = np.minimum(np.searchsorted(reached, np.array([0.01, 0.99]) * reached[-1]), len(order) - 1)
    first, last = cohort.scores[order[ends]]
    return np.linspace(float(first), float(last), 101)


def spline_band(curve: SplineCurve, points: Float64s, level: float, rng: np.random.Generator) -> FlexibleCurve:
    """Bands on the log odds, where the curve is linear in its coefficients; binomial ones for scores with a rate of their own."""
    count = len(curve.coefficients)
    if count == 0:
        points = curve.cells
    cell = curve.cell_of(points)
    smooth = (cell < 0) & (points > 0) & (points < 1)
    keep = smooth | (cell >= 0)
    points, cell, smooth = points[keep], cell[keep], smooth[keep]
    outcome = np.clip(curve.at(points), 0.0, 1.0)  # a mean of ones may round past 1
    jacobian = np.zeros((len(points), count + len(curve.cells)))
    if count:
        jacobian[smooth, :count] = curve.design(points[smooth])
    jacobian[np.flatnonzero(cell >= 0), count + cell[cell >= 0]] = 1.0
    one = student(curve.df, level)
    all_ = max(one, float(critical(jacobian, curve.covariance, curve.df, level, rng)))
    se = steady(*(np.einsum("ij,jk,ik->i", jacobian, v, jacobian) for v in (curve.covariance, curve.binomial)))
    edges = []
    for factor in (-one, one, -all_, all_):
        edge = outcome.copy()
        if count:
            edge[smooth] = sigmoid(logit(np.clip(outcome[smooth], 1e-300, 1 - 1e-16)) + factor * se[smooth])
        edge[cell >= 0] = [_binomial_end(outcome[i], se[i], curve.df, factor) for i in np.flatnonzero(cell >= 0)]
        edges.append(edge)
    knots = f"{len(curve.knots)} knots" if len(curve.knots) else "straight line" if count else "one rate per score"
    method = f"restricted cubic spline of the log odds, {knots}"
    return FlexibleCurve(points, outcome, edges[0], edges[1], edges[2], edges[3], level, "spline", method)


def _binomial_end(rate: float, se: float, df: float, factor: float) -> float:
    """An end of a Clopper-Pearson interval for as many independent rows as would give the standard error."""
    from scipy.special import betaincinv, ndtr

    tail = float(ndtr(-abs(factor)))
    rows = rate * (1 - rate) / se**2 if se > 0 and 0 < rate < 1 else df + 1
    ones = rate * rows
    if factor < 0:
        return 0.0 if rate == 0 else float(betaincinv(ones, rows - ones + 1, tail))
    return 1.0 if rate == 1 else float(betaincinv(ones + 1, rows - ones, 1 - tail))


def _loess_band(cohort: Cohort, points: Float64s, span: float, level: float, rng: np.random.Generator) -> FlexibleCurve:
    # Residuals and the design effect are those of the whole curve, whatever scores were asked for.
    scores = cohort.scores[cohort.weights > 0]
    nodes = np.union1d(np.append(grid_of(cohort), [scores.min(), scores.max()]), points)
    curve, asked = fit_loess(cohort, nodes, span=span), np.searchsorted(nodes, points)
    rate, se = _rate_and_error(curve.values, (curve.reactions**2).sum(axis=0), curve.local)
    values, rate, se = curve.values[asked], rate[asked], se[asked]
    one = student(curve.df, level)
    all_ = max(one, _critical_loess(curve, asked, level, rng))
    low, high, lowest, highest = (_edge(values, rate, se, factor) for factor in (-one, one, -all_, all_))
    method = f"local quadratic regression, span {span:g}"
    return FlexibleCurve(points, values, low, high, lowest, highest, level, "loess", method)


def _rate_and_error(values: Float64s, variance: Float64s, local: Float64s) -> tuple[Float64s, Float64s]:
    """Rates and their standard errors, of one curve (k,) or of many (r, k). Half an event and half a non-event more, shared out
    like the rows: a tail without events still has some scatter."""
    rate = (np.clip(values, 0.0, 1.0) * local + 0.5) / (local + 1)
    return rate, steady(variance, rate * (1 - rate) / local)


def _edge(value: Float64s, rate: Float64s, se: Float64s, factor: float) -> Float64s:
    """The outer one of two edges: value + factor se, and Wilson's for a rate with that standard error, which is skewed near 0 and 1
    as rates are."""
    share = factor**2 * se**2 / (rate * (1 - rate))  # z^2 / n
    wilson = (rate + share / 2 + np.sign(factor) * np.sqrt(share * (rate * (1 - rate) + share / 4))) / (1 + share)
    outer = np.maximum if factor > 0 else np.minimum
    return np.clip(outer(value + factor * se, wilson), 0.0, 1.0)


def _critical_loess(curve: LoessCurve, asked: Indices, level: float, rng: np.random.Generator) -> float:
    """The factor at which the same band, made from patients drawn again, would hold the curve itself at the nodes asked for in a
    share `level` of draws.

    Each patient comes a Poisson number of times (a bootstrap), so a curve that rests on a few events has the skewed errors, and the
    uncertain standard errors, that such curves have; and smoothing bends the curve itself as it would bend the true one. The
    plain edge of :func:`_edge` holds a rate that is within factor se of the value, Wilson's one that is within so many standard
    errors of the rate itself; a draw needs the smaller factor of the two at every score.

    What patients add is reckoned from the drawn curve, as it is from the curve in the data: where that is higher by d, a patient
    with the share s of it adds d s less. Reckoned from the curve itself the standard errors of far draws would be too large.
    """
    each, share = _merged(curve, rng)
    own, shared = each**2, each * share
    truth = np.clip(curve.values, 0.0, 1.0)
    largest = []
    for _ in range(0, _RESAMPLES, _TOGETHER):
        times = rng.poisson(1.0, (_TOGETHER, len(each))).astype(np.float64)
        off = (times - 1) @ each
        variance = times @ own - 2 * off * (times @ shared) + off**2 * (share**2).sum(axis=0)
        values = curve.values + curve.bias + off
        rate, se = _rate_and_error(values, np.maximum(variance, 0.0) * curve.left_out**2, curve.local)
        plain, ratio = np.abs(truth - values) / se, np.sqrt(truth * (1 - truth) / (rate * (1 - rate)))
        wilson = np.abs(truth - rate) / np.maximum(se * ratio, 1e-300)
        largest.append(np.minimum(plain, wilson)[:, asked].max(axis=1))
    return float(np.quantile(np.concatenate(largest), level))


def _merged(curve: LoessCurve, rng: np.random.Generator) -> tuple[Float64s, Float64s]:
    """What patients add, and their shares; of many added up in 2000 random parts, which have the same variances."""
    reactions, shares = curve.reactions, curve.shares
    if len(reactions) <= _PARTS:
        return reactions, shares
    order = rng.permutation(len(reactions))
    starts = np.linspace(0, len(reactions), _PARTS, endpoint=False).astype(np.intp)
    parts, share = (np.add.reduceat(each[order], starts, axis=0) for each in (reactions, shares))
    return parts * np.sqrt((reactions**2).sum(axis=0) / np.maximum((parts**2).sum(axis=0), 1e-300)), share


def steady(variance: Float64s, binomial: Float64s) -> Float64s:
    """Standard errors (..., k) that are not below those of independent rows times the design effect of the whole curve.

    In a tail with few events the scatter between patients is estimated from next to nothing, and mostly too low.
    """
    counted = (binomial > 0).all(axis=tuple(range(binomial.ndim - 1)))  # scores at which every curve has some scatter
    ratio = variance[..., counted] / binomial[..., counted]
    effect = np.maximum(np.median(ratio, axis=-1, keepdims=True), 1.0) if counted.any() else 1.0
    return np.sqrt(np.maximum(np.maximum(variance, effect * binomial), 0.0))


def critical(
    jacobian: Float64s, covariance: Float64s, df: float, level: float | tuple[float, ...], rng: np.random.Generator
) -> Float64s:
    """The quantile of max_i |x_i' e| / se_i over the rows x_i of `jacobian`, for errors e with this covariance (Student's)."""
    size = np.sqrt(np.einsum("ij,jk,ik->i", jacobian, covariance, jacobian))
    if not (size > 0).any():
        raise InputError("the curve is certain everywhere, which no data can make it; give more rows, or other scores")
    standard = (jacobian[size > 0] / size[size > 0, None]).T
    errors = rng.standard_normal((_DRAWS, len(covariance))) @ (estimate.symmetric_root(covariance) @ standard)
    largest = np.maximum(errors.max(axis=1), -errors.min(axis=1)) / np.sqrt(rng.chisquare(df, _DRAWS) / df)
    return np.asarray(np.quantile(largest, level))
