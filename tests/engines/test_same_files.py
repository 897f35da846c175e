"""The same file gives the same answer, or the same refusal, in memory and on every engine."""

import gzip
import os

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import truecal as tc
from tests.engines.engines import need
from truecal.engines import scan

pytestmark = [pytest.mark.filterwarnings("ignore")]  # of the engines' own dependencies
ROWS = [(1, 0.75, "a"), (0, 0.25, "b"), (1, 0.5, "a"), (0, 0.125, "b")]


def csv(rows, separator=",", header="y,p,g"):
    return "\n".join([header.replace(",", separator), *(separator.join(map(str, row)) for row in rows), ""]).encode()


def parquet(rows):
    sink = pa.BufferOutputStream()
    columns = list(zip(*rows, strict=True))
    table = pa.table({"y": pa.array(columns[0]), "p": pa.array(columns[1], pa.float64()), "g": pa.array(columns[2])})
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


PLAIN = csv(ROWS)
LATE = csv([(1, 0, "a")] * 25_000 + [(0, 0.7, "b")])
NAN = [(1, 0.75, "a"), (0, float("nan"), "b"), (1, 0.5, "a")]
# name of the file, its bytes, options of the scan, and either the rows that count or a part of the refusal
FILES = {
    "csv": ("x.csv", PLAIN, {}, 4),
    "parquet": ("x.parquet", parquet(ROWS), {}, 4),
    "gz": ("x.csv.gz", gzip.compress(PLAIN), {}, 4),
    "tabs": ("x.tsv", csv(ROWS, "\t"), {}, 4),
    "semicolons": ("x.csv", csv([(y, str(p).replace(".", ","), g) for y, p, g in ROWS], ";"), {}, 4),
    "spaces": ("x.csv", csv(ROWS, ", "), {}, 4),
    "blank lines": ("x.csv", PLAIN.replace(b"0,0.25", b"\n0,0.25") + b"\n\n", {}, 4),
    "UTF-16": ("x.csv", PLAIN.decode().encode("utf-16"), {}, 4),
    "truth values": ("x.csv", csv([(bool(y), p, g) for y, p, g in ROWS]), {}, 4),
    "late type": ("x.csv", LATE, {}, 25_001),
    "jsonl": ("x.jsonl", pl.DataFrame(ROWS, ["y", "p", "g"], orient="row").write_ndjson().encode(), {}, 4),
    "NaN in jsonl": ("x.jsonl", b'{"y": 1, "p": NaN}\n{"y": 0, "p": 0.5}\n', {"drop_null": True}, 1),
    "NA refused": ("x.csv", csv([*ROWS, (1, "NA", "a")]), {}, "missing value"),
    "NA dropped": ("x.csv", csv([*ROWS, (1, "NA", "a")]), {"drop_null": True}, 4),
    "NA label dropped": ("x.csv", csv([*ROWS, ("NA", 0.5, "a")]), {"drop_null": True}, 4),
    "NaN refused": ("x.parquet", parquet(NAN), {}, "missing value"),
    "NaN dropped": ("x.parquet", parquet(NAN), {"drop_null": True}, 2),
    "rounding": ("x.csv", csv([*ROWS, (1, 1 + 1e-9, "a")]), {}, "this is rounding: clip"),
    "outside": ("x.parquet", parquet([*ROWS, (1, 2.5, "a")]), {}, "logits"),
    "ragged": ("x.csv", PLAIN + b"1,0.5,a,9\n", {}, r"x\.csv.*line 6 has 4 fields"),
    "truncated": ("x.jsonl", b'{"y": 1, "p": 0.5}\n{"y": 0, "p"', {}, r"x\.jsonl.*line 2"),
    "no object": ("x.jsonl", b'{"y": 1, "p": 0.5}\n\n5\n', {}, r"x\.jsonl.*: line 3 is not an object"),
    "latin-1": ("x.csv", csv([*ROWS, (1, 0.5, "\xe9")]).decode().encode("latin1"), {}, r"x\.csv: line 6 is not UTF-8"),
    "names twice": ("x.csv", csv(ROWS, header="y,p,p"), {}, "two columns are named 'p'"),
    "text": ("x.csv", csv([*ROWS, (1, "high", "a")]), {}, "column 'p'"),
}
ENGINES = ("polars", "duckdb", "dask", pytest.param("spark", marks=pytest.mark.full))


