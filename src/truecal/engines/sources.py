"""Where the data are: files of any number behind a path or pattern, or a frame that an engine already holds; always lazy."""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import escape, glob, has_magic
from os import stat, walk
from os.path import isdir, isfile, realpath  # unlike those of Path they answer for names that no file can have
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import narwhals as nw

from truecal.errors import FileError, InputError, MissingExtraError, TruecalError
from truecal.predictions.files import kind_by_name, kind_of, read_frame
from truecal.predictions.validation import LARGEST_EXACT

_FORMATS = ("csv", "ndjson", "parquet")  # that are scanned
ENGINES = ("polars", "duckdb", "spark", "dask")
_ENGINE_PACKAGES = (
    "polars",
    "duckdb",
    "_duckdb",
    "pyspark",
    "py4j",
    "grpc",
    "dask",
    "distributed",
    "pyarrow",
    "pandas",
)
_SESSION_PACKAGES = {"pyspark": "spark", "duckdb": "duckdb", "_duckdb": "duckdb", "distributed": "dask"}
_MAX_CHARACTERS = 300  # by choice: characters of what an engine says
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # how that layout writes null


def is_path(source: object) -> bool:
    """Whether a source is a path, a pattern or a list of these (also an empty one), not a frame.

    >>> is_path("a.csv"), is_path(["a.csv", "b.csv"]), is_path({"a": 1})
    (True, True, False)
    """
    is_list = isinstance(source, (list, tuple))
    return isinstance(source, (str, Path)) or (is_list and all(isinstance(part, (str, Path)) for part in source))  # type: ignore[attr-defined]


def files_of(source: str | Path | Sequence[str | Path]) -> list[str]:
    """List the files behind paths, folders and patterns: parts in the order given, files of each sorted by name.

    Addresses with a scheme (s3://...) are returned as they are. Files whose names begin with "." or "_" are left out of folders and
    patterns. Refuses what matches nothing, and a file named twice.
    """
    files: list[str] = []
    if not isinstance(source, (str, Path)) and len(source) == 0:
        raise FileError("no file is named: give a path, a pattern or a list of them")
    for part in [source] if isinstance(source, (str, Path)) else source:
        path = str(part)
        if "://" in path:
            files.append(path)
            continue
        if isfile(path):  # also where its name holds brackets or stars
            files.append(path)
            continue
        matches = _data_files(Path(path)) if isdir(path) else glob(path, recursive=True)
        matches = [match for match in matches if isfile(match) and not Path(match).name.startswith((".", "_"))]
        if not matches and isdir(path):
            raise FileError(f"the folder {path} holds no .csv, .jsonl or .parquet file")
        if not matches:
            raise FileError(f"no file matches {path}" if has_magic(path) else f"there is no file {path}")
        files += sorted(matches)
    refuse_twice(files)
    return files


def refuse_twice(files: Sequence[str]) -> None:
    """Refuse a file that is named twice, also by a link to it: its rows would count twice.

    >>> refuse_twice(["a.csv", "a.csv"])
    Traceback (most recent call last):
        ...
    truecal.errors.FileError: a.csv is named twice, and its rows would count twice; name it once
    """
    names: dict[object, str] = {}
    for file in files:
        key: object = file
        if isfile(file):
            status = stat(file)
            key = status.st_dev, status.st_ino
        if key in names:
            problem = "is named twice" if names[key] == file else f"and {names[key]} are the same file"
            raise FileError(f"{file} {problem}, and its rows would count twice; name it once")
        names[key] = file


def _data_files(folder: Path) -> list[str]:
    """List the data files (by their ending) of a folder and its subfolders, following links but no loop of them.

    Paths are texts, in the order of `os.walk`; the kinds of files are `_FORMATS` (see `kind_by_name`).
    """
    files, visited = [], set[str]()
    for parent, folders, names in walk(folder, followlinks=True):
        if realpath(parent) in visited:  # a link to a folder above it
            folders.clear()
            continue
        visited.add(realpath(parent))
        files += [str(Path(parent, name)) for name in names if kind_by_name(name) in _FORMATS]
    return files


def folder_values(file: str) -> dict[str, str | None]:
    """Return the columns in the names of a file's folders (`name=value`), in the layout of Hive and Spark; None is null.

    >>> folder_values("logs/day=2026-05-01/site=north%20pole/part-0.parquet")
    {'day': '2026-05-01', 'site': 'north pole'}
    """
    pairs = (folder.partition("=") for folder in Path(file).parts[:-1])
    return {key: None if value == NO_VALUE else unquote(value) for key, equals, value in pairs if key and equals}


