"""What recalibration would bring, on rows the recalibrator was not fitted on."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import truecal as tc
from truecal.errors import InputError, MissingExtraError, TruecalWarning
from truecal.lens import Lens
from truecal.report.model.curves import CurveRecord, thinned
from truecal.report.records import Absent, picked

if TYPE_CHECKING:
    from truecal.recalibrate import Recalibrator

_FOLDS = 5
# Rows and probabilities used; beyond, a sample of the rows says enough and saves minutes.
_MOST_ROWS, _MOST_VALUES = 200_000, 1_000_000
_FEWEST_ROWS = 100


@dataclass(frozen=True)
class RemedyRow:
    """A recalibrator on held-out rows; changes are those from the model as it is."""

    recalibrator: str
    log_loss: float
    log_loss_change_low: float
    log_loss_change_high: float
    brier: float
    brier_change_low: float
    brier_change_high: float
    accuracy: float
    error: float
    error_low: float | None
    error_high: float | None
    equal_width: float
    sweep: float


@dataclass(frozen=True)
class RecalibrationRecord:
    """The cross-fitted comparison. `sampled` is the number of rows used where not all were; `refused` says which methods could not
    be fitted, and why; `recommended` names the map to take, with the reason."""

    rows: tuple[RemedyRow, ...]
    curves: Mapping[str, CurveRecord]
    winner: str
    tied: tuple[str, ...]
    folds: int
    sampled: int | None
    refused: tuple[str, ...] = ()
    recommended: str = ""


def recalibration(preds: tc.Predictions, *, lens: Lens, level: float, rng: int) -> RecalibrationRecord | Absent:
    """The cross-fitted comparison; absent where it cannot be made."""
    if len(preds) < _FEWEST_ROWS:
        return Absent(f"{len(preds)} rows are too few to fit and judge a recalibrator; {_FEWEST_ROWS} are needed.")
    try:
        methods: dict[str, Recalibrator] = {"Temperature scaling": tc.TemperatureScaling(input="probs")}
    except MissingExtraError as error:
        return Absent(f"{error}.".capitalize())
    if preds.class_count <= 100:
        methods["Beta calibration"] = tc.BetaCalibration()
        methods["Isotonic regression"] = tc.IsotonicCalibration()
    most = max(2 * _FEWEST_ROWS, min(_MOST_ROWS, _MOST_VALUES // preds.class_count))
    sampled = len(preds) > most
    if sampled:
        preds = preds.take(np.sort(np.random.default_rng(rng).choice(len(preds), most, replace=False)))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TruecalWarning)  # of single folds; the table shows what came of them
            evaluation = tc.evaluate(methods, preds, folds=_FOLDS, lens=lens, level=level, rng=rng)
    except InputError as error:
        return Absent(f"Not possible on these data: {error}.")
    curves = {row.name: thinned(row.error.curve) for row in evaluation.rows}
    return RecalibrationRecord(
        rows=tuple(picked(RemedyRow, row.record()) for row in evaluation.rows),
        curves={name: curve for name, curve in curves.items() if curve is not None},
        winner=evaluation.winner,
        tied=tuple(evaluation.tied),
        folds=_FOLDS,
        sampled=len(preds) if sampled else None,
        refused=tuple(f"{name} could not be fitted: {why}" for name, why in evaluation.refused),
        recommended=f"{evaluation.recommended} ({evaluation.reason})",
    )
