"""Estimators and lenses on the command line: their options, and what the words given stand for."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from truecal import names
from truecal.cli.answer.output import Share
from truecal.errors import InputError

if TYPE_CHECKING:
    import truecal as tc
    from truecal.estimate import Estimator
    from truecal.lens import Lens


AUTO = "auto"  # the lens that suits the predictions


def estimator_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--estimator with its settings, --lens, --level and --seed."""
    for option in reversed(
        (
            click.option(
                "--estimator",
                type=click.Choice([*names.ESTIMATORS, *names.CITED, "all"]),
                default="rank-series",
                show_default=True,
                help="How to measure; 'all' shows every estimator side by side.",
            ),
            click.option("--bins", type=click.IntRange(1), help="Number of bins (binned, label-binned, debiased)."),
            click.option("--scheme", type=click.Choice(["width", "mass"]), help="Bins of equal width or equal mass."),
            click.option("--norm", metavar="P", help="1 mean absolute, 2 root mean square, inf maximum."),
            lens_option,
            level_option,
            seed_option,
        )
    ):
        command = option(command)
    return command


lens_option = click.option(
    "--lens",
    default=AUTO,
    show_default=True,
    metavar="LENS",
    help=f"What is judged: auto (positive class of two, else top label), {', '.join(names.LENSES)}, or class=NAME.",
)
level_option = click.option(
    "--level",
    type=Share(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Confidence level of intervals and gates.",
)
seed_option = click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of resampling.")


def make_estimator(name: str, *, bins: int | None, scheme: str | None, norm: str | None) -> "Estimator":
    """The estimator of a name with the settings given; a setting it does not have is refused."""
    import truecal

    named = names.estimator_named(name)
    given = {"bins": bins, "scheme": scheme, "norm": None if norm is None else _norm(norm)}
    wanted = {option: value for option, value in given.items() if value is not None}
    known = {field.name for field in fields(getattr(truecal, named.name))}
    for option in wanted:
        if option not in known:
            raise InputError(f"the {name} estimator has no --{option}")
    made: Estimator = named.of(truecal, **wanted)
    return made


def all_estimators() -> "list[Estimator]":
    """Every estimator with its defaults."""
    return [make_estimator(name, bins=None, scheme=None, norm=None) for name in names.ESTIMATORS]


def make_lens(name: str, preds: "tc.Predictions") -> "Lens | None":
    """The lens of a name; None leaves the choice to the library."""
    return lens_of(name, {str(known): known for known in preds.classes or range(preds.class_count)})


def lens_of(name: str, classes: Mapping[str, object]) -> "Lens | None":
    """The same, where classes are found by their words."""
    import truecal

    lens: Lens | None = None if name == AUTO else names.lens_named(name, classes).of(truecal)
    return lens


def _norm(text: str) -> float:
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError as error:
        raise InputError(f"--norm must be a number of at least 1, or inf, not {text!r}") from error
