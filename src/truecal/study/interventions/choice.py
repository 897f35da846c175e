"""How strong each intervention is made: the strength with the lowest usual error on validation rows that keeps the accuracy.

One strength per intervention, by the means over all seeds, as one configuration per model and data set in Kirchenbauer, Oaks & Heim
(2022), section C.2. Histogram binning learns from the validation rows, so its number of bins is judged by two halves of them, each
binned by what the other half taught.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal.errors import TruecalWarning
from truecal.study.interventions.config import AFTERWARDS, BASELINE, Plan, Strength
from truecal.study.interventions.data import Data, Part
from truecal.study.interventions.models import Job, Logits, Outputs

TRADITIONAL = tc.GeneralizedECE(lens=tc.TopLabel(), binning=tc.EqualWidth(15), level=None)
_MAKERS: Mapping[str, Any] = {
    "temperature": lambda _: tc.TemperatureScaling(input="logits"),
    "bias-corrected-temperature": lambda _: tc.BiasCorrectedTemperature(input="logits"),
    "histogram": lambda bins: tc.HistogramBinning(bins, input="logits"),
    "histogram-width": lambda bins: tc.HistogramBinning(bins, scheme="width", input="logits"),
}


@dataclass(frozen=True)
class Tried:
    """One strength on the validation rows of one seed."""

    intervention: str
    strength: Strength
    seed: int
    error: float
    accuracy: float


@dataclass(frozen=True)
class Choice:
    """The strength of every intervention, all that were tried, and what there is to say about it."""

    strengths: Mapping[str, Strength]
    tried: tuple[Tried, ...]
    notes: tuple[str, ...]


def choose(plan: Plan, data: Data, outputs: Mapping[Job, Outputs]) -> Choice:
    """Try every strength on the validation rows."""
    tried = []
    for job, logits in outputs.items():
        tried.append(_judged(job, of_logits(logits.validation, data.validation, data.classes)))
    notes: list[str] = []
    for kind in AFTERWARDS:
        for strength in plan.interventions.get(kind, ()):
            for seed in plan.seeds:
                base = outputs[Job(BASELINE, None, seed)].validation
                probs, warned = _cross_fitted(kind, strength, base, data.validation.labels)
                notes += [note for note in warned if note not in notes]
                preds = of_probs(probs, data.validation, data.classes)
                tried.append(_judged(Job(kind, strength, seed), preds))
    means = _means(tried)
    floor = means[BASELINE, None][1] - plan.accuracy_loss
    strengths: dict[str, Strength] = {BASELINE: None}
    for kind, asked in plan.interventions.items():
        kept = [s for s in asked if means[kind, s][1] >= floor]
        if kept:
            strengths[kind] = min(kept, key=lambda s: means[kind, s][0])
        else:
            strengths[kind] = max(asked, key=lambda s: means[kind, s][1])
            notes.append(
                f"no strength of {kind} keeps the accuracy within {plan.accuracy_loss:g} of the base model's on the "
                f"validation rows; {strengths[kind]} loses least and was taken"
            )
    return Choice(strengths, tuple(tried), tuple(notes))


def recalibrated(kind: str, strength: Strength, learn: Logits, labels: NDArray[np.int64], apply: Logits) -> Any:
    """Probabilities for `apply` by a recalibrator fitted to `learn`, and its warnings in words."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TruecalWarning)
        fitted = _MAKERS[kind](strength).fit(learn, labels)
    return fitted.predict_proba(apply), [f"{kind}: {w.message}" for w in caught]


def of_logits(logits: Logits, part: Part, classes: tuple[object, ...]) -> tc.Predictions:
    return tc.Predictions.from_logits(logits.astype(np.float64), _names(part, classes), classes=classes)


def of_probs(probs: Any, part: Part, classes: tuple[object, ...]) -> tc.Predictions:
    return tc.Predictions.from_probs(probs, _names(part, classes), classes=classes)


def _names(part: Part, classes: tuple[object, ...]) -> NDArray[Any]:
    return np.array(classes)[part.labels]


def _cross_fitted(kind: str, strength: Strength, logits: Logits, labels: NDArray[np.int64]) -> Any:
    """Halves are cut, not drawn: versions of one original are neighbours and stay on one side."""
    middle = len(labels) // 2
    first, second = slice(0, middle), slice(middle, None)
    later, warned = recalibrated(kind, strength, logits[first], labels[first], logits[second])
    sooner, also = recalibrated(kind, strength, logits[second], labels[second], logits[first])
    return np.concatenate((sooner, later)), warned + also


def _judged(job: Job, preds: tc.Predictions) -> Tried:
    return Tried(job.kind, job.strength, job.seed, float(TRADITIONAL(preds)), tc.scores.accuracy(preds))


def _means(tried: list[Tried]) -> dict[tuple[str, Strength], tuple[float, float]]:
    """Error and accuracy of each strength, averaged over the seeds."""
    together: dict[tuple[str, Strength], list[Tried]] = {}
    for one in tried:
        together.setdefault((one.intervention, one.strength), []).append(one)
    return {
        key: (float(np.mean([t.error for t in group])), float(np.mean([t.accuracy for t in group])))
        for key, group in together.items()
    }
