"""`truecal report`: a page to forward."""

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

import truecal as tc
from truecal.cli.estimators import lens_option, level_option, make_lens, scale_of, seed_option
from truecal.cli.output import Result, Share, as_typed, out_option, working, writes, written
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
    "--dossier", type=click.Choice(["tripod-ai"]), help="Instead write the items of a reporting guideline, to print."
)
@click.option(
    "--clinical", is_flag=True, help="Also validate as a clinical prediction model: O/E, slope, ICI, c-statistic."
)
@click.option("--title", default="Calibration report", show_default=True, help="Heading of the page.")
@click.option(
    *("--scale", "--bands", "scale"), metavar="WORD=LOW:HIGH,...", help="Words for scores, e.g. 'low=0:0.1,high=0.1:1'."
)
@out_option("Where to write the page; .pdf is printed by an installed Chromium, - is standard output.", "report.html")
@writes
@by_option
@scan_options
def report(
    source: Source,
    lens: str,
    level: float,
    seed: int,
    tolerance: float,
    fast: bool,
    clinical: bool,
    dossier: str | None,
    title: str,
    scale: str | None,
    out: str,
) -> Result | None:
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
        return written("report-written", _dossier(source, dossier, out, lens, level, seed, command), source=source.name)
    loaded = None if is_scan(source) else load_all(source)
    data = scanned(source, lens) if loaded is None else loaded.whole
    with working() as say, _target(out) as target:
        path = tc.report(
            data,
            target,
            lens=None if loaded is None else make_lens(lens, loaded.whole),
            select=None if loaded is None else loaded.select,
            by=None if loaded is None else source.by,
            tolerance=tolerance,
            level=level,
            title=title,
            source=source.name,
            command=command,
            fast=fast,
            rng=seed,
            scale=scale_of(scale, "--scale"),
            files=None if loaded is None else digests([source.file]),
            clinical=clinical,
            rows=None if loaded is None else loaded.counts,
            progress=say,
        )
        if out == "-":
            click.echo(path.read_text(encoding="utf-8"), nl=False)
            return None
    return written("report-written", path, source=source.name)


def _dossier(source: Source, kind: str, out: str, lens: str, level: float, seed: int, command: str) -> Path:
    """Write the dossier of the predictions that the user named."""
    from truecal.pages.dossier import write_dossier

    if out == "-":
        raise InputError("a dossier is written to a file; say which with --out")
    if is_scan(source):
        raise InputError("a dossier needs the rows of one file in memory; leave out --engine and further files")
    loaded = load_all(source)
    with working("writing the dossier"):
        return write_dossier(
            loaded.preds,
            out,
            kind=kind,
            rows=loaded.counts,
            lens=make_lens(lens, loaded.preds),
            by=list(source.by) or None,
            level=level,
            source=source.name,
            command=command,
            rng=seed,
        )


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
