"""What it costs to answer less often."""

from collections.abc import Mapping
from typing import Any, Self

import truecal as tc
from truecal.frame import Frame
from truecal.plot.canvas import SERIES
from truecal.plot.display import Display, Numbers, columns


class AbstentionDisplay(Display):
    """Cost (or error) against the share of cases answered, the most confident first; one line per model.

    Columns `low` and `high`, where there are some, are drawn as bands.

    >>> display = AbstentionDisplay({"answered": [0.5, 1.0], "cost": [0.02, 0.1], "series": ["a", "a"]})
    >>> display.frame()["cost"]
    array([0.02, 0.1 ])
    """

    def __init__(self, numbers: Numbers, *, series: str = "series", cost: str = "cost") -> None:
        super().__init__(numbers, "answered", cost, series)
        self.series, self.cost = series, cost

    @classmethod
    def from_curves(cls, curves: Mapping[str, tc.selective.RiskCoverage], *, ax: Any = None) -> Self:
        """Draw risk-coverage curves of :func:`truecal.selective.risk_coverage`, by the names of their models."""
        rows = [{"series": name, **row} for name, curve in curves.items() for row in curve.frame()]
        return cls(Frame.from_records(rows), cost="risk").plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure."""
        answered, cost, series = columns(self._frame, "answered", self.cost, self.series)
        axes = self._open(ax)
        for i, name in enumerate(dict.fromkeys(series)):
            rows = sorted((j for j in range(len(cost)) if series[j] == name), key=lambda j: (answered[j], cost[j]))
            across, style = [answered[j] for j in rows], SERIES[i % len(SERIES)]
            every = max(1, len(rows) // 20)  # a marker on each of a hundred points would hide the line
            up = [cost[j] for j in rows]
            axes.plot(across, up, label=str(name), markersize=4, markevery=every, **style)
            if "low" in self._frame and "high" in self._frame:
                low, high = (self._frame[bound][rows] for bound in ("low", "high"))
                axes.fill_between(across, low, high, color=style["color"], alpha=0.15, linewidth=0)
        axes.set(xlabel="Share of cases answered", ylabel=self.cost, xlim=(0, 1.02))
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False)
        return self._done()
