"""`truecal lab`: simulated worlds, bias, power and coverage of estimators, their ranking, and sample sizes."""

import os
import sys
from dataclasses import dataclass, fields, replace
from importlib import import_module
from typing import Any

import click

import truecal as tc
from truecal import names, parallel
from truecal.cli.command import Count, Fraction, Numbers, Seed, Several, Words, command
from truecal.cli.input import Norm, NumbersByName, OneFile, OptionalFile, load, make_estimator
from truecal.cli.output import Reply
from truecal.estimators.base import as_estimator
from truecal.lenses.one_probability import default_lens
from truecal.table import Frame


@dataclass(frozen=True)
class Simulation:
    """How simulations are run; only the seed changes the numbers.

    --workers N     Processes to use.  [default: all cores]
    --cache FOLDER  Store finished batches here; a later run reads them.
    --seed N        Seed of random numbers.
    """

    workers: Count | None = None
    cache: str | None = None
    seed: Seed = 0

    @property
    def settings(self) -> dict[str, Any]:
        """Keyword arguments `rng` and `run` of the functions of truecal.lab."""
        return {"rng": self.seed, "run": tc.lab.Run(self.workers or parallel.cores(), self.cache)}


@dataclass(frozen=True)
class TriedEstimator:
    """The estimator that is tried.

    --estimator NAME  rank-series, binned, label-binned, debiased, sweep, nearest, kernel-density, smooth or isotonic; or your
                      own as MODULE:NAME.
    --bins N          Number of bins, for estimators that have one.
    --norm P          1 or 2, for estimators that have one; errors of different norms cannot be compared.
    """

    estimator: str = "rank-series"
    bins: Count | None = None
    norm: Norm | None = None

    def make(self, default_norm: float | None = None) -> "tc.estimators.Estimator":
        """Make the estimator of a name, or load the object MODULE:NAME, which may be a function of scores and outcomes.

        `default_norm` replaces the norm of estimators that have one, unless --norm is given.
        """
        if ":" in self.estimator:
            if self.bins is not None or self.norm is not None:
                raise click.UsageError("--bins and --norm are for estimators of truecal; set them in your own")
            return as_estimator(_load_object("--estimator", self.estimator))
        estimator = make_estimator(self.estimator, bins=self.bins, norm=self.norm)
        if self.norm is None and default_norm is not None and "norm" in {f.name for f in fields(estimator)}:
            return replace(estimator, norm=default_norm)  # type: ignore[call-arg]
        return estimator


def _find_world(name: str) -> "tc.lab.World":
    """Return the world of the papers with this name, or load the object MODULE:NAME.

    Raises UsageError for an unknown name, with the nearest known one.
    """
    if ":" in name:
        return _load_object("--world", name)
    if name not in tc.lab.PAPER_WORLDS:
        hint = names.did_you_mean(name, tc.lab.PAPER_WORLDS)
        raise click.UsageError(f"there is no world {name!r} (see: truecal lab worlds){hint}")
    return tc.lab.PAPER_WORLDS[name]


def _load_object(option: str, path: str) -> Any:
    """Load the object MODULE:NAME, also from the current folder; a class is called without arguments.

    Whatever it raises becomes a usage error that names the `option`.
    """
    module, _, name = path.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        value = getattr(import_module(module), name)
        return value() if isinstance(value, type) else value
    except Exception as error:  # the user's code may raise anything
        raise click.UsageError(f"{option} {path} cannot be used: {type(error).__name__}: {error}") from error


def _table_reply(kind: str, rows: Frame, facts: dict[str, Any] | None = None, text: str | None = None) -> Reply:
    """Return the reply with a table and further `facts`; its text is `text`, else the table."""
    return Reply(kind, {**(facts or {}), "rows": list(rows)}, rows.to_text() if text is None else text)


