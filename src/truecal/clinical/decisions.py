"""Decision curves: net benefit of one model or several, with intervals."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

import truecal as tc
from truecal import options
from truecal.clinical.cohort import Cohort, Quantity, student
from truecal.clinical.curves import fit_spline
from truecal.errors import InputError
from truecal.lenses.lens import Lens
from truecal.predictions import validation
from truecal.predictions.arrays import takes_arrays
from truecal.special import kish
from truecal.table import Frame
from truecal.types import Float64s

# ----------------------------------------------------------------------------------------------------
# Intervals of means of values that can be few different numbers, such as what a decision is worth

_HALVINGS = 50


def score_interval(
    cohort: Cohort, values: Float64s, support: Float64s, level: float
) -> tuple[Float64s, Float64s, Float64s]:
    """Weighted means of columns (n, k) and both ends of their intervals; `support` (k, m) are the values that each column can take.

    Where few people are treated a mean +- t se says nothing: with none of them its standard error is 0. Here a mean d is kept
    unless the observed one is more than t standard errors from it, with the variance of the likeliest distribution on the support
    whose mean is d (the score test of a multinomial; Wilson's interval for two values, Tango's for differences). Weights and
    clusters count by the number of independent rows that would give the variance over patients.
    """
    share = cohort.weights / cohort.weights.sum()
    mean = share @ values
    seen = np.stack([share @ (values == column) for column in support.T], axis=1)
    for j in range(1, support.shape[1]):  # a value that is listed twice (odds of 1) is counted once
        seen[(support[:, :j] == support[:, j : j + 1]).any(axis=1), j] = 0.0
    rows = _independent(cohort, values - mean, (seen * (support - mean[:, None]) ** 2).sum(axis=1))
    reach = student(cohort.df, level) / np.sqrt(rows)
    beyond = support - mean[:, None]
    below, above = np.split(_farthest(np.tile(seen, (2, 1)), np.concatenate([-beyond, beyond]), np.tile(reach, 2)), 2)
    return mean, mean - below, mean + above


def values_of(odds: Float64s, *values: float | Float64s) -> Float64s:
    """The values that what is done for a row can be worth at each threshold, (k, m)."""
    return np.stack([np.broadcast_to(np.asarray(value, np.float64), odds.shape) for value in values], axis=1)


def _independent(cohort: Cohort, deviations: Float64s, variance: Float64s) -> Float64s:
    """How many independent rows would give each mean the variance it has over patients; not more than there are rows, unless the
    prevalence is known."""
    size = (cohort.reactions(deviations) ** 2).sum(axis=0)
    if cohort.stratified:
        return np.divide(variance, size, out=np.full(len(size), np.inf), where=size > 1e-30)
    most = cohort.rows if cohort.counted else float(kish(cohort.weights))
    known = np.divide(variance, size, out=np.full(len(size), float(min(cohort.patients, most))), where=size > 1e-30)
    return np.minimum(known, most)


def _farthest(seen: Float64s, support: Float64s, reach: Float64s) -> Float64s:
    """How far above the observed mean (0) the true one can be. The likeliest distributions with larger means are proportional to
    seen / (1 - s value), s from 0 to 1 / largest value; then, if that value was not seen, a growing part of the mass is on it."""
    largest = np.maximum(support.max(axis=1), 1e-300)
    spare = np.where(support == largest[:, None], seen, 0.0).sum(axis=1) == 0

    powers = np.stack([np.ones_like(support), support, support**2])
    weighted, scaled = seen * powers, support / largest[:, None]

    def tilted(step: Float64s) -> tuple[Float64s, Float64s]:
        """Mean and variance at steps from 0 to 1 (tilting) and on to 2 (mass moved to the largest value)."""
        room = 1 - np.minimum(step, 1.0)[:, None] * scaled
        room[room <= 0] = np.inf
        mass, first, second = (weighted / room).sum(axis=2)
        moved = np.maximum(step - 1, 0.0)
        first = (1 - moved) * first / mass + moved * largest
        second = (1 - moved) * second / mass + moved * largest**2
        return first, np.maximum(second - first**2, 0.0)

    low, high = np.zeros(len(reach)), np.where(spare, 2.0, 1.0 - 1e-12)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        mean, variance = tilted(middle)
        kept = mean <= reach * np.sqrt(variance)
        low, high = np.where(kept, middle, low), np.where(kept, high, middle)
    return np.maximum(tilted(low)[0], 0.0)


# ----------------------------------------------------------------------------------------------------
# Decision curves: does acting on the model at a threshold do more good than harm?


@dataclass(frozen=True, eq=False)
class DecisionCurve:
    """Net benefit of a model at every threshold, in true positives per person, with intervals.

    Attributes
    ----------
    thresholds : the risk from which people are treated. net_benefit, low, high : of treating those at or above it.
    treat_all, all_low, all_high : of treating everyone; treating no one has net benefit 0.
    gain, gain_low, gain_high : over the better of treating everyone and no one.
    recalibrated : what perfectly recalibrated risks would give, estimated on rows that the recalibration did not see.
    loss, loss_low, loss_high : recalibrated less net benefit: what miscalibration costs. The recalibration is itself fitted to
        these data, so on average the loss is not overstated, and below 0 it says that none was found.
    treated : share of people at or above each threshold. name, level, rows, events, patients : what it rests on.
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
    benefits: Float64s = field(repr=False)  # (n, thresholds) what each row adds, for paired comparisons
    cohort: Cohort = field(repr=False)

    def frame(self) -> Frame:
        """One row per threshold."""
        names = "net_benefit low high treat_all all_low all_high gain gain_low gain_high recalibrated loss loss_low loss_high"
        return Frame(
            {
                "threshold": self.thresholds,
                **{name: getattr(self, name) for name in names.split()},
                "treated": self.treated,
            }
        )

    def at(self, threshold: float) -> Quantity:
        """Net benefit at one of the thresholds."""
        i = self._place(threshold)
        return Quantity(
            float(self.net_benefit[i]), float(self.low[i]), float(self.high[i]), self.level, None, "score interval"
        )

    def avoided(self, per: int = 100) -> Float64s:
        """Treatments avoided per so many people, compared with treating everyone, without missing an event:
        (net benefit - that of treating everyone) / (t / (1 - t))."""
        return np.asarray((self.net_benefit - self.treat_all) * (1 - self.thresholds) / self.thresholds * per)

    def cost(self, false_positive: float, false_negative: float, per: int = 1000) -> Quantity:
        """Expected cost per so many people of acting at the threshold that these two costs imply, and its interval.

        The threshold is false_positive / (false_positive + false_negative), which must be among those of the curve. Cost =
        (share of missed events) x false_negative + (share of people treated without need) x false_positive.
        """
        if not (false_positive > 0 and false_negative > 0):
            raise InputError(f"costs must be above 0, not {false_positive!r} and {false_negative!r}")
        i = self._place(false_positive / (false_positive + false_negative))
        # false_negative (prevalence - net benefit): row by row, so that the interval is of the whole
        missed = (self.cohort.outcomes - self.benefits[:, i])[:, None]
        odds = self.thresholds[i : i + 1] / (1 - self.thresholds[i : i + 1])
        ends = score_interval(self.cohort, missed, values_of(odds, 1, odds, 0), self.level)
        value, low, high = (float(end[0]) * false_negative * per for end in ends)
        return Quantity(value, low, high, self.level, None, "score interval")

    def _place(self, threshold: float) -> int:
        i = int(np.argmin(np.abs(self.thresholds - threshold)))
        if abs(self.thresholds[i] - threshold) > 1e-9:
            raise InputError(
                f"threshold {threshold:g} is not among those computed; ask for it: net_benefit(preds, [{threshold:g}])"
            )
        return i

    def __str__(self) -> str:
        if len(self.thresholds) <= 12:
            shown = range(len(self.thresholds))
        else:
            places = np.unique([int(np.argmin(np.abs(self.thresholds - t))) for t in np.arange(0.1, 0.95, 0.1)])
            shown = (int(i) for i in places)  # type: ignore[assignment]
        head = f"{self.name}: {self.rows:,} rows, {self.events:,} events, {self.patients:,} independent units"
        lines = [head, f"{'threshold':<11}{'net benefit':<28}{'treat all':>10}{'treated':>10}  lost to miscalibration"]
        for i in shown:
            benefit = f"{self.net_benefit[i]:.4f} [{self.low[i]:.4f}, {self.high[i]:.4f}]"
            lost = f"{self.loss[i]:.4f} [{self.loss_low[i]:.4f}, {self.loss_high[i]:.4f}]"
            lines.append(
                f"{self.thresholds[i]:<11.3g}{benefit:<28}{self.treat_all[i]:>10.4f}{self.treated[i]:>10.1%}  {lost}"
            )
        return "\n".join(lines)


