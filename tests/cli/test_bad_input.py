"""Whatever is wrong with the input: exit 2, one or two lines on stderr, nothing half-written."""

import sys

import numpy as np
import polars as pl
import pytest

from tests.cli.conftest import binary_frame, class_frame

VERBS = {
    "measure": ["measure", "{file}", "--out", "{out}"],
    "report": ["report", "{file}", "--out", "{out}", "--fast"],
    "verify": ["verify", "{file}", "--out", "{out}"],
    "compare": ["compare", "{file}", "{file2}", "--out", "{out}"],
    "fit": ["recalibrate", "fit", "{file}", "--method", "beta", "--out", "{out}"],
}


def _damaged(folder, name):
    path = folder / name
    frame = binary_frame()
    if name == "missing.csv":
        return path
    if name == "empty.csv":
        path.write_text("")
    elif name == "no_rows.csv":
        path.write_text("y,p\n")
    elif name == "truncated.parquet":
        frame.write_parquet(path)
        path.write_bytes(path.read_bytes()[:-100])
    elif name == "truncated.npz":
        np.savez(path, y=frame["y"], p=frame["p"])
        path.write_bytes(path.read_bytes()[:200])
    elif name == "text.csv":
        frame.with_columns(
            p=pl.when(pl.arange(0, len(frame)) == 3).then(pl.lit("high")).otherwise(pl.col("p").cast(str))
        ).write_csv(path)
    elif name == "nan.csv":
        frame.with_columns(p=pl.when(pl.arange(0, len(frame)) == 3).then(np.nan).otherwise(pl.col("p"))).write_csv(path)
    elif name == "percent.csv":
        frame.with_columns(p=100 * pl.col("p")).write_csv(path)
    elif name == "unknown_label.parquet":
        class_frame().with_columns(
            label=pl.when(pl.arange(0, 400) == 5).then(pl.lit("owl")).otherwise(pl.col("label"))
        ).write_parquet(path)
    elif name == "text_label.csv":
        words = pl.Series("y", ["no", "yes", "perhaps", "yes"] * 100)
        frame.with_columns(words).write_csv(path)
    elif name == "gaps.csv":
        frame.with_columns(p=pl.when(pl.arange(0, len(frame)) == 3).then(None).otherwise(pl.col("p"))).write_csv(path)
    elif name == "other.xlsx":
        path.write_text("y,p\n1,0.5\n")
    elif name == "binary.csv":
        path.write_bytes(bytes(range(256)) * 10)
    return path


