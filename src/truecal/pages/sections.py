"""The page of a model as HTML: definitions, tables and sections."""

from collections.abc import Callable
from itertools import count
from math import isfinite
from typing import TypeVar

from truecal import names
from truecal.pages.content import BiasRecord, Content, context_table, percent, points, span_of
from truecal.pages.html import (
    Cell,
    chart,
    element,
    escaped,
    number,
    p_cell,
    page_body,
    paragraph,
    sections,
    span,
    table,
    table_of,
    terms,
    verdict_of,
)
from truecal.pages.parts import (
    ClinicalRecord,
    GroupRow,
    RecalibrationRecord,
    SegmentsRecord,
    forest_figure,
    small_diagram,
)
from truecal.pages.records import Absent, EstimateRecord

# ----------------------------------------------------------------------------------------------------
# What each number on the page is, in words, with its source

# Estimator -> (what it does, reference number)
ESTIMATOR_WORDS = {
    "RankSeries": ("series in the rank of the score, debiased by leaving one out; recommended", None),
    "DebiasedECE": ("bins of equal mass, minus what chance alone would add", 3),
    "SweepECE": ("as many bins as keep the outcomes rising", 4),
    "NearestECE": ("a sliding window of neighbouring scores", 5),
    "KernelDensityECE": ("kernel estimate of the calibration curve", 6),
    "BinnedECE": ("the classical ECE; reads high, and higher with more bins", 1),
    "LabelBinnedECE": ("each score against the outcome rate of its bin", 4),
    "SmoothECE": ("residuals smoothed at the scale of the error itself", 7),
    "IsotonicError": ("root of the Brier score an isotonic fit would save; reads high", 8),
}

REFERENCES = (
    "Naeini, Cooper, Hauskrecht (2015): Obtaining well calibrated probabilities using Bayesian binning. AAAI.",
    "Guo, Pleiss, Sun, Weinberger (2017): On calibration of modern neural networks. ICML.",
    "Kumar, Liang, Ma (2019): Verified uncertainty calibration. NeurIPS.",
    "Roelofs, Cain, Shlens, Mozer (2022): Mitigating bias in calibration error estimation. AISTATS.",
    "Peng, Alamzadeh, Ester: Better calibration error estimation for reliable uncertainty quantification.",
    "Zhang, Kailkhura, Han (2020): Mix-n-Match: ensemble and compositional methods for uncertainty calibration. ICML.",
    "Błasiok, Nakkiran (2024): Smooth ECE: principled reliability diagrams via kernel smoothing. ICLR.",
    "Dimitriadis, Gneiting, Jordan (2021): Stable reliability diagrams for probabilistic classifiers. PNAS.",
)

NORM_WORDS = {1.0: "mean absolute", 2.0: "root mean square", float("inf"): "maximum"}


def definitions(content: Content) -> list[tuple[str, str]]:
    """Terms used on the page and what they mean."""
    level, tolerance = f"{content.level:.0%}", f"{100 * content.tolerance:g} percentage points"
    judged = (
        "The class with the largest probability: its probability is the confidence, and the outcome is whether it was right."
        if content.top_label
        else f"Judged here: {content.judged}. Its probability is the confidence; the outcome is whether it happened."
    )
    return [
        ("Confidence and outcome", judged),
        (
            "Calibration error",
            "How far, over all predictions, the confidence is from the frequency with which predictions of that confidence come "
            "true. Root mean square unless said otherwise: large gaps count more. The mean absolute error is what the name ECE "
            "usually stands for.",
        ),
        (
            "Interval",
            f"Made so that it holds the true error in {level} of repetitions, for a well calibrated model too. Its lower end is 0 "
            "unless the data show that the model is off.",
        ),
        (
            "p-value",
            "The probability of data this far off if the confidences were exactly right, found by redrawing the outcomes from the "
            "confidences. It says whether an error is there, not how large it is.",
        ),
        (
            "Direction",
            f"Mean confidence minus frequency. Positive: {names.tendency(content.judged, 1.0)} on average. Gaps of opposite sign "
            "cancel in it, so it can be near 0 while the error is not.",
        ),
        (
            "Bins",
            "Equal width: edges at j/b, a score on an edge belongs to the bin above it. Equal mass: the same number of predictions "
            "in each bin, equal scores never split. Sweep: equal mass, with the most bins for which outcomes rise from bin to "
            "bin. Vertical lines are Clopper-Pearson intervals of the outcome rate.",
        ),
        (
            "Band",
            f"Holds the whole calibration curve with {level} confidence, for any number of predictions, if outcomes do not become "
            "rarer as confidence grows. Where the dashed line leaves it, the model is shown to be off.",
        ),
        (
            "Tolerance",
            f"The verdict compares the interval with {tolerance}. It says 'within' or 'outside' only if the whole interval lies on "
            "that side.",
        ),
    ]


