"""The pages of a study and of a comparison of interventions: analyses as tables, and the numbers that the explorer draws."""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from math import inf, isfinite
from pathlib import Path
from typing import Any

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.pages.records import document, now, versions
from truecal.pages.render import asset, charting_bundle, render, write_page
from truecal.study import store
from truecal.study.interventions.comparison import InterventionComparison
from truecal.study.store import pl

_MAX_ROWS = 120  # of the table of an analysis
_MAX_RANKED = 6  # metrics whose rankings are compared
_MAX_WARNINGS = 5
_MAX_COVARIATE_VALUES = 12  # values with distinct colours
_REST_OF_PAGE = 90_000  # bytes of styles, scripts and words
_CELL = 30  # bytes of the markup of a table cell
_VALUE_UNIT, _LIMIT_UNIT, _DIAGRAM_UNIT = 1_000_000, 10_000, 10_000  # numbers are whole multiples of 1 / these
_CONDITION = ["dataset", "severity", "recalibrator", "selection"]
_SCORES = ("nll", "brier")
_LENSES = ("top-label", "", "class-wise", "all-label")
_SCHEMES = ("mass", "width")


@cache
def _analysis_texts() -> dict[str, Any]:
    """Return the contents of specs/analyses.json: questions, names of metrics, and their order on the page."""
    words: dict[str, Any] = json.loads(asset("specs/analyses.json"))
    return words


def measure_label(metric: str, bins: int | None, norm: float | None, scheme: str | None) -> str:
    """Name a metric in words; bins, norm and scheme are left out where None.

    >>> measure_label("ece-width-15-l1", 15, 1.0, "width"), measure_label("nll", None, None, None)
    ('Binned error, 15 bins, equal width, mean absolute', 'Log loss (NLL)')
    """
    titles = _analysis_texts()["metrics"]
    words = [titles.get(metric, titles.get(metric.partition("-")[0], metric))]
    words += [] if bins is None else [f"{bins} bins"]
    words += [f"equal {scheme}"] if scheme in ("width", "mass") else []
    norms = {1.0: "mean absolute", 2.0: "root mean square", inf: "maximum"}
    return ", ".join(words if norm is None else [*words, norms.get(norm, f"norm {norm:g}")])


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
        """The main metric in words, beginning with a lower-case letter."""
        about = self.frame.filter(self.frame["metric"] == self.metric).row(0, named=True)
        label = measure_label(self.metric, about["bins"], about["norm"], about["scheme"])
        return label[0].lower() + label[1:]

    @property
    def recalibrators(self) -> list[str]:
        """Names of the recalibrators, "none" (before recalibration) first."""
        return ["none", *sorted(set(self.frame["recalibrator"]) - {"none"})]

    @property
    def scores(self) -> list[str]:
        """Names of the proper scores among the results: nll, brier."""
        return [name for name in _SCORES if name in set(self.frame["metric"])]


def _temperature_ranges(results: Results) -> Answer:
    """Return least, median and largest fitted temperature by dataset and family, as rows without notes."""
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


def analyses(study: Any, frame: Any) -> list[dict[str, Any]]:
    """Return a section per analysis, with the study's main metric, before and after recalibration.

    An analysis that is not possible gives a note with the reason.
    """
    results = Results.of(study, frame)
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
    return sections


def _section(name: str, question: str, results: Results, recalibrators: list[str], effect: str = "") -> dict[str, Any]:
    """Return heading, intro, notes and table of a question, answered for each recalibrator; `effect` names one in the words."""
    several_recalibrators = len(recalibrators) > 1
    spec = _analysis_texts()["questions"][question]
    metrics = ", ".join(results.metrics)
    named = {"name": results.name, "Name": _capitalized(results.name), "metrics": metrics, "recalibrator": effect}
    notes: list[str] = []
    rows: list[list[tuple[str, float | str]]] = []
    for after in recalibrators:
        words = "before" if after == "none" else f"after {after}"
        try:
            remarks, answers = _run_analysis(question, results, after)
        except InputError as error:
            notes.append(f"Not for this study{f', {words}' if several_recalibrators else ''}: {error}.")
            continue
        notes += [f"{note} [{words}]" if several_recalibrators else note for note in remarks]
        for row in answers:
            cells = [_table_cell(kind, [row[field] for field in fields]) for _, kind, *fields in spec["columns"]]
            rows.append([*cells, (words, words)] if several_recalibrators else cells)
    listed = rows[:_MAX_ROWS]
    return {
        "id": name,
        **{key: re.sub(r"\{(\w+)\}", lambda match: named[match[1]], spec[key]) for key in ("heading", "intro")},
        "notes": [_capitalized(note) + ("" if note.endswith((".", "?")) else ".") for note in notes],
        "header": [title for title, *_ in spec["columns"]] + (["Recalibration"] if several_recalibrators else [])
        if rows
        else [],
        "rows": [[words for words, _ in row] for row in listed],
        "sorts": [[sort for _, sort in row] for row in listed],
        "more": f"The first {_MAX_ROWS} of {len(rows):,} rows." if len(rows) > _MAX_ROWS else "",
    }


