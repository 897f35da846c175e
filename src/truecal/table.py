"""The table that `.frame()` of every result returns: named columns of numpy arrays, with conversions and writers.

polars and pandas are imported on conversion.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from math import isfinite
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from truecal import options
from truecal.errors import InputError, MissingExtraError, extra, printable
from truecal.writing import write_whole

Column = NDArray[Any]

_SHOWN = 10  # by choice: rows at either end of a longer frame that are printed
_MAX_LINE = 200  # by choice: characters of a result that are printed in one line
OPTIONAL = {"left out of JSON where None": True}  # metadata of a field
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{c: f"\\{c}" for c in "&%$#_{}"},
}
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet computes text that starts like this


class Frame:
    """Hold columns of one length, by name; missing values are None in a column of objects, NaN in one of numbers.

    `frame["n"]` is a column (a read-only array), `frame[0]` a row (a dictionary of plain values); iteration is over rows. Frames
    are equal if their columns have the same names in the same order and the same values (NaN equals NaN).

    Parameters
    ----------
    columns : mapping of str to iterable
        Columns of one length.

    Raises
    ------
    InputError
        Columns have different lengths or more than one dimension.

    Examples
    --------
    >>> frame = Frame({"model": ["a", "b"], "error": [0.01, 0.125], "pass": [True, None]})
    >>> frame["error"], frame[1]
    (array([0.01 , 0.125]), {'model': 'b', 'error': 0.125, 'pass': None})
    >>> print(frame)
    model  error  pass
    a      0.01   True
    b      0.125
    >>> frame == {"model": ["a", "b"], "error": [0.01, 0.125], "pass": [True, None]}
    True
    """

    __hash__ = None  # type: ignore[assignment]  # compared by value

    def __init__(self, columns: Mapping[str, Iterable[Any]]) -> None:
        """Store columns by name as arrays; refuse columns of different lengths."""
        self._columns = {str(name): _to_column(values, str(name)) for name, values in columns.items()}
        lengths = {name: len(values) for name, values in self._columns.items()}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            raise InputError(
                f"the columns of a frame have different lengths: {listed}; give every column one value per row"
            )

    # ------------------------------------------------------------------ making one

    @classmethod
    def from_records(cls, records: Iterable[Mapping[str, Any]], columns: Sequence[str] | None = None) -> Frame:
        """Make a frame of rows; a value that a row lacks is None.

        Parameters
        ----------
        records : iterable of mappings
            The rows.
        columns : sequence of str, default None
            Names and order of the columns; needed where there may be no row.

        Returns
        -------
        frame : Frame
            One row per record.

        Examples
        --------
        >>> Frame.from_records([{"n": 1}, {"n": 2, "note": "few"}])["note"].tolist()
        [None, 'few']
        """
        rows = list(records)
        names = list(columns) if columns is not None else list(dict.fromkeys(name for row in rows for name in row))
        return cls({name: [row.get(name) for row in rows] for name in names})

    @classmethod
    def of(cls, data: Any) -> Frame:
        """Convert what holds columns to a frame.

        Parameters
        ----------
        data : Frame, mapping, list of mappings, or polars, pandas or pyarrow frame
            The columns or rows.

        Returns
        -------
        frame : Frame
            The same table.

        Raises
        ------
        InputError
            The data have no columns.
        """
        if isinstance(data, Frame):
            return data
        if isinstance(data, Mapping):
            return cls(data)
        if isinstance(data, (list, tuple)) and all(isinstance(row, Mapping) for row in data):
            return cls.from_records(data)
        import narwhals as nw

        try:
            table = nw.from_native(data, eager_only=True)
        except TypeError as error:
            raise InputError(
                f"{type(data).__name__} has no columns; pass a Frame, a mapping or a data frame"
            ) from error
        return cls({name: table[name].to_list() for name in table.columns})

    # ------------------------------------------------------------------ reading it

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, in order.

        >>> Frame({"a": [1], "b": ["x"]}).columns
        ('a', 'b')
        """
        return tuple(self._columns)

    @overload
    def __getitem__(self, key: str) -> Column: ...
    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    def __getitem__(self, key: str | int) -> Column | dict[str, Any]:
        """Return the column of a name, or the row at a position as a dict by column name; raise InputError for an unknown name.

        >>> table = Frame({"a": [1, 2], "b": ["x", "y"]})
        >>> table["a"], table[-1]
        (array([1, 2]), {'a': 2, 'b': 'y'})
        """
        if isinstance(key, str):
            if key not in self._columns:
                raise InputError(f"there is no column {key!r}; the columns are {', '.join(self.columns) or 'none'}")
            return self._columns[key]
        return {name: _python_value(values[key]) for name, values in self._columns.items()}

    def __contains__(self, name: object) -> bool:
        """Return whether there is a column of this name.

        >>> "a" in Frame({"a": [1]})
        True
        """
        return name in self._columns

    def __len__(self) -> int:
        """Return the number of rows.

        >>> len(Frame({"a": [1, 2]}))
        2
        """
        return len(next(iter(self._columns.values()), ()))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterate over the rows, each a dict by column name.

        >>> list(Frame({"a": [1, 2]}))
        [{'a': 1}, {'a': 2}]
        """
        names = self.columns
        for row in zip(*(values.tolist() for values in self._columns.values()), strict=True):
            yield dict(zip(names, row, strict=True))

    def __eq__(self, other: object) -> bool:
        """Return whether names, order and values of the columns are equal, NaN equal to NaN; also for a mapping of columns.

        >>> Frame({"a": [1.0]}) == {"a": [1.0]}
        True
        """
        if not isinstance(other, (Frame, Mapping)):
            return NotImplemented
        frame = Frame.of(other)
        return self.columns == frame.columns and all(_equal_columns(self[name], frame[name]) for name in self.columns)

    def select(self, *names: str) -> Frame:
        """Select columns, in this order.

        Parameters
        ----------
        *names : str
            Names of columns.

        Returns
        -------
        frame : Frame
            The selected columns.

        Raises
        ------
        InputError
            There is no such column.
        """
        options.texts(names, "columns")
        return Frame({name: self[name] for name in names})

    def with_columns(self, **columns: Iterable[Any]) -> Frame:
        """Add or replace columns.

        Parameters
        ----------
        **columns : iterable
            Columns by name.

        Returns
        -------
        frame : Frame
            A new frame.
        """
        return Frame({**self._columns, **columns})

    def to_dict(self) -> dict[str, list[Any]]:
        """Return columns by name as lists of Python values, missing ones as they are stored (None or NaN).

        >>> Frame({"a": [1, 2], "b": ["x", None]}).to_dict()
        {'a': [1, 2], 'b': ['x', None]}
        """
        return {name: values.tolist() for name, values in self._columns.items()}

    # ------------------------------------------------------------------ as something else

    def to_polars(self) -> Any:
        """Convert to a polars DataFrame, None as null and NaN as NaN."""
        return extra("polars").DataFrame(self.to_dict(), strict=False)

    def to_pandas(self) -> Any:
        """Convert to a pandas DataFrame with copies of the columns, which keep their dtype."""
        try:
            import pandas  # type: ignore[import-untyped]
        except ImportError as error:
            raise MissingExtraError("this needs pandas; install it with: pip install pandas") from error
        return pandas.DataFrame({name: values.copy() for name, values in self._columns.items()})

    def to_text(self) -> str:
        """Return all rows as text, the names first, in left-aligned columns two spaces apart; floats to four significant digits.

        >>> print(Frame({"name": ["x", "long"], "value": [0.123456, 2.0]}).to_text())
        name  value
        x     0.1235
        long  2
        """
        return "\n".join(_align_cells(self._cells()))

    def to_markdown(self) -> str:
        """Return a Markdown table.

        >>> print(Frame({"a|b": [1, 2.5]}).to_markdown())
        | a\\|b |
        | --- |
        | 1 |
        | 2.5 |
        """
        cells = [[markdown_text(cell).replace("|", "\\|") for cell in row] for row in self._cells()]
        cells.insert(1, ["---"] * len(self.columns))
        return "\n".join(f"| {' | '.join(row)} |" for row in cells)

    def to_latex(self) -> str:
        r"""Return a LaTeX tabular with the rules of booktabs, numbers to the right; text is escaped.

        >>> print(Frame({"name": ["50 %"], "value": [0.5]}).to_latex())
        \begin{tabular}{lr}
        \toprule
        name & value \\
        \midrule
        50 \% & 0.5 \\
        \bottomrule
        \end{tabular}
        """
        header, *rows = ([_escape_latex(_one_line(cell)) for cell in row] for row in self._cells())
        kinds = "".join("r" if values.dtype.kind in "iuf" else "l" for values in self._columns.values())
        lines = [f"\\begin{{tabular}}{{{kinds}}}", "\\toprule", f"{' & '.join(header)} \\\\", "\\midrule"]
        lines += [f"{' & '.join(row)} \\\\" for row in rows]
        return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"])

    def to_html(self) -> str:
        """Return an HTML table; text is escaped.

        >>> Frame({"name": ["<b>"]}).to_html()
        '<table><thead><tr><th>name</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
        """
        from html import escape

        header, *rows = ([escape(cell) for cell in row] for row in self._cells())
        head = "".join(f"<th>{cell}</th>" for cell in header)
        body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def to_csv(self) -> str:
        """Return comma-separated values in full precision; text that a spreadsheet would evaluate is quoted.

        >>> Frame({"name": ["=1+1"], "n": [2]}).to_csv()
        "name,n\\n'=1+1,2\\n"
        """
        import csv

        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(map(_quote_formula, self.columns))
        writer.writerows([_quote_formula(value) for value in row.values()] for row in self)
        return text.getvalue()

    def write(self, path: str | Path) -> Path:
        """Write a file atomically, in the format of its ending.

        Parameters
        ----------
        path : str or Path
            Ending in .csv (full precision), .parquet, .md, .tex or .html.

        Returns
        -------
        path : Path
            The file.

        Raises
        ------
        InputError
            The file has another ending.
        FileError
            It cannot be written.
        """
        file = Path(path)
        writers = {".md": self.to_markdown, ".tex": self.to_latex, ".html": self.to_html, ".csv": self.to_csv}
        if file.suffix == ".parquet":
            return write_table(self.to_polars(), file)
        if file.suffix not in writers:
            raise InputError(f"a frame is written to .csv, .parquet, .md, .tex or .html, not {file.name!r}")
        return write_whole(file, writers[file.suffix]())

    def _cells(self) -> list[list[str]]:
        """Return header and rows as text, a list per row: floats with four significant digits, None as "".

        >>> Frame({"a": [0.123456, 2.0]})._cells()
        [['a'], ['0.1235'], ['2']]
        """
        return [list(self.columns), *([_cell_text(value) for value in row.values()] for row in self)]

    def __repr__(self) -> str:
        """Write the table as text; of a long one the first and last rows, and their number."""
        cells = self._cells()
        if len(self) <= 2 * _SHOWN:
            return "\n".join(_align_cells(cells))
        ellipsis = ["..."] * len(self.columns)
        lines = _align_cells([*cells[: _SHOWN + 1], ellipsis, *cells[-_SHOWN:]])
        return "\n".join([*lines, f"({len(self)} rows)"])

    def _repr_html_(self) -> str:
        """Return the HTML table that a notebook shows; of more than 20 rows the first and last 10."""
        return _notebook_html("", self)


class Tabular(ABC):
    """A result whose numbers are one table: shown in a notebook, as Markdown or LaTeX, as plain values for JSON.

    A subclass, a dataclass, gives `frame` and `__str__`; the first line of that text (or `_headline`) is its heading and repr.
    """

    @abstractmethod
    def frame(self) -> Frame:
        """The numbers, one row per thing judged."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that the repr shows, by name, as types of JSON.

        Records become objects, arrays lists, infinities "inf" and "-inf", NaN None, and what JSON lacks otherwise its `str`.
        """
        return {f.name: plain(getattr(self, f.name)) for f in fields(self) if f.repr}  # type: ignore[arg-type]

    def to_markdown(self) -> str:
        """Return the table in Markdown."""
        return self.frame().to_markdown()

    def to_latex(self) -> str:
        """Return the table as a LaTeX tabular with the rules of booktabs."""
        return self.frame().to_latex()

    def _headline(self) -> str:
        """Return the heading: the first line of the text of the result."""
        return str(self).partition("\n")[0]

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: headline, table (of more than 20 rows the first and last 10) and warnings."""
        return _notebook_html(self._headline(), self.frame(), getattr(self, "warnings", ()))

    def __repr__(self) -> str:
        """Return the name of the class and its headline in one line, cut to the longest line."""
        line = f"{type(self).__name__}: {self._headline()}"
        return line if len(line) <= _MAX_LINE else line[: _MAX_LINE - 1] + "…"


