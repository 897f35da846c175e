"""Naive transcriptions of every definition: slow, literal, and independent of the prefix sums they check.

All take plain sequences of one dataset. Ties: equal scores share the mean of their outcomes, written out row by row.
"""

import math
from itertools import pairwise

import numpy as np


def grouped(c, y):
    """Rows in ascending order of score, each with the mean outcome of all rows of its score."""
    c, y = np.asarray(c, float), np.asarray(y, float)
    order = np.argsort(c, kind="stable")
    c, y = c[order], y[order]
    return c, np.array([y[c == value].mean() for value in c])


def width_bins(c, bins, closed="left"):
    """Bin number of every score."""
    numbers = []
    for value in c:
        for j in range(bins):
            low, high = np.float64(j) / bins, np.float64(j + 1) / bins
            if closed == "left" and (low <= value < high or (j == bins - 1 and value >= low)):
                break
            if closed == "right" and (low < value <= high or (j == 0 and value <= high)):
                break
        numbers.append(j)
    return np.array(numbers)


def mass_cuts(c, bins, ties="keep"):
    """Sorted positions at which equal-mass bins begin and end."""
    n = len(c)
    cuts = []
    for k in range(bins + 1):
        t = math.ceil(k * n / bins)
        if ties == "keep" and 0 < t < n and c[t - 1] == c[t]:
            first = min(i for i in range(n) if c[i] == c[t])
            last = max(i for i in range(n) if c[i] == c[t]) + 1
            t = last if t - first >= last - t else first
        cuts.append(t)
    return cuts


def bins_of(c, y, bins, scheme, ties="keep", closed="left"):
    """Lists of (scores, outcomes), one per bin, empty ones included."""
    c, y = grouped(c, y)
    if scheme == "width":
        number = width_bins(c, bins, closed)
        return [(c[number == j], y[number == j]) for j in range(bins)]
    cuts = mass_cuts(c, bins, ties)
    return [(c[a:b], y[a:b]) for a, b in pairwise(cuts)]


def binned(c, y, bins, scheme="width", norm=1, ties="keep", closed="left"):
    parts = [(len(cs), abs(cs.mean() - ys.mean())) for cs, ys in bins_of(c, y, bins, scheme, ties, closed) if len(cs)]
    if norm == math.inf:
        return max(gap for _, gap in parts)
    return sum(n / len(c) * gap**norm for n, gap in parts) ** (1 / norm)


def label_binned(c, y, bins, scheme="width", norm=1, ties="keep", closed="left"):
    gaps = [abs(value - ys.mean()) for cs, ys in bins_of(c, y, bins, scheme, ties, closed) for value in cs]
    if norm == math.inf:
        return max(gaps)
    return (sum(gap**norm for gap in gaps) / len(c)) ** (1 / norm)


