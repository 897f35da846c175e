"""Evaluation logs of lm-eval, Inspect, HELM, promptfoo and DeepEval as rows."""

import json
import math
import re
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truecal.errors import FileError, InputError, extra
from truecal.predictions.files import damaged_zip, kind_of, read_json, read_lines, refuse_large_archive, unpacked

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

# ----------------------------------------------------------------------------------------------------
# The rows that every evaluation log is turned into

HUMAN_KEYS = ("human", "human_label", "human_score", "human_verdict", "human_correct")
CONFIDENCE_KEYS = ("confidence", "p_true", "p_correct", "stated_confidence", "prob", "probability", "max_prob")


@dataclass(frozen=True)
class LoggedAnswer:
    """One answer to one question. `confidence`, `correct` and the verdict of a person are None where the log does not say."""

    question: str
    confidence: float | str | None
    correct: bool | None
    task: str = ""
    model: str = ""
    repeat: int = 0
    human: bool | None = None


@dataclass(frozen=True)
class EvalLog:
    """Answers, what kind of log they come from, and what the confidence is, in words."""

    kind: str
    confidence: str
    answers: tuple[LoggedAnswer, ...]

    @property
    def repeated(self) -> bool:
        """Whether some question has several answers, which are then not independent."""
        return len({(answer.task, answer.question) for answer in self.answers}) < len(self.answers)

    @property
    def checked(self) -> int:
        """How many answers a person checked; the log's own verdicts are then those of a judge."""
        return sum(answer.human is not None for answer in self.answers)

    def frame(self) -> Any:
        """Return one row per answer: question, confidence, correct, task, model, repeat, and judge if people checked answers."""
        pl = extra("polars")
        verdicts = [None if a.correct is None else int(a.correct) for a in self.answers]
        people = [None if a.human is None else int(a.human) for a in self.answers]
        columns: dict[str, Sequence[object]] = {
            "question": [f"{a.task}/{a.question}" if a.task else a.question for a in self.answers],
            "confidence": [a.confidence for a in self.answers],
            "correct": people if self.checked else verdicts,
            **({"judge": verdicts} if self.checked else {}),
            "task": [a.task for a in self.answers],
            "model": [a.model for a in self.answers],
            "repeat": [a.repeat for a in self.answers],
        }
        return pl.DataFrame(columns, strict=False)

    def notes(self) -> tuple[str, ...]:
        """Count what is missing, in words."""
        silent = sum(answer.confidence is None for answer in self.answers)
        unscored = sum(answer.correct is None for answer in self.answers)
        total = f"of {len(self.answers)} answers"
        return (
            *([f"{silent} {total} state no confidence"] if silent else []),
            *([f"{unscored} {total} have no score of right or wrong"] if unscored else []),
            *([f"a person checked {self.checked} {total}; the log's own score is the judge"] if self.checked else []),
        )

    def describe(self) -> str:
        """Describe what was read."""
        questions = len({(answer.task, answer.question) for answer in self.answers})
        several = f", {questions} questions as clusters" if self.repeated else ""
        return f"{self.kind}: confidence {self.confidence}{several}"


def truth_of(value: object) -> bool | None:
    """Return whether a score means correct or wrong; None if it is neither.

    >>> truth_of("C"), truth_of("I"), truth_of(1.0), truth_of(0.5)
    (True, False, True, None)
    """
    if isinstance(value, str):
        word = value.strip().upper()
        if word in ("C", "CORRECT", "TRUE", "YES", "1", "1.0"):
            return True
        return False if word in ("I", "INCORRECT", "FALSE", "NO", "0", "0.0") else None
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    return None


def first_of(keys: Sequence[str], *mappings: Any) -> Any:
    """Return the first value that is there under one of the keys, in one of several mappings."""
    present = [mapping for mapping in mappings if isinstance(mapping, dict)]
    return next((mapping[key] for mapping in present for key in keys if mapping.get(key) is not None), None)


def graded_answer(question: str, verdicts: dict[str, Any], *metadata: Any, **origin: Any) -> LoggedAnswer:
    """Build an answer from verdicts by the name of who gave them: people's names begin with "human".

    The confidence, and where no person is among the verdicts that of a person, are looked for in the metadata.
    """
    people = [value for name, value in verdicts.items() if name.lower().startswith("human")]
    others = [value for name, value in verdicts.items() if not name.lower().startswith("human")]
    human = truth_of(people[0] if people else first_of(HUMAN_KEYS, *metadata))
    judgements = [truth_of(value) for value in others]
    correct = None if not judgements or None in judgements else all(judgements)
    return LoggedAnswer(question, first_of(CONFIDENCE_KEYS, *metadata), correct, human=human, **origin)


