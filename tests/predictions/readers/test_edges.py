"""Readers at their edges: the last name that is listed, the kinds of files without a usual ending, rows that miss a value."""

import gzip
import json
from pathlib import Path

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import truecal as tc
from truecal.predictions import files
from truecal.predictions.eval_logs import promptfoo_log
from truecal.predictions.files import _reason, kind_of, read_json
from truecal.predictions.frames import _join_names, _suggest_options, choose, choose_predictions, matching, to_array
from truecal.predictions.readers import ReadRequest, read_file, read_table


def chosen(columns, **options):
    return choose(columns, **{"label": None, "probs": None, "logits": None, **options})


def test_at_most_twelve_names_are_listed():
    names = [f"c{i}" for i in range(13)]
    assert _join_names(names[:12]) == ", ".join(names[:12])
    assert _join_names(names) == ", ".join(names[:12]) + ", ..."


def test_at_most_forty_columns_are_listed():
    names = [f"c{i}" for i in range(41)]
    with pytest.raises(tc.InputError, match=r"c38, c39$"):
        matching(names[:40], "zzz", "predictions")
    with pytest.raises(tc.InputError, match=r"c38, c39, \.\.\.$"):
        matching(names, "zzz", "predictions")


def test_predictions_of_files_whose_labels_do_not_matter():
    assert choose_predictions(["x", "p"], probs=None, logits=None) == ("p", None)
    assert choose_predictions(["x", "z"], probs="x", logits=None) == ("x", None)
    assert choose_predictions(["x", "z"], probs=None, logits="x") == (None, "x")


@pytest.mark.parametrize(
    ("columns", "options", "label", "probs"),
    [
        (["y", "label", "p"], {"by": ["label"]}, "y", "p"),
        (["label", "p"], {"by": ["label"]}, "label", "p"),
        (["y", "p", "score"], {"by": ["p"]}, "y", "score"),
        (["y", "label", "p"], {"label": "label"}, "label", "p"),
        (["y", "p_a", "p_b", "score", "risk"], {}, "y", "p_*"),
        (["y", "p", "p_", "score_x"], {}, "y", "p"),
        (["y", "y_prob", "target_x"], {"probs": ["y_prob", "target_x"]}, "y", ["y_prob", "target_x"]),
        (["y", "target", "p"], {"probs": "target"}, "y", "target"),
        (["correct", "label", "confidence"], {}, "correct", "confidence"),
        (["correct", "label", "score"], {}, "label", "score"),
        (["label", "answer", "score"], {}, "label", "score"),
        (["correct", "answer", "confidence"], {}, "correct", "confidence"),
        (["label", "confidence"], {}, "label", "confidence"),
    ],
)
def test_which_columns_are_chosen(columns, options, label, probs):
    choice = chosen(columns, **options)
    assert (choice.label, choice.probs, choice.logits) == (label, probs, None)


@pytest.mark.parametrize("columns", [["y", "p_", "p_a"], ["y", "p1"], ["y", "p1", "p2x"]])
def test_one_column_is_no_family(columns):
    with pytest.raises(tc.InputError, match="no column is named like a prediction"):
        chosen(columns)


def test_the_only_column_named_p_something_is_the_score():
    assert (chosen(["y", "p_a"]).label, chosen(["y", "p_a"]).probs) == ("y", "p_a")


def test_a_choice_says_how_many_columns_it_is():
    assert chosen(["y", "p_1"], probs="p_*").describe(["y", "p_1"]) == "label 'y' [detected], probabilities 'p_*'"
    columns = ["y", "z_1", "z_2"]
    assert chosen(columns).describe(columns) == "label 'y' [detected], logits 'z_*' (2 columns) [detected]"
    assert chosen(columns, probs=["z_1", "z_2"]).describe(columns).endswith("probabilities 'z_1, z_2'")


def test_columns_are_ordered_by_their_numbers():
    assert matching(["p_10", "p_9", "y"], "p_*", "predictions") == (["p_9", "p_10"], None)
    assert matching(["p_b", "p_1"], "p_*", "predictions") == (["p_b", "p_1"], ["b", "1"])
    assert matching(["p_*", "p_1"], "p_*", "predictions") == (["p_*"], None)


