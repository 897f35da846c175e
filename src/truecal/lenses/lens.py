"""Lenses and Samples: a lens decides which scores and outcomes of Predictions are judged, a Sample holds them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from truecal import options
from truecal.errors import InputError
from truecal.predictions.predictions import Predictions, check_predictions
from truecal.profile.profile import Profile
from truecal.types import Float64s, Floats, Indices

# ----------------------------------------------------------------------------------------------------
# The Sample: scores and outcomes, row by row, with the units that rows belong to


@dataclass(frozen=True, eq=False)
class Sample:
    """Scores and outcomes of one dataset, row by row; sorted once, on first need.

    Parameters
    ----------
    scores : ndarray of shape (n,) or (n, e)
        One probability per row, or several at once.
    outcomes : ndarray of shape (n,)
        0 or 1; of several probabilities the number of the event that happened (the induced classification problem of
        Vaicenavicius et al. 2019).
    weights : ndarray of shape (n,), default None
        As in Predictions.
    units : ndarray of shape (n,), default None
        The cluster of each row, or the row that pooled pairs come from; None where rows are independent.
    unit : {"rows", "clusters"}, default "rows"
        What the units are.
    pooled : bool, default False
        Whether rows are pairs of one row and one class.
    names : tuple of str, default ("event", "other")
        The events in order; one probability stands for two, the event and its complement.
    implied : int or None, default 1
        Position of the one event whose probability is 1 minus the others; None when all are explicit.
    event : int, default 0
        The event that a one-dimensional binning or an interval distance is about when there are only two.

    See Also
    --------
    Lens.samples : Makes them of Predictions.

    Examples
    --------
    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([0.9, 0.2, 0.7], [1, 0, 1])
    >>> sample = tc.OneClass().sample(preds)
    >>> sample.scores, sample.outcomes, sample.independent
    (array([0.9, 0.2, 0.7]), array([ True, False,  True]), True)
    """

    scores: Floats
    outcomes: NDArray[Any]
    weights: Float64s | None = None
    units: Indices | None = None
    unit: str = "rows"
    pooled: bool = False
    names: tuple[str, ...] = ("event", "other")
    implied: int | None = 1
    event: int = 0

    @classmethod
    def of(
        cls,
        preds: Predictions,
        scores: Floats,
        outcomes: NDArray[Any],
        *,
        names: tuple[str, ...] = ("event", "other"),
        implied: int | None = 1,
        event: int = 0,
    ) -> Sample:
        """Take scores and outcomes of every row of predictions, with their weights and clusters.

        Parameters
        ----------
        preds : Predictions
            The rows.
        scores : ndarray of shape (n,) or (n, e)
            One probability per row, or several.
        outcomes : ndarray of shape (n,)
            What happened.
        names : tuple of str, default ("event", "other")
            The events in order.
        implied : int or None, default 1
            Position of the event whose probability is 1 minus the others.
        event : int, default 0
            The event whose probability one-dimensional binning cuts.

        Returns
        -------
        sample : Sample
            One row per prediction.
        """
        unit = "rows" if preds.clusters is None else "clusters"
        return cls(scores, outcomes, preds.weights, preds.clusters, unit, False, names, implied, event)

    def __len__(self) -> int:
        """Return the number of rows n."""
        return len(self.outcomes)

    # ------------------------------------------------------------------ one probability

    @property
    def independent(self) -> bool:
        """Whether rows are independent of each other: they belong to no units.

        >>> Sample(np.array([0.2, 0.8]), np.array([0, 1]), units=np.array([0, 0])).independent
        False
        """
        return self.units is None

    @cached_property
    def order(self) -> Indices:
        """Indices that sort the rows by score, rows of weight zero included, shape (n,).

        >>> Sample(np.array([0.8, 0.2]), np.array([0, 1])).order
        array([1, 0])
        """
        return np.argsort(self.scores)

    @cached_property
    def profile(self) -> Profile:
        """The rows sorted by score, with their units; rows of weight zero are left out unless rows belong to units.

        Refused for several probabilities per row.

        >>> Sample(np.array([0.8, 0.2, 0.5]), np.array([0, 1, 1]), np.array([1.0, 2.0, 0.0])).profile.scores
        array([[0.2, 0.8]])
        """
        if self.scores.ndim > 1:
            raise InputError(
                f"{self.dimension} probabilities are judged at once here; use tc.GeneralizedECE, or a lens on one probability "
                "such as tc.TopLabel()"
            )
        boolean = self.outcomes.dtype == np.bool_
        outcomes = self.outcomes.view(np.uint8) if boolean else self.outcomes.astype(np.uint8, copy=False)
        if self.units is None:
            return Profile.of_rows(self.scores, outcomes, self.weights)
        weights = None if self.weights is None else self.weights[self.order][None]
        scores, outcomes, units = (
            np.abs(self.scores[self.order])[None],
            outcomes[self.order][None],
            self.units[self.order],
        )
        return Profile(scores, outcomes, weights, single=True, units=units)

    def refuse_pooled(self) -> None:
        """Refuse a sample of pairs of a row and a class, which a test must not take as independent.

        Raises
        ------
        InputError
            The sample is pooled.
        """
        if self.pooled:
            raise InputError(
                "the pairs of a row under AllLabels() are not independent; judge the top label, or one class at a time"
            )

    # ------------------------------------------------------------------ any number of probabilities

    @property
    def probs(self) -> Floats:
        """The probabilities of all events but the implied one, shape (n, e); e is 1 for one probability per row.

        >>> Sample(np.array([0.8, 0.2]), np.array([0, 1])).probs
        array([[0.8],
               [0.2]])
        """
        return self.scores if self.scores.ndim > 1 else self.scores[:, None]

    @cached_property
    def labels(self) -> Indices:
        """Which of the `dimension` events happened, integers of shape (n,).

        For one probability per row it is `event` where the outcome is 1, else the other of 0 and 1.

        >>> Sample(np.array([0.8, 0.2]), np.array([0, 1])).labels  # event 0 is "the outcome is 1"
        array([1, 0])
        """
        if self.scores.ndim > 1:
            return self.outcomes
        return np.where(self.outcomes.astype(bool), self.event, 1 - self.event).astype(np.intp)

    @property
    def dimension(self) -> int:
        """Number of events, the implied one included.

        >>> Sample(np.array([0.8, 0.2]), np.array([0, 1])).dimension
        2
        """
        return int(self.probs.shape[1]) + (self.implied is not None)

    @cached_property
    def columns(self) -> Floats:
        """All probabilities, one contiguous row per event: (dimension, n); the implied one is 1 minus the sum of the others.

        >>> Sample(np.array([0.75, 0.25]), np.array([0, 1])).columns
        array([[0.75, 0.25],
               [0.25, 0.75]])
        """
        if self.implied is None:
            return np.ascontiguousarray(self.probs.T)
        columns = np.empty((self.dimension, len(self)))
        columns[np.delete(np.arange(self.dimension), self.implied)] = self.probs.T
        columns[self.implied] = remainder(self.probs)
        return columns

    def weighing(self) -> Sample:
        """Take the rows of positive weight.

        Returns
        -------
        sample : Sample
            The sample itself where no weight is zero.

        Raises
        ------
        InputError
            All weights are zero.
        """
        if self.weights is None or self.weights.all():
            return self
        if not self.weights.any():
            raise InputError("all rows have weight zero; nothing is left to measure")
        return self.take(self.weights > 0)

    def take(self, rows: NDArray[np.bool_] | Indices) -> Sample:
        """Take some rows, in the order given.

        Parameters
        ----------
        rows : ndarray of bool or int
            Which rows.

        Returns
        -------
        sample : Sample
            Those rows.
        """
        weights = None if self.weights is None else self.weights[rows]
        units = None if self.units is None else self.units[rows]
        return replace(self, scores=self.scores[rows], outcomes=self.outcomes[rows], weights=weights, units=units)

    def with_units(self, units: Indices) -> Sample:
        """Take the same rows with other units.

        Parameters
        ----------
        units : ndarray of shape (n,)
            The unit of each row.

        Returns
        -------
        sample : Sample
            The same rows.
        """
        if units is self.units:
            return self
        sample = replace(self, units=units)
        if self.scores.ndim == 1:
            vars(sample)["order"] = self.order  # sorted once for all units
        return sample


def remainder(probs: Floats) -> Float64s:
    """Compute 1 minus the sum of each row of probabilities (n, e), shape (n,); 0 where rounding makes the sum exceed 1.

    >>> remainder(np.array([[0.5, 0.25], [1.0, 1e-17]]))
    array([0.25, 0.  ])
    """
    # A sum of single numbers, row by row, would take far longer than the numbers themselves.
    total = probs[:, 0].astype(np.float64) if probs.shape[1] == 1 else probs.sum(axis=1, dtype=np.float64)
    np.subtract(1.0, total, out=total)
    return np.maximum(total, 0.0, out=total)


def batch(samples: Sequence[Sample]) -> Profile:
    """Sort several samples of one probability and equally many rows into a batch, one dataset each, in the order given.

    All have weights or none has; the batch counts as independent if the first sample is.

    >>> batch([Sample(np.array([0.8, 0.2]), np.array([0, 1])), Sample(np.array([0.5, 0.6]), np.array([1, 1]))]).scores
    array([[0.2, 0.8],
           [0.5, 0.6]])
    """
    scores = np.stack([sample.scores for sample in samples])
    outcomes = np.stack([sample.outcomes for sample in samples]).astype(np.uint8, copy=False)
    weights = None if samples[0].weights is None else np.stack([s.weights for s in samples if s.weights is not None])
    profile = Profile.of_rows(scores, outcomes, weights)
    profile.independent = samples[0].independent
    return profile


# ----------------------------------------------------------------------------------------------------
# What an engine computes for a row: how a lens describes itself to `truecal.engines`, which does not depend on classes of lenses


@dataclass(frozen=True)
class PushedDown:
    """What an engine computes: the most probable class ("top"), the probability of one ("class"), a dataset per class ("classes").

    For "class", `index` returns the column of the class for predictions with the same classes.
    """

    kind: Literal["top", "class", "classes"]
    index: Callable[[Predictions], int] | None = None


# ----------------------------------------------------------------------------------------------------
# What a lens is: it decides which scores and which outcomes of predictions are judged

_BLOCK = 1 << 22  # derived: scores of many datasets sorted at a time, about 100 MB with their prefix sums


@dataclass(frozen=True)
class Lens(ABC):
    """Decide which scores and which outcomes of Predictions are judged.

    A subclass defines `samples` and `describe`; everything else follows from them.

    See Also
    --------
    truecal.TopLabel : The predicted class.
    truecal.OneClass : The probability of one class.
    truecal.lenses.default_lens : What is judged where no lens is given.
    """

    @abstractmethod
    def samples(self, preds: Predictions) -> Iterator[Sample]:
        """Yield the datasets that this lens judges, one after the other.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Yields
        ------
        sample : Sample
            Scores and outcomes of one dataset.
        """

    @abstractmethod
    def describe(self, preds: Predictions) -> str:
        """Describe what is judged, in words.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Returns
        -------
        words : str
            Such as "top label" or "class cat".
        """

    @property
    def several(self) -> bool:
        """Whether several probabilities of a row are judged at once."""
        return False

    @property
    def outcome_name(self) -> str:
        """What the rate of outcomes is called on an axis or in a sentence: "frequency" by default."""
        return "frequency"

    def shares(self, preds: Predictions) -> Float64s | None:
        """Weigh the datasets in the overall error.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Returns
        -------
        shares : ndarray of shape (datasets,) or None
            Weights that sum to 1; None where there is one dataset.
        """
        return None

    def parts(self, preds: Predictions) -> Sequence[Lens]:
        """List lenses on parts of what this one judges, for a table beside it: smaller k, single groups.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Returns
        -------
        parts : sequence of Lens
            Empty where there are none.
        """
        return ()

    def pushed_down(self) -> PushedDown:
        """Describe what an engine computes for a row.

        Returns
        -------
        pushed : PushedDown
            The kind of lens.

        Raises
        ------
        InputError
            The lens needs more than an engine computes.
        """
        raise InputError(
            f"{type(self).__name__} cannot be computed inside an engine; use TopLabel, OneClass or ClassWise"
        )

    def sample(self, preds: Predictions) -> Sample:
        """Return the one dataset of a lens that has one.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Returns
        -------
        sample : Sample
            Its scores and outcomes.

        Raises
        ------
        InputError
            The lens judges several datasets (`shares` is not None).
        """
        if self.shares(preds) is not None:
            raise InputError(
                f"{type(self).__name__} judges every class, and one is needed here; judge one: lens=tc.OneClass(name) "
                "(--lens class=NAME)"
            )
        return next(self.samples(preds))

    def scores_and_outcomes(self, preds: Predictions) -> tuple[Floats, NDArray[Any]]:
        """Return scores and outcomes of the one dataset, without the rest of a Sample: quicker for many small batches.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Returns
        -------
        scores : ndarray of shape (n,)
            Probabilities.
        outcomes : ndarray of shape (n,)
            Whether each came true.
        """
        sample = self.sample(preds)
        return sample.scores, sample.outcomes

    def __call__(self, preds: Predictions) -> Profile:
        """Return the sorted scores and outcomes that the lens judges: one dataset, or a batch where `shares` are not None."""
        check_predictions(preds)
        if self.shares(preds) is None:
            return self.sample(preds).profile
        return batch(list(self.samples(preds)))

    def profiles(self, preds: Predictions) -> Iterator[Profile]:
        """Yield the sorted datasets: one alone, or several in batches of at most 2^22 scores (at least one dataset each).

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Yields
        ------
        profile : Profile
            One dataset, or a batch of them.
        """
        if self.shares(preds) is None:
            yield self.sample(preds).profile
            return
        part: list[Sample] = []
        for sample in self.samples(preds):
            if part and (len(part) + 1) * len(sample) > _BLOCK:
                yield batch(part)
                part = []
            part.append(sample)
        yield batch(part)


def check_lens(lens: object) -> None:
    """Refuse what is neither a lens nor None.

    Parameters
    ----------
    lens : object
        What was given as a lens.

    Raises
    ------
    InputError
        It is something else; the message names a lens to write.

    Examples
    --------
    >>> check_lens("top-label")
    Traceback (most recent call last):
    truecal.errors.InputError: lens must be one of truecal's, such as tc.TopLabel() or tc.TopK(5), not 'top-label'
    """
    if lens is not None:
        options.instance(lens, Lens, "lens", "one of truecal's, such as tc.TopLabel() or tc.TopK(5)")
