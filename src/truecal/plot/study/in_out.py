"""Models on clean and on shifted data."""

from typing import Any

from truecal.plot.canvas import GREY
from truecal.plot.display import Numbers, columns
from truecal.plot.study.families import ConditionDisplay, draw_models, family_legend, name_models


class InOutDisplay(ConditionDisplay):
    """A metric on clean data (across) and on shifted data (up); on the dotted line nothing has changed.

    `from_result` draws one condition of :func:`truecal.study.in_and_out`.

    >>> frame = {"model": ["a"], "family": [None], "size": [None], "inside": [0.02], "outside": [0.05]}
    >>> InOutDisplay(frame).frame()["outside"].tolist()
    [0.05]
    """

    named_by_result = ("metric",)

    def __init__(self, numbers: Numbers, *, metric: str = "calibration error") -> None:
        super().__init__(numbers, "model", "family", "inside", "outside")
        self.metric = metric

    def plot(self, ax: Any = None) -> "InOutDisplay":
        """Draw on `ax`, or on a new figure."""
        inside, outside = columns(self._frame, "inside", "outside")
        self._open(ax)
        low, high = min(*inside, *outside), max(*inside, *outside)
        self.ax_.plot([low, high], [low, high], color=GREY, linestyle=":", linewidth=1)
        draw_models(self.ax_, self._frame, "inside", "outside")
        self.ax_.set(xlabel=f"{self.metric} on clean data", ylabel=f"{self.metric} on shifted data")
        name_models(self.ax_, self._frame, "inside", "outside")
        family_legend(self.ax_, self._frame)
        return self._done()
