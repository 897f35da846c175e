"""Maximum likelihood for Beta scores, when the largest (or smallest) scores were rounded to exactly 1 (or 0).

A Beta density is infinite or zero at its ends, so a score of exactly 1 has no likelihood of its own. It is neither
dropped nor moved: it is a score known only to lie within the rounding error of 1, and enters as the probability of
that, P(1-c < resolution). Moving it to some small floor instead makes the answer depend on the floor.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from truecal.errors import InputError
from truecal.lab.worlds.quadrature import Array
from truecal.lab.worlds.score_distributions import Beta


@dataclass(frozen=True)
class BetaFit:
    """A fitted Beta with the standard errors of (alpha, beta) and the number of scores at exactly 0 and 1."""

    scores: Beta
    alpha_standard_error: float
    beta_standard_error: float
    log_likelihood: float
    zeros: float
    ones: float
    resolution: float


def resolution_of(scores: Array) -> float:
    """Half the gap below 1 in the coarsest floating-point type that holds all these scores: 1-c below it rounds to 1.

    >>> resolution_of(np.array([0.1, 0.7])) == 2.0**-54, resolution_of(np.array([0.5, 0.75, 1.0])) == 2.0**-12
    (True, True)
    """
    for dtype in (np.float16, np.float32):
        if np.array_equal(scores.astype(dtype).astype(np.float64), scores):
            return float(np.finfo(dtype).epsneg) / 2
    return float(np.finfo(np.float64).epsneg) / 2


def fit_beta(scores: Array, weights: Array, *, resolution: float | None = None) -> BetaFit:
    """The Beta(alpha, beta) under which these scores are most likely (Roelofs et al., appendix A, equation 8).

    >>> c = np.random.default_rng(0).beta(2.0, 0.3, 5000)
    >>> fit = fit_beta(c, np.ones(5000))
    >>> abs(fit.scores.alpha - 2.0) < 3 * fit.alpha_standard_error
    True
    >>> abs(fit.scores.beta - 0.3) < 3 * fit.beta_standard_error
    True
    """
    from scipy.optimize import minimize

    eps = resolution_of(scores) if resolution is None else resolution
    if not 0 < eps < 0.5:
        raise InputError(f"resolution must be in (0, 0.5), not {resolution!r}")
    inside = (scores > 0) & (scores < 1)
    if np.unique(scores[inside]).size < 2:
        raise InputError(
            "a Beta needs at least two different scores strictly between 0 and 1; use Discrete scores instead"
        )
    w = weights[inside]
    sums = (float(w @ np.log(scores[inside])), float(w @ np.log1p(-scores[inside])), float(w.sum()))
    likelihood = _Likelihood(*sums, float(weights[scores == 0].sum()), float(weights[scores == 1].sum()), eps)
    tight = {"xatol": 1e-8, "fatol": 1e-13, "maxiter": 4000, "maxfev": 4000}
    best = minimize(likelihood.loss, np.log(_moments(scores[inside], w)), method="Nelder-Mead", options=tight)  # type: ignore[call-overload]
    if not best.success:
        raise InputError(f"the Beta fit did not settle: {best.message}")
    # The simplex stops within 1e-8 of the minimum, at a point that depends on its path; steps to where the slope is zero
    # take it to within rounding, so that the fit is a continuous function of the scores.
    inverse = np.linalg.inv(_hessian(likelihood.loss, best.x))
    at = best.x
    for _ in range(3):
        at = at - inverse @ likelihood.slope(at)
    alpha, beta = np.exp(at)
    errors = np.array([alpha, beta]) * np.sqrt(np.diag(inverse) / weights.sum())
    total = -likelihood.loss(at) * float(weights.sum())
    ends = (likelihood.zeros, likelihood.ones)
    return BetaFit(Beta(float(alpha), float(beta)), float(errors[0]), float(errors[1]), total, *ends, eps)


@dataclass(frozen=True)
class _Likelihood:
    """What the likelihood needs to know of the scores: sums of log c and log(1-c) over the mass inside, and both ends."""

    log_c: float
    log_rest: float
    mass: float
    zeros: float
    ones: float
    eps: float

    def loss(self, parameters: Array) -> float:
        """Minus the log-likelihood per row at (log alpha, log beta)."""
        from scipy.special import betaln

        alpha, beta = np.exp(parameters)
        value = (alpha - 1) * self.log_c + (beta - 1) * self.log_rest - self.mass * betaln(alpha, beta)
        value += self._end(self.zeros, alpha, beta) + self._end(self.ones, beta, alpha)
        return -float(value) / (self.mass + self.zeros + self.ones)

    def slope(self, parameters: Array) -> Array:
        """Derivatives of the loss: d/d alpha log B = psi(alpha) - psi(alpha + beta); the ends by differences."""
        from scipy.special import digamma

        alpha, beta = np.exp(parameters)
        both = digamma(alpha + beta)
        by_alpha = self.log_c - self.mass * (digamma(alpha) - both)
        by_beta = self.log_rest - self.mass * (digamma(beta) - both)
        by_alpha += _derivative(lambda a: self._end(self.zeros, a, beta) + self._end(self.ones, beta, a), alpha)
        by_beta += _derivative(lambda b: self._end(self.zeros, alpha, b) + self._end(self.ones, b, alpha), beta)
        return -np.array([alpha * by_alpha, beta * by_beta]) / (self.mass + self.zeros + self.ones)

    def _end(self, mass: float, exponent: float, other: float) -> float:
        """mass * log P(distance to the end of this exponent < eps)."""
        from scipy.special import betainc

        return mass * float(np.log(betainc(exponent, other, self.eps))) if mass else 0.0


def _derivative(function: Callable[[float], float], at: float) -> float:
    """By four points: the error is of order (1e-3)^4, that from rounding 1e-13 times the value."""
    h = 1e-3 * at
    inner, outer = function(at + h) - function(at - h), function(at + 2 * h) - function(at - 2 * h)
    return (8 * inner - outer) / (12 * h)


def _moments(scores: Array, weights: Array) -> Array:
    """Start: the Beta with the mean and variance of the scores."""
    mean = np.average(scores, weights=weights)
    variance = np.average((scores - mean) ** 2, weights=weights)
    size = max(mean * (1 - mean) / variance - 1, 0.05)
    return np.array([max(mean * size, 0.01), max((1 - mean) * size, 0.01)])


def _hessian(loss: Callable[[Array], float], at: Array) -> Array:
    """Second derivatives by central differences; the loss is per row, of order 1, so a step of 1e-3 leaves 6 digits."""
    step = 1e-3
    e = np.eye(at.size) * step
    result = np.empty((at.size, at.size))
    for i in range(at.size):
        for j in range(at.size):
            corners = loss(at + e[i] + e[j]) - loss(at + e[i] - e[j]) - loss(at - e[i] + e[j]) + loss(at - e[i] - e[j])
            result[i, j] = corners / (4 * step * step)
    return result
