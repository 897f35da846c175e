"""Calibration in a run of Weights & Biases: the error and its interval, a reliability diagram, the report as page."""

from typing import Any

import truecal as tc
from truecal.errors import MissingExtraError
from truecal.integrations.tracking import estimate_numbers, reliability_figure, report_file
from truecal.lenses.lens import Lens


def log(
    run: Any,
    preds: tc.Predictions,
    *,
    name: str = "calibration",
    lens: Lens | None = None,
    level: float = 0.95,
    step: int | None = None,
    page: bool = True,
) -> tc.Estimate:
    """Log predictions to a run of Weights & Biases, and return their estimate.

    Parameters
    ----------
    run : wandb.Run
        The run, as `wandb.init` returns it.
    preds : Predictions
        Predictions on rows that the model was not fitted on.
    name : str, default "calibration"
        Numbers are `<name>/error`, `/low`, `/high` and `/p_value`, pictures `<name>/reliability` and `<name>/report`.
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
        The package wandb is missing.
    """
    try:
        import wandb
    except ImportError as error:
        raise MissingExtraError("this needs wandb; install it with: pip install wandb") from error
    estimate = tc.measure(preds, lens=lens, level=level)
    with reliability_figure(preds, lens) as figure:
        values: dict[str, Any] = {**estimate_numbers(estimate), "reliability": wandb.Image(figure)}
    if page:
        with report_file(preds, lens, level) as path:
            values["report"] = wandb.Html(path.read_text(encoding="utf-8"), inject=False)
    run.log({f"{name}/{key}": value for key, value in values.items()}, step=step)
    return estimate
