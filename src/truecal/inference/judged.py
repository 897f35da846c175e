"""Calibration error from few trusted labels and the verdicts of a judge for all rows.

Rows i = 1..N have a score c and verdicts of one or several judges; n of them, a random sample, have the trusted outcome y.
g(c, verdicts) = P(y = 1 | c, verdicts) is fitted on the trusted rows, out of fold. With polynomials phi_k that are
orthonormal in the rank of c over all rows,

    beta_k = lambda mean_all(phi_k g) + mean_trusted(phi_k (y - lambda g)) - mean_all(phi_k c)                         (1)

is unbiased for <phi_k, E[y | c] - c> whatever g is. lambda in [0, 1] and a multiple kappa of phi_k c, whose mean over all
rows is known, minimise the trace of the covariance V of beta; theta = |beta|^2 - tr V estimates the squared error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from truecal.errors import InputError
from truecal.estimators.base import Estimator
from truecal.estimators.estimate import Curve, Estimate, Interval
from truecal.estimators.rank_series.basis import max_order
from truecal.estimators.rank_series.compare import Side, UnitNoise
from truecal.estimators.rank_series.estimator import RankSeries
from truecal.estimators.rank_series.fit import PENALTY
from truecal.estimators.rank_series.interval import Pivot
from truecal.estimators.rank_series.tests import smooth_test_statistic
from truecal.lenses.lens import Lens
from truecal.lenses.one_probability import OneClass
from truecal.predictions.predictions import Predictions
from truecal.predictions.verdicts import log_odds_feature
from truecal.special import expit, kish
from truecal.table import Frame
from truecal.types import Float64s, Indices

_FOLDS = 5  # ten: intervals as long to 1 % (8 worlds, 100 labels, 40 datasets each)
_RIDGE = 1.0  # of the logistic fit of g: a judge that was never wrong must not get an infinite slope
_MIN_TRUSTED = 20  # rows; derived: two of each of the five folds and five coefficients
_FEW_TRUSTED = 100  # labels below which the interval gets a warning; n = 100 is the smallest number simulated
_DRAWS = 999
ASSUMPTION = (
    "trusted labels must be a random sample of the rows, or have sampling weights; "
    "a choice by score or verdict biases the error"
)


@dataclass(frozen=True, repr=False)
class JudgedEstimate(Estimate):
    """A calibration error from few trusted labels and a judge's verdicts: an Estimate, and what the judge was worth.

    Attributes
    ----------
    value : float or ndarray of shape (batch,)
        The error on the scale of probabilities, in [0, 1].
    power : float or ndarray of shape (batch,)
        The signed estimate of the error to the power `norm`; a debiased one may be negative, which `value` shows as 0.
    n : int
        Number of all rows.
    effective_n : float or ndarray of shape (batch,)
        Number of independent trusted rows.
    estimator : Estimator
        The estimator with its options.
    norm : float
        The p of the error (E |gap|^p)^(1/p).
    direction : float or ndarray of shape (batch,)
        Mean score minus frequency; positive: predicted too high, or overconfident for the top label.
    lens : str
        What was judged, in words.
    interval : Interval or None
        Confidence interval of the true error, or None where the estimator has none.
    p_value : float, ndarray of shape (batch,) or None
        Probability of data this far off if the model were perfectly calibrated, or None when not tested.
    bins : Bins or None
        The bins behind the estimate (counts, means, per-bin intervals), or None for an estimator without bins.
    curve : Curve or None
        The fitted calibration curve.
    warnings : tuple of str
        What to know before quoting the number.
    parts : ndarray or None
        Values per class under a class-wise lens.
    vector_bins : VectorBins or None
        The bins behind an error of several probabilities at once.
    selection : str
        Which rows were judged, in words; empty for all.
    sketch_error : float or None
        For an estimate from a sketch, how far its value can be from that of all rows; None where all rows were seen.
    sketch_bound : {"proved", "probed"} or None
        Whether that distance is proved, or probed by trying orders of the rows inside cells.
    chance : float or None
        For a plug-in error of several probabilities, the mean value that a calibrated model would show.
    settings : mapping of str to ndarray
        What the estimator chose by itself for every dataset: number of bins, neighbours, bandwidth.
    trusted : int
        Number of rows with a trusted label.
    worth : float
        Number of trusted labels that would give the same precision without the judge.
    share : float
        Weight of the judge between 0 and 1, lambda of the method.
    accuracy : tuple of float
        Rate of the outcome over all rows, with its limits (for answers: the share that is right).

    See Also
    --------
    truecal.calibration_error : Returns it where a judge is given.
    truecal.lab.labels_needed : Plans the number of trusted labels.
    """

    trusted: int = 0
    worth: float = 0.0
    share: float = 0.0
    accuracy: tuple[float, float, float] = (0.0, 0.0, 1.0)

    def __str__(self) -> str:
        rate, low, high = self.accuracy
        return (
            f"{super().__str__()}\n{self.trusted:,} trusted labels with the judge are worth {self.worth:,.0f}; "
            f"outcome rate {rate:.3f} [{low:.3f}, {high:.3f}]"
        )

    def frame(self) -> Frame:
        return super().frame().with_columns(trusted=[self.trusted], worth=[self.worth], accuracy=[self.accuracy[0]])


class Means(NamedTuple):
    """Coefficients of (1), what each trusted row adds to their error (n, K), and lambda."""

    beta: Float64s
    residuals: Float64s
    share: float


@dataclass(frozen=True, eq=False)
class JudgedSeries:
    """The series (1) of one model."""

    scores: Float64s  # (N,)
    verdicts: Float64s  # (N, J)
    trusted: Indices  # (n,) rows
    outcomes: Float64s  # (n,) of the trusted rows
    weights: Float64s  # (n,) sampling weights, mean 1
    units: Indices | None  # (n,) clusters of the trusted rows
    seed: int = 0

    @classmethod
    def of(cls, preds: Predictions) -> JudgedSeries:
        """Read binary predictions with a judge."""
        assert preds.judge is not None
        trusted = np.flatnonzero(preds.labels >= 0)
        if len(trusted) < _MIN_TRUSTED:
            raise InputError(
                f"{len(trusted)} rows have a trusted label; a judge helps from {_MIN_TRUSTED} on: label more rows"
            )
        outcomes = preds.labels[trusted].astype(np.float64)
        if outcomes.min() == outcomes.max():
            raise InputError("all trusted labels are the same, so the judge cannot be checked; label more rows")
        weights = np.ones(len(trusted)) if preds.weights is None else preds.weights[trusted]
        units = None if preds.clusters is None else np.unique(preds.clusters[trusted], return_inverse=True)[1]
        if units is not None and units.max() == 0:
            raise InputError("all trusted labels belong to one cluster; label rows of at least two")
        scores = preds.probs.astype(np.float64)
        return cls(scores, preds.judge, trusted, outcomes, weights / weights.mean(), units)

    @cached_property
    def size(self) -> float:
        """Number of independent trusted rows."""
        n = float(kish(self.weights))
        return n if self.units is None else min(n, float(self.units.max() + 1))

    @cached_property
    def functions(self) -> Float64s:
        """Polynomials orthonormal in the mid-rank of the score over all rows, shape (N, K)."""
        rows, (values, group, counts) = (
            len(self.scores),
            np.unique(self.scores, return_inverse=True, return_counts=True),
        )
        ranks = (np.cumsum(counts) - counts / 2) / rows
        order = int(min(max_order(np.array([self.size]))[0], len(values)))
        vectors = np.polynomial.legendre.legvander(2 * ranks - 1, order - 1) * np.sqrt(counts / rows)[:, None]
        q, r = np.linalg.qr(vectors)
        return np.asarray((q * np.where(r.diagonal() < 0, -1, 1) / np.sqrt(counts / rows)[:, None])[group])

    @cached_property
    def predicted(self) -> tuple[Float64s, Float64s]:
        """P(y = 1 | c, verdicts) of all rows, the mean over folds, and of the trusted rows, out of fold."""
        rows, n = len(self.scores), len(self.trusted)
        logit = log_odds_feature(self.scores)
        design = np.column_stack([np.ones(rows), logit, self.verdicts, self.verdicts * logit[:, None]])
        rng = np.random.default_rng(self.seed)
        units = np.arange(n) if self.units is None else self.units
        fold = (rng.permutation(int(units.max()) + 1) % _FOLDS)[units]
        everywhere, out_of_fold = np.zeros(rows), np.empty(n)
        for k in range(_FOLDS):
            train = fold != k
            coefficients = _fit_ridge(design[self.trusted[train]], self.outcomes[train], self.weights[train])
            rates = expit(design @ coefficients)
            everywhere += rates / _FOLDS
            out_of_fold[~train] = rates[self.trusted[~train]]
        return everywhere, out_of_fold

    def _means(self, functions: Float64s, control: Float64s) -> Means:
        """Compute the means (1) of functions, shape (N, K), times outcome minus control, shape (N,), with their row noise."""
        everywhere, out_of_fold = self.predicted
        phi, w = functions[self.trusted], self.weights[:, None]
        y, g, c = (phi * a[:, None] for a in (self.outcomes, out_of_fold, control[self.trusted]))
        rows = len(functions)
        mean_g = functions.T @ everywhere / rows
        between = float((functions**2).sum(axis=1) @ everywhere**2) / rows - float(mean_g @ mean_g)
        spread = self._covariance_trace(g, g) + max(between, 0.0) / rows
        share = float(np.clip(self._covariance_trace(y, g) / max(spread, 1e-300), 0.0, 1.0))
        residual = y - share * g
        scale = self._covariance_trace(c, c)
        kappa = self._covariance_trace(residual, c) / scale if scale > 0 else 0.0
        mean_c = functions.T @ control / len(control)
        beta = share * mean_g + (w * residual).mean(0) - mean_c - kappa * ((w * c).mean(0) - mean_c)
        # the trusted rows vary around what all rows would show, and all rows around the population
        fraction = np.sqrt(len(self.trusted) / len(self.scores))
        return Means(beta, np.hstack([np.sqrt(1 - fraction**2) * (residual - kappa * c), fraction * (y - c)]), share)

    def _covariance_trace(self, a: Float64s, b: Float64s) -> float:
        """Compute the trace of the covariance of the weighted means of two row-wise quantities over trusted rows."""
        return float((self._noise(a) * self._noise(b)).sum())

    def _noise(self, values: Float64s) -> Float64s:
        """Compute what each trusted row (or cluster) adds to the error of a weighted mean; squares add up to its variance."""
        w = self.weights[:, None]
        parts = w * (values - (w * values).mean(0)) / len(w)
        parts = parts if self.units is None else _sum_by_unit(parts, self.units)
        return parts * np.sqrt(len(parts) / (len(parts) - 1))

    @cached_property
    def coefficients(self) -> Means:
        """Coefficients of the series of y - c."""
        return self._means(self.functions, self.scores)

    @cached_property
    def covariances(self) -> Float64s:
        """Covariance V of the coefficients, shape (K, K)."""
        noise, n = self._row_noise, self.size
        # Two pseudo-rows, in one of which the judge is wrong: a judge that was always right must not have no variance.
        return np.asarray((n * noise.T @ noise + np.eye(noise.shape[1]) / n) / (n + 2))

    @property
    def _row_noise(self) -> Float64s:
        """What trusted rows (or clusters), as labelled ones and as rows of the sample, add to the coefficients' noise."""
        terms, residuals = self.functions.shape[1], self.coefficients.residuals
        return np.vstack([self._noise(residuals[:, :terms]), self._noise(residuals[:, terms:])])

    @cached_property
    def theta(self) -> Float64s:
        """Estimates of the squared error with 1, ..., K terms."""
        return np.cumsum(self.coefficients.beta**2 - self.covariances.diagonal())

    @cached_property
    def order(self) -> int:
        """Number of terms that minimises the risk, as in the rank series."""
        return int(np.argmin(-self.theta + PENALTY * np.cumsum(self.covariances.diagonal()))) + 1

    @property
    def value(self) -> float:
        """The error with the chosen number of terms."""
        return float(min(np.sqrt(max(self.theta[self.order - 1], 0.0)), 1.0))

    @property
    def pivot(self) -> Pivot:
        """The estimate with all terms and its variance, as in the rank series."""
        beta, center = self.coefficients.beta, self.theta[-1:]
        null_variance = np.array([2 * float((self.covariances**2).sum())])
        slope = 4 * float(beta @ self.covariances @ beta) / max(float(beta @ beta), 1e-300)
        return Pivot(center, null_variance, np.array([slope]), np.zeros(1), center)

    def p_value(self, rng: np.random.Generator) -> float:
        """Test calibration by the statistic of the rank series, with Student's tails for the estimated covariance."""
        values, vectors = np.linalg.eigh(self.covariances)
        draws = rng.standard_normal((_DRAWS, len(values))) * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
        draws *= np.sqrt((self.size - 1) / rng.chisquare(self.size - 1, (_DRAWS, 1)))
        observed = float(smooth_test_statistic(self.coefficients.beta, self.covariances))
        drawn = smooth_test_statistic(draws, self.covariances)
        return (1 + int(np.count_nonzero(drawn >= observed))) / (1 + _DRAWS)

    def rate(self, level: float) -> tuple[float, float, float]:
        """Estimate the rate of the outcome over all rows: (1) with phi = 1 and nothing subtracted but a known mean."""
        mean = self._means(np.ones((len(self.scores), 1)), self.scores)
        value = float(mean.beta[0]) + float(self.scores.mean())
        a, b = mean.residuals[:, :1], mean.residuals[:, 1:]
        variance = self._covariance_trace(a, a) + self._covariance_trace(b, b) + 0.25 / self.size / (self.size + 2)
        reach = NormalDist().inv_cdf(0.5 + level / 2) * np.sqrt(variance)
        return tuple(float(np.clip(x, 0.0, 1.0)) for x in (value, value - reach, value + reach))  # type: ignore[return-value]


