"""The page of several models: errors, pairs, curves, tasks and abstention."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isinf
from typing import Any

import numpy as np

import truecal as tc
from truecal.errors import InputError
from truecal.lenses.lens import Lens
from truecal.lenses.one_probability import default_lens
from truecal.pages.model import CurveRecord, Row, thin_curve, with_band
from truecal.pages.records import Provenance, bin_records, fingerprint
from truecal.pages.render import render
from truecal.plot.display import fitted_limits

_MOST_MODELS = 8  # curves whose colours and dashes differ
_BINS = 10  # of equal mass, drawn beside each curve
_ANSWERED_STEP = 2  # percent of rows answered between the points of a drawn curve
_MOST_TASKS = 60
_FEWEST_TASK_ROWS = 30


@dataclass(frozen=True)
class Pairing:
    """How rows of two models are paired: by their position, by a column `key`, or not at all."""

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

    def finding(self, level: float) -> str:
        """Say which model is better calibrated, if the adjusted p-value shows it."""
        if self.adjusted_p > 1 - level:
            return "not distinguishable"
        return f"{self.a if self.difference < 0 else self.b} is better calibrated"


def compare_models(
    models: Mapping[str, tc.Predictions] | Mapping[str, tc.Sketch],
    pairing: Pairing,
    *,
    lens: Lens | None,
    level: float,
    rng: int,
) -> Sequence[tc.inference.Comparison]:
    """Compare every pair of models, or every model with the reference; p-values are adjusted for the number of pairs (Holm)."""
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


@dataclass(frozen=True)
class ComparisonSetting:
    """What a comparison is asked for besides its data; see `truecal.pages.report_comparison`."""

    pairing: Pairing = field(default_factory=Pairing)
    level: float = 0.95
    title: str = "Calibration of several models"
    command: str | None = None
    rng: int = 0


@dataclass(frozen=True)
class ComparisonPage:
    """All numbers and words of the page; `models` are sorted by their error."""

    title: str
    n: int
    judged: str
    top_label: bool
    level: float
    paired: bool
    models: Sequence[Row]
    pairs: Sequence[PairRow]
    sentence: str
    decided: bool
    curves: Mapping[str, CurveRecord]
    bins: Sequence[Row]
    limits: tuple[float, float]
    abstention: Sequence[Row]
    tasks: Sequence[Row]
    provenance: Provenance

    def html(self) -> str:
        """Render the page."""
        drawn = ("models", "curves", "bins", "limits", "top_label", "abstention")
        return render("comparison.html", {name: getattr(self, name) for name in drawn}, page=self)


def gather_comparison(
    models: Mapping[str, tc.Predictions] | Mapping[str, tc.Sketch],
    setting: ComparisonSetting,
    *,
    lens: Lens | None = None,
) -> ComparisonPage:
    """Measure every model and every pair, and compute the curves to overlay."""
    if not 2 <= len(models) <= _MOST_MODELS:
        raise InputError(f"two to {_MOST_MODELS} models can be compared on one page, not {len(models)}")
    level, rng = setting.level, setting.rng
    with_rows = {name: data for name, data in models.items() if isinstance(data, tc.Predictions)}
    first = next(iter(with_rows.values()), None)
    judged = lens if lens is not None or first is None else default_lens(first)
    if first is not None and judged is not None and (judged.shares(first) is not None or judged.several):
        raise InputError(f"the comparison page draws one probability per row; compare {judged} without a page")
    comparisons = compare_models(models, setting.pairing, lens=judged, level=level, rng=rng)
    estimates = {name: tc.measure(data, lens=judged, level=level, rng=rng) for name, data in models.items()}
    profiles = {name: _profile(data, judged) for name, data in models.items()}
    abstention = {name: tc.selective.risk_coverage(preds, resamples=99) for name, preds in with_rows.items()}
    rows = [_model_row(name, estimates[name], with_rows.get(name), abstention.get(name)) for name in models]
    rows.sort(key=lambda row: row["error"])
    pairs = [PairRow.of(comparison) for comparison in comparisons]
    described = "scores" if first is None or judged is None else judged.describe(first)
    sentence, decided = conclude_comparison([row["name"] for row in rows], pairs, level)
    curves = {name: thin_curve(estimates[name].curve) for name in models}
    ends = [fitted_limits(profile) for profile in profiles.values()]
    return ComparisonPage(
        title=setting.title,
        n=comparisons[0].n,
        judged=described,
        top_label=judged is not None and judged.outcome_name == "accuracy",
        level=level,
        paired=first is not None and setting.pairing.paired,
        models=rows,
        pairs=pairs,
        sentence=sentence,
        decided=decided,
        curves={name: with_band(curve, profiles[name], level) for name, curve in curves.items() if curve is not None},
        bins=[
            {"name": name, **vars(record)}
            for name, profile in profiles.items()
            for record in bin_records(_bins(profile), level)
        ],
        limits=(min(low for low, _ in ends), max(high for _, high in ends)),
        abstention=[
            {"name": name, "answered": row["answered"], "risk": row["risk"]}
            for name, curve in abstention.items()
            for row in curve.frame()
            if round(100 * row["answered"]) % _ANSWERED_STEP == 0
        ],
        tasks=_task_rows(with_rows, judged, level, rng),
        provenance=Provenance(
            {name: fingerprint((preds.probs, preds.labels, preds.weights)) for name, preds in with_rows.items()},
            setting.command,
            {"level": level, "lens": described, "resamples": setting.pairing.resamples, "rng": rng},
        ),
    )


def _profile(data: Any, lens: Lens | None) -> tc.profile.Profile:
    if isinstance(data, tc.Sketch):
        return data.to_profile()
    assert lens is not None
    return lens.sample(data).profile


def _bins(profile: tc.profile.Profile) -> Any:
    bins = tc.BinnedECE(bins=_BINS, scheme="mass")(profile).bins
    assert bins is not None
    return bins


def _interval_row(estimate: tc.Estimate) -> dict[str, float]:
    assert estimate.interval is not None
    low, high = float(estimate.interval.low), float(estimate.interval.high)
    return {"n": estimate.n, "error": float(estimate.value), "low": low, "high": high}


def _model_row(
    name: str, estimate: tc.Estimate, preds: tc.Predictions | None, curve: tc.selective.RiskCoverage | None
) -> Row:
    """Return the error of a model, and its accuracy and scores, which a sketch does not have."""
    row = {"name": name, **_interval_row(estimate), "direction": float(estimate.direction)}
    if preds is None or curve is None:
        return row | {"accuracy": None, "log_loss": None, "brier": None, "aurc": None, "impossible": False}
    log_loss = tc.scores.log_loss(preds)
    row |= {"accuracy": 1 - curve.area.error, "log_loss": log_loss, "brier": tc.scores.brier(preds)}
    return row | {"aurc": curve.area.value, "impossible": isinf(log_loss)}


def _task_rows(models: Mapping[str, tc.Predictions], lens: Lens | None, level: float, rng: int) -> Sequence[Row]:
    """Measure every model on every task, where all of them have a column of tasks."""
    if not models or any("task" not in preds.columns for preds in models.values()):
        return []
    columns = {name: np.asarray(preds.columns["task"]).astype(str) for name, preds in models.items()}
    tasks = np.unique(np.concatenate(list(columns.values())))
    if not 2 <= len(tasks) <= _MOST_TASKS:
        return []
    rows = []
    for task in tasks.tolist():
        for name, preds in models.items():
            part = preds.take(columns[name] == task)
            if len(part) >= _FEWEST_TASK_ROWS:
                row = _interval_row(tc.measure(part, lens=lens, level=level, rng=rng))
                rows.append({"task": task, "model": name, **row})
    return rows


def conclude_comparison(ranked: Sequence[str], pairs: Sequence[PairRow], level: float) -> tuple[str, bool]:
    """Say which model is best calibrated, and which others are significantly worse; and whether any is.

    >>> conclude_comparison(["a", "b"], [PairRow("a", "b", -0.04, -0.05, -0.03, 0.01, 0.01)], 0.95)
    ('a has the smallest calibration error. Significantly worse (95%, adjusted for all pairs): b.', True)
    """
    best = ranked[0]
    significant = {name for p in pairs if best in (p.a, p.b) and p.adjusted_p <= 1 - level for name in (p.a, p.b)}
    worse = [name for name in ranked[1:] if name in significant]
    if not worse:
        return (
            f"{best} has the smallest calibration error, but no other model is significantly worse ({level:.0%}).",
            False,
        )
    listed = ", ".join(worse)
    return (
        f"{best} has the smallest calibration error. Significantly worse ({level:.0%}, adjusted for all pairs): {listed}.",
        True,
    )
