"""Calibration error from few trusted labels and the verdicts of a judge for all rows.

Rows i = 1..N have a score c and verdicts of one or several judges; n of them, a random sample, have the trusted outcome y.
g(c, verdicts) = P(y = 1 | c, verdicts) is fitted on the trusted rows, out of fold. With polynomials phi_k that are
orthonormal in the rank of c over all rows,

    beta_k = mean_all(phi_k g) + mean_trusted(phi_k (y - g)) - mean_all(phi_k c)                                       (1)

is unbiased for <phi_k, E[y | c] - c> whatever g is. theta = |beta|^2 - tr V estimates the squared error, where V is the
covariance of beta. With L the covariance of mean_trusted(phi_k (y - g)), S that of mean_trusted(phi_k (y - c)), and
f = n / N,

    V = [n ((1 - f) L + f S) + m S] / (n + m)                                                                          (2)

where m rows without a judge are added, so that V is above zero if the judge is right in all trusted rows. In m rows the
squared residuals y - c sum to 1, as much as one mistake of the judge adds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from truecal.errors import InputError
from truecal.estimators.base import Estimator
from truecal.estimators.estimate import Curve, Estimate, Interval
from truecal.estimators.rank_series.basis import max_order, smooth_test_statistic
from truecal.estimators.rank_series.compare import Side, UnitNoise
from truecal.estimators.rank_series.estimator import RankSeries
from truecal.estimators.rank_series.fit import PENALTY
from truecal.estimators.rank_series.interval import Pivot
from truecal.lenses.lens import Lens
from truecal.lenses.one_probability import OneClass
from truecal.predictions.predictions import Predictions
from truecal.predictions.verdicts import log_odds_feature
from truecal.resampling.draws import NullDistribution, block_sizes, redraw_ones
from truecal.resampling.units import flip_sums
from truecal.special import clopper_pearson, expit, kish, symmetric_root
from truecal.table import Frame
from truecal.types import Float64s, Indices

_FOLDS = 5  # by choice: ten give intervals as long to 1 % (8 worlds, 100 labels, 40 datasets each)
_RIDGE = 1.0  # by choice: of the logistic fit of g: a judge that was never wrong must not get an infinite slope
_MIN_WORTH = 1.05  # labels per trusted label; tuned on six worlds: 1 lengthens intervals of a noisy judge by 1 %, 1.1 those at 70 %
_MIN_TRUSTED = 20  # rows; derived: two of each of the five folds and five coefficients
_FEW_TRUSTED = (
    100  # by choice: labels below which the interval gets a warning; n = 100 is the smallest number simulated
)
_REDRAWS = 999  # by choice: of the test; the smallest p-value is 1 / 1000
_MAX_VALUES = 1 << 25  # by choice: of polynomials at all rows: 256 MiB
_REDRAWN_AT_ONCE = 1 << 20  # by choice: redrawn outcomes held at a time: 8 MiB
ASSUMPTION = (
    "trusted labels must be a random sample of the rows, or have sampling weights; "
    "a choice by score or verdict biases the error"
)


@dataclass(frozen=True, repr=False)
class JudgedEstimate(Estimate):
    """A calibration error from few trusted labels and a judge's verdicts: an Estimate, and the gain by the judge in labels.

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
    accuracy : tuple of float
        Rate of the outcome over all rows, with its limits (for answers: the share that is right).

    See Also
    --------
    truecal.calibration_error : Returns it where a judge is given.
    truecal.lab.labels_needed : Plans the number of trusted labels.
    """

    trusted: int = 0
    worth: float = 0.0
    accuracy: tuple[float, float, float] = (0.0, 0.0, 1.0)

    def __str__(self) -> str:
        """Write the estimate, then the number of trusted labels, what they are worth with the judge, and the outcome rate with its
        interval.
        """
        rate, low, high = self.accuracy
        return (
            f"{super().__str__()}\n{self.trusted:,} trusted labels with the judge are worth {self.worth:,.0f}; "
            f"outcome rate {rate:.3f} [{low:.3f}, {high:.3f}]"
        )

    def frame(self) -> Frame:
        """Return one row: the columns of an Estimate, then trusted, worth and accuracy (of the judge, without its limits)."""
        return super().frame().with_columns(trusted=[self.trusted], worth=[self.worth], accuracy=[self.accuracy[0]])


# ---------------------------------------------------------------------- rows


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """Scores and verdicts of N rows, and outcomes of the n trusted ones."""

    scores: Float64s  # (N,)
    verdicts: Float64s  # (N, judges)
    trusted: Indices  # (n,) row numbers
    outcomes: Float64s  # (n,)
    weights: Float64s  # (n,) sampling weights, mean 1
    units: Indices | None  # (n,) cluster of each trusted row, or None for independent rows

    @classmethod
    def of(cls, preds: Predictions) -> JudgedRows:
        """Read binary predictions with a judge; labels of -1 are not trusted.

        Refuse fewer than 20 trusted rows, trusted outcomes that are all equal, and a single cluster.
        """
        assert preds.judge is not None
        trusted = np.flatnonzero(preds.labels >= 0)
        if len(trusted) < _MIN_TRUSTED:
            raise InputError(
                f"{len(trusted)} rows have a trusted label; a judge helps from {_MIN_TRUSTED} on: label more rows"
            )
        outcomes = preds.labels[trusted].astype(np.float64)
        weights = np.ones(len(trusted)) if preds.weights is None else preds.weights[trusted]
        units = None if preds.clusters is None else np.unique(preds.clusters[trusted], return_inverse=True)[1]
        if units is not None and units.max() == 0:
            raise InputError("all trusted labels belong to one cluster; label rows of at least two")
        return cls(preds.probs.astype(np.float64), preds.judge, trusted, outcomes, weights / weights.mean(), units)

    @property
    def size(self) -> float:
        """Effective number of independent trusted rows, at most the number of their clusters.

        It is Kish's (sum w)^2 / sum w^2 of the weights of the trusted rows.
        """
        n = float(kish(self.weights))
        return n if self.units is None else min(n, float(self.units.max() + 1))

    @property
    def one_sided(self) -> bool:
        """Whether all trusted outcomes are the same, so that they cannot show mistakes of the judge."""
        return bool(self.outcomes.min() == self.outcomes.max())

    @property
    def fraction(self) -> float:
        """Share f of the rows that have a trusted label."""
        return len(self.trusted) / len(self.scores)

    @property
    def added_rows(self) -> float:
        """Number of rows m of (2): n / max(sum of w (y - c)^2, 1), as many as have squared residuals y - c with the sum 1."""
        n = len(self.trusted)
        squares = float(self.weights @ (self.outcomes - self.scores[self.trusted]) ** 2)
        return n / max(squares, 1.0)

    def polynomials(self, order: int) -> Float64s:
        """Compute polynomials orthonormal in the mid-rank of the score over all rows, shape (N, order), the constant first.

        At most as many as there are distinct scores.
        """
        values, group, counts = np.unique(self.scores, return_inverse=True, return_counts=True)
        shares = counts / len(self.scores)
        ranks = np.cumsum(shares) - shares / 2
        roots = np.sqrt(shares)[:, None]
        q, r = np.linalg.qr(np.polynomial.legendre.legvander(2 * ranks - 1, min(order, len(values)) - 1) * roots)
        return np.asarray((q * np.where(r.diagonal() < 0, -1, 1) / roots)[group])

    @cached_property
    def predicted(self) -> tuple[Float64s, Float64s]:
        """P(y = 1 | c, verdicts): the mean over folds for all rows (N,), and out of fold for the trusted rows (n,)."""
        rows, n = len(self.scores), len(self.trusted)
        logit = log_odds_feature(self.scores)
        design = np.column_stack([np.ones(rows), logit, self.verdicts, self.verdicts * logit[:, None]])
        units = np.arange(n) if self.units is None else self.units
        fold = (np.random.default_rng(0).permutation(int(units.max()) + 1) % _FOLDS)[units]
        all_rates, out_of_fold = np.zeros(rows), np.empty(n)
        for k in range(_FOLDS):
            train = fold != k
            coefficients = _fit_ridge(design[self.trusted[train]], self.outcomes[train], self.weights[train])
            rates = expit(design @ coefficients)
            all_rates += rates / _FOLDS
            out_of_fold[~train] = rates[self.trusted[~train]]
        return all_rates, out_of_fold

    def estimate_means(self, functions: Float64s) -> JudgedMeans:
        """Estimate the means of functions phi of the score, (N, K), times E[y | c] - c, with their covariance (2).

        The values are mean_all(phi (g - c)) + mean_trusted(phi (y - g)), (K,), with g as in :attr:`predicted`. The covariance
        is (n ((1 - f) L + f S) + m S) / (n + m) with n :attr:`size`, m :attr:`added_rows`, f :attr:`fraction`, L the covariance
        of the label noise phi (y - g) and S that of the row noise phi (y - c).
        """
        all_rates, out_of_fold = self.predicted
        phi, n, m, f = functions[self.trusted], self.size, self.added_rows, self.fraction
        residuals = phi * (self.outcomes - out_of_fold)[:, None]
        values = functions.T @ (all_rates - self.scores) / len(functions) + (self.weights[:, None] * residuals).mean(0)
        label_noise = self._noise(residuals)
        row_noise = self._noise(phi * (self.outcomes - self.scores[self.trusted])[:, None])
        label, row = label_noise.T @ label_noise, row_noise.T @ row_noise
        return JudgedMeans(values, label_noise, row_noise, (n * ((1 - f) * label + f * row) + m * row) / (n + m))

    def _noise(self, values: Float64s) -> Float64s:
        """Compute deviations (units, K) of a weighted mean of `values` (n, K), one row per trusted row or per cluster.

        They are w (value - mean) / n, summed over clusters, times sqrt(units / (units - 1)): their squares sum to the estimated
        variance.
        """
        w = self.weights[:, None]
        parts = w * (values - (w * values).mean(0)) / len(w)
        if self.units is not None:
            rows, parts = parts, np.zeros((int(self.units.max()) + 1, values.shape[1]))
            np.add.at(parts, self.units, rows)
        return parts * np.sqrt(len(parts) / (len(parts) - 1))

    def rate(self, level: float) -> tuple[float, float, float]:
        """Estimate the rate of y over all rows, mean_all(g) + mean_trusted(y - g): value, lower and upper normal limit.

        All are clipped to [0, 1]. Where all trusted outcomes are the same, it is theirs with exact limits (Clopper and Pearson).
        """
        if self.one_sided:
            ones = float(self.outcomes[0])
            exact = clopper_pearson(ones * self.size, self.size, 0.5 - level / 2)
            return ones, float(exact[0]), float(exact[1])
        mean = self.estimate_means(np.ones((len(self.scores), 1)))
        value = float(mean.values[0]) + float(self.scores.mean())
        half_width = NormalDist().inv_cdf(0.5 + level / 2) * float(np.sqrt(mean.covariance[0, 0]))
        value, low, high = (min(max(x, 0.0), 1.0) for x in (value, value - half_width, value + half_width))
        return value, low, high


class JudgedMeans(NamedTuple):
    """Means (1) of K functions of the score and their covariance (2).

    `label_noise` and `row_noise`, shape (units, K), are the deviations by trusted row or cluster of
    mean_trusted(phi_k (y - g)) and of mean_trusted(phi_k (y - c)): their cross products sum to L and S.
    """

    values: Float64s  # (K,)
    label_noise: Float64s
    row_noise: Float64s
    covariance: Float64s  # (K, K)


# ---------------------------------------------------------------------- series


@dataclass(frozen=True, eq=False)
class JudgedSeries:
    """The series (1) of one model: `terms` for its value, twice as many for its upper limit, fewer for its test."""

    rows: JudgedRows
    functions: Float64s  # (N, up to 2 terms)
    means: JudgedMeans  # of the functions
    terms: int  # as many as the rank series has for `worth` labels
    test_terms: int  # as many as it has for the trusted rows: no outcome has chosen them
    worth: float  # number of trusted labels that would give the same precision without the judge

    @classmethod
    def of(cls, preds: Predictions) -> JudgedSeries:
        """Fit the series of binary predictions with a judge; the number of terms grows with the labels the judge is worth.

        `worth` is n times the variance without the judge over that with it, at most N.
        """
        rows = JudgedRows.of(preds)
        test_terms = int(max_order(np.array([rows.size]))[0])
        means = rows.estimate_means(rows.polynomials(test_terms))
        ratio = float((means.row_noise**2).sum() / np.trace(means.covariance))
        worth = min(len(rows.trusted) * ratio, float(len(rows.scores)))
        terms = int(max_order(np.array([max(rows.size * ratio, rows.size)]))[0])
        functions = rows.polynomials(max(min(2 * terms, _MAX_VALUES // len(rows.scores)), test_terms))
        return cls(rows, functions, rows.estimate_means(functions), terms, test_terms, worth)

    @property
    def judge_helps(self) -> bool:
        """Whether the trusted labels with the judge are worth more than 1.05 times their number, and can show its mistakes.

        The latter needs trusted outcomes of both kinds (`JudgedRows.one_sided`).
        """
        return self.worth > _MIN_WORTH * len(self.rows.trusted) and not self.rows.one_sided

    @property
    def power(self) -> float:
        """Estimate |beta|^2 - tr V of the squared error: sum of squared means less their variances over the first `_order` terms.

        It is below 0 by chance.
        """
        return float(self._theta[self._order - 1])

    @property
    def value(self) -> float:
        """The error, the root of `power` clipped to [0, 1]."""
        return float(min(np.sqrt(max(self.power, 0.0)), 1.0))

    @property
    def pivot(self) -> Pivot:
        """The estimate with `terms` terms, with the variance that it has for an error of the shape of the chosen terms."""
        return self._pivot_of(self.terms)

    def interval(self, level: float) -> tuple[float, float]:
        """Compute lower and upper limit of the error, from 0 to 1 and containing the value, with `terms` terms.

        The upper limit is at least that with twice the terms, where these add more than one standard error to the squared error.
        """
        low, high = (float(limit[0]) for limit in self.pivot.interval(level))
        added = self.means.covariance[self.terms :, self.terms :]
        if self._theta[-1] - self._theta[: self.terms][-1] > np.sqrt(2 * (added**2).sum()):
            high = max(high, float(self._pivot_of(len(self._theta)).interval(level)[1][0]))
        return min(low, self.value), min(max(high, self.value), 1.0)

    def p_value(self, rng: np.random.Generator) -> float:
        """Return the p-value of calibration by the smooth test statistic of the rank series, from up to 999 draws.

        Trusted outcomes are redrawn; with clusters, the signs of their noise are flipped.
        """
        if self.rows.units is None:
            statistic, draw = self._redraws()
        else:
            noise, covariance = (
                self._noise[:, : self.test_terms],
                self.means.covariance[: self.test_terms, : self.test_terms],
            )
            statistic = float(smooth_test_statistic(self.means.values[: self.test_terms], covariance))

            def draw(number: int, rng: np.random.Generator) -> Float64s:
                """Draw the test statistic with random signs of label and row noise of clusters `number` times, shape (number,)."""
                return smooth_test_statistic(flip_sums(noise, number, rng), covariance)

        return NullDistribution(draw).p_value(statistic, _REDRAWS, rng)

    @property
    def curve(self) -> Curve:
        """Fitted calibration curve at every score, ascending, clipped to [0, 1]; all points weigh 1 / N."""
        scores, order = self.rows.scores, np.argsort(self.rows.scores, kind="stable")
        gap = self.functions[:, : self._order] @ self.means.values[: self._order]
        return Curve(scores[order], np.clip(scores + gap, 0.0, 1.0)[order], np.full(len(scores), 1 / len(scores)))

    @property
    def side(self) -> Side:
        """Estimate, pivot and noise by unit, from which this model is compared with others on the same rows."""
        noise, order = self._noise[:, : self.terms], self._order if self.value > 0 else 0
        unit_noise = UnitNoise(self.means.values[: self.terms], noise, np.zeros(len(noise)), order)
        return Side(self.value, self.pivot, unit_noise, None if self.rows.units is None else int(self.rows.size))

    @cached_property
    def _theta(self) -> Float64s:
        """Estimates |beta|^2 - tr V of the squared error with 1, 2, ... terms, shape (up to 2 terms,)."""
        return np.cumsum(self.means.values**2 - self.means.covariance.diagonal())

    @cached_property
    def _order(self) -> int:
        """Number k of terms, up to `terms`, that minimises the risk c tr V_k - theta_k with the rank series' penalty c."""
        noise = np.cumsum(self.means.covariance.diagonal())
        return int(np.argmin((PENALTY * noise - self._theta)[: self.terms])) + 1

    def _pivot_of(self, terms: int) -> Pivot:
        """Compute the pivot of the estimate with the first `terms` terms: center theta, variance 2 |V|_F^2 + slope theta.

        The slope is 4 beta'V beta / |beta|^2 of the chosen terms.
        """
        covariance, center = self.means.covariance[:terms, :terms], self._theta[:terms][-1:]
        beta = self.means.values[: self._order]
        noise = float(beta @ covariance[: self._order, : self._order] @ beta)
        slope = 4 * noise / max(float(beta @ beta), 1e-300)
        return Pivot(center, np.array([2 * float((covariance**2).sum())]), np.array([slope]), np.zeros(1), center)

    @property
    def _noise(self) -> Float64s:
        """Deviations of the means by trusted row or cluster: sqrt(1 - f) label noise, then sqrt(f) row noise, (2 units, K)."""
        f = self.rows.fraction
        return np.vstack([np.sqrt(1 - f) * self.means.label_noise, np.sqrt(f) * self.means.row_noise])

    def _redraws(self) -> tuple[float, Callable[[int, np.random.Generator], Float64s]]:
        """Return the test statistic, and the function of (number, generator) that draws it under calibration, shape (number,).

        Trusted outcomes are redrawn from g, mixed with the scores of the m rows of (2); means over all rows are normal. The
        covariance is that of these redraws; its size is estimated, in the data and in every redraw.
        """
        rows = self.rows
        n, m, f, scores = len(rows.trusted), rows.added_rows, rows.fraction, rows.scores[rows.trusted]
        rates = (n * rows.predicted[1] + m * scores) / (n + m)
        functions = self.functions[rows.trusted, : self.test_terms] * rows.weights[:, None] / n
        leverage = (functions**2).sum(axis=1)
        without_judge = functions.T @ (functions * (scores * (1 - scores))[:, None])
        covariance = (1 - f) * functions.T @ (functions * (rates * (1 - rates))[:, None]) + f * without_judge
        floor, root = (f + m / n) * float(np.trace(without_judge)), symmetric_root(f * without_judge)
        trace = float(np.trace(covariance))

        def standardise(coefficients: Float64s, label_trace: Float64s) -> Float64s:
            """Compute the test statistic of coefficients (..., K) whose label noise has the trace `label_trace`."""
            return smooth_test_statistic(coefficients * np.sqrt(trace / ((1 - f) * label_trace + floor)), covariance)

        def draw(number: int, rng: np.random.Generator) -> Float64s:
            """Draw the test statistic from redrawn trusted outcomes and normal means `number` times, shape (number,)."""
            statistics = []
            for size in block_sizes(number, n, _REDRAWN_AT_ONCE):
                residuals = redraw_ones(np.ones(n), rates, rates * (1 - rates), size, rng)
                normal = rng.standard_normal((size, len(root))) @ root
                traces = residuals**2 @ leverage
                statistics.append(standardise(np.sqrt(1 - f) * residuals @ functions + normal, traces[:, None]))
            return np.concatenate(statistics)

        label_noise = self.means.label_noise[:, : self.test_terms]
        return float(standardise(self.means.values[: self.test_terms], (label_noise**2).sum())), draw


