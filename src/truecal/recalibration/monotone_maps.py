"""Maps that never fall: isotonic, centred isotonic, Venn-Abers and spline calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from truecal import options
from truecal.errors import FileError, InputError
from truecal.recalibration.export import look_up, sigmoid
from truecal.recalibration.score_maps import ScoreMap, ScoreRecalibrator, class_log_odds, renormalize
from truecal.recalibration.serialization import read_field, read_number, read_numbers
from truecal.recalibration.solvers import fit_slopes
from truecal.special import positive
from truecal.types import Float64s

# ----------------------------------------------------------------------------------------------------
# Isotonic calibration

# Derived: smallest difference between two scores; below it doubles near 1 are equal, and scikit-learn's isotonic regression
# merges scores.
_RESOLUTION = 1e-15


@dataclass(frozen=True, eq=False)
class PiecewiseLinearMap(ScoreMap):
    """Straight lines between knots (x, y), shape (knots,): x increases, y does not fall; constant outside them."""

    x: Float64s
    y: Float64s

    def __call__(self, scores: Float64s) -> Float64s:
        """Interpolate linearly between the knots; rounding never reverses two scores.

        >>> PiecewiseLinearMap(np.array([0.0, 1.0]), np.array([0.25, 0.75]))(np.array([-1.0, 0.5, 2.0]))
        array([0.25, 0.5 , 0.75])
        """
        if len(self.x) == 1:
            return scores * 0.0 + self.y[0]
        # scores outside the knots are in the first or last segment and stop at its end
        segment = np.searchsorted(self.x[1:-1], scores, side="right")
        x0, x1 = look_up(self.x[:-1], segment), look_up(self.x[1:], segment)
        y0, y1 = look_up(self.y[:-1], segment), look_up(self.y[1:], segment)
        share = np.minimum(np.maximum((scores - x0) / (x1 - x0), 0.0), 1.0)
        # each operation is monotone in floating point and the minimum joins the pieces: rounding reverses no two scores
        return np.minimum(y0 + share * (y1 - y0), y1)


class IsotonicCalibration(ScoreRecalibrator):
    r"""Fit the non-decreasing curve of least squared error, by pooling adjacent violators.

    .. math:: \min_{g \text{ non-decreasing}} \sum_i w_i (y_i - g(s_i))^2

    Equal scores are one point with their mean outcome, so the fit does not depend on the order of rows; scores within 1e-15
    count as equal, as in scikit-learn. Between the points of the fit the curve is linear, outside them constant.

    Parameters
    ----------
    input : {"probs", "logits"}, default "probs"
        What X holds; with logits the curve is linear between points of the log odds.
    multiclass : {"one-vs-rest", "top-label", "shared"}, default "one-vs-rest"
        How more than two classes are reduced to one score; as in `PlattScaling`.
    normalize : bool, default True
        Whether one-vs-rest and shared results are divided by their sum; a row in which every map gives 0 becomes uniform.
    classes : sequence, default None
        Names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    maps_ : list
        The curves, with the knots `x` and `y`.

    References
    ----------
    Zadrozny, Elkan. Transforming classifier scores into accurate multiclass probability estimates. KDD 2002.
    https://doi.org/10.1145/775047.775151

    See Also
    --------
    CenteredIsotonic : Without flat stretches, so that the ranking is kept.
    VennAbers : Gives an interval for each probability.

    Examples
    --------
    >>> from truecal.recalibration import IsotonicCalibration
    >>> fitted = IsotonicCalibration().fit([0.1, 0.2, 0.4, 0.4, 0.8, 0.9], [0, 1, 0, 1, 0, 1])
    >>> fitted.predict_proba([0.0, 0.3, 0.85])[:, 1]
    array([0.  , 0.5 , 0.75])
    """

    def _fit_map(self, scores: Float64s, outcomes: Float64s, weights: Float64s) -> PiecewiseLinearMap:
        """Fit by pooling adjacent violators to scores, 0/1 outcomes and weights, (n,); knots inside flat stretches are dropped.

        >>> curve = IsotonicCalibration()._fit_map(np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.0, 1.0, 0.0, 1.0]), np.ones(4))
        >>> curve.x, curve.y
        (array([0.1, 0.2, 0.3, 0.4]), array([0. , 0.5, 0.5, 1. ]))
        """
        from scipy.optimize import isotonic_regression

        x, w, ones = merge_near_scores(*pool_equal_scores(scores, outcomes, weights))
        # a mean of 0s and 1s may round past them
        y = np.clip(isotonic_regression(ones / w, weights=w).x, 0.0, 1.0)
        # inside a flat stretch no knot is needed
        bend = np.ones(len(x), bool)
        bend[1:-1] = (y[1:-1] != y[:-2]) | (y[1:-1] != y[2:])
        return PiecewiseLinearMap(x[bend], y[bend])

    def _read_map(self, state: Mapping[str, Any]) -> PiecewiseLinearMap:
        """Read the knots `x`, which must increase, and `y`, which must not decrease.

        >>> IsotonicCalibration()._read_map({"x": [0.0, 1.0], "y": [0.2, 0.6]})(np.array([0.5]))
        array([0.4])
        """
        return read_piecewise_linear(state)


def pool_equal_scores(scores: Float64s, outcomes: Float64s, weights: Float64s) -> tuple[Float64s, Float64s, Float64s]:
    """Return distinct scores in rising order, the weight of each and the weight of its positive outcomes, (distinct,) each.

    >>> pool_equal_scores(np.array([0.5, 0.2, 0.5]), np.array([1.0, 1.0, 0.0]), np.array([1.0, 2.0, 3.0]))
    (array([0.2, 0.5]), array([2., 4.]), array([2., 1.]))
    """
    order = np.argsort(scores)
    x, w, ones = scores[order], weights[order], (weights * outcomes)[order]
    start = np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]]))
    if len(start) < len(x):
        x, w, ones = x[start], np.add.reduceat(w, start), np.add.reduceat(ones, start)
    return x, w, ones


def merge_near_scores(x: Float64s, w: Float64s, ones: Float64s) -> tuple[Float64s, Float64s, Float64s]:
    """Merge rising scores x less than 1e-15 above the first of their run into that one; sum their weights w and weights of
    ones.

    All are (n,); returned are score, weight and ones of each run, (runs,).

    >>> merge_near_scores(np.array([0.0, 1e-16, 0.5]), np.ones(3), np.array([0.0, 1.0, 1.0]))
    (array([0. , 0.5]), array([2., 1.]), array([1., 1.]))
    """
    if len(x) < 2 or np.diff(x).min() >= _RESOLUTION:
        return x, w, ones
    start, first = [0], x[0]
    for position, score in enumerate(x.tolist()):
        if score - first >= _RESOLUTION:
            start.append(position)
            first = score
    return x[start], np.add.reduceat(w, start), np.add.reduceat(ones, start)


def read_piecewise_linear(state: Mapping[str, Any]) -> PiecewiseLinearMap:
    """Read the knots `x`, which must increase, and `y` in [0, 1], which must not decrease.

    >>> read_piecewise_linear({"x": [0.0, 2.0], "y": [0.25, 0.75]})(np.array([1.0]))
    array([0.5])
    """
    x = read_numbers(state, "x", rising=True)
    y = read_numbers(state, "y", len(x), low=0.0, high=1.0)
    if len(x) == 0 or not (np.diff(y) >= 0).all():
        raise FileError('"y" must hold at least one number and never decrease')
    return PiecewiseLinearMap(x, y)


# ----------------------------------------------------------------------------------------------------
# Centred isotonic calibration

# Tuned on 480 splits of iris, wine, breast cancer and digits under three models; see the notes of CenteredIsotonic.
_END_COST = 4e-4  # cost in log loss per row of the distances from 0 and 1 at the ends, where no contrary outcome comes
_END_SLOPE = 0.02  # by choice: share of its value by which an end that is not 0 or 1 is continued, at most
# by choice: outcomes of the missing kind added to a block; also the largest distance from 0 or 1 at an end
_PSEUDO_OUTCOMES = 0.2


class CenteredIsotonic(ScoreRecalibrator):
    r"""Fit an isotonic curve whose flat stretches are contracted to their centres, with straight lines between.

    .. math:: \bar s_j = \frac{\sum_{i \in B_j} w_i s_i}{\sum_{i \in B_j} w_i}, \qquad
        g(\bar s_j) = \frac{\sum_{i \in B_j} w_i y_i}{\sum_{i \in B_j} w_i}

    B_j are the blocks of equal values that pooling adjacent violators makes. The curve rises strictly over the range of
    the scores it was fitted on, so it keeps the ranking (AUC), and with multiclass="shared" the predicted class. It is
    constant outside that range.

    Parameters
    ----------
    input : {"probs", "logits"}, default "probs"
        What X holds; with logits the curve is linear between points of the log odds.
    multiclass : {"one-vs-rest", "top-label", "shared"}, default "one-vs-rest"
        How more than two classes are reduced to one score; as in `PlattScaling`.
    normalize : bool, default True
        Whether one-vs-rest and shared results are divided by their sum.
    classes : sequence, default None
        Names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    maps_ : list
        The curves, with the knots `x` and `y`.

    Notes
    -----
    A first block without positive outcomes, and a last one without negative, keep their width, as in the paper, but the curve
    never reaches 0 or 1, so its log loss is finite: the d-th row of such a block, counted from its inner end, where a contrary
    outcome is likeliest, has a distance from 0 or 1 that falls like 1 / d. Together these distances are 0.0004 of the outcomes
    of the missing kind, so that over all classes they raise the log loss by 0.0004 where no contrary outcome comes; the nearest
    is 0.2 at most and half of the next block's. Mean log losses on 480 splits (iris, wine, breast cancer and digits under three
    models) were 0.204 for these ends, 0.224 for constant ends of the same cost and 0.161 for 1 / d at fifty times the cost, at
    which 28 % of the splits lose more than 0.001. Other first and last blocks are continued with the slope beside them, by at
    most 2 % of the way to 0 or 1 (constant in the paper). Scores that do not rise with the outcomes leave one block: a constant
    map, and a warning.

    References
    ----------
    Oron, Flournoy. Centered isotonic regression: point and interval estimation for dose-response studies. Statistics in
    Biopharmaceutical Research 9, 2017. https://doi.org/10.1080/19466315.2017.1286256

    See Also
    --------
    IsotonicCalibration : With flat stretches, and values of exactly 0 and 1.

    Examples
    --------
    >>> from truecal.recalibration import CenteredIsotonic
    >>> fitted = CenteredIsotonic().fit([0.1, 0.2, 0.4, 0.6, 0.8, 0.9], [0, 1, 0, 1, 0, 1])
    >>> fitted.predict_proba([0.1, 0.3, 0.7])[:, 1].round(3)
    array([0.001, 0.251, 0.749])
    """

    def _fit_map(self, scores: Float64s, outcomes: Float64s, weights: Float64s) -> PiecewiseLinearMap:
        """Fit the curve to scores, 0/1 outcomes and weights, (n,); warn where scores do not rise, which leaves a constant."""
        x, w, ones = merge_near_scores(*pool_equal_scores(bound_scores(scores), outcomes, weights))
        knots = fit_centred_knots(x, w, ones)
        if len(knots.x) == 1 and len(x) > 1 and 0 < ones.sum() < w.sum():
            self._warn("the scores do not rise with the outcomes; the map is constant")
        return knots

    def _read_map(self, state: Mapping[str, Any]) -> PiecewiseLinearMap:
        """Read the knots `x`, which must increase, and `y`, which must not decrease.

        >>> CenteredIsotonic()._read_map({"x": [0.0, 1.0], "y": [0.2, 0.6]})(np.array([0.5]))
        array([0.4])
        """
        return read_piecewise_linear(state)


def finite_range(scores: Float64s) -> tuple[float, float]:
    """Return the range of the finite scores, widened by 1 on both sides, (-1, 1) if there are none.

    Log odds of classes that were ruled out, 1e29 and beyond, are not finite.

    >>> finite_range(np.array([-1.0, 3.0, 1e30])), finite_range(np.array([np.inf]))
    ((-2.0, 4.0), (-1.0, 1.0))
    """
    finite = scores[np.abs(scores) < 1e29]
    return (float(finite.min()) - 1, float(finite.max()) + 1) if len(finite) else (-1.0, 1.0)


def bound_scores(scores: Float64s) -> Float64s:
    """Clip scores to the range of those of magnitude below 1e29, widened by 1 on both sides: (-1, 1) where there are none.

    Larger ones are log odds of classes that were ruled out, which would dominate a mean.

    >>> bound_scores(np.array([-1.0, 3.0, 1e30, -np.inf]))
    array([-1.,  3.,  4., -2.])
    """
    return np.clip(scores, *finite_range(scores))


def fit_centred_knots(x: Float64s, w: Float64s, ones: Float64s) -> PiecewiseLinearMap:
    """Fit centred isotonic regression to rising scores x, weights w and weights of positive outcomes, (n,); return the knots.

    A fit that is flat everywhere has one knot; at 0 or 1 it is moved inside by 0.2 outcomes of each kind.

    >>> knots = fit_centred_knots(np.array([1.0, 2.0]), np.array([2.0, 2.0]), np.array([1.0, 1.0]))
    >>> knots.x, knots.y  # flat
    (array([1.]), array([0.5]))
    """
    from scipy.optimize import isotonic_regression

    fitted = isotonic_regression(ones / w, weights=w).x
    start = np.flatnonzero(np.r_[True, np.diff(fitted) > 0])
    weight, positive = np.add.reduceat(w, start), np.add.reduceat(ones, start)
    value = positive / weight
    if len(value) == 1:
        smoothed = (positive + _PSEUDO_OUTCOMES) / (weight + 2 * _PSEUDO_OUTCOMES)
        return PiecewiseLinearMap(x[:1], smoothed if value[0] in (0, 1) else value)
    centre = np.clip(np.add.reduceat(w * x, start) / weight, x[start], x[np.r_[start[1:], len(x)] - 1])
    first, last = start[1], start[-1]
    below = _end_knots(x[:first][::-1], w[:first][::-1], centre, value, float(ones.sum()))
    # the other end is the same with scores and outcomes reversed
    above = _end_knots(-x[last:], w[last:], -centre[::-1], 1 - value[::-1], float((w - ones).sum()))
    knots = np.r_[below[0][::-1], centre[1:-1], -above[0]]
    return PiecewiseLinearMap(knots, np.r_[below[1][::-1], value[1:-1], 1 - above[1]])


def _end_knots(
    x: Float64s, w: Float64s, centre: Float64s, value: Float64s, positive: float
) -> tuple[Float64s, Float64s]:
    """Return knots (x, y) for the first block of an isotonic fit, from its inner end outwards.

    `x` (falling) and `w` are the scores and weights of the block, `centre` and `value` (blocks,) the centres and mean outcomes of
    all blocks, `positive` the weight of all positive outcomes. A block of value 0 falls like 1 / depth outwards; another is
    continued from its centre with the slope towards the next, by at most 2 % of its value.
    """
    if value[0] > 0:
        if centre[0] <= x[-1]:
            return centre[:1], value[:1]
        continued = value[0] - (value[1] - value[0]) / (centre[1] - centre[0]) * (centre[0] - x[-1])
        return np.r_[centre[0], x[-1]], np.r_[value[0], max(continued, (1 - _END_SLOPE) * value[0])]
    depth = w.cumsum() - w / 2 + 0.5
    nearest = min(_PSEUDO_OUTCOMES, _END_COST * positive / float((w / depth).sum()), value[1] / 2)
    # straight lines between rows 1, 2, 3, 5, 9, ... follow the curve closely enough
    knots = np.unique(np.r_[0, 2 ** np.arange(len(x).bit_length()), len(x) - 1].clip(max=len(x) - 1))
    return x[knots], nearest / depth[knots]


# ----------------------------------------------------------------------------------------------------
# Venn-Abers calibration


@dataclass(frozen=True, eq=False)
class StepMap(ScoreMap):
    """A step function: bin j, with `values[j]`, holds scores in [edges[j - 1], edges[j]); there is one edge fewer than values."""

    edges: Float64s
    values: Float64s

    def __call__(self, scores: Float64s) -> Float64s:
        """Return the value of the bin of each score; a score on an edge is in the bin above it.

        >>> StepMap(np.array([0.5]), np.array([0.2, 0.7]))(np.array([0.4, 0.5]))
        array([0.2, 0.7])
        """
        values: Float64s = look_up(self.values, np.searchsorted(self.edges, scores, side="right"))
        return values


def read_steps(state: Mapping[str, Any], low: float = -np.inf, high: float = np.inf) -> StepMap:
    """Read a step function: "edges", which increase, in [low, high], and one more "values" than these, in [0, 1].

    >>> read_steps({"edges": [0.5], "values": [0.2, 0.7]})(np.array([0.4, 0.5]))
    array([0.2, 0.7])
    """
    edges = read_numbers(state, "edges", low=low, high=high, rising=True)
    return StepMap(edges, read_numbers(state, "values", len(edges) + 1, low=0.0, high=1.0))


@dataclass(frozen=True, eq=False)
class VennAbersMap(ScoreMap):
    """p0 and p1 as step functions of the score; as one probability p1 / (1 - p0 + p1)."""

    p0: StepMap
    p1: StepMap

    def __call__(self, scores: Float64s) -> Float64s:
        """Return p1 / (1 - p0 + p1) at each score.

        >>> p0, p1 = (StepMap(np.array([]), np.array([p])) for p in (0.25, 0.75))
        >>> VennAbersMap(p0, p1)(np.array([0.4]))  # 0.75 / 1.5
        array([0.5])
        """
        p0, p1 = self.p0(scores), self.p1(scores)
        return p1 / (1 - p0 + p1)

    def state(self) -> dict[str, Any]:
        """Return {"p0": ..., "p1": ...}, each with "edges" and "values".

        >>> p0, p1 = (StepMap(np.array([]), np.array([p])) for p in (0.25, 0.75))
        >>> VennAbersMap(p0, p1).state()
        {'p0': {'edges': [], 'values': [0.25]}, 'p1': {'edges': [], 'values': [0.75]}}
        """
        return {"p0": self.p0.state(), "p1": self.p1.state()}


class VennAbers(ScoreRecalibrator):
    r"""Fit two isotonic curves for each score, with its row added as a 0 and as a 1 (inductive Venn-Abers predictor).

    .. math:: p_y(s) = g_{S \cup (s, y)}(s), \quad y \in \{0, 1\}, \qquad p = \frac{p_1}{1 - p_0 + p_1}

    If rows are exchangeable, one of p0 and p1 (that of the true outcome) is perfectly calibrated, whatever the model and
    however few the rows; their distance is the influence of one row. `predict_interval` returns both, `predict_proba` the one
    probability that minimises the worst regret in log loss.

    For the cross version fit it as ``RecalibratedClassifier(model, VennAbers(), cv=5)``, which merges the folds by
    geometric means: GM(p1) / (GM(1 - p0) + GM(p1)).

    Parameters
    ----------
    input : {"probs", "logits"}, default "probs"
        What X holds; with logits the scores are log odds.
    multiclass : {"one-vs-rest", "top-label", "shared"}, default "one-vs-rest"
        How more than two classes are reduced to one score; as in `PlattScaling`.
    normalize : bool, default True
        Whether one-vs-rest and shared results are divided by their sum.
    classes : sequence, default None
        Names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    maps_ : list
        p0 and p1 of each map, with `edges` and `values`.

    Notes
    -----
    Both fits are found for all scores at once by the algorithm of the paper, in time n log n. A weighted row counts as
    so many rows; the row added has weight 1.

    References
    ----------
    Vovk, Petej, Fedorova. Large-scale probabilistic predictors with and without guarantees of validity. NeurIPS 2015.
    https://doi.org/10.48550/arXiv.1511.00213

    See Also
    --------
    RecalibratedClassifier : Combines folds into the cross Venn-Abers predictor.

    Examples
    --------
    >>> from truecal.recalibration import VennAbers
    >>> fitted = VennAbers().fit([0.1, 0.2, 0.4, 0.6, 0.8, 0.9], [0, 0, 1, 0, 1, 1])
    >>> p0, p1 = fitted.predict_interval([0.3, 0.7])
    >>> p0.round(3), p1.round(3)
    (array([0.   , 0.333]), array([0.667, 1.   ]))
    >>> fitted.predict_proba([0.3, 0.7])[:, 1].round(3)
    array([0.4, 0.6])
    """

    def _scores(self, outputs: Float64s, classes: int) -> Float64s:
        """Return probabilities or log odds of the classes (n, K); log odds of more than two classes are rounded to float32."""
        scores = super()._scores(outputs, classes)
        # the last bits of log odds of many classes differ between machines; a step function must not depend on them
        is_computed = self.input == "logits" and classes > 2
        return scores.astype(np.float32).astype(np.float64) if is_computed else scores

    def _fit_map(self, scores: Float64s, outcomes: Float64s, weights: Float64s) -> VennAbersMap:
        """Fit p0 and p1 at every score (n,): the isotonic fit there with one more row of this score, an outcome of 0 or of 1.

        >>> fitted = VennAbers()._fit_map(np.array([0.2, 0.8]), np.array([0.0, 1.0]), np.ones(2))
        >>> fitted.p0(np.array([0.2, 0.8])), fitted.p1(np.array([0.2, 0.8]))  # the mean of 1 and an added 0; of 0 and an added 1
        (array([0. , 0.5]), array([0.5, 1. ]))
        """
        x, w, ones = pool_equal_scores(scores, outcomes, weights)
        with_one = fit_with_added_one(w, ones)
        # adding a 0 is adding a 1 to the mirrored data
        with_zero = 1 - fit_with_added_one(w[::-1], (w - ones)[::-1])[::-1]
        # a 1 between two scores joins the higher one, a 0 the lower one; beyond all scores either is a block of its own
        p0 = _drop_constant_edges(x, np.append(0.0, with_zero))
        return VennAbersMap(p0, _drop_constant_edges(np.nextafter(x, np.inf), np.append(with_one, 1.0)))

    def _read_map(self, state: Mapping[str, Any]) -> VennAbersMap:
        """Read "p0" and "p1", each an object of rising "edges" and one more "values" than these, in [0, 1].

        >>> VennAbers()._read_map({"p0": {"edges": [], "values": [0.25]}, "p1": {"edges": [], "values": [0.75]}})(np.array([0.4]))
        array([0.5])
        """
        p0, p1 = (read_steps(read_field(state, name, dict)) for name in ("p0", "p1"))
        return VennAbersMap(p0, p1)

    def predict_interval(self, X: ArrayLike) -> tuple[Float64s, Float64s]:
        """Return p0 and p1, one of which is the calibrated probability.

        Parameters
        ----------
        X : array-like of shape (n,), (n, 1) or (n, K)
            Outputs of the declared `input`.

        Returns
        -------
        p0 : ndarray of shape (n,) or (n, K)
            The isotonic fit with the row added as a 0: of two classes for the second of `classes_`, else for every class.
        p1 : ndarray of shape (n,) or (n, K)
            The fit with the row added as a 1.

        Raises
        ------
        InputError
            multiclass="top-label" with more than two classes, which has no interval per class.
        """
        check_is_fitted(self, "classes_")
        if self.multiclass == "top-label" and len(self.classes_) > 2:
            raise InputError('an interval per class needs multiclass="one-vs-rest" or "shared", not "top-label"')
        return self._predict_limits(X, lambda g, scores: (g.p0(scores), g.p1(scores)))

    def combine(self, fitted: Sequence[Self], X: Sequence[ArrayLike]) -> Float64s:
        """Combine folds as the cross Venn-Abers predictor: geometric means of 1 - p0 and of p1.

        Parameters
        ----------
        fitted : sequence of VennAbers
            One fitted copy per fold.
        X : sequence of array-like
            For each copy, the outputs of its fold's model for the same rows.

        Returns
        -------
        probs : ndarray of shape (n, K)
            Combined probabilities, with the columns of `classes_`.
        """
        intervals = [part.predict_interval(outputs) for part, outputs in zip(fitted, X, strict=True)]
        against = _geometric_mean([1 - p0 for p0, _ in intervals])
        favour = _geometric_mean([p1 for _, p1 in intervals])
        total = against + favour
        probs = np.where(total > 0, favour / positive(total), 0.5)
        return np.column_stack([1 - probs, probs]) if probs.ndim == 1 else renormalize(probs, probs.shape[1])


def _drop_constant_edges(edges: Float64s, values: Float64s) -> StepMap:
    """Make a step function of inner edges (n,) and values (n + 1,), without edges between equal values.

    >>> steps = _drop_constant_edges(np.array([0.3, 0.6]), np.array([0.1, 0.1, 0.9]))
    >>> steps.edges, steps.values
    (array([0.6]), array([0.1, 0.9]))
    """
    changes = np.diff(values) != 0
    return StepMap(edges[changes], values[np.r_[True, changes]])


def _geometric_mean(parts: Sequence[Float64s]) -> Float64s:
    """Compute the geometric mean of several arrays, element by element; 0 where one is 0.

    >>> _geometric_mean([np.array([1.0, 0.0]), np.array([4.0, 1.0])])
    array([2., 0.])
    """
    with np.errstate(divide="ignore"):
        mean: Float64s = np.exp(np.mean(np.log(parts), axis=0))
    return mean


def fit_with_added_one(w: Float64s, ones: Float64s) -> Float64s:
    """Return, for every distinct score, the value there of the isotonic fit to all rows and one more 1 at this score, (n,).

    `w` and `ones` are the weights, and the weights of positive outcomes, of rising scores. Algorithms 1 and 2 of Vovk, Petej
    and Fedorova (2015). The fit is the slope of the greatest convex minorant of the points (total weight, total of ones). A 1
    added before all rows puts the point (-1, -1) in front; moving it past one score at a time replaces a single point, and only
    the left end of the minorant changes. Each point enters and leaves the stack of corners once.

    >>> fit_with_added_one(np.array([1.0, 1.0]), np.array([0.0, 1.0])).round(4)  # (0 + 1) / 2, and 1
    array([0.5, 1. ])
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
    """Remove corners from the top of the stack that are on or above the line from (x, y), left of them, to the corner after.

    What remains with (x, y) on top is convex; the last corner stays.

    >>> stack = [(2.0, 2.0), (1.0, 2.0)]
    >>> _pop_above(stack, 0.0, 0.0)
    >>> stack  # (1, 2) lies above the line from (0, 0) to (2, 2)
    [(2.0, 2.0)]
    """
    while len(stack) > 1:
        (x0, y0), (x1, y1) = stack[-1], stack[-2]
        if (y0 - y) * (x1 - x) < (y1 - y) * (x0 - x):
            return
        stack.pop()


