"""The pages of a study and of a comparison of interventions: analyses as tables, and the numbers that the explorer draws."""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from math import inf, isfinite
from pathlib import Path
from typing import Any, Protocol

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.pages.records import document, now, versions
from truecal.pages.render import asset, charting_bundle, render, write_page
from truecal.study import store

_MOST_ROWS = 120  # of the table of an analysis
_MOST_RANKED = 6  # metrics whose rankings are compared
_MOST_WARNINGS = 5
_MOST_COVARIATE_VALUES = 12  # that colours tell apart
_REST_OF_PAGE = 90_000  # bytes of styles, scripts and words
_CELL = 30  # bytes of the markup of a table cell
_VALUE_UNIT, _LIMIT_UNIT, _DIAGRAM_UNIT = (
    1_000_000,
    10_000,
    10_000,
)  # numbers of the page are whole multiples of 1 / these
_PLACE = ["dataset", "severity", "recalibrator", "selection"]
_SCORES = ("nll", "brier")
_LENSES = ("top-label", "", "class-wise", "all-label")
_SCHEMES = ("mass", "width")


@cache
def _words() -> dict[str, Any]:
    """Return headings and intros of the analyses, names of metrics, and their order on the page."""
    words: dict[str, Any] = json.loads(asset("specs/analyses.json"))
    return words


def measure_label(metric: str, bins: int | None, norm: float | None, scheme: str | None) -> str:
    """Name a metric in words.

    >>> measure_label("ece-width-15-l1", 15, 1.0, "width"), measure_label("nll", None, None, None)
    ('Binned error, 15 bins, equal width, mean absolute', 'Log loss (NLL)')
    """
    titles = _words()["metrics"]
    words = [titles.get(metric, titles.get(metric.partition("-")[0], metric))]
    words += [] if bins is None else [f"{bins} bins"]
    words += [f"equal {scheme}"] if scheme in ("width", "mass") else []
    norms = {1.0: "mean absolute", 2.0: "root mean square", inf: "maximum"}
    return ", ".join(words if norm is None else [*words, norms.get(norm, f"norm {norm:g}")])


def _metric_rank(measure: tuple[str, str]) -> tuple[int, int, int, str, str]:
    """Order error rates first, then by how often lens and metric are asked for; lenses of single classes last."""
    lens, metric = measure
    lens_rank = _LENSES.index(lens) if lens in _LENSES else len(_LENSES)
    order = _words()["order"]
    listed = metric in order
    metric_rank = order.index(metric) if listed else len(order)
    return (metric != "error", lens_rank if listed else lens_rank + len(_LENSES), metric_rank, lens, metric)


def _ranked_metrics(frame: Any) -> list[tuple[str, str]]:
    """Return lens and metric of everything but error rates and confidences, the most asked for first."""
    pairs = frame.select("lens", "metric").unique().rows()
    return sorted((pair for pair in pairs if pair[1] not in ("error", "confidence")), key=_metric_rank)


# ----------------------------------------------------------------------------------------------------
# The analyses of a study as tables

# A column: its title, and the text of a row with what it sorts by.
Column = tuple[str, Callable[[Mapping[str, Any]], tuple[str, float | str]]]


def _text(title: str, name: str) -> Column:
    def cell(row: Mapping[str, Any]) -> tuple[str, str]:
        words = "" if row[name] is None else str(row[name])
        return words, words

    return title, cell


def _number(title: str, name: str, spec: str = ".3f", missing: str = "") -> Column:
    def cell(row: Mapping[str, Any]) -> tuple[str, float]:
        value = row[name]
        return (missing, -1e9) if value is None or not isfinite(value) else (format(value, spec), float(value))

    return title, cell


def _limits(title: str, low: str, high: str) -> Column:
    def cell(row: Mapping[str, Any]) -> tuple[str, float]:
        complete = all(row[end] is not None and isfinite(row[end]) for end in (low, high))
        return (f"{row[low]:.3f} to {row[high]:.3f}", float(row[low])) if complete else ("", -1e9)

    return title, cell


def _ratio(title: str, count: str, total: str) -> Column:
    return title, lambda row: (f"{row[count]} of {row[total]}", row[count] / max(row[total], 1))


