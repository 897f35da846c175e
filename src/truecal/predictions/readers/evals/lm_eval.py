"""Samples of the lm-evaluation-harness (`--log_samples`): samples_<task>_<time>.jsonl, one object per document.

Multiple choice: `filtered_resps` holds [log-likelihood, is_greedy] per option, as text or numbers. The probability of an option is
the softmax over the log-likelihoods l_k (what the metric acc compares), or over l_k divided by the length of the option in
characters (acc_norm). The confidence is that of the likeliest option, and it is correct if that option is the target.
Generated answers: the answer is the first filtered response; its agreement is the share of the repeated responses that equal the
commonest one.
"""

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

from truecal.errors import InputError
from truecal.predictions.readers.evals.answers import Answer, EvalLog, truth_of
from truecal.predictions.readers.files import read_json

_KEYS = {"doc_id", "doc", "target", "filtered_resps"}
_SAMPLES = re.compile(r"samples_(?P<task>.+?)_(?P<time>\d{4}-\d\d-\d\dT.*?)\.jsonl")
_SCORES = ("exact_match", "acc", "acc_norm", "em", "correct")


def is_lm_eval(first: object) -> bool:
    """Whether an object is a document of such a file."""
    return isinstance(first, dict) and first.keys() >= _KEYS


def lm_eval_log(file: Path, documents: list[Any], preset: str | None) -> EvalLog:
    """The answers of a file of samples."""
    task, model = _origin(file)
    options = all(_is_options(document["filtered_resps"]) for document in documents)
    if preset is None:
        preset = "options" if options else "agreement"
    if preset in ("options", "options-per-character"):
        if not options:
            raise InputError(f"{file}: these samples are generated answers, not options; use preset='agreement'")
        per_character = preset != "options"
        words = "softmax of the options' log-likelihoods" + (" per character (acc_norm)" if per_character else " (acc)")
        answers = [_of_options(document, task, model, per_character) for document in documents]
        return EvalLog("lm-eval samples", words, tuple(answers))
    if preset == "agreement" and not options:
        answers = [_of_repeats(document, task, model) for document in documents]
        if all(len(_texts(document)) < 2 for document in documents):
            raise InputError(
                f"{file}: every document has one generated answer and no confidence; sample each several times (repeats), or "
                "log a confidence"
            )
        return EvalLog("lm-eval samples", "agreement among repeated answers", tuple(answers))
    raise InputError(
        f"{file}: the preset {preset!r} does not fit lm-eval samples of {'options' if options else 'answers'}"
    )


def _is_options(responses: object) -> bool:
    return (
        isinstance(responses, list)
        and len(responses) > 1
        and all(isinstance(r, list) and len(r) == 2 for r in responses)
    )


def _of_options(document: dict[str, Any], task: str, model: str, per_character: bool) -> Answer:
    logs = [float(response[0]) for response in document["filtered_resps"]]
    if per_character:
        lengths = _lengths(document, len(logs))
        logs = [log / lengths[i] for i, log in enumerate(logs)]
    top = max(range(len(logs)), key=logs.__getitem__)
    total = sum(math.exp(log - logs[top]) for log in logs)
    target = str(document["target"])
    right = truth_of(document.get("acc_norm" if per_character else "acc"))
    correct = int(target) == top if target.isdigit() and int(target) < len(logs) else right
    return Answer(str(document["doc_id"]), 1 / total, correct, task, model)


def _lengths(document: dict[str, Any], count: int) -> list[float]:
    """Characters of each option, from the arguments of the requests (without the space that joins question and option)."""
    held = document.get("arguments")
    arguments = list(held.values()) if isinstance(held, dict) else held
    if not isinstance(arguments, list) or len(arguments) != count:
        raise InputError(f"document {document['doc_id']} does not hold its options, whose lengths acc_norm divides by")
    texts = [str(a["arg_1"] if isinstance(a, dict) else a[1]) for a in arguments]
    return [float(max(len(text.removeprefix(" ")), 1)) for text in texts]


def _texts(document: dict[str, Any]) -> list[str]:
    responses = document.get("resps") or document["filtered_resps"]
    flat = [text for response in responses for text in (response if isinstance(response, list) else [response])]
    return [str(text).strip() for text in flat]


def _of_repeats(document: dict[str, Any], task: str, model: str) -> Answer:
    texts = _texts(document)
    commonest, count = Counter(texts).most_common()[0]
    first = texts[0] == commonest
    score = next((truth_of(document[name]) for name in _SCORES if name in document), None)
    correct = score if first else commonest == str(document["target"]).strip()
    return Answer(str(document["doc_id"]), count / len(texts), correct, task, model)


def _origin(file: Path) -> tuple[str, str]:
    """Task and model: from the name of the file, and from the results_<time>.json beside it."""
    match = _SAMPLES.match(file.name)
    if match is None:
        return "", ""
    results = file.with_name(f"results_{match['time']}.json")
    held = read_json(results) if results.is_file() else {}
    known = isinstance(held, dict)
    model = str(held.get("model_name") or held.get("config", {}).get("model", "")) if known else ""
    return match["task"], model
