"""What temperature, bias-corrected temperature and vector scaling share: softmax(scale * z + bias)."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from math import exp, inf, isfinite, log
from typing import Any, Literal, get_args

import numpy as np

from truecal import options
from truecal.recalibrate.contract import Recalibrator
from truecal.recalibrate.export import fields
from truecal.recalibrate.export.graph import Value
from truecal.recalibrate.export.traced import traced_floor, traced_logits
from truecal.recalibrate.impossible import ImpossibleRowError
from truecal.recalibrate.outputs import class_logits
from truecal.recalibrate.solvers.likelihood import (
    LOG_ZERO,
    LabelledLogits,
    affine_loss,
    floored_logits,
    scaled_softmax,
    temperature_terms,
)
from truecal.recalibrate.solvers.newton import earned_inverse, fit_inverse_temperature
from truecal.types import Float64s, Floats, Indices

Zeros = Literal["keep", "floor"]
_TURNS = 10  # of the search for a temperature, each within a factor e
_NEAR = 1e-6  # a change of log T that no probability shows
# how far the log T of squared errors may be from the likelihood's: with 1, 1.5 and 2, the ensemble had mean log losses of 0.4447,
# 0.4453 and 0.4460 on the 160 splits of `tests.recalibrate.peers --choose`, and was above one that looks for T from 0.05 to 5 by
# more than 0.001 in 2, 1 and 0 % of them (by 0.005, 0.002 and 0.001 at worst)
_NEXT_TO = 1.5
# strength of the penalty on scales and biases, which are meant to be free
_PULL = 1e-3
# the same where rows are separable: with 0.01, 0.1 and 1, the 10 separable of the 160 splits of `tests.recalibrate.peers --choose`
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
        self.floor_ = fields.number(state, "floor", low=0.0) if "floor" in state else inf

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
