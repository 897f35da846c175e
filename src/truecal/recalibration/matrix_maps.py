"""Matrix scaling: every logit may depend on all others, and a penalty keeps what the data do not ask for at zero."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from truecal.errors import InputError
from truecal.recalibration import documents
from truecal.recalibration.contract import Input, Recalibrator, class_logits
from truecal.recalibration.export import Value, traced_floor, traced_logits
from truecal.recalibration.likelihood import LOG_ZERO, LabelledLogits
from truecal.recalibration.softmax_maps import floored_temperature, inverse_temperature
from truecal.recalibration.solvers import Penalty, SmoothLogs, fit_matrix
from truecal.special import softmax
from truecal.types import Float64s, Floats, Indices

# ----------------------------------------------------------------------------------------------------
# Matrix scaling: every logit may depend on all others, and a penalty keeps what the data do not ask for at zero

_BLOCK_VALUES = 1 << 20
_STRONGEST = 1e100  # of a penalty: nothing is left to learn long before, and squares of it must be finite
# Of maps that are asked for as free as the data allow. On the 160 splits of `tests.recalibration.peers --choose`, strengths of
# 0.03, 0.1, 0.3 and 1 had mean log losses of 0.466, 0.454, 0.450 and 0.449, and were above unpenalised matrix scaling (1.612)
# by more than 0.001 in 6, 6, 7 and 11 % of them. Strengths chosen by cross-validation were no better (0.450 and 6 %).
STRENGTH = 0.3
DIAGONAL = 0.3 * STRENGTH


class MatrixMap(Recalibrator):
    """softmax(x + D x + b), where x are smoothed, temperature-scaled log probabilities (see `solvers.matrix`).

    Attributes
    ----------
    temperature_ : T, fitted first.
    uniform_ : the share of the uniform distribution mixed in, 1 / (n + 1).
    floor_ : how far below the row's largest a logit counts; infinite unless a row's true class had a probability of 0.
    change_ : (K, K) D, or (K,) its diagonal.
    bias_ : (K,) b.
    """

    @abstractmethod
    def penalty(self) -> Penalty:
        """The strengths of the penalties."""

    def check_params(self) -> None:
        super().check_params()
        for name, value in vars(self.penalty()).items():
            if not (value is None and name == "off_diagonal") and not (
                isinstance(value, int | float) and 0 <= value <= _STRONGEST
            ):
                raise InputError(f"{name} must be a number from 0 to {_STRONGEST:g}, not {value!r}")

    def _learn(self, outputs: Floats, labels: Indices, weights: Float64s | None) -> None:
        data = LabelledLogits.of(class_logits(outputs, self.input), labels, weights)
        impossible = data.impossible().any()
        inverse, self.floor_ = floored_temperature(data) if impossible else (inverse_temperature(data), np.inf)
        self.temperature_, self.uniform_ = 1.0 / inverse, 1 / (data.total + 1)
        self.change_, self.bias_ = fit_matrix(data, self._smooth(), self.penalty())

    def _smooth(self) -> SmoothLogs:
        return SmoothLogs(1.0 / self.temperature_, self.uniform_, self.floor_)

    def _apply(self, outputs: Floats) -> Float64s:
        probs = np.empty(outputs.shape)
        step = max(1, _BLOCK_VALUES // outputs.shape[1])
        for start in range(0, len(outputs), step):
            logits = class_logits(outputs[start : start + step], self.input)
            x = self._smooth()(logits)
            change = x * self.change_ if self.change_.ndim == 1 else x @ self.change_.T
            probs[start : start + step] = softmax(x + change + self.bias_)
        return probs

    def _trace(self, outputs: Value) -> Value:
        logits = traced_logits(outputs, self.input)
        if np.isfinite(self.floor_):
            logits = traced_floor(logits, self.floor_)
        scaled = (logits <= LOG_ZERO).where(-np.inf, logits * (1.0 / self.temperature_)).softmax()
        x = ((1 - self.uniform_) * scaled + self.uniform_ / len(self.classes_)).log()
        change = x * self.change_ if self.change_.ndim == 1 else x @ self.change_.T
        return (x + change + self.bias_).softmax()

    def _state(self) -> dict[str, Any]:
        return {
            "temperature": self.temperature_,
            "uniform": self.uniform_,
            "change": self.change_.tolist(),
            "bias": self.bias_.tolist(),
        } | ({"floor": self.floor_} if np.isfinite(self.floor_) else {})

    def _restore(self, state: Mapping[str, Any]) -> None:
        count = len(self.classes_)
        self.temperature_ = documents.number(state, "temperature", low=1e-300)
        self.uniform_ = documents.number(state, "uniform", low=0.0, high=1.0)
        self.floor_ = documents.number(state, "floor", low=0.0) if "floor" in state else np.inf
        self.bias_ = documents.numbers(state, "bias", count)
        if self.penalty().off_diagonal is None:
            self.change_ = documents.numbers(state, "change", count)
        else:
            self.change_ = documents.matrix(state, "change", count)


class MatrixScaling(MatrixMap):
    r"""A full matrix of scales and a bias per class, with penalties on the off-diagonal scales and the biases.

    .. math:: p = \mathrm{softmax}(W x + b), \qquad
        \min \; \overline{-\log p_y} + \frac{K(K-1)}{n} \lambda \sum_{j \ne k} W_{jk}^2 + \frac{K}{n} \mu \sum_k b_k^2

    x are the logits after temperature scaling, mixed with 1 / (n + 1) of the uniform distribution so that zeros have a
    logarithm; of x only differences within a row matter. Changes of the diagonal have the strength 0.09 K / n, so that few
    rows do not overfit it. The problem is convex; L-BFGS.

    Parameters
    ----------
    off_diagonal, intercept : strengths lambda and mu of the penalties; 0 for none.
    input : "logits" or "probs" (whose logarithms are taken).
    classes : names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    temperature_, uniform_, floor_, change_, bias_ : W = 1 + `change_` acts on log probabilities at temperature `temperature_`.

    Notes
    -----
    With K classes there are K (K + 1) parameters; without penalties they need many times as many rows. A class that
    never occurs, and a probability of exactly 0 for the true class, are taken as they come: the penalty, the mixture and
    the floor keep the optimum finite.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger. On calibration of modern neural networks. ICML 2017. Kull et al. Beyond temperature
    scaling: obtaining well-calibrated multiclass probabilities with Dirichlet calibration. NeurIPS 2019 (the penalties).

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibration import MatrixScaling
    >>> rng = np.random.default_rng(0)
    >>> logits = 2 * rng.normal(size=(20_000, 3))
    >>> truth = np.array([[1.0, 0.3, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> labels = (logits @ truth.T + rng.gumbel(size=logits.shape)).argmax(axis=1)
    >>> fixed = MatrixScaling(off_diagonal=0.0, intercept=0.0).fit(logits, labels)
    >>> weights = (np.eye(3) + fixed.change_) / fixed.temperature_
    >>> off = weights - weights.mean(axis=0) - (truth - truth.mean(axis=0))  # of x only differences within a row matter
    >>> bool(abs(off).max() < 0.1)
    True
    """

    def __init__(
        self,
        *,
        off_diagonal: float = STRENGTH,
        intercept: float = STRENGTH,
        input: Input = "logits",  # noqa: A002
        classes: Sequence[object] | None = None,
    ) -> None:
        self.off_diagonal = off_diagonal
        self.intercept = intercept
        self.input = input
        self.classes = classes

    def penalty(self) -> Penalty:
        return Penalty(DIAGONAL, self.off_diagonal, self.intercept)


# ----------------------------------------------------------------------------------------------------
# Structured matrix scaling: temperature, vector and matrix scaling in one, each part used as far as the data carry it


class StructuredMatrixScaling(MatrixMap):
    r"""A temperature plus penalised scales per class, biases and off-diagonal scales.

    .. math:: p = \mathrm{softmax}\big(x + \mathrm{diag}(v) x + M x + b\big), \qquad
        \frac{K}{n}\big(\lambda_v |v|^2 + \lambda_b |b|^2\big) + \frac{K(K-1)}{n} \lambda_M |M|^2

    x are log probabilities at the best temperature, mixed with 1 / (n + 1) of the uniform distribution. Strengths that
    grow with the number of parameters and fall with n make one default serve ten rows per class and ten thousand: few
    rows give temperature scaling, many give matrix scaling. The problem is convex; L-BFGS.

    Parameters
    ----------
    diagonal, off_diagonal, intercept : strengths of the penalties. off_diagonal=None leaves M at 0, which is structured
        vector scaling: 2K parameters.
    input : "logits" or "probs" (whose logarithms are taken).
    classes : names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    temperature_, uniform_, floor_, change_, bias_ : as in `MatrixScaling`; `change_` is diag(v) + M, or v alone.

    References
    ----------
    Berta, Holzmüller, Jordan, Bach. Structured matrix scaling for multi-class calibration. AISTATS 2026.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibration import StructuredMatrixScaling
    >>> rng = np.random.default_rng(0)
    >>> logits = 3 * rng.normal(size=(4000, 4))
    >>> labels = (logits * [0.3, 0.5, 0.5, 0.7] + rng.gumbel(size=logits.shape)).argmax(axis=1)
    >>> fixed = StructuredMatrixScaling().fit(logits, labels)
    >>> bool(fixed.change_[0, 0] < 0 < fixed.change_[3, 3])  # beside the common temperature: less of the first, more of the last
    True
    """

    def __init__(
        self,
        *,
        diagonal: float = 1.0,
        off_diagonal: float | None = 1.0,
        intercept: float = 1.0,
        input: Input = "logits",  # noqa: A002
        classes: Sequence[object] | None = None,
    ) -> None:
        self.diagonal = diagonal
        self.off_diagonal = off_diagonal
        self.intercept = intercept
        self.input = input
        self.classes = classes

    def penalty(self) -> Penalty:
        return Penalty(self.diagonal, self.off_diagonal, self.intercept)


# ----------------------------------------------------------------------------------------------------
# Dirichlet calibration: matrix scaling of log probabilities, with off-diagonal and intercept regularisation


class DirichletCalibration(MatrixMap):
    r"""The posterior of Dirichlet distributed probabilities, one Dirichlet per class: softmax(W ln p + b).

    .. math:: \hat p = \mathrm{softmax}(W \ln p + b), \qquad \text{ODIR:} \quad
        \frac{K(K-1)}{n} \lambda \sum_{j \ne k} W_{jk}^2 + \frac{K}{n} \mu \sum_k b_k^2

    The multiclass form of beta calibration. As a family of maps it is matrix scaling of the log probabilities; the fit
    starts from temperature scaling, to which the penalties shrink (the diagonal too, by 0.09 K / n).

    Parameters
    ----------
    off_diagonal, intercept : strengths lambda and mu of the penalties; 0 for none. Divided by n, so that one value
        serves samples of all sizes.
    input : "probs", or "logits" (whose softmax is p).
    classes : names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    temperature_, uniform_, floor_, change_, bias_ : as in `MatrixScaling`.

    References
    ----------
    Kull, Perello Nieto, Kängsepp, Silva Filho, Song, Flach. Beyond temperature scaling: obtaining well-calibrated
    multiclass probabilities with Dirichlet calibration. NeurIPS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibration import DirichletCalibration
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 50_000)
    >>> labels = (2 * np.log(p) + [0.5, 0.0, -0.5] + rng.gumbel(size=p.shape)).argmax(axis=1)
    >>> fixed = DirichletCalibration().fit(p, labels)
    >>> round(fixed.temperature_, 1), (fixed.bias_ - fixed.bias_[1]).round(1)
    (0.5, array([ 0.5,  0. , -0.5]))
    """

    def __init__(
        self,
        *,
        off_diagonal: float = STRENGTH,
        intercept: float = STRENGTH,
        input: Input = "probs",  # noqa: A002
        classes: Sequence[object] | None = None,
    ) -> None:
        self.off_diagonal = off_diagonal
        self.intercept = intercept
        self.input = input
        self.classes = classes

    def penalty(self) -> Penalty:
        return Penalty(DIAGONAL, self.off_diagonal, self.intercept)
