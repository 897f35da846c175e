"""Decision curves: net benefit of one model or several, with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

import truecal as tc
from truecal import options
from truecal.clinical.cohort import Cohort, student_quantile
from truecal.errors import InputError
from truecal.lenses.lens import Lens
from truecal.predictions.arrays import takes_arrays
from truecal.scores.decisions import check_thresholds
from truecal.special import kish
from truecal.table import Frame, Tabular
from truecal.types import Float64s

# ----------------------------------------------------------------------------------------------------
# Score intervals of means of values on a known, finite support, such as the benefit of a decision

_HALVINGS = 50  # of the step; derived: to the precision of floats


def score_intervals(
    cohort: Cohort, values: Float64s, support: Float64s, level: float
) -> tuple[Float64s, Float64s, Float64s]:
    """Compute weighted means of columns (n, k), and their lower and upper limits, (k,) each.

    `support` (k, m) are the possible values of each column. Where few people are treated mean +- t se fails: with none of them
    the standard error is 0. Here a mean d is inside unless the observed one is more than t standard errors from it, with the
    variance of the likeliest distribution on the support whose mean is d (the score test of a multinomial; Wilson's interval for
    two values, Tango's for differences). Weights and clusters enter through the number of independent rows that would give the
    variance over patients.
    """
    share = cohort.weights / cohort.weights.sum()
    mean = share @ values
    frequencies = np.stack([share @ (values == column) for column in support.T], axis=1)
    for j in range(1, support.shape[1]):  # a value that is listed twice (odds of 1) is counted once
        frequencies[(support[:, :j] == support[:, j : j + 1]).any(axis=1), j] = 0.0
    rows = _effective_rows(cohort, values - mean, (frequencies * (support - mean[:, None]) ** 2).sum(axis=1))
    reach = student_quantile(cohort.df, level) / np.sqrt(rows)
    deviations = support - mean[:, None]
    below, above = np.split(
        _upper_distances(np.tile(frequencies, (2, 1)), np.concatenate([-deviations, deviations]), np.tile(reach, 2)), 2
    )
    return mean, mean - below, mean + above


def _benefit_support(odds: Float64s, *values: float | Float64s) -> Float64s:
    """Stack the m possible net benefits of a row, each one number or one per threshold (k,), to columns: (k, m).

    `odds` (k,) gives the number of thresholds.

    >>> _benefit_support(np.array([0.25, 1.0]), 0.0, np.array([-0.25, -1.0]), 1.0)
    array([[ 0.  , -0.25,  1.  ],
           [ 0.  , -1.  ,  1.  ]])
    """
    return np.stack([np.broadcast_to(np.asarray(value, np.float64), odds.shape) for value in values], axis=1)


def _effective_rows(cohort: Cohort, deviations: Float64s, variance: Float64s) -> Float64s:
    """Compute how many independent rows would give each of k means its variance over patients: shape (k,).

    `deviations` are (n, k), values less their mean; `variance` (k,) is that of one row. At most the number of rows (Kish's for
    weights that are not counts), unless stratified. Where all deviations are 0: as many rows as patients (infinite if stratified).
    """
    size = (cohort.contributions(deviations) ** 2).sum(axis=0)
    if cohort.stratified:
        return np.divide(variance, size, out=np.full(len(size), np.inf), where=size > 1e-30)
    max_rows = cohort.rows if cohort.counted else float(kish(cohort.weights))
    estimate = np.divide(
        variance, size, out=np.full(len(size), float(min(cohort.patients, max_rows))), where=size > 1e-30
    )
    return np.minimum(estimate, max_rows)


def _upper_distances(frequencies: Float64s, support: Float64s, reach: Float64s) -> Float64s:
    """Compute how far the upper score limits of k means lie above the observed means: shape (k,), by bisection.

    `support` (k, m) are the possible values less the observed mean, `frequencies` (k, m) their observed shares, and `reach` (k,)
    the critical value over the root of the rows: a mean d is rejected where d > reach sd(d).

    The likeliest distributions with larger means are proportional to frequency / (1 - s value), s from 0 to 1 / largest value;
    then, if that value was not observed, a growing share of the mass is on it.
    """
    largest = np.maximum(support.max(axis=1), 1e-300)
    unobserved = np.where(support == largest[:, None], frequencies, 0.0).sum(axis=1) == 0

    powers = np.stack([np.ones_like(support), support, support**2])
    weighted, scaled = frequencies * powers, support / largest[:, None]

    def tilted(step: Float64s) -> tuple[Float64s, Float64s]:
        """Compute mean and variance (k,) at steps (k,): from 0 to 1 the tilt grows, to 2 mass moves to the largest value."""
        divisor = 1 - np.minimum(step, 1.0)[:, None] * scaled
        divisor[divisor <= 0] = np.inf
        mass, first, second = (weighted / divisor).sum(axis=2)
        moved_share = np.maximum(step - 1, 0.0)
        first = (1 - moved_share) * first / mass + moved_share * largest
        second = (1 - moved_share) * second / mass + moved_share * largest**2
        return first, np.maximum(second - first**2, 0.0)

    low, high = np.zeros(len(reach)), np.where(unobserved, 2.0, 1.0 - 1e-12)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        mean, variance = tilted(middle)
        not_rejected = mean <= reach * np.sqrt(variance)
        low, high = np.where(not_rejected, middle, low), np.where(not_rejected, high, middle)
    return np.maximum(tilted(low)[0], 0.0)


# ----------------------------------------------------------------------------------------------------
# Decision curves


@dataclass(frozen=True, eq=False, repr=False)
class DecisionCurve(Tabular):
    """Net benefit of a model at every threshold, in true positives per person, with intervals.

    Attributes
    ----------
    thresholds : ndarray of shape (k,)
        Risks from which people are treated.
    net_benefit : ndarray of shape (k,)
        Net benefit of treating those at or above the threshold.
    low : ndarray of shape (k,)
        Lower limits of the net benefit.
    high : ndarray of shape (k,)
        Upper limits of the net benefit.
    treat_all : ndarray of shape (k,)
        Net benefit of treating everyone; treating no one has net benefit 0.
    gain : ndarray of shape (k,)
        Net benefit less the better of treating everyone and no one.
    gain_low : ndarray of shape (k,)
        Lower limits of the gain.
    gain_high : ndarray of shape (k,)
        Upper limits of the gain.
    treated : ndarray of shape (k,)
        Share of people at or above each threshold.
    name : str
        Name of the model.
    level : float
        Level of the intervals.
    benefits : ndarray of shape (n, k)
        Net benefit of each row, for paired comparisons.
    cohort : Cohort
        Scores, outcomes, weights and patients.

    See Also
    --------
    net_benefit : Computes it.
    """

    thresholds: Float64s
    net_benefit: Float64s
    low: Float64s
    high: Float64s
    treat_all: Float64s
    gain: Float64s
    gain_low: Float64s
    gain_high: Float64s
    treated: Float64s
    name: str
    level: float
    benefits: Float64s = field(repr=False)
    cohort: Cohort = field(repr=False)

    def frame(self) -> Frame:
        """Return one row per threshold: threshold, net_benefit, low, high, treat_all, gain, gain_low, gain_high, treated."""
        names = ("net_benefit", "low", "high", "treat_all", "gain", "gain_low", "gain_high", "treated")
        return Frame({"threshold": self.thresholds, **{name: getattr(self, name) for name in names}})

    def __str__(self) -> str:
        """Write rows, events and independent units, then a line per threshold; of more than 12 those near 1/4 to 4 times the
        prevalence.
        """
        cohort, rows = self.cohort, np.arange(len(self.thresholds))
        if len(rows) > 12:  # thresholds far from the prevalence decide little
            rate = cohort.events / cohort.rows
            risks = [rate * factor for factor in (0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4) if rate * factor < 1]
            rows = np.unique([int(np.argmin(np.abs(self.thresholds - t))) for t in risks])
        head = f"{self.name}: {cohort.rows:,} rows, {cohort.events:,} events, {cohort.patients:,} independent units"
        lines = [
            head,
            f"{'threshold':<11}{'net benefit':<28}{'gain over all or none':<28}{'treat all':>10}{'treated':>10}",
        ]
        for i in rows:
            benefit = f"{self.net_benefit[i]:.4f} [{self.low[i]:.4f}, {self.high[i]:.4f}]"
            gain = f"{self.gain[i]:.4f} [{self.gain_low[i]:.4f}, {self.gain_high[i]:.4f}]"
            shares = f"{self.treat_all[i]:>10.4f}{self.treated[i]:>10.1%}"
            lines.append(f"{self.thresholds[i]:<11.3g}{benefit:<28}{gain:<28}{shares}")
        return "\n".join(lines)


def decision_curve(cohort: Cohort, thresholds: Float64s, level: float, name: str) -> DecisionCurve:
    """Compute the net benefit of one model at thresholds (k,) in (0, 1), with intervals at `level`.

    It is the weighted mean over rows of 1 for an event, -t / (1 - t) for a non-event, with a score of at least the threshold t,
    and of 0 for other rows.
    """
    odds = thresholds / (1 - thresholds)
    y = cohort.outcomes[:, None]
    if_treated = y - (1 - y) * odds  # net benefit of treating a row
    treats = cohort.scores[:, None] >= thresholds
    benefit = if_treated * treats
    support = _benefit_support(odds, 1, -odds, 0)
    value, low, high = score_intervals(cohort, benefit, support, level)
    treat_all = cohort.weights @ if_treated / cohort.weights.sum()
    is_best = treat_all > 0
    sign = np.where(is_best, -1, 1)[:, None]
    gain, gain_low, gain_high = score_intervals(cohort, benefit - if_treated * is_best, sign * support, level)
    treated = cohort.weights @ treats / cohort.weights.sum()
    return DecisionCurve(
        *(thresholds, value, low, high, treat_all, gain, gain_low, gain_high, treated), name, level, benefit, cohort
    )


def _paired_difference(a: DecisionCurve, b: DecisionCurve) -> tuple[Float64s, Float64s, Float64s]:
    """Return the net benefit of model a less that of model b on the same rows, and its limits, each of shape (thresholds,).

    The support of a row's difference is 0, and 1 and -odds if some row is treated by a alone, -1 and odds if some is treated by b
    alone; all five if the models treat the same rows.
    """
    odds = a.thresholds / (1 - a.thresholds)
    only_a, only_b = (((x.benefits != 0) & (y.benefits == 0)).any(axis=0) for x, y in ((a, b), (b, a)))
    only_a, only_b = only_a | ~only_b, only_b | ~only_a
    support = _benefit_support(odds, 0, 1 * only_a, -odds * only_a, -1 * only_b, odds * only_b)
    return score_intervals(a.cohort, a.benefits - b.benefits, support, a.level)


def _refuse_other_rows(cohorts: Mapping[str, Cohort]) -> None:
    """Raise InputError where the cohorts of models differ in their number of rows or in the outcome of a row."""
    (first_name, first), *others = cohorts.items()
    count = len(first.outcomes)
    for name, cohort in others:
        if len(cohort.outcomes) != count:
            raise InputError(
                f"{first_name!r} has {count:,} rows and {name!r} {len(cohort.outcomes):,}; models are compared on the same rows"
            )
        different = np.flatnonzero(cohort.outcomes != first.outcomes)
        if len(different):
            row = int(different[0])
            raise InputError(
                f"row {row} has outcome {first.outcomes[row]:g} under {first_name!r} and {cohort.outcomes[row]:g} under {name!r}; "
                "models are compared on the same rows in the same order"
            )


# ----------------------------------------------------------------------------------------------------
# The public function


@dataclass(frozen=True, eq=False)
class DecisionComparison:
    """Decision curves of several models on the same rows.

    Attributes
    ----------
    curves : mapping of str to DecisionCurve
        Curves by the name of the model.
    level : float
        Level of the intervals.

    See Also
    --------
    net_benefit : Computes it from several named Predictions.
    """

    curves: Mapping[str, DecisionCurve]
    level: float

    def __getitem__(self, name: str) -> DecisionCurve:
        """Return the curve of the model of this name; InputError, which lists the names, for another."""
        if name not in self.curves:
            raise InputError(f"there is no model {name!r}; there are {', '.join(self.curves)}")
        return self.curves[name]

    def difference(self, a: str, b: str) -> Frame:
        """Return a table of threshold, difference, low, high: net benefit of model a less that of model b, paired over rows."""
        value, low, high = _paired_difference(self[a], self[b])
        return Frame({"threshold": self[a].thresholds, "difference": value, "low": low, "high": high})

    def frame(self) -> Frame:
        """Return one row per model and threshold.

        Columns: model, threshold, net_benefit, low, high, treat_all, gain, gain_low, gain_high, treated.
        """
        return Frame.from_records([{"model": n, **row} for n, curve in self.curves.items() for row in curve.frame()])

    def __str__(self) -> str:
        """Write every curve, then for every pair of models at how many thresholds the first is better and worse, each at `level`
        alone.

        A model is better where the lower limit of the paired difference is above 0, worse where the upper one is below 0.
        """
        lines = [str(curve) for curve in self.curves.values()]
        for a, b in combinations(self.curves, 2):
            difference = self.difference(a, b)
            better = int((difference["low"] > 0).sum()), int((difference["high"] < 0).sum())
            lines.append(
                f"{a} is better than {b} at {better[0]} of {len(difference)} thresholds, worse at {better[1]} "
                f"(each at {self.level:.0%})"
            )
        return "\n\n".join(lines)


@takes_arrays
def net_benefit(
    preds: tc.Predictions | Mapping[str, tc.Predictions],
    thresholds: ArrayLike | None = None,
    *,
    level: float = 0.95,
    lens: Lens | None = None,
    prevalence: float | None = None,
) -> DecisionCurve | DecisionComparison:
    r"""Compute the net benefit of treating everyone whose risk is at or above a threshold, with intervals.

    .. math:: NB(t) = P(\text{risk} \ge t, \text{event}) - P(\text{risk} \ge t, \text{no event}) \, t / (1 - t)

    It is counted in true positives per person; a false positive costs t / (1 - t) of one, the ratio of harm to benefit at which
    t is the optimal threshold. Treating no one has net benefit 0.

    Parameters
    ----------
    preds : Predictions or dict of str to Predictions
        One model, or several by name on the same rows, with `clusters=` where patients have several rows; or ``y_true,
        y_prob``.
    thresholds : array-like, default None
        Risks strictly between 0 and 1; None is 0.01, 0.02, ..., 0.99.
    level : float, default 0.95
        Level of the intervals, each for one threshold.
    lens : Lens, default None
        What is judged; None is the positive class.
    prevalence : float, default None
        Share of events in the population, where the sample was drawn by outcome (case-control).

    Returns
    -------
    curve : DecisionCurve or DecisionComparison
        The numbers of one model at every threshold, or those of several by name.

    Raises
    ------
    InputError
        A threshold is not strictly between 0 and 1, models have different rows, or there are no events.

    Notes
    -----
    Intervals are score intervals of means over patients (clusters), with weights. What miscalibration costs at a threshold is
    the loss of :func:`truecal.decision_loss`, divided by 1 - t.

    References
    ----------
    Vickers, Elkin. Decision curve analysis: a novel method for evaluating prediction models. Medical Decision Making 26, 2006.
    https://doi.org/10.1177/0272989X06295361

    See Also
    --------
    summary : Calibration and discrimination.
    truecal.decision_loss : The net benefit that recalibration would add, and the cost of decisions.
    truecal.selective.abstention_cost : The cost of abstaining.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> curve = tc.clinical.net_benefit(tc.Predictions.from_probs(p, rng.random(4000) < p**2), [0.1, 0.4])
    >>> curve.net_benefit.round(2), (curve.gain_low > 0).tolist()
    (array([0.26, 0.11]), [True, True])
    """
    options.level(level)
    points = check_thresholds(thresholds)
    models = dict(preds) if isinstance(preds, Mapping) else {"model": preds}
    if not models:
        raise InputError("the mapping of models is empty; give at least one")
    cohorts = {name: Cohort.of(model, lens, prevalence=prevalence) for name, model in models.items()}
    _refuse_other_rows(cohorts)
    curves = {name: decision_curve(cohort, points, level, name) for name, cohort in cohorts.items()}
    return DecisionComparison(curves, level) if isinstance(preds, Mapping) else curves["model"]
