"""The published definitions, written out with loops and one-hot vectors: slow, and independent of the code they check."""

import math
from itertools import pairwise

import numpy as np

VARIANCE_TIE, MEAN_TIE = 1e-9, 1e-12  # what the k-d tree's documentation calls equal


def top_k(probs, labels, k):
    """k largest probabilities plus the rest, and one-hot outcomes of the same shape; the first of equals ranks higher."""
    outputs, outcomes = [], []
    for p, y in zip(probs, labels, strict=True):
        order = sorted(range(len(p)), key=lambda i: (-p[i], i))[:k]
        outputs.append([*(p[i] for i in order), 1 - math.fsum(p[i] for i in order)])
        outcomes.append([*(float(i == y) for i in order), float(y not in order)])
    return np.array(outputs), np.array(outcomes)


def grouped(probs, labels, groups):
    outputs = [[math.fsum(p[i] for i in g) for g in groups] for p in probs]
    outcomes = [[float(y in g) for g in groups] for y in labels]
    return np.array(outputs), np.array(outcomes)


def canonical(probs, labels):
    return grouped(probs, labels, [[i] for i in range(probs.shape[1])])


def one_class(probs, labels, c):
    outputs = [[p[c], 1 - p[c]] for p in probs]
    outcomes = [[float(y == c), float(y != c)] for y in labels]
    return np.array(outputs), np.array(outcomes)


def kd_tree(outputs, fraction):
    """Lists of rows, by recursion."""
    n, d = outputs.shape
    lowest = round(fraction * n)

    def split(rows):
        if len(rows) < lowest or len(rows) < 2:
            return [rows]
        means = [math.fsum(outputs[i, j] for i in rows) / len(rows) for j in range(d)]
        spreads = [math.fsum((outputs[i, j] - means[j]) ** 2 for i in rows) for j in range(d)]
        j = next(j for j in range(d) if spreads[j] >= max(spreads) * (1 - VARIANCE_TIE))
        low = [i for i in rows if outputs[i, j] < means[j] * (1 - MEAN_TIE)]
        high = [i for i in rows if i not in set(low)]
        return split(low) + split(high) if low and high else [rows]

    return split(list(range(n)))


def width(outputs, bins, judged):
    """Cells of a grid, along the judged event if there are two and along all otherwise."""
    cells = {}
    for i, row in enumerate(outputs):
        observed = [row[judged]] if len(row) == 2 else row
        key = tuple(min(bins - 1, max(j for j in range(bins) if j / bins <= v)) for v in observed)
        cells.setdefault(key, []).append(i)
    return list(cells.values())


def mass(outputs, bins, judged):
    """Equal mass without ties: sorted positions ceil(k n / b) .. ceil((k + 1) n / b) - 1."""
    n = len(outputs)
    order = sorted(range(n), key=lambda i: outputs[i][judged])
    cuts = [math.ceil(k * n / bins) for k in range(bins + 1)]
    return [order[a:b] for a, b in pairwise(cuts) if b > a]


def total_variation(g, y):
    return sum(abs(a - b) for a, b in zip(g, y, strict=True)) / 2


def lp(p):
    if p == math.inf:
        return lambda g, y: max(abs(a - b) for a, b in zip(g, y, strict=True))
    return lambda g, y: sum(abs(a - b) ** p for a, b in zip(g, y, strict=True)) ** (1 / p)


def weighted(w):
    return lambda g, y: math.sqrt(sum(c * (a - b) ** 2 for c, a, b in zip(w, g, y, strict=True)))


def mahalanobis(m):
    d = len(m)
    return lambda g, y: math.sqrt(sum((g[i] - y[i]) * m[i][j] * (g[j] - y[j]) for i in range(d) for j in range(d)))


def inter_interval(low, high, judged):
    return lambda g, y: max(0.0, max(low - y[judged], y[judged] - high))


def generalized(outputs, outcomes, bins, distance, norm=1):
    n = len(outputs)
    far = [distance(outputs[rows].mean(axis=0), outcomes[rows].mean(axis=0)) for rows in bins]
    if norm == math.inf:
        return max(far)
    return sum(len(rows) / n * f**norm for rows, f in zip(bins, far, strict=True)) ** (1 / norm)


def same_sets(bin_of, bins):
    """Whether the numbered bins hold the same rows as the lists."""
    ours = {frozenset(np.flatnonzero(bin_of == b).tolist()) for b in np.unique(bin_of)}
    return ours == {frozenset(rows) for rows in bins if len(rows)}