def debiased_power(c, y, bins, norm=2, correction="kumar", scheme="mass", ties="keep"):
    n = len(c)
    total = used = 0.0
    raw = {value: [b for a, b in zip(c, y, strict=True) if a == value] for value in set(c)}
    for cs, ys in bins_of(c, y, max(1, min(bins, n // 2)), scheme, ties):
        m = len(cs)
        if m < 2:
            continue
        gap, rate = cs.mean() - ys.mean(), ys.mean()
        if norm == 1:
            spread = math.sqrt(rate * (1 - rate) / m)
            z = np.random.default_rng(0).standard_normal(400_000)
            term = 2 * abs(gap) - np.abs(gap + spread * z).mean()
        elif correction == "kumar":
            term = gap**2 - rate * (1 - rate) / (m - 1)
        else:
            residuals = np.array([b - value for value in sorted(set(cs)) for b in raw[value]])  # needs ties="keep"
            term = gap**2 - residuals.var(ddof=1) / m
        total += m * term
        used += m
    if not used:
        return sum(len(cs) / n * abs(cs.mean() - ys.mean()) ** norm for cs, ys in bins_of(c, y, 1, scheme, ties))
    return total / used


def sweep(c, y, scheme="mass", norm=2, ties="keep"):
    best = 1
    for b in range(2, len(c) + 1 if len(set(np.asarray(c).tolist())) > 1 else 2):
        rates = [ys.mean() for _, ys in bins_of(c, y, b, scheme, ties) if len(ys)]
        if any(later < earlier - 1e-12 for earlier, later in pairwise(rates)):
            break
        best = b
    return best, binned(c, y, best, scheme, norm, ties)


def nearest(c, y, k, norm=2):
    c, y = grouped(c, y)
    n = len(c)
    gaps = []
    for i in range(n):
        low, high = i, i + 1
        while high - low < k:
            if high == n or (low > 0 and (c[low - 1] + c[high]) / 2 >= c[i]):
                low -= 1
            else:
                high += 1
        gaps.append(abs(c[low:high].mean() - y[low:high].mean()))
    if norm == math.inf:
        return max(gaps)
    return (sum(gap**norm for gap in gaps) / n) ** (1 / norm)


def _cells(c, y, cells):
    number = width_bins(c, cells) if cells <= 64 else np.minimum(np.floor(np.asarray(c) * cells).astype(int), cells - 1)
    weight, score, outcome = np.zeros(cells), np.zeros(cells), np.zeros(cells)
    for j, a, b in zip(number, c, y, strict=True):
        weight[j] += 1 / len(c)
        score[j] += a / len(c)
        outcome[j] += b / len(c)
    return weight, score, outcome


def kernel_density(c, y, cells, norm=2):
    weight, _, outcome = _cells(c, y, cells)
    x = (np.arange(cells) + 0.5) / cells
    h = max(np.std(c) * (2 * len(c)) ** -0.2, 2 / cells)
    density, positive = np.zeros(cells), np.zeros(cells)
    for i in range(cells):
        for image in [s * x + 2 * m for m in range(-3, 4) for s in (1, -1)]:
            kernel = np.maximum(1 - ((x[i] - image) / (3 * h)) ** 2, 0) ** 3
            density[i] += (kernel * weight).sum()
            positive[i] += (kernel * outcome).sum()
    dense = density > 1e-12 * density.max()
    gap = np.abs(x[dense] - np.clip(positive[dense] / density[dense], 0, 1))
    if norm == math.inf:
        return gap.max()
    return ((gap**norm * density[dense]).sum() / density[dense].sum()) ** (1 / norm)


def smooth(c, y, cells):
    _, score, outcome = _cells(c, y, cells)
    residual = outcome - score
    x = (np.arange(cells) + 0.5) / cells

    def error(sigma):
        total = np.zeros(cells)
        for image in [s * x + 2 * m for m in range(-3, 4) for s in (1, -1)]:
            kernel = np.exp(-(((x[:, None] - image[None, :]) / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))
            total += kernel @ residual
        return np.abs(total).mean()

    low, high = 1 / cells, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if error(middle) > middle else (low, middle)
    return error(low)


def isotonic(c, y):
    """MCB by pooling adjacent violators of the distinct scores, one pair at a time."""
    c, y = np.asarray(c, float), np.asarray(y, float)
    blocks = [[(c == v).sum(), y[c == v].mean()] for v in np.unique(c)]
    i = 0
    while i < len(blocks) - 1:
        if blocks[i][1] > blocks[i + 1][1]:
            (m, a), (n, b) = blocks[i], blocks[i + 1]
            blocks[i : i + 2] = [[m + n, (m * a + n * b) / (m + n)]]
            i = max(i - 1, 0)
        else:
            i += 1
    fit = np.repeat([rate for _, rate in blocks], [int(n) for n, _ in blocks])
    order = np.argsort(c, kind="stable")
    return ((c - y) ** 2).mean() - ((fit - y[order]) ** 2).mean()


def _rank_functions(c, terms, by_side):
    """Orthonormal functions of the rank, of all rows or within each side of 1/2 in pairs; `c` is sorted."""
    n, above, below = len(c), (c > 0.5).sum(), (c < 0.5).sum()
    large = c >= 0.5 if above >= below else c <= 0.5

    def powers(inside, count):
        values = np.abs(c[inside] - 0.5) if inside.sum() < n else c if above >= below else -c
        rank = np.array([(np.sum(values < v) + np.sum(values <= v)) / 2 for v in values]) / inside.sum()
        count = min(count, len(set(rank.tolist())))
        basis = np.zeros((n, count))
        basis[inside] = np.linalg.qr(np.vander(rank - rank.mean(), count, increasing=True))[0] * math.sqrt(n)
        columns = np.arange(count)
        return basis * np.where(basis[inside][rank.argmax(), columns] < 0, -1, 1)  # positive far from 1/2

    small = n - int(large.sum())
    if small < 16 or not by_side:
        return powers(np.ones(n, bool), terms)
    first, second = powers(large, terms), powers(~large, min(math.isqrt(small) // 4, terms))
    a, b = math.sqrt(1 - small / n), math.sqrt(small / n)
    pairs = min(first.shape[1], second.shape[1])
    functions = []
    for j in range(pairs):
        functions += [a * first[:, j] - b * second[:, j], b * first[:, j] + a * second[:, j]]
    longer = first if first.shape[1] > pairs else second
    functions += [longer[:, j] for j in range(pairs, longer.shape[1])]
    return np.array(functions[:terms]).T


def rank_series(c, y, level=0.95):
    """The recipe for fewer than 256 rows, one row at a time, with the basis from a QR factorisation."""
    c, y = np.asarray(c, float), np.asarray(y, float)
    n = len(c)
    order = np.argsort(c, kind="stable")
    c, y = c[order], y[order]
    distinct = sorted(set(c.tolist()))
    terms = min(64, max(3, math.floor(math.sqrt(n) / 2)))
    few = len(distinct) <= terms
    indicators = np.array([(c == v) / math.sqrt((c == v).mean()) for v in distinct]).T
    r = y - c

    def fit(phi):
        risks, thetas, curves = [], [], []
        for k in range(1, phi.shape[1] + 1):
            beta = phi[:, :k].T @ r / n
            m = phi[:, :k] @ beta
            h = (phi[:, :k] ** 2).sum(axis=1) / n
            keep = 1 - h >= 0.05
            loo = np.where(keep, (m - h * r) / np.where(keep, 1 - h, 1), 0.0)  # the fit at row i without row i
            theta, length = (r * loo).sum() / n, (loo**2).sum() / n
            thetas.append(theta)
            risks.append(-theta + 2 * max(length - theta, 0))
            curves.append(m)
        covariance = (phi * (c * (1 - c))[:, None]).T @ phi / n**2
        return phi, risks, thetas, curves, 2 * (covariance**2).sum()

    fits = [fit(indicators if few else _rank_functions(c, terms, by_side)) for by_side in (False, True)]
    by_side = not few and min(fits[0][1]) - min(fits[1][1]) > math.sqrt(fits[1][4])
    phi, risks, thetas, curves, _ = fits[int(by_side)]
    terms = phi.shape[1]
    k = next(k for k in range(1, terms + 1) if risks[k - 1] <= min(risks) + 1e-12)
    x, m = thetas[k - 1], curves[k - 1]

    def noise(gap):
        rate = np.clip(c + gap, 0, 1)
        s2 = rate * (1 - rate)
        if (gap**2).mean() <= 1e-30:
            return 4 * s2.mean() / n, 0.0
        square = (gap**2).mean()
        return 4 * (gap**2 * s2).mean() / square / n, ((gap**4).mean() / square**2 - 1) / n

    def frobenius(variance, count):
        v = (phi[:, :count] * variance[:, None]).T @ phi[:, :count] / n**2
        return (v**2).sum()

    b, e = noise(m)
    theta = max(x, 0)
    variance = 2 * frobenius(c * (1 - c), terms) + b * theta + e * theta**2
    lowest = thetas[-1] - 1.645 * math.sqrt(variance)
    if few or theta < lowest:  # the choice is refuted
        k = terms if few else next(k for k in range(1, terms + 1) if thetas[k - 1] > lowest)
        x, m = thetas[k - 1], curves[k - 1]
        b, e = noise(m)
    flat = (m**2).mean() <= 1e-30
    value = math.sqrt(max(x, 0))
    if not few and x > 1.645 * math.sqrt(2 * frobenius(c * (1 - c), k)):
        value = math.sqrt(x + (b + e * x) / 4)
    from scipy.stats import beta as beta_distribution
    from scipy.stats import norm as normal

    z2 = normal.ppf(0.5 + level / 2) ** 2
    a = 2 * frobenius(c * (1 - c), terms)
    top = max(thetas[-1], 0)

    def ends(noise):
        inside = [t for t in (0.0, 1.0) if (top - t) ** 2 <= z2 * (a + noise * t + e * t**2)]
        roots = np.roots([1 - z2 * e, -(2 * top + z2 * noise), top**2 - z2 * a])
        inside += [root.real for root in roots if abs(root.imag) < 1e-9 and 0 <= root.real <= 1]
        return math.sqrt(min(inside)), math.sqrt(max(inside))

    low, high = ends(b)
    times, noises = [1, 1.5, 2, 3, 5], [b]
    for t in times[1:] if not flat else []:
        enlarged = np.clip(c + t * m, 0, 1)
        noises.append(max(noises[-1], 4 * (m**2 * enlarged * (1 - enlarged)).mean() / (m**2).mean() / n))
    # The noise at the upper limit is that of the curve enlarged to it, or more if rows that vary carry the rest of it.
    v, square = c * (1 - c), (m**2).mean()
    variable = 4 * (v**2).mean() / v.mean() / n if v.any() else 0.0
    for _ in range(60):
        enlarged = b if flat else np.interp(high / math.sqrt(square), times, noises)
        share = min(square / high**2, 1) if high > 0 else 1
        high = ends(enlarged + max(share * b + (1 - share) * variable - enlarged, 0) / 2)[1]
    unexpected = sum(0.5 if score == 0.5 else outcome != (score > 0.5) for score, outcome in zip(c, y, strict=True))
    limit = 1.0 if unexpected == n else beta_distribution.ppf(0.5 + level / 2, unexpected + 1, n - unexpected)
    high = max(high, limit - np.minimum(c, 1 - c).mean())
    if len(distinct) == 1:
        ones = int(y.sum())
        least = beta_distribution.ppf(0.5 - level / 2, ones, n - ones + 1) if ones else 0.0
        largest = beta_distribution.ppf(0.5 + level / 2, ones + 1, n - ones) if ones < n else 1.0
        low, high = max(least - c[0], c[0] - largest, 0), max(largest - c[0], c[0] - least)
    return min(value, 1), min(low, value), min(max(high, value), 1)
