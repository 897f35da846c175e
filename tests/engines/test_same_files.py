"""The same file gives the same answer, or the same refusal, in memory and on every engine."""

import datetime as dt
import gzip
import os
from decimal import Decimal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import truecal as tc
from tests.engines.engines import ENGINES as ENGINE_FRAMES
from tests.engines.engines import need
from truecal.engines import scan
from truecal.predictions.selection import group_rows

pytestmark = [pytest.mark.filterwarnings("ignore")]  # of the engines' own dependencies
ROWS = [(1, 0.75, "a"), (0, 0.25, "b"), (1, 0.5, "a"), (0, 0.125, "b")]


def csv(rows, separator=",", header="y,p,g"):
    return "\n".join([header.replace(",", separator), *(separator.join(map(str, row)) for row in rows), ""]).encode()


def columns(**values):
    """The bytes of a Parquet file of these columns; y and p as in ROWS."""
    sink = pa.BufferOutputStream()
    y, p, _ = zip(*ROWS, strict=True)
    pq.write_table(pa.table({"y": y, "p": p} | values), sink)
    return sink.getvalue().to_pybytes()


def parquet(rows):
    y, p, g = zip(*rows, strict=True)
    return columns(y=y, p=pa.array(p, pa.float64()), g=g)


def lists(rows, kind="float64", size=-1):
    return columns(q=pa.array(rows, pa.list_(pa.type_for_alias(kind), size)))


INF = float("inf")
DAY, DURATION = dt.datetime(2026, 3, 1, 12), dt.timedelta(seconds=1.5)
ZONED = pa.array([DAY] * 4, pa.timestamp("us", "Asia/Tokyo"))
LISTS = [[0.25, 0.75], [0.5, 0.5], [0.125, 0.875], [1.0, 0.0]]
PROBS, LOGITS = {"probs": "q*"}, {"logits": "z*"}
HALF = np.full(4, 0.33203125, np.float32)  # a third in bfloat16


