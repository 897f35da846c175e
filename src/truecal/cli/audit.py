"""`truecal audit` and `truecal likert`: miscalibrated segments, and answer scales."""

from typing import TYPE_CHECKING

import click

import truecal as tc
from truecal import parallel
from truecal.cli.estimators import classes_by_word, lens_option, level_option, make_lens, scale_of, seed_option
from truecal.cli.output import OutputFile, Result, answers, draw, working
from truecal.cli.scan import is_scan, scanned
from truecal.cli.source import Source, input_options, load, scan_options
from truecal.errors import InputError

if TYPE_CHECKING:
    from truecal.groups.segment_search import Audit


# ----------------------------------------------------------------------------------------------------
# `truecal audit`: which segments are miscalibrated, of all intersections of columns?


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
@answers(formats=("text", "json"))
@scan_options
def audit(
    source: Source,
    depth: int,
    min_rows: int | None,
    tolerance: float | None,
    lens: str,
    level: float,
) -> Result:
    """Search the predictions in FILE for segments whose scores are wrong, and judge them for the search.

    All intersections of up to --depth columns are tested, as a whole and in regions of the scores; the chance that any calibrated
    segment is listed is at most 1 - LEVEL. A pattern, a folder or several files are scanned once, grouped by the --by columns.

    Exit 0 if no segment is beyond the tolerance, 1 if one is, 2 if the input cannot be used.
    """
    result = _audited(source, depth, min_rows, tolerance, lens, level)
    return Result("audit", {"source": source.name, **result.to_dict()}, str(result), failed=not result.passed)


def _audited(
    source: Source, depth: int, min_rows: int | None, tolerance: float | None, lens: str, level: float
) -> "Audit":
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


# ----------------------------------------------------------------------------------------------------
# `truecal likert`: may these words for confidence be shown to people?


@click.command()
@click.option(
    "--scale",
    metavar="WORD=LOW:HIGH,...",
    help="Your words and their limits, e.g. 'unsure=0:0.6,sure=0.6:1'.  [default: low=0:0.33,medium=0.33:0.66,high=0.66:1]",
)
@click.option(
    "--of", "event", metavar="CLASS", help="The class whose probability is shown.  [default: the predicted one]"
)
@click.option("--figure", cls=OutputFile, help="Also draw it (png, svg, pdf).")
@level_option
@seed_option
@answers(formats=("text", "json"))
@input_options
def likert(
    source: Source,
    scale: str | None,
    event: str | None,
    figure: str | None,
    level: float,
    seed: int,
) -> Result:
    """Judge the outputs in FILE as people see them: as words of a scale.

    A word is kept when, among the outputs it covers, the event happens with a frequency inside the word's own limits.

    Exit 0 if no word is broken, 1 if one is (its frequency lies outside its limits, at --level), 2 if the input cannot be used.
    """
    from truecal.groups import answer_scales

    preds = load(source)
    classes = classes_by_word(preds)
    if event is not None and event not in classes:
        raise InputError(f"there is no class {event!r} for --of; the classes are {', '.join(list(classes)[:10])}")
    words = scale_of(scale, "--scale") or answer_scales.SCALE
    with working("judging words"):
        judged = tc.likert(preds, words, of=None if event is None else classes[event], level=level, rng=seed)
    if figure is not None:
        draw(tc.plot.LikertDisplay.from_report(judged).figure_, figure)
    outside = f"\n{judged.outside} outputs are covered by no word" if judged.outside else ""
    content = {"source": source.name, "level": level, "outside": judged.outside, "categories": list(judged.frame())}
    broken = any(category.kept is False for category in judged.categories)
    return Result("likert", content, f"{judged}{outside}", failed=broken)
