"""Engines as people run them: a connection or session in use, addresses, options for storage."""

import io
import sys
import time

import polars as pl
import pytest

import truecal as tc
from tests.engines.engines import need
from tests.engines.object_store import object_store
from truecal.engines import scan
from truecal.engines.sources import Engine, engine_errors

pytestmark = [pytest.mark.filterwarnings("ignore")]
FRAME = pl.DataFrame({"y": [0, 1, 1], "p": [0.1, 0.8, 0.9]})


def test_duckdb_connection_is_used_as_it_is(tmp_path):
    need("duckdb")
    import duckdb

    FRAME.write_parquet(tmp_path / "a.parquet")
    FRAME.write_csv(tmp_path / "a.csv")
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    for name in ("a.parquet", "a.csv"):
        result = scan(tmp_path / name, label="y", score="p", engine=connection)
        assert (result.rows, result.engine) == (3, "duckdb")
    assert connection.execute("SELECT 1").fetchone() == (1,)
    connection.close()
    with pytest.raises(tc.InputError, match=r"a\.parquet.*(closed|Connection)"):
        scan(tmp_path / "a.parquet", label="y", score="p", engine=connection)


def test_nan_in_a_connection_of_the_user_is_refused(tmp_path):
    need("duckdb")
    import duckdb

    path = tmp_path / "a.parquet"
    FRAME.with_columns(p=pl.Series([0.1, float("nan"), 0.9])).write_parquet(path)
    for source, options in ((path, {"engine": duckdb.connect()}), (duckdb.connect().read_parquet(str(path)), {})):
        with pytest.raises(tc.InputError, match=r"not finite|missing values"):
            scan(source, label="y", score="p", **options)


@pytest.mark.parametrize("address", ["memory://logs/0.csv", "s3://bucket/*.jsonl"])
def test_text_at_an_address_is_refused_with_the_remedy(address):
    with pytest.raises(tc.InputError, match=r"hand over a frame, such as polars\.scan_csv"):
        scan(address, label="y", score="p")


def test_storage_options_are_handed_on(tmp_path, monkeypatch):
    FRAME.write_parquet(tmp_path / "a.parquet")
    results, read = [], pl.scan_parquet
    monkeypatch.setattr(pl, "scan_parquet", lambda *a, **k: results.append(k.pop("storage_options")) or read(*a, **k))
    scan(tmp_path / "a.parquet", label="y", score="p", storage_options={"key": "k"})
    assert results[-1] == {"key": "k"}
    with pytest.raises(tc.InputError, match="duckdb takes credentials from its session"):
        scan(tmp_path / "a.parquet", label="y", score="p", engine="duckdb", storage_options={"key": "k"})


def test_other_objects_are_no_engines(tmp_path):
    FRAME.write_parquet(tmp_path / "a.parquet")
    for engine in (object(), 3, "excel"):
        with pytest.raises(tc.InputError, match="engine must be one of"):
            scan(tmp_path / "a.parquet", label="y", score="p", engine=engine)


def test_stopped_session_is_named():
    need("pyspark")
    from truecal.engines.sources import _spark_session

    class Stopped:
        _sc = type("Context", (), {"_jsc": None})()

    with pytest.raises(tc.InputError, match="the SparkSession is stopped"):
        _spark_session(Engine("spark", Stopped()))
    with (
        pytest.raises(tc.InputError, match=r"the engine could not read: is its session stopped\?"),
        engine_errors("the engine could not read"),
    ):
        raise AssertionError
    with (
        pytest.raises(tc.InputError, match="the engine could not read: nanobind"),
        engine_errors("the engine could not read"),
    ):
        raise RuntimeError("nanobind::str(): conversion error!")  # DuckDB 2, of a message that is no UTF-8


def parquet_bytes(rows):
    sink = io.BytesIO()
    rows.write_parquet(sink)
    return sink.getvalue()


def test_folders_and_patterns_of_an_object_store(monkeypatch):
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    many = pl.DataFrame({"y": [0, 1] * 50, "p": [i / 128 for i in range(100)]})
    objects = {f"bucket/scores/{i}.parquet": parquet_bytes(many[i * 50 : (i + 1) * 50]) for i in range(2)}
    expected = scan(many.lazy(), label="y", score="p")
    with object_store(objects) as storage:
        for address in (
            "s3://bucket/scores/",
            "s3://bucket/scores/*.parquet",
            ["s3://bucket/scores/0.parquet", "s3://bucket/scores/1.parquet"],
        ):
            result = scan(address, label="y", score="p", storage_options=storage)
            assert (result.rows, float(result.measure())) == (100, float(expected.measure()))
        with pytest.raises(tc.InputError) as error:
            scan("s3://bucket/nothing/", label="y", score="p", storage_options=storage)
    assert "\n" not in str(error.value)


