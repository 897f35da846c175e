"""Segments of rows: the levels of columns, the records of rows or cells, and sums over all segments at once.

Text and numbers with few values are levels as they are, other numbers and times are cut at quantiles, missing values are a
level of their own. Values too rare to be tested, and those beyond the 50 most frequent, form one level together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise
from math import prod
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal.errors import FileError, InputError
from truecal.groups.group_tables import GroupedSketches
from truecal.lenses.lens import Lens
from truecal.predictions import validation
from truecal.types import Float64s, Indices

# ----------------------------------------------------------------------------------------------------
# Levels of columns

MAX_LEVELS = 50  # derived: of one column: 50^3 intersections of three columns still fit into memory
_FEW_NUMBERS = 10  # by choice: distinct numbers up to which a column of numbers holds categories
_QUANTILES = 5  # by choice: ranges of equal mass into which a column of numbers is cut
Kind = Literal["value", "range", "missing", "other"]


@dataclass(frozen=True)
class Level:
    """One level of a column: a value, a range low <= x < high, missing values, or all values but the listed ones.

    `text` is how it is shown. `values` are the texts of a "value" (one), or those that "other" excludes; `low` and `high` limit a
    "range".
    """

    column: str
    text: str
    kind: Kind
    values: tuple[str, ...] = ()
    low: float = -np.inf
    high: float = np.inf

    def holds(self, column: NDArray[Any]) -> NDArray[np.bool_]:
        """Mark the values of a column that belong to this level.

        >>> Level("age", "30 to below 60", "range", low=30, high=60).holds(np.array([29, 30, np.nan, 60]))
        array([False,  True, False, False])
        """
        numbers, missing = _numbers(column)
        if self.kind == "missing":
            return missing
        if self.kind == "range":
            if numbers is None:
                raise InputError(f"column {self.column!r} holds text; the segment is a range of numbers")
            return ~missing & (numbers >= self.low) & (numbers < self.high)
        texts, code = _texts(column)
        chosen = np.array([text in self.values for text in texts], bool)[code]
        return ~missing & (~chosen if self.kind == "other" else chosen)

    def record(self) -> dict[str, Any]:
        """Return the fields by name for JSON: "column", "text", "kind", "values" (a list), "low" and "high" (an open end:
        None).

        >>> Level("age", "below 30", "range", high=30).record()
        {'column': 'age', 'text': 'below 30', 'kind': 'range', 'values': [], 'low': None, 'high': 30}
        """
        ends = (None if np.isinf(end) else end for end in (self.low, self.high))
        return {
            "column": self.column,
            "text": self.text,
            "kind": self.kind,
            "values": list(self.values),
            **dict(zip(("low", "high"), ends, strict=True)),
        }

    @classmethod
    def of(cls, content: Any) -> Level:
        """Read a level from the values that :meth:`record` returns; raise FileError for anything else.

        >>> level = Level("age", "below 30", "range", high=30)
        >>> Level.of(level.record()) == level
        True
        """
        if not isinstance(content, dict) or content.keys() != {"column", "text", "kind", "values", "low", "high"}:
            raise FileError("a level must be an object with column, text, kind, values, low and high")
        ends, values = (content["low"], content["high"]), content["values"]
        has_numbers = all(end is None or (isinstance(end, (int, float)) and not isinstance(end, bool)) for end in ends)
        has_texts = isinstance(values, list) and all(
            isinstance(v, str) for v in [*values, content["column"], content["text"]]
        )
        if not has_numbers or not has_texts or content["kind"] not in get_args(Kind):
            raise FileError(f"this is not a level of a column: {content!r}")
        low, high = -np.inf if ends[0] is None else float(ends[0]), np.inf if ends[1] is None else float(ends[1])
        return cls(content["column"], content["text"], content["kind"], tuple(values), low, high)


def rows_within(levels: Sequence[Level], columns: Mapping[str, NDArray[Any]], n: int) -> NDArray[np.bool_]:
    """Mark which of n rows have all of these levels.

    >>> rows_within([Level("site", "a", "value", ("a",))], {"site": np.array(["a", "b"])}, 2)
    array([ True, False])
    """
    inside = np.ones(n, bool)
    for level in levels:
        if level.column not in columns:
            raise InputError(f"there is no column {level.column!r}, by which a segment is defined")
        inside &= level.holds(columns[level.column])
    return inside


@dataclass(frozen=True, eq=False)
class Column:
    """The levels of a column; `codes` (n,) is the position of every entry's level, `notes` say what was joined."""

    name: str
    levels: tuple[Level, ...]
    codes: NDArray[np.int32]
    notes: tuple[str, ...] = ()


