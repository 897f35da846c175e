"""Several models on the same rows: what the comparison page says, as one record."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from truecal.errors import InputError
from truecal.lens import Lens, OneClass, TopLabel
from truecal.predictions import Predictions
from truecal.report.model.curves import thinned
from truecal.report.provenance import fingerprint, now, versions
from truecal.report.records import document
from truecal.scores import accuracy, brier, log_loss
from truecal.uncertainty import compare_many
from truecal.uncertainty.measurement import measure

MOST_MODELS = 8  # as many curves as can be told apart


def gather_comparison(
    models: Mapping[str, Predictions],
    *,
    reference: str | None,
    lens: Lens | None,
    level: float,
    resamples: int,
    title: str,
    command: str | None,
    rng: int,
) -> dict[str, Any]:
    """Errors of every model, differences of every pair, and the curves to overlay."""
    if not 2 <= len(models) <= MOST_MODELS:
        raise InputError(f"two to {MOST_MODELS} models can be compared on one page, not {len(models)}")
    first_name, first = next(iter(models.items()))
    for name, preds in models.items():
        if len(preds) != len(first) or not np.array_equal(preds.labels, first.labels):
            raise InputError(
                f"{name} and {first_name} do not hold the same rows in the same order: their labels differ"
            )
    judged = lens or (OneClass() if first.binary else TopLabel())
    if judged.shares(first) is not None:
        raise InputError("the comparison page judges one quantity; leave out ClassWise()")
    rows, curves = [], {}
    for name, preds in models.items():
        estimate = measure(preds, lens=judged, level=level, rng=rng)
        assert estimate.interval is not None
        curves[name] = thinned(estimate.curve)
        rows.append(
            {
                "name": name,
                "error": float(estimate.value),
                "low": float(estimate.interval.low),
                "high": float(estimate.interval.high),
                "direction": float(estimate.direction),
                "accuracy": accuracy(preds),
                "log_loss": log_loss(preds),
                "brier": brier(preds),
            }
        )
    found = compare_many(
        first.labels,
        {name: preds.probs for name, preds in models.items()},
        reference=reference,
        lens=judged,
        sample_weight=first.weights,
        clusters=first.clusters,
        resamples=resamples,
        level=level,
        rng=rng,
    )
    pairs = [c.row() for c in found]
    return document(
        "comparison",
        title=title,
        n=len(first),
        judged=judged.describe(first),
        top_label=isinstance(judged, TopLabel),
        level=level,
        models=rows,
        pairs=pairs,
        sentence=_sentence(rows, pairs, level),
        curves=curves,
        reproduce={
            "made": now(),
            "versions": versions(),
            "fingerprints": {name: fingerprint(preds) for name, preds in models.items()},
            "command": command,
            "options": {
                "level": level,
                "lens": judged.describe(first),
                "resamples": len(found[0].differences),
                "rng": rng,
            },
        },
    )


def _sentence(rows: list[dict[str, Any]], pairs: list[dict[str, Any]], level: float) -> str:
    """Which model is best calibrated, and which of the others are shown to be worse.

    >>> rows = [{"name": "a", "error": 0.01}, {"name": "b", "error": 0.05}]
    >>> _sentence(rows, [{"a": "a", "b": "b", "adjusted_p": 0.01}], 0.95)
    'a has the smallest calibration error. Shown to be worse, at 95% for all pairs together: b.'
    """
    best = min(rows, key=lambda row: row["error"])["name"]
    shown = {
        name
        for pair in pairs
        if best in (pair["a"], pair["b"]) and pair["adjusted_p"] <= 1 - level
        for name in (pair["a"], pair["b"])
        if name != best
    }
    worse = [row["name"] for row in rows if row["name"] in shown]
    if not worse:
        return f"{best} has the smallest calibration error, but no other model is shown to be worse at {level:.0%}."
    return (
        f"{best} has the smallest calibration error. Shown to be worse, at {level:.0%} for all pairs together: "
        f"{', '.join(worse)}."
    )
