"""Maps that never fall: isotonic, centred isotonic, Venn-Abers and spline calibration."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from truecal import options
from truecal.errors import FileError, InputError
from truecal.recalibration import documents
from truecal.recalibration.contract import Input
from truecal.recalibration.export import Value
from truecal.recalibration.score_maps import Multiclass, ScoreMapping, renormalized
from truecal.recalibration.solvers import fit_slopes, integrals
from truecal.special import expit, logit, positive
from truecal.types import Float64s, Floats

# ----------------------------------------------------------------------------------------------------
# Isotonic calibration: the best curve of any shape that never falls

# Below it doubles near 1 show no difference, and scikit-learn's isotonic regression sees none: naive Bayes gives 1e-20 and 1e-30
_RESOLUTION = 1e-15


@dataclass(frozen=True, eq=False)
class RisingMap:
    """Straight lines between knots (x, y), both non-decreasing; constant outside them."""

    x: Float64s
    y: Float64s

    def __call__(self, scores: Float64s) -> Float64s:
        right = np.clip(np.searchsorted(self.x, scores), 1, max(len(self.x) - 1, 1))
        if len(self.x) == 1:
            return np.full(len(scores), self.y[0])
        left = right - 1
        share = np.clip((scores - self.x[left]) / (self.x[right] - self.x[left]), 0.0, 1.0)
        # each operation is monotone in floating point and the minimum joins the pieces: rounding reverses no two scores
        return np.minimum(self.y[left] + share * (self.y[right] - self.y[left]), self.y[right])

    def trace(self, scores: Value) -> Value:
        if len(self.x) == 1:
            return scores * 0.0 + self.y[0]
        # one segment per pair of knots; scores outside the knots fall into the first or last and stop at its end
        segment = scores.count_reached(self.x[1:-1])
        x0, x1 = segment.look_up(self.x[:-1]), segment.look_up(self.x[1:])
        y0, y1 = segment.look_up(self.y[:-1]), segment.look_up(self.y[1:])
        share = ((scores - x0) / (x1 - x0)).at_least(0.0).at_most(1.0)
        return (y0 + share * (y1 - y0)).at_most(y1)

    def state(self) -> dict[str, Any]:
        return {"x": self.x.tolist(), "y": self.y.tolist()}


class IsotonicCalibration(ScoreMapping):
    r"""The non-decreasing curve of least squared error, by pooling adjacent violators.

    .. math:: \min_{g \text{ non-decreasing}} \sum_i w_i (y_i - g(s_i))^2

    Equal scores are one point with their mean outcome, so the fit does not depend on the order of rows; scores within 1e-15
    count as equal, as in scikit-learn. Between the points of the fit the curve is linear, outside them constant.

    Parameters
    ----------
    input : "probs" or "logits" (the curve is then linear between points of the log odds).
    multiclass, normalize, classes : as in `PlattScaling`. Renormalised rows in which every map gives 0 become uniform.

    Attributes
    ----------
    maps_ : the curves, with the knots `x` and `y`.

    References
    ----------
    Zadrozny, Elkan. Transforming classifier scores into accurate multiclass probability estimates. KDD 2002.

    Examples
    --------
    >>> from truecal.recalibration import IsotonicCalibration
    >>> fixed = IsotonicCalibration().fit([0.1, 0.2, 0.4, 0.4, 0.8, 0.9], [0, 1, 0, 1, 0, 1])
    >>> fixed.predict_proba([0.0, 0.3, 0.85])[:, 1]
    array([0.  , 0.5 , 0.75])
    """

    def fit_map(self, scores: Float64s, outcomes: Float64s, weights: Float64s) -> RisingMap:
        from scipy.optimize import isotonic_regression

        x, w, ones = resolved(*pooled(scores, outcomes, weights))
        # a mean of 0s and 1s may round past them
        y = np.clip(isotonic_regression(ones / w, weights=w).x, 0.0, 1.0)
        # inside a flat stretch no knot is needed
        bend = np.ones(len(x), bool)
        bend[1:-1] = (y[1:-1] != y[:-2]) | (y[1:-1] != y[2:])
        return RisingMap(x[bend], y[bend])

    def read_map(self, state: Mapping[str, Any]) -> RisingMap:
        return read_rising(state)


def pooled(scores: Float64s, outcomes: Float64s, weights: Float64s) -> tuple[Float64s, Float64s, Float64s]:
    """Distinct scores in rising order, with the weight of each and the weight of its positive outcomes."""
    order = np.argsort(scores)
    x, w, ones = scores[order], weights[order], (weights * outcomes)[order]
    start = np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]]))
    if len(start) < len(x):
        x, w, ones = x[start], np.add.reduceat(w, start), np.add.reduceat(ones, start)
    return x, w, ones


def resolved(x: Float64s, w: Float64s, ones: Float64s) -> tuple[Float64s, Float64s, Float64s]:
    """Points of `pooled` with those less than `_RESOLUTION` above the first of them made one."""
    if len(x) < 2 or np.diff(x).min() >= _RESOLUTION:
        return x, w, ones
    start, first = [0], x[0]
    for position, score in enumerate(x.tolist()):
        if score - first >= _RESOLUTION:
            start.append(position)
            first = score
    return x[start], np.add.reduceat(w, start), np.add.reduceat(ones, start)


def read_rising(state: Mapping[str, Any]) -> RisingMap:
    """The curve of a state written by `RisingMap.state`."""
    x = documents.numbers(state, "x", rising=True)
    y = documents.numbers(state, "y", len(x), low=0.0, high=1.0)
    if len(x) == 0 or not (np.diff(y) >= 0).all():
        raise FileError('"y" must hold at least one number and never decrease')
    return RisingMap(x, y)


# ----------------------------------------------------------------------------------------------------
# Centred isotonic calibration: an isotonic curve without flat stretches

_PRICE = 4e-4  # what the ends may cost per row in log loss where nothing surprising comes
_OUTER = 0.02  # by how much of its value an end that is not 0 or 1 falls or rises further
_NEAREST = 0.2  # outcomes of the missing kind beside those of a block; also the most that its inner row gets


class CenteredIsotonic(ScoreMapping):
    r"""Isotonic calibration whose flat stretches are drawn together into their centres, with straight lines between.

    .. math:: \bar s_j = \frac{\sum_{i \in B_j} w_i s_i}{\sum_{i \in B_j} w_i}, \qquad
        g(\bar s_j) = \frac{\sum_{i \in B_j} w_i y_i}{\sum_{i \in B_j} w_i}

    B_j are the blocks of equal values that pooling adjacent violators makes. The curve rises strictly over the range of
    the scores it was fitted on, so it keeps the ranking (AUC), and with multiclass="shared" the predicted class. It is
    constant outside that range.

    Parameters
    ----------
    input : "probs" or "logits" (the curve is then linear between points of the log odds).
    multiclass, normalize, classes : as in `PlattScaling`.

    Attributes
    ----------
    maps_ : the curves, with the knots `x` and `y`.

    Notes
    -----
    A first block without positive outcomes, and a last one without negative, keep their width, as in the paper, but the curve
    never says 0 or 1, so its log loss is finite: the d-th row of such a block, counted from its inner end, has a distance from
    0 or 1 that falls like 1 / d. Together these distances are 0.0004 of the outcomes of the missing kind, so that over all
    classes they raise the log loss by 0.0004 where nothing surprising comes, and the nearest is 0.2 at most and half of the
    next block's. A surprise is likeliest at the inner end. With curves that only change the ends, mean log losses on
    480 splits (iris, wine, breast cancer and digits under three models) were 0.204 for these, 0.224 for constant ends of the same
    price and 0.161 for 1 / d at fifty times the price, the best (but 28 % of the splits then pay more than 0.001 for nothing).
    Other first and last blocks are continued with the slope beside them, by at most 2 % of the way to 0 or 1 (constant in the
    paper). Scores that do not rise with the outcomes leave one block: a constant map, and a warning.

    References
    ----------
    Oron, Flournoy. Centered isotonic regression: point and interval estimation for dose-response studies. Statistics in
    Biopharmaceutical Research 9, 2017.

    Examples
    --------
    >>> from truecal.recalibration import CenteredIsotonic
    >>> fixed = CenteredIsotonic().fit([0.1, 0.2, 0.4, 0.6, 0.8, 0.9], [0, 1, 0, 1, 0, 1])
    >>> fixed.predict_proba([0.1, 0.3, 0.7])[:, 1].round(3)
    array([0.001, 0.251, 0.749])
    """

    def fit_map(self, scores: Float64s, outcomes: Float64s, weights: Float64s) -> RisingMap:
        x, w, ones = resolved(*pooled(finite(scores), outcomes, weights))
        knots = centred_knots(x, w, ones)
        if len(knots.x) == 1 and len(x) > 1 and 0 < ones.sum() < w.sum():
            self._warn("the scores do not rise with the outcomes; the map is constant")
        return knots

    def read_map(self, state: Mapping[str, Any]) -> RisingMap:
        return read_rising(state)


def finite(scores: Float64s) -> Float64s:
    """Log odds of classes that were ruled out, which have no place in a mean, just outside the others."""
    ruled_out = np.abs(scores) >= 1e29
    if not ruled_out.any():
        return scores
    rest = scores[~ruled_out]
    low, high = (rest.min() - 1, rest.max() + 1) if len(rest) else (-1.0, 1.0)
    return np.where(ruled_out, np.where(scores < 0, low, high), scores)


def centred_knots(x: Float64s, w: Float64s, ones: Float64s) -> RisingMap:
    """The knots of the curve from distinct rising scores, their weights and the weights of their positive outcomes."""
    from scipy.optimize import isotonic_regression

    fitted = isotonic_regression(ones / w, weights=w).x
    start = np.flatnonzero(np.r_[True, np.diff(fitted) > 0])
    weight, positive = np.add.reduceat(w, start), np.add.reduceat(ones, start)
    value = positive / weight
    if len(value) == 1:
        return RisingMap(x[:1], (positive + _NEAREST) / (weight + 2 * _NEAREST) if value[0] in (0, 1) else value)
    centre = np.clip(np.add.reduceat(w * x, start) / weight, x[start], x[np.r_[start[1:], len(x)] - 1])
    first, last = start[1], start[-1]
    below = _end(x[:first][::-1], w[:first][::-1], centre, value, float(ones.sum()))
    # the other end is the same with scores and outcomes reversed
    above = _end(-x[last:], w[last:], -centre[::-1], 1 - value[::-1], float((w - ones).sum()))
    knots = np.r_[below[0][::-1], centre[1:-1], -above[0]]
    return RisingMap(knots, np.r_[below[1][::-1], value[1:-1], 1 - above[1]])


def _end(x: Float64s, w: Float64s, centre: Float64s, value: Float64s, others: float) -> tuple[Float64s, Float64s]:
    """Knots of the first of the blocks, from its inner end outwards: its scores `x` fall. `others`: all positive outcomes."""
    if value[0] > 0:
        low = value[0] - (value[1] - value[0]) / (centre[1] - centre[0]) * (centre[0] - x[-1])
        outer = centre[0] > x[-1]
        end = max(low, (1 - _OUTER) * value[0])
        return np.r_[centre[0], x[-1:][[outer]]], np.r_[value[0], np.full(1, end)[[outer]]]
    depth = w.cumsum() - w / 2 + 0.5
    nearest = min(_NEAREST, _PRICE * others / float((w / depth).sum()), value[1] / 2)
    # straight lines between rows 1, 2, 3, 5, 9, ... follow the curve closely enough
    kept = np.unique(np.r_[0, 2 ** np.arange(len(x).bit_length()), len(x) - 1].clip(max=len(x) - 1))
    return x[kept], nearest / depth[kept]


# ----------------------------------------------------------------------------------------------------
# Venn-Abers calibration: two isotonic fits per prediction, one for each outcome it might have, and so an interval


@dataclass(frozen=True, eq=False)
class Steps:
    """A step function: `values[j]` where j of the rising `edges` are reached."""

    edges: Float64s
    values: Float64s

    @classmethod
    def of(cls, edges: Float64s, values: Float64s) -> "Steps":
        """Without the edges at which nothing changes."""
        change = np.diff(values) != 0
        return cls(edges[change], values[np.r_[True, change]])

    def __call__(self, scores: Float64s) -> Float64s:
        return self.values[np.searchsorted(self.edges, scores, side="right")]

    def trace(self, scores: Value) -> Value:
        return scores.count_reached(self.edges).look_up(self.values)


@dataclass(frozen=True, eq=False)
class VennAbersMap:
    """p0 and p1 as step functions of the score; as one probability p1 / (1 - p0 + p1)."""

    p0: Steps
    p1: Steps

    def __call__(self, scores: Float64s) -> Float64s:
        p0, p1 = self.p0(scores), self.p1(scores)
        return p1 / (1 - p0 + p1)

    def trace(self, scores: Value) -> Value:
        p0, p1 = self.p0.trace(scores), self.p1.trace(scores)
        return p1 / (1 - p0 + p1)

    def state(self) -> dict[str, Any]:
        return {
            name: {"edges": steps.edges.tolist(), "values": steps.values.tolist()}
            for name, steps in (("p0", self.p0), ("p1", self.p1))
        }


class VennAbers(ScoreMapping):
    r"""Inductive Venn-Abers predictor: for each score the isotonic fits with this row added as a 0 and as a 1.

    .. math:: p_y(s) = g_{S \cup (s, y)}(s), \quad y \in \{0, 1\}, \qquad p = \frac{p_1}{1 - p_0 + p_1}

    If rows are exchangeable, one of p0 and p1 (that of the true outcome) is perfectly calibrated, whatever the model and
    however few the rows. Their distance says how much one row matters. `predict_interval` returns them; `predict_proba`
    the one probability that minimises the worst regret in log loss.

    For the cross version fit it as ``RecalibratedClassifier(model, VennAbers(), cv=5)``, which merges the folds by
    geometric means: GM(p1) / (GM(1 - p0) + GM(p1)).

    Parameters
    ----------
    input : "probs" or "logits".
    multiclass, normalize, classes : as in `PlattScaling`; "one-vs-rest" gives one interval per class.

    Attributes
    ----------
    maps_ : p0 and p1, with `edges` and `values`.

    Notes
    -----
    Both fits are found for all scores at once by the algorithm of the paper, in time n log n. A weighted row counts as
    so many rows; the row added has weight 1.

    References
    ----------
    Vovk, Petej, Fedorova. Large-scale probabilistic predictors with and without guarantees of validity. NeurIPS 2015.

    Examples
    --------
    >>> from truecal.recalibration import VennAbers
    >>> fixed = VennAbers().fit([0.1, 0.2, 0.4, 0.6, 0.8, 0.9], [0, 0, 1, 0, 1, 1])
    >>> p0, p1 = fixed.predict_interval([0.3, 0.7])
    >>> p0.round(3), p1.round(3)
    (array([0.   , 0.333]), array([0.667, 1.   ]))
    >>> fixed.predict_proba([0.3, 0.7])[:, 1].round(3)
    array([0.4, 0.6])
    """

    maps_: Sequence[VennAbersMap]  # type: ignore[assignment]

    def scores(self, outputs: Floats) -> Float64s:
        """Log odds of many classes are sums over classes, whose last bits differ between machines. A step function must
        not see them: they are rounded to float32."""
        scores = super().scores(outputs)
        computed = self.input == "logits" and scores.shape[1] > 2
        return scores.astype(np.float32).astype(np.float64) if computed else scores

    def traced_scores(self, outputs: Value, count: int) -> Value:
        scores = super().traced_scores(outputs, count)
        return scores.single() if self.input == "logits" and count > 2 else scores

    def fit_map(self, scores: Float64s, outcomes: Float64s, weights: Float64s) -> VennAbersMap:
        x, w, ones = pooled(scores, outcomes, weights)
        with_one = fits_with_a_one(w, ones)
        # adding a 0 is adding a 1 to the mirrored data
        with_zero = 1 - fits_with_a_one(w[::-1], (w - ones)[::-1])[::-1]
        # a 1 between two scores joins the higher one, a 0 the lower one; beyond all scores they stand alone
        above = Steps.of(np.nextafter(x, np.inf), np.append(with_one, 1.0))
        below = Steps.of(x, np.append(0.0, with_zero))
        return VennAbersMap(below, above)

    def read_map(self, state: Mapping[str, Any]) -> VennAbersMap:
        parts = []
        for name in ("p0", "p1"):
            part = documents.field(state, name)
            if not isinstance(part, dict):
                raise FileError(f'"{name}" must be an object')
            edges = documents.numbers(part, "edges", rising=True)
            parts.append(Steps(edges, documents.numbers(part, "values", len(edges) + 1, low=0.0, high=1.0)))
        return VennAbersMap(*parts)

    def predict_interval(self, X: ArrayLike) -> tuple[Float64s, Float64s]:
        """p0 and p1: of two classes for the second of `classes_`, shape (n,), else for every class, shape (n, K)."""
        check_is_fitted(self, "classes_")
        if self.multiclass == "top-label" and len(self.classes_) > 2:
            raise InputError('an interval per class needs multiclass="one-vs-rest" or "shared", not "top-label"')
        scores = self.scores(self._checked(X))
        if len(self.classes_) == 2:
            p0, p1 = (steps(scores[:, 1]) for steps in (self.maps_[0].p0, self.maps_[0].p1))
            return (p0, p1) if self.order_.is_sorted else (1 - p1, 1 - p0)
        shared = len(self.maps_) == 1
        each = [self.maps_[0 if shared else k] for k in range(scores.shape[1])]
        low, high = (
            np.column_stack([getattr(part, name)(scores[:, k]) for k, part in enumerate(each)]) for name in ("p0", "p1")
        )
        return self.order_.sorted_columns(low), self.order_.sorted_columns(high)

    def combine(self, fitted: Sequence[Self], X: Sequence[ArrayLike]) -> Float64s:
        """The cross Venn-Abers predictor: geometric means of 1 - p0 and of p1 over the folds."""
        intervals = [part.predict_interval(outputs) for part, outputs in zip(fitted, X, strict=True)]
        against = _geometric_mean([1 - p0 for p0, _ in intervals])
        favour = _geometric_mean([p1 for _, p1 in intervals])
        total = against + favour
        probs = np.where(total > 0, favour / positive(total), 0.5)
        return np.column_stack([1 - probs, probs]) if probs.ndim == 1 else renormalized(probs)


def _geometric_mean(parts: Sequence[Float64s]) -> Float64s:
    with np.errstate(divide="ignore"):
        mean: Float64s = np.exp(np.mean(np.log(parts), axis=0))
    return mean


def fits_with_a_one(w: Float64s, ones: Float64s) -> Float64s:
    """For every distinct score, the value there of the isotonic fit to all rows and one more 1 at this score.

    Algorithms 1 and 2 of Vovk, Petej and Fedorova (2015). The fit is the slope of the greatest convex minorant of the
    points (total weight, total of ones). A 1 added before all rows puts the point (-1, -1) in front; moving it past one
    score at a time replaces a single point, and only the left end of the minorant changes. Each point enters and leaves
    the stack of corners once.
    """
    px, py = np.r_[-1.0, 0.0, np.cumsum(w)].tolist(), np.r_[-1.0, 0.0, np.cumsum(ones)].tolist()
    stack: list[tuple[float, float]] = []
    # corners from the right end to the left, the leftmost on top
    for x, y in zip(reversed(px), reversed(py), strict=True):
        _pop_above(stack, x, y)
        stack.append((x, y))
    values = np.empty(len(w))
    for i in range(len(w)):
        (x0, y0), (x1, y1) = stack[-1], stack[-2]
        values[i] = (y1 - y0) / (x1 - x0)
        # the added 1 moves behind the i-th score
        px[i + 1], py[i + 1] = px[i] + px[i + 2] - px[i + 1], py[i] + py[i + 2] - py[i + 1]
        x, y = px[i + 1], py[i + 1]
        if (y - y0) * (x1 - x0) >= (y1 - y0) * (x - x0):
            continue
        stack.pop()
        _pop_above(stack, x, y)
        stack.append((x, y))
    return np.clip(values, 0.0, 1.0)


def _pop_above(stack: list[tuple[float, float]], x: float, y: float) -> None:
    """Drop corners on or above the line from (x, y), further left, to the corner after them."""
    while len(stack) > 1:
        (x0, y0), (x1, y1) = stack[-1], stack[-2]
        if (y0 - y) * (x1 - x) < (y1 - y) * (x0 - x):
            return
        stack.pop()


# ----------------------------------------------------------------------------------------------------
# Spline calibration: a smooth curve in the log odds that never falls, as flexible as the data ask for

_CELLS = 4096  # distinct scores are fitted one by one up to so many, beyond that in cells of equal weight


@dataclass(frozen=True, eq=False)
class SplineMap:
    """sigmoid(f(x)): f is quadratic between knots, with slopes >= 0 that are linear from knot to knot.

    x is the log odds, held within [low, high]; outside the knots f goes on in straight lines.
    """

    knots: Float64s
    slopes: Float64s
    intercept: float
    low: float
    high: float
    odds: bool = False

    def __call__(self, scores: Float64s) -> Float64s:
        x = np.clip(log_odds(scores, self.odds), self.low, self.high)
        return expit(self.intercept + integrals(x, self.knots) @ self.slopes)

    def trace(self, scores: Value) -> Value:
        x = scores if self.odds else scores.log() - (1 - scores).log()
        x = x.at_least(self.low).at_most(self.high)
        gaps = np.diff(self.knots)
        share = ((x - self.knots[:-1]) / gaps).at_least(0.0).at_most(1.0)
        start, rise = gaps * self.slopes[:-1], gaps * np.diff(self.slopes) / 2
        inside = (share * (start + share * rise)).sum()
        before = (x - self.knots[0]).at_most(0.0) * self.slopes[0]
        after = (x - self.knots[-1]).at_least(0.0) * self.slopes[-1]
        return (self.intercept + before + inside + after).sigmoid()

    def state(self) -> dict[str, Any]:
        return {
            "knots": self.knots.tolist(),
            "slopes": self.slopes.tolist(),
            "intercept": self.intercept,
            "low": self.low,
            "high": self.high,
        }


def log_odds(scores: Float64s, odds: bool) -> Float64s:
    """Log odds of probabilities, minus and plus infinity at 0 and 1; or scores that are log odds already."""
    if odds:
        return scores
    return logit(scores)


class SplineCalibration(ScoreMapping):
    r"""A monotone quadratic spline in the log odds, by penalised maximum likelihood.

    .. math:: p = \sigma(f(x)), \qquad f'(x) = \sum_j a_j h_j(x), \; a_j \ge 0, \qquad
        \min_a \; -\log L + \lambda \sum_j (a_{j+1} - a_j)^2

    h_j are the hat functions of the knots, which stand at quantiles of the scores: the slope of f is a piecewise linear
    curve that is never negative. The penalty draws it to a constant slope, a logistic curve in the log odds (contained:
    the identity); lambda is chosen by Akaike's criterion, so that few rows give a logistic curve and many a free one.
    Targets are Platt's, so a finite optimum always exists.

    Parameters
    ----------
    knots : the most knots; there are fewer where scores have fewer distinct values.
    input : "probs" or "logits".
    multiclass, normalize, classes : as in `PlattScaling`.

    Attributes
    ----------
    maps_ : the curves, with `knots`, `slopes` at the knots, and `intercept`.

    Notes
    -----
    Probabilities of exactly 0 and 1 are read as log odds one beyond the most extreme others, and so are scores outside
    the range of the fit. Results are never 0 or 1.

    References
    ----------
    Lucena. Spline-based probability calibration. arXiv:1809.07751, 2018 (natural cubic splines, not monotone). Ramsay.
    Monotone regression splines in action. Statistical Science 3, 1988.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibration import SplineCalibration
    >>> rng = np.random.default_rng(0)
    >>> s = rng.random(20_000)
    >>> y = rng.random(20_000) < np.where(s < 0.5, s / 2, 1.5 * s - 0.5)  # a kink in the middle
    >>> SplineCalibration().fit(s, y).predict_proba([0.2, 0.5, 0.8])[:, 1].round(1)
    array([0.1, 0.3, 0.7])
    """

    def __init__(
        self,
        knots: int = 10,
        *,
        input: Input = "probs",  # noqa: A002
        multiclass: Multiclass = "one-vs-rest",
        normalize: bool = True,
        classes: Sequence[object] | None = None,
    ) -> None:
        super().__init__(input=input, multiclass=multiclass, normalize=normalize, classes=classes)
        self.knots = knots

    def check_params(self) -> None:
        super().check_params()
        options.whole(self.knots, "knots", 2, 1000)

    def fit_map(self, scores: Float64s, outcomes: Float64s, weights: Float64s) -> SplineMap:
        odds = self.input == "logits"
        x = log_odds(scores, odds)
        usual = np.abs(x) < 1e29
        low, high = (float(x[usual].min()) - 1, float(x[usual].max()) + 1) if usual.any() else (-1.0, 1.0)
        x, w, ones = pooled(np.clip(x, low, high), outcomes, weights)
        total = float(ones.sum())
        rising = bool(len(x) > 1 and 0 < total < w.sum())
        x, w, ones = _cells(x, w, ones)
        knots = _quantiles(x, w, self.knots) if rising else np.array([low, high])
        slopes, intercept = fit_slopes(x, w, ones, knots)
        if rising and not slopes.any():
            self._warn("the scores do not rise with the outcomes; the map is constant")
        return SplineMap(knots, slopes, intercept, low, high, odds)

    def read_map(self, state: Mapping[str, Any]) -> SplineMap:
        knots = documents.numbers(state, "knots", rising=True)
        if len(knots) < 2:
            raise FileError('"knots" must hold at least two numbers')
        slopes = documents.numbers(state, "slopes", len(knots), low=0.0)
        low = documents.number(state, "low")
        high = documents.number(state, "high", low=low)
        return SplineMap(knots, slopes, documents.number(state, "intercept"), low, high, self.input == "logits")


def _cells(x: Float64s, w: Float64s, ones: Float64s) -> tuple[Float64s, Float64s, Float64s]:
    """Neighbouring scores together, in at most `_CELLS` cells of about equal weight."""
    if len(x) <= _CELLS:
        return x, w, ones
    reached = np.cumsum(w)
    cell = np.minimum((reached - w / 2) / reached[-1] * _CELLS, _CELLS - 1).astype(np.intp)
    start = np.flatnonzero(np.r_[True, np.diff(cell) > 0])
    weight = np.add.reduceat(w, start)
    return np.add.reduceat(w * x, start) / weight, weight, np.add.reduceat(ones, start)


def _quantiles(x: Float64s, w: Float64s, count: int) -> Float64s:
    """At most `count` distinct scores at even steps of weight, the first and the last among them."""
    reached = np.cumsum(w)
    at = np.searchsorted(reached, np.linspace(0, 1, count)[1:-1] * reached[-1])
    return np.unique(np.r_[x[0], x[np.minimum(at, len(x) - 1)], x[-1]])
