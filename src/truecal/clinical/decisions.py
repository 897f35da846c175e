"""Decision curves: net benefit of one model or several, with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

import truecal as tc
from truecal import options
from truecal.clinical.cohort import Cohort, Quantity, student
from truecal.clinical.curves import fit_spline
from truecal.errors import InputError
from truecal.inference.decisions import check_thresholds
from truecal.lenses.lens import Lens
from truecal.predictions.arrays import takes_arrays
from truecal.special import kish
from truecal.table import Frame, Tabular
from truecal.types import Float64s

# ----------------------------------------------------------------------------------------------------
# Score intervals of means of values on a known, finite support, such as the benefit of a decision

_HALVINGS = 50


def score_interval(
    cohort: Cohort, values: Float64s, support: Float64s, level: float
) -> tuple[Float64s, Float64s, Float64s]:
    """Return weighted means of columns (n, k) and their interval limits; `support` (k, m) are the values of each column.

    Where few people are treated mean +- t se fails: with none of them the standard error is 0. Here a mean d is inside unless the
    observed one is more than t standard errors from it, with the variance of the likeliest distribution on the support whose mean
    is d (the score test of a multinomial; Wilson's interval for two values, Tango's for differences). Weights and clusters enter
    through the number of independent rows that would give the variance over patients.
    """
    share = cohort.weights / cohort.weights.sum()
    mean = share @ values
    frequencies = np.stack([share @ (values == column) for column in support.T], axis=1)
    for j in range(1, support.shape[1]):  # a value that is listed twice (odds of 1) is counted once
        frequencies[(support[:, :j] == support[:, j : j + 1]).any(axis=1), j] = 0.0
    rows = _independent(cohort, values - mean, (frequencies * (support - mean[:, None]) ** 2).sum(axis=1))
    reach = student(cohort.df, level) / np.sqrt(rows)
    beyond = support - mean[:, None]
    below, above = np.split(
        _farthest(np.tile(frequencies, (2, 1)), np.concatenate([-beyond, beyond]), np.tile(reach, 2)), 2
    )
    return mean, mean - below, mean + above


def benefit_support(odds: Float64s, *values: float | Float64s) -> Float64s:
    """Return the possible benefits of a decision about a row at each threshold, (k, m)."""
    return np.stack([np.broadcast_to(np.asarray(value, np.float64), odds.shape) for value in values], axis=1)


def _independent(cohort: Cohort, deviations: Float64s, variance: Float64s) -> Float64s:
    """Return how many independent rows would give each mean its variance over patients; at most the rows, unless stratified."""
    size = (cohort.reactions(deviations) ** 2).sum(axis=0)
    if cohort.stratified:
        return np.divide(variance, size, out=np.full(len(size), np.inf), where=size > 1e-30)
    max_rows = cohort.rows if cohort.counted else float(kish(cohort.weights))
    estimate = np.divide(
        variance, size, out=np.full(len(size), float(min(cohort.patients, max_rows))), where=size > 1e-30
    )
    return np.minimum(estimate, max_rows)


def _farthest(frequencies: Float64s, support: Float64s, reach: Float64s) -> Float64s:
    """Return how far above the observed mean (0) the true one can be.

    The likeliest distributions with larger means are proportional to frequency / (1 - s value), s from 0 to 1 / largest value;
    then, if that value was not observed, a growing share of the mass is on it.
    """
    largest = np.maximum(support.max(axis=1), 1e-300)
    spare = np.where(support == largest[:, None], frequencies, 0.0).sum(axis=1) == 0

    powers = np.stack([np.ones_like(support), support, support**2])
    weighted, scaled = frequencies * powers, support / largest[:, None]

    def tilted(step: Float64s) -> tuple[Float64s, Float64s]:
        """Return mean and variance at steps from 0 to 1 (tilting) and on to 2 (mass moved to the largest value)."""
        room = 1 - np.minimum(step, 1.0)[:, None] * scaled
        room[room <= 0] = np.inf
        mass, first, second = (weighted / room).sum(axis=2)
        moved_share = np.maximum(step - 1, 0.0)
        first = (1 - moved_share) * first / mass + moved_share * largest
        second = (1 - moved_share) * second / mass + moved_share * largest**2
        return first, np.maximum(second - first**2, 0.0)

    low, high = np.zeros(len(reach)), np.where(spare, 2.0, 1.0 - 1e-12)
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
    net_benefit, low, high : ndarray of shape (k,)
        Net benefit of treating those at or above the threshold, and its interval.
    treat_all, all_low, all_high : ndarray of shape (k,)
        Net benefit of treating everyone; treating no one has net benefit 0.
    gain, gain_low, gain_high : ndarray of shape (k,)
        Net benefit less the better of treating everyone and no one.
    recalibrated : ndarray of shape (k,)
        Net benefit of recalibrated risks, cross-fitted.
    loss, loss_low, loss_high : ndarray of shape (k,)
        Recalibrated less net benefit: the cost of miscalibration. The recalibration is fitted to these data, so on average the
        loss is not overstated; below 0 none was detected.
    treated : ndarray of shape (k,)
        Share of people at or above each threshold.
    """

    thresholds: Float64s
    net_benefit: Float64s
    low: Float64s
    high: Float64s
    treat_all: Float64s
    all_low: Float64s
    all_high: Float64s
    gain: Float64s
    gain_low: Float64s
    gain_high: Float64s
    recalibrated: Float64s
    loss: Float64s
    loss_low: Float64s
    loss_high: Float64s
    treated: Float64s
    name: str
    level: float
    rows: int
    events: int
    patients: int
    benefits: Float64s = field(repr=False)  # (n, thresholds) net benefit of each row, for paired comparisons
    cohort: Cohort = field(repr=False)

    def frame(self) -> Frame:
        """Return a table with one row per threshold."""
        names = "net_benefit low high treat_all all_low all_high gain gain_low gain_high recalibrated loss loss_low loss_high"
        return Frame(
            {
                "threshold": self.thresholds,
                **{name: getattr(self, name) for name in names.split()},
                "treated": self.treated,
            }
        )

    def at(self, threshold: float) -> Quantity:
        """Return the net benefit at one of the thresholds."""
        i = self._index(threshold)
        return Quantity(
            float(self.net_benefit[i]), float(self.low[i]), float(self.high[i]), self.level, None, "score interval"
        )

    def avoided(self, per: int = 100) -> Float64s:
        """Return the treatments avoided per so many people against treating everyone, without missing an event.

        That is (net benefit - that of treating everyone) / (t / (1 - t)).
        """
        return np.asarray((self.net_benefit - self.treat_all) * (1 - self.thresholds) / self.thresholds * per)

    def cost(self, false_positive: float, false_negative: float, per: int = 1000) -> Quantity:
        """Return the expected cost per so many people of acting at the threshold that these two costs imply.

        The threshold is false_positive / (false_positive + false_negative), which must be among those of the curve. Cost =
        (share of missed events) x false_negative + (share of people treated without need) x false_positive.
        """
        if not (false_positive > 0 and false_negative > 0):
            raise InputError(f"costs must be above 0, not {false_positive!r} and {false_negative!r}")
        i = self._index(false_positive / (false_positive + false_negative))
        # false_negative (prevalence - net benefit), row by row: the interval is that of the sum
        missed = (self.cohort.outcomes - self.benefits[:, i])[:, None]
        odds = self.thresholds[i : i + 1] / (1 - self.thresholds[i : i + 1])
        ends = score_interval(self.cohort, missed, benefit_support(odds, 1, odds, 0), self.level)
        value, low, high = (float(end[0]) * false_negative * per for end in ends)
        return Quantity(value, low, high, self.level, None, "score interval")

    def _index(self, threshold: float) -> int:
        """Return the index of a threshold; refuse one that was not computed."""
        i = int(np.argmin(np.abs(self.thresholds - threshold)))
        if abs(self.thresholds[i] - threshold) > 1e-9:
            raise InputError(
                f"threshold {threshold:g} is not among those computed; pass it: net_benefit(preds, [{threshold:g}])"
            )
        return i

    def __str__(self) -> str:
        rows = np.arange(len(self.thresholds))
        if len(rows) > 12:  # thresholds far from the prevalence decide little
            rate = self.events / self.rows
            risks = [rate * factor for factor in (0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4) if rate * factor < 1]
            rows = np.unique([int(np.argmin(np.abs(self.thresholds - t))) for t in risks])
        head = f"{self.name}: {self.rows:,} rows, {self.events:,} events, {self.patients:,} independent units"
        lines = [head, f"{'threshold':<11}{'net benefit':<28}{'treat all':>10}{'treated':>10}  cost of miscalibration"]
        for i in rows:
            benefit = f"{self.net_benefit[i]:.4f} [{self.low[i]:.4f}, {self.high[i]:.4f}]"
            loss = f"{self.loss[i]:.4f} [{self.loss_low[i]:.4f}, {self.loss_high[i]:.4f}]"
            lines.append(
                f"{self.thresholds[i]:<11.3g}{benefit:<28}{self.treat_all[i]:>10.4f}{self.treated[i]:>10.1%}  {loss}"
            )
        return "\n".join(lines)


