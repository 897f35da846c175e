"""`truecal lab`: worlds whose true error is known, trials in them, and the papers' experiments done again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from truecal.cli.estimators import lens_option, make_estimator, make_lens, seed_option
from truecal.cli.output import answer, output_options
from truecal.cli.source import Source, column_options, input_options, load
from truecal.names import ESTIMATORS

if TYPE_CHECKING:
    from truecal.estimate import Estimator
    from truecal.frame import Frame
    from truecal.lab import Run, WorldFit
    from truecal.lab.papers.data import Network

_worlds_option = click.option("--world", metavar="NAME", help="One of the papers' worlds (see: truecal lab worlds).")
Command = Callable[..., Any]


def _bundled(
    kind: type[Any], name: str, options: Sequence[Callable[[Command], Command]]
) -> Callable[[Command], Command]:
    """A decorator that adds options and hands them to the command as one value of a dataclass."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def called(*arguments: Any, **given: Any) -> Any:
            parts = {field.name: given.pop(field.name) for field in fields(kind)}
            return command(*arguments, **{name: kind(**parts)}, **given)

        wrapped: Command = called
        for option in reversed(options):
            wrapped = option(wrapped)
        return wrapped

    return decorate


@dataclass(frozen=True)
class _Running:
    """How simulations are run; only the seed changes the numbers."""

    workers: int | None
    cache: str | None
    seed: int

    @property
    def run(self) -> "Run":
        from truecal.lab import Run
        from truecal.parallel import cores

        return Run(self.workers or cores(), self.cache)


@dataclass(frozen=True)
class _Reply:
    """Where the answer goes, and as what."""

    as_json: bool
    out: str | None

    def give(self, verb: str, table: "Frame", *, facts: dict[str, Any] | None = None, text: str | None = None) -> None:
        """The table, and what is to be said besides; numbers that are missing become null in JSON."""
        from truecal.report.records import document

        rows = [{key: None if value != value else value for key, value in row.items()} for row in table]
        content = {**(facts or {}), "rows": rows}
        shown = table.to_text() if text is None else text
        answer(document(verb, **content), shown, as_json=self.as_json, out=self.out)


@dataclass(frozen=True)
class _Question:
    """Which error is to be found, with which probability."""

    error: float
    target: float
    alpha: float
    m: int


@dataclass(frozen=True)
class _Metric:
    """The estimator whose power is asked for."""

    estimator: str
    bins: int | None
    norm: str | None


@dataclass(frozen=True)
class _Effort:
    """How many simulations, and where the files go."""

    full: bool
    m: int | None
    folder: str
    table_format: str


_running = _bundled(
    _Running,
    "running",
    (
        click.option("--workers", type=click.IntRange(1), help="Processes to use. [default: all cores]"),
        click.option("--cache", metavar="FOLDER", help="Keep finished batches here; a later run takes them up."),
        seed_option,
    ),
)
_reply = _bundled(_Reply, "reply", (output_options,))
_question = _bundled(
    _Question,
    "question",
    (
        click.option("--error", type=float, default=0.02, show_default=True, help="The true error to be found."),
        click.option("--target", type=float, default=0.8, show_default=True, help="Wanted probability to find it."),
        click.option("--alpha", type=float, default=0.05, show_default=True, help="Type I error."),
        click.option(
            "--m", type=click.IntRange(2), default=400, show_default=True, help="Simulated datasets per n tried."
        ),
    ),
)
_metric = _bundled(
    _Metric,
    "metric",
    (
        click.option("--estimator", type=click.Choice(list(ESTIMATORS)), default="rank-series", show_default=True),
        click.option("--bins", type=click.IntRange(1), help="Number of bins, for estimators that have one."),
        click.option("--norm", metavar="P", help="1 or 2; errors of different norms cannot be compared. [default: 2]"),
    ),
)
_effort = _bundled(
    _Effort,
    "effort",
    (
        click.option(
            "--full/--quick", default=False, show_default=True, help="As many simulations as the paper, or few."
        ),
        click.option("--m", type=click.IntRange(1), help="This many simulated datasets or resamples instead."),
        click.option(
            "--folder", default=".", show_default=True, metavar="FOLDER", help="Where the table and figure go."
        ),
        click.option(
            "--format", "table_format", type=click.Choice(["csv", "parquet"]), default="csv", show_default=True
        ),
    ),
)
_data = click.option(
    "--data",
    multiple=True,
    metavar="NAME=FILE",
    help="A network's own outputs (.npz with logits or probs); may be repeated.",
)


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
@_reply
def worlds(reply: _Reply) -> None:
    """List the papers' worlds with their true errors."""
    from truecal.frame import Frame
    from truecal.lab import PAPER_WORLDS, dataset_of

    records = [
        {
            "world": name,
            "dataset": dataset_of(name),
            "accuracy": world.accuracy(),
            "error_l1": world.true_error(1),
            "error_l2": world.true_error(2),
        }
        for name, world in PAPER_WORLDS.items()
    ]
    reply.give("lab worlds", Frame.from_records(records))