def _with_limits(
    title: str, name: str, ends: tuple[str, str] | None = None, interval: str = "Interval"
) -> list[Column]:
    low, high = ends or (f"{name}_low", f"{name}_high")
    return [_number(title, name), _limits(interval, low, high)]


_ENDS = ("low", "high")
_MODEL = [_text("Model", "model"), _text("Family", "family")]
_CONDITION = [_text("Dataset", "dataset"), _number("Severity", "severity", "g")]


@dataclass(frozen=True, eq=False)
class Results:
    """The results that analyses read: those of the main lens, the main metric, and the metrics that are compared."""

    frame: Any
    lens: str
    metric: str
    metrics: tuple[str, ...]
    store: Any

    @classmethod
    def of(cls, study: Any, frame: Any) -> "Results":
        import polars as pl

        ranked = _ranked_metrics(frame)
        lens, metric = ranked[0]
        metrics = tuple(name for other, name in ranked if other == lens)[:_MOST_RANKED]
        return cls(frame.filter(pl.col("lens").is_in([lens, ""])), lens or "top-label", metric, metrics, study)

    @property
    def name(self) -> str:
        """The main metric in words, as it stands inside a sentence."""
        about = self.frame.filter(self.frame["metric"] == self.metric).row(0, named=True)
        label = measure_label(self.metric, about["bins"], about["norm"], about["scheme"])
        return label[0].lower() + label[1:]

    @property
    def recalibrators(self) -> list[str]:
        """Before, and after the recalibrators there are."""
        return ["none", *sorted(set(self.frame["recalibrator"]) - {"none"})]

    @property
    def scores(self) -> list[str]:
        """The proper scores that the results hold."""
        return [name for name in _SCORES if name in set(self.frame["metric"])]

    def of_metrics(self, *metrics: str) -> Any:
        """Return the rows of some metrics and of the error."""
        return self.frame.filter(self.frame["metric"].is_in([*metrics, "error"]))

    def run(self, analysis: Callable[..., Any], recalibrator: str, **more: Any) -> Any:
        """Run an analysis of the main metric."""
        frame = self.of_metrics(self.metric)
        return analysis(frame, metric=self.metric, lens=self.lens, recalibrator=recalibrator, **more)

    def compare(self, analysis: Callable[..., Any], recalibrator: str) -> Any:
        """Run an analysis of all metrics that are compared."""
        frame = self.of_metrics(*self.metrics, *_SCORES)
        return analysis(frame, metrics=self.metrics, lens=self.lens, recalibrator=recalibrator)


@dataclass(frozen=True)
class Question:
    """A section: its answer (notes and rows) and the columns of its table; its words stand in specs/analyses.json."""

    id: str
    answer: Callable[[Results, str], tuple[Sequence[str], Iterable[Mapping[str, Any]]]]
    columns: Sequence[Column]
    once: bool = False  # the same before and after recalibration
    recalibrator: str = ""  # whose effect is asked for

    def words(self, results: "Results") -> dict[str, str]:
        """Return heading and intro, with the names of this study in them."""
        named = {
            "{name}": results.name,
            "{Name}": results.name[0].upper() + results.name[1:],
            "{metrics}": ", ".join(results.metrics),
            "{recalibrator}": self.recalibrator,
        }
        words: dict[str, str] = dict(_words()["questions"]["after" if self.recalibrator else self.id])
        for key, text in words.items():
            words[key] = re.sub(r"\{\w+\}", lambda match: named[match[0]], text)
        return words


def _trends(results: Results, after: str) -> Any:
    result = results.run(tc.study.error_against_calibration, after)
    return result.notes, [row for row in result.trends().rows(named=True) if row["family"] is None]


def _temperatures(results: Results, _: str) -> Any:
    import polars as pl

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


def _fronts(results: Results, after: str) -> Any:
    result = results.compare(tc.study.pareto, after)
    always = f"on every front: {', '.join(result.always)}" if result.always else "no model is on every front"
    return [always, *result.notes], result.counts().rows(named=True)


