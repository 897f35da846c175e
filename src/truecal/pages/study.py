"""The pages of a study and of a comparison of interventions: analyses as tables with their figures."""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf, isfinite
from pathlib import Path
from typing import Any

import truecal as tc
from truecal import digits
from truecal.errors import InputError, extra
from truecal.pages.records import Provenance
from truecal.pages.render import Page, asset, picture, render, write_page
from truecal.plot.figures import FigureData, choose_clean, draw_figure
from truecal.study.interventions.comparison import InterventionComparison
from truecal.study.store import pl

_MAX_ROWS = 400  # of the table of an analysis
_MAX_RANKED = 6  # metrics whose rankings are compared
_MAX_WARNINGS = 5
_SCORES = ("nll", "brier")
_LENSES = ("top-label", "", "class-wise", "all-label")


@cache
def _analysis_texts() -> dict[str, Any]:
    """Return the contents of specs/analyses.json: questions, names of metrics, and their order on the page."""
    words: dict[str, Any] = json.loads(asset("specs/analyses.json"))
    return words


def describe_metric(metric: str, bins: int | None, norm: float | None, scheme: str | None) -> str:
    """Name a metric in words; bins, norm and scheme are left out where None.

    >>> describe_metric("ece-width-15-l1", 15, 1.0, "width"), describe_metric("nll", None, None, None)
    ('calibration error (binned, 15 bins, equal width, mean absolute)', 'log loss')
    """
    texts = _analysis_texts()
    if metric in texts["metrics"]:
        return str(texts["metrics"][metric])
    words = [texts["estimators"].get(metric.partition("-")[0], metric)]
    words += [] if bins is None else [f"{bins} bins"]
    words += [f"equal {scheme}"] if scheme in ("width", "mass") else []
    norms = {1.0: "mean absolute", 2.0: "root mean square", inf: "maximum"}
    words += [] if norm is None else [norms.get(norm, f"norm {norm:g}")]
    return f"calibration error ({', '.join(words)})"


def _metric_rank(measure: tuple[str, str]) -> tuple[int, int, int, str, str]:
    """Return the sort key of (lens, metric): error rates first, then lens, then metric in the order of specs/analyses.json.

    Lenses of single classes come last.
    """
    lens, metric = measure
    lens_rank = _LENSES.index(lens) if lens in _LENSES else len(_LENSES)
    order = _analysis_texts()["order"]
    listed = metric in order
    metric_rank = order.index(metric) if listed else len(order)
    return (metric != "error", lens_rank if listed else lens_rank + len(_LENSES), metric_rank, lens, metric)


def _ranked_metrics(frame: Any) -> list[tuple[str, str]]:
    """Return the pairs (lens, metric) of a store without error rates and confidences, in the order of `_metric_rank`."""
    pairs = frame.select("lens", "metric").unique().rows()
    return sorted((pair for pair in pairs if pair[1] not in ("error", "confidence")), key=_metric_rank)


# ----------------------------------------------------------------------------------------------------
# The analyses of a study as tables: headings, intros and columns stand in specs/analyses.json

Answer = tuple[Sequence[str], Iterable[Mapping[str, Any]]]  # notes and rows


def _table_cell(kind: str, values: list[Any]) -> tuple[str, float | str]:
    """Return the text of a table cell and its sort key.

    `kind` is text, yes, not, ratio or limits, else a number format; with a "?" missing numbers are "unknown", else "".

    >>> _table_cell("ratio", [1, 4]), _table_cell("limits", [0.1, 0.2]), _table_cell(".2f?", [None])
    (('1 of 4', 0.25), ('0.100 to 0.200', 0.1), ('unknown', -1000000000.0))
    """
    if kind in ("text", "yes", "not"):
        words = {"yes": "yes" if values[0] else "", "not": "no" if values[0] else "yes"}.get(kind)
        text = " and ".join(str(value) for value in values if value is not None) if words is None else words
        return text, text
    if any(value is None or not isfinite(value) for value in values):
        return "unknown" if kind.endswith("?") else "", -1e9
    if kind == "ratio":
        return f"{values[0]} of {values[1]}", values[0] / max(values[1], 1)
    if kind == "limits":
        return f"{values[0]:.3f} to {values[1]:.3f}", float(values[0])
    return format(values[0], kind.rstrip("?")), float(values[0])


