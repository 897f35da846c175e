"""Selections: which rows are judged, by label, by output, or by any other column; combined with & | ~.

A selection is called with Predictions and returns the chosen rows; it refuses to return none.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
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
SMALL = 100  # by choice: a selection of fewer rows than this earns a warning


class Rows(Protocol):
    """Rows that a condition is evaluated on: arrays in memory, or expressions of an engine that compare and combine like arrays."""

    def labelled(self, names: tuple[object, ...]) -> Any:
        """Whether the label is one of these classes."""

    def output(self, class_name: object) -> Any:
        """Return the probability of a class; without a class P(positive) of two classes, the largest probability of more."""

    def among(self, name: str, values: tuple[object, ...]) -> Any:
        """Whether a column has one of these values."""

    def numbers(self, name: str) -> Any:
        """Return a column of numbers, for a range."""

    def others(self, selected: Any) -> Any:
        """Whether a row is not selected; True where `selected` is null."""

    def passing(self, name: str, test: Callable[[NDArray[Any]], Any]) -> Any:
        """Whether the rows of a column pass a test in Python."""


@dataclass(frozen=True)
class RowsInMemory:
    """The rows of Predictions; every method of `Rows` returns an array of shape (n,)."""

    preds: Predictions

    def labelled(self, names: tuple[object, ...]) -> Mask:
        """Mark the rows whose label is one of these classes; refuse several labels per row."""
        indices = [self.preds.class_index(name) for name in names]
        self.preds.refuse_multilabel("by_label")
        return np.isin(self.preds.labels, indices)

    def output(self, class_name: object) -> Floats:
        """Return the probability of a class; without a class as :func:`output`."""
        return output(self.preds, class_name)

    def among(self, name: str, values: tuple[object, ...]) -> Mask:
        """Whether a column has one of these values; missing values equal none but None."""
        present = column(self.preds, name)
        # of objects a missing one cannot always say whether it equals another
        is_object = present.dtype == object
        missing: Mask = validation.find_missing(present.tolist()) if is_object else present != present
        present = np.where(missing, np.array(None, object), present) if is_object else present
        chosen = np.zeros(len(self.preds), bool)
        for value in values:
            if present.dtype.kind == "M" and isinstance(as_time(value), date):
                value = np.datetime64(as_time(value))
            chosen |= missing if value is None else np.asarray(present == value, bool)
        return chosen

    def numbers(self, name: str) -> NDArray[Any]:
        """Return a column of numbers; refuse text and dates."""
        values = column(self.preds, name)
        if values.dtype == object and all(isinstance(value, (Decimal, type(None))) for value in values):
            values = values.astype(np.float64)
        if values.dtype.kind not in "iufb":
            kind = validation.kind_in_words(values)
            raise InputError(f"column {name!r} holds {kind}, which has no range; select by value instead")
        return values

    def others(self, selected: Mask) -> Mask:
        """Return the opposite of a mask."""
        return ~selected

    def passing(self, name: str, test: Callable[[NDArray[Any]], Any]) -> Mask:
        """Apply a test to a whole column; refuse an answer that is not one bool per row."""
        answer = np.asarray(test(column(self.preds, name)))
        if answer.shape != (len(self.preds),) or answer.dtype != np.bool_:
            raise InputError(
                f"the test of column {name!r} must answer True or False for each of the {len(self.preds)} rows"
            )
        return answer


@dataclass(frozen=True, eq=False)
class Selection:
    """Choose which rows are judged; :func:`by_label`, :func:`by_output` and :func:`by_column` make one.

    Parameters
    ----------
    words : str
        The selected rows in words.
    condition : callable
        Answers for `Rows` whether each row is judged, as an array or as an expression that an engine can run.
    uses_labels : bool, default False
        Whether the label of a row decides: then even a calibrated model shows an error among the rows selected.
    joined : bool, default False
        Whether the words join two selections.
    """

    words: str
    condition: Callable[[Rows], Any] = field(repr=False)
    uses_labels: bool = field(default=False, repr=False)
    joined: bool = field(default=False, repr=False)

    def mask(self, preds: Predictions) -> Mask:
        """Return True for every row that is judged, shape (n,)."""
        check_predictions(preds)
        chosen: Mask = self.condition(RowsInMemory(preds))
        return chosen

    def __call__(self, preds: Predictions) -> Predictions:
        """Return the selected rows as Predictions; refuse a selection of none."""
        rows = self.mask(preds)
        if not (rows if preds.weights is None else rows & (preds.weights > 0)).any():
            raise InputError(f"no row is left of {len(preds)} where {self}; loosen the selection")
        return preds.take(rows)

    def __str__(self) -> str:
        """Return the words of the selection, such as "label is dog"."""
        return self.words

    def __and__(self, other: Selection) -> Selection:
        """Select the rows that both select.

        >>> print(by_label(0) & by_label(1))
        label is 0 and label is 1
        """
        return self._join(other, "and", operator.and_)

    def __or__(self, other: Selection) -> Selection:
        """Select the rows that one of both selects.

        >>> print(by_label(0) | by_label(1))
        label is 0 or label is 1
        """
        return self._join(other, "or", operator.or_)

    def _join(self, other: Selection, word: str, join: Callable[[Any, Any], Any]) -> Selection:
        """Combine two selections by `join`, the operator of the `word` "and" or "or"; refuse what is no selection.

        Parts that are combined themselves stand in parentheses: "(a or b) and c".
        """
        if not isinstance(other, Selection):
            raise InputError(f"only selections combine with & and |, not {other!r}")
        words = f" {word} ".join(f"({part})" if part.joined else str(part) for part in (self, other))
        condition = partial(_join_conditions, join, self.condition, other.condition)
        return Selection(words, condition, self.uses_labels or other.uses_labels, joined=True)

    def __invert__(self) -> Selection:
        """Select the other rows.

        >>> print(~by_label(0))
        not (label is 0)
        """
        return Selection(f"not ({self})", partial(_negate, self.condition), self.uses_labels)


# Conditions are partial calls of functions, not closures, so that worker processes can receive them.


def _join_conditions(
    join: Callable[[Any, Any], Any], first: Callable[[Rows], Any], second: Callable[[Rows], Any], rows: Rows
) -> Any:
    """Evaluate two conditions on the rows and join them by `join`, & or | row by row.

    >>> from operator import and_
    >>> _join_conditions(and_, lambda p: p > 0.2, lambda p: p < 0.8, np.array([0.1, 0.5, 0.9]))
    array([False,  True, False])
    """
    return join(first(rows), second(rows))


def _negate(condition: Callable[[Rows], Any], rows: Rows) -> Any:
    """Evaluate the opposite of a condition, row by row.

    >>> from truecal.predictions.predictions import Predictions
    >>> rows = RowsInMemory(Predictions.from_probs([0.2, 0.8], [0, 1]))
    >>> _negate(lambda rows: rows.output(None) > 0.5, rows)
    array([ True, False])
    """
    return rows.others(condition(rows))


def _within(values_of: Callable[[Rows], Any], low: float, high: float, closed: Closed, rows: Rows) -> Any:
    """Evaluate low <= values <= high, strictly at an end that is not closed; values are an array or an expression of an engine.

    >>> _within(lambda rows: rows, 0.2, 0.5, "left", np.array([0.1, 0.2, 0.5]))
    array([False,  True, False])
    """
    values = values_of(rows)
    above = values >= low if closed in ("both", "left") else values > low
    below = values <= high if closed in ("both", "right") else values < high
    return above & below


def _select_interval(what: str, values_of: Callable[[Rows], Any], low: float, high: float, closed: Closed) -> Selection:
    """Return the selection of rows with values between low and high; `what` names the values: "what in [low, high)".

    >>> print(_select_interval("score", lambda rows: rows, 0.2, 0.5, "left"))
    score in [0.2, 0.5)
    """
    options.choice(closed, ("both", "left", "right", "neither"), "closed")
    opening = "[" if closed in ("both", "left") else "("
    closing = "]" if closed in ("both", "right") else ")"
    words = f"{what} in {opening}{low:g}, {high:g}{closing}"
    return Selection(words, partial(_within, values_of, float(low), float(high), closed))


def small_selection(selected: int, total: int) -> str | None:
    """Return the warning that fewer than 100 rows were selected; None if there are more, or all rows are.

    >>> small_selection(20, 1000), small_selection(20, 20)
    ('only 20 of 1000 rows were selected, so the interval is wide', None)
    """
    if selected >= SMALL or selected == total:
        return None
    return f"only {selected} of {total} rows were selected, so the interval is wide"


def by_label(*names: object) -> Selection:
    """Select rows whose label is one of the classes named.

    Parameters
    ----------
    *names : object
        Classes by name; a whole number that is no name is a position.

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
    words = f"label is {' or '.join(map(printable, names))}"
    return Selection(words, operator.methodcaller("labelled", names), uses_labels=True)


