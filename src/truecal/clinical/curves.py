"""Calibration curves by restricted cubic splines of the log odds, and their confidence bands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

import truecal as tc
from truecal import options, special
from truecal.clinical.cohort import MIN_REMAINDER, Cohort, student_quantile, weighted_quantiles
from truecal.errors import InputError
from truecal.lenses.lens import Lens
from truecal.predictions import validation
from truecal.predictions.arrays import takes_arrays
from truecal.special import clopper_pearson, expit, logit
from truecal.table import Frame, Tabular
from truecal.types import Float64s, Indices

# ----------------------------------------------------------------------------------------------------
# A flexible calibration curve: logistic regression on a restricted cubic spline of the log odds of the risk

# By choice: quantiles of the knots (Harrell 2015, Regression Modeling Strategies, table 2.3).
_KNOT_QUANTILES = {
    3: (0.10, 0.50, 0.90),
    4: (0.05, 0.35, 0.65, 0.95),
    5: (0.05, 0.275, 0.50, 0.725, 0.95),
}
# by choice: events and non-events for so many knots, 25 or more per parameter; fewer give a straight line
_MIN_EVENTS = {5: 100, 4: 50, 3: 25}
_MAX_CELLS = 5  # by choice: so few different scores have one rate each, and no spline


@dataclass(frozen=True, eq=False)
class SplineCurve:
    """P(y = 1 | p) = sigmoid(b_0 + b_1 z + sum_j b_j s_j(z)), z = logit p, straight beyond the outer knots.

    Scores of exactly 0 and 1 have no log odds; they, and all scores where there are at most five different ones, have their
    observed rate instead ("cells").

    Attributes
    ----------
    knots : (k,) log odds of the knots, ascending; none for a straight line, and without a spline.
    coefficients : (p,) b_0, b_1, ...; none without a spline.
    cells, rates : (c,) scores that have a rate each, ascending, and these rates.
    covariance : (p + c, p + c) that of the coefficients and then the rates, by the sandwich formula summed over patients.
    binomial : (p + c, p + c) that of independent rows and a true curve, 0 for rates; it bounds the bands from below, because the
        variance of few events in a tail is estimated poorly.
    df : degrees of freedom by the number of patients.
    effective_df : degrees of freedom of the covariance itself (:meth:`Cohort.degrees`).
    converged : False where the outcomes can be separated.
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
        """Coefficients of the spline, then rates of the cells.

        >>> fit_spline(Cohort.of(tc.Predictions.from_probs([0.2, 0.2, 0.9], [0, 1, 1]))).parameters
        array([0.5, 1. ])
        """
        return np.concatenate([self.coefficients, self.rates])

    @property
    def calibrated(self) -> Float64s:
        """The parameters of the diagonal: slope 1 in z, and every cell's rate equal to its score.

        >>> fit_spline(Cohort.of(tc.Predictions.from_probs([0.2, 0.2, 0.9], [0, 1, 1]))).calibrated
        array([0.2, 0.9])
        """
        line = np.zeros(len(self.coefficients))
        line[1:2] = 1.0
        return np.concatenate([line, self.cells])

    def cell_of(self, scores: Float64s) -> Indices:
        """Return the number of the cell whose score equals each score, shape (n,), and -1 where none does.

        >>> curve = fit_spline(Cohort.of(tc.Predictions.from_probs([0.2, 0.2, 0.9], [0, 1, 1])))
        >>> curve.cell_of(np.array([0.9, 0.5]))
        array([ 1, -1])
        """
        if not len(self.cells):
            return np.full(len(scores), -1)
        position = np.minimum(np.searchsorted(self.cells, scores), len(self.cells) - 1)
        return np.where(self.cells[position] == scores, position, -1)

    def design(self, scores: Float64s) -> Float64s:
        """Evaluate the basis functions of logit p (:func:`spline_basis`) at scores (n,) strictly between 0 and 1, shape (n, k)."""
        return spline_basis(logit(scores), self.knots)

    def evaluate(self, scores: Float64s) -> Float64s:
        """Evaluate the curve at scores (n,) with its own parameters, shape (n,), by the rules of :meth:`evaluator`.

        >>> curve = fit_spline(Cohort.of(tc.Predictions.from_probs([0.2, 0.2, 0.6], [0, 1, 1])))
        >>> curve.evaluate(np.array([0.2, 0.4, 0.9]))  # 1/2 and 1 at the cells, linear between them
        array([0.5 , 0.75, 1.  ])
        """
        return self.evaluator(scores)(self.parameters[None])[0]

    def evaluator(self, scores: Float64s) -> Callable[[Float64s], Float64s]:
        """Return the function that evaluates curves of parameter vectors (r, k) at these scores (n,): shape (r, n).

        A score that is a cell has the rate of the cell. With a spline, 0 and 1 that are no cells have the values 0 and 1;
        without one, other scores are interpolated between cells, constant beyond the outer ones.

        >>> curve = fit_spline(Cohort.of(tc.Predictions.from_probs([0.2, 0.2, 0.6], [0, 1, 1])))
        >>> curve.evaluator(np.array([0.4]))(np.array([[0.0, 1.0], [0.2, 0.6]]))
        array([[0.5],
               [0.4]])
        """
        count, cell = len(self.coefficients), self.cell_of(scores)
        if count == 0:
            return lambda parameters: np.stack([np.interp(scores, self.cells, row) for row in parameters])
        smooth = (cell < 0) & (scores > 0) & (scores < 1)
        basis = self.design(scores[smooth]).T
        if smooth.all():
            return lambda parameters: expit(parameters[:, :count] @ basis)
        in_cell = cell >= 0
        at_limit = (cell < 0) & ~smooth  # 0 or 1 without a row there, the limit of the line

        def evaluate(parameters: Float64s) -> Float64s:
            """Evaluate curves of parameters (r, k), coefficients then rates of cells, at the n scores: shape (r, n)."""
            values = np.empty((len(parameters), len(scores)))
            values[:, in_cell] = parameters[:, count + cell[in_cell]]
            values[:, smooth] = expit(parameters[:, :count] @ basis)
            values[:, at_limit] = scores[at_limit]
            return values

        return evaluate


