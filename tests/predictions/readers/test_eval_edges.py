"""Evaluation logs at their edges: what a log looks like, answers that say little, options by their lengths."""

import json
import math
import zipfile
from types import SimpleNamespace

import pyarrow as pa
import pytest

import truecal as tc
from truecal.predictions.eval_logs import (
    EvalLog,
    LoggedAnswer,
    _is_options,
    _read_member,
    helm_log,
    inspect_log,
    truth_of,
)
from truecal.predictions.readers import ReadRequest, read_file


@pytest.mark.parametrize(
    ("responses", "options"),
    [
        ([[-1.0, False], [-2.0, True]], True),
        ([[-1.0, False]], False),
        (["ab", "cd"], False),
        ([[-1.0, False], [-2.0]], False),
        ([], False),
        ("ab", False),
        ({"a": 1, "b": 2}, False),
    ],
)
def test_what_options_look_like(responses, options):
    assert _is_options(responses) is options


def document(**more):
    return {"doc_id": 0, "doc": {}, "target": "0", "filtered_resps": [[-1.0, False], [-3.0, True]], **more}


def test_options_per_character_are_divided_by_their_lengths(tmp_path):
    path = tmp_path / "samples.jsonl"
    document_ = document(arguments=[["q", " a"], ["q", " four"]])
    path.write_text(json.dumps(document_))
    assert read_file(path, ReadRequest(preset="options-per-character")).preds.probs.tolist() == pytest.approx(
        [1 / (1 + math.exp(-1 + 3 / 4))]
    )
    for arguments in (None, [["q", " a"]]):
        path.write_text(json.dumps(document(arguments=arguments)))
        with pytest.raises(tc.InputError, match="document 0 does not hold its options, whose lengths acc_norm"):
            read_file(path, ReadRequest(preset="options-per-character"))


def test_a_document_may_hold_nothing_but_what_it_needs(tmp_path):
    path = tmp_path / "samples.jsonl"
    path.write_text(json.dumps(document()))
    reading = read_file(path, ReadRequest())
    assert reading.preds.probs.tolist() == pytest.approx([1 / (1 + math.exp(-2))])
    assert reading.preds.labels.tolist() == [1]
    with pytest.raises(tc.InputError, match="the preset 'stated' does not fit lm-eval samples of options"):
        read_file(path, ReadRequest(preset="stated"))
    with pytest.raises(tc.InputError, match="the preset 'agreement' does not fit lm-eval samples of options"):
        read_file(path, ReadRequest(preset="agreement"))


