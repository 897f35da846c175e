"""The scaling-binning calibrator: a smooth curve, cut into bins, so that the error of the result can be measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

import truecal as tc
from truecal import options
from truecal.errors import FileError, InputError
from truecal.recalibrate.export import fields
from truecal.recalibrate.export.graph import Value
from truecal.recalibrate.methods.scores.beta import BetaCalibration
from truecal.recalibrate.methods.scores.lift import Multiclass, ScoreMap, ScoreMapping
from truecal.recalibrate.methods.scores.steps import StepMap, mass_edges, read_steps
from truecal.recalibrate.outputs import Input
from truecal.types import Float64s, Floats, Indices


@dataclass(frozen=True, eq=False)
class BinnedCurve:
    """The mean value of a curve in the bin its value falls into."""

    curve: ScoreMap
    steps: StepMap

    def __call__(self, scores: Float64s) -> Float64s:
        return self.steps(self.curve(scores))

    def trace(self, scores: Value) -> Value:
        return self.steps.trace(self.curve.trace(scores))

    def state(self) -> dict[str, Any]:
        return {"curve": self.curve.state(), **self.steps.state()}


class ScalingBinning(ScoreMapping):
    r"""Fit a curve g, bin its values into equal masses, and output the mean of g in each bin.

    .. math:: \hat g_B(s) = \hat\mu[\beta(g(s))], \qquad
        \hat\mu[j] = \mathrm{mean}\{g(s_i) : g(s_i) \in I_j\}

    The outputs take at most `bins` values, so their calibration error can be measured, unlike that of g itself. They
    are means of curve values, not of outcomes as in histogram binning, so they vary less: the error needs of the order
    of 1/eps^2 + B samples to fall to eps, not B/eps^2.

    Parameters
    ----------
    bins : number of bins B.
    scaling : the recalibrator that fits g; None means `BetaCalibration(parameters=2)`, a logistic curve in the log
        odds.
    loss : "likelihood" (that of `scaling`), or "squared": the curve of least squares, as in the paper's algorithm and
        theory; for the default curve only.
    split : "none" uses all rows for all three steps, which the authors found better in practice; "thirds" uses one
        third each for the curve, the bins and the means, as the theory does. A bin that the last third misses takes its
        mean from the second.
    rng : seed of the split.
    input, multiclass, normalize, classes : as in `PlattScaling`.

    Attributes
    ----------
    maps_ : the binned curves, with `curve` and `steps`.

    References
    ----------
    Kumar, Liang, Ma. Verified uncertainty calibration. NeurIPS 2019, section 4.1.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibrate import ScalingBinning
    >>> rng = np.random.default_rng(0)
    >>> s = rng.random(3000)
    >>> y = rng.random(3000) < s**2
    >>> fixed = ScalingBinning(bins=4).fit(s, y).predict_proba(s)[:, 1]
    >>> np.unique(fixed).round(2)
    array([0.03, 0.14, 0.36, 0.78])
    """

    def __init__(
        self,
        bins: int = 15,
        *,
        scaling: ScoreMapping | None = None,
        loss: Literal["likelihood", "squared"] = "likelihood",
        split: Literal["none", "thirds"] = "none",
        rng: int = 0,
        input: Input = "probs",  # noqa: A002
        multiclass: Multiclass = "one-vs-rest",
        normalize: bool = True,
        classes: Sequence[object] | None = None,
    ) -> None:
        super().__init__(input=input, multiclass=multiclass, normalize=normalize, classes=classes)
        self.bins = bins
        self.scaling = scaling
        self.loss = loss
        self.split = split
        self.rng = rng

    def check_params(self) -> None:
        super().check_params()
        options.bins(self.bins)
        options.whole(self.rng, "rng", 0)
        options.choice(self.split, ("none", "thirds"), "split")
        options.choice(self.loss, ("likelihood", "squared"), "loss")
        if self.loss == "squared" and self.scaling is not None:
            raise InputError("loss='squared' fits the default curve; leave out scaling=, which has a loss of its own")
        if self.scaling is not None:
            if not isinstance(self.scaling, ScoreMapping):
                raise InputError(
                    f"scaling must be a recalibrator of one score, such as PlattScaling(), not {self.scaling!r}"
                )
            self.scaling.check_params()
            if self.scaling.input != self.input:
                raise InputError(
                    f'scaling reads input="{self.scaling.input}" but bins input="{self.input}"; declare the same'
                )

    def _curve(self) -> ScoreMapping:
        if self.scaling is not None:
            return self.scaling
        return BetaCalibration(parameters=2, loss=self.loss, input=self.input)

    def scores(self, outputs: Floats) -> Float64s:
        return self._curve().scores(outputs)

    def traced_scores(self, outputs: Value, count: int) -> Value:
        return self._curve().traced_scores(outputs, count)

    def fit_map(self, scores: Float64s, outcomes: Float64s, weights: Float64s) -> BinnedCurve:
        first = second = third = np.arange(len(scores))
        if self.split == "thirds":
            first, second, third = np.array_split(options.generator(self.rng).permutation(len(scores)), 3)
        curve = self._curve().fit_map(scores[first], outcomes[first], weights[first])
        values = curve(scores)
        edges = mass_edges(tc.Profile.from_arrays(values[second], outcomes[second], weights[second]), self.bins)
        bin_of, count = np.searchsorted(edges, values, side="right"), len(edges) + 1

        def means(rows: Indices) -> tuple[Float64s, Float64s]:
            mass = np.bincount(bin_of[rows], weights[rows], count).astype(np.float64)
            total = np.bincount(bin_of[rows], (weights * values)[rows], count)
            return mass, total / np.where(mass > 0, mass, 1.0)

        mass, mean = means(third)
        if not mass.all():
            mean = np.where(mass > 0, mean, means(second)[1])
        return BinnedCurve(curve, StepMap(edges, np.clip(mean, 0.0, 1.0)))  # a mean may round past its terms

    def read_map(self, state: Mapping[str, Any]) -> BinnedCurve:
        curve, steps = fields.field(state, "curve"), read_steps(state)
        if not isinstance(curve, dict):
            raise FileError('"curve" must be an object')
        if len(steps.values) > self.bins:
            raise FileError(f'"values" has {len(steps.values)} bins, but "bins" is {self.bins}')
        return BinnedCurve(self._curve().read_map(curve), steps)