def decision_curve(
    cohort: Cohort, thresholds: Float64s, level: float, recalibrated: Float64s, name: str
) -> DecisionCurve:
    """Compute all numbers of one model; `recalibrated` are cross-fitted recalibrated risks of the rows."""
    odds = thresholds / (1 - thresholds)
    y = cohort.outcomes[:, None]
    worth = y - (1 - y) * odds  # net benefit of treating a row
    treats = cohort.scores[:, None] >= thresholds
    benefit = worth * treats
    worths = benefit_support(odds, 1, -odds, 0)
    value, low, high = score_interval(cohort, benefit, worths, level)
    everyone, all_low, all_high = score_interval(cohort, worth, worths[:, :2], level)
    all_treated = everyone > 0
    sign = np.where(all_treated, -1, 1)[:, None]
    _, gain_low, gain_high = score_interval(cohort, benefit - worth * all_treated, sign * worths, level)
    ideal = worth * (recalibrated[:, None] >= thresholds)
    loss, loss_low, loss_high = _difference(cohort, ideal, benefit, odds, level)
    return DecisionCurve(
        thresholds,
        *(value, low, high),
        *(everyone, all_low, all_high),
        *(value - np.maximum(everyone, 0.0), gain_low, gain_high),
        value + loss,
        *(loss, loss_low, loss_high),
        treated=cohort.weights @ treats / cohort.weights.sum(),
        name=name,
        level=level,
        rows=cohort.rows,
        events=cohort.events,
        patients=cohort.patients,
        benefits=benefit,
        cohort=cohort,
    )


