"""The isotonic (CORP) calibration error, and the isotonic fit behind it."""

from dataclasses import dataclass

import numpy as np

from truecal.estimate.estimate import Curve
from truecal.estimate.estimator import Estimator, Findings
from truecal.profile import Profile
from truecal.types import Float64s, Indices

_STRIDES = (512, 64, 8, 1)  # coarse to fine


@dataclass(frozen=True)
class IsotonicError(Estimator):
    r"""Root of the CORP miscalibration: MCB = 1/n sum (c_i - y_i)^2 - 1/n sum (m(c_i) - y_i)^2, m the isotonic fit of y on c.

    Dimitriadis, Gneiting and Jordan (2021). How much the Brier score would improve if scores were replaced by the best
    non-decreasing function of themselves; never negative, and needs no bins. Like every in-sample fit it is biased upwards.

    >>> import truecal as tc
    >>> est = tc.IsotonicError()(tc.Profile.from_arrays([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1]))
    >>> round(est.power, 3), est.curve.outcome  # Brier 0.2; the fit (0, 1/2, 1/2, 1) has Brier 0.125
    (0.075, array([0. , 0.5, 0.5, 1. ]))
    """

    @property
    def power_norm(self) -> float:
        return 2.0

    def find(self, profile: Profile) -> Findings:
        whole = profile.at_count(np.array([[profile.rows]]))
        square, product = (profile.sums(name, whole)[:, 0] for name in ("cc", "cy"))
        fitted = np.empty(profile.batch)  # sum of m(c)^2, which is also sum of m(c) y
        curve = None
        for i in range(profile.batch):
            one = profile if profile.batch == 1 else profile.take(np.array([i]))
            edges, weight, outcome = isotonic_blocks(one)
            heavy = weight > 0
            fitted[i] = (outcome[heavy] ** 2 / weight[heavy]).sum()
            if profile.single:
                curve = _curve(one, edges)
        power = np.maximum((square - 2 * product + fitted) / profile.total, 0.0)
        return Findings(power, extra={"curve": curve})


def isotonic_blocks(profile: Profile) -> tuple[Indices, Float64s, Float64s]:
    """Blocks of the isotonic regression of outcomes on scores of a single dataset: edges (row numbers), weight and outcome sums.

    The fit is the slope of the greatest convex minorant of the points (weight so far, outcomes so far). A coarse minorant through
    every 512th point lies above the true one, so a stretch whose points all lie above it cannot hold a vertex and is dropped;
    what is left is looked at eight times as finely, and so on. Only points near the minorant are ever visited one by one.
    """
    rows = profile.rows
    points: Indices = np.array([0, rows])
    for stride in _STRIDES:
        if stride > 1 and stride * 8 > rows:
            continue
        points = _refine(points, stride, profile)
    weight, outcome = _sums(profile, points)
    return points, np.diff(weight), np.diff(outcome)


def _refine(hull: Indices, stride: int, profile: Profile) -> Indices:
    """The minorant of the points on a finer grid, given the vertices of a coarser one (which stay among the candidates)."""
    grid = np.arange(0, profile.rows, stride)
    coarse = stride * 8
    if len(hull) > 2 and coarse <= _STRIDES[0]:
        starts = np.arange(0, profile.rows, coarse)
        ends = np.minimum(starts + coarse, profile.rows)
        weight, outcome = _sums(profile, hull)
        least = _sums(profile, starts)[1]  # outcomes only grow, so no point of the stretch lies below its first
        most = np.interp(_sums(profile, ends)[0], weight, outcome)  # and the minorant only grows too
        near = np.flatnonzero(least < most)
        grid = (starts[near][:, None] + np.arange(0, coarse, stride)).ravel()
        grid = grid[grid < profile.rows]
    candidates = np.union1d(grid, hull)
    return candidates[_minorant(*_sums(profile, candidates))]


def _sums(profile: Profile, points: Indices) -> tuple[Float64s, Float64s]:
    cut = profile.at_count(points[None, :])
    return profile.sums("w", cut)[0], profile.sums("y", cut)[0]


def _minorant(weight: Float64s, outcome: Float64s) -> Indices:
    """Vertices of the greatest convex minorant, first and last point included."""
    from scipy.optimize import isotonic_regression

    step = np.diff(weight)
    some = np.flatnonzero(step > 0)
    slope = np.diff(outcome)[some] / step[some]
    blocks = isotonic_regression(slope, weights=step[some]).blocks
    return np.unique(np.concatenate([[0], some[blocks[1:-1]], [len(weight) - 1]]))


def _curve(profile: Profile, edges: Indices) -> Curve:
    """The step function: every block from its lowest to its highest score."""
    weight, outcome = _sums(profile, edges)
    share = np.diff(weight)
    filled = share > 0
    rate = np.diff(outcome)[filled] / share[filled]
    first, last = profile.scores[0, edges[:-1][filled]], profile.scores[0, edges[1:][filled] - 1]
    ends = np.stack([first, last], axis=1).astype(np.float64).ravel()
    return Curve(ends, np.repeat(rate, 2), np.repeat(share[filled] / share.sum() / 2, 2))
