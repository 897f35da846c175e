"""Opening files: what kind a file is, told from its name or its first bytes, and its rows as a frame or as arrays."""

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from truecal import names
from truecal.errors import FileError, extra

# How the scanning engines call a kind of file, by its ending.
FRAME_FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "ndjson",
    ".ndjson": "ndjson",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_KINDS = {**FRAME_FORMATS, ".json": "json", ".npz": "npz", ".eval": "eval"}
_PACKED = {".gz": "gz", ".zst": "zst"}
_MAGIC = ((b"\x1f\x8b", "gz"), (b"\x28\xb5\x2f\xfd", "zst"), (b"PAR1", "parquet"))
_SEPARATORS = (",", ";", "\t", "|")
# What reading a damaged npz file or another zip archive ends in. AttributeError: a lone .npy array; RuntimeError: a
# password, a way of packing that Python lacks.
DAMAGED_ZIP = (BadZipFile, OSError, EOFError, ValueError, AttributeError, RecursionError, RuntimeError, zlib.error)


def existing(path: str | Path) -> Path:
    """The file at a path; what is not there, or is a folder, is refused with the names beside it that are like it."""
    if not str(path):
        raise FileError("the name of the file is empty (is a shell variable unset?)")
    file = Path(path)
    try:
        file.stat()
    except FileNotFoundError:
        pass  # said below, with the names beside it
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


def kind_of(file: Path) -> str:
    """csv, ndjson, json, parquet, npz or eval: by the ending of the name, else by the first bytes.

    >>> kind_of(Path("preds.csv.gz")), kind_of(Path("run.eval"))
    ('csv', 'eval')
    """
    suffixes = [suffix.lower() for suffix in file.suffixes]
    last = suffixes[-2] if len(suffixes) > 1 and suffixes[-1] in _PACKED else suffixes[-1] if suffixes else ""
    if last in _KINDS:
        return _KINDS[last]
    if suffixes and last not in _PACKED:
        raise FileError(
            f"{file}: unknown kind of file; use .csv, .tsv, .json, .jsonl, .parquet, .npz (also .gz or .zst), or an Inspect .eval"
        )
    return _kind_of_content(_unpacked(file))


def _kind_of_content(data: bytes) -> str:
    head = data[:4096].lstrip()
    if data.startswith(b"PAR1"):
        return "parquet"
    if data.startswith(b"PK\x03\x04"):
        try:
            with ZipFile(io.BytesIO(data)) as archive:
                return "npz" if all(name.endswith(".npy") for name in archive.namelist()) else "eval"
        except BadZipFile:
            return "npz"  # whose reader refuses it
    if head.startswith(b"["):
        return "json"
    if not head.startswith(b"{"):
        return "csv"
    first, _, rest = data.lstrip().partition(b"\n")
    if rest.strip():
        return "ndjson" if rest.lstrip().startswith(b"{") else "json"
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        return "json"
    columns = all(isinstance(column, list) for column in value.values())
    return "json" if columns else "ndjson"


def read_frame(file: Path) -> Any:
    """The rows of a csv, tsv, json, jsonl or parquet file, packed or not, as a polars frame."""
    pl = extra("polars")
    kind = kind_of(file)
    try:
        if kind == "parquet":
            return pl.read_parquet(file, glob=False)  # a name with brackets is a name
        if kind == "csv":
            return _read_csv(pl, _unpacked(file))
        if kind == "ndjson":
            return pl.read_ndjson(io.BytesIO(_unpacked(file)), infer_schema_length=None)
        wide = [kind for kind in (pl.Int128, getattr(pl, "UInt128", None)) if kind is not None]
        # whole numbers beyond 64 bits, which numpy lacks, are names if anything
        return pl.DataFrame(_records(file), infer_schema_length=None, strict=False).cast(dict.fromkeys(wide, pl.String))
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
        shown = {"ndjson": "jsonl"}.get(kind, kind)
        raise FileError(f"{file} is not a readable {shown} file: {_reason(error)}") from error


def read_arrays(path: str | Path) -> dict[str, NDArray[Any]]:
    """All arrays of an npz file, without pickle."""
    file = existing(path)
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as held:
            return {name: held[name] for name in held.files}
    except DAMAGED_ZIP as error:
        raise FileError(f"{file} is damaged or not an npz file") from error


def read_json(file: Path) -> Any:
    """The one JSON value of a file."""
    try:
        return json.loads(_unpacked(file))
    except (ValueError, RecursionError) as error:
        raise FileError(f"{file} is not a readable json file: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """The first line of another library's message, which may quote the file at any length."""
    first = (str(error).splitlines() or [type(error).__name__])[0]
    return first if len(first) <= 200 else f"{first[:197]}..."


def _records(file: Path) -> Any:
    """The rows of a JSON file: a list of objects, or an object of equally long lists."""
    value = read_json(file)
    rows = isinstance(value, list) and all(isinstance(row, dict) for row in value)
    columns = isinstance(value, dict) and all(isinstance(column, list) for column in value.values())
    if not (rows or columns):
        raise FileError(
            f"{file}: a JSON file of predictions is a list of objects or an object of lists, one per column"
        )
    return value


def _read_csv(pl: Any, text: bytes) -> Any:
    """A csv file with the separator its first line uses; numbers with decimal commas where that is a semicolon."""
    first = text.partition(b"\n")[0].decode("utf-8", "replace")
    plain = re.sub(r'"[^"]*"', "", first)
    separator = max(_SEPARATORS, key=plain.count)
    commas = separator == ";" and re.search(rb";\s*-?\d+,\d+\s*(;|\r?\n|$)", text[:65536]) is not None
    options = {"decimal_comma": True} if commas else {}
    return pl.read_csv(io.BytesIO(text), separator=separator, infer_schema_length=10_000, **options)


def read_lines(file: Path) -> Iterator[Any]:
    """The JSON values of the lines of a file, one after the other."""
    for number, line in enumerate(_unpacked(file).splitlines(), start=1):
        if line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError) as error:
                raise FileError(f"{file} is not a readable jsonl file: line {number}: {_reason(error)}") from error


def _unpacked(file: Path) -> bytes:
    """The bytes of a file, unpacked where it is packed."""
    return unpacked(file.read_bytes(), file)


def unpacked(data: bytes, file: Path) -> bytes:
    """Bytes that may be packed by gzip or zstd; `file` is where they are from."""
    packed = next((name for magic, name in _MAGIC if data.startswith(magic)), "")
    try:
        if packed == "gz":
            return gzip.decompress(data)
        if packed == "zst":
            return _unzstd(data)
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(f"{file} is damaged: {error}") from error
    return data


def _unzstd(data: bytes) -> bytes:
    """Text that was packed by zstd, read through polars as lines of one column."""
    pl = extra("polars")
    try:
        lines = pl.read_csv(io.BytesIO(data), separator="\x01", quote_char=None, has_header=False, infer_schema=False)
    except pl.exceptions.PolarsError as error:
        raise OSError(_reason(error)) from error
    if lines.width > 1:
        raise OSError("a line holds the character U+0001")
    return "\n".join(lines.to_series().to_list()).encode()