# ----------------------------------------------------------------------------------------------------
# Results of promptfoo (`promptfoo eval -o results.json`) and of DeepEval (`DEEPEVAL_RESULTS_FOLDER`)

_NOT_ABOUT_THE_ANSWER = ("cost", "latency")  # assertions of promptfoo


def is_promptfoo(value: object) -> bool:
    """Whether a JSON value is an export of promptfoo."""
    results = value.get("results") if isinstance(value, dict) else None
    return isinstance(results, dict) and isinstance(results.get("results"), list) and "prompts" in results


def promptfoo_log(value: dict[str, Any]) -> EvalLog:
    """Read the answers of an export: correct if all assertions hold but those about cost and latency."""
    answers = []
    for row in value["results"]["results"]:
        parts = (row.get("gradingResult") or {}).get("componentResults") or []
        kinds = [((part.get("assertion") or {}).get("type", ""), part["pass"]) for part in parts]
        kinds = [(kind, passed) for kind, passed in kinds if kind not in _NOT_ABOUT_THE_ANSWER]
        # Names are made unique: a person's verdict is the assertion `human`, others may occur several times.
        verdicts = {f"{kind} {i}": passed for i, (kind, passed) in enumerate(kinds)} or {"success": row["success"]}
        output = (row.get("response") or {}).get("output")
        metadata = row.get("metadata"), row.get("namedScores"), output, (row.get("testCase") or {}).get("metadata")
        model = str((row.get("provider") or {}).get("id", ""))
        answers.append(graded_answer(str(row.get("testIdx")), verdicts, *metadata, model=model))
    return EvalLog("promptfoo results", "of the metadata, named scores or JSON output", tuple(answers))


def is_deepeval(value: object) -> bool:
    """Whether a JSON value is a test run of DeepEval, or its file of the latest run."""
    return isinstance(value, dict) and isinstance(value.get("testRunData", value).get("testCases"), list)


def deepeval_log(value: dict[str, Any]) -> EvalLog:
    """Read the answers of a test run: correct if all metrics succeeded."""
    answers = []
    for case in value.get("testRunData", value)["testCases"]:
        verdicts = {f"{m['name']} {i}": m.get("success") for i, m in enumerate(case.get("metricsData") or [])}
        metadata = case.get("metadata"), case.get("additionalMetadata")
        answers.append(graded_answer(str(case["input"]), verdicts or {"success": case.get("success")}, *metadata))
    return EvalLog("DeepEval test run", "of the metadata", tuple(answers))


# ----------------------------------------------------------------------------------------------------
# Instances of HELM: `per_instance_stats.json` or `display_predictions.json`, one object per instance and trial

_RIGHT = ("exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match")


