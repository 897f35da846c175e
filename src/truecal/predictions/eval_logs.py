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
from truecal.predictions.files import (
    damaged_zip,
    kind_of,
    read_json,
    read_lines,
    refuse_json_values,
    refuse_large_archive,
    unpacked,
)

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

# ----------------------------------------------------------------------------------------------------
# The rows that every evaluation log is turned into

HUMAN_KEYS = ("human", "human_label", "human_score", "human_verdict", "human_correct")
CONFIDENCE_KEYS = ("confidence", "p_true", "p_correct", "stated_confidence", "prob", "probability", "max_prob")


@dataclass(frozen=True)
class LoggedAnswer:
    """One answer to one question.

    `confidence` is the logged number or text, `correct` the log's verdict, `human` a person's; None where the log does not say.
    `repeat` numbers the answers to one question; `task` and `model` are "" where unknown.
    """

    question: str
    confidence: float | str | None
    correct: bool | None
    task: str = ""
    model: str = ""
    repeat: int = 0
    human: bool | None = None


@dataclass(frozen=True)
class EvalLog:
    """Answers of one evaluation log, its `kind` ("Inspect log") and the source of the confidence ("max_prob") as text."""

    kind: str
    confidence: str
    answers: tuple[LoggedAnswer, ...]

    @property
    def questions(self) -> int:
        """Number of different pairs of task and question.

        >>> EvalLog("log", "stated", (LoggedAnswer("q1", 0.7, True), LoggedAnswer("q1", 0.6, False))).questions
        1
        """
        return len({(answer.task, answer.question) for answer in self.answers})

    @property
    def repeated(self) -> bool:
        """Whether some question has several answers, which are then not independent.

        >>> EvalLog("log", "stated", (LoggedAnswer("q1", 0.7, True), LoggedAnswer("q1", 0.6, False))).repeated
        True
        """
        return self.questions < len(self.answers)

    @property
    def checked(self) -> int:
        """How many answers a person checked; the log's own verdicts are then those of a judge.

        >>> EvalLog("log", "stated", (LoggedAnswer("q1", 0.7, True, human=False), LoggedAnswer("q2", 0.6, False))).checked
        1
        """
        return sum(answer.human is not None for answer in self.answers)

    def frame(self) -> Any:
        """Return a polars frame of one row per answer: question, confidence, correct (0, 1 or null), task, model, repeat.

        Questions of a task are named "task/question". If people checked answers, `correct` holds their verdicts (null where there
        is none) and `judge` those of the log.
        """
        pl = extra("polars")
        frame = pl.DataFrame([vars(answer) for answer in self.answers], infer_schema_length=None, strict=False)
        task, correct, human = pl.col("task"), *(pl.col(name).cast(pl.Int64) for name in ("correct", "human"))
        named = pl.when(task == "").then(pl.col("question")).otherwise(task + "/" + pl.col("question"))
        verdicts = {"correct": human, "judge": correct} if self.checked else {"correct": correct}
        return frame.with_columns(question=named, **verdicts).drop("human")

    def notes(self) -> tuple[str, ...]:
        """Return sentences such as "3 of 10 answers state no confidence"; also on answers without score, and checked by a person.

        There is none on a number of 0.

        >>> EvalLog("log", "stated", (LoggedAnswer("q1", None, True), LoggedAnswer("q2", 0.6, False))).notes()
        ('1 of 2 answers state no confidence',)
        """
        counts = {
            "{} state no confidence": sum(answer.confidence is None for answer in self.answers),
            "{} have no score of right or wrong": sum(answer.correct is None for answer in self.answers),
            "a person checked {}; the log's own score is the judge": self.checked,
        }
        return tuple(template.format(f"{n} of {len(self.answers)} answers") for template, n in counts.items() if n)

    def describe(self) -> str:
        """Return text such as "HELM instances: confidence max_prob, 40 questions as clusters".

        Clusters are named only where questions are repeated.

        >>> EvalLog("HELM instances", "max_prob", (LoggedAnswer("q1", 0.7, True),)).describe()
        'HELM instances: confidence max_prob'
        """
        clusters = f", {self.questions} questions as clusters" if self.repeated else ""
        return f"{self.kind}: confidence {self.confidence}{clusters}"


