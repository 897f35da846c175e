"""`truecal lab`: simulated worlds, bias, power, coverage and the leaderboard."""

import os
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

import truecal as tc
from truecal import names
from truecal.cli.estimators import lens_option, level_option, make_estimator, make_lens, seed_option
from truecal.cli.output import Result, Share, answers, bundled, numbers_in
from truecal.cli.source import Source, input_options, load

if TYPE_CHECKING:
    from truecal.estimators.base import Estimator
    from truecal.table import Frame


# ----------------------------------------------------------------------------------------------------
# Options of `truecal lab` that travel together: how simulations run, where the answer goes, what is asked

world_option = click.option(
    "--world", metavar="NAME", help="One of the papers' worlds (see: truecal lab worlds), or your own as MODULE:NAME."
)


@dataclass(frozen=True)
class Running:
    """How simulations are run; only the seed changes the numbers."""

    workers: int | None
    cache: str | None
    seed: int

    @property
    def run(self) -> "tc.lab.Run":
        from truecal import parallel

        return tc.lab.Run(self.workers or parallel.cores(), self.cache)


def _result(kind: str, table: "Frame", facts: dict[str, Any] | None = None, text: str | None = None) -> Result:
    """Answer with a table, and what is to be said besides; numbers that are missing become null in JSON."""
    rows = [{key: None if value != value else value for key, value in row.items()} for row in table]
    return Result(kind, {**(facts or {}), "rows": rows}, table.to_text() if text is None else text)


table_options = answers(formats=("text", "json"))


@dataclass(frozen=True)
class Question:
    """Which error is to be found, with which probability."""

    error: float
    target: float
    alpha: float
    m: int


@dataclass(frozen=True)
class Metric:
    """The estimator whose power is asked for."""

    estimator: str
    bins: int | None
    norm: str | None


@dataclass(frozen=True)
class Effort:
    """How many simulations, and where the files go."""

    full: bool
    m: int | None
    folder: str
    table_format: str


running_options = bundled(
    Running,
    "running",
    click.option("--workers", type=click.IntRange(1), help="Processes to use. [default: all cores]"),
    click.option("--cache", metavar="FOLDER", help="Keep finished batches here; a later run takes them up."),
    seed_option,
)
question_options = bundled(
    Question,
    "question",
    click.option("--error", type=float, default=0.02, show_default=True, help="The true error to be found."),
    click.option("--target", type=float, default=0.8, show_default=True, help="Wanted probability to find it."),
    click.option("--alpha", type=float, default=0.05, show_default=True, help="Type I error."),
    click.option("--m", type=click.IntRange(2), default=400, show_default=True, help="Simulated datasets per n tried."),
)
_ESTIMATOR = click.option(
    "--estimator",
    default="rank-series",
    show_default=True,
    metavar="NAME",
    help=f"{', '.join(names.ESTIMATORS)}; or your own as MODULE:NAME.",
)
metric_options = bundled(
    Metric,
    "metric",
    _ESTIMATOR,
    click.option("--bins", type=click.IntRange(1), help="Number of bins, for estimators that have one."),
    click.option("--norm", metavar="P", help="1 or 2; errors of different norms cannot be compared. [default: 2]"),
)
effort_options = bundled(
    Effort,
    "effort",
    click.option(
        "--full/--quick", default=False, show_default=True, help="250 simulated datasets per world and size, or 10."
    ),
    click.option("--m", type=click.IntRange(1), help="This many simulated datasets or resamples instead."),
    click.option("--folder", default=".", show_default=True, metavar="FOLDER", help="Where the table and figure go."),
    click.option("--format", "table_format", type=click.Choice(["csv", "parquet"]), default="csv", show_default=True),
)


# ----------------------------------------------------------------------------------------------------
# `truecal lab`: worlds whose true error is known, and trials in them


