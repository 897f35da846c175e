"""`tc.net_benefit`: decision curves of one model or several, with what miscalibration costs."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

import truecal as tc
from truecal import options
from truecal.clinical.cohort import Cohort
from truecal.clinical.curve.spline import fit_spline
from truecal.clinical.decision.curve import DecisionCurve, decision_curve, paired_difference, same_rows
from truecal.errors import InputError
from truecal.frame import Frame
from truecal.lens import Lens
from truecal.predictions import border
from truecal.types import Float64s

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
    >>> curve = tc.net_benefit(tc.Predictions.from_probs(p, rng.random(4000) < p**2), [0.1, 0.4])
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
    at = np.atleast_1d(border.as_floats(thresholds, "thresholds")).astype(np.float64)
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
