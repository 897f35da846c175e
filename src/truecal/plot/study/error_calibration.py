"""Calibration against classification error."""

from typing import Any

from truecal.plot.canvas import Frame, columns, new_axes
from truecal.plot.study.families import MetricResult, chosen, draw_models, family_legend


class ErrorCalibrationDisplay:
    """Models by classification error (across) and a calibration metric (up): families by colour and marker, size by size.

    >>> frame = {"model": ["a", "b"], "family": ["x", "x"], "size": [1.0, 2.0], "error": [0.1, 0.2], "value": [0.02, 0.01]}
    >>> ErrorCalibrationDisplay(frame).frame()["value"]
    [0.02, 0.01]
    """

    def __init__(self, frame: Frame, *, metric: str = "calibration error") -> None:
        columns(frame, "model", "family", "error", "value")
        self._frame = frame
        self.metric = metric
        self.figure_: Any = None
        self.ax_: Any = None

    @classmethod
    def from_result(
        cls,
        result: MetricResult,
        *,
        dataset: str | None = None,
        severity: float | None = None,
        ax: Any = None,
    ) -> "ErrorCalibrationDisplay":
        """Draw one condition of :func:`truecal.study.error_against_calibration`."""
        return cls(chosen(result.frame(), dataset=dataset, severity=severity), metric=result.metric).plot(ax)

    def frame(self) -> Frame:
        """One row per model, as columns."""
        return self._frame

    def plot(self, ax: Any = None) -> "ErrorCalibrationDisplay":
        """Draw on `ax`, or on a new figure."""
        self.figure_, self.ax_ = new_axes(ax)
        draw_models(self.ax_, self._frame, "error", "value")
        self.ax_.set(xlabel="Classification error", ylabel=self.metric)
        self.ax_.set_ylim(bottom=0)
        family_legend(self.ax_, self._frame)
        return self
