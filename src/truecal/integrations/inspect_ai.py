"""A calibration metric for Inspect: `@scorer(metrics=[accuracy(), calibration_error()])`.

Inspect finds the metric by its entry point, so that `recompute_metrics` works on logs of other processes. The scorer puts the
confidence of an answer into the metadata of its score, as Score(value=CORRECT, metadata={"confidence": 0.9}).
"""

from collections.abc import Callable, Sequence
from typing import Any

import truecal as tc
from truecal.errors import InputError, MissingExtraError
from truecal.integrations.tracking import estimate_numbers

try:
    from inspect_ai.scorer import metric
except ImportError as error:
    raise MissingExtraError("this needs inspect-ai; install it with: pip install inspect-ai") from error

_RIGHT, _WRONG = ("C", 1, 1.0, True), ("I", 0, 0.0, False)


@metric(name="truecal/calibration_error")  # type: ignore[untyped-decorator]
def calibration_error(confidence: str = "confidence") -> Callable[[Sequence[Any]], dict[str, float]]:
    """Measure the error of the confidence with its 95 % interval, and count the scores that cannot be judged.

    Parameters
    ----------
    confidence : str, default "confidence"
        Name of the confidence in the metadata of a score.

    Returns
    -------
    Metric
        `calibration_error`, `low`, `high`, `p_value`, and `unjudged`, the number of scores without a confidence or neither right
        nor wrong. Several scores of one sample (epochs that are not reduced) are one cluster.

    Raises
    ------
    InputError
        No score has a confidence and is right or wrong.
    """

    def compute(scores: Sequence[Any]) -> dict[str, float]:
        """Estimate the error of the scores that have a confidence and are right or wrong; refuse if there are none.

        Returns calibration_error, low, high, p_value and "unjudged", the number of the others. Several scores of one sample are a
        cluster.
        """
        answers = [
            (float(item.score.metadata[confidence]), item.score.value in _RIGHT, str(item.sample_id))
            for item in scores
            if item.score.value in (*_RIGHT, *_WRONG) and (item.score.metadata or {}).get(confidence) is not None
        ]
        if not answers:
            raise InputError(
                f"no score has {confidence!r} in its metadata and is right or wrong; see Score(metadata=...)"
            )
        stated, correct, samples = zip(*answers, strict=True)
        clusters = samples if len(set(samples)) < len(samples) else None
        estimate = tc.measure(tc.Predictions.from_answers(stated, correct, clusters=clusters))
        return {**estimate_numbers(estimate, "calibration_error"), "unjudged": float(len(scores) - len(answers))}

    return compute
