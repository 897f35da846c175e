"""Maps of one score to one probability, and how they serve any number of classes: Platt scaling and beta calibration.

Two classes need one map, for the second class. More classes are reduced to binary problems in one of three ways: "one-vs-rest" (a
map per class; the results are renormalised to sum to 1, or left alone), "top-label" (one map, for the probability that the largest
output is right), or "shared" (one map for all classes, learned from all pairs of a row and a class; as the map never falls, the
predicted class stays).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecal import options
from truecal.errors import FileError, InputError
from truecal.recalibration import serialization
from truecal.recalibration.contract import (
    ImpossibleRowError,
    Input,
    Recalibrator,
    class_scores,
    warn_if_constant,
)
from truecal.recalibration.export import is_row_maximum, sigmoid, softmax
from truecal.recalibration.likelihood import LOG_ZERO
from truecal.recalibration.serialization import read_number
from truecal.recalibration.solvers import fit_rising_logistic, platt_targets
from truecal.types import Float64s, Floats, Indices

Multiclass = Literal["one-vs-rest", "top-label", "shared"]

# By choice: share of the model's probabilities added to those of a shared map: orders classes that the map makes equal (1e-6 is
# far above rounding) and is too small to change any score.
_TIE_BREAK = 1e-6


class ScoreMap(ABC):
    """A learned map from scores (probabilities or log odds) to probabilities, element by element."""

    @abstractmethod
    def __call__(self, scores: Float64s) -> Float64s:
        """Return the probability of each score, of the shape of `scores`."""

    def state(self) -> dict[str, Any]:
        """Return the fields of the map by name as the types of JSON.

        >>> LogisticMap(2.0, -1.0).state()
        {'slope': 2.0, 'intercept': -1.0}
        """
        return {name: serialization.to_json(value) for name, value in vars(self).items()}


@dataclass(eq=False, repr=False, kw_only=True)
class ScoreRecalibrator(Recalibrator):
    """A recalibrator made of maps of one score: one per class, or a single one (two classes, "top-label", "shared")."""

    input: Input = "probs"
    multiclass: Multiclass = "one-vs-rest"
    normalize: bool = True

    @abstractmethod
    def _fit_map(self, scores: Float64s, outcomes: Float64s, weights: Float64s) -> ScoreMap:
        """Learn one map from scores, 0/1 outcomes (which may be all equal) and positive weights, (n,) each."""

    @abstractmethod
    def _read_map(self, state: Mapping[str, Any]) -> ScoreMap:
        """Restore a map from a state written by `ScoreMap.state`."""

    def _scores(self, outputs: Float64s, classes: int) -> Float64s:
        """Return one score per class, (n, K), the argument of the maps.

        >>> PlattScaling(input="logits")._scores(np.array([[0.0, 1.5]]), 2)
        array([[-1.5,  1.5]])
        """
        return class_scores(outputs, self.input, classes)

    def _check_params(self) -> None:
        """Refuse unknown values of `input`, `multiclass` and `normalize`.

        >>> PlattScaling(multiclass="all")._check_params()
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: multiclass must be 'one-vs-rest' or 'top-label' or 'shared', not 'all'
        """
        super()._check_params()
        options.choice(self.multiclass, get_args(Multiclass), "multiclass")
        options.choice(self.normalize, (True, False), "normalize")

    def _learn(self, outputs: Floats, labels: Indices, weights: Float64s | None) -> None:
        """Set `maps_`: one map of the second of two classes; of more, one per class, one of the top label, or one of all pairs."""
        rows, count = outputs.shape
        scores = self._scores(outputs.astype(np.float64), count)
        row_weights = np.ones(rows) if weights is None else weights
        is_label = (labels[:, None] == np.arange(count)).astype(np.float64)
        if count == 2:
            self.maps_ = [self._fit_map(scores[:, 1], is_label[:, 1], row_weights)]
        elif self.multiclass == "top-label":
            top = outputs.argmax(axis=1)
            correct = (labels == top).astype(np.float64)
            warn_if_constant(self, correct)
            self.maps_ = [self._fit_map(scores[np.arange(rows), top], correct, row_weights)]
        elif self.multiclass == "shared":
            try:
                self.maps_ = [self._fit_map(scores.ravel(), is_label.ravel(), np.repeat(row_weights, count))]
            except ImpossibleRowError as refusal:
                raise refusal.renumber(np.repeat(np.arange(rows), count)) from None
        else:
            if self.absent_classes_:
                names = self.order_.describe(self.absent_classes_)
                self._warn(f"class {names} never occurs in y; its map is learned from negative examples alone")
            self.maps_ = [self._fit_map(scores[:, k], is_label[:, k], row_weights) for k in range(count)]

    def _apply(self, outputs: Float64s) -> Float64s:
        """Apply the maps to checked outputs (n, K); return class probabilities (n, K).

        Two classes: (1 - p, p) from the one map. More: each class by its map, or all by a shared one, rows divided by their sums
        if `normalize`; or the top class by its map, the others keep their proportions.
        """
        count = len(self.classes_)
        scores = self._scores(outputs, count)
        if count == 2:
            positive = self.maps_[0](scores[:, 1])
            return np.column_stack([1 - positive, positive])
        if self.multiclass == "one-vs-rest":
            probs = np.column_stack([g(scores[:, k]) for k, g in enumerate(self.maps_)])
            return renormalize(probs, count) if self.normalize else probs
        if self.multiclass == "top-label":
            return replace_top(class_probabilities(outputs, self.input), outputs, scores, self.maps_[0], count)
        shared = np.column_stack([self.maps_[0](scores[:, k]) for k in range(count)])
        if not self.normalize:
            return shared
        return renormalize(shared + _TIE_BREAK * class_probabilities(outputs, self.input), count)

    def _predict_limits(
        self, X: ArrayLike, limits: Callable[[Any, Float64s], tuple[Float64s, Float64s]]
    ) -> tuple[Float64s, Float64s]:
        """Return lower and upper limits of outputs X, (n,) for two classes, else (n, K) with the columns as `classes_`.

        `limits` takes a map and the scores of a class, (n,), and returns their lower and upper limits. With two classes they are
        those of the second.
        """
        scores = self._scores(self._check_outputs(X).astype(np.float64), len(self.classes_))
        if len(self.classes_) == 2:
            low, high = limits(self.maps_[0], scores[:, 1])
            return (low, high) if self.order_.is_sorted else (1 - high, 1 - low)
        maps = self.maps_ * len(self.classes_) if len(self.maps_) == 1 else self.maps_
        pairs = [limits(g, scores[:, k]) for k, g in enumerate(maps)]
        low, high = (self.order_.sort_columns(np.column_stack(ends)) for ends in zip(*pairs, strict=True))
        return low, high

    def _state(self) -> dict[str, Any]:
        """Return {"maps": the state of every map}.

        >>> recalibrator = PlattScaling()
        >>> recalibrator.maps_ = [LogisticMap(2.0, -1.0)]
        >>> recalibrator._state()
        {'maps': [{'slope': 2.0, 'intercept': -1.0}]}
        """
        return {"maps": [g.state() for g in self.maps_]}

    def _restore(self, state: Mapping[str, Any]) -> None:
        """Read "maps", one state per class, or a single one (two classes, "top-label", "shared"); refuse another number."""
        states = serialization.read_field(state, "maps")
        count = len(self.classes_)
        needed = count if count > 2 and self.multiclass == "one-vs-rest" else 1
        if not isinstance(states, list) or len(states) != needed or not all(isinstance(s, dict) for s in states):
            raise FileError(f'"maps" must be a list of {needed} objects')
        self.maps_ = [self._read_map(s) for s in states]


def class_probabilities(outputs: Float64s, kind: Input) -> Float64s:
    """Return outputs (n, K) of kind "probs" as they are, of "logits" their softmax.

    >>> class_probabilities(np.array([[0.0, 0.0]]), "logits")
    array([[0.5, 0.5]])
    """
    probs: Float64s = outputs if kind == "probs" else softmax(outputs)
    return probs


def renormalize(probs: Float64s, classes: int) -> Float64s:
    """Divide rows (n, K) by their sums; a row of zeros becomes uniform. `classes` is K, which a traced array lacks.

    >>> renormalize(np.array([[0.2, 0.6], [0.0, 0.0]]), 2)
    array([[0.25, 0.75],
           [0.5 , 0.5 ]])
    """
    total = probs.sum(axis=1, keepdims=True)
    empty = total <= 0.0
    return np.where(empty, 1.0 / classes, probs / np.where(empty, 1.0, total))


def replace_top(probs: Float64s, outputs: Float64s, scores: Float64s, score_map: ScoreMap, classes: int) -> Float64s:
    """Replace in probabilities (n, K) that of the largest output by `score_map` of its score; see `set_confidence`.

    `outputs` and `scores` have shape (n, K); of equal outputs the first class is the largest.

    >>> probs = np.array([[0.75, 0.25]])
    >>> replace_top(probs, probs, probs, LogisticMap(0.0, 0.0), 2)
    array([[0.5, 0.5]])
    """
    top = is_row_maximum(outputs, classes)
    confidence = score_map(np.where(top, scores, 0.0).sum(axis=1, keepdims=True))
    return set_confidence(probs, top, confidence, classes)


def set_confidence(probs: Float64s, top: NDArray[np.bool_], confidence: Float64s, classes: int) -> Float64s:
    """Give the class marked in `top` exactly `confidence` (n, 1); the others share the remainder in proportion to `probs`.

    Where that would lift another class above the confidence, the shares of the others are mixed with equal shares, just enough
    to keep the top class first. With a confidence of 1 / K or less that is impossible: then the others share equally.

    >>> top = np.array([[True, False, False]])
    >>> set_confidence(np.array([[0.5, 0.4, 0.1]]), top, np.array([[0.6]]), 3).round(4)  # 0.4 in the ratio 4 : 1
    array([[0.6 , 0.32, 0.08]])
    >>> set_confidence(np.array([[0.5, 0.4, 0.1]]), top, np.array([[0.2]]), 3).round(4)  # below 1 / 3
    array([[0.2, 0.4, 0.4]])
    """
    equal = 1.0 / (classes - 1)
    others = np.where(top, 0.0, probs)
    total = others.sum(axis=1, keepdims=True)
    empty = total <= 0.0
    shares = np.where(top, 0.0, np.where(empty, equal, others / np.where(empty, 1.0, total)))
    remainder, largest = 1.0 - confidence, shares.max(axis=1, keepdims=True)
    stays_first = remainder * largest < confidence
    excess, room = remainder * largest - confidence, remainder * (largest - equal)
    possible = excess < room
    mix = np.where(possible, excess / np.where(stays_first, 1.0, np.where(possible, room, 1.0)), 1.0)
    mixed = np.where(stays_first, remainder * shares, remainder * ((1 - mix) * shares + mix * equal))
    # strictly below the confidence where it can be: rounding must not make a tie
    limit = np.where(stays_first, 1.0, np.where(possible, confidence * (1 - 1e-15), 1.0))
    return np.where(top, confidence, np.minimum(mixed, limit))


# ----------------------------------------------------------------------------------------------------
# Platt scaling


@dataclass(frozen=True)
class LogisticMap(ScoreMap):
    """sigmoid(slope * score + intercept)."""

    slope: float
    intercept: float

    def __call__(self, scores: Float64s) -> Float64s:
        """Evaluate sigmoid(slope * score + intercept).

        >>> LogisticMap(2.0, -1.0)(np.array([0.5]))
        array([0.5])
        """
        probs: Float64s = sigmoid(self.slope * scores + self.intercept)
        return probs


class PlattScaling(ScoreRecalibrator):
    r"""Fit a logistic curve in the score s, with Platt's targets.

    .. math:: p = \sigma(a s + b), \quad a \ge 0, \qquad
        t_+ = \frac{n_+ + 1}{n_+ + 2}, \quad t_- = \frac{1}{n_- + 2}

    The targets replace 1 and 0 in the likelihood; with them a finite optimum exists also for separable data. The slope is
    never negative: scores that fall as the outcomes rise give a constant map and a warning, not a reversed order.

    Parameters
    ----------
    input : {"probs", "logits"}, default "probs"
        What s is: the probability itself, or the log odds (of one column the value, of many columns each class against the
        others). For a logistic curve in the log odds of probabilities see ``BetaCalibration(parameters=2)``.
    multiclass : {"one-vs-rest", "top-label", "shared"}, default "one-vs-rest"
        With more than two classes: a map per class; one map for the probability that the largest output is right; or one
        map for all classes, which keeps the predicted class.
    normalize : bool, default True
        Whether one-vs-rest and shared results are divided by their sum.
    classes : sequence, default None
        Names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    maps_ : list
        The curves, with `slope` and `intercept`.

    References
    ----------
    Platt. Probabilistic outputs for support vector machines and comparisons to regularized likelihood methods. Advances in
    Large Margin Classifiers, 1999.

    See Also
    --------
    BetaCalibration : A curve that contains the identity.

    Examples
    --------
    >>> from truecal.recalibration import PlattScaling
    >>> fitted = PlattScaling(input="logits").fit([-2.0, -1.0, 0.0, 1.0, 2.0, 3.0], [0, 1, 0, 0, 1, 1])
    >>> round(fitted.maps_[0].slope, 3), round(fitted.maps_[0].intercept, 3)
    (0.361, -0.181)
    """

    def _fit_map(self, scores: Float64s, outcomes: Float64s, weights: Float64s) -> LogisticMap:
        """Fit the curve to Platt's targets at scores (n,); refuse infinite log odds, and warn where the slope would be
        negative.

        >>> curve = PlattScaling()._fit_map(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.ones(2))
        >>> round(curve.slope, 4), round(curve.intercept, 4)  # targets 1/3 and 2/3: odds 1/2 and 2
        (1.3863, -0.6931)
        """
        if np.abs(scores).max() >= -LOG_ZERO / 2:
            row = int(np.abs(scores).argmax())
            raise ImpossibleRowError(
                row, "rules a class out (a logit of minus infinity), but Platt scaling needs finite log odds"
            )
        slope, intercept = fit_rising_logistic(scores[:, None], platt_targets(outcomes, weights), weights)
        if slope == 0 and scores.max() > scores.min() and outcomes.max() > outcomes.min():
            self._warn("the scores do not rise with the outcomes; the map is constant")
        return LogisticMap(float(slope), float(intercept))

    def _read_map(self, state: Mapping[str, Any]) -> LogisticMap:
        """Read "slope" >= 0 and "intercept".

        >>> PlattScaling()._read_map({"slope": 2.0, "intercept": -1.0})
        LogisticMap(slope=2.0, intercept=-1.0)
        """
        return LogisticMap(read_number(state, "slope", low=0.0), read_number(state, "intercept"))


# ----------------------------------------------------------------------------------------------------
# Beta calibration


@dataclass(frozen=True)
class BetaMap(ScoreMap):
    """sigmoid(a ln p - b ln(1 - p) + c), as a function of the log odds of p."""

    a: float
    b: float
    c: float
    certain: bool = False  # whether the fit has seen probabilities of 0 or 1, all of which agreed with the outcome

    def __call__(self, scores: Float64s) -> Float64s:
        """Evaluate the curve at log odds, which may be infinite.

        >>> BetaMap(1.0, 1.0, 0.0)(np.array([0.0, np.inf]))  # the identity
        array([0.5, 1. ])
        """
        log_p, log_q = log_probabilities(scores)
        probs: Float64s = sigmoid(self.c + self._multiply(self.a, log_p) - self._multiply(self.b, log_q))
        return probs

    def _multiply(self, slope: float, logs: Float64s) -> Float64s:
        """Return slope * logs, where minus infinity stays; with slope 0 it does so only if `certain`, and else counts as 0.

        >>> logs = np.array([-1.0, -np.inf])
        >>> BetaMap(1.0, 0.0, 0.0)._multiply(0.0, logs), BetaMap(1.0, 1.0, 0.0)._multiply(2.0, logs)
        (array([-0.,  0.]), array([ -2., -inf]))
        """
        infinite = logs <= LOG_ZERO / 2
        limit = -np.inf if slope or self.certain else 0.0
        return np.where(infinite, limit, slope * np.where(infinite, 0.0, logs))


def class_log_odds(outputs: Float64s, kind: Input, classes: int) -> Float64s:
    """Return the log odds of each class against the others, shape (n, K); infinite for probabilities of 0 and 1.

    >>> class_log_odds(np.array([[0.5, 0.5], [0.0, 1.0]]), "probs", 2)
    array([[  0.,   0.],
           [-inf,  inf]])
    """
    scores = class_scores(outputs, kind, classes)
    if kind == "logits":
        return scores
    with np.errstate(divide="ignore"):
        return np.log(scores) - np.log1p(-scores)  # a traced graph takes ufuncs alone


def log_probabilities(odds: Float64s) -> tuple[Float64s, Float64s]:
    """Return ln p and ln(1 - p) of log odds ln(p / (1 - p)), which may be infinite, in their shape.

    >>> ln_p, ln_q = log_probabilities(np.array([0.0, -np.inf]))
    >>> ln_p.round(4), ln_q.round(4)
    (array([-0.6931,    -inf]), array([-0.6931,  0.    ]))
    """
    shared = np.log1p(np.exp(-np.abs(odds)))
    return np.minimum(odds, 0.0) - shared, np.minimum(-odds, 0.0) - shared


@dataclass(eq=False, repr=False, kw_only=True)
class BetaCalibration(ScoreRecalibrator):
    r"""Fit the ratio of two Beta densities as a curve in the probability s.

    .. math:: p = \sigma\big(a \ln s - b \ln(1 - s) + c\big), \qquad a, b \ge 0

    With two parameters a = b, which is a logistic curve in the log odds, the family of Kumar et al. (appendix E); with
    a = 1, c = 0 it leaves s unchanged. Maximum likelihood by Newton's method. A coefficient that would be negative is 0, so
    the curve never falls.

    Parameters
    ----------
    parameters : {3, 2}, default 3
        Free parameters: a, b and c, or a = b and c.
    loss : {"likelihood", "squared"}, default "likelihood"
        Criterion of the fit; "squared" is the sum of squared differences between curve and outcomes (Kumar et al., step 1).
    input : {"probs", "logits"}, default "probs"
        What X holds; the log odds of logits stay exact where probabilities round to 0 or 1.
    clip : float, default None
        A small number: probabilities are moved into [clip, 1 - clip] before their logarithm is taken.
    multiclass : {"one-vs-rest", "top-label", "shared"}, default "one-vs-rest"
        How more than two classes are reduced to one score; as in `PlattScaling`.
    normalize : bool, default True
        Whether one-vs-rest and shared results are divided by their sum.
    classes : sequence, default None
        Names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    maps_ : list
        The curves, with `a`, `b` and `c`.

    Notes
    -----
    A probability of exactly 0 or 1 has an infinite logarithm. Without `clip` it stays 0 or 1; if the outcome of such a row
    contradicts it no curve of the family can be right, so fitting is refused and the row named. Where a or b is 0, exact
    zeros and ones stay if the fit has seen some, and follow the curve if it has not. When a threshold separates the outcomes
    perfectly no finite optimum exists; then Platt's targets (n+ + 1) / (n+ + 2) and 1 / (n- + 2) are used instead of 1 and
    0, and a warning says so.

    References
    ----------
    Kull, Silva Filho, Flach. Beyond sigmoids: how to obtain well-calibrated probabilities from binary classifiers with beta
    calibration. Electronic Journal of Statistics 11, 2017. https://doi.org/10.1214/17-EJS1338SI
    Kumar, Liang, Ma. Verified uncertainty calibration. NeurIPS 2019. https://doi.org/10.48550/arXiv.1909.10155

    See Also
    --------
    DirichletCalibration : The multiclass form.

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

    parameters: Literal[2, 3] = 3
    loss: Literal["likelihood", "squared"] = "likelihood"
    clip: float | None = None

    def _check_params(self) -> None:
        """Refuse unknown values of `parameters` and `loss`, and a `clip` outside (0, 0.5).

        >>> BetaCalibration(clip=0.7)._check_params()
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: clip must be None or a number between 0 and 0.5, not 0.7
        """
        super()._check_params()
        options.choice(self.parameters, (2, 3), "parameters")
        options.choice(self.loss, ("likelihood", "squared"), "loss")
        if self.clip is not None and not (isinstance(self.clip, float) and 0 < self.clip < 0.5):
            raise InputError(f"clip must be None or a number between 0 and 0.5, not {self.clip!r}")

    def _scores(self, outputs: Float64s, classes: int) -> Float64s:
        """Return the log odds (n, K) of the classes, clipped to those of [clip, 1 - clip].

        >>> BetaCalibration(clip=0.1)._scores(np.array([[0.0, 1.0]]), 2).round(4)  # ln 9
        array([[-2.1972,  2.1972]])
        """
        odds = class_log_odds(outputs, self.input, classes)
        if self.clip is None:
            return odds
        limit = np.log1p(-self.clip) - np.log(self.clip)
        return np.minimum(np.maximum(odds, -limit), limit)

    def _fit_map(self, scores: Float64s, outcomes: Float64s, weights: Float64s) -> BetaMap:
        """Fit a, b and c to the rows of finite log odds (n,); refuse outcomes that contradict probabilities of 0 and 1.

        Platt's targets replace outcomes that a threshold separates; with nothing but 0 and 1 the map is the identity.

        >>> scores, outcomes = np.repeat([-1.0, 1.0], 3), np.array([0.0, 0.0, 1.0, 0.0, 1.0, 1.0])
        >>> curve = BetaCalibration(parameters=2)._fit_map(scores, outcomes, np.ones(6))
        >>> curve(np.array([-1.0, 1.0])).round(6)
        array([0.333333, 0.666667])
        """
        is_zero, is_one = scores <= LOG_ZERO / 2, scores >= -LOG_ZERO / 2
        finite = ~(is_zero | is_one)
        certain = not finite.all()
        if certain:
            self._refuse_contradiction(is_zero, is_one, outcomes)
            if not finite.any():
                self._warn("every probability is exactly 0 or 1 and agrees with its outcome; they are left unchanged")
                return BetaMap(1.0, 1.0, 0.0, certain=True)
            # a row with a probability of 0 or 1 that agrees with its outcome has likelihood 1 under every curve that keeps both
            scores, outcomes, weights = scores[finite], outcomes[finite], weights[finite]
        targets = outcomes
        varies = bool(scores.max() > scores.min())
        both_outcomes = bool(outcomes.max() > outcomes.min())
        highest_zero, lowest_one = scores[outcomes == 0].max(initial=-np.inf), scores[outcomes == 1].min(initial=np.inf)
        if highest_zero <= lowest_one and (varies or not both_outcomes):
            if both_outcomes:
                self._warn(
                    "a threshold separates the outcomes perfectly, so the likelihood has no finite optimum; "
                    "Platt's targets were used"
                )
            targets = platt_targets(outcomes, weights)
        log_p, log_q = log_probabilities(scores)
        features = scores[:, None] if self.parameters == 2 else np.column_stack([log_p, -log_q])
        coefficients = fit_rising_logistic(features, targets, weights, squared=self.loss == "squared")
        *slopes, c = coefficients.tolist()
        if not any(slopes) and varies and both_outcomes:
            self._warn("the scores do not rise with the outcomes; the map is constant")
        return BetaMap(slopes[0], slopes[-1], c, certain)

    def _refuse_contradiction(self, is_zero: NDArray[np.bool_], is_one: NDArray[np.bool_], outcomes: Float64s) -> None:
        """Refuse the first row with a probability of exactly 0 or 1 (masks (n,)) and the opposite outcome.

        >>> BetaCalibration()._refuse_contradiction(np.array([False, True]), np.array([True, False]), np.array([1.0, 0.0]))
        """
        wrong = (is_zero & (outcomes > 0)) | (is_one & (outcomes == 0))
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise ImpossibleRowError(
                row,
                f"has a probability of exactly {int(is_one[row])} and the opposite outcome, which no beta curve can "
                'explain; pass the logits (input="logits"), or clip=1e-7 to move probabilities off 0 and 1',
            )

    def _read_map(self, state: Mapping[str, Any]) -> BetaMap:
        """Read "a" >= 0, "b" >= 0, "c", and "certain", whether the fit has seen probabilities of 0 or 1 (False if missing).

        >>> BetaCalibration()._read_map({"a": 1.0, "b": 2.0, "c": 0.0})
        BetaMap(a=1.0, b=2.0, c=0.0, certain=False)
        """
        a, b = read_number(state, "a", low=0.0), read_number(state, "b", low=0.0)
        return BetaMap(a, b, read_number(state, "c"), state.get("certain", False) is True)
