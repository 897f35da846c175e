"""What recalibration would bring, on rows the recalibrator was not fitted on."""

import warnings
from typing import Any

import numpy as np

from truecal.errors import InputError, TruecalWarning
from truecal.lens import Lens
from truecal.predictions import Predictions
from truecal.report.model.curves import thinned

_FOLDS = 5
_MOST_VALUES = 1_000_000  # probabilities used; beyond, a sample of the rows says enough and saves minutes
_FEWEST_ROWS = 100


def recalibration(preds: Predictions, *, lens: Lens, level: float, rng: int) -> dict[str, Any]:
    """The cross-fitted comparison as a record; with "absent" and the reason where it cannot be made."""
    if len(preds) < _FEWEST_ROWS:
        return {"absent": f"{len(preds)} rows are too few to fit and judge a recalibrator; {_FEWEST_ROWS} are needed."}
    try:
        from truecal import recalibrate as r
    except ImportError:
        return {"absent": "This needs scikit-learn: pip install 'truecal[sklearn]'."}
    most = max(2 * _FEWEST_ROWS, _MOST_VALUES // preds.class_count)
    sampled = len(preds) > most
    if sampled:
        preds = preds.take(np.sort(np.random.default_rng(rng).choice(len(preds), most, replace=False)))
    methods: dict[str, Any] = {"Temperature scaling": r.TemperatureScaling(input="probs")}
    if preds.class_count <= 100:
        methods["Beta calibration"] = r.BetaCalibration()
        methods["Isotonic regression"] = r.IsotonicCalibration()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TruecalWarning)  # of single folds; the table shows what came of them
            found = r.evaluate(methods, preds, folds=_FOLDS, lens=lens, level=level, rng=rng)
    except InputError as error:
        return {"absent": f"Not possible on these data: {error}."}
    return {
        "rows": found.frame(),
        "curves": {row.name: curve for row in found.rows if (curve := thinned(row.error.curve)) is not None},
        "winner": found.winner,
        "tied": list(found.tied),
        "folds": _FOLDS,
        "sampled": len(preds) if sampled else None,
    }