def _difference(
    cohort: Cohort, a: Float64s, b: Float64s, odds: Float64s, level: float
) -> tuple[Float64s, Float64s, Float64s]:
    """Return the mean of a - b, the benefits of two decisions about each row, with its interval.

    Where one of them treats nobody whom the other leaves out, as with two thresholds of the same risks, the difference cannot have
    the values of such people.
    """
    more, fewer = ((a != 0) & (b == 0)).any(axis=0), ((a == 0) & (b != 0)).any(axis=0)
    more, fewer = more | ~fewer, fewer | ~more
    return score_interval(
        cohort, a - b, benefit_support(odds, 0, 1 * more, -odds * more, -1 * fewer, odds * fewer), level
    )


def _refuse_other_rows(cohorts: Mapping[str, Cohort]) -> None:
    """Refuse models that were not evaluated on the same rows."""
    (first_name, first), *others = cohorts.items()
    count = len(first.outcomes)
    for name, other in others:
        if len(other.outcomes) != count:
            raise InputError(
                f"{first_name!r} has {count:,} rows and {name!r} {len(other.outcomes):,}; models are compared on the same rows"
            )
        different = np.flatnonzero(other.outcomes != first.outcomes)
        if len(different):
            row = int(different[0])
            raise InputError(
                f"row {row} has outcome {first.outcomes[row]:g} under {first_name!r} and {other.outcomes[row]:g} under {name!r}; "
                "models are compared on the same rows in the same order"
            )


# ----------------------------------------------------------------------------------------------------
# The public function

_FOLDS = 5  # of the cross-fitted recalibration


