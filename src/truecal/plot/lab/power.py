"""How likely an error is to be found, against the number of predictions."""

from typing import Any

from truecal.plot.canvas import GREY, SERIES, Frame, columns, new_axes


class PowerDisplay:
    """Detection rate against sample size, one line per true error (or estimator).

    >>> display = PowerDisplay({"n": [100, 1000], "power": [0.2, 0.9], "series": ["2%", "2%"]})
    >>> display.frame()["power"]
    [0.2, 0.9]
    """

    def __init__(self, frame: Frame, *, series: str = "series", level: float = 0.05) -> None:
        columns(frame, "n", "power", series)
        self._frame = frame
        self.series = series
        self.level = level
        self.figure_: Any = None
        self.ax_: Any = None

    def frame(self) -> Frame:
        """One row per point, as columns."""
        return self._frame

    def plot(self, ax: Any = None) -> "PowerDisplay":
        """Draw on `ax`, or on a new figure."""
        n, power, series = columns(self._frame, "n", "power", self.series)
        self.figure_, self.ax_ = new_axes(ax)
        for i, name in enumerate(dict.fromkeys(series)):
            points = sorted((n[j], power[j]) for j in range(len(n)) if series[j] == name)
            style = SERIES[i % len(SERIES)]
            self.ax_.plot(*zip(*points, strict=True), label=str(name), markersize=5, **style)
        self.ax_.axhline(self.level, color=GREY, linewidth=1, linestyle=(0, (1, 2)))
        self.ax_.set_xscale("log")
        self.ax_.set(xlabel="Predictions", ylabel="Probability of finding the error", ylim=(0, 1.02))
        self.ax_.legend(frameon=False, title=self.series)
        return self
