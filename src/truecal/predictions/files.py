"""Opening files: the kind of a file by its name or its first bytes, and its rows as a frame or as arrays.

Text (csv, tsv, json, jsonl) is parsed by one function, :func:`read_frame`, for files in memory and for every scanning engine: the
separator of the first line, UTF-8 or UTF-16, types decided by all rows, "NA" and the like missing in columns of numbers, blank
lines skipped. What is unpacked is bounded: at most 100 times the size of the file where that is more than 100 MB, and at most 8 GB;
the environment variable TRUECAL_MAX_UNPACKED raises the limit.
"""

import csv
import io
import json
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal import names
from truecal.errors import FileError, InputError, extra

_KINDS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "ndjson",
    ".ndjson": "ndjson",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".json": "json",
    ".npz": "npz",
    ".eval": "eval",
}
_PACKED = {".gz": "gz", ".zst": "zst"}
_MAGIC = ((b"\x1f\x8b", "gz"), (b"\x28\xb5\x2f\xfd", "zst"), (b"PAR1", "parquet"))
_SEPARATORS = (",", ";", "\t", "|")
# Words for a missing value, in columns whose other values are numbers or truth values ("NA" may also be Namibia).
NA_WORDS = ("", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none")
# by choice: bytes unpacked per byte of a file, at most, and without regard to its size
_MAX_RATIO, _MAX_UNPACKED, _ALWAYS_UNPACKED = 100, 8 * 10**9, 10**8
LIMIT_VARIABLE = "TRUECAL_MAX_UNPACKED"
_UNPACKED_AT_ONCE = 1 << 20  # by choice: bytes
_VALUE_BYTES = 8  # of a value of a Parquet file in memory; derived: a float64
_ARRAY_BYTES = 32  # tuned: of a value of an array while it is checked and sorted (measured on labels of one byte)
# Memory of a value while text is parsed, in bytes; tuned on values of one character (measured, copies included).
_CSV_BYTES, _QUOTED_BYTES, _JSON_BYTES = 32, 150, 250
_COLUMN_VALUES = 30  # tuned: values that take the memory of a column without rows, about 1 kB
MARGIN = 2**30  # by choice: bytes of memory beyond the limit of what is unpacked


def existing_file(path: str | Path) -> Path:
    """Return the path of an existing file; raise FileError for a folder or a missing file, with similar names beside it.

    >>> existing_file("")
    Traceback (most recent call last):
        ...
    truecal.errors.FileError: the name of the file is empty (is a shell variable unset?)
    """
    if not str(path):
        raise FileError("the name of the file is empty (is a shell variable unset?)")
    file = Path(path)
    try:
        file.stat()
    except FileNotFoundError:
        pass  # refused below, with the names beside it
    except (OSError, ValueError) as error:  # a name too long, a NUL in it
        raise FileError(
            f"there is no file {str(file)[:100]!r}: {error.strerror if isinstance(error, OSError) else error}"
        ) from error
    if file.is_dir():
        raise FileError(f"{file} is a folder; name a file in it, or scan it with tc.scan")
    if not file.is_file():
        beside = [p.name for p in file.parent.iterdir()] if file.parent.is_dir() else []
        raise FileError(f"there is no file {file}{names.did_you_mean(file.name, beside)}")
    return file


def kind_by_name(name: str) -> str | None:
    """Return csv, ndjson, json, parquet, npz or eval by the ending of a name, packed or not, in any case; None for other endings.

    >>> kind_by_name("preds.csv.gz"), kind_by_name("logs.NDJSON"), kind_by_name("notes.txt")
    ('csv', 'ndjson', None)
    """
    return _KINDS.get(_ending(name))


def _ending(name: str) -> str:
    """Return the ending of a name in lower case, without that of a packed file: ".csv" of "preds.CSV.gz".

    >>> _ending("preds.CSV.gz"), _ending("preds")
    ('.csv', '')
    """
    path = Path(name.lower())
    return Path(path.stem).suffix if path.suffix in _PACKED else path.suffix


def kind_of(file: Path) -> str:
    """Return the kind of a file (see `kind_by_name`), where its name has no ending by its first bytes; refuse other endings.

    The first bytes "PAR1" are those of parquet; else `_kind_of_content` tells.
    """
    kind = kind_by_name(file.name)
    if kind is not None:
        return kind
    if _ending(file.name):
        raise FileError(
            f"{file}: unknown kind of file; use .csv, .tsv, .json, .jsonl, .parquet, .npz (also .gz or .zst), or an Inspect .eval"
        )
    with file.open("rb") as opened:
        is_parquet = opened.read(4) == b"PAR1"
    return "parquet" if is_parquet else _kind_of_content(_unpacked(file))


def _kind_of_content(data: bytes) -> str:
    """Return the kind of a file from its unpacked bytes: by signature or first character, csv if nothing else fits.

    Text that begins with {: several lines are ndjson if the second begins with { too, else json; a single line with one object is
    json if all its values are lists (columns), else ndjson (one row).
    """
    head = data[:4096].lstrip()
    if data.startswith(b"PAR1"):
        return "parquet"
    if data.startswith(b"PK\x03\x04"):
        from zipfile import BadZipFile, ZipFile

        try:
            with ZipFile(io.BytesIO(data)) as archive:
                return "npz" if all(name.endswith(".npy") for name in archive.namelist()) else "eval"
        except BadZipFile:
            return "npz"  # whose reader refuses it
    if head.startswith(b"["):
        return "json"
    if not head.startswith(b"{"):
        return "csv"
    first, _, following = data.lstrip().partition(b"\n")
    if following.strip():
        return "ndjson" if following.lstrip().startswith(b"{") else "json"
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        return "json"
    columns = all(isinstance(column, list) for column in value.values())
    return "json" if columns else "ndjson"


def read_frame(file: Path) -> Any:
    """Read a csv, tsv, json, jsonl or parquet file, packed or not, as a polars frame; refuse a damaged one.

    Whole numbers beyond 64 bits become text.
    """
    pl = extra("polars")
    kind = kind_of(file)
    try:
        if kind == "parquet":
            lazy = pl.scan_parquet(file, glob=False)  # a name with brackets is a name
            _refuse_large(file, _parquet_bytes(pl, file, lazy), file.stat().st_size)
            return lazy.collect()
        if kind == "csv":
            frame = _read_csv(pl, file, _unpacked(file))
        elif kind == "ndjson":
            frame = _convert_booleans(pl, _read_ndjson(pl, file))
        else:
            frame = _convert_booleans(pl, pl.DataFrame(_read_json_rows(file), infer_schema_length=None, strict=False))
        wide = [dtype for dtype in (pl.Int128, getattr(pl, "UInt128", None)) if dtype is not None]
        # whole numbers beyond 64 bits, which numpy lacks, are names if anything
        return frame.cast(dict.fromkeys(wide, pl.String))
    except (
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,  # of a damaged parquet file
        OSError,
        EOFError,
        ValueError,
        TypeError,
        OverflowError,
        RecursionError,
    ) as error:
        if isinstance(error, FileError):
            raise
        ending = {"ndjson": "jsonl"}.get(kind, kind)
        raise FileError(f"{file} is not a readable {ending} file: {_reason(error)}") from error


def _parquet_bytes(pl: Any, file: Path, lazy: Any) -> int:
    """Return the memory of the rows of a lazy polars frame of a Parquet file, which stores repeats once: 8 bytes a value, and text.

    Items of lists are values where pyarrow is installed, which reads their number without them.
    """
    schema = lazy.collect_schema()
    lengths = [pl.col(name).str.len_bytes() for name, dtype in schema.items() if dtype == pl.String]
    lengths += [pl.col(name).cat.len_bytes() for name, dtype in schema.items() if dtype in (pl.Categorical, pl.Enum)]
    sizes = [length.cast(pl.Int64).sum() for length in lengths]
    values = 0
    if any(dtype.is_nested() for dtype in schema.values()) and find_spec("pyarrow") is not None:
        from pyarrow.parquet import read_metadata  # type: ignore[import-untyped]

        metadata = read_metadata(file)
        groups = map(metadata.row_group, range(metadata.num_row_groups))
        values = sum(group.column(i).num_values for group in groups for i in range(group.num_columns))
    rows, *text_bytes = lazy.select(pl.len(), *sizes).collect(engine="streaming").row(0)
    return int(_VALUE_BYTES * max(values, rows * len(schema)) + sum(text_bytes))


def damaged_zip() -> tuple[type[Exception], ...]:
    """Return the types of exceptions that reading a damaged npz file or another zip archive raises.

    >>> OSError in damaged_zip()
    True
    """
    from zipfile import BadZipFile

    # AttributeError: a lone .npy array; KeyError: no such member; RuntimeError: a password, a way of packing unknown to Python
    errors = (OSError, EOFError, ValueError, AttributeError, KeyError, RuntimeError, zlib.error, MemoryError)
    return (BadZipFile, *errors)


def read_arrays(path: str | Path) -> dict[str, NDArray[Any]]:
    """Read all arrays of an npz file, by name, without pickle; raise FileError for one that is damaged or too large unpacked."""
    file = existing_file(path)
    try:
        refuse_large_archive(file)
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        _refuse_values(file, sum(values.size for values in arrays.values()), _ARRAY_BYTES)
        return arrays
    except damaged_zip() as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{file} is damaged or not an npz file") from error


def read_saved(path: str | Path, kind: str, version: int, required: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Read the arrays of a saved object, an npz file with `format` "truecal.KIND" and `version`.

    Refuses another format, a version above `version`, and a file that lacks one of the `required` arrays.
    """
    name, arrays = Path(path).name, read_arrays(path)
    if str(arrays.get("format")) != f"truecal.{kind}" or "version" not in arrays:
        raise FileError(f"{name} is not a saved {kind}")
    if int(arrays["version"]) > version:
        raise FileError(f"{name} was written by a newer truecal (version {int(arrays['version'])} of the format)")
    missing = {*required} - arrays.keys()
    if missing:
        raise FileError(f"{name} is damaged: {min(missing)} is missing")
    return arrays


def read_json(file: Path) -> Any:
    """Read the one JSON value of a file, packed or not; refuse other content."""
    data = _unpacked(file)
    refuse_json_values(file, data)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{file} is not a readable json file: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    r"""Return the first line of another library's message, at most 200 characters; the type of the error if it has none.

    >>> _reason(ValueError("one\ntwo")), _reason(KeyError())
    ('one', 'KeyError')
    """
    first = (str(error).splitlines() or [type(error).__name__])[0]
    return first if len(first) <= 200 else f"{first[:197]}..."


def _read_json_rows(file: Path) -> Any:
    """Read the rows of a JSON file: a list of objects, or an object of lists, one per column; refuse other values."""
    value = read_json(file)
    rows = isinstance(value, list) and all(isinstance(row, dict) for row in value)
    columns = isinstance(value, dict) and all(isinstance(column, list) for column in value.values())
    if not (rows or columns):
        raise FileError(
            f"{file}: a JSON file of predictions is a list of objects or an object of lists, one per column"
        )
    return value


def _read_csv(pl: Any, file: Path, data: bytes) -> Any:
    """Parse a csv file as a polars frame: the commonest separator of its first line, column types by all values.

    With semicolons, numbers may have decimal commas. Blank lines are dropped, names lose white space; refuses two columns of one
    name.
    """
    text = _as_utf8(file, data).lstrip(b"\r\n")
    if not text.strip():
        raise FileError(f"{file} is empty")
    if b"\n" not in text:
        text = text.replace(b"\r", b"\n")  # lines that end in a carriage return alone
    first = text.partition(b"\n")[0].decode("utf-8", "replace").rstrip("\r")
    # separators inside quotes do not count
    separator = max(_SEPARATORS, key=re.sub(r'"[^"]*"', "", first).count)
    decimal_commas = separator == ";" and re.search(rb"[\n;][ \t]*-?\d+,\d+\s*(;|\r?\n|$)", text) is not None
    values = (first.count(separator) + 1) * (text.count(b"\n") + _COLUMN_VALUES)
    _refuse_values(file, values, _CSV_BYTES)
    header = _header(first, separator)
    duplicates = [name for name, count in Counter(header).items() if count > 1 and name]
    if duplicates:
        raise FileError(f"{file}: two columns are named {duplicates[0]!r}; rename one of them")
    try:
        frame = pl.read_csv(
            io.BytesIO(text),
            separator=separator,
            infer_schema_length=None,
            **({"decimal_comma": True} if decimal_commas else {}),
        )
    except pl.exceptions.ComputeError as error:
        problem = _describe_bad_line(text, separator)
        if problem or b'"' not in text:
            raise FileError(f"{file} is not a readable csv file: {problem or _reason(error)}") from error
        _refuse_values(file, values, _QUOTED_BYTES)
        frame = _read_csv_with_quotes(pl, text, separator)
    if re.search(rb"\n[ \t]*\r?\n", text):
        frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
    padded = {name: name.strip() for name in frame.columns if name != name.strip()}
    text_columns = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    frame = frame.with_columns(
        _infer_type(pl, frame[name], commas=decimal_commas, strip=bool(padded)) for name in text_columns
    )
    return frame.rename(padded)


def _read_csv_with_quotes(pl: Any, text: bytes, separator: str) -> Any:
    """Read csv text with quotes inside unquoted fields (5" pipe), which polars refuses, as columns of text.

    "" is missing, as are fields at the end of a short row; blank lines are skipped.
    """
    header, *rows = csv.reader(io.StringIO(text.decode(), newline=""), delimiter=separator)
    filled = [[value or None for value in row] + [None] * (len(header) - len(row)) for row in rows if row]
    return pl.DataFrame(filled, schema=dict.fromkeys(header, pl.String), orient="row")


def _header(first: str, separator: str) -> list[str]:
    """Return the names in the first line of a csv file; empty if the csv parser refuses it (a field beyond its limit).

    >>> _header("label; p_cat", ";")
    ['label', 'p_cat']
    """
    try:
        return [name.strip() for name in next(csv.reader([first], delimiter=separator), [])]
    except csv.Error:
        return []


def _infer_type(pl: Any, column: Any, *, commas: bool, strip: bool) -> Any:
    """Convert a column of text to integers, floats or booleans if all values are such or missing; else return the text.

    NA_WORDS ("", "na", "nan", "null", "none", ... in any case) become null in converted columns. `commas`: a comma is the decimal
    point. `strip`: remove white space from a column that stays text.
    """
    stripped = column.str.strip_chars()
    stripped = stripped.set(stripped.str.to_lowercase().is_in(NA_WORDS), None)
    if stripped.null_count() == len(stripped):
        return stripped
    with_points = stripped.str.replace(",", ".", literal=True) if commas else stripped
    for dtype in (pl.Int64, pl.Float64):
        numbers = with_points.cast(dtype, strict=False)
        if numbers.null_count() == stripped.null_count():
            return numbers
    lower = stripped.str.to_lowercase()
    if lower.drop_nulls().is_in(("true", "false")).all():
        return lower == "true"
    text = column.str.strip_chars() if strip else column
    return text.set(text == "", None)  # quoted: writers that quote all fields write missing ones like this


def _convert_booleans(pl: Any, frame: Any) -> Any:
    """Convert columns whose values are all the words true and false (in any case, or null) to booleans.

    >>> import polars
    >>> _convert_booleans(polars, polars.DataFrame({"a": ["true", "FALSE", None], "b": ["true", "no", "no"]})).dtypes
    [Boolean, String]
    """
    columns = (frame[name].str.to_lowercase() for name, dtype in frame.schema.items() if dtype == pl.String)
    return frame.with_columns(
        c == "true" for c in columns if c.drop_nulls().is_in(("true", "false")).all() and c.count()
    )


def _as_utf8(file: Path, data: bytes) -> bytes:
    """Convert bytes in UTF-8 or UTF-16 (with a byte order mark) to UTF-8 without a mark; refuse others, naming the line.

    >>> _as_utf8(Path("a.csv"), "é".encode("utf-16")).decode()
    'é'
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) and b"\0\0" not in data[:4]:
        return data.decode("utf-16").encode()
    if b"\0" in data[:8]:
        raise FileError(f"{file} begins with zero bytes, as UTF-16 and UTF-32 do; save the file as UTF-8")
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileError(
            f"{file}: line {line} is not UTF-8 (byte 0x{data[error.start]:02x}); save the file as UTF-8, "
            "such as by iconv -f latin1 -t utf-8"
        ) from error
    return data.removeprefix(b"\xef\xbb\xbf")


def _describe_bad_line(text: bytes, separator: str) -> str:
    r"""Describe the first line with more fields than the header or with an unclosed quote; empty if there is none.

    >>> _describe_bad_line(b"a,b\n1,2,3\n", ","), _describe_bad_line(b"a,b\n1,2\n", ",")
    ("line 2 has 3 fields and the header 2; delete the line, or quote text that holds ','", '')
    """
    rows = csv.reader(io.StringIO(text.decode(), newline=""), delimiter=separator, strict=True)
    start, width = 1, 0
    try:
        for row in rows:
            width = width or len(row)
            if len(row) > width:
                return (
                    f"line {start} has {len(row)} fields and the header {width}; delete the line, or quote text that holds "
                    f"{separator!r}"
                )
            start = rows.line_num + 1
    except csv.Error as error:
        return f"line {start}: {error}; is a quote not closed?"
    return ""


def _read_ndjson(pl: Any, file: Path) -> Any:
    """Read a jsonl file as a polars frame; one with NaN or Infinity, which are not JSON, is read line by line by Python."""
    text = _as_utf8(file, _unpacked(file))
    refuse_json_values(file, text)
    _refuse_keys(file, text)
    try:
        schema = pl.scan_ndjson(io.BytesIO(text), infer_schema_length=None).collect_schema()
        # also of rows that lack most of the columns
        _refuse_values(file, len(schema) * (text.count(b"\n") + _COLUMN_VALUES), _CSV_BYTES)
        return pl.read_ndjson(io.BytesIO(text), schema=schema)
    except pl.exceptions.PolarsError:
        rows = list(read_lines(file))
        if not rows:
            raise
        return pl.DataFrame(rows, infer_schema_length=None, strict=False)


def _refuse_keys(file: Path, text: bytes) -> None:
    """Refuse jsonl of so many different keys that columns of them take more memory than `_refuse_values` allows."""
    limit = (unpacked_limit(file.stat().st_size) + MARGIN) // (_COLUMN_VALUES * _CSV_BYTES)
    keys: set[bytes] = set()
    if text.count(b":") > limit:
        for match in re.finditer(rb'"(?:[^"\\]|\\.)*"\s*:', text):
            keys.add(match[0])
            if len(keys) > limit:
                break
    _refuse_values(file, len(keys) * _COLUMN_VALUES, _CSV_BYTES)


def read_lines(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in the lines of a file, skipping blank ones; refuse a line that is not an object, by number."""
    text = _as_utf8(file, _unpacked(file))
    refuse_json_values(file, text)
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
            problem = "" if isinstance(value, dict) else f"line {number} is not an object"
        except json.JSONDecodeError as error:
            problem = f"line {number}, column {error.colno}: {error.msg}"
        except (ValueError, RecursionError) as error:
            problem = f"line {number}: {_reason(error)}"
        if problem:
            raise FileError(f"{file} is not a readable jsonl file: {problem}; repair or delete the line")
        yield value


def _unpacked(file: Path) -> bytes:
    """Return the bytes of a file, unpacked if it is packed."""
    return unpacked(file.read_bytes(), file)


def unpacked(data: bytes, file: Path) -> bytes:
    """Unpack bytes packed by gzip or zstd; return others as they are. `file` is named in refusals.

    Refuse to unpack n bytes to more than min(8e9, max(100 n, 1e8)), by default (`unpacked_limit`).

    >>> import gzip
    >>> unpacked(gzip.compress(b"abc"), Path("a.gz")), unpacked(b"abc", Path("a.csv"))
    (b'abc', b'abc')
    """
    packed = next((name for magic, name in _MAGIC if data.startswith(magic)), "")
    if packed not in _PACKED.values():
        return data
    limit, content = unpacked_limit(len(data)), io.BytesIO()
    try:
        with _open_packed(data, packed) as stream:
            while content.tell() <= limit and (part := stream.read(_UNPACKED_AT_ONCE)):
                content.write(part)
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(f"{file} is damaged: {_reason(error)}") from error
    _refuse_large(file, content.tell(), len(data))
    return content.getvalue()


def _open_packed(data: bytes, packed: str) -> Any:
    """Open bytes packed by gzip ("gz") or zstd ("zst") as a stream of unpacked bytes."""
    if packed == "gz":
        import gzip

        return gzip.open(io.BytesIO(data))
    return extra("pyarrow").CompressedInputStream(io.BytesIO(data), "zstd")


def refuse_json_values(file: Path, *texts: bytes) -> None:
    """Refuse JSON of too many values, together and also within one row; see `_refuse_values`."""
    count = sum(text.count(sign) for text in texts for sign in (b"{", b"[", b",", b"\n"))
    _refuse_values(file, count, _JSON_BYTES)


def _refuse_values(file: Path, count: int, value_bytes: int) -> None:
    """Raise FileError for text of so many values that parsing them takes more than 1 GiB of memory beyond `unpacked_limit`.

    The memory is taken as `count` times `value_bytes`; the message names the variable that raises the limit.
    """
    size, memory = file.stat().st_size, count * value_bytes
    if memory > unpacked_limit(size) + MARGIN:
        raise FileError(
            f"{file} has {size:,} bytes and {count:,} values, which take {memory / 1e9:.1f} GB of memory; if you trust it, raise "
            f"the limit: {LIMIT_VARIABLE}={memory:.0e} (bytes)"
        )


def unpacked_limit(size: int) -> int:
    """Return the largest number of bytes that may be unpacked from `size` bytes: min(8e9, max(100 size, 1e8)).

    The environment variable TRUECAL_MAX_UNPACKED (bytes) replaces it.

    >>> unpacked_limit(1), unpacked_limit(10_000_000), unpacked_limit(10**9)
    (100000000, 1000000000, 8000000000)
    """
    setting = os.environ.get(LIMIT_VARIABLE)
    try:
        return int(float(setting)) if setting else min(_MAX_UNPACKED, max(_MAX_RATIO * size, _ALWAYS_UNPACKED))
    except (ValueError, OverflowError) as error:
        raise InputError(f"{LIMIT_VARIABLE} must be a number of bytes, such as 2e10, not {setting!r}") from error


def refuse_large_archive(file: Path) -> None:
    """Refuse a zip archive of n bytes whose members together exceed min(8e9, max(100 n, 1e8)) bytes (`unpacked_limit`)."""
    from zipfile import ZipFile

    with ZipFile(file) as archive:
        _refuse_large(file, sum(info.file_size for info in archive.infolist()), file.stat().st_size)


def _refuse_large(file: Path, unpacked: int, packed: int) -> None:
    """Refuse a file of `packed` bytes that unpacks to more than min(8e9, max(100 packed, 1e8)) bytes.

    `unpacked` is the number of bytes that it unpacks to; `unpacked_limit` says how the limit is set.
    """
    limit = unpacked_limit(packed)
    if unpacked > limit:
        raise FileError(
            f"{file} has {packed:,} bytes and unpacks to more than {limit:,}; if you trust it, raise the limit: "
            f"{LIMIT_VARIABLE}={10 * limit:.0e} (bytes)"
        )
