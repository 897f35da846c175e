"""`truecal lab`: worlds whose true error is known, trials in them, and the papers' experiments done again."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from truecal.cli.estimators import ESTIMATORS, lens_option, make_estimator, make_lens, seed_option
from truecal.cli.output import answer, output_options
from truecal.cli.source import Source, column_options, input_options, load

if TYPE_CHECKING:
    from truecal.lab.table import Table
    from truecal.lab.worlds.fit_world import WorldFit
    from truecal.predictions import Predictions

_worlds_option = click.option("--world", metavar="NAME", help="One of the papers' worlds (see: truecal lab worlds).")


def _run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--workers, --cache and --seed: how the simulations are run; only the seed changes the numbers."""
    for option in (
        seed_option,
        click.option("--cache", metavar="FOLDER", help="Keep finished batches here; a later run takes them up."),
        click.option("--workers", type=click.IntRange(1), help="Processes to use. [default: all cores]"),
    ):
        command = option(command)
    return command


@click.group()
def lab() -> None:
    """Simulate worlds whose true calibration error is known.

    \b
    truecal lab bias preds.parquet           how biased is each estimator on data like mine?
    truecal lab power --error 0.02           how many rows does it take to find an error of 0.02?
    truecal lab paper roelofs-fig4 --quick   an experiment of a paper, done again
    truecal lab coverage --peers             how often do intervals hold the truth, ours and others'?
    """


@lab.command()
@output_options
def worlds(as_json: bool, out: str | None) -> None:
    """List the papers' worlds with their true errors."""
    from truecal.lab import PAPER_WORLDS, dataset_of
    from truecal.lab.table import Table

    rows = tuple(
        (name, dataset_of(name), world.accuracy(), world.true_error(1), world.true_error(2))
        for name, world in PAPER_WORLDS.items()
    )
    _answer("lab worlds", Table(("world", "dataset", "accuracy", "error_l1", "error_l2"), rows), as_json, out)


@lab.command()
@lens_option
@output_options
@input_options
def fit(source: Source, lens: str, as_json: bool, out: str | None) -> None:
    """Fit a world to the predictions in FILE: a Beta for the scores, the best of the GLM curves by AIC."""
    from truecal.lab import goodness
    from truecal.lab.table import Table

    results = _fit(source, lens)
    rows = tuple(
        (c.name, c.aic, c.curve.b0, c.b0_standard_error, c.curve.b1, c.b1_standard_error) for c in results.curves
    )
    table = Table(("curve", "aic", "b0", "b0_se", "b1", "b1_se"), rows)
    beta, check = results.beta, goodness(results)
    facts = {
        "alpha": beta.scores.alpha,
        "alpha_se": beta.alpha_standard_error,
        "beta": beta.scores.beta,
        "beta_se": beta.beta_standard_error,
        "scores_of_0": beta.zeros,
        "scores_of_1": beta.ones,
        "resolution": beta.resolution,
        "true_error": results.world.true_error(),
        "ece_on_data": check.on_data,
        "ece_simulated": check.simulated,
        "ece_simulated_std": check.simulated_std,
    }
    text = "\n".join(f"{name:<18} {value:.6g}" for name, value in facts.items())
    _answer("lab fit", table, as_json, out, facts=facts, text=f"{text}\n\n{table.to_text()}")


@lab.command()
@click.option("--n", type=click.IntRange(1), help="Rows of each simulated dataset. [default: as many as the data]")
@click.option("--m", type=click.IntRange(2), default=200, show_default=True, help="Simulated datasets.")
@lens_option
@_run_options
@output_options
@input_options
def bias(
    source: Source,
    n: int | None,
    m: int,
    lens: str,
    seed: int,
    cache: str | None,
    workers: int | None,
    as_json: bool,
    out: str | None,
) -> None:
    """How biased is every estimator on data like that in FILE? Fits a world to it and simulates."""
    from truecal.lab import Run, how_biased

    preds = load(source)
    results = how_biased(preds, n=n, m=m, lens=make_lens(lens, preds), rng=seed, run=Run(_workers(workers), cache))
    best = results.fit.best
    facts = {
        "curve": best.name,
        "true_error": results.world.true_error(),
        "ece_on_data": results.goodness.on_data,
        "ece_simulated": results.goodness.simulated,
        "ece_simulated_std": results.goodness.simulated_std,
    }
    _answer("lab bias", results.table, as_json, out, facts=facts, text=str(results))


