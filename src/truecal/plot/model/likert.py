"""What words for confidence promise, and what happened."""

from typing import Any, Self

from truecal import breakdown
from truecal.plot.canvas import BLUE, GREY
from truecal.plot.display import Display, Numbers, columns

_COLUMNS = ("name", "low", "high", "count", "mean_outcome", "outcome_low", "outcome_high", "kept")


class LikertDisplay(Display):
    """One row per category: its interval as a bar, the outcome frequency with its interval as a dot on it.

    >>> import truecal as tc
    >>> report = tc.likert(tc.Predictions.from_probs([0.1, 0.5, 0.9] * 50, [0, 1, 1] * 50))
    >>> LikertDisplay(report.frame()).frame()["name"].tolist()
    ['low', 'medium', 'high']
    """

    def __init__(self, numbers: Numbers) -> None:
        super().__init__(numbers, *_COLUMNS)

    @classmethod
    def from_report(cls, report: breakdown.LikertReport, ax: Any = None) -> Self:
        """Draw the answer of :func:`truecal.likert`."""
        return cls(report.frame()).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure."""
        names, low, high, count, rate, bottom, top, kept = columns(self._frame, *_COLUMNS)
        axes = self._open(ax, size=(6.0, 1.2 + 0.6 * len(names)))
        words = {True: "kept", False: "not kept", None: "not sure"}
        for row in range(len(names)):
            axes.barh(row, high[row] - low[row], left=low[row], height=0.6, color=GREY, alpha=0.25)
            if rate[row] is None:
                continue
            axes.hlines(row, bottom[row], top[row], color=BLUE, linewidth=1.5)
            axes.plot(rate[row], row, marker="o", color=BLUE)
            axes.annotate(words[kept[row]], (1.02, row), va="center", xycoords=("axes fraction", "data"))
        ticks = [f"{name} (n = {n:,})" for name, n in zip(names, count, strict=True)]
        axes.set_yticks(range(len(names)), ticks, parse_math=False)
        axes.set(xlim=(0, 1), xlabel="Promised range (grey), frequency with interval (blue)")
        return self._done()
