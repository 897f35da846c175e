"""The sections of the study page as HTML. Selectors, charts and the table of models are filled by the scripts."""

from collections.abc import Sequence

from truecal.report.html import element, escaped, page_body, paragraph, sections, terms
from truecal.report.study.record import Analysis, StudyContent
from truecal.report.table import Cell, table

_MODEL_COLUMNS = ["Model", "Family", "Size", "Error", "Metric", "Interval", "Pareto front", "Not told apart from"]
_NOTES_SHOWN, _MOST_NOTES = 3, 40
_NAMED = 8  # metrics that were left out


def study_body(content: StudyContent) -> str:
    """Everything inside the body element except the scripts."""
    parts = [
        ("explorer", "Error and calibration", _explorer()),
        ("glance", "At a glance", _glance()),
        *((analysis.id, analysis.heading, analysis_html(analysis)) for analysis in content.analyses),
        ("reading", "How to read this page", _reading(content)),
        ("reproduce", "Reproducibility", _reproduce(content)),
    ]
    return page_body(content.title, content.facts, _verdict(), sections(parts), skip="finding")


def _verdict() -> str:
    """The finding about what is selected in the explorer, in words that the scripts keep up to date."""
    return element(
        "section",
        element("p", "Is the ranking supported?", class_="badge"),
        element("p", "", id="finding", class_="finding"),
        element("p", "", id="support", class_="reading"),
        element("ul", "", id="cautions", class_="warnings", aria_label="Warnings"),
        element("noscript", element("p", "The explorer needs JavaScript; the analyses below do not.")),
        id="verdict",
        class_="verdict open",
        aria_label="Finding",
        aria_live="polite",
    )


def _explorer() -> str:
    charts = (_scatter(), _reliability(), _worded_chart("shift", "Over the severity of shift"), _bins())
    models = table("Models shown", _MODEL_COLUMNS, [], id_="model-table")
    return (
        _controls()
        + element("div", *charts, class_="charts")
        + element("h3", "The models shown", id="models-heading")
        + element("div", models, id="models")
    )


def _glance() -> str:
    """Small multiples of the metric chosen above, filled by the scripts."""
    charts = (
        ("glance-before", "Before and after recalibration"),
        ("glance-datasets", "Dataset by dataset"),
        ("glance-families", "Every family under shift"),
    )
    words = paragraph("The metric chosen above. Better is down and to the left.")
    return words + "".join(_worded_chart(*one) for one in charts)


def _worded_chart(name: str, heading: str) -> str:
    """A chart whose caption the scripts write."""
    words = element("figcaption", "", id=f"{name}-words")
    return element("figure", element("h3", heading), element("div", "", id=name, class_="chart"), words)


def _controls() -> str:
    """What to show."""
    choices = "".join(
        element("div", element("label", words, for_=name), element("select", "", id=name), class_="control")
        for name, words in (
            ("dataset", "Dataset"),
            ("recalibrator", "Recalibrator"),
            ("lens", "Lens"),
            ("metric", "Metric"),
            ("selection", "Rows"),
            ("grouping", "Colour and panels by"),
        )
    )
    severity = element(
        "div",
        element(
            "label", "Severity of shift ", element("output", "", id="severity-shown", for_="severity"), for_="severity"
        ),
        '<input type="range" id="severity" min="0" max="0" value="0" step="1">',
        class_="control",
    )
    families = element("fieldset", element("legend", "Families", id="families-title"), id="families")
    return element("form", choices, severity, families, id="controls", aria_label="What to show")


def _scatter() -> str:
    """All models by error and metric."""
    return element(
        "figure",
        element("h3", "All models"),
        element("div", "", id="scatter", class_="chart"),
        element(
            "figcaption",
            "Better is down and to the left. The dashed line joins the Pareto front: no other model shown is as good in both. "
            "Lines are intervals; larger marks are larger models. Drag over marks to keep those models in the table; click one "
            "to open its diagram.",
        ),
        element("p", element("button", "Release the brush", type="button", id="release"), hidden="hidden"),
    )


