"""The rank series written out equation by equation, and the simulations behind its constants.

The numbers in brackets are those of docs/methods/rank-series.md. Plain numpy, row by row, sharing nothing with the package:
tests/tools/test_derivation.py compares the two. `python docs/methods/rank_series.py --simulate` prints the table of the page.
"""

import argparse
from dataclasses import dataclass, replace
from math import isqrt, sqrt
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtr

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
Side = tuple[npt.NDArray[np.bool_], Ints]  # rows of one side of 1/2, and twice their mid-ranks from 1/2 outwards
MIN_ORDER, MAX_ORDER = 3, 64
MAX_LEVERAGE = 0.95 + 1e-9


@dataclass(frozen=True)
class Constants:
    """What the simulations change, one at a time. The defaults are the package's."""

    level: float = 0.95
    penalty: float = 2.0  # of the noise in the risk (9)
    terms_per_root: float = 0.5  # K = floor(terms_per_root * sqrt(n)), between 3 and 64
    gate: float = 1.645  # standard deviations of noise beyond which (14) and the chosen ratio of (25) apply
    jensen: float = 1.0  # times the correction (14)
    enlargements: tuple[float, ...] = (1.0, 1.5, 2.0, 3.0, 5.0)  # of the fitted curve, for the upper limit (16a)
    windows_per_term: tuple[int, ...] = (2, 4)  # (16c)
    window_rows: int = 16  # mean rows of a window, at least (16c)
    other_shape: float = 0.5  # of what an error among the rows that vary adds to b (16a)
    side_errors: float = 1.0  # standard errors by which the risk of the series by side must be lower (9a)
    refute: bool = True  # take more terms where the choice is refuted (9b)


@dataclass(frozen=True)
class Answer:
    """Value, interval and number of terms."""

    value: float
    low: float
    high: float
    terms: int


@dataclass(frozen=True)
class Fit:
    """Least-squares series of all orders; row k has k + 1 terms."""

    c: Array
    y: Array
    sides: list[Side]
    order: int  # K
    few: bool  # no more distinct scores than terms
    covariance: Array  # of beta under calibration, (K, K)
    curve: Array  # m, (K, n)
    leverage: Array  # h, (K, n)
    theta: Array  # (K,)
    risk: Array  # (K,)
    chosen: int  # row of the order that minimises the risk


def rank_series(c: Array, y: Array, k: Constants = Constants(), norm: int = 2) -> Answer:  # noqa: B008
    """Compute the estimate and its interval."""
    fit = fit_series(np.asarray(c, float), np.asarray(y, float), k)
    chosen = len(fit.theta) - 1 if fit.few else unrefuted(fit) if k.refute else fit.chosen  # (4b), (9b)
    x, gap = float(fit.theta[chosen]), fit.curve[chosen]
    z = NormalDist().inv_cdf(0.5 + k.level / 2)
    b, e = noise(fit.c, gap)
    significant = x > k.gate * sqrt(null_variance(fit, chosen)) and not fit.few
    corrected = x + k.jensen * (b + e * x) / 4 if significant else max(x, 0.0)  # (14)
    value = min(sqrt(corrected), 1.0)
    a = null_variance(fit, len(fit.theta) - 1)  # (16)
    low = sqrt(solve(float(fit.theta[-1]), a, b, e, z)[0])
    high = max(upper_limit(fit, gap, (a, b, e), z, k), unexpected_limit(fit, k.level))
    if norm == 1:
        mean, error = signed_mean(fit)
        low = max(mean - z * error, 0.0) if low > 0 else 0.0  # (24)
        ratio = shape_ratio(fit.curve[-1])
        if fit.theta[-1] > k.gate * sqrt(a):
            ratio = max(ratio, shape_ratio(gap))
        high = max(ratio * high, unexpected_limit(fit, k.level))  # (25)
        value *= shape_ratio(gap)  # (26)
    if fit.c[0] == fit.c[-1]:
        low, high = one_score_limits(float(fit.y.sum()), len(fit.c), float(fit.c[0]), k.level)
    return Answer(value, min(low, value), min(max(high, value), 1.0), chosen + 1)


