"""The tables of results: by estimator, by class, by group."""

from collections.abc import Callable
from itertools import count
from math import isfinite
from typing import TypeVar

from truecal import names
from truecal.report.html import chart, element, escaped, paragraph
from truecal.report.model.bias import BiasRecord
from truecal.report.model.breakdown import GroupRow
from truecal.report.model.content import Content
from truecal.report.model.forest import forest_figure
from truecal.report.model.methods import ESTIMATOR_WORDS, NORM_WORDS
from truecal.report.model.recalibration import RecalibrationRecord
from truecal.report.model.segments import ClinicalRecord, SegmentsRecord, small_diagram
from truecal.report.records import Absent
from truecal.report.table import Cell, number, p_cell, span, table, table_of

_PAGE = 20  # rows of a long table shown at first
Part = TypeVar("Part")


def part_table(part: Part | Absent | None, draw: Callable[[Part, Content], str], content: Content) -> str:
    """A part of the page as `draw` shows it, or why it is not there; nothing where it was not asked for."""
    if part is None:
        return ""
    return paragraph(part.absent) if isinstance(part, Absent) else draw(part, content)


def estimator_table(content: Content) -> str:
    """Every estimator on the same data."""
    rows = []
    for record in content.estimates:
        name = names.ESTIMATORS[names.word_of(record.estimator.name, names.ESTIMATORS)].title
        does, reference = ESTIMATOR_WORDS[record.estimator.name]
        options = record.estimator.options
        scheme = (
            {"width": ", equal width", "mass": ", equal mass"}.get(str(options.get("scheme")), "")
            if "Binned" in name
            else ""
        )
        interval = record.interval
        bins = None if record.bins is None else len(record.bins)
        rows.append(
            [
                Cell(name + scheme),
                Cell(NORM_WORDS.get(record.norm, record.norm)),
                Cell(f"{record.value:.4f}", record.value),
                Cell("", -1.0)
                if interval is None
                else Cell(f"{interval.low:.4f} to {interval.high:.4f}", float(interval.high)),
                Cell("" if bins is None else bins, float(bins or 0)),
                *([] if record.sketch_error is None else [Cell(f"{record.sketch_error:.1g}", record.sketch_error)]),
                Cell(does + ("" if reference is None else f" [{reference}]")),
            ]
        )
    intro = paragraph(
        "Estimators disagree because each has its own bias, above all at small errors and small n. Quote one together with its "
        "name; the first row is the recommended one.",
    )
    header = ["Estimator", "Average", "Error", f"{content.level:.0%} interval", "Bins", "What it does"]
    if content.sketch:
        header.insert(-1, "Sketch error")
    return intro + table("Estimates of the calibration error", header, rows, id_="estimator-table")


def class_table(content: Content) -> str:
    """One row per class; nothing for two classes, where the positive one says it all."""
    if content.classes is None:
        return ""
    left_out = content.classes.left_out
    intro = paragraph(
        "Each class's probability against how often that class was the label. The error is the rank-series estimate, root mean "
        "square, as `truecal measure --lens class=NAME` gives it. Largest errors first."
        + (f" The {left_out:,} classes with smaller errors are not listed." if left_out else "")
    )
    interval = f"{content.level:.0%} interval"
    listed = table_of(
        "Calibration of every class",
        [
            ("Class", lambda row: _named(row.name)),
            ("Labels", lambda row: number(row.labels, ",.10g")),
            ("Frequency", lambda row: number(row.rate)),
            ("Mean probability", lambda row: number(row.mean)),
            ("Difference", lambda row: number(row.difference, "+.4f")),
            (interval, lambda row: span(row.low, row.high, "+.4f")),
            ("Error", lambda row: number(row.error)),
            (
                f"{interval} of the error",
                lambda row: Cell(f"{row.error_low:.4f} to {row.error_high:.4f}", row.error_high),
            ),
        ],
        content.classes.rows,
        page=_PAGE,
        id_="class-table",
    )
    return intro + listed


