"""The isotonic (CORP) calibration error, and its isotonic fit."""

from dataclasses import dataclass

import numpy as np

from truecal.estimators.base import Estimator, Findings, SketchBound
from truecal.estimators.estimate import Curve, Estimate
from truecal.estimators.sketch_bounds import split_mixed_cells
from truecal.profile.binning import Cut
from truecal.profile.cell_profile import CellProfile
from truecal.profile.profile import Profile
from truecal.types import Float64s, Indices

# Rows of a stretch, coarse to fine; tuned on 1e6 rows: two thirds of the time of a fit to all rows
_LENGTHS = (512, 64, 8)


@dataclass(frozen=True)
class IsotonicError(Estimator):
    r"""Estimate the root of the CORP miscalibration: what an isotonic fit would take off the Brier score.

    Notes
    -----
    :math:`\mathrm{MCB} = \frac1n \sum (c_i - y_i)^2 - \frac1n \sum (m(c_i) - y_i)^2`, m the isotonic fit of y on c: how much the
    Brier score would improve if scores were replaced by the best non-decreasing function of themselves; never negative, and
    needs no bins. Like every in-sample fit it is biased upwards.

    References
    ----------
    Dimitriadis, T., Gneiting, T. and Jordan, A. I. (2021). Stable reliability diagrams for probabilistic classifiers.
    PNAS 118, e2016191118. doi:10.1073/pnas.2016191118

    See Also
    --------
    truecal.scores.decompose_score : The same decomposition without the upward bias.

    Examples
    --------
    >>> import truecal as tc
    >>> est = tc.estimators.IsotonicError()(tc.profile.Profile.from_arrays([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1]))
    >>> round(est.power, 3)  # Brier 0.2; the fit (0, 1/2, 1/2, 1) has Brier 0.125
    0.075
    >>> est.curve.score, est.curve.outcome  # the ends of each step
    (array([0.2, 0.2, 0.4, 0.6, 0.8, 0.8]), array([0. , 0. , 0.5, 0.5, 1. , 1. ]))
    """

    norm = 2.0  # the power is a mean of squares

    def estimate(self, profile: Profile) -> Findings:
        """Compute mean (c - y)^2 - mean (m(c) - y)^2 of every dataset, m the isotonic fit, shape (batch,); not below 0.

        A single dataset also has the fitted steps as `curve`.

        >>> IsotonicError().estimate(Profile.from_arrays([0.25, 0.75], [0, 1])).power  # mean of 1/16 and 1/16, less 0
        array([0.0625])
        """
        whole = profile.at_count(np.array([[profile.rows]]))
        square, product = (profile.sums(name, whole)[:, 0] for name in ("cc", "cy"))
        fitted = np.empty(profile.batch)  # sum of m(c)^2, which is also sum of m(c) y
        curve = None
        for i in range(profile.batch):
            dataset = profile if profile.batch == 1 else profile.take(np.array([i]))
            edges, weight, outcome = isotonic_blocks(dataset)
            fitted[i] = _fitted_square(weight, outcome)
            if profile.single:
                curve = _curve(dataset, edges)
        power = np.maximum((square - 2 * product + fitted) / profile.total, 0.0)
        return Findings(power, curve=curve)

    def sketch_bound(self, cells: CellProfile, estimate: Estimate) -> SketchBound:
        """Bound the power of all rows (proved): from that of the cells to that with the zeros of every cell below its ones."""
        power = float(estimate.power)
        return SketchBound(power - cells.rounding, power + _excess(cells) + cells.rounding)


def _excess(cells: CellProfile) -> float:
    """Bound the increase of the power if the isotonic fit is to all rows instead of the cells of a sketch; at least 0.

    The increase is that of the mean of m(c)^2, m the fit, and largest with the zeros of every cell below its ones.
    """
    split = split_mixed_cells(cells, np.ones((1, cells.rows), bool))
    explained, explained_split = (_fitted_square(*isotonic_blocks(rows)[1:]) for rows in (cells, split))
    return max(explained_split - explained, 0.0) / float(cells.total[0])


