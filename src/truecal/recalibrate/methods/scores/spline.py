"""Spline calibration: a smooth curve in the log odds that never falls, as flexible as the data ask for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from truecal import options
from truecal.errors import FileError
from truecal.predictions import sigmoid
from truecal.recalibrate.export import fields
from truecal.recalibrate.export.graph import Value
from truecal.recalibrate.methods.scores.isotonic import pooled
from truecal.recalibrate.methods.scores.lift import Multiclass, ScoreMapping
from truecal.recalibrate.outputs import Input
from truecal.recalibrate.solvers.spline import fit_slopes, integrals
from truecal.types import Float64s

_CELLS = 4096  # distinct scores are fitted one by one up to so many, beyond that in cells of equal weight


@dataclass(frozen=True, eq=False)
class SplineMap:
    """sigmoid(f(x)): f is quadratic between knots, with slopes >= 0 that are linear from knot to knot.

    x is the log odds, held within [low, high]; outside the knots f goes on in straight lines.
    """

    knots: Float64s
    slopes: Float64s
    intercept: float
    low: float
    high: float
    odds: bool = False

    def __call__(self, scores: Float64s) -> Float64s:
        x = np.clip(log_odds(scores, self.odds), self.low, self.high)
        return sigmoid(self.intercept + integrals(x, self.knots) @ self.slopes)

    def trace(self, scores: Value) -> Value:
        x = scores if self.odds else scores.log() - (1 - scores).log()
        x = x.at_least(self.low).at_most(self.high)
        gaps = np.diff(self.knots)
        share = ((x - self.knots[:-1]) / gaps).at_least(0.0).at_most(1.0)
        start, rise = gaps * self.slopes[:-1], gaps * np.diff(self.slopes) / 2
        inside = (share * (start + share * rise)).sum()
        before = (x - self.knots[0]).at_most(0.0) * self.slopes[0]
        after = (x - self.knots[-1]).at_least(0.0) * self.slopes[-1]
        return (self.intercept + before + inside + after).sigmoid()

    def state(self) -> dict[str, Any]:
        return {
            "knots": self.knots.tolist(),
            "slopes": self.slopes.tolist(),
            "intercept": self.intercept,
            "low": self.low,
            "high": self.high,
        }


def log_odds(scores: Float64s, odds: bool) -> Float64s:
    """Log odds of probabilities, minus and plus infinity at 0 and 1; or scores that are log odds already."""
    if odds:
        return scores
    with np.errstate(divide="ignore"):
        return np.log(scores) - np.log1p(-scores)


class SplineCalibration(ScoreMapping):
    r"""A monotone quadratic spline in the log odds, by penalised maximum likelihood.

    .. math:: p = \sigma(f(x)), \qquad f'(x) = \sum_j a_j h_j(x), \; a_j \ge 0, \qquad
        \min_a \; -\log L + \lambda \sum_j (a_{j+1} - a_j)^2

    h_j are the hat functions of the knots, which stand at quantiles of the scores: the slope of f is a piecewise linear
    curve that is never negative. The penalty draws it to a constant slope, a logistic curve in the log odds (contained:
    the identity); lambda is chosen by Akaike's criterion, so that few rows give a logistic curve and many a free one.
    Targets are Platt's, so a finite optimum always exists.

    Parameters
    ----------
    knots : the most knots; there are fewer where scores have fewer distinct values.
    input : "probs" or "logits".
    multiclass, normalize, classes : as in `PlattScaling`.

    Attributes
    ----------
    maps_ : the curves, with `knots`, `slopes` at the knots, and `intercept`.

    Notes
    -----
    Probabilities of exactly 0 and 1 are read as log odds one beyond the most extreme others, and so are scores outside
    the range of the fit. Results are never 0 or 1.

    References
    ----------
    Lucena. Spline-based probability calibration. arXiv:1809.07751, 2018 (natural cubic splines, not monotone). Ramsay.
    Monotone regression splines in action. Statistical Science 3, 1988.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibrate import SplineCalibration
    >>> rng = np.random.default_rng(0)
    >>> s = rng.random(20_000)
    >>> y = rng.random(20_000) < np.where(s < 0.5, s / 2, 1.5 * s - 0.5)  # a kink in the middle
    >>> SplineCalibration().fit(s, y).predict_proba([0.2, 0.5, 0.8])[:, 1].round(1)
    array([0.1, 0.3, 0.7])
    """

    def __init__(
        self,
        knots: int = 10,
        *,
        input: Input = "probs",  # noqa: A002
        multiclass: Multiclass = "one-vs-rest",
        normalize: bool = True,
        classes: Sequence[object] | None = None,
    ) -> None:
        super().__init__(input=input, multiclass=multiclass, normalize=normalize, classes=classes)
        self.knots = knots

    def check_params(self) -> None:
        super().check_params()
        options.whole(self.knots, "knots", 2, 1000)

    def fit_map(self, scores: Float64s, outcomes: Float64s, weights: Float64s) -> SplineMap:
        odds = self.input == "logits"
        x = log_odds(scores, odds)
        usual = np.abs(x) < 1e29
        low, high = (float(x[usual].min()) - 1, float(x[usual].max()) + 1) if usual.any() else (-1.0, 1.0)
        x, w, ones = pooled(np.clip(x, low, high), outcomes, weights)
        total = float(ones.sum())
        rising = bool(len(x) > 1 and 0 < total < w.sum())
        x, w, ones = _cells(x, w, ones)
        knots = _quantiles(x, w, self.knots) if rising else np.array([low, high])
        slopes, intercept = fit_slopes(x, w, ones, knots)
        if rising and not slopes.any():
            self._warn("the scores do not rise with the outcomes; the map is constant")
        return SplineMap(knots, slopes, intercept, low, high, odds)

    def read_map(self, state: Mapping[str, Any]) -> SplineMap:
        knots = fields.numbers(state, "knots", rising=True)
        if len(knots) < 2:
            raise FileError('"knots" must hold at least two numbers')
        slopes = fields.numbers(state, "slopes", len(knots), low=0.0)
        low = fields.number(state, "low")
        high = fields.number(state, "high", low=low)
        return SplineMap(knots, slopes, fields.number(state, "intercept"), low, high, self.input == "logits")


def _cells(x: Float64s, w: Float64s, ones: Float64s) -> tuple[Float64s, Float64s, Float64s]:
    """Neighbouring scores together, in at most `_CELLS` cells of about equal weight."""
    if len(x) <= _CELLS:
        return x, w, ones
    reached = np.cumsum(w)
    cell = np.minimum((reached - w / 2) / reached[-1] * _CELLS, _CELLS - 1).astype(np.intp)
    start = np.flatnonzero(np.r_[True, np.diff(cell) > 0])
    weight = np.add.reduceat(w, start)
    return np.add.reduceat(w * x, start) / weight, weight, np.add.reduceat(ones, start)


def _quantiles(x: Float64s, w: Float64s, count: int) -> Float64s:
    """At most `count` distinct scores at even steps of weight, the first and the last among them."""
    reached = np.cumsum(w)
    at = np.searchsorted(reached, np.linspace(0, 1, count)[1:-1] * reached[-1])
    return np.unique(np.r_[x[0], x[np.minimum(at, len(x) - 1)], x[-1]])