@pytest.fixture(scope="module")
def spark():
    need("pyspark")
    from pyspark.sql import SparkSession

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", "1").getOrCreate()
    yield session
    session.stop()


def answer(run):
    """Rows and error, or the refusal."""
    try:
        return run()
    except tc.InputError as error:
        return str(error)


@pytest.mark.parametrize("case", FILES)
@pytest.mark.parametrize("engine", ENGINES)
def test_same_answer_or_refusal_in_memory_and_on_engines(tmp_path, engine, case, request):
    if engine == "spark":
        request.getfixturevalue("spark")
    check(tmp_path, engine, case)


@pytest.mark.full
def test_spark_reads_text_and_parquet_like_memory(tmp_path, spark):
    for case in ("semicolons", "NA dropped", "NaN refused"):
        check(tmp_path, "spark", case)


def check(tmp_path, engine, case):
    need("pyspark" if engine == "spark" else engine)
    name, data, options, expected = FILES[case]
    path = tmp_path / name
    path.write_bytes(data)
    estimator = tc.BinnedECE()

    def in_memory():
        preds = tc.read(path, label="y", score="p", **options)
        return len(preds), float(tc.measure(preds, estimator=estimator))

    def scanned():
        result = scan(path, label="y", score="p", engine=engine, **options)
        return result.rows, float(result.measure(estimator=estimator))

    memory, engines = answer(in_memory), answer(scanned)
    if isinstance(expected, int):
        assert memory == (expected, pytest.approx(engines[1], abs=1e-12)), (memory, engines)
        assert engines[0] == expected
    else:
        for words in (memory, engines):
            assert isinstance(words, str), words
            with pytest.raises(tc.InputError, match=expected):
                raise tc.InputError(words)


# ---------------------------------------------------------------------- NaN, names, groups, the same file twice


def write(path, columns):
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
def test_nan_in_parquet_is_refused_in_groups_classes_and_weights(tmp_path, engine):
    nan = float("nan")
    rows = {"y": [0, 1, 1, 0], "p": [0.1, 0.9, nan, 0.2], "w": [1.0, 1.0, 1.0, 1.0], "g": ["a", "a", "b", "b"]}
    path = write(tmp_path / "n.parquet", rows)
    classes = {"y": [0, 1, 1], "q_0": [0.5, nan, 0.25], "q_1": [0.5, nan, 0.75]}
    wide = write(tmp_path / "m.parquet", classes)
    heavy = write(tmp_path / "w.parquet", {**rows, "p": [0.1, 0.9, 0.5, 0.2], "w": [1.0, nan, 1.0, 1.0]})
    for file, options in (
        (path, {"score": "p", "by": "g"}),
        (path, {"score": "p", "weights": "w"}),
        (heavy, {"score": "p", "weights": "w"}),
        (wide, {"probs": "q_*"}),
        (wide, {"probs": "q_*", "lens": tc.ClassWise()}),
    ):
        with pytest.raises(tc.InputError, match="1 row with missing values"):
            scan(file, label="y", engine=engine, **options)
        assert scan(file, label="y", engine=engine, drop_null=True, **options).dropped == 1


