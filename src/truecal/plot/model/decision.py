"""The decision curve: net benefit against the threshold."""

from typing import Any, Self

import numpy as np

from truecal.clinical import DecisionComparison, DecisionCurve
from truecal.plot.canvas import GREEN, GREY, SERIES
from truecal.plot.display import Display, Numbers, columns


class DecisionDisplay(Display):
    """Net benefit of models with intervals, of treating everyone and no one, and of perfectly recalibrated risks.

    Columns: `model`, `threshold`, `net_benefit`, `low`, `high`, `treat_all` and `recalibrated`.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> curve = tc.net_benefit(tc.Predictions.from_probs(p, rng.random(500) < p), [0.2, 0.5])
    >>> DecisionDisplay.from_curve(curve, plot=False).frame()["threshold"]
    array([0.2, 0.5])
    """

    def __init__(self, numbers: Numbers) -> None:
        super().__init__(numbers, "model", "threshold", "net_benefit", "low", "high", "treat_all", "recalibrated")

    @classmethod
    def from_curve(cls, curve: DecisionCurve | DecisionComparison, *, plot: bool = True, ax: Any = None) -> Self:
        """Draw what :func:`truecal.net_benefit` found."""
        frame = curve.frame()
        made = cls(frame if "model" in frame else frame.but(model=["model"] * len(frame)))
        return made.plot(ax) if plot else made

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure; the vertical axis starts a little below 0, as decision curves are read above it."""
        model, threshold, everyone = columns(self._frame, "model", "threshold", "treat_all")
        axes = self._open(ax)
        names = list(dict.fromkeys(model))
        for i, name in enumerate(names):
            rows = [j for j in range(len(model)) if model[j] == name]
            style = {k: v for k, v in SERIES[i % len(SERIES)].items() if k != "marker"}
            x, y, low, high, best = (
                self._frame[c][rows] for c in ("threshold", "net_benefit", "low", "high", "recalibrated")
            )
            axes.plot(x, y, label=str(name), linewidth=1.8, **style)
            axes.fill_between(x, low, high, color=style["color"], alpha=0.15, linewidth=0)
            if len(names) == 1:
                axes.plot(x, best, label="recalibrated", color=GREEN, linestyle=":", linewidth=1.4)
        first = [j for j in range(len(model)) if model[j] == names[0]]
        across, all_ = np.array(threshold)[first], np.array(everyone)[first]
        axes.plot(across, all_, color=GREY, linestyle="--", linewidth=1.2, label="treat everyone")
        axes.axhline(0, color=GREY, linewidth=1.2, label="treat no one")
        top = float(max(np.max(self._frame["high"]), np.max(everyone)))
        axes.set_ylim(-0.15 * top, 1.08 * top)
        axes.set(xlabel="Threshold probability", ylabel="Net benefit")
        axes.legend(frameon=False)
        return self._done()
