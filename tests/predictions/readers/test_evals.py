"""Evaluation logs of language models: confidence, correctness and questions, from the files the tools write."""

import json
import math
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

import truecal as tc
from truecal.predictions.eval_logs import inspect_log
from truecal.predictions.readers import ReadRequest, read_file

LOGS = Path(__file__).with_name("logs")
# Written by lm-eval 0.4.13: --model dummy --tasks toy --include_path logs --log_samples (task: logs/toy.yaml)
SAMPLES = LOGS / "samples_toy_2026-11-16T09-55-58.153816.jsonl"


def test_lm_eval_options():
    reading = read_file(SAMPLES, ReadRequest())
    documents = [json.loads(line) for line in SAMPLES.read_text().splitlines()]
    assert reading.preds.labels.tolist() == [int(d["acc"]) for d in documents]  # right as the harness counts it
    logs = [float(log) for log, _ in documents[0]["filtered_resps"]]
    assert reading.preds.probs[0] == pytest.approx(math.exp(max(logs)) / sum(map(math.exp, logs)))
    assert set(reading.preds.columns["model"]) == {"dummy-model"}
    assert set(reading.preds.columns["task"]) == {"toy"}
    assert reading.preds.clusters is None  # every question once
    assert "log-likelihoods (acc)" in reading.summary


def test_lm_eval_options_per_character():
    reading = read_file(SAMPLES, ReadRequest(preset="options-per-character"))
    documents = [json.loads(line) for line in SAMPLES.read_text().splitlines()]
    assert reading.preds.labels.tolist() == [int(d["acc_norm"]) for d in documents]
    assert "acc_norm" in reading.summary


def generated(doc, answers, target, score):
    return {
        "doc_id": doc,
        "doc": {},
        "target": target,
        "resps": [answers],
        "filtered_resps": answers[:1],
        "exact_match": score,
    }


def test_lm_eval_agreement(tmp_path):
    path = tmp_path / "samples_gsm_2026-01-01T00-00-00.jsonl"
    rows = [generated(0, ["7", "7", "8", "7"], "7", 1.0), generated(1, ["3", "4", "4", "4"], "4", 0.0)]
    path.write_text("\n".join(map(json.dumps, rows)))
    reading = read_file(path, ReadRequest())
    assert reading.preds.probs.tolist() == [0.75, 0.75]
    assert reading.preds.labels.tolist() == [1, 1]
    path.write_text(json.dumps(generated(0, ["7"], "7", 1.0)))
    with pytest.raises(tc.InputError, match="sample each several times"):
        read_file(path, ReadRequest())
    with pytest.raises(tc.InputError, match="not options"):
        read_file(path, ReadRequest(preset="options"))


def sample(question, epoch, value, confidence):
    score = {"value": value, "answer": "A", "metadata": {"confidence": confidence}}
    return {"id": question, "epoch": epoch, "target": "A", "scores": {"stated": score}, "metadata": {}}


INSPECT = {
    "version": 2,
    "eval": {"task": "tiny", "model": "mockllm/model"},
    "samples": [
        sample("q1", 1, "C", 0.9),
        sample("q1", 2, "I", 0.7),
        sample("q2", 1, "C", 0.6),
        sample("q2", 2, "I", None),
        sample("q3", 1, "P", 0.5),
    ],
}


