"""Three kinds of confidence in a table of answers: stated, of the options, and agreement among samples."""

from collections.abc import Sequence
from typing import Any

from truecal.errors import InputError

PRESETS = ("stated", "options", "options-per-character", "agreement")
_OPTIONS = ("logprobs", "logprob", "option_logprobs", "loglikelihoods", "log_likelihoods")
_TARGETS = ("target", "gold", "label", "truth", "answer_key")
_QUESTIONS = ("question_id", "question", "doc_id", "id", "qid", "sample_id")
_ANSWERS = ("answer", "response", "prediction", "parsed_answer")


def preset_table(frame: Any, preset: str) -> tuple[Any, str]:
    """A polars frame with columns `confidence` and `correct` by a preset, and the confidence in words.

    stated: as it is. options: the softmax over the log-probabilities of the options, against the target. agreement: one row per
    question, the share of its answers that equal the commonest one.
    """
    if preset == "stated":
        return frame, "as stated"
    if preset == "options":
        return _from_options(frame), "softmax of the options' log-probabilities"
    if preset == "agreement":
        return _from_agreement(frame), "agreement among the answers to a question"
    raise InputError(
        f"the preset {preset!r} is for lm-eval samples; a table of answers has stated, options or agreement"
    )


def _from_options(frame: Any) -> Any:
    import numpy as np
    import polars as pl

    options, target = _one_of(frame, _OPTIONS, "log-probabilities of options"), _one_of(frame, _TARGETS, "the target")
    confidence, correct = [], []
    for held, true in frame.select(options, target).iter_rows():
        pairs = list(held.items()) if isinstance(held, dict) else list(enumerate(held))
        pairs = [(name, value) for name, value in pairs if value is not None]
        logs = np.array([value for _, value in pairs], float)
        top = int(logs.argmax())
        confidence.append(float(1 / np.exp(logs - logs[top]).sum()))
        correct.append(int(str(pairs[top][0]) == str(true)))
    return frame.drop(options, target).with_columns(pl.Series("confidence", confidence), pl.Series("correct", correct))


def _from_agreement(frame: Any) -> Any:
    import polars as pl

    question, answer = _one_of(frame, _QUESTIONS, "the question"), _one_of(frame, _ANSWERS, "the answer")
    right = next((name for name in ("correct", "is_correct") if name in frame.columns), None)
    target = None if right else _one_of(frame, _TARGETS, "the target, or whether the answer is correct")
    keys = [question, *(["model"] if "model" in frame.columns else [])]
    truth = pl.col(right).cast(pl.Int64) if right else (pl.col(answer) == pl.col(str(target))).cast(pl.Int64)
    counted = (
        frame.with_columns(truth.alias("correct"))
        .group_by([*keys, answer], maintain_order=True)
        .agg(pl.len().alias("same"), pl.col("correct").first())
    )
    total = pl.col("same").sum().over(keys)
    shares = counted.with_columns((pl.col("same") / total).alias("confidence"))
    first = pl.all().sort_by("same", descending=True, maintain_order=True).first()
    return shares.group_by(keys, maintain_order=True).agg(first).drop("same")


def _one_of(frame: Any, names: Sequence[str], what: str) -> str:
    matches = [name for name in frame.columns if name.lower() in names]
    if not matches:
        raise InputError(
            f"no column holds {what}; name it one of {', '.join(names)} (columns: {', '.join(frame.columns)})"
        )
    return str(matches[0])
