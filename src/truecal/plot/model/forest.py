"""The forest plot: one number per site, with its interval, and the mean over sites."""

from typing import Any, Self

import numpy as np

from truecal.clinical import Sites
from truecal.errors import InputError
from truecal.plot.canvas import BLUE, GREY, ORANGE
from truecal.plot.display import Display, Numbers, columns

_LETTERS = 24  # of a site's name; a longer one would leave no room for the intervals of a small figure
_TITLES = {
    "oe": ("O/E ratio", 1.0),
    "intercept": ("Calibration intercept", 0.0),
    "slope": ("Calibration slope", 1.0),
    "ici": ("ICI", 0.0),
    "e50": ("E50", 0.0),
    "e90": ("E90", 0.0),
    "emax": ("Emax", 0.0),
    "c_statistic": ("c-statistic", None),
    "brier": ("Brier score", None),
    "scaled_brier": ("Scaled Brier score", None),
}


class ForestDisplay(Display):
    """Values with intervals, one line per site; a diamond for the mean over sites and a thin line for a new site.

    Columns: `site`, `value`, `low`, `high`, `events`, `rows`, and `kind` ("site", "mean" or "new site").

    >>> numbers = {"site": ["a"], "value": [1.1], "low": [0.9], "high": [1.3], "events": [40], "rows": [200], "kind": ["site"]}
    >>> ForestDisplay(numbers, number="oe").frame()["value"]
    array([1.1])
    """

    def __init__(self, numbers: Numbers, *, number: str = "oe") -> None:
        super().__init__(numbers, "site", "value", "low", "high", "events", "rows", "kind")
        if number not in _TITLES:
            raise InputError(f"there is no number {number!r}; there are {', '.join(_TITLES)}")
        self.number = number

    @classmethod
    def from_sites(cls, sites: Sites, number: str = "oe", *, plot: bool = True, ax: Any = None) -> Self:
        """Draw one number of :func:`truecal.clinical` with `by=`."""
        if number not in _TITLES:
            raise InputError(f"there is no number {number!r}; there are {', '.join(_TITLES)}")
        frame = sites.frame()
        count = len(frame)
        rows: dict[str, list[Any]] = {
            "site": frame["site"].tolist(),
            "value": frame[number].tolist(),
            "low": frame[f"{number}_low"].tolist(),
            "high": frame[f"{number}_high"].tolist(),
            "events": frame["events"].tolist(),
            "rows": frame["rows"].tolist(),
            "kind": ["site"] * count,
        }
        spread = sites.heterogeneity.get(number)
        if spread is not None:
            total = (int(frame["events"].sum()), int(frame["rows"].sum()))
            mean = ("mean over sites", spread.pooled.value, spread.pooled.low, spread.pooled.high, *total, "mean")
            new = ("a new site", spread.pooled.value, spread.low, spread.high, *total, "new site")
            for line in (mean, new):
                for name, value in zip(rows, line, strict=True):
                    rows[name].append(value)
        made = cls(rows, number=number)
        return made.plot(ax) if plot else made

    @staticmethod
    def shortened(name: str, letters: int = _LETTERS) -> str:
        """The beginning and the end of a long name: groups by several columns may differ in the end only.

        >>> ForestDisplay.shortened("University Hospital, female", 18)
        'University…female'
        """
        if len(name) <= letters:
            return name
        tail = (letters - 1) * 2 // 5
        return f"{name[: letters - 1 - tail].rstrip(' ,')}…{name[len(name) - tail :]}"

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure as tall as the list needs."""
        site, value, low, high, kind = columns(self._frame, "site", "value", "low", "high", "kind")
        events, rows = columns(self._frame, "events", "rows")
        axes = self._open(ax, size=(6.5, 1.2 + 0.32 * len(site)))
        title, ideal = _TITLES[self.number]
        places = np.arange(len(site))[::-1]
        if ideal is not None:
            axes.axvline(ideal, color=GREY, linestyle=(0, (4, 4)), linewidth=1, zorder=1)
        largest = max(e for e, k in zip(events, kind, strict=True) if k == "site") or 1
        for i, place in enumerate(places):
            colour = {"site": BLUE, "mean": ORANGE, "new site": GREY}[kind[i]]
            axes.plot([low[i], high[i]], [place, place], color=colour, linewidth=1.4, zorder=2)
            if kind[i] != "new site":
                size = 14 + 60 * events[i] / largest if kind[i] == "site" else 60
                axes.scatter(
                    [value[i]], [place], s=size, color=colour, marker="D" if kind[i] == "mean" else "s", zorder=3
                )
        short = [self.shortened(str(name)) for name in site]
        names = [
            f"{s}  ({e:,}/{n:,})" if k == "site" else s for s, e, n, k in zip(short, events, rows, kind, strict=True)
        ]
        axes.set_yticks(places, names, parse_math=False)
        axes.set_ylim(-0.7, len(site) - 0.3)
        if self.number == "oe":
            axes.set_xscale("log")
            from matplotlib.ticker import FixedLocator, FormatStrFormatter, NullLocator

            span = [x for x in (0.1, 0.2, 0.5, 0.7, 1, 1.4, 2, 5, 10) if min(low) * 0.8 <= x <= max(high) * 1.25]
            axes.xaxis.set_major_locator(FixedLocator(span))
            axes.xaxis.set_major_formatter(FormatStrFormatter("%g"))
            axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel(f"{title}\n(sites: events/rows)")
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.tick_params(axis="y", length=0)
        return self._done()
