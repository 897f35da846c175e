"""Lenses that judge one probability at a time: top label, one class, class-wise, all labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal.errors import InputError, printable
from truecal.lenses.lens import Lens, PushedDown, Sample
from truecal.predictions import validation
from truecal.predictions.predictions import Predictions
from truecal.profile.profile import Profile
from truecal.types import Float64s, Floats

# ----------------------------------------------------------------------------------------------------
# Judge the predicted class only: is it right as often as it is confident?


@dataclass(frozen=True)
class TopLabel(Lens):
    r"""Judge the predicted class: whether it is right as often as it is confident.

    Notes
    -----
    The score of a row is its largest probability, :math:`\max_k p_k`; the outcome is whether that class was the label. Of equal
    probabilities the first class counts, of one column the positive class at exactly 0.5.

    References
    ----------
    Guo, C., Pleiss, G., Sun, Y. and Weinberger, K. Q. (2017). On calibration of modern neural networks. ICML.

    See Also
    --------
    truecal.TopK : The k most probable classes together.
    truecal.ClassWise : Every class by itself.

    Examples
    --------
    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]], [0, 1])
    >>> profile = tc.TopLabel()(preds)
    >>> profile.scores, profile.outcomes
    (array([[0.4, 0.7]]), array([[0, 1]], dtype=uint8))
    """

    @property
    def outcome_name(self) -> str:
        """Name of the rate of outcomes: "accuracy"."""
        return "accuracy"

    def samples(self, preds: Predictions) -> Iterator[Sample]:
        """Yield the one dataset: the largest probability of every row, and whether that class was the label.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Yields
        ------
        sample : Sample
            Its events are called "top 1" and "rest".
        """
        yield Sample.of(preds, *self.scores_and_outcomes(preds), names=("top 1", "rest"))

    def scores_and_outcomes(self, preds: Predictions) -> tuple[Floats, NDArray[Any]]:
        """Return the largest probability of every row, and whether that class was the label; refuse several labels per row.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Returns
        -------
        scores : ndarray of shape (n,)
            max_k p_k; for one column max(p, 1 - p).
        outcomes : ndarray of shape (n,)
            bool; the predicted class is the first of equal ones, the positive one at p = 0.5 of one column.

        Raises
        ------
        InputError
            Rows have several labels, or lack trusted ones.
        """
        preds.refuse_multilabel("the top label")
        p = preds.probs
        if preds.binary:
            predicted = p >= 0.5
            confidence = np.where(predicted, p, 1 - p)
        else:
            predicted = p.argmax(axis=1)
            confidence = p[np.arange(len(p)), predicted]
        return confidence, predicted == preds.labels

    def describe(self, preds: Predictions) -> str:
        """Name the lens.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Returns
        -------
        words : str
            "top label".
        """
        return "top label"

    def pushed_down(self) -> PushedDown:
        """Describe what an engine computes for a row: the most probable class.

        Returns
        -------
        pushed : PushedDown
            Of kind "top".
        """
        return PushedDown("top")


# ----------------------------------------------------------------------------------------------------
# Judge the probability of one class


@dataclass(frozen=True)
class OneClass(Lens):
    """Judge the probability of one class.

    Parameters
    ----------
    name : object, default None
        The class by name or, if no name, by position; None is the positive class of two, the second column.

    Raises
    ------
    InputError
        There is no such class, or more than two and none is named.

    Notes
    -----
    The score is the probability of the class, the outcome whether it was the label (or among the labels of a row).

    See Also
    --------
    truecal.ClassWise : All classes, one after the other.

    Examples
    --------
    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]], ["a", "b"], classes=["a", "b", "c"])
    >>> tc.OneClass("b")(preds).scores
    array([[0.2, 0.3]])
    """

    name: object = None

    def __post_init__(self) -> None:
        """Raise InputError for a name that cannot be one of a class."""
        validation.check_name(self.name)

    def index(self, preds: Predictions) -> int:
        """Return the column of the class.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Returns
        -------
        index : int
            Position of the class.

        Raises
        ------
        InputError
            There is no such class, or none is named and there are more than two.
        """
        if self.name is not None:
            return preds.class_index(self.name)
        if preds.class_count != 2:
            raise InputError(f"say which of the {preds.class_count} classes to judge: OneClass(name)")
        return 1

    def samples(self, preds: Predictions) -> Iterator[Sample]:
        """Yield the one dataset: the probability of the class in every row, and whether it was the label.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Yields
        ------
        sample : Sample
            Its events are the name of the class and "other".
        """
        names = (preds.class_name(self.index(preds)), "other")
        yield Sample.of(preds, *self.scores_and_outcomes(preds), names=names)

    def scores_and_outcomes(self, preds: Predictions) -> tuple[Floats, NDArray[Any]]:
        """Return the probability of the class in every row, and whether it was the label (or among several).

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Returns
        -------
        scores : ndarray of shape (n,)
            Column :meth:`index` of the probabilities.
        outcomes : ndarray of shape (n,)
            bool.
        """
        index = self.index(preds)
        return preds.class_probs(index), preds.outcomes(index)

    def pushed_down(self) -> PushedDown:
        """Describe what an engine computes for a row: the probability of one class.

        Returns
        -------
        pushed : PushedDown
            Of kind "class", with :meth:`index`.
        """
        return PushedDown("class", self.index)

    def describe(self, preds: Predictions) -> str:
        """Name the class.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Returns
        -------
        words : str
            "class cat"; "positive class" where neither the lens nor the classes have a name.
        """
        if self.name is None and preds.classes is None:
            return "positive class"
        return f"class {printable(preds.class_name(self.index(preds)))}"


# ----------------------------------------------------------------------------------------------------
# Judge every class's probability: the marginal calibration error

_BLOCK = 1 << 20  # derived: probabilities turned from rows into columns at a time, 8 MB


@dataclass(frozen=True)
class ClassWise(Lens):
    r"""Judge the probability of every class, each as a dataset of its own: the marginal calibration error.

    Parameters
    ----------
    weights : sequence of float, default None
        Weight of every class; None weighs all equally.

    Raises
    ------
    InputError
        Weights are negative, all zero, or not one per class.

    Notes
    -----
    The overall error is :math:`(\sum_k w_k\, e_k^p)^{1/p}` with the error :math:`e_k` of class k and :math:`w_k = 1/K` unless
    weights are given. Many classes are worked through in blocks of columns, so that memory stays bounded.

    References
    ----------
    Kumar, A., Liang, P. and Ma, T. (2019). Verified uncertainty calibration. NeurIPS.

    See Also
    --------
    truecal.AllLabels : All classes pooled into one dataset.

    Examples
    --------
    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]], [0, 1])
    >>> tc.ClassWise()(preds)
    Profile(3 datasets of 2 rows)
    """

    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Store the weights as a tuple of floats; raise InputError unless they are finite, not negative, and not all zero."""
        if self.weights is not None:
            w = validation.as_floats(self.weights, "class weights")
            if w.ndim != 1 or not np.isfinite(w).all() or (w < 0).any() or w.sum() <= 0:
                raise InputError("class weights must be finite, not negative, and not all zero")
            object.__setattr__(self, "weights", tuple(w.tolist()))

    def samples(self, preds: Predictions) -> Iterator[Sample]:
        """Yield one dataset per class, in the order of the columns: its probabilities, and whether it was the label.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Yields
        ------
        sample : Sample
            Its events are the name of the class and "other".
        """
        step = max(1, _BLOCK // len(preds))
        for start in range(0, preds.class_count, step):
            stop = min(start + step, preds.class_count)
            if preds.binary:
                columns = np.stack([1 - preds.probs, preds.probs])[start:stop]
            else:
                columns = validation.transpose(preds.probs[:, start:stop])
            for k, scores in zip(range(start, stop), columns, strict=True):
                yield Sample.of(preds, scores, preds.outcomes(k), names=(preds.class_name(k), "other"))

    def profiles(self, preds: Predictions) -> Iterator[Profile]:
        """Yield the sorted datasets of the classes in batches of columns, of about a million probabilities each.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Yields
        ------
        profile : Profile
            A batch with one dataset per class, in the order of the columns.
        """
        if preds.binary or preds.weights is not None or preds.clusters is not None:
            yield from super().profiles(preds)
            return
        step = max(1, _BLOCK // len(preds))
        for start in range(0, preds.class_count, step):
            columns = validation.transpose(preds.probs[:, start : start + step])
            if preds.multilabel:
                yield Profile.of_rows(columns, np.ascontiguousarray(preds.labels[:, start : start + step].T))
                continue
            outcomes = np.zeros(columns.shape, np.uint8)
            rows = np.flatnonzero((preds.labels >= start) & (preds.labels < start + step))
            outcomes[preds.labels[rows].astype(np.intp) - start, rows] = 1
            yield Profile.of_rows(columns, outcomes)

    def shares(self, preds: Predictions) -> Float64s:
        """Return the weights of the classes, which sum to 1: equal ones, or those given.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Returns
        -------
        shares : ndarray of shape (classes,)
            Weights.

        Raises
        ------
        InputError
            The number of weights is not that of the classes.
        """
        if self.weights is None:
            return np.full(preds.class_count, 1 / preds.class_count)
        if len(self.weights) != preds.class_count:
            raise InputError(f"{len(self.weights)} class weights were given for {preds.class_count} classes")
        return np.asarray(self.weights) / np.sum(self.weights)

    def pushed_down(self) -> PushedDown:
        """Describe what an engine computes for a row: a dataset per class.

        Returns
        -------
        pushed : PushedDown
            Of kind "classes".
        """
        return PushedDown("classes")

    def describe(self, preds: Predictions) -> str:
        """Name the number of classes.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Returns
        -------
        words : str
            "10 classes", or "10 classes, weighted".
        """
        return f"{preds.class_count} classes" + ("" if self.weights is None else ", weighted")


# ----------------------------------------------------------------------------------------------------
# Judge every probability of every row at once: all labels pooled


@dataclass(frozen=True)
class AllLabels(Lens):
    """Judge all pairs of a row and a class as one dataset: the "all-label" error.

    Notes
    -----
    The score of a pair is the probability of the class in the row, the outcome whether it was the row's label. Unlike
    :class:`ClassWise` this pools the classes, so that errors of opposite sign at the same confidence cancel. The K pairs of a row
    are not independent: intervals come from resampling rows (or clusters of rows), not pairs. n is the number of pairs.

    References
    ----------
    Nixon, J. et al. (2019). Measuring calibration in deep learning. CVPR workshops.
    Minderer, M. et al. (2021). Revisiting the calibration of modern neural networks. NeurIPS.

    See Also
    --------
    truecal.ClassWise : Every class as a dataset of its own.

    Examples
    --------
    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([[0.75, 0.25], [0.5, 0.5]], [0, 1])
    >>> profile = tc.AllLabels()(preds)
    >>> profile.scores, profile.outcomes
    (array([[0.25, 0.5 , 0.5 , 0.75]]), array([[0, 0, 1, 1]], dtype=uint8))
    """

    def samples(self, preds: Predictions) -> Iterator[Sample]:
        """Yield the one dataset of n K pairs: the probabilities row by row, and whether each class was the label or among several.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Yields
        ------
        sample : Sample
            Pooled, with the row (or cluster) of every pair as its unit.

        Raises
        ------
        InputError
            Rows lack trusted labels.
        """
        p = np.stack([1 - preds.probs, preds.probs], axis=1) if preds.binary else preds.probs
        if preds.multilabel:
            outcomes = preds.labels.astype(bool)
        else:
            preds.refuse_multilabel("all labels")
            outcomes = np.zeros(p.shape, bool)
            outcomes[np.arange(len(p)), preds.labels] = True
        weights = None if preds.weights is None else np.repeat(preds.weights, p.shape[1])
        units = np.repeat(np.arange(len(p)) if preds.clusters is None else preds.clusters, p.shape[1])
        unit = "rows" if preds.clusters is None else "clusters"
        yield Sample(p.ravel(), outcomes.ravel(), weights, units, unit, pooled=True)

    def describe(self, preds: Predictions) -> str:
        """Name the number of classes.

        Parameters
        ----------
        preds : Predictions
            What is judged.

        Returns
        -------
        words : str
            "all labels of 10 classes".
        """
        return f"all labels of {preds.class_count} classes"


# ----------------------------------------------------------------------------------------------------
# What is judged unless a lens says otherwise

_POSITIVE, _TOP, _EVERY = OneClass(), TopLabel(), ClassWise()


def default_lens(preds: Predictions) -> Lens:
    """Choose what is judged where no lens is given.

    Parameters
    ----------
    preds : Predictions
        What is judged.

    Returns
    -------
    lens : Lens
        The positive class of two classes (one column or two), class by class for several labels per row, else the top label.

    Examples
    --------
    >>> import truecal as tc
    >>> default_lens(tc.Predictions.from_probs([0.9, 0.2], [1, 0]))
    OneClass(name=None)
    >>> default_lens(tc.Predictions.from_probs([[0.7, 0.2, 0.1]], [0]))
    TopLabel()
    """
    if preds.multilabel:
        return _EVERY
    return _POSITIVE if preds.class_count == 2 else _TOP
