"""Columns as levels: which value, or range of values, of each column a row has.

Text and whole numbers with few values are taken as they are, other numbers and times are cut at quantiles, missing values are a
level of their own. Values too rare to be judged, and those beyond the 50 most frequent, form one level together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from truecal.errors import FileError, InputError
from truecal.predictions import border
from truecal.types import Float64s

MOST_LEVELS = 50  # of one column: 50^3 intersections of three columns still fit into memory
_FEW_NUMBERS = 10  # distinct numbers up to which a column of numbers holds categories
_QUANTILES = 5
Kind = Literal["value", "range", "missing", "other"]


@dataclass(frozen=True)
class Level:
    """One level of a column: a value, a range low <= x < high, missing values, or all values but the listed ones."""

    column: str
    text: str
    kind: Kind
    values: tuple[str, ...] = ()
    low: float = -np.inf
    high: float = np.inf

    def holds(self, column: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether each value of the column belongs to this level.

        >>> Level("age", "30 to below 60", "range", low=30, high=60).holds(np.array([29, 30, np.nan, 60]))
        array([False,  True, False, False])
        """
        numbers, missing = _numbers(column)
        if self.kind == "missing":
            return missing
        if self.kind == "range":
            if numbers is None:
                raise InputError(f"column {self.column!r} holds text; the segment was found on numbers")
            return ~missing & (numbers >= self.low) & (numbers < self.high)
        texts, place = _texts(column)
        chosen = np.array([text in self.values for text in texts], bool)[place]
        return ~missing & (~chosen if self.kind == "other" else chosen)

    def record(self) -> dict[str, Any]:
        """Plain values for JSON; an open end is None."""
        ends = (None if np.isinf(end) else end for end in (self.low, self.high))
        return {
            "column": self.column,
            "text": self.text,
            "kind": self.kind,
            "values": list(self.values),
            **dict(zip(("low", "high"), ends, strict=True)),
        }

    @classmethod
    def of(cls, content: Any) -> "Level":
        """The level that :meth:`record` wrote; anything else is refused."""
        if not isinstance(content, dict) or content.keys() != {"column", "text", "kind", "values", "low", "high"}:
            raise FileError("a level must be an object with column, text, kind, values, low and high")
        ends, values = (content["low"], content["high"]), content["values"]
        numbers = all(end is None or (isinstance(end, (int, float)) and not isinstance(end, bool)) for end in ends)
        words = isinstance(values, list) and all(
            isinstance(v, str) for v in [*values, content["column"], content["text"]]
        )
        if not numbers or not words or content["kind"] not in get_args(Kind):
            raise FileError(f"this is no level of a column: {content!r}")
        low, high = -np.inf if ends[0] is None else float(ends[0]), np.inf if ends[1] is None else float(ends[1])
        return cls(content["column"], content["text"], content["kind"], tuple(values), low, high)


def rows_within(levels: Sequence[Level], columns: Mapping[str, NDArray[Any]], n: int) -> NDArray[np.bool_]:
    """Which of n rows have all of these levels.

    >>> rows_within([Level("site", "a", "value", ("a",))], {"site": np.array(["a", "b"])}, 2)
    array([ True, False])
    """
    inside = np.ones(n, bool)
    for level in levels:
        if level.column not in columns:
            raise InputError(f"there is no column {level.column!r}, which a segment is made of")
        inside &= level.holds(columns[level.column])
    return inside


@dataclass(frozen=True, eq=False)
class Column:
    """The levels of a column and the level of every row; `notes` say what was joined."""

    name: str
    levels: tuple[Level, ...]
    codes: NDArray[np.int32]
    notes: tuple[str, ...] = ()


def read_column(name: str, values: NDArray[Any], counts: Float64s | None, smallest: float) -> Column:
    """The levels of one column; `counts` is the number of rows behind each entry (None: one).

    >>> [level.text for level in read_column("age", np.arange(100.0), None, 1).levels]
    ['below 20', '20 to below 40', '40 to below 60', '60 to below 80', 'from 80']
    """
    if values.ndim != 1:
        raise InputError(f"column {name!r} has shape {values.shape}; one value per row is needed")
    counts = np.ones(len(values)) if counts is None else counts
    numbers, missing = _numbers(values)
    if missing.all():
        raise InputError(f"column {name!r} holds no values, only missing ones; leave it out")
    if numbers is not None and values.dtype.kind != "b" and len(np.unique(numbers[~missing])) > _FEW_NUMBERS:
        return _cut(name, numbers, missing, counts, values.dtype.kind)
    return _categories(name, *_texts(values), missing, counts, smallest)


