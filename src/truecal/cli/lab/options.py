"""Options of `truecal lab` that travel together: how simulations run, where the answer goes, what is asked."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

import truecal as tc
from truecal import names
from truecal.cli.answer.output import JSON, OUT, Reply, bundled
from truecal.cli.estimators import seed_option

if TYPE_CHECKING:
    from truecal.frame import Frame

world_option = click.option("--world", metavar="NAME", help="One of the papers' worlds (see: truecal lab worlds).")


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


class TableReply(Reply):
    """A reply that is a table, perhaps with facts."""

    def table(self, verb: str, table: "Frame", *, facts: dict[str, Any] | None = None, text: str | None = None) -> None:
        """The table, and what is to be said besides; numbers that are missing become null in JSON."""
        rows = [{key: None if value != value else value for key, value in row.items()} for row in table]
        self.give(verb, table.to_text() if text is None else text, **(facts or {}), rows=rows)


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
reply_options = bundled(TableReply, "reply", JSON, OUT)
question_options = bundled(
    Question,
    "question",
    click.option("--error", type=float, default=0.02, show_default=True, help="The true error to be found."),
    click.option("--target", type=float, default=0.8, show_default=True, help="Wanted probability to find it."),
    click.option("--alpha", type=float, default=0.05, show_default=True, help="Type I error."),
    click.option("--m", type=click.IntRange(2), default=400, show_default=True, help="Simulated datasets per n tried."),
)
metric_options = bundled(
    Metric,
    "metric",
    click.option("--estimator", type=click.Choice(list(names.ESTIMATORS)), default="rank-series", show_default=True),
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
