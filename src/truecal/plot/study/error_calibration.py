"""Calibration against classification error."""

from typing import Any

from truecal.plot.display import Numbers
from truecal.plot.study.families import ConditionDisplay, draw_models, family_legend, name_models


class ErrorCalibrationDisplay(ConditionDisplay):
    """Models by classification error (across) and a calibration metric (up): families by colour and marker, size by size.

    `from_result` draws one condition of :func:`truecal.study.error_against_calibration`.

    >>> frame = {"model": ["a", "b"], "family": ["x", "x"], "size": [1.0, 2.0], "error": [0.1, 0.2], "value": [0.02, 0.01]}
    >>> ErrorCalibrationDisplay(frame).frame()["value"].tolist()
    [0.02, 0.01]
    """

    named_by_result = ("metric",)

    def __init__(self, numbers: Numbers, *, metric: str = "calibration error") -> None:
        super().__init__(numbers, "model", "family", "error", "value")
        self.metric = metric

    def plot(self, ax: Any = None) -> "ErrorCalibrationDisplay":
        """Draw on `ax`, or on a new figure."""
        self._open(ax)
        draw_models(self.ax_, self._frame, "error", "value")
        self.ax_.set(xlabel="Classification error", ylabel=self.metric)
        self.ax_.set_ylim(bottom=0)
        name_models(self.ax_, self._frame, "error", "value")
        family_legend(self.ax_, self._frame)
        return self._done()