def _capitalized(words: str) -> str:
    """Return text with a capital first letter."""
    return words[:1].upper() + words[1:]


# ----------------------------------------------------------------------------------------------------
# The numbers that the explorer draws: one mean over seeds per model, place and measure, packed as whole numbers


def explorer_numbers(frame: Any, *, room: int) -> tuple[dict[str, Any], list[str]]:
    """Return the results of a store packed into about `room` bytes of JSON, and the labels of metrics that do not fit.

    Metrics go in by `_metric_rank`; the error rate and one other metric are always included.
    """
    models = explorer_models(frame)
    index = {model["name"]: i for i, model in enumerate(models)}
    means = _mean_over_seeds(frame)
    counted = means.group_by(_CONDITION).agg(pl.col("n").max(), pl.col("seeds").max()).sort(_CONDITION)
    condition_index = {tuple(row): i for i, row in enumerate(counted.select(_CONDITION).iter_rows())}
    measures: list[dict[str, Any]] = []
    packed: list[Any] = []
    left_out: list[str] = []
    used = 0
    groups = means.partition_by(["lens", "metric"], as_dict=True)
    for lens, metric in sorted(groups, key=_metric_rank):
        if metric == "confidence":
            continue
        rows = groups[lens, metric]
        columns = _pack_columns(rows, index, condition_index)
        about = rows.row(0, named=True)
        label = measure_label(metric, about["bins"], about["norm"], about["scheme"])
        size = len(json.dumps(columns, separators=(",", ":")))
        drawable = any(measure["metric"] != "error" for measure in measures)
        if used + size > room and metric != "error" and drawable:  # there is always something to draw
            left_out.append(f"{label}, {lens or 'whole prediction'}")
            continue
        used += size
        binned = metric.startswith("ece-")
        measures.append({"lens": lens, "metric": metric, "label": label, "bins": about["bins"], "plain": binned})
        packed.append(columns)
    numbers = {
        "models": models,
        "places": counted.select(*_CONDITION, "n", "seeds").rows(named=True),
        "measures": measures,
        "columns": packed,
        "error": next(i for i, measure in enumerate(measures) if measure["metric"] == "error"),
        "units": {"value": _VALUE_UNIT, "end": _LIMIT_UNIT},
    }
    return numbers, left_out


def _mean_over_seeds(frame: Any) -> Any:
    """Return means over seeds by condition, lens, metric and model, with scheme, bins and norm of the metric."""
    parts = []
    for (recalibrator, selection), part in frame.partition_by("recalibrator", "selection", as_dict=True).items():
        if not part["value"].is_finite().any():  # a selection of no rows
            continue
        metrics, lenses = (part[name].unique().to_list() for name in ("metric", "lens"))
        means = tc.study.points(part, metrics, lens=lenses, recalibrator=recalibrator, selection=selection)
        parts.append(means.frame().with_columns(recalibrator=pl.lit(recalibrator), selection=pl.lit(selection)))
    made_of = frame.group_by("metric").agg(*(pl.col(name).first() for name in ("scheme", "bins", "norm")))
    return pl.concat(parts).join(made_of, on="metric", how="left").sort([*_CONDITION, "lens", "metric", "model"])


def explorer_models(frame: Any) -> list[dict[str, Any]]:
    """Return name, family, size and covariates (`groups`) of every model; covariates have 2 to _MAX_COVARIATE_VALUES values."""
    covariates = [name for name in frame.columns if name not in store.RESULTS]
    firsts = [pl.col(name).first() for name in ("family", "size", *covariates)]
    changing = [pl.col(name).drop_nulls().n_unique().alias(f"{name} count") for name in covariates]
    models = frame.group_by("model").agg(*firsts, *changing).sort("model")
    # covariates of models, not of datasets, with few values
    grouped = [
        name
        for name in covariates
        if models[f"{name} count"].max() == 1 and 2 <= models[name].n_unique() <= _MAX_COVARIATE_VALUES
    ]
    return [
        {
            "name": row["model"],
            "family": "(no family)" if row["family"] is None else row["family"],
            "size": row["size"],
            "groups": {
                name: f"{row[name]:g}" if isinstance(row[name], float) else str(row[name])
                for name in grouped
                if row[name] is not None
            },
        }
        for row in models.iter_rows(named=True)
    ]


