"""The sections of the page, top to bottom, as HTML. Charts are placeholders that the scripts fill."""

from truecal import names
from truecal.report.html import chart, element, escaped, page_body, paragraph, sections, terms, verdict_of
from truecal.report.model import tables
from truecal.report.model.content import Content
from truecal.report.model.context import context_table
from truecal.report.model.methods import REFERENCES, definitions
from truecal.report.model.verdict import percent, points, span_of
from truecal.report.records import EstimateRecord
from truecal.report.table import table

_BIN_COLUMNS = ("Bin", "Predictions", "Mean confidence", "Outcome rate", "Low", "High")


def body(content: Content) -> str:
    """Everything inside the body element except the scripts."""
    remedies = tables.part_table(content.recalibration, tables.recalibration_table, content)
    parts = [
        ("diagram", "Confidence and reality", _diagram(content)),
        ("estimators", "Every estimator on these data", tables.estimator_table(content)),
        ("context", "In context", context_table(content.context, content.level)),
        ("classes", "Class by class", tables.class_table(content)),
        ("groups", "Group by group", tables.group_table(content)),
        ("segments", "Where it is wrong", tables.part_table(content.segments, tables.segment_table, content)),
        ("likert", _scale_heading(content), tables.likert_table(content)),
        ("clinical", "Clinical validation", tables.part_table(content.clinical, tables.clinical_table, content)),
        ("recalibration", "What recalibration brings", remedies),
        ("bias", "Bias of the estimators", tables.part_table(content.bias, tables.bias_table, content)),
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
    rows = [("Made", made.made), ("Data", data), *made.lines("truecal.report(...) from Python")]
    return terms(rows, "box")


def _privacy(content: Content) -> str:
    alone = content.cells.alone
    single = f" {alone:,} of them hold a single prediction." if alone else ""
    return (
        f"This file is complete: it loads nothing and sends nothing. It holds sums over {len(content.cells.low):,} cells of "
        f"neighbouring confidences, not the rows of the data.{single} Class and group names are in it as shown above."
    )