@click.group()
def lab() -> None:
    """Simulate worlds whose true calibration error is known.

    \b
    truecal lab bias preds.parquet           how biased is each estimator on data like mine?
    truecal lab power --error 0.02           how many rows does it take to find an error of 0.02?
    truecal lab leaderboard                  which estimator is the least biased?
    truecal lab coverage --n 500             how often does an interval hold the true error?
    truecal lab sample-size --prevalence 0.1 --c-statistic 0.8   how many rows for narrow intervals?
    """


@lab.command()
@table_options
def worlds() -> Result:
    """List the papers' worlds with their true errors."""
    from truecal.table import Frame

    records = [
        {
            "world": name,
            "dataset": tc.lab.dataset_of(name),
            "accuracy": world.accuracy(),
            "error_l1": world.true_error(1),
            "error_l2": world.true_error(2),
        }
        for name, world in tc.lab.PAPER_WORLDS.items()
    ]
    return _result("lab worlds", Frame.from_records(records))


@lab.command()
@lens_option
@table_options
@input_options
def fit(source: Source, lens: str) -> Result:
    """Fit a world to the predictions in FILE: a Beta for the scores, the best of the GLM curves by AIC.

    true_error is that of the best curve on scores spread like those of FILE, as in `lab bias`; true_error_beta that on scores of
    the fitted Beta, as in Roelofs et al.
    """
    from truecal.table import Frame

    fitted = _fit(source, lens)
    records = [
        {"curve": c.name, "aic": c.aic, "b0": c.curve.b0, "b0_se": c.b0_standard_error, "b1": c.curve.b1}
        | {"b1_se": c.b1_standard_error}
        for c in fitted.curves
    ]
    table = Frame.from_records(records)
    beta, world = fitted.beta, fitted.empirical_world
    check = tc.lab.goodness(fitted, world)
    facts = {
        "alpha": beta.scores.alpha,
        "alpha_se": beta.alpha_standard_error,
        "beta": beta.scores.beta,
        "beta_se": beta.beta_standard_error,
        "scores_of_0": beta.zeros,
        "scores_of_1": beta.ones,
        "resolution": beta.resolution,
        "true_error": world.true_error(),
        "true_error_beta": fitted.world.true_error(),
        "ece_on_data": check.on_data,
        "ece_simulated": check.simulated,
        "ece_simulated_std": check.simulated_std,
    }
    text = "\n".join(f"{name:<18} {value:.6g}" for name, value in facts.items())
    return _result("lab fit", table, facts, f"{text}\n\n{table.to_text()}")


@lab.command()
@click.option("--n", type=click.IntRange(1), help="Rows of each simulated dataset. [default: as many as the data]")
@click.option("--m", type=click.IntRange(2), default=200, show_default=True, help="Simulated datasets.")
@lens_option
@running_options
@table_options
@input_options
def bias(source: Source, n: int | None, m: int, lens: str, running: Running) -> Result:
    """How biased is every estimator on data like that in FILE? Fits a world to it and simulates."""
    preds = load(source)
    result = tc.lab.how_biased(preds, n=n, m=m, lens=make_lens(lens, preds), rng=running.seed, run=running.run)
    facts = {
        "curve": result.fit.best.name,
        "true_error": result.world.true_error(),
        "ece_on_data": result.goodness.on_data,
        "ece_simulated": result.goodness.simulated,
        "ece_simulated_std": result.goodness.simulated_std,
    }
    return _result("lab bias", result.table, facts, str(result))