def refuse_options(estimator: Estimator | None, lens: Lens | None) -> None:
    """Raise for an estimator or a lens that a judge's verdicts do not go with."""
    if estimator is not None and not (isinstance(estimator, RankSeries) and estimator.norm == 2):
        raise InputError("with a judge the error is estimated by the default, tc.RankSeries(); leave out estimator=")
    if lens is not None and lens != OneClass():
        raise InputError("with a judge the positive class is judged; leave out lens=")


def judged_sides(all_preds: Mapping[str, Predictions]) -> dict[str, Side]:
    """Compute what a comparison needs of models on the same rows, of which the same have trusted labels."""
    series = {}
    (first, reference), *_ = all_preds.items()
    for name, preds in all_preds.items():
        if preds.judge is None:
            raise InputError(
                f"{name} has a label in every row or no judge; compare models that have the same trusted rows"
            )
        if not np.array_equal(preds.labels >= 0, reference.labels >= 0):
            raise InputError(f"{first} and {name} have trusted labels in different rows; label the same rows for both")
        if not np.array_equal(np.asarray(preds.clusters), np.asarray(reference.clusters)):
            raise InputError(
                f"the clusters of {name} are not those of {first}; rows that are paired share their cluster"
            )
        series[name] = JudgedSeries.of(preds)
    return {name: _comparison_side(one) for name, one in series.items()}


