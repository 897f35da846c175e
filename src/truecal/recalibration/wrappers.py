"""Maps that wrap others: prior shift and top-versus-all."""

from collections.abc import Mapping, Sequence
from math import exp, log
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from truecal.errors import FileError, InputError
from truecal.predictions import validation
from truecal.recalibration import documents
from truecal.recalibration.contract import (
    ImpossibleRowError,
    Input,
    Recalibrator,
    class_logits,
    class_scores,
    top_class,
)
from truecal.recalibration.export import Value, traced_logits, traced_probs
from truecal.recalibration.likelihood import LOG_ZERO, scaled_softmax
from truecal.recalibration.score_maps import (
    ScoreMapping,
    renormalized,
    traced_renormalized,
    traced_with_confidence,
    with_confidence,
)
from truecal.special import softmax
from truecal.types import Float64s, Floats, Indices

# ----------------------------------------------------------------------------------------------------
# Prior shift: the classes have other frequencies now than in the rows the map was fitted on

_STEPS = 10_000
_CHANGE = 1e-10  # of any class frequency in one step: then the iteration has ended


class PriorShift(Recalibrator):
    r"""Any map, then the change of class frequencies by Bayes' rule.

    .. math:: p'_k \propto \frac{\pi'_k}{\pi_k}\, p_k

    pi are the class frequencies of the rows fitted on, pi' those where predictions are made. Known ones are given as
    `prevalence`; unknown ones are learned from unlabelled rows by `adapt`, with the EM iteration of Saerens et al.: it
    maximises the likelihood of the unlabelled outputs, provided p is calibrated. That is why a map comes first.

    Parameters
    ----------
    recalibrator : the map that calibrates first, with the same `input`; None uses the probabilities as they are
        (input="probs").
    prevalence : the class frequencies to predict for: one per column, or for two classes that of the second. None keeps
        those of the fit until `adapt` is called.
    input : "probs" or "logits".
    classes : names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    source_ : (K,) the class frequencies pi of the fit, in the order of the columns.
    prevalence_ : (K,) pi', the same unless given or adapted.
    recalibrator_ : the fitted map.

    Notes
    -----
    Assumed: rows of a class look the same in both places (label shift). A class that never occurred in the fit cannot
    be reweighted; its factor is 1, and a warning says so.

    References
    ----------
    Saerens, Latinne, Decaestecker. Adjusting the outputs of a classifier to new a priori probabilities. Neural
    Computation 14, 2002. Alexandari, Kundaje, Shrikumar. ICML 2020 (calibrate first).

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibration import BetaCalibration, PriorShift
    >>> rng = np.random.default_rng(0)
    >>> def draw(n, share):
    ...     y = rng.random(n) < share
    ...     return 1 / (1 + np.exp(-(2 * rng.normal(size=n) + 4 * y - 2))), y
    >>> s, y = draw(5000, 0.5)
    >>> fixed = PriorShift(BetaCalibration()).fit(s, y)
    >>> new, truth = draw(5000, 0.1)  # labels are not shown to it
    >>> fixed.adapt(new).prevalence_[1].round(1)
    np.float64(0.1)
    """

    def __init__(
        self,
        recalibrator: Recalibrator | None = None,
        *,
        prevalence: float | Sequence[float] | None = None,
        input: Input = "probs",  # noqa: A002
        classes: Sequence[object] | None = None,
    ) -> None:
        self.recalibrator = recalibrator
        self.prevalence = prevalence
        self.input = input
        self.classes = classes

    def check_params(self) -> None:
        super().check_params()
        if self.recalibrator is None:
            if self.input != "probs":
                raise InputError('without a recalibrator the probabilities are needed: declare input="probs"')
            return
        if not isinstance(self.recalibrator, Recalibrator):
            raise InputError(f"recalibrator must be a recalibrator or None, not {self.recalibrator!r}")
        self.recalibrator.check_params()
        if self.recalibrator.input != self.input:
            raise InputError(
                f'the recalibrator reads input="{self.recalibrator.input}" but this one input="{self.input}"; declare the same'
            )

    def _learn(self, outputs: Floats, labels: Indices, weights: Float64s | None) -> None:
        count = outputs.shape[1]
        self.source_ = np.bincount(labels, weights, count) / (len(labels) if weights is None else weights.sum())
        if self.unseen_:
            self._warn(f"class {self._named(self.unseen_)} never occurs in y; its frequency cannot be shifted")
        if self.recalibrator is not None:
            # the fitted map reads columns and labels by number; names are kept here
            self.recalibrator_: Recalibrator = clone(self.recalibrator).set_params(classes=None)
            self.recalibrator_.fit(outputs, labels, weights)
        self.prevalence_ = self.source_ if self.prevalence is None else self._read_prevalence(count)

    def _read_prevalence(self, count: int) -> Float64s:
        values = validation.as_floats(self.prevalence, "prevalence").astype(np.float64)  # type: ignore[arg-type]
        if values.ndim == 0 and count == 2:
            values = np.array([1 - values, values])
        if values.shape != (count,) or not ((values >= 0) & (values <= 1)).all() or abs(values.sum() - 1) > 1e-6:
            raise InputError(
                f"prevalence must be {count} class frequencies that sum to 1, in the order of the columns"
                f"{' (or that of the second class)' if count == 2 else ''}, not {self.prevalence!r}"
            )
        return values / values.sum()

    def adapt(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the class frequencies of unlabelled rows; later predictions are made for them. Returns itself.

        EM: the frequencies are replaced by the mean of the predictions made with them, until they stay.
        """
        check_is_fitted(self, "classes_")
        probs = self._calibrated(self._checked(X))
        weights = (
            np.ones(len(probs)) if sample_weight is None else validation.check_weights(sample_weight, (len(probs),))
        )
        weights = weights / weights.sum()
        frequency = self.source_
        for _ in range(_STEPS):
            after = weights @ renormalized(probs * self._factors(frequency))
            after = after / after.sum()
            moved = float(np.abs(after - frequency).max())
            frequency = after
            if moved < _CHANGE:
                break
        self.prevalence_ = frequency
        return self

    def _factors(self, frequency: Float64s) -> Float64s:
        known = self.source_ > 0
        return np.where(known, frequency / np.where(known, self.source_, 1.0), 1.0)

    def _calibrated(self, outputs: Floats) -> Float64s:
        return outputs.astype(np.float64) if self.recalibrator is None else self.recalibrator_._apply(outputs)

    def _apply(self, outputs: Floats) -> Float64s:
        return renormalized(self._calibrated(outputs) * self._factors(self.prevalence_))

    def _trace(self, outputs: Value) -> Value:
        probs = outputs if self.recalibrator is None else self.recalibrator_._trace(outputs)
        return traced_renormalized(probs * self._factors(self.prevalence_), len(self.classes_))

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = {"source": self.source_.tolist(), "prevalence": self.prevalence_.tolist()}
        return state if self.recalibrator is None else {**state, "map": self.recalibrator_._learned()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        count = len(self.classes_)
        self.source_ = documents.numbers(state, "source", count, low=0.0, high=1.0)
        self.prevalence_ = documents.numbers(state, "prevalence", count, low=0.0, high=1.0)
        if self.recalibrator is None:
            return
        part = documents.field(state, "map")
        if not isinstance(part, dict):
            raise FileError('"map" must be an object')
        self.recalibrator_ = clone(self.recalibrator).set_params(classes=None)
        self.recalibrator_._take_up(part)


# ----------------------------------------------------------------------------------------------------
# Top versus all: only the probability of the predicted class is recalibrated, as one yes-or-no question


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
    >>> from truecal.recalibration import BetaCalibration, TopVersusAll
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
            self.temperature_ = documents.number(state, "temperature", low=1e-300)
            return
        part = documents.field(state, "map")
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
