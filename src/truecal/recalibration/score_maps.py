"""From a map of one score to a recalibrator of any number of classes.

A map turns one score into one probability. Two classes need one map, for the second class. More classes are lifted in
one of three ways: "one-vs-rest" (a map per class; the results are renormalised to sum to 1, or left alone), "top-label"
(one map, for the probability that the largest output is right), or "shared" (one map for all classes, learned from all
pairs of a row and a class; as the map never falls, the predicted class stays).
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

import numpy as np

from truecal import options
from truecal.errors import FileError, InputError
from truecal.recalibration import documents
from truecal.recalibration.contract import ImpossibleRowError, Input, Recalibrator, class_scores, top_class
from truecal.recalibration.export import Value, traced_probs, traced_scores
from truecal.recalibration.likelihood import LOG_ZERO, fit_rising_logistic, least_squares
from truecal.special import expit, positive, softmax
from truecal.types import Float64s, Floats, Indices

# ----------------------------------------------------------------------------------------------------
# From a map of one score to a recalibrator of any number of classes

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
        states = documents.field(state, "maps")
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
    return np.where(total > 0, probs / positive(total), 1.0 / probs.shape[1])


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
    shares = np.where(total > 0, shares / positive(total), equal)
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


# ----------------------------------------------------------------------------------------------------
# Platt scaling: a logistic curve in the score


@dataclass(frozen=True)
class LogisticMap:
    """sigmoid(slope * score + intercept)."""

    slope: float
    intercept: float

    def __call__(self, scores: Float64s) -> Float64s:
        return expit(self.slope * scores + self.intercept)

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
    >>> from truecal.recalibration import PlattScaling
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
        return LogisticMap(documents.number(state, "slope", low=0.0), documents.number(state, "intercept"))


# ----------------------------------------------------------------------------------------------------
# Beta calibration: a curve that can bend separately near 0 and near 1


@dataclass(frozen=True)
class BetaMap:
    """sigmoid(a ln p - b ln(1 - p) + c), of probabilities or (`odds`) of log odds."""

    a: float
    b: float
    c: float
    odds: bool = False
    clip: float | None = None
    certain: bool = False

    def __call__(self, scores: Float64s) -> Float64s:
        log_p, log_q = logarithms(scores, self.odds, self.clip)
        return expit(self.c + self._term(self.a, log_p) - self._term(self.b, log_q))

    def _term(self, slope: float, logs: Float64s) -> Float64s:
        """slope * logs. With slope 0, minus infinity stays itself if the fit saw that such rows are right (the limit of
        small slopes), and else counts as 0."""
        infinite = np.isneginf(logs)
        limit = -np.inf if slope or self.certain else 0.0
        return np.where(infinite, limit, slope * np.where(infinite, 0.0, logs))

    def trace(self, scores: Value) -> Value:
        if self.odds:
            # log(1 + exp(-|s|)), the part that ln p and ln(1 - p) share
            shared = (1 + (-scores.at_least(-scores)).exp()).log()
            log_p, log_q = scores.at_most(0.0) - shared, (-scores).at_most(0.0) - shared
            log_p = (log_p <= LOG_ZERO / 2).where(-np.inf, log_p)
            log_q = (log_q <= LOG_ZERO / 2).where(-np.inf, log_q)
        else:
            log_p, log_q = scores.log(), (1 - scores).log()
        if self.clip is not None:
            low, high = np.log(self.clip), np.log1p(-self.clip)
            log_p, log_q = log_p.at_least(low).at_most(high), log_q.at_least(low).at_most(high)
        return (self.c + self._traced_term(self.a, log_p) - self._traced_term(self.b, log_q)).sigmoid()

    def _traced_term(self, slope: float, logs: Value) -> Value:
        infinite = logs <= LOG_ZERO / 2
        return infinite.where(-np.inf if slope or self.certain else 0.0, slope * infinite.where(0.0, logs))

    def state(self) -> dict[str, Any]:
        numbers = {"a": self.a, "b": self.b, "c": self.c}
        return {**numbers, "certain": True} if self.certain else numbers


def logarithms(scores: Float64s, odds: bool, clip: float | None) -> tuple[Float64s, Float64s]:
    """ln p and ln(1 - p), minus infinity where p is exactly 0 or 1."""
    if odds:
        with np.errstate(over="ignore"):
            log_p, log_q = -np.logaddexp(0.0, -scores), -np.logaddexp(0.0, scores)
        log_p[log_p <= LOG_ZERO / 2] = -np.inf
        log_q[log_q <= LOG_ZERO / 2] = -np.inf
    else:
        with np.errstate(divide="ignore"):
            log_p, log_q = np.log(scores), np.log1p(-scores)
    if clip is not None:
        low, high = np.log(clip), np.log1p(-clip)
        log_p, log_q = np.clip(log_p, low, high), np.clip(log_q, low, high)
    return log_p, log_q


class BetaCalibration(ScoreMapping):
    r"""The ratio of two Beta densities as a curve in the probability s.

    .. math:: p = \sigma\big(a \ln s - b \ln(1 - s) + c\big), \qquad a, b \ge 0

    With two parameters a = b, which is a logistic curve in the log odds, the family of Kumar et al. (appendix E); with
    a = 1, c = 0 it leaves s unchanged. Maximum likelihood by Newton's method. A coefficient that would be negative is
    0, so the curve never falls.

    Parameters
    ----------
    parameters : 3 (a, b, c) or 2 (a = b, c).
    input : "probs", or "logits" (the log odds stay exact where probabilities round to 0 or 1).
    loss : "likelihood", or "squared": the sum of squared differences between curve and outcomes (Kumar et al., step 1),
        by Gauss-Newton steps from the curve of maximum likelihood.
    clip : None, or a small number: probabilities are then moved into [clip, 1 - clip] before their logarithm is taken.
    multiclass, normalize, classes : as in `PlattScaling`.

    Attributes
    ----------
    maps_ : the curves, with `a`, `b`, `c`.

    Notes
    -----
    A probability of exactly 0 or 1 has an infinite logarithm. Without `clip` it stays 0 or 1; if the outcome of such a
    row contradicts it no curve of the family can be right, so fitting is refused and the row named. Where a or b is 0,
    exact zeros and ones stay if the fit has seen some, and follow the curve if it has not. When a threshold separates
    the outcomes perfectly no finite optimum exists; then Platt's targets (n+ + 1) / (n+ + 2) and 1 / (n- + 2) are used
    instead of 1 and 0, and a warning says so.

    References
    ----------
    Kull, Silva Filho, Flach. Beyond sigmoids: how to obtain well-calibrated probabilities from binary classifiers with
    beta calibration. Electronic Journal of Statistics 11, 2017. Kumar, Liang, Ma. Verified uncertainty calibration.
    NeurIPS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibration import BetaCalibration
    >>> rng = np.random.default_rng(0)
    >>> s = rng.random(20_000)
    >>> y = rng.random(20_000) < 1 / (1 + np.exp(-(2 * np.log(s / (1 - s)) + 1)))  # a = 2, c = 1
    >>> curve = BetaCalibration(parameters=2).fit(s, y).maps_[0]
    >>> round(curve.a, 1), round(curve.c, 1)
    (2.0, 1.0)
    """

    def __init__(
        self,
        *,
        parameters: Literal[2, 3] = 3,
        loss: Literal["likelihood", "squared"] = "likelihood",
        input: Input = "probs",  # noqa: A002
        clip: float | None = None,
        multiclass: Multiclass = "one-vs-rest",
        normalize: bool = True,
        classes: Sequence[object] | None = None,
    ) -> None:
        super().__init__(input=input, multiclass=multiclass, normalize=normalize, classes=classes)
        self.parameters = parameters
        self.loss = loss
        self.clip = clip

    def check_params(self) -> None:
        super().check_params()
        options.choice(self.parameters, (2, 3), "parameters")
        options.choice(self.loss, ("likelihood", "squared"), "loss")
        if self.clip is not None and not (isinstance(self.clip, float) and 0 < self.clip < 0.5):
            raise InputError(f"clip must be None or a number between 0 and 0.5, not {self.clip!r}")

    def fit_map(self, scores: Float64s, outcomes: Float64s, weights: Float64s) -> BetaMap:
        odds = self.input == "logits"
        log_p, log_q = logarithms(scores, odds, self.clip)
        kept = np.isfinite(log_p) & np.isfinite(log_q)
        if not kept.all():
            self._refuse_contradiction(np.isneginf(log_p), np.isneginf(log_q), outcomes)
            if not kept.any():
                self._warn("every probability is exactly 0 or 1 and comes true; they are left as they are")
                return BetaMap(1.0, 1.0, 0.0, odds, self.clip, certain=True)
            # a row whose 0 or 1 came true has likelihood 1 under every curve that keeps 0 and 1: it says nothing
            log_p, log_q, outcomes, weights = log_p[kept], log_q[kept], outcomes[kept], weights[kept]
        level = log_p - log_q
        targets = outcomes
        ones = float(weights @ outcomes)
        zeros = float(weights.sum()) - ones
        varies = bool(level.max() > level.min())
        highest_zero, lowest_one = level[outcomes == 0].max(initial=-np.inf), level[outcomes == 1].min(initial=np.inf)
        if highest_zero <= lowest_one and (varies or not (ones and zeros)):
            if ones and zeros:
                self._warn(
                    "a threshold separates the outcomes perfectly, so the likelihood has no finite optimum; "
                    "Platt's targets were used"
                )
            targets = np.where(outcomes > 0, (ones + 1) / (ones + 2), 1 / (zeros + 2))
        features = level[:, None] if self.parameters == 2 else np.column_stack([log_p, -log_q])
        coefficients = fit_rising_logistic(features, targets, weights)
        if self.loss == "squared":
            coefficients = least_squares(features, targets, weights, coefficients)
        *slopes, c = coefficients.tolist()
        if not any(slopes) and varies and ones > 0 and zeros > 0:
            self._warn("the scores do not rise with the outcomes; the map is constant")
        return BetaMap(slopes[0], slopes[-1], c, odds, self.clip, certain=not kept.all())

    def _refuse_contradiction(self, at_zero: Any, at_one: Any, outcomes: Float64s) -> None:
        wrong = (at_zero & (outcomes > 0)) | (at_one & (outcomes == 0))
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise ImpossibleRowError(
                row,
                f"has a probability of exactly {int(at_one[row])} and the opposite outcome, which no beta curve can "
                'explain; pass the logits (input="logits"), or clip=1e-7 to move probabilities off 0 and 1',
            )

    def read_map(self, state: Mapping[str, Any]) -> BetaMap:
        a, b = documents.number(state, "a", low=0.0), documents.number(state, "b", low=0.0)
        certain = state.get("certain", False) is True
        return BetaMap(a, b, documents.number(state, "c"), self.input == "logits", self.clip, certain)