PLAIN = csv(ROWS)
LATE = csv([(1, 0, "a")] * 25_000 + [(0, 0.7, "b")])
NAN = [(1, 0.75, "a"), (0, float("nan"), "b"), (1, 0.5, "a")]
# name of the file, its bytes, options of the scan, and either the rows that count or a part of the refusal
FILES = {
    "csv": ("x.csv", PLAIN, {}, 4),
    "parquet": ("x.parquet", parquet(ROWS), {}, 4),
    "gz": ("x.csv.gz", gzip.compress(PLAIN), {}, 4),
    "no ending": ("x", PLAIN, {}, 4),
    "packed without another ending": ("x.gz", gzip.compress(PLAIN), {}, 4),
    "packed, in capitals": ("x.CSV.GZ", gzip.compress(PLAIN), {}, 4),
    "parquet without ending": ("x", parquet(ROWS), {}, 4),
    "another ending": ("x.txt", PLAIN, {}, "unknown kind of file"),
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
    "names that differ in case": ("x.parquet", columns(P=[0.5] * 4), {}, "'p' and 'P' differ only in upper and lower case"),
    "names in csv that differ in case": ("x.csv", csv(ROWS, header="y,p,Y"), {}, "'y' and 'Y' differ only in upper and lower case"),
    "other names that differ in case": ("x.parquet", columns(z=[1, 2, 3, 4], Z=[1, 2, 3, 4]), {}, 4),
    "quoted and empty": ("x.csv", csv([*ROWS, (1, 0.5, '""')]), {"select": tc.by_column("g", "")}, "no row"),
    # text as programs write it
    "byte order mark": ("x.csv", b"\xef\xbb\xbf" + PLAIN, {}, 4),
    "CR LF": ("x.csv", PLAIN.replace(b"\n", b"\r\n"), {}, 4),
    "CR alone": ("x.csv", PLAIN.replace(b"\n", b"\r"), {}, 4),
    "quoted lines": ("x.csv", csv([*ROWS, (1, 0.5, '"a\n\n""b"')]), {"select": tc.by_column("g", 'a\n\n"b')}, 1),
    "stray quotes": ("x.csv", csv([*ROWS, (1, 0.5, '5" pipe'), (0, 0.5, '6" pipe')]), {}, 6),
    "stray quotes and NA": ("x.csv", csv([*ROWS, (1, "NA", '5" pipe')]), {"drop_null": True}, 4),
    "open quote": ("x.csv", csv([*ROWS, (1, 0.5, '"a')]), {}, r"line 6.*is a quote not closed"),
    "UTF-16 without a mark": ("x.csv", PLAIN.decode().encode("utf-16-le"), {}, r"x\.csv begins with zero bytes.*UTF-8"),
    "UTF-32": ("x.csv", PLAIN.decode().encode("utf-32"), {}, r"x\.csv begins with zero bytes.*UTF-8"),
    "UTF-16 in jsonl": ("x.jsonl", '{"y": 1, "p": 0.5}\n{"y": 0, "p": 0.25}\n'.encode("utf-16"), {}, 2),
    "latin-1 in jsonl": ("x.jsonl", '{"y": 1, "p": 0.5, "g": "\xe9"}\n'.encode("latin1"), {}, r"x\.jsonl: line 1 is not UTF-8"),
    "short row": ("x.csv", PLAIN + b"1,0.5\n", {"select": tc.by_column("g", "a")}, 2),
    "label words": ("x.csv", csv([("yes", 0.75, "a"), ("no", 0.25, "b")]), {}, 2),
    "label three words": ("x.csv", csv([("yes", 0.5, "a"), ("Yes", 0.5, "a"), ("no", 0.25, "b")]), {}, "labels have 3 values"),
    # types of Parquet
    "decimals": ("x.parquet", columns(y=[Decimal(y) for y, _, _ in ROWS], p=[Decimal(str(p)) for _, p, _ in ROWS]), {}, 4),
    "booleans": ("x.parquet", columns(y=[True, False] * 2, p=[True, False, True, True]), {}, 4),
    "missing truth values": ("x.parquet", columns(y=[True, None, False, True]), {"drop_null": True}, 3),
    "dictionary": ("x.parquet", columns(y=pa.array(["no", "yes"] * 2).dictionary_encode()), {}, 4),
    "large labels": ("x.parquet", columns(y=[1, 0, 2**53 + 1, 0]), {}, "label"),
    "float16": ("x.parquet", columns(p=pa.array(np.array([0.75, 0.25, 0.5, 0.125], np.float16))), {}, 4),
    "bfloat16 that sums to 0.996": ("x.parquet", columns(**dict.fromkeys(("q0", "q1", "q2"), HALF), y=[0, 1, 2, 0]), PROBS, 4),
    "float32 that sums to 0.996": ("x.parquet", columns(q0=HALF, q1=HALF, q2=HALF + np.float32(2e-5)), PROBS, "sum"),
    "lists": ("x.parquet", lists(LISTS), PROBS, 4),
    "lists of float32": ("x.parquet", lists(LISTS, "float32"), PROBS, 4),
    "lists of one length": ("x.parquet", lists(LISTS, size=2), PROBS, 4),
    "missing in a list": ("x.parquet", lists([[None, 1.0], *LISTS[1:]]), {**PROBS, "drop_null": True}, 3),
    "a missing list": ("x.parquet", lists([LISTS[0], None, *LISTS[2:]]), {**PROBS, "drop_null": True}, 3),
    "a longer list": ("x.parquet", lists([*LISTS[:3], [0.25, 0.25, 0.5]]), PROBS, "lists of different lengths|sum other than 1"),
    "structures beside": ("x.parquet", columns(s=[{"a": 1}] * 4), {}, 4),
    "label in a structure": ("x.parquet", columns(y=[{"a": 1}] * 4), {}, "column 'y' holds Struct"),
    # rows and weights
    "logit of -inf": ("x.parquet", columns(z=[-INF, 0.0, 1.0, -1.0]), LOGITS, 4),
    "class ruled out": ("x.parquet", columns(z0=[-INF, 0.0, 1.0, -1.0], z1=[0.0, 0.0, -INF, 2.0]), LOGITS, 4),
    "every class ruled out": ("x.parquet", columns(z0=[-INF, 0.0] * 2, z1=[-INF, 0.0] * 2), LOGITS, "not finite|every class"),
    "logit of inf": ("x.parquet", columns(z=[INF, 0.0, 1.0, -1.0]), LOGITS, "not finite|is inf"),
    "weights far apart": ("x.parquet", columns(w=[1e-13, 1.0, 1.0, 1.0]), {"weights": "w"}, "too small for sums"),
    "tiny weight": ("x.parquet", columns(w=[1e-300] * 4), {"weights": "w"}, "too small for sums"),
    "weights beyond counts": ("x.parquet", columns(w=[2.0**53, 4.0, 1.0, 1.0]), {"weights": "w"}, "counts are exact only up to"),
    "truth values as weights": ("x.parquet", columns(w=[True, True, False, True]), {"weights": "w"}, 3),
    # columns of other types
    "scores of durations": ("x.parquet", columns(p=pa.array([DURATION] * 4, pa.duration("us"))), {}, "numbers"),
    "scores of text in lists": ("x.parquet", columns(q=[["0.5", "0.5"]] * 4), PROBS, "not (text|numbers)"),
    "labels of times": ("x.parquet", columns(y=[DAY, DAY - DURATION] * 2), {}, "labels (in 'y' )?are [Dd]atetime"),
    "labels of dates": ("x.parquet", columns(y=[DAY.date(), dt.date(2026, 1, 1)] * 2), {}, "labels (in 'y' )?are [Dd]ate"),
    "first list missing": ("x.parquet", lists([None, *LISTS[1:]]), {**PROBS, "drop_null": True}, 3),
    "classes as text": ("x.parquet", columns(y=[5, 7] * 2), {"classes": ["5", "7"]}, 4),
    "classes as numbers": ("x.parquet", columns(y=["5", "7"] * 2), {"classes": [5, 7]}, "not among|the classes numbers"),
    "positions named": ("x.parquet", columns(), {"classes": ["no", "yes"], "select": tc.by_label("yes")}, 2),
    "two columns beside words": ("x.parquet", columns(y=["no", "yes"] * 2, q0=[0.5] * 4, q1=[0.5] * 4), PROBS, 4),
    "lists of two beside words": ("x.parquet", columns(y=["no", "yes"] * 2, q=LISTS), PROBS, 4),
    "one column by a pattern": ("x.parquet", columns(y=["no", "yes"] * 2, q_dog=[0.5] * 4), PROBS, 4),
    "three columns beside words": ("x.parquet", columns(y=list("abca"), q0=HALF, q1=HALF, q2=HALF), PROBS, "classes="),
    "scores without a type": ("x.parquet", columns(p=pa.nulls(4)), {}, "missing value"),
    "labels without a type": ("x.parquet", columns(y=pa.nulls(4)), {}, "missing value"),
    "weights without a type": ("x.parquet", columns(w=pa.nulls(4)), {"weights": "w"}, "missing value"),
    "decimal commas in the first column": ("x.csv", b"p;g;y\n0,75;a;1\n0,25;b;0\n", {}, 2),
    # selections
    "missing values": ("x.parquet", columns(g=["a", None, "b", None]), {"select": tc.by_column("g", None)}, 2),
    "missing numbers": ("x.parquet", columns(g=[1.0, None, float("nan"), 2.0]), {"select": tc.by_column("g", None)}, 2),
    "others than a text": ("x.parquet", columns(g=["a", None, "b", None]), {"select": ~tc.by_column("g", "a")}, 3),
    "others than a range": ("x.parquet", columns(g=[1, None, 3, None]), {"select": ~tc.by_column("g", low=2)}, 3),
    "others than neither": ("x.parquet", columns(g=[1, None, 3, 5]), {"select": ~~tc.by_column("g", low=2)}, 2),
    "a float32": ("x.parquet", columns(g=pa.array([0.1, 0.2] * 2, pa.float32())), {"select": tc.by_column("g", 0.1)}, 2),
    "a range of decimals": ("x.parquet", columns(g=[Decimal("1.5"), None] * 2), {"select": tc.by_column("g", low=1)}, 2),
    "a date as text": ("x.parquet", columns(g=[DAY.date(), None] * 2), {"select": tc.by_column("g", "2026-03-01")}, 2),
    "a time as text": ("x.parquet", columns(g=[DAY, None] * 2), {"select": tc.by_column("g", "2026-03-01T12:00")}, 2),
    "no time": ("x.parquet", columns(g=[DAY, None] * 2), {"select": tc.by_column("g", "noon", 12)}, "no row is left"),
    "a time with a zone": ("x.parquet", columns(g=ZONED), {"select": tc.by_column("g", "2026-03-01T13:00+01:00")}, 4),
    "a time in UTC": ("x.parquet", columns(g=ZONED), {"select": tc.by_column("g", DAY)}, 4),
    "number among text": ("x.parquet", parquet(ROWS), {"select": tc.by_column("g", 1)}, "no row is left"),
    "text among numbers": ("x.parquet", columns(g=[1, 2, 1, 2]), {"select": tc.by_column("g", "1")}, "no row is left"),
    "a range of text": ("x.parquet", parquet(ROWS), {"select": tc.by_column("g", low=1)}, "column 'g' holds .* has no range"),
    "a range with NaN": ("x.parquet", columns(g=[1.0, float("nan"), 50.0, None]), {"select": tc.by_column("g", low=20)}, 1),
    "a date": ("x.parquet", columns(g=[DAY.date()] * 2 + [dt.date(2026, 1, 1)] * 2), {"select": tc.by_column("g", DAY.date())}, 2),
}  # fmt: skip
ENGINES = ("polars", "duckdb", "dask", pytest.param("spark", marks=pytest.mark.full))