# ----------------------------------------------------------------------------------------------------
# The tables of results: by estimator, by class, by group

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


# ----------------------------------------------------------------------------------------------------
# The sections of the page, top to bottom, as HTML. Charts are placeholders that the scripts fill

_BIN_COLUMNS = ("Bin", "Predictions", "Mean confidence", "Outcome rate", "Low", "High")


def body(content: Content) -> str:
    """Everything inside the body element except the scripts."""
    remedies = part_table(content.recalibration, recalibration_table, content)
    parts = [
        ("diagram", "Confidence and reality", _diagram(content)),
        ("estimators", "Every estimator on these data", estimator_table(content)),
        ("context", "In context", context_table(content.context, content.level)),
        ("classes", "Class by class", class_table(content)),
        ("groups", "Group by group", group_table(content)),
        ("segments", "Where it is wrong", part_table(content.segments, segment_table, content)),
        ("likert", _scale_heading(content), likert_table(content)),
        ("clinical", "Clinical validation", part_table(content.clinical, clinical_table, content)),
        ("recalibration", "What recalibration brings", remedies),
        ("bias", "Bias of the estimators", part_table(content.bias, bias_table, content)),
        ("methods", "Definitions and methods", _methods(content)),
        ("reproduce", "Reproducibility", _reproduce(content)),
    ]
    shown = sections([part for part in parts if part[2]])
    return page_body(content.title, _facts(content), _verdict(content), shown, footer=_privacy(content))


def _scale_heading(content: Content) -> str:
    words = ", ".join(row.name for row in content.likert or ())
    return f"{words[:1].upper()}{words[1:]}"


def _facts(content: Content) -> list[str]:
    facts = [content.source] if content.source else []
    facts.append(f"{content.n:,} predictions" + ("" if content.units is None else f" in {content.units:,} clusters"))
    if content.class_count:
        facts.append(f"{content.class_count:,} classes")
    if content.context is not None and content.context.where:
        facts.append(f"where {content.context.where}")
    return [*facts, f"judged: {content.judged}", *(["from a sketch"] if content.sketch else [])]


def _verdict(content: Content) -> str:
    verdict = content.verdict
    notes = "".join(element("li", escaped(text)) for text in content.head.warnings)
    warnings = element("ul", notes, class_="warnings", aria_label="Warnings") if notes else ""
    more = (warnings, _numbers(content), _sketch(content))
    return verdict_of(verdict.kind, verdict.badge, verdict.sentence, verdict.reading, *more)


def _sketch(content: Content) -> str:
    """That the page was built from a sketch, and how far its numbers can be from those of all rows."""
    sketch = content.sketch
    if sketch is None:
        return ""
    engine = f", read by {sketch.engine}" if sketch.engine else ""
    far = f"at most {points(sketch.error)} from that of all rows (the sketch error, proved)"
    if sketch.bound != "proved":
        far = (
            f"within {points(sketch.error)} of that of all rows, for every order of the rows of a cell that was tried "
            "(the sketch error; not a proof)"
        )
    words = (
        f"Built from a sketch: {content.n:,} predictions in {sketch.cells:,} cells{engine}, not row by row. The "
        f"root-mean-square error above is {far}; the table of estimators has the sketch error of each. Recalibration, single "
        "classes and the scale from low to high need rows and are left out."
    )
    return paragraph(words, id="sketch", class_="reading")


def _numbers(content: Content) -> str:
    head, absolute, level = content.head, content.absolute, f"{content.level:.0%}"
    direction = head.direction
    p = head.p_value
    average = f"{names.tendency(content.judged, direction)} on average"
    outcome = "accuracy" if content.top_label else "frequency"
    cards = [
        ("Root-mean-square error", points(head.value), f"{level}: {_span(head)}", "large gaps count more"),
        ("Mean absolute error", points(absolute.value), f"{level}: {_span(absolute)}", "the usual meaning of ECE"),
        ("Direction", ("+" if direction > 0 else "-") + points(abs(direction)), average, "opposite gaps cancel"),
        (
            "Test of calibration",
            "-" if p is None else "p < 0.001" if p <= 0.001 else f"p = {p:.3f}",
            "chance of data this far off",
            "if confidences were right",
        ),
        (
            "Mean confidence",
            percent(content.mean_score),
            f"{outcome} {percent(content.mean_outcome)}",
            f"n = {content.n:,}",
        ),
    ]
    return element(
        "dl",
        *(
            element(
                "div",
                element("dt", escaped(name)),
                element("dd", escaped(value), class_="value"),
                *(element("dd", escaped(note)) for note in notes),
            )
            for name, value, *notes in cards
        ),
        class_="cards",
    )


