"""Options that name estimators, lenses, selections and scales, and what they stand for."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import click

import truecal as tc
from truecal import names
from truecal.cli.command import Count, Fraction, Parsed, Seed
from truecal.errors import FileError, InputError

if TYPE_CHECKING:
    from truecal.estimators.base import Estimator
    from truecal.lenses.lens import Lens
    from truecal.predictions.selection import Selection

# ----------------------------------------------------------------------------------------------------
# --select, --lens grouping=FILE and scales of words


def classes_by_word(preds: "tc.Predictions") -> dict[str, object]:
    """Map the text of every class to the class."""
    return {str(name): name for name in preds.classes or range(preds.class_count)}


def selected_columns(select: Sequence[str]) -> tuple[str, ...]:
    """List the columns that --select names, other than the label and the output."""
    return tuple(dict.fromkeys(name for word in select if (name := _parts(word)[0]) not in ("label", "output")))


def parse_selection(
    select: Sequence[str], classes: Mapping[str, object], kinds: Mapping[str, str]
) -> "Selection | None":
    """Combine all of --select; `classes` has classes by their words, `kinds` the numpy kind of every column."""
    selection = None
    for word in select:
        name, values = _parts(word)
        limits, kind = _limits(values), kinds.get(name, "U")
        if name == "label":
            one = tc.by_label(*(classes.get(value, value) for value in values.split(",")))
        elif name == "output":
            if limits is None:
                raise InputError(f"--select output is LOW:HIGH, such as output=0.5:1, not {word!r}")
            low, high = limits
            one = tc.by_output(low=0.0 if low == -inf else low, high=1.0 if high == inf else high)
        elif limits is not None and kind in "iuf":
            one = tc.by_column(name, low=limits[0], high=limits[1])
        else:
            one = tc.by_column(name, *(_value(name, value, kind) for value in values.split(",")))
        selection = one if selection is None else selection & one
    return selection


def _parts(word: str) -> tuple[str, str]:
    """Split NAME=VALUES of --select."""
    name, equals, values = word.partition("=")
    if not equals or not name or not values:
        raise InputError(
            f"--select is label=NAME,..., output=LOW:HIGH, COLUMN=VALUE,... or COLUMN=LOW:HIGH, not {word!r}"
        )
    return name, values


def _limits(text: str) -> tuple[float, float] | None:
    """Parse LOW:HIGH, where either may be missing (infinite); None where it is no interval."""
    low, colon, high = text.partition(":")
    try:
        return (float(low or -inf), float(high or inf)) if colon and text != ":" else None
    except ValueError:
        return None


def _value(column: str, word: str, kind: str) -> object:
    """Convert text to the type of a column by its dtype kind: bool ("b"), float ("i", "u", "f"), else text."""
    if kind == "b":
        if word.lower() not in ("true", "false"):
            raise InputError(f"column {column!r} holds true and false; select one of them, not {word!r}")
        return word.lower() == "true"
    if kind not in "iuf":
        return word
    try:
        return float(word)
    except ValueError as error:
        raise InputError(f"column {column!r} holds numbers; select one, or a range LOW:HIGH, not {word!r}") from error


def _grouping(file: str, classes: Mapping[str, object]) -> "Lens":
    """Read a grouping from a JSON file: {"group": ["class", ...], ...}."""
    try:
        groups = json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or f"it is not JSON ({error})"
        raise FileError(f"cannot read the grouping in {file}: {reason}") from error
    if not isinstance(groups, dict) or not all(isinstance(members, list) for members in groups.values()):
        raise FileError(f'{file} must hold one JSON object of lists of classes, such as {{"pet": ["cat", "dog"]}}')
    return tc.Grouping(
        {name: [classes.get(str(member), member) for member in members] for name, members in groups.items()}
    )


def _scale(text: str) -> dict[str, tuple[float, float]]:
    """Parse an answer scale such as "low=0-0.33,high=0.66-1" to limits by word."""
    scale: dict[str, tuple[float, float]] = {}
    for part in text.split(","):
        word, _, span = part.rpartition("=")
        limits = _limits(span)
        if limits is None or max(map(abs, limits)) == inf or not word.strip() or word.strip() in scale:
            raise ValueError(part)
        scale[word.strip()] = limits
    return scale


Scale = Annotated[
    dict[str, tuple[float, float]],
    Parsed(_scale, "WORD=LOW:HIGH,... with different words, such as low=0:0.1,high=0.1:1"),
]


# ----------------------------------------------------------------------------------------------------
# Estimators and lenses


def _norm(text: str) -> float:
    """Parse a norm: a whole number, a decimal, or inf."""
    return int(text) if text.isdigit() else float(text)


Norm = Annotated[float, Parsed(_norm, "a number of at least 1, or inf")]


@dataclass(frozen=True)
class EstimatorOptions:
    """How the error is measured.

    --estimator NAME  How to measure; 'all' shows every estimator side by side.  [default: rank-series; bins of several
                      probabilities where the lens judges those]
    --bins N          Number of bins (binned, label-binned, debiased).
    --scheme SCHEME   Bins of equal width or equal mass.
    --norm P          1 mean absolute, 2 root mean square, inf maximum.
    --level P         Confidence level of intervals and gates.
    --seed N          Seed of random numbers.
    """

    estimator: Annotated[str | None, click.Choice([*names.ESTIMATORS, *names.CITED, "all"])] = None
    bins: Count | None = None
    scheme: Literal["width", "mass"] | None = None
    norm: Norm | None = None
    level: Fraction = 0.95
    seed: Seed = 0

    def estimators(self, lens: "Lens | None") -> "list[Estimator]":
        """Make the estimators for what a lens judges; settings that do not go together are refused."""
        if lens is not None and lens.several:
            for name in ("estimator", "bins", "scheme"):
                if getattr(self, name) is not None:
                    raise InputError(
                        f"--{name} is for one probability per row; this lens judges several by bins of whole predictions, "
                        "which estimator=tc.GeneralizedECE(binning=...) chooses in Python"
                    )
            return [tc.GeneralizedECE() if self.norm is None else tc.GeneralizedECE(norm=self.norm)]
        if self.estimator == "all":
            return [make_estimator(name) for name in names.ESTIMATORS]
        return [make_estimator(self.estimator or "rank-series", bins=self.bins, scheme=self.scheme, norm=self.norm)]


def make_estimator(
    name: str, *, bins: int | None = None, scheme: str | None = None, norm: float | None = None
) -> "Estimator":
    """Make an estimator by name with the settings that are not None; refuse a setting that it does not have."""
    named = names.estimator_named(name)
    settings = {"bins": bins, "scheme": scheme, "norm": norm}
    options = {option: value for option, value in settings.items() if value is not None}
    allowed = {field.name for field in fields(getattr(tc.estimators, named.name))}
    for option in options:
        if option not in allowed:
            raise InputError(f"the {name} estimator has no --{option}")
    estimator: Estimator = named.of(tc.estimators, **options)
    return estimator


def make_lens(word: str, classes: "tc.Predictions | Mapping[str, object]") -> "Lens | None":
    """Make the lens of --lens, with classes by their words or those of predictions; None leaves the choice to the library."""
    by_word = classes_by_word(classes) if isinstance(classes, tc.Predictions) else classes
    if word.startswith("grouping="):
        return _grouping(word.removeprefix("grouping="), by_word)
    lens: Lens | None = None if word == "auto" else names.lens_named(word, by_word).of(tc.lenses)
    return lens