@dataclass(frozen=True, eq=False)
class DecisionComparison:
    """Decision curves of several models on the same rows, by name; `curves[name]` is one of them."""

    curves: Mapping[str, DecisionCurve]
    level: float

    def __getitem__(self, name: str) -> DecisionCurve:
        if name not in self.curves:
            raise InputError(f"there is no model {name!r}; there are {', '.join(self.curves)}")
        return self.curves[name]

    def difference(self, a: str, b: str) -> Frame:
        """Return the net benefit of model a less that of model b at every threshold, with intervals of the paired difference."""
        first, second = self[a], self[b]
        odds = first.thresholds / (1 - first.thresholds)
        value, low, high = _difference(first.cohort, first.benefits, second.benefits, odds, self.level)
        return Frame({"threshold": first.thresholds, "difference": value, "low": low, "high": high})

    def frame(self) -> Frame:
        """Return the numbers of all curves as one table."""
        return Frame.from_records([{"model": n, **row} for n, curve in self.curves.items() for row in curve.frame()])

    def __str__(self) -> str:
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
    rng: int | np.random.Generator = 0,
) -> DecisionCurve | DecisionComparison:
    r"""Compute the net benefit of treating everyone whose risk is at or above a threshold, with intervals.

    .. math:: NB(t) = P(\text{risk} \ge t, \text{event}) - P(\text{risk} \ge t, \text{no event}) \, t / (1 - t)

    It is counted in true positives per person; a false positive costs t / (1 - t) of one, the ratio of harm to benefit at which
    t is the optimal threshold. Treating no one has net benefit 0.

    Parameters
    ----------
    preds : Predictions or dict of str to Predictions
        One model, or several by name on the same rows, with `clusters=` where patients have several rows; or
        ``y_true, y_prob``.
    thresholds : array-like, default None
        Risks strictly between 0 and 1; None is 0.01, 0.02, ..., 0.99.
    level : float, default 0.95
        Level of the intervals, each for one threshold.
    lens : Lens, default None
        What is judged; None is the positive class.
    prevalence : float, default None
        Share of events in the population, where the sample was drawn by outcome (case-control).
    rng : int or Generator, default 0
        Seed of the folds of the recalibration.

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
    The cost of miscalibration (`loss`) is the net benefit of the decisions m(risk) >= t, the best that can be made from this
    risk, less that of the model; m is the spline curve of the risks, fitted on four fifths of the patients and applied to the
    others, in turn. Intervals are score intervals of means over patients (clusters), with weights.

    References
    ----------
    Vickers, Elkin. Decision curve analysis: a novel method for evaluating prediction models. Medical Decision Making 26, 2006.
    https://doi.org/10.1177/0272989X06295361

    See Also
    --------
    summary : Calibration and discrimination.
    truecal.selective.abstention_cost : The cost of abstaining.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> curve = tc.clinical.net_benefit(tc.Predictions.from_probs(p, rng.random(4000) < p**2), [0.1, 0.4])
    >>> curve.net_benefit.round(2), (curve.loss_low > 0).tolist()
    (array([0.26, 0.11]), [True, True])
    """
    options.level(level)
    points = check_thresholds(thresholds)
    models = dict(preds) if isinstance(preds, Mapping) else {"model": preds}
    if not models:
        raise InputError("the mapping of models is empty; give at least one")
    cohorts = {name: Cohort.of(model, lens, prevalence=prevalence) for name, model in models.items()}
    _refuse_other_rows(cohorts)
    folds = _assign_folds(next(iter(cohorts.values())), options.generator(rng))
    curves = {
        name: decision_curve(cohort, points, level, _cross_recalibrate(cohort, folds), name)
        for name, cohort in cohorts.items()
    }
    return DecisionComparison(curves, level) if isinstance(preds, Mapping) else curves["model"]


def _assign_folds(cohort: Cohort, rng: np.random.Generator) -> Float64s:
    """Assign a fold to every row; rows of a patient are together, events are spread evenly."""
    units = np.arange(len(cohort.outcomes)) if cohort.units is None else cohort.units
    share = np.bincount(units, cohort.outcomes) / np.bincount(units)
    order = np.lexsort((rng.random(len(share)), share))
    fold = np.empty(len(share), np.intp)
    fold[order] = np.arange(len(share)) % _FOLDS
    return np.asarray(fold[units])


def _cross_recalibrate(cohort: Cohort, folds: Float64s) -> Float64s:
    """Recalibrate every row by the curve of the other folds; keep its risk where those have one outcome only."""
    risks = cohort.scores.copy()
    for fold in range(_FOLDS):
        test = folds == fold
        rest = cohort.take(~test)
        if test.any() and 0 < rest.prevalence < 1:
            risks[test] = fit_spline(rest).at(cohort.scores[test])
    return risks