def spline_basis(z: Float64s, knots: Float64s) -> Float64s:
    """Evaluate 1, z and the restricted cubic spline functions of z (n,): (n, k) for k rising knots, (n, 2) for fewer than 3.

    Linear beyond the outer knots and scaled by the squared range of the knots (Stone and Koo 1985).

    >>> spline_basis(np.array([0.0, 2.0]), np.array([0.0, 1.0, 2.0]))  # (2^3 - 2 x 1^3) / 2^2 = 3/2
    array([[1. , 0. , 0. ],
           [1. , 2. , 1.5]])
    """
    columns = [np.ones(len(z)), z]
    if len(knots) > 2:
        first, before, last = knots[0], knots[-2], knots[-1]
        for t in knots[:-2]:
            rise = np.maximum(z - t, 0) ** 3
            rise -= np.maximum(z - before, 0) ** 3 * (last - t) / (last - before)
            rise += np.maximum(z - last, 0) ** 3 * (before - t) / (last - before)
            columns.append(rise / (last - first) ** 2)
    return np.stack(columns, axis=1)


def fit_spline(cohort: Cohort) -> SplineCurve:
    """Fit the curve of a cohort with :func:`max_knots` knots, fewer where the outcomes are separated along the spline.

    At most five different scores strictly between 0 and 1 give no spline: every score (0 and 1 too) is a cell with its own
    rate.

    >>> curve = fit_spline(Cohort.of(tc.Predictions.from_probs([0.2, 0.2, 0.9], [0, 1, 1])))
    >>> curve.cells, curve.rates, curve.coefficients  # two distinct scores: no spline
    (array([0.2, 0.9]), array([0.5, 1. ]), array([], dtype=float64))
    """
    positive_weight = cohort.weights > 0
    inner = (cohort.scores > 0) & (cohort.scores < 1)
    distinct = np.unique(cohort.scores[inner & positive_weight])
    if len(distinct) <= _MAX_CELLS:
        return _with_cells(cohort, np.unique(cohort.scores[positive_weight]), None, np.array([]))
    cells = np.unique(cohort.scores[positive_weight & ~inner])
    count = max_knots(cohort)
    while True:
        knot_positions = _knots(cohort, inner, count)
        design = spline_basis(logit(cohort.scores[inner]), knot_positions)
        fit = special.fit_logistic(design, cohort.outcomes[inner], cohort.weights[inner])
        if fit.converged or count < 3:
            return _with_cells(cohort, cells, fit, knot_positions)
        count -= 1


