"""Ensemble temperature scaling: the temperature-scaled, the original and the uniform distribution, mixed."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from truecal import options
from truecal.errors import FileError
from truecal.recalibrate.contract import Recalibrator
from truecal.recalibrate.export import fields
from truecal.recalibrate.export.graph import Value
from truecal.recalibrate.export.traced import traced_logits, traced_probs
from truecal.recalibrate.methods.softmax.family import mixture_inverse, squared_inverse
from truecal.recalibrate.outputs import Input, class_logits
from truecal.recalibrate.solvers.likelihood import LOG_ZERO, LabelledLogits, scaled_softmax
from truecal.recalibrate.solvers.mixture import mixture_weights, squared_weights
from truecal.types import Float64s, Floats, Indices

_PRICE = 8e-4  # what the uniform part costs, at most, in log loss where nothing surprising comes
_SURPRISE = 0.03  # rows that only the uniform part explains, beside those seen


class EnsembleTemperature(Recalibrator):
    r"""A mixture of three distributions that all rank the classes alike.

    .. math:: p = w_1\, \mathrm{softmax}(z / T) + w_2\, \mathrm{softmax}(z) + w_3 / K, \qquad w \ge 0, \; \sum w = 1

    T minimises the squared error of softmax(z / T), within a factor e^1.5 of the likelihood's T; then w that of the mixture
    (convex in w), as in the paper. Squared errors are bounded, so rows the model was sure and wrong about do not dictate T: w_3
    explains them. It is at least 0.0008 K / (K - 1), so that no class is ever impossible; that costs 0.0008 in log loss at
    most. The predicted class never changes.

    Parameters
    ----------
    loss : "squared", or "likelihood" in both steps: T maximises that of softmax(z / T) mixed with 1 / (n + 1) of the uniform
        distribution, with a mean confidence of (n + 1) / (n + 2) at most, as in `TemperatureScaling`; then w that of the
        mixture over the rows and 0.03 of a row more that only the uniform part explains.
    input : "logits" or "probs" (whose logarithms are taken).
    classes : names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    temperature_ : T.
    weights_ : (3,) w.

    References
    ----------
    Zhang, Kailkhura, Han. Mix-n-match: ensemble and compositional methods for uncertainty calibration in deep learning.
    ICML 2020, section 3.2.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibrate import EnsembleTemperature
    >>> rng = np.random.default_rng(0)
    >>> logits = 4 * rng.normal(size=(20_000, 3))
    >>> labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    >>> noisy = rng.random(20_000) < 0.3
    >>> labels[noisy] = rng.integers(0, 3, noisy.sum())  # three labels in ten are guesses
    >>> fixed = EnsembleTemperature().fit(logits, labels)
    >>> bool(0.2 < fixed.weights_[2] < 0.35)
    True
    """

    def __init__(
        self,
        *,
        loss: Literal["squared", "likelihood"] = "squared",
        input: Input = "logits",  # noqa: A002
        classes: Sequence[object] | None = None,
    ) -> None:
        self.loss = loss
        self.input = input
        self.classes = classes

    def check_params(self) -> None:
        super().check_params()
        options.choice(self.loss, ("squared", "likelihood"), "loss")

    def _learn(self, outputs: Floats, labels: Indices, weights: Float64s | None) -> None:
        data = LabelledLogits.of(class_logits(outputs, self.input), labels, weights)
        if self.loss == "likelihood":
            self._maximise_likelihood(data)
            return
        count = outputs.shape[1]
        inverse = squared_inverse(data)
        self.temperature_ = 1.0 / inverse
        self.weights_ = squared_weights(data, (inverse, 1.0), np.array([0.0, 0.0, _PRICE * count / (count - 1)]))

    def _maximise_likelihood(self, data: LabelledLogits) -> None:
        labels, weights, count = data.labels, data.weights, data.logits.shape[1]
        each = np.ones(len(labels)) if weights is None else weights
        rows = np.arange(len(labels))
        plain = scaled_softmax(data.logits, 1.0)[rows, labels]
        uniform = np.full(len(labels), 1.0 / count)
        inverse = mixture_inverse(data)
        self.temperature_ = 1.0 / inverse
        likelihoods = np.column_stack([scaled_softmax(data.logits, inverse)[rows, labels], plain, uniform])
        surprise = [0.0, 0.0, 1.0 / count]
        self.weights_ = mixture_weights(np.vstack([likelihoods, surprise]), np.append(each, _SURPRISE))

    def _apply(self, outputs: Floats) -> Float64s:
        logits, w = class_logits(outputs.astype(np.float64), self.input), self.weights_
        # probabilities of low precision sum to 1 only about: the softmax of their logarithms does
        scaled, original = scaled_softmax(logits, 1.0 / self.temperature_), scaled_softmax(logits, 1.0)
        return w[0] * scaled + w[1] * original + w[2] / outputs.shape[1]

    def _trace(self, outputs: Value) -> Value:
        logits = traced_logits(outputs, self.input)
        scaled = (logits <= LOG_ZERO).where(-np.inf, logits * (1.0 / self.temperature_)).softmax()
        original = traced_probs(outputs, self.input)
        original = original / original.sum()
        w = self.weights_.tolist()
        return w[0] * scaled + w[1] * original + w[2] / len(self.classes_)

    def _state(self) -> dict[str, Any]:
        return {"temperature": self.temperature_, "weights": self.weights_.tolist()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.temperature_ = fields.number(state, "temperature", low=1e-300)
        self.weights_ = fields.numbers(state, "weights", 3, low=0.0, high=1.0)
        if abs(self.weights_.sum() - 1) > 1e-9:
            raise FileError('"weights" must sum to 1')
