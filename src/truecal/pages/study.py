"""The analyses of a study as tables: one function each, which gives its notes, the names of its columns, and its rows.

A cell is what is shown and what it sorts by. A column is its name and the cell that it makes of a row.
"""

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any, Protocol

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.pages.html import (
    Cell,
    asset,
    charting_bundle,
    document_of,
    element,
    escaped,
    page_body,
    paragraph,
    section,
    sections,
    table,
    terms,
)
from truecal.pages.records import now, versions
from truecal.pages.study_record import (
    Analysis,
    Explorer,
    Numbers,
    Provenance,
    Start,
    StudyContent,
    explorer_diagrams,
    explorer_numbers,
    headline,
    measure_label,
    refuse_undrawable,
    wanted_first,
)
from truecal.writing import write_whole

# ----------------------------------------------------------------------------------------------------
# The analyses of a study as tables: one function each, which gives its notes, the names of its columns, and its rows

Shown = tuple[str, float | str]
Row = list[Shown]
Table = tuple[Sequence[str], list[str], list[Row]]
Column = tuple[str, Callable[[Mapping[str, Any]], Shown]]


def trends(result: Any) -> Table:
    rows = [row for row in result.trends().rows(named=True) if row["family"] is None]
    slope, tau = _with_ends("Slope", "slope"), _with_ends("Kendall's tau", "kendall", "Interval of tau")
    return _table(result.notes, rows, *_PLACE, _whole("Models", "models"), *slope, *tau)


def fronts(result: Any) -> Table:
    always = result.always
    first = f"on every front: {', '.join(always)}" if always else "no model is on every front"
    share: Column = ("Share", lambda row: (f"{row['share']:.0%}", row["share"]))
    counts = (_whole("On the front", "fronts"), _whole("Of", "of"), share)
    return _table([first, *result.notes], result.counts().rows(named=True), *_MODEL, *counts)


def slopes(result: Any) -> Table:
    return _table(
        result.notes,
        result.slopes().sort("dataset", "slope").rows(named=True),
        *(*_MODEL, _PLACE[0]),
        *_with_ends("Metric per step", "slope"),
        *_with_ends("Error per step", "error_slope", "Interval of error", ("error_low", "error_high")),
    )


def correlations(result: Any) -> Table:
    rows = [row for row in result.correlations().rows(named=True) if row["method"] == "kendall"]
    tau = _with_ends("Kendall's tau", "value", ends=_ENDS)
    return _table(result.notes, rows, *_PLACE, _text("Pair", "pair"), _whole("Models", "models"), *tau)


def standing_out(result: Any) -> Table:
    import polars as pl

    table = result.frame().filter(pl.col("standardized").abs() > 2).sort(pl.col("standardized").abs(), descending=True)
    numbers = (_number("Value", "value"), _number("By the line", "expected"))
    who = (_text("Model", "model"), _text("Score", "metric"), *_PLACE)
    return _table(result.notes, table.rows(named=True), *who, *numbers, _number("Standard errors", "standardized", 1))


def bins(result: Any) -> Table:
    return _table(
        result.notes,
        result.frame().sort("severity", "dataset", maintain_order=True).rows(named=True),
        *_PLACE,
        _text("Metric", "metric"),
        ("Bins", lambda row: ("" if row["bins"] is None else str(row["bins"]), float(row["bins"] or 0))),
        ("Biased", lambda row: _plain("no" if row["debiased"] else "yes")),
        *_with_ends("Slope", "slope", ends=_ENDS),
    )


def ranks(result: Any) -> Table:
    return _table(
        result.notes,
        result.frame().sort("severity", "tau").rows(named=True),
        *_PLACE,
        ("Metrics", lambda row: _plain(f"{row['metric_a']} and {row['metric_b']}")),
        *_with_ends("Kendall's tau", "tau", ends=_ENDS),
        *(_whole("Pairs of models", "pairs"), _whole("Flips", "flips")),
        _whole("Supported flips", "supported_flips", _UNKNOWN),
    )


def effect(result: Any) -> Table:
    return _table(
        result.notes,
        result.summary().rows(named=True),
        *(*_PLACE, _number("Before", "before"), _number("After", "after")),
        ("Improved", lambda row: (f"{row['improved']} of {row['models']}", float(row["improved"]))),
        _whole("Beyond intervals", "improved_supported", _UNKNOWN),
        *_with_ends("Kendall's tau", "tau"),
    )


