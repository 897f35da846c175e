"""The page of one model: results of the library by name, which templates put into words and scripts draw."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal import options
from truecal.errors import InputError, MissingExtraError, TruecalWarning
from truecal.estimators.base import Estimator
from truecal.estimators.estimate import Curve
from truecal.lenses.lens import Lens, check_lens
from truecal.lenses.one_probability import default_lens
from truecal.pages.records import Provenance
from truecal.pages.render import Page
from truecal.pages.sources import MAX_BINS, PageSource, cells_of, source_of
from truecal.plot.display import default_scheme, fitted_limits
from truecal.predictions.predictions import check_predictions
from truecal.predictions.selection import Selection, check_selection

Row = Mapping[str, Any]
CurveRow = dict[str, list[float]]  # score, outcome, and the limits low and high of a band

_CURVE_POINTS = 400
_MAX_CLASSES, _MAX_CLUSTERED_CLASSES = 200, 50  # in the table of classes, so that their tests take bounded time
_FOLDS = 5
_MIN_ROWS = 100  # to fit a recalibration map
_MAX_RECALIBRATED_ROWS, _MAX_RECALIBRATED_VALUES = 200_000, 1_000_000
_ESTIMATORS: tuple[tuple[str, Estimator], ...] = (
    ("Debiased", tc.DebiasedECE()),
    ("Monotone sweep", tc.SweepECE()),
    ("Nearest neighbours", tc.NearestECE()),
    ("Kernel density", tc.estimators.KernelDensityECE()),
    ("Binned (plug-in), equal width", tc.BinnedECE(scheme="width")),
    ("Binned (plug-in), equal mass", tc.BinnedECE(scheme="mass")),
    ("Binned (plug-in), equal width", tc.BinnedECE(scheme="width", norm=np.inf)),
    ("Label-binned, equal width", tc.estimators.LabelBinnedECE()),
    ("Smooth (smECE)", tc.SmoothECE()),
    ("Isotonic (CORP)", tc.estimators.IsotonicError()),
)


@dataclass(frozen=True)
class PageSettings:
    """Settings of the page of one model besides its data; see `truecal.report`."""

    lens: Lens | None = None
    by: str | Sequence[str] | None = None
    tolerance: float = 0.02
    level: float = 0.95
    title: str = "Calibration report"
    source: str | None = None
    command: str | None = None
    fast: bool = False
    rng: int = 0
    scale: Mapping[str, tuple[float, float]] | None = None
    files: Mapping[str, str] | None = None
    select: Selection | None = None
    rows: tc.inference.RowCounts | None = None
    thresholds: Sequence[float] | None = None
    progress: Callable[[str], object] = str

    def __post_init__(self) -> None:
        """Raise InputError for a level or tolerance outside (0, 1), and what is no lens or no selection."""
        options.level(self.level)
        options.between(self.tolerance, "tolerance", 0, 1)
        check_lens(self.lens)
        check_selection(self.select)


class ModelPage(Page):
    """The page of one model. Parts not requested are None; `absent` has the reasons of others, by name."""

    template = "model.html"

    def drawn(self) -> dict[str, object]:
        """Return the numbers that scripts draw, by name.

        They are cells, curves and limits of the page; value, interval and p_value of head and absolute error; level, n,
        top_label and most_bins; and the thinned curve of every recalibrator that has one, as remedies.
        """
        errors = {
            name: {"value": estimate.value, "interval": estimate.interval, "p_value": estimate.p_value}
            for name, estimate in (("head", self.head), ("absolute", self.absolute))
        }
        remedies = () if self.recalibration is None else self.recalibration.rows
        curves = {row.name: thin_curve(row.error.curve) for row in remedies}
        return {
            **self.pick("cells", "curves", "limits"),
            **errors,
            "level": self.settings.level,
            "n": self.head.n,
            "top_label": self.source.top_label,
            "most_bins": MAX_BINS,
            "remedies": {name: curve for name, curve in curves.items() if curve is not None},
        }

    @property
    def flagged(self) -> list[str]:
        """Names of the groups that are shown to be miscalibrated."""
        return [group.name for group in self.conclusion.groups if self.conclusion.group_finding(group.name)]

    def group_name(self, table: tc.groups.Subgroups, group: str) -> str:
        """Return the name of a group, preceded by "column = " where the page has several tables."""
        return _group_name(table, group, self.groups)


def gather_model(data: tc.Predictions | tc.Sketch | tc.engines.Scan, **settings: Any) -> ModelPage:
    """Compute the page of one model; `settings` are the fields of PageSettings.

    Lenses of several probabilities, and rows selected by label, are judged in a section of their own; the rest of the page is then
    about the default lens, or all rows. With a judge, only the headline error and the mean
    score and outcome use its verdicts.
    """
    check_predictions(data, tc.Sketch, tc.engines.Scan)
    setting = PageSettings(**settings)
    level, progress = setting.level, setting.progress
    progress("measuring")
    if setting.select is not None and not isinstance(data, tc.Predictions):
        raise InputError(
            "select= needs rows, and a sketch holds only sums; select while scanning: tc.scan(..., select=...)"
        )
    # a lens on several probabilities, and rows selected by their label, are judged in a section of their own
    lens = None if setting.lens is None or setting.lens.several else setting.lens
    select = None if setting.select is None or setting.select.uses_labels else setting.select
    rows = select(data) if select is not None and isinstance(data, tc.Predictions) else data
    judged = rows if isinstance(rows, tc.Predictions) and rows.judge is not None else None
    # everything but the error itself is about the rows with trusted labels
    rows = rows if judged is None else judged.take(judged.labels >= 0)
    columns = () if setting.by is None else (setting.by,) if isinstance(setting.by, str) else tuple(setting.by)
    source = source_of(rows, lens=lens, by=columns, level=level, rng=setting.rng)
    profile = source.profile
    trusted, absolute = source.measure(), source.measure(tc.RankSeries(norm=1))
    head = trusted if judged is None else tc.measure(judged, level=level, rng=setting.rng)
    score, rate = (float(profile.sums(name, profile.whole())[0, 0] / profile.total[0]) for name in ("c", "y"))
    if judged is not None and isinstance(head, tc.inference.JudgedEstimate):
        score, rate = float(judged.probs.mean()), head.accuracy[0]
    progress("computing other estimators")
    other_estimates = [(name, source.measure(estimator)) for name, estimator in _ESTIMATORS]
    progress("measuring groups")
    groups = source.subgroups()
    progress("measuring classes")
    has_classes = source.preds is not None and (source.preds.class_count > 2 or source.multilabel)
    classes = per_class(source.preds, level=level) if has_classes and source.preds is not None else []
    parts, absent = _compute_slow_parts(source, setting)
    cells, limits, smooth = cells_of(profile), fitted_limits(profile), thin_curve(trusted.curve)
    provenance_options = {"level": level, "tolerance": setting.tolerance, "lens": source.lens_name}
    provenance_options |= {"by": ", ".join(source.by) or None, "rng": setting.rng}
    progress("measuring other lenses")
    return ModelPage(
        title=setting.title,
        settings=setting,
        source=source,
        selected="" if select is None else str(select),
        conclusion=tc.inference.conclude(
            head,
            tolerance=setting.tolerance,
            profile=profile,
            groups=[*group_errors(groups), *(label_errors(classes, source) if source.multilabel else ())],
            rows=setting.rows,
            losses=_decision_losses(rows, setting),
        ),
        head=head,
        absolute=absolute,
        trusted=trusted,
        judges=[] if judged is None else _agreement(judged),
        mean_score=score,
        mean_outcome=rate,
        estimates=[
            ("Rank series" if judged is None else "Rank series, with the judge", head),
            ("Rank series", absolute),
            *other_estimates,
        ],
        values=tc.inference.stated_values(profile, level),
        classes=classes,
        groups=groups,
        likert=None if setting.scale is None else _likert_rows(source, setting.scale),
        **parts,
        context=list(_measure_in_context(data, setting)),
        cells=replace(cells, scale=cells.scale / source.design_effect()),
        limits=limits,
        scheme=default_scheme(limits) if cells.values is None else "values",
        curves={
            "smooth": None if smooth is None else with_band(smooth, profile, level),
            "isotonic": thin_curve(other_estimates[-1][1].curve, steps=True),
        },
        provenance=Provenance({"": source.fingerprint()}, setting.command, provenance_options, setting.files or {}),
        absent=absent,
    )


def _compute_slow_parts(source: PageSource, setting: PageSettings) -> tuple[dict[str, Any], dict[str, str]]:
    """Compute segments and recalibration by name, and the reasons for those that are absent.

    A part is None if it was not asked for, does not apply, or is absent; all are with `fast`.
    """
    steps: dict[str, tuple[str, Callable[[], Any]]] = {
        "segments": ("searching for segments", lambda: source.audit(setting.tolerance)),
        "recalibration": ("recalibrating on held-out folds", lambda: recalibrate(source)),
    }
    parts, absent = dict.fromkeys(steps), {}
    for name, (words, compute) in steps.items() if not setting.fast else ():
        setting.progress(words)
        try:
            parts[name] = compute()
        except MissingExtraError as error:
            absent[name] = f"{error}.".capitalize()
        except InputError as error:
            absent[name] = f"Not possible on these data: {error}."
    return parts, absent


def _decision_losses(data: object, setting: PageSettings) -> list[tc.inference.LossAt]:
    """Return the loss by miscalibration at each threshold of the page; empty without thresholds; refuse data without rows."""
    if setting.thresholds is None:
        return []
    if not isinstance(data, tc.Predictions):
        raise InputError("thresholds= needs rows, and a sketch holds only sums; give Predictions")
    loss = tc.decision_loss(data, setting.thresholds, lens=setting.lens, level=setting.level, rng=setting.rng)
    assert isinstance(loss, tc.scores.DecisionLoss)
    return [loss.at(t) for t in setting.thresholds]


def _agreement(preds: tc.Predictions) -> list[dict[str, float | None]]:
    """Return shares of rows with a trusted label for each judge: `agrees` with it, and accepts `right` and `wrong` answers.

    `right` is a share of the answers that are right (sensitivity), `wrong` of those that are wrong (1 - specificity); None where
    there are none.
    """
    assert preds.judge is not None
    trusted = preds.labels >= 0
    right, accepted = preds.labels[trusted] == 1, preds.judge[trusted] > 0

    def share(of: NDArray[np.bool_]) -> float | None:
        """Return the share of rows that are true, or None without rows."""
        return float(of.mean()) if len(of) else None

    return [
        {"agrees": share(yes == right), "right": share(yes[right]), "wrong": share(yes[~right])} for yes in accepted.T
    ]


# ----------------------------------------------------------------------------------------------------
# Curves


def thin_curve(curve: Curve | None, *, steps: bool = False) -> CurveRow | None:
    """Return at most about `_CURVE_POINTS` points of a curve, spread over ranks and scores, ends included; None for None.

    `steps`: points come in pairs, the ends of a step, which are kept together.
    """
    if curve is None:
        return None
    count = len(curve.score)
    index = np.arange(count)
    if count > _CURVE_POINTS:
        by_rank = np.searchsorted(np.cumsum(curve.weight), np.linspace(0, curve.weight.sum(), _CURVE_POINTS // 2))
        by_score = np.searchsorted(curve.score, np.linspace(curve.score[0], curve.score[-1], _CURVE_POINTS // 2))
        index = np.unique(np.clip(np.concatenate([by_rank, by_score, [0, count - 1]]), 0, count - 1))
    if steps:  # points 2k and 2k + 1 are the ends of step k
        index = np.unique(np.concatenate([index // 2 * 2, index // 2 * 2 + 1]))
    return {"score": curve.score[index].tolist(), "outcome": curve.outcome[index].tolist()}


def with_band(curve: CurveRow, profile: tc.profile.Profile, level: float) -> CurveRow:
    """Return the curve with limits `low` and `high` of the simultaneous band of the profile.

    The band (:func:`truecal.inference.band`) is evaluated at the scores `curve["score"]`.
    """
    low, high = tc.inference.band(profile, level=level).at(curve["score"])
    return {**curve, "low": low.tolist(), "high": high.tolist()}


# ----------------------------------------------------------------------------------------------------
# Classes, groups, words for confidence, errors in context


def per_class(preds: tc.Predictions, *, level: float) -> list[dict[str, Any]]:
    """Return `name`, `labels`, `rate` and `estimate` of the classes with the largest errors, largest first.

    The estimate is ``tc.measure(preds, lens=tc.OneClass(name))``: the rank series, root mean square, with interval and test;
    `labels` is the weight of rows of the class, `rate` its share. At most _MAX_CLASSES classes, with clusters
    _MAX_CLUSTERED_CLASSES.
    """
    values = np.concatenate([np.atleast_1d(tc.RankSeries()(part).value) for part in tc.ClassWise().profiles(preds)])
    limit = _MAX_CLASSES if preds.clusters is None else _MAX_CLUSTERED_CLASSES
    rows = []
    for k in np.argsort(-values, kind="stable")[:limit].tolist():
        lens = tc.OneClass(k if preds.classes is None else preds.classes[k])
        sample = lens.sample(preds)
        weights = np.ones(len(sample)) if sample.weights is None else sample.weights
        labels, estimate = float(sample.outcomes @ weights), tc.measure(preds, lens=lens, level=level)
        row = {"name": preds.class_name(k), "labels": labels, "rate": labels / weights.sum(), "estimate": estimate}
        rows.append(row)
    return sorted(rows, key=lambda row: -float(row["estimate"].value))


def group_errors(tables: Sequence[tc.groups.Subgroups]) -> Iterator[tc.inference.GroupError]:
    """Yield the errors of the groups that were tested, with p-values adjusted for all groups of their table."""
    for table in tables:
        for row in table.frame():
            if row["error"] is not None:
                error = (row["error"], row["low"], row["high"], row["adjusted"], row["direction"])
                yield tc.inference.GroupError(_group_name(table, row["group"], tables), row["n"], *error)


def label_errors(classes: Sequence[Row], source: PageSource) -> Iterator[tc.inference.GroupError]:
    """Yield the errors of single labels of `per_class`, with p-values adjusted for all labels (Bonferroni), listed or not."""
    for row in classes:
        adjusted = min(1.0, (source.class_count or 1) * float(row["estimate"].p_value))
        yield replace(tc.inference.GroupError.of(f"label {row['name']}", row["estimate"]), p_value=adjusted)


def _group_name(table: tc.groups.Subgroups, group: str, tables: Sequence[tc.groups.Subgroups]) -> str:
    """Return the name of a group, preceded by "column = " where there are several tables.

    >>> from types import SimpleNamespace
    >>> table = SimpleNamespace(by=("site",))
    >>> _group_name(table, "A", [table]), _group_name(table, "A", [table, table])
    ('A', 'site = A')
    """
    return group if len(tables) == 1 else f"{', '.join(table.by)} = {group}"


def _likert_rows(source: PageSource, scale: Mapping[str, tuple[float, float]]) -> list[Row] | None:
    """Return a row per word of the answer scale; None unless predictions are in memory, and binary or judged by top label."""
    preds = source.preds
    if preds is None or not (preds.class_count == 2 or source.top_label):
        return None
    return list(tc.likert(preds, scale, level=source.level, rng=source.rng).frame())


def _measure_in_context(data: object, setting: PageSettings) -> Iterator[tc.Estimate]:
    """Yield errors beside the one probability that the page judges.

    These are of a lens of several probabilities and its parts, among rows selected by label, and of multilabel data.
    """
    if not isinstance(data, tc.Predictions):
        return
    lens, select = setting.lens, setting.select
    lenses: list[Lens] = []
    if lens is not None and lens.several:
        lenses = [*lens.parts(data), lens]
    elif (select is not None and select.uses_labels) or (data.multilabel and lens is None):
        lenses = [lens or default_lens(data)]
    for one_lens in lenses:
        yield tc.measure(data, lens=one_lens, select=select, level=setting.level, rng=setting.rng)


# ----------------------------------------------------------------------------------------------------
# Recalibration


def recalibrate(source: PageSource) -> tc.recalibration.Evaluation | None:
    """Compare recalibration maps by cross-validation: by log loss, or by Brier score if the log loss is infinite.

    Maps are temperature scaling and, up to 100 classes, beta calibration and isotonic regression, each fitted in _FOLDS folds.
    Large data are sampled, to at most _MAX_RECALIBRATED_ROWS rows and about _MAX_RECALIBRATED_VALUES probabilities. None for
    sketches and scans. Raises InputError for fewer than _MIN_ROWS rows.
    """
    preds = source.preds
    if preds is None:
        return None
    if len(preds) < _MIN_ROWS:
        raise InputError(
            f"at least {_MIN_ROWS} rows are needed to fit and judge a recalibration method, not {len(preds)}"
        )
    methods: dict[str, Any] = {"Temperature scaling": tc.recalibration.TemperatureScaling(input="probs")}
    if preds.class_count <= 100:
        methods["Beta calibration"] = tc.recalibration.BetaCalibration()
        methods["Isotonic regression"] = tc.recalibration.IsotonicCalibration()
    limit = max(2 * _MIN_ROWS, min(_MAX_RECALIBRATED_ROWS, _MAX_RECALIBRATED_VALUES // preds.class_count))
    if len(preds) > limit:
        preds = preds.take(np.sort(np.random.default_rng(source.rng).choice(len(preds), limit, replace=False)))
    score = "log loss" if isfinite(tc.scores.log_loss(preds)) else "brier"
    # warnings of single folds are left out: the table shows what came of them
    with warnings.catch_warnings(action="ignore", category=TruecalWarning):
        return tc.evaluate(methods, preds, folds=_FOLDS, score=score, **source.options)
