"""A candidate for the next rank series: a two-sided basis and fewer constants, estimate and interval of both norms.

The numbers in brackets are those of docs/methods/rank-series.md. Plain numpy, row by row, sharing nothing with the package.
Constants: derived, numerical or with their measured effect (README.md: 38 worlds, and 16 written after all choices).
"""

from dataclasses import dataclass
from math import isqrt, sqrt
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, gammaincinv, ndtr

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
Side = tuple[Mask, Ints]  # rows of one side of 1/2, and twice their mid-ranks among themselves, from unsure to sure


@dataclass(frozen=True)
class Constants:
    """Every constant of the method. The defaults are the package's; the study changes one at a time."""

    level: float = 0.95
    # Tuned on the papers' worlds (docs/methods/rank-series.md). 38 worlds, n = 100 / 300 / 1000: 1 changes the mean
    # bias by -9 / -9 / -8 %
    # and RMSE by -1 / -2 / -2 %; 3 by +7 / +4 / +5 % and -1 / +1 / 0 %
    penalty: float = 2.0  # of the noise in the risk (9)
    least_terms: int = 3  # derived: constant, slope and bend; felt below n = 36, not measured there
    most_terms: int = 64  # cost: K times the number of cells; felt from n = 16,384 on, not measured
    largest_leverage: float = 0.95 + 1e-9  # numerical: (7) divides by 1 - h; a row beyond it all but fits itself
    sure: float = 0.95  # convention: one-sided 5 %; what stands out of the noise in (9b), (14) and (26)
    # Numerical: where b(theta) is computed, linear between. Without (16a) 4 / 2 / 1 % shorter, coverage -0.004 / -0.001 / -0.003
    enlarged: tuple[float, ...] = (1.0, 1.5, 2.0, 3.0, 5.0)  # (16a)
    # Not tuned here. None: 0 / 3 / 7 % shorter, coverage 0 / -0.002 / -0.005; 2 alone: 3 % shorter at n = 1000, coverage the same
    windows: tuple[int, ...] = (2, 4)  # for every term (16d)
    # Chosen on these worlds. 8: 3 % longer at n = 300; no limit: 8 % longer at n = 100; coverage +0.003
    window_rows: int = 16  # that a window holds on average, at least (16d)
    # Chosen on these worlds. Norm 1, n = 100 / 300 / 1000: 1 is 6 / 4 / 3 % longer, all terms 4 / 4 / 1 % shorter (5
    # % longer at n = 5000)
    longer: int = 2  # times the chosen terms, for signs and shape of norm 1 (23)


@dataclass(frozen=True)
class Answer:
    """Value, interval and number of terms."""

    value: float
    low: float
    high: float
    terms: int


@dataclass(frozen=True)
class Fit:
    """Least squares series of all lengths; row k has k + 1 terms."""

    c: Array
    y: Array
    r: Array
    sides: list[Side]
    covariance: Array  # of beta if the model is calibrated, (K, K)
    curve: Array  # m, (K, n)
    leverage: Array  # h, (K, n)
    theta: Array  # (K,)
    chosen: int
    most: int  # K, also where fewer distinct scores have fewer terms
    few: bool  # whether the terms are all there can be


