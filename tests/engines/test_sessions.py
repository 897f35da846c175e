"""Engines as people run them: a connection or session in use, addresses, options for storage."""

import polars as pl
import pytest

import truecal as tc
from tests.engines.engines import need
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


def test_text_at_an_address_is_read_like_a_file():
    fsspec = pytest.importorskip("fsspec")
    for i in range(2):
        with fsspec.open(f"memory://logs/{i}.csv", "wb") as file:
            file.write(b"y;p\n1;0,5\n0;NA\n")
    assert scan("memory://logs/0.csv", label="y", score="p", drop_null=True).rows == 1
    result = scan("memory://logs/*.csv", label="y", score="p", drop_null=True, storage_options={})
    assert (result.rows, result.dropped) == (2, 2)
    with pytest.raises(tc.InputError, match=r"nothing\.csv"):
        scan("memory://logs/nothing.csv", label="y", score="p")


def test_storage_options_are_handed_on(tmp_path, monkeypatch):
    FRAME.write_parquet(tmp_path / "a.parquet")
    taken, read = [], pl.scan_parquet
    monkeypatch.setattr(pl, "scan_parquet", lambda *a, **k: taken.append(k.pop("storage_options")) or read(*a, **k))
    scan(tmp_path / "a.parquet", label="y", score="p", storage_options={"key": "k"})
    assert taken == [{"key": "k"}]
    with pytest.raises(tc.InputError, match="duckdb takes credentials from its session"):
        scan(tmp_path / "a.parquet", label="y", score="p", engine="duckdb", storage_options={"key": "k"})


def test_other_objects_are_no_engines(tmp_path):
    FRAME.write_parquet(tmp_path / "a.parquet")
    for engine in (object(), 3, "excel"):
        with pytest.raises(tc.InputError, match="engine must be one of"):
            scan(tmp_path / "a.parquet", label="y", score="p", engine=engine)


def test_stopped_session_is_named():
    need("pyspark")
    from truecal.engines.sources import _session

    class Stopped:
        _sc = type("Context", (), {"_jsc": None})()

    with pytest.raises(tc.InputError, match="the SparkSession is stopped"):
        _session(Engine("spark", Stopped()))
    with (
        pytest.raises(tc.InputError, match=r"the engine could not read: is its session stopped\?"),
        engine_errors("the engine could not read"),
    ):
        raise AssertionError