@pytest.mark.parametrize("name", ["preds.xyz", "preds.xyz.gz", "preds.csv.bak"])
def test_unknown_endings_are_refused_by_name(tmp_path, name):
    path = tmp_path / name
    path.write_text("y,p\n1,0.5\n")
    with pytest.raises(tc.errors.FileError, match="unknown kind of file"):
        tc.read(path)


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.gz", gzip.compress(b"y,p\n1,0.5\n", mtime=0), "csv"),
        ("a", b"  [1]", "json"),
        ("a", b"y,p\n", "csv"),
        ("a", b'{"y": [1]}', "json"),
        ("a", b'{"y": 1}', "ndjson"),
        ("a", b'\n{"y": [1], "p": 1}\n', "ndjson"),
        ("a", b'{"y": 1}\n\n {"y": 1}', "ndjson"),
        ("a", b'{\n"y": [1]}', "json"),
        ("a", b"{", "json"),
        ("a", b"PK\x03\x04", "npz"),
        ("A.TSV.GZ", b"", "csv"),
    ],
)
def test_kinds_of_files(tmp_path, name, content, kind):
    path = tmp_path / name
    path.write_bytes(content)
    assert kind_of(path) == kind


def test_brackets_in_the_name_of_a_parquet_file_are_no_pattern(tmp_path):
    path = tmp_path / "a[1].parquet"
    pl.DataFrame({"y": [1, 0], "p": [0.5, 0.25]}).write_parquet(path)
    assert tc.read(path).probs.tolist() == [0.5, 0.25]


@pytest.mark.parametrize("content", ["[1, 2]", "3", '{"y": 1}', '{"y": [1], "p": 0.5}', '[{"y": 1}, 2]', '"text"'])
def test_json_that_is_no_table(tmp_path, content):
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(tc.errors.FileError, match="is a list of objects or an object of lists, one per column"):
        tc.read(path)


def test_json_whose_numbers_are_whole_at_first(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"y": 1, "p": 1}] * 200 + [{"y": 0, "p": 0.5}]))
    assert tc.read(path).probs.tolist() == [1.0] * 200 + [0.5]


def test_the_reason_is_at_most_two_hundred_characters():
    assert _reason(ValueError("x" * 200 + "\nsecond")) == "x" * 200
    assert _reason(ValueError("x" * 201)) == "x" * 197 + "..."
    assert _reason(ValueError()) == "ValueError"