def read_column(name: str, values: NDArray[Any], counts: Float64s, smallest: float) -> Column:
    """Divide the values (n,) of a column into levels; `counts` (n,) is the number of rows that each entry stands for.

    Numbers of more than 10 distinct values (not booleans) and times are cut at quintiles; other values are categories, and those
    of fewer than `smallest` rows or beyond the 50 most frequent form one level. Missing values are the last level. Refuses
    columns without a value.

    >>> [level.text for level in read_column("age", np.arange(100.0), np.ones(100), 1).levels]
    ['below 20', '20 to below 40', '40 to below 60', '60 to below 80', 'from 80']
    """
    if values.ndim != 1:
        raise InputError(f"column {name!r} has shape {values.shape}; one value per row is needed")
    numbers, missing = _numbers(values)
    if missing.all():
        raise InputError(f"column {name!r} holds no values, only missing ones; leave it out")
    present = ~missing
    if numbers is not None and values.dtype.kind != "b" and len(np.unique(numbers[present])) > _FEW_NUMBERS:
        column = _cut(name, numbers[present], counts[present], values.dtype.kind)
    else:
        column = _categories(name, *_texts(values[present]), counts[present], smallest)
    codes = np.full(len(values), len(column.levels), np.int32)
    codes[present] = column.codes
    levels = (*column.levels, *([Level(name, "missing", "missing")] if missing.any() else []))
    return replace(column, levels=levels, codes=codes)


def _numbers(values: NDArray[Any]) -> tuple[Float64s | None, NDArray[np.bool_]]:
    """Return a column as floats and the mask of missing values, both (n,); None and the mask for text and objects.

    Times are in microseconds (since 1970 for dates), 0 where missing.

    >>> _numbers(np.array([1.5, np.nan]))
    (array([1.5, nan]), array([False,  True]))
    >>> _numbers(np.array(["1970-01-02", "NaT"], "M8[D]"))
    (array([8.64e+10, 0.00e+00]), array([False,  True]))
    >>> _numbers(np.array(["a", None], object))
    (None, array([False,  True]))
    """
    kind = values.dtype.kind
    if kind in "mM":
        missing = np.isnat(values)
        unit = "datetime64[us]" if kind == "M" else "timedelta64[us]"
        return np.where(missing, 0, values.astype(unit).astype(np.int64)).astype(np.float64), missing
    if kind in "biuf":
        numbers = values.astype(np.float64)
        return numbers, np.isnan(numbers)
    if kind == "O":
        return None, validation.find_missing(values.tolist())
    return None, np.zeros(len(values), bool)


def _texts(values: NDArray[Any]) -> tuple[list[str], Indices]:
    """Return the distinct values as text, and the position of each value among them; 3 and 3.0 are the same text.

    >>> _texts(np.array([3.0, 0.25, 3.0]))
    (['0.25', '3'], array([1, 0, 1]))
    """
    distinct, position = validation.distinct(values, "column")
    code_of: dict[str, int] = {}
    codes = [code_of.setdefault(_text(value), len(code_of)) for value in distinct]
    return list(code_of), np.array(codes, np.intp)[position]


def _text(value: object) -> str:
    """Return a value as text: whole floats without decimals, other floats with up to 6 digits.

    >>> _text(3.0), _text(0.12345678), _text(3), _text("a")
    ('3', '0.123457', '3', 'a')
    """
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() else f"{value:g}"
    return str(value)


