"""A flexible calibration curve by local regression of the outcome on the risk (Cleveland and Devlin 1988)."""

from dataclasses import dataclass

import numpy as np

from truecal.clinical.cohort import Cohort
from truecal.types import Float64s

NODES = 100  # scores of equal mass at which the curve's errors are kept; straight lines join them
_EXACT = 2000  # up to so many different scores the curve is computed at each of them
_BLOCK = 1 << 22  # numbers held at a time while neighbours are weighted


@dataclass(frozen=True, eq=False)
class LoessCurve:
    """Local polynomials of the outcome on the risk, as R's `loess` computes directly (`surface = "direct"`).

    At a score the nearest share `span` of the rows is weighted by (1 - (d/h)^3)^3, d the distance and h that of the farthest of
    them, and a polynomial of the given degree is fitted by least squares. The curve is linear in the outcomes. `values` are
    those at `nodes`, `covariance` theirs, summed over patients. A straight line is reproduced exactly, so the curve of
    a calibrated model scatters about the diagonal itself.
    """

    cohort: Cohort
    span: float
    degree: int
    nodes: Float64s
    values: Float64s
    covariance: Float64s
    df: float
    converged: bool = True

    @property
    def parameters(self) -> Float64s:
        return self.values

    @property
    def calibrated(self) -> Float64s:
        return self.nodes

    def at(self, scores: Float64s) -> Float64s:
        """The curve at any scores: computed at each where there are few, else on the lines between many nodes."""
        different, place = np.unique(scores, return_inverse=True)
        if len(different) > _EXACT:
            places = np.linspace(0, len(different) - 1, _EXACT).astype(np.intp)
            different, scores = different[places], scores
            return np.interp(scores, different, smooth(self.cohort, different, self.span, self.degree)[0])
        return np.asarray(smooth(self.cohort, different, self.span, self.degree)[0][place])

    def drawn(self, scores: Float64s, parameters: Float64s) -> Float64s:
        """The curves of several vectors of node values (r, k) at the same scores (n,): (r, n)."""
        place = np.clip(np.searchsorted(self.nodes, scores, "right") - 1, 0, max(len(self.nodes) - 2, 0))
        after = np.minimum(place + 1, len(self.nodes) - 1)
        width = self.nodes[after] - self.nodes[place]
        share = np.divide(scores - self.nodes[place], width, out=np.zeros(len(scores)), where=width > 0)
        return np.asarray(parameters[:, place] * (1 - share) + parameters[:, after] * share)


def fit_loess(cohort: Cohort, nodes: Float64s, *, span: float = 0.75, degree: int = 2) -> LoessCurve:
    """The curve of a cohort and the covariance of its values at the nodes."""
    values, influence = smooth(cohort, nodes, span, degree, residuals=True)
    return LoessCurve(cohort, span, degree, nodes, values, cohort.covariance(influence), cohort.df)


def smooth(
    cohort: Cohort, at: Float64s, span: float, degree: int, *, residuals: bool = False
) -> tuple[Float64s, Float64s]:
    """The curve at the scores `at`; with `residuals` also the influence (n, k) of every row on each of these values."""
    total = cohort.weights.sum()
    values = np.empty(len(at))
    step = max(1, _BLOCK // len(cohort.scores))
    pulls = np.empty((len(cohort.scores), len(at))) if residuals else np.empty((0, 0))
    for start in range(0, len(at), step):
        part = slice(start, start + step)
        pull = _pull(cohort, at[part], span, degree)
        values[part] = pull @ cohort.outcomes
        if residuals:
            pulls[:, part] = pull.T
    if not residuals:
        return values, pulls
    residual = cohort.outcomes - np.interp(cohort.scores, at, values)
    weights = np.where(cohort.weights > 0, cohort.weights, 1.0)  # the pull of a row without weight is 0
    return values, pulls * (residual * total / weights)[:, None]


def _pull(cohort: Cohort, at: Float64s, span: float, degree: int) -> Float64s:
    """(k, n) by how much the curve at each of k scores rises when the outcome of a row does."""
    x, weight = cohort.scores, cohort.weights
    distance = np.abs(x - at[:, None])
    order = np.argsort(distance, axis=1, kind="stable")
    reached = np.cumsum(weight[order], axis=1)
    wanted = span * reached[0, -1]
    wanted = np.floor(wanted + 1e-5) if cohort.counted else wanted * (1 - 1e-12)
    farthest = np.minimum((reached < max(wanted, 1e-300)).sum(axis=1), len(x) - 1)
    rows = np.arange(len(at))
    reach = distance[rows, order[rows, farthest]]
    scale = np.where(reach > 0, reach, 1.0)
    near = np.where(reach[:, None] > 0, np.maximum(1 - (distance / scale[:, None]) ** 3, 0.0) ** 3, distance == 0)
    kernel = near * weight
    u = (x - at[:, None]) / scale[:, None]
    pull = kernel / kernel.sum(axis=1, keepdims=True)  # a local mean where nothing more can be fitted
    for row in range(len(at)):
        inside = kernel[row] > 0
        different = len(np.unique(x[inside])) if inside.sum() < 4096 else degree + 1
        terms = min(degree + 1, different)
        if terms > 1:
            powers = u[row, inside] ** np.arange(terms)[:, None]
            local = powers * kernel[row, inside]
            pull[row, inside] = np.linalg.solve(local @ powers.T, np.eye(terms)[0]) @ local
    return np.asarray(pull)
