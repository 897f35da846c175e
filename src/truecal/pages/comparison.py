"""The page of several models: pairs, content and sections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

import truecal as tc
from truecal.errors import InputError
from truecal.lenses.lens import Lens
from truecal.lenses.one_probability import default_lens
from truecal.pages.content import points
from truecal.pages.html import (
    Cell,
    chart,
    element,
    number,
    p_cell,
    page_body,
    paragraph,
    section,
    span,
    table_of,
    terms,
    verdict_of,
)
from truecal.pages.parts import CurveRecord, thinned
from truecal.pages.records import Provenance, fingerprint

# ----------------------------------------------------------------------------------------------------
# Pairs of models: the same comparisons for the page and for the command line


@dataclass(frozen=True)
class Pairing:
    """How rows of two models belong together: by their place, by a column `key`, or not at all."""

    key: str | None = None
    paired: bool = True
    reference: str | None = None
    resamples: int = 1000


@dataclass(frozen=True)
class PairRow:
    """Two models: the difference of their errors, with interval and test, alone and adjusted for the number of pairs."""

    a: str
    b: str
    difference: float
    low: float
    high: float
    p_value: float
    adjusted_p: float

    @classmethod
    def of(cls, comparison: tc.inference.Comparison) -> "PairRow":
        return cls(
            comparison.a,
            comparison.b,
            float(comparison.difference),
            float(comparison.interval.low),
            float(comparison.interval.high),
            float(comparison.p_value),
            float(comparison.adjusted_p),
        )


def compare_models(
    models: Mapping[str, tc.Predictions] | Mapping[str, tc.Sketch],
    pairing: Pairing,
    *,
    lens: Lens | None,
    level: float,
    rng: int,
) -> Sequence[tc.inference.Comparison]:
    """Every pair of models, or every model with the reference; p-values adjusted for the number of pairs (Holm)."""
    return tc.inference.compare_many(
        models,
        reference=pairing.reference,
        lens=lens,
        key=pairing.key,
        paired=pairing.paired,
        resamples=pairing.resamples,
        level=level,
        rng=rng,
    )


# ----------------------------------------------------------------------------------------------------
# Several models on the same rows: what the comparison page says, as one record

MOST_MODELS = 8  # as many curves as can be told apart
_COARSE = 2  # percent of rows answered between the points of a drawn curve
_MOST_TASKS = 60
_FEWEST = 30  # rows of a task that are judged


@dataclass(frozen=True)
class ComparisonSetting:
    """What a comparison is asked for besides its data; see `report_comparison`."""

    pairing: Pairing = field(default_factory=Pairing)
    level: float = 0.95
    title: str = "Calibration of several models"
    command: str | None = None
    rng: int = 0


@dataclass(frozen=True)
class ModelRow:
    """One model: its calibration error with interval, its direction, and what it is worth otherwise (unknown from a sketch)."""

    name: str
    error: float
    low: float
    high: float
    direction: float
    accuracy: float | None
    log_loss: float | None
    brier: float | None
    aurc: float | None = None


@dataclass(frozen=True)
class TaskRow:
    """One model on the rows of one task."""

    task: str
    model: str
    n: int
    error: float
    low: float
    high: float


@dataclass(frozen=True)
class RiskPoint:
    """Share of wrong answers among the most confident share `answered` of a model's rows."""

    name: str
    answered: float
    risk: float


@dataclass(frozen=True)
class ComparisonContent:
    """All numbers and words of the comparison page."""

    title: str
    n: int
    judged: str
    top_label: bool
    level: float
    paired: bool
    models: tuple[ModelRow, ...]
    pairs: tuple[PairRow, ...]
    sentence: str
    curves: Mapping[str, CurveRecord | None]
    abstention: tuple[RiskPoint, ...]
    tasks: tuple[TaskRow, ...]
    reproduce: Provenance


