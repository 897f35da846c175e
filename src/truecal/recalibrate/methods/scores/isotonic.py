"""Isotonic calibration: the best curve of any shape that never falls."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from truecal.errors import FileError
from truecal.recalibrate.export import fields
from truecal.recalibrate.export.graph import Value
from truecal.recalibrate.methods.scores.lift import ScoreMapping
from truecal.types import Float64s

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
    >>> from truecal.recalibrate import IsotonicCalibration
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
    x = fields.numbers(state, "x", rising=True)
    y = fields.numbers(state, "y", len(x), low=0.0, high=1.0)
    if len(x) == 0 or not (np.diff(y) >= 0).all():
        raise FileError('"y" must hold at least one number and never decrease')
    return RisingMap(x, y)
