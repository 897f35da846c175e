"""Beta calibration: a curve that can bend separately near 0 and near 1."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.predictions import sigmoid
from truecal.recalibrate.export import fields
from truecal.recalibrate.export.graph import Value
from truecal.recalibrate.impossible import ImpossibleRowError
from truecal.recalibrate.methods.scores.lift import Multiclass, ScoreMapping
from truecal.recalibrate.outputs import Input
from truecal.recalibrate.solvers.likelihood import LOG_ZERO
from truecal.recalibrate.solvers.newton import fit_rising_logistic
from truecal.recalibrate.solvers.squares import least_squares
from truecal.types import Float64s


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
        return sigmoid(self.c + self._term(self.a, log_p) - self._term(self.b, log_q))

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
    >>> from truecal.recalibrate import BetaCalibration
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
        a, b = fields.number(state, "a", low=0.0), fields.number(state, "b", low=0.0)
        certain = state.get("certain", False) is True
        return BetaMap(a, b, fields.number(state, "c"), self.input == "logits", self.clip, certain)