def _dominance(results: Results, after: str) -> Any:
    result = results.run(tc.study.dominance, after)
    always = "; ".join(f"{a} by {b}" for a, b in result.always)
    table = result.frame().sort("dominated", "share", descending=True)
    notes = [f"always dominated: {always}", *result.notes] if always else result.notes
    return notes, [row for row in table.rows(named=True) if row["beaten"]]


def _shifts(results: Results, after: str) -> Any:
    result = results.run(tc.study.shift, after, reference=results.store.references() or None)
    return result.notes, result.slopes().sort("dataset", "slope").rows(named=True)


def _clean_to_shifted(results: Results, after: str) -> Any:
    result = results.run(tc.study.in_and_out, after, reference=results.store.references() or None)
    return result.notes, [row for row in result.correlations().rows(named=True) if row["method"] == "kendall"]


def _log_lines(results: Results, after: str) -> Any:
    result = results.run(tc.study.log_fits, after)
    return result.notes, result.lines().rows(named=True)


def _residuals(results: Results, after: str) -> Any:
    import polars as pl

    frame = results.of_metrics(*results.metrics, *_SCORES)
    result = tc.study.residuals(frame, metrics=results.scores, recalibrator=after)
    size = pl.col("standardized").abs()
    return result.notes, result.frame().filter(size > 2).sort(size, descending=True).rows(named=True)


def _bin_slopes(results: Results, after: str) -> Any:
    result = tc.study.bin_trend(results.frame, lens=results.lens, recalibrator=after)
    return result.notes, result.frame().sort("severity", "dataset", maintain_order=True).rows(named=True)


def _agreements(results: Results, after: str) -> Any:
    result = results.compare(tc.study.rank_agreement, after)
    return result.notes, result.frame().sort("severity", "tau").rows(named=True)


_AGAINST_ERROR = Question(
    "error-calibration",
    _trends,
    [
        *(*_CONDITION, _number("Models", "models", ",")),
        *_with_limits("Slope", "slope"),
        *_with_limits("Kendall's tau", "kendall", None, "Interval of tau"),
    ],
)
_TEMPERATURES = Question(
    "temperatures",
    _temperatures,
    [
        *(_text("Family", "family"), _text("Fitted on", "dataset"), _number("Models", "models", ",")),
        *(_number("Lowest", "min"), _number("Median", "median"), _number("Highest", "max")),
        *(_ratio("Overconfident", "over", "fits"), _number("Rows fitted on", "rows", ",")),
    ],
    once=True,
)
_OTHERS = (
    Question(
        "pareto",
        _fronts,
        [*_MODEL, _number("On the front", "fronts", ","), _number("Of", "of", ","), _number("Share", "share", ".0%")],
    ),
    Question(
        "dominance",
        _dominance,
        [
            *(_text("Family", "family"), _text("Beaten by", "by"), *_CONDITION),
            _ratio("Models beaten", "beaten", "models"),
            ("Dominated", lambda row: ("yes" if row["dominated"] else "", "yes" if row["dominated"] else "")),
        ],
    ),
    Question(
        "shifting",
        _shifts,
        [
            *(*_MODEL, _CONDITION[0]),
            *_with_limits("Metric per step", "slope"),
            *_with_limits("Error per step", "error_slope", ("error_low", "error_high"), "Interval of error"),
        ],
    ),
    Question(
        "in-out",
        _clean_to_shifted,
        [
            *(*_CONDITION, _text("Pair", "pair"), _number("Models", "models", ",")),
            *_with_limits("Kendall's tau", "value", _ENDS),
        ],
    ),
    Question(
        "log-fits",
        _log_lines,
        [
            *(_text("Family", "family"), _number("Models", "models", ","), _number("Points", "points", ",")),
            *(*_with_limits("Slope", "slope"), _number("Intercept", "intercept"), _number("R squared", "explained")),
        ],
    ),
    Question(
        "residuals",
        _residuals,
        [
            *(_text("Model", "model"), _text("Score", "metric"), *_CONDITION, _number("Value", "value", ".4f")),
            *(_number("By the line", "expected", ".4f"), _number("Standard errors", "standardized", ".1f")),
        ],
    ),
    Question(
        "bins",
        _bin_slopes,
        [
            *(*_CONDITION, _text("Metric", "metric"), _number("Bins", "bins", ",")),
            ("Biased", lambda row: ("no" if row["debiased"] else "yes",) * 2),
            *_with_limits("Slope", "slope", _ENDS),
        ],
    ),
    Question(
        "ranks",
        _agreements,
        [
            *(*_CONDITION, ("Metrics", lambda row: (f"{row['metric_a']} and {row['metric_b']}",) * 2)),
            *_with_limits("Kendall's tau", "tau", _ENDS),
            *(_number("Pairs of models", "pairs", ","), _number("Flips", "flips", ",")),
            _number("Supported flips", "supported_flips", ",", "unknown"),
        ],
    ),
)