_TRUTH = dict.fromkeys(("C", "CORRECT", "TRUE", "YES", "1", "1.0"), True)
_TRUTH |= dict.fromkeys(("I", "INCORRECT", "FALSE", "NO", "0", "0.0"), False)


def truth_of(value: object) -> bool | None:
    """Return whether a score means correct (C, CORRECT, TRUE, YES, 1) or wrong (I, INCORRECT, FALSE, NO, 0); None if neither.

    >>> truth_of("C"), truth_of("I"), truth_of(1.0), truth_of(0.5)
    (True, False, True, None)
    """
    return _TRUTH.get(str(value).strip().upper())


def first_of(keys: Sequence[str], *mappings: Any) -> Any:
    """Return the first value other than None under one of the keys, mapping by mapping; None if there is none.

    What is not a dict among the mappings is skipped.

    >>> first_of(("p", "confidence"), None, {"p": None}, {"confidence": 0.7})
    0.7
    """
    present = [mapping for mapping in mappings if isinstance(mapping, dict)]
    return next((mapping[key] for mapping in present for key in keys if mapping.get(key) is not None), None)


def graded_answer(question: str, verdicts: dict[str, Any], *metadata: Any, **origin: Any) -> LoggedAnswer:
    """Build an answer from verdicts by the name of their source: a name that begins with "human" is a person.

    `correct` is whether all other verdicts are right, None if there are none or one is neither right nor wrong (`truth_of`). The
    confidence is the first value in `metadata` under one of CONFIDENCE_KEYS ("confidence", "p_true", ...); the verdict of a
    person is the first in `verdicts`, else in `metadata` under one of HUMAN_KEYS ("human", "human_label", ...). `origin` are
    further fields of the answer (task, model, repeat).

    >>> answer = graded_answer("q1", {"exact match": 1, "human": 0}, {"confidence": 0.7})
    >>> answer.correct, answer.human, answer.confidence
    (True, False, 0.7)
    """
    human_verdicts = [value for name, value in verdicts.items() if name.lower().startswith("human")]
    automatic_verdicts = [value for name, value in verdicts.items() if not name.lower().startswith("human")]
    human = truth_of(human_verdicts[0] if human_verdicts else first_of(HUMAN_KEYS, *metadata))
    judgements = [truth_of(value) for value in automatic_verdicts]
    correct = None if not judgements or None in judgements else all(judgements)
    return LoggedAnswer(question, first_of(CONFIDENCE_KEYS, *metadata), correct, human=human, **origin)


# ----------------------------------------------------------------------------------------------------
# Results of promptfoo (`promptfoo eval -o results.json`) and of DeepEval (`DEEPEVAL_RESULTS_FOLDER`)

_NOT_ABOUT_THE_ANSWER = ("cost", "latency")  # assertions of promptfoo