def temperatures(fits: Any, frame: Any) -> Table:
    """Per family and recalibrator: models, and the least, middle and largest temperature."""
    import polars as pl

    about = frame.select("model", "family").unique("model", keep="first")
    known = fits.filter(pl.col("temperature").is_not_null()).join(about, on="model", how="left")
    if not known.height:
        raise InputError("it holds no fitted temperatures")
    groups = known.group_by("dataset", "family").agg(
        pl.col("model").n_unique().alias("models"),
        *(getattr(pl.col("temperature"), name)().alias(name) for name in ("min", "median", "max")),
        (pl.col("temperature") > 1).sum().alias("over"),
        pl.len().alias("fits"),
        pl.col("rows").max(),
    )
    return _table(
        [],
        groups.sort("dataset", "median").rows(named=True),
        *(_text("Family", "family"), _text("Fitted on", "dataset"), _whole("Models", "models")),
        *(_number("Lowest", "min", 3), _number("Median", "median", 3), _number("Highest", "max", 3)),
        ("Overconfident", lambda row: (f"{row['over']} of {row['fits']}", float(row["over"]))),
        _whole("Rows fitted on", "rows"),
    )


def dominated(result: Any) -> Table:
    pairs = result.always
    first = [f"always dominated: {'; '.join(f'{a} by {b}' for a, b in pairs)}"] if pairs else []
    table = result.frame().sort("dominated", "share", descending=True)
    return _table(
        [*first, *result.notes],
        [row for row in table.rows(named=True) if row["beaten"]],
        *(_text("Family", "family"), _text("Beaten by", "by"), *_PLACE),
        ("Models beaten", lambda row: (f"{row['beaten']} of {row['models']}", row["share"])),
        ("Dominated", lambda row: _plain("yes" if row["dominated"] else "")),
    )


def log_lines(result: Any) -> Table:
    counts = (_text("Family", "family"), _whole("Models", "models"), _whole("Points", "points"))
    fitted = (_number("Intercept", "intercept", 3), _number("R squared", "explained", 3))
    return _table(result.notes, result.lines().rows(named=True), *counts, *_with_ends("Slope", "slope"), *fitted)


def _table(notes: Sequence[str], rows: Iterable[Mapping[str, Any]], *columns: Column) -> Table:
    return notes, [name for name, _ in columns], [[cell(row) for _, cell in columns] for row in rows]


def _plain(value: object) -> Shown:
    return str(value), str(value)


def _text(title: str, name: str) -> Column:
    return title, lambda row: _plain("" if row[name] is None else row[name])


def _whole(title: str, name: str, missing: Shown = ("", -1.0)) -> Column:
    """A count, and what stands for one that is not there."""
    return title, lambda row: missing if row[name] is None else (f"{row[name]:,}", float(row[name]))


def _number(title: str, name: str, digits: int = 4) -> Column:
    def cell(row: Mapping[str, Any]) -> Shown:
        value = row[name]
        return (f"{value:.{digits}f}", float(value)) if value is not None and isfinite(value) else ("", -1e9)

    return title, cell


def _with_ends(
    title: str, name: str, interval: str = "Interval", ends: tuple[str, str] | None = None
) -> tuple[Column, Column]:
    """A number, and its interval in a column of its own."""
    low, high = ends or (f"{name}_low", f"{name}_high")

    def cell(row: Mapping[str, Any]) -> Shown:
        known = all(row[end] is not None and isfinite(row[end]) for end in (low, high))
        return (f"{row[low]:.3f} to {row[high]:.3f}", float(row[low])) if known else ("", -1e9)

    return _number(title, name, 3), (interval, cell)


_UNKNOWN = ("unknown", -1.0)  # a count that is unknown without intervals
_ENDS = ("low", "high")
_MODEL = (_text("Model", "model"), _text("Family", "family"))
_PLACE: tuple[Column, Column] = (
    _text("Dataset", "dataset"),
    ("Severity", lambda row: (f"{row['severity']:g}", float(row["severity"]))),
)


# ----------------------------------------------------------------------------------------------------
# The analyses of a study as sections of its page: a few words, notes and a table each

MOST_ROWS = 120
_RANKED = 6  # metrics whose rankings are compared
_SCORES = ("nll", "brier")


