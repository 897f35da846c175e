"""How probable a T as small as the one observed is, without simulation.

T = sum_k a_k t(N_k, K_k), where t(N, K) = N (K/N - s)^2 - r (1 - r) and r = (K + 2s) / (N + 2) is the rate drawn towards the
output. The terms are independent, so the distribution of T is their convolution: a product of Fourier transforms on a grid that
reaches from the least T to the largest of interest. Masses above the grid would wrap around; they are multiplied by rho^cell
before and divided by it afterwards, which leaves 1e-7 of them (Gruebel & Hermesmeier, ASTIN Bulletin 29, 1999). Terms are
rounded to the nearest cell; the counts observed count as at most the observed T wherever rounding puts them.

With many outputs T is taken as normal, with its exact mean and variance. Its own lower tail is lighter, because T is skewed to
the right, so this errs on the safe side.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from truecal.types import Float64s

PULL = 2.0  # rows' worth of the output itself in the noise of a rate
_LEAST = -0.25  # no t is smaller: r (1 - r) <= 1/4
_CELLS = 2048  # of the grid
_WRAPPED = 1e-7  # what is left of masses beyond the grid
_DAMPING = _WRAPPED ** (np.arange(_CELLS) / _CELLS)  # rho^cell
_REACH = 6.0  # standard deviations of a count that are looked at: a billionth lies beyond
_STEPS = 16  # values of a count per standard deviation; of larger counts not every value is looked at
_MANY = 200  # outputs beyond which T is taken as normal


def terms(s: Float64s | float, n: Float64s, k: Float64s) -> Float64s:
    """t(N, K) of every output; 0 for an output not seen."""
    rate = (k + PULL * s) / (n + PULL)
    return np.where(n > 0, n * (k / np.maximum(n, 1) - s) ** 2 - rate * (1 - rate), 0.0)


@dataclass(frozen=True, eq=False)
class NullTerms:
    """Outputs s with n rows and true rate p each; `weight` of every term.

    observed_terms : the terms observed. spread : variance of T over that of independent terms.
    more : how much larger the mean of T may become when one output is given Poisson counts.
    """

    s: Float64s
    n: Float64s
    p: Float64s
    weight: Float64s
    observed_terms: Float64s
    spread: float = 1.0
    more: float = 0.0

    @cached_property
    def observed(self) -> float:
        """A T below 0 is no evidence of an error below 0."""
        return max(float(self.observed_terms.sum()), 0.0) + 1e-9

    def tail(self) -> float:
        """P(T <= observed)."""
        mean, variance = (float(each.sum()) for each in self._moments)
        if self._many:
            return self._normal(mean, variance)
        return self._below(self._transforms.prod(axis=0), mean)

    def tail_with(self, j: int, share: float, rate: float) -> float:
        """P(T <= observed) when output j has Poisson counts: `share` rows expected, a part `rate` of them ones."""
        if self._many:
            own_mean, own_variance = self._poisson_moments(j, share, rate)
            mean, variance = (float(each.sum() - each[j]) for each in self._moments)
            return self._normal(mean + own_mean, variance + own_variance)
        (ones, p_ones), (zeros, p_zeros) = _poisson(share * rate), _poisson(share * (1 - rate))
        values = self.weight[j] * terms(
            self.s[j], ones[:, None] + zeros, np.broadcast_to(ones[:, None], (len(ones), len(zeros)))
        )
        mass = p_ones[:, None] * p_zeros
        others = self._before[j] * self._after[j]
        mean = float(self._moments[0].sum() - self._moments[0][j] + (values * mass).sum())
        transform = self._transformed(values.ravel()[None], mass.ravel()[None], self.weight[j : j + 1])
        return self._below(others * transform[0], mean)

    @property
    def _many(self) -> bool:
        return len(self.s) > _MANY

    @cached_property
    def _moments(self) -> tuple[Float64s, Float64s]:
        """Mean and variance of every term under binomial counts."""
        mean, variance = _binomial_moments(self.s, self.n, self.p)
        return self.weight * mean, self.weight**2 * variance

    def _normal(self, mean: float, variance: float) -> float:
        from scipy.special import ndtr

        if variance <= 0:
            return float(mean <= self.observed)
        return float(ndtr((self.observed - mean) / np.sqrt(self.spread * variance)))

    @cached_property
    def _step(self) -> float:
        """The width of a cell. T is stretched around its mean by sqrt(spread), so P may be asked for up to the mean."""
        top = self.observed
        if self.spread > 1:
            top = max(top, float(self._moments[0].sum()) + self.more)
        return (top - _LEAST * float(self.weight.sum())) / (_CELLS - 2)

    @cached_property
    def _transforms(self) -> npt.NDArray[np.complex128]:
        """Of the distribution of every term, shape (B, frequencies)."""
        counts, mass = _binomial(self.n, self.p)
        each = self.weight[:, None] * terms(self.s[:, None], self.n[:, None], counts)
        return self._transformed(each, mass, self.weight)

    def _transformed(self, each: Float64s, mass: Float64s, weight: Float64s) -> npt.NDArray[np.complex128]:
        """Of values (b, m) with masses (b, m) of the terms that have these weights."""
        cell = self._cell(each, weight[:, None])
        code = np.arange(len(each))[:, None] * (_CELLS + 1) + cell  # the last cell holds what is beyond the grid
        table = np.bincount(code.ravel(), mass.ravel(), len(each) * (_CELLS + 1)).reshape(len(each), -1)
        return np.fft.rfft(table[:, :_CELLS] * _DAMPING, axis=1)

    def _cell(self, value: Float64s, weight: Float64s) -> npt.NDArray[np.intp]:
        return np.rint((value - _LEAST * weight) / self._step).clip(0, _CELLS).astype(np.intp)

    @cached_property
    def _before(self) -> npt.NDArray[np.complex128]:
        """Products of the transforms of all outputs before each."""
        return np.cumprod(np.concatenate([np.ones_like(self._transforms[:1]), self._transforms[:-1]]), axis=0)

    @cached_property
    def _after(self) -> npt.NDArray[np.complex128]:
        back = self._transforms[::-1]
        return np.cumprod(np.concatenate([np.ones_like(back[:1]), back[:-1]]), axis=0)[::-1]

    def _below(self, transform: npt.NDArray[np.complex128], mean: float) -> float:
        end = mean + (self.observed - mean) / np.sqrt(self.spread)
        last = int(np.rint((end - _LEAST * float(self.weight.sum())) / self._step))
        if self.spread == 1:
            last = max(last, int(self._cell(self.observed_terms, self.weight).sum()))
        upto = int(np.clip(last + 1, 0, _CELLS))
        masses = np.fft.irfft(transform, _CELLS)[:upto] / _DAMPING[:upto]
        return float(np.clip(masses.sum(), 0.0, 1.0))

    def _poisson_moments(self, j: int, share: float, rate: float) -> tuple[float, float]:
        rows, mass = _poisson(share)
        mean, variance = _binomial_moments(self.s[j], np.maximum(rows, 1.0), np.full(len(rows), rate))
        mean, variance = mean * (rows > 0), variance * (rows > 0)
        overall = float(mass @ mean)
        second = float(mass @ (variance + mean**2)) - overall**2
        return float(self.weight[j]) * overall, float(self.weight[j]) ** 2 * second


def _binomial(n: Float64s, p: Float64s) -> tuple[Float64s, Float64s]:
    """Counts within reach of n p and their probabilities, shape (b, values); those outside 0..n have none."""
    from scipy.special import betaln, xlog1py, xlogy

    deviation = np.sqrt(n * p * (1 - p))
    stride = np.maximum(np.floor(deviation / _STEPS), 1.0)
    reach = np.minimum(np.ceil((_REACH * deviation + _REACH) / stride), np.ceil(n / stride))
    away = np.arange(-float(reach.max()), float(reach.max()) + 1)
    k = np.rint(n * p)[:, None] + stride[:, None] * away
    inside = (k >= 0) & (k <= n[:, None])
    k, n, p = np.where(inside, k, 0.0), n[:, None], p[:, None]
    log = -betaln(n - k + 1, k + 1) - np.log1p(n) + xlogy(k, p) + xlog1py(n - k, -p)
    mass = np.where(inside, np.exp(log), 0.0)
    return k, mass / mass.sum(axis=1, keepdims=True)


def _poisson(mean: float) -> tuple[Float64s, Float64s]:
    from scipy.special import gammaln, xlogy

    reach = _REACH * np.sqrt(mean) + _REACH
    k = np.arange(max(0.0, np.floor(mean - reach)), np.ceil(mean + reach) + 1)
    mass = np.exp(xlogy(k, mean) - mean - gammaln(k + 1))
    return k, mass / mass.sum()


def _binomial_moments(s: Float64s | float, n: Float64s, p: Float64s) -> tuple[Float64s, Float64s]:
    """Mean and variance of t = square K^2 + linear K + constant, from the central moments of K; 0 where n is 0."""
    safe = np.maximum(n, 1.0)
    square = 1 / safe + 1 / (safe + PULL) ** 2
    linear = -2 * s - 1 / (safe + PULL) + 2 * PULL * s / (safe + PULL) ** 2
    constant = safe * s**2 - PULL * s / (safe + PULL) + (PULL * s / (safe + PULL)) ** 2
    mean, second = safe * p, safe * p * (1 - p)
    third = second * (1 - 2 * p)
    fourth = second * (1 + 3 * (safe - 2) * p * (1 - p))
    slope = 2 * square * mean + linear
    variance = square**2 * (fourth - second**2) + slope**2 * second + 2 * square * slope * third
    expected = square * (second + mean**2) + linear * mean + constant
    return np.where(n > 0, expected, 0.0), np.where(n > 0, np.maximum(variance, 0.0), 0.0)
