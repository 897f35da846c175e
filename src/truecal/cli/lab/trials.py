"""`truecal lab`: worlds whose true error is known, and trials in them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

import truecal as tc
from truecal.cli.answer.output import bundled
from truecal.cli.estimators import lens_option, make_estimator, make_lens
from truecal.cli.lab.options import (
    Effort,
    Metric,
    Question,
    Running,
    TableReply,
    effort_options,
    metric_options,
    question_options,
    reply_options,
    running_options,
    world_option,
)
from truecal.cli.source import Source, input_options, load

if TYPE_CHECKING:
    from truecal.estimate import Estimator


@click.group()
def lab() -> None:
    """Simulate worlds whose true calibration error is known.

    \b
    truecal lab bias preds.parquet           how biased is each estimator on data like mine?
    truecal lab power --error 0.02           how many rows does it take to find an error of 0.02?
    truecal lab leaderboard                  which estimator is the least biased?
    truecal lab coverage --peers             how often do intervals hold the truth, ours and others'?
    """


@lab.command()
@reply_options
def worlds(reply: TableReply) -> None:
    """List the papers' worlds with their true errors."""
    from truecal.frame import Frame

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
    reply.table("lab worlds", Frame.from_records(records))


@lab.command()
@lens_option
@reply_options
@input_options
def fit(source: Source, lens: str, reply: TableReply) -> None:
    """Fit a world to the predictions in FILE: a Beta for the scores, the best of the GLM curves by AIC."""
    from truecal.frame import Frame

    fitted = _fit(source, lens)
    records = [
        {"curve": c.name, "aic": c.aic, "b0": c.curve.b0, "b0_se": c.b0_standard_error, "b1": c.curve.b1}
        | {"b1_se": c.b1_standard_error}
        for c in fitted.curves
    ]
    table = Frame.from_records(records)
    beta, check = fitted.beta, tc.lab.goodness(fitted)
    facts = {
        "alpha": beta.scores.alpha,
        "alpha_se": beta.alpha_standard_error,
        "beta": beta.scores.beta,
        "beta_se": beta.beta_standard_error,
        "scores_of_0": beta.zeros,
        "scores_of_1": beta.ones,
        "resolution": beta.resolution,
        "true_error": fitted.world.true_error(),
        "ece_on_data": check.on_data,
        "ece_simulated": check.simulated,
        "ece_simulated_std": check.simulated_std,
    }
    text = "\n".join(f"{name:<18} {value:.6g}" for name, value in facts.items())
    reply.table("lab fit", table, facts=facts, text=f"{text}\n\n{table.to_text()}")


@lab.command()
@click.option("--n", type=click.IntRange(1), help="Rows of each simulated dataset. [default: as many as the data]")
@click.option("--m", type=click.IntRange(2), default=200, show_default=True, help="Simulated datasets.")
@lens_option
@running_options
@reply_options
@input_options
def bias(source: Source, n: int | None, m: int, lens: str, running: Running, reply: TableReply) -> None:
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
    reply.table("lab bias", result.table, facts=facts, text=str(result))


@lab.command()
@question_options
@metric_options
@world_option
@lens_option
@running_options
@reply_options
@input_options
def power(
    source: Source,
    question: Question,
    metric: Metric,
    world: str | None,
    lens: str,
    running: Running,
    reply: TableReply,
) -> None:
    """How many rows does it take to find an error of this size?

    Scores and the direction of the error are those of the predictions in FILE, or of --world; without either, scores are
    uniform and P(y) = c^d, as in Roelofs et al., section 5.4. The error is in the norm of the estimator (--norm): the same curve
    has a smaller error in norm 1 than in norm 2, so only powers of one norm can be compared.
    """
    from truecal.frame import Frame

    given = bool(source.file)
    if given and world is not None:
        raise click.UsageError("FILE and --world exclude each other; give one")
    place = tc.lab.PAPER_WORLDS[world] if world is not None else None
    if given:
        place = _fit(source, lens).empirical_world
    estimator = _in_norm(metric)
    asked = {"error": question.error, "target": question.target, "alpha": question.alpha, "m": question.m}
    needed = tc.lab.samples_needed(estimator, world=place, rng=running.seed, run=running.run, **asked)  # type: ignore[arg-type]
    records = [{"n": n, "power": d.rate, "power_se": d.standard_error} for n, d in needed.tried.items()]
    table = Frame.from_records(records)
    words = (
        f"an error of {question.error:g} (norm {estimator.power_norm:g}) is found with probability {question.target:g} "
        f"from about n = {needed.n} rows on ({metric.estimator})"
    )
    facts = {"n": needed.n, **asked, "estimator": metric.estimator, "norm": estimator.power_norm}
    reply.table("lab power", table, facts=facts, text=f"{words}\n\n{table.to_text()}")


