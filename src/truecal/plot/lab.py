"""Displays of simulations: bias over two settings, and power."""

from typing import Any, Self

import numpy as np

from truecal.plot.display import GREY, SERIES, Display, Numbers, columns
from truecal.types import Float64s

# ----------------------------------------------------------------------------------------------------
# How biased an estimator is, over two settings at once


class BiasMapDisplay(Display):
    """A heat map of bias: one cell per pair of settings (such as sample size and number of bins), its value written in it.

    Blue is a negative bias, orange a positive one, white none; the sign is written, so grey prints can be read.

    >>> frame = {"n": [100, 100, 200, 200], "bins": [5, 10, 5, 10], "bias": [0.03, 0.05, 0.02, 0.03]}
    >>> BiasMapDisplay(frame, x="n", y="bins").table().tolist()
    [[0.03, 0.02], [0.05, 0.03]]
    """

    def __init__(self, numbers: Numbers, *, x: str = "n", y: str = "bins", value: str = "bias") -> None:
        super().__init__(numbers, x, y, value)
        self.x, self.y, self.value = x, y, value

    def table(self) -> Float64s:
        """The values as a matrix: a row per value of y, a column per value of x, NaN where a pair is missing."""
        across, down = self._ticks(self.x), self._ticks(self.y)
        matrix = np.full((len(down), len(across)), np.nan)
        for x, y, value in zip(*columns(self._frame, self.x, self.y, self.value), strict=True):
            matrix[down.index(y), across.index(x)] = value
        return matrix

    def _ticks(self, name: str) -> list[Any]:
        values = list(dict.fromkeys(self._frame[name].tolist()))
        return values if any(isinstance(value, str) for value in values) else sorted(values)

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure."""
        from matplotlib.colors import LinearSegmentedColormap

        matrix, across, down = self.table(), self._ticks(self.x), self._ticks(self.y)
        axes = self._open(ax, size=(2 + 0.7 * len(across), 1.5 + 0.45 * len(down)))
        colours = LinearSegmentedColormap.from_list("bias", ["#0072b2", "#ffffff", "#d55e00"])
        reach = float(np.nanmax(np.abs(matrix))) or 1.0
        image = axes.imshow(matrix, cmap=colours, vmin=-reach, vmax=reach, aspect="auto")
        for i, j in np.argwhere(~np.isnan(matrix)):
            colour = "white" if abs(matrix[i, j]) > 0.75 * reach else "black"
            style = {"ha": "center", "va": "center", "fontsize": "small", "color": colour}
            axes.text(j, i, f"{100 * matrix[i, j]:+.2f}", **style)
        axes.set_xticks(range(len(across)), [str(tick) for tick in across])
        axes.set_yticks(range(len(down)), [str(tick) for tick in down])
        axes.set(xlabel=self.x, ylabel=self.y, title=f"{self.value}, percentage points")
        return self._done(self.figure_.colorbar(image, ax=axes).ax)


# ----------------------------------------------------------------------------------------------------
# How likely an error is to be found, against the number of predictions


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