def plain(value: Any) -> Any:
    """Convert a value to JSON types: records to objects, arrays to lists, infinities to "inf" and "-inf", NaN to null.

    What JSON lacks otherwise becomes its `str`.

    >>> plain({"norm": np.inf, "values": np.array([1.0, np.nan])})
    {'norm': 'inf', 'values': [1.0, None]}
    """
    # floats first: they are the most frequent
    if type(value) is float and isfinite(value):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        values = {f: getattr(value, f.name) for f in fields(value)}
        return {f.name: plain(item) for f, item in values.items() if item is not None or f.metadata != OPTIONAL}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return None if value != value else ("inf" if value > 0 else "-inf")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return str(value)


def _notebook_html(headline: str, frame: Frame, notes: Sequence[str] = ()) -> str:
    """Return an HTML table with headline and notes; of more than 20 rows the first and last 10, and a note on the others."""
    from html import escape

    excerpt = frame
    if len(frame) > 2 * _SHOWN:
        ends = np.r_[:_SHOWN, len(frame) - _SHOWN : len(frame)]
        excerpt = Frame({name: frame[name][ends] for name in frame.columns})
        notes = (*notes, f"{len(frame) - 2 * _SHOWN} rows in the middle are not shown; .frame() has all {len(frame)}")
    head = f"<p><strong>{escape(headline)}</strong></p>" if headline else ""
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f'<div style="overflow-x:auto">{head}{excerpt.to_html()}{below}</div>'


