"""The clinical numbers written out row by row, with scipy's optimiser in the place of our Newton."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit


def maximise(design, y, w, offset):
    def loss(beta):
        z = offset + design @ beta
        return float((w * (np.logaddexp(0, z) - y * z)).sum()), design.T @ (w * (expit(z) - y))

    beta = minimize(loss, np.zeros(design.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-10}).x
    for _ in range(5):  # polish with plain Newton steps
        p = expit(offset + design @ beta)
        beta = beta - np.linalg.solve((design.T * (w * p * (1 - p))) @ design, design.T @ (w * (p - y)))
    return beta


def line(p, y, w):
    inner = (p > 0) & (p < 1)
    z, y, w = logit(p[inner]), y[inner], w[inner]
    one = np.ones((len(z), 1))
    return maximise(one, y, w, z)[0], maximise(np.column_stack([one, z]), y, w, np.zeros(len(z)))[1]


def concordance(p, y, w):
    top = bottom = 0.0
    for i in np.flatnonzero(y == 1):
        for j in np.flatnonzero(y == 0):
            bottom += w[i] * w[j]
            top += w[i] * w[j] * (1.0 if p[i] > p[j] else 0.5 if p[i] == p[j] else 0.0)
    return top / bottom


def benefit(p, y, w, t):
    total = 0.0
    for score, outcome, weight in zip(p, y, w, strict=True):
        if score >= t:
            total += weight * (1.0 if outcome == 1 else -t / (1 - t))
    return total / w.sum()


def spline_gap(p, y, w, knots):
    """|curve - p| of every row, where scores of exactly 0 and 1 have their observed rate."""
    inner = (p > 0) & (p < 1)
    z = logit(p[inner])
    columns = [np.ones(len(z)), z]
    for t in knots[:-2]:
        a, b = knots[-2], knots[-1]
        value = np.maximum(z - t, 0) ** 3
        value = value - np.maximum(z - a, 0) ** 3 * (b - t) / (b - a) + np.maximum(z - b, 0) ** 3 * (a - t) / (b - a)
        columns.append(value / (b - knots[0]) ** 2)
    design = np.column_stack(columns)
    beta = maximise(design, y[inner], w[inner], np.zeros(len(z)))
    curve = np.empty(len(p))
    curve[inner] = expit(design @ beta)
    for end in (0.0, 1.0):
        rows = p == end
        if rows.any():
            curve[rows] = (w[rows] * y[rows]).sum() / w[rows].sum()
    return np.abs(curve - p)
