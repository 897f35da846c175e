"""`truecal report`: a page to forward."""

import hashlib
import tempfile
from pathlib import Path
from typing import Any, Literal

import click

import truecal as tc
from truecal.cli.command import Fraction, Seed, WriteTo, command
from truecal.cli.estimators import make_lens, parse_scale
from truecal.cli.input import GroupedFiles, load
from truecal.cli.output import Answer, command_line, page_written, parse_numbers, working
from truecal.cli.scan import scan_files
from truecal.errors import InputError


@command()
def report(
    source: GroupedFiles,
    *,
    tolerance: Fraction = 0.02,
    fast: bool = False,
    dossier: Literal["tripod-ai"] | None = None,
    clinical: bool = False,
    title: str = "Calibration report",
    scale: str | None = None,
    thresholds: str | None = None,
    out: WriteTo = "report.html",
    lens: str = "auto",
    level: Fraction = 0.95,
    seed: Seed = 0,
) -> Answer | None:
    """Write a self-contained HTML report about the predictions in FILE.

    A pattern such as 'logs/*.parquet', a folder, several files or --engine give a report from a scan in bounded memory, which says
    how far its numbers can be from those of all rows at once.

    The page opens offline, holds sums and no rows of the data, and recomputes the binned error in the browser as you move its
    controls.

    --tolerance E   The largest error that is acceptable; the verdict is about it.
    --fast          Leave out what takes seconds: recalibration and the simulated bias.
    --dossier NAME  Instead write the items of a reporting guideline, to print.
    --clinical      Also validate as a clinical prediction model: O/E, slope, ICI, c-statistic.
    --title TEXT    Heading of the page.
    --scale, --bands WORD=LOW:HIGH,...  Words for scores, e.g. 'low=0:0.1,high=0.1:1'.
    --thresholds T,...  Scores from which one acts; the verdict then says what miscalibration costs there.
    --out FILE      Where to write the page; .pdf is printed by an installed Chromium, - is standard output.
    """
    if lens == "class-wise":
        raise InputError("the report judges one quantity; use --lens top-label, positive or class=NAME")
    if dossier is not None and (source.scans or out == "-"):
        raise InputError(
            "a dossier needs one file in memory and is written to a file: one FILE, no --engine, --out FILE"
        )
    common: dict[str, Any] = {"level": level, "source": source.name, "command": command_line(), "rng": seed}
    page: dict[str, Any] = {"tolerance": tolerance, "title": title, "fast": fast, "clinical": clinical}
    page["scale"] = parse_scale(scale)
    page["thresholds"] = None if thresholds is None else parse_numbers(thresholds, "--thresholds")
    data: Any = scan_files(source, lens) if source.scans else None
    if data is None:
        loaded = load(source)
        common |= {"rows": loaded.counts, "lens": make_lens(lens, loaded.whole), "by": list(source.by) or None}
        data, page = loaded.whole, {**page, "select": loaded.select, "files": digests([source.file])}
        if dossier is not None:
            from truecal.pages.dossier import write_dossier

            with working("writing the dossier"):
                path = write_dossier(loaded.preds, out, kind=dossier, tolerance=tolerance, **common)
            return page_written("report-written", path, source=source.name)
    with working() as show, tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "report.html" if out == "-" else Path(out)
        path = tc.report(data, target, progress=show, **page, **common)
        if out == "-":
            click.echo(path.read_text(encoding="utf-8"), nl=False)
            return None
    return page_written("report-written", path, source=source.name)


def digests(files: list[str]) -> dict[str, str]:
    """Return the SHA-256 of files by their names, as sha256sum gives it; none for standard input."""
    sums = {}
    for file in filter(Path.is_file, map(Path, files)):
        with file.open("rb") as stream:
            sums[file.name] = hashlib.file_digest(stream, "sha256").hexdigest()
    return sums
