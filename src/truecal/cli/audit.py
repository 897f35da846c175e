"""`truecal audit` and `truecal likert`: miscalibrated segments, and words for confidence."""

from typing import Annotated, Any

import truecal as tc
from truecal import parallel
from truecal.cli.command import Count, Fraction, Seed, Several, WriteTo, command
from truecal.cli.estimators import classes_by_word, make_lens, parse_scale
from truecal.cli.input import Files, OneFile, grouped, load
from truecal.cli.output import Answer, save_figure, working
from truecal.cli.scan import scan_files
from truecal.errors import InputError


@command()
def audit(
    source: Annotated[Files, grouped("A column to search; may be repeated.  [default: all other columns]")],
    *,
    depth: Count = 3,
    min_rows: Several | None = None,
    tolerance: Fraction | None = None,
    lens: str = "auto",
    level: Fraction = 0.95,
) -> Answer:
    """Search the predictions in FILE for segments whose scores are wrong by more than the search itself explains.

    All intersections of up to --depth columns are tested, as a whole and in regions of the scores; the chance that any calibrated
    segment is listed is at most 1 - LEVEL. A pattern, a folder or several files are scanned once, grouped by the --by columns.

    Exit 0 if no segment is beyond the tolerance, 1 if one is, 2 if the input cannot be used.

    --depth N      How many columns a segment may combine.
    --min-rows N   Smaller segments are not judged.  [default: 50, or rows / 1000]
    --tolerance E  Gate: exit 1 only if a segment is off by more than this.  [default: if any is off by more than chance]
    """
    data: Any
    options: dict[str, Any] = {}
    if source.scans:
        if not source.by:
            raise InputError("name the columns to group by while scanning: --by COLUMN, repeated")
        data = scan_files(source, lens)
    else:
        data = load(source).preds
        options = {"by": source.by or None, "lens": make_lens(lens, data)}
    with parallel.progress_bar("auditing") as progress:
        result = tc.audit(
            data, depth=depth, level=level, min_rows=min_rows, tolerance=tolerance, progress=progress, **options
        )
    return Answer("audit", {"source": source.name, **result.to_dict()}, str(result), failed=not result.passed)


@command()
def likert(
    source: OneFile,
    *,
    scale: str | None = None,
    of: str | None = None,
    figure: WriteTo | None = None,
    level: Fraction = 0.95,
    seed: Seed = 0,
) -> Answer:
    """Judge the outputs in FILE as people see them: as words of a scale.

    A word holds when, among the outputs it covers, the event happens with a frequency inside the limits of the word.

    Exit 0 if no word is shown to be wrong, 1 if the frequency of one lies outside its limits (at --level), 2 if the input cannot
    be used.

    --scale, --bands WORD=LOW:HIGH,...  Your words and their limits, e.g. 'unsure=0:0.6,sure=0.6:1'.
                                        [default: low=0:0.33,medium=0.33:0.66,high=0.66:1]
    --of CLASS                          The class whose probability is shown.  [default: the predicted one]
    --figure FILE                       Also draw it (png, svg, pdf).
    """
    from truecal.groups import answer_scales

    preds = load(source).preds
    classes = classes_by_word(preds)
    if of is not None and of not in classes:
        raise InputError(f"there is no class {of!r} for --of; the classes are {', '.join(list(classes)[:10])}")
    words = parse_scale(scale) or answer_scales.SCALE
    with working("judging words"):
        report = tc.likert(preds, words, of=None if of is None else classes[of], level=level, rng=seed)
    if figure is not None:
        save_figure(tc.plot.LikertDisplay.from_report(report).figure_, figure)
    outside = f"\n{report.outside} outputs are covered by no word" if report.outside else ""
    content = {"source": source.name, "level": level, "outside": report.outside, "categories": list(report.frame())}
    broken = any(category.kept is False for category in report.categories)
    return Answer("likert", content, f"{report}{outside}", failed=broken)
