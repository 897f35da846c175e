"""What recalibration does to every model."""

from typing import Any

from truecal.plot.canvas import GREY
from truecal.plot.display import Numbers, columns
from truecal.plot.study.families import ConditionDisplay, draw_models, family_legend, name_models


class RecalibrationDisplay(ConditionDisplay):
    """Models by error and a calibration metric, before (hollow) and after recalibration (filled), joined by a line.

    `from_result` draws one condition of :func:`truecal.study.effect_of_recalibration`.

    >>> frame = {"model": ["a"], "family": [None], "size": [None], "error": [0.1], "before": [0.05], "after": [0.01]}
    >>> RecalibrationDisplay(frame).frame()["after"].tolist()
    [0.01]
    """

    named_by_result = ("metric", "after")

    def __init__(self, numbers: Numbers, *, metric: str = "calibration error", after: str = "recalibration") -> None:
        super().__init__(numbers, "model", "family", "error", "before", "after")
        self.metric, self.after = metric, after

    def plot(self, ax: Any = None) -> "RecalibrationDisplay":
        """Draw on `ax`, or on a new figure."""
        error, before, after = columns(self._frame, "error", "before", "after")
        self._open(ax)
        later = columns(self._frame, "error_after")[0] if "error_after" in self._frame else error
        for a, b, low, high in zip(error, later, before, after, strict=True):
            self.ax_.plot([a, b], [low, high], color=GREY, linewidth=0.8, alpha=0.7)
        draw_models(self.ax_, self._frame, "error", "before", bars=False, filled=False)
        draw_models(self.ax_, self._frame.but(error=later), "error", "after", bars=False)
        self.ax_.set(xlabel="Classification error", ylabel=f"{self.metric} (hollow: before {self.after})")
        self.ax_.set_ylim(bottom=0)
        name_models(self.ax_, self._frame.but(error=later), "error", "after")
        family_legend(self.ax_, self._frame)
        return self._done()