def _numbers(values: NDArray[Any]) -> tuple[Float64s | None, NDArray[np.bool_]]:
    """The column as numbers (None for text), and which values are missing. Times count microseconds."""
    kind = values.dtype.kind
    if kind in "mM":
        missing = np.isnat(values)
        unit = "datetime64[us]" if kind == "M" else "timedelta64[us]"
        return np.where(missing, 0, values.astype(unit).astype(np.int64)).astype(np.float64), missing
    if kind in "biuf":
        numbers = values.astype(np.float64)
        return numbers, np.isnan(numbers)
    if kind == "O":
        return None, np.fromiter(map(border.is_missing, values), bool, len(values))
    return None, np.zeros(len(values), bool)


def _texts(values: NDArray[Any]) -> tuple[list[str], NDArray[np.intp]]:
    """The distinct values as text, and the place of each value among them; whole numbers without a fraction, so that 3 and 3.0
    are the same level.

    >>> _texts(np.array([3.0, 0.25, 3.0]))
    (['0.25', '3'], array([1, 0, 1]))
    """
    place = np.arange(len(values))
    # Sorting numbers is quicker than making a text of every one of them.
    if values.dtype.kind in "biufmM":
        values, place = np.unique(values, return_inverse=True)
    if values.dtype.kind == "f":
        words = [f"{v:.0f}" if np.isfinite(v) and v == np.rint(v) else f"{v:g}" for v in values.astype(np.float64)]
    else:
        words = [v if isinstance(v, str) else str(v) for v in values.tolist()]
    seen: dict[str, int] = {}
    codes = np.fromiter((seen.setdefault(word, len(seen)) for word in words), np.intp, len(words))
    return list(seen), codes[place]


def _categories(
    name: str,
    names: Sequence[str],
    place: NDArray[np.intp],
    missing: NDArray[np.bool_],
    counts: Float64s,
    smallest: float,
) -> Column:
    size = np.bincount(place[~missing], counts[~missing], len(names))
    kept = np.argsort(-size, kind="stable")[:MOST_LEVELS]
    kept = np.array(sorted(kept[size[kept] >= smallest], key=lambda i: names[i]), np.intp)
    texts_kept = [names[i] for i in kept]
    levels = [Level(name, text, "value", (text,)) for text in texts_kept]
    code = np.full(len(names), len(levels), np.int32)
    code[kept] = np.arange(len(levels), dtype=np.int32)
    rest = int((size > 0).sum()) - len(levels)
    codes = code[place]
    notes: tuple[str, ...] = ()
    if rest:
        levels.append(Level(name, f"{rest} other values", "other", tuple(texts_kept)))
        joined = size.sum() - size[kept].sum()
        notes = (f"column {name!r}: {rest:,} rare values ({joined:,.0f} rows) are judged together",)
    if missing.any():
        codes[missing] = len(levels)
        levels.append(Level(name, "missing", "missing"))
    return Column(name, tuple(levels), codes, notes)


def _cut(name: str, numbers: Float64s, missing: NDArray[np.bool_], counts: Float64s, kind: str) -> Column:
    order = np.argsort(numbers[~missing], kind="stable")
    held, reached = numbers[~missing][order], np.cumsum(counts[~missing][order])
    shares = np.arange(1, _QUANTILES) / _QUANTILES
    edges = np.unique(held[np.searchsorted(reached, shares * reached[-1], "right")])
    edges = edges[edges > held[0]]
    if not len(edges):
        # One value takes up four fifths of the rows: it against the larger ones.
        edges = held[held > held[0]][:1]
    shown = [_shown(edge, kind) for edge in edges]
    bounds = [-np.inf, *edges, np.inf]
    texts = [f"below {shown[0]}", *(f"{a} to below {b}" for a, b in pairwise(shown)), f"from {shown[-1]}"]
    levels = [
        Level(name, text, "range", low=float(low), high=float(high))
        for text, (low, high) in zip(texts, pairwise(bounds), strict=True)
    ]
    codes = np.searchsorted(edges, numbers, "right").astype(np.int32)
    if missing.any():
        codes[missing] = len(levels)
        levels.append(Level(name, "missing", "missing"))
    return Column(name, tuple(levels), codes)


def _shown(edge: float, kind: str) -> str:
    if kind == "M":
        return str(np.datetime64(int(edge), "us")).removesuffix(".000000")
    return f"{edge / 1e6:.6g} s" if kind == "m" else f"{edge:.6g}"
