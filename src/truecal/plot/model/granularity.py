"""The error against the size of the bins."""

from typing import Any, Self

from truecal.estimate import generalized
from truecal.plot.canvas import BLUE, GREEN, GREY
from truecal.plot.display import Display, Numbers


class GranularityDisplay(Display):
    """The generalized error for finer and finer bins, with its spread, what a calibrated model would show, and the stable region.

    >>> frame = {"fraction": [0.5, 0.1], "value": [0.02, 0.05], "spread": [0.01, 0.01], "chance": [0.01, 0.04]}
    >>> GranularityDisplay({**frame, "bins": [3, 15], "stable": [True, True]}).frame()["bins"]
    array([ 3, 15])
    """

    def __init__(self, numbers: Numbers) -> None:
        super().__init__(numbers, "fraction", "value", "spread", "chance", "bins", "stable")

    @classmethod
    def from_sweep(cls, sweep: generalized.GranularitySweep, ax: Any = None) -> Self:
        """Draw the answer of :func:`truecal.sweep_granularity`."""
        return cls(sweep.frame()).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure."""
        names = ("value", "spread", "chance", "bins", "stable")
        value, spread, chance, bins, stable = (self._frame[name] for name in names)
        axes = self._open(ax)
        if stable.any():
            first, last = bins[stable].min(), bins[stable].max()
            axes.axvspan(first, last, color=GREEN, alpha=0.12, linewidth=0, label="stable")
        axes.errorbar(bins, value, spread, color=BLUE, marker="o", capsize=2, label="error")
        axes.plot(bins, chance, color=GREY, linestyle="--", marker="s", label="a calibrated model")
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set(xlabel="Number of bins", ylabel="Generalized calibration error")
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False)
        return self._done()