def rank_series(c: Array, y: Array, k: Constants = Constants(), norm: int = 2) -> Answer:  # noqa: B008
    """The estimate and its interval."""
    fit = _fit(np.asarray(c, float), np.asarray(y, float), k)
    last, n, z = len(fit.theta) - 1, len(fit.c), NormalDist().inv_cdf(0.5 + k.level / 2)
    chosen = _not_refuted(fit, k)
    x, gap = fit.theta[chosen], fit.curve[chosen]
    b, e = _noise(fit.c, gap)  # (11), (12)
    a, third = _null(fit, chosen)
    stands_out = x > _quantile(a, third, k.sure) * sqrt(a)
    value = min(sqrt(x + (b + e * x) / 4 if stands_out else max(x, 0.0)), 1.0)  # (14)
    a, third = _null(fit, last)
    low = sqrt(_lower(fit.theta[last], a, third, b, e, 0.5 + k.level / 2))  # (17)
    high = _upper(fit, gap, a, b, e, z, k)
    if norm == 1:
        refuted = _lower(fit.theta[last], a, third, b, e, k.sure) > 0  # that the model is calibrated
        found, low, high = _absolute(fit, chosen, low, high, z, k)
        value = max(value * _shape(gap), found if refuted else 0.0)  # (26)
    high = max(high, _unexpected(fit, k.level))
    if fit.c[0] == fit.c[-1]:
        low, high = _exact_limits(float(fit.y.sum()), n, float(fit.c[0]), k.level)
    return Answer(value, min(low, value), min(max(high, value), 1.0), chosen + 1)


def _not_refuted(fit: Fit, k: Constants) -> int:
    """The chosen length, or the next one whose theta the lower limit of all terms does not exceed (9b)."""
    chosen, (a, third) = fit.chosen, _null(fit, len(fit.theta) - 1)
    while _lower(fit.theta[-1], a, third, *_noise(fit.c, fit.curve[chosen]), k.sure) > max(fit.theta[chosen], 0.0):
        chosen += 1  # ends at the last one: no limit exceeds its own X
    return chosen