def test_a_score_of_the_harness_is_that_of_the_first_answer(tmp_path):
    """Where the commonest answer is another, it is compared with the target."""
    path = tmp_path / "samples.jsonl"
    document_ = document(target="4", exact_match=1.0, filtered_resps=["3"])
    rows = [
        {**document_, "resps": [["3", "4", "4"]]},
        {**document_, "resps": [["3", "5", "5"]]},
        {**document_, "resps": [["3", "3"]]},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    preds = read_file(path, ReadRequest()).preds
    assert preds.labels.tolist() == [1, 0, 1]
    assert preds.probs.tolist() == pytest.approx([2 / 3, 2 / 3, 1])


def test_agreement_with_a_target_and_several_models(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("question,model,answer,target\n1,a,x,x\n1,a,x,x\n1,a,y,x\n1,b,y,x\n1,b,y,x\n")
    preds = tc.read(path, preset="agreement")
    assert preds.probs.tolist() == pytest.approx([2 / 3, 1])
    assert preds.labels.tolist() == [1, 0]
    with pytest.raises(
        tc.InputError, match="is for lm-eval samples; a table of answers has stated, options or agreement"
    ):
        tc.read(path, preset="options-per-character")
    path.write_text("question,answer\n1,a\n")
    with pytest.raises(tc.InputError, match="no column holds the target, or whether the answer is correct"):
        tc.read(path, preset="agreement")


def test_options_of_a_table_by_number_and_with_gaps(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"logprobs": [-3, -1], "target": 1}\n{"logprobs": [null, -1], "target": 0}\n')
    preds = tc.read(path, preset="options")
    assert preds.probs.tolist() == pytest.approx([1 / (1 + math.exp(-2)), 1])
    assert preds.labels.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("value", "truth"),
    [
        (0, False),
        (1, True),
        (2, None),
        (-1, None),
        (0.0, False),
        (True, True),
        ("yes", True),
        ("0", False),
        ("P", None),
    ],
)
def test_what_scores_say(value, truth):
    assert truth_of(value) is truth


def test_confidences_of_a_log_may_be_mixed():
    log = EvalLog(
        "log",
        "stated",
        (LoggedAnswer("1", 0.5, True), LoggedAnswer("2", "90%", False, "t"), LoggedAnswer("2", None, None, "t")),
    )
    assert log.frame()["question"].to_list() == ["1", "t/2", "t/2"]
    assert log.frame()["correct"].to_list() == [1, 0, None]
    assert log.repeated
    assert log.describe() == "log: confidence stated, 2 questions as clusters"
    once = EvalLog("log", "stated", log.answers[:2])
    assert not once.repeated
    assert once.describe() == "log: confidence stated"
    assert once.notes() == ()


HELM = {"instance_id": "a", "stats": {"max_prob": 0.5}}


@pytest.mark.parametrize(
    ("value", "helm"), [([HELM], True), ([], False), (HELM, False), ([HELM, {"stats": {}}], False), ([HELM, 1], False)]
)
def test_what_instances_of_helm_look_like(value, helm):
    assert (helm_log(value) is not None) is helm


def test_trials_of_helm_are_repeats(tmp_path):
    path = tmp_path / "a.json"
    stats = [
        {"name": None, "mean": 1},
        5,
        {"name": {"name": "max_prob"}, "mean": 0.5},
        {"name": {"name": "exact_match"}},
    ]
    right = {"max_prob": 0.75, "exact_match": 1.0}
    rows = [{"instance_id": "a", "stats": right, "train_trial_index": 2}, {"instance_id": "a", "stats": right}]
    path.write_text(json.dumps(rows))
    preds = tc.read(path)
    assert preds.columns["repeat"].tolist() == [2, 0]
    assert len(set(preds.clusters.tolist())) == 1
    path.write_text(json.dumps([*rows, {"instance_id": "b", "stats": stats}]))
    reading = read_file(path, ReadRequest(drop_null=True))
    assert (len(reading.preds), reading.notes) == (2, ("1 of 3 answers have no score of right or wrong",))


@pytest.mark.parametrize(
    ("value", "inspect"),
    [
        ({"eval": {}, "samples": []}, True),
        ({"eval": {}}, False),
        ({"samples": []}, False),
        ({"eval": 1, "samples": []}, False),
        ([], False),
    ],
)
def test_what_logs_of_inspect_look_like(value, inspect):
    assert (inspect_log(value) is not None) is inspect


def test_samples_of_inspect_that_say_little():
    scored = {"id": 2, "epoch": 3, "scores": {"s": {"value": 1}}, "metadata": {"confidence": None, "p_true": 0.25}}
    log = inspect_log({"eval": {}, "samples": [{"id": 1}, scored, {"id": 3, "scores": {"s": None}}]})
    assert log.answers == (
        LoggedAnswer("1", None, None, repeat=1),
        LoggedAnswer("2", 0.25, True, repeat=3),
        LoggedAnswer("3", None, None, repeat=1),
    )
    assert log.confidence == "of the metadata"
    assert inspect_log({"eval": {}, "samples": []}).answers == ()


@pytest.mark.parametrize("name", ["header.json", "samples/1.json"])
def test_an_archive_of_inspect_has_a_header_and_samples(tmp_path, name):
    path = tmp_path / "run.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, json.dumps({"eval": {}, "id": 1}))
    with pytest.raises(tc.errors.FileError, match="is not an Inspect log: it holds no samples"):
        read_file(path, ReadRequest())


def test_a_line_that_is_no_json_is_numbered_from_one(tmp_path):
    path = tmp_path / "samples.jsonl"
    path.write_text(json.dumps(document()) + "\n\nno\n")
    with pytest.raises(
        tc.errors.FileError, match="is not a readable jsonl file: line 3, column 1: Expecting value; repair"
    ):
        read_file(path, ReadRequest())


def test_a_member_packed_by_zstd_begins_after_its_name_and_extra_field(tmp_path):
    path, frame = tmp_path / "run.eval", pa.compress(b"12", codec="zstd", asbytes=True)
    head = bytes(26) + (4).to_bytes(2, "little") + (3).to_bytes(2, "little")
    path.write_bytes(b"before" + head + b"nameext" + frame + b"after")
    info = SimpleNamespace(compress_type=93, header_offset=6, compress_size=len(frame), file_size=2, filename="name")
    assert _read_member(path, None, info) == b"12"
    info.file_size = 1
    with pytest.raises(tc.errors.FileError, match="name has another size than the archive says"):
        _read_member(path, None, info)
