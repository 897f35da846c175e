"""The trend of calibration with error, against the number of bins."""

from typing import Any

from truecal.plot.canvas import GREY, SERIES
from truecal.plot.display import Numbers, columns
from truecal.plot.study.families import ConditionDisplay


class BinTrendDisplay(ConditionDisplay):
    """Slope of binned errors on the classification error against their number of bins, and debiased estimators at the right.

    `from_result` draws one condition of :func:`truecal.study.bin_trend`.

    A line that leaves the debiased ones behind as bins grow is the trend of a bias. Whiskers are intervals of the slope.

    >>> frame = {"metric": ["ece-mass-5-l1", "rank-series-l2"], "scheme": ["mass", None], "norm": [1.0, 2.0], "bins": [5, None]}
    >>> frame |= {"debiased": [False, True], "slope": [0.01, 0.0], "low": [0.0, -0.01], "high": [0.02, 0.01]}
    >>> BinTrendDisplay(frame).frame()["slope"].tolist()
    [0.01, 0.0]
    """

    def __init__(self, numbers: Numbers) -> None:
        super().__init__(numbers, "metric", "scheme", "norm", "bins", "debiased", "slope", "low", "high")

    def plot(self, ax: Any = None) -> "BinTrendDisplay":
        """Draw on `ax`, or on a new figure."""
        names = ("metric", "scheme", "norm", "bins", "debiased", "slope", "low", "high")
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns(self._frame, *names), strict=True)]
        self._open(ax)
        self.ax_.axhline(0, color=GREY, linewidth=1, linestyle=":")
        binned = [row for row in rows if not row["debiased"]]
        for i, (scheme, norm) in enumerate(sorted({(row["scheme"], row["norm"]) for row in binned})):
            group = sorted((r for r in binned if (r["scheme"], r["norm"]) == (scheme, norm)), key=lambda r: r["bins"])
            self._whiskers(
                group, [row["bins"] for row in group], label=f"equal {scheme}, norm {norm:g}", **SERIES[i % 5]
            )
        place = max([row["bins"] for row in binned], default=1)
        self.ax_.set_xscale("log")
        ticks = sorted({row["bins"] for row in binned})
        labels = [f"{tick:g}" for tick in ticks]
        for row in rows:
            if row["debiased"]:
                place *= 1.6
                self._whiskers([row], [place], color="black", marker="x", linestyle="none")
                ticks.append(place)
                labels.append(row["metric"])
        self.ax_.set_xticks(ticks, labels, rotation=60 if any(row["debiased"] for row in rows) else 0)
        self.ax_.minorticks_off()
        self.ax_.set(xlabel="Number of bins (right: debiased estimators)", ylabel="Slope on classification error")
        self.ax_.legend(frameon=False)
        return self._done()

    def _whiskers(self, rows: list[dict[str, Any]], places: list[float], **style: Any) -> None:
        slope = [row["slope"] for row in rows]
        reach = [[s - row["low"] for s, row in zip(slope, rows, strict=True)]]
        reach.append([row["high"] - s for s, row in zip(slope, rows, strict=True)])
        self.ax_.errorbar(places, slope, reach, capsize=2, markersize=5, linewidth=1.2, **style)
