"""What it costs to answer less often."""

from typing import Any

from truecal.plot.canvas import SERIES, Frame, columns, new_axes


class AbstentionDisplay:
    """Cost (or error) against the share of cases answered, the most confident first; one line per model.

    >>> display = AbstentionDisplay({"answered": [0.5, 1.0], "cost": [0.02, 0.1], "series": ["a", "a"]})
    >>> display.frame()["cost"]
    [0.02, 0.1]
    """

    def __init__(self, frame: Frame, *, series: str = "series", cost: str = "cost") -> None:
        columns(frame, "answered", cost, series)
        self._frame = frame
        self.series, self.cost = series, cost
        self.figure_: Any = None
        self.ax_: Any = None

    def frame(self) -> Frame:
        """One row per point, as columns."""
        return self._frame

    def plot(self, ax: Any = None) -> "AbstentionDisplay":
        """Draw on `ax`, or on a new figure."""
        answered, cost, series = columns(self._frame, "answered", self.cost, self.series)
        self.figure_, self.ax_ = new_axes(ax)
        for i, name in enumerate(dict.fromkeys(series)):
            points = sorted((answered[j], cost[j]) for j in range(len(cost)) if series[j] == name)
            style = SERIES[i % len(SERIES)]
            self.ax_.plot(*zip(*points, strict=True), label=str(name), markersize=4, **style)
        self.ax_.set(xlabel="Share of cases answered", ylabel=self.cost, xlim=(0, 1.02))
        self.ax_.set_ylim(bottom=0)
        self.ax_.legend(frameon=False)
        return self