def _format_of_file(file: str) -> str | None:
    """Return csv, ndjson or parquet by the name or content of a file (see `kind_of`); None for other kinds.

    >>> _format_of_file("a.parquet"), _format_of_file("a.csv.gz"), _format_of_file("s3://bucket/folder/")
    ('parquet', 'csv', 'parquet')
    """
    if "://" in file and file.endswith("/"):  # a folder of an object store, which the engine lists
        return "parquet"
    kind = kind_of(Path(file)) if isfile(file) else kind_by_name(file)
    return kind if kind in _FORMATS else None


def format_of(files: Sequence[str]) -> str:
    """Return csv, ndjson or parquet, the one format of all files; refuse files of several formats or of others.

    >>> format_of(["a.csv", "b.csv"])
    'csv'
    """
    kinds = {_format_of_file(file) for file in files}
    if len(kinds) != 1 or None in kinds:
        endings = {Path(file).suffix.lower() or f"without ending ({Path(file).name})" for file in files}
        raise FileError(f"files must all be of one kind, .csv, .jsonl or .parquet, not {', '.join(sorted(endings))}")
    return str(kinds.pop())


def is_text(files: Sequence[str]) -> bool:
    """Whether the files hold text (csv or ndjson), which is parsed in memory, file by file; refuse files of several formats.

    >>> is_text(["a.csv"]), is_text(["a.parquet"])
    (True, False)
    """
    return format_of(files) != "parquet"


@dataclass(frozen=True)
class Engine:
    """What reads files: its name, the session or connection handed over (else None), and options for addresses (s3://...)."""

    name: str
    session: Any = None
    storage_options: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, engine: Any = None, storage_options: Mapping[str, Any] | None = None) -> "Engine":
        """Choose the engine by a name, a SparkSession, a DuckDB connection, a Dask client, or None: polars, else DuckDB.

        Refuses other engines, and storage options beside DuckDB and Spark. Measured on 1e8 rows polars and DuckDB are close;
        polars was the faster and is what reads small files already.
        """
        if isinstance(engine, Engine):
            return engine
        if engine is None:
            engine = "polars" if installed("polars") or not installed("duckdb") else "duckdb"
        package = type(engine).__module__.partition(".")[0]
        name = _SESSION_PACKAGES.get(package, engine)
        if name not in ENGINES:
            raise InputError(
                f"engine must be one of {', '.join(ENGINES)}, a SparkSession, a DuckDB connection or a Dask client, not {engine!r}"
            )
        if storage_options is not None and name in ("duckdb", "spark"):
            raise InputError(f"{name} takes credentials from its session; hand it over, set up: engine=session")
        return cls(name, None if engine is name else engine, storage_options)


def open_frame(files: Sequence[str], engine: Any = None) -> tuple[Any, str]:
    """Open Parquet files, or one text file, as a lazy frame; return also the name of the engine. See `Engine.of`.

    Text is parsed by `truecal.predictions.files` and is a polars frame whatever the engine: it is in memory already.
    """
    engine = Engine.of(engine)
    name = engine.name
    package = {"spark": "pyspark"}.get(name, name)
    if not installed(package):
        raise MissingExtraError.of(package, "files" if name == "polars" else name)
    if is_text(files):
        (file,) = files
        if "://" in file:
            raise InputError(
                f"text is read from files of this machine, not from {file}; hand over a frame, such as polars.scan_csv(...)"
            )
        return nw.from_native(read_frame(Path(file))).lazy(), name
    listed = Path(files[0]).name + ("" if len(files) == 1 else f" and {len(files) - 1} more")
    remedy = (
        "; types and names that Spark lacks are read by engine='polars' (--engine polars)" if name == "spark" else ""
    )
    with engine_errors(f"{listed}: {name} cannot read this as parquet{remedy}"):
        frame = nw.from_native(_SCAN[name](list(files), engine)).lazy()
        frame.collect_schema()
        return frame, name


def installed(package: str) -> bool:
    """Whether a package can be imported, without importing it.

    >>> installed("numpy"), installed("no_such_package")
    (True, False)
    """
    from importlib.util import find_spec

    return find_spec(package) is not None


@contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """Raise errors of an engine or its files as FileError in one line, begun by `what`; let errors of other code pass."""
    try:
        yield
    except BaseException as error:
        panic = type(error).__name__ == "PanicException"  # of polars, about a damaged file
        if isinstance(error, TruecalError) or not (panic or isinstance(error, Exception)):
            raise
        if isinstance(error, AssertionError) and not str(error):  # raised by PySpark for a stopped session
            raise InputError(f"{what}: is its session stopped?") from error
        is_known = (
            panic or isinstance(error, (ValueError, OSError)) or type(error) is RuntimeError
        )  # of the binding of DuckDB
        if not is_known and type(error).__module__.partition(".")[0] not in _ENGINE_PACKAGES:
            raise
        raise FileError(f"{what}: {' '.join(str(error).split())[:_MAX_CHARACTERS]}") from error


