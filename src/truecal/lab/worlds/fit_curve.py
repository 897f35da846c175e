"""Maximum likelihood for the calibration curves g(T) = b0 + b1 t(c), all links and transforms, compared by AIC.

Roelofs et al., appendix A, equation 9. The likelihood of every link here is concave in (b0, b1). A log or logflip link
needs b0 + b1 t <= 0 for every score. With t = log c or log(1-c), both in (-inf, 0], that is b0 <= 0 <= b1, and makes T
rise with c only when t is the link itself; with t = logit c no b1 but 0 will do. So log goes with log, logflip with
logflip, and logit with all three: the pairs that can be a rising calibration curve.
"""

from dataclasses import dataclass
from itertools import product
from typing import Literal, get_args

import numpy as np

from truecal.errors import InputError
from truecal.lab.worlds.curves import GLM, Function, transform
from truecal.lab.worlds.quadrature import Array

Terms = Literal["b0", "b1", "b0_b1"]


@dataclass(frozen=True)
class CurveFit:
    """One candidate: its name in the style of the paper, coefficients, their standard errors, and AIC."""

    curve: GLM
    terms: Terms
    b0_standard_error: float
    b1_standard_error: float
    log_likelihood: float

    @property
    def name(self) -> str:
        return f"{self.curve.link}_{self.curve.transform}_{self.terms}"

    @property
    def aic(self) -> float:
        return 2 * len(self.terms.split("_")) - 2 * self.log_likelihood


def candidates() -> list[tuple[Function, Function, Terms]]:
    """Every link, transform and set of terms that can rise inside [0, 1]; a constant curve is offered once per link."""
    results: list[tuple[Function, Function, Terms]] = []
    for link, inner in product(get_args(Function), repeat=2):
        if link in ("logit", inner):
            results += [(link, inner, "b1"), (link, inner, "b0_b1")]
        if link == inner:
            results.append((link, inner, "b0"))
    return results


def fit_curves(c: Array, rest: Array, outcomes: Array, weights: Array) -> list[CurveFit]:
    """All candidates, best AIC first. `outcomes` may be the mean outcome of several rows at one score."""
    fits = [fit_curve(link, inner, terms, c, rest, outcomes, weights) for link, inner, terms in candidates()]
    # The three constant curves are one and the same: rounding must not decide their order.
    return sorted(fits, key=lambda fit: round(fit.aic, 6))


def fit_curve(
    link: Function, inner: Function, terms: Terms, c: Array, rest: Array, outcomes: Array, weights: Array
) -> CurveFit:
    """One candidate by projected Newton steps on the concave log-likelihood.

    >>> from truecal.lab import GLM, Uniform, World
    >>> scores, y = World(Uniform(), GLM("logit", "logit", -0.5, 0.7)).draw(n=20000, rng=1)
    >>> fit = fit_curve("logit", "logit", "b0_b1", scores[0], 1 - scores[0], y[0].astype(float), np.ones(20000))
    >>> abs(fit.curve.b0 + 0.5) < 3 * fit.b0_standard_error, abs(fit.curve.b1 - 0.7) < 3 * fit.b1_standard_error
    (True, True)
    """
    if np.any((c <= 0) | (rest <= 0)):
        raise InputError("scores of exactly 0 or 1 must be given a place inside (0, 1) before a curve is fitted")
    t = transform(inner, c, rest)
    columns = {"b0": [np.ones_like(t)], "b1": [t], "b0_b1": [np.ones_like(t), t]}[terms]
    X = np.stack(columns, axis=1)
    sign = {"b0": [-1.0], "b1": [1.0], "b0_b1": [-1.0, 1.0]}[terms]
    low, high = (np.where(np.array(sign) > 0, 0.0, -np.inf), np.where(np.array(sign) > 0, np.inf, 0.0))
    if link == "logit":
        low, high = np.full(len(sign), -np.inf), np.full(len(sign), np.inf)
    b, value, hessian = _maximise(link, X, outcomes, weights, low, high, _start(link, sign))
    at_bound = (b <= low) | (b >= high)
    variance = np.full(b.size, np.nan)  # a coefficient on its bound has no standard error
    if not at_bound.all():
        free = np.ix_(~at_bound, ~at_bound)
        known = np.diag(np.linalg.inv(-hessian[free]))
        variance[~at_bound] = np.where(known > 0, known, np.nan)  # nor has one along which the likelihood is flat
    place = terms.split("_")
    coefficient = {name: float(b[place.index(name)]) if name in place else 0.0 for name in ("b0", "b1")}
    error = {name: float(np.sqrt(variance[place.index(name)])) if name in place else 0.0 for name in ("b0", "b1")}
    return CurveFit(GLM(link, inner, coefficient["b0"], coefficient["b1"]), terms, error["b0"], error["b1"], value)