def _in_norm(metric: Metric) -> "Estimator":
    """The estimator; in norm 2 where it has a choice and none is asked for."""
    plain = make_estimator(metric.estimator, bins=metric.bins, scheme=None, norm=metric.norm)
    if metric.norm is None and hasattr(plain, "norm"):
        return make_estimator(metric.estimator, bins=metric.bins, scheme=None, norm="2")
    return plain


for _parameter in power.params:  # here FILE may be left out
    if _parameter.name == "file":
        _parameter.required = False


@lab.command()
@effort_options
@running_options
@reply_options
def leaderboard(effort: Effort, running: Running, reply: TableReply) -> None:
    """Rank every estimator by mean |bias|, RMSE and coverage over worlds whose true error is known."""
    datasets = effort.m or (250 if effort.full else 10)
    board = tc.lab.leaderboard(m=datasets, rng=running.seed, run=running.run)
    written = [str(path) for path in board.write(effort.folder, table_format=effort.table_format)]
    text = f"{board.title}\n\n{board.table.to_text()}\n\nwritten: {', '.join(written)}"
    reply.table("lab leaderboard", board.table, facts={"title": board.title, "written": written}, text=text)


@dataclass(frozen=True)
class _Atlas:
    """Doors, sizes and datasets of the coverage atlas, and where it is written."""

    full: bool
    peers: bool
    doors: tuple[str, ...]
    sizes: tuple[int, ...]
    m: int | None
    table: str | None
    page: str | None


_atlas = bundled(
    _Atlas,
    "wanted",
    click.option(
        "--full/--quick",
        default=False,
        show_default=True,
        help="Every door and size, or a few doors and 20 datasets.",
    ),
    click.option(
        "--peers", is_flag=True, help="Intervals of other installed packages as well (few datasets, n <= 1000)."
    ),
    click.option("--door", "doors", multiple=True, metavar="NAME", help="Only this door; may be repeated."),
    click.option("--n", "sizes", type=click.IntRange(2), multiple=True, help="Rows of a dataset; may be repeated."),
    click.option(
        "--m",
        type=click.IntRange(2),
        help="Datasets per world and n, instead of 200 or 20; slow doors have a share.",
    ),
    click.option("--table", metavar="FILE", help="Put the tables between the marks of this document."),
    click.option("--page", metavar="FILE", help="Write the page: worlds by doors, coloured by coverage."),
)


@lab.command()
@_atlas
@running_options
@reply_options
def coverage(wanted: _Atlas, running: Running, reply: TableReply) -> None:
    """How often does each statement hold: intervals, tests and promises, in worlds whose truth is known?

    Five groups of ten worlds of one score (fitted to real networks, the same recalibrated and nearly so, others, hard ones) and
    eight of many classes. The text has one line per door and n; --json one row per world. With --cache an interrupted run goes on
    where it was.
    """
    from truecal.lab.atlas import atlas, peers, summary

    names = [door.name for door in atlas.DOORS]
    for name in wanted.doors:
        if name not in names:
            raise click.UsageError(f"there is no door {name!r}; doors are: {', '.join(names)}")
    quick = [door for door in atlas.DOORS if door.share == 1]
    asked = [door for door in atlas.DOORS if door.name in wanted.doors] or (list(atlas.DOORS) if wanted.full else quick)
    datasets = wanted.m or (200 if wanted.full else 20)
    n = tuple(sorted(set(wanted.sizes))) or (atlas.SIZES if wanted.full else (100, 1000))
    cells = atlas.coverage_atlas(n=n, m=datasets, doors=asked, rng=running.seed, run=running.run)
    if wanted.peers:
        others, absent = peers.peer_doors()
        if absent:
            click.echo(f"truecal: not installed, left out: {', '.join(absent)}", err=True)
        cells += atlas.coverage_atlas(n=n, m=datasets, doors=others, rng=running.seed) if others else []
    if wanted.table is not None:
        given = "--full" if wanted.full else "--quick"
        parts = [f"--n {size}" for size in wanted.sizes] + [f'--door "{name}"' for name in wanted.doors]
        summary.write_into(wanted.table, cells, " ".join(["truecal lab coverage", given, f"--m {datasets}", *parts]))
    if wanted.page is not None:
        from truecal.report import atlas as page

        page.write_atlas(cells, wanted.page)
    facts = {"n": list(n), "m": datasets}
    reply.table("lab coverage", summary.cell_table(cells), facts=facts, text=summary.summary(cells).to_text())


def _fit(source: Source, lens: str) -> "tc.lab.WorldFit":
    from truecal.lens import default_lens

    preds = load(source)
    judged = make_lens(lens, preds) or default_lens(preds)
    return tc.lab.fit_world(judged(preds))
