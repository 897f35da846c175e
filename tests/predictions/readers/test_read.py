"""One reader: every kind of file gives the same predictions, and what cannot be read is refused by name."""

import gzip
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import truecal as tc
from truecal.predictions.readers import ReadRequest, read_file

ROWS = [(1, 0.9), (0, 0.25), (1, 0.5), (0, 0.125)]


def zstd(path, data: bytes):
    with pa.OSFile(str(path), "wb") as file, pa.CompressedOutputStream(file, "zstd") as packed:
        packed.write(data)


def written(folder, kind):
    """The same four rows as a file of a kind."""
    frame = pl.DataFrame({"y": [y for y, _ in ROWS], "p": [p for _, p in ROWS]})
    path = folder / f"preds{kind}"
    csv, lines = frame.write_csv().encode(), frame.write_ndjson().encode()
    records = [{"y": y, "p": p} for y, p in ROWS]
    makers = {
        ".csv": lambda: path.write_bytes(csv),
        ".csv.gz": lambda: path.write_bytes(gzip.compress(csv)),
        ".csv.zst": lambda: zstd(path, csv),
        ".tsv": lambda: path.write_bytes(csv.replace(b",", b"\t")),
        ".semicolon.csv": lambda: path.write_bytes(csv.replace(b",", b";")),
        ".decimal-comma.csv": lambda: path.write_bytes(csv.replace(b",", b";").replace(b".", b",")),
        ".bar.csv": lambda: path.write_bytes(csv.replace(b",", b"|")),
        ".jsonl": lambda: path.write_bytes(lines),
        ".jsonl.gz": lambda: path.write_bytes(gzip.compress(lines)),
        ".jsonl.zst": lambda: zstd(path, lines),
        ".json": lambda: path.write_text(json.dumps(records)),
        ".columns.json": lambda: path.write_text(json.dumps({"y": [y for y, _ in ROWS], "p": [p for _, p in ROWS]})),
        ".parquet": lambda: frame.write_parquet(path),
        ".npz": lambda: np.savez(path, y=np.array([y for y, _ in ROWS]), p=np.array([p for _, p in ROWS])),
    }
    makers[kind]()
    return path