def promptfoo_log(value: Any) -> EvalLog | None:
    """Read the answers of an export {"results": {"prompts": ..., "results": [rows]}}; None if `value` is none.

    A row has "testIdx", the question, and is correct if all of gradingResult.componentResults "pass" whose assertion is not on
    cost or latency (without any, by its "success"). The confidence is in its "metadata", "namedScores" or JSON output.

    >>> row = {"testIdx": 0, "success": True, "metadata": {"confidence": 0.7}}
    >>> promptfoo_log({"results": {"prompts": [], "results": [row]}}).answers[0].correct, promptfoo_log([])
    (True, None)
    """
    results = value.get("results") if isinstance(value, dict) else None
    if not (isinstance(results, dict) and isinstance(results.get("results"), list) and "prompts" in results):
        return None
    answers = []
    for row in results["results"]:
        components = (row.get("gradingResult") or {}).get("componentResults") or []
        assertions = [((part.get("assertion") or {}).get("type", ""), part["pass"]) for part in components]
        assertions = [(kind, passed) for kind, passed in assertions if kind not in _NOT_ABOUT_THE_ANSWER]
        # Names are made unique: a person's verdict is the assertion `human`, others may occur several times.
        verdicts = {f"{kind} {i}": passed for i, (kind, passed) in enumerate(assertions)} or {"success": row["success"]}
        output = (row.get("response") or {}).get("output")
        metadata = row.get("metadata"), row.get("namedScores"), output, (row.get("testCase") or {}).get("metadata")
        model = str((row.get("provider") or {}).get("id", ""))
        answers.append(graded_answer(str(row.get("testIdx")), verdicts, *metadata, model=model))
    return EvalLog("promptfoo results", "of the metadata, named scores or JSON output", tuple(answers))


def deepeval_log(value: Any) -> EvalLog | None:
    """Read the answers of {"testCases": [cases]}, alone or under "testRunData"; None if `value` is neither.

    A case has "input", the question, and is correct if all of "metricsData" have "success" (without any, by its own). The
    confidence is in its "metadata" or "additionalMetadata".

    >>> case = {"input": "q1", "success": False, "metadata": {"confidence": 0.7}}
    >>> deepeval_log({"testCases": [case]}).answers[0].correct, deepeval_log({})
    (False, None)
    """
    cases = value.get("testRunData", value).get("testCases") if isinstance(value, dict) else None
    if not isinstance(cases, list):
        return None
    answers = []
    for case in cases:
        verdicts = {f"{m['name']} {i}": m.get("success") for i, m in enumerate(case.get("metricsData") or [])}
        metadata = case.get("metadata"), case.get("additionalMetadata")
        answers.append(graded_answer(str(case["input"]), verdicts or {"success": case.get("success")}, *metadata))
    return EvalLog("DeepEval test run", "of the metadata", tuple(answers))


# ----------------------------------------------------------------------------------------------------
# Instances of HELM: `per_instance_stats.json` or `display_predictions.json`, one object per instance and trial

_RIGHT = ("exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match")


def helm_log(value: Any) -> EvalLog | None:
    """Read the answers of a list of HELM instances, objects with "instance_id" and "stats"; None if `value` is none.

    The confidence is the statistic max_prob, which some instance must have; an answer is correct if its exact_match is 1, or
    without that its quasi_exact_match, prefix_exact_match or quasi_prefix_exact_match. "train_trial_index" numbers repeated
    answers.

    >>> instance = {"instance_id": "q1", "stats": {"max_prob": 0.7, "exact_match": 1}}
    >>> helm_log([instance]).answers[0].correct, helm_log([])
    (True, None)
    """
    keys = {"instance_id", "stats"}
    if (
        not isinstance(value, list)
        or not value
        or not all(isinstance(row, dict) and row.keys() >= keys for row in value)
    ):
        return None
    answers = []
    for row in value:
        stats = _stats_by_name(row["stats"])
        right = next((truth_of(stats[name]) for name in _RIGHT if name in stats), None)
        trial = int(row.get("train_trial_index") or 0)
        answers.append(LoggedAnswer(str(row["instance_id"]), stats.get("max_prob"), right, repeat=trial))
    if all(answer.confidence is None for answer in answers):
        raise InputError(
            "these HELM instances hold no statistic max_prob; per_instance_stats.json of a run with probabilities has it"
        )
    return EvalLog("HELM instances", "max_prob", tuple(answers))


def _stats_by_name(stats: Any) -> dict[str, Any]:
    """Return statistics by name, from a mapping (as it is) or a list of objects {"name": {"name": text}, "mean": number}.

    >>> _stats_by_name([{"name": {"name": "max_prob"}, "mean": 0.7}])
    {'max_prob': 0.7}
    """
    if isinstance(stats, dict):
        return stats
    return {str((stat["name"] or {}).get("name")): stat.get("mean") for stat in stats if isinstance(stat, dict)}


