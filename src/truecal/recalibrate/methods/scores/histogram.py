"""Histogram binning: in every bin of the score, the frequency that was seen there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from truecal.checks import check_choice, check_whole
from truecal.errors import FileError, InputError
from truecal.predictions import softmax
from truecal.profile import Profile
from truecal.recalibrate.export import fields
from truecal.recalibrate.methods.scores.lift import Multiclass, ScoreMapping
from truecal.recalibrate.outputs import Input
from truecal.types import Float64s, Floats


@dataclass(frozen=True, eq=False)
class StepMap:
    """One value per bin; bin j holds scores in [edges[j - 1], edges[j])."""

    edges: Float64s
    values: Float64s

    def __call__(self, scores: Float64s) -> Float64s:
        return self.values[np.searchsorted(self.edges, scores, side="right")]

    def state(self) -> dict[str, Any]:
        return {"edges": self.edges.tolist(), "values": self.values.tolist()}


def read_steps(state: Mapping[str, Any]) -> StepMap:
    """The steps of a state written by `StepMap.state`."""
    edges = fields.numbers(state, "edges", low=0.0, high=1.0, rising=True)
    return StepMap(edges, fields.numbers(state, "values", len(edges) + 1, low=0.0, high=1.0))


def mass_edges(profile: Profile, bins: int) -> Float64s:
    """Edges of bins that hold equal numbers of rows; equal scores stay in one bin, so there may be fewer than `bins`.

    An edge lies halfway between the scores on its two sides.
    """
    if profile.rows < bins:
        raise InputError(f"{profile.rows} rows cannot fill {bins} bins; use at most bins={profile.rows}")
    scores = profile.scores[0].astype(np.float64)
    at = np.unique(profile.mass_cut(bins).below[0])
    at = at[(at > 0) & (at < len(scores))]
    low, high = scores[at - 1], scores[at]
    middle = low + (high - low) / 2
    edges: Float64s = np.where(middle > low, middle, high)
    return edges


class HistogramBinning(ScoreMapping):
    r"""Replace the probability by the mean outcome of its bin.

    .. math:: p(s) = \frac{\sum_{i \in \beta(s)} w_i y_i}{\sum_{i \in \beta(s)} w_i}

    where \beta(s) are the rows fitted in the bin of s.

    Parameters
    ----------
    bins : number of bins.
    scheme : "mass" (equal numbers of rows; equal scores are never split, so there may be fewer bins) or "width" (edges
        j / bins; a bin without rows keeps its centre).
    input : "probs" or "logits" (turned into probabilities).
    multiclass, normalize, classes : as in `PlattScaling`. Renormalised rows in which every map gives 0 become uniform.

    Attributes
    ----------
    maps_ : the steps, with inner `edges` and `values`.

    References
    ----------
    Zadrozny, Elkan. Obtaining calibrated probability estimates from decision trees and naive Bayesian classifiers. ICML
    2001.

    Examples
    --------
    >>> from truecal.recalibrate import HistogramBinning
    >>> fixed = HistogramBinning(bins=2).fit([0.1, 0.2, 0.3, 0.7, 0.8, 0.9], [0, 0, 1, 1, 0, 1])
    >>> fixed.predict_proba([0.2, 0.6])[:, 1].round(3)
    array([0.333, 0.667])
    """

    def __init__(
        self,
        bins: int = 15,
        *,
        scheme: Literal["mass", "width"] = "mass",
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
        check_whole(self.bins, "bins", 1)
        check_choice(self.scheme, ("mass", "width"), "scheme")

    def scores(self, outputs: Floats) -> Float64s:
        return outputs.astype(np.float64) if self.input == "probs" else softmax(outputs)

    def fit_map(self, scores: Float64s, outcomes: Float64s, weights: Float64s) -> StepMap:
        if self.scheme == "mass":
            edges = mass_edges(Profile.from_arrays(scores, outcomes, weights), self.bins)
        else:
            edges = np.arange(1, self.bins) / self.bins
        bin_of = np.searchsorted(edges, scores, side="right")
        count = len(edges) + 1
        mass = np.bincount(bin_of, weights, count)
        ones = np.bincount(bin_of, weights * outcomes, count)
        centre = (np.arange(count) + 0.5) / count
        return StepMap(edges, np.where(mass > 0, ones / np.where(mass > 0, mass, 1.0), centre))

    def read_map(self, state: Mapping[str, Any]) -> StepMap:
        steps = read_steps(state)
        if len(steps.values) > self.bins:
            raise FileError(f'"values" has {len(steps.values)} bins, but "bins" is {self.bins}')
        return steps