def _start(link: Function, sign: list[float]) -> Array:
    return np.zeros(len(sign)) if link == "logit" else np.array(sign) * 0.5


def _maximise(
    link: Function, X: Array, y: Array, w: Array, low: Array, high: Array, b: Array
) -> tuple[Array, float, Array]:
    """Newton ascent inside the box; coefficients held at a bound that the gradient pushes against are left out.

    Ascent ends at a decrement where the next full steps, which converge quadratically, reach the rounding error: two of them
    are taken without asking whether the value still rises, since that comparison would be one of rounding errors.
    """
    value, gradient, hessian = _log_likelihood(link, X, y, w, b)
    for _ in range(200):
        held = ((b <= low) & (gradient < 0)) | ((b >= high) & (gradient > 0))
        free = ~held
        if not free.any():
            break
        step = np.zeros_like(b)
        step[free] = np.linalg.solve(-hessian[np.ix_(free, free)], gradient[free])
        if gradient @ step < 1e-12 * max(1.0, abs(value)):
            break
        share = 1.0
        while share > 1e-12:
            trial = np.clip(b + share * step, low, high)
            new = _log_likelihood(link, X, y, w, trial)
            if new[0] > value:
                break
            share /= 2
        else:
            break
        b, (value, gradient, hessian) = trial, new
    for _ in range(2):
        free = (b > low) & (b < high)
        if free.any():
            step = np.zeros_like(b)
            step[free] = np.linalg.solve(-hessian[np.ix_(free, free)], gradient[free])
            last = np.clip(b + step, low, high)
            new = _log_likelihood(link, X, y, w, last)
            if new[0] > value - 1e-9 * max(1.0, abs(value)):
                b, (value, gradient, hessian) = last, new
    return b, value, hessian


def _log_likelihood(link: Function, X: Array, y: Array, w: Array, b: Array) -> tuple[float, Array, Array]:
    """Sum of w (y log T + (1-y) log(1-T)) with its first and second derivatives in b."""
    eta = np.einsum("ij,j->i", X, b)
    if link == "logit":
        value = y * eta - np.logaddexp(0.0, eta)
        T = np.exp(eta - np.logaddexp(0.0, eta))
        first, second = y - T, -T * (1 - T)
    else:
        # One side of the outcome has probability exp(eta); eta = 0 would make the other side impossible.
        easy = y if link == "log" else 1.0 - y
        eta = np.minimum(eta, -1e-100)
        with np.errstate(over="ignore"):
            odds = 1.0 / np.expm1(-eta)  # exp(eta) / (1 - exp(eta)); 0 for eta far below 0
        value = easy * eta + (1 - easy) * np.log(-np.expm1(eta))
        first, second = easy - (1 - easy) * odds, -(1 - easy) * odds * (1 + odds)
    # Sums without BLAS, whose threads only get in each other's way at two columns.
    slope = np.einsum("ij,i->j", X, w * first)
    return float(np.sum(w * value)), slope, np.einsum("ij,i,ik->jk", X, w * second, X)