def output(preds: Predictions, class_name: object = None) -> Floats:
    """Return the probability of one class; without a class that of the positive of two classes, else of the most probable.

    >>> from truecal.predictions.predictions import Predictions
    >>> output(Predictions.from_probs([[0.2, 0.5, 0.3]], [1])), output(Predictions.from_probs([0.2], [0]), 0)
    (array([0.5]), array([0.8]))
    """
    if class_name is None:
        return preds.class_probs(1) if preds.class_count == 2 else preds.probs.max(axis=1)
    return preds.class_probs(preds.class_index(class_name))


def by_output(class_name: object = None, low: float = 0.0, high: float = 1.0, *, closed: Closed = "both") -> Selection:
    """Select rows whose probability of a class lies in an interval.

    Parameters
    ----------
    class_name : object, default None
        The class by name or, if no name, by position; None is P(positive) of two classes, of more the largest
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
    what = "confidence" if class_name is None else f"probability of {printable(class_name)}"
    return _select_interval(what, operator.methodcaller("output", class_name), low, high, closed)


def column(preds: Predictions, name: str) -> NDArray[Any]:
    """Return a further column of the predictions by name, shape (n,); refuse an unknown one or one of several dimensions.

    >>> from truecal.predictions.predictions import Predictions
    >>> column(Predictions.from_probs([0.2, 0.8], [0, 1], columns={"site": ["a", "b"]}), "site").tolist()
    ['a', 'b']
    """
    if name not in preds.columns:
        names = ", ".join(map(str, preds.columns)) or "none; pass columns={...} to Predictions"
        raise InputError(f"there is no column {name!r}; the columns are {names}")
    values = preds.columns[name]
    if values.ndim != 1:
        raise InputError(f"column {name!r} has shape {values.shape}; one value per row is needed")
    return values


def categories(preds: Predictions, name: str) -> tuple[list[str], Indices]:
    """Return the names of the groups of a column, by ascending value, "missing" last, and each row's position in them, (n,).

    >>> from truecal.predictions.predictions import Predictions
    >>> categories(Predictions.from_probs([0.2, 0.8, 0.5], [0, 1, 1], columns={"site": ["b", "a", "b"]}), "site")
    (['a', 'b'], array([1, 0, 1]))
    """
    values, codes = group_values(preds, name)
    return _value_names(values), codes


def group_values(preds: Predictions, name: str) -> tuple[list[Any], Indices]:
    """Return the distinct values of a column as values of groups, ascending, None last, and each row's position in them, (n,).

    >>> from truecal.predictions.predictions import Predictions
    >>> group_values(Predictions.from_probs([0.2, 0.8], [0, 1], columns={"age": [40, 30]}), "age")
    ([30, 40], array([1, 0]))
    """
    values, codes = validation.distinct(column(preds, name), f"column {name!r}")
    values, positions = _distinct_objects([group_value(value, name) for value in values])
    return values, positions[codes]


def group_value(value: Any, name: str) -> Any:
    """Return a value of column `name` as the value of a group, the same from every library and engine that can hold it.

    Missing values are None, floats that are whole numbers (up to 2**53) integers, times without nanoseconds, and those with a zone
    in UTC. Refuses what is no number, text, date or truth value.

    >>> group_value(3.0, "site"), group_value(float("nan"), "site"), group_value(2.5, "site")
    (3, None, 2.5)
    """
    if isinstance(value, (bytes, tuple, list, dict, frozenset, time, timedelta, np.timedelta64)):
        raise InputError(
            f"column {name!r} holds {type(value).__name__}, which form no groups; give numbers, text or dates"
        )
    if validation.is_missing(value):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= validation.LARGEST_EXACT else value
    if isinstance(value, datetime):
        value = value.to_pydatetime(warn=False) if hasattr(value, "to_pydatetime") else value  # of pandas
        return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    return value


def _distinct_objects(values: Sequence[Any]) -> tuple[list[Any], Indices]:
    """Return the distinct values of a list, ascending, None last, and the position of each among them.

    >>> _distinct_objects(["b", None, "a", "b"])
    (['a', 'b', None], array([1, 2, 0, 1]))
    """
    objects = np.empty(len(values), object)
    objects[:] = values
    return validation.distinct(objects, "groups")


def _value_names(values: Sequence[Any]) -> list[str]:
    """Return values of groups as text, "missing" for None; values of equal text (1 and "1") are told apart by their repr.

    >>> _value_names([1, "1", None, "a"])
    ['1', "'1'", 'missing', 'a']
    """
    words = ["missing" if value is None else printable(value) for value in values]
    counts = Counter(words)
    return [
        repr(value) if counts[word] > 1 and value is not None else word
        for word, value in zip(words, values, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class RowGroups:
    """Groups of rows: `names` and `counts` (g,) of the groups, and `member` (n,), the position of each row's group, from 0."""

    names: tuple[str, ...]
    counts: Indices
    member: Indices

    @classmethod
    def from_categories(cls, categories: Sequence[tuple[Sequence[str], Indices]]) -> RowGroups:
        """Group rows by every combination of categories that occurs, in their order, the last varying fastest.

        `categories`: for each column its values as text and the position of each row's value. Names are the values joined by ",
        ", or their reprs where two groups would have one name.
        """
        # a number per combination, in mixed radix: np.unravel_index takes it apart again
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
        """Return the row numbers of every group, ascending, in the order of `names`."""
        # numpy sorts 16 bits by radix
        short = self.member.astype(np.uint16) if len(self.names) <= 1 << 16 else self.member
        return np.split(np.argsort(short, kind="stable"), np.cumsum(self.counts)[:-1])


