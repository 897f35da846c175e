"""Bars with error bars for a comparison of interventions: one cluster per thing judged, one bar per intervention."""

from collections.abc import Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from truecal.plot.display import GREY, SERIES, Display, Numbers, columns, legend_above
from truecal.writing import write_whole

_COLOURS = (*(series["color"] for series in SERIES), "#56b4e9", "#e69f00")
_HATCHES = ("", "//", "..", "xx", "\\\\", "--", "oo")


class Pictured(Protocol):
    """A comparison of interventions: what each of its pictures shows."""

    def pictures(self) -> Mapping[str, tuple[str, Numbers]]:
        """Name -> title of the vertical axis, and columns to draw."""


class InterventionsDisplay(Display):
    """Means over seeds as bars, standard deviations as error bars; a thick line marks what a calibrated model would get.

    >>> frame = {"intervention": ["none", "focal"], "what": ["full"] * 2, "mean": [0.1, 0.05], "sd": [0.01, None]}
    >>> display = InterventionsDisplay(frame)
    >>> display.frame()["mean"].tolist()
    [0.1, 0.05]
    """

    def __init__(self, numbers: Numbers, *, ylabel: str = "Calibration error") -> None:
        super().__init__(numbers, "intervention", "what", "mean", "sd")
        self.ylabel = ylabel

    def plot(self, ax: Any = None) -> "InterventionsDisplay":
        """Draw on `ax`, or on a new figure."""
        kinds, whats, means, spreads = columns(self._frame, "intervention", "what", "mean", "sd")
        floor = columns(self._frame, "if_calibrated")[0] if "if_calibrated" in self._frame else [None] * len(kinds)
        places = columns(self._frame, "style")[0] if "style" in self._frame else range(len(kinds))
        known = dict(zip(kinds, places, strict=True))
        methods, things = sorted(known, key=lambda name: known[name]), list(dict.fromkeys(whats))
        self._open(ax, size=(max(8.0, 1.5 * len(things) + 1), 4.5))
        width = 0.84 / len(methods)
        for i, name in enumerate(methods):
            rows = [j for j in range(len(kinds)) if kinds[j] == name]
            x = np.array([things.index(whats[j]) + (i - (len(methods) - 1) / 2) * width for j in rows])
            height = np.array([means[j] for j in rows], float)
            self.ax_.bar(x, height, width, label=name, **_style(known[name]))
            spread = np.array([np.nan if spreads[j] is None else spreads[j] for j in rows], float)
            self.ax_.errorbar(x, height, np.nan_to_num(spread), fmt="none", ecolor="black", elinewidth=1, capsize=2)
            marks = [(at, floor[j]) for at, j in zip(x, rows, strict=True) if floor[j] is not None]
            if marks:
                low, high = np.array([at for at, _ in marks]) - width / 2, np.array([at for at, _ in marks]) + width / 2
                label = "if it were calibrated" if i == len(methods) - 1 else None
                self.ax_.hlines([value for _, value in marks], low, high, colors="black", linewidth=2, label=label)
        self.ax_.set_xticks(range(len(things)), things)
        self.ax_.axhline(0, color=GREY, linewidth=0.8)
        self.ax_.set(ylabel=self.ylabel)
        legend_above(self.ax_, 4)
        return self._done()


def _style(place: int) -> dict[str, Any]:
    """Colour and hatch of the intervention at a place in the list of all: the same in every picture."""
    turn, count = place // len(_COLOURS), len(_COLOURS)
    return {"color": _COLOURS[place % count], "hatch": _HATCHES[(place + turn) % count], "edgecolor": "white"}


def pictures(result: Pictured) -> dict[str, InterventionsDisplay]:
    """The figures of Kirchenbauer, Oaks & Heim (2022) by name, those that the plan's lenses allow."""
    return {name: InterventionsDisplay(frame, ylabel=ylabel) for name, (ylabel, frame) in result.pictures().items()}


def write_pictures(result: Pictured, folder: str | PathLike[str]) -> list[Path]:
    """Draw every figure into `<folder>/<name>.png`; returns the paths."""
    from matplotlib import pyplot

    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, display in pictures(result).items():
        figure = display.plot().figure_
        paths.append(target / f"{name}.png")
        write_whole(paths[-1], partial(figure.savefig, dpi=110, format="png", metadata={"Software": None}))
        pyplot.close(figure)
    return paths
