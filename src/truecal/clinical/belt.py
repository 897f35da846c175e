"""The calibration belt: a polynomial calibration curve with the region that the data do not deny."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

import truecal as tc
from truecal import options, special
from truecal.clinical.cohort import Cohort, student
from truecal.clinical.curves import affordable_knots, critical, grid_of, sandwich, scores_asked, steady
from truecal.errors import InputError
from truecal.estimators import noise
from truecal.lenses.lens import Lens
from truecal.predictions.arrays import takes_arrays
from truecal.special import expit, logit
from truecal.table import Frame
from truecal.types import Float64s

_ENTER = 0.05  # p-value at which one more degree is taken
_DRAWS = 20_000


@dataclass(frozen=True, eq=False)
class CalibrationBelt:
    """Where the calibration curve can be: one pair of edges per level, at the scores `score`.

    `p_value` tests that the curve is the diagonal, by a polynomial of the `degree` that the data chose; the choice is allowed for.
    Where a belt leaves the diagonal, the risks are too high (belt below) or too low (belt above) there, at that level.
    """

    score: Float64s
    outcome: Float64s
    levels: tuple[float, ...]
    low: Float64s  # (levels, scores)
    high: Float64s
    degree: int
    p_value: float

    def frame(self) -> Frame:
        """One row per score."""
        columns: dict[str, Float64s] = {"score": self.score, "outcome": self.outcome}
        for i, level in enumerate(self.levels):
            columns |= {f"low_{level:g}": self.low[i], f"high_{level:g}": self.high[i]}
        return Frame(columns)

    def deviations(self, level: float) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
        """Ranges of scores at which risks are too high, and ranges at which they are too low, at one of the levels."""
        options.level(level)
        if level not in self.levels:
            raise InputError(
                f"level {level:g} is not among those of the belt: {', '.join(f'{x:g}' for x in self.levels)}"
            )
        i = self.levels.index(level)
        return self._ranges(self.high[i] < self.score), self._ranges(self.low[i] > self.score)

    def _ranges(self, off: Float64s) -> list[tuple[float, float]]:
        edges = np.flatnonzero(np.diff(np.concatenate([[0], off.astype(int), [0]])))
        return [(float(self.score[a]), float(self.score[b - 1])) for a, b in zip(edges[::2], edges[1::2], strict=True)]


@takes_arrays
def calibration_belt(
    preds: tc.Predictions,
    *,
    levels: tuple[float, ...] = (0.8, 0.95),
    lens: Lens | None = None,
    at: ArrayLike | None = None,
    rng: int | np.random.Generator = 0,
) -> CalibrationBelt:
    r"""The calibration belt (after Nattino, Finazzi and Bertolini 2014), with patients (clusters) counted.

    logit P(y) = polynomial of logit p, of degree 1 to at most 4 (100 events and non-events; 3 from 50, 2 from 25). The p-value:
    one more degree is taken while its last coefficient differs from 0 at the 5 % level; T = (b - b_0)' V^-1 (b - b_0) measures how
    far the chosen polynomial is from the diagonal, V by the sandwich formula over patients, and is compared with its
    distribution under calibration, degree chosen anew each time, drawn with the covariance of the largest model.

    The belt is that of the largest polynomial: log odds -+ c se at every score, c such that the whole curve is held. The published
    belt is that of the chosen one, as if it were true: where a further degree is there but not yet significant, it held the curve
    in 96 of 150 cohorts at 95 % (risks p of which p^1.5 come true, 800 rows).

    Scores of exactly 0 or 1 have no log odds and are left out.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.05, 0.95, 2000)
    >>> belt = tc.clinical.calibration_belt(tc.Predictions.from_probs(p, rng.random(2000) < p**1.5))
    >>> belt.p_value < 0.01, [len(ranges) for ranges in belt.deviations(0.95)]
    (True, [1, 0])
    """
    for level in levels:
        options.level(level)
    cohort = Cohort.of(preds, lens)
    cohort = cohort.take((cohort.scores > 0) & (cohort.scores < 1))
    cohort.refuse_one_class("what is left of the cohort without scores of exactly 0 and 1")
    z = logit(cohort.scores)
    centre, scale = cohort.mean(z), float(np.sqrt(cohort.mean((z - cohort.mean(z)) ** 2)))
    most = min(affordable_knots(cohort), len(np.unique(z[cohort.weights > 0]))) - 1
    if most < 1 or scale == 0:
        raise InputError("the calibration belt needs at least two different scores strictly between 0 and 1")
    design = ((z - centre) / scale)[:, None] ** np.arange(most + 1)
    fits = [_fit(cohort, design[:, : k + 2]) for k in range(most)]
    degree = next((k + 1 for k in range(most - 1) if not _improves(*fits[k + 1][:2])), most)
    generator = options.generator(rng)
    null = _null_statistics(design, cohort, (centre, scale), generator)
    off = fits[degree - 1][0].copy()
    off[:2] -= centre, scale
    statistic = float(off @ np.linalg.solve(fits[degree - 1][1], off))
    p_value = float((1 + np.count_nonzero(null >= statistic)) / (1 + len(null)))
    points = grid_of(cohort) if at is None else scores_asked(at)
    if points[0] <= 0 or points[-1] >= 1:
        raise InputError("at must hold scores strictly between 0 and 1; exactly 0 and 1 have no log odds")
    x = ((logit(points) - centre) / scale)[:, None] ** np.arange(most + 1)
    beta, *covariances = fits[-1]
    se = steady(*(np.einsum("ij,jk,ik->i", x, covariance, x) for covariance in covariances))
    largest = critical(x, covariances[0], cohort.df, levels, generator)
    reach = np.maximum(largest, [student(cohort.df, level) for level in levels])[:, None] * se
    eta = x @ beta
    return CalibrationBelt(points, expit(eta), tuple(levels), expit(eta - reach), expit(eta + reach), degree, p_value)


def _fit(cohort: Cohort, design: Float64s) -> tuple[Float64s, Float64s, Float64s]:
    """Coefficients, their covariance over patients and that of independent rows."""
    fit = special.fit_logistic(design, cohort.outcomes, cohort.weights)
    if not fit.converged:
        raise InputError("the outcomes are separated by the scores: no calibration curve can be fitted")
    influence, binomial = sandwich(cohort, np.ones(len(design), bool), design, fit)
    return fit.coefficients, cohort.covariance(influence, design.shape[1]), binomial


def _improves(beta: Float64s, covariance: Float64s) -> bool:
    from scipy.special import ndtr

    return bool(2 * ndtr(-abs(beta[-1]) / np.sqrt(covariance[-1, -1])) < _ENTER)


def _null_statistics(design: Float64s, cohort: Cohort, line: tuple[float, float], rng: np.random.Generator) -> Float64s:
    """Draws of the statistic under calibration, with the degree chosen in each draw as in the data.

    Near calibration the estimate of every degree is linear in s = X' w (y - p): b_k = I_k^-1 s_k, so one draw of s (its covariance
    by patients) gives all of them.
    """
    from scipy.special import ndtri

    total = cohort.weights.sum()
    residual = cohort.outcomes - cohort.scores
    meat = cohort.covariance(design * residual[:, None])
    draws = rng.standard_normal((_DRAWS, len(meat))) @ noise.symmetric_root(meat)
    information = (design * (cohort.weights * cohort.scores * (1 - cohort.scores))[:, None]).T @ design / total
    most = design.shape[1] - 1
    limit = -ndtri(_ENTER / 2)
    statistic, last = [], []
    for k in range(2, most + 2):
        bread = np.linalg.inv(information[:k, :k])
        beta = draws[:, :k] @ bread.T
        covariance = bread @ meat[:k, :k] @ bread
        statistic.append(np.einsum("ij,ij->i", beta @ np.linalg.inv(covariance), beta))
        last.append(np.abs(beta[:, -1]) / np.sqrt(covariance[-1, -1]) > limit)
    chosen, going = statistic[0].copy(), np.ones(_DRAWS, bool)
    for k in range(1, most):
        going &= last[k]
        chosen[going] = statistic[k][going]
    return np.asarray(chosen)