@dataclass(frozen=True, eq=False)
class _Results:
    """The results that the analyses of a page read, cut down to what each of them asks for."""

    frame: Any
    lens: str
    metric: str
    metrics: tuple[str, ...]  # whose rankings are compared
    store: Any

    @classmethod
    def of(cls, store: Any, frame: Any) -> "_Results":
        import polars as pl

        lens, metric = headline(frame)
        several = tuple(name for at, name in wanted_first(frame) if at == lens)[:_RANKED]
        return cls(frame.filter(pl.col("lens").is_in([lens, ""])), lens or "top-label", metric, several, store)

    @cached_property
    def name(self) -> str:
        """The main metric in words, as it stands inside a sentence."""
        about = self.frame.filter(self.frame["metric"] == self.metric).row(0, named=True)
        name = measure_label(self.metric, about["bins"], about["norm"], about["scheme"])
        return name[0].lower() + name[1:]

    @cached_property
    def recalibrators(self) -> list[str]:
        """Before, and after the recalibrators there are."""
        return ["none", *sorted(set(self.frame["recalibrator"]) - {"none"})]

    @property
    def reference(self) -> dict[str, str] | None:
        """The clean datasets of shifted ones, where the study says so."""
        return self.store.references() or None

    @cached_property
    def main(self) -> Any:
        """The main metric and the error."""
        return self.frame.filter(self.frame["metric"].is_in([self.metric, "error"]))

    @cached_property
    def compared(self) -> Any:
        """The metrics that are compared, the scores and the error."""
        return self.frame.filter(self.frame["metric"].is_in([*self.metrics, *_SCORES, "error"]))

    def of_lens(self, recalibrator: str) -> Mapping[str, Any]:
        """The lens of the page and one recalibrator, as the analyses take them."""
        return {"lens": self.lens, "recalibrator": recalibrator}

    @property
    def scores(self) -> list[str]:
        there = set(self.frame["metric"])
        return [name for name in _SCORES if name in there]


@dataclass(frozen=True)
class _Question:
    """A section: its words, in which {name} is the main metric and {metrics} those compared, and what answers it."""

    id: str
    heading: str
    intro: str
    answer: Callable[[_Results, str], Table]


_AGAINST_ERROR = _Question(
    "error-calibration",
    "Calibration against error",
    "How {name} goes with the error rate, over all models: the slope of a line, and Kendall's tau of the two rankings. "
    "A tau above 0 means that accurate models tend to be well calibrated.",
    lambda results, after: trends(
        tc.study.error_against_calibration(results.main, metric=results.metric, **results.of_lens(after))
    ),
)
_OTHERS = (
    _Question(
        "pareto",
        "Who stays on the Pareto front",
        "On how many of the fronts of error and a metric each model is: under {metrics}, on every dataset, at every severity.",
        lambda results, after: fronts(
            tc.study.pareto(results.compared, metrics=results.metrics, **results.of_lens(after))
        ),
    ),
    _Question(
        "dominance",
        "Which family is beaten by which",
        "How many models of a family are beaten in both error and {name} by some model of another. A family is dominated where "
        "all of its models are beaten and none of them beats one of the other.",
        lambda results, after: dominated(
            tc.study.dominance(results.main, metric=results.metric, **results.of_lens(after))
        ),
    ),
    _Question(
        "shifting",
        "Under shift",
        "How much {name} and the error rate rise with every step of severity (least squares).",
        lambda results, after: slopes(
            tc.study.shift(results.main, metric=results.metric, reference=results.reference, **results.of_lens(after))
        ),
    ),
    _Question(
        "in-out",
        "From clean to shifted data",
        "Kendall's tau over models: does {name}, or the error, on clean data predict that on shifted data, and do the two go "
        "together there?",
        lambda results, after: correlations(
            tc.study.in_and_out(
                results.main, metric=results.metric, reference=results.reference, **results.of_lens(after)
            )
        ),
    ),
    _Question(
        "log-fits",
        "One law over all datasets?",
        "A line through the logarithms of error and {name}, for each family, over all datasets and severities: a slope of 1 means "
        "that the two grow in proportion.",
        lambda results, after: log_lines(
            tc.study.log_fits(results.main, metric=results.metric, **results.of_lens(after))
        ),
    ),
    _Question(
        "residuals",
        "Scores beyond error",
        "Log loss and Brier score after the part that the error rate explains is taken away. Models more than two standard "
        "errors from the line stand out; below it is better.",
        lambda results, after: standing_out(
            tc.study.residuals(results.compared, metrics=results.scores, recalibrator=after)
        ),
    ),
    _Question(
        "bins",
        "The number of bins decides",
        "The slope of binned errors on the error rate, by number of bins, beside that of estimators without the bias of bins. "
        "A trend that only many bins show is made by the estimator.",
        lambda results, after: bins(tc.study.bin_trend(results.frame, **results.of_lens(after))),
    ),
    _Question(
        "ranks",
        "Do estimators agree?",
        "Kendall's tau between the rankings of the models by two metrics, and how many pairs of models they order in opposite "
        "ways. A flip is supported when the intervals of both metrics tell the two models apart.",
        lambda results, after: ranks(
            tc.study.rank_agreement(results.compared, metrics=results.metrics, **results.of_lens(after))
        ),
    ),
)
_TEMPERATURES = _Question(
    "temperatures",
    "Fitted temperatures",
    "What was fitted on the clean split of every model. A temperature above 1 means that the model was overconfident there, "
    "below 1 underconfident.",
    lambda results, _: temperatures(results.store.fits(), results.frame),
)


