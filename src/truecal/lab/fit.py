"""Fit a world to data: Beta scores, calibration curve, and goodness of fit.

A Beta density is infinite or zero at its ends, so a score of exactly 1 enters the likelihood as interval-censored, by
P(1-c < resolution). Moving it to a small floor instead would make the fit depend on the floor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

import truecal as tc
from truecal.errors import InputError
from truecal.lab.curves import GLM, Function, transform
from truecal.lab.distributions import Array, Beta, Discrete, Empirical
from truecal.lab.trials import bias
from truecal.lab.worlds import Seed, World
from truecal.profile.profile import check_profile

# ----------------------------------------------------------------------------------------------------
# Maximum likelihood for Beta scores, when the largest (or smallest) scores were rounded to exactly 1 (or 0)


@dataclass(frozen=True)
class BetaFit:
    """Hold a Beta distribution fitted to scores.

    Parameters
    ----------
    scores : Beta
        The fitted distribution.
    alpha_standard_error : float
        Standard error of alpha.
    beta_standard_error : float
        Standard error of beta.
    log_likelihood : float
        Maximum of the log-likelihood.
    zeros : float
        Weight of the scores of exactly 0.
    ones : float
        Weight of the scores of exactly 1.
    resolution : float
        Distance to 0 or 1 below which a score is rounded to it.

    See Also
    --------
    fit_beta : Fit the distribution.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> scores = np.random.default_rng(0).beta(2.0, 0.3, 5000)
    >>> fit = tc.lab.fit_beta(scores, np.ones(5000))
    >>> fit.zeros, fit.scores.alpha > fit.scores.beta
    (0.0, True)
    """

    scores: Beta
    alpha_standard_error: float
    beta_standard_error: float
    log_likelihood: float
    zeros: float
    ones: float
    resolution: float


def find_resolution(scores: Array) -> float:
    """Return half the gap below 1 in the coarsest floating-point type of all scores: a smaller 1-c rounds to 1.

    >>> find_resolution(np.array([0.1, 0.7])) == 2.0**-54, find_resolution(np.array([0.5, 0.75, 1.0])) == 2.0**-12
    (True, True)
    """
    for dtype in (np.float16, np.float32):
        if np.array_equal(scores.astype(dtype).astype(np.float64), scores):
            return float(np.finfo(dtype).epsneg) / 2
    return float(np.finfo(np.float64).epsneg) / 2


def fit_beta(scores: Array, weights: Array, *, resolution: float | None = None) -> BetaFit:
    """Fit a Beta distribution to scores by maximum likelihood.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores in [0, 1].
    weights : ndarray of shape (n,)
        Weight of each score.
    resolution : float, default None
        Distance to 0 or 1 below which a score is rounded to it; None is that of the coarsest floating-point type that
        represents all scores.

    Returns
    -------
    BetaFit
        The distribution and the standard errors of its parameters.

    Raises
    ------
    InputError
        If fewer than two different scores lie strictly between 0 and 1, the resolution is not in (0, 0.5), or the fit
        does not converge.

    Notes
    -----
    A score of exactly 1 enters the likelihood as P(1 - c < resolution), one of exactly 0 as P(c < resolution).

    References
    ----------
    .. [1] R. Roelofs, N. Cain, J. Shlens, M. C. Mozer (2022). Mitigating Bias in Calibration Error Estimation.
           AISTATS, appendix A, equation 8.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> scores = np.random.default_rng(0).beta(2.0, 0.3, 5000)
    >>> fit = tc.lab.fit_beta(scores, np.ones(5000))
    >>> abs(fit.scores.alpha - 2.0) < 3 * fit.alpha_standard_error
    True
    >>> abs(fit.scores.beta - 0.3) < 3 * fit.beta_standard_error
    True
    """
    from scipy.optimize import minimize

    eps = find_resolution(scores) if resolution is None else resolution
    if not 0 < eps < 0.5:
        raise InputError(f"resolution must be in (0, 0.5), not {resolution!r}")
    inside = (scores > 0) & (scores < 1)
    if np.unique(scores[inside]).size < 2:
        raise InputError(
            "a Beta needs at least two different scores strictly between 0 and 1; in Python, use tc.lab.Discrete scores"
        )
    w = weights[inside]
    sums = (float(w @ np.log(scores[inside])), float(w @ np.log1p(-scores[inside])), float(w.sum()))
    likelihood = _Likelihood(*sums, float(weights[scores == 0].sum()), float(weights[scores == 1].sum()), eps)
    best = minimize(likelihood.loss, np.log(_match_moments(scores[inside], w)), jac=likelihood.gradient, method="BFGS")
    # Newton steps reduce the error of 1e-5 to rounding error: the fit is a continuous function of the scores
    optimum = best.x
    for _ in range(3):
        hessian = [
            (likelihood.gradient(optimum + h) - likelihood.gradient(optimum - h)) / 2e-4 for h in 1e-4 * np.eye(2)
        ]
        inverse = np.linalg.inv(hessian)
        optimum = optimum - inverse @ likelihood.gradient(optimum)
    if not np.abs(likelihood.gradient(optimum)).max() < 1e-9:
        raise InputError(f"the Beta fit did not converge: {best.message}")
    alpha, beta = np.exp(optimum)
    errors = np.array([alpha, beta]) * np.sqrt(np.diag(inverse) / weights.sum())
    total = -likelihood.loss(optimum) * float(weights.sum())
    ends = (likelihood.zeros, likelihood.ones)
    return BetaFit(Beta(float(alpha), float(beta)), float(errors[0]), float(errors[1]), total, *ends, eps)


@dataclass(frozen=True)
class _Likelihood:
    """Log-likelihood of a Beta distribution from its sufficient statistics.

    `log_c` and `log_rest` are weighted sums of log c and log(1 - c) over scores inside (0, 1), `mass` their weight; `zeros` and
    `ones` are the weights of scores of exactly 0 and 1, which stand for distances below `eps` from 0 and 1.
    """

    log_c: float
    log_rest: float
    mass: float
    zeros: float
    ones: float
    eps: float

    def loss(self, parameters: Array) -> float:
        """Compute minus the log-likelihood of a Beta at (log alpha, log beta), divided by the total weight of the scores.

        >>> one_row = _Likelihood(np.log(0.5), np.log(0.5), 1.0, 0.0, 0.0, 1e-9)
        >>> round(one_row.loss(np.log([2.0, 2.0])), 4)  # density 6 c (1 - c) = 1.5
        -0.4055
        """
        from scipy.special import betaln

        alpha, beta = np.exp(parameters)
        value = (alpha - 1) * self.log_c + (beta - 1) * self.log_rest - self.mass * betaln(alpha, beta)
        value += self._end_term(self.zeros, alpha, beta) + self._end_term(self.ones, beta, alpha)
        return -float(value) / (self.mass + self.zeros + self.ones)

    def gradient(self, parameters: Array) -> Array:
        """Compute the gradient of the loss by (log alpha, log beta), shape (2,); that of the ends by differences.

        By alpha the loss without ends has the derivative -(sum w log c - sum w (psi(alpha) - psi(alpha + beta))) over the
        weight of all scores; by log alpha it is alpha times this. Beta is likewise, with log(1 - c).
        """
        from scipy.special import digamma

        alpha, beta = np.exp(parameters)
        psi_sum = digamma(alpha + beta)
        by_alpha = self.log_c - self.mass * (digamma(alpha) - psi_sum)
        by_beta = self.log_rest - self.mass * (digamma(beta) - psi_sum)
        by_alpha += _derivative(
            lambda a: self._end_term(self.zeros, a, beta) + self._end_term(self.ones, beta, a),
            alpha,
        )
        by_beta += _derivative(
            lambda b: self._end_term(self.zeros, alpha, b) + self._end_term(self.ones, b, alpha),
            beta,
        )
        return -np.array([alpha * by_alpha, beta * by_beta]) / (self.mass + self.zeros + self.ones)

    def _end_term(self, mass: float, exponent: float, far_exponent: float) -> float:
        """Compute mass * log P(distance to an end < eps), with the exponents of this end and of the other; 0 for mass 0.

        >>> round(_Likelihood(0.0, 0.0, 0.0, 2.0, 0.0, 0.25)._end_term(2.0, 1.0, 1.0), 4)  # 2 ln(1/4)
        -2.7726
        """
        from scipy.special import betainc

        return mass * float(np.log(betainc(exponent, far_exponent, self.eps))) if mass else 0.0


def _derivative(function: Callable[[float], float], x: float) -> float:
    """Differentiate a function at x > 0 by four points at distances of x / 1000 and x / 500.

    >>> round(_derivative(lambda x: x**3, 2.0), 9)
    12.0
    """
    h = 1e-3 * x
    inner, outer = function(x + h) - function(x - h), function(x + 2 * h) - function(x - 2 * h)
    return (8 * inner - outer) / (12 * h)


def _match_moments(scores: Array, weights: Array) -> Array:
    """Compute (alpha, beta), each at least 0.01, of the Beta with the mean and variance of the scores (n,), as a start.

    >>> _match_moments(np.array([0.25, 0.75]), np.ones(2))  # mean 1/2, variance 1/16: 3 = alpha + beta
    array([1.5, 1.5])
    """
    mean = np.average(scores, weights=weights)
    variance = np.average((scores - mean) ** 2, weights=weights)
    size = max(mean * (1 - mean) / variance - 1, 0.05)
    return np.array([max(mean * size, 0.01), max((1 - mean) * size, 0.01)])


# ----------------------------------------------------------------------------------------------------
# Maximum likelihood for the calibration curves g(T) = b0 + b1 t(c), all links and transforms, compared by AIC

Terms = Literal["b0", "b1", "b0_b1"]


@dataclass(frozen=True)
class CurveFit:
    """Hold a calibration curve fitted to scores and outcomes.

    Parameters
    ----------
    curve : GLM
        The fitted curve.
    terms : {"b0", "b1", "b0_b1"}
        Coefficients that were fitted; the other one is 0.
    b0_standard_error : float
        Standard error of the intercept; NaN on a bound, 0 where it is not fitted.
    b1_standard_error : float
        Standard error of the slope; NaN on a bound, 0 where it is not fitted.
    log_likelihood : float
        Maximum of the log-likelihood.

    See Also
    --------
    fit_curves : Fit all candidate curves.

    Examples
    --------
    >>> import truecal as tc
    >>> fit = tc.lab.CurveFit(tc.lab.GLM("logit", "logit", 0.0, 0.8), "b1", 0.0, 0.05, log_likelihood=-100.0)
    >>> fit.name, fit.aic
    ('logit_logit_b1', 202.0)
    """

    curve: GLM
    terms: Terms
    b0_standard_error: float
    b1_standard_error: float
    log_likelihood: float

    @property
    def name(self) -> str:
        """Link, transform and terms in one name, for example "logit_log_b0_b1".

        >>> CurveFit(GLM("logit", "log", 0.0, 1.0), "b0_b1", 0.1, 0.1, -50.0).name
        'logit_log_b0_b1'
        """
        return f"{self.curve.link}_{self.curve.transform}_{self.terms}"

    @property
    def aic(self) -> float:
        """Akaike's information criterion, 2 (number of terms) - 2 (log-likelihood).

        >>> CurveFit(GLM("logit", "log", 0.0, 1.0), "b0_b1", 0.1, 0.1, -50.0).aic
        104.0
        """
        return 2 * len(self.terms.split("_")) - 2 * self.log_likelihood


def candidates() -> list[tuple[Function, Function, Terms]]:
    """List (link, transform, terms) of the candidate curves.

    With link logit every transform, with the other links only the same transform, each with terms b1 and b0_b1; and for every
    link one constant curve, b0.

    >>> len(candidates())
    13
    """
    results: list[tuple[Function, Function, Terms]] = []
    for link, inner in product(get_args(Function), repeat=2):
        if link in ("logit", inner):
            results += [(link, inner, "b1"), (link, inner, "b0_b1")]
        if link == inner:
            results.append((link, inner, "b0"))
    return results


def fit_curves(c: Array, rest: Array, outcomes: Array, weights: Array) -> list[CurveFit]:
    """Fit every candidate calibration curve by maximum likelihood.

    Parameters
    ----------
    c : ndarray of shape (n,)
        Scores, strictly between 0 and 1.
    rest : ndarray of shape (n,)
        Their complements 1 - c.
    outcomes : ndarray of shape (n,)
        Outcomes 0 and 1, or the mean outcome of several rows at one score.
    weights : ndarray of shape (n,)
        Weight of each row.

    Returns
    -------
    list of CurveFit
        All candidates, the smallest AIC first.

    Raises
    ------
    InputError
        If a score or its complement is not above 0.

    Notes
    -----
    Candidates are g(T) = b0 + b1 t(c) with links g and transforms t among log, log(1 - x) and logit, with one or both
    terms. Links log and log(1 - x) come only with the same transform, b0 <= 0 and b1 >= 0, so that T lies in [0, 1].

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> world = tc.lab.World(tc.lab.Uniform(), tc.lab.GLM("logit", "logit", -0.5, 0.7))
    >>> scores, outcomes = (part[0] for part in world.draw(n=20_000, rng=1))
    >>> fits = tc.lab.fit_curves(scores, 1 - scores, outcomes.astype(float), np.ones(20_000))
    >>> fits[0].name
    'logit_logit_b0_b1'
    """
    fits = [fit_curve(link, inner, terms, c, rest, outcomes, weights) for link, inner, terms in candidates()]
    # the three constant curves are equal: rounding must not decide their order
    return sorted(fits, key=lambda fit: round(fit.aic, 6))


def fit_curve(
    link: Function, inner: Function, terms: Terms, c: Array, rest: Array, outcomes: Array, weights: Array
) -> CurveFit:
    """Fit g(T) = b0 + b1 t(c), link g and transform t = `inner`, with the named terms, by maximum likelihood.

    `c`, `rest` = 1 - c, `outcomes` and `weights` have shape (n,); refuse scores of 0 and 1. A term not named is 0. A standard
    error is NaN where a coefficient lies on its bound (b0 <= 0 <= b1 unless the link is logit) or the likelihood is flat.

    >>> from truecal.lab import GLM, Uniform, World
    >>> scores, y = World(Uniform(), GLM("logit", "logit", -0.5, 0.7)).draw(n=20000, rng=1)
    >>> fit = fit_curve("logit", "logit", "b0_b1", scores[0], 1 - scores[0], y[0].astype(float), np.ones(20000))
    >>> abs(fit.curve.b0 + 0.5) < 3 * fit.b0_standard_error, abs(fit.curve.b1 - 0.7) < 3 * fit.b1_standard_error
    (True, True)
    """
    if np.any((c <= 0) | (rest <= 0)):
        raise InputError("scores of exactly 0 or 1 must be moved inside (0, 1) before a curve is fitted")
    t = transform(inner, c, rest)
    names = terms.split("_")
    X = np.stack([t if name == "b1" else np.ones_like(t) for name in names], axis=1)
    low, high, start = np.full(len(names), -np.inf), np.full(len(names), np.inf), np.zeros(len(names))
    if link != "logit":  # b0 <= 0 <= b1, so that T lies in [0, 1]
        rising = np.array([name == "b1" for name in names])
        low[rising], high[~rising], start = 0.0, 0.0, np.where(rising, 0.5, -0.5)
    b, value, hessian = _maximise(link, X, outcomes, weights, low, high, start)
    at_bound = (b <= low) | (b >= high)
    variance = np.full(b.size, np.nan)  # a coefficient on its bound has no standard error
    if not at_bound.all():
        free_variance = np.diag(np.linalg.inv(-hessian[np.ix_(~at_bound, ~at_bound)]))
        # nor has one along which the likelihood is flat
        variance[~at_bound] = np.where(free_variance > 0, free_variance, np.nan)
    coefficient = {name: float(b[names.index(name)]) if name in names else 0.0 for name in ("b0", "b1")}
    error = {name: float(np.sqrt(variance[names.index(name)])) if name in names else 0.0 for name in ("b0", "b1")}
    return CurveFit(GLM(link, inner, coefficient["b0"], coefficient["b1"]), terms, error["b0"], error["b1"], value)


def _maximise(
    link: Function, X: Array, y: Array, w: Array, low: Array, high: Array, b: Array
) -> tuple[Array, float, Array]:
    """Maximise the log-likelihood from b within [low, high], (k,) each, by projected Newton steps.

    `X` (n, k) are the terms, `y` and `w` (n,) outcomes and weights. Returns coefficients (k,), value and Hessian (k, k). Line
    search ends at a decrement where full steps, which converge quadratically, reach the rounding error: two of them follow
    without comparing values, whose differences would be rounding errors.
    """
    value, gradient, hessian = _log_likelihood(link, X, y, w, b)
    for _ in range(200):
        step = _newton_step(gradient, hessian, ~(((b <= low) & (gradient < 0)) | ((b >= high) & (gradient > 0))))
        if gradient @ step < 1e-12 * max(1.0, abs(value)):
            break
        step_length = 1.0
        while step_length > 1e-12:
            trial = np.clip(b + step_length * step, low, high)
            candidate = _log_likelihood(link, X, y, w, trial)
            if candidate[0] > value:
                break
            step_length /= 2
        else:
            break
        b, (value, gradient, hessian) = trial, candidate
    for _ in range(2):
        full_step = np.clip(b + _newton_step(gradient, hessian, (b > low) & (b < high)), low, high)
        candidate = _log_likelihood(link, X, y, w, full_step)
        if candidate[0] > value - 1e-9 * max(1.0, abs(value)):
            b, (value, gradient, hessian) = full_step, candidate
    return b, value, hessian


def _newton_step(gradient: Array, hessian: Array, free: npt.NDArray[np.bool_]) -> Array:
    """Compute the Newton step (k,) of the coefficients in the mask `free`; 0 for the others. Gradient (k,), Hessian (k, k).

    >>> _newton_step(np.array([1.0, 5.0]), -2 * np.eye(2), np.array([True, False]))
    array([0.5, 0. ])
    """
    step = np.zeros_like(gradient)
    step[free] = np.linalg.solve(-hessian[np.ix_(free, free)], gradient[free])
    return step


def _log_likelihood(link: Function, X: Array, y: Array, w: Array, b: Array) -> tuple[float, Array, Array]:
    """Sum w (y log T + (1 - y) log(1 - T)) over rows, g(T) = X b; return also its gradient (k,) and Hessian (k, k) by b (k,).

    >>> one = np.ones(1)
    >>> value, gradient, hessian = _log_likelihood("logit", np.ones((1, 1)), one, one, np.zeros(1))
    >>> round(value, 4), gradient, hessian  # ln 1/2, 1 - 1/2, -1/4
    (-0.6931, array([0.5]), array([[-0.25]]))
    """
    eta = np.einsum("ij,j->i", X, b)
    if link == "logit":
        value = y * eta - np.logaddexp(0.0, eta)
        T = np.exp(eta - np.logaddexp(0.0, eta))
        first, second = y - T, -T * (1 - T)
    else:
        # the outcome marked in `on_side` has probability exp(eta); at eta = 0 the other would be impossible
        on_side = y if link == "log" else 1.0 - y
        eta = np.minimum(eta, -1e-100)
        with np.errstate(over="ignore"):
            odds = 1.0 / np.expm1(-eta)  # exp(eta) / (1 - exp(eta)); 0 for eta far below 0
        value = on_side * eta + (1 - on_side) * np.log(-np.expm1(eta))
        first, second = on_side - (1 - on_side) * odds, -(1 - on_side) * odds * (1 + odds)
    # without BLAS, whose threads cost more than they save at two columns
    slope = np.einsum("ij,i->j", X, w * first)
    return float(np.sum(w * value)), slope, np.einsum("ij,i,ik->jk", X, w * second, X)


# ----------------------------------------------------------------------------------------------------
# fit_world: the simulated world most like a user's data (Roelofs et al., section 5.1 and appendix A)


@dataclass(frozen=True)
class WorldFit:
    """Hold a world fitted to data: the distribution of scores and every candidate curve.

    Parameters
    ----------
    beta : BetaFit
        The fitted distribution of scores.
    curves : tuple of CurveFit
        Candidate curves, the smallest AIC first.
    profile : Profile
        The data.

    See Also
    --------
    fit_world : Fit the world.

    Examples
    --------
    >>> import truecal as tc
    >>> scores, outcomes = tc.lab.World(tc.lab.Beta(2.0, 0.5)).draw(n=2000, rng=0)
    >>> fit = tc.lab.fit_world(tc.profile.Profile.from_arrays(scores[0], outcomes[0]))
    >>> fit.best is fit.curves[0], fit.world.true_error() < 0.1
    (True, True)
    """

    beta: BetaFit
    curves: tuple[CurveFit, ...]
    profile: tc.profile.Profile

    @property
    def best(self) -> CurveFit:
        """Curve of the smallest AIC."""
        return self.curves[0]

    @property
    def world(self) -> World:
        """World of the fitted Beta distribution and the best curve."""
        return World(self.beta.scores, self.best.curve)

    def __str__(self) -> str:
        """Write the distribution of scores, the best curve with its coefficients, and the true error of the world in norm 2."""
        curve = self.best.curve
        return (
            f"scores {self.beta.scores.describe()}, curve {self.best.name} (b0 {curve.b0:.3g}, b1 {curve.b1:.3g}), "
            f"true error {self.world.true_error():.4f} (norm 2)"
        )

    @property
    def empirical_world(self) -> World:
        """World of the best curve on the scores of the data.

        They are interpolated (`Empirical`) where at least 90 % differ and rows have no weights, else drawn with their weights
        (`Discrete`).
        """
        scores = self.profile.scores[0].astype(np.float64)
        smooth = self.profile.weights is None and self.profile.distinct[0] >= 0.9 * scores.size
        return World(Empirical(scores) if smooth else Discrete.of(self.profile), self.best.curve)

    def curve(self, name: str) -> CurveFit:
        """Return a candidate curve by its name.

        Parameters
        ----------
        name : str
            Name of the candidate, for example "logflip_logflip_b0_b1".

        Returns
        -------
        CurveFit
            The candidate.

        Raises
        ------
        InputError
            If there is no candidate of this name.
        """
        for fit in self.curves:
            if fit.name == name:
                return fit
        raise InputError(f"unknown curve {name!r}: use one of {', '.join(fit.name for fit in self.curves)}")


def fit_world(profile: tc.profile.Profile, *, resolution: float | None = None) -> WorldFit:
    """Fit a world to one dataset: Beta-distributed scores and the best of the candidate curves.

    Parameters
    ----------
    profile : Profile
        Scores and outcomes of one dataset.
    resolution : float, default None
        Distance to 0 or 1 below which a score is rounded to it; None is that of the coarsest floating-point type that
        represents all scores.

    Returns
    -------
    WorldFit
        The distribution of scores, all candidate curves and the worlds made of them.

    Raises
    ------
    InputError
        If the profile is a batch, all outcomes are equal, or the rows do not determine a fit.

    Notes
    -----
    Scores of exactly 0 or 1 are taken as rounded. For the Beta they count as P(1 - c < resolution); for the curves
    they are replaced by the geometric mean of 1 - c below the resolution, with log(1 - c) = log(resolution) - 1/beta.

    References
    ----------
    .. [1] R. Roelofs, N. Cain, J. Shlens, M. C. Mozer (2022). Mitigating Bias in Calibration Error Estimation.
           AISTATS, section 5.1 and appendix A.

    Examples
    --------
    >>> import truecal as tc
    >>> world = tc.lab.World(tc.lab.Beta(2.0, 0.5), tc.lab.GLM("logit", "logit", -0.5, 0.6))
    >>> scores, outcomes = world.draw(n=20_000, rng=0)
    >>> fit = tc.lab.fit_world(tc.profile.Profile.from_arrays(scores[0], outcomes[0]))
    >>> fit.best.name
    'logit_logit_b0_b1'
    >>> abs(fit.world.true_error() - world.true_error()) < 0.01
    True
    """
    check_profile(profile)
    if profile.batch != 1:
        raise InputError(f"fit_world takes one dataset, not a batch of {profile.batch}: fit them one by one")
    scores = profile.scores[0].astype(np.float64)
    outcomes = np.asarray(profile.outcomes[0], dtype=np.float64)
    weights = np.ones_like(scores) if profile.weights is None else profile.weights[0].astype(np.float64)
    weights = weights * (float(profile.size[0]) / weights.sum())
    right = float(weights @ outcomes / weights.sum())
    if right in (0.0, 1.0):
        raise InputError(f"every outcome is {right:.0f}; a calibration curve needs both outcomes")
    try:
        beta = fit_beta(scores, weights, resolution=resolution)
        c, rest = _impute_ends(scores, beta)
        return WorldFit(beta, tuple(fit_curves(c, rest, outcomes, weights)), profile)
    except np.linalg.LinAlgError as error:
        raise InputError(f"{len(scores)} rows do not determine a curve; give more, with different scores") from error


def _impute_ends(scores: Array, beta: BetaFit) -> tuple[Array, Array]:
    """Return c and 1 - c (n,) of scores; where one is 0 it is replaced by exp(log(resolution) - 1 / exponent) of the fitted Beta.

    The resolution is that of the fit, `beta.resolution`. The exponent is alpha for c and beta for 1 - c; the other of the two
    stays 1.
    """
    c, rest = scores.copy(), 1.0 - scores
    near_zero, near_one = (
        np.exp(np.log(beta.resolution) - 1.0 / exponent) for exponent in (beta.scores.alpha, beta.scores.beta)
    )
    c[scores == 0], rest[scores == 1] = near_zero, near_one
    return c, rest


# ----------------------------------------------------------------------------------------------------
# Goodness of fit


@dataclass(frozen=True)
class Goodness:
    """Hold the equal-width ECE of data beside that of datasets simulated from a fitted world.

    Parameters
    ----------
    on_data : float
        ECE of the data.
    simulated : float
        Mean ECE of the simulated datasets.
    simulated_std : float
        Standard deviation of the ECE of the simulated datasets.
    m : int
        Number of simulated datasets.

    See Also
    --------
    goodness : Simulate the comparison.

    Examples
    --------
    >>> import truecal as tc
    >>> check = tc.lab.Goodness(on_data=0.05, simulated=0.04, simulated_std=0.005, m=100)
    >>> round(check.z, 6), check.standard_error
    (2.0, 0.0005)
    """

    on_data: float
    simulated: float
    simulated_std: float
    m: int

    @property
    def standard_error(self) -> float:
        """Monte-Carlo standard error of `simulated`.

        >>> Goodness(0.05, 0.04, 0.02, 100).standard_error
        0.002
        """
        return float(self.simulated_std / np.sqrt(self.m))

    @property
    def z(self) -> float:
        """Difference of the data from the simulated mean in simulated standard deviations; NaN where these are 0.

        >>> round(Goodness(0.05, 0.04, 0.02, 100).z, 9)
        0.5
        """
        return (self.on_data - self.simulated) / self.simulated_std if self.simulated_std else float("nan")


def goodness(
    fit: WorldFit, world: World | None = None, *, norm: float = 2, bins: int = 15, m: int = 200, rng: Seed = 0
) -> Goodness:
    """Compare the equal-width ECE of data with that of datasets simulated from the fitted world.

    Parameters
    ----------
    fit : WorldFit
        A world fitted to the data.
    world : World, default None
        World to simulate; None is ``fit.world``.
    norm : float, default 2
        Norm of the ECE.
    bins : int, default 15
        Number of bins.
    m : int, default 200
        Number of simulated datasets, each of the size of the data.
    rng : int, Generator, SeedSequence or None, default 0
        Seed.

    Returns
    -------
    Goodness
        ECE of the data, and its mean and standard deviation in the simulation.

    References
    ----------
    .. [1] R. Roelofs, N. Cain, J. Shlens, M. C. Mozer (2022). Mitigating Bias in Calibration Error Estimation.
           AISTATS, Table 3.

    Examples
    --------
    >>> import truecal as tc
    >>> truth = tc.lab.World(tc.lab.Beta(2.0, 0.5), tc.lab.GLM("logit", "logit", -0.5, 0.6))
    >>> scores, outcomes = truth.draw(n=2000, rng=0)
    >>> check = tc.lab.goodness(tc.lab.fit_world(tc.profile.Profile.from_arrays(scores[0], outcomes[0])), m=50)
    >>> abs(check.z) < 3
    True
    """
    estimator = tc.BinnedECE(bins=bins, scheme="width", norm=norm)
    rows = round(float(fit.profile.size[0]))
    trial = bias(estimator, world or fit.world, n=rows, m=m, rng=rng)
    on_data = float(np.ravel(estimator.values(fit.profile))[0])
    return Goodness(on_data, trial.mean, trial.std, m)
