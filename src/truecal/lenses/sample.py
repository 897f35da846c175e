"""The Sample: what a lens sees of Predictions, as rows that still know where they came from and which of them belong together.

Every door reads Samples. A Sample sorts once, on first need, and keeps the result; whatever is made from it can ask whether
its rows are independent.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal.errors import InputError
from truecal.predictions.predictions import Predictions
from truecal.profile.profile import Profile
from truecal.types import Float64s, Floats, Indices


@dataclass(frozen=True, eq=False)
class Sample:
    """Scores and outcomes of one dataset, row by row.

    One probability per row: `scores` of shape (n,) and `outcomes` 0 or 1. Several at once: `scores` of shape (n, e) and
    `outcomes` the number of the event that happened (the induced classification problem of Vaicenavicius et al. 2019; one-hot
    outcomes are implied and never built).

    Attributes
    ----------
    weights : as in Predictions, or None.
    units : which rows belong together: the cluster of each row, or the row that pooled pairs come from; None where rows are
        independent. `unit` says what they are, "rows" or "clusters"; `pooled` that rows are pairs of one row and one class.
    names : the events, in order. One probability stands for two: the event and its complement.
    implied : position of the one event whose probability is what the others leave of 1, or None when all are explicit.
    judged : the event that a one-dimensional binning or an interval distance looks at when there are only two.
    """

    scores: Floats
    outcomes: NDArray[Any]
    weights: Float64s | None = None
    units: Indices | None = None
    unit: str = "rows"
    pooled: bool = False
    names: tuple[str, ...] = ("event", "other")
    implied: int | None = 1
    judged: int = 0

    @classmethod
    def of(
        cls,
        preds: Predictions,
        scores: Floats,
        outcomes: NDArray[Any],
        *,
        names: tuple[str, ...] = ("event", "other"),
        implied: int | None = 1,
        judged: int = 0,
    ) -> "Sample":
        """One score (or several) and one outcome per row of the predictions, with their weights and clusters."""
        return cls(scores, outcomes, preds.weights, preds.clusters, unit_of(preds), False, names, implied, judged)

    def __len__(self) -> int:
        return len(self.outcomes)

    # ------------------------------------------------------------------ one probability

    @property
    def several(self) -> bool:
        """Whether a row holds several probabilities."""
        return self.scores.ndim > 1

    @property
    def independent(self) -> bool:
        """Whether rows are independent of each other."""
        return self.units is None

    @cached_property
    def order(self) -> Indices:
        """The row behind every sorted place, rows of weight zero included."""
        self.refuse_several()
        return np.argsort(self.scores)

    @cached_property
    def profile(self) -> Profile:
        """The rows sorted by score; those of weight zero count as absent unless rows belong together."""
        self.refuse_several()
        if self.units is None:
            return Profile.of_rows(self.scores, _bytes(self.outcomes), self.weights)
        scores, outcomes = self.scores[self.order][None], self.outcomes[self.order][None]
        weights = None if self.weights is None else self.weights[self.order][None]
        units = self.units[self.order]
        return Profile(np.abs(scores), outcomes.astype(np.uint8, copy=False), weights, single=True, units=units)

    @cached_property
    def places(self) -> Indices:
        """Where in the profile the scores of every row begin; a row that is absent there has some other's place."""
        profile = self.profile
        if self.weights is not None:
            return np.minimum(np.searchsorted(profile.scores[0], np.abs(self.scores)), profile.rows - 1)
        # Every row has a sorted place of its own; equal scores have that of the first of them.
        first = np.arange(profile.rows)
        if profile.has_ties:
            first = profile.groups[0][0]
        places = np.empty_like(first)
        places[self.order] = first
        return places

    def refuse_several(self) -> None:
        """Raise where one probability per row is needed."""
        if self.several:
            raise InputError(
                f"{self.dimension} probabilities are judged at once here; use tc.GeneralizedECE, or a lens on one probability "
                "such as tc.TopLabel()"
            )

    def refuse_pooled(self) -> None:
        """Raise where one row stands for several outcomes, which a test must not take as independent."""
        if self.pooled:
            raise InputError(
                "the pairs of a row under AllLabels() are not independent; judge the top label, or one class at a time"
            )

    # ------------------------------------------------------------------ any number of probabilities

    @property
    def probs(self) -> Floats:
        """The probabilities held explicitly, shape (n, e)."""
        return self.scores if self.several else self.scores[:, None]

    @cached_property
    def labels(self) -> Indices:
        """Which of the `dimension` events happened."""
        if self.several:
            return self.outcomes
        other = 1 - self.judged
        return np.where(self.outcomes.astype(bool), self.judged, other).astype(np.intp)

    @property
    def dimension(self) -> int:
        """Number of events."""
        return int(self.probs.shape[1]) + (self.implied is not None)

    @property
    def explicit(self) -> Indices:
        """Positions of the events whose probabilities are held."""
        return np.delete(np.arange(self.dimension), [] if self.implied is None else [self.implied])

    def column(self, event: int) -> Floats:
        """The probabilities of one event, shape (n,)."""
        if event != self.implied:
            return self.probs[:, int(np.searchsorted(self.explicit, event))]
        return left_of_one(self.probs)

    @cached_property
    def columns(self) -> Floats:
        """All probabilities, one contiguous row per event: shape (dimension, n)."""
        dtype = self.scores.dtype if self.implied is None else np.float64
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

    def narrowed(self, k: int) -> "Sample":
        """The first k columns of a top-k sample and the rest: the sample of a smaller k without another pass over the data."""
        names = (*self.names[:k], self.names[-1])
        return replace(
            self, scores=self.probs[:, :k], outcomes=np.minimum(self.labels, k), names=names, implied=k, judged=0
        )

    def weighing(self) -> "Sample":
        """The rows of positive weight."""
        if self.weights is None or self.weights.all():
            return self
        if not self.weights.any():
            raise InputError("all rows have weight zero; nothing is left to measure")
        return self.take(self.weights > 0)

    def take(self, rows: NDArray[np.bool_] | Indices) -> "Sample":
        """Some of the rows, in the order asked for."""
        weights = None if self.weights is None else self.weights[rows]
        units = None if self.units is None else self.units[rows]
        return replace(self, scores=self.scores[rows], outcomes=self.outcomes[rows], weights=weights, units=units)

    def with_units(self, units: Indices) -> "Sample":
        """The same rows drawn together as `units` say."""
        return replace(self, units=units)


