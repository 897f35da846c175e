"""The page of several models: errors, pairs, curves, tasks and abstention."""

from collections.abc import Mapping, Sequence
from math import isinf
from typing import Any

import numpy as np

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.inference.ranking import conclude_ranking
from truecal.lenses.lens import Lens, check_lens
from truecal.lenses.one_probability import default_lens
from truecal.pages.model import Row, thin_curve, with_band
from truecal.pages.records import Provenance, fingerprint
from truecal.pages.render import Page
from truecal.plot.display import fitted_limits
from truecal.predictions.predictions import check_predictions
from truecal.table import Frame

_MAX_MODELS = 8  # curves whose colours and dashes differ
_BINS = 10  # of equal mass, drawn beside each curve
_ANSWERED_STEP = 2  # percent of rows answered between the points of a drawn curve
_MAX_TASKS = 60
_MIN_TASK_ROWS = 30


class ComparisonPage(Page):
    """The page of several models, sorted by their error."""

    template = "comparison.html"

    def drawn(self) -> dict[str, object]:
        """Return models, curves, bins, limits and abstention, which scripts draw."""
        return self.pick("models", "curves", "bins", "limits", "top_label", "abstention")


def gather_comparison(
    models: Mapping[str, tc.Predictions] | Mapping[str, tc.Sketch],
    *,
    reference: str | None = None,
    max_increase: float | None = None,
    key: str | None = None,
    paired: bool = True,
    lens: Lens | None = None,
    level: float = 0.95,
    resamples: int = 1000,
    title: str = "Calibration of several models",
    command: str | None = None,
    rng: int = 0,
) -> ComparisonPage:
    """Measure every model and every pair, and compute the curves to overlay; see `truecal.report`."""
    options.level(level)
    for name, preds in models.items():
        check_predictions(preds, tc.Sketch, name=name)
    check_lens(lens)
    if not 2 <= len(models) <= _MAX_MODELS:
        raise InputError(f"two to {_MAX_MODELS} models can be compared on one page, not {len(models)}")
    with_rows = {name: data for name, data in models.items() if isinstance(data, tc.Predictions)}
    first = next(iter(with_rows.values()), None)
    chosen = lens if lens is not None or first is None else default_lens(first)
    if first is not None and chosen is not None and (chosen.shares(first) is not None or chosen.several):
        raise InputError(f"the comparison page draws one probability per row; compare {chosen} without a page")
    settings: dict[str, Any] = {"lens": chosen, "level": level, "rng": rng}
    pairing: dict[str, Any] = {"reference": reference, "key": key, "paired": paired, "resamples": resamples}
    comparisons = tc.inference.compare_many(models, **pairing, **settings)
    conclusion = conclude_ranking(comparisons, level, reference=reference, max_increase=max_increase)
    estimates = {name: tc.measure(models[name], **settings) for name in conclusion.ranking}
    profiles = {name: _profile(data, chosen) for name, data in models.items()}
    risks = {name: tc.selective.risk_coverage(preds, resamples=99) for name, preds in with_rows.items()}
    words = "scores" if first is None or chosen is None else chosen.describe(first)
    curves = {name: thin_curve(estimates[name].curve) for name in models}
    ends = [fitted_limits(profile) for profile in profiles.values()]
    prints = {name: fingerprint((preds.probs, preds.labels, preds.weights)) for name, preds in with_rows.items()}
    used = {"level": level, "lens": words, "resamples": resamples, "rng": rng}
    return ComparisonPage(
        title=title,
        n=conclusion.comparisons[0].n,
        lens_name=words,
        top_label=chosen is not None and chosen.outcome_name == "accuracy",
        level=level,
        paired=first is not None and paired,
        conclusion=conclusion,
        estimates=estimates,
        models=[_model_row(name, e, with_rows.get(name), risks.get(name)) for name, e in estimates.items()],
        curves={name: with_band(curve, profiles[name], level) for name, curve in curves.items() if curve is not None},
        bins=[{"name": name, **row} for name, profile in profiles.items() for row in _bins(profile, level)],
        limits=(min(low for low, _ in ends), max(high for _, high in ends)),
        abstention=[
            {"name": name, "answered": row["answered"], "risk": row["risk"]}
            for name, curve in risks.items()
            for row in curve.frame()
            if round(100 * row["answered"]) % _ANSWERED_STEP == 0
        ],
        tasks=_task_rows(with_rows, settings),
        provenance=Provenance(prints, command, used),
    )


def _profile(data: Any, lens: Lens | None) -> tc.profile.Profile:
    """Return the profile of a sketch, or of predictions under a lens."""
    if isinstance(data, tc.Sketch):
        return data.to_profile()
    assert lens is not None
    return lens.sample(data).profile


def _bins(profile: tc.profile.Profile, level: float) -> Frame:
    """Return a table of bins of equal mass with intervals of their outcomes."""
    bins = tc.BinnedECE(bins=_BINS, scheme="mass")(profile).bins
    assert bins is not None
    low, high = bins.interval(level)
    return bins.frame().with_columns(low=low, high=high)


def _model_row(
    name: str, estimate: tc.Estimate, preds: tc.Predictions | None, curve: tc.selective.RiskCoverage | None
) -> Row:
    """Return the error of a model, and accuracy, log loss, Brier score and AURC, which are None for a sketch."""
    (measured,) = estimate.frame()
    row = {
        "name": name,
        "error": measured["value"],
        **{key: measured[key] for key in ("n", "low", "high", "direction")},
    }
    if preds is None or curve is None:
        return row | {"accuracy": None, "log_loss": None, "brier": None, "aurc": None, "impossible": False}
    log_loss = tc.scores.log_loss(preds)
    row |= {"accuracy": 1 - curve.area.error, "log_loss": log_loss, "brier": tc.scores.brier(preds)}
    return row | {"aurc": curve.area.value, "impossible": isinf(log_loss)}


def _task_rows(models: Mapping[str, tc.Predictions], settings: Mapping[str, Any]) -> Sequence[Row]:
    """Measure every model on every task of at least 30 rows, where all have a column `task` with 2 to 60 values; else no rows."""
    if not models or any("task" not in preds.columns for preds in models.values()):
        return []
    columns = {name: np.asarray(preds.columns["task"]).astype(str) for name, preds in models.items()}
    tasks = np.unique(np.concatenate(list(columns.values())))
    if not 2 <= len(tasks) <= _MAX_TASKS:
        return []
    rows = []
    for task in tasks.tolist():
        for name, preds in models.items():
            part = preds.take(columns[name] == task)
            if len(part) >= _MIN_TASK_ROWS:
                rows.append({"task": task, "model": name, **tc.measure(part, **settings).frame()[0]})
    return rows
