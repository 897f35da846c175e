"""Risks and outcomes of a cohort, estimates with intervals, and the logistic calibration line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

import truecal as tc
from truecal import options, special
from truecal.errors import InputError
from truecal.lenses.lens import Lens, check_lens
from truecal.lenses.one_probability import default_lens
from truecal.predictions.predictions import check_predictions
from truecal.special import expit, logit
from truecal.types import Float64s, Indices

# ----------------------------------------------------------------------------------------------------
# An estimate with its interval

Scale = Literal["plain", "log", "logit"]


@dataclass(frozen=True)
class Quantity:
    """An estimate with its interval.

    Attributes
    ----------
    value : float
        The estimate.
    low : float
        Lower limit.
    high : float
        Upper limit.
    level : float
        Level of the interval.
    se : float or None
        Standard error; None where the interval is not built from one.
    method : str
        How the interval was computed.
    """

    value: float
    low: float
    high: float
    level: float
    se: float | None
    method: str

    def __float__(self) -> float:
        """Return `value`."""
        return self.value

    def __contains__(self, value: object) -> bool:
        """Return whether low <= number <= high."""
        return bool(self.low <= value <= self.high)  # type: ignore[operator]

    def __str__(self) -> str:
        """Write value and limits with three decimals.

        >>> print(Quantity(0.5, 0.25, 0.75, 0.95, None, ""))
        0.500 [0.250, 0.750]
        """
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def student_quantile(df: float, level: float) -> float:
    """Return the two-sided critical value t of Student's distribution: P(|T| <= t) = `level`; `df` may be infinite (normal).

    >>> round(student_quantile(np.inf, 0.95), 4), round(student_quantile(1, 0.5), 4)
    (1.96, 1.0)
    """
    from scipy.special import stdtrit

    return float(stdtrit(df, 0.5 + level / 2))


def quantity(value: float, se: float, df: float, *, level: float, scale: Scale = "plain", method: str) -> Quantity:
    """Compute the interval f^-1(f(value) -+ t se f'(value)) of an estimate, f its scale ("plain", "log" or "logit").

    The scale is one on which the estimate is nearly normal: "log" keeps positive numbers positive, "logit" keeps shares in
    (0, 1). `value` and `se` are on the plain scale. Callers handle values at an end of the scale (0; 0 or 1), where f is infinite.

    >>> str(quantity(1.0, 0.1, 99, level=0.95, scale="log", method="example"))
    '1.000 [0.820, 1.219]'
    """
    centre, slope = to_scale(value, scale)
    half_width = student_quantile(df, level) * se * slope
    return Quantity(
        float(value),
        from_scale(centre - half_width, scale),
        from_scale(centre + half_width, scale),
        level,
        float(se),
        method,
    )


def to_scale(value: float, scale: Scale) -> tuple[float, float]:
    """Return f(value) and the derivative f'(value) for a scale: f(x) is x ("plain"), log x ("log") or logit x ("logit").

    >>> to_scale(0.5, "plain"), to_scale(0.5, "logit")
    ((0.5, 1.0), (0.0, 4.0))
    """
    if scale == "plain":
        return value, 1.0
    return (np.log(value), 1 / value) if scale == "log" else (float(logit(value)), 1 / (value * (1 - value)))


def from_scale(transformed: float, scale: Scale) -> float:
    """Invert :func:`to_scale`: return the value whose transformation is `transformed`.

    >>> from_scale(0.0, "log"), from_scale(0.0, "logit")
    (1.0, 0.5)
    """
    return float(transformed if scale == "plain" else np.exp(transformed) if scale == "log" else expit(transformed))


def skewness_corrected(value: float, se: float, df: float, skewness: float, *, level: float, method: str) -> Quantity:
    """Compute the interval of an estimate, corrected for the skewness of its error (Hall 1992, JRSS B 54:221-228).

    T = (value - truth) / se of a skewed mean is not symmetric: g(T) = T + c T^2 / 3 + c^2 T^3 / 27 + c / 6 nearly is, c the
    skewness of the value. The limits are value - se g^-1(-+ t), at different distances from the value; without skewness
    (|c| <= 1e-9) they are value -+ t se.

    >>> str(skewness_corrected(1.0, 0.1, 99, 0.3, level=0.95, method="example"))
    '1.000 [0.835, 1.270]'
    """
    critical_value = student_quantile(df, level)
    ends = [critical_value, -critical_value]
    if abs(skewness) > 1e-9:
        ends = [3 / skewness * (np.cbrt(1 + skewness * (x - skewness / 6)) - 1) for x in ends]
    return Quantity(float(value), float(value - se * ends[0]), float(value - se * ends[1]), level, float(se), method)


# ----------------------------------------------------------------------------------------------------
# The cohort


@dataclass(frozen=True, eq=False)
class Cohort:
    """One risk and one outcome per row, with weights and patients.

    Attributes
    ----------
    scores, outcomes, weights : (n,) predicted risk, 0/1 outcome, and weight of each row.
    units : (n,) number of the patient (cluster) of each row 0..patients-1, or None where rows are independent.
    counted : weights are repetitions of a row (all whole numbers), else importance weights.
    stratified : the weights restore a known prevalence, so the share of events is not a source of error.
    lens : what is judged, in words.
    """

    scores: Float64s
    outcomes: Float64s
    weights: Float64s
    units: Indices | None
    counted: bool
    stratified: bool
    lens: str

    @classmethod
    def of(cls, preds: tc.Predictions, lens: Lens | None = None, *, prevalence: float | None = None) -> Cohort:
        """Build the cohort of a lens (None: the default lens): one score, outcome and weight (1 without weights) per row.

        With `prevalence`, events and non-events are reweighted to that share of events and the cohort is `stratified`. Refuses
        a lens with several scores per row or shared outcomes, a single cluster, and outcomes that are all equal.

        >>> Cohort.of(tc.Predictions.from_probs([0.2, 0.4, 0.9], [0, 1, 1]), prevalence=0.5).weights
        array([1.5 , 0.75, 0.75])
        """
        check_predictions(preds)
        check_lens(lens)
        lens = default_lens(preds) if lens is None else lens
        sample = None if lens.several or lens.shares(preds) is not None else lens.sample(preds)
        if sample is None or sample.pooled:
            raise InputError("a clinical summary needs one risk per row; use a lens such as OneClass('malignant')")
        scores, outcomes = sample.scores.astype(np.float64), sample.outcomes.astype(np.float64)
        weights = np.ones(len(sample)) if sample.weights is None else sample.weights
        counted = bool((weights == np.floor(weights)).all())
        units = None if sample.units is None else _number_units(sample.units)
        cohort = cls(scores, outcomes, weights, units, counted, False, lens.describe(preds))
        if cohort.patients < 2:
            raise InputError(
                "all rows belong to one cluster, which gives no between-cluster variance; give at least two clusters"
            )
        refuse_one_class(cohort, "the cohort")
        if prevalence is None:
            return cohort
        options.between(prevalence, "prevalence", 0, 1)
        share = cohort.prevalence
        factor = np.where(cohort.outcomes == 1, prevalence / share, (1 - prevalence) / (1 - share))
        return replace(cohort, weights=cohort.weights * factor, counted=False, stratified=True)

    @property
    def prevalence(self) -> float:
        """Weighted share of events.

        >>> Cohort.of(tc.Predictions.from_probs([0.2, 0.9], [0, 1], weights=[3, 1])).prevalence
        0.25
        """
        return float(self.weights @ self.outcomes / self.weights.sum())

    @property
    def rows(self) -> int:
        """Rows of positive weight; repetitions are counted.

        >>> Cohort.of(tc.Predictions.from_probs([0.2, 0.9], [0, 1], weights=[3, 1])).rows
        4
        """
        return self._count(self.weights)

    @property
    def events(self) -> int:
        """Rows of positive weight with outcome 1; repetitions are counted.

        >>> Cohort.of(tc.Predictions.from_probs([0.2, 0.9], [0, 1], weights=[3, 1])).events
        1
        """
        return self._count(self.weights[self.outcomes == 1])

    def _count(self, weights: Float64s) -> int:
        """Return the sum of `weights`, as a whole number, where the cohort is `counted`; else the number of positive weights.

        >>> cohort = Cohort.of(tc.Predictions.from_probs([0.2, 0.9], [0, 1], weights=[0.5, 1]))
        >>> cohort._count(np.array([0.5, 1.0, 0.0]))
        2
        """
        return int(weights.sum()) if self.counted else int(np.count_nonzero(weights))

    @property
    def patients(self) -> int:
        """Independent units of positive weight: clusters where they are given, else rows.

        >>> Cohort.of(tc.Predictions.from_probs([0.2, 0.9, 0.3], [0, 1, 0], clusters=["a", "b", "a"])).patients
        2
        """
        if self.units is None:
            return self.rows
        return len(np.unique(self.units[self.weights > 0]))

    @property
    def df(self) -> float:
        """Degrees of freedom of a standard error: `patients` minus 1, at least 1.

        >>> Cohort.of(tc.Predictions.from_probs([0.2, 0.9, 0.3], [0, 1, 0])).df
        2.0
        """
        return float(max(self.patients - 1, 1))

    def take(self, rows: NDArray[np.bool_] | Indices) -> Cohort:
        """Return the cohort of the rows of a mask or of indices; clusters are renumbered 0, 1, ... without gaps.

        >>> Cohort.of(tc.Predictions.from_probs([0.2, 0.9, 0.3], [0, 1, 0])).take(np.array([True, False, True])).scores
        array([0.2, 0.3])
        """
        units = None if self.units is None else _number_units(self.units[rows])
        columns = (self.scores[rows], self.outcomes[rows], self.weights[rows])
        return Cohort(*columns, units, self.counted, self.stratified, self.lens)

    def mean(self, values: Float64s) -> float:
        """Compute sum of w_i x_i / sum of w_i of values x (n,).

        >>> Cohort.of(tc.Predictions.from_probs([0.2, 0.9], [0, 1], weights=[3, 1])).mean(np.array([1.0, 5.0]))
        2.0
        """
        return float(self.weights @ values / self.weights.sum())

    def contributions(self, influence: Float64s) -> Float64s:
        """Compute the contributions of independent units to the errors of k estimates, (units, k), from influence values psi.

        psi is (n,) or (n, k), one value per row and estimate. A cluster contributes the sum of w psi over its rows, an
        independent row w psi, both divided by the sum of all w; a row that counts for w equal rows contributes sqrt(w) psi, so
        that sums of squares are those of the w rows.

        >>> cohort = Cohort.of(tc.Predictions.from_probs([0.2, 0.9, 0.3], [0, 1, 0], clusters=["a", "b", "a"]))
        >>> cohort.contributions(np.array([3.0, 6.0, 9.0]))  # clusters a and b
        array([[4.],
               [2.]])
        """
        psi = influence[:, None] if influence.ndim == 1 else influence
        # with a known share of events only the variation within events and within non-events is error
        if self.stratified:
            psi = psi.copy()
            for rows in (self.outcomes == 1, self.outcomes == 0):
                psi[rows] -= self.weights[rows] @ psi[rows] / self.weights[rows].sum()
        total = self.weights.sum()
        if self.units is not None:
            sums = [np.bincount(self.units, self.weights * column, self.units.max() + 1) for column in psi.T]
            return np.stack(sums, axis=1) / total
        factor = np.sqrt(self.weights) if self.counted else self.weights
        return psi * factor[:, None] / total

    def covariance(self, influence: Float64s, fitted: int = 1) -> Float64s:
        """Return the covariance (k, k) of k estimates with influence values (n, k): C'C J / (J - fitted), C the contributions.

        >>> cohort = Cohort.of(tc.Predictions.from_probs([0.2, 0.9], [0, 1]))
        >>> cohort.covariance(np.array([-1.0, 1.0]))  # (1/4 + 1/4) x 2 / 1
        array([[1.]])
        """
        contributions = self.contributions(influence)
        return np.asarray(contributions.T @ contributions) * (self.patients / max(self.patients - fitted, 1))

    def degrees(self, influence: Float64s) -> float:
        """Return the degrees of freedom of the covariance of k estimates with influence values (n, k), by Satterthwaite's rule.

        df = 2 k / (sum of d^2 - k^2 / J), between 1 and J - 1, with d the squared length of a unit's contribution in the metric of
        the covariance of all (d sums to k). For normal contributions the mean of d^2 over J units is k (k + 2) / J^2 and df is J; a
        few dominating events give about two each.
        """
        contributions = self.contributions(influence)
        metric = np.linalg.pinv(contributions.T @ contributions, hermitian=True)
        lengths = np.einsum("ij,jk,ik->i", contributions, metric, contributions)
        k = round(float(lengths.sum()))
        repetitions = self._repetitions(len(lengths))
        noise = float((lengths[repetitions > 0] ** 2 / repetitions[repetitions > 0]).sum()) - k**2 / self.patients
        return _satterthwaite(float(k), noise, self.df)

    def spread(self, influence: Float64s, fitted: int = 1) -> Spread:
        """Compute standard error, degrees of freedom and skewness of one estimate with influence values (n,).

        The variance is the sum of squared contributions of J units, times J / (J - fitted); without variation se and skewness are 0
        and df is J - 1. The skewness is that of the sum of the contributions; conditional_df is 2 / (2 / df - skewness^2), between
        1 and J - 1.
        """
        contributions = self.contributions(influence)[:, 0]
        squares = float(contributions @ contributions)
        if squares == 0:
            return Spread(0.0, self.df, 0.0, self.df)
        repetitions = self._repetitions(len(contributions))
        positive = repetitions > 0
        skewness = float((contributions[positive] ** 3 / np.sqrt(repetitions[positive])).sum()) / squares**1.5
        df = self.degrees(influence)
        conditional_df = _satterthwaite(1.0, 2 / df - skewness**2, self.df) if df < self.df else self.df
        return Spread((squares * self.patients / max(self.patients - fitted, 1)) ** 0.5, df, skewness, conditional_df)

    def _repetitions(self, units: int) -> Float64s:
        """Return how many rows each contribution stands for: the weights that count independent rows, else 1, (units,).

        >>> Cohort.of(tc.Predictions.from_probs([0.2, 0.9], [0, 1], weights=[3, 1]))._repetitions(2)
        array([3., 1.])
        """
        return self.weights if self.units is None and self.counted else np.ones(units)


def _number_units(units: Indices) -> Indices:
    """Renumber clusters (n,) by rank of their number, 0, 1, ... without gaps.

    >>> _number_units(np.array([7, 3, 7]))
    array([1, 0, 1])
    """
    return np.unique(units, return_inverse=True)[1].astype(np.intp)


def refuse_one_class(cohort: Cohort, name: str) -> None:
    """Raise InputError, with `name` in the message, for a cohort whose rows of positive weight are all events or all
    non-events.

    >>> cohort = Cohort.of(tc.Predictions.from_probs([0.2, 0.9], [0, 1]))
    >>> refuse_one_class(cohort.take(np.array([0])), "site a")
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: site a has no events among its 1 rows of positive weight; O/E, slope and c-statistic need
    at least one event: merge it with other data or leave it out
    """
    share = cohort.prevalence
    if 0 < share < 1:
        return
    kind, missing = ("no events", "event") if share == 0 else ("nothing but events", "non-event")
    raise InputError(
        f"{name} has {kind} among its {cohort.rows:,} rows of positive weight; O/E, slope and c-statistic need at least one "
        f"{missing}: merge it with other data or leave it out"
    )


def weighted_quantiles(values: Float64s, weights: Float64s, shares: ArrayLike) -> Float64s:
    """Return, for each share in [0, 1], the smallest value with at least that share of the weight at or below it.

    `values` and `weights` are (n,); rows of weight 0 are left out. The result has the shape of `shares`.

    >>> weighted_quantiles(np.array([3.0, 1.0, 2.0]), np.array([2.0, 1.0, 1.0]), [0, 0.25, 0.5, 0.51])
    array([1., 1., 2., 3.])
    """
    order = np.argsort(values, kind="stable")
    order = order[weights[order] > 0]
    reached = np.cumsum(weights[order])
    positions = np.searchsorted(reached, np.asarray(shares) * reached[-1])
    return np.asarray(values[order[np.minimum(positions, len(order) - 1)]])


def _satterthwaite(mean: float, noise: float, max_df: float) -> float:
    """Return 2 mean / noise, limited to 1 .. `max_df`: the degrees of freedom of a variance; `max_df` where noise <= 0.

    >>> _satterthwaite(2.0, 0.5, 20.0), _satterthwaite(2.0, 0.0, 20.0), _satterthwaite(2.0, 8.0, 20.0)
    (8.0, 20.0, 1.0)
    """
    return min(max(2 * mean / noise, 1.0), max_df) if noise > 0 else max_df


@dataclass(frozen=True)
class Spread:
    """Sampling error of an estimate.

    Attributes
    ----------
    se : standard error of the estimate.
    df : degrees of freedom of the standard error (:meth:`Cohort.degrees`).
    skewness : skewness of the estimate.
    conditional_df : degrees of freedom given the estimate, for intervals corrected for skewness.
    """

    se: float
    df: float
    skewness: float
    conditional_df: float


# ----------------------------------------------------------------------------------------------------
# The calibration line (Cox 1958)

MIN_REMAINDER = 0.1  # derived: 1 - leverage that a residual is divided by, so that a row with leverage 1 stays finite


@dataclass(frozen=True)
class CalibrationLine:
    """logit P(y) = a + b logit(p): `slope` is b, `intercept` is a with b = 1 (calibration in the large).

    Scores of exactly 0 or 1 have no logit and are left out: `left_out` counts such rows, `impossible` those among them whose
    outcome contradicts the score. A right one has likelihood 1 on every rising line, an impossible one likelihood 0.
    """

    intercept: Quantity
    slope: Quantity
    left_out: int
    impossible: int


def calibration_line(cohort: Cohort, level: float) -> CalibrationLine:
    """Fit intercept and slope by maximum likelihood, with sandwich standard errors over patients.

    Rows with scores of exactly 0 or 1 are left out and counted. Refuses a cohort whose other rows are none, lack events or
    non-events, or have one score only.
    """
    inner = (cohort.scores > 0) & (cohort.scores < 1)
    outer = ~inner & (cohort.weights > 0)
    impossible = int(np.count_nonzero(outer & (cohort.scores != cohort.outcomes)))
    left_out = int(np.count_nonzero(outer))
    if not (cohort.weights[inner] > 0).any():
        raise InputError("every score is exactly 0 or 1: none has a logit, so there is no intercept and no slope")
    rows = cohort if inner.all() else cohort.take(inner)
    z = logit(rows.scores)
    positive = rows.weights > 0
    events, non_events = z[positive & (rows.outcomes == 1)], z[positive & (rows.outcomes == 0)]
    if not len(events) or not len(non_events):
        raise InputError(
            "intercept and slope need events and non-events among scores strictly between 0 and 1; "
            f"{left_out:,} rows have scores of exactly 0 or 1 and no logit"
        )
    slope = _slope(rows, z, events, non_events, level)
    return CalibrationLine(_intercept(rows, z, level), slope, left_out, impossible)


def _intercept(rows: Cohort, z: Float64s, level: float) -> Quantity:
    """Fit a of logit P(y) = a + z by weighted logistic regression with offset z = logit p (n,), with a sandwich interval."""
    fit = special.fit_logistic(np.ones((len(z), 1)), rows.outcomes, rows.weights, z)
    influence = (rows.outcomes - fit.probs) / (fit.information[0, 0] / rows.weights.sum())
    spread = rows.spread(influence)
    return quantity(float(fit.coefficients[0]), spread.se, spread.df, level=level, method="sandwich")


def _slope(rows: Cohort, z: Float64s, events: Float64s, non_events: Float64s, level: float) -> Quantity:
    """Fit b of logit P(y) = a + b z, z = logit p (n,), with a jackknife sandwich interval.

    `events` and `non_events` are the values of z by outcome. Where a threshold separates them (a common value at the threshold
    included) the slope is +inf, or -inf where events are lower, with the interval (-inf, inf). Equal scores are refused.
    """
    if max(events.max(), non_events.max()) == min(events.min(), non_events.min()):
        raise InputError("the slope needs at least two different scores; all scores are equal")
    if events.min() >= non_events.max() or events.max() <= non_events.min():
        slope = np.inf if events.min() >= non_events.max() else -np.inf
        return Quantity(slope, -np.inf, np.inf, level, None, "a threshold separates the outcomes: no finite slope")
    design = np.stack([np.ones(len(z)), z], axis=1)
    fit = special.fit_logistic(design, rows.outcomes, rows.weights)
    spread = rows.spread(_jackknife_influence(rows, design, fit), 0)
    return quantity(float(fit.coefficients[1]), spread.se, spread.df, level=level, method="jackknife sandwich")


def _jackknife_influence(rows: Cohort, design: Float64s, fit: special.LogisticFit) -> Float64s:
    """Return the influence (n,) of rows on the slope of `fit`, such that a patient's contribution is a leave-one-out Newton step.

    The step uses the information without the patient (CR3, Bell and McCaffrey 2002), because residuals are too small by the
    leverage. Independent rows: sum(w) (I^-1 x)_slope (y - p) / max(1 - leverage, 0.1), x the row of `design` (n, 2), 1 and logit
    p.
    """
    residual, variance = rows.outcomes - fit.probs, fit.probs * (1 - fit.probs)
    total = rows.weights.sum()
    if rows.units is None:
        inverse = np.linalg.inv(fit.information)
        leverage = variance * np.einsum("ij,jk,ik->i", design, inverse, design) * (1 if rows.counted else rows.weights)
        return np.asarray(total * (design @ inverse[1]) * residual / np.maximum(1 - leverage, MIN_REMAINDER))
    z, weighted = design[:, 1], rows.weights * variance
    sums = [np.bincount(rows.units, weighted * z**power) for power in (0, 1, 1, 2)]
    unit_information = np.stack(sums, axis=1).reshape(-1, 2, 2)
    inverses = np.linalg.pinv(fit.information - unit_information, hermitian=True)[rows.units, 1]
    return np.asarray(total * (design * inverses).sum(axis=1) * residual)