def _span(record: EstimateRecord) -> str:
    interval = record.interval
    return "" if interval is None else span_of(interval.low, interval.high, "to")


def _diagram(content: Content) -> str:
    live = element(
        "p",
        element("span", "", id="setting"),
        element("output", "", id="error", for_="bins scheme norm"),
        element("span", "", id="reference"),
        id="live",
        aria_live="polite",
    )
    numbers = element(
        "details",
        element("summary", "Numbers behind the diagram"),
        table("Bins of the diagram", _BIN_COLUMNS, [], id_="bin-table"),
    )
    without = element(
        "noscript", element("p", "The diagram needs JavaScript; every number outside it is in the page itself.")
    )
    return _controls(content) + live + without + _charts(content) + numbers


def _controls(content: Content) -> str:
    most, sweep_known = content.most_bins, content.cells.sweep is not None
    schemes = [("width", "Equal width"), ("mass", "Equal mass")]
    schemes += [("sweep", "Monotone sweep")] if sweep_known else []
    bins = (
        element("label", "Bins ", element("output", "15", id="bins-shown", for_="bins"), for_="bins")
        + f'<input type="range" id="bins" min="1" max="{most}" value="15" step="1">'
    )
    return element(
        "form",
        element("div", bins, class_="control"),
        _choice("scheme", "Binning", schemes, "width"),
        _choice("norm", "Average", [("1", "Mean absolute"), ("2", "Root mean square"), ("inf", "Maximum")], "1"),
        _boxes(
            [
                ("show-bins", "Bins", True),
                ("show-smooth", "Smooth curve", True),
                ("show-band", "Its band", content.curves.smooth is not None and content.curves.smooth.low is not None),
                ("show-isotonic", "Isotonic", False),
            ]
        ),
        _choice("zoom", "Scale", [("linear", "Linear"), ("log", "Zoom near 1")], "linear"),
        id="controls",
        aria_label="How to draw and measure",
    )


def _charts(content: Content) -> str:
    high = names.tendency(content.judged, 1.0)
    return element(
        "div",
        element(
            "figure",
            element("div", "", id="reliability", class_="chart"),
            element("div", "", id="histogram", class_="chart"),
            element(
                "figcaption",
                f"On the dashed line, confidence equals reality; below it, the model is {high}. "
                "Dot size grows with the number of predictions. Beneath: where the confidences lie.",
            ),
        ),
        chart(
            "movement",
            "The binned error depends on the number of bins; the shaded band is the interval of the rank-series estimate, "
            "which needs none.",
        ),
        class_="charts",
    )


def _choice(name: str, legend: str, options: list[tuple[str, str]], chosen: str) -> str:
    inputs = "".join(
        f'<label><input type="radio" name="{name}" value="{value}"{" checked" if value == chosen else ""}>{escaped(words)}</label>'
        for value, words in options
    )
    return element("fieldset", element("legend", escaped(legend)), inputs)


def _boxes(options: list[tuple[str, str, bool]]) -> str:
    inputs = "".join(
        f'<label><input type="checkbox" id="{name}"{" checked" if on else ""}>{escaped(words)}</label>'
        for name, words, on in options
    )
    return element("fieldset", element("legend", "Show"), inputs)


def _methods(content: Content) -> str:
    listed = "".join(element("li", escaped(text)) for text in REFERENCES)
    references = element("h3", "References") + element("ol", listed, class_="references")
    return terms(definitions(content), "terms") + references


def _reproduce(content: Content) -> str:
    made = content.reproduce
    data = f"{content.n:,} predictions, SHA-256 {made.fingerprints['']}"
    rows = [("Made", made.made), ("Data", data), *made.lines("truecal.pages(...) from Python")]
    return terms(rows, "box")


def _privacy(content: Content) -> str:
    alone = content.cells.alone
    single = f" {alone:,} of them hold a single prediction." if alone else ""
    return (
        f"This file is complete: it loads nothing and sends nothing. It holds sums over {len(content.cells.low):,} cells of "
        f"neighbouring confidences, not the rows of the data.{single} Class and group names are in it as shown above."
    )
