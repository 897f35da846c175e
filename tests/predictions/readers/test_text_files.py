"""One parser for text: separators, encodings, words for missing values, late types, and refusals with file and line."""

import gzip
import io
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import truecal as tc
from truecal.errors import FileError
from truecal.predictions.files import read_frame


def read(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data)
    return read_frame(path)


@pytest.mark.parametrize(
    ("name", "data"),
    {
        "plain": ("a.csv", b"y,p\n1,0.5\n0,0.25\n"),
        "blank lines": ("a.csv", b"\ny,p\n1,0.5\n\n0,0.25\n\n"),
        "blank lines, Windows": ("a.csv", b"y,p\r\n1,0.5\r\n\r\n0,0.25\r\n"),
        "spaces": ("a.csv", b"y, p\n1, 0.5\n0, 0.25\n"),
        "semicolons": ("a.csv", b"y;p\n1;0,5\n0;0,25\n"),
        "tabs": ("a.tsv", b"y\tp\n1\t0.5\n0\t0.25\n"),
        "byte order mark": ("a.csv", b"\xef\xbb\xbfy,p\n1,0.5\n0,0.25\n"),
        "UTF-16": ("a.csv", "y,p\n1,0.5\n0,0.25\n".encode("utf-16")),
        "scientific": ("a.csv", b"y,p\n+1,5E-1\n0,.25\n"),
        "jsonl": ("a.jsonl", b'{"y": 1, "p": 0.5}\n\n{"y": 0, "p": 0.25}\n'),
        "json": ("a.json", b'[{"y": 1, "p": 0.5}, {"y": 0, "p": 0.25}]'),
        "gz": ("a.csv.gz", gzip.compress(b"y,p\n1,0.5\n\n0,0.25\n", mtime=0)),
    }.values(),
)
def test_spellings_of_the_same_rows(tmp_path, name, data):
    frame = read(tmp_path, name, data)
    assert frame.columns == ["y", "p"]
    assert frame.rows() == [(1, 0.5), (0, 0.25)]
    assert frame.dtypes == [pl.Int64, pl.Float64]


def test_blank_line_in_zstd(tmp_path):
    packed = pa.compress(b"y,p\n1,0.5\n\n0,0.25\n", codec="zstd", asbytes=True)
    assert read(tmp_path, "a.csv.zst", packed).rows() == [(1, 0.5), (0, 0.25)]


def test_missing_words_are_missing_among_numbers_and_text_among_text(tmp_path):
    frame = read(tmp_path, "a.csv", b"y,p,country\n1,NA,NA\n0,0.25,DE\nn/a,nan,FR\n")
    assert frame.rows() == [(1, None, "NA"), (0, 0.25, "DE"), (None, None, "FR")]


def test_type_is_decided_by_all_rows(tmp_path):
    frame = read(tmp_path, "a.csv", b"y,p\n" + b"1,0\n" * 30_000 + b"0,0.7\n")
    assert frame["p"].dtype == pl.Float64
    assert frame["p"][-1] == 0.7


@pytest.mark.parametrize("words", [b"true,True,TRUE", b"false,False,NA"])
def test_truth_values(tmp_path, words):
    rows = b"".join(word + b",0.5\n" for word in words.split(b","))
    assert read(tmp_path, "a.csv", b"y,p\n" + rows)["y"].dtype == pl.Boolean


def test_nan_in_jsonl_is_a_missing_value(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"y": 1, "p": NaN}\n{"y": 0, "p": 0.25}\n{"y": 1, "p": 0.5}\n')
    with pytest.raises(tc.InputError, match="'p' has 1 missing value, the first in row 0"):
        tc.read(path)
    assert len(tc.read(path, drop_null=True)) == 2


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.csv", b"y,p\n1,0.5\n0,0.2,7\n", r"a\.csv.*line 3 has 3 fields and the header 2; delete the line"),
        ("a.csv", b'y,p\n1,0.5\n0,"0.2\n1,0.3\n', r"a\.csv.*line 3: .*quote"),
        ("a.csv", b"y,p\n1,0.5\n0,\xff\n", r"a\.csv: line 3 is not UTF-8 \(byte 0xff\); save the file as UTF-8"),
        ("a.csv", b"y,p,p\n1,0.5,0.5\n", r"a\.csv: two columns are named 'p'"),
        ("a.jsonl", b'{"y": 1, "p": 0.5}\n{"y": 0, "p"', r"a\.jsonl.*line 2, column 13: .*repair or delete the line"),
    ],
)
def test_refusals_name_file_and_line(tmp_path, name, data, words):
    with pytest.raises(FileError, match=words):
        read(tmp_path, name, data)


# ---------------------------------------------------------------------- bounded unpacking


def zstd_zeros(size):
    """zstd data of zeros."""
    return pa.compress(b"0" * size, codec="zstd", asbytes=True)


