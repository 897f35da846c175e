"""Proper scores, their decomposition, and accuracy and confidence.

Whole predictions (all classes) are scored by the functions of Predictions; one score per row by those of a Profile.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import truecal as tc
from truecal.errors import InputError
from truecal.estimators import isotonic
from truecal.predictions.arrays import takes_arrays
from truecal.types import Float64s

_BLOCK = 1 << 16  # derived: probabilities squared together: what stays in cache


def _mean(values: Float64s, preds: tc.Predictions) -> float:
    """Average values (n,) over rows, with the weights of the predictions.

    >>> _mean(np.array([1.0, 4.0]), tc.Predictions.from_probs([0.9, 0.2], [1, 0], weights=[2, 1]))
    2.0
    """
    return float(np.average(values, weights=preds.weights))


@takes_arrays
def log_loss(preds: tc.Predictions) -> float:
    """Compute the mean log loss, -ln(probability of the label), in nats.

    Parameters
    ----------
    preds : Predictions
        Class probabilities and labels, with weights; or ``y_true, y_prob``.

    Returns
    -------
    loss : float
        Infinite when a label had probability 0: nothing is clipped.

    See Also
    --------
    log_losses : The loss of every row.

    Examples
    --------
    >>> import truecal as tc
    >>> round(log_loss(tc.Predictions.from_probs([0.9, 0.2], [1, 0])), 4)
    0.1643
    """
    return _mean(log_losses(preds), preds)


@takes_arrays
def log_losses(preds: tc.Predictions) -> Float64s:
    """Compute the log loss of every row, -ln(probability of the label).

    Parameters
    ----------
    preds : Predictions
        Class probabilities and labels, with weights; or ``y_true, y_prob``.

    Returns
    -------
    losses : ndarray of shape (n,)
        Infinite where the label had probability 0.

    Raises
    ------
    InputError
        Rows have several labels, or lack trusted ones.

    Examples
    --------
    >>> import truecal as tc
    >>> log_losses(tc.Predictions.from_probs([0.9, 0.2], [1, 0])).round(3)
    array([0.105, 0.223])
    """
    preds.refuse_multilabel("the log loss")
    if preds.binary:
        p = preds.probs.astype(np.float64, copy=False)
        label_probs = np.where(preds.labels == 1, p, 1 - p)
    else:
        label_probs = preds.probs[np.arange(len(preds)), preds.labels].astype(np.float64)
    with np.errstate(divide="ignore"):
        losses: Float64s = -np.log(label_probs)
    return losses


@takes_arrays
def brier(preds: tc.Predictions) -> float:
    """Compute the Brier score, the mean squared distance of the probabilities from the outcome.

    Parameters
    ----------
    preds : Predictions
        Class probabilities and labels, with weights; or ``y_true, y_prob``.

    Returns
    -------
    score : float
        Binary: mean (p - y)^2, in [0, 1]. Several classes: summed over the classes, in [0, 2], so that two columns give twice
        the binary score.

    References
    ----------
    Brier. Verification of forecasts expressed in terms of probability. Monthly Weather Review 78, 1950.
    https://doi.org/10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2

    See Also
    --------
    decompose : Miscalibration, discrimination and uncertainty.

    Examples
    --------
    >>> import truecal as tc
    >>> round(brier(tc.Predictions.from_probs([0.9, 0.2], [1, 0])), 4)
    0.025
    """
    return _mean(briers(preds), preds)


@takes_arrays
def briers(preds: tc.Predictions) -> Float64s:
    """Compute the Brier score of every row.

    Parameters
    ----------
    preds : Predictions
        Class probabilities and labels, with weights; or ``y_true, y_prob``.

    Returns
    -------
    scores : ndarray of shape (n,)
        Squared distance of the probabilities of a row from its outcome, as in `brier`.

    Raises
    ------
    InputError
        Rows have several labels, or lack trusted ones.

    Examples
    --------
    >>> import truecal as tc
    >>> briers(tc.Predictions.from_probs([0.9, 0.2], [1, 0])).round(3)
    array([0.01, 0.04])
    """
    preds.refuse_multilabel("the Brier score")
    if preds.binary:
        return (preds.probs.astype(np.float64) - preds.labels) ** 2
    squares = np.empty(len(preds))
    step = max(1, _BLOCK // preds.class_count)
    for start in range(0, len(preds), step):
        block = preds.probs[start : start + step].astype(np.float64)
        block[np.arange(len(block)), preds.labels[start : start + step]] -= 1
        squares[start : start + step] = np.einsum("ij,ij->i", block, block)
    return squares


@takes_arrays
def accuracy(preds: tc.Predictions) -> float:
    """Compute the accuracy: the share of rows whose most probable class is the label.

    Parameters
    ----------
    preds : Predictions
        Class probabilities and labels, with weights; or ``y_true, y_prob``.

    Returns
    -------
    share : float
        Weighted share in [0, 1].

    Examples
    --------
    >>> import truecal as tc
    >>> accuracy(tc.Predictions.from_probs([0.9, 0.2, 0.7, 0.6], [1, 0, 1, 0]))
    0.75
    """
    return _rates(tc.TopLabel()(preds))[1]


@takes_arrays
def mean_confidence(preds: tc.Predictions) -> float:
    """Compute the mean probability of the most probable class.

    Parameters
    ----------
    preds : Predictions
        Class probabilities and labels, with weights; or ``y_true, y_prob``.

    Returns
    -------
    confidence : float
        Weighted mean in [1 / K, 1].

    Examples
    --------
    >>> import truecal as tc
    >>> round(mean_confidence(tc.Predictions.from_probs([0.9, 0.2, 0.7, 0.6], [1, 0, 1, 0])), 3)
    0.75
    """
    return _rates(tc.TopLabel()(preds))[0]


def _rates(profile: tc.profile.Profile) -> tuple[float, float]:
    """Return weighted mean score and mean outcome of the first dataset of a profile.

    >>> _rates(tc.profile.Profile.from_arrays([0.25, 0.75], [0, 1]))
    (0.5, 0.5)
    """
    whole = profile.whole()
    return tuple(float(profile.sums(name, whole)[0, 0] / profile.total[0]) for name in ("c", "y"))  # type: ignore[return-value]


@dataclass(frozen=True)
class Decomposition:
    """The parts of a Brier score: brier = miscalibration - discrimination + uncertainty.

    Attributes
    ----------
    brier : float
        The score.
    miscalibration : float
        What isotonic recalibration removes; at least 0.
    discrimination : float
        Improvement of the recalibrated scores over a constant; at least 0.
    uncertainty : float
        The score of the best constant, q (1 - q) for a prevalence q.

    See Also
    --------
    decompose : The function that returns it.
    """

    brier: float
    miscalibration: float
    discrimination: float
    uncertainty: float


def decompose(profile: tc.profile.Profile) -> Decomposition:
    """Decompose the Brier score of one-dimensional scores into miscalibration, discrimination and uncertainty (CORP).

    Parameters
    ----------
    profile : Profile
        Sorted scores of one dataset.

    Returns
    -------
    parts : Decomposition
        Each part is at least 0.

    Raises
    ------
    InputError
        The profile holds several datasets.

    References
    ----------
    Dimitriadis, Gneiting, Jordan. Stable reliability diagrams for probabilistic classifiers. PNAS 118, 2021.
    https://doi.org/10.1073/pnas.2016191118

    Examples
    --------
    >>> import truecal as tc
    >>> parts = decompose(tc.profile.Profile.from_arrays([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1]))
    >>> round(parts.brier, 3), round(parts.miscalibration, 3), round(parts.discrimination, 3), parts.uncertainty
    (0.2, 0.075, 0.125, 0.25)
    """
    if profile.batch != 1:
        raise InputError(f"decompose takes one dataset, not a batch of {profile.batch}; use profile.take([i])")
    whole = profile.at_count(np.array([[profile.rows]]))
    total = float(profile.total[0])
    outcome, square, product = (float(profile.sums(name, whole)[0, 0]) / total for name in ("y", "cc", "cy"))
    _, weight, ones = isotonic.isotonic_blocks(profile)
    is_weighted = weight > 0
    fitted = float((ones[is_weighted] ** 2 / weight[is_weighted]).sum()) / total
    score = outcome - 2 * product + square
    return Decomposition(
        score, max(score - (outcome - fitted), 0.0), max(fitted - outcome**2, 0.0), outcome * (1 - outcome)
    )


@dataclass(frozen=True)
class Summary:
    """Accuracy, confidence and proper scores of a set of predictions.

    Attributes
    ----------
    n : int
        Number of rows.
    accuracy : float
        Share of rows whose most probable class is the label.
    mean_confidence : float
        Mean probability of the most probable class.
    log_loss : float
        Mean log loss, in nats.
    brier : float
        Brier score.

    See Also
    --------
    summary : The function that returns it.
    """

    n: int
    accuracy: float
    mean_confidence: float
    log_loss: float
    brier: float

    def __str__(self) -> str:
        """Write the four numbers with four decimals, and the number of rows.

        >>> print(Summary(1000, 0.8, 0.9, 0.5, 0.3))
        accuracy 0.8000, mean confidence 0.9000, log loss 0.5000, Brier score 0.3000 (n = 1,000)
        """
        return (
            f"accuracy {self.accuracy:.4f}, mean confidence {self.mean_confidence:.4f}, log loss {self.log_loss:.4f}, "
            f"Brier score {self.brier:.4f} (n = {self.n:,})"
        )

    @property
    def overconfidence(self) -> float:
        """Mean confidence minus accuracy; negative means underconfident.

        >>> Summary(1000, 0.75, 0.875, 0.5, 0.3).overconfidence
        0.125
        """
        return self.mean_confidence - self.accuracy


@takes_arrays
def summary(preds: tc.Predictions) -> Summary:
    """Compute accuracy, confidence, log loss and Brier score of a set of predictions.

    Parameters
    ----------
    preds : Predictions
        Class probabilities and labels, with weights; or ``y_true, y_prob``.

    Returns
    -------
    summary : Summary
        The four numbers and the number of rows.

    Examples
    --------
    >>> import truecal as tc
    >>> numbers = summary(tc.Predictions.from_probs([0.9, 0.2, 0.7, 0.6], [1, 0, 1, 0]))
    >>> numbers.n, numbers.accuracy, round(numbers.log_loss, 3)
    (4, 0.75, 0.4)
    """
    confidence, right = _rates(tc.TopLabel()(preds))
    return Summary(len(preds), right, confidence, log_loss(preds), brier(preds))