def decision_curve(
    cohort: Cohort, thresholds: Float64s, level: float, recalibrated: Float64s, name: str
) -> DecisionCurve:
    """All numbers of one model; `recalibrated` are risks of the rows from a recalibration that did not see them."""
    odds = thresholds / (1 - thresholds)
    y = cohort.outcomes[:, None]
    worth = y - (1 - y) * odds  # what treating a row is worth
    treats = cohort.scores[:, None] >= thresholds
    benefit = worth * treats
    worths = values_of(odds, 1, -odds, 0)
    value, low, high = score_interval(cohort, benefit, worths, level)
    everyone, all_low, all_high = score_interval(cohort, worth, worths[:, :2], level)
    all_treated = everyone > 0
    _, *gain = score_interval(
        cohort, benefit - worth * all_treated, np.where(all_treated, -1, 1)[:, None] * worths, level
    )
    ideal = worth * (recalibrated[:, None] >= thresholds)
    loss, loss_low, loss_high = _difference(cohort, ideal, benefit, odds, level)
    return DecisionCurve(
        thresholds,
        value,
        low,
        high,
        everyone,
        all_low,
        all_high,
        value - np.maximum(everyone, 0.0),
        gain[0],
        gain[1],
        value + loss,
        loss,
        loss_low,
        loss_high,
        cohort.weights @ treats / cohort.weights.sum(),
        name,
        level,
        cohort.rows,
        cohort.events,
        cohort.patients,
        benefit,
        cohort,
    )