def is_helm(value: object) -> bool:
    """Whether a JSON value is such a file."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(row, dict) and row.keys() >= {"instance_id", "stats"} for row in value)
    )


def helm_log(file: Path, value: list[dict[str, Any]]) -> EvalLog:
    """Read the answers of a file of HELM."""
    answers = []
    for row in value:
        stats = _stats(row["stats"])
        right = next((truth_of(stats[name]) for name in _RIGHT if name in stats), None)
        answers.append(
            LoggedAnswer(
                str(row["instance_id"]), stats.get("max_prob"), right, repeat=int(row.get("train_trial_index") or 0)
            )
        )
    if all(answer.confidence is None for answer in answers):
        raise InputError(
            f"{file} holds no statistic max_prob; per_instance_stats.json of a run with probabilities has it"
        )
    return EvalLog("HELM instances", "max_prob", tuple(answers))


def _stats(stats: Any) -> dict[str, Any]:
    """Statistics by name: already so, or as a list of objects with a name and a mean."""
    if isinstance(stats, dict):
        return stats
    return {str((stat["name"] or {}).get("name")): stat.get("mean") for stat in stats if isinstance(stat, dict)}


# ----------------------------------------------------------------------------------------------------
# Logs of Inspect: `.eval` (a zip of JSON files) or `.json`

_ZSTD = 93  # compression method of the zip format that the standard library reads only from Python 3.14 on
_LOCAL_HEADER = struct.Struct("<26xHH")  # ... length of the name, length of the extra field


def is_inspect(value: object) -> bool:
    """Whether a JSON value is such a log."""
    return isinstance(value, dict) and isinstance(value.get("eval"), dict) and isinstance(value.get("samples"), list)


def inspect_archive(file: Path) -> EvalLog:
    """Read the answers of an `.eval` file."""
    from zipfile import ZipFile

    try:
        refuse_large_archive(file)
        with ZipFile(file) as archive:
            members = {info.filename: info for info in archive.infolist()}
            header = members.get("header.json") or members.get("_journal/start.json")
            samples = [info for name, info in members.items() if name.startswith("samples/")]
            if header is None or not samples:
                raise FileError(f"{file} is not an Inspect log: it holds no samples")
            evaluation = json.loads(_member(file, archive, header))["eval"]
            values = [json.loads(_member(file, archive, info)) for info in samples]
    except damaged_zip() as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{file} is damaged or not an Inspect log") from error
    return inspect_log({"eval": evaluation, "samples": values})


def inspect_log(value: dict[str, Any]) -> EvalLog:
    """Read the answers of a log of Inspect in JSON."""
    evaluation = value["eval"]
    task, model = str(evaluation.get("task", "")), str(evaluation.get("model", ""))
    answers = tuple(_answer(sample, task, model) for sample in value["samples"])
    scorers = [name for sample in value["samples"] for name in (sample.get("scores") or {})]
    by = f" (scorer {scorers[0]!r})" if len(set(scorers)) > 1 else ""
    return EvalLog("Inspect log", f"of the metadata{by}", answers)


def _answer(sample: dict[str, Any], task: str, model: str) -> LoggedAnswer:
    """Read the answer of a sample: the first scorer judges it, and one whose name begins with "human" is a person."""
    scores = {name: score or {} for name, score in (sample.get("scores") or {}).items()}
    judges = [name for name in scores if not name.lower().startswith("human")][:1]
    people = [name for name in scores if name not in judges and name.lower().startswith("human")][:1]
    metadata = [scores[name].get("metadata") for name in (*judges, *people)]
    verdicts = {name: scores[name].get("value") for name in (*judges, *people)}
    origin = {"task": task, "model": model, "repeat": int(sample.get("epoch", 1))}
    return graded_answer(str(sample["id"]), verdicts, *metadata, sample.get("metadata"), **origin)


def _member(file: Path, archive: "ZipFile", info: "ZipInfo") -> bytes:
    """Return the bytes of one member of an archive, also if it is packed by zstd."""
    if info.compress_type != _ZSTD:
        return archive.read(info)
    with file.open("rb") as opened:
        opened.seek(info.header_offset)
        name, extra = _LOCAL_HEADER.unpack(opened.read(_LOCAL_HEADER.size))
        opened.seek(name + extra, 1)
        return unpacked(opened.read(info.compress_size), file)


# ----------------------------------------------------------------------------------------------------
# Samples of the lm-evaluation-harness (`--log_samples`): samples_<task>_<time>.jsonl, one object per document

_KEYS = {"doc_id", "doc", "target", "filtered_resps"}
_SAMPLES = re.compile(r"samples_(?P<task>.+?)_(?P<time>\d{4}-\d\d-\d\dT.*?)\.jsonl")
_SCORES = ("exact_match", "acc", "acc_norm", "em", "correct")


def is_lm_eval(first: object) -> bool:
    """Whether an object is a document of such a file."""
    return isinstance(first, dict) and first.keys() >= _KEYS


def lm_eval_log(file: Path, documents: list[Any], preset: str | None) -> EvalLog:
    """Read the answers of a file of samples of lm-eval."""
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
    """Whether responses are log-probabilities of options: several pairs."""
    return (
        isinstance(responses, list)
        and len(responses) > 1
        and all(isinstance(r, list) and len(r) == 2 for r in responses)
    )


def _of_options(document: dict[str, Any], task: str, model: str, per_character: bool) -> LoggedAnswer:
    """Return the most probable option of a document, with its softmax probability as confidence."""
    logs = [float(response[0]) for response in document["filtered_resps"]]
    if per_character:
        lengths = _lengths(document, len(logs))
        logs = [log / lengths[i] for i, log in enumerate(logs)]
    top = max(range(len(logs)), key=logs.__getitem__)
    total = sum(math.exp(log - logs[top]) for log in logs)
    target = str(document["target"])
    right = truth_of(document.get("acc_norm" if per_character else "acc"))
    correct = int(target) == top if target.isdigit() and int(target) < len(logs) else right
    return LoggedAnswer(str(document["doc_id"]), 1 / total, correct, task, model)


def _lengths(document: dict[str, Any], count: int) -> list[float]:
    """Count the characters of each option, without the space that joins question and option."""
    requests = document.get("arguments")
    arguments = list(requests.values()) if isinstance(requests, dict) else requests
    if not isinstance(arguments, list) or len(arguments) != count:
        raise InputError(f"document {document['doc_id']} does not hold its options, whose lengths acc_norm divides by")
    texts = [str(a["arg_1"] if isinstance(a, dict) else a[1]) for a in arguments]
    return [float(max(len(text.removeprefix(" ")), 1)) for text in texts]


def _texts(document: dict[str, Any]) -> list[str]:
    """Return the texts of all responses to a document."""
    responses = document.get("resps") or document["filtered_resps"]
    flat = [text for response in responses for text in (response if isinstance(response, list) else [response])]
    return [str(text).strip() for text in flat]


def _of_repeats(document: dict[str, Any], task: str, model: str) -> LoggedAnswer:
    """Return the most frequent of repeated answers to a document, with its share as confidence."""
    texts = _texts(document)
    commonest, count = Counter(texts).most_common()[0]
    first = texts[0] == commonest
    score = next((truth_of(document[name]) for name in _SCORES if name in document), None)
    correct = score if first else commonest == str(document["target"]).strip()
    return LoggedAnswer(str(document["doc_id"]), count / len(texts), correct, task, model)


def _origin(file: Path) -> tuple[str, str]:
    """Return task and model, from the name of the file and the results_<time>.json beside it; empty if unknown."""
    match = _SAMPLES.match(file.name)
    if match is None:
        return "", ""
    results = file.with_name(f"results_{match['time']}.json")
    results_content = read_json(results) if results.is_file() else {}
    is_object = isinstance(results_content, dict)
    model = (
        str(results_content.get("model_name") or results_content.get("config", {}).get("model", ""))
        if is_object
        else ""
    )
    return match["task"], model


# ----------------------------------------------------------------------------------------------------
# Three kinds of confidence in a table of answers: stated, of the options, and agreement among samples

PRESETS = ("stated", "options", "options-per-character", "agreement")
_OPTIONS = ("logprobs", "logprob", "option_logprobs", "loglikelihoods", "log_likelihoods")
_TARGETS = ("target", "gold", "label", "truth", "answer_key")
_QUESTIONS = ("question_id", "question", "doc_id", "id", "qid", "sample_id")
_ANSWERS = ("answer", "response", "prediction", "parsed_answer")


def preset_table(frame: Any, preset: str) -> tuple[Any, str]:
    """Add columns `confidence` and `correct` to a polars frame by a preset; return also the confidence in words.

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
    """Replace log-probabilities of options and the target by confidence and correctness of the most probable option."""
    import numpy as np
    import polars as pl

    options, target = _one_of(frame, _OPTIONS, "log-probabilities of options"), _one_of(frame, _TARGETS, "the target")
    confidence, correct = [], []
    for option_values, true in frame.select(options, target).iter_rows():
        pairs = list(option_values.items()) if isinstance(option_values, dict) else list(enumerate(option_values))
        pairs = [(name, value) for name, value in pairs if value is not None]
        logs = np.array([value for _, value in pairs], float)
        top = int(logs.argmax())
        confidence.append(float(1 / np.exp(logs - logs[top]).sum()))
        correct.append(int(str(pairs[top][0]) == str(true)))
    return frame.drop(options, target).with_columns(pl.Series("confidence", confidence), pl.Series("correct", correct))


