"""A flexible calibration curve by local regression of the outcome on the risk (Cleveland and Devlin 1988)."""

from dataclasses import dataclass

import numpy as np

from truecal.clinical.cohort import Cohort
from truecal.types import Float64s

_EXACT = 500  # up to so many different scores the curve is computed at each of them, else straight lines join as many
_BLOCK = 1 << 22  # numbers held at a time while neighbours are weighted


@dataclass(frozen=True, eq=False)
class LoessCurve:
    """Local polynomials of the outcome on the risk, as R's `loess` computes directly (`surface = "direct"`).

    At a score the nearest share `span` of the rows is weighted by (1 - (d/h)^3)^3, d the distance and h that of the farthest of
    them, and a polynomial of the given degree is fitted by least squares. The curve is linear in the outcomes. `values` are
    those at `nodes`, `reactions` (patients, k) what every patient adds to their error: the squares sum to their variances. A
    straight line is reproduced exactly, so the curve of a calibrated model scatters about the diagonal itself. Others are
    flattened: `bias` is what smoothing does to the curve itself. `local` is the number of rows that a node's value amounts to, and
    `shares` (patients, k) are the parts of it that every patient has. `left_out` is by how much reactions from the curve without
    the patient are larger than those from the curve.
    """

    cohort: Cohort
    span: float
    degree: int
    nodes: Float64s
    values: Float64s
    bias: Float64s
    reactions: Float64s
    shares: Float64s
    local: Float64s
    left_out: float
    df: float

    def at(self, scores: Float64s) -> Float64s:
        """The curve at any scores: computed at each where there are few, else on the lines between many nodes."""
        different, place = np.unique(scores, return_inverse=True)
        if len(different) > _EXACT:
            different = different[np.linspace(0, len(different) - 1, _EXACT).astype(np.intp)]
            return np.interp(scores, different, smooth(self.cohort, different, self.span, self.degree)[0])
        return np.asarray(smooth(self.cohort, different, self.span, self.degree)[0][place])


def fit_loess(cohort: Cohort, nodes: Float64s, *, span: float = 0.75, degree: int = 2) -> LoessCurve:
    """The curve of a cohort and the covariance of its values at the nodes, which straight lines join over all rows."""
    values, pulls = smooth(cohort, nodes, span, degree)
    fitted = np.interp(cohort.scores, nodes, values)
    weights = np.where(cohort.weights > 0, cohort.weights, 1.0)  # the pull of a row without weight is 0
    shares = pulls * (cohort.weights.sum() / weights)[:, None]
    own = np.abs(cohort.scores[:, None] - nodes).argmin(axis=1)
    parameters = round(float(pulls[np.arange(len(own)), own].sum()))  # trace of the smoother
    each = pulls**2 / (weights[:, None] if cohort.counted else 1.0)
    # A patient draws the curve to itself: of J, each left out in turn differs by J / (J - parameters) of what it adds (jackknife).
    left_out = cohort.patients / max(cohort.patients - parameters, 1)
    reactions = cohort.reactions(shares * (cohort.outcomes - fitted)[:, None]) * left_out
    shares, local, bias = cohort.reactions(shares), 1 / each.sum(axis=0), fitted @ pulls - values
    return LoessCurve(cohort, span, degree, nodes, values, bias, reactions, shares, local, left_out, cohort.df)


def smooth(cohort: Cohort, at: Float64s, span: float, degree: int) -> tuple[Float64s, Float64s]:
    """The curve at the scores `at`, and (n, k) by how much each value rises when the outcome of a row does."""
    pulls = np.empty((len(cohort.scores), len(at)))
    step = max(1, _BLOCK // len(cohort.scores))
    for start in range(0, len(at), step):
        part = slice(start, start + step)
        pulls[:, part] = _pull(cohort, at[part], span, degree).T
    return cohort.outcomes @ pulls, pulls


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
    share = distance / scale[:, None]
    bow = np.maximum(1 - share * share * share, 0.0)
    near = np.where(reach[:, None] > 0, bow * bow * bow, distance == 0)
    # where all rows within reach are as far away as it reaches, they count alike, as with any wider reach
    near = np.where((near * weight).any(axis=1, keepdims=True), near, distance <= reach[:, None])
    kernel = near * weight
    u = (x - at[:, None]) / scale[:, None]
    different = np.abs(np.unique(x[weight > 0]) - at[:, None]) < reach[:, None]
    terms = np.clip(different.sum(axis=1), 1, degree + 1)  # a local mean where nothing more can be fitted
    moments = [kernel.sum(axis=1)]
    power = kernel
    for _ in range(2 * degree):
        power = power * u
        moments.append(power.sum(axis=1))
    polynomial = np.zeros((len(at), degree + 1))  # first row of the inverse of the moments' matrix
    for count in np.unique(terms):
        part = terms == count
        matrix = np.stack([[moments[i + j][part] for j in range(count)] for i in range(count)]).transpose(2, 0, 1)
        polynomial[part, :count] = np.linalg.solve(matrix, np.eye(count)[:, :1])[..., 0]
    height = np.zeros_like(u)
    for coefficient in polynomial.T[::-1]:  # Horner's rule
        height = height * u + coefficient[:, None]
    return np.asarray(kernel * height)
