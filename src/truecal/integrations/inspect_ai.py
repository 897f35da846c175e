"""A calibration metric for Inspect: `@scorer(metrics=[accuracy(), calibration_error()])`.

The scorer puts the confidence of an answer into the metadata of its score, as Score(value=CORRECT, metadata={"confidence": 0.9}).
"""

from collections.abc import Callable, Sequence
from typing import Any

import truecal as tc
from truecal.errors import InputError, MissingExtraError

_RIGHT, _WRONG = ("C", 1, 1.0, True), ("I", 0, 0.0, False)


def calibration_error(confidence: str = "confidence") -> Any:
    """Error of the confidence with its 95 % interval, and how many scores have no confidence or are neither right nor wrong.

    `confidence` is the name in the metadata of a score. Several scores of one sample (epochs that are not reduced) are one cluster.
    """
    try:
        from inspect_ai.scorer import metric
    except ImportError as error:
        raise MissingExtraError("this needs inspect-ai; install it with: pip install inspect-ai") from error
    return metric(name="truecal/calibration_error")(_metric)(confidence)


def _metric(confidence: str) -> Callable[[Sequence[Any]], dict[str, float]]:
    def compute(scores: Sequence[Any]) -> dict[str, float]:
        judged = [
            (float(held.score.metadata[confidence]), held.score.value in _RIGHT, str(held.sample_id))
            for held in scores
            if held.score.value in (*_RIGHT, *_WRONG) and (held.score.metadata or {}).get(confidence) is not None
        ]
        if not judged:
            raise InputError(
                f"no score has {confidence!r} in its metadata and is right or wrong; see Score(metadata=...)"
            )
        stated, correct, samples = zip(*judged, strict=True)
        clusters = samples if len(set(samples)) < len(samples) else None
        estimate = tc.measure(tc.Predictions.from_answers(stated, correct, clusters=clusters))
        assert estimate.interval is not None
        return {
            "calibration_error": float(estimate),
            "low": float(estimate.interval.low),
            "high": float(estimate.interval.high),
            "unjudged": float(len(scores) - len(judged)),
        }

    return compute
