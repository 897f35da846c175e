"""Instances of HELM: `per_instance_stats.json` or `display_predictions.json`, one object per instance and trial.

The confidence is the statistic `max_prob`; right or wrong is `exact_match` or the nearest statistic to it that is there. Perturbed
copies and trials of one instance answer the same question.
"""

from pathlib import Path
from typing import Any

from truecal.errors import InputError
from truecal.predictions.readers.evals.answers import Answer, EvalLog, truth_of

_RIGHT = ("exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match")


def is_helm(value: object) -> bool:
    """Whether a JSON value is such a file."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(row, dict) and row.keys() >= {"instance_id", "stats"} for row in value)
    )


def helm_log(file: Path, value: list[dict[str, Any]]) -> EvalLog:
    """The answers of a file."""
    answers = []
    for row in value:
        stats = _stats(row["stats"])
        right = next((truth_of(stats[name]) for name in _RIGHT if name in stats), None)
        answers.append(
            Answer(str(row["instance_id"]), stats.get("max_prob"), right, repeat=int(row.get("train_trial_index") or 0))
        )
    if all(answer.confidence is None for answer in answers):
        raise InputError(
            f"{file} holds no statistic max_prob; per_instance_stats.json of a run with probabilities has it"
        )
    return EvalLog("HELM instances", "max_prob", tuple(answers))


def _stats(held: Any) -> dict[str, Any]:
    """Statistics by name: already so, or as a list of objects with a name and a mean."""
    if isinstance(held, dict):
        return held
    return {str((stat["name"] or {}).get("name")): stat.get("mean") for stat in held if isinstance(stat, dict)}