def group_rows(preds: Predictions, columns: Sequence[str]) -> RowGroups:
    """Group rows by the value of a column, or by the combination of values of several, ascending (the last column fastest).

    Names are the values as text, joined by ", "; missing values are "missing" and come last.
    """
    return RowGroups.from_categories([categories(preds, name) for name in columns])


def as_time(value: Any) -> Any:
    """Return a value to compare with times: text in ISO format as a datetime, one with a zone in UTC without it.

    >>> as_time("2026-05-01"), as_time("noon")
    (datetime.datetime(2026, 5, 1, 0, 0), 'noon')
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return value
    return group_value(value, "")


def name_groups(keys: Sequence[tuple[Any, ...]]) -> dict[tuple[Any, ...], str]:
    """Return the name of every group by its values (one per column), ascending: the values as text, joined by ", ".

    None is "missing", and last; the group without values, (), has the name "".

    >>> name_groups([("b", 1), ("a", None)]), name_groups([()])
    ({('a', None): 'a, missing', ('b', 1): 'b, 1'}, {(): ''})
    """
    if not any(keys):
        return dict.fromkeys(keys, "")
    columns = [_distinct_objects(values) for values in zip(*keys, strict=True)]
    groups = RowGroups.from_categories([(_value_names(values), codes) for values, codes in columns])
    return {keys[i]: groups.names[groups.member[i]] for i in np.argsort(groups.member)}


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
        is_container = isinstance(value, (list, tuple, set, dict, range, ModuleType)) or callable(value)
        if is_container or (value is not None and validation.is_missing(value)):
            raise InputError(
                f"column {name!r}: rows are selected by numbers or text, one after the other (by_column({name!r}, 1, 2)), not by "
                f"{validation.shown(value)}; for missing values say where=lambda column: column != column"
            )
    if values:
        words = f"{printable(name)} is {' or '.join(map(printable, values))}"
        return Selection(words, operator.methodcaller("among", name, values))
    if where is not None:
        words = f"{printable(name)} passes {getattr(where, '__name__', 'a test')}"
        return Selection(words, operator.methodcaller("passing", name, where))
    low, high = -np.inf if low is None else low, np.inf if high is None else high
    options.limits(low, high, f"the range of column {name!r}")
    return _select_interval(printable(name), operator.methodcaller("numbers", name), low, high, closed)


def check_selection(select: object) -> None:
    """Refuse what is neither a selection nor None.

    >>> check_selection("site")
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: select must be a selection, such as tc.by_label(0) or tc.by_column('site', 'north'), not 'site'
    """
    if select is not None:
        options.instance(
            select, Selection, "select", "a selection, such as tc.by_label(0) or tc.by_column('site', 'north')"
        )