def paired_difference(a: DecisionCurve, b: DecisionCurve, level: float) -> Frame:
    """Net benefit of a less that of b on the same rows, one row per threshold, with intervals of the paired difference."""
    odds = a.thresholds / (1 - a.thresholds)
    value, low, high = _difference(a.cohort, a.benefits, b.benefits, odds, level)
    return Frame({"threshold": a.thresholds, "difference": value, "low": low, "high": high})


def _difference(
    cohort: Cohort, a: Float64s, b: Float64s, odds: Float64s, level: float
) -> tuple[Float64s, Float64s, Float64s]:
    """Mean of a - b, what two ways to decide are worth for each row. Where one of them treats nobody whom the other leaves out, as
    one curve of the same risks does, the difference cannot have the values of such people."""
    more, fewer = ((a != 0) & (b == 0)).any(axis=0), ((a == 0) & (b != 0)).any(axis=0)
    more, fewer = more | ~fewer, fewer | ~more
    return score_interval(cohort, a - b, values_of(odds, 0, 1 * more, -odds * more, -1 * fewer, odds * fewer), level)


def same_rows(cohorts: list[Cohort], names: list[str]) -> None:
    """Refuse models that were not judged on the same rows."""
    first = cohorts[0]
    for name, other in zip(names[1:], cohorts[1:], strict=True):
        count, theirs = len(first.outcomes), len(other.outcomes)
        if theirs != count:
            raise InputError(
                f"{names[0]!r} has {count:,} rows and {name!r} {theirs:,}; models are compared on the same rows"
            )
        wrong: NDArray[np.intp] = np.flatnonzero(other.outcomes != first.outcomes)
        if len(wrong):
            row = int(wrong[0])
            raise InputError(
                f"row {row} has outcome {first.outcomes[row]:g} under {names[0]!r} and {other.outcomes[row]:g} under {name!r}; "
                "models are compared on the same rows in the same order"
            )


