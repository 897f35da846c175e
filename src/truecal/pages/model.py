"""The page of one model: everything it says, as one record. Templates and scripts draw it."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np

import truecal as tc
from truecal import names, options
from truecal.errors import InputError, MissingExtraError, TruecalWarning
from truecal.estimators.base import Estimator
from truecal.estimators.estimate import Curve
from truecal.lenses.lens import Lens, check_lens
from truecal.lenses.one_probability import default_lens
from truecal.pages.records import Provenance
from truecal.pages.render import Page
from truecal.pages.sources import MAX_BINS, PageSource, cells_of, source_of
from truecal.plot.display import fitted_limits
from truecal.predictions.predictions import check_predictions
from truecal.predictions.selection import Selection, check_selection, column

Row = Mapping[str, Any]
CurveRow = dict[str, list[float]]  # score, outcome, and the limits low and high of a band

_CURVE_POINTS = 400
_MAX_CLASSES = 1000  # rows in the table; beyond, those with the largest errors
_MAX_CLUSTERED_CLASSES = 50
_MAX_GROUPS = 200
_MAX_CLINICAL_ROWS = 1_000_000
_MAX_FOREST_GROUPS = 40
_FOLDS = 5
_MIN_ROWS = 100  # to fit a recalibration map, or a simulated world
_MAX_RECALIBRATED_ROWS, _MAX_RECALIBRATED_VALUES = 200_000, 1_000_000
_SIMULATED_DATASETS, _MAX_SIMULATED_ROWS = 100, 10_000
# Beyond as many rows a world is fitted to cells of neighbouring scores, whose sums are those of the rows.
_MAX_WORLD_CELLS = 50_000
# How well a world fits is judged on datasets of the data's own size, which takes minutes beyond.
_MAX_WORLD_ROWS = 1_000_000
_ISOTONIC, _SMOOTH = tc.estimators.IsotonicError(), tc.SmoothECE()
_OTHERS: tuple[Estimator, ...] = (
    tc.DebiasedECE(),
    tc.SweepECE(),
    tc.NearestECE(),
    tc.estimators.KernelDensityECE(),
    tc.BinnedECE(scheme="width"),
    tc.BinnedECE(scheme="mass"),
    tc.BinnedECE(scheme="width", norm=np.inf),
    tc.estimators.LabelBinnedECE(),
    _SMOOTH,
    _ISOTONIC,
)
_SIMULATED: dict[str, Estimator] = {
    "Rank series": tc.RankSeries(),
    "Debiased": tc.DebiasedECE(),
    "Monotone sweep": tc.SweepECE(),
    "Nearest neighbours": tc.NearestECE(),
    "Binned, 15 of equal width": tc.BinnedECE(norm=2),
    "Isotonic (CORP)": _ISOTONIC,
}


@dataclass(frozen=True)
class PageSettings:
    """What a page is asked for besides its data; see `truecal.report`."""

    lens: Lens | None = None
    by: str | Sequence[str] | None = None
    tolerance: float = 0.02
    level: float = 0.95
    title: str = "Calibration report"
    source: str | None = None
    command: str | None = None
    fast: bool = False
    clinical: bool = False
    rng: int = 0
    scale: Mapping[str, tuple[float, float]] | None = None
    files: Mapping[str, str] | None = None
    select: Selection | None = None
    rows: tc.inference.RowCounts | None = None
    thresholds: Sequence[float] | None = None
    progress: Callable[[str], object] = str

    def __post_init__(self) -> None:
        options.level(self.level)
        options.between(self.tolerance, "tolerance", 0, 1)
        check_lens(self.lens)
        check_selection(self.select)


class ModelPage(Page):
    """The page of one model. Parts that were not asked for are None; `absent` says why others are."""

    template = "model.html"

    def drawn(self) -> dict[str, object]:
        """Return the numbers that scripts draw."""
        errors = {
            name: {key: getattr(self, name)[key] for key in ("value", "interval", "p_value")}
            for name in ("head", "absolute")
        }
        remedies = None if self.recalibration is None else self.recalibration["curves"]
        forests = {} if self.clinical is None else self.clinical["forests"]
        more = {"most_bins": MAX_BINS, "remedies": remedies, "forests": forests, **errors}
        return {**self.pick("cells", "curves", "level", "n", "top_label", "limits"), **more}


class AbsentPartError(Exception):
    """A part of the page that the data do not allow; its text says why."""


def gather_model(data: tc.Predictions | tc.Sketch | tc.engines.Scan, **settings: Any) -> ModelPage:
    """Compute the page; settings are those of PageSettings."""
    check_predictions(data, tc.Sketch, tc.engines.Scan)
    setting = PageSettings(**settings)
    lens, level, rng, progress = setting.lens, setting.level, setting.rng, setting.progress
    progress("measuring")
    columns = () if setting.by is None else (setting.by,) if isinstance(setting.by, str) else tuple(setting.by)
    # a lens on several probabilities, and rows selected by their label, are judged in a section of their own
    page_lens = None if lens is None or lens.several else lens
    select = None if setting.select is None or setting.select.uses_labels else setting.select
    if setting.select is not None and not isinstance(data, tc.Predictions):
        raise InputError(
            "select= needs rows, and a sketch keeps sums; select where it is made: tc.scan(..., select=...)"
        )
    rows = data if select is None or not isinstance(data, tc.Predictions) else select(data)
    verdicts = rows if isinstance(rows, tc.Predictions) and rows.judge is not None else None
    # everything but the error itself is about the rows with trusted labels
    rows = rows if verdicts is None else verdicts.take(verdicts.labels >= 0)
    source = source_of(rows, lens=page_lens, by=columns, level=level, rng=rng)
    profile = source.profile
    alone, absolute = source.estimates()
    judge = None if verdicts is None else _judge(verdicts, alone, level, rng)
    head = alone if judge is None else judge["estimate"]
    progress("asking every estimator")
    others = {estimator: _other(estimator, source, fast=setting.fast) for estimator in _OTHERS}
    progress("judging groups")
    subgroups = _subgroups(source)
    progress("going through classes")
    classes = (
        per_class(source.preds, level=level)
        if source.preds is not None and (source.preds.class_count > 2 or source.preds.multilabel)
        else None
    )
    likert = None if setting.scale is None else _likert(source, setting.scale)
    parts, absent = _slow_parts(source, setting)
    smooth, cells = thin_curve(alone.curve), cells_of(profile)
    score, rate = (float(profile.sums(name, profile.whole())[0, 0] / profile.total[0]) for name in ("c", "y"))
    if judge is not None and verdicts is not None:
        score, rate = float(verdicts.probs.mean()), judge["estimate"].accuracy[0]
    group_names = ", ".join(source.by)
    used = {
        "level": level,
        "tolerance": setting.tolerance,
        "lens": source.lens_name,
        "by": group_names or None,
        "rng": rng,
    }
    sketch = None
    if head.sketch_error is not None:
        engine = None if source.scan is None else source.scan.engine
        sketch = {"cells": profile.rows, "error": head.sketch_error, "bound": head.sketch_bound, "engine": engine}
    clusters = None if source.preds is None or source.preds.clusters is None else len(np.unique(source.preds.clusters))
    progress("measuring in context")
    return ModelPage(
        title=setting.title,
        source=setting.source,
        lens_name=source.lens_name,
        top_label=source.top_label,
        n=head.n,
        class_count=source.class_count,
        clusters=clusters,
        by=group_names,
        level=level,
        tolerance=setting.tolerance,
        conclusion=tc.inference.conclude(
            head,
            tolerance=setting.tolerance,
            profile=profile,
            groups=group_errors(subgroups),
            slope=None if parts["clinical"] is None else parts["clinical"]["slope"],
            rows=setting.rows,
            losses=_losses(rows, setting),
        ),
        head=head.to_dict(),
        absolute=absolute.to_dict(),
        sketch=sketch,
        mean_score=score,
        mean_outcome=rate,
        estimates=[_estimator_row(estimate) for estimate in (head, absolute, *others.values())],
        values=tc.inference.stated_values(profile, level),
        classes=classes,
        judge=judge,
        groups=[_group_table(table, subgroups) for table in subgroups],
        likert=likert,
        **parts,
        context=_context(data, setting),
        selected="" if select is None else str(select),
        cells=replace(cells, scale=cells.scale / source.design_effect()),
        limits=fitted_limits(profile),
        curves={
            "smooth": None if smooth is None else with_band(smooth, profile, level),
            "isotonic": thin_curve(others[_ISOTONIC].curve, steps=True),
        },
        provenance=Provenance({"": source.fingerprint()}, setting.command, used, setting.files or {}),
        absent=absent,
    )


def _slow_parts(source: PageSource, setting: PageSettings) -> tuple[dict[str, Any], dict[str, str]]:
    """Compute the parts that take seconds, None where nobody asked for one; and why others are absent, by name."""
    steps: dict[str, tuple[str, Callable[[], Any]]] = {
        "segments": ("searching for segments", lambda: _segments(source, setting.tolerance)),
        "clinical": ("validating clinically", lambda: _clinical(source) if setting.clinical else None),
        "recalibration": ("recalibrating on held-out folds", lambda: recalibrate(source)),
        "bias": ("simulating data like these", lambda: simulate_bias(source.profile, rng=setting.rng)),
    }
    parts, absent = dict.fromkeys(steps), {}
    for name, (words, compute) in steps.items() if not setting.fast else ():
        setting.progress(words)
        try:
            parts[name] = compute()
        except AbsentPartError as reason:
            absent[name] = str(reason)
        except InputError as error:
            absent[name] = f"Not possible on these data: {error}."
    return parts, absent


def _losses(data: object, setting: PageSettings) -> list[tc.inference.LossAt]:
    """Compute what miscalibration costs at the thresholds of the page."""
    if setting.thresholds is None:
        return []
    if not isinstance(data, tc.Predictions):
        raise InputError("thresholds= needs rows, and a sketch keeps sums; give Predictions")
    loss = tc.decision_loss(data, setting.thresholds, lens=setting.lens, level=setting.level, rng=setting.rng)
    assert isinstance(loss, tc.inference.DecisionLoss)
    return [loss.at(t) for t in setting.thresholds]


def _judge(preds: tc.Predictions, alone: tc.Estimate, level: float, rng: int) -> dict[str, Any]:
    """Measure with the judge, and compare each judge with the trusted labels."""
    both = tc.measure(preds, level=level, rng=rng)
    assert isinstance(both, tc.inference.JudgedEstimate)
    assert preds.judge is not None
    trusted = preds.labels >= 0
    right = preds.labels[trusted] == 1
    estimates = [
        {"name": "Trusted labels alone", "labels": both.trusted, **alone.frame()[0]},
        {"name": "With the judge", "labels": both.worth, **both.frame()[0]},
    ]
    judges = []
    for number, verdicts in enumerate(preds.judge.T, 1):
        yes = verdicts[trusted] > 0
        shares = {"accepts_right": float(yes[right].mean()), "accepts_wrong": float(yes[~right].mean())}
        judges.append({"name": f"Judge {number}", "agreement": float(np.mean(yes == right)), **shares})
    return {"estimate": both, "estimates": estimates, "judges": judges}


def group_errors(tables: Sequence[tc.groups.Subgroups]) -> Iterator[tc.inference.GroupError]:
    """Return the errors of the groups that were tested, with p-values adjusted for all groups of their table."""
    for table in tables:
        for row in table.frame():
            if row["error"] is not None:
                error = (row["error"], row["low"], row["high"], row["adjusted"], row["direction"])
                yield tc.inference.GroupError(_group_name(table, row["group"], tables), row["n"], *error)


def _group_name(table: tc.groups.Subgroups, group: str, tables: Sequence[tc.groups.Subgroups]) -> str:
    """Return the name of a group, with its column where there are several tables."""
    return group if len(tables) == 1 else f"{', '.join(table.by)} = {group}"


# ----------------------------------------------------------------------------------------------------
# Curves, estimators, distinct scores


def thin_curve(curve: Curve | None, *, steps: bool = False) -> CurveRow | None:
    """Return at most a few hundred points, spread over ranks and scores, ends included; steps keep both their ends."""
    if curve is None:
        return None
    count = len(curve.score)
    index = np.arange(count)
    if count > _CURVE_POINTS:
        by_rank = np.searchsorted(np.cumsum(curve.weight), np.linspace(0, curve.weight.sum(), _CURVE_POINTS // 2))
        by_score = np.searchsorted(curve.score, np.linspace(curve.score[0], curve.score[-1], _CURVE_POINTS // 2))
        index = np.unique(np.clip(np.concatenate([by_rank, by_score, [0, count - 1]]), 0, count - 1))
    if steps:
        index = np.unique(np.concatenate([index // 2 * 2, index // 2 * 2 + 1]))
    return {"score": curve.score[index].tolist(), "outcome": curve.outcome[index].tolist()}


def with_band(curve: CurveRow, profile: tc.profile.Profile, level: float) -> CurveRow:
    """Return the curve with the simultaneous band of the profile."""
    low, high = tc.inference.band(profile, level=level).at(curve["score"])
    return {**curve, "low": low.tolist(), "high": high.tolist()}


def _other(estimator: Estimator, source: PageSource, *, fast: bool) -> tc.Estimate:
    """Estimate by another method, with a bootstrap interval."""
    estimate = estimator(source.profile)
    # every resample of smECE searches its bandwidth anew, which takes longer than the rest of the page
    interval = None if fast or estimator == _SMOOTH else source.bootstrap_interval(estimator)
    return estimate if interval is None else estimate.replace(interval=interval)


def _estimator_row(estimate: tc.Estimate) -> Row:
    """Return name, norm, value and interval of an estimate as a row of the table of estimators."""
    kind, scheme = type(estimate.estimator).__name__, getattr(estimate.estimator, "scheme", None)
    name = names.ESTIMATORS[names.word_of(kind, names.ESTIMATORS)].title
    if isinstance(estimate, tc.inference.JudgedEstimate):
        name += ", with the judge"
    elif "Binned" in kind and scheme:
        name += f", equal {scheme}"
    bins = None if estimate.bins is None else len(estimate.bins.frame())
    more = {"name": name, "norm": float(estimate.norm), "bins": bins, "sketch_error": estimate.sketch_error}
    return {**estimate.frame()[0], **more}


# ----------------------------------------------------------------------------------------------------
# Classes, groups, segments, words for confidence


def per_class(preds: tc.Predictions, *, level: float) -> dict[str, Any]:
    """Return for every class its labels, frequency, mean probability and error with interval, largest errors first.

    The error is that of ``tc.measure(preds, lens=tc.OneClass(name))``: the rank series, root mean square, with its interval.
    """
    means = [
        {
            "labels": float(sample.outcomes @ (np.ones(len(sample)) if sample.weights is None else sample.weights)),
            "rate": float(np.average(sample.outcomes, weights=sample.weights)),
            "mean": float(np.average(sample.scores, weights=sample.weights)),
        }
        for sample in tc.ClassWise().samples(preds)
    ]
    order: list[int] = list(range(preds.class_count))
    if preds.clusters is None:
        errors = [row for part in tc.ClassWise().profiles(preds) for row in tc.RankSeries(level=level)(part).frame()]
    else:
        # the classes most off on average, as many as can be judged cluster by cluster in bounded time
        order = sorted(order, key=lambda k: -abs(means[k]["mean"] - means[k]["rate"]))[:_MAX_CLUSTERED_CLASSES]
        labels = [k if preds.classes is None else preds.classes[k] for k in order]
        errors = [tc.measure(preds, lens=tc.OneClass(label), level=level).frame()[0] for label in labels]
    rows = [{**error, "name": preds.class_name(k), **means[k]} for k, error in zip(order, errors, strict=True)]
    rows = sorted(rows, key=lambda row: -row["value"])[:_MAX_CLASSES]
    return {"rows": rows, "left_out": preds.class_count - len(rows)}


def _subgroups(source: PageSource) -> list[tc.groups.Subgroups]:
    """Measure the groups of every column; those of a scan by all its columns together."""
    settings: dict[str, Any] = {"level": source.level, "rng": source.rng}
    if source.preds is None or source.lens is None:
        return [tc.subgroups(source.scan, **settings)] if source.by and source.scan is not None else []
    return [tc.subgroups(source.preds, name, lens=source.lens.lens, **settings) for name in source.by]


def _group_table(table: tc.groups.Subgroups, tables: Sequence[tc.groups.Subgroups]) -> dict[str, Any]:
    """Return the rows of a table of groups, each with the name that the conclusion has for it."""
    rows = [{**row, "name": _group_name(table, row["group"], tables)} for row in table.frame()]
    left_out = max(0, len(rows) - _MAX_GROUPS)
    return {"by": ", ".join(table.by), "rows": rows[:_MAX_GROUPS], "left_out": left_out}


def _likert(source: PageSource, scale: Mapping[str, tuple[float, float]]) -> Sequence[Row] | None:
    """Measure the answer scale; None where it does not apply."""
    preds = source.preds
    if preds is None or not (preds.class_count == 2 or source.top_label):
        return None
    return list(tc.likert(preds, scale, level=source.level, rng=source.rng).frame())


def _segments(source: PageSource, tolerance: float) -> Any:
    """Search the columns of the page for segments in which the model is off."""
    if not source.by:
        return None
    data, lens = (source.scan, None) if source.lens is None else (source.preds, source.lens.lens)
    return tc.audit(data, by=list(source.by), lens=lens, level=source.level, tolerance=tolerance)  # type: ignore[arg-type]


def _context(data: object, setting: PageSettings) -> Sequence[Row]:
    """Measure what was asked for beside the one probability that a page judges."""
    if not isinstance(data, tc.Predictions):
        return []
    by_label = setting.select is not None and setting.select.uses_labels
    estimates = [
        tc.measure(data, lens=part, select=setting.select, level=setting.level, rng=setting.rng)
        for part in _context_lenses(data, setting.lens, by_label)
    ]
    return [
        {
            **estimate.frame()[0],
            "where": estimate.selection.partition(" (")[0] or "all rows",
            "if_calibrated": estimate.chance,
        }
        for estimate in estimates
    ]


def _context_lenses(preds: tc.Predictions, lens: Lens | None, by_label: bool) -> Iterator[Lens]:
    """Yield the parts of a lens of several probabilities and the lens itself, else the lens where errors by label are asked for."""
    if lens is not None and lens.several:
        yield from lens.parts(preds)
        yield lens
    elif by_label or (preds.multilabel and lens is None):
        yield lens or default_lens(preds)


# ----------------------------------------------------------------------------------------------------
# Clinical validation, recalibration, and the bias of estimators


def _clinical(source: PageSource) -> dict[str, Any]:
    """Compute the numbers of `tc.clinical.summary`, and of every group."""
    preds, lens = source.preds, source.lens
    if preds is None or lens is None or source.top_label or lens.sample_.pooled:
        raise AbsentPartError("A clinical validation judges the risk of one event, row by row.")
    if len(preds) > _MAX_CLINICAL_ROWS:
        raise AbsentPartError(
            f"Curves of {len(preds):,} rows take longer than the rest of this page, which has them for up to "
            f"{_MAX_CLINICAL_ROWS:,}; `tc.clinical.summary` computes them for any number."
        )
    settings: dict[str, Any] = {"lens": lens.lens, "level": source.level, "rng": source.rng}
    numbers = tc.clinical.summary(preds, **settings)
    forests: dict[str, Sequence[Row]] = {}
    without_forest = ""
    groups = len(set(zip(*(column(preds, name).tolist() for name in source.by), strict=True))) if source.by else 0
    if groups > _MAX_FOREST_GROUPS:
        without_forest = f"The forest plot is drawn for up to {_MAX_FOREST_GROUPS} groups, not for {groups:,}."
    elif groups:
        try:
            sites = tc.clinical.summary(preds, by=list(source.by), **settings).sites
        except InputError as error:
            without_forest = f"No forest plot of the groups: {error}."
        else:
            assert sites is not None
            for name, title in (("oe", "O/E ratio"), ("slope", "Calibration slope")):
                forests[title] = list(tc.plot.ForestDisplay.from_sites(sites, name, plot=False).frame())
    units = f" of {numbers.patients:,} clusters" if preds.clusters is not None else ""
    counts = f"{numbers.rows:,} rows{units}, {numbers.events:,} events ({numbers.prevalence:.1%})"
    texts = {"counts": counts, "warnings": numbers.warnings, "without_forest": without_forest}
    slope = tc.inference.Slope(numbers.slope.value, numbers.slope.low, numbers.slope.high)
    return {"rows": list(numbers.frame()), "slope": slope, "forests": forests, **texts}


def recalibrate(source: PageSource) -> dict[str, Any] | None:
    """Compare recalibration maps on rows that they were not fitted on; by the Brier score where log losses are infinite."""
    preds, lens = source.preds, source.lens
    if preds is None or lens is None:
        return None
    if len(preds) < _MIN_ROWS:
        raise AbsentPartError(f"{len(preds)} rows are too few to fit and judge a recalibrator; {_MIN_ROWS} are needed.")
    try:
        methods: dict[str, Any] = {"Temperature scaling": tc.recalibration.TemperatureScaling(input="probs")}
    except MissingExtraError as error:
        raise AbsentPartError(f"{error}.".capitalize()) from error
    if preds.class_count <= 100:
        methods["Beta calibration"] = tc.recalibration.BetaCalibration()
        methods["Isotonic regression"] = tc.recalibration.IsotonicCalibration()
    limit = max(2 * _MIN_ROWS, min(_MAX_RECALIBRATED_ROWS, _MAX_RECALIBRATED_VALUES // preds.class_count))
    sampled = len(preds) > limit
    if sampled:
        preds = preds.take(np.sort(np.random.default_rng(source.rng).choice(len(preds), limit, replace=False)))
    score = "log loss" if isfinite(tc.scores.log_loss(preds)) else "brier"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruecalWarning)  # of single folds; the table shows what came of them
        evaluation = tc.evaluate(
            methods, preds, folds=_FOLDS, score=score, lens=lens.lens, level=source.level, rng=source.rng
        )
    curves = {row.name: thin_curve(row.error.curve) for row in evaluation.rows}
    return {
        "evaluation": evaluation,
        "rows": [row.record() for row in evaluation.rows],
        "curves": {name: curve for name, curve in curves.items() if curve is not None},
        "score": "Brier score" if score == "brier" else score,
        "tied": [name for name in evaluation.tied if name != evaluation.winner],
        "sampled": len(preds) if sampled else None,
        "folds": _FOLDS,
    }


def simulate_bias(profile: tc.profile.Profile, *, rng: int) -> tc.lab.HowBiased:
    """Measure bias and spread of the root-mean-square estimators on datasets of a world fitted to the data."""
    rows = round(float(profile.size[0]))
    if rows < _MIN_ROWS:
        raise AbsentPartError(f"{rows} rows are too few to simulate data like them; {_MIN_ROWS} are needed.")
    if rows > _MAX_WORLD_ROWS:
        raise AbsentPartError(
            f"With {rows:,} predictions the bias of an estimator is far below its interval; it is simulated for up to "
            f"{_MAX_WORLD_ROWS:,}."
        )
    cells, size = profile.coarsen(_MAX_WORLD_CELLS), min(rows, _MAX_SIMULATED_ROWS)
    return tc.lab.how_biased(cells, estimators=_SIMULATED, n=size, m=_SIMULATED_DATASETS, rng=rng)