@dataclass(frozen=True, eq=False)
class Results:
    """Results that analyses read: `frame` of one lens, its main `metric`, and the `metrics` that are compared."""

    frame: Any
    lens: str
    metric: str
    metrics: tuple[str, ...]
    store: Any

    @classmethod
    def of(cls, study: Any, frame: Any) -> "Results":
        """Choose the main metric and its lens, the first of `_ranked_metrics`, and keep the results of that lens."""
        ranked = _ranked_metrics(frame)
        lens, metric = ranked[0]
        metrics = tuple(name for metric_lens, name in ranked if metric_lens == lens)[:_MAX_RANKED]
        return cls(frame.filter(pl.col("lens").is_in([lens, ""])), lens or "top-label", metric, metrics, study)

    @property
    def name(self) -> str:
        """The main metric in words."""
        about = self.frame.filter(self.frame["metric"] == self.metric).row(0, named=True)
        return describe_metric(self.metric, about["bins"], about["norm"], about["scheme"])

    @property
    def recalibrators(self) -> list[str]:
        """Names of the recalibrators, "none" (before recalibration) first."""
        return ["none", *sorted(set(self.frame["recalibrator"]) - {"none"})]

    @property
    def scores(self) -> list[str]:
        """Names of the proper scores among the metrics of the results: of nll and brier those that are there."""
        return [name for name in _SCORES if name in set(self.frame["metric"])]


def _temperature_ranges(results: Results) -> Answer:
    """Return least, median and largest fitted temperature by dataset and family, as rows without notes.

    A row is dataset, family, models (their number), min, median, max, over (temperatures above 1), fits (their number) and
    rows (largest number of rows of a fit), by dataset and rising median. Raises InputError where there are no temperatures.
    """
    about = results.frame.select("model", "family").unique("model", keep="first")
    fits = results.store.fits()
    fits = fits.filter(pl.col("temperature").is_not_null()).join(about, on="model", how="left")
    if not fits.height:
        raise InputError("it holds no fitted temperatures")
    groups = fits.group_by("dataset", "family").agg(
        pl.col("model").n_unique().alias("models"),
        *(getattr(pl.col("temperature"), name)().alias(name) for name in ("min", "median", "max")),
        (pl.col("temperature") > 1).sum().alias("over"),
        pl.len().alias("fits"),
        pl.col("rows").max(),
    )
    return [], groups.sort("dataset", "median").rows(named=True)


def _run_analysis(question: str, results: Results, after: str) -> Answer:
    """Run the analysis of a question after a recalibrator, as specs/analyses.json says; return its notes and rows."""
    if question == "temperatures":
        return _temperature_ranges(results)
    spec = _analysis_texts()["questions"][question]["analysis"]
    values = {
        "after": after,
        "reference": results.store.references() or None,
        "scores": results.scores,
        **vars(results),
    }
    settings = {name: values[value] for name, value in spec["arguments"].items()}
    result = getattr(tc.study, spec["name"])(values[spec.get("source", "frame")], **settings)
    table = result.frame(spec.get("table"))
    table = table.filter(pl.sql_expr(spec["rows"])) if "rows" in spec else table
    order = [pl.sql_expr(text) for text in spec.get("sort", ())]
    return result.notes, (table.sort(order, maintain_order=True) if order else table).to_dicts()