def _pack_columns(rows: Any, index: dict[str, int], condition_index: dict[tuple[Any, ...], int]) -> dict[str, Any]:
    """Return {condition: [values, lows, highs]}, each a list by model, as whole numbers of their units.

    Missing numbers are None, and so is a list of nothing else.
    """
    columns: dict[str, list[Any]] = {}
    for row in rows.select(*_CONDITION, "model", "value", "low", "high").rows():
        lists = columns.setdefault(str(condition_index[row[:4]]), [[None] * len(index) for _ in range(3)])
        for values, number, unit in zip(lists, row[5:], (_VALUE_UNIT, _LIMIT_UNIT, _LIMIT_UNIT), strict=True):
            values[index[row[4]]] = round(number * unit) if number is not None and isfinite(number) else None
    return {
        condition: [None if set(values) == {None} else values for values in lists]
        for condition, lists in columns.items()
    }


def explorer_diagrams(frame: Any, diagrams: Any, numbers: Mapping[str, Any], *, room: int) -> dict[str, Any]:
    """Return reliability diagrams packed into at most `room` bytes, by lens, scheme and severity; clean data first.

    `complete` says whether all fit.
    """
    jobs = frame.group_by("job").agg(*(pl.col(name).first() for name in ("model", "dataset", "severity", "seed")))
    first = jobs.filter(pl.col("seed") == pl.col("seed").min().over("model", "dataset", "severity"))
    filled = diagrams.filter((pl.col("count") > 0) & ~pl.col("lens").str.starts_with("class:"))
    joined = filled.join(first, on="job").sort("lens", "scheme", "severity", "bin")
    model_of = {model["name"]: i for i, model in enumerate(numbers["models"])}
    condition_index = {tuple(place[name] for name in _CONDITION): i for i, place in enumerate(numbers["places"])}
    groups = joined.partition_by("lens", "scheme", "severity", as_dict=True)
    kinds: list[dict[str, str]] = []
    drawn: list[dict[str, Any]] = []
    used, complete = 0, True

    def rank(group: tuple[str, str, float]) -> tuple[int, int, float, str]:
        """Return the sort key of (lens, scheme, severity): in the order of _LENSES, _SCHEMES and severity."""
        lens, scheme, severity = group
        lens_rank = _LENSES.index(lens) if lens in _LENSES else len(_LENSES)
        return lens_rank, _SCHEMES.index(scheme) if scheme in _SCHEMES else len(_SCHEMES), severity, lens

    for lens, scheme, severity in sorted(groups, key=rank):
        packed = _pack_diagrams(groups[lens, scheme, severity], model_of, condition_index)
        used += len(json.dumps(packed, separators=(",", ":")))
        if used > room:
            complete = False
            break
        kind = {"lens": lens, "scheme": scheme}
        if kind not in kinds:
            kinds.append(kind)
            drawn.append({})
        drawn[kinds.index(kind)].update(packed)
    return {"kinds": kinds, "drawn": drawn, "unit": _DIAGRAM_UNIT, "complete": complete}


def _pack_diagrams(rows: Any, model_of: dict[str, int], condition_index: dict[tuple[Any, ...], int]) -> dict[str, Any]:
    """Return {"condition/model": [scores, outcomes, counts]} as whole numbers; equal counts are given once."""
    drawn: dict[str, list[list[float]]] = {}
    for *place, model, score, outcome, count in rows.select(
        *_CONDITION, "model", "confidence", "outcome", "count"
    ).rows():
        if tuple(place) not in condition_index:  # nothing was judged there
            continue
        lists = drawn.setdefault(f"{condition_index[tuple(place)]}/{model_of[model]}", [[], [], []])
        packed_values = (round(score * _DIAGRAM_UNIT), round(outcome * _DIAGRAM_UNIT), round(count, 2))
        for values, number in zip(lists, packed_values, strict=True):
            values.append(int(number) if float(number).is_integer() else number)
    for lists in drawn.values():  # bins of equal mass mostly have equal counts: one number says it
        if len(set(lists[2])) == 1:
            del lists[2][1:]
    return drawn


# ----------------------------------------------------------------------------------------------------
# The page of a study


@dataclass(frozen=True)
class StudyPage:
    """Contents of the page of a study, as plain values that JSON can hold."""

    title: str
    facts: Sequence[str]
    explorer: Mapping[str, Any]
    left_out: Sequence[str]
    warnings: Sequence[str]
    analyses: Sequence[Mapping[str, Any]]
    reproduce: Mapping[str, Any]

    def record(self) -> dict[str, object]:
        """Return the page as a record for JSON, with schema and version."""
        return document("study-page", **asdict(self))

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "StudyPage":
        """Return the page of a `record()`, which may come from a file."""
        return cls(**{name: record[name] for name in cls.__dataclass_fields__})

    def html(self) -> str:
        """Return the HTML text of the page."""
        return render("study.html", self.explorer, page=self)