@lab.command()
@click.option("--error", type=float, default=0.02, show_default=True, help="The true error to be found out.")
@click.option("--target", type=float, default=0.8, show_default=True, help="Wanted probability to find it out.")
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Type I error.")
@click.option("--estimator", type=click.Choice(list(ESTIMATORS)), default="rank-series", show_default=True)
@click.option("--m", type=click.IntRange(2), default=400, show_default=True, help="Simulated datasets per n tried.")
@_worlds_option
@lens_option
@_run_options
@output_options
@input_options
def power(
    source: Source,
    error: float,
    target: float,
    alpha: float,
    estimator: str,
    m: int,
    world: str | None,
    lens: str,
    seed: int,
    cache: str | None,
    workers: int | None,
    as_json: bool,
    out: str | None,
) -> None:
    """How many rows does it take to find an error of this size?

    Scores and the direction of the error are those of the predictions in FILE, or of --world; without either, scores are
    uniform and P(y) = c^d, as in Roelofs et al., section 5.4.
    """
    from truecal.lab import PAPER_WORLDS, Run, samples_needed
    from truecal.lab.table import Table

    given = bool(source.file)
    if given and world is not None:
        raise click.UsageError("FILE and --world exclude each other; give one")
    place = PAPER_WORLDS[world] if world is not None else None
    if given:
        place = _fit(source, lens).empirical_world
    results = samples_needed(
        make_estimator(estimator, bins=None, scheme=None, norm=None),
        error=error,
        world=place,
        target=target,
        alpha=alpha,
        m=m,
        rng=seed,
        run=Run(_workers(workers), cache),
    )
    table = Table(("n", "power", "power_se"), tuple((n, d.rate, d.standard_error) for n, d in results.tried.items()))
    words = (
        f"an error of {error:g} is found with probability {target:g} from about n = {results.n} rows on ({estimator})"
    )
    facts = {"n": results.n, "error": error, "target": target, "alpha": alpha, "estimator": estimator}
    _answer("lab power", table, as_json, out, facts=facts, text=f"{words}\n\n{table.to_text()}")


for _parameter in power.params:  # here FILE may be left out
    if _parameter.name == "file":
        _parameter.required = False


@lab.command()
@click.argument("name", metavar="[EXPERIMENT]", required=False)
@click.option("--full/--quick", default=False, show_default=True, help="As many simulations as the paper, or few.")
@click.option("--folder", default=".", show_default=True, metavar="FOLDER", help="Where the table and figure go.")
@click.option("--format", "table_format", type=click.Choice(["csv", "parquet"]), default="csv", show_default=True)
@click.option(
    "--data",
    multiple=True,
    metavar="WORLD=FILE",
    help="A network's own outputs, for the tables of fits; may be repeated.",
)
@_run_options
@output_options
@column_options
def paper(
    source: Source,
    name: str | None,
    full: bool,
    data: tuple[str, ...],
    folder: str,
    table_format: str,
    seed: int,
    cache: str | None,
    workers: int | None,
    as_json: bool,
    out: str | None,
) -> None:
    """Do an experiment of a paper again, and write its table and figure; without a name, list the experiments."""
    from truecal.lab import Run
    from truecal.lab.papers.papers import PAPERS
    from truecal.lab.papers.papers import paper as redo
    from truecal.lab.table import Table

    if name is None:
        listed = tuple((known, entry.quick, entry.full) for known, entry in PAPERS.items())
        _answer("lab paper", Table(("experiment", "quick", "full"), listed), as_json, out)
        return
    with Run(_workers(workers), cache).kept() as run:
        results = redo(name, full=full, data=_given(data, source), rng=seed, run=run)
    written = [str(path) for path in results.write(folder, table_format=table_format)]
    text = f"{results.title}\n\n{results.table.to_text()}\n\nwritten: {', '.join(written)}"
    _answer("lab paper", results.table, as_json, out, facts={"title": results.title, "written": written}, text=text)


