"""Several models on the same rows: what the comparison page says, as one record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import truecal as tc
from truecal.errors import InputError
from truecal.lens import Lens, default_lens
from truecal.report.comparison.pairs import Pairing, PairRow, compare_models
from truecal.report.model.curves import CurveRecord, thinned
from truecal.report.provenance import Provenance, fingerprint

MOST_MODELS = 8  # as many curves as can be told apart


@dataclass(frozen=True)
class ComparisonSetting:
    """What a comparison is asked for besides its data; see :func:`truecal.report_comparison`."""

    pairing: Pairing = field(default_factory=Pairing)
    level: float = 0.95
    title: str = "Calibration of several models"
    command: str | None = None
    rng: int = 0


@dataclass(frozen=True)
class ModelRow:
    """One model: its calibration error with interval, its direction, and what it is worth otherwise."""

    name: str
    error: float
    low: float
    high: float
    direction: float
    accuracy: float
    log_loss: float
    brier: float


@dataclass(frozen=True)
class ComparisonContent:
    """All numbers and words of the comparison page."""

    title: str
    n: int
    judged: str
    top_label: bool
    level: float
    models: tuple[ModelRow, ...]
    pairs: tuple[PairRow, ...]
    sentence: str
    curves: Mapping[str, CurveRecord | None]
    reproduce: Provenance


def gather_comparison(
    models: Mapping[str, tc.Predictions], setting: ComparisonSetting, *, lens: Lens | None = None
) -> ComparisonContent:
    """Errors of every model, differences of every pair, and the curves to overlay."""
    if not 2 <= len(models) <= MOST_MODELS:
        raise InputError(f"two to {MOST_MODELS} models can be compared on one page, not {len(models)}")
    first = next(iter(models.values()))
    level, rng = setting.level, setting.rng
    judged = default_lens(first) if lens is None else lens
    if judged.shares(first) is not None or judged.several:
        raise InputError(f"the comparison page draws one probability per row; compare {judged} without a page")
    comparisons = compare_models(models, setting.pairing, lens=judged, level=level, rng=rng)
    rows, curves = [], {}
    for name, preds in models.items():
        estimate = tc.measure(preds, lens=judged, level=level, rng=rng)
        assert estimate.interval is not None
        curves[name] = thinned(estimate.curve)
        ends = float(estimate.value), float(estimate.interval.low), float(estimate.interval.high)
        quality = tc.scores.accuracy(preds), tc.scores.log_loss(preds), tc.scores.brier(preds)
        rows.append(ModelRow(name, *ends, float(estimate.direction), *quality))
    pairs = tuple(PairRow.of(comparison) for comparison in comparisons)
    described = judged.describe(first)
    options = {"level": level, "lens": described, "resamples": len(comparisons[0].differences), "rng": rng}
    prints = {name: fingerprint((preds.probs, preds.labels, preds.weights)) for name, preds in models.items()}
    return ComparisonContent(
        title=setting.title,
        n=comparisons[0].n,
        judged=described,
        top_label=judged.outcome_name == "accuracy",
        level=level,
        models=tuple(rows),
        pairs=pairs,
        sentence=_sentence(rows, pairs, level),
        curves=curves,
        reproduce=Provenance(prints, setting.command, options),
    )


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