# ----------------------------------------------------------------------------------------------------
# Logs of Inspect: `.eval` (a zip of JSON files) or `.json`

_ZSTD = 93  # derived: the zip format's number of a compression that the standard library reads only from Python 3.14 on
_LOCAL_HEADER = struct.Struct("<26xHH")  # ... length of the name, length of the extra field


def read_archive(file: Path) -> dict[str, Any]:
    """Read an `.eval` file as {"eval": header, "samples": list}, the value of the same log in JSON."""
    from zipfile import ZipFile

    try:
        refuse_large_archive(file)
        with ZipFile(file) as archive:
            members = {info.filename: info for info in archive.infolist()}
            header = members.get("header.json") or members.get("_journal/start.json")
            samples = [info for name, info in members.items() if name.startswith("samples/")]
            if header is None or not samples:
                raise FileError(f"{file} is not an Inspect log: it holds no samples")
            contents = [_read_member(file, archive, info) for info in (header, *samples)]
        refuse_json_values(file, *contents)
        evaluation, *values = map(json.loads, contents)
        return {"eval": evaluation["eval"], "samples": values}
    except damaged_zip() as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{file} is damaged or not an Inspect log") from error


def inspect_log(value: Any) -> EvalLog | None:
    """Read the answers of a log of Inspect, {"eval": {"task", "model"}, "samples": [...]}; None if `value` is none.

    A sample has "id", "epoch" (the repeat), "scores": {scorer: {"value", "metadata"}} and "metadata".

    >>> sample = {"id": 1, "scores": {"match": {"value": "C", "metadata": {"confidence": 0.7}}}}
    >>> inspect_log({"eval": {"task": "qa"}, "samples": [sample]}).answers[0].correct
    True
    """
    evaluation, samples = (value.get("eval"), value.get("samples")) if isinstance(value, dict) else (None, None)
    if not isinstance(evaluation, dict) or not isinstance(samples, list):
        return None
    origin = {name: str(evaluation.get(name, "")) for name in ("task", "model")}
    answers = tuple(_inspect_answer(sample, **origin) for sample in samples)
    scorers = [name for sample in samples for name in (sample.get("scores") or {})]
    scorer_text = f" (scorer {scorers[0]!r})" if len(set(scorers)) > 1 else ""
    return EvalLog("Inspect log", f"of the metadata{scorer_text}", answers)


def _inspect_answer(sample: dict[str, Any], **origin: str) -> LoggedAnswer:
    """Read the answer of a sample: correct if the value of its first scorer is; one whose name begins with "human" is a person.

    `origin` gives task and model. The confidence is in the metadata of the scores, else of the sample.
    """
    scores = {name: score or {} for name, score in (sample.get("scores") or {}).items()}
    people = [name for name in scores if name.lower().startswith("human")]
    names = [*[name for name in scores if name not in people][:1], *people[:1]]
    verdicts = {name: scores[name].get("value") for name in names}
    metadata = [scores[name].get("metadata") for name in names]
    repeat = int(sample.get("epoch", 1))
    return graded_answer(str(sample["id"]), verdicts, *metadata, sample.get("metadata"), repeat=repeat, **origin)


def _read_member(file: Path, archive: "ZipFile", info: "ZipInfo") -> bytes:
    """Return the unpacked bytes of one member of an archive, also if it is packed by zstd."""
    if info.compress_type != _ZSTD:
        return archive.read(info)
    with file.open("rb") as opened:
        opened.seek(info.header_offset)
        name_length, extra_length = _LOCAL_HEADER.unpack(opened.read(_LOCAL_HEADER.size))
        opened.seek(name_length + extra_length, 1)
        content = unpacked(opened.read(info.compress_size), file)
    if len(content) != info.file_size:  # by which the archive was measured
        raise FileError(f"{file} is damaged: {info.filename} has another size than the archive says")
    return content


