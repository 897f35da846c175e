"""A tidy table: named columns, one observation per row, written as CSV or Parquet."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from truecal import checks
from truecal.errors import InputError, MissingExtraError
from truecal.writing import write_whole

Field = str | int | float


@checks.checked
@dataclass(frozen=True)
class Table:
    """Columns and rows.

    >>> table = Table(("n", "bias"), ((200, 0.5), (400, 0.25)))
    >>> table.column("bias")
    [0.5, 0.25]
    >>> print(table.text())
    n    bias
    200  0.5
    400  0.25
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Field, ...], ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise InputError(f"a row of {len(row)} fields in a table of {len(self.columns)} columns: {row}")

    def column(self, name: str) -> list[Field]:
        """One column as a list."""
        return [value for (value,) in self.select([name]).rows]

    def records(self) -> list[dict[str, Field]]:
        """Rows as dictionaries."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def select(self, columns: Sequence[str]) -> "Table":
        """Some columns, in this order."""
        missing = [name for name in columns if name not in self.columns]
        if missing:
            raise InputError(f"there is no column {missing[0]!r}; there are {', '.join(self.columns)}")
        places = [self.columns.index(name) for name in columns]
        return Table(tuple(columns), tuple(tuple(row[i] for i in places) for row in self.rows))

    def text(self) -> str:
        """Aligned for reading."""
        return "\n".join(line.rstrip() for line in _aligned([self.columns, *self.rows]))

    def markdown(self) -> str:
        """As a Markdown table."""
        lines = [" | ".join(_shown(f) for f in row) for row in (self.columns, ["---"] * len(self.columns), *self.rows)]
        return "\n".join(f"| {line} |" for line in lines)

    def write(self, path: Path) -> None:
        """To .csv (full precision) or .parquet, by the ending of the name."""
        if path.suffix == ".csv":
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(self.columns)
            writer.writerows(self.rows)
            write_whole(path, text.getvalue())
        elif path.suffix == ".parquet":
            try:
                import polars
            except ImportError as error:
                raise MissingExtraError.of("polars", "files") from error
            write_whole(path, polars.DataFrame(self.records()).write_parquet)
        else:
            raise InputError(f"a table is written to .csv or .parquet, not {path.name!r}")


def _shown(field: Field) -> str:
    return f"{field:.4g}" if isinstance(field, float) else str(field)


def _aligned(rows: Iterable[Sequence[Field]]) -> list[str]:
    cells = [[_shown(field) for field in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
