"""Lenses pushed down: which score and which outcome of a row are judged, as expressions an engine can run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from truecal.errors import InputError
from truecal.lens import ClassWise, Lens, OneClass, TopLabel
from truecal.predictions.border import SUM_TOLERANCE, check_classes
from truecal.predictions.readers.frames import matching
from truecal.scan.cell_expression import OK, PRESENT, C, W, Y, number

CLASS = "_tc_class"
_LABEL = "_tc_label"


@dataclass(frozen=True)
class Columns:
    """Which columns of the source are what, checked against its schema."""

    label: str
    probs: tuple[str, ...]  # one column of P(positive), or one per class
    listed: int  # classes in a list column; 0 where probabilities are plain columns
    weight: str | None
    by: tuple[str, ...]
    classes: tuple[object, ...] | None
    precision: int
    whole_labels: bool  # the label column holds integers
    logits: bool  # `probs` are logits (until `with_probs` has turned them into probabilities)
    given: tuple[str, ...]  # the columns of predictions as the source has them

    @property
    def binary(self) -> bool:
        return len(self.probs) == 1 and not self.listed

    @property
    def count(self) -> int:
        return 2 if self.binary else self.listed or len(self.probs)

    @property
    def shown(self) -> str:
        """What the user calls the predictions."""
        return self.given[0] if len(self.given) == 1 else f"{self.given[0]} ... {self.given[-1]}"

    def class_index(self, name: object) -> int:
        """The position of a class given by name, or by index where classes have no names."""
        if self.classes is not None and name in self.classes:
            return self.classes.index(name)
        if isinstance(name, int) and not isinstance(name, bool) and 0 <= name < self.count:
            return name
        raise InputError(f"there is no class {name!r} among the {self.count} classes")

    def class_name(self, index: int) -> str:
        return str(index if self.classes is None else self.classes[index])


def choose_columns(
    frame: Any,
    *,
    label: str,
    score: str | None,
    probs: str | Sequence[str] | None,
    logits: str | Sequence[str] | None,
    weights: str | None,
    by: Sequence[str],
    classes: Sequence[object] | None,
) -> Columns:
    """Find the columns in the schema, or say which is missing. Labels that are text need class names: given, or from 'p_*'."""
    schema = frame.collect_schema()
    names = list(schema)
    found, stars = matching(names, predictions_of(score, probs, logits), "predictions")
    matching(names, [label, *by, *([] if weights is None else [weights])], "label, weights and groups")
    for name in [*found, *([] if weights is None else [weights])]:
        if not (schema[name].is_numeric() or schema[name].is_nested()):
            _refuse_empty(frame)
            raise InputError(
                f"column {name!r} holds {schema[name]}, not numbers; name the columns of predictions and weights"
            )
    listed = 0
    if isinstance(schema[found[0]], (nw.List, nw.Array)):
        listed = _list_length(frame, found)
    if score is not None and (len(found) > 1 or listed):
        raise InputError(
            f"score={score!r} names {len(found)} columns; name the class probabilities with probs= instead"
        )
    count = listed or max(len(found), 2)
    text = isinstance(schema[label], (nw.String, nw.Categorical, nw.Enum))
    if classes is None and text and stars is not None:
        classes = stars
    if classes is None and text:
        _refuse_empty(frame)
        raise InputError(
            f"labels in {label!r} are text; list the classes in order with classes=[...] (--class-names), the positive one last"
        )
    kinds = [4 if isinstance(schema[name], nw.Float32) else 8 for name in found]
    return Columns(
        label,
        tuple(found),
        listed,
        weights,
        tuple(by),
        check_classes(classes, count),
        min(kinds),
        schema[label].is_integer(),
        logits is not None,
        tuple(found),
    )


def _refuse_empty(frame: Any) -> None:
    """Text columns without rows have no type: the lack of rows is what to say then."""
    if len(frame.head(1).collect()) == 0:
        raise InputError("the source has no rows; at least one is needed")


def predictions_of(
    score: str | None, probs: str | Sequence[str] | None, logits: str | Sequence[str] | None
) -> str | Sequence[str]:
    """The columns of predictions: one of the three ways to name them."""
    given = [wanted for wanted in (score, probs, logits) if wanted is not None]
    if len(given) != 1:
        raise InputError(
            "say where the predictions are: score= for P(positive), probs= for all classes or logits=, one of the three"
        )
    return given[0]


def _list_length(frame: Any, found: list[str]) -> int:
    if len(found) > 1:
        raise InputError(f"{len(found)} list columns match; name one column of lists, or plain columns")
    first = frame.select(nw.col(found[0]).list.len().alias("length")).head(1).collect()
    if len(first) == 0 or first["length"][0] is None:
        raise InputError(
            f"column {found[0]!r} starts with nothing, so the number of classes is not known; list them in classes="
        )
    return int(first["length"][0])


def judged(frame: Any, columns: Columns, lens: Lens) -> tuple[Any, bool]:
    """The rows with score, outcome, weight and whether they can be used; and whether there is one row per class."""
    kept = [nw.col(name) for name in columns.by]
    if columns.weight is not None:
        kept.append(nw.col(columns.weight).cast(nw.Float64).alias(W))
    label = label_index(columns).alias(_LABEL)
    probabilities = class_probs(columns)
    names = [f"_tc_p{i}" for i in range(len(probabilities))]
    present = _present(columns)
    frame = frame.select(*kept, label, present, *(p.alias(n) for p, n in zip(probabilities, names, strict=True)))
    each = [nw.col(name) for name in names]
    if not columns.binary:
        total = nw.sum_horizontal(*each)
        valid = nw.all_horizontal(*((p >= 0.0) & (p <= 1.0) for p in each), ignore_nulls=False)
        valid = valid & (total >= 1.0 - SUM_TOLERANCE) & (total <= 1.0 + SUM_TOLERANCE)
        frame = frame.with_columns(valid.alias(OK))
    rest = [*columns.by, *([] if columns.weight is None else [W]), *([] if columns.binary else [OK]), PRESENT]
    if isinstance(lens, ClassWise):
        long = _row_per_class(frame, names, [*rest, _LABEL])
        own = nw.col(_LABEL) == nw.col(CLASS)
        return long.select(*rest, CLASS, C, _known(own, columns.count).alias(Y)), True
    if isinstance(lens, OneClass):
        index = columns.class_index(lens.name) if lens.name is not None else 1
        if lens.name is None and columns.count != 2:
            raise InputError(f"say which of the {columns.count} classes to judge: OneClass(name)")
        score, own = each[index], nw.col(_LABEL) == float(index)
        if columns.count == 2 and index == 1:  # the label is the outcome
            return frame.select(*rest, score.alias(C), nw.col(_LABEL).alias(Y)), False
    elif isinstance(lens, TopLabel):
        # of equal probabilities the first class counts, but at 0.5 exactly binary predictions count as positive
        order = range(len(each))[::-1] if columns.binary else range(len(each))
        frame = frame.with_columns(nw.max_horizontal(*each).alias(C))
        last = float(len(each))
        rank = nw.min_horizontal(*(last - number(each[i] == nw.col(C)) * (last - k) for k, i in enumerate(order)))
        score, own = nw.col(C), nw.col(_LABEL) == ((1.0 - rank) if columns.binary else rank)
    else:
        raise InputError(
            f"{type(lens).__name__} cannot be pushed down to an engine; use TopLabel, OneClass or ClassWise"
        )
    return frame.select(*rest, score.alias(C), _known(own, columns.count).alias(Y)), False


def _row_per_class(frame: Any, names: list[str], rest: list[str]) -> Any:
    """Every row once per class, with the class index and its probability."""
    if (
        frame.implementation.is_duckdb()
    ):  # narwhals unpivots on DuckDB's default connection only, which need not hold the data
        parts = [
            frame.select(*rest, nw.lit(float(i)).alias(CLASS), nw.col(name).alias(C)) for i, name in enumerate(names)
        ]
        return nw.concat(parts)
    long = frame.unpivot(on=names, index=rest, variable_name=CLASS, value_name=C)
    return long.with_columns(nw.col(CLASS).cast(nw.String).str.slice(len("_tc_p")).cast(nw.Float64))


def _known(outcome: Any, count: int) -> Any:
    """The outcome as a number, or -1 where the label is not one of the classes."""
    label = nw.col(_LABEL)
    inside = number((label >= 0.0) & (label <= count - 1.0) & (label.cast(nw.Float64).floor() == label))
    return number(outcome) * inside - (1.0 - inside)


def label_index(columns: Columns) -> Any:
    """The label as a class index, -1 for a name that is not among the classes; integers stay what they are, which is faster."""
    label = nw.col(columns.label)
    if columns.classes is None:
        return label if columns.whole_labels else label.cast(nw.Float64)
    return (
        nw.sum_horizontal(*(number(label == literal(name)) * (i + 1.0) for i, name in enumerate(columns.classes))) - 1.0
    )


def literal(value: object) -> Any:
    """A value of a column; narwhals says itself which kinds it takes."""
    return nw.lit(value)  # type: ignore[arg-type]


def class_probs(columns: Columns) -> list[Any]:
    """The probability of every class in float64."""
    each = class_columns(columns)
    return [1.0 - each[0], each[0]] if columns.binary else each


def class_columns(columns: Columns) -> list[Any]:
    """What the source holds of every class (of the positive one, where there are two in one column), in float64."""
    if columns.listed:
        return [nw.col(columns.probs[0]).list.get(i).cast(nw.Float64) for i in range(columns.listed)]
    return [nw.col(name).cast(nw.Float64) for name in columns.probs]


def _present(columns: Columns) -> Any:
    """Whether nothing that is needed of a row is missing."""
    needed = [columns.label, *columns.given, *([] if columns.weight is None else [columns.weight])]
    return nw.all_horizontal(*(~nw.col(name).is_null() for name in needed), ignore_nulls=False).alias(PRESENT)