def _to_column(values: Iterable[Any], name: str) -> Column:
    """Convert values to a read-only array (n,) of bool, numbers or text; mixed values, and None, give an array of objects.

    An array keeps its dtype; `name` stands in the refusal of more dimensions.
    """
    if isinstance(values, np.ndarray):
        array = values.copy()
    else:
        listed = list(values)
        kinds = {type(value) for value in listed}
        if kinds <= {bool, np.bool_}:
            array = np.array(listed, bool)
        elif kinds <= {int, float, np.float64} or kinds == {str}:
            array = np.array(listed)
        else:
            array = np.empty(len(listed), object)
            for i, value in enumerate(listed):  # one by one: numpy would make a matrix of pairs of one length
                array[i] = _python_value(value)
    if array.ndim != 1:
        raise InputError(f"column {name!r} has shape {array.shape}; a column holds one value per row")
    array.flags.writeable = False
    return array


def _python_value(value: Any) -> Any:
    """Return the Python value of a numpy scalar; other values unchanged.

    >>> _python_value(np.float64(0.5)), _python_value("a")
    (0.5, 'a')
    """
    return value.item() if isinstance(value, np.generic) else value


def _equal_columns(first: Column, second: Column) -> bool:
    """Whether two columns have one length and equal values, NaN equal to NaN; types do not count (1 equals 1.0 and True).

    >>> _equal_columns(np.array([1.0, np.nan]), np.array([1.0, np.nan])), _equal_columns(np.array([1]), np.array([2]))
    (True, False)
    """

    def equal(a: Any, b: Any) -> bool:
        """Whether two values are equal, or both NaN."""
        return bool(a == b) or (isinstance(a, float) and isinstance(b, float) and a != a and b != b)

    first_values, second_values = first.tolist(), second.tolist()
    return len(first_values) == len(second_values) and all(
        equal(a, b) for a, b in zip(first_values, second_values, strict=True)
    )