@pytest.fixture(scope="module")
def spark():
    need("pyspark")
    from pyspark.sql import SparkSession

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.caseSensitive", "true")
    session = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
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
        if case == "float16":  # a type of Parquet that Spark lacks
            (tmp_path / "x.parquet").write_bytes(FILES[case][1])
            with pytest.raises(tc.InputError, match=r"x\.parquet: spark cannot read this as parquet"):
                scan(tmp_path / "x.parquet", label="y", score="p", engine="spark")
            return
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
    options = {"label": "y", **({} if {"probs", "logits"} & set(options) else {"score": "p"}), **options}

    def in_memory():
        named = {name: value for name, value in options.items() if name != "select"}
        estimate = tc.measure(tc.read(path, **named), estimator=estimator, select=options.get("select"))
        return estimate.n, float(estimate)

    def scanned():
        result = scan(path, engine=engine, **options)
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


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
@pytest.mark.parametrize("name", ["_tc_present", "_TC_C"])
def test_columns_named_like_those_of_a_scan_are_refused(tmp_path, engine, name):
    """Weights named _tc_present were overwritten by the mark of rows without missing values: all weighed 1."""
    path = write(tmp_path / "x.parquet", {"y": [0, 1], "p": [0.25, 0.5], name: [0.5, 1.5]})
    with pytest.raises(tc.InputError, match=f"a scan names its own columns _tc_...; rename the column '{name}'"):
        scan(path, label="y", score="p", weights=name, engine=engine)


