"""A calibration metric for multiple-choice tasks of the lm-evaluation-harness, named in a task's YAML:

    process_results: !function truecal.integrations.lm_eval.process_results
    metric_list:
      - metric: acc
        aggregation: mean
        higher_is_better: true
      - metric: calibration_error
        aggregation: !function truecal.integrations.lm_eval.calibration_error
        higher_is_better: false

A task that is not to be changed can give its `brier_score` (or `likelihood`) this aggregation: its items are the same pairs.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import truecal as tc
from truecal.errors import InputError

_TARGETS = ("gold", "answer", "label", "target", "answerKey")


def process_results(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    """Return the items of a document for `acc` (1.0 or 0.0) and for `calibration_error` (right option, log-likelihoods).

    `results` holds for each option its log-likelihood and whether it is the greedy continuation, which is not used. Of options
    with equal log-likelihoods the first is the answer.

    >>> metrics = process_results({"answer": 1}, [(-2.0, False), (-0.5, True)])
    >>> metrics["acc"], metrics["calibration_error"]
    (1.0, (1, (-2.0, -0.5)))
    """
    logs = tuple(float(log) for log, _ in results)
    gold = _right_option(doc, len(logs))
    return {"acc": float(int(np.argmax(logs)) == gold), "calibration_error": (gold, logs)}


def calibration_error(items: Iterable[tuple[int, Sequence[float]]]) -> float:
    """Estimate the root-mean-square error of the confidence in the likeliest option.

    `items` are pairs of the index of the right option and one number per option. Numbers that are not negative and add up to 1
    are probabilities, as `brier_score` gives them; others are log-likelihoods, whose softmax is taken. No items are refused.

    >>> items = [(0, (-0.1, -2.4)), (1, (-0.1, -2.4))] * 100
    >>> round(calibration_error(items), 2)
    0.41
    """
    confidences, correct = [], []
    for gold, numbers in items:
        values = np.asarray(numbers, np.float64)
        if values.min() < 0 or abs(values.sum() - 1) > 1e-6:
            values = np.exp(values - values.max())
            values /= values.sum()
        confidences.append(float(values.max()))
        correct.append(int(np.argmax(values)) == gold)
    if not correct:
        raise InputError("there are no items to judge")
    return float(tc.measure(tc.Predictions.from_answers(confidences, correct)))


def _right_option(doc: Mapping[str, Any], options: int) -> int:
    """Return the index of the right option from the field gold, answer, label, target or answerKey, the first of these.

    It may be written as an index from 0, a letter (A is 0), or the text of a choice. Refuse a document without such a field,
    and an index that is not below the number `options`.

    >>> _right_option({"answer": "B", "choices": ["cat", "dog"]}, 2), _right_option({"gold": "dog", "choices": ["cat", "dog"]}, 2)
    (1, 1)
    """
    name = next((name for name in _TARGETS if name in doc), None)
    if name is None:
        raise InputError(
            f"the document names no answer; it has {', '.join(doc)}, and {', '.join(_TARGETS)} are looked for"
        )
    value = doc[name]
    choices = doc.get("choices", doc.get("options", ()))
    texts = list(choices.get("text", ()) if isinstance(choices, Mapping) else choices)
    if isinstance(value, str) and value in texts:
        return texts.index(value)
    if isinstance(value, str) and len(value) == 1 and value.isalpha():
        value = ord(value.upper()) - ord("A")
    if not str(value).isdigit() or int(value) >= options:
        raise InputError(f"the answer {value!r} in {name!r} is none of the {options} options")
    return int(value)
