"""A flexible calibration curve: logistic regression on a restricted cubic spline of the log odds of the risk."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truecal import logistic
from truecal.clinical.cohort import Cohort
from truecal.clinical.line import logit
from truecal.types import Float64s, Indices

# Places of the knots as shares of the data (Harrell 2015, Regression Modeling Strategies, table 2.3).
_PLACES = {
    3: (0.10, 0.50, 0.90),
    4: (0.05, 0.35, 0.65, 0.95),
    5: (0.05, 0.275, 0.50, 0.725, 0.95),
}
_ENOUGH = {5: 100, 4: 50, 3: 25}  # events and non-events that allow so many knots; fewer give a straight line
_FEW = 5  # as many different scores or fewer have one rate each, and no spline


@dataclass(frozen=True, eq=False)
class SplineCurve:
    """P(y = 1 | p) = sigmoid(b_0 + b_1 z + sum_j b_j s_j(z)), z = logit p, straight beyond the outer knots.

    Scores of exactly 0 and 1 have no log odds; they, and all scores where there are at most five different ones, have their
    observed rate instead ("cells"). `covariance` is that of the coefficients followed by the rates of the cells, by the sandwich
    formula summed over patients; `binomial` is what it would be if rows were independent and the curve true, which bands are not
    narrower than: few events in a tail say little about their own scatter. `df` are the degrees of freedom by the number of
    patients, `effective_df` those of the covariance itself (:meth:`Cohort.degrees`), which has no such support. `converged` is
    False where the outcomes can be separated.
    """

    knots: Float64s
    coefficients: Float64s
    cells: Float64s
    rates: Float64s
    covariance: Float64s
    binomial: Float64s
    df: float
    effective_df: float
    converged: bool

    @property
    def parameters(self) -> Float64s:
        return np.concatenate([self.coefficients, self.rates])

    @property
    def calibrated(self) -> Float64s:
        """The parameters of the diagonal: slope 1 in z, and every cell's rate equal to its score."""
        line = np.zeros(len(self.coefficients))
        line[1:2] = 1.0
        return np.concatenate([line, self.cells])

    def cell_of(self, scores: Float64s) -> Indices:
        """Number of the cell of each score, -1 where the spline holds."""
        if not len(self.cells):
            return np.full(len(scores), -1)
        place = np.minimum(np.searchsorted(self.cells, scores), len(self.cells) - 1)
        return np.where(self.cells[place] == scores, place, -1)

    def design(self, scores: Float64s) -> Float64s:
        """Basis functions at scores strictly between 0 and 1, (n, k)."""
        return spline_basis(logit(scores), self.knots)

    def at(self, scores: Float64s) -> Float64s:
        """The curve at any scores; between cells (without a spline) the line that joins their rates."""
        return self.through(scores)(self.parameters[None])[0]

    def through(self, scores: Float64s) -> Callable[[Float64s], Float64s]:
        """What gives the curves of several parameter vectors (r, k) at these scores (n,): (r, n)."""
        count, cell = len(self.coefficients), self.cell_of(scores)
        if count == 0:
            return lambda parameters: np.stack([np.interp(scores, self.cells, row) for row in parameters])
        smooth = (cell < 0) & (scores > 0) & (scores < 1)
        basis = self.design(scores[smooth]).T
        if smooth.all():
            return lambda parameters: sigmoid(parameters[:, :count] @ basis)
        own, beyond = cell >= 0, (cell < 0) & ~smooth  # beyond: 0 or 1 without a row there, the limit of the line

        def curves(parameters: Float64s) -> Float64s:
            values = np.empty((len(parameters), len(scores)))
            values[:, own] = parameters[:, count + cell[own]]
            values[:, smooth] = sigmoid(parameters[:, :count] @ basis)
            values[:, beyond] = scores[beyond]
            return values

        return curves


def sigmoid(z: Float64s) -> Float64s:
    """1 / (1 + exp(-z)), without overflow."""
    from scipy.special import expit

    return np.asarray(expit(z))


def spline_basis(z: Float64s, knots: Float64s) -> Float64s:
    """1, z and the restricted cubic spline functions of z (linear beyond the outer knots; Stone and Koo 1985)."""
    columns = [np.ones(len(z)), z]
    if len(knots) > 2:
        first, before, last = knots[0], knots[-2], knots[-1]
        for t in knots[:-2]:
            rise = np.maximum(z - t, 0) ** 3
            rise -= np.maximum(z - before, 0) ** 3 * (last - t) / (last - before)
            rise += np.maximum(z - last, 0) ** 3 * (before - t) / (last - before)
            columns.append(rise / (last - first) ** 2)
    return np.stack(columns, axis=1)