def _fit_ridge(design: Float64s, outcomes: Float64s, weights: Float64s) -> Float64s:
    """Fit a logistic regression with ridge penalty 1 on all coefficients by at most 30 Newton steps, shape (k,).

    `design` (n, k) has its own column of ones; 0/1 `outcomes` and `weights` have shape (n,).

    >>> _fit_ridge(np.ones((4, 1)), np.array([0.0, 1.0, 0.0, 1.0]), np.ones(4)).round(6)
    array([0.])
    """
    coefficients = np.zeros(design.shape[1])
    for _ in range(30):
        rates = expit(design @ coefficients)
        hessian = design.T @ (design * (weights * rates * (1 - rates))[:, None]) + _RIDGE * np.eye(design.shape[1])
        step = np.linalg.solve(hessian, design.T @ (weights * (outcomes - rates)) - _RIDGE * coefficients)
        coefficients += step
        if np.abs(step).max() < 1e-9:
            break
    return coefficients


# ---------------------------------------------------------------------- answers


def refuse_options(estimator: Estimator | None, lens: Lens | None) -> None:
    """Raise InputError for an estimator other than RankSeries of norm 2 or a lens other than OneClass(); None is accepted.

    >>> refuse_options(RankSeries(), OneClass())
    >>> refuse_options(RankSeries(norm=1), None)
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: with a judge the error is estimated by the default, tc.RankSeries(); leave out estimator=
    """
    if estimator is not None and not (isinstance(estimator, RankSeries) and estimator.norm == 2):
        raise InputError("with a judge the error is estimated by the default, tc.RankSeries(); leave out estimator=")
    if lens is not None and lens != OneClass():
        raise InputError("with a judge the positive class is judged; leave out lens=")