def unrefuted(fit: Fit) -> int:
    """Find the first row whose theta is not significantly below that of all terms, if the chosen one is (9b)."""
    theta = max(float(fit.theta[fit.chosen]), 0.0)
    b, e = noise(fit.c, fit.curve[fit.chosen])
    variance = null_variance(fit, len(fit.theta) - 1) + b * theta + e * theta**2
    lowest = float(fit.theta[-1]) - 1.645 * sqrt(variance)
    return int((fit.theta > lowest).argmax()) if theta < lowest else fit.chosen


def null_variance(fit: Fit, last: int) -> float:
    """Compute a = 2 |V|_F^2 of the terms up to the last."""
    return 2 * float((fit.covariance[: last + 1, : last + 1] ** 2).sum())


def fit_series(c: Array, y: Array, k: Constants) -> Fit:
    """Fit the series in the rank of all rows and the one by side of 1/2, and take one (9a)."""
    order = np.argsort(c, kind="stable")
    c, y = c[order], y[order]
    terms = min(max(int(k.terms_per_root * sqrt(len(c))), MIN_ORDER), MAX_ORDER)
    group, sides = np.unique(c, return_inverse=True)[1], split(c)
    if group[-1] < terms:
        return fit_functions(c, y, indicators(group), terms, True, sides, k)
    fit = fit_functions(c, y, polynomials(twice_mid_ranks(c), terms), terms, False, sides, k)
    if len(sides) == 1:
        return fit
    by_side = fit_functions(c, y, two_sided(sides, len(c), terms), terms, False, sides, k)
    error = sqrt(null_variance(by_side, len(by_side.theta) - 1))
    return by_side if fit.risk.min() - by_side.risk.min() > k.side_errors * error else fit


def fit_functions(c: Array, y: Array, phi: Array, order: int, few: bool, sides: list[Side], k: Constants) -> Fit:
    """Fit the series of all numbers of terms in given functions and choose one."""
    n, r = len(c), y - c  # (1)
    beta = phi @ r / n  # (5)
    curve = np.cumsum(beta[:, None] * phi, axis=0)
    leverage = np.cumsum(phi**2, axis=0) / n  # (6)
    others = leave_one_out(curve, leverage, r)
    theta = (r * others).mean(axis=1)  # (8)
    risk = -theta + k.penalty * np.maximum((others**2).mean(axis=1) - theta, 0.0)  # (9)
    chosen = int((risk <= risk.min() + 1e-12).argmax())
    covariance = (phi * c * (1 - c)) @ phi.T / n**2  # (10)
    return Fit(c, y, sides, order, few, covariance, curve, leverage, theta, risk, chosen)


def leave_one_out(curve: Array, leverage: Array, r: Array) -> Array:
    """Evaluate the fit without each row (7); 0 where the leverage is too large."""
    usable = leverage <= MAX_LEVERAGE
    return np.where(usable, (curve - leverage * r) / np.where(usable, 1 - leverage, 1.0), 0.0)


def split(c: Array) -> list[Side]:
    """Separate the larger side of 1/2 from the smaller one (3a); both are one if the smaller has fewer than 16 rows."""
    above, below = int((c > 0.5).sum()), int((c < 0.5).sum())
    large = c >= 0.5 if above >= below else c <= 0.5
    outwards = c if above >= below else -c
    if len(c) - int(large.sum()) < 16:
        return [(np.ones(len(c), bool), twice_mid_ranks(outwards))]
    return [(large, twice_mid_ranks(outwards[large])), (~large, twice_mid_ranks(-outwards[~large]))]


def twice_mid_ranks(values: Array) -> Ints:
    """Count the rows below each row and those not above it (3)."""
    _, group, size = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((2 * np.cumsum(size) - size)[group])


def indicators(group: Ints) -> Array:
    """Take a function for each distinct score (4b)."""
    inside = (group == np.arange(group[-1] + 1)[:, None]).astype(float)
    return inside / np.sqrt(inside.mean(axis=1, keepdims=True))


