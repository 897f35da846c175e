"""Histogram binning: in every bin of the score, the frequency that was seen there."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

import truecal as tc
from truecal import options
from truecal.errors import FileError, InputError
from truecal.predictions import softmax
from truecal.recalibrate.export import fields
from truecal.recalibrate.export.graph import Value
from truecal.recalibrate.export.traced import traced_probs
from truecal.recalibrate.methods.scores.guarantee import CountedSteps, fit_between_order_statistics
from truecal.recalibrate.methods.scores.lift import Multiclass, ScoreMapping
from truecal.recalibrate.methods.scores.steps import StepMap, mass_edges, read_steps
from truecal.recalibrate.outputs import Input
from truecal.types import Float64s, Floats


class HistogramBinning(ScoreMapping):
    r"""Replace the probability by the mean outcome of its bin.

    .. math:: p(s) = \frac{\sum_{i \in \beta(s)} w_i y_i}{\sum_{i \in \beta(s)} w_i}

    where \beta(s) are the rows fitted in the bin of s. With scheme="guaranteed" (and "width"), `predict_interval` bounds the
    true frequency of every bin at once, for any distribution and any number of rows.

    Parameters
    ----------
    bins : number of bins.
    scheme : "mass" (equal numbers of rows; equal scores are never split, so there may be fewer bins), "width" (edges
        j / bins; a bin without rows keeps its centre) or "guaranteed" (edges are order statistics, and the rows on them
        are left out, so that the counts of a bin are binomial; unweighted rows only).
    input : "probs" or "logits" (turned into probabilities).
    multiclass, normalize, classes : as in `PlattScaling`. Renormalised rows in which every map gives 0 become uniform.

    Attributes
    ----------
    maps_ : the steps, with inner `edges` and `values`.

    References
    ----------
    Zadrozny, Elkan. Obtaining calibrated probability estimates from decision trees and naive Bayesian classifiers. ICML
    2001. Gupta, Ramdas. Distribution-free calibration guarantees for histogram binning without sample splitting. ICML
    2021.

    Examples
    --------
    >>> from truecal.recalibrate import HistogramBinning
    >>> fixed = HistogramBinning(bins=2).fit([0.1, 0.2, 0.3, 0.7, 0.8, 0.9], [0, 0, 1, 1, 0, 1])
    >>> fixed.predict_proba([0.2, 0.6])[:, 1].round(3)
    array([0.333, 0.667])
    >>> import numpy as np
    >>> s = (np.arange(2000) + 0.5) / 2000
    >>> sure = HistogramBinning(bins=2, scheme="guaranteed").fit(s, np.arange(2000) % 4 == 0)
    >>> low, high = sure.predict_interval([0.2], level=0.9)  # a true frequency of 1 in 4
    >>> low.round(2), high.round(2)
    (array([0.22]), array([0.28]))
    """

    def __init__(
        self,
        bins: int = 15,
        *,
        scheme: Literal["mass", "width", "guaranteed"] = "mass",
        input: Input = "probs",  # noqa: A002
        multiclass: Multiclass = "one-vs-rest",
        normalize: bool = True,
        classes: Sequence[object] | None = None,
    ) -> None:
        super().__init__(input=input, multiclass=multiclass, normalize=normalize, classes=classes)
        self.bins = bins
        self.scheme = scheme

    def check_params(self) -> None:
        super().check_params()
        options.bins(self.bins)
        options.choice(self.scheme, ("mass", "width", "guaranteed"), "scheme")

    def scores(self, outputs: Floats) -> Float64s:
        scores = outputs.astype(np.float64) if self.input == "probs" else softmax(outputs)
        # edges on scores must not see the last bits of a softmax, which differ between machines
        return scores.astype(np.float32).astype(np.float64) if self._rounds else scores

    def traced_scores(self, outputs: Value, count: int) -> Value:
        probs = traced_probs(outputs, self.input)
        return probs.single() if self._rounds else probs

    @property
    def _rounds(self) -> bool:
        return self.scheme == "guaranteed" and self.input == "logits"

    def fit_map(self, scores: Float64s, outcomes: Float64s, weights: Float64s) -> StepMap:
        if self.scheme == "guaranteed":
            return fit_between_order_statistics(scores, outcomes, weights, self.bins)
        if self.scheme == "mass":
            edges = mass_edges(tc.Profile.from_arrays(scores, outcomes, weights), self.bins)
        else:
            edges = np.arange(1, self.bins) / self.bins
        bin_of = np.searchsorted(edges, scores, side="right")
        count = len(edges) + 1
        mass = np.bincount(bin_of, weights, count)
        ones = np.bincount(bin_of, weights * outcomes, count)
        centre = (np.arange(count) + 0.5) / count
        values = np.where(mass > 0, ones / np.where(mass > 0, mass, 1.0), centre)
        if self.scheme == "width" and (weights == 1).all():
            return CountedSteps(edges, values, mass.astype(np.float64), ones.astype(np.float64))
        return StepMap(edges, values)

    def predict_interval(self, X: ArrayLike, level: float = 0.9) -> tuple[Float64s, Float64s]:
        """Low and high ends of intervals that hold the true frequencies of all bins at once with probability `level`.

        For two classes of the second of `classes_`, shape (n,), else for every class, shape (n, K). They are about the
        frequency of a class given the bin of its own score, before rows are renormalised.
        """
        options.level(level)
        scores = self.scores(self._checked(X))
        maps = [g for g in self.maps_ if isinstance(g, CountedSteps)]
        if len(maps) < len(self.maps_) or (self.multiclass != "one-vs-rest" and len(self.classes_) > 2):
            raise InputError(
                'an interval needs scheme="guaranteed" (or "width") fitted without weights, one map per class'
            )
        alpha = (1 - level) / sum(len(g.values) for g in maps)
        if len(self.classes_) == 2:
            low, high = maps[0].interval(scores[:, 1], alpha)
            return (low, high) if self.order_.is_sorted else (1 - high, 1 - low)
        ends = [g.interval(scores[:, k], alpha) for k, g in enumerate(maps)]
        low, high = (np.column_stack([pair[end] for pair in ends]) for end in (0, 1))
        return self.order_.sorted_columns(low), self.order_.sorted_columns(high)

    def read_map(self, state: Mapping[str, Any]) -> StepMap:
        steps = read_steps(state)
        # atoms on an edge are bins of their own
        most = 2 * self.bins - 1 if self.scheme == "guaranteed" else self.bins
        if len(steps.values) > most:
            raise FileError(f'"values" has {len(steps.values)} bins, but "bins" is {self.bins}')
        if "rows" not in state:
            return steps
        rows = fields.numbers(state, "rows", len(steps.values), low=0.0)
        positive = fields.numbers(state, "positive", len(steps.values), low=0.0)
        if (positive > rows).any():
            raise FileError('"positive" must not exceed "rows"')
        return CountedSteps(steps.edges, steps.values, rows, positive)
