"""The tables of results: by estimator, by class, by group."""

from math import isfinite

from truecal import names
from truecal.report.html import Cell, element, escaped, table
from truecal.report.model.breakdown import GroupRow
from truecal.report.model.content import Content
from truecal.report.model.forest import forest_figure
from truecal.report.model.methods import ESTIMATOR_WORDS, NORM_WORDS
from truecal.report.model.segments import small_diagram
from truecal.report.records import Absent

_PAGE = 20  # rows of a long table shown at first


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
                Cell(
                    "" if interval is None else f"{interval.low:.4f} to {interval.high:.4f}",
                    _sorted(None if interval is None else interval.high),
                ),
                Cell("" if bins is None else bins, float(bins or 0)),
                *([] if record.sketch_error is None else [Cell(f"{record.sketch_error:.1g}", record.sketch_error)]),
                Cell(does + ("" if reference is None else f" [{reference}]")),
            ]
        )
    intro = element(
        "p",
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
    rows = [
        [
            Cell(row.name, title=row.name if len(row.name) > 60 else ""),
            Cell(f"{row.labels:,.10g}", row.labels),
            Cell(f"{row.rate:.4f}", row.rate),
            Cell(f"{row.mean:.4f}", row.mean),
            Cell(f"{row.difference:+.4f}", row.difference),
            Cell(f"{row.low:+.4f} to {row.high:+.4f}", row.low),
            Cell(f"{row.error:.4f}", row.error),
            Cell(_span(row.error_low, row.error_high), row.error_high),
        ]
        for row in content.classes.rows
    ]
    left_out = content.classes.left_out
    intro = element(
        "p",
        escaped(
            "Each class's probability against how often that class was the label. The error is the rank-series estimate, root mean "
            "square, as `truecal measure --lens class=NAME` gives it. Largest errors first."
            + (f" The {left_out:,} classes with smaller errors are not listed." if left_out else "")
        ),
    )
    header = [
        "Class",
        "Labels",
        "Frequency",
        "Mean probability",
        "Difference",
        f"{content.level:.0%} interval",
        "Error",
        f"{content.level:.0%} interval of the error",
    ]
    return intro + table("Calibration of every class", header, rows, page=_PAGE, id_="class-table")


def group_table(content: Content) -> str:
    """One row per group, where groups were asked for."""
    if content.groups is None:
        return ""
    groups = content.groups
    rows = [
        [
            Cell(row.group, title=row.group if len(row.group) > 60 else ""),
            Cell(f"{row.n:,}", float(row.n)),
            Cell(_number(row.error), _sorted(row.error)),
            Cell(_span(row.low, row.high) or "too few rows", _sorted(row.low)),
            Cell("" if row.direction is None else f"{row.direction:+.4f}", _sorted(row.direction)),
            Cell(_p(row.p_value), _sorted(row.p_value)),
            Cell(_p(row.adjusted), _sorted(row.adjusted)),
            Cell(_finding(row, content.tolerance)),
        ]
        for row in groups.rows
    ]
    left_out = groups.left_out
    intro = element(
        "p",
        escaped(
            f"One row per value of {groups.by!r}, rank-series estimate, largest error first. Many tests find something by "
            "chance, so p-values are adjusted for their number (Holm), and a finding rests on the adjusted one; a group is outside "
            f"the tolerance of {100 * content.tolerance:g} points only if its whole interval is."
            + (f" {left_out:,} groups with smaller errors are not listed." if left_out else "")
        ),
    )
    header = [
        groups.by,
        "Predictions",
        "Error",
        f"{content.level:.0%} interval",
        "Direction",
        "p-value",
        "Adjusted",
        "Finding",
    ]
    return intro + table("Calibration of every group", header, rows, page=_PAGE, id_="group-table")


def _finding(row: GroupRow, tolerance: float) -> str:
    """What is shown of a group: whether it is off, and whether by more than the tolerance."""
    if not row.flagged or row.low is None or row.high is None:
        return ""
    if row.low > tolerance:
        return "outside tolerance"
    return "off, but within tolerance" if row.high <= tolerance else "off, size uncertain"


def segment_table(content: Content) -> str:
    """The segments that an audit listed, below those that contain them, each with a small diagram."""
    found = content.segments
    if found is None:
        return ""
    if isinstance(found, Absent):
        return element("p", escaped(found.absent))
    rows = [
        [
            Cell(row.name, float(i), title=row.name if len(row.name) > 60 else "", indent=row.depth),
            Cell("", picture=small_diagram(row.curve)),
            Cell(f"{row.rows:,}", float(row.rows)),
            Cell(f"{row.difference:+.3f}", row.difference),
            Cell(f"{row.low:+.3f} to {row.high:+.3f}", row.low),
            Cell(_p(row.p_value), row.p_value),
            Cell(row.region),
            Cell(f"{row.contribution:+.4f}", row.contribution),
            Cell("yes" if row.beyond else "not sure"),
        ]
        for i, row in enumerate(found.rows)
    ]
    too_much = "too confident" if content.top_label else "too high"
    words = (
        f"All intersections of the columns were searched, in all regions of the scores: {found.summary}. The chance that any "
        f"calibrated segment is listed is at most {1 - content.level:.0%}, and the limits hold for all segments at once. One row "
        "per cause; a segment inside another stands below it. The difference is score minus outcome: positive is "
        f"{too_much}; of low against high scores it is half of what both ends differ by, positive where scores are too extreme. "
        "What it adds is its part of the difference of all rows."
    )
    notes = "".join(element("p", escaped(note)) for note in found.notes)
    header = ["Segment", "Diagram", "Rows", "Difference", "Limits", "p-value"]
    header += ["Scores", "Adds", f"Beyond {content.tolerance:g}"]
    listed = table("Miscalibrated segments", header, rows, page=_PAGE, id_="segment-table") if rows else ""
    return element("p", escaped(words)) + listed + notes


def clinical_table(content: Content) -> str:
    """The numbers of a clinical validation."""
    found = content.clinical
    if found is None:
        return ""
    if isinstance(found, Absent):
        return element("p", escaped(found.absent))
    rows = [
        [
            Cell(row.title),
            Cell(f"{row.value:.3f}", row.value),
            Cell(f"{row.low:.3f} to {row.high:.3f}", row.low),
            Cell("" if row.calibrated is None else f"{row.calibrated:g}", _sorted(row.calibrated)),
            Cell(row.reading),
        ]
        for row in found.rows
    ]
    words = f"What TRIPOD+AI asks of a validation, by tc.clinical: {found.counts}."
    notes = "".join(element("li", escaped(note)) for note in found.warnings)
    pictures = [forest_figure(forest, content.level) for forest in found.forests]
    header = ["Number", "Value", f"{content.level:.0%} interval", "If calibrated", "How to read it"]
    return (
        element("p", escaped(words))
        + table("Clinical validation", header, rows, id_="clinical-table")
        + (element("ul", notes, class_="warnings") if notes else "")
        + "".join(element("p", escaped(note)) for note in [found.apart] if note)
        + (element("div", *pictures, class_="charts") if pictures else "")
    )


def likert_table(content: Content) -> str:
    """What people would be told, and whether it was kept."""
    if content.likert is None:
        return ""
    words = {True: "yes", False: "no", None: "not sure"}
    rows = [
        [
            Cell(row.name),
            Cell(f"{row.low:g} to {row.high:g}", row.low),
            Cell(f"{row.count:,}", float(row.count)),
            Cell(_number(row.mean_output), _sorted(row.mean_output)),
            Cell(_number(row.mean_outcome), _sorted(row.mean_outcome)),
            Cell(
                _span(row.outcome_low, row.outcome_high),
                _sorted(row.outcome_low),
            ),
            Cell(words[row.kept] if row.count else ""),
        ]
        for row in content.likert
    ]
    intro = element(
        "p",
        "If confidences were shown as words, would each word keep what it promises: outcomes within its own limits?",
    )
    header = [
        "Word",
        "Confidence",
        "Predictions",
        "Mean confidence",
        "Outcome rate",
        f"{content.level:.0%} interval",
        "Kept",
    ]
    return intro + table("Confidence in words", header, rows, id_="likert-table")


def recalibration_table(content: Content) -> str:
    """Recalibrators on held-out folds."""
    found = content.recalibration
    if found is None:
        return ""
    if isinstance(found, Absent):
        return element("p", escaped(found.absent))
    rows = [
        [
            Cell(row.recalibrator),
            Cell(_number(row.error), _sorted(row.error)),
            Cell(_span(row.error_low, row.error_high), _sorted(row.error_low)),
            Cell(_number(row.log_loss), _sorted(row.log_loss)),
            Cell(_number(row.brier), _sorted(row.brier)),
            Cell(_number(row.accuracy), _sorted(row.accuracy)),
        ]
        for row in found.rows
    ]
    others = [name for name in found.tied if name != found.winner]
    close = f"; {', '.join(others)}: not significantly worse" if others else ""
    part = "" if found.sampled is None else f" A sample of {found.sampled:,} rows was used."
    best = f" Lowest log loss: {found.winner}{close}."
    if not any(isfinite(row.log_loss) for row in found.rows):
        best = (
            " Every log loss is infinite: a row had probability 0 for what happened, and no method here can raise it."
        )
    intro = element(
        "p",
        escaped(
            f"Each method was fitted on {found.folds - 1} of {found.folds} parts of the rows and judged on the other, in "
            f"turn.{best}{part}"
        ),
    )
    if found.recommended:
        intro += element("p", escaped(f"Recommended: {found.recommended}."))
    intro += "".join(element("p", escaped(f"{words}.")) for words in found.refused)
    header = ["Method", "Error", f"{content.level:.0%} interval", "Log loss", "Brier score", "Accuracy"]
    chart = ""
    if found.curves:
        caption = (
            "Curves before and after, on rows the method was not fitted on. On the dashed line confidence is right."
        )
        words = element("figcaption", escaped(caption))
        chart = element("figure", element("div", "", id="remedies", class_="chart"), words)
    return intro + table("Recalibration on held-out folds", header, rows, id_="recalibration-table") + chart


def bias_table(content: Content) -> str:
    """Bias of the estimators in a world fitted to the data."""
    found = content.bias
    if found is None:
        return ""
    if isinstance(found, Absent):
        return element("p", escaped(found.absent))
    rows = [
        [
            Cell(row.name),
            Cell(_number(row.mean), row.mean),
            Cell(f"{row.bias:+.4f}", row.bias),
            Cell(_number(row.std), row.std),
            Cell(_number(row.rmse), row.rmse),
        ]
        for row in found.rows
    ]
    unlike = (
        " The simulated data differ from yours more than chance allows: read this table with care."
        if found.unlike
        else ""
    )
    intro = element(
        "p",
        escaped(
            f"A world whose true error is known ({found.truth:.4f}, root mean square) was fitted to these data, and "
            f"{found.datasets} datasets of {found.n:,} rows were drawn from it. This is how far each "
            f"estimator is from that truth.{unlike}"
        ),
    )
    header = ["Estimator", "Mean estimate", "Bias", "Spread", "Root-mean-square miss"]
    return intro + table("Bias of the estimators", header, rows, id_="bias-table")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _span(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{low:.4f} to {high:.4f}"


def _p(value: float | None) -> str:
    return "" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def _sorted(value: float | None) -> float:
    """What a number sorts by: those that are not there come first, infinite ones last."""
    return -1.0 if value is None else float(value)