def _categories(name: str, names: Sequence[str], position: Indices, counts: Float64s, smallest: float) -> Column:
    """Make the levels of a column of categories: at most 50, the most frequent with at least `smallest` rows.

    `position` (n,) is the position of each entry in `names`, `counts` (n,) the number of its rows. Listed levels are in the
    order of their names; all other values form a last level, and a note counts them.

    >>> column = _categories("site", ["a", "b", "c"], np.array([0, 0, 1, 2]), np.ones(4), 2)
    >>> [level.text for level in column.levels], column.codes, column.notes
    (['a', '2 other values'], array([0, 0, 1, 1], dtype=int32), ("column 'site': 2 rare values (2 rows) are tested together",))
    """
    size = np.bincount(position, counts, len(names))
    listed = np.argsort(-size, kind="stable")[:MAX_LEVELS]
    listed = np.array(sorted(listed[size[listed] >= smallest], key=lambda i: names[i]), np.intp)
    texts = [names[i] for i in listed]
    levels = [Level(name, text, "value", (text,)) for text in texts]
    codes = np.full(len(names), len(levels), np.int32)
    codes[listed] = np.arange(len(levels), dtype=np.int32)
    rare = int((size > 0).sum()) - len(levels)
    notes: tuple[str, ...] = ()
    if rare:
        levels.append(Level(name, f"{rare} other values", "other", tuple(texts)))
        joined = size.sum() - size[listed].sum()
        notes = (f"column {name!r}: {rare:,} rare values ({joined:,.0f} rows) are tested together",)
    return Column(name, tuple(levels), codes[position], notes)


def _cut(name: str, numbers: Float64s, counts: Float64s, kind: str) -> Column:
    """Make the levels of a column of numbers: ranges between the distinct quintiles of the rows, lower end included.

    `kind` is the dtype kind, by which edges are written. A value that takes up four fifths of the rows and is the smallest has
    one range, all larger values the other.

    >>> column = _cut("age", np.arange(10.0), np.ones(10), "f")
    >>> [level.text for level in column.levels], column.codes
    (['below 2', '2 to below 4', '4 to below 6', '6 to below 8', 'from 8'], array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4], dtype=int32))
    """
    order = np.argsort(numbers, kind="stable")
    ascending, cumulative = numbers[order], np.cumsum(counts[order])
    shares = np.arange(1, _QUANTILES) / _QUANTILES
    edges = np.unique(ascending[np.searchsorted(cumulative, shares * cumulative[-1], "right")])
    edges = edges[edges > ascending[0]]
    if not len(edges):
        # the smallest value takes up four fifths of the rows: its range against that of all larger values
        edges = ascending[ascending > ascending[0]][:1]
    texts = [_edge_text(edge, kind) for edge in edges]
    texts = [f"below {texts[0]}", *(f"{a} to below {b}" for a, b in pairwise(texts)), f"from {texts[-1]}"]
    bounds = pairwise([-np.inf, *edges, np.inf])
    levels = [
        Level(name, text, "range", low=float(a), high=float(b)) for text, (a, b) in zip(texts, bounds, strict=True)
    ]
    return Column(name, tuple(levels), np.searchsorted(edges, numbers, "right").astype(np.int32))


def _edge_text(edge: float, kind: str) -> str:
    """Write an edge as text by the dtype kind of its column: a date ("M", microseconds since 1970), seconds ("m") or a number.

    Seconds, from microseconds, and numbers have up to 6 significant digits.

    >>> _edge_text(86_400_000_000.0, "M"), _edge_text(1_500_000.0, "m"), _edge_text(0.25, "f")
    ('1970-01-02T00:00:00', '1.5 s', '0.25')
    """
    if kind == "M":
        return str(np.datetime64(int(edge), "us")).removesuffix(".000000")
    return f"{edge / 1e6:.6g} s" if kind == "m" else f"{edge:.6g}"


# ----------------------------------------------------------------------------------------------------
# Records: rows, or cells of rows with the same levels and neighbouring scores

REGIONS = 4  # by choice: quarters of the scores
_SCORE_CELLS = 32  # by choice: cells of neighbouring scores for every group of a scan, 8 in each quarter
_MAX_SCORE_CELLS = 256  # by choice: cells of neighbouring scores for rows in memory that are joined
_MAX_JOINED = 1 << 20  # derived: cells of joined rows: 8 MiB a column
_MIN_JOINED = 1 << 19  # by choice: rows from which they are joined
_EDGE_SAMPLE = 1 << 17  # derived: a quantile of so many rows is known to 0.14 points; rows that give the edges of cells


