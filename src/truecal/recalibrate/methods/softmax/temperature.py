"""Temperature scaling: one number that makes all predictions more, or less, sure of themselves."""

from collections.abc import Mapping, Sequence
from typing import Any

from truecal.recalibrate.export import fields
from truecal.recalibrate.methods.softmax.family import SoftmaxScaling, Zeros
from truecal.recalibrate.outputs import Input
from truecal.recalibrate.solvers.newton import fit_inverse_temperature
from truecal.types import Float64s, Floats, Indices


class TemperatureScaling(SoftmaxScaling):
    r"""Divide all logits by one temperature.

    .. math:: p = \mathrm{softmax}(z / T), \qquad T = \arg\max_T \sum_i w_i \log p_{i, y_i}

    Found by Newton's method on the likelihood, convex in 1/T; the order of classes, and so accuracy, never changes.

    Parameters
    ----------
    input : "logits" or "probs" (whose logarithms are the logits up to a constant per row, which does not matter here).
    zeros : what a probability of exactly 0 (a logit of minus infinity) means. "keep": the class is ruled out and stays
        so; a row whose true class was ruled out is refused. "floor": the class is very improbable, as votes of trees or
        neighbours and rounded numbers are meant; no logit counts as further than `floor_` below its row's largest.
    classes : names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    temperature_ : T. Above 1: the model was overconfident.
    floor_ : infinite for zeros="keep". Where some row's true class has a probability of 0, the likelihood chooses it
        together with T; elsewhere it is 2 T log(n + 1), so that an improbable class keeps (n + 1)^-2 of the largest.

    Notes
    -----
    Two kinds of data have no finite optimum, and a warning says so. If every label has the row's largest logit, the
    likelihood grows as T goes to 0; T is then such that the mean confidence is Laplace's estimate of the accuracy after n
    rows without an error, (n + 1) / (n + 2).
    If the logits are uninformative or worse, it grows as T goes to infinity; then T is a thousand times the largest
    difference between two logits of a row, where probabilities are uniform to 0.1 %. Logits that are equal within each
    row leave T = 1.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger. On calibration of modern neural networks. ICML 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibrate import TemperatureScaling
    >>> logits = [[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 0.0], [0.0, 4.0]]
    >>> fixed = TemperatureScaling(input="logits").fit(logits, [0, 0, 1, 1, 0, 1])
    >>> round(fixed.temperature_, 3)  # right five times in six: log odds of log 5, not 4
    2.485
    >>> fixed.predict_proba([[4.0, 0.0]]).round(3)
    array([[0.833, 0.167]])
    """

    def __init__(
        self,
        *,
        input: Input = "logits",  # noqa: A002
        zeros: Zeros = "keep",
        classes: Sequence[object] | None = None,
    ) -> None:
        self.input = input
        self.zeros = zeros
        self.classes = classes

    def _learn(self, outputs: Floats, labels: Indices, weights: Float64s | None) -> None:
        optimum = fit_inverse_temperature(self._labelled(outputs, labels, weights))
        self.temperature_ = 1.0 / optimum.value
        if optimum.ending == "separable":
            self._warn(
                "every label has its row's largest logit, so the likelihood has no finite optimum (T goes to 0); "
                "the mean confidence was set to the accuracy that Laplace's rule allows after n rows without an error, "
                f"(n + 1) / (n + 2), which gives T = {self.temperature_:.4g}"
            )
        elif optimum.ending == "flat":
            self._warn(
                "the logits do not favour the labels, so the likelihood has no finite optimum (T goes to infinity); "
                f"T was set to {self.temperature_:.4g}"
            )

    def _affine(self) -> tuple[float, float]:
        return 1.0 / self.temperature_, 0.0

    def _state(self) -> dict[str, Any]:
        return {"temperature": self.temperature_, **self._floor_state()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.temperature_ = fields.number(state, "temperature", low=1e-300)
        self._restore_floor(state)