# values of a column that rows are grouped by, and the names of the groups with their rows, or a part of the refusal
GROUPS = {
    "whole numbers": ([3, 11, 3, None], {"3": 2, "11": 1, "missing": 1}),
    "large": (pa.array([2**64 - 1, 2**53 + 1, 2**53 + 1, None], pa.uint64()), {str(2**53 + 1): 2, str(2**64 - 1): 1, "missing": 1}),
    "beyond 2**63": (pa.array([2**63, 2**63 + 1, 2**63, None], pa.uint64()), {str(2**63): 2, str(2**63 + 1): 1, "missing": 1}),
    "beyond 2**63, close": (pa.array([2**63, 2**63 + 1] * 2, pa.uint64()), {str(2**63): 2, str(2**63 + 1): 2}),
    "floats": ([2.5, 1.0, INF, -1e300], {"-1e+300": 1, "1": 1, "2.5": 1, "inf": 1}),
    "zeros and NaN": ([0.0, -0.0, float("nan"), None], {"0": 2, "missing": 2}),
    "float32": (pa.array([0.1, 0.1, 2.0, None], pa.float32()), {"0.10000000149011612": 2, "2": 1, "missing": 1}),
    "float16": (pa.array(np.array([0.5, 0.5, 2, 3], np.float16)), {"0.5": 2, "2": 1, "3": 1}),
    "truth values": ([True, False, None, True], {"False": 1, "True": 2, "missing": 1}),
    "text": (["", "a, b", "a\nb", "missing"], {"": 1, "a\\nb": 1, "a, b": 1, "missing": 1}),
    "text and nothing": (["missing", None, "b", "b"], {"b": 2, "'missing'": 1, "missing": 1}),
    "categories": (pa.array(["b", "a", None, "b"]).dictionary_encode(), {"a": 1, "b": 2, "missing": 1}),
    "decimals": ([Decimal("1.50"), Decimal("1.5"), Decimal(2), None], {"1.50": 2, "2.00": 1, "missing": 1}),
    "dates": ([DAY.date(), dt.date(1900, 1, 1), None, DAY.date()], {"1900-01-01": 1, "2026-03-01": 2, "missing": 1}),
    "times": (pa.array([DAY, DAY, None, DAY], pa.timestamp("us")), {"2026-03-01 12:00:00": 3, "missing": 1}),
    "nanoseconds": (pa.array([1, 2, None, 2], pa.timestamp("ns")), {"1970-01-01 00:00:00": 3, "missing": 1}),
    "zone": (pa.array([DAY, DAY, None, DAY], pa.timestamp("us", "Asia/Tokyo")), {"2026-03-01 12:00:00": 3, "missing": 1}),
    "nothing": (pa.array([None] * 4, pa.string()), {"missing": 4}),
    "no whole number": (pa.array([None] * 4, pa.int8()), {"missing": 4}),
    "durations": (pa.array([DURATION, DURATION, None, DURATION], pa.duration("us")), "column 'g' holds (D|timed)"),
    "durations in ns": (pa.array([1, 2, None, 3], pa.duration("ns")), "column 'g' holds (D|timed)"),
    "times of day": (pa.array([DAY.time()] * 4, pa.time64("us")), "column 'g' holds [Tt]ime"),
    "bytes": ([b"a", b"b", None, b"a"], "column 'g' holds (B|bytes)"),
    "lists": ([[1], [2]] * 2, "column 'g'"),
    "structures": ([{"a": 1, "b": 2}] * 4, "column 'g'"),
    "maps": (pa.array([[("a", 1)]] * 4, pa.map_(pa.string(), pa.int64())), "'g'"),
}  # fmt: skip
NOT_IN_SPARK = ("float16", "nanoseconds")  # types that it lacks