def _named(name: str, sort: float | None = None, *, indent: int = 0) -> Cell:
    """A name, whole in its tooltip where it is long."""
    return Cell(name, sort, title=name if len(name) > 60 else "", indent=indent)


def group_table(content: Content) -> str:
    """One row per group, where groups were asked for."""
    if content.groups is None:
        return ""
    groups, tolerance = content.groups, content.tolerance
    left_out = groups.left_out
    intro = paragraph(
        f"One row per value of {groups.by!r}, rank-series estimate, largest error first. Many tests find something by "
        "chance, so p-values are adjusted for all groups together, a finding rests on the adjusted one, and the interval of a "
        f"group without a finding starts at 0; a group is outside the tolerance of {100 * tolerance:g} points only if its whole "
        "interval is." + (f" {left_out:,} groups with smaller errors are not listed." if left_out else "")
    )
    listed = table_of(
        "Calibration of every group",
        [
            (groups.by, lambda row: _named(row.group)),
            ("Predictions", lambda row: number(row.n, ",")),
            ("Error", lambda row: number(row.error)),
            (f"{content.level:.0%} interval", lambda row: span(row.low, row.high, otherwise="too few rows")),
            ("Direction", lambda row: number(row.direction, "+.4f")),
            ("p-value", lambda row: p_cell(row.p_value)),
            ("Adjusted", lambda row: p_cell(row.adjusted)),
            ("Finding", lambda row: Cell(_finding(row, tolerance))),
        ],
        groups.rows,
        page=_PAGE,
        id_="group-table",
    )
    return intro + listed


def _finding(row: GroupRow, tolerance: float) -> str:
    """What is shown of a group: whether it is off, and whether by more than the tolerance."""
    if not row.flagged or row.low is None or row.high is None:
        return ""
    if row.low > tolerance:
        return "outside tolerance"
    return "off, but within tolerance" if row.high <= tolerance else "off, size uncertain"


def segment_table(record: SegmentsRecord, content: Content) -> str:
    """The segments that an audit listed, below those that contain them, each with a small diagram."""
    too_much = "too confident" if content.top_label else "too high"
    words = (
        f"All intersections of the columns were searched, in all regions of the scores: {record.summary}. The chance that any "
        f"calibrated segment is listed is at most {1 - content.level:.0%}, and the limits hold for all segments at once. One row "
        "per cause; a segment inside another stands below it. The difference is score minus outcome: positive is "
        f"{too_much}; of low against high scores it is half of what both ends differ by, positive where scores are too extreme. "
        "What it adds is its part of the difference of all rows."
    )
    place = count()
    listed = table_of(
        "Miscalibrated segments",
        [
            ("Segment", lambda row: _named(row.name, float(next(place)), indent=row.depth)),
            ("Diagram", lambda row: Cell("", picture=small_diagram(row.curve))),
            ("Rows", lambda row: number(row.rows, ",")),
            ("Difference", lambda row: number(row.difference, "+.3f")),
            ("Limits", lambda row: span(row.low, row.high, "+.3f")),
            ("p-value", lambda row: p_cell(row.p_value)),
            ("Scores", lambda row: Cell(row.region)),
            ("Adds", lambda row: number(row.contribution, "+.4f")),
            (f"Beyond {content.tolerance:g}", lambda row: Cell("yes" if row.beyond else "not sure")),
        ],
        record.rows,
        page=_PAGE,
        id_="segment-table",
    )
    return paragraph(words) + (listed if record.rows else "") + "".join(paragraph(note) for note in record.notes)


