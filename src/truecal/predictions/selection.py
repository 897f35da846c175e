"""Selections: which rows are judged, by label, by output, or by any other column; combined with & | ~.

A selection is a small value that you call with Predictions. It answers with the chosen rows, and refuses to answer with none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from truecal import options
from truecal.errors import InputError, printable
from truecal.predictions import validation
from truecal.predictions.predictions import Predictions, check_predictions
from truecal.types import Floats, Indices

Closed = Literal["both", "left", "right", "neither"]
Mask = NDArray[np.bool_]
SMALL = 100  # a selection of fewer rows than this earns a warning


class Rows(Protocol):
    """Rows as a selection sees them: arrays in memory, or expressions of an engine that compare and combine like arrays."""

    def labelled(self, names: tuple[object, ...]) -> Any:
        """Whether the label is one of these classes."""

    def output(self, class_name: object) -> Any:
        """Return the probability of a class; without a class as for :func:`by_output`."""

    def among(self, name: str, values: tuple[object, ...]) -> Any:
        """Whether a column has one of these values."""

    def numbers(self, name: str) -> Any:
        """Return a column of numbers, for a range."""

    def passing(self, name: str, test: Callable[[NDArray[Any]], Any]) -> Any:
        """Whether the rows of a column pass a test in Python."""


@dataclass(frozen=True)
class RowsInMemory:
    """The rows of predictions."""

    preds: Predictions

    def labelled(self, names: tuple[object, ...]) -> Mask:
        indices = [self.preds.class_index(name) for name in names]
        self.preds.refuse_multilabel("by_label")
        return np.isin(self.preds.labels, indices)

    def output(self, class_name: object) -> Floats:
        return output(self.preds, class_name)

    def among(self, name: str, values: tuple[object, ...]) -> Mask:
        present = column(self.preds, name)
        if present.dtype == object:  # a missing value cannot always say whether it equals another
            present = np.array([None if validation.is_missing(value) else value for value in present], object)
        chosen = np.zeros(len(self.preds), bool)
        for value in values:
            chosen |= np.asarray(present == value, bool)
        return chosen

    def numbers(self, name: str) -> NDArray[Any]:
        values = column(self.preds, name)
        if values.dtype.kind not in "iufb":
            kind = validation.kind_in_words(values)
            raise InputError(f"column {name!r} holds {kind}, which has no range; select by value instead")
        return values

    def passing(self, name: str, test: Callable[[NDArray[Any]], Any]) -> Mask:
        answer = np.asarray(test(column(self.preds, name)))
        if answer.shape != (len(self.preds),) or answer.dtype != np.bool_:
            raise InputError(
                f"the test of column {name!r} must answer True or False for each of the {len(self.preds)} rows"
            )
        return answer


@dataclass(frozen=True)
class Selection(ABC):
    """Which rows are judged."""

    def mask(self, preds: Predictions) -> Mask:
        """True for every row that is judged, shape (n,)."""
        check_predictions(preds)
        chosen: Mask = self.condition(RowsInMemory(preds))
        return chosen

    @abstractmethod
    def condition(self, rows: Rows) -> Any:
        """Whether each row is judged, as an array or as an expression that an engine can run."""

    @abstractmethod
    def __str__(self) -> str:
        """Describe the selected rows."""

    @property
    def uses_labels(self) -> bool:
        """Whether the label of a row decides: then even a calibrated model shows an error among the rows selected."""
        return False

    def __call__(self, preds: Predictions) -> Predictions:
        """Select the rows; refuse a selection of none."""
        rows = self.mask(preds)
        if not rows.any():
            raise InputError(f"no row is left of {len(preds)} where {self}; loosen the selection")
        return preds.take(rows)

    def __and__(self, other: Selection) -> Selection:
        return Combined("and", self, other)

    def __or__(self, other: Selection) -> Selection:
        return Combined("or", self, other)

    def __invert__(self) -> Selection:
        return Negated(self)


def small_selection(selected: int, total: int) -> str | None:
    """Return the warning of a selection of few rows; None if there are enough."""
    if selected >= SMALL or selected == total:
        return None
    return f"only {selected} of {total} rows were selected; expect a wide interval"


@dataclass(frozen=True)
class Combined(Selection):
    word: Literal["and", "or"]
    first: Selection
    second: Selection

    def __post_init__(self) -> None:
        for part in (self.first, self.second):
            if not isinstance(part, Selection):
                raise InputError(f"only selections combine with & and |, not {part!r}")

    @property
    def uses_labels(self) -> bool:
        return self.first.uses_labels or self.second.uses_labels

    def condition(self, rows: Rows) -> Any:
        first, second = self.first.condition(rows), self.second.condition(rows)
        return first & second if self.word == "and" else first | second

    def __str__(self) -> str:
        parts = [f"({part})" if isinstance(part, Combined) else str(part) for part in (self.first, self.second)]
        return f" {self.word} ".join(parts)


@dataclass(frozen=True)
class Negated(Selection):
    selection: Selection

    @property
    def uses_labels(self) -> bool:
        return self.selection.uses_labels

    def condition(self, rows: Rows) -> Any:
        return ~self.selection.condition(rows)

    def __str__(self) -> str:
        return f"not ({self.selection})"


def _within(values: Any, low: float, high: float, closed: Closed) -> Any:
    """Whether values (an array, or an expression of an engine) lie in an interval."""
    above = values >= low if closed in ("both", "left") else values > low
    below = values <= high if closed in ("both", "right") else values < high
    return above & below


def _interval_words(low: float, high: float, closed: Closed) -> str:
    """Write an interval with brackets for closed and parentheses for open ends."""
    opening = "[" if closed in ("both", "left") else "("
    closing = "]" if closed in ("both", "right") else ")"
    return f"{opening}{low:g}, {high:g}{closing}"


def _check_closed(closed: object) -> None:
    """Refuse a value of `closed` other than both, left, right and neither."""
    if closed not in ("both", "left", "right", "neither"):
        raise InputError(f"closed must be 'both', 'left', 'right' or 'neither', not {closed!r}")


@dataclass(frozen=True)
class ByLabel(Selection):
    names: tuple[object, ...]

    @property
    def uses_labels(self) -> bool:
        return True

    def condition(self, rows: Rows) -> Any:
        return rows.labelled(self.names)

    def __str__(self) -> str:
        return f"label is {' or '.join(map(printable, self.names))}"


def by_label(*names: object) -> Selection:
    """Select rows whose label is one of the classes named.

    Parameters
    ----------
    *names : object
        Classes by name, or by index where classes have no names.

    Returns
    -------
    selection : Selection
        Combines with others by ``&``, ``|`` and ``~``.

    Raises
    ------
    InputError
        No class is named; when it is used, also where there is no such class.

    Notes
    -----
    The label-conditional selection of Kirchenbauer et al., section 4.1. Selected by label, even a calibrated model shows an error.

    References
    ----------
    Kirchenbauer, J., Oaks, J. and Heim, E. (2022). What is your metric telling you? ICLR workshop.

    See Also
    --------
    truecal.by_output : Rows by a probability.
    truecal.by_column : Rows by another column.

    Examples
    --------
    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]], ["car", "ped", "ped"], classes=["car", "ped"])
    >>> len(tc.by_label("ped")(preds))
    2
    """
    if not names:
        raise InputError("by_label needs at least one class, such as by_label('pedestrian')")
    for name in names:
        validation.check_name(name)
    return ByLabel(names)


@dataclass(frozen=True)
class ByOutput(Selection):
    class_name: object
    low: float
    high: float
    closed: Closed

    def condition(self, rows: Rows) -> Any:
        return _within(rows.output(self.class_name), self.low, self.high, self.closed)

    def __str__(self) -> str:
        what = "confidence" if self.class_name is None else f"probability of {printable(self.class_name)}"
        return f"{what} in {_interval_words(self.low, self.high, self.closed)}"


def output(preds: Predictions, class_name: object = None) -> Floats:
    """Return the probability of one class; without a class that of the positive of two classes, else of the most probable."""
    if class_name is None:
        return preds.class_probs(1) if preds.class_count == 2 else preds.probs.max(axis=1)
    return preds.class_probs(preds.class_index(class_name))


def by_output(class_name: object = None, low: float = 0.0, high: float = 1.0, *, closed: Closed = "both") -> Selection:
    """Select rows whose probability of a class lies in an interval.

    Parameters
    ----------
    class_name : object, default None
        The class by name, or by index where classes have no names; None is P(positive) of two classes, of more the largest
        probability of each row.
    low : float, default 0.0
        Lower end.
    high : float, default 1.0
        Upper end.
    closed : {"both", "left", "right", "neither"}, default "both"
        Which ends belong to the interval.

    Returns
    -------
    selection : Selection
        Combines with others by ``&``, ``|`` and ``~``.

    Raises
    ------
    InputError
        The interval is none.

    Notes
    -----
    The output-conditional selection of Kirchenbauer et al., section 4.1.

    References
    ----------
    Kirchenbauer, J., Oaks, J. and Heim, E. (2022). What is your metric telling you? ICLR workshop.

    See Also
    --------
    truecal.by_label : Rows by their label.

    Examples
    --------
    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([0.25, 0.5, 0.75], [0, 1, 1])
    >>> tc.by_output(low=0.5)(preds).probs, tc.by_output(low=0.5, closed="neither")(preds).probs
    (array([0.5 , 0.75]), array([0.75]))
    """
    validation.check_name(class_name)
    if isinstance(class_name, float):
        raise InputError(f"{class_name!r} names no class; the limits of the output are low= and high=")
    options.limits(low, high, "the output interval")
    _check_closed(closed)
    return ByOutput(class_name, float(low), float(high), closed)


@dataclass(frozen=True)
class ByValues(Selection):
    column: str
    values: tuple[object, ...]

    def condition(self, rows: Rows) -> Any:
        return rows.among(self.column, self.values)

    def __str__(self) -> str:
        return f"{printable(self.column)} is {' or '.join(map(printable, self.values))}"


@dataclass(frozen=True)
class ByRange(Selection):
    column: str
    low: float
    high: float
    closed: Closed

    def condition(self, rows: Rows) -> Any:
        return _within(rows.numbers(self.column), self.low, self.high, self.closed)

    def __str__(self) -> str:
        return f"{printable(self.column)} in {_interval_words(self.low, self.high, self.closed)}"


@dataclass(frozen=True)
class ByTest(Selection):
    column: str
    test: Callable[[NDArray[Any]], Any]

    def condition(self, rows: Rows) -> Any:
        return rows.passing(self.column, self.test)

    def __str__(self) -> str:
        return f"{printable(self.column)} passes {getattr(self.test, '__name__', 'a test')}"


def column(preds: Predictions, name: str) -> NDArray[Any]:
    """Return a further column of the predictions by name."""
    if name not in preds.columns:
        names = ", ".join(map(str, preds.columns)) or "none; pass columns={...} to Predictions"
        raise InputError(f"there is no column {name!r}; the columns are {names}")
    values = preds.columns[name]
    if values.ndim != 1:
        raise InputError(f"column {name!r} has shape {values.shape}; one value per row is needed")
    return values


def categories(preds: Predictions, name: str) -> tuple[list[str], Indices]:
    """Find the distinct values of a column in words, and which one each row has; missing values are the last category."""
    values, codes = validation.distinct(column(preds, name), f"column {name!r}")
    odd = next((value for value in values if isinstance(value, (bytes, tuple, frozenset))), None)
    if odd is not None:
        raise InputError(f"column {name!r} holds {type(odd).__name__}, which form no groups; give numbers or text")
    missing = bool(values) and validation.is_missing(values[-1])
    values = values[:-1] if missing else values
    words = [printable(value) for value in values]
    ambiguous = {word for word, count in Counter(words).items() if count > 1} | ({"missing"} if missing else set())
    words = [repr(value) if word in ambiguous else word for word, value in zip(words, values, strict=True)]
    return [*words, *(["missing"] if missing else [])], codes


@dataclass(frozen=True, eq=False)
class RowGroups:
    """Groups of rows: the name and the number of rows of each, and which group every row is in."""

    names: tuple[str, ...]
    counts: Indices
    member: Indices

    @classmethod
    def from_categories(cls, categories: Sequence[tuple[Sequence[str], Indices]]) -> RowGroups:
        """Group rows by every combination of categories that occurs, in their order."""
        code = categories[0][1]
        for words, index in categories[1:]:
            code = code * len(words) + index
        combinations, member = validation.distinct(code, "groups")
        sizes = [len(words) for words, _ in categories]
        parts = [
            [words[i] for (words, _), i in zip(categories, np.unravel_index(combination, sizes), strict=True)]
            for combination in combinations
        ]
        names = [", ".join(words) for words in parts]
        if len(set(names)) < len(names):  # values with commas
            names = [", ".join(map(repr, words)) for words in parts]
        return cls(tuple(names), np.bincount(member, minlength=len(names)), member)

    def rows(self) -> list[Indices]:
        """Return the row numbers of every group, ascending."""
        # numpy sorts 16 bits by radix
        short = self.member.astype(np.uint16) if len(self.names) <= 1 << 16 else self.member
        return np.split(np.argsort(short, kind="stable"), np.cumsum(self.counts)[:-1])


def group_rows(preds: Predictions, columns: Sequence[str]) -> RowGroups:
    """Group rows by the value of a column, or by the combination of values of several."""
    return RowGroups.from_categories([categories(preds, name) for name in columns])


def by_column(
    name: str,
    *values: object,
    low: float | None = None,
    high: float | None = None,
    closed: Closed = "both",
    where: Callable[[NDArray[Any]], Any] | None = None,
) -> Selection:
    """Select rows by a further column: by values, by a range, or by a test of the whole column.

    Parameters
    ----------
    name : str
        The column.
    *values : object
        Values to select, numbers or text.
    low : float, default None
        Lower end of a range; None is minus infinity.
    high : float, default None
        Upper end of a range; None is infinity.
    closed : {"both", "left", "right", "neither"}, default "both"
        Which ends belong to the range.
    where : callable, default None
        Function of the column as an array that answers True or False for each row; engines cannot run it.

    Returns
    -------
    selection : Selection
        Combines with others by ``&``, ``|`` and ``~``.

    Raises
    ------
    InputError
        None of values, range and test is given, or more than one.

    See Also
    --------
    truecal.by_label : Rows by their label.

    Examples
    --------
    >>> import truecal as tc
    >>> columns = {"site": ["north", "south", "east"], "age": [31, 47, 64]}
    >>> preds = tc.Predictions.from_probs([0.25, 0.5, 0.75], [0, 1, 1], columns=columns)
    >>> (tc.by_column("site", "north", "east") & ~tc.by_column("age", low=60))(preds).probs
    array([0.25])
    """
    ranged = low is not None or high is not None
    if bool(values) + ranged + (where is not None) != 1:
        raise InputError(f"say which rows of column {name!r}: values, or low= / high=, or where=, one of the three")
    for value in values:
        # Nothing equals NaN, and neither a list, an array, a module nor a function equals a single value.
        several = isinstance(value, (list, tuple, set, dict, range, ModuleType)) or callable(value)
        if several or (value is not None and validation.is_missing(value)):
            raise InputError(
                f"column {name!r}: rows are selected by numbers or text, one after the other (by_column({name!r}, 1, 2)), not by "
                f"{validation.shown(value)}; for missing values say where=lambda column: column != column"
            )
    if values:
        return ByValues(name, values)
    if where is not None:
        return ByTest(name, where)
    low, high = -np.inf if low is None else low, np.inf if high is None else high
    options.limits(low, high, f"the range of column {name!r}")
    _check_closed(closed)
    return ByRange(name, float(low), float(high), closed)


def check_selection(select: object) -> None:
    """Refuse what is neither a selection nor None."""
    if select is not None:
        options.instance(
            select, Selection, "select", "a selection, such as tc.by_label(0) or tc.by_column('site', 'north')"
        )