def max_knots(cohort: Cohort) -> int:
    """Return 5, 4 or 3 knots for at least 100, 50 or 25 events and as many non-events; else 2, for a straight line.

    >>> max_knots(Cohort.of(tc.Predictions.from_probs([0.2, 0.9] * 50, [0, 1] * 50)))
    4
    """
    fewest = min(cohort.events, cohort.rows - cohort.events)
    return next((k for k, need in _MIN_EVENTS.items() if fewest >= need), 2)


def _knots(cohort: Cohort, inner: NDArray[np.bool_], count: int) -> Float64s:
    """Return the distinct weighted quantiles of logit p over rows `inner` (a mask), ascending; none where fewer than three.

    `count` is the number of quantiles: none below 3.
    """
    if count < 3:
        return np.array([])
    shares = np.array(_KNOT_QUANTILES[count]) * (1 - 1e-12)  # rounded sums of weights may exceed a quantile
    knots = np.unique(weighted_quantiles(logit(cohort.scores[inner]), cohort.weights[inner], shares))
    return knots if len(knots) > 2 else np.array([])


def _with_cells(cohort: Cohort, cells: Float64s, fit: special.LogisticFit | None, knots: Float64s) -> SplineCurve:
    """Build the curve of a cohort from a spline fit (or None) and cells: their weighted rates, and the covariance of all.

    `cells` are the scores, ascending, that have a rate each; `knots` those of `fit`, which was fitted to scores in (0, 1).
    """
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
    return SplineCurve(
        knots,
        np.zeros(0) if fit is None else fit.coefficients,
        cells,
        rates,
        covariance=cohort.covariance(influence, max(count, 1)),
        binomial=binomial,
        df=cohort.df,
        effective_df=cohort.degrees(influence),
        converged=fit is None or fit.converged,
    )


def sandwich(
    cohort: Cohort, rows: NDArray[np.bool_], design: Float64s, fit: special.LogisticFit
) -> tuple[Float64s, Float64s]:
    """Return the influence (n, k) of the rows of a mask on the coefficients fitted to them, and their binomial covariance (k, k).

    The influence is on the scale of means over the whole cohort, with residuals divided by 1 - leverage; the binomial covariance
    is that of independent rows if the fitted probabilities are true.
    """
    total, weights = cohort.weights.sum(), cohort.weights[rows]
    bread = np.linalg.pinv(fit.information / total, hermitian=True)
    variance = fit.probs * (1 - fit.probs)
    # the jackknife's correction: a residual is too small by the leverage of its row
    leverage = variance * np.einsum("ij,ij->i", design @ bread, design) / total * (1 if cohort.counted else weights)
    residual = (cohort.outcomes[rows] - fit.probs) / np.maximum(1 - leverage, MIN_REMAINDER)
    noise = weights ** (1 if cohort.counted else 2) * variance
    binomial = bread @ ((design * noise[:, None]).T @ design) @ bread / total**2
    return (design * residual[:, None]) @ bread, binomial


