"""Decision curves: does acting on the model at a threshold do more good than harm?"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from truecal.clinical.cohort import Cohort
from truecal.clinical.decision.score_interval import score_interval, values_of
from truecal.clinical.quantity import Quantity
from truecal.errors import InputError
from truecal.frame import Frame
from truecal.types import Float64s


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
