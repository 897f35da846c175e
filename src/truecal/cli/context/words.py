"""What --select, --distance, --binning, --lens grouping=FILE and a scale of words stand for."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import truecal as tc
from truecal.errors import FileError, InputError

if TYPE_CHECKING:
    from truecal.lens import Lens
    from truecal.select import Selection

select_option = click.option(
    "--select",
    metavar="WHICH",
    multiple=True,
    help="Judge only these rows: label=NAME,..., output=LOW:HIGH, COLUMN=VALUE,... or COLUMN=LOW:HIGH; repeat to narrow.",
)
distance_option = click.option(
    "--distance",
    metavar="DISTANCE",
    help="Between mean output and mean outcome of a bin: total-variation, lp=P, weights=W,..., matrix=FILE, interval=LOW:HIGH.",
)
binning_option = click.option(
    "--binning", metavar="BINNING", help="Which predictions are alike: kd-tree=0.1, width=15 or mass=15."
)


def classes_by_word(preds: "tc.Predictions") -> dict[str, object]:
    """The classes of predictions by the words they are asked for with."""
    return {str(known): known for known in preds.classes or range(preds.class_count)}


def selected_columns(select: Sequence[str]) -> tuple[str, ...]:
    """The columns that --select names, other than the label and the output."""
    names = [_parts(word)[0] for word in select]
    return tuple(dict.fromkeys(name for name in names if name not in ("label", "output")))


def selection_of(select: Sequence[str], classes: Mapping[str, object], kinds: Mapping[str, str]) -> "Selection | None":
    """All of --select together; `classes` finds classes by their words, `kinds` the numpy kind of every column by its name."""
    selection = None
    for word in select:
        one = _selection(word, classes, kinds)
        selection = one if selection is None else selection & one
    return selection


def _selection(word: str, classes: Mapping[str, object], kinds: Mapping[str, str]) -> "Selection":
    name, given = _parts(word)
    if name == "label":
        return tc.by_label(*(classes.get(one, one) for one in given.split(",")))
    limits = _limits(given)
    if name == "output":
        if limits is None:
            raise InputError(f"--select output is LOW:HIGH, such as output=0.5:1, not {word!r}")
        low, high = limits
        return tc.by_output(low=0.0 if low is None else low, high=1.0 if high is None else high)
    kind = kinds.get(name, "U")
    if limits is not None and kind in "iuf":
        return tc.by_column(name, low=limits[0], high=limits[1])
    return tc.by_column(name, *(_value(name, one, kind) for one in given.split(",")))


def _parts(word: str) -> tuple[str, str]:
    name, equals, given = word.partition("=")
    if not equals or not name or not given:
        raise InputError(
            f"--select is label=NAME,..., output=LOW:HIGH, COLUMN=VALUE,... or COLUMN=LOW:HIGH, not {word!r}"
        )
    return name, given


def _limits(given: str) -> tuple[float | None, float | None] | None:
    """The ends of LOW:HIGH, either of which may be missing; None where it is no interval."""
    low, colon, high = given.partition(":")
    try:
        return (float(low) if low else None, float(high) if high else None) if colon and given != ":" else None
    except ValueError:
        return None


def _value(column: str, word: str, kind: str) -> object:
    """A value as the column holds it."""
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


def generalized(distance: str | None, binning: str | None, norm: float | None) -> "tc.GeneralizedECE":
    """The estimator of several probabilities with what was said about it."""
    options: dict[str, Any] = {} if norm is None else {"norm": norm}
    if distance is not None:
        options["distance"] = _distance(distance)
    if binning is not None:
        options["binning"] = _binning(binning)
    return tc.GeneralizedECE(**options)


def _distance(word: str) -> Any:
    name, _, given = word.partition("=")
    if name == "total-variation" and not given:
        return tc.TotalVariation()
    if name == "lp" and given:
        return tc.Lp(_number(given, "--distance lp=P"))
    if name == "weights" and given:
        return tc.ClassWeighted([_number(one, "--distance weights=W,...") for one in given.split(",")])
    if name == "matrix" and given:
        return tc.Mahalanobis(_json(given, "the matrix"))
    low, high = _limits(given) or (None, None)
    if name == "interval" and low is not None and high is not None:
        return tc.InterInterval(low, high)
    raise InputError(
        f"there is no distance {word!r}; use total-variation, lp=P, weights=W,..., matrix=FILE or interval=LOW:HIGH"
    )


def _binning(word: str) -> Any:
    name, _, given = word.partition("=")
    if name == "kd-tree":
        return tc.KDTree(_number(given, "--binning kd-tree=FRACTION")) if given else tc.KDTree()
    if name in ("width", "mass") and given.isdigit():
        return tc.EqualWidth(int(given)) if name == "width" else tc.EqualMass(int(given))
    raise InputError(f"there is no binning {word!r}; use kd-tree=FRACTION, width=BINS or mass=BINS")


def _number(word: str, what: str) -> float:
    try:
        return float(word)
    except ValueError as error:
        raise InputError(f"{what} needs numbers, not {word!r}") from error


def grouping_of(file: str, classes: Mapping[str, object]) -> "Lens":
    """The grouping in a JSON file: {"group": ["class", ...], ...}."""
    groups = _json(file, "the grouping")
    if not isinstance(groups, dict) or not all(isinstance(members, list) for members in groups.values()):
        raise FileError(f'{file} must hold one JSON object of lists of classes, such as {{"pet": ["cat", "dog"]}}')
    return tc.Grouping(
        {name: [classes.get(str(member), member) for member in members] for name, members in groups.items()}
    )


def scale_of(words: str | None, option: str) -> dict[str, tuple[float, float]] | None:
    """The words of a scale and their limits."""
    if words is None:
        return None
    scale: dict[str, tuple[float, float]] = {}
    for part in words.split(","):
        word, _, given = part.rpartition("=")
        limits = _limits(given)
        if limits is None or limits[0] is None or limits[1] is None or not word.strip():
            raise click.UsageError(f"{option} is WORD=LOW:HIGH,..., such as low=0:0.1,high=0.1:1, not {part!r}")
        if word.strip() in scale:
            raise click.UsageError(f"{option} names {word.strip()!r} twice")
        scale[word.strip()] = (limits[0], limits[1])
    return scale


def _json(file: str, what: str) -> Any:
    try:
        return json.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"cannot read {what} in {file}: {error.strerror}") from error
    except ValueError as error:
        raise FileError(f"cannot read {what} in {file}: it is not JSON ({error})") from error