def analyses(store: Any, frame: Any) -> list[Analysis]:
    """Every analysis that the results allow, with the study's main metric, before and after recalibration; one they do not allow
    says why."""
    results = _Results.of(store, frame)
    return [
        _section(_AGAINST_ERROR, results, results.recalibrators),
        *(_section(_effect(k, after, results.name), results) for k, after in enumerate(results.recalibrators[1:], 1)),
        _section(_TEMPERATURES, results),
        *(_section(question, results, results.recalibrators) for question in _OTHERS),
    ]


def _effect(place: int, recalibrator: str, name: str) -> _Question:
    return _Question(
        f"after-{place}",
        f"What {recalibrator} does",
        f"{name[0].upper()}{name[1:]} before and after {recalibrator}, mean over models. Tau compares the two rankings: "
        "1 means that recalibration left it as it was.",
        lambda results, _: effect(
            tc.study.effect_of_recalibration(
                results.store, after=recalibrator, metric=results.metric, lens=results.lens
            )
        ),
    )


def _section(question: _Question, results: _Results, recalibrators: Sequence[str] = ()) -> Analysis:
    """The answer as a section; with `recalibrators`, given for each, and every row says for which."""
    notes: list[str] = []
    header: list[str] = []
    rows: list[Row] = []
    for after in recalibrators or ("none",):
        words = "before" if after == "none" else f"after {after}"
        try:
            remarks, names, cells = question.answer(results, after)
        except InputError as error:
            notes.append(f"Not for this study{f', {words}' if len(recalibrators) > 1 else ''}: {error}.")
            continue
        several = len(recalibrators) > 1
        header = [*names, "Recalibration"] if several else list(names)
        notes += [f"{note} [{words}]" if several else note for note in remarks]
        rows += [[*row, (words, words)] if several else row for row in cells]
    kept = rows[:MOST_ROWS]
    return Analysis(
        question.id,
        question.heading,
        question.intro.replace("{name}", results.name).replace("{metrics}", ", ".join(results.metrics)),
        notes=[_sentence(note) for note in notes],
        header=header,
        rows=[[shown for shown, _ in row] for row in kept],
        sorts=[[sort for _, sort in row] for row in kept],
        more=f"The first {MOST_ROWS} of {len(rows):,} rows." if len(rows) > MOST_ROWS else "",
    )


def _sentence(note: str) -> str:
    return note[:1].upper() + note[1:] + ("" if note.endswith((".", "?")) else ".")


# ----------------------------------------------------------------------------------------------------
# The sections of the study page as HTML. Selectors, charts and the table of models are filled by the scripts

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
        ("Command", made.command or "tc.report(store, ...) from Python"),
        ("Versions", ", ".join(f"{name} {number}" for name, number in made.versions.items())),
    ]
    return terms(rows, "box")


# ----------------------------------------------------------------------------------------------------
# The page of a comparison of interventions: its answer, its figures and its tables, in one file that runs nothing


class Tabled(Protocol):
    """A comparison of interventions: what its page says."""

    def verdict(self) -> list[str]:
        """Its answer, in sentences."""

    def tables(self) -> dict[str, tuple[list[str], list[list[str]]]]:
        """Title -> header and rows."""

    def facts(self) -> list[str]:
        """What was judged, in a few words."""