@pytest.mark.parametrize("values", GROUPS)
@pytest.mark.parametrize("engine", ["memory", *ENGINES])
def test_groups_have_the_same_names_in_memory_and_on_engines(tmp_path, engine, values, request):
    if engine == "spark":
        request.getfixturevalue("spark")
    column, expected = GROUPS[values]
    path = tmp_path / "g.parquet"
    path.write_bytes(columns(g=column))

    def counts():
        if engine == "memory":
            groups = group_rows(tc.read(path, label="y", score="p"), ["g"])
            return dict(zip(groups.names, groups.counts.tolist(), strict=True))
        result = scan(path, label="y", score="p", by="g", engine=engine)
        return {name: result.sketches[key][0].rows for key, name in result.names.items()}

    if engine == "spark" and values in NOT_IN_SPARK:
        expected = "types and names that Spark lacks are read by engine='polars'"
    if isinstance(expected, str):
        with pytest.raises(tc.InputError, match=expected):
            counts()
    else:
        assert list(counts().items()) == list(expected.items())


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
def test_groups_of_frames_without_types_are_refused_by_their_values(engine):
    frame = ENGINE_FRAMES[engine](pa.table({"y": [0, 1], "p": [0.25, 0.75], "g": [DURATION, DURATION]}))
    with pytest.raises(tc.InputError, match="column 'g' holds"):
        scan(frame, label="y", score="p", by="g")


