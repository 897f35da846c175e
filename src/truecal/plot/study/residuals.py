"""Scores beyond what error explains."""

from typing import Any

from truecal.plot.canvas import GREY, Frame, columns, new_axes
from truecal.plot.study.families import Result, chosen, draw_models, family_legend


class ResidualDisplay:
    """Residuals of a score against classification error; below the line a model does better than its accuracy predicts.

    >>> frame = {"model": ["a", "b"], "family": ["x", "x"], "size": [None, None], "error": [0.1, 0.2], "residual": [0.02, -0.02]}
    >>> ResidualDisplay(frame).frame()["residual"]
    [0.02, -0.02]
    """

    def __init__(self, frame: Frame, *, metric: str = "score") -> None:
        columns(frame, "model", "family", "error", "residual")
        self._frame = frame
        self.metric = metric
        self.figure_: Any = None
        self.ax_: Any = None

    @classmethod
    def from_result(
        cls,
        result: Result,
        *,
        metric: str | None = None,
        dataset: str | None = None,
        severity: float | None = None,
        ax: Any = None,
    ) -> "ResidualDisplay":
        """Draw one score and condition of :func:`truecal.study.residuals`."""
        frame = chosen(result.frame(), metric=metric, dataset=dataset, severity=severity)
        return cls(frame, metric=frame["metric"][0]).plot(ax)

    def frame(self) -> Frame:
        """One row per model, as columns."""
        return self._frame

    def plot(self, ax: Any = None) -> "ResidualDisplay":
        """Draw on `ax`, or on a new figure."""
        self.figure_, self.ax_ = new_axes(ax)
        self.ax_.axhline(0, color=GREY, linewidth=1, linestyle=":")
        draw_models(self.ax_, self._frame, "error", "residual", bars=False)
        self.ax_.set(xlabel="Classification error", ylabel=f"{self.metric} beyond what error explains")
        family_legend(self.ax_, self._frame)
        return self