def _comparison_side(series: JudgedSeries) -> Side:
    """Build one side of a comparison of two models from a judged series."""
    noise, value = series._row_noise, series.value
    unit_noise = UnitNoise(series.coefficients.beta, noise, np.zeros(len(noise)), series.order if value > 0 else 0)
    return Side(value, series.pivot, unit_noise, None if series.units is None else int(series.size))


def measure_judged(
    preds: Predictions, estimator: Estimator | None, lens: Lens | None, level: float, rng: np.random.Generator
) -> JudgedEstimate:
    """Estimate the error of binary predictions of which few have trusted labels and all have verdicts."""
    refuse_options(estimator, lens)
    series = JudgedSeries.of(preds)
    value = series.value
    low, high = (float(limit[0]) for limit in series.pivot.interval(level))
    alone = series.functions[series.trusted] * (series.outcomes - series.scores[series.trusted])[:, None]
    worth = len(series.trusted) * series._covariance_trace(alone, alone) / np.trace(series.covariances)
    order = np.argsort(series.scores, kind="stable")
    gap = series.functions[:, : series.order] @ series.coefficients.beta[: series.order]
    rows = len(preds)
    curve = Curve(series.scores[order], np.clip(series.scores + gap, 0.0, 1.0)[order], np.full(rows, 1 / rows))
    rate = series.rate(level)
    notes = [f"only {len(series.trusted)} trusted labels: the interval may cover less than stated"]
    return JudgedEstimate(
        value=value,
        power=float(series.theta[series.order - 1]),
        n=rows,
        effective_n=series.size,
        estimator=RankSeries(level=level),
        norm=2,
        direction=float(series.scores.mean()) - rate[0],
        lens=OneClass().describe(preds),
        interval=Interval(min(low, value), min(max(high, value), 1.0), level, "rank series with a judge"),
        p_value=series.p_value(rng),
        curve=curve,
        warnings=(*(notes if len(series.trusted) < _FEW_TRUSTED else []), ASSUMPTION),
        trusted=len(series.trusted),
        worth=float(np.clip(worth, 0.0, rows)),
        share=series.coefficients.share,
        accuracy=rate,
    )


def _fit_ridge(design: Float64s, outcomes: Float64s, weights: Float64s) -> Float64s:
    """Fit a ridge-penalised logistic regression by Newton's method."""
    coefficients = np.zeros(design.shape[1])
    for _ in range(30):
        rates = expit(design @ coefficients)
        hessian = design.T @ (design * (weights * rates * (1 - rates))[:, None]) + _RIDGE * np.eye(design.shape[1])
        step = np.linalg.solve(hessian, design.T @ (weights * (outcomes - rates)) - _RIDGE * coefficients)
        coefficients += step
        if np.abs(step).max() < 1e-9:
            break
    return coefficients


def _sum_by_unit(values: Float64s, units: Indices) -> Float64s:
    """Sum rows of values, shape (n, k), by unit, shape (units, k)."""
    totals = np.zeros((int(units.max()) + 1, values.shape[1]))
    np.add.at(totals, units, values)
    return totals