KINDS = (
    ".csv",
    ".csv.gz",
    ".csv.zst",
    ".tsv",
    ".semicolon.csv",
    ".decimal-comma.csv",
    ".bar.csv",
    ".jsonl",
    ".jsonl.gz",
    ".jsonl.zst",
    ".json",
    ".columns.json",
    ".parquet",
    ".npz",
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file_gives_the_same_predictions(tmp_path, kind):
    options = []
    preds = tc.read(written(tmp_path, kind), progress=options.append)
    assert preds.labels.tolist() == [y for y, _ in ROWS]
    assert preds.probs.tolist() == [p for _, p in ROWS]
    assert "label 'y' [detected], probabilities 'p' [detected]" in options[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_without_an_ending_is_told_by_its_first_bytes(tmp_path, kind):
    path = written(tmp_path, kind).rename(tmp_path / "preds")
    assert tc.read(path).probs.tolist() == [p for _, p in ROWS]


@pytest.mark.parametrize(
    ("score", "label"),
    [
        ("confidence", "is_correct"),
        ("confidence", "correct"),
        ("risk", "outcome"),
        ("prob", "label"),
        ("p_true", "correct"),
    ],
)
def test_usual_names_are_recognised_and_said(tmp_path, score, label):
    path = tmp_path / "a.csv"
    path.write_text(f"id,{score},{label}\n1,0.9,1\n2,0.3,0\n")
    options = []
    assert tc.read(path, progress=options.append).probs.tolist() == [0.9, 0.3]
    assert f"label {label!r} [detected], probabilities {score!r} [detected]" in options[0]


def test_correctness_goes_with_a_confidence_and_the_target_does_not(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("confidence,answer,target,correct\n0.9,Rome,Paris,False\n0.8,Oslo,Oslo,True\n")
    assert tc.read(path).labels.tolist() == [0, 1]


def test_a_confidence_in_an_answer_is_not_taken_for_that_of_a_class(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("confidence,prediction,label\n0.9,0,0\n0.8,1,0\n")
    with pytest.raises(tc.InputError, match="whether the answer is correct"):
        tc.read(path)


def test_percent_is_read_when_asked_for_and_never_guessed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("confidence,correct\n90%,1\n 5 %,0\n")
    with pytest.raises(
        tc.InputError, match=r"row 0 is '90%'; if they are percentages, read them with percent=True \(--percent\)"
    ):
        tc.read(path)
    np.testing.assert_allclose(tc.read(path, percent=True).probs, [0.9, 0.05])
    path.write_text("confidence,correct\n90,1\n1,0\n")
    np.testing.assert_allclose(tc.read(path, percent=True).probs, [0.9, 0.01])
    path.write_text("confidence,correct\n90%,1\nhigh,0\n")
    with pytest.raises(tc.InputError, match="row 1 is 'high', which is not percent"):
        tc.read(path, percent=True)


def test_words_stand_for_the_probabilities_given(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("confidence,correct\nlikely,1\nUnsure,0\n30%,0\n")
    assert tc.read(path, words={"likely": 0.8, "unsure": 0.5}).probs.tolist() == [0.8, 0.5, 0.3]
    with pytest.raises(tc.InputError, match="row 0 is 'likely'"):
        tc.read(path, words={"unsure": 0.5})


def test_lists_and_objects_by_class(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"y": 1, "probs": [0.2, 0.5, 0.3]}\n{"y": 2, "probs": [0.1, 0.1, 0.8]}\n')
    assert tc.read(path).probs.tolist() == [[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]
    path.write_text('{"y": "b", "probs": {"a": 0.25, "b": 0.75}}\n{"y": "a", "probs": {"a": 0.5, "b": 0.5}}\n')
    preds = tc.read(path)
    assert preds.classes == ("a", "b")
    assert preds.labels.tolist() == [1, 0]
    path.write_text('{"y": 1, "probs": [0.2, 0.8]}\n{"y": 2, "probs": [0.1, 0.1, 0.8]}\n')
    with pytest.raises(tc.InputError, match="row 0 has 2 values and row 1 has 3"):
        tc.read(path)
    frame = pd.DataFrame({"y": [1, 0], "probs": [[0.2, 0.8], [0.6, 0.4]]})
    assert tc.Predictions.from_frame(frame, label="y", probs="probs").probs.tolist() == [[0.2, 0.8], [0.6, 0.4]]


def test_columns_numbered_from_one_are_refused_unless_classes_say_what_they_are(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,p_1,p_2,p_3\n1,0.8,0.1,0.1\n2,0.2,0.7,0.1\n")
    with pytest.raises(tc.InputError, match=r"numbered 1, 2, 3, not from 0.*--class-names 1,2,3"):
        tc.read(path)
    assert tc.read(path, classes=[1, 2, 3]).labels.tolist() == [0, 1]
    with pytest.raises(tc.InputError, match="contradict the columns"):
        tc.read(path, classes=[3, 2, 1])


def test_class_names_that_contradict_the_columns_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,p_cat,p_dog,p_fox\ncat,0.8,0.1,0.1\ndog,0.2,0.7,0.1\n")
    with pytest.raises(tc.InputError, match="'p_fox' is class 'owl'"):
        tc.read(path, classes=["cat", "dog", "owl"])
    assert tc.read(path, classes=["cat", "dog", "fox"]).labels.tolist() == [0, 1]
    preds = tc.read(path, classes=["fox", "dog", "cat"])
    assert (preds.labels.tolist(), preds.probs.tolist()) == ([2, 1], [[0.1, 0.1, 0.8], [0.1, 0.7, 0.2]])


def test_missing_values_name_the_option_that_leaves_them_out(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,p\n1,0.9\n0,\n1,NaN\n")
    with pytest.raises(tc.InputError, match=r"drop_null=True \(--drop-null\)"):
        tc.read(path)
    options = []
    assert len(tc.read(path, drop_null=True, progress=options.append)) == 1
    assert "2 rows with missing values left out" in options[0]


@pytest.mark.parametrize("library", [pl.DataFrame, pd.DataFrame])
def test_nan_is_dropped_in_frames_of_any_library(library):
    from truecal.predictions.readers import ReadRequest, read_table

    frame = library({"y": [1, 0, 1], "p": [0.5, float("nan"), 0.25]})
    reading = read_table(frame, ReadRequest(drop_null=True))
    assert (len(reading.preds), reading.dropped) == (2, 1)


def test_did_you_mean(tmp_path):
    path = tmp_path / "preds.csv"
    path.write_text("label,confidence\n1,0.9\n")
    with pytest.raises(tc.InputError, match="did you mean 'confidence'"):
        tc.read(path, score="confidense")
    with pytest.raises(tc.errors.FileError, match=r"there is no file .*pred\.csv; did you mean 'preds.csv'"):
        tc.read(tmp_path / "pred.csv")
    with pytest.raises(tc.errors.FileError, match="is empty"):
        tc.read("")
    with pytest.raises(tc.errors.FileError, match="is a folder"):
        tc.read(tmp_path)


def test_options_that_exclude_each_other(tmp_path):
    with pytest.raises(tc.InputError, match="exclude each other"):
        tc.read(tmp_path / "a.csv", score="p", logits="z_*")


def test_many_columns_do_not_take_quadratic_time(monkeypatch):
    """The list of all columns, which is made anew each time, is asked for a few times and not once for every column."""
    results, columns = [], pl.DataFrame.columns
    frame = pl.DataFrame({"y": [0, 1], "p": [0.5, 0.5], **{f"x{i}": [0, 1] for i in range(2000)}})
    monkeypatch.setattr(pl.DataFrame, "columns", property(lambda self: results.append(1) or columns.fget(self)))
    assert len(tc.Predictions.from_frame(frame, label="y", probs="p").columns) == 2000
    assert 1 <= len(results) <= 10


def test_a_column_of_text_names_the_row_that_made_it_text(tmp_path):
    file = tmp_path / "nan.csv"
    file.write_text("y,p\n1,0.9\n0,oops\n1,0.4\n")
    with pytest.raises(tc.InputError, match="row 1 is 'oops'"):
        tc.read(file, label="y", probs="p")
    file.write_text("y,p\n1,0.9\n0,nan\n1,0.4\n")
    with pytest.raises(tc.InputError, match="'p' has 1 missing value, the first in row 1"):
        tc.read(file, label="y", probs="p")


def test_messages_about_numbered_columns_name_at_most_three(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,p_1,p_2,p_3,p_4\n1,0.7,0.1,0.1,0.1\n")
    with pytest.raises(tc.InputError, match=r"numbered 1, 2, 3, \.\.\., not from 0.*classes=\[1, 2, 3, \.\.\.\]"):
        tc.read(path)
    path.write_text("y,p_1,p_2,p_3\n1,0.8,0.1,0.1\n")
    with pytest.raises(tc.InputError, match=r"numbered 1, 2, 3, not from 0"):
        tc.read(path)


def test_a_pattern_with_letters_after_its_star():
    frame = pd.DataFrame({"y": ["b", "a"], "p_a_x": [0.25, 0.5], "p_b_x": [0.75, 0.5]})
    preds = tc.Predictions.from_frame(frame, label="y", probs="p_*_x")
    assert preds.classes == ("a", "b")
    assert preds.labels.tolist() == [1, 0]


def test_a_lazy_frame_is_not_a_frame_in_memory():
    lazy = pl.LazyFrame({"y": [1, 0], "p": [0.5, 0.25]})
    with pytest.raises(tc.InputError, match="is not a data frame that narwhals can read in memory"):
        tc.Predictions.from_frame(lazy, label="y", probs="p")


def test_numeric_labels_are_positions_in_the_names(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,p_a,p_b,p_c\n0,0.8,0.1,0.1\n2,0.2,0.1,0.7\n")
    preds = tc.read(path, classes=["a", "b", "c"])
    assert preds.classes == ("a", "b", "c")
    assert preds.labels.tolist() == [0, 2]


def test_rows_without_what_is_needed_are_left_out(tmp_path):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"y": [1, None, 0, 1], "p": [0.9, 0.1, None, float("nan")], "w": [1.0, 1.0, 1.0, 1.0]}).write_parquet(
        path
    )
    preds = tc.read(path, weights="w", drop_null=True)
    assert preds.probs.tolist() == [0.9]
    assert preds.labels.tolist() == [1]


def test_only_a_column_that_says_so_holds_correct_answers(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,p\n1,0.5\n0,0.25\n")
    assert tc.read(path).classes is None
    path.write_text("correct,p\n1,0.5\n0,0.25\n")
    assert tc.read(path).classes == ("wrong", "correct")
    path.write_text("correct,p_0,p_1,p_2\n1,0.5,0.25,0.25\n2,0.25,0.5,0.25\n")
    assert tc.read(path).classes is None


def test_classes_named_by_a_pattern_need_no_list(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,p_cat,p_dog\ndog,0.5,0.5\ncat,0.75,0.25\n")
    assert tc.read(path, label="y", probs="p_*").classes == ("cat", "dog")


def test_logits_are_kept_beside_the_predictions(tmp_path):
    logits, probs = np.array([[1.0, 2.0], [0.5, 0.0]]), np.array([[0.25, 0.75], [0.5, 0.5]])
    np.savez(tmp_path / "z.npz", logits=logits, labels=[0, 1])
    np.savez(tmp_path / "p.npz", probs=probs, labels=[0, 1])
    np.testing.assert_array_equal(read_file(tmp_path / "z.npz", ReadRequest()).logits, logits)
    assert read_file(tmp_path / "p.npz", ReadRequest()).logits is None


def test_the_first_value_that_is_no_number_is_named(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,p\n1,0.5\n0,0.25\n1,often\n")
    with pytest.raises(tc.InputError, match="row 2 is 'often'"):
        tc.read(path, label="y", probs="p")
