"""What words for confidence promise, and what happened."""

from typing import Any

from truecal.breakdown.likert import LikertReport
from truecal.plot.canvas import BLUE, GREY, Frame, columns, new_axes


class LikertDisplay:
    """One row per category: its interval as a bar, the outcome rate with its interval as a dot on it.

    >>> import truecal as tc
    >>> report = tc.likert(tc.Predictions.from_probs([0.1, 0.5, 0.9] * 50, [0, 1, 1] * 50))
    >>> LikertDisplay(report.frame()).frame()["name"]
    ['low', 'medium', 'high']
    """

    def __init__(self, frame: Frame) -> None:
        columns(frame, "name", "low", "high", "count", "mean_outcome", "outcome_low", "outcome_high", "kept")
        self._frame = frame
        self.figure_: Any = None
        self.ax_: Any = None

    @classmethod
    def from_report(cls, report: LikertReport, ax: Any = None) -> "LikertDisplay":
        """Draw what :func:`truecal.likert` found."""
        return cls(report.frame()).plot(ax)

    def frame(self) -> Frame:
        """One row per category, as columns."""
        return self._frame

    def plot(self, ax: Any = None) -> "LikertDisplay":
        """Draw on `ax`, or on a new figure."""
        names, low, high, count, rate, bottom, top, kept = columns(
            self._frame, "name", "low", "high", "count", "mean_outcome", "outcome_low", "outcome_high", "kept"
        )
        self.figure_, self.ax_ = new_axes(ax, size=(6.0, 1.2 + 0.6 * len(names)))
        words = {True: "kept", False: "not kept", None: "not sure"}
        for row in range(len(names)):
            self.ax_.barh(row, high[row] - low[row], left=low[row], height=0.6, color=GREY, alpha=0.25)
            if rate[row] is None:
                continue
            self.ax_.hlines(row, bottom[row], top[row], color=BLUE, linewidth=1.5)
            self.ax_.plot(rate[row], row, marker="o", color=BLUE)
            self.ax_.annotate(words[kept[row]], (1.02, row), va="center", xycoords=("axes fraction", "data"))
        ticks = [f"{name} (n = {n:,})" for name, n in zip(names, count, strict=True)]
        self.ax_.set_yticks(range(len(names)), ticks, parse_math=False)
        self.ax_.set(xlim=(0, 1), xlabel="Promised range (grey), outcome rate with interval (blue)")
        return self
