"""Where the data are: files of any number behind a path or pattern, or a frame that an engine already holds; always lazy."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from glob import glob, has_magic
from os.path import isdir, isfile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import narwhals as nw

from truecal.errors import FileError, InputError, MissingExtraError
from truecal.predictions import files

# unlike those of Path they answer for names that no file can have


ENGINES = ("polars", "duckdb", "spark", "dask")
_ENGINE_PACKAGES = ("polars", "duckdb", "_duckdb", "pyspark", "py4j", "dask", "pyarrow", "pandas", "narwhals")
_MOST_WORDS = 300  # characters of what an engine says
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # how that layout writes null
_READ_AHEAD = 20_000  # rows that decide the type of a text column


def is_path(source: object) -> bool:
    """Whether a source is a path, a pattern or a list of these, not a frame."""
    many = isinstance(source, (list, tuple))
    return isinstance(source, (str, Path)) or (many and all(isinstance(part, (str, Path)) for part in source))  # type: ignore[attr-defined]


def files_of(source: str | Path | Sequence[str | Path]) -> list[str]:
    """The files behind paths and patterns, in order. Addresses with a scheme (s3://...) are left to the engine."""
    files: list[str] = []
    if not isinstance(source, (str, Path)) and len(source) == 0:
        raise FileError("no file is named: give a path, a pattern or a list of them")
    for part in [source] if isinstance(source, (str, Path)) else source:
        path = str(part)
        if "://" in path:
            files.append(path)
            continue
        matches = _inside(Path(path)) if isdir(path) else glob(path, recursive=True) if has_magic(path) else [path]
        matches = [match for match in matches if isfile(match) and not Path(match).name.startswith((".", "_"))]
        if not matches and isdir(path):
            raise FileError(f"the folder {path} holds no .csv, .jsonl or .parquet file")
        if not matches:
            raise FileError(f"no file matches {path}" if has_magic(path) else f"there is no file {path}")
        files += sorted(matches)
    return files


def _inside(folder: Path) -> list[str]:
    """Files of a folder and its subfolders that hold rows, by their ending."""
    return [str(file) for file in folder.rglob("*") if _kind(str(file)) is not None]


def folder_values(file: str) -> dict[str, str | None]:
    """What the names of a file's folders say of its rows, in the layout of Hive, Spark and others.

    >>> folder_values("logs/day=2026-05-01/site=north%20pole/part-0.parquet")
    {'day': '2026-05-01', 'site': 'north pole'}
    """
    pairs = (folder.partition("=") for folder in Path(file).parts[:-1])
    return {key: None if value == _NO_VALUE else unquote(value) for key, equals, value in pairs if key and equals}


def _kind(file: str) -> str | None:
    return files.FRAME_FORMATS.get(Path(file.removesuffix(".gz")).suffix.lower())


def format_of(files: Sequence[str]) -> str:
    """csv, ndjson or parquet, by the ending, which all files must share."""
    kinds = {_kind(file) for file in files}
    if len(kinds) != 1 or None in kinds:
        endings = {Path(file).suffix.lower() or f"without ending ({Path(file).name})" for file in files}
        raise FileError(f"files must all be of one kind, .csv, .jsonl or .parquet, not {', '.join(sorted(endings))}")
    return str(kinds.pop())


def opened(files: Sequence[str], engine: str | None) -> tuple[Any, str]:
    """A lazy frame over the files, and the engine that will read them.

    Without a choice: polars, else DuckDB. Measured on 1e8 rows the two are close; polars was the faster and is what reads small
    files already.
    """
    if engine is None:
        engine = "polars" if installed("polars") or not installed("duckdb") else "duckdb"
    if engine not in ENGINES:
        raise InputError(f"engine must be one of {', '.join(ENGINES)}, not {engine!r}")
    kind = format_of(files)
    package = {"spark": "pyspark"}.get(engine, engine)
    if not installed(package):
        raise MissingExtraError.of(package, "files" if engine == "polars" else engine)
    openers: dict[str, Callable[[list[str], str], Any]] = {
        "polars": _polars,
        "duckdb": _duckdb,
        "spark": _spark,
        "dask": _dask,
    }
    shown = Path(files[0]).name + ("" if len(files) == 1 else f" and {len(files) - 1} more")
    with engine_errors(f"{shown}: {engine} cannot read this as {kind}"):
        frame = nw.from_native(openers[engine](list(files), kind)).lazy()
        frame.collect_schema()
        return frame, engine


def installed(package: str) -> bool:
    """Whether a package can be imported, without importing it."""
    from importlib.util import find_spec

    return find_spec(package) is not None


@contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """What an engine says about damaged or unlike files, as an error of ours in one line."""
    try:
        yield
    except Exception as error:
        plain = isinstance(error, (ValueError, OSError)) and not isinstance(error, InputError)
        if not plain and type(error).__module__.partition(".")[0] not in _ENGINE_PACKAGES:
            raise
        raise FileError(f"{what}: {' '.join(str(error).split())[:_MOST_WORDS]}") from error


def frame_of(source: object) -> Any:
    """A lazy narwhals frame over any frame: in memory, polars lazy, DuckDB, Spark, Dask."""
    try:
        return nw.from_native(source).lazy()  # type: ignore[call-overload]
    except TypeError as error:
        raise InputError(
            f"{type(source).__name__} is neither a path nor a data frame that narwhals can read"
        ) from error


def _polars(files: list[str], kind: str) -> Any:
    import polars as pl

    options = {} if kind == "parquet" else {"infer_schema_length": _READ_AHEAD}
    return getattr(pl, f"scan_{kind}")(files, **options)


def _duckdb(files: list[str], kind: str) -> Any:
    import duckdb

    connection = duckdb.connect()
    if kind == "parquet":
        return connection.read_parquet(files, hive_partitioning=False)  # see `folder_values`
    many: Any = files  # both take a list, which their stubs leave out
    return connection.read_csv(many) if kind == "csv" else connection.read_json(many, format="newline_delimited")


def _spark(files: list[str], kind: str) -> Any:
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is None:
        bar = "true" if sys.stderr.isatty() else "false"
        session = SparkSession.builder.appName("truecal").config("spark.ui.showConsoleProgress", bar).getOrCreate()
    reader = session.read
    if kind == "parquet":
        return reader.parquet(*files)
    return reader.csv(files, header=True, inferSchema=True) if kind == "csv" else reader.json(files)


def _dask(files: list[str], kind: str) -> Any:
    import dask.dataframe as dd

    if kind == "parquet":
        return dd.read_parquet(files, dataset={"partitioning": None})  # see `folder_values`
    if kind == "csv":  # by default pandas reads decimals fast, not to the last bit
        return dd.read_csv(files, float_precision="round_trip")
    return dd.read_json(files, lines=True, precise_float=True)