@lab.command()
@lens_option
@_reply
@input_options
def fit(source: Source, lens: str, reply: _Reply) -> None:
    """Fit a world to the predictions in FILE: a Beta for the scores, the best of the GLM curves by AIC."""
    from truecal.frame import Frame
    from truecal.lab import goodness

    fitted = _fit(source, lens)
    records = [
        {"curve": c.name, "aic": c.aic, "b0": c.curve.b0, "b0_se": c.b0_standard_error, "b1": c.curve.b1}
        | {"b1_se": c.b1_standard_error}
        for c in fitted.curves
    ]
    table = Frame.from_records(records)
    beta, check = fitted.beta, goodness(fitted)
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
    reply.give("lab fit", table, facts=facts, text=f"{text}\n\n{table.to_text()}")


@lab.command()
@click.option("--n", type=click.IntRange(1), help="Rows of each simulated dataset. [default: as many as the data]")
@click.option("--m", type=click.IntRange(2), default=200, show_default=True, help="Simulated datasets.")
@lens_option
@_running
@_reply
@input_options
def bias(source: Source, n: int | None, m: int, lens: str, running: _Running, reply: _Reply) -> None:
    """How biased is every estimator on data like that in FILE? Fits a world to it and simulates."""
    from truecal.lab import how_biased

    preds = load(source)
    result = how_biased(preds, n=n, m=m, lens=make_lens(lens, preds), rng=running.seed, run=running.run)
    facts = {
        "curve": result.fit.best.name,
        "true_error": result.world.true_error(),
        "ece_on_data": result.goodness.on_data,
        "ece_simulated": result.goodness.simulated,
        "ece_simulated_std": result.goodness.simulated_std,
    }
    reply.give("lab bias", result.table, facts=facts, text=str(result))


@lab.command()
@_question
@_metric
@_worlds_option
@lens_option
@_running
@_reply
@input_options
def power(
    source: Source,
    question: _Question,
    metric: _Metric,
    world: str | None,
    lens: str,
    running: _Running,
    reply: _Reply,
) -> None:
    """How many rows does it take to find an error of this size?

    Scores and the direction of the error are those of the predictions in FILE, or of --world; without either, scores are
    uniform and P(y) = c^d, as in Roelofs et al., section 5.4. The error is in the norm of the estimator (--norm): the same curve
    has a smaller error in norm 1 than in norm 2, so only powers of one norm can be compared.
    """
    from truecal.frame import Frame
    from truecal.lab import PAPER_WORLDS, samples_needed

    given = bool(source.file)
    if given and world is not None:
        raise click.UsageError("FILE and --world exclude each other; give one")
    place = PAPER_WORLDS[world] if world is not None else None
    if given:
        place = _fit(source, lens).empirical_world
    estimator = _in_norm(metric)
    asked = {"error": question.error, "target": question.target, "alpha": question.alpha, "m": question.m}
    needed = samples_needed(estimator, world=place, rng=running.seed, run=running.run, **asked)  # type: ignore[arg-type]
    records = [{"n": n, "power": d.rate, "power_se": d.standard_error} for n, d in needed.tried.items()]
    table = Frame.from_records(records)
    words = (
        f"an error of {question.error:g} (norm {estimator.power_norm:g}) is found with probability {question.target:g} "
        f"from about n = {needed.n} rows on ({metric.estimator})"
    )
    facts = {"n": needed.n, **asked, "estimator": metric.estimator, "norm": estimator.power_norm}
    reply.give("lab power", table, facts=facts, text=f"{words}\n\n{table.to_text()}")


def _in_norm(metric: _Metric) -> "Estimator":
    """The estimator; in norm 2 where it has a choice and none is asked for."""
    plain = make_estimator(metric.estimator, bins=metric.bins, scheme=None, norm=metric.norm)
    if metric.norm is None and hasattr(plain, "norm"):
        return make_estimator(metric.estimator, bins=metric.bins, scheme=None, norm="2")
    return plain


for _parameter in power.params:  # here FILE may be left out
    if _parameter.name == "file":
        _parameter.required = False