# ----------------------------------------------------------------------------------------------------
# `tc.clinical.net_benefit`: decision curves of one model or several, with what miscalibration costs

_FOLDS = 5  # of the recalibration whose net benefit is estimated on rows it did not see


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
        """Net benefit of model a less that of model b at every threshold, with intervals of the paired difference."""
        return paired_difference(self[a], self[b], self.level)

    def frame(self) -> Frame:
        """The numbers of all curves, one below the other."""
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
    r"""Net benefit of treating everyone whose risk is at or above a threshold t (Vickers and Elkin 2006):

        NB(t) = P(risk >= t, event) - P(risk >= t, no event) t / (1 - t)

    It is counted in true positives per person; a false positive costs t / (1 - t) of one, which is what acting at t says about
    harm and benefit. Treating no one has net benefit 0. Intervals are of means over patients (clusters), with weights.

    What miscalibration costs: the same decisions by m(risk) >= t, m the spline curve of the risks, are the best that can be made
    from this risk. m is fitted on four fifths of the patients and judged on the others, in turn, so that `recalibrated` does not
    flatter; `loss` is the difference.

    Parameters
    ----------
    preds : one model, or several by name on the same rows.
    thresholds : strictly between 0 and 1; default 0.01, 0.02, ..., 0.99.
    level, lens, prevalence : as in :func:`truecal.clinical`.
    rng : seed of the folds of the recalibration.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> curve = tc.clinical.net_benefit(tc.Predictions.from_probs(p, rng.random(4000) < p**2), [0.1, 0.4])
    >>> curve.net_benefit.round(2), (curve.loss_low > 0).tolist()
    (array([0.26, 0.11]), [True, True])
    """
    options.level(level)
    at = _checked(thresholds)
    models = dict(preds) if isinstance(preds, Mapping) else {"model": preds}
    if not models:
        raise InputError("there is no model to judge: the mapping is empty")
    cohorts = [Cohort.of(p, lens, prevalence=prevalence) for p in models.values()]
    same_rows(cohorts, list(models))
    folds = _folds(cohorts[0], options.generator(rng))
    curves = {
        name: decision_curve(cohort, at, level, _recalibrated(cohort, folds), name)
        for name, cohort in zip(models, cohorts, strict=True)
    }
    return DecisionComparison(curves, level) if isinstance(preds, Mapping) else curves["model"]


def _checked(thresholds: ArrayLike | None) -> Float64s:
    if thresholds is None:
        return np.arange(1, 100) / 100
    at = np.atleast_1d(validation.as_floats(thresholds, "thresholds")).astype(np.float64)
    if at.ndim != 1 or not len(at):
        raise InputError("thresholds must be a list of numbers strictly between 0 and 1, such as [0.05, 0.1, 0.2]")
    wrong = np.flatnonzero(~((at > 0) & (at < 1)))
    if len(wrong):
        raise InputError(
            f"thresholds must lie strictly between 0 and 1: number {wrong[0]} is {at[wrong[0]]:g}; at 0 everyone is treated, "
            "and at 1 a false positive costs infinitely much"
        )
    return at


def _folds(cohort: Cohort, rng: np.random.Generator) -> Float64s:
    """A fold for every row; rows of a patient are together, events are spread evenly."""
    units = np.arange(len(cohort.outcomes)) if cohort.units is None else cohort.units
    share = np.bincount(units, cohort.outcomes) / np.bincount(units)
    order = np.lexsort((rng.random(len(share)), share))
    fold = np.empty(len(share), np.intp)
    fold[order] = np.arange(len(share)) % _FOLDS
    return np.asarray(fold[units])


def _recalibrated(cohort: Cohort, folds: Float64s) -> Float64s:
    """Risks of every row by the curve of the other folds; the risk itself where those have one outcome only."""
    risks = cohort.scores.copy()
    for fold in range(_FOLDS):
        held = folds == fold
        rest = cohort.take(~held)
        if held.any() and 0 < rest.prevalence < 1:
            risks[held] = fit_spline(rest).at(cohort.scores[held])
    return risks