@pytest.mark.full
def test_names_that_spark_takes_for_syntax_are_refused_with_the_remedy(tmp_path, spark):
    for name in ("p.a", "p`a"):
        path = tmp_path / "x.parquet"
        path.write_bytes(columns(**{name: [0.75, 0.25, 0.5, 0.125]}))
        with pytest.raises(tc.InputError, match=r"Spark takes \. and ` .* rename the column"):
            scan(path, label="y", score=name, engine="spark")


def test_whole_numbers_beyond_2_53_beside_missing_ones_stay_apart(tmp_path):
    path = tmp_path / "ids.csv"
    path.write_bytes(csv([(1, 0.5, 2**53 + 1), (0, 0.25, 2**53), (1, 0.75, "NA")]))
    ids = tc.read(path, label="y", score="p").columns["g"]
    assert ids.tolist() == [2**53 + 1, 2**53, None]
    path.write_bytes(csv([(1, 0.5, 7), (0, 0.25, 8), (1, 0.75, "NA")]))
    assert tc.read(path, label="y", score="p").columns["g"].dtype == np.float64


def test_linked_folders_are_read_once(tmp_path):
    days, logs = tmp_path / "days", tmp_path / "logs"
    days.mkdir()
    logs.mkdir()
    for folder, name in ((days, "a"), (logs, "b")):
        write(folder / f"{name}.parquet", {"y": [0, 1], "p": [0.25, 0.75]})
    (logs / "days").symlink_to(days)
    (logs / "loop").symlink_to(logs)
    assert scan(logs, label="y", score="p").rows == 4


def test_labels_of_words_and_of_numbers_are_not_one_column(tmp_path):
    (tmp_path / "0.csv").write_text("y,p\n1,0.5\n")
    (tmp_path / "1.csv").write_text("y,p\nyes,0.5\nno,0.25\n")
    with pytest.raises(tc.InputError, match="text in some files and numbers in others"):
        scan(tmp_path, label="y", score="p")


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


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
def test_a_file_whose_column_has_no_value_and_so_no_type_is_read_beside_others(tmp_path, engine):
    write(tmp_path / "0.parquet", {"y": [0, 1], "p": [0.25, 0.75], "w": [1.5, 0.5]})
    write(tmp_path / "1.parquet", {"y": [0, 1], "p": [0.25, 0.75], "w": [None, None]})
    result = scan(tmp_path, label="y", score="p", weights="w", engine=engine, drop_null=True)
    assert (result.rows, result.dropped) == (2, 2)


def test_empty_files_beside_others_are_skipped(tmp_path):
    (tmp_path / "0.csv").write_text("y,p\n")
    (tmp_path / "1.csv").write_text("y,p\n1,0.5\n0,0.25\n")
    assert scan(tmp_path, label="y", score="p").rows == 2
    (tmp_path / "1.csv").write_text("y,p\n")
    with pytest.raises(tc.InputError, match="no rows"):
        scan(tmp_path, label="y", score="p")
