"""Displays of a list of numbers with intervals: sites and answer scales."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from truecal import options
from truecal.clinical.summaries import QUANTITIES, Sites
from truecal.groups import answer_scales
from truecal.plot.display import BLUE, DASHED, GREY, ORANGE, Display, Numbers, shorten

_NUMBERS = {name: (title[0].upper() + title[1:], ideal) for name, title, ideal, _ in QUANTITIES}


class _RowsDisplay(Display):
    """Draw one line per row of a table: a marker with its interval; the first row on top."""

    width, row_height = 6.0, 0.4  # inches

    def _size(self) -> tuple[float, float]:
        """Return `width`, and 1.2 plus `row_height` per row as height, in inches."""
        return self.width, 1.2 + self.row_height * len(self._frame)

    def _draw_row(self, ax: Any, row: int, value: Any, low: Any, high: Any, color: str = BLUE, **marker: Any) -> None:
        """Draw a value at height `row`, with its interval unless `low` is None; `marker` are keywords of `ax.plot`."""
        if low is not None:
            ax.hlines(row, low, high, color=color, linewidth=1.5)
        ax.plot(value, row, color=color, **{"marker": "o", **marker})

    def _name_rows(self, ax: Any, names: Iterable[str]) -> None:
        """Label the rows by names, the first on top."""
        ax.set_yticks(range(len(self._frame)), list(names), parse_math=False)
        ax.set_ylim(len(self._frame) - 0.5, -0.5)


class ForestDisplay(_RowsDisplay):
    """Draw a forest plot: values with intervals, one line per site, a diamond for the mean over sites, a line for a new site.

    Parameters
    ----------
    numbers : Frame or mapping of columns
        `site`, `value`, `low`, `high`, `events`, `rows`, and `kind` ("site", "mean" or "new site").
    number : str, default "oe"
        Which number of a summary the values are.

    Examples
    --------
    >>> numbers = {"site": ["a"], "value": [1.1], "low": [0.9], "high": [1.3], "events": [40], "rows": [200], "kind": ["site"]}
    >>> ForestDisplay(numbers, number="oe").frame()["value"]
    array([1.1])
    """

    needed = ("site", "value", "low", "high", "events", "rows", "kind")
    width, row_height = 6.5, 0.32

    def __init__(self, numbers: Numbers, *, number: str = "oe") -> None:
        """Store the numbers of the sites; `number` is the one that is drawn."""
        super().__init__(numbers)
        options.choice(number, tuple(_NUMBERS), "number")
        self.number = number

    @classmethod
    def from_sites(cls, sites: Sites, number: str = "oe", *, plot: bool = True, ax: Any = None) -> Self:
        """Draw one number of :func:`truecal.clinical.summary` with `by=`.

        Parameters
        ----------
        sites : Sites
            The summaries by site.
        number : str, default "oe"
            Which number.
        plot : bool, default True
            Whether to draw now.
        ax : matplotlib Axes, default None
            Where to draw; None is a new figure.

        Returns
        -------
        display : ForestDisplay
            The display.
        """
        options.choice(number, tuple(_NUMBERS), "number")
        frame, spread = sites.frame(), sites.heterogeneity.get(number)
        names = ("site", number, f"{number}_low", f"{number}_high", "events", "rows")
        rows = [(*(row[name] for name in names), "site") for row in frame]
        if spread is not None:
            total, mean = (int(frame["events"].sum()), int(frame["rows"].sum())), spread.pooled
            rows.append(("mean over sites", mean.value, mean.low, mean.high, *total, "mean"))
            rows.append(("a new site", mean.value, spread.low, spread.high, *total, "new site"))
        columns = dict(zip(cls.needed, zip(*rows, strict=True), strict=True))
        return cls(columns, number=number)._plot_if(plot, ax)

    def _draw(self, ax: Any) -> None:
        """Draw a row per site, mean and new site, squares growing with events; a dashed line at the ideal; O/E on a log scale.

        The side of a square is 3.7 + 5 sqrt(events / largest events) points. Mean (a diamond) and new site (without a marker)
        are of all sites; names of sites end in (events/rows).
        """
        title, ideal = _NUMBERS[self.number]
        if ideal is not None:
            ax.axvline(ideal, zorder=1, **DASHED)
        rows = list(self._frame)
        largest = max(row["events"] for row in rows if row["kind"] == "site") or 1
        names = []
        for i, row in enumerate(rows):
            kind, name = row["kind"], shorten(str(row["site"]))
            size = 3.7 + 5 * np.sqrt(row["events"] / largest) if kind == "site" else 7.7
            marker = {"site": "s", "mean": "D", "new site": ""}[kind]
            color = {"site": BLUE, "mean": ORANGE, "new site": GREY}[kind]
            self._draw_row(ax, i, row["value"], row["low"], row["high"], color, marker=marker, markersize=size)
            names.append(f"{name}  ({row['events']:,}/{row['rows']:,})" if kind == "site" else name)
        self._name_rows(ax, names)
        if self.number == "oe":
            low, high = min(row["low"] for row in rows), max(row["high"] for row in rows)
            ticks = [x for x in (0.1, 0.2, 0.5, 0.7, 1, 1.4, 2, 5, 10) if low * 0.8 <= x <= high * 1.25]
            ax.set_xscale("log")
            ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            ax.minorticks_off()
        ax.set_xlabel(f"{title}\n(sites: events/rows)")
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)


class LikertDisplay(_RowsDisplay):
    """Draw answer scales: the interval of each category as a bar, the observed frequency with its interval as a dot on it.

    Parameters
    ----------
    numbers : Frame or mapping of columns
        `name`, `low`, `high`, `count`, `mean_outcome`, `outcome_low`, `outcome_high`, `holds`.

    Examples
    --------
    >>> import truecal as tc
    >>> report = tc.likert(tc.Predictions.from_probs([0.1, 0.5, 0.9] * 50, [0, 1, 1] * 50))
    >>> LikertDisplay(report.frame()).frame()["name"].tolist()
    ['low', 'medium', 'high']
    """

    needed = ("name", "low", "high", "count", "mean_outcome", "outcome_low", "outcome_high", "holds")
    row_height = 0.6

    @classmethod
    def from_report(cls, report: answer_scales.LikertReport, ax: Any = None) -> Self:
        """Draw the result of :func:`truecal.likert`.

        Parameters
        ----------
        report : LikertReport
            The result.
        ax : matplotlib Axes, default None
            Where to draw; None is a new figure.

        Returns
        -------
        display : LikertDisplay
            The display, drawn.
        """
        return cls(report.frame()).plot(ax)

    def _draw(self, ax: Any) -> None:
        """Draw per category a grey bar from low to high and, unless empty, its frequency with "holds", "fails" or "not sure"."""
        words = {True: "holds", False: "fails", None: "not sure"}
        rows = list(self._frame)
        for i, row in enumerate(rows):
            ax.barh(i, row["high"] - row["low"], left=row["low"], height=0.6, color=GREY, alpha=0.35)
            if row["mean_outcome"] is not None:
                self._draw_row(ax, i, row["mean_outcome"], row["outcome_low"], row["outcome_high"])
                ax.annotate(words[row["holds"]], (1.02, i), va="center", xycoords=("axes fraction", "data"))
        self._name_rows(ax, (f"{row['name']} (n = {row['count']:,})" for row in rows))
        ax.invert_yaxis()  # the lowest category at the bottom
        ax.set(xlim=(0, 1), xlabel="Promised range (grey), frequency with interval (blue)")