# ----------------------------------------------------------------------------------------------------
# Samples of the lm-evaluation-harness (`--log_samples`): samples_<task>_<time>.jsonl, one object per document

_KEYS = {"doc_id", "doc", "target", "filtered_resps"}
_SAMPLES = re.compile(r"samples_(?P<task>.+?)_(?P<time>\d{4}-\d\d-\d\dT.*?)\.jsonl")
_SCORES = ("exact_match", "acc", "acc_norm", "em", "correct")


def lm_eval_log(file: Path, documents: list[Any], preset: str | None) -> EvalLog:
    """Read the answers of the samples of lm-eval, objects with doc_id, target and filtered_resps; `file` gives task and model.

    The confidence by `preset`: softmax of the options' log-likelihoods ("options"), of these per character
    ("options-per-character"), or the share of the commonest answer ("agreement"). None takes options where all documents have
    them, else agreement. A verdict of a person is in the sample or its "doc", under one of HUMAN_KEYS. Refuses a preset that does
    not fit the documents, and agreement where no document has two answers.
    """
    task, model = _task_and_model(file)
    options = all(_is_options(document["filtered_resps"]) for document in documents)
    if preset is None:
        preset = "options" if options else "agreement"
    if preset in ("options", "options-per-character"):
        if not options:
            raise InputError(f"{file}: these samples are generated answers, not options; use preset='agreement'")
        per_character = preset != "options"
        confidence = "softmax of the options' log-likelihoods" + (
            " per character (acc_norm)" if per_character else " (acc)"
        )
        answers = [_answer_from_options(document, task, model, per_character) for document in documents]
        return EvalLog("lm-eval samples", confidence, tuple(answers))
    if preset == "agreement" and not options:
        answers = [_answer_from_repeats(document, task, model) for document in documents]
        if all(len(_response_texts(document)) < 2 for document in documents):
            raise InputError(
                f"{file}: every document has one generated answer and no confidence; sample each several times (repeats), or "
                "log a confidence"
            )
        return EvalLog("lm-eval samples", "agreement among repeated answers", tuple(answers))
    raise InputError(
        f"{file}: the preset {preset!r} does not fit lm-eval samples of {'options' if options else 'answers'}"
    )


def _is_options(responses: object) -> bool:
    """Whether responses are [log-likelihood, is greedy] of two or more options: a list of at least two lists of length 2.

    >>> _is_options([["-1.2", "True"], ["-2.3", "False"]]), _is_options(["a text"])
    (True, False)
    """
    return (
        isinstance(responses, list)
        and len(responses) > 1
        and all(isinstance(r, list) and len(r) == 2 for r in responses)
    )


def most_probable(log_probs: Sequence[float]) -> tuple[int, float]:
    """Return the position of the largest log-probability, the first of ties, and its softmax probability.

    >>> most_probable([-1.0, -1.0, -math.inf])  # the first of ties
    (0, 0.5)
    """
    top = max(range(len(log_probs)), key=log_probs.__getitem__)
    return top, 1 / sum(math.exp(log_prob - log_probs[top]) for log_prob in log_probs)


def _answer_from_options(document: dict[str, Any], task: str, model: str, per_character: bool) -> LoggedAnswer:
    """Return the most probable option of a document, with its softmax probability as confidence.

    `correct` compares its position with the target; where that is no position, it is the document's own score (acc, or acc_norm).

    >>> document = {"doc_id": 0, "target": "1", "filtered_resps": [["0.0", "False"], ["0.0", "True"]]}
    >>> answer = _answer_from_options(document, "qa", "", per_character=False)
    >>> answer.confidence, answer.correct  # the first of ties is position 0
    (0.5, False)
    """
    log_probs = [float(response[0]) for response in document["filtered_resps"]]
    if per_character:
        log_probs = [
            log_prob / length
            for log_prob, length in zip(log_probs, _option_lengths(document, len(log_probs)), strict=True)
        ]
    top, confidence = most_probable(log_probs)
    target = str(document["target"])
    score = truth_of(document.get("acc_norm" if per_character else "acc"))
    correct = int(target) == top if target.isdigit() and int(target) < len(log_probs) else score
    return LoggedAnswer(str(document["doc_id"]), confidence, correct, task, model, human=_human_verdict(document))


