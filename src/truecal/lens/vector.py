"""Vectors: what a lens on several probabilities sees, and what such a lens is.

A Vector is the induced classification problem of Vaicenavicius et al. (2019): every prediction is a
distribution over `dimension` events of which exactly one happened. The one-hot outcomes are implied by `labels` and never built.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from truecal.errors import InputError
from truecal.lens.class_wise import ClassWise
from truecal.lens.lens import Lens
from truecal.lens.one_class import OneClass
from truecal.lens.top_label import TopLabel
from truecal.predictions import Predictions
from truecal.types import Float64s, Floats, Indices


@dataclass(frozen=True, eq=False)
class Vector:
    """Distributions over a few events, and which event happened.

    Attributes
    ----------
    probs : (n, e) probabilities held explicitly.
    labels : (n,) which of the `dimension` events happened.
    names : the events, in order.
    implied : position of the one event whose probability is what the others leave of 1, or None when all are explicit.
    judged : the event that a one-dimensional binning or an interval distance looks at when there are only two.
    weights, clusters : as in Predictions.
    """

    probs: Floats
    labels: Indices
    names: tuple[str, ...]
    implied: int | None = None
    judged: int = 1
    weights: Float64s | None = None
    clusters: Indices | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def dimension(self) -> int:
        return int(self.probs.shape[1]) + (self.implied is not None)

    @property
    def explicit(self) -> Indices:
        """Positions of the events that `probs` holds."""
        return np.delete(np.arange(self.dimension), [] if self.implied is None else [self.implied])

    def column(self, event: int) -> Floats:
        """The probabilities of one event, shape (n,)."""
        if event != self.implied:
            return self.probs[:, int(np.searchsorted(self.explicit, event))]
        return left_of_one(self.probs)

    @cached_property
    def columns(self) -> Floats:
        """All probabilities, one contiguous row per event: shape (dimension, n)."""
        dtype = self.probs.dtype if self.implied is None else np.float64
        every = np.empty((self.dimension, len(self)), dtype)
        every[self.explicit] = self.probs.T
        if self.implied is not None:
            every[self.implied] = left_of_one(self.probs)
        return every

    @cached_property
    def direction(self) -> float:
        """Mean confidence minus frequency: of all explicit events together, or of the most probable one where all are explicit."""
        if self.implied is not None:
            confidence = self.probs.sum(axis=1, dtype=np.float64)
            happened = self.labels != self.implied
        else:
            top = self.probs.argmax(axis=1)
            confidence = self.probs[np.arange(len(self)), top].astype(np.float64)
            happened = top == self.labels
        return float(np.average(confidence, weights=self.weights) - np.average(happened, weights=self.weights))


def left_of_one(probs: Floats) -> Float64s:
    """1 minus the sum of each row; never below 0, where rounding (or rows that sum to 1 only within tolerance) would lead.

    >>> left_of_one(np.array([[0.5, 0.25], [1.0, 1e-17]]))
    array([0.25, 0.  ])
    """
    return np.maximum(1.0 - probs.sum(axis=1, dtype=np.float64), 0.0)


@dataclass(frozen=True)
class VectorLens(ABC):
    """Predictions -> Vector."""

    @abstractmethod
    def __call__(self, preds: Predictions) -> Vector:
        """The distributions and outcomes this lens looks at."""

    @abstractmethod
    def describe(self, preds: Predictions) -> str:
        """What is judged, in words."""


AnyLens = Lens | VectorLens


def one_against_rest(preds: Predictions, index: int) -> Vector:
    """The probability of one class beside that of all others together."""
    score = preds.class_probs(index)
    labels = (preds.labels != index).astype(np.intp)
    names = (preds.class_name(index), "other")
    return Vector(score[:, None], labels, names, 1, 0, preds.weights, preds.clusters)


def vectors(lens: AnyLens, preds: Predictions) -> tuple[Iterator[Vector], Float64s]:
    """What any lens sees, as vectors with the share of each in the overall error (one vector, except for a class-wise lens).

    A lens on one probability p gives the pair (p, 1 - p).
    """
    from truecal.lens.grouping import GroupedLens
    from truecal.lens.top_k import TopK

    if isinstance(lens, VectorLens):
        return iter([lens(preds)]), np.ones(1)
    if isinstance(lens, TopLabel):
        return iter([TopK(1)(preds)]), np.ones(1)
    if isinstance(lens, OneClass):
        return iter([one_against_rest(preds, lens.index(preds))]), np.ones(1)
    if isinstance(lens, ClassWise):
        return (one_against_rest(preds, i) for i in range(preds.class_count)), lens.shares(preds)
    if isinstance(lens, GroupedLens):
        return vectors(lens.lens, lens.seen(preds))
    raise InputError(f"lens must be one of truecal's, such as tc.TopK(5) or tc.Canonical(), not {lens!r}")


def narrowed(top: Vector, k: int) -> Vector:
    """The first k columns of a top-k vector and the rest: the vector of a smaller k without another pass over the data."""
    return replace(
        top,
        probs=top.probs[:, :k],
        labels=np.minimum(top.labels, k),
        names=(*top.names[:k], top.names[-1]),
        implied=k,
        judged=0,
    )
