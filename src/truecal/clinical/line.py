"""The calibration line: intercept and slope of a logistic recalibration (Cox 1958), each with an interval."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truecal import logistic
from truecal.clinical.cohort import Cohort
from truecal.clinical.quantity import Quantity, quantity
from truecal.errors import InputError
from truecal.types import Float64s


@dataclass(frozen=True)
class CalibrationLine:
    """logit P(y) = a + b logit(p): `slope` is b, `intercept` is a with b held at 1 (calibration in the large).

    Scores of exactly 0 or 1 have no logit and are left out: `left_out` counts such rows, `impossible` those among them whose
    outcome contradicts the score. A right one would not change the line (its likelihood is 1 on every rising line); an
    impossible one has likelihood 0 on every line.
    """

    intercept: Quantity
    slope: Quantity
    left_out: int
    impossible: int


def calibration_line(cohort: Cohort, level: float) -> CalibrationLine:
    """Maximum likelihood, with sandwich standard errors over patients (no model is assumed to be true)."""
    inner = (cohort.scores > 0) & (cohort.scores < 1)
    heavy = cohort.weights > 0
    outer = ~inner & heavy
    impossible = int(np.count_nonzero(outer & (cohort.scores != cohort.outcomes)))
    left_out = int(np.count_nonzero(outer))
    rows = cohort if inner.all() else _judged(cohort, inner)
    z = logit(rows.scores)
    kept = rows.weights > 0
    events, others = z[kept & (rows.outcomes == 1)], z[kept & (rows.outcomes == 0)]
    if not len(events) or not len(others):
        raise InputError(
            "intercept and slope need events and non-events among scores strictly between 0 and 1; "
            f"{left_out:,} rows have scores of exactly 0 or 1 and no logit"
        )
    return CalibrationLine(_intercept(rows, z, level), _slope(rows, z, events, others, level), left_out, impossible)


def logit(p: Float64s) -> Float64s:
    """Log odds of numbers strictly between 0 and 1."""
    return np.asarray(np.log(p) - np.log1p(-p))


def _judged(cohort: Cohort, inner: NDArray[np.bool_]) -> Cohort:
    if not (cohort.weights[inner] > 0).any():
        raise InputError("every score is exactly 0 or 1: none has a logit, so there is no intercept and no slope")
    return cohort.take(inner)


def _intercept(rows: Cohort, z: Float64s, level: float) -> Quantity:
    fit = logistic.fit_logistic(np.ones((len(z), 1)), rows.outcomes, rows.weights, z)
    influence = (rows.outcomes - fit.probs) / (fit.information[0, 0] / rows.weights.sum())
    spread = rows.spread(influence)
    return quantity(float(fit.coefficients[0]), spread.se, spread.df, level=level, method="sandwich")


def _slope(rows: Cohort, z: Float64s, events: Float64s, others: Float64s, level: float) -> Quantity:
    if max(events.max(), others.max()) == min(events.min(), others.min()):
        raise InputError("the slope needs at least two different scores; all scores are equal")
    if events.min() >= others.max() or events.max() <= others.min():
        end = np.inf if events.min() >= others.max() else -np.inf
        return Quantity(end, -np.inf, np.inf, level, None, "a threshold separates the outcomes: no finite slope")
    design = np.stack([np.ones(len(z)), z], axis=1)
    fit = logistic.fit_logistic(design, rows.outcomes, rows.weights)
    spread = rows.spread(_left_out(rows, design, fit), 0)
    return quantity(float(fit.coefficients[1]), spread.se, spread.df, level=level, method="jackknife sandwich")


def _left_out(rows: Cohort, design: Float64s, fit: logistic.LogisticFit) -> Float64s:
    """Influence of every row on the slope, by how much the slope changes in one Newton step when its patient is left out.

    The step uses the information of the others (CR3, Bell and McCaffrey 2002): a patient draws the line to itself, and with few
    events its residual alone says too little.
    """
    residual, curved = rows.outcomes - fit.probs, fit.probs * (1 - fit.probs)
    total = rows.weights.sum()
    if rows.units is None:
        inverse = np.linalg.inv(fit.information)
        pull = curved * np.einsum("ij,jk,ik->i", design, inverse, design) * (1 if rows.counted else rows.weights)
        return np.asarray(total * (design @ inverse[1]) * residual / np.maximum(1 - pull, 0.1))
    z, heavy = design[:, 1], rows.weights * curved
    own = np.stack([np.bincount(rows.units, heavy * z**power) for power in (0, 1, 1, 2)], axis=1).reshape(-1, 2, 2)
    inverses = np.linalg.pinv(fit.information - own, hermitian=True)[rows.units, 1]
    return np.asarray(total * (design * inverses).sum(axis=1) * residual)