def _profile(source: OptionalFile) -> "tc.profile.Profile":
    """Read the scores that the lens judges, and their outcomes."""
    loaded = load(source)
    return (loaded.lens or default_lens(loaded.preds))(loaded.preds)


@click.group()
def lab() -> None:
    """Simulate worlds whose true calibration error is known.

    \b
    truecal lab bias preds.parquet           how biased is each estimator on data like mine?
    truecal lab power --error 0.02           how many rows detect an error of 0.02?
    truecal lab leaderboard                  which estimator is the least biased?
    truecal lab coverage --n 500             how often does an interval contain the true error?
    truecal lab sample-size --prevalence 0.1 --c-statistic 0.8   how many rows for narrow intervals?
    """


@command(lab)
def worlds() -> Reply:
    """List the papers' worlds with their true errors."""
    records = []
    for name, world in tc.lab.PAPER_WORLDS.items():
        errors = {f"error_l{norm}": world.true_error(norm) for norm in (1, 2)}
        records.append({"world": name, "dataset": tc.lab.dataset_of(name), "accuracy": world.accuracy(), **errors})
    return _table_reply("lab-worlds", Frame.from_records(records))


@command(lab)
def bias(source: OneFile, simulation: Simulation, *, n: Count | None = None, m: Several = 200) -> Reply:
    """Estimate how biased every estimator is on data like that in FILE, by simulating a world fitted to it.

    --n N  Rows of each simulated dataset.  [default: as many as the data]
    --m N  Simulated datasets.
    """
    loaded = load(source)
    result = tc.lab.how_biased(loaded.preds, n=n, m=m, lens=loaded.lens, **simulation.settings)
    check = result.goodness
    errors = {"ece_on_data": check.on_data, "ece_simulated": check.simulated, "ece_simulated_std": check.simulated_std}
    facts = {"curve": result.fit.best.name, "true_error": result.world.true_error(), **errors}
    return _table_reply("lab-bias", result.table, facts, str(result))


@command(lab)
def power(
    source: OptionalFile,
    tried: TriedEstimator,
    simulation: Simulation,
    *,
    error: float = 0.02,
    target: float = 0.8,
    alpha: float = 0.05,
    m: Several = 400,
    world: str | None = None,
) -> Reply:
    """Find how many rows detect an error of this size.

    Scores and the direction of the error are those of the predictions in FILE, or of --world; without either, scores are
    uniform and P(y) = c^d, as in Roelofs et al., section 5.4. The error is in the norm of the estimator (--norm, by default 2): the
    same curve has a smaller error in norm 1 than in norm 2, so only powers of one norm can be compared.

    --error E     The true error to detect.
    --target P    Probability of detecting it.
    --alpha P     Type I error.
    --m N         Simulated datasets per n tried.
    --world NAME  One of the papers' worlds (see: truecal lab worlds), or your own as MODULE:NAME.
    """
    if source.files and world is not None:
        raise click.UsageError("FILE and --world exclude each other; give one")
    simulated = None if world is None else _find_world(world)
    if source.files:
        simulated = tc.lab.fit_world(_profile(source)).empirical_world
    estimator = tried.make(default_norm=2)
    question: dict[str, Any] = {"error": error, "target": target, "alpha": alpha, "m": m}
    needed = tc.lab.samples_needed(estimator, world=simulated, **question, **simulation.settings)
    rows = Frame.from_records(
        {"n": n, "power": needed.curve[n], "simulated": d.rate, "simulated_se": d.standard_error}
        for n, d in needed.tried.items()
    )
    numbers = {"n": needed.n, "n_low": needed.low, "n_high": needed.high, "norm": estimator.norm, **question}
    text = f"{tried.estimator}, norm {estimator.norm:g}: {needed}\n\n{rows.to_text()}"
    return _table_reply("lab-power", rows, {"estimator": tried.estimator, **numbers}, text)


