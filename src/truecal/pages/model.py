"""The page of one model: everything it says, as one record. Templates and scripts draw it."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np
from scipy.special import ndtri

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
from truecal.special import kish
from truecal.types import Float64s

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


def gather_model(data: object, **settings: Any) -> ModelPage:
    """Compute the page; settings are those of PageSettings."""
    check_predictions(data, tc.profile.Profile, tc.Sketch, tc.engines.Scan)
    setting = PageSettings(**settings)
    lens, level, rng, progress = setting.lens, setting.level, setting.rng, setting.progress
    progress("measuring")
    columns = () if setting.by is None else (setting.by,) if isinstance(setting.by, str) else tuple(setting.by)
    # a lens on several probabilities, and rows selected by their label, are judged in a section of their own
    page_lens = None if lens is None or lens.several else lens
    rows_chosen = isinstance(data, tc.Predictions) and setting.select is not None and not setting.select.uses_labels
    rows = setting.select(data) if rows_chosen and setting.select is not None else data  # type: ignore[arg-type]
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
    parts, absent = {} if setting.fast else _slow_parts(source, setting), {}
    for name, part in list(parts.items()):
        if isinstance(part, AbsentPartError):
            absent[name], parts[name] = str(part), None
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
    progress("measuring in context")
    return ModelPage(
        title=setting.title,
        source=setting.source,
        lens_name=source.lens_name,
        top_label=source.top_label,
        n=head.n,
        class_count=source.class_count,
        clusters=source.clusters,
        by=group_names,
        level=level,
        tolerance=setting.tolerance,
        conclusion=_conclude(source, head, subgroups, parts.get("clinical"), _losses(rows, setting), setting),
        head=head.to_dict(),
        absolute=absolute.to_dict(),
        sketch=None
        if head.sketch_error is None
        else {"cells": profile.rows, "error": head.sketch_error, "bound": head.sketch_bound, "engine": source.engine},
        mean_score=score,
        mean_outcome=rate,
        estimates=[_estimator_row(estimate) for estimate in (head, absolute, *others.values())],
        values=tc.inference.stated_values(profile, level),
        classes=classes,
        judge=judge,
        groups=[_group_table(table, subgroups) for table in subgroups],
        likert=likert,
        segments=parts.get("segments"),
        clinical=parts.get("clinical"),
        recalibration=parts.get("recalibration"),
        bias=parts.get("bias"),
        context=_context(data, setting),
        selected=str(setting.select) if rows_chosen else "",
        cells=replace(cells, scale=cells.scale / source.design_effect()),
        limits=fitted_limits(profile),
        curves={
            "smooth": None if smooth is None else with_band(smooth, profile, level),
            "isotonic": thin_curve(others[_ISOTONIC].curve, steps=True),
        },
        provenance=Provenance({"": source.fingerprint()}, setting.command, used, setting.files or {}),
        absent=absent,
    )


def _slow_parts(source: PageSource, setting: PageSettings) -> dict[str, Any]:
    """Compute the parts that take seconds; each is a record, None where nobody asked for it, or why it is absent."""
    parts: dict[str, Any] = {}
    steps: list[tuple[str, str, Callable[[], Any]]] = [
        ("segments", "searching for segments", lambda: _segments(source, setting.tolerance)),
        ("clinical", "validating clinically", lambda: _clinical(source) if setting.clinical else None),
        ("recalibration", "recalibrating on held-out folds", lambda: recalibrate(source)),
        ("bias", "simulating data like these", lambda: simulate_bias(source.profile, rng=setting.rng)),
    ]
    for name, words, compute in steps:
        setting.progress(words)
        try:
            parts[name] = compute()
        except AbsentPartError as reason:
            parts[name] = reason
        except InputError as error:
            parts[name] = AbsentPartError(f"Not possible on these data: {error}.")
    return parts


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
        {"name": "Trusted labels alone", "labels": both.trusted, **value_row(alone, "error")},
        {"name": "With the judge", "labels": both.worth, **value_row(both, "error")},
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


def _conclude(
    source: PageSource,
    head: tc.Estimate,
    subgroups: Sequence[tc.groups.Subgroups],
    clinical: Mapping[str, Any] | None,
    losses: Sequence[tc.inference.LossAt],
    setting: PageSettings,
) -> tc.inference.Conclusion:
    """Reach the verdict of the page from all that it shows."""
    numbers = [] if clinical is None else clinical["rows"]
    slope = next((row for row in numbers if row["name"] == "slope"), None)
    return tc.inference.conclude(
        head,
        tolerance=setting.tolerance,
        profile=source.profile,
        groups=group_errors(subgroups),
        slope=None if slope is None else tc.inference.Slope(slope["value"], slope["low"], slope["high"]),
        rows=setting.rows,
        losses=losses,
    )


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


def _variant(estimate: tc.Estimate, scheme: object) -> str:
    """Return "with the judge", or the scheme of a binned estimator, as text; "" for others."""
    if isinstance(estimate, tc.inference.JudgedEstimate):
        return "with the judge"
    return f"equal {scheme}" if "Binned" in type(estimate.estimator).__name__ and scheme else ""


def _estimator_row(estimate: tc.Estimate) -> Row:
    """Return name, norm, value and interval of an estimate as a row of the table of estimators."""
    kind, scheme = type(estimate.estimator).__name__, getattr(estimate.estimator, "scheme", None)
    title = names.ESTIMATORS[names.word_of(kind, names.ESTIMATORS)].title
    return {
        "name": f"{title}, {variant}" if (variant := _variant(estimate, scheme)) else title,
        "norm": float(estimate.norm),
        **value_row(estimate),
        "bins": None if estimate.bins is None else len(estimate.bins.frame()),
        "sketch_error": estimate.sketch_error,
        "kind": kind,
    }


def value_row(estimate: tc.Estimate, name: str = "value") -> dict[str, float | None]:
    """Return the value of an estimate and the limits of its interval."""
    low, high = (None, None) if estimate.interval is None else (estimate.interval.low, estimate.interval.high)
    limits = {"low": None if low is None else float(low), "high": None if high is None else float(high)}
    return {name: float(estimate.value), **limits}


# ----------------------------------------------------------------------------------------------------
# Classes, groups, segments, words for confidence


def per_class(preds: tc.Predictions, *, level: float) -> dict[str, Any]:
    """Return for every class its frequency, mean probability, their difference and the error, with intervals.

    The difference has the normal interval of a mean of n values of p - y, or of as many clusters. The error is that of
    ``tc.measure(preds, lens=tc.OneClass(name))``: the rank series, root mean square, with its interval.
    """
    z = float(ndtri(0.5 + level / 2))
    means = [_class_means(sample, z) for sample in tc.ClassWise().samples(preds)]
    order = np.arange(preds.class_count)
    if preds.clusters is None:
        batches = [_limits(tc.RankSeries(level=level)(part)) for part in tc.ClassWise().profiles(preds)]
        errors = np.concatenate(batches)
    else:
        # the classes most off on average, as many as can be judged cluster by cluster in bounded time
        order = np.argsort([-abs(row["difference"]) for row in means], kind="stable")[:_MAX_CLUSTERED_CLASSES]
        labels = [int(k) if preds.classes is None else preds.classes[k] for k in order]
        errors = np.concatenate([_limits(tc.measure(preds, lens=tc.OneClass(label), level=level)) for label in labels])
    first = np.argsort(-errors[:, 0], kind="stable")[:_MAX_CLASSES]
    rows = [
        {
            "name": preds.class_name(int(order[i])),
            **means[order[i]],
            **dict(zip(("error", "error_low", "error_high"), errors[i].tolist(), strict=True)),
        }
        for i in first
    ]
    return {"rows": rows, "left_out": preds.class_count - len(rows)}


def _limits(estimate: tc.Estimate) -> Float64s:
    """Return value, lower and upper limit of every dataset of an estimate, shape (batch, 3)."""
    assert estimate.interval is not None
    parts = (estimate.value, estimate.interval.low, estimate.interval.high)
    return np.stack([np.atleast_1d(part) for part in parts], axis=1)


def _class_means(sample: tc.lenses.Sample, z: float) -> dict[str, float]:
    """Return labels, frequency, mean probability, their difference and the limits of its interval."""
    weight = np.ones(len(sample)) if sample.weights is None else sample.weights
    total, outcome = weight.sum(), sample.outcomes.astype(np.float64)
    rate, mean = float(weight @ outcome / total), float(weight @ sample.scores / total)
    gap = weight * (sample.scores - outcome - (mean - rate))
    size = total if bool((weight == np.rint(weight)).all()) else float(kish(weight))
    if sample.units is None:
        variance = float(gap @ (gap / np.maximum(weight, 1e-300))) / total / max(size - 1, 1.0)
    else:
        cluster_sums = np.bincount(np.unique(sample.units, return_inverse=True)[1], gap)
        count = len(cluster_sums)
        variance = float(cluster_sums @ cluster_sums) / total**2 * count / max(count - 1, 1)
    half, difference = z * float(np.sqrt(variance)), mean - rate
    limits = {"low": difference - half, "high": difference + half}
    return {"labels": float(rate * total), "rate": rate, "mean": mean, "difference": difference, **limits}


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
            "lens": estimate.lens,
            "where": estimate.selection.partition(" (")[0] or "all rows",
            "metric": estimate.metric,
            "n": estimate.n,
            **value_row(estimate, "error"),
            "if_calibrated": estimate.chance,
            "p_value": None if estimate.p_value is None else float(estimate.p_value),
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
    return {"rows": list(numbers.frame()), "forests": forests, **texts}


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
