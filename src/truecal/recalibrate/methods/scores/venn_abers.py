"""Venn-Abers calibration: two isotonic fits per prediction, one for each outcome it might have, and so an interval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from truecal.errors import FileError, InputError
from truecal.recalibrate.export import fields
from truecal.recalibrate.export.graph import Value
from truecal.recalibrate.methods.scores.isotonic import pooled
from truecal.recalibrate.methods.scores.lift import ScoreMapping, renormalized
from truecal.types import Float64s, Floats


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
    >>> from truecal.recalibrate import VennAbers
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
            part = fields.field(state, name)
            if not isinstance(part, dict):
                raise FileError(f'"{name}" must be an object')
            edges = fields.numbers(part, "edges", rising=True)
            parts.append(Steps(edges, fields.numbers(part, "values", len(edges) + 1, low=0.0, high=1.0)))
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
        probs = np.where(total > 0, favour / np.where(total > 0, total, 1.0), 0.5)
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