def gather_study(study: Any, *, title: str | None, megabytes: float, command: str | None) -> StudyPage:
    """Compute the page of a store of at most `megabytes`: numbers of the explorer, diagrams, analyses and provenance.

    Half of the bytes that analyses leave are for numbers, the rest for diagrams. Refuses an empty store, and one without error or
    another metric.
    """
    frame, meta = study.frame(), study.meta()
    if frame.height == 0:
        raise InputError("the store holds no finished result yet; run the study first")
    metrics = set(frame["metric"])
    if "error" not in metrics or metrics <= {"error", "confidence"}:
        raise InputError(
            "the page draws calibration against error: the study must hold the metric error and another one"
        )
    options.between(megabytes, "megabytes", 0, 10_000)
    sections = analyses(study, frame)
    cells = sum(len(row) for part in sections for row in part["rows"])
    tables = len(json.dumps(sections)) + _CELL * cells
    # bytes for numbers and diagrams, beside what every page holds
    room = round(megabytes * 1e6) - len(charting_bundle()) - _REST_OF_PAGE - tables
    if room < 50_000:
        raise InputError(f"{megabytes:g} MB are too few: the charting library alone takes 0.9; ask for 1.5 or more")
    numbers, left_out = explorer_numbers(frame, room=round(0.5 * room))
    used = len(json.dumps(numbers, separators=(",", ":")))
    diagrams = explorer_diagrams(frame, study.diagrams(), numbers, room=room - used)
    level = frame["level"].drop_nulls().max()
    name = str(meta.get("name") or "Study")
    counts = [
        (len(numbers["models"]), "model", "models"),
        *((frame[column].n_unique(), column, f"{column}s") for column in ("dataset", "seed")),
        (frame["severity"].n_unique(), "severity", "severities"),
    ]
    return StudyPage(
        title=title or name,
        facts=[*(f"{n} {one if n == 1 else many}" for n, one, many in counts), f"{frame.height:,} numbers"],
        explorer={
            "numbers": numbers,
            "diagrams": diagrams,
            "level": 0.95 if level is None else float(level),
            "start": _first_view(numbers),
        },
        left_out=left_out,
        warnings=_warnings(frame),
        analyses=sections,
        reproduce={
            "made": now(),
            "versions": versions(),
            "command": command,
            "study": name,
            "evaluated": str(meta.get("truecal", meta.get("version", ""))),
        },
    )


def _warnings(frame: Any) -> list[str]:
    """Return the most frequent warnings of a store as "count numbers: text", at most _MAX_WARNINGS, and how many more."""
    kinds = frame.filter(pl.col("warnings") != "").group_by("warnings").agg(pl.len())
    kinds = kinds.sort(["len", "warnings"], descending=[True, False])
    listed = [f"{count:,} numbers: {text}" for text, count in kinds.rows()]
    remaining = len(listed) - _MAX_WARNINGS
    return [*listed[:_MAX_WARNINGS], *([f"and {remaining} more"] if remaining > 0 else [])]


def _first_view(numbers: Mapping[str, Any]) -> dict[str, int]:
    """Return the positions of the measure and the condition shown first: the first measure that is no error rate.

    The condition is of all rows, not recalibrated, of least severity and then of most rows.
    """

    def order(index: int) -> tuple[bool, bool, float, float]:
        """Return the sort key of a condition: all rows, not recalibrated and of least severity first, then most rows."""
        place = numbers["places"][index]
        recalibrated = place["recalibrator"] != "none"
        return place["selection"] != "all", recalibrated, place["severity"], -(place["n"] or 0)

    measure = next(i for i, m in enumerate(numbers["measures"]) if m["metric"] != "error")
    return {"measure": measure, "place": min(range(len(numbers["places"])), key=order)}


# ----------------------------------------------------------------------------------------------------
# The page of a comparison of interventions


def write_interventions(result: InterventionComparison, title: str, figures: list[Path], path: Path) -> Path:
    """Write the page of a comparison of interventions with its .png `figures` embedded, and return its path."""
    images = {figure.stem: b64encode(figure.read_bytes()).decode() for figure in figures}
    frames = result.tables().items()
    tables = {title: (list(frame.columns), [list(row.values()) for row in frame]) for title, frame in frames}
    page = {"title": title, "facts": result.facts(), "answers": result.verdict(), "tables": tables}
    return write_page(path, lambda: render("interventions.html", page={**page, "images": images}))