def _cell_text(value: object) -> str:
    """Return a cell as text: a float with four significant digits, None as "".

    >>> _cell_text(0.123456), _cell_text(None), _cell_text(12345)
    ('0.1235', '', '12345')
    """
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _one_line(cell: str) -> str:
    r"""Join the lines of text by spaces, control characters escaped: a line break would end the row of a table.

    >>> _one_line("a\nb")
    'a b'
    """
    return " ".join(map(printable, cell.splitlines()))


def markdown_text(text: str) -> str:
    """Write text on one line of Markdown, with HTML escaped.

    >>> markdown_text("a <b>\\nc")
    'a &lt;b&gt; c'
    """
    from html import escape

    return escape(_one_line(text), quote=False)


def _escape_latex(cell: str) -> str:
    r"""Escape the special characters of LaTeX, such as % and _, in a text.

    >>> print(_escape_latex("50 % of a_b"))
    50 \% of a\_b
    """
    return "".join(_LATEX.get(character, character) for character in cell)


def _quote_formula(value: object) -> object:
    """Prefix text that a spreadsheet would evaluate (=, +, -, @, ...) with a quote; return other values unchanged.

    >>> _quote_formula("=1+1"), _quote_formula("a"), _quote_formula(-1)
    ("'=1+1", 'a', -1)
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


# ----------------------------------------------------------------------------------------------------
# Tables of any size, as polars frames

_TABLE_WRITERS = {
    ".csv": "write_csv",
    ".jsonl": "write_ndjson",
    ".ndjson": "write_ndjson",
    ".parquet": "write_parquet",
}


def check_table(path: str | Path) -> str:
    """Return the name of the polars method that writes a table to a file, by its ending; refuse all but csv, jsonl and parquet.

    >>> check_table("a.csv"), check_table("a.parquet")
    ('write_csv', 'write_parquet')
    >>> check_table("a.xlsx")
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: a.xlsx: unknown kind of file; write to .csv, .parquet or .jsonl
    """
    file = Path(path)
    if file.suffix.lower() not in _TABLE_WRITERS:
        raise InputError(f"{file.name}: unknown kind of file; write to .csv, .parquet or .jsonl")
    return _TABLE_WRITERS[file.suffix.lower()]


def write_table(frame: Any, path: str | Path) -> Path:
    """Write a polars frame to .csv, .parquet or .jsonl, whole or not at all, and return the path.

    In CSV, text that a spreadsheet would evaluate is quoted.

    Parameters
    ----------
    frame : a polars DataFrame.
    path : .csv, .parquet or .jsonl.

    Raises
    ------
    InputError
        The file has another ending.
    FileError
        It cannot be written.
    """
    method = check_table(path)
    if method == "write_csv":
        import polars as pl

        texts = pl.col(pl.String, pl.Categorical, pl.Enum).cast(pl.String)
        frame = frame.with_columns(texts.str.replace(r"^([=+\-@\t\r])", "'${1}"))
        frame = frame.rename({name: str(_quote_formula(name)) for name in frame.columns})
    return write_whole(path, getattr(frame, method))


def _align_cells(cells: list[list[str]]) -> list[str]:
    """Pad the cells of each column to equal width, control characters escaped; return one line per row.

    >>> _align_cells([["name", "n"], ["a", "10"]])
    ['name  n', 'a     10']
    """
    cells = [list(map(printable, row)) for row in cells]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
