"""How biased an estimator is, over two settings at once."""

from typing import Any

import numpy as np

from truecal.plot.canvas import Frame, columns, new_axes


class BiasMapDisplay:
    """A heat map of bias: one cell per pair of settings (such as sample size and number of bins), its value written in it.

    Blue reads low, orange reads high, white is unbiased; the sign is written, so grey prints can be read.

    >>> frame = {"n": [100, 100, 200, 200], "bins": [5, 10, 5, 10], "bias": [0.03, 0.05, 0.02, 0.03]}
    >>> BiasMapDisplay(frame, x="n", y="bins").table().tolist()
    [[0.03, 0.02], [0.05, 0.03]]
    """

    def __init__(self, frame: Frame, *, x: str = "n", y: str = "bins", value: str = "bias") -> None:
        columns(frame, x, y, value)
        self._frame = frame
        self.x, self.y, self.value = x, y, value
        self.figure_: Any = None
        self.ax_: Any = None

    def frame(self) -> Frame:
        """One row per cell, as columns."""
        return self._frame

    def table(self) -> np.ndarray:
        """The values as a matrix: a row per value of y, a column per value of x, NaN where a pair is missing."""
        across, down = self._ticks(self.x), self._ticks(self.y)
        matrix = np.full((len(down), len(across)), np.nan)
        for x, y, value in zip(*columns(self._frame, self.x, self.y, self.value), strict=True):
            matrix[down.index(y), across.index(x)] = value
        return matrix

    def _ticks(self, name: str) -> list[Any]:
        values = list(dict.fromkeys(self._frame[name]))
        return values if any(isinstance(value, str) for value in values) else sorted(values)

    def plot(self, ax: Any = None) -> "BiasMapDisplay":
        """Draw on `ax`, or on a new figure."""
        from matplotlib.colors import LinearSegmentedColormap

        matrix, across, down = self.table(), self._ticks(self.x), self._ticks(self.y)
        self.figure_, self.ax_ = new_axes(ax, size=(2 + 0.7 * len(across), 1.5 + 0.45 * len(down)))
        colours = LinearSegmentedColormap.from_list("bias", ["#0072b2", "#ffffff", "#d55e00"])
        reach = float(np.nanmax(np.abs(matrix))) or 1.0
        image = self.ax_.imshow(matrix, cmap=colours, vmin=-reach, vmax=reach, aspect="auto")
        for i, j in np.argwhere(~np.isnan(matrix)):
            dark = abs(matrix[i, j]) > 0.75 * reach
            self.ax_.text(
                j,
                i,
                f"{100 * matrix[i, j]:+.2f}",
                ha="center",
                va="center",
                fontsize="small",
                color="white" if dark else "black",
            )
        self.ax_.set_xticks(range(len(across)), [str(tick) for tick in across])
        self.ax_.set_yticks(range(len(down)), [str(tick) for tick in down])
        self.ax_.set(xlabel=self.x, ylabel=self.y, title=f"{self.value}, percentage points")
        self.figure_.colorbar(image, ax=self.ax_)
        return self
