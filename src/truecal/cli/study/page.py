"""`truecal study page` and `truecal study example`: a store to look at, and a real study to start from."""

from pathlib import Path

import click

import truecal as tc
from truecal import parallel
from truecal.cli.answer.output import JsonReply, as_typed, note, working, written_option


@click.command()
@click.argument("store", metavar="STORE")
@click.option("--title", help="Heading of the page. [default: the name of the study]")
@click.option(
    "--megabytes",
    type=click.FloatRange(1.0),
    default=3.0,
    show_default=True,
    help="How large the page may be; what does not fit is left out, the least asked for first.",
)
@click.option("--out", metavar="FILE", default="study.html", show_default=True, help="Where to write the page.")
@written_option
def page(store: str, title: str | None, megabytes: float, out: str, reply: JsonReply) -> None:
    """Write a self-contained HTML page that explores the results in STORE.

    Calibration against error with the Pareto front, for every metric, dataset, severity and recalibrator; a reliability diagram of
    every model; the analyses of the study; and whether the ranking is supported by the intervals. The page opens offline.
    """
    with working("gathering the numbers"):
        path = tc.report_study(store, out, title=title, megabytes=megabytes, command=as_typed())
    size = path.stat().st_size
    words = f"wrote {path} ({size / 1e6:.1f} MB)"
    reply.give("study-page-written", words, store=store, path=str(path), bytes=size)


@click.command()
@click.argument("folder", metavar="FOLDER")
@click.option(
    "--quick", is_flag=True, help="Five models, two datasets, two severities, one seed: seconds, not minutes."
)
@click.option("--workers", type=click.IntRange(1), default=2, show_default=True, help="Processes.")
def example(folder: str, quick: bool, workers: int) -> None:
    """Train real models on data under shift, write their predictions and a study of them to FOLDER, run it, and write its page.

    Stop it at any moment and start it again: what is there is not made again.
    """
    root = Path(folder)
    with parallel.progress_bar("training") as progress:
        file = tc.study.make_example(root, quick=quick, workers=workers, progress=progress)
    with working("looking at the files"):
        study = tc.study.Study.read(file)
    with parallel.progress_bar("evaluating") as progress:
        store = study.run(root / "store", workers=workers, progress=progress)
    with working("writing the page"):
        path = tc.report_study(store, root / "page.html", command=as_typed())
    note(
        f"{len(study.models)} models, {len(study)} prediction files, {store.frame().height:,} numbers in {store.folder}"
    )
    note(f"study: {file}\npage:  {path.resolve()}")