def _reliability() -> str:
    """The reliability diagram of one model."""
    return element(
        "figure",
        element("h3", "One model"),
        element(
            "div",
            element("label", "Model", for_="model"),
            element("select", "", id="model"),
            element("label", "Bins", for_="kind"),
            element("select", "", id="kind"),
            class_="inline",
        ),
        element("div", "", id="reliability", class_="chart"),
        element("figcaption", "", id="reliability-words"),
    )


def _bins() -> str:
    """The bins of the diagram as a table."""
    header = ["Bin", "Rows", "Confidence", "Outcome", "Low", "High"]
    bins = table("Bins of the diagram", header, [], id_="bin-table")
    return element("figure", element("h3", "Bins of the diagram"), bins)


def analysis_html(analysis: Analysis) -> str:
    """An analysis: what it asks, its notes, its table."""
    rows = [
        [Cell(shown, sort) for shown, sort in zip(row, sorts, strict=True)]
        for row, sorts in zip(analysis.rows, analysis.sorts, strict=True)
    ]
    listed = table(analysis.heading, analysis.header, rows, page=12, id_=f"{analysis.id}-table") if rows else ""
    more = paragraph(analysis.more, class_="more") if analysis.more else ""
    return paragraph(analysis.intro) + _notes(analysis.notes) + listed + more


def _notes(notes: Sequence[str]) -> str:
    """The first notes, and the others on request."""

    def listed(texts: Sequence[str]) -> str:
        return element("ul", *(element("li", escaped(note)) for note in texts), class_="notes", aria_label="Notes")

    shown, more = notes[:_NOTES_SHOWN], notes[_NOTES_SHOWN:_MOST_NOTES]
    left = len(notes) - _MOST_NOTES
    tail = paragraph(f"And {left} more.", class_="more") if left > 0 else ""
    words = f"{len(notes) - _NOTES_SHOWN} more notes"
    return (listed(shown) if shown else "") + (
        element("details", element("summary", words), listed(more), tail) if more else ""
    )


def _reading(content: StudyContent) -> str:
    level = f"{content.explorer.level:.0%}"
    rows = [
        (
            "Values",
            "means over the seeds of a model, to six decimals. The ends of intervals are means over seeds too: the interval of a "
            "typical run, not of the mean, and therefore wide rather than narrow.",
        ),
        (
            "Supported",
            f"in the explorer, an order of two models is called supported when their {level} intervals do not overlap. Models "
            "judged on the same rows are told apart more sharply by paired comparisons, as truecal study show makes them.",
        ),
        (
            "Pareto front",
            "the models to which no other shown model is at least as good in error and metric and better in one of them.",
        ),
        ("Reliability diagrams", "are those of the first seed; intervals of rates are exact (Clopper-Pearson)."),
        (
            "Binned errors",
            "without correction lean upwards, the more the fewer rows a bin has, and more for less accurate models: with many bins "
            "the relation of calibration to error is partly made by the estimator.",
        ),
    ]
    if content.warnings:
        rows.append(("Warnings in the store", " · ".join(content.warnings)))
    if left_out := content.left_out:
        rest = f"; and {len(left_out) - _NAMED} more" if len(left_out) > _NAMED else ""
        names = f"{'; '.join(left_out[:_NAMED])}{rest}. The store holds them all."
        rows.append(("Left out to keep the page small", names))
    return terms(rows, "terms")


def _reproduce(content: StudyContent) -> str:
    made = content.reproduce
    rows = [
        ("Made", made.made),
        ("Study", made.study),
        ("Command", made.command or "truecal.report_study(...) from Python"),
        ("Versions", ", ".join(f"{name} {number}" for name, number in made.versions.items())),
    ]
    return terms(rows, "box")
