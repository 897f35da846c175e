"""`truecal lab`: simulated worlds, the bias of estimators, and sample sizes."""

from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

import click

import truecal as tc
from truecal import names, parallel
from truecal.cli.command import Count, Fraction, Numbers, Seed, Several, command
from truecal.cli.input import Norm, NumbersByName, OneFile, OptionalFile, load, make_estimator
from truecal.cli.output import Reply
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
    simulation: Simulation,
    *,
    estimator: Annotated[str, click.Choice([*names.ESTIMATORS])] = "rank-series",
    bins: Count | None = None,
    norm: Norm | None = None,
    error: float = 0.02,
    target: float = 0.8,
    alpha: float = 0.05,
    m: Several = 400,
    world: Annotated[str | None, click.Choice([*tc.lab.PAPER_WORLDS])] = None,
) -> Reply:
    """Find how many rows detect an error of this size.

    Scores and the direction of the error are those of the predictions in FILE, or of --world; without either, scores are
    uniform and P(y) = c^d, as in Roelofs et al., section 5.4. The error is in the norm of the estimator: the same curve has a
    smaller error in norm 1 than in norm 2, so only powers of one norm can be compared.

    --estimator NAME  The estimator whose test detects the error.
    --bins N          Number of bins, for estimators that have one.
    --norm P          1 or 2, for estimators that have one.  [default: 2]
    --error E         The true error to detect.
    --target P        Probability of detecting it.
    --alpha P         Type I error.
    --m N             Simulated datasets per n tried.
    --world NAME      One of the papers' worlds (see: truecal lab worlds).
    """
    if source.files and world is not None:
        raise click.UsageError("FILE and --world exclude each other; give one")
    simulated = None if world is None else tc.lab.PAPER_WORLDS[world]
    if source.files:
        simulated = tc.lab.fit_world(_profile(source)).empirical_world
    tried = make_estimator(estimator, bins=bins, norm=norm)
    if norm is None and "norm" in {field.name for field in fields(tried)}:
        tried = replace(tried, norm=2)  # type: ignore[call-arg]
    question: dict[str, Any] = {"error": error, "target": target, "alpha": alpha, "m": m}
    needed = tc.lab.samples_needed(tried, world=simulated, **question, **simulation.settings)
    rows = Frame.from_records(
        {"n": n, "power": needed.curve[n], "simulated": d.rate, "simulated_se": d.standard_error}
        for n, d in needed.tried.items()
    )
    numbers = {"n": needed.n, "n_low": needed.low, "n_high": needed.high, "norm": tried.norm, **question}
    text = f"{estimator}, norm {tried.norm:g}: {needed}\n\n{rows.to_text()}"
    return _table_reply("lab-power", rows, {"estimator": estimator, **numbers}, text)


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