def analyses(results: Results) -> list[dict[str, Any]]:
    """Return a section per analysis (see `_section`), with the study's main metric, before and after recalibration.

    Questions are those of specs/analyses.json, in order; "after" gets a section per recalibrator. An analysis that is not
    possible gives a note with the reason; a note that holds for several sections stands in the first of them.
    """
    sections = []
    for question in _analysis_texts()["questions"]:
        if question == "after":  # a section per recalibrator
            for k, name in enumerate(results.recalibrators[1:], 1):
                sections.append(_section(f"after-{k}", question, results, [name], name))
        else:
            is_temperatures = question == "temperatures"
            sections.append(
                _section(question, question, results, ["none"] if is_temperatures else results.recalibrators)
            )
    stated: set[str] = set()
    for section in sections:  # a note that holds for several analyses is stated once
        section["notes"] = [note for note in section["notes"] if note not in stated]
        stated.update(section["notes"])
    return sections


def _section(name: str, question: str, results: Results, recalibrators: list[str], effect: str = "") -> dict[str, Any]:
    """Return heading, intro, notes and table of a question, answered for each recalibrator; `effect` names one in the words.

    Keys are id (`name`), heading, intro, figure (an address or None), notes, header, rows, sorts (of each cell, what it is sorted
    by) and more (how many rows are not listed). With several recalibrators the last column names that of a row.
    """
    several_recalibrators = len(recalibrators) > 1
    spec = _analysis_texts()["questions"][question]
    metrics = ", ".join(results.metrics)
    named = {"name": results.name, "metrics": metrics, "recalibrator": effect}
    notes: list[str] = []
    rows: list[list[tuple[str, float | str]]] = []
    for after in recalibrators:
        words = "before" if after == "none" else f"after {after}"
        when = f" ({words}{' recalibration' if after == 'none' else ''})" if several_recalibrators else ""
        try:
            remarks, answers = _run_analysis(question, results, after)
        except InputError as error:
            notes.append(f"Not possible for this study{when}: {error}")
            continue
        notes += [f"{note}{when}" for note in remarks]
        for row in answers:
            cells = [_table_cell(kind, [row[field] for field in fields]) for _, kind, *fields in spec["columns"]]
            rows.append([*cells, (words, words)] if several_recalibrators else cells)
    listed = rows[:_MAX_ROWS]
    figure = _draw_figure(spec["figure"], results, effect or None) if "figure" in spec else None
    return {
        "id": name,
        **{key: re.sub(r"\{(\w+)\}", lambda match: named[match[1]], spec[key]) for key in ("heading", "intro")},
        "figure": figure,
        "notes": [_capitalized(note) + ("" if note.endswith((".", "?")) else ".") for note in notes],
        "header": [title for title, *_ in spec["columns"]] + (["Recalibration"] if several_recalibrators else [])
        if rows
        else [],
        "rows": [[words for words, _ in row] for row in listed],
        "sorts": [[sort for _, sort in row] for row in listed],
        "more": f"The first {_MAX_ROWS} of {len(rows):,} rows." if len(rows) > _MAX_ROWS else "",
    }


def _draw_figure(name: str, results: Results, after: str | None) -> str | None:
    """Draw a figure of `truecal study figure` for the main metric; return its address, None where the results do not allow it."""
    try:
        data = FigureData.of(results.store, metric=results.metric, after=after)
        if name == "natural" and len(data.natural_datasets()) == 1:  # the figure of recalibration shows it
            return None
        figure = draw_figure(data, name).plot().figure_
    except InputError:
        return None
    return picture(figure)


def _capitalized(words: str) -> str:
    """Return text with a capital first letter.

    >>> _capitalized("no model"), _capitalized("")
    ('No model', '')
    """
    return words[:1].upper() + words[1:]


# ----------------------------------------------------------------------------------------------------
# The page of a study


class StudyPage(Page):
    """The page of a study: its finding, an analysis per section with a figure and a table, warnings and provenance."""

    template = "study.html"

    def drawn(self) -> dict[str, object]:
        """Return nothing: figures are pictures, which no script draws."""
        return {}