def _from_agreement(frame: Any) -> Any:
    """Reduce repeated answers to the most frequent one per question, with its share as confidence."""
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
    """Return the first column with one of these names; `what` says in the refusal what it should hold."""
    matches = [name for name in frame.columns if name.lower() in names]
    if not matches:
        raise InputError(
            f"no column holds {what}; name it one of {', '.join(names)} (columns: {', '.join(frame.columns)})"
        )
    return str(matches[0])


# ----------------------------------------------------------------------------------------------------
# Which evaluation log a file is, and its rows


def eval_log(file: Path, preset: str | None = None) -> EvalLog | None:
    """Read the log in a file; None if it holds something else."""
    try:
        return _log(file, preset)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise FileError(f"{file}: an answer of this evaluation log is not as its tool writes it: {reason}") from error


def _log(file: Path, preset: str | None) -> EvalLog | None:
    """Read a file as the evaluation log that its content shows; None if it shows none."""
    kind = kind_of(file)
    if kind == "eval":
        return inspect_archive(file)
    if kind == "ndjson":
        first = next(read_lines(file), None)
        return lm_eval_log(file, list(read_lines(file)), preset) if is_lm_eval(first) else None
    if kind != "json":
        return None
    value: Any = read_json(file)
    if is_inspect(value):
        return inspect_log(value)
    if is_promptfoo(value):
        return promptfoo_log(value)
    if is_deepeval(value):
        return deepeval_log(value)
    return helm_log(file, value) if is_helm(value) else None