def gather_comparison(
    models: Mapping[str, tc.Predictions] | Mapping[str, tc.Sketch],
    setting: ComparisonSetting,
    *,
    lens: Lens | None = None,
) -> ComparisonContent:
    """Errors of every model, differences of every pair, and the curves to overlay."""
    if not 2 <= len(models) <= MOST_MODELS:
        raise InputError(f"two to {MOST_MODELS} models can be compared on one page, not {len(models)}")
    level, rng = setting.level, setting.rng
    rows_of = {name: data for name, data in models.items() if isinstance(data, tc.Predictions)}
    first = next(iter(rows_of.values()), None)
    judged = lens if lens is not None or first is None else default_lens(first)
    if first is not None and judged is not None and (judged.shares(first) is not None or judged.several):
        raise InputError(f"the comparison page draws one probability per row; compare {judged} without a page")
    comparisons = compare_models(models, setting.pairing, lens=judged, level=level, rng=rng)
    estimates = {name: tc.measure(data, lens=judged, level=level, rng=rng) for name, data in models.items()}
    abstention = {name: tc.selective.risk_coverage(preds, resamples=99) for name, preds in rows_of.items()}
    rows = [_model(name, estimates[name], rows_of.get(name), abstention.get(name)) for name in models]
    pairs = tuple(PairRow.of(comparison) for comparison in comparisons)
    described = "scores" if first is None or judged is None else judged.describe(first)
    options = {"level": level, "lens": described, "resamples": setting.pairing.resamples, "rng": rng}
    prints = {name: fingerprint((preds.probs, preds.labels, preds.weights)) for name, preds in rows_of.items()}
    return ComparisonContent(
        title=setting.title,
        n=comparisons[0].n,
        judged=described,
        top_label=judged is not None and judged.outcome_name == "accuracy",
        level=level,
        paired=first is not None and setting.pairing.paired,
        models=tuple(rows),
        pairs=pairs,
        sentence=_sentence(rows, pairs, level),
        curves={name: thinned(estimate.curve) for name, estimate in estimates.items()},
        abstention=tuple(
            RiskPoint(name, row["answered"], row["risk"])
            for name, curve in abstention.items()
            for row in curve.frame()
            if round(100 * row["answered"]) % _COARSE == 0
        ),
        tasks=_tasks(rows_of, judged, level, rng),
        reproduce=Provenance(prints, setting.command, options),
    )


def _model(
    name: str, estimate: tc.Estimate, preds: tc.Predictions | None, curve: tc.selective.RiskCoverage | None
) -> ModelRow:
    assert estimate.interval is not None
    ends = float(estimate.value), float(estimate.interval.low), float(estimate.interval.high)
    if preds is None or curve is None:
        return ModelRow(name, *ends, float(estimate.direction), None, None, None)
    quality = 1 - curve.area.error, tc.scores.log_loss(preds), tc.scores.brier(preds)
    return ModelRow(name, *ends, float(estimate.direction), *quality, curve.area.value)


def _tasks(models: Mapping[str, tc.Predictions], lens: Lens | None, level: float, rng: int) -> tuple[TaskRow, ...]:
    """The error of every model on every task, where all of them say the task and there are some."""
    if not models or any("task" not in preds.columns for preds in models.values()):
        return ()
    names = {name: np.asarray(preds.columns["task"]).astype(str) for name, preds in models.items()}
    tasks = np.unique(np.concatenate(list(names.values())))
    if not 2 <= len(tasks) <= _MOST_TASKS:
        return ()
    rows = []
    for task in tasks.tolist():
        for name, preds in models.items():
            held = preds.take(names[name] == task)
            if len(held) < _FEWEST:
                continue
            estimate = tc.measure(held, lens=lens, level=level, rng=rng)
            assert estimate.interval is not None
            ends = float(estimate.value), float(estimate.interval.low), float(estimate.interval.high)
            rows.append(TaskRow(task, name, estimate.n, *ends))
    return tuple(rows)


def _sentence(rows: Sequence[ModelRow], pairs: Sequence[PairRow], level: float) -> str:
    """Which model is best calibrated, and which of the others are shown to be worse.

    >>> rows = [ModelRow("a", 0.01, 0, 0.02, 0, 1, 0, 0), ModelRow("b", 0.05, 0.04, 0.06, 0, 1, 0, 0)]
    >>> _sentence(rows, [PairRow("a", "b", -0.04, -0.05, -0.03, 0.01, 0.01)], 0.95)
    'a has the smallest calibration error. Shown to be worse, at 95% for all pairs together: b.'
    """
    best = min(rows, key=lambda row: row.error).name
    shown = {
        name
        for pair in pairs
        if best in (pair.a, pair.b) and pair.adjusted_p <= 1 - level
        for name in (pair.a, pair.b)
        if name != best
    }
    worse = [row.name for row in rows if row.name in shown]
    if not worse:
        return f"{best} has the smallest calibration error, but no other model is shown to be worse at {level:.0%}."
    return (
        f"{best} has the smallest calibration error. Shown to be worse, at {level:.0%} for all pairs together: "
        f"{', '.join(worse)}."
    )


# ----------------------------------------------------------------------------------------------------
# The sections of the comparison page as HTML


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
        section("tasks", "By task", _tasks_sections(content)) if content.tasks else "",
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


def _tasks_sections(content: ComparisonContent) -> str:
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
    return terms([("Made", made.made), *prints, *made.lines("tc.report({...}, ...) from Python")], "box")
