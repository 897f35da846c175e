"""Frames of any library, through narwhals: which columns are meant, and their values as arrays."""

from collections.abc import Sequence
from fnmatch import translate
from itertools import compress
from re import compile as pattern
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from truecal.errors import InputError
from truecal.names import did_you_mean
from truecal.predictions.readers.values import outputs_of

if TYPE_CHECKING:
    import narwhals as nw

_MOST_LISTED = 40


def matching(columns: Sequence[str], wanted: str | Sequence[str], what: str) -> tuple[list[str], list[str] | None]:
    """Columns named by one name, a list, or a pattern with a star; for a pattern also what the star stood for."""
    if not isinstance(wanted, str):
        names, known = list(wanted), set(columns)
        if not names:
            raise InputError(f"no column is named for {what}; the columns are {_listed(columns)}")
        for name in names:
            if name not in known:
                raise InputError(_no_column(name, columns))
        return names, None
    if wanted in columns:
        return [wanted], None
    if "*" not in wanted:
        raise InputError(_no_column(wanted, columns))
    fits = pattern(translate(wanted))
    names = [name for name in columns if fits.match(name)]
    if not names:
        raise InputError(f"no column matches {wanted!r} for {what}; the columns are {_listed(columns)}")
    stars = _stars(names, wanted)
    if all(star.isdigit() for star in stars):  # p_0 ... p_10 in the order of the numbers, not of the letters
        order = sorted(range(len(names)), key=lambda i: int(stars[i]))
        return [names[i] for i in order], None
    return names, stars


def columns_of(
    frame: Any,
    *,
    label: str,
    probs: str | Sequence[str] | None,
    logits: str | Sequence[str] | None,
    weights: str | None,
    clusters: str | None,
    classes: Sequence[object] | None,
) -> tuple[NDArray[Any], NDArray[Any], dict[str, Any]]:
    """Predictions, labels and the further arguments of Predictions.from_probs, out of the columns of a frame."""
    import narwhals as nw

    if (probs is None) == (logits is None):
        raise InputError("say where the predictions are: probs= or logits=, one of the two")
    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise InputError(f"{type(frame).__name__} is not a data frame that narwhals can read in memory") from error
    wanted = probs if probs is not None else logits
    assert wanted is not None
    names, stars = matching(table.columns, wanted, "predictions")
    single = [name for name in (label, weights, clusters) if name is not None]
    matching(table.columns, single, "label, weights and clusters")
    for name in [*(names if len(names) == 1 else ()), *single]:
        _refuse_missing(table[name], name)
    values, events = outputs_of(table, names)
    _refuse_missing_outputs(table, names, values)
    labels = table[label].to_numpy()
    named = class_names(names, wanted, stars or events, classes, numeric=labels.dtype.kind in "iubf")
    used = {*names, *single}
    rest = [name for name in table.columns if name not in used]
    further = {
        "weights": None if weights is None else table[weights].to_numpy(),
        "clusters": None if clusters is None else table[clusters].to_numpy(),
        "classes": named,
        "columns": {column.name: column.to_numpy() for column in table.select(rest).iter_columns()} if rest else {},
    }
    return values, labels, further


def class_names(
    names: Sequence[str],
    wanted: str | Sequence[str],
    events: Sequence[str] | None,
    classes: Sequence[object] | None,
    *,
    numeric: bool,
) -> Sequence[object] | None:
    """The classes of the columns, as given or as their names say; names that contradict each other are refused.

    `events` are the classes that the columns are named after, None where they are numbered. `numeric` labels are positions of
    columns, so that numbered columns must begin at 0 unless classes are given.
    """
    numbers = [int(star) for star in _stars(names, wanted)] if _numbered(names, wanted, events) else None
    if classes is None:
        if numbers is not None and numbers != list(range(len(numbers))):
            shown = ", ".join(map(str, numbers[:3])) + (", ..." if len(numbers) > 3 else "")
            raise InputError(
                f"the columns {wanted!r} are numbered {shown}, not from 0, so that a label does not say its column; if label "
                f"{numbers[0]} means {names[0]!r}, say classes=[{shown}] (--class-names {shown.replace(' ', '')})"
            )
        return None if events is None or numeric else list(events)
    given = [str(name) for name in classes]
    held = list(events) if events is not None else None
    if numbers is not None and all(name.isdigit() for name in given):
        held = [str(number) for number in numbers]
        held = None if numbers == list(range(len(numbers))) else held
    if held is not None and held != given and len(held) == len(given):
        at = next(i for i, name in enumerate(held) if name != given[i])
        raise InputError(
            f"the class names contradict the columns: column {names[min(at, len(names) - 1)]!r} is class {given[at]!r} by its "
            f"place; list the classes in the order of the columns ({', '.join(held[:8])}), or leave them out"
        )
    return classes


def _numbered(names: Sequence[str], wanted: str | Sequence[str], events: Sequence[str] | None) -> bool:
    return len(names) > 1 and isinstance(wanted, str) and "*" in wanted and events is None


def _stars(names: Sequence[str], wanted: str | Sequence[str]) -> list[str]:
    """What the star of a pattern stood for in each name."""
    before, _, after = str(wanted).partition("*")
    return [name[len(before) : len(name) - len(after)] for name in names]


def _refuse_missing_outputs(table: "nw.DataFrame[Any]", names: Sequence[str], values: NDArray[Any]) -> None:
    """The same for several columns, of which only those that can hold a missing value are asked one by one."""
    if len(names) < 2 or values.dtype.kind in "iub":
        return
    odd = np.isnan(values).any(axis=0) if values.dtype.kind == "f" else np.ones(len(names), bool)
    for name in compress(names, odd):
        _refuse_missing(table[name], name)


def _refuse_missing(column: "nw.Series[Any]", name: str) -> None:
    nulls = column.null_count()
    if nulls:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise InputError(
            f"column {name!r} has {nulls} missing values, the first in row {row}; drop or fill those rows, or leave them out "
            "with drop_null=True (--drop-null)"
        )


def _no_column(name: str, columns: Sequence[str]) -> str:
    return f"there is no column {name!r}; the columns are {_listed(columns)}{did_you_mean(name, columns)}"


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(columns[:_MOST_LISTED]) + (", ..." if len(columns) > _MOST_LISTED else "")