def test_a_semicolon_file_of_whole_numbers_and_points(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y;p;note\n1;0.5;1,2 and more\n0;0.25;x\n")
    assert tc.read(path).probs.tolist() == [0.5, 0.25]
    path.write_text('"a;b;c;d",y,p\nx,1,0.5\nx,0,0.25\n')
    assert tc.read(path).probs.tolist() == [0.5, 0.25]


def test_text_packed_by_zstd_comes_back_line_by_line(tmp_path):
    path = tmp_path / "a.json.zst"
    lines = ["[", "1", ",", '"a, b"', "]"]
    with pa.OSFile(str(path), "wb") as file, pa.CompressedOutputStream(file, "zstd") as packed:
        packed.write("\n".join(lines).encode())
    assert read_json(path) == [1, "a, b"]
    with pa.OSFile(str(path), "wb") as file, pa.CompressedOutputStream(file, "zstd") as packed:
        packed.write(b"12")
    assert read_json(path) == 12


@pytest.mark.parametrize("cut", [4, 20, -5])
def test_a_file_packed_by_zstd_that_ends_early_is_refused(tmp_path, cut):
    path = tmp_path / "a.csv.zst"
    with pa.OSFile(str(path), "wb") as file, pa.CompressedOutputStream(file, "zstd") as packed:
        packed.write(b"y,p\n" + b"1,0.5\n0,0.25\n" * 50)
    assert len(tc.read(path)) == 100
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(tc.errors.FileError, match=r"a\.csv\.zst is damaged"):
        tc.read(path)


def test_logits_are_kept_from_columns_and_lists():
    expected, frame = ReadRequest(), pl.DataFrame({"y": [0, 1], "z_0": [1.0, 0.0], "z_1": [2.0, -1.0]})
    assert read_table(frame, expected).logits.tolist() == [[1.0, 2.0], [0.0, -1.0]]
    listed = pl.DataFrame({"y": [0, 1], "logits": [[1.0, 2.0], [0.0, -1.0]]})
    assert read_table(listed, expected).logits.tolist() == [[1.0, 2.0], [0.0, -1.0]]
    single = pl.DataFrame({"y": [0, 1], "logit": [1.5, -0.5]})
    assert read_table(single, expected).logits.tolist() == [1.5, -0.5]
    assert read_table(pl.DataFrame({"y": [0, 1], "p": [0.5, 0.25]}), expected).logits is None


@pytest.mark.parametrize(
    "made",
    [
        pl.DataFrame,
        pa.table,
        lambda columns: pd.DataFrame(columns),
        lambda columns: pd.DataFrame(columns).astype({"p": "Float64", "y": "Int64"}),
    ],
)
def test_rows_that_miss_a_value_are_left_out_in_any_library(made):
    frame = made({"y": [1, None, 0, 0], "p": [0.5, 0.25, None, 0.75], "other": [None, 1.0, 1.0, 1.0]})
    reading = read_table(frame, ReadRequest(drop_null=True))
    assert (reading.preds.probs.tolist(), reading.preds.labels.tolist(), reading.dropped) == ([0.5, 0.75], [1, 0], 2)
    with pytest.raises(tc.InputError, match=r"all 1 rows have missing values in p, y"):
        read_table(made({"y": [1], "p": [None], "other": [1.0]}), ReadRequest(drop_null=True))


def test_a_missing_value_in_one_of_several_columns_is_named():
    frame = pl.DataFrame({"y": [0, 1], "p_a": [0.5, 0.5], "p_b": [0.5, None]})
    with pytest.raises(tc.InputError, match="column 'p_b' has 1 missing value, the first in row 1"):
        tc.Predictions.from_frame(frame, label="y", probs="p_*")
    text = pl.DataFrame({"y": [0, 1], "p_a": ["0.5", None], "p_b": [0.5, 0.5]})
    with pytest.raises(tc.InputError, match="column 'p_a' has 1 missing value, the first in row 1"):
        tc.Predictions.from_frame(text, label="y", probs="p_*")


def test_predictions_are_named_once():
    frame = pl.DataFrame({"y": [0, 1], "p": [0.5, 0.5]})
    for inputs in ({}, {"probs": "p", "logits": "p"}):
        with pytest.raises(tc.InputError, match="probs= or logits=, one of the two"):
            tc.Predictions.from_frame(frame, label="y", **inputs)


def test_numbers_written_as_text_are_refused(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"y": 1, "p": "0.5"}\n{"y": 0, "p": "0.25"}\n')
    with pytest.raises(tc.InputError, match=r"column 'p' must be numbers: row 0 is '0\.5'$"):
        tc.read(path)


def test_percent_with_missing_values_and_words(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("confidence,correct\n90%,1\n,0\n")
    assert tc.read(path, percent=True, drop_null=True).probs.tolist() == [0.9]
    path.write_text("confidence,correct\n 90,1\n")
    with pytest.raises(tc.InputError, match=r"row 0 is .*90.*, which is not percent nor one of the words often"):
        tc.read(path, words={"often": 0.9})
    path.write_text("y,p_0,p_1\n1,50,50\n")
    with pytest.raises(tc.InputError, match="percent and words are for one column of probabilities"):
        tc.read(path, percent=True)
    path.write_text("y,logit\n1,50\n")
    with pytest.raises(tc.InputError, match="percent and words are for one column of probabilities"):
        tc.read(path, percent=True)


def test_labels_of_text_beside_one_column_are_two_classes_in_order(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,p\nyes,0.5\nno,0.25\n")
    detected = tc.read(path)
    assert (detected.classes, detected.labels.tolist()) == (("no", "yes"), [1, 0])
    assert tc.read(path, classes=["no", "yes"]).labels.tolist() == [1, 0]
    assert tc.read(path, classes=["yes", "no"]).labels.tolist() == [0, 1]
    path.write_text("y,p\nTrue,0.5\nfalse,0.25\n")
    assert tc.read(path).labels.tolist() == [1, 0]
    path.write_text("y,p\n-1,0.5\n1,0.25\n")
    assert tc.read(path, classes=["-1", "1"]).labels.tolist() == [0, 1]


def test_arrays_of_an_npz_file(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, y=[1, 0], p=[0.5, 0.25], w=[2.0, 1.0], c=[7, 7])
    preds = tc.read(path, weights="w", clusters="c", label="y", probs="p")
    assert preds.weights.tolist() == [2.0, 1.0]
    assert len(set(preds.clusters.tolist())) == 1
    assert tc.read(path, label="y", probs="p").weights is None
    with pytest.raises(tc.InputError, match=r"has no array 'v'; it has y, p, w, c"):
        tc.read(path, weights="v", label="y", probs="p")
    with pytest.raises(tc.InputError, match="name one array of predictions"):
        tc.read(path, label="y", probs=["p", "w"])
    with pytest.raises(tc.InputError, match="there is no column 'site' for --by"):
        read_file(path, ReadRequest(by=("site",)))


def test_an_empty_table_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,p\n")
    with pytest.raises(tc.errors.FileError, match=r"a\.csv has no rows"):
        tc.read(path)


def test_numbered_columns_may_be_given_names_and_named_ones_no_numbers(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,p_1,p_2\ncat,0.75,0.25\ndog,0.5,0.5\n")
    assert tc.read(path, classes=["cat", "dog"]).labels.tolist() == [0, 1]
    path.write_text("y,p_1,p_2\n1,0.75,0.25\n0,0.5,0.5\n")
    with pytest.raises(tc.InputError, match="are numbered 1, 2, not from 0"):
        tc.read(path)
    path.write_text("y,p_a,p_b\na,0.75,0.25\nb,0.5,0.5\n")
    with pytest.raises(
        tc.InputError, match="the class names contradict the columns: column 'p_a' is class '1' by its position"
    ):
        tc.read(path, classes=["1", "2"])


def test_words_for_truth_weights_like_scores_and_one_column_of_a_pattern(tmp_path):
    (tmp_path / "words.csv").write_text("y,p\nTrue,0.5\nFALSE,0.25\n")
    assert tc.read(tmp_path / "words.csv").labels.tolist() == [1, 0]
    weighted = pl.DataFrame({"y": [1, 0], "p": [0.5, 0.25], "score": [2.0, 3.0]})
    preds = read_table(weighted, ReadRequest(weights="score")).preds
    assert (preds.probs.tolist(), preds.weights.tolist()) == ([0.5, 0.25], [2.0, 3.0])
    single = tc.Predictions.from_frame(pl.DataFrame({"y": [1, 0], "p_1": [0.5, 0.25]}), label="y", probs="p_*")
    assert single.probs.tolist() == [0.5, 0.25]
    missing = pl.DataFrame({"y": [1, 0, 1], "p_a": [0.5, 0.5, 0.5], "p_b": [None, 0.5, 0.5]})
    with pytest.raises(tc.InputError, match="column 'p_b' has 1 missing value, the first in row 0"):
        tc.Predictions.from_frame(missing, label="y", probs="p_*")


def test_quotes_inside_fields_are_text(tmp_path):
    path = tmp_path / "preds.csv"
    path.write_text('y,p,name\n1,0.9,5" pipe\n\n0,0.2,"a ""b"" c"\n1,0.7,""\n0,0.1\n', encoding="utf-8")
    preds = tc.read(path, label="y", probs="p")
    np.testing.assert_array_equal(preds.probs, [0.9, 0.2, 0.7, 0.1])
    np.testing.assert_array_equal(preds.labels, [1, 0, 1, 0])
    assert list(preds.columns["name"][:2]) == ['5" pipe', 'a "b" c']
    assert list(preds.columns["name"][2:]) == [None, None]


def test_quoted_truth_values_are_truth_values(tmp_path):
    path = tmp_path / "preds.csv"
    path.write_text('y,p\n"TRUE",0.9\n"false",0.2\n" True ",0.4\n', encoding="utf-8")
    preds = tc.read(path, label="y", probs="p")
    np.testing.assert_array_equal(preds.labels, [1, 0, 1])


def test_whole_numbers_beyond_64_bits_are_names(tmp_path):
    path = tmp_path / "preds.jsonl"
    large = 2**70 + 1
    path.write_text(f'{{"y": 1, "p": 0.9, "id": {large}}}\n{{"y": 0, "p": 0.2, "id": {large + 1}}}\n', encoding="utf-8")
    preds = tc.read(path, label="y", probs="p")
    assert list(preds.columns["id"]) == [str(large), str(large + 1)]


def test_content_of_exactly_the_limit_is_unpacked_and_more_refused(monkeypatch):
    text = b"y,p\n" + b"1,0.9\n0,0.2\n" * 5
    monkeypatch.setattr(files, "_UNPACKED_AT_ONCE", 16)
    monkeypatch.setattr(files, "unpacked_limit", lambda size: len(text))
    assert files.unpacked(gzip.compress(text), Path("preds.csv.gz")) == text
    monkeypatch.setattr(files, "unpacked_limit", lambda size: 48)
    with pytest.raises(tc.InputError, match=r"preds\.csv\.gz"):
        files.unpacked(gzip.compress(text), Path("preds.csv.gz"))


TWO = "cat,dog,{}\n0.7,0.3,cat\n0.2,0.8,dog\n0.6,0.4,cat\n"


@pytest.mark.parametrize("named", [{}, {"probs": ["cat", "dog"]}, {"label": "truth"}])
def test_two_columns_named_after_both_labels(tmp_path, named):
    path = tmp_path / "preds.csv"
    path.write_text(TWO.format("truth"), encoding="utf-8")
    preds = tc.read(path, **named)
    assert preds.classes == ("cat", "dog")
    np.testing.assert_array_equal(preds.labels, [0, 1, 0])


def test_a_column_of_other_numbers_is_no_class(tmp_path):
    path = tmp_path / "preds.csv"
    path.write_text("cat,dog,age,truth\n0.7,0.3,30.5,cat\n0.2,0.8,41.5,dog\n0.6,0.4,18.5,cat\n", encoding="utf-8")
    preds = tc.read(path)
    assert preds.classes == ("cat", "dog")
    np.testing.assert_array_equal(preds.columns["age"], [30.5, 41.5, 18.5])


def test_several_labels_are_listed_on_one_side_and_a_pattern_on_the_other(tmp_path):
    path = tmp_path / "preds.csv"
    path.write_text("p_a,p_b,y_a,y_b\n0.9,0.2,1,0\n0.1,0.8,0,1\n", encoding="utf-8")
    listed = tc.read(path, multilabel=True, probs=["p_a", "p_b"])
    np.testing.assert_array_equal(listed.labels, tc.read(path, multilabel=True).labels)


def test_the_positive_of_two_numbers(tmp_path):
    path = tmp_path / "preds.csv"
    path.write_text("y,p\n1,0.9\n0,0.2\n0,0.4\n", encoding="utf-8")
    np.testing.assert_array_equal(tc.read(path, label="y", probs="p", pos_label="1").labels, [1, 0, 0])
    swapped = tc.read(path, label="y", probs="p", pos_label="0")
    np.testing.assert_array_equal(swapped.labels, [0, 1, 1])
    np.testing.assert_array_equal(swapped.probs, [0.9, 0.2, 0.4])  # of the class that was named
    with pytest.raises(tc.InputError, match="not among the classes '0' and '1'"):
        tc.read(path, label="y", probs="p", pos_label="2")


def test_an_answer_of_promptfoo_is_correct_if_all_parts_about_it_pass():
    def correct(*parts):
        components = [{"assertion": {"type": kind}, "pass": passed} for kind, passed in parts]
        row = {"testIdx": 0, "success": False, "metadata": {"confidence": 0.7}}
        row["gradingResult"] = {"componentResults": components}
        (answer,) = promptfoo_log({"results": {"prompts": [], "results": [row]}}).answers
        return answer.correct

    assert correct(("equals", True), ("cost", False), ("latency", False))
    assert not correct(("equals", True), ("equals", False))
    assert not correct(("cost", True))  # no part is about the answer, so its "success" decides


def test_missing_values_are_suggested_to_be_dropped_only_where_there_are_any():
    assert _suggest_options(["90%", "0.5"]) == "--percent"
    assert _suggest_options(["90%", "na"]) == "--percent --drop-null"
    assert _suggest_options(["0.5", "maybe"]) == "--words maybe=nan --drop-null"


def test_large_whole_numbers_are_objects_only_beside_missing_ones():
    large = 2**53 + 1
    whole = to_array(nw.from_native(pl.Series([large, 1]), series_only=True))
    assert whole.dtype == np.int64
    assert whole.tolist() == [large, 1]
    assert to_array(nw.from_native(pl.Series([large, None]), series_only=True)).tolist() == [large, None]


def test_lines_of_too_many_different_keys_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MARGIN", 0)
    monkeypatch.setattr(files, "unpacked_limit", lambda size: 3 * files._COLUMN_VALUES * files._CSV_BYTES)
    path = tmp_path / "preds.jsonl"
    path.write_text("{}", encoding="utf-8")
    files._refuse_keys(path, b'{"a": 1, "b": 2}\n{"c": 3, "a": 4}')
    with pytest.raises(tc.InputError, match=r"preds\.jsonl"):
        files._refuse_keys(path, b'{"a": 1, "b": 2}\n{"c": 3, "d": 4}')
