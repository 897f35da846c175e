"""`truecal audit`: which segments are miscalibrated, of all intersections of columns?"""

from typing import TYPE_CHECKING

import click

import truecal as tc
from truecal import parallel
from truecal.cli.answer.output import Reply, reply_options
from truecal.cli.estimators import lens_option, level_option, make_lens
from truecal.cli.scan import is_scan, scanned
from truecal.cli.source import Source, load, scan_options
from truecal.errors import InputError

if TYPE_CHECKING:
    from truecal import breakdown


@click.command()
@click.option(
    "--by", metavar="COLUMN", multiple=True, help="A column to search; repeat it. Default: all other columns."
)
@click.option(
    "--depth", type=click.IntRange(1), default=3, show_default=True, help="How many columns a segment may combine."
)
@click.option("--min-rows", type=click.IntRange(2), help="Smaller segments are not judged.  [50, or rows / 1000]")
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Gate: exit 1 only if a segment is off by more than this. Without it, if any is off by more than chance.",
)
@lens_option
@level_option
@reply_options
@scan_options
def audit(
    source: Source,
    depth: int,
    min_rows: int | None,
    tolerance: float | None,
    lens: str,
    level: float,
    reply: Reply,
) -> int:
    """Search the predictions in FILE for segments whose scores are wrong, and judge them for the search.

    All intersections of up to --depth columns are tested, as a whole and in regions of the scores; the chance that any calibrated
    segment is listed is at most 1 - LEVEL. A pattern, a folder or several files are scanned once, grouped by the --by columns.

    Exit 0 if no segment is beyond the tolerance, 1 if one is, 2 if the input cannot be used.
    """
    result = _audited(source, depth, min_rows, tolerance, lens, level)
    reply.give("audit", str(result), source=source.name, **result.to_dict())
    return 0 if result.passed else 1


def _audited(
    source: Source, depth: int, min_rows: int | None, tolerance: float | None, lens: str, level: float
) -> "breakdown.Audit":
    if is_scan(source):
        if not source.by:
            raise InputError("say which columns to group by while scanning: --by COLUMN, repeated")
        scan = scanned(source, lens)
        with parallel.progress_bar("auditing") as progress:
            return tc.audit(scan, depth=depth, level=level, min_rows=min_rows, tolerance=tolerance, progress=progress)
    preds = load(source)
    with parallel.progress_bar("auditing") as progress:
        return tc.audit(
            preds,
            by=source.by or None,
            depth=depth,
            lens=make_lens(lens, preds),
            level=level,
            min_rows=min_rows,
            tolerance=tolerance,
            progress=progress,
        )
