"""Many files as one: which may be read together, and a refusal of those that do not belong together before any row is read."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truecal.errors import FileError, InputError
from truecal.predictions import readers
from truecal.scan.columns import Wanted
from truecal.scan.sources import folder_values, installed, opened

_MOST_PARTS = 100  # into which a scan is split for its progress


@dataclass(frozen=True)
class Part:
    """Files that are read together, and what the names of their folders say of all their rows."""

    files: list[str]
    constants: dict[str, str | None]


def parts_of(
    files: Sequence[str],
    engine: str | None,
    wanted: Wanted,
    *,
    apart: bool,
) -> list[Part]:
    """Files in parts that are read one after the other: all at once where every file has the same columns of the same types.

    Every file must have the columns wanted; those of `wanted.by` may stand in the names of its folders instead
    (day=2026-05-01/...), and files of different values are then read apart. `apart`: for progress, up to a hundred parts in any
    case, except in Spark, which shares out the files itself.
    """
    local = not any("://" in file for file in files)
    if not local or (len(files) == 1 and not folder_values(files[0])):
        return [Part(list(files), {})]
    schemas = [_schema(file, engine) for file in files]
    each = [
        {name: v for name, v in folder_values(f).items() if name in wanted.by and name not in schemas[0]} for f in files
    ]
    for file, schema, values in zip(files, schemas, each, strict=True):
        _refuse_unlike(file, [*schema, *values], files[0], list(schemas[0]), wanted)
    if any(schema != schemas[0] for schema in schemas):
        return [Part([file], values) for file, values in zip(files, each, strict=True)]
    groups: dict[tuple[object, ...], Part] = {}
    for file, values in zip(files, each, strict=True):
        groups.setdefault(tuple(values.items()), Part([], values)).files.append(file)
    if not apart or engine == "spark" or len(groups) > 1:
        return list(groups.values())
    count = min(len(files), _MOST_PARTS)
    return [Part(list(files[i * len(files) // count : (i + 1) * len(files) // count]), each[0]) for i in range(count)]


def _schema(file: str, engine: str | None) -> dict[str, Any]:
    """Columns and types of a file, read by polars where it is installed: the quickest to open one."""
    frame, _ = opened([file], "polars" if installed("polars") else engine)
    return dict(frame.collect_schema())


def _refuse_unlike(file: str, columns: list[str], first: str, firsts: list[str], wanted: Wanted) -> None:
    name, other = Path(file).name, Path(first).name
    try:
        outputs = readers.matching(columns, wanted.predictions, "predictions")[0]
        readers.matching(columns, [*wanted.needed, *wanted.by], "label, weights and groups")
    except InputError as error:
        raise FileError(f"{name}: {error}") from error
    expected = readers.matching(firsts, wanted.predictions, "predictions")[0]
    if outputs != expected:
        raise FileError(
            f"{name} and {other} have different columns for {wanted.predictions!r} ({len(outputs)} and {len(expected)}, e.g. "
            f"{_odd(outputs, expected)!r}); scan files of one kind at a time"
        )


def _odd(columns: list[str], expected: list[str]) -> str:
    """A column that only one of the two has, or the first that is in another place."""
    only = [name for name in (*columns, *expected) if (name in columns) != (name in expected)]
    return only[0] if only else next(a for a, b in zip(columns, expected, strict=True) if a != b)
