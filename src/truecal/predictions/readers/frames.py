"""Frames of any library, through narwhals."""

from collections.abc import Sequence
from fnmatch import translate
from re import compile as pattern
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal.errors import InputError


def matching(columns: Sequence[str], wanted: str | Sequence[str], what: str) -> tuple[list[str], list[str] | None]:
    """Columns named by one name, a list, or a pattern with a star; for a pattern also what the star stood for."""
    if not isinstance(wanted, str):
        names = list(wanted)
        missing = [name for name in names if name not in columns]
        if missing:
            raise InputError(f"there is no column {missing[0]!r}; the columns are {', '.join(columns)}")
        return names, None
    if wanted in columns:
        return [wanted], None
    if "*" not in wanted:
        raise InputError(f"there is no column {wanted!r}; the columns are {', '.join(columns)}")
    fits = pattern(translate(wanted))
    names = [name for name in columns if fits.match(name)]
    if not names:
        raise InputError(f"no column matches {wanted!r} for {what}; the columns are {', '.join(columns)}")
    before, _, after = wanted.partition("*")
    stars = [name[len(before) : len(name) - len(after)] for name in names]
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
    for name in [*names, *single]:
        nulls = table[name].null_count()
        if nulls:
            row = int(np.flatnonzero(table[name].is_null().to_numpy())[0])
            raise InputError(
                f"column {name!r} has {nulls} missing values, the first in row {row}; drop or fill those rows"
            )
    values = table[names[0]].to_numpy() if len(names) == 1 else table.select(names).to_numpy()
    rest = [name for name in table.columns if name not in {*names, *single}]
    further = {
        "weights": None if weights is None else table[weights].to_numpy(),
        "clusters": None if clusters is None else table[clusters].to_numpy(),
        "classes": _named_by_pattern(stars, table[label].to_numpy()) if classes is None else classes,
        "columns": {name: table[name].to_numpy() for name in rest},
    }
    return values, table[label].to_numpy(), further


def _named_by_pattern(stars: list[str] | None, labels: Any) -> list[str] | None:
    """Class names taken from the column names, when the labels are names too (numeric labels stay column indices)."""
    if stars is None or np.asarray(labels).dtype.kind in "iubf":
        return None
    return stars