def _option_lengths(document: dict[str, Any], count: int) -> list[float]:
    """Count the characters of each of `count` options ("arg_1" of the document's arguments), less one space before; at least 1.

    Refuse a document whose arguments are missing or not `count`.

    >>> _option_lengths({"arguments": [["q", " cat"], ["q", "horse"]]}, 2)
    [3.0, 5.0]
    """
    requests = document.get("arguments")
    arguments = list(requests.values()) if isinstance(requests, dict) else requests
    if not isinstance(arguments, list) or len(arguments) != count:
        raise InputError(f"document {document['doc_id']} does not hold its options, whose lengths acc_norm divides by")
    texts = [str(a["arg_1"] if isinstance(a, dict) else a[1]) for a in arguments]
    return [float(max(len(text.removeprefix(" ")), 1)) for text in texts]


def _response_texts(document: dict[str, Any]) -> list[str]:
    """Return the texts of all responses to a document (resps, else filtered_resps) in one list, stripped of white space.

    >>> _response_texts({"resps": [["a ", "b"], ["a"]]})
    ['a', 'b', 'a']
    """
    responses = document.get("resps") or document["filtered_resps"]
    flat = [text for response in responses for text in (response if isinstance(response, list) else [response])]
    return [str(text).strip() for text in flat]


def _answer_from_repeats(document: dict[str, Any], task: str, model: str) -> LoggedAnswer:
    """Return the commonest of repeated answers to a document, with its share as confidence; of ties the one given first.

    `correct` is the document's score if that is of this answer (the first given), else whether it equals the target.

    >>> answer = _answer_from_repeats({"doc_id": 0, "target": "a", "resps": [["b", "a", "a", "c"]]}, "qa", "")
    >>> answer.confidence, answer.correct
    (0.5, True)
    """
    texts = _response_texts(document)
    commonest, count = Counter(texts).most_common()[0]
    is_first_answer = texts[0] == commonest
    score = next((truth_of(document[name]) for name in _SCORES if name in document), None)
    correct = score if is_first_answer else commonest == str(document["target"]).strip()
    return LoggedAnswer(
        str(document["doc_id"]), count / len(texts), correct, task, model, human=_human_verdict(document)
    )


def _human_verdict(document: dict[str, Any]) -> bool | None:
    """Return what a person said of the answer, under one of HUMAN_KEYS of the sample or of its "doc"; None where nobody did.

    >>> _human_verdict({"doc_id": 0, "human": 1}), _human_verdict({"doc": {"human_label": "no"}}), _human_verdict({})
    (True, False, None)
    """
    return truth_of(first_of(HUMAN_KEYS, document, document.get("doc")))


def _task_and_model(file: Path) -> tuple[str, str]:
    """Return task and model, from the name samples_<task>_<time>.jsonl and the file results_<time>.json beside it.

    The latter states "model_name" or "config": {"model"}. What is not known is "".

    >>> _task_and_model(Path("samples_arc_2026-05-01T12-00.jsonl")), _task_and_model(Path("other.jsonl"))
    (('arc', ''), ('', ''))
    """
    match = _SAMPLES.match(file.name)
    if match is None:
        return "", ""
    results = file.with_name(f"results_{match['time']}.json")
    content = read_json(results) if results.is_file() else {}
    if not isinstance(content, dict):
        return match["task"], ""
    model = str(content.get("model_name") or content.get("config", {}).get("model", ""))
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

    "stated" leaves the frame as it is, "options" takes the softmax over the log-probabilities of the options, against the target,
    "agreement" one row per question, the share of its answers that equal the commonest one. Other presets are refused.
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
    """Replace log-probabilities of options (lists or mappings) and the target by columns `confidence` and `correct` (0 or 1).

    They are those of the most probable option, whose position or name is compared with the target; options of null are left out.
    """
    import polars as pl

    options, target = (
        _find_column(frame, _OPTIONS, "log-probabilities of options"),
        _find_column(frame, _TARGETS, "the target"),
    )
    confidences, correct = [], []
    for values, target_value in frame.select(options, target).iter_rows():
        pairs = values.items() if isinstance(values, dict) else enumerate(values)
        log_probs = {name: float(value) for name, value in pairs if value is not None}
        top, confidence = most_probable(list(log_probs.values()))
        confidences.append(confidence)
        correct.append(int(str(list(log_probs)[top]) == str(target_value)))
    return frame.drop(options, target).with_columns(pl.Series("confidence", confidences), pl.Series("correct", correct))


