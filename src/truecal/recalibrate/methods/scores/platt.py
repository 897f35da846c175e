"""Platt scaling: a logistic curve in the score."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from truecal.predictions import sigmoid
from truecal.recalibrate.export import fields
from truecal.recalibrate.export.graph import Value
from truecal.recalibrate.impossible import ImpossibleRowError
from truecal.recalibrate.methods.scores.lift import ScoreMapping
from truecal.recalibrate.solvers.likelihood import LOG_ZERO
from truecal.recalibrate.solvers.newton import fit_rising_logistic
from truecal.types import Float64s


@dataclass(frozen=True)
class LogisticMap:
    """sigmoid(slope * score + intercept)."""

    slope: float
    intercept: float

    def __call__(self, scores: Float64s) -> Float64s:
        return sigmoid(self.slope * scores + self.intercept)

    def trace(self, scores: Value) -> Value:
        return (self.slope * scores + self.intercept).sigmoid()

    def state(self) -> dict[str, Any]:
        return {"slope": self.slope, "intercept": self.intercept}


class PlattScaling(ScoreMapping):
    r"""A logistic curve in the score s, fitted with Platt's targets.

    .. math:: p = \sigma(a s + b), \quad a \ge 0, \qquad
        t_+ = \frac{n_+ + 1}{n_+ + 2}, \quad t_- = \frac{1}{n_- + 2}

    The targets replace 1 and 0 in the likelihood; with them a finite optimum exists also for separable data. The slope
    is never negative: scores that fall as the outcomes rise give a constant map and a warning, not a reversed order.

    Parameters
    ----------
    input : "probs" (s is the probability itself) or "logits" (s is the log odds: of one column the value, of many
        columns each class against the rest). For a logistic curve in the log odds of probabilities see
        ``BetaCalibration(parameters=2)``.
    multiclass : "one-vs-rest", "top-label" or "shared" (one map for all classes, which keeps the predicted class), for
        more than two classes.
    normalize : whether one-vs-rest and shared results are divided by their sum.
    classes : names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    maps_ : the curves, with `slope` and `intercept`.

    References
    ----------
    Platt. Probabilistic outputs for support vector machines. 1999.

    Examples
    --------
    >>> from truecal.recalibrate import PlattScaling
    >>> fixed = PlattScaling(input="logits").fit([-2.0, -1.0, 0.0, 1.0, 2.0, 3.0], [0, 1, 0, 0, 1, 1])
    >>> round(fixed.maps_[0].slope, 3), round(fixed.maps_[0].intercept, 3)
    (0.361, -0.181)
    """

    def fit_map(self, scores: Float64s, outcomes: Float64s, weights: Float64s) -> LogisticMap:
        if np.abs(scores).max() >= -LOG_ZERO / 2:
            row = int(np.abs(scores).argmax())
            raise ImpossibleRowError(
                row, "rules a class out (a logit of minus infinity), but Platt scaling needs finite log odds"
            )
        ones = float(weights @ outcomes)
        zeros = float(weights.sum()) - ones
        targets = np.where(outcomes > 0, (ones + 1) / (ones + 2), 1 / (zeros + 2))
        slope, intercept = fit_rising_logistic(scores[:, None], targets, weights)
        if slope == 0 and scores.max() > scores.min() and ones > 0 and zeros > 0:
            self._warn("the scores do not rise with the outcomes; the map is constant")
        return LogisticMap(float(slope), float(intercept))

    def read_map(self, state: Mapping[str, Any]) -> LogisticMap:
        return LogisticMap(fields.number(state, "slope", low=0.0), fields.number(state, "intercept"))
