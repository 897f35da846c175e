"""Options that name estimators, lenses, selections, distances and scales, and what they stand for."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import truecal as tc
from truecal import names
from truecal.cli.output import Share, bundled
from truecal.errors import FileError, InputError

if TYPE_CHECKING:
    from truecal.estimators.base import Estimator
    from truecal.lenses.lens import Lens
    from truecal.predictions.selection import Selection


# ----------------------------------------------------------------------------------------------------
# What --select, --distance, --binning, --lens grouping=FILE and a scale of words stand for

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
        return tc.estimators.TotalVariation()
    if name == "lp" and given:
        return tc.estimators.Lp(_number(given, "--distance lp=P"))
    if name == "weights" and given:
        return tc.estimators.ClassWeighted([_number(one, "--distance weights=W,...") for one in given.split(",")])
    if name == "matrix" and given:
        return tc.estimators.Mahalanobis(_json(given, "the matrix"))
    low, high = _limits(given) or (None, None)
    if name == "interval" and low is not None and high is not None:
        return tc.estimators.InterInterval(low, high)
    raise InputError(
        f"there is no distance {word!r}; use total-variation, lp=P, weights=W,..., matrix=FILE or interval=LOW:HIGH"
    )


def _binning(word: str) -> Any:
    name, _, given = word.partition("=")
    if name == "kd-tree":
        return tc.estimators.KDTree(_number(given, "--binning kd-tree=FRACTION")) if given else tc.estimators.KDTree()
    if name in ("width", "mass") and given.isdigit():
        return tc.estimators.EqualWidth(int(given)) if name == "width" else tc.estimators.EqualMass(int(given))
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


# ----------------------------------------------------------------------------------------------------
# Estimators and lenses on the command line: their options, and what the words given stand for

AUTO = "auto"  # the lens that suits the predictions


lens_option = click.option(
    "--lens",
    default=AUTO,
    show_default=True,
    metavar="LENS",
    help=f"What is judged: auto (positive class of two, else top label), {', '.join(names.LENSES)}, top-K, class=NAME or "
    "grouping=FILE (JSON: lists of classes by the name of their group).",
)
level_option = click.option(
    "--level",
    type=Share(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Confidence level of intervals and gates.",
)
seed_option = click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of resampling.")


@dataclass(frozen=True)
class Asked:
    """What the user said about the estimator."""

    estimator: str | None
    bins: int | None
    scheme: str | None
    norm: str | None
    distance: str | None
    binning: str | None

    def made(self, lens: "Lens | None") -> "list[Estimator]":
        """The estimators for what a lens judges; settings that do not go together are refused."""
        if self.distance is not None or self.binning is not None or (lens is not None and lens.several):
            for name in ("estimator", "bins", "scheme"):
                if getattr(self, name) is not None:
                    raise InputError(
                        f"--{name} is for one probability per row; here bins of whole predictions are judged, which "
                        "--distance and --binning choose"
                    )
            return [generalized(self.distance, self.binning, None if self.norm is None else _norm(self.norm))]
        if self.estimator == "all":
            return all_estimators()
        return [make_estimator(self.estimator or "rank-series", bins=self.bins, scheme=self.scheme, norm=self.norm)]


# --estimator with its settings (the command receives one `asked`), --lens, --level and --seed.
estimator_options = bundled(
    Asked,
    "asked",
    click.option(
        "--estimator",
        type=click.Choice([*names.ESTIMATORS, *names.CITED, "all"]),
        help="How to measure; 'all' shows every estimator side by side.  [default: rank-series; bins of several "
        "probabilities where the lens judges those]",
    ),
    click.option("--bins", type=click.IntRange(1), help="Number of bins (binned, label-binned, debiased)."),
    click.option("--scheme", type=click.Choice(["width", "mass"]), help="Bins of equal width or equal mass."),
    click.option("--norm", metavar="P", help="1 mean absolute, 2 root mean square, inf maximum."),
    distance_option,
    binning_option,
    lens_option,
    level_option,
    seed_option,
)


def make_estimator(name: str, *, bins: int | None, scheme: str | None, norm: str | None) -> "Estimator":
    """The estimator of a name with the settings given; a setting it does not have is refused."""
    named = names.estimator_named(name)
    given = {"bins": bins, "scheme": scheme, "norm": None if norm is None else _norm(norm)}
    wanted = {option: value for option, value in given.items() if value is not None}
    known = {field.name for field in fields(getattr(tc.estimators, named.name))}
    for option in wanted:
        if option not in known:
            raise InputError(f"the {name} estimator has no --{option}")
    made: Estimator = named.of(tc.estimators, **wanted)
    return made


def all_estimators() -> "list[Estimator]":
    """Every estimator with its defaults."""
    return [make_estimator(name, bins=None, scheme=None, norm=None) for name in names.ESTIMATORS]


def make_lens(name: str, preds: "tc.Predictions") -> "Lens | None":
    """The lens of a name; None leaves the choice to the library."""
    return lens_of(name, classes_by_word(preds))


def lens_of(name: str, classes: Mapping[str, object]) -> "Lens | None":
    """The same, where classes are found by their words."""
    if name.startswith("grouping="):
        return grouping_of(name.removeprefix("grouping="), classes)
    lens: Lens | None = None if name == AUTO else names.lens_named(name, classes).of(tc.lenses)
    return lens


def _norm(text: str) -> float:
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError as error:
        raise InputError(f"--norm must be a number of at least 1, or inf, not {text!r}") from error