def _effect(index: int, recalibrator: str) -> Question:
    def answer(results: Results, _: str) -> Any:
        result = tc.study.effect_of_recalibration(
            results.store, after=recalibrator, metric=results.metric, lens=results.lens
        )
        return result.notes, result.summary().rows(named=True)

    return Question(
        f"after-{index}",
        answer,
        [
            *(*_CONDITION, _number("Before", "before", ".4f"), _number("After", "after", ".4f")),
            *(_ratio("Improved", "improved", "models"),),
            *(_number("Beyond intervals", "improved_supported", ",", "unknown"), *_with_limits("Kendall's tau", "tau")),
        ],
        once=True,
        recalibrator=recalibrator,
    )


def analyses(study: Any, frame: Any) -> list[dict[str, Any]]:
    """Run every analysis with the study's main metric, before and after recalibration; one that is not possible says why."""
    results = Results.of(study, frame)
    effects = [_effect(k, name) for k, name in enumerate(results.recalibrators[1:], 1)]
    return [_section(question, results) for question in (_AGAINST_ERROR, *effects, _TEMPERATURES, *_OTHERS)]


def _section(question: Question, results: Results) -> dict[str, Any]:
    recalibrators = ["none"] if question.once else results.recalibrators
    several = len(recalibrators) > 1
    notes: list[str] = []
    header: list[str] = []
    cells: list[list[tuple[str, float | str]]] = []
    for after in recalibrators:
        words = "before" if after == "none" else f"after {after}"
        try:
            remarks, rows = question.answer(results, after)
        except InputError as error:
            notes.append(f"Not for this study{f', {words}' if several else ''}: {error}.")
            continue
        notes += [f"{note} [{words}]" if several else note for note in remarks]
        header = [title for title, _ in question.columns] + (["Recalibration"] if several else [])
        last = [(words, words)] if several else []
        cells += [[*(cell(row) for _, cell in question.columns), *last] for row in rows]
    listed = cells[:_MOST_ROWS]
    return {
        "id": question.id,
        **question.words(results),
        "notes": [note[:1].upper() + note[1:] + ("" if note.endswith((".", "?")) else ".") for note in notes],
        "header": header,
        "rows": [[words for words, _ in row] for row in listed],
        "sorts": [[sort for _, sort in row] for row in listed],
        "more": f"The first {_MOST_ROWS} of {len(cells):,} rows." if len(cells) > _MOST_ROWS else "",
    }


# ----------------------------------------------------------------------------------------------------
# The numbers that the explorer draws: one mean over seeds per model, place and measure, packed as whole numbers


def explorer_numbers(frame: Any, *, room: int) -> tuple[dict[str, Any], list[str]]:
    """Pack the results of a store into about `room` bytes of JSON; name what did not fit."""
    import polars as pl

    models = explorer_models(frame)
    index = {model["name"]: i for i, model in enumerate(models)}
    means = _means(frame)
    counted = means.group_by(_PLACE).agg(pl.col("n").max(), pl.col("seeds").max()).sort(_PLACE)
    place_of = {tuple(row): i for i, row in enumerate(counted.select(_PLACE).iter_rows())}
    measures: list[dict[str, Any]] = []
    packed: list[Any] = []
    left_out: list[str] = []
    used = 0
    groups = means.partition_by(["lens", "metric"], as_dict=True)
    for lens, metric in sorted(groups, key=_metric_rank):
        if metric == "confidence":
            continue
        rows = groups[lens, metric]
        columns = _pack_columns(rows, index, place_of)
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
        "places": counted.select(*_PLACE, "n", "seeds").rows(named=True),
        "measures": measures,
        "columns": packed,
        "error": next(i for i, measure in enumerate(measures) if measure["metric"] == "error"),
        "units": {"value": _VALUE_UNIT, "end": _LIMIT_UNIT},
    }
    return numbers, left_out


