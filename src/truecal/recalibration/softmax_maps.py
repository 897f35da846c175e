"""Maps softmax(scale * z + bias): temperature, bias-corrected, ensemble and vector scaling."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from math import exp, inf, isfinite, log
from typing import Any, Literal, get_args

import numpy as np

from truecal import options
from truecal.errors import FileError
from truecal.recalibration import documents
from truecal.recalibration.contract import ImpossibleRowError, Input, Recalibrator, class_logits
from truecal.recalibration.export import Value, traced_floor, traced_logits, traced_probs
from truecal.recalibration.likelihood import (
    LOG_ZERO,
    LabelledLogits,
    affine_loss,
    earned_inverse,
    fit_inverse_temperature,
    floored_logits,
    scaled_softmax,
    temperature_terms,
)
from truecal.recalibration.solvers import mixture_weights, squared_weights
from truecal.types import Float64s, Floats, Indices

# ----------------------------------------------------------------------------------------------------
# What temperature, bias-corrected temperature and vector scaling share: softmax(scale * z + bias)

Zeros = Literal["keep", "floor"]
_TURNS = 10  # of the search for a temperature, each within a factor e
_NEAR = 1e-6  # a change of log T that no probability shows
# how far the log T of squared errors may be from the likelihood's: with 1, 1.5 and 2, the ensemble had mean log losses of 0.4447,
# 0.4453 and 0.4460 on the 160 splits of `tests.recalibration.peers --choose`, and was above one that looks for T from 0.05 to 5 by
# more than 0.001 in 2, 1 and 0 % of them (by 0.005, 0.002 and 0.001 at worst)
_NEXT_TO = 1.5
# strength of the penalty on scales and biases, which are meant to be free
_PULL = 1e-3
# where rows are separable: with 0.01, 0.1 and 1, the 10 separable of the 160 splits of `tests.recalibration.peers --choose`
# had mean log losses of 0.133, 0.098 and 0.093, and 0, 2 and 4 of them were above a fit without a penalty by more than 0.001
_PULL_SEPARABLE = 0.1
# and where they are few, times K / n: with 0, 0.2, 0.7 and 2, vector scaling had mean log losses of 0.480, 0.472, 0.467 and 0.464
# on the 160 splits, and was above by more than 0.001 in 6, 8, 8 and 9 % of them; with more than 0.8 a fit to 1500 rows shows it
_PULL_FEW = 0.7
_FLOORS = 25  # first guesses of the floor, neighbours differ by a factor of 1.5


class SoftmaxScaling(Recalibrator):
    """A recalibrator of the form softmax(scale * z + bias), where z are logits or the logarithms of probabilities.

    `zeros` and `floor_` are explained in `TemperatureScaling`.
    """

    zeros: Zeros

    def check_params(self) -> None:
        super().check_params()
        options.choice(self.zeros, get_args(Zeros), "zeros")

    @abstractmethod
    def _affine(self) -> tuple[float | Float64s, float | Float64s]:
        """The scale and the bias that were learned."""

    def _apply(self, outputs: Floats) -> Float64s:
        return scaled_softmax(floored_logits(class_logits(outputs, self.input), self.floor_), *self._affine())

    def _labelled(self, outputs: Floats, labels: Indices, weights: Float64s | None) -> LabelledLogits:
        """The rows to learn from, and `floor_`; they are cut at it where it was fitted to them."""
        data = LabelledLogits.of(class_logits(outputs, self.input), labels, weights)
        impossible = data.impossible()
        self.floor_ = inf
        if self.zeros == "floor":
            if impossible.any():
                _, self.floor_ = floored_temperature(data)
                return data.floored(self.floor_)
            # for rows to come: rows that contradict no 0 say nothing about a floor, and cut there would ask for a lower T
            self.floor_ = 2 * log(data.total + 1) / fit_inverse_temperature(data).value
            return data
        if impossible.any():
            row = int(impossible.argmax())
            raise ImpossibleRowError(
                row,
                f"gives its true class {self._named([labels[row]])} a probability of exactly 0, which no scaling can "
                'raise: pass the logits (input="logits"), or probabilities of higher precision; '
                'zeros="floor" and the matrix maps read 0 as very improbable',
            )
        return data

    def _labelled_above_floor(self, outputs: Floats, labels: Indices, weights: Float64s | None) -> LabelledLogits:
        """The same for maps that read single logits and not their order: with each cut where predictions cut it."""
        data = self._labelled(outputs, labels, weights)
        return data.floored(self.floor_) if isfinite(self.floor_) else data

    def _floor_state(self) -> dict[str, float]:
        return {"floor": self.floor_} if isfinite(self.floor_) else {}

    def _restore_floor(self, state: Mapping[str, Any]) -> None:
        self.floor_ = documents.number(state, "floor", low=0.0) if "floor" in state else inf

    def _warn_penalised(self) -> None:
        why = (
            f"class {self._named(self.unseen_)} never occurs in y"
            if self.unseen_
            else "the data can be separated perfectly"
        )
        self._warn(f"{why}, so the likelihood has no finite optimum; a penalty decides how far it goes")

    def _trace(self, outputs: Value) -> Value:
        scale, bias = self._affine()
        logits = traced_logits(outputs, self.input)
        if isfinite(self.floor_):
            return (traced_floor(logits, self.floor_) * scale + bias).softmax()
        return (logits <= LOG_ZERO).where(-np.inf, logits * scale + bias).softmax()


def inverse_temperature(data: LabelledLogits) -> float:
    """The best 1 / T over the rows whose true class is possible at all."""
    possible = ~data.impossible()
    return fit_inverse_temperature(data if possible.all() else data.take(possible)).value if possible.any() else 1.0


def floored_temperature(data: LabelledLogits) -> tuple[float, float]:
    """The best 1 / T and floor c of softmax(max(z - max z, -c) / T), for rows whose true class may be impossible.

    How improbable "0" is depends on where it came from: one vote among ten in a nearest-neighbour model, the smallest
    float in a naive Bayes model. The rows say: c is a parameter of the likelihood as T is. For every c the likelihood is
    concave in 1 / T; c is searched on a grid and then between the neighbours of the best point. The scale of c is the
    largest difference between two possible logits of a row.
    """
    scale = data.spread() or 1.0

    def loss(log_floor: float) -> float:
        floored = data.floored(exp(log_floor))
        inverse = fit_inverse_temperature(floored).value
        log_z, _, _ = temperature_terms(floored, inverse)
        return log_z - inverse * floored.reward()

    grid = np.log(np.geomspace(1e-3 * scale, 10 * scale, _FLOORS))
    step = grid[1] - grid[0]
    best = _better(loss, float(min(grid, key=loss)), step, 1e-4)
    return fit_inverse_temperature(data.floored(exp(best))).value, exp(best)


def mixture_inverse(data: LabelledLogits) -> float:
    """The best 1 / T of softmax(z / T) mixed with 1 / (n + 1) of the uniform distribution, a local maximum of the likelihood.

    The search starts from :func:`inverse_temperature`; a row whose true class is impossible, or all but, costs log(K (n + 1))
    at most and does not dictate T. Where the others are separable, T would go to 0; it stops where Laplace's rule does.
    """
    rows, weights = np.arange(len(data.labels)), data.weights
    each = np.ones(len(rows)) if weights is None else weights
    share = 1 / (data.total + 1)
    rest = share / data.logits.shape[1]

    def loss(log_inverse: float) -> float:
        own = scaled_softmax(data.logits, exp(log_inverse))[rows, data.labels]
        return float(-(each @ np.log((1 - share) * own + rest)))

    best = log(inverse_temperature(data))
    for _ in range(_TURNS):
        before, best = best, _better(loss, best, 1.0, 1e-8)
        if abs(best - before) < _NEAR:
            break
    return min(exp(best), earned_inverse(data))


def squared_inverse(data: LabelledLogits) -> float:
    """The 1 / T whose softmax(z / T) has the least squared error, within a factor e^1.5 of the likelihood's.

    Without that limit T would go to 0 where every label leads its row, and to a second minimum near 0 where nearly all do.
    """

    def loss(log_inverse: float) -> float:
        total = 0.0
        for rows in data.blocks(8):
            p = scaled_softmax(data.logits[rows], exp(log_inverse))
            own = np.take_along_axis(p, data.labels[rows, None], axis=1)[:, 0]
            total += data.add(rows, np.einsum("ij,ij->i", p, p) - 2 * own)
        return total

    return exp(_better(loss, log(inverse_temperature(data)), _NEXT_TO, 1e-8))


def _better(loss: Callable[[float], float], start: float, reach: float, tolerance: float) -> float:
    """The minimum of a loss within `reach` of `start`, or `start` itself."""
    from scipy.optimize import minimize_scalar

    bounds = (start - reach, start + reach)
    best = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": tolerance})
    return float(best.x) if best.fun < loss(start) else start


def maximise_likelihood(data: LabelledLogits, start: Float64s) -> tuple[Float64s, Float64s, bool]:
    """L-BFGS with the analytic gradient over scales (one shared by all classes, or K) and K biases, penalised a little.

    Returns scale, bias and whether some parameters let every label lead its row, so that the likelihood alone has no optimum.
    The penalty is stronger then, and where rows are few; not where a class never occurs, whose bias should fall far.
    """
    classes = data.logits.shape[1]
    scale, bias, separable = _penalised(data, start, _PULL)
    pull = _PULL_SEPARABLE if separable else _PULL_FEW * classes / data.total
    if pull > _PULL and np.bincount(data.labels, minlength=classes).all():
        scale, bias, _ = _penalised(data, start, pull)
    return scale, bias, separable


def _penalised(data: LabelledLogits, start: Float64s, pull: float) -> tuple[Float64s, Float64s, bool]:
    """Scale and bias under a penalty of (K / n) pull (|scale / start - 1|^2 + |bias|^2), and whether every label led its row.

    The problem is convex. Scales are optimised as multiples of `start`, so that logits of any size give a well-conditioned
    problem. The bias is defined up to a constant; its mean is 0.
    """
    from scipy.optimize import Bounds, minimize

    scales, classes = len(start), data.logits.shape[1]
    centre = np.concatenate([np.ones(scales), np.zeros(classes)])
    strength = pull * classes / data.total
    separable = False

    def loss(theta: Float64s) -> tuple[float, Float64s]:
        nonlocal separable
        value, by_scale, by_bias, leading = affine_loss(data, start * theta[:scales], theta[scales:])
        separable |= leading
        by_scale = by_scale * start
        gradient = np.concatenate([by_scale if scales > 1 else by_scale.sum(keepdims=True), by_bias])
        apart = theta - centre
        return value + strength * float(apart @ apart), gradient + 2 * strength * apart

    low = np.full(len(centre), -np.inf)
    if scales == 1:
        low[0] = 1e-6  # a temperature is positive
    options: Any = {"maxiter": 2000, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-9}
    found = minimize(loss, centre, jac=True, method="L-BFGS-B", bounds=Bounds(low, np.inf), options=options).x
    bias = found[scales:]
    return start * found[:scales], bias - bias.mean(), separable


# ----------------------------------------------------------------------------------------------------
# Temperature scaling: one number that makes all predictions more, or less, sure of themselves


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
    >>> from truecal.recalibration import TemperatureScaling
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
        self.temperature_ = documents.number(state, "temperature", low=1e-300)
        self._restore_floor(state)


# ----------------------------------------------------------------------------------------------------
# Bias-corrected temperature scaling: one temperature, and one bias per class for a shift of the class frequencies


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
    >>> from truecal.recalibration import BiasCorrectedTemperature
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
        self.temperature_ = documents.number(state, "temperature", low=1e-300)
        self.bias_ = documents.numbers(state, "bias", len(self.classes_))


# ----------------------------------------------------------------------------------------------------
# Ensemble temperature scaling: the temperature-scaled, the original and the uniform distribution, mixed

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
    >>> from truecal.recalibration import EnsembleTemperature
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
        self.temperature_ = documents.number(state, "temperature", low=1e-300)
        self.weights_ = documents.numbers(state, "weights", 3, low=0.0, high=1.0)
        if abs(self.weights_.sum() - 1) > 1e-9:
            raise FileError('"weights" must sum to 1')


# ----------------------------------------------------------------------------------------------------
# Vector scaling: a scale and a bias for every class


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
    >>> from truecal.recalibration import VectorScaling
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
        self.scale_ = documents.numbers(state, "scale", len(self.classes_))
        self.bias_ = documents.numbers(state, "bias", len(self.classes_))
