"""The losses as their formulas say, row by row in float64, without any care for speed or extreme logits."""

import math

import numpy as np


def softmax(z):
    e = [math.exp(v - max(z)) for v in z]
    return [v / sum(e) for v in e]


def rows(logits, targets):
    """Probabilities and soft labels of every row; binary logits are the two classes (0, z)."""
    logits = np.asarray(logits, np.float64)
    for z, t in zip(logits, targets, strict=True):
        if logits.ndim == 1:
            yield softmax([0.0, float(z)]), [1 - float(t), float(t)]
        elif np.ndim(t) == 0:
            yield softmax(list(z)), [float(k == int(t)) for k in range(len(z))]
        else:
            yield softmax(list(z)), [float(v) for v in t]


def focal(logits, targets, gamma, smoothing=0.0, weight=None):
    """One loss per row: label smoothing and focal loss in one formula (each alone is what is tested)."""
    results = []
    for p, t in rows(logits, targets):
        total = 0.0
        for k, (pk, tk) in enumerate(zip(p, t, strict=True)):
            share = (1 - smoothing) * tk + smoothing / len(p)
            power = (5.0 if pk < 0.2 else 3.0) if gamma == "flsd-53" else gamma
            wk = 1.0 if weight is None else float(weight[k])
            total += -wk * share * (1 - pk) ** power * math.log(pk)
        results.append(total)
    return np.array(results)


def judged(logits, targets):
    c, y = [], []
    for p, t in rows(logits, targets):
        best = 1 if len(p) == 2 and p[1] >= p[0] and np.ndim(logits) == 1 else int(np.argmax(p))
        c.append(p[best])
        y.append(t[best])
    return c, y


def soft_binned(logits, targets, bins, temperature):
    c, y = judged(logits, targets)
    shares = []
    for ci in c:
        far = [-((ci - (j + 0.5) / bins) ** 2) / temperature for j in range(bins)]
        shares.append(softmax(far))
    total = 0.0
    for j in range(bins):
        mass = sum(m[j] for m in shares)
        if mass > 0:
            mean_c = sum(m[j] * ci for m, ci in zip(shares, c, strict=True)) / mass
            mean_y = sum(m[j] * yi for m, yi in zip(shares, y, strict=True)) / mass
            total += mass / len(c) * (mean_c - mean_y) ** 2
    return math.sqrt(total)


def mmce(logits, targets, width):
    c, y = judged(logits, targets)
    total = 0.0
    for ci, yi in zip(c, y, strict=True):
        for cj, yj in zip(c, y, strict=True):
            total += (ci - yi) * (cj - yj) * math.exp(-abs(ci - cj) / width)
    return math.sqrt(max(total, 0.0)) / len(c)
