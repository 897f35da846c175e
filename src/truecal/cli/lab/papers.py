"""`truecal lab paper`, `papers` and `leaderboard`: the papers' experiments done again."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecal.cli.answer.output import note
from truecal.cli.lab.options import (
    Effort,
    Running,
    TableReply,
    data_option,
    effort_options,
    reply_options,
    running_options,
)
from truecal.cli.lab.trials import lab
from truecal.cli.source import Source, column_options, load
from truecal.writing import write_whole

if TYPE_CHECKING:
    from truecal.lab.papers import data as inputs


@lab.command()
@click.argument("name", metavar="[EXPERIMENT]", required=False)
@effort_options
@data_option
@running_options
@reply_options
@column_options
def paper(
    source: Source, name: str | None, effort: Effort, data: tuple[str, ...], running: Running, reply: TableReply
) -> None:
    """Do an experiment of a paper again, and write its table and figure; without a name, list the experiments."""
    from truecal.frame import Frame
    from truecal.lab.papers import papers as every

    if name is None:
        listed = [
            {"experiment": known, "quick": entry.quick, "full": entry.full, "data": entry.data}
            for known, entry in every.PAPERS.items()
        ]
        reply.table("lab paper", Frame.from_records(listed))
        return
    with running.run.kept() as run:
        given = _given(data, source)
        made = every.paper(name, full=effort.full, m=effort.m, data=given, rng=running.seed, run=run)
    written = [str(path) for path in made.write(effort.folder, table_format=effort.table_format)]
    text = f"{made.title}\n\n{made.table.to_text()}\n\nwritten: {', '.join(written)}"
    reply.table("lab paper", made.table, facts={"title": made.title, "written": written}, text=text)


@lab.command()
@click.option("--full/--quick", default=False, show_default=True, help="As many simulations as the papers, or few.")
@click.option(
    "--part",
    type=click.FloatRange(0, 1, min_open=True),
    default=1.0,
    help="Do this part of the simulations. [default: 1]",
)
@click.option(
    "--out",
    metavar="FILE",
    default="papers.md",
    show_default=True,
    help="The page, in Markdown; a name without .md is a folder for tables and figures too, and the page stands beside it.",
)
@data_option
@running_options
@column_options
def papers(source: Source, full: bool, part: float, out: str, data: tuple[str, ...], running: Running) -> None:
    """Do every experiment of the papers again and write one page: each numbered item, our number, the printed one, a verdict."""
    from truecal.lab.papers import page as whole

    made = whole.run_items(_given(data, source), full=full, part=part, rng=running.seed, run=running.run)
    if not out.endswith(".md"):
        for (_, file), experiment in made.items():
            experiment.write(Path(out) / file.partition("=")[0])
        out = f"{out}.md"
    effort = ("--full" if full else "--quick") + ("" if part == 1 else f" --part {part:g}")
    note(f"written: {write_whole(out, whole.page(made, effort))}")


def _given(data: tuple[str, ...], source: Source) -> "dict[str, inputs.Network]":
    """The networks of NAME=FILE pairs: .npz files with their splits, other files as one test split."""
    from truecal.lab.papers import data as inputs

    given = {}
    for pair in data:
        name, between, file = pair.partition("=")
        if not between or not file:
            raise click.UsageError(f"--data takes NAME=FILE, not {pair!r}")
        if file.endswith(".npz"):
            given[name] = inputs.read_network(file)
        else:
            given[name] = inputs.Network(inputs.Outputs(load(replace(source, file=file))))
    return given


@lab.command()
@effort_options
@running_options
@reply_options
@click.pass_context
def leaderboard(context: click.Context, /, **options: Any) -> None:
    """Rank every estimator by mean |bias|, RMSE and coverage over worlds whose true error is known."""
    plain = {key: value for part in options.values() for key, value in vars(part).items()}
    context.invoke(paper, name="leaderboard", data=(), **plain)