@command(lab)
def coverage(
    tried: TriedEstimator,
    simulation: Simulation,
    *,
    world: Words = (),
    n: tuple[Several, ...] = (1000,),
    m: Several = 200,
    level: Fraction = 0.95,
) -> Reply:
    """Estimate how often an estimator's interval contains the true error.

    One row per world and n: the share of m simulated datasets whose interval at --level contains the true error of the world, and
    the mean width. Estimators and worlds of your own are read from a module of the current folder or an installed package.

    --world NAME  One of the papers' worlds, or your own as MODULE:NAME; may be repeated.  [default: all ten]
    --n N         Rows of a dataset; may be repeated.
    --m N         Simulated datasets per world and n.
    """
    estimator, records = tried.make(), []
    worlds_by_name = {name: _find_world(name) for name in world or tc.lab.PAPER_WORLDS}
    settings = simulation.settings
    with settings.pop("run").with_pool() as run:
        for name, simulated in worlds_by_name.items():
            for size in sorted(set(n)):
                result = tc.lab.coverage(estimator, simulated, n=size, m=m, level=level, run=run, **settings)
                rates = {"coverage": result.rate, "coverage_se": result.standard_error, "width": result.width}
                records.append({"world": name, "n": size, "m": m, "true_error": result.truth, **rates})
    rows = Frame.from_records(records)
    words = f"share of {m} datasets whose {100 * level:g} % interval contains the true error"
    text = f"{tried.estimator} (norm {estimator.norm:g}): {words}\n\n{rows.to_text()}"
    return _table_reply("lab-coverage", rows, {"estimator": tried.estimator, "level": level, "m": m}, text)


@command(lab)
def leaderboard(
    simulation: Simulation, *, estimator: Words = (), world: Words = (), m: Count = 10, folder: str = "."
) -> Reply:
    """Rank every estimator by mean |bias|, RMSE and coverage over worlds whose true error is known.

    --estimator MODULE:NAME  A further estimator; may be repeated.
    --world MODULE:NAME      A further world; may be repeated.
    --m N                    Simulated datasets per world and size; 250 for a ranking to publish.
    --folder FOLDER          Where the table (csv) and the figure go.
    """
    estimators = {path: _load_object("--estimator", path) for path in estimator}
    worlds_by_name = {path: _find_world(path) for path in world}
    board = tc.lab.leaderboard(m=m, estimators=estimators, worlds=worlds_by_name, **simulation.settings)
    written = [str(path) for path in board.write(folder)]
    text = f"{board.title}\n\n{board.table.to_text()}\n\nwritten: {', '.join(written)}"
    return _table_reply("lab-leaderboard", board.table, {"title": board.title, "written": written}, text)


@command(lab)
def sample_size(
    source: OptionalFile,
    *,
    prevalence: Fraction | None = None,
    c_statistic: Fraction | None = None,
    widths: NumbersByName | None = None,
    thresholds: Numbers | None = None,
    level: Fraction = 0.95,
) -> Reply:
    """Find how many rows a validation needs, for intervals of given widths (Riley et al. 2021).

    Risks are those of the predictions in FILE; without FILE, give --prevalence and --c-statistic.

    --prevalence P       Share of events, where FILE is left out.
    --c-statistic C      Discrimination, likewise.
    --widths NAME=W,...  Of intervals: oe, intercept, slope, c_statistic; such as slope=0.4,oe=0.3.
    --thresholds T,...   Also for net benefit at these risks.
    """
    if bool(source.files) == (prevalence is not None and c_statistic is not None):
        raise click.UsageError("give FILE, or --prevalence and --c-statistic")
    needed = tc.clinical.sample_size(
        _profile(source).scores if source.files else None,
        prevalence=prevalence,
        c_statistic=c_statistic,
        widths=widths,
        thresholds=thresholds or (),
        level=level,
    )
    facts = {"rows_needed": needed.rows, "events": needed.events}
    return _table_reply("lab-sample-size", needed.frame(), facts, str(needed))
