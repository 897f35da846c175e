"""Bars of comparisons of interventions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from truecal.plot.display import GREY, SERIES, Display, Numbers, add_legend, text_color
from truecal.types import Float64s
from truecal.writing import write_whole

_COLOURS = (*(series["color"] for series in SERIES), "#56b4e9", "#e69f00")
_HATCHES = ("", "//", "..", "xx", "\\\\", "--", "oo")


def _bar_style(index: int) -> dict[str, Any]:
    """Return `color`, `hatch` and `edgecolor` of a bar by its index; 49 indices in a row give different colours or hatches."""
    # hatches move on by one in every cycle of colours
    cycle, count = index // len(_COLOURS), len(_COLOURS)
    return {"color": _COLOURS[index % count], "hatch": _HATCHES[(index + cycle) % count], "edgecolor": "white"}


def _draw_bars(
    ax: Any,
    names: Sequence[str],
    groups: Sequence[Any],
    height: Float64s,
    deviations: Float64s,
    styles: Mapping[str, int],
) -> tuple[Float64s, float]:
    """Draw a cluster of bars per distinct group, one bar per row; return the centres of the bars (rows,) and their width.

    `names`, `groups`, `height` and `deviations` have an entry per row; error bars are one deviation up and down, NaN counts as 0.
    `styles` gives the order of the names within a cluster, and the index of their style; the clusters are at 0, 1, ...
    """
    order, ticks = list(styles), list(dict.fromkeys(groups))
    width = 0.84 / len(order)
    offset = (len(order) - 1) / 2
    x = np.array([ticks.index(g) + (order.index(n) - offset) * width for n, g in zip(names, groups, strict=True)])
    for name, index in styles.items():
        rows = np.array([other == name for other in names])
        ax.bar(x[rows], height[rows], width, label=name, **_bar_style(index))
    ax.errorbar(x, height, np.nan_to_num(deviations), fmt="none", ecolor=text_color(), elinewidth=1, capsize=2)
    ax.set_xticks(range(len(ticks)), [str(tick) for tick in ticks], parse_math=False)
    return x, width


class InterventionsDisplay(Display):
    """Draw means over seeds as bars and standard deviations as error bars, one cluster per thing judged.

    A thick line marks what a calibrated model would get.

    Parameters
    ----------
    numbers : Frame or mapping of columns
        `intervention`, `what`, `mean`, `sd`; optionally `if_calibrated`, and `style`: the index of an intervention's colour.
    ylabel : str, default "Calibration error"
        Title of the vertical axis.

    Examples
    --------
    >>> frame = {"intervention": ["none", "focal"], "what": ["full"] * 2, "mean": [0.1, 0.05], "sd": [0.01, None]}
    >>> InterventionsDisplay(frame).frame()["mean"].tolist()
    [0.1, 0.05]
    """

    needed = ("intervention", "what", "mean", "sd")

    def __init__(self, numbers: Numbers, *, ylabel: str = "Calibration error") -> None:
        super().__init__(numbers)
        self.ylabel = ylabel

    def _size(self) -> tuple[float, float]:
        """Return width (1.5 per distinct `what` and 1 more, at least 8) and height (4.5), in inches."""
        return max(8.0, 1.5 * len(set(self._frame["what"])) + 1), 4.5

    def _draw(self, ax: Any) -> None:
        """Draw a bar per row at `mean`, with error bars of one `sd`, and a thick line at `if_calibrated` where it is finite."""
        names, groups, deviations = self._columns("intervention", "what", "sd")
        indices = self._frame["style"] if "style" in self._frame else range(len(names))
        styles = dict(sorted(zip(names, map(int, indices), strict=True), key=lambda pair: pair[1]))
        mean, sd = self._frame["mean"].astype(float), np.array(deviations, float)
        x, width = _draw_bars(ax, names, groups, mean, sd, styles)
        if "if_calibrated" in self._frame:
            if_calibrated = np.array(self._columns("if_calibrated")[0], float)
            rows = np.isfinite(if_calibrated)
            style = {"colors": text_color(), "linewidth": 2, "label": "if calibrated"}
            ax.hlines(if_calibrated[rows], x[rows] - width / 2, x[rows] + width / 2, **style)
        ax.axhline(0, color=GREY, linewidth=0.8)
        ax.set(ylabel=self.ylabel)
        add_legend(ax)


def write_pictures(pictures: Mapping[str, tuple[str, Numbers]], folder: str | PathLike[str]) -> list[Path]:
    """Draw the figures of Kirchenbauer, Oaks & Heim (2022) into `<folder>/<name>.png` and return the paths.

    `pictures` has, by name, the title of the vertical axis and the columns to draw, those of `InterventionsDisplay`.
    """
    from matplotlib import pyplot

    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, (ylabel, columns) in pictures.items():
        figure = InterventionsDisplay(columns, ylabel=ylabel).plot().figure_
        paths.append(target / f"{name}.png")
        write_whole(paths[-1], partial(figure.savefig, dpi=110, format="png", metadata={"Software": None}))
        pyplot.close(figure)
    return paths