@dataclass(frozen=True, eq=False)
class Records:
    """Scores and outcomes of rows, or of cells of rows with the same levels and neighbouring scores.

    Attributes
    ----------
    score, ones, count, weight : arrays of shape (records,)
        Mean score, number of positive outcomes, number of rows, and importance weight.
    columns : mapping of str to array
        The columns that define segments.
    edges : array of shape (3,)
        Scores between quarters of the rows; equal scores are in one quarter.
    unit : array of shape (records,) or None
        Cluster of each record; None where rows are independent.
    class_column : str or None
        The column that a lens on many classes adds.
    """

    score: Float64s
    ones: Float64s
    count: Float64s
    weight: Float64s
    columns: Mapping[str, NDArray[Any]]
    edges: Float64s
    unit: Indices | None = None
    class_column: str | None = None

    @classmethod
    def of(
        cls,
        score: Float64s,
        ones: Float64s,
        columns: Mapping[str, NDArray[Any]],
        *,
        count: Float64s | None = None,
        weight: Float64s | None = None,
        unit: Indices | None = None,
        class_column: str | None = None,
    ) -> Records:
        """Make records, of one row and weight 1 each by default, with the edges between quarters of the rows by score.

        An edge is the first score at which more than 1/4, 2/4 or 3/4 of the rows are at or below.

        >>> Records.of(np.array([0.1, 0.3, 0.6, 0.8]), np.array([0.0, 1.0, 1.0, 1.0]), {}).edges
        array([0.3, 0.6, 0.8])
        """
        count, weight = (np.ones(len(score)) if values is None else values for values in (count, weight))
        order = np.argsort(score, kind="stable")
        reached = np.cumsum(count[order])
        position = np.searchsorted(reached, reached[-1] * np.arange(1, REGIONS) / REGIONS, "right")
        edges = score[order[np.minimum(position, len(order) - 1)]]
        return cls(score, ones, count, weight, columns, edges, unit, class_column)

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.score)

    @cached_property
    def mass(self) -> Float64s:
        """Count times weight of every record, shape (records,).

        >>> zeros = np.zeros(2)
        >>> Records.of(zeros, zeros, {}, count=np.array([3.0, 1.0]), weight=np.array([0.5, 2.0])).mass
        array([1.5, 2. ])
        """
        return self.count * self.weight

    @cached_property
    def weighted(self) -> bool:
        """Whether any record has a weight other than 1.

        >>> Records.of(np.zeros(2), np.zeros(2), {}, count=np.array([3.0, 1.0])).weighted
        False
        """
        return bool((self.weight != 1).any())

    @cached_property
    def region(self) -> NDArray[np.intp]:
        """Quarter of the scores of every record, 0 to 3, shape (records,); a score on an edge belongs to the quarter above.

        >>> Records.of(np.array([0.1, 0.3, 0.6, 0.8]), np.zeros(4), {}).region
        array([0, 1, 2, 3])
        """
        return np.searchsorted(self.edges, self.score, "right")

    def residual(self, score: Float64s) -> Float64s:
        """Compute w (ones - n score) of every record for any scores (records,), w the weight and n the count of rows.

        >>> Records.of(np.array([0.25]), np.array([3.0]), {}, count=np.array([4.0])).residual(np.array([0.5]))  # 3 - 4 x 0.5
        array([1.])
        """
        return self.weight * (self.ones - self.count * score)

    def moments(self, score: Float64s) -> Float64s:
        """Compute the second and third cumulant of every residual if its `score` c (records,) is true, shape (records, 2).

        They are w^2 n c (1 - c) and w^3 n c (1 - c) (1 - 2 c), w the weight and n the count of rows.

        >>> Records.of(np.array([0.25]), np.array([3.0]), {}, count=np.array([4.0])).moments(np.array([0.25]))
        array([[0.75 , 0.375]])
        """
        second = self.weight * self.mass * score * (1 - score)
        return np.stack([second, self.weight * second * (1 - 2 * score)], axis=1)


