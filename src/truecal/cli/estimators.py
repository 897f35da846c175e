"""Estimators and lenses on the command line: their options, and what the words given stand for."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import click

import truecal as tc
from truecal import names
from truecal.cli.answer.output import Share, bundled
from truecal.cli.context.words import binning_option, classes_by_word, distance_option, generalized, grouping_of
from truecal.errors import InputError

if TYPE_CHECKING:
    from truecal.estimate import Estimator
    from truecal.lens import Lens


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
    known = {field.name for field in fields(getattr(tc, named.name))}
    for option in wanted:
        if option not in known:
            raise InputError(f"the {name} estimator has no --{option}")
    made: Estimator = named.of(tc, **wanted)
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
    lens: Lens | None = None if name == AUTO else names.lens_named(name, classes).of(tc)
    return lens


def _norm(text: str) -> float:
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError as error:
        raise InputError(f"--norm must be a number of at least 1, or inf, not {text!r}") from error
