"""One model's test predictions under every lens of Kirchenbauer, Oaks & Heim (2022), as tidy numbers.

Beside each error stands what it would be for a calibrated model with the same outputs (labels drawn from the outputs): a binned
error is never 0, and an error among the rows of one label is large even then.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

import truecal as tc
from truecal.groups import lower_ranks
from truecal.special import draw_labels
from truecal.study.interventions.models import TRADITIONAL
from truecal.study.interventions.plan import LensPlan


@dataclass(frozen=True)
class Number:
    """One number of a model: `lens` and `selection` say what was judged, `metric` how; `n` is the number of rows."""

    lens: str
    selection: str
    metric: str
    value: float
    n: int
    if_calibrated: float | None = None


def judge(preds: tc.Predictions, plan: LensPlan, *, seed: int = 0) -> list[Number]:
    """Compute every number of one model, and its value for labels drawn from the probabilities with `seed`."""
    labels = draw_labels(preds.probs, np.random.default_rng(seed))
    calibrated = replace(preds, labels=labels)
    if_calibrated = {
        (one.lens, one.selection, one.metric): one.value
        for one in (*_errors(calibrated, plan), *_facts(calibrated, plan))
        # shares, entropies and confidences over all rows are those of the outputs alone
        if one.selection != "all" or one.metric not in ("share", "entropy", "confidence")
    }
    return [
        replace(one, if_calibrated=if_calibrated.get((one.lens, one.selection, one.metric)))
        for one in (*_errors(preds, plan), *_facts(preds, plan))
    ]


def _errors(preds: tc.Predictions, plan: LensPlan) -> Iterator[Number]:
    """Yield the calibration errors under every lens of the plan."""
    n = len(preds)
    error = tc.GeneralizedECE(binning=tc.estimators.KDTree(plan.gamma), level=None)
    yield Number("traditional", "all", "error", float(TRADITIONAL(preds)), n)
    for k in _ks(preds, plan):
        yield Number(f"top-{k}", "all", "error", float(replace(error, lens=tc.TopK(k))(preds)), n)
    yield Number("full", "all", "error", float(error(preds)), n)
    for i, (name, groups) in enumerate(plan.groupings.items()):
        grouped = tc.Grouping(groups).predictions(preds)
        yield Number(f"groups {name}", "all", "error", float(error(grouped)), n)
        for group in groups if i == 0 else ():
            yield from _measure_label(error, grouped, group, f"groups {name}")
    for label in plan.labels:
        yield from _measure_label(error, preds, label, "full")
    judged_preds, of = _scaled_output(preds, plan)
    report = tc.likert(
        judged_preds, plan.likert, class_name=of, binning=tc.estimators.KDTree(plan.gamma), replicates=20
    )
    for category in report.categories:
        yield Number(f"likert {category.name}", "all", "share", category.share, n)
        for metric, value in (("inter-interval", category.inter_interval), ("total-variation", category.within)):
            if value is not None:
                yield Number(f"likert {category.name}", "all", metric, float(value), category.count)


def _measure_label(error: tc.GeneralizedECE, preds: tc.Predictions, label: object, lens: str) -> Iterator[Number]:
    """Yield the error among the rows of one label, if there are any."""
    if tc.by_label(label).mask(preds).any():
        rows: tc.Predictions = tc.by_label(label)(preds)
        yield Number(lens, f"label {label}", "error", float(error(rows)), len(rows))


def _facts(preds: tc.Predictions, plan: LensPlan) -> Iterator[Number]:
    """Yield accuracies, mean confidences, entropy and scores."""
    n = len(preds)
    ks = _ks(preds, plan)
    top = tc.TopK(max(ks)).sample(preds)
    for k in dict.fromkeys((1, *ks)):
        yield Number(f"top-{k}", "all", "accuracy", float((top.labels < k).mean()), n)
    for rank in range(1, top.probs.shape[1] + 1):
        yield Number(f"rank {rank}", "all", "confidence", float(top.probs[:, rank - 1].mean()), n)
    yield Number("full", "all", "entropy", float(lower_ranks.entropy(preds).mean()), n)
    yield Number("full", "all", "log loss", tc.scores.log_loss(preds), n)
    yield Number("full", "all", "brier", tc.scores.brier(preds), n)
    for name, groups in list(plan.groupings.items())[:1]:
        grouped = tc.Grouping(groups).predictions(preds)
        for label in groups:
            rows = tc.by_label(label).mask(grouped)
            if rows.any():
                for group, mean in zip(groups, grouped.probs[rows].mean(axis=0), strict=True):
                    yield Number(
                        f"groups {name}: {group}", f"label {label}", "confidence", float(mean), int(rows.sum())
                    )


def _ks(preds: tc.Predictions, plan: LensPlan) -> list[int]:
    """Return the k of the plan up to the number of classes."""
    return [k for k in plan.top_k if k <= preds.class_count]


def _scaled_output(preds: tc.Predictions, plan: LensPlan) -> tuple[tc.Predictions, object]:
    """Return predictions and the class (or group) whose probability is put on the answer scale; None is the predicted class."""
    first = next(iter(plan.groupings.values()), {})
    if plan.likert_of in first:
        return tc.Grouping(first).predictions(preds), plan.likert_of
    return preds, plan.likert_of
