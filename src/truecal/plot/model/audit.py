"""The segments that an audit found, with the limits of their differences."""

from typing import Any, Self

from truecal import breakdown
from truecal.plot.canvas import BLUE, GREY, ORANGE
from truecal.plot.display import Display, Numbers, columns

_COLUMNS = ("depth", "name", "region", "rows", "difference", "low", "high", "beyond")


class AuditDisplay(Display):
    """One row per segment, as a tree: score minus outcome with its limits; orange squares are beyond the tolerance.

    >>> numbers = {"depth": [0], "name": ["site is B"], "region": ["all scores"], "rows": [900]}
    >>> display = AuditDisplay({**numbers, "difference": [0.1], "low": [0.06], "high": [0.14], "beyond": [True]})
    >>> display.frame()["difference"]
    array([0.1])
    """

    def __init__(self, numbers: Numbers, *, tolerance: float | None = None) -> None:
        super().__init__(numbers, *_COLUMNS)
        self.tolerance = tolerance

    @classmethod
    def from_audit(cls, audit: breakdown.Audit, ax: Any = None) -> Self:
        """Draw the answer of :func:`truecal.audit`."""
        return cls(audit.frame(), tolerance=audit.tolerance).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure."""
        depth, names, region, rows, value, low, high, beyond = columns(self._frame, *_COLUMNS)
        axes = self._open(ax, size=(7.0, 1.2 + 0.5 * len(names)))
        axes.axvline(0.0, color=GREY, linewidth=1)
        if self.tolerance is not None:
            axes.axvspan(-self.tolerance, self.tolerance, color=GREY, alpha=0.15, linewidth=0)
        for row in range(len(names)):
            colour, marker = (ORANGE, "s") if beyond[row] else (BLUE, "o")
            axes.hlines(row, low[row], high[row], color=colour, linewidth=1.5)
            axes.plot(value[row], row, marker=marker, color=colour)
        ticks = [
            f"{'    ' * level}{name}\n{'    ' * level}{where}, n = {count:,}"
            for level, name, where, count in zip(depth, names, region, rows, strict=True)
        ]
        axes.set_yticks(range(len(names)), ticks, parse_math=False)
        axes.set(
            ylim=(len(names) - 0.5, -0.5),
            xlabel="Mean score minus mean outcome,\nlimits that hold for all segments",
        )
        return self._done()