def test_class_wise_refusals_do_not_depend_on_how_rows_are_divided(tmp_path):
    q = np.full((60, 3), 1 / 3)
    q[[5, 25, 45], 0] = [1.5, 2.5, -0.5]  # one class of one row in each of three files
    for part in range(3):
        rows = slice(20 * part, 20 * part + 20)
        write(tmp_path / f"{part}.parquet", {"y": np.arange(20) % 3, **{f"q_{k}": q[rows, k] for k in range(3)}})
    messages = set()
    for engine in ("polars", "duckdb", "dask"):
        with pytest.raises(tc.InputError) as refusal:
            scan(tmp_path, label="y", engine=engine, probs="q_*", lens=tc.ClassWise())
        messages.add(str(refusal.value))
    assert len(messages) == 1, messages
    assert "-0.5 to 2.5" in messages.pop()


@pytest.mark.parametrize("engine", ENGINES)
def test_names_with_brackets_and_stars_are_names(tmp_path, engine, request):
    if engine == "spark":
        request.getfixturevalue("spark")
    need("pyspark" if engine == "spark" else engine)
    for i, name in enumerate(("day1", "day[1]", "day*", "d{a,b}?")):
        write(tmp_path / f"{name}.parquet", {"y": [0, 1] * (i + 1), "p": [0.25, 0.75] * (i + 1)})
    for i, name in enumerate(("day1", "day[1]", "day*", "d{a,b}?")):
        assert scan(tmp_path / f"{name}.parquet", label="y", score="p", engine=engine).rows == 2 * (i + 1)
    assert scan(tmp_path, label="y", score="p", engine=engine).rows == 20


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
@pytest.mark.parametrize("weights", [None, "weight"])
def test_groups_may_have_any_name(tmp_path, engine, weights):
    for name in ("n", "w", "r", "rr", "ry", "low", "high", "y", "fraction", "ww"):
        rows = {"label": [0, 1, 1], "p": [0.1, 0.9, 0.8], "weight": [1.0, 2.0, 1.0], name: ["a", "a", "b"]}
        path = write(tmp_path / "g.parquet", rows)
        result = scan(path, label="label", score="p", by=name, weights=weights, engine=engine)
        assert {group: parts[0].rows for group, parts in result.sketches.items()} == {("a",): 2, ("b",): 1}


def test_same_file_twice_is_refused(tmp_path):
    path = write(tmp_path / "a.parquet", {"y": [0, 1], "p": [0.25, 0.75]})
    (tmp_path / "b.parquet").symlink_to(path)
    for files in ([path, path], [path, tmp_path / "b.parquet"], [tmp_path, path]):
        with pytest.raises(tc.errors.FileError, match="its rows would count twice"):
            scan(files, label="y", score="p")


def test_bad_file_among_several_is_named(tmp_path):
    for i in range(3):
        rows = {"y": [0, 1], "p": [0.25, 1.5 if i == 1 else 0.75]}
        write(tmp_path / f"{i}.parquet", rows)
        (tmp_path / f"{i}.csv").write_text("y,p\n1,0.5\n" + ("1,2,3\n" if i == 1 else ""))
    with pytest.raises(tc.InputError, match=r"not in \[0, 1\].*\(first in 1\.parquet\)"):
        scan(f"{tmp_path}/*.parquet", label="y", score="p")
    with pytest.raises(tc.InputError, match=r"1\.csv.*line 3 has 3 fields"):
        scan(f"{tmp_path}/*.csv", label="y", score="p")
    data = (tmp_path / "2.parquet").read_bytes()
    (tmp_path / "2.parquet").write_bytes(data[:8] + bytes(len(data[8:60])) + data[60:])
    (tmp_path / "1.parquet").unlink()
    with pytest.raises(tc.InputError, match=r"2\.parquet|sums"):
        scan(f"{tmp_path}/*.parquet", label="y", score="p")


def test_empty_files_beside_others_are_skipped(tmp_path):
    (tmp_path / "0.csv").write_text("y,p\n")
    (tmp_path / "1.csv").write_text("y,p\n1,0.5\n0,0.25\n")
    assert scan(tmp_path, label="y", score="p").rows == 2
    (tmp_path / "1.csv").write_text("y,p\n")
    with pytest.raises(tc.InputError, match="no rows"):
        scan(tmp_path, label="y", score="p")