@lab.command()
@click.argument("name", metavar="[EXPERIMENT]", required=False)
@_effort
@_data
@_running
@_reply
@column_options
def paper(
    source: Source, name: str | None, effort: _Effort, data: tuple[str, ...], running: _Running, reply: _Reply
) -> None:
    """Do an experiment of a paper again, and write its table and figure; without a name, list the experiments."""
    from truecal.frame import Frame
    from truecal.lab.papers.papers import PAPERS
    from truecal.lab.papers.papers import paper as redo

    if name is None:
        listed = [
            {"experiment": known, "quick": entry.quick, "full": entry.full, "data": entry.data}
            for known, entry in PAPERS.items()
        ]
        reply.give("lab paper", Frame.from_records(listed))
        return
    with running.run.kept() as run:
        given = _given(data, source)
        level: Any = "full" if effort.full else "quick"
        made = redo(name, effort=level, m=effort.m, data=given, rng=running.seed, run=run)
    written = [str(path) for path in made.write(effort.folder, table_format=effort.table_format)]
    text = f"{made.title}\n\n{made.table.to_text()}\n\nwritten: {', '.join(written)}"
    reply.give("lab paper", made.table, facts={"title": made.title, "written": written}, text=text)


@lab.command()
@click.option("--effort", type=click.Choice(["quick", "page", "full"]), default="page", show_default=True)
@click.option("--folder", metavar="FOLDER", help="Write every table and figure here as well.")
@click.option("--out", metavar="FILE", default="papers.md", show_default=True, help="The page, in Markdown.")
@_data
@_running
@column_options
def papers(source: Source, effort: str, folder: str | None, out: str, data: tuple[str, ...], running: _Running) -> None:
    """Do every experiment of the papers again and write one page: each numbered item, our number, the printed one, a verdict."""
    from truecal.lab.papers.page import page, run_items
    from truecal.writing import write_whole

    level: Any = effort
    made = run_items(_given(data, source), effort=level, rng=running.seed, run=running.run)
    for experiment in made.values() if folder else ():
        experiment.write(str(folder))
    click.echo(f"written: {write_whole(out, page(made))}")


def _given(data: tuple[str, ...], source: Source) -> "dict[str, Network]":
    """The networks of NAME=FILE pairs: .npz files with their splits, other files as one test split."""
    from truecal.lab.papers.data import Network, Outputs, read_network

    given = {}
    for pair in data:
        name, between, file = pair.partition("=")
        if not between or not file:
            raise click.UsageError(f"--data takes NAME=FILE, not {pair!r}")
        if file.endswith(".npz"):
            given[name] = read_network(file)
        else:
            given[name] = Network(Outputs(load(replace(source, file=file))))
    return given


@lab.command()
@_effort
@_running
@_reply
@click.pass_context
def leaderboard(context: click.Context, /, **options: Any) -> None:
    """Rank every estimator by mean |bias|, RMSE and coverage over worlds whose true error is known."""
    plain = {key: value for part in options.values() for key, value in vars(part).items()}
    context.invoke(paper, name="leaderboard", data=(), **plain)


@dataclass(frozen=True)
class _Map:
    """The intervals, sizes and datasets of a coverage map."""

    full: bool
    peers: bool
    sizes: tuple[int, ...]
    m: int | None
    level: float


_map = _bundled(
    _Map,
    "wanted",
    (
        click.option("--full/--quick", default=False, show_default=True, help="200 datasets per world and n, or 20."),
        click.option(
            "--peers", is_flag=True, help="Intervals of other installed packages as well (few datasets, n <= 1000)."
        ),
        click.option("--n", "sizes", type=click.IntRange(2), multiple=True, help="Rows of a dataset; may be repeated."),
        click.option(
            "--m", type=click.IntRange(1), help="Simulated datasets per world and n, instead of --full or --quick."
        ),
        click.option("--level", type=float, default=0.9, show_default=True, help="Stated level of the intervals."),
    ),
)


@lab.command()
@_map
@_running
@_reply
def coverage(wanted: _Map, running: _Running, reply: _Reply) -> None:
    """How often does each interval hold the truth, and how long is it?

    Four groups of ten worlds: fitted to real networks, the same recalibrated (true error 0) and nearly so (0.02), and others.
    The text has one line per interval, group and n; --json one row per world.
    """
    from truecal.lab.trials.coverage_map import CANDIDATES, SIZES, cell_table, coverage_map, summary
    from truecal.lab.trials.peer_intervals import peer_candidates

    datasets = wanted.m or (200 if wanted.full else 20)
    judged = list(CANDIDATES)
    if wanted.peers:
        others, absent = peer_candidates(datasets)
        judged += others
        if absent:
            click.echo(f"truecal: not installed, left out: {', '.join(absent)}", err=True)
    n = tuple(sorted(set(wanted.sizes))) or (SIZES if wanted.full else (100, 1000))
    cells = coverage_map(n=n, m=datasets, level=wanted.level, candidates=judged, rng=running.seed, run=running.run)
    facts = {"level": wanted.level, "n": list(n), "m": datasets}
    reply.give("lab coverage", cell_table(cells), facts=facts, text=summary(cells).to_text())


def _fit(source: Source, lens: str) -> "WorldFit":
    from truecal.lab import fit_world
    from truecal.lens import default_lens

    preds = load(source)
    judged = make_lens(lens, preds) or default_lens(preds)
    return fit_world(judged(preds))
