"""Models that no other model beats in both of two respects."""

from typing import Any

import truecal as tc
from truecal.plot.canvas import BLUE, GREY, name_points
from truecal.plot.display import Display, Numbers, columns
from truecal.plot.study.families import Result, chosen


class ParetoDisplay(Display):
    """Models as points in two respects of which less is better; those that no other beats in both are joined by a line.

    `frame()` has the columns it was given and `front`, which says who is on the line.

    >>> display = ParetoDisplay({"name": ["a", "b", "c"], "error": [0.1, 0.2, 0.3], "calibration": [0.05, 0.01, 0.03]})
    >>> display.frame()["front"].tolist()  # b is better than c in both
    [True, True, False]
    """

    def __init__(self, numbers: Numbers, *, x: str = "error", y: str = "calibration") -> None:
        super().__init__(numbers, "name", x, y)
        self._frame = self._frame.but(front=tc.study.on_front(*columns(self._frame, x, y)))
        self.x, self.y = x, y

    @classmethod
    def from_result(
        cls,
        result: Result,
        *,
        metric: str | None = None,
        dataset: str | None = None,
        severity: float | None = None,
        ax: Any = None,
    ) -> "ParetoDisplay":
        """Draw one metric and condition of :func:`truecal.study.pareto`."""
        frame = chosen(result.frame(), metric=metric, dataset=dataset, severity=severity)
        name = str(frame["metric"][0])
        return cls({"name": frame["model"], "error": frame["error"], name: frame["value"]}, y=name).plot(ax)

    def plot(self, ax: Any = None) -> "ParetoDisplay":
        """Draw on `ax`, or on a new figure."""
        names, across, up, front = columns(self._frame, "name", self.x, self.y, "front")
        self._open(ax)
        line = sorted({(a, b) for a, b, on in zip(across, up, front, strict=True) if on})
        self.ax_.step(*zip(*line, strict=True), where="post", color=BLUE, linewidth=1)
        for a, b, on in zip(across, up, front, strict=True):
            self.ax_.plot(a, b, marker="o" if on else "x", color=BLUE if on else GREY, linestyle="none")
        self.ax_.set(xlabel=self.x, ylabel=self.y)
        # those on the line first: where names would cover each other, theirs stay
        order = sorted(range(len(names)), key=lambda i: not front[i])
        name_points(self.ax_, *([column[i] for i in order] for column in (names, across, up)))
        return self._done()
