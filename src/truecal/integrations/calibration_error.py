"""A module for Hugging Face `evaluate`, by the path of this file or by its class:

metric = evaluate.load(truecal.integrations.calibration_error.__file__)
metric.compute(references=[0, 1, 1], predictions=[0.2, 0.9, 0.6])
"""

from typing import Any

import numpy as np

import truecal as tc
from truecal.errors import MissingExtraError
from truecal.integrations.tracking import estimate_numbers

try:
    import datasets
    import evaluate
except ImportError as error:
    raise MissingExtraError("this needs evaluate; install it with: pip install evaluate") from error

_DESCRIPTION = (
    "How far confidence is from the truth: the root-mean-square calibration error, with its interval and a test."
)
_INPUTS = """
Args:
    predictions: P(positive) of each row, or its list of class probabilities.
    references: class index of each row.
    estimator: one of truecal's, such as truecal.BinnedECE(bins=15); default truecal.RankSeries().
Returns:
    calibration_error, low, high (95 % interval), p_value, n.
"""


class CalibrationError(evaluate.Metric):  # type: ignore[misc]
    """The calibration error as an `evaluate` metric."""

    def _info(self) -> Any:
        """Return the inputs: predictions are one probability per row or a list of class probabilities, references class indices."""
        number, label = datasets.Value("float64"), datasets.Value("int64")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation="",
            inputs_description=_INPUTS,
            features=[
                datasets.Features({"predictions": number, "references": label}),
                datasets.Features({"predictions": datasets.Sequence(number), "references": label}),
            ],
        )

    def _compute(self, predictions: Any, references: Any, estimator: Any = None) -> dict[str, float]:
        """Return the numbers of the estimate: `calibration_error`, `low`, `high`, `p_value` and `n`.

        `predictions` is (n,) or (n, classes), `references` (n,). Limits and p-value are absent where the estimator has none.
        """
        estimate = tc.calibration_error(references, np.asarray(predictions), estimator=estimator)
        return {**estimate_numbers(estimate, "calibration_error"), "n": float(estimate.n)}