def _means(frame: Any) -> Any:
    """Average over seeds, as the analyses do, and add what the metrics are made of."""
    import polars as pl

    parts = []
    for (recalibrator, selection), part in frame.partition_by("recalibrator", "selection", as_dict=True).items():
        if not part["value"].is_finite().any():  # a selection of no rows
            continue
        metrics, lenses = (part[name].unique().to_list() for name in ("metric", "lens"))
        means, _ = tc.study.points(part, metrics, lens=lenses, recalibrator=recalibrator, selection=selection)
        parts.append(means.with_columns(recalibrator=pl.lit(recalibrator), selection=pl.lit(selection)))
    made_of = frame.group_by("metric").agg(*(pl.col(name).first() for name in ("scheme", "bins", "norm")))
    return pl.concat(parts).join(made_of, on="metric", how="left").sort([*_PLACE, "lens", "metric", "model"])


def explorer_models(frame: Any) -> list[dict[str, Any]]:
    """Return every model with its family, size, and covariates with few values, by which it can be coloured."""
    import polars as pl

    covariates = [name for name in frame.columns if name not in store.RESULTS]
    firsts = [pl.col(name).first() for name in ("family", "size", *covariates)]
    changing = [pl.col(name).drop_nulls().n_unique().alias(f"{name} count") for name in covariates]
    models = frame.group_by("model").agg(*firsts, *changing).sort("model")
    # covariates of models, not of datasets, with values that colours can tell apart
    grouped = [
        name
        for name in covariates
        if models[f"{name} count"].max() == 1 and 2 <= models[name].n_unique() <= _MOST_COVARIATE_VALUES
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


def _pack_columns(rows: Any, index: dict[str, int], place_of: dict[tuple[Any, ...], int]) -> dict[str, Any]:
    """Return {place: [values, lows, highs]}, each by model, as whole numbers of their units; null where there is none."""
    columns: dict[str, list[Any]] = {}
    for row in rows.select(*_PLACE, "model", "value", "low", "high").rows():
        lists = columns.setdefault(str(place_of[row[:4]]), [[None] * len(index) for _ in range(3)])
        for values, number, unit in zip(lists, row[5:], (_VALUE_UNIT, _LIMIT_UNIT, _LIMIT_UNIT), strict=True):
            values[index[row[4]]] = round(number * unit) if number is not None and isfinite(number) else None
    return {place: [None if set(values) == {None} else values for values in lists] for place, lists in columns.items()}


def explorer_diagrams(frame: Any, diagrams: Any, numbers: Mapping[str, Any], *, room: int) -> dict[str, Any]:
    """Pack as many kinds of reliability diagrams as fit into `room` bytes, those of clean data first."""
    import polars as pl

    jobs = frame.group_by("job").agg(*(pl.col(name).first() for name in ("model", "dataset", "severity", "seed")))
    first = jobs.filter(pl.col("seed") == pl.col("seed").min().over("model", "dataset", "severity"))
    filled = diagrams.filter((pl.col("count") > 0) & ~pl.col("lens").str.starts_with("class:"))
    joined = filled.join(first, on="job").sort("lens", "scheme", "severity", "bin")
    model_of = {model["name"]: i for i, model in enumerate(numbers["models"])}
    place_of = {tuple(place[name] for name in _PLACE): i for i, place in enumerate(numbers["places"])}
    groups = joined.partition_by("lens", "scheme", "severity", as_dict=True)
    kinds: list[dict[str, str]] = []
    drawn: list[dict[str, Any]] = []
    used, complete = 0, True

    def rank(group: tuple[str, str, float]) -> tuple[int, int, float, str]:
        lens, scheme, severity = group
        lens_rank = _LENSES.index(lens) if lens in _LENSES else len(_LENSES)
        return lens_rank, _SCHEMES.index(scheme) if scheme in _SCHEMES else len(_SCHEMES), severity, lens

    for lens, scheme, severity in sorted(groups, key=rank):
        packed = _pack_diagrams(groups[lens, scheme, severity], model_of, place_of)
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


def _pack_diagrams(rows: Any, model_of: dict[str, int], place_of: dict[tuple[Any, ...], int]) -> dict[str, Any]:
    """Return {"place/model": [scores, outcomes, counts]} as whole numbers."""
    drawn: dict[str, list[list[float]]] = {}
    for *place, model, score, outcome, count in rows.select(*_PLACE, "model", "confidence", "outcome", "count").rows():
        if tuple(place) not in place_of:  # nothing was judged there
            continue
        lists = drawn.setdefault(f"{place_of[tuple(place)]}/{model_of[model]}", [[], [], []])
        whole = (round(score * _DIAGRAM_UNIT), round(outcome * _DIAGRAM_UNIT), round(count, 2))
        for values, number in zip(lists, whole, strict=True):
            values.append(int(number) if float(number).is_integer() else number)
    for lists in drawn.values():  # bins of equal mass mostly have equal counts: one number says it
        if len(set(lists[2])) == 1:
            del lists[2][1:]
    return drawn


# ----------------------------------------------------------------------------------------------------
# The page of a study


@dataclass(frozen=True)
class StudyPage:
    """Everything on the page, as plain values that JSON can hold."""

    title: str
    facts: Sequence[str]
    explorer: Mapping[str, Any]
    left_out: Sequence[str]
    warnings: Sequence[str]
    analyses: Sequence[Mapping[str, Any]]
    reproduce: Mapping[str, Any]

    def record(self) -> dict[str, object]:
        """Return the same as JSON can hold it."""
        return document("study-page", **asdict(self))

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "StudyPage":
        """Return the page whose `record()` this is, perhaps read back from a file."""
        return cls(**{name: record[name] for name in cls.__dataclass_fields__})

    def html(self) -> str:
        """Render the page."""
        return render("study.html", self.explorer, page=self)


def gather_study(study: Any, *, title: str | None, megabytes: float, command: str | None) -> StudyPage:
    """Pack the numbers of the explorer, run the analyses, and note where all of it came from."""
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
            "start": _start(numbers),
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
    """Return the warnings that numbers of the store carry, the most frequent first."""
    import polars as pl

    kinds = frame.filter(pl.col("warnings") != "").group_by("warnings").agg(pl.len())
    kinds = kinds.sort(["len", "warnings"], descending=[True, False])
    listed = [f"{count:,} numbers: {text}" for text, count in kinds.rows()]
    more = len(listed) - _MOST_WARNINGS
    return [*listed[:_MOST_WARNINGS], *([f"and {more} more"] if more > 0 else [])]


def _start(numbers: Mapping[str, Any]) -> dict[str, int]:
    """Choose what is shown first: the first measure that is no error rate, on the clean data with most rows, as it is."""

    def order(index: int) -> tuple[bool, bool, float, float]:
        place = numbers["places"][index]
        recalibrated = place["recalibrator"] != "none"
        return place["selection"] != "all", recalibrated, place["severity"], -(place["n"] or 0)

    measure = next(i for i, m in enumerate(numbers["measures"]) if m["metric"] != "error")
    return {"measure": measure, "place": min(range(len(numbers["places"])), key=order)}


# ----------------------------------------------------------------------------------------------------
# The page of a comparison of interventions


class Tabled(Protocol):
    """A comparison of interventions: what its page says."""

    def verdict(self) -> list[str]:
        """Return its answer, in sentences."""

    def tables(self) -> dict[str, tuple[list[str], list[list[str]]]]:
        """Return header and rows by title."""

    def facts(self) -> list[str]:
        """Return what was judged, in a few words."""


def write_interventions(result: Tabled, title: str, figures: list[Path], path: Path) -> Path:
    """Write the page of a comparison; `figures` are .png files, which it holds."""
    images = {figure.stem: b64encode(figure.read_bytes()).decode() for figure in figures}
    page = {"title": title, "facts": result.facts(), "answers": result.verdict(), "tables": result.tables()}
    return write_page(path, lambda: render("interventions.html", page={**page, "images": images}))