def _from_agreement(frame: Any) -> Any:
    """Reduce repeated answers to the commonest per question (and model), with its share as confidence; of ties the first given.

    `correct` is the column of that name, else whether the answer equals the target.
    """
    import polars as pl

    question, answer = _find_column(frame, _QUESTIONS, "the question"), _find_column(frame, _ANSWERS, "the answer")
    correct = next((name for name in ("correct", "is_correct") if name in frame.columns), None)
    target = None if correct else _find_column(frame, _TARGETS, "the target, or whether the answer is correct")
    keys = [question, *(["model"] if "model" in frame.columns else [])]
    truth = pl.col(correct).cast(pl.Int64) if correct else (pl.col(answer) == pl.col(str(target))).cast(pl.Int64)
    counted = (
        frame.with_columns(truth.alias("correct"))
        .group_by([*keys, answer], maintain_order=True)
        .agg(pl.len().alias("same"), pl.col("correct").first())
    )
    total = pl.col("same").sum().over(keys)
    shares = counted.with_columns((pl.col("same") / total).alias("confidence"))
    first = pl.all().sort_by("same", descending=True, maintain_order=True).first()
    return shares.group_by(keys, maintain_order=True).agg(first).drop("same")


def _find_column(frame: Any, names: Sequence[str], what: str) -> str:
    """Return the first column of the frame with one of these lower-case names; raise InputError if none, `what` names its
    contents.

    >>> from types import SimpleNamespace
    >>> _find_column(SimpleNamespace(columns=["A", "Label"]), ("target", "label"), "the label")
    'Label'
    """
    matches = [name for name in frame.columns if name.lower() in names]
    if not matches:
        raise InputError(
            f"no column holds {what}; name it one of {', '.join(names)} (columns: {', '.join(frame.columns)})"
        )
    return str(matches[0])


# ----------------------------------------------------------------------------------------------------
# Which evaluation log a file is, and its rows


def eval_log(file: Path, preset: str | None = None) -> EvalLog | None:
    """Read the evaluation log in a file; None if the file is not one. Refuses a log whose answers lack what its tool writes."""
    try:
        return _read_log(file, preset)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise FileError(f"{file}: an answer of this evaluation log is not as its tool writes it: {reason}") from error


def _read_log(file: Path, preset: str | None) -> EvalLog | None:
    """Read a file as the evaluation log that its content shows; None if it shows none. `preset` is for samples of lm-eval.

    Lines of JSON are samples of lm-eval if the first has its keys; a .eval archive or a JSON file is tried as a log of Inspect,
    promptfoo, DeepEval and HELM, in this order.
    """
    kind = kind_of(file)
    if kind == "ndjson":
        first = next(read_lines(file), None)
        is_lm_eval = first is not None and first.keys() >= _KEYS
        return lm_eval_log(file, list(read_lines(file)), preset) if is_lm_eval else None
    if kind not in ("eval", "json"):
        return None
    value: Any = read_archive(file) if kind == "eval" else read_json(file)
    logs = (read(value) for read in (inspect_log, promptfoo_log, deepeval_log, helm_log))
    return next((log for log in logs if log is not None), None)