def judged_series(models: Mapping[str, Predictions]) -> dict[str, JudgedSeries]:
    """Fit the series of every model by name (`JudgedSeries.of`).

    Raises InputError for models without a judge, for trusted labels in other rows than those of the first model, and for other
    clusters.
    """
    (first, reference), *_ = models.items()
    for name, preds in models.items():
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
    return {name: JudgedSeries.of(preds) for name, preds in models.items()}


def measure_judged(series: JudgedSeries, alone: Estimate, level: float, rng: np.random.Generator) -> JudgedEstimate:
    """Estimate the error of all rows from `alone`, the error of the trusted rows, and a judge, with interval at `level`.

    Where the judge does not help, error, interval and p-value are those of the trusted rows. n is the number of all rows;
    warnings say what the labels must be, and that there are fewer than 100.
    """
    rows = series.rows
    rate, trusted = rows.rate(level), len(rows.trusted)
    warnings = (
        [f"only {trusted} trusted labels: the interval may cover less than stated"] if trusted < _FEW_TRUSTED else []
    )
    facts = {field.name: getattr(alone, field.name) for field in fields(alone)} | {
        "n": len(rows.scores),
        "effective_n": rows.size,
        "direction": float(rows.scores.mean()) - rate[0],
        "warnings": (*warnings, ASSUMPTION),
    }
    if not series.judge_helps:
        return JudgedEstimate(**facts, trusted=trusted, worth=float(trusted), accuracy=rate)
    facts |= {
        "value": series.value,
        "power": series.power,
        "interval": Interval(*series.interval(level), level, "rank series with a judge"),
        "p_value": series.p_value(rng),
        "curve": series.curve,
    }
    return JudgedEstimate(**facts, trusted=trusted, worth=series.worth, accuracy=rate)