def test_folders_of_an_object_store_through_dask():
    need("dask")
    fsspec = pytest.importorskip("fsspec")
    for i in range(2):
        with fsspec.open(f"memory://dask-scores/{i}.parquet", "wb") as file:
            file.write(parquet_bytes(FRAME))
    for address in ("memory://dask-scores/", "memory://dask-scores/*.parquet"):
        result = scan(address, label="y", score="p", engine="dask", storage_options={})
        assert (result.rows, result.engine) == (6, "dask")


@pytest.fixture(
    scope="module",
    params=[{"processes": False}, pytest.param({"processes": True, "host": "127.0.0.1"}, marks=pytest.mark.full)],
)
def client(request):
    need("dask")
    distributed = pytest.importorskip("distributed")
    settings = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "dashboard_address": None,
        "worker_dashboard_address": None,
        "set_as_default": False,
    }
    with distributed.Client(**settings, **request.param) as started:
        yield started


def test_dask_client_is_used_as_it_is(client, tmp_path):
    import dask.dataframe as dd

    many = pl.DataFrame({"y": [0, 1] * 50, "p": [i / 128 for i in range(100)], "g": ["a", "b"] * 50})
    for i in range(4):
        many[i * 25 : (i + 1) * 25].write_parquet(tmp_path / f"{i}.parquet")
    expected = scan(many.lazy(), label="y", score="p", by="g").groups()
    by_path = scan(tmp_path, label="y", score="p", by="g", engine=client)
    with client.as_current():
        by_frame = scan(dd.read_parquet(str(tmp_path)), label="y", score="p", by="g")
    for result in (by_path, by_frame):
        assert {k: (e.n, float(e)) for k, e in result.groups().items()} == {
            k: (e.n, float(e)) for k, e in expected.items()
        }
        assert result.engine == "dask"
    many[:1].with_columns(p=pl.lit(1.5)).write_parquet(tmp_path / "4.parquet")
    with pytest.raises(tc.InputError, match=r"1 row of p not in \[0, 1\]"):
        scan(tmp_path, label="y", score="p", engine=client)


@pytest.mark.full
def test_spark_connect_session_is_used_as_it_is(tmp_path):
    need("pyspark")
    pytest.importorskip("grpc_status")
    from pyspark.sql import SparkSession

    FRAME.write_parquet(tmp_path / "a.parquet")
    session = SparkSession.builder.remote("local[1]").getOrCreate()
    try:
        expected = float(scan(FRAME.lazy(), label="y", score="p").measure())
        for source, options in (
            (tmp_path / "a.parquet", {"engine": session}),
            (session.read.parquet(str(tmp_path / "a.parquet")), {}),
        ):
            assert float(scan(source, label="y", score="p", **options).measure()) == expected
    finally:
        session.stop()
    with pytest.raises(tc.InputError) as error:
        scan(tmp_path / "a.parquet", label="y", score="p", engine=session)
    assert "\n" not in str(error.value)


# ---------------------------------------------------------------------- Spark that does not answer

STOPPED = """
import sys
from pyspark.sql import SparkSession
import truecal as tc
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
frame = session.read.parquet(sys.argv[1])
assert tc.scan(frame, label="y", score="p").rows == 3
session.stop()
for source, options in ((frame, {}), (sys.argv[1], {"engine": session})):
    try:
        tc.scan(source, label="y", score="p", **options)
    except tc.InputError as error:
        print(error)
"""


def run_python(processes, *arguments, **environment):
    """Standard output, the lines of standard error and the seconds that a Python process takes."""
    start = time.monotonic()
    environment = {"SPARK_LOCAL_IP": "127.0.0.1"} | environment
    ran = processes.run(sys.executable, "-W", "ignore", *arguments, env=environment)
    return ran, time.monotonic() - start


@pytest.mark.full
def test_frames_and_files_of_a_stopped_spark_session_are_refused_in_one_line(processes, tmp_path):
    need("pyspark")
    FRAME.write_parquet(tmp_path / "a.parquet")
    ran, _ = run_python(processes, "-c", STOPPED, tmp_path / "a.parquet")
    frame, session = ran.stdout.splitlines()
    assert frame == "the engine could not read the data: is its session stopped?"
    assert session.startswith("the SparkSession is stopped")


@pytest.mark.full
def test_a_spark_master_that_does_not_answer_is_named_in_one_line(processes, tmp_path):
    need("pyspark")
    FRAME.write_parquet(tmp_path / "a.parquet")
    measure = ["-m", "truecal.cli.main", "measure", tmp_path / "a.parquet", "--engine", "spark"]
    ran, seconds = run_python(processes, *measure, PYSPARK_SUBMIT_ARGS="--master spark://127.0.0.1:1 pyspark-shell")
    own_values = [line for line in ran.stderr.splitlines() if line.startswith("truecal: ")]
    assert own_values == ["truecal: no Spark session could be started: is Java installed, and its master reachable?"]
    assert "\tat " not in ran.stderr  # no stack of the Java machine
    assert ran.returncode == 2
    assert seconds < 180  # three attempts of Spark, 20 s each, and its start