def two_sided(sides: list[Side], n: int, terms: int) -> Array:
    """Combine the polynomials of both sides in pairs (4a)."""
    (large, large_ranks), (small, small_ranks) = sides
    share = len(small_ranks) / n
    first = polynomials(large_ranks, terms) / sqrt(1 - share)
    second = polynomials(small_ranks, min(isqrt(len(small_ranks)) // 4, terms)) / sqrt(share)
    basis = []
    for j in range(max(len(first), len(second))):
        p, q = np.zeros(n), np.zeros(n)
        p[large], q[small] = first[j] if j < len(first) else 0.0, second[j] if j < len(second) else 0.0
        if j < min(len(first), len(second)):
            basis += [sqrt(1 - share) * p - sqrt(share) * q, sqrt(share) * p + sqrt(1 - share) * q]
        else:
            basis.append(p + q)
    return np.array(basis[:terms])


def polynomials(ranks: Ints, terms: int) -> Array:
    """Orthonormalise powers of the rank by Gram and Schmidt (4), at most one for each distinct rank."""
    x = ranks / len(ranks) - np.mean(ranks / len(ranks))
    basis = np.ones((1, len(x)))
    while len(basis) < min(terms, len(np.unique(ranks))):
        new = x * basis[-1]
        for _ in range(2):  # twice, because long ties make powers nearly dependent
            new = new - basis.T @ (basis @ new) / len(x)
        basis = np.vstack([basis, new / np.sqrt(np.mean(new**2))])
    return basis


def noise(c: Array, gap: Array, enlargement: float = 1.0) -> tuple[float, float]:
    """Compute b (11) of a curve enlarged so many times, and e (12)."""
    rate, square, n = np.clip(c + enlargement * gap, 0, 1), gap**2, len(c)
    if not square.any():
        return 4 * float(np.mean(rate * (1 - rate))) / n, 0.0
    share = square / square.mean()
    return 4 * float(np.mean(share * rate * (1 - rate))) / n, (float(np.mean(share**2)) - 1) / n


def solve(x: float, a: float, b: float, e: float, z: float) -> tuple[float, float]:
    """Find the ends of {t in [0, 1]: (x - t)^2 <= z^2 (a + b t + e t^2)}  (17)."""
    x, lead = max(x, 0.0), max(1 - z * z * e, 0.0)
    half, product = x + z * z * b / 2, x * x - z * z * a
    top = half + sqrt(max(half**2 - lead * product, 0.0))
    return (max(product, 0.0) / top if top > 0 else 0.0), (top / lead if top < lead else 1.0)


def upper_limit(fit: Fit, gap: Array, variance: tuple[float, float, float], z: float, k: Constants) -> float:
    """Compute the upper limit of norm 2: windows (16c), and b that grows with theta (16a)."""
    x, (a, b, e) = float(fit.theta[-1]), variance
    for multiple in () if fit.few else k.windows_per_term:
        if multiple * fit.order * k.window_rows <= len(fit.c):
            x = max(x, window_estimate(fit, multiple * fit.order))
    slopes = np.maximum.accumulate([noise(fit.c, gap, t)[0] for t in k.enlargements])
    high, fitted, v = solve(x, a, b, e, z)[1], float(np.mean(gap**2)), fit.c * (1 - fit.c)
    variable = 4 * float(np.mean(v**2) / np.mean(v)) / len(v) if v.any() else 0.0
    for _ in range(50):
        enlarged = float(np.interp(sqrt(high / fitted), k.enlargements, slopes)) if fitted > 0 else b
        share = min(fitted / high, 1.0) if high > 0 else 1.0
        other = share * b + (1 - share) * variable
        high = solve(x, a, enlarged + k.other_shape * max(other - enlarged, 0.0), e, z)[1]
    return sqrt(high)


def window_estimate(fit: Fit, windows: int) -> float:
    """Average products of residuals within windows, over two partitions half a window apart (16b)."""
    n, total = len(fit.c), 0.0
    for inside, ranks in fit.sides:
        size, r = len(ranks), (fit.y - fit.c)[inside]
        number = max((2 * windows * size + n) // (2 * n), 1)  # in proportion to the rows of the side
        for shift in (0, size):
            window = (number * ranks + shift) // (2 * size)  # whole numbers: edges are exact
            rows, sums, squares = (np.bincount(window, weights) for weights in (None, r, r * r))
            pairs = rows > 1
            total += float(((sums**2 - squares)[pairs] / (rows[pairs] - 1)).sum()) / (2 * n)
    return total


def unexpected_limit(fit: Fit, level: float) -> float:
    """Compute the exact upper limit of the excess of outcomes on the other side of 1/2 than their scores (16d)."""
    n = len(fit.c)
    observed = float(np.where(fit.c == 0.5, 0.5, fit.y != (fit.c > 0.5)).sum())
    limit = float(betaincinv(observed + 1, n - observed, 0.5 + level / 2)) if observed < n else 1.0
    return limit - float(np.minimum(fit.c, 1 - fit.c).mean())


def one_score_limits(ones: float, n: int, score: float, level: float) -> tuple[float, float]:
    """Compute the exact limits of |rate - score| (16e)."""
    least = float(betaincinv(ones, n - ones + 1, 0.5 - level / 2)) if ones > 0 else 0.0
    largest = float(betaincinv(ones + 1, n - ones, 0.5 + level / 2)) if ones < n else 1.0
    return max(least - score, score - largest, 0.0), max(largest - score, score - least)


def shape_ratio(gap: Array) -> float:
    """Compute mean|m| / rms(m)."""
    return float(np.mean(np.abs(gap)) / np.sqrt(np.mean(gap**2))) if gap.any() else 1.0


def signed_mean(fit: Fit) -> tuple[float, float]:
    """Compute V of all terms and its standard error (23)."""
    gap, h, r = fit.curve[-1], fit.leverage[-1], fit.y - fit.c
    shrunk = (np.clip(fit.c + gap, 0, 1) + h / 2) / (1 + h)  # (15)
    deviation = np.maximum(np.sqrt(h * shrunk * (1 - shrunk)), np.finfo(float).tiny)
    products = (2 * ndtr(leave_one_out(gap, h, r) / deviation) - 1) * r
    return float(products.mean()), float(products.std()) / sqrt(len(r))


VARIANTS = {
    "as it is": {},
    "never by side": {"side_errors": np.inf},
    "by side where its risk is lower at all": {"side_errors": 0.0},
    "choice never refuted": {"refute": False},
    "penalty 1 (leave-one-out cross-validation)": {"penalty": 1.0},
    "penalty 3": {"penalty": 3.0},
    "K = sqrt(n) / 4": {"terms_per_root": 0.25},
    "K = sqrt(n)": {"terms_per_root": 1.0},
    "no Jensen correction": {"jensen": 0.0},
    "Jensen correction without a gate": {"gate": 0.0},
    "slope of the fitted curve at both ends": {"enlargements": (1.0,), "other_shape": 0.0},
    "slope of the fitted curve enlarged, of no other": {"other_shape": 0.0},
    "slope of any shape in full": {"other_shape": 1.0},
    "no windows": {"windows_per_term": ()},
    "windows 2K only": {"windows_per_term": (2,)},
    "windows 2K, 4K and 8K": {"windows_per_term": (2, 4, 8)},
    "windows of 8 rows": {"window_rows": 8},
}


def simulate(datasets: int, sizes: tuple[int, ...], seed: int = 0) -> list[str]:
    """Mean |bias| over worlds in percent and mean coverage (worst world) of the 90 % interval, for every variant, as Markdown."""
    import truecal as tc

    raw = list(tc.lab.PAPER_WORLDS.values())
    families = {
        "raw": raw,
        "calibrated": [world.perfectly_recalibrated() for world in raw],
        "near": [world.partly_recalibrated(0.02) for world in raw],
    }
    lines = ["| variant | n | " + " | ".join(f"{f} bias | {f} coverage" for f in families) + " |"]
    lines.append("|---|---:|" + "---:|---:|" * len(families))
    drawn = {
        (n, family, i): (world.draw(n, datasets, rng=[seed, n, i]), world.true_error(2))
        for n in sizes
        for family, worlds in families.items()
        for i, world in enumerate(worlds)
    }
    for name, change in VARIANTS.items():
        constants = replace(Constants(level=0.90), **change)
        for n in sizes:
            cells = []
            for family, worlds in families.items():
                biases, coverages = [], []
                for i in range(len(worlds)):
                    (scores, outcomes), truth = drawn[n, family, i]
                    answers = [rank_series(c, y, constants) for c, y in zip(scores, outcomes, strict=True)]
                    biases.append(abs(np.mean([a.value for a in answers]) - truth))
                    coverages.append(np.mean([a.low <= truth + 1e-12 and truth <= a.high for a in answers]))
                cells.append(f"{100 * np.mean(biases):.2f} | {np.mean(coverages):.2f} ({min(coverages):.2f})")
            lines.append(f"| {name} | {n} | " + " | ".join(cells) + " |")
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--datasets", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 1600])
    options = parser.parse_args()
    if options.simulate:
        print("\n".join(simulate(options.datasets, tuple(options.sizes))))
