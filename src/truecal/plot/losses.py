"""Displays of what miscalibration costs decisions."""

from typing import Any, Self

from truecal.inference.decisions import DecisionLoss, DecisionLosses
from truecal.plot.display import GREY, SERIES, Display, Numbers, columns

_AXES = {"loss": "Loss by miscalibration per case", "cost": "Mean cost per case"}


class DecisionLossDisplay(Display):
    """Draw the loss (or the cost: a Murphy diagram) at every threshold with its band, one line per model.

    Parameters
    ----------
    numbers : Frame or mapping of columns
        `model`, `threshold`, and the quantity with its limits: `loss`, `low`, `high`, or `cost`, `cost_low`, `cost_high`.
    quantity : {"loss", "cost"}, default "loss"
        What is drawn.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> loss = tc.decision_loss(rng.random(500) < p, p, thresholds=[0.2, 0.5])
    >>> DecisionLossDisplay.from_loss(loss, plot=False).frame()["threshold"]
    array([0.2, 0.5])
    """

    def __init__(self, numbers: Numbers, *, quantity: str = "loss") -> None:
        self.quantity, self.limits = quantity, ("low", "high") if quantity == "loss" else ("cost_low", "cost_high")
        super().__init__(numbers, "model", "threshold", quantity, *self.limits)

    @classmethod
    def from_loss(
        cls, loss: DecisionLoss | DecisionLosses, *, quantity: str = "loss", plot: bool = True, ax: Any = None
    ) -> Self:
        """Draw what :func:`truecal.decision_loss` computed."""
        frame = loss.frame()
        display = cls(
            frame if "model" in frame else frame.with_columns(model=["model"] * len(frame)), quantity=quantity
        )
        return display.plot(ax) if plot else display

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure."""
        (model,) = columns(self._frame, "model")
        axes = self._open(ax)
        names = list(dict.fromkeys(model))
        for i, name in enumerate(names):
            rows = [j for j in range(len(model)) if model[j] == name]
            x, y, low, high = (self._frame[c][rows] for c in ("threshold", self.quantity, *self.limits))
            style = {k: v for k, v in SERIES[i % len(SERIES)].items() if k != "marker" or len(rows) == 1}
            axes.plot(x, y, label=str(name), linewidth=1.8, **style)
            axes.fill_between(x, low, high, color=style["color"], alpha=0.15, linewidth=0)
        axes.axhline(0, color=GREY, linewidth=1)
        axes.set(xlabel="Threshold", ylabel=_AXES[self.quantity], xlim=(0, 1))
        if len(names) > 1:
            axes.legend(frameon=False)
        return self._done()
