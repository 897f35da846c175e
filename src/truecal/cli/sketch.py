"""`truecal sketch`: days that are only kept as sketches: saved, merged, shown."""

from pathlib import Path
from urllib.parse import quote

import click

from truecal.cli.answer.output import answer, output_options
from truecal.cli.estimators import lens_option
from truecal.cli.scan import scanned
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
    click.echo(f"wrote {many}: {scan.rows} rows, {scan.judged}")


@sketch.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--out", metavar="FILE", required=True, help="The sketch to write.")
def merge(files: tuple[str, ...], out: str) -> None:
    """Add the sketches in FILE... up into one; they must judge the same scores."""
    import truecal as tc

    total = tc.Sketch()
    for file in files:
        total.merge(tc.Sketch.load(file))
    total.save(out)
    click.echo(f"wrote {out}: {total.rows} rows of {len(files)} sketches in {total.cells} cells")


@sketch.command()
@click.argument("file", metavar="FILE")
@output_options
def show(file: str, as_json: bool, out: str | None) -> None:
    """Say what a sketch holds: rows, cells, and the calibration error with its interval."""
    import truecal as tc
    from truecal.report import records

    held = tc.Sketch.load(file)
    estimate = tc.measure(held)
    assert estimate.interval is not None
    content = records.document(
        "sketch",
        source=Path(file).name,
        rows=held.rows,
        cells=held.cells,
        value=float(estimate.value),
        low=float(estimate.interval.low),
        high=float(estimate.interval.high),
        level=estimate.interval.level,
        sketch_error=estimate.sketch_error,
    )
    answer(content, f"{held.rows} rows in {held.cells} cells\n{estimate}", as_json=as_json, out=out)