@lab.command()
@question_options
@metric_options
@world_option
@lens_option
@running_options
@table_options
@input_options
def power(
    source: Source,
    question: Question,
    metric: Metric,
    world: str | None,
    lens: str,
    running: Running,
) -> Result:
    """How many rows does it take to find an error of this size?

    Scores and the direction of the error are those of the predictions in FILE, or of --world; without either, scores are
    uniform and P(y) = c^d, as in Roelofs et al., section 5.4. The error is in the norm of the estimator (--norm): the same curve
    has a smaller error in norm 1 than in norm 2, so only powers of one norm can be compared.
    """
    from truecal.table import Frame

    given = bool(source.file)
    if given and world is not None:
        raise click.UsageError("FILE and --world exclude each other; give one")
    simulated = None if world is None else _world(world)
    if given:
        simulated = _fit(source, lens).empirical_world
    estimator = _in_norm(metric)
    asked = {"error": question.error, "target": question.target, "alpha": question.alpha, "m": question.m}
    needed = tc.lab.samples_needed(estimator, world=simulated, rng=running.seed, run=running.run, **asked)  # type: ignore[arg-type]
    records = [
        {"n": n, "power": needed.curve[n], "simulated": d.rate, "simulated_se": d.standard_error}
        for n, d in needed.tried.items()
    ]
    table = Frame.from_records(records)
    words = (
        f"an error of {question.error:g} (norm {estimator.norm:g}) is found with probability {question.target:g} "
        f"from about n = {needed.n} rows on ({metric.estimator}); 95 % interval of n for the noise of the simulations: "
        f"{needed.low} to {needed.high}"
    )
    numbers = {"n": needed.n, "n_low": needed.low, "n_high": needed.high, "norm": estimator.norm, **asked}
    facts = {"estimator": metric.estimator, **numbers}
    return _result("lab power", table, facts, f"{words}\n\n{table.to_text()}")


def _in_norm(metric: Metric) -> "Estimator":
    """The estimator; in norm 2 where it has a choice and none is asked for."""
    plain = _estimator(metric)
    if metric.norm is None and hasattr(plain, "norm") and ":" not in metric.estimator:
        return make_estimator(metric.estimator, bins=metric.bins, scheme=None, norm="2")
    return plain


@lab.command("sample-size")
@click.option(
    "--prevalence", type=Share(0, 1, min_open=True, max_open=True), help="Share of events, where FILE is left out."
)
@click.option("--c-statistic", type=Share(0.5, 1, min_open=True, max_open=True), help="Discrimination, likewise.")
@click.option(
    "--width", "widths", metavar="NAME=WIDTH", multiple=True, help="Of an interval: oe, intercept, slope, c_statistic."
)
@click.option("--thresholds", metavar="T,...", help="Also for net benefit at these risks.")
@level_option
@table_options
@input_options
def sample_size(
    source: Source,
    prevalence: float | None,
    c_statistic: float | None,
    widths: tuple[str, ...],
    thresholds: str | None,
    level: float,
) -> Result:
    """How many rows does a validation need, for intervals of given widths (Riley et al. 2021)?

    Risks are those of the predictions in FILE; without FILE, say --prevalence and --c-statistic.
    """
    if bool(source.file) == (prevalence is not None or c_statistic is not None):
        raise click.UsageError("give FILE, or --prevalence and --c-statistic")
    risks = load(source).class_probs(1) if source.file else None
    targets = {name: numbers_in(width, "--width")[0] for name, _, width in (word.partition("=") for word in widths)}
    needed = tc.clinical.sample_size(
        risks,
        prevalence=prevalence,
        c_statistic=c_statistic,
        widths=targets or None,
        thresholds=() if thresholds is None else numbers_in(thresholds, "--thresholds"),
        level=level,
    )
    return _result(
        "lab sample-size", needed.frame(), {"rows_needed": needed.rows, "events": needed.events}, str(needed)
    )


for _parameter in (*power.params, *sample_size.params):  # here FILE may be left out
    if _parameter.name == "file":
        _parameter.required = False


@lab.command()
@click.option("--estimator", "own", multiple=True, metavar="MODULE:NAME", help="A further estimator; may be repeated.")
@click.option("--world", "worlds", multiple=True, metavar="MODULE:NAME", help="A further world; may be repeated.")
@effort_options
@running_options
@table_options
def leaderboard(own: tuple[str, ...], worlds: tuple[str, ...], effort: Effort, running: Running) -> Result:
    """Rank every estimator by mean |bias|, RMSE and coverage over worlds whose true error is known."""
    datasets = effort.m or (250 if effort.full else 10)
    further = {path: _imported("--estimator", path) for path in own}
    simulated = {path: _world(path) for path in worlds}
    board = tc.lab.leaderboard(m=datasets, estimators=further, worlds=simulated, rng=running.seed, run=running.run)
    written = [str(path) for path in board.write(effort.folder, table_format=effort.table_format)]
    text = f"{board.title}\n\n{board.table.to_text()}\n\nwritten: {', '.join(written)}"
    return _result("lab leaderboard", board.table, {"title": board.title, "written": written}, text)