def archive(path, *, packed):
    """An .eval file, deflated or packed by zstd as Inspect does it."""
    members = {"header.json": {"eval": INSPECT["eval"]}} | {
        f"samples/{s['id']}_epoch_{s['epoch']}.json": s for s in INSPECT["samples"]
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, value in members.items():
            file.writestr(name, json.dumps(value, indent=1))
    if packed:
        _repack(path, {name: json.dumps(value, indent=1).encode() for name, value in members.items()})
    return path


def _repack(path, members):
    """The same members with method 93 (zstd), which the standard library cannot write: stored, then renamed in the headers."""
    frames = {name: pa.compress(data, codec="zstd", asbytes=True) for name, data in members.items()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
        for name, data in frames.items():
            file.writestr(name, data)
    raw = bytearray(path.read_bytes())
    for signature, method, size in ((b"PK\x03\x04", 8, 22), (b"PK\x01\x02", 10, 24)):
        start = 0
        for data in members.values():
            start = raw.index(signature, start)
            raw[start + method : start + method + 2] = (93).to_bytes(2, "little")
            raw[start + size : start + size + 4] = len(data).to_bytes(4, "little")
            start += 4
    path.write_bytes(raw)


@pytest.mark.parametrize("kind", ["json", "deflated", "zstd"])
def test_inspect_logs(tmp_path, kind):
    path = tmp_path / f"run.{'json' if kind == 'json' else 'eval'}"
    if kind == "json":
        path.write_text(json.dumps(INSPECT))
    else:
        archive(path, packed=kind == "zstd")
    with pytest.raises(tc.InputError, match="--drop-null"):
        read_file(path, ReadRequest())
    reading = read_file(path, ReadRequest(drop_null=True))
    assert sorted(zip(reading.preds.probs.tolist(), reading.preds.labels.tolist(), strict=True)) == [
        (0.6, 1),
        (0.7, 0),
        (0.9, 1),
    ]
    assert reading.preds.clusters is not None
    assert "3 questions as clusters" in reading.summary
    assert reading.notes == (
        "1 of 5 answers state no confidence",
        "1 of 5 answers have no score of right or wrong",
    )


def test_a_damaged_eval_file_is_named(tmp_path):
    path = tmp_path / "run.eval"
    path.write_bytes(b"PK\x03\x04 no")
    with pytest.raises(tc.errors.FileError, match=r"run.eval is damaged"):
        read_file(path, ReadRequest())


def test_helm_instances(tmp_path):
    path = tmp_path / "per_instance_stats.json"
    rows = [
        {
            "instance_id": f"id{i}",
            "train_trial_index": 0,
            "stats": [{"name": {"name": "max_prob"}, "mean": p}, {"name": {"name": "exact_match"}, "mean": right}],
        }
        for i, (p, right) in enumerate([(0.9, 1.0), (0.4, 0.0)])
    ]
    path.write_text(json.dumps(rows))
    preds = tc.read(path)
    assert (preds.probs.tolist(), preds.labels.tolist()) == ([0.9, 0.4], [1, 0])
    path.write_text(json.dumps([{"instance_id": "a", "stats": {"exact_match": 1.0}}]))
    with pytest.raises(tc.InputError, match="max_prob"):
        tc.read(path)


def test_options_of_a_plain_file(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"logprobs": {"A": -0.1, "B": -2.0}, "target": "A"}\n{"logprobs": {"A": -1, "B": -0.5}, "target": "A"}\n'
    )
    preds = tc.read(path, preset="options")
    assert preds.probs[0] == pytest.approx(1 / (1 + math.exp(-1.9)))
    assert preds.labels.tolist() == [1, 0]


def test_agreement_of_a_plain_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("question_id,answer,correct\n1,x,1\n1,x,1\n1,y,0\n2,u,0\n2,v,1\n2,u,0\n2,u,0\n")
    preds = tc.read(path, preset="agreement")
    assert preds.probs.tolist() == pytest.approx([2 / 3, 3 / 4])
    assert preds.labels.tolist() == [1, 0]
    with pytest.raises(tc.InputError, match="there is no preset 'magic'"):
        tc.read(path, preset="magic")


def test_a_real_inspect_log(tmp_path):
    """What Inspect itself writes today, with its mock model."""
    pytest.importorskip("inspect_ai")
    from inspect_ai import Task
    from inspect_ai import eval as run
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import CORRECT, INCORRECT, Score, accuracy, scorer
    from inspect_ai.solver import generate

    @scorer(metrics=[accuracy()])
    def stated():
        async def score(state, target):
            answer, _, confidence = state.output.completion.partition(" ")
            value = CORRECT if answer == target.text else INCORRECT
            return Score(value=value, answer=answer, metadata={"confidence": float(confidence)})

        return score

    def output(text):
        result = ModelOutput.from_content("mockllm/model", text)
        result.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return result

    outputs = [output(text) for text in ("A 0.9", "B 0.8", "A 0.7", "A 0.6")]
    task = Task(
        dataset=[Sample(input="?", target="A", id=f"q{i}") for i in range(2)], solver=generate(), scorer=stated()
    )
    (log,) = run(
        task,
        model=get_model("mockllm/model", custom_outputs=outputs),
        epochs=2,
        log_dir=str(tmp_path),
        display="none",
        max_samples=1,
        max_connections=1,
    )
    preds = tc.read(log.location)
    assert sorted(preds.probs.tolist()) == [0.6, 0.7, 0.8, 0.9]
    assert preds.labels.sum() == 3
    assert len(set(preds.clusters.tolist())) == 2


def test_the_first_of_several_scorers_is_named():
    score = {"value": "C", "metadata": {"confidence": 0.5}}
    log = {"eval": {"task": "t"}, "samples": [{"id": 1, "scores": {"match": score, "judge": {"value": "I"}}}]}
    assert "(scorer 'match')" in str(inspect_log(log))
    log["samples"][0]["scores"].pop("judge")
    assert "scorer" not in str(inspect_log(log)).partition("answers")[0]


def test_two_answers_are_several(tmp_path):
    path = tmp_path / "samples_gsm_2026-01-01T00-00-00.jsonl"
    path.write_text("\n".join(json.dumps(generated(i, ["7", "8"], "7", 1.0)) for i in range(3)))
    assert read_file(path, ReadRequest()).preds.probs.tolist() == [0.5] * 3


@pytest.mark.parametrize(
    ("target", "accuracy", "correct"), [("1", 0.0, 1), ("0", 1.0, 0), ("2", 1.0, 1), ("2", 0.0, 0)]
)
def test_a_target_beyond_the_options_is_no_option(tmp_path, target, accuracy, correct):
    """Then the accuracy that the harness counted decides."""
    path = tmp_path / "samples_toy_2026-01-01T00-00-00.jsonl"
    values = {
        "doc_id": 0,
        "doc": {},
        "target": target,
        "filtered_resps": [[-2.0, False], [-0.1, True]],
        "acc": accuracy,
    }
    path.write_text(
        json.dumps({**values, "arguments": [["q", " a"], ["q", " b"]], "resps": [[[-2.0, False]], [[-0.1, True]]]})
    )
    assert read_file(path, ReadRequest()).preds.labels.tolist() == [correct]


def test_of_answers_given_equally_often_the_first_counts(tmp_path):
    path = tmp_path / "a.csv"
    rows = [f"{q},{answer},{right}" for q in range(60) for answer, right in ((f"z{q % 7}", 1), (f"a{q % 5}", 0))]
    path.write_text("\n".join(["question,answer,correct", *rows]))
    preds = read_file(path, ReadRequest(preset="agreement")).preds
    assert preds.labels.tolist() == [1] * 60
    assert preds.probs.tolist() == [0.5] * 60