def _fit(c: Array, y: Array, k: Constants) -> Fit:
    order = np.argsort(c, kind="stable")
    c, y = c[order], y[order]
    n, r = len(c), y - c  # (1)
    most = min(max(isqrt(n) // 2, k.least_terms), k.most_terms)
    sides, group = _sides(c), np.unique(c, return_inverse=True)[1]
    few = group[-1] < most
    phi = _one_for_each(group) if few else _two_sided_basis(sides, n, most)  # (4), shape (K, n)
    beta = phi @ r / n  # (5)
    curve = np.cumsum(beta[:, None] * phi, axis=0)
    leverage = np.cumsum(phi**2, axis=0) / n  # (6)
    left_out = _leave_one_out(curve, leverage, r, k)
    theta = (r * left_out).mean(axis=1)  # (8)
    risk = -theta + k.penalty * np.maximum((left_out**2).mean(axis=1) - theta, 0.0)  # (9)
    chosen = len(phi) - 1 if few else int((risk <= risk.min() + 1e-12).argmax())  # (9a)
    covariance = (phi * c * (1 - c)) @ phi.T / n**2  # (10)
    return Fit(c, y, r, sides, covariance, curve, leverage, theta, chosen, most, few)


def _leave_one_out(curve: Array, leverage: Array, r: Array, k: Constants) -> Array:
    """What the other rows say of a row (7); nothing where it all but fits itself."""
    usable = leverage <= k.largest_leverage
    return np.where(usable, (curve - leverage * r) / np.where(usable, 1 - leverage, 1.0), 0.0)


def _sides(c: Array) -> list[Side]:
    """The larger side of 1/2 and the smaller one, or one for all rows (3). A score of 1/2 is on the larger side, else the upper."""
    above, below = int((c > 0.5).sum()), int((c < 0.5).sum())
    large = c >= 0.5 if above >= below else c <= 0.5
    key = c if above >= below else -c
    if len(c) - int(large.sum()) < 4:  # floor(sqrt(n_small) / 2) is 0
        return [(np.ones(len(c), bool), _twice_mid_ranks(key))]
    return [(large, _twice_mid_ranks(key[large])), (~large, _twice_mid_ranks(-key[~large]))]


def _twice_mid_ranks(values: Array) -> Ints:
    """#{< v} + #{<= v}: whole numbers, so that no rounding decides in which window a row is."""
    _, group, size = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((2 * np.cumsum(size) - size)[group])


def _two_sided_basis(sides: list[Side], n: int, most: int) -> Array:
    """Orthonormal polynomials in the rank of each side, turned in pairs (4a)."""
    if len(sides) == 1:
        return _polynomials(sides[0][1], most)
    (large, ranks), (small, small_ranks) = sides
    share = len(small_ranks) / n
    first = _polynomials(ranks, most) / sqrt(1 - share)
    paid = most if 2 * len(small_ranks) == n else min(isqrt(len(small_ranks)) // 2, most)  # a few rows carry no terms
    second = _polynomials(small_ranks, paid) / sqrt(share)
    basis = []
    for j in range(max(len(first), len(second))):
        p, q = np.zeros(n), np.zeros(n)
        p[large], q[small] = first[j] if j < len(first) else 0.0, second[j] if j < len(second) else 0.0
        if j < min(len(first), len(second)):
            basis += [sqrt(1 - share) * p - sqrt(share) * q, sqrt(share) * p + sqrt(1 - share) * q]
        else:
            basis.append(p + q)
    return np.array(basis[:most])


def _polynomials(twice_ranks: Ints, terms: int) -> Array:
    """At most so many, orthonormal over these ranks."""
    u = twice_ranks / len(twice_ranks)
    powers = np.polynomial.legendre.legvander(u - u.mean(), min(terms, len(np.unique(u))) - 1)
    q, triangle = np.linalg.qr(powers)
    return (q * np.sign(np.diagonal(triangle))).T * np.sqrt(len(u))


def _one_for_each(group: Ints) -> Array:
    """All terms there can be: one for each distinct score (9a)."""
    inside = (group == np.arange(group[-1] + 1)[:, None]).astype(float)
    return inside / np.sqrt(inside.mean(axis=1, keepdims=True))


def _noise(c: Array, gap: Array, times: float = 1.0) -> tuple[float, float]:
    """b (11) were the curve so many times as far from the diagonal, and e (12)."""
    rate, square, n = np.clip(c + times * gap, 0, 1), gap**2, len(c)
    if not square.any():
        return 4 * float(np.mean(rate * (1 - rate))) / n, 0.0
    share = square / square.mean()
    return 4 * float(np.mean(share * rate * (1 - rate))) / n, (float(np.mean(share**2)) - 1) / n


def _null(fit: Fit, last: int) -> tuple[float, float]:
    """Variance a (16) and third cumulant of theta with so many terms if the model is calibrated: a sum of weighted chi-squares."""
    v = fit.covariance[: last + 1, : last + 1]
    return 2 * float((v * v).sum()), 8 * float((v * (v @ v)).sum())


def _quantile(variance: float, third: float, chance: float) -> float:
    """Quantile of a standardised gamma variable with these cumulants (exact for one term), else normal (16g)."""
    skewness = third / variance**1.5 if variance > 0 else 0.0
    if skewness < 1e-3:
        return NormalDist().inv_cdf(chance)
    shape = 4 / skewness**2
    return float(gammaincinv(shape, chance) - shape) / sqrt(shape)


def _lower(x: float, a: float, third: float, b: float, e: float, chance: float) -> float:
    """Lower limit of theta: where x is this quantile of the estimate; the third cumulant is that of noise alone."""
    low = 0.0
    for _ in range(30):
        low = _ends(x, a, b, e, _quantile(a + b * low + e * low**2, third, chance))[0]
    return low


def _ends(x: float, a: float, b: float, e: float, z: float) -> tuple[float, float]:
    """Ends of {t in [0, 1]: (x - t)^2 <= z^2 (a + b t + e t^2)}  (17)."""
    x, lead = max(x, 0.0), max(1 - z * z * e, 0.0)
    half, rest = x + z * z * b / 2, x * x - z * z * a
    top = half + sqrt(max(half**2 - lead * rest, 0.0))
    return (max(rest, 0.0) / top if top > 0 else 0.0), (1.0 if top >= lead else top / lead)


def _upper(fit: Fit, gap: Array, a: float, b: float, e: float, z: float, k: Constants) -> float:
    """Upper limit of norm 2: b grows with theta (16a), windows show what the series leaves out (16d)."""
    x = fit.theta[-1]
    for times in () if fit.few else k.windows:
        if times * fit.most * k.window_rows <= len(fit.c):
            x = max(x, _seen_in_windows(fit, times * fit.most))  # (16d)
    noise = np.maximum.accumulate([_noise(fit.c, gap, times)[0] for times in k.enlarged])
    high, fitted = _ends(x, a, b, e, z)[1], float(np.mean(gap**2))
    for _ in range(50):  # (16a)
        larger = float(np.interp(sqrt(high / fitted), k.enlarged, noise)) if fitted > 0 else b
        high = _ends(x, a, larger, e, z)[1]
    return sqrt(high)


def _seen_in_windows(fit: Fit, windows: int) -> float:
    """Mean product of the residuals of different rows of a window, twice, half a window apart (16b)."""
    n, found = len(fit.c), 0.0
    for rows, twice_ranks in fit.sides:
        size, r = len(twice_ranks), fit.r[rows]
        own = max((2 * windows * size + n) // (2 * n), 1)  # in proportion to the rows of the side
        for shift in (0, size):
            window = (own * twice_ranks + shift) // (2 * size)  # whole numbers: edges are exact
            count, total, square = (np.bincount(window, weights) for weights in (None, r, r * r))
            pairs = count > 1
            found += float(((total**2 - square)[pairs] / (count[pairs] - 1)).sum()) / (2 * n)
    return found


def _shape(gap: Array) -> float:
    """mean|m| / rms(m)."""
    return float(np.mean(np.abs(gap)) / np.sqrt(np.mean(gap**2))) if gap.any() else 1.0


def _absolute(fit: Fit, chosen: int, low: float, high: float, z: float, k: Constants) -> tuple[float, float, float]:
    """V where it stands out, and the limits of E|m|, from those of norm 2 and the series of twice the terms."""
    last = min(k.longer * (chosen + 1), len(fit.theta)) - 1
    gap, h = fit.curve[last], fit.leverage[last]
    rate = (np.clip(fit.c + gap, 0, 1) + h / 2) / (1 + h)  # (15)
    deviation = np.sqrt(h * rate * (1 - rate))
    others = _leave_one_out(gap, h, fit.r, k)
    faded = np.where(deviation > 0, 2 * ndtr(others / np.where(deviation > 0, deviation, 1.0)) - 1, np.sign(others))
    found, error = _mean(faded * fit.r)  # (23) V: its mean is at most E|m|
    signed, signed_error = _mean(np.sign(others) * fit.r)
    least = max(found - z * error, 0.0) if low > 0 else 0.0  # (24)
    return (
        found if found > NormalDist().inv_cdf(k.sure) * error else 0.0,
        least,
        max(_shape(gap) * high, signed + z * signed_error),
    )  # (25)


def _mean(values: Array) -> tuple[float, float]:
    """And its standard error."""
    return float(values.mean()), float(values.std()) / sqrt(len(values))


def _unexpected(fit: Fit, level: float) -> float:
    """Exact upper limit of the rate of outcomes on the other side of 1/2 than their scores, less what the scores expect (16f)."""
    n = len(fit.c)
    seen = float(
        np.where(fit.c == 0.5, 0.5, fit.y != (fit.c > 0.5)).sum()
    )  # at 1/2 none is unexpected: half of each is
    limit = float(betaincinv(seen + 1, n - seen, 0.5 + level / 2)) if seen < n else 1.0
    return limit - float(np.minimum(fit.c, 1 - fit.c).mean())


def _exact_limits(ones: float, n: int, score: float, level: float) -> tuple[float, float]:
    """One score for all rows: both norms are |rate - score|, and the rate has exact limits (Clopper and Pearson)."""
    least = float(betaincinv(ones, n - ones + 1, 0.5 - level / 2)) if ones > 0 else 0.0
    most = float(betaincinv(ones + 1, n - ones, 0.5 + level / 2)) if ones < n else 1.0
    return max(least - score, score - most, 0.0), max(most - score, score - least)
