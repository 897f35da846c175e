"""Vector scaling: a scale and a bias for every class."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from truecal.recalibrate.export import fields
from truecal.recalibrate.methods.softmax.family import SoftmaxScaling, Zeros, maximise_likelihood
from truecal.recalibrate.outputs import Input
from truecal.recalibrate.solvers.newton import fit_inverse_temperature
from truecal.types import Float64s, Floats, Indices


class VectorScaling(SoftmaxScaling):
    r"""Scale and shift every class's logit by its own numbers.

    .. math:: p = \mathrm{softmax}(w \odot z + b), \qquad \sum_k b_k = 0

    Maximum likelihood, by L-BFGS with the analytic gradient from the best plain temperature. Unlike a temperature it
    can change which class comes first, and unlike a temperature it depends on the level of each row's logits, which a
    softmax does not.

    Parameters
    ----------
    input : "logits" or "probs" (whose logarithms are taken).
    zeros : "keep" or "floor", what a probability of exactly 0 means; as in `TemperatureScaling`.
    classes : names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    scale_ : (K,) w.
    bias_ : (K,) b.
    floor_ : as in `TemperatureScaling`.

    Notes
    -----
    A penalty of (K / n) max(0.001, 0.7 K / n) on squared biases and squared changes of the scale relative to the best
    temperature keeps the optimum finite where a class can be told from all others; it vanishes with the number of rows. If
    some parameters put every label first it is (K / n) / 10, and where a class never occurs in y (K / n) / 1000; a warning
    says so.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger. On calibration of modern neural networks. ICML 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibrate import VectorScaling
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(20_000, 3))
    >>> truth = np.exp(logits * [2.0, 1.0, 0.5])
    >>> labels = (rng.random((20_000, 1)) > (truth / truth.sum(axis=1, keepdims=True)).cumsum(axis=1)).sum(axis=1)
    >>> VectorScaling(input="logits").fit(logits, labels).scale_.round(1)
    array([2. , 1. , 0.5])
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
        start = np.full(outputs.shape[1], fit_inverse_temperature(data).value)
        self.scale_, self.bias_, separable = maximise_likelihood(data, start)
        if separable or self.unseen_:
            self._warn_penalised()

    def _affine(self) -> tuple[Float64s, Float64s]:
        return self.scale_, self.bias_

    def _state(self) -> dict[str, Any]:
        return {"scale": self.scale_.tolist(), "bias": self.bias_.tolist(), **self._floor_state()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._restore_floor(state)
        self.scale_ = fields.numbers(state, "scale", len(self.classes_))
        self.bias_ = fields.numbers(state, "bias", len(self.classes_))
