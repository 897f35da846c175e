"""The error against the size of the bins."""

from typing import Any

import numpy as np

from truecal.estimate.generalized.granularity import GranularitySweep
from truecal.plot.canvas import BLUE, GREEN, GREY, Frame, columns, new_axes


class GranularityDisplay:
    """The generalized error for finer and finer bins, with its spread, what a calibrated model would show, and the stable region.

    >>> frame = {"fraction": [0.5, 0.1], "value": [0.02, 0.05], "spread": [0.01, 0.01], "chance": [0.01, 0.04]}
    >>> GranularityDisplay({**frame, "bins": [3, 15], "stable": [True, True]}).frame()["bins"]
    [3, 15]
    """

    def __init__(self, frame: Frame) -> None:
        columns(frame, "fraction", "value", "spread", "chance", "bins", "stable")
        self._frame = frame
        self.figure_: Any = None
        self.ax_: Any = None

    @classmethod
    def from_sweep(cls, sweep: GranularitySweep, ax: Any = None) -> "GranularityDisplay":
        """Draw what :func:`truecal.sweep_granularity` found."""
        return cls(sweep.frame()).plot(ax)

    def frame(self) -> Frame:
        """One row per fraction, as columns."""
        return self._frame

    def plot(self, ax: Any = None) -> "GranularityDisplay":
        """Draw on `ax`, or on a new figure."""
        value, spread, chance, bins, stable = (
            np.asarray(column) for column in columns(self._frame, "value", "spread", "chance", "bins", "stable")
        )
        self.figure_, self.ax_ = new_axes(ax)
        if stable.any():
            self.ax_.axvspan(
                bins[stable].min(), bins[stable].max(), color=GREEN, alpha=0.12, linewidth=0, label="stable"
            )
        self.ax_.errorbar(bins, value, spread, color=BLUE, marker="o", capsize=2, label="error")
        self.ax_.plot(bins, chance, color=GREY, linestyle="--", marker="s", label="a calibrated model")
        self.ax_.set_xscale("log", base=2)
        self.ax_.xaxis.set_major_formatter("{x:g}")
        self.ax_.set(xlabel="Number of bins", ylabel="Generalized calibration error")
        self.ax_.set_ylim(bottom=0)
        self.ax_.legend(frameon=False)
        return self
