"""How likely an error is to be found, against the number of predictions."""

from typing import Any, Self

from truecal.plot.canvas import GREY, SERIES
from truecal.plot.display import Display, Numbers, columns


class PowerDisplay(Display):
    """Detection rate against sample size, one line per true error (or estimator).

    >>> display = PowerDisplay({"n": [100, 1000], "power": [0.2, 0.9], "series": ["2%", "2%"]})
    >>> display.frame()["power"]
    array([0.2, 0.9])
    """

    def __init__(self, numbers: Numbers, *, series: str = "series", level: float = 0.05) -> None:
        super().__init__(numbers, "n", "power", series)
        self.series = series
        self.level = level

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure."""
        n, power, series = columns(self._frame, "n", "power", self.series)
        axes = self._open(ax)
        for i, name in enumerate(dict.fromkeys(series)):
            points = sorted((n[j], power[j]) for j in range(len(n)) if series[j] == name)
            axes.plot(*zip(*points, strict=True), label=str(name), markersize=5, **SERIES[i % len(SERIES)])
        axes.axhline(self.level, color=GREY, linewidth=1, linestyle=(0, (1, 2)))
        axes.set_xscale("log")
        axes.set(xlabel="Predictions", ylabel="Probability of finding the error", ylim=(0, 1.02))
        axes.legend(frameon=False, title=self.series)
        return self._done()
