"""Evaluation logs in which people checked some answers: their verdicts are labels, the log's own are a judge's."""

import json
from pathlib import Path

import numpy as np
import pytest

import truecal as tc
from truecal.predictions.readers import ReadRequest, read_file

ROWS = 80
# Written by DeepEval 4.3.1 with a metric that compares texts
DEEPEVAL = Path(__file__).with_name("logs") / "deepeval_test_run.json"


def draw():
    """Confidence, the log's verdict and that of a person, who checked every second answer."""
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.3, 1, ROWS).round(3)
    right = rng.random(ROWS) < confidence
    verdict = np.where(rng.random(ROWS) < 0.9, right, ~right)
    human = [bool(y) if i % 2 == 0 else None for i, y in enumerate(right)]
    return confidence.tolist(), verdict.tolist(), human


def promptfoo(confidence, verdict, human):
    """As `promptfoo eval -o results.json` writes it, version 3; a rating in its viewer is an assertion of the type `human`."""
    parts = [
        {
            "pass": verdict,
            "score": float(verdict),
            "reason": "",
            "assertion": {"type": "llm-rubric", "value": "is right"},
        },
        {"pass": False, "score": 0, "reason": "slow", "assertion": {"type": "latency", "threshold": 3000}},
    ]
    if human is not None:
        parts.append({"pass": human, "score": float(human), "reason": "Manual", "assertion": {"type": "human"}})
    return {
        "gradingResult": {"pass": False, "score": 0.5, "reason": "", "componentResults": parts, "assertion": None},
        "namedScores": {},
        "provider": {"id": "openai:gpt-5-mini", "label": ""},
        "response": {"output": {"answer": "42", "confidence": confidence}},
        "success": False,
        "score": 0.5,
        "metadata": {"_promptfooFileMetadata": {}},
    }


def deepeval(confidence, verdict, human):
    """As a run with DEEPEVAL_RESULTS_FOLDER writes it."""
    reference = {} if human is None else {"human": human}
    metric = {"name": "Correctness [GEval]", "threshold": 0.5, "success": verdict, "score": 0.7, "strictMode": False}
    return {
        "actualOutput": "42",
        "success": verdict,
        "metricsData": [metric],
        "additionalMetadata": {"confidence": confidence, **reference},
    }


def inspect(confidence, verdict, human):
    scores = {"model_graded_qa": {"value": "C" if verdict else "I", "metadata": {"confidence": confidence}}}
    if human is not None:
        scores["human_expert"] = {"value": "C" if human else "I"}
    return {"epoch": 1, "target": "42", "scores": scores, "metadata": {}}


def written(path, kind):
    rows = list(zip(*draw(), strict=True))
    if kind == "promptfoo":
        results = [{**promptfoo(*row), "testIdx": i, "promptIdx": 0} for i, row in enumerate(rows)]
        value = {
            "evalId": "eval-x",
            "results": {"version": 3, "prompts": [], "results": results, "stats": {}},
            "config": {},
        }
    elif kind == "deepeval":
        value = {"testCases": [{"name": f"q{i}", "input": f"{i}?", **deepeval(*row)} for i, row in enumerate(rows)]}
    else:
        samples = [{"id": f"q{i}", **inspect(*row)} for i, row in enumerate(rows)]
        value = {"version": 2, "eval": {"task": "t", "model": "m"}, "samples": samples}
    path.write_text(json.dumps(value))
    return path


@pytest.mark.parametrize("kind", ["promptfoo", "deepeval", "inspect"])
def test_people_give_labels_and_the_log_is_the_judge(tmp_path, kind):
    confidence, verdict, human = draw()
    reading = read_file(written(tmp_path / "results.json", kind), ReadRequest())
    preds = reading.preds
    assert preds.probs.tolist() == confidence
    assert preds.labels.tolist() == [-1 if value is None else int(value) for value in human]
    assert preds.judge[:, 0].tolist() == [2.0 * value - 1 for value in verdict]
    assert preds.classes == ("wrong", "correct")
    assert any(f"a person checked {ROWS // 2} of {ROWS} answers" in note for note in reading.notes)
    labels = [np.nan if value is None else value for value in human]
    assert tc.measure(preds).value == tc.calibration_error(labels, confidence, judge=verdict).value


@pytest.mark.parametrize("kind", ["promptfoo", "deepeval", "inspect"])
def test_without_people_the_verdicts_are_the_labels(tmp_path, kind):
    path = written(tmp_path / "results.json", kind)
    text = path.read_text().replace('"human', '"robot')
    path.write_text(text.replace('"type": "robot"', '"type": "latency"'))
    preds = tc.read(path)
    assert preds.judge is None
    assert preds.labels.tolist() == [int(value) for value in draw()[1]]


@pytest.mark.parametrize("beside", ["doc_id", "doc"])
def test_people_may_have_checked_samples_of_lm_eval(tmp_path, beside):
    rng = np.random.default_rng(0)
    options, target, human = rng.normal(size=(ROWS, 3)), rng.integers(0, 3, ROWS), draw()[2]
    lines = []
    for i in range(ROWS):
        checked = {} if human[i] is None else {"human_label": "yes" if human[i] else "no"}
        sample = {"doc_id": i, "target": str(target[i]), "filtered_resps": [[str(x), "False"] for x in options[i]]}
        lines.append(json.dumps({"doc": {}, **sample, **({"doc": checked} if beside == "doc" else checked)}))
    path = tmp_path / "samples_qa_2026-01-01T00-00-00.jsonl"
    path.write_text("\n".join(lines))
    preds = tc.read(path)
    assert preds.labels.tolist() == [-1 if value is None else int(value) for value in human]
    assert preds.judge[:, 0].tolist() == [2.0 * right - 1 for right in options.argmax(axis=1) == target]


def test_tables_have_a_column_of_the_judge(tmp_path):
    confidence, verdict, human = draw()
    path = tmp_path / "answers.csv"
    people = ["" if value is None else int(value) for value in human]
    lines = [f"{c},{h},{int(v)}" for c, h, v in zip(confidence, people, verdict, strict=True)]
    path.write_text("\n".join(["confidence,correct,verdict", *lines]))
    preds = tc.read(path, judge="verdict")
    assert (preds.labels >= 0).sum() == ROWS // 2
    assert preds.classes == ("wrong", "correct")
    path.write_text("\n".join(["confidence,correct,verdict", *lines, "0.5,,"]))
    with pytest.raises(tc.InputError, match="missing value"):
        tc.read(path, judge="verdict")
    assert len(tc.read(path, judge="verdict", drop_null=True)) == ROWS


def test_an_answer_that_lacks_what_the_tool_writes_is_named(tmp_path):
    path = written(tmp_path / "results.json", "deepeval")
    path.write_text(path.read_text().replace('"input"', '"output"', 1))
    with pytest.raises(tc.errors.FileError, match="has no 'input'"):
        tc.read(path)


def test_a_file_of_deepeval_is_read(tmp_path):
    preds = tc.read(DEEPEVAL)
    assert preds.probs.tolist() == [0.5, 0.55, 0.6, 0.65, 0.7, 0.75]
    assert preds.labels.tolist() == [0, -1, 1, -1, 1, -1]
    assert preds.judge[:, 0].tolist() == [1, 1, 1, -1, 1, 1]
    latest = tmp_path / "latest.json"
    latest.write_text(json.dumps({"testRunData": json.loads(DEEPEVAL.read_text()), "testRunLink": ""}))
    assert tc.read(latest).labels.tolist() == preds.labels.tolist()