def fit_spline(cohort: Cohort, knots: int | None = None) -> SplineCurve:
    """The curve of a cohort; without `knots` as many as its events and non-events allow: 5 from 100, 4 from 50, 3 from 25 of
    each, else a straight line. Where the outcomes are separated along the spline, fewer knots are tried."""
    heavy = cohort.weights > 0
    inner = (cohort.scores > 0) & (cohort.scores < 1)
    different = np.unique(cohort.scores[inner & heavy])
    if len(different) <= _FEW:
        return _with_cells(cohort, np.unique(cohort.scores[heavy]), None, np.array([]))
    cells = np.unique(cohort.scores[heavy & ~inner])
    count = affordable_knots(cohort) if knots is None else knots
    while True:
        places = _knots(cohort, inner, count)
        design = spline_basis(logit(cohort.scores[inner]), places)
        fit = logistic.fit_logistic(design, cohort.outcomes[inner], cohort.weights[inner])
        if fit.converged or count < 3:
            return _with_cells(cohort, cells, fit, places)
        count -= 1


def affordable_knots(cohort: Cohort) -> int:
    """How many knots its events and non-events allow; 2 are those of a straight line."""
    fewest = min(cohort.events, cohort.rows - cohort.events)
    return next((k for k, need in _ENOUGH.items() if fewest >= need), 2)


def _knots(cohort: Cohort, inner: NDArray[np.bool_], count: int) -> Float64s:
    if count < 3:
        return np.array([])
    z, weight = logit(cohort.scores[inner]), cohort.weights[inner]
    order = np.argsort(z, kind="stable")
    reached = np.cumsum(weight[order])
    places = np.searchsorted(reached, np.array(_PLACES[count]) * reached[-1] * (1 - 1e-12))
    knots = np.unique(z[order[np.minimum(places, len(z) - 1)]])
    return knots if len(knots) > 2 else np.array([])


def _with_cells(cohort: Cohort, cells: Float64s, fit: logistic.LogisticFit | None, knots: Float64s) -> SplineCurve:
    """Put the smooth part and the cells together, with the covariance of all their parameters."""
    total = cohort.weights.sum()
    count = 0 if fit is None else len(fit.coefficients)
    influence = np.zeros((len(cohort.scores), count + len(cells)))
    binomial = np.zeros((count + len(cells), count + len(cells)))
    if fit is not None:
        inner = (cohort.scores > 0) & (cohort.scores < 1)
        design = spline_basis(logit(cohort.scores[inner]), knots)
        influence[inner, :count], binomial[:count, :count] = sandwich(cohort, inner, design, fit)
    rates = np.zeros(len(cells))
    for j, score in enumerate(cells):
        rows = cohort.scores == score
        share = cohort.weights[rows].sum() / total
        rates[j] = cohort.weights[rows] @ cohort.outcomes[rows] / (share * total)
        influence[rows, count + j] = (cohort.outcomes[rows] - rates[j]) / share
    coefficients = np.zeros(0) if fit is None else fit.coefficients
    converged = fit is None or fit.converged
    covariance = cohort.covariance(influence, max(count, 1))
    effective = cohort.degrees(influence)
    return SplineCurve(knots, coefficients, cells, rates, covariance, binomial, cohort.df, effective, converged)


def sandwich(
    cohort: Cohort, rows: NDArray[np.bool_], design: Float64s, fit: logistic.LogisticFit
) -> tuple[Float64s, Float64s]:
    """Influence (n, k) of some rows of a cohort on the coefficients fitted to them, and the covariance that these would have if
    rows were independent and the curve true."""
    total, weights = cohort.weights.sum(), cohort.weights[rows]
    bread = np.linalg.pinv(fit.information / total, hermitian=True)
    spread = fit.probs * (1 - fit.probs)
    # a row draws the curve to itself: its residual is that share too small (the jackknife's correction)
    pull = spread * np.einsum("ij,ij->i", design @ bread, design) / total * (1 if cohort.counted else weights)
    residual = (cohort.outcomes[rows] - fit.probs) / np.maximum(1 - pull, 0.1)
    chance = weights ** (1 if cohort.counted else 2) * spread
    binomial = bread @ ((design * chance[:, None]).T @ design) @ bread / total**2
    return (design * residual[:, None]) @ bread, binomial
