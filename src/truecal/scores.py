"""Proper scores, their decomposition, and the plain summaries people quote beside a calibration error.

Whole predictions (all classes) are scored by the functions on Predictions; one score per row (a Profile) by the others.
"""

from dataclasses import dataclass

import numpy as np

import truecal as tc
from truecal.errors import InputError
from truecal.estimators import isotonic
from truecal.predictions.arrays import takes_arrays
from truecal.types import Float64s

_BLOCK = 1 << 16  # probabilities looked at together: what stays in cache


def _mean(values: Float64s, preds: tc.Predictions) -> float:
    return float(np.average(values, weights=preds.weights))


@takes_arrays
def log_loss(preds: tc.Predictions) -> float:
    """Mean of -ln(probability of the label), in nats. Infinite when a label had probability 0: nothing is clipped.

    >>> import truecal as tc
    >>> round(log_loss(tc.Predictions.from_probs([0.9, 0.2], [1, 0])), 4)
    0.1643
    """
    return _mean(log_losses(preds), preds)


@takes_arrays
def log_losses(preds: tc.Predictions) -> Float64s:
    """-ln(probability of the label) of every row; infinite where that was 0."""
    if preds.binary:
        p = preds.probs.astype(np.float64, copy=False)
        hit = np.where(preds.labels == 1, p, 1 - p)
    else:
        hit = preds.probs[np.arange(len(preds)), preds.labels].astype(np.float64)
    with np.errstate(divide="ignore"):
        losses: Float64s = -np.log(hit)
    return losses


@takes_arrays
def brier(preds: tc.Predictions) -> float:
    """Mean squared distance of the probabilities from the outcome.

    Binary: mean (p - y)^2, in [0, 1]. Many classes: summed over the classes, in [0, 2] (Brier 1950), so that two columns give
    twice the binary score.

    >>> import truecal as tc
    >>> round(brier(tc.Predictions.from_probs([0.9, 0.2], [1, 0])), 4)
    0.025
    """
    return _mean(briers(preds), preds)


@takes_arrays
def briers(preds: tc.Predictions) -> Float64s:
    """The squared distance of every row."""
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
    """How often the most probable class was the label."""
    return _rates(tc.TopLabel()(preds))[1]


@takes_arrays
def mean_confidence(preds: tc.Predictions) -> float:
    """Mean probability of the most probable class."""
    return _rates(tc.TopLabel()(preds))[0]


def _rates(profile: tc.profile.Profile) -> tuple[float, float]:
    whole = profile.whole()
    return tuple(float(profile.sums(name, whole)[0, 0] / profile.total[0]) for name in ("c", "y"))  # type: ignore[return-value]


@dataclass(frozen=True)
class Decomposition:
    """Brier score = miscalibration - discrimination + uncertainty."""

    brier: float
    miscalibration: float
    discrimination: float
    uncertainty: float


def decompose(profile: tc.profile.Profile) -> Decomposition:
    """CORP decomposition of the Brier score of one-dimensional scores (Dimitriadis, Gneiting and Jordan 2021).

    Miscalibration: what the isotonic recalibration of the scores would save. Discrimination: how much better the recalibrated
    scores are than a constant. Uncertainty: the score of that constant. Each is at least zero.

    >>> import truecal as tc
    >>> d = decompose(tc.profile.Profile.from_arrays([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1]))
    >>> round(d.brier, 3), round(d.miscalibration, 3), round(d.discrimination, 3), d.uncertainty
    (0.2, 0.075, 0.125, 0.25)
    """
    if profile.batch != 1:
        raise InputError(f"decompose takes one dataset, not a batch of {profile.batch}; use profile.take([i])")
    whole = profile.at_count(np.array([[profile.rows]]))
    total = float(profile.total[0])
    outcome, square, product = (float(profile.sums(name, whole)[0, 0]) / total for name in ("y", "cc", "cy"))
    _, weight, ones = isotonic.isotonic_blocks(profile)
    heavy = weight > 0
    fitted = float((ones[heavy] ** 2 / weight[heavy]).sum()) / total
    score = outcome - 2 * product + square
    return Decomposition(
        score, max(score - (outcome - fitted), 0.0), max(fitted - outcome**2, 0.0), outcome * (1 - outcome)
    )


@dataclass(frozen=True)
class Summary:
    """What people quote beside a calibration error."""

    n: int
    accuracy: float
    mean_confidence: float
    log_loss: float
    brier: float

    @property
    def overconfidence(self) -> float:
        """Mean confidence minus accuracy; negative means underconfident."""
        return self.mean_confidence - self.accuracy


@takes_arrays
def summary(preds: tc.Predictions) -> Summary:
    """Accuracy, confidence, log loss and Brier score of a set of predictions."""
    confidence, right = _rates(tc.TopLabel()(preds))
    return Summary(len(preds), right, confidence, log_loss(preds), brier(preds))
