"""The command line of the atlas: `python -m benchmarks.coverage --help`."""

import json

import click

import truecal as tc
from benchmarks.coverage import peers, tables
from benchmarks.coverage.atlas import SIZES, coverage_atlas
from benchmarks.coverage.statements import STATEMENTS
from truecal.parallel import cores
from truecal.writing import write_whole


@click.command(context_settings={"max_content_width": 100})
@click.option(
    "--full/--quick", default=False, show_default=True, help="Every statement and size, or a few and 20 datasets."
)
@click.option("--peers", "with_peers", is_flag=True, help="Other installed packages as well (few datasets, n <= 1000).")
@click.option(
    "--statement",
    "names",
    multiple=True,
    metavar="NAME",
    type=click.Choice([statement.name for statement in STATEMENTS]),
    help="Only this statement; may be repeated.",
)
@click.option("--n", "sizes", type=click.IntRange(2), multiple=True, help="Rows of a dataset; may be repeated.")
@click.option(
    "--m", type=click.IntRange(2), help="Datasets per world and n, instead of 200 or 20; slow statements: a share."
)
@click.option("--table", metavar="FILE", help="Write the tables between the marks of this document.")
@click.option("--page", metavar="FILE", help="Write the page: worlds by statements, coloured by coverage.")
@click.option("--workers", type=click.IntRange(1), help="Processes to use.  [default: all cores]")
@click.option("--cache", metavar="FOLDER", help="Keep finished cells here; a later run reads them back.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the simulations.")
@click.option("--json", "as_json", is_flag=True, help="Answer as one JSON document with a row per world.")
@click.option("--out", metavar="FILE", help="Write the answer to a file; - is standard output.")
def main(
    full: bool,
    with_peers: bool,
    names: tuple[str, ...],
    sizes: tuple[int, ...],
    m: int | None,
    table: str | None,
    page: str | None,
    workers: int | None,
    cache: str | None,
    seed: int,
    as_json: bool,
    out: str | None,
) -> None:
    """How often does each statement hold: intervals, tests and promises, in worlds whose truth is known?

    Five groups of ten worlds of one score (fitted to real networks, the same recalibrated and nearly so, others, hard ones), eight
    of many classes and eight of few outputs. The text has one line per statement and n; --json one row per world. With --cache an
    interrupted run goes on where it was.
    """
    statements = [
        statement for statement in STATEMENTS if (statement.name in names if names else full or statement.share == 1)
    ]
    m = m or (200 if full else 20)
    n = tuple(sorted(set(sizes))) or (SIZES if full else (100, 1000))
    workers = workers or cores()
    try:
        cells = coverage_atlas(n=n, m=m, statements=statements, rng=seed, run=tc.lab.Run(workers, cache))
        if with_peers:
            others, absent = peers.peer_statements()
            if absent:
                click.echo(f"not installed, left out: {', '.join(absent)}", err=True)
            if others:
                cells += coverage_atlas(n=n, m=m, statements=others, rng=seed, run=tc.lab.Run(workers))
        if table is not None:
            options = ["--full" if full else "--quick", f"--m {m}", *(f"--n {size}" for size in sizes)]
            options += [f'--statement "{name}"' for name in names]
            tables.write_into(table, cells, " ".join(["python -m benchmarks.coverage", *options]))
        if page is not None:
            tables.write_page(cells, page)
        if as_json:
            answer = json.dumps({"n": n, "m": m, "rows": list(tables.cell_table(cells))}, indent=1)
        else:
            answer = tables.summary(cells).to_text()
        if out is None or out == "-":
            click.echo(answer)
        else:
            write_whole(out, answer + "\n")
    except (tc.TruecalError, OSError) as error:
        raise click.UsageError(str(error)) from error


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.coverage")
