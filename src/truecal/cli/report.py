"""`truecal report`: a page to forward."""

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

import truecal as tc
from truecal.cli.clinical import make_dossier
from truecal.cli.estimators import lens_option, level_option, make_lens, scale_of, seed_option
from truecal.cli.output import JsonReply, OutputFile, Share, as_typed, working, written_option
from truecal.cli.scan import is_scan, scanned
from truecal.cli.source import Source, by_option, load_all, scan_options
from truecal.errors import InputError


@click.command()
@lens_option
@level_option
@seed_option
@click.option(
    "--tolerance",
    type=Share(0, 1, min_open=True, max_open=True),
    default=0.02,
    show_default=True,
    help="The error that would still be acceptable; the verdict is phrased against it.",
)
@click.option("--fast", is_flag=True, help="Leave out what takes seconds: recalibration and the simulated bias.")
@click.option(
    "--dossier",
    type=click.Choice(["tripod-ai"]),
    help="Instead write a dossier that prints: the items of a reporting guideline on calibration, with the numbers.",
)
@click.option("--title", default="Calibration report", show_default=True, help="Heading of the page.")
@click.option("--bands", metavar="WORD=LOW:HIGH,...", help="Words for confidence, e.g. 'low=0:0.1,high=0.1:1'.")
@click.option(
    "--out",
    cls=OutputFile,
    metavar="FILE",
    type=click.Path(),
    default="report.html",
    show_default=True,
    help="Where to write the page; .pdf is printed by an installed Chromium, - is standard output.",
)
@written_option
@by_option
@scan_options
def report(
    source: Source,
    lens: str,
    level: float,
    seed: int,
    tolerance: float,
    fast: bool,
    dossier: str | None,
    title: str,
    bands: str | None,
    out: str,
    reply: JsonReply,
) -> None:
    """Write a self-contained HTML report about the predictions in FILE.

    A pattern such as 'logs/*.parquet', a folder, several files or --engine give a report from a scan in bounded memory, which says
    how far its numbers can be from those of all rows at once.

    The page opens offline, holds sums and no rows of the data, and recomputes the binned error in the browser as you move its
    controls.
    """
    if lens == "class-wise":
        raise InputError("the report judges one quantity; use --lens top-label, positive or class=NAME")
    command = as_typed()
    if dossier is not None:
        if out == "-":
            raise InputError("a dossier is written to a file; say which with --out")
        path: Path = make_dossier(source, dossier, out, lens, level, seed, command)
    else:
        loaded = None if is_scan(source) else load_all(source)
        rows = None if loaded is None else loaded.whole
        data = scanned(source, lens) if rows is None else rows
        with working() as say, _target(out) as target:
            path = tc.report(
                data,
                target,
                lens=None if rows is None else make_lens(lens, rows),
                select=None if loaded is None else loaded.select,
                by=None if rows is None else source.by,
                tolerance=tolerance,
                level=level,
                title=title,
                source=source.name,
                command=command,
                fast=fast,
                rng=seed,
                scale=scale_of(bands, "--bands"),
                files=None if rows is None else digests([source.file]),
                progress=say,
            )
            if out == "-":
                click.echo(path.read_text(encoding="utf-8"), nl=False)
                return
    size = path.stat().st_size
    words = f"wrote {path} ({size / 1e6:.1f} MB)"
    reply.give("report-written", words, source=source.name, path=str(path), bytes=size)


@contextmanager
def _target(out: str) -> Iterator[Path]:
    """Where the page is written: the file, or for standard output one that is printed and gone."""
    if out != "-":
        yield Path(out)
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "report.html"


def digests(files: Sequence[str]) -> dict[str, str]:
    """SHA-256 of the files by their names, as sha256sum gives it; none for standard input."""
    models = {}
    for file in files:
        if Path(file).is_file():
            with Path(file).open("rb") as opened:
                models[Path(file).name] = hashlib.file_digest(opened, "sha256").hexdigest()
    return models
