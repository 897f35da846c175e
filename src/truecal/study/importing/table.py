"""Tables of measured numbers, read from CSV, zipped CSV or Parquet."""

import os
import zipfile
from pathlib import Path
from typing import Any

from truecal.errors import FileError, InputError
from truecal.study.store import polars


def read_table(path: str | os.PathLike[str]) -> Any:
    """The table of a file; a zip archive must hold one CSV file."""
    pl = polars()
    file = Path(path)
    kind = "".join(file.suffixes[-2:]).lower() if file.suffix.lower() == ".gz" else file.suffix.lower()
    try:
        if kind in (".parquet", ".pq"):
            return pl.read_parquet(file, glob=False)
        if kind in (".csv", ".csv.gz"):
            return pl.read_csv(file, infer_schema_length=None)
        if kind == ".zip":
            with zipfile.ZipFile(file) as held:
                names = [name for name in held.namelist() if name.lower().endswith(".csv") and "__MACOSX" not in name]
                if len(names) != 1:
                    raise InputError(f"{file} must hold one CSV file; it holds {', '.join(names) or 'none'}")
                return pl.read_csv(held.read(names[0]), infer_schema_length=None)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, zipfile.BadZipFile) as error:
        raise FileError(f"cannot read {file}: {str(error).splitlines()[0]}") from error
    raise InputError(f"{file.name} is not of a known kind; give .csv, .csv.gz, .zip (of one CSV file) or .parquet")


def need_columns(table: Any, names: tuple[str, ...], what: str) -> None:
    """Refuse a table that lacks columns, by name."""
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise InputError(f"{what} has no column {missing[0]!r}; it has {', '.join(table.columns[:20])}")
