"""Calibration of the k most probable classes, method by method."""

from typing import Any

import numpy as np

from truecal.breakdown.beyond_top import BeyondTop
from truecal.plot.canvas import SERIES, Frame, columns, new_axes

_HATCHES = ("", "//", "..", "xx", "\\\\")


class TopKDisplay:
    """Bars of the top-k calibration error with their intervals, grouped by k, one colour and hatch per method.

    >>> display = TopKDisplay({"method": ["plain"], "k": [1], "error": [0.1], "low": [0.05], "high": [0.2]})
    >>> display.frame()["error"]
    [0.1]
    """

    def __init__(self, frame: Frame) -> None:
        columns(frame, "method", "k", "error", "low", "high")
        self._frame = frame
        self.figure_: Any = None
        self.ax_: Any = None

    @classmethod
    def from_report(cls, report: BeyondTop, ax: Any = None) -> "TopKDisplay":
        """Draw what :func:`truecal.beyond_top` found."""
        return cls(report.frame()).plot(ax)

    def frame(self) -> Frame:
        """One row per method and k, as columns."""
        return self._frame

    def plot(self, ax: Any = None) -> "TopKDisplay":
        """Draw on `ax`, or on a new figure."""
        method, k, error, low, high = columns(self._frame, "method", "k", "error", "low", "high")
        methods, ks = list(dict.fromkeys(method)), sorted(set(k))
        self.figure_, self.ax_ = new_axes(ax)
        width = 0.8 / len(methods)
        for i, name in enumerate(methods):
            rows = [j for j in range(len(k)) if method[j] == name]
            x = [ks.index(k[j]) + (i - (len(methods) - 1) / 2) * width for j in rows]
            height = np.array([error[j] for j in rows])
            reach = np.abs(np.array([[error[j] - low[j] for j in rows], [high[j] - error[j] for j in rows]]))
            style = SERIES[i % len(SERIES)]
            self.ax_.bar(
                x, height, width, color=style["color"], hatch=_HATCHES[i % len(_HATCHES)], edgecolor="white", label=name
            )
            self.ax_.errorbar(x, height, reach, fmt="none", ecolor="black", elinewidth=1, capsize=2)
        self.ax_.set_xticks(range(len(ks)), [str(value) for value in ks])
        self.ax_.set(xlabel="k", ylabel="Top-k calibration error")
        self.ax_.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=min(3, len(methods)))
        return self
