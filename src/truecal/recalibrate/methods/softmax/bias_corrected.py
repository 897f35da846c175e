"""Bias-corrected temperature scaling: one temperature, and one bias per class for a shift of the class frequencies."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from truecal.recalibrate.export import fields
from truecal.recalibrate.methods.softmax.family import SoftmaxScaling, Zeros, maximise_likelihood
from truecal.recalibrate.outputs import Input
from truecal.recalibrate.solvers.newton import fit_inverse_temperature
from truecal.types import Float64s, Floats, Indices


class BiasCorrectedTemperature(SoftmaxScaling):
    r"""Divide all logits by one temperature and add one bias per class (BCTS).

    .. math:: p = \mathrm{softmax}(z / T + b), \qquad \sum_k b_k = 0

    Maximum likelihood, by L-BFGS with the analytic gradient from the best plain temperature.

    Parameters
    ----------
    input : "logits" or "probs" (whose logarithms are taken).
    zeros : "keep" or "floor", what a probability of exactly 0 means; as in `TemperatureScaling`.
    classes : names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    temperature_ : T.
    bias_ : (K,) b.
    floor_ : as in `TemperatureScaling`.

    Notes
    -----
    Biases and the change of the scale relative to the best temperature are penalised as in `VectorScaling`.

    References
    ----------
    Alexandari, Kundaje, Shrikumar. Maximum likelihood with bias-corrected calibration is hard-to-beat at label shift
    adaptation. ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibrate import BiasCorrectedTemperature
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(20_000, 3))
    >>> truth = np.exp(2 * logits + [0.5, 0.0, -0.5])
    >>> labels = (rng.random((20_000, 1)) > (truth / truth.sum(axis=1, keepdims=True)).cumsum(axis=1)).sum(axis=1)
    >>> fixed = BiasCorrectedTemperature(input="logits").fit(logits, labels)
    >>> round(fixed.temperature_, 2), fixed.bias_.round(1)
    (0.5, array([ 0.5,  0. , -0.5]))
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
        data = self._labelled_above_floor(outputs, labels, weights)
        start = np.array([fit_inverse_temperature(data).value])
        scale, bias, separable = maximise_likelihood(data, start)
        if separable or self.unseen_:
            self._warn_penalised()
        self.temperature_ = float(1.0 / scale[0])
        self.bias_ = bias

    def _affine(self) -> tuple[float, Float64s]:
        return 1.0 / self.temperature_, self.bias_

    def _state(self) -> dict[str, Any]:
        return {"temperature": self.temperature_, "bias": self.bias_.tolist(), **self._floor_state()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._restore_floor(state)
        self.temperature_ = fields.number(state, "temperature", low=1e-300)
        self.bias_ = fields.numbers(state, "bias", len(self.classes_))
