"""Calibration in an MLflow run: the error and its interval as metrics, a reliability diagram as figure, the report as page."""

import truecal as tc
from truecal.errors import MissingExtraError
from truecal.integrations.tracking import estimate_numbers, reliability_figure, report_file
from truecal.lenses.lens import Lens


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

    Parameters
    ----------
    preds : Predictions
        Predictions on rows that the model was not fitted on.
    name : str, default "calibration"
        Metrics are `<name>_error`, `_low`, `_high` and `_p_value`; artifacts `<name>/reliability.png` and `<name>/report.html`.
    lens : Lens, default None
        What is judged, as in :func:`truecal.measure`.
    level : float, default 0.95
        Level of the interval.
    step : int, default None
        Step of a training run.
    page : bool, default True
        Whether the report is logged too.

    Returns
    -------
    Estimate
        The error.

    Raises
    ------
    MissingExtraError
        The package mlflow is missing.
    """
    try:
        import mlflow
    except ImportError as error:
        raise MissingExtraError("this needs mlflow; install it with: pip install mlflow") from error
    estimate = tc.measure(preds, lens=lens, level=level)
    mlflow.log_metrics({f"{name}_{key}": value for key, value in estimate_numbers(estimate).items()}, step=step)
    with reliability_figure(preds, lens) as figure:
        mlflow.log_figure(figure, f"{name}/reliability.png")
    if page:
        with report_file(preds, lens, level) as path:
            mlflow.log_artifact(str(path), name)
    return estimate
