"""The sections of the comparison page as HTML."""

from truecal.report.comparison.content import ComparisonContent
from truecal.report.comparison.pairs import PairRow
from truecal.report.html import Cell, chart, element, p_words, page_body, paragraph, section, table, terms
from truecal.report.model.verdict import points


def comparison_body(content: ComparisonContent) -> str:
    """Everything inside the body element except the scripts."""
    verdict = element(
        "section",
        element("p", "Comparison", class_="badge"),
        paragraph(content.sentence, class_="finding"),
        id="verdict",
        class_="verdict open",
        aria_label="Verdict",
    )
    facts = [f"{len(content.models)} models", f"{content.n:,} predictions each", f"judged: {content.judged}"]
    return page_body(
        content.title,
        facts,
        verdict,
        section("models", "The models", _models(content)),
        section("pairs", "Pair by pair, on the same rows" if content.paired else "Pair by pair", _pairs(content)),
        section("curves", "Confidence and reality", _charts(content)),
        section("tasks", "By task", _tasks(content)) if content.tasks else "",
        section("reproduce", "Reproducibility", _reproduce(content)),
    )


def _models(content: ComparisonContent) -> str:
    rows = [
        [
            Cell(row.name),
            Cell(f"{row.error:.4f}", row.error),
            Cell(f"{row.low:.4f} to {row.high:.4f}", row.low),
            Cell(f"{row.direction:+.4f}", row.direction),
            *(_known(value) for value in (row.accuracy, row.log_loss, row.brier, row.aurc)),
        ]
        for row in content.models
    ]
    head = [
        "Model",
        "Error (rms)",
        f"{content.level:.0%} interval",
        "Direction",
        "Accuracy",
        "Log loss",
        "Brier score",
        "Area under risk-coverage",
    ]
    return table("Models", head, rows, id_="model-table")


def _pairs(content: ComparisonContent) -> str:
    rows = [
        [
            Cell(f"{pair.a} minus {pair.b}"),
            Cell(f"{pair.difference:+.4f}", pair.difference),
            Cell(f"{pair.low:+.4f} to {pair.high:+.4f}", pair.low),
            Cell(p_words(pair.p_value), pair.p_value),
            Cell(p_words(pair.adjusted_p), pair.adjusted_p),
            Cell(_finding(pair, content.level)),
        ]
        for pair in content.pairs
    ]
    how = (
        "Rows are resampled for both models alike, so what they have in common cancels."
        if content.paired
        else "Rows of the models do not belong together and are resampled by themselves."
    )
    intro = element(
        "p", f"{how} Below 0, the first is better calibrated. Adjusted p-values allow for the number of pairs (Holm)."
    )
    head = ["Pair", "Difference", f"{content.level:.0%} interval", "p-value", "Adjusted", "Finding"]
    return intro + table("Differences of calibration errors", head, rows, page=20, id_="pair-table")


def _finding(pair: PairRow, level: float) -> str:
    if pair.adjusted_p > 1 - level:
        return "not distinguishable"
    better = pair.a if pair.difference < 0 else pair.b
    return f"{better} is better by {points(abs(pair.difference))}"


def _known(value: float | None) -> Cell:
    return Cell("unknown") if value is None else Cell(f"{value:.4f}", value)


def _tasks(content: ComparisonContent) -> str:
    rows = [
        [
            Cell(row.task),
            Cell(row.model),
            Cell(f"{row.n:,}", row.n),
            Cell(f"{row.error:.4f}", row.error),
            Cell(f"{row.low:.4f} to {row.high:.4f}", row.low),
        ]
        for row in content.tasks
    ]
    head = ["Task", "Model", "Answers", "Error (rms)", f"{content.level:.0%} interval"]
    return table("Calibration error by task", head, rows, page=20, id_="task-table")


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
