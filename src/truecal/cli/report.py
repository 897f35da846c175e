"""`truecal report`: a page to forward."""

import shlex
import sys
from typing import TYPE_CHECKING

import click

from truecal.cli.estimators import lens_option, level_option, make_lens, seed_option
from truecal.cli.output import answer, working
from truecal.cli.scan import is_scan, scanned
from truecal.cli.source import Source, by_option, load, scan_options
from truecal.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@lens_option
@level_option
@seed_option
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.02,
    show_default=True,
    help="The error that would still be acceptable; the verdict is phrased against it.",
)
@click.option("--fast", is_flag=True, help="Leave out what takes seconds: recalibration and the simulated bias.")
@click.option("--title", default="Calibration report", show_default=True, help="Heading of the page.")
@click.option("--out", metavar="FILE", default="report.html", show_default=True, help="Where to write the page.")
@click.option("--json", "as_json", is_flag=True, help="Say what was written as one JSON document.")
@by_option
@scan_options
def report(
    source: Source,
    lens: str,
    level: float,
    seed: int,
    tolerance: float,
    fast: bool,
    title: str,
    out: str,
    as_json: bool,
) -> None:
    """Write a self-contained HTML report about the predictions in FILE.

    A pattern such as 'logs/*.parquet', a folder, several files or --engine give a report from a scan in bounded memory, which says
    how far its numbers can be from those of all rows at once.

    The page opens offline, holds sums and no rows of the data, and recomputes the binned error in the browser as you move its
    controls.
    """
    from truecal.report import document
    from truecal.report import report as write_report

    if lens == "class-wise":
        raise InputError("the report judges one quantity; use --lens top-label, positive or class=NAME")
    rows = None if is_scan(source) else load(source)
    data = scanned(source, lens) if rows is None else rows
    with working() as say:
        path: Path = write_report(
            data,
            out,
            lens=None if rows is None else make_lens(lens, rows),
            by=None if rows is None else source.by,
            tolerance=tolerance,
            level=level,
            title=title,
            source=source.name,
            command=shlex.join(["truecal", *sys.argv[1:]]),
            fast=fast,
            rng=seed,
            progress=say,
        )
    size = path.stat().st_size
    content = document("report-written", source=source.name, path=str(path), bytes=size)
    answer(content, f"wrote {path} ({size / 1e6:.1f} MB)", as_json=as_json, out=None)