CASES = {
    "missing.csv": "there is no file",
    "empty.csv": "empty.csv is empty",
    "no_rows.csv": "has no rows",
    "truncated.parquet": "not a readable parquet file",
    "truncated.npz": "damaged",
    "text.csv": "must be numbers",
    "nan.csv": "1 missing value, the first in row 3",
    "percent.csv": "divide by 100",
    "unknown_label.parquet": "row 5 is 'owl'",
    "text_label.csv": "labels have 3 values ('no', 'perhaps', 'yes')",
    "gaps.csv": "first in row 3",
    "other.xlsx": "unknown kind of file",
    "binary.csv": "",
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", CASES)
def test_bad_files(truecal, tmp_path, verb, name):
    path = _damaged(tmp_path, name)
    other = tmp_path / f"other_{name}"
    if path.exists():
        other.write_bytes(path.read_bytes())
    out = tmp_path / "answer.out"
    ran = truecal(*(part.format(file=path, file2=other, out=out) for part in VERBS[verb]))
    assert ran.code == 2
    assert CASES[name] in ran.err
    assert 1 <= len(ran.err.splitlines()) <= 2
    assert "Traceback" not in ran.err
    assert ran.out == ""
    assert not out.exists()
    assert not [p for p in tmp_path.iterdir() if "part" in p.name]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--label", "nope"], "no column 'nope'"),
        (["--score", "nope"], "no column 'nope'"),
        (["--probs", "q_*"], "no column matches 'q_*'"),
        (["--probs", "p", "--logits", "p"], "exclude each other"),
        (["--weight", "nope"], "no column 'nope'"),
        (["--class-names", "a,b,c"], "3 class names were given for 2 classes"),
        (["--class-names", "@/no/such/file"], "cannot read the class names"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_bad_options(truecal, tmp_path, binary_csv, verb, options, words):
    other, out = tmp_path / "other.csv", tmp_path / "answer.out"
    other.write_bytes(binary_csv.read_bytes())
    ran = truecal(*(part.format(file=binary_csv, file2=other, out=out) for part in VERBS[verb]), *options)
    assert ran.code == 2
    assert words in ran.err
    assert len(ran.err.splitlines()) <= 3  # what was read, the complaint, and where help is
    assert not out.exists()


@pytest.mark.parametrize("verb", VERBS)
def test_unwritable_out(truecal, tmp_path, binary_csv, verb):
    other, old = tmp_path / "other.csv", tmp_path / "old.out"
    other.write_bytes(binary_csv.read_bytes())
    old.write_text("old")
    for out in (tmp_path / "no" / "such" / "answer", tmp_path, "/proc/answer"):
        ran = truecal(*(part.format(file=binary_csv, file2=other, out=out) for part in VERBS[verb]))
        assert ran.code == 2
        assert "cannot write" in ran.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["measure"], "FILE"),
        (["measure", "{file}", "--estimator", "magic"], "magic"),
        (["measure", "{file}", "--estimator", "smooth", "--bins", "3"], "has no --bins"),
        (["measure", "{file}", "--norm", "x"], "'x' is not a valid float"),
        (["measure", "{file}", "--norm", "0.5"], "0.5 is not in the range x>=1"),
        (["measure", "{file}", "--level", "2"], "--level"),
        (["measure", "{file}", "--lens", "magic"], "no lens 'magic'"),
        (["measure", "{file}", "--lens", "class=magic"], "no class 'magic'"),
        (["measure", "{file}", "--by", "nope"], "no column 'nope'"),
        (["measure", "{file}", "--estimator", "all", "--max-error", "0.1"], "one estimator"),
        (["report", "{file}", "--by", "nope"], "no column 'nope'"),
        (["report", "{file}", "--tolerance", "0"], "--tolerance"),
        (["verify", "{file}", "--level", "0.3"], "--level"),
        (["compare", "{file}"], "several files"),
        (["compare", "{file}", "{file}"], "given twice"),
        (["compare", "{file}", "--model", "a"], "NAME=COLUMNS"),
        (["compare", "{file}", "--model", "a=p"], "at least two"),
        (["compare", "{file}", "--model", "a=p", "--model", "a=p"], "given twice"),
        (["recalibrate", "apply", "{file}", "--model", "/no/such", "--out", "x.csv"], "cannot read the recalibrator"),
        (["recalibrate", "apply", "{file}", "--model", "{file}", "--out", "x.csv"], "not JSON"),
        (["recalibrate"], ""),
        (["magic"], "magic"),
    ],
)
def test_bad_requests(truecal, binary_csv, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    ran = truecal(*(part.format(file=binary_csv) for part in arguments))
    assert ran.code == 2
    assert words in ran.err
    assert "Traceback" not in ran.err
    assert [p.name for p in tmp_path.iterdir()] == [binary_csv.name]


def test_other_rows_are_not_compared(truecal, tmp_path, binary_csv):
    other = tmp_path / "other.csv"
    binary_frame(seed=1)[:-1].write_csv(other)
    ran = truecal("compare", binary_csv, other)
    assert ran.code == 2
    assert "pair them by a column" in ran.err


def test_a_mistake_of_ours_is_no_traceback_either(truecal, binary_csv, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(sys.modules["truecal"], "measure", broken, raising=False)
    ran = truecal("measure", binary_csv, "-q")
    assert ran.code == 2
    assert ran.err.splitlines()[0] == "truecal: unexpected ZeroDivisionError: oops"
    monkeypatch.setenv("TRUECAL_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        truecal("measure", binary_csv)


@pytest.mark.parametrize("verb", ["measure", "report", "verify"])
def test_an_empty_file_name_is_not_the_current_folder(truecal, verb):
    ran = truecal(verb, "")
    assert ran.code == 2
    assert "shell variable" in ran.err
