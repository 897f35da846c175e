"""The calibration line: intercept and slope of a logistic recalibration."""

from dataclasses import dataclass

import numpy as np

from truecal.errors import InputError
from truecal.logistic import fit_logistic
from truecal.profile import Profile

_FIT_CELLS = 65_536  # a logistic fit to more rows is made on so many cells


@dataclass(frozen=True)
class CalibrationLine:
    """Cox's logistic recalibration: logit P(y) = intercept + slope * logit(c); 0 and 1 mean calibrated.

    A slope below 1 means scores too extreme (overconfident). `intercept` is fitted with the slope held at 1 (calibration in the
    large): negative means scores too high. Scores of exactly 0 or 1 have no logit: `left_out` is the share of them.
    """

    slope: float
    intercept: float
    left_out: float


def calibration_line(profile: Profile) -> CalibrationLine:
    """Calibration slope and intercept (Cox 1958) by maximum likelihood.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=20000)
    >>> y = rng.random(20000) < 1 / (1 + np.exp(-z))
    >>> line = calibration_line(tc.Profile.from_arrays(1 / (1 + np.exp(-2 * z)), y))  # twice too extreme
    >>> round(line.slope, 1), line.left_out
    (0.5, 0.0)
    """
    if profile.batch != 1:
        raise InputError(f"calibration_line takes one dataset, not a batch of {profile.batch}; use profile.take([i])")
    cells = profile.coarsen(_FIT_CELLS)
    c = cells.scores[0].astype(np.float64)
    w = np.ones(len(c)) if cells.weights is None else cells.weights[0]
    y = cells.outcomes[0].astype(np.float64)
    inner = (c > 0) & (c < 1)
    left_out = float(w[~inner].sum() / w.sum())
    c, w, y = c[inner], w[inner], y[inner]
    ones, zeros = c[(y > 0) & (w > 0)], c[(y < 1) & (w > 0)]
    if not len(ones) or not len(zeros):
        raise InputError("the calibration line needs both outcomes among scores strictly between 0 and 1")
    if ones.min() == ones.max() == zeros.min() == zeros.max():
        raise InputError("the calibration line needs at least two different scores")
    z = np.log(c) - np.log1p(-c)
    intercept = fit_logistic(np.ones((len(z), 1)), y, w, z).coefficients[0]
    if ones.min() >= zeros.max() or ones.max() <= zeros.min():
        slope = (
            np.inf if ones.min() >= zeros.max() else -np.inf
        )  # a threshold separates the outcomes: no finite optimum
    else:
        slope = fit_logistic(np.stack([np.ones(len(z)), z], axis=1), y, w).coefficients[1]
    return CalibrationLine(float(slope), float(intercept), left_out)
