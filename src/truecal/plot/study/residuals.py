"""Scores beyond what error explains."""

from typing import Any

from truecal.plot.canvas import GREY
from truecal.plot.display import Display, Numbers
from truecal.plot.study.families import Result, chosen, draw_models, family_legend, name_models


class ResidualDisplay(Display):
    """Residuals of a score against classification error; below the line a model does better than its accuracy predicts.

    >>> frame = {"model": ["a", "b"], "family": ["x", "x"], "size": [None, None], "error": [0.1, 0.2], "residual": [0.02, -0.02]}
    >>> ResidualDisplay(frame).frame()["residual"].tolist()
    [0.02, -0.02]
    """

    def __init__(self, numbers: Numbers, *, metric: str = "score") -> None:
        super().__init__(numbers, "model", "family", "error", "residual")
        self.metric = metric

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

    def plot(self, ax: Any = None) -> "ResidualDisplay":
        """Draw on `ax`, or on a new figure."""
        self._open(ax)
        self.ax_.axhline(0, color=GREY, linewidth=1, linestyle=":")
        draw_models(self.ax_, self._frame, "error", "residual", bars=False)
        self.ax_.set(xlabel="Classification error", ylabel=f"{self.metric} beyond what error explains")
        name_models(self.ax_, self._frame, "error", "residual")
        family_legend(self.ax_, self._frame)
        return self._done()
