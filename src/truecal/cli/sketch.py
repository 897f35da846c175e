"""`truecal sketch`: days that are only kept as sketches: saved, merged, shown."""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import click

import truecal as tc
from truecal.cli.answer.output import Reply, note, reply_options
from truecal.cli.estimators import lens_option
from truecal.cli.scan import scanned, sketch_files
from truecal.cli.source import Source, by_option, scan_options
from truecal.errors import InputError


@click.group()
def sketch() -> None:
    """Sums of scores and outcomes in fixed cells: a day of any size in one small file, which adds to others.

    \b
    truecal sketch save logs/2026-05-01/*.parquet --out 2026-05-01.npz
    truecal sketch merge 2026-05-*.npz --out 2026-05.npz
    truecal sketch show 2026-05.npz
    """


@sketch.command()
@lens_option
@by_option
@click.option(
    "--out", metavar="FILE", required=True, help="The sketch to write; with --by a folder, one file per group."
)
@scan_options
def save(source: Source, lens: str, out: str) -> None:
    """Write the sketch of the predictions in FILE, read in one pass and in bounded memory.

    With --by, OUT becomes a folder with one sketch per group, OUT/model=a/sketch.npz, which `truecal watch update` reads.
    """
    scan = scanned(source, lens)
    if scan.shares is not None:
        raise InputError("a class-wise scan has one sketch per class; save one class at a time with --lens class=NAME")
    written = []
    for group, (held,) in scan.sketches.items():
        parts = [f"{name}={quote(str(value), safe='')}" for name, value in zip(scan.by, group, strict=True)]
        path = Path(out, *parts, "sketch.npz") if scan.by else Path(out)
        path.parent.mkdir(parents=True, exist_ok=True)
        held.save(path)
        written.append(path)
    many = f"{len(written)} groups below {out}" if scan.by else str(written[0])
    note(f"wrote {many}: {scan.rows} rows, {scan.judged}")


@sketch.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--out", metavar="FILE", required=True, help="The sketch to write.")
def merge(files: tuple[str, ...], out: str) -> None:
    """Add the sketches in FILE... up into one; they must judge the same scores. A folder stands for all sketches below it."""
    total, many = _added(files)
    total.save(out)
    note(f"wrote {out}: {total.rows} rows of {many} sketches in {total.cells} cells")


@sketch.command()
@click.argument("file", metavar="FILE")
@reply_options
def show(file: str, reply: Reply) -> None:
    """Say what a sketch, or all sketches below a folder, hold: rows, cells, and the calibration error with its interval."""
    held, _ = _added([file])
    estimate = tc.measure(held)
    assert estimate.interval is not None
    reply.give(
        "sketch",
        f"{held.rows} rows in {held.cells} cells\n{estimate}",
        source=Path(file).name,
        rows=held.rows,
        cells=held.cells,
        value=float(estimate.value),
        low=float(estimate.interval.low),
        high=float(estimate.interval.high),
        level=estimate.interval.level,
        sketch_error=estimate.sketch_error,
    )


def _added(names: Sequence[str]) -> "tuple[tc.Sketch, int]":
    """The sum of the sketches behind files and folders, and how many they are."""
    files = [file for name in names for file in sketch_files(name) or [name]]
    total = tc.Sketch()
    for file in files:
        total.merge(tc.Sketch.load(file))
    return total, len(files)
