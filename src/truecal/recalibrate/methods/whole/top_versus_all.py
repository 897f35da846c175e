"""Top versus all: only the probability of the predicted class is recalibrated, as one yes-or-no question."""

from collections.abc import Mapping, Sequence
from math import exp, log
from typing import Any

import numpy as np
from sklearn.base import clone

from truecal.errors import FileError, InputError
from truecal.predictions import softmax
from truecal.recalibrate.contract import Recalibrator
from truecal.recalibrate.export import fields
from truecal.recalibrate.export.graph import Value
from truecal.recalibrate.export.traced import traced_logits, traced_probs
from truecal.recalibrate.impossible import ImpossibleRowError
from truecal.recalibrate.methods.scores.lift import ScoreMapping, traced_with_confidence, with_confidence
from truecal.recalibrate.outputs import Input, class_logits, class_scores, top_class
from truecal.recalibrate.solvers.likelihood import LOG_ZERO, scaled_softmax
from truecal.types import Float64s, Floats, Indices


class TopVersusAll(Recalibrator):
    r"""Learn whether the predicted class is right, from its own score; for many classes.

    .. math:: \min_g \; -\sum_i w_i \big[ r_i \log g(s_i) + (1 - r_i) \log(1 - g(s_i)) \big], \qquad
        r_i = [\arg\max_k z_{ik} = y_i]

    With a thousand classes a map per class sees a handful of positives. The question "is the prediction right?" is one
    binary problem with all rows. The predicted class stays, with the new confidence; the other classes share the rest
    in proportion to their probabilities.

    Parameters
    ----------
    recalibrator : a map of one score, such as `IsotonicCalibration()`, with the same `input`; None fits a temperature,
        whose confidence max softmax(z / T) minimises the binary loss above.
    input : "logits" or "probs".
    classes : names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    temperature_ : T, where no recalibrator was given.
    map_ : the fitted map of the confidence, where one was given.

    Notes
    -----
    Where the new confidence would fall below another class, the shares of the others are evened out just enough to keep
    the predicted class first; at or below 1 / K that is impossible, and all others share equally.

    References
    ----------
    Le Coz, Herbin, Adjed. Confidence calibration of classifiers with many classes. NeurIPS 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibrate import BetaCalibration, TopVersusAll
    >>> rng = np.random.default_rng(0)
    >>> logits = 4 * rng.normal(size=(5000, 100))
    >>> labels = (logits / 2 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    >>> round(TopVersusAll().fit(logits, labels).temperature_, 1)
    2.0
    >>> fixed = TopVersusAll(BetaCalibration(input="logits")).fit(logits, labels)
    >>> bool((fixed.predict(logits) == logits.argmax(axis=1)).all())
    True
    """

    def __init__(
        self,
        recalibrator: ScoreMapping | None = None,
        *,
        input: Input = "logits",  # noqa: A002
        classes: Sequence[object] | None = None,
    ) -> None:
        self.recalibrator = recalibrator
        self.input = input
        self.classes = classes

    def check_params(self) -> None:
        super().check_params()
        if self.recalibrator is None:
            return
        if not isinstance(self.recalibrator, ScoreMapping):
            raise InputError(
                f"recalibrator must be a map of one score, such as BetaCalibration(), or None, not {self.recalibrator!r}"
            )
        self.recalibrator.check_params()
        if self.recalibrator.input != self.input:
            raise InputError(
                f'the recalibrator reads input="{self.recalibrator.input}" but this one input="{self.input}"; declare the same'
            )

    def _learn(self, outputs: Floats, labels: Indices, weights: Float64s | None) -> None:
        top = top_class(outputs)
        right = (labels == top).astype(np.float64)
        each = np.ones(len(labels)) if weights is None else weights
        if right.min() == right.max():
            self._warn(f"the largest output is {'always' if right[0] else 'never'} right; only one outcome was seen")
        if self.recalibrator is None:
            logits = class_logits(outputs, self.input)
            contradicted = (np.count_nonzero(logits > LOG_ZERO, axis=1) == 1) & (right == 0)
            if contradicted.any():
                raise ImpossibleRowError(
                    int(contradicted.argmax()),
                    "gives its leading class a probability of exactly 1 and is wrong, which no temperature can mend: pass the "
                    'logits (input="logits"), or a recalibrator that takes 0 and 1, such as IsotonicCalibration()',
                )
            self.temperature_ = 1.0 / _binary_inverse(logits, right, each)
        else:
            scores = self.recalibrator.scores(outputs)[np.arange(len(top)), top]
            self.map_ = clone(self.recalibrator).fit_map(scores, right, each)

    def _apply(self, outputs: Floats) -> Float64s:
        if self.recalibrator is None:
            return scaled_softmax(class_logits(outputs, self.input), 1.0 / self.temperature_)
        top = top_class(outputs)
        raw = outputs.astype(np.float64) if self.input == "probs" else softmax(outputs)
        confidence = self.map_(self.recalibrator.scores(outputs)[np.arange(len(top)), top])
        return with_confidence(raw, top, confidence)

    def _trace(self, outputs: Value) -> Value:
        if self.recalibrator is None:
            logits = traced_logits(outputs, self.input)
            return (logits <= LOG_ZERO).where(-np.inf, logits * (1.0 / self.temperature_)).softmax()
        count = len(self.classes_)
        top = outputs.is_largest(count)
        scores = self.recalibrator.traced_scores(outputs, count)
        confidence = self.map_.trace(top.where(scores, 0.0).sum())
        return traced_with_confidence(traced_probs(outputs, self.input), top, confidence, count)

    def _state(self) -> dict[str, Any]:
        return {"temperature": self.temperature_} if self.recalibrator is None else {"map": self.map_.state()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        if self.recalibrator is None:
            self.temperature_ = fields.number(state, "temperature", low=1e-300)
            return
        part = fields.field(state, "map")
        if not isinstance(part, dict):
            raise FileError('"map" must be an object')
        self.map_ = self.recalibrator.read_map(part)


def _binary_inverse(logits: Floats, right: Float64s, weights: Float64s) -> float:
    """The inverse temperature whose confidence has the least binary log loss, with Platt's targets.

    One variable, u = log(1 / T), searched over four orders of magnitude on each side of where logits are of order one.
    """
    from scipy.optimize import minimize_scalar

    ones = float(weights @ right)
    zeros = float(weights.sum()) - ones
    targets = np.where(right > 0, (ones + 1) / (ones + 2), 1 / (zeros + 2))
    rows = np.arange(len(logits))
    top = logits.argmax(axis=1)

    def loss(u: float) -> float:
        # the log odds of the leading class against the rest, exact where its probability rounds to 1
        with np.errstate(over="ignore"):
            scaled = np.maximum(logits.astype(np.float64) * exp(u), LOG_ZERO)
        odds = class_scores(scaled, "logits")[rows, top]
        return float(weights @ (np.logaddexp(0.0, odds) - targets * odds))

    finite = np.where(logits > LOG_ZERO, logits, np.nan).astype(np.float64)
    spread = float(np.nanmean(np.nanstd(finite, axis=1))) or 1.0
    centre = -log(spread)
    grid = centre + np.linspace(-9.2, 9.2, 24)
    values = [loss(float(u)) for u in grid]
    at = int(np.argmin(values))
    low, high = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
    best = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-9})
    return exp(float(best.x))
