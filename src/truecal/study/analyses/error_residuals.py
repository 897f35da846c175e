"""What is left of NLL and Brier score once error is taken out (Minderer et al. 2021, Figure 8).

Both scores mix accuracy with calibration and go with error; the residual of a line through the models tells which are better
(negative) or worse than their accuracy alone predicts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from truecal.study.analyses.correlation import FEW, fit_line
from truecal.study.analyses.points import CONDITION, Analysed, gathered, named, numbers, with_error
from truecal.study.store import polars

_FEWEST = 4  # models for a line to leave residuals


@dataclass(frozen=True, eq=False)
class Residuals(Analysed):
    """Residuals of every score.

    `frame()` has one row per score, condition and model. Columns: metric, lens, dataset, severity, model, family, size, error,
    value, expected (by the line), residual, standardized (the residual over its own standard error: beyond 2 or -2 a model stands
    out).
    """

    _lines: Any

    def lines(self) -> Any:
        """Per score and condition: slope with its interval, intercept, share of the variance explained, models."""
        return self._lines


def residuals(
    frame: Any,
    *,
    metrics: str | Sequence[str] = ("nll", "brier"),
    lens: str = "top-label",
    selection: str = "all",
    recalibrator: str = "none",
    dataset: str | None = None,
) -> Residuals:
    """Residuals of scores after a least-squares line on the classification error, under every condition."""
    pl = polars()
    if isinstance(metrics, str):
        metrics = (metrics,)
    points, notes = with_error(
        frame, metrics, lens=lens, selection=selection, recalibrator=recalibrator, dataset=dataset
    )
    remarks, parts, rows = [], [], []
    for (metric, lens_here, *condition), part in points.partition_by(
        ["metric", "lens", *CONDITION], as_dict=True, maintain_order=True
    ).items():
        place = f"{metric} {named(str(condition[0]), float(condition[1]))}"
        error, value = numbers(part, "error", "value")
        line = fit_line(error, value)
        expected = line.intercept + line.slope * error
        rest = value - expected
        if len(error) < _FEWEST or np.isnan(line.slope):
            why = f"{len(error)} models" if len(error) < _FEWEST else "models of one and the same error"
            remarks.append((f"{why} leave no residuals to speak of", place))
        elif len(error) < FEW:
            remarks.append(
                (f"a line through {len(error)} models follows each of them; read residuals with care", place)
            )
        if line.explained > 0.99 and len(error) >= _FEWEST:
            remarks.append(
                ("error explains more than 99 % of the variance; the score ranks models almost as error does", place)
            )
        parts.append(
            part.with_columns(
                pl.Series("expected", expected),
                pl.Series("residual", rest),
                pl.Series("standardized", _standardized(error, rest)),
            )
        )
        row = {"metric": metric, "lens": lens_here, **dict(zip(CONDITION, condition, strict=True))}
        row |= {"slope": line.slope, "slope_low": line.low, "slope_high": line.high, "intercept": line.intercept}
        rows.append({**row, "explained": line.explained, "models": line.models})
    columns = ("metric", "lens", *CONDITION, "model", "family", "size", "error", "value")
    table = pl.concat(parts).select(*columns, "expected", "residual", "standardized")
    return Residuals((*notes, *gathered(remarks)), table, pl.DataFrame(rows, infer_schema_length=None))


def _standardized(error: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Residuals over s * sqrt(1 - leverage); NaN where a point holds the line by itself."""
    n = len(error)
    centred = error - error.mean()
    square = float(centred @ centred)
    if n < _FEWEST or square == 0:
        return np.full(n, np.nan)
    free = 1 - 1 / n - centred**2 / square
    scale = np.sqrt(np.maximum(free, 0.0) * float(rest @ rest) / (n - 2))
    return np.where(scale > 0, rest / np.where(scale > 0, scale, 1.0), np.nan)