# ----------------------------------------------------------------------------------------------------
# Spline calibration

_MAX_CELLS = 4096  # by choice: more distinct scores are fitted in cells of equal weight


@dataclass(frozen=True, eq=False)
class SplineMap(ScoreMap):
    """sigmoid(f(x)): f is quadratic between knots, with slopes >= 0 that are linear from knot to knot.

    x is the log odds, clipped to [low, high]; outside the knots f continues in straight lines. `knots` (k,) increase, `slopes`
    (k,) are those at the knots, `intercept` is f at the first.
    """

    knots: Float64s
    slopes: Float64s
    intercept: float
    low: float
    high: float

    def __call__(self, scores: Float64s) -> Float64s:
        """Evaluate sigmoid(f(x)) at log odds.

        >>> SplineMap(np.array([-1.0, 1.0]), np.array([1.0, 1.0]), -1.0, -5.0, 5.0)(np.array([0.0]))  # slope 1 from f(-1) = -1
        array([0.5])
        """
        x = np.minimum(np.maximum(scores, self.low), self.high)
        value = self.intercept + np.minimum(x - self.knots[0], 0.0) * self.slopes[0]
        for j, gap in enumerate(np.diff(self.knots)):
            share = np.minimum(np.maximum((x - self.knots[j]) / gap, 0.0), 1.0)
            value = value + share * gap * (self.slopes[j] + share * (self.slopes[j + 1] - self.slopes[j]) / 2)
        probs: Float64s = sigmoid(value + np.maximum(x - self.knots[-1], 0.0) * self.slopes[-1])
        return probs


