"""Calibration over time: the error of every batch and the evidence that it is off."""

from typing import Any, Self

import numpy as np

import truecal as tc
from truecal.plot.canvas import BLUE, GREY, ORANGE, below
from truecal.plot.display import Display, Numbers

_COLUMNS = ("at", "batch_error", "error", "low", "high", "log_e")


class OverTimeDisplay(Display):
    """Errors of the batches of a watch, the mean error so far with its confidence sequence, and the e-value beneath.

    After `plot`, `evidence_ax_` holds the evidence on a log scale, with the alarm as a dashed line.

    >>> import truecal as tc
    >>> watch = tc.Watch()
    >>> step = watch.update(tc.Predictions.from_probs([0.2, 0.8] * 50, [0, 1] * 50), at="2026-05-01")
    >>> OverTimeDisplay(watch.frame(), tolerance=0.02).frame()["at"].tolist()
    ['2026-05-01']
    """

    def __init__(self, numbers: Numbers, *, tolerance: float, alpha: float = 0.05, name: str = "") -> None:
        super().__init__(numbers, *_COLUMNS)
        self.tolerance, self.alpha, self.name = tolerance, alpha, name
        self.evidence_ax_: Any = None

    @classmethod
    def from_watch(cls, watch: "tc.Watch", *group: object, ax: Any = None) -> Self:
        """Draw a group of a :class:`truecal.Watch`."""
        settings = watch.settings
        made = cls(
            watch.frame(*group), tolerance=settings.tolerance, alpha=settings.alpha, name=", ".join(map(str, group))
        )
        return made.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure."""
        axes = self._open(ax)
        at, batch, error, low, high, log_e = (self._frame[name] for name in _COLUMNS)
        place = np.arange(len(at))
        axes.fill_between(place, low, high, color=ORANGE, alpha=0.15, linewidth=0)
        axes.plot(place, error, color=ORANGE, linewidth=2, label="so far")
        axes.plot(place, batch, color=BLUE, marker="o", markersize=3, linewidth=0, label="batch")
        for side in (-1, 1):
            axes.axhline(side * self.tolerance, color=GREY, linewidth=1, linestyle=(0, (4, 4)))
        axes.set(ylabel="Score - frequency", title=self.name, xticks=[])
        axes.legend(frameon=False, loc="upper left")
        self.evidence_ax_ = below(axes, 0.8)
        self.evidence_ax_.plot(place, log_e / np.log(10), color="black", linewidth=1.5)
        self.evidence_ax_.axhline(-np.log10(self.alpha), color=GREY, linewidth=1, linestyle=(0, (4, 4)))
        shown = np.unique(np.linspace(0, len(at) - 1, min(6, len(at))).astype(int))
        self.evidence_ax_.set_xticks(shown, [str(at[i]) for i in shown], rotation=30, ha="right")
        self.evidence_ax_.set_ylabel("log10 e-value")
        return self._done(self.evidence_ax_)
