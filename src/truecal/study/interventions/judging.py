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
    """One number of a model: the value of `metric` under `lens` on the n rows of `selection` ("all", or "label NAME").

    `if_calibrated` is its value for labels drawn from the outputs, None where labels do not matter.
    """

    lens: str
    selection: str
    metric: str
    value: float
    n: int
    if_calibrated: float | None = None


def judge(preds: tc.Predictions, plan: LensPlan, *, seed: int = 0) -> list[Number]:
    """Compute every number of one model, with its value for labels drawn from the probabilities (generator of `seed`).

    >>> plan = LensPlan()
    >>> preds = tc.Predictions.from_probs([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]] * 30, [1, 2] * 30)
    >>> [(number.metric, round(number.value, 3)) for number in judge(preds, plan) if number.metric == "accuracy"]
    [('accuracy', 0.5), ('accuracy', 0.5), ('accuracy', 1.0)]
    """
    drawn = replace(preds, labels=draw_labels(preds.probs, np.random.default_rng(seed)))
    if_calibrated = {
        (number.lens, number.selection, number.metric): number.value
        for number in (*_calibration_errors(drawn, plan), *_scores_and_confidences(drawn, plan))
        # shares, entropies and confidences over all rows are those of the outputs alone
        if number.selection != "all" or number.metric not in ("share", "entropy", "confidence")
    }
    return [
        replace(number, if_calibrated=if_calibrated.get((number.lens, number.selection, number.metric)))
        for number in (*_calibration_errors(preds, plan), *_scores_and_confidences(preds, plan))
    ]


def _calibration_errors(preds: tc.Predictions, plan: LensPlan) -> Iterator[Number]:
    """Yield the calibration errors under every lens of the plan: traditional, top k, full, groups, labels, Likert intervals.

    All but the traditional one are a GeneralizedECE with the bins of KDTree(gamma). Lenses are named "traditional", "top-k",
    "full", "groups NAME" and "likert WORD", selections "all" and "label NAME". Of a Likert interval there are the share of its
    rows and, where it has rows, "inter-interval" and "total-variation". Top k beyond the number of classes, and labels without
    rows, are left out.
    """
    n = len(preds)
    error = tc.GeneralizedECE(binning=tc.estimators.KDTree(plan.gamma), level=None)
    yield Number("traditional", "all", "error", float(TRADITIONAL(preds)), n)
    for k in (k for k in plan.top_k if k <= preds.class_count):
        yield Number(f"top-{k}", "all", "error", float(replace(error, lens=tc.TopK(k))(preds)), n)
    yield Number("full", "all", "error", float(error(preds)), n)
    by_label: list[tuple[tc.Predictions, object, str]] = []
    scaled = preds  # the outputs on the answer scale
    for i, (name, groups) in enumerate(plan.groupings.items()):
        grouped = tc.Grouping(groups).predictions(preds)
        yield Number(f"groups {name}", "all", "error", float(error(grouped)), n)
        if i == 0:
            by_label += [(grouped, group, f"groups {name}") for group in groups]
            scaled = grouped if plan.likert_of in groups else preds
    for outputs, label, lens in [*by_label, *((preds, label, "full") for label in plan.labels)]:
        if (mask := tc.by_label(label).mask(outputs)).any():
            rows: tc.Predictions = tc.by_label(label)(outputs)
            yield Number(lens, f"label {label}", "error", float(error(rows)), int(mask.sum()))
    report = tc.likert(
        scaled, plan.likert, class_name=plan.likert_of, binning=tc.estimators.KDTree(plan.gamma), replicates=20
    )
    for category in report.categories:
        yield Number(f"likert {category.name}", "all", "share", category.share, n)
        for metric, value in (("inter-interval", category.inter_interval), ("total-variation", category.within)):
            if value is not None:
                yield Number(f"likert {category.name}", "all", metric, float(value), category.count)


def _scores_and_confidences(preds: tc.Predictions, plan: LensPlan) -> Iterator[Number]:
    """Yield top-k accuracies, mean confidences by rank and of groups by label, mean entropy (nats), log loss and Brier score.

    k is 1 and those of the plan up to the number of classes; ranks go to the largest k. Groups are those of the first grouping:
    the mean probability of each group over the rows of each label (selection "label NAME"), where it has rows.
    """
    n = len(preds)
    ks = [1, *(k for k in plan.top_k if k <= preds.class_count)]
    top = tc.TopK(max(ks)).sample(preds)
    for k in dict.fromkeys(ks):
        yield Number(f"top-{k}", "all", "accuracy", float((top.labels < k).mean()), n)
    for rank, column in enumerate(top.probs.T, 1):
        yield Number(f"rank {rank}", "all", "confidence", float(column.mean()), n)
    yield Number("full", "all", "entropy", float(lower_ranks.entropy(preds).mean()), n)
    yield Number("full", "all", "log loss", tc.scores.log_loss(preds), n)
    yield Number("full", "all", "brier", tc.scores.brier(preds), n)
    for name, groups in list(plan.groupings.items())[:1]:
        grouped = tc.Grouping(groups).predictions(preds)
        masks = {label: tc.by_label(label).mask(grouped) for label in groups}
        for label, rows in ((label, mask) for label, mask in masks.items() if mask.any()):
            for group, mean in zip(groups, grouped.probs[rows].mean(axis=0), strict=True):
                yield Number(f"groups {name}: {group}", f"label {label}", "confidence", float(mean), int(rows.sum()))