def _given(data: tuple[str, ...], source: Source) -> "dict[str, Predictions]":
    """The predictions of NAME=FILE pairs."""
    given = {}
    for pair in data:
        name, between, file = pair.partition("=")
        if not between or not file:
            raise click.UsageError(f"--data takes WORLD=FILE, not {pair!r}")
        given[name] = load(replace(source, file=file))
    return given


@lab.command()
@click.option("--full/--quick", default=False, show_default=True, help="250 datasets per world and n, or 10.")
@click.option("--folder", default=".", show_default=True, metavar="FOLDER", help="Where the table and figure go.")
@_run_options
@output_options
@click.pass_context
def leaderboard(context: click.Context, /, **options: Any) -> None:
    """Rank every estimator by mean |bias|, RMSE and coverage over worlds whose true error is known."""
    context.invoke(paper, name="leaderboard", table_format="csv", **options)


@lab.command()
@click.option("--full/--quick", default=False, show_default=True, help="200 datasets per world and n, or 20.")
@click.option("--peers", is_flag=True, help="Intervals of other installed packages as well (few datasets, n <= 1000).")
@click.option("--n", "sizes", type=click.IntRange(2), multiple=True, help="Rows of a dataset; may be repeated.")
@click.option("--m", type=click.IntRange(1), help="Simulated datasets per world and n, instead of --full or --quick.")
@click.option("--level", type=float, default=0.9, show_default=True, help="Stated level of the intervals.")
@click.option("--workers", type=click.IntRange(1), help="Processes to use. [default: all cores]")
@seed_option
@output_options
def coverage(
    full: bool,
    peers: bool,
    sizes: tuple[int, ...],
    m: int | None,
    level: float,
    workers: int | None,
    seed: int,
    as_json: bool,
    out: str | None,
) -> None:
    """How often does each interval hold the truth, and how long is it?

    Four groups of ten worlds: fitted to real networks, the same recalibrated (true error 0) and nearly so (0.02), and others.
    The text has one line per interval, group and n; --json one row per world.
    """
    from truecal.lab import Run
    from truecal.lab.trials.coverage_map import CANDIDATES, SIZES, cell_table, coverage_map, summary
    from truecal.lab.trials.peer_intervals import peer_candidates

    datasets = m or (200 if full else 20)
    judged = list(CANDIDATES)
    if peers:
        others, absent = peer_candidates(datasets)
        judged += others
        if absent:
            click.echo(f"truecal: not installed, left out: {', '.join(absent)}", err=True)
    n = tuple(sorted(set(sizes))) or (SIZES if full else (100, 1000))
    cells = coverage_map(n=n, m=datasets, level=level, candidates=judged, rng=seed, run=Run(_workers(workers)))
    facts = {"level": level, "n": list(n), "m": datasets}
    _answer("lab coverage", cell_table(cells), as_json, out, facts=facts, text=summary(cells).to_text())


def _fit(source: Source, lens: str) -> "WorldFit":
    from truecal.lab import fit_world
    from truecal.lens import default_lens

    preds = load(source)
    judged = make_lens(lens, preds) or default_lens(preds)
    return fit_world(judged(preds))


def _workers(asked: int | None) -> int:
    from truecal.parallel import cores

    return asked or cores()


def _answer(
    verb: str,
    table: "Table",
    as_json: bool,
    out: str | None,
    *,
    facts: dict[str, Any] | None = None,
    text: str | None = None,
) -> None:
    """The table, and what is to be said besides; numbers that are missing become null in JSON."""
    from truecal.report.records import document

    rows = [{key: None if value != value else value for key, value in row.items()} for row in table]
    content = {**(facts or {}), "rows": rows}
    answer(document(verb, **content), table.to_text() if text is None else text, as_json=as_json, out=out)
