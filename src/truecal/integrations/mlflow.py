"""Calibration in an MLflow run: the error and its interval as metrics, a reliability diagram as figure, the report as page."""

import tempfile
from pathlib import Path
from typing import Any

import truecal as tc
from truecal.errors import MissingExtraError
from truecal.lenses.lens import Lens
from truecal.lenses.one_probability import default_lens


def log(
    preds: tc.Predictions,
    *,
    name: str = "calibration",
    lens: Lens | None = None,
    level: float = 0.95,
    step: int | None = None,
    page: bool = True,
) -> tc.Estimate:
    """Log predictions to the active MLflow run (or a new one), and return their estimate.

    Metrics are `<name>_error`, `_low`, `_high` and `_p_value`; artifacts `<name>/reliability.png`, and `<name>/report.html` unless
    `page` is False.

    Parameters
    ----------
    preds : predictions on rows that the model was not fitted on. lens, level : as in :func:`truecal.measure`.
    name : what metrics and artifacts are called. step : of a training run.
    """
    try:
        import mlflow
    except ImportError as error:
        raise MissingExtraError("this needs mlflow; install it with: pip install mlflow") from error
    estimate = tc.measure(preds, lens=lens, level=level)
    numbers = {"error": float(estimate)}
    if estimate.interval is not None:
        numbers |= {"low": float(estimate.interval.low), "high": float(estimate.interval.high)}
    if estimate.p_value is not None:
        numbers["p_value"] = float(estimate.p_value)
    mlflow.log_metrics({f"{name}_{key}": value for key, value in numbers.items()}, step=step)
    judged = default_lens(preds) if lens is None else lens
    display = tc.plot.ReliabilityDisplay.from_profile(judged(preds))
    mlflow.log_figure(display.figure_, f"{name}/reliability.png")
    _close(display.figure_)
    if page:
        with tempfile.TemporaryDirectory() as folder:
            mlflow.log_artifact(str(tc.report(preds, Path(folder) / "report.html", lens=lens, level=level)), name)
    return estimate


def _close(figure: Any) -> None:
    from matplotlib import pyplot

    pyplot.close(figure)