def frame_of(source: object) -> Any:
    """Return a lazy narwhals frame over a frame of polars, DuckDB, Spark, Dask or one in memory; raise InputError for others."""
    try:
        return nw.from_native(source).lazy()  # type: ignore[call-overload]
    except TypeError as error:
        raise InputError(
            f"{type(source).__name__} is neither a path nor a data frame that narwhals can read"
        ) from error


# Engines over Parquet files, whose names are names also where they look like patterns; see `folder_values` for partitions.


def _scan_polars(files: list[str], engine: Engine) -> Any:
    """Return a lazy polars frame of Parquet files, with the engine's storage options; only addresses may be patterns."""
    import polars as pl

    options = None if engine.storage_options is None else dict(engine.storage_options)
    pattern = any("://" in file for file in files)
    return pl.scan_parquet(files, glob=pattern, hive_partitioning=False, storage_options=options)


def _scan_duckdb(files: list[str], engine: Engine) -> Any:
    """Return a DuckDB relation of Parquet files, by the engine's connection or a new one."""
    connection = engine.session
    if connection is None:
        import duckdb

        connection = duckdb.connect()
        connection.execute("SET enable_progress_bar = false")  # it is printed to standard output
        # the statistics of a Parquet file leave NaN out, and DuckDB would take "no NaN" and "at most 1" for granted
        connection.execute("SET disabled_optimizers = 'statistics_propagation'")
    patterns = [f"{file}**/*.parquet" if file.endswith("/") else _escape_pattern(file) for file in files]
    return connection.read_parquet(patterns, hive_partitioning=False)


def _scan_spark(files: list[str], engine: Engine) -> Any:
    """Return a Spark frame of Parquet files, by the engine's session; pattern characters of local names are escaped."""
    escaped = (file if "://" in file else re.sub(r"([\\[\]{}*?])", r"\\\1", file) for file in files)
    return _spark_session(engine).read.parquet(*escaped)


def _scan_dask(files: list[str], engine: Engine) -> Any:
    """Return a Dask frame of Parquet files, with pandas columns that hold every value exactly (`_pandas_backend`)."""
    import dask.dataframe as dd

    options = None if engine.storage_options is None else dict(engine.storage_options)
    backends = {_pandas_backend(file) for file in files if isfile(file)}
    backend_options = {"dtype_backend": max(backends)} if any(backends) else {}
    return dd.read_parquet(
        [_escape_pattern(file) for file in files],
        dataset={"partitioning": None},
        storage_options=options,
        **backend_options,
    )


def _pandas_backend(file: str) -> str:
    """Return the dtype backend of pandas that a Parquet file needs, "" if the default holds every value.

    "pyarrow" for nested values and nulls without a type, "numpy_nullable" for 64-bit integers beyond 2**53 or of unknown range.
    """
    from pyarrow import parquet, types  # type: ignore[import-untyped]

    metadata = parquet.read_metadata(file)
    kinds = metadata.schema.to_arrow_schema().types
    if any(types.is_nested(kind) or types.is_null(kind) for kind in kinds):
        return "pyarrow"
    wide = [i for i, kind in enumerate(kinds) if types.is_integer(kind) and kind.bit_width == 64]
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    statistics = [group.column(i).statistics for group in groups for i in wide]
    exact = all(
        part is not None and part.has_min_max and max(-part.min, part.max) <= LARGEST_EXACT for part in statistics
    )
    return "" if exact else "numpy_nullable"


def _escape_pattern(file: str) -> str:
    """Escape the pattern characters of a local name; return addresses as they are.

    >>> _escape_pattern("a[1].csv"), _escape_pattern("s3://bucket/a*.parquet")
    ('a[[]1].csv', 's3://bucket/a*.parquet')
    """
    return file if "://" in file else escape(file)


def _spark_session(engine: Engine) -> Any:
    """Return the Spark session of the engine, else the active one, else a new one; refuse a stopped one."""
    from pyspark.sql import SparkSession

    session = engine.session or SparkSession.getActiveSession()
    if session is None:
        # Spark's own log would repeat the error in a hundred lines
        settings: dict[str, Any] = {
            "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
            "spark.log.level": "OFF",
            "spark.sql.caseSensitive": "true",  # as every other engine
        }
        try:
            session = SparkSession.builder.appName("truecal").config(map=settings).getOrCreate()
        except Exception as error:
            raise InputError(
                "no Spark session could be started: is Java installed, and its master reachable?"
            ) from error
    context = getattr(session, "_sc", None)  # none where the session is remote
    if context is not None and context._jsc is None:
        raise InputError("the SparkSession is stopped; start another and hand it over: engine=session")
    return session


_SCAN: dict[str, Callable[[list[str], Engine], Any]] = {
    "polars": _scan_polars,
    "duckdb": _scan_duckdb,
    "spark": _scan_spark,
    "dask": _scan_dask,
}