def write_interventions(result: Tabled, title: str, figures: list[Path], path: Path) -> Path:
    """Write the page; `figures` are .png files, which it holds."""
    answer = "".join(element("li", escaped(line)) for line in result.verdict())
    parts = [section("answer", "Does what lowers the usual error lower the others?", element("ul", answer))]
    for figure in figures:
        name = figure.stem.replace("_", " ")
        image = f'<img alt="{escaped(name)}" src="data:image/png;base64,{b64encode(figure.read_bytes()).decode()}">'
        parts.append(section(figure.stem, name[:1].upper() + name[1:], element("figure", image)))
    for i, (name, (header, rows)) in enumerate(result.tables().items()):
        cells = [[Cell(text) for text in row] for row in rows]
        parts.append(section(f"table-{i}", name, table(name, header, cells, id_=f"numbers-{i}")))
    style = f"{asset('page.css')} figure img {{ max-width: 100%; background: white; }}"
    facts = paragraph(" · ".join(result.facts()), class_="facts")
    body = element("header", element("div", element("h1", escaped(title)), facts)) + "\n" + element("main", *parts)
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return write_whole(path, document_of(title, style, body, policy))


# ----------------------------------------------------------------------------------------------------
# Everything the page of a study says, as one record: computed here, drawn elsewhere

_ELSEWHERE = 64_000  # bytes of styles, scripts and words
_LEVEL = 0.95
_MOST_WARNINGS = 5


def gather_study(store: Any, *, title: str | None, megabytes: float, command: str | None) -> StudyContent:
    """Numbers of the explorer, tables of the analyses, and where all of it came from."""
    frame, meta = store.frame(), store.meta()
    refuse_undrawable(frame)
    sections = analyses(store, frame)
    tables = sum(len(analysis_html(section)) for section in sections)
    options.between(megabytes, "megabytes", 0, 10_000)
    room = round(megabytes * 1e6) - len(charting_bundle()) - _ELSEWHERE - tables
    if room < 50_000:
        raise InputError(f"{megabytes:g} MB are too few: the charting library alone takes 0.9; ask for 1.5 or more")
    packed = explorer_numbers(frame, room=round(0.5 * room))
    diagrams = explorer_diagrams(frame, store.diagrams(), packed.numbers, room=room - packed.size)
    level = frame["level"].drop_nulls().max()
    name = str(meta.get("name") or "Study")
    return StudyContent(
        title=title or name,
        facts=[
            f"{len(packed.numbers.models)} models",
            *_counted(frame, "dataset", "dataset"),
            *_counted(frame, "severity", "severity", "severities"),
            *_counted(frame, "seed", "seed"),
            f"{frame.height:,} numbers",
        ],
        explorer=Explorer(packed.numbers, diagrams, _LEVEL if level is None else float(level), _start(packed.numbers)),
        left_out=packed.left_out,
        warnings=_warnings(frame),
        analyses=sections,
        reproduce=Provenance(now(), versions(), command, name, str(meta.get("truecal", meta.get("version", "")))),
    )


def _warnings(frame: Any) -> list[str]:
    """The warnings that numbers of the store carry, those of most numbers first."""
    import polars as pl

    kinds = (
        frame.filter(pl.col("warnings") != "")
        .group_by("warnings")
        .agg(pl.len())
        .sort(["len", "warnings"], descending=[True, False])
    )
    listed = [f"{count:,} numbers: {text}" for text, count in kinds.rows()]
    more = len(listed) - _MOST_WARNINGS
    return [*listed[:_MOST_WARNINGS], *([f"and {more} more"] if more > 0 else [])]


def _counted(frame: Any, column: str, one: str, many: str | None = None) -> list[str]:
    count = frame[column].n_unique()
    return [f"{count} {one if count == 1 else many or one + 's'}"]


def _start(numbers: Numbers) -> Start:
    """What is shown first: the first measure that is no error rate, on the clean data with most rows, not recalibrated."""
    measure = next(i for i, m in enumerate(numbers.measures) if m.metric != "error")

    def order(at: int) -> tuple[bool, bool, float, float]:
        place = numbers.places[at]
        return place.selection != "all", place.recalibrator != "none", place.severity, -(place.n or 0)

    return Start(measure, min(range(len(numbers.places)), key=order))