# ----------------------------------------------------------------------------------------------------
# Pointwise and simultaneous bands of a flexible calibration curve

_DRAWS = 5000  # derived: draws of errors; the share beyond a 95 % quantile has a standard error of 0.3 points


@dataclass(frozen=True, eq=False, repr=False)
class FlexibleCurve(Tabular):
    """A calibration curve with a pointwise and a simultaneous band.

    Attributes
    ----------
    score : ndarray of shape (m,)
        Scores at which the curve is computed, ascending.
    outcome : ndarray of shape (m,)
        Fitted outcome rate at each score.
    low : ndarray of shape (m,)
        Lower limits of the pointwise band, which covers the true curve at any one score with probability `level`.
    high : ndarray of shape (m,)
        Upper limits of the pointwise band.
    lowest : ndarray of shape (m,)
        Lower limits of the simultaneous band, which covers the true curve at all scores with probability `level`.
    highest : ndarray of shape (m,)
        Upper limits of the simultaneous band.
    level : float
        Level of both bands.
    method : str
        How the curve was fitted.

    See Also
    --------
    flexible_curve : Computes it.
    """

    score: Float64s
    outcome: Float64s
    low: Float64s
    high: Float64s
    lowest: Float64s
    highest: Float64s
    level: float
    method: str

    def contains(self, scores: ArrayLike, rates: ArrayLike) -> bool:
        """Return whether a curve (scores, rates) lies within the simultaneous band (to 1e-12) at all the given scores.

        The band is interpolated linearly between the scores of this curve, and constant beyond them.

        >>> grid, low, high = np.array([0.2, 0.8]), np.array([0.1, 0.6]), np.array([0.4, 0.9])
        >>> curve = FlexibleCurve(grid, grid, grid, grid, low, high, 0.95, "")
        >>> curve.contains([0.5], [0.5]), curve.contains([0.5], [0.3])  # the band at 0.5 is 0.35 to 0.65
        (True, False)
        """
        s = validation.check_points(scores, "scores")
        r = validation.check_points(rates, "rates", s.shape)
        low, high = (np.interp(s, self.score, edge) for edge in (self.lowest, self.highest))
        return bool(((low <= r + 1e-12) & (r <= high + 1e-12)).all())

    def frame(self) -> Frame:
        """Return one row per score: score, outcome, low, high, lowest, highest.

        >>> one = np.array([0.5])
        >>> FlexibleCurve(one, one, one, one, one, one, 0.95, "").frame()[0]
        {'score': 0.5, 'outcome': 0.5, 'low': 0.5, 'high': 0.5, 'lowest': 0.5, 'highest': 0.5}
        """
        names = ("score", "outcome", "low", "high", "lowest", "highest")
        return Frame({name: getattr(self, name) for name in names})

    def __str__(self) -> str:
        """Write the number and range of scores, the level, and the mean width of the pointwise band.

        >>> grid, low, high = np.array([0.25, 0.75]), np.array([0.2, 0.6]), np.array([0.4, 0.9])
        >>> print(FlexibleCurve(grid, grid, low, high, low, high, 0.95, ""))
        calibration curve at 2 scores from 0.25 to 0.75, 95% band 0.25 wide
        """
        ends = f"{self.score[0]:.3g} to {self.score[-1]:.3g}"
        width = float(np.mean(self.high - self.low))
        return f"calibration curve at {len(self.score)} scores from {ends}, {self.level:.0%} band {width:.3g} wide"