def _fitted_square(weight: Float64s, outcome: Float64s) -> float:
    """Sum m(c)^2 over rows, from the weights and outcome sums of the blocks of an isotonic fit m."""
    filled = weight > 0
    return float((outcome[filled] ** 2 / weight[filled]).sum())


def isotonic_blocks(profile: Profile) -> tuple[Indices, Float64s, Float64s]:
    """Fit isotonic regression to a single dataset; return (block edges, weights, outcome sums), (blocks + 1,) and (blocks,).

    Edges are positions in the sorted rows, from 0 to their number; the fitted rate of a block is its outcome sum over its weight.
    The fit is the slope of the greatest convex minorant of the points (cumulative weight, cumulative outcome). A coarse minorant
    through every 512th point lies above the true one, so a stretch whose points all lie above it cannot hold a vertex and is
    dropped; the others are searched eight times as finely, and so on. Only points near the minorant are visited one by one.
    """
    rows = profile.rows
    length = next((step for step in _LENGTHS if step * 8 <= rows), 1)
    starts = np.arange(0, rows, length)
    hull = _extend_hull(profile, np.array([0, rows]), starts)
    while length > 1:
        weight, outcome = _sums(profile, hull)
        ends = np.minimum(starts + length, rows)
        smallest = _sums(profile, starts)[1]  # outcomes only add up, so no point of a stretch lies below its first
        largest = np.interp(_sums(profile, ends)[0], weight, outcome)  # and the minorant only rises
        stride = length // 8
        starts = (starts[smallest < largest][:, None] + np.arange(0, length, stride)).ravel()
        starts = starts[starts < rows]
        hull = _extend_hull(profile, hull, starts)
        length = stride
    weight, outcome = _sums(profile, hull)
    return hull, np.diff(weight), np.diff(outcome)


def _extend_hull(profile: Profile, hull: Indices, points: Indices) -> Indices:
    """Return the vertices of the convex minorant of known vertices `hull` and further points, all positions in the rows.

    Points inside a group of equal scores are ignored.
    """
    scores = profile.scores[0]
    points = points[points > 0]
    points = points[scores[points - 1] < scores[points]]  # within equal scores the fit cannot change
    candidates = np.sort(np.concatenate([points, hull]))
    return candidates[_minorant(*_sums(profile, candidates))]


def _sums(profile: Profile, points: Indices) -> tuple[Float64s, Float64s]:
    """Sum weights and weighted outcomes of the first `points` rows, two arrays of the shape of `points`.

    >>> _sums(Profile.from_arrays([0.25, 0.5, 0.75], [0, 1, 1]), np.array([0, 2, 3]))
    (array([0., 2., 3.]), array([0., 1., 2.]))
    """
    cut = Cut(points[None, :], points[None, :])
    return profile.sums("w", cut)[0], profile.sums("y", cut)[0]


def _minorant(weight: Float64s, outcome: Float64s) -> Indices:
    """Return the indices of the vertices of the greatest convex minorant of (weight, outcome), first and last point included.

    Weights ascend; steps without weight are ignored.

    >>> _minorant(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 1.0, 1.0, 3.0]))
    array([0, 2, 3])
    """
    from scipy.optimize import isotonic_regression

    step = np.diff(weight)
    rising = np.flatnonzero(step > 0)
    slope = np.diff(outcome)[rising] / step[rising]
    blocks = isotonic_regression(slope, weights=step[rising]).blocks
    return np.concatenate([[0], rising[blocks[1:-1]], [len(weight) - 1]])


def _curve(profile: Profile, edges: Indices) -> Curve:
    """Return the fitted steps as a curve: two points per block, its lowest and highest score, of half its weight each."""
    weight, outcome = _sums(profile, edges)
    share = np.diff(weight)
    filled = share > 0
    rate = np.diff(outcome)[filled] / share[filled]
    first, last = profile.scores[0, edges[:-1][filled]], profile.scores[0, edges[1:][filled] - 1]
    ends = np.stack([first, last], axis=1).astype(np.float64).ravel()
    return Curve(ends, np.repeat(rate, 2), np.repeat(share[filled] / share.sum() / 2, 2))
