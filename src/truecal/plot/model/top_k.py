"""Calibration of the k most probable classes, method by method."""

from typing import Any, Self

import numpy as np

from truecal import breakdown
from truecal.plot.canvas import SERIES, legend_above
from truecal.plot.display import Display, Numbers, columns

_COLUMNS = ("method", "k", "error", "low", "high")
_HATCHES = ("", "//", "..", "xx", "\\\\")


class TopKDisplay(Display):
    """Bars of the top-k calibration error with their intervals, grouped by k, one colour and hatch per method.

    >>> display = TopKDisplay({"method": ["plain"], "k": [1], "error": [0.1], "low": [0.05], "high": [0.2]})
    >>> display.frame()["error"]
    array([0.1])
    """

    def __init__(self, numbers: Numbers) -> None:
        super().__init__(numbers, *_COLUMNS)

    @classmethod
    def from_report(cls, report: breakdown.BeyondTop, ax: Any = None) -> Self:
        """Draw the answer of :func:`truecal.beyond_top`."""
        return cls(report.frame()).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure."""
        method, k, error, low, high = columns(self._frame, *_COLUMNS)
        methods, ks = list(dict.fromkeys(method)), sorted(set(k))
        axes = self._open(ax)
        width = 0.8 / len(methods)
        for i, name in enumerate(methods):
            rows = [j for j in range(len(k)) if method[j] == name]
            x = [ks.index(k[j]) + (i - (len(methods) - 1) / 2) * width for j in rows]
            height = np.array([error[j] for j in rows])
            reach = np.abs(np.array([[error[j] - low[j] for j in rows], [high[j] - error[j] for j in rows]]))
            style = {"color": SERIES[i % len(SERIES)]["color"], "hatch": _HATCHES[i % len(_HATCHES)]}
            axes.bar(x, height, width, edgecolor="white", label=name, **style)
            axes.errorbar(x, height, reach, fmt="none", ecolor="black", elinewidth=1, capsize=2)
        axes.set_xticks(range(len(ks)), [str(value) for value in ks])
        axes.set(xlabel="k", ylabel="Top-k calibration error")
        legend_above(axes, 3)
        return self._done()
