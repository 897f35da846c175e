"""Models on clean and on shifted data."""

from typing import Any

from truecal.plot.canvas import GREY, Frame, columns, new_axes
from truecal.plot.study.families import MetricResult, chosen, draw_models, family_legend


class InOutDisplay:
    """A metric on clean data (across) and on shifted data (up); on the dotted line nothing has changed.

    >>> frame = {"model": ["a"], "family": [None], "size": [None], "inside": [0.02], "outside": [0.05]}
    >>> InOutDisplay(frame).frame()["outside"]
    [0.05]
    """

    def __init__(self, frame: Frame, *, metric: str = "calibration error") -> None:
        columns(frame, "model", "family", "inside", "outside")
        self._frame = frame
        self.metric = metric
        self.figure_: Any = None
        self.ax_: Any = None

    @classmethod
    def from_result(
        cls, result: MetricResult, *, dataset: str | None = None, severity: float | None = None, ax: Any = None
    ) -> "InOutDisplay":
        """Draw one shifted condition of :func:`truecal.study.in_and_out`."""
        return cls(chosen(result.frame(), dataset=dataset, severity=severity), metric=result.metric).plot(ax)

    def frame(self) -> Frame:
        """One row per model, as columns."""
        return self._frame

    def plot(self, ax: Any = None) -> "InOutDisplay":
        """Draw on `ax`, or on a new figure."""
        inside, outside = columns(self._frame, "inside", "outside")
        self.figure_, self.ax_ = new_axes(ax)
        low, high = min(*inside, *outside), max(*inside, *outside)
        self.ax_.plot([low, high], [low, high], color=GREY, linestyle=":", linewidth=1)
        draw_models(self.ax_, self._frame, "inside", "outside")
        self.ax_.set(xlabel=f"{self.metric} on clean data", ylabel=f"{self.metric} on shifted data")
        family_legend(self.ax_, self._frame)
        return self