@dataclass(eq=False, repr=False, kw_only=True)
class SplineCalibration(ScoreRecalibrator):
    r"""Fit a monotone quadratic spline in the log odds, by penalised maximum likelihood.

    .. math:: p = \sigma(f(x)), \qquad f'(x) = \sum_j a_j h_j(x), \; a_j \ge 0, \qquad
        \min_a \; -\log L + \lambda \sum_j (a_{j+1} - a_j)^2

    h_j are the hat functions of the knots, which stand at quantiles of the scores: the slope of f is a piecewise linear
    curve that is never negative. The penalty draws it to a constant slope, a logistic curve in the log odds (contained:
    the identity); lambda is chosen by Akaike's criterion, so that few rows give a logistic curve and many a free one.
    Targets are Platt's, so a finite optimum always exists.

    Parameters
    ----------
    knots : int, default 10
        Largest number of knots; there are fewer where scores have fewer distinct values.
    input : {"probs", "logits"}, default "probs"
        What X holds.
    multiclass : {"one-vs-rest", "top-label", "shared"}, default "one-vs-rest"
        How more than two classes are reduced to one score; as in `PlattScaling`.
    normalize : bool, default True
        Whether one-vs-rest and shared results are divided by their sum.
    classes : sequence, default None
        Names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    maps_ : list
        The curves, with `knots`, `slopes` at the knots, and `intercept`.

    Notes
    -----
    Probabilities of exactly 0 and 1 are read as log odds one beyond the most extreme others, and so are scores outside
    the range of the fit. Results are never 0 or 1.

    References
    ----------
    Lucena. Spline-based probability calibration. 2018 (natural cubic splines, not monotone).
    https://doi.org/10.48550/arXiv.1809.07751
    Ramsay. Monotone regression splines in action. Statistical Science 3, 1988. https://doi.org/10.1214/ss/1177012761

    See Also
    --------
    BetaCalibration : Three parameters, for few rows.

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

    knots: int = field(default=10, kw_only=False)

    def _check_params(self) -> None:
        """Refuse a number of knots outside 2 to 1000.

        >>> SplineCalibration(1)._check_params()
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: knots must be a whole number of at least 2, not 1
        """
        super()._check_params()
        options.whole(self.knots, "knots", 2, 1000)

    def _scores(self, outputs: Float64s, classes: int) -> Float64s:
        """Return the log odds of each class against the others (n, K).

        >>> SplineCalibration()._scores(np.array([[0.5, 0.5]]), 2)
        array([[0., 0.]])
        """
        return class_log_odds(outputs, self.input, classes)

    def _fit_map(self, scores: Float64s, outcomes: Float64s, weights: Float64s) -> SplineMap:
        """Choose knots at quantiles of log odds (n,) and fit the slopes; warn where scores do not rise with the outcomes."""
        low, high = finite_range(scores)
        x, w, ones = pool_equal_scores(np.clip(scores, low, high), outcomes, weights)
        can_rise = bool(len(x) > 1 and 0 < float(ones.sum()) < w.sum())
        x, w, ones = _merge_into_cells(x, w, ones)
        knots = _choose_knots(x, w, self.knots) if can_rise else np.array([low, high])
        slopes, intercept = fit_slopes(x, w, ones, knots)
        if can_rise and not slopes.any():
            self._warn("the scores do not rise with the outcomes; the map is constant")
        return SplineMap(knots, slopes, intercept, low, high)

    def _read_map(self, state: Mapping[str, Any]) -> SplineMap:
        """Read at least two "knots", which increase, as many "slopes" >= 0, "intercept", and "low" <= "high" of log odds."""
        knots = read_numbers(state, "knots", rising=True)
        if len(knots) < 2:
            raise FileError('"knots" must hold at least two numbers')
        slopes = read_numbers(state, "slopes", len(knots), low=0.0)
        low = read_number(state, "low")
        high = read_number(state, "high", low=low)
        return SplineMap(knots, slopes, read_number(state, "intercept"), low, high)


def _merge_into_cells(x: Float64s, w: Float64s, ones: Float64s) -> tuple[Float64s, Float64s, Float64s]:
    """Merge neighbouring scores into at most 4096 cells of about equal weight; return mean scores, weights and ones of the
    cells.

    `x`, `w` and `ones` (n,) are distinct rising scores, their weights and weights of positive outcomes; up to 4096 scores are
    returned as they are.

    >>> _merge_into_cells(np.array([0.1, 0.2]), np.ones(2), np.array([0.0, 1.0]))
    (array([0.1, 0.2]), array([1., 1.]), array([0., 1.]))
    >>> len(_merge_into_cells(np.arange(8192.0), np.ones(8192), np.ones(8192))[0])
    4096
    """
    if len(x) <= _MAX_CELLS:
        return x, w, ones
    cumulative = np.cumsum(w)
    cell = np.minimum((cumulative - w / 2) / cumulative[-1] * _MAX_CELLS, _MAX_CELLS - 1).astype(np.intp)
    start = np.flatnonzero(np.r_[True, np.diff(cell) > 0])
    weight = np.add.reduceat(w, start)
    return np.add.reduceat(w * x, start) / weight, weight, np.add.reduceat(ones, start)


def _choose_knots(x: Float64s, w: Float64s, count: int) -> Float64s:
    """Choose at most `count` of the distinct, rising scores x at quantiles of their weights w, among them the first and last.

    >>> _choose_knots(np.arange(9.0), np.ones(9), 3)
    array([0., 4., 8.])
    """
    cumulative = np.cumsum(w)
    position = np.searchsorted(cumulative, np.linspace(0, 1, count)[1:-1] * cumulative[-1])
    return np.unique(np.r_[x[0], x[np.minimum(position, len(x) - 1)], x[-1]])