@takes_arrays
def flexible_curve(
    preds: tc.Predictions,
    *,
    lens: Lens | None = None,
    scores: ArrayLike | None = None,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> FlexibleCurve:
    """Fit a spline calibration curve with pointwise and simultaneous bands; standard errors are over patients (clusters).

    Parameters
    ----------
    preds : Predictions
        One risk per row, with `clusters=` where patients have several rows and `weights=` where rows stand for different
        numbers of people; or ``y_true, y_prob``.
    lens : Lens, default None
        What is judged; None is the positive class. `OneClass("malignant")` judges one diagnosis of several.
    scores : array-like, default None
        Where to compute the curve; None is 101 scores from the 1st to the 99th percentile.
    level : float, default 0.95
        Level of both bands.
    rng : int or Generator, default 0
        Seed of the draws behind the simultaneous band.

    Returns
    -------
    curve : FlexibleCurve
        Scores, curve and both bands.

    Raises
    ------
    InputError
        There are no events or nothing but events, or `scores` are out of range.

    Notes
    -----
    Logistic regression on a restricted cubic spline of the log odds of the risk, as R's `val.prob.ci.2` draws it: 5 knots from
    100 events and non-events, 4 from 50, 3 from 25, else a straight line. At most five different scores have one rate each.

    References
    ----------
    Harrell. Regression modeling strategies, 2nd edition. Springer, 2015. https://doi.org/10.1007/978-3-319-19425-7

    See Also
    --------
    summary : The distances of the spline curve from the diagonal (ICI, E50, E90, Emax).

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> curve = tc.clinical.flexible_curve(tc.Predictions.from_probs(p, rng.random(2000) < p**2))
    >>> grid = np.linspace(0.05, 0.95, 19)
    >>> curve.contains(grid, grid**2), curve.contains(grid, grid)
    (True, False)
    """
    options.level(level)
    cohort = Cohort.of(preds, lens)
    points = score_grid(cohort) if scores is None else check_points(scores)
    return spline_band(fit_spline(cohort), points, level, options.generator(rng))


def check_points(scores: ArrayLike) -> Float64s:
    """Return scores at which a curve is computed, distinct and ascending; refuse none, and numbers outside [0, 1].

    >>> check_points([0.5, 0.1, 0.5])
    array([0.1, 0.5])
    """
    points = np.unique(validation.as_floats(scores, "scores").astype(np.float64))
    if not points.size or not ((points >= 0) & (points <= 1)).all():
        raise InputError("scores must hold at least one number, all in [0, 1]")
    return points


def score_grid(cohort: Cohort) -> Float64s:
    """Return 101 equally spaced scores from the 1st to the 99th weighted percentile: beyond them a curve rests on few rows.

    >>> grid = score_grid(Cohort.of(tc.Predictions.from_probs([0.2, 0.9] * 50, [0, 1] * 50)))
    >>> len(grid), grid[0], grid[-1]
    (101, np.float64(0.2), np.float64(0.9))
    """
    first, last = weighted_quantiles(cohort.scores, cohort.weights, (0.01, 0.99))
    return np.linspace(float(first), float(last), 101)


def spline_band(curve: SplineCurve, points: Float64s, level: float, rng: np.random.Generator) -> FlexibleCurve:
    """Compute pointwise and simultaneous bands of a curve at `points` (ascending).

    Limits are built on the log odds, where the spline is linear in its coefficients, and are binomial for the rates of cells.
    A curve without a spline is given at its cells instead of `points`; points 0 and 1 that are no cells are left out.
    """
    count = len(curve.coefficients)
    if count == 0:
        points = curve.cells
    cell = curve.cell_of(points)
    smooth = (cell < 0) & (points > 0) & (points < 1)
    keep = smooth | (cell >= 0)
    points, cell, smooth = points[keep], cell[keep], smooth[keep]
    outcome = np.clip(curve.evaluate(points), 0.0, 1.0)  # a mean of ones may round past 1
    jacobian = np.zeros((len(points), count + len(curve.cells)))
    if count:
        jacobian[smooth, :count] = curve.design(points[smooth])
    jacobian[np.flatnonzero(cell >= 0), count + cell[cell >= 0]] = 1.0
    pointwise = student_quantile(curve.df, level)
    simultaneous = max(pointwise, critical_value(jacobian, curve.covariance, curve.df, level, rng))
    se = stabilised_error(
        *(np.einsum("ij,jk,ik->i", jacobian, v, jacobian) for v in (curve.covariance, curve.binomial))
    )
    limits = []
    for factor in (-pointwise, pointwise, -simultaneous, simultaneous):
        limit = outcome.copy()
        if count:
            limit[smooth] = expit(logit(np.clip(outcome[smooth], 1e-300, 1 - 1e-16)) + factor * se[smooth])
        limit[cell >= 0] = [_binomial_limit(outcome[i], se[i], curve.df, factor) for i in np.flatnonzero(cell >= 0)]
        limits.append(limit)
    knots = f"{len(curve.knots)} knots" if len(curve.knots) else "straight line" if count else "one rate per score"
    method = f"restricted cubic spline of the log odds, {knots}"
    return FlexibleCurve(points, outcome, limits[0], limits[1], limits[2], limits[3], level, method)


def _binomial_limit(rate: float, se: float, df: float, factor: float) -> float:
    """Return a Clopper-Pearson limit of a rate on n = rate (1 - rate) / se^2 independent rows.

    The lower limit for a negative `factor`, else the upper one, at the tail probability P(Z < -|factor|). For a rate of 0 or 1,
    or se 0, n is `df` + 1.

    >>> round(_binomial_limit(0.0, 0.0, 99, 1.96), 4)  # 1 - 0.025^(1 / 100)
    0.0362
    """
    from scipy.special import ndtr

    rows = rate * (1 - rate) / se**2 if se > 0 and 0 < rate < 1 else df + 1
    low, high = clopper_pearson(rate * rows, rows, float(ndtr(-abs(factor))))
    return float(low if factor < 0 else high)


def stabilised_error(variance: Float64s, binomial: Float64s) -> Float64s:
    """Compute standard errors sqrt(max(variance, effect * binomial)) of curves at k scores; both arrays are (..., k).

    The design effect of a curve is the median over its scores of variance / binomial, at least 1. In a tail with few events the
    variance between patients is estimated from few rows, and mostly too low.

    >>> stabilised_error(np.array([4.0, 4.0, 1.0]), np.array([1.0, 2.0, 1.0]))  # ratios 4, 2, 1: the effect is 2
    array([2.        , 2.        , 1.41421356])
    """
    has_noise = (binomial > 0).all(axis=tuple(range(binomial.ndim - 1)))  # in every curve
    ratio = variance[..., has_noise] / binomial[..., has_noise]
    effect = np.maximum(np.median(ratio, axis=-1, keepdims=True), 1.0) if has_noise.any() else 1.0
    return np.sqrt(np.maximum(np.maximum(variance, effect * binomial), 0.0))


def critical_value(
    jacobian: Float64s, covariance: Float64s, df: float, level: float, rng: np.random.Generator
) -> float:
    """Return the `level` quantile of max_i |x_i' e| / se_i over the rows x_i of `jacobian` (m, k), by 5000 draws.

    e are Student errors with `df` degrees of freedom and the covariance (k, k). Rows with se 0 are left out; refused if all
    are.

    >>> one_row = critical_value(np.ones((1, 1)), np.ones((1, 1)), 1e9, 0.95, np.random.default_rng(0))
    >>> abs(one_row - 1.96) < 0.1  # of a single point the normal one, but for 5000 draws
    True
    """
    size = np.sqrt(np.einsum("ij,jk,ik->i", jacobian, covariance, jacobian))
    if not (size > 0).any():
        raise InputError("the standard error of the curve is 0 everywhere; give more rows, or other scores")
    standard = (jacobian[size > 0] / size[size > 0, None]).T
    errors = rng.standard_normal((_DRAWS, len(covariance))) @ (special.symmetric_root(covariance) @ standard)
    largest = np.maximum(errors.max(axis=1), -errors.min(axis=1)) / np.sqrt(rng.chisquare(df, _DRAWS) / df)
    return float(np.quantile(largest, level))
