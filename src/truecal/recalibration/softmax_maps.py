"""Maps of all logits of a row: temperatures, bias-corrected, vector, ensemble, matrix and Dirichlet scaling."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, inf, isfinite, log
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

import truecal as tc
from truecal import options
from truecal.errors import FileError, InputError
from truecal.recalibration.contract import (
    ImpossibleRowError,
    Input,
    Recalibrator,
    class_logits,
    class_scores,
    warn_if_constant,
)
from truecal.recalibration.export import softmax
from truecal.recalibration.likelihood import (
    LOG_ZERO,
    LabelledLogits,
    fit_floored_temperature,
    fit_inverse_temperature,
    fit_possible_inverse,
    fit_squared_inverse,
    floor_logits,
    scaled_softmax,
)
from truecal.recalibration.serialization import Learned, read_number, read_numbers
from truecal.recalibration.solvers import (
    Penalty,
    SmoothLogs,
    fit_matrix,
    fit_scale_and_bias,
    fit_squared_weights,
    platt_targets,
)
from truecal.special import logit
from truecal.types import Float64s, Floats, Indices

Zeros = Literal["keep", "floor"]

_TEMPERATURE = Learned(low=1e-300)
_FLOOR = Learned(low=0.0, missing=inf)
_MAX_STRENGTH = 1e100  # derived: of a penalty: its square must be finite, and nothing is learned long before
# Strength of the penalties of matrix and Dirichlet scaling, tuned on the 160 splits of `tests.recalibration.peers --choose`: 0.03,
# 0.1, 0.3 and 1 had mean log losses of 0.466, 0.454, 0.450 and 0.449, and were above unpenalised matrix scaling (1.612) by more
# than 0.001 in 6, 6, 7 and 11 % of them. Strengths chosen by cross-validation were no better (0.450 and 6 %).
_STRENGTH = 0.3
_DIAGONAL_STRENGTH = 0.3 * _STRENGTH  # by choice: the diagonal is nearly free
# By choice: least share of the uniform distribution in an ensemble, times K / (K - 1); its cost in log loss where it explains
# nothing.
_MIN_UNIFORM = 8e-4


@dataclass(eq=False, repr=False, kw_only=True)
class ScaledSoftmax(Recalibrator):
    """softmax(scale * z + bias), where z are logits or the logarithms of probabilities, at most `floor_` below the largest."""

    zeros: Zeros = "keep"

    def _check_params(self) -> None:
        """Refuse unknown values of `input` and `zeros`.

        >>> TemperatureScaling(zeros="drop")._check_params()
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: zeros must be 'keep' or 'floor', not 'drop'
        """
        super()._check_params()
        options.choice(self.zeros, get_args(Zeros), "zeros")

    @abstractmethod
    def _scale_and_bias(self) -> tuple[float | Float64s, float | Float64s]:
        """Return scale and bias of softmax(scale z + bias), each one number or an array (K,), from what `fit` set."""

    def _apply(self, outputs: Float64s) -> Float64s:
        """Compute softmax(scale * z + bias) of checked outputs (n, K), z the logits or log probabilities raised to the floor."""
        logits = floor_logits(class_logits(outputs, self.input), self.floor_)
        return scaled_softmax(logits, *self._scale_and_bias())

    def _labelled_logits(self, outputs: Floats, labels: Indices, weights: Float64s | None) -> LabelledLogits:
        """Return the logits to learn from, with labels and weights, and set `floor_`.

        zeros="keep": the floor is infinite, and a row whose true class has probability 0 is refused. zeros="floor": with such a
        row the floor is fitted, and logits are raised to it; else it is 2 T log(n + 1), for later rows alone.
        """
        data = LabelledLogits.of(class_logits(outputs, self.input), labels, weights)
        impossible = data.impossible()
        self.floor_ = inf
        if self.zeros == "floor" and impossible.any():
            _, self.floor_ = fit_floored_temperature(data)
            return data.raise_to_floor(self.floor_)
        if self.zeros == "floor":
            # for later rows: rows that contradict no 0 do not determine a floor, and floored rows would lower T
            self.floor_ = 2 * log(data.total + 1) / fit_inverse_temperature(data).value
        elif impossible.any():
            row = int(impossible.argmax())
            raise ImpossibleRowError(
                row,
                f"gives its true class {self.order_.describe([labels[row]])} a probability of exactly 0, which no scaling "
                'can raise: pass the logits (input="logits"), or probabilities of higher precision; '
                'zeros="floor" and the matrix maps read 0 as very improbable',
            )
        return data

    def _fit_scale_and_bias(
        self, outputs: Floats, labels: Indices, weights: Float64s | None, scales: int
    ) -> tuple[Float64s, Float64s]:
        """Fit scales (`scales` is 1 or K) and biases (K,) to logits floored as in predictions; return both.

        Warn where the data are separable or a class is absent, so that only the penalty keeps them finite.
        """
        data = self._labelled_logits(outputs, labels, weights)
        data = data.raise_to_floor(self.floor_) if isfinite(self.floor_) else data
        scale, bias, separable = fit_scale_and_bias(data, np.full(scales, fit_inverse_temperature(data).value))
        if separable or self.absent_classes_:
            absent = f"class {self.order_.describe(self.absent_classes_)} never occurs in y"
            reason = absent if self.absent_classes_ else "the data can be separated perfectly"
            self._warn(f"{reason}, so the likelihood has no finite optimum; a penalty decides how far it goes")
        return scale, bias


class TemperatureScaling(ScaledSoftmax):
    r"""Divide all logits by one temperature.

    .. math:: p = \mathrm{softmax}(z / T), \qquad T = \arg\max_T \sum_i w_i \log p_{i, y_i}

    The likelihood is concave in 1 / T; Newton's method. The order of the classes, and so accuracy, never changes.

    Parameters
    ----------
    input : {"logits", "probs"}, default "logits"
        What X holds. The logarithms of probabilities are the logits up to a constant per row, which does not matter.
    zeros : {"keep", "floor"}, default "keep"
        What a probability of exactly 0 (a logit of minus infinity) means. "keep": the class is ruled out and stays so;
        a row whose true class was ruled out is refused. "floor": the class is very improbable, as in votes of trees or
        neighbours and in rounded numbers; no logit counts as further than `floor_` below its row's largest.
    classes : sequence, default None
        Names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    temperature_ : float
        T. Above 1: the model was overconfident.
    floor_ : float
        Infinite for zeros="keep". Where some row's true class has a probability of 0, the likelihood chooses it together
        with T; elsewhere it is 2 T log(n + 1), so that an improbable class keeps (n + 1)^-2 of the largest.

    Notes
    -----
    Two kinds of data have no finite optimum, and a warning says so. If every label has the row's largest logit, the
    likelihood grows as T goes to 0; T is then such that the mean confidence is Laplace's estimate of the accuracy after n
    rows without an error, (n + 1) / (n + 2). If the logits are uninformative or worse, it grows as T goes to infinity; then
    T is a thousand times the largest difference between two logits of a row, where probabilities are uniform to 0.1 %.
    Logits that are equal within each row leave T = 1.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger. On calibration of modern neural networks. ICML 2017.
    https://doi.org/10.48550/arXiv.1706.04599

    See Also
    --------
    BiasCorrectedTemperature : Adds one bias per class.
    EnsembleTemperature : Mixes in the original and the uniform distribution.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibration import TemperatureScaling
    >>> logits = [[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 0.0], [0.0, 4.0]]
    >>> fitted = TemperatureScaling(input="logits").fit(logits, [0, 0, 1, 1, 0, 1])
    >>> round(fitted.temperature_, 3)  # right five times in six: log odds of log 5, not 4
    2.485
    >>> fitted.predict_proba([[4.0, 0.0]]).round(3)
    array([[0.833, 0.167]])
    """

    _learned: ClassVar = {"temperature": _TEMPERATURE, "floor": _FLOOR}

    def recalibrate(self, preds: tc.Predictions, X: ArrayLike | None = None) -> tc.Predictions:
        """Return the same rows with recalibrated probabilities.

        Parameters
        ----------
        preds : Predictions
            Where both these and the recalibrator name their classes, the names decide which column is which.
        X : array-like of shape (n,) or (n, K), default None
            The logits. Without them the logarithms of the probabilities are taken: one temperature ignores the constant of
            each row that the softmax took away.

        Returns
        -------
        preds : Predictions
            Labels, weights, clusters and columns as before.
        """
        if X is None and self.input == "logits" and isinstance(preds, tc.Predictions):
            with np.errstate(divide="ignore"):  # a class that is ruled out has a logit of minus infinity
                X = logit(preds.probs) if preds.binary else np.log(preds.probs, dtype=np.float64)
        return super().recalibrate(preds, X)

    def _learn(self, outputs: Floats, labels: Indices, weights: Float64s | None) -> None:
        """Set `temperature_` by maximum likelihood; warn where the likelihood has no finite optimum.

        Set `floor_`, how far below the largest of its row a logit may be (inf: any distance).
        """
        optimum = fit_inverse_temperature(self._labelled_logits(outputs, labels, weights))
        self.temperature_ = 1.0 / optimum.value
        if optimum.ending == "separable":
            self._warn(
                "every label has its row's largest logit, so the likelihood has no finite optimum (T goes to 0); "
                "the mean confidence was set to Laplace's estimate of the accuracy after n rows without an error, "
                f"(n + 1) / (n + 2), which gives T = {self.temperature_:.4g}"
            )
        elif optimum.ending == "flat":
            self._warn(
                "the logits do not favour the labels, so the likelihood has no finite optimum (T goes to infinity); "
                f"T was set to {self.temperature_:.4g}"
            )

    def _scale_and_bias(self) -> tuple[float, float]:
        """Return 1 / T and 0.

        >>> scaling = TemperatureScaling()
        >>> scaling.temperature_ = 2.0
        >>> scaling._scale_and_bias()
        (0.5, 0.0)
        """
        return 1.0 / self.temperature_, 0.0


class BiasCorrectedTemperature(ScaledSoftmax):
    r"""Divide all logits by one temperature and add one bias per class (BCTS).

    .. math:: p = \mathrm{softmax}(z / T + b), \qquad \sum_k b_k = 0

    Maximum likelihood, by L-BFGS with the analytic gradient from the best plain temperature.

    Parameters
    ----------
    input : {"logits", "probs"}, default "logits"
        What X holds; the logarithms of probabilities are taken.
    zeros : {"keep", "floor"}, default "keep"
        What a probability of exactly 0 means; as in `TemperatureScaling`.
    classes : sequence, default None
        Names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    temperature_ : float
        T.
    bias_ : ndarray of shape (K,)
        b, in the order of the columns of X.
    floor_ : float
        As in `TemperatureScaling`.

    Notes
    -----
    Biases and the change of the scale relative to the best temperature are penalised as in `VectorScaling`.

    References
    ----------
    Alexandari, Kundaje, Shrikumar. Maximum likelihood with bias-corrected calibration is hard-to-beat at label shift
    adaptation. ICML 2020. https://doi.org/10.48550/arXiv.1901.06852

    See Also
    --------
    PriorShift : Adapts the class frequencies to unlabelled rows.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibration import BiasCorrectedTemperature
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(20_000, 3))
    >>> labels = (2 * logits + [0.5, 0.0, -0.5] + rng.gumbel(size=logits.shape)).argmax(axis=1)
    >>> fitted = BiasCorrectedTemperature(input="logits").fit(logits, labels)
    >>> round(fitted.temperature_, 1), fitted.bias_.round(1)
    (0.5, array([ 0.5,  0. , -0.5]))
    """

    _learned: ClassVar = {"temperature": _TEMPERATURE, "bias": Learned(axes=1), "floor": _FLOOR}

    def _learn(self, outputs: Floats, labels: Indices, weights: Float64s | None) -> None:
        """Set `temperature_` and `bias_` (K,), of mean 0, by penalised maximum likelihood.

        Set `floor_`, how far below the largest of its row a logit may be (inf: any distance).
        """
        scale, self.bias_ = self._fit_scale_and_bias(outputs, labels, weights, 1)
        self.temperature_ = float(1.0 / scale[0])

    def _scale_and_bias(self) -> tuple[float, Float64s]:
        """Return 1 / T and the biases (K,)."""
        return 1.0 / self.temperature_, self.bias_


class VectorScaling(ScaledSoftmax):
    r"""Scale and shift the logit of every class by numbers of its own.

    .. math:: p = \mathrm{softmax}(w \odot z + b), \qquad \sum_k b_k = 0

    Maximum likelihood, by L-BFGS with the analytic gradient from the best plain temperature. Unlike a temperature it can
    change which class comes first, and it depends on the level of each row's logits, on which a softmax does not.

    Parameters
    ----------
    input : {"logits", "probs"}, default "logits"
        What X holds; the logarithms of probabilities are taken.
    zeros : {"keep", "floor"}, default "keep"
        What a probability of exactly 0 means; as in `TemperatureScaling`.
    classes : sequence, default None
        Names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    scale_ : ndarray of shape (K,)
        w, in the order of the columns of X.
    bias_ : ndarray of shape (K,)
        b.
    floor_ : float
        As in `TemperatureScaling`.

    Notes
    -----
    A penalty of (K / n) max(0.001, 0.7 K / n) on squared biases and squared changes of the scale relative to the best
    temperature keeps the optimum finite where a class can be separated from all others; it vanishes with the number of
    rows. If some parameters put every label first it is (K / n) / 10, and where a class never occurs in y (K / n) / 1000;
    a warning says so.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger. On calibration of modern neural networks. ICML 2017.
    https://doi.org/10.48550/arXiv.1706.04599

    See Also
    --------
    StructuredMatrixScaling : With ``off_diagonal=None`` a penalised form for few rows.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibration import VectorScaling
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(20_000, 3))
    >>> labels = (logits * [2.0, 1.0, 0.5] + rng.gumbel(size=logits.shape)).argmax(axis=1)
    >>> VectorScaling(input="logits").fit(logits, labels).scale_.round(1)
    array([2. , 1. , 0.5])
    """

    _learned: ClassVar = {"scale": Learned(axes=1), "bias": Learned(axes=1), "floor": _FLOOR}

    def _learn(self, outputs: Floats, labels: Indices, weights: Float64s | None) -> None:
        """Set `scale_` (K,) and `bias_` (K,), of mean 0, by penalised maximum likelihood.

        Set `floor_`, how far below the largest of its row a logit may be (inf: any distance).
        """
        self.scale_, self.bias_ = self._fit_scale_and_bias(outputs, labels, weights, outputs.shape[1])

    def _scale_and_bias(self) -> tuple[Float64s, Float64s]:
        """Return the scales (K,) and the biases (K,)."""
        return self.scale_, self.bias_


class TopVersusAll(Recalibrator):
    r"""Divide all logits by the temperature whose confidence best predicts whether the predicted class is right.

    .. math:: p = \mathrm{softmax}(z / T), \qquad
        \min_T \; -\sum_i w_i \big[ r_i \log c_i + (1 - r_i) \log(1 - c_i) \big], \qquad
        c_i = \max_k p_{ik}, \; r_i = [\arg\max_k z_{ik} = y_i]

    With a thousand classes a map per class has a handful of positives. Whether the prediction is right is one binary problem
    with all rows. The predicted class never changes.

    Parameters
    ----------
    input : {"logits", "probs"}, default "logits"
        What X holds.
    classes : sequence, default None
        Names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    temperature_ : float
        T.

    Notes
    -----
    Targets are Platt's, so a finite optimum exists where the prediction is always right. For another map of the confidence use
    its ``multiclass="top-label"``, for example ``IsotonicCalibration(multiclass="top-label")``.

    References
    ----------
    Le Coz, Herbin, Adjed. Confidence calibration of classifiers with many classes. NeurIPS 2024.
    https://doi.org/10.48550/arXiv.2411.02988

    See Also
    --------
    TemperatureScaling : The temperature of the likelihood of all classes.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibration import TopVersusAll
    >>> rng = np.random.default_rng(0)
    >>> logits = 4 * rng.normal(size=(5000, 100))
    >>> labels = (logits / 2 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    >>> round(TopVersusAll().fit(logits, labels).temperature_, 1)
    2.0
    """

    _learned: ClassVar = {"temperature": _TEMPERATURE}

    def _learn(self, outputs: Floats, labels: Indices, weights: Float64s | None) -> None:
        """Set `temperature_`, of the least binary log loss of the top confidence; refuse a wrong row of confidence exactly 1."""
        logits = class_logits(outputs, self.input)
        correct = (labels == logits.argmax(axis=1)).astype(np.float64)
        warn_if_constant(self, correct)
        contradicted = (np.count_nonzero(logits > LOG_ZERO, axis=1) == 1) & (correct == 0)
        if contradicted.any():
            raise ImpossibleRowError(
                int(contradicted.argmax()),
                "gives its leading class a probability of exactly 1 and is wrong, which no temperature can explain: pass the "
                'logits (input="logits"), or use a map that takes 0 and 1, such as IsotonicCalibration(multiclass="top-label")',
            )
        row_weights = np.ones(len(labels)) if weights is None else weights
        self.temperature_ = 1.0 / _fit_binary_inverse(logits, correct, row_weights)

    def _apply(self, outputs: Float64s) -> Float64s:
        """Compute softmax(z / T) of checked outputs (n, K)."""
        return scaled_softmax(class_logits(outputs, self.input), 1.0 / self.temperature_)


def _fit_binary_inverse(logits: Floats, correct: Float64s, weights: Float64s) -> float:
    """Fit the inverse temperature whose confidence has the least binary log loss, with Platt's targets.

    `correct` (n,) is 1 where the largest of the logits (n, K) is the label. One variable, u = log(1 / T), searched over four
    orders of magnitude on each side of where logits are of order one.

    >>> logits = np.array([[2.0, 0.0], [0.0, 2.0]] * 200)
    >>> inverse = _fit_binary_inverse(logits, np.array([1.0, 1.0, 1.0, 0.0] * 100), np.ones(400))
    >>> round(2 * inverse, 2)  # near ln 3, the log odds of 300 right answers of 400
    1.1
    """
    from scipy.optimize import minimize_scalar

    targets = platt_targets(correct, weights)
    rows, count = logits.shape
    top = logits.argmax(axis=1)

    def loss(u: float) -> float:
        """Sum w (log(1 + e^o) - t o) over rows, o the log odds of the leading class of z e^u, w the weights, t Platt's targets."""
        # the log odds of the leading class against the others, exact where its probability rounds to 1
        with np.errstate(over="ignore"):
            scaled = np.maximum(logits.astype(np.float64) * exp(u), LOG_ZERO)
        odds = class_scores(scaled, "logits", count)[np.arange(rows), top]
        return float(weights @ (np.logaddexp(0.0, odds) - targets * odds))

    finite = np.where(logits > LOG_ZERO, logits, np.nan).astype(np.float64)
    spread = float(np.nanmean(np.nanstd(finite, axis=1))) or 1.0
    grid = -log(spread) + np.linspace(-9.2, 9.2, 24)
    best = int(np.argmin([loss(float(u)) for u in grid]))
    bounds = (grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
    return exp(float(minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-9}).x))