def npz_zeros(size):
    packed = io.BytesIO()
    np.savez_compressed(packed, y=np.zeros(size, np.int8), p=np.zeros(4))
    return packed.getvalue()


@pytest.mark.parametrize(
    ("name", "pack"), [("a.csv.gz", lambda n: gzip.compress(b"0" * n)), ("a.csv.zst", zstd_zeros), ("a.npz", npz_zeros)]
)
def test_unpacked_size_is_bounded(tmp_path, name, pack, monkeypatch):
    monkeypatch.setattr("truecal.predictions.files._ALWAYS_UNPACKED", 10**6)
    path = tmp_path / name
    path.write_bytes(pack(20_000_000))
    with pytest.raises(FileError, match=rf"{name} has .* bytes and unpacks to more than .*TRUECAL_MAX_UNPACKED="):
        tc.read(path)
    monkeypatch.setenv("TRUECAL_MAX_UNPACKED", "1e8")
    with pytest.raises(tc.InputError) as refusal:
        tc.read(path)
    assert "unpacks to" not in str(refusal.value)


def test_text_and_lists_of_parquet_are_bounded(tmp_path):
    """Values that are repeated take a kilobyte in Parquet."""
    path = tmp_path / "bomb.parquet"
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 2000, pa.int32()), pa.array(["x" * 100_000]))
    ends = pa.array([0, *[20_000_000] * 2000], pa.int32())
    items = pa.ListArray.from_arrays(ends, pa.array(np.zeros(20_000_000, np.int8)))
    for values in (text, text.cast(pa.string()), items):
        pq.write_table(pa.table({"y": [0, 1] * 1000, "p": [0.25, 0.5] * 1000, "g": values}), path, compression="zstd")
        with pytest.raises(FileError, match=r"bomb\.parquet has .* unpacks to more than 100,000,000"):
            tc.read(path, label="y", score="p")


def test_values_of_arrays_are_bounded(tmp_path):
    """A byte a value unpacks to little, and takes as much as any other when it is checked and sorted."""
    path = tmp_path / "bytes.npz"
    np.savez_compressed(path, y=np.zeros(37_000_000, np.int8), p=np.zeros(4))
    with pytest.raises(FileError, match=r"bytes\.npz has .* values, which take 1\.2 GB .*TRUECAL_MAX_UNPACKED="):
        tc.read(path)


def test_rows_of_parquet_are_bounded(tmp_path, monkeypatch):
    """A million equal rows take a kilobyte in Parquet."""
    path = tmp_path / "bomb.parquet"
    pl.select(y=pl.repeat(1, 10**6), p=pl.repeat(0.5, 10**6)).write_parquet(path)
    assert len(tc.read(path, label="y", score="p")) == 10**6
    monkeypatch.setenv("TRUECAL_MAX_UNPACKED", "1e7")
    with pytest.raises(tc.InputError, match=r"bomb\.parquet has .* unpacks to more than 10,000,000"):
        tc.read(path, label="y", score="p")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sparse.jsonl", b"".join(b'{"k%d": 1}\n' % i for i in range(6200))),
        ("list.jsonl", b'{"y":1,"p":[' + b"1," * 5_000_000 + b"1]}\n"),
        ("objects.json", b"[" + b"{}," * 2_500_000 + b"{}]"),
        ("objects.jsonl", b'{"p": NaN}\n' + b"{}\n" * 2_500_000),
        ("wide.csv", b"y,p" + b",a" * 1_250_000 + b"\n1,0.5\n"),
        ("blank.csv", b"y,p\n1,0.5\n" + b"\n" * 19_000_000),
        ("quotes.csv", b'y,p\n1,0.5"a\n' + b'1,0"\n' * 4_000_000),
    ],
)
def test_small_files_of_too_many_values_are_refused(tmp_path, name, text):
    path = tmp_path / f"{name}.gz"
    path.write_bytes(gzip.compress(text, 1))
    for read in (tc.read, read_frame):  # that of a scan
        with pytest.raises(FileError, match=rf"{name}.gz has .* values, which take .*TRUECAL_MAX_UNPACKED="):
            read(path)


def test_rows_of_too_many_different_keys_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("truecal.predictions.files.MARGIN", 10**6)
    path = tmp_path / "keys.jsonl.gz"
    path.write_bytes(gzip.compress(b"{" + b",".join(b'"%d":1' % i for i in range(150_000)) + b"}\n", 1))
    with pytest.raises(FileError, match=r"keys\.jsonl\.gz has .* values, which take"):
        read_frame(path)


def test_an_archive_of_too_many_values_is_refused(tmp_path):
    path = tmp_path / "lists.eval"
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        archive.writestr("header.json", b'{"eval":[' + b"[]," * 2_500_000 + b"[]]}")
        archive.writestr("samples/1.json", b"{}")
    with pytest.raises(FileError, match=r"lists\.eval has .* values, which take"):
        tc.read(path)
