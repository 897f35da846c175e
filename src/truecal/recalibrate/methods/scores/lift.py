"""From a map of one score to a recalibrator of any number of classes.

A map turns one score into one probability. Two classes need one map, for the second class. More classes are lifted in
one of three ways: "one-vs-rest" (a map per class; the results are renormalised to sum to 1, or left alone), "top-label"
(one map, for the probability that the largest output is right), or "shared" (one map for all classes, learned from all
pairs of a row and a class; as the map never falls, the predicted class stays).
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, get_args

import numpy as np

from truecal import options
from truecal.errors import FileError
from truecal.predictions import softmax
from truecal.recalibrate.contract import Recalibrator
from truecal.recalibrate.export import fields
from truecal.recalibrate.export.graph import Value
from truecal.recalibrate.export.traced import traced_probs, traced_scores
from truecal.recalibrate.impossible import ImpossibleRowError
from truecal.recalibrate.outputs import Input, class_scores, top_class
from truecal.types import Float64s, Floats, Indices

Multiclass = Literal["one-vs-rest", "top-label", "shared"]

# How much of the model's own probabilities a shared map adds: enough to order classes that the map puts on one step
# (1e-6 is far above rounding), too little to matter to any score.
_TIE_BREAK = 1e-6


class ScoreMap(Protocol):
    """A learned map from scores (probabilities, or log odds, as declared) to probabilities."""

    def __call__(self, scores: Float64s) -> Float64s: ...

    def trace(self, scores: Value) -> Value:
        """The same for one column of a graph."""
        ...

    def state(self) -> dict[str, Any]:
        """Its numbers, for JSON."""
        ...


class ScoreMapping(Recalibrator):
    """A recalibrator made of maps of one score: `maps_`, one per class, or one in all for two classes, "top-label" and
    "shared"."""

    multiclass: Multiclass
    normalize: bool

    def __init__(
        self,
        *,
        input: Input = "probs",  # noqa: A002
        multiclass: Multiclass = "one-vs-rest",
        normalize: bool = True,
        classes: Sequence[object] | None = None,
    ) -> None:
        self.input = input
        self.multiclass = multiclass
        self.normalize = normalize
        self.classes = classes

    @abstractmethod
    def fit_map(self, scores: Float64s, outcomes: Float64s, weights: Float64s) -> ScoreMap:
        """Learn one map from scores, 0/1 outcomes (which may be all alike) and positive weights."""

    @abstractmethod
    def read_map(self, state: Mapping[str, Any]) -> ScoreMap:
        """The map of a state written by `ScoreMap.state`."""

    def scores(self, outputs: Floats) -> Float64s:
        """One score per class: what the maps are functions of."""
        return class_scores(outputs, self.input)

    def traced_scores(self, outputs: Value, count: int) -> Value:
        """The same for a graph of `count` classes."""
        return traced_scores(outputs, self.input, count)

    def check_params(self) -> None:
        super().check_params()
        options.choice(self.multiclass, get_args(Multiclass), "multiclass")
        options.choice(self.normalize, (True, False), "normalize")

    def _learn(self, outputs: Floats, labels: Indices, weights: Float64s | None) -> None:
        scores = self.scores(outputs)
        rows, count = scores.shape
        each = np.ones(rows) if weights is None else weights
        if count == 2:
            self.maps_ = [self.fit_map(scores[:, 1], (labels == 1).astype(np.float64), each)]
        elif self.multiclass == "top-label":
            top = top_class(outputs)
            right = (labels == top).astype(np.float64)
            if right.min() == right.max():
                self._warn(
                    f"the largest output is {'always' if right[0] else 'never'} right; the map has only one outcome"
                )
            self.maps_ = [self.fit_map(scores[np.arange(rows), top], right, each)]
        elif self.multiclass == "shared":
            pairs = (labels[:, None] == np.arange(count)).astype(np.float64)
            try:
                self.maps_ = [self.fit_map(scores.ravel(), pairs.ravel(), np.repeat(each, count))]
            except ImpossibleRowError as refusal:
                raise refusal.among(np.repeat(np.arange(rows), count)) from None
        else:
            if self.unseen_:
                names = self._named(self.unseen_)
                self._warn(f"class {names} never occurs in y; its map is learned from negative examples alone")
            self.maps_ = [self.fit_map(scores[:, k], (labels == k).astype(np.float64), each) for k in range(count)]

    def _apply(self, outputs: Floats) -> Float64s:
        scores = self.scores(outputs)
        rows, count = scores.shape
        if count == 2:
            positive = self.maps_[0](scores[:, 1])
            return np.column_stack([1 - positive, positive])
        if self.multiclass == "one-vs-rest":
            probs = np.column_stack([g(scores[:, k]) for k, g in enumerate(self.maps_)])
            return renormalized(probs) if self.normalize else probs
        raw = outputs.astype(np.float64) if self.input == "probs" else softmax(outputs)
        if self.multiclass == "top-label":
            top = top_class(outputs)
            return with_confidence(raw, top, self.maps_[0](scores[np.arange(rows), top]))
        shared = self.maps_[0](scores.ravel()).reshape(rows, count)
        return renormalized(shared + _TIE_BREAK * raw) if self.normalize else shared

    def _trace(self, outputs: Value) -> Value:
        count = len(self.classes_)
        scores = self.traced_scores(outputs, count)
        if count == 2:
            positive = self.maps_[0].trace(scores.column(1))
            return (1 - positive).beside(positive)
        if self.multiclass == "one-vs-rest":
            probs = _side_by_side([g.trace(scores.column(k)) for k, g in enumerate(self.maps_)])
            return traced_renormalized(probs, count) if self.normalize else probs
        raw = traced_probs(outputs, self.input)
        if self.multiclass == "top-label":
            top = outputs.is_largest(count)
            confidence = self.maps_[0].trace(top.where(scores, 0.0).sum())
            return traced_with_confidence(raw, top, confidence, count)
        shared = _side_by_side([self.maps_[0].trace(scores.column(k)) for k in range(count)])
        return traced_renormalized(shared + _TIE_BREAK * raw, count) if self.normalize else shared

    def _state(self) -> dict[str, Any]:
        return {"maps": [g.state() for g in self.maps_]}

    def _restore(self, state: Mapping[str, Any]) -> None:
        states = fields.field(state, "maps")
        count = len(self.classes_)
        needed = count if count > 2 and self.multiclass == "one-vs-rest" else 1
        if not isinstance(states, list) or len(states) != needed or not all(isinstance(s, dict) for s in states):
            raise FileError(f'"maps" must be a list of {needed} objects')
        self.maps_ = [self.read_map(s) for s in states]


def _side_by_side(columns: Sequence[Value]) -> Value:
    return columns[0].beside(*columns[1:])


def renormalized(probs: Float64s) -> Float64s:
    """Rows divided by their sums; a row of zeros, which says nothing about the classes, becomes uniform."""
    total = probs.sum(axis=1, keepdims=True)
    return np.where(total > 0, probs / np.where(total > 0, total, 1.0), 1.0 / probs.shape[1])


def traced_renormalized(probs: Value, count: int) -> Value:
    """`renormalized` for a graph."""
    total = probs.sum()
    empty = total <= 0.0
    return empty.where(1.0 / count, probs / empty.where(1.0, total))


def with_confidence(probs: Float64s, top: Indices, confidence: Float64s) -> Float64s:
    """Distributions that give class `top` exactly `confidence`; the other classes share the rest in proportion to
    `probs`.

    Where that would lift another class above the confidence, the shares of the others are mixed with equal shares, just
    enough to keep `top` on top. With a confidence of 1/K or less that is impossible: then the others share the rest
    equally.
    """
    rows, count = probs.shape
    index = np.arange(rows)
    shares = probs.copy()
    shares[index, top] = 0.0
    total = shares.sum(axis=1, keepdims=True)
    equal = 1.0 / (count - 1)
    shares = np.where(total > 0, shares / np.where(total > 0, total, 1.0), equal)
    shares[index, top] = 0.0
    rest, largest = 1.0 - confidence, shares.max(axis=1)
    over = rest * largest >= confidence
    if over.any():
        excess, room = rest[over] * largest[over] - confidence[over], rest[over] * (largest[over] - equal)
        mix = np.where(room > excess, excess / np.where(room > excess, room, 1.0), 1.0)[:, None]
        mixed = rest[over, None] * ((1 - mix) * shares[over] + mix * equal)
        # rounding must not make a tie
        below = np.where(mix < 1, np.nextafter(confidence[over, None], 0.0), 1.0)
        shares[over] = np.minimum(mixed, below)
        shares[~over] *= rest[~over, None]
    else:
        shares *= rest[:, None]
    shares[index, top] = confidence
    return shares


def traced_with_confidence(probs: Value, top: Value, confidence: Value, count: int) -> Value:
    """`with_confidence` for a graph; `top` is True in the column of the largest output."""
    equal = 1.0 / (count - 1)
    others = top.where(0.0, probs)
    total = others.sum()
    nothing = total <= 0.0
    shares = top.where(0.0, nothing.where(equal, others / nothing.where(1.0, total)))
    rest, largest = 1 - confidence, shares.max()
    fits = rest * largest < confidence
    excess, room = rest * largest - confidence, rest * (largest - equal)
    possible = excess < room
    mix = possible.where(excess / possible.where(room, 1.0), 1.0)
    mixed = fits.where(rest * shares, rest * ((1 - mix) * shares + mix * equal))
    # one part in 1e15 stands for the next float below: rounding must not make a tie
    below = fits.where(1.0, possible.where(confidence * (1 - 1e-15), 1.0))
    return top.where(confidence, mixed.at_most(below))