class EnsembleTemperature(Recalibrator):
    r"""Mix the temperature-scaled, the original and the uniform distribution, which rank the classes alike.

    .. math:: p = w_1\, \mathrm{softmax}(z / T) + w_2\, \mathrm{softmax}(z) + w_3 / K, \qquad w \ge 0, \; \sum w = 1

    T minimises the squared error of softmax(z / T), within a factor e^1.5 of the likelihood's T; then w that of the mixture
    (convex in w), as in the paper. The predicted class never changes.

    Parameters
    ----------
    input : {"logits", "probs"}, default "logits"
        What X holds; the logarithms of probabilities are taken.
    classes : sequence, default None
        Names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    temperature_ : float
        T.
    weights_ : ndarray of shape (3,)
        w.

    Notes
    -----
    Squared errors are bounded, so rows with a confident wrong prediction hardly affect T: w_3 explains them. It is at least
    0.0008 K / (K - 1), so that no class is ever impossible, at a cost of 0.0008 in log loss at most.

    References
    ----------
    Zhang, Kailkhura, Han. Mix-n-match: ensemble and compositional methods for uncertainty calibration in deep learning.
    ICML 2020, section 3.2. https://doi.org/10.48550/arXiv.2003.07329

    See Also
    --------
    TemperatureScaling : The first part alone.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibration import EnsembleTemperature
    >>> rng = np.random.default_rng(0)
    >>> logits = 4 * rng.normal(size=(20_000, 3))
    >>> labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    >>> noisy = rng.random(20_000) < 0.3
    >>> labels[noisy] = rng.integers(0, 3, noisy.sum())  # three labels in ten are guesses
    >>> bool(0.2 < EnsembleTemperature().fit(logits, labels).weights_[2] < 0.35)
    True
    """

    def _learn(self, outputs: Floats, labels: Indices, weights: Float64s | None) -> None:
        """Set `temperature_`, of the least squared error of softmax(z / T), then `weights_` (3,), of that of the mixture.

        The weights, of softmax(z / T), softmax(z) and 1 / K, sum to 1; the last is at least 8e-4 K / (K - 1).
        """
        data = LabelledLogits.of(class_logits(outputs, self.input), labels, weights)
        count = outputs.shape[1]
        inverse = fit_squared_inverse(data)
        low = np.array([0.0, 0.0, _MIN_UNIFORM * count / (count - 1)])
        self.weights_ = fit_squared_weights(data, (inverse, 1.0), low)
        self.temperature_ = 1.0 / inverse

    def _apply(self, outputs: Float64s) -> Float64s:
        """Compute w1 softmax(z / T) + w2 softmax(z) + w3 / K of checked outputs (n, K), the w those of `weights_`."""
        logits = class_logits(outputs, self.input)
        w1, w2, w3 = self.weights_.tolist()
        # the softmax of logarithms: probabilities of low precision do not quite sum to 1
        scaled, original = scaled_softmax(logits, 1.0 / self.temperature_), scaled_softmax(logits, 1.0)
        return w1 * scaled + w2 * original + w3 / len(self.classes_)

    def _state(self) -> dict[str, Any]:
        """Return {"temperature": T, "weights": those of the scaled, the original and the uniform distribution}.

        >>> scaling = EnsembleTemperature()
        >>> scaling.temperature_, scaling.weights_ = 2.0, np.array([0.5, 0.25, 0.25])
        >>> scaling._state()
        {'temperature': 2.0, 'weights': [0.5, 0.25, 0.25]}
        """
        return {"temperature": self.temperature_, "weights": self.weights_.tolist()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        """Read "temperature" > 0, and three "weights" in [0, 1] that sum to 1.

        >>> scaling = EnsembleTemperature()
        >>> scaling._restore({"temperature": 2.0, "weights": [0.5, 0.25, 0.25]})
        >>> scaling._state()
        {'temperature': 2.0, 'weights': [0.5, 0.25, 0.25]}
        """
        self.temperature_ = read_number(state, "temperature", low=1e-300)
        self.weights_ = read_numbers(state, "weights", 3, low=0.0, high=1.0)
        if abs(self.weights_.sum() - 1) > 1e-9:
            raise FileError('"weights" must sum to 1')


# ----------------------------------------------------------------------------------------------------
# Matrix scaling: every logit may depend on all others, and a penalty shrinks to temperature scaling


class PenalisedMatrix(Recalibrator):
    """softmax(x + D x + b), where x are smoothed, temperature-scaled log probabilities (see `solvers.fit_matrix`)."""

    @abstractmethod
    def _penalty(self) -> Penalty:
        """Return the strengths of the penalties on the diagonal of D, off it (None: D is diagonal), and on the biases."""

    def _check_params(self) -> None:
        """Refuse strengths that are no numbers from 0 to 1e100; `off_diagonal` may be None.

        >>> MatrixScaling(intercept=-1)._check_params()
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: intercept must be a number from 0 to 1e+100, not -1
        """
        super()._check_params()
        for name, value in vars(self._penalty()).items():
            is_strength = isinstance(value, int | float) and 0 <= value <= _MAX_STRENGTH
            if not is_strength and not (value is None and name == "off_diagonal"):
                raise InputError(f"{name} must be a number from 0 to {_MAX_STRENGTH:g}, not {value!r}")

    def _learn(self, outputs: Floats, labels: Indices, weights: Float64s | None) -> None:
        """Set `temperature_` (and `floor_`, where a true class has probability 0), `uniform_` = 1 / (n + 1), then D and b.

        D is `change_`, (K, K) or its diagonal (K,), b is `bias_` (K,).
        """
        data = LabelledLogits.of(class_logits(outputs, self.input), labels, weights)
        if data.impossible().any():
            inverse, self.floor_ = fit_floored_temperature(data)
        else:
            inverse, self.floor_ = fit_possible_inverse(data), inf
        self.temperature_, self.uniform_ = 1.0 / inverse, 1 / (data.total + 1)
        smooth = SmoothLogs(inverse, self.uniform_, self.floor_)
        self.change_, self.bias_ = fit_matrix(data, smooth, self._penalty())

    def _apply(self, outputs: Float64s) -> Float64s:
        """Compute softmax(x + D x + b) of checked outputs (n, K), x = log((1 - u) softmax(z / T) + u / K) with u = `uniform_`."""
        logits = floor_logits(class_logits(outputs, self.input), self.floor_)
        scaled = scaled_softmax(logits, 1.0 / self.temperature_)
        x = np.log((1 - self.uniform_) * scaled + self.uniform_ / len(self.classes_))
        change = x * self.change_ if self.change_.ndim == 1 else x @ self.change_.T
        probs: Float64s = softmax(x + change + self.bias_)
        return probs

    @property
    def _learned(self) -> Mapping[str, Learned]:  # type: ignore[override]
        """The learned attributes by name: D ("change") is a matrix, or its diagonal where `off_diagonal` is None.

        >>> MatrixScaling()._learned["change"].axes, StructuredMatrixScaling(off_diagonal=None)._learned["change"].axes
        (2, 1)
        """
        return {
            "temperature": _TEMPERATURE,
            "uniform": Learned(low=0.0, high=1.0),
            "change": Learned(axes=1 if self._penalty().off_diagonal is None else 2),
            "bias": Learned(axes=1),
            "floor": _FLOOR,
        }


@dataclass(eq=False, repr=False, kw_only=True)
class MatrixScaling(PenalisedMatrix):
    r"""Multiply the logits by a full matrix and add a bias per class, with penalties on off-diagonal scales and biases.

    .. math:: p = \mathrm{softmax}(W x + b), \qquad
        \min \; \overline{-\log p_y} + \frac{K(K-1)}{n} \lambda \sum_{j \ne k} W_{jk}^2 + \frac{K}{n} \mu \sum_k b_k^2

    x are the logits after temperature scaling, mixed with 1 / (n + 1) of the uniform distribution so that zeros have a
    logarithm; only differences of x within a row matter. Changes of the diagonal have the strength 0.09 K / n, so that few
    rows do not overfit it. The problem is convex; L-BFGS.

    Parameters
    ----------
    off_diagonal : float, default 0.3
        Strength lambda of the penalty on off-diagonal scales; 0 for none.
    intercept : float, default 0.3
        Strength mu of the penalty on biases; 0 for none.
    input : {"logits", "probs"}, default "logits"
        What X holds; the logarithms of probabilities are taken.
    classes : sequence, default None
        Names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    temperature_ : float
        T, fitted first.
    uniform_ : float
        Share of the uniform distribution mixed in, 1 / (n + 1).
    floor_ : float
        How far below the row's largest a logit counts; infinite unless a row's true class had a probability of 0.
    change_ : ndarray of shape (K, K)
        W - 1, which acts on log probabilities at the temperature `temperature_`.
    bias_ : ndarray of shape (K,)
        b.

    Notes
    -----
    With K classes there are K (K + 1) parameters; without penalties they need many times as many rows. A class that never
    occurs, and a probability of exactly 0 for the true class, are accepted: the penalty, the mixture and the floor keep the
    optimum finite.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger. On calibration of modern neural networks. ICML 2017.
    https://doi.org/10.48550/arXiv.1706.04599
    Kull et al. Beyond temperature scaling: obtaining well-calibrated multiclass probabilities with Dirichlet calibration.
    NeurIPS 2019 (the penalties). https://doi.org/10.48550/arXiv.1910.12656

    See Also
    --------
    StructuredMatrixScaling : Penalises the diagonal too; one default for few and for many rows.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibration import MatrixScaling
    >>> rng = np.random.default_rng(0)
    >>> logits = 2 * rng.normal(size=(20_000, 3))
    >>> truth = np.array([[1.0, 0.3, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> labels = (logits @ truth.T + rng.gumbel(size=logits.shape)).argmax(axis=1)
    >>> fitted = MatrixScaling(off_diagonal=0.0, intercept=0.0).fit(logits, labels)
    >>> weights = (np.eye(3) + fitted.change_) / fitted.temperature_
    >>> error = weights - weights.mean(axis=0) - (truth - truth.mean(axis=0))  # only differences within a row matter
    >>> bool(abs(error).max() < 0.1)
    True
    """

    off_diagonal: float = _STRENGTH
    intercept: float = _STRENGTH

    def _penalty(self) -> Penalty:
        """Return Penalty(0.09, off_diagonal, intercept), the strengths on the diagonal of D, off it and on the biases.

        >>> MatrixScaling()._penalty()
        Penalty(diagonal=0.09, off_diagonal=0.3, intercept=0.3)
        """
        return Penalty(_DIAGONAL_STRENGTH, self.off_diagonal, self.intercept)


@dataclass(eq=False, repr=False, kw_only=True)
class DirichletCalibration(MatrixScaling):
    r"""Compute the posterior of Dirichlet distributed probabilities, one Dirichlet per class: softmax(W ln p + b).

    .. math:: \hat p = \mathrm{softmax}(W \ln p + b), \qquad \text{ODIR:} \quad
        \frac{K(K-1)}{n} \lambda \sum_{j \ne k} W_{jk}^2 + \frac{K}{n} \mu \sum_k b_k^2

    The multiclass form of beta calibration. As a family of maps it is matrix scaling of the log probabilities; the fit
    starts from temperature scaling, to which the penalties shrink (the diagonal too, by 0.09 K / n).

    Parameters
    ----------
    off_diagonal : float, default 0.3
        Strength lambda of the penalty on off-diagonal scales; 0 for none. Divided by n, so that one value serves samples of
        all sizes.
    intercept : float, default 0.3
        Strength mu of the penalty on biases; 0 for none.
    input : {"probs", "logits"}, default "probs"
        What X holds; p is the softmax of logits.
    classes : sequence, default None
        Names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    temperature_ : float
        T, fitted first.
    uniform_ : float
        Share of the uniform distribution mixed in, 1 / (n + 1).
    floor_ : float
        As in `MatrixScaling`.
    change_ : ndarray of shape (K, K)
        W - 1, which acts on log probabilities at the temperature `temperature_`.
    bias_ : ndarray of shape (K,)
        b.

    References
    ----------
    Kull, Perello Nieto, Kängsepp, Silva Filho, Song, Flach. Beyond temperature scaling: obtaining well-calibrated
    multiclass probabilities with Dirichlet calibration. NeurIPS 2019. https://doi.org/10.48550/arXiv.1910.12656

    See Also
    --------
    BetaCalibration : The binary form.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibration import DirichletCalibration
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 50_000)
    >>> labels = (2 * np.log(p) + [0.5, 0.0, -0.5] + rng.gumbel(size=p.shape)).argmax(axis=1)
    >>> fitted = DirichletCalibration().fit(p, labels)
    >>> round(fitted.temperature_, 1), (fitted.bias_ - fitted.bias_[1]).round(1)
    (0.5, array([ 0.5,  0. , -0.5]))
    """

    input: Input = "probs"


@dataclass(eq=False, repr=False, kw_only=True)
class StructuredMatrixScaling(PenalisedMatrix):
    r"""Combine a temperature with penalised scales per class, biases and off-diagonal scales.

    .. math:: p = \mathrm{softmax}\big(x + \mathrm{diag}(v) x + M x + b\big), \qquad
        \frac{K}{n}\big(\lambda_v |v|^2 + \lambda_b |b|^2\big) + \frac{K(K-1)}{n} \lambda_M |M|^2

    x are log probabilities at the best temperature, mixed with 1 / (n + 1) of the uniform distribution. Strengths that grow
    with the number of parameters and fall with n make one default serve ten rows per class and ten thousand: few rows give
    temperature scaling, many give matrix scaling. The problem is convex; L-BFGS.

    Parameters
    ----------
    diagonal : float, default 1.0
        Strength lambda_v of the penalty on scales per class.
    off_diagonal : float or None, default 1.0
        Strength lambda_M of the penalty on off-diagonal scales; None leaves M at 0, which is structured vector scaling with
        2 K parameters.
    intercept : float, default 1.0
        Strength lambda_b of the penalty on biases.
    input : {"logits", "probs"}, default "logits"
        What X holds; the logarithms of probabilities are taken.
    classes : sequence, default None
        Names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    temperature_ : float
        T, fitted first.
    uniform_ : float
        Share of the uniform distribution mixed in, 1 / (n + 1).
    floor_ : float
        As in `MatrixScaling`.
    change_ : ndarray of shape (K, K) or (K,)
        diag(v) + M, or v alone.
    bias_ : ndarray of shape (K,)
        b.

    References
    ----------
    Berta, Holzmüller, Jordan, Bach. Structured matrix scaling for multi-class calibration. AISTATS 2026.
    https://doi.org/10.48550/arXiv.2511.03685

    See Also
    --------
    MatrixScaling : Leaves the diagonal nearly free.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibration import StructuredMatrixScaling
    >>> rng = np.random.default_rng(0)
    >>> logits = 3 * rng.normal(size=(4000, 4))
    >>> labels = (logits * [0.3, 0.5, 0.5, 0.7] + rng.gumbel(size=logits.shape)).argmax(axis=1)
    >>> fitted = StructuredMatrixScaling().fit(logits, labels)
    >>> bool(fitted.change_[0, 0] < 0 < fitted.change_[3, 3])  # less of the first class, more of the last
    True
    """

    diagonal: float = 1.0
    off_diagonal: float | None = 1.0
    intercept: float = 1.0

    def _penalty(self) -> Penalty:
        """Return Penalty(diagonal, off_diagonal, intercept), the strengths on the diagonal of D, off it and on the biases.

        >>> StructuredMatrixScaling(off_diagonal=None)._penalty()
        Penalty(diagonal=1.0, off_diagonal=None, intercept=1.0)
        """
        return Penalty(self.diagonal, self.off_diagonal, self.intercept)
