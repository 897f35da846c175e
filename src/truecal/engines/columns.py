"""SourceColumns, cells, logits and selections as expressions that any engine can run.

The formula is that of `truecal.profile.cells`, in narwhals expressions: additions, multiplications, comparisons and a
floor in float64, each of which every engine rounds alike. Rows that cannot be counted get a key of their own instead of a cell,
so the pass that counts also checks.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from functools import reduce
from typing import Any
from zoneinfo import ZoneInfo

import narwhals as nw
import numpy as np

import truecal as tc
from truecal.errors import InputError
from truecal.predictions import frames, validation
from truecal.predictions.selection import Selection, as_time
from truecal.profile.cells import LEAST_ZONE, MIDDLE_ZONE, SPLIT, ZONE_CELLS
from truecal.types import Float64s

# ----------------------------------------------------------------------------------------------------
# The cells of a sketch as a group-by expression, written once and run by whatever engine holds the data

# Keys are edges relative to the nearer end, floor(v q) / q: 14 bits at most, so float32 holds them, and half the bytes are hashed.
_ONE = 1.0  # derived: key of the score 1, whose edge would be that of the score 0
UNFIT = 2.0  # derived: no score is 2; key of rows that fall into no cell
_MAX_LISTED = 8  # by choice: labels of a column that is text; more than two are refused

_PREFIX = "_tc_"  # of the columns that a scan adds; the user's may not have it
# Columns of a judged frame (see `judge_rows`), and those made of them here.
C, Y, W, OK, PRESENT, SELECTED = "_tc_c", "_tc_y", "_tc_w", "_tc_ok", "_tc_present", "_tc_selected"
_UPPER, _V, _Z, _WIDTH, _EDGE, KEY, _R, _WY, _WR = (
    f"_tc_{name}" for name in ("upper", "v", "z", "width", "edge", "key", "r", "wy", "wr")
)


def with_cells(frame: Any, *, weighted: bool, checked: bool) -> Any:
    """Add KEY, the key of every row's cell, and the score minus the cell's left edge to a lazy frame of scores C and outcomes Y.

    A row that cannot be counted has the key UNFIT; `count_failures` counts the reasons in a second pass, which valid data do not
    need. `weighted`: the frame has weights (W). `checked`: it has OK, whether the probabilities of a row sum to 1.
    """
    c, upper, v, z, width = (nw.col(name) for name in (C, _UPPER, _V, _Z, _WIDTH))
    split = v * SPLIT
    frame = frame.with_columns(number(c >= 0.5).alias(_UPPER))
    frame = frame.with_columns((c - upper).alias(_V))
    frame = frame.with_columns((split - (split - v)).abs().alias(_Z))
    least_width = nw.lit(LEAST_ZONE / ZONE_CELLS)
    # nested: engines that branch by rows compute the inner one for few of them
    near_end = nw.when(z > LEAST_ZONE).then(z * (1.0 / ZONE_CELLS)).otherwise(least_width)
    widths = nw.when(z < MIDDLE_ZONE).then(near_end).otherwise(nw.lit(MIDDLE_ZONE / ZONE_CELLS))
    frame = frame.with_columns(widths.alias(_WIDTH))
    frame = frame.with_columns((_floor(frame, v / width) * width).alias(_EDGE))
    fits = _all_of(condition for condition, _ in _row_checks(weighted=weighted, checked=checked))
    key = nw.when(fits).then(nw.col(_EDGE) + number(c >= 1.0)).otherwise(nw.lit(UNFIT))
    return frame.with_columns(key.cast(nw.Float32).alias(KEY), (v - nw.col(_EDGE)).alias(_R))


def edges_of(key: Float64s) -> Float64s:
    """Return the left edges of cells, in [0, 1], from their keys: a negative key is the edge minus 1, the key 1 the cell of 1.

    >>> import numpy as np
    >>> edges_of(np.array([0.25, -0.5, 1.0]))
    array([0.25, 0.5 , 1.  ])
    """
    return np.where(key == _ONE, 1.0, np.where(key < 0, key + 1.0, key))


def count_failures(frame: Any, *, weighted: bool, checked: bool) -> Any:
    """Return a lazy frame of one row: the number of rows by the first check that they fail, and `low` and `high`.

    Its columns are "missing", "score", "label", with weights "weight" and "zero weight", if `checked` "sum". `low` and `high` are
    the extremes of scores that are present but out of range, null if there are none.
    """
    checks = [(nw.col(PRESENT), "missing"), *_row_checks(weighted=weighted, checked=checked)]
    counts, passed_before = [], None
    for condition, name in checks:
        fails_first = number(~condition).fill_null(1.0) * (1.0 if passed_before is None else passed_before)
        counts.append(fails_first.alias(name))
        passed = number(condition).fill_null(0.0)
        passed_before = passed if passed_before is None else passed_before * passed
    frame = frame.with_columns(*counts)
    sums = [nw.col(name).sum() for _, name in checks]
    # only scores out of range: extremes of all rows would depend on how an engine splits the rows into parts
    scores = nw.when(nw.col(PRESENT) & (nw.col("score") > 0.0)).then(nw.col(C))
    frame = frame.with_columns(scores.alias(C))
    return frame.select(*sums, nw.col(C).min().alias("low"), nw.col(C).max().alias("high"))


def _row_checks(*, weighted: bool, checked: bool) -> list[tuple[Any, str]]:
    """Return (condition, name) of each check of a row: score, label, with weights also weight and zero weight, if `checked` sum."""
    c, y, w = nw.col(C), nw.col(Y), nw.col(W)
    # labels are whole numbers: two comparisons that nearly always hold are faster than an "or" that labels decide
    checks = [((c >= 0.0) & (c <= 1.0), "score"), ((y >= 0) & (y <= 1), "label")]
    if weighted:
        checks += [((w >= 0.0) & w.is_finite(), "weight"), (w > 0.0, "zero weight")]
    return [*checks, (nw.col(OK), "sum")] if checked else checks


def _all_of(conditions: Iterable[Any]) -> Any:
    """Combine conditions, at least one, by `and`.

    >>> _all_of([np.array([True, True]), np.array([True, False])])
    array([ True, False])
    """
    return reduce(lambda a, b: a & b, conditions)


def number(condition: Any) -> Any:
    """Convert a condition to 1.0 or 0.0; every engine can cast, but not every one branches over literals."""
    return condition.cast(nw.Float64)


def _floor(frame: Any, values: Any) -> Any:
    """Return values rounded down, as an expression.

    Spark's floor is an integer, so values beyond whole float64s are 0 there: their rows have no cell.
    """
    if frame.implementation.is_spark_like():
        values = nw.when(values.abs() < validation.LARGEST_EXACT).then(values).otherwise(nw.lit(0.0))
    return values.floor()


def sum_cells(frame: Any, by: list[str], *, weighted: bool) -> Any:
    """Sum rows by the `by` columns and cell into n, y, r, rr, ry (with weights also w, ww), low and high of the score; lazy.

    r is the score minus the cell's left edge. With weights, y to ry are weighted sums, and lightest, heaviest and fraction (the
    largest distance of a weight from a whole number) are added.
    """
    y, r, w, c = nw.col(Y), nw.col(_R), nw.col(W), nw.col(C)
    extremes = [c.min().alias("low"), c.max().alias("high")]
    if not weighted:
        frame = frame.with_columns((r * r).alias("_tc_rr"), (r * y).alias("_tc_ry"))
        sums = [nw.len().alias("n"), y.sum().alias("y"), r.sum().alias("r")]
        sums += [nw.col("_tc_rr").sum().alias("rr"), nw.col("_tc_ry").sum().alias("ry")]
        return frame.group_by(*by, KEY).agg(*sums, *extremes)
    fraction = w - _floor(frame, w)
    frame = frame.with_columns(
        (w * y).alias(_WY), (w * r).alias(_WR), (w * w).alias("_tc_ww"), fraction.alias("_tc_beyond")
    )
    frame = frame.with_columns((nw.col(_WR) * r).alias("_tc_rr"), (nw.col(_WR) * y).alias("_tc_ry"))
    fraction = nw.col("_tc_beyond")
    # distance to the nearest whole number: whether weights are counts
    frame = frame.with_columns(nw.when(fraction <= 0.5).then(fraction).otherwise(1.0 - fraction).alias("_tc_fraction"))
    named = {"y": _WY, "r": _WR, "rr": "_tc_rr", "ry": "_tc_ry", "w": W, "ww": "_tc_ww"}
    sums = [nw.len().alias("n"), *(nw.col(column).sum().alias(name) for name, column in named.items())]
    extremes += [w.min().alias("lightest"), w.max().alias("heaviest"), nw.col("_tc_fraction").max().alias("fraction")]
    return frame.group_by(*by, KEY).agg(*sums, *extremes)


# ----------------------------------------------------------------------------------------------------
# Which columns of a source are what, and the labels and probabilities they hold as expressions an engine can run


@dataclass(frozen=True)
class SourceColumns:
    """The columns of a source with labels, predictions, weights and groups, checked against its schema.

    `classes` are the names of the classes, None without names; `by_position`: labels are positions of classes, not names.
    `precision` is the number of bytes of a score.
    """

    label: str
    probs: tuple[str, ...]  # one column of P(positive), or one per class
    listed: int  # classes in a list column; 0 where probabilities are plain columns
    weight: str | None
    by: tuple[str, ...]
    classes: tuple[object, ...] | None
    by_position: bool
    precision: int
    whole_labels: bool  # the label column holds integers
    logits: bool  # `probs` are logits (until `with_probs` has turned them into probabilities)
    output_names: tuple[str, ...]  # the columns of predictions as the source has them

    @property
    def binary(self) -> bool:
        """Whether one column holds the probability of the positive class."""
        return len(self.probs) == 1 and not self.listed

    @property
    def count(self) -> int:
        """Number of classes."""
        return 2 if self.binary else self.listed or len(self.probs)

    @property
    def outputs_text(self) -> str:
        """Names of the prediction columns for messages: the only one, or "first ... last"."""
        return (
            self.output_names[0]
            if len(self.output_names) == 1
            else f"{self.output_names[0]} ... {self.output_names[-1]}"
        )

    @property
    def specimen(self) -> tc.Predictions:
        """Predictions of one row with the same classes, for lenses and selections to find classes and describe themselves."""
        probs = np.full(1 if self.binary else (1, self.count), 1 / self.count)
        return tc.Predictions(probs, np.zeros(1, np.intp), classes=self.classes)


@dataclass(frozen=True)
class ColumnRequest:
    """The arguments of :func:`scan` that name columns."""

    label: str
    score: str | None
    probs: str | Sequence[str] | None
    logits: str | Sequence[str] | None
    weights: str | None
    by: tuple[str, ...]
    classes: Sequence[object] | None

    @property
    def predictions(self) -> str | Sequence[str]:
        """The columns of predictions: `score`, `probs` or `logits`; refuse none or several of them.

        >>> ColumnRequest("y", "p", None, None, None, (), None).predictions
        'p'
        """
        outputs = [output for output in (self.score, self.probs, self.logits) if output is not None]
        if len(outputs) != 1:
            raise InputError(
                "say where the predictions are: score= for P(positive), probs= for all classes or logits=, one of the three"
            )
        return outputs[0]

    @property
    def needed(self) -> list[str]:
        """The columns of labels and, if given, weights.

        >>> ColumnRequest("y", "p", None, None, "w", (), None).needed
        ['y', 'w']
        """
        return [self.label, *([] if self.weights is None else [self.weights])]


def choose_columns(frame: Any, request: ColumnRequest) -> SourceColumns:
    """Find the requested columns in the schema of a lazy frame; refuse missing columns and types that do not fit.

    Class names are those given, else what the star of a pattern such as p_* matches; text labels are refused without either.
    """
    schema = frame.collect_schema()
    names = list(schema)
    label, score = request.label, request.score
    outputs, stars = frames.match_outputs(names, request.predictions, request.classes)
    frames.refuse_shared(outputs, label, request.weights)
    frames.matching(names, [*request.needed, *request.by], "label, weights and groups")
    reserved = next((name for name in names if name.casefold().startswith(_PREFIX)), None)
    if reserved is not None:
        raise InputError(f"a scan names its own columns {_PREFIX}...; rename the column {reserved!r}")
    used = [*outputs, *request.needed, *request.by]
    syntax = next((name for name in used if frame.implementation.is_spark_like() and re.search("[.`]", name)), None)
    if syntax is not None:
        raise InputError(
            f"Spark takes . and ` in the name {syntax!r} as syntax; rename the column, or read it with engine='polars' "
            "(--engine polars)"
        )
    try:
        refuse_unfit_types(schema, outputs, request)
    except InputError:
        _refuse_empty(frame)
        raise
    listed = 0
    if isinstance(schema[outputs[0]], (nw.List, nw.Array)):
        listed = _classes_in_lists(frame, outputs)
    if score is not None and (len(outputs) > 1 or listed):
        raise InputError(
            f"score={score!r} names {len(outputs)} columns; name the class probabilities with probs= instead"
        )
    count = listed or max(len(outputs), 2)
    is_text = isinstance(schema[label], (nw.String, nw.Categorical, nw.Enum))
    given, named = _classes_as_labels(request, is_text=is_text)
    classes = frames.class_names(outputs, request.predictions, stars, given, numeric=not is_text)
    if classes is None and is_text:
        _refuse_empty(frame)
        raise InputError(
            f"labels in {label!r} are text; list the classes in the order of the columns: classes= (--classes)"
        )
    bytes_per_value = [4 if isinstance(schema[name], (nw.Float32, nw.Float16)) else 8 for name in outputs]
    return SourceColumns(
        label=label,
        probs=tuple(outputs),
        listed=listed,
        weight=request.weights,
        by=request.by,
        classes=validation.check_classes(classes, count),
        by_position=classes is None or named,
        precision=min(bytes_per_value),
        whole_labels=schema[label].is_integer(),
        logits=request.logits is not None,
        output_names=tuple(outputs),
    )


def refuse_unfit_types(schema: Mapping[str, Any], outputs: Sequence[str], request: ColumnRequest) -> None:
    """Refuse predictions and weights that are not numbers, labels that are times, and groups and labels of several values."""
    singles = [name for name in (*request.needed, *request.by) if name in schema]
    frames.refuse_nested(schema, singles, "labels, weights and groups")
    for name in [*outputs, *request.needed[1:]]:
        dtype = schema[name]
        inner = dtype.inner if isinstance(dtype, (nw.List, nw.Array)) else dtype
        has_no_values = isinstance(inner, nw.Unknown)  # the type of a column of nulls
        if not (inner.is_numeric() or inner.is_boolean() or has_no_values):
            raise InputError(f"column {name!r} holds {dtype}, not numbers; name the columns of predictions and weights")
    if schema[request.label].is_temporal():
        raise InputError(f"labels in {request.label!r} are {schema[request.label]}; give numbers or text")


def _classes_as_labels(request: ColumnRequest, *, is_text: bool) -> tuple[Sequence[object] | None, bool]:
    """Return the classes as values of the label, and whether they name its positions.

    For numeric labels, whole numbers written as text become numbers, and other text names positions. Numbers for labels that are
    text are refused.
    """
    classes = request.classes
    if classes is None or all(isinstance(name, str) == is_text for name in classes):
        return classes, False
    if not is_text and all(str(name).lstrip("-").isdigit() for name in classes):
        return [int(str(name)) for name in classes], False
    if not is_text and all(isinstance(name, str) for name in classes):
        return classes, True
    kinds = ("text", "numbers") if is_text else ("numbers", "text")
    raise InputError(
        f"labels in {request.label!r} are {kinds[0]}, and the classes {kinds[1]}; list them as the labels are"
    )


def arrays_as_lists(frame: Any) -> Any:
    """Convert columns of arrays of one length to columns of lists of float64, which every engine can index."""
    schema = frame.collect_schema()
    arrays = [name for name, dtype in schema.items() if isinstance(dtype, nw.Array)]
    return frame.with_columns(nw.col(name).cast(nw.List(nw.Float64)) for name in arrays) if arrays else frame


def text_labels(frame: Any, request: ColumnRequest) -> Any:
    """Return the distinct labels as a lazy frame, if they are text and the predictions of two classes name none; else None.

    At most 8, but for Dask all; null is left out.
    """
    schema = frame.collect_schema()
    if request.label not in schema or not isinstance(schema[request.label], (nw.String, nw.Categorical, nw.Enum)):
        return None
    outputs, stars = frames.match_outputs(list(schema), request.predictions, None)
    is_list = isinstance(schema[outputs[0]], (nw.List, nw.Array))
    count = _classes_in_lists(frame, outputs) if is_list else max(len(outputs), 2)
    if count != 2 or (len(outputs) > 1 and stars is not None):
        return None
    labels = frame.select(nw.col(request.label).cast(nw.String)).drop_nulls().unique()
    return (
        labels if frame.implementation.is_dask() else labels.head(_MAX_LISTED)
    )  # Dask's head reads the first part only


def _refuse_empty(frame: Any) -> None:
    """Refuse a source without rows; called before a type is refused, since columns without rows have no type in text files."""
    if len(frame.head(1).collect()) == 0:
        raise InputError("the source has no rows; at least one is needed")


def _classes_in_lists(frame: Any, outputs: list[str]) -> int:
    """Return the number of classes: the length of the first list; refuse several columns and no list.

    Lists of other lengths are found later, row by row.
    """
    if len(outputs) > 1:
        raise InputError(f"{len(outputs)} list columns match; name one column of lists, or plain columns")
    lists = frame.filter(~nw.col(outputs[0]).is_null())
    first = lists.select(nw.col(outputs[0]).list.len().alias("length")).head(1).collect()
    if len(first) == 0:
        raise InputError(f"column {outputs[0]!r} has no values; nothing is left to judge")
    return int(first["length"][0])


def label_index(columns: SourceColumns) -> Any:
    """Return an expression: the label as a class index, -1 if it is not whole or among the classes.

    Columns of integers are returned as they are, unchecked.
    """
    label = nw.col(columns.label)
    if columns.whole_labels and columns.by_position:
        return label
    if columns.by_position:
        label = label.cast(nw.Float64)
        label = nw.when((label >= 0.0) & (label < validation.LARGEST_EXACT)).then(label).otherwise(nw.lit(-1.0))
        return nw.when(label.floor() == label).then(label).otherwise(nw.lit(-1.0))
    names = columns.classes or ()
    return nw.sum_horizontal(*(number(label == literal(name)) * (i + 1.0) for i, name in enumerate(names))) - 1.0


def literal(value: object) -> Any:
    """Return a value as a narwhals literal, to be compared with a column."""
    return nw.lit(value)  # type: ignore[arg-type]


def with_present(frame: Any, columns: SourceColumns) -> Any:
    """Add the column PRESENT: whether label, weight and all predictions of a row are neither null nor NaN."""
    schema = frame.collect_schema()
    singles = [columns.label, *([] if columns.weight is None else [columns.weight])]
    floats = [*class_columns(columns), *(nw.col(name) for name in singles if schema[name].is_float())]
    present = [~nw.col(name).is_null() for name in singles if not schema[name].is_float()]
    for value in floats:
        present += [~value.is_null(), ~value.is_nan()]
    return frame.with_columns(nw.all_horizontal(*present, ignore_nulls=False).alias(PRESENT))


def class_probs(columns: SourceColumns) -> list[Any]:
    """Return an expression per class: its probability in float64; for one column p of two classes, 1 - p and p."""
    outputs = class_columns(columns)
    return [1.0 - outputs[0], outputs[0]] if columns.binary else outputs


def class_columns(columns: SourceColumns) -> list[Any]:
    """Return an expression per class, in order: its column (of the positive class alone, if there is one column), in float64."""
    if columns.listed:
        return [nw.col(columns.probs[0]).list.get(i).cast(nw.Float64) for i in range(columns.listed)]
    return [nw.col(name).cast(nw.Float64) for name in columns.probs]


# ----------------------------------------------------------------------------------------------------
# Logits turned into probabilities where the data are: the softmax and the sigmoid of `truecal.special` as expressions

_TOP, _TOTAL = "_tc_top", "_tc_total"


def with_probs(frame: Any, columns: SourceColumns) -> tuple[Any, SourceColumns]:
    """Add a column of probabilities for every column of logits, in float64; return the frame and its new columns.

    Without logits both are returned unchanged. A logit of -inf gives the probability 0. One of inf, and a row of -inf alone, give
    NaN, which is then counted and refused like any other.
    """
    if not columns.logits:
        return frame, columns
    names = [f"_tc_logit{i}" for i in range(columns.listed or len(columns.probs))]
    outputs = [nw.col(name) for name in names]
    frame = frame.with_columns(
        *(_not_inf(z).alias(name) for z, name in zip(class_columns(columns), names, strict=True))
    )
    if columns.binary:
        z, exp_neg_abs = outputs[0], nw.col(_TOP)
        frame = frame.with_columns((-z.abs()).exp().alias(_TOP))
        frame = frame.with_columns(
            (nw.when(z >= 0.0).then(1.0).otherwise(exp_neg_abs) / (1.0 + exp_neg_abs)).alias(names[0])
        )
    else:
        frame = frame.with_columns(nw.max_horizontal(*outputs).alias(_TOP))
        frame = frame.with_columns(
            *((z - nw.col(_TOP)).exp().alias(name) for z, name in zip(outputs, names, strict=True))
        )
        frame = frame.with_columns(nw.sum_horizontal(*outputs).alias(_TOTAL))
        frame = frame.with_columns(*((z / nw.col(_TOTAL)).alias(name) for z, name in zip(outputs, names, strict=True)))
    return frame, replace(columns, probs=tuple(names), listed=0, precision=8)


def _not_inf(z: Any) -> Any:
    """Return an expression: the logit z, NaN where it is inf or NaN; -inf stays, the logit of probability 0."""
    return nw.when(z < np.inf).then(z).otherwise(z - z)


# ----------------------------------------------------------------------------------------------------
# Selections pushed down: the rows of an engine as `Rows` of a selection, in expressions that run where the data are


@dataclass(frozen=True)
class _EngineRows:
    """Rows of an engine: the methods of `truecal.predictions.selection.Rows` return narwhals expressions."""

    columns: SourceColumns
    schema: Mapping[str, Any]  # types of all columns of the source

    def labelled(self, names: tuple[object, ...]) -> Any:
        """Return an expression: whether the label is one of these classes."""
        label = label_index(self.columns)
        return _any_of(label == float(self.columns.specimen.class_index(name)) for name in names)

    def output(self, class_name: object) -> Any:
        """Return an expression: the probability of a class; None is the positive of two, else the largest."""
        probs = class_probs(self.columns)
        if class_name is not None:
            return probs[self.columns.specimen.class_index(class_name)]
        return probs[1] if self.columns.count == 2 else nw.max_horizontal(*probs)

    def among(self, name: str, values: tuple[object, ...]) -> Any:
        """Return an expression: whether a column has one of these values; text, numbers and times equal none of another kind."""
        dtype, present = self._dtype(name), nw.col(name)
        missing = present.is_null() | present.is_nan() if dtype.is_float() else present.is_null()
        return _any_of(missing if value is None else self._equals(present, dtype, value) for value in values)

    def _equals(self, present: Any, dtype: Any, value: Any) -> Any:
        """Return an expression: whether a column equals a value as it does in memory."""
        if dtype.is_temporal():
            value = as_time(value)
            if isinstance(dtype, nw.Date) and isinstance(value, datetime) and value.time() == time():
                value = value.date()
            elif isinstance(dtype, nw.Datetime) and isinstance(value, date):
                value = value if isinstance(value, datetime) else datetime.combine(value, time())
                zone = dtype.time_zone  # polars compares times of one zone only
                value = value if zone is None else value.replace(tzinfo=UTC).astimezone(ZoneInfo(zone))
        elif isinstance(dtype, (nw.Float32, nw.Float16)) and isinstance(value, float):
            value = float(np.float32(value))  # as numpy compares
        kinds = (str, date)  # any other value is a number
        is_object = isinstance(dtype, (nw.Object, nw.Unknown))
        column_kind = [isinstance(dtype, (nw.String, nw.Categorical, nw.Enum)), dtype.is_temporal()]
        if not is_object and [isinstance(value, kind) for kind in kinds] != column_kind:
            return ~present.is_null() & nw.lit(False)
        return present == literal(value)

    def numbers(self, name: str) -> Any:
        """Return a column of numbers or booleans as an expression; refuse others."""
        dtype = self._dtype(name)
        if not (dtype.is_numeric() or dtype.is_boolean()):
            raise InputError(f"column {name!r} holds {dtype}, which has no range; select by value instead")
        return nw.col(name)

    def others(self, selected: Any) -> Any:
        """Return an expression: whether a row is not selected; True where `selected` is null."""
        return ~selected.fill_null(False)

    def _dtype(self, name: str) -> Any:
        """Return the narwhals type of a column; refuse an unknown one."""
        if name not in self.schema:
            raise InputError(f"there is no column {name!r}; the columns are {', '.join(self.schema)}")
        return self.schema[name]

    def passing(self, name: str, test: object) -> Any:
        """Refuse a test in Python, which an engine cannot run."""
        raise InputError(f"a test of column {name!r} runs Python code, which an engine cannot; give values or a range")


def as_filter(selection: Selection, columns: SourceColumns, schema: Mapping[str, Any]) -> Any:
    """Return a selection as a boolean expression over the columns of the source, whose types are `schema`.

    It is null where a column that it compares is null. Refuse a test in Python, which no engine runs.
    """
    return selection.condition(_EngineRows(columns, schema))


def _any_of(conditions: Any) -> Any:
    """Combine conditions by `or`; null where none is true and one is null."""
    return nw.any_horizontal(*conditions, ignore_nulls=False)
