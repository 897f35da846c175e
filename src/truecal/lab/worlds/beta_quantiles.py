"""Draws from a Beta distribution that move continuously with its parameters: its quantile function at uniform numbers.

A rejection sampler takes another path through the random numbers as soon as a parameter differs in its last bit, as fitted
parameters do between machines. The quantile function does not. It is tabulated in logits, x(s) = logit c at s = logit u:
there it is smooth and has straight tails, x ~ (s + log(alpha B)) / alpha to the left and x ~ (s - log(beta B)) / beta to the
right, with B = B(alpha, beta). Between the nodes it is a cubic with the exact slope at both of them,

    dx/ds = u (1 - u) / (f(c) c (1 - c)),    f(c) c (1 - c) = c^alpha (1 - c)^beta / B.

c and 1 - c both follow from x to full relative precision, which 1 - c needs where c rounds to 1.
"""

from functools import lru_cache

import numpy as np

from truecal.lab.worlds.quadrature import Array

# Uniform numbers are multiples of 2^-53; zero is read as half of the smallest. Logits of all of them lie within +-38.
_LEAST = 2.0**-54
_REACH = 38.0
# With 2048 cubics the error in c is below 1e-9 for exponents >= 0.1, below 1e-6 for exponents >= 0.02 (measured; the test
# repeats it): far below the noise of any simulation that fits in memory.
_CUBICS = 2048
_BLOCK = 2**14  # numbers at a time: the intermediate arrays stay in the processor's cache
_UNDERFLOW = 1e-250  # quantiles below this are taken from the straight tail, to which they are equal to within rounding


def beta_from_uniforms(alpha: float, beta: float, u: Array) -> tuple[Array, Array]:
    """c and 1 - c, where c is the u-quantile of Beta(alpha, beta), for u in [0, 1).

    >>> c, rest = beta_from_uniforms(2.0, 1.0, np.array([0.25, 0.81]))  # P(score <= c) = c^2
    >>> c.round(8), (c + rest).round(12)
    (array([0.5, 0.9]), array([1., 1.]))
    """
    table = _table(float(alpha), float(beta))
    flat = np.ravel(u)
    c, rest = np.empty(flat.size), np.empty(flat.size)
    with np.errstate(over="ignore"):  # exp overflows to infinity where c or 1 - c is below 1e-308: they become 0
        for low in range(0, flat.size, _BLOCK):
            part = slice(low, low + _BLOCK)
            x = _logits(table, flat[part])
            c[part] = 1.0 / (1.0 + np.exp(-x))
            rest[part] = 1.0 / (1.0 + np.exp(x))
    return c.reshape(np.shape(u)), rest.reshape(np.shape(u))


def _logits(table: Array, u: Array) -> Array:
    """x(s) at s = logit u, by the cubic of the panel that s falls in."""
    place = np.maximum(u, _LEAST)
    place /= 1.0 - place
    np.log(place, out=place)
    place += _REACH
    place *= _CUBICS / (2 * _REACH)
    panel = place.astype(np.intp)
    place -= panel
    x = table[3].take(panel)
    for coefficients in (table[2], table[1], table[0]):
        x *= place
        x += coefficients.take(panel)
    return x


@lru_cache(maxsize=64)
def _table(alpha: float, beta: float) -> Array:
    """Coefficients of t^0 .. t^3, t in [0, 1) along each panel: the cubic Hermite interpolant. Shape (4, panels)."""
    s = np.linspace(-_REACH, _REACH, _CUBICS + 1)
    x, slope = exact_logits(alpha, beta, s)
    slope *= s[1] - s[0]
    rise, left, right = np.diff(x), slope[:-1], slope[1:]
    return np.stack([x[:-1], left, 3 * rise - 2 * left - right, left + right - 2 * rise])


def exact_logits(alpha: float, beta: float, s: Array) -> tuple[Array, Array]:
    """logit c and its slope in s, where c is the quantile at u = 1 / (1 + exp(-s)).

    The smaller of u and 1 - u is given to the inverse of the incomplete Beta function, and both c and 1 - c are asked for.
    """
    from scipy.special import betainccinv, betaincinv, betaln

    log_scale = float(betaln(alpha, beta))
    left = s < 0
    log_large = -np.log1p(np.exp(-np.abs(s)))
    log_small = log_large - np.abs(s)
    small = np.exp(log_small)
    c = np.where(left, betaincinv(alpha, beta, small), betainccinv(alpha, beta, small))
    rest = np.where(left, betainccinv(beta, alpha, small), betaincinv(beta, alpha, small))
    with np.errstate(divide="ignore"):
        log_c = np.where(left & (c < _UNDERFLOW), (log_small + np.log(alpha) + log_scale) / alpha, np.log(c))
        log_rest = np.where(~left & (rest < _UNDERFLOW), (log_small + np.log(beta) + log_scale) / beta, np.log(rest))
    slope = np.exp(log_small + log_large - alpha * log_c - beta * log_rest + log_scale)
    return log_c - log_rest, slope