def clinical_table(record: ClinicalRecord, content: Content) -> str:
    """The numbers of a clinical validation."""
    notes = "".join(element("li", escaped(note)) for note in record.warnings)
    pictures = [forest_figure(forest, content.level) for forest in record.forests]
    listed = table_of(
        "Clinical validation",
        [
            ("Number", lambda row: Cell(row.title)),
            ("Value", lambda row: number(row.value, ".3f")),
            (f"{content.level:.0%} interval", lambda row: span(row.low, row.high, ".3f")),
            ("If calibrated", lambda row: number(row.calibrated, "g")),
            ("How to read it", lambda row: Cell(row.reading)),
        ],
        record.rows,
        id_="clinical-table",
    )
    return (
        paragraph(f"What TRIPOD+AI asks of a validation, by tc.clinical: {record.counts}.")
        + listed
        + (element("ul", notes, class_="warnings") if notes else "")
        + (paragraph(record.apart) if record.apart else "")
        + (element("div", *pictures, class_="charts") if pictures else "")
    )


def likert_table(content: Content) -> str:
    """What people would be told, and whether it was kept."""
    if content.likert is None:
        return ""
    words = {True: "yes", False: "no", None: "not sure"}
    intro = paragraph(
        "If confidences were shown as words, would each word keep what it promises: outcomes within its own limits?"
    )
    listed = table_of(
        "Confidence in words",
        [
            ("Word", lambda row: Cell(row.name)),
            ("Confidence", lambda row: span(row.low, row.high, "g")),
            ("Predictions", lambda row: number(row.count, ",")),
            ("Mean confidence", lambda row: number(row.mean_output)),
            ("Outcome rate", lambda row: number(row.mean_outcome)),
            (f"{content.level:.0%} interval", lambda row: span(row.outcome_low, row.outcome_high)),
            ("Kept", lambda row: Cell(words[row.kept] if row.count else "")),
        ],
        content.likert,
        id_="likert-table",
    )
    return intro + listed


def recalibration_table(record: RecalibrationRecord, content: Content) -> str:
    """Recalibrators on held-out folds."""
    others = [name for name in record.tied if name != record.winner]
    close = f"; {', '.join(others)}: not significantly worse" if others else ""
    part = "" if record.sampled is None else f" A sample of {record.sampled:,} rows was used."
    best = f" Lowest log loss: {record.winner}{close}."
    if not any(isfinite(row.log_loss) for row in record.rows):
        best = (
            " Every log loss is infinite: a row had probability 0 for what happened, and no method here can raise it."
        )
    intro = paragraph(
        f"Each method was fitted on {record.folds - 1} of {record.folds} parts of the rows and judged on the other, in "
        f"turn.{best}{part}"
    )
    if record.recommended:
        intro += paragraph(f"Recommended: {record.recommended}.")
    intro += "".join(paragraph(f"{words}.") for words in record.refused)
    listed = table_of(
        "Recalibration on held-out folds",
        [
            ("Method", lambda row: Cell(row.recalibrator)),
            ("Error", lambda row: number(row.error)),
            (f"{content.level:.0%} interval", lambda row: span(row.error_low, row.error_high)),
            ("Log loss", lambda row: number(row.log_loss)),
            ("Brier score", lambda row: number(row.brier)),
            ("Accuracy", lambda row: number(row.accuracy)),
        ],
        record.rows,
        id_="recalibration-table",
    )
    caption = "Curves before and after, on rows the method was not fitted on. On the dashed line confidence is right."
    return intro + listed + (chart("remedies", caption) if record.curves else "")


def bias_table(record: BiasRecord, content: Content) -> str:
    """Bias of the estimators in a world fitted to the data."""
    unlike = (
        " The simulated data differ from yours more than chance allows: read this table with care."
        if record.unlike
        else ""
    )
    intro = paragraph(
        f"A world whose true error is known ({record.truth:.4f}, root mean square) was fitted to these data, and "
        f"{record.datasets} datasets of {record.n:,} rows were drawn from it. This is how far each "
        f"estimator is from that truth.{unlike}"
    )
    listed = table_of(
        "Bias of the estimators",
        [
            ("Estimator", lambda row: Cell(row.name)),
            ("Mean estimate", lambda row: number(row.mean)),
            ("Bias", lambda row: number(row.bias, "+.4f")),
            ("Spread", lambda row: number(row.std)),
            ("Root-mean-square miss", lambda row: number(row.rmse)),
        ],
        record.rows,
        id_="bias-table",
    )
    return intro + listed