def gather_study(store: Any, *, title: str | None = None, command: str | None = None) -> StudyPage:
    """Compute the page of the store of a study; refuse an empty store, and one without error or another metric.

    `title` is by default the name of the study; `command` is the command line that the page shows, None for a program's page.
    """
    frame, meta = store.frame(), store.meta()
    if frame.height == 0:
        raise InputError("the store holds no finished result yet; run the study first")
    metrics = set(frame["metric"])
    if "error" not in metrics or metrics <= {"error", "confidence"}:
        raise InputError(
            "the page draws calibration against error: the study must hold the metric error and another one"
        )
    extra("matplotlib")  # refuses before anything is computed
    name = str(meta.get("name") or "Study")
    counts = [
        *((frame[column].n_unique(), column, f"{column}s") for column in ("model", "dataset", "seed")),
        (frame["severity"].n_unique(), "severity", "severities"),
    ]
    results = Results.of(store, frame)
    return StudyPage(
        title=title or name,
        facts=[*(f"{n} {one if n == 1 else many}" for n, one, many in counts), f"{frame.height:,} results"],
        finding=_describe_best(results),
        level=frame["level"].drop_nulls().max() or 0.95,
        warnings=_warnings(frame),
        analyses=analyses(results),
        provenance=Provenance({}, command, {"study": name}),
    )


def _describe_best(results: Results) -> tuple[str, str]:
    """Say which model has the lowest metric on the clean dataset that figures show, and whether intervals support that.

    Returns the finding and a sentence: how many other models have an interval that begins at or below the end of that of
    the best one,
    or why that is unknown.
    """
    try:
        clean = choose_clean(results.store, results.frame, None)
        choice: dict[str, Any] = {"metric": results.metric, "lens": results.lens, "dataset": clean}
        points = tc.study.error_against_calibration(results.frame, **choice).frame()
        models = points.filter(pl.col("severity") == 0).sort("value", "model")
        if not models.height:
            raise InputError(f"no model has a {results.name} on {clean}")
    except InputError as error:
        return "The models cannot be ranked.", f"{_capitalized(str(error))}."
    best, others = models.row(0, named=True), models[1:]
    value = digits.with_interval(best["value"], best["low"], best["high"])
    finding = f"{best['model']} has the lowest {results.name} on {best['dataset']} before recalibration: {value}."
    if not others.height:
        return finding, "There is no other model to compare it with."
    if models["low"].null_count() or models["high"].null_count():
        return finding, "Without intervals it is unknown whether the first place is due to chance."
    overlaps = others.filter(pl.col("low") <= best["high"]).height
    if not overlaps:
        return finding, f"Its interval lies below those of all {others.height} other models."
    other_models = f"{overlaps} of the {others.height} other models"
    return finding, f"The intervals of {other_models} overlap with it: the first place is not supported by the data."


def _warnings(frame: Any) -> list[str]:
    """Return the most frequent warnings of a store as "count results: text", at most _MAX_WARNINGS, and how many more."""
    kinds = frame.filter(pl.col("warnings") != "").group_by("warnings").agg(pl.len())
    kinds = kinds.sort(["len", "warnings"], descending=[True, False])
    listed = [f"{count:,} results: {text}" for text, count in kinds.rows()]
    remaining = len(listed) - _MAX_WARNINGS
    return [*listed[:_MAX_WARNINGS], *([f"and {remaining} more"] if remaining > 0 else [])]


# ----------------------------------------------------------------------------------------------------
# The page of a comparison of interventions


def write_interventions(result: InterventionComparison, title: str, figures: list[Path], path: Path) -> Path:
    """Write the page of a comparison of interventions with its .png `figures` embedded, and return its path."""
    images = {figure.stem: b64encode(figure.read_bytes()).decode() for figure in figures}
    frames = result.tables().items()
    tables = {title: (list(frame.columns), [list(row.values()) for row in frame]) for title, frame in frames}
    page = {"title": title, "facts": result.facts(), "answers": result.verdict(), "tables": tables}
    return write_page(path, lambda: render("interventions.html", page={**page, "images": images}))
