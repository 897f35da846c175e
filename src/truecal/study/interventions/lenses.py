"""One model's test predictions under every lens of Kirchenbauer, Oaks & Heim (2022), as tidy numbers.

Beside each error stands what it would be for a calibrated model with the same outputs (labels drawn from the outputs): a binned
error is never 0, and an error among the rows of one label is large even then.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

import truecal as tc
from truecal import breakdown
from truecal.study.interventions.choice import TRADITIONAL
from truecal.study.interventions.config import LensPlan


@dataclass(frozen=True)
class Number:
    """One number: `lens` and `selection` say what was judged, `metric` how; `n` is the number of rows."""

    lens: str
    selection: str
    metric: str
    value: float
    n: int
    if_calibrated: float | None = None


def numbers(preds: tc.Predictions, plan: LensPlan, *, seed: int = 0) -> list[Number]:
    """Every number of one model; `seed` draws the labels of the calibrated twin."""
    drawn = np.random.default_rng(seed).random((len(preds), 1))
    labels = (preds.probs.cumsum(axis=1) < drawn).sum(axis=1).clip(0, preds.class_count - 1)
    twin = {
        (o.lens, o.selection, o.metric): o.value
        for o in _errors(replace(preds, labels=labels), plan)
        if o.metric != "share"
    }
    errors = [replace(o, if_calibrated=twin.get((o.lens, o.selection, o.metric))) for o in _errors(preds, plan)]
    return errors + list(_facts(preds, plan))


def _errors(preds: tc.Predictions, plan: LensPlan) -> Iterator[Number]:
    n = len(preds)
    judge = tc.GeneralizedECE(binning=tc.KDTree(plan.gamma), level=None)
    yield Number("traditional", "all", "error", float(TRADITIONAL(preds)), n)
    for k in _ks(preds, plan):
        yield Number(f"top-{k}", "all", "error", float(replace(judge, lens=tc.TopK(k))(preds)), n)
    yield Number("full", "all", "error", float(judge(preds)), n)
    for i, (name, groups) in enumerate(plan.groupings.items()):
        grouped = tc.Grouping(groups).predictions(preds)
        yield Number(f"groups {name}", "all", "error", float(judge(grouped)), n)
        for group in groups if i == 0 else ():
            yield from _among(judge, grouped, group, f"groups {name}")
    for label in plan.labels:
        yield from _among(judge, preds, label, "full")
    shown, of = _shown(preds, plan)
    report = tc.likert(shown, plan.likert, of=of, binning=tc.KDTree(plan.gamma), replicates=20)
    for category in report.categories:
        yield Number(f"likert {category.name}", "all", "share", category.share, n)
        for metric, error in (("inter-interval", category.inter_interval), ("total-variation", category.within)):
            if error is not None:
                yield Number(f"likert {category.name}", "all", metric, float(error), category.count)


def _among(judge: tc.GeneralizedECE, preds: tc.Predictions, label: object, lens: str) -> Iterator[Number]:
    selection = tc.by_label(label)
    count = int(selection.mask(preds).sum())
    if count:
        chosen: tc.Predictions = selection(preds)
        yield Number(lens, f"label {label}", "error", float(judge(chosen)), count)


def _facts(preds: tc.Predictions, plan: LensPlan) -> Iterator[Number]:
    n = len(preds)
    ks = _ks(preds, plan)
    top = tc.TopK(max(ks)).sample(preds)
    yield Number("top-1", "all", "accuracy", float((top.labels < 1).mean()), n)
    for k in ks:
        if k > 1:
            yield Number(f"top-{k}", "all", "accuracy", float((top.labels < k).mean()), n)
    for rank in range(1, top.probs.shape[1] + 1):
        yield Number(f"rank {rank}", "all", "confidence", float(top.probs[:, rank - 1].mean()), n)
    yield Number("full", "all", "entropy", float(breakdown.entropy(preds).mean()), n)
    yield Number("full", "all", "log loss", tc.scores.log_loss(preds), n)
    yield Number("full", "all", "brier", tc.scores.brier(preds), n)
    for name, groups in list(plan.groupings.items())[:1]:
        grouped = tc.Grouping(groups).predictions(preds)
        for given in groups:
            rows = tc.by_label(given).mask(grouped)
            if rows.any():
                for group, mean in zip(groups, grouped.probs[rows].mean(axis=0), strict=True):
                    yield Number(
                        f"groups {name}: {group}", f"label {given}", "confidence", float(mean), int(rows.sum())
                    )


def _ks(preds: tc.Predictions, plan: LensPlan) -> list[int]:
    """The k asked for, as far as there are classes."""
    return [k for k in plan.top_k if k <= preds.class_count]


def _shown(preds: tc.Predictions, plan: LensPlan) -> tuple[tc.Predictions, object]:
    """The output people are shown: the probability of a group, of a class, or of the predicted class."""
    first = next(iter(plan.groupings.values()), {})
    if plan.likert_of in first:
        return tc.Grouping(first).predictions(preds), plan.likert_of
    return preds, plan.likert_of
