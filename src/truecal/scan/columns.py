"""Which columns of a source are what, and the labels and probabilities they hold as expressions an engine can run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

import truecal as tc
from truecal.errors import InputError
from truecal.predictions import border, readers
from truecal.scan.cell_expression import number


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

    @property
    def specimen(self) -> tc.Predictions:
        """One row with the same classes, for lenses and selections to say what they look at."""
        probs = np.full(1 if self.binary else (1, self.count), 1 / self.count)
        return tc.Predictions(probs, np.zeros(1, np.intp), classes=self.classes)


@dataclass(frozen=True)
class Wanted:
    """What the user said of the columns: the arguments of :func:`scan` that name them."""

    label: str
    score: str | None
    probs: str | Sequence[str] | None
    logits: str | Sequence[str] | None
    weights: str | None
    by: tuple[str, ...]
    classes: Sequence[object] | None

    @property
    def predictions(self) -> str | Sequence[str]:
        """The columns of predictions: one of the three ways to name them."""
        given = [wanted for wanted in (self.score, self.probs, self.logits) if wanted is not None]
        if len(given) != 1:
            raise InputError(
                "say where the predictions are: score= for P(positive), probs= for all classes or logits=, one of the three"
            )
        return given[0]

    @property
    def needed(self) -> list[str]:
        """Label and weights."""
        return [self.label, *([] if self.weights is None else [self.weights])]


def choose_columns(frame: Any, wanted: Wanted) -> Columns:
    """Find the columns in the schema, or say which is missing. Labels that are text need class names: given, or from 'p_*'."""
    schema = frame.collect_schema()
    names = list(schema)
    label, score = wanted.label, wanted.score
    outputs, stars = readers.matching(names, wanted.predictions, "predictions")
    readers.matching(names, [*wanted.needed, *wanted.by], "label, weights and groups")
    for name in [*outputs, *wanted.needed[1:]]:
        if not (schema[name].is_numeric() or schema[name].is_nested()):
            _refuse_empty(frame)
            raise InputError(
                f"column {name!r} holds {schema[name]}, not numbers; name the columns of predictions and weights"
            )
    listed = 0
    if isinstance(schema[outputs[0]], (nw.List, nw.Array)):
        listed = _list_length(frame, outputs)
    if score is not None and (len(outputs) > 1 or listed):
        raise InputError(
            f"score={score!r} names {len(outputs)} columns; name the class probabilities with probs= instead"
        )
    count = listed or max(len(outputs), 2)
    text = isinstance(schema[label], (nw.String, nw.Categorical, nw.Enum))
    classes = readers.class_names(outputs, wanted.predictions, stars, wanted.classes, numeric=not text)
    if classes is None and text:
        _refuse_empty(frame)
        raise InputError(
            f"labels in {label!r} are text; list the classes in order with classes=[...] (--class-names), the positive one last"
        )
    kinds = [4 if isinstance(schema[name], nw.Float32) else 8 for name in outputs]
    return Columns(
        label=label,
        probs=tuple(outputs),
        listed=listed,
        weight=wanted.weights,
        by=wanted.by,
        classes=border.check_classes(classes, count),
        precision=min(kinds),
        whole_labels=schema[label].is_integer(),
        logits=wanted.logits is not None,
        given=tuple(outputs),
    )


def _refuse_empty(frame: Any) -> None:
    """Text columns without rows have no type: the lack of rows is what to say then."""
    if len(frame.head(1).collect()) == 0:
        raise InputError("the source has no rows; at least one is needed")


def _list_length(frame: Any, outputs: list[str]) -> int:
    if len(outputs) > 1:
        raise InputError(f"{len(outputs)} list columns match; name one column of lists, or plain columns")
    first = frame.select(nw.col(outputs[0]).list.len().alias("length")).head(1).collect()
    if len(first) == 0 or first["length"][0] is None:
        raise InputError(
            f"column {outputs[0]!r} starts with nothing, so the number of classes is not known; list them in classes="
        )
    return int(first["length"][0])


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