def _bytes(outcomes: NDArray[Any]) -> NDArray[np.uint8]:
    """0/1 outcomes as bytes, not copied where they are."""
    return outcomes.view(np.uint8) if outcomes.dtype == np.bool_ else outcomes.astype(np.uint8, copy=False)


def unit_of(preds: Predictions) -> str:
    """What the independent units of predictions are called."""
    return "rows" if preds.clusters is None else "clusters"


def left_of_one(probs: Floats) -> Float64s:
    """1 minus the sum of each row; never below 0, where rounding (or rows that sum to 1 only within tolerance) would lead.

    >>> left_of_one(np.array([[0.5, 0.25], [1.0, 1e-17]]))
    array([0.25, 0.  ])
    """
    # A sum of single numbers, row by row, would take far longer than the numbers themselves.
    total = probs[:, 0].astype(np.float64) if probs.shape[1] == 1 else probs.sum(axis=1, dtype=np.float64)
    np.subtract(1.0, total, out=total)
    return np.maximum(total, 0.0, out=total)


def batch(samples: Sequence[Sample]) -> Profile:
    """The Profile of several datasets of equally many rows, which share their weights."""
    for sample in samples:
        sample.refuse_several()
    scores = np.stack([sample.scores for sample in samples])
    outcomes = np.stack([sample.outcomes for sample in samples]).astype(np.uint8, copy=False)
    weights = None if samples[0].weights is None else np.stack([s.weights for s in samples if s.weights is not None])
    profile = Profile.of_rows(scores, outcomes, weights)
    profile.independent = samples[0].independent
    return profile
