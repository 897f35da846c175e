"""The sections of the comparison page as HTML."""

from truecal.report.comparison.content import ComparisonContent
from truecal.report.comparison.pairs import PairRow
from truecal.report.html import chart, element, page_body, paragraph, section, terms, verdict_of
from truecal.report.model.verdict import points
from truecal.report.table import Cell, number, p_cell, span, table_of


def comparison_body(content: ComparisonContent) -> str:
    """Everything inside the body element except the scripts."""
    facts = [f"{len(content.models)} models", f"{content.n:,} predictions each", f"judged: {content.judged}"]
    return page_body(
        content.title,
        facts,
        verdict_of("open", "Comparison", content.sentence),
        section("models", "The models", _models(content)),
        section("pairs", "Pair by pair, on the same rows" if content.paired else "Pair by pair", _pairs(content)),
        section("curves", "Confidence and reality", _charts(content)),
        section("tasks", "By task", _tasks(content)) if content.tasks else "",
        section("reproduce", "Reproducibility", _reproduce(content)),
    )


def _models(content: ComparisonContent) -> str:
    return table_of(
        "Models",
        [
            ("Model", lambda row: Cell(row.name)),
            ("Error (rms)", lambda row: number(row.error)),
            (f"{content.level:.0%} interval", lambda row: span(row.low, row.high)),
            ("Direction", lambda row: number(row.direction, "+.4f")),
            ("Accuracy", lambda row: _known(row.accuracy)),
            ("Log loss", lambda row: _known(row.log_loss)),
            ("Brier score", lambda row: _known(row.brier)),
            ("Area under risk-coverage", lambda row: _known(row.aurc)),
        ],
        content.models,
        id_="model-table",
    )


def _pairs(content: ComparisonContent) -> str:
    how = (
        "Rows are resampled for both models alike, so what they have in common cancels."
        if content.paired
        else "Rows of the models do not belong together and are resampled by themselves."
    )
    better = "Below 0, the first is better calibrated. Adjusted p-values allow for the number of pairs (Holm)."
    return paragraph(f"{how} {better}") + table_of(
        "Differences of calibration errors",
        [
            ("Pair", lambda pair: Cell(f"{pair.a} minus {pair.b}")),
            ("Difference", lambda pair: number(pair.difference, "+.4f")),
            (f"{content.level:.0%} interval", lambda pair: span(pair.low, pair.high, "+.4f")),
            ("p-value", lambda pair: p_cell(pair.p_value)),
            ("Adjusted", lambda pair: p_cell(pair.adjusted_p)),
            ("Finding", lambda pair: Cell(_finding(pair, content.level))),
        ],
        content.pairs,
        page=20,
        id_="pair-table",
    )


def _finding(pair: PairRow, level: float) -> str:
    if pair.adjusted_p > 1 - level:
        return "not distinguishable"
    better = pair.a if pair.difference < 0 else pair.b
    return f"{better} is better by {points(abs(pair.difference))}"


def _known(value: float | None) -> Cell:
    return Cell("unknown") if value is None else Cell(f"{value:.4f}", value)


def _tasks(content: ComparisonContent) -> str:
    return table_of(
        "Calibration error by task",
        [
            ("Task", lambda row: Cell(row.task)),
            ("Model", lambda row: Cell(row.model)),
            ("Answers", lambda row: Cell(f"{row.n:,}", row.n)),
            ("Error (rms)", lambda row: number(row.error)),
            (f"{content.level:.0%} interval", lambda row: span(row.low, row.high)),
        ],
        content.tasks,
        page=20,
        id_="task-table",
    )


def _charts(content: ComparisonContent) -> str:
    charts = [("reliability", "Smooth calibration curves. On the dashed line, confidence equals reality.")]
    if content.abstention:
        charts += [
            ("scatter", "Better is up and to the left: more accurate, and closer to the truth about itself."),
            ("abstention", "Share of wrong answers if only the most confident rows are answered. Lower is better."),
        ]
    without = element("noscript", element("p", "The charts need JavaScript; every number is in the tables above."))
    return without + element("div", *(chart(*one) for one in charts), class_="charts")


def _reproduce(content: ComparisonContent) -> str:
    made = content.reproduce
    prints = [(f"Data, {name}", f"SHA-256 {digest}") for name, digest in made.fingerprints.items()]
    return terms([("Made", made.made), *prints, *made.lines("truecal.report_comparison(...) from Python")], "box")
