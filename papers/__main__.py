"""`python -m papers list | run NAME | page`: the experiments of the papers on the command line.

Exit codes: 0 done, 2 the input or the options cannot be used.
"""

import json
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

import truecal as tc
from papers.catalogue import OTHERS, PAPERS, TITLES, paper, results_of, run_items
from papers.experiment import Network, Outputs, load_estimator, load_world, read_network
from papers.page import FOLDER, write_results
from papers.page import page as page_text

Command = Callable[..., Any]


def _with(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


_running_options = _with(
    click.option("--full/--quick", default=False, show_default=True, help="As many simulations as the paper, or few."),
    click.option("--workers", type=click.IntRange(1), help="Processes to use. [default: all cores]"),
    click.option("--cache", metavar="FOLDER", help="Keep finished simulations here; a later run takes them up."),
    click.option("--seed", type=click.IntRange(0), default=0, show_default=True),
)
_data_options = _with(
    click.option(
        "--data",
        multiple=True,
        metavar="NAME=FILE",
        help="Outputs of a network (.npz with logits or probs, or any file that truecal reads); may be repeated.",
    ),
    click.option("--label", metavar="COLUMN", help="Column of true labels, in files other than .npz."),
    click.option("--score", metavar="COLUMN", help="Column of P(positive), for two classes."),
    click.option("--probs", metavar="COLUMNS", help="Class probabilities, e.g. 'p_*'."),
    click.option("--logits", metavar="COLUMNS", help="The same as logits, e.g. 'z_*'."),
    click.option("--class-names", metavar="A,B,...", help="Class names in column order."),
)
_reply_options = _with(
    click.option("--json", "as_json", is_flag=True, help="Answer as one JSON document."),
    click.option("--out", metavar="FILE", help="Write the answer to a file."),
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def papers() -> None:
    """Experiments of papers about calibration errors, done again.

    \b
    python -m papers list                       all experiments
    python -m papers run roelofs-fig4 --quick   the table and the figure of one
    python -m papers page --out build/papers    all of them, and a page of every numbered item
    """


@papers.command("list")
@_reply_options
def list_experiments(as_json: bool, out: str | None) -> None:
    """List the experiments: simulated datasets or resamples in a quick and a full run, and the data they take."""
    rows = [
        {"experiment": name, "quick": entry.quick, "full": entry.full, "data": entry.data}
        for name, entry in PAPERS.items()
    ]
    _answer(tc.lab.Frame.from_records(rows).to_text(), {"rows": rows}, as_json, out)


@papers.command()
@click.argument("name", metavar="EXPERIMENT")
@click.option("--m", type=click.IntRange(1), help="This many simulated datasets or resamples instead.")
@click.option("--folder", default=".", show_default=True, metavar="FOLDER", help="Where the table and figure go.")
@click.option(
    "--world",
    multiple=True,
    metavar="NAME=MODULE:NAME",
    help="A tc.lab.World of one's own in place of the printed ones, or a function that returns one; may be repeated.",
)
@click.option(
    "--estimator",
    multiple=True,
    metavar="NAME=MODULE:NAME",
    help="An estimator beside the paper's: one of truecal's, or a function of (scores, outcomes); may be repeated.",
)
@click.option("--format", "table_format", type=click.Choice(["csv", "parquet"]), default="csv", show_default=True)
@click.option("--figure", "figure_format", type=click.Choice(["png", "pdf", "svg"]), default="png", show_default=True)
@_running_options
@_data_options
@_reply_options
def run(
    name: str,
    m: int | None,
    folder: str,
    world: tuple[str, ...],
    estimator: tuple[str, ...],
    table_format: str,
    figure_format: str,
    full: bool,
    workers: int | None,
    cache: str | None,
    seed: int,
    data: tuple[str, ...],
    as_json: bool,
    out: str | None,
    **columns: str | None,
) -> None:
    """Do one experiment again, and write its table and figure."""
    sys.path.insert(0, os.getcwd())  # modules of one's own
    additions = {
        "worlds": {key: load_world(words) for key, words in _pairs(world, "--world")},
        "estimators": {key: load_estimator(words) for key, words in _pairs(estimator, "--estimator")},
    }
    with _run(workers, cache).with_pool() as pooled:
        experiment = paper(name, full=full, m=m, data=_networks(data, columns), rng=seed, run=pooled, **additions)  # type: ignore[arg-type]
    written = [str(path) for path in experiment.write(folder, table_format=table_format, figure_format=figure_format)]
    rows = [{key: None if value != value else value for key, value in row.items()} for row in experiment.table]
    text = f"{experiment.title}\n\n{experiment.table.to_text()}\n\nwritten: {', '.join(written)}"
    _answer(text, {"experiment": name, "title": experiment.title, "written": written, "rows": rows}, as_json, out)


@papers.command()
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
@click.option("--only", default="", metavar="START", help="Do only experiments whose name starts so.")
@click.option("--record", is_flag=True, help="Also write papers/results, the numbers behind the committed page.")
@_running_options
@_data_options
def page(
    part: float,
    out: str,
    only: str,
    record: bool,
    full: bool,
    workers: int | None,
    cache: str | None,
    seed: int,
    data: tuple[str, ...],
    **columns: str | None,
) -> None:
    """Do every experiment again and write one page: each numbered item, our number, the printed one, a verdict."""
    experiments = run_items(
        _networks(data, columns), full=full, part=part, only=only, rng=seed, run=_run(workers, cache)
    )
    results = results_of(experiments)
    if not out.endswith(".md"):
        for (_, network), experiment in experiments.items():
            experiment.write(Path(out) / network)
        out = f"{out}.md"
    for name in TITLES if record else ():
        write_results(name, results[name], FOLDER / "results")
    effort = ("--full" if full else "--quick") + ("" if part == 1 else f" --part {part:g}")
    target = Path(out)
    target.parent.mkdir(parents=True, exist_ok=True)
    titled = {TITLES[name]: paper_results for name, paper_results in results.items()}
    target.write_text(page_text(titled, experiments, effort, OTHERS), encoding="utf-8")
    click.echo(f"written: {target}")


def _run(workers: int | None, cache: str | None) -> tc.lab.Run:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return tc.lab.Run(workers or cores, cache)


def _networks(data: tuple[str, ...], columns: dict[str, str | None]) -> dict[str, Network]:
    """The networks of NAME=FILE pairs: .npz files with their splits, other files as one test split."""
    networks = {}
    for name, file in _pairs(data, "--data"):
        networks[name] = read_network(file) if file.endswith(".npz") else Network(Outputs(_read(file, columns)))
    return networks


def _pairs(words: tuple[str, ...], option: str) -> list[tuple[str, str]]:
    """Names and values of NAME=VALUE pairs."""
    pairs = []
    for pair in words:
        name, between, value = pair.partition("=")
        if not between or not value:
            kind = "NAME=FILE" if option == "--data" else "NAME=MODULE:NAME"
            raise click.UsageError(f"{option} takes {kind}, not {pair!r}")
        pairs.append((name, value))
    return pairs


def _read(file: str, columns: dict[str, str | None]) -> tc.Predictions:
    names = columns["class_names"]
    return tc.read(
        file,
        label=columns["label"],
        score=columns["score"],
        probs=columns["probs"],
        logits=columns["logits"],
        classes=None if names is None else [name.strip() for name in names.split(",")],
    )


def _answer(text: str, content: dict[str, Any], as_json: bool, out: str | None) -> None:
    answer = json.dumps(content, indent=2, default=_plain) if as_json else text
    if out is None or out == "-":
        click.echo(answer)
    else:
        Path(out).write_text(answer + "\n", encoding="utf-8")


def _plain(value: Any) -> Any:
    """A numpy number as a number."""
    return value.item()


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: click.echo(f"papers: warning: {message}", err=True)
        try:
            papers.main(args=arguments, prog_name="python -m papers", standalone_mode=False)
        except click.ClickException as error:
            error.show()
            return 2
        except click.exceptions.Exit as stop:
            return stop.exit_code
        except click.Abort:
            return 130
        except tc.TruecalError as error:
            click.echo(f"papers: {error}", err=True)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
