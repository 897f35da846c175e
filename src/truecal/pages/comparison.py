"""The page of several models: errors, pairs, curves, tasks and abstention."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.inference.ranking import conclude_ranking
from truecal.lenses.lens import Lens, check_lens
from truecal.lenses.one_probability import default_lens
from truecal.pages.model import Row, thin_curve, with_band
from truecal.pages.records import Provenance
from truecal.pages.render import Page
from truecal.pages.sources import PageSource, source_of
from truecal.plot.display import fitted_limits
from truecal.plot.reliability import bin_frame
from truecal.predictions.predictions import check_predictions

_MAX_MODELS = 8  # curves whose colours and dashes differ
_MAX_BANDS = 3  # models whose bands and bins do not hide each other
_BINS = 10  # of equal mass, drawn beside each curve
_ANSWERED_STEP = 2  # percent of rows answered between the points of a drawn curve


class ComparisonPage(Page):
    """The page of several models, sorted by their error."""

    template = "comparison.html"

    def drawn(self) -> dict[str, object]:
        """Return models, curves, bins, limits and abstention by name, which scripts draw."""
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
    """Compute the page of two to eight models on one probability per row: errors, pairs and curves; see `truecal.report`.

    Models are Predictions, or Sketches, which have no accuracy, scores, abstention and tasks. Refuses lenses on several
    probabilities.
    """
    options.level(level)
    for name, preds in models.items():
        check_predictions(preds, tc.Sketch, name=name)
    check_lens(lens)
    if not 2 <= len(models) <= _MAX_MODELS:
        raise InputError(f"a page compares two to {_MAX_MODELS} models, not {len(models)}")
    with_rows = {name: data for name, data in models.items() if isinstance(data, tc.Predictions)}
    first = next(iter(with_rows.values()), None)
    page_lens = lens if lens is not None or first is None else default_lens(first)
    if first is not None and page_lens is not None and (page_lens.shares(first) is not None or page_lens.several):
        raise InputError(
            f"the comparison page needs one probability per row; tc.compare compares {page_lens} without a page"
        )
    settings: dict[str, Any] = {"lens": page_lens, "level": level, "rng": rng}
    pairing: dict[str, Any] = {"reference": reference, "key": key, "paired": paired, "resamples": resamples}
    comparisons = tc.inference.compare_many(models, **pairing, **settings)
    conclusion = conclude_ranking(comparisons, level, reference=reference, max_increase=max_increase)
    sources = {name: source_of(data, by=(), **settings) for name, data in models.items()}
    estimates = {name: sources[name].measure() for name in conclusion.ranking}
    risks = {name: tc.selective.risk_coverage(preds, resamples=99) for name, preds in with_rows.items()}
    curves = {name: curve for name in models if (curve := thin_curve(estimates[name].curve)) is not None}
    detailed = sources if len(sources) <= _MAX_BANDS else {}
    ends = [fitted_limits(source.profile) for source in sources.values()]
    source = next(iter(sources.values()))
    return ComparisonPage(
        title=title,
        lens_name=source.lens_name,
        top_label=source.top_label,
        level=level,
        paired=first is not None and paired,
        conclusion=conclusion,
        estimates=estimates,
        models=[_model_row(name, e, with_rows.get(name), risks.get(name)) for name, e in estimates.items()],
        curves={
            name: with_band(curve, sources[name].profile, level) if name in detailed else curve
            for name, curve in curves.items()
        },
        bins=[
            {"name": name, **row}
            for name, source in detailed.items()
            for row in bin_frame(tc.BinnedECE(bins=_BINS, scheme="mass")(source.profile).bins, level)
        ],
        limits=(min(low for low, _ in ends), max(high for _, high in ends)),
        abstention=[
            {"name": name, "answered": row["answered"], "risk": row["risk"]}
            for name, curve in risks.items()
            for row in curve.frame()
            if round(100 * row["answered"]) % _ANSWERED_STEP == 0
        ],
        tasks=_measure_tasks(sources),
        provenance=Provenance(
            {name: source.fingerprint() for name, source in sources.items()},
            command,
            {"level": level, "lens": source.lens_name, "resamples": resamples, "rng": rng},
        ),
    )


def _model_row(
    name: str, estimate: tc.Estimate, preds: tc.Predictions | None, curve: tc.selective.RiskCoverage | None
) -> Row:
    """Return name, error with interval, accuracy, log loss, Brier score and AURC of a model; the last four None for a sketch.

    Keys are "name", the columns of `Estimate.frame`, accuracy, log_loss, brier and aurc; accuracy is 1 less the share of
    wrong answers.
    """
    scores: dict[str, float | None] = dict.fromkeys(("accuracy", "log_loss", "brier", "aurc"))
    if preds is not None and curve is not None:
        scores = {"log_loss": tc.scores.log_loss(preds), "brier": tc.scores.brier(preds)}
        scores |= {"accuracy": 1 - curve.area.error, "aurc": curve.area.value}
    return {"name": name, **estimate.frame()[0], **scores}


def _measure_tasks(sources: Mapping[str, PageSource]) -> list[Row]:
    """Return the error of every model on every value of a column `task`, by task; empty if a model has no such column.

    A row is "model" and a row of `Subgroups.frame`; tasks without an error (too few rows) are left out.
    """
    if any(source.preds is None or "task" not in source.preds.columns for source in sources.values()):
        return []
    tasks = {name: replace(source, by=("task",)).subgroups()[0] for name, source in sources.items()}
    rows = [
        {"model": name, **row} for name, table in tasks.items() for row in table.frame() if row["error"] is not None
    ]
    return sorted(rows, key=lambda row: str(row["group"]))
