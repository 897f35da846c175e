"""Bars of comparisons of interventions."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from truecal.plot.display import GREY, SERIES, Display, Numbers, add_legend, save_figure, text_color

_COLOURS = (*(series["color"] for series in SERIES), "#56b4e9", "#e69f00")
_HATCHES = ("", "//", "..", "xx", "\\\\", "--", "oo")


def _bar_style(index: int) -> dict[str, Any]:
    """Return `color`, `hatch` and `edgecolor` of a bar by its index; 49 indices in a row give different colours or hatches.

    >>> _bar_style(0)["color"] == _bar_style(7)["color"], _bar_style(0)["hatch"] == _bar_style(7)["hatch"]
    (True, False)
    """
    # hatches move on by one in every cycle of colours
    cycle, count = index // len(_COLOURS), len(_COLOURS)
    return {"color": _COLOURS[index % count], "hatch": _HATCHES[(index + cycle) % count], "edgecolor": "white"}


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
        """Store the numbers and the label of the vertical axis."""
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
        order, ticks = list(styles), list(dict.fromkeys(groups))
        width = 0.84 / len(order)
        offset = (len(order) - 1) / 2
        x = np.array([ticks.index(g) + (order.index(n) - offset) * width for n, g in zip(names, groups, strict=True)])
        mean = self._frame["mean"].astype(float)
        for name, index in styles.items():
            rows = np.array([other == name for other in names])
            ax.bar(x[rows], mean[rows], width, label=name, **_bar_style(index))
        sd = np.nan_to_num(np.array(deviations, float))
        ax.errorbar(x, mean, sd, fmt="none", ecolor=text_color(), elinewidth=1, capsize=2)
        if "if_calibrated" in self._frame:
            if_calibrated = np.array(self._columns("if_calibrated")[0], float)
            rows = np.isfinite(if_calibrated)
            style = {"colors": text_color(), "linewidth": 2, "label": "if calibrated"}
            ax.hlines(if_calibrated[rows], x[rows] - width / 2, x[rows] + width / 2, **style)
        ax.axhline(0, color=GREY, linewidth=0.8)
        ax.set_xticks(range(len(ticks)), [str(tick) for tick in ticks], parse_math=False)
        ax.set(ylabel=self.ylabel)
        add_legend(ax)


def write_pictures(pictures: Mapping[str, tuple[str, Numbers]], folder: str | PathLike[str]) -> list[Path]:
    """Draw the figures of Kirchenbauer, Oaks & Heim (2022) into `<folder>/<name>.png` and return the paths.

    `pictures` has, by name, the title of the vertical axis and the columns to draw, those of `InterventionsDisplay`.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, (ylabel, columns) in pictures.items():
        figure = InterventionsDisplay(columns, ylabel=ylabel).plot().figure_
        paths.append(save_figure(figure, target / f"{name}.png", dpi=110, metadata={"Software": None}))
    return paths
