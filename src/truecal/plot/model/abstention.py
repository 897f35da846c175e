"""What it costs to answer less often."""

from collections.abc import Mapping
from typing import Any

from truecal.plot.canvas import SERIES, Frame, columns, new_axes
from truecal.selective import RiskCoverage


class AbstentionDisplay:
    """Cost (or error) against the share of cases answered, the most confident first; one line per model.

    Columns `low` and `high`, where there are some, are drawn as bands.

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

    @classmethod
    def from_curves(cls, curves: Mapping[str, RiskCoverage], *, ax: Any = None) -> "AbstentionDisplay":
        """Draw risk-coverage curves of :func:`truecal.selective.risk_coverage`, by the names of their models."""
        frame: Frame = {name: [] for name in ("answered", "risk", "low", "high", "threshold", "series")}
        for series, curve in curves.items():
            part = curve.frame()
            for name, values in {**part, "series": [series] * len(part["answered"])}.items():
                frame[name] += values
        return cls(frame, cost="risk").plot(ax)

    def frame(self) -> Frame:
        """One row per point, as columns."""
        return self._frame

    def plot(self, ax: Any = None) -> "AbstentionDisplay":
        """Draw on `ax`, or on a new figure."""
        answered, cost, series = columns(self._frame, "answered", self.cost, self.series)
        self.figure_, self.ax_ = new_axes(ax)
        for i, name in enumerate(dict.fromkeys(series)):
            rows = sorted((j for j in range(len(cost)) if series[j] == name), key=lambda j: (answered[j], cost[j]))
            across, style = [answered[j] for j in rows], SERIES[i % len(SERIES)]
            every = max(1, len(rows) // 20)  # a marker on each of a hundred points would hide the line
            up = [cost[j] for j in rows]
            self.ax_.plot(across, up, label=str(name), markersize=4, markevery=every, **style)
            if "low" in self._frame and "high" in self._frame:
                low, high = ([self._frame[bound][j] for j in rows] for bound in ("low", "high"))
                self.ax_.fill_between(across, low, high, color=style["color"], alpha=0.15, linewidth=0)
        self.ax_.set(xlabel="Share of cases answered", ylabel=self.cost, xlim=(0, 1.02))
        self.ax_.set_ylim(bottom=0)
        self.ax_.legend(frameon=False)
        return self