_any_estimator = bundled(
    Metric,
    "metric",
    _ESTIMATOR,
    click.option("--bins", type=click.IntRange(1), help="Number of bins, for estimators that have one."),
    click.option("--norm", metavar="P", help="1 or 2, for estimators that have one."),
)


@lab.command()
@_any_estimator
@click.option(
    "--world",
    "world_names",
    multiple=True,
    metavar="NAME",
    help="One of the papers' worlds, or your own as MODULE:NAME; may be repeated.  [default: all ten]",
)
@click.option(
    "--n",
    "sizes",
    type=click.IntRange(2),
    multiple=True,
    default=(1000,),
    show_default=True,
    help="Rows of a dataset; may be repeated.",
)
@click.option("--m", type=click.IntRange(2), default=200, show_default=True, help="Simulated datasets per world and n.")
@level_option
@running_options
@table_options
def coverage(
    metric: Metric,
    world_names: tuple[str, ...],
    sizes: tuple[int, ...],
    m: int,
    level: float,
    running: Running,
) -> Result:
    """How often does an estimator's interval hold the true error?

    One row per world and n: the share of m simulated datasets whose interval at --level holds the true error of the world, and the
    mean width. Estimators and worlds of your own are read from a module of the current folder or an installed package.
    """
    from truecal.table import Frame

    estimator = _estimator(metric)
    chosen = {name: _world(name) for name in world_names or tc.lab.PAPER_WORLDS}
    records = []
    with running.run.kept() as run:
        for name, world in chosen.items():
            for n in sorted(set(sizes)):
                result = tc.lab.coverage(estimator, world, n=n, m=m, level=level, rng=running.seed, run=run)
                records.append(
                    {"world": name, "n": n, "m": m, "true_error": result.truth, "coverage": result.rate}
                    | {"coverage_se": result.standard_error, "width": result.width}
                )
    table = Frame.from_records(records)
    words = f"{metric.estimator}: share of {m} datasets whose {100 * level:g} % interval holds the true error"
    facts = {"estimator": metric.estimator, "level": level, "m": m}
    return _result("lab coverage", table, facts, f"{words}\n\n{table.to_text()}")


def _estimator(metric: Metric) -> "Estimator":
    """The estimator of a name, or one of the user's."""
    if ":" not in metric.estimator:
        return make_estimator(metric.estimator, bins=metric.bins, scheme=None, norm=metric.norm)
    if metric.bins is not None or metric.norm is not None:
        raise click.UsageError("--bins and --norm are for estimators of truecal; set them in your own")
    return _imported("--estimator", metric.estimator)


def _world(name: str) -> "tc.lab.World":
    """The papers' world of a name, or a world of the user's."""
    if ":" in name:
        return _imported("--world", name)
    if name not in tc.lab.PAPER_WORLDS:
        hint = names.did_you_mean(name, tc.lab.PAPER_WORLDS)
        raise click.UsageError(f"there is no world {name!r} (see: truecal lab worlds){hint}")
    return tc.lab.PAPER_WORLDS[name]


def _imported(option: str, path: str) -> Any:
    """The object at MODULE:NAME; a class is called without arguments. Modules of the current folder are found."""
    module, _, name = path.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        value = getattr(import_module(module), name)
        return value() if isinstance(value, type) else value
    except Exception as error:  # the user's code may raise anything
        raise click.UsageError(f"{option} {path} cannot be used: {type(error).__name__}: {error}") from error


def _fit(source: Source, lens: str) -> "tc.lab.WorldFit":
    from truecal.lenses.one_probability import default_lens

    preds = load(source)
    judged = make_lens(lens, preds) or default_lens(preds)
    return tc.lab.fit_world(judged(preds))