def records_of(preds: tc.Predictions, lens: Lens) -> Records:
    """Make a record of every row; a lens on many classes gives one per row and class, with the class as a column.

    Weights that are all whole numbers are counts; others are scaled to sum to Kish's effective size.
    """
    if lens.several:
        raise InputError(
            f"an audit judges one probability at a time, not {lens!r}; use tc.TopLabel() or tc.OneClass(name)"
        )
    samples = list(lens.samples(preds))
    score, ones = (
        np.concatenate([getattr(sample, name) for sample in samples]).astype(np.float64)
        for name in ("scores", "outcomes")
    )
    columns, unit, weights = dict(preds.columns), preds.clusters, preds.weights
    if len(score) > len(preds):
        # Pairs of a row that a lens pools are neighbours; classes follow one another.
        rows = np.concatenate([np.repeat(np.arange(len(preds)), len(sample) // len(preds)) for sample in samples])
        columns = {name: values[rows] for name, values in columns.items()}
        weights = None if weights is None else weights[rows]
        unit = rows if unit is None else unit[rows]
    class_column = None
    if len(samples) > 1:
        class_column = "class" if "class" not in columns else "class judged"
        columns[class_column] = np.repeat([sample.names[0] for sample in samples], [len(sample) for sample in samples])
    count, weight = None, weights
    if weights is not None and (weights == np.rint(weights)).all():  # whole weights count rows
        count, weight, ones = weights, None, ones * weights
    elif weights is not None:  # importance weights, scaled to Kish's effective size
        weight = weights * (weights.sum() / (weights**2).sum())
    return Records.of(score, ones, columns, count=count, weight=weight, unit=unit, class_column=class_column)


def records_of_groups(groups: GroupedSketches) -> Records:
    """Make records of a scan: one per combination of values of the columns and 1/32 of all rows by score, where it has rows.

    A record has the number of rows (`count`), of ones, and the mean score; its weight is 1. Refuses scans without groups, of all
    classes, or with weights that are not whole numbers.
    """
    if not groups.by:
        raise InputError("the scan was not grouped; name the columns to audit: tc.scan(..., by=[...])")
    if any(len(parts) > 1 for parts in groups.sketches.values()):
        raise InputError(
            "a scan of all classes does not store which outcomes belong to one row; audit tc.OneClass(name) or TopLabel()"
        )
    keys = sorted(groups.sketches, key=repr)  # redraws depend on the order, which differs between engines
    sketches = [groups.sketches[key][0] for key in keys]
    if any(sketch.fraction > 0 for sketch in sketches):
        raise InputError("a scan with weights that are not whole numbers cannot be audited; audit the rows in memory")
    w, y, c = (np.concatenate(parts) for parts in zip(*map(_sums, sketches), strict=True))
    group = np.repeat(np.arange(len(keys)), [len(sketch.edges) for sketch in sketches])
    order = np.argsort(c / w, kind="stable")
    cell = np.empty(len(c), np.intp)
    cumulative = np.cumsum(w[order])
    cell[order] = np.minimum((cumulative - w[order] / 2) * _SCORE_CELLS / cumulative[-1], _SCORE_CELLS - 1).astype(
        np.intp
    )
    joined, position = np.unique(group * _SCORE_CELLS + cell, return_inverse=True)
    count, ones, total = (np.bincount(position, a, len(joined)).astype(np.float64) for a in (w, y, c))
    columns = {}
    for i, name in enumerate(groups.by):
        values = np.empty(len(keys), object)
        values[:] = [key[i] for key in keys]
        columns[name] = _as_numbers(values)[joined // _SCORE_CELLS]
    return Records.of(np.clip(total / count, 0.0, 1.0), ones, columns, count=count)


def join_records(records: Records, columns: Sequence[Column]) -> tuple[Records, list[Column]]:
    """Join independent records of the same levels and neighbouring scores into cells; return these, and the columns of the cells.

    Only from 524,288 records on, without clusters and weights, and if there can be 32 or more cells of the score; records and
    columns are returned unchanged otherwise.

    Every cell lies in one region of the scores. A cell of n rows and mean score c has the variance n c (1 - c), above that of its
    rows by their spread: with 256 cells of equal mass by less than 1e-4 of it.
    """
    level_sets = prod(len(column.levels) for column in columns)
    cells = min(_MAX_SCORE_CELLS, _MAX_JOINED // level_sets)
    if records.unit is not None or records.weighted or cells < _SCORE_CELLS or len(records) < _MIN_JOINED:
        return records, list(columns)
    sample = np.sort(records.score[:: max(1, len(records) // _EDGE_SAMPLE)])
    quantiles = sample[np.arange(1, cells) * len(sample) // cells]
    # scores of exactly 0 and 1 are cells of their own
    edges = np.unique(np.concatenate([quantiles, records.edges, [np.nextafter(0.0, 1.0), 1.0]]))
    code = np.searchsorted(edges, records.score, "right")
    for column in columns:
        code = code * len(column.levels) + column.codes
    size = (len(edges) + 1) * level_sets
    sums = [np.bincount(code, a, size) for a in (records.count, records.ones, records.count * records.score)]
    filled = np.flatnonzero(sums[0])
    count, ones, total = (values[filled].astype(np.float64) for values in sums)
    levels, cell = [], filled
    for column in reversed(columns):
        cell, codes = np.divmod(cell, len(column.levels))
        levels.append(replace(column, codes=codes.astype(np.int32)))
    low, high = np.append(0.0, edges)[cell], np.append(np.nextafter(edges, 0.0), 1.0)[cell]
    score = np.clip(total / count, low, high)  # no rounding out of the cell, hence of the region
    return Records(score, ones, count, np.ones(len(count)), {}, records.edges), levels[::-1]


def _sums(sketch: tc.Sketch) -> tuple[Float64s, Float64s, Float64s]:
    """Return the sums of weights, of weighted ones and of weighted scores in every cell of a sketch, (cells,) each.

    >>> _sums(tc.Sketch.from_arrays([0.25, 0.25, 0.5], [0, 1, 1]))
    (array([2., 1.]), array([1., 1.]), array([0.5, 0.5]))
    """
    w, y, r = (sketch.sums[name] for name in ("w", "y", "r"))
    return w, y, w * sketch.edges + r


def _as_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Return a column of objects as floats (None as NaN) if all values are int or float, as bool if all are, else unchanged.

    >>> _as_numbers(np.array([1, None], object)), _as_numbers(np.array([True, False], object))
    (array([ 1., nan]), array([ True, False]))
    """
    kinds = {type(v) for v in values.tolist() if v is not None}
    if kinds <= {int, float}:
        return np.array([np.nan if v is None else v for v in values.tolist()], np.float64)
    if kinds == {bool} and not any(v is None for v in values.tolist()):
        return values.astype(bool)
    return values


# ----------------------------------------------------------------------------------------------------
# Sums over every segment and quarter of scores at once

Subset = tuple[int, ...]


class SegmentSums:
    """Sums over all segments of at least `smallest` rows, by quarter of the scores.

    A segment with the same rows as one of fewer columns is left out.

    Attributes
    ----------
    records : Records
        What is summed.
    columns : sequence of Column
        The columns that define segments.
    max_depth : int
        Largest number of columns of a segment.
    smallest : int
        Fewest rows of a segment.
    depth : ndarray of shape (segments,)
        Number of columns of each segment.
    rows : ndarray of shape (segments, 4)
        Number of rows in each quarter.
    """

    def __init__(self, records: Records, columns: Sequence[Column], depth: int, smallest: int) -> None:
        """Find the segments of up to `depth` columns that have at least `smallest` rows.

        >>> levels = tuple(Level("site", name, "value", (name,)) for name in ("a", "b"))
        >>> site = Column("site", levels, np.array([0, 0, 1, 0]))
        >>> rows = Records.of(np.array([0.1, 0.3, 0.6, 0.8]), np.zeros(4), {})
        >>> sums = SegmentSums(rows, [site], 1, 2)
        >>> [sums.levels(i) for i in range(len(sums))], sums.rows  # site a, and all rows; site b has one row
        ([((0, 0),), ()], array([[1., 1., 0., 1.],
               [1., 1., 1., 1.]]))
        """
        self.records, self.columns, self.max_depth, self.smallest = records, columns, depth, smallest
        self._sizes = [len(column.levels) for column in columns]
        # One sparse product sums over the combinations of `depth` columns; tables of fewer columns are sums of these.
        self._subsets: list[Subset] = [s for d in range(depth, -1, -1) for s in combinations(range(len(columns)), d)]
        self._products = {subset: self._membership(subset) for subset in self._subsets if len(subset) == depth}
        counts = self._tables(records.count[:, None])
        self._tested = {subset: np.flatnonzero(self._is_tested(subset, counts)) for subset in self._subsets}
        cells = list(self._tested.values())
        self._subset = np.repeat(np.arange(len(cells)), [len(codes) for codes in cells])
        self._cell = np.concatenate(cells)
        self.depth = np.array([len(subset) for subset in self._subsets])[self._subset]
        self.rows: Float64s = self(records.count[:, None])[..., 0].astype(np.float64)

    def __len__(self) -> int:
        """Return the number of segments."""
        return len(self._cell)

    def __call__(self, values: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
        """Sum values of records, shape (records, d), over every segment and quarter, shape (segments, 4, d)."""
        tables, shape = self._tables(values), (-1, REGIONS, values.shape[1])
        return np.concatenate([tables[subset].reshape(shape)[cells] for subset, cells in self._tested.items()])

    def levels(self, segment: int) -> tuple[tuple[int, int], ...]:
        """Return (index of the column, index of the level) for each column of a segment; () for all rows."""
        subset = self._subsets[int(self._subset[segment])]
        codes = np.unravel_index(int(self._cell[segment]), [self._sizes[j] for j in subset]) if subset else ()
        return tuple((j, int(code)) for j, code in zip(subset, codes, strict=True))

    def mask(self, segment: int) -> NDArray[np.bool_]:
        """Mark the records of a segment, shape (records,)."""
        inside = np.ones(len(self.records), bool)
        for j, code in self.levels(segment):
            inside &= self.columns[j].codes == code
        return inside

    def _membership(self, subset: Subset) -> Any:
        """Make the sparse 0/1 matrix (cells, records) of the intersections of some columns' levels with the quarters of the scores.

        Cells are in row-major order: the level of the first column of `subset` varies slowest, the quarter fastest.
        """
        from scipy.sparse import csr_array

        records, sizes = self.records, [*(self._sizes[j] for j in subset), REGIONS]
        codes = np.ravel_multi_index([*(self.columns[j].codes for j in subset), records.region], sizes)
        cells = prod(sizes)
        order = np.argsort(codes.astype(np.uint16) if cells <= 1 << 16 else codes, kind="stable").astype(np.int32)
        ends = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=cells))]).astype(np.int32)
        return csr_array((np.ones(len(records), np.float32), order, ends), shape=(cells, len(records)))

    def _tables(self, values: NDArray[Any]) -> dict[Subset, NDArray[Any]]:
        """Sum values (records, d) over all intersections of levels, by subset of columns.

        A table has one axis per column of the subset, of the length of its levels, then one of the 4 quarters, then d.
        """
        values = np.ascontiguousarray(values)
        tables: dict[Subset, NDArray[Any]] = {}
        for subset in self._subsets:
            if subset in self._products:
                shape = [*(self._sizes[j] for j in subset), REGIONS, values.shape[1]]
                tables[subset] = (self._products[subset] @ values).reshape(shape)
            else:
                further = next(j for j in range(len(self.columns)) if j not in subset)
                finer = tuple(sorted((*subset, further)))
                tables[subset] = tables[finer].sum(axis=finer.index(further))
        return tables

    def _is_tested(self, subset: Subset, counts: dict[Subset, NDArray[Any]]) -> NDArray[np.bool_]:
        """Mark the intersections of the levels of some columns that are tested, (cells,), the first column varying slowest.

        They have at least `smallest` rows, and fewer than each segment without one of their columns. `counts` are the numbers of
        rows by subset: one axis per column, then quarters, then 1.
        """
        rows = counts[subset].sum(axis=(-2, -1))
        is_tested = rows >= self.smallest
        for axis in range(len(subset)):
            coarser = counts[subset[:axis] + subset[axis + 1 :]].sum(axis=(-2, -1))
            is_tested &= rows < np.expand_dims(coarser, axis)
        return is_tested.ravel()
